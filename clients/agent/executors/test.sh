#!/usr/bin/env bash
# Tests of the executors; installs their dependencies first.
set -euo pipefail
cd "$(dirname "$0")"
python=$(./prepare.sh)
"$python" -B test.py "$@"
# All of gpu.sh work but the card: an agent with two executors on a substitute for one, tasks of all policies.
[ $# -gt 0 ] || "$python" -B work.py --plain --queue 2
