/** The views of the interface, an action each: `getOverview`, `getNode`, ... Arguments and results have the names of `abi/IMuster.sol`. */
import type { MusterClient, MusterParameters } from "./client.js";
import { type ViewName, type ViewResult, readMuster } from "./contract.js";
import { allPages } from "./pages.js";
import type { ArgumentsOf } from "./types.js";

/** Parameters of a view: its own by their names, and the block. */
export type ReadParameters<name extends ViewName> = MusterParameters & {
  /** The newest block if left out. */
  blockNumber?: bigint | undefined;
} & ArgumentsOf<name>;

/** All of them by their names. */
export type ReadActions = {
  [name in ViewName as `get${Capitalize<name>}`]: (client: MusterClient, parameters: ReadParameters<name>) => Promise<ViewResult<name>>;
};

const read =
  <name extends ViewName>(name: name) =>
  (client: MusterClient, parameters: ReadParameters<name>): Promise<ViewResult<name>> =>
    readMuster(client, name, parameters as never);

// The network.
/** The network as a whole. */
export const getOverview = /*#__PURE__*/ read("overview");
/** The account that may change parameters and propose programs. */
export const getOwner = /*#__PURE__*/ read("owner");
/** A parameter and its bounds, by its number: `parameterNumbers` of `muster-client/abi` has them. */
export const getParameter = /*#__PURE__*/ read("parameter");

// Accounts and nodes.
/** An account's credit, and its node. */
export const getAccount = /*#__PURE__*/ read("account");
/** A node by its number. */
export const getNode = /*#__PURE__*/ read("node");
/** The number of the node that an account is the operator of, or works for. */
export const getNodeOf = /*#__PURE__*/ read("nodeOf");
/** An account's entry about its objects, and its nodes' results: URIs with a space between; empty if there is none. */
export const getStoresOf = /*#__PURE__*/ read("storesOf");
/** A page of nodes. */
export const getNodes = /*#__PURE__*/ read("nodes");
/** The factors of a node's weight for a task. */
export const getWeightOf = /*#__PURE__*/ read("weightOf");
/** A page of the idle nodes of a GPU group and stake class. */
export const getIdleNodes = /*#__PURE__*/ read("idleNodes");
/** A page of the active nodes of a GPU group and stake class. */
export const getActiveNodes = /*#__PURE__*/ read("activeNodes");
/** A page of a model's holders. */
export const getHolders = /*#__PURE__*/ read("holders");
/** A page of the nodes that wait apart. */
export const getExcludedNodes = /*#__PURE__*/ read("excludedNodes");
/** The GPU group of a name and VRAM size. */
export const getGpuGroup = /*#__PURE__*/ read("gpuGroup");
/** The name of a GPU group. */
export const getGpuName = /*#__PURE__*/ read("gpuName");
/** The number of GPU models of a VRAM size. */
export const getGpuGroups = /*#__PURE__*/ read("gpuGroups");
/** Whether answers of a GPU group can be compared bit by bit. */
export const getGpuListed = /*#__PURE__*/ read("gpuListed");

// Tasks.
/** The estimate for a task's kind and units. */
export const getEstimate = /*#__PURE__*/ read("estimate");
/** The outcome of a task with a receipt. */
export const getOutcome = /*#__PURE__*/ read("outcome");
/** A task that has not ended, by its id and hints. */
export const getLocate = /*#__PURE__*/ read("locate");
/** The task that a node runs. */
export const getRunningTask = /*#__PURE__*/ read("runningTask");
/** A page of the tasks that wait for their draw. */
export const getPendingTasks = /*#__PURE__*/ read("pendingTasks");
/** A page of the queues. */
export const getQueues = /*#__PURE__*/ read("queues");
/** A page of a queue's tasks. */
export const getQueuedTasks = /*#__PURE__*/ read("queuedTasks");
/** How many tasks of a page of a ticket's queue are served before it; {@link getQueuePlace} adds all pages up. */
export const getQueuedBefore = /*#__PURE__*/ read("queuedBefore");
/** The queued task that a node would take now. */
export const getBestQueued = /*#__PURE__*/ read("bestQueued");
/** A validation group by its place. */
export const getGroup = /*#__PURE__*/ read("group");
/** A page of the validation groups. */
export const getGroups = /*#__PURE__*/ read("groups");
/** A page of the sampled tasks whose validators have not been drawn. */
export const getValidatorDraws = /*#__PURE__*/ read("validatorDraws");

/** The number of tasks in the same queue that are served before a queued task; without other queues for the same nodes. */
export async function getQueuePlace(
  client: MusterClient,
  { ticket, ...muster }: MusterParameters & { blockNumber?: bigint | undefined; ticket: bigint },
): Promise<number> {
  const pages = await allPages(
    (from, count) => getQueuedBefore(client, { ...muster, ticket, from, count }),
    ({ places }) => places,
  );
  return pages.reduce((sum, { before }) => sum + before, 0);
}
