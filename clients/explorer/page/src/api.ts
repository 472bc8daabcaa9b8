/** All that the page asks of the indexer: rows of its tables by GraphQL, decoded into numbers and bigints. Nothing else does. */
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

/** What the page reads of the tables (clients/explorer/indexer/ponder.schema.ts says what each column means), by the names of their lists. */
const tables = {
  networks: {
    treasuryBalance: big, reserve: big, burnt: big, stakes: big, escrow: big, credit: big, unbonding: big, granule: big, paused: bool,
    tasks: big, pending: int, queued: int, running: int, ended: big, nodesIssued: int, nodesJoined: int, groups: int, events: big, transactions: big, block: big, at: big,
  },
  nodes: {
    number: int, operator: text, worker: maybe(text), works: bool, status: int, gpuGroup: int, vram: int, stake: big, joinedAt: big, leftAt: maybe(big), kickedOut: bool, reliability: big,
    reliabilityAt: big, pool: many(int), longTerm: big, judgedRight: int, judged: int, task: big, deadline: big, runs: bool, models: many(big), inUse: many(big), parked: int,
    parkedUntil: big, openCommitments: int, held: bool, started: int, succeeded: int, failed: int, timedOut: int, exclusions: int, earned: big, slashed: big, seenAt: big,
  },
  tasks: {
    id: big, creator: text, status: int, outcome: int, fee: big, kind: int, units: int, vram: int, gpu: int, redundancy: int, inputDigest: text, models: many(big), estimate: int,
    timeLimit: int, startFeeBps: int, sampleBps: int, createdAt: big, createdBlock: big, createdTx: text, drawBlock: big, redraws: int, queue: int, queuedAt: big, node: int,
    startedAt: maybe(big), deadline: big, boosts: bool, wasSampled: bool, validation: maybe(big), endedAt: maybe(big), endedBlock: maybe(big), code: int, paid: big, refund: big, startFee: big,
    toReserve: big, resultDigest: maybe(text),
  },
  events: { id: big, name: text, args: json, block: big, at: big, tx: text, task: maybe(big), node: maybe(int), account: maybe(text), model: maybe(big) },
  transactions: { hash: text, at: big, call: maybe(text), gasUsed: big, gasPrice: big },
  validations: { id: big, place: big, open: bool, task: big, size: int, scored: bool, formedAt: big, outcome: maybe(int), settledAt: maybe(big), answer: maybe(text), refund: big, startFee: big, paid: big },
  members: {
    validation: big, node: int, position: int, task: big, stage: int, moment: big, startedAt: maybe(big), deadline: maybe(big), committedAt: maybe(big), elapsed: int, commitment: maybe(text),
    revealedAt: maybe(big), kind: maybe(int), answer: maybe(text), salt: maybe(text), distances: maybe(many(int)), equal: maybe(bool), verdict: maybe(int), score: maybe(int), paid: big, slashed: big,
  },
  scores: { id: big, node: int, score: int, task: maybe(big), at: big },
  slashs: { id: big, node: int, operator: text, task: big, validation: maybe(big), stake: big, unbonding: big, credit: big, at: big },
  gpuGroups: { id: int, name: text, vram: int, listed: bool, joined: int, stakes: big },
  models: { id: big, name: maybe(text), held: int, entries: int, tasks: int, downloads: int },
  accounts: { address: text, credit: big, unbonding: big, release: big, node: int, kickedOut: bool, tasks: int, fees: big, refunds: big, earned: big, withdrawn: big },
  parameters: { number: int, name: text, value: big },
  hours: {
    start: big, created: int, started: int, queued: int, succeeded: int, failed: int, timedOut: int, cancelled: int, evicted: int, expired: int, slashedOut: int, undecided: int, waited: big, ran: big, fees: big,
    paid: big, refunded: big, transactions: int, gas: big,
  },
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

/** What is wanted of a table. */
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
}

const literal = (value: unknown): string =>
  typeof value === "bigint" ? `"${value}"` : Array.isArray(value) ? `[${value.map(literal).join()}]` : JSON.stringify(value);
const condition = (where: Record<string, unknown>): string =>
  `{${Object.entries(where)
    .map(([name, value]) => `${name}: ${name === "OR" || name === "AND" ? `[${(value as Record<string, unknown>[]).map(condition).join()}]` : literal(value)}`)
    .join()}}`;

function question(name: string, { table, fields, where, order, limit }: AnyWanted, after?: string): string {
  const parts = [
    ...(where ? [`where: ${condition(where)}`] : []),
    ...(order ? [`orderBy: "${order.replace("-", "")}", orderDirection: "${order.startsWith("-") ? "desc" : "asc"}"`] : []),
    `limit: ${limit ?? 1_000}`,
    ...(after ? [`after: "${after}"`] : []),
  ];
  return `${name}: ${table}(${parts.join()}) { items { ${fields.join(" ")} } pageInfo { hasNextPage endCursor } }`;
}

const decoded = (table: Table, items: Record<string, unknown>[]) => {
  const columns = tables[table] as Record<string, Decode<unknown>>;
  return items.map((item) => Object.fromEntries(Object.entries(item).map(([name, value]) => [name, columns[name]!(value)])));
};

interface Page {
  items: Record<string, unknown>[];
  pageInfo: { hasNextPage: boolean; endCursor: string };
}

async function post(query: string, signal?: AbortSignal): Promise<Record<string, unknown>> {
  const body = JSON.stringify({ query });
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${config.indexer}/graphql`, { method: "POST", headers, body, signal }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new ApiError("The indexer cannot be reached.");
  });
  const told = (await response.json().catch(() => ({}))) as { data?: Record<string, unknown>; errors?: { message: string }[] };
  if (told.errors) throw new ApiError(`The indexer refused the question: ${told.errors[0]?.message}`);
  if (!response.ok || !told.data) throw new ApiError(`The indexer answered ${response.status}.`);
  return told.data;
}

/** Lists that were longer than what was asked for. */
const cut = new WeakSet<readonly unknown[]>();
/** Whether there are more rows than these. */
export const isCut = (rows: readonly unknown[]): boolean => cut.has(rows);

/** Asks for several lists at once: they are of one moment. */
export async function ask<Q extends Record<string, AnyWanted>>(wanted: Q, signal?: AbortSignal): Promise<{ [K in keyof Q]: Rows<Q[K]> }> {
  const data = await post(`{ ${Object.entries(wanted).map(([name, of]) => question(name, of)).join(" ")} }`, signal);
  const lists = Object.entries(wanted).map(([name, of]) => {
    const { items, pageInfo } = data[name] as Page;
    const rows = decoded(of.table, items);
    if (pageInfo.hasNextPage) cut.add(rows);
    return [name, rows];
  });
  return Object.fromEntries(lists) as never;
}

/** A list page by page, in its order: what was read need not be kept. */
export async function* pages<T extends Table, F extends Field<T>>(wanted: Wanted<T, F>, signal?: AbortSignal): AsyncGenerator<Rows<Wanted<T, F>>> {
  for (let after: string | undefined; ; ) {
    const { items, pageInfo } = (await post(`{ ${question("page", wanted, after)} }`, signal)).page as Page;
    yield decoded(wanted.table, items) as never;
    if (!pageInfo.hasNextPage) return;
    after = pageInfo.endCursor;
  }
}

/** All rows of a list. */
export async function askAll<T extends Table, F extends Field<T>>(wanted: Wanted<T, F>, signal?: AbortSignal): Promise<Rows<Wanted<T, F>>> {
  const rows: unknown[] = [];
  for await (const page of pages(wanted, signal)) rows.push(...page);
  return rows as never;
}

/** How far the indexer has got. */
export interface Head {
  block: bigint;
  /** In seconds since 1970. */
  timestamp: bigint;
}

/** Asks how far the indexer has got, and for the network's row. */
export async function askHead(signal?: AbortSignal): Promise<{ head: Head; network: Row<"networks"> | undefined }> {
  const data = await post(`{ _meta { status } ${question("networks", list("networks", { limit: 1 }))} }`, signal);
  const status = (data._meta as { status: unknown }).status;
  const chains = Object.values((typeof status === "string" ? JSON.parse(status) : status) as Record<string, { block: { number: number; timestamp: number } | null }>);
  const { number = 0, timestamp = 0 } = chains[0]?.block ?? {};
  const [network] = decoded("networks", (data.networks as Page).items) as unknown as Row<"networks">[];
  return { head: { block: BigInt(number), timestamp: BigInt(timestamp) }, network };
}

/** The chain's own newest block, from the RPC endpoint; undefined where none is configured or it does not answer. */
export async function askChain(): Promise<bigint | undefined> {
  if (!config.rpc) return undefined;
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_blockNumber", params: [] });
  const headers = { "content-type": "application/json" };
  const told = await fetch(config.rpc, { method: "POST", headers, body }).then((response) => response.json() as Promise<{ result?: string }>, () => ({ result: undefined }));
  return told.result === undefined ? undefined : BigInt(told.result);
}
