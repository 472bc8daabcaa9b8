#!/usr/bin/env bash
# The explorer with a large network: generates its database in PostgreSQL, serves it, and measures the first view in Chromium and many viewers at once. Prints
# the tables of clients/explorer/README.md, and the machine's other load.
#   clients/explorer/large.sh                            100,000 nodes, 1,000,000 tasks, 1,000 viewers: some ten minutes
#   NODES=1000 TASKS=20000 VIEWERS=50 clients/explorer/large.sh
#   SERVERS=2                                            as many `ponder serve`, viewers divided among them
# Needs no node and no chain. DATABASE_URL names a PostgreSQL whose schema `large` it may use; without one it starts Debian's, for as long as it runs. KEEP=yes uses
# the schema as it is.
set -euo pipefail
cd "$(dirname "$0")/indexer"
source ./prepare.sh
source test/postgres.sh
work=$(mktemp -d)
chmod 711 "$work"
pids=()
trap 'for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done; wait; postgres_stop; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
if [ -z "${DATABASE_URL:-}" ]; then
  postgres_start "$work/postgres" || { echo "large: PostgreSQL cannot be had here" >&2; exit 1; }
fi
export DATABASE_URL
../page/build.sh >&2
[ -n "${KEEP:-}" ] || node --import tsx test/generate.ts --schema large --nodes "${NODES:-100000}" --tasks "${TASKS:-1000000}" >&2
# Nobody is asked for the chain: the first port refuses.
export CHAIN_ID=412346 START_BLOCK=1 RPC_URL=http://127.0.0.1:9 MUSTER=0x00000000000000000000000000000000000000ff NODE_ENV=production
origins=()
for _ in $(seq "${SERVERS:-1}"); do
  port=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close() })')
  DATABASE_URL=${SERVE_DATABASE_URL:-$DATABASE_URL} node_modules/.bin/ponder serve --schema large --port "$port" --hostname 127.0.0.1 --log-level warn >"$work/serve-$port.log" 2>&1 &
  pids+=($!)
  until curl -sf "http://127.0.0.1:$port/health" >/dev/null 2>&1; do
    kill -0 "${pids[-1]}" 2>/dev/null || { cat "$work/serve-$port.log" >&2; exit 1; }
    sleep 0.5
  done
  origins+=("http://127.0.0.1:$port")
done
load() { cut -d' ' -f1-3 /proc/loadavg; }
echo
echo "${NODES:-100000} nodes, ${TASKS:-1000000} tasks, ${SERVERS:-1} servers on $(nproc) cores; load before: $(load)."
failed=
node ../page/test/large.mjs "${origins[0]}" || failed=yes
node --import tsx test/viewers.mjs "$(IFS=,; echo "${origins[*]}")" large "${VIEWERS:-1000}" "${SECONDS_LONG:-30}" || failed=yes
echo
echo "Load after: $(load)."
[ -z "$failed" ]
