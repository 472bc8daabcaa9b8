// Finds files that import each other, however far around, in the workspace's crates and in the JavaScript clients, and fails if there are any.
// Knows Rust by its `use` lines and by paths that begin with `crate`, `super` or `self`; a name that a module only passes on counts for the file
// that has it. Tests inside a file (`mod tests`) and the tests' folders may import whatever they test.
//   node script/circles.mjs [--edges]   --edges: which names make each circle
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

process.chdir(join(dirname(fileURLToPath(import.meta.url)), ".."));
const git = (...args) => execFileSync("git", args, { encoding: "utf8", maxBuffer: 1 << 26 });
/** The sources as they are here, or as they were at a commit. */
const now = {
  files: git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0").filter((file) => file && existsSync(file)),
  read: (file) => readFileSync(file, "utf8"),
};
export const at = (commit) => ({
  files: git("ls-tree", "-r", "-z", "--name-only", commit).split("\0").filter(Boolean),
  read: (file) => git("show", `${commit}:${file}`),
});

// Circles that there are, by what the names of their files begin with; none may grow beyond it.
const allowed = [
  // Refusals and events are written by the encoder, and the decoder refuses. In one file they make `work` 3 bytes larger, of 5 that it has left.
  ["contracts/protocol/src/interface/abi.rs", "contracts/protocol/src/interface/codec.rs"],
];

const bare = (text) =>
  text
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/(^|[^:"'\\])\/\/.*$/gm, "$1");

/** Without the texts of a line: they may be Rust that is written somewhere else. */
const unquoted = (text) => text.replace(/'\\?"'/g, "' '").replace(/"(?:[^"\\\n]|\\.)*"/g, '""');

/** The paths of a `use`, each as [path, name it gets]. */
function paths(tree, before = []) {
  tree = tree.trim();
  const open = tree.indexOf("{");
  if (open < 0) {
    const [path, as] = tree.split(/\s+as\s+/);
    const parts = [...before, ...path.split("::").map((part) => part.trim()).filter(Boolean)];
    const whole = parts.at(-1) === "self" && parts.length > 1 ? parts.slice(0, -1) : parts;
    return [[whole, (as ?? whole.at(-1)).trim()]];
  }
  const head = [...before, ...tree.slice(0, open).split("::").map((part) => part.trim()).filter(Boolean)];
  const found = [];
  let depth = 0;
  let from = open + 1;
  for (let i = open + 1; i < tree.length; i++) {
    if (tree[i] === "{") depth++;
    else if ((tree[i] === "," && depth === 0) || (tree[i] === "}" && depth-- === 0)) {
      if (tree.slice(from, i).trim()) found.push(...paths(tree.slice(from, i), head));
      from = i + 1;
    }
  }
  return found;
}

/** The imports of each file of a crate: file -> file -> names. */
export function crate(root, { files, read } = now) {
  const modules = new Map();
  // Exported macros, which belong to the crate's root by their paths.
  const macros = new Map();
  for (const file of files) {
    if (!file.startsWith(`${root}/`) || !file.endsWith(".rs")) continue;
    const parts = file.slice(root.length + 1, -3).split("/");
    if (["mod", "lib", "main"].includes(parts.at(-1))) parts.pop();
    modules.set(parts.join("::"), { file, at: parts });
  }
  for (const module of modules.values()) {
    // The code after the tests' module is tests, too.
    const text = unquoted(bare(read(module.file))).split(/#\[cfg\(test\)\]\s*mod \w+ *\{/)[0];
    module.uses = [];
    module.passes = new Map();
    const absolute = (parts) => {
      if (parts[0] === "crate") return parts.slice(1);
      let at = [...module.at];
      if (parts[0] !== "super" && parts[0] !== "self") return modules.has([...at, parts[0]].join("::")) ? [...at, ...parts] : undefined;
      for (const part of parts.splice(0, parts.findIndex((part) => part !== "super" && part !== "self") >>> 0)) if (part === "super") at = at.slice(0, -1);
      return [...at, ...parts];
    };
    for (const [, open, tree] of text.matchAll(/(?:^|[;{}\s])(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);/g)) {
      for (const [path, name] of paths(tree.replace(/\s+/g, " "))) {
        const whole = absolute([...path]);
        if (!whole) continue;
        if (open) {
          if (name === "*") (module.all ??= []).push(whole.slice(0, -1));
          else module.passes.set(name, whole);
        } else module.uses.push(whole);
      }
    }
    const rest = text.replace(/(?:^|[;{}\s])(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);/g, ";");
    for (const [path] of rest.matchAll(/(?<![\w:$])(?:crate|super|self)(?:::\w+)+/g)) {
      const whole = absolute(path.split("::"));
      if (whole) module.uses.push(whole);
    }
    module.text = text;
    for (const [, name] of text.matchAll(/#\[macro_export\]\s*(?:#\[[^\]]*\]\s*)*macro_rules!\s*(\w+)/g)) macros.set(name, module);
  }
  const target = (whole, depth = 0) => {
    let at = whole.length;
    while (at > 0 && !modules.has(whole.slice(0, at).join("::"))) at--;
    const module = modules.get(whole.slice(0, at).join("::"));
    const name = whole[at];
    if (at === 0 && macros.has(name)) return macros.get(name);
    if (module && name && depth < 8) {
      const passed = module.passes.get(name);
      if (passed) return target([...passed, ...whole.slice(at + 1)], depth + 1);
      for (const all of module.all ?? []) {
        const to = target([...all, name], depth + 1);
        if (to && new RegExp(`\\b${name}\\b`).test(to.text)) return to;
      }
    }
    // A folder's own file is imported only with a name that it has.
    return module && (name || at === whole.length) ? module : undefined;
  };
  const graph = new Map();
  for (const module of modules.values()) {
    const to = new Map();
    for (const whole of module.uses) {
      const other = target(whole);
      // A bare module's name is no import of the names in a folder's file; the paths that begin with it are found by themselves.
      if (other && other !== module) to.set(other.file, (to.get(other.file) ?? new Set()).add(whole.at(-1)));
    }
    graph.set(module.file, to);
  }
  return graph;
}

/** The imports of each JavaScript file. */
function scripts() {
  const graph = new Map();
  const here = new Set(now.files);
  for (const file of now.files) {
    if (!/\.(ts|tsx|mjs|js)$/.test(file) || /\.(d|test)\.[a-z]+$/.test(file)) continue;
    const to = new Map();
    for (const [, path] of bare(now.read(file)).matchAll(/\b(?:from|import)\s*\(?\s*["'](\.[^"']+)["']/g)) {
      const plain = join(dirname(file), path);
      const stem = plain.replace(/\.m?js$/, "");
      const other = [plain, `${stem}.ts`, `${stem}.tsx`, `${stem}.mjs`, `${stem}/index.ts`].find((name) => here.has(name));
      if (other && other !== file) to.set(other, (to.get(other) ?? new Set()).add(path));
    }
    graph.set(file, to);
  }
  return graph;
}

/** The strongly connected parts of more than one file, by Tarjan's algorithm. */
export function circles(graph) {
  const index = new Map();
  const low = new Map();
  const stack = [];
  const on = new Set();
  const found = [];
  const visit = (file) => {
    index.set(file, index.size);
    low.set(file, index.get(file));
    stack.push(file);
    on.add(file);
    for (const other of graph.get(file)?.keys() ?? []) {
      if (!index.has(other)) {
        visit(other);
        low.set(file, Math.min(low.get(file), low.get(other)));
      } else if (on.has(other)) low.set(file, Math.min(low.get(file), index.get(other)));
    }
    if (low.get(file) !== index.get(file)) return;
    const part = [];
    do {
      part.push(stack.at(-1));
      on.delete(stack.at(-1));
    } while (stack.pop() !== file);
    if (part.length > 1) found.push(part.sort());
  };
  for (const file of graph.keys()) if (!index.has(file)) visit(file);
  return found;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const edges = process.argv.includes("--edges");
  const roots = now.files.filter((file) => /(^|\/)src\/(lib|main)\.rs$/.test(file)).map(dirname);
  let bad = 0;
  for (const graph of [...[...new Set(roots)].map((root) => crate(root)), scripts()]) {
    for (const circle of circles(graph)) {
      if (allowed.some((known) => circle.every((file) => known.some((name) => file.startsWith(name))))) continue;
      bad++;
      console.error(`circles: these files import each other: ${circle.join(", ")}`);
      if (!edges) continue;
      for (const file of circle) for (const [other, names] of graph.get(file)) if (circle.includes(other)) console.error(`  ${file} -> ${other}: ${[...names].join(", ")}`);
    }
  }
  if (bad) process.exit(1);
}
