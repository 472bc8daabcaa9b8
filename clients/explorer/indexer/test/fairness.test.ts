/** Counts of draws while reorganisations replace the events between any two questions. */
import assert from "node:assert/strict";
import { register } from "node:module";
import { test } from "node:test";
import { PGlite } from "@electric-sql/pglite";
import { drizzle } from "drizzle-orm/pglite";
import * as schema from "../ponder.schema";
import { Replay, parameterNumbers } from "../src/fairness/replay";
import { rules } from "../src/formulas";

const client = new PGlite();
await client.exec("create table event (id numeric(78) primary key, name text, args json, block numeric(78), block_hash text, at numeric(78))");
/** Runs before each question. */
let before = async () => {};
const query = client.query.bind(client);
client.query = (async (...args: Parameters<typeof query>) => before().then(() => query(...args))) as typeof query;
// As Ponder gives them to its servers, without a state of the indexer.
const db = Object.assign(drizzle(client, { casing: "snake_case" }), { execute: async () => ({ rows: [{ checkpoint: null }] }) });
Object.assign(globalThis, { db, schema });
const modules = { "ponder:api": "data:text/javascript,export const { db } = globalThis", "ponder:schema": "data:text/javascript,export default globalThis.schema" };
register(`data:text/javascript,export const resolve = (name, context, next) => next(${JSON.stringify(modules)}[name] || name, context)`);
Object.assign(process.env, { RPC_URL: "http://127.0.0.1:9", MUSTER: `0x${"ff".repeat(20)}`, CHAIN_ID: "412346", START_BLOCK: "1", REQUESTS_PER_SECOND: "9", DATABASE_URL: "" });
const { fairNodes, fairness } = await import("../src/api/fairness");

type Winner = (task: number) => number;
/** Replaces all events: three nodes, then so many blocks with a task in each. */
async function become(branch: string, tasks: number, winner: Winner) {
  const event = (block: number, i: number, name: string, args: object) => ({ id: block * 1_000_000 + i, name, args, block, block_hash: `0x${block < 10 ? "00" : branch}`, at: block });
  const parameters = { exclusionPpm: 100_000, tau: 1_800, penaltyPpm: 100_000, boostPpm: 100_000, openMost: 2, boostPool: 3, kickoutMilli: 0 };
  const rows = [
    event(1, 0, "Initialised", { stakeUnit: "1" }),
    ...Object.entries(parameters).map(([name, value], i) => event(2, i, "ParameterChanged", { parameter: parameterNumbers[name as keyof typeof parameters], value })),
    ...[1, 2, 3].map((node) => event(3, node, "NodeJoined", { node, group: (1 << 16) | 8, stake: "100", models: [] })),
    ...Array.from({ length: tasks }, (_, i) => [
      event(10 + i, 0, "TaskCreated", { id: i, spec: { vram: 0, gpu: 0, models: [], redundancy: 0 }, estimate: 60 }),
      event(10 + i, 1, "TaskStarted", { id: i, node: winner(i), boosts: false }),
      event(10 + i, 2, "TaskSucceeded", { id: i, node: winner(i) }),
    ]).flat(),
  ];
  before = async () => {};
  await client.transaction(async (all) => {
    await all.exec("delete from event");
    await all.query("insert into event select * from json_populate_recordset(null::event, $1)", [JSON.stringify(rows)]);
  });
}

test("draws of a branch that a reorganisation replaces between two questions are not counted, and none of the other branch is left out", async () => {
  /** Reads all, and looks once more whether that is all: the first look may be one that began before. */
  const look = async () => {
    for (let looks = 0; looks < 2; looks++) while ((JSON.parse(await fairness()) as { behind: number }).behind);
  };
  // More events than one question reads.
  const tasks = 699;
  const other: Winner = (task) => 1 + (task % 3);
  for (let passed = 0; passed < 7; passed++) {
    await become("0a", tasks, () => 1);
    let left = passed;
    before = async () => {
      if (!left--) await become("0b", tasks + 3, other);
    };
    await look();
    await become("0b", tasks + 6, other);
    await look();
    const { items } = JSON.parse(await fairNodes({ sort: "node" })()) as { items: { won: number }[] };
    assert.deepEqual(items.map(({ won }) => won), Array(3).fill((tasks + 6) / 3), `after ${passed} questions`);
  }
});

test("a node that a judgement frees and puts out stays put out until it leaves, though draws before it keep it", () => {
  const replay = new Replay(rules);
  let read = 0n;
  const play = (name: string, args: object) => replay.read({ id: read++, name, args: args as Record<string, unknown>, block: read, at: read });
  play("Initialised", { stakeUnit: "1" });
  for (const [name, value] of Object.entries({ exclusionPpm: 100_000, tau: 1_800, penaltyPpm: 100_000, boostPpm: 100_000, openMost: 1, boostPool: 3, kickoutMilli: 2_000 }))
    play("ParameterChanged", { parameter: parameterNumbers[name as keyof typeof parameterNumbers], value });
  for (const node of [1, 2, 3]) play("NodeJoined", { node, group: (1 << 16) | 8, stake: "100", models: [] });
  for (let i = 0; i < 49; i++) play("ScoreRecorded", { node: 1, score: 0 });
  play("TaskCreated", { id: 7, spec: { vram: 0, gpu: 0, models: [], redundancy: 2 }, estimate: 60 });
  play("GroupFormed", { id: 7, group: 1, nodes: [1, 2, 3], scored: true });
  play("MemberStarted", { id: 7, node: 1, group: 1 });
  play("AnswerCommitted", { id: 7, node: 1, group: 1 });
  const status = () => replay.nodes.get(1)!.status;
  assert.equal(status(), 2, "its open commitment keeps it from work");
  play("MemberJudged", { id: 7, node: 1, group: 1, verdict: 2 });
  play("ScoreRecorded", { node: 1, score: 0 });
  play("NodeExcluded", { node: 1, until: 9 });
  assert.equal(status(), 6);
  play("NodeReadmitted", { node: 1 });
  play("NodeQuit", { node: 1 });
  assert.equal(status(), 0);
});
