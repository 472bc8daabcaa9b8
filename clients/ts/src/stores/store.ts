/** The interface of stores. */
import type { Hex } from "viem";
import { plainHex } from "../names.js";

/** A requested object: bytes by their digest, or a sealed result by its name. */
export type StoredObject = { digest: Hex } | { sealed: string };

/** A place for bytes. */
export interface Store {
  /** For messages. */
  name: string;
  /** The object, whole or as a stream, or null if there is none. Any error counts as the store being out of reach. */
  get(object: StoredObject, options: { signal: AbortSignal }): Promise<Uint8Array | ReadableStream<Uint8Array> | null>;
  /** Stores an object; absent from read-only stores. */
  put?: ((object: StoredObject, bytes: Uint8Array, options: { signal: AbortSignal }) => Promise<void>) | undefined;
}

/** An object's name in stores that have names: 64 hexadecimal digits. */
export const objectName = (object: StoredObject): string => ("sealed" in object ? object.sealed : plainHex(object.digest));

/** A URL without possible secrets, for messages. */
export const entryName = (url: string): string => url.replace(/\?.*/, "").replace(/\/\/[^/]*@/, "//");

/** An object exceeds the limit. */
export class TooLongError extends Error {
  override name = "TooLongError";

  constructor(readonly most: number) {
    super(`longer than ${most} bytes`);
  }
}
