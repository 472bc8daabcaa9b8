// Tasks checked against the chain, on the test network; and false facts are found. MUSTER_DEVNODE names its binary.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createClient, custom, encodeFunctionData, keccak256, multicall3Abi, toHex } from "viem";
import { musterAbi, parameterNumbers } from "../dist/abi.js";
import { EndpointError, TaskKind } from "../dist/index.js";
import { replayTransaction } from "../dist/replay.js";
import { startNetwork } from "../dist/test/index.js";
import { Core, gather, lotOf, verify, verifyTask } from "../dist/verify/index.js";

// Twenty of them, a slash, are whole stake units of stake.
const FEE = 101n * 5_000_000_000_000n;
/** The rest of it once a start fee was spent. */
const less = (facts) => FEE - (FEE * BigInt(facts.events[0].args.startFeeBps)) / 10_000n;
const timeout = 120_000;
const UNKNOWN = "not checkable here";
const [OK, WRONG] = ["ok", "wrong"];

/** The results for a subject, each once. */
const results = (checks, subject) => [...new Set(checks.filter((check) => check.subject === subject).map(({ result }) => result))];
/** Everything is right, except facts that cannot be known. */
const holds = (checks, ...unknown) => {
  const wrong = checks.filter(({ result, subject }) => result !== OK && !(result === UNKNOWN && unknown.includes(subject)));
  assert.deepEqual(wrong, []);
};
/** Facts with an event's values changed, or with the event taken out. */
const changed = (facts, name, values, is = () => true) => {
  const of = (events) =>
    events.flatMap((event) => {
      if (event.eventName !== name || !is(event.args)) return [event];
      return values ? [{ ...event, args: { ...event.args, ...values } }] : [];
    });
  return { ...facts, events: of(facts.events), settlement: of(facts.settlement) };
};

describe("tasks of a network that validates", () => {
  let network;
  let core;
  before(async () => {
    core = await Core.load();
    // More than the least stake, so that slashed nodes stay.
    const nodes = Array.from({ length: 4 }, () => ({ stake: 800n * 10n ** 18n }));
    network = await startNetwork({ nodes, parameters: { sampleBps: 10_000n, scorePool: 3n } });
  });
  after(() => network?.stop());
  const all = (behaviour) => {
    for (const node of network.nodes) node.behave(behaviour);
  };
  const gpu = () => network.nodes[0].group;
  const ended = async (request) => {
    const { client } = network;
    const { id, task } = await client.createTask({ kind: TaskKind.gpt, input: "a question", value: FEE, ...request });
    return client.waitForTask({ id, fromBlock: task.createdIn, timeout });
  };
  const asked = ({ id }) => gather(network.client, { address: network.address, id, replay: replayTransaction });
  const checked = ({ id }) => verifyTask(network.client, { address: network.address, id, replay: replayTransaction });

  test("on its own: the fee is paid, the answer is anybody's", async () => {
    all("answers");
    const checks = await checked(await ended({}));
    holds(checks, "answer");
    assert.deepEqual(results(checks, "draw"), [OK]);
    assert.deepEqual([results(checks, "payout"), results(checks, "deadline"), results(checks, "answer"), results(checks, "end")], [[OK], [OK], [UNKNOWN], [OK]]);
    all("fails");
    const facts = await asked(await ended({}));
    holds(verify(facts, core));
    assert.deepEqual(results(verify(changed(facts, "TaskErrorReported", { refund: FEE }), core), "payout"), [WRONG]);
    // Unknown policies are not judged.
    const later = facts.events.map((event) => (event.args.spec ? { ...event, args: { ...event.args, spec: { ...event.args.spec, redundancy: 9 } } } : event));
    assert.deepEqual(results(verify({ ...facts, events: later }, core), "payout"), [UNKNOWN]);
  });

  test("facts of a chain that is reorganised while they are read are read again, or refused", async () => {
    all("answers");
    const { id } = await ended({});
    let changes = 1;
    const request = async ({ method, params }) => {
      const answer = await network.client.request({ method, params });
      return method === "eth_getBlockByNumber" && changes-- > 0 ? { ...answer, hash: toHex(7n, { size: 32 }) } : answer;
    };
    const client = createClient({ chain: network.chain, transport: custom({ request }, { retryCount: 0 }) });
    const facts = await gather(client, { address: network.address, id });
    for (const { blockNumber, blockHash } of facts.events) assert.equal(facts.blocks.get(blockNumber).hash, blockHash);
    changes = Number.POSITIVE_INFINITY;
    await assert.rejects(gather(client, { address: network.address, id }), (error) => error instanceof EndpointError && /the chain was reorganised/.test(error.message));
  });

  test("a lot for each commitment, and both outcomes", async () => {
    all("answers");
    await network.setParameter("sampleBps", 5_000n);
    const seen = new Set();
    let facts;
    for (let tries = 0; tries < 24 && seen.size < 2; tries++) {
      const task = await ended({ redundancy: 1, gpu: gpu() });
      facts = await asked(task);
      const checks = verify(facts, core);
      holds(checks);
      assert.deepEqual(results(checks, "lot"), [OK]);
      seen.add(facts.events.some(({ eventName }) => eventName === "TaskSampled"));
    }
    assert.equal(seen.size, 2, "24 lots were all alike");
    // Another hash, by which the lot would have been the other.
    const committed = facts.events.find(({ eventName }) => eventName === "AnswerCommitted");
    const { id, block } = committed.args;
    const happened = lotOf(facts.blocks.get(block).hash, id) < 5_000n;
    const other = Array.from({ length: 100 }, (_, i) => keccak256(toHex(i))).find((hash) => lotOf(hash, id) < 5_000n !== happened);
    const blocks = (hash) => new Map([...facts.blocks, [block, { ...facts.blocks.get(block), hash }]]);
    assert.deepEqual(results(verify({ ...facts, blocks: blocks(other) }, core), "lot"), [WRONG]);
    const without = new Map([...facts.blocks].filter(([number]) => number !== block));
    assert.deepEqual(results(verify({ ...facts, blocks: without }, core), "lot"), [UNKNOWN]);
    assert.deepEqual(results(verify(changed(facts, "AnswerCommitted", { block: block + 1n }, (args) => args.block > 0n), core), "lot"), [WRONG]);
    await network.setParameter("sampleBps", 10_000n);
    // The task has the parameters of its creation.
    holds(verify(await asked({ id }), core));
  });

  test("a cheat in a group, and lies about it", async () => {
    all("answers");
    const [liar] = network.nodes.slice(-1);
    liar.behave("cheats");
    let task;
    for (let tries = 0; tries < 20 && !task?.members?.some(({ node }) => node === liar.number); tries++) {
      task = await ended({ redundancy: 1, gpu: gpu() });
    }
    liar.behave("answers");
    const facts = await asked(task);
    const checks = verify(facts, core);
    holds(checks);
    for (const subject of ["commitment", "lot", "judgement", "scores", "slashes", "payout"]) assert.deepEqual(results(checks, subject), [OK], subject);
    const slashed = checks.find(({ subject, node }) => subject === "slashes" && node === liar.number);
    assert.match(slashed.because, new RegExp(`${20n * less(facts)} was taken`));
    // As many times as the parameter was when the task was created.
    const { blockNumber } = facts.events[0];
    const another = (before, value, blockNumber) => ({ ...facts, changes: [{ parameter: parameterNumbers.slashTimes, before, value, blockNumber, logIndex: 0 }] });
    assert.deepEqual(results(verify(another(20n, 30n, blockNumber + 1n), core), "slashes"), [OK]);
    assert.ok(results(verify(another(20n, 19n, blockNumber - 1n), core), "slashes").includes(WRONG));

    const isLiar = ({ node }) => node === liar.number;
    const honest = task.members.find(({ node }) => node !== liar.number).node;
    const isHonest = ({ node }) => node === honest;
    const other = toHex(7n, { size: 32 });
    const lies = [
      ["commitment", changed(facts, "AnswerCommitted", { commitment: `0x${"11".repeat(24)}` }, isHonest)],
      ["commitment", changed(facts, "AnswerRevealed", { salt: other }, isLiar)],
      ["commitment", changed(facts, "AnswerCommitted", null, isHonest)],
      ["judgement", changed(facts, "AnswerRevealed", { value: other }, isHonest)],
      ["judgement", changed(facts, "MemberJudged", { verdict: 1 }, isLiar)],
      ["judgement", changed(facts, "GroupSettled", { outcome: 2 })],
      ["judgement", changed(facts, "GroupSettled", { answer: other })],
      ["scores", changed(facts, "ScoreRecorded", { score: 9 }, isHonest)],
      ["scores", changed(facts, "ScoreRecorded", null, isLiar)],
      ["slashes", changed(facts, "NodeSlashed", null)],
      ["slashes", changed(facts, "NodeSlashed", { stake: 10n ** 21n })],
      ["payout", changed(facts, "MemberJudged", { paid: FEE }, isLiar)],
      ["payout", changed(facts, "MemberJudged", { paid: 1n }, isHonest)],
      ["payout", changed(facts, "GroupSettled", { refund: 1n })],
      ["payout", changed(facts, "TaskSampled", { paid: 0n })],
      ["deadline", changed(facts, "MemberStarted", { deadline: 1n })],
    ];
    for (const [subject, lie] of lies) assert.ok(results(verify(lie, core), subject).includes(WRONG), `a lie about ${subject} was not found`);
    // Less than is due may have been all there was.
    assert.ok(results(verify(changed(facts, "NodeSlashed", { stake: 0n, unbonding: 0n, credit: 1n }), core), "slashes").includes(UNKNOWN));
    // Without the times of commitments it is unknown which was first.
    assert.deepEqual(results(verify({ ...facts, blocks: new Map() }, core), "judgement"), [UNKNOWN]);
  });

  test("images: perceptual hashes, as many as were asked for", async () => {
    all("answers");
    const facts = await asked(await ended({ kind: TaskKind.stableDiffusion, units: 2, redundancy: 1, input: "an image" }));
    holds(verify(facts, core));
    const three = facts.events.map(({ args }) => args.value?.replace(/0{32}$/, `${"01".repeat(8)}${"00".repeat(8)}`)).find(Boolean);
    assert.ok(results(verify(changed(facts, "AnswerRevealed", { value: three }), core), "commitment").includes(WRONG));
  });

  test("three at once", async () => {
    all("answers");
    const facts = await asked(await ended({ redundancy: 2, gpu: gpu(), value: 3n * FEE }));
    const checks = verify(facts, core);
    holds(checks);
    assert.deepEqual([results(checks, "judgement"), results(checks, "lot"), results(checks, "payout")], [[OK], [], [OK]]);
  });

  test("three that cannot, or do not agree: the start fee is kept", async () => {
    for (const behaviour of ["fails", "cheats"]) {
      all(behaviour);
      const facts = await asked(await ended({ redundancy: 2, gpu: gpu(), value: 3n * FEE }));
      const checks = verify(facts, core);
      holds(checks);
      assert.deepEqual([results(checks, "judgement"), results(checks, "scores"), results(checks, "payout")], [[OK], [OK], [OK]]);
      const { refund, startFee } = facts.events.find(({ eventName }) => eventName === "GroupSettled").args;
      assert.deepEqual([refund, startFee], [3n * less(facts), 3n * (FEE - less(facts))]);
      const lie = changed(facts, "GroupSettled", { refund: 3n * FEE, startFee: 0n });
      assert.ok(results(verify(lie, core), "payout").includes(WRONG));
    }
  });

  test("one that cannot: it is not scored, and its part not shared out", async () => {
    all("answers");
    const [unable] = network.nodes.slice(-1);
    unable.behave("fails");
    for (const [redundancy, value] of [[1, FEE], [2, 3n * FEE]]) {
      let task;
      const isMember = ({ node }) => node === unable.number;
      for (let tries = 0; tries < 40 && !task?.members?.some(isMember); tries++) task = await ended({ redundancy, gpu: gpu(), value });
      assert.equal(task.members.find(isMember)?.verdict, "errorReported");
      const facts = await asked(task);
      const checks = verify(facts, core);
      holds(checks);
      const paid = task.members.reduce((sum, { paid }) => sum + paid, 0n);
      if (redundancy === 2) assert.equal(paid, 2n * FEE);
      assert.match(checks.find(({ subject, node }) => subject === "scores" && node === unable.number).because, /^none, where none/);
      const [first, ...others] = task.members.filter(({ paid }) => paid > 0n);
      const lie = changed(facts, "MemberJudged", { paid: first.paid + FEE }, ({ node }) => node === first.node);
      assert.ok(results(verify(lie, core), "payout").includes(WRONG));
      assert.equal(others.length, 1);
    }
    all("answers");
  });

  test("as many as their ratings ask for: draw and judgement are done again whole", async () => {
    all("answers");
    const { client, address } = network;
    const profile = { algorithm: 1, least: 3, most: 3, reschedules: 2, targeting: 2, target: 49n * 10n ** 16n, alpha: 5n * 10n ** 17n, period: 300 };
    const hash = await client.writeContract({ address, abi: musterAbi, functionName: "setProfile", args: [profile] });
    await client.waitForTransactionReceipt({ hash });
    const facts = await asked(await ended({ redundancy: 3, gpu: gpu(), value: 3n * FEE }));
    const checks = verify(facts, core);
    holds(checks);
    assert.deepEqual([results(checks, "draw"), results(checks, "judgement"), results(checks, "payout")], [[OK], [OK], [OK]]);
    const unaided = verify({ ...facts, replays: new Map() }, core);
    holds(unaided, "draw", "judgement", "payout", "end");
    assert.deepEqual([results(unaided, "draw"), results(unaided, "judgement"), results(unaided, "end")], [[UNKNOWN], [UNKNOWN], [UNKNOWN]]);
  });

  test("a draw done again: from a lying chain it comes out different, and what cannot be done again says so", async () => {
    all("answers");
    const { client, address, chain } = network;
    const { id } = await ended({});
    const started = (await client.getEvents({ id, fromBlock: 0n, toBlock: await client.getBlockNumber() })).find(({ eventName }) => eventName === "TaskStarted");
    const { transactionHash: hash, blockNumber } = started;
    /** Through a node with false answers. */
    const through = (change) =>
      replayTransaction(
        createClient({ chain, transport: custom({ request: async ({ method, params }) => change(method, params, () => client.request({ method, params })) }, { retryCount: 0 }) }),
        { address, hash, blockNumber },
      );
    const honest = await through((method, params, ask) => ask());
    assert.deepEqual([honest.same, /comes to the same \d+ events/.test(honest.because)], [true, true]);
    // The event names another node as drawn.
    const other = toHex(started.args.node % 4 + 1, { size: 32 });
    const lies = await through(async (method, params, ask) => {
      const answer = await ask();
      if (method !== "eth_getLogs") return answer;
      return answer.map((log) => ({ ...log, topics: log.topics.map((topic, i) => (i === 2 && topic === toHex(started.args.node, { size: 32 }) ? other : topic)) }));
    });
    assert.deepEqual([lies.same, /differs from its event/.test(lies.because)], [false, true]);
    // Of fifty other hashes of the block that draws, at least one draws another node.
    let differing = 0;
    for (let i = 0; i < 50 && !differing; i++) {
      const { same } = await through(async (method, params, ask) => {
        const answer = await ask();
        return method === "eth_getBlockByNumber" && !params[1] ? { ...answer, hash: keccak256(toHex(i)) } : answer;
      });
      differing += Number(same === false);
    }
    assert.equal(differing, 1);
    const without = await through((method, params, ask) => (method === "eth_getStorageAt" ? Promise.reject(new Error("missing trie node")) : ask()));
    assert.deepEqual([without.same, /does not tell Muster's storage in block/.test(without.because)], [undefined, true]);
    // A call from a contract.
    const multicall = "0xcA11bde05977b3631167028862bE2a173976CA11";
    const data = encodeFunctionData({ abi: musterAbi, functionName: "nameModel", args: ["named/by-a-contract"] });
    const called = await client.writeContract({ address: multicall, abi: multicall3Abi, functionName: "aggregate3", args: [[{ target: address, allowFailure: false, callData: data }]] });
    const receipt = await client.waitForTransactionReceipt({ hash: called });
    const foreign = await replayTransaction(client, { address, hash: called, blockNumber: receipt.blockNumber });
    assert.deepEqual([foreign.same, /A contract made the call/.test(foreign.because)], [undefined, true]);
  });

  test("an account that delegates to code has its task drawn where another's is queued at once, and done again both come out so", async () => {
    const { client, address, chain, nodes } = network;
    all("silent");
    const account = await network.newClient();
    const authorization = await account.signAuthorization({ contractAddress: "0xcA11bde05977b3631167028862bE2a173976CA11", executor: "self" });
    const delegated = await account.sendTransaction({ to: client.account.address, authorizationList: [authorization] });
    await account.waitForTransactionReceipt({ hash: delegated });
    const create = async (client) => (await client.createTask({ kind: TaskKind.gpt, value: FEE })).task;
    for (const _ of nodes) assert.equal((await create(client).then(({ id }) => client.waitForTask({ id, until: "placed", timeout }))).status, "running");
    const [own, other] = [await create(account), await create(client)];
    assert.deepEqual([own.status, other.status], ["pending", "queued"]);
    const replay = ({ hash, createdIn }, code) => {
      const request = async ({ method, params }) => (method === "eth_getCode" && code?.(BigInt(params[1]))) || client.request({ method, params });
      return replayTransaction(createClient({ chain, transport: custom({ request }, { retryCount: 0 }) }), { address, hash, blockNumber: createdIn });
    };
    assert.deepEqual([(await replay(own)).same, (await replay(other)).same], [true, true]);
    assert.equal((await replay(own, () => "0x")).same, false);
    // If it gets code in that very block, the order is unknown.
    const late = await replay(own, (number) => number < own.createdIn && "0x");
    assert.deepEqual([late.same, /has code only before or after block/.test(late.because)], [undefined, true]);
    const mute = await replay(own, () => Promise.reject(new Error("missing trie node")));
    assert.deepEqual([mute.same, /does not tell whether an account had code/.test(mute.because)], [undefined, true]);
    all("answers");
    for (const { id } of [own, other]) assert.equal((await client.waitForTask({ id, timeout })).status, "succeeded");
  });

  test("what is withheld: nothing opens the commitments, and all but the start fee is refunded", async () => {
    all("withholds");
    const { client } = network;
    const { id } = await client.createTask({ kind: TaskKind.gpt, redundancy: 1, gpu: gpu(), value: FEE });
    let opened;
    for (const end = Date.now() + timeout; !opened && Date.now() < end; ) {
      await new Promise((resolve) => setTimeout(resolve, 25));
      const { list } = await client.getGroups({ from: 0, count: 10 });
      opened = list.find((group) => group.id === id && group.opens > 0n);
    }
    assert.ok(opened, "nobody committed");
    // The costs of the call of validators are known by then.
    assert.deepEqual(results(await checked({ id }), "payout"), [OK, UNKNOWN]);
    const { timestamp } = await client.getBlock();
    await network.increaseTime(Number(opened.closes - timestamp) + 1);
    await client.waitForTask({ id, timeout });
    const checks = await checked({ id });
    holds(checks, "commitment");
    assert.deepEqual([results(checks, "commitment"), results(checks, "judgement")], [[UNKNOWN], [OK]]);
  });

  test("not sampled: revealed, or timed out", async () => {
    const { client } = network;
    await network.setParameter("sampleBps", 0n);
    all("answers");
    const facts = await asked(await ended({ redundancy: 1, gpu: gpu() }));
    const checks = verify(facts, core);
    holds(checks);
    assert.deepEqual([results(checks, "lot"), results(checks, "answer"), results(checks, "payout")], [[OK], [OK], [OK]]);
    const lies = [
      ["answer", changed(facts, "TaskSucceeded", { resultDigest: toHex(1n, { size: 32 }) })],
      ["payout", changed(facts, "TaskSucceeded", { paid: FEE - 1n })],
    ];
    for (const [subject, lie] of lies) assert.deepEqual(results(verify(lie, core), subject), [WRONG], subject);
    all("withholds");
    const { id } = await client.createTask({ kind: TaskKind.gpt, redundancy: 1, gpu: gpu(), value: FEE });
    await assert.rejects(
      client.waitForTask({
        id,
        timeout,
        onChange: ({ status }) => {
          if (status === "committed") throw new Error("that will do");
        },
      }),
      /that will do/,
    );
    const { value: window } = await client.getParameter({ which: parameterNumbers.sampleWindow });
    await network.increaseTime(Number(window) + 1);
    await client.waitForTask({ id, timeout });
    const late = await checked({ id });
    holds(late, "commitment");
    assert.deepEqual([results(late, "lot"), results(late, "payout"), results(late, "end")], [[OK], [OK], [OK]]);
    // The contract could have ended it too early: all that its events say would fit.
    const own = await asked({ id });
    const aborted = own.events.find(({ eventName }) => eventName === "TaskAborted");
    const replays = new Map([...own.replays, [aborted.transactionHash, { same: false, because: "It is refused." }]]);
    assert.deepEqual(results(verify({ ...own, replays }, core), "end"), [WRONG]);
  });
});
