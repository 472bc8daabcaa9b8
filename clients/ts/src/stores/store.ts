/** What a store is. */
import type { Hex } from "viem";
import { plainHex } from "../names.js";

/** What a store is asked for: bytes by their digest, or a sealed result by its name. */
export type StoredObject = { digest: Hex } | { sealed: string };

/** Where bytes are. */
export interface Store {
  /** For messages. */
  name: string;
  /** The object, whole or as it comes, or null where there is none. Whatever it throws counts as the store being out of reach. */
  get(object: StoredObject, options: { signal: AbortSignal }): Promise<Uint8Array | ReadableStream<Uint8Array> | null>;
  /** Keeps an object; absent from what is only read. */
  put?: ((object: StoredObject, bytes: Uint8Array, options: { signal: AbortSignal }) => Promise<void>) | undefined;
}

/** An object's name in stores that have names: 64 hexadecimal digits. */
export const objectName = (object: StoredObject): string => ("sealed" in object ? object.sealed : plainHex(object.digest));

/** A URL without what may be secret in it: for messages. */
export const entryName = (url: string): string => url.replace(/\?.*/, "").replace(/\/\/[^/]*@/, "//");

/** An object is longer than what is read or kept. */
export class TooLongError extends Error {
  override name = "TooLongError";

  constructor(readonly most: number) {
    super(`longer than ${most} bytes`);
  }
}
