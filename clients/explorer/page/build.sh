#!/usr/bin/env bash
# Builds the page into dist/ and says its size; before it clients/ts, which is part of it, where that is not built or older than its sources.
set -euo pipefail
cd "$(dirname "$0")"
ts=../../ts
if [ ! -e $ts/dist/verify/index.js ] ||
  [ -n "$(find $ts/src ../../verifier/src ../../../abi -path '*/generated' -prune -o -type f -newer $ts/dist/verify/index.js -print -quit)" ]; then
  if [ ! -e $ts/node_modules/.package-lock.json ]; then
    (cd $ts && npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error)
  fi
  (cd $ts && npm run --silent build)
fi
node_modules/.bin/tsc --noEmit
node_modules/.bin/vite build --logLevel warn
node size.mjs
