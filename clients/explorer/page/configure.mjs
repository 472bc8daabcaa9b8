// Sets the network of a built page: node configure.mjs DIRECTORY name=value ...
// Writes DIRECTORY/config.json, and puts its endpoints into the page's policy, so that it connects to nothing else from the first byte on.
//   indexer=URL   of the indexer; left out where it serves the page itself
//   rpc=URL       of the chain, for the browser's own checks; left out, the page says that it cannot make them
//   muster=0x...  the contract, fromBlock=N the block in which it was created: for the same checks
//   feeds=yes     where the indexer's server has feeds/nodes/NUMBER.rss
//   name=TEXT symbol=TEXT   names of the network and its token
//   chain=TEXT chainId=N    the chain's name, and its number; without rpc, nothing is sent unless chainId says where the contract is
//   blockExplorer=URL       of the chain, to which transactions, blocks and addresses are linked
//   stores=URL,URL          where results lie, to be downloaded; upload=URL where inputs can be put, by PUT under their digest
//   docs=URL source=URL     of documentation and sources, for the footer
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const NAMES = ["indexer", "rpc", "muster", "fromBlock", "name", "symbol", "feeds", "chain", "chainId", "blockExplorer", "stores", "upload", "docs", "source"];
const READ = { fromBlock: Number, chainId: Number, feeds: (value) => value === "yes", stores: (value) => value.split(",").filter(Boolean) };
const [directory, ...said] = process.argv.slice(2);
if (!directory) throw new Error("usage: node configure.mjs DIRECTORY name=value ...");
const given = said.map((one) => [one.slice(0, one.indexOf("=")), one.slice(one.indexOf("=") + 1)]);
const unknown = given.find(([name]) => !NAMES.includes(name));
if (unknown) throw new Error(`configure: there is no ${unknown[0]}; there are ${NAMES.join(", ")}`);
const config = Object.fromEntries(given.map(([name, value]) => [name, READ[name]?.(value) ?? value.replace(/\/$/, "")]));
const origins = [config.indexer, config.rpc, config.upload, ...(config.stores ?? [])].filter(Boolean).map((url) => new URL(url).origin);
const index = join(directory, "index.html");
const page = readFileSync(index, "utf8");
const configured = page.replace(/connect-src [^;]*/, ["connect-src 'self'", ...new Set(origins)].join(" "));
if (!configured.includes("connect-src 'self'")) throw new Error(`configure: ${index} has no policy`);
writeFileSync(index, configured);
writeFileSync(join(directory, "config.json"), `${JSON.stringify(config)}\n`);
