// endpoint.mjs does what it says, before a node of a hundred blocks, each with a transaction, which has a log.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Endpoint, PROVIDERS } from "./endpoint.mjs";

const HEAD = 100;
const hex = (number) => `0x${number.toString(16)}`;
const logs = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => ({ blockNumber: hex(from + i) }));
const METHODS = {
  eth_blockNumber: () => hex(HEAD),
  eth_getLogs: ({ fromBlock, toBlock }) => logs(Number(fromBlock), Number(toBlock)),
  eth_getBlockByNumber: (at) => ({ number: at === "latest" ? hex(HEAD) : at }),
  eth_getBlockByHash: (hash) => ({ number: hash }),
  eth_getTransactionReceipt: (hash) => ({ blockNumber: hash }),
  eth_getTransactionByHash: (hash) => ({ blockNumber: hash, blockHash: hash }),
  eth_call: (_, at) => at,
  eth_estimateGas: (_, at) => at,
};
const node = createServer(async (request, response) => {
  let text = "";
  for await (const part of request) text += part;
  const { id, method, params } = JSON.parse(text);
  response.end(JSON.stringify({ jsonrpc: "2.0", id, result: METHODS[method](...params) }));
});
const opened = [];
before(() => new Promise((resolve) => node.listen(0, "127.0.0.1", resolve)));
after(async () => {
  for (const endpoint of opened) await endpoint.stop();
  node.closeAllConnections();
  node.close();
});

async function open(settings) {
  const endpoint = await Endpoint.start(`http://127.0.0.1:${node.address().port}`, settings);
  opened.push(endpoint);
  const post = (body) => fetch(endpoint.url, { method: "POST", body: JSON.stringify(body) });
  const ask = async (method, ...params) => (await post({ jsonrpc: "2.0", id: 7, method, params })).json();
  const range = (from, to) => ask("eth_getLogs", { fromBlock: hex(from), toBlock: typeof to === "string" ? to : hex(to) });
  return { endpoint, post, ask, range };
}

test("passes everything on as it comes", async () => {
  const { ask, range, endpoint } = await open({});
  assert.deepEqual(await ask("eth_call", {}, "latest"), { jsonrpc: "2.0", id: 7, result: "latest" });
  assert.equal((await range(1, "latest")).result.length, HEAD);
  assert.equal(endpoint.count("eth_getLogs"), 1);
});

test("caps ranges and results, in each provider's words", async () => {
  const { endpoint, range } = await open({ logsRangeMax: 10 });
  assert.equal((await range(11, 20)).result.length, 10);
  for (const provider of Object.keys(PROVIDERS)) {
    endpoint.settings.provider = provider;
    const { error } = await range(11, 21);
    assert.ok(error.code < 0 && error.message, provider);
  }
  assert.equal(endpoint.refused.range, Object.keys(PROVIDERS).length);
  endpoint.settings.provider = "alchemy";
  assert.match((await range(11, "latest")).error.message, /\[0xb, 0x14\]/);
  Object.assign(endpoint.settings, { logsRangeMax: Infinity, logsResultsMax: 5 });
  assert.equal((await range(11, 15)).result.length, 5);
  assert.deepEqual((await range(11, 16)).error.data, { from: "0xb", to: "0xf", limit: 5 });
});

test("answers as many calls a second as it may", async () => {
  // A call takes a thousand seconds to come back, so the machine's speed doesn't matter.
  const { endpoint, post, ask } = await open({ requestsPerSecond: 0.001 });
  assert.equal((await ask("eth_blockNumber")).error.code, 429);
  endpoint.settings.requestsPerSecond = 1_000_000;
  assert.equal((await ask("eth_blockNumber")).result, hex(HEAD));
  endpoint.settings.requestsPerSecond = 1;
  const batch = Array.from({ length: 500 }, (_, id) => ({ jsonrpc: "2.0", id, method: "eth_blockNumber", params: [] }));
  assert.equal((await (await post(batch)).json()).length, batch.length);
  // 499 calls are owed now: more than eight minutes.
  endpoint.settings.retryAfter = 3;
  const refused = await post(batch[0]);
  assert.equal(refused.status, 429);
  assert.equal(refused.headers.get("retry-after"), "3");
  endpoint.settings.tooMany = "rpc";
  const said = await post(batch.slice(0, 2));
  assert.equal(said.status, 200);
  assert.deepEqual((await said.json()).map(({ id, error }) => [id, error.code]), [[0, 429], [1, 429]]);
});

test("lags", async () => {
  const { ask, range, endpoint } = await open({ lags: [3] });
  assert.equal((await ask("eth_blockNumber")).result, hex(97));
  for (const at of [[], ["latest"], ["pending"]]) assert.equal((await ask("eth_call", {}, ...at)).result, hex(97));
  assert.equal((await ask("eth_call", {}, hex(98))).error.message, "header not found");
  assert.equal((await ask("eth_getBlockByNumber", "latest", false)).result.number, hex(97));
  assert.equal((await ask("eth_getBlockByNumber", hex(98), false)).result, null);
  assert.equal((await ask("eth_getBlockByHash", hex(98), false)).result, null);
  assert.equal((await ask("eth_getTransactionReceipt", hex(97))).result.blockNumber, hex(97));
  assert.equal((await ask("eth_getTransactionReceipt", hex(98))).result, null);
  assert.equal((await ask("eth_getTransactionByHash", hex(98))).result.blockNumber, null);
  assert.equal((await range(96, 100)).result.length, 2);
  assert.deepEqual((await range(98, 100)).result, []);
  endpoint.settings.beyond = "error";
  assert.match((await range(96, 100)).error.message, /beyond/);
});

test("disagrees with itself", async () => {
  const { ask } = await open({ lags: [0, 4] });
  const heads = [];
  for (let i = 0; i < 4; i++) heads.push(Number((await ask("eth_blockNumber")).result));
  assert.deepEqual(heads, [100, 96, 100, 96]);
});

test("makes estimates in the newest block", async () => {
  const { ask, endpoint } = await open({ estimateAt: "latest" });
  const heard = [];
  endpoint.before = async ({ method }) => heard.push(method);
  for (const at of [[], ["pending"], ["latest"]]) assert.equal((await ask("eth_estimateGas", {}, ...at)).result, "latest");
  assert.equal((await ask("eth_estimateGas", {}, hex(7))).result, hex(7));
  assert.equal((await ask("eth_call", {}, "pending")).result, "pending");
  assert.deepEqual(heard, [...Array(4).fill("eth_estimateGas"), "eth_call"]);
});
