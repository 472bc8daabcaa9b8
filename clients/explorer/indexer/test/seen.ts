/**
 * How long an event takes from its block until viewers see it, and where the time goes: rows of a table in ../../README.md. test.sh --seen runs it with several
 * settings of POLLING_INTERVAL, and `ponder serve` beside the indexer as the public has it. The servers' part is measured under many viewers by ../../large.sh.
 */
import assert from "node:assert/strict";
import http from "node:http";
import pg from "pg";
import { createWalletClient, encodeFunctionData, http as transport, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { musterAbi } from "../src/interface";
import { head, sleep } from "./indexer";
import { Counter, Running, demonstrate, devnode } from "./machine";
import { messages } from "./viewers.mjs";

const account = privateKeyToAccount("0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659");
const EVENTS = 30;
const { DATABASE_URL: database } = process.env;
assert.ok(database, "it needs PostgreSQL");

const url = await devnode();
const { address } = await demonstrate(url, ["--limit", "20"]);
const counter = await Counter.before(url);
const client = new pg.Client({ connectionString: database });
await client.connect();
const wallet = createWalletClient({ account, transport: transport(url) }).extend(publicActions);

/** When it heard of each event, and when the figures that it follows had it. */
function view(origin: string) {
  const [heard, seen] = [new Map<number, number>(), new Map<number, number>()];
  const request = http.get(`${origin}/api/live?ask=network`, { agent: false }, (response) =>
    messages(response, ({ network, answers }: { network: { events: string }; answers?: object }) => {
      const events = Number(network.events);
      if (!heard.has(events)) heard.set(events, performance.now());
      if (answers && Object.keys(answers).length && !seen.has(events)) seen.set(events, performance.now());
    }),
  );
  return { heard, seen, close: () => request.destroy() };
}

const quantile = (values: number[], q: number) => values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))]!;
const whole = (value: number) => Math.round(value).toLocaleString("en-GB");
const rows: string[] = [];
let number = 0;
for (const interval of process.argv.slice(2)) {
  const schema = `seen${interval}`;
  const indexer = await Running.start({ rpc: counter.url, address, schema, database, settings: { POLLING_INTERVAL: interval } });
  await indexer.ready();
  await indexer.reach(await head(url));
  const server = await Running.serve(schema, database);
  const viewer = view(server.url.replace(/\/$/, ""));
  const events = async () => Number((await client.query(`select events from ${schema}.network`)).rows[0].events);
  let known = await events();
  const parts: number[][] = [[], [], [], [], []];
  for (let i = 0; i < EVENTS; i++) {
    // Not in step with the indexer's looks.
    await sleep(Number(interval) + ((i * 197) % 1_000));
    counter.take();
    const data = encodeFunctionData({ abi: musterAbi, functionName: "nameModel", args: [`seen/${number++}`] });
    await wallet.sendTransaction({ chain: null, to: address, data, gas: 1_000_000n });
    // The development node answers when the block is there.
    const made = performance.now();
    while ((await events()) === known) await sleep(2);
    const committed = performance.now();
    known++;
    for (const until = committed + 60_000; !viewer.seen.has(known); await sleep(5)) assert.ok(performance.now() < until, `event ${known} is not seen`);
    const first = counter.calls.find(({ method, begun }) => method === "eth_getBlockByNumber" && begun > made);
    const last = counter.calls.findLast(({ ended }) => ended > made && ended < committed);
    const steps = [made, first?.begun ?? made, last?.ended ?? made, committed, viewer.seen.get(known)!];
    steps.slice(1).forEach((moment, step) => parts[step]!.push(moment - steps[step]!));
    parts[4]!.push(viewer.seen.get(known)! - made);
  }
  const told = (values: number[]) => `${whole(quantile(values, 0.5))} (${whole(quantile(values, 0.95))})`;
  rows.push(`| ${whole(Number(interval))} | ${parts.map(told).join(" | ")} | ${whole(Math.max(...parts[4]!))} | ${whole(86_400_000 / Number(interval))} |`);
  viewer.close();
  await server.kill();
  await indexer.kill();
}
console.log(`  ${EVENTS} events each, in milliseconds: the median, and within which 95 of 100 are`);
console.log("| `POLLING_INTERVAL` | until the indexer looks | it asks for the block | it indexes and commits | a server tells its viewers | in all | the longest | calls a day without blocks |");
console.log(`| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n${rows.join("\n")}`);
process.exit(0);
