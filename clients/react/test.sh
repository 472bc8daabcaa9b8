#!/usr/bin/env bash
# All tests of the React package: its types, then the hooks on the development node. Needs clients/ts built (its pack.sh), and muster-devnode.
set -euo pipefail
cd "$(dirname "$0")"
# npm writes this file when it has installed.
if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  echo "clients/react: installing with npm" >&2
  npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
  touch node_modules/.package-lock.json
fi
target=${CARGO_TARGET_DIR:-../../target}
MUSTER_DEVNODE=${MUSTER_DEVNODE:-$(realpath "$(ls -t "$target"/{release,debug}/muster-devnode 2>/dev/null | head -n 1)")}
export MUSTER_DEVNODE
npm run --silent build
cp ../../LICENSE-* .
node_modules/.bin/publint --strict
node --test --test-timeout 3000000 --test-reporter spec test/*.test.mjs
