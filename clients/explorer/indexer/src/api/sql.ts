/** SQL over HTTP, kept within bounds: Ponder's `client` answers, and lets nothing but SELECT on these tables pass. */
import { db } from "ponder:api";
import schema from "ponder:schema";
import { getTableName, isTable, sql } from "drizzle-orm";
import { createMiddleware } from "hono/factory";

/** Rows of an answer at most. */
export const MOST_ROWS = 10_000;

const tables = Object.values(schema as object).filter(isTable).map(getTableName);

/**
 * Ponder fills tables by way of temporary ones of the same names. PGlite has one session for all, in which these would then answer instead, empty as
 * they are. Ponder makes them anew whenever it needs them, within one transaction.
 */
const unshadow = sql.raw(`drop table if exists ${tables.map((name) => `pg_temp."${name}"`).join(", ")}`);

export const bounded = createMiddleware(async (c, next) => {
  const asked = c.req.query("sql");
  if (asked !== undefined) {
    const url = new URL(c.req.url);
    try {
      const query = JSON.parse(asked) as { json: { sql: string } };
      query.json.sql = `select * from (${query.json.sql.replace(/;\s*$/, "")}\n) as bounded limit ${MOST_ROWS}`;
      url.searchParams.set("sql", JSON.stringify(query));
    } catch {
      return c.text('"sql" must be {"json":{"sql":"select ...","params":[]}}', 400);
    }
    c.req.raw = new Request(url, c.req.raw);
    if (!process.env.DATABASE_URL) await db.execute(unshadow);
  }
  return next();
});
