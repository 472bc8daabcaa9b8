// The page's own modules, bundled for Node.js.
import { build } from "esbuild";

/** The page's own modules, for Node.js. */
export async function modules() {
  const contents = ["preact", "./src/api", "./src/live", "./src/replay", "./src/income", "./src/core", "./src/config", "./src/created", "./src/expiry", "./src/payments", "./src/table", "./src/router", "../indexer/src/fairness/replay", "../indexer/src/fairness/shares", "../indexer/src/fairness/statistics", "../indexer/src/api/patch"]
    .map((name) => `export * from "${name}";`)
    .join("\n");
  const resolveDir = new URL("..", import.meta.url).pathname;
  const { outputFiles } = await build({ stdin: { contents, resolveDir }, bundle: true, write: false, format: "esm", platform: "node", jsx: "automatic", jsxImportSource: "preact", logLevel: "error" });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);
}
