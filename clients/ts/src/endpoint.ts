/**
 * Limits of public endpoints: requests a second, and blocks and logs in one answer. Each provider words its refusals differently,
 * so their text only serves to tell a refused request from a refused range.
 */
import { BaseError, type Address, type Hex, type RpcLog, numberToHex } from "viem";
import { getBlockNumber, getCode } from "viem/actions";
import { getAction } from "viem/utils";
import type { MusterClient, MusterParameters } from "./client.js";
import { EndpointError, NoMusterError, behind, unanswered } from "./errors.js";

/** Waits. */
export const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** The knowledge about a client's endpoint. */
interface Endpoint {
  /** The end of the pause that it asked for, by the machine's clock. */
  rest: number;
  /** Blocks to ask about at once, and the last number that was too many. */
  span: bigint;
  wall: bigint;
  /** Answers since either changed. */
  calm: number;
  /** By Muster's address, the block in which it was created. */
  births: Map<string, bigint>;
  /** By Muster's address, the known GPU groups, and the next block to search: groups are permanent. */
  groups: Map<string, { next: bigint; found: number[] }>;
}

/** A block that never comes. */
export const NEVER = 2n ** 64n;
/** By the client's transport, which its extensions share: a server may make a client for each request, and knowledge goes with it. */
const endpoints = new WeakMap<object, Endpoint>();

export function endpointOf({ transport }: MusterClient): Endpoint {
  const known = endpoints.get(transport) ?? { rest: 0, span: NEVER, wall: NEVER, calm: 0, births: new Map(), groups: new Map() };
  endpoints.set(transport, known);
  return known;
}

// ---------------------------------------------------------------- requests a second

/** Milliseconds of the first pause; each is twice the one before, up to the longest. */
const [FIRST, LONGEST] = [500, 16_000];
/** Refusals in a row after which the error is thrown: after a minute. */
const REFUSALS = 8;
const HURRY = /too many requests|rate.?limit|per second|throttl|compute units/i;

type Failure = { code?: unknown; status?: unknown; details?: string; message?: string; headers?: Headers };

/** The first cause of an error that satisfies a condition. */
const among = (error: unknown, is: (cause: Failure) => boolean) => error instanceof BaseError && (error.walk((cause) => is(cause as Failure)) as Failure | null);

/** Whether the endpoint refused a request, without processing it, because there were too many. */
const hurried = (error: unknown) =>
  among(error, ({ code, status, details, message }) => code === 429 || status === 429 || code === -32007 || HURRY.test(details ?? message ?? ""));

/** The longest pause that an endpoint can ask for. */
const ASKED = 300_000;

/** The pause that an answer of status 429 asks for, in milliseconds. */
function retryAfter({ headers }: Failure): number {
  const told = headers?.get?.("retry-after") ?? "";
  return Math.min((Number(told) * 1_000 || Date.parse(told) - Date.now()) || 0, ASKED);
}

/** Sends a request, and repeats it while there are too many: after the endpoint's pause, or growing random ones, so that clients do not coincide. */
export async function patiently<answer>(client: MusterClient, ask: () => Promise<answer>): Promise<answer> {
  const endpoint = endpointOf(client);
  for (let refusals = 0; ; ) {
    const rest = endpoint.rest - Date.now();
    if (rest > 0) await sleep(rest + Math.random() * FIRST);
    try {
      return await ask();
    } catch (error) {
      const refusal = hurried(error);
      if (!refusal) throw error;
      if (++refusals > REFUSALS) {
        throw new EndpointError("transport", "The endpoint takes no more requests. Give the client another transport.", error);
      }
      const pause = Math.min(FIRST * 2 ** (refusals - 1), LONGEST);
      endpoint.rest = Math.max(endpoint.rest, Date.now() + Math.max(retryAfter(refusal), (pause * (1 + Math.random())) / 2));
    }
  }
}

/** How often to ask again, and after how many milliseconds, more each time. */
const [TIMES, LATER] = [3, 250];

/** Asks, and a few times again while the error is one that may pass. */
export async function again<answer>(ask: () => Promise<answer>, may: (error: unknown) => unknown): Promise<answer> {
  for (let times = 1; ; times++) {
    try {
      return await ask();
    } catch (error) {
      if (times > TIMES || !may(error)) throw error;
      await sleep(LATER * times);
    }
  }
}

// ---------------------------------------------------------------- blocks at a time

/** Statuses of failed answers where a smaller request might succeed. */
const TOO_MUCH = [400, 408, 413, 422, 500, 502, 503, 504];
/** Answers after which a larger span than the refused one is tried: the refusal may have been due to many logs, not many blocks. */
const CALM = 16;

/** Whether a smaller range may be answered: the endpoint refused, for any reason, or was too slow. False if it was not reached. */
const tooMuch = (error: unknown) =>
  among(
    error,
    ({ code, status, name }: Failure & { name?: string }) =>
      TOO_MUCH.includes(status as number) ||
      name === "TimeoutError" ||
      // Except unknown methods, and wallets' own codes.
      (typeof code === "number" && code < 4_000 && code !== -1 && code !== -32601),
  );

/** A question for logs. */
export interface LogsQuestion {
  address: Address;
  fromBlock: bigint;
  toBlock: bigint;
  blockRange?: bigint | undefined;
}

/** The answers to several questions about a range of blocks, as many concurrently as the endpoint allows. */
export async function logsOf(
  client: MusterClient,
  { address, fromBlock, toBlock, blockRange = NEVER }: LogsQuestion,
  asked: (Hex | Hex[] | null)[][],
): Promise<RpcLog[]> {
  const endpoint = endpointOf(client);
  const found: RpcLog[] = [];
  for (let from = fromBlock; from <= toBlock; ) {
    const { span } = endpoint;
    const size = [span, blockRange, toBlock - from + 1n].reduce((least, next) => (next < least ? next : least));
    const blocks = { fromBlock: numberToHex(from), toBlock: numberToHex(from + size - 1n) };
    try {
      const ask = (topics: (Hex | Hex[] | null)[]) => client.request({ method: "eth_getLogs", params: [{ address, topics, ...blocks }] });
      const logs = await again(() => Promise.all(asked.map((topics) => patiently(client, () => ask(topics)))), behind);
      // As arguments of one call they could be too many.
      for (const log of logs.flat()) found.push(log);
      from += size;
      if (size < span || span !== endpoint.span) continue;
      if (++endpoint.calm % CALM === 0) endpoint.wall *= 2n;
      if (2n * size < endpoint.wall) endpoint.span = 2n * size;
    } catch (error) {
      if (behind(error) || !tooMuch(error)) throw error;
      if (size === 1n) {
        throw new EndpointError("blockRange", `The endpoint gives no logs of block ${from}, and no \`blockRange\` is smaller. Give the client another transport.`, error);
      }
      // Others' concurrent questions may have been refused as well.
      if (size <= endpoint.span || endpoint.span === NEVER) Object.assign(endpoint, { span: size / 2n, wall: size, calm: 0 });
    }
  }
  return found;
}

// ---------------------------------------------------------------- the first block

/** The blocks that are searched if Muster's first block is unknown. */
const SHORT = 1_000_000n;

/** The newest block's number, as the node has it now. */
export const newest = (client: MusterClient): Promise<bigint> =>
  patiently(client, () => getAction(client, getBlockNumber, "getBlockNumber")({ cacheTime: 0 }));

/**
 * The block in which Muster was created: `deployedIn`, else the first in which it has code, by some thirty questions, once for a client. If the
 * endpoint does not keep such old states, the chain's first block, provided the chain is short.
 */
export async function birthOf(client: MusterClient, { address, deployedIn }: MusterParameters): Promise<bigint> {
  if (deployedIn !== undefined) return deployedIn;
  const { births } = endpointOf(client);
  const known = births.get(address);
  if (known !== undefined) return known;
  const head = await newest(client);
  const isThere = async (blockNumber?: bigint) =>
    (await patiently(client, () => getAction(client, getCode, "getCode")({ address, blockNumber }))) !== undefined;
  let [least, most] = [0n, head];
  if (!(await isThere())) throw await NoMusterError.of(client, address);
  try {
    while (least < most) {
      const middle = (least + most) / 2n;
      if (await isThere(middle)) most = middle;
      else least = middle + 1n;
    }
  } catch (error) {
    // Any answer means that the state is not kept: each provider has its own words, also such as usually pass.
    if (error instanceof EndpointError || unanswered(error)) throw error;
    if (head > SHORT) {
      throw new EndpointError("deployedIn", `The endpoint has no old state to tell where Muster begins. Give \`deployedIn\`.`, error);
    }
    least = 0n;
  }
  births.set(address, least);
  return least;
}
