/** Webhooks against an indexer whose answers the test chooses. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { sleep } from "./indexer";
import { startHooks } from "./machine";
import { Receiver, SECRET } from "./receiver";

test("an event that another one replaces is taken back, though the newest block was read before the other one was there", async () => {
  let block = 5;
  const events: { id: string; blockHash: string }[] = [];
  const indexer = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const after = BigInt(/id_gt: \\"(\d+)\\"/.exec(body)?.[1] ?? 0);
    const rows = events.filter(({ id }) => BigInt(id) > after).map((event) => ({ ...event, name: "NodePaused", node: 1, task: null, block, at: 0, tx: "0x01", args: {} }));
    const data = body.includes("_meta") ? { _meta: { status: { chain: { id: 1, block: { number: block } } } } } : { events: { items: rows } };
    response.end(JSON.stringify(request.url === "/config.json" ? { muster: "0x02" } : { data }));
  });
  await new Promise<void>((resolve) => indexer.listen(0, "127.0.0.1", resolve));
  const receiver = new Receiver();
  const hooks = await startHooks(`http://127.0.0.1:${(indexer.address() as AddressInfo).port}`, [{ name: "all", url: `${await receiver.start()}/all`, secret: SECRET }], "alone.state");
  const told = async (count: number) => {
    for (const until = Date.now() + 120_000; (receiver.told.get("/all")?.length ?? 0) < count; await sleep(50)) assert.ok(Date.now() < until, await hooks.said());
    return receiver.told.get("/all")!.map(({ id, blockHash, takenBack }) => ({ id, blockHash, takenBack }));
  };
  try {
    while (!(await hooks.begun()).length) await sleep(50);
    block = 7;
    events.push({ id: "7000001", blockHash: "0x0a" });
    await told(1);
    // The reorganisation leads back to block 6; the branch that stays is read between the two questions.
    block = 6;
    events[0] = { id: "7000001", blockHash: "0x0b" };
    const [first, ...more] = await told(3);
    assert.equal(first!.blockHash, "0x0a");
    assert.deepEqual(more, [
      { id: "7000001", blockHash: "0x0a", takenBack: true },
      { id: "7000001", blockHash: "0x0b", takenBack: undefined },
    ]);
  } finally {
    await hooks.kill();
    indexer.close();
    indexer.closeAllConnections();
    receiver.stop();
  }
});
