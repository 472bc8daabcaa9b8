#!/usr/bin/env bash
# Tests and measurements that need torch; on a card, or small on the processor without one. On a machine without a network they need
# the repository, a Python with torch, and what `pack` packs if there is no cargo.
#   gpu.sh pack                   programs and contract into .muster/card.tgz, before the copy to such a machine: unpack it at the repository's root there
#   gpu.sh all                    on a card all that is asked of one, in hours: test, determinism of 1b and of 8b, work, and the page
#   gpu.sh dry                    the same on any machine in minutes: small models and short texts, the tables printed, no number kept
#   gpu.sh test [NAME ...]        tests of the executors `transformers`, `diffusers`, and `openai` with a real server, and of a text read along
#   gpu.sh determinism [...]      which settings give identical answers: adds to docs/research/determinism.json. --help lists what can be left out, and --minutes ends it
#   gpu.sh work [...]             an agent with NVML's facts, tasks of all policies, and what Muster costs a card: docs/research/cards.json
#   gpu.sh page                   writes docs/research/determinism.md anew from both files; determinism and work do it themselves
# PYTHON_TORCH names a Python that has torch, transformers, diffusers and accelerate; without it prepare.sh installs one, 6 GB.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../../.. && pwd)
what=${1:-}
[ $# -eq 0 ] || shift
packed=$root/.muster/card
if [ -d "$packed" ] && [ "$what" != pack ]; then
  export BUILT=${BUILT:-$packed} MUSTER_HASH=${MUSTER_HASH:-$packed/hash}
fi
torch() { "${PYTHON_TORCH:-$(./prepare.sh --torch)}" -B "$@"; }
page() { "${PYTHON:-python3}" -B determinism.py page; }
# A step that fails is named at the end: it must not keep hours of a card from the others.
failed=()
try() { "$@" || failed+=("$*"); }
ended() {
  [ ${#failed[@]} -eq 0 ] || {
    printf 'gpu.sh: failed: %s\n' "${failed[@]}" >&2
    exit 1
  }
}
case $what in
  pack)
    built=${CARGO_TARGET_DIR:-$root/target}/debug
    mkdir -p "$packed"
    for program in muster muster-agent muster-dev muster-devnode examples/hash; do strip -o "$packed/$(basename "$program")" "$built/$program"; done
    cd "$root"
    tar -czf .muster/card.tgz .muster/card build/manifest.json build/*.wasm build/*.deploy
    du -sh .muster/card.tgz
    ;;
  all)
    torch -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || {
      echo "gpu.sh all: no card is here, and on a processor it takes days: gpu.sh dry does the same with small models" >&2
      exit 1
    }
    torch work.py check
    try torch test_torch.py
    try torch determinism.py measure "$@"
    try torch determinism.py measure --llama 8b --images none --prompts 4 "$@"
    try torch work.py
    page
    ended
    ;;
  dry)
    torch work.py check
    try torch test_torch.py
    MEASURED=$(mktemp -d)
    export MEASURED
    trap 'rm -rf "$MEASURED"' EXIT
    try torch determinism.py measure --llama tiny --diffusion tiny --prompts 2 --tokens 100 --pictures 1 --dtypes bfloat16 "$@"
    try torch work.py --dry --queue 3 --seconds 3
    page
    echo "Of $MEASURED/determinism.md, whose numbers are thrown away:"
    grep -E '^(#|\|)' "$MEASURED/determinism.md"
    ended
    ;;
  test) torch test_torch.py "$@" ;;
  determinism) torch determinism.py measure "$@" ;;
  work)
    torch work.py "$@"
    page
    ;;
  page) page ;;
  *)
    sed -n "2,/^set -e/{/^set -e/d;s/^# *//p}" "$(basename "$0")" >&2
    exit 2
    ;;
esac
