// Compresses the built files once: node pack.mjs [DIRECTORY]. Beside each file that shrinks by it lie one for gzip and one for Brotli, which servers send to browsers.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const directory = process.argv[2] ?? new URL("dist/", import.meta.url).pathname;
for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !/\.(js|css|svg|html)$/.test(entry.name) || entry.name === "index.html") continue;
  const path = join(entry.parentPath, entry.name);
  const bytes = readFileSync(path);
  for (const [ending, packed] of [["gz", gzipSync(bytes, { level: 9 })], ["br", brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } })]]) {
    if (packed.length < bytes.length) writeFileSync(`${path}.${ending}`, packed);
  }
}
