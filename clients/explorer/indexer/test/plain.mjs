/**
 * An empty page beside the measured one: the time that this machine, with its present load, takes for next to nothing. Bounds relative to it hold on slow machines too.
 *
 * `node test/plain.mjs` serves it on a free port, in a process of its own as the servers are: `/` a page, `/live` events, which a POST to `/tell` sends, and nothing anywhere else.
 */
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { fileURLToPath, pathToFileURL } from "node:url";

const PAGE = '<!doctype html><title>plain</title><main id="main"></main><script>document.getElementById("main").innerHTML = "<table><tbody><tr><td>1</table>"</script>';

/** Milliseconds that something may take: a second, or as many times as long as the empty page where that does not do. */
const [SECOND, TIMES] = [1_000, 8];
export const allowed = (plain) => Math.max(SECOND, TIMES * plain);

/** Starts it; returns its address, and a function that ends it. */
export async function startPlain() {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url)], { stdio: ["pipe", "pipe", "inherit"] });
  const origin = await new Promise((resolve, reject) => {
    child.stdout.once("data", (data) => resolve(String(data).trim()));
    child.once("exit", () => reject(new Error("the empty page is not served")));
  });
  return { origin, stop: () => child.kill() };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  // It ends with its parent.
  process.stdin.on("end", () => process.exit()).resume();
  const listeners = new Set();
  const server = createServer((request, response) => {
    if (request.url === "/live") {
      response.writeHead(200, { "content-type": "text/event-stream" }).write("data: {}\n\n");
      listeners.add(response);
      request.on("close", () => listeners.delete(response));
    } else if (request.url === "/tell") {
      response.end();
      for (const listener of listeners) listener.write("data: {}\n\n");
    } else response.writeHead(200, { "content-type": "text/html" }).end(request.url === "/" ? PAGE : "");
  });
  server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
}
