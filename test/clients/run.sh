#!/usr/bin/env bash
# All clients, against a node with a Muster on it. Those that start nodes of their own run beside the others, CLIENT_JOBS at a
# time: one more than there are processors, if not given. The log of each is printed whole when it has ended.
#
#   test/clients/run.sh                      starts the embedded node (the newest build; DEVNODE names another)
#   RPC_URL=http://... test/clients/run.sh   uses the node that is there (PRIVATE_KEY pays; WS_URL if it is another port)
#
# Needs muster-dev and muster-devnode built, and the programs (script/build). CLIENTS="viem cast" runs only some of these:
#
#   endpoint       the proxy that behaves as public endpoints do
#   release        the published packages (test/release)
#   estimates      plain estimates suffice: CALLS of each call by each client, on a node of its own
#   viem           also ethers and cast
#   examples       those of docs/examples.md
#   package        clients/ts, then clients/react; always on the embedded node
#   indexer        clients/explorer; always on the embedded node, as is page
#   executors      those of clients/agent, by themselves
#   site           the documentation's, by script/site
#   runbook        incidents of docs/runbook.md, on nodes of its own; needs muster and muster-agent built
#   cargo-stylus   the requests that it made once, and their answers; cargo-stylus itself, which is built then, on a node that is there
#
# Longer forms: script/bench estimates, clients/explorer/indexer/test.sh --long, TASKS=2000 clients/explorer/page/test.sh,
# clients/explorer/large.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here"
target=${CARGO_TARGET_DIR:-$here/../../target}
# The newer of the two, if there are both.
built() { ls -t "$target"/{release,debug}/"$1" 2>/dev/null | head -n 1 || true; }
work=$(mktemp -d)
pid=
# Clients that run, by their process groups.
declare -A running=()
stop() {
  local group
  for group in "${!running[@]}"; do kill -- "-$group" 2>/dev/null || true; done
  [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
  wait
  rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT TERM

# npm writes this file when it has installed.
if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  echo "clients: installing viem, ethers and cast with npm"
  npm ci --no-audit --no-fund --loglevel=error
  touch node_modules/.package-lock.json
fi

source ./listening.sh
# start_node NAME ARGUMENTS...: a node of its own, as `listening` starts it.
start_node() {
  local node=${DEVNODE:-$(built muster-devnode)}
  [ -x "$node" ] || { echo "clients: no muster-devnode is built: cargo build -p muster-devnode" >&2; exit 1; }
  listening "$work/$1.log" "$node" --port 0 "${@:2}"
}
if [ -z "${RPC_URL:-}" ]; then
  start_node node
  pid=$started RPC_URL=$url
  export RPC_URL
fi
export PRIVATE_KEY=${PRIVATE_KEY:-0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659}

# A Muster of its own for each client, by the project's own deployer; stakes are small, for nodes that are not ours.
muster=$(built muster-dev)
[ -x "$muster" ] || { echo "clients: muster-dev is not built: cargo build -p muster-cli" >&2; exit 1; }
deploy() {
  env OWNER= TREASURY= PARAMETERS= UPGRADE_DELAY= MIN_PRICE=1 MIN_STAKE=0.0000000004 STAKE_UNIT=1000000 \
    DEPLOYMENTS="$work/$1" "${@:2}" "$muster" deploy >"$work/deploy.log" 2>&1 || { cat "$work/deploy.log" >&2; exit 1; }
  MUSTER=$(node -p 'JSON.parse(require("fs").readFileSync(process.argv[1], "utf8")).address' "$work/$1"/*.json)
  export MUSTER
}

ask() { curl -sf -H 'content-type: application/json' --data '{"jsonrpc":"2.0","id":1,"method":"'"$1"'","params":[]}' "$RPC_URL"; }
chain_id() { ask eth_chainId | sed 's/.*"result":"\([^"]*\)".*/\1/'; }
# The story that viem and ethers play waits for deadlines.
time_travel() { ask evm_snapshot | grep -q '"result"'; }

# replay FILE: asks what a client asked, of a node that begins as the recorded one did.
replay() {
  local code=0
  start_node replay --manual-time 1700000000
  node recorded.mjs play "$url" "$1" || code=$?
  kill "$started"
  return $code
}

# Plays one.
play() {
  local client=$1 tests
  case $client in
    viem | ethers)
      if ! time_travel; then
        echo "$client: skipped, because it moves time, which the node at $RPC_URL cannot"
        return
      fi
      ;;
  esac
  case $client in
    endpoint) node --test --test-reporter spec endpoint.test.mjs ;;
    estimates) MUSTER_DEVNODE=${DEVNODE:-$(built muster-devnode)} MUSTER_CLI=$muster node estimates.mjs "${CALLS:-6}" ;;
    viem)
      deploy viem-checked
      export CHECKED=$MUSTER
      deploy viem
      # The types of abi/muster.ts first, then the client.
      node_modules/.bin/tsc --project .
      node_modules/.bin/tsx viem.ts
      ;;
    ethers)
      deploy ethers-checked
      export CHECKED=$MUSTER
      deploy ethers
      node ethers.mjs
      ;;
    examples)
      if [ "$(chain_id)" != 0x64aba ]; then
        echo "examples: skipped, because its stake of 500 ether is only to be had on a development chain"
        return
      fi
      # The stakes of the contract's own defaults.
      deploy examples MIN_STAKE= STAKE_UNIT=
      CHAIN_ID=$(($(chain_id)))
      export CHAIN_ID
      node examples.mjs
      ;;
    package | page)
      if ! node -e 'const [major, minor] = process.versions.node.split("."); process.exit(major > 20 || (major == 20 && minor >= 19) ? 0 : 1)'; then
        echo "$client: skipped, because it is tested with Node.js 20.19 or newer, and this is $(node --version)"
        return
      fi
      case $client in package) tests=ts ;; page) tests=explorer/page ;; esac
      export MUSTER_DEVNODE=${DEVNODE:-$(built muster-devnode)} MUSTER_CLI=$muster
      ../../clients/$tests/test.sh
      # Its hooks are made of the package, which is built by then.
      [ $client != package ] || ../../clients/react/test.sh
      ;;
    indexer)
      if ! node -e 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)'; then
        echo "indexer: skipped, because it is tested with Node.js 20 or newer, and this is $(node --version)"
        return
      fi
      MUSTER_DEVNODE=${DEVNODE:-$(built muster-devnode)} MUSTER_CLI=$muster ../../clients/explorer/indexer/test.sh
      ;;
    release)
      if ! node -e 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)'; then
        echo "release: skipped, because it is tested with Node.js 20 or newer, and this is $(node --version)"
        return
      fi
      MUSTER_CLIENT=$MUSTER_PACKAGE ../release/test.sh
      ;;
    executors)
      if ! python3 -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; then
        echo "executors: skipped, because they need Python 3.11 to 3.14"
        return
      fi
      ../../clients/agent/executors/test.sh
      ;;
    site)
      if ! node -e 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)'; then
        echo "site: skipped, because it is tested with Node.js 20 or newer, and this is $(node --version)"
        return
      fi
      ../../script/site
      node --test --test-reporter spec ../../script/book/test.mjs
      ;;
    runbook)
      # Both wait most of the time.
      local failed= agents
      MUSTER_DEVNODE=${DEVNODE:-$(built muster-devnode)} MUSTER_CLI=$muster MUSTER_COMMAND=$(built muster)
      export MUSTER_DEVNODE MUSTER_CLI MUSTER_COMMAND
      ./runbook-agents.sh >"$work/agents.log" 2>&1 &
      agents=$!
      ./runbook.sh || failed=yes
      wait $agents || failed=yes
      cat "$work/agents.log"
      [ -z "$failed" ]
      ;;
    cast)
      deploy cast
      ./cast.sh
      ;;
    cargo-stylus)
      if [ -n "$pid" ]; then
        replay cargo-stylus.jsonl
      else
        ./cargo-stylus.sh
      fi
      ;;
    *) echo "clients: there is no client $client" >&2; exit 1 ;;
  esac
}

# start CLIENT...: one after the other, in a process group of their own, so that all of it can be ended. Each log is shown whole.
start() {
  set -m
  (
    trap 'code=$?; cat "$work/$client.log"; [ $code = 0 ] || echo "$client" >>"$work/failed"' EXIT
    for client in "$@"; do
      TIMEFORMAT="$client: %0R s, of a processor %0U s and the system's %0S s"
      # In a shell of its own, for a failure leaves this one with its output where it was.
      { time (play "$client") >"$work/$client.log" 2>&1; } 2>>"$work/$client.log"
      [ "$client" = "${*: -1}" ] || cat "$work/$client.log"
    done
  ) &
  set +m
  running[$!]=$*
}

# Waits until one has ended.
finish() {
  local job
  wait -n -p job "${!running[@]}" || true
  unset "running[$job]"
}

# Ends this script if a client failed, and says which one, with the end of its log.
verdict() {
  local client
  [ -e "$work/failed" ] || return 0
  while read -r client; do
    echo "clients: $client failed, and said last" >&2
    tail -n 80 "$work/$client.log" >&2
  done <"$work/failed"
  exit 1
}

# The TypeScript package, for the examples, for its own tests, which run at the same time, and to be published.
case " ${CLIENTS:-examples package release} " in
  *" examples "* | *" package "* | *" release "*)
    MUSTER_DEVNODE=${DEVNODE:-$(built muster-devnode)} MUSTER_CLI=$muster ../../clients/ts/pack.sh "$work" >"$work/pack.log" 2>&1 || { cat "$work/pack.log" >&2; exit 1; }
    MUSTER_PACKAGE=$(ls "$work"/muster-client-*.tgz)
    export MUSTER_PACKAGE
    ;;
esac

inturn=() beside=()
# The longest first, so that none is left alone at the end.
for client in ${CLIENTS:-endpoint estimates viem ethers examples cast cargo-stylus page indexer release package site runbook executors}; do
  case $client in
    package | page | release | indexer | executors | site | runbook) beside+=("$client") ;;
    *) inturn+=("$client") ;;
  esac
done
[ ${#inturn[@]} = 0 ] || start "${inturn[@]}"
for client in "${beside[@]}"; do
  while [ ${#running[@]} -ge "${CLIENT_JOBS:-$(($(nproc) + 1))}" ]; do finish; done
  start "$client"
done
while [ ${#running[@]} -gt 0 ]; do finish; done
verdict
