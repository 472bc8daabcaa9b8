/** All that the page asks of the indexer: rows of its tables by GraphQL, its sums and lists, decoded into numbers and bigints. Nothing else does. */
import { type Patch, patched } from "../../indexer/src/api/patch";
import { config } from "./config";

type Decode<T> = (value: unknown) => T;
const int: Decode<number> = (value) => Number(value);
const big: Decode<bigint> = (value) => BigInt(value as string);
const text: Decode<string> = (value) => value as string;
const bool: Decode<boolean> = (value) => value as boolean;
const maybe =
  <T>(decode: Decode<T>): Decode<T | null> =>
  (value) =>
    value === null || value === undefined ? null : decode(value);
const many =
  <T>(decode: Decode<T>): Decode<T[]> =>
  (value) =>
    (value as unknown[]).map(decode);
const json: Decode<Record<string, unknown>> = (value) => (typeof value === "string" ? JSON.parse(value) : value) as Record<string, unknown>;

/** Sums of an hour, a day or a month. */
const SUMS = {
  start: big, nodes: int, waiting: int, stakes: big, reserve: big, treasury: big, burntEver: big, created: int, started: int, queued: int, succeeded: int, failed: int, timedOut: int, cancelled: int,
  evicted: int, expired: int, slashedOut: int, undecided: int, sampled: int, settled: int, waited: big, ran: big, fees: big, paid: big, refunded: big, income: big, burnt: big, joined: int, quits: int, kickedOut: int, excluded: int, slashes: int,
  transactions: int, gas: big,
};

/** The columns that the page reads (clients/explorer/indexer/ponder.schema.ts explains each), by the names of their lists. */
const tables = {
  networks: {
    treasuryBalance: big, reserve: big, burnt: big, stakes: big, escrow: big, credit: big, unbonding: big, stakeUnit: big, paused: bool,
    tasks: big, pending: int, queued: int, running: int, ended: big, nodesIssued: int, nodesJoined: int, groups: int, events: big, transactions: big, block: big, blockHash: maybe(text), at: big,
  },
  nodes: {
    number: int, operator: text, worker: maybe(text), works: bool, status: int, gpuGroup: int, vram: int, stake: big, joinedAt: big, leftAt: maybe(big), kickedOut: bool, reliability: big,
    reliabilityAt: big, pool: many(int), longTerm: big, judgedRight: int, judged: int, task: big, deadline: big, runs: bool, models: many(big), inUse: many(big), parked: int,
    parkedUntil: big, openCommitments: int, held: bool, started: int, succeeded: int, wrong: int, failed: int, timedOut: int, exclusions: int, earned: big, slashed: big, seenAt: big,
  },
  tasks: {
    id: big, creator: text, status: int, outcome: int, fee: big, kind: int, units: int, vram: int, gpu: int, redundancy: int, inputDigest: text, models: many(big), estimate: int,
    timeLimit: int, startFeeBps: int, ticket: big, sampleBps: int, createdAt: big, createdBlock: big, createdTx: text, drawBlock: big, redraws: int, queue: int, queuedAt: big, node: int,
    startedAt: maybe(big), deadline: big, boosts: bool, wasSampled: bool, validation: maybe(big), endedAt: maybe(big), endedBlock: maybe(big), code: int, paid: big, refund: big, startFee: big,
    toReserve: big, resultDigest: maybe(text),
  },
  events: { id: big, name: text, args: json, block: big, blockHash: text, at: big, tx: text, task: maybe(big), node: maybe(int), account: maybe(text), model: maybe(big) },
  transactions: { hash: text, at: big, call: maybe(text), gasUsed: big, gasPrice: big },
  validations: { id: big, place: big, open: bool, task: big, size: int, scored: bool, formedAt: big, outcome: maybe(int), settledAt: maybe(big), answer: maybe(text), refund: big, startFee: big, paid: big },
  members: {
    validation: big, node: int, position: int, task: big, stage: int, moment: big, startedAt: maybe(big), deadline: maybe(big), committedAt: maybe(big), elapsed: int, commitment: maybe(text),
    revealedAt: maybe(big), kind: maybe(int), answer: maybe(text), salt: maybe(text), distances: maybe(many(int)), equal: maybe(bool), verdict: maybe(int), score: maybe(int), paid: big, slashed: big,
  },
  reliabilityMarks: { id: big, at: big, h: big, why: text, task: maybe(big) },
  scores: { id: big, node: int, score: int, task: maybe(big), at: big },
  programProposals: { program: text, effective: maybe(big) },
  slashs: { id: big, node: int, operator: text, task: big, validation: maybe(big), stake: big, unbonding: big, credit: big, at: big },
  gpuGroups: { id: int, name: text, vram: int, listed: bool, joined: int, stakes: big },
  models: { id: big, name: maybe(text), held: int, entries: int, tasks: int, downloads: int },
  accounts: { address: text, credit: big, unbonding: big, release: big, node: int, kickedOut: bool, tasks: int, fees: big, refunds: big, earned: big, withdrawn: big },
  parameters: { number: int, name: text, unit: text, value: big, proposed: maybe(big), effective: maybe(big) },
  hours: SUMS,
  days: SUMS,
  months: SUMS,
  fairness: { node: int, draws: int, won: int, expected: int, least: int, most: int, outside: bool, p: int, share: int, weight: int },
  minutes: { start: big, created: int, ended: int },
  nodeDays: { node: int, start: big, started: int, succeeded: int, failed: int, timedOut: int, earned: big, slashed: big, scores: int, scored: int },
} satisfies Record<string, Record<string, Decode<unknown>>>;

type Tables = typeof tables;
/** Names of the lists. */
export type Table = keyof Tables;
/** A row of one of them. */
export type Row<T extends Table> = { [K in keyof Tables[T]]: Tables[T][K] extends Decode<infer V> ? V : never };
type Field<T extends Table> = keyof Tables[T] & string;

/** A question of any table. */
interface AnyWanted {
  table: Table;
  fields: readonly string[];
  where?: Record<string, unknown>;
  order?: string;
  limit?: number;
}

/** A request for a table's rows. */
export interface Wanted<T extends Table, F extends Field<T> = Field<T>> extends AnyWanted {
  table: T;
  fields: readonly F[];
  where?: Record<string, unknown>;
  /** A column, with a minus before it where the greatest comes first. */
  order?: string;
  /** At most 1,000 in one question. */
  limit?: number;
}

/** Rows of a table; all columns that the page knows unless some are named. */
export function list<T extends Table, F extends Field<T> = Field<T>>(table: T, options: Omit<Wanted<T, F>, "table" | "fields"> = {}, fields?: readonly F[]): Wanted<T, F> {
  return { table, fields: fields ?? (Object.keys(tables[table]) as F[]), ...options };
}

/** The rows that were wanted. */
export type Rows<W> = W extends { table: infer T extends Table; fields: readonly (infer F)[] } ? Pick<Row<T>, F & keyof Row<T>>[] : never;

/** The indexer could not be asked, or refused. */
export class ApiError extends Error {
  override name = "ApiError";
  /** @param seconds After so many seconds the same question may be answered; undefined if it never is. */
  constructor(
    message: string,
    readonly seconds?: number,
  ) {
    super(message);
  }
}
/** Seconds until an indexer that is not there, or has failed, is asked again. */
const LATER = 5;

const literal = (value: unknown): string =>
  typeof value === "bigint" ? `"${value}"` : Array.isArray(value) ? `[${value.map(literal).join()}]` : JSON.stringify(value);
const condition = (where: Record<string, unknown>): string =>
  `{${Object.entries(where)
    .map(([name, value]) => `${name}: ${name === "OR" || name === "AND" ? `[${(value as Record<string, unknown>[]).map(condition).join()}]` : literal(value)}`)
    .join()}}`;

function question(name: string, { table, fields, where, order, limit }: AnyWanted): string {
  const parts = [
    ...(where ? [`where: ${condition(where)}`] : []),
    ...(order ? [`orderBy: "${order.replace("-", "")}", orderDirection: "${order.startsWith("-") ? "desc" : "asc"}"`] : []),
    `limit: ${limit ?? 1_000}`,
  ];
  return `${name}: ${table}(${parts.join()}) { items { ${fields.join(" ")} } pageInfo { hasNextPage } }`;
}

const decoded = (table: Table, items: Record<string, unknown>[]) => {
  const columns = tables[table] as Record<string, Decode<unknown>>;
  return items.map((item) => Object.fromEntries(Object.entries(item).map(([name, value]) => [name, columns[name]!(value)])));
};

interface Page {
  items: Record<string, unknown>[];
  pageInfo: { hasNextPage: boolean };
}

/** How far the indexer had got. */
export interface Head {
  block: bigint;
  /** In seconds since 1970. */
  timestamp: bigint;
}

const heads = new WeakMap<AbortSignal, Head>();
/** The block of the answers to this signal's questions: the oldest, if there were several questions. */
export const headOf = (signal: AbortSignal): Head | undefined => heads.get(signal);
function note(signal: AbortSignal | undefined, block: number | null | undefined, at: number | null | undefined): void {
  if (!signal || !block) return;
  const before = heads.get(signal);
  if (!before || before.block > BigInt(block)) heads.set(signal, { block: BigInt(block), timestamp: BigInt(at ?? 0) });
}

/** Tells states of the tables apart: a reorganisation takes events back, and may put as many in their place. */
export const versionOf = (network: Row<"networks"> | undefined): string => `${network?.events ?? 0n} ${network?.blockHash}`;
/** The state that the page knows of, counted up with each: an answer is of no earlier one. */
let known = { events: 0n, state: "", turn: 0 };
export function know({ network, head }: State): void {
  const state = `${versionOf(network)} ${head?.block}`;
  if (state !== known.state) known = { events: network?.events ?? 0n, state, turn: known.turn + 1 };
}

/** The last answer to a question, by its path and query: its tag, and the last state for which it holds. */
interface Held {
  etag: string;
  body: unknown;
  turn: number;
}
const held = new Map<string, Held>();
/** Answers kept so that the indexer can send their changes. */
const HELD = 40;
/** Questions that the indexer sends changes of. */
let followed: ReadonlySet<string> = new Set();
let waiting: (() => void)[] = [];
/** Milliseconds for which a change is waited for before it is asked for. */
const PATIENCE = 2_000;

function hold(asked: string, answer: Held): void {
  held.delete(asked);
  held.set(asked, answer);
  for (const oldest of held.keys()) if (held.size > HELD) held.delete(oldest);
}

/** Sets the questions whose changes the indexer sends. */
export function follow(asked: readonly string[]): void {
  followed = new Set(asked);
  wake();
}
const wake = () => waiting.splice(0).forEach((one) => one());

/** Applies changes to answers, each from one tag to another; they hold for the known state. */
export function change(answers: Record<string, { from: string; to: string; by?: Patch }>): void {
  const { turn } = known;
  for (const [asked, { from, to, by }] of Object.entries(answers)) {
    const before = held.get(asked);
    if (before?.etag === to) hold(asked, { ...before, turn });
    else if (before && before.etag === from && by) hold(asked, { etag: to, body: patched(before.body, by), turn });
    // One was missed: it is asked for.
    else held.delete(asked);
  }
  wake();
}

/** The questions that a view asked by a signal, and the number of requests, for those that no sent change answered. */
interface Asking {
  asked: Set<string>;
  requests: number;
  /** Milliseconds for which it waited for sent changes. */
  waited: number;
}
const askings = new WeakMap<AbortSignal, Asking>();
export const askingOf = (signal: AbortSignal): Asking => {
  if (!askings.has(signal)) askings.set(signal, { asked: new Set(), requests: 0, waited: 0 });
  return askings.get(signal)!;
};

/** An answer updated by sent changes, if it holds for the known state. */
async function sent(asked: string): Promise<unknown> {
  if (!followed.has(asked)) return undefined;
  const until = Date.now() + PATIENCE;
  while (followed.has(asked) && held.has(asked) && Date.now() < until) {
    const { body, turn } = held.get(asked)!;
    if (turn >= known.turn) return body;
    await new Promise<void>((resolve) => {
      const late = setTimeout(resolve, until - Date.now());
      waiting.push(() => (clearTimeout(late), resolve()));
    });
  }
  return undefined;
}

/** The error that an answer without data stands for. */
async function refusal(response: Response): Promise<ApiError> {
  if (response.status === 400) return new ApiError(`The indexer refused the question: ${await response.text()}`);
  if (response.status !== 429) return new ApiError(`The indexer answered ${response.status}.`, response.status < 500 ? undefined : LATER);
  const { seconds = LATER } = (await response.json().catch(() => ({}))) as { seconds?: number };
  return new ApiError(`Too many questions came from your address: the indexer answers again in ${seconds} s.`, seconds);
}

/** The indexer's answer to a question by GET; concurrent equal requests share it. */
async function get(path: string, query: Record<string, string>, signal?: AbortSignal): Promise<unknown> {
  const asked = `${path}?${new URLSearchParams(query)}`;
  const begun = performance.now();
  const told = await sent(asked);
  if (signal) {
    const asking = askingOf(signal);
    asking.asked.add(asked);
    asking.requests += Number(told === undefined);
    asking.waited = Math.max(asking.waited, performance.now() - begun);
  }
  if (told !== undefined) return told;
  const { events, turn } = known;
  const response = await fetch(`${config.indexer}/api/${asked}${events ? `&v=${events}` : ""}`, { signal }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new ApiError("The indexer cannot be reached.", LATER);
  });
  if (!response.ok) throw await refusal(response);
  const body: unknown = await response.json();
  // A proxy that compresses weakens it.
  const etag = response.headers.get("etag")?.replace(/^W\//, "");
  if (etag) hold(asked, { etag, body, turn });
  return body;
}

/** Longer questions do not fit an address. */
const ADDRESS = 4_000;

async function post(query: string, signal?: AbortSignal, shared = false): Promise<Record<string, unknown>> {
  type Told = { data?: Record<string, unknown>; errors?: { message: string }[] };
  let told: Told;
  if (shared && query.length < ADDRESS) {
    told = (await get("data", { query }, signal)) as Told;
  } else {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${config.indexer}/graphql`, { method: "POST", headers, body: JSON.stringify({ query }), signal }).catch((error: unknown) => {
      if (signal?.aborted) throw error;
      throw new ApiError("The indexer cannot be reached.", LATER);
    });
    if (response.status === 429) throw await refusal(response);
    told = (await response.json().catch(() => ({}))) as Told;
    if (!response.ok && !told.errors) throw await refusal(response);
  }
  if (told.errors) throw new ApiError(`The indexer refused the question: ${told.errors[0]?.message}`);
  if (!told.data) throw new ApiError("The indexer gave no data.");
  if (told.data._meta) {
    const { status } = told.data._meta as { status: unknown };
    const [chain] = Object.values((typeof status === "string" ? JSON.parse(status) : status) as Record<string, { block: { number: number; timestamp: number } | null }>);
    note(signal, chain?.block?.number, chain?.block?.timestamp);
  }
  return told.data;
}

/** Lists that were longer than the requested part. */
const cut = new WeakSet<readonly unknown[]>();
/** Whether there are more rows than these. */
export const isCut = (rows: readonly unknown[]): boolean => cut.has(rows);

/** Asks for several lists at once: they are of one moment. */
export async function ask<Q extends Record<string, AnyWanted>>(wanted: Q, signal?: AbortSignal): Promise<{ [K in keyof Q]: Rows<Q[K]> }> {
  const data = await post(`{ _meta { status } ${Object.entries(wanted).map(([name, of]) => question(name, of)).join(" ")} }`, signal, true);
  const lists = Object.entries(wanted).map(([name, of]) => {
    const { items, pageInfo } = data[name] as Page;
    const rows = decoded(of.table, items);
    if (pageInfo.hasNextPage) cut.add(rows);
    return [name, rows];
  });
  return Object.fromEntries(lists) as never;
}

/** A list's first rows, which nobody keeps for the next question. */
export async function askRows<T extends Table, F extends Field<T>>(wanted: Wanted<T, F>): Promise<Rows<Wanted<T, F>>> {
  const { items } = (await post(`{ ${question("rows", wanted)} }`)).rows as Page;
  return decoded(wanted.table, items) as never;
}

/** How a list is asked for, page by page. */
export interface ListQuery {
  /** Filters and `sort`, by their names in the indexer's `api/lists.ts`. */
  query: Record<string, string>;
  limit: number;
  offset: number;
}

/** A page of a list. */
export interface Listed<R> {
  items: R[];
  /** Rows in all; there are more where `more` says so. */
  total: number;
  more: boolean;
}

/** Asks for a page of one of the indexer's lists. */
export async function askList<T extends Table>(table: T, { query, limit, offset }: ListQuery, signal?: AbortSignal): Promise<Listed<Partial<Row<T>>>> {
  const told = await get(`list/${table}`, { ...query, limit: String(limit), offset: String(offset) }, signal);
  const { block, at, items, total, more } = told as { block: number; at: number; items: Record<string, unknown>[]; total: number; more: boolean };
  note(signal, block, at);
  return { items: decoded(table, items) as never, total, more };
}

/** The network at a glance, as the indexer sums it up. */
export interface Glance {
  groups: Row<"gpuGroups">[];
  own: { gpuGroup: number; own: number; idle: number; busy: number; apart: number; paused: number }[];
  queues: { queue: number; tasks: number; oldest: bigint; fees: bigint; seconds: bigint }[];
  hours: Row<"hours">[];
  minutes: Row<"minutes">[];
  prices: { tasks: number; price: bigint | null };
  calls: { call: string; sent: number; gas: bigint; cost: bigint }[];
  running: Pick<Row<"tasks">, "id" | "kind" | "units" | "node" | "status" | "deadline" | "startedAt" | "fee" | "creator">[];
}

const glance = {
  own: { gpuGroup: int, own: int, idle: int, busy: int, apart: int, paused: int },
  queues: { queue: int, tasks: int, oldest: big, fees: big, seconds: big },
  prices: { tasks: int, price: maybe(big) },
  calls: { call: text, sent: int, gas: big, cost: big },
};
const rowsBy = (columns: Record<string, Decode<unknown>>, items: Record<string, unknown>[]) =>
  items.map((item) => Object.fromEntries(Object.entries(columns).map(([name, decode]) => [name, decode(item[name])])));

export async function askGlance(signal?: AbortSignal): Promise<Glance> {
  const told = (await get("network", {}, signal)) as Record<string, Record<string, unknown>[]> & { block: number; at: number; prices: Record<string, unknown> };
  note(signal, told.block, told.at);
  return {
    groups: decoded("gpuGroups", pick("gpuGroups", told.groups!)),
    own: rowsBy(glance.own, told.own!),
    queues: rowsBy(glance.queues, told.queues!),
    hours: decoded("hours", pick("hours", told.hours!)),
    minutes: decoded("minutes", pick("minutes", told.minutes!)),
    prices: rowsBy(glance.prices, [told.prices])[0],
    calls: rowsBy(glance.calls, told.calls!),
    running: decoded("tasks", told.running!),
  } as never;
}
/** Of rows with more columns those that the page knows. */
const pick = (table: Table, rows: Record<string, unknown>[]) => rows.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => name in tables[table])));

/** Nodes that a newcomer would compete with: all, or of many a sample. */
export interface Rivals {
  /** How many there are, and the largest stake of all, in wei. */
  total: number;
  largest: bigint;
  items: Pick<Row<"nodes">, "number" | "gpuGroup" | "stake" | "longTerm" | "reliability" | "reliabilityAt" | "models" | "inUse">[];
}

export async function askRivals(signal?: AbortSignal): Promise<Rivals> {
  const { block, at, total, largest, items } = (await get("rivals", {}, signal)) as { block: number; at: number; total: number; largest: string; items: Record<string, unknown>[] };
  note(signal, block, at);
  return { total, largest: BigInt(largest), items: decoded("nodes", items) as never };
}

/** The results of draws, of all nodes together. */
export interface Draws {
  draws: number;
  /** Nodes that were candidates; those outside their own interval; the average number there by chance; those outside of the interval that none of all leaves. */
  nodes: number;
  beyond: number;
  allowed: number;
  outside: number;
  /** The most that any won, or could have by chance. */
  top: number;
  /** The reasons why starts are not among the draws, with counts. */
  leftOut: { queued: number; several: number; rated: number; searched: number; missed: number; passed: number };
  /** Events that the indexer has not counted yet. */
  behind: number;
}

export async function askDraws(signal?: AbortSignal): Promise<Draws> {
  const told = (await get("fairness", {}, signal)) as Draws & { block: number | null; at: number | null };
  note(signal, told.block, told.at);
  return told;
}

/** A program behind the contract. */
export interface Program {
  address: string;
  /** Functions that it answers, and since when. */
  selectors: number;
  since: bigint;
  /** Seconds for which it still ran at `at`; null for code of the EVM, which does not expire, or where the chain does not say. */
  left: number | null;
}

export async function askPrograms(signal?: AbortSignal): Promise<{ at: number; programs: Program[] }> {
  const { at, programs } = (await get("programs", {}, signal)) as { at: number; programs: Record<string, unknown>[] };
  return { at, programs: rowsBy({ address: text, selectors: int, since: big, left: maybe(int) }, programs) as never };
}

/** How far the indexer is, as `api/live` and `api/state` tell it. */
export interface State {
  head: Head | undefined;
  /** Whether all that was there when the indexer began is read. */
  ready: boolean;
  /** The block it began with, the chain's newest, and seconds until it has caught up; undefined where nobody can tell. */
  from: bigint;
  chain: bigint | undefined;
  left: number | undefined;
  chainId: number;
  network: Row<"networks"> | undefined;
}

export function stateOf(told: unknown): State {
  const { block, at, ready, from, chain, left, chainId, network } = told as {
    block: number | null; at: number | null; ready: boolean; from: number; chain: number | null; left: number | null; chainId: number; network: Record<string, unknown> | null;
  };
  return {
    head: block === null ? undefined : { block: BigInt(block), timestamp: BigInt(at ?? 0) },
    ready,
    from: BigInt(from),
    chain: chain === null ? undefined : BigInt(chain),
    left: left ?? undefined,
    chainId,
    network: network ? (decoded("networks", pick("networks", [network]))[0] as unknown as Row<"networks">) : undefined,
  };
}

/** The state, asked once: where a proxy does not let it be sent as it comes. */
export const askState = async (): Promise<State> => stateOf(await get("state", {}));
