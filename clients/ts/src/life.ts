/** A task's state from its events: a union discriminated by `status`. */
import type { Address, Hash, Hex } from "viem";
import type { MusterEvent, TaskSpec } from "./types.js";

/** The fixed terms of a task. */
export interface TaskTerms {
  id: bigint;
  creator: Address;
  /** In wei. */
  fee: bigint;
  /** Estimated seconds. */
  estimate: number;
  /** Seconds from its start to its deadline. */
  timeLimit: number;
  /** The share of the fee that is not refunded in some cases, in ten-thousandths. */
  startFeeBps: number;
  spec: TaskSpec;
  /** Number of the block in which it was created; `fromBlock` of later questions. */
  createdIn: bigint;
  /** The transaction that created it. */
  hash: Hash;
}

/** A right answer. */
export interface Answer {
  node: number;
  /** The result's digest; for Stable Diffusion tasks that several nodes answered or could have, perceptual hashes of its images. */
  value: Hex;
  /** The salt that opens the stored result; undefined if the node did not commit to its answer. */
  salt: Hex | undefined;
  /** In wei. */
  paid: bigint;
}

/** A member of a validation group. */
export interface Member {
  node: number;
  /** Its stage. */
  stage: "called" | "running" | "committed" | "revealed" | "timedOut" | "judged";
  /** Running: the deadline of its answer, in seconds since 1970. */
  deadline?: bigint | undefined;
  /** Revealed: whether it could run the task at all. */
  kind?: "answer" | "error" | undefined;
  /** Revealed: its answer, or the error's code. */
  value?: Hex | undefined;
  /** Revealed. */
  salt?: Hex | undefined;
  /** Judged: the verdict. */
  verdict?: Verdict | undefined;
  /** Judged: in wei. */
  paid?: bigint | undefined;
}

/** The verdict on a member. */
export type Verdict = "right" | "wrong" | "withheld" | "errorReported" | "timedOut" | "open";

/** A task that has not ended. */
export type LiveStage =
  /** The hash of block `drawBlock` decides its node, by a transaction in a later block. */
  | { status: "pending"; drawBlock: bigint }
  /** It waits for a node; `cancelTask` takes the `ticket`. */
  | { status: "queued"; group: number; ticket: bigint }
  /** A node runs it, until the deadline, in seconds since 1970. */
  | { status: "running"; node: number; deadline: bigint; boosts: boolean }
  /** Its node has committed to an answer; the hash of `lotBlock` decides whether it is validated. */
  | { status: "committed"; node: number; deadline: bigint; commitment: Hex; lotBlock: bigint }
  /** It is validated: the hash of block `drawBlock` decides its validators. The account that called them was `paid` for it. */
  | { status: "sampled"; node: number; drawBlock: bigint; beneficiary: Address; paid: bigint }
  /** A validation group runs it. */
  | { status: "validating"; group: number; scored: boolean; members: readonly Member[] };

/** A task that has ended, in block `endedIn`. */
export type EndedStage = { endedIn: bigint } & (
  | { status: "succeeded"; answers: readonly Answer[]; members: readonly Member[] }
  /** Its node reported that it cannot run it. */
  | { status: "failed"; node: number; code: number; refund: bigint }
  /** It was validated, and no two answers were the same, or too few answered. */
  | { status: "undecided"; refund: bigint; startFee: bigint; members: readonly Member[] }
  | {
      /**
       * `timedOut`: its node let the deadline pass, or did not reveal its commitment. `cancelled`: its creator took it out of the
       * queue. `evicted`: it had the lowest value in a full queue. `expired`: it was queued for too long. `nodeSlashed`: its node was slashed
       * out of the network for something else.
       */
      status: "timedOut" | "cancelled" | "evicted" | "expired" | "nodeSlashed";
      /** 0 if it never started. */
      node: number;
      refund: bigint;
      /** The part that is not refunded; to the beneficiary, or to the protocol if that is zero. */
      startFee: bigint;
      beneficiary: Address;
    }
);

/** A task: its terms and its state, discriminated by `status`; {@link hasEnded} tells whether it is final. */
export type Task = TaskTerms & (LiveStage | EndedStage);
/** A task that has ended. */
export type EndedTask = TaskTerms & EndedStage;
/** A task's state in one word. */
export type TaskStatus = Task["status"];

/** Whether a task has ended, so that it does not change any more. */
export const hasEnded = (task: Task): task is EndedTask => "endedIn" in task;

/** Whether a task is one known before, and none that a reorganisation put in its place. A batch creates several by one transaction. */
export const isSame = (task: Task, known: Task): boolean =>
  task.hash === known.hash && task.fee === known.fee && task.spec.inputDigest === known.spec.inputDigest;

// By their numbers in the interface, from 1 on.
const VERDICTS: readonly Verdict[] = ["right", "wrong", "withheld", "errorReported", "timedOut", "open"];
// By the reasons of `TaskAborted`.
const ENDS = ["timedOut", "cancelled", "evicted", "expired", "nodeSlashed"] as const;

/**
 * Advances a task by its next event. Ignores events of other tasks, and unknown ones of later versions.
 *
 * @param task Its former state; undefined before its creation.
 * @returns A new object if something has changed.
 */
export function follow(task: Task | undefined, event: MusterEvent): Task | undefined {
  const { eventName, args, blockNumber: endedIn } = event;
  if (eventName === "TaskCreated") return { ...args, createdIn: endedIn, hash: event.transactionHash, status: "pending" };
  if (!task || !("id" in args) || args.id !== task.id) return task;
  const { id, creator, fee, estimate, timeLimit, startFeeBps, spec, createdIn, hash } = task;
  const terms: TaskTerms = { id, creator, fee, estimate, timeLimit, startFeeBps, spec, createdIn, hash };
  const members = "members" in task ? task.members : [];
  const change = (now: Partial<Member>): Task =>
    members.length
      ? ({ ...task, members: members.map((member) => ("node" in args && member.node === args.node ? { ...member, ...now } : member)) } as Task)
      : task;

  switch (eventName) {
    case "TaskRedrawn":
      // Of the validators; else of the task's nodes, also if it was queued.
      return task.status === "sampled"
        ? { ...task, drawBlock: args.drawBlock }
        : { ...terms, status: "pending", drawBlock: args.drawBlock };
    case "TaskQueued":
      return { ...terms, ...args, status: "queued" };
    case "TaskStarted":
      return { ...terms, ...args, status: "running" };
    case "AnswerCommitted": {
      const { node, commitment, block } = args;
      if (task.status !== "running") return change({ stage: "committed" });
      return { ...terms, status: "committed", node, deadline: task.deadline, commitment, lotBlock: block };
    }
    case "TaskSampled":
      return { ...terms, ...args, status: "sampled" };
    case "GroupFormed": {
      const { nodes, ...group } = args;
      const first = "node" in task ? task.node : 0;
      const all = nodes.map((node): Member => ({ node, stage: node === first ? "committed" : "called" }));
      return { ...terms, ...group, status: "validating", members: all };
    }
    case "MemberStarted":
      return change({ stage: "running", deadline: args.deadline });
    case "MemberTimedOut":
      return change({ stage: "timedOut" });
    case "AnswerRevealed": {
      const { node, kind, value, salt } = args;
      const revealed: Member = { node, stage: "revealed", kind: kind ? "error" : "answer", value, salt };
      // A task that was not sampled has no members: its end, which follows, needs the revealed answer.
      return members.length ? change(revealed) : ({ ...task, members: [revealed] } as Task);
    }
    case "MemberJudged":
      return change({ stage: "judged", verdict: VERDICTS[args.verdict - 1], paid: args.paid });
    case "TaskSucceeded": {
      const { node, paid, resultDigest: value } = args;
      return { ...terms, status: "succeeded", answers: [{ node, value, salt: members[0]?.salt, paid }], members: [], endedIn };
    }
    case "TaskErrorReported":
      return { ...terms, ...args, status: "failed", endedIn };
    case "TaskAborted": {
      const { reason, ...end } = args;
      return { ...terms, ...end, status: ENDS[reason]!, endedIn };
    }
    case "GroupSettled": {
      const { outcome, answer, refund, startFee } = args;
      // Another group gets it, as an earlier event says.
      if (outcome === 4) return task;
      if (outcome > 1) return { ...terms, status: "undecided", refund, startFee, members, endedIn };
      const answers = members.flatMap(({ node, kind, verdict, value, salt, paid = 0n }): Answer[] =>
        kind === "answer" && (verdict === "right" || (outcome && value === answer)) ? [{ node, value: value!, salt, paid }] : [],
      );
      return { ...terms, status: "succeeded", answers, members, endedIn };
    }
    default:
      return task;
  }
}
