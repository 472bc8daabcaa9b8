#!/usr/bin/env bash
# Seven incidents of docs/runbook.md, played by its commands on development nodes of its own, whose time it moves. They are a bad program
# proposed and withdrawn, an owner's key stolen, the reserve empty, a GPU group unlisted, a queue held, an operator who leaves, and
# programs expired. Also the rehearsal of a parameter on a copy of such a node. Needs muster, muster-dev and muster-devnode built and the
# programs (script/build); cast is the one that script/setup or run.sh installed, or the path's. runbook-agents.sh plays those in which
# agents run.
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

# Nodes that are played by the contract's calls, as their agents make them: the n-th by the n-th of these keys.
key() { printf '0x%064x' $((0x5000 + $1)); }
echo one >"$work/one" && echo two >"$work/two"
# Their answer, and a wrong one.
value=0x$(printf '%064d' 7) other=0x$(printf '%064d' 8) salt=0x$(printf '%064d' 9)
# enrol NAME NUMBER FLAG ...: for a subshell, a Muster on the node that was started last, with so many nodes of a listed GPU group, whose
# number is then in $group.
enrol() {
  local place=$1 n
  export RPC_URL=$url ETH_RPC_URL=$url
  PRIVATE_KEY=$owner DEPLOYMENTS=$work/$place MIN_PRICE=1 "$deployer" deploy >"$work/$place-deploy.log" 2>&1 || die "$(cat "$work/$place-deploy.log")"
  MUSTER=$(field .address <"$work/$place"/*.json)
  export MUSTER
  for ((n = 1; n <= $2; n++)); do
    rpc anvil_setBalance "$(address "$(key "$n")")" 0x3635c9adc5dea00000
    says 'NodeJoined' as "$(key "$n")" node join --gpu CPU --plain --vram 8 "${@:3}"
  done
  group=$(($(cast call "$MUSTER" 'gpuGroup(string,uint16)' CPU 8)))
  says 'listed: true' as "$owner" admin list-gpu "$group"
}
# In thousandths of an ether.
milli() { node -p "String(Math.round(Number('$1') / 1e15))"; }
# create FLAG ...: a task of text, whose number is then in $id.
create() {
  id=$(as "$application" task create --kind gpt --input "$work/one" "$@" --json | field ".events.find(e => e.event === 'TaskCreated').values.id")
}
# tell KEY SIGNATURE ARGUMENT ...: a call of the contract. It fails where that is refused.
tell() { cast send --private-key "$1" "$MUSTER" "${@:2}" >/dev/null 2>&1; }
# commit NODE [ANSWER]
commit() {
  local opening
  opening=$(cast abi-encode 'f(uint64,uint32,uint8,bytes32,bytes32)' "$id" "$1" 0 "${2:-$value}" "$salt")
  tell "$(key "$1")" 'commit(uint64,bytes32)' "$id" "$(cast keccak "$opening")" || die "node $1 cannot commit to task $id"
}
reveal=('reveal(uint64,uint32,uint32,uint8,bytes32,bytes32)')
history() { as "$clean" task show "$id" --json; }
# The task's events of a name, by an expression over their values; from the history in $seen, if that is set.
told() { field ".events.filter(e => e.event === '$1').map(e => e.values).map(v => $2).join(' ')" <<<"${seen:-$(history)}"; }

echo "the reserve empty: checks are paid short, what is not checked fills it, and then they are paid in full"
start reserve
(
  enrol reserve 9
  # So that no deadline passes on a slow machine, whose clock goes on while times are tried.
  says 'value: 3600' as "$owner" admin set grace 3600
  # answer checked|unchecked: a task of 6 ether and its node's answer. The block's time is tried until the lot falls as it is wanted.
  tries=0
  answer() {
    local node mark lot
    create --policy sampled --gpu "$group" --fee 6ether
    rpc evm_mine
    as "$clean" keeper --once >/dev/null
    node=$(history | field .node)
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
    [ -n "$place" ] || die "no group validates task $id: $(history)"
    for n in $members; do [ "$n" = "$node" ] || commit "$n"; done
    for n in $members; do tell "$application" "${reveal[@]}" "$id" "$place" "$n" 0 "$value" "$salt" || die "node $n does not reveal"; done
  }
  # The pay of the last task's three nodes, and the rest of the reserve, in thousandths of an ether.
  paid() { milli "$(history | field ".events.filter(e => e.event === 'MemberJudged').reduce((sum, e) => sum + BigInt(e.values.paid), 0n).toString()")"; }
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

echo "a GPU group taken off the list, and put on it anew, while answers are checked: who is slashed, who is not, and that nobody is held"
start group
(
  enrol group 3 --stake 500ether
  # Three nodes are enough to be scored and slashed, and each sampled task is checked.
  as "$owner" admin set scorePool 3 >/dev/null
  later 604801
  says 'scorePool' as "$clean" admin accept scorePool
  says 'value: 10000' as "$owner" admin set sampleBps 10000
  # So that no deadline passes on a slow machine.
  says 'value: 3600' as "$owner" admin set grace 3600

  turn() {
    rpc anvil_mine 0x4
    as "$clean" keeper --once >/dev/null
  }
  # act: the nodes of task $id commit if they can, the last of its group to another answer, and reveal once all have committed. Fails if there
  # was nothing to do. The task has ended if $settled is not empty then.
  act() {
    local seen committed members node answer did=1
    seen=$(history)
    committed=$(told AnswerCommitted v.node) members=$(told GroupFormed "v.nodes.join(' ')") settled=$(told GroupSettled v.outcome)
    for node in $(told TaskStarted v.node) $(told MemberStarted v.node); do
      [[ " $committed " != *" $node "* ]] || continue
      answer=$value
      [ "$node" != "${members##* }" ] || answer=$other
      commit "$node" "$answer"
      committed+=" $node" did=0
    done
    [ "$(wc -w <<<"$committed")" = 3 ] && [ -z "$settled" ] || return $did
    for node in $members; do
      answer=$value
      [ "$node" != "${members##* }" ] || answer=$other
      tell "$application" "${reveal[@]}" "$id" "$(told GroupFormed v.group)" "$node" 0 "$answer" "$salt" || die "node $node does not reveal"
    done
  }
  # play TASK ...: to their ends.
  play() {
    local left idle settled end=$((SECONDS + 900))
    while [ $# -gt 0 ]; do
      [ $SECONDS -lt $end ] || die "tasks $* do not end: $(as "$clean" network)"
      turn
      left=() idle=yes
      for id in "$@"; do
        ! act || idle=
        [ -n "$settled" ] || left+=("$id")
      done
      set -- "${left[@]}"
      # Nodes wait for each other up to a minute.
      [ -z "$idle" ] || later 61
    done
  }
  # judged TASK SCORED PAID SLASHED: two are right and the last is wrong, by their operators' books; in thousandths of an ether.
  judged() {
    local n rows= paid slashed
    id=$1
    same "whether task $id is scored" "$(told GroupFormed v.scored)" "$2"
    for n in $(told GroupFormed "v.nodes.join(' ')"); do
      rows+="$(as "$(key "$n")" node earnings --days 30 --json | field ".tasks.filter(t => t.task === '$id').map(t => [t.outcome, t.paid, t.slashed].join(' ')).join()") "
    done
    read -ra rows <<<"$rows"
    same "how the nodes of task $id were judged" "${rows[0]} ${rows[3]} ${rows[6]}" 'right right wrong'
    same "what the right ones of task $id were paid" "$(milli $((rows[1] + rows[4])))" "$3"
    same "the slashes of the right ones, and the pay of the wrong one" "${rows[2]} ${rows[5]} ${rows[7]}" '0 0 0'
    same "the slash for task $id" "$(milli "${rows[8]}")" "$4"
  }
  # All nodes are idle and hold no open answers; so often they were scored.
  rested() {
    local n scores=0
    for n in 1 2 3; do
      same "node $n" "$(as "$clean" node status "$n" --json | field ".status")" Available
      same "the open commitments of node $n" "$(as "$clean" node status "$n" --json | field ".openCommitments")" 0
      scores=$((scores + $(as "$clean" node status "$n" --json | field ".scores")))
    done
    same "the scores" "$scores" "$1"
  }

  # A replicated task is formed, and two of its nodes commit.
  create --policy replicated --gpu "$group" --fee 3ether
  formed=$id
  turn
  read -ra members <<<"$(told GroupFormed "v.nodes.join(' ')")"
  commit "${members[0]}"
  commit "${members[1]}"
  # Both run a sampled task then, and one of them commits.
  create --policy sampled --gpu "$group" --fee 1ether
  committed=$id
  create --policy sampled --gpu "$group" --fee 1ether
  uncommitted=$id
  turn
  [ -n "$(told TaskStarted v.node)" ] || die "task $id does not run: $(history)"
  id=$committed
  commit "$(told TaskStarted v.node)"
  # Nobody is idle for more: a task of this group, and two of any group that is listed.
  create --policy replicated --gpu "$group" --fee 3ether
  unformed=$id
  create --policy replicated --fee 3ether
  anywhere=$id
  create --policy replicated --fee 3ether
  anew=$id
  same "the groups" "$(network groups)" 1
  same "the queue" "$(network queued)" 3

  says "GpuGroupListed { group: $group, listed: false }" as "$owner" admin list-gpu "$group" --remove
  refused "GpuNotListed { group: $group }" as "$application" --dry-run task create --kind gpt --policy sampled --gpu "$group" --input "$work/one" --fee 1ether
  play "$formed" "$committed" "$uncommitted" "$unformed"
  judged "$formed" true 3000 20000
  judged "$committed" true 980 19600
  judged "$uncommitted" false 980 0
  judged "$unformed" false 3000 0
  rested 6
  same "what was burnt" "$(milli "$(network burnt)")" 39600

  # The other two wait for a listed group, whoever is idle.
  refused "$(cast sig 'NothingToPoke(uint32)')" cast call "$MUSTER" 'poke(uint32)' 1
  turn
  same "the queue" "$(network queued)" 2
  says 'TaskAborted' as "$application" task cancel "$anywhere"
  says 'listed: true' as "$owner" admin list-gpu "$group"
  turn
  same "the queue" "$(network queued)" 1
  tell "$application" 'poke(uint32)' 1 || die "node 1 finds no work"
  play "$anew"
  judged "$anew" true 3000 20000
  rested 9

  # All leave, and what stays is burnt or the reserve's.
  for n in 1 2 3; do says 'NodeQuit' as "$(key "$n")" node quit; done
  later 86401
  for n in 1 2 3; do says 'Withdrawn' as "$(key "$n")" node withdraw; done
  for one in "$clean" "$application"; do says 'Withdrawn' as "$one" node withdraw; done
  says 'TreasurySwept' as "$owner" admin sweep
  same "what the contract keeps" "$(cast balance "$MUSTER")" "$(node -p "String($(network burnt)n + $(network reserve)n)")"
  same "what was burnt" "$(milli "$(network burnt)")" 59600
)

echo "a queue held: a node that nobody answers for"
says 'NodeJoined' as "$operator" node join --gpu CPU --plain --vram 8
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
