/**
 * How long a new indexer takes to catch up with a chain of a certain age, through an endpoint as providers run them: rows of the table in
 * ../../README.md. test.sh --age runs it with several ages in blocks, test.sh with one. It fails if that takes longer than ten minutes, or more questions
 * for logs than ranges of blocks, or if the indexed state differs from the contract.
 */
import assert from "node:assert/strict";
import pg from "pg";
import { Endpoint } from "../../../../test/clients/endpoint.mjs";
import { compare } from "./compare";
import { head, rpc } from "./indexer";
import { Running, demonstrate, devnode } from "./machine";

/** The endpoint's limits, and the indexer's settings for them. */
const [REQUESTS, RANGE] = [10, 10_000];
const SECONDS = 600;
/** Ponder begins with 25 blocks, and goes on with half as much more each time; a question more for each, and then some. */
const MOST_QUESTIONS = 100;

const url = await devnode();
const { address, report } = await demonstrate(url, ["--limit", "60", "--sampled", "40", "--groups", "20", "--cheats", "2"]);
const rows: string[] = [];
const database = process.env.DATABASE_URL || undefined;
for (const age of process.argv.slice(2).map(Number)) {
  const missing = age - (await head(url));
  assert.ok(missing >= 0, `the demonstration alone takes ${age - missing} blocks`);
  // One request makes at most 100,000.
  for (let left = missing; left > 0; left -= 100_000) await rpc(url, "anvil_mine", [`0x${Math.min(left, 100_000).toString(16)}`]);
  if (database) {
    // Ponder's copy of the chain, which the next indexer would reuse.
    const client = new pg.Client({ connectionString: database });
    await client.connect();
    await client.query("drop schema if exists ponder_sync cascade");
    await client.end();
  }
  const endpoint = await Endpoint.start(url, { requestsPerSecond: REQUESTS, logsRangeMax: RANGE, retryAfter: 1 });
  const settings = { RPC_URL: endpoint.url, REQUESTS_PER_SECOND: String(REQUESTS), ETH_GET_LOGS_BLOCK_RANGE: String(RANGE), START_BLOCK: "" };
  const since = performance.now();
  const indexer = await Running.start({ rpc: endpoint.url, address, schema: `age${age}`, database, settings });
  await indexer.reach(age, SECONDS * 1_000);
  const seconds = (performance.now() - since) / 1_000;
  const { length: calls } = endpoint.calls;
  const { requests, range } = endpoint.refused;
  const questions = endpoint.count("eth_getLogs");
  const [{ events, blocks }] = (await indexer.sql("select count(*) as events, count(distinct block) as blocks from event")) as [Record<string, number>];
  assert.ok(questions <= MOST_QUESTIONS && range === 0, `${questions} questions for logs, ${range} refused`);
  const { compared, differences } = await compare(url, address, indexer);
  assert.deepEqual(differences.slice(0, 20), [], `${differences.length} of ${compared} differ`);
  const told = [age, events, blocks, calls, questions, requests].map((count) => Number(count).toLocaleString("en-GB"));
  rows.push(`| ${told.join(" | ")} | ${seconds.toFixed()} s |`);
  await indexer.kill();
  await endpoint.stop();
}
console.log(`  a demonstration of ${report.tasks} tasks, then empty blocks; ${REQUESTS} requests a second, ${RANGE.toLocaleString("en-GB")} blocks a question`);
console.log(`| blocks | events | in blocks | calls | of them eth_getLogs | refused (429) | caught up in |\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n${rows.join("\n")}`);
process.exit(0);
