#!/usr/bin/env bash
# Tests of the indexer: types, then its contents against the contract's views, on a development node with the demonstration.
#   clients/explorer/indexer/test.sh           a demonstration of 60 tasks
#   clients/explorer/indexer/test.sh --long    2,000 tasks on 40 nodes; clients/explorer/README.md has its figures
#   --pglite                                   without PostgreSQL: leaves out what needs one
#   --age                                      only how long it takes to catch up through a public endpoint, by the age of the chain: the table of
#                                              clients/explorer/README.md
#   --seen                                     only how long an event takes from its block until a viewer sees it: a table of clients/explorer/README.md
# Needs muster-dev and muster-devnode built, and the programs (script/build). DATABASE_URL names a PostgreSQL whose schemas v1, v2, killed and muster it may
# use; without one it starts Debian's, for as long as it runs.
set -euo pipefail
cd "$(dirname "$0")"
tasks=60
with_postgres=yes
ages=(30000)
only_ages=
only_seen=
for flag in "$@"; do
  case $flag in
    --long) tasks=2000 ;;
    --pglite) with_postgres= ;;
    --age) ages=(1000 10000 30000 100000 300000); only_ages=yes ;;
    --seen) only_seen=yes ;;
    *) echo "indexer: there is no flag $flag" >&2; exit 1 ;;
  esac
done
source ./prepare.sh
# The newer of the two, if there are both.
built() { realpath "$(ls -t "${CARGO_TARGET_DIR:-../../../target}"/{release,debug}/"$1" 2>/dev/null | head -n 1)" 2>/dev/null || true; }
export MUSTER_DEVNODE=${MUSTER_DEVNODE:-$(built muster-devnode)} MUSTER_CLI=${MUSTER_CLI:-$(built muster-dev)}
for name in MUSTER_DEVNODE MUSTER_CLI; do
  [ -x "${!name}" ] || { echo "indexer: ${name} is not built: cargo build -p muster-devnode -p muster-cli" >&2; exit 1; }
done
source test/postgres.sh
source test/caddy.sh
work=$(mktemp -d)
chmod 711 "$work"
trap 'postgres_stop; rm -rf "$work"' EXIT
if [ -z "$with_postgres" ]; then
  DATABASE_URL=
elif [ -z "${DATABASE_URL:-}" ]; then
  postgres_start "$work/postgres" || { echo "indexer: PostgreSQL cannot be had here; --pglite leaves out what needs it" >&2; exit 1; }
fi
caddy_find "$work/caddy" || echo "indexer: Caddy cannot be had by apt: nobody asks through the proxy" >&2
export DATABASE_URL TASKS=$tasks
node_modules/.bin/ponder codegen >/dev/null
[ -z "$only_seen" ] || { node --import tsx test/seen.ts 250 500 1000; exit; }
[ -n "$only_ages" ] || { node_modules/.bin/tsc --noEmit && node --import tsx --test --test-timeout 3000000 --test-reporter spec test/*.test.ts; }
node --import tsx test/age.ts "${ages[@]}"
