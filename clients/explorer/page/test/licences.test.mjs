// The built page brings the licences of the packages that it bundles, and of the crates in its WASM.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

test("THIRD-PARTY.txt names all that is bundled, and nothing else", () => {
  const text = readFileSync(new URL("../dist/THIRD-PARTY.txt", import.meta.url), "utf8");
  for (const line of [/^preact \S+: MIT, https:\/\/github\.com\/preactjs\/preact$/m, /^age-encryption \S+: BSD-3-Clause, /m, /^viem /m, /^uplot /m, /^ruint /m]) assert.match(text, line);
  assert.match(text, /^preact \S+\n {4}Copyright \(c\) 2015-present Jason Miller$/m);
  assert.doesNotMatch(text, /^(vite|typescript|playwright-core|clap) /m);
});
