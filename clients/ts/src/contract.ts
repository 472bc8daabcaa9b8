/** The contract as types and as calls: arguments and results by their names, refusals as {@link RefusalError}. */
import {
  type AbiParameter,
  type AbiParameterToPrimitiveType,
  type Account,
  type Address,
  BaseError,
  type Hash,
  type Hex,
  type Prettify,
  type ReplacementReturnType,
  type TransactionReceipt,
  createClient,
  custom,
  keccak256,
  nonceManager,
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
import { again, patiently, sleep } from "./endpoint.js";
import {
  AccountRequiredError,
  NoMusterError,
  NotConfirmedError,
  RefusalError,
  ReplacedError,
  TransactionFailedError,
  misnumbered,
  passing,
  translate,
  unanswered,
} from "./errors.js";
import type { UsedCall, UsedView } from "./generated/compact.js";
import { functionOf, used } from "./interface.js";
import type { ArgumentsOf, FunctionOf, Named } from "./types.js";

/** The sender of a transaction. */
export interface SenderParameters {
  /** The client's own account if left out. */
  account?: Account | Address | undefined;
}

/** Names of the views. */
export type ViewName = UsedView;
/** Names of the calls that applications make. */
export type CallName = UsedCall;

/** A view's result: the value itself if there is one, else an object of all by their names. */
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

/** An error of viem's as one of ours, where it is one. An address that returns nothing, not even an empty word, has no Muster. */
async function explain(client: MusterClient, address: Address, error: unknown, functionName: string, named: object): Promise<unknown> {
  const isNothing = error instanceof BaseError && error.walk((cause) => (cause as Error).name === "ContractFunctionZeroDataError");
  return isNothing ? NoMusterError.of(client, address, error) : translate(error, functionName, named);
}

/** Calls a view on the newest block, or on that of `blockNumber`. */
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

/** The address of Multicall3 on any chain that has it. */
const MULTICALL: Address = "0xcA11bde05977b3631167028862bE2a173976CA11";
/** Bytes of calls in one multicall: nodes bound the gas of a call. */
const BATCH = 32_768;

/** Calls views concurrently on the same block, by one request where the chain has Multicall3. */
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
  // Without it, or after a refusal, each view is called by itself.
  if (!results) return Promise.all(calls.map(([name, named]) => readMuster(client, name, { address, ...named } as never))) as never;
  return calls.map(([name], i) => told(name, (results as unknown[])[i])) as never;
}

/** A successful transaction. */
export interface Sent {
  /** Its hash; where the user raised its price in the wallet, not the one that it was sent with. */
  hash: Hash;
  /** Its receipt. */
  receipt: TransactionReceipt;
}

/** How long a receipt is asked for, in milliseconds, including outages: as long as viem asks without any. */
const PATIENCE = 180_000;
/** Milliseconds in which a receipt is asked for about once a block; later viem asks, at its own interval. */
const [SOON, OFTEN] = [3_000, 100];

/** The receipt of a transaction, or of its replacement at another price. */
async function receiptOf(client: MusterClient, functionName: string, hash: Hash): Promise<TransactionReceipt> {
  const begun = Date.now();
  while (Date.now() - begun < SOON) {
    // viem's own errors about a missing receipt or an endpoint that is away are handled below.
    const receipt = await getAction(client, getTransactionReceipt, "getTransactionReceipt")({ hash }).catch(() => undefined);
    if (receipt) return receipt;
    await sleep(OFTEN);
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
    await sleep(client.pollingInterval);
  }
}

/**
 * Gas for each draw that a call may make, beyond the node's estimate: it may become due only in the transaction's own block, which
 * no estimate knows. No call takes as much for others' tasks (docs/generated/gas.md), and unused gas is not paid.
 */
const GAS_MARGIN = 1_000_000n;

/** Options of a call. */
export type SendParameters = MusterParameters &
  SenderParameters & {
    /** In wei. */
    value?: bigint | undefined;
    /** Draws that the call is for; by default 1, for the draw that any call makes for others. */
    draws?: number | undefined;
  };

/** Errors of wallets that were asked to send: asking again would open the wallet again, or send twice. */
export const handed = /*#__PURE__*/ new WeakSet<object>();

/** By account, the end of its last sending. */
const turns = new Map<Address, Promise<unknown>>();
/**
 * Sends a call, and knows its hash even if the answer is lost: a local key signs here, before any node gets the transaction. Each account sends one call
 * after another, because two at once would take the same nonce, and two equal ones then be one transaction, and one task.
 */
async function send(client: MusterClient, call: { account: Account | Address }): Promise<Hash> {
  const { account } = call;
  if (typeof account === "string" || account.type !== "local") {
    return getAction(client, writeContract, "writeContract")(call as never).catch((error: Error) => {
      handed.add(error);
      throw error;
    });
  }
  const request = async (asked: { method: string; params: [Hex] }) => {
    const hash = asked.method === "eth_sendRawTransaction" && keccak256(asked.params[0]);
    let lost: boolean | undefined;
    // A request refused with 429 has reached no node. A transport that repeats it would not tell that its first answer was lost.
    const ask = () => patiently(client, () => client.request(asked as never, hash ? { retryCount: 0 } : {}));
    return again(ask, (error) => ((lost ||= unanswered(error)), hash && passing(error))).catch(async (error: unknown) => {
      // After a lost answer a node refuses a transaction that it has, as known or for its nonce, while another one may lack it for a while. A gateway
      // may have sent it twice by itself. So it was not sent only if a node says that it has none: another one would be paid for, too.
      const look = () => patiently(client, () => getAction(client, getTransaction, "getTransaction")({ hash: hash as Hash }));
      const isNone = ({ name }: Error) => name === "TransactionNotFoundError";
      if (hash && (lost || !(await again(look, () => misnumbered(error)).then(() => false, isNone)))) return hash;
      throw error;
    });
  };
  // Actions that the client was extended with would bypass this transport. viem caches its knowledge of the node by the uid.
  const noting = createClient({ ...(client as object), transport: custom({ request: request as never }, { retryCount: 0 }) });
  noting.uid = client.uid;
  // A node that lags behind does not count the last transaction yet.
  const counted = { ...account, nonceManager: account.nonceManager ?? nonceManager };
  // A transaction refused for its nonce was not sent: something else sends for the account, too, or the chain was reorganised.
  const take = () => again(() => writeContract(noting, { ...call, account: counted } as never), misnumbered);
  const sending = (turns.get(account.address) ?? Promise.resolve()).then(take, take);
  turns.set(account.address, sending);
  return sending;
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
  // Concurrently: each question takes a round trip. Errors are thrown in the order below.
  const early = <answer>(ask: () => Promise<answer>): Promise<answer> => {
    const asked = ask();
    asked.catch(() => {});
    return asked;
  };
  // At `latest` the time is the newest block's: on a quiet chain a deadline that has passed would seem to be ahead. viem prepares at `latest`.
  const next = { blockTag: "pending" };
  const tried = early(() => attempt(next));
  const estimating = { ...call, ...next, prepare: false };
  const estimated = early(() => patiently(client, () => getAction(client, estimateContractGas, "estimateContractGas")(estimating as never)));
  const code = functionOf(functionName).outputs.length ? undefined : early(() => patiently(client, () => getAction(client, getCode, "getCode")({ address })));
  try {
    // A node refuses transactions signed for another chain without saying which it is; and a wallet may send them there.
    if (chain) assertCurrentChain({ chain, currentChainId: await patiently(client, () => getAction(client, getChainId, "getChainId")({})) });
    await tried;
    // Without code at the address, a call without results succeeds.
    if (code && !(await code)) {
      throw await NoMusterError.of(client, address);
    }
    const estimate = await estimated;
    // A fifth for changes of the call's own work by others meanwhile.
    const gas = (estimate * 6n) / 5n + GAS_MARGIN * BigInt(draws);
    sent = await send(client, { ...call, gas, chain: chain ?? null } as never);
  } catch (error) {
    throw await explain(client, address, error, functionName, named);
  }
  const receipt = await receiptOf(client, functionName, sent);
  const { status, transactionHash: hash, blockNumber } = receipt;
  if (status === "success") return { hash, receipt };
  // State after the block, not at the transaction, but nodes offer nothing closer.
  const refusal = await attempt({ blockNumber }).catch((error: unknown) => translate(error, functionName, named, hash));
  throw refusal instanceof RefusalError ? refusal : new TransactionFailedError(functionName, hash);
}

/** The most draws of one dispatch. */
export const DRAWS = 16;
/** The most rounds of draws made before a call, before the refusal is thrown: others' tasks may fall due faster than that. */
const CLEARINGS = 8;

/**
 * Sends a call after a trial, and waits until it is mined. If it is refused because draws are due (`DrawsDue`), makes these
 * first, by transactions of the same account. All errors after the sending have the transaction's `hash`.
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
