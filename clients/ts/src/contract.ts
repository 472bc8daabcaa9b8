/** The contract as types and as calls: arguments and results by their names, refusals as {@link RefusalError}. */
import {
  type AbiParameter,
  type AbiParameterToPrimitiveType,
  type Account,
  type Address,
  type Chain,
  type Client,
  type EIP1193RequestFn,
  type Hash,
  type Hex,
  type Prettify,
  type ReplacementReturnType,
  type TransactionReceipt,
  type Transport,
  createClient,
  custom,
  keccak256,
} from "viem";
import {
  estimateContractGas,
  getBlockNumber,
  getTransaction,
  readContract,
  simulateContract,
  waitForTransactionReceipt,
  writeContract,
} from "viem/actions";
import { getAction } from "viem/utils";
import {
  AccountRequiredError,
  NotConfirmedError,
  RefusalError,
  ReplacedError,
  TransactionFailedError,
  passing,
  translate,
  unanswered,
} from "./errors.js";
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
  /** Its hash; where the user raised its price in the wallet, not the one that it was sent with. */
  hash: Hash;
  /** Its receipt. */
  receipt: TransactionReceipt;
}

/** How long a receipt is asked for, in milliseconds, outages included: as long as viem asks without any. */
const PATIENCE = 180_000;

/** The receipt of a transaction that was sent, or of the same one sent again at another price. */
async function receiptOf(client: MusterClient, functionName: string, hash: Hash): Promise<TransactionReceipt> {
  for (const end = Date.now() + PATIENCE; ; ) {
    let other: Hash | undefined;
    const question = {
      hash,
      // viem takes 0 for no end.
      timeout: Math.max(end - Date.now(), 1),
      onReplaced: ({ reason, transaction }: ReplacementReturnType) => {
        if (reason !== "repriced") other = transaction.hash;
      },
    };
    const receipt = await getAction(client, waitForTransactionReceipt, "waitForTransactionReceipt")(question).catch((error: Error) => {
      if (!passing(error)) throw new NotConfirmedError(functionName, hash, error);
    });
    if (other) throw new ReplacedError(functionName, hash, other);
    if (receipt) return receipt;
    await new Promise((resolve) => setTimeout(resolve, client.pollingInterval));
  }
}

/**
 * Gas for each draw that a call may make, beyond what the node estimates: it may be due only in the block that the transaction comes into, which
 * no estimate knows. No call takes as much for what others have created or hold (docs/gas.md), and what is not used is not paid.
 */
const GAS_MARGIN = 1_000_000n;

/** How a call is sent. */
export type SendParameters = MusterParameters &
  SenderParameters & {
    /** In wei. */
    value?: bigint | undefined;
    /** Draws that the call is for; 1 if left out, for what any call does for others. */
    draws?: number | undefined;
  };

/** Sends a call, and knows its hash although the answer is lost: a key of one's own signs here, before anybody is asked to take the transaction. */
async function send(client: MusterClient, call: { account: Account | Address }): Promise<Hash> {
  const { account } = call;
  if (typeof account === "string" || account.type !== "local") return getAction(client, writeContract, "writeContract")(call as never);
  let hash: Hash | undefined;
  const request: EIP1193RequestFn = (asked) => {
    if (asked.method === "eth_sendRawTransaction") hash = keccak256((asked.params as [Hex])[0]);
    return client.request(asked as never) as never;
  };
  // Actions that the client was extended with would not ask by it. And viem keeps what it knows of the node by the uid.
  const bare = createClient({ ...(client as object), transport: custom({ request }, { retryCount: 0 }) });
  const noting = Object.assign(bare, { uid: client.uid });
  try {
    return await writeContract(noting, call as never);
  } catch (error) {
    // A transport that had no answer has asked again, and a node refuses what it has: as known, or for its nonce.
    const known = hash && (unanswered(error) || (await getAction(client, getTransaction, "getTransaction")({ hash }).catch(() => undefined)));
    if (hash && known) return hash;
    throw error;
  }
}

async function once<name extends CallName>(
  client: MusterClient,
  functionName: name,
  named: ArgumentsOf<name>,
  { address, account = client.account, value, draws = 1 }: SendParameters,
): Promise<Sent> {
  if (!account) throw new AccountRequiredError(functionName);
  const args = functionOf(functionName).inputs.map((input) => (named as Record<string, unknown>)[input.name!]);
  const call = { abi: used, address, functionName, args, account, value };
  const attempt = (at?: object) => getAction(client, simulateContract, "simulateContract")({ ...call, ...at } as never);
  let sent: Hash;
  try {
    await attempt();
    const estimate = await getAction(client, estimateContractGas, "estimateContractGas")(call as never);
    // A fifth for what others change meanwhile of the call's own work.
    const gas = (estimate * 6n) / 5n + GAS_MARGIN * BigInt(draws);
    sent = await send(client, { ...call, gas, chain: client.chain ?? null } as never);
  } catch (error) {
    throw translate(error, functionName, named);
  }
  const receipt = await receiptOf(client, functionName, sent);
  const { status, transactionHash: hash, blockNumber } = receipt;
  if (status === "success") return { hash, receipt };
  // The block's end is not the transaction's moment, but as near as a node can tell.
  const refusal = await attempt({ blockNumber }).catch((error: unknown) => translate(error, functionName, named, hash));
  throw refusal instanceof RefusalError ? refusal : new TransactionFailedError(functionName, hash);
}

/** Draws that one dispatch makes at most. */
export const DRAWS = 16;
/** So often draws that stand in a call's way are made first, before the refusal is told: others' tasks may fall due faster than that. */
const CLEARINGS = 8;

/**
 * Sends a call, having tried it first, and waits until it is mined. Where it is refused because of draws that are due (`DrawsDue`), these are
 * made first, by transactions of the same account. Whatever it throws once the transaction is sent has its `hash`.
 */
export async function sendMuster<name extends CallName>(
  client: MusterClient,
  functionName: name,
  named: ArgumentsOf<name>,
  parameters: SendParameters,
): Promise<Sent> {
  for (let clearings = CLEARINGS; ; clearings--) {
    try {
      return await once(client, functionName, named, parameters);
    } catch (error) {
      if (!clearings || !(error instanceof RefusalError) || error.refusal.name !== "DrawsDue") throw error;
      await once(client, "dispatch", { count: DRAWS }, { ...parameters, value: 0n, draws: DRAWS });
    }
  }
}
