// The page in a real browser, on the real indexer, on a development node.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import { TaskKind } from "muster-client";
import { createWalletClient, http, publicActions } from "viem";
import { modules } from "./formulas.mjs";
import { makeHistory } from "./history.mjs";
import { BLOCK_EXPLORER, FEE, MODELS, serve, sleep, startAll, startIndexer, until } from "./network.mjs";
import { questions } from "./questions.mjs";
import { stream } from "./stream.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const LAPTOP = { width: 1366, height: 850 };
const PHONE = { width: 390, height: 844 };
// SHOTS names a directory for pictures of all views.
const { SHOTS } = process.env;
if (SHOTS) mkdirSync(SHOTS, { recursive: true });

let all;
let made;
const problems = [];
before(async () => {
  all = await startAll(makeHistory);
  ({ made } = all);
  await caughtUp();
});
after(() => all?.stop());

const ask = async (query) => {
  const response = await fetch(`${all.indexer.origin}/graphql`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ query }) });
  return (await response.json()).data;
};
const caughtUp = (seconds = 1_200) =>
  until("the indexer has every block", async () => {
    const head = await all.network.client.getBlockNumber({ cacheTime: 0 });
    // A busy server may close the kept connection on which it is asked.
    const answer = await ask("{ _meta { status } }").catch(() => undefined);
    return answer && BigInt(Object.values(answer._meta.status)[0].block.number) >= head;
  }, seconds);

/** A view in a window of its own; the page's errors fail the test at the end. */
async function open(view, { viewport = LAPTOP, colorScheme = "light", origin = all.site.origin, quiet = false } = {}) {
  const context = await all.browser.newContext({ viewport, colorScheme, acceptDownloads: true, hasTouch: viewport === PHONE });
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  if (!quiet) {
    page.on("pageerror", (error) => problems.push(`${view}: ${error.stack}`));
    page.on("console", (message) => message.type() === "error" && problems.push(`${view}: ${message.text()}`));
  }
  // Requests to other places than the three configured ones.
  page.on("request", (request) => {
    const { origin: asked, protocol } = new URL(request.url());
    if (protocol.startsWith("http") && ![origin, all.indexer.origin, all.network.url.replace(/\/$/, "")].includes(asked)) problems.push(`${view} asked ${request.url()}`);
  });
  await page.goto(`${origin}/#/${view}`);
  return page;
}
const close = (page) => page.context().close();
const shown = (page, selector) => page.locator(selector).first().waitFor();
const figure = async (page, label) => (await page.locator(".figure", { has: page.locator(`dt:text-is("${label}")`) }).first().locator("dd").evaluate((dd) => [...dd.childNodes].filter(({ nodeName }) => nodeName !== "SMALL").map(({ textContent }) => textContent).join(""))) ?? "";

describe("views", () => {
  test("network: what the contract's own views say, and what happens while one looks", async () => {
    const page = await open("network");
    await shown(page, 'table[data-table="nodes"]');
    const { nodesJoined } = await all.network.client.getOverview();
    assert.match(await figure(page, "Nodes"), new RegExp(`^${nodesJoined}$`));
    assert.equal(await page.locator('table[data-table="nodes"] tbody tr').count(), nodesJoined);
    for (const node of all.network.nodes) node.behave("silent");
    const { id } = await all.network.client.createTask({ kind: TaskKind.gpt, input: "seen at once", value: FEE, dispatch: true });
    await shown(page, `table[data-table="running"] a:text-is("#${id}")`);
    // The table may have been asked for after the figure.
    await until("it is counted", async () => /^1/.test(await figure(page, "Running")));
    assert.match(await page.locator('table[data-table="running"] .left').first().textContent(), /min|s/);
    for (const node of all.network.nodes) node.behave("answers");
    await until("it is gone from the running ones", async () => (await page.locator(`table[data-table="running"] a:text-is("#${id}")`).count()) === 0);
    assert.match(await page.locator("[data-test=status]").textContent(), /Block [\d,]+, \d+ s old/);
    await close(page);
  });

  test("task: from creation to payment, checked in the browser", async () => {
    const page = await open(`task/${made.single[0]}`);
    await shown(page, ".timeline li.TaskSucceeded");
    assert.match(await page.locator(".timeline").textContent(), /Created with a fee.*Started on node \d+.*was paid/);
    await shown(page, "[data-test=checks] .checks li");
    assert.match(await page.locator("[data-test=checks] h2").textContent(), / 0 wrong/);
    assert.match(await page.locator("[data-test=checks]").textContent(), /right.*Payment/);
    // Done again by the browser, with the storage of the block before.
    assert.match(await page.locator("[data-test=checks] .checks li", { hasText: "Draw of node" }).first().textContent(), /^right.*the same \d+ events/);
    await shown(page, '[data-test=draw] table[data-table="candidates"]');
    await close(page);
  });

  test("task: a chain that lies is found out", async () => {
    const page = await open("network", { quiet: true });
    const { client, address } = all.network;
    const [succeeded] = (await client.getEvents({ id: made.single[0], fromBlock: 0n, toBlock: await client.getBlockNumber() })).filter(({ eventName }) => eventName === "TaskSucceeded");
    assert.ok(succeeded && address);
    await page.route(`${all.network.url.replace(/\/$/, "")}/**`, async (route) => {
      const response = await route.fetch();
      const paid = succeeded.args.paid.toString(16).padStart(64, "0");
      const less = (succeeded.args.paid - 1n).toString(16).padStart(64, "0");
      // Only the event of the payment, by its digest: the fee of the creation stays.
      await route.fulfill({ response, body: (await response.text()).replaceAll(succeeded.args.resultDigest.slice(2) + paid, succeeded.args.resultDigest.slice(2) + less) });
    });
    await page.goto(`${all.site.origin}/#/task/${made.single[0]}`);
    await shown(page, "[data-test=checks] .checks li");
    // The payment, and its transaction, which comes to another event.
    assert.match(await page.locator("[data-test=checks] h2").textContent(), / 2 wrong/);
    // It goes on asking for the newest block: the last answer must be through before the page goes.
    await page.unrouteAll({ behavior: "wait" });
    await close(page);
  });

  test("task: without an RPC endpoint it says that nothing is checkable", async () => {
    const site = await serve(all.directory, { indexer: all.indexer.origin });
    const page = await open(`task/${made.single[0]}`, { origin: site.origin });
    await shown(page, "[data-test=checks]");
    assert.match(await page.locator("[data-test=checks]").textContent(), /Not checkable here/);
    await close(page);
    await site.close();
  });

  test("task: a group with its commitments, answers, distances and judgement; the cheat slashed", async () => {
    assert.ok(made.cheated, "the cheat was never drawn");
    const page = await open(`task/${made.cheated}`);
    await shown(page, 'table[data-table^="group-"]');
    const row = page.locator('table[data-table^="group-"] tbody tr', { has: page.locator(`td:first-child a:text-is("${all.network.nodes[0].number}")`) });
    assert.match(await row.textContent(), /answered.*0x.*0x.*no.*wrong.*ETH/);
    await shown(page, "[data-test=checks] .checks li");
    assert.match(await page.locator("[data-test=checks] h2").textContent(), / 0 wrong/);
    await close(page);
    const images = await open(`task/${made.images}`);
    await shown(images, 'table[data-table^="group-"]');
    assert.match(await images.locator('table[data-table^="group-"]').textContent(), /Bits from the right one.*0 0/);
    await close(images);
  });

  test("task: a group chosen by ratings", async () => {
    const page = await open(`task/${made.rated}`);
    await shown(page, ".timeline li.GroupChosen");
    assert.match(await page.locator(".timeline").textContent(), /Chosen by ratings, which make them right with a likelihood of 0\.\d+/);
    await page.getByText("Several nodes were chosen at once by their ratings").waitFor();
    await shown(page, "[data-test=checks] .checks li");
    assert.match(await page.locator("[data-test=checks] h2").textContent(), / 0 wrong/);
    for (const subject of ["Draw", "Judgement", "Payment"]) assert.match(await page.locator("[data-test=checks] .checks li", { hasText: subject }).first().textContent(), /^right/);
    await close(page);
  });

  test("node: H as the contract has it, the evidence of a slash, earnings as CSV", async () => {
    const cheat = all.network.nodes[0].number;
    const page = await open(`node/${cheat}`);
    await shown(page, 'table[data-table="slashes"]');
    assert.match(await page.locator('table[data-table="slashes"]').textContent(), /It revealed 0x.*others agreed on another/);
    await shown(page, ".chart canvas");
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Earnings per day: save as CSV" }).click()]);
    const lines = readFileSync(await file.path(), "utf8").trim().split("\r\n");
    const { nodeDays } = await ask(`{ nodeDays(where: { node: ${cheat} }) { items { earned } } }`);
    assert.deepEqual(lines.slice(1).map((line) => line.split(",")[1]).sort(), nodeDays.items.map(({ earned }) => earned).sort());
    await close(page);
    const late = await open(`node/${made.late.node}`);
    await shown(late, "[data-test=h]");
    // The node's clock was moved: a new block tells the page how far.
    await all.write(all.network.nodes[1].account, "nameModel", ["a model, to have an event"]);
    await until("H is shown as the contract has it", async () => {
      const { reliability } = await all.network.client.getNode({ number: made.late.node });
      return Math.abs(Number(await late.locator("[data-test=h]").textContent()) - Number(reliability) / 1e18) < 0.01;
    });
    // The replay tells it, which may still go on.
    await until("what lowered H is told", async () => /lowered (once|twice|\d)/.test(await late.locator("main").textContent()));
    await close(late);
  });

  test("fairness: the replayed weights are the contract's, draw by draw", async () => {
    const page = await open("fairness");
    await shown(page, 'table[data-table="fairness"]');
    assert.ok(Number(await page.locator(".figure dd").first().evaluate((dd) => dd.firstChild.textContent)) >= 20);
    await close(page);
    const own = await modules();
    own.setConfig({ name: "", indexer: all.indexer.origin, rpc: "", muster: "", fromBlock: 0, symbol: "ETH" });
    const core = await own.loadCore();
    const replay = await own.replayed(core);
    // Members of groups chosen by ratings are counted apart.
    const { validations } = await ask("{ validations(limit: 1000) { items { redundancy size } } }");
    const seats = validations.items.filter(({ redundancy }) => redundancy === 3).reduce((sum, { size }) => sum + size, 0);
    assert.ok(seats >= 3);
    assert.equal(replay.leftOut.rated, seats);
    assert.equal(replay.leftOut.missed, 0);
    // The indexer's sums match these draws.
    const told = new Map();
    for (const draw of replay.draws) {
      const candidates = own.candidatesOf(draw);
      if (candidates.length < 2) continue;
      for (const { node, chance } of candidates) {
        const of = told.get(node) ?? { draws: 0, won: 0, expected: 0 };
        told.set(node, { draws: of.draws + 1, won: of.won + Number(node === draw.winner), expected: of.expected + chance });
      }
    }
    const { items } = await (await fetch(`${all.indexer.origin}/api/list/fairness?sort=node&limit=1000`)).json();
    assert.deepEqual(items.map(({ node, draws, won, expected }) => [node, draws, won, expected.toFixed(6)]), [...told].sort(([a], [b]) => a - b).map(([node, { draws, won, expected }]) => [node, draws, won, expected.toFixed(6)]));
    const sums = await (await fetch(`${all.indexer.origin}/api/fairness`)).json();
    assert.deepEqual([sums.behind, sums.nodes, sums.leftOut], [0, told.size, replay.leftOut]);
    // H now, to the last digit, and the idle nodes.
    const { timestamp } = await all.network.client.getBlock();
    for (const [number, node] of replay.nodes) {
      const view = await all.network.client.getNode({ number, blockNumber: await all.network.client.getBlockNumber() });
      assert.deepEqual([node.status, replay.longTerm(node), node.parked, [...node.held].sort()], [view.status, view.longTerm, view.parked > 0, [...view.models].sort()], `node ${number}`);
      assert.ok(replay.reliability(node, Number(timestamp)) <= view.reliability && view.reliability - replay.reliability(node, Number(timestamp)) < 10n ** 15n, `H of node ${number}`);
    }
    // The weights in the block before a draw, asked of the contract: equal where H was 1, so that no second is between.
    let compared = 0;
    for (const { task, block, nodes, weights } of replay.draws.slice(0, 24)) {
      const { tasks } = await ask(`{ tasks(where: { id: "${task}" }) { items { kind units vram gpu redundancy inputDigest models } } }`);
      const [{ models, ...rest }] = tasks.items;
      const spec = { ...rest, flags: 0, models: models.map(BigInt) };
      for (const { node, weight } of own.candidatesOf({ nodes, weights })) {
        const view = await all.network.client.getWeightOf({ number: node, spec, blockNumber: block - 1n });
        if (view.reliability < 10n ** 18n) continue;
        assert.deepEqual([view.eligible, view.weight], [true, weight], `task ${task}, node ${node}`);
        compared++;
      }
    }
    assert.ok(compared >= 60, `${compared} weights compared`);
    assert.equal(replay.draws.reduce((sum, draw) => sum + own.candidatesOf(draw).reduce((all, { chance }) => all + chance, 0), 0).toFixed(6), replay.draws.length.toFixed(6));
    // A draw that is no longer kept is replayed alone, and comes out the same.
    const [oldest] = replay.draws;
    replay.draws.shift();
    const { events } = await ask(`{ events(where: { task: "${oldest.task}" }, orderBy: "id", orderDirection: "desc", limit: 1) { items { id } } }`);
    assert.deepEqual(await own.drawsOf(core, oldest.task, BigInt(events.items[0].id)), [oldest]);
  });

  test("what if: more stake, more models, more of the tasks", async () => {
    const page = await open("whatif");
    const share = async () => Number.parseFloat(await page.locator("[data-test=share]").textContent());
    await shown(page, "[data-test=share]");
    const before = await share();
    assert.ok(before > 0 && before < 100);
    const slider = page.locator("input[type=range]");
    await slider.focus();
    for (let i = 0; i < 12; i++) await page.keyboard.press("ArrowRight");
    await until("the share grows with the stake", async () => (await share()) > before);
    const more = await share();
    await page.locator(".choices input:not(:checked)").first().check();
    await until("it grows with another model", async () => (await share()) > more);
    await page.reload();
    await shown(page, "[data-test=share]");
    assert.ok((await share()) > more, "what was chosen stands in the address");
    await close(page);
  });

  test("what if: what it says of a node is what the contract weighs when that node has joined", async () => {
    const own = await modules();
    const core = await own.loadCore();
    const { client } = all.network;
    const { stakeUnit } = await client.getOverview();
    const spec = { kind: 1, units: 1, vram: 0, gpu: 0, redundancy: 0, flags: 0, inputDigest: `0x${"11".repeat(32)}`, models: [] };
    const views = await Promise.all(all.network.nodes.map(({ number }) => client.getNode({ number })));
    const weights = await Promise.all(all.network.nodes.map(({ number }) => client.getWeightOf({ number, spec })));
    const rivals = views.map((view, i) => ({ node: view.node, group: view.gpu, stake: view.stake / stakeUnit, longTerm: view.longTerm, h: weights[i].reliability, models: new Set(), inUse: [] }));
    // As if the first were not there: the result for a node like it is its own share.
    const [first, ...others] = rivals;
    const { share } = own.income(core, others, first, [{ vram: 0, gpu: 0, models: [], paid: 10n ** 18n, redundancy: 0 }]);
    const sum = weights.reduce((all, { weight }) => all + weight, 0n);
    assert.equal(share.toFixed(9), (Number(weights[0].weight) / Number(sum)).toFixed(9));
  });

  test("search: by task, node, address, model and transaction", async () => {
    const page = await open("network");
    await shown(page, 'table[data-table="nodes"]');
    const { account } = all.network.client;
    const look = async (words) => {
      await page.getByRole("searchbox").fill(words);
      await page.keyboard.press("Enter");
    };
    /** One of several hits. */
    const looked = async (words, href) => {
      await look(words);
      await shown(page, `.hits a[href="${href}"]`);
    };
    /** A single match opens, and Back leads to the place of the search. */
    const opened = async (words, href) => {
      await page.goto(`${all.site.origin}/#/live`);
      await page.getByRole("heading", { level: 1, name: "Live" }).waitFor();
      await look(words);
      await until(`${words} opens`, async () => page.url().endsWith(href));
      await page.goBack();
      await page.getByRole("heading", { level: 1, name: "Live" }).waitFor();
    };
    await opened(String(made.single[12]), `#/task/${made.single[12]}`);
    await looked("3", "#/node/3");
    await looked("3", "#/task/3");
    await opened(account.address, `#/account/${account.address.toLowerCase()}`);
    await opened("llama", `#/model/${BigInt((await ask('{ models(where: { name_contains: "Llama" }) { items { id } } }')).models.items[0].id)}`);
    const { tasks } = await ask(`{ tasks(where: { id: "${made.single[1]}" }) { items { createdTx } } }`);
    await opened(tasks.items[0].createdTx, `#/task/${made.single[1]}`);
    await opened("RTX 4090", `#/nodes?gpu=${all.network.nodes[5].group}`);
    await page.getByRole("searchbox").fill("no such thing");
    await page.keyboard.press("Enter");
    await page.getByText("Nothing is called so").waitFor();
    await close(page);
  });

  test("tables: sorted by keyboard, kept on Back; every one as CSV", async () => {
    const page = await open("network");
    await shown(page, 'table[data-table="nodes"]');
    const head = page.locator('table[data-table="nodes"] th button', { hasText: "Stake" });
    await head.focus();
    await page.keyboard.press("Enter");
    const order = () => page.locator('table[data-table="nodes"] tbody td:first-child').allTextContents();
    await until("it is sorted", async () => (await page.locator('table[data-table="nodes"] th[aria-sort] .sort').textContent()) === "Stake ↓");
    await until("the indexer has sorted it", async () => (await page.locator('section[aria-busy="true"]').count()) === 0);
    const stakes = await page.locator('table[data-table="nodes"] tbody tr').evaluateAll((rows) => rows.map((row) => Number.parseFloat(row.cells[3].textContent.replaceAll(",", ""))));
    assert.deepEqual(stakes, stakes.toSorted((a, b) => b - a));
    const sorted = await order();
    await page.locator('table[data-table="nodes"] tbody a').first().click();
    await page.getByRole("heading", { level: 1, name: /Node/ }).waitFor();
    await page.goBack();
    await shown(page, 'table[data-table="nodes"]');
    assert.deepEqual(await order(), sorted);
    const buttons = page.getByRole("button", { name: /save as CSV/ });
    for (let i = 0; i < (await buttons.count()); i++) {
      if (await buttons.nth(i).isDisabled()) continue;
      const [file] = await Promise.all([page.waitForEvent("download"), buttons.nth(i).click()]);
      const lines = readFileSync(await file.path(), "utf8").trim().split("\r\n");
      assert.ok(lines.length > 1, file.suggestedFilename());
    }
    await close(page);
  });

  test("fleet: a watchlist in the address, with totals", async () => {
    const page = await open("fleet?nodes=1,2,3");
    await shown(page, 'table[data-table="fleet"]');
    const { nodes } = await ask("{ nodes(where: { number_in: [1, 2, 3] }) { items { stake } } }");
    const total = nodes.items.reduce((sum, { stake }) => sum + BigInt(stake), 0n);
    assert.match(await figure(page, "Stake"), new RegExp(`^${(Number(total / 10n ** 15n) / 1_000).toLocaleString("en-GB", { maximumSignificantDigits: 4 })} ETH`));
    await page.goto(`${all.site.origin}/#/node/5`);
    await page.getByRole("link", { name: "Add to your fleet" }).click();
    await until("it is in the list", async () => (await page.locator('table[data-table="fleet"] tbody tr').count()) === 4);
    assert.match(page.url(), /nodes=1%2C2%2C3%2C5/);
    await close(page);
  });

  test("a node goes and comes back", async () => {
    const { number, account } = all.network.nodes[4];
    const page = await open(`node/${number}`);
    const status = () => figure(page, "Status");
    await until("it is there", async () => /^Available/.test(await status().catch(() => "")));
    await all.write(account, "pause", []);
    await until("it is seen to pause", async () => /^Paused/.test(await status()));
    await all.write(account, "resume", []);
    await until("it is seen to come back", async () => /^Available/.test(await status()));
    await until("its history is told", async () => /Resumed.*Paused.*Joined/.test(await page.locator('table[data-table="apart"]').textContent()));
    await close(page);
  });

  test("the indexer goes and comes back: a banner, then no banner", async () => {
    const page = await open("network", { quiet: true });
    await shown(page, 'table[data-table="nodes"]');
    await all.indexer.stop();
    // While it stops it may still answer, and refuse.
    await until("it is not there", async () => /cannot be reached.*The data are of block/.test(await page.locator(".banner.bad").textContent()));
    assert.equal(await page.locator('table[data-table="nodes"] tbody tr').count(), 8, "what was known stays");
    const fresh = await open("network", { quiet: true });
    await shown(fresh, ".banner.bad");
    await all.indexer.start();
    // It says how far behind it is until it has caught up.
    await until("the banners go", async () => (await page.locator(".banner").count()) === 0 && (await fresh.locator(".banner").count()) === 0, 240);
    await shown(fresh, 'table[data-table="nodes"]');
    await close(fresh);
    await close(page);
  });

  test("an indexer that takes no more questions: the view says for how long, and asks again by itself", async () => {
    const page = await open("network", { quiet: true });
    await shown(page, 'table[data-table="nodes"]');
    const answers = /\/api\//;
    const body = JSON.stringify({ error: "TooManyRequests", limit: 600, seconds: 3, message: "Too many requests: ask again in 3 s" });
    await page.route(answers, (route) => route.fulfill({ status: 429, contentType: "application/json", headers: { "retry-after": "3", "access-control-allow-origin": "*" }, body }));
    await page.evaluate(() => (location.hash = "#/history"));
    const said = "Too many questions came from your address: the indexer answers again in 3 s.";
    await until("it says so", async () => (await page.locator("[role=alert]").allTextContents()).some((text) => text.includes(said)));
    await page.unroute(answers);
    await until("it has asked again", async () => (await page.locator(".bad[role=alert]").count()) === 0);
    await shown(page, "main table");
    await close(page);
  });

  test("a step taken as soon as there is a view is followed", async () => {
    const page = await open("network");
    await page.addInitScript(() => {
      const step = (_, seen) => document.querySelector("main h1") && (seen.disconnect(), (location.hash = "#/fairness"));
      new MutationObserver(step).observe(document, { childList: true, subtree: true });
    });
    await page.reload();
    await page.getByRole("heading", { level: 1, name: "Fairness" }).waitFor();
    await close(page);
  });

  test("what is not there says so", async () => {
    for (const view of ["task/999999", "node/999", "account/0x0000000000000000000000000000000000000001", "model/1", "nowhere"]) {
      const page = await open(view);
      await shown(page, ".empty");
      await close(page);
    }
  });
});

describe("what a new user meets", () => {
  test("behind: how far the indexer is, how long it takes, and no figure without its block", async () => {
    // As through an endpoint that gives so little that the history takes a while, however fast the machine is.
    const settings = { RPC_URL: all.network.url, REQUESTS_PER_SECOND: "10" };
    const slow = await startIndexer({ url: all.network.url, address: all.network.address, directory: all.directory, name: "behind", behind: true, settings });
    const site = await serve(all.directory, { indexer: slow.origin });
    const context = await all.browser.newContext({ viewport: LAPTOP });
    context.setDefaultTimeout(120_000);
    const page = await context.newPage();
    await page.goto(`${site.origin}/#/network`);
    const head = await all.network.client.getBlockNumber({ cacheTime: 0 });
    const progress = page.locator("[data-test=progress]");
    await progress.waitFor();
    await until("it says how far it is", async () => /still reading the chain: (no block yet|block [\d,]+) of [\d,]+ \(\d+(\.\d+)? %\)/.test(await progress.textContent()));
    assert.match(await progress.textContent(), new RegExp(`of ${head.toLocaleString("en-GB")}`));
    assert.match(await progress.textContent(), /How long it will take is not known yet|At the pace of the last minute it will take \d+ (s|min|h)/);
    // At every moment until it has caught up: no figure but with its block, and nothing looks finished.
    const seen = [];
    const check = async () => {
      // A connection that the server has just closed for its idleness says nothing: it is asked again.
      const { ready } = await fetch(`${slow.origin}/api/state`).then((response) => response.json(), () => ({ ready: false }));
      const found = await page.evaluate(() => {
        const [banner, figures, asof, dot] = ["[data-test=progress]", ".figures", "[data-test=asof]", "[data-test=status] i"].map((selector) => document.querySelector(selector));
        return { banner: banner?.textContent, figures: figures?.textContent, asof: asof?.textContent, dot: dot?.className };
      });
      if (found.figures) assert.match(found.asof ?? "", /^As of block [\d,]+/, "figures without a block");
      if (found.banner) assert.notEqual(found.dot, "good", "a green dot while it reads");
      seen.push(found);
      return { ready, ...found };
    };
    for (let i = 0; i < 10; i++) {
      await check();
      await sleep(200);
    }
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/behind.png` });
    // It catches up, and says so no more.
    await until("it has caught up", async () => {
      const { ready, banner } = await check();
      return ready && !banner;
    }, 600);
    await until("the figures are the network's", async () => new RegExp(`^${(await all.network.client.getOverview()).nodesJoined}$`).test(await figure(page, "Nodes").catch(() => "")));
    assert.ok(seen.some(({ banner, figures }) => banner && figures), "no figures were shown while it was behind");
    assert.equal(await page.locator("[data-test=status] i").getAttribute("class"), "good");
    await context.close();
    await site.close();
    await slow.stop();
  });

  test("which contract: address, chain, links to its block explorer, copied by a button", async () => {
    const page = await open(`task/${made.single[0]}`);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const footer = page.locator("footer");
    assert.match(await footer.textContent(), new RegExp(`Contract.*${all.network.address}.*Devnet \\(chain ${all.network.chain.id}\\)`, "i"));
    assert.equal((await footer.locator(`a[href^="${BLOCK_EXPLORER}"]`).getAttribute("href")).toLowerCase(), `${BLOCK_EXPLORER}/address/${all.network.address}`.toLowerCase());
    assert.deepEqual(await footer.getByRole("link", { name: /Documentation|Source/ }).evaluateAll((links) => links.map(({ href }) => href)), ["https://docs.example/", "https://source.example/"]);
    await page.getByRole("button", { name: "Copy the contract's address" }).click();
    await footer.getByText("copied").waitFor();
    assert.equal((await page.evaluate(() => navigator.clipboard.readText())).toLowerCase(), all.network.address.toLowerCase());
    const { tasks } = await ask(`{ tasks(where: { id: "${made.single[0]}" }) { items { createdTx createdBlock } } }`);
    const [{ createdTx, createdBlock }] = tasks.items;
    await shown(page, `.terms a[href="${BLOCK_EXPLORER}/tx/${createdTx}"]`);
    await shown(page, `.terms a[href="${BLOCK_EXPLORER}/block/${createdBlock}"]`);
    await close(page);
  });

  test("a config.json that is broken is said to be so", async () => {
    const site = await serve(all.directory, { indexer: all.indexer.origin });
    for (const [content, said] of [["{ not json", /config\.json is broken: /], ['{"indexer": 7}', /indexer must be a string, and is 7/], ['{"rpc": "http://["}', /is no URL/]]) {
      writeFileSync(`${site.directory}/config.json`, content);
      const page = await open("network", { origin: site.origin, quiet: true });
      await shown(page, "[role=alert]");
      assert.match(await page.locator("[role=alert]").textContent(), said);
      await close(page);
    }
    await site.close();
  });

  test("words: amounts, times and names instead of wei, seconds and numbers; every column explained", async () => {
    const page = await open("live");
    await shown(page, ".stream li");
    const live = await page.locator(".stream").textContent();
    assert.doesNotMatch(live, /\d{10,}/, "raw wei or seconds");
    assert.match(live, /Created with a fee of [\d.]+ ETH: text × 1, single/);
    assert.match(live, /Node \d+: wrong, paid 0 ETH/);
    await page.goto(`${all.site.origin}/#/task/${made.cheated}`);
    await shown(page, "[data-test=checks] .checks li");
    const checks = await page.locator("[data-test=checks]").textContent();
    assert.doesNotMatch(checks, /\b\d{10,}\b/);
    assert.match(checks, /where “Agreed” follows/);
    // By keyboard: the explanation of H, read out, and gone by Escape.
    await page.goto(`${all.site.origin}/#/nodes`);
    const tip = page.getByRole("button", { name: "What “H” means" });
    await tip.focus();
    await page.keyboard.press("Enter");
    await page.locator("#tip:popover-open").waitFor();
    assert.match(await page.locator("#tip").textContent(), /^Reliability, from 0 to 1/);
    await page.keyboard.press("Escape");
    await until("it is gone", async () => (await page.locator("#tip:popover-open").count()) === 0);
    await close(page);
  });

  test("a cheat is marked among nodes, and its page opens with what it did", async () => {
    const { number } = all.network.nodes[0];
    const page = await open("nodes?slashed=yes");
    await shown(page, 'table[data-table="nodes"] tbody tr');
    const rows = page.locator('table[data-table="nodes"] tbody tr');
    assert.equal(await rows.count(), 1);
    assert.match(await rows.first().textContent(), new RegExp(`^${number}.*⚠ slashed.*\\d of \\d.*ETH`));
    await page.goto(`${all.site.origin}/#/node/${number}`);
    await shown(page, "[data-test=wrong] li.bad");
    assert.match(await page.locator("[data-test=wrong]").textContent(), new RegExp(`It was slashed once, [\\d.]+ ETH in all, last for #${made.cheated}`));
    // Before everything else that the page says of it.
    assert.ok(await page.evaluate(() => document.querySelector("[data-test=wrong]").compareDocumentPosition(document.querySelector(".figures")) & Node.DOCUMENT_POSITION_FOLLOWING));
    await close(page);
  });

  test("tasks: filters that stand in the address; pages of nodes, accounts and models", async () => {
    const page = await open("tasks");
    const count = () => page.locator("#tasks-caption").textContent();
    const asked = async (label, value) => {
      await page.locator("form[aria-label='Which tasks'] label", { hasText: new RegExp(`^${label}`) }).locator("select").selectOption(value);
      await until("it is asked", async () => (await page.locator('section[aria-busy="true"]').count()) === 0);
    };
    await shown(page, 'table[data-table="tasks"]');
    await asked("Policy", "rated");
    await until("the rated one is left", async () => / 1 task$/.test(await count()));
    assert.match(page.url(), /policy=3/);
    await page.getByRole("button", { name: "All tasks" }).click();
    await asked("State", "Error reported");
    await until("the failed one is left", async () => (await page.locator('table[data-table="tasks"] tbody td:first-child').allTextContents()).join() === `#${made.failed}`);
    const link = page.url();
    const copy = await open(link.slice(link.indexOf("#/") + 2));
    await until("a copied link shows the same", async () => (await copy.locator('table[data-table="tasks"] tbody td:first-child').allTextContents()).join() === `#${made.failed}`);
    await close(copy);
    const { models } = await ask(`{ models(where: { name: "${MODELS[1]}" }) { items { id tasks } } }`);
    await page.goto(`${all.site.origin}/#/tasks?model=${models.items[0].id}`);
    await until("tasks for a model", async () => new RegExp(` ${models.items[0].tasks} tasks$`).test(await count()));
    const { client } = all.network;
    await page.goto(`${all.site.origin}/#/tasks?creator=${client.account.address}&state=late&to=4000000000&from=1`);
    await until("of a creator, by date", async () => / \d+ tasks?$/.test(await count()) && (await page.locator(`table[data-table="tasks"] a:text-is("#${made.late.id}")`).count()) === 1);
    await page.goto(`${all.site.origin}/#/tasks?creator=0x12`);
    await page.getByText("The creator must be an address").waitFor();
    for (const [view, cell] of [["accounts", client.account.address.slice(0, 6).toLowerCase()], ["models", MODELS[0]]]) {
      await page.goto(`${all.site.origin}/#/${view}`);
      await page.locator(`table[data-table="${view}"] tbody`, { hasText: cell }).waitFor();
    }
    await page.goto(`${all.site.origin}/#/nodes?gpu=${all.network.nodes[5].group}`);
    await until("nodes of one GPU", async () => (await page.locator('table[data-table="nodes"] tbody tr').count()) === 3);
    await close(page);
  });

  test("half-typed text outlives a live update", async () => {
    const page = await open("tasks");
    await shown(page, 'table[data-table="tasks"]');
    const field = page.locator("form[aria-label='Which tasks'] label", { hasText: /^Creator/ }).locator("input");
    await field.pressSequentially("0xAb");
    const { id } = await all.network.client.createTask({ kind: TaskKind.gpt, input: "while somebody types", value: FEE, dispatch: true });
    await shown(page, `table[data-table="tasks"] a:text-is("#${id}")`);
    assert.equal(await field.inputValue(), "0xAb");
    await field.press("Enter");
    await page.getByText("The creator must be an address").waitFor();
    assert.match(page.url(), /creator=0xAb/);
    await close(page);
  });

  test("a model that nobody holds does not keep a task from running, and the page says so", async () => {
    const { client } = all.network;
    const { id } = await client.createTask({ kind: TaskKind.gpt, input: "for a model of nobody", models: ["nobody/holds-it"], value: FEE });
    await client.waitForTask({ id, timeout: 300_000 });
    const { tasks } = await until("it is indexed", async () => {
      const found = await ask(`{ tasks(where: { id: "${id}", outcome: 2 }) { items { models } } }`);
      return found.tasks.items.length && found;
    });
    const page = await open(`task/${id}`);
    await page.getByText("that does not keep the task from running").waitFor();
    await page.goto(`${all.site.origin}/#/model/${tasks.items[0].models[0]}`);
    await shown(page, "[data-test=unheld]");
    await close(page);
  });

  test("history: by hour, day and month; the owner's acts; until when programs run", async () => {
    const page = await open("history");
    await shown(page, 'table[data-table="sums"] tbody tr');
    await until("six charts are drawn", async () => (await page.locator(".chart canvas").count()) >= 6);
    const { hours, months, networks } = await ask("{ hours(limit: 1000) { items { start created } } months { items { created } } networks { items { tasks burnt } } }");
    const sum = (rows) => rows.reduce((all, { created }) => all + created, 0);
    assert.equal(sum(hours.items), Number(networks.items[0].tasks));
    assert.equal(sum(months.items), sum(hours.items));
    assert.equal(await page.locator('table[data-table="sums"] tbody tr').count(), Math.min(24, hours.items.length));
    await page.getByRole("button", { name: "by month" }).click();
    await until("months are shown", async () => (await page.locator('table[data-table="sums"] tbody tr').count()) === months.items.length);
    assert.match(page.url(), /by=month/);
    const acts = page.locator("[data-test=acts]");
    assert.match(await acts.textContent(), /slashImages changed from no to yes.*sampleBps changed from 1,000 ten-thousandths to 10,000 ten-thousandths.*Deployed, with a least stake of 400 ETH; a change of programs waits 2 d; 35 parameters were set/);
    await shown(page, 'table[data-table="programs"]');
    const { listed } = { listed: await page.locator('table[data-table="programs"] tbody').textContent() };
    assert.match(listed, /does not expire/);
    assert.match(listed, /in \d+ d/);
    await close(page);
  });

  test("the server: compressed, kept by browsers, and few questions for a task", async () => {
    const get = (path, headers = {}) => fetch(`${all.indexer.origin}${path}`, { headers });
    const index = await get("/");
    assert.equal(index.headers.get("cache-control"), "no-cache");
    const [, script] = /src="\.(\/assets\/[^"]+\.js)"/.exec(await index.text());
    const packed = await get(script, { "accept-encoding": "br" });
    assert.equal(packed.headers.get("content-encoding"), "br");
    assert.match(packed.headers.get("cache-control"), /immutable/);
    const first = await get("/api/network", { "accept-encoding": "gzip" });
    assert.equal(first.headers.get("content-encoding"), "gzip");
    const again = await get("/api/network", { "if-none-match": first.headers.get("etag") });
    assert.equal(again.status, 304);
    const question = { method: "POST", headers: { "content-type": "application/json", "accept-encoding": "gzip" }, body: JSON.stringify({ query: "{ tasks(limit: 50) { items { id fee creator } } }" }) };
    const asked = await fetch(`${all.indexer.origin}/graphql`, question);
    assert.equal(asked.headers.get("content-encoding"), "gzip");
    assert.ok((await asked.json()).data.tasks.items.length > 20);
    assert.equal((await get("/api/list/tasks?sort=nothing")).status, 400);
    assert.equal((await get("/api/list/tasks?limit=100000")).status, 400);
    // The usual view of a task: the page, the data, and the chain's blocks and transactions that are checked.
    const context = await all.browser.newContext({ viewport: LAPTOP });
    context.setDefaultTimeout(120_000);
    const page = await context.newPage();
    let [requests, bytes] = [0, 0];
    const cdp = await context.newCDPSession(page);
    await cdp.send("Network.enable");
    cdp.on("Network.requestWillBeSent", () => requests++);
    cdp.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
    const site = await serve(all.directory, { indexer: all.indexer.origin, rpc: all.network.url, muster: all.network.address });
    await page.goto(`${all.indexer.origin}/#/task/${made.cheated}`);
    await shown(page, "[data-test=draw]");
    console.log(`page: a task without checks: ${requests} requests, ${(bytes / 1_000).toFixed(0)} kB`);
    assert.ok(requests <= 30 && bytes <= 150_000, `${requests} requests, ${bytes} bytes`);
    [requests, bytes] = [0, 0];
    await page.goto(`${site.origin}/#/task/${made.cheated}`);
    await shown(page, "[data-test=checks] .checks li");
    console.log(`page: a task with its checks, from a server that does not compress: ${requests} requests, ${(bytes / 1_000).toFixed(0)} kB`);
    assert.ok(requests <= 60, `${requests} requests`);
    await context.close();
    await site.close();
  });
});

test("ten questions of a stranger, answered from the first view on", async () => {
  const page = await open("network");
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const asked = questions(made);
  assert.equal(asked.length, 10);
  for (const { asked: question, way = [], figure: label, read, answer } of asked) {
    assert.ok(readme.includes(`| ${question} |`), `README.md does not ask: ${question}`);
    await page.goto(`${all.site.origin}/#/network`);
    await shown(page, 'table[data-table="nodes"]');
    const begun = performance.now();
    for (const step of way) {
      if (typeof step === "string") await page.locator(".top nav").getByRole("link", { name: step, exact: true }).click();
      else if (step.search) {
        await page.getByRole("searchbox").fill(step.search);
        await page.keyboard.press("Enter");
      } else if (step.choose) {
        await page.locator("main label", { hasText: new RegExp(`^${step.choose[0]}`) }).locator("select").selectOption({ label: step.choose[1] });
        await until("it is asked", async () => page.url().includes("slashed=yes") && (await page.locator('section[aria-busy="true"]').count()) === 0 && (await page.locator('table[data-table="nodes"] tbody tr').count()) === 1);
      } else await page.locator(step.open).first().click();
    }
    const place = label ? page.locator(".figure", { has: page.locator(`dt:text-is("${label}")`) }).locator("dd") : page.locator(read);
    await until(`it is answered: ${question}`, async () => answer.test((await place.first().textContent().catch(() => "")) ?? ""), 60);
    console.log(`page: "${question}" is answered after ${way.length} steps and ${((performance.now() - begun) / 1_000).toFixed(1)} s`);
  }
  await close(page);
});

describe("doing", () => {
  /** A store that accepts objects, as S3 and the like do. */
  let upload;
  const stored = new Map();
  let isFull = false;
  /**
   * A wallet as browsers have them, by EIP-6963: of a funded account, on a chain; it records its requests. It `declines` them where told to, waits
   * for `until`, has no receipts while it is `mute`, and where it `cancels` sends nothing to the account itself in the transaction's place.
   */
  const wallet = { asked: [], declines: false, chain: 0, until: undefined, mute: false, cancels: false };
  let site;
  before(async () => {
    upload = createServer(async (request, response) => {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      if (request.method === "PUT" && isFull) return void response.writeHead(507, { "access-control-allow-origin": "*" }).end();
      if (request.method === "PUT") stored.set(request.url.slice(1), Buffer.concat(chunks));
      response.writeHead(204, { "access-control-allow-origin": "*", "access-control-allow-methods": "PUT" }).end();
    });
    await new Promise((resolve) => upload.listen(0, "127.0.0.1", resolve));
    const { network } = all;
    const url = `http://127.0.0.1:${upload.address().port}`;
    site = await serve(all.directory, { indexer: all.indexer.origin, rpc: network.url, muster: network.address, chainId: network.chain.id, stores: network.storeUrl, upload: url });
  });
  after(async () => {
    await site?.close();
    upload?.close();
  });

  /** A view in a browser with such a wallet. */
  async function withWallet(view, client, { chainId = all.network.chain.id, origin = site.origin } = {}) {
    const context = await all.browser.newContext({ viewport: LAPTOP, acceptDownloads: true });
    context.setDefaultTimeout(120_000);
    const page = await context.newPage();
    page.on("pageerror", (error) => problems.push(`${view}: ${error.stack}`));
    Object.assign(wallet, { asked: [], declines: false, chain: chainId, until: undefined, mute: false, cancels: false });
    let cancelled;
    await page.exposeFunction("askWallet", async (method, params) => {
      try {
        switch (method) {
          case "eth_requestAccounts":
          case "eth_accounts":
            return { result: [client.account.address] };
          case "eth_chainId":
            return { result: `0x${wallet.chain.toString(16)}` };
          case "wallet_switchEthereumChain":
            wallet.chain = Number(params[0].chainId);
            return { result: null };
          case "eth_sendTransaction": {
            if (wallet.declines) return { error: { code: 4001, message: "User rejected the request." } };
            const [{ to, data, value, gas, chainId }] = params;
            wallet.asked.push({ to, data, value: BigInt(value ?? 0), gas: BigInt(gas), chainId: Number(chainId) });
            await wallet.until;
            if (wallet.cancels) {
              const nonce = await client.getTransactionCount({ address: client.account.address });
              cancelled = { ...params[0], from: client.account.address.toLowerCase(), input: data, nonce: `0x${nonce.toString(16)}`, hash: `0x${"ca".repeat(32)}`, type: "0x2", blockNumber: null };
              return { result: cancelled.hash };
            }
            return { result: await client.sendTransaction({ to, data, value: BigInt(value ?? 0), gas: BigInt(gas) }) };
          }
          case "eth_getTransactionReceipt":
            if (wallet.mute) return { error: { code: -32005, message: "429 Too Many Requests" } };
            if (params[0] === cancelled?.hash) return { result: null };
          // Else as the chain says.
          default:
            if (method === "eth_getTransactionByHash" && params[0] === cancelled?.hash) {
              if (!cancelled.isGone) setTimeout(() => client.sendTransaction({ to: client.account.address, value: 0n }), 1_000);
              cancelled.isGone = true;
              return { result: cancelled };
            }
            return { result: JSON.parse(JSON.stringify(await client.request({ method, params }))) };
        }
      } catch (error) {
        return { error: { code: error.code ?? -32000, message: error.shortMessage ?? error.message } };
      }
    });
    await page.addInitScript(() => {
      const provider = {
        on: () => {},
        request: async ({ method, params }) => {
          const { result, error } = await window.askWallet(method, params);
          if (error) throw Object.assign(new Error(error.message), { code: error.code });
          return result;
        },
      };
      const detail = Object.freeze({ info: { uuid: "350670db-19fa-4704-a166-e52e178b59d2", name: "Test Wallet", icon: "data:,", rdns: "test.wallet" }, provider });
      const announce = () => dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
      addEventListener("eip6963:requestProvider", announce);
      announce();
    });
    await page.goto(`${origin}/#/${view}`);
    return page;
  }
  const connected = async (page) => {
    await page.getByRole("button", { name: "Connect Test Wallet" }).click();
    await page.getByText("Test Wallet: ").waitFor();
  };

  const sha256 = (content) => createHash("sha256").update(content).digest("hex");
  const choose = async (form, content) => {
    await form.locator("input[type=file]").setInputFiles({ name: "input.txt", mimeType: "text/plain", buffer: Buffer.from(content) });
    await form.getByText(`${content.length} bytes`).waitFor();
  };
  /** The form of a task, with an input and a fee that is enough. */
  const filled = async (page, content) => {
    const form = page.locator("[data-test=create]");
    await form.getByText("at least").waitFor();
    await choose(form, content);
    await form.getByLabel("Fee, ETH").fill("0.01");
    return form;
  };

  test("a task with a file: created by a wallet, drawn, watched, and its result downloaded", async () => {
    const client = await all.network.newClient();
    const page = await withWallet("act", client);
    await connected(page);
    const form = page.locator("[data-test=create]");
    const content = Buffer.from("What is a muster? Asked by a browser.");
    const digest = createHash("sha256").update(content).digest("hex");
    await form.getByText("at least").waitFor();
    await form.getByRole("button", { name: "Estimate it" }).click();
    await form.getByText("Choose a file").waitFor();
    await form.locator("input[type=file]").setInputFiles({ name: "question.txt", mimeType: "text/plain", buffer: content });
    await form.getByText(`${content.length} bytes`).waitFor();
    // Too little is refused in the contract's own words, before the wallet is asked.
    await form.getByLabel("Fee, ETH").fill("0.000000000000000001");
    await form.getByRole("button", { name: "Estimate it" }).click();
    await form.getByText(/Refused: .*fee.*least/i).waitFor();
    assert.equal(wallet.asked.length, 0);
    await form.getByLabel("Fee, ETH").fill("0.001");
    await form.getByRole("button", { name: "Estimate it" }).click();
    await form.getByText(/Gas about [\d,]+, .*and 0\.001 ETH with it/).waitFor();
    wallet.declines = true;
    await form.getByRole("button", { name: "Send it" }).click();
    await form.getByText(/Refused: .*rejected/i).waitFor();
    wallet.declines = false;
    await form.getByRole("button", { name: "Estimate it" }).click();
    await form.getByRole("button", { name: "Send it" }).click();
    await shown(page, "[data-test=created]");
    assert.deepEqual(wallet.asked.map(({ to, value }) => [to.toLowerCase(), value]), [[all.network.address.toLowerCase(), 10n ** 15n]]);
    assert.ok(wallet.asked[0].gas > 1_000_000n);
    assert.equal(wallet.asked[0].chainId, all.network.chain.id, "the transaction names its chain");
    assert.equal(stored.get(digest)?.toString(), content.toString(), "the input is in the store, under its digest");
    // From there on its page: it ends, and its result is the node's.
    await page.locator("[data-test=created] a").click();
    await shown(page, ".timeline li.TaskSucceeded");
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
    assert.equal(readFileSync(await file.path(), "utf8"), `result of 0x${digest}`);
    await page.getByText(/\d+ bytes, as node \d+ answered/).waitFor();
    await close(page);
  });

  test("a wallet on another chain is told so, and switched", async () => {
    const page = await withWallet("act", await all.network.newClient(), { chainId: 1 });
    await connected(page);
    await page.getByText("It is on chain 1, and the contract on chain").waitFor();
    await page.getByRole("button", { name: "Switch" }).click();
    await until("it is on the contract's", async () => (await page.getByText("It is on chain 1").count()) === 0);
    await close(page);
  });

  test("a page without a chain id asks its endpoint, and sends nothing to another chain", async () => {
    const { network } = all;
    const plain = await serve(all.directory, { indexer: all.indexer.origin, rpc: network.url, muster: network.address });
    const page = await withWallet("act", await network.newClient(), { chainId: 1, origin: plain.origin });
    await connected(page);
    await page.getByText(`It is on chain 1, and the contract on chain ${network.chain.id}.`).waitFor();
    await page.getByRole("button", { name: "Switch" }).click();
    await until("it is on the contract's", async () => (await page.getByText("It is on chain 1").count()) === 0);
    const form = await filled(page, "to be sent to the right chain");
    await form.getByRole("button", { name: "Estimate it" }).click();
    await form.getByRole("button", { name: "Send it" }).waitFor();
    // The wallet changes its chain, and does not say so.
    wallet.chain = 1;
    await form.getByRole("button", { name: "Send it" }).click();
    await form.getByText(`Refused: The wallet is on chain 1, and the contract on chain ${network.chain.id}.`).waitFor();
    assert.equal(await form.getByRole("button", { name: "Send it" }).count(), 0);
    // An endpoint that does not answer.
    wallet.chain = network.chain.id;
    await page.route(`${network.url.replace(/\/$/, "")}/**`, (route) => route.abort());
    await form.getByRole("button", { name: "Estimate it" }).click();
    await form.getByText("Refused: The page's endpoint does not say which chain the contract is on").waitFor();
    assert.deepEqual(wallet.asked, []);
    await page.unrouteAll({ behavior: "wait" });
    await close(page);
    await plain.close();
    // Neither an endpoint nor a chain id.
    const bare = await serve(all.directory, { indexer: all.indexer.origin, muster: network.address });
    const other = await withWallet("act", await network.newClient(), { origin: bare.origin });
    await connected(other);
    await other.getByRole("button", { name: "Make due draws" }).click();
    await other.getByText(/Refused: .*neither an RPC endpoint nor a chain id/).waitFor();
    assert.deepEqual(wallet.asked, []);
    await close(other);
    await bare.close();
  });

  test("a sent transaction whose outcome nobody tells keeps its link, and is asked for until it is known", async () => {
    const { network } = all;
    const page = await withWallet("act", await network.newClient());
    await connected(page);
    const form = await filled(page, "sent, and not heard of");
    await page.route(`${network.url.replace(/\/$/, "")}/**`, (route) => (wallet.mute && route.request().postData()?.includes("eth_getTransactionReceipt") ? route.fulfill({ status: 429, headers: { "access-control-allow-origin": "*" } }) : route.fallback()));
    await form.getByRole("button", { name: "Estimate it" }).click();
    wallet.mute = true;
    await form.getByRole("button", { name: "Send it" }).click();
    const sent = form.locator("[data-test=sent]");
    await sent.getByText("Sent, and its outcome is not known yet").waitFor();
    const hash = await sent.locator("[title^='0x']").getAttribute("title");
    assert.equal((await network.client.getTransactionReceipt({ hash })).status, "success");
    assert.equal(await form.getByText("Refused").count(), 0);
    assert.ok(stored.has(sha256("sent, and not heard of")), "its input is stored already");
    // Another estimate does not hide it.
    await form.getByRole("button", { name: "Estimate it" }).click();
    await form.getByText("Gas about").waitFor();
    assert.equal(await sent.locator("[title^='0x']").getAttribute("title"), hash);
    wallet.mute = false;
    await sent.getByText("It is mined.").waitFor();
    await shown(page, "[data-test=created]");
    assert.equal(await sent.locator("[title^='0x']").getAttribute("title"), hash);
    await page.unrouteAll({ behavior: "wait" });
    await close(page);
  });

  test("a transaction that is cancelled in the wallet is not said to be mined", async () => {
    const page = await withWallet("act", await all.network.newClient());
    await connected(page);
    const form = await filled(page, "to be cancelled");
    await form.getByRole("button", { name: "Estimate it" }).click();
    wallet.cancels = true;
    await form.getByRole("button", { name: "Send it" }).click();
    const sent = form.locator("[data-test=sent]");
    await sent.getByText("It was cancelled or replaced in the wallet.").waitFor();
    assert.equal(await sent.locator("[title^='0x']").getAttribute("title"), `0x${"ca".repeat(32)}`);
    assert.equal(await page.getByText("It is mined.").count(), 0);
    assert.equal(await page.locator("[data-test=created]").count(), 0);
    await close(page);
  });

  test("the file that is paid for is the one that is stored, before the wallet is asked", async () => {
    const page = await withWallet("act", await all.network.newClient());
    await connected(page);
    const form = await filled(page, "file A");
    const estimated = async () => {
      await form.getByRole("button", { name: "Estimate it" }).click();
      await form.getByRole("button", { name: "Send it" }).waitFor();
    };
    const type = async (label, text) => {
      await form.getByLabel(label).fill(text);
      await form.getByLabel(label).blur();
    };
    // Each change takes the offer back.
    for (const changes of [() => choose(form, "file B, which is longer"), () => type("Fee, ETH", "0.002"), () => type("Requests", "2"), () => form.getByLabel("Policy").selectOption("1")]) {
      await estimated();
      await changes();
      await until("nothing is offered that was not tried", async () => (await form.getByRole("button", { name: "Send it" }).count()) === 0, 10);
    }
    await form.getByLabel("Policy").selectOption("0");
    await estimated();
    // A store that takes nothing: nothing is paid.
    isFull = true;
    await form.getByRole("button", { name: "Send it" }).click();
    await form.getByText("Refused: The input could not be stored (the store answered 507), so nothing is sent.").waitFor();
    assert.deepEqual(wallet.asked, []);
    isFull = false;
    await estimated();
    let confirm;
    wallet.until = new Promise((resolve) => (confirm = resolve));
    await form.getByRole("button", { name: "Send it" }).click();
    await until("the wallet is asked", () => wallet.asked.length === 1);
    assert.ok(stored.has(sha256("file B, which is longer")));
    // Another file while the wallet asks.
    await choose(form, "file C, the longest of all");
    confirm();
    await shown(page, "[data-test=created]");
    assert.ok(wallet.asked[0].data.includes(sha256("file B, which is longer")));
    for (const content of ["file A", "file C, the longest of all"]) assert.ok(!stored.has(sha256(content)), content);
    await close(page);
  });

  test("an operator pauses, resumes and withdraws; refusals in words", async () => {
    const { account, number } = all.network.nodes[6];
    const { client } = all.network;
    const operator = Object.assign(createWalletClient({ account, chain: all.network.chain, transport: http(all.network.url) }).extend(publicActions), {});
    const page = await withWallet("act", operator);
    await connected(page);
    const before = await client.getAccount({ who: account.address });
    const does = async (within, label) => {
      await within.getByRole("button", { name: label, exact: true }).click();
      await within.getByRole("button", { name: "Send it" }).click();
      await within.getByText("It is mined.").waitFor();
    };
    assert.ok(before.credit > 0n, "it has earned nothing");
    await does(page.locator("[data-test=wallet]"), "Withdraw");
    assert.equal((await client.getAccount({ who: account.address })).credit, 0n);
    await page.evaluate((number) => (location.hash = `#/node/${number}`), number);
    const acts = page.locator("[data-test=acts-of-node]");
    await does(acts, "Pause");
    await until("it is paused", async () => (await client.getNode({ number })).status === 5);
    await acts.getByRole("button", { name: "Resume", exact: true }).waitFor();
    await does(acts, "Resume");
    await until("it is back", async () => (await client.getNode({ number })).status === 1);
    // Nothing is left to withdraw: the contract says so, and the wallet is not asked.
    const asked = wallet.asked.length;
    await acts.getByRole("button", { name: "Withdraw", exact: true }).click();
    await acts.getByText(/Refused: .*(nothing|owed)/i).waitFor();
    assert.equal(wallet.asked.length, asked);
    await close(page);
  });

  test("anybody, without a wallet: what driving a task on would take, or why it cannot be", async () => {
    for (const node of all.network.nodes) node.behave("silent");
    const { id } = await all.network.client.createTask({ kind: TaskKind.gpt, input: "to be driven", value: FEE, dispatch: true });
    const page = await open(`task/${id}`, { origin: site.origin });
    const acts = page.locator("[data-test=acts-of-task]");
    await acts.getByRole("button", { name: "End it as too late" }).click();
    await acts.getByText(/Refused: .*deadline/i).waitFor();
    for (const node of all.network.nodes) node.behave("answers");
    await shown(page, ".timeline li.TaskSucceeded");
    await page.goto(`${site.origin}/#/act`);
    await page.getByText("No wallet has announced itself").waitFor();
    await page.getByRole("button", { name: "Make due draws" }).click();
    await page.getByText(/Gas about [\d,]+.*Connect a wallet to send it|Refused: /).waitFor();
    await close(page);
  });
});

describe("for everybody", () => {
  const views = () => ["network", "fairness", "whatif", "tasks", "nodes", "accounts", "models", "history", "act", "live", "fleet?nodes=1,2", `task/${made.cheated}`, `node/${all.network.nodes[0].number}`, "search?q=1", `account/${all.network.client.account.address}`];
  const settled = async (page) => {
    await page.locator("main h1").waitFor();
    await until("nothing loads any more", async () => (await page.locator(".loading").count()) === 0);
    await sleep(300);
  };

  const looks = [["a laptop, light", LAPTOP, "light"], ["a phone, dark", PHONE, "dark"]];
  // Of every view, where pictures are wanted.
  if (SHOTS) looks.push(["a laptop, dark", LAPTOP, "dark"], ["a phone, light", PHONE, "light"]);
  for (const [name, viewport, colorScheme] of looks) {
    test(`${name}: nothing wider than the screen, no serious finding of axe`, async () => {
      const findings = [];
      for (const view of views()) {
        const page = await open(view, { viewport, colorScheme });
        await settled(page);
        const { wide, dark } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth - innerWidth, dark: getComputedStyle(document.body).backgroundColor }));
        // The tab of this view is in sight, and the button that saves a table is on one line.
        const tab = await page.locator(".top nav [aria-current]").boundingBox({ timeout: 1_000 }).catch(() => null);
        if (tab && (tab.x < -1 || tab.x + tab.width > viewport.width + 1)) findings.push(`${view}: its tab is at ${tab.x}`);
        for (const button of await page.locator(".csv").all()) if ((await button.boundingBox()).height > 40) findings.push(`${view}: CSV takes two lines`);
        // Each column has an explanation.
        const heads = await page.locator("main th").evaluateAll((heads) => heads.filter((head) => !head.closest(".u-legend")).map((head) => [head.querySelector(".sort")?.textContent, head.querySelectorAll(".tip").length]));
        findings.push(...heads.filter(([, tips]) => tips !== 1).map(([head]) => `${view}: nothing explains ${head}`));
        if (wide > 0) findings.push(`${view} is ${wide} pixels wider than ${name}`);
        const [red] = dark.match(/\d+/g).map(Number);
        assert.equal(red < 60, colorScheme === "dark", `${view}: ${dark}`);
        if (SHOTS) await page.screenshot({ path: `${SHOTS}/${view.replace(/\W+/g, "-").slice(0, 20)}-${viewport === PHONE ? "phone" : "laptop"}-${colorScheme}.png`, fullPage: true });
        // By the protocol, past the page's policy, which would not let it in.
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
        const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
        findings.push(...serious.map(({ id, nodes }) => `${view}: ${id} ${nodes[0].html.slice(0, 160)} ${nodes[0].failureSummary}`));
        await close(page);
      }
      assert.deepEqual(findings, []);
    });
  }

  test("colours by a button, and all ways by keyboard", async () => {
    const page = await open("network");
    await settled(page);
    await page.keyboard.press("Tab");
    assert.match(await page.evaluate(() => document.activeElement.textContent), /Skip/);
    await page.getByRole("button", { name: "Dark colours" }).click();
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).colorScheme), "dark");
    await page.getByRole("link", { name: "Fairness" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Fairness" }).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.tagName), "MAIN");
    await close(page);
  });
});

// TASKS sets how many; short where it is not set.
test("tasks stream in: the page stays small and draws each new row once", { timeout: 1_800_000 }, () => stream(all, open, Number(process.env.TASKS ?? 100), caughtUp));

test("the page connects to its endpoints and to nothing else", async () => {
  const page = await open("network", { quiet: true });
  await shown(page, 'table[data-table="nodes"]');
  const reach = (url) => page.evaluate((url) => fetch(url, { mode: "no-cors" }).then(() => true, () => false), url);
  assert.equal(await reach(`${all.indexer.origin}/ready`), true);
  assert.equal(await reach(all.network.storeUrl), false, "a server of this machine that is not configured");
  await close(page);
});

test("no page complained, nor asked anybody but its endpoints", () => assert.deepEqual(problems, []));
