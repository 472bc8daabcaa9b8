/** Muster for applications, with viem. */
export type { MusterClient, MusterParameters } from "./client.js";
export {
  type CallName,
  type SendParameters,
  type SenderParameters,
  type Sent,
  type ViewName,
  type ViewResult,
  readMuster,
  sendMuster,
} from "./contract.js";
export { type MusterActions, musterActions } from "./decorator.js";
export { type DispatchTasksParameters, dispatchTasks } from "./dispatch.js";
export {
  AccountRequiredError,
  type Attempt,
  EndpointError,
  MusterError,
  NoMusterError,
  NoResultError,
  NotConfirmedError,
  NotCreatedError,
  NotPlacedError,
  RefusalError,
  ReplacedError,
  RequestError,
  ResultError,
  type ResultProblem,
  StoreError,
  TaskGoneError,
  TaskNotFoundError,
  TransactionFailedError,
  UserRejectedError,
  WaitTimeoutError,
} from "./errors.js";
export { type BlockRange, type Concerning, type GetEventsParameters, getEvents } from "./events.js";
export { type Private, type PutInputParameters, type StoredInput, putInput } from "./inputs.js";
export { parse, stringify } from "./json.js";
export {
  type Answer,
  type EndedStage,
  type EndedTask,
  type LiveStage,
  type Member,
  type Task,
  type TaskStatus,
  type TaskTerms,
  type Verdict,
  follow,
  hasEnded,
} from "./life.js";
export { digestOf, modelId } from "./names.js";
export { type SetStoresParameters, setStores } from "./published.js";
export * from "./reads.js";
export {
  type GetResultParameters,
  type Result,
  type RetrievalParameters,
  type SealParameters,
  type Until,
  type WaitForTaskParameters,
  type WaitForTaskReturnType,
  getResult,
  openResult,
  waitForTask,
} from "./results.js";
export { type Bounds, type Store, type StoredObject, type Stores, TooLongError, objectName } from "./stores.js";
export {
  type CreateTaskParameters,
  type CreateTaskReturnType,
  type CreateTasksParameters,
  type CreateTasksReturnType,
  type EstimateTaskParameters,
  type GetTaskParameters,
  type Kind,
  type Redundancy,
  type TaskEstimate,
  TaskKind,
  type TaskRequest,
  cancelTask,
  createTask,
  createTasks,
  estimateTask,
  expireQueuedTask,
  expireTask,
  getTask,
  settleTask,
  specOf,
  validateTask,
  withdrawCredit,
} from "./tasks.js";
export type { ArgumentsOf, MusterEvent, Refusal, TaskSpec } from "./types.js";
export { type WatchEventsParameters, watchEvents, watchNode, watchTasks } from "./wait.js";
