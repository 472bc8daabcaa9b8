// Licences of code by others in what is published, as THIRD-PARTY.txt: release.mjs and the explorer's page write it, and for an image
//   node script/npm/licences.mjs [--target TRIPLE] PACKAGE...   prints it for these packages of the workspace
// cargo-about writes much the same, but each run of the workflows would compile it for minutes, and it reads no packages of npm.
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = fileURLToPath(new URL("../..", import.meta.url));

const run = (command, ...options) => execFileSync(command, options, { cwd: root, encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "inherit"] });

/** The crates by others that packages of the workspace link on a platform, by default this one: without those of builds, tests and macros. */
export function crates(names, platform = /^host: (.*)$/m.exec(run("rustc", "-vV"))[1]) {
  // The metadata joins the features of all members, by which programs would link a hundred crates more.
  const tree = run("cargo", "tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}", "--target", platform, ...names.flatMap((name) => ["--package", name]));
  const linked = new Set(tree.split("\n").map((line) => line.split(" ", 2).join(" ")));
  const { packages } = JSON.parse(run("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", platform));
  return packages.filter(({ name, version, source }) => source && linked.has(`${name} v${version}`)).map(({ name, version, license, authors, repository, manifest_path }) => ({
    name, version, license, authors, source: repository ?? `${name} in the Rust registry`, folder: dirname(manifest_path),
  }));
}

/** Packages of npm, by their folders. */
export const modules = (folders) =>
  folders.map((folder) => {
    const { name, version, license, author, repository } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return { name, version, license, authors: [author?.name ?? author].filter(Boolean), source: repository?.url ?? (repository ? `https://github.com/${repository}` : `${name} in the npm registry`), folder };
  });

/** The licence that is taken where a package leaves the choice. */
const chosen = (license) => ["MIT", "Apache-2.0"].find((one) => license.split(/ OR | ?\/ ?/).includes(one)) ?? license;

/** The texts that a package brings; those named by a licence that is not taken are left out. */
function texts({ folder, license }) {
  const all = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath ?? entry.path, entry.name)))
    .filter((path) => /(^|\/)(licen[sc]e|copying|copyright|notice)[^/]*(\/[^/]*)?$/i.test(path) && !/node_modules\/|\.(rs|[cm]?[jt]s|json|toml)$/.test(path))
    .sort();
  const own = { MIT: /mit/i, "Apache-2.0": /apache/i }[chosen(license)];
  const kept = all.some((path) => own?.test(path)) ? all.filter((path) => own.test(path) || !/apache|mit|bsd|gpl|zlib|boost/i.test(path)) : all;
  return kept.map((path) => readFileSync(join(folder, path), "utf8"));
}

/** A text without its lines of copyright, and those: many differ in nothing else. */
function split(text) {
  const lines = text.replace(/\r/g, "").split("\n").map((line) => line.trimEnd());
  const isNotice = (line) => /^\W*copyright\b.*(\(c\)|©|\d{4})/i.test(line);
  const body = lines.filter((line) => !isNotice(line)).join("\n").replace(/\n{3,}/g, "\n\n").trim();
  return { body, notices: lines.filter(isNotice).map((line) => line.trim()) };
}

/** THIRD-PARTY.txt for packages as `crates` and `modules` give them. */
export function thirdParty(packages) {
  // The same package may lie in several folders.
  const named = new Map(packages.map((one) => [`${one.name} ${one.version}`, { ...one, source: one.source.replace(/^git\+|\.git$/g, "") }]));
  const sorted = [...named.keys()].sort().map((name) => named.get(name));
  const brought = new Map(sorted.map((one) => [one, texts(one).map(split)]));
  // A package without a text has that of its neighbour in a repository, or its licence's, with its authors.
  const lacking = (one) => {
    const neighbours = sorted.filter((other) => other.license === one.license && brought.get(other).length);
    const near = neighbours.find(({ source }) => source === one.source);
    if (near) return brought.get(near);
    const like = neighbours.length ? neighbours : sorted.filter((other) => chosen(other.license) === chosen(one.license) && brought.get(other).length);
    if (!like.length) throw new Error(`${one.name} ${one.version} brings no text of ${one.license}, and nor does another package`);
    return [{ ...brought.get(like[0])[0], notices: [`Copyright (c) ${one.authors.join(", ") || `the authors of ${one.name}`}`] }];
  };
  const bodies = new Map();
  for (const one of sorted) {
    const own = brought.get(one);
    for (const { body, notices } of own.length ? own : lacking(one)) {
      const key = body.replace(/\s+/g, " ").toLowerCase();
      if (!bodies.has(key)) bodies.set(key, { body, of: [] });
      bodies.get(key).of.push(`${one.name} ${one.version}${notices.map((notice) => `\n    ${notice}`).join("")}`);
    }
  }
  const line = "=".repeat(80);
  const list = sorted.map(({ name, version, license, source }) => `${name} ${version}: ${license}, ${source}`);
  const whole = [...bodies.values()].map(({ body, of }) => `${line}\n${[...new Set(of)].join("\n")}\n\n${body}\n`);
  return `Code by others, with its licence and the address of its source. Where licences can be chosen, MIT is, or else Apache-2.0.\nThe texts follow the list, each below the packages that it is of.\n\n${list.join("\n")}\n\n${whole.join("\n")}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values, positionals } = parseArgs({ options: { target: { type: "string" } }, allowPositionals: true });
  process.stdout.write(thirdParty(crates(positionals, values.target)));
}
