// node --test test/names.test.mjs
// Names that people look up: the glossary's last column, the settings of the agent's example, and the list of pages.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (file) => readFileSync(root + file, "utf8");
const has = (text, name) => new RegExp(`\\b${name}\\b`).test(text);

const CRATES = { core: "contracts/core/src/", protocol: "contracts/protocol/src/", sim: "sim/src/" };
const sources = (folder) => readdirSync(root + folder, { recursive: true }).filter((file) => file.endsWith(".rs")).map((file) => read(folder + file));

/** Why a path such as `store::sampler::VRAM_MAX` leads to nothing in a crate; undefined if it leads somewhere. */
function astray(crate, path) {
  let folder = CRATES[crate];
  const names = path.split("::");
  let text;
  if (names[0] === "record") {
    names.shift();
    text = sources(`${folder}records/`).join("\n");
  }
  while (names.length && text === undefined) {
    const [name] = names;
    if (existsSync(`${root}${folder}${name}.rs`)) text = read(`${folder}${name}.rs`);
    else if (existsSync(`${root}${folder}${name}/mod.rs`)) folder += `${name}/`;
    else break;
    names.shift();
  }
  if (!names.length) return undefined;
  // Without a module's name, as in `Network::create_tasks`: anywhere in the crate. In a folder: in one of its files.
  const texts = text === undefined ? sources(folder) : [text];
  return texts.some((one) => names.every((name) => has(one, name))) ? undefined : `${crate}: ${path}`;
}

test("the glossary's names are in the sources", () => {
  const core = new Set(readdirSync(root + CRATES.core).map((file) => file.replace(/\.rs$/, "")).concat("record"));
  const face = read("abi/IMuster.sol");
  const rows = [...read("docs/glossary.md").matchAll(/^\| (\*\*.*) \|$/gm)].map(([, row]) => row.split(" | "));
  assert.ok(rows.length > 80, `${rows.length} terms`);
  let [looked, wrong] = [0, []];
  for (const cells of rows) {
    let protocol = false;
    for (const [, word, name] of cells.at(-1).matchAll(/\b(protocol) |`([^`]+)`/g)) {
      if (word) protocol = true;
      if (!name) continue;
      looked++;
      const [first, ...rest] = name.split("::");
      const failed =
        name.startsWith("contracts/") ? !existsSync(root + name.replace(/\*$/, "")) && name
        : name.startsWith("IMuster.") || /^[a-z]\w*$/.test(name) && !core.has(name) && !protocol ? !has(face, name.split(".").at(-1)) && name
        : first === "sim" || first === "muster_sim" ? astray("sim", rest.join("::"))
        : astray(protocol && !core.has(first) ? "protocol" : "core", name);
      if (failed) wrong.push(`${cells[0]}: ${failed}`);
    }
  }
  assert.deepEqual(wrong, []);
  assert.ok(looked > 100, `${looked} names`);
});

test("every setting of the agent is in its example", () => {
  const example = read("clients/agent/deploy/muster-agent.toml");
  const settings = (file, names) =>
    names.flatMap((name) => {
      const [, body] = new RegExp(`pub struct ${name} \\{\\n([\\s\\S]*?)\\n\\}`).exec(read(file));
      return [...body.matchAll(/((?:^ +#\[serde\([^\n]*\)\]\n)?)^ +(?:pub )?(\w+): /gm)].map(([, serde, field]) => /rename = "(\w+)"/.exec(serde)?.[1] ?? field);
    });
  const all = [
    ...settings("clients/agent/src/config.rs", ["Config", "Stores", "Stream", "Node", "Executor", "Container"]),
    ...settings("clients/agent/src/terms.rs", ["Terms", "Least"]),
    ...settings("clients/agent/src/hub.rs", ["Hub"]),
  ];
  assert.ok(all.length > 60, `${all.length} settings`);
  assert.deepEqual(all.filter((name) => !new RegExp(`(^|[ {[.])${name}( =|\\])`, "m").test(example)), []);
});

test("every page of docs/ is listed in docs/README.md", () => {
  const list = read("docs/README.md");
  const pages = readdirSync(`${root}docs`, { recursive: true }).filter((file) => file.endsWith(".md") && file !== "README.md");
  assert.deepEqual(pages.filter((page) => !list.includes(`](${page})`)), []);
  assert.ok(pages.every((page) => read(`docs/${page}`).startsWith("# ")), "a page begins with its title");
});
