/** Tasks: estimate, create, read and end them. */
import { type Account, type Address, type Hash, isAddressEqual, numberToHex } from "viem";
import { parseAccount } from "viem/utils";
import type { MusterClient, MusterParameters } from "./client.js";
import {
  type CallName,
  type SenderParameters,
  type Sent,
  readTogether,
  sendMuster,
} from "./contract.js";
import { birthOf, newest } from "./endpoint.js";
import { NotCreatedError, NotPlacedError, RequestError, type TaskGoneError, refusalOf } from "./errors.js";
import { blockOf, decode, getEvents, getGroups, missing } from "./events.js";
import { type Private, putInput } from "./inputs.js";
import { type Task, follow, isSame } from "./life.js";
import { digestOf, modelId } from "./names.js";
import { PAGE, allPages } from "./pages.js";
import { getQueuedTasks } from "./reads.js";
import type { Stores } from "./stores.js";
import type { ArgumentsOf, Refusal, TaskSpec } from "./types.js";
import { waitForTask } from "./wait.js";

/** Task kinds by name. */
export const TaskKind = { stableDiffusion: 0, gpt: 1, fineTuning: 2 } as const;

/** The kind of work: one of {@link TaskKind}. */
export type Kind = (typeof TaskKind)[keyof typeof TaskKind];
/** The policy: 0 a single node, 1 sampled, 2 three nodes at once, 3 as many as their ratings require. */
export type Redundancy = 0 | 1 | 2 | 3;

/** A task's demands on its nodes. */
interface Demand {
  /** One of {@link TaskKind}. */
  kind: Kind;
  /** Images, text requests, or seconds of fine-tuning; 1 if left out. */
  units?: number | undefined;
  /** Least VRAM of the node in GiB; ignored where `gpu` is set. */
  vram?: number | undefined;
  /** A GPU group, as `getGpuGroup` gives it. */
  gpu?: number | undefined;
  /** The redundancy policy; 0 if left out. */
  redundancy?: Redundancy | undefined;
}

/** The input itself, of which only the digest goes to the chain, or the digest, if it is known; not both. */
type Input =
  | {
      input: Uint8Array | string;
      inputDigest?: undefined;
      /** Stores for the input, used before the task is paid for, see {@link putInput}; none if left out. */
      store?: Stores | undefined;
      /** With `store`: whether only nodes that may run the task can read it, and only the creator the result. */
      private?: Private | undefined;
    }
  | { input?: undefined; inputDigest?: Hash | undefined; store?: undefined; private?: undefined };

/** An application's request; omitted fields are 0, none, or any. */
export type TaskRequest = Demand &
  Input & {
    /** Whether a contract can read the outcome. */
    receipt?: boolean | undefined;
    /** Models by their names or ids, at most 8. */
    models?: readonly (string | bigint)[] | undefined;
  };

/** The contract's arguments for a request. */
export function specOf(request: TaskRequest): TaskSpec {
  const { kind, units = 1, vram = 0, gpu = 0, redundancy = 0, receipt = false, models = [], input, inputDigest } = request;
  if (input !== undefined && inputDigest !== undefined) throw new RequestError("A task has an `input` or an `inputDigest`, not both.");
  if (request.store !== undefined && input === undefined) throw new RequestError("A `store` is for an `input`, and there is none.");
  if (request.private && request.store === undefined) throw new RequestError("A private `input` needs a `store`: only inputs put there are sealed.");
  return {
    kind,
    units,
    vram,
    gpu,
    redundancy,
    flags: Number(receipt),
    inputDigest: inputDigest ?? (input === undefined ? numberToHex(0, { size: 32 }) : digestOf(input)),
    models: models.map((model) => (typeof model === "string" ? modelId(model) : model)),
  };
}

// ---------------------------------------------------------------- estimating

/** Stake classes of idle nodes; see docs/dispatching.md. */
const CLASSES = 10;
/** Members of a replicated task's group. */
const MEMBERS = 3;

/** Bits of a `queueKey` below the task's value. */
const ORDER = 26n;

/** A task's value in the queue, from the fee's part for one node: as the contract rounds it, 32 significant bits with 7 of their exponent above. */
function valueOf(part: bigint, estimate: number): bigint {
  const quotient = ((part || 1n) << 31n) / BigInt(estimate || 1);
  const bits = BigInt(quotient.toString(2).length);
  return (bits << 31n) | (BigInt.asUintN(64, bits > 32n ? quotient >> (bits - 32n) : quotient << (32n - bits)) & 0x7fff_ffffn);
}

/** The result of {@link estimateTask}. */
export interface TaskEstimate {
  /** Estimated seconds. */
  estimated: number;
  /** Seconds from its start to its deadline. */
  timeLimit: number;
  /** The least fee that is accepted, in wei. */
  leastFee: bigint;
  /**
   * Idle nodes that a draw could choose now; a task with `redundancy` 2 needs three, one with 3 as many as its fee is for. If answers of three nodes
   * must be equal and no `gpu` is required, these are the nodes of listed GPU groups with three idle ones.
   */
  eligible: number;
  /** The queue, which matters if no node is idle. */
  queue: {
    /** Queued tasks with the same requirements that would be served first, at this fee; 0 if a node is eligible. */
    before: number;
    /** All queued tasks in the network, and the limit. Beyond it the one with the lowest value is evicted. */
    queued: number;
    capacity: number;
  };
}

/** Parameters of {@link estimateTask}. */
export type EstimateTaskParameters = MusterParameters &
  Demand & {
    /** The offered fee, in wei; the least one if left out. */
    value?: bigint | undefined;
    /** With `redundancy` 3: nodes that the fee is for, `most` of the application's profile; 7 if left out, the default of profiles. */
    most?: number | undefined;
    /** Without `gpu`: the block from which GPU groups are looked for, by default Muster's own. */
    fromBlock?: bigint | undefined;
    /** See {@link getEvents}. */
    blockRange?: bigint | undefined;
  };

/**
 * A task's least fee, the number of nodes that could start it now, and its place in the queue if none can. All of it can change until
 * the task is created.
 *
 * Counts nodes by GPU group and stake class, not one by one. Where the chain has Multicall3, one request reads all of it, of one
 * block; without `gpu`, another one asks for the GPU groups that are new since the last.
 */
export async function estimateTask(
  client: MusterClient,
  { address, deployedIn, kind, units = 1, vram = 0, gpu = 0, redundancy = 0, value, most = 7, fromBlock, blockRange }: EstimateTaskParameters,
): Promise<TaskEstimate> {
  const nodes = [1, 1, MEMBERS, most][redundancy]!;
  // Its nodes are of one GPU group, which the contract finds: a listed one with enough idle nodes.
  const alike = redundancy === 2 && kind !== TaskKind.stableDiffusion && !gpu;
  const known = gpu ? [gpu] : await getGroups(client, { address, deployedIn, fromBlock, blockRange });
  // A group's number ends in its VRAM.
  const groups = known.filter((group) => gpu || (group & 0xffff) >= vram);
  const classes = groups.flatMap((group) => Array.from({ length: CLASSES }, (_, c) => ({ group, class: c, from: 0, count: 0 })));
  const queue = (gpu || vram) + [0, 0, kind ? 8192 : 4096, 12288][redundancy]!;
  const [single, overview, first, ...rest] = await readTogether(client, address, [
    ["estimate", { kind, units }],
    ["overview", {}],
    ["queuedTasks", { queue, from: 0, count: PAGE }],
    ...classes.map((page) => ["idleNodes", page] as const),
    ...((alike ? groups : []).map((group) => ["gpuListed", { group }]) as never[]),
  ]);
  const terms = { ...single, leastFee: single.leastFee * BigInt(nodes) };
  const idle = rest.slice(0, classes.length).map(({ total }) => total);
  const listed = rest.slice(classes.length) as unknown[];
  const totals = groups.map((_, i) => idle.slice(i * CLASSES, (i + 1) * CLASSES).reduce((sum, total) => sum + total, 0));
  const eligible = totals.filter((total, i) => !alike || (listed[i] && total >= MEMBERS)).reduce((sum, total) => sum + total, 0);
  let before = 0;
  if (eligible < nodes && overview.queued > 0) {
    const pages = await allPages(
      async (from, count) => (from ? getQueuedTasks(client, { address, queue, from, count }) : first),
      ({ places }) => places,
    );
    // A task's value is the fee's part for one node by its estimate, both of its creation; of equals the earlier is first.
    const own = valueOf((value ?? terms.leastFee) / BigInt(nodes), terms.estimated);
    before = pages.flatMap(({ list }) => list).filter((task) => task.queueKey >> ORDER >= own).length;
  }
  return { ...terms, eligible, queue: { before, queued: overview.queued, capacity: overview.queueCapacity } };
}

// ---------------------------------------------------------------- creating

/** Parameters of {@link createTask}. */
export type CreateTaskParameters = MusterParameters &
  SenderParameters &
  TaskRequest & {
    /** The fee, in wei. */
    value: bigint;
    /** Whether to make sure that the task's node is drawn, by a transaction of one's own if nobody else draws it. */
    dispatch?: boolean | undefined;
    /** Ends it before the task is paid for, and later gives up waiting for the draw, with {@link NotPlacedError}; the task then goes on. */
    signal?: AbortSignal | undefined;
  };

/** A task that was created. */
export interface CreateTaskReturnType {
  id: bigint;
  /** The key for the result of a private task: keep it, there is no other copy. */
  identity: string | undefined;
  /** The transaction that created it. */
  hash: Hash;
  /** As it was after that transaction; with `dispatch`, after the draw. */
  task: Task;
}

/**
 * The result of a transaction with `count` requests: the state of each created task, in their order, and refusals by index. A bundle of a smart account's
 * calls has others' tasks, too.
 */
function createdBy(
  { hash, receipt }: Sent,
  address: Address,
  sender: Account | Address,
  count: number,
): { created: Task[]; refused: Map<number, Refusal | undefined> } {
  const events = decode(receipt.logs.filter((log) => isAddressEqual(log.address, address)));
  const isOwn = ({ creator }: { creator: Address }) => isAddressEqual(creator, parseAccount(sender).address);
  const created = events.flatMap(({ eventName, args }) =>
    eventName === "TaskCreated" && isOwn(args)
      ? [events.filter((event) => "id" in event.args && event.args.id === args.id).reduce<Task | undefined>(follow, undefined)!]
      : [],
  );
  const refused = new Map(events.flatMap(({ eventName, args }) => (eventName === "TaskRefused" && isOwn(args) ? [[args.place, refusalOf(args.reason)]] : [])));
  if (created.length + refused.size < count) throw new NotCreatedError(hash);
  return { created, refused };
}

/** The contract's arguments for a request, after its input is stored. */
async function storing(client: MusterClient, address: Address, request: TaskRequest, signal?: AbortSignal): Promise<{ spec: TaskSpec; identity: string | undefined }> {
  const { input, store, private: hidden, gpu, vram } = request;
  if (input === undefined || store === undefined) return { spec: specOf(request), identity: undefined };
  // Throws for a bad request before anything is stored; the digest, which may take long, comes with the input.
  const spec = specOf({ ...request, input: "" } as TaskRequest);
  const { inputDigest, identity } = await putInput(client, { address, input, store, private: hidden, gpu, vram, signal });
  return { spec: { ...spec, inputDigest }, identity };
}

/** Does what may pay for tasks whose keys nobody has yet: an error has them. */
async function keeping<result>(identities: readonly (string | undefined)[], act: () => Promise<result>): Promise<result> {
  try {
    return await act();
  } catch (error) {
    // Also of a wallet, which may have sent before it failed.
    if (error instanceof Error && identities.some(Boolean)) Object.defineProperty(error, "identities", { value: identities, configurable: true });
    throw error;
  }
}

/**
 * Creates a task. With `store`, puts its input there first, so that nothing is paid for a task whose input no node could read. Resolves when it is
 * mined; with `dispatch`, when its node is drawn, or it is queued or evicted. Throws {@link NotConfirmedError} if it is unknown whether the task was
 * created, {@link NotPlacedError} if it was and its draw could not be waited for. Of a private task, both have the key for its result: `identities`.
 */
export async function createTask(
  client: MusterClient,
  { address, deployedIn: _, account, value, dispatch = false, signal, ...request }: CreateTaskParameters,
): Promise<CreateTaskReturnType> {
  const { spec, identity } = await storing(client, address, request, signal);
  return keeping([identity], async () => {
    signal?.throwIfAborted();
    const sent = await sendMuster(client, "createTask", { spec }, { address, account, value });
    const { hash } = sent;
    const task = createdBy(sent, address, (account ?? client.account)!, 1).created.at(-1)!;
    const { id } = task;
    if (!dispatch || task.status !== "pending") return { id, identity, hash, task };
    const waiting = waitForTask(client, { address, account, id, created: task, until: "placed", dispatch, signal });
    const placed = await waiting.catch((error: Error) => {
      throw new NotPlacedError(task, hash, error);
    });
    return { id, identity, hash, task: placed };
  });
}

/** Parameters of {@link createTasks}. */
export type CreateTasksParameters = MusterParameters &
  SenderParameters & {
    /** At most 16, each with its fee in wei. */
    tasks: readonly (TaskRequest & { value: bigint })[];
    /** Whether a refused one refuses them all; true if left out. Otherwise it is left out, and its fee becomes credit. */
    atomic?: boolean | undefined;
  };

/** Tasks that were created together. */
export interface CreateTasksReturnType {
  /** The transaction that created them. */
  hash: Hash;
  /** In the order of the requests; undefined for one that was left out. None is drawn yet: see {@link waitForTask}. */
  tasks: readonly (Task | undefined)[];
  /** Likewise, the reason why it was left out; undefined for a created one. */
  refusals: readonly (Refusal | undefined)[];
  /** Likewise, the key for the result of a private one. */
  identities: readonly (string | undefined)[];
}

/** Tasks in one batch. */
const MOST = 16;

/**
 * Creates tasks by one transaction, which costs less than one by one. Resolves when it is mined. Draws due for others' tasks are made first, by
 * transactions of their own.
 */
export async function createTasks(
  client: MusterClient,
  { address, account, tasks, atomic = true }: CreateTasksParameters,
): Promise<CreateTasksReturnType> {
  if (!tasks.length || tasks.length > MOST) throw new RequestError(`A batch is of 1 to ${MOST} tasks, not ${tasks.length}.`);
  const fees = tasks.map(({ value }) => value);
  const value = fees.reduce((sum, fee) => sum + fee, 0n);
  const stored = await Promise.all(tasks.map((request) => storing(client, address, request)));
  const identities = stored.map(({ identity }) => identity);
  return keeping(identities, async () => {
    const sent = await sendMuster(client, "createTasks", { specs: stored.map(({ spec }) => spec), fees, atomic }, { address, account, value });
    const { created, refused } = createdBy(sent, address, (account ?? client.account)!, tasks.length);
    const tasksOf = fees.map((_, place) => (refused.has(place) ? undefined : created.shift()));
    return { hash: sent.hash, tasks: tasksOf, refusals: fees.map((_, place) => refused.get(place)), identities };
  });
}

// ---------------------------------------------------------------- asking, ending

/** Parameters of {@link getTask}. */
export type GetTaskParameters = MusterParameters & {
  id: bigint;
  /** The task as `createTask` returned it: if a reorganisation gave its id to another one, throws `TaskGoneError`. */
  created?: Task | undefined;
  /** The block in which it was created, or an earlier one; that of `created`, or Muster's own, if left out. */
  fromBlock?: bigint | undefined;
  /** The newest if left out. */
  toBlock?: bigint | undefined;
  /** See {@link getEvents}. */
  blockRange?: bigint | undefined;
};

/** A task's state from its events. Throws `TaskNotFoundError` if there is none, `EndpointError` if the endpoint lacks the events of one. */
export async function getTask(
  client: MusterClient,
  { id, created, fromBlock = created?.createdIn, toBlock, blockRange, ...muster }: GetTaskParameters,
): Promise<Task> {
  const { address } = muster;
  const named = fromBlock !== undefined || toBlock !== undefined;
  fromBlock ??= await birthOf(client, muster);
  toBlock ??= await newest(client);
  const find = async (fromBlock: bigint) =>
    (await getEvents(client, { address, id, fromBlock, toBlock, blockRange })).reduce<Task | undefined>(follow, undefined);
  const own = (task: Task | undefined) => (task && created && !isSame(task, created) ? undefined : task);
  const found = await find(fromBlock);
  let task = own(found);
  if (created && !task) {
    const block = await blockOf(client, address, id, created).catch((error: Partial<TaskGoneError>) => {
      // A node that lags behind has neither a task's logs nor its receipt yet.
      if (found || error.ids?.length !== 0) throw error;
    });
    if (block !== undefined) task = own(await find(block));
  }
  if (!task) throw await missing(client, address, id, fromBlock, named);
  return task;
}

const sending =
  <name extends CallName>(name: name) =>
  (client: MusterClient, { address, deployedIn: _, account, ...named }: MusterParameters & SenderParameters & ArgumentsOf<name>): Promise<Sent> =>
    sendMuster(client, name, named as never, { address, account });

/** Takes a task of the sender's out of the queue; `ticket` is the queued task's. */
export const cancelTask = /*#__PURE__*/ sending("cancel");
/** Ends a task that was queued for too long. Anyone may. */
export const expireQueuedTask = /*#__PURE__*/ sending("expireQueued");
/** Ends a task whose node is silent beyond its deadline. Anyone may. */
export const expireTask = /*#__PURE__*/ sending("expire");
/** Has a sampled task's validators called. Anyone may. */
export const validateTask = /*#__PURE__*/ sending("validate");
/** Judges a validation group once its time for reveals is over. Anyone may. */
export const settleTask = /*#__PURE__*/ sending("settle");
/** Pays out the sender's credit. */
export const withdrawCredit = /*#__PURE__*/ sending("withdraw");
