/**
 * The counts of draws, kept in the database: a new server goes on from another's, and of several that face a long history one counts for all.
 *
 * The table is in the schema of the tables it was counted from, and is dropped with them. The indexer makes it, since a server's user may have no right to. Without PostgreSQL there is one server, which counts for itself.
 */
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { deserialize, serialize } from "node:v8";
import { gunzip, gzip } from "node:zlib";
import pg from "pg";
import { rules } from "../formulas";
import { Replay } from "../fairness/replay";
import * as weighing from "../fairness/rules";
import { Shares } from "../fairness/shares";
import * as statistics from "../fairness/statistics";
import { verifier } from "../../../../ts/src/generated/verifier";

const [pack, unpack] = [promisify(gzip), promisify(gunzip)];
/** The newest are kept, so that a reorganisation leaves one. */
const KEPT = 2;
/** Counts by other rules are not continued. */
const BY = createHash("sha256")
  .update([Replay, Shares, ...Object.values(weighing), ...Object.values(statistics), verifier].map(String).join("\n"))
  .digest("hex");

/** Up to which event it is counted. */
export interface Last {
  id: bigint;
  blockHash: string;
}

const connectionString = process.env.DATABASE_URL;
const { PONDER_NAMESPACE_BUILD: namespace } = globalThis as { PONDER_NAMESPACE_BUILD?: { schema: string } };
const schema = pg.escapeIdentifier(namespace?.schema ?? "public");
const table = `${schema}._counted_draws`;

/** Does something on a connection of its own; undefined where there is no database, or it refuses. */
async function using<result>(act: (client: pg.Client) => Promise<result>): Promise<result | undefined> {
  if (!connectionString) return undefined;
  const client = new pg.Client({ connectionString });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return await act(client);
  } catch {
    return undefined;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Only the schema's owner can. DATABASE_READER is the servers' user, if they have another. */
const make = async (client: pg.Client) => {
  const reader = process.env.DATABASE_READER;
  const grant = reader ? `; grant insert, delete on ${table} to ${pg.escapeIdentifier(reader)}` : "";
  await client.query(`create table if not exists ${table} (counted_by text not null, id numeric(78) not null, block_hash text not null, state bytea not null, primary key (counted_by, id))${grant}`).catch(() => undefined);
};
export const made = using(make);

/** The newest that was kept, beyond `after`, for which `isThere` still finds the event that it ends with. */
export const load = (after: bigint, isThere: (last: Last) => Promise<boolean>): Promise<{ last: Last; shares: Shares } | undefined> =>
  using(async (client) => {
    const { rows } = await client.query(`select id, block_hash from ${table} where counted_by = $1 and id > $2 order by id desc`, [BY, String(after)]);
    for (const row of rows as { id: string; block_hash: string }[]) {
      const last = { id: BigInt(row.id), blockHash: row.block_hash };
      if (!(await isThere(last))) continue;
      const { rows: found } = await client.query(`select state from ${table} where counted_by = $1 and id = $2`, [BY, row.id]);
      if (!found.length) continue;
      const shares = new Shares(rules);
      shares.restore(deserialize(await unpack(found[0].state)) as Record<string, unknown>);
      return { last, shares };
    }
    return undefined;
  });

/** Stores the counts up to this event. The state is captured at once and written later. */
export function save(last: Last, shares: Shares): Promise<void> {
  if (!connectionString) return Promise.resolve();
  const state = serialize(shares.state());
  return using(async (client) => {
    await make(client);
    const packed = await pack(state, { level: 1 });
    await client.query(`insert into ${table} values ($1, $2, $3, $4) on conflict do nothing`, [BY, String(last.id), last.blockHash, packed]);
    await client.query(`delete from ${table} where counted_by <> $1 or id not in (select id from ${table} where counted_by = $1 order by id desc limit ${KEPT})`, [BY]);
  });
}

/** Whether it is this server's turn to count a long history: until `done` is called, or the server is gone, it is nobody else's. */
export async function turn(): Promise<{ done: () => Promise<void> } | undefined> {
  const mine = { done: () => Promise.resolve() };
  if (!connectionString) return mine;
  const client = new pg.Client({ connectionString });
  client.on("error", () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query("select pg_try_advisory_lock(hashtextextended($1, 0)) as is_mine", [`${table} ${BY}`]);
    if (rows[0].is_mine) return { done: () => client.end().catch(() => undefined) };
    await client.end();
    return undefined;
  } catch {
    // A server that cannot ask counts by itself.
    await client.end().catch(() => undefined);
    return mine;
  }
}
