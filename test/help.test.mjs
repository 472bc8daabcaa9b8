// node --test test/help.test.mjs
// Every script of script/ answers --help with its head, and wrong flags are refused, before anything is installed or built.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = join(root, "script");
const shell = /^#!(\/bin\/sh|\/usr\/bin\/env bash)\n/;
const scripts = readdirSync(folder).filter((name) => statSync(join(folder, name)).isFile() && shell.test(readFileSync(join(folder, name), "utf8"))).concat("npm/publish");

/** Calls a script from another folder, where every tool that builds or installs fails and says so. */
function call(name, ...args) {
  const tools = mkdtempSync(join(tmpdir(), "help-"));
  try {
    for (const tool of ["cargo", "rustup", "npm", "node", "python3", "docker"]) {
      writeFileSync(join(tools, tool), `#!/bin/sh\necho "ran ${tool}" >&2\nexit 70\n`);
      chmodSync(join(tools, tool), 0o755);
    }
    // Its first folders would be cargo's and those of the project.
    const env = { PATH: `${tools}:/usr/bin:/bin`, HOME: tools, CARGO_HOME: tools };
    return spawnSync(join(folder, name), args, { cwd: tools, env, encoding: "utf8", timeout: 300_000 });
  } finally {
    rmSync(tools, { recursive: true });
  }
}

test("every script answers --help with its head", () => {
  assert.ok(scripts.length > 15, scripts.join(" "));
  for (const name of scripts) {
    const [, ...lines] = readFileSync(join(folder, name), "utf8").split("\n");
    const head = lines.slice(0, lines.findIndex((line) => !line.startsWith("#"))).map((line) => line.replace(/^# ?/, "") + "\n").join("");
    for (const flag of ["--help", "-h"]) {
      const { status, stdout, stderr } = call(name, flag);
      assert.deepEqual({ name, status, stdout, stderr }, { name, status: 0, stdout: head, stderr: "" });
    }
  }
});

test("script/release without a flag's value answers with its head", () => {
  for (const flag of ["--part", "--out", "--built"]) {
    const { status, stdout, stderr } = call("release", flag);
    assert.deepEqual([status, stdout], [2, ""]);
    assert.match(stderr, /^Builds what is published /);
  }
});

test("script/demo refuses a flag that it has not, and takes those that it lists", () => {
  for (const args of [["--cheat", "2"], ["--tasks=9"], ["--agents", "5", "--speed", "2"]]) {
    const { status, stderr } = call("demo", ...args);
    assert.equal(status, 2, stderr);
    assert.match(stderr, /^demo: there is no flag --(cheat|tasks|speed with --agents): script\/demo --help lists them\n$/);
  }
  // A copy, whose environment ends it.
  const copy = mkdtempSync(join(tmpdir(), "demo-"));
  try {
    copyFileSync(join(folder, "demo"), join(copy, "demo"));
    writeFileSync(join(copy, "env"), "echo goes on; exit");
    for (const args of [["--cheats=2", "--vram", "X=1"], ["--agents", "5", "--kills", "3"]]) {
      const { stdout, stderr } = spawnSync(join(copy, "demo"), args, { encoding: "utf8" });
      assert.deepEqual([stdout, stderr], ["goes on\n", ""]);
    }
  } finally {
    rmSync(copy, { recursive: true });
  }
});
