// The site that script/site made: no link in it is dead, its search finds, and its diagrams are drawn, light and dark.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const site = join(root, "build/site");
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const pages = readdirSync(site, { recursive: true }).filter((file) => file.endsWith(".html") && file !== "404.html");

/** The file that a path of the site is served from, as static hosts find it. */
function served(path) {
  const plain = join(site, decodeURI(path));
  return [`${plain}.html`, join(plain, "index.html"), plain].find((file) => existsSync(file) && extname(file));
}

let server, browser, origin;

/** A page that is waited for as long as other tests wait: Playwright's own bound is half a minute. */
async function opened(options) {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(300_000);
  return page;
}

before(async () => {
  server = createServer(({ url }, response) => {
    const file = served(url.split(/[?#]/)[0]);
    response.writeHead(file ? 200 : 404, { "content-type": TYPES[extname(file ?? "")] ?? "application/octet-stream" });
    response.end(file && readFileSync(file));
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  origin = `http://127.0.0.1:${server.address().port}`;
  const found = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
  const executablePath = found.find((path) => path && existsSync(path));
  assert.ok(executablePath, "there is no Chromium: apt-get install chromium, or name one in CHROMIUM");
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
});
after(async () => {
  await browser?.close();
  server.close();
});

test("every page of docs/ is there, and no link is dead", () => {
  const written = readdirSync(join(root, "docs"), { recursive: true }).filter((file) => file.endsWith(".md"));
  assert.equal(pages.length, written.length);
  const html = new Map(pages.map((page) => [join(site, page), readFileSync(join(site, page), "utf8")]));
  const dead = [];
  let followed = 0;
  for (const page of pages) {
    for (const [, href] of html.get(join(site, page)).matchAll(/<a [^>]*href="([^"]+)"/g)) {
      const url = new URL(href.replaceAll("&amp;", "&"), `http://site/${page.replace(/(index)?\.html$/, "")}`);
      if (url.host !== "site") continue;
      followed += 1;
      const file = served(url.pathname);
      const anchor = decodeURIComponent(url.hash.slice(1));
      if (!file || (anchor && html.has(file) && !html.get(file).includes(`id="${anchor}"`))) dead.push(`${page}: ${href}`);
    }
  }
  assert.deepEqual(dead, []);
  assert.ok(followed > 1_000, `only ${followed} links were found`);
});

test("diagrams are drawn, light and dark, and nothing fails", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await opened({ colorScheme });
    const failed = [];
    page.on("pageerror", (error) => failed.push(String(error)));
    page.on("response", (response) => response.status() >= 400 && failed.push(`${response.status()} ${response.url()}`));
    for (const name of ["life", "validation", "dispatching"]) {
      const diagrams = readFileSync(join(root, `docs/${name}.md`), "utf8").split("```mermaid").length - 1;
      assert.ok(diagrams > 0, `${name} has none`);
      await page.goto(`${origin}/${name}`);
      await page.waitForFunction((count) => document.querySelectorAll(".diagram > svg[id]").length === count, diagrams);
      assert.equal(await page.locator(".error-icon").count(), 0, `${name}: a diagram that cannot be drawn`);
    }
    assert.deepEqual(failed, []);
    await page.close();
  }
});

test("the search finds what a page says", async () => {
  const page = await opened();
  await page.goto(`${origin}/`);
  await page.locator(".VPNavBarSearch button").first().click();
  await page.locator("#localsearch-input").fill("slashTimes");
  await page.locator(".result").first().waitFor();
  const found = await page.locator(".result").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
  assert.ok(found.some((href) => /parameters|validation|security/.test(href)), found.join(" "));
  await page.close();
});
