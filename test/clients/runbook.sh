#!/usr/bin/env bash
# Five incidents of docs/runbook.md, played by its commands on a development node of its own, whose time it moves. They are a bad program
# proposed and withdrawn, an owner's key stolen, a queue held, an operator who leaves, and programs expired. Also the rehearsal of a
# parameter on a copy of that node. Needs muster, muster-dev and muster-devnode built (MUSTER_COMMAND, MUSTER_CLI and MUSTER_DEVNODE name
# others) and the programs (script/build); cast is the one that script/setup or run.sh installed, or the path's.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${CARGO_TARGET_DIR:-target}/debug
muster=${MUSTER_COMMAND:-$bin/muster} deployer=${MUSTER_CLI:-$bin/muster-dev} devnode=${MUSTER_DEVNODE:-$bin/muster-devnode}
for tool in "$muster" "$deployer" "$devnode"; do
  [ -x "$tool" ] || { echo "runbook: $tool is not built" >&2; exit 1; }
done
# The package's launcher loses the exit status.
cast=$(ls test/clients/node_modules/@foundry-rs/cast-*/bin/cast node_modules/@foundry-rs/cast-*/bin/cast 2>/dev/null | head -n 1 || true)
cast() { command "${cast:-cast}" "$@"; }
# A field of the JSON on standard input.
field() { node -p "JSON.parse(require('fs').readFileSync(0, 'utf8'))$1"; }
work=$(mktemp -d)
nodes=()
trap '[ ${#nodes[@]} = 0 ] || kill "${nodes[@]}" 2>/dev/null || true; wait; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

die() { echo "runbook: $*" >&2; exit 1; }
# says TEXT COMMAND ...: it succeeds, and prints the text.
says() {
  local out
  out=$("${@:2}" 2>&1) || die "${*:2} failed: $out"
  grep -qF -- "$1" <<<"$out" || die "${*:2} does not say \"$1\": $out"
}
# refused TEXT COMMAND ...: it fails, and says why.
refused() {
  local out
  ! out=$("${@:2}" 2>&1) || die "${*:2} was not refused: $out"
  grep -qF -- "$1" <<<"$out" || die "${*:2} does not say \"$1\": $out"
}

# start NAME FLAG ...: a node, whose URL is then in $url.
start() {
  "$devnode" --port 0 "${@:2}" >"$work/$1.log" 2>&1 &
  nodes+=($!)
  url=
  while [ -z "$url" ]; do
    kill -0 "${nodes[-1]}" 2>/dev/null || die "the node did not start: $(cat "$work/$1.log")"
    sleep 0.1
    url=$(sed -n 's/^Listening on \(http[^ ]*\).*/\1/p' "$work/$1.log")
  done
}
start node
RPC_URL=$url
export RPC_URL ETH_RPC_URL=$RPC_URL MUSTER_HOME=$work/home NO_COLOR=1 FOUNDRY_DISABLE_NIGHTLY_WARNING=1
owner=0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659 # the public key of every nitro development chain
# The first accounts of the test mnemonic.
clean=0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80
operator=0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d
application=0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a
address() { cast wallet address --private-key "$1"; }
as() { PRIVATE_KEY=$1 "$muster" "${@:2}"; }
# Runs a command of the deployer.
dev() { PRIVATE_KEY=$owner DEPLOYMENTS=$work/deployments MIN_PRICE=1 "$deployer" "$@"; }
rpc() { cast rpc "$@" >/dev/null; }
later() { rpc evm_increaseTime "$1" && rpc evm_mine; }
network() { as "$owner" network --json | field ".$1"; }
same() { [ "$2" = "$3" ] || die "$1 is $2, not $3"; }

dev deploy >"$work/deploy.log" 2>&1 || die "$(cat "$work/deploy.log")"
MUSTER=$(field .address <"$work"/deployments/*.json)
export MUSTER

echo "a bad program: proposed, recognised, withdrawn"
wrong=$(field .programs.reputation.address <"$work"/deployments/*.json)
says 'ProgramsProposed' as "$owner" admin propose-programs "$wrong" withdraw
says 'ParameterProposed' as "$owner" admin set slashTimes 255
says "withdraw(address) -> $(cast to-check-sum-address "$wrong"), by anybody from" as "$operator" admin proposals
says 'slashTimes -> 255, by anybody from' as "$operator" admin proposals
says 'kind="programs"' as "$operator" exporter --once
refused TooEarly as "$operator" admin accept-programs "$wrong" withdraw
says 'effective: 0' as "$owner" admin withdraw-programs "$wrong" withdraw
later 604801
refused NotProposed as "$operator" admin accept-programs "$wrong" withdraw
says 'ParameterProposed' as "$owner" admin withdraw-parameter slashTimes
says 'slashTimes -> 20' as "$operator" admin proposals

echo "a rehearsal: a parameter on a copy, where the owner is impersonated; the original stays as it was"
start copy --fork-url "$RPC_URL"
from=$(network owner)
tried() { ETH_RPC_URL=$url cast "$@" >/dev/null; }
shown() { as "$owner" --rpc-url "$1" admin parameters | grep -E '^ *29 '; }
before=$(shown "$RPC_URL")
tried rpc anvil_impersonateAccount "$from"
tried rpc anvil_setBalance "$from" 0xde0b6b3a7640000
tried send --unlocked --from "$from" "$MUSTER" 'proposeParameter(uint8,uint256)' 29 30
tried rpc evm_increaseTime 604801
tried send --unlocked --from "$from" "$MUSTER" 'acceptParameter(uint8)' 29
grep -qE '^ *29 slashTimes +30 ' <<<"$(shown "$url")" || die "the copy has $(shown "$url")"
same "the original's parameter" "$(shown "$RPC_URL")" "$before"

echo "an owner's key stolen: who accepts first"
thief=$application
as "$owner" admin transfer-ownership "$(address "$thief")" >/dev/null
as "$owner" admin transfer-ownership "$(address "$clean")" >/dev/null
refused NotPendingOwner as "$thief" admin accept-ownership
says 'OwnershipTransferred' as "$clean" admin accept-ownership
refused NotOwner as "$owner" admin stop
says 'PausedChanged { on: true }' as "$clean" admin stop
same "the network's pause" "$(network paused)" true
says 'PausedChanged { on: false }' as "$clean" admin start

echo "a queue held: a node that nobody answers for"
says 'NodeJoined' as "$operator" node join --gpu CPU --plain --vram 8
echo one >"$work/one" && echo two >"$work/two"
as "$application" task create --kind gpt --input "$work/one" --input "$work/two" >/dev/null
rpc evm_mine
same "the draws that are due" "$(network pending)" 2
says 'due: drawn' as "$clean" --dry-run keeper --once
says 'drawn' as "$clean" keeper --once
same "the draws that are due" "$(network pending)" 0
same "the queue" "$(network queued)" 1
later 7200
says 'expired' as "$clean" keeper --once
same "the queue" "$(network queued)" 0
later 7200
says 'expired' as "$clean" keeper --once
as "$clean" admin set minPrice 1000000 >/dev/null
refused FeeTooLow as "$application" task create --kind gpt --input "$work/one" --fee 60wei

echo "an operator leaves: the stake comes after a day"
says 'NodeQuit' as "$operator" node quit
refused NothingToWithdraw as "$operator" node withdraw
later 86401
says 'stake: 400000000000000000000' as "$operator" node withdraw --to "$(address "$clean")"

echo "programs expired: activated again by anybody"
later 34560000
refused ProgramFailed as "$clean" network
refused 'it has expired' as "$clean" keepalive
rm -r "$work/deployments"
refused 'need somebody' dev keepalive --dry-run --router "$MUSTER"
says 'activated again' dev keepalive --router "$MUSTER"
same "the nodes" "$(network nodesJoined)" 0

echo "runbook: all as the page says"
