#!/usr/bin/env bash
# What needs torch, and a card where there is one; without one it runs on the processor, and small.
#   gpu.sh test [NAME ...]        tests of the executors `transformers`, `diffusers`, and `openai` with a real server
#   gpu.sh determinism [...]      measures who answers alike, adds what it found to docs/determinism.json, and writes docs/determinism.md
#   gpu.sh page                   writes docs/determinism.md anew from docs/determinism.json
# PYTHON_TORCH names a Python that has torch, transformers, diffusers and accelerate; without it prepare.sh installs one, 6 GB.
set -euo pipefail
cd "$(dirname "$0")"
what=${1:-}
[ $# -eq 0 ] || shift
case $what in
  test) exec "${PYTHON_TORCH:-$(./prepare.sh --torch)}" -B test_torch.py "$@" ;;
  determinism) exec "${PYTHON_TORCH:-$(./prepare.sh --torch)}" -B determinism.py measure "$@" ;;
  page) exec "${PYTHON:-python3}" -B determinism.py page ;;
  *) sed -n '2,6s/^# *//p' "$0" >&2; exit 2 ;;
esac
