import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";
import { crates, modules, thirdParty } from "../../../script/npm/licences.mjs";

/** The interface's sentence for each refusal, from its own comments. */
const source = readFileSync(new URL("../../../abi/IMuster.sol", import.meta.url), "utf8");
const sentences = Object.fromEntries(
  [...source.matchAll(/((?:[ \t]*\/\/\/.*\n)+)[ \t]*error (\w+)\(/g)].map(([, comment, name]) => [name, comment!.replace(/^[ \t]*\/\/\/ ?(@notice )?/gm, "").replace(/\{(\w+)\}/g, "$1").replace(/\s+/g, " ").trim()]),
);

/** Licences of the packages that are bundled, and of the crates in the package's WASM. */
const licences: Plugin = {
  name: "licences",
  apply: "build",
  generateBundle(_, bundle) {
    const files = Object.values(bundle).flatMap((part) => (part.type === "chunk" ? Object.keys(part.modules) : []));
    const folders = new Set(files.map((file) => /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1]).filter(Boolean));
    const packages = [...modules([...folders]), ...crates(["muster-verifier", "muster-replayer"], "wasm32-unknown-unknown")];
    this.emitFile({ type: "asset", fileName: "THIRD-PARTY.txt", source: thirdParty(packages) });
  },
};

// INDEXER: where `vite` finds data while the page is worked on. The built page asks where config.json says.
const { INDEXER = "http://127.0.0.1:42069" } = process.env;

export default defineConfig({
  base: "./",
  plugins: [licences],
  define: { SENTENCES: JSON.stringify(sentences) },
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  resolve: { dedupe: ["viem"] },
  build: { target: "es2022", modulePreload: { polyfill: false }, assetsInlineLimit: 0 },
  server: { proxy: Object.fromEntries(["/graphql", "/config.json", "/feeds", "/status"].map((path) => [path, INDEXER])) },
});
