/** SQL over HTTP, kept within bounds: Ponder's `client` answers, and lets nothing but SELECT on these tables pass. */
import type { Socket } from "node:net";
import { db } from "ponder:api";
import schema from "ponder:schema";
import { getTableName, isTable, sql } from "drizzle-orm";
import { createMiddleware } from "hono/factory";
import type { Pool } from "pg";
import { MOST_TIME, Turns, counted, within } from "./turns";

/** Rows of an answer at most, and its bytes as the database sends them; a replaced text can be of any length. */
export const [MOST_ROWS, MOST_BYTES] = [10_000, 32 * 2 ** 20];
/** Connections to the database; PGlite has one session for all. */
export const connections = process.env.DATABASE_URL ? (db as unknown as { $client: Pool }).$client.options.max : undefined;
const turns = new Turns(connections);

const tables = Object.values(schema as object).filter(isTable).map(getTableName);

/**
 * Ponder fills tables by way of temporary ones of the same names. PGlite has one session for all, in which these would then answer instead, empty as
 * they are. Ponder makes them anew whenever it needs them, within one transaction.
 */
const unshadow = sql.raw(`drop table if exists ${tables.map((name) => `pg_temp."${name}"`).join(", ")}`);

/** A transaction as Drizzle has it: its connection is known. */
type Transaction = typeof db & { session: { client: { connection: { stream: Socket } } } };
interface Questions {
  transaction: <result>(act: (tx: Transaction) => Promise<result>, config: object) => Promise<result>;
}

// Ponder answers questions of SQL, and nothing else here, in transactions of these. Its own function tries again where one fails; the one below it does not.
if (process.env.DATABASE_URL) {
  const questions = db as unknown as Questions;
  const { transaction } = Object.getPrototypeOf(questions) as Questions;
  questions.transaction = (act, config) =>
    turns.take(async () => {
      const left = { bytes: MOST_BYTES };
      const answered = async (tx: Transaction) => {
        await tx.execute(sql.raw(within(MOST_TIME)));
        return counted(tx.session.client.connection.stream, left, () => act(tx));
      };
      try {
        return await transaction.call(questions, answered, config) as Awaited<ReturnType<typeof act>>;
      } catch (error) {
        throw left.bytes < 0 ? new Error(`the answer has more than ${MOST_BYTES} bytes`) : error;
      }
    });
}

export const bounded = createMiddleware(async (c, next) => {
  const asked = c.req.query("sql");
  if (turns.isFull) return c.text("Too many of your questions wait already: ask again later", 503, { "retry-after": "10" });
  if (asked !== undefined) {
    const url = new URL(c.req.url);
    try {
      const { json, meta } = JSON.parse(asked) as { json: { sql: string; params?: unknown }; meta?: { values?: unknown } };
      const text = `select * from (${json.sql.replace(/;\s*$/, "")}\n) as bounded limit ${MOST_ROWS}`;
      // Of what the question says of itself, only its parameters' types: a reference could put another text in the place of this one.
      url.searchParams.set("sql", JSON.stringify({ json: { sql: text, params: json.params }, meta: { values: meta?.values } }));
    } catch {
      return c.text('"sql" must be {"json":{"sql":"select ...","params":[]}}', 400);
    }
    c.req.raw = new Request(url, c.req.raw);
    if (!process.env.DATABASE_URL) await db.execute(unshadow);
  }
  return next();
});
