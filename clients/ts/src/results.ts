/**
 * Results: how they are sealed, and how a store's bytes are checked.
 *
 * The chain only has digests. Bytes lie in stores under names derived from the chain's data: plain ones under their digest,
 * sealed ones (of nodes that commit to their answer first) under a name derived from the salt. docs/stores.md describes the
 * format.
 */
import { type Hex, concatBytes, hexToBytes, numberToBytes, sha256, stringToBytes } from "viem";
import type { MusterClient, MusterParameters } from "./client.js";
import { type Attempt, NoResultError, ResultError } from "./errors.js";
import type { Answer, EndedTask, Task } from "./life.js";
import { plainHex } from "./names.js";
import { storesOfNodes } from "./published.js";
import { isSealed } from "./seals.js";
import { type Bounds, type Place, type Store, type StoredObject, type Stores, firstOf, publishedStores, storesOf } from "./stores.js";
import { getTask } from "./tasks.js";
import { type Until as Reached, type WaitForTaskParameters as WaitParameters, waitForTask as follow } from "./wait.js";

// ---------------------------------------------------------------- sealing

/** Bytes of a salt that are secret; the others are of the result's digest. */
export const SECRET = 16;

/** The identity of a sealed result. */
export interface SealParameters {
  /** The task. */
  id: bigint;
  /** The node that answers it. */
  node: number;
  /** The commitment's salt, see `saltOf`. */
  salt: Hex | Uint8Array;
}

/** WebCrypto needs bytes in an ArrayBuffer of their own. */
export const own = (bytes: Uint8Array) => new Uint8Array(bytes);

/** Key and name of a sealed result: 64 bytes of HKDF-SHA-256 of the salt. */
export async function derive({ id, node, salt }: SealParameters): Promise<{ key: CryptoKey; name: string }> {
  const secret = typeof salt === "string" ? hexToBytes(salt) : salt;
  const info = concatBytes([stringToBytes("muster result 1"), numberToBytes(id, { size: 8 }), numberToBytes(node, { size: 4 })]);
  const base = await crypto.subtle.importKey("raw", own(secret), "HKDF", false, ["deriveBits"]);
  const hkdf = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(0), info: own(info) };
  const bits = new Uint8Array(await crypto.subtle.deriveBits(hkdf, base, 512));
  const key = await crypto.subtle.importKey("raw", bits.slice(0, 32), "AES-GCM", false, ["encrypt", "decrypt"]);
  return { key, name: plainHex(bits.slice(32)) };
}

/** A key is used for one result only, which its salt names: so the nonce need not differ. */
export const GCM = { name: "AES-GCM", iv: new Uint8Array(12) };

/**
 * Opens a sealed result; `identity` is necessary if it is sealed to its creator as well. Rejects if a seal is broken, or the result is not the one
 * that the salt names.
 */
export async function openResult(sealed: Uint8Array, { identity, ...whose }: SealParameters & { identity?: string | undefined }): Promise<Uint8Array> {
  const { key } = await derive(whose);
  const result = await openOwn(new Uint8Array(await crypto.subtle.decrypt(GCM, key, own(sealed))), identity);
  const named = plainHex(whose.salt).slice(2 * SECRET);
  if (plainHex(sha256(result)).slice(0, 2 * SECRET) !== named) throw new Error("the salt names another result");
  return result;
}

/** Opens bytes that are sealed to their creator; returns others unchanged. */
async function openOwn(bytes: Uint8Array, identity: string | undefined): Promise<Uint8Array> {
  if (!isSealed(bytes)) return bytes;
  if (!identity) throw new Error("it is sealed to its creator: `identity` opens it");
  const { openWith } = await import("./private.js");
  return openWith(bytes, identity);
}

// ---------------------------------------------------------------- getting

/** The stores to look for a result in, and how. */
export type RetrievalParameters = Bounds & {
  /** The stores asked first. */
  stores?: Stores | undefined;
  /** Whether to ask the stores that its nodes publish, or a filter of their URLs; true if left out. */
  published?: boolean | ((url: string) => boolean) | undefined;
  /** The stores asked last: those given to `musterActions`. */
  configured?: Stores | undefined;
  /** The key for the result of a private task, from {@link createTask}. */
  identity?: string | undefined;
  signal?: AbortSignal | undefined;
};

/** Parameters of {@link getResult}. */
export type GetResultParameters = MusterParameters &
  RetrievalParameters &
  (
    | {
        id: bigint;
        /** See `getTask`. */
        created?: Task | undefined;
        fromBlock?: bigint | undefined;
        blockRange?: bigint | undefined;
      }
    | {
        /** The task, if it is known already. */
        task: Task;
      }
  );

/** A result that matches the chain's answer. */
export interface Result {
  bytes: Uint8Array;
  /** SHA-256 of the bytes. */
  digest: Hex;
  /** The node that answered. */
  answer: Answer;
  /** The store that had it. */
  store: string;
  task: Task;
}

/** Whether a task's answers are perceptual hashes of its images, not the result's digest. */
export const isOfImages = ({ spec }: Task) => spec.kind === 0 && spec.redundancy !== 0;

/**
 * A task's result, checked by the answer: the digest, or, for perceptual hashes, the half digest in the salt. Asks the `stores`
 * that are named here, then those that its nodes publish, then the client's; each next one when the one before has failed or takes long.
 */
export async function getResult(
  client: MusterClient,
  { address, stores, published = true, configured, identity, signal, maxBytes, storeTimeout, ...which }: GetResultParameters,
): Promise<Result> {
  const task = "task" in which ? which.task : await getTask(client, { address, ...which });
  if (task.status !== "succeeded") throw new NoResultError(task);
  const { answers } = task;
  type Found = { bytes: Uint8Array; digest: Hex; answer: Answer };

  async function* places(): AsyncGenerator<Place<Found> | Attempt, undefined> {
    for (const answer of answers) yield* placesOf(answer, storesOf(stores));
    if (published) {
      const nodes = answers.map(({ node }) => node);
      const said = await storesOfNodes(client, address, nodes).catch((cause: unknown) => cause as Error);
      if (said instanceof Error) yield { store: "nodes' published stores", object: "their stores", outcome: "unreachable", cause: said };
      else
        for (const [i, answer] of answers.entries()) {
          yield* placesOf(answer, publishedStores(said[i]!, published));
        }
    }
    for (const answer of answers) yield* placesOf(answer, storesOf(configured));
  }
  async function* placesOf(answer: Answer, stores: readonly Store[]): AsyncGenerator<Place<Found>> {
    const { node, salt, value } = answer;
    for (const object of stores.length ? await objectsOf(task, answer) : []) {
      const check = async (stored: Uint8Array, storedDigest: Hex): Promise<Found> => {
        if ("digest" in object && storedDigest === value) return { bytes: stored, digest: value, answer };
        const bytes = "sealed" in object ? await openResult(stored, { id: task.id, node, salt: salt!, identity }) : await openOwn(stored, identity);
        const digest = sha256(bytes);
        if (digest !== value && !isOfImages(task)) throw new Error(`its digest is ${digest}`);
        return { bytes, digest, answer };
      };
      for (const store of stores) yield { store, object, node, check };
    }
  }
  const end = await firstOf(places(), { signal, maxBytes, storeTimeout });
  if ("attempts" in end) throw new ResultError(task.id, end.attempts);
  return { ...end.found, store: end.place.store.name, task };
}

/** The names under which a node's result can lie: sealed, if it committed to its answer first; plain, if its answer is the digest. */
async function objectsOf(task: Task, { node, value, salt }: Answer): Promise<StoredObject[]> {
  const sealed = salt ? [{ sealed: (await derive({ id: task.id, node, salt })).name }] : [];
  return isOfImages(task) ? sealed : [...sealed, { digest: value }];
}

// ---------------------------------------------------------------- waiting

/** How far to wait: also to its result. */
export type Until = Reached | "result";

/** The result of waiting. */
export type WaitForTaskReturnType<until extends Until> = until extends "result" ? Result : until extends "placed" ? Task : EndedTask;

/** Parameters of {@link waitForTask}. */
export type WaitForTaskParameters<until extends Until = "ended"> = Omit<WaitParameters, "until"> & {
  /** To its end if left out; until it is `placed`, so no longer Pending; or until there is its `result`, which is fetched as {@link getResult} does. */
  until?: until | undefined;
} & (until extends "result" ? RetrievalParameters : unknown);

/**
 * Waits for a task, by its id alone. Asks for its past events first, so it can be waited for again after a restart.
 * Concurrent waits of one client and Muster share their questions. Transport failures are waited out.
 */
export async function waitForTask<until extends Until = "ended">(
  client: MusterClient,
  { until = "ended" as until, ...parameters }: WaitForTaskParameters<until>,
): Promise<WaitForTaskReturnType<until>> {
  const reached = await follow(client, { ...(parameters as WaitParameters), until: until === "result" ? "ended" : until });
  if (until !== "result") return reached as never;
  const { address, stores, published, configured, identity, maxBytes, storeTimeout, signal } = parameters as MusterParameters & RetrievalParameters;
  return (await getResult(client, { address, task: reached, stores, published, configured, identity, maxBytes, storeTimeout, signal })) as never;
}
