#!/usr/bin/env bash
# Six incidents of docs/runbook.md, played by its commands on development nodes of its own, whose time it moves. They are a bad program
# proposed and withdrawn, an owner's key stolen, the reserve empty, a queue held, an operator who leaves, and programs expired. Also the
# rehearsal of a parameter on a copy of such a node. Needs muster, muster-dev and muster-devnode built and the programs (script/build); cast
# is the one that script/setup or run.sh installed, or the path's. runbook-agents.sh plays those in which agents run.
set -euo pipefail
cd "$(dirname "$0")/../.."
source test/clients/rehearsal.sh

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

echo "the reserve empty: checks are paid short, what is not checked fills it, and then they are paid in full"
start reserve
(
  export RPC_URL=$url ETH_RPC_URL=$url
  dev() { PRIVATE_KEY=$owner DEPLOYMENTS=$work/reserve MIN_PRICE=1 "$deployer" "$@"; }
  dev deploy >"$work/reserve-deploy.log" 2>&1 || die "$(cat "$work/reserve-deploy.log")"
  MUSTER=$(field .address <"$work"/reserve/*.json)
  export MUSTER
  key() { printf '0x%064x' $((0x5000 + $1)); }
  for n in {1..9}; do
    rpc anvil_setBalance "$(address "$(key "$n")")" 0x3635c9adc5dea00000
    says 'NodeJoined' as "$(key "$n")" node join --gpu CPU --plain --vram 8
  done
  group=$(($(cast call "$MUSTER" 'gpuGroup(string,uint16)' CPU 8)))
  says 'listed: true' as "$owner" admin list-gpu "$group"
  echo one >"$work/one"
  value=0x$(printf '%064d' 7) salt=0x$(printf '%064d' 9)
  # tell KEY SIGNATURE ARGUMENT ...: a call of the contract. It fails where that is refused.
  tell() { cast send --private-key "$1" "$MUSTER" "${@:2}" >/dev/null 2>&1; }
  commit() {
    local opening
    opening=$(cast abi-encode 'f(uint64,uint32,uint8,bytes32,bytes32)' "$id" "$1" 0 "$value" "$salt")
    tell "$(key "$1")" 'commit(uint64,bytes32)' "$id" "$(cast keccak "$opening")" || die "node $1 cannot commit to task $id"
  }
  reveal=('reveal(uint64,uint32,uint32,uint8,bytes32,bytes32)')
  shown() { as "$clean" task show "$id" --json; }
  # The task's events of a name, by an expression over their values.
  told() { shown | field ".events.filter(e => e.event === '$1').map(e => e.values).map(v => $2).join(' ')"; }
  # answer checked|unchecked: a task of 6 ether and its node's answer. The block's time is tried until the lot falls as it is wanted.
  tries=0
  answer() {
    local node mark lot
    id=$(as "$application" task create --kind gpt --policy sampled --gpu "$group" --input "$work/one" --fee 6ether --json |
      field ".events.find(e => e.event === 'TaskCreated').values.id")
    rpc evm_mine
    as "$clean" keeper --once >/dev/null
    node=$(shown | field .node)
    while :; do
      mark=$(cast rpc evm_snapshot | tr -d '"')
      rpc evm_increaseTime $((++tries % 50 + 1))
      commit "$node"
      rpc anvil_mine 0x4
      lot=checked
      ! cast call "$MUSTER" "${reveal[@]}" "$id" 0 "$node" 0 "$value" "$salt" >/dev/null 2>&1 || lot=unchecked
      [ "$lot" != "$1" ] || break
      [ "$tries" -lt 1000 ] || die "the lot is always $lot"
      rpc evm_revert "$mark"
    done
    if [ "$1" = unchecked ]; then
      tell "$application" "${reveal[@]}" "$id" 0 "$node" 0 "$value" "$salt" || die "task $id is not revealed"
      same "what node $node was paid for task $id" "$(told TaskSucceeded v.paid)" 5000000000000000000
      return
    fi
    as "$clean" keeper --once >/dev/null
    rpc anvil_mine 0x4
    as "$clean" keeper --once >/dev/null
    local place members n
    place=$(told GroupFormed v.group) members=$(told GroupFormed "v.nodes.join(' ')")
    [ -n "$place" ] || die "no group validates task $id: $(shown)"
    for n in $members; do [ "$n" = "$node" ] || commit "$n"; done
    for n in $members; do tell "$application" "${reveal[@]}" "$id" "$place" "$n" 0 "$value" "$salt" || die "node $n does not reveal"; done
  }
  # The pay of the last task's three nodes, and the rest of the reserve, in thousandths of an ether.
  milli() { node -p "String(Math.round(Number('$1') / 1e15))"; }
  paid() { milli "$(shown | field ".events.filter(e => e.event === 'MemberJudged').reduce((sum, e) => sum + BigInt(e.values.paid), 0n).toString()")"; }
  left() { milli "$(network reserve)"; }

  for _ in 1 2 3; do answer unchecked; done
  same "the reserve after three tasks that were not checked" "$(left)" 3000
  answer checked
  same "what the three were paid while it lasted" "$(paid)" 8880
  same "the reserve after a check" "$(left)" 0
  # The owner sees it, and the alert is on this.
  reserve=$(as "$owner" exporter --once | sed -n 's/^muster_reserve_wei //p')
  node -e "process.exit($reserve <= 1 ? 0 : 1)" || die "the exporter says $reserve"
  grep -q 'expr: muster_reserve_wei <= 1$' clients/cli/deploy/alerts.yaml || die "the alert is on something else"
  says 'reserve    0' as "$owner" network
  answer checked
  same "what the three were paid out of an empty reserve" "$(paid)" 5880
  # Waiting fills it: nine tasks that are not checked pay for one that is.
  for _ in {1..9}; do answer unchecked; done
  same "the reserve after nine tasks that were not checked" "$(left)" 9000
  answer checked
  same "what the three were paid in full" "$(paid)" 14700
  same "the reserve after it" "$(left)" 180
  # Or each task pays for its own check.
  says 'value: 10000' as "$owner" admin set sampleBps 10000
  answer checked
  same "what the three were paid where all are checked" "$(paid)" 5880
  same "the reserve" "$(left)" 180
)

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

echo "a bad program accepted: recognised, and repaired by the right deployment"
# The treasury is still the one that the deployer took.
repair() { TREASURY=$(address "$owner") PRIVATE_KEY=$clean DEPLOYMENTS=$work/deployments MIN_PRICE=1 "$deployer" deploy; }
says 'ProgramsProposed' as "$clean" admin propose-programs "$wrong" withdraw
later 604801
says '1 functions lead to' as "$operator" admin accept-programs "$wrong" withdraw
refused 'UnknownFunction { selector: 0x51cff8d9 }' as "$operator" node withdraw
says 'PausedChanged { on: true }' as "$clean" admin stop
says '1 functions will lead to' repair
later 604801
says '1 functions now lead to' repair
says 'PausedChanged { on: false }' as "$clean" admin start
refused NothingToWithdraw as "$operator" node withdraw

echo "programs expired: activated again by anybody"
later 34560000
refused ProgramFailed as "$clean" network
refused 'it has expired' as "$clean" keepalive
rm -r "$work/deployments"
refused 'need somebody' dev keepalive --dry-run --router "$MUSTER"
says 'activated again' dev keepalive --router "$MUSTER"
same "the nodes" "$(network nodesJoined)" 0

echo "runbook: all as the page says"
