/**
 * The indexer against a chain with the demonstration on it. test.sh runs it; TASKS says how many tasks the demonstration has, DATABASE_URL names
 * the PostgreSQL that the parts run on which need one.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import pg from "pg";
import { type Address, createWalletClient, encodeFunctionData, http, parseEther, parseEventLogs, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { musterAbi } from "../src/interface";
import { compare } from "./compare";
import { type Row, head, rpc, sleep } from "./indexer";
import { rated } from "./rated";
import { Counter, type Options, Running, demonstrate, devnode, directory, startHooks } from "./machine";
import { Receiver, SECRET } from "./receiver";

/** The public key of every nitro development chain. */
const account = privateKeyToAccount("0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659");
const tasks = Number(process.env.TASKS || 60);
const database = process.env.DATABASE_URL || undefined;
const isLong = tasks > 200;
const DAY = 86_400;

let url: string;
let address: Address;
let counter: Counter;
let first: Running;

const options = (more: Partial<Options> & { schema: string }): Options => ({ rpc: counter.url, address, database, ...more });

async function same(indexer: Running, what: string) {
  const { compared, differences } = await compare(url, address, indexer);
  assert.deepEqual(differences.slice(0, 20), [], `${differences.length} of ${compared} differ`);
  console.log(`  ${what}: ${compared} comparisons with the contract at block ${await head(url)}, none differs`);
}

/** Sends to the contract. */
async function send(functionName: "nameModel" | "createTask" | "dispatch" | "expire" | "reportError" | "pause" | "resume" | "proposePrograms" | "acceptPrograms", args: unknown[], value = 0n, sender = account) {
  const client = createWalletClient({ account: sender, transport: http(url) }).extend(publicActions);
  const data = encodeFunctionData({ abi: musterAbi, functionName, args } as never);
  const hash = await client.sendTransaction({ chain: null, to: address, data, value, gas: 5_000_000n });
  const { status, logs } = await client.waitForTransactionReceipt({ hash, pollingInterval: 50 });
  assert.equal(status, "success", functionName);
  return parseEventLogs({ abi: musterAbi, logs });
}
/** A contract without an owner logs something as it is created. */
const log = () => createWalletClient({ account, transport: http(url) }).sendTransaction({ chain: null, data: "0x60006000a000", gas: 5_000_000n });
const spec = { kind: 0, units: 1, vram: 8, gpu: 0, redundancy: 0, flags: 1, inputDigest: `0x${"11".repeat(32)}`, models: [] };
const create = () => send("createTask", [spec], parseEther("1"));

let chosen: Awaited<ReturnType<typeof rated>>;

before(async () => {
  url = await devnode();
  counter = await Counter.before(url);
  const flags = ["--limit", String(tasks), "--sampled", "40", "--groups", "20", "--cheats", isLong ? "3" : "2"];
  if (isLong) {
    execFileSync(process.execPath, ["test/trace.mjs", directory, String(tasks), "40"]);
    flags.push("--requests", `${directory}/requests.csv`, "--nodes", `${directory}/nodes.csv`);
  }
  const since = Date.now();
  const shown = await demonstrate(url, flags);
  address = shown.address;
  console.log(`  a demonstration of ${shown.report.tasks} tasks on ${shown.report.nodes} nodes: ${await head(url)} blocks, ${((Date.now() - since) / 1_000).toFixed()} s`);
  // The demonstration lacks these: tasks whose nodes are chosen by their ratings.
  chosen = await rated(url, address, account);
});

after(async () => {
  await hooks?.kill();
  await first?.kill();
  counter?.stop();
  // All processes started end with this one.
  setTimeout(() => process.exit(), 500).unref();
});

test("every event of abi/IMuster.json has a handler, and no other", async () => {
  const { handlers } = await import("../src/handlers");
  const items = JSON.parse(await readFile("../../../abi/IMuster.json", "utf8")) as { type: string; name: string }[];
  const events = items.filter(({ type }) => type === "event").map(({ name }) => name);
  assert.ok(events.length > 40);
  assert.deepEqual(Object.keys(handlers).sort(), events.sort());
});

test("all that is indexed equals the contract's views", async () => {
  const since = Date.now();
  first = await Running.start(options({ schema: "v1", views: "muster" }));
  await first.ready();
  await first.reach(await head(url));
  const [{ events }] = (await first.sql("select count(*) as events from event")) as [Row];
  const { total, byMethod } = counter.take();
  console.log(`  ${events} events on ${database ? "PostgreSQL" : "PGlite"} in ${((Date.now() - since) / 1_000).toFixed()} s; ${total} calls ${JSON.stringify(byMethod)}`);
  await same(first, "demonstration");
  const met = await first.sql("select name, count(*) as times from event group by name order by name");
  const wanted = ["TaskCreated", "TaskQueued", "TaskSucceeded", "TaskAborted", "AnswerRevealed", "GroupSettled", "NodeSlashed", "ScoreRecorded", "GroupChosen", "NodeRated", "ProfileSet", "WorkAccepted"];
  for (const name of wanted) assert.ok(met.some((row) => row.name === name), `there was no ${name}`);
  console.log(`  ${met.length} kinds of events were met`);
});

test("groups chosen by ratings: the profile, the likelihood, who was right, and the group that came after", async () => {
  const [profile] = (await first.sql("select * from profile")) as [Row];
  assert.deepEqual([profile.application, profile.algorithm, profile.least, profile.most, profile.targeting], [account.address.toLowerCase(), 1, 3, 5, 2]);
  const groups = await first.sql("select v.*, t.outcome as ended from validation v join task t on t.id = v.task where v.redundancy = 3 order by v.id");
  assert.deepEqual(groups.map(({ task, outcome, ended }) => [BigInt(task as string), outcome, ended]), [[chosen.agreed, 0, 2], [chosen.open, 4, 9], [chosen.open, 2, 9]]);
  for (const { algorithm, target, likelihood, size } of groups) {
    assert.deepEqual([algorithm, target, size], [1, profile.target, 5]);
    assert.ok(BigInt(likelihood as string) > 0n && BigInt(likelihood as string) < BigInt(target as string), `${likelihood}`);
  }
  const members = await first.sql(`select m.verdict, m.equal, n.wrong, n.judged, n.judged_right, n.rating from member m join node n on n.number = m.node where m.task = ${chosen.agreed} order by m.position`);
  assert.deepEqual(members.map(({ verdict, equal }) => [verdict, equal]), [[1, true], [2, false], [1, true], [4, null], [1, true]]);
  assert.deepEqual(members.map(({ wrong }) => wrong), [0, 1, 0, 0, 0]);
  // An error is not rated, nor is anybody where there was no majority.
  assert.deepEqual(members.map(({ judged, judged_right }) => [Number(judged), Number(judged_right)]), [[1, 1], [1, 0], [1, 1], [0, 0], [1, 1]]);
  for (const { judged, judged_right, rating } of members) assert.equal(BigInt(rating as string), (BigInt(Number(judged_right) + 1) * 10n ** 18n) / BigInt(Number(judged) + 2));
});

test("a node that answers nothing is excluded, and comes back when its time has come", async () => {
  const nodes = [...chosen.operators];
  const [number] = nodes.pop()!;
  // It alone is left of its GPU group.
  for (const [, operator] of nodes) await send("pause", [], 0n, operator);
  const [{ gpu_group: gpu }] = (await first.sql(`select gpu_group from node where number = ${number}`)) as [Row];
  const task = { ...spec, kind: 1, units: 10, vram: 24, gpu: Number(gpu) };
  const now = async () => Number(((await rpc(url, "eth_getBlockByNumber", ["latest", false])) as { timestamp: string }).timestamp);
  const started = async () => {
    const { id } = (await send("createTask", [task], parseEther("0.0005"))).find((event) => event.eventName === "TaskCreated")!.args;
    for (let tries = 0; tries < 50; tries++) {
      for (const { eventName, args } of await send("dispatch", [4])) if (eventName === "TaskStarted" && args.id === id) return args;
    }
    return assert.fail("it was not drawn");
  };
  let [lapses, until] = [0, 0n];
  for (; !until && lapses < 10; lapses++) {
    const { id, deadline } = await started();
    await rpc(url, "evm_increaseTime", [Number(deadline) + 1 - (await now())]);
    for (const { eventName, args } of await send("expire", [number, id])) if (eventName === "NodeExcluded" && args.node === number) until = args.until;
  }
  // H is 1, then three tenths of its value each time, and below a tenth with the third.
  assert.deepEqual([lapses, until > 0n], [3, true]);
  await first.reach(await head(url));
  const known = async (node = number) => (await first.sql(`select parked, parked_until, exclusions from node where number = ${node}`))[0]!;
  const { parked, parked_until, exclusions } = await known();
  assert.deepEqual([parked, BigInt(parked_until as string), exclusions], [1, until, 1]);
  await same(first, "a node excluded");
  await rpc(url, "evm_increaseTime", [Number(until) + 1 - (await now())]);
  const told = [];
  for (const [, operator] of nodes) told.push(...(await send("resume", [], 0n, operator)));
  assert.ok(told.some(({ eventName, args }) => eventName === "NodeReadmitted" && args.node === number), "it was not re-admitted");
  await first.reach(await head(url));
  assert.equal((await known()).parked, 0);
  await same(first, "re-admitted");
  // After an error a node rests, which is no exclusion.
  const { id, node } = await started();
  const before = await known(node);
  await send("reportError", [id, 2], 0n, chosen.operators.get(node)!);
  await first.reach(await head(url));
  const rests = await known(node);
  assert.deepEqual([rests.parked, Number(rests.parked_until) > (await now()), rests.exclusions], [1, true, before.exclusions]);
  await rpc(url, "evm_increaseTime", [60]);
  await send("dispatch", [4]);
  await first.reach(await head(url));
});

test("the ten questions of docs/explorer.md answer", async () => {
  const text = await readFile("../../../docs/explorer.md", "utf8");
  const blocks = [...text.matchAll(/```(graphql|sql)\n([\s\S]*?)```/g)];
  assert.equal(blocks.length, 10);
  for (const [, language, query] of blocks) {
    if (language === "sql") {
      assert.ok((await first.sql(query!)).length > 0, `no rows: ${query}`);
    } else {
      const [answer] = Object.values(await first.graphql(query!)) as unknown as [{ items?: Row[] } | null];
      assert.ok(answer && (answer.items ?? [answer]).length > 0, `nothing: ${query}`);
    }
  }
});

test("a node that is held back while draws are due, or rests after an error, is not counted as excluded", async () => {
  const until = "(e.args ->> 'until')::numeric";
  const [told] = (await first.sql(
    `select count(*) filter (where ${until} > e.at and r.id is null) as excluded, count(*) filter (where ${until} > e.at and r.id > 0) as rests, count(*) filter (where ${until} <= e.at) as held
    from event e left join event r on r.name = 'TaskErrorReported' and r.tx = e.tx and r.node = e.node where e.name = 'NodeExcluded'`,
  )) as [Row];
  const [{ exclusions }] = (await first.sql("select sum(exclusions) as exclusions from node")) as [Row];
  assert.deepEqual([Number(exclusions), Number(told.rests) > 0, Number(told.held) > 0], [Number(told.excluded), true, true]);
});

test("sums by hour, day and month: nothing is lost between them, and the last ones stand as the network does", async () => {
  const [network] = (await first.sql("select * from network")) as [Row];
  for (const table of ["hour", "day", "month"]) {
    const [sums] = (await first.sql(`select sum(created) as created, sum(succeeded) as succeeded, sum(fees) as fees, sum(slashes) as slashes, sum(joined) - sum(quits) as joined from ${table}`)) as [Row];
    const [told] = (await first.sql("select count(*) filter (where outcome = 2) as succeeded, sum(fee) as fees from task")) as [Row];
    const [{ slashes }] = (await first.sql("select count(*) as slashes from slash")) as [Row];
    assert.deepEqual([sums.created, sums.succeeded, sums.fees, sums.slashes, sums.joined].map(Number), [network.tasks, told.succeeded, told.fees, slashes, network.nodes_joined].map(Number), table);
    const [last] = (await first.sql(`select * from ${table} order by start desc limit 1`)) as [Row];
    assert.deepEqual(
      [last.nodes, last.waiting, last.stakes, last.reserve, last.treasury, last.burnt_ever].map((value) => BigInt(value as string)),
      [network.nodes_joined, network.queued, network.stakes, network.reserve, network.treasury_balance, network.burnt].map((value) => BigInt(value as string)),
      table,
    );
  }
  const [month] = (await first.sql("select start from month order by start limit 1")) as [Row];
  const begins = new Date(Number(month.start) * 1_000);
  assert.deepEqual([begins.getUTCDate(), begins.getUTCHours(), begins.getUTCMinutes(), begins.getUTCSeconds()], [1, 0, 0, 0]);
});

/** The server's answer to a question of the page. */
const served = async <T>(path: string): Promise<T> => {
  const response = await fetch(new URL(`/api/${path}`, first.url));
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
};
interface Page {
  block: number;
  items: Row[];
  total: number;
  more: boolean;
}

test("the page's sums and lists are the tables', page by page, and say of which block", async () => {
  const block = await head(url);
  await first.reach(block);
  const glance = await served<{ block: number; own: Row[]; queues: Row[]; groups: Row[]; calls: Row[] }>("network");
  assert.equal(glance.block, block);
  const [counted] = (await first.sql("select count(*) as own, count(*) filter (where status = 1 and parked = 0) as idle, count(*) filter (where status in (2, 3, 4, 6)) as busy from node where status <> 0")) as [Row];
  for (const name of ["own", "idle", "busy"]) assert.equal(glance.own.reduce((sum, row) => sum + Number(row[name]), 0), Number(counted[name]), name);
  const queued = await first.sql("select queue, count(*) as tasks, sum(fee) as fees from task where status = 2 group by queue order by queue");
  assert.deepEqual(glance.queues.map(({ queue, tasks, fees }) => [queue, tasks, fees].map(Number)).sort(([a], [b]) => a! - b!), queued.map(({ queue, tasks, fees }) => [queue, tasks, fees].map(Number)));
  assert.ok(glance.calls.length > 3);
  // Every task once, in order, for any page size.
  const ids: number[] = [];
  for (let more = true; more; ) {
    const { items, total } = await served<Page>(`list/tasks?sort=id&limit=17&offset=${ids.length}`);
    ids.push(...items.map(({ id }) => Number(id)));
    more = items.length === 17;
    assert.ok(total >= ids.length);
  }
  assert.deepEqual(ids, (await first.sql("select id from task order by id limit 10000")).map(({ id }) => Number(id)));
  for (const [path, where] of [
    ["tasks?state=succeeded&policy=1", "outcome = 2 and redundancy = 1"],
    ["tasks?state=late", "outcome = 4"],
    [`tasks?creator=${account.address}&from=1&to=4000000000`, `creator = '${account.address.toLowerCase()}'`],
  ] as const) {
    const [{ n }] = (await first.sql(`select count(*) as n from task where ${where}`)) as [Row];
    assert.equal((await served<Page>(`list/${path}`)).total, Number(n), path);
  }
  const byH = await served<Page>("list/nodes?sort=h&limit=1000&state=all");
  assert.equal(byH.total, Number(((await first.sql("select count(*) as n from node")) as [Row])[0].n));
  const rates = (await served<Page>("list/nodes?sort=-success&limit=1000&state=all")).items.map(({ succeeded, wrong, failed, timedOut }) => Number(succeeded) / (Number(succeeded) + Number(wrong) + Number(failed) + Number(timedOut)));
  const known = rates.filter((rate) => !Number.isNaN(rate));
  assert.deepEqual(rates.slice(0, known.length), known.toSorted((a, b) => b - a));
  for (const bad of ["tasks?state=gone", "tasks?colour=red", "tasks?sort=creator", "nodes?gpu=x", "nodes?limit=100000", "nodes?offset=1000000", "nothing", "tasks?creator=0x1"]) {
    await assert.rejects(served(`list/${bad}`), /: 400 /, bad);
  }
  const rivals = await served<{ total: number; largest: string; items: Row[] }>("rivals");
  const [takers] = (await first.sql("select count(*) as n, max(stake) as largest from node where (status = 1 and parked <> 1) or status = 2")) as [Row];
  assert.deepEqual([rivals.total, rivals.items.length, rivals.largest], [Number(takers.n), Number(takers.n), String(takers.largest)]);
  const { programs } = await served<{ programs: { address: string; selectors: number; left: number | null }[] }>("programs");
  assert.ok(programs.filter(({ left }) => left !== null && left > 300 * DAY).length >= 8);
});

test("what is new is sent as it comes, and answers are kept until then", async () => {
  await first.reach(await head(url));
  // Nobody asked this before, so it is computed now.
  const question = "list/nodes?limit=29";
  const asked = Date.now();
  const got = await fetch(new URL(`/api/${question}`, first.url));
  // An answer that took long is kept for longer.
  const rests = asked + 4 * (Date.now() - asked);
  const etag = got.headers.get("etag")!;
  assert.equal((await fetch(new URL(`/api/${question}`, first.url), { headers: { "if-none-match": etag } })).status, 304);
  const stop = new AbortController();
  const response = await fetch(new URL("/api/live", first.url), { signal: stop.signal });
  const states: { events: number; block: number }[] = [];
  const listening = (async () => {
    let held = "";
    for await (const chunk of response.body!) {
      held += new TextDecoder().decode(chunk as Uint8Array);
      for (let end = held.indexOf("\n\n"); end >= 0; end = held.indexOf("\n\n")) {
        const line = held.slice(0, end);
        held = held.slice(end + 2);
        if (!line.startsWith("data: {")) continue;
        const { block, network } = JSON.parse(line.slice(6)) as { block: number; network: { events: string } };
        states.push({ block, events: Number(network.events) });
      }
    }
  })().catch(() => undefined);
  const heard = async (is: () => boolean) => {
    for (const until = Date.now() + 120_000; !is(); await sleep(50)) if (Date.now() > until) throw new Error(`not heard of: ${JSON.stringify(states)}`);
  };
  await heard(() => states.length > 0);
  const before = states.at(-1)!;
  const mined = (await send("nameModel", ["heard/of-at-once"]))[0]!.blockNumber;
  // The first look at the chain since finds it, and the next question reads it: a second look is not answered before. test.sh --seen measures the time.
  let looks = 0;
  let read = () => {};
  const isRead = new Promise<void>((resolve) => (read = resolve));
  counter.before = (method) => {
    if (method === "eth_getBlockReceipts") read();
    if (method === "eth_getBlockByNumber" && looks++) return isRead;
  };
  try {
    await heard(() => states.at(-1)!.events === before.events + 1 && states.at(-1)!.block >= Number(mined));
  } finally {
    counter.before = () => {};
    read();
  }
  // A reader that knows the event gets no older answer.
  await sleep(Math.max(0, rests - Date.now()));
  const { block } = await served<{ block: number }>(`${question}&v=${before.events + 1}`);
  assert.ok(block >= Number(mined), `${block}, not ${mined}`);
  stop.abort();
  await listening;
});

test("what is asked is bounded, and nothing can be changed", async () => {
  const rows = await first.sql("select 1 as one from event a, event b");
  assert.ok(rows.length <= 10_000 && rows.length > 1_000);
  for (const sql of ["delete from task", "update node set stake = 0", "select pg_sleep(1)", "select * from pg_user", "drop table task"]) {
    await assert.rejects(first.sql(sql), /Invalid|not supported|syntax|error/i, sql);
  }
  await assert.rejects(first.graphql("{ tasks(limit: 100000) { items { id } } }"), /limit/i);
  const feed = await (await fetch(new URL("/feeds/nodes/1.rss", first.url))).text();
  assert.match(feed, /^<\?xml .*<item>.*<\/rss>$/s);
  const config = (await (await fetch(new URL("/config.json", first.url))).json()) as { muster: string; rpc: string };
  assert.equal(config.muster.toLowerCase(), address.toLowerCase());
  assert.equal(config.rpc, "");
});

const receiver = new Receiver();
let hooks: Awaited<ReturnType<typeof startHooks>> | undefined;
/** The newest event when webhooks began. */
let begun = 0n;
/** Waits until a receiver has all indexed events. */
async function told(path: string, where = "") {
  for (const until = Date.now() + 300_000; ; await sleep(100)) {
    const rows = await first.sql(`select id, block_hash from event where id > ${begun} and node is not null ${where}`);
    const [has, should] = [receiver.known(path), rows.map(({ id, block_hash: hash }) => `${id} ${hash}`).sort()];
    if (has.join() === should.join()) return has.length;
    if (Date.now() > until) throw new Error(`${path} has\n${has.join("\n")}\nand not\n${should.join("\n")}\n${await hooks!.said()}`);
  }
}

test("webhooks: signed, tried again, not redirected, and nothing is lost when receiver or sender are killed", async () => {
  const origin = await receiver.start();
  const [[number, operator], [, other]] = [...chosen.operators] as [[number, typeof account], [number, typeof account]];
  const list = [
    { name: "all", url: `${origin}/all`, secret: SECRET },
    { name: "one", url: `${origin}/one`, secret: SECRET, nodes: [number], events: ["NodePaused", "NodeResumed"] },
  ];
  const only = `and node = ${number} and name in ('NodePaused', 'NodeResumed')`;
  const begin = async () => {
    hooks = await startHooks(first.url, list, "hooks.state");
    while (!(await hooks.said()).includes("tells all, one")) await sleep(50);
  };
  /** Two events of the node, and some of others. */
  const happen = async () => {
    for (const sender of [operator, other]) {
      await send("pause", [], 0n, sender);
      await send("resume", [], 0n, sender);
    }
    await first.reach(await head(url));
  };
  begun = BigInt((await first.sql("select max(id) as newest from event"))[0]!.newest as string);
  await begin();
  // Events before it has noted its beginning are skipped.
  while ((await hooks!.begun()).join() !== "all,one") await sleep(50);
  // Refused twice, then sent elsewhere: neither is followed nor taken for received.
  let refusals = 0;
  receiver.answers.set("/one", (response) => void (++refusals < 3 ? response.writeHead(500).end() : response.writeHead(302, { location: `${origin}/elsewhere` }).end()));
  await happen();
  assert.equal(await told("/all"), 4);
  while (refusals < 3) await sleep(100);
  receiver.answers.delete("/one");
  assert.equal(await told("/one", only), 2);
  assert.equal(receiver.asked.get("/elsewhere"), undefined);
  // It says so once it has noted that they were received.
  for (const until = Date.now() + 300_000; !(await hooks!.said()).includes("one: received again") && Date.now() < until; ) await sleep(50);
  assert.match(await hooks!.said(), /one: it answered 500; again in [\d.]+ s[^]*one: it answered 302[^]*one: received again/);
  // Killed before it heard that they were received: they come again.
  const heard = receiver.told.get("/all")!.length;
  let isHeard = false;
  receiver.answers.set("/all", () => (isHeard = true));
  await happen();
  while (!isHeard) await sleep(50);
  await hooks!.kill();
  receiver.answers.delete("/all");
  // Meanwhile its state is one of an older version, which knew transactions alone.
  const state = `${directory}/hooks.state`;
  await writeFile(state, (await readFile(state, "utf8")).replaceAll(/(0x\w{64}) 0x\w{64}/g, "$1"));
  // And while nobody sends.
  await happen();
  await begin();
  assert.equal(await told("/all"), 12);
  assert.equal(await told("/one", only), 6);
  assert.ok(receiver.told.get("/all")!.length - heard >= 8);
  assert.ok(!receiver.told.get("/all")!.some(({ takenBack }) => takenBack));
});

test("webhooks: who is told stands in the file alone, and has to be right", async () => {
  const { hooksOf } = await import("../hooks.mjs");
  const right = { name: "a", url: "https://example.com/hook", secret: SECRET, nodes: [1] };
  assert.equal(hooksOf(JSON.stringify([right])).length, 1);
  for (const wrong of [{ url: "file:///etc/passwd" }, { url: "https://user@example.com" }, { secret: "short" }, { nodes: [] }, { nodes: ["1"] }, { events: ["a\" b"] }, { name: "../a" }, { more: 1 }]) {
    assert.throws(() => hooksOf(JSON.stringify([{ ...right, ...wrong }])), JSON.stringify(wrong));
  }
  assert.throws(() => hooksOf(JSON.stringify([right, right])));
});

test("a proposal of programs is carried out whole, and no other with it", async () => {
  const facets = (await createWalletClient({ transport: http(url) }).extend(publicActions).readContract({ address, abi: musterAbi, functionName: "facets" })) as { facetAddress: Address; functionSelectors: `0x${string}`[] }[];
  const { facetAddress: program, functionSelectors: [a, b] } = facets.find(({ functionSelectors }) => functionSelectors.length > 2)!;
  await send("proposePrograms", [program, [a, b]]);
  await send("proposePrograms", [program, [a, b, "0xdeadbeef"]]);
  await rpc(url, "evm_increaseTime", [7 * DAY + 5]);
  await send("acceptPrograms", [program, [a, b, "0xdeadbeef"]]);
  await same(first, "programs accepted");
  const open = await first.sql("select selectors from program_proposal where effective is not null");
  assert.equal(open.length, 1);
});

test("the same transactions in other blocks are other events: receivers are told, and draws are counted anew", async () => {
  const client = createWalletClient({ account, transport: http(url) }).extend(publicActions);
  const won = async () => {
    for (const until = Date.now() + 300_000; (await served<{ behind: number }>("fairness")).behind; await sleep(200)) assert.ok(Date.now() < until, "the draws are not counted");
    return new Map((await served<Page>("list/fairness?sort=node&limit=1000")).items.map(({ node, won }) => [Number(node), Number(won)]));
  };
  // Nothing else is drawn meanwhile.
  for (let i = 0; i < 5; i++) await send("dispatch", [4]);
  const [nonce, chainId] = [await client.getTransactionCount({ address: account.address }), await client.getChainId()];
  const sign = (functionName: "createTask" | "dispatch", args: unknown[], i: number, value = 0n) =>
    account.signTransaction({ to: address, data: encodeFunctionData({ abi: musterAbi, functionName, args } as never), value, gas: 5_000_000n, nonce: nonce + i, chainId, maxFeePerGas: 10n ** 9n, maxPriorityFeePerGas: 0n, type: "eip1559" });
  const signed = await Promise.all([sign("createTask", [spec], 0, parseEther("1")), ...[1, 2].map((i) => sign("dispatch", [1], i))]);
  /** The node that was drawn. */
  const play = async () => {
    let drawn = 0;
    for (const serializedTransaction of signed) {
      const { logs } = await client.waitForTransactionReceipt({ hash: await client.sendRawTransaction({ serializedTransaction }), pollingInterval: 50 });
      for (const { eventName, args } of parseEventLogs({ abi: musterAbi, logs })) if (eventName === "TaskStarted") drawn = args.node;
    }
    return drawn;
  };
  const snapshot = await rpc(url, "evm_snapshot");
  const one = await play();
  await first.reach(await head(url));
  await told("/all");
  const before = await won();
  let other = one;
  for (let back = snapshot, seconds = 2; other === one || !other; seconds++) {
    assert.ok(seconds < 30, "always the same node is drawn");
    assert.equal(await rpc(url, "evm_revert", [back]), true);
    back = await rpc(url, "evm_snapshot");
    await rpc(url, "evm_increaseTime", [seconds]);
    other = await play();
  }
  for (let i = 0; i < 3; i++) await log();
  const newest = async () => Number((await first.sql("select node from event where name = 'TaskStarted' order by id desc limit 1"))[0]!.node);
  for (const until = Date.now() + 300_000; (await newest()) !== other; await sleep(200)) assert.ok(Date.now() < until, "the draw of the branch that stays is not indexed");
  await told("/all");
  assert.ok(receiver.told.get("/all")!.some(({ takenBack }) => takenBack));
  const moved = (now: Map<number, number>) => [now.get(one)! - before.get(one)!, now.get(other)! - (before.get(other) ?? 0)].join() === "-1,1";
  for (const until = Date.now() + 60_000; !moved(await won()); await sleep(500)) assert.ok(Date.now() < until, "the draw of the branch that died is counted still");
});

test("a short reorganisation loses nothing, and leaves nothing behind", async () => {
  await send("nameModel", ["stays/in-every-branch"]);
  const snapshot = await rpc(url, "evm_snapshot");
  await send("nameModel", ["is/on-a-branch-that-dies"]);
  // Of a node, so that receivers hear of it.
  await send("pause", [], 0n, [...chosen.operators.values()][0]);
  await create();
  await send("dispatch", [1]);
  await create();
  await first.reach(await head(url));
  const named = async () => (await first.sql("select name from model where name like '%/%' order by name")).map((row) => row.name);
  assert.ok((await named()).includes("is/on-a-branch-that-dies"));
  const [before] = (await first.sql("select tasks, escrow from network")) as [Row];
  // Receivers have got the events that are about to be undone.
  await told("/all");
  const fork = await head(url);
  assert.equal(await rpc(url, "evm_revert", [snapshot]), true);
  await create();
  await send("nameModel", ["is/on-the-branch-that-stays"]);
  while ((await head(url)) <= fork + 2) await send("dispatch", [1]);
  // The indexer was further than where the branches part, so that the number alone does not say that it has come over.
  await first.reach(await head(url));
  for (let i = 0; i < 1_500 && !(await named()).includes("is/on-the-branch-that-stays"); i++) await sleep(200);
  assert.ok((await named()).includes("is/on-the-branch-that-stays"));
  assert.ok(!(await named()).includes("is/on-a-branch-that-dies"));
  assert.ok((await named()).includes("stays/in-every-branch"));
  const [now] = (await first.sql("select tasks, escrow from network")) as [Row];
  assert.notDeepEqual(now, before);
  // Receivers learn that the undone events were taken back.
  const left = await told("/all");
  assert.ok(receiver.told.get("/all")!.some(({ takenBack }) => takenBack));
  console.log(`  ${left} events by webhooks, ${receiver.told.get("/all")!.length} messages of them with what came twice or was taken back`);
  await hooks!.kill();
  receiver.stop();
  await same(first, "after a reorganisation");
});

test("killed twice, it goes on where it was", { skip: !database && "there is no PostgreSQL" }, async () => {
  let indexer = await Running.start(options({ schema: "killed" }));
  // In the middle of the existing blocks.
  for (;;) {
    const block = await indexer.block();
    if (block > (await head(url)) / 4) break;
    await sleep(50);
  }
  await indexer.kill();
  const middle = await rowsOf("killed", "event");
  indexer = await Running.start(options({ schema: "killed" }));
  await indexer.ready();
  await indexer.reach(await head(url));
  // And while it follows the chain.
  await create();
  await sleep(1_100);
  await indexer.kill();
  await create();
  await send("dispatch", [2]);
  indexer = await Running.start(options({ schema: "killed" }));
  await indexer.ready();
  console.log(`  killed when it had ${middle} events`);
  await same(indexer, "killed twice");
  await indexer.kill();
});

async function rowsOf(schema: string, table: string): Promise<number> {
  const client = new pg.Client({ connectionString: database! });
  await client.connect();
  try {
    return Number((await client.query(`select count(*) from "${schema}"."${table}"`)).rows[0].count);
  } finally {
    await client.end();
  }
}

test("a new version takes the views over when it is ready, and nobody notices", { skip: !database && "there is no PostgreSQL" }, async () => {
  const client = new pg.Client({ connectionString: database! });
  await client.connect();
  const behind = async () => (await client.query("select view_definition from information_schema.views where table_schema = 'muster' and table_name = 'task'")).rows[0].view_definition as string;
  try {
    assert.match(await behind(), /v1\.task/);
    await first.reach(await head(url));
    const known = await rowsOf("muster", "task");
    // The views change hands when all final blocks are read; the last thirty follow within seconds.
    const final = Number((await client.query("select count(*) from muster.task where created_block < $1", [(await head(url)) - 30])).rows[0].count);
    const second = await Running.start(options({ schema: "v2", views: "muster" }));
    let [reads, least] = [0, Number.POSITIVE_INFINITY];
    const old = first;
    first = second;
    let isReady = false;
    const isUp = second.ready().then(() => (isReady = true));
    while (!isReady) {
      least = Math.min(least, await rowsOf("muster", "task"));
      reads++;
      await sleep(20);
    }
    await isUp;
    await second.reach(await head(url));
    for (let i = 0; i < 3_000 && !/v2\.task/.test(await behind()); i++) await sleep(100);
    assert.match(await behind(), /v2\.task/);
    assert.ok(final > 0 && least >= final && reads > 5, `${least} of ${final} final tasks, ${reads} reads`);
    await old.kill();
    await create();
    await same(second, "the new version");
    assert.equal(await rowsOf("muster", "task"), known + 1);
    console.log(`  ${reads} reads while the versions changed: none failed, none had fewer than ${least} of ${known} tasks`);
  } finally {
    await client.end();
  }
});

test("calls to the chain", async () => {
  await first.reach(await head(url));
  const seconds = 10;
  counter.take();
  let since = performance.now();
  /** Since it was measured last. */
  const lasted = () => {
    const begun = since;
    since = performance.now();
    return (since - begun) / 1_000;
  };
  await sleep(seconds * 1_000);
  const quiet = counter.take();
  const perSecond = quiet.total / lasted();
  // Others' logs: four blocks between two looks, as on Arbitrum. Any excess over the due time is time without news.
  const blocks = 4 * seconds;
  for (let i = 0; i < blocks; i += 4) {
    for (let n = 0; n < 4; n++) await log();
    await sleep(Math.max(0, since + 250 * (i + 4) - performance.now()));
  }
  await first.reach(await head(url));
  const others = counter.take();
  const late = Math.max(0, lasted() - seconds);
  for (let i = 0; i < seconds; i++) {
    await create();
    await sleep(1_000);
  }
  await first.reach(await head(url));
  const own = counter.take();
  const perBlock = (others.total - late * perSecond) / blocks;
  const more = (own.byMethod.eth_getLogs! + own.byMethod.eth_getBlockReceipts!) / seconds;
  const day = (ofOurs: number) => Math.round(4 * DAY * perBlock + ofOurs * more);
  console.log(`  nothing new: ${quiet.total} calls in ${seconds} s ${JSON.stringify(quiet.byMethod)}`);
  console.log(`  ${blocks} blocks of others, four a second: ${others.total} calls ${JSON.stringify(others.byMethod)}`);
  console.log(`  ${seconds} blocks with events of ours, one a second: ${own.total} calls ${JSON.stringify(own.byMethod)}`);
  console.log(`  calls a day: ${Math.round(perSecond * DAY)} while nothing is new; with a block every 0.25 s ${day(0)}, and ${day(20_000)} if 20,000 of them have events of ours`);
  assert.ok(perSecond < 1.5 && perBlock < 1.5 && more <= 3, `${perSecond} a second, ${perBlock} a block, ${more} more for events`);
  await same(first, "at the end");
});
