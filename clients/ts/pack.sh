#!/usr/bin/env bash
# Builds the package and packs it: clients/ts/pack.sh [DIRECTORY] writes muster-client-<version>.tgz there, or here by default.
# Needs muster-dev and muster-devnode built, and the programs (script/build), for the chain of the test network.
set -euo pipefail
to=$(cd "${1:-$(dirname "$0")}" && pwd)
cd "$(dirname "$0")"
target=${CARGO_TARGET_DIR:-../../target}
# The newer of the two, if there are both.
built() { ls -t "$target"/{release,debug}/"$1" 2>/dev/null | head -n 1 || true; }
MUSTER_DEVNODE=${MUSTER_DEVNODE:-$(realpath "$(built muster-devnode)" 2>/dev/null || true)}
MUSTER_CLI=${MUSTER_CLI:-$(realpath "$(built muster-dev)" 2>/dev/null || true)}
export MUSTER_DEVNODE MUSTER_CLI
for name in MUSTER_DEVNODE MUSTER_CLI; do
  [ -x "${!name}" ] || { echo "clients/ts: ${name/MUSTER_CLI/muster-dev} is not built: cargo build -p muster-devnode -p muster-cli" >&2; exit 1; }
done

echo "clients/ts: building the package and the state of its test network, and packing both: half a minute" >&2
# npm writes this file when it has installed.
if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  echo "clients/ts: installing with npm"
  # Not `npm ci`: it refuses the lock where the registry lacks a package for some other platform.
  npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
  touch node_modules/.package-lock.json
fi
npm run --silent build
cp ../../LICENSE-* .
# Of the crates in its WASM.
node ../../script/npm/licences.mjs --target wasm32-unknown-unknown muster-verifier muster-replayer >THIRD-PARTY.txt
node state.mjs
npm pack --silent --pack-destination "$to"
