// The page's own computations: intervals against sums computed differently, a biased network that must be found, and reorganisations.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { deserialize, serialize } from "node:v8";
import { encodeAbiParameters, encodeEventTopics } from "viem";
import { musterAbi } from "muster-client/abi";
import { modules } from "./formulas.mjs";

let page;
before(async () => void (page = await modules()));

const wins = (chances) => {
  const all = new page.Wins();
  for (const p of chances) all.add(p);
  return all;
};
const massOf = (n, p, k) => {
  let c = 1;
  for (let i = 0; i < k; i++) c = (c * (n - i)) / (i + 1);
  return c * p ** k * (1 - p) ** (n - k);
};

test("of equal chances the distribution is the binomial one", () => {
  const { from, masses } = wins(Array(40).fill(0.3));
  masses.forEach((mass, i) => assert.ok(Math.abs(mass - massOf(40, 0.3, from + i)) < 1e-10));
  assert.ok(Math.abs(masses.reduce((a, b) => a + b) - 1) < 1e-9);
});

test("of few unequal chances it is what counting all cases gives", () => {
  const chances = [0.1, 0.5, 0.9, 0.35];
  const counted = [0, 0, 0, 0, 0];
  for (let bits = 0; bits < 16; bits++) {
    let [mass, won] = [1, 0];
    chances.forEach((p, i) => {
      if (bits & (1 << i)) won++;
      mass *= bits & (1 << i) ? p : 1 - p;
    });
    counted[won] += mass;
  }
  const { from, masses } = wins(chances);
  counted.forEach((mass, k) => assert.ok(Math.abs(mass - (masses[k - from] ?? 0)) < 1e-12, `${k}`));
});

test("an interval leaves at most its share on each side, and not one more", () => {
  for (const [n, p] of [[10, 0.2], [200, 0.05], [1_000, 0.5]]) {
    const chances = Array(n).fill(p);
    const all = wins(chances);
    const { least, most, expected } = all.interval(0.05);
    const { from, masses } = all;
    const sum = (is) => masses.reduce((all, mass, i) => all + (is(from + i) ? mass : 0), 0);
    assert.ok(sum((k) => k < least) <= 0.025 && sum((k) => k <= least) > 0.025);
    assert.ok(sum((k) => k > most) <= 0.025 && sum((k) => k >= most) > 0.025);
    assert.ok(Math.abs(expected - n * p) < 1e-9);
  }
});

/** A stream of numbers in [0, 1), the same for a seed. */
const random = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
};

const [TAU, PENALTY, BOOST, EXCLUSION] = ["tau", "penaltyPpm", "boostPpm", "exclusionPpm"];

/**
 * A network by its events, read by each of these replays. It has nodes of two cards and several stakes, and tasks of several scopes. Some
 * nodes let deadlines pass, pause, leave, raise the largest stake or hold a rare model. The first replay's own weights decide the draws; node 1 is drawn as if it weighed `bias` times its weight.
 */
function network(replays, { seed, tasks, nodes, bias = 1, eventful = true }) {
  const next = random(seed);
  const [first] = replays;
  let [id, now] = [0n, 1_000_000];
  const tell = (name, args) => {
    id++;
    for (const replay of replays) replay.read({ id, name, args, block: id, at: BigInt(now) });
  };
  const groups = [(1 << 16) | 24, (2 << 16) | 80];
  tell("Initialised", { stakeUnit: "1" });
  for (const [name, value] of [[TAU, 1_800], [PENALTY, 300_000], [BOOST, 150_000], [EXCLUSION, 100_000]]) tell("ParameterChanged", { parameter: page.parameterNumbers[name], value });
  for (let node = 1; node <= nodes; node++) tell("NodeJoined", { node, group: groups[node % 3 ? 0 : 1], stake: String(400 + 100 * (node % 5)), models: node <= 3 ? ["7"] : [] });
  const running = [];
  for (let task = 1; task <= tasks; task++) {
    now += Math.floor(next() * 40);
    const spec = eventful ? { vram: next() < 0.5 ? 0 : 48, gpu: next() < 0.2 ? groups[0] : 0, models: next() < 0.2 ? ["7"] : next() < 0.2 ? ["8"] : [] } : { vram: 0, gpu: 0, models: [] };
    tell("TaskCreated", { id: String(task), estimate: 60, spec: { ...spec, redundancy: 0 } });
    const drawn = first.candidates(first.nodes.keys(), { ...spec, models: spec.models.map(BigInt) }, now).map(({ node, weight }) => ({ node, weight: Number(weight) * (node === 1 ? bias : 1) }));
    let point = next() * drawn.reduce((all, { weight }) => all + weight, 0);
    const winner = drawn.find(({ weight }) => (point -= weight) < 0);
    if (winner) {
      tell("TaskStarted", { id: String(task), node: winner.node, boosts: true });
      running.push({ task, node: winner.node });
    } else tell("TaskAborted", { id: String(task), reason: 1 });
    while (running.length > nodes / 3) {
      const { task, node } = running.splice(Math.floor(next() * running.length), 1)[0];
      if (eventful && next() < 0.15) tell("TaskAborted", { id: String(task), node, reason: 0 });
      else tell("TaskSucceeded", { id: String(task), node });
    }
    if (!eventful) continue;
    const some = 1 + Math.floor(next() * nodes);
    const { status, stake } = first.nodes.get(some);
    if (next() < 0.02 && status === 1) tell("NodePaused", { node: some });
    else if (next() < 0.1 && status === 5) tell("NodeResumed", { node: some });
    else if (next() < 0.01 && status === 1) tell("StakeRaised", { node: some, stake: String(stake + 300n) });
    else if (next() < 0.005 && status === 1) tell("NodeQuit", { node: some });
  }
}

test("a fair network is called fair about as often as it has to be, an unfair one is found", async () => {
  const core = await page.loadCore();
  const found = async (few, options) => {
    const shares = new page.Shares(core, few);
    network([shares], { nodes: 12, eventful: false, ...options });
    return shares.result();
  };
  // Told to each candidate, and summed up by groups.
  for (const few of [64, 0]) {
    let [alarms, beyond] = [0, 0];
    for (let seed = 1; seed <= 40; seed++) {
      const { nodes, ...all } = await found(few, { seed, tasks: 200 });
      alarms += Number(nodes.some(({ outside }) => outside));
      beyond += all.beyond;
      assert.equal(nodes.reduce((all, { won }) => all + won, 0), 200);
      assert.ok(Math.abs(nodes.reduce((all, { expected }) => all + expected, 0) - 200) < 1e-6);
    }
    // 0.05 of 40 are 2; more than 6 happen in 0.3 % of such tests, more than 42 of 480 nodes beyond 5 % in 0.01 %.
    assert.ok(alarms <= 6, `${alarms} alarms`);
    assert.ok(beyond <= 42, `${beyond} nodes`);
    const unfair = await found(few, { seed: 99, tasks: 2_000, bias: 2 });
    assert.deepEqual(unfair.nodes.filter(({ outside, won, most }) => outside && won > most).map(({ node }) => node), [1]);
  }
});

test("summed up by groups a network comes to what telling each draw to each candidate does", async () => {
  const core = await page.loadCore();
  const [each, sums] = [new page.Shares(core, Number.POSITIVE_INFINITY), new page.Shares(core, 0)];
  network([each, sums], { seed: 5, tasks: 3_000, nodes: 40 });
  const [exact, summed] = [await each.result(), await sums.result()];
  assert.ok(exact.draws > 2_000 && each.leftOut.missed === 0);
  assert.deepEqual(sums.leftOut, each.leftOut);
  const other = new Map(summed.nodes.map((fair) => [fair.node, fair]));
  assert.equal(other.size, exact.nodes.length);
  for (const { node, won, draws, expected, least, most } of exact.nodes) {
    const same = other.get(node);
    assert.deepEqual([same.won, same.draws], [won, draws], `node ${node}`);
    // H within a ten-thousandth of 1 counts as 1.
    assert.ok(Math.abs(same.expected - expected) < 1e-4 * expected, `node ${node}: ${same.expected}, ${expected}`);
    // The range of chance is exact, or a little wider.
    assert.ok(same.least <= least && same.most >= most && same.most - same.least <= most - least + 4, `node ${node}: ${same.least} to ${same.most}, ${least} to ${most}`);
  }
});

test("what is put down and taken up again comes to the same", async () => {
  const core = await page.loadCore();
  for (const few of [64, 0]) {
    const whole = new page.Shares(core, few);
    let [parts, events] = [new page.Shares(core, few), 0];
    const read = (event) => {
      if (++events % 251 === 0) {
        const state = serialize(parts.state());
        parts = new page.Shares(core, few);
        parts.restore(deserialize(state));
      }
      parts.read(event);
    };
    network([whole, { read }], { seed: 6, tasks: 1_500, nodes: 30 });
    assert.ok(events > 3_000);
    assert.deepEqual(await parts.result(), await whole.result());
    assert.deepEqual(parts.leftOut, whole.leftOut);
  }
});

test("of many draws with one chance the number and the sum are enough", () => {
  for (const [n, p] of [[40, 0.3], [1_000, 0.01], [100_000, 0.0001]]) {
    const [all, summed] = [wins(Array(n).fill(p)), page.binomial(n, n * p)];
    all.masses.forEach((mass, i) => assert.ok(Math.abs(mass - (summed.masses[all.from + i - summed.from] ?? 0)) < 1e-9));
    assert.deepEqual(summed.interval(0.05), { ...all.interval(0.05), expected: n * p });
  }
  const both = page.joint(wins([0.5, 0.1]), page.binomial(2, 1.4));
  wins([0.5, 0.1, 0.7, 0.7]).masses.forEach((mass, k) => assert.ok(Math.abs(mass - both.masses[k - both.from]) < 1e-12));
});

test("what changed in an answer, put into the one before, gives the one after", () => {
  const next = random(7);
  const pick = (n) => Math.floor(next() * n);
  const row = () => ({ id: pick(30), name: `n${pick(5)}`, list: Array.from({ length: pick(4) }, () => pick(3)) });
  const answer = () => ({ block: pick(3), ...(pick(2) ? { some: null } : {}), items: Array.from({ length: pick(6) }, row), sums: { a: pick(3), b: pick(2) ? { c: "x" } : [1] } });
  for (let i = 0; i < 2_000; i++) {
    const [before, after] = [answer(), answer()];
    const said = JSON.stringify(before);
    const patch = page.patchOf(before, after);
    assert.deepEqual(patch ? page.patched(before, JSON.parse(JSON.stringify(patch))) : before, after);
    assert.equal(JSON.stringify(before), said);
  }
  const rows = Array.from({ length: 50 }, (_, id) => ({ id }));
  // A new row before the others costs a row.
  assert.deepEqual(page.patchOf(rows, [{ id: 99 }, ...rows.slice(0, 49)]), { rows: [{ is: { id: 99 } }, [0, 49]] });
  assert.equal(page.patchOf(rows, rows.map((one) => ({ ...one }))), undefined);
});

test("twice the smaller tail, and what is cut off far out is nothing", () => {
  const all = wins(Array(20_000).fill(0.01));
  assert.ok(all.masses.length < 600 && Math.abs(all.masses.reduce((a, b) => a + b) - 1) < 1e-9, `${all.masses.length} masses`);
  assert.equal(all.tail(200), 1);
  // By the normal distribution it would be 0.0455: 28 above the mean are two standard deviations.
  assert.ok(Math.abs(all.tail(228) - 0.05) < 0.01, `${all.tail(228)}`);
});

test("shares: of equals, of one that alone holds the model, of a stake above all others", async () => {
  const core = await page.loadCore();
  const node = { group: (1 << 16) | 24, stake: 400n, longTerm: page.WAD / 2n, h: page.WAD, models: new Set([7n]), inUse: [] };
  const rivals = Array.from({ length: 3 }, (_, i) => ({ ...node, node: i + 1 }));
  const tasks = [{ vram: 24, gpu: 0, models: [], paid: 1_000n, redundancy: 0 }];
  assert.equal(page.income(core, rivals, node, tasks).earned, 250n);
  // Three of three thousand stand for all of them.
  assert.equal(page.income(core, rivals, node, [{ ...tasks[0], paid: 3_010n }], { total: 3_000, largest: 400n }).earned, 1n);
  const alone = page.income(core, rivals.map((rival) => ({ ...rival, models: new Set() })), node, [{ ...tasks[0], models: [7n] }]);
  assert.deepEqual([alone.share, alone.earned], [1, 1_000n]);
  assert.equal(page.income(core, rivals, { ...node, models: new Set() }, [{ ...tasks[0], models: [7n] }]).share, 0);
  assert.equal(page.income(core, rivals, node, [{ ...tasks[0], vram: 48 }]).runnable, 0);
  // S of the others halves: W = S Q / (S + Q) of 1/2 and 1/2 beside 1 and 1/2: 1/4 and 1/3.
  const rich = page.income(core, rivals, { ...node, stake: 1_600n }, tasks).share;
  assert.ok(Math.abs(rich - 1 / 3 / (1 / 3 + 3 / 4)) < 1e-9, `${rich}`);
});

test("CSV: quotes, numbers whole, and no formula for a spreadsheet", () => {
  const columns = [
    { key: "a", label: "A, B", value: ({ a }) => a },
    { key: "n", label: "N", value: ({ n }) => n },
  ];
  const said = page.csv(columns, [{ a: '=HYPERLINK("x")', n: 10n ** 24n }, { a: "plain", n: null }]);
  assert.equal(said, '"A, B",N\r\n"\'=HYPERLINK(""x"")",1000000000000000000000000\r\nplain,\r\n');
});

test("an address that nobody can decode is a place all the same", () => {
  const { location } = globalThis;
  try {
    for (const [hash, view, what] of [["#/task/%37", "task", "7"], ["#/task/%", "task", "%"], ["#/%E0%A4/%c0", "%E0%A4", "%c0"], ["", "network", ""]]) {
      globalThis.location = { hash };
      const place = page.here();
      assert.deepEqual([place.view, place.what], [view, what], hash);
    }
  } finally {
    globalThis.location = location;
  }
});

test("a branch that a reorganisation replaces is replayed no further, whenever that happens", async () => {
  const core = await page.loadCore();
  const branches = [1, 2].map((seed) => {
    const [replay, events] = [new page.Replay(core), []];
    network([replay, { read: (event) => events.push({ ...event, blockHash: `0x0${seed}` }) }], { seed, tasks: 700, nodes: 12, eventful: false });
    return { replay, events };
  });
  let [events, passed] = [[], 0];
  globalThis.fetch = async (_, { body }) => {
    if (!passed--) ({ events } = branches[1]);
    const least = BigInt(/id_gte: \\"(\d+)/.exec(body)[1]);
    const items = events.filter(({ id }) => id >= least).slice(0, 1_000);
    return new Response(JSON.stringify({ data: { rows: { items, pageInfo: {} } } }, (_, value) => (typeof value === "bigint" ? String(value) : value)));
  };
  assert.ok(branches.every(({ events }) => events.length > 2_000));
  const is = async (branch) => {
    [{ events }, passed] = [branches[branch], -1];
    assert.deepEqual((await page.replayed(core)).draws, branches[branch].replay.draws);
  };
  for (let until = 0; until < 6; until++) {
    [{ events }, passed] = [branches[0], until];
    // Twice, so that the second one goes on from the first.
    for (let i = 0; i < 2; i++) await page.replayed(core);
    for (const branch of [1, 0, 1]) await is(branch);
  }
});

test("an open view is drawn anew where a reorganisation leaves as many events", async () => {
  const names = ["EventSource", "document", "fetch"];
  const before = names.map((name) => globalThis[name]);
  const sources = [];
  globalThis.EventSource = function () {
    sources.push(Object.assign(this, { close: () => undefined }));
    setTimeout(() => tell(branch));
  };
  globalThis.document = { hidden: false, addEventListener: () => undefined, removeEventListener: () => undefined };
  // As many events, up to the same block, of this branch.
  const answer = (branch) => ({ block: 7, at: 7, total: branch, largest: "0", items: [] });
  const tell = (branch, rest) => {
    const network = { events: "5", block: "7", blockHash: `0x0${branch}` };
    sources.at(-1).onmessage({ data: JSON.stringify({ block: 7, at: 7, ready: true, from: 1, chain: 7, left: 0, chainId: 1, network, ...rest }) });
  };
  let [branch, shown, meanwhile] = [1];
  globalThis.fetch = async () => {
    const response = new Response(JSON.stringify(answer(branch)), { headers: { etag: `"${branch}"` } });
    meanwhile?.();
    return response;
  };
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const until = async (what, is) => {
    for (const end = Date.now() + 60_000; !is(); await sleep(20)) assert.ok(Date.now() < end, what);
    // Until the view is at rest.
    await sleep(1_500);
  };
  page.setConfig({ indexer: "" });
  void page.watch();
  page.render(page.h(() => void (shown = page.useAsked("rivals", page.askRivals).data?.total)), { childNodes: [] });
  try {
    await until("nothing is shown", () => shown === 1);
    tell((branch = 2));
    await until("a branch that was replaced is shown", () => shown === 2);
    // This one is replaced while its answer is on its way.
    meanwhile = () => {
      meanwhile = undefined;
      tell((branch = 4));
    };
    tell((branch = 3));
    await until("a branch that was replaced during the question is shown", () => shown === 4);
    // A change that comes after the state that it belongs to.
    tell(4, { follows: ["rivals?"], answers: { "rivals?": { from: '"4"', to: '"4"' } } });
    tell((branch = 5));
    await sleep(100);
    tell(5, { answers: { "rivals?": { from: '"4"', to: '"5"', by: page.patchOf(answer(4), answer(5)) } } });
    await until("a change that was sent is not shown", () => shown === 5);
  } finally {
    names.forEach((name, i) => (globalThis[name] = before[i]));
  }
});

test("of a bundle's tasks the account's own is shown", () => {
  const [own, other, muster] = ["11", "22", "5a"].map((byte) => `0x${byte.repeat(20)}`);
  const created = (id, creator, address = muster) => {
    const { inputs } = musterAbi.find(({ type, name }) => type === "event" && name === "TaskCreated");
    const spec = { kind: 1, units: 1, vram: 0, gpu: 0, redundancy: 0, flags: 0, inputDigest: `0x${"00".repeat(32)}`, models: [] };
    const data = encodeAbiParameters(inputs.slice(2), [9n, 60, 120, 200, 5n, spec]);
    return { address, data, topics: encodeEventTopics({ abi: musterAbi, eventName: "TaskCreated", args: { id, creator } }) };
  };
  const logs = [created(1n, other), created(2n, own, other), created(3n, own), created(4n, other)];
  assert.equal(page.createdBy(own, muster, logs), 3n);
  assert.equal(page.createdBy(own, muster, logs.slice(0, 2)), undefined);
});

test("a late task can be ended while it runs, and once its answer is committed to", () => {
  const offered = (status, deadline = 100n) => page.expiryOf({ status, deadline }, 200);
  assert.deepEqual([0, 1, 2, 3, 4, 5, 6].map((status) => offered(status)?.label), [undefined, undefined, undefined, "End it as too late", "End it as not revealed", undefined, undefined]);
  assert.match(offered(3).explains, /silent beyond the deadline/);
  assert.match(offered(3, 300n).explains, /once its deadline has passed/);
  assert.match(offered(4).explains, /sampleWindow/);
});

test("a rated task is paid for as many nodes as its account's profile allows", async () => {
  const of = (policy, account, most = 9) => page.paymentsOf({ readContract: async ({ functionName, args }) => [{ most: functionName === "profile" && args[0] === "0xa" ? most : assert.fail() }] }, "0x5a", policy, account);
  assert.deepEqual(await Promise.all([0, 1, 2].map((policy) => of(policy, "0xa"))), [1n, 1n, 3n]);
  assert.deepEqual([await of(3, "0xa"), await of(3, "0xa", 0), await of(3, undefined)], [9n, 7n, 7n]);
});
