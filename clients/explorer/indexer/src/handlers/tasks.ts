/** Tasks from their creation to their end. */
import { boost, penalise, recover } from "../formulas";
import { NOBODY, type Scene } from "../scene";
import type { Handlers } from "./types";

type Task = Awaited<ReturnType<Scene["task"]>>;
type Node = Awaited<ReturnType<Scene["node"]>>;

/** TaskView.status. */
export const ENDED = 0;
export const PENDING = 1;
export const QUEUED = 2;
export const RUNNING = 3;
export const COMMITTED = 4;
export const SAMPLED = 5;
export const IN_GROUP = 6;

/** Outcome.state. */
const SUCCEEDED = 2;
const FAILED = 3;
const TIMED_OUT = 4;

const counterOf = (status: number): "pending" | "queued" | "running" | undefined =>
  status === PENDING ? "pending" : status === QUEUED ? "queued" : status === ENDED ? undefined : "running";

/** Gives a task another status, and counts it there. */
export async function become(scene: Scene, task: Task, status: number) {
  const network = await scene.network();
  const [before, after] = [counterOf(task.status), counterOf(status)];
  if (before) network[before]--;
  if (after) network[after]++;
  else network.ended++;
  if (task.status === QUEUED && status !== QUEUED) (await scene.known("queue", { id: task.queue })).queued--;
  task.status = status;
}

/** A node, or the first of a group, begins with a task. */
export async function begin(scene: Scene, task: Task) {
  if (task.startedAt !== null) return;
  task.startedAt = scene.at;
  await scene.count({ started: 1, waited: scene.at - task.createdAt });
}

/** A part of a task's fee is spent before its end. */
export async function spend(scene: Scene, task: Task, amount: bigint) {
  task.spent += amount;
  await scene.pay({ pot: "escrow", task: task.id }, -amount, "startFee");
}

/** A task's escrow is divided, and the task over. */
export async function end(scene: Scene, task: Task, outcome: number, counter: Parameters<Scene["count"]>[0]) {
  // In a group, no node runs it alone.
  if (task.node > 0 && task.status >= RUNNING && task.status < IN_GROUP) free(await scene.node(task.node));
  await become(scene, task, ENDED);
  task.outcome = outcome;
  [task.endedAt, task.endedBlock, task.endedTx] = [scene.at, scene.log.block, scene.log.tx];
  await scene.pay({ pot: "escrow", task: task.id }, task.spent - task.fee, "fee");
  await scene.tick("ended");
  await scene.count({ ...counter, ran: task.startedAt === null ? 0n : scene.at - task.startedAt });
}

/** A creator's refund. */
export async function refund(scene: Scene, task: Task, amount: bigint) {
  task.refund += amount;
  (await scene.account(task.creator)).refunds += amount;
  await scene.pay({ pot: "credit", account: task.creator }, amount, "refund", { task: task.id });
  await scene.count({ refunded: amount });
}

/** The protocol earns. */
export async function income(scene: Scene, amount: bigint, reason: string, task?: bigint) {
  await scene.pay({ pot: "treasury" }, amount, reason, task === undefined ? {} : { task });
  await scene.count({ income: amount });
}

/** A node's task is over for it. If it was called to a group, it begins there. */
export function free(node: Node) {
  node.runs = node.held = false;
  if (node.status === 2 && node.calledTo === 0n) node.status = 1;
}

/** Notes H as it now is, and why. */
export const mark = (scene: Scene, { number, reliability }: Node, why: "joined" | "timeout" | "success", task: bigint | null) =>
  scene.row("reliabilityMark", { id: scene.id }, () => ({ id: scene.id, node: number, at: scene.at, h: reliability, why, task }));

/** H now. */
export const reliabilityOf = async (scene: Scene, { reliability, reliabilityAt }: Node) => recover(reliability, scene.at - reliabilityAt, await scene.parameter("tau"));

async function setReliability(scene: Scene, node: Node, change: (h: bigint) => bigint) {
  node.reliability = change(await reliabilityOf(scene, node));
  node.reliabilityAt = scene.at;
}

/** A deadline has passed with no answer. */
export async function lower(scene: Scene, node: Node, task: bigint) {
  const ppm = await scene.parameter("penaltyPpm");
  await setReliability(scene, node, (h) => penalise(h, ppm));
  await mark(scene, node, "timeout", task);
}

/** A success raises H, but not twice within half of the task's estimate. */
export async function raise(scene: Scene, node: Node, { id, estimate }: Pick<Task, "id" | "estimate">) {
  if (2n * (scene.at - node.reliabilityAt) < BigInt(estimate)) return;
  const ppm = await scene.parameter("boostPpm");
  const before = await reliabilityOf(scene, node);
  await setReliability(scene, node, (h) => boost(h, ppm));
  if (node.reliability !== before) await mark(scene, node, "success", id);
}

export const tasks: Pick<
  Handlers,
  "TaskCreated" | "TaskRefused" | "TaskRedrawn" | "TaskQueued" | "TaskStarted" | "TaskSucceeded" | "TaskErrorReported" | "TaskAborted"
> = {
  async TaskCreated(scene, { id, creator, fee, estimate, timeLimit, startFeeBps, drawBlock, spec }) {
    const network = await scene.network();
    network.tasks = id;
    network.pending++;
    const sampleBps = spec.redundancy === 1 ? await scene.parameter("sampleBps") : 0;
    await scene.row("task", { id }, () => ({
      ...{ id, creator, status: PENDING, outcome: 1, fee, kind: spec.kind, units: spec.units, vram: spec.vram, gpu: spec.gpu },
      ...{ redundancy: spec.redundancy, flags: spec.flags, inputDigest: spec.inputDigest, models: [...spec.models] },
      ...{ estimate, timeLimit, startFeeBps, sampleBps, createdAt: scene.at, createdBlock: scene.log.block, createdTx: scene.log.tx },
      ...{ drawBlock, redraws: 0, drawSince: scene.id, ticket: 0n, queue: 0, queuedAt: 0n, node: 0, startedAt: null, deadline: 0n },
      ...{ boosts: false, commitment: null, committedAt: null, lotBlock: null, wasSampled: false, validation: null },
      ...{ endedAt: null, endedBlock: null, endedTx: null, code: 0, spent: 0n, paid: 0n, refund: 0n, startFee: 0n, toReserve: 0n, resultDigest: null },
    }));
    const account = await scene.account(creator);
    account.tasks++;
    account.fees += fee;
    await scene.pay({ pot: "escrow", task: id }, fee, "fee");
    for (const model of spec.models) (await scene.model(model)).tasks++;
    await scene.tick("created");
    await scene.count({ created: 1, fees: fee });
  },

  async TaskRefused(scene, { creator, fee }) {
    await scene.pay({ pot: "credit", account: creator }, fee, "leftOut");
  },

  async TaskRedrawn(scene, { id, drawBlock }) {
    const task = await scene.task(id);
    // One that was sampled waits for its validators, in a line of its own.
    if (task.status !== SAMPLED) await become(scene, task, PENDING);
    task.drawBlock = drawBlock;
    task.drawSince = scene.id;
    task.redraws++;
    await scene.count({ redrawn: 1 });
  },

  async TaskQueued(scene, { id, ticket }) {
    const task = await scene.task(id);
    await become(scene, task, QUEUED);
    [task.ticket, task.queue, task.queuedAt] = [ticket, Number(ticket >> 32n), scene.at];
    const queue = await scene.row("queue", { id: task.queue }, () => ({
      ...{ id: task.queue, gpuGroup: (task.queue & ~0xf000) >>> 0, grade: (task.queue >> 12) & 15, first: scene.id, queued: 0, total: 0 },
    }));
    queue.queued++;
    queue.total++;
    await scene.count({ queued: 1 });
  },

  async TaskStarted(scene, { id, node: number, deadline, boosts }) {
    const [task, node] = [await scene.task(id), await scene.node(number)];
    await become(scene, task, RUNNING);
    [task.node, task.deadline, task.boosts] = [number, deadline, boosts];
    await begin(scene, task);
    [node.status, node.task, node.deadline, node.inUse, node.runs] = [2, id, deadline, task.models, true];
    node.started++;
    await scene.countOf(number, { started: 1 });
  },

  async TaskSucceeded(scene, { id, node: number, resultDigest, paid }) {
    const [task, node] = [await scene.task(id), await scene.node(number)];
    if (task.boosts) await raise(scene, node, task);
    await end(scene, task, SUCCEEDED, { succeeded: 1 });
    [task.paid, task.toReserve, task.resultDigest] = [paid, task.fee - paid, resultDigest];
    await scene.reward(number, paid, id);
    await scene.pay({ pot: "reserve" }, task.toReserve, "rest", { task: id });
    node.succeeded++;
    await scene.countOf(number, { succeeded: 1 });
  },

  async TaskErrorReported(scene, { id, node: number, code, refund: amount }) {
    const task = await scene.task(id);
    await end(scene, task, FAILED, { failed: 1 });
    [task.code, task.startFee] = [code, task.fee - amount];
    await refund(scene, task, amount);
    await income(scene, task.startFee, "startFee", id);
    (await scene.node(number)).failed++;
    await scene.countOf(number, { failed: 1 });
  },

  async TaskAborted(scene, { id, reason, refund: amount, startFee, beneficiary }) {
    const task = await scene.task(id);
    const counter = (["timedOut", "cancelled", "evicted", "expired", "slashedOut"] as const)[reason];
    await end(scene, task, TIMED_OUT + reason, counter ? { [counter]: 1 } : {});
    const saved = task.fee - task.spent - amount - startFee;
    task.startFee += startFee;
    task.toReserve += saved;
    await refund(scene, task, amount);
    if (beneficiary === NOBODY) {
      await income(scene, startFee, "startFee", id);
    } else {
      (await scene.account(beneficiary)).earned += startFee;
      await scene.pay({ pot: "credit", account: beneficiary }, startFee, "startFee", { task: id });
    }
    await scene.pay({ pot: "reserve" }, saved, "rest", { task: id });
    if (reason === 0) {
      const node = await scene.node(task.node);
      await lower(scene, node, id);
      node.timedOut++;
      await scene.countOf(task.node, { timedOut: 1 });
    }
  },
};
