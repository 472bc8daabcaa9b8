/** Servers of a large network's database, here of a small one: generate.ts fills it, viewers.mjs looks at it. clients/explorer/large.sh does so at full size, and measures. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import pg from "pg";
import { sleep } from "./indexer";
import { Running } from "./machine";
import { look } from "./viewers.mjs";

const database = process.env.DATABASE_URL || "";
const skip = !database && "there is no PostgreSQL";
const [SCHEMA, NODES, TASKS, VIEWERS] = ["large_small", 200, 9_000, 20];
const servers: Running[] = [];
let client: pg.Client;
before(async () => {
  if (!database) return;
  execFileSync(process.execPath, ["--import", "tsx", "test/generate.ts", "--schema", SCHEMA, "--nodes", String(NODES), "--tasks", String(TASKS)], { stdio: ["ignore", "ignore", "inherit"] });
  client = new pg.Client({ connectionString: database });
  await client.connect();
  for (let i = 0; i < 2; i++) servers.push(await Running.serve(SCHEMA, database));
});
after(async () => {
  for (const server of servers) await server.kill();
  await client?.end();
});

const asked = async <answer>(server: Running, path: string) => (await (await fetch(new URL(`/api/${path}`, server.url))).json()) as answer;
async function counted(server: Running) {
  for (const until = Date.now() + 300_000; (await asked<{ behind: number }>(server, "fairness")).behind; await sleep(200)) assert.ok(Date.now() < until, "the draws are not counted");
  return asked<object>(server, "list/fairness?sort=node&limit=1000");
}
const kept = async (): Promise<string[]> => (await client.query(`select id from ${SCHEMA}._counted_draws order by id`)).rows.map(({ id }) => id);

test("a long history of draws is counted by one server for all, and not again by who comes later", { skip }, async () => {
  const [one, other] = await Promise.all(servers.map(counted));
  assert.deepEqual(other, one);
  const before = await kept();
  assert.ok(before.length >= 1 && before.length <= 2, `${before.length} kept`);
  const { rows } = await client.query(`select count(*)::int as left from ${SCHEMA}.event where id > ${before.at(-1)}`);
  assert.ok(rows[0].left < 20_000, `${rows[0].left} events are left to be counted by everybody`);
  const late = await Running.serve(SCHEMA, database);
  servers.push(late);
  assert.deepEqual(await counted(late), one);
  assert.deepEqual(await kept(), before);
  // A damaged state does not prevent counting.
  await client.query(`update ${SCHEMA}._counted_draws set state = 'nothing'`);
  const alone = await Running.serve(SCHEMA, database);
  servers.push(alone);
  assert.deepEqual(await counted(alone), one);
});

test("neither the indexer nor a server asks as a superuser, and a server only reads what was indexed", { skip: skip || (!process.env.SERVE_DATABASE_URL && "there is one user for all") }, async () => {
  const other = new pg.Client({ connectionString: process.env.SERVE_DATABASE_URL });
  await other.connect();
  const refused = { code: "42501" };
  try {
    for (const one of [client, other]) await assert.rejects(one.query("copy (select 1) to program 'true'"), refused);
    for (const sql of [`delete from ${SCHEMA}.node`, `create table ${SCHEMA}.other (id int)`, "create schema other", `drop table ${SCHEMA}._counted_draws`]) await assert.rejects(other.query(sql), refused, sql);
    assert.equal((await other.query(`select count(*)::int as nodes from ${SCHEMA}.node`)).rows[0].nodes, NODES);
  } finally {
    await other.end();
  }
});

test("viewers of both see every event, and miss no change", { skip }, async () => {
  const { firsts, views, happened, failed } = await look(servers.slice(0, 2).map(({ url }) => url.replace(/\/$/, "")), database, SCHEMA, VIEWERS, 4);
  assert.deepEqual([...failed], []);
  assert.equal(firsts.length, VIEWERS);
  assert.ok(happened >= 2 && views.length >= 0.9 * VIEWERS * happened, `${views.length} times an event was seen, of ${VIEWERS * happened}`);
});
