// `script/test` as a whole: executables and clients run side by side, a failure of either fails it, and ended early it leaves nothing behind. The
// script is the committed one; everything that it calls is a stand-in.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { project } from "./stand-ins.mjs";

const { folder, write } = project([["muster-tests", "rpc"]]);
for (const path of ["script/lint", "script/abi", "script/fuzz", "script/bench", "bin/cargo"]) write(path, "");
for (const path of ["test/own.test.mjs", "script/prose/own.test.mjs"]) write(path, "");

/** Programs that each wait until the other has begun, and then end with these codes. */
function standIns(code, clientsCode) {
  const meets = (own, other) => `touch ${own}.begun\nfor _ in $(seq 600); do [ ! -e ${other}.begun ] || break; sleep 0.1; done\n[ -e ${other}.begun ] || exit 9\n`;
  for (const name of ["rpc", "clients"]) rmSync(join(folder, `${name}.begun`), { force: true });
  write("rpc", `${meets("rpc", "clients")}echo 'the executable says this'\nexit ${code}`);
  write("test/clients/run.sh", `${meets("clients", "rpc")}echo "viem: 7 s, of a processor 3 s and the system's 1 s"\n[ -z "$CLIENTS" ] || exit 8\nexit ${clientsCode}`);
}
const options = { cwd: folder, encoding: "utf8", env: { ...process.env, RUSTUP_TOOLCHAIN: "any", CLIENTS: "" } };

for (const [code, clientsCode] of [[0, 0], [1, 0], [0, 1]]) {
  test(`executables that end with ${code} beside clients that end with ${clientsCode}`, () => {
    standIns(code, clientsCode);
    const { status, stdout, stderr } = spawnSync("script/test", options);
    assert.equal(status, code || clientsCode, stdout + stderr);
    assert.match(stdout, /the executable says this/);
    assert.match(stdout, /^client viem +7 +4$/m);
    assert.match(stdout, /^muster-tests rpc +\d+ +\d+$/m);
    for (const job of ["fuzzing", "examples", "gas", "sources"]) assert.match(stdout, new RegExp(`^script ${job} `, "m"));
    assert.match(stdout, /^tests +\d+ +\d+$/m);
  });
}

test("after a change, clippy reads the packages that are asked for, and the tests of the sources run", () => {
  write("script/lint", 'printf "%s\\n" "$@" >linted');
  write("test/changed.mjs", 'console.log("package muster-tests\\npackage muster-core\\nsources")');
  write("rpc", "echo 'the executable says this'");
  const { status, stdout, stderr } = spawnSync("script/test", ["--changed", "HEAD"], options);
  assert.equal(status, 0, stdout + stderr);
  assert.equal(readFileSync(join(folder, "linted"), "utf8"), "--packages\nmuster-tests\nmuster-core\n");
  assert.match(stdout, /the executable says this/);
  assert.match(stdout, /^script sources /m);
  assert.doesNotMatch(stdout, /^script gas /m);
});

test("ended early, nothing goes on", async () => {
  // Both wait for ever; the clients end what they have begun.
  write("rpc", "sleep 1000 &\necho $! >rpc.begun\nwait");
  write("test/clients/run.sh", "trap 'kill $pid' EXIT\ntrap 'exit 1' TERM\nsleep 1000 &\npid=$!\necho $pid >clients.begun\nwait $pid");
  for (const name of ["rpc.begun", "clients.begun"]) rmSync(join(folder, name), { force: true });
  const pids = () => ["rpc.begun", "clients.begun"].map((name) => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), "utf8").trim() : "")).filter(Boolean);
  const child = spawn("script/test", { ...options, stdio: "ignore", detached: true });
  const gone = new Promise((resolve) => child.on("exit", (code) => resolve(code)));
  while (pids().length < 2) await setTimeout(50);
  child.kill("SIGTERM");
  assert.equal(await gone, 130);
  const left = () => pids().filter((pid) => spawnSync("ps", ["-o", "stat=", "-p", pid], { encoding: "utf8" }).stdout.match(/^[^Z]/));
  for (let i = 0; i < 1_200 && left().length > 0; i++) await setTimeout(50);
  assert.deepEqual(left(), []);
});
