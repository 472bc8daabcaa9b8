// Prints how much a reader loads: for the first view and later. Fails above the limits.
import { readFileSync, readdirSync } from "node:fs";
import { gzipSync } from "node:zlib";

// Views that are not the first are loaded when they are wanted. 53 kB of ALL open results that are sealed to their creator.
const [FIRST, ALL] = [62_000, 360_000];
const dist = new URL("dist/", import.meta.url);
const index = readFileSync(new URL("index.html", dist), "utf8");
const files = readdirSync(new URL("assets/", dist)).filter((name) => !/\.(gz|br)$/.test(name)).map((name) => ({ name, size: gzipSync(readFileSync(new URL(`assets/${name}`, dist)), { level: 9 }).length }));
const sum = (some) => some.reduce((all, { size }) => all + size, 0);
const first = sum(files.filter(({ name }) => index.includes(name)));
const all = sum(files);
console.log(`page: ${(first / 1_000).toFixed(1)} kB gzipped at first, ${(all / 1_000).toFixed(1)} kB with the parts that are loaded later on demand; a third of that is the contract's rules`);
if (first > FIRST || all > ALL) {
  console.error(`page: the limits are ${FIRST / 1_000} and ${ALL / 1_000} kB`);
  process.exit(1);
}
