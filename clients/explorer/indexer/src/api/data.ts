/** GraphQL and lists, kept within bounds. Of one question Ponder's `graphql` makes up to a hundred to the database, asks them all at once, and repeats each nine times. */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Socket } from "node:net";
import { db } from "ponder:api";
import { createMiddleware } from "hono/factory";
import { HTTPException } from "hono/http-exception";
import type { Pool, PoolClient, QueryResult } from "pg";
import { BadQuestion } from "./refusal";
import { MOST_BYTES, connections } from "./sql";
import { MOST_TIME, Turns, counted, within } from "./turns";

/** Whose turns a question takes, and the milliseconds and bytes that it has left at the database. */
interface Bounds {
  turns: Turns;
  left: number;
  bytes: number;
}
const asking = new AsyncLocalStorage<Bounds>();
const turns = new Turns(connections);
/** Lists have half of what SQL and GraphQL leave: the other half is for the state, sums and draws. */
const listTurns = new Turns(connections && connections / 2);
const bounds = (turns: Turns): Bounds => ({ turns, left: MOST_TIME, bytes: MOST_BYTES });
const FULL = "Too many of your questions wait already: ask again later";
const LONG = `The question takes the database longer than ${MOST_TIME / 1_000} seconds: ask for less`;

/** PostgreSQL's code for a statement that took longer than it may. */
const CANCELLED = "57014";

type Query = (...asked: unknown[]) => Promise<QueryResult>;
type Connection = PoolClient & { connection: { stream: Socket } };
type Wrap = (...asked: unknown[]) => Promise<unknown>;

if (process.env.DATABASE_URL) {
  const data = db as unknown as { $client: Pool; wrap: Wrap };
  const { $client: pool, wrap } = data;
  const query = pool.query.bind(pool) as Query;
  (pool as { query: Query }).query = (...asked) => {
    const question = asking.getStore();
    if (!question) return query(...asked);
    return question.turns.take(async () => {
      if (question.left <= 0) throw new Error("the question takes too long");
      const connection = (await pool.connect()) as Connection;
      const begun = performance.now();
      try {
        await connection.query(`begin read only; ${within(question.left)}`);
        return await counted(connection.connection.stream, question, () => (connection.query as Query)(...asked));
      } catch (error) {
        // The database's clock may be ahead of this one, so that some milliseconds seem to be left.
        if ((error as { code?: string }).code === CANCELLED) question.left = 0;
        throw error;
      } finally {
        question.left -= performance.now() - begun;
        await connection.query("rollback").then(() => connection.release(), (error: Error) => connection.release(error));
      }
    });
  };
  // Repeats nothing.
  data.wrap = (...asked) => {
    const act = asked.find((one) => typeof one === "function") as (of: typeof data) => Promise<unknown>;
    return asking.getStore() ? act(data) : wrap(...asked);
  };
}

export const boundedData = createMiddleware(async (c, next) => {
  if (turns.isFull) return c.json({ errors: [{ message: FULL }] }, 503, { "retry-after": "10" });
  const question = bounds(turns);
  await asking.run(question, next);
  if (question.left > 0 && question.bytes >= 0) return;
  const why = question.left > 0 ? `The answer has more than ${MOST_BYTES} bytes: ask for less` : LONG;
  // Ponder does not say why. Hono would keep the headers of its answer, of which one is the length.
  c.res = undefined;
  c.res = c.json({ errors: [{ message: why }] }, 400, { "access-control-allow-origin": "*" });
});

/** Asks the database for a page of a list. */
export async function boundedList<result>(act: () => Promise<result>): Promise<result> {
  if (listTurns.isFull) throw new HTTPException(503, { message: FULL });
  const question = bounds(listTurns);
  try {
    return await asking.run(question, act);
  } catch (error) {
    throw question.left > 0 ? error : new BadQuestion(LONG);
  }
}
