// node --test test/recipes.test.mjs
// The claims of CONTRIBUTING.md about the files that a parameter, an event or a call is in, and about spare bits.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const root = new URL("..", import.meta.url);
const read = (file) => readFileSync(new URL(file, root), "utf8");
const page = read("CONTRIBUTING.md");
const list = execFileSync("git", ["ls-files", "*.rs", "*.ts", "*.tsx", "*.mjs", "*.sol", "*.sh", "*.py"], { cwd: root, encoding: "utf8" }).split("\n");
// The files that `script/abi` writes, and the interface's second name in the client's crate.
const GENERATED = ["abi/muster.ts", "abi/parameters.ts", "clients/rust/src/IMuster.sol"];
const sources = new Map(list.filter((file) => file && !GENERATED.includes(file)).map((file) => [file, read(file)]));
const abi = JSON.parse(read("abi/IMuster.json"));
const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The files of a recipe, as its first line lists them, and how many it says they are. */
function recipe(of) {
  const [, number, files] = page.match(new RegExp(`### \\.\\.\\. ${of}\\n\\nBy hand, in (\\d+) files[^:]*: (.*)\\.\\n`));
  return { number: Number(number), files: [...files.matchAll(/`([^`]+)`/g)].map(([, file]) => file) };
}

/** Whether a file is one of a pattern's, in which `*` stands for a name, and `**` for folders. */
const matches = (file, pattern) => new RegExp(`^${pattern.replaceAll(".", "\\.").replaceAll("**/", "\0").replaceAll("*", "[^/]*").replaceAll("\0", "(.*/)?")}$`).test(file);

/** The files in which a word of these stands. */
const having = (words) => [...sources].filter(([, text]) => new RegExp(`\\b(${words.join("|")})\\b`).test(text)).map(([file]) => file);

/** Holds a recipe to every one of its kind that there is, and to at most so many files. */
function hold(of, goal, all, exempt = () => false) {
  const { number, files } = recipe(of);
  assert.equal(files.length, number);
  assert.ok(number <= goal, `${of}: ${number} files, where ${goal} are the goal`);
  // Clients use what they like, but for those in the list; a test of its own is none that a recipe could ask for.
  const isListed = (file) => files.some((pattern) => matches(file, pattern));
  const counts = (file) => isListed(file) || !/^clients\//.test(file);
  let alone = 0;
  for (const words of all) {
    const found = having(words);
    for (const pattern of files) {
      // A file found for a narrower pattern does not stand for a wider one.
      const narrower = files.filter((other) => other !== pattern && !other.includes("*"));
      const fits = found.some((file) => matches(file, pattern) && (!pattern.includes("*") || !narrower.includes(file)));
      assert.ok(fits || exempt(words[0], pattern), `${words[0]} is not in ${pattern}`);
    }
    if (found.filter(counts).every(isListed)) alone++;
  }
  assert.ok(alone > 0, `${of}: none is in these files alone`);
}

test("a parameter", () => hold("a parameter", 5, JSON.parse(read("abi/parameters.json")).map(({ name }) => [name, snake(name)])));

test("an event", () => hold("an event", 4, abi.filter(({ type }) => type === "event").map(({ name }) => [name])));

test("a call", () => {
  const calls = abi.filter(({ type }) => type === "function").map(({ name }) => [name, `${name}Call`, snake(name)]);
  // The router answers `install`; and the row of a view can be all of it, or name a function that several have.
  const views = abi.filter(({ stateMutability }) => /view|pure/.test(stateMutability)).map(({ name }) => name);
  hold("a call", 5, calls, (name, pattern) => name === "install" || (views.includes(name) && pattern.includes("*")));
});

test("spare bits", () => {
  const { types } = JSON.parse(read("abi/MusterStorage.json"));
  const rows = [...page.matchAll(/^\| `(\w+)` \| (\d+) \|$/gm)];
  assert.deepEqual(rows.map(([, name]) => name).sort(), ["Limits", "Rules", "Terms"]);
  for (const [, name, said] of rows) {
    const { members, numberOfBytes } = Object.values(types).find(({ label }) => label === `struct MusterStorage.${name}`);
    const used = members.reduce((sum, { type }) => sum + 8 * Number(types[type].numberOfBytes), 0);
    assert.equal(Number(said), 8 * Number(numberOfBytes) - used, name);
  }
});
