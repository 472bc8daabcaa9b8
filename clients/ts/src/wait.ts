/**
 * Follows the chain by repeated requests for past events from a cursor on. Nothing is kept on a server: after an outage the next
 * question begins where the last answer ended, so nothing is lost and nothing comes twice.
 */
import type { Address } from "viem";
import type { MusterClient, MusterParameters } from "./client.js";
import { type SenderParameters, handed } from "./contract.js";
import { dispatchFor } from "./dispatch.js";
import { NEVER, birthOf, newest } from "./endpoint.js";
import { EndpointError, TaskNotFoundError, WaitTimeoutError, lasting, noLogs, passing, unanswered } from "./errors.js";
import { type Concerning, blockOf, getEvents, missing } from "./events.js";
import { type EndedTask, type Task, follow, hasEnded, isSame } from "./life.js";
import type { MusterEvent } from "./types.js";

// ---------------------------------------------------------------- watching

/** Parameters of {@link watchEvents}. */
export type WatchEventsParameters = MusterParameters &
  Concerning & {
    /** The first block looked at: the last `next` of `onEvents`. The next block if left out. */
    fromBlock?: bigint | undefined;
    /**
     * Gets events in their order, each once; later those that the endpoint lacked at first, or that a reorganisation moved. `next` is the block to
     * begin with after a restart: store it once the events are dealt with. A promise is awaited before more is asked for; if it rejects, the same events come again.
     */
    onEvents: (events: MusterEvent[], next: bigint) => void | Promise<void>;
    /** Gets failures; asking goes on. */
    onError?: ((error: Error) => void) | undefined;
    /** Milliseconds between questions; the client's if left out. */
    pollingInterval?: number | undefined;
    /** See {@link getEvents}. */
    blockRange?: bigint | undefined;
  };

/** The blocks that a watch asks about again, because one node of the endpoint may lag behind another. */
const AGAIN = 32n;

/** Watches a subject's events from a cursor on. Returns a function that ends it. */
export function watchEvents(
  client: MusterClient,
  { address, deployedIn: _, fromBlock, onEvents, onError, pollingInterval = client.pollingInterval, blockRange, ...whose }: WatchEventsParameters,
): () => void {
  let [cursor, timer, over] = [fromBlock, undefined as ReturnType<typeof setTimeout> | undefined, false];
  let first = fromBlock;
  /** The told events of the blocks that are asked about again. */
  let told = new Map<string, bigint>();
  const ask = async () => {
    try {
      const toBlock = await newest(client);
      cursor ??= first = toBlock + 1n;
      if (!over && cursor <= toBlock) {
        const back = cursor - AGAIN;
        const all = await getEvents(client, { address, fromBlock: back < first! ? first! : back, toBlock, blockRange, ...(whose as Concerning) });
        const key = ({ blockHash, logIndex }: MusterEvent) => `${blockHash}:${logIndex}`;
        const events = all.filter((event) => !told.has(key(event)));
        if (!over && events.length) await onEvents(events, toBlock + 1n);
        cursor = toBlock + 1n;
        told = new Map([...told, ...events.map((event) => [key(event), event.blockNumber] as const)].filter(([, block]) => block >= toBlock - AGAIN));
      }
    } catch (error) {
      if (!over) onError?.(error as Error);
    } finally {
      // Also if a handler has thrown, which is then an unhandled rejection.
      if (!over) timer = setTimeout(ask, pollingInterval);
    }
  };
  void ask();
  return () => {
    over = true;
    clearTimeout(timer);
  };
}

type Watch<whose> = (client: MusterClient, parameters: Omit<WatchEventsParameters, "id" | "creator" | "node"> & whose) => () => void;

/** Watches tasks: some by their ids, or all of an application (without commitments and reveals, which do not name it). */
export const watchTasks = watchEvents as Watch<{ id: bigint | readonly bigint[] } | { creator: Address }>;

/** Watches the events of a node, except `NodeRated`, `WorkerNamed` and `WorkAccepted`: `muster-client/abi` has those. */
export const watchNode = watchEvents as Watch<{ node: number }>;

// ---------------------------------------------------------------- waiting

/** How far to wait: to the task's end, or until it is no longer Pending. */
export type Until = "ended" | "placed";

/** Parameters of {@link waitForTask}. */
export type WaitForTaskParameters<until extends Until = "ended"> = MusterParameters &
  SenderParameters & {
    id: bigint;
    /**
     * The task as `createTask` returned it. Should a reorganisation give its id to another task, the wait then fails with `TaskGoneError`. Without it
     * the wait follows the task that has the id when it begins.
     */
    created?: Task | undefined;
    /** The block in which it was created, or an earlier one; that of `created`, or Muster's own, if left out. */
    fromBlock?: bigint | undefined;
    /** To its end if left out. */
    until?: until | undefined;
    /** Whether to draw the task's node by a transaction of one's own as soon as its block has come, if nobody else has. */
    dispatch?: boolean | undefined;
    /** Ends the waiting, by rejecting with the signal's reason. */
    signal?: AbortSignal | undefined;
    /** Milliseconds after which it rejects with `WaitTimeoutError`; never if left out. */
    timeout?: number | undefined;
    /** Gets every change, including the first state. */
    onChange?: ((task: Task) => void) | undefined;
    /**
     * Milliseconds between questions. If left out, about a block's time while things happen, half of it before a draw, and longer the longer
     * nothing does, up to the client's.
     */
    pollingInterval?: number | undefined;
    /** See {@link getEvents}. */
    blockRange?: bigint | undefined;
  };

interface Waiter {
  id: bigint;
  /** Undefined until Muster's first block is known. */
  from: bigint | undefined;
  /** Whether the caller has named the first block. */
  named: boolean;
  cursor: bigint | undefined;
  task: Task | undefined;
  /** The task's events. */
  known: MusterEvent[];
  /** The task before the chain was reorganised, or as created, and the number of answers without it since, or from the beginning. */
  lost: Task | undefined;
  misses: number;
  /** Questions in a row that were answered with a failure. */
  failures: number;
  until: Until;
  dispatch: SenderParameters | undefined;
  /** Draws in a row that failed, and the time before which none is tried again. */
  undrawn: number;
  rest: number;
  /** The unfinished draw of its node, if any. */
  drawing: Promise<unknown> | undefined;
  onChange: ((task: Task) => void) | undefined;
  done: (task: Task) => void;
  fail: (error: unknown) => void;
}

/** The waits for tasks of one Muster by one client, which share a question. */
interface Poll {
  waiters: Set<Waiter>;
  /** Whether draws are being made. One at a time: a second would draw the same, and a wallet ask twice. */
  driving: boolean;
  /** The newest block at the last question, and the number of questions that found a new one. */
  head: bigint | undefined;
  heads: number;
  /** The newest block at the last two looks back. */
  looked: [bigint, bigint];
  /** The time of the last news of a task. */
  heard: number;
  /** Asks now. */
  hurry: () => void;
}

/** The assumed milliseconds of a block, if the client's chain does not have them: as on Arbitrum. */
const BLOCK = 250;
/** The most milliseconds that a timer takes: it ends at once if given more. */
const LONGEST = 2 ** 31 - 1;
/** The longer nothing has happened, the later it may be seen: by this part of the time. */
const PART = 16;

/**
 * The questions between looks back, which repeat the range since the last but one, to see changes by reorganisations. Also the answers that must
 * lack a known task before it counts as gone, because one node of the endpoint may lag behind another.
 */
const LOOKS = 16;
/** Likewise for a task that the contract does not have either. */
const FEW = 4;
/** How many blocks earlier than before a reorganisation a task may lie after it. Beyond that its transaction's receipt says where. */
const EARLIER = 256n;

const polls = new Map<string, Poll>();

/**
 * Waits for a task, by its id alone. Asks for its past events first, so it can be waited for again after a restart.
 * Concurrent waits of one client and Muster share their questions. Transport failures are waited out.
 */
export function waitForTask<until extends Until = "ended">(
  client: MusterClient,
  {
    address,
    deployedIn,
    account = client.account,
    id,
    created,
    fromBlock = created?.createdIn,
    until = "ended" as until,
    dispatch = false,
    signal,
    timeout,
    onChange,
    pollingInterval,
    blockRange,
  }: WaitForTaskParameters<until>,
): Promise<until extends "placed" ? Task : EndedTask> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const key = [client.uid, address.toLowerCase(), pollingInterval, blockRange].join();
    const leave = () => {
      polls.get(key)?.waiters.delete(waiter);
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
    const waiter: Waiter = {
      id,
      from: fromBlock,
      named: fromBlock !== undefined,
      cursor: fromBlock,
      task: undefined,
      known: [],
      lost: created,
      misses: 0,
      failures: 0,
      until,
      dispatch: dispatch ? { account } : undefined,
      undrawn: 0,
      rest: 0,
      drawing: undefined,
      onChange,
      done: (task) => (leave(), resolve(task as never)),
      fail: (error) => (leave(), reject(error)),
    };
    const abort = () => waiter.fail(signal!.reason);
    signal?.addEventListener("abort", abort);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const expire = (left: number): void => {
      timer = setTimeout(() => (left > LONGEST ? expire(left - LONGEST) : waiter.fail(new WaitTimeoutError(id, timeout!))), Math.min(left, LONGEST));
    };
    if (timeout !== undefined) expire(timeout);

    const running = polls.get(key);
    if (running) return void (running.waiters.add(waiter), running.hurry());
    const waiters = new Set([waiter]);
    let [next, hurried] = [undefined as ReturnType<typeof setTimeout> | undefined, false];
    const hurry = () => {
      hurried = true;
      if (next === undefined) return;
      clearTimeout(next);
      void again();
    };
    const poll: Poll = { waiters, driving: false, head: undefined, heads: 0, looked: [NEVER, NEVER], heard: Date.now(), hurry };
    polls.set(key, poll);
    const again = async () => {
      [next, hurried] = [undefined, false];
      if (waiters.size) await ask(client, { address, deployedIn }, poll, blockRange);
      // A draw is made in the block after its own, so that block must be seen soon.
      const block = (client.chain?.blockTime ?? BLOCK) / ([...waiters].some(({ task, dispatch }) => dispatch && isUndrawn(task)) ? 2 : 1);
      if (waiters.size) next = setTimeout(again, hurried ? 0 : (pollingInterval ?? Math.min(client.pollingInterval, Math.max(block, (Date.now() - poll.heard) / PART))));
      else polls.delete(key);
    };
    void again();
  });
}

/** Fails the waits, unless the failure may pass. */
const refuse = (error: unknown, waiters: Waiter[]): void => {
  const isSetting = error instanceof EndpointError && error.setting === "deployedIn";
  if (isSetting || !passing(error)) for (const waiter of waiters) waiter.fail(error);
};

/** Likewise for a question or a draw. One that an endpoint answers with failures in a row, or refuses, is given up; an outage is waited out. */
const refuseAnswer = (error: unknown, waiters: Waiter[], count: "failures" | "undrawn" = "failures"): void => {
  refuse(error, waiters);
  if (!unanswered(error) || lasting(error)) for (const waiter of waiters) if (++waiter[count] >= LOOKS) waiter.fail(error);
};

/** Asks one question for all waits that have come as far, and handles its answer. */
async function ask(client: MusterClient, muster: MusterParameters, poll: Poll, blockRange: bigint | undefined): Promise<void> {
  const { address } = muster;
  const { waiters } = poll;
  const all = [...waiters];
  try {
    const toBlock = await newest(client);
    const newcomers = all.filter(({ cursor }) => cursor === undefined);
    if (newcomers.length) {
      const birth = await birthOf(client, muster).catch((error: unknown) => refuseAnswer(error, newcomers));
      for (const waiter of newcomers) waiter.cursor = waiter.from = birth!;
    }
    const { looked } = poll;
    let back = NEVER;
    if (toBlock !== poll.head && poll.heads++ % LOOKS === 0) [back, poll.looked] = [looked[0], [looked[1], toBlock]];
    poll.head = toBlock;
    // A new wait asks alone about earlier blocks, until it has come as far as the others. A lagging node may not have a task's
    // first block yet.
    const starts = new Map<bigint, Waiter[]>();
    for (const waiter of all) {
      const { cursor = NEVER, from = NEVER } = waiter;
      const start = back < cursor ? (back < from ? from : back) : cursor;
      if (start <= toBlock) starts.set(start, [...(starts.get(start) ?? []), waiter]);
    }
    const questions = [...starts].map(async ([fromBlock, asking]) => {
      try {
        const events = await getEvents(client, { address, id: asking.map(({ id }) => id), fromBlock, toBlock, blockRange });
        const known = asking.map(({ task }) => task);
        for (const waiter of asking) {
          if (!waiters.has(waiter)) continue;
          if (take(waiter, events, fromBlock, toBlock)) await (waiter.lost ? seek : miss)(client, address, waiter).catch((error: unknown) => refuseAnswer(error, [waiter]));
          else waiter.failures = 0;
        }
        if (asking.some(({ task }, i) => task !== known[i])) poll.heard = Date.now();
      } catch (error) {
        refuseAnswer(error, asking);
      }
    });
    await Promise.all(questions);
    const due = all.filter((waiter) => waiters.has(waiter) && waiter.dispatch && waiter.rest <= Date.now() && isDue(waiter, toBlock));
    // Not awaited: a wallet may have it open for long, and others wait for tasks that need none.
    // Each account pays for its own: those of another are drawn for after these.
    const same = due.filter(({ dispatch }) => dispatch!.account === due[0]!.dispatch!.account);
    if (due.length && !poll.driving) void drive(client, address, poll, same);
  } catch (error) {
    refuseAnswer(error, all);
  }
}

/** Advances a task by the events of some blocks, of which the first may be known already. Returns whether it seems to be gone, or never created. */
function take(waiter: Waiter, events: MusterEvent[], fromBlock: bigint, toBlock: bigint): boolean | void {
  // The answer has the events of other waits, too.
  const own = events.filter(({ args }) => "id" in args && args.id === waiter.id);
  const before = waiter.known.filter(({ blockNumber }) => blockNumber >= fromBlock);
  if (before.some(({ blockHash, logIndex }, i) => own[i]?.blockHash !== blockHash || own[i].logIndex !== logIndex)) {
    // The chain was reorganised: all events are asked for again. Its creation may lie in an earlier block now.
    const lost = (waiter.task ?? waiter.lost)!;
    restart(waiter, lost.createdIn > EARLIER ? lost.createdIn - EARLIER : 0n);
    waiter.lost = lost;
    return;
  }
  waiter.cursor = toBlock + 1n;
  try {
    for (const event of own.slice(before.length)) {
      waiter.known.push(event);
      const earlier = waiter.task;
      waiter.task = follow(earlier, event);
      if (waiter.task && waiter.task !== earlier && !isOther(waiter)) waiter.onChange?.(waiter.task);
    }
  } catch (error) {
    return waiter.fail(error);
  }
  const { task, lost } = waiter;
  // The id may now belong to another task.
  if (lost && (task ? isOther(waiter) : toBlock >= lost.createdIn && ++waiter.misses >= LOOKS)) return true;
  if (!task && lost) waiter.cursor = waiter.from;
  else if (!task) return true;
  else if (hasEnded(task) || (waiter.until === "placed" && task.status !== "pending")) {
    if (waiter.drawing) void waiter.drawing.then(() => waiter.done(task));
    else waiter.done(task);
  }
}

/** Whether the id has gone to another task. */
const isOther = ({ task, lost }: Waiter) => task && lost && !isSame(task, lost);

/** Asks for all of a task's events again, from a block on. */
const restart = (waiter: Waiter, from: bigint): void => void Object.assign(waiter, { task: undefined, known: [], misses: 0, from, cursor: from });

/** Counts an answer without a task that was never seen, and fails its wait if the endpoint has had time enough. */
async function miss(client: MusterClient, address: Address, waiter: Waiter): Promise<void> {
  const { id, misses } = waiter;
  restart(waiter, waiter.from!);
  waiter.misses = misses + 1;
  if (waiter.misses !== FEW && waiter.misses < LOOKS) return;
  const error = await missing(client, address, id, waiter.from!, waiter.named);
  if (waiter.misses >= LOOKS || (error instanceof TaskNotFoundError && !error.exists)) waiter.fail(error);
}

/** Goes on with a task that seems to be gone if the transaction which created it is in the chain. Otherwise its wait fails. */
async function seek(client: MusterClient, address: Address, waiter: Waiter): Promise<void> {
  const { id, task, from, lost } = waiter;
  // Another's task is not to be drawn meanwhile.
  if (task) restart(waiter, from!);
  waiter.cursor = from;
  const block = await blockOf(client, address, id, lost!);
  if (from === block && !task) waiter.fail(noLogs(id, block));
  else restart(waiter, block);
}

const isUndrawn = (task: Task | undefined): task is Task & { status: "pending" | "sampled" } =>
  task?.status === "pending" || task?.status === "sampled";

/** Whether a draw is due: its block has come, and a transaction gets into a later one. */
const isDue = ({ task }: Waiter, toBlock: bigint): boolean => isUndrawn(task) && task.drawBlock <= toBlock;

async function drive(client: MusterClient, address: Address, poll: Poll, due: Waiter[]): Promise<void> {
  const { account } = due[0]!.dispatch!;
  const ids = due.map(({ id }) => id);
  poll.driving = true;
  const drawing = dispatchFor(client, { address, account }, ids).catch((error: Error) => {
    for (const waiter of due) {
      if (!isUndrawn(waiter.task)) continue;
      if (handed.has(error)) waiter.fail(error);
      else refuseAnswer(error, [waiter], "undrawn");
      waiter.rest = Date.now() + client.pollingInterval * (waiter.undrawn + 1);
    }
  });
  // The account's next transaction would take the same nonce, if somebody else was faster and this one is not mined yet. A wallet counts
  // by itself, and may be open for ever.
  if (typeof account === "object" && account.type === "local") for (const waiter of due) waiter.drawing = drawing;
  const sent = await drawing;
  poll.driving = false;
  for (const waiter of due) {
    waiter.drawing = undefined;
    if (sent !== undefined) waiter.undrawn = 0;
  }
  if (sent) poll.hurry();
}
