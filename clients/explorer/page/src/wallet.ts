/** The reader's wallet, if there is one (EIP-6963), and calls of the contract: tried before they are sent, with their gas, or the contract's own words against them. */
import { musterAbi } from "muster-client/abi";
import { useEffect, useReducer } from "preact/hooks";
import {
  type Address, BaseError, ContractFunctionRevertedError, type EIP1193Provider, type Hash, type PublicClient, type ReplacementReason, type TransactionReceipt, createPublicClient, createWalletClient, custom, getAddress, http, numberToHex,
} from "viem";
import { config } from "./config";
import { setConnected } from "./connected";
import { money } from "./format";

/** A wallet that has announced itself. */
export interface Found {
  info: { uuid: string; name: string; icon: string; rdns: string };
  provider: EIP1193Provider;
}

export interface Wallet {
  found: Found[];
  /** The one that is connected, its account and its chain. */
  used: Found | undefined;
  account: Address | undefined;
  chainId: number | undefined;
  /** The contract's chain, once it is known. */
  network: number | undefined;
  error: string | undefined;
}

let wallet: Wallet = { found: [], used: undefined, account: undefined, chainId: undefined, network: undefined, error: undefined };
const listeners = new Set<() => void>();
function change(next: Partial<Wallet>): void {
  wallet = { ...wallet, ...next };
  setConnected(wallet.account);
  for (const listener of listeners) listener();
}

let isLooking = false;
/** Asks wallets to announce themselves: nothing is connected by that. */
function look(): void {
  if (!isLooking) {
    isLooking = true;
    addEventListener("eip6963:announceProvider", (event) => {
      const one = (event as CustomEvent<Found>).detail;
      if (!wallet.found.some(({ info }) => info.uuid === one.info.uuid)) change({ found: [...wallet.found, one] });
    });
  }
  dispatchEvent(new Event("eip6963:requestProvider"));
}

export function useWallet(): Wallet {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const listener = () => redraw(undefined as never);
    listeners.add(listener);
    look();
    return () => void listeners.delete(listener);
  }, []);
  return wallet;
}

const messageOf = (error: unknown): string => (error instanceof BaseError ? error.shortMessage : ((error as Error).message ?? String(error)));

export async function connect(one: Found): Promise<void> {
  try {
    const accounts = (await one.provider.request({ method: "eth_requestAccounts" })) as Address[];
    const chainId = Number(await one.provider.request({ method: "eth_chainId" }));
    one.provider.on?.("accountsChanged", (accounts) => wallet.used === one && change({ account: accounts[0] && getAddress(accounts[0]) }));
    one.provider.on?.("chainChanged", (chain) => wallet.used === one && change({ chainId: Number(chain) }));
    change({ used: one, account: accounts[0] && getAddress(accounts[0]), chainId, error: undefined });
  } catch (error) {
    return change({ error: `${one.info.name} did not connect: ${messageOf(error)}` });
  }
  await chainOfContract().catch((error: Error) => change({ error: error.message }));
}

export const disconnect = (): void => change({ used: undefined, account: undefined, chainId: undefined });

/** Has the wallet go to the network's chain. */
export async function switchChain(): Promise<void> {
  try {
    await wallet.used?.provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId: numberToHex(await chainOfContract()) }] });
    change({ chainId: Number(await wallet.used?.provider.request({ method: "eth_chainId" })), error: undefined });
  } catch (error) {
    change({ error: `The wallet stays on its chain: ${messageOf(error)}` });
  }
}

/** The page's own endpoint of the chain, if there is one. */
const endpoint = (): PublicClient | undefined => (config.rpc ? createPublicClient({ transport: http(config.rpc, { retryCount: 1, batch: true }) }) : undefined);

/** The id of the contract's chain: the endpoint is asked each time; the configuration counts alone only without an endpoint. */
async function chainOfContract(): Promise<number> {
  const asked = await endpoint()?.getChainId().catch((error: unknown) => {
    throw new Error(`The page's endpoint does not say which chain the contract is on: ${messageOf(error)}`);
  });
  const network = asked ?? config.chainId;
  if (!network) throw new Error("This page is configured with neither an RPC endpoint nor a chain id, so the contract's chain is not known.");
  if (config.chainId && network !== config.chainId) throw new Error(`This page is configured for chain ${config.chainId}, and its endpoint is on chain ${network}.`);
  if (network !== wallet.network) change({ network, error: undefined });
  return network;
}

/** Whether transactions would go to another chain than the contract's. */
export const isElsewhere = ({ used, chainId, network }: Wallet): boolean => used !== undefined && network !== undefined && chainId !== network;

/** The chain, by the page's own endpoint, else by the wallet; undefined where there is neither. */
export function chainClient(): PublicClient | undefined {
  return endpoint() ?? (wallet.used && !isElsewhere(wallet) ? createPublicClient({ transport: custom(wallet.used.provider) }) : undefined);
}

/** A call of the contract. */
export interface Call {
  functionName: string;
  args: readonly unknown[];
  /** In wei. */
  value?: bigint;
}

/** The price of a call. */
export interface Price {
  /** The chain's estimate, and the gas limit. */
  gas: bigint;
  limit: bigint;
  /** Wei for the gas. */
  cost: bigint;
}

/** The sender of trials without a wallet. */
const NOBODY: Address = "0x000000000000000000000000000000000000dEaD";
/** Gas beyond the estimate: draws of others that may fall due until it is mined; unused gas is not paid (docs/generated/gas.md). */
const MARGIN = 1_000_000n;

/** An error of the contract in its own words, which stand in abi/IMuster.sol. */
export function refusal(error: unknown): string {
  const reverted = error instanceof BaseError ? (error.walk((cause) => cause instanceof ContractFunctionRevertedError) as ContractFunctionRevertedError | null) : null;
  if (!reverted?.data) return messageOf(error);
  const { errorName, args = [] } = reverted.data;
  const inputs = musterAbi.find((item) => item.type === "error" && item.name === errorName)?.inputs ?? [];
  const values = inputs.map(({ name }, i) => `${name} ${said(name, args[i])}`).join(", ");
  return `${SENTENCES[errorName] ?? errorName}${values && ` (${values})`}`;
}
const WEI = /^(fee|least|most|stake|offered|needed|value|amount)$/i;
const said = (name: string, value: unknown): string => (typeof value === "bigint" && value > 10n ** 9n && WEI.test(name) ? money(value) : String(value));

/** Tries a call without sending it; throws with the words of the refusal. */
export async function prepare({ functionName, args, value }: Call): Promise<Price> {
  if (wallet.used) await chainOfContract();
  const client = chainClient();
  if (!client) throw new Error(isElsewhere(wallet) ? "The wallet is on another chain." : "Connect a wallet, or have the page configured with an RPC endpoint of the chain, to see the price.");
  const account = wallet.account ?? NOBODY;
  // At `latest` the time is the newest block's: on a quiet chain a deadline that has passed would seem to be ahead. viem prepares at `latest`.
  const call = { address: config.muster as Address, abi: musterAbi, functionName, args, account, value, blockTag: "pending" };
  try {
    await client.simulateContract(call as never);
    const [gas, price] = await Promise.all([client.estimateContractGas({ ...call, prepare: false } as never), client.getGasPrice()]);
    return { gas, limit: (gas * 6n) / 5n + MARGIN, cost: gas * price };
  } catch (error) {
    throw new Error(refusal(error));
  }
}

/** Has the wallet send an account's call, on the contract's chain only; resolves with the transaction's hash. */
export async function send({ functionName, args, value }: Call, { limit }: Price, account: Address): Promise<{ hash: Hash; provider: EIP1193Provider }> {
  const { used } = wallet;
  if (!used) throw new Error("No wallet is connected.");
  const { provider } = used;
  try {
    const id = await chainOfContract();
    // Asked anew: wallets change chains, and not all say so.
    const chainId = Number(await provider.request({ method: "eth_chainId" }));
    if (chainId !== wallet.chainId) change({ chainId });
    if (chainId !== id) throw new Error(`The wallet is on chain ${chainId}, and the contract on chain ${id}.`);
    // viem compares the wallet's chain with this one again; the transaction names it, so that a wallet that changes even now refuses.
    const chain = { id, name: config.chain || "the contract's", nativeCurrency: { name: config.symbol, symbol: config.symbol, decimals: 18 }, rpcUrls: { default: { http: [] } } };
    const named = { request: ({ method, params }: { method: string; params?: object[] }) => provider.request({ method, params: method.endsWith("_sendTransaction") ? [{ ...params![0], chainId: numberToHex(id) }] : params } as never) };
    const client = createWalletClient({ account, transport: custom(named) });
    const hash = await client.writeContract({ chain, address: config.muster as Address, abi: musterAbi, functionName, args, value, gas: limit } as never);
    return { hash, provider };
  } catch (error) {
    throw new Error(refusal(error));
  }
}

/** Waits until a sent transaction is mined, however often nobody can tell; throws if it failed, or another was mined in its place. */
export async function outcome({ hash, provider }: { hash: Hash; provider: EIP1193Provider }, onUnknown: () => void, signal: AbortSignal): Promise<TransactionReceipt> {
  const own = endpoint();
  const readers = [createPublicClient({ transport: custom(provider) }), ...(own ? [own] : [])];
  for (let turn = 0; ; turn++) {
    let replaced: ReplacementReason | undefined;
    // The wallet first: it knows its transaction before others do. Then in turns.
    const asked = readers[turn % readers.length]!.waitForTransactionReceipt({ hash, pollingInterval: turn ? 4_000 : 500, onReplaced: ({ reason }) => (replaced = reason) });
    const receipt = await asked.catch(() => undefined);
    signal.throwIfAborted();
    if (!receipt) {
      onUnknown();
      await new Promise((resolve) => setTimeout(resolve, 4_000));
      continue;
    }
    // With a higher price it is the same call.
    if (replaced && replaced !== "repriced") throw new Error("It was cancelled or replaced in the wallet.");
    if (receipt.status !== "success") throw new Error("It was mined, and failed: something had changed since it was tried.");
    return receipt;
  }
}
