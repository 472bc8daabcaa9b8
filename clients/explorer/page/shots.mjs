// Takes the pictures of the README, from an explorer that runs: node shots.mjs http://127.0.0.1:42069 DIRECTORY
// explorer-fairness.webp, and explorer-task.webp of the newest task in whose group somebody answered wrong, down to that group: a laptop's width, light.
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [origin, directory] = process.argv.slice(2);
if (!directory) throw new Error("usage: node shots.mjs ORIGIN DIRECTORY");
const executablePath = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => path && existsSync(path));
const query = '{ members(where: { verdict: 2 }, orderBy: "validation", orderDirection: "desc", limit: 1) { items { task } } }';
const headers = { "content-type": "application/json" };
const { data } = await (await fetch(`${origin}/graphql`, { method: "POST", headers, body: JSON.stringify({ query }) })).json();
const [wrong] = data.members.items;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1_100, height: 760 }, colorScheme: "light" });
for (const [name, view, last] of [
  ["fairness", "fairness", 'section.card:has(table[data-table="fairness"])'],
  ["task", wrong && `task/${wrong.task}`, 'section.card:has(table[data-table^="group-"])'],
]) {
  if (!view) continue;
  await page.goto(`${origin}/#/${view}`);
  await page.locator(last).last().waitFor();
  // What is loaded later is drawn then, and the indexer has caught up.
  await page.waitForFunction(() => !document.querySelector(".banner, .loading"), undefined, { timeout: 120_000 });
  const { y, height } = await page.locator(last).last().boundingBox();
  const cdp = await page.context().newCDPSession(page);
  const clip = { x: 0, y: 0, width: 1_100, height: y + height + 16, scale: 1 };
  const { data } = await cdp.send("Page.captureScreenshot", { format: "webp", quality: 85, clip, captureBeyondViewport: true });
  writeFileSync(join(directory, `explorer-${name}.webp`), Buffer.from(data, "base64"));
}
await browser.close();
