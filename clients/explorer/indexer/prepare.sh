# Sourced in this directory: installs the packages, and compiles the core's formulas to WASM.
export PONDER_TELEMETRY_DISABLED=1
# npm writes this file when it has installed.
if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  echo "indexer: installing Ponder with npm" >&2
  # Not `npm ci`: it refuses the lock where the registry lacks a package for some other platform.
  npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
  touch node_modules/.package-lock.json
fi
../../ts/verifier.sh verifier
