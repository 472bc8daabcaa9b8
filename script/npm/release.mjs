// Writes what is published out of what is built (script/release says how it is called):
//   npm/*.tgz                            packages; a program is in one of its own for each platform, as esbuild's is
//   muster-VERSION-PLATFORM.tar.gz       all programs of a platform
//   muster-explorer-VERSION.tar.gz       the explorer, built
//   SHA256SUMS                           of all of it
// The same files give the same bytes: nothing of the machine, the time or the folder gets into them.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { crates, thirdParty } from "./licences.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path) => readFileSync(join(root, path), "utf8");

/** The description that every package gives of itself; the address of the sources stands in Cargo.toml, and nowhere else for the files written here. */
const said = (name) => new RegExp(`^\\[workspace\\.package\\][^[]*^${name} = "([^"]*)"$`, "m").exec(read("Cargo.toml"))[1];
export const version = said("version");
export const repository = said("repository");

export const PLATFORMS = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"];
/** Pages that tell, beside the change log, of the time before the first version. */
const UNPUBLISHED = ["README.md", "docs/applications.md", "docs/releases.md"];
/** The newest glibc that a program may ask for: that of RHEL 9, older than Debian 12's and Ubuntu 22.04's. */
const GLIBC = 34;

/** Packages with a program, by name: the program, what it is, the files it brings itself, and the commands. */
const PROGRAMS = {
  "muster-devnode": {
    program: "muster-devnode",
    description: "A local Arbitrum Stylus node in one program: EVM code and WASM programs behind Ethereum JSON-RPC",
    directory: "devnode",
    keywords: ["arbitrum", "stylus", "ethereum", "wasm", "devnode", "testing"],
    readme: "devnode.md",
    commands: ["muster-devnode"],
  },
  "muster-network": {
    program: "muster",
    description: "The command line of Muster: run a node, have tasks run, keep a network going",
    directory: "clients/cli",
    keywords: ["muster", "gpu", "arbitrum", "stylus", "cli"],
    readme: "network.md",
    commands: ["muster"],
  },
  "muster-demo": {
    program: "muster-dev",
    description: "Muster's demonstration: a local node, the contracts, a fleet of GPU nodes, tasks, and what came of them",
    directory: "script/npm/demo",
    keywords: ["muster", "gpu", "arbitrum", "stylus", "demo"],
    readme: "demo/README.md",
    commands: ["muster-demo", "muster-dev"],
    dependencies: { "muster-devnode": version, "muster-programs": version },
  },
};

/** All programs, as they are built, and those that need no files beside them. */
const ALL = ["muster", "muster-agent", "muster-dev", "muster-devnode"];
const ALONE = ALL.filter((program) => program !== "muster-dev");

/** The fields that all packages have in common. */
const common = (name, { description, directory, keywords }) => ({
  name,
  version,
  description,
  keywords,
  license: "MIT OR Apache-2.0",
  homepage: `${repository}#readme`,
  bugs: `${repository}/issues`,
  repository: { type: "git", url: `git+${repository}.git`, directory },
});

/** Writes a package's folder: `files` by their names, text or where they are copied from, and programs with the right to be run. */
function folder(at, manifest, files, programs = {}) {
  const put = (path, content, mode) => {
    const file = join(at, path);
    mkdirSync(dirname(file), { recursive: true });
    if (typeof content === "string") writeFileSync(file, content);
    else cpSync(content.from, file);
    chmodSync(file, mode);
  };
  put("package.json", `${JSON.stringify(manifest, null, 2)}\n`, 0o644);
  for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) put(licence, { from: join(root, licence) }, 0o644);
  for (const [path, content] of Object.entries(files)) put(path, content, 0o644);
  for (const [path, content] of Object.entries(programs)) put(path, content, 0o755);
  return at;
}

/** The package that people name: it holds no program, only the names of the packages that do. */
function main(work, name) {
  const { program, readme, commands, dependencies, ...about } = PROGRAMS[name];
  const own = name === "muster-demo" ? Object.fromEntries(commands.map((command) => [`${command}.mjs`, { from: here(`demo/${command}.mjs`) }])) : {};
  const plain = `#!/usr/bin/env node\nimport { attempt, find, run } from "./program.mjs";\n\nattempt(() => run(find("${program}")));\n`;
  for (const command of commands) own[`${command}.mjs`] ??= plain;
  const manifest = {
    ...common(name, about),
    type: "module",
    engines: { node: ">=18" },
    bin: Object.fromEntries(commands.map((command) => [command, `${command}.mjs`])),
    exports: { ".": { types: "./index.d.ts", default: "./index.js" }, "./package.json": "./package.json" },
    dependencies,
    // Exactly of this version, one of which fits a machine; npm leaves the others out.
    optionalDependencies: Object.fromEntries(PLATFORMS.map((platform) => [`${name}-${platform}`, version])),
  };
  const files = {
    "README.md": { from: here(readme) },
    "program.mjs": { from: here("program.mjs") },
    "index.js": `import { find } from "./program.mjs";\n\nexport const path = () => find("${program}");\n`,
    "index.d.ts": `/** The path of ${program} for this machine. Throws where there is none, and says why. */\nexport declare function path(): string;\n`,
  };
  return folder(join(work, name), manifest, files, own);
}

/** The package with the program for a platform. */
function holder(work, name, platform, programs) {
  const { program, ...about } = PROGRAMS[name];
  const [os, cpu] = platform.split("-");
  const manifest = {
    ...common(`${name}-${platform}`, about),
    description: `${program} for ${platform}; install ${name}, which chooses it`,
    os: [os],
    cpu: [cpu],
    libc: os === "linux" ? ["glibc"] : undefined,
    preferUnplugged: true,
  };
  const readme = `# ${name}-${platform}\n\n\`${program}\` for ${platform}. Install \`${name}\`, which chooses it.\n`;
  return folder(join(work, `${name}-${platform}`), manifest, { "README.md": readme, "THIRD-PARTY.txt": { from: join(programs, "THIRD-PARTY.txt") } }, { [`bin/${program}`]: { from: join(programs, program) } });
}

/** The programs on chain, as they are deployed. */
function programs(work) {
  const about = {
    description: "Muster's programs as they are deployed on Arbitrum Stylus, with their hashes",
    directory: "contracts",
    keywords: ["muster", "arbitrum", "stylus", "wasm", "contracts"],
  };
  const manifest = {
    ...common("muster-programs", about),
    type: "module",
    engines: { node: ">=18" },
    exports: { ".": { types: "./index.d.ts", default: "./index.js" }, "./*": "./*" },
  };
  const { programs: built } = JSON.parse(read("build/manifest.json"));
  const files = {};
  for (const name of Object.keys(built)) for (const end of ["deploy", "wasm"]) files[`build/${name}.${end}`] = { from: join(root, `build/${name}.${end}`) };
  for (const path of ["build/manifest.json", "build/router.deploy"]) files[path] = { from: join(root, path) };
  for (const name of ["IMuster.json", "IMuster.sol", "MusterStorage.json", "MusterStorage.sol", "parameters.json"]) files[`abi/${name}`] = { from: join(root, "abi", name) };
  const sums = Object.entries(files).map(([path, { from }]) => `${hash(readFileSync(from))}  ${path}\n`);
  files.SHA256SUMS = sums.sort((a, b) => (a.slice(66) < b.slice(66) ? -1 : 1)).join("");
  files["README.md"] = { from: here("programs.md") };
  files["THIRD-PARTY.txt"] = thirdParty(crates(Object.keys(built).map((name) => `muster-${name}`), "wasm32-unknown-unknown"));
  files["index.js"] = `import { fileURLToPath } from "node:url";\n\nexport const programs = fileURLToPath(new URL(".", import.meta.url));\n`;
  files["index.d.ts"] = "/** The folder that holds build/ and abi/. */\nexport declare const programs: string;\n";
  return folder(join(work, "muster-programs"), manifest, files);
}

/** An archive of one folder, its files in the order of their names. */
function archive(out, name, entries) {
  const entry = ([path, { from, mode = 0o644 }]) => {
    const bytes = readFileSync(from);
    const header = Buffer.alloc(512);
    if (name.length + path.length > 98) throw new Error(`${path} is too long a name for an archive`);
    const write = (text, at) => header.write(text, at, "latin1");
    const octal = (number, digits) => number.toString(8).padStart(digits, "0");
    write(`${name}/${path}`, 0);
    for (const [number, digits, at] of [[mode, 7, 100], [0, 7, 108], [0, 7, 116], [bytes.length, 11, 124], [0, 11, 136]]) write(octal(number, digits), at);
    write("        0", 148);
    write("ustar\0" + "00", 257);
    write(`${octal(header.reduce((sum, byte) => sum + byte, 0), 6)}\0 `, 148);
    return [header, bytes, Buffer.alloc(-bytes.length & 511)];
  };
  const parts = Object.entries(entries).sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(entry);
  const zipped = gzipSync(Buffer.concat([...parts, Buffer.alloc(1024)]), { level: 9 });
  // The system that wrote it, which a reader of gzip ignores.
  zipped[9] = 255;
  writeFileSync(join(out, `${name}.tar.gz`), zipped);
}

/** The files of every archive. */
const papers = () => Object.fromEntries(["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "SECURITY.md"].map((path) => [path, { from: join(root, path) }]));

/** The programs of a platform, and the files by which they are services. */
function archivePrograms(out, platform, from) {
  const entries = { ...papers(), "THIRD-PARTY.txt": { from: join(from, "THIRD-PARTY.txt") } };
  for (const program of ALONE) entries[program] = { from: join(from, program), mode: 0o755 };
  for (const [folder, deploy] of [["agent", "clients/agent/deploy"], ["network", "clients/cli/deploy"]]) {
    for (const path of files(join(root, deploy))) entries[`${folder}/${path}`] = { from: join(root, deploy, path) };
  }
  archive(out, `muster-${version}-${platform}`, entries);
}

/** The explorer with all files of other parts that it is made of: the input of its image. */
function archiveExplorer(out) {
  const entries = { ...papers(), "THIRD-PARTY.txt": { from: join(root, "clients/explorer/page/dist/THIRD-PARTY.txt") } };
  const add = (path) => (entries[path] = { from: join(root, path) });
  for (const path of ["abi/muster.ts", "abi/parameters.ts", "clients/ts/src/generated/verifier.ts"]) add(path);
  const indexer = "clients/explorer/indexer";
  for (const path of [".npmrc", "hooks.mjs", "package.json", "package-lock.json", "ponder.config.ts", "ponder.schema.ts", "ponder.sh", "tsconfig.json"]) add(`${indexer}/${path}`);
  for (const folder of [`${indexer}/src`, "clients/explorer/page/dist", "clients/explorer/deploy"]) {
    // Somebody's settings hold a password.
    for (const path of files(join(root, folder))) if (!path.endsWith(".env") || path === "example.env") add(`${folder}/${path}`);
  }
  archive(out, `muster-explorer-${version}`, entries);
}

/**
 * Programs that anybody else's machine runs: without symbols, and content with an older glibc. Those that were built before, for tests, may
 * come from a newer system: there std's weak references to newer symbols get versions, too. Beside them lie the licences of their crates.
 */
function portable(work, built, compiled) {
  const to = join(work, "programs");
  mkdirSync(to);
  for (const program of ALL) {
    cpSync(join(built, program), join(to, program));
    // Those of the profile `dist` have none; to strip again on macOS would break their signatures.
    if (process.platform === "linux") execFileSync("strip", [join(to, program)]);
    const asked = [...readFileSync(join(to, program), "latin1").matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor));
    const newest = Math.max(0, ...asked);
    const wrong = `${program} asks for glibc 2.${newest}, and the packages promise 2.${GLIBC}: build it on an older system`;
    if (newest > GLIBC && compiled) throw new Error(wrong);
    if (newest > GLIBC) console.error(`release: ${wrong}`);
  }
  writeFileSync(join(to, "THIRD-PARTY.txt"), thirdParty(crates(["muster-network", "muster-agent", "muster-devnode", "muster-cli"])));
  return to;
}

/** The versions in all manifests, and that the change log tells of this one; with a tag, also what its publication needs. */
export function check(tag, sources = undefined) {
  const wrong = [];
  const same = (path, is, wanted) => is === wanted || wrong.push(`${path} says ${is}, and Cargo.toml ${wanted}`);
  // Of crates, and of what they need of each other: a version stands beside a path, or in the root.
  const [, members] = /^members = \[([^]*?)\]/m.exec(read("Cargo.toml"));
  for (const path of ["Cargo.toml", ...[...members.matchAll(/"(.+?)"/g)].map(([, member]) => `${member}/Cargo.toml`)]) {
    for (const [, own, beside] of read(path).matchAll(/^version = "(.*?)"|path = ".*?", version = "(.*?)"/gm)) same(path, own ?? beside, version);
    for (const [, own] of read(path).matchAll(/^repository = "(.*?)"/gm)) same(path, own, repository);
  }
  const locked = [...read("Cargo.lock").matchAll(/^name = "muster-.*"\nversion = "(.*)"\n(?!source)/gm)];
  if (locked.some(([, is]) => is !== version)) wrong.push("Cargo.lock has other versions: cargo update --workspace");
  const client = JSON.parse(read("clients/ts/package.json"));
  same("clients/ts/package.json", client.version, version);
  same("clients/ts/package.json", client.repository?.url, `git+${repository}.git`);
  same("package.json", JSON.parse(read("package.json")).repository.url, `git+${repository}.git`);
  same("clients/ts/package.json", client.peerDependencies["muster-devnode"], version);
  const react = JSON.parse(read("clients/react/package.json"));
  for (const is of [react.version, react.peerDependencies["muster-client"]]) same("clients/react/package.json", is, version);
  same("clients/react/package.json", react.repository.url, `git+${repository}.git`);
  // As the workflow looks for it, which makes its text the notes of the release.
  if (!read("CHANGELOG.md").split("\n").includes(`## ${version}`)) wrong.push(`CHANGELOG.md has no section "## ${version}"`);
  if (version.includes("-")) wrong.push(`${version} is a prerelease, which npm would publish as the newest version`);
  // Pages name files and tags by their version.
  for (const path of ["clients/react/README.md", "devnode/README.md", "docs/applications.md", "docs/devnode.md", "docs/examples.md"]) {
    for (const [, packed, tagged] of read(path).matchAll(/muster-(?:client|react)-(\d[\w.]*)\.tgz|muster-devnode\/v(\d[\w.]*)/g)) same(path, packed ?? tagged, version);
  }
  if (tag && /^Not published yet/m.test(read("CHANGELOG.md").split(`\n## ${version}\n`)[1]?.split("\n## ")[0])) wrong.push(`CHANGELOG.md says of ${version} that it is not published yet`);
  for (const path of tag ? UNPUBLISHED : []) {
    for (const [at, line] of read(path).split("\n").entries()) if (/published yet|obody has reserved|has never run/.test(line)) wrong.push(`${path}:${at + 1} says that something is not published yet`);
  }
  if (tag && tag !== `v${version}`) wrong.push(`the tag is ${tag}, and Cargo.toml says ${version}`);
  if (tag && sources && sources !== repository) wrong.push(`this is ${sources}, and Cargo.toml says ${repository}: npm takes no package of another repository`);
  return wrong;
}

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const hash = (bytes) => createHash("sha256").update(bytes).digest("hex");
const files = (at, under = "") =>
  readdirSync(join(at, under), { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? files(at, join(under, entry.name)) : [join(under, entry.name)]));

function release({ part, built, compiled, out, client }) {
  const work = mkdtempSync(join(tmpdir(), "muster-release-"));
  try {
    mkdirSync(join(out, "npm"), { recursive: true });
    if (part === "explorer") return archiveExplorer(out);
    const packages = [];
    if (part === "platform") {
      const platform = `${process.platform}-${process.arch}`;
      if (!PLATFORMS.includes(platform)) throw new Error(`there are no packages for ${platform}, only for ${PLATFORMS.join(", ")}`);
      const from = portable(work, built, compiled);
      for (const name of Object.keys(PROGRAMS)) packages.push(holder(work, name, platform, from));
      archivePrograms(out, platform, from);
    } else {
      packages.push(programs(work));
      for (const name of Object.keys(PROGRAMS)) packages.push(main(work, name));
      cpSync(client, join(out, "npm", `muster-client-${version}.tgz`));
    }
    execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", join(out, "npm"), ...packages], { cwd: work, stdio: ["ignore", "ignore", "inherit"] });
  } finally {
    rmSync(work, { recursive: true });
    sums(out);
  }
}

/** Of all files there; when the files of several machines lie in one folder, they are summed up together. */
function sums(out) {
  const all = files(out).filter((path) => path !== "SHA256SUMS").sort();
  writeFileSync(join(out, "SHA256SUMS"), all.map((path) => `${hash(readFileSync(join(out, path)))}  ${path}\n`).join(""));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const option = { type: "string" };
  const { values } = parseArgs({ options: { part: option, built: option, compiled: { type: "boolean" }, out: option, client: option, tag: option } });
  const { GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env;
  const wrong = check(values.tag, GITHUB_REPOSITORY && `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`);
  if (wrong.length) {
    console.error(wrong.map((line) => `release: ${line}`).join("\n"));
    process.exit(1);
  }
  if (values.part === "sums") sums(values.out);
  else if (values.part) release(values);
}
