/** Ids and digests: models by their names, inputs and results by their bytes. */
import { type Hex, bytesToHex, hexToBytes, keccak256, sha256, stringToBytes } from "viem";

/** A model's id: the first five bytes of the keccak256 of its name, as a number. */
export const modelId = (name: string): bigint => BigInt(keccak256(stringToBytes(name)).slice(0, 12));

/** The digest of an input or a result: SHA-256 of its bytes, of a text in UTF-8. */
export const digestOf = (content: Uint8Array | string): Hex => sha256(typeof content === "string" ? stringToBytes(content) : content);

const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";

/** The IPFS CID (version 1, raw, base 32) of the bytes with this digest. */
export function cidOf(digest: Hex): string {
  // Version 1, the codec of raw bytes, the hash function SHA-256 with 32 bytes.
  const bytes = [0x01, 0x55, 0x12, 0x20, ...hexToBytes(digest, { size: 32 })];
  let [text, bits, held] = ["b", 0, 0];
  for (const byte of bytes) {
    held = (held << 8) | byte;
    for (bits += 8; bits >= 5; bits -= 5) text += BASE32[(held >> (bits - 5)) & 31];
    held &= 31;
  }
  return bits ? text + BASE32[(held << (5 - bits)) & 31] : text;
}

/** Bytes as lower-case hexadecimal without 0x, as stores name objects. */
export const plainHex = (bytes: Uint8Array | Hex): string => (typeof bytes === "string" ? bytes : bytesToHex(bytes)).slice(2).toLowerCase();
