#!/usr/bin/env bash
# All clients, one after the other, against a node.
#
#   test/clients/run.sh                      starts the embedded node (the newest build; DEVNODE names another)
#   RPC_URL=http://... test/clients/run.sh   uses the node that is there
#
# CARGO_STYLUS=no leaves cargo-stylus out, whose first build of its template takes a minute.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here"
# npm writes this file when it has installed.
if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  npm ci --no-audit --no-fund --loglevel=error
  touch node_modules/.package-lock.json
fi

if [ -z "${RPC_URL:-}" ]; then
  target=${CARGO_TARGET_DIR:-$here/../../target}
  # The newer of the two, if there are both.
  node=${DEVNODE:-$(ls -t "$target"/{release,debug}/muster-devnode 2>/dev/null | head -n 1 || true)}
  [ -x "$node" ] || { echo "clients: no muster-devnode is built: cargo build -p muster-devnode" >&2; exit 1; }
  log=$(mktemp)
  "$node" --port 0 >"$log" &
  pid=$!
  trap 'kill "$pid" 2>/dev/null; rm -f "$log"' EXIT
  for _ in $(seq 100); do
    RPC_URL=$(sed -n 's/^Listening on \(http[^ ]*\).*/\1/p' "$log")
    [ -n "$RPC_URL" ] && break
    kill -0 "$pid" 2>/dev/null || { echo "clients: the node did not start" >&2; exit 1; }
    sleep 0.1
  done
  export RPC_URL
fi

node viem.mjs
node ethers.mjs
./cast.sh
if [ "${CARGO_STYLUS:-}" = no ]; then
  echo "cargo-stylus: left out (CARGO_STYLUS=no)"
else
  status=0
  out=$(mktemp)
  ./cargo-stylus.sh >"$out" 2>&1 || status=$?
  tail -n 1 "$out"
  case $status in
    0) ;;
    3) echo "cargo-stylus: left out, see the line above" ;;
    *) cat "$out" >&2; exit "$status" ;;
  esac
  rm -f "$out"
fi
