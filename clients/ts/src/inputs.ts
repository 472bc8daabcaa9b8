/** Inputs: putting them where nodes find them, sealed if need be, before anything is paid. */
import { type Hex, bytesToHex, stringToBytes } from "viem";
import type { MusterClient, MusterParameters } from "./client.js";
import { type Attempt, StoreError } from "./errors.js";
import { digestOf } from "./names.js";
import { type Bounds, type Stores, putAll, storesOf } from "./stores.js";

/** The keys that an input is sealed to: those of all nodes that could be drawn, or to some keys (`age1...`). */
export type Private = boolean | { recipients: readonly string[] };

/** Parameters of {@link putInput}. */
export type PutInputParameters = MusterParameters &
  Bounds & {
    /** The input; a text in UTF-8. */
    input: Uint8Array | string;
    /** Where it goes, into all of them at once; one that takes it is enough. */
    store: Stores;
    /** Whether only nodes that may run the task can read it, and only the creator the result. */
    private?: Private | undefined;
    /** With `private`: as the task will have them, for whom it could be given to. */
    gpu?: number | undefined;
    vram?: number | undefined;
    signal?: AbortSignal | undefined;
  };

/** An input that is stored. */
export interface StoredInput {
  /** What the task is created with. */
  inputDigest: Hex;
  /** What opens the result, if the input is sealed: keep it, `getResult` wants it. Nothing else has it. */
  identity: string | undefined;
  /** What those stores said that did not take it. */
  attempts: readonly Attempt[];
}

/** SHA-256 by the platform where it has that: a gigabyte would hold up everything else for seconds, and connections would close meanwhile. */
const digestAside = async (bytes: Uint8Array): Promise<Hex> =>
  globalThis.crypto?.subtle ? bytesToHex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as BufferSource))) : digestOf(bytes);

/** Puts an input into stores. Throws {@link StoreError} where none takes it. */
export async function putInput(
  client: MusterClient,
  { address, input, store, private: hidden = false, gpu, vram, ...bounds }: PutInputParameters,
): Promise<StoredInput> {
  const stores = storesOf(store);
  let [bytes, identity] = [typeof input === "string" ? stringToBytes(input) : input, undefined as string | undefined];
  if (hidden) {
    const [{ newIdentity, sealInput }, { recipientsOf }] = await Promise.all([import("./private.js"), import("./recipients.js")]);
    const recipients = hidden === true ? await recipientsOf(client, address, gpu, vram) : hidden.recipients;
    const own = await newIdentity();
    [bytes, identity] = [await sealInput(bytes, recipients, own.recipient), own.identity];
  }
  const inputDigest = await digestAside(bytes);
  const attempts = await putAll(stores, { digest: inputDigest }, bytes, bounds);
  if (attempts.length === stores.length) throw new StoreError(attempts);
  return { inputDigest, identity, attempts };
}
