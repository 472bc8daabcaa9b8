/**
 * Many viewers at once, with the requests of the page's first view. Each loads the page's files, asks the questions of the first view, then listens for
 * changes in the answers, and asks again where it missed something, as src/live.ts does. Meanwhile an event is written into the database each second,
 * as the indexer would write it; the time until each viewer sees it is measured.
 *
 * DATABASE_URL=postgresql://... node --import tsx test/viewers.mjs http://127.0.0.1:42069 SCHEMA [VIEWERS] [SECONDS]
 *
 * Several servers are separated by commas. Viewers, server and database share this machine. Fails if the median first view takes more than a second, or
 * the median event until it appears in the figures. On a machine that is too slow or too busy for that, fails if they take eight times as long as an
 * empty page beside them (plain.mjs).
 */
import assert from "node:assert/strict";
import http from "node:http";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import pg from "pg";
import { allowed, startPlain } from "./plain.mjs";

/** The questions of the first view, in the page's words: page/test/large.mjs compares them with the page's. */
export const QUESTIONS = [
  "network",
  `data?query=${encodeURIComponent('{ _meta { status } tau: parameters(where: {name: "tau"},limit: 1000) { items { number name unit value proposed effective } pageInfo { hasNextPage } } }')}`,
  "list/nodes?state=joined&sort=-earned&limit=10&offset=0",
];

const quantile = (values, q) => values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))] ?? Number.NaN;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** As browsers: at most six connections of one viewer to a server; a request lost because the server had just closed the connection is repeated. */
function get(agent, url) {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { agent, headers: { "accept-encoding": "gzip" } }, (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("end", () => {
        const bytes = Buffer.concat(chunks);
        if (response.statusCode !== 200) return reject(new Error(`${url}: ${response.statusCode}`));
        resolve({ etag: response.headers.etag, bytes: bytes.length, body: response.headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes });
      });
    });
    request.on("error", (error) => (request.reusedSocket && error.code === "ECONNRESET" ? get(agent, url).then(resolve, reject) : reject(error)));
  });
}

/** The address of states and of changes in the answers to these questions. */
const liveOf = (origin, asked) => `${origin}/api/live${asked.length ? `?${asked.map((one) => `ask=${encodeURIComponent(one)}`).join("&")}` : ""}`;

/** Passes each message of a response to a function. */
export function messages(response, onMessage) {
  let held = "";
  response.setEncoding("utf8");
  response.on("data", (text) => {
    held += text;
    for (let end = held.indexOf("\n\n"); end >= 0; end = held.indexOf("\n\n")) {
      const data = held.slice(0, end).replace(/^data: /, "");
      held = held.slice(end + 2);
      if (data.startsWith("{")) onMessage(JSON.parse(data));
    }
  });
}

/** Listens there; passes each message to a function. */
function listen(url, onMessage, onError) {
  const request = http.get(url, { agent: false }, (response) => messages(response, onMessage));
  let isOver = false;
  request.on("error", (error) => isOver || onError(error));
  return () => {
    isOver = true;
    request.destroy();
  };
}

/** Writes an event into the database as the indexer would, in a transaction that the caller commits; returns its number and its block. */
export async function begin(client, schema, node) {
  const at = Math.floor(Date.now() / 1_000);
  await client.query("begin");
  const { rows } = await client.query(`update ${schema}.network set events = events + 1, block = block + 1, at = ${at} returning events, block`);
  const [{ events, block }] = rows;
  const padded = `${String(at).padStart(10, "0")}${"0".repeat(10)}412346${String(block).padStart(16, "0")}${"9".repeat(16)}5${"9".repeat(16)}`;
  await client.query(`update ${schema}._ponder_checkpoint set latest_checkpoint = $1`, [padded]);
  await client.query(`update ${schema}.node set earned = earned + 1 where number = $1`, [node]);
  return { events, block };
}

/** Milliseconds for which the last event is waited for. */
const LAST = 30_000;
/** One of this many viewers opens the empty page too, by as many requests, one after the other where a viewer does so. */
const EACH = 10;

/** The milliseconds for which the page waits for a followed answer before it asks; and until a view has settled. */
const [PATIENCE, SETTLED] = [2_000, 300];

export async function look(origins, database, schema, number, seconds) {
  const { patched } = await import("../src/api/patch.ts");
  const client = new pg.Client({ connectionString: database });
  await client.connect();
  const [written, blockOf] = [new Map(), new Map()];
  const [firsts, pushes, views] = [[], [], []];
  let [requests, bytes, missed] = [0, 0, 0];
  const failed = new Map();
  const plain = { ...(await startPlain()), firsts: [], pushes: [], told: Number.POSITIVE_INFINITY };
  const viewer = async (i) => {
    const origin = origins[i % origins.length];
    const agent = new http.Agent({ keepAlive: true, maxSockets: 6 });
    const ask = async (path) => {
      const answer = await get(agent, `${origin}${path}`);
      requests++;
      bytes += answer.bytes;
      return answer;
    };
    const fail = (error) => failed.set(error.message, (failed.get(error.message) ?? 0) + 1);
    const held = new Map();
    const seen = new Set();
    let [known, late, stop] = [0, undefined, () => undefined];
    /** The newest event whose figures are there. */
    const look = () => {
      const { block } = held.get(QUESTIONS[0]).body;
      for (const [events, moment] of written) {
        if (seen.has(events) || !blockOf.has(events) || block < blockOf.get(events)) continue;
        seen.add(events);
        views.push(performance.now() - moment);
      }
    };
    const askAll = async (questions) => {
      await Promise.all(
        questions.map(async (question) => {
          const { body, etag } = await ask(`/api/${question}${question.includes("?") ? "&" : "?"}v=${known}`);
          held.set(question, { etag, body: JSON.parse(body) });
        }),
      );
      look();
    };
    const hear = ({ network, answers }) => {
      const events = Number(network.events);
      if (events > known && written.has(events)) pushes.push(performance.now() - written.get(events));
      const isNew = events > known;
      known = events;
      const lost = [];
      for (const [question, { from, to, by }] of Object.entries(answers ?? {})) {
        const before = held.get(question);
        if (before.etag === from && by) held.set(question, { etag: to, body: patched(before.body, by) });
        else if (before.etag !== to) lost.push(question);
      }
      if (lost.length) {
        missed += lost.length;
        return void askAll(lost).catch(fail);
      }
      look();
      if (!isNew) return;
      clearTimeout(late);
      late = setTimeout(() => held.get(QUESTIONS[0]).body.block < blockOf.get(known) && ((missed += QUESTIONS.length), void askAll(QUESTIONS).catch(fail)), PATIENCE);
    };
    try {
      const begun = performance.now();
      const index = String((await ask("/")).body);
      const files = [...index.matchAll(/(?:src|href)="\.(\/assets\/[^"]+)"/g)].map(([, file]) => file);
      await Promise.all([...files, "/config.json"].map(ask));
      const first = await new Promise((resolve, reject) => {
        stop = listen(
          liveOf(origin, []),
          (state) => {
            known = Number(state.network.events);
            resolve(state);
          },
          reject,
        );
      });
      assert.ok(first.block > 0);
      await askAll(QUESTIONS);
      firsts.push(performance.now() - begun);
      await sleep(SETTLED);
      stop();
      stop = listen(liveOf(origin, QUESTIONS), hear, fail);
      if (i % EACH === 0) {
        const end = await empty(files.length + 1);
        const both = stop;
        stop = () => (both(), end());
      }
    } catch (error) {
      fail(error);
    }
    return () => {
      clearTimeout(late);
      stop();
      agent.destroy();
    };
  };
  /** Opens the empty page and listens there. */
  async function empty(files) {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 6 });
    const nothing = () => get(agent, `${plain.origin}/nothing`);
    const begun = performance.now();
    await nothing();
    await Promise.all(Array.from({ length: files }, nothing));
    let hear;
    let stop;
    await new Promise((resolve, reject) => {
      hear = resolve;
      stop = listen(`${plain.origin}/live`, () => hear(), reject);
    });
    await Promise.all(QUESTIONS.map(nothing));
    plain.firsts.push(performance.now() - begun);
    hear = () => plain.pushes.push(performance.now() - plain.told);
    return () => {
      stop();
      agent.destroy();
    };
  }
  // They come within ten seconds, as after an announcement.
  const ends = [];
  const come = Promise.all(Array.from({ length: number }, (_, i) => sleep((i * 10_000) / number).then(() => viewer(i)).then((end) => ends.push(end))));
  await come;
  const until = performance.now() + seconds * 1_000;
  let happened = 0;
  while (happened < 2 || performance.now() < until) {
    const { events, block } = await begin(client, schema, 1 + (happened % 100));
    blockOf.set(Number(events), Number(block));
    written.set(Number(events), performance.now());
    await client.query("commit");
    plain.told = performance.now();
    await get(undefined, `${plain.origin}/tell`);
    happened++;
    await sleep(1_000);
  }
  // Viewers that have not seen all by then never will.
  for (const end = performance.now() + LAST; views.length < number * happened && performance.now() < end; ) await sleep(100);
  for (const end of ends) end();
  await client.end();
  plain.stop();
  return { firsts, pushes, views, plain, requests, bytes, happened, missed, failed };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [origin, schema, number = "1000", seconds = "30"] = process.argv.slice(2);
  const { DATABASE_URL } = process.env;
  if (!schema || !DATABASE_URL) throw new Error("DATABASE_URL=... node test/viewers.mjs ORIGIN SCHEMA [VIEWERS] [SECONDS]");
  const begun = performance.now();
  const { firsts, pushes, views, plain, requests, bytes, happened, missed, failed } = await look(origin.split(","), DATABASE_URL, schema, Number(number), Number(seconds));
  const took = (performance.now() - begun) / 1_000;
  const row = (what, values) => console.log(`| ${what} | ${[quantile(values, 0.5), quantile(values, 0.95), Math.max(...values)].map((value) => `${value.toFixed()} ms`).join(" | ")} |`);
  console.log(`\n${number} viewers within ten seconds, ${happened} events: ${requests} answers, ${(requests / took).toFixed()} a second, ${(bytes / 1e6).toFixed(1)} MB; ${missed} asked again because a change was missed.\n`);
  console.log("| | median | 95 of 100 | the last |\n| --- | ---: | ---: | ---: |");
  row("first view, files and data", firsts);
  row("an event heard of, from its commit", pushes);
  row("an event seen in the figures", views);
  row("an empty page beside it", plain.firsts);
  row("an event on the empty page", plain.pushes);
  for (const [message, times] of failed) console.log(`  failed ${times} times: ${message}`);
  assert.equal(failed.size, 0);
  assert.ok(firsts.length === Number(number), `${firsts.length} viewers of ${number} saw it`);
  assert.ok(views.length >= 0.9 * Number(number) * happened, `${views.length} times an event was seen in the figures`);
  for (const [what, values, beside] of [
    ["the first view", firsts, plain.firsts],
    ["hearing of an event", pushes, plain.pushes],
    ["seeing it in the figures", views, plain.pushes],
  ]) {
    const [median, most] = [quantile(values, 0.5), allowed(quantile(beside, 0.5))];
    assert.ok(median <= most, `${what} takes ${median.toFixed()} ms, more than ${most.toFixed()} ms`);
  }
  process.exit(0);
}
