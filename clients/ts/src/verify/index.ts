/**
 * Checks the contract's handling of a task against the chain: events, blocks' hashes and times, and the formulas of
 * `muster-core`, here as WASM. Its user trusts the node for events and blocks, but not the contract's results.
 *
 * | | from |
 * | --- | --- |
 * | deadline | the block's time and the task's limit |
 * | commitment | the revealed answer, hashed anew |
 * | lot | the hash of the commitment's block, and `sampleBps` when the task was created |
 * | judgement, scores | the revealed answers, the times of starts and commitments, and `hammingMost` when it was judged |
 * | slashes | the judgement, the rest of the fee, `slashTimes` when the task was created, and `slashImages` when its group was formed |
 * | payout | the judgement, the rest of the fee, and the rest of the reserve |
 * | draw, end | with `replay`: the transaction repeated on the words of the contract's storage in the block before |
 *
 * Events alone cannot prove a draw: the possible nodes and their weights are in the sampler's words at that block. Nor do they
 * show whether a scope had enough nodes for scores.
 */
import { type Hex, concatHex, hexToBigInt, keccak256, numberToHex, sliceHex, zeroHash } from "viem";
import type { MusterClient } from "../client.js";
import { downloadTime, hammingMost, sampleBps, sampleDelay } from "../generated/numbers.js";
import { commitmentOf } from "../seal.js";
import type { MusterEvent } from "../types.js";
import { Core } from "./core.js";
import { ENDS, type Facts, type GatherParameters, gather, parameterAt } from "./facts.js";
import { judged } from "./judged.js";
import { type Named, type Note, type Subject, named } from "./note.js";

export { type Judgement, type Standing, type Stage, Core } from "./core.js";
export type { Subject } from "./note.js";
export { type Block, type Change, type Facts, type GatherParameters, gather } from "./facts.js";

/** A check and its result. */
export interface Check {
  subject: Subject;
  /** The node that it concerns, if any. */
  node?: number | undefined;
  /** Without the deciding facts it is not checkable here. */
  result: "ok" | "wrong" | "not checkable here";
  /** The comparison, or the missing facts. */
  because: string;
}

const ANSWER = 0;
const [SINGLE, SAMPLED, RATED] = [0, 1, 3];
/** Reasons of `TaskAborted`: those with the start fee kept, and timeouts. */
const [TIMEOUT, CANCELLED, EXPIRED] = [0, 1, 3];
/** The outcome of a group whose task goes to another. */
const RESCHEDULED = 4;
const STABLE_DIFFUSION = 0;
const ONE = 1n << 64n;

/** The number below 10,000 that a block's hash draws for a task: the first of the contract's random numbers (docs/validation.md). */
export function lotOf(hash: Hex, id: bigint): bigint {
  const [seed, n] = [keccak256(concatHex([hash, numberToHex(id, { size: 8 })])), 10_000n];
  for (let i = 0n; ; i++) {
    const words = keccak256(concatHex([seed, numberToHex(i / 4n, { size: 8 })]));
    const from = Number(i % 4n) * 8;
    const wide = hexToBigInt(sliceHex(words, from, from + 8)) * n;
    // Rejects the few values that would cause a bias.
    if (wide % ONE >= (ONE - n) % n) return wide / ONE;
  }
}

/** Checks a task. */
export async function verifyTask(client: MusterClient, parameters: GatherParameters): Promise<Check[]> {
  const [facts, core] = await Promise.all([gather(client, parameters), Core.load()]);
  return verify(facts, core);
}

/** The same check from facts collected before. */
export function verify(facts: Facts, core: Core): Check[] {
  const checks: Check[] = [];
  const note: Note = (subject, holds, because, node) => {
    const result = holds === undefined ? "not checkable here" : holds ? "ok" : "wrong";
    checks.push({ subject, ...(node === undefined ? {} : { node }), result, because });
  };
  const { events } = facts;
  const created = named(events, "TaskCreated")[0];
  if (!created) throw new RangeError("The task's creation is not among its events.");
  const { fee, timeLimit, startFeeBps, spec } = created.args;
  if (spec.redundancy > RATED) {
    note("payout", undefined, `This version does not know policy ${spec.redundancy}.`);
    return checks;
  }
  const bps = spec.redundancy === SAMPLED ? Number(parameterAt(facts, sampleBps, created)) : 0;
  const images = spec.redundancy !== SINGLE && spec.kind === STABLE_DIFFUSION ? spec.units : 0;

  starts(facts, timeLimit, note);
  for (const event of events) if (ENDS.includes(event.eventName)) redone(facts, event, "end", note, (event.args as { node?: number }).node);
  commitments(facts, core, images, note);
  const committed = named(events, "AnswerCommitted").find(({ args }) => args.block > 0n);
  if (committed) lot(facts, committed, BigInt(bps), note);

  const [succeeded] = named(events, "TaskSucceeded");
  const [failed] = named(events, "TaskErrorReported");
  const [aborted] = named(events, "TaskAborted");
  const [settled] = named(events, "GroupSettled");
  const [revealed] = named(events, "AnswerRevealed");
  const [sampled] = named(events, "TaskSampled");
  const rescheduled = named(events, "GroupSettled").filter(({ args }) => args.outcome === RESCHEDULED);
  // The fee pays the call of validators, and each group without a majority.
  const left = [sampled?.args.paid ?? 0n, ...rescheduled.map(({ args }) => args.startFee)].reduce((left, spent) => left - spent, fee);
  const payment = core.payment(left, bps);
  const startFee = core.part(left, startFeeBps);
  if (sampled) {
    const due = core.part(fee, startFeeBps);
    note("payout", sampled.args.paid === due, `${sampled.args.paid} for the call of validators, where a start fee is ${due}`, sampled.args.node);
  }
  if (succeeded) {
    const { resultDigest, paid, node } = succeeded.args;
    if (spec.redundancy === SINGLE) {
      note("answer", undefined, "Under policy 0 any answer is paid.", node);
      note("payout", paid === fee, `${paid} of a fee of ${fee}`, node);
    } else {
      note("answer", revealed?.args.kind === ANSWER && revealed.args.value === resultDigest, "The paid answer is the revealed one.", node);
      // The choice depends on whether its scope had enough nodes, which no event says.
      note("payout", paid === fee || paid === payment, `${paid} of a fee of ${fee}, of which one payment is ${payment} where tasks are scored`, node);
    }
  } else if (failed) {
    const { refund, code, node } = failed.args;
    if (revealed) note("answer", revealed.args.kind !== ANSWER && hexToBigInt(revealed.args.value) === BigInt(code), `error ${code}`, node);
    note("payout", refund === fee - startFee, `${refund} back of a fee of ${fee}, of which ${startFee} is the start fee`);
  } else if (aborted) {
    const { reason, refund } = aborted.args;
    const kept = [TIMEOUT, CANCELLED, EXPIRED].includes(reason) ? startFee : 0n;
    const rest = left - kept;
    // Where tasks are scored, a node that missed its time to reveal has paid for sampled tasks.
    const saved = reason === TIMEOUT && committed ? left - payment : 0n;
    const less = rest - (saved < rest ? saved : rest);
    note("payout", aborted.args.startFee === kept && (refund === rest || refund === less), `${refund} back of a fee of ${left}, a start fee of ${aborted.args.startFee}`);
  } else if (settled && spec.redundancy === RATED) {
    // Ratings and applications' profiles are in no event.
    for (const event of named(events, "GroupSettled")) {
      for (const subject of ["judgement", "payout"] as const) redone(facts, event, subject, note);
    }
  } else if (settled) {
    judged(facts, core, { created, settled, images, fee: left, payment, startFee, most: Number(parameterAt(facts, hammingMost, settled)) }, note);
  } else {
    note("payout", undefined, "The task has not ended.");
  }
  return checks;
}

/** The result of an event's repeated transaction. */
function redone({ replays }: Facts, { transactionHash }: MusterEvent, subject: Subject, note: Note, node?: number): void {
  const { same, because } = replays?.get(transactionHash) ?? { same: undefined, because: "It takes the words of storage at that block, and `replay`." };
  note(subject, same, because, node);
}

/** Draws and deadlines. */
function starts(facts: Facts, timeLimit: number, note: Note): void {
  for (const event of facts.events) {
    const { eventName, args, blockNumber } = event;
    if (eventName === "GroupFormed") redone(facts, event, "draw", note);
    if (eventName === "TaskStarted") redone(facts, event, "draw", note, args.node);
    if (eventName !== "TaskStarted" && eventName !== "MemberStarted") continue;
    const now = facts.blocks.get(blockNumber)?.timestamp;
    if (now === undefined) {
      note("deadline", undefined, `Block ${blockNumber} is not known.`, args.node);
      continue;
    }
    const given = args.deadline - now;
    const limits = [BigInt(timeLimit)];
    // A node that lacks a model has longer.
    if (eventName === "MemberStarted") limits.push(BigInt(timeLimit) + parameterAt(facts, downloadTime, event));
    note("deadline", limits.includes(given), `${given} s, where ${limits.join(" or ")} are given`, args.node);
  }
}

/** Revealed answers match their commitments: each with its node's last one, for a node may be in a task's next group, too. */
function commitments({ events }: Facts, core: Core, images: number, note: Note): void {
  const closed = new Map<number, Hex>();
  const hidden = (node: number) => note("commitment", undefined, "The node has not revealed its commitment.", node);
  for (const { eventName, args } of events) {
    if (eventName === "AnswerCommitted") {
      if (closed.has(args.node)) hidden(args.node);
      closed.set(args.node, args.commitment);
    } else if (eventName === "AnswerRevealed") {
      const { node, kind, value } = args;
      const holds = sliceHex(commitmentOf(args), 0, 24) === closed.get(node);
      const fits = kind !== ANSWER || images === 0 || core.hasImages(value, images);
      const of = closed.delete(node) ? "The hash of the revealed answer." : "The node has revealed without a commitment.";
      note("commitment", holds && fits, fits ? of : `Not one perceptual hash for each of ${images} images.`, node);
    }
  }
  for (const node of closed.keys()) hidden(node);
}

/** The lot that decides whether a task is validated. */
function lot(facts: Facts, committed: Named<"AnswerCommitted">, bps: bigint, note: Note): void {
  const { id, node, block } = committed.args;
  const due = committed.blockNumber + parameterAt(facts, sampleDelay, committed);
  if (block !== due) return note("lot", false, `It goes by block ${block} instead of ${due}.`, node);
  const hash = facts.blocks.get(block)?.hash;
  if (!hash || hash === zeroHash) return note("lot", undefined, `The hash of block ${block} is not known.`, node);
  const [drawn, happened] = [lotOf(hash, id), whatHappened(facts.events)];
  const said = `${drawn}, and below ${bps} is sampled`;
  if (happened === undefined) return note("lot", undefined, `${said}; nobody has acted on it yet.`, node);
  // If nobody acted while the hash was available, it counts as not sampled; see docs/validation.md.
  const late = happened === "timed out" && drawn < bps;
  note("lot", late ? undefined : drawn < bps === (happened === "sampled"), late ? `${said}, but it timed out: right only if the hash was too old by then.` : said, node);
}

function whatHappened(events: readonly MusterEvent[]): "sampled" | "revealed" | "timed out" | undefined {
  for (const { eventName, args } of events) {
    if (eventName === "TaskSampled") return "sampled";
    if (eventName === "TaskSucceeded" || eventName === "TaskErrorReported") return "revealed";
    if (eventName === "TaskAborted") return args.reason === TIMEOUT ? "timed out" : undefined;
  }
  return undefined;
}
