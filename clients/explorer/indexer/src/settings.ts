/** The indexer's settings, from the environment; see ../../README.md. */
import { type Address, type Transport, createPublicClient, custom, getAddress, http, parseAbi } from "viem";

const need = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: see clients/explorer/README.md`);
  return value;
};

/** A whole number above zero, if it is set. */
const count = (name: string): number | undefined => {
  const value = process.env[name];
  if (!value) return undefined;
  if (!/^[1-9]\d*$/.test(value)) throw new Error(`${name} is ${value}, which is not a number above zero`);
  return Number(value);
};

const urls = need("RPC_URL").split(",");
const requestsPerSecond = count("REQUESTS_PER_SECOND");
const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/**
 * Endpoints asked in turn, each this often a second and evenly. Ponder's own limit begins at 20 requests a second, and each refusal with 429 costs it
 * a pause and counts like an answer. So it reaches only a third of the endpoint's limit.
 */
const evenly =
  (perSecond: number): Transport =>
  (config) => {
    const endpoints = urls.map((url) => http(url, { retryCount: 0 })(config));
    let [turn, free] = [0, 0];
    const request = async (body: { method: string; params?: unknown }) => {
      const now = Date.now();
      const at = Math.max(now, free);
      free = at + 1_000 / (perSecond * endpoints.length);
      await sleep(at - now);
      return endpoints[turn++ % endpoints.length]!.request(body as never);
    };
    return custom({ request }, { retryCount: 0 })(config);
  };

/** Endpoints of the chain, as Ponder asks them. */
export const rpc: string[] | Transport = requestsPerSecond ? evenly(requestsPerSecond) : urls;
export const address = getAddress(need("MUSTER"));
/** Requests of one client in a minute, where a proxy names its address; no limit unless set. */
export const requestsPerMinute = count("CLIENT_REQUESTS_PER_MINUTE");
/** Streams that one client may have open at each server, likewise. */
export const streamsAtOnce = count("CLIENT_STREAMS");
export const pollingInterval = Number(process.env.POLLING_INTERVAL || 500);
/** Blocks of one eth_getLogs; Ponder begins with 500 and finds out more, if it knows the words in which the endpoint refuses. */
export const ethGetLogsBlockRange = count("ETH_GET_LOGS_BLOCK_RANGE");

const client = createPublicClient({ transport: typeof rpc === "function" ? rpc : http(urls[0], { retryCount: 8 }) });
export const chainId = process.env.CHAIN_ID ? Number(process.env.CHAIN_ID) : await client.getChainId();

/** The chain's newest block. */
export const newestBlock = async (): Promise<number> => Number(await client.getBlockNumber({ cacheTime: 0 }));

/** The precompile of a chain with Stylus that tells how long programs run. */
const ARB_WASM = "0x0000000000000000000000000000000000000071";
const programTimeLeft = parseAbi(["function programTimeLeft(address program) view returns (uint64)", "error ProgramExpired(uint64 age)", "error ProgramNeedsUpgrade(uint16 version, uint16 needed)"]);
/** The seconds for which a program still runs; 0 for one that does not, null if it is no program or the chain does not say. */
export const timeLeft = (program: Address): Promise<number | null> =>
  client.readContract({ address: ARB_WASM, abi: programTimeLeft, functionName: "programTimeLeft", args: [program] }).then(
    Number,
    (error: Error) => (/ProgramExpired|ProgramNeedsUpgrade/.test(error.message) ? 0 : null),
  );

/** The first block in which the contract has code: some thirty questions. For an endpoint without such old states it must be configured. */
async function created(): Promise<number> {
  let [least, most] = [0n, await client.getBlockNumber()];
  const isThere = (blockNumber: bigint) =>
    client.getCode({ address, blockNumber }).catch((error: Error) => {
      throw new Error("START_BLOCK is not set, and the endpoint does not keep the state that tells it: see clients/explorer/README.md", { cause: error });
    });
  if (!(await isThere(most))) throw new Error(`there is no contract at ${address} on chain ${chainId}: MUSTER and RPC_URL do not belong together`);
  while (least < most) {
    const middle = (least + most) / 2n;
    if (await isThere(middle)) most = middle;
    else least = middle + 1n;
  }
  return Number(least);
}

export const startBlock = process.env.START_BLOCK ? Number(process.env.START_BLOCK) : await created();
