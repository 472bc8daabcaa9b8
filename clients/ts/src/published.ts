/** Accounts' entries about their stores on chain: `setStores`, `storesOf`. */
import type { Address } from "viem";
import type { MusterClient, MusterParameters } from "./client.js";
import { type SenderParameters, type Sent, readTogether, sendMuster } from "./contract.js";
import { RequestError } from "./errors.js";

/** Bytes of a list on chain. */
const MOST = 256;

/** Parameters of {@link setStores}. */
export type SetStoresParameters = MusterParameters &
  SenderParameters & {
    /** Where the account's objects are, each an entry as docs/stores.md lists them; an empty list removes the entries. */
    stores: readonly string[];
  };

/** Publishes where the objects of the sender, or of the operator that they work for, are: an application's inputs, a node's results. At most 256 bytes in all. */
export async function setStores(client: MusterClient, { address, account, stores }: SetStoresParameters): Promise<Sent> {
  const uris = stores.join(" ");
  if (stores.some((uri) => !uri || /\s/.test(uri))) throw new RequestError("The URI of a store has no space in it.");
  if (new TextEncoder().encode(uris).length > MOST) throw new RequestError(`The URIs of stores have at most ${MOST} bytes together.`);
  return sendMuster(client, "setStores", { uris }, { address, account });
}

/** Nodes' entries: they stand under their operators' accounts, also if workers set them. */
export async function storesOfNodes(client: MusterClient, address: Address, nodes: readonly number[]): Promise<string[]> {
  const told = await readTogether(client, address, nodes.map((number) => ["node", { number }] as const));
  const operators = [...new Set(told.map(({ operator }) => operator))];
  const said = await readTogether(client, address, operators.map((account) => ["storesOf", { account }] as const));
  return told.map(({ operator }) => said[operators.indexOf(operator)]!);
}
