// Every event and every error of the interface, through whichever client is handed in.
//
// The calls are the same for all clients; sending, calling and decoding is theirs. The expected results stand here. The names of values are
// read from abi/IMuster.sol, not from the ABI that the client decodes with.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { DEV_KEY } from "./node.mjs";

export const DIGEST = `0x${"09".repeat(32)}`;
export const FEE = 10_000n;
const ZERO = `0x${"00".repeat(20)}`;
const DAY = 86_400n;
const parameters = JSON.parse(readFileSync(new URL("../../abi/parameters.json", import.meta.url), "utf8"));
/** The number of a parameter. */
export const numberOf = (name) => {
  const found = parameters.find((parameter) => parameter.name === name);
  assert(found, `there is no parameter ${name}`);
  return found.number;
};
/** Those that the story sets. */
const MIN_PRICE = numberOf("minPrice");
const SD_OVERHEAD = numberOf("sdOverhead");
const SD_UNIT = numberOf("sdUnit");
const LIMIT_MAX = numberOf("limitMax");
const START_FEE = numberOf("startFeeBps");
const DRAW_DELAY = numberOf("drawDelay");
const MIN_STAKE = numberOf("minStake");
const UNBONDING = numberOf("unbonding");
const QUEUE_TIME = numberOf("queueTime");
const GROUP_FEE = numberOf("groupFee");

const SCORES = "takes a validation with scores, which the tests in Rust make";
const RATED = "takes a group chosen by ratings, which the tests in Rust make";
/** Events and errors that neither this story nor validated.mjs brings about, and why. */
const OUT_OF_REACH = {
  event: {
    GroupChosen: RATED,
    MemberCalled: "takes a validator that is busy, which the tests in Rust make",
    NodeKickedOut: SCORES,
    NodeRated: RATED,
    NodeSetAside: "takes a draw of validators that meets a paused node, which the tests in Rust make",
    NodeSlashed: SCORES,
    NodeWaits: "takes a replicated task that is queued, which the tests in Rust make",
    ScoreRecorded: SCORES,
  },
  error: {
    KickedOut: SCORES,
    StakeLocked: "takes a node that leaves with open commitments, which the tests in Rust make",
    TooManyValidatorDraws: "takes 255 sampled tasks at once",
    BadInitialisation: "takes a router that is not initialised, which only its deployer can initialise",
    TooManyGpuModels: "takes 65,534 joins with different GPU names",
    NetworkFull: "takes 2^24 nodes",
    TooManyPending: "takes 4,095 tasks within 64 blocks",
  },
};

/** Events and errors as abi/IMuster.sol declares them. */
const declared = (() => {
  const source = readFileSync(new URL("../../abi/IMuster.sol", import.meta.url), "utf8");
  const found = { event: {}, error: {} };
  for (const [, kind, name, list] of source.matchAll(/^ *(event|error) (\w+)\((.*)\);$/gm)) {
    found[kind][name] = list.split(", ").filter(Boolean).map((one) => {
      const words = one.split(" ");
      return { type: words[0], indexed: words.includes("indexed"), name: words.at(-1) };
    });
  }
  return found;
})();

/** The decoded value, if it is declared like that. */
export function declaredAs(kind, { name, args }) {
  assert.ok(declared[kind][name], `${name} is no ${kind} of abi/IMuster.sol`);
  assert.deepEqual(Object.keys(args), declared[kind][name].map((value) => value.name), `names of ${name}`);
  return { name, args };
}

/** Decoded values, however the client holds them, as an object by name: numbers as bigint, addresses in lower case. */
export function byName(inputs, values) {
  const plain = ({ type, components }, value) => {
    if (type.endsWith("[]")) return Array.from(value, (one) => plain({ type: type.slice(0, -2), components }, one));
    if (type === "tuple") return byName(components, value);
    if (type === "address") return value.toLowerCase();
    return /^u?int/.test(type) ? BigInt(value) : value;
  };
  const get = (name, i) => {
    if (typeof values.getValue === "function") return values.getValue(name);
    return Array.isArray(values) ? values[i] : values[name];
  };
  return Object.fromEntries(inputs.map((input, i) => [input.name, plain(input, get(input.name, i))]));
}

/** A task's specification: one image on any node, unless told otherwise. */
export const spec = (change = {}) => ({
  kind: 0,
  units: 1,
  vram: 0,
  gpu: 0,
  redundancy: 0,
  flags: 0,
  inputDigest: `0x${"07".repeat(32)}`,
  models: [],
  ...change,
});

/** A key that nobody has used. */
export const newKey = () => `0x${randomBytes(32).toString("hex")}`;

function cast(...words) {
  const scope = new URL("node_modules/@foundry-rs/", import.meta.url).pathname;
  // The package's launcher loses the exit status.
  const [platform] = readdirSync(scope).filter((name) => name.startsWith("cast-"));
  return execFileSync(`${scope}${platform}/bin/cast`, words, { encoding: "utf8" }).trim();
}

/** A value of a type, other than its neighbours'. */
const sample = (type, i) => {
  if (type.endsWith("[]")) return [sample(type.slice(0, -2), i), sample(type.slice(0, -2), i + 1)];
  if (type === "address") return `0x${String(i + 1).repeat(40)}`;
  if (type === "bool") return true;
  if (type.startsWith("bytes")) return `0x${String(i + 1).repeat(2).repeat(Number(type.slice(5)))}`;
  return BigInt(i + 100);
};

/** The same as cast takes it. */
const spelled = (value) => (Array.isArray(value) ? `[${value.map(spelled).join()}]` : String(value));

/** The bytes that the chain would send, had it happened: encoded by cast from the declaration in abi/IMuster.sol. */
function encoded(kind, name) {
  const inputs = declared[kind][name];
  const values = inputs.map(({ type }, i) => sample(type, i));
  const signature = `${name}(${inputs.map(({ type }) => type).join()})`;
  const words = (list) => {
    const types = list.map((i) => inputs[i].type).join();
    return list.length === 0 ? "0x" : cast("abi-encode", `f(${types})`, ...list.map((i) => spelled(values[i])));
  };
  const all = inputs.map((_, i) => i);
  const args = Object.fromEntries(inputs.map((input, i) => [input.name, values[i]]));
  if (kind === "error") return { args, data: cast("sig", signature) + words(all).slice(2) };
  const topics = all.filter((i) => inputs[i].indexed).map((i) => words([i]));
  return { args, topics: [cast("sig-event", signature), ...topics], data: words(all.filter((i) => !inputs[i].indexed)) };
}

/**
 * Plays the story on a contract with nobody in it, owned by the development account.
 *
 * The client gives `address` (of a key), `call(name, args)` (a view's result), `encode(name, args)`, and `send(key, {to, data, value})` (a
 * receipt that succeeded). It gives `refusal({from, to, data, value, gas})` (decoded), `refused(from, name, args, value)` (the same by the
 * client's own way of calling a function), and `rpc(method, params)`. `error(data)` and `event(log)` are decoders, giving `{name, args}`.
 * An optional `compare()` is called while tasks are Pending, queued and running, and nodes wait apart.
 *
 * `before` are the names that others have seen through the same client, `{event, error}`.
 */
export async function story(muster, client, before) {
  const seen = { event: new Set(before.event), error: new Set(before.error) };
  const happened = [];

  const note = (kind, got) => {
    seen[kind].add(got.name);
    return declaredAs(kind, got);
  };
  const one = (events, name) => {
    const [event, ...more] = events.filter((event) => event.name === name);
    assert.ok(event && more.length === 0, `one ${name} in ${events.map((event) => event.name)}`);
    return event.args;
  };
  const decode = (logs) => logs.map((log) => note("event", client.event(log)));
  const send = async (key, name, args = [], value = 0n) => {
    const { logs } = await client.send(key, { to: muster, data: client.encode(name, args), value });
    const events = decode(logs);
    happened.push(...events);
    return events;
  };
  const rule = (name, ...args) => send(DEV_KEY, name, args);
  const same = (got, error, values) => {
    note("error", got);
    const names = declared.error[error].map((value) => value.name);
    const wanted = Object.fromEntries(names.map((name, i) => [name, values[i]]));
    assert.deepEqual([got.name, got.args], [error, wanted]);
  };
  /** The call of a function is refused, with these values. */
  const refused = async (from, name, args, value, error, ...values) =>
    same(await client.refused(from, name, args, value), error, values);
  /** The same for any calldata to any contract. */
  const refusal = async (call, error, ...values) => same(await client.refusal({ from: me, to: muster, ...call }), error, values);
  const addressOf = (key) => client.address(key).toLowerCase();
  const selector = (name) => client.encode(name, []).slice(0, 10);
  const actor = async (stake = 0n) => {
    const key = newKey();
    const address = addressOf(key);
    await client.send(DEV_KEY, { to: address, value: 20_000_000_000_000_000n + stake });
    return { key, address };
  };
  const gpus = new Set();
  const join = async (gpu, vram, models) => {
    const operator = await actor(4n * stake);
    // The first to join with a GPU pays for its name.
    const fee = gpus.has(gpu) ? 0n : groupFee;
    gpus.add(gpu);
    const joined = one(await send(operator.key, "join", [gpu, vram, models], stake + fee), "NodeJoined");
    assert.deepEqual([joined.operator, joined.stake, joined.models], [operator.address, stake, models]);
    return { ...operator, node: joined.node };
  };
  const travel = async (seconds) => {
    await client.rpc("evm_increaseTime", [Number(seconds)]);
    await client.rpc("evm_mine", []);
  };
  const place = async (id) => {
    // A draw among nodes of low merit may stay undecided, and is made again from another block's hash.
    const settled = ({ name, args }) => ["TaskStarted", "TaskQueued"].includes(name) && args.id === id;
    for (let tries = 0; tries < 200; tries++) {
      if (happened.some(settled)) return happened.filter(settled).at(-1).args;
      await rule("dispatch", 16);
    }
    throw new Error(`task ${id} was neither started nor queued`);
  };
  const create = async (models = []) => {
    const { id } = one(await send(app.key, "createTask", [spec({ models })], FEE), "TaskCreated");
    return { id, ...(await place(id)) };
  };

  const me = addressOf(DEV_KEY);
  const overview = await client.call("overview", []);
  const stakeUnit = BigInt(overview.stakeUnit);
  const parameter = async (number) => BigInt((await client.call("parameter", [number]))[0]);
  const stake = (await parameter(MIN_STAKE)) * stakeUnit;
  const groupFee = (await parameter(GROUP_FEE)) * stakeUnit;
  const app = await actor();
  const outsider = app.address;
  const refuse = (name, args, error, ...values) => refused(outsider, name, args, 0n, error, ...values);
  const creating = (change, value, error, ...values) => refused(outsider, "createTask", [spec(change)], value, error, ...values);
  const joining = (gpu, vram, models, value, error, ...values) =>
    refused(outsider, "join", [gpu, vram, models], value, error, ...values);

  const compare = () => client.compare?.();

  // The router and the programs behind it.
  await refusal({ data: "0xdeadbeef" }, "UnknownFunction", "0xdeadbeef");
  await refusal({ data: "0x", value: 1n }, "MalformedCalldata", "0x00000000");
  const joins = client.encode("join", ["", 0, []]).slice(0, 10);
  await refusal({ data: joins }, "MalformedCalldata", joins);
  // A program that is one invalid instruction.
  const { contractAddress } = await client.send(DEV_KEY, { data: "0x60fe60005360016000f3" });
  const broken = contractAddress.toLowerCase();
  const bad = ["0xbadbadba"];
  const delay = BigInt((await client.call("upgrades", []))[0]);
  await refused(me, "proposePrograms", [outsider, bad], 0n, "NoCode", outsider);
  await refuse("acceptPrograms", [broken, bad], "NotProposed");
  const proposed = one(await rule("proposePrograms", broken, bad), "ProgramsProposed");
  await refuse("acceptPrograms", [broken, bad], "TooEarly", proposed.effective);
  await rule("proposePrograms", ZERO, bad);
  await travel(delay);
  await send(app.key, "acceptPrograms", [broken, bad]);
  await refusal({ data: "0xbadbadba" }, "ProgramFailed", "0xbadbadba", broken);
  await send(app.key, "acceptPrograms", [ZERO, bad]);
  await refusal({ data: selector("pause"), value: 5n }, "ValueNotAccepted", 5n);
  const little = 500_000n;
  const low = note("error", await client.refusal({ from: me, to: muster, data: client.encode("dispatch", [1]), gas: little }));
  assert.deepEqual([low.name, low.args.left < little, low.args.needed > little], ["GasTooLow", true, true]);
  // Programs called directly see an empty storage of their own.
  const [nodes, admin] = [
    await client.call("facetAddress", [selector("pause")]),
    await client.call("facetAddress", [selector("acceptOwnership")]),
  ];
  await refusal({ to: nodes, data: selector("pause") }, "NotInitialised");
  await refusal({ to: admin, data: client.encode("initialise", [me, me, 1000, 1000, 604_800, []]) }, "NotOwner", me);
  await refuse("install", [broken, "0x"], "AlreadyInitialised");

  // Administration.
  await refuse("setPaused", [true], "NotOwner", outsider);
  await refuse("acceptOwnership", [], "NotPendingOwner", outsider);
  await refuse("withdraw", [ZERO], "ZeroAddress");
  await refused(me, "setParameter", [200, 1], 0n, "ParameterUnknown", 200n);
  await refused(me, "setParameter", [DRAW_DELAY, 65], 0n, "ParameterOutOfBounds", BigInt(DRAW_DELAY), 65n, 0n, 64n);
  await refuse("acceptTreasury", [], "NotProposed");
  await refuse("withdraw", [outsider], "NothingToWithdraw", outsider);
  await refused(me, "proposePrograms", [broken, Array(65).fill(joins)], 0n, "TooManyAtOnce", 65n, 64n);
  await refused(me, "setParameter", [UNBONDING, 3_600], 0n, "ParameterDelayed", BigInt(UNBONDING));
  await refused(me, "proposeParameter", [MIN_PRICE, 3], 0n, "ParameterNotDelayed", BigInt(MIN_PRICE));
  assert.equal(one(await rule("proposeParameter", UNBONDING, 3_600), "ParameterProposed").value, 3_600n);
  assert.deepEqual(one(await rule("setParameter", MIN_PRICE, 3), "ParameterChanged"), {
    parameter: BigInt(MIN_PRICE),
    before: 1n,
    value: 3n,
  });

  // Tasks, with nobody there and on wrong terms.
  await creating({}, FEE, "NoNodes");
  const gpu = "NVIDIA L40";
  const a = await join(gpu, 48, [5n]);
  assert.deepEqual([one(happened, "GpuGroupCreated").name, one(happened, "GpuGroupCreated").fee], [gpu, groupFee]);
  await creating({ kind: 3 }, FEE, "BadKind", 3n);
  const [overhead, unit, longest] = [await parameter(SD_OVERHEAD), await parameter(SD_UNIT), await parameter(LIMIT_MAX)];
  await creating({ units: 0 }, FEE, "BadUnits", 0n, (longest - overhead) / unit);
  await creating({ gpu: (1 << 16) | 49 }, FEE, "GpuUnknown", (1n << 16n) | 49n);
  await creating({ gpu: 49 }, FEE, "GpuUnknown", 49n);
  await creating({ redundancy: 4 }, FEE, "RedundancyUnsupported", 4n);
  const profile = { algorithm: 1, least: 3, most: 7, reschedules: 2, targeting: 2, target: 10n ** 18n, alpha: 0n, period: 300 };
  await refuse("setProfile", [{ ...profile, most: 10 }], "BadProfile");
  const set = one(await send(app.key, "setProfile", [profile]), "ProfileSet");
  const numbers = Object.fromEntries(Object.entries(profile).map(([name, number]) => [name, BigInt(number)]));
  assert.deepEqual([set.application, set.profile], [app.address.toLowerCase(), numbers]);
  await creating({ kind: 1, redundancy: 1, gpu: (1 << 16) | 48 }, FEE, "GpuNotListed", (1n << 16n) | 48n);
  const word = `0x${"11".repeat(32)}`;
  await refuse("reveal", [1n, 0, 1, 2, word, word], "BadAnswerKind", 2n, word);
  await refuse("settle", [1n, 1], "GroupUnknown", 1n, 1n);
  assert.equal(one(await rule("listGpuGroup", (1 << 16) | 48, true), "GpuGroupListed").listed, true);
  await creating({ flags: 3 }, FEE, "FlagsUnsupported", 3n);
  await refuse("gpuGroup", ["NVIDIA L41", 48], "GpuNameUnknown", "NVIDIA L41", 48n);
  await refuse("nodes", [1, 65], "PageTooLong", 65n, 64n);
  await refuse("pendingTasks", [0, 257], "PageTooLong", 257n, 256n);
  const named = one(await send(app.key, "nameModel", ["stabilityai/sdxl-turbo"]), "ModelNamed");
  assert.equal(named.name, "stabilityai/sdxl-turbo");
  await refuse("nameModel", [named.name], "ModelHasName", named.model);
  await refuse("nameModel", ["x".repeat(129)], "BadModelName", 129n, 128n);
  assert.equal(one(await send(app.key, "setStores", ["https://a.example/inputs s3://inputs"]), "StoresSet").uris, "https://a.example/inputs s3://inputs");
  await refuse("setStores", ["s3://a  s3://b"], "BadStores", 7n);
  await refuse("setStores", ["x".repeat(257)], "StoresTooLong", 257n, 256n);
  await creating({ vram: 961 }, FEE, "BadVram", 961n, 960n);
  await creating({ vram: 49 }, FEE, "NobodyCanRun", 49n, 0n);
  await creating({}, 149n, "FeeTooLow", 149n, 150n);
  await creating({ models: [1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n, 9n] }, FEE, "TooManyModels", 9n, 8n);
  await creating({ models: [3n, 1n << 40n] }, FEE, "BadModel", 1n << 40n);
  await creating({ models: [3n, 4n, 3n] }, FEE, "DuplicateModel", 3n);
  const rich = addressOf(newKey());
  await client.rpc("anvil_setBalance", [rich, `0x${(1n << 110n).toString(16)}`]);
  const most = (1n << 87n) - 1n;
  await refused(rich, "createTask", [spec()], most + 1n, "FeeTooHigh", most + 1n, most);

  const batch = [[spec({ vram: 961 })], [FEE], true];
  await refused(outsider, "createTasks", [batch[0], [], true], FEE, "BadBatch", 1n, 0n, FEE);
  await refused(outsider, "createTasks", batch, FEE, "RefusedInBatch", 0n, cast("calldata", "BadVram(uint16,uint16)", "961", "960"));

  // Nodes.
  await refuse("resume", [], "NotAnOperator", outsider);
  await refused(a.address, "resume", [], 0n, "WrongStatus", a.node, 1n);
  const worker = { key: newKey() };
  worker.address = addressOf(worker.key);
  await client.rpc("anvil_setBalance", [worker.address, `0x${(10n ** 20n).toString(16)}`]);
  await refused(worker.address, "acceptWork", [Number(a.node)], 0n, "NotNamed", a.node, worker.address);
  assert.equal(one(await send(a.key, "setWorker", [worker.address]), "WorkerNamed").worker, worker.address);
  assert.equal(one(await send(worker.key, "acceptWork", [Number(a.node)]), "WorkAccepted").node, a.node);
  await compare();
  await refused(worker.address, "acceptWork", [Number(a.node)], 0n, "HasNode", worker.address, a.node);
  await refused(worker.address, "quit", [], 0n, "NotTheOperator", a.node, worker.address);
  await send(worker.key, "leaveWork", []);
  await joining(gpu, 48, [], stake - stakeUnit, "StakeTooLow", stake - stakeUnit, stake);
  await joining(gpu, 48, [], stake + 1n, "StakeNotWhole", stake + 1n, stakeUnit);
  const limit = stake << 18n;
  await refused(rich, "join", [gpu, 48, []], limit + stakeUnit, "StakeTooHigh", limit + stakeUnit, limit);
  await joining("", 48, [], stake, "BadGpuName", 0n, 64n);
  await refused(a.address, "reportDownloaded", [[5n]], 0n, "ModelHeld", 5n);
  await refused(a.address, "reportRemoved", [[6n]], 0n, "ModelNotHeld", 6n);
  await refuse("purge", [5n, 0], "HolderNotStale", 5n, 0n);
  await refuse("poke", [Number(a.node)], "NothingToPoke", a.node);
  await refuse("poke", [99], "NodeUnknown", 99n);

  // A task on its way, with another behind it, until its deadline passes.
  const running = await create();
  await refuse("expire", [Number(a.node), running.id], "DeadlineNotPassed", running.id, running.deadline);
  const queued = await create();
  await compare();
  await refused(a.address, "cancel", [queued.id, queued.ticket], 0n, "NotTheCreator", queued.id, a.address);
  await refuse("cancel", [queued.id, queued.ticket + 1n], "TaskNotQueued", queued.id, queued.ticket + 1n);
  const { timestamp } = await client.rpc("eth_getBlockByNumber", ["latest", false]);
  const until = BigInt(timestamp) + (await parameter(QUEUE_TIME));
  await refuse("expireQueued", [queued.id, queued.ticket], "QueueTimeNotOver", queued.id, until);
  await travel(101);
  await refused(a.address, "submit", [running.id, DIGEST], 0n, "DeadlinePassed", running.id, running.deadline);
  const [aborted] = (await send(app.key, "expire", [Number(a.node), running.id])).filter((e) => e.name === "TaskAborted");
  assert.deepEqual([aborted.args.id, aborted.args.reason, aborted.args.beneficiary], [running.id, 0n, outsider]);
  await refused(a.address, "submit", [running.id, DIGEST], 0n, "TaskNotRunning", running.id, a.node);
  // Money that cannot be delivered stays owed.
  const { credit } = await client.call("account", [outsider]);
  await refuse("withdraw", [broken], "TransferFailed", broken, BigInt(credit));
  // The switch stops new tasks and nodes, never exits.
  await rule("setPaused", true);
  await creating({}, FEE, "PausedByOwner");
  await rule("setPaused", false);
  const [freed] = (await send(a.key, "submit", [queued.id, DIGEST])).filter((e) => e.name === "TaskSucceeded");
  assert.deepEqual([freed.args.id, freed.args.node, freed.args.resultDigest], [queued.id, a.node, DIGEST]);
  assert.deepEqual(one(await send(a.key, "quit"), "NodeQuit").operator, a.address);
  // Stake that has waited its time does not wait again when its operator leaves once more.
  await travel(DAY);
  await send(a.key, "join", [gpu, 48, []], stake);
  assert.deepEqual(one(await send(a.key, "quit"), "StakeReleased"), { account: a.address, amount: stake });

  // Events that remain to be seen.
  const b = await join("NVIDIA A100", 80, [1n, 2n]);
  const c = await join("NVIDIA A100", 80, []);
  assert.deepEqual(one(await send(b.key, "raiseStake", [], stakeUnit), "StakeRaised"), {
    node: b.node,
    added: stakeUnit,
    stake: stake + stakeUnit,
  });
  await send(b.key, "reportDownloaded", [[3n]]);
  await send(b.key, "reportRemoved", [[2n]]);
  await send(app.key, "purge", [2n, 0]);
  await send(c.key, "pause");
  // One of two is left out; its fee is credit.
  const both = await send(app.key, "createTasks", [[spec({ kind: 3 }), spec({ models: [1n, 4n] })], [7n, FEE], false], FEE + 7n);
  assert.deepEqual([one(both, "TaskRefused").place, one(both, "TaskRefused").fee], [0n, 7n]);
  const { id } = one(both, "TaskCreated");
  await client.rpc("anvil_mine", ["0x12c"]);
  // The precompile has forgotten that block's hash, the history contract has not.
  assert.equal(one(await rule("dispatch", 1), "TaskStarted").node, b.node);
  await send(b.key, "pause");
  await send(b.key, "submit", [id, DIGEST]);
  await send(b.key, "resume");
  const failing = await create();
  const failed = await send(b.key, "reportError", [failing.id, 3]);
  const startFee = (FEE * (await parameter(START_FEE))) / 10_000n;
  assert.deepEqual([one(failed, "TaskErrorReported").code, one(failed, "TaskErrorReported").refund], [3n, FEE - startFee]);
  // It rests, whichever account pokes it.
  const { until: rested } = one(failed, "NodeExcluded");
  await refuse("poke", [Number(b.node)], "NothingToPoke", b.node);
  await compare();
  await travel(rested - BigInt((await client.rpc("eth_getBlockByNumber", ["latest", false])).timestamp));
  await send(app.key, "poke", [Number(b.node)]);
  for (let excluded = false; !excluded; ) {
    const { id } = await create();
    await travel(101);
    excluded = (await send(app.key, "expire", [Number(b.node), id])).some(({ name }) => name === "NodeExcluded");
  }
  const waiting = await create();
  await compare();
  assert.equal(one(await send(app.key, "cancel", [waiting.id, waiting.ticket]), "TaskAborted").reason, 1n);
  await travel(200);
  await send(app.key, "poke", [Number(b.node)]);
  // A draw of a node whose H is low stays undecided now and then.
  while (!seen.event.has("TaskRedrawn")) {
    const { id } = await create();
    await send(b.key, "submit", [id, DIGEST]);
  }
  const last = await create();
  await send(b.key, "quit");
  await send(b.key, "submit", [last.id, DIGEST]);
  assert.equal(one(await send(app.key, "withdraw", [outsider]), "Withdrawn").to, outsider);

  // Of twelve due draws seven are left: each of the others has queued its task, which counts for more than a start.
  await rule("setParameter", DRAW_DELAY, 20);
  // Together: by itself each would be queued at once while nobody is idle.
  const together = [Array(12).fill(spec()), Array(12).fill(FEE), true];
  await send(app.key, "createTasks", together, 12n * FEE);
  await refused(me, "setParameter", [DRAW_DELAY, 1], 0n, "TasksPending", 12n);
  await compare();
  await client.rpc("anvil_mine", ["0x20"]);
  await refused(c.address, "raiseStake", [], stakeUnit, "DrawsDue", 7n);

  // The owner's last acts.
  await rule("proposeParameter", START_FEE, 300);
  await rule("sweepTreasury");
  const { effective } = one(await rule("proposeTreasury", outsider), "TreasuryProposed");
  await compare();
  await travel(DAY);
  await refuse("acceptTreasury", [], "TooEarly", effective);
  await travel(DAY);
  await send(app.key, "acceptTreasury");
  await rule("renounceUpgrades");
  await refused(me, "renounceUpgrades", [], 0n, "UpgradesRenounced");
  await rule("transferOwnership", outsider);
  await compare();
  await send(app.key, "acceptOwnership");
  assert.equal((await client.call("owner", [])).toLowerCase(), outsider);

  // Events of the contract's deployment.
  const past = await client.rpc("eth_getLogs", [{ address: muster, fromBlock: "0x0" }]);
  decode(past);

  for (const kind of ["event", "error"]) {
    for (const [name, reason] of Object.entries(OUT_OF_REACH[kind])) {
      assert.ok(!seen[kind].has(name), `${name} was provoked, so it is not true that it ${reason}`);
      const { args, ...sent } = encoded(kind, name);
      const got = kind === "error" ? client.error(sent.data) : client.event(sent);
      assert.deepEqual(note(kind, got), { name, args });
    }
    const missing = Object.keys(declared[kind]).filter((name) => !seen[kind].has(name));
    assert.deepEqual(missing, [], `${kind}s without a call that brings them about, and without a reason in OUT_OF_REACH`);
  }
  const count = (kind) => `${seen[kind].size} ${kind}s (${Object.keys(OUT_OF_REACH[kind]).length} from an encoding by cast)`;
  return { summary: `${count("event")}, ${count("error")}`, logs: past.length };
}
