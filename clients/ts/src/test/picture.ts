/** A substitute picture: a PNG of sixteen squares in the colours of a digest. */
import { deflateSync } from "node:zlib";
import { type Hex, concatBytes, hexToBytes, numberToBytes, stringToBytes } from "viem";

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = (byte >>> 1) ^ (byte & 1 ? 0xedb88320 : 0);
  return byte;
});

const chunk = (type: string, data: Uint8Array): Uint8Array => {
  const body = concatBytes([stringToBytes(type), data]);
  const sum = ~body.reduce((sum, byte) => (sum >>> 8) ^ TABLE[(sum ^ byte) & 0xff]!, ~0) >>> 0;
  return concatBytes([numberToBytes(data.length, { size: 4 }), body, numberToBytes(sum, { size: 4 })]);
};

/** The picture of a digest, 64 by 64. */
export function pictureOf(digest: Hex): Uint8Array {
  const bytes = hexToBytes(digest);
  const [side, square] = [64, 16];
  const rows = Array.from({ length: side }, (_, y) => {
    const pixels = Array.from({ length: side }, (_, x) => {
      const at = 4 * Math.floor(y / square) + Math.floor(x / square);
      return [bytes[at]!, bytes[at + 16]!, bytes[(at * 7 + 3) % 32]!];
    });
    return [0, ...pixels.flat()];
  });
  // 8 bits of red, green and blue each.
  const header = concatBytes([numberToBytes(side, { size: 4 }), numberToBytes(side, { size: 4 }), Uint8Array.of(8, 2, 0, 0, 0)]);
  const image = new Uint8Array(deflateSync(Uint8Array.from(rows.flat())));
  return concatBytes([Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a), chunk("IHDR", header), chunk("IDAT", image), chunk("IEND", new Uint8Array())]);
}
