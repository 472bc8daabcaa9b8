// A public endpoint, as providers run them: a proxy before a node that caps eth_getLogs, counts requests a second, lags and disagrees with itself.
//
//   import { Endpoint } from "./endpoint.mjs";
//   const endpoint = await Endpoint.start(nodeUrl, { logsRangeMax: 10_000, requestsPerSecond: 10, lags: [0, 3] });
//   endpoint.url; endpoint.count("eth_getLogs"); endpoint.refused; endpoint.settings.requestsPerSecond = 2; await endpoint.stop();
//   endpoint.before = async ({ method }) => {};   what else happens before a call is answered
//
//   node endpoint.mjs NODE_URL [--port 0] [--logs-range-max 10000] [--requests-per-second 10] [--lags 0,3] ...   prints "Listening on http://...",
//   takes every setting below as a flag, and ends with its standard input
//
// HTTP only, and nothing but Node.js' own modules, so that any test can take it.
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

/** Settings, for the start and later. */
export const DEFAULTS = {
  /** Blocks that one eth_getLogs may span, both ends counted. */
  logsRangeMax: Infinity,
  /** Logs that one eth_getLogs may give. */
  logsResultsMax: Infinity,
  /** In whose words a range is refused: a key of PROVIDERS. */
  provider: "infura",
  /** Calls answered a second, each of a batch counted; as many may come at once. */
  requestsPerSecond: Infinity,
  /** Seconds that a 429 names in its Retry-After header; 0: it has none. */
  retryAfter: 0,
  /** "http": status 429; "rpc": status 200, and an error 429 for every call, as some providers have it. */
  tooMany: "http",
  /** How many blocks each machine behind the endpoint is behind the node. They answer in turn, so several of them disagree. */
  lags: [0],
  /** A machine's answer to a range beyond its head: "short": the logs that it has; "error": that it ends before, as go-ethereum since 2026. */
  beyond: "short",
  /** "latest": estimates that name no block or "pending" are made in the newest, as for a client or a gateway that names it. */
  estimateAt: "",
};

const hex = (number) => `0x${number.toString(16)}`;
const error = (code, message, data) => ({ error: { code, message, ...(data && { data }) } });

/** A range refused as providers do, in their own codes and words; some say which range would be taken. */
export const PROVIDERS = {
  infura: (from, to, most) => error(-32602, `range ${to - from} exceeds limit of ${most}`),
  alchemy: (from, _to, most) =>
    error(
      -32600,
      `You can make eth_getLogs requests with up to a ${most} block range. Based on your parameters, this block range should work: [${hex(from)}, ${hex(from + most - 1)}]`,
    ),
  quicknode: (_from, _to, most) => error(-32614, `eth_getLogs is limited to a ${most.toLocaleString("en")} range`),
  publicnode: (_from, _to, most) => error(-32701, `exceed maximum block range: ${most}`),
  erigon: (_from, _to, most) => error(-32000, `query block range exceeds server limit, narrow your filter: ${most}`),
  /** Names no limit. */
  terse: () => error(-32600, "block range too high"),
};

/** Where a call says at which block it is asked; absent means latest. */
const AT = {
  eth_call: 1,
  eth_estimateGas: 1,
  eth_createAccessList: 1,
  eth_getBalance: 1,
  eth_getCode: 1,
  eth_getTransactionCount: 1,
  eth_getStorageAt: 2,
  eth_getProof: 2,
  eth_getBlockByNumber: 0,
  eth_getBlockReceipts: 0,
  eth_getBlockTransactionCountByNumber: 0,
  eth_getTransactionByBlockNumberAndIndex: 0,
  eth_feeHistory: 1,
};
/** Answers for a block that is not there yet, where that is no error. */
const NOTHING = new Set([
  "eth_getBlockByNumber",
  "eth_getBlockReceipts",
  "eth_getBlockTransactionCountByNumber",
  "eth_getTransactionByBlockNumberAndIndex",
]);

export class Endpoint {
  /** Every call that was answered, in order. */
  calls = [];
  /** Told of every call before it is answered. */
  before = async (_call) => {};
  /** Calls that were refused with 429, and for their range or their results. */
  refused = { requests: 0, range: 0, results: 0 };
  #taken = 0;
  #tokens = Infinity;
  #filled = 0;

  constructor(node, settings) {
    this.node = node;
    this.settings = { ...DEFAULTS, ...settings };
    this.server = createServer((request, response) => this.#serve(request, response));
  }

  static async start(node, settings = {}, port = 0) {
    const endpoint = new Endpoint(node, settings);
    await new Promise((resolve, reject) => endpoint.server.once("error", reject).listen(port, "127.0.0.1", resolve));
    return endpoint;
  }

  get url() {
    return `http://127.0.0.1:${this.server.address().port}`;
  }

  /** How many calls of a method were answered. */
  count(method) {
    return this.calls.filter((call) => call.method === method).length;
  }

  async stop() {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  async #serve(request, response) {
    const say = (status, body, headers = {}) => {
      response.writeHead(status, { "content-type": "application/json", "access-control-allow-origin": "*", "access-control-allow-headers": "*", ...headers });
      response.end(body === undefined ? "" : JSON.stringify(body));
    };
    if (request.method === "OPTIONS") return say(204);
    try {
      let text = "";
      for await (const part of request) text += part;
      const asked = JSON.parse(text);
      const calls = [asked].flat();
      if (!this.#admit(calls.length)) {
        this.refused.requests += calls.length;
        const refusal = ({ id }) => ({ jsonrpc: "2.0", id, ...error(429, "Too Many Requests") });
        const { retryAfter, tooMany } = this.settings;
        const headers = retryAfter > 0 ? { "retry-after": String(retryAfter) } : {};
        return say(tooMany === "http" ? 429 : 200, Array.isArray(asked) ? asked.map(refusal) : refusal(asked), headers);
      }
      for (const call of calls) await this.before(call);
      const { lags } = this.settings;
      const lag = lags[this.#taken++ % lags.length];
      const answers = await Promise.all(calls.map(async (call) => ({ jsonrpc: "2.0", id: call.id, ...(await this.answer(call, lag)) })));
      this.calls.push(...calls);
      say(200, Array.isArray(asked) ? answers : answers[0]);
    } catch (cause) {
      say(502, { jsonrpc: "2.0", id: null, ...error(-32603, String(cause)) });
    }
  }

  /** Takes what the calls cost off the second's allowance; one that is left lets a whole batch pass, which is then owed. */
  #admit(calls) {
    const most = this.settings.requestsPerSecond;
    if (most === Infinity) return true;
    const now = performance.now();
    this.#tokens = Math.min(most, this.#tokens + ((now - this.#filled) / 1_000) * most);
    this.#filled = now;
    if (this.#tokens < 1) return false;
    this.#tokens -= calls;
    return true;
  }

  async #ask(method, params) {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const answer = await (await fetch(this.node, { method: "POST", headers: { "content-type": "application/json" }, body })).json();
    return answer.error ? { error: answer.error } : { result: answer.result };
  }

  /** The answer of a machine that is so many blocks behind; a test may change it. */
  async answer({ method, params = [] }, lag) {
    const { estimateAt } = this.settings;
    if (method === "eth_estimateGas" && estimateAt && (params[1] ?? "pending") === "pending") params = [params[0], estimateAt, ...params.slice(2)];
    if (lag === 0 && method !== "eth_getLogs") return this.#ask(method, params);
    const { result: newest } = await this.#ask("eth_blockNumber", []);
    const head = Math.max(0, Number(newest) - lag);
    if (method === "eth_getLogs") return this.#logs(params, head);
    if (method === "eth_blockNumber") return { result: hex(head) };
    const shifted = [...params];
    if (method in AT) {
      const place = AT[method];
      const at = params[place] ?? "latest";
      if (["latest", "pending", "safe", "finalized"].includes(at)) shifted[place] = hex(head);
      else if (typeof at === "string" && at.startsWith("0x") && Number(at) > head)
        return NOTHING.has(method) ? { result: null } : error(-32000, "header not found");
    }
    const { result, ...failed } = await this.#ask(method, shifted);
    if (failed.error) return failed;
    // A result that is asked for by a hash and lies in a block that this machine has not seen.
    if (result?.blockNumber && method !== "eth_getBlockByHash" && Number(result.blockNumber) > head) {
      if (method === "eth_getTransactionByHash")
        return { result: { ...result, blockNumber: null, blockHash: null, transactionIndex: null, blockTimestamp: null } };
      return { result: null };
    }
    if (method === "eth_getBlockByHash" && result && Number(result.number) > head) return { result: null };
    return { result };
  }

  async #logs(params, head) {
    const [filter = {}] = params;
    if (filter.blockHash) {
      const { result: block } = await this.#ask("eth_getBlockByHash", [filter.blockHash, false]);
      if (!block || Number(block.number) > head) return error(-32000, "unknown block");
      return this.#results(await this.#ask("eth_getLogs", params));
    }
    const numbered = (at) => (at === "earliest" ? 0 : at?.startsWith("0x") ? Number(at) : head);
    const [from, to] = [numbered(filter.fromBlock), numbered(filter.toBlock)];
    if (from > to) return error(-32602, "invalid block range params");
    const { beyond, logsRangeMax, provider } = this.settings;
    if (to - from + 1 > logsRangeMax) {
      this.refused.range += 1;
      return PROVIDERS[provider](from, to, logsRangeMax);
    }
    if (to > head && beyond === "error") return error(-32602, "block range extends beyond current head block");
    if (from > head) return { result: [] };
    return this.#results(await this.#ask("eth_getLogs", [{ ...filter, fromBlock: hex(from), toBlock: hex(Math.min(to, head)) }]));
  }

  #results(answer) {
    const most = this.settings.logsResultsMax;
    if (!answer.result || answer.result.length <= most) return answer;
    this.refused.results += 1;
    const [first, last] = [answer.result[0].blockNumber, answer.result[most - 1].blockNumber];
    const data = { from: first, to: last, limit: most };
    return error(-32005, `query returned more than ${most} results. Try with this block range [${first}, ${last}].`, data);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [node, ...flags] = process.argv.slice(2);
  const settings = {};
  let port = 0;
  while (flags.length > 0) {
    const flag = flags.shift();
    const value = flags.shift();
    const name = flag.replace(/^--/, "").replace(/-(.)/g, (_, letter) => letter.toUpperCase());
    if (name === "port") port = Number(value);
    else if (!flag.startsWith("--") || !(name in DEFAULTS) || value === undefined) throw new Error(`there is no ${flag} ${value ?? ""}`);
    else if (name === "lags") settings.lags = value.split(",").map(Number);
    else settings[name] = typeof DEFAULTS[name] === "number" ? Number(value) : value;
  }
  const endpoint = await Endpoint.start(node, settings, port);
  console.log(`Listening on ${endpoint.url}`);
  process.stdin.resume().on("end", () => process.exit());
}
