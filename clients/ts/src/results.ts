/**
 * Results: where they are stored, how they are sealed, and how what a store gives is checked.
 *
 * The chain only sees digests. Bytes lie in stores under names that follow from what the chain says: plain ones under their digest,
 * sealed ones (of nodes that commit to their answer first) under a name that follows from the salt. The format is written down in
 * docs/applications.md.
 */
import { type Hex, concatBytes, hexToBytes, numberToBytes, sha256, stringToBytes } from "viem";
import type { MusterClient, MusterParameters } from "./contract.js";
import { type Attempt, NoResultError, ResultError } from "./errors.js";
import type { Answer, Task } from "./life.js";
import { cidOf, plainHex } from "./names.js";
import { getTask } from "./tasks.js";

// ---------------------------------------------------------------- stores

/** What a store is asked for: bytes by their digest, or a sealed result by its name. */
export type StoredObject = { digest: Hex } | { sealed: string };

/** Where bytes are. */
export interface Store {
  /** For messages. */
  name: string;
  /** The object, or null where there is none. Whatever it throws counts as the store being out of reach. */
  get(object: StoredObject, options: { signal?: AbortSignal | undefined }): Promise<Uint8Array | null>;
}

/** An object's name in stores that have names: 64 hexadecimal digits. */
export const objectName = (object: StoredObject): string => ("sealed" in object ? object.sealed : plainHex(object.digest));

/** How a store over HTTP is asked. */
export interface HttpStoreOptions {
  /** With every request, for instance an authorisation. */
  headers?: Record<string, string> | undefined;
  /** Milliseconds that a request may take, 30,000 if left out. */
  timeout?: number | undefined;
  /** More bytes than this are not read, 256 MiB if left out. */
  maxBytes?: number | undefined;
}

async function download(
  url: string,
  { headers, timeout = 30_000, maxBytes = 2 ** 28 }: HttpStoreOptions,
  signal: AbortSignal | undefined,
): Promise<Uint8Array | null> {
  const limit = AbortSignal.timeout(timeout);
  const both = signal ? AbortSignal.any([signal, limit]) : limit;
  const response = await fetch(url, { ...(headers && { headers }), signal: both });
  if (response.status === 404 || response.status === 410) return null;
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  const parts: Uint8Array[] = [];
  let length = 0;
  for (const reader = response.body!.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) return concatBytes(parts);
    length += value.length;
    if (length > maxBytes) {
      await reader.cancel();
      throw new Error(`${url} is longer than ${maxBytes} bytes`);
    }
    parts.push(value);
  }
}

/** Objects under a URL, each at its name: a web server, or a bucket that can be read by HTTP. */
export const httpStore = (url: string, options: HttpStoreOptions = {}): Store => ({
  name: url,
  get: (object, { signal }) => download(`${url.replace(/\/$/, "")}/${objectName(object)}`, options, signal),
});

/** An IPFS gateway, for what is stored under its digest; sealed results have no CID that the chain could tell. */
export const ipfsStore = (gateway: string, options: HttpStoreOptions = {}): Store => ({
  name: gateway,
  get: async (object, { signal }) =>
    "sealed" in object ? null : download(`${gateway.replace(/\/$/, "")}/ipfs/${cidOf(object.digest)}?format=raw`, options, signal),
});

// ---------------------------------------------------------------- sealing

/** Bytes of a salt that are secret; the others are of the result's digest. */
export const SECRET = 16;

/** Whose sealed result it is. */
export interface SealParameters {
  /** The task. */
  id: bigint;
  /** The node that answers it. */
  node: number;
  /** What its commitment is made with, see `saltOf`. */
  salt: Hex | Uint8Array;
}

/** WebCrypto wants bytes of an ArrayBuffer of their own. */
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

/** Opens a sealed result. Rejects where the seal is broken, or where the result is not the one that the salt names. */
export async function openResult(sealed: Uint8Array, parameters: SealParameters): Promise<Uint8Array> {
  const { key } = await derive(parameters);
  const result = new Uint8Array(await crypto.subtle.decrypt(GCM, key, own(sealed)));
  const named = plainHex(parameters.salt).slice(2 * SECRET);
  if (plainHex(sha256(result)).slice(0, 2 * SECRET) !== named) throw new Error("the salt names another result");
  return result;
}

// ---------------------------------------------------------------- getting

/** Parameters of {@link getResult}. */
export type GetResultParameters = MusterParameters & {
  /** Where to look, in this order; or just URLs of HTTP stores. */
  stores: readonly (Store | string)[];
  signal?: AbortSignal | undefined;
} & (
    | {
        id: bigint;
        /** See `getTask`. */
        fromBlock?: bigint | undefined;
        blockRange?: bigint | undefined;
      }
    | {
        /** The task, if it is known already. */
        task: Task;
      }
  );

/** A result that is what the chain says was answered. */
export interface Result {
  bytes: Uint8Array;
  /** SHA-256 of the bytes. */
  digest: Hex;
  /** Whose answer it is. */
  answer: Answer;
  /** The store that had it. */
  store: string;
  task: Task;
}

/** Whether a task's answers are perceptual hashes of its images, not the result's digest. */
const isOfImages = ({ spec }: Task) => spec.kind === 0 && spec.redundancy !== 0;

/**
 * A task's result, from the first store that has it as it was answered: by its digest, or, where the answer is perceptual hashes, by the
 * half digest in the salt. What no store gives is missing, unreachable or corrupt, each an error of its own with all that was tried.
 */
export async function getResult(client: MusterClient, { address, stores, signal, ...which }: GetResultParameters): Promise<Result> {
  const task = "task" in which ? which.task : await getTask(client, { address, ...which });
  if (task.status !== "succeeded") throw new NoResultError(task.id, task.status);
  const attempts: Attempt[] = [];
  for (const answer of task.answers) {
    for (const object of await objectsOf(task, answer)) {
      for (const given of stores) {
        const store = typeof given === "string" ? httpStore(given) : given;
        signal?.throwIfAborted();
        const note = (outcome: Attempt["outcome"], cause?: unknown) =>
          attempts.push({ store: store.name, object: objectName(object), node: answer.node, outcome, cause });
        let stored: Uint8Array | null;
        try {
          stored = await store.get(object, { signal });
        } catch (cause) {
          signal?.throwIfAborted();
          note("unreachable", cause);
          continue;
        }
        if (!stored) {
          note("missing");
          continue;
        }
        try {
          const bytes = "sealed" in object ? await openResult(stored, { id: task.id, node: answer.node, salt: answer.salt! }) : stored;
          const digest = sha256(bytes);
          if (isOfImages(task) || digest === answer.value) return { bytes, digest, answer, store: store.name, task };
          note("corrupt");
        } catch (cause) {
          note("corrupt", cause);
        }
      }
    }
  }
  const worst = (["corrupt", "unreachable"] as const).find((problem) => attempts.some(({ outcome }) => outcome === problem));
  throw new ResultError(worst ?? "missing", task.id, attempts);
}

/** Under which names a node's result can lie: sealed, if it had to commit to it; plain, if its answer is the digest. */
async function objectsOf(task: Task, { node, value, salt }: Answer): Promise<StoredObject[]> {
  const sealed = salt ? [{ sealed: (await derive({ id: task.id, node, salt })).name }] : [];
  return isOfImages(task) ? sealed : [...sealed, { digest: value }];
}
