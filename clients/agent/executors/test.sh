#!/usr/bin/env bash
# Tests of the executors; installs what they need first.
set -euo pipefail
cd "$(dirname "$0")"
python=$(./prepare.sh)
exec "$python" -B test.py "$@"
