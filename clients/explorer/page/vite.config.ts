import { defineConfig } from "vite";

// INDEXER: where `vite` finds data while the page is worked on. The built page asks where config.json says.
const { INDEXER = "http://127.0.0.1:42069" } = process.env;

export default defineConfig({
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  resolve: { dedupe: ["viem"] },
  build: { target: "es2022", modulePreload: { polyfill: false }, assetsInlineLimit: 0 },
  server: { proxy: Object.fromEntries(["/graphql", "/config.json", "/feeds", "/status"].map((path) => [path, INDEXER])) },
});
