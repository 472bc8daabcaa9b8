#!/usr/bin/env bash
# cast against a running node and a Muster on it: RPC_URL=http://... MUSTER=0x... test/clients/cast.sh
set -euo pipefail
cd "$(dirname "$0")"
export ETH_RPC_URL=${RPC_URL:-http://127.0.0.1:8547}
key=${PRIVATE_KEY:-0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659}
muster=${MUSTER:?names no contract; run.sh deploys one and names it}
export NO_COLOR=1 FOUNDRY_DISABLE_NIGHTLY_WARNING=1
# The package's launcher loses the exit status.
cast() { node_modules/@foundry-rs/cast-*/bin/cast "$@"; }
same() { [ "$2" = "$3" ] || { echo "cast: $1 is $2, not $3" >&2; exit 1; }; }
field() { node -p "JSON.parse(require('fs').readFileSync(0, 'utf8'))$1"; }
# Declarations are taken from the interface: an event as cast wants it, or an error's types.
declaration() { sed -nE "s/^ *$1 ($2\(.*\));\$/\1/p" ../../abi/IMuster.sol; }
# The types of a view that returns one struct, and the place of a field among them.
returned() { node -p "$1_of = require('../../abi/IMuster.json').find((entry) => entry.name === '$1').outputs[0].components, $2"; }
types_of() { returned "$1" "'(' + $1_of.map((part) => part.type).join() + ')'"; }
place_of() { returned "$1" "$1_of.findIndex((part) => part.name === '$2')"; }
# The number of a parameter.
number_of() { node -p "require('../../abi/parameters.json').find((parameter) => parameter.name === '$1').number"; }

me=$(cast wallet address --private-key "$key")
same "the chain id" "$(cast chain-id)" 412346
[ -n "$(cast client)" ]

# Calls.
same "the owner" "$(cast call "$muster" 'owner()(address)')" "$me"
least=$(cast call --json "$muster" 'parameter(uint8)(uint256,uint256,uint256)' "$(number_of minStake)" | field '[0]')
# Nobody has joined with this GPU before.
fee=$(cast call --json "$muster" 'parameter(uint8)(uint256,uint256,uint256)' "$(number_of groupFee)" | field '[0]')
stake_unit=$(cast call --json "$muster" "overview()($(types_of overview))" | field "[0][$(place_of overview stakeUnit)]")
stake=$(node -p "String((${least%% *}n + ${fee%% *}n) * ${stake_unit}n)")

# A transaction, its receipt, its block, its logs.
sent=$(cast send --private-key "$key" --value "$stake" --json "$muster" 'join(string,uint16,uint64[])' 'NVIDIA H100' 80 '[7,8]')
same "the join's status" "$(field .status <<<"$sent")" 0x1
hash=$(field .transactionHash <<<"$sent")
node=$(cast call "$muster" 'nodeOf(address)(uint32)' "$me")
same "the receipt's status" "$(cast receipt "$hash" status)" true
number=$(cast receipt "$hash" blockNumber)
same "the newest block" "$(cast block-number)" "$number"
same "the block's hash" "$(cast block "$number" --field hash)" "$(cast receipt "$hash" blockHash)"
same "the sender" "$(cast tx "$hash" from)" "$me"
logs=$(cast logs --from-block 0 --address "$muster" "$(declaration event NodeJoined)" "$(cast to-uint256 "$node")" --json)
same "the events of NodeJoined" "$(field .length <<<"$logs")" 1
same "the operator in the event" "$(cast parse-bytes32-address "$(field '[0].topics[2]' <<<"$logs")")" "$me"

# Storage: the records of abi/MusterStorage.json lie where Solidity would put them.
slot=$(node -p 'require("../../abi/MusterStorage.json").storage.find((v) => /treasury$/i.test(v.label))?.slot ?? ""')
if [ -n "$slot" ]; then
  word=$(cast storage "$muster" "$slot")
  grep -qi "${me#0x}" <<<"$word" || { echo "cast: slot $slot is $word, without the treasury $me" >&2; exit 1; }
else
  echo "cast: no treasury in abi/MusterStorage.json" >&2
  exit 1
fi

# The example of docs/generated/storage.md reads the node that has joined.
NODE=$node MUSTER=$muster
read=$(eval "$(sed -n '/^```sh$/,/^```$/{/^```/d;p}' ../../docs/generated/storage.md)")
me_lower=$(tr '[:upper:]' '[:lower:]' <<<"$me")
same "the node in storage" "$read" "status 1, stake ${least%% *} stake units
operator $me_lower"

# An error of the contract, with its values: a node that has joined cannot join.
if out=$(cast call --from "$me" --value "$stake" "$muster" 'join(string,uint16,uint64[])' 'NVIDIA H100' 80 '[7,8]' 2>&1); then
  echo "cast: joining twice should have failed" >&2
  exit 1
fi
grep -q "execution reverted" <<<"$out" || { echo "cast: $out" >&2; exit 1; }
types=$(declaration error WrongStatus | sed -E 's/ \w+([,)])/\1/g; s/^WrongStatus//; s/ //g')
want=$(cast sig "WrongStatus$types")
values=$(cast abi-encode "f$types" "$node" 1)
grep -qi "$want${values#0x}" <<<"$out" || { echo "cast: no $want${values#0x} in: $out" >&2; exit 1; }
same "an estimate" "$(( $(cast estimate --from "$me" "$muster" 'pause()') > 21000 ))" 1

# Creation with constructor arguments, which Muster's address does not show.
bytecode=$(node -e 'import("./compile.mjs").then((m) => console.log(m.compile().bytecode))')
args=$(cast abi-encode 'c(address,uint256)' "$me" 40)
created=$(cast send --private-key "$key" --json --create "$bytecode${args#0x}")
same "the creation's status" "$(field .status <<<"$created")" 0x1
probe=$(field .contractAddress <<<"$created")
same "number()" "$(cast call "$probe" 'number()(uint256)')" 40
same "slot 0" "$(cast storage "$probe" 0)" "$(cast to-uint256 40)"
same "the code's size" "$(( ($(cast code "$probe" | wc -c) - 3) / 2 > 500 ))" 1

# Legacy transactions, value, balances.
other=0x00000000000000000000000000000000000000cc
before=$(cast balance "$other")
cast send --private-key "$key" --legacy --json "$other" --value 1gwei >/dev/null
same "the balance" "$(( $(cast balance "$other") - before ))" 1000000000
cast gas-price >/dev/null
cast basefee >/dev/null
echo "cast: ok"
