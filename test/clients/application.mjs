// The contract of test/solidity as an application, through the client that is handed in. It creates tasks, learns their fates from their
// receipts, and hands refunds on, with every end that a task can have.
import assert from "node:assert/strict";
import { DEV_KEY } from "./node.mjs";
import { stage } from "./stage.mjs";
import { DIGEST, numberOf, spec } from "./story.mjs";

/** Gas that a contract may need at most to ask, as test/solidity/Meter.sol measures it. */
const BOUNDS = {
  "outcome: no receipt": 60_000n,
  "outcome: not ended": 60_000n,
  "outcome: failed": 60_000n,
  "outcome: succeeded": 60_000n,
  "locate: Pending": 70_000n,
  "locate: running": 70_000n,
  "locate: queued": 70_000n,
  "locate: ended": 70_000n,
  "locate: the first of 12 that are Pending": 70_000n,
  "locate: the last of 12 that are Pending": 70_000n,
  "locate: not found among 12": 110_000n,
};
const [NONE, OPEN, SUCCEEDED, ERROR, TIMED_OUT, CANCELLED, EVICTED, WAITED] = [0n, 1n, 2n, 3n, 4n, 5n, 6n, 7n];
const [NOWHERE, PENDING, QUEUED, RUNNING] = [0n, 1n, 2n, 3n];

/** Plays it on a Muster with nobody in it, and leaves nobody there. `client` is as the story's; gives the gas of asking. */
export async function application(muster, client) {
  const { events, send, actor, last, travel, parameter, fails, deployed } = stage(muster, client);
  const [app, meter] = [await deployed("Application", muster), await deployed("Meter")];
  const { tell } = app;

  // ERC-165: the interface, ERC-165 itself, ERC-2535's loupe; nothing else.
  for (const [id, known] of [[await meter.call("interfaceId", []), true], ["0x01ffc9a7", true], ["0x48e2b093", true], ["0xffffffff", false]]) {
    assert.equal(await client.call("supportsInterface", [id]), known, id);
  }

  // A node, and a user that asks for images.
  const [operator, user, other] = [await actor(0n), await actor(0n), await actor(0n)];

  // Inputs are looked for where the contract publishes; only its deployer says where.
  const stores = "https://inputs.example";
  await fails(other.address, app.encode("publish", [stores]), app.address, app, "NotThePublisher");
  await tell(DEV_KEY, "publish", [stores]);
  assert.equal(await client.call("storesOf", [app.address]), stores);
  const { stakeUnit } = await client.call("overview", []);
  const stake = ((await parameter("minStake")) + (await parameter("groupFee"))) * BigInt(stakeUnit);
  await client.send(DEV_KEY, { to: operator.address, value: stake });
  await send(operator.key, "join", ["NVIDIA H100", 80, [31n]], stake);
  const node = events.findLast((event) => event.name === "NodeJoined").args.node;

  const request = async (fee) => {
    await tell(user.key, "request", [0, 1, 80, [31n], `0x${"05".repeat(32)}`], fee);
    return BigInt(await app.call("lastTask", []));
  };
  const draw = async (id) => {
    for (let tries = 0; tries < 200; tries++) {
      await send(DEV_KEY, "dispatch", [16]);
      if (["TaskStarted", "TaskQueued", "TaskAborted"].some((name) => last(name, id))) return;
    }
    throw new Error(`task ${id} was never drawn`);
  };
  const where = async (id, hints = {}) => {
    const [status, runner, deadline] = await app.call("where", [id, hints.node ?? 0n, hints.ticket ?? 0n]);
    return [BigInt(status), BigInt(runner), BigInt(deadline)];
  };
  const outcome = async (id) => {
    const { state, node, code, ended, resultDigest } = await client.call("outcome", [id]);
    assert.equal(BigInt(await app.call("state", [id])), BigInt(state));
    return { state: BigInt(state), node: BigInt(node), code: BigInt(code), ended: BigInt(ended), resultDigest };
  };
  const nothing = { node: 0n, code: 0n, ended: 0n, resultDigest: `0x${"00".repeat(32)}` };
  const ended = async (id, expected) => {
    const { timestamp } = await client.rpc("eth_getBlockByNumber", ["latest", false]);
    assert.deepEqual(await outcome(id), { ...nothing, ended: BigInt(timestamp), ...expected });
  };
  const gas = {};
  const measure = async (what, name, ...args) => {
    const [used] = await meter.call(name, [muster, ...args]);
    gas[what] = BigInt(used);
    assert.ok(used <= BOUNDS[what], `${what} takes ${used} gas, more than ${BOUNDS[what]}`);
  };

  // Pending, then running: the receipt says neither which, nor where, only that it has not ended.
  const fees = { running: 10_007n, evicted: 20_011n, cancelled: 30_011n, waiting: 40_009n, failing: 50_021n };
  const running = await request(fees.running);
  assert.deepEqual([await where(running), await outcome(running)], [[PENDING, 0n, 0n], { ...nothing, state: OPEN }]);
  await measure("locate: Pending", "locate", running, 0, 0n);
  await fails(user.address, app.encode("settle", [running]), app.address, app, "NotEnded");
  await draw(running);
  const { deadline } = last("TaskStarted", running);
  assert.deepEqual(await where(running, { node }), [RUNNING, node, deadline]);
  assert.deepEqual([await where(running), await where(running, { node: 99n })], Array(2).fill([NOWHERE, 0n, 0n]));
  await measure("locate: running", "locate", running, Number(node), 0n);
  await measure("outcome: not ended", "outcome", running);

  // Nobody is idle. The task of an account that signs itself is queued at once; a contract could look where its task went and revert, so it
  // has a draw.
  const [created, queued] = await send(other.key, "createTask", [spec()], 10_007n);
  assert.deepEqual([created.name, created.args.drawBlock, queued.name], ["TaskCreated", 0n, "TaskQueued"]);
  await send(other.key, "cancel", [created.args.id, queued.args.ticket]);
  // So has an account that a contract's code stands in for (EIP-7702), although it signs for itself.
  const delegated = await actor(0n);
  await client.delegate(delegated.key, app.address);
  const [drawn, ...more] = await send(delegated.key, "createTask", [spec()], 10_007n);
  assert.deepEqual([drawn.name, drawn.args.drawBlock > 0n, more], ["TaskCreated", true, []]);
  await draw(drawn.args.id);
  await send(delegated.key, "cancel", [drawn.args.id, last("TaskQueued", drawn.args.id).ticket]);

  // Three that wait, of which the queue of one node holds two: the cheapest goes, with its whole fee.
  const evicted = await request(fees.evicted);
  assert.deepEqual(await where(evicted), [PENDING, 0n, 0n]);
  await draw(evicted);
  const { ticket } = last("TaskQueued", evicted);
  assert.deepEqual(await where(evicted, { ticket }), [QUEUED, 0n, 0n]);
  await measure("locate: queued", "locate", evicted, 0, ticket);
  const cancelled = await request(fees.cancelled);
  await draw(cancelled);
  const waiting = await request(fees.waiting);
  await draw(waiting);
  await ended(evicted, { state: EVICTED });
  assert.deepEqual(await where(evicted, { ticket }), [NOWHERE, 0n, 0n]);
  await measure("locate: ended", "locate", evicted, 0, ticket);

  // Given up by the user that asked for it, and by nobody else. A refusal of Muster's reaches the contract unchanged.
  const place = last("TaskQueued", cancelled).ticket;
  await fails(other.address, app.encode("giveUp", [cancelled, place]), app.address, app, "NotYours");
  const refused = await client.refusal({ from: user.address, to: app.address, data: app.encode("giveUp", [cancelled, place + 9n]) }, app);
  const { data } = await client.raw({ from: app.address, to: muster, data: client.encode("cancel", [cancelled, place + 9n]) });
  assert.deepEqual([refused.name, refused.args.reason, client.error(data).name], ["Refused", data.slice(0, 10), "TaskNotQueued"]);
  await tell(user.key, "giveUp", [cancelled, place]);
  await ended(cancelled, { state: CANCELLED });

  // Time passes: one has waited too long, another's node stayed silent.
  await travel((await parameter("queueTime")) + 1n);
  await send(DEV_KEY, "expireQueued", [waiting, last("TaskQueued", waiting).ticket]);
  await ended(waiting, { state: WAITED });
  await send(DEV_KEY, "expire", [Number(node), running]);
  await ended(running, { state: TIMED_OUT, node });

  // An error report, an answer, and a task of a user that wants no receipt.
  const failing = await request(fees.failing);
  await draw(failing);
  await send(operator.key, "reportError", [failing, 9]);
  await ended(failing, { state: ERROR, node, code: 9n });
  await measure("outcome: failed", "outcome", failing);
  // The node rests, until others may find it idle again.
  const { until } = events.findLast(({ name, args }) => name === "NodeExcluded" && args.node === node).args;
  const { timestamp } = await client.rpc("eth_getBlockByNumber", ["latest", false]);
  await travel(until - BigInt(timestamp));
  await send(other.key, "poke", [Number(node)]);
  const answered = await request(60_017n);
  await draw(answered);
  await send(operator.key, "submit", [answered, DIGEST]);
  await ended(answered, { state: SUCCEEDED, node, resultDigest: DIGEST });
  await measure("outcome: succeeded", "outcome", answered);
  const [{ args: { id: silent } }] = (await send(other.key, "createTask", [spec()], 10_007n)).filter(({ name }) => name === "TaskCreated");
  await draw(silent);
  await send(operator.key, "submit", [silent, DIGEST]);
  assert.deepEqual(await outcome(silent), { ...nothing, state: NONE });
  await measure("outcome: no receipt", "outcome", silent);

  // A task of another creator has a receipt too, and is none of the contract's.
  const [{ args: { id: foreign } }] = (await send(other.key, "createTask", [spec({ flags: 1 })], 10_007n)).filter(({ name }) => name === "TaskCreated");
  await draw(foreign);
  await send(operator.key, "submit", [foreign, DIGEST]);
  await ended(foreign, { state: SUCCEEDED, node, resultDigest: DIGEST });
  await fails(other.address, app.encode("settle", [foreign]), app.address, app, "NotAsked");

  // The contract's books, to the wei: its debt to its user is Muster's debt to it.
  for (const id of [running, evicted, cancelled, waiting, failing, answered]) await tell(other.key, "settle", [id]);
  await fails(other.address, app.encode("settle", [answered]), app.address, app, "Settled");
  assert.equal(await app.call("results", [answered]), DIGEST);
  const bps = await parameter("startFeeBps");
  const less = (fee) => fee - (fee * bps) / 10_000n;
  const owed = fees.evicted + less(fees.failing) + less(fees.running) + less(fees.cancelled) + less(fees.waiting);
  const balance = async () => BigInt(await client.rpc("eth_getBalance", [app.address, "latest"]));
  const credit = async () => BigInt((await client.call("account", [app.address])).credit);
  assert.deepEqual([BigInt(await app.call("owed", [user.address])), await credit(), await balance()], [owed, owed, 0n]);
  await tell(user.key, "claim");
  assert.deepEqual([BigInt(await app.call("owed", [user.address])), await credit(), await balance()], [0n, 0n, 0n]);

  // Tasks that wait for their draw are found where they stand, if none was drawn again since they were created.
  const delay = await parameter("drawDelay");
  await send(DEV_KEY, "setParameter", [numberOf("drawDelay"), 30]);
  const many = [];
  for (let i = 0; i < 12; i++) many.push(await request(10_007n));
  for (const id of many) assert.deepEqual(await where(id), [PENDING, 0n, 0n]);
  await measure("locate: the first of 12 that are Pending", "locate", many.at(0), 0, 0n);
  await measure("locate: the last of 12 that are Pending", "locate", many.at(-1), 0, 0n);
  await measure("locate: not found among 12", "locate", answered, 0, 0n);
  await client.rpc("anvil_mine", ["0x20"]);
  for (const id of many) {
    await draw(id);
    if (!last("TaskAborted", id) && last("TaskStarted", id)) await send(operator.key, "submit", [id, DIGEST]);
  }
  // Each queued task started when the one before it ended.
  for (let open = true; open; ) {
    const { task, status } = await client.call("node", [Number(node)]);
    open = BigInt(status) === 2n;
    if (open) await send(operator.key, "submit", [BigInt(task), DIGEST]);
  }
  await send(operator.key, "quit");
  await send(DEV_KEY, "setParameter", [numberOf("drawDelay"), delay]);
  return gas;
}
