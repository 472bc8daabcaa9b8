/**
 * Options for TanStack Query: `useQuery(taskQueryOptions(client, { address, id }))`. Keys are plain JSON, so the library's own hashing
 * works; this package does not import the library.
 */
import type { MusterClient } from "./client.js";
import { type ViewName, type ViewResult, readMuster } from "./contract.js";
import { TaskNotFoundError } from "./errors.js";
import { type Task, hasEnded } from "./life.js";
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
  client?: { getQueryData: (queryKey: never) => unknown } | undefined;
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

/** A task, asked for again every polling interval of the client until a minute after its end: from the block of its creation on, once that is known. */
export const taskQueryOptions = (
  client: MusterClient,
  parameters: GetTaskParameters,
): QueryOptions<Task> & { refetchInterval: (query: { state: { data: Task | undefined } }) => number | false } => ({
  queryKey: keyOf(client, "task", { ...parameters, created: parameters.created?.hash }),
  queryFn: async ({ client: cache, queryKey }) => {
    const known = cache?.getQueryData(queryKey as never) as Task | undefined;
    // A reorganisation may have moved its creation.
    const again = known && (await getTask(client, { ...parameters, fromBlock: known.createdIn }).catch((error: unknown) => {
      if (!(error instanceof TaskNotFoundError)) throw error;
    }));
    return again ?? getTask(client, parameters);
  },
  refetchInterval: (query) => {
    const { data } = query.state;
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
    queryKey: keyOf(client, "result", { id, address, created: created?.hash, fromBlock, stores: names, opened: identity && true }),
    queryFn: ({ signal }) => getResult(client, { ...parameters, signal }),
    staleTime: Number.POSITIVE_INFINITY,
  };
};
