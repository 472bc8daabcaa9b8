// The tests that a change asks for, for `script/test --changed`: node test/changed.mjs BASE prints lines `package NAME`, `client NAME` (one
// of test/clients/run.sh), `sources` if anything changed, and `gas`, or `all`.
//
// A package is tested if a file of it changed, if it depends on one that did, however far, or if its sources name a file that changed. A page of the
// documentation is named by many and read by the tests of `muster-cli` alone.
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { pathToFileURL } from "node:url";

/** Files that everything depends on. */
const ALL = [
  /^Cargo\.(toml|lock)$/, /^rust-toolchain\.toml$/, /^package(-lock)?\.json$/, /^abi\//, /^script\/(env|setup|test|abi|lint)$/, /^test\/changed\.mjs$/,
];

/** Clients of test/clients/run.sh, by their sources. */
const CLIENTS = [
  [/^clients\/ts\//, ["examples", "package", "page", "release"]],
  [/^clients\/react\//, ["package"]],
  [/^(test\/release|script\/npm|\.github|clients\/(agent|cli|explorer)\/deploy)\//, ["release"]],
  [/^script\/npm\/licences\.mjs$/, ["page"]],
  [/^(script\/(crates|release|workflows\.mjs)|docs\/(applications|releases)\.md|README\.md|\.dockerignore|CHANGELOG\.md|SECURITY\.md|LICENSE-\w+)$/, ["release"]],
  [/^clients\/(verifier|replayer)\//, ["package", "page"]],
  [/^clients\/explorer\/indexer\//, ["indexer", "page"]],
  [/^docs\/explorer\.md$/, ["indexer"]],
  [/^clients\/explorer\/page\//, ["page"]],
  [/^clients\/agent\/executors\//, ["executors"]],
  [/^(docs|script\/(book|site$))/, ["site"]],
  [/^devnode\/src\//, ["viem", "ethers", "cast", "cargo-stylus"]],
  [/^test\/clients\//, ["viem", "ethers", "examples", "runbook", "cast", "cargo-stylus"]],
];

/**
 * `files` are paths from the root. `packages` have `name`, `dir`, and of the workspace's packages `needs` (normal and build dependencies)
 * and `tests` (development dependencies). `mentions(dir, name)` tells whether a source under a directory names a file: "compiled" if it is
 * part of the program.
 */
export function ask(files, packages, mentions) {
  if (files.some((file) => ALL.some((pattern) => pattern.test(file)))) return { all: true };
  // Those whose code changed, and those whose tests alone may come out otherwise.
  const changed = new Set();
  const read = new Set();
  const clients = new Set();
  for (const file of files) {
    for (const [pattern, names] of CLIENTS) if (pattern.test(file)) names.forEach((name) => clients.add(name));
    const owners = packages.filter(({ dir }) => file.startsWith(`${dir}/`)).sort((a, b) => b.dir.length - a.dir.length);
    // Its tests follow every link of every page.
    if (file.endsWith(".md")) {
      read.add("muster-cli");
      continue;
    }
    if (owners.length) changed.add(owners[0].name);
    if (file.endsWith(".rs") || basename(file) === "Cargo.toml") continue;
    // Without an ending it may be any word of the sources, so it counts with its folder alone.
    const named = basename(file).includes(".") ? basename(file) : file.split("/").slice(-2).join("/");
    for (const { name, dir } of packages) {
      const how = name === owners[0]?.name ? undefined : mentions(dir, named);
      if (how) (how === "compiled" ? changed : read).add(name);
    }
  }
  // A library that changes changes those that are made of it; a dependency of tests alone changes no library.
  const code = [...changed];
  for (const name of code) {
    for (const other of packages) if (other.needs.includes(name) && !changed.has(other.name)) changed.add(other.name), code.push(other.name);
  }
  const tested = packages.filter(({ name, tests }) => changed.has(name) || read.has(name) || tests.some((other) => changed.has(other)));
  return { all: false, packages: tested.map(({ name }) => name).sort(), clients: [...clients], sources: files.length > 0, gas: changed.has("muster-bench") };
}

function main(base) {
  const run = (command, ...args) => execFileSync(command, args, { encoding: "utf8", maxBuffer: 1 << 28 });
  const lines = (text) => text.split("\n").filter(Boolean);
  // A renamed file changed at both places; a new file need not be known to git.
  const files = [...lines(run("git", "diff", "--name-only", "--no-renames", base)), ...lines(run("git", "ls-files", "--others", "--exclude-standard"))];
  const metadata = JSON.parse(run("cargo", "metadata", "--no-deps", "--locked", "--format-version", "1"));
  const known = new Set(metadata.packages.map(({ name }) => name));
  const packages = metadata.packages.map(({ name, manifest_path, dependencies }) => {
    const own = (isTest) => dependencies.filter((d) => d.path && known.has(d.name) && d.name !== name && (d.kind === "dev") === isTest).map((d) => d.name);
    return { name, dir: relative(metadata.workspace_root, join(manifest_path, "..")), needs: own(false), tests: own(true) };
  });
  const texts = new Map();
  const textOf = (dir) => {
    if (!texts.has(dir)) {
      const sources = readdirSync(dir, { recursive: true }).filter((file) => file.endsWith(".rs") && !/(^|\/)(node_modules|target)\//.test(file));
      texts.set(dir, sources.map((file) => readFileSync(join(dir, file), "utf8")).join("\n"));
    }
    return texts.get(dir);
  };
  const mentions = (dir, name) => {
    const text = textOf(dir);
    if (!text.includes(name)) return undefined;
    return new RegExp(`include_(str|bytes)!\\([^;]*?${name.replaceAll(".", "\\.")}`).test(text) ? "compiled" : "named";
  };
  const asked = ask(files, packages, mentions);
  if (asked.all) return console.log("all");
  for (const name of asked.packages) console.log(`package ${name}`);
  for (const name of asked.clients) console.log(`client ${name}`);
  for (const job of ["sources", "gas"]) if (asked[job]) console.log(job);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) main(process.argv[2] ?? "HEAD");
