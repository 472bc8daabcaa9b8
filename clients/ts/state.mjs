// Writes state/: a development node's chain with Muster deployed on it, from which the package's test network starts.
// MUSTER_DEVNODE and MUSTER_CLI name the binaries; the programs must be built (script/build). state/muster.json is put there last, so its
// presence means that the rest is complete. The same programs give the same state, byte by byte.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { encodeFunctionData, parseAbi } from "viem";

/** The chain's first time. It goes on with the clock of the machine that starts the network. */
const BEGINNING = 1_700_000_000;
const { MUSTER_DEVNODE, MUSTER_CLI } = process.env;
if (!MUSTER_DEVNODE || !MUSTER_CLI) throw new Error("MUSTER_DEVNODE and MUSTER_CLI must name muster-devnode and muster-dev");
const state = fileURLToPath(new URL("state/", import.meta.url));
mkdirSync(state, { recursive: true });
for (const name of readdirSync(state)) if (name.endsWith(".part") || name.endsWith(".part.log")) rmSync(join(state, name));
const [chain, muster] = ["chain.json", "muster.json"].map((name) => join(state, name));
const record = mkdtempSync(join(tmpdir(), "muster-"));

const node = spawn(MUSTER_DEVNODE, ["--port", "0", "--manual-time", `${BEGINNING}`, "--state", `${chain}.part`], { stdio: ["ignore", "pipe", "inherit"] });
/** Owns the chain: the account of every nitro development chain. */
const OWNER = "0x3f1Eae7D46d88F08fc2F8ed27FCb2AB183EB2d0E";
const ask = async (url, method, ...params) => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const { error, result } = await (await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body })).json();
  if (error) throw new Error(`${method}: ${error.message}`);
  return result;
};
const ended = new Promise((resolve) => node.on("exit", resolve));
// Otherwise the node would go on.
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));
process.on("exit", () => {
  node.kill();
  rmSync(record, { recursive: true, force: true });
});
try {
  const url = await new Promise((resolve, reject) => {
    let said = "";
    node.stdout.on("data", (data) => {
      const found = /Listening on (http:\S+?)[\s,]/.exec((said += data));
      if (found) resolve(found[1]);
    });
    ended.then((code) => reject(new Error(`muster-devnode ended with ${code}`)));
  });
  // Programs expire a year after their activation, and the package must work longer.
  const expiry = encodeFunctionData({ abi: parseAbi(["function setWasmExpiryDays(uint16)"]), args: [65_535] });
  await ask(url, "eth_sendTransaction", { from: OWNER, to: "0x0000000000000000000000000000000000000070", data: expiry });
  const settings = {
    RPC_URL: url,
    // The public key of every nitro development chain.
    PRIVATE_KEY: "0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659",
    DEPLOYMENTS: record,
    // The lower bound, so that tests pass the time of a proposal quickly.
    UPGRADE_DELAY: "172800",
  };
  const rest = Object.fromEntries(["OWNER", "TREASURY", "PARAMETERS", "MIN_PRICE", "MIN_STAKE", "STAKE_UNIT"].map((name) => [name, ""]));
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
  writeFileSync(`${muster}.part`, `${JSON.stringify({ address })}\n`);
  // It writes the chain as it ends.
  node.kill();
  await ended;
  rmSync(muster, { force: true });
  renameSync(`${chain}.part`, chain);
  renameSync(`${muster}.part`, muster);
} finally {
  node.kill();
  await ended;
  rmSync(`${chain}.part.log`, { force: true });
}
