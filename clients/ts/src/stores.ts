/**
 * Stores: where bytes are, and reading them from several places, none of which is trusted. The kinds of servers are in `stores/`, an import
 * each; docs/stores.md has the conventions.
 */
import { sha256 as streaming } from "@noble/hashes/sha2";
import { type Hex, bytesToHex, concatBytes } from "viem";
import { type Attempt, RequestError } from "./errors.js";
import { httpStore } from "./stores/http.js";
import type { IpfsStoreOptions } from "./stores/ipfs.js";
import { type Store, type StoredObject, TooLongError, entryName, objectName } from "./stores/store.js";

export { type Store, type StoredObject, TooLongError, entryName, objectName };

/** One or several stores, or their URLs: `https://...`, `ipfs+https://gateway`, `kubo+http://127.0.0.1:5001`. */
export type Stores = Store | string | readonly (Store | string)[];

/** The store at a URL; undefined if it is of no kind for the web. */
export function storeAt(url: string, options?: IpfsStoreOptions): Store | undefined {
  const [, kind, rest = ""] = /^(?:(ipfs|kubo)\+)?(https?:\/\/.+)/.exec(url) ?? [];
  if (!rest) return undefined;
  if (!kind) return httpStore(rest, options);
  // Loaded only if needed.
  const load = async (): Promise<Store> => {
    const { ipfsStore, kuboStore } = await import("./stores/ipfs.js");
    const [api = "", query] = rest.split("?");
    return kind === "ipfs" ? ipfsStore(rest, options) : kuboStore(api, { pin: new URLSearchParams(query).get("pin") ?? undefined });
  };
  const put: Store["put"] = async (...asked) => (await load()).put!(...asked);
  return { name: entryName(url), get: async (...asked) => (await load()).get(...asked), ...(kind === "kubo" && { put }) };
}

/** The stores of an option. */
export const storesOf = (given: Stores = []): Store[] =>
  (Array.isArray(given) ? (given as readonly (Store | string)[]) : [given as Store | string]).map((one) => {
    const store = typeof one === "string" ? storeAt(one) : one;
    if (!store) throw new RequestError(`${entryName(one as string)} is no URL of a store; buckets and directories are imports: muster-client/stores/s3, muster-client/node.`);
    return store;
  });

/** The most entries of an account's list that are read, and their separator. */
const ENTRIES = 8;
/** The entries of an account's list. */
export const entriesOf = (said: string): string[] => said.split(" ").filter(Boolean).slice(0, ENTRIES);

/** The entries that a reader uses: others' lists must not make it read its own disk, use its own node, or go where `wanted` cannot tell. */
export const publishedStores = (said: string, wanted: true | ((url: string) => boolean) = true): Store[] =>
  entriesOf(said).flatMap((entry) => (entry.startsWith("kubo+") || (wanted !== true && !wanted(entry)) ? [] : (storeAt(entry, { redirect: "error" }) ?? [])));

// ---------------------------------------------------------------- getting

/** Limits of size and time. */
export interface Bounds {
  /** The most bytes that are read, 256 MiB if left out. */
  maxBytes?: number | undefined;
  /** Milliseconds that one store may take for one object: 30,000 if left out, 120,000 to put it there. */
  storeTimeout?: number | undefined;
}

/** An object that may be in a store, and its check. */
export interface Place<found> {
  store: Store;
  object: StoredObject;
  /** The node that answered. */
  node?: number | undefined;
  /** The checked result; rejects if the bytes do not match. */
  check: (bytes: Uint8Array, digest: Hex) => found | Promise<found>;
}

/** Milliseconds after which another place is asked, and the most that are asked concurrently. */
const [PATIENCE, AT_ONCE] = [1_000, 4];

/** All of an object, and its SHA-256, computed on arrival. */
async function read(body: Uint8Array | ReadableStream<Uint8Array>, maxBytes: number): Promise<[Uint8Array, Hex]> {
  const hash = streaming.create();
  const [parts, take] = [[] as Uint8Array[], (part: Uint8Array) => (parts.push(part), hash.update(part))];
  if (body instanceof Uint8Array) {
    if (body.length > maxBytes) throw new TooLongError(maxBytes);
    take(body);
  } else {
    const reader = body.getReader();
    for (let left = maxBytes; ;) {
      const { done, value } = await reader.read();
      if (done) break;
      left -= value.length;
      if (left < 0) {
        await reader.cancel();
        throw new TooLongError(maxBytes);
      }
      take(value);
    }
  }
  return [parts.length === 1 ? parts[0]! : concatBytes(parts), bytesToHex(hash.digest())];
}

/** Rejects once a signal is aborted, even if the promise does not listen to it. */
const unless = <value>(signal: AbortSignal, under: Promise<value>): Promise<value> =>
  new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort);
    under.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });

/**
 * The result of the first place whose bytes are right. The next place is asked when the one before fails, or takes longer than a second;
 * pending requests are dropped in the end.
 *
 * @returns The result and its place, or all failed attempts.
 */
export function firstOf<found>(
  places: AsyncIterator<Place<found> | Attempt>,
  { signal, maxBytes = 2 ** 28, storeTimeout = 30_000 }: Bounds & { signal?: AbortSignal | undefined },
): Promise<{ found: found; place: Place<found> } | { attempts: Attempt[] }> {
  const over = new AbortController();
  const attempts: Attempt[] = [];
  let [asked, open, timer] = [0, 0, undefined as ReturnType<typeof setTimeout> | undefined];

  const ask = async (place: Place<found>): Promise<found | Attempt> => {
    const { store, object, node, check } = place;
    const failed = (outcome: Attempt["outcome"], cause?: unknown): Attempt => ({ store: store.name, object: objectName(object), node, outcome, cause });
    const own = new AbortController();
    const late = setTimeout(() => own.abort(new Error(`no end within ${storeTimeout} ms`)), storeTimeout);
    const both = AbortSignal.any([own.signal, over.signal]);
    let bytes: Uint8Array, digest: Hex;
    try {
      const body = await unless(both, store.get(object, { signal: both }));
      if (!body) return failed("missing");
      [bytes, digest] = await unless(both, read(body, maxBytes));
    } catch (cause) {
      own.abort(cause);
      return failed(cause instanceof TooLongError ? "tooLong" : "unreachable", cause);
    } finally {
      clearTimeout(late);
    }
    try {
      return await check(bytes, digest);
    } catch (cause) {
      return failed("corrupt", cause);
    }
  };

  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      over.abort(new Error("not needed any more"));
      settle();
    };
    const abort = () => end(() => reject(signal!.reason));
    const more = async (): Promise<void> => {
      clearTimeout(timer);
      if (over.signal.aborted || open >= AT_ONCE) return;
      open++;
      try {
        const { value: place, done } = await places.next();
        if (over.signal.aborted) return;
        if (done) {
          if (!--open) end(() => resolve({ attempts: attempts.filter(Boolean) }));
          return;
        }
        const index = asked++;
        timer = setTimeout(more, PATIENCE);
        const found = "check" in place ? await ask(place) : place;
        if (over.signal.aborted) return;
        if (!isAttempt(found)) return end(() => resolve({ found, place: place as Place<found> }));
        attempts[index] = found;
        open--;
        void more();
      } catch (error) {
        end(() => reject(error));
      }
    };
    if (signal?.aborted) return abort();
    signal?.addEventListener("abort", abort);
    void more();
  });
}

const isAttempt = (value: unknown): value is Attempt => typeof value === "object" && value !== null && "outcome" in value;

// ---------------------------------------------------------------- putting

/**
 * Puts bytes into several stores concurrently.
 *
 * @returns The failures; the other stores have the bytes.
 */
export async function putAll(
  stores: readonly Store[],
  object: StoredObject,
  bytes: Uint8Array,
  { signal, storeTimeout = 120_000 }: Bounds & { signal?: AbortSignal | undefined },
): Promise<Attempt[]> {
  const attempts = stores.map(async (store): Promise<Attempt[]> => {
    const failed = (outcome: Attempt["outcome"], cause: unknown) => [{ store: store.name, object: objectName(object), outcome, cause }];
    if (!store.put) return failed("readOnly", undefined);
    const own = new AbortController();
    const late = setTimeout(() => own.abort(new Error(`no end within ${storeTimeout} ms`)), storeTimeout);
    const both = AbortSignal.any(signal ? [own.signal, signal] : [own.signal]);
    try {
      await unless(both, store.put(object, bytes, { signal: both }));
      return [];
    } catch (cause) {
      signal?.throwIfAborted();
      return failed(cause instanceof TooLongError ? "tooLong" : "unreachable", cause);
    } finally {
      clearTimeout(late);
    }
  });
  return (await Promise.all(attempts)).flat();
}
