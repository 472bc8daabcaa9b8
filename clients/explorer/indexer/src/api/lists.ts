/** Long lists page by page: filtered, sorted and counted in the database. */
import { db } from "ponder:api";
import schema from "ponder:schema";
import { type SQL, and, asc, desc, eq, gte, ilike, lt, sql } from "drizzle-orm";
import { boundedList } from "./data";
import { json } from "./json";
import { BadQuestion } from "./refusal";
import { lookNow } from "./state";

const { node, task, account, model, parameter } = schema;

/** Rows of a page at most, and how far down a list goes; beyond that there are filters, and SQL. */
const [MOST, DEEPEST] = [1_000, 100_000];
/** Rows that are counted; beyond there are "more than". */
const COUNTED = 10_000;

type Filter = (value: string) => SQL | undefined;
interface List {
  table: typeof node | typeof task | typeof account | typeof model;
  columns: Record<string, unknown>;
  /** The possible sort keys; the first also breaks ties. */
  sorts: Record<string, unknown>;
  filters: Record<string, Filter>;
}

const number = (value: string): bigint => {
  if (!/^\d{1,18}$/.test(value)) throw new BadQuestion(`${value} is not a whole number`);
  return BigInt(value);
};
const address = (value: string): string => {
  if (!/^0x[0-9a-fA-F]{40}$/.test(value)) throw new BadQuestion(`${value} is not an address`);
  return value.toLowerCase();
};
const is =
  (column: unknown): Filter =>
  (value) =>
    eq(column as never, number(value) as never);

// H now: it recovers with time, at the pace of the parameter tau.
const tau = sql`(select ${parameter.value} from ${parameter} where ${parameter.name} = 'tau')`;
const h = sql<number>`(1 - (1 - ${node.reliability} / 1e18) * exp(-greatest(0, extract(epoch from now()) - ${node.reliabilityAt}) / greatest(1, ${tau})))::float8`;
const ended = sql`(${node.succeeded} + ${node.wrong} + ${node.failed} + ${node.timedOut})`;
const success = sql<number | null>`(${node.succeeded}::float8 / nullif(${ended}, 0))`;

/** Task states by their names in addresses: statuses of those that have not ended, outcomes of those that have. */
const STATES: Record<string, SQL> = {
  ended: sql`${task.status} = 0`,
  pending: sql`${task.status} = 1`,
  queued: sql`${task.status} = 2`,
  running: sql`${task.status} in (3, 4, 5, 6)`,
  succeeded: sql`${task.outcome} = 2`,
  error: sql`${task.outcome} = 3`,
  late: sql`${task.outcome} = 4`,
  cancelled: sql`${task.outcome} = 5`,
  evicted: sql`${task.outcome} = 6`,
  expired: sql`${task.outcome} = 7`,
  slashed: sql`${task.outcome} = 8`,
  undecided: sql`${task.outcome} = 9`,
};

const LISTS: Record<string, List> = {
  nodes: {
    table: node,
    columns: {
      ...{ number: node.number, operator: node.operator, status: node.status, parked: node.parked, gpuGroup: node.gpuGroup, stake: node.stake, kickedOut: node.kickedOut },
      ...{ reliability: node.reliability, reliabilityAt: node.reliabilityAt, longTerm: node.longTerm, pool: node.pool, judged: node.judged, judgedRight: node.judgedRight },
      ...{ started: node.started, succeeded: node.succeeded, wrong: node.wrong, failed: node.failed, timedOut: node.timedOut, exclusions: node.exclusions, earned: node.earned, slashed: node.slashed },
    },
    sorts: {
      ...{ number: node.number, stake: node.stake, earned: node.earned, slashed: node.slashed, started: node.started, longTerm: node.longTerm, judged: node.judged },
      ...{ h, success, status: node.status, gpu: node.gpuGroup, operator: node.operator },
    },
    filters: {
      state: (value) => {
        const states: Record<string, SQL> = {
          ...{ joined: sql`${node.status} <> 0`, idle: sql`${node.status} = 1 and ${node.parked} = 0`, busy: sql`${node.status} in (2, 3, 4, 6)` },
          ...{ apart: sql`${node.status} = 1 and ${node.parked} > 0`, paused: sql`${node.status} = 5`, left: sql`${node.status} = 0`, all: sql`true` },
        };
        if (!Object.hasOwn(states, value)) throw new BadQuestion(`there is no state ${value} of nodes`);
        return states[value]!;
      },
      gpu: is(node.gpuGroup),
      model: (value) => sql`${node.models} @> array[${number(value)}]::numeric(78)[]`,
      slashed: () => sql`${node.slashed} > 0`,
    },
  },
  tasks: {
    table: task,
    columns: {
      ...{ id: task.id, status: task.status, outcome: task.outcome, kind: task.kind, redundancy: task.redundancy, node: task.node, gpu: task.gpu, vram: task.vram },
      ...{ createdAt: task.createdAt, startedAt: task.startedAt, fee: task.fee, paid: task.paid, creator: task.creator },
    },
    sorts: { id: task.id, fee: task.fee },
    filters: {
      state: (value) => {
        if (!Object.hasOwn(STATES, value)) throw new BadQuestion(`there is no state ${value} of tasks`);
        return STATES[value]!;
      },
      policy: is(task.redundancy),
      kind: is(task.kind),
      gpu: is(task.gpu),
      node: is(task.node),
      creator: (value) => eq(task.creator, address(value) as never),
      model: (value) => sql`${task.models} @> array[${number(value)}]::numeric(78)[]`,
      from: (value) => gte(task.createdAt, number(value)),
      to: (value) => lt(task.createdAt, number(value)),
    },
  },
  accounts: {
    table: account,
    columns: {
      ...{ address: account.address, credit: account.credit, unbonding: account.unbonding, node: account.node, kickedOut: account.kickedOut, tasks: account.tasks },
      ...{ fees: account.fees, refunds: account.refunds, earned: account.earned, withdrawn: account.withdrawn },
    },
    sorts: { address: account.address, fees: account.fees, earned: account.earned, tasks: account.tasks, credit: account.credit },
    filters: {},
  },
  models: {
    table: model,
    columns: { id: model.id, name: model.name, held: model.held, entries: model.entries, tasks: model.tasks, downloads: model.downloads },
    sorts: { id: model.id, tasks: model.tasks, held: model.held, downloads: model.downloads },
    filters: { name: (value) => ilike(model.name, `%${value.replace(/[%_\\]/g, "\\$&")}%`) },
  },
};

const OWN = ["sort", "limit", "offset"];

/** The function that computes a page of a list; throws {@link BadQuestion} for a bad query. */
export function page(name: string, query: Record<string, string>): () => Promise<string> {
  const list = Object.hasOwn(LISTS, name) ? LISTS[name] : undefined;
  if (!list) throw new BadQuestion("there is no such list");
  const unknown = Object.keys(query).find((name) => !OWN.includes(name) && !Object.hasOwn(list.filters, name));
  if (unknown) throw new BadQuestion(`there is no filter ${unknown}; there are ${Object.keys(list.filters).join(", ")}`);
  const conditions = Object.entries(list.filters).flatMap(([name, filter]) => (query[name] ? [filter(query[name])] : []));
  const [limit, offset] = [Number(number(query.limit ?? "50")), Number(number(query.offset ?? "0"))];
  if (limit < 1 || limit > MOST || offset > DEEPEST) throw new BadQuestion(`at most ${MOST} rows, from the first ${DEEPEST}`);
  const [first] = Object.keys(list.sorts);
  const said = query.sort ?? `-${first}`;
  const [key, direction] = said.startsWith("-") ? [said.slice(1), desc] : [said, asc];
  const by = Object.hasOwn(list.sorts, key!) ? list.sorts[key!] : undefined;
  if (!by) throw new BadQuestion(`it cannot be sorted by ${key}; only by ${Object.keys(list.sorts).join(", ")}`);
  const where = and(...conditions);
  // Rows without a value come last either way.
  const order = [sql`${direction(by as never)} nulls last`, ...(key === first ? [] : [asc(list.sorts[first!] as never)])];
  // Of a column that never is null an index gives both ends as they are.
  const isPlain = !["success"].includes(key!);
  return async () => {
    const { block, at } = await lookNow();
    const rows = db
      .select(list.columns as never)
      .from(list.table as never)
      .where(where)
      .orderBy(...(isPlain ? [direction(by as never), ...order.slice(1)] : order))
      .limit(limit)
      .offset(offset);
    const some = db.select({ one: sql`1` }).from(list.table as never).where(where).limit(COUNTED + 1).as("some");
    const asked = () => Promise.all([rows, db.select({ total: sql<number>`count(*)::int` }).from(some)]);
    const [items, [{ total }]] = (await boundedList(asked)) as unknown as [unknown[], [{ total: number }]];
    return json({ block, at, items, total: Math.min(total, COUNTED), more: total > COUNTED });
  };
}
