// The crates that are published: a registry's demands on them, that nothing outside of them is part of them, and that they can be packed.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { repository, version } from "../../script/npm/release.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const target = mkdtempSync(join(tmpdir(), "muster-crates-"));
after(() => rmSync(target, { recursive: true }));
const cargo = (...args) => execFileSync("cargo", args, { cwd: root, encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] });
const all = JSON.parse(cargo("metadata", "--locked", "--offline", "--no-deps", "--format-version", "1")).packages;
/** `publish = false` is told as a list of no registries. */
const published = all.filter(({ publish }) => publish === null);

test("they say what a registry asks for", () => {
  assert.deepEqual(published.map(({ name }) => name).sort(), ["muster-agent", "muster-client", "muster-core", "muster-devnode", "muster-hashes", "muster-network"]);
  for (const crate of published) {
    const { name, description, license, readme, keywords, categories } = crate;
    assert.equal(crate.version, version, name);
    assert.equal(crate.repository, repository, name);
    assert.equal(license, "MIT OR Apache-2.0", name);
    assert.ok(description && existsSync(join(dirname(crate.manifest_path), readme)), name);
    assert.ok(keywords.length > 0 && keywords.length <= 5 && keywords.every((word) => /^[a-z][a-z0-9-]{1,19}$/.test(word)), name);
    assert.ok(categories.length > 0, name);
  }
});

test("what they are made of is published, with a version", () => {
  for (const { name, dependencies } of published) {
    for (const dependency of dependencies.filter(({ kind, path }) => kind !== "dev" && path)) {
      assert.ok(published.some((other) => other.name === dependency.name), `${name} needs ${dependency.name}, which is not published`);
      assert.equal(dependency.req, `^${version}`, `${name} on ${dependency.name}`);
    }
  }
});

test("packed, each holds all that it is compiled from, and nothing else", () => {
  cargo("package", "--locked", "--offline", "--no-verify", "--allow-dirty", "--target-dir", target, ...published.flatMap(({ name }) => ["-p", name]));
  for (const { name } of published) {
    const folder = `${name}-${version}`;
    execFileSync("tar", ["-xzf", join(target, "package", `${folder}.crate`), "-C", target]);
    const files = readdirSync(join(target, folder), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const paths = files.map(({ parentPath, path, name }) => join(parentPath ?? path, name).slice(join(target, folder).length + 1));
    for (const path of ["Cargo.lock", "LICENSE-APACHE", "LICENSE-MIT", "README.md"]) assert.ok(paths.includes(path), `${name}: ${path}`);
    assert.ok(paths.includes("src/lib.rs") || paths.includes("src/main.rs"), name);
    assert.deepEqual(paths.filter((path) => !/^(src\/|README\.md$|LICENSE-|Cargo\.|\.cargo_vcs_info\.json$)/.test(path)), [], name);
    // Tests at the end of a file are compiled in the repository alone.
    for (const path of paths.filter((path) => path.endsWith(".rs"))) {
      const [code] = readFileSync(join(target, folder, path), "utf8").split("#[cfg(test)]\nmod tests");
      for (const [, macro, file] of code.matchAll(/\b(include_str|include_bytes|include)!\(\s*"([^"]+)"/g)) {
        assert.ok(existsSync(join(target, folder, dirname(path), file)), `${name}: ${path} includes ${file} (${macro})`);
      }
      for (const [, file] of code.matchAll(/sol!\(\s*(?:#\[[^\]]*\]\s*)*"([^"]+)"/g)) {
        assert.ok(existsSync(join(target, folder, file)), `${name}: ${path} reads ${file}`);
      }
    }
  }
});

test("published again, crates that are there are left out, and the first that is refused ends it with its reason", () => {
  const stub = join(target, "cargo");
  const publish = (refused) => {
    const script = `#!/bin/sh\ncase $5 in\n  muster-core) echo "error: crate $5@1 already exists on a registry" >&2; exit 101 ;;\n  ${refused}) echo "error: too many new crates" >&2; exit 101 ;;\nesac\n`;
    writeFileSync(stub, script, { mode: 0o755 });
    return spawnSync(join(root, "script/crates"), { env: { ...process.env, PATH: `${target}:${process.env.PATH}` }, encoding: "utf8" });
  };
  const whole = publish("none");
  const said = whole.stdout.trim().split("\n");
  assert.equal(whole.status, 0);
  assert.deepEqual(said.map((line) => line.split(" ")[0]).sort(), published.map(({ name }) => name).sort());
  // Each after those it is made of.
  const order = said.map((line) => line.split(" ")[0]);
  for (const { name, dependencies } of published) {
    for (const { name: needed } of dependencies.filter(({ kind, path }) => kind !== "dev" && path)) assert.ok(order.indexOf(needed) < order.indexOf(name), `${name} before ${needed}`);
  }
  assert.deepEqual(said.slice(0, 2), ["muster-core is there", "muster-hashes is published"]);
  const refused = publish("muster-network");
  assert.deepEqual([refused.status, refused.stderr], [1, "error: too many new crates\n"]);
});
