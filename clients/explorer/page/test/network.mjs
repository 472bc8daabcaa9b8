// The environment of the page's tests: a development node with nodes that answer, are slow or cheat; the indexer on it; the built page; a browser.
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { musterAbi } from "muster-client/abi";
import { startNetwork } from "muster-client/test";
import { chromium } from "playwright-core";
import { execFileSync } from "node:child_process";

const page = fileURLToPath(new URL("..", import.meta.url));
const indexerDirectory = join(page, "../indexer");
/** The chain's block explorer in the tests' configuration. */
export const BLOCK_EXPLORER = "https://explorer.example";
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json" };
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits for a condition; returns its value. */
export async function until(what, is, seconds = 300) {
  const end = Date.now() + seconds * 1_000;
  for (;;) {
    const found = await is();
    if (found) return found;
    if (Date.now() > end) throw new Error(`in ${seconds} s it did not happen: ${what}`);
    await sleep(200);
  }
}

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

/** The indexer; `stop` and `start` again go on with the same database, which `name` tells apart. One that is `behind` is not waited for. */
export async function startIndexer({ url, address, directory, name = "pglite", settings = {}, behind = false }) {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  let child;
  let said = "";
  const start = async () => {
    // As if there were several endpoints: Ponder asks one at most 20 times a second to begin with.
    const env = { ...process.env, RPC_URL: Array(8).fill(url).join(), MUSTER: address, START_BLOCK: "0", PGLITE_DIRECTORY: join(directory, name), POLLING_INTERVAL: "250", PONDER_TELEMETRY_DISABLED: "1", DATABASE_URL: "", ...settings };
    child = spawn("node_modules/.bin/ponder", ["start", "--port", String(port), "--schema", "muster", "--log-level", "info"], { cwd: indexerDirectory, env, stdio: "pipe" });
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (said += data));
    await until("the indexer is ready", async () => {
      if (child.exitCode !== null) throw new Error(`the indexer ended:\n${said}`);
      const answer = await fetch(`${origin}/ready`).catch(() => undefined);
      return behind ? answer !== undefined : answer?.ok;
    }, 1_200);
  };
  const stop = async () => {
    if (!child || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.on("exit", resolve));
    child.kill("SIGTERM");
    const late = setTimeout(() => child.kill("SIGKILL"), 60_000);
    await ended;
    clearTimeout(late);
  };
  await start();
  return { origin, start, stop, said: () => said };
}

/** A folder's files, as any static server gives them. */
export async function serveFiles(directory) {
  const server = createServer((request, response) => {
    const path = request.url.split("?")[0];
    const file = join(directory, path === "/" ? "index.html" : path.replaceAll("..", ""));
    if (!existsSync(file)) return void response.writeHead(404).end();
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" }).end(readFileSync(file));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { origin: `http://127.0.0.1:${server.address().port}`, directory, close: () => (server.closeAllConnections(), new Promise((resolve) => server.close(resolve))) };
}

/** The built page, configured as for any static server. */
export function serve(directory, config) {
  const site = join(directory, `site-${Math.random().toString(36).slice(2)}`);
  cpSync(join(page, "dist"), site, { recursive: true });
  execFileSync("node", [join(page, "configure.mjs"), site, ...Object.entries(config).map(([name, value]) => `${name}=${value}`)]);
  return serveFiles(site);
}

/** The browser that is there; CHROMIUM names another. */
export function startBrowser() {
  const found = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => path && existsSync(path));
  if (!found) throw new Error("there is no Chromium: apt-get install chromium, or name one in CHROMIUM");
  return chromium.launch({ executablePath: found, args: ["--no-sandbox", "--enable-precise-memory-info"] });
}

/** Twenty of them, a slash, are whole stake units of stake. */
export const FEE = 10_007n * 50_000_000_000n;
export const MODELS = ["stabilityai/sdxl-turbo", "meta-llama/Llama-3.1-8B"];

/** All of it. The indexer begins after the network's `history`, so both past and new events exist then. */
export async function startAll(history) {
  const directory = mkdtempSync(join(tmpdir(), "muster-page-"));
  const stops = [() => rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })];
  const stop = async () => {
    for (const end of stops.splice(0).reverse()) await end();
  };
  try {
    const eth = 10n ** 18n;
    const nodes = [
      ...[800n, 1_200n, 3_000n, 900n, 500n].map((stake) => ({ stake: stake * eth, models: MODELS.slice(0, 1) })),
      ...[800n, 1_600n, 700n].map((stake) => ({ stake: stake * eth, gpu: "NVIDIA GeForce RTX 4090", vram: 24, models: MODELS })),
    ];
    // Deliberate failures cause some refusals.
    const network = await startNetwork({ nodes, parameters: { sampleBps: 10_000n, scorePool: 3n, slashImages: 1n }, onError: () => undefined });
    stops.push(() => network.stop());
    const { client, address } = network;
    const write = async (account, functionName, args, value) => {
      const hash = await client.writeContract({ account, address, abi: musterAbi, functionName, args, value });
      return client.waitForTransactionReceipt({ hash, pollingInterval: 50 });
    };
    for (const model of MODELS) await write(network.nodes[0].account, "nameModel", [model]);
    const made = await history({ network });
    const indexer = await startIndexer({ url: network.url, address, directory });
    stops.push(() => indexer.stop());
    const site = await serve(directory, { indexer: indexer.origin, rpc: network.url, muster: address, name: "Testnet", chain: "Devnet", chainId: network.chain.id, blockExplorer: BLOCK_EXPLORER, docs: "https://docs.example", source: "https://source.example" });
    stops.push(() => site.close());
    const browser = await startBrowser();
    stops.push(() => browser.close());
    return { network, made, write, indexer, site, browser, directory, stop };
  } catch (error) {
    await stop().catch(() => undefined);
    throw error;
  }
}
