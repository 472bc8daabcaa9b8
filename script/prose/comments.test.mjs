// node --test script/prose/comments.test.mjs
// comments.js finds long sentences and clauses as subjects, at their lines, in the comments of every kind of source, and nothing in code.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { findings } from "./comments.js";

const long = (words) => `${Array(words).fill("word").join(" ")}.`;

/** The findings in a source of this name: each with its line and the beginning of its reason. */
const found = (name, text) => findings(name, text).map(({ line, says }) => `${line} ${says.split(/[ :]/)[0]}`);

test("sentences of comments have 35 words at most, whatever their lines", () => {
  assert.deepEqual(found("a.rs", `/// ${long(35)}\nfn a() {}\n`), []);
  assert.deepEqual(found("a.rs", `fn b() {}\n/// A.\n/// ${long(20).slice(0, -1)}\n/// ${long(16)}\nfn a() {}\n`), ["3 36"]);
  assert.deepEqual(found("a.rs", `/// ${long(20)}\n/// ${long(20)}\nfn a() {}\n`), []);
  assert.deepEqual(found("a.rs", `/// - ${long(20).slice(0, -1)}\n/// - ${long(20)}\nfn a() {}\n`), []);
});

test("clauses as subjects are found in each kind of source", () => {
  const slashes = "let a = 1; // What it is.\n// Who calls.\n/** Whoever pays. */\n/**\n * It is\n * paid. What it\n * costs.\n */\n";
  for (const name of ["a.rs", "a.ts", "a.tsx", "a.mjs", "a.js", "a.sol"]) {
    assert.deepEqual(found(name, slashes), ['1 "What"', '2 "Who"', '3 "Whoever"', '6 "What"'], name);
  }
  assert.deepEqual(found("a.sh", "a=1 # What it is.\n# Who calls.\n"), ['1 "What"', '2 "Who"']);
  assert.deepEqual(found("a", "#!/usr/bin/env bash\n# What it is.\n"), ['2 "What"']);
});

test("questions, strings, code and settings are no findings", () => {
  const comments = "/// What is it?\n/// `What` it is.\n///\n/// ```\n/// // What it is.\n/// ```\n";
  const code = "let a = \"no comment // What it is.\";\nlet b: &'a str = 'c'; // A letter.\n";
  assert.deepEqual(found("a.rs", comments + code), []);
  assert.deepEqual(found("a.toml", `# a = "b"   # ${long(40)}\n`), []);
  assert.deepEqual(found("a.md", "// What it is.\n"), []);
});

test("a finding fails the program, which counts by folder when asked", () => {
  const work = mkdtempSync(join(tmpdir(), "comments-"));
  const run = (...flags) => spawnSync(process.execPath, [fileURLToPath(new URL("comments.js", import.meta.url)), ...flags], { encoding: "utf8" });
  const file = join(work, "a.rs");
  writeFileSync(file, "// What it is. He pays.\n");
  const [failed, counted] = [run(file), run("--count", file)];
  rmSync(work, { recursive: true });
  assert.equal(failed.status, 1);
  assert.deepEqual(failed.stdout.split("\n").map((line) => line.slice(0, file.length + 2)), [`${file}:1`, `${file}:1`, ""]);
  assert.equal(counted.status, 0);
  assert.match(counted.stdout, /2 in 1 files\n$/);
});
