/** Answers that many ask for: computed once for each state of the tables, compressed once, and told apart by an ETag. */
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Context } from "hono";
import { stateNow } from "./state";
import { askers, asking } from "./turns";

const compress = promisify(gzip);

/** A question: the key of its answer, and the function that computes it, as JSON. */
export interface Question {
  key: string;
  compute: () => Promise<string>;
  /** Whether an answer whose computing began at this moment holds until the tables change; else it is computed again when it has rested. */
  holds?: (moment: number) => boolean;
}

export interface Answer {
  /** Of which state of the tables it is, at least. */
  version: number;
  /** When it was computed, and how long that took, in milliseconds. */
  moment: number;
  took: number;
  body: Buffer;
  packed: Buffer;
  etag: string;
}

/** Answers that are kept, and their bytes in all. */
const [MOST, MOST_BYTES] = [2_000, 64 * 2 ** 20];
/**
 * The rest after a long computation, as a multiple of its time, so that others can use the database; and the milliseconds up to which a computation
 * runs for each state.
 */
const [REST, SHORT] = [4, 1_000];

const kept = new Map<string, Answer>();
/** Answers that are being computed, and the clients that wait for them. */
const pending = new Map<string, { version: number; made: Promise<Answer>; clients: Set<string | undefined> }>();
let bytes = 0;

function keep(key: string, answer: Answer): void {
  drop(key);
  kept.set(key, answer);
  bytes += answer.body.length + answer.packed.length;
  // The one that was put there first goes first.
  for (const oldest of kept.keys()) {
    if (kept.size <= MOST && bytes <= MOST_BYTES) break;
    drop(oldest);
  }
}

function drop(key: string): void {
  const old = kept.get(key);
  if (!old) return;
  kept.delete(key);
  bytes -= old.body.length + old.packed.length;
}

async function make({ key, compute }: Question, version: number): Promise<Answer> {
  const moment = Date.now();
  const body = Buffer.from(await compute());
  const took = Date.now() - moment;
  const etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
  const answer = { version, moment, took, body, packed: body.length > 1_000 ? await compress(body, { level: 6 }) : body, etag };
  keep(key, answer);
  return answer;
}

/** When an answer may be computed again, in milliseconds since 1970. */
export const restsUntil = ({ moment, took }: Answer): number => moment + (took <= SHORT ? took : REST * took);

/** The answer for this state of the tables, or an older one that took long and still rests. */
export async function answerOf(question: Question, version: number): Promise<Answer> {
  const { key, holds } = question;
  const answer = kept.get(key);
  if (answer && ((answer.version >= version && (holds?.(answer.moment) ?? true)) || Date.now() < restsUntil(answer))) return answer;
  const old = pending.get(key);
  if (old) {
    // It is their turn, too, which may come before that of whoever began.
    for (const client of askers()) old.clients.add(client);
    if (old.version >= version) return old.made;
    // It began before this state: afterwards it rests, or is computed again.
    await old.made.catch(() => undefined);
    return answerOf(question, version);
  }
  const clients = new Set(askers());
  const made = asking(clients, () => make(question, version)).finally(() => pending.delete(key));
  pending.set(key, { version, made, clients });
  return made;
}

/** Answers with JSON that holds for one state of the tables. `v` in the query is the number of events that the asker knows of. */
export async function cached(c: Context, question: Question): Promise<Response> {
  const known = c.req.query("v") ?? "";
  const { version } = await stateNow(/^\d{1,18}$/.test(known) ? BigInt(known) : 0n);
  const { etag, body, packed } = await answerOf(question, version);
  // A proxy may reuse it for a second, and later revalidates it. Pages of another origin may read the ETag.
  const headers: Record<string, string> = { etag, "cache-control": "public, max-age=1, stale-while-revalidate=5", vary: "accept-encoding", "access-control-expose-headers": "etag" };
  if (c.req.header("if-none-match")?.includes(etag)) return c.body(null, 304, headers);
  const isPacked = packed !== body && /\bgzip\b/.test(c.req.header("accept-encoding") ?? "");
  return c.body((isPacked ? packed : body) as never, 200, { ...headers, "content-type": "application/json", ...(isPacked ? { "content-encoding": "gzip" } : {}) });
}
