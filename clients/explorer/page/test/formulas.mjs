// The page's own modules, bundled for Node.js.
import { build } from "esbuild";

/** The page's own modules, for Node.js. */
export async function modules() {
  const contents = ["replay", "fairness", "statistics", "income", "core", "config", "table"].map((name) => `export * from "./src/${name}";`).join("\n");
  const resolveDir = new URL("..", import.meta.url).pathname;
  const { outputFiles } = await build({ stdin: { contents, resolveDir }, bundle: true, write: false, format: "esm", platform: "node", jsx: "automatic", jsxImportSource: "preact", logLevel: "error" });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);
}
