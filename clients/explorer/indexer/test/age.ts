/**
 * How long the indexer takes to catch up with a chain of a certain age through an endpoint as providers run them, as a table for ../../README.md.
 * age.sh runs it; arguments are ages in blocks.
 */
import { Endpoint } from "../../../../test/clients/endpoint.mjs";
import { Running, demonstrate, devnode } from "./machine";
import { head, rpc, sleep } from "./indexer";

const ages = process.argv.slice(2).map(Number);
const [REQUESTS, RANGE, TASKS] = [10, 10_000, 20];

const rows: string[] = [];
const url = await devnode();
const { address } = await demonstrate(url, ["--limit", String(TASKS), "--sampled", "40", "--groups", "20", "--cheats", "2"]);
for (const age of ages) {
  const now = await head(url);
  if (age > now) await rpc(url, "anvil_mine", [`0x${(age - now).toString(16)}`]);
  const newest = await head(url);
  const endpoint = await Endpoint.start(url, { requestsPerSecond: REQUESTS, logsRangeMax: RANGE, retryAfter: 1 });
  const since = performance.now();
  const settings = { RPC_URL: endpoint.url, REQUESTS_PER_SECOND: String(REQUESTS), ETH_GET_LOGS_BLOCK_RANGE: String(RANGE), START_BLOCK: "", ...JSON.parse(process.env.AGE_SETTINGS ?? "{}") };
  const indexer = await Running.start({ rpc: endpoint.url, address, schema: `age${age}`, database: process.env.DATABASE_URL || undefined, settings });
  const methods = () => endpoint.calls.reduce((by: Record<string, number>, { method }: { method: string }) => ({ ...by, [method]: (by[method] ?? 0) + 1 }), {});
  const ticker = setInterval(async () => console.error(((performance.now() - since) / 1000).toFixed(0), "s block", await indexer.block(), JSON.stringify(methods()), endpoint.refused.requests), 5_000);
  await indexer.reach(newest);
  clearInterval(ticker);
  const seconds = (performance.now() - since) / 1_000;
  const [{ blocks, events }] = (await indexer.sql("select count(distinct block) as blocks, count(*) as events from event")) as [Record<string, unknown>];
  await indexer.kill();
  const by = new Map<string, number>();
  for (const { method } of endpoint.calls) by.set(method, (by.get(method) ?? 0) + 1);
  console.error(Object.fromEntries(by), endpoint.refused);
  rows.push(`| ${newest.toLocaleString("en")} | ${events} in ${blocks} | ${seconds.toFixed()} | ${endpoint.calls.length} | ${endpoint.count("eth_getLogs")} | ${endpoint.refused.requests} |`);
  await endpoint.stop();
}
console.log(rows.join("\n"));
await sleep(10);
process.exit(0);
