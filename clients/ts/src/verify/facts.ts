/** The chain's facts about a task: its events, their blocks, and the parameters of their time. */
import { type Hash, type RpcLog, formatLog, numberToHex, parseEventLogs, toEventSelector } from "viem";
import type { MusterClient } from "../client.js";
import { again, birthOf, logsOf, newest, patiently } from "../endpoint.js";
import { EndpointError } from "../errors.js";
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
  /** The outcomes of repeated transactions: those that drew its nodes, or ended something; none without `replay`. */
  replays?: ReadonlyMap<Hash, Replayed> | undefined;
}

/** Parameters of {@link gather}. */
export type GatherParameters = Omit<GetTaskParameters, "created"> & {
  /** Repeats transactions: `replayTransaction` of `muster-client/replay`. Without it neither draws are checked, nor whether ends were allowed. */
  replay?: typeof replayTransaction | undefined;
};

/** Events of ends, of a task or of a member's part in it: whether they were allowed then, no other event shows. */
export const ENDS = ["TaskSucceeded", "TaskErrorReported", "TaskAborted", "MemberTimedOut", "GroupSettled"];
/** Events whose transactions are repeated: of ends, and those that name the drawn nodes. */
const REPEATED = [...ENDS, "TaskStarted", "GroupFormed"];

const ASKED = ["downloadTime", "hammingMost", "sampleBps", "sampleDelay", "slashImages", "slashTimes"] as const;

/** The chain was reorganised between the questions. */
class ChangedError extends EndpointError {}

/** Collects the facts; again if the chain is reorganised meanwhile. */
export const gather = (client: MusterClient, parameters: GatherParameters): Promise<Facts> =>
  again(
    () => collect(client, parameters),
    (error) => error instanceof ChangedError,
  );

async function collect(client: MusterClient, parameters: GatherParameters): Promise<Facts> {
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

  const settled = events.find(({ eventName }) => eventName === "GroupSettled");
  const around = settled ? await ask(settled.blockNumber, settled.blockNumber, []) : [];
  const lots = events.flatMap(({ eventName, args }) => (eventName === "AnswerCommitted" && args.block > 0n ? [args.block] : []));
  const blockOf = async (number: bigint) => {
    const block = await patiently(client, () => client.request({ method: "eth_getBlockByNumber", params: [numberToHex(number), false] }));
    return block?.hash ? [[number, { hash: block.hash, timestamp: BigInt(block.timestamp) }] as const] : [];
  };
  const repeated = events.filter(({ eventName }) => REPEATED.includes(eventName));
  const transactions = new Map(replay && repeated.map(({ transactionHash: hash, blockNumber }) => [hash, blockNumber]));
  const [drawn, replays, now] = await Promise.all([
    Promise.all(lots.map(blockOf)),
    Promise.all([...transactions].map(async ([hash, blockNumber]) => [hash, await replay!(client, { address, hash, blockNumber })] as const)),
    Promise.all(ASKED.map(async (name) => [numbers[name], (await getParameter(client, { address, which: numbers[name], blockNumber: toBlock })).value] as const)),
  ]);
  // The events' own blocks last: while they are the same, so were the earlier ones that the other answers are about.
  const hashes = new Map(events.map(({ blockNumber, blockHash }) => [blockNumber, blockHash]));
  const blocks = (await Promise.all([...hashes.keys()].map(blockOf))).flat();
  for (const [number, { hash }] of blocks) {
    if (hash !== hashes.get(number)) throw new ChangedError("transport", `Block ${number} has changed since its events were read: the chain was reorganised. Ask again.`, undefined);
  }
  return {
    replays: new Map(replays),
    events,
    settlement: around.filter(({ transactionHash }) => transactionHash === settled?.transactionHash),
    blocks: new Map([...drawn.flat(), ...blocks]),
    changes,
    parameters: new Map(now),
  };
}

/** A parameter's value at an event. */
export function parameterAt({ changes, parameters }: Facts, parameter: number, event: MusterEvent): bigint {
  const own = changes.filter((change) => change.parameter === parameter);
  const isBefore = ({ blockNumber, logIndex }: Change) =>
    blockNumber < event.blockNumber || (blockNumber === event.blockNumber && logIndex < event.logIndex);
  return own.findLast(isBefore)?.value ?? own.find((change) => !isBefore(change))?.before ?? parameters.get(parameter)!;
}
