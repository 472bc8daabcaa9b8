/** Errors: all extend viem's `BaseError`, so that `walk`, `shortMessage` and `cause` are as its own have them. */
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
}

/** What was asked for can't be: found before anything was sent. */
export class RequestError extends MusterError {
  override name = "RequestError";
}

/** What has an address is no Muster, at least not on this chain. Nothing was sent. */
export class NoMusterError extends MusterError {
  override name = "NoMusterError";

  constructor(
    readonly address: Address,
    /** The chain that was asked; undefined where it does not say. */
    readonly chainId: number | undefined,
    /** The chain that the client is meant for, where it says so. */
    readonly expected: number | undefined,
    cause?: Error,
  ) {
    const meant = expected !== undefined && expected !== chainId ? `; the client is for chain ${expected}` : "";
    super(`There is no Muster at ${address} on chain ${chainId}${meant}.`, { cause: cause! });
  }

  /** The error for a client, which is asked for its chain. */
  static async of(client: Client, address: Address, cause?: Error): Promise<NoMusterError> {
    const id = await getAction(client, getChainId, "getChainId")({}).catch(() => undefined);
    return new NoMusterError(address, id, client.chain?.id, cause);
  }
}

/** The endpoint does not answer what it has to be asked, and `setting` may help: what it is for stands in the message. */
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

/** An error of the contract as the interface declares it, with its values by their names; undefined where it is none that a call can meet. */
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

/** What an error says, in its own words. */
const said = ({ name, args }: Refusal): string =>
  `${errors.find((error) => error.name === name)!.sentence} (${Object.entries(args)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ")})`.replace(" ()", "");

/** The contract refused a call, and said why. */
export class RefusalError extends MusterError {
  override name = "RefusalError";

  /** The error as the interface declares it, with its values by their names: `refusal.name` tells its type apart. */
  readonly refusal: Refusal;
  /** Where one task of a batch was refused, why: `reason` of {@link refusal}. */
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
    /** The transaction, where the call was refused only as it was mined; undefined where nothing was sent. */
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

/** The user's wallet was asked, and he declined. */
export class UserRejectedError extends MusterError {
  override name = "UserRejectedError";

  constructor(
    cause: Error,
    readonly functionName: string,
  ) {
    super(`The user declined to send ${functionName}.`, { cause });
  }
}

/** The transaction was mined, and failed, although it had not when it was tried, and for no reason that Muster gives. */
export class TransactionFailedError extends MusterError {
  override name = "TransactionFailedError";

  constructor(
    readonly functionName: string,
    readonly hash: Hash,
  ) {
    super(`${functionName} failed, though not when tried: ${hash}`);
  }
}

/** The transaction was sent, and what came of it could not be learnt: it may be mined already, or later, or never. Ask for its receipt. */
export class NotConfirmedError extends MusterError {
  override name = "NotConfirmedError";

  constructor(
    readonly functionName: string,
    readonly hash: Hash,
    cause: Error,
  ) {
    super(`${functionName} was sent, and it is not known what came of it: ${hash}`, { cause });
  }
}

/** The user had his wallet send something else in place of the transaction, as cancelling it does: nothing came of the call. */
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

/** The transaction was mined, and Muster says of no task that it was created by it. */
export class NotCreatedError extends MusterError {
  override name = "NotCreatedError";

  constructor(readonly hash: Hash) {
    super(`No task was created by ${hash}`);
  }
}

/** A task was created and is paid for, and then waiting for its draw failed. It goes on: wait for it by its id. */
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
    super(`Task ${task.id} was created, and waiting for its draw failed. It goes on: wait for it by its id.`, { cause });
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

/** There is no such task in the blocks that were looked at. */
export class TaskNotFoundError extends MusterError {
  override name = "TaskNotFoundError";

  constructor(
    readonly id: bigint,
    readonly fromBlock: bigint,
  ) {
    super(`There is no task ${id} since block ${fromBlock}.`);
  }
}

/** A task was there, and the chain was reorganised: its creation was taken back. Its fee is the account's again, unless it was spent. */
export class TaskGoneError extends MusterError {
  override name = "TaskGoneError";

  readonly id: bigint;

  constructor(
    /** As it was. */
    readonly task: Task,
  ) {
    super(`Task ${task.id} is gone: the chain was reorganised, and ${task.hash}, which created it, is not in it.`);
    this.id = task.id;
  }
}

/** A task has not come to what was waited for in time; it goes on, and can be waited for again by its id. */
export class WaitTimeoutError extends MusterError {
  override name = "WaitTimeoutError";

  constructor(
    readonly id: bigint,
    readonly timeout: number,
  ) {
    super(`Task ${id} did not come so far in ${timeout} ms. It goes on: wait again.`);
  }
}

/** A task has no result that could be fetched: it has not ended, or not with an answer. */
export class NoResultError extends MusterError {
  override name = "NoResultError";

  constructor(
    readonly id: bigint,
    readonly status: string,
  ) {
    super(`Task ${id} has no result: it is ${status}.`);
  }
}

/** What asking one store for one answer came to. */
export interface Attempt {
  /** The store's name. */
  store: string;
  /** What was asked for. */
  object: string;
  /** The node whose answer it is. */
  node: number;
  /** Why it is of no use. */
  outcome: "missing" | "unreachable" | "corrupt";
  /** What the store or the decryption said. */
  cause?: unknown;
}

/** Why no store gave a result. */
export type ResultProblem = Attempt["outcome"];

/**
 * No store gave a task's result. `problem` is the worst that any of them had: `corrupt`, something is there under the result's name, but not
 * what was answered; `unreachable`, a store that may have it does not answer; `missing`, all have answered, and none has it.
 */
export class ResultError extends MusterError {
  override name = "ResultError";

  constructor(
    readonly problem: ResultProblem,
    readonly id: bigint,
    readonly attempts: readonly Attempt[],
  ) {
    super(`The result of task ${id} is ${problem}.`, {
      cause: attempts.find(({ outcome, cause }) => outcome === problem && cause)?.cause as Error,
      metaMessages: attempts.map(({ store, object, node, outcome }) => `${store}: ${object} of node ${node} is ${outcome}.`),
    });
  }
}

/** What viem threw, as one of ours where it is a refusal, of the transaction `hash` if it was sent, or a user's; else as it is. */
export function translate(error: unknown, functionName: string, args: object, hash?: Hash): unknown {
  if (!(error instanceof BaseError) || error instanceof MusterError) return error;
  const declined = error.walk((cause) => cause instanceof UserRejectedRequestError);
  if (declined) return new UserRejectedError(error, functionName);
  const reverted = error.walk((cause) => cause instanceof ContractFunctionRevertedError) as ContractFunctionRevertedError | null;
  if (!errors.some(({ name }) => name === reverted?.data?.errorName)) return error;
  return new RefusalError(reverted!, functionName, args as Record<string, unknown>, hash);
}

const isAmong =
  (names: RegExp) =>
  (error: unknown): boolean =>
    error instanceof BaseError && error.walk((cause) => names.test((cause as Error).name)) !== null;

/** Whether a request failed so that nobody knows what has come of it. */
export const unanswered = /*#__PURE__*/ isAmong(/^(HttpReq|WebSocketReq|SocketClosed|Timeout)/);

const BEHIND = /(beyond|past|ahead of) (the )?(current |latest )*(head|block)|header not found|unknown block/i;

/** Whether a node was asked for a block that another one has and it has not yet, or not any more. */
export const behind = (error: unknown): boolean =>
  error instanceof BaseError && error.walk((cause) => BEHIND.test((cause as BaseError).details ?? (cause as Error).message)) !== null;

const passes = /*#__PURE__*/ isAmong(
  /^(HttpReq|WebSocketReq|SocketClosed|Timeout|LimitExceeded|InternalRpc|ResourceUnavailable|ProviderDis|BlockNotF|TransactionReceiptN)/,
);
/** Whether a request failed in a way that the next one may not: the node was not reached, had too much to do, or lags behind another. */
export const passing = (error: unknown): boolean => passes(error) || behind(error);
