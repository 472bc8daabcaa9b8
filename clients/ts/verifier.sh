#!/usr/bin/env bash
# Compiles clients/verifier to WASM, with the toolchain and the flags of the programs, and writes it as src/generated/verifier.ts, which only
# `muster-client/verify` loads. Needs the programs (script/build), whose manifest names the flags.
set -euo pipefail
cd "$(dirname "$0")/../.."
for file in .muster/wasm build/manifest.json; do
  [ -f $file ] || { echo "clients/ts: there is no $file: script/setup, script/build" >&2; exit 1; }
done
get() { sed -n "s/^$1=//p" .muster/wasm; }
flags=$(node -p 'JSON.parse(fs.readFileSync("build/manifest.json")).rustflags.join("\x1f").replaceAll("<project>", process.cwd())')
rustc=$(get rustc)
env -u RUSTUP_TOOLCHAIN PATH="$(get lld):$PATH" RUSTC="$rustc" RUSTC_BOOTSTRAP=1 CARGO_ENCODED_RUSTFLAGS="$flags" \
  "$(get cargo)" rustc --quiet --locked -p muster-verifier --lib --crate-type cdylib --profile contract \
  --target wasm32-unknown-unknown -Zbuild-std=std,panic_abort --target-dir target/contracts
out=clients/ts/src/generated
mkdir -p $out
{
  echo '/** How Muster judges and pays, out of `muster-core`: WASM, in base64. */'
  printf 'export const verifier =\n  "%s";\n' "$(base64 -w 0 target/contracts/wasm32-unknown-unknown/contract/muster_verifier.wasm)"
} >$out/verifier.ts
