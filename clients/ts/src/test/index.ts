/**
 * A network for tests: a development node with Muster deployed, and nodes that answer, are slow or cheat on demand. Needs no Docker, only
 * the package `muster-devnode` beside this one. Works in any test runner on Node.js.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Account, type Address, type Chain, stringToBytes } from "viem";
import { groupFee as GROUP_FEE, minStake as MIN_STAKE } from "../generated/numbers.js";
import { modelId } from "../names.js";
import { newIdentity } from "../private.js";
import { type Store, objectName } from "../stores.js";
import { DevelopmentChain, type ParameterName, type TestClient, findDevnode } from "./chain.js";
import { type Behaviour, Operators, type Run } from "./operators.js";
import { pictureOf } from "./picture.js";
import { Streams } from "./streams.js";

export type { ParameterName, TestClient } from "./chain.js";
export type { Behaviour, Run } from "./operators.js";

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
  /** Its behaviour until a call of `behave`; `answers` if left out. */
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
  /** Sets its behaviour from now on, for its present task too. */
  behave(behaviour: Behaviour, delay?: number): void;
}

/** How to start a network. */
export interface NetworkOptions {
  /** Its nodes; three that answer if left out. */
  nodes?: readonly TestNodeOptions[] | undefined;
  /** Parameters with other values than their defaults. */
  parameters?: Partial<Record<ParameterName, bigint>> | undefined;
  /** Whether the network makes the calls that somebody must make on a quiet chain: draws, validations, judgements, timeouts. True if left out. */
  drive?: boolean | undefined;
  /** The right result of a task; if left out a picture (PNG) for Stable Diffusion, and else a text that names the input's digest. */
  run?: Run | undefined;
  /** Whether a node reports an error, as agents do, when no store has a task's input; it runs without one if left out. */
  needsInputs?: boolean | undefined;
  /** The binary; if left out, that of the environment variable MUSTER_DEVNODE, else of the package `muster-devnode`, of a checkout, or of the PATH. */
  devnode?: string | undefined;
  /** Gets unexpected refusals of nodes' calls; they are printed if left out. */
  onError?: ((error: unknown) => void) | undefined;
}

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
  /** The nodes' store, which they publish for their results and also look for inputs in first; `storeUrl` serves the same by HTTP, with PUT. */
  readonly store: Store;
  readonly storeUrl: string;
  /** The client of another funded account. */
  newClient(): Promise<TestClient>;
  /** Lets time pass on the chain. */
  increaseTime(seconds: number): Promise<void>;
  /** Makes blocks. */
  mine(blocks?: number): Promise<void>;
  /** Changes a parameter as the owner; for a delayed change, lets the delay pass. */
  setParameter(name: ParameterName, value: bigint): Promise<void>;
  /** Removes an object from the store, or replaces it by another. */
  tamper(name: string, bytes?: Uint8Array): void;
  /** Ends it and removes its files. */
  stop(): Promise<void>;
}

/** Starts a network. It takes about a second. */
export async function startNetwork(options: NetworkOptions = {}): Promise<TestNetwork> {
  const { nodes: wanted = [{}, {}, {}], parameters = {}, drive = true } = options;
  const { devnode = process.env.MUSTER_DEVNODE || (await findDevnode()), onError = (error) => console.error(error) } = options;
  const { run = ({ kind, inputDigest }) => (kind ? stringToBytes(`result of ${inputDigest}`) : pictureOf(inputDigest)), needsInputs = false } = options;
  const stops: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const end of stops.splice(0).reverse()) await end();
  };
  try {
    const chain = await DevelopmentChain.start(devnode);
    stops.push(() => chain.stop());
    for (const [name, value] of Object.entries(parameters)) await chain.setParameter(name as ParameterName, value);
    const objects = new Map<string, Uint8Array>();
    const streams = new Streams();
    const { storeUrl, close } = await serve(objects, streams);
    stops.push(close);
    const operators = new Operators(chain, run, objects, needsInputs, streams);
    await join(chain, wanted, operators, storeUrl);
    stops.push(await operators.start(drive, onError));
    return {
      url: chain.url,
      chain: chain.definition,
      address: chain.address,
      client: chain.clientOf(await chain.fund()),
      nodes: operators.nodes,
      store: {
        name: "the network's store",
        get: async (object) => objects.get(objectName(object)) ?? null,
        put: async (object, bytes) => void objects.set(objectName(object), bytes),
      },
      storeUrl,
      newClient: async () => chain.clientOf(await chain.fund()),
      increaseTime: (seconds) => chain.increaseTime(seconds),
      mine: (blocks) => chain.mine(blocks),
      setParameter: (name, value) => chain.setParameter(name, value),
      tamper: (name, bytes) => void (bytes ? objects.set(name, bytes) : objects.delete(name)),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Serves objects by HTTP, as a store does, to pages too, and streams answers as an agent does. */
async function serve(objects: Map<string, Uint8Array>, streams: Streams): Promise<{ storeUrl: string; close: () => Promise<unknown> }> {
  const open = { "access-control-allow-origin": "*", "access-control-allow-methods": "*", "access-control-allow-headers": "*" };
  const server = createServer(async (request, response) => {
    const name = (request.url ?? "").slice(1);
    const answer = (status: number, bytes?: Uint8Array) => response.writeHead(status, open).end(bytes);
    if (request.method === "OPTIONS") return answer(204);
    if (name.startsWith("stream/")) return streams.serve(request, response, open);
    if (request.method === "PUT") {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      objects.set(name, new Uint8Array(Buffer.concat(parts)));
      return answer(201);
    }
    const bytes = objects.get(name);
    return answer(bytes ? 200 : 404, bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { storeUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

/** Has nodes join and publish their stores and keys, and lists their GPU groups, so that all their tasks can be validated. */
async function join(chain: DevelopmentChain, wanted: readonly TestNodeOptions[], operators: Operators, storeUrl: string): Promise<void> {
  const { owner } = chain;
  const { value: least } = await owner.getParameter({ which: MIN_STAKE });
  const { value: groupFee } = await owner.getParameter({ which: GROUP_FEE });
  const { stakeUnit } = await owner.getOverview();
  const known = new Set<string>();
  for (const { gpu = "NVIDIA L40", vram = 48, models = [], stake, behaviour = "answers", delay = 1_000 } of wanted) {
    const account = await chain.fund();
    // The first with a GPU pays for its name.
    const extra = known.has(gpu) ? 0n : groupFee * stakeUnit;
    known.add(gpu);
    const ids = models.map((model) => (typeof model === "string" ? modelId(model) : model));
    const number = (await chain.send(account, "join", [gpu, vram, ids], (stake ?? least * stakeUnit) + extra)) as number;
    const group = await owner.getGpuGroup({ name: gpu, vram });
    if (!(await owner.getGpuListed({ group }))) await chain.send(owner.account, "listGpuGroup", [group, true]);
    const { identity, recipient } = await newIdentity();
    await chain.send(account, "setStores", [`${storeUrl} stream+${storeUrl}/stream age:${recipient}`]);
    operators.add(number, account, group, identity, behaviour, delay);
  }
}
