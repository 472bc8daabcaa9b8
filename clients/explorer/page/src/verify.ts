/** `verifyTask` of the TypeScript package against the configured RPC endpoint; loaded with viem when a task is looked at. */
import type { replayTransaction } from "muster-client/replay";
import { verifyTask } from "muster-client/verify";
import { type Address, createPublicClient, http } from "viem";
import { config } from "./config";

/** All of Muster's rules, which are loaded when there is a transaction to do again. */
const replay: typeof replayTransaction = async (client, parameters) => (await import("muster-client/replay")).replayTransaction(client, parameters);

/** Questions of one moment go together: a task's checks would take more than a hundred requests. */
const batch = { batchSize: 50, wait: 10 };

export const checkTask = (id: bigint, deployedIn: bigint) =>
  verifyTask(createPublicClient({ transport: http(config.rpc, { retryCount: 1, batch }) }), { address: config.muster as Address, deployedIn, id, replay });
