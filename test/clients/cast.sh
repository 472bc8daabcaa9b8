#!/usr/bin/env bash
# cast against a running node: RPC_URL=http://127.0.0.1:8547 test/clients/cast.sh
set -euo pipefail
cd "$(dirname "$0")"
export ETH_RPC_URL=${RPC_URL:-http://127.0.0.1:8547}
key=${PRIVATE_KEY:-0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659}
export NO_COLOR=1 FOUNDRY_DISABLE_NIGHTLY_WARNING=1
# The package's launcher loses the exit status.
cast() { node_modules/@foundry-rs/cast-*/bin/cast "$@"; }
same() { [ "$2" = "$3" ] || { echo "cast: $1 is $2, not $3" >&2; exit 1; }; }
field() { node -p "JSON.parse(require('fs').readFileSync(0, 'utf8')).$1"; }

me=$(cast wallet address --private-key "$key")
same "the chain id" "$(cast chain-id)" 412346
same "the client" "$(cast client | cut -d/ -f1)" muster-devnode

# Creation with constructor arguments.
bytecode=$(node -e 'import("./compile.mjs").then((m) => console.log(m.compile().bytecode))')
args=$(cast abi-encode 'c(address,uint256)' "$me" 40)
created=$(cast send --private-key "$key" --json --create "$bytecode${args#0x}")
same "the creation's status" "$(field status <<<"$created")" 0x1
probe=$(field contractAddress <<<"$created")

same "number()" "$(cast call "$probe" 'number()(uint256)')" 40
sent=$(cast send --private-key "$key" --json "$probe" 'count(uint256)' 2)
hash=$(field transactionHash <<<"$sent")
same "number()" "$(cast call "$probe" 'number()(uint256)')" 42
same "slot 0" "$(cast storage "$probe" 0)" "$(cast to-uint256 42)"
same "the receipt's status" "$(cast receipt "$hash" status)" true
number=$(cast receipt "$hash" blockNumber)
same "the newest block" "$(cast block-number)" "$number"
same "the block's hash" "$(cast block "$number" --field hash)" "$(cast receipt "$hash" blockHash)"
same "the sender" "$(cast tx "$hash" from)" "$me"
same "the events of Counted" \
  "$(cast logs --from-block 0 --address "$probe" 'Counted(address indexed,uint256 indexed,bytes32)' "$me" | grep -c transactionHash)" 1
same "the code's size" "$(( ($(cast code "$probe" | wc -c) - 3) / 2 > 1000 ))" 1
same "an estimate" "$(( $(cast estimate --from "$me" "$probe" 'count(uint256)' 1) > 25000 ))" 1

# A typed error, by its name.
if out=$(cast call "$probe" 'count(uint256)' 0 2>&1); then
  echo "cast: count(0) should have failed" >&2
  exit 1
fi
grep -q "execution reverted" <<<"$out" || { echo "cast: $out" >&2; exit 1; }
grep -qi "$(cast sig 'TooSmall(uint256,uint256)' | cut -c3-)" <<<"$out" || { echo "cast: no revert data in $out" >&2; exit 1; }

# Legacy transactions, value, balances.
other=0x00000000000000000000000000000000000000cc
before=$(cast balance "$other")
cast send --private-key "$key" --legacy --json "$other" --value 1gwei >/dev/null
same "the balance" "$(( $(cast balance "$other") - before ))" 1000000000
cast rpc evm_mine >/dev/null
cast gas-price >/dev/null
cast basefee >/dev/null
echo "cast: ok"
