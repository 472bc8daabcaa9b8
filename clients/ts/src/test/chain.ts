/** The development node with Muster on it, under a test's control. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type Account,
  type Address,
  BaseError,
  type Chain,
  type Client,
  ContractFunctionRevertedError,
  type PublicActions,
  type Transport,
  type WalletActions,
  createClient,
  defineChain,
  http,
  numberToHex,
  parseEther,
  publicActions,
  walletActions,
  webSocket,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { readContract, simulateContract, waitForTransactionReceipt, writeContract } from "viem/actions";
import { type MusterActions, musterActions } from "../decorator.js";
import { musterAbi } from "../generated/abi.js";
import { musterParameters } from "../generated/parameters.js";

/** Names of parameters. */
export type ParameterName = (typeof musterParameters)[number]["name"];

/** A client with viem's public and wallet actions, and Muster's, of a funded account. */
export type TestClient = Client<Transport, Chain, Account> &
  PublicActions<Transport, Chain, Account> &
  WalletActions<Chain, Account> &
  MusterActions;

/** Owns the contract: the public key of every nitro development chain, worth nothing anywhere else. */
const OWNER = "0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659";
/** Milliseconds between looks at the chain. */
export const TICK = 25;
const BLOCKS_AT_ONCE = 1_000;
/** The initial balance of every account. */
const FUNDS = parseEther("1000000");
/** The chain with Muster on it, as the package brings it. */
const STATE = new URL("../../state/", import.meta.url);

/** The package with the node's program; a variable, so that no bundler looks for it. */
const PACKAGE = "muster-devnode";

/** The development node: of the package where that is installed, else of the checkout that this lies in, else of the PATH. */
export async function findDevnode(): Promise<string> {
  try {
    return ((await import(PACKAGE)) as { path(): string }).path();
  } catch (error) {
    if ((error as { code?: string }).code !== "ERR_MODULE_NOT_FOUND") throw error;
  }
  const built = fileURLToPath(new URL(`../../../../target/debug/${PACKAGE}`, import.meta.url));
  return existsSync(built) ? built : PACKAGE;
}

/** Runs a program until its standard input closes, so that it ends with its parent, even if that is killed. */
const WHILE_HELD = 'exec 3<&0; "$@" & program=$!; { cat <&3 >/dev/null; kill $program; } 2>/dev/null & wait $program';

/** Starts the binary on a chain in a file. */
async function launch(binary: string, state: string): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn("sh", ["-c", WHILE_HELD, "sh", binary, "--port", "0", "--state", state], { stdio: "pipe" });
  let said = "";
  const url = await new Promise<string>((resolve, reject) => {
    const hear = (data: Buffer) => {
      said += data;
      const found = /Listening on (http:\S+?)[\s,]/.exec(said);
      if (found) resolve(found[1]!);
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("error", reject);
    child.on("exit", (code) => {
      child.stdin.end();
      // A shell's statuses for a missing program, or a file that is none.
      const absent = code === 126 || code === 127;
      const what = absent ? "could not be started: install muster-devnode with npm, or build it and name it in MUSTER_DEVNODE" : `ended with ${code}`;
      reject(new Error(`${binary} ${what}:\n${said}`));
    });
  });
  for (const stream of [child.stdout, child.stderr]) stream.removeAllListeners("data").resume();
  return { child, url };
}

/** A running development node. */
export class DevelopmentChain {
  /** The chain as viem knows it. */
  readonly definition: Chain;
  /** A client of Muster's owner. */
  readonly owner: TestClient;
  /** The last call of each account: two at once would take the same nonce. */
  readonly #sent = new Map<Address, Promise<unknown>>();
  private constructor(
    private readonly child: ChildProcess,
    private readonly directory: string,
    readonly url: string,
    readonly address: Address,
  ) {
    this.definition = defineChain({
      id: 412346,
      name: "muster-devnode",
      nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
      rpcUrls: { default: { http: [url] } },
      contracts: { multicall3: { address: "0xcA11bde05977b3631167028862bE2a173976CA11" } },
    });
    this.owner = this.clientOf(privateKeyToAccount(OWNER));
  }

  /** Starts the binary on a copy of the chain that the package brings. */
  static async start(binary: string): Promise<DevelopmentChain> {
    const directory = await mkdtemp(join(tmpdir(), "muster-"));
    try {
      const { address } = JSON.parse(await readFile(new URL("muster.json", STATE), "utf8")) as { address: Address };
      await copyFile(new URL("chain.json", STATE), join(directory, "chain"));
      const { child, url } = await launch(binary, join(directory, "chain"));
      return new DevelopmentChain(child, directory, url, address);
    } catch (error) {
      await rm(directory, { recursive: true });
      throw error;
    }
  }

  /** Ends it and removes its files. */
  async stop(): Promise<void> {
    if (this.child.exitCode === null) {
      const ended = new Promise((resolve) => this.child.once("exit", resolve));
      this.child.stdin!.end();
      await ended;
    }
    await rm(this.directory, { recursive: true });
  }

  /** A client of an account. */
  clientOf(account: Account): TestClient {
    return createClient({
      account,
      chain: this.definition,
      transport: http(this.url),
      pollingInterval: TICK,
      batch: { multicall: true },
    })
      .extend(publicActions)
      .extend(walletActions)
      .extend(musterActions({ address: this.address })) as unknown as TestClient;
  }

  /** Calls a function at each new block, until the one that it returns is called. */
  async onBlock(heard: () => void): Promise<() => void> {
    const { transport } = createClient({ transport: webSocket(this.url.replace("http", "ws"), { keepAlive: false, reconnect: false }) });
    await transport.subscribe({ params: ["newHeads"], onData: heard });
    const socket = await transport.getRpcClient();
    return () => socket.close();
  }

  /** A new account with ether. */
  async fund(): Promise<ReturnType<typeof privateKeyToAccount>> {
    const account = privateKeyToAccount(generatePrivateKey());
    await this.#rpc("anvil_setBalance", [account.address, numberToHex(FUNDS)]);
    return account;
  }

  /** Makes blocks. */
  async mine(blocks = 1): Promise<void> {
    // A request that takes longer than the transport waits is sent again, and would make its blocks twice.
    for (let left = blocks; left > 0; left -= BLOCKS_AT_ONCE) await this.#rpc("anvil_mine", [numberToHex(Math.min(left, BLOCKS_AT_ONCE))]);
  }

  /** Lets time pass. */
  async increaseTime(seconds: number): Promise<void> {
    await this.#rpc("evm_increaseTime", [seconds]);
    await this.mine();
  }

  /** Changes a parameter as the owner; for a delayed change, lets the delay pass. */
  async setParameter(name: ParameterName, value: bigint): Promise<void> {
    const { number, delayed } = musterParameters.find((parameter) => parameter.name === name)!;
    if (!delayed) return void (await this.send(this.owner.account, "setParameter", [number, value]));
    await this.send(this.owner.account, "proposeParameter", [number, value]);
    const [delay] = await readContract(this.owner, { abi: musterAbi, address: this.address, functionName: "upgrades" });
    await this.increaseTime(delay);
    await this.send(this.owner.account, "acceptParameter", [number]);
  }

  /** Sends a call of Muster after a trial, once the account's earlier ones are mined, and returns its result. */
  send(account: Account, functionName: string, args: unknown[], value?: bigint): Promise<unknown> {
    const before = this.#sent.get(account.address) ?? Promise.resolve();
    const sent = before.then(() => this.#send(account, functionName, args, value));
    this.#sent.set(
      account.address,
      sent.catch(() => undefined),
    );
    return sent;
  }

  async #send(account: Account, functionName: string, args: unknown[], value?: bigint): Promise<unknown> {
    const call = { abi: musterAbi, address: this.address, account, functionName, args, value };
    const { result } = (await simulateContract(this.owner, call as never)) as { result: unknown };
    const hash = await writeContract(this.owner, { ...call, chain: this.definition, gas: 5_000_000n } as never);
    const receipt = await waitForTransactionReceipt(this.owner, { hash });
    if (receipt.status !== "success") throw new Error(`${functionName} of ${account.address} failed in block ${receipt.blockNumber}`);
    return result;
  }

  /** Sends a call that may be refused for these reasons; returns the reason, or nothing. */
  async attempt(account: Account, functionName: string, args: unknown[], expected: readonly string[]): Promise<string | undefined> {
    try {
      await this.send(account, functionName, args);
      return undefined;
    } catch (error) {
      const reverted = error instanceof BaseError && error.walk((cause) => cause instanceof ContractFunctionRevertedError);
      const refusal = reverted ? (reverted as ContractFunctionRevertedError).data?.errorName : undefined;
      if (!refusal || !expected.includes(refusal)) throw error;
      return refusal;
    }
  }

  #rpc(method: string, params: unknown[]): Promise<unknown> {
    return this.owner.request({ method, params } as never);
  }
}
