// The page in a real browser, on the real indexer, on a development node.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import { TaskKind } from "muster-client";
import { modules } from "./formulas.mjs";
import { makeHistory } from "./history.mjs";
import { FEE, serve, sleep, startAll, until } from "./network.mjs";
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
const caughtUp = (seconds = 240) =>
  until("the indexer has every block", async () => {
    const head = await all.network.client.getBlockNumber({ cacheTime: 0 });
    const { _meta } = await ask("{ _meta { status } }");
    return BigInt(Object.values(_meta.status)[0].block.number) >= head;
  }, seconds);

/** A view in a window of its own; whatever the page complains of fails the test at the end. */
async function open(view, { viewport = LAPTOP, colorScheme = "light", origin = all.site.origin, quiet = false } = {}) {
  const context = await all.browser.newContext({ viewport, colorScheme, acceptDownloads: true, hasTouch: viewport === PHONE });
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  if (!quiet) {
    page.on("pageerror", (error) => problems.push(`${view}: ${error.stack}`));
    page.on("console", (message) => message.type() === "error" && problems.push(`${view}: ${message.text()}`));
  }
  // Whatever is asked for elsewhere than at the three configured places.
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
    assert.match(await page.locator("[data-test=checks] h2").textContent(), / 1 wrong/);
    // It goes on asking for the newest block: the last answer has to be through before the page goes.
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
    // Who is in groups that are chosen by ratings is counted apart.
    const { validations } = await ask("{ validations(limit: 1000) { items { redundancy size } } }");
    const seats = validations.items.filter(({ redundancy }) => redundancy === 3).reduce((sum, { size }) => sum + size, 0);
    assert.ok(seats >= 3);
    assert.equal(replay.leftOut.rated, seats);
    assert.equal(replay.leftOut.missed, 0);
    // H now, to the last digit, and who is idle.
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
    const { granule } = await client.getOverview();
    const spec = { kind: 1, units: 1, vram: 0, gpu: 0, redundancy: 0, flags: 0, inputDigest: `0x${"11".repeat(32)}`, models: [] };
    const views = await Promise.all(all.network.nodes.map(({ number }) => client.getNode({ number })));
    const weights = await Promise.all(all.network.nodes.map(({ number }) => client.getWeightOf({ number, spec })));
    const rivals = views.map((view, i) => ({ node: view.node, group: view.gpu, stake: view.stake / granule, longTerm: view.longTerm, h: weights[i].reliability, models: new Set(), inUse: [] }));
    // As if the first were not there: what is computed for one like it is what it has.
    const [first, ...others] = rivals;
    const { share } = own.income(core, others, first, [{ vram: 0, gpu: 0, models: [], paid: 10n ** 18n, redundancy: 0 }]);
    const sum = weights.reduce((all, { weight }) => all + weight, 0n);
    assert.equal(share.toFixed(9), (Number(weights[0].weight) / Number(sum)).toFixed(9));
  });

  test("search: by task, node, address, model and transaction", async () => {
    const page = await open("network");
    await shown(page, 'table[data-table="nodes"]');
    const { account } = all.network.client;
    const looked = async (words, href) => {
      await page.getByRole("searchbox").fill(words);
      await page.keyboard.press("Enter");
      await shown(page, `.hits a[href="${href}"]`);
    };
    await looked(String(made.single[2]), `#/task/${made.single[2]}`);
    await looked("3", "#/node/3");
    await looked(account.address, `#/account/${account.address.toLowerCase()}`);
    await looked("llama", `#/model/${BigInt((await ask('{ models(where: { name_contains: "Llama" }) { items { id } } }')).models.items[0].id)}`);
    const { tasks } = await ask(`{ tasks(where: { id: "${made.single[1]}" }) { items { createdTx } } }`);
    await looked(tasks.items[0].createdTx, `#/task/${made.single[1]}`);
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
    await until("it is sorted", async () => (await page.locator('table[data-table="nodes"] th[aria-sort]').textContent()) === "Stake ↓");
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
    await until("it is not there", async () => /cannot be reached.*What is shown is of block/.test(await page.locator(".banner.bad").textContent()));
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

describe("for everybody", () => {
  const views = () => ["network", "fairness", "whatif", "tasks", "live", "fleet?nodes=1,2", `task/${made.cheated}`, `node/${all.network.nodes[0].number}`, "search?q=1", `account/${all.network.client.account.address}`];
  const settled = async (page) => {
    await page.locator("main h1").waitFor();
    await until("nothing loads any more", async () => (await page.locator(".loading").count()) === 0);
    await sleep(300);
  };

  for (const [name, viewport, colorScheme] of [["a laptop, light", LAPTOP, "light"], ["a phone, dark", PHONE, "dark"]]) {
    test(`${name}: nothing wider than the screen, no serious finding of axe`, async () => {
      const findings = [];
      for (const view of views()) {
        const page = await open(view, { viewport, colorScheme });
        await settled(page);
        const { wide, dark } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth - innerWidth, dark: getComputedStyle(document.body).backgroundColor }));
        if (wide > 0) findings.push(`${view} is ${wide} pixels wider than ${name}`);
        const [red] = dark.match(/\d+/g).map(Number);
        assert.equal(red < 60, colorScheme === "dark", `${view}: ${dark}`);
        if (SHOTS) await page.screenshot({ path: `${SHOTS}/${view.replace(/\W+/g, "-").slice(0, 20)}-${colorScheme}.png`, fullPage: viewport === PHONE });
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
test("tasks stream in: the page stays small and scrolls smoothly", { timeout: 1_800_000 }, () => stream(all, open, Number(process.env.TASKS ?? 200), caughtUp));

test("the page connects to its endpoints and to nothing else", async () => {
  const page = await open("network", { quiet: true });
  await shown(page, 'table[data-table="nodes"]');
  const reach = (url) => page.evaluate((url) => fetch(url, { mode: "no-cors" }).then(() => true, () => false), url);
  assert.equal(await reach(`${all.indexer.origin}/ready`), true);
  assert.equal(await reach(all.network.storeUrl), false, "a server of this machine that is not configured");
  await close(page);
});

test("no page complained, nor asked anybody but its endpoints", () => assert.deepEqual(problems, []));
