/** Errors: all extend viem's `BaseError`, so `walk`, `shortMessage` and `cause` work as in viem. */
import {
  type Address,
  BaseError,
  type Client,
  ContractFunctionRevertedError,
  type Hash,
  type Hex,
  UserRejectedRequestError,
  decodeErrorResult,
} from "viem";
import { getChainId } from "viem/actions";
import { getAction } from "viem/utils";
import { errors, used } from "./interface.js";
import type { Task } from "./life.js";
import type { Refusal } from "./types.js";

/** An error of this package. */
export class MusterError extends BaseError {
  override name = "MusterError";
  /**
   * Of `createTask` and `createTasks`: the keys for the results of private tasks, in the order of the requests. Such a task may be paid for, so keep them:
   * there is no other copy. Not enumerable, so that no log has them.
   */
  declare readonly identities?: readonly (string | undefined)[];
}

/** An impossible request, detected before anything was sent. */
export class RequestError extends MusterError {
  override name = "RequestError";
}

/** The address has no Muster, at least not on this chain. Nothing was sent. */
export class NoMusterError extends MusterError {
  override name = "NoMusterError";

  constructor(
    readonly address: Address,
    /** The chain that was asked; undefined if unknown. */
    readonly chainId: number | undefined,
    /** The expected chain, if the client has one. */
    readonly expected: number | undefined,
    cause?: Error,
  ) {
    const meant = expected !== undefined && expected !== chainId ? `; the client is for chain ${expected}` : "";
    super(`There is no Muster at ${address} on chain ${chainId}${meant}.`, { cause: cause! });
  }

  /** The error for a client, after a request for its chain. */
  static async of(client: Client, address: Address, cause?: Error): Promise<NoMusterError> {
    const id = await getAction(client, getChainId, "getChainId")({}).catch(() => undefined);
    return new NoMusterError(address, id, client.chain?.id, cause);
  }
}

/** The endpoint does not answer a necessary request, and `setting` may help, as the message explains. */
export class EndpointError extends MusterError {
  override name = "EndpointError";

  constructor(
    /** `blockRange` of the action, `deployedIn` beside the address, or the client's `transport`. */
    readonly setting: "blockRange" | "deployedIn" | "transport",
    message: string,
    cause: unknown,
  ) {
    super(message, { cause: cause as Error });
  }
}

/** An error of the contract as the interface declares it, with its values by their names; undefined if no call of this package can get it. */
export function refusalOf(data: Hex): Refusal | undefined {
  try {
    const { errorName, args } = decodeErrorResult({ abi: used, data });
    return named(errorName, args);
  } catch {
    return undefined;
  }
}

function named(name: string, args: readonly unknown[] | undefined): Refusal {
  const { inputs } = errors.find((error) => error.name === name)!;
  return { name, args: Object.fromEntries(inputs.map((input, i) => [input.name, args?.[i]])) } as Refusal;
}

/** An error's text. */
const said = ({ name, args }: Refusal): string =>
  `${errors.find((error) => error.name === name)!.sentence} (${Object.entries(args)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ")})`.replace(" ()", "");

/** The contract refused a call, with a reason. */
export class RefusalError extends MusterError {
  override name = "RefusalError";

  /** The error as the interface declares it, with its values by their names; narrow it by `refusal.name`. */
  readonly refusal: Refusal;
  /** For a refused task of a batch, the cause: `reason` of {@link refusal}. */
  readonly inner: Refusal | undefined;
  /** The call that was refused. */
  readonly functionName: string;
  /** Its arguments by their names. */
  readonly args: Record<string, unknown>;
  /** The revert data as it came. */
  readonly raw: Hex;

  constructor(
    cause: ContractFunctionRevertedError,
    functionName: string,
    args: Record<string, unknown>,
    /** The transaction, if the call was refused only as it was mined; undefined if nothing was sent. */
    readonly hash?: Hash | undefined,
  ) {
    const refusal = named(cause.data!.errorName, cause.data!.args);
    const inner = refusal.name === "RefusedInBatch" ? refusalOf(refusal.args.reason) : undefined;
    super(inner ? `Of the batch, place ${(refusal.args as { place: bigint }).place}: ${said(inner)}` : said(refusal), {
      cause,
      metaMessages: [`Muster refused ${functionName} with ${refusal.name}${inner ? `, ${inner.name}` : ""}.`],
    });
    this.refusal = refusal;
    this.inner = inner;
    this.functionName = functionName;
    this.args = args;
    this.raw = cause.raw!;
  }
}

/** The user declined in their wallet. */
export class UserRejectedError extends MusterError {
  override name = "UserRejectedError";

  constructor(
    cause: Error,
    readonly functionName: string,
  ) {
    super(`The user declined to send ${functionName}.`, { cause });
  }
}

/** The transaction was mined, and failed, although its trial succeeded, and without a reason from Muster. */
export class TransactionFailedError extends MusterError {
  override name = "TransactionFailedError";

  constructor(
    readonly functionName: string,
    readonly hash: Hash,
  ) {
    super(`${functionName} failed, though not when tried: ${hash}`);
  }
}

/** The transaction was sent, and its outcome is unknown: it may be mined already, or later, or never. Ask for its receipt. */
export class NotConfirmedError extends MusterError {
  override name = "NotConfirmedError";

  constructor(
    readonly functionName: string,
    readonly hash: Hash,
    cause: Error,
  ) {
    super(`${functionName} was sent, and its outcome is unknown: ${hash}`, { cause });
  }
}

/** The user replaced the transaction in the wallet, for instance to cancel it: the call did not happen. */
export class ReplacedError extends MusterError {
  override name = "ReplacedError";

  constructor(
    readonly functionName: string,
    readonly hash: Hash,
    /** The transaction that was mined. */
    readonly replacement: Hash,
  ) {
    super(`${functionName} was replaced in the wallet: ${hash} by ${replacement}`);
  }
}

/** The transaction was mined, and no event says that it created a task. */
export class NotCreatedError extends MusterError {
  override name = "NotCreatedError";

  constructor(readonly hash: Hash) {
    super(`No task was created by ${hash}`);
  }
}

/**
 * A task was created and is paid for, and then waiting for its draw failed. The task goes on: wait for it by its id. Only if `cause` is a
 * {@link TaskGoneError} it does not: that says where it is.
 */
export class NotPlacedError extends MusterError {
  override name = "NotPlacedError";

  readonly id: bigint;

  constructor(
    /** As it was created. */
    readonly task: Task,
    /** The transaction that created it. */
    readonly hash: Hash,
    cause: Error,
  ) {
    super(`Task ${task.id} was created, and waiting for its draw failed. ${cause instanceof TaskGoneError ? cause.shortMessage : "It goes on: wait for it by its id."}`, { cause });
    this.id = task.id;
  }
}

/** A call that sends a transaction has no account to send it from. */
export class AccountRequiredError extends MusterError {
  override name = "AccountRequiredError";

  constructor(readonly functionName: string) {
    super(`${functionName} needs an account, its own or the client's.`);
  }
}

/** There is no such task in the searched blocks. */
export class TaskNotFoundError extends MusterError {
  override name = "TaskNotFoundError";

  constructor(
    readonly id: bigint,
    readonly fromBlock: bigint,
    /** Whether the contract has created a task of this id, in other blocks or unknown to the endpoint: it may be paid for. */
    readonly exists = false,
  ) {
    super(`There is no task ${id} since block ${fromBlock}.${exists ? " The contract has created it: look from an earlier block, or give the client another transport." : ""}`);
  }
}

/** The error where an endpoint has no logs of a task that the contract has created. */
export const noLogs = (id: bigint, fromBlock: bigint) =>
  new EndpointError("transport", `The contract has created task ${id}, and the endpoint has no logs of it since block ${fromBlock}. Give the client another transport.`, undefined);

/**
 * A reorganisation has removed a task's creation. Its fee is the account's again, unless it was spent; but if there are `ids`, its transaction has
 * created it under one of them.
 */
export class TaskGoneError extends MusterError {
  override name = "TaskGoneError";

  readonly id: bigint;

  constructor(
    /** As it was. */
    readonly task: Task,
    /** The tasks that the same transaction has created in the reorganised chain. */
    readonly ids: readonly bigint[] = [],
  ) {
    super(
      `Task ${task.id} is gone: the chain was reorganised, and ${task.hash}, which created it, ${ids.length ? `has created ${ids.join(", ")} instead. Wait for that.` : "is not in it."}`,
    );
    this.id = task.id;
  }
}

/** A task has not reached the awaited state in time; it goes on, and can be waited for again by its id. */
export class WaitTimeoutError extends MusterError {
  override name = "WaitTimeoutError";

  constructor(
    readonly id: bigint,
    readonly timeout: number,
  ) {
    super(`Task ${id} did not come so far in ${timeout} ms. It goes on: wait again.`);
  }
}

/** The meaning of agents' error codes; others are their executors' own. */
const CODES = [
  "",
  "no node can run such a task: look at its input",
  "this node could not run it",
  "this node did not run it in time",
  "no store that the node reaches has the input: put it where your account's stores say",
  "the node could not reach a store that may have the input, or none took the result",
];

/** The outcome of a task without a result, in words. */
function outcomeOf(task: Task): string {
  const back = "refund" in task ? ` ${task.refund} wei of the fee are back as credit.` : "";
  switch (task.status) {
    case "failed":
      return `node ${task.node} reported that it cannot run it (code ${task.code}${CODES[task.code] ? `: ${CODES[task.code]}` : ""}).${back}`;
    case "undecided":
      return `it was validated, and no two of its nodes gave the same answer.${back}`;
    case "timedOut":
      return `node ${task.node} gave no answer in time.${back} Create it again.`;
    case "nodeSlashed":
      return `node ${task.node}, which ran it, was slashed out of the network for something else.${back} Create it again.`;
    case "evicted":
      return `others paid more, or as much before, in a full queue.${back} Create it again with a higher fee.`;
    case "expired":
      return `it was queued for too long, and no node could take it.${back}`;
    case "cancelled":
      return `its creator took it out of the queue.${back}`;
    default:
      return `it has not ended, it is ${task.status}. Wait for it.`;
  }
}

/** A task has no result to fetch: it has not ended, or not with an answer. */
export class NoResultError extends MusterError {
  override name = "NoResultError";

  readonly id: bigint;
  readonly status: string;

  constructor(readonly task: Task) {
    super(`Task ${task.id} has no result: ${outcomeOf(task)}`);
    this.id = task.id;
    this.status = task.status;
  }
}

/** The outcome of a request to one store about one object. */
export interface Attempt {
  /** The store's name. */
  store: string;
  /** The requested or stored object. */
  object: string;
  /** The node whose answer it is. */
  node?: number | undefined;
  /** The reason why it failed. */
  outcome: "missing" | "unreachable" | "corrupt" | "tooLong" | "readOnly";
  /** The error of the store or the decryption. */
  cause?: unknown;
}

const SAID = {
  missing: "does not have",
  unreachable: "was not reached for",
  corrupt: "has something else as",
  tooLong: "has too long",
  readOnly: "cannot be given",
};

/** The messages of all causes of an error. */
const reason = (cause: unknown): string => {
  const { message = `${cause}`, cause: inner } = cause as Error;
  return inner instanceof Error ? `${message}: ${reason(inner)}` : message;
};

/** An attempt in words. */
const told = ({ store, object, node, outcome, cause }: Attempt): string =>
  `${store} ${SAID[outcome]} ${object}${node === undefined ? "" : ` of node ${node}`}${cause ? `: ${reason(cause)}` : ""}`;

const causeOf = (attempts: readonly Attempt[], problem: Attempt["outcome"]): Error =>
  attempts.find(({ outcome, cause }) => outcome === problem && cause)?.cause as Error;

/** The reason why no store returned a result. */
export type ResultProblem = Exclude<Attempt["outcome"], "readOnly">;

/** For each problem its description, and advice for the user. */
const PROBLEMS: Record<ResultProblem, [string, string]> = {
  tooLong: ["is longer than the limit", "Raise `maxBytes`, if it may be so long."],
  corrupt: ["does not match the answer, where there is anything", "Name another store, or ask the node's operator for the bytes."],
  unreachable: ["could not be had: a store that may have it does not answer", "Ask again later: the answer stays the same."],
  missing: ["is in no store", "Name a store that has it, or ask the node's operator; nodes delete results after a while."],
};

/**
 * No store returned a task's result. `problem` is the first of these that applies:
 * - `tooLong`: an object exceeds `maxBytes`;
 * - `corrupt`: an object has the result's name, but does not match the answer;
 * - `unreachable`: a store that may have it does not answer;
 * - `missing`: all have answered, and none has it.
 */
export class ResultError extends MusterError {
  override name = "ResultError";

  readonly problem: ResultProblem;

  constructor(
    readonly id: bigint,
    readonly attempts: readonly Attempt[],
  ) {
    const problems = Object.keys(PROBLEMS) as ResultProblem[];
    const problem = problems.find((problem) => attempts.some(({ outcome }) => outcome === problem)) ?? "missing";
    const [what, remedy] = attempts.length ? PROBLEMS[problem] : ["has no known place: no store was named, and its nodes publish none", "Name a store: `stores`."];
    super(`The result of task ${id} ${what}. ${remedy}`, { cause: causeOf(attempts, problem), metaMessages: attempts.map(told) });
    this.problem = problem;
  }
}

/** No store took an input. Nothing was sent, and nothing is paid. */
export class StoreError extends MusterError {
  override name = "StoreError";

  constructor(readonly attempts: readonly Attempt[]) {
    super("No store took the input, so no task was created.", { cause: causeOf(attempts, "unreachable"), metaMessages: attempts.map(told) });
  }
}

/** An error of viem's as one of ours, if it is a refusal (of the transaction `hash`, if sent) or the user declined; else unchanged. */
export function translate(error: unknown, functionName: string, args: object, hash?: Hash): unknown {
  if (!(error instanceof BaseError) || error instanceof MusterError) return error;
  const declined = error.walk((cause) => cause instanceof UserRejectedRequestError);
  if (declined) return new UserRejectedError(error, functionName);
  const reverted = error.walk((cause) => cause instanceof ContractFunctionRevertedError) as ContractFunctionRevertedError | null;
  if (!errors.some(({ name }) => name === reverted?.data?.errorName)) return error;
  return new RefusalError(reverted!, functionName, args as Record<string, unknown>, hash);
}

/** Whether an error of viem's has such a cause. */
const has =
  (is: (cause: BaseError & { status?: number }) => boolean) =>
  (error: unknown): boolean =>
    error instanceof BaseError && error.walk((cause) => is(cause as BaseError)) !== null;
const isAmong = (one: RegExp, of = ({ name }: BaseError) => name) => has((cause) => one.test(of(cause)));
/** A node's words. */
const words = ({ details, message }: BaseError) => details ?? message;

/** Whether an error is none of viem's, and no node's answer, which has a code: a browser's WebSocket fails so. */
const isForeign = ({ name, cause }: BaseError) => name === "UnknownRpcError" && isNaN((cause as { code: number } | undefined)?.code!);
/** Whether a request failed with an unknown outcome. */
export const unanswered = /*#__PURE__*/ has((cause) => isForeign(cause) || /^(HttpReq|(Web)?Socket|Timeout)/.test(cause.name));

/** Whether such a failure may last: an HTTP status by which an endpoint refuses, or a WebSocket, which viem may not open again. */
export const lasting = /*#__PURE__*/ has((cause) => isForeign(cause) || [401, 403, 404].includes(cause.status!));

/** Whether a node refused a transaction for its nonce. */
export const misnumbered = /*#__PURE__*/ isAmong(/nonce too/i, words);

/** Whether a node was asked for a block that another one has and it lacks, still or again. */
export const behind = /*#__PURE__*/ isAmong(
  /(beyond|past|ahead of) (the )?(current |latest )*(head|block)|header not found|unknown block/i,
  words,
);

const passes = /*#__PURE__*/ isAmong(/^(LimitExceeded|InternalRpc|ResourceUnavailable|ProviderDis|BlockNotF|TransactionReceiptN)/);
/** Whether a failure may pass: the node was not reached, was overloaded, or lags behind another. */
export const passing = (error: unknown): boolean => unanswered(error) || passes(error) || behind(error);
