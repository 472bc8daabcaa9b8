// `script/test --under-load`: each run goes on after a failure, and the tables at the end count runs, failures and seconds. The script is the committed one; the build,
// the executables and the clients are stand-ins.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { project } from "./stand-ins.mjs";

const { folder, write } = project([["muster-tests", "rpc"], ["muster-agent", "crash"], ["muster-core", "weight"]]);

/** Writes a program that fails in these of its runs. */
const failing = (path, runs, text = "") =>
  write(path, `echo >>"$0.runs"\nrun=$(wc -l <"$0.runs")\n${text}\ncase " ${runs.join(" ")} " in *" $run "*) echo "clients: indexer failed" >&2; exit 1 ;; esac`);
write("weight", "echo it does not wait for anything, and is not run >&2\nexit 1");
write("crash", "");

/** Runs under load so often; what is on standard output, and whether it failed. */
function run(times, { rpc = [], clients = [] }) {
  for (const file of ["rpc.runs", "test/clients/run.sh.runs", "recorded"]) rmSync(join(folder, file), { force: true });
  failing("rpc", rpc);
  failing("test/clients/run.sh", clients, 'echo "package: 7 s, more"; [ $run = 1 ] || echo "indexer: $((20 + run)) s, more"; [ "$CLIENTS" = "package indexer" ]');
  const { status, stdout, stderr } = spawnSync("script/test", ["--under-load", String(times)], { cwd: folder, encoding: "utf8", env: { ...process.env, RUSTUP_TOOLCHAIN: "any" } });
  // The machine decides how long runs take.
  return { status, stderr, said: stdout.replace(/^(\| \d+ \|) \d+ \| \d+ \|/gm, "$1 . | . |").replace(/^(\| muster-.*\| \d+ \| \d+ \|) \d+ \| \d+ \| \d+ \|$/gm, "$1 . |") };
}

test("failures end no run, are counted, and fail the whole", () => {
  const { status, said, stderr } = run(3, { rpc: [2], clients: [1, 2] });
  assert.equal(status, 1, stderr);
  assert.match(said, /\n3 runs beside 4 busy loops on \d+ processors, of which 2 failed\.\n/);
  const [, runs, tests] = said.split(/^\| (?:---[-:| ]*)\n/m);
  assert.equal(runs.split("\n\n")[0], "| 1 | . | . | indexer |\n| 2 | . | . | muster-tests rpc,indexer |\n| 3 | . | . |  |");
  assert.equal(tests.trim(), "| indexer | 2 | 2 | 22 | 22 | 23 |\n| muster-agent crash | 3 | 0 | . |\n| muster-tests rpc | 3 | 1 | . |\n| package | 3 | 0 | 7 | 7 | 7 |");
  assert.match(stderr, /test: muster-tests rpc failed/);
  const recorded = readFileSync(join(folder, "recorded"), "utf8").replace(/"seconds": \d+/g, '"seconds": .');
  const line = (what, found) => `load ${what} "runs": 1, "seconds": ., "found": ${found}\n`;
  assert.equal(recorded, line("tests", 0) + line("clients", 1) + line("tests", 1) + line("clients", 1) + line("tests", 0) + line("clients", 0));
});

test("without a failure it succeeds", () => {
  const { status, said, stderr } = run(2, {});
  assert.equal(status, 0, stderr);
  assert.match(said, /\n2 runs beside 4 busy loops on \d+ processors, of which 0 failed\.\n/);
});

test("a client that never says its seconds is in the table, too", () => {
  const { status, said } = run(1, { clients: [1] });
  assert.equal(status, 1);
  assert.match(said, /\n\| indexer \| 0 \| 1 \| \| \| \|\n/);
});
