/** Turns at the database: nobody's questions keep others from theirs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns, asker } from "../src/api/turns";
import { sleep } from "./indexer";

/** Whose questions were answered until the last client's only one was, when so many others had asked 64 each before. */
async function before(others: number): Promise<number> {
  const turns = new Turns();
  let answered = 0;
  const ask = (client: string) =>
    asker.run(client, () =>
      turns.take(async () => {
        await sleep(1);
        return ++answered;
      }),
    );
  const all = Array.from({ length: others }, (_, i) => Array.from({ length: 64 }, () => ask(`client ${i}`))).flat();
  const last = await ask("the last");
  await Promise.all(all);
  return last;
}

test("the client with the fewest turns is next, and of several the one that waits for longest", async () => {
  for (const others of [1, 7, 8, 9, 12, 40]) assert.ok((await before(others)) <= others + 17, `${others} others`);
});

test("a client has so many waiting and no more", async () => {
  const turns = new Turns();
  const all = asker.run("one", () => Array.from({ length: 72 }, () => turns.take(() => sleep(1))));
  assert.equal(asker.run("one", () => turns.isFull), true);
  assert.equal(asker.run("another", () => turns.isFull), false);
  await Promise.all(all);
  assert.equal(asker.run("one", () => turns.isFull), false);
});
