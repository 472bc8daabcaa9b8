/** `verifyTask` of the TypeScript package against the configured RPC endpoint; loaded with viem when a task is looked at. */
import { verifyTask } from "muster-client/verify";
import { type Address, createPublicClient, http } from "viem";
import { config } from "./config";

export const checkTask = (id: bigint, fromBlock: bigint) =>
  verifyTask(createPublicClient({ transport: http(config.rpc, { retryCount: 1 }) }), { address: config.muster as Address, id, fromBlock });
