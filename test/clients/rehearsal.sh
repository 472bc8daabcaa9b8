# Sourced by runbook.sh and runbook-agents.sh, in the project's root: the tools, a folder for everything, a development node with a Muster
# on it, its accounts, and assertions. MUSTER_COMMAND, MUSTER_CLI and MUSTER_DEVNODE name other tools than those of target/debug.
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
# Processes to end with this one, without waiting for what they would do before.
running=()
trap '[ ${#running[@]} = 0 ] || { kill -KILL "${running[@]}"; wait; } 2>/dev/null || true; rm -rf "$work"' EXIT
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

source test/clients/listening.sh
# start NAME FLAG ...: a node, whose URL is then in $url.
start() {
  listening "$work/$1.log" "$devnode" --port 0 "${@:2}"
  running+=("$started")
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
