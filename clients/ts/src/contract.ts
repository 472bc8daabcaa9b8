/** The contract as types and as calls: arguments and results by their names, refusals as {@link RefusalError}. */
import {
  type AbiParameter,
  type AbiParameterToPrimitiveType,
  type Account,
  type Address,
  BaseError,
  type EIP1193RequestFn,
  type Hash,
  type Hex,
  type Prettify,
  type ReplacementReturnType,
  type TransactionReceipt,
  createClient,
  custom,
  keccak256,
} from "viem";
import {
  estimateContractGas,
  getChainId,
  getCode,
  getTransaction,
  getTransactionReceipt,
  multicall,
  readContract,
  simulateContract,
  waitForTransactionReceipt,
  writeContract,
} from "viem/actions";
import { assertCurrentChain, getAction } from "viem/utils";
import type { MusterClient, MusterParameters } from "./client.js";
import { patiently } from "./endpoint.js";
import {
  AccountRequiredError,
  NoMusterError,
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

/** A view's answer as {@link ViewResult} has it. */
function told(functionName: string, result: unknown): unknown {
  const { outputs } = functionOf(functionName);
  if (outputs.length === 1) return result;
  return Object.fromEntries(outputs.map(({ name }, i) => [name || "list", (result as unknown[])[i]]));
}

/** A call as viem takes it, its arguments by their names. */
const callOf = (address: Address, functionName: string, named: object) => {
  const args = functionOf(functionName).inputs.map((input) => (named as Record<string, unknown>)[input.name!]);
  return { abi: used, address, functionName, args };
};

/** An error of viem's as one of ours, where it is one. What gives nothing back, not even an empty word, is no Muster. */
async function explain(client: MusterClient, address: Address, error: unknown, functionName: string, named: object): Promise<unknown> {
  const isNothing = error instanceof BaseError && error.walk((cause) => (cause as Error).name === "ContractFunctionZeroDataError");
  return isNothing ? NoMusterError.of(client, address, error) : translate(error, functionName, named);
}

/** Asks a view, of the newest block unless `blockNumber` names an older one. */
export async function readMuster<name extends ViewName>(
  client: MusterClient,
  functionName: name,
  { address, deployedIn: _, blockNumber, ...named }: MusterParameters & { blockNumber?: bigint | undefined } & ArgumentsOf<name>,
): Promise<ViewResult<name>> {
  const call = { ...callOf(address, functionName, named), blockNumber } as never;
  try {
    return told(functionName, await patiently(client, () => getAction(client, readContract, "readContract")(call))) as never;
  } catch (error) {
    throw await explain(client, address, error, functionName, named);
  }
}

/** Where Multicall3 is on any chain that has it. */
const MULTICALL: Address = "0xcA11bde05977b3631167028862bE2a173976CA11";
/** Bytes of calls in one multicall: nodes bound the gas of a call. */
const BATCH = 32_768;

/** Asks views at once and of the same block, by one request where the chain has Multicall3. */
export async function readTogether<const names extends readonly ViewName[]>(
  client: MusterClient,
  address: Address,
  asked: { [i in keyof names]: readonly [names[i], ArgumentsOf<names[i]>] },
): Promise<{ [i in keyof names]: ViewResult<names[i]> }> {
  const calls = asked as readonly (readonly [ViewName, object])[];
  const contracts = calls.map(([name, named]) => callOf(address, name, named));
  const multicallAddress = client.chain?.contracts?.multicall3?.address ?? MULTICALL;
  const question = { contracts, allowFailure: false, multicallAddress, batchSize: BATCH } as never;
  const results = await patiently(client, () => getAction(client, multicall, "multicall")(question)).catch((error: unknown) => {
    if (passing(error)) throw error;
  });
  // Where there is none, or something was refused, each tells for itself.
  if (!results) return Promise.all(calls.map(([name, named]) => readMuster(client, name, { address, ...named } as never))) as never;
  return calls.map(([name], i) => told(name, (results as unknown[])[i])) as never;
}

/** A transaction that was mined and not refused. */
export interface Sent {
  /** Its hash; where the user raised its price in the wallet, not the one that it was sent with. */
  hash: Hash;
  /** Its receipt. */
  receipt: TransactionReceipt;
}

/** How long a receipt is asked for, in milliseconds, outages included: as long as viem asks without any. */
const PATIENCE = 180_000;
/** A receipt that comes within a few blocks is asked for as often as they come, in milliseconds; then viem asks, as often as it does. */
const [SOON, OFTEN] = [3_000, 100];

/** The receipt of a transaction that was sent, or of the same one sent again at another price. */
async function receiptOf(client: MusterClient, functionName: string, hash: Hash): Promise<TransactionReceipt> {
  const begun = Date.now();
  while (Date.now() - begun < SOON) {
    // Viem's own errors, of a receipt that is not there or of an endpoint that is away, come again below.
    const receipt = await getAction(client, getTransactionReceipt, "getTransactionReceipt")({ hash }).catch(() => undefined);
    if (receipt) return receipt;
    await new Promise((resolve) => setTimeout(resolve, OFTEN));
  }
  for (const end = begun + PATIENCE; ; ) {
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
 * no estimate knows. No call takes as much for what others have created or hold (docs/generated/gas.md), and what is not used is not paid.
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
    // What was refused with 429 no node has seen.
    return patiently(client, () => client.request(asked as never)) as never;
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
  const call = { ...callOf(address, functionName, named), account, value };
  const attempt = (at?: object) =>
    patiently(client, () => getAction(client, simulateContract, "simulateContract")({ ...call, ...at } as never));
  let sent: Hash;
  const { chain } = client;
  // All at once: each question takes as long as the way to the node. What is wrong is told in the order below.
  const early = <answer>(ask: () => Promise<answer>): Promise<answer> => {
    const asked = ask();
    asked.catch(() => undefined);
    return asked;
  };
  const tried = early(attempt);
  const estimated = early(() => patiently(client, () => getAction(client, estimateContractGas, "estimateContractGas")(call as never)));
  const code = functionOf(functionName).outputs.length ? undefined : early(() => patiently(client, () => getAction(client, getCode, "getCode")({ address })));
  try {
    // What is signed for another chain than the node's it refuses, without saying which; and what a wallet is asked it may send there.
    if (chain) assertCurrentChain({ chain, currentChainId: await patiently(client, () => getAction(client, getChainId, "getChainId")({})) });
    await tried;
    // Where there is no code a call that gives nothing succeeds.
    if (code && !(await code)) {
      throw await NoMusterError.of(client, address);
    }
    const estimate = await estimated;
    // A fifth for what others change meanwhile of the call's own work.
    const gas = (estimate * 6n) / 5n + GAS_MARGIN * BigInt(draws);
    sent = await send(client, { ...call, gas, chain: chain ?? null } as never);
  } catch (error) {
    throw await explain(client, address, error, functionName, named);
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
