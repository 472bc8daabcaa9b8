// Stores: each against a server, and several together when some lie, hang or have nothing.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createClient, custom } from "viem";
import * as muster from "../dist/index.js";
import { directoryStore } from "../dist/node.js";
import { newIdentity, openInput, openWith, sealInput, sealTo } from "../dist/private.js";
import { entriesOf, firstOf, publishedStores, putAll, storeAt, storesOf } from "../dist/stores.js";
import { httpStore } from "../dist/stores/http.js";
import { cidOf, ipfsStore, kuboStore } from "../dist/stores/ipfs.js";
import { s3Store, signedStore } from "../dist/stores/s3.js";
import { startIpfs } from "./servers/ipfs.mjs";
import { credentials, startS3 } from "./servers/s3.mjs";

const { digestOf, objectName } = muster;
const { signal } = new AbortController();
const bytes = new TextEncoder().encode("what is stored");
const object = { digest: digestOf(bytes) };
const sealed = { sealed: "0f".repeat(32) };
/** All bytes of a store's answer. */
const whole = async (given) => given && new Uint8Array(await new Response(await given).arrayBuffer());
const get = async (store, what = object) => whole(await store.get(what, { signal }));

const servers = [];
/** A server, until the tests end. */
async function serve(answer) {
  const server = createServer(answer);
  servers.push(server);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${server.address().port}`;
}
async function bodyOf(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
}
let directory, bucket, ipfs;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "muster-"));
  [bucket, ipfs] = await Promise.all([startS3({ read: true }), startIpfs()]);
});
after(async () => {
  await bucket?.stop();
  ipfs?.stop();
  for (const server of servers) (server.closeAllConnections(), server.close());
  await rm(directory, { recursive: true });
});

test("an HTTP server is given and asked objects at their names, with headers, and behind a query", async () => {
  const held = new Map();
  const url = await serve(async (request, response) => {
    if (request.headers.authorization !== "Bearer key") return response.writeHead(403).end();
    if (request.method === "GET") return held.has(request.url) ? response.end(held.get(request.url)) : response.writeHead(404).end();
    held.set(request.url, await bodyOf(request));
    response.writeHead(201).end();
  });
  const store = httpStore(`${url}/in/?sig=a%2Fb`, { headers: { authorization: "Bearer key" } });
  assert.equal(store.name, `${url}/in/`);
  assert.equal(await get(store), null);
  await store.put(object, bytes, { signal });
  await store.put(sealed, bytes, { signal });
  assert.deepEqual(await get(store), bytes);
  assert.deepEqual([...held.keys()], [objectName(object), sealed.sealed].map((name) => `/in/${name}?sig=a%2Fb`));
  await assert.rejects(get(httpStore(url)), /HTTP 403/);
  await assert.rejects(httpStore(url).put(object, bytes, { signal }), /HTTP 403/);
});

test("a name and a password in a URL are the request's login, of every kind of store", async () => {
  const logins = [];
  const url = await serve((request, response) => {
    logins.push(request.headers.authorization);
    request.resume();
    response.writeHead(201).end();
  });
  const login = url.replace("//", "//some%40body:a%3Ab@");
  const [http, gateway, kubo] = [login, `ipfs+${login}`, `kubo+${login}?pin=service`].map((at) => storeAt(at));
  await get(http);
  await http.put(object, bytes, { signal });
  await get(gateway);
  await get(kubo);
  assert.deepEqual(logins, Array(4).fill(`Basic ${btoa("some@body:a:b")}`));
  await get(httpStore(login, { headers: { authorization: "Bearer key" } }));
  assert.equal(logins.at(-1), "Bearer key");
  // Others publish what they like: it fails when it is asked, and not when a list is read.
  const [bent] = publishedStores("http://%zz@127.0.0.1:9");
  await assert.rejects(get(bent), /URI malformed/);
});

test("a bucket of S3, by a server that checks signatures, and by URLs that were signed for a page", async () => {
  const options = { endpoint: bucket.url, bucket: "images", prefix: "in/puts", ...credentials };
  const store = s3Store(options);
  assert.equal(store.name, "s3://images/in/puts");
  assert.equal(await get(store), null);
  await store.put(object, bytes, { signal });
  assert.deepEqual(await get(store), bytes);
  // A reader without a key finds it by the name.
  assert.deepEqual(await get(httpStore(`${bucket.url}/images/in/puts`)), bytes);
  await assert.rejects(s3Store({ ...options, secretAccessKey: "another" }).put(object, bytes, { signal }), /HTTP 403/);
  await assert.rejects(s3Store({ ...options, bucket: "none" }).put(object, bytes, { signal }), /there is no bucket none/);
  const page = signedStore("the server's bucket", (name, method) => store.sign(name, method, 60));
  await page.put(sealed, bytes, { signal });
  assert.deepEqual([await get(page, sealed), await get(store, sealed)], [bytes, bytes]);
  // A URL for reading does not write.
  await assert.rejects(signedStore("read", (name) => store.sign(name, "GET")).put(object, bytes, { signal }), /HTTP 403/);
  assert.match(await s3Store({ bucket: "b", region: "eu-north-1", accessKeyId: "a", secretAccessKey: "b" }).sign("n", "GET"), /^https:\/\/b\.s3\.eu-north-1\.amazonaws\.com\/n\?/);
});

test("IPFS: a Kubo node by its RPC, and a gateway, by the digest's CID", async () => {
  const { url: api, blocks, pins } = ipfs;
  const store = kuboStore(api, { pin: "pinata" });
  assert.equal(await get(store), null);
  await store.put(object, bytes, { signal });
  const cid = cidOf(object.digest);
  assert.deepEqual([...blocks.keys()], [cid]);
  assert.deepEqual(pins, [{ arg: cid, service: "pinata", background: "true" }]);
  assert.deepEqual([await get(store), await get(ipfsStore(`${api}/`)), await get(storeAt(`ipfs+${api}`)), await get(storeAt(`kubo+${api}`))], Array(4).fill(bytes));
  // Objects without a CID, or with more than a single block.
  assert.deepEqual([await get(store, sealed), await get(ipfsStore(api), sealed), ipfsStore(api).put], [null, null, undefined]);
  await assert.rejects(store.put(sealed, bytes, { signal }), /no name for a sealed result/);
  const long = new Uint8Array(2 ** 20 + 1);
  assert.deepEqual((await putAll([store], { digest: digestOf(long) }, long, {})).map(({ outcome }) => outcome), ["tooLong"]);
  await storeAt(`kubo+${api}?pin=other`).put(object, bytes, { signal });
  assert.equal(pins.at(-1).service, "other");
});

test("no message shows the password in the URL of a store", async () => {
  const url = "http://user:secret@127.0.0.1:1";
  for (const store of [ipfsStore(url), kuboStore(`${url}/`), storeAt(url)]) await assert.rejects(get(store), (error) => !/secret/.test(`${error} ${error.cause}`));
});

test("a directory is a store", async () => {
  const store = directoryStore(join(directory, "objects"));
  assert.equal(await get(store), null);
  await store.put(object, bytes, { signal });
  await store.put(sealed, new Uint8Array([1]), { signal });
  assert.deepEqual([await get(store), await get(store, sealed)], [bytes, new Uint8Array([1])]);
  // Equal inputs at once, as of a batch.
  await Promise.all(Array.from({ length: 64 }, () => store.put(object, bytes, { signal })));
  assert.deepEqual([await get(store), readdirSync(join(directory, "objects")).length], [bytes, 2]);
  await assert.rejects(get(directoryStore(new URL(import.meta.url).pathname)), /ENOTDIR/);
});

test("of what others publish nothing is read but the web's", () => {
  const said = "https://a/x?sig=1  s3://b /etc file:///etc kubo+http://127.0.0.1:5001 age:age1x stream+https://s ipfs+https://g https://ninth";
  assert.deepEqual(publishedStores(said).map(({ name }) => name), ["https://a/x", "ipfs+https://g"]);
  assert.deepEqual(publishedStores("ipfs+https://g http://u:p@h/p").map(({ name }) => name), ["ipfs+https://g", "http://h/p"]);
  assert.deepEqual(publishedStores("https://a https://b", (url) => url.endsWith("b")).map(({ name }) => name), ["https://b"]);
  assert.equal(entriesOf(" a b ").length, 2);
  assert.throws(() => storesOf(["s3://bucket"]), /s3:\/\/bucket is no URL of a store.*muster-client\/stores\/s3/);
});

test("a published store leads nowhere else, a configured one may", async () => {
  const asked = [];
  const within = await serve((request, response) => (asked.push(request.url), response.end(bytes)));
  const without = await serve((request, response) => void response.writeHead(302, { location: within + request.url }).end());
  for (const kind of ["", "ipfs+"]) await assert.rejects(get(publishedStores(kind + without)[0]));
  assert.deepEqual(asked, []);
  for (const kind of ["", "ipfs+"]) assert.deepEqual(await get(storeAt(kind + without)), bytes);
});

// ---------------------------------------------------------------- several stores

const there = (name, given = bytes) => ({ name, get: async () => given });
const gone = (name) => ({ name, get: async () => null });
const down = (name) => ({ name, get: async () => Promise.reject(new Error("the line is cut")) });
/** Never answers, and ignores signals. */
const deaf = (name) => ({ name, get: () => new Promise(() => {}) });
/** Sends without end. */
const endless = (name, seen = {}) => ({
  name,
  get: async () => new ReadableStream({ pull: (controller) => (seen.pulled = (seen.pulled ?? 0) + 1, controller.enqueue(new Uint8Array(1024))), cancel: () => void (seen.cancelled = true) }),
});
async function* placesOf(stores) {
  const check = (bytes, digest) => {
    if (digest !== object.digest) throw new Error(`its digest is ${digest}`);
    return bytes;
  };
  for (const store of stores) yield { store, object, check };
}
const find = (stores, bounds = {}) => firstOf(placesOf(stores), bounds);
const outcomes = ({ attempts }) => attempts.map(({ store, outcome }) => `${store} ${outcome}`);

test("each store that is of no use costs one attempt, whatever is the matter with it", async () => {
  const seen = {};
  const useless = [gone("empty"), down("down"), there("liar", new Uint8Array([1])), endless("endless", seen)];
  assert.deepEqual(outcomes(await find(useless, { maxBytes: 4096 })), ["empty missing", "down unreachable", "liar corrupt", "endless tooLong"]);
  assert.deepEqual([seen.pulled <= 6, seen.cancelled], [true, true]);
  const { found, place } = await find([...useless, there("good")], { maxBytes: 4096 });
  assert.deepEqual([found, place.store.name], [bytes, "good"]);
  assert.deepEqual(await find([]), { attempts: [] });
});

test("a store that takes long holds up nobody, is let go, and no more than four are asked at once", async () => {
  const asked = [];
  let heard;
  const slow = { name: "slow", get: (_, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => (heard = true, reject(signal.reason)))) };
  assert.equal((await find([slow, there("good")])).place.store.name, "good");
  assert.ok(heard);
  const noted = [1, 2, 3, 4, 5].map((name) => ({ name: `${name}`, get: () => (asked.push(name), new Promise(() => {})) }));
  const controller = new AbortController();
  const waiting = find(noted, { signal: controller.signal });
  for (const end = Date.now() + 60_000; asked.length < 4 && Date.now() < end; ) await new Promise((resolve) => setTimeout(resolve, 50));
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  assert.deepEqual(asked, [1, 2, 3, 4]);
  controller.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
  // Bounded in time, although nobody listens.
  assert.deepEqual(outcomes(await find([deaf("deaf"), deaf("mute")], { storeTimeout: 200 })), ["deaf unreachable", "mute unreachable"]);
});

test("an input is in a store before anything is sent; where none takes it nothing is", async () => {
  const asked = [];
  const request = async ({ method }) => {
    asked.push(method);
    throw { code: -32000, message: "nobody" };
  };
  const client = createClient({ transport: custom({ request }, { retryCount: 0 }) });
  const task = { address: `0x${"5a".repeat(20)}`, account: `0x${"6b".repeat(20)}`, kind: 1, value: 1n };
  const full = { name: "full", get: async () => null, put: async () => Promise.reject(new Error("no room")) };
  await assert.rejects(muster.createTask(client, { ...task, input: "a", store: [full, gone("reading")] }), (error) => {
    assert.ok(error instanceof muster.StoreError, error);
    assert.deepEqual(outcomes(error), ["full unreachable", "reading readOnly"]);
    assert.match(error.message, /No store took the input, so no task was created[^]*full was not reached for [0-9a-f]{64}: no room/);
    return true;
  });
  assert.deepEqual(asked, []);
  const held = [];
  const taking = { name: "taking", get: async () => null, put: async (object, bytes) => void held.push([object, bytes, asked.length]) };
  await assert.rejects(muster.createTask(client, { ...task, input: bytes, store: [full, taking] }));
  assert.deepEqual(held, [[object, bytes, 0]]);
  assert.ok(asked.length);
  const refused = (more, said) => assert.rejects(muster.createTask(client, { ...task, ...more }), (error) => error instanceof muster.RequestError && said.test(error.message));
  await refused({ inputDigest: object.digest, store: taking }, /`store` is for an `input`/);
  await refused({ input: "a", private: true }, /needs a `store`/);
  asked.length = 0;
  await assert.rejects(muster.createTask(client, { ...task, signal: AbortSignal.abort(new Error("enough")) }), /enough/);
  assert.deepEqual(asked, []);
});

test("a private input opens by its recipients' keys alone, and says who may read the result", async () => {
  const [own, node, other] = await Promise.all([newIdentity(), newIdentity(), newIdentity()]);
  const input = await sealInput(bytes, [node.recipient], own.recipient);
  assert.equal(new TextDecoder().decode(input.subarray(0, 36)), "muster sealed 1\nage-encryption.org/v");
  assert.deepEqual(await openInput(input, node.identity), { input: bytes, reply: own.recipient });
  await assert.rejects(openInput(input, other.identity));
  const result = await sealTo(bytes, [own.recipient]);
  assert.deepEqual(await openWith(result, own.identity), bytes);
  await assert.rejects(openWith(result, node.identity));
});
