/** GraphQL, kept within bounds. Of one question Ponder's `graphql` makes up to a hundred to the database, asks them all at once, and repeats each nine times. */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Socket } from "node:net";
import { db } from "ponder:api";
import { createMiddleware } from "hono/factory";
import type { Pool, PoolClient, QueryResult } from "pg";
import { MOST_BYTES, connections } from "./sql";
import { MOST_TIME, Turns, counted, within } from "./turns";

/** The milliseconds and bytes that a question has left at the database. */
const asking = new AsyncLocalStorage<{ left: number; bytes: number }>();
const turns = new Turns(connections);

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
    return turns.take(async () => {
      if (question.left <= 0) throw new Error("the question takes too long");
      const connection = (await pool.connect()) as Connection;
      const begun = performance.now();
      try {
        await connection.query(`begin read only; ${within(question.left)}`);
        return await counted(connection.connection.stream, question, () => (connection.query as Query)(...asked));
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
  if (turns.isFull) return c.json({ errors: [{ message: "Too many of your questions wait already: ask again later" }] }, 503, { "retry-after": "10" });
  const question = { left: MOST_TIME, bytes: MOST_BYTES };
  await asking.run(question, next);
  if (question.left > 0 && question.bytes >= 0) return;
  const why = question.left > 0 ? `The answer has more than ${MOST_BYTES} bytes` : `The question takes the database longer than ${MOST_TIME / 1_000} seconds`;
  // Ponder does not say why. Hono would keep the headers of its answer, of which one is the length.
  c.res = undefined;
  c.res = c.json({ errors: [{ message: `${why}: ask for less` }] }, 400, { "access-control-allow-origin": "*" });
});
