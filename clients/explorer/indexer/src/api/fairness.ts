/** What draws came to, node by node: kept up here as events come, for all who ask. */
import { db } from "ponder:api";
import schema from "ponder:schema";
import { and, asc, count, desc, gt, lte, notInArray } from "drizzle-orm";
import { rules } from "../formulas";
import { IDLE, type Event } from "../fairness/replay";
import { type Fair, type Fairness, Shares } from "../fairness/shares";
import { json } from "./json";
import { BadQuestion } from "./refusal";
import { lookNow } from "./state";

const { event } = schema;

/** Events that are read at once, and milliseconds for which an answer waits for what is not read yet. */
const [CHUNK, PATIENCE] = [2_000, 1_500];
/** Milliseconds after which others have their turn, and how many times as long they have it. */
const [TURN, REST] = [8, 3];
/** Rows of an answer at most. */
const MOST = 1_000;

const sleep = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));
const pause = () => new Promise<void>((resolve) => setImmediate(resolve));

let shares = new Shares(rules);
/** The newest event that was read, which a reorganisation may take back. */
let last: { id: bigint; tx: string } | undefined;
let reading: Promise<void> | undefined;

/** Reads what is new. A long history leaves three quarters of the time to whoever asks meanwhile. */
async function read(): Promise<void> {
  if (last) {
    const [there] = await db.select({ id: event.id, tx: event.tx }).from(event).where(lte(event.id, last.id)).orderBy(desc(event.id)).limit(1);
    if (there?.id !== last.id || there.tx !== last.tx) [shares, last] = [new Shares(rules), undefined];
  }
  for (;;) {
    const rows = await db
      .select({ id: event.id, name: event.name, args: event.args, block: event.block, at: event.at, tx: event.tx })
      .from(event)
      .where(and(gt(event.id, last?.id ?? -1n), notInArray(event.name, IDLE)))
      .orderBy(asc(event.id))
      .limit(CHUNK);
    let begun = performance.now();
    for (const row of rows) {
      shares.read(row as Event);
      last = row;
      const took = performance.now() - begun;
      if (took < TURN) continue;
      await sleep(REST * took);
      begun = performance.now();
    }
    if (rows.length < CHUNK) return;
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

/** One result for all who ask of the same state. */
let told: { last: bigint | undefined; shares: Shares; made: Promise<Told> } | undefined;
async function result(): Promise<Told> {
  const { block, at } = await lookNow();
  const isRead = await Promise.race([advance().then(() => true), sleep(PATIENCE).then(() => false)]);
  const missing = isRead ? 0 : await behind();
  if (told && told.last === last?.id && told.shares === shares) return { ...(await told.made), ...(isRead ? { block, at } : {}), behind: missing };
  const leftOut = { ...shares.leftOut };
  const made = shares.result(pause).then((found) => ({ ...found, block, at, behind: missing, leftOut }));
  told = { last: last?.id, shares, made };
  made.catch(() => (told = undefined));
  return made;
}

/** Whether every event was read: an answer before that is of no state for long. */
export const isWhole = (): boolean => reading === undefined;

/** All but the nodes. */
export async function fairness(): Promise<string> {
  const { nodes, ...rest } = await result();
  const top = nodes.reduce((most, { won, most: end }) => Math.max(most, won, end), 1);
  return json({ ...rest, nodes: nodes.length, outside: nodes.filter(({ outside }) => outside).length, top });
}

const SORTS = ["node", "won", "expected", "least", "most", "share", "weight", "draws", "p"] as const satisfies readonly (keyof Fair)[];

/** What computes a page of the nodes; throws {@link BadQuestion} where it cannot be understood. */
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

// Whoever asks first does not wait for the whole history.
setTimeout(() => void advance().catch(() => undefined), 2_000).unref();
