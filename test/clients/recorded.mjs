// The requests of a client and their answers, as lines of JSON: asked again, a node must answer the same.
//
//   node recorded.mjs record NODE_URL FILE   a proxy before the node: prints "Listening on http://...", writes FILE until it is stopped
//   node recorded.mjs play NODE_URL FILE     asks all of it again, one after the other, and ends with 1 at the first other answer
//
// The nodes begin anew at the same second, with `--manual-time`: only then do hashes, times and fees repeat.
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { Endpoint } from "./endpoint.mjs";

const [mode, node, file] = process.argv.slice(2);
if (!["record", "play"].includes(mode) || file === undefined) {
  console.error("usage: recorded.mjs record|play NODE_URL FILE");
  process.exit(2);
}

if (mode === "record") {
  writeFileSync(file, "");
  const endpoint = await Endpoint.start(node);
  const ask = endpoint.answer.bind(endpoint);
  let before = Promise.resolve();
  // One after the other, as they are asked again.
  endpoint.answer = ({ method, params = [] }, lag) =>
    (before = before.then(async () => {
      const answer = await ask({ method, params }, lag);
      appendFileSync(file, `${JSON.stringify({ method, params, ...answer })}\n`);
      return answer;
    }));
  console.log(`Listening on ${endpoint.url}`);
} else {
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  for (const [index, line] of lines.entries()) {
    const { method, params, ...wanted } = JSON.parse(line);
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const answer = await (await fetch(node, { method: "POST", headers: { "content-type": "application/json" }, body })).json();
    const given = answer.error ? { error: answer.error } : { result: answer.result };
    if (!isDeepStrictEqual(given, wanted)) {
      console.error(`${file}:${index + 1}: ${method} is answered in another way`);
      console.error(` then ${JSON.stringify(wanted).slice(0, 2_000)}`);
      console.error(` now  ${JSON.stringify(given).slice(0, 2_000)}`);
      process.exit(1);
    }
  }
  console.log(`${lines.length} requests answered as before`);
}
