/** The processes of the tests: a development node, the demonstration on it, a counting proxy before it, and indexers. */
import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { mkdir, mkdtemp, readFile, readdir, writeFile } from "node:fs/promises";
import { type Server, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { Address } from "viem";
import { Indexer, sleep } from "./indexer";

export const directory = await mkdtemp(join(tmpdir(), "muster-indexer-"));
const root = fileURLToPath(new URL("..", import.meta.url));

const need = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: test.sh sets it`);
  return value;
};

const children = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});

export function start(command: string, args: string[], env: Record<string, string>, log: string): ChildProcess {
  const child = spawn(command, args, { cwd: root, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  children.add(child);
  child.on("exit", () => children.delete(child));
  const file = createWriteStream(join(directory, log));
  child.stdout!.pipe(file);
  child.stderr!.pipe(file);
  return child;
}

const ended = (child: ChildProcess) => new Promise<number | null>((resolve) => child.on("exit", (code) => resolve(code)));

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A development node whose time is set. */
export async function devnode(): Promise<string> {
  const args = ["--port", "0", "--manual-time", "1700000000", "--history", "1000000"];
  const child = start(need("MUSTER_DEVNODE"), args, {}, "devnode.log");
  let heard = "";
  return new Promise((resolve, reject) => {
    child.stdout!.on("data", (data: Buffer) => {
      heard += data;
      const found = /Listening on (http:\S+?)[\s,]/.exec(heard);
      if (found) resolve(found[1]!);
    });
    child.on("exit", () => reject(new Error(`the node did not start: ${heard}`)));
  });
}

/** Runs the demonstration there, and returns the contract's address and the demonstration's report. */
export async function demonstrate(url: string, flags: string[]): Promise<{ address: Address; report: Record<string, unknown> }> {
  const env = { RPC_URL: url, DEPLOYMENTS: join(directory, "deployments"), PRIVATE_KEY: "" };
  const child = spawn(need("MUSTER_CLI"), ["demo", "--json", ...flags], {
    cwd: fileURLToPath(new URL("../../../../", import.meta.url)),
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.add(child);
  let [said, told] = ["", ""];
  child.stdout!.on("data", (data: Buffer) => (told += data));
  child.stderr!.on("data", (data: Buffer) => (said += data));
  // Its output may arrive after its end.
  const code = await new Promise((resolve) => child.on("close", resolve));
  if (code !== 0) throw new Error(`the demonstration failed: ${said.slice(-2_000)}`);
  children.delete(child);
  const [file] = await readdir(env.DEPLOYMENTS);
  const { address } = JSON.parse(await readFile(join(env.DEPLOYMENTS, file!), "utf8")) as { address: Address };
  return { address, report: JSON.parse(told) as Record<string, unknown> };
}

/** Passes calls on, and counts them by method. */
export class Counter {
  readonly counts = new Map<string, number>();
  /** When each came and was answered, by this process's clock. */
  calls: { method: string; begun: number; ended: number }[] = [];
  /** Told of each call before it is passed on, which waits for it. */
  before: (method: string) => Promise<void> | void = () => {};
  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async before(target: string): Promise<Counter> {
    let counter: Counter;
    const server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks);
      const told = JSON.parse(body.toString()) as { method: string } | { method: string }[];
      const calls = [told].flat().map(({ method }) => ({ method, begun: performance.now(), ended: Number.POSITIVE_INFINITY }));
      for (const { method } of calls) counter.counts.set(method, (counter.counts.get(method) ?? 0) + 1);
      counter.calls.push(...calls);
      try {
        for (const { method } of calls) await counter.before(method);
        const answer = await fetch(target, { method: "POST", headers: { "content-type": "application/json" }, body });
        response.writeHead(answer.status, { "content-type": "application/json" });
        response.end(await answer.text());
        for (const call of calls) call.ended = performance.now();
      } catch {
        response.writeHead(502).end();
      }
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    counter = new Counter(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    return counter;
  }

  /** Calls since the last time that it was asked. */
  take(): { total: number; byMethod: Record<string, number> } {
    const byMethod = Object.fromEntries(this.counts);
    this.counts.clear();
    this.calls = [];
    return { total: Object.values(byMethod).reduce((sum, count) => sum + count, 0), byMethod };
  }

  stop() {
    this.server.close();
    this.server.closeAllConnections();
  }
}

const ENDPOINTS = 8;

export interface Options {
  rpc: string;
  address: Address;
  schema: string;
  views?: string;
  /** PostgreSQL; PGlite in a directory of the schema's name without it. */
  database?: string | undefined;
  /** Changed variables of the environment. */
  settings?: Record<string, string>;
}

/** A sender of webhooks: hooks.mjs with these hooks, and its state in the named file. */
export async function startHooks(indexer: string, hooks: object[], state: string): Promise<{ kill: () => Promise<void>; said: () => Promise<string>; begun: () => Promise<string[]> }> {
  const [file, log] = [join(directory, "hooks.json"), `hooks-${Math.random().toString(36).slice(2)}.log`];
  await writeFile(file, JSON.stringify(hooks));
  const noted = join(directory, state);
  const child = start(process.execPath, ["hooks.mjs"], { INDEXER: indexer, HOOKS: file, HOOKS_STATE: noted }, log);
  const end = ended(child);
  const kill = async () => {
    child.kill("SIGKILL");
    await end;
  };
  /** The hooks of which is noted where they begin. */
  const begun = () => readFile(noted, "utf8").then((text) => Object.keys((JSON.parse(text) as { hooks: object }).hooks).sort(), () => []);
  return { kill, said: () => readFile(join(directory, log), "utf8").catch(() => ""), begun };
}

/** An indexer that runs, and can be killed. */
export class Running extends Indexer {
  readonly #ended: Promise<number | null>;

  private constructor(
    url: string,
    readonly child: ChildProcess,
    private readonly log: string,
  ) {
    super(url);
    this.#ended = ended(child);
  }

  static async start({ rpc, address, schema, views, database, settings }: Options): Promise<Running> {
    const port = await freePort();
    const log = `${schema}-${port}.log`;
    const env = {
      // As if there were several: Ponder asks one at most 20 times a second to begin with.
      ...{ RPC_URL: Array(ENDPOINTS).fill(rpc).join(), MUSTER: address, START_BLOCK: "0", POLLING_INTERVAL: "1000", PONDER_TELEMETRY_DISABLED: "1" },
      DATABASE_URL: database ?? "",
      PGLITE_DIRECTORY: join(directory, `pglite-${schema}`),
      ...settings,
    };
    const args = ["start", "--schema", schema, ...(views ? ["--views-schema", views] : []), "--port", String(port), "--hostname", "127.0.0.1"];
    return new Running(`http://127.0.0.1:${port}`, start("node_modules/.bin/ponder", args, env, log), log);
  }

  /** Only answers, from the schema's contents: `ponder serve`, as the servers' user where there is one. Its chain endpoint is a closed port. It serves a page of two files, so that the explorer's need not be built. */
  static async serve(schema: string, database: string, settings: Record<string, string> = {}, port?: number): Promise<Running> {
    port ??= await freePort();
    const log = `${schema}-${port}.log`;
    const page = join(directory, "page");
    await mkdir(join(page, "assets"), { recursive: true });
    await writeFile(join(page, "index.html"), '<!doctype html><title>A page</title><script type="module" src="./assets/page.js"></script>');
    const script = "// Nothing.\n".repeat(1_000);
    await writeFile(join(page, "assets/page.js"), script);
    await writeFile(join(page, "assets/page.js.gz"), gzipSync(script));
    const env = { PAGE: relative(root, page), RPC_URL: "http://127.0.0.1:9", MUSTER: `0x${"ff".repeat(20)}`, CHAIN_ID: "412346", START_BLOCK: "1", PONDER_TELEMETRY_DISABLED: "1", DATABASE_URL: process.env.SERVE_DATABASE_URL || database, NODE_ENV: "production", ...settings };
    const running = new Running(`http://127.0.0.1:${port}`, start("node_modules/.bin/ponder", ["serve", "--schema", schema, "--port", String(port), "--hostname", "127.0.0.1"], env, log), log);
    while (!(await fetch(new URL("/health", running.url)).catch(() => undefined))?.ok) {
      if (running.child.exitCode !== null) await running.reach(Number.MAX_SAFE_INTEGER);
      await sleep(200);
    }
    return running;
  }

  /** Without any warning, as when the machine loses its power. */
  async kill() {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill("SIGKILL");
    await this.#ended;
  }

  override async reach(block: number, milliseconds = 600_000) {
    const died = this.#ended.then(async (code) => {
      const said = await readFile(join(directory, this.log), "utf8");
      throw new Error(`the indexer ended with ${code}:\n${said.slice(-3_000)}`);
    });
    await Promise.race([super.reach(block, milliseconds), died]);
  }

  /** Waits until all events from before its start are indexed. */
  async ready() {
    for (;;) {
      const answer = await fetch(new URL("/ready", this.url)).catch(() => undefined);
      if (answer?.status === 200) return;
      if (this.child.exitCode !== null) await this.reach(Number.MAX_SAFE_INTEGER);
      await sleep(200);
    }
  }
}
