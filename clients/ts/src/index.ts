/** Muster for applications, with viem. */
export {
  type CallName,
  type MusterClient,
  type MusterParameters,
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
  TaskGoneError,
  TaskNotFoundError,
  TransactionFailedError,
  UserRejectedError,
  WaitTimeoutError,
} from "./errors.js";
export { type BlockRange, type Concerning, type GetEventsParameters, type MusterEvent, getEvents } from "./events.js";
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
export { cidOf, digestOf, modelId } from "./names.js";
export * from "./reads.js";
export {
  type GetResultParameters,
  type HttpStoreOptions,
  type Result,
  type SealParameters,
  type Store,
  type StoredObject,
  getResult,
  httpStore,
  ipfsStore,
  objectName,
  openResult,
} from "./results.js";
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
export type { ArgumentsOf, Refusal, TaskSpec } from "./types.js";
export {
  type Until,
  type WaitForTaskParameters,
  type WatchEventsParameters,
  waitForTask,
  watchEvents,
  watchNode,
  watchTasks,
} from "./wait.js";
