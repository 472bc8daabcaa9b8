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
 * Holds a recipe to every one of its kind that there is, and to at most so many files, a case's own included. `cases` has the files that the
 * recipe adds for a case, and the names that must stand there too. One of each case stands nowhere but in its files, in tests and in
 * clients; one of no case, and that no random operation brings about, in no test either.
 */
function hold(of, goal, all, isPlayed, { exempt = () => false, cases = {} } = {}) {
  const { number, files, more } = recipe(of);
  assert.equal(files.length, number);
  for (const file of Object.keys(cases)) assert.ok(more.includes(file), `${of}: ${file}`);
  const alone = new Map();
  for (const words of all) {
    const found = having(words);
    for (const pattern of files) {
      // A file found for a narrower pattern does not stand for a wider one.
      const narrower = files.filter((other) => other !== pattern && !other.includes("*"));
      const fits = found.some((file) => matches(file, pattern) && (!pattern.includes("*") || !narrower.includes(file)));
      assert.ok(fits || exempt(words[0], pattern), `${words[0]} is not in ${pattern}`);
    }
    const its = Object.keys(cases).filter((file) => cases[file](words));
    for (const file of its) assert.ok(found.some((one) => isPart(one, file)), `${words[0]} is not in ${file}`);
    assert.ok(number + its.length <= goal, `${words[0]}: ${number + its.length} files, where ${goal} are the goal`);
    // Clients use what they like, but for those in the list; and tests what they test.
    const isIts = (file) => files.some((pattern) => matches(file, pattern)) || [...files, ...its].some((one) => isPart(file, one));
    const isTest = (file) => (isPlayed(words) || its.length > 0) && (ITS_TESTS.test(file) || more.includes(file) || file === STORY);
    const kind = [isPlayed(words) ? "those that operations bring about" : "the others", ...its].join(", ");
    alone.set(kind, (alone.get(kind) ?? 0) + found.every((file) => isIts(file) || isTest(file) || /^clients\//.test(file)));
  }
  for (const [kind, times] of alone) assert.ok(times > 0, `${of}: none of ${kind} is in these files alone`);
}

/** Whether a file is the named one, or, of the model, a part of it. */
const isPart = (file, named) => file === named || (named === MODEL && file.startsWith("test/model/src/model/"));
const MODEL = "test/model/src/model.rs";
// It provokes every event and every error, by whichever call there is.
const STORY = "test/clients/story.mjs";
/** Calls and events that only the owner brings about, and no random operation. */
const OWNERS = {
  call: /^(accept|propose|withdraw)(Programs|Treasury)$|Ownership$|^(initialise|install|renounceUpgrades)$/,
  event: /^(Ownership|Treasury(Proposed|Changed)|Programs|Upgrades|DiamondCut|Initialised)/,
};

test("a parameter", () => hold("a parameter", 5, JSON.parse(read("abi/parameters.json")).map(({ name }) => [name, snake(name)]), () => false));

test("an event", () => {
  const events = abi.filter(({ type }) => type === "event").map(({ name }) => [name]);
  const isPlayed = ([name]) => !OWNERS.event.test(name);
  hold("an event", 4, events, isPlayed);
  // The model has its meaning for readers of logs, and above that, or in its parts, the moment at which it comes.
  const [moments, meanings] = sources.get(MODEL).split("\nmod told {\n");
  const parts = [moments, ...[...sources].filter(([file]) => isPart(file, MODEL) && file !== MODEL).map(([, text]) => text)];
  const stands = (name, texts) => texts.some((text) => new RegExp(`\\bE::${name}\\(`).test(text));
  for (const [name] of events) {
    assert.ok(stands(name, [meanings]), `${name} has no meaning in ${MODEL}`);
    assert.equal(stands(name, parts), isPlayed([name]), `the moment of ${name} in ${MODEL}`);
  }
});

test("a call", () => {
  const calls = abi.filter(({ type }) => type === "function").map(({ name }) => [name, `${name}Call`, snake(name)]);
  // The router answers `install`; and the row of a view can be all of it, or name a function that several have.
  const views = abi.filter(({ stateMutability }) => /view|pure/.test(stateMutability)).map(({ name }) => name);
  const exempt = (name, pattern) => name === "install" || (views.includes(name) && pattern.includes("*"));
  const [, lens] = sources.get("contracts/protocol/src/interface/programs.rs").match(/\n    lens LENS \{\n([^]*?)\n    \}\n/);
  const isOfLens = ([name]) => new RegExp(`^\\s+${name}Call\\(`, "m").test(lens);
  const isPlayed = ([name]) => !views.includes(name) && !OWNERS.call.test(name);
  hold("a call", 5, calls, isPlayed, { exempt, cases: { [MODEL]: isPlayed, "clients/ts/src/reads.ts": isOfLens } });
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
