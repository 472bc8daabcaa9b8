// Tests without a chain: names, JSON, the compact interface, seals, errors.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { mock, test } from "node:test";
import { QueryClient } from "@tanstack/query-core";
import { HttpRequestError, UnknownRpcError, createClient, custom, decodeFunctionData, encodeAbiParameters, encodeErrorResult, encodeEventTopics, encodeFunctionResult, hexToBytes, keccak256, sha256, toHex } from "viem";
import { mainnet } from "viem/chains";
import { PROVIDERS } from "../../../test/clients/endpoint.mjs";
import { musterAbi, musterParameters, parameterNumbers } from "../dist/abi.js";
import * as muster from "../dist/index.js";
import { used } from "../dist/interface.js";
import { getGroups } from "../dist/events.js";
import { allPages } from "../dist/pages.js";
import { readQueryOptions, resultQueryOptions, taskQueryOptions } from "../dist/query.js";
import { openInput, openWith } from "../dist/private.js";
import { cidOf } from "../dist/stores/ipfs.js";
import { commitmentOf, saltOf, sealResult } from "../dist/seal.js";
import { StreamProblemError, answerTexts, streamReader } from "../dist/stream.js";
import { gather, lotOf, verify } from "../dist/verify/index.js";

const { digestOf, modelId, objectName, openResult, parse, stringify } = muster;
const ADDRESS = `0x${"5a".repeat(20)}`;

test("models, digests and CIDs", () => {
  // As the README computes it.
  assert.equal(modelId("stabilityai/sdxl-turbo"), BigInt(keccak256(toHex("stabilityai/sdxl-turbo")).slice(0, 12)));
  // SHA-256 of "abc" as FIPS 180-4's examples have it.
  assert.equal(digestOf("abc"), "0xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  assert.equal(digestOf(new TextEncoder().encode("abc")), digestOf("abc"));
  // base32 of 01 55 12 20 and SHA-256 of "hello world", worked out with Python's base64.
  assert.equal(cidOf(digestOf("hello world")), "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e");
  assert.equal(objectName({ digest: digestOf("abc") }), digestOf("abc").slice(2));
});

test("a client's extensions know what it knows of its endpoint", async () => {
  const asked = [];
  const request = async ({ method }) => (asked.push(method), { eth_blockNumber: "0x64", eth_getCode: "0x00", eth_getLogs: [] }[method]);
  const client = createClient({ transport: custom({ request }) });
  const questions = async (one) => {
    asked.length = 0;
    await getGroups(one, { address: ADDRESS });
    return asked;
  };
  assert.ok((await questions(client)).includes("eth_getCode"));
  assert.deepEqual(await questions(client.extend(() => ({ more: 1 }))), ["eth_blockNumber", "eth_getLogs"]);
  assert.ok((await questions(createClient({ transport: custom({ request }) }))).includes("eth_getCode"));
});

test("bigints survive JSON, and nothing else changes", () => {
  const value = {
    a: 1n,
    b: [-2n, { c: 2n ** 200n }],
    d: "3n",
    e: null,
    f: 1.5,
    g: { __type: "bigint", value: 3 },
    h: { __type: "x", value: "1" },
    i: { __type: "bigint", value: "1", more: 1 },
  };
  assert.deepEqual(parse(stringify(value)), value);
  assert.equal(stringify(7n), '{"__type":"bigint","value":"7"}');
});

test("pages are asked for as far as the list goes, each once", async () => {
  for (const [length, count] of [
    [0, 1],
    [1, 1],
    [256, 1],
    [257, 2],
    [1_000, 4],
  ]) {
    const asked = [];
    const ask = async (from, count) => (asked.push([from, count]), { places: length });
    assert.equal((await allPages(ask, ({ places }) => places)).length, count);
    assert.deepEqual(
      asked,
      Array.from({ length: count }, (_, i) => [256 * i, 256]),
    );
  }
});

test("the compact interface is abi/'s", () => {
  const plain = (item) =>
    JSON.parse(JSON.stringify(item, (key, value) => (key === "internalType" || key === "sentence" ? undefined : value)));
  const whole = JSON.parse(readFileSync(new URL("../../../abi/IMuster.json", import.meta.url), "utf8")).map(plain);
  assert.deepEqual(musterAbi.map(plain), whole);
  const anonymous = (item) => (item.type === "event" ? { anonymous: false, ...item } : item);
  for (const item of used) {
    const declared = whole.find(({ type, name }) => type === item.type && name === item.name);
    assert.deepEqual(anonymous(plain(item)), anonymous(declared), item.name);
  }
  for (const { name, number } of musterParameters) assert.equal(parameterNumbers[name], number);
});

test("the events of a node that nobody is told of are those that the documentation names", () => {
  const untold = musterAbi.filter(({ type, name, inputs = [] }) => type === "event" && inputs.some((input) => input.indexed && input.name === "node") && !used.some((item) => item.type === "event" && item.name === name));
  const names = untold.map(({ name }) => name);
  assert.deepEqual([...names].sort(), ["NodeRated", "WorkAccepted", "WorkerNamed"]);
  for (const file of ["events", "wait"]) for (const name of names) assert.ok(readFileSync(new URL(`../src/${file}.ts`, import.meta.url), "utf8").includes(`\`${name}\``));
});

test("all views of the program of reading are actions", () => {
  // The table of contracts/protocol/src/interface/programs.rs lists them.
  const source = readFileSync(new URL("../../../contracts/protocol/src/interface/programs.rs", import.meta.url), "utf8");
  const table = /\n    lens LENS \{\n([\s\S]*?)\n    \}\n/.exec(source)[1];
  const views = [...table.matchAll(/^\s+(\w+)Call\(/gm)].map(([, name]) => name);
  assert.ok(views.length > 20);
  const bound = muster.musterActions({ address: ADDRESS })({});
  for (const view of views) {
    const name = `get${view[0].toUpperCase()}${view.slice(1)}`;
    assert.equal(typeof muster[name], "function", name);
    assert.equal(typeof bound[name], "function", name);
  }
  // And each bound action also exists alone.
  for (const name of Object.keys(bound)) assert.equal(typeof muster[name], "function", name);
});

test("a seal opens with its salt alone, and only on what the salt names", async () => {
  const result = new TextEncoder().encode("a result");
  const salt = saltOf(new Uint8Array(16).fill(7), result);
  const whose = { id: 12n, node: 3, salt: toHex(salt) };
  const sealed = await sealResult(result, whose);
  assert.match(sealed.name, /^[0-9a-f]{64}$/);
  assert.equal(sealed.bytes.length, result.length + 16);
  // The vector of docs/stores.md.
  const page = readFileSync(new URL("../../../docs/stores.md", import.meta.url), "utf8");
  for (const told of [whose.salt.slice(2), sealed.name, toHex(sealed.bytes).slice(2)]) assert.ok(page.includes(told), told);
  assert.deepEqual(await openResult(sealed.bytes, whose), result);
  const refused = (bytes, whose) => assert.rejects(openResult(bytes, whose));
  await refused(sealed.bytes, { ...whose, id: 13n });
  await refused(sealed.bytes, { ...whose, node: 4 });
  await refused(sealed.bytes.with(0, sealed.bytes[0] ^ 1), whose);
  await refused(sealed.bytes.slice(1), whose);
  // Sealed under the right key, but not the result that the salt names.
  const other = await sealResult(new TextEncoder().encode("another"), whose);
  await assert.rejects(openResult(other.bytes, whose), /names another result/);
  assert.throws(() => saltOf(new Uint8Array(15), result), RangeError);
});

test("seals and commitments are those of the Rust library", async () => {
  const { seals, commitments } = JSON.parse(readFileSync(new URL("../../vectors.json", import.meta.url), "utf8"));
  for (const { id, node, secret, result, digest, salt, name, object } of seals) {
    const bytes = hexToBytes(`0x${result}`);
    assert.equal(digestOf(bytes), digest);
    assert.equal(toHex(saltOf(hexToBytes(`0x${secret}`), bytes)), salt);
    const whose = { id: BigInt(id), node, salt };
    assert.deepEqual(await sealResult(bytes, whose), { name, bytes: hexToBytes(`0x${object}`) });
    assert.deepEqual(await openResult(hexToBytes(`0x${object}`), whose), bytes);
  }
  for (const { commitment, ...opened } of commitments) assert.equal(commitmentOf({ ...opened, id: BigInt(opened.id) }), commitment);
});

test("lots are the contract's", () => {
  const { lots } = JSON.parse(readFileSync(new URL("../../vectors.json", import.meta.url), "utf8"));
  assert.ok(lots.length > 0);
  for (const { hash, id, lot } of lots) assert.equal(lotOf(hash, BigInt(id)), BigInt(lot));
});

test("a node of a task's next group opens its next commitment", () => {
  const word = (n) => toHex(n, { size: 32 });
  const opening = (n) => ({ id: 1n, node: 7, kind: 0, value: word(n), salt: word(n + 1) });
  const event = (eventName, args) => ({ eventName, args, blockNumber: 1n, transactionHash: word(9) });
  const committed = (n) => event("AnswerCommitted", { id: 1n, node: 7, commitment: commitmentOf(opening(n)).slice(0, 50), block: 0n });
  const revealed = (n) => event("AnswerRevealed", opening(n));
  const settled = event("GroupSettled", { id: 1n, outcome: 4, startFee: 0n });
  const first = event("TaskCreated", { id: 1n, fee: 9n, timeLimit: 60, startFeeBps: 200, spec: { ...muster.specOf({ kind: 1 }), redundancy: 3 } });
  const core = { payment: () => 0n, part: () => 0n };
  const said = (...events) =>
    verify({ events: [first, ...events, { ...settled, args: { ...settled.args, outcome: 2 } }], blocks: new Map() }, core).flatMap(({ subject, result, because }) => (subject === "commitment" ? [[result, because]] : []));
  const ok = ["ok", "The hash of the revealed answer."];
  const hidden = ["not checkable here", "The node has not revealed its commitment."];
  const bare = ["wrong", "The node has revealed without a commitment."];
  assert.deepEqual(said(committed(1), revealed(1), settled, committed(3), revealed(3)), [ok, ok]);
  assert.deepEqual(said(committed(1), settled, committed(3), revealed(3)), [hidden, ok]);
  assert.deepEqual(said(committed(1), revealed(1), settled, committed(3)), [ok, hidden]);
  assert.deepEqual(said(committed(1), revealed(1), settled, revealed(3)), [ok, bare]);
  assert.deepEqual(said(committed(1), revealed(1), settled, committed(3), revealed(1))[1][0], "wrong");
});

test("private inputs and results are those of the Rust library", async () => {
  const { private: vectors } = JSON.parse(readFileSync(new URL("../../vectors.json", import.meta.url), "utf8"));
  const { identity, recipient, input, result } = vectors;
  for (const by of ["typescript", "rust"]) {
    const [sealedInput, sealedResult] = [vectors[by].input, vectors[by].result].map((hex) => hexToBytes(`0x${hex}`));
    const opened = await openInput(sealedInput, identity);
    assert.deepEqual([new TextDecoder().decode(opened.input), opened.reply], [input, recipient], by);
    assert.equal(new TextDecoder().decode(await openWith(sealedResult, identity)), result, by);
  }
});

test("a commitment is keccak256(abi.encode(...))", () => {
  const [value, salt] = [digestOf("value"), digestOf("salt")];
  const word = (number) => number.toString(16).padStart(64, "0");
  const bytes = `0x${word(9)}${word(5)}${word(1)}${value.slice(2)}${salt.slice(2)}`;
  assert.equal(commitmentOf({ id: 9n, node: 5, kind: 1, value, salt }), keccak256(hexToBytes(bytes)));
});

test("a task's life, by events alone", () => {
  const [id, creator, zero] = [5n, ADDRESS, `0x${"00".repeat(20)}`];
  const terms = { fee: 9n, estimate: 60, timeLimit: 120, startFeeBps: 200, spec: muster.specOf({ kind: 1 }) };
  let blockNumber = 0n;
  const event = (eventName, args) => ({ eventName, args: { id, creator, ...args }, blockNumber: ++blockNumber, transactionHash: "0x01" });
  const created = () => event("TaskCreated", { ...terms, drawBlock: 1n });
  const started = () => event("TaskStarted", { node: 3, deadline: 120n, boosts: false });
  const life = (...events) => events.reduce(muster.follow, undefined);
  const brief = ({ id: _, creator: __, fee, estimate, timeLimit, startFeeBps, spec, createdIn, hash, ...stage }) => {
    assert.deepEqual({ fee, estimate, timeLimit, startFeeBps, spec }, terms);
    return stage;
  };
  const aborted = (reason) => event("TaskAborted", { node: 3, reason, refund: 8n, startFee: 1n, beneficiary: zero });
  const ends = ["timedOut", "cancelled", "evicted", "expired", "nodeSlashed"];
  for (const [reason, status] of ends.entries()) {
    const end = life(created(), started(), aborted(reason));
    assert.ok(muster.hasEnded(end));
    assert.deepEqual([end.status, end.node, end.refund, end.startFee, end.endedIn], [status, 3, 8n, 1n, blockNumber]);
  }
  // Drawn again: from Pending, from the queue, and while its validators are called.
  const queued = event("TaskQueued", { group: 24, ticket: 7n });
  assert.deepEqual(brief(life(created(), event("TaskRedrawn", { drawBlock: 4n }))), { status: "pending", drawBlock: 4n });
  assert.deepEqual([life(created(), queued).status, life(created(), queued).ticket], ["queued", 7n]);
  assert.deepEqual(brief(life(created(), queued, event("TaskRedrawn", { drawBlock: 5n }))), { status: "pending", drawBlock: 5n });
  const committed = event("AnswerCommitted", { node: 3, group: 0, commitment: "0x02", block: 6n });
  const sampled = event("TaskSampled", { node: 3, drawBlock: 7n, beneficiary: zero, paid: 0n });
  assert.deepEqual(brief(life(created(), started(), committed)), {
    status: "committed",
    node: 3,
    deadline: 120n,
    commitment: "0x02",
    lotBlock: 6n,
  });
  const again = life(created(), started(), committed, sampled, event("TaskRedrawn", { drawBlock: 8n }));
  assert.deepEqual([again.status, again.node, again.drawBlock], ["sampled", 3, 8n]);
  // One member of the group lets its deadline pass, one withholds, and only the first answers and is paid.
  const group = [
    event("GroupFormed", { group: 2, nodes: [3, 4, 6], scored: true }),
    event("MemberStarted", { node: 4, group: 2, deadline: 300n }),
    event("MemberTimedOut", { node: 4, group: 2 }),
    event("MemberStarted", { node: 6, group: 2, deadline: 300n }),
    event("AnswerCommitted", { node: 6, group: 2, commitment: "0x03", block: 0n }),
    event("AnswerRevealed", { node: 3, group: 2, kind: 0, value: "0x0a", salt: "0x0b" }),
  ];
  const open = life(created(), started(), committed, sampled, ...group);
  assert.deepEqual(
    open.members.map(({ stage }) => stage),
    ["revealed", "timedOut", "committed"],
  );
  const judged = [
    [3, 6, 9n],
    [4, 5, 0n],
    [6, 3, 0n],
  ].map(([node, verdict, paid]) => event("MemberJudged", { node, group: 2, verdict, paid }));
  const settled = event("GroupSettled", { group: 2, outcome: 1, answer: "0x0a", refund: 0n, startFee: 0n, reserve: 1n });
  const end = life(created(), started(), committed, sampled, ...group, ...judged, settled);
  assert.deepEqual([end.status, end.answers], ["succeeded", [{ node: 3, value: "0x0a", salt: "0x0b", paid: 9n }]]);
  assert.deepEqual(
    end.members.map(({ verdict }) => verdict),
    ["open", "timedOut", "withheld"],
  );
  // A task without a majority goes to another group: it is drawn again, then its members are judged.
  const redrawn = [event("TaskRedrawn", { drawBlock: 9n }), ...judged, { ...settled, args: { ...settled.args, outcome: 4 } }];
  const pending = life(created(), ...group, ...redrawn);
  assert.deepEqual([pending.status, pending.drawBlock, "members" in pending], ["pending", 9n, false]);
  // Events of others, and events before its creation, do not concern it.
  assert.equal(life(started()), undefined);
  assert.equal(muster.follow(end, { ...started(), args: { ...started().args, id: 6n } }), end);
});

/** A client whose node gives these answers. */
const client = (request) => createClient({ account: ADDRESS, pollingInterval: 5, transport: custom({ request }, { retryCount: 0 }) });
const reverts = (errorName, args) => {
  throw { code: 3, message: "execution reverted", data: encodeErrorResult({ abi: musterAbi, errorName, args }) };
};

test("a refusal says its sentence, its values, the call's arguments and the raw data", async () => {
  const asked = muster.getGpuGroup(
    client(() => reverts("GpuNameUnknown", ["NVIDIA L41", 48])),
    { address: ADDRESS, name: "NVIDIA L41", vram: 48 },
  );
  await assert.rejects(asked, (error) => {
    assert.ok(error instanceof muster.RefusalError && error instanceof muster.MusterError);
    assert.equal(error.name, "RefusalError");
    assert.deepEqual(error.refusal, { name: "GpuNameUnknown", args: { name: "NVIDIA L41", vram: 48 } });
    assert.equal(error.shortMessage, "No node ever joined with a GPU of this name and VRAM size. (name NVIDIA L41, vram 48)");
    assert.deepEqual([error.functionName, error.args], ["gpuGroup", { name: "NVIDIA L41", vram: 48 }]);
    assert.equal(error.raw, encodeErrorResult({ abi: musterAbi, errorName: "GpuNameUnknown", args: ["NVIDIA L41", 48] }));
    assert.equal(error.cause.name, "ContractFunctionRevertedError");
    return true;
  });
  for (const { type, name, sentence } of used) if (type === "error") assert.match(sentence, /^[A-Z].*\.$/s, name);
});

test("a user's rejection is its own error", async () => {
  const answers = { eth_call: `0x${"0".repeat(63)}1`, eth_chainId: "0x1" };
  const wallet = client(({ method }) => {
    if (method in answers) return answers[method];
    throw { code: 4001, message: "User denied transaction signature." };
  });
  const created = muster.createTask(wallet, { address: ADDRESS, kind: 1, value: 1n });
  await assert.rejects(created, (error) => error instanceof muster.UserRejectedError && error.functionName === "createTask");
  const nobody = createClient({ transport: custom({ request: () => assert.fail("asked the node") }) });
  await assert.rejects(muster.createTask(nobody, { address: ADDRESS, kind: 1, value: 1n }), muster.AccountRequiredError);
});

test("query keys are plain JSON, one for each question", () => {
  const one = client(() => null);
  const key = (number) =>
    readQueryOptions(one, "weightOf", { address: ADDRESS, number, spec: muster.specOf({ kind: 1, models: [5n] }) }).queryKey;
  assert.deepEqual(JSON.parse(JSON.stringify(key(1))), key(1));
  assert.notDeepEqual(key(1), key(2));
  const { queryKey, staleTime } = resultQueryOptions(one, { address: ADDRESS, id: 3n, stores: ["https://example.org"] });
  assert.deepEqual([queryKey[2].id, queryKey[2].stores, staleTime], ["3", ["https://example.org"], Number.POSITIVE_INFINITY]);
  // Another key opens another result, and the cache has neither.
  const opened = ["AGE-SECRET-KEY-1A", "AGE-SECRET-KEY-1B", undefined].map((identity) => JSON.stringify(resultQueryOptions(one, { address: ADDRESS, id: 3n, identity }).queryKey));
  assert.equal(new Set(opened).size, 3);
  assert.doesNotMatch(opened.join(), /SECRET/);
});

// ---------------------------------------------------------------- endpoints

const itemOf = (name) => musterAbi.find((item) => item.name === name);
/** An answer to `overview`: so many tasks have been created. */
const overviewOf = (tasks) => {
  const empty = (type) => (type === "address" ? ADDRESS : type === "bool" ? false : Number(type.slice(4)) > 48 ? 0n : 0);
  const fields = itemOf("overview").outputs[0].components.map(({ name, type }) => [name, empty(type)]);
  return encodeFunctionResult({ abi: musterAbi, functionName: "overview", result: { ...Object.fromEntries(fields), tasks } });
};
const PAUSED = musterAbi.find(({ type, name }) => type === "event" && name === "NodePaused");
/** An endpoint with `head` blocks, in each hundredth of which a node is paused; a method's answer may be another. */
function chain(head, answers = {}) {
  const asked = [];
  const log = (number) => ({
    ...{ address: ADDRESS, blockNumber: toHex(number), blockHash: toHex(number, { size: 32 }), logIndex: "0x0", removed: false },
    ...{ transactionHash: toHex(number, { size: 32 }), transactionIndex: "0x0", data: "0x" },
    topics: encodeEventTopics({ abi: musterAbi, eventName: PAUSED.name, args: { node: 7 } }),
  });
  const node = {
    eth_chainId: () => "0x1",
    eth_getTransactionReceipt: () => null,
    eth_call: () => overviewOf(0n),
    eth_blockNumber: () => toHex(head),
    eth_getCode: (_, block) => ((block === "latest" ? head : Number(block)) >= 12_345 ? "0x60" : "0x"),
    eth_getLogs: ({ fromBlock, toBlock, topics: [names] }) => {
      const numbers = Array.from({ length: Number(toBlock) - Number(fromBlock) + 1 }, (_, i) => Number(fromBlock) + i);
      return names.includes(log(1).topics[0]) ? numbers.filter((number) => number % 100 === 0).map(log) : [];
    },
  };
  const request = async ({ method, params = [] }) => {
    asked.push({ method, params });
    const other = await answers[method]?.(...params, asked.length);
    if (other?.error) throw other.error;
    return other ?? node[method](...params);
  };
  const count = (method) => asked.filter((call) => call.method === method).length;
  return { asked, count, answers, node, client: createClient({ account: ADDRESS, pollingInterval: 5, transport: custom({ request }, { retryCount: 0 }) }) };
}
const span = ({ fromBlock, toBlock }) => Number(toBlock) - Number(fromBlock) + 1;
const paused = ({ client }, range = {}) => muster.getEvents(client, { address: ADDRESS, node: 7, fromBlock: 1n, toBlock: 30_000n, ...range });

for (const [provider, refusal] of Object.entries(PROVIDERS)) {
  test(`ranges that are too long are split, in the words of ${provider}`, async () => {
    const most = 10_000;
    const refuse = (filter) => (span(filter) > most ? refusal(Number(filter.fromBlock), Number(filter.toBlock), most) : undefined);
    const endpoint = chain(30_000, { eth_getLogs: refuse });
    const told = await paused(endpoint);
    assert.deepEqual(told.map(({ blockNumber }) => Number(blockNumber)), Array.from({ length: 300 }, (_, i) => 100 * (i + 1)));
    // Limits are found out only once.
    const tried = new Set(endpoint.asked.filter(({ params: [{ fromBlock }] }) => fromBlock === "0x1").map(({ params: [filter] }) => span(filter)));
    assert.deepEqual([...tried], [30_000, 15_000, 7_500]);
    endpoint.asked.length = 0;
    await paused(endpoint);
    assert.equal(endpoint.asked.filter(({ params: [filter] }) => refuse(filter)).length, 0);
    // No question is longer than the caller wants.
    endpoint.asked.length = 0;
    await paused(endpoint, { blockRange: 3_000n });
    assert.ok(endpoint.asked.every(({ params: [filter] }) => span(filter) <= 3_000));
  });
}

test("answers that are too long are split, and shorter ones are put together again", async () => {
  // Of the blocks after 20,000 there may be ten logs at once, of those before as many as there are.
  let refused = 0;
  const eth_getLogs = (filter) => {
    if (Number(filter.toBlock) > 20_000 && span(filter) > 1_000) {
      refused++;
      return { error: { code: -32005, message: "query returned more than 10 results" } };
    }
  };
  const endpoint = chain(1_000_000, { eth_getLogs });
  assert.equal((await paused(endpoint)).length, 300);
  assert.ok(refused < 60, `${refused}`);
  endpoint.answers.eth_getLogs = undefined;
  endpoint.asked.length = 0;
  await paused(endpoint, { fromBlock: 100_000n, toBlock: 999_999n });
  assert.ok(endpoint.count("eth_getLogs") < 300, `${endpoint.count("eth_getLogs")} questions`);
});

test("an endpoint that gives no logs at all, is not reached or does not know the method", async () => {
  const failing = (error) => chain(30_000, { eth_getLogs: () => ({ error }) });
  await assert.rejects(paused(failing({ code: -32602, message: "not here" })), (error) => {
    assert.ok(error instanceof muster.EndpointError && error.setting === "blockRange", error);
    assert.match(error.message, /gives no logs of block 1, and no `blockRange` is smaller[^]*not here/);
    return true;
  });
  const cut = failing(new HttpRequestError({ url: "http://example.org", details: "the line is cut" }));
  await assert.rejects(paused(cut), /the line is cut/);
  const unknown = failing({ code: -32601, message: "no such method" });
  await assert.rejects(paused(unknown), /no such method/);
  // Once for each place where a node can stand.
  assert.ok(cut.count("eth_getLogs") <= 3 && unknown.count("eth_getLogs") <= 3);
});

test("as many logs in one answer as a node without a limit gives", async () => {
  const log = { address: ADDRESS, topics: [`0x${"1".repeat(64)}`], data: "0x", blockNumber: "0x1", logIndex: "0x0", transactionHash: `0x${"2".repeat(64)}`, transactionIndex: "0x0", blockHash: `0x${"3".repeat(64)}`, removed: false };
  const { client } = chain(1, { eth_getLogs: () => Array(150_000).fill(log) });
  assert.deepEqual(await muster.getEvents(client, { address: ADDRESS, creator: ADDRESS, fromBlock: 0n, toBlock: 1n }), []);
});

test("a node that has not come to the last block yet is asked again, and not for less", async () => {
  let refusals = 3;
  const beyond = { code: -32602, message: "block range extends beyond current head block" };
  const late = chain(30_000, { eth_getLogs: () => (refusals-- > 0 ? { error: beyond } : undefined) });
  assert.equal((await paused(late)).length, 300);
  assert.ok(late.asked.every(({ params: [filter] }) => span(filter) === 30_000));
  await assert.rejects(paused(chain(30_000, { eth_getLogs: () => ({ error: beyond }) })), /beyond current head/);
});

test("an endpoint that is asked too much is asked later: by its own word, or later each time", async () => {
  mock.timers.enable({ apis: ["setTimeout", "Date"] });
  try {
    const limited = (headers = {}) => new HttpRequestError({ url: "http://example.org", status: 429, details: "slow down", headers: new Headers(headers) });
    /** Runs the clock until it has ended; returns its outcome, and the milliseconds. */
    const lasting = async (promise) => {
      const since = Date.now();
      let end;
      promise.then((value) => (end = { value }), (error) => (end = { error }));
      while (!end) {
        await new Promise(setImmediate);
        mock.timers.tick(50);
      }
      return { ...end, ms: Date.now() - since };
    };
    const overview = (endpoint) => muster.getOwner(endpoint.client, { address: ADDRESS });
    const owner = toHex(5, { size: 32 });
    for (const refusal of [limited(), { code: 429, message: "Too Many Requests" }, { code: -32005, message: "project ID request rate exceeded: rate limit" }, { code: -32007, message: "50/second request limit reached" }]) {
      let refusals = 3;
      const { value, ms } = await lasting(overview(chain(1, { eth_call: () => (refusals-- > 0 ? { error: refusal } : owner) })));
      assert.match(value, /^0x0+5$/);
      assert.ok(ms >= 1_700 && ms <= 6_000, `${ms} ms`);
    }
    let refusals = 1;
    const named = await lasting(overview(chain(1, { eth_call: () => (refusals-- > 0 ? { error: limited({ "retry-after": "20" }) } : owner) })));
    assert.ok(named.value && named.ms >= 20_000 && named.ms < 22_000, `${named.ms} ms`);
    refusals = 1;
    const aDay = await lasting(overview(chain(1, { eth_call: () => (refusals-- > 0 ? { error: limited({ "retry-after": "86400" }) } : owner) })));
    assert.ok(aDay.value && aDay.ms < 310_000, `${aDay.ms} ms`);
    const busy = chain(1, { eth_call: () => ({ error: limited() }) });
    const { error } = await lasting(overview(busy));
    assert.ok(error instanceof muster.EndpointError && error.setting === "transport", error);
    assert.equal(busy.count("eth_call"), 9);
  } finally {
    mock.timers.reset();
  }
});

test("events are looked for from Muster's own block on: told, or found by its code, once", async () => {
  const endpoint = chain(1_000_000);
  const ask = (endpoint, more = {}) => muster.getTask(endpoint.client, { address: ADDRESS, id: 1n, ...more });
  const since = (block) => (error) => error instanceof muster.TaskNotFoundError && error.fromBlock === block;
  await assert.rejects(ask(endpoint), since(12_345n));
  assert.ok(endpoint.count("eth_getCode") <= 22, `${endpoint.count("eth_getCode")} questions`);
  assert.ok(endpoint.asked.every(({ method, params: [filter] }) => method !== "eth_getLogs" || Number(filter.fromBlock) >= 12_345));
  const before = endpoint.count("eth_getCode");
  await assert.rejects(ask(endpoint), since(12_345n));
  await assert.rejects(ask(chain(1_000_000), { deployedIn: 77n }), since(77n));
  assert.equal(endpoint.count("eth_getCode"), before);
  // Every action knows the decorator's parameters.
  const bound = muster.musterActions({ address: ADDRESS, deployedIn: 78n })(chain(1_000_000).client);
  await assert.rejects(bound.getTask({ id: 1n }), since(78n));
  // A short chain is searched; for a long one the caller must give the block.
  const pruned = (head) => chain(head, { eth_getCode: (_, block) => (block === "latest" ? undefined : { error: { code: -32000, message: "missing trie node" } }) });
  await assert.rejects(ask(pruned(30_000)), since(0n));
  await assert.rejects(ask(pruned(2_000_000)), (error) => {
    assert.ok(error instanceof muster.EndpointError && error.setting === "deployedIn", error);
    assert.match(error.message, /`deployedIn`[^]*missing trie node/);
    return true;
  });
  await assert.rejects(ask(chain(10)), (error) => error instanceof muster.NoMusterError && error.chainId === 1);
});

// ---------------------------------------------------------------- waits and watches

const SENDER = `0x${"11".repeat(20)}`;
const created = (id, block, transaction, more = {}) => ({
  ...{ eventName: "TaskCreated", block, transaction },
  args: { id, creator: SENDER, fee: 9n, estimate: 60, timeLimit: 120, startFeeBps: 200, spec: muster.specOf({ kind: 1 }), drawBlock: BigInt(block) + 2n, ...more },
});
const cancelled = (id, block, transaction) => ({
  ...{ eventName: "TaskAborted", block, transaction },
  args: { id, creator: SENDER, node: 0, reason: 1, refund: 9n, startFee: 0n, beneficiary: SENDER },
});
/** An endpoint of a chain with these events, whose `head`, `events`, `tasks` (how many were ever created) and `fork` may change. */
function ledger(state, answers = {}) {
  const hash = (number) => toHex(number, { size: 32 });
  const encoded = ({ eventName, block, transaction, args }, logIndex) => {
    const data = itemOf(eventName).inputs.filter(({ indexed }) => !indexed);
    return {
      ...{ address: ADDRESS, blockNumber: toHex(block), blockHash: hash(1_000 * (state.fork ?? 0) + block), logIndex: toHex(logIndex), removed: false },
      ...{ transactionHash: hash(transaction), transactionIndex: "0x0", topics: encodeEventTopics({ abi: musterAbi, eventName, args }) },
      data: encodeAbiParameters(data, data.map(({ name }) => args[name])),
    };
  };
  const logs = () => state.events.map(encoded);
  const isAsked = ({ blockNumber, topics: own }, { fromBlock, toBlock, topics }) =>
    Number(blockNumber) >= Number(fromBlock) &&
    Number(blockNumber) <= Math.min(Number(toBlock), state.head) &&
    topics.every((asked, i) => asked === null || [asked].flat().includes(own[i]));
  const receipt = (transaction) => {
    const own = logs().filter(({ transactionHash }) => transactionHash === transaction);
    const zero = { cumulativeGasUsed: "0x0", effectiveGasPrice: "0x0", gasUsed: "0x0", from: SENDER, to: ADDRESS, type: "0x2", logsBloom: "0x", contractAddress: null };
    return own.length ? { ...own[0], ...zero, status: "0x1", logs: own } : null;
  };
  const answering = {
    eth_blockNumber: () => toHex(state.head),
    eth_getCode: () => "0x60",
    eth_getLogs: (filter) => logs().filter((log) => isAsked(log, filter)),
    eth_getTransactionReceipt: receipt,
    eth_call: () => overviewOf(state.tasks),
  };
  const endpoint = chain(0, Object.fromEntries(Object.entries(answering).map(([name, own]) => [name, (...params) => answers[name]?.(...params) ?? own(...params)])));
  return { ...endpoint, logs: answering.eth_getLogs };
}
/** Makes blocks until a promise is settled; its value or error. */
async function mining(state, promise) {
  let end;
  promise.then((value) => (end = { value }), (error) => (end = { error }));
  for (let most = 1_000; !end && most; most--) {
    if (state) state.head++;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.ok(end, "it goes on for ever");
  return end.error ?? end.value;
}
/** Makes blocks until something is so. */
const until = (state, is) => mining(state, (async () => {
  while (!is()) await new Promise((resolve) => setTimeout(resolve, 5));
})());

for (const block of [280, 20]) {
  test(`after a reorganisation a wait finds its task in block ${block}, which is earlier`, async () => {
    const state = { head: 300, events: [created(1n, 300, 5)], tasks: 1n };
    const endpoint = ledger(state);
    const seen = [];
    const wait = muster.waitForTask(endpoint.client, { address: ADDRESS, id: 1n, fromBlock: 300n, timeout: 20_000, onChange: ({ createdIn }) => seen.push(createdIn) });
    await until(state, () => seen.length && state.head > 308);
    Object.assign(state, { fork: 1, events: [created(1n, block, 5)] });
    await until(state, () => seen.length > 1);
    state.events.push(cancelled(1n, state.head + 1, 6));
    const end = await mining(state, wait);
    assert.deepEqual([end.status, end.hash, end.createdIn], ["cancelled", toHex(5, { size: 32 }), BigInt(block)]);
    assert.deepEqual(seen, [300n, BigInt(block), BigInt(block)]);
    assert.equal(endpoint.count("eth_getTransactionReceipt"), block === 20 ? 1 : 0);
  });
}

test("a task whose logs an endpoint lacks is not said to be none", async () => {
  const state = { head: 300, events: [created(1n, 290, 5), cancelled(1n, 295, 6)], tasks: 1n };
  let lacking = Number.POSITIVE_INFINITY;
  const endpoint = ledger(state, { eth_getLogs: () => (lacking-- > 0 ? [] : undefined) });
  const isLacking = (error) => error instanceof muster.EndpointError && error.setting === "transport" && /created task 1, and the endpoint has no logs of it since block 0/.test(error.message);
  const question = { address: ADDRESS, id: 1n };
  await assert.rejects(muster.getTask(endpoint.client, question), isLacking);
  await assert.rejects(gather(endpoint.client, question), isLacking);
  assert.ok(isLacking(await mining(state, muster.waitForTask(endpoint.client, { ...question, timeout: 20_000 }))));
  // Where the caller has named the block it may be the wrong one.
  const late = { ...question, fromBlock: 299n };
  for (const ask of [muster.getTask, muster.waitForTask]) {
    await assert.rejects(ask(endpoint.client, late), (error) => error instanceof muster.TaskNotFoundError && error.exists && /earlier block/.test(error.message));
  }
  // A node that lags behind has them later.
  lacking = 6;
  assert.equal((await mining(state, muster.waitForTask(endpoint.client, { ...question, timeout: 20_000 }))).status, "cancelled");
  const none = (error) => error instanceof muster.TaskNotFoundError && !error.exists;
  for (const ask of [muster.getTask, muster.waitForTask]) await assert.rejects(ask(endpoint.client, { ...question, id: 2n }), none);
});

test("a watch tells what one node of the endpoint lacked at first, each event once", async () => {
  const state = { head: 300, events: [], tasks: 1n };
  let lag = 0;
  const shown = (filter) => ({ ...filter, toBlock: toHex(Math.min(Number(filter.toBlock), state.head - lag)) });
  const endpoint = ledger(state, { eth_getLogs: (filter) => (lag ? endpoint.logs(shown(filter)) : undefined) });
  const seen = [];
  const stop = muster.watchTasks(endpoint.client, { address: ADDRESS, creator: SENDER, fromBlock: 300n, onEvents: (events) => void seen.push(...events.map(({ args }) => Number(args.id))) });
  for (let id = 1; id <= 60; id++) {
    // Every other question is answered by a node that is three blocks behind.
    lag = id % 2 ? 3 : 0;
    state.events.push(created(BigInt(id), ++state.head, id));
    const asked = endpoint.count("eth_getLogs");
    await until(undefined, () => endpoint.count("eth_getLogs") > asked);
  }
  lag = 0;
  await until(state, () => seen.length >= 60);
  assert.deepEqual(seen, Array.from({ length: 60 }, (_, i) => i + 1));
  stop();
  const { fromBlock, toBlock } = endpoint.asked.findLast(({ method }) => method === "eth_getLogs").params[0];
  assert.ok(Number(toBlock) - Number(fromBlock) <= 40, "it asks about few blocks again");
});

test("GPU groups that a lagging node lacks, or that an estimate leaves out, are found later", async () => {
  const group = (number, block) => ({ eventName: "GpuGroupCreated", block, transaction: block, args: { group: number, name: "X", vram: 24, fee: 5n } });
  const state = { head: 100, events: [group(65_560, 10), group(131_096, 95)], tasks: 0n };
  let lag = 10;
  const endpoint = ledger(state, { eth_getLogs: (filter) => (lag ? endpoint.logs({ ...filter, toBlock: toHex(state.head - lag) }) : undefined) });
  const ask = (more = {}) => getGroups(endpoint.client, { address: ADDRESS, deployedIn: 0n, ...more });
  assert.deepEqual(await ask(), [65_560]);
  [lag, state.head] = [0, 150];
  assert.deepEqual(await ask(), [65_560, 131_096]);
  state.head = 10_000;
  assert.deepEqual(await ask(), [65_560, 131_096]);
  const { fromBlock } = endpoint.asked.at(-1).params[0];
  assert.equal(Number(fromBlock), 86);
  const other = ledger(state).client;
  const from = (fromBlock) => getGroups(other, { address: ADDRESS, deployedIn: 0n, fromBlock });
  for (let i = 0; i < 2; i++) assert.deepEqual([await from(50n), await from(undefined), await from(0n)], [[131_096], [65_560, 131_096], [65_560, 131_096]]);
});

const REFUSALS = [{ code: -32000, message: "header not found" }, { code: -32000, message: "unknown block" }, { code: -32603, message: "historical state is not available" }];
for (const refusal of REFUSALS) {
  test(`an endpoint that refuses what is old for ever is no reason to ask for ever: ${refusal.message}`, async () => {
    const question = { address: ADDRESS, id: 1n };
    const old = { eth_getCode: (_, block) => (block === "latest" ? undefined : { error: refusal }) };
    const isSetting = (error) => error instanceof muster.EndpointError && error.setting === "deployedIn" && error.message.includes(refusal.message);
    const long = { head: 2_000_000, events: [], tasks: 1n };
    await assert.rejects(muster.getTask(ledger(long, old).client, question), isSetting);
    await assert.rejects(muster.waitForTask(ledger(long, old).client, { ...question, timeout: 10_000 }), isSetting);
    // A short chain is searched from its beginning.
    const state = { head: 300, events: [created(1n, 290, 5), cancelled(1n, 295, 6)], tasks: 1n };
    assert.equal((await muster.getTask(ledger(state, old).client, question)).status, "cancelled");
    // Other questions are given up after some failures in a row, also where the error may pass.
    for (const method of ["eth_blockNumber", "eth_getLogs"]) {
      const endpoint = ledger(state, { [method]: () => ({ error: { code: -32603, message: "the server is busy" } }) });
      await assert.rejects(muster.waitForTask(endpoint.client, { ...question, fromBlock: 290n, blockRange: 1n, timeout: 10_000 }), /the server is busy/);
    }
    // Some failures are waited out, and any outage.
    let failures = 40;
    const cut = new HttpRequestError({ url: "http://example.org", details: "the line is cut" });
    const failing = ledger(state, { eth_blockNumber: () => (failures-- > 0 ? { error: failures % 10 ? cut : { ...refusal, code: -32603 } } : undefined) });
    assert.equal((await muster.waitForTask(failing.client, { ...question, timeout: 20_000 })).status, "cancelled");
    // An endpoint that refuses by its status, or a WebSocket that is not opened again, will not come back.
    for (const gone of [new HttpRequestError({ url: "http://example.org", status: 401, details: "no such key" }), new UnknownRpcError(new Error("no such key"))]) {
      const endpoint = ledger(state, { eth_blockNumber: () => ({ error: gone }) });
      await assert.rejects(muster.waitForTask(endpoint.client, { ...question, timeout: 20_000 }), /no such key/);
    }
  });
}

/** A row of `pendingTasks`. */
const pendingTask = (id) => {
  const empty = ({ type, components }) =>
    components ? Object.fromEntries(components.map((item) => [item.name, empty(item)])) : /\[/.test(type) ? [] : type === "address" ? ADDRESS : type === "bool" ? false : /^bytes/.test(type) ? toHex(0, { size: Number(type.slice(5)) }) : 0n;
  return { ...empty({ ...itemOf("pendingTasks").outputs[0], type: "tuple" }), id };
};

test("who waits with `dispatch` pays for no more draws than its task needs", async () => {
  const drawn = async (ring, validators) => {
    const state = { head: 300, events: [created(1n, 290, 5)], tasks: 1n };
    const sent = [];
    const eth_call = ({ to, data }) => {
      if (to.toLowerCase() !== ADDRESS) return { error: { code: 3, message: "execution reverted" } };
      const { functionName, args } = decodeFunctionData({ abi: musterAbi, data });
      if (functionName === "dispatch") sent.push(args[0]);
      const list = { pendingTasks: ring, validatorDraws: validators }[functionName];
      return list ? encodeFunctionResult({ abi: musterAbi, functionName, result: list.map(pendingTask) }) : { error: { code: 3, message: "execution reverted: tried" } };
    };
    const endpoint = ledger(state, { eth_call, eth_estimateGas: () => ({ error: { code: 3, message: "execution reverted: tried" } }) });
    const wait = muster.waitForTask(endpoint.client, { address: ADDRESS, id: 1n, dispatch: true, until: "placed", timeout: 20_000 });
    // Somebody else draws it.
    setTimeout(() => state.events.push({ eventName: "TaskStarted", block: ++state.head, transaction: 9, args: { id: 1n, node: 3, creator: SENDER, deadline: 9n, boosts: false } }), 300);
    const end = await wait.catch((error) => error);
    assert.ok(endpoint.count("eth_call") < 300, `${endpoint.count("eth_call")} calls`);
    return sent[0] ?? end.status;
  };
  const others = (count) => Array.from({ length: count }, (_, i) => BigInt(i + 10));
  assert.equal(await drawn([], []), "running");
  assert.equal(await drawn(others(15), others(15)), "running");
  assert.equal(await drawn([...others(3), 1n, ...others(3)], []), 4);
  assert.equal(await drawn(others(16), []), 16);
  assert.equal(await drawn([], [...others(3), 1n]), 16);
});

test("a draw that goes on failing is given up, a wallet's at once", async () => {
  const word = { code: -32603, message: "the wallet is out of order" };
  const failing = async (answers) => {
    const eth_call = ({ to, data }) => {
      if (to.toLowerCase() !== ADDRESS) return { error: { code: 3, message: "execution reverted" } };
      const { functionName } = decodeFunctionData({ abi: musterAbi, data });
      const result = functionName === "dispatch" ? 1 : [pendingTask(1n)];
      return encodeFunctionResult({ abi: musterAbi, functionName, result });
    };
    const endpoint = ledger({ head: 300, events: [created(1n, 290, 5)], tasks: 1n });
    Object.assign(endpoint.answers, { eth_call, eth_estimateGas: () => "0x5208", ...answers });
    const begun = Date.now();
    const error = await muster.waitForTask(endpoint.client, { address: ADDRESS, id: 1n, dispatch: true, timeout: 60_000 }).catch((thrown) => thrown);
    assert.match(error.message, new RegExp(word.message));
    return { sendings: endpoint.count("eth_sendTransaction"), estimates: endpoint.count("eth_estimateGas"), time: Date.now() - begun };
  };
  const refuse = () => ({ error: word });
  assert.equal((await failing({ eth_sendTransaction: refuse })).sendings, 1);
  const { sendings, estimates, time } = await failing({ eth_estimateGas: refuse });
  assert.deepEqual([sendings, estimates], [0, 16]);
  // The pauses grow, by a polling interval each time.
  assert.ok(time > 5 * 120, `${time} ms`);
});

test("a wait's time can be longer than a timer's", async () => {
  const state = { head: 300, events: [created(1n, 290, 5)], tasks: 1n };
  for (const timeout of [Number.POSITIVE_INFINITY, 30 * 86_400_000]) {
    const end = new Error("enough");
    const signal = new AbortController();
    const wait = muster.waitForTask(ledger(state).client, { address: ADDRESS, id: 1n, timeout, signal: signal.signal });
    setTimeout(() => signal.abort(end), 100);
    await assert.rejects(wait, end);
  }
});

test("a watch goes on after its onError has thrown, which is no secret", async () => {
  const state = { head: 300, events: [], tasks: 0n };
  const endpoint = ledger(state, { eth_blockNumber: () => ({ error: { code: -32601, message: "no such method" } }) });
  const secrets = [];
  const others = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection").on("unhandledRejection", ({ message }) => secrets.push(message));
  const stop = muster.watchNode(endpoint.client, {
    ...{ address: ADDRESS, node: 7, onEvents: () => undefined },
    onError: () => {
      throw new Error("from onError");
    },
  });
  await until(undefined, () => secrets.length > 1);
  stop();
  await new Promise((resolve) => setTimeout(resolve, 50));
  process.removeAllListeners("unhandledRejection");
  for (const listener of others) process.on("unhandledRejection", listener);
  assert.equal(secrets[0], "from onError");
});

test("of a task that is gone it is said whether its transaction created it under another id", async () => {
  for (const [events, ids] of [[[], []], [[created(1n, 290, 7)], []], [[created(1n, 290, 7), created(2n, 290, 5)], [2n]]]) {
    const state = { head: 300, events: [created(1n, 300, 5)], tasks: 1n };
    let seen;
    const wait = muster.waitForTask(ledger(state).client, { address: ADDRESS, id: 1n, timeout: 20_000, onChange: () => (seen = true) });
    await until(state, () => seen && state.head > 308);
    Object.assign(state, { fork: 1, events });
    const error = await mining(state, wait);
    assert.ok(error instanceof muster.TaskGoneError, error);
    assert.deepEqual([error.id, error.ids], [1n, ids]);
    assert.match(error.message, ids.length ? /has created 2 instead/ : /is not in it/);
  }
});

test("a created task is not taken for another that a reorganisation gave its id, not even one of its own batch", async () => {
  const [one, two] = ["a", "b"].map((input) => muster.specOf({ kind: 1, input }));
  const state = { head: 300, events: [created(1n, 290, 5, { spec: one }), created(2n, 290, 5, { spec: two })], tasks: 2n };
  const get = (more) => muster.getTask(ledger(state).client, { address: ADDRESS, ...more });
  const tasks = await Promise.all([1n, 2n].map((id) => get({ id })));
  // Its transaction lies earlier, and has the same ids.
  Object.assign(state, { fork: 1, events: [created(1n, 20, 5, { spec: one }), created(2n, 20, 5, { spec: two })] });
  assert.equal((await get({ id: 2n, created: tasks[1] })).createdIn, 20n);
  // Somebody else was faster.
  Object.assign(state, { fork: 2, events: [created(1n, 290, 7), created(2n, 290, 5, { spec: one }), created(3n, 290, 5, { spec: two })], tasks: 3n });
  for (const task of tasks) {
    const { id } = task;
    const isGone = (error) => error instanceof muster.TaskGoneError && error.ids.length === 1 && error.ids[0] === id + 1n;
    let seen = false;
    assert.ok(isGone(await mining(state, muster.waitForTask(ledger(state).client, { address: ADDRESS, id, created: task, onChange: () => (seen = true), timeout: 20_000 }))));
    assert.ok(!seen);
    await assert.rejects(get({ id, created: task }), isGone);
    assert.equal((await get({ id: id + 1n, created: task })).id, id + 1n);
  }
  // A node that lags behind does not know it yet.
  await assert.rejects(muster.getTask(ledger({ ...state, events: [] }).client, { address: ADDRESS, id: 1n, created: tasks[0] }), muster.TaskNotFoundError);
  const key = (created) => taskQueryOptions(ledger(state).client, { address: ADDRESS, id: 1n, created }).queryKey[2].created;
  assert.deepEqual([key(tasks[0]), key()], [tasks[0].hash, undefined]);
});

test("a task's query asks for the last blocks alone, and ends for one that is gone", async () => {
  const state = { head: 300, events: [created(1n, 290, 5)], tasks: 1n };
  const { client, asked } = ledger(state);
  const options = taskQueryOptions(client, { address: ADDRESS, id: 1n, deployedIn: 0n });
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  /** The task's status, and the first block that was asked about. */
  const next = async (head, ...events) => {
    Object.assign(state, { head, events: [created(1n, 290, 5), ...events] });
    asked.length = 0;
    const { status } = await queries.fetchQuery(options);
    return [status, ...asked.flatMap(({ method, params }) => (method === "eth_getLogs" ? [Number(params[0].fromBlock)] : []))];
  };
  assert.deepEqual(await next(300), ["pending", 0]);
  assert.deepEqual(await next(2_256), ["pending", 290]);
  assert.deepEqual(await next(2_266), ["pending", 2_000]);
  assert.deepEqual(await next(2_300, cancelled(1n, 2_290, 6)), ["cancelled", 2_010]);
  // A node that lags behind, then a reorganisation that undoes the end, then the end in another block.
  assert.deepEqual((await next(2_000))[0], "pending");
  assert.deepEqual(await next(2_310), ["pending", 2_044]);
  assert.deepEqual(await next(2_320, cancelled(1n, 2_315, 6)), ["cancelled", 2_054]);
  assert.deepEqual(await next(9_000, cancelled(1n, 2_315, 6)), ["cancelled", 2_064]);
  assert.deepEqual(await next(9_001, cancelled(1n, 2_315, 6)), ["cancelled", 8_744]);
  queries.clear();
  const again = (error, errorUpdateCount) => options.refetchInterval({ state: { error, errorUpdateCount } });
  const task = await muster.getTask(client, { address: ADDRESS, id: 1n, fromBlock: 0n });
  assert.deepEqual([again(null, 0), again(new muster.TaskGoneError(task), 1)], [client.pollingInterval, false]);
  // At first the endpoint may lack it still.
  const none = new muster.TaskNotFoundError(1n, 0n);
  assert.deepEqual([again(none, 1), again(none, 4), again(new Error("an outage"), 9)], [client.pollingInterval, false, client.pollingInterval]);
});

test("of a bundle's events only the sender's count", async () => {
  const other = `0x${"22".repeat(20)}`;
  const spec = (input) => muster.specOf({ kind: 1, input });
  const refused = (creator, place) => ({ eventName: "TaskRefused", block: 290, transaction: 5, args: { creator, place, fee: 9n, reason: "0x" } });
  const events = [created(1n, 290, 5, { creator: other }), created(2n, 290, 5, { spec: spec("a") }), refused(other, 0), refused(SENDER, 1), created(3n, 290, 5, { spec: spec("b") }), created(4n, 290, 5, { creator: other })];
  const sent = (own) => {
    const endpoint = ledger({ head: 300, events: own, tasks: 4n });
    const eth_call = ({ data }) => {
      const { functionName } = decodeFunctionData({ abi: musterAbi, data });
      return encodeFunctionResult({ abi: musterAbi, functionName, result: functionName === "createTask" ? 2n : [2n, 0n, 3n] });
    };
    Object.assign(endpoint.answers, { eth_call, eth_estimateGas: () => "0x5208", eth_sendTransaction: () => toHex(5, { size: 32 }) });
    return endpoint.client;
  };
  const call = { address: ADDRESS, account: SENDER };
  const { id } = await muster.createTask(sent(events.filter(({ args }) => args.id !== 3n)), { ...call, kind: 1, input: "a", value: 9n });
  assert.equal(id, 2n);
  const task = (input) => ({ kind: 1, input, value: 9n });
  const { tasks } = await muster.createTasks(sent(events), { ...call, tasks: [task("a"), task("c"), task("b")], atomic: false });
  assert.deepEqual(tasks.map((created) => created?.id), [2n, undefined, 3n]);
  const nothing = sent(events.filter(({ args }) => args.creator === other));
  await assert.rejects(muster.createTask(nothing, { ...call, kind: 1, input: "a", value: 9n }), muster.NotCreatedError);
});

// ---------------------------------------------------------------- before money moves

test("at a wrong address, or on a wrong chain, nothing is sent, and the error says where", async () => {
  const nothing = { eth_call: () => "0x", eth_getCode: () => "0x" };
  const endpoint = chain(10, nothing);
  const on = createClient({ ...endpoint.client, chain: { ...mainnet, id: 421_614 }, transport: custom({ request: endpoint.client.request }, { retryCount: 0 }) });
  const value = 1n;
  for (const client of [endpoint.client, on]) {
    const sending = [
      muster.createTask(client, { address: ADDRESS, kind: 1, value }),
      muster.createTasks(client, { address: ADDRESS, tasks: [{ kind: 1, value }] }),
      muster.withdrawCredit(client, { address: ADDRESS, to: ADDRESS }),
    ];
    const reading = [
      muster.getOverview(client, { address: ADDRESS }),
      muster.estimateTask(client, { address: ADDRESS, deployedIn: 0n, kind: 1 }),
      muster.getTask(client, { address: ADDRESS, id: 1n }),
    ];
    for (const promise of client === on ? reading : [...sending, ...reading]) {
      await assert.rejects(promise, (error) => {
        assert.ok(error instanceof muster.NoMusterError, error);
        const meant = client === on ? "; the client is for chain 421614" : "";
        assert.equal(error.shortMessage, `There is no Muster at ${ADDRESS} on chain 1${meant}.`);
        return true;
      });
    }
    if (client === on) for (const promise of sending) await assert.rejects(promise, /id: 1\)[^]*id: 421614/);
  }
  // If there is also one on the wrong chain.
  const muster1 = chain(10, { eth_call: () => toHex(1, { size: 32 }), eth_estimateGas: () => "0x5208", eth_getCode: () => "0x60" });
  const wrong = createClient({ ...muster1.client, chain: { ...mainnet, id: 421_614, name: "Arbitrum Sepolia" }, transport: custom({ request: muster1.client.request }, { retryCount: 0 }) });
  await assert.rejects(muster.createTask(wrong, { address: ADDRESS, kind: 1, value }), /id: 1\)[^]*id: 421614/);
  for (const { asked } of [endpoint, muster1]) assert.ok(asked.every(({ method }) => !method.startsWith("eth_send")));
});

test("requests that can't be are refused before anybody is asked", async () => {
  const nobody = client(() => assert.fail("asked the node"));
  const both = { kind: 1, input: "a", inputDigest: digestOf("a"), value: 1n };
  const refused = (promise, said) => assert.rejects(promise, (error) => error instanceof muster.RequestError && said.test(error.message));
  await refused(muster.createTask(nobody, { address: ADDRESS, ...both }), /`input` or an `inputDigest`, not both/);
  await refused(muster.createTasks(nobody, { address: ADDRESS, tasks: [both] }), /not both/);
  await refused(muster.createTasks(nobody, { address: ADDRESS, tasks: [] }), /1 to 16 tasks, not 0/);
  await refused(muster.createTasks(nobody, { address: ADDRESS, tasks: Array(17).fill({ kind: 1, value: 1n }) }), /not 17/);
});

test("of a batch that was refused it is said which task, and why", async () => {
  const reason = encodeErrorResult({ abi: musterAbi, errorName: "FeeTooLow", args: [1n, 60n] });
  const asked = muster.createTasks(
    client(() => reverts("RefusedInBatch", [2n, reason])),
    { address: ADDRESS, tasks: Array(3).fill({ kind: 1, value: 1n }) },
  );
  await assert.rejects(asked, (error) => {
    assert.deepEqual(error.refusal, { name: "RefusedInBatch", args: { place: 2n, reason } });
    assert.deepEqual(error.inner, { name: "FeeTooLow", args: { sent: 1n, least: 60n } });
    assert.match(error.shortMessage, /^Of the batch, place 2: .*\. \(sent 1, least 60\)$/);
    assert.match(error.message, /RefusedInBatch, FeeTooLow/);
    return true;
  });
});

test("streams are read as the Rust library reads them", () => {
  const { streams, texts } = JSON.parse(readFileSync(new URL("../../vectors.json", import.meta.url), "utf8"));
  const read = (bytes, atOnce) => {
    const reader = streamReader();
    let [text, end] = ["", "interrupted"];
    try {
      for (let at = 0; at < bytes.length && end === "interrupted"; at += atOnce) {
        const heard = reader.read(bytes.subarray(at, at + atOnce));
        text += heard.text;
        if (heard.over) end = reader.digest;
      }
    } catch (error) {
      if (!(error instanceof StreamProblemError)) throw error;
      end = error.problem;
    }
    // Text before an error remains.
    return [new TextDecoder().decode(reader.bytes), end, text];
  };
  for (const { name, events, text, end } of streams) {
    const bytes = new TextEncoder().encode(events);
    for (const atOnce of [1, 7, bytes.length]) {
      const [shown, ended] = read(bytes, atOnce);
      const wanted = ["whole", "stopped"].includes(end) ? sha256(new TextEncoder().encode(text)) : end;
      assert.deepEqual([shown, ended], [text, wanted], name);
    }
  }
  assert.ok(streams.length > 8);
  for (const { name, result, text } of texts) {
    assert.equal(answerTexts()(result), text, name);
    const letters = answerTexts();
    assert.equal(Array.from(result, (letter) => letters(letter)).join(""), text, name);
  }
  assert.throws(() => streamReader().read(new Uint8Array(2 ** 18).fill(120)), { problem: "malformed" });
});

/** An event with the first piece of a text. */
const piece = (text) => new TextEncoder().encode(`event: piece\ndata: ${JSON.stringify({ from: 0, text, after: digestOf(text) })}\n\n`);

test("a stream's text is that of its bytes, also where it begins with a mark", () => {
  const reader = streamReader();
  assert.equal(reader.read(piece("\ufeffone")).text, "\ufeffone");
  assert.deepEqual(reader.bytes, new TextEncoder().encode("\ufeffone"));
});

test("a stream can make its reader neither compute nor read for ever", () => {
  // This process's own time, for others may have the processor.
  const spent = () => process.cpuUsage().user / 1000;
  // A line of 128 KiB, byte by byte: half a minute if it is looked through at each.
  const [slow, begun] = [streamReader(), spent()];
  for (let i = 0; i < 2 ** 17; i++) slow.read(Uint8Array.of(i ? 32 : 58));
  assert.ok(spent() - begun < 5_000, `${spent() - begun} ms`);
  // The same piece over and over.
  const [same, again] = [streamReader(), piece("x".repeat(16_000))];
  assert.throws(() => {
    for (let bytes = 0; bytes < 2 ** 27; bytes += again.length) same.read(again);
  }, { problem: "tooLong" });
  // A long text, and then pieces of a byte each that begin one before it: two minutes if the text is copied for each.
  const long = streamReader();
  const text = createHash("sha256");
  let from = 0;
  const add = (piece, known = 0) => {
    const after = `0x${text.update(piece.slice(known)).copy().digest("hex")}`;
    long.read(new TextEncoder().encode(`event: piece\ndata: ${JSON.stringify({ from: from - known, text: piece, after })}\n\n`));
    from += piece.length - known;
  };
  while (from < 3_900_000) add("x".repeat(60_000));
  const late = spent();
  for (let i = 0; i < 20_000; i++) add("xx", 1);
  assert.ok(spent() - late < 20_000, `${spent() - late} ms`);
  assert.equal(long.bytes.length, from);
});
