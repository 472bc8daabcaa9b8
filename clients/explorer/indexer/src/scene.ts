/** The changes of one event: rows are read once, changed in memory, and written when the event is done. */
import { and, asc, eq, lte } from "drizzle-orm";
import type { Context } from "ponder:registry";
import * as schema from "../ponder.schema";
import type { Hex } from "viem";
import { NEWCOMER } from "./formulas";
import { PARAMETERS, parameterNumber } from "./interface";

type Tables = typeof schema;
type Name = { [name in keyof Tables]: Tables[name] extends { $inferSelect: object } ? name : never }[keyof Tables];
export type Row<name extends Name> = Tables[name]["$inferSelect"];
type Sums = Omit<Row<"hour">, "start">;
type Key = Record<string, unknown>;

export const NOBODY: Hex = `0x${"00".repeat(20)}`;
const MINUTE = 60n;
const HOUR = 3_600n;
const DAY = 86_400n;

/** The first second of a month. */
const monthOf = (at: bigint): bigint => {
  const date = new Date(Number(at) * 1_000);
  return BigInt(Date.UTC(date.getUTCFullYear(), date.getUTCMonth()) / 1_000);
};

const NO_SUMS: Sums = {
  ...{ nodes: 0, waiting: 0, stakes: 0n, reserve: 0n, treasury: 0n, burntEver: 0n },
  ...{ created: 0, started: 0, queued: 0, succeeded: 0, failed: 0, timedOut: 0, cancelled: 0, evicted: 0, expired: 0, slashedOut: 0 },
  ...{ undecided: 0, redrawn: 0, committed: 0, sampled: 0, formed: 0, settled: 0, waited: 0n, ran: 0n },
  ...{ fees: 0n, paid: 0n, refunded: 0n, income: 0n, burnt: 0n, withdrawn: 0n },
  ...{ joined: 0, quits: 0, kickedOut: 0, excluded: 0, slashes: 0, downloads: 0, transactions: 0, gas: 0n, events: 0 },
};
const NO_NODE_SUMS = { started: 0, succeeded: 0, wrong: 0, failed: 0, timedOut: 0, earned: 0n, slashed: 0n, scores: 0, scored: 0 };

/** An event, as far as all of them are alike. */
export interface Log {
  name: string;
  /** Block, and place in it. */
  block: bigint;
  blockHash: Hex;
  logIndex: number;
  at: bigint;
  tx: Hex;
}

/** A place of money: a node's stake, an account's credit or unbonding stake, a task's fee, or the network's own. */
export type Pot =
  | { pot: "stake"; node: number }
  | { pot: "credit" | "unbonding"; account: Hex }
  | { pot: "escrow"; task: bigint }
  | { pot: "treasury" | "reserve" | "burnt" };

export class Scene {
  /** The event's number: its block and place in it. */
  readonly id: bigint;
  #rows = new Map<string, { table: Name; key: Key; row: Key; isNew: boolean }>();
  #payments = 0;

  constructor(
    private readonly db: Context["db"],
    readonly log: Log,
  ) {
    this.id = log.block * 1_000_000n + BigInt(log.logIndex);
  }

  get at() {
    return this.log.at;
  }

  /** A row to change, if there is one. */
  async find<name extends Name>(table: name, key: Partial<Row<name>>): Promise<Row<name> | undefined> {
    const name = `${table} ${Object.values(key).join(" ")}`;
    const known = this.#rows.get(name);
    if (known) return known.row as Row<name>;
    // Each table has a key of its own, which TypeScript cannot follow from its name.
    const found = (await this.db.find(schema[table] as never, key as never)) as Row<name> | null;
    if (!found) return undefined;
    const row = { ...found };
    this.#rows.set(name, { table, key, row: row as Key, isNew: false });
    return row;
  }

  /** A row to change; a new one where there is none. */
  async row<name extends Name>(table: name, key: Partial<Row<name>>, make: () => Omit<Row<name>, keyof typeof key>): Promise<Row<name>> {
    const found = await this.find(table, key);
    if (found) return found;
    const row = { ...key, ...make() } as Row<name>;
    this.#rows.set(`${table} ${Object.values(key).join(" ")}`, { table, key, row: row as Key, isNew: true });
    return row;
  }

  /** A row that an earlier event brought about. */
  async known<name extends Name>(table: name, key: Partial<Row<name>>): Promise<Row<name>> {
    const found = await this.find(table, key);
    if (!found) throw new Error(`${this.log.name} in block ${this.log.block}: no ${table} ${Object.values(key).join(" ")}`);
    return found;
  }

  node = (number: number) => this.known("node", { number });
  task = (id: bigint) => this.known("task", { id });

  /** The group that a task is in, and one of its members. */
  async seat(id: bigint, node: number) {
    const { validation } = await this.task(id);
    const group = await this.known("validation", { id: validation! });
    return { group, member: await this.known("member", { validation: group.id, node }) };
  }

  account = (address: Hex) =>
    this.row("account", { address }, () => ({
      ...{ address, credit: 0n, unbonding: 0n, release: 0n, node: 0, kickedOut: false, tasks: 0, fees: 0n, refunds: 0n },
      ...{ earned: 0n, withdrawn: 0n, firstAt: this.at, stores: "" },
    }));

  model = (id: bigint) =>
    this.row("model", { id }, () => ({ id, name: null, held: 0, entries: 0, tasks: 0, downloads: 0, firstAt: this.at }));

  network = () =>
    this.row("network", { id: "muster" }, () => ({
      ...{ id: "muster", owner: NOBODY, nextOwner: NOBODY, treasury: NOBODY, nextTreasury: NOBODY, nextTreasuryAt: 0n },
      ...{ treasuryBalance: 0n, reserve: 0n, burnt: 0n, stakes: 0n, escrow: 0n, credit: 0n, unbonding: 0n, paidOut: 0n },
      ...{ stakeUnit: 0n, minimumStake: 0n, upgradeDelay: 0n, upgradesRenounced: false, paused: false },
      ...{ tasks: 0n, pending: 0, queued: 0, running: 0, ended: 0n, nodesIssued: 0, nodesJoined: 0, groups: 0, groupPlaces: 0n },
      ...{ slashing: null, events: 0n, transactions: 0n, block: 0n, blockHash: null, at: 0n },
    }));

  /** A parameter's value now. */
  async parameter(name: Parameters<typeof parameterNumber>[0]): Promise<number> {
    return Number((await this.known("parameter", { number: parameterNumber(name) })).value);
  }

  /** Proposals to have this program answer selectors that can take effect now, the oldest first. */
  proposals = (program: Hex) => {
    const { programProposal: row } = schema;
    return this.db.sql.select().from(row).where(and(eq(row.program, program), lte(row.effective, this.at))).orderBy(asc(row.effective));
  };

  parameterRow = (number: number) =>
    this.row("parameter", { number }, () => ({
      ...{ number, name: PARAMETERS.get(number)?.name ?? String(number), unit: PARAMETERS.get(number)?.unit ?? "" },
      ...{ value: 0n, changedAt: this.at, proposed: null, effective: null },
    }));

  /** The rows of this hour, this day and this month. */
  #periods() {
    const starts = [["hour", this.at - (this.at % HOUR)], ["day", this.at - (this.at % DAY)], ["month", monthOf(this.at)]] as const;
    return Promise.all(starts.map(([table, start]) => this.row(table, { start }, () => NO_SUMS as never)));
  }

  /** Adds to the sums of this hour, this day and this month. */
  async count(more: Partial<Sums>) {
    for (const row of await this.#periods()) add(row, more);
  }

  /** Records the network's present state in them. */
  async #level() {
    const { nodesJoined: nodes, queued: waiting, stakes, reserve, treasuryBalance: treasury, burnt: burntEver } = await this.network();
    for (const row of await this.#periods()) Object.assign(row, { nodes, waiting, stakes, reserve, treasury, burntEver });
  }

  /** Another task of this minute. */
  async tick(what: "created" | "ended") {
    (await this.row("minute", { start: this.at - (this.at % MINUTE) }, () => ({ created: 0, ended: 0 })))[what]++;
  }

  /** Adds to a node's sums of this day. */
  async countOf(node: number, more: Partial<typeof NO_NODE_SUMS>) {
    const key = { node, start: this.at - (this.at % DAY) };
    add(await this.row("nodeDay", key, () => NO_NODE_SUMS as never), more);
  }

  /** Money comes into a pot, or leaves it if the amount is below 0. */
  async pay(where: Pot, amount: bigint, reason: string, about: { task?: bigint; node?: number } = {}) {
    if (amount === 0n) return;
    const network = await this.network();
    if (where.pot === "credit" || where.pot === "unbonding") {
      const account = await this.account(where.account);
      account[where.pot] += amount;
      network[where.pot] += amount;
    } else if (where.pot === "stake") {
      const node = await this.node(where.node);
      node.stake += amount;
      network.stakes += amount;
      (await this.known("gpuGroup", { id: node.gpuGroup })).stakes += amount;
    } else if (where.pot === "escrow") {
      network.escrow += amount;
    } else {
      network[where.pot === "treasury" ? "treasuryBalance" : where.pot] += amount;
    }
    const key = { event: this.id, part: this.#payments++ };
    await this.row("payment", key, () => ({
      ...{ ...key, pot: where.pot, amount, reason, at: this.at },
      account: "account" in where ? where.account : null,
      node: "node" in where ? where.node : (about.node ?? null),
      task: "task" in where ? where.task : (about.task ?? null),
    }));
  }

  /** A node's work earns. */
  async reward(node: number, amount: bigint, task: bigint) {
    const row = await this.node(node);
    row.earned += amount;
    (await this.account(row.operator)).earned += amount;
    await this.pay({ pot: "credit", account: row.operator }, amount, "pay", { task, node });
    await this.countOf(node, { earned: amount });
    await this.count({ paid: amount });
  }

  /** A node that joined for the first time. */
  newNode = (operator: Hex, gpuGroup: number): Omit<Row<"node">, "number"> => ({
    ...{ operator, worker: null, works: false, status: 1, gpuGroup, vram: gpuGroup & 0xffff, stake: 0n, joinedAt: this.at, leftAt: null, kickedOut: false },
    ...{ reliability: 10n ** 18n, reliabilityAt: this.at, pool: [], longTerm: 5n * 10n ** 17n, judgedRight: 0, judged: 0, rating: NEWCOMER },
    ...{ task: 0n, deadline: 0n, runs: false, models: [], inUse: [], parked: 0, parkedUntil: 0n, waitsFor: 0n },
    ...{ openCommitments: 0, held: false, calledTo: 0n, setAside: false, judgedIn: null },
    ...{ started: 0, succeeded: 0, wrong: 0, failed: 0, timedOut: 0, exclusions: 0, earned: 0n, slashed: 0n, seenAt: this.at },
  });

  /** Writes the changes. */
  async close() {
    await this.#level();
    for (const { table, key, row, isNew } of this.#rows.values()) {
      const of = schema[table] as never;
      if (isNew) {
        await this.db.insert(of).values(row as never);
      } else {
        const rest = Object.fromEntries(Object.entries(row).filter(([name]) => !(name in key)));
        await this.db.update(of, key as never).set(rest as never);
      }
    }
  }
}

function add<row extends object>(to: row, more: Partial<Record<keyof row, number | bigint>>) {
  for (const [name, value] of Object.entries(more) as [keyof row, number | bigint][]) {
    (to[name] as number | bigint) = ((to[name] as number) + (value as number)) as number;
  }
}
