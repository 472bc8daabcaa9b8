/** The contract as types and as calls: arguments and results by their names, refusals as {@link RefusalError}. */
import type {
  AbiParameter,
  AbiParameterToPrimitiveType,
  Account,
  Address,
  Chain,
  Client,
  Hash,
  Hex,
  Prettify,
  TransactionReceipt,
  Transport,
} from "viem";
import {
  estimateContractGas,
  getBlockNumber,
  readContract,
  simulateContract,
  waitForTransactionReceipt,
  writeContract,
} from "viem/actions";
import { getAction } from "viem/utils";
import { AccountRequiredError, TransactionFailedError, translate } from "./errors.js";
import type { UsedCall, UsedView } from "./generated/compact.js";
import { functionOf, used } from "./interface.js";
import type { ArgumentsOf, FunctionOf, Named } from "./types.js";

/** Any client of viem; what sends transactions needs an account in it, or given with the call. */
export type MusterClient = Client<Transport, Chain | undefined, Account | undefined>;

/** Which Muster is meant. */
export interface MusterParameters {
  /** The router's address. */
  address: Address;
}

/** Who sends a transaction. */
export interface SenderParameters {
  /** The client's own account if left out. */
  account?: Account | Address | undefined;
}

/** Names of the views. */
export type ViewName = UsedView;
/** Names of the calls that applications make. */
export type CallName = UsedCall;

/** What a view gives: the value itself where it is one, else all of them by their names. */
export type ViewResult<name extends ViewName> = FunctionOf<name>["outputs"] extends readonly [infer only extends AbiParameter]
  ? AbiParameterToPrimitiveType<only>
  : Prettify<Named<FunctionOf<name>["outputs"]>>;

/** Asks a view, of the newest block unless `blockNumber` names an older one. */
export async function readMuster<name extends ViewName>(
  client: MusterClient,
  functionName: name,
  { address, blockNumber, ...named }: MusterParameters & { blockNumber?: bigint | undefined } & ArgumentsOf<name>,
): Promise<ViewResult<name>> {
  const { inputs, outputs } = functionOf(functionName);
  const args = inputs.map((input) => (named as Record<string, unknown>)[input.name!]);
  const call = { abi: used, address, functionName, args, blockNumber } as never;
  const result: unknown = await getAction(
    client,
    readContract,
    "readContract",
  )(call).catch((error: unknown) => {
    throw translate(error, functionName, named);
  });
  if (outputs.length === 1) return result as never;
  return Object.fromEntries(outputs.map(({ name }, i) => [name || "list", (result as unknown[])[i]])) as never;
}

/** The newest block's number, as the node has it now. */
export const newest = (client: MusterClient): Promise<bigint> => getAction(client, getBlockNumber, "getBlockNumber")({ cacheTime: 0 });

/** A transaction that was mined and not refused. */
export interface Sent {
  /** Its hash. */
  hash: Hash;
  /** Its receipt. */
  receipt: TransactionReceipt;
}

/** Sends a call, having tried it first, and waits until it is mined. `gas` is added to what the node estimates. */
export async function sendMuster<name extends CallName>(
  client: MusterClient,
  functionName: name,
  named: ArgumentsOf<name>,
  {
    address,
    account = client.account,
    value,
    gas,
  }: MusterParameters & SenderParameters & { value?: bigint | undefined; gas?: bigint | undefined },
): Promise<Sent> {
  if (!account) throw new AccountRequiredError(functionName);
  const args = functionOf(functionName).inputs.map((input) => (named as Record<string, unknown>)[input.name!]);
  const call = { abi: used, address, functionName, args, account, value };
  try {
    await getAction(client, simulateContract, "simulateContract")(call as never);
    const more = gas && { gas: gas + (await getAction(client, estimateContractGas, "estimateContractGas")(call as never)) };
    const request = { ...call, ...more, chain: client.chain ?? null } as never;
    const hash: Hex = await getAction(client, writeContract, "writeContract")(request);
    const receipt = await getAction(client, waitForTransactionReceipt, "waitForTransactionReceipt")({ hash });
    if (receipt.status !== "success") throw new TransactionFailedError(functionName, hash);
    return { hash, receipt };
  } catch (error) {
    throw translate(error, functionName, named);
  }
}
