/** Turns at the database: nobody's questions keep others from theirs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns, asking } from "../src/api/turns";
import { sleep } from "./indexer";

/** Whose questions were answered until the last client's only one was, when so many others had asked 64 each before. */
async function before(others: number): Promise<number> {
  const turns = new Turns();
  let answered = 0;
  const ask = (client: string) =>
    asking(new Set([client]), () =>
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
  const all = asking(new Set(["one"]), () => Array.from({ length: 72 }, () => turns.take(() => sleep(1))));
  assert.equal(asking(new Set(["one"]), () => turns.isFull), true);
  assert.equal(asking(new Set(["another"]), () => turns.isFull), false);
  await Promise.all(all);
  assert.equal(asking(new Set(["one"]), () => turns.isFull), false);
});

test("what others wait for, too, is answered in their turn, not in that of whoever began", async () => {
  const turns = new Turns();
  const answered: string[] = [];
  const ask = (clients: Set<string>, name: string) => asking(clients, () => turns.take(async () => sleep(1).then(() => answered.push(name))));
  const all = Array.from({ length: 60 }, (_, i) => ask(new Set(["one"]), `own ${i}`));
  // The last of the first one's.
  const common = new Set(["one"]);
  all.push(ask(common, "common"));
  common.add("another");
  await Promise.all(all);
  assert.ok(answered.indexOf("common") < 17, `after ${answered.indexOf("common")}`);
});

test("a server with few connections has as many turns as leave the page a third of them", async () => {
  const atOnce = async (connections?: number) => {
    const turns = new Turns(connections);
    let [running, most] = [0, 0];
    const act = async () => {
      most = Math.max(most, ++running);
      await sleep(1);
      running--;
    };
    await Promise.all(Array.from({ length: 20 }, () => turns.take(act)));
    return most;
  };
  assert.deepEqual([await atOnce(), await atOnce(28), await atOnce(9), await atOnce(2)], [8, 8, 3, 1]);
});

test("a client is not full for what others wait for, too, and counts what it only joined", async () => {
  const turns = new Turns();
  const both = new Set(["one", "two"]);
  const all = asking(both, () => Array.from({ length: 72 }, () => turns.take(() => sleep(1))));
  const isFull = (...clients: string[]) => asking(new Set(clients), () => turns.isFull);
  assert.deepEqual([isFull("one"), isFull("two"), isFull("one", "two"), isFull("three"), isFull("one", "three")], [true, true, true, false, false]);
  await Promise.all(all);
});
