/** What is indexed, from the environment; see ../../README.md. */
import { createPublicClient, getAddress, http } from "viem";

const need = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: see clients/explorer/README.md`);
  return value;
};

/** Endpoints of the chain, and the first of them. Ponder asks each at most as often as it thinks that it bears, beginning with 20 calls a second. */
export const rpcUrls = need("RPC_URL").split(",");
const rpcUrl = rpcUrls[0]!;
export const address = getAddress(need("MUSTER"));
export const startBlock = Number(process.env.START_BLOCK || 0);
export const pollingInterval = Number(process.env.POLLING_INTERVAL || 1_000);
export const chainId = process.env.CHAIN_ID
  ? Number(process.env.CHAIN_ID)
  : await createPublicClient({ transport: http(rpcUrl) }).getChainId();
