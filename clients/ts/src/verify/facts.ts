/** The chain's facts about a task: its events, their blocks, and the parameters of their time. */
import { type Hash, type RpcLog, formatLog, numberToHex, parseEventLogs, toEventSelector } from "viem";
import type { MusterClient } from "../client.js";
import { birthOf, logsOf, newest, patiently } from "../endpoint.js";
import { getEvents, missing } from "../events.js";
import { musterAbi } from "../generated/abi.js";
import * as numbers from "../generated/numbers.js";
import { getParameter } from "../reads.js";
import type { Replayed, replayTransaction } from "../replay.js";
import type { GetTaskParameters } from "../tasks.js";
import type { MusterEvent } from "../types.js";

/** A block; none if the node no longer has it. */
export interface Block {
  hash: Hash;
  /** In seconds since 1970. */
  timestamp: bigint;
}

/** A parameter from an event on. */
export interface Change {
  parameter: number;
  before: bigint;
  value: bigint;
  blockNumber: bigint;
  logIndex: number;
}

/** The facts that {@link verify} uses. */
export interface Facts {
  /** The task's, in their order. */
  events: readonly MusterEvent[];
  /** All of Muster's in the transaction that judged it. */
  settlement: readonly MusterEvent[];
  blocks: ReadonlyMap<bigint, Block>;
  /** All changes of parameters, in their order. */
  changes: readonly Change[];
  /** Their present values. */
  parameters: ReadonlyMap<number, bigint>;
  /** The outcomes of repeated transactions: those that drew its nodes, or judged a group chosen by ratings; none without `replay`. */
  replays?: ReadonlyMap<Hash, Replayed> | undefined;
}

/** Parameters of {@link gather}. */
export type GatherParameters = GetTaskParameters & {
  /** Repeats transactions: `replayTransaction` of `muster-client/replay`. Without it draws are not checked. */
  replay?: typeof replayTransaction | undefined;
};

/** Events that name the drawn nodes. */
const CHOSEN = ["TaskStarted", "GroupFormed"];
const RATED = 3;

const ASKED = ["downloadTime", "hammingMost", "sampleBps", "sampleDelay", "slashImages", "slashTimes"] as const;

/** Collects the facts. */
export async function gather(client: MusterClient, parameters: GatherParameters): Promise<Facts> {
  const { address, id, blockRange, replay } = parameters;
  const toBlock = parameters.toBlock ?? (await newest(client));
  const birth = await birthOf(client, parameters);
  const fromBlock = parameters.fromBlock ?? birth;
  const events = await getEvents(client, { address, id, fromBlock, toBlock, blockRange });
  if (!events.length) throw await missing(client, address, id, fromBlock, (parameters.fromBlock ?? parameters.toBlock) !== undefined);
  const decode = (logs: RpcLog[]) => parseEventLogs({ abi: musterAbi, logs: logs.map((log) => formatLog(log)), strict: true }) as MusterEvent[];
  const ask = async (fromBlock: bigint, toBlock: bigint, topics: `0x${string}`[]) =>
    decode(await logsOf(client, { address, fromBlock, toBlock, blockRange }, [topics]));

  // Also from before the task: a parameter's value is that of its last change.
  const changed = musterAbi.find((item) => item.type === "event" && item.name === "ParameterChanged")!;
  const changes: Change[] = [];
  for (const { eventName, args, blockNumber, logIndex } of await ask(birth, toBlock, [toEventSelector(changed as never)])) {
    if (eventName === "ParameterChanged") changes.push({ ...args, blockNumber, logIndex });
  }
  const now = ASKED.map(async (name) => [numbers[name], (await getParameter(client, { address, which: numbers[name], blockNumber: toBlock })).value] as const);

  const settled = events.find(({ eventName }) => eventName === "GroupSettled");
  const around = settled ? await ask(settled.blockNumber, settled.blockNumber, []) : [];
  const lots = events.flatMap(({ eventName, args }) => (eventName === "AnswerCommitted" && args.block > 0n ? [args.block] : []));
  const wanted = new Set([...events.map(({ blockNumber }) => blockNumber), ...lots]);
  const blocks = [...wanted].map(async (number) => {
    const block = await patiently(client, () => client.request({ method: "eth_getBlockByNumber", params: [numberToHex(number), false] }));
    return block?.hash ? [[number, { hash: block.hash, timestamp: BigInt(block.timestamp) }] as const] : [];
  });
  const isRated = events.some(({ eventName, args }) => eventName === "TaskCreated" && args.spec.redundancy === RATED);
  const chosen = events.filter(({ eventName }) => CHOSEN.includes(eventName) || (isRated && eventName === "GroupSettled"));
  const transactions = new Map(replay && chosen.map(({ transactionHash: hash, blockNumber }) => [hash, blockNumber]));
  const replays = [...transactions].map(async ([hash, blockNumber]) => [hash, await replay!(client, { address, hash, blockNumber })] as const);
  return {
    replays: new Map(await Promise.all(replays)),
    events,
    settlement: around.filter(({ transactionHash }) => transactionHash === settled?.transactionHash),
    blocks: new Map((await Promise.all(blocks)).flat()),
    changes,
    parameters: new Map(await Promise.all(now)),
  };
}

/** A parameter's value at an event. */
export function parameterAt({ changes, parameters }: Facts, parameter: number, event: MusterEvent): bigint {
  const own = changes.filter((change) => change.parameter === parameter);
  const isBefore = ({ blockNumber, logIndex }: Change) =>
    blockNumber < event.blockNumber || (blockNumber === event.blockNumber && logIndex < event.logIndex);
  return own.findLast(isBefore)?.value ?? own.find((change) => !isBefore(change))?.before ?? parameters.get(parameter)!;
}
