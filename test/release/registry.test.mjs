// The published packages, from packing to their use on a machine that has Node.js and nothing else: test.sh runs it. BUILT names the folder
// of the programs, MUSTER_CLIENT the packed TypeScript package.
import assert from "node:assert/strict";
import { execFile, execFileSync, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { PLATFORMS, check, repository, version } from "../../script/npm/release.mjs";

const { runServer } = createRequire(import.meta.url)("verdaccio");
const root = fileURLToPath(new URL("../..", import.meta.url));
const { BUILT, MUSTER_CLIENT } = process.env;
const work = mkdtempSync(join(tmpdir(), "muster-registry-"));
after(() => rmSync(work, { recursive: true, maxRetries: 5 }));
const platform = `${process.platform}-${process.arch}`;
const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
/** Without the lines and widths of tables. */
const plain = (text) => text.replace(/\s+/g, " ").trim();
const inside = (name) => join(work, name);

/** Packs everything; `how` is the part that may differ from machine to machine. */
function pack(name, how) {
  const temporary = inside(`${name}-temporary`);
  mkdirSync(temporary);
  // npm says where it is called from, and by which package, on which no package may depend.
  const environment = { ...process.env, ...how.environment, TMPDIR: temporary, MUSTER_CLIENT };
  for (const part of ["platform", "common"]) {
    const script = [join(root, "script/release"), "--part", part, "--built", BUILT, "--out", inside(name)];
    execFileSync("sh", ["-c", `umask ${how.umask}; exec "$0" "$@"`, ...script], { cwd: how.cwd, env: environment, stdio: ["ignore", "ignore", "inherit"] });
  }
  return inside(name);
}

/** A machine without Rust: of the commands on its PATH only these are there. Its home, and all that npm keeps, begin empty. */
function machine(name, registry) {
  const home = inside(name);
  const commands = join(home, "commands");
  mkdirSync(join(home, "empty"), { recursive: true });
  mkdirSync(commands);
  for (const command of ["node", "npm", "npx", "sh", "cat"]) {
    symlinkSync(realpathSync(execFileSync("sh", ["-c", `command -v ${command}`], { encoding: "utf8" }).trim()), join(commands, command));
  }
  writeFileSync(join(home, ".npmrc"), `registry=${registry}\n//${new URL(registry).host}/:_authToken=anybody\nfund=false\naudit=false\nupdate-notifier=false\n`);
  const env = { PATH: commands, HOME: home, TMPDIR: work };
  return { cwd: join(home, "empty"), env, maxBuffer: 1 << 26 };
}

/** The TypeScript package's dependencies besides viem, out of the checkout: nothing else is in this registry. */
function others() {
  const cwd = join(root, "clients/ts");
  const paths = execFileSync("npm", ["ls", "--all", "--parseable", "--omit=dev", "--omit=peer"], { cwd, encoding: "utf8" }).trim().split("\n").slice(1);
  const copies = paths.map((path) => {
    const { publishConfig: _, scripts: __, ...manifest } = JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
    const copy = inside(`${manifest.name.replace("/", "-")}-${manifest.version}`);
    cpSync(path, copy, { recursive: true, filter: (source) => !source.slice(path.length).includes("node_modules") });
    writeFileSync(join(copy, "package.json"), JSON.stringify(manifest));
    return copy;
  });
  return new Set(copies);
}

let out;
let server;
let registry;
after(() => {
  server?.close();
  server?.closeAllConnections();
});
before(async () => {
  out = pack("first", { umask: "022", cwd: root, environment: { TZ: "Asia/Tokyo" } });
  const config = {
    configPath: inside("verdaccio.yaml"),
    self_path: work,
    storage: inside("storage"),
    auth: { htpasswd: { file: inside("htpasswd") } },
    // No other registry is asked: packages that are not published here are not there.
    uplinks: {},
    packages: { "**": { access: "$all", publish: "$all" } },
    log: { type: "stdout", format: "json", level: "fatal" },
    max_body_size: "500mb",
    web: { enable: false },
  };
  const app = await runServer(config);
  server = app.listen(0, "127.0.0.1");
  await new Promise((resolve, reject) => server.once("listening", resolve).once("error", reject));
  registry = `http://127.0.0.1:${server.address().port}/`;
});

test("all manifests say the same version and the same repository", () => {
  const [, section] = readFileSync(join(root, "CHANGELOG.md"), "utf8").split(`\n## ${version}\n`);
  const unpublished = section.startsWith("\nNot published yet.") ? [`CHANGELOG.md says of ${version} that it is not published yet`] : [];
  for (const path of ["README.md", "docs/applications.md", "docs/releases.md"]) {
    const lines = readFileSync(join(root, path), "utf8").split("\n");
    const found = [...lines.keys()].filter((at) => /published yet|obody has reserved|has never run/.test(lines[at]));
    // All pages say it, or none does.
    assert.equal(found.length > 0, section.startsWith("\nNot published yet."), path);
    unpublished.push(...found.map((at) => `${path}:${at + 1} says that something is not published yet`));
  }
  assert.deepEqual(check(undefined), []);
  assert.deepEqual(check(`v${version}`, repository), unpublished);
  assert.deepEqual(check("v99.0.0"), [...unpublished, `the tag is v99.0.0, and Cargo.toml says ${version}`]);
  assert.match(check(`v${version}`, `${repository}-of-another`).join(), /npm takes no package of another repository/);
});

test("another version in the root alone is noticed wherever it is forgotten", () => {
  const copy = inside("copy");
  for (const path of execFileSync("git", ["ls-files", "*Cargo.toml", "*package.json", "Cargo.lock", "*.md", "script/npm"], { cwd: root, encoding: "utf8" }).trim().split("\n")) {
    cpSync(join(root, path), join(copy, path));
  }
  writeFileSync(join(copy, "Cargo.toml"), readFileSync(join(copy, "Cargo.toml"), "utf8").replace(`\nversion = "${version}"`, '\nversion = "99.0.0-rc.1"'));
  const { status, stderr } = spawnSync(process.execPath, [join(copy, "script/npm/release.mjs")], { encoding: "utf8" });
  assert.equal(status, 1);
  for (const place of ["Cargo.toml says", "devnode/Cargo.toml says", "Cargo.lock has", "clients/ts/package.json says", "clients/react/package.json says", "clients/react/README.md says", "devnode/README.md says", "docs/examples.md says", "CHANGELOG.md has no section", "99.0.0-rc.1 is a prerelease"]) {
    assert.ok(stderr.includes(`release: ${place}`), `${place}: ${stderr}`);
  }
});

test("the page reserves the names of all packages", () => {
  const page = readFileSync(join(root, "docs/releases.md"), "utf8");
  const [npm, crates] = [...page.matchAll(/for name in (muster-\{.*); do/g)].map(([, names]) => execFileSync("bash", ["-c", `echo ${names}`], { encoding: "utf8" }).trim().split(" ").sort());
  const split = ["muster-devnode", "muster-network", "muster-demo"].flatMap((name) => [name, ...PLATFORMS.map((one) => `${name}-${one}`)]);
  assert.deepEqual(npm, ["muster-client", "muster-programs", "muster-react", ...split].sort());
  const published = [...readFileSync(join(root, "script/crates"), "utf8").matchAll(/muster-\w+/g)].map(([name]) => name);
  assert.deepEqual(crates, published.sort());
});

test("the same files give the same bytes, whoever packs them, where and when", () => {
  const again = pack("second", { umask: "077", cwd: tmpdir(), environment: { TZ: "America/Lima", LANG: "C" } });
  const [sums, others] = [out, again].map((folder) => readFileSync(join(folder, "SHA256SUMS"), "utf8"));
  assert.equal(others, sums);
  const listed = sums.trim().split("\n").map((line) => line.split("  "));
  for (const [hash, path] of listed) assert.equal(sha256(readFileSync(join(out, path))), hash, path);
  const packages = ["muster-devnode", "muster-network", "muster-demo"].flatMap((name) => [name, `${name}-${platform}`]);
  const wanted = [`muster-${version}-${platform}.tar.gz`, ...["muster-client", "muster-programs", ...packages].map((name) => `npm/${name}-${version}.tgz`)];
  assert.deepEqual(listed.map(([, path]) => path), wanted.sort());
});

test("programs that need a newer glibc than is promised are told of, and refused where they were compiled for a release", { skip: process.platform !== "linux" }, () => {
  const [built, stubs] = ["newer", "stubs"].map(inside);
  for (const folder of [built, stubs]) mkdirSync(folder);
  for (const program of ["muster", "muster-agent", "muster-dev", "muster-devnode"]) writeFileSync(join(built, program), "GLIBC_2.34 GLIBC_2.99");
  writeFileSync(join(stubs, "strip"), "#!/bin/sh\n", { mode: 0o755 });
  const release = (...args) =>
    spawnSync(process.execPath, [join(root, "script/npm/release.mjs"), "--part", "platform", "--built", built, "--out", inside("newer-out"), ...args], {
      encoding: "utf8", env: { ...process.env, PATH: `${stubs}:${process.env.PATH}` },
    });
  const told = release();
  assert.equal(told.status, 0, told.stderr);
  assert.equal(told.stderr.match(/^release: muster\S* asks for glibc 2\.99, and the packages promise 2\.34: /gm).length, 4);
  const refused = release("--compiled");
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /Error: muster asks for glibc 2\.99/);
});

test("what is packed", () => {
  const list = (file) => execFileSync("tar", ["-tzf", file], { encoding: "utf8" }).trim().split("\n").sort();
  const holds = (name) => list(join(out, `npm/${name}-${version}.tgz`)).map((path) => path.replace(/^package\//, ""));
  const licences = ["LICENSE-APACHE", "LICENSE-MIT", "README.md"];
  const plain = [...licences, "index.d.ts", "index.js", "package.json", "program.mjs"];
  assert.deepEqual(holds("muster-devnode"), [...plain.slice(0, 5), "muster-devnode.mjs", ...plain.slice(5)]);
  assert.deepEqual(holds("muster-network"), [...plain.slice(0, 5), "muster.mjs", ...plain.slice(5)]);
  assert.deepEqual(holds("muster-demo"), [...plain.slice(0, 5), "muster-demo.mjs", "muster-dev.mjs", ...plain.slice(5)]);
  for (const [name, program] of [["muster-devnode", "muster-devnode"], ["muster-network", "muster"], ["muster-demo", "muster-dev"]]) {
    assert.deepEqual(holds(`${name}-${platform}`), [...licences, "THIRD-PARTY.txt", `bin/${program}`, "package.json"]);
  }
  // Every program on chain, and its hash.
  const { programs } = JSON.parse(readFileSync(join(root, "build/manifest.json"), "utf8"));
  const built = Object.keys(programs).flatMap((name) => [`build/${name}.deploy`, `build/${name}.wasm`]);
  for (const path of [...built, "build/manifest.json", "build/router.deploy", "SHA256SUMS", "THIRD-PARTY.txt"]) assert.ok(holds("muster-programs").includes(path), path);
  const archived = list(join(out, `muster-${version}-${platform}.tar.gz`));
  for (const path of ["muster", "muster-agent", "muster-devnode", "agent/muster-agent.service", "network/muster-keeper.service"]) {
    assert.ok(archived.includes(`muster-${version}-${platform}/${path}`), path);
  }
  const text = (path) => execFileSync("tar", ["-xzOf", join(out, `muster-${version}-${platform}.tar.gz`), `muster-${version}-${platform}/${path}`], { encoding: "utf8" });
  assert.equal(text("LICENSE-MIT"), readFileSync(join(root, "LICENSE-MIT"), "utf8"));
  // Crates of the node, whose licences ask for the address of their source; one that brings no text; none of tests alone.
  const others = text("THIRD-PARTY.txt");
  assert.match(others, /^inferno \S+: CDDL-1\.0, https:\/\/github\.com\/jonhoo\/inferno$/m);
  assert.match(others, /^imbl \S+: MPL-2\.0\+, https:\/\/github\.com\/jneem\/imbl$/m);
  for (const title of [/COMMON DEVELOPMENT AND DISTRIBUTION LICENSE/, /Mozilla Public License Version 2\.0/, /^ +Apache License$/m]) assert.match(others, title);
  assert.match(others, /^alloy \S+\n {4}Copyright \(c\) Alloy Contributors$/m);
  assert.doesNotMatch(others, /^(ethers|proptest|serde_derive) /m);
  assert.ok(others.length < 300_000);
});

test("published, it runs where there is Node.js and nothing else", async (t) => {
  const publisher = machine("publisher", registry);
  // One after the other: there are several versions of some.
  for (const path of others()) await promisify(execFile)("npm", ["publish", "--silent", "--tag", "any", path], publisher);
  // As the workflow does it, with packages of other machines that hold nothing.
  const whole = inside("whole");
  cpSync(join(out, "npm"), whole, { recursive: true });
  const env = { ...publisher.env, PATH: process.env.PATH };
  // The registry is in this process.
  const publish = () => promisify(execFile)(join(root, "script/npm/publish"), ["whole"], { cwd: work, env }).then(({ stdout }) => stdout);
  await assert.rejects(publish(), /of all platforms\?/);
  const [other] = PLATFORMS.filter((one) => one !== platform);
  const pack = (name, content) => {
    const folder = inside(`${name}-${content}`);
    mkdirSync(join(folder, "package"), { recursive: true });
    writeFileSync(join(folder, "package/package.json"), JSON.stringify({ name, version, content }));
    execFileSync("tar", ["-czf", join(whole, `${name}-${version}.tgz`), "-C", folder, "package"]);
  };
  for (const one of PLATFORMS.filter((one) => one !== platform)) {
    for (const name of ["muster-devnode", "muster-network", "muster-demo"]) pack(`${name}-${one}`, "empty");
  }
  assert.equal((await publish()).match(/ is published/g).length, 17);
  // Begun again it leaves out what is there, and refuses to add to another build.
  assert.equal((await publish()).match(/ is there/g).length, 17);
  pack(`muster-devnode-${other}`, "another");
  await assert.rejects(publish(), new RegExp(`another muster-devnode-${other}@${version} is there already`));

  const { cwd, ...options } = machine("user", registry);
  const run = async (command, ...args) => (await promisify(execFile)(command, args, { cwd, ...options })).stdout;
  for (const absent of ["cargo", "rustc", "rustup"]) {
    await assert.rejects(run("sh", "-c", `command -v ${absent}`), `${absent} is on the PATH`);
  }

  await t.test("the demonstration, by one command in an empty folder, comes to what it comes to in the checkout", async (t) => {
    // Without the variables by which a user would have it otherwise.
    const env = { PATH: process.env.PATH, HOME: process.env.HOME };
    const here = promisify(execFile)(join(BUILT, "muster-dev"), ["demo", "--json"], { cwd: root, env, maxBuffer: 1 << 26 });
    const wanted = JSON.parse((await here).stdout);
    const begun = performance.now();
    const report = JSON.parse(await run("npx", "--yes", "muster-demo", "--json"));
    const seconds = (performance.now() - begun) / 1_000;
    assert.deepEqual(report, wanted);
    assert.deepEqual(readdirSync(cwd), [], "it leaves nothing in the folder");
    const again = performance.now();
    const shown = plain(await run("npx", "--yes", "muster-demo"));
    const warm = (performance.now() - again) / 1_000;
    const [, promised] = /```text\n([\s\S]*?)```/.exec(readFileSync(join(root, "README.md"), "utf8"));
    for (const line of promised.split("\n").map(plain).filter((line) => line && line !== "...")) assert.ok(shown.includes(line), `the README shows a line that the demonstration does not: ${line}`);
    const packages = ["muster-demo", `muster-demo-${platform}`, "muster-devnode", `muster-devnode-${platform}`, "muster-programs"];
    const bytes = packages.map((name) => statSync(join(out, `npm/${name}-${version}.tgz`)).size).reduce((sum, size) => sum + size);
    const size = (path) => (statSync(path).isDirectory() ? readdirSync(path).reduce((sum, name) => sum + size(join(path, name)), 0) : statSync(path).size);
    const installed = size(join(options.env.HOME, ".npm/_npx"));
    const mega = (number) => (number / 1e6).toFixed(1);
    t.diagnostic(`npx muster-demo: ${seconds.toFixed(1)} s, ${mega(bytes)} MB fetched, ${mega(installed)} MB installed; again: ${warm.toFixed(1)} s`);
  });

  await t.test("its flags, and what it cannot do", async () => {
    assert.match(await run("npx", "--yes", "muster-demo", "--help"), /--sampled <PERCENT>/);
    await assert.rejects(run("npx", "--yes", "muster-demo", "--agents", "5"), /which are in the repository alone/);
  });

  await t.test("the command line", async () => {
    assert.equal(await run("npx", "--yes", "muster-network", "--version"), `muster ${version}\n`);
  });

  await t.test("a test network, with the node of the package", async () => {
    await run("npm", "init", "-y");
    // Nothing else is in this registry, so viem is linked from the checkout, and npm is not to look for it.
    await run("npm", "install", "--legacy-peer-deps", "--save-dev", "muster-client", "muster-devnode");
    symlinkSync(join(root, "clients/ts/node_modules/viem"), join(cwd, "node_modules/viem"));
    const [shown, again] = ["README.md", "clients/ts/README.md"].map((path) => /```js\n(\/\/ network\.mjs\n[\s\S]*?)```/.exec(readFileSync(join(root, path), "utf8"))[1]);
    assert.equal(again, shown);
    writeFileSync(join(cwd, "network.mjs"), shown);
    assert.equal(await run("node", "network.mjs"), "succeeded\n");
    const program = `import { startNetwork } from "muster-client/test";
      const network = await startNetwork();
      try {
        const { client } = network;
        // As if the package were some years old: programs elsewhere have expired by then.
        await network.increaseTime(5 * 365 * 86_400);
        const { id, task } = await client.createTask({ kind: 1, input: "a question", value: 10_000n, dispatch: true });
        console.log((await client.waitForTask({ id, fromBlock: task.createdIn, timeout: 120_000 })).status);
      } finally {
        await network.stop();
      }`;
    writeFileSync(join(cwd, "old.mjs"), program);
    assert.equal(await run("node", "old.mjs"), "succeeded\n");
  });

  await t.test("the node ends with who started it, and says where it cannot be had", async () => {
    const node = spawn(join(cwd, "node_modules/.bin/muster-devnode"), ["--port", "0"], { cwd, env: options.env, stdio: ["ignore", "pipe", "inherit"] });
    const url = await new Promise((resolve, reject) => {
      let said = "";
      node.stdout.on("data", (data) => {
        const found = /Listening on (http:\S+?)[\s,]/.exec((said += data));
        if (found) resolve(found[1]);
      });
      node.once("exit", (code) => reject(new Error(`the node ended with ${code}: ${said}`)));
    });
    const ask = () => fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}' });
    assert.equal((await (await ask()).json()).result, "0x64aba");
    const ended = new Promise((resolve) => node.once("exit", resolve));
    node.kill("SIGTERM");
    await ended;
    // It has waited for the node.
    await assert.rejects(ask());
    const elsewhere = (property, value) =>
      run("node", "--input-type=module", "-e", `Object.defineProperty(process, "${property}", { value: ${value} }); (await import("muster-devnode")).path()`);
    await assert.rejects(elsewhere("platform", '"win32"'), /muster-devnode has no program for win32-\w+, only for linux-x64, linux-arm64, darwin-x64, darwin-arm64/);
    const other = PLATFORMS.find((one) => one !== platform).split("-");
    await assert.rejects(
      run("node", "--input-type=module", "-e", `Object.defineProperty(process, "platform", { value: "${other[0]}" }); Object.defineProperty(process, "arch", { value: "${other[1]}" });
        Object.defineProperty(process.report, "getReport", { value: () => ({ header: { glibcVersionRuntime: "2.36" } }) }); (await import("muster-devnode")).path()`),
      new RegExp(`muster-devnode-${other.join("-")} is missing: install muster-devnode`),
    );
    if (process.platform === "linux") {
      await assert.rejects(
        run("node", "--input-type=module", "-e", `Object.defineProperty(process.report, "getReport", { value: () => ({ header: {} }) }); (await import("muster-devnode")).path()`),
        /is for Linux with glibc/,
      );
    }
  });
});

test("what the registry shows of a package names its sources", async () => {
  for (const name of ["muster-client", "muster-demo", "muster-devnode", "muster-network", "muster-programs", `muster-devnode-${platform}`]) {
    const { versions } = await (await fetch(`${registry}${name}`)).json();
    const { repository: sources, license, description, keywords, engines, os } = versions[version];
    assert.equal(sources.url, `git+${repository}.git`, name);
    assert.ok(existsSync(join(root, sources.directory)), `${name}: ${sources.directory}`);
    assert.equal(license, "MIT OR Apache-2.0", name);
    assert.ok(description && keywords.length && (engines || os), name);
  }
});
