"use client";
/** Muster in React, on TanStack Query: a provider for the network, queries for views, mutations for transactions. */
import { type UseMutationOptions, type UseMutationResult, type UseQueryOptions, type UseQueryResult, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import {
  type CreateTaskParameters,
  type CreateTaskReturnType,
  type CreateTasksParameters,
  type CreateTasksReturnType,
  type EstimateTaskParameters,
  type MusterClient,
  type MusterParameters,
  type ReadParameters,
  type Result,
  type Sent,
  type Store,
  type Task,
  type TaskEstimate,
  type ViewName,
  type ViewResult,
  cancelTask,
  createTask,
  createTasks,
  dispatchTasks,
  expireQueuedTask,
  expireTask,
  settleTask,
  validateTask,
  withdrawCredit,
} from "muster-client";
import { estimateTaskQueryOptions, readQueryOptions, resultQueryOptions, taskQueryOptions } from "muster-client/query";
import { type ReactNode, createContext, createElement, useContext } from "react";

/** A network, and the viem client for it: of wagmi's, `useConnectorClient().data` signs and `useClient()` reads. */
export interface MusterConfig extends MusterParameters {
  client: MusterClient;
  /** The stores of results, unless a hook has others. */
  stores?: readonly (Store | string)[] | undefined;
}

const Context = createContext<MusterConfig | undefined>(undefined);

/** Provides a network to the components below it. Must be below a `QueryClientProvider`. */
export const MusterProvider = ({ children, ...config }: MusterConfig & { children?: ReactNode }) => createElement(Context.Provider, { value: config }, children);

/** The network of the provider above. */
export function useMuster(): MusterConfig {
  const config = useContext(Context);
  if (!config) throw new Error("There is no MusterProvider above.");
  return config;
}

const network = ({ address, deployedIn }: MusterConfig): MusterParameters => ({ address, deployedIn });

/** Options of TanStack's `useQuery`, except the query itself. */
export type QueryParameters<data> = Partial<Omit<UseQueryOptions<data>, "queryKey" | "queryFn" | "select">>;

/** Whether a query is sent: not without its argument, whatever its options say. */
const when = (argument: unknown, { enabled = true }: { enabled?: unknown }) => argument !== undefined && enabled;

/** A view of the interface by its name there; not called while `named` is undefined. */
export function useMusterRead<name extends ViewName>(name: name, named: Omit<ReadParameters<name>, keyof MusterParameters> | undefined, query: QueryParameters<ViewResult<name>> = {}): UseQueryResult<ViewResult<name>> {
  const config = useMuster();
  const options = readQueryOptions(config.client, name, { ...network(config), ...named } as never);
  return useQuery({ ...options, ...query, enabled: when(named, query) } as never);
}

/** The network as a whole. */
export const useNetwork = (query?: QueryParameters<ViewResult<"overview">>) => useMusterRead("overview", {} as never, query);
/** A node by its number. */
export const useNode = (number: number | undefined, query?: QueryParameters<ViewResult<"node">>) => useMusterRead("node", number === undefined ? undefined : ({ number } as never), query);
/** An account's credit and stake. */
export const useMusterAccount = (who: `0x${string}` | undefined, query?: QueryParameters<ViewResult<"account">>) => useMusterRead("account", who === undefined ? undefined : ({ who } as never), query);

/** Knowledge about a task, besides its id. */
export interface KnownParameters {
  /** The task as `useCreateTask` gave it: if a reorganisation gave its id to another one, the query fails with `TaskGoneError`. */
  created?: Task | undefined;
  /** The task's `createdIn` or an earlier block; that of `created`, or Muster's own, if left out. */
  fromBlock?: bigint | undefined;
}

/** A task, asked for again every polling interval of the client until a minute after its end, or until it is gone. `created` or `fromBlock` spares a search from Muster's own block on. */
export function useTask(id: bigint | undefined, { created, fromBlock, ...query }: QueryParameters<Task> & KnownParameters = {}): UseQueryResult<Task> {
  const config = useMuster();
  return useQuery({ ...taskQueryOptions(config.client, { ...network(config), id: id ?? 0n, created, fromBlock }), ...query, enabled: when(id, query) } as never);
}

/** The cost of a task. */
export function useTaskEstimate(request: Omit<EstimateTaskParameters, keyof MusterParameters> | undefined, query: QueryParameters<TaskEstimate> = {}): UseQueryResult<TaskEstimate> {
  const config = useMuster();
  return useQuery({ ...estimateTaskQueryOptions(config.client, { ...network(config), ...request } as EstimateTaskParameters), ...query, enabled: when(request, query) } as never);
}

/** Where a result is looked for, and how a private one is opened. */
export interface ResultParameters extends KnownParameters {
  stores?: readonly (Store | string)[] | undefined;
  /** The key for the result of a private task, from {@link useCreateTask}. */
  identity?: string | undefined;
}

/** A task's result, once it has succeeded: give it the id then. It never changes. */
export function useTaskResult(id: bigint | undefined, { stores, created, fromBlock, identity, ...query }: QueryParameters<Result> & ResultParameters = {}): UseQueryResult<Result> {
  const config = useMuster();
  return useQuery({ ...resultQueryOptions(config.client, { ...network(config), id: id ?? 0n, created, fromBlock, identity, stores: stores ?? config.stores ?? [] }), ...query, enabled: when(id, query) } as never);
}

/** Options of TanStack's `useMutation`, except the mutation itself. It is never repeated: what failed may be paid for already. */
export type MutationParameters<data, variables> = Omit<UseMutationOptions<data, Error, variables>, "mutationFn" | "mutationKey" | "retry" | "retryDelay">;
type Named<parameters> = parameters extends unknown ? Omit<parameters, keyof MusterParameters> : never;

/**
 * Mutations change the state, also those that failed once a transaction was sent. So all queries are invalidated, except results, which never change.
 * A mutation does not wait for the answers.
 */
function useAct<data, variables>(name: string, act: (config: MusterConfig, variables: variables) => Promise<data>, { onSuccess, onError, ...options }: MutationParameters<data, variables> = {}): UseMutationResult<data, Error, variables> {
  const config = useMuster();
  const queries = useQueryClient();
  const refresh = () => void queries.invalidateQueries({ queryKey: ["muster"], predicate: ({ queryKey }) => queryKey[1] !== "result" });
  return useMutation({
    ...options,
    // Over the defaults of the application's client, too.
    retry: false,
    mutationKey: ["muster", name],
    mutationFn: (variables: variables) => act(config, variables),
    onSuccess: async (...done) => {
      refresh();
      await onSuccess?.(...done);
    },
    onError: async (error, ...failed) => {
      if ((error as { hash?: unknown }).hash) refresh();
      await onError?.(error, ...failed);
    },
  });
}

/** A task to create, and its fee. */
export type CreateTaskRequest = Named<CreateTaskParameters>;
/** Creates a task; resolves when it is created, with `dispatch` when its node is drawn. `useTask` follows it from there. */
export const useCreateTask = (options?: MutationParameters<CreateTaskReturnType, CreateTaskRequest>): UseMutationResult<CreateTaskReturnType, Error, CreateTaskRequest> =>
  useAct("createTask", (config, request) => createTask(config.client, { ...network(config), ...request } as CreateTaskParameters), options);

/** Several tasks to create, and their fees. */
export type CreateTasksRequest = Named<CreateTasksParameters>;
/** Creates several tasks by one transaction. */
export const useCreateTasks = (options?: MutationParameters<CreateTasksReturnType, CreateTasksRequest>): UseMutationResult<CreateTasksReturnType, Error, CreateTasksRequest> =>
  useAct("createTasks", (config, request) => createTasks(config.client, { ...network(config), ...request } as CreateTasksParameters), options);

const sending =
  <parameters extends MusterParameters>(name: string, send: (client: MusterClient, parameters: parameters) => Promise<Sent>) =>
  (options?: MutationParameters<Sent, Named<parameters>>) =>
    useAct(name, (config, named: Named<parameters>) => send(config.client, { ...network(config), ...(named as object) } as parameters), options);

/** Takes a task of the sender's out of the queue. */
export const useCancelTask = /*#__PURE__*/ sending("cancelTask", cancelTask);
/** Ends a task whose node is silent beyond its deadline. Anyone may. */
export const useExpireTask = /*#__PURE__*/ sending("expireTask", expireTask);
/** Ends a task that was queued for too long. Anyone may. */
export const useExpireQueuedTask = /*#__PURE__*/ sending("expireQueuedTask", expireQueuedTask);
/** Has a sampled task's validators called. Anyone may. */
export const useValidateTask = /*#__PURE__*/ sending("validateTask", validateTask);
/** Judges a validation group once its time for reveals is over. Anyone may. */
export const useSettleTask = /*#__PURE__*/ sending("settleTask", settleTask);
/** Makes due draws. Anyone may. */
export const useDispatchTasks = /*#__PURE__*/ sending("dispatchTasks", dispatchTasks);
/** Pays out the sender's credit. */
export const useWithdraw = /*#__PURE__*/ sending("withdraw", withdrawCredit);
