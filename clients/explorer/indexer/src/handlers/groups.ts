/** Validation: commitments, lots, groups, their judgement, and its consequences. */
import type { Hex } from "viem";
import { ANSWERED, HAS_COMMITTED, POOL, atRisk, isKickedOut } from "../fairness/rules";
import { longTerm, rated } from "../formulas";
import { NOBODY, type Row, type Scene } from "../scene";
import { COMMITTED, IN_GROUP, SAMPLED, become, begin, end, free, income, lower, raise, refund, spend } from "./tasks";
import type { Handlers } from "./types";

/** MemberView.stage. */
const CALLED = 1;
const RUNNING = 2;
const COULD_NOT = 5;
const TIMED_OUT = 6;
const GONE = 7;

const NO_ANSWERS_THE_SAME = 9;

/** In how many bits each image's hash differs from the right one's. */
function distances(answer: Hex, right: Hex, images: number): number[] {
  const differing = BigInt(answer) ^ BigInt(right);
  const bits = (word: bigint) => word.toString(2).replaceAll("0", "").length;
  return Array.from({ length: images }, (_, i) => bits(BigInt.asUintN(64, differing >> BigInt(64 * (3 - i)))));
}

/** The nodes of a group whose commitments are open. */
async function openIn(scene: Scene, { id: validation, liable, nodes }: Row<"validation">) {
  if (!liable) return [];
  const members = [];
  for (const node of nodes) members.push(await scene.known("member", { validation, node }));
  return atRisk(members).map(({ node }) => node);
}

/** A node has committed in a group, and has no task. A commitment is open as long as it can be slashed. */
async function countOpen(scene: Scene, number: number, liable: boolean) {
  const node = await scene.node(number);
  if (liable) node.openCommitments++;
  const isHeld = node.openCommitments >= (await scene.parameter("openMost")) && node.calledTo === 0n;
  if (isHeld) [node.runs, node.held] = [false, true];
  else free(node);
}

/** A commitment of a node is open no longer. */
function uncount(node: Awaited<ReturnType<Scene["node"]>>) {
  node.openCommitments--;
  if (node.held) free(node);
}

export const groups: Pick<
  Handlers,
  | "AnswerCommitted"
  | "AnswerRevealed"
  | "TaskSampled"
  | "GroupFormed"
  | "GroupChosen"
  | "NodeRated"
  | "ProfileSet"
  | "MemberCalled"
  | "MemberStarted"
  | "MemberTimedOut"
  | "MemberJudged"
  | "ScoreRecorded"
  | "GroupSettled"
  | "NodeSlashed"
> = {
  async AnswerCommitted(scene, { id, node, group, commitment, block }) {
    await scene.count({ committed: 1 });
    if (group === 0) {
      const task = await scene.task(id);
      await become(scene, task, COMMITTED);
      [task.commitment, task.committedAt, task.lotBlock] = [commitment, scene.at, block];
      return;
    }
    const { member, group: seated } = await scene.seat(id, node);
    [member.stage, member.moment, member.committedAt, member.commitment] = [HAS_COMMITTED, scene.at, scene.at, commitment];
    member.elapsed = Number(scene.at - member.startedAt!);
    await countOpen(scene, node, seated.liable);
  },

  async AnswerRevealed(scene, { id, node, group, kind, value, salt }) {
    if (group === 0) return;
    const { member, group: seated } = await scene.seat(id, node);
    const before = await openIn(scene, seated);
    member.stage = kind === 0 ? ANSWERED : COULD_NOT;
    [member.kind, member.answer, member.salt, member.revealedAt] = [kind, value, salt, scene.at];
    const after = await openIn(scene, seated);
    for (const other of before) if (!after.includes(other)) uncount(await scene.node(other));
  },

  async TaskSampled(scene, { id, drawBlock, beneficiary, paid }) {
    const task = await scene.task(id);
    await become(scene, task, SAMPLED);
    [task.drawBlock, task.drawSince, task.wasSampled] = [drawBlock, scene.id, true];
    await scene.count({ sampled: 1 });
    await spend(scene, task, paid);
    if (beneficiary === NOBODY) {
      task.toReserve += paid;
      await scene.pay({ pot: "reserve" }, paid, "startFee", { task: id });
    } else {
      task.startFee += paid;
      (await scene.account(beneficiary)).earned += paid;
      await scene.pay({ pot: "credit", account: beneficiary }, paid, "startFee", { task: id });
    }
  },

  async GroupFormed(scene, { id, group: place, creator, nodes, scored }) {
    const [task, network] = [await scene.task(id), await scene.network()];
    const redundancy = task.redundancy;
    const liable = scored && redundancy !== 3 && (task.kind !== 0 || (await scene.parameter("slashImages")) > 0);
    await scene.row("validation", { id: scene.id }, () => ({
      ...{ id: scene.id, place: BigInt(place), open: true, task: id, creator, redundancy, size: nodes.length, nodes: [...nodes], scored, liable },
      ...{ algorithm: null, target: null, likelihood: null, formedAt: scene.at, outcome: null, settledAt: null, answer: null, refund: 0n, startFee: 0n, paid: 0n },
    }));
    for (const [position, node] of nodes.entries()) {
      const member = await scene.row("member", { validation: scene.id, node }, () => ({
        ...{ validation: scene.id, node, position, task: id, stage: CALLED, moment: 0n, startedAt: null, deadline: null },
        ...{ committedAt: null, elapsed: 0, commitment: null, revealedAt: null, kind: null, answer: null, salt: null },
        ...{ distances: null, equal: null, verdict: null, score: null, paid: 0n, slashed: 0n },
      }));
      // A sampled task's first node has run it, and committed.
      if (redundancy === 1 && position === 0) {
        [member.stage, member.moment, member.elapsed] = [HAS_COMMITTED, task.committedAt!, Number(task.committedAt! - task.startedAt!)];
        [member.startedAt, member.deadline, member.committedAt, member.commitment] = [
          task.startedAt,
          task.deadline,
          task.committedAt,
          task.commitment,
        ];
      }
    }
    await become(scene, task, IN_GROUP);
    task.validation = scene.id;
    network.groups++;
    if (BigInt(place) > network.groupPlaces) network.groupPlaces = BigInt(place);
    await scene.count({ formed: 1 });
    if (redundancy === 1) await countOpen(scene, nodes[0]!, liable);
  },

  async GroupChosen(scene, { id, group: place, algorithm, target, likelihood }) {
    // The group is still to be formed; then it is told again.
    if (place === 0) return;
    const group = await scene.known("validation", { id: (await scene.task(id)).validation! });
    Object.assign(group, { algorithm, target, likelihood });
  },

  async NodeRated(scene, { node: number, right }) {
    const node = await scene.node(number);
    Object.assign(node, rated(node, right));
  },

  async ProfileSet(scene, { application, profile }) {
    const given = { ...profile, application, at: scene.at };
    Object.assign(await scene.row("profile", { application }, () => given), given);
  },

  async MemberCalled(scene, { node, group }) {
    (await scene.node(node)).calledTo = BigInt(group);
  },

  async MemberStarted(scene, { id, node: number, group, deadline }) {
    const { member } = await scene.seat(id, number);
    [member.stage, member.moment, member.startedAt, member.deadline] = [RUNNING, deadline, scene.at, deadline];
    const [task, node] = [await scene.task(id), await scene.node(number)];
    await begin(scene, task);
    if (node.status === 1) node.status = 2;
    // One that waits apart is taken from there.
    [node.parked, node.parkedUntil, node.waitsFor] = [0, 0n, 0n];
    if (node.calledTo === BigInt(group)) node.calledTo = 0n;
    [node.task, node.deadline, node.inUse, node.runs] = [id, deadline, task.models, true];
    node.started++;
    await scene.countOf(number, { started: 1 });
  },

  async MemberTimedOut(scene, { id, node: number }) {
    const [{ member }, node, network] = [await scene.seat(id, number), await scene.node(number), await scene.network()];
    if (network.slashing === number) {
      // It is removed from the network, in any stage.
      const isLate = member.stage === RUNNING && member.moment < scene.at;
      if (!isLate) member.moment = scene.at;
      member.stage = GONE;
    } else if (member.stage === CALLED) {
      // It runs a task of its own still, and the group does without it.
      [member.stage, member.moment, node.calledTo] = [GONE, scene.at, 0n];
      return;
    } else {
      member.stage = TIMED_OUT;
      await lower(scene, node, id);
      node.timedOut++;
      await scene.countOf(number, { timedOut: 1 });
    }
    free(node);
  },

  async MemberJudged(scene, { id, node: number, verdict, paid }) {
    const [task, node, { group, member }] = [await scene.task(id), await scene.node(number), await scene.seat(id, number)];
    const isOpen = (await openIn(scene, group)).includes(number);
    [member.verdict, member.paid] = [verdict, paid];
    node.judgedIn = group.id;
    group.paid += paid;
    task.paid += paid;
    await scene.reward(number, paid, id);
    if (verdict === 2 || verdict === 3) {
      node.wrong++;
      await scene.countOf(number, { wrong: 1 });
    }
    if (verdict === 1) {
      node.succeeded++;
      await scene.countOf(number, { succeeded: 1 });
      if (group.scored) await raise(scene, node, task);
    } else if (verdict === 3) {
      // A withheld answer lowers H like none in time.
      await lower(scene, node, id);
    } else if (verdict === 4) {
      node.failed++;
      await scene.countOf(number, { failed: 1 });
    }
    if (isOpen) uncount(node);
  },

  async ScoreRecorded(scene, { node: number, score }) {
    const node = await scene.node(number);
    node.pool = [...node.pool, score].slice(-POOL);
    node.longTerm = longTerm(node.pool);
    Object.assign(node, rated(node, score > 0));
    if (node.status && isKickedOut(node.pool, await scene.parameter("kickoutMilli"))) node.status = 6;
    const member = node.judgedIn === null ? undefined : await scene.find("member", { validation: node.judgedIn, node: number });
    if (member) member.score = score;
    await scene.row("score", { id: scene.id }, () => ({
      ...{ id: scene.id, node: number, score, task: member?.task ?? null, validation: node.judgedIn, at: scene.at },
    }));
    await scene.countOf(number, { scores: 1, scored: score });
  },

  async GroupSettled(scene, { id, outcome, answer, refund: amount, startFee, reserve }) {
    const [task, network] = [await scene.task(id), await scene.network()];
    const group = await scene.known("validation", { id: task.validation! });
    const members = [];
    for (const node of group.nodes) members.push(await scene.known("member", { validation: group.id, node }));
    [group.open, group.outcome, group.settledAt, group.answer] = [false, outcome, scene.at, answer];
    [group.refund, group.startFee] = [amount, startFee];
    network.groups--;
    await scene.count({ settled: 1 });
    if (outcome <= 1) {
      for (const member of members) {
        if (member.stage !== ANSWERED) continue;
        member.equal = member.answer === answer;
        if (task.kind === 0) member.distances = distances(member.answer!, answer, task.units);
      }
    }
    const right = members.filter(({ verdict }) => verdict === 1);
    // A group without scores needs enough agreeing members, whose number is only known now.
    if (!group.scored && right.length >= (await scene.parameter("boostPool")))
      for (const { node } of right) await raise(scene, await scene.node(node), task);
    task.startFee += startFee;
    await income(scene, startFee, "startFee", id);
    // Another group is given it: an event before has said so.
    if (outcome === 4) return spend(scene, task, startFee);
    right.sort((a, b) => a.elapsed - b.elapsed || Number(a.moment - b.moment) || a.position - b.position);
    const named = outcome === 0 ? (task.redundancy === 3 ? right.find((member) => member.answer === answer) : right[0]) : members[0];
    const hasResult = outcome <= 1;
    await end(scene, task, hasResult ? 2 : NO_ANSWERS_THE_SAME, hasResult ? { succeeded: 1 } : { undecided: 1 });
    task.node = hasResult ? named!.node : 0;
    task.resultDigest = hasResult ? answer : null;
    const saved = reserve - network.reserve;
    task.toReserve += saved;
    await refund(scene, task, amount);
    await scene.pay({ pot: "reserve" }, saved, "rest", { task: id });
  },

  async NodeSlashed(scene, { node: number, operator, id, stake, unbonding, credit }) {
    const [node, task] = [await scene.node(number), await scene.task(id)];
    const total = stake + unbonding + credit;
    const about = { task: id, node: number };
    await scene.pay({ pot: "stake", node: number }, -stake, "slash", about);
    await scene.pay({ pot: "unbonding", account: operator }, -unbonding, "slash", about);
    await scene.pay({ pot: "credit", account: operator }, -credit, "slash", about);
    await scene.pay({ pot: "burnt" }, total, "slash", about);
    node.slashed += total;
    await scene.row("slash", { id: scene.id }, () => ({
      ...{ id: scene.id, node: number, operator, task: id, validation: task.validation, stake, unbonding, credit, at: scene.at },
    }));
    const member = task.validation === null ? undefined : await scene.find("member", { validation: task.validation, node: number });
    if (member) member.slashed += total;
    await scene.count({ slashes: 1, burnt: total });
    await scene.countOf(number, { slashed: total });
  },
};
