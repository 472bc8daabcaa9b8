/** The keys that a private input is sealed to. */
import { Encrypter } from "age-encryption";
import type { Address } from "viem";
import type { MusterClient } from "./client.js";
import { readTogether } from "./contract.js";
import { RequestError } from "./errors.js";
import { storesOfNodes } from "./published.js";
import { type getNodes, getOverview } from "./reads.js";
import { entriesOf } from "./stores.js";

/** Nodes of a page of {@link getNodes}. */
const PAGE = 64;
/** The most keys for an input: each makes it longer by some hundred bytes. */
const MOST = 1_000;

/** Whether an input can be sealed to it. */
function isKey(key: string | undefined): key is string {
  try {
    new Encrypter().addRecipient(key!);
    return true;
  } catch {
    return false;
  }
}

/** The keys of all nodes that could be drawn for a task. */
export async function recipientsOf(client: MusterClient, address: Address, gpu = 0, vram = 0): Promise<string[]> {
  const { nodesIssued } = await getOverview(client, { address });
  const froms = Array.from({ length: Math.ceil(nodesIssued / PAGE) }, (_, i) => i * PAGE + 1);
  const pages = await readTogether(client, address, froms.map((from) => ["nodes", { from, count: PAGE }] as const));
  const able = (pages as Awaited<ReturnType<typeof getNodes>>[]).flat().filter((node) => node.status && (gpu ? node.gpu === gpu : node.vram >= vram));
  if (able.length > MOST) throw new RequestError(`An input is sealed to at most ${MOST} nodes, not ${able.length}: ask for a GPU group, or name \`recipients\`.`);
  const said = await storesOfNodes(client, address, able.map(({ node }) => node));
  const keys = said.map((list) => entriesOf(list).find((entry) => entry.startsWith("age:"))?.slice(4));
  const without = able.filter((_, i) => !isKey(keys[i])).map(({ node }) => node);
  if (!able.length) throw new RequestError("There is no node that could run the task.");
  if (without.length)
    throw new RequestError(`${without.length} of ${able.length} nodes that could be drawn publish no valid key to seal the input to: ${without.slice(0, 8).join(", ")}. Ask for another GPU group, or name \`recipients\`.`);
  return [...new Set(keys as string[])];
}
