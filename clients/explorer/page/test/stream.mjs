// Tasks streaming in while somebody scrolls: how large the page grows, and how many frames a second they see.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { TaskKind, specOf } from "muster-client";
import { musterAbi } from "muster-client/abi";
import { FEE, sleep, until } from "./network.mjs";

/** The most memory of a page, and the least share of an empty page's frames that it must reach: on a busy machine both have few. */
const [MOST_MB, LEAST_SHARE] = [150, 0.5];
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

/** Frames a second while the page is scrolled up and down for some seconds, as the page itself measures them. */
const scroll = (page, seconds) =>
  page.evaluate(
    (seconds) =>
      new Promise((resolve) => {
        const begin = performance.now();
        let [frames, last, longest] = [0, begin, 0];
        const step = (now) => {
          frames++;
          longest = Math.max(longest, now - last);
          last = now;
          scrollBy(0, Math.sin((now - begin) / 700) > 0 ? 24 : -24);
          if (now - begin < seconds * 1_000) requestAnimationFrame(step);
          else resolve({ frames: (frames * 1_000) / (now - begin), longest });
        };
        requestAnimationFrame(step);
      }),
    seconds,
  );

/** Streams, and looks at two views meanwhile. */
export async function stream(all, open, number, caughtUp) {
  const found = [];
  const pages = [];
  for (const view of ["live", "tasks"]) pages.push([view, await open(view)]);
  const empty = await all.browser.newPage();
  empty.setDefaultTimeout(120_000);
  await empty.setContent('<div style="height: 9000px"></div>');
  const { processInfo } = await (await all.browser.newBrowserCDPSession()).send("SystemInfo.getProcessInfo");
  const renderers = processInfo.filter(({ type }) => type === "renderer").map(({ id }) => id);
  const before = (await all.network.client.getOverview()).tasks;
  const begin = Date.now();
  let [most, poured] = [0, false];
  const pouring = pour(all, number).then(() => (poured = true));
  for (let i = 0; !poured || i < pages.length; i++) {
    const [view, page] = pages[i % pages.length];
    await page.bringToFront();
    const seen = await scroll(page, 3);
    await empty.bringToFront();
    const { frames: possible } = await scroll(empty, 1);
    const cdp = await page.context().newCDPSession(page);
    await cdp.send("Performance.enable");
    const { metrics } = await cdp.send("Performance.getMetrics");
    const heap = metrics.find(({ name }) => name === "JSHeapUsedSize").value / 2 ** 20;
    await cdp.detach();
    found.push({ view, heap, possible, ...seen });
    most = Math.max(most, ...renderers.map(resident));
    await sleep(200);
  }
  await pouring;
  const seconds = (Date.now() - begin) / 1_000;
  const { tasks } = await all.network.client.getOverview();
  assert.equal(tasks - before, BigInt(number));
  const heap = Math.max(...found.map(({ heap }) => heap));
  const frames = Math.min(...found.map(({ frames }) => frames));
  const sum = (of) => found.reduce((sum, one) => sum + one[of], 0);
  const share = sum("frames") / sum("possible");
  console.log(
    `page: ${number} tasks in ${seconds.toFixed(0)} s: at most ${heap.toFixed(0)} MB of heap, ${most.toFixed(0)} MB resident (the browser's own included); at least ${frames.toFixed(0)} frames a second over 3 s of scrolling, ${found.length} times, ${(100 * share).toFixed(0)} % of an empty page's, the longest frame ${Math.max(...found.map(({ longest }) => longest)).toFixed(0)} ms`,
  );
  // All of them, not a part that came in time; the indexer may need longer than the page.
  await caughtUp(1_200);
  const [, last] = pages[1];
  await last.bringToFront();
  await until("the newest task is shown", async () => (await last.locator(`table[data-table="tasks"] a:text-is("#${tasks}")`).count()) === 1);
  for (const page of [empty, ...pages.map(([, page]) => page)]) await page.context().close();
  assert.ok(heap <= MOST_MB, `${heap} MB of heap`);
  assert.ok(share >= LEAST_SHARE, `${share} of the frames of an empty page`);
}
