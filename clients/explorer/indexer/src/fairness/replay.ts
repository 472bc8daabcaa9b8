/**
 * The network's nodes as they were at every draw, from the events alone: the candidates for each task, with their chances.
 *
 * Hashes are unknown and not needed: the nodes' weights (`muster-core`'s own formula) and the idle nodes are known.
 * It omits draws of several nodes (policy 2, validators), and tasks that a freed node took from the queue without a draw. It also omits
 * draws for models with so many holders that only some of them are looked at (docs/dispatching.md).
 */
import { musterParameters } from "../../../../../abi/parameters";
import { ANSWERED, HAS_COMMITTED, POOL, type Rules, WAD, atRisk, fits, isKickedOut, weigh } from "./rules";

type Name = (typeof musterParameters)[number]["name"];
export const parameterNumbers = Object.fromEntries(musterParameters.map(({ name, number }) => [name, number])) as Record<Name, number>;

/** A candidate of a draw. */
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

/** The candidates of a draw. */
export function candidatesOf({ nodes, weights }: Pick<Draw, "nodes" | "weights">): Candidate[] {
  const sum = Number(weights.reduce((all, weight) => all + weight, 0n));
  return Array.from(nodes, (node, i) => ({ node, weight: weights[i]!, chance: Number(weights[i]!) / sum }));
}

/** A node as it stands for draws. */
export interface Standing {
  status: number;
  group: number;
  stake: bigint;
  h: bigint;
  hAt: number;
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

export interface Drawn {
  vram: number;
  gpu: number;
  models: bigint[];
  redundancy: number;
  kind: number;
  estimate: number;
  node: number;
  boosts: boolean;
  /** It waits for its draw: a start now means that the node was drawn. */
  pending: boolean;
}

/** A validation group that is not settled. */
interface Team {
  task: bigint;
  scored: boolean;
  liable: boolean;
  /** Its members that have committed, by node. */
  members: Map<number, { stage: number; answer: string | null }>;
  /** Members that were right, so far. */
  right: number[];
}

/** The reasons why a start is not among the draws, with counts. */
export interface LeftOut {
  queued: number;
  several: number;
  /** Seats in groups that were chosen by ratings. */
  rated: number;
  searched: number;
  missed: number;
  /** Draws among many holders of which only a part is looked at. */
  passed: number;
}

/** An event as the indexer keeps it; numbers above 2^53 are text. */
export interface Event {
  id: bigint;
  name: string;
  args: Record<string, unknown>;
  block: bigint;
  at: bigint;
}
const number = (value: unknown) => Number(value as string);
const big = (value: unknown) => BigInt(value as string);
/** A model that more entries name than this is not searched among all of them; see docs/dispatching.md. */
const SEARCHED = 16;
/** The whole network is sampled where a model's holders are at least this part of it. */
const POPULAR = 4;
const RATED = 3;
/** The kind of tasks whose answers are images. */
const IMAGES = 0;
/** Candidates of all draws that are kept, the newest ones': 12 bytes each. */
const KEPT = 2_000_000;
const [AVAILABLE, BUSY, PAUSING, QUITTING, PAUSED, KICKED_OUT] = [1, 2, 3, 4, 5, 6];

/** Carried on by every event; see the module. */
export class Replay {
  /** The newest draws. */
  readonly draws: Draw[] = [];
  #kept = 0;
  readonly leftOut: LeftOut = { queued: 0, several: 0, rated: 0, searched: 0, missed: 0, passed: 0 };
  readonly nodes = new Map<number, Standing>();
  /** The newest event that was read. */
  last = -1n;
  #tasks = new Map<bigint, Drawn>();
  #teams = new Map<number, Team>();
  #parameters = new Map<number, bigint>();
  protected readonly holders = new Map<bigint, Set<number>>();
  protected stakeUnit = 1n;
  #slashed = 0;
  #largest: bigint | undefined;
  protected joined = 0;
  /** Nodes that the event changed, and whether it changed all weights. */
  protected readonly touched = new Set<number>();
  protected allTouched = false;

  /** With `only`, of that task's draws alone the candidates are kept. */
  constructor(
    protected readonly rules: Rules,
    private readonly only?: bigint,
  ) {}

  /** The state for `restore`, without the kept draws: serialisable values, which share common parts. */
  state(): Record<string, unknown> {
    const { leftOut, nodes, last, holders, stakeUnit, joined, allTouched } = this;
    return { leftOut, nodes, last, holders, stakeUnit, joined, allTouched, tasks: this.#tasks, teams: this.#teams, parameters: this.#parameters, slashed: this.#slashed, largest: this.#largest };
  }

  restore({ tasks, teams, parameters, slashed, largest, ...rest }: Record<string, unknown>): void {
    Object.assign(this, rest);
    this.#tasks = tasks as Map<bigint, Drawn>;
    this.#teams = teams as Map<number, Team>;
    this.#parameters = parameters as Map<number, bigint>;
    this.#slashed = slashed as number;
    this.#largest = largest as bigint | undefined;
  }

  #parameter(number: number): number {
    return Number(this.#parameters.get(number) ?? 0n);
  }

  #node(number: number): Standing | undefined {
    this.touched.add(number);
    return this.nodes.get(number);
  }

  /** H of a node at a time, in seconds since 1970. */
  reliability(node: Standing, now: number): bigint {
    return this.rules.recover(node.h, BigInt(Math.max(0, now - node.hAt)), this.#parameter(parameterNumbers.tau));
  }

  #penalise(node: Standing | undefined, now: number): void {
    if (node) [node.h, node.hAt] = [this.rules.penalise(this.reliability(node, now), this.#parameter(parameterNumbers.penaltyPpm)), now];
  }

  #boost(node: Standing | undefined, now: number, estimate: number): void {
    if (node && 2 * (now - node.hAt) >= estimate) [node.h, node.hAt] = [this.rules.boost(this.reliability(node, now), this.#parameter(parameterNumbers.boostPpm)), now];
  }

  /** The largest stake of all joined nodes, in stake units. */
  largest(): bigint {
    if (this.#largest === undefined) {
      this.#largest = 0n;
      for (const { status, stake } of this.nodes.values()) if (status && stake > this.#largest) this.#largest = stake;
    }
    return this.#largest / this.stakeUnit;
  }

  /** A joined node's stake is another one. */
  #restake(before: bigint, after: bigint): void {
    if (this.#largest === undefined) return;
    if (after > this.#largest) [this.#largest, this.allTouched] = [after, true];
    else if (before === this.#largest && after < before) [this.#largest, this.allTouched] = [undefined, true];
  }

  longTerm({ pool }: Standing): bigint {
    return this.rules.longTerm(
      pool.reduce((sum, score) => sum + score, 0),
      pool.length,
    );
  }

  /** Below this H nothing is drawn. */
  protected least(): bigint {
    return (WAD / 1_000_000n) * BigInt(this.#parameter(parameterNumbers.exclusionPpm));
  }

  /** Whether the contract looks at all holders of a task's models, or at a sample of all nodes: else at some of the holders alone. */
  protected isSearched(models: readonly bigint[]): boolean {
    const entries = models.reduce((sum, model) => sum + (this.holders.get(model)?.size ?? 0), 0);
    return entries > SEARCHED && entries * POPULAR < this.joined;
  }

  /** The present candidates among these nodes, those that hold a model or else all, with their weights. */
  protected candidates(numbers: Iterable<number>, { vram, gpu, models }: Pick<Drawn, "vram" | "gpu" | "models">, now: number): { node: number; weight: bigint; local: number }[] {
    const [largest, least] = [this.largest(), this.least()];
    const idle = [];
    for (const number of numbers) {
      const node = this.nodes.get(number);
      if (!node || node.status !== AVAILABLE || node.parked || !fits(node.group, vram, gpu)) continue;
      const h = this.reliability(node, now);
      if (h < least) continue;
      idle.push({ node: number, ...weigh(this.rules, { stake: node.stake / this.stakeUnit, longTerm: this.longTerm(node), h, models: node.held, inUse: node.inUse }, largest, models) });
    }
    const local = idle.filter((one) => one.local);
    return local.length ? local : idle;
  }

  /** Records the drawn node, and the candidates. */
  protected draw(id: bigint, task: Drawn, winner: number, { at, block }: Event): void {
    if (this.only !== undefined && this.only !== id) return;
    if (this.isSearched(task.models)) return void this.leftOut.searched++;
    const candidates = this.candidates(this.nodes.keys(), task, Number(at));
    // A holder that was there was not met, or the events were not understood: in either case no draw among these.
    if (!candidates.some(({ node }) => node === winner)) return void this.leftOut.missed++;
    this.draws.push({ task: id, block, winner, nodes: Uint32Array.from(candidates, ({ node }) => node), weights: BigUint64Array.from(candidates, ({ weight }) => weight) });
    this.#kept += candidates.length;
    while (this.#kept > KEPT) this.#kept -= this.draws.shift()!.nodes.length;
  }

  #free(node: Standing | undefined): void {
    if (!node) return;
    node.halted = false;
    if (node.status === BUSY && !node.called) node.status = AVAILABLE;
  }

  /** A node has committed in a group; a commitment is open as long as it can be slashed. */
  #countOpen(node: Standing | undefined, liable: boolean): void {
    if (!node) return;
    if (liable) node.open++;
    if (node.open < this.#parameter(parameterNumbers.openMost) || node.called) this.#free(node);
    else node.halted = true;
  }

  /** A node's commitment can be slashed no longer. */
  #close(node: Standing | undefined): void {
    if (!node) return;
    node.open--;
    if (node.halted) this.#free(node);
  }

  /** The nodes whose commitments in a group are open. */
  #atRisk({ liable, members }: Team): number[] {
    return liable ? atRisk([...members].map(([node, member]) => ({ node, ...member }))).map(({ node }) => node) : [];
  }

  #hold(number: number, model: bigint): void {
    this.#node(number)?.held.add(model);
    this.holders.set(model, (this.holders.get(model) ?? new Set()).add(number));
  }

  #end(id: bigint): Drawn | undefined {
    const task = this.#tasks.get(id);
    this.#tasks.delete(id);
    if (task?.node) this.#free(this.#node(task.node));
    return task;
  }

  /** Reads the next event. Such as it does not know change nothing that it says. */
  read(event: Event): void {
    this.last = event.id;
    this.touched.clear();
    const { name, at } = event;
    const { args } = event;
    const now = Number(at);
    const node = args.node === undefined ? undefined : this.#node(number(args.node));
    const id = args.id === undefined ? 0n : big(args.id);
    const task = this.#tasks.get(id);
    const slashed = this.#slashed;
    this.#slashed = 0;
    switch (name) {
      case "Initialised":
        this.stakeUnit = big(args.stakeUnit);
        break;
      case "ParameterChanged":
        this.#parameters.set(number(args.parameter), big(args.value));
        this.allTouched = true;
        break;
      case "NodeJoined": {
        const before = this.#node(number(args.node));
        const joined: Standing = {
          status: AVAILABLE, group: number(args.group), stake: big(args.stake), h: WAD, hAt: now, pool: before?.pool ?? [],
          held: new Set(), inUse: [], parked: false, waits: false, reserved: false, open: before?.open ?? 0, halted: false, called: 0,
        };
        this.nodes.set(number(args.node), joined);
        this.joined++;
        this.#restake(0n, joined.stake);
        for (const model of args.models as unknown[]) this.#hold(number(args.node), big(model));
        break;
      }
      case "StakeRaised":
        this.#restake(node!.stake, big(args.stake));
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
        this.joined--;
        this.#restake(node!.stake, 0n);
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
        if (node!.status && isKickedOut(node!.pool, this.#parameter(parameterNumbers.kickoutMilli))) node!.status = KICKED_OUT!;
        break;
      case "ModelAdded":
        this.#hold(number(args.node), big(args.model));
        break;
      case "ModelRemoved":
        node!.held.delete(big(args.model));
        break;
      case "HolderPurged":
        node!.held.delete(big(args.model));
        this.holders.get(big(args.model))?.delete(number(args.node));
        break;
      case "TaskCreated": {
        const spec = args.spec as Record<string, unknown>;
        const models = (spec.models as unknown[]).map(big);
        this.#tasks.set(id, { vram: number(spec.vram), gpu: number(spec.gpu), models, redundancy: number(spec.redundancy), kind: number(spec.kind), estimate: number(args.estimate), node: 0, boosts: false, pending: true });
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
        if (task.pending) this.draw(id, task, number(args.node), event);
        else this.leftOut.queued++;
        Object.assign(task, { pending: false, node: number(args.node), boosts: args.boosts });
        Object.assign(node, { status: BUSY, inUse: task.models });
        break;
      case "TaskSucceeded":
        if (task?.boosts) this.#boost(node, now, task.estimate);
        this.#end(id);
        break;
      case "TaskErrorReported":
        this.#end(id);
        break;
      case "TaskAborted":
        this.#end(id);
        if (number(args.reason) === 0) this.#penalise(node, now);
        break;
      case "AnswerCommitted":
        if (!number(args.group)) break;
        this.#teams.get(number(args.group))?.members.set(number(args.node), { stage: HAS_COMMITTED!, answer: null });
        this.#countOpen(node, this.#teams.get(number(args.group))?.liable ?? false);
        break;
      case "AnswerRevealed": {
        const team = this.#teams.get(number(args.group));
        if (!team) break;
        const before = this.#atRisk(team);
        if (number(args.kind) === 0) team.members.set(number(args.node), { stage: ANSWERED!, answer: args.value as string });
        else team.members.delete(number(args.node));
        const after = this.#atRisk(team);
        for (const other of before) if (!after.includes(other)) this.#close(this.#node(other));
        break;
      }
      case "GroupFormed": {
        const nodes = (args.nodes as unknown[]).map(number);
        if (task?.redundancy === RATED) this.leftOut.rated += nodes.length;
        else this.leftOut.several += task?.node ? nodes.length - 1 : nodes.length;
        const first = task?.node ?? 0;
        const scored = Boolean(args.scored);
        const slashes = task?.redundancy !== RATED && (task?.kind !== IMAGES || this.#parameter(parameterNumbers.slashImages) > 0);
        const members = new Map(first ? [[first, { stage: HAS_COMMITTED!, answer: null }]] : []);
        this.#teams.set(number(args.group), { task: id, scored, liable: scored && slashes, members, right: [] });
        if (first) this.#countOpen(this.#node(first), scored && slashes);
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
        else this.#penalise(node, now);
        this.#free(node);
        break;
      case "MemberJudged": {
        const team = this.#teams.get(number(args.group));
        if (number(args.verdict) === 3) this.#penalise(node, now);
        if (number(args.verdict) === 1) team?.right.push(number(args.node));
        if (number(args.verdict) === 1 && team?.scored) this.#boost(node, now, task?.estimate ?? 0);
        if (team && this.#atRisk(team).includes(number(args.node))) this.#close(node);
        break;
      }
      case "GroupSettled": {
        const team = this.#teams.get(number(args.group));
        // A group without scores needs this many right members.
        if (team && !team.scored && team.right.length >= this.#parameter(parameterNumbers.boostPool))
          for (const right of team.right) this.#boost(this.#node(right), now, task?.estimate ?? 0);
        this.#teams.delete(number(args.group));
        // Else another group is given it.
        if (number(args.outcome) !== 4) this.#end(id);
        break;
      }
      case "NodeSlashed":
        this.#restake(node!.stake, node!.stake - big(args.stake));
        node!.stake -= big(args.stake);
        this.#slashed = number(args.node);
    }
  }
}

/** Events that change nothing here. */
export const IDLE = ["DownloadRequested", "Withdrawn", "StakeReleased", "ModelNamed", "GpuGroupCreated", "DiamondCut", "TreasurySwept", "GroupChosen", "NodeRated", "ProfileSet", "WorkerNamed", "WorkAccepted", "StoresSet", "TaskRefused"];
