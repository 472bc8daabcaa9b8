/** The indexer's progress: one look at the database for all requests, and an estimate of the time it is behind. */
import { db } from "ponder:api";
import schema from "ponder:schema";
import { sql } from "drizzle-orm";
import { chainId, newestBlock, startBlock } from "../settings";

/** Milliseconds between looks while somebody listens or the history is not read. */
const PERIOD = 250;
/** Without requests for this long, there are no looks. */
const IDLE = 10_000;
/** The milliseconds over which the pace is measured. */
const PACE = 60_000;
/** How often the chain is asked for its newest block, in milliseconds. */
const HEAD = 2_000;

/** As it is sent: whole numbers that may be large are text. */
export interface State {
  /** Grows with every change. */
  version: number;
  /** The newest block that the tables hold, and its time; null before the first. */
  block: number | null;
  at: number | null;
  /** Whether all that was there when it began is read. */
  ready: boolean;
  /** The block it began with, the chain's newest (null where it does not answer), and seconds until it has caught up (null where nobody can tell yet). */
  from: number;
  chain: number | null;
  left: number | null;
  chainId: number;
  /** The network's row; null before its first event. */
  network: Record<string, unknown> | null;
}

let state: State = { version: 0, block: null, at: null, ready: false, from: startBlock, chain: null, left: null, chainId, network: null };
const listeners = new Set<(state: State) => void>();
const paces: { moment: number; block: number }[] = [];
let [looking, timer, asked, headAt] = [undefined as Promise<State> | undefined, undefined as ReturnType<typeof setTimeout> | undefined, 0, 0];

/** JSON has no numbers as large as these. */
const plain = (row: Record<string, unknown>) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, typeof value === "bigint" ? String(value) : value]));

const camel = (name: string) => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());

async function read(): Promise<Pick<State, "block" | "at" | "ready" | "network">> {
  // Of one moment: the tables and how far they are.
  const { rows } = await db.execute(sql`
    select (select latest_checkpoint from _ponder_checkpoint limit 1) as checkpoint,
      (select (value ->> 'is_ready')::int from _ponder_meta where key = 'app') as ready, n.*
    from (select 1) as one left join ${schema.network} as n on true`);
  const { checkpoint, ready, ...network } = rows[0] as { checkpoint: string | null; ready: number } & Record<string, unknown>;
  // Ponder's: ten digits of the time, sixteen of the chain, sixteen of the block.
  const [at, block] = checkpoint ? [Number(checkpoint.slice(0, 10)), Number(checkpoint.slice(26, 42))] : [0, 0];
  const known = Object.fromEntries(Object.entries(plain(network)).map(([name, value]) => [camel(name), value]));
  return { ready: ready === 1, ...(block ? { block, at } : { block: null, at: null }), network: known.id ? known : null };
}

/** Seconds until the newest block, at the pace of the last minute. */
function left({ block, chain, ready }: Pick<State, "block" | "chain" | "ready">): number | null {
  if (block === null || chain === null) return null;
  const now = Date.now();
  paces.push({ moment: now, block });
  while (paces.length > 2 && paces[0]!.moment < now - PACE) paces.shift();
  if (ready && chain - block < 2) return 0;
  const [first] = paces;
  const [blocks, seconds] = [block - first!.block, (now - first!.moment) / 1_000];
  return blocks > 0 && seconds >= 1 ? Math.ceil(((chain - block) * seconds) / blocks) : null;
}

/** The chain's newest block, asked now and then; a chain that does not answer keeps nobody waiting. */
let chain: number | null = null;
function askHead(): void {
  if (Date.now() - headAt < HEAD) return;
  headAt = Date.now();
  void newestBlock().then(
    (block) => (chain = block),
    () => (chain = null),
  );
}

async function look(): Promise<State> {
  askHead();
  const found = await read();
  const next = { ...found, chain: chain === null ? null : Math.max(chain, found.block ?? 0) };
  const old = state;
  const remaining = left(next);
  const isNew = next.block !== old.block || next.ready !== old.ready || next.network?.events !== old.network?.events || next.network?.blockHash !== old.network?.blockHash;
  const isMoved = next.chain !== old.chain || (remaining === null) !== (old.left === null) || (!next.ready && remaining !== old.left);
  state = { ...old, ...next, left: remaining, version: old.version + Number(isNew) };
  if (isNew || isMoved) for (const listener of listeners) listener(state);
  return state;
}

/** Looks now; one look answers all concurrent requests. */
export const lookNow = (): Promise<State> => (looking ??= look().finally(() => (looking = undefined)));

function wake(): void {
  asked = Date.now();
  if (timer) return;
  const step = async () => {
    await lookNow().catch(() => undefined);
    timer = listeners.size || !state.ready || Date.now() - asked < IDLE ? setTimeout(step, PERIOD) : undefined;
    timer?.unref();
  };
  timer = setTimeout(step, 0);
  timer.unref();
}

/** The state now: at most a quarter of a second old, and no older than the events that the asker knows of. */
export async function stateNow(events = 0n): Promise<State> {
  const isFresh = timer !== undefined && state.version > 0;
  wake();
  if (isFresh && BigInt((state.network?.events as string | undefined) ?? 0) >= events) return state;
  return lookNow();
}

/** Tells of every change from now on. */
export function listen(listener: (state: State) => void): () => void {
  listeners.add(listener);
  wake();
  return () => void listeners.delete(listener);
}

// The pace is known when the first one asks.
wake();
