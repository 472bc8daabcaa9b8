// The example page of streams (clients/ts/examples/stream.html) in a real browser: bundled by Vite, on a network whose node says the next word
// when the page has shown the last one.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { TaskKind } from "muster-client";
import { startNetwork } from "muster-client/test";
import { build } from "vite";
import { serveFiles, startBrowser, until } from "./network.mjs";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const TEXT = 'Once upon a time there was a <b>muster</b> of "many" nodes,\nand each of them said one word after the other until the end.';
const RESULT = Buffer.from(JSON.stringify({ model: "small", answers: [{ text: TEXT, tokens: 24, end: "stop" }] }));
/** Where its words end. */
const ENDS = [...RESULT.keys()].filter((at) => RESULT[at] === " ".charCodeAt());
const DIGEST = `0x${createHash("sha256").update(RESULT).digest("hex")}`;

let network;
let site;
let browser;
const stops = [];
before(async () => {
  const directory = mkdtempSync(join(tmpdir(), "muster-words-"));
  stops.push(() => rmSync(directory, { recursive: true, force: true }));
  // As the example's first line says, with the packages that are installed here.
  const root = join(directory, "words");
  mkdirSync(root);
  copyFileSync(here("../../../ts/examples/stream.html"), join(root, "index.html"));
  symlinkSync(here("../node_modules"), join(root, "node_modules"));
  await build({ root, configFile: false, logLevel: "error", resolve: { dedupe: ["viem"] }, build: { target: "es2022" } });
  network = await startNetwork({ nodes: [{}], run: () => new Uint8Array(RESULT) });
  stops.push(() => network.stop());
  site = await serveFiles(join(root, "dist"));
  stops.push(() => site.close());
  browser = await startBrowser();
  stops.push(() => browser.close());
});
after(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** The page with a task that it reads, and its looks since: milliseconds, text, its class, and the words below it. */
async function read(id) {
  const context = await browser.newContext();
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(error.stack));
  await page.goto(`${site.origin}/`);
  await page.evaluate(() => {
    const [text, state] = ["#text", "#state"].map((one) => document.querySelector(one));
    globalThis.looks = [];
    const look = () => globalThis.looks.push({ at: performance.now(), text: text.textContent, is: text.className, state: state.textContent });
    const options = { attributes: true, characterData: true, childList: true, subtree: true };
    for (const one of [text, state]) new MutationObserver(look).observe(one, options);
  });
  await page.fill("[name=url]", network.url);
  await page.fill("[name=address]", network.address);
  await page.fill("[name=id]", String(id));
  await page.click("button");
  return { page, problems, looks: () => page.evaluate(() => globalThis.looks) };
}

/** A task that its node begins, of which it shows nothing yet; and how to have it show its answer up to a byte. */
async function begin() {
  const [node] = network.nodes;
  node.behave("slow", Infinity);
  const { id } = await network.client.createTask({ kind: TaskKind.gpt, input: "Tell me a story.", value: 1_000n });
  await network.client.waitForTask({ id, until: "placed" });
  const since = Date.now();
  // A slow node shows as much of its answer as has passed of its delay.
  const show = (byte) => node.behave("slow", ((Date.now() - since) * RESULT.length) / byte);
  return { id, node, show };
}

/** How many bytes of the result show a text. */
const bytesOf = (text) => RESULT.indexOf("Once") + Buffer.byteLength(JSON.stringify(text)) - 2;
const textOf = (page) => page.locator("#text").textContent();
const border = (page) => page.locator("#text").evaluate((text) => getComputedStyle(text).borderLeftColor);

test("words appear one by one, and the chain proves them in the end", async () => {
  const { id, node, show } = await begin();
  const { page, problems, looks } = await read(id);
  let shown = "";
  for (const end of ENDS) {
    // Some came with the last one, because time passes while the page is asked.
    if (bytesOf(shown) >= end) continue;
    show(end + 1);
    shown = await until("another word", async () => {
      const text = await textOf(page);
      return text !== shown && text;
    });
  }
  node.behave("answers");
  await page.locator("#text.proven").waitFor();
  const said = await page.locator("#state").textContent();
  assert.equal(said, `The chain has this answer: ${DIGEST}`);
  const task = await network.client.waitForTask({ id });
  assert.deepEqual(task.answers.map(({ value }) => value), [DIGEST]);
  // Angle brackets of the text are no elements of the page.
  assert.equal(await textOf(page), TEXT);
  assert.equal(await page.locator("#text *").count(), 0);
  assert.equal(await border(page), "rgb(0, 128, 0)");

  const drafts = (await looks()).filter(({ text, is }) => text && is !== "proven");
  const texts = [...new Set(drafts.map(({ text }) => text))];
  for (const [i, text] of texts.entries()) {
    assert.ok(TEXT.startsWith(text) && text.length > (texts[i - 1]?.length ?? 0), `${texts[i - 1]} became ${text}`);
    // The stream's pieces end with words.
    assert.ok(text === TEXT || /\s/.test(TEXT[text.length]), text);
  }
  for (const { state } of drafts) assert.equal(state, "A draft: nothing proves it yet.");
  assert.ok(texts.length >= ENDS.length / 2, `${texts.length} drafts of ${ENDS.length} words`);
  assert.deepEqual(problems, []);
  await page.context().close();
});

test("a text that is not the node's answer stays a draft, and the page says so", async () => {
  const { id, node, show } = await begin();
  const { page, problems, looks } = await read(id);
  show(ENDS[3] + 1);
  await until("words appear", async () => (await textOf(page)) !== "");
  // It has shown one text, and answers with another.
  node.behave("cheats");
  await page.locator("#state", { hasText: `The answer to task ${id} differs from its node's stream` }).waitFor();
  assert.match(await page.locator("#state").textContent(), /Do not rely on the streamed text/);
  assert.ok((await looks()).every(({ is }) => is === ""));
  assert.equal(await border(page), "rgb(192, 192, 192)");
  assert.deepEqual(problems, []);
  await page.context().close();
});
