/** Events by the account, task or node that they concern, from `eth_getLogs` alone: no filter lives on a server. */
import {
  type Address,
  type Hex,
  type Log,
  formatLog,
  numberToHex,
  pad,
  parseEventLogs,
  toEventSelector,
} from "viem";
import { getTransactionReceipt } from "viem/actions";
import { getAction } from "viem/utils";
import type { MusterClient, MusterParameters } from "./client.js";
import { readMuster } from "./contract.js";
import { birthOf, endpointOf, logsOf, newest, patiently } from "./endpoint.js";
import { type EndpointError, TaskGoneError, TaskNotFoundError, noLogs } from "./errors.js";
import { events, used } from "./interface.js";
import { type Task, follow, isSame } from "./life.js";
import type { MusterEvent } from "./types.js";

/** The subject of events. */
export type Concerning =
  /** Tasks by their ids. */
  | { id: bigint | readonly bigint[] }
  /** All tasks of an application. Commitments and reveals do not name it: ask for them by the task's id. */
  | { creator: Address }
  /** The events of a node, except `NodeRated`, `WorkerNamed` and `WorkAccepted`: `muster-client/abi` has those. */
  | { node: number };

/** A range of blocks, both ends included. */
export interface BlockRange {
  fromBlock: bigint;
  toBlock: bigint;
  /** The most blocks of one question. If left out, the endpoint's limit, which is found by trial. */
  blockRange?: bigint | undefined;
}

/** Ids in one question: nodes take about a thousand values. */
const IDS = 500;

type Topic = Hex | Hex[] | null;

/** The questions whose answers together are all events of a subject: one for each position of an indexed value that can name it. */
function questions(whose: Concerning): Topic[][] {
  const [[name, given]] = Object.entries(whose) as [[string, bigint | readonly bigint[] | Address | number]];
  const values = [given].flat().map((value) => (typeof value === "string" ? pad(value) : pad(numberToHex(value as bigint | number))));
  const places: Hex[][] = [[], [], []];
  for (const event of events) {
    const place = event.inputs.filter((input) => input.indexed).findIndex((input) => input.name === name);
    // In other positions an id only gives the cause of an event.
    if (place === 0 || (place > 0 && name !== "id")) places[place]!.push(toEventSelector(event as never));
  }
  const chunks = Array.from({ length: Math.ceil(values.length / IDS) }, (_, i) => values.slice(i * IDS, (i + 1) * IDS));
  return places.flatMap((selectors, place) =>
    selectors.length ? chunks.map((chunk): Topic[] => [selectors, ...Array<null>(place).fill(null), chunk]) : [],
  );
}

/** The events among some logs. */
export const decode = (logs: Log[]): MusterEvent[] => parseEventLogs({ abi: used, logs, strict: true }) as unknown as MusterEvent[];

/** Parameters of {@link getEvents}. */
export type GetEventsParameters = MusterParameters & Concerning & BlockRange;

/** The events of a subject, as {@link Concerning} says, in a range of blocks, in the order in which they happened. */
export const getEvents = (
  client: MusterClient,
  { address, deployedIn: _, fromBlock, toBlock, blockRange, ...whose }: GetEventsParameters,
): Promise<MusterEvent[]> => ask(client, { address, fromBlock, toBlock, blockRange }, questions(whose as Concerning));

/** The error for a task without events, after the contract was asked whether it has created it. `named` is whether the caller chose the blocks. */
export async function missing(client: MusterClient, address: Address, id: bigint, fromBlock: bigint, named: boolean): Promise<TaskNotFoundError | EndpointError> {
  const { tasks } = await readMuster(client, "overview", { address });
  return named || id > tasks ? new TaskNotFoundError(id, fromBlock, id <= tasks) : noLogs(id, fromBlock);
}

/** The block in which a task that seems to be gone lies now. Throws if the transaction that created it is not in the chain, or gave it another id. */
export async function blockOf(client: MusterClient, address: Address, id: bigint, lost: Task): Promise<bigint> {
  const look = () => getAction(client, getTransactionReceipt, "getTransactionReceipt")({ hash: lost.hash });
  const receipt = await patiently(client, look).catch((error: Error) => {
    if (error.name !== "TransactionReceiptNotFoundError") throw error;
  });
  const logs = receipt?.logs.filter((log) => log.address.toLowerCase() === address.toLowerCase()) ?? [];
  const ids = decode(logs).flatMap((event) => (event.eventName === "TaskCreated" && isSame(follow(undefined, event)!, lost) ? [event.args.id] : []));
  if (!ids.includes(id)) throw new TaskGoneError(lost, ids);
  return receipt!.blockNumber;
}

/** The blocks searched for GPU groups again, because one node of the endpoint may lag behind another. */
const AGAIN = 64n;

/** The GPU groups that there are. */
export async function getGroups(
  client: MusterClient,
  { fromBlock, blockRange, ...muster }: MusterParameters & Partial<BlockRange>,
): Promise<number[]> {
  const created = events.find(({ name }) => name === "GpuGroupCreated");
  const { groups } = endpointOf(client);
  const toBlock = await newest(client);
  const key = `${muster.address}${fromBlock ?? ""}`;
  const { next, found } = groups.get(key) ?? { next: fromBlock ?? (await birthOf(client, muster)), found: [] };
  const range = { address: muster.address, fromBlock: next, toBlock, blockRange };
  const more = await ask(client, range, [[toEventSelector(created as never)]]);
  const all = [...new Set([...found, ...more.flatMap((event) => (event.eventName === "GpuGroupCreated" ? [event.args.group] : []))])];
  groups.set(key, { next: toBlock - AGAIN < next ? next : toBlock - AGAIN, found: all });
  return all;
}

async function ask(client: MusterClient, range: MusterParameters & BlockRange, asked: Topic[][]): Promise<MusterEvent[]> {
  const logs = await logsOf(client, range, asked);
  return decode(logs.map((log) => formatLog(log))).sort((a, b) => Number(a.blockNumber - b.blockNumber) || a.logIndex - b.logIndex);
}
