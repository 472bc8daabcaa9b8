/**
 * Each node's share of the draws against its share of weight, with the range of chance. Updated with each event, so that an event costs about as much
 * in a network of 100,000 nodes as in one of ten.
 *
 * A draw among few updates each of its candidates. One among many updates the GPU groups in scope: each adds up the chance of a unit of weight,
 * 1 / (weight of all candidates). A node's expected wins are its weight times the growth of its group's sum since the node last changed. H recovers with
 * time: nodes whose H has not come back to 1 are weighed anew before each such draw, or as often as LOOKS allows.
 */
import { type Drawn, type Event, Replay, type Standing } from "./replay";
import { type Rules, WAD, fits } from "./rules";
import { Wins, binomial, joint } from "./statistics";

export interface Fair {
  node: number;
  /** Draws in which it was a candidate. */
  draws: number;
  won: number;
  /** Its expected wins, by its weight in those draws. */
  expected: number;
  /** The range of its wins in 95 of 100 networks like this one. */
  least: number;
  most: number;
  /** Whether it is outside of the range that, in 95 of 100 networks like this one, no node leaves. */
  outside: boolean;
  /** The probability of a result at least as far from the expectation. */
  p: number;
  /** Its share of the draws, and its mean chance in them. */
  share: number;
  weight: number;
}

export interface Fairness {
  nodes: Fair[];
  draws: number;
  /** Nodes outside their own interval, and how many chance puts there at most on average. */
  beyond: number;
  allowed: number;
}

const BEYOND = 0.05;
/** Draws among at most this many candidates update each of them. */
const FEW = 64;
/** Above this many holders of a model only a part of the draws is looked at: on average, this many holders are weighed for each draw. */
const HOLDERS = 2_000;
/** H counts as 1 from here on: the error of the weight is less than a ten-thousandth. */
const WHOLE = WAD - WAD / 10_000n;
/** Recovering nodes are weighed at most this many times in a second of the chain's. */
const LOOKS = 1_000;
/** Weights are added up as parts of a node's of weight one. */
const ONE = 1e18;

/** The results of a node's draws. */
interface Account {
  won: number;
  /** Draws among few, one by one; and among many, how many and the sum of its chances. */
  wins: Wins | undefined;
  draws: number;
  expected: number;
}

/** A node as it counts in its group: its weight, 0 while it cannot be drawn, and the group's sums when it was weighed. */
interface Share {
  group: number;
  weight: number;
  sum: number;
  draws: number;
  at: number;
  /** Models of its last task, held or not: they raise its weight for a task that requires them. */
  inUse: readonly bigint[];
}

interface Group {
  /** Those that could be drawn, and their weight. */
  members: Set<number>;
  weight: number;
  /** Of all draws in scope: the chances of a unit of weight added up, and how many. */
  sum: number;
  draws: number;
  /** Nodes whose H recovers. */
  recovering: Set<number>;
}

export class Shares extends Replay {
  #accounts = new Map<number, Account>();
  #shares = new Map<number, Share>();
  #groups = new Map<number, Group>();
  /** Nodes by the models of their last tasks. */
  #users = new Map<bigint, Set<number>>();
  #draws = 0;
  /** Draws among many holders of a model so far. */
  #popular = 0;

  /** `few` as FEW, for tests. */
  constructor(
    rules: Rules,
    private readonly few = FEW,
  ) {
    super(rules);
  }

  override state(): Record<string, unknown> {
    return { ...super.state(), accounts: this.#accounts, shares: this.#shares, groups: this.#groups, users: this.#users, counted: this.#draws, popular: this.#popular };
  }

  override restore({ accounts, shares, groups, users, counted, popular, ...rest }: Record<string, unknown>): void {
    super.restore(rest);
    this.#accounts = accounts as Map<number, Account>;
    // Of a class that serialising takes from it.
    for (const account of this.#accounts.values()) if (account.wins) account.wins = Object.assign(new Wins(), account.wins);
    this.#shares = shares as Map<number, Share>;
    this.#groups = groups as Map<number, Group>;
    this.#users = users as Map<bigint, Set<number>>;
    this.#draws = counted as number;
    this.#popular = popular as number;
  }

  #account(node: number): Account {
    let account = this.#accounts.get(node);
    if (!account) this.#accounts.set(node, (account = { won: 0, wins: undefined, draws: 0, expected: 0 }));
    return account;
  }

  #group(id: number): Group {
    let group = this.#groups.get(id);
    if (!group) this.#groups.set(id, (group = { members: new Set(), weight: 0, sum: 0, draws: 0, recovering: new Set() }));
    return group;
  }

  /** A node's part of its group's sums since it was weighed. */
  #since({ group, weight, sum, draws }: Share): { expected: number; draws: number } {
    const now = this.#group(group);
    return weight ? { expected: weight * (now.sum - sum), draws: now.draws - draws } : { expected: 0, draws: 0 };
  }

  /** Books a node's part of its group's sums, and weighs it anew. */
  #weigh(number: number, node: Standing, now: number): void {
    const before = this.#shares.get(number);
    if (before?.weight) {
      const { expected, draws } = this.#since(before);
      if (draws) {
        const account = this.#account(number);
        account.expected += expected;
        account.draws += draws;
      }
      const left = this.#group(before.group);
      left.members.delete(number);
      // Rounding errors must not remain in a sum.
      left.weight = left.members.size ? left.weight - before.weight : 0;
    }
    if (before) this.#group(before.group).recovering.delete(number);
    const group = this.#group(node.group);
    const [found] = this.candidates([number], { vram: 0, gpu: 0, models: [] }, now);
    const weight = found ? Number(found.weight) / ONE : 0;
    if (before?.inUse !== node.inUse) {
      for (const model of before?.inUse ?? []) this.#users.get(model)?.delete(number);
      for (const model of node.inUse) this.#users.set(model, (this.#users.get(model) ?? new Set()).add(number));
    }
    this.#shares.set(number, { group: node.group, weight, sum: group.sum, draws: group.draws, at: now, inUse: node.inUse });
    if (!weight) {
      // One that is idle but excluded still comes back.
      if (node.status === 1 && !node.parked) group.recovering.add(number);
      return;
    }
    group.members.add(number);
    group.weight += weight;
    if (this.reliability(node, now) < WHOLE) group.recovering.add(number);
  }

  override read(event: Event): void {
    super.read(event);
    const now = Number(event.at);
    for (const number of this.touched) {
      const node = this.nodes.get(number);
      if (node) this.#weigh(number, node, now);
    }
  }

  /** Weighs those whose H has moved since they were weighed. */
  #refresh(groups: readonly Group[], now: number): void {
    if (this.allTouched) {
      // Another largest stake, or another parameter.
      this.allTouched = false;
      for (const [number, node] of this.nodes) this.#weigh(number, node, now);
      return;
    }
    for (const { recovering } of groups) {
      const age = Math.ceil(recovering.size / LOOKS);
      for (const number of [...recovering]) if (now - this.#shares.get(number)!.at >= age) this.#weigh(number, this.nodes.get(number)!, now);
    }
  }

  #tell(winner: number, candidates: readonly { node: number; weight: bigint }[]): void {
    if (!candidates.some(({ node }) => node === winner)) return void this.leftOut.missed++;
    if (candidates.length < 2) return;
    this.#draws++;
    const sum = candidates.reduce((all, { weight }) => all + Number(weight), 0);
    for (const { node, weight } of candidates) {
      const account = this.#account(node);
      (account.wins ??= new Wins()).add(Number(weight) / sum);
      account.won += Number(node === winner);
    }
  }

  protected override draw(_: bigint, task: Drawn, winner: number, { at }: Event): void {
    if (this.isSearched(task.models)) return void this.leftOut.searched++;
    const now = Number(at);
    const lists = task.models.map((model) => this.holders.get(model) ?? new Set<number>());
    const holders = lists.reduce((all, { size }) => all + size, 0);
    if (holders) {
      const every = Math.ceil(holders / HOLDERS);
      // Chosen by their order alone, independently of the winner.
      if (every > 1 && this.#popular++ % every) return void this.leftOut.passed++;
      const local = this.candidates(new Set(lists.flatMap((list) => [...list])), task, now).filter((one) => one.local);
      if (local.length) return this.#tell(winner, local);
    }
    const groups = [...this.#groups].filter(([id]) => fits(id, task.vram, task.gpu)).map(([, group]) => group);
    this.#refresh(groups, now);
    if (groups.reduce((all, { members }) => all + members.size, 0) <= Math.max(1, this.few)) {
      return this.#tell(winner, this.candidates(groups.flatMap(({ members }) => [...members]), task, now));
    }
    const share = this.#shares.get(winner);
    if (!share?.weight || !fits(share.group, task.vram, task.gpu)) return void this.leftOut.missed++;
    // No possible node holds a model; nodes that ran one last weigh more all the same.
    const users = new Set(task.models.flatMap((model) => [...(this.#users.get(model) ?? [])]));
    const more = this.candidates(users, task, now).map(({ node, weight }) => ({ node, more: Number(weight) / ONE - this.#shares.get(node)!.weight }));
    const all = groups.reduce((sum, { weight }) => sum + weight, 0) + more.reduce((sum, one) => sum + one.more, 0);
    for (const one of more) this.#account(one.node).expected += one.more / all;
    for (const group of groups) {
      group.sum += 1 / all;
      group.draws++;
    }
    this.#account(winner).won++;
    this.#draws++;
  }

  /** The results so far. It takes time if there are many: `pause` is awaited now and then. */
  async result(pause: () => Promise<void> = async () => undefined): Promise<Fairness> {
    const found = [];
    for (const number of new Set([...this.#accounts.keys(), ...this.#shares.keys()])) {
      const share = this.#shares.get(number);
      const since = share ? this.#since(share) : { expected: 0, draws: 0 };
      const { won = 0, wins = undefined, draws = 0, expected = 0 } = this.#accounts.get(number) ?? {};
      const many = { draws: draws + since.draws, expected: expected + since.expected };
      if (many.draws + (wins?.draws ?? 0)) found.push({ number, won, many, few: wins?.copy() });
    }
    const draws = this.#draws;
    const nodes: Fair[] = [];
    // Šidák: with this bound, the probability that none of the independent nodes is outside is 0.95.
    const alarm = 1 - (1 - BEYOND) ** (1 / found.length);
    for (const [i, { number, won, many, few }] of found.entries()) {
      if (i % 500 === 499) await pause();
      const wins = joint(few, binomial(many.draws, many.expected));
      const { expected, least, most } = wins.interval(BEYOND);
      const p = wins.tail(won);
      nodes.push({ node: number, draws: wins.draws, won, expected, least, most, outside: p < alarm, p, share: won / draws, weight: expected / draws });
    }
    const beyond = nodes.filter(({ won, least, most }) => won < least || won > most).length;
    return { nodes, draws, beyond, allowed: BEYOND * nodes.length };
  }
}
