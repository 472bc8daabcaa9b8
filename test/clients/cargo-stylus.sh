#!/usr/bin/env bash
# cargo-stylus against a running node: check, deploy with a constructor, activate, cache status, on its own template.
#
#   RPC_URL=http://127.0.0.1:8547 test/clients/cargo-stylus.sh [WORK_DIR]
#   test/clients/cargo-stylus.sh --record [WORK_DIR]       on a muster-devnode of its own; all requests and answers into cargo-stylus.jsonl
#
# `script/test` has a node answer that file's requests again, since building cargo-stylus and its template takes longer than all other
# clients. Record anew what is answered in another way on purpose: only cargo-stylus itself knows whether it goes on with that.
#
# cargo-stylus 0.10.10 is built once into target/tools, without optimisation: it runs for seconds. CARGO_STYLUS names
# another binary of that version. The compiler is the active rustup toolchain if it has the wasm32 standard library,
# else the one that script/setup found for the contracts, which builds the library from its sources.
set -euo pipefail

rpc=${RPC_URL:-http://127.0.0.1:8547}
key=${PRIVATE_KEY:-0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659}
version=0.10.10
root=$(cd "$(dirname "$0")/../.." && pwd)
tools=$root/target/tools

die() { echo "cargo-stylus.sh: $1" >&2; exit 1; }
stylus=${CARGO_STYLUS:-$tools/bin/cargo-stylus}
# Through cargo's own dispatch it would be looked up on PATH; here the named binary runs.
stylus() { "$stylus" stylus "$@"; }
there() { [ -x "$stylus" ] && stylus --version | grep -q " $version\$"; }
if ! there; then
  [ -z "${CARGO_STYLUS:-}" ] || die "cargo-stylus $version is wanted, which $CARGO_STYLUS is not"
  echo "cargo-stylus: building version $version into target/tools (some five minutes, once)"
  mkdir -p "$tools"
  (
    cd "$root"
    export CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_LTO=off
    # The same for programs that run and for those that only compile it, so that their common crates are compiled once.
    export CARGO_PROFILE_RELEASE_BUILD_OVERRIDE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_STRIP=debuginfo CARGO_PROFILE_RELEASE_DEBUG=false
    cargo install cargo-stylus --version "$version" --locked --force --root "$tools" --target-dir "$tools/build"
  ) >"$tools/install.log" 2>&1 || { tail -n 30 "$tools/install.log" >&2; die "cargo install failed, see $tools/install.log"; }
  there || die "cargo install left no cargo-stylus $version in $tools/bin"
  rm -rf "$tools/build"
fi
record=
if [ "${1:-}" = --record ]; then
  record=$root/test/clients/cargo-stylus.jsonl
  shift
fi
work=${1:-${TMPDIR:-/tmp}/muster-cargo-stylus}

# The compiler. cargo-stylus calls a plain `cargo build --target wasm32-unknown-unknown`, so the differences go through the environment, and
# override the toolchain file, which must name a version all the same.
toolchain=$(rustup show active-toolchain | cut -d' ' -f1)
export RUSTUP_TOOLCHAIN=$toolchain
sysroot=$(rustc --print sysroot)
config=
if [ -d "$sysroot/lib/rustlib/wasm32-unknown-unknown" ]; then
  channel=$(rustc --version | cut -d' ' -f2)
else
  # The tools that script/setup found for the contracts: a compiler, its library's sources, rust-lld.
  found() { sed -n "s/^$1=//p" "$root/.muster/wasm"; }
  [ -f "$root/.muster/wasm" ] || die "no compiler has the wasm32 standard library: run script/setup, or rustup target add wasm32-unknown-unknown"
  RUSTC=$(found rustc)
  export RUSTC RUSTC_BOOTSTRAP=1 PATH="$(found lld):$PATH"
  channel=$("$RUSTC" --version | cut -d' ' -f2)
  config='[unstable]
build-std = ["std", "panic_abort"]'
fi

# The template, with a constructor put into it and the toolchain file set to the compiler that is there.
rm -rf "$work/counter"
mkdir -p "$work"
# `cargo new` would make it a member.
if (cd "$work" && cargo locate-project --workspace >/dev/null 2>&1); then
  echo "cargo-stylus.sh: $work lies inside a cargo workspace, choose another directory" >&2
  exit 1
fi
(cd "$work" && stylus new counter)
cd "$work/counter"
cat > rust-toolchain.toml <<TOML
[toolchain]
channel = "$channel"
TOML
sed -i '0,/^impl Counter {/s//impl Counter {\
    \/\/\/ Begins at a number.\
    #[constructor]\
    pub fn constructor(\&mut self, start: U256) {\
        self.number.set(start);\
    }\
/' src/lib.rs
grep -q 'fn constructor' src/lib.rs
mkdir -p .cargo
cat > .cargo/config.toml <<TOML
[target.wasm32-unknown-unknown]
rustflags = ["-C", "link-arg=-zstack-size=32768"]
$config
TOML
# Its own tests are not run: what is compiled for this machine prints the interface.
export CARGO_TARGET_DIR="$work/target" CARGO_PROFILE_DEV_DEBUG=false

if [ -n "$record" ]; then
  mkdir -p "$work"
  node=$(ls -t "$root"/target/{release,debug}/muster-devnode 2>/dev/null | head -n 1 || true)
  [ -n "$node" ] || die "no muster-devnode is built: cargo build -p muster-devnode"
  source "$root/test/clients/listening.sh"
  trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
  listening "$work/node.log" "$node" --port 0 --manual-time 1700000000
  listening "$work/proxy.log" node "$root/test/clients/recorded.mjs" record "$url" "$work/recorded.jsonl"
  rpc=$url
fi

call() { # method, params: the result, or the whole answer if there is none
  curl -sf -H 'content-type: application/json' \
    --data "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"$1\",\"params\":$2}" "$rpc" | sed -E 's/.*"result":"([^"]*)".*/\1/'
}
address_in() { sed -E 's/\x1b\[[0-9;]*m//g' "$1" | sed -nE 's/.*deployed code at address: *(0x[0-9a-fA-F]{40}).*/\1/p'; }
step() { echo "== cargo stylus $*"; }

step check
stylus check -e "$rpc"

step deploy --no-verify --constructor-args 41
stylus deploy --no-verify -e "$rpc" --private-key "$key" --constructor-args 41 2>&1 | tee "$work/deploy.log"
counter=$(address_in "$work/deploy.log")
[ -n "$counter" ] || { echo "no address in the output of deploy" >&2; exit 1; }
# number() is 0x8381f58a.
number() { call eth_call "[{\"to\":\"$1\",\"data\":\"0x8381f58a\"},\"latest\"]"; }
[ "$(number "$counter")" = "0x$(printf %064x 41)" ] || { echo "number() is $(number "$counter"), not 41" >&2; exit 1; }

step trace
# increment() is 0xd09de08a; from the development account, which the embedded node signs for.
tx=$(call eth_sendTransaction "[{\"from\":\"0x3f1eae7d46d88f08fc2f8ed27fcb2ab183eb2d0e\",\"to\":\"$counter\",\"data\":\"0xd09de08a\"}]")
if [[ $tx =~ ^0x[0-9a-f]{64}$ ]]; then
  # By its own script, and by the node's tracer.
  stylus trace -e "$rpc" -t "$tx" >"$work/trace.json"
  stylus trace -e "$rpc" -t "$tx" --use-native-tracer | cmp - "$work/trace.json"
  grep -q storage_cache_bytes32 "$work/trace.json" || { echo "the trace shows no write to storage" >&2; exit 1; }
else
  echo "left out: this node signs for nobody"
fi

# A second program, deployed without activation, then activated by hand. Its code must differ from the first's.
sed -i 's/pub fn increment(&mut self) {/pub fn step(\&mut self) {/; s/contract.increment()/contract.step()/' src/lib.rs
sed -i '/#\[constructor\]/,/^    }/d' src/lib.rs
step deploy --no-verify --no-activate
stylus deploy --no-verify --no-activate -e "$rpc" --private-key "$key" 2>&1 | tee "$work/deploy.log"
second=$(address_in "$work/deploy.log")
[ -n "$second" ] || { echo "no address in the output of deploy" >&2; exit 1; }
step activate
stylus activate --address "$second" -e "$rpc" --private-key "$key"
[ "$(number "$second")" = "0x$(printf %064x 0)" ] || { echo "the activated program does not answer" >&2; exit 1; }

step cache status
stylus cache status --address "$counter" -e "$rpc"
step cache suggest-bid
stylus cache suggest-bid "$counter" -e "$rpc"
step cache bid
stylus cache bid -e "$rpc" --private-key "$key" "$counter" 0
stylus cache status --address "$counter" -e "$rpc" 2>&1 | tee "$work/status.log"
sed -E 's/\x1b\[[0-9;]*m//g' "$work/status.log" | grep 'is cached' >/dev/null || { echo "the bid did not cache the program" >&2; exit 1; }
[ -z "$record" ] || cp "$work/recorded.jsonl" "$record"
echo "cargo-stylus: ok"
