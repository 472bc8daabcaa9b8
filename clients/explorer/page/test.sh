#!/usr/bin/env bash
# All tests of the page: its formulas, then every view in Chromium, on the indexer, on the embedded node; and the example
# page of streams. TASKS=2000 streams as many tasks through the explorer instead of 100; SHOTS names a directory for pictures of all views.
# Needs muster-dev and muster-devnode built, and the programs (script/build). CHROMIUM names a browser; else it is Debian's, installed if need be.
set -euo pipefail
cd "$(dirname "$0")"
target=${CARGO_TARGET_DIR:-../../../target}
# The newer of the two, if there are both.
built() { realpath "$(ls -t "$target"/{release,debug}/"$1" 2>/dev/null | head -n 1)"; }
MUSTER_DEVNODE=${MUSTER_DEVNODE:-$(built muster-devnode)}
MUSTER_CLI=${MUSTER_CLI:-$(built muster-dev)}
export MUSTER_DEVNODE MUSTER_CLI
if [ -z "${CHROMIUM:-}" ] && ! command -v chromium chromium-browser google-chrome >/dev/null; then
  echo "page: installing Chromium with apt-get"
  as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  log=$(mktemp)
  # One at a time: other tests may install something, too.
  { flock 8 && "${as_root[@]}" apt-get update && "${as_root[@]}" apt-get install -y --no-install-recommends chromium fonts-dejavu-core; } >"$log" 2>&1 8</var/lib/dpkg || { cat "$log" >&2; exit 1; }
  rm "$log"
fi
./build.sh
# The chain that the test network begins with.
[ -f ../../ts/state/muster.json ] && [ ../../ts/state/muster.json -nt ../../../build/manifest.json ] || (cd ../../ts && node state.mjs)
(cd ../indexer && source ./prepare.sh)
# A test that fails can leave a server open.
node --test --test-force-exit --test-timeout 3000000 --test-reporter spec test/*.test.mjs
