#!/usr/bin/env bash
# Runs other projects' software against this node and, beside it, anvil: Hardhat with OpenZeppelin's contracts, web3.js, web3.py. Prints a
# table of passes and failures; the output of failures goes to standard error.
#   NODES="muster-devnode=/path/to/binary other=/path anvil=/path"   which nodes, each started on a port of its own
#   SUITES="hardhat web3.js web3.py"                                 which suites
# Installs its packages with npm and pip, here and into .venv.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here"
root=$here/../..
target=${CARGO_TARGET_DIR:-$root/target}
newest=$(ls -t "$target"/{release,debug}/muster-devnode 2>/dev/null | head -n 1 || true)

if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  echo "suites: installing Hardhat, OpenZeppelin's contracts, web3.js and anvil with npm" >&2
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2
  touch node_modules/.package-lock.json
fi
suites=${SUITES:-hardhat web3.js web3.py}
if [[ " $suites " == *" web3.py "* ]] && ! cmp -s requirements.txt .venv/installed; then
  echo "suites: installing web3.py with pip" >&2
  python3 -m venv .venv
  .venv/bin/pip install --quiet --disable-pip-version-check -r requirements.txt >&2
  cp requirements.txt .venv/installed
fi
anvil=$(ls -d node_modules/@foundry-rs/anvil-*/bin/anvil 2>/dev/null | head -n 1 || true)
nodes=${NODES:-muster-devnode=${newest:?no muster-devnode is built: cargo build -p muster-devnode} ${anvil:+anvil=$here/$anvil}}

work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; rm -rf "$work"' EXIT
export HARDHAT_DISABLE_TELEMETRY_PROMPT=true
# The others read the files that this compiles.
node_modules/.bin/hardhat compile >"$work/compile.log" 2>&1 || { cat "$work/compile.log" >&2; exit 1; }

declare -A result
port=8640
names=()
for entry in $nodes; do
  name=${entry%%=*} binary=${entry#*=}
  names+=("$name")
  for suite in $suites; do
    # A fresh node for each, since they leave things behind.
    port=$((port + 1))
    export NODE_URL=http://127.0.0.1:$port
    if [[ $name == anvil* ]]; then
      # The chain id of the other, and as many accounts; it records instructions only when told to.
      "$binary" --port $port --chain-id 412346 --accounts 11 --steps-tracing --silent >"$work/node.log" 2>&1 &
    else
      "$binary" --port $port >"$work/node.log" 2>&1 &
    fi
    pid=$!
    for _ in $(seq 100); do
      curl -sf -o /dev/null -H 'content-type: application/json' \
        --data '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}' "$NODE_URL" && break
      sleep 0.1
    done
    echo "suites: $suite on $name" >&2
    case $suite in
      hardhat)
        rm -f "$work/report.json"
        REPORTER=./reporter.js REPORT=$work/report.json timeout 600 node_modules/.bin/hardhat test --no-compile >"$work/log" 2>"$work/failed" || true
        grep '^  failed:' "$work/failed" >&2 || true
        counts=$(cat "$work/report.json") || { tail -n 20 "$work/log" >&2; exit 1; }
        ;;
      web3.js) counts=$(timeout 300 node web3js.mjs | tail -n 1) ;;
      web3.py) counts=$(timeout 300 .venv/bin/python web3_py.py | tail -n 1) ;;
      *) echo "suites: there is no suite $suite" >&2; exit 2 ;;
    esac
    result[$suite,$name]=$(node -p 'const r = JSON.parse(process.argv[1]); `${r.passed} / ${r.passed + r.failed}`' "$counts")
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    pid=
  done
done

printf '| suite, passed of all |'
printf ' %s |' "${names[@]}"
printf '\n| --- |'
printf ' ---: |%.0s' "${names[@]}"
printf '\n'
for suite in $suites; do
  case $suite in
    hardhat) what="Hardhat $(node -p 'require("hardhat/package.json").version') with OpenZeppelin contracts $(node -p 'require("@openzeppelin/contracts/package.json").version')" ;;
    web3.js) what="web3.js $(node -p 'JSON.parse(require("fs").readFileSync("node_modules/web3/package.json")).version')" ;;
    web3.py) what="web3.py $(sed -n 's/^web3==//p' requirements.txt)" ;;
  esac
  printf '| %s |' "$what"
  for name in "${names[@]}"; do printf ' %s |' "${result[$suite,$name]}"; done
  printf '\n'
done
