// All tests that need a chain, on the test network that the package brings. MUSTER_DEVNODE names its binary.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { inspect } from "node:util";
import { QueryClient, QueryObserver } from "@tanstack/query-core";
import { HttpRequestError, createClient, custom, decodeEventLog, http, keccak256, parseTransaction, sha256, toBytes, toHex } from "viem";
import { sendTransaction } from "viem/actions";
import { Endpoint } from "../../../test/clients/endpoint.mjs";
import { musterAbi, musterParameters, parameterNumbers } from "../dist/abi.js";
import * as muster from "../dist/index.js";
import { readQueryOptions, taskQueryOptions } from "../dist/query.js";
import { startNetwork } from "../dist/test/index.js";

const { NoResultError, NotConfirmedError, NotCreatedError, NotPlacedError, RefusalError, ReplacedError, ResultError } = muster;
const { TaskKind, TaskNotFoundError, UserRejectedError, WaitTimeoutError, objectName } = muster;
const text = (bytes) => new TextDecoder().decode(bytes);
const FEE = 10_000n;
/** The least start fee of a task for FEE. */
const startFee = ({ startFeeBps }) => (FEE * BigInt(startFeeBps)) / 10_000n;
// Of a wait whose end is certain; a machine that is busy may take long.
const timeout = 120_000;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
/** Waits for a condition; returns its value. */
async function until(what, is) {
  for (const end = Date.now() + timeout; ; await sleep(20)) {
    const found = await is();
    if (found) return found;
    assert.ok(Date.now() < end, `it did not happen: ${what}`);
  }
}

/** A client whose requests are recorded, and can be delayed, answered differently and made to fail. */
function spied(network, account) {
  const asked = [];
  const spy = { asked, broken: false };
  const request = async ({ method, params }) => {
    await spy.hold?.(method);
    asked.push(method);
    if (spy.refuses?.(method, params)) throw { code: -32602, message: "too many blocks" };
    if (spy.broken) throw new HttpRequestError({ url: network.url, details: "the line is cut" });
    return (await spy.answers?.(method, params)) ?? network.client.request({ method, params });
  };
  spy.client = createClient({ account, chain: network.chain, pollingInterval: 20, transport: custom({ request }, { retryCount: 0 }) });
  return spy;
}

describe("a network that validates every committed answer", () => {
  const model = "stabilityai/sdxl-turbo";
  let network;
  before(async () => {
    const nodes = [{ models: [model] }, {}, {}, {}];
    const run = ({ inputDigest }) => toBytes(`result of ${inputDigest}`);
    network = await startNetwork({ nodes, run, parameters: { sampleBps: 10_000n, scorePool: 3n } });
  });
  after(() => network?.stop());
  /** A task to its end. */
  const ended = async (request, onChange) => {
    const { client } = network;
    const { id, task } = await client.createTask({ kind: TaskKind.gpt, input: "a question", value: FEE, ...request });
    return client.waitForTask({ id, fromBlock: task.createdIn, timeout, onChange });
  };
  const gpu = () => network.nodes[0].group;
  const all = (behaviour) => {
    for (const node of network.nodes) node.behave(behaviour);
  };

  test("createTasks creates all, or what is not refused, by one transaction", async () => {
    const { client } = network;
    const [good, unknown] = [{ kind: 1, input: "a", value: FEE }, { kind: 1, vram: 960, value: FEE + 1n }];
    const whole = (error) => error instanceof RefusalError && error.refusal.name === "RefusedInBatch" && error.refusal.args.place === 1n;
    await assert.rejects(client.createTasks({ tasks: [good, unknown] }), whole);
    const before = await client.getAccount({ who: client.account.address });
    const { hash, tasks, refusals } = await client.createTasks({ tasks: [good, unknown, { ...good, input: "b", value: 2n * FEE }], atomic: false });
    assert.deepEqual([tasks[0].status, tasks[1], tasks[2].fee], ["pending", undefined, 2n * FEE]);
    assert.deepEqual(refusals, [undefined, { name: "NobodyCanRun", args: { vram: 960, gpu: 0 } }, undefined]);
    assert.equal(tasks[0].id + 1n, tasks[2].id);
    assert.equal((await client.getAccount({ who: client.account.address })).credit - before.credit, FEE + 1n);
    const receipt = await network.client.request({ method: "eth_getTransactionReceipt", params: [hash] });
    assert.equal(receipt.status, "0x1");
    for (const { id, createdIn } of [tasks[0], tasks[2]]) {
      assert.equal((await client.waitForTask({ id, fromBlock: createdIn, timeout })).status, "succeeded");
    }
  });

  test("every read answers, by names", async () => {
    const { client, nodes } = network;
    const [number, group] = [nodes[0].number, gpu()];
    const page = { from: 0, count: 10 };
    const spec = muster.specOf({ kind: 0, models: [model] });
    const told = {
      Overview: {},
      Owner: {},
      Account: { who: client.account.address },
      Node: { number },
      NodeOf: { who: nodes[0].account.address },
      Nodes: page,
      WeightOf: { number, spec },
      Estimate: { kind: 1, units: 1 },
      IdleNodes: { group, class: 0, ...page },
      ActiveNodes: { group, class: 0, ...page },
      Holders: { model: muster.modelId(model), ...page },
      ExcludedNodes: page,
      Outcome: { id: 1n },
      Locate: { id: 1n, nodeHint: 0, ticketHint: 0n },
      RunningTask: { number },
      PendingTasks: page,
      Queues: page,
      QueuedTasks: { queue: group, ...page },
      QueuedBefore: { ticket: 0n, ...page },
      Groups: page,
      Group: { place: 1 },
      ValidatorDraws: page,
      BestQueued: { number },
      GpuGroup: { name: "NVIDIA L40", vram: 48 },
      GpuName: { group },
      GpuListed: { group },
      GpuGroups: { vram: 48 },
      Parameter: { which: parameterNumbers.minStake },
      QueuePlace: { ticket: 0n },
      StoresOf: { account: nodes[0].account.address },
    };
    const reads = Object.keys(client).filter(
      (name) => /^get[A-Z]/.test(name) && name in muster && !["getTask", "getResult", "getEvents"].includes(name),
    );
    assert.deepEqual(
      reads.sort(),
      Object.keys(told)
        .map((name) => `get${name}`)
        .sort(),
    );
    const answers = Object.fromEntries(
      await Promise.all(Object.entries(told).map(async ([name, args]) => [name, await client[`get${name}`](args)])),
    );
    assert.deepEqual([answers.Overview.nodesJoined, answers.NodeOf, answers.GpuGroup, answers.GpuName], [4, number, group, "NVIDIA L40"]);
    assert.match(answers.StoresOf, new RegExp(`^${network.storeUrl} stream\\+${network.storeUrl}/stream age:age1\\w+$`));
    assert.deepEqual(answers.Holders, { total: 1, numbers: [number] });
    assert.deepEqual(answers.Queues, { total: 0, list: [] });
    assert.deepEqual(answers.Estimate, { estimated: 60, timeLimit: 120, leastFee: 60n });
    assert.ok(answers.WeightOf.eligible && answers.WeightOf.locality > 10n ** 18n);
    // The same by its standalone form.
    assert.deepEqual(await muster.getNode(client, { address: network.address, number }), answers.Node);
  });

  test("a task from its estimate to its result", async () => {
    const { client, storeUrl, store, address } = network;
    const input = "a horse on the moon";
    const { leastFee, eligible, queue } = await client.estimateTask({ kind: TaskKind.stableDiffusion, units: 2, vram: 24 });
    assert.deepEqual([leastFee, eligible, queue.before], [70n, 4, 0]);
    assert.equal((await client.estimateTask({ kind: 1, vram: 49 })).eligible, 0);
    assert.equal((await client.estimateTask({ kind: 1, gpu: gpu() })).eligible, 4);
    // A rated task pays for as many nodes as its group may have: seven, if nothing else is said.
    const rated = async (most) => (await client.estimateTask({ kind: 1, redundancy: 3, most })).leastFee;
    assert.deepEqual(await Promise.all([rated(3), rated(5), rated()]), [180n, 300n, 420n]);
    const seen = [];
    const request = { kind: TaskKind.stableDiffusion, units: 2, vram: 24, models: [model], receipt: true, input, value: leastFee };
    const { id, hash, task } = await client.createTask(request);
    assert.deepEqual([task.status, task.hash, task.creator, task.fee], ["pending", hash, client.account.address, leastFee]);
    assert.deepEqual(task.spec, { ...muster.specOf(request), inputDigest: sha256(toHex(input)) });
    const end = await client.waitForTask({ id, timeout, onChange: ({ status }) => seen.push(status) });
    // A draw that stays undecided is made again.
    assert.deepEqual(seen.filter((status, at) => status !== seen[at - 1]), ["pending", "running", "succeeded"]);
    const [answer] = end.answers;
    // The contract's own record.
    const outcome = await client.getOutcome({ id });
    assert.deepEqual([outcome.state, outcome.node, outcome.resultDigest], [2, answer.node, answer.value]);
    // It held the model, others did not.
    assert.equal(answer.node, network.nodes[0].number);
    const result = await client.getResult({ id, stores: [storeUrl] });
    assert.equal(text(result.bytes), `result of ${sha256(toHex(input))}`);
    assert.deepEqual([result.digest, result.answer, result.task], [answer.value, answer, end]);

    // Missing, unreachable and corrupt are different; the first good store is enough.
    const name = objectName({ digest: answer.value });
    const problem = (stores, problem, count, more) =>
      assert.rejects(client.getResult({ task: end, stores, published: false, ...more }), (error) => {
        assert.ok(error instanceof ResultError && error.problem === problem && error.attempts.length === count, error);
        return true;
      });
    const empty = { name: "empty", get: async () => null };
    const server = createServer((_, response) => response.writeHead(503).end());
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const ill = `http://127.0.0.1:${server.address().port}`;
    await problem([], "missing", 0);
    await problem(empty, "missing", 1);
    await problem([empty, ill], "unreachable", 2);
    await problem("http://127.0.0.1:9", "unreachable", 1);
    assert.equal((await client.getResult({ task: end, stores: [empty, ill, store] })).store, store.name);
    await problem([storeUrl], "tooLong", 1, { maxBytes: 10 });
    // Its node publishes where it is; the caller can exclude such places, or configure others.
    assert.equal((await client.getResult({ task: end })).store, storeUrl);
    await problem([], "missing", 0, { published: (url) => url !== storeUrl });
    const told = client.extend(muster.musterActions({ address, stores: [store] }));
    assert.equal((await told.getResult({ task: end, published: false })).store, store.name);
    server.close();
    network.tamper(name, new TextEncoder().encode("something else"));
    await problem([empty, "http://127.0.0.1:9", storeUrl], "corrupt", 3);
    network.tamper(name);
    await problem([storeUrl], "missing", 1);
    await assert.rejects(client.getResult({ task: end }), new RegExp(`The result of task ${id} is in no store.*ask the node's operator[^]*${storeUrl} does not have ${name} of node ${answer.node}`));
    await assert.rejects(muster.getTask(client, { address, id: id + 1_000n }), TaskNotFoundError);
  });

  test("an input is stored, found by nodes where its creator says, and its result comes with the wait", async () => {
    const inputs = new Map();
    const server = createServer((request, response) => {
      const bytes = inputs.get(request.url.slice(1));
      response.writeHead(bytes ? 200 : 404).end(bytes);
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const store = { name: "inputs", get: async () => null, put: async (object, bytes) => void inputs.set(objectName(object), bytes) };
    const strict = await startNetwork({ nodes: [{}, {}, {}], needsInputs: true, parameters: { sampleBps: 10_000n, scorePool: 3n }, run: (_, input) => toBytes(`seen: ${text(input)}`) });
    try {
      const { client } = strict;
      const gpu = strict.nodes[0].group;
      const request = { kind: TaskKind.gpt, input: "what is asked", store, gpu, value: FEE };
      // The chain does not say where it is.
      const { id } = await client.createTask(request);
      await assert.rejects(client.waitForTask({ id, until: "result", timeout }), (error) => {
        assert.ok(error instanceof NoResultError && error.task.code === 4, error);
        assert.match(error.message, /node \d reported that it cannot run it \(code 4: no store .* has the input: put it where your account's stores say\)\. \d+ wei of the fee are back/);
        return true;
      });
      const urls = [`http://127.0.0.1:${server.address().port}`, "s3://not/read"];
      await client.setStores({ stores: urls });
      assert.equal(await client.getStoresOf({ account: client.account.address }), urls.join(" "));
      for (const redundancy of [0, 1, 2]) {
        for (const hidden of [false, true]) {
          const { id, identity, task } = await client.createTask({ ...request, redundancy, private: hidden });
          const stored = text(inputs.get(task.spec.inputDigest.slice(2)));
          assert.equal(stored.startsWith("muster sealed 1\nage-encryption.org"), hidden, stored);
          const result = await client.waitForTask({ id, until: "result", timeout, identity });
          assert.equal(text(result.bytes), "seen: what is asked");
          assert.equal(result.store, strict.storeUrl);
          // Only its creator opens it.
          if (hidden) await assert.rejects(client.getResult({ task: result.task }), /corrupt|does not match the answer[^]*sealed to its creator: `identity` opens it/);
        }
      }
      const { tasks, identities } = await client.createTasks({ tasks: [{ ...request, private: true }, { kind: TaskKind.gpt, value: FEE, gpu }] });
      assert.equal(identities[1], undefined);
      assert.equal(text((await client.waitForTask({ id: tasks[0].id, until: "result", timeout, identity: identities[0] })).bytes), "seen: what is asked");
      await assert.rejects(client.setStores({ stores: ["a b"] }), muster.RequestError);
      await assert.rejects(client.setStores({ stores: [`https://${"a".repeat(250)}`] }), /at most 256 bytes/);
      // There is no recipient: nothing is put, nothing is sent.
      await assert.rejects(client.createTask({ ...request, gpu: 0, vram: 49, private: true }), /no node that could run/);
      // Nobody could be given what is sealed to a key that is none.
      const [odd] = strict.nodes;
      await client.setStores({ account: odd.account, stores: [strict.storeUrl, "age:age1none"] });
      await assert.rejects(client.createTask({ ...request, private: true }), new RegExp(`1 of 3 nodes .* publish no valid key to seal the input to: ${odd.number}\\.`));
    } finally {
      await strict.stop();
      server.closeAllConnections();
      server.close();
    }
  });

  test("a validated task: the cheat is judged wrong, the sealed result opens", async () => {
    const { client, storeUrl } = network;
    all("answers");
    const [liar] = network.nodes.slice(-1);
    liar.behave("cheats");
    let judged;
    // Three of four run it, so sooner or later it is among them.
    for (let tries = 0; tries < 20 && !judged?.members.some(({ node }) => node === liar.number); tries++) {
      const states = [];
      judged = await ended({ redundancy: 1, gpu: gpu() }, (task) => states.push(task));
      const passed = ["pending", "running", "committed", "sampled", "validating", "succeeded"];
      assert.deepEqual([...new Set(states.map(({ status }) => status))], passed);
      // The first member has committed already, the others are still to begin.
      const formed = states.find(({ status }) => status === "validating");
      assert.deepEqual(
        formed.members.map(({ stage }) => stage),
        ["committed", "called", "called"],
      );
      assert.equal(judged.status, "succeeded");
      assert.equal(judged.members.length, 3);
    }
    const part = judged.members.find(({ node }) => node === liar.number);
    assert.deepEqual([part.verdict, part.paid], ["wrong", 0n]);
    assert.equal(judged.answers.length, 2);
    assert.ok(judged.answers.every(({ node, salt, paid }) => node !== liar.number && salt && paid > 0n));
    const paid = judged.answers.reduce((sum, { paid }) => sum + paid, 0n);
    assert.ok(paid <= FEE + FEE, `${paid}`);
    const right = `result of ${judged.spec.inputDigest}`;
    const result = await client.getResult({ task: judged, stores: [storeUrl] });
    assert.deepEqual([text(result.bytes), result.digest], [right, judged.answers[0].value]);
    // One sealed result gone, the other still there.
    const requests = [];
    const noting = { name: "noting", get: async (object, options) => (requests.push(object), network.store.get(object, options)) };
    await client.getResult({ task: judged, stores: [noting], published: false });
    network.tamper(requests[0].sealed, new TextEncoder().encode("not a sealed result"));
    const second = await client.getResult({ task: judged, stores: [noting], published: false });
    assert.equal(second.answer.node, judged.answers[1].node);
    assert.equal(text(second.bytes), right);
  });

  test("images: the answer is perceptual hashes, and the salt names the result", async () => {
    all("answers");
    const task = await ended({ kind: TaskKind.stableDiffusion, units: 2, redundancy: 1, input: "an image" });
    assert.equal(task.status, "succeeded");
    const { bytes, digest, answer } = await network.client.getResult({ task, stores: [network.storeUrl] });
    assert.equal(text(bytes), `result of ${task.spec.inputDigest}`);
    assert.notEqual(digest, answer.value);
    assert.equal(answer.salt.slice(34), digest.slice(2, 34));
  });

  test("an error report, and a deadline that passes", async () => {
    const { client } = network;
    all("fails");
    const failed = await ended({});
    assert.deepEqual([failed.status, failed.code, failed.refund], ["failed", 1, FEE - startFee(failed)]);
    await assert.rejects(
      client.getResult({ task: failed, stores: [] }),
      (error) => error instanceof NoResultError && error.status === "failed",
    );
    all("silent");
    const { id } = await client.createTask({ kind: 1, value: FEE });
    const { task } = await new Promise((resolve) => {
      const stop = client.watchTasks({
        id,
        fromBlock: 0n,
        onEvents: (events) => {
          const started = events.find(({ eventName }) => eventName === "TaskStarted");
          if (started) resolve({ task: started, stop: stop?.() });
        },
      });
      setTimeout(stop, timeout).unref();
    });
    await network.increaseTime(Number(task.args.deadline) - Math.floor(Date.now() / 1000));
    const end = await client.waitForTask({ id, timeout });
    assert.deepEqual([end.status, end.node, end.refund + end.startFee], ["timedOut", task.args.node, FEE]);
  });

  test("what is withheld is judged so", async () => {
    all("withholds");
    const { client } = network;
    const { id } = await client.createTask({ kind: 1, redundancy: 1, gpu: gpu(), value: FEE });
    // Reveals are open once all have committed, and then nobody reveals.
    const opened = await until("all commit", async () => {
      const { list } = await client.getGroups({ from: 0, count: 10 });
      return list.find((group) => group.id === id && group.opens > 0n);
    });
    const { timestamp } = await client.getBlock();
    await network.increaseTime(Number(opened.closes - timestamp) + 1);
    const end = await client.waitForTask({ id, timeout });
    // The start fee went to the account that called the validators.
    assert.deepEqual([end.status, end.refund, end.startFee], ["undecided", FEE - startFee(end), 0n]);
    assert.deepEqual(
      end.members.map(({ verdict }) => verdict),
      ["withheld", "withheld", "withheld"],
    );
  });

  test("a commitment that is not sampled: its reveal is the end, and without one it times out", async () => {
    const { client, storeUrl } = network;
    await network.setParameter("sampleBps", 0n);
    all("answers");
    const single = await ended({ redundancy: 1, gpu: gpu() });
    assert.deepEqual([single.status, single.members, single.answers.length, single.answers[0].paid], ["succeeded", [], 1, FEE]);
    // Only the sealed one, which opens with the revealed salt.
    const sealed = { name: "sealed", get: async (object, options) => ("sealed" in object ? network.store.get(object, options) : null) };
    assert.equal((await client.getResult({ task: single, stores: [sealed] })).digest, single.answers[0].value);
    assert.equal((await client.getResult({ id: single.id, stores: [storeUrl] })).digest, single.answers[0].value);
    all("withholds");
    const { id } = await client.createTask({ kind: 1, redundancy: 1, gpu: gpu(), value: FEE });
    let committed;
    await assert.rejects(
      client.waitForTask({
        id,
        timeout,
        onChange: (task) => {
          committed = task;
          if (task.status === "committed") throw new Error("that will do");
        },
      }),
      /that will do/,
    );
    assert.equal(committed.status, "committed");
    const { value: window } = await client.getParameter({ which: parameterNumbers.sampleWindow });
    await network.increaseTime(Number(window) + 1);
    const end = await client.waitForTask({ id, timeout });
    assert.deepEqual([end.status, end.node], ["timedOut", committed.node]);
  });

  test("TanStack Query takes the options as they are", async () => {
    all("answers");
    const { client, address } = network;
    const queries = new QueryClient();
    const overview = await queries.fetchQuery(readQueryOptions(client, "overview", { address }));
    assert.equal(overview.paused, false);
    assert.deepEqual(
      await queries.fetchQuery(readQueryOptions(client, "estimate", { address, kind: 1, units: 1 })),
      await client.getEstimate({ kind: 1, units: 1 }),
    );
    // A known task is not looked for since Muster's first block again.
    const { id, task } = await client.createTask({ kind: TaskKind.gpt, value: FEE });
    const spy = spied(network);
    const from = [];
    spy.refuses = (method, params) => void (method === "eth_getLogs" && from.push(BigInt(params[0].fromBlock)));
    for (let i = 0; i < 2; i++) assert.equal((await queries.fetchQuery(taskQueryOptions(spy.client, { address, id }))).id, id);
    assert.ok(from[0] < task.createdIn);
    assert.equal(from.at(-1), task.createdIn);
    await client.waitForTask({ id, timeout });
  });
});

test("what only the clock allows is done, though no block has come since", async () => {
  const network = await startNetwork({ nodes: [{ behaviour: "silent" }], drive: false });
  try {
    const { client, nodes } = network;
    const { id } = await client.createTask({ kind: 1, value: FEE, dispatch: true });
    await client.request({ method: "evm_increaseTime", params: [86_400] });
    await client.expireTask({ id, node: nodes[0].number });
    assert.equal((await client.getTask({ id })).status, "timedOut");
  } finally {
    await network.stop();
  }
});

describe("a quiet network of one slow node, where nobody else does anything", () => {
  let network;
  before(async () => {
    network = await startNetwork({ nodes: [{ behaviour: "silent" }], drive: false });
  });
  after(() => network?.stop());
  const create = (request = {}) => network.client.createTask({ kind: 1, value: FEE, dispatch: true, ...request });

  test("createTask dispatches in a later block; what cannot start is queued, and can be cancelled", async () => {
    const { client, nodes } = network;
    // Equal answers need three nodes of one listed GPU group, similar images do not.
    const candidates = async (request) => (await client.estimateTask(request)).eligible;
    assert.deepEqual(await Promise.all([1, TaskKind.stableDiffusion].map((kind) => candidates({ kind, redundancy: 2 }))), [0, 1]);
    const first = await create();
    assert.deepEqual([first.task.status, first.task.node], ["running", nodes[0].number]);
    const queued = await create();
    assert.equal(queued.task.status, "queued");
    // A better offer is served before, a worse one behind it; of equals the earlier.
    const place = async (value) => (await client.estimateTask({ kind: 1, value })).queue.before;
    assert.deepEqual(await Promise.all([place(FEE + 1n), place(FEE), place(FEE - 1n), place(undefined)]), [0, 1, 1, 1]);
    const better = await create({ value: 2n * FEE });
    assert.deepEqual(await Promise.all([queued, better].map(({ task: { ticket } }) => client.getQueuePlace({ ticket }))), [1, 0]);
    assert.deepEqual((await client.estimateTask({ kind: 1, value: FEE })).queue, { before: 2, queued: 2, capacity: 2 });
    // A queued task keeps its 60 seconds; a new task has half of the shortest limit, rounded up.
    const { value: limitMin } = await client.getParameter({ which: parameterNumbers.limitMin });
    await network.setParameter("limitMin", 123n);
    assert.equal((await client.getEstimate({ kind: 1, units: 1 })).estimated, 62);
    const as = (2n * FEE * 62n) / 60n;
    assert.deepEqual(await Promise.all([place(as), place(as + 1n)]), [1, 0]);
    await network.setParameter("limitMin", limitMin);

    const { id, ticket } = queued.task;
    const stranger = await network.newClient();
    const refused = (error) =>
      error instanceof RefusalError && error.refusal.name === "NotTheCreator" && error.refusal.args.caller === stranger.account.address;
    await assert.rejects(stranger.cancelTask({ id, ticket }), refused);
    await client.cancelTask({ id, ticket });
    const end = await client.waitForTask({ id, timeout });
    assert.deepEqual([end.status, end.refund + end.startFee, end.node], ["cancelled", FEE, 0]);
    const { credit } = await client.getAccount({ who: client.account.address });
    assert.equal(credit, end.refund);
    await client.withdrawCredit({ to: client.account.address });
    assert.equal((await client.getAccount({ who: client.account.address })).credit, 0n);

    // The node answers, and takes the other from the queue.
    nodes[0].behave("slow", 100);
    const ends = await Promise.all([first, better].map(({ id }) => client.waitForTask({ id, timeout })));
    assert.deepEqual(
      ends.map(({ status }) => status),
      ["succeeded", "succeeded"],
    );
    nodes[0].behave("silent");
  });

  test("refusals come before anything is sent", async () => {
    const { client } = network;
    const nonce = () => client.getTransactionCount({ address: client.account.address });
    const earlier = await nonce();
    const refused = (request, name, args) =>
      assert.rejects(create(request), (error) => {
        assert.ok(error instanceof RefusalError, error);
        assert.deepEqual(error.refusal, { name, args });
        return true;
      });
    await refused({ value: 59n }, "FeeTooLow", { sent: 59n, least: 60n });
    await refused({ vram: 80 }, "NobodyCanRun", { vram: 80, gpu: 0 });
    await refused({ models: ["a", "b", "a"] }, "DuplicateModel", { model: muster.modelId("a") });
    assert.equal(await nonce(), earlier);
  });

  test("waits share one poll, whatever they wait for", async () => {
    const { client, nodes, address } = network;
    const ids = [];
    for (let i = 0; i < 3; i++) ids.push((await create()).id);
    const spy = spied(network, client.account);
    const seen = [];
    const onChange = ({ id, status }) => seen.push(`${id} ${status}`);
    const begin = performance.now();
    const waits = ids.map((id) => muster.waitForTask(spy.client, { address, id, timeout, onChange }));
    const counts = (method) => spy.asked.filter((asked) => asked === method).length;
    await sleep(300);
    await until("they have asked some times", () => counts("eth_blockNumber") > 3);
    const [heads, logs, most] = [counts("eth_blockNumber"), counts("eth_getLogs"), (performance.now() - begin) / 15];
    // The first of them asked alone, before the others had come; then one question for all every 20 ms, and none where there is no new block.
    assert.ok(heads < most && logs <= 2, `${heads}, of at most ${most}, and ${logs}`);
    // A later wait that asks about earlier blocks does not repeat known events to the others.
    for (let i = 0; i < 5; i++) {
      await network.mine();
      assert.equal((await muster.waitForTask(spy.client, { address, id: 1n, timeout })).id, 1n);
    }
    nodes[0].behave("answers");
    assert.deepEqual(
      (await Promise.all(waits)).map(({ status }) => status),
      ["succeeded", "succeeded", "succeeded"],
    );
    assert.equal(new Set(seen).size, seen.length, seen.join());
    // Without waits there are no questions.
    await until("nobody asks", async () => {
      const quiet = spy.asked.length;
      await sleep(100);
      return spy.asked.length === quiet;
    });
    nodes[0].behave("silent");
  });

  test("a wait ends by timeout or signal, outlives an outage, and is taken up again by the id", async () => {
    const { client, nodes, address } = network;
    // Nobody draws it.
    const { id, task } = await create({ dispatch: false });
    const spy = spied(network, client.account);
    const wait = (options) => muster.waitForTask(spy.client, { address, id, fromBlock: task.createdIn, ...options });
    await assert.rejects(wait({ timeout: 60 }), (error) => error instanceof WaitTimeoutError && error.id === id);
    await assert.rejects(wait({ signal: AbortSignal.abort(new Error("enough")) }), /enough/);
    const control = new AbortController();
    const waiting = wait({ signal: control.signal });
    setTimeout(() => control.abort(new Error("too long")), 50);
    await assert.rejects(waiting, /too long/);
    spy.broken = true;
    const seen = [];
    const end = wait({ dispatch: true, timeout, onChange: ({ status }) => seen.push(status) });
    await sleep(100);
    assert.deepEqual(seen, []);
    nodes[0].behave("answers");
    spy.broken = false;
    assert.equal((await end).status, "succeeded");
    assert.deepEqual(seen, ["pending", "running", "succeeded"]);
    // By the id alone, after it has ended; and not from behind its creation.
    assert.deepEqual(await muster.waitForTask(spy.client, { address, id }), await end);
    await assert.rejects(muster.waitForTask(spy.client, { address, id, fromBlock: (await end).endedIn }), TaskNotFoundError);
    // Permanent failures are thrown.
    spy.client.request = async () => Promise.reject(new Error("no such method"));
    await assert.rejects(wait(), /no such method/);
    nodes[0].behave("silent");
  });

  test("a wait that the node refuses fails alone", async () => {
    const { client, nodes, address } = network;
    const { id, task } = await create();
    const spy = spied(network, client.account);
    spy.refuses = (method, params) => method === "eth_getLogs" && BigInt(params[0].fromBlock) === 0n;
    const good = muster.waitForTask(spy.client, { address, id, fromBlock: task.createdIn, timeout });
    await assert.rejects(muster.waitForTask(spy.client, { address, id, fromBlock: 0n, timeout }), /too many blocks/);
    nodes[0].behave("answers");
    assert.equal((await good).status, "succeeded");
    nodes[0].behave("silent");
  });

  test("who may dispatch does not, if somebody else has", async () => {
    const { client, nodes } = network;
    nodes[0].behave("answers");
    const stranger = await network.newClient();
    const { id, task } = await create({ dispatch: false });
    const nonce = () => client.getTransactionCount({ address: client.account.address });
    const earlier = await nonce();
    // The draw is due, and made before the first question is answered.
    const spy = spied(network, client.account);
    let [release, asking] = [undefined, false];
    const drawn = new Promise((resolve) => (release = resolve));
    spy.hold = (method) => {
      asking ||= method === "eth_blockNumber";
      return asking ? drawn : undefined;
    };
    const wait = muster.waitForTask(spy.client, { address: network.address, id, fromBlock: task.createdIn, dispatch: true, timeout });
    while (!asking) await sleep(10);
    await stranger.dispatchTasks({});
    release();
    assert.equal((await wait).status, "succeeded");
    assert.equal(await nonce(), earlier);
    nodes[0].behave("silent");
  });

  test("watching loses nothing and repeats nothing, through outages and from a stored cursor", async () => {
    const { client, nodes, address } = network;
    nodes[0].behave("answers");
    const spy = spied(network, client.account);
    const start = await client.getBlockNumber({ cacheTime: 0 });
    const [own, node, failures] = [[], [], []];
    let [next, refuse] = [start + 1n, true];
    const onError = (error) => failures.push(error);
    const options = { address, fromBlock: start + 1n, onError };
    const stops = [
      muster.watchTasks(spy.client, {
        ...options,
        creator: client.account.address,
        onEvents: async (events, cursor) => {
          // Events whose handler failed come again.
          if (refuse) {
            refuse = false;
            throw new Error("not now");
          }
          own.push(...events);
          next = cursor;
        },
      }),
      muster.watchNode(spy.client, { ...options, node: nodes[0].number, onEvents: (events) => void node.push(...events) }),
    ];
    for (let i = 0; i < 4; i++) {
      spy.broken = i % 2 === 1;
      const { id } = await create();
      await client.waitForTask({ id, timeout });
    }
    spy.broken = false;
    const told = (events, count) => until(`${count} are told of`, () => events.filter(({ eventName }) => eventName === "TaskSucceeded").length >= count);
    await told(own, 4);
    await told(node, 4);
    for (const stop of stops) stop();
    assert.ok(failures.some(({ message }) => message === "not now") && failures.some(({ name }) => name === "HttpRequestError"), failures);
    // All that the chain has, in its order, each once.
    const logs = await client.request({ method: "eth_getLogs", params: [{ address, fromBlock: toHex(start + 1n) }] });
    const all = logs.map((log) => ({ ...decodeEventLog({ abi: musterAbi, ...log }), at: [BigInt(log.blockNumber), Number(log.logIndex)] }));
    const places = (events) => events.map(({ blockNumber, logIndex }) => [blockNumber, logIndex]);
    const expected = (whose) => all.filter(({ args }) => whose(args)).map(({ at }) => at);
    assert.deepEqual(
      places(own),
      expected(({ creator }) => creator === client.account.address),
    );
    assert.deepEqual(
      places(node),
      expected((args) => args.node === nodes[0].number),
    );
    // A second watcher from the stored cursor sees only new events.
    const later = [];
    const stop = muster.watchTasks(spy.client, {
      ...options,
      fromBlock: next,
      creator: client.account.address,
      onEvents: (events) => void later.push(...events),
    });
    const { id } = await create();
    await client.waitForTask({ id, timeout });
    await told(later, 1);
    stop();
    assert.ok(later.length >= 3 && later.every(({ args }) => args.id === id));
    nodes[0].behave("silent");
  });

  test("a question about many blocks is asked in parts, with the same answer", async () => {
    const { client, address } = network;
    const toBlock = await client.getBlockNumber({ cacheTime: 0 });
    const spy = spied(network, client.account);
    const range = { address, creator: client.account.address, fromBlock: 0n, toBlock };
    const whole = await muster.getEvents(spy.client, range);
    const asked = spy.asked.length;
    assert.deepEqual(await muster.getEvents(spy.client, { ...range, blockRange: 7n }), whole);
    assert.equal(spy.asked.length - asked, asked * Math.ceil((Number(toBlock) + 1) / 7));
    assert.ok(whole.length > 10);
  });

  test("a task is asked for again until a minute after its end", async () => {
    const { client, nodes, address } = network;
    const { id } = await create();
    const queries = new QueryClient();
    const options = taskQueryOptions(client, { address, id });
    const observer = new QueryObserver(queries, options);
    assert.equal((await observer.fetchOptimistic(observer.options)).data.status, "running");
    const query = queries.getQueryCache().find({ queryKey: options.queryKey });
    assert.equal(observer.options.refetchInterval(query), client.pollingInterval);
    nodes[0].behave("answers");
    await client.waitForTask({ id, timeout });
    await queries.refetchQueries({ queryKey: options.queryKey });
    assert.equal((await queries.fetchQuery(options)).status, "succeeded");
    // Its end may be undone at first; one that was there from the beginning is taken for old.
    assert.equal(observer.options.refetchInterval(query), client.pollingInterval);
    assert.equal(observer.options.refetchInterval({ state: query.state }), false);
    const { now } = Date;
    Date.now = () => now() + 61_000;
    assert.equal(observer.options.refetchInterval(query), false);
    Date.now = now;
    queries.clear();
  });

  test("where the draw is made at creation, the task is running at once", async () => {
    await network.setParameter("drawDelay", 0n);
    const { id, task } = await create({ dispatch: false });
    assert.deepEqual([task.status, task.node], ["running", network.nodes[0].number]);
    assert.equal((await network.client.waitForTask({ id, until: "placed", timeout })).status, "running");
  });

  test("parameters are changed by their names, delayed ones after their delay", async () => {
    for (const name of ["minPrice", "scorePool"]) {
      await network.setParameter(name, 5n);
      assert.equal((await network.client.getParameter({ which: parameterNumbers[name] })).value, 5n);
    }
    assert.ok(musterParameters.find(({ name }) => name === "scorePool").delayed);
  });
});

describe("a chain whose blocks hold what no estimate knows", () => {
  let network;
  before(async () => {
    // A node that answers would draw.
    const silent = { behaviour: "silent" };
    network = await startNetwork({ nodes: [silent, silent, silent, silent], drive: false });
  });
  after(() => network?.stop());
  /** A client whose node tries and estimates in the newest block, where no draw is due that the next one will make. */
  const behind = () => {
    const spy = spied(network, network.client.account);
    spy.answers = async (method, params) =>
      ["eth_call", "eth_estimateGas"].includes(method) && [undefined, "pending"].includes(params[1])
        ? network.client.request({ method, params: [params[0], "latest"] })
        : undefined;
    return spy;
  };

  test("there is gas for draws that become due in the transaction's own block", async () => {
    const { address } = network;
    const { client } = behind();
    // Each draws the one before; the cost of that differs, and may sometimes fit without the margin.
    let last;
    for (let i = 0; i < 4; i++) {
      const { id, task } = await muster.createTask(client, { address, kind: 1, value: FEE });
      if (last) assert.equal((await muster.getTask(client, { address, id: last })).status, "running");
      assert.equal(task.status, "pending");
      last = id;
    }
  });

  test("draws that stand in the way only in the transaction's own block are made, and it is sent again", async () => {
    const { address } = network;
    const { client, asked } = behind();
    const task = { kind: 1, value: FEE };
    // Of two models: createTasks leaves its draw to others.
    await muster.createTask(client, { address, ...task, models: ["a", "b"] });
    asked.length = 0;
    const { hash, tasks } = await muster.createTasks(client, { address, tasks: [task, task] });
    assert.deepEqual(tasks.map((created) => [created.status, created.hash]), [["pending", hash], ["pending", hash]]);
    // Itself, which fails, the draw, and itself again.
    assert.equal(asked.filter((method) => method === "eth_sendRawTransaction").length, 3);
  });

  test("what is refused only as it is mined is told as that refusal, with the transaction", async () => {
    const { address, client } = network;
    const spy = behind();
    spy.hold = (method) => (method === "eth_sendRawTransaction" ? network.setParameter("minPrice", FEE) : undefined);
    const refused = (error) => {
      assert.ok(error instanceof RefusalError && error.refusal.name === "FeeTooLow", error);
      return client.getTransactionReceipt({ hash: error.hash }).then(({ status }) => assert.equal(status, "reverted"));
    };
    await muster.createTask(spy.client, { address, kind: 1, value: FEE }).then(() => assert.fail("it was taken"), refused);
  });
});

describe("a task that is paid for is not lost, whatever fails after it was sent", () => {
  let network;
  let spy;
  before(async () => {
    network = await startNetwork({ nodes: [{}, {}], drive: false });
  });
  after(() => network?.stop());
  const create = (request = {}) => {
    const { address } = network;
    return muster.createTask(spy.client, { address, kind: 1, value: FEE, ...request });
  };
  /** The error of a rejected promise. */
  const failure = (promise) => promise.then(() => assert.fail("it did not fail"), (error) => error);
  /** Leaves the node idle for the next. */
  const ended = async (id) => assert.equal((await network.client.waitForTask({ id, dispatch: true, timeout })).status, "succeeded");
  /** The task that a transaction created, by the chain itself. */
  const createdBy = async (hash) => {
    const { logs } = await network.client.getTransactionReceipt({ hash });
    return decodeEventLog({ abi: musterAbi, ...logs[0] }).args.id;
  };
  const cut = () => new HttpRequestError({ url: network.url, details: "the line is cut" });

  test("a receipt is asked for again after an outage", async () => {
    spy = spied(network, network.client.account);
    let outages = 3;
    spy.hold = async (method) => {
      if (method === "eth_getTransactionReceipt" && outages-- > 0) throw cut();
    };
    const { id, hash } = await create();
    assert.ok(outages < 0);
    assert.equal(await createdBy(hash), id);
    await ended(id);
  });

  test("nor is it lost where the answer to sending is, or the transport sends it twice", async () => {
    const { client } = network;
    for (const said of [cut(), { code: -32000, message: "nonce too low" }]) {
      spy = spied(network, client.account);
      spy.answers = async (method, params) => {
        if (method !== "eth_sendRawTransaction") return undefined;
        await client.request({ method, params });
        throw said;
      };
      const { id, hash } = await create();
      assert.equal(await createdBy(hash), id);
      await ended(id);
    }
    // A transaction that no node has taken is not waited for.
    for (const [code, message, expected] of [[-32000, "nonce too low", "NonceTooLowError"], [-32603, "not now", "InternalRpcError"]]) {
      spy = spied(network, client.account);
      spy.hold = async (method) => {
        if (method === "eth_sendRawTransaction") throw { code, message };
      };
      const error = await failure(create());
      assert.ok(error.walk(({ name }) => name === expected), error);
    }
  });

  test("calls of one account at once are a transaction each, also equal ones by several clients of a node that lags", async () => {
    const { client } = network;
    spy = spied(network, client.account);
    const before = await client.request({ method: "eth_getTransactionCount", params: [client.account.address, "pending"] });
    spy.answers = (method) => (method === "eth_getTransactionCount" ? before : undefined);
    const other = spied(network, client.account);
    const request = { address: network.address, kind: 1, input: "the same", value: FEE };
    const created = await Promise.all([spy.client, other.client, spy.client, other.client].map((one) => muster.createTask(one, request)));
    for (const key of ["id", "hash"]) assert.equal(new Set(created.map((task) => task[key])).size, created.length);
    for (const { id } of created) await ended(id);
  });

  test("a call is sent again under another number if something else took the account's, or the chain was taken back", async () => {
    const { address, client } = network;
    const { account } = client;
    spy = spied(network, account);
    let others = 2;
    spy.hold = async (method) => {
      if (method === "eth_sendRawTransaction" && others-- > 0) await client.sendTransaction({ to: account.address, value: 0n });
    };
    const { id } = await create();
    assert.ok(others < 0);
    await ended(id);
    const snapshot = await client.request({ method: "evm_snapshot" });
    for (let i = 0; i < 2; i++) await create();
    await client.request({ method: "evm_revert", params: [snapshot] });
    const again = await create();
    assert.equal((await muster.getTask(client, { address, id: again.id })).hash, again.hash);
    await ended(again.id);
  });

  test("operators go on after a test went back to a snapshot, with what is open there", async () => {
    const { client } = network;
    spy = spied(network, client.account);
    await network.setParameter("sampleBps", 0n);
    const open = await create({ kind: 0, redundancy: 1 });
    await client.dispatchTasks({});
    await until("it is committed to", async () => (await client.getTask({ id: open.id })).status === "committed");
    const snapshot = await client.request({ method: "evm_snapshot" });
    const round = async () => {
      const plain = await create();
      await ended(plain.id);
      await until("it is revealed", async () => (await network.mine(), (await client.getTask({ id: open.id })).status === "succeeded"));
      return plain.id;
    };
    const first = await round();
    await client.request({ method: "evm_revert", params: [snapshot] });
    assert.equal(await round(), first);
  });

  test("what was perhaps sent is not sent under another number", async () => {
    const { client, address } = network;
    let sent = 0;
    const request = async ({ method, params }) => {
      // Of several nodes behind the endpoint one took it, and another one has not heard of it.
      if (method === "eth_getTransactionByHash") return null;
      if (method !== "eth_sendRawTransaction") return client.request({ method, params });
      if (sent++) throw { code: -32000, message: "nonce too low" };
      await client.request({ method, params });
      throw cut();
    };
    const one = createClient({ account: client.account, chain: network.chain, pollingInterval: 20, transport: custom({ request }, { retryDelay: 10 }) });
    const { id, hash } = await muster.createTask(one, { address, kind: 1, value: FEE });
    assert.deepEqual([sent, await createdBy(hash)], [2, id]);
    await ended(id);
  });

  test("nor is what a gateway sent twice, where it cannot be asked for", async () => {
    const { client, address } = network;
    let sent = 0;
    const request = async ({ method, params }) => {
      if (method === "eth_getTransactionByHash") throw cut();
      if (method !== "eth_sendRawTransaction") return client.request({ method, params });
      sent++;
      await client.request({ method, params });
      throw { code: -32000, message: "nonce too low" };
    };
    const one = createClient({ account: client.account, chain: network.chain, pollingInterval: 20, transport: custom({ request }, { retryCount: 0 }) });
    const { id, hash } = await muster.createTask(one, { address, kind: 1, value: FEE });
    assert.deepEqual([sent, await createdBy(hash)], [1, id]);
    await ended(id);
  });

  test("where it cannot be had the error names the transaction", async () => {
    spy = spied(network, network.client.account);
    spy.refuses = (method) => method === "eth_getTransactionReceipt";
    const error = await failure(create());
    assert.ok(error instanceof NotConfirmedError, error);
    assert.equal(error.functionName, "createTask");
    await ended(await createdBy(error.hash));
  });

  test("of a private one the error has the key, which no log has", async () => {
    const { address, client, storeUrl } = network;
    const request = { store: storeUrl, input: "between us", private: true };
    const opened = async (id, identity) => {
      const { bytes } = await client.waitForTask({ id, until: "result", dispatch: true, timeout, identity });
      assert.match(text(bytes), /^result of 0x/);
    };
    spy = spied(network, client.account);
    spy.refuses = (method) => method === "eth_getTransactionReceipt";
    const one = await failure(create(request));
    const batch = await failure(muster.createTasks(spy.client, { address, tasks: [{ kind: 1, value: FEE }, { kind: 1, value: FEE, ...request }] }));
    for (const error of [one, batch]) {
      assert.ok(error instanceof NotConfirmedError, error);
      assert.doesNotMatch(inspect(error), new RegExp(error.identities.at(-1)));
    }
    const first = await createdBy(one.hash);
    await opened(first, one.identities[0]);
    assert.equal(batch.identities[0], undefined);
    await ended(first + 1n);
    await opened(first + 2n, batch.identities[1]);
    spy = spied(network, client.account);
    const controller = new AbortController();
    spy.hold = async (method) => method === "eth_sendRawTransaction" && controller.abort(new Error("enough"));
    const left = await failure(create({ ...request, dispatch: true, signal: controller.signal }));
    assert.ok(left instanceof NotPlacedError, left);
    await opened(left.id, left.identities[0]);
    // A wallet that has sent it may fail afterwards, and so may a browser's WebSocket, with an error that is none of viem's.
    const failing = (account, method, send) => {
      const request = async (asked) => {
        if (asked.method !== method) return client.request(asked);
        await send(asked.params[0]);
        throw Object.assign(new Error("gone"), { type: "error" });
      };
      return createClient({ account, chain: network.chain, pollingInterval: 20, transport: custom({ request }, { retryDelay: 10, retryCount: 0 }) });
    };
    const wallet = failing(client.account.address, "eth_sendTransaction", ({ to, data, value }) => sendTransaction(client, { to, data, value: BigInt(value) }));
    const asked = { address, kind: 1, value: FEE, ...request };
    const before = await client.getOverview();
    const unknown = await failure(muster.createTask(wallet, asked));
    await opened(before.tasks + 1n, unknown.identities[0]);
    const socket = failing(client.account, "eth_sendRawTransaction", (raw) => client.request({ method: "eth_sendRawTransaction", params: [raw] }));
    const { id, identity } = await muster.createTask(socket, asked);
    await opened(id, identity);
  });

  test("what was cancelled in the wallet created nothing", async () => {
    const { client } = network;
    const { account } = client;
    spy = spied(network, account);
    let pending;
    let replacement;
    spy.answers = async (method, [given] = []) => {
      if (method === "eth_sendRawTransaction") {
        const { nonce, to, value, data } = parseTransaction(given);
        pending = { hash: keccak256(given), from: account.address.toLowerCase(), nonce: toHex(nonce), to, value: toHex(value), input: data, blockNumber: null };
        replacement = await client.sendTransaction({ to: account.address, value: 0n, nonce });
        return pending.hash;
      }
      return method === "eth_getTransactionByHash" && given === pending?.hash ? pending : undefined;
    };
    const error = await failure(create());
    assert.ok(error instanceof ReplacedError, error);
    assert.deepEqual([error.hash, error.replacement], [pending.hash, replacement]);
  });

  test("a receipt that tells of no task is not taken for one", async () => {
    const { address, client } = network;
    spy = spied(network, client.account);
    spy.answers = async (method, params) =>
      method === "eth_getTransactionReceipt" ? { ...(await client.request({ method, params })), logs: [] } : undefined;
    for (const creating of [create, () => muster.createTasks(spy.client, { address, tasks: [{ kind: 1, value: FEE }] })]) {
      const error = await failure(creating());
      assert.ok(error instanceof NotCreatedError, error);
      await ended(await createdBy(error.hash));
    }
  });

  test("a draw that the user declines, or that is not waited for, leaves the id", async () => {
    spy = spied(network, network.client.account);
    let sent = 0;
    spy.hold = async (method) => {
      if (method === "eth_sendRawTransaction" && ++sent > 1) throw { code: 4001, message: "no" };
    };
    const declined = await failure(create({ dispatch: true }));
    assert.ok(declined instanceof NotPlacedError && declined.cause instanceof UserRejectedError, declined);
    assert.equal(await createdBy(declined.hash), declined.id);
    assert.deepEqual([declined.task.id, declined.task.status], [declined.id, "pending"]);
    await ended(declined.id);
    // Aborted on its way; earlier it would not be sent at all.
    const controller = new AbortController();
    spy.hold = async (method) => method === "eth_sendRawTransaction" && controller.abort(new Error("enough"));
    const left = await failure(create({ dispatch: true, signal: controller.signal }));
    assert.ok(left instanceof NotPlacedError && left.cause.message === "enough", left);
    assert.equal(await createdBy(left.hash), left.id);
    await ended(left.id);
  });
});

describe("a chain of 30,000 blocks behind an endpoint that gives logs of 10,000 and answers ten requests a second", () => {
  let network;
  let endpoint;
  let old;
  before(async () => {
    network = await startNetwork({ nodes: [{}] });
    const { client } = network;
    const { id } = await client.createTask({ kind: 1, value: FEE });
    old = await client.waitForTask({ id, timeout });
    await network.mine(30_000);
    endpoint = await Endpoint.start(network.url, { logsRangeMax: 10_000, requestsPerSecond: 10, retryAfter: 1 });
  });
  after(async () => {
    await endpoint?.stop();
    await network?.stop();
  });
  /** A client that knows nothing yet, whose transport asks once. */
  const newcomer = (chain = network.chain) =>
    createClient({ account: network.client.account, chain, transport: http(endpoint.url, { retryCount: 0 }), pollingInterval: 500 }).extend(
      muster.musterActions({ address: network.address }),
    );
  /** The requests during an action, by method. */
  const during = async (action) => {
    const since = endpoint.calls.length;
    const result = await action();
    const counts = {};
    for (const { method } of endpoint.calls.slice(since)) counts[method] = (counts[method] ?? 0) + 1;
    return { result, counts };
  };

  test("a task is found by its id, a result too, by many at once", async () => {
    const client = newcomer();
    const refused = endpoint.refused.requests;
    const found = await Promise.all(Array.from({ length: 12 }, () => client.getTask({ id: old.id })));
    for (const task of found) assert.deepEqual(task, old);
    assert.ok(endpoint.refused.range > 0 && endpoint.refused.requests > refused, endpoint.refused);
    const { digest } = await client.getResult({ id: old.id, stores: [network.storeUrl] });
    assert.equal(digest, old.answers[0].value);
    // The span that is taken is known by now; a longer one is tried now and then.
    const { range } = endpoint.refused;
    await client.getTask({ id: old.id });
    assert.ok(endpoint.refused.range <= range + 1, `${range}, then ${endpoint.refused.range}`);
  });

  test("an estimate is one call, and GPU groups are looked for once", async () => {
    const client = newcomer();
    const request = { kind: 1, vram: 24 };
    const expected = await network.client.estimateTask(request);
    const first = await during(() => client.estimateTask(request));
    assert.deepEqual([first.result, first.counts.eth_call], [expected, 1]);
    const second = await during(() => client.estimateTask(request));
    assert.deepEqual([second.result, second.counts.eth_call, (second.counts.eth_getLogs ?? 0) <= 1], [expected, 1, true], second.counts);
    // With a GPU group there is nothing to look for.
    const third = await during(() => client.estimateTask({ kind: 1, gpu: network.nodes[0].group }));
    assert.deepEqual(third.counts, { eth_call: 1 });
    // A chain without Multicall3.
    const bare = newcomer({ ...network.chain, contracts: {} });
    bare.chain.contracts.multicall3 = { address: `0x${"99".repeat(20)}` };
    const { result, counts } = await during(() => bare.estimateTask({ kind: 1, gpu: network.nodes[0].group }));
    assert.deepEqual([result.eligible, counts.eth_call > 10], [1, true]);
  });

  test("a task is created, waited for and watched", async () => {
    const client = newcomer();
    const told = [];
    const stop = client.watchTasks({
      creator: client.account.address,
      fromBlock: 0n,
      onEvents: (events) => void told.push(...events),
    });
    const { id, task } = await client.createTask({ kind: 1, value: FEE, dispatch: true });
    const end = await client.waitForTask({ id, timeout });
    assert.equal(end.status, "succeeded");
    assert.deepEqual(await network.client.getTask({ id, fromBlock: task.createdIn }), end);
    await until("both are told of", () => told.filter(({ eventName }) => eventName === "TaskSucceeded").length === 2);
    stop();
    assert.deepEqual(
      told.filter(({ eventName }) => eventName === "TaskCreated").map(({ args }) => args.id),
      [old.id, id],
    );
  });
});

describe("a chain that is reorganised", () => {
  let network;
  before(async () => {
    // The objects that its nodes ask for are gone, too.
    network = await startNetwork({ nodes: [{ behaviour: "silent" }], drive: false, onError: () => undefined });
  });
  after(() => network?.stop());
  const rpc = (method, params = []) => network.client.request({ method, params });
  /** Makes blocks until something is over. */
  const mining = (what, is) => until(what, async () => (await network.mine(), is()));

  test("a wait says that its task is gone", async () => {
    const { client, address } = network;
    const snapshot = await rpc("evm_snapshot");
    const { id, task } = await client.createTask({ kind: 1, value: FEE });
    const spy = spied(network, client.account);
    let error;
    const wait = muster.waitForTask(spy.client, { address, id, timeout }).catch((thrown) => (error = thrown));
    await until("it has asked", () => spy.asked.includes("eth_getLogs"));
    // Enough blocks for a look back to reach them.
    let made = 0;
    await mining("it goes on", () => made++ > 20);
    await rpc("evm_revert", [snapshot]);
    await mining("it is told", () => error);
    await wait;
    assert.ok(error instanceof muster.TaskGoneError, error);
    assert.deepEqual([error.id, error.task.hash], [id, task.hash]);
    assert.match(error.message, /^Task \d+ is gone: the chain was reorganised/);
  });

  test("what has happened to it otherwise is told anew, and the wait goes on", async () => {
    const { client, nodes, address } = network;
    const { id } = await client.createTask({ kind: 1, value: FEE });
    await network.mine();
    const snapshot = await rpc("evm_snapshot");
    await client.dispatchTasks({});
    const spy = spied(network, client.account);
    const seen = [];
    const wait = muster.waitForTask(spy.client, { address, id, timeout, onChange: ({ status }) => seen.push(status) });
    await until("it runs", () => seen.includes("running"));
    let made = 0;
    await mining("it goes on", () => made++ > 20);
    await rpc("evm_revert", [snapshot]);
    await mining("it is pending again", () => seen.lastIndexOf("pending") > seen.indexOf("running"));
    nodes[0].behave("answers");
    await client.dispatchTasks({});
    assert.equal((await wait).status, "succeeded");
    assert.deepEqual(seen, ["pending", "running", "pending", "running", "succeeded"]);
  });

  test("another's task that gets the id between its creation and the first question is not followed", async () => {
    const { client, address } = network;
    const stranger = await network.newClient();
    const spy = spied(network, client.account);
    const snapshot = await rpc("evm_snapshot");
    let raw;
    spy.answers = async (method, params) => {
      if (method === "eth_sendRawTransaction") [raw] = params;
      if (method !== "eth_blockNumber" || !raw) return undefined;
      const again = raw;
      raw = undefined;
      await rpc("evm_revert", [snapshot]);
      await stranger.createTask({ kind: 1, input: "another's question", value: 2n * FEE });
      return void (await rpc("eth_sendRawTransaction", [again]));
    };
    const error = await muster.createTask(spy.client, { address, kind: 1, input: "a question", value: FEE, dispatch: true }).catch((thrown) => thrown);
    assert.ok(error instanceof NotPlacedError && error.cause instanceof muster.TaskGoneError, error);
    const { id, task, cause } = error;
    assert.deepEqual(cause.ids, [id + 1n]);
    assert.match(error.shortMessage, new RegExp(`Task ${id} is gone.* has created ${id + 1n} instead. Wait for that.$`));
    assert.doesNotMatch(error.message, /It goes on/);
    await assert.rejects(client.waitForTask({ id, created: task, until: "result", timeout }), muster.TaskGoneError);
    await assert.rejects(client.getResult({ id, created: task }), muster.TaskGoneError);
    assert.equal((await client.waitForTask({ id: id + 1n, created: task, until: "placed", dispatch: true, timeout })).fee, FEE);
  });
});

describe("a draw that is asked of a wallet, or on its way", () => {
  let network;
  before(async () => {
    network = await startNetwork({ nodes: [{ behaviour: "silent" }, { behaviour: "silent" }], drive: false });
  });
  after(() => network?.stop());

  /** Waits for a task whose draw by `account` is delayed, and for another; others draw that one, and both are answered. */
  async function waits(account, method) {
    const { client, nodes, address } = network;
    for (const node of nodes) node.behave("silent");
    const other = await client.createTask({ kind: 1, value: FEE, dispatch: true });
    const own = await client.createTask({ kind: 1, value: FEE });
    const spy = spied(network, account);
    const seen = { over: false, asked: 0 };
    const held = new Promise((_, reject) => (seen.refuse = reject));
    spy.hold = (asked) => (asked === method ? (seen.asked++, held) : undefined);
    const wait = ({ id, task }, dispatch) => muster.waitForTask(spy.client, { address, id, fromBlock: task.createdIn, dispatch, timeout });
    seen.own = wait(own, true).finally(() => (seen.over = true));
    await until("the draw is sent", () => seen.asked);
    const before = spy.asked.length;
    seen.other = wait(other, false);
    // Their calls make draws.
    for (const node of nodes) node.behave("answers");
    assert.equal((await seen.other).status, "succeeded");
    await client.waitForTask({ id: own.id, timeout });
    // It has had the time to ask twice more, or has ended: with a wallet's account it need not wait for open transactions.
    await until("it goes on asking", () => seen.over || spy.asked.slice(before).filter((asked) => asked === "eth_blockNumber").length > 3);
    return seen;
  }

  test("of two waits with two accounts each pays for its own draw", async () => {
    const { client, nodes, address } = network;
    // Their answers would make draws.
    for (const node of nodes) node.behave("silent");
    const stranger = await network.newClient();
    const { tasks } = await client.createTasks({ tasks: [{ kind: 1, value: FEE }, { kind: 1, value: FEE }] });
    const accounts = [client.account, stranger.account];
    const sent = () => Promise.all(accounts.map((account) => client.getTransactionCount({ address: account.address })));
    const before = await sent();
    const wait = (account, { id, createdIn: fromBlock }) => muster.waitForTask(client, { address, account, id, fromBlock, until: "placed", dispatch: true, timeout });
    await Promise.all(accounts.map((account, i) => wait(account, tasks[i])));
    assert.deepEqual(await sent(), before.map((count) => count + 1));
    for (const node of nodes) node.behave("answers");
    await Promise.all(tasks.map(({ id }) => client.waitForTask({ id, timeout })));
  });

  test("a wallet that is left open stops no wait, and is not asked again", async () => {
    const seen = await waits(network.client.account.address, "eth_sendTransaction");
    assert.equal((await seen.own).status, "succeeded");
    assert.equal(seen.asked, 1);
    seen.refuse({ code: 4001, message: "no" });
  });

  test("an application that sends for itself hears of its task once that is over, however it ends", async () => {
    const seen = await waits(network.client.account, "eth_sendRawTransaction");
    assert.equal(seen.over, false);
    seen.refuse({ code: -32000, message: "nonce too low" });
    assert.equal((await seen.own).status, "succeeded");
  });
});

test("the development node does not outlive a test that is killed", async () => {
  const program = `import { startNetwork } from ${JSON.stringify(new URL("../dist/test/index.js", import.meta.url))}
    console.log((await startNetwork({ nodes: [{}] })).url)`;
  const child = spawn(process.execPath, ["--input-type", "module", "--eval", program], { stdio: ["ignore", "pipe", "inherit"] });
  const url = await new Promise((resolve) => child.stdout.once("data", (data) => resolve(String(data).trim())));
  const answers = () =>
    fetch(url, { method: "POST", body: "{}" }).then(
      () => true,
      () => false,
    );
  assert.ok(await answers());
  child.kill("SIGKILL");
  await until("the node ends", async () => !(await answers()));
});

test("a network whose node cannot be started says so", async () => {
  await assert.rejects(startNetwork({ devnode: "no-such-binary" }), /no-such-binary could not be started/);
});
