/** SQL over HTTP, kept within bounds: Ponder's `client` answers, and lets nothing but SELECT on these tables pass. */
import type { Socket } from "node:net";
import { db } from "ponder:api";
import schema from "ponder:schema";
import { getTableName, isTable, sql } from "drizzle-orm";
import { createMiddleware } from "hono/factory";

/** Rows of an answer at most, and its bytes as the database sends them; a replaced text can be of any length. */
export const [MOST_ROWS, MOST_BYTES] = [10_000, 32 * 2 ** 20];
/** Questions that the database answers at a time: it has some thirty connections, and the page needs them, too. So many more may wait. */
const [AT_ONCE, WAITING] = [8, 64];
/** Each may take so many milliseconds of one processor, and as much memory for each of its steps. Unless told so, Ponder would take half a gigabyte, and repeat it nine times. */
const within = sql.raw("set local statement_timeout = 10000; set local work_mem = '64MB'; set local max_parallel_workers_per_gather = 0");

const tables = Object.values(schema as object).filter(isTable).map(getTableName);

/**
 * Ponder fills tables by way of temporary ones of the same names. PGlite has one session for all, in which these would then answer instead, empty as
 * they are. Ponder makes them anew whenever it needs them, within one transaction.
 */
const unshadow = sql.raw(`drop table if exists ${tables.map((name) => `pg_temp."${name}"`).join(", ")}`);

let running = 0;
const waiting: (() => void)[] = [];

/** Acts when it is its turn. */
async function inTurn<result>(act: () => Promise<result>): Promise<result> {
  if (running < AT_ONCE) running++;
  else await new Promise<void>((resolve) => waiting.push(resolve));
  try {
    return await act();
  } finally {
    const next = waiting.shift();
    // The next one has its place.
    if (next) next();
    else running--;
  }
}

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
    inTurn(async () => {
      let left = MOST_BYTES;
      const answered = async (tx: Transaction) => {
        await tx.execute(within);
        const { stream } = tx.session.client.connection;
        const read = ({ length }: Buffer) => {
          left -= length;
          if (left < 0) stream.destroy();
        };
        stream.on("data", read);
        try {
          return await act(tx);
        } finally {
          stream.off("data", read);
        }
      };
      try {
        return await transaction.call(questions, answered, config) as Awaited<ReturnType<typeof act>>;
      } catch (error) {
        throw left < 0 ? new Error(`the answer has more than ${MOST_BYTES} bytes`) : error;
      }
    });
}

export const bounded = createMiddleware(async (c, next) => {
  const asked = c.req.query("sql");
  if (waiting.length >= WAITING) return c.text("Too many questions of SQL wait already: ask again later", 503, { "retry-after": "10" });
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
