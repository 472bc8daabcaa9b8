// Answers that are read while they are made, on the test network. MUSTER_DEVNODE names its binary.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { sha256 } from "viem";
import { StreamError, streamTask } from "../dist/stream.js";
import { setStores } from "../dist/index.js";
import { startNetwork } from "../dist/test/index.js";

const TEXT = Array.from({ length: 40 }, (_, i) => `word${i}`).join(" ");
const bytes = (text) => new TextEncoder().encode(text);
let network;
before(async () => {
  network = await startNetwork({ nodes: [{}], parameters: { sampleBps: 0n }, run: () => bytes(TEXT) });
});
after(() => network?.stop());

/** The pieces of a new task's answer; `onPiece` gets each. */
async function piecesOf(task, onPiece = () => {}) {
  const { client, address, nodes } = network;
  const { id, identity } = await client.createTask({ kind: 1, value: 1_000n, gpu: nodes[0].group, ...task });
  const pieces = [];
  for await (const piece of streamTask(client, { address, id, identity, dispatch: true })) {
    pieces.push(piece);
    onPiece();
  }
  return pieces;
}

test("a text comes word by word, and its end with the proof", async () => {
  const [node] = network.nodes;
  // Slow enough to be observed; once observed, the node may finish.
  node.behave("slow", 60_000);
  const pieces = await piecesOf({}, () => node.behave("answers"));
  const { result, text } = pieces.at(-1);
  assert.ok(pieces.length > 1);
  assert.ok(pieces.slice(0, -1).every((piece) => piece.result === undefined));
  assert.equal(pieces.map((piece) => piece.text).join(""), TEXT);
  assert.deepEqual([result.digest, new TextDecoder().decode(result.bytes)], [sha256(bytes(TEXT)), TEXT], text);
});

test("what is checked or private comes whole, after it was answered", async () => {
  for (const task of [{ redundancy: 1 }, { private: true, input: "a secret", store: network.storeUrl }]) {
    const pieces = await piecesOf(task);
    assert.deepEqual([pieces.length, pieces[0].text], [1, TEXT]);
  }
});

test("a node that shows another text than it answers with is told in words", async () => {
  const { client, address, nodes, storeUrl } = network;
  const [node] = nodes;
  node.behave("silent");
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`event: piece\ndata: ${JSON.stringify({ from: 0, text: "a lie", after: sha256(bytes("a lie")) })}\n\n`);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await setStores(client, { address, account: node.account, stores: [storeUrl, `stream+http://127.0.0.1:${server.address().port}/stream`] });
    await assert.rejects(
      piecesOf({}, () => node.behave("answers")),
      (error) => error instanceof StreamError && /The answer to task \d+ differs from its node's stream/.test(error.message) && error.result.digest === sha256(bytes(TEXT)),
    );
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
