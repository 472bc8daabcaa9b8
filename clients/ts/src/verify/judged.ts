/** Repeats the judgement of a validation group. */
import { zeroHash } from "viem";
import { slashImages, slashTimes } from "../generated/numbers.js";
import type { Core, Standing } from "./core.js";
import { type Facts, parameterAt } from "./facts.js";
import { type Named, type Note, named } from "./note.js";

const REPLICATED = 2;
const [AGREED, ALONE, DIFFERING, UNANSWERED] = [0, 1, 2, 3];
const VERDICTS = ["none", "right", "wrong", "withheld", "error reported", "timed out", "open"];
const [WRONG, WITHHELD] = [2, 3];

/** The known terms of the task. */
interface Terms {
  created: Named<"TaskCreated">;
  settled: Named<"GroupSettled">;
  /** The number of its images; 0 where answers must be equal. */
  images: number;
  /** The rest of its fee. */
  fee: bigint;
  /** A node's payment, where tasks are scored. */
  payment: bigint;
  startFee: bigint;
  /** Bits in which the hashes of equal images may differ. */
  most: number;
}

/** Judges again, and compares. */
export function judged(facts: Facts, core: Core, { created, settled, images, fee, payment, startFee, most }: Terms, note: Note): void {
  const { spec } = created.args;
  const isReplicated = spec.redundancy === REPLICATED;
  const formed = named(facts.events, "GroupFormed").at(-1);
  if (!formed) return note("judgement", false, "A group was judged that was never formed.");
  const { nodes, scored } = formed.args;
  const members = nodes.map((node) => standing(facts, node));
  if (!members.every((member) => member !== undefined)) return note("judgement", undefined, "Not all blocks of starts and commitments are known.");

  const judgement = core.judge(members, images, most);
  // Only a sampled task has a first member before the others; otherwise a single answer decides nothing.
  const alone = judgement.outcome === ALONE && (isReplicated || judgement.named !== 0);
  const outcome = alone ? UNANSWERED : judgement.outcome;
  const answer = outcome < DIFFERING ? members[judgement.named!]!.answer : zeroHash;
  note("judgement", settled.args.outcome === outcome && settled.args.answer === answer, `outcome ${settled.args.outcome}, where ${outcome} follows from the reveals`);
  const told = named(facts.events, "MemberJudged");
  const verdictOf = (i: number) => told.find(({ args }) => args.node === nodes[i])?.args;
  nodes.forEach((node, i) => {
    const verdict = verdictOf(i)?.verdict ?? 0;
    note("judgement", verdict === judgement.verdicts[i], `${VERDICTS[verdict]}, where ${VERDICTS[judgement.verdicts[i]!]} follows`, node);
  });

  // A member's scores come between its verdict and the next.
  nodes.forEach((node, i) => {
    const from = told.find(({ args }) => args.node === node)?.logIndex ?? Number.POSITIVE_INFINITY;
    const to = Math.min(settled.logIndex, ...told.map(({ logIndex }) => logIndex).filter((index) => index > from));
    const own = facts.settlement.filter(({ logIndex }) => logIndex > from && logIndex < to);
    const recorded = named(own, "ScoreRecorded").find(({ args }) => args.node === node)?.args.score;
    const due = scored ? judgement.scores[i] : undefined;
    note("scores", recorded === due, `${recorded ?? "none"}, where ${due ?? "none"} follows`, node);
    slash(node, judgement.verdicts[i]!);
  });

  function slash(node: number, verdict: number): void {
    const slashed = named(facts.settlement, "NodeSlashed").find(({ args }) => args.node === node && args.id === created.args.id);
    const taken = slashed && slashed.args.stake + slashed.args.unbonding + slashed.args.credit;
    const counts = scored && (images === 0 || parameterAt(facts, slashImages, formed!) > 0n) && [WRONG, WITHHELD].includes(verdict);
    const due = counts ? parameterAt(facts, slashTimes, created) * (isReplicated ? fee / 3n : fee) : 0n;
    if (taken === undefined) return note("slashes", due === 0n, due ? `nothing was taken, where ${due} follows` : "none", node);
    // The available stake and the stake unit are not known here.
    note("slashes", taken < due ? undefined : taken === due, `${taken} was taken, where ${due} follows, as far as there is so much`, node);
  }

  const paid = nodes.map((_, i) => verdictOf(i)?.paid ?? 0n);
  const pot = paid.reduce((sum, part) => sum + part, 0n);
  const { refund, reserve } = settled.args;
  const isOpen = outcome === DIFFERING || outcome === UNANSWERED;
  // A sampled task has spent its start fee when its validators were called.
  const kept = isOpen && isReplicated ? startFee : 0n;
  note("payout", refund === (isOpen ? fee - kept : 0n) && settled.args.startFee === kept, `${refund} back of a fee of ${fee}, a start fee of ${settled.args.startFee}`);
  if (outcome === AGREED) {
    const failed = members.filter(({ stage }) => stage === "failed").length;
    const answered = members[0]!.stage === "answered";
    const due =
      scored && !isReplicated
        ? core.potOfPayments(fee, payment, nodes.length, failed, answered)
        : { fee: core.potOfFee(fee, nodes.length, failed), reserve: 0n };
    const whole = due.fee + due.reserve;
    // The reserve covers the lack of the fee, down to one wei.
    const drained = pot >= due.fee && pot < whole && reserve <= 1n;
    note("payout", pot === whole || drained, `${pot} were shared, where ${whole} are, as far as the reserve goes`);
  }
  nodes.forEach((node, i) => {
    const single = outcome === ALONE && i === 0 ? (scored ? payment : fee) : 0n;
    const due = outcome === AGREED ? core.share(pot, judgement.scores, i) : single;
    note("payout", paid[i] === due, `${paid[i]}, where ${due} follows`, node);
  });
}

/** A member's state when its group was judged; undefined if the block of its beginning or its commitment is missing. */
function standing({ events, blocks }: Facts, node: number): Standing | undefined {
  const committed = named(events, "AnswerCommitted").find(({ args }) => args.node === node);
  if (!committed) return { stage: "timedOut", elapsed: 0, at: 0, answer: zeroHash };
  const began = events.findLast(
    ({ eventName, args, blockNumber }) =>
      (eventName === "TaskStarted" || eventName === "MemberStarted") && args.node === node && blockNumber <= committed.blockNumber,
  );
  const [start, at] = [blocks.get(began?.blockNumber ?? -1n)?.timestamp, blocks.get(committed.blockNumber)?.timestamp];
  if (start === undefined || at === undefined) return undefined;
  const opening = named(events, "AnswerRevealed").find(({ args }) => args.node === node)?.args;
  const stage = opening ? (opening.kind === 0 ? "answered" : "failed") : "withheld";
  return { stage, elapsed: Number(at - start), at: Number(at), answer: opening?.value ?? zeroHash };
}
