#!/usr/bin/env bash
# Packs the published packages, publishes them into a registry on this machine, and uses them as somebody without Rust does; prints the time
# that takes. Looks at crates, deployment files and workflows, which are used elsewhere, as far as can be done here.
#
#   test/release/test.sh            with the programs of target/debug, which script/test has built
#   BUILT=target/dist ...            with those of script/release, for the figures of docs/releases.md
#
# Needs the programs on chain (script/build) and, unless MUSTER_CLIENT names the output of clients/ts/pack.sh, the needs of that one.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root/test/release"
# npm writes this file when it has installed.
if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  echo "release: installing verdaccio and readers of deployment files with npm"
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
  touch node_modules/.package-lock.json
fi
source "$root/clients/explorer/indexer/test/caddy.sh"
caddy=$(mktemp -d)
caddy_find "$caddy" || echo "release: Caddy cannot be had by apt: nobody reads the explorer's Caddyfile"
cd "$root"
BUILT=$(realpath "${BUILT:-${CARGO_TARGET_DIR:-target}/debug}")
export BUILT
for program in muster muster-agent muster-dev muster-devnode; do
  [ -x "$BUILT/$program" ] || { echo "release: $BUILT/$program is not built: script/test, or cargo build -p muster-network -p muster-agent -p muster-cli -p muster-devnode" >&2; exit 1; }
done
trap 'rm -rf "$caddy" "${work:-}"' EXIT
if [ -z "${MUSTER_CLIENT:-}" ]; then
  work=$(mktemp -d)
  MUSTER_DEVNODE=$BUILT/muster-devnode MUSTER_CLI=$BUILT/muster-dev clients/ts/pack.sh "$work" >&2
  MUSTER_CLIENT=$(ls "$work"/muster-client-*.tgz)
fi
export MUSTER_CLIENT
node script/workflows.mjs
node --test --test-timeout 3000000 --test-reporter spec test/release/*.test.mjs
