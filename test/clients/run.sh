#!/usr/bin/env bash
# All clients, one after the other, against a node.
#
#   test/clients/run.sh                      starts the embedded node (DEVNODE may name the binary)
#   RPC_URL=http://... test/clients/run.sh   uses the node that is there
#
# CARGO_STYLUS=no leaves cargo-stylus out, whose first build of its template takes a minute.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here"
if [ ! -e node_modules/.muster ] || [ package-lock.json -nt node_modules/.muster ]; then
  npm ci --no-audit --no-fund --loglevel=error
  touch node_modules/.muster
fi

if [ -z "${RPC_URL:-}" ]; then
  node=${DEVNODE:-$here/../../target/release/muster-devnode}
  [ -x "$node" ] || { echo "clients: $node is not there: cargo build --release -p muster-devnode" >&2; exit 1; }
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
