/**
 * The network's nodes as they were at every draw, out of the events alone: who could have been drawn for a task, and with what chance.
 *
 * It does not know the hashes, and does not need them: it knows what a node's weight was (`muster-core`'s own formula) and who was idle.
 * Left out are draws of several nodes (policy 2, validators), tasks that a freed node took from the queue, which nobody drew, and draws for
 * models with so many holders that only some of them are looked at (docs/dispatching.md).
 */
import { parameterNumbers } from "muster-client/abi";
import { type Row, list, pages } from "./api";
import { type Core, WAD, fits, weigh } from "./core";
import { Tally } from "./fairness";

/** Who could have been drawn. */
export interface Candidate {
  node: number;
  weight: bigint;
  /** Its share of all candidates' weight. */
  chance: number;
}

/** A draw of one node. Its candidates are kept as two lists of numbers: a network has many draws of many nodes. */
export interface Draw {
  task: bigint;
  block: bigint;
  winner: number;
  nodes: Uint32Array;
  weights: BigUint64Array;
}

/** Who could have been drawn. */
export function candidatesOf({ nodes, weights }: Pick<Draw, "nodes" | "weights">): Candidate[] {
  const sum = Number(weights.reduce((all, weight) => all + weight, 0n));
  return Array.from(nodes, (node, i) => ({ node, weight: weights[i]!, chance: Number(weights[i]!) / sum }));
}

/** H from a moment on; it recovers until the next. */
export interface Mark {
  at: number;
  h: bigint;
  why: string;
}

interface Node {
  status: number;
  group: number;
  stake: bigint;
  h: bigint;
  hAt: number;
  marks: Mark[];
  pool: number[];
  held: Set<bigint>;
  inUse: bigint[];
  parked: boolean;
  waits: boolean;
  reserved: boolean;
  open: number;
  halted: boolean;
  called: number;
}

interface Task {
  vram: number;
  gpu: number;
  models: bigint[];
  redundancy: number;
  estimate: number;
  node: number;
  boosts: boolean;
  /** It waits for its draw: who starts it now was drawn. */
  pending: boolean;
}

/** Why a start is not among the draws. */
export interface LeftOut {
  queued: number;
  several: number;
  /** Seats in groups that were chosen by ratings. */
  rated: number;
  searched: number;
  missed: number;
}

type Event = Pick<Row<"events">, "id" | "name" | "args" | "block" | "at">;
const number = (value: unknown) => Number(value as string);
const big = (value: unknown) => BigInt(value as string);
/** A model that more entries name than this is not searched among all of them; see docs/dispatching.md. */
const SEARCHED = 16;
/** The whole network is sampled where a model's holders are at least this part of it. */
const POPULAR = 4;
const POOL = 50;
const RATED = 3;
/** Candidates of all draws that are kept, the newest ones': 12 bytes each. Fairness needs none of them. */
const KEPT = 2_000_000;
const [AVAILABLE, BUSY, PAUSING, QUITTING, PAUSED] = [1, 2, 3, 4, 5];

/** Carried on by every event; see the module. */
export class Replay {
  /** The newest draws. */
  readonly draws: Draw[] = [];
  #kept = 0;
  /** Of all draws. */
  readonly tally = new Tally();
  readonly leftOut: LeftOut = { queued: 0, several: 0, rated: 0, searched: 0, missed: 0 };
  readonly nodes = new Map<number, Node>();
  /** The newest event that was read. */
  last = -1n;
  #tasks = new Map<bigint, Task>();
  #teams = new Map<number, { task: bigint; scored: boolean; liable: boolean; committed: Set<number> }>();
  #parameters = new Map<number, bigint>();
  #holders = new Map<bigint, Set<number>>();
  #granule = 1n;
  #slashed = 0;

  /** With `only`, of that task's draws alone the candidates are kept. */
  constructor(
    private readonly core: Core,
    private readonly only?: bigint,
  ) {}

  #parameter(number: number): number {
    return Number(this.#parameters.get(number) ?? 0n);
  }

  /** H of a node at a time, in seconds since 1970. */
  reliability(node: Node, now: number): bigint {
    return this.core.recover(node.h, BigInt(Math.max(0, now - node.hAt)), this.#parameter(parameterNumbers.tau));
  }

  #setH(node: Node, now: number, h: bigint, why: string): void {
    [node.h, node.hAt] = [h, now];
    node.marks.push({ at: now, h, why });
  }

  #penalise(node: Node | undefined, now: number, why: string): void {
    if (node) this.#setH(node, now, this.core.penalise(this.reliability(node, now), this.#parameter(parameterNumbers.penaltyPpm)), why);
  }

  #boost(node: Node | undefined, now: number, estimate: number, why: string): void {
    if (node && 2 * (now - node.hAt) >= estimate) this.#setH(node, now, this.core.boost(this.reliability(node, now), this.#parameter(parameterNumbers.boostPpm)), why);
  }

  /** The largest stake of all joined nodes, in granules. */
  largest(): bigint {
    let most = 0n;
    for (const { status, stake } of this.nodes.values()) if (status && stake > most) most = stake;
    return most / this.#granule;
  }

  longTerm({ pool }: Node): bigint {
    return this.core.longTerm(
      pool.reduce((sum, score) => sum + score, 0),
      pool.length,
    );
  }

  /** Notes who was drawn, and who could have been. */
  #draw(id: bigint, task: Task, winner: number, { at, block }: Event): void {
    if (this.only !== undefined && this.only !== id) return;
    const entries = task.models.reduce((sum, model) => sum + (this.#holders.get(model)?.size ?? 0), 0);
    const joined = [...this.nodes.values()].filter(({ status }) => status).length;
    if (entries > SEARCHED && entries * POPULAR < joined) return void this.leftOut.searched++;
    const [now, largest, least] = [Number(at), this.largest(), (WAD / 1_000_000n) * BigInt(this.#parameter(parameterNumbers.exclusionPpm))];
    const idle = [...this.nodes].flatMap(([node, one]) => {
      if (one.status !== AVAILABLE || one.parked || !fits(one.group, task.vram, task.gpu)) return [];
      const h = this.reliability(one, now);
      if (h < least) return [];
      const found = weigh(this.core, { stake: one.stake / this.#granule, longTerm: this.longTerm(one), h, models: one.held, inUse: one.inUse }, largest, task.models);
      return [{ node, ...found }];
    });
    const local = idle.filter((one) => one.local);
    const candidates = local.length ? local : idle;
    // A holder that was there was not met, or the events were not understood: in either case no draw among these.
    if (!candidates.some(({ node }) => node === winner)) return void this.leftOut.missed++;
    const draw = { task: id, block, winner, nodes: Uint32Array.from(candidates, ({ node }) => node), weights: BigUint64Array.from(candidates, ({ weight }) => weight) };
    this.tally.add(winner, candidatesOf(draw));
    this.draws.push(draw);
    this.#kept += candidates.length;
    while (this.#kept > KEPT) this.#kept -= this.draws.shift()!.nodes.length;
  }

  #free(node: Node | undefined): void {
    if (!node) return;
    node.halted = false;
    if (node.status === BUSY && !node.called) node.status = AVAILABLE;
  }

  /** A node has committed in a group; what can be slashed is an open commitment until the group is settled. */
  #countOpen(node: Node | undefined, liable: boolean): void {
    if (!node) return;
    if (liable) node.open++;
    if (node.open < this.#parameter(parameterNumbers.openMost) || node.called) this.#free(node);
    else node.halted = true;
  }

  #hold(number: number, model: bigint): void {
    this.nodes.get(number)?.held.add(model);
    this.#holders.set(model, (this.#holders.get(model) ?? new Set()).add(number));
  }

  #end(id: bigint): Task | undefined {
    const task = this.#tasks.get(id);
    this.#tasks.delete(id);
    if (task?.node) this.#free(this.nodes.get(task.node));
    return task;
  }

  /** Reads the next event. Such as it does not know change nothing that it says. */
  read(event: Event): void {
    this.last = event.id;
    const { name, at } = event;
    const { args } = event;
    const now = Number(at);
    const node = args.node === undefined ? undefined : this.nodes.get(number(args.node));
    const id = args.id === undefined ? 0n : big(args.id);
    const task = this.#tasks.get(id);
    const slashed = this.#slashed;
    this.#slashed = 0;
    switch (name) {
      case "Initialised":
        this.#granule = big(args.granule);
        break;
      case "ParameterChanged":
        this.#parameters.set(number(args.parameter), big(args.value));
        break;
      case "NodeJoined": {
        const before = this.nodes.get(number(args.node));
        const joined: Node = {
          status: AVAILABLE, group: number(args.group), stake: big(args.stake), h: WAD, hAt: now, marks: before?.marks ?? [], pool: before?.pool ?? [],
          held: new Set(), inUse: [], parked: false, waits: false, reserved: false, open: before?.open ?? 0, halted: false, called: 0,
        };
        this.nodes.set(number(args.node), joined);
        joined.marks.push({ at: now, h: WAD, why: "joined" });
        for (const model of args.models as unknown[]) this.#hold(number(args.node), big(model));
        break;
      }
      case "StakeRaised":
        node!.stake = big(args.stake);
        break;
      case "NodePausing":
        node!.status = PAUSING!;
        break;
      case "NodePaused":
        Object.assign(node!, { status: PAUSED, parked: false, waits: false });
        break;
      case "NodeResumed":
        node!.status = AVAILABLE!;
        break;
      case "NodeQuitting":
        node!.status = QUITTING!;
        break;
      case "NodeQuit":
        Object.assign(node!, { status: 0, stake: 0n, parked: false, waits: false, reserved: false, halted: false, called: 0 });
        break;
      case "NodeExcluded":
        node!.parked = true;
        if (node!.reserved && node!.status === BUSY && !node!.called) node!.status = AVAILABLE!;
        node!.reserved = false;
        break;
      case "NodeWaits":
        if (big(args.until) > 0n) Object.assign(node!, { parked: true, waits: true });
        else Object.assign(node!, { status: BUSY, parked: false, waits: false, reserved: true });
        break;
      case "NodeReadmitted":
        Object.assign(node!, { parked: false, waits: false });
        break;
      case "ScoreRecorded":
        node!.pool = [...node!.pool, number(args.score)].slice(-POOL);
        if (node!.pool.length === POOL && node!.pool.reduce((sum, score) => sum + score, 0) * 1_000 < this.#parameter(parameterNumbers.kickoutMilli) * POOL && [BUSY, PAUSING, QUITTING].includes(node!.status)) node!.status = 6;
        break;
      case "ModelAdded":
        this.#hold(number(args.node), big(args.model));
        break;
      case "ModelRemoved":
        node!.held.delete(big(args.model));
        break;
      case "HolderPurged":
        node!.held.delete(big(args.model));
        this.#holders.get(big(args.model))?.delete(number(args.node));
        break;
      case "TaskCreated": {
        const spec = args.spec as Record<string, unknown>;
        const models = (spec.models as unknown[]).map(big);
        this.#tasks.set(id, { vram: number(spec.vram), gpu: number(spec.gpu), models, redundancy: number(spec.redundancy), estimate: number(args.estimate), node: 0, boosts: false, pending: true });
        break;
      }
      case "TaskRedrawn":
        if (task && !task.node) task.pending = true;
        break;
      case "TaskQueued":
        if (task) task.pending = false;
        break;
      case "TaskStarted":
        if (!task || !node) break;
        if (task.pending) this.#draw(id, task, number(args.node), event);
        else this.leftOut.queued++;
        Object.assign(task, { pending: false, node: number(args.node), boosts: args.boosts });
        Object.assign(node, { status: BUSY, inUse: task.models });
        break;
      case "TaskSucceeded":
        if (task?.boosts) this.#boost(node, now, task.estimate, `task ${id} succeeded`);
        this.#end(id);
        break;
      case "TaskErrorReported":
        this.#end(id);
        break;
      case "TaskAborted":
        this.#end(id);
        if (number(args.reason) === 0) this.#penalise(node, now, `task ${id} timed out`);
        break;
      case "AnswerCommitted":
        if (!number(args.group)) break;
        this.#teams.get(number(args.group))?.committed.add(number(args.node));
        this.#countOpen(node, this.#teams.get(number(args.group))?.liable ?? false);
        break;
      case "GroupFormed": {
        const nodes = (args.nodes as unknown[]).map(number);
        if (task?.redundancy === RATED) this.leftOut.rated += nodes.length;
        else this.leftOut.several += task?.node ? nodes.length - 1 : nodes.length;
        const first = task?.node ?? 0;
        const scored = Boolean(args.scored);
        const liable = scored && task?.redundancy !== RATED;
        this.#teams.set(number(args.group), { task: id, scored, liable, committed: new Set(first ? [first] : []) });
        if (first) this.#countOpen(this.nodes.get(first), liable);
        if (task) Object.assign(task, { node: 0, boosts: false, pending: false });
        break;
      }
      case "MemberCalled":
        if (node) node.called = number(args.group);
        break;
      case "MemberStarted":
        if (!node) break;
        if (node.status === AVAILABLE) node.status = BUSY!;
        if (node.called === number(args.group)) node.called = 0;
        Object.assign(node, { parked: false, waits: false, reserved: false, inUse: task?.models ?? [] });
        break;
      case "MemberTimedOut":
        if (slashed === number(args.node)) this.#slashed = slashed;
        else this.#penalise(node, now, `its part of task ${id} timed out`);
        this.#free(node);
        break;
      case "MemberJudged": {
        const team = this.#teams.get(number(args.group));
        if (number(args.verdict) === 1 && team?.scored) this.#boost(node, now, task?.estimate ?? 0, `its answer to task ${id} was right`);
        if (node && team?.liable && team.committed.has(number(args.node))) {
          node.open--;
          if (node.halted) this.#free(node);
        }
        break;
      }
      case "GroupSettled":
        this.#teams.delete(number(args.group));
        // Else another group is given it.
        if (number(args.outcome) !== 4) this.#end(id);
        break;
      case "NodeSlashed":
        node!.stake -= big(args.stake);
        this.#slashed = number(args.node);
    }
  }
}

/** Beyond so many events nothing is replayed in a browser. */
export const MOST = 200_000;
/** Events that change nothing here. */
const IDLE = ["DownloadRequested", "Withdrawn", "StakeReleased", "ModelNamed", "GpuGroupCreated", "DiamondCut", "AnswerRevealed", "TreasurySwept", "GroupChosen", "NodeRated", "ProfileSet", "WorkerNamed", "WorkAccepted", "StoresSet", "TaskRefused"];

/** Events of these carry it on. */
const wanted = (after: bigint, upTo?: bigint) =>
  list("events", { where: { id_gt: after, ...(upTo === undefined ? {} : { id_lte: upTo }), name_not_in: IDLE }, order: "id" }, ["id", "name", "args", "block", "at"]);

let replay: Promise<Replay> | undefined;
/** One replay for all views: reads what is new since it was last asked for, one question after the other. */
export function replayed(core: Core): Promise<Replay> {
  const before = replay ?? Promise.resolve(new Replay(core));
  const next = before.then(async (known) => {
    for await (const page of pages(wanted(known.last < 0n ? 0n : known.last))) for (const event of page) known.read(event);
    return known;
  });
  // What failed once may succeed the next time.
  replay = next.catch(() => before);
  return next;
}

/** A task's draws; of one so old that its candidates are no longer kept, by a replay of its own up to `end`, the task's newest event. */
export async function drawsOf(core: Core, task: bigint, end: bigint): Promise<Draw[]> {
  const known = await replayed(core);
  const own = known.draws.filter((draw) => draw.task === task);
  if (own.length || !known.draws.length || known.draws[0]!.task <= task) return own;
  const again = new Replay(core, task);
  for await (const page of pages(wanted(0n, end))) for (const event of page) again.read(event);
  return again.draws;
}
