// What needs no chain: names, JSON, the compact interface, seals, errors.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createClient, custom, encodeErrorResult, hexToBytes, keccak256, toHex } from "viem";
import { musterAbi, musterParameters, parameterNumbers } from "../dist/abi.js";
import * as muster from "../dist/index.js";
import { used } from "../dist/interface.js";
import { directoryStore } from "../dist/node.js";
import { allPages } from "../dist/pages.js";
import { readQueryOptions, resultQueryOptions } from "../dist/query.js";
import { commitmentOf, saltOf, sealResult } from "../dist/seal.js";

const { cidOf, digestOf, modelId, objectName, openResult, parse, stringify } = muster;
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

test("all views of the program of reading are actions", () => {
  // The table of contracts/protocol/src/programs.rs says which they are.
  const source = readFileSync(new URL("../../../contracts/protocol/src/programs.rs", import.meta.url), "utf8");
  const table = /\n    lens LENS \{\n([\s\S]*?)\n    \}\n/.exec(source)[1];
  const views = [...table.matchAll(/^\s+(\w+)Call\(/gm)].map(([, name]) => name);
  assert.ok(views.length > 20);
  const bound = muster.musterActions({ address: ADDRESS })({});
  for (const view of views) {
    const name = `get${view[0].toUpperCase()}${view.slice(1)}`;
    assert.equal(typeof muster[name], "function", name);
    assert.equal(typeof bound[name], "function", name);
  }
  // And whatever is bound stands alone too.
  for (const name of Object.keys(bound)) assert.equal(typeof muster[name], "function", name);
});

test("a seal opens with its salt alone, and only on what the salt names", async () => {
  const result = new TextEncoder().encode("a result");
  const salt = saltOf(new Uint8Array(16).fill(7), result);
  const whose = { id: 12n, node: 3, salt: toHex(salt) };
  const sealed = await sealResult(result, whose);
  assert.match(sealed.name, /^[0-9a-f]{64}$/);
  assert.equal(sealed.bytes.length, result.length + 16);
  // The vector of docs/applications.md.
  const page = readFileSync(new URL("../../../docs/applications.md", import.meta.url), "utf8");
  for (const told of [whose.salt.slice(2), sealed.name, toHex(sealed.bytes).slice(2)]) assert.ok(page.includes(told), told);
  assert.deepEqual(await openResult(sealed.bytes, whose), result);
  const refused = (bytes, whose) => assert.rejects(openResult(bytes, whose));
  await refused(sealed.bytes, { ...whose, id: 13n });
  await refused(sealed.bytes, { ...whose, node: 4 });
  await refused(sealed.bytes.with(0, sealed.bytes[0] ^ 1), whose);
  await refused(sealed.bytes.slice(1), whose);
  // Sealed under the right key, but not what the salt names.
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

test("a commitment is keccak256(abi.encode(...))", () => {
  const [value, salt] = [digestOf("value"), digestOf("salt")];
  const word = (number) => number.toString(16).padStart(64, "0");
  const bytes = `0x${word(9)}${word(5)}${word(1)}${value.slice(2)}${salt.slice(2)}`;
  assert.equal(commitmentOf({ id: 9n, node: 5, kind: 1, value, salt }), keccak256(hexToBytes(bytes)));
});

test("a directory is a store", async () => {
  const directory = await mkdtemp(join(tmpdir(), "muster-"));
  try {
    const store = directoryStore(join(directory, "results"));
    const bytes = new TextEncoder().encode("abc");
    assert.equal(await store.get({ digest: digestOf(bytes) }, {}), null);
    await store.put(bytes);
    assert.deepEqual(await store.get({ digest: digestOf(bytes) }, {}), bytes);
    await store.put(bytes, "00ff");
    assert.deepEqual(await store.get({ sealed: "00ff" }, {}), bytes);
    await assert.rejects(directoryStore(join(directory, "results", "00ff")).get({ sealed: "x" }, {}), { code: "ENOTDIR" });
  } finally {
    await rm(directory, { recursive: true });
  }
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
  // A group of which one lets its deadline pass, one withholds, and the first alone answers and is paid.
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
  // Of one without a majority another group is given the task: it is drawn again, then its members are judged.
  const redrawn = [event("TaskRedrawn", { drawBlock: 9n }), ...judged, { ...settled, args: { ...settled.args, outcome: 4 } }];
  const pending = life(created(), ...group, ...redrawn);
  assert.deepEqual([pending.status, pending.drawBlock, "members" in pending], ["pending", 9n, false]);
  // Others' events, and events before it was created, say nothing of it.
  assert.equal(life(started()), undefined);
  assert.equal(muster.follow(end, { ...started(), args: { ...started().args, id: 6n } }), end);
});

/** A client whose node answers as told. */
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
});
