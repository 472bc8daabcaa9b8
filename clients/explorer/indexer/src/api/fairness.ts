/** The results of draws, node by node: updated with each event, for all requests; one server counts a long history for all. */
import { db } from "ponder:api";
import schema from "ponder:schema";
import { and, asc, count, eq, gt, gte, notInArray } from "drizzle-orm";
import { rules } from "../formulas";
import { IDLE, type Event } from "../fairness/replay";
import { type Fair, type Fairness, Shares } from "../fairness/shares";
import { type Last, load, save, turn } from "./counted";
import { json } from "./json";
import { BadQuestion } from "./refusal";
import { lookNow } from "./state";

const { event } = schema;

/** Events read at once, and the milliseconds for which an answer waits for unread ones. */
const [CHUNK, PATIENCE] = [2_000, 1_500];
/** Milliseconds after which others have their turn, and how many times as long they have it. */
const [TURN, REST] = [8, 3];
/** Rows of an answer at most. */
const MOST = 1_000;

const sleep = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));
const pause = () => new Promise<void>((resolve) => setImmediate(resolve));

let shares = new Shares(rules);
/** The newest event that was read, which a reorganisation may take back. */
let last: Last | undefined;
/** Events read since it was kept in the database, and in all. */
let [since, all] = [0, 0];
let reading: Promise<void> | undefined;

/** More events than these are a long history. The counts are stored after this many, or half of all if that is more. */
const LONG = 20_000;
/** Milliseconds between two looks at another server's progress. */
const LOOK = 2_000;

/** Whether an event is there as it was read. */
async function isThere({ id, blockHash }: Last): Promise<boolean> {
  const [there] = await db.select({ blockHash: event.blockHash }).from(event).where(and(eq(event.id, id), notInArray(event.name, IDLE)));
  return there?.blockHash === blockHash;
}

/** Goes on from the stored counts, if they are further. */
async function resume(): Promise<void> {
  const kept = await load(last?.id ?? -1n, isThere);
  if (kept) [shares, last, since] = [kept.shares, kept.last, 0];
}

/** Reads new events. A long history leaves three quarters of the time to requests, and one server reads it for all. */
async function read(): Promise<void> {
  if (!last) await resume();
  let mine: Awaited<ReturnType<typeof turn>>;
  if ((await behind()) > LONG) {
    while (!(mine = await turn())) {
      await sleep(LOOK);
      await resume();
      if ((await behind()) <= LONG) break;
    }
    if (mine) await resume();
  }
  let isRead: boolean;
  try {
    isRead = await readOn();
    if (mine && since > LONG) await keep();
  } finally {
    await mine?.done();
  }
  if (!isRead) await read();
}

async function keep(): Promise<void> {
  since = 0;
  await save(last!, shares);
}

/** Reads to the end; false, with nothing read, if a reorganisation took back the event to go on from. */
async function readOn(): Promise<boolean> {
  for (;;) {
    const rows = await db
      .select({ id: event.id, name: event.name, args: event.args, block: event.block, blockHash: event.blockHash, at: event.at })
      .from(event)
      // Including the last one: it could be replaced between two questions.
      .where(and(gte(event.id, last?.id ?? -1n), notInArray(event.name, IDLE)))
      .orderBy(asc(event.id))
      .limit(CHUNK + 1);
    const before = last && rows.shift();
    if (before?.id !== last?.id || before?.blockHash !== last?.blockHash) {
      [shares, last, since, all] = [new Shares(rules), undefined, 0, 0];
      return false;
    }
    let begun = performance.now();
    for (const row of rows) {
      shares.read(row as Event);
      last = row;
      const took = performance.now() - begun;
      if (took < TURN) continue;
      await sleep(REST * took);
      begun = performance.now();
    }
    [since, all] = [since + rows.length, all + rows.length];
    if (since > Math.max(LONG, all / 2)) await keep();
    if (rows.length < CHUNK) return true;
  }
}
const advance = (): Promise<void> => (reading ??= read().finally(() => (reading = undefined)));

/** Events that are not read yet. */
async function behind(): Promise<number> {
  const [found] = await db.select({ events: count() }).from(event).where(and(gt(event.id, last?.id ?? -1n), notInArray(event.name, IDLE)));
  return found!.events;
}

interface Told extends Fairness {
  block: number | null;
  at: number | null;
  behind: number;
  leftOut: Shares["leftOut"];
}

/** When an answer was last given from a part of the events. */
let partial = 0;
/** One result for all requests about the same state. */
let told: { last: bigint | undefined; shares: Shares; made: Promise<Told> } | undefined;
async function result(): Promise<Told> {
  const { block, at } = await lookNow();
  const isRead = await Promise.race([advance().then(() => true), sleep(PATIENCE).then(() => false)]);
  const missing = isRead ? 0 : await behind();
  if (!isRead) partial = Date.now();
  if (told && told.last === last?.id && told.shares === shares) return { ...(await told.made), ...(isRead ? { block, at } : {}), behind: missing };
  const leftOut = { ...shares.leftOut };
  const made = shares.result(pause).then((found) => ({ ...found, block, at, behind: missing, leftOut }));
  told = { last: last?.id, shares, made };
  made.catch(() => (told = undefined));
  return made;
}

/** Whether an answer of that moment used every event: an answer from a part is not valid for long. */
export const isOfAll = (moment: number): boolean => moment > partial;

/** All but the nodes. */
export async function fairness(): Promise<string> {
  const { nodes, ...rest } = await result();
  const top = nodes.reduce((most, { won, most: end }) => Math.max(most, won, end), 1);
  return json({ ...rest, nodes: nodes.length, outside: nodes.filter(({ outside }) => outside).length, top });
}

const SORTS = ["node", "won", "expected", "least", "most", "share", "weight", "draws", "p"] as const satisfies readonly (keyof Fair)[];

/** The function that computes a page of the nodes; throws {@link BadQuestion} for a bad query. */
export function fairNodes({ sort = "p", limit = "100", offset = "0", ...rest }: Record<string, string>): () => Promise<string> {
  const key = SORTS.find((one) => one === sort.replace(/^-/, ""));
  if (!key) throw new BadQuestion(`it cannot be sorted by ${sort}; only by ${SORTS.join(", ")}`);
  if (Object.keys(rest).length) throw new BadQuestion("there are no filters");
  if (![limit, offset].every((one) => /^\d{1,9}$/.test(one)) || Number(limit) < 1 || Number(limit) > MOST) throw new BadQuestion(`at most ${MOST} rows`);
  const sign = sort.startsWith("-") ? -1 : 1;
  return async () => {
    const { nodes, block, at } = await result();
    const items = nodes.toSorted((a, b) => sign * (a[key] - b[key]) || a.node - b.node).slice(Number(offset), Number(offset) + Number(limit));
    return json({ block, at, items, total: nodes.length, more: false });
  };
}

// So the first request does not wait for the whole history.
setTimeout(() => void advance().catch(() => undefined), 2_000).unref();
