// Measures views of a large network in Chromium: from the address until its figures are there. node test/large.mjs ORIGIN; large.sh runs it. Prints rows of a table
// of ../../README.md.
import assert from "node:assert/strict";
import { allowed, startPlain } from "../../indexer/test/plain.mjs";
import { QUESTIONS } from "../../indexer/test/viewers.mjs";
import { startBrowser } from "./network.mjs";

const [origin] = process.argv.slice(2);
/** The number of attempts, of which the median counts. */
const ATTEMPTS = Number(process.env.ATTEMPTS || 7);
const plain = await startPlain();
const browser = await startBrowser();

/** Opens a view in a browser without a cache, and waits for its contents; milliseconds, bytes and questions. */
async function first(url, shown) {
  const context = await browser.newContext({ viewport: { width: 1366, height: 850 } });
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  const asked = [];
  let [bytes, requests] = [0, 0];
  const cdp = await context.newCDPSession(page);
  await cdp.send("Network.enable");
  cdp.on("Network.requestWillBeSent", ({ request }) => {
    requests++;
    if (request.url.includes("/api/") && !request.url.includes("/api/live")) asked.push(request.url.slice(`${origin}/api/`.length).replace(/[?&]v=\d+/, "").replace(/\?$/, ""));
  });
  cdp.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
  const begun = performance.now();
  await page.goto(url, { waitUntil: "commit" });
  await page.locator(shown).first().waitFor();
  const took = performance.now() - begun;
  await context.close();
  return { took, bytes, requests, asked };
}

console.log(`Browsers with empty caches, ${ATTEMPTS} of each:\n`);
console.log("| view | median | the first | the longest | requests | kB |\n| --- | ---: | ---: | ---: | ---: | ---: |");
let most;
for (const [view, shown, url = `${origin}/#/${view}`] of [
  ["an empty page", "td", plain.origin],
  ["network", 'table[data-table="nodes"] tbody tr'],
  ["tasks", 'table[data-table="tasks"] tbody tr'],
  ["tasks?state=succeeded&policy=3", 'table[data-table="tasks"] tbody tr'],
  ["nodes?state=idle&nodes.sort=-h", 'table[data-table="nodes"] tbody tr'],
  ["history", 'table[data-table="sums"] tbody tr'],
  ["live", ".stream li"],
  ["node/1", 'table[data-table="tasks"] tbody tr'],
  ["models", 'table[data-table="models"] tbody tr'],
]) {
  const found = [];
  for (let i = 0; i < ATTEMPTS; i++) found.push(await first(url, shown));
  const took = found.map(({ took }) => took).toSorted((a, b) => a - b);
  const median = took[Math.floor(took.length / 2)];
  const [{ bytes, requests, asked }] = found;
  console.log(`| ${view.includes("?") ? `\`${view}\`` : view} | ${median.toFixed()} ms | ${found[0].took.toFixed()} ms | ${took.at(-1).toFixed()} ms | ${requests} | ${(bytes / 1_000).toFixed()} |`);
  most ??= allowed(median);
  if (view !== "network") continue;
  // The load test asks the page's own questions.
  const plain = (questions) => [...new Set(questions.map((one) => decodeURIComponent(one.replaceAll("+", " "))))].sort();
  assert.deepEqual(plain(asked), plain(QUESTIONS));
  assert.ok(median <= most, `the first view takes ${median.toFixed()} ms, more than ${most.toFixed()} ms`);
}
await browser.close();
plain.stop();
