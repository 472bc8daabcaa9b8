/** Ids and digests: models by their names, inputs and results by their bytes. */
import { type Hex, bytesToHex, keccak256, sha256, stringToBytes } from "viem";

/** A model's id: the first five bytes of the keccak256 of its name, as a number. */
export const modelId = (name: string): bigint => BigInt(keccak256(stringToBytes(name)).slice(0, 12));

/** The digest of an input or a result: SHA-256 of its bytes, of a text in UTF-8. */
export const digestOf = (content: Uint8Array | string): Hex => sha256(typeof content === "string" ? stringToBytes(content) : content);

/** Bytes as lower-case hexadecimal without 0x, as stores name objects. */
export const plainHex = (bytes: Uint8Array | Hex): string => (typeof bytes === "string" ? bytes : bytesToHex(bytes)).slice(2).toLowerCase();
