/**
 * A network for tests: a development node with Muster deployed, and nodes that answer, are slow or cheat on demand. No Docker; all it
 * needs is the binary of `muster-devnode`. Works in any test runner on Node.js.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { copyFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { type Server, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Account,
  type Address,
  BaseError,
  type Chain,
  type Client,
  ContractFunctionRevertedError,
  type Hex,
  type PublicActions,
  type Transport,
  type WalletActions,
  bytesToHex,
  concatHex,
  createClient,
  defineChain,
  formatLog,
  http,
  numberToHex,
  parseEther,
  publicActions,
  sha256,
  sliceHex,
  stringToBytes,
  walletActions,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { readContract, simulateContract, waitForTransactionReceipt, writeContract } from "viem/actions";
import { type MusterActions, musterActions } from "./decorator.js";
import { decode } from "./events.js";
import { musterAbi } from "./generated/abi.js";
import { groupFee as GROUP_FEE, minStake as MIN_STAKE, sampleWindow } from "./generated/numbers.js";
import { musterParameters } from "./generated/parameters.js";
import { modelId } from "./names.js";
import { type Store, objectName } from "./results.js";
import { commitmentOf, saltOf, sealResult } from "./seal.js";
import type { TaskSpec } from "./types.js";

/** What a node does with its tasks. */
export type Behaviour =
  /** It answers at once. */
  | "answers"
  /** It answers after its `delay`. */
  | "slow"
  /** It answers with another result than it should. */
  | "cheats"
  /** It lets every deadline pass. */
  | "silent"
  /** It reports that it cannot run the task. */
  | "fails"
  /** It commits, and never reveals. */
  | "withholds";

/** A node to begin with. */
export interface TestNodeOptions {
  /** Name of its GPU, NVIDIA L40 if left out. */
  gpu?: string | undefined;
  /** In GiB, 48 if left out. */
  vram?: number | undefined;
  /** Models that it holds, by their names or ids. */
  models?: readonly (string | bigint)[] | undefined;
  /** In wei, the least one if left out. */
  stake?: bigint | undefined;
  /** What it does, until `behave` says otherwise; `answers` if left out. */
  behaviour?: Behaviour | undefined;
  /** Milliseconds before a slow node answers, 1,000 if left out. */
  delay?: number | undefined;
}

/** A node of the network. */
export interface TestNode {
  /** Its number. */
  readonly number: number;
  /** Its operator. */
  readonly account: Account;
  /** Its GPU group. */
  readonly group: number;
  /** What it does from now on, with the task it has as well. */
  behave(behaviour: Behaviour, delay?: number): void;
}

/** Names of parameters. */
export type ParameterName = (typeof musterParameters)[number]["name"];

/** How to start a network. */
export interface NetworkOptions {
  /** Its nodes; three that answer if left out. */
  nodes?: readonly TestNodeOptions[] | undefined;
  /** Parameters that are to differ from their defaults. */
  parameters?: Partial<Record<ParameterName, bigint>> | undefined;
  /** Whether the network does what somebody has to do on a quiet chain: draws, validations, judgements, timeouts. True if left out. */
  drive?: boolean | undefined;
  /** What the right result of a task is; a text that names the input's digest if left out. */
  run?: ((spec: TaskSpec) => Uint8Array) | undefined;
  /** The binary; if left out, what the environment variable MUSTER_DEVNODE names, else `muster-devnode` of the PATH. */
  devnode?: string | undefined;
  /** Told of what nodes were refused and nobody expected; printed if left out. */
  onError?: ((error: unknown) => void) | undefined;
}

/** A client with viem's public and wallet actions, and Muster's, of a funded account. */
export type TestClient = Client<Transport, Chain, Account> &
  PublicActions<Transport, Chain, Account> &
  WalletActions<Chain, Account> &
  MusterActions;

/** A running network. */
export interface TestNetwork {
  /** The development node's URL. */
  readonly url: string;
  readonly chain: Chain;
  /** Muster's address. */
  readonly address: Address;
  /** An application's client. */
  readonly client: TestClient;
  readonly nodes: readonly TestNode[];
  /** Where nodes put their results; `storeUrl` serves the same by HTTP. */
  readonly store: Store;
  readonly storeUrl: string;
  /** The client of another funded account. */
  newClient(): Promise<TestClient>;
  /** Lets time pass on the chain. */
  increaseTime(seconds: number): Promise<void>;
  /** Makes blocks. */
  mine(blocks?: number): Promise<void>;
  /** Changes a parameter as the owner; one whose change takes time has it pass. */
  setParameter(name: ParameterName, value: bigint): Promise<void>;
  /** Takes an object out of the store, or puts another in its place. */
  tamper(name: string, bytes?: Uint8Array): void;
  /** Ends it and removes its files. */
  stop(): Promise<void>;
}

/** Owns the contract: the public key of every nitro development chain, worth nothing anywhere else. */
const OWNER = "0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659";
/** Milliseconds between looks at the chain. */
const TICK = 25;
/** What every account begins with. */
const FUNDS = parseEther("1000000");
/** The chain with Muster on it, as the package brings it. */
const STATE = new URL("../state/", import.meta.url);

interface Job {
  id: bigint;
  /** The place of its validation group; 0 while it has none. */
  group: number;
  /** When it began, by the machine's clock. */
  since: number;
}

interface Commitment extends Job {
  kind: number;
  value: Hex;
  salt: Hex;
  /** The block whose hash decides whether it is validated; 0 in a group. */
  lotBlock: bigint;
}

interface Node extends TestNode {
  readonly account: ReturnType<typeof privateKeyToAccount>;
  behaviour: Behaviour;
  delay: number;
  job: Job | undefined;
  open: Commitment[];
}

async function launch(binary: string, state: string): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(binary, ["--port", "0", "--state", state], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  const url = await new Promise<string>((resolve, reject) => {
    const hear = (data: Buffer) => {
      said += data;
      const found = /Listening on (http:\S+?)[\s,]/.exec(said);
      if (found) resolve(found[1]!);
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("error", (cause) =>
      reject(new Error(`${binary} could not be started: build it (docs/devnode.md), and name it in MUSTER_DEVNODE`, { cause })),
    );
    child.on("exit", (code) => reject(new Error(`${binary} ended with ${code}:\n${said}`)));
  });
  return { child, url };
}

/** Starts a network. It takes about a second. */
export async function startNetwork(options: NetworkOptions = {}): Promise<TestNetwork> {
  const { parameters = {}, drive = true, devnode = process.env.MUSTER_DEVNODE ?? "muster-devnode" } = options;
  const run = options.run ?? (({ inputDigest }: TaskSpec) => stringToBytes(`result of ${inputDigest}`));
  const onError = options.onError ?? ((error) => console.error(error));
  const directory = await mkdtemp(join(tmpdir(), "muster-"));
  const stops: (() => unknown)[] = [() => rm(directory, { recursive: true, force: true })];
  const stop = async () => {
    for (const end of stops.splice(0).reverse()) await end();
  };
  try {
    const { address } = JSON.parse(await readFile(new URL("muster.json", STATE), "utf8")) as { address: Address };
    await copyFile(new URL("chain.json", STATE), join(directory, "chain"));
    const { child, url } = await launch(devnode, join(directory, "chain"));
    // Also if the test ends without stopping it.
    const kill = () => void child.kill();
    process.once("exit", kill);
    stops.push(async () => {
      process.off("exit", kill);
      if (child.exitCode !== null) return;
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill();
      await ended;
    });
    const chain = defineChain({
      id: 412346,
      name: "muster-devnode",
      nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
      rpcUrls: { default: { http: [url] } },
      contracts: { multicall3: { address: "0xcA11bde05977b3631167028862bE2a173976CA11" } },
    });
    const clientOf = (account: Account) =>
      createClient({ account, chain, transport: http(url), pollingInterval: TICK, batch: { multicall: true } })
        .extend(publicActions)
        .extend(walletActions)
        .extend(musterActions({ address })) as unknown as TestClient;
    const owner = clientOf(privateKeyToAccount(OWNER));
    const rpc = (method: string, params: unknown[]) => owner.request({ method, params } as never);
    const muster = { address, abi: musterAbi } as const;
    const send = async (account: Account, functionName: string, args: unknown[], value?: bigint) => {
      const call = { ...muster, account, functionName, args, value } as never;
      const { result } = (await simulateContract(owner, call)) as { result: unknown };
      const hash = await writeContract(owner, { ...(call as object), chain, gas: 5_000_000n } as never);
      const receipt = await waitForTransactionReceipt(owner, { hash });
      if (receipt.status !== "success") throw new Error(`${functionName} of ${account.address} failed in block ${receipt.blockNumber}`);
      return result;
    };
    const fund = async () => {
      const account = privateKeyToAccount(generatePrivateKey());
      await rpc("anvil_setBalance", [account.address, numberToHex(FUNDS)]);
      return account;
    };
    const mine = async (blocks = 1) => void (await rpc("anvil_mine", [numberToHex(blocks)]));
    const increaseTime = async (seconds: number) => {
      await rpc("evm_increaseTime", [seconds]);
      await mine();
    };
    const setParameter = async (name: ParameterName, value: bigint) => {
      const { number, delayed } = musterParameters.find((parameter) => parameter.name === name)!;
      if (!delayed) return void (await send(owner.account, "setParameter", [number, value]));
      await send(owner.account, "proposeParameter", [number, value]);
      const [delay] = await readContract(owner, { ...muster, functionName: "upgrades" });
      await increaseTime(delay);
      await send(owner.account, "acceptParameter", [number]);
    };
    for (const [name, value] of Object.entries(parameters)) await setParameter(name as ParameterName, value);

    // Where results are.
    const objects = new Map<string, Uint8Array>();
    const server: Server = createServer((request, response) => {
      const bytes = objects.get((request.url ?? "").slice(1));
      response.writeHead(bytes ? 200 : 404, { "access-control-allow-origin": "*" }).end(bytes);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    stops.push(() => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    });
    const storeUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const store: Store = { name: "the network's store", get: async (object) => objects.get(objectName(object)) ?? null };

    // Nodes join, and their GPU groups are listed, so that all their tasks can be validated.
    const nodes: Node[] = [];
    const { value: least } = await owner.getParameter({ which: MIN_STAKE });
    const { value: groupFee } = await owner.getParameter({ which: GROUP_FEE });
    const { granule } = await owner.getOverview();
    const known = new Set<string>();
    for (const { gpu = "NVIDIA L40", vram = 48, models = [], stake, behaviour = "answers", delay = 1_000 } of options.nodes ?? [
      {},
      {},
      {},
    ]) {
      const account = await fund();
      // The first with a GPU pays for its name.
      const extra = known.has(gpu) ? 0n : groupFee * granule;
      known.add(gpu);
      const ids = models.map((model) => (typeof model === "string" ? modelId(model) : model));
      const number = (await send(account, "join", [gpu, vram, ids], (stake ?? least * granule) + extra)) as number;
      const group = await owner.getGpuGroup({ name: gpu, vram });
      if (!(await owner.getGpuListed({ group }))) await send(owner.account, "listGpuGroup", [group, true]);
      const behave = (next: Behaviour, after?: number) => {
        node.behaviour = next;
        node.delay = after ?? node.delay;
      };
      const node: Node = { number, account, group, behaviour, delay, job: undefined, open: [], behave };
      nodes.push(node);
    }

    // What nodes do, one step after the other.
    const specs = new Map<bigint, TaskSpec>();
    const due = new Map<bigint, { node: number; deadline: bigint }>();
    const groups = new Map<bigint, number>();
    let cursor = 0n;
    const over = (id: bigint) => {
      due.delete(id);
      groups.delete(id);
      for (const node of nodes) {
        if (node.job?.id === id) node.job = undefined;
        node.open = node.open.filter((commitment) => commitment.id !== id);
      }
    };
    const hear = async (head: bigint) => {
      const blocks = { fromBlock: numberToHex(cursor), toBlock: numberToHex(head) };
      const logs = await owner.request({ method: "eth_getLogs", params: [{ address, ...blocks }] });
      for (const { eventName, args, blockNumber } of decode(logs.map((log) => formatLog(log)))) {
        switch (eventName) {
          case "TaskCreated":
            specs.set(args.id, args.spec);
            break;
          case "TaskStarted":
          case "MemberStarted": {
            const node = nodes.find(({ number }) => number === args.node);
            const group = eventName === "MemberStarted" ? args.group : 0;
            if (node) node.job = { id: args.id, group, since: Date.now() };
            if (!group) due.set(args.id, { node: args.node, deadline: args.deadline });
            break;
          }
          case "AnswerCommitted":
            if (!args.group) {
              // Until then it has to be revealed, if it is not sampled.
              const { timestamp } = await owner.getBlock({ blockNumber });
              const { value } = await owner.getParameter({ which: sampleWindow });
              due.set(args.id, { node: args.node, deadline: timestamp + value });
            }
            for (const { open } of nodes.filter(({ number }) => number === args.node)) {
              for (const commitment of open) if (commitment.id === args.id) commitment.lotBlock = args.block;
            }
            break;
          case "TaskSampled":
            due.delete(args.id);
            break;
          case "GroupFormed":
            groups.set(args.id, args.group);
            for (const { open } of nodes) for (const commitment of open) if (commitment.id === args.id) commitment.group = args.group;
            break;
          case "TaskSucceeded":
          case "TaskErrorReported":
          case "TaskAborted":
          case "GroupSettled":
            over(args.id);
        }
      }
      cursor = head + 1n;
    };
    /** Refusals that only say that something else came first. */
    const EXPECTED = [
      "DeadlinePassed",
      "TaskNotRunning",
      "Sampled",
      "NotSampled",
      "HashUnknown",
      "NotCommitted",
      "NotOpen",
      "RevealsOpen",
      "DrawsDue",
      "GroupUnknown",
      "DeadlineNotPassed",
      "NothingToCommit",
    ];
    /** Tries a call; gives the refusal's name, or nothing. */
    const attempt = async (account: Account, name: string, args: unknown[]): Promise<string | undefined> => {
      try {
        await send(account, name, args);
        return undefined;
      } catch (error) {
        const reverted = error instanceof BaseError && error.walk((cause) => cause instanceof ContractFunctionRevertedError);
        const refusal = reverted ? (reverted as ContractFunctionRevertedError).data?.errorName : undefined;
        if (!refusal || !EXPECTED.includes(refusal)) throw error;
        return refusal;
      }
    };
    const work = async (node: Node) => {
      const { job, behaviour } = node;
      if (!job || behaviour === "silent" || Date.now() < job.since + (behaviour === "slow" ? node.delay : 0)) return;
      const { id, group } = job;
      const spec = specs.get(id)!;
      node.job = undefined;
      const right = run(spec);
      const result = behaviour === "cheats" ? stringToBytes(`not a result, by node ${node.number}`) : right;
      const digest = sha256(result);
      const fails = behaviour === "fails";
      if (spec.redundancy === 0) {
        if (!fails) objects.set(objectName({ digest }), result);
        await attempt(node.account, fails ? "reportError" : "submit", fails ? [id, 1] : [id, digest]);
        return;
      }
      const salt = bytesToHex(saltOf(crypto.getRandomValues(new Uint8Array(16)), result));
      const sealed = await sealResult(result, { id, node: node.number, salt });
      if (!fails) objects.set(sealed.name, sealed.bytes);
      const kind = Number(fails);
      const value = fails ? numberToHex(1, { size: 32 }) : spec.kind === 0 ? hashesOf(digest, spec.units) : digest;
      const commitment = commitmentOf({ id, node: node.number, kind, value, salt });
      node.open.push({ ...job, group, kind, value, salt, lotBlock: 0n });
      await attempt(node.account, "commit", [id, commitment]);
    };
    const reveal = async (node: Node, head: bigint) => {
      if (node.behaviour === "withholds") return;
      for (const { id, group, kind, value, salt, lotBlock } of [...node.open]) {
        if (!group && (lotBlock === 0n || head <= lotBlock)) continue;
        const refusal = await attempt(node.account, "reveal", [id, group, node.number, kind, value, salt]);
        if (!refusal) node.open = node.open.filter((commitment) => commitment.id !== id);
      }
    };
    /** What somebody has to do; gives whether anything waits for another block. */
    const keep = async (head: bigint): Promise<boolean> => {
      const page = { from: 0, count: 16 };
      const [pending, calls] = await Promise.all([owner.getPendingTasks(page), owner.getCalls(page)]);
      const drawn = pending.filter(({ drawBlock }) => drawBlock <= head).length;
      if (drawn) await send(owner.account, "dispatch", [drawn]);
      if (calls.some(({ drawBlock }) => drawBlock <= head)) await send(owner.account, "formGroup", []);
      let waits = pending.length > drawn || calls.length > 0;
      for (const { number, open } of nodes) {
        for (const { id, group, lotBlock } of open) {
          if (group || lotBlock === 0n || calls.some((call) => call.id === id)) continue;
          if (head > lotBlock) await attempt(owner.account, "validate", [id, number]);
          else waits = true;
        }
      }
      const { timestamp } = await owner.getBlock();
      for (const [id, { node, deadline }] of due) if (timestamp > deadline) await attempt(owner.account, "expire", [node, id]);
      for (const [id, place] of groups) {
        const { opens, closes, members } = await owner.getGroup({ place });
        for (const { node, stage, moment } of members) {
          if (stage === 2 && timestamp > moment) await attempt(owner.account, "expire", [node, id]);
        }
        const revealed = members.every(({ stage }) => stage !== 3);
        if (opens > 0n && (revealed || timestamp > closes)) await attempt(owner.account, "settle", [id, place]);
      }
      return waits;
    };
    let stopped = false;
    const loop = async () => {
      while (!stopped) {
        try {
          const head = await owner.getBlockNumber({ cacheTime: 0 });
          if (head >= cursor) await hear(head);
          for (const node of nodes) await work(node);
          for (const node of nodes) await reveal(node, head);
          if (drive && (await keep(head))) await mine();
        } catch (error) {
          if (!stopped) onError(error);
        }
        await new Promise((resolve) => setTimeout(resolve, TICK));
      }
    };
    const looping = loop();
    stops.push(async () => {
      stopped = true;
      await looping;
    });

    return {
      url,
      chain,
      address,
      client: clientOf(await fund()),
      nodes,
      store,
      storeUrl,
      newClient: async () => clientOf(await fund()),
      increaseTime,
      mine,
      setParameter,
      tamper: (name, bytes) => void (bytes ? objects.set(name, bytes) : objects.delete(name)),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Perceptual hashes where there are no images: parts of the digest, as many as images were asked for, and none of them 0. */
function hashesOf(digest: Hex, images: number): Hex {
  const parts = Array.from({ length: 4 }, (_, i): Hex => {
    const part = sliceHex(digest, 8 * i, 8 * i + 8);
    return i >= images ? numberToHex(0, { size: 8 }) : BigInt(part) === 0n ? numberToHex(1, { size: 8 }) : part;
  });
  return concatHex(parts);
}
