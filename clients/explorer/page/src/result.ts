/** A task's result, from the stores of this page, checked against the chain; loaded when somebody wants one. */
import { getResult } from "muster-client";
import type { Address } from "viem";
import { config } from "./config";
import { chainClient } from "./wallet";

export interface Given {
  bytes: Uint8Array;
  node: number;
  store: string;
}

export async function resultOf(id: bigint, createdBlock: bigint): Promise<Given> {
  const client = chainClient();
  if (!client) throw new Error("Connect a wallet, or have the page configured with an RPC endpoint: the result is checked against the chain.");
  if (!config.stores.length) throw new Error("This page is not configured with a store of results.");
  const { bytes, answer, store } = await getResult(client, { address: config.muster as Address, id, fromBlock: createdBlock, stores: config.stores });
  return { bytes, node: answer.node, store };
}
