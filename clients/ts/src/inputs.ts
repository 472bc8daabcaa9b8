/** Inputs: puts them where nodes find them, sealed if requested, before anything is paid. */
import { type Hex, bytesToHex, stringToBytes } from "viem";
import type { MusterClient, MusterParameters } from "./client.js";
import { type Attempt, RequestError, StoreError } from "./errors.js";
import { digestOf } from "./names.js";
import { type Bounds, type Stores, putAll, storesOf } from "./stores.js";

/** The keys that an input is sealed to: those of all nodes that could be drawn, or the given ones (`age1...`). */
export type Private = boolean | { recipients: readonly string[] };

/** Parameters of {@link putInput}. */
export type PutInputParameters = MusterParameters &
  Bounds & {
    /** The input; a text in UTF-8. */
    input: Uint8Array | string;
    /** The stores, all used concurrently; one that accepts the input is enough. */
    store: Stores;
    /** Whether only nodes that may run the task can read it, and only the creator the result. */
    private?: Private | undefined;
    /** With `private`: as the task will have them, to find the possible nodes. */
    gpu?: number | undefined;
    vram?: number | undefined;
    signal?: AbortSignal | undefined;
  };

/** An input that is stored. */
export interface StoredInput {
  /** For the task's creation. */
  inputDigest: Hex;
  /** The key for the result, if the input is sealed: keep it for `getResult`. There is no other copy. */
  identity: string | undefined;
  /** Failures of those stores that did not take it. */
  attempts: readonly Attempt[];
}

/** SHA-256 by the platform if available: in JavaScript a gigabyte would block everything else for seconds, and connections would close. */
const digestAside = async (bytes: Uint8Array): Promise<Hex> =>
  globalThis.crypto?.subtle ? bytesToHex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as BufferSource))) : digestOf(bytes);

/** Puts an input into stores. Throws {@link StoreError} if none takes it. */
export async function putInput(
  client: MusterClient,
  { address, input, store, private: hidden = false, gpu, vram, ...bounds }: PutInputParameters,
): Promise<StoredInput> {
  const stores = storesOf(store);
  let [bytes, identity] = [typeof input === "string" ? stringToBytes(input) : input, undefined as string | undefined];
  if (hidden) {
    const [{ newIdentity, sealInput }, { recipientsOf }] = await Promise.all([import("./private.js"), import("./recipients.js")]);
    const recipients = hidden === true ? await recipientsOf(client, address, gpu, vram) : hidden.recipients;
    if (!recipients.length) throw new RequestError("private: no node could open an input without recipients");
    const own = await newIdentity();
    [bytes, identity] = [await sealInput(bytes, recipients, own.recipient), own.identity];
  }
  const inputDigest = await digestAside(bytes);
  const attempts = await putAll(stores, { digest: inputDigest }, bytes, bounds);
  if (attempts.length === stores.length) throw new StoreError(attempts);
  return { inputDigest, identity, attempts };
}
