#!/usr/bin/env bash
# Compiles clients/verifier and clients/replayer to WASM, with the toolchain and the flags of the programs, and writes them as src/generated/verifier.ts
# and src/generated/replayer.ts, which only `muster-client/verify` and `muster-client/replay` load. Needs the programs (script/build), whose manifest
# names the flags. `verifier.sh verifier` does the first alone.
set -euo pipefail
cd "$(dirname "$0")/../.."
for file in .muster/wasm build/manifest.json; do
  [ -f $file ] || { echo "clients/ts: there is no $file: script/setup, script/build" >&2; exit 1; }
done
get() { sed -n "s/^$1=//p" .muster/wasm; }
flags=$(node -p 'JSON.parse(fs.readFileSync("build/manifest.json")).rustflags.join("\x1f").replaceAll("<project>", process.cwd())')
rustc=$(get rustc)
out=clients/ts/src/generated
mkdir -p $out
compile() {
  env -u RUSTUP_TOOLCHAIN PATH="$(get lld):$PATH" RUSTC="$rustc" RUSTC_BOOTSTRAP=1 CARGO_ENCODED_RUSTFLAGS="$flags" \
    "$(get cargo)" rustc --quiet --locked -p "muster-$1" --lib --crate-type cdylib --profile contract \
    --target wasm32-unknown-unknown -Zbuild-std=std,panic_abort --target-dir target/contracts
}
# write NAME WHAT PACKING...: only if it differs, and atomically, because another process may be reading.
write() {
  local part=$out/$1.ts.$$
  {
    echo "/** $2 */"
    printf 'export const %s =\n  "%s";\n' "$1" "$("${@:3}" <"target/contracts/wasm32-unknown-unknown/contract/muster_$1.wasm" | base64 -w 0)"
  } >"$part"
  if cmp -s "$part" "$out/$1.ts"; then rm "$part"; else mv "$part" "$out/$1.ts"; fi
}
compile verifier
write verifier 'How Muster judges and pays, out of `muster-core`: WASM, in base64.' cat
[ "${1:-}" != verifier ] || exit 0
compile replayer
write replayer 'All of Muster'"'"'s rules, `muster-protocol`: WASM, gzipped, in base64.' gzip -9 -n
