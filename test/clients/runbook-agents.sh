#!/usr/bin/env bash
# The incidents of docs/runbook.md that befall operators, played by its commands on a development node of its own and on agents that run
# test/fleet/reverse.py. They are endpoints that lie or lag, a GPU group whose nodes differ, a node paused, a worker's and an operator's key
# stolen, a corrupt journal, a full disk, and gas keys empty. Needs what runbook.sh does, and muster-agent of a debug build (MUSTER_AGENT
# names another): only that is killed between two steps, and believes a file about the room on the disk. Others use that disk, too.
set -euo pipefail
cd "$(dirname "$0")/../.."
source test/clients/rehearsal.sh
program=${MUSTER_AGENT:-$bin/muster-agent}
[ -x "$program" ] || die "$program is not built"

# await WHAT COMMAND ...: until the command succeeds.
await() {
  local end=$((SECONDS + 300))
  until "${@:2}" 2>/dev/null; do
    [ $SECONDS -lt $end ] || die "waited in vain: $1; $(tail -n 5 "$work"/gpu*/log 2>/dev/null)"
    sleep 0.1
  done
}

# Of an agent, by its name: the key that it works with, the port of its metrics, and its process.
declare -A key=() port=() process=()
urls=
# configure NAME LINE ...: writes the configuration, with lines for its node. It asks the endpoints of $urls, if there are any.
configure() {
  local place=$work/$1
  mkdir -p "$place/golden" "$work/store"
  [ -e "$place/behaviour" ] || echo answers >"$place/behaviour"
  # How full the machine's disk is decides nothing.
  [ -e "$place/free" ] || echo 100000000000 >"$place/free"
  echo '{"kind":"gpt","input":{"text":"golden"}}' >"$place/golden/one.json"
  : "${port[$1]:=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')}"
  {
    printf '%s\n' "home = \"$place/state\"" "rpc = [\"$(sed 's/,/", "/g' <<<"${urls:-$RPC_URL}")\"]" "muster = \"$MUSTER\"" 'chain = 412346' \
      "listen = \"127.0.0.1:${port[$1]}\"" 'look_every = 1' 'drive_within = 1' \
      '[store]' "get = [\"$work/store\"]" "put = [\"$work/store\"]" \
      '[[node]]' "name = \"$1\"" 'key_env = "GPU_KEY"' 'gpu_name = "CPU"' 'vram = 1' "${@:2}" \
      '[node.executor]' "command = [\"python3\", \"$PWD/test/fleet/reverse.py\", \"$place/behaviour\"]" \
      "golden = \"$place/golden\"" 'ready_within = 120'
  } >"$place/agent.toml"
}
agent() { GPU_KEY=${key[$1]} MUSTER_AGENT_FREE=$work/$1/free "$program" "$2" --config "$work/$1/agent.toml"; }
# wrong NAME TEXT ...: the doctor finds all that, and fails. Everything that it says is then in $said.
wrong() {
  local text
  ! said=$(agent "$1" doctor 2>&1) || die "the doctor finds nothing: $said"
  for text in "${@:2}"; do [[ $said == *"$text"* ]] || die "the doctor does not say \"$text\": $said"; done
}
# begin NAME [STEP]: starts the agent, which kills itself there.
begin() {
  local place=$work/$1
  rm -f "$place/process" "$place/ended"
  (
    GPU_KEY=${key[$1]} MUSTER_AGENT_FREE=$place/free MUSTER_AGENT_DIES_AT=${2:-} "$program" run --config "$place/agent.toml" &
    echo $! >"$place/process"
    code=0
    wait $! || code=$?
    echo $code >"$place/ended"
  ) >>"$place/log" 2>&1 &
  await "$1 starts" test -s "$place/process"
  process[$1]=$(<"$place/process")
  running+=("${process[$1]}")
}
# ended NAME: waits for its end; the exit status is then in $status.
ended() {
  await "$1 ends" test -s "$work/$1/ended"
  status=$(<"$work/$1/ended")
}
# The log of an agent has so many such lines; how often it has one.
logged() { [ "$(times "$1" "$2")" -ge "${3:-1}" ]; }
times() { grep -cF -- "$2" "$work/$1/log" || true; }
metrics() { curl -sf "127.0.0.1:${port[$1]}/metrics"; }
metric() { metrics "$1" | sed -n "s/^muster_agent_$2 //p"; }
shows() { metrics "$1" | grep -F -- "$2" >/dev/null; }
# The node of a key, and a field of it.
of() { as "$1" node status --json | field ".$2"; }
is() { [ "$(of "$1" status)" = "$2" ]; }
# Waits until the agent has looked at the chain twice more: it has then acted on all that was so before.
looks() {
  local before
  for _ in 1 2; do
    before=$(looked "$1")
    await "$1 looks" looked_since "$1" "$before"
  done
}
looked() { metric "$1" "looked_timestamp_seconds{node=\"$1\"}"; }
looked_since() {
  local now
  now=$(looked "$1") && [ -n "$now" ] && [ "$now" != "$2" ]
}
# An account with ether, by a number.
account() {
  local one
  one=$(printf '0x%064x' $((0x6000 + $1)))
  rpc anvil_setBalance "$(address "$one")" 0x3635c9adc5dea00000
  echo "$one"
}
# task FEE FLAG ...: a task of these flags, whose number is then in $id.
task() { id=$(as "$application" task create --fee "$1" "${@:2}" --json | field ".events.find(e => e.event === 'TaskCreated').values.id"); }
succeeded() { [ "$(as "$application" task show "$1" --json | field ".events.some(e => e.event === 'TaskSucceeded')")" = true ]; }
export MUSTER_STORES=$work/store

# Three nodes are enough to be scored and slashed.
as "$owner" admin set scorePool 3 >/dev/null
as "$owner" admin set sampleBps 0 >/dev/null
later 604801
says 'scorePool' as "$clean" admin accept scorePool

echo "endpoints that lie or lag: what is believed of two, and of three"
node test/clients/liars.mjs "$RPC_URL" >"$work/liars" 2>&1 &
running+=($!)
await "the endpoints listen" grep -q '^all listen$' "$work/liars"
at() { sed -n "s|^$1 \(http.*\)|\1|p" "$work/liars"; }
honest=$(at honest)
# So that 40 blocks are more than 15 seconds.
rpc anvil_mine 0x32 0x1
# stands PATTERN URLS FLAG ...: how `muster network` finds the endpoints, in their order.
stands() {
  local out
  out=$(ETH_RPC_URL=$2 "$muster" "${@:3}" network --json 2>&1) || die "$2: $out"
  out=$(field ".rpc.map((e) => e.fault ?? 'asked').join(', ')" <<<"$out")
  [[ $out == $1 ]] || die "$2 are: $out; not: $1"
}
stands '40 blocks behind the others, asked' "$(at late),$honest"
stands 'asked, 40 blocks behind the others, asked' "$honest,$(at late),$RPC_URL"
stands 'asked, contradicts the others about block *' "$honest,$(at blocks)"
stands 'asked, contradicts the others about block *' "$(at blocks),$honest"
stands 'contradicts the others about block *, asked, asked' "$(at blocks),$honest,$RPC_URL"
stands 'asked, is of chain 412346' "$(at chain),$honest"
stands 'is of chain 1, asked' "$(at chain),$honest" --chain 412346
stands 'is of chain 1, asked, asked' "$(at chain),$honest,$RPC_URL"
ETH_RPC_URL=$(at state),$honest refused "the nodes contradict each other about the contract's state" as "$clean" network
stands "contradicts the others about the contract's state at block *, asked, asked" "$(at state),$honest,$RPC_URL"
as "$owner" admin stop >/dev/null
same "the older answer" "$(ETH_RPC_URL=$(at older) network paused)" false
same "what is believed of two" "$(ETH_RPC_URL=$(at older),$honest network paused)" true
same "what is believed of three" "$(ETH_RPC_URL=$(at older),$honest,$RPC_URL network paused)" true
as "$owner" admin start >/dev/null
ETH_RPC_URL=$(at events),$honest "$muster" watch --from 1 >"$work/watched" &
running+=($!)
lied() { [ "$(grep -c '^events eth_getLogs' "$work/liars")" -ge 4 ]; }
await "both were asked for events, again and again" lied
[ ! -s "$work/watched" ] || die "one of two that leaves events out is believed: $(cat "$work/watched")"
kill "${running[-1]}"
ETH_RPC_URL=$(at events),$honest,$RPC_URL "$muster" watch --from 1 >"$work/watched" &
running+=($!)
await "events come" grep -q 'PausedChanged { on: true }' "$work/watched"
kill "${running[-1]}"
ETH_RPC_URL=$honest,$(at blocks),$RPC_URL says "muster_endpoint_contradicts{endpoint=\"$(at blocks)\"} 1.0" "$muster" exporter --once
# An agent, too, before it joins and while it runs. Without that endpoint it goes on.
key[gpu1]=$(account 1)
urls=$honest,$(at slow),$RPC_URL configure gpu1 'stake = "500 ether"'
wrong gpu1 "WRONG  rpc: $(at slow): contradicts the others about block" 'mend it, or take it out'
urls=$honest,$(at blocks),$RPC_URL configure gpu1 'stake = "500 ether"'
begin gpu1
await "gpu1 is fit" logged gpu1 'the self-test passed'
shows gpu1 "muster_agent_endpoint_up{endpoint=\"$(at blocks)\"} 0.0" || die "$(metrics gpu1)"
kill "${process[gpu1]}"
ended gpu1
same "how gpu1 ended" "$status" 0
is "${key[gpu1]}" Paused || die "gpu1 has ended and is not paused"
configure gpu1 'stake = "500 ether"'
rpc evm_setIntervalMining 500
begin gpu1

echo "three nodes of a group: one by its own key, one that the operator joined for a worker's key, one whose answers differ"
key[gpu2]=$(account 2)
configure gpu2 'stake = "500 ether"'
echo differs on wide >"$work/gpu2/behaviour"
begin gpu2
third=$(account 3)
key[gpu3]=$(account 4)
configure gpu3 "operator = \"$(address "$third")\""
wrong gpu3 'never joined one'
name=$(sed -n "s/^note   to join: muster node join --gpu '\(.*\)' --vram 1.*/\1/p" <<<"$said")
[ -n "$name" ] || die "the doctor does not say how to join: $said"
says 'NodeJoined' as "$third" node join --gpu "$name" --vram 1 --stake 500ether
says 'can work once it accepted' as "$third" node worker set "$(address "${key[gpu3]}")"
begin gpu3
for one in gpu1 gpu2 gpu3; do
  await "$one is fit" logged $one 'the self-test passed'
  await "$one may be drawn" is "${key[$one]}" Available
done
group=$(of "$third" gpuGroup)
same "the group of gpu2" "$(of "${key[gpu2]}" gpuGroup)" "$group"
says 'listed: true' as "$owner" admin list-gpu "$group"

echo "a GPU group whose nodes differ: slashed, taken off the list, compared, named anew"
printf 'wide' >"$work/in"
printf 'another' >"$work/in2"
task 3ether --kind gpt --policy replicated --input "$work/in"
second=$(of "${key[gpu2]}" node)
await "gpu2 is slashed" logged gpu2 "events: node $second was slashed for task $id: 20000000000000000000 wei of its stake"
judged=$(grep -F "events: node $second was judged wrong in task $id: it answered 0x" "$work/gpu2/log") || die "$(cat "$work/gpu2/log")"
kept=$(sed 's/.*its result is kept in \([^;]*\);.*/\1/' <<<"$judged")
same "the result that is kept" "$(cat "$kept")" 'ediw!'
grep -qF "the others 0x$(printf 'ediw' | sha256sum | cut -d' ' -f1)" <<<"$judged" || die "$judged"
await "gpu2 is paused" is "${key[gpu2]}" Paused
# The golden task is another input.
says 'as two processes of the executor have it' agent gpu2 doctor
says "GpuGroupListed { group: $group, listed: false }" as "$owner" admin list-gpu "$group" --remove
refused 'NobodyCanRun { vram: 0, gpu: 0 }' as "$application" --dry-run task create --kind gpt --policy replicated --input "$work/in2" --fee 3ether
task 1ether --kind gpt --input "$work/in2"
await "a single task goes on" succeeded "$id"

echo "a node paused: why, by the chain, the metrics and the journal"
says 'judged: it was judged to have answered wrong' as "${key[gpu2]}" node why
await "gpu2 says why" shows gpu2 'muster_agent_paused_by_agent{node="gpu2",why="judged"} 1.0'
says 'its agent says of gpu2' as "${key[gpu2]}" node why --metrics "127.0.0.1:${port[gpu2]}"
says "its result is kept in $kept" as "${key[gpu2]}" node why --state "$work/gpu2/state"
says 'NodeResumed' as "${key[gpu2]}" node resume
await "gpu2 is resumed" is "${key[gpu2]}" Available

echo "a worker's key stolen: removed, and of no more use"
thief=${key[gpu3]}
number=$(of "$third" node)
out=$(as "$third" node worker remove) || die "$out"
[[ $out == *'nobody else works for it'*"NodePaused { node: $number }"* ]] || die "$out"
refused NotAnOperator as "$thief" node resume

echo "names after that input has become a golden task"
names=()
for one in gpu1 gpu2; do
  echo '{"kind":"gpt","input":{"text":"wide"}}' >"$work/$one/golden/two.json"
  wrong $one "is registered as \"$name\" with 1 GiB, and is \"CPU+"
  names+=("$(sed -n 's/^ok     golden tasks: the name is "\(.*\)", as .*/\1/p' <<<"$said")")
done
[ "${names[0]}" != "${names[1]}" ] && [ "${names[0]}" != "$name" ] || die "the names are $name, then ${names[*]}"
# Here the first stays in the old group, without the task.
rm "$work/gpu1/golden/two.json"
kill "${process[gpu2]}"
ended gpu2
same "how gpu2 ended" "$status" 0
says 'NodeQuit' as "${key[gpu2]}" node quit

echo "a corrupt journal: named, set aside, and the open answer revealed by key and seed"
kill -KILL "${process[gpu1]}"
ended gpu1
begin gpu1 committed
task 1ether --kind images --policy sampled --input "$work/in2"
await "gpu1 commits to an answer" logged gpu1 'dies at committed'
ended gpu1
rm -f "$work/gpu1/state/journal.sqlite-wal" "$work/gpu1/state/journal.sqlite-shm"
printf 'a disk that fails%.0s' {1..3000} >"$work/gpu1/state/journal.sqlite"
wrong gpu1 "WRONG  journal: journal.sqlite in $work/gpu1/state is damaged: file is not a database"
begin gpu1
await "the answer is revealed" succeeded "$id"
logged gpu1 "and lies in $work/gpu1/state/journal.sqlite.damaged-" || die "$(cat "$work/gpu1/log")"
same "how often task $id was run" "$(grep -cx "$id" "$work/gpu1/runs")" 1
says '1 right in groups' as "${key[gpu1]}" node earnings

# In the meantime the node that was slashed joins again, under its new name. It is not out: it kept more than 15/16 of the least stake.
# Its old stake waits, so the new one is other money.
rpc anvil_setBalance "$(address "${key[gpu2]}")" 0x3635c9adc5dea00000
says 'NodeJoined' as "${key[gpu2]}" node join --gpu "${names[1]}" --vram 1 --stake 500ether
begin gpu2

echo "disk full: paused, and resumed with a quarter more than least_free"
echo 4096 >"$work/gpu1/free"
await "gpu1 is paused" is "${key[gpu1]}" Paused
wrong gpu1 'WRONG  disk: 0 MiB free, where 1024 MiB must be'
shows gpu1 'muster_agent_paused_by_agent{node="gpu1",why="disk"} 1.0' || die "$(metrics gpu1)"
says 'disk: its disk is nearly full' as "${key[gpu1]}" node why
echo 1200000000 >"$work/gpu1/free"
looks gpu1
is "${key[gpu1]}" Paused || die "gpu1 was resumed with too little room"
# MusterDiskFills fires from here on.
same "the room that is shown" "$(metric gpu1 'disk_free_bytes{node="gpu1"}')" 1200000000.0
echo 1342177280 >"$work/gpu1/free"
await "gpu1 is resumed" is "${key[gpu1]}" Available

echo "gas keys empty: paused, filled, resumed"
await "gpu2 may be drawn" is "${key[gpu2]}" Available
says 'listed: true' as "$owner" admin list-gpu "$(of "${key[gpu2]}" gpuGroup)"
resumed=()
for one in gpu1 gpu2; do rpc anvil_setBalance "$(address "${key[$one]}")" 0x1c6bf52634000; done
for one in gpu1 gpu2; do
  await "$one is paused" is "${key[$one]}" Paused
  wrong $one 'ether, where 0.001 ether is the least' "send ether to $(address "${key[$one]}")"
  resumed+=("$(times $one "$one: resumed")")
done
# The first by what it has earned, the second by another's ether.
says 'paid out to' as "${key[gpu1]}" node withdraw
cast send --private-key "$application" "$(address "${key[gpu2]}")" --value 1ether >/dev/null
await "gpu1 is resumed" logged gpu1 'gpu1: resumed' $((resumed[0] + 1))
await "gpu2 is resumed" logged gpu2 'gpu2: resumed' $((resumed[1] + 1))

echo "the stolen worker's key replaced, after its agent has ended by itself"
ended gpu3
same "how gpu3 ended" "$status" 1
logged gpu3 "works for node $number no more" || die "$(cat "$work/gpu3/log")"
says '0 open' as "$third" node status
key[gpu4]=$(account 6)
configure gpu4 "operator = \"$(address "$third")\""
says 'can work once it accepted' as "$third" node worker set "$(address "${key[gpu4]}")"
says "works for $number" as "${key[gpu4]}" node worker accept "$number"
begin gpu4
says 'NodeResumed' as "$third" node resume
await "gpu4 is fit" logged gpu4 'the self-test passed'
await "gpu4 may be drawn" is "${key[gpu4]}" Available

echo "an operator's key stolen: out, the credit at once, the stake a day later"
says 'stake: 500000000000000000000, release: ' as "$third" node quit
says 'stake: 0 }' as "$third" node withdraw --to "$(address "$clean")"
says 'returned     500 ether of stake, in 86' as "$third" node status
later 86401
says 'stake: 500000000000000000000 }' as "$third" node withdraw --to "$(address "$clean")"

echo "runbook: agents as the page says, too"
