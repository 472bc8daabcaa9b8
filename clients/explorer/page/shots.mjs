// Takes the pictures of the README, from an explorer that runs: node shots.mjs http://127.0.0.1:42069 DIRECTORY
// explorer-fairness.png, and explorer-task.png of the newest task in whose group somebody answered wrong: a laptop's width, light.
import { existsSync } from "node:fs";
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
for (const [name, view, shown] of [
  ["fairness", "fairness", 'table[data-table="fairness"]'],
  ["task", wrong && `task/${wrong.task}`, "[data-test=checks] .checks li"],
]) {
  if (!view) continue;
  await page.goto(`${origin}/#/${view}`);
  await page.locator(shown).first().waitFor();
  // What is loaded later is drawn then.
  await page.waitForTimeout(2_000);
  await page.screenshot({ path: join(directory, `explorer-${name}.png`), fullPage: true, clip: { x: 0, y: 0, width: 1_100, height: name === "task" ? 1_250 : 760 } });
}
await browser.close();
