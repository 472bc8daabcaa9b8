// Tasks whose answers are checked, through whichever client is handed in: the contract of test/solidity asks for them, three nodes
// commit, reveal and are judged, and the contract learns what came of it.
import assert from "node:assert/strict";
import { DEV_KEY } from "./node.mjs";
import { stage } from "./stage.mjs";
import { DIGEST, newKey, numberOf } from "./story.mjs";

const [SAMPLED, REPLICATED] = [1, 2];
const [ANSWER, ERROR] = [0, 1];
const STATE = { OPEN: 1n, SUCCEEDED: 2n, ERROR: 3n, UNDECIDED: 9n };
const SETTLED = { AGREED: 0n, DIFFERING: 2n, UNANSWERED: 3n };
const FEE = 30_007n;

/** An answer of one image whose perceptual hash differs from RIGHT's in these bits. */
const image = (bits) => `0x${(0x2606cc31b1154b45n ^ bits).toString(16).padStart(16, "0")}${"00".repeat(24)}`;
/** The answers of an honest node and of another honest one, and two other pictures. */
const [RIGHT, NEAR, OTHER, ANOTHER] = [image(0n), image(0x102010n), image(0xffffffffn), image(0xffffffffn << 32n)];
/** The code of an error. */
const code = (number) => `0x${number.toString(16).padStart(64, "0")}`;

/**
 * Plays it on a Muster with nobody in it. `client` is as the story's, with `commitment(id, node, kind, value, salt)`; gives the names of
 * what it has seen, `{event, error}`.
 */
export async function validated(muster, client) {
  const { events, seen, send, actor, last, travel, parameter, refused, fails, deployed } = stage(muster, client);
  const app = await deployed("Application", muster);
  const user = await actor(0n);
  const { stakeUnit } = await client.call("overview", []);
  const [stake, name] = [(await parameter("minStake")) * BigInt(stakeUnit), (await parameter("groupFee")) * BigInt(stakeUnit)];
  const operators = new Map();
  for (let i = 0; i < 3; i++) {
    const operator = await actor(stake + name);
    // The first to join with a GPU pays for its name.
    await send(operator.key, "join", ["NVIDIA H100", 80, []], stake + (i ? 0n : name));
    operators.set(events.findLast((event) => event.name === "NodeJoined").args.node, operator);
  }

  const mine = (blocks) => client.rpc("anvil_mine", [`0x${blocks.toString(16)}`]);
  const lottery = (bps) => send(DEV_KEY, "setParameter", [numberOf("sampleBps"), bps]);
  const request = async (policy) => {
    await app.tell(user.key, "request", [policy, 1, 80, [], `0x${"05".repeat(32)}`], FEE);
    const id = BigInt(await app.call("lastTask", []));
    // A draw among few may stay undecided, and is made again from another block's hash.
    for (let tries = 0; tries < 200; tries++) {
      await send(DEV_KEY, "dispatch", [16]);
      const begun = last("TaskStarted", id) ?? last("GroupFormed", id);
      if (begun) return { id, ...begun };
    }
    throw new Error(`task ${id} was never drawn`);
  };
  /** A node commits; gives what reveals it. */
  const commit = async (id, group, node, value, kind = ANSWER) => {
    const salt = newKey();
    await send(operators.get(node).key, "commit", [id, client.commitment(id, node, kind, value, salt)]);
    return [id, group, node, kind, value, salt];
  };
  const reveal = (opening) => send(user.key, "reveal", opening);
  const state = async (id) => BigInt(await app.call("state", [id]));
  /** The contract's knowledge of a task that has ended. */
  const learn = async (id, expected, result = code(0)) => {
    assert.equal(await state(id), expected);
    await app.tell(user.key, "settle", [id]);
    assert.equal(await app.call("results", [id]), result);
  };

  // Sampled, and the lot says no: the node's revealed value is the result.
  assert.equal(BigInt(await app.call("quote", [SAMPLED, 2])) * 3n, BigInt(await app.call("quote", [REPLICATED, 2])));
  await lottery(0);
  const alone = await request(SAMPLED);
  const runner = operators.get(alone.node);
  await refused(runner.address, "submit", [alone.id, DIGEST], "CommitFirst");
  await refused(user.address, "reveal", [alone.id, 0, alone.node, ANSWER, RIGHT, code(1)], "NotCommitted");
  const opening = await commit(alone.id, 0, alone.node, RIGHT);
  await refused(runner.address, "commit", [alone.id, code(1)], "NothingToCommit");
  await refused(user.address, "validate", [alone.id, alone.node], "HashUnknown");
  await fails(user.address, app.encode("settle", [alone.id]), app.address, app, "NotEnded");
  assert.equal(await state(alone.id), STATE.OPEN);
  await mine(4);
  await refused(user.address, "validate", [alone.id, alone.node], "NotSampled");
  await refused(user.address, "reveal", [...opening.slice(0, 4), NEAR, opening[5]], "NotWhatWasCommitted");
  await reveal(opening);
  // Fewer nodes than scorePool: the reserve keeps nothing.
  assert.equal(last("TaskSucceeded", alone.id).paid, FEE);
  await learn(alone.id, STATE.SUCCEEDED, RIGHT);

  const failing = await request(SAMPLED);
  const report = await commit(failing.id, 0, failing.node, code(7), ERROR);
  await mine(4);
  await reveal(report);
  await learn(failing.id, STATE.ERROR);
  // It rests.
  const rest = events.findLast(({ name, args }) => name === "NodeExcluded" && args.node === failing.node).args;
  const { timestamp } = await client.rpc("eth_getBlockByNumber", ["latest", false]);
  await travel(rest.until - BigInt(timestamp));
  await send(user.key, "poke", [failing.node]);

  // Sampled, and the lot says yes: two more run it, and three answers judge each other. `value` gives a node's answer.
  await lottery(10_000);
  const validate = async (value) => {
    const { id, node } = await request(SAMPLED);
    const openings = [await commit(id, 0, node, value(0))];
    await mine(4);
    await refused(user.address, "reveal", openings[0], "Sampled");
    await send(user.key, "validate", [id, node]);
    for (let tries = 0; tries < 50 && !last("GroupFormed", id); tries++) {
      await mine(4);
      await send(user.key, "formGroup");
    }
    const { group, nodes } = last("GroupFormed", id);
    assert.deepEqual([nodes[0], [...nodes].sort()], [node, [...operators.keys()].sort()]);
    openings[0][1] = group;
    await refused(user.address, "reveal", openings[0], "NotOpen");
    for (const [i, member] of nodes.slice(1).entries()) {
      assert.ok(last("MemberStarted", id).deadline > 0n);
      openings.push(await commit(id, group, member, value(i + 1)));
    }
    await refused(user.address, "settle", [id, group], "RevealsOpen");
    await refused(user.address, "reveal", [id, group, 99n, ANSWER, RIGHT, code(1)], "NotAMember");
    for (const opening of openings) await reveal(opening);
    return { id, nodes, settled: last("GroupSettled", id) };
  };
  // Perceptual hashes that differ in three bits are the same images.
  const agreed = await validate((i) => [RIGHT, OTHER, NEAR][i]);
  assert.equal(agreed.settled.outcome, SETTLED.AGREED);
  const verdicts = events.filter(({ name, args }) => name === "MemberJudged" && args.id === agreed.id).map(({ args }) => args.verdict);
  assert.deepEqual(verdicts, [1n, 2n, 1n]);
  assert.ok([RIGHT, NEAR].includes(agreed.settled.answer));
  await learn(agreed.id, STATE.SUCCEEDED, agreed.settled.answer);
  const differing = await validate((i) => [RIGHT, OTHER, ANOTHER][i]);
  assert.equal(differing.settled.outcome, SETTLED.DIFFERING);
  await learn(differing.id, STATE.UNDECIDED);

  // Replicated: three run it at once. One lets its deadline pass; the others' answers are the same.
  const three = await request(REPLICATED);
  assert.deepEqual([...three.nodes].sort(), [...operators.keys()].sort());
  const [first, second, silent] = three.nodes;
  const answers = [await commit(three.id, three.group, first, RIGHT), await commit(three.id, three.group, second, NEAR)];
  await travel((await parameter("limitMax")) + 1n);
  await send(user.key, "expire", [silent, three.id]);
  for (const opening of answers) await reveal(opening);
  assert.equal(last("GroupSettled", three.id).outcome, SETTLED.AGREED);
  await learn(three.id, STATE.SUCCEEDED, last("GroupSettled", three.id).answer);

  // Two report errors, the third has two images where one was asked for: nobody has answered.
  const none = await request(REPLICATED);
  const two = `${RIGHT.slice(0, 18)}${"07".repeat(8)}${"00".repeat(16)}`;
  const reports = [];
  for (const node of none.nodes.slice(0, 2)) reports.push(await commit(none.id, none.group, node, code(9), ERROR));
  const bad = await commit(none.id, none.group, none.nodes[2], two);
  for (const opening of reports) await reveal(opening);
  await refused(user.address, "reveal", bad, "BadImages");
  await travel((await parameter("revealWindow")) + 1n);
  await send(user.key, "settle", [none.id, none.group]);
  assert.equal(last("GroupSettled", none.id).outcome, SETTLED.UNANSWERED);
  await learn(none.id, STATE.UNDECIDED);

  // The contract's books, to the wei: each time the fee, but for a start fee.
  const startFee = (FEE * (await parameter("startFeeBps"))) / 10_000n;
  const owed = 3n * (FEE - startFee);
  const credit = async () => BigInt((await client.call("account", [app.address])).credit);
  assert.deepEqual([BigInt(await app.call("owed", [user.address])), await credit()], [owed, owed]);
  await app.tell(user.key, "claim");
  assert.deepEqual([BigInt(await app.call("owed", [user.address])), await credit()], [0n, 0n]);
  return seen;
}
