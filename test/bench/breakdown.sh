#!/usr/bin/env bash
# Where the gas of a task's life goes: plays it on a node of its own, then asks `muster-devnode gas` about each call.
# Writes docs/gas-breakdown.md. Needs muster-dev, muster-devnode and the programs (script/bench breakdown builds them).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
target=${CARGO_TARGET_DIR:-target}/debug
page=docs/gas-breakdown.md
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; rm -rf "$work"' EXIT

# Time stands still unless it is moved, so that every run gives the same.
"$target/muster-devnode" --port 0 --manual-time 1800000000 >"$work/node.log" &
pid=$!
for _ in $(seq 100); do
  RPC_URL=$(sed -n 's/^Listening on \(http[^ ]*\).*/\1/p' "$work/node.log")
  [ -n "$RPC_URL" ] && break
  sleep 0.1
done
export RPC_URL
export PATH=$root/node_modules/.bin:$PATH
# The chain's development account and the first two of the test mnemonic.
boss=0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659
operator=0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80
creator=0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d
PRIVATE_KEY=$boss OWNER='' TREASURY='' PARAMETERS='' MIN_STAKE=0.0000000004 STAKE_GRANULE=1000000 \
  DEPLOYMENTS=$work "$target/muster-dev" deploy >"$work/deploy.log" 2>&1 || { cat "$work/deploy.log" >&2; exit 1; }
muster=$(sed -n 's/.*"address": *"\(0x[0-9a-fA-F]*\)".*/\1/p' "$work"/*.json | head -n 1)

# Sends, and prints one field of the receipt.
send() {
  cast send --rpc-url "$RPC_URL" --private-key "$2" --json "$muster" "${@:3}" >"$work/receipt"
  node -p 'const r = JSON.parse(require("fs").readFileSync(process.argv[1])); eval(process.argv[2])' "$work/receipt" "$1"
}
task='createTask((uint8,uint32,uint16,uint32,uint8,bytes32,uint64[]))'
spec="(0,1,24,0,0,0x$(printf '07%.0s' $(seq 32)),[7])"
answer=0x$(printf '09%.0s' $(seq 32))
# A hundredth of the stake for the GPU's name, which is new.
join=$(send r.transactionHash $operator 'join(string,uint16,uint64[])' 'NVIDIA GeForce RTX 4090' 24 '[7]' --value 404000000)
# The first of each kind opens words that later ones find open; shown is the second.
for _ in first second; do
  id=$(send 'BigInt(r.logs[0].topics[1]).toString()' $creator "$task" "$spec" --value 10000)
  create=$(node -p 'JSON.parse(require("fs").readFileSync(process.argv[1])).transactionHash' "$work/receipt")
  # The draw waits for the hash of a block after that of the creation.
  cast rpc --rpc-url "$RPC_URL" evm_mine >/dev/null
  dispatch=$(send r.transactionHash $boss 'dispatch(uint8)' 1)
  submit=$(send r.transactionHash $operator 'submit(uint64,bytes32)' "$id" "$answer")
done

section() {
  printf '\n## `%s`\n\n' "$1"
  "$target/muster-devnode" gas "$2" --markdown --abi abi/IMuster.json
}
{
  cat <<'TEXT'
# Where the gas goes

[All pages](README.md)

Made by `script/bench breakdown`, which plays a task on a node of its own and asks `muster-devnode gas` about each call; not by
hand. One node, one task at a time: sizes of the network are [gas.md](gas.md)'s subject. Host calls are without what the
frames they open take, and with the storage they charge for; WASM is what a program's own instructions take. Programs are
not cached here, so their starts are those of a program that nobody has bid for.
TEXT
  section join "$join"
  section createTask "$create"
  section dispatch "$dispatch"
  section submit "$submit"
} >"$work/page.md"
# Addresses depend on nothing but the deployer's nonce, so the page repeats.
mv "$work/page.md" "$page"
echo "breakdown: wrote $page"
