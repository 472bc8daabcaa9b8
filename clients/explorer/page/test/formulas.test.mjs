// What the page computes itself: intervals against sums done otherwise, and a biased network that has to be found.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { modules } from "./formulas.mjs";

let page;
before(async () => void (page = await modules()));

const wins = (chances) => {
  const all = new page.Wins();
  for (const p of chances) all.add(p);
  return all;
};
const fairness = (draws) => {
  const tally = new page.Tally();
  for (const { winner, candidates } of draws) tally.add(winner, candidates);
  return tally.result();
};
const binomial = (n, p, k) => {
  let c = 1;
  for (let i = 0; i < k; i++) c = (c * (n - i)) / (i + 1);
  return c * p ** k * (1 - p) ** (n - k);
};

test("of equal chances the distribution is the binomial one", () => {
  const { from, masses } = wins(Array(40).fill(0.3));
  masses.forEach((mass, i) => assert.ok(Math.abs(mass - binomial(40, 0.3, from + i)) < 1e-10));
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

/** Draws among twelve nodes, of whom some are away; the first is met as if it weighed `bias` times what it does. */
function draws(seed, number, bias) {
  const next = random(seed);
  return Array.from({ length: number }, (_, task) => {
    const there = Array.from({ length: 12 }, (_, node) => ({ node, weight: 1 + (node % 4) })).filter(({ node }) => node === 0 || next() < 0.7);
    const sum = there.reduce((all, { weight }) => all + weight, 0);
    const met = there.map(({ node, weight }) => weight * (node ? 1 : bias));
    let point = next() * met.reduce((a, b) => a + b);
    const winner = there[met.findIndex((weight) => (point -= weight) < 0)].node;
    return { task, winner, candidates: there.map(({ node, weight }) => ({ node, chance: weight / sum })) };
  });
}

test("twice the smaller tail, and what is cut off far out is nothing", () => {
  const all = wins(Array(20_000).fill(0.01));
  assert.ok(all.masses.length < 600 && Math.abs(all.masses.reduce((a, b) => a + b) - 1) < 1e-9, `${all.masses.length} masses`);
  assert.equal(all.tail(200), 1);
  // By the normal distribution it would be 0.0455: 28 above the mean are two standard deviations.
  assert.ok(Math.abs(all.tail(228) - 0.05) < 0.01, `${all.tail(228)}`);
});

test("a fair network is called fair about as often as it has to be, an unfair one is found", () => {
  let [alarms, beyond] = [0, 0];
  for (let seed = 1; seed <= 40; seed++) {
    const found = fairness(draws(seed, 400, 1));
    alarms += Number(found.nodes.some(({ outside }) => outside));
    beyond += found.beyond;
    assert.equal(found.nodes.reduce((all, { won }) => all + won, 0), 400);
    assert.ok(Math.abs(found.nodes.reduce((all, { expected }) => all + expected, 0) - 400) < 1e-6);
  }
  // 0.05 of 40 are 2; more than 6 happen in 0.3 % of such tests, more than 42 of 480 nodes beyond 5 % in 0.01 %.
  assert.ok(alarms <= 6, `${alarms} alarms`);
  assert.ok(beyond <= 42, `${beyond} nodes`);
  const unfair = fairness(draws(99, 2_000, 2));
  assert.deepEqual(unfair.nodes.filter(({ outside, won, most }) => outside && won > most).map(({ node }) => node), [0]);
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
