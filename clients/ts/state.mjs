// Writes state/: a development node's chain with Muster deployed on it, which the test network of the package begins with.
// MUSTER_DEVNODE and MUSTER_CLI name the binaries; the programs have to be built (script/build).
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const { MUSTER_DEVNODE, MUSTER_CLI } = process.env;
if (!MUSTER_DEVNODE || !MUSTER_CLI) throw new Error("MUSTER_DEVNODE and MUSTER_CLI have to name muster-devnode and muster-dev");
const state = fileURLToPath(new URL("state/", import.meta.url));
rmSync(state, { recursive: true, force: true });
mkdirSync(state);
const record = mkdtempSync(join(tmpdir(), "muster-"));

const node = spawn(MUSTER_DEVNODE, ["--port", "0", "--state", join(state, "chain.json")], { stdio: ["ignore", "pipe", "inherit"] });
const ended = new Promise((resolve) => node.on("exit", resolve));
try {
  const url = await new Promise((resolve, reject) => {
    let said = "";
    node.stdout.on("data", (data) => {
      const found = /Listening on (http:\S+?)[\s,]/.exec((said += data));
      if (found) resolve(found[1]);
    });
    ended.then((code) => reject(new Error(`muster-devnode ended with ${code}`)));
  });
  const settings = {
    RPC_URL: url,
    // The public key of every nitro development chain.
    PRIVATE_KEY: "0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659",
    DEPLOYMENTS: record,
    // The least there can be, so that tests pass the time of a proposal quickly.
    UPGRADE_DELAY: "172800",
  };
  const rest = Object.fromEntries(["OWNER", "TREASURY", "PARAMETERS", "MIN_PRICE", "MIN_STAKE", "STAKE_GRANULE"].map((name) => [name, ""]));
  try {
    execFileSync(MUSTER_CLI, ["deploy"], {
      cwd: fileURLToPath(new URL("../..", import.meta.url)),
      env: { ...process.env, ...rest, ...settings },
      stdio: "pipe",
    });
  } catch (error) {
    throw new Error(`muster-dev deploy: ${error.stderr}`);
  }
  const [file] = readdirSync(record);
  const { address } = JSON.parse(readFileSync(join(record, file), "utf8"));
  writeFileSync(join(state, "muster.json"), `${JSON.stringify({ address })}\n`);
} finally {
  node.kill();
  await ended;
  rmSync(join(state, "chain.json.log"), { force: true });
  rmSync(record, { recursive: true });
}
