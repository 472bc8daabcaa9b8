#!/usr/bin/env bash
# Builds the page into dist/ and prints its size; before it clients/ts, which is part of it, if that is not built or older than its sources. Installs
# both packages' dependencies.
set -euo pipefail
cd "$(dirname "$0")"
ts=../../ts
install() {
  # npm writes this file when it has installed.
  if [ ! -e "$1/node_modules/.package-lock.json" ] || [ "$1/package-lock.json" -nt "$1/node_modules/.package-lock.json" ]; then
    echo "page: installing with npm in clients/$(realpath --relative-to ../.. "$1")" >&2
    (cd "$1" && npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error >&2 && touch node_modules/.package-lock.json)
  fi
}
if [ ! -e $ts/dist/verify/index.js ] ||
  [ -n "$(find $ts/src ../../verifier/src ../../../abi -path '*/generated' -prune -o -type f -newer $ts/dist/verify/index.js -print -quit)" ]; then
  install $ts
  (cd $ts && npm run --silent build)
fi
install .
node_modules/.bin/tsc --noEmit
node_modules/.bin/vite build --logLevel warn
node pack.mjs
node size.mjs
