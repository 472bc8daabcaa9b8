// node --test test/recipes.test.mjs
// The claims of CONTRIBUTING.md about the files that a parameter, an event or a call is in, about spare bits, and the files that its text names.
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

/** The files of a recipe, as its first line lists them, how many it says they are, and those that it adds for a case. */
function recipe(of) {
  const [, number, files, more] = page.match(new RegExp(`### \\.\\.\\. ${of}\n\nBy hand, in (\\d+) files: ((?:\`[^\`]+\`(?:, )?)+)\\.(.*)\n`));
  const names = (text) => [...text.matchAll(/`([^`]+)`/g)].map(([, file]) => file);
  return { number: Number(number), files: names(files), more: names(more) };
}

/** Whether a file is one of a pattern's, in which `*` stands for a name, and `**` for folders. */
const matches = (file, pattern) => new RegExp(`^${pattern.replaceAll(".", "\\.").replaceAll("**/", "\0").replaceAll("*", "[^/]*").replaceAll("\0", "(.*/)?")}$`).test(file);

/** The files in which a word of these stands. */
const having = (words) => [...sources].filter(([, text]) => new RegExp(`\\b(${words.join("|")})\\b`).test(text)).map(([file]) => file);

/** Files that only test what is there: a recipe cannot ask for them. */
const ITS_TESTS = /^(contracts\/protocol\/tests|test\/suite\/tests)\//;

/**
 * Holds a recipe to every one of its kind that there is, and to at most so many files. `inModel` says which must stand in the model's
 * file too, for the cases that the recipe adds; one of those stands nowhere but in the files for all and for its cases.
 */
function hold(of, goal, all, exempt = () => false, inModel = () => false) {
  const { number, files, more } = recipe(of);
  assert.equal(files.length, number);
  assert.ok(number <= goal, `${of}: ${number} files, where ${goal} are the goal`);
  assert.equal(more.includes(MODEL), all.some(inModel), `${of}: ${MODEL}`);
  // Clients use what they like, but for those in the list; and tests what they test.
  const isListed = (file) => files.some((pattern) => matches(file, pattern));
  const isMore = (file) => more.includes(file) || (more.includes(MODEL) && isModel(file));
  const counts = (file) => isListed(file) || !/^clients\//.test(file);
  const alone = { always: 0, inModel: 0 };
  for (const words of all) {
    const found = having(words);
    for (const pattern of files) {
      // A file found for a narrower pattern does not stand for a wider one.
      const narrower = files.filter((other) => other !== pattern && !other.includes("*"));
      const fits = found.some((file) => matches(file, pattern) && (!pattern.includes("*") || !narrower.includes(file)));
      assert.ok(fits || exempt(words[0], pattern), `${words[0]} is not in ${pattern}`);
    }
    if (inModel(words)) {
      assert.ok(found.some(isModel), `${words[0]} is not in ${MODEL}`);
      if (found.filter(counts).every((file) => isListed(file) || isMore(file) || ITS_TESTS.test(file) || file === STORY)) alone.inModel++;
    } else if (found.filter(counts).every(isListed)) alone.always++;
  }
  assert.ok(alone.always > 0, `${of}: none is in these files alone`);
  assert.ok(alone.inModel > 0 || !all.some(inModel), `${of}: none that the model has is in these files alone`);
}

const MODEL = "test/model/src/model.rs";
const isModel = (file) => file === MODEL || file.startsWith("test/model/src/model/");
// It provokes every event and every error, by whichever call there is.
const STORY = "test/clients/story.mjs";
/** Calls and events that only the owner brings about, and no random operation. */
const OWNERS = {
  call: /^(accept|propose|withdraw)(Programs|Treasury)$|Ownership$|^(initialise|install|renounceUpgrades)$/,
  event: /^(Ownership|Treasury(Proposed|Changed)|Programs|Upgrades|DiamondCut|Initialised)/,
};

test("a parameter", () => hold("a parameter", 5, JSON.parse(read("abi/parameters.json")).map(({ name }) => [name, snake(name)])));

test("an event", () => {
  const events = abi.filter(({ type }) => type === "event").map(({ name }) => [name]);
  hold("an event", 4, events, undefined, ([name]) => !OWNERS.event.test(name));
});

test("a call", () => {
  const calls = abi.filter(({ type }) => type === "function").map(({ name }) => [name, `${name}Call`, snake(name)]);
  // The router answers `install`; and the row of a view can be all of it, or name a function that several have.
  const views = abi.filter(({ stateMutability }) => /view|pure/.test(stateMutability)).map(({ name }) => name);
  const exempt = (name, pattern) => name === "install" || (views.includes(name) && pattern.includes("*"));
  hold("a call", 4, calls, exempt, ([name]) => !views.includes(name) && !OWNERS.call.test(name));
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

test("every file and function that the text names is there", () => {
  const all = execFileSync("git", ["ls-files"], { cwd: root, encoding: "utf8" }).split("\n");
  const [table, walk] = page.split("\nThe contract's own code, in `contracts/protocol/src`:\n")[1].split("\nThe walk of one task through them:\n");
  const steps = walk.split("\nThe same folders as a picture")[0];
  const recipes = page.split("\n## How to add ...\n")[1];
  const home = "contracts/protocol/src/";
  const own = all.filter((file) => file.startsWith(home)).map((file) => file.slice(home.length));
  for (const [, folder, rest] of table.matchAll(/^\| `(\w+\/)`.*? \| (.*) \|$/gm)) {
    assert.ok(own.some((file) => file.startsWith(folder)), folder);
    for (const [, file] of rest.matchAll(/`(\w+\.rs)`/g)) assert.ok(own.includes(folder + file), folder + file);
  }
  // By their ends: the steps name files from the contract's own folder.
  const named = [...`${steps}\n${recipes}`.matchAll(/`([\w*<>.-]+\/[\w*<>/.-]*)`(?: \(`(\w+)`)?/g)];
  assert.ok(named.length > 50);
  for (const [, path, called] of named) {
    const pattern = `**/${path.replace(/<\w+>/, "*").replace(/\/$/, "")}`;
    const found = all.filter((file) => matches(file, pattern) || matches(file, `${pattern}/**/*`));
    assert.ok(found.length > 0, path);
    if (called) assert.ok(found.some((file) => new RegExp(`fn ${called}\\b`).test(read(file))), `${called} in ${path}`);
  }
  for (const [, called] of steps.matchAll(/`(\w+)` says/g)) assert.ok(own.some((file) => new RegExp(`fn ${called}\\b`).test(read(home + file))), called);
});
