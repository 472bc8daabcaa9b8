// Tasks streaming in while somebody scrolls: how large the page grows, and which rows it draws.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { TaskKind, specOf } from "muster-client";
import { musterAbi } from "muster-client/abi";
import { FEE, sleep, until } from "./network.mjs";

/** The most memory of a page. */
const MOST_MB = 150;
/** The views, their rows, and the things that add one row each. */
const VIEWS = [
  ["live", ".stream li", "events"],
  ["tasks", 'table[data-table="tasks"] tbody tr', "tasks"],
];
const GAS = 3_000_000n;

/** Creates tasks as fast as the node takes them, from several accounts at once; returns their final number. */
async function pour({ network }, number) {
  const { client, address, chain } = network;
  const spec = specOf({ kind: TaskKind.gpt, input: "one of many" });
  const senders = await Promise.all(Array.from({ length: 4 }, () => network.newClient()));
  await Promise.all(
    senders.map(async (sender, s) => {
      let nonce = await client.getTransactionCount({ address: sender.account.address });
      for (let i = s; i < number; i += senders.length) {
        await sender.writeContract({ address, abi: musterAbi, chain, functionName: "createTask", args: [spec], value: FEE + BigInt(i), nonce: nonce++, gas: GAS });
      }
    }),
  );
}

const resident = (pid) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1_024;

/** Scrolls the page up and down for so many milliseconds: frames, and the longest of them. */
const scroll = (page, ms) =>
  page.evaluate(
    (ms) =>
      new Promise((resolve) => {
        const begin = performance.now();
        let [frames, last, longest] = [0, begin, 0];
        const step = (now) => {
          frames++;
          longest = Math.max(longest, now - last);
          last = now;
          scrollBy(0, Math.sin((now - begin) / 700) > 0 ? 24 : -24);
          if (now - begin < ms) requestAnimationFrame(step);
          else resolve({ frames, longest });
        };
        requestAnimationFrame(step);
      }),
    ms,
  );

/** Counts the rows that are put into the page from now on, however often. */
const countRows = (page) =>
  page.evaluate(() => {
    window.rows = 0;
    const isRow = ".stream li, tbody tr";
    new MutationObserver((changes) => {
      for (const { addedNodes } of changes) for (const node of addedNodes) if (node.matches?.("*")) window.rows += node.matches(isRow) + node.querySelectorAll(isRow).length;
    }).observe(document.body, { childList: true, subtree: true });
  });

/** Streams, and looks at two views meanwhile. */
export async function stream(all, open, number, caughtUp) {
  const known = () => until("the indexer tells its state", () => fetch(`${all.indexer.origin}/api/state`).then(async (response) => (await response.json()).network).catch(() => undefined));
  const [found, pages, first] = [[], [], await known()];
  for (const [view, row, of] of VIEWS) {
    const page = await open(view);
    await page.locator(row).first().waitFor();
    await countRows(page);
    const cdp = await page.context().newCDPSession(page);
    await cdp.send("Performance.enable");
    pages.push({ view, page, of, cdp });
  }
  const { processInfo } = await (await all.browser.newBrowserCDPSession()).send("SystemInfo.getProcessInfo");
  const renderers = processInfo.filter(({ type }) => type === "renderer").map(({ id }) => id);
  const before = (await all.network.client.getOverview()).tasks;
  const begin = Date.now();
  let [most, poured] = [0, false];
  const pouring = pour(all, number).then(() => (poured = true));
  for (let i = 0; !poured || i < 3 * pages.length; i++) {
    const { page, cdp } = pages[i % pages.length];
    await page.bringToFront();
    const seen = await scroll(page, 3_000);
    const { metrics } = await cdp.send("Performance.getMetrics");
    found.push({ ...seen, heap: metrics.find(({ name }) => name === "JSHeapUsedSize").value / 2 ** 20 });
    most = Math.max(most, ...renderers.map(resident));
    await sleep(200);
  }
  await pouring;
  const seconds = (Date.now() - begin) / 1_000;
  const { tasks } = await all.network.client.getOverview();
  assert.equal(tasks - before, BigInt(number));
  const greatest = (of) => Math.max(...found.map((one) => one[of]));
  const frames = found.reduce((sum, one) => sum + one.frames, 0);
  console.log(
    `page: ${number} tasks in ${seconds.toFixed(0)} s: at most ${greatest("heap").toFixed(0)} MB of heap, ${most.toFixed(0)} MB resident (the browser's own included); ` +
      `${frames} frames in ${found.length} times three seconds of scrolling, the longest ${greatest("longest").toFixed(0)} ms`,
  );
  // All of them, not a part that came in time; the indexer may need longer than the page.
  await caughtUp();
  const { page: last } = pages[1];
  await last.bringToFront();
  await until("the newest task is shown", async () => (await last.locator(`table[data-table="tasks"] a:text-is("#${tasks}")`).count()) === 1);
  const rows = await Promise.all(pages.map(({ page }) => page.evaluate(() => window.rows)));
  const end = await known();
  for (const { page } of pages) await page.context().close();
  const problems = [];
  pages.forEach(({ view, of }, i) => {
    const [added, drawn] = [end[of] - first[of], `${view} drew ${rows[i]} rows for ${end[of] - first[of]} new ${of}`];
    console.log(`page: ${drawn}`);
    // One that came twice was drawn anew.
    if (rows[i] > added) problems.push(drawn);
  });
  if (greatest("heap") > MOST_MB) problems.push(`${greatest("heap")} MB of heap`);
  assert.deepEqual(problems, []);
}
