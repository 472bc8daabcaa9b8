import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

/** The interface's sentence for each refusal, from its own comments. */
const source = readFileSync(new URL("../../../abi/IMuster.sol", import.meta.url), "utf8");
const sentences = Object.fromEntries(
  [...source.matchAll(/((?:[ \t]*\/\/\/.*\n)+)[ \t]*error (\w+)\(/g)].map(([, comment, name]) => [name, comment!.replace(/^[ \t]*\/\/\/ ?(@notice )?/gm, "").replace(/\{(\w+)\}/g, "$1").replace(/\s+/g, " ").trim()]),
);

// INDEXER: where `vite` finds data while the page is worked on. The built page asks where config.json says.
const { INDEXER = "http://127.0.0.1:42069" } = process.env;

export default defineConfig({
  base: "./",
  define: { SENTENCES: JSON.stringify(sentences) },
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  resolve: { dedupe: ["viem"] },
  build: { target: "es2022", modulePreload: { polyfill: false }, assetsInlineLimit: 0 },
  server: { proxy: Object.fromEntries(["/graphql", "/config.json", "/feeds", "/status"].map((path) => [path, INDEXER])) },
});
