// How many transactions with plain estimates fail for gas, by call, client and chain: node estimates.mjs [N]
//
// Each of N times, for each call and each client, on a quiet chain and on a busy one, where others' transactions come before the estimate and
// between it and the transaction's block. Every one begins from the same chain (evm_revert), on a node of its own whose time stands still; what
// others do is drawn from a seed. Fails if one of them fails for gas.
//
// MUSTER_DEVNODE and MUSTER_CLI name the node and muster-dev (run.sh does); the programs are those of build/.
import assert from "node:assert/strict";
import { execFile, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { JsonRpcProvider, Wallet } from "ethers";
import { createWalletClient, decodeEventLog, decodeFunctionResult, encodeAbiParameters, encodeFunctionData, http, keccak256, toFunctionSelector, toHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { compile } from "./compile.mjs";
import { Endpoint } from "./endpoint.mjs";

const N = Number(process.argv[2] ?? 1_000);
const CHAIN = 412346;
const NODES = 48;
const [SINGLE, SAMPLED, REPLICATED, RATED] = [0, 1, 2, 3];
const FEES = [10_000n, 10_000n, 30_000n, 70_000n];
/** More than any call costs, and as much as a transaction may have. */
const PLENTY = "0x1c9c380";
const abi = JSON.parse(readFileSync(new URL("../../abi/IMuster.json", import.meta.url), "utf8"));
const parameters = JSON.parse(readFileSync(new URL("../../abi/parameters.json", import.meta.url), "utf8"));

// ---------------------------------------------------------------- the node, and Muster on it

const folder = mkdtempSync(join(tmpdir(), "estimates-"));
const node = spawn(process.env.MUSTER_DEVNODE, ["--port", "0", "--manual-time", "1800000000"], { stdio: ["ignore", "pipe", "inherit"] });
process.on("exit", () => {
  node.kill();
  rmSync(folder, { recursive: true });
});
const url = await new Promise((resolve, reject) => {
  let said = "";
  node.on("exit", (code) => reject(new Error(`the node ended with ${code}`)));
  node.stdout.on("data", (data) => {
    const found = /Listening on (http:\S+?)[\s,]/.exec((said += data));
    if (found) resolve(found[1]);
  });
});
const deployment = { OWNER: "", TREASURY: "", PARAMETERS: "", UPGRADE_DELAY: "", MIN_PRICE: "1", MIN_STAKE: "0.0000000004", STAKE_UNIT: "1000000" };
const DEV_KEY = "0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659";
execFileSync(process.env.MUSTER_CLI, ["deploy"], {
  env: { ...process.env, ...deployment, DEPLOYMENTS: folder, RPC_URL: url, PRIVATE_KEY: DEV_KEY },
  stdio: ["ignore", "ignore", "inherit"],
});
const muster = JSON.parse(readFileSync(join(folder, `${CHAIN}.json`), "utf8")).address;

async function rpc(method, ...params) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const { result, error } = await (await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body })).json();
  if (error) throw new Error(`${method}: ${error.message}`);
  return result;
}
const encode = (functionName, args = []) => encodeFunctionData({ abi, functionName, args });

// ---------------------------------------------------------------- calls without an estimate

/** Sends with plenty of gas; gives the events, or nothing if it was refused. */
async function attempt(from, to, data, value = 0n) {
  const hash = await rpc("eth_sendTransaction", { from, to, data, value: toHex(value), gas: PLENTY });
  const { status, logs } = await rpc("eth_getTransactionReceipt", hash);
  if (status !== "0x1") return undefined;
  return logs.filter(({ address }) => address === muster.toLowerCase()).map(({ data, topics }) => decodeEventLog({ abi, data, topics }));
}
async function tell(from, name, args = [], value = 0n, to = muster) {
  const events = await attempt(from, to, to === muster ? encode(name, args) : forwarded(encode(name, args)), value);
  assert(events, `${name} was refused`);
  return events;
}
const view = async (functionName, args = []) =>
  decodeFunctionResult({ abi, functionName, data: await rpc("eth_call", { to: muster, data: encode(functionName, args) }) });
const number = (name) => parameters.find((parameter) => parameter.name === name).number;
const mine = (blocks) => rpc("anvil_mine", toHex(blocks));

const keyOf = (name) => keccak256(toHex(`estimates ${name}`));
/** An account with money. */
async function actor(name) {
  const account = privateKeyToAccount(keyOf(name));
  await rpc("anvil_setBalance", account.address, toHex(10n ** 21n));
  return { key: keyOf(name), address: account.address };
}
const caller = compile("test/solidity/Caller.sol");
const forwarded = (data) => encodeFunctionData({ abi: caller.abi, functionName: "run", args: [data] });
/** A contract that calls Muster. */
async function contract() {
  const code = caller.bytecode + muster.slice(2).toLowerCase().padStart(64, "0");
  const hash = await rpc("eth_sendTransaction", { from: owner.address, data: code, gas: PLENTY });
  return (await rpc("eth_getTransactionReceipt", hash)).contractAddress;
}

const MODELS = Array.from({ length: 10 }, (_, i) => 0x1000000000n + BigInt(i));
const spec = (redundancy, models = []) => ({
  kind: 0,
  units: 1,
  vram: 0,
  gpu: 0,
  redundancy,
  flags: 0,
  inputDigest: keccak256("0x07"),
  models,
});
const ANSWER = `0x2606cc31b1154b45${"00".repeat(24)}`;
const commitment = (...opening) =>
  keccak256(encodeAbiParameters(["uint64", "uint32", "uint8", "bytes32", "bytes32"].map((type) => ({ type })), opening));

// ---------------------------------------------------------------- the chain that every transaction begins from

await rpc("anvil_autoImpersonateAccount", true);
const owner = { key: DEV_KEY, address: privateKeyToAccount(DEV_KEY).address };
const crowd = await actor("crowd");
/** The operators of nodes: a key for half of them, a contract for the others. */
const operators = new Map();
const { stakeUnit } = await view("overview");
const [[stake], [fee]] = [await view("parameter", [number("minStake")]), await view("parameter", [number("groupFee")])];
for (let i = 0; i < NODES; i++) {
  const by = await actor(`operator ${i}`);
  const to = i % 2 ? await contract() : undefined;
  const models = MODELS.slice(i % 5, (i % 5) + 3);
  const value = (stake + (i ? 0n : fee)) * BigInt(stakeUnit);
  const events = await tell(by.address, "join", ["NVIDIA H100", 80, models], value, to ?? muster);
  operators.set(events.find(({ eventName }) => eventName === "NodeJoined").args.node, { ...by, contract: to });
}

async function create(redundancy, models) {
  const events = await tell(crowd.address, "createTask", [spec(redundancy, models)], FEES[redundancy]);
  return events.find(({ eventName }) => eventName === "TaskCreated").args.id;
}
/** A task that runs. */
async function running(redundancy) {
  const id = await create(redundancy);
  for (let tries = 0; tries < 200; tries++) {
    const events = await tell(owner.address, "dispatch", [16]);
    const begun = events.find(({ eventName, args }) => args.id === id && ["TaskStarted", "GroupFormed"].includes(eventName));
    if (begun) return { id, ...begun.args };
  }
  throw new Error(`task ${id} was never drawn`);
}
/** One that runs on a node of a key, or of a contract. */
async function runningOn(redundancy, byContract) {
  for (;;) {
    const task = await running(redundancy);
    if (Boolean(operators.get(task.node).contract) === byContract) return task;
  }
}
async function committed({ id, node: runner, group = 0 }, member = runner) {
  const opening = [id, member, 0, ANSWER, keccak256(toHex(`salt ${id} ${member}`))];
  const operator = operators.get(member);
  await tell(operator.address, "commit", [id, commitment(...opening)], 0n, operator.contract ?? muster);
  return [id, group, ...opening.slice(1)];
}
const lottery = (bps) => tell(owner.address, "setParameter", [number("sampleBps"), bps]);

await lottery(10_000n);
/** Tasks that are sampled, and whose validators nobody has called yet. */
const sampled = [];
for (let i = 0; i < 3; i++) {
  const task = await running(SAMPLED);
  await committed(task);
  sampled.push([task.id, task.node]);
}
await lottery(0n);
const unsampled = await committed(await running(SAMPLED));
const three = await running(REPLICATED);
const openings = [];
for (const member of three.nodes) openings.push(await committed(three, member));
await mine(4);
for (const opening of openings.slice(1)) await tell(crowd.address, "reveal", opening);
/** Calls that a node of a key (0) and one of a contract (1) can make. */
const ready = [];
for (const byContract of [false, true]) {
  const [single, checked] = [await runningOn(SINGLE, byContract), await runningOn(SAMPLED, byContract)];
  ready.push({ single, checked });
}
assert.equal((await view("overview")).pending, 0, "no draw is left");
for (const [i, byContract] of [false, true].entries()) {
  const idle = [...operators.keys()].filter((number) => Boolean(operators.get(number).contract) === byContract);
  for (const number of idle) if ((await view("node", [number])).status === 1) ready[i].idle = number;
  assert(ready[i].idle, "a node is idle");
}
let snapshot = await rpc("evm_snapshot");

// ---------------------------------------------------------------- others

/** Numbers below `n` that are the same in every run. */
function random(seed) {
  let state = BigInt(keccak256(toHex(seed))) | 1n;
  return (n) => {
    state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
    return Number(state >> 33n) % n;
  };
}

/** Something that others do. */
async function others(draw) {
  const some = (count) => MODELS.slice(draw(10 - count + 1)).slice(0, count);
  const created = (redundancy, models) => attempt(crowd.address, muster, encode("createTask", [spec(redundancy, models)]), FEES[redundancy]);
  switch (draw(9)) {
    case 0:
      return created(SINGLE);
    case 1:
      return created(SINGLE, some(2));
    case 2:
      return created(SINGLE, some(8));
    case 3:
      return created(SAMPLED, some(1));
    case 4:
      return created(REPLICATED);
    case 5:
      return created(RATED);
    case 6:
      return attempt(crowd.address, muster, encode("validate", sampled[draw(sampled.length)]));
    case 7: {
      const specs = Array.from({ length: 6 }, () => spec(SINGLE, some(draw(4))));
      return attempt(crowd.address, muster, encode("createTasks", [specs, specs.map(() => FEES[SINGLE]), false]), 6n * FEES[SINGLE]);
    }
    case 8:
      return mine(2);
  }
}

// ---------------------------------------------------------------- clients

const asked = await Endpoint.start(url);
const newest = await Endpoint.start(url, { estimateAt: "latest" });
const cast = (() => {
  const scope = new URL("node_modules/@foundry-rs/", import.meta.url).pathname;
  // The package's launcher loses the exit status.
  const [platform] = readdirSync(scope).filter((name) => name.startsWith("cast-"));
  return `${scope}${platform}/bin/cast`;
})();
const definition = { id: CHAIN, name: "devnode", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 }, rpcUrls: { default: { http: [asked.url] } } };
const byViem = (key, transaction) =>
  createWalletClient({ account: privateKeyToAccount(key), chain: definition, transport: http(asked.url, { retryCount: 0 }) }).sendTransaction(transaction);
const providers = [asked, newest].map((endpoint) => new JsonRpcProvider(endpoint.url, CHAIN, { staticNetwork: true, cacheTimeout: -1 }));
const byEthers = (provider) => async (key, transaction) => (await new Wallet(key, provider).sendTransaction(transaction)).hash;
const byCast = async (key, { to, data, value }) => {
  const words = ["send", "--async", "--private-key", key, "--rpc-url", asked.url, "--value", String(value), to, data];
  return (await promisify(execFile)(cast, words)).stdout.trim();
};
/** Each sends with the required fields alone, and gives the hash. `byContract`: through a contract of the caller's. */
const CLIENTS = [
  { name: "viem", endpoint: asked, send: byViem },
  { name: "ethers", endpoint: asked, send: byEthers(providers[0]) },
  { name: "ethers, estimates at latest", endpoint: newest, send: byEthers(providers[1]) },
  { name: "cast", endpoint: asked, send: byCast },
  { name: "a contract, by viem", endpoint: asked, send: byViem, byContract: true },
];
for (const client of CLIENTS) Object.assign(client, await actor(client.name), client.byContract && { contract: await contract() });
snapshot = await rpc("evm_snapshot");

// ---------------------------------------------------------------- calls

const eight = Array.from({ length: 8 }, (_, i) => spec(SINGLE, MODELS.slice(0, i % 3)));
const operate = (client, task, name, args) => ({ by: operators.get(task), name, args });
/**
 * The call, and its sender where that is not the client's own account. `first` is whether the client has just created a task. `calm` is
 * whether others only come after the estimate, because draws that are due before would refuse it.
 */
const CALLS = {
  createTask: { first: (i) => i % 2 === 1, call: () => ({ name: "createTask", args: [spec(SINGLE)], value: FEES[SINGLE] }) },
  createTasks: {
    calm: true,
    first: (i) => i % 2 === 1,
    call: () => ({ name: "createTasks", args: [eight, eight.map(() => FEES[SINGLE]), true], value: 8n * FEES[SINGLE] }),
  },
  submit: { call: (client, { single }) => operate(client, single.node, "submit", [single.id, ANSWER]) },
  commit: { call: (client, { checked }) => operate(client, checked.node, "commit", [checked.id, keccak256("0x09")]) },
  reveal: { call: (_client, _ready, i) => ({ name: "reveal", args: i % 2 ? unsampled : openings[0] }) },
  quit: { call: (client, { idle }) => operate(client, idle, "quit", []) },
  dispatch: { first: () => true, call: () => ({ name: "dispatch", args: [1] }) },
};

/** The interface's errors by selector. */
const errors = new Map(
  abi
    .filter(({ type }) => type === "error")
    .map(({ name, inputs }) => [toFunctionSelector(`${name}(${inputs.map(({ type }) => type).join()})`), name]),
);
/** The name of the error that a client gives as its reason not to send. */
function refusal(error) {
  const data = error.walk?.((cause) => typeof cause.data === "string")?.data ?? error.data ?? "";
  const found = [data.slice?.(0, 10), ...(error.stderr?.match(/0x[0-9a-f]{8}/g) ?? [])].find((selector) => errors.has(selector));
  return errors.get(found) ?? (error.details ?? error.stderr ?? error.message).trim();
}
/** Why a transaction failed: the name of the error, as far as it has one. */
async function reason(hash) {
  const { output, error } = await rpc("debug_traceTransaction", hash, { tracer: "callTracer" });
  return errors.get(output?.slice(0, 10)) ?? error ?? "no reason";
}
/** Too little gas shows as that, as a program that stopped, or as nothing at all. */
const forGas = (why) => /gas|^ProgramFailed$|^no reason$|^execution reverted$/i.test(why);

/** One transaction: "sent" well, "failed" for gas, or what it was refused with, before it was sent or in its block. */
async function once(busy, name, client, i) {
  await rpc("evm_revert", snapshot);
  snapshot = await rpc("evm_snapshot");
  const draw = random(`${busy} ${name} ${client.name} ${i}`);
  const { first, calm, call } = CALLS[name];
  const sent = call(client, ready[client.byContract ? 1 : 0], i);
  const { key, contract: through } = sent.by ?? client;
  if (busy && !calm) for (let more = draw(3); more > 0; more--) await others(draw);
  if (first?.(i)) await tell(client.address, "createTask", [spec(SINGLE)], FEES[SINGLE], client.contract ?? muster);
  client.endpoint.before = async ({ method }) => {
    if (!busy || method !== "eth_sendRawTransaction") return;
    for (let more = 1 + draw(3); more > 0; more--) await others(draw);
  };
  const data = encode(sent.name, sent.args);
  const value = sent.value ?? 0n;
  let hash;
  try {
    hash = await client.send(key, through ? { to: through, data: forwarded(data), value } : { to: muster, data, value });
  } catch (error) {
    return refusal(error);
  }
  const receipt = await rpc("eth_getTransactionReceipt", hash);
  if (receipt.status === "0x1") return "sent";
  const why = await reason(hash);
  return forGas(why) ? "failed" : why;
}

const rows = [];
const amiss = [];
for (const busy of [false, true]) {
  for (const name of Object.keys(CALLS)) {
    const row = [name, busy ? "busy" : "quiet"];
    for (const client of CLIENTS) {
      const got = {};
      for (let i = 0; i < N; i++) {
        const what = await once(busy, name, client, i);
        got[what] = (got[what] ?? 0) + 1;
      }
      const { sent = 0, failed = 0, ...refused } = got;
      const draws = refused.DrawsDue ?? 0;
      row.push(`${failed} of ${sent + failed}${draws > 0 ? `, ${draws} refused` : ""}`);
      const cell = `${name}, ${client.name}, ${row[1]} chain`;
      if (failed > 0) amiss.push(`${cell}: ${failed} failed for gas`);
      // Draws that are due refuse some; nothing else has a reason to.
      for (const why of Object.keys(refused)) if (why !== "DrawsDue") amiss.push(`${cell}: ${why}`);
      if (sent + failed === 0) amiss.push(`${cell}: none was sent`);
    }
    rows.push(row);
    console.error(`estimates: ${row.join(" | ")}`);
  }
}
const line = (cells) => `| ${cells.join(" | ")} |`;
console.log(`\nTransactions with plain estimates that failed for gas, of ${N} each; "refused": with DrawsDue, by the estimate or in the block.\n`);
console.log([line(["call", "chain", ...CLIENTS.map(({ name }) => name)]), line(["---", "---", ...CLIENTS.map(() => "---:")]), ...rows.map(line)].join("\n"));
await Promise.all([asked.stop(), newest.stop()]);
for (const provider of providers) provider.destroy();
assert.deepEqual(amiss, [], "what failed");
process.exit();
