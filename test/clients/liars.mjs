// Endpoints before a node that lie or lag, each in its own way: what runbook-agents.sh shows to the tools.
//
//   node liars.mjs NODE_URL     prints "NAME http://..." for each, and then "NAME METHOD" for each question about which it lies
import { setTimeout } from "node:timers/promises";
import { Endpoint } from "./endpoint.mjs";

const [node] = process.argv.slice(2);
const OTHER = `0x${"11".repeat(32)}`;
const blocks = (method, result) => (method === "eth_getBlockByNumber" && result ? { ...result, hash: OTHER } : undefined);
/** How each changes an answer to a method; undefined: not at all. */
const LIES = {
  honest: () => undefined,
  blocks,
  // The same, two thirds of a second later.
  slow: (method, result) => setTimeout(667, blocks(method, result)),
  chain: (method) => (method === "eth_chainId" ? "0x1" : undefined),
  events: (method) => (method === "eth_getLogs" ? [] : undefined),
  // Another last byte of what a contract returns.
  state: (method, result) => (method === "eth_call" && result?.length > 2 ? result.slice(0, -2) + (result.endsWith("01") ? "02" : "01") : undefined),
};
/** Those that say nothing but what was true so many blocks ago. */
const LAGS = { late: 40, older: 2 };

for (const [name, lie] of Object.entries(LIES)) {
  const endpoint = await Endpoint.start(node);
  const answer = endpoint.answer.bind(endpoint);
  endpoint.answer = async (call, lag) => {
    const told = await answer(call, lag);
    const lied = told.error ? undefined : await lie(call.method, told.result);
    if (lied === undefined) return told;
    console.log(`${name} ${call.method}`);
    return { result: lied };
  };
  console.log(`${name} ${endpoint.url}`);
}
for (const [name, lag] of Object.entries(LAGS)) console.log(`${name} ${(await Endpoint.start(node, { lags: [lag] })).url}`);
console.log("all listen");
