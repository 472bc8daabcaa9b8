/**
 * Options for TanStack Query: `useQuery(taskQueryOptions(client, { address, id }))`. Keys are plain JSON, so the library's own hashing
 * works; this package does not import the library.
 */
import type { MusterClient } from "./client.js";
import { type ViewName, type ViewResult, readMuster } from "./contract.js";
import { newest } from "./endpoint.js";
import { TaskGoneError, TaskNotFoundError } from "./errors.js";
import { getEvents } from "./events.js";
import { type Task, follow, hasEnded, isSame } from "./life.js";
import { digestOf } from "./names.js";
import type { ReadParameters } from "./reads.js";
import { type GetResultParameters, type Result, getResult } from "./results.js";
import { storesOf } from "./stores.js";
import { type EstimateTaskParameters, type GetTaskParameters, type TaskEstimate, estimateTask, getTask } from "./tasks.js";

/** The key of a query. */
export type QueryKey = readonly ["muster", string, { chain: number | null; uid: string } & Record<string, unknown>];

/** The options that `useQuery`, `queryClient.fetchQuery` and similar functions take. */
export interface QueryOptions<data> {
  queryKey: QueryKey;
  queryFn: (context: QueryContext) => Promise<data>;
}

/** The part of a query's context that matters here. */
export interface QueryContext {
  signal: AbortSignal;
  queryKey?: unknown;
  /** The cache, in versions that tell it. */
  client?: { getQueryCache: () => { find: (filters: never) => { state: { data: unknown } } | undefined } } | undefined;
}

const keyOf = (client: MusterClient, name: string, parameters: object): QueryKey => {
  const plain = JSON.parse(JSON.stringify(parameters, (_, item: unknown) => (typeof item === "bigint" ? `${item}` : item)));
  return ["muster", name, { chain: client.chain?.id ?? null, uid: client.uid, ...plain }];
};

/** A view of the interface by its name there. */
export const readQueryOptions = <name extends ViewName>(
  client: MusterClient,
  name: name,
  parameters: ReadParameters<name>,
): QueryOptions<ViewResult<name>> => ({
  queryKey: keyOf(client, name, parameters),
  queryFn: () => readMuster(client, name, parameters as never),
});

/** Milliseconds for which a task that has just ended is asked for again, because a reorganisation may undo its end. */
const SETTLED = 60_000;
/** When queries last had a task that had not ended. */
const lived = /*#__PURE__*/ new WeakMap<object, number>();
/** The blocks that are read anew each time: a reorganisation may replace them, and an endpoint's node that lags behind lack them. */
const NEW = 256n;
/** By query, its task before these blocks, and the first of them. */
const known = /*#__PURE__*/ new WeakMap<object, { before: Task; next: bigint }>();
/** Failures after which a task that is not found is no longer taken for one that the endpoint lacks still. */
const FEW = 4;

/** A task, asked for again every polling interval of the client until a minute after its end, or until it is gone: from the last seen blocks on. */
export const taskQueryOptions = (
  client: MusterClient,
  parameters: GetTaskParameters,
): QueryOptions<Task> & {
  refetchInterval: (query: { state: { data: Task | undefined; error: unknown; errorUpdateCount: number } }) => number | false;
} => ({
  queryKey: keyOf(client, "task", { ...parameters, created: parameters.created?.hash }),
  queryFn: async ({ client: cache, queryKey }) => {
    const { address, id, created, toBlock, blockRange } = parameters;
    const query = cache?.getQueryCache().find({ queryKey } as never);
    const data = query?.state.data as Task | undefined;
    if (!query || !data || toBlock !== undefined) return getTask(client, parameters);
    const { before, next } = known.get(query) ?? { before: undefined, next: data.createdIn };
    const head = await newest(client);
    const events = await getEvents(client, { address, id, fromBlock: next, toBlock: head, blockRange });
    const first = head - NEW;
    const old = events.filter(({ blockNumber }) => blockNumber < first).reduce<Task | undefined>(follow, before);
    const task = events.filter(({ blockNumber }) => blockNumber >= first).reduce(follow, old);
    known.delete(query);
    // A reorganisation may have moved its creation.
    if (!task || (created && !isSame(task, created))) return getTask(client, parameters);
    if (old) known.set(query, { before: old, next: first > next ? first : next });
    return task;
  },
  refetchInterval: (query) => {
    const { data, error, errorUpdateCount } = query.state;
    if (error instanceof TaskGoneError || (error instanceof TaskNotFoundError && errorUpdateCount >= FEW)) return false;
    if (data && !hasEnded(data)) lived.set(query, Date.now());
    return data && Date.now() - (lived.get(query) ?? 0) > SETTLED ? false : client.pollingInterval;
  },
});

/** The cost of a task. */
export const estimateTaskQueryOptions = (client: MusterClient, parameters: EstimateTaskParameters): QueryOptions<TaskEstimate> => ({
  queryKey: keyOf(client, "estimateTask", parameters),
  queryFn: () => estimateTask(client, parameters),
});

/** A task's result, which never changes. */
export const resultQueryOptions = (
  client: MusterClient,
  parameters: Extract<GetResultParameters, { id: bigint }>,
): QueryOptions<Result> & { staleTime: number } => {
  const { id, address, created, fromBlock, stores, configured, identity } = parameters;
  const names = [...storesOf(stores), ...storesOf(configured)].map(({ name }) => name);
  return {
    // The digest of the key, for caches may be written down.
    queryKey: keyOf(client, "result", { id, address, created: created?.hash, fromBlock, stores: names, opened: identity && digestOf(identity) }),
    queryFn: ({ signal }) => getResult(client, { ...parameters, signal }),
    staleTime: Number.POSITIVE_INFINITY,
  };
};
