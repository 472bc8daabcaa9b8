/**
 * Fills a schema of PostgreSQL as an indexer of a large network would: nodes, tasks, accounts, models, queues and their sums, and the events and transactions of
 * the newest tasks. Not for chances or fairness: only sizes and shares are those that pages and questions meet.
 *
 * DATABASE_URL=postgresql://... npx tsx test/generate.ts --schema large --nodes 100000 --tasks 1000000
 *
 * `ponder serve` on the same schema then answers.
 */
import { parseArgs } from "node:util";
import pg from "pg";
import { musterParameters } from "../../../../abi/parameters";

const { values } = parseArgs({ options: { schema: { type: "string", default: "large" }, nodes: { type: "string", default: "100000" }, tasks: { type: "string", default: "1000000" } } });
const { schema } = values as { schema: string };
const [nodes, tasks] = [Number(values.nodes), Number(values.tasks)];
if (!/^[a-z_]+$/.test(schema) || !Number.isSafeInteger(nodes) || !Number.isSafeInteger(tasks) || nodes < 100 || tasks < 1_000) throw new Error("--schema, --nodes and --tasks have to be a name and numbers, at least 100 nodes and 1,000 tasks");

// Ponder makes the tables for the schema that it is told so.
(globalThis as { PONDER_NAMESPACE_BUILD?: object }).PONDER_NAMESPACE_BUILD = { schema, viewsSchema: undefined };
const tables = await import("../ponder.schema");
// Not exported by the package, but `ponder start` itself creates tables with it.
const kit = (await import(new URL("../node_modules/ponder/dist/esm/drizzle/kit/index.js", import.meta.url).href)) as { getSql: (schema: object) => Record<"tables" | "indexes", { sql: string[] }> };
const { tables: create, indexes } = kit.getSql(tables);

/** Of the tasks: those that wait in queues, and those that run; the newest. */
const [queued, running] = [Math.min(4_000, Math.floor(tasks / 10)), Math.min(Math.floor(nodes * 0.3), Math.floor(tasks / 4))];
/** Seconds that its history goes back; tasks whose events and transactions are there; GPU groups, models, creators. */
const [SPAN, TOLD, GPUS, MODELS, CREATORS] = [30 * 86_400, Math.min(50_000, tasks), 20, 5_000, 20_000];
const now = Math.floor(Date.now() / 1_000);
const [CHAIN, BLOCK] = [412_346, 10_000_000];
/** Blocks a second. */
const PACE = 2;
const VRAM = [8, 12, 16, 24, 24, 32, 40, 48, 80, 80];
const groupOf = (i: string) => `((${i} % ${GPUS}) + 1) * 65536 + (array[${VRAM.join()}])[(${i} % ${VRAM.length}) + 1]`;
const hex = (i: string, digits: number) => `('0x' || lpad(to_hex((${i})::bigint), ${digits}, '0'))`;
const created = `(${now} - ((${tasks} - i)::bigint * ${SPAN}) / ${tasks})`;

const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
await client.connect();
const began = Date.now();
const run = async (what: string, ...statements: string[]) => {
  const since = Date.now();
  for (const sql of statements) await client.query(sql).catch((error: Error) => {
    throw new Error(`${what}: ${error.message}\n${sql.slice(0, 2_000)}`);
  });
  if (Date.now() - since > 2_000) console.log(`  ${what}: ${((Date.now() - since) / 1_000).toFixed()} s`);
};

await run("schema", `drop schema if exists ${schema} cascade`, `create schema ${schema}`, `set search_path to ${schema}`, "set synchronous_commit to off", "select setseed(0.42)");
await run(
  "tables",
  `create sequence if not exists ${schema}._reorg_sequence as integer`,
  ...create.sql.filter((sql) => !sql.includes("_reorg__")),
  "create table _ponder_meta (key text primary key, value jsonb not null)",
  "create table _ponder_checkpoint (chain_name text primary key, chain_id bigint not null, safe_checkpoint varchar(75) not null, latest_checkpoint varchar(75) not null, finalized_checkpoint varchar(75) not null)",
);
/** Values by columns: missing ones are null. */
const insert = (table: string, columns: Record<string, string>, from: string) => `insert into ${table} (${Object.keys(columns).join(", ")}) select ${Object.values(columns).join(", ")} ${from}`;

await run(
  "nodes",
  insert(
    "node",
    {
      number: "i", operator: hex("i", 40), works: "false", status: `case when i <= ${running} then 2 when r < 0.06 then 5 when r < 0.1 then 0 else 1 end`, gpu_group: groupOf("i"), vram: `(${groupOf("i")}) & 65535`,
      stake: `case when i > ${running} and r >= 0.06 and r < 0.1 then 0 else (400 + floor(power(random(), 3) * 3600))::numeric * 1000000000000000000 end`, joined_at: `${now - SPAN}`, kicked_out: "r > 0.999", reliability: "floor((1 - power(random(), 8) * 0.8) * 1000000000)::numeric * 1000000000",
      reliability_at: `${now} - floor(random() * 86400)`, pool: "array(select (array[10, 10, 10, 5, 5, 2])[1 + floor(random() * 6)::int] from generate_series(1, (i % 51)::int))", long_term: "floor((0.4 + random() * 0.6) * 1000000000)::numeric * 1000000000",
      judged_right: "(i % 90)", judged: "(i % 90) + (case when r > 0.98 then 1 else 0 end)", rating: "900000000000000000", task: "0", deadline: "0", runs: `i <= ${running}`,
      models: `array(select distinct (floor(power(random(), 4) * ${MODELS}) + 1)::numeric(78) from generate_series(1, 1 + (i % 4)::int))`, in_use: "'{}'", parked: `case when i > ${running} and r > 0.99 then 1 else 0 end`, parked_until: `${now} + 600`,
      waits_for: "0", open_commitments: "0", held: "false", called_to: "0", set_aside: "false", started: "(i % 400)::int", succeeded: "((i % 400) * 0.95)::int", wrong: "0", failed: "((i % 400) * 0.02)::int", timed_out: "((i % 400) * 0.03)::int", exclusions: "case when r > 0.97 then 1 else 0 end",
      earned: "floor(random() * 1000000)::numeric * 1000000000000", slashed: "case when r > 0.98 then 20000000000000000 else 0 end", seen_at: `${now}`,
    },
    `from (select i, random() as r from generate_series(1::bigint, ${nodes}) as i) as n`,
  ),
);
const outcome = `case when r < 0.93 then 2 when r < 0.96 then 4 when r < 0.98 then 3 when r < 0.985 then 5 when r < 0.995 then 6 when r < 0.997 then 7 else 9 end`;
const isOver = `i <= ${tasks - queued - running}`;
const isQueued = `i > ${tasks - queued}`;
await run(
  "tasks",
  insert(
    "task",
    {
      id: "i", creator: hex(`(i * 7919) % ${CREATORS} + 1`, 40), status: `case when ${isOver} then 0 when ${isQueued} then 2 else 3 end`, outcome: `case when ${isOver} then ${outcome} else 1 end`, fee: "fee", kind: "(i % 3 = 0)::int", units: "1 + (i % 4)::int", vram: "(i % 3)::int * 8",
      gpu: `case when i % 5 = 0 then ${groupOf("i")} else 0 end`, redundancy: "case when s < 0.8 then 0 when s < 0.95 then 1 when s < 0.99 then 2 else 3 end", flags: "0", input_digest: hex("i", 64),
      models: `case when i % 2 = 0 then array[(floor(power(random(), 4) * ${MODELS}) + 1)::numeric(78)] else '{}' end`, estimate: "60", time_limit: "120", start_fee_bps: "200", sample_bps: "1000", created_at: created, created_block: `${BLOCK} - (${now} - ${created}) * ${PACE}`, created_tx: hex("i * 4", 64),
      draw_block: "0", redraws: "0", draw_since: "i", ticket: "0", queue: `case when ${isQueued} then (i % 3) * 8 else 0 end`, queued_at: `case when ${isQueued} then ${created} else 0 end`, node: `case when ${isQueued} then 0 when ${isOver} then 1 + floor(random() * ${nodes}) else i - ${tasks - queued - running} end`,
      started_at: `case when ${isQueued} then null else ${created} + floor(random() * 5) end`, deadline: `case when ${isOver} then ${created} + 120 else ${now} + floor(random() * 7200) end`, boosts: "true", was_sampled: "false", ended_at: `case when ${isOver} then ${created} + 5 + floor(random() * 60) end`, code: "0", spent: "0",
      paid: `case when ${isOver} and r < 0.93 then fee else 0 end`, refund: `case when ${isOver} and r >= 0.93 then fee else 0 end`, start_fee: "0", to_reserve: "0", result_digest: `case when ${isOver} and r < 0.93 then ${hex("i", 64)} end`,
    },
    `from (select i, random() as r, random() as s, floor(50 + power(random(), 4) * 5000)::numeric * 10000000000000 as fee from generate_series(1::bigint, ${tasks}) as i) as t`,
  ),
);
await run(
  "accounts, models, GPUs, queues",
  insert("account", { address: "creator", credit: "0", unbonding: "0", release: "0", node: "0", kicked_out: "false", tasks: "count(*)::int", fees: "sum(fee)", refunds: "sum(refund)", earned: "0", withdrawn: "0", stores: "''", first_at: "min(created_at)" }, "from task group by creator"),
  `${insert("account", { address: "operator", credit: "earned / 2", unbonding: "0", release: "0", node: "number", kicked_out: "kicked_out", tasks: "0", fees: "0", refunds: "0", earned: "earned", withdrawn: "earned / 2", stores: "''", first_at: "joined_at" }, "from node")} on conflict (address) do update set node = excluded.node, earned = excluded.earned, credit = excluded.credit`,
  insert("model", { id: "i", name: "'models/' || i", held: "0", entries: "0", tasks: "0", downloads: "0", first_at: `${now - SPAN}` }, `from generate_series(1, ${MODELS}) as i`),
  "update model set held = h.n, entries = h.n from (select m, count(*)::int as n from node, unnest(models) as m where status <> 0 group by m) as h where h.m = model.id",
  "update model set tasks = h.n from (select m, count(*)::int as n from task, unnest(models) as m group by m) as h where h.m = model.id",
  insert("gpu_group", { id: "gpu_group", name: "'NVIDIA card ' || (gpu_group::bigint >> 16)", vram: "vram", fee: "0", created_at: `${now - SPAN}`, listed: "true", joined: "(count(*) filter (where status <> 0))::int", stakes: "sum(stake)" }, "from node group by gpu_group, vram"),
  insert("queue", { id: "queue", gpu_group: "queue", grade: "0", first: "min(id)", queued: "count(*)::int", total: "count(*)::int" }, "from task where status = 2 group by queue"),
  ...musterParameters.map(({ number, name, unit, default: value }) => insert("parameter", { number: String(number), name: `'${name}'`, unit: `'${unit.replaceAll("'", "''")}'`, value: typeof value === "bigint" ? String(value) : "400", changed_at: `${now - SPAN}` }, "")),
);
// Up to three events, and as many transactions, of each of the newest tasks.
await run(
  "events, transactions",
  insert(
    "event",
    {
      id: `(created_block + e) * 1000000 + (id % 1000000)`, name: "(array['TaskCreated', 'TaskStarted', 'TaskSucceeded'])[e + 1]", block: "created_block + e", block_hash: hex("created_block + e", 64), at: "created_at + e", tx: hex("id * 4 + e", 64), task: "id", node: "case when e > 0 then node end", account: "creator",
      args: "json_build_object('id', id::text, 'creator', creator, 'fee', fee::text, 'drawBlock', (created_block + 1)::text, 'node', node, 'deadline', deadline::text, 'paid', paid::text, 'resultDigest', result_digest, 'estimate', estimate, 'boosts', true, 'spec', json_build_object('kind', kind, 'units', units, 'redundancy', redundancy, 'vram', vram, 'gpu', gpu, 'models', array(select m::text from unnest(models) as m)))",
    },
    `from task, generate_series(0, 2) as e where id > ${tasks - TOLD} and (e = 0 or (e = 1 and status <> 2) or (e = 2 and outcome = 2))`,
  ),
  // A replay of draws begins with these.
  insert("event", { id: "i", name: "'Initialised'", block: "0", block_hash: hex("0", 64), at: `${now - SPAN}`, tx: hex("0", 64), args: "'{\"stakeUnit\": \"1000000000000\"}'::json" }, "from generate_series(0, 0) as i"),
  insert("event", { id: "number", name: "'ParameterChanged'", block: "0", block_hash: hex("0", 64), at: `${now - SPAN}`, tx: hex("0", 64), args: "json_build_object('parameter', number, 'value', value::text)" }, "from parameter where number > 0"),
  insert(
    "event",
    { id: "1000000 + number", name: "'NodeJoined'", block: "1", block_hash: hex("1", 64), at: "joined_at", tx: hex("number", 64), node: "number", account: "operator", args: "json_build_object('node', number, 'operator', operator, 'group', gpu_group, 'stake', (stake + 1)::text, 'models', array(select m::text from unnest(models) as m))" },
    "from node",
  ),
  insert("reliability_mark", { id: "1000000 + number", node: "number", at: "joined_at", h: "1000000000000000000", why: "'joined'" }, "from node"),
  insert("reliability_mark", { id: "10000000 + number", node: "number", at: "reliability_at", h: "reliability", why: "'timeout'", task: "1" }, "from node where reliability < 990000000000000000"),
  insert("transaction", { hash: "tx", block: "block", at: "at", sender: "account", selector: "'0x00000000'", call: "(array['createTask', 'dispatch', 'submit'])[case name when 'TaskCreated' then 1 when 'TaskStarted' then 2 else 3 end]", gas_used: "90000 + (task::bigint % 7) * 1000", gas_price: "100000000" }, "from event where task is not null"),
);
const sums = (table: string, start: string) =>
  insert(
    table,
    {
      start: "s", nodes: `${nodes}`, waiting: `${queued}`, stakes: "(select sum(stake) from node)", reserve: "1000000000000000000", treasury: "2000000000000000000", burnt_ever: "(select sum(slashed) from node)", created: "count(*)::int", started: "count(started_at)::int", queued: "(count(*) / 50)::int",
      succeeded: "(count(*) filter (where outcome = 2))::int", failed: "(count(*) filter (where outcome = 3))::int", timed_out: "(count(*) filter (where outcome = 4))::int", cancelled: "(count(*) filter (where outcome = 5))::int", evicted: "(count(*) filter (where outcome = 6))::int", expired: "(count(*) filter (where outcome = 7))::int", slashed_out: "0",
      undecided: "(count(*) filter (where outcome = 9))::int", redrawn: "0", committed: "0", sampled: "0", formed: "0", settled: "0", waited: "coalesce(sum(started_at - created_at), 0)", ran: "coalesce(sum(ended_at - started_at), 0)", fees: "sum(fee)", paid: "sum(paid)", refunded: "sum(refund)", income: "0", burnt: "0", withdrawn: "0", joined: "0",
      quits: "0", kicked_out: "0", excluded: "0", slashes: "0", downloads: "0", transactions: "(count(*) * 3)::int", gas: "count(*) * 300000", events: "(count(*) * 3)::int",
    },
    `from (select ${start} as s, * from task) as t group by s`,
  );
await run(
  "sums",
  sums("hour", "created_at - created_at % 3600"),
  sums("day", "created_at - created_at % 86400"),
  sums("month", "extract(epoch from date_trunc('month', to_timestamp(created_at::bigint) at time zone 'utc'))::numeric"),
  insert("minute", { start: "created_at - created_at % 60", created: "count(*)::int", ended: "count(ended_at)::int" }, `from task where created_at > ${now - 86_400} group by 1`),
  insert("node_day", { node: "node", start: "created_at - created_at % 86400", started: "count(*)::int", succeeded: "(count(*) filter (where outcome = 2))::int", wrong: "0", failed: "0", timed_out: "(count(*) filter (where outcome = 4))::int", earned: "sum(paid)", slashed: "0", scores: "0", scored: "0" }, "from task where node > 0 group by 1, 2"),
  insert(
    "network",
    {
      id: "'muster'", owner: hex("1", 40), next_owner: hex("0", 40), treasury: hex("1", 40), next_treasury: hex("0", 40), next_treasury_at: "0", treasury_balance: "2000000000000000000", reserve: "1000000000000000000", burnt: "(select sum(slashed) from node)", stakes: "(select sum(stake) from node where status <> 0)",
      escrow: "(select sum(fee) from task where status <> 0)", credit: "(select sum(credit) from account)", unbonding: "0", paid_out: "0", stake_unit: "1000000000000", minimum_stake: "400000000000000000000", upgrade_delay: "604800", upgrades_renounced: "false", paused: "false", tasks: `${tasks}`, pending: "0", queued: `${queued}`,
      running: `${running}`, ended: `${tasks - queued - running}`, nodes_issued: `${nodes}`, nodes_joined: "(select count(*)::int from node where status <> 0)", groups: "0", group_places: "0", events: `${tasks * 3}`, transactions: `${tasks * 3}`, block: `${BLOCK}`, at: `${now}`,
    },
    "",
  ),
);
const checkpoint = `${String(now).padStart(10, "0")}${String(CHAIN).padStart(16, "0")}${String(BLOCK).padStart(16, "0")}${"9".repeat(16)}5${"9".repeat(16)}`;
await run(
  "Ponder's own",
  `insert into _ponder_meta values ('app', '${JSON.stringify({ version: "6", build_id: "generated", table_names: [], view_names: [], is_dev: 0, is_locked: 0, is_ready: 1, heartbeat_at: 0 })}')`,
  `insert into _ponder_checkpoint values ('muster', ${CHAIN}, '${checkpoint}', '${checkpoint}', '${checkpoint}')`,
);
await (await import("../src/api/counted")).made;
await run("indexes", ...indexes.sql, "analyze");
const { rows } = await client.query(`select pg_size_pretty(sum(pg_total_relation_size(c.oid))) as size, (select count(*) from event) as events from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = '${schema}' and c.relkind = 'r'`);
const counted = (n: number) => Number(n).toLocaleString("en-GB");
console.log(`  a network of ${counted(nodes)} nodes and ${counted(tasks)} tasks, ${counted(rows[0].events)} events of the newest of them: ${rows[0].size}, generated in ${((Date.now() - began) / 1_000).toFixed()} s`);
await client.end();
