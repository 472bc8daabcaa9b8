// Webhooks: posts nodes' events to the receivers that this server's operator has configured, at least once. docs/explorer.md describes them.
//
//   INDEXER=http://127.0.0.1:42069 HOOKS=hooks.json node hooks.mjs
//
// Needs Node.js 20 and nothing else. It reads the indexer by GraphQL, and keeps each receiver's progress in HOOKS_STATE, by default `HOOKS` with
// `.state` at its end. Only the file decides where anything is sent: no visitor can have this server call an address.
import { createHmac } from "node:crypto";
import { open, readFile, rename } from "node:fs/promises";
import { pathToFileURL } from "node:url";

/** Milliseconds between looks at the indexer, and until an answer is given up. */
const [PERIOD, PATIENCE] = [2_000, 10_000];
/** Milliseconds before the first repetition, doubled with each one; and at most. */
const [FIRST_WAIT, LONGEST_WAIT] = [1_000, 600_000];
/** Events in one message at most. */
const BATCH = 100;
/** Rows of one answer of the indexer. */
const PAGE = 1_000;
/** Blocks in which events may still be taken back: as many as the indexer itself is ready for on Arbitrum One. */
const REVOCABLE = 240n;
const LEAST_SECRET = 16;

/**
 * @typedef {{ name: string, url: string, secret: string, nodes?: number[], events?: string[] }} Hook A receiver, and its filter: by default all nodes and all events.
 * @typedef {{ after: string, sent: Record<string, string> }} Mark Every event up to `after` was received; of later ones those in `sent`, by their identities.
 * @typedef {{ id: string, name: string, node: number, task: string | null, block: string, blockHash: string, at: string, tx: string, args: unknown }} Event
 */

/** An event's transaction and its block's hash. @param {Pick<Event, "tx" | "blockHash">} event */
const identity = ({ tx, blockHash }) => `${tx} ${blockHash}`;
/** Whether it was sent. States of older versions have transactions alone. @param {string | undefined} sent @param {Event | undefined} event */
const isSent = (sent, event) => sent !== undefined && event !== undefined && (sent === identity(event) || sent === event.tx);

const say = (/** @type {string} */ text) => console.error(`hooks: ${text}`);

/** Reads the receivers. @param {string} text @returns {Hook[]} */
export function hooksOf(text) {
  const hooks = JSON.parse(text);
  if (!Array.isArray(hooks) || !hooks.length) throw new Error("the file must hold a list of hooks");
  const names = new Set();
  for (const { name, url, secret, nodes, events, ...rest } of hooks) {
    if (typeof name !== "string" || !/^[\w.-]{1,64}$/.test(name) || names.has(name)) throw new Error(`"name" must be of letters, digits, "-", "_" and ".", and another for each hook: ${name}`);
    names.add(name);
    const { protocol, username } = new URL(url);
    if (!["http:", "https:"].includes(protocol) || username) throw new Error(`${name}: "url" must be of http or https, with no user in it`);
    if (typeof secret !== "string" || secret.length < LEAST_SECRET) throw new Error(`${name}: "secret" needs at least ${LEAST_SECRET} characters`);
    if (nodes !== undefined && !(Array.isArray(nodes) && nodes.length && nodes.every((node) => Number.isSafeInteger(node) && node > 0))) throw new Error(`${name}: "nodes" must be a list of nodes' numbers`);
    if (events !== undefined && !(Array.isArray(events) && events.length && events.every((event) => typeof event === "string" && /^\w+$/.test(event)))) throw new Error(`${name}: "events" must be a list of events' names`);
    const [unknown] = Object.keys(rest);
    if (unknown) throw new Error(`${name}: there is no "${unknown}"`);
  }
  return hooks;
}

/** The expected value of the header `muster-signature`: the sending time, and HMAC-SHA-256 of that, a full stop and the body. */
export const signature = (/** @type {string} */ secret, /** @type {number} */ time, /** @type {string} */ body) =>
  `t=${time},v1=${createHmac("sha256", secret).update(`${time}.${body}`).digest("hex")}`;

/** Asks the indexer. @param {string} indexer @param {string} query @param {AbortSignal} signal @returns {Promise<any>} */
async function ask(indexer, query, signal) {
  const headers = { "content-type": "application/json" };
  const limit = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]);
  const response = await fetch(new URL("/graphql", indexer), { method: "POST", headers, body: JSON.stringify({ query }), signal: limit });
  const { data, errors } = await response.json();
  if (errors) throw new Error(errors[0].message);
  return data;
}

/** The indexer's newest block, and its network. An indexer that still reads the past is not asked. @param {string} indexer @param {AbortSignal} signal */
async function lookAt(indexer, signal) {
  if (!(await fetch(new URL("/ready", indexer), { signal })).ok) throw new Error("the indexer has not caught up");
  const { _meta } = await ask(indexer, "{ _meta { status } }", signal);
  const [status] = Object.values(typeof _meta.status === "string" ? JSON.parse(_meta.status) : _meta.status);
  const config = await (await fetch(new URL("/config.json", indexer), { signal })).json();
  return { block: BigInt(status?.block?.number ?? 0), network: `${status?.id} ${config.muster}`.toLowerCase(), chain: status?.id, muster: config.muster };
}

/**
 * Events of a hook after its mark, in their order: all, or enough for the next messages.
 * @param {string} indexer @param {Hook} hook @param {Mark} mark @param {AbortSignal} signal
 */
async function eventsOf(indexer, { nodes, events }, { after, sent }, signal) {
  const which = [nodes ? `node_in: [${nodes}]` : "node_not: null", ...(events ? [`name_in: ${JSON.stringify(events)}`] : [])];
  /** @type {Event[]} */
  const rows = [];
  for (let unsent = 0; ; ) {
    const where = [`id_gt: "${rows.at(-1)?.id ?? after}"`, ...which];
    const { events } = await ask(indexer, `{ events(where: {${where.join()}}, orderBy: "id", limit: ${PAGE}) { items { id name node task block blockHash at tx args } } }`, signal);
    for (const { node, args, ...rest } of events.items) rows.push({ ...rest, node: Number(node), args: typeof args === "string" ? JSON.parse(args) : args });
    unsent += events.items.filter((/** @type {Event} */ event) => !isSent(sent[event.id], event)).length;
    const isAll = events.items.length < PAGE;
    if (isAll || unsent > BATCH) return { rows, isAll };
  }
}

/** How far everybody is, in a file that is either the old or the new one whenever the machine stops. */
class State {
  #path;
  /** @type {Promise<unknown>} */
  #writing = Promise.resolve();
  /** @type {{ network: string, hooks: Record<string, Mark> }} */
  #now;

  /** @param {string} path @param {{ network: string, hooks: Record<string, Mark> }} now */
  constructor(path, now) {
    [this.#path, this.#now] = [path, now];
  }

  /** @param {string} path @param {string} network */
  static async at(path, network) {
    const known = await readFile(path, "utf8").then(JSON.parse, (error) => {
      if (error.code !== "ENOENT") throw error;
    });
    if (known && known.network !== network) throw new Error(`${path} is of another network, ${known.network}: name another file in HOOKS_STATE`);
    return new State(path, known ?? { network, hooks: {} });
  }

  /** @param {string} name */
  of = (name) => this.#now.hooks[name];

  /** @param {string} name @param {Mark} mark */
  set(name, mark) {
    this.#now.hooks[name] = mark;
    // One after the other: each writes the newest state when its turn comes.
    const writing = this.#writing.then(async () => {
      const file = await open(`${this.#path}.new`, "w", 0o600);
      try {
        await file.writeFile(JSON.stringify(this.#now));
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(`${this.#path}.new`, this.#path);
    });
    this.#writing = writing.catch(() => undefined);
    return writing;
  }
}

/** @param {number} milliseconds @param {AbortSignal} signal @returns {Promise<void>} */
const sleep = (milliseconds, signal) =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => (clearTimeout(timer), signal.removeEventListener("abort", done), resolve());
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", done);
  });

/** Sends once. A redirection is not followed: it would let a receiver choose the hosts that this server calls. @param {Hook} hook @param {object} message @param {AbortSignal} signal */
async function post({ name, url, secret }, message, signal) {
  const body = JSON.stringify(message);
  const headers = { "content-type": "application/json", "user-agent": "muster-hooks", "muster-hook": name, "muster-signature": signature(secret, Math.floor(Date.now() / 1_000), body) };
  const limit = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]);
  const response = await fetch(url, { method: "POST", headers, body, redirect: "manual", signal: limit });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`it answered ${response.status}`);
}

/** @param {string} id @param {string} sent */
function takenBack(id, sent) {
  const [tx, blockHash] = sent.split(" ");
  return { id, tx, blockHash, takenBack: true };
}

/** Sends one hook its unsent events, again and again. @param {string} indexer @param {Hook} hook @param {State} state @param {AbortSignal} signal */
async function follow(indexer, hook, state, signal) {
  let failures = 0;
  while (!signal.aborted) {
    try {
      // The newest block first: an event missing from the rows read afterwards, though its block was read, does not exist.
      const { block, chain, muster } = await lookAt(indexer, signal);
      const mark = state.of(hook.name) ?? { after: String((block + 1n) * 1_000_000n - 1n), sent: {} };
      if (!state.of(hook.name)) await state.set(hook.name, mark);
      const { rows, isAll } = await eventsOf(indexer, hook, mark, signal);
      const there = new Map(rows.map((event) => [event.id, event]));
      const upTo = isAll ? (block + 1n) * 1_000_000n - 1n : BigInt(rows.at(-1)?.id ?? 0);
      // After a reorganisation another event may be in its place before the block that was read has come so far.
      const gone = Object.entries(mark.sent).filter(([id, one]) => (there.has(id) || BigInt(id) <= upTo) && !isSent(one, there.get(id)));
      const unsent = rows.filter((event) => !isSent(mark.sent[event.id], event));
      const messages = [...gone.map(([id, one]) => takenBack(id, one)), ...unsent.slice(0, BATCH)];
      const sent = { ...mark.sent };
      if (messages.length) {
        await post(hook, { chain, muster, events: messages }, signal);
        for (const [id] of gone) delete sent[id];
        for (const event of unsent.slice(0, BATCH)) sent[event.id] = identity(event);
      }
      // Events that are final, and received together with all before them, are not asked for again.
      const open = unsent[BATCH];
      const all = open ? BigInt(open.id) - 1n : upTo;
      const final = (block > REVOCABLE ? block - REVOCABLE : 0n) * 1_000_000n;
      const reached = all < final ? all : final;
      const after = reached > BigInt(mark.after) ? reached : BigInt(mark.after);
      const kept = Object.fromEntries(Object.entries(sent).filter(([id]) => BigInt(id) > after));
      // A mark that only moves past blocks in which nothing happened need not be written each time.
      if (messages.length || after - BigInt(mark.after) > REVOCABLE * 1_000_000n) await state.set(hook.name, { after: String(after), sent: kept });
      if (failures) say(`${hook.name}: received again`);
      failures = 0;
      if (!open && isAll) await sleep(PERIOD, signal);
    } catch (error) {
      if (signal.aborted) return;
      const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** failures++) * (0.75 + Math.random() / 2);
      const { message, cause } = /** @type {Error} */ (error);
      say(`${hook.name}: ${cause instanceof Error ? cause.message || message : message}; again in ${(wait / 1_000).toFixed(1)} s`);
      await sleep(wait, signal);
    }
  }
}

async function main() {
  const { INDEXER, HOOKS, HOOKS_STATE } = process.env;
  if (!INDEXER || !HOOKS) throw new Error("INDEXER and HOOKS must be set: see docs/explorer.md");
  const hooks = hooksOf(await readFile(HOOKS, "utf8"));
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => stop.abort());
  for (let told = false; !stop.signal.aborted; ) {
    const there = await lookAt(INDEXER, stop.signal).catch(() => undefined);
    if (there) {
      const state = await State.at(HOOKS_STATE || `${HOOKS}.state`, there.network);
      say(`tells ${hooks.map(({ name }) => name).join(", ")}`);
      await Promise.all(hooks.map((hook) => follow(INDEXER, hook, state, stop.signal)));
      return;
    }
    if (!told) say(`waits for the indexer at ${INDEXER} to be ready`);
    told = true;
    await sleep(PERIOD, stop.signal);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  main().catch((error) => {
    say(error.message);
    process.exitCode = 1;
  });
}
