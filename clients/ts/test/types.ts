// Types as an application sees them; compiled, never run. Each `@ts-expect-error` fails to compile if there is no error.
import { http, type Address, type Hex, createPublicClient, createWalletClient, publicActions } from "viem";
import { mainnet } from "viem/chains";
import {
  type Refusal,
  type Task,
  RefusalError,
  TaskKind,
  createTask,
  getNode,
  hasEnded,
  musterActions,
  parse,
  waitForTask,
  watchNode,
} from "muster-client";
import { musterAbi, musterParameters } from "muster-client/abi";
import { readQueryOptions, taskQueryOptions } from "muster-client/query";
import { directoryStore } from "muster-client/node";
import { httpStore } from "muster-client/stores/http";
import { kuboStore } from "muster-client/stores/ipfs";
import { s3Store, signedStore } from "muster-client/stores/s3";
import { startNetwork } from "muster-client/test";
import { type Replayed, replayTransaction } from "muster-client/replay";
import { type Check, verifyTask } from "muster-client/verify";

const address: Address = "0x0000000000000000000000000000000000000001";
const client = createWalletClient({ chain: mainnet, account: address, transport: http() })
  .extend(publicActions)
  .extend(musterActions({ address }));
const s3 = { bucket: "b", accessKeyId: "c", secretAccessKey: "d" };
const plain = createPublicClient({ transport: http() });

export async function actions(): Promise<void> {
  const { id, hash, task } = await client.createTask({ kind: 1, models: ["gpt", 5n], value: 1n });
  const numbers: [bigint, Hex, Task] = [id, hash, task];
  const { stake, models } = await client.getNode({ number: 1 });
  const amounts: [bigint, readonly bigint[]] = [stake, models];
  const { list, total } = await client.getQueues({ from: 0, count: 1 });
  const group: number = list[0]!.queue + total;
  const owner: Address = await client.getOwner();
  const same: Address = (await getNode(plain, { address, number: 1 })).operator;
  const ended = await waitForTask(plain, { address, id });
  const block: bigint = ended.endedIn;
  const placed = await client.waitForTask({ id, until: "placed" });
  // @ts-expect-error It may not have ended.
  placed.endedIn;
  // @ts-expect-error A fee must be said.
  await client.createTask({ kind: 1 });
  await client.createTask({ kind: TaskKind.gpt, redundancy: 3, inputDigest: "0x", value: 1n });
  // @ts-expect-error There is no such kind.
  await client.createTask({ kind: 3, value: 1n });
  // @ts-expect-error Nor such a policy.
  await client.estimateTask({ kind: 1, redundancy: 4 });
  // @ts-expect-error Of two digests one would be lost.
  await client.createTask({ kind: 1, input: "a", inputDigest: "0x", value: 1n });
  // @ts-expect-error Only an input can be stored.
  await client.createTask({ kind: 1, inputDigest: "0x", store: "https://a", value: 1n });
  // @ts-expect-error A store is a URL, or has a `name` and a `get`.
  await client.createTask({ kind: 1, input: "a", store: { bucket: "b" }, value: 1n });
  const stored = await client.createTask({ kind: 1, input: "a", store: [s3Store(s3), kuboStore("http://a"), httpStore("https://a"), "https://b"], private: true, value: 1n });
  const opens: string | undefined = stored.identity;
  const { bytes } = await client.waitForTask({ id, until: "result", stores: "https://a", identity: opens });
  const given: Uint8Array = bytes;
  // @ts-expect-error `stores` is for waits until the result.
  await client.waitForTask({ id, stores: "https://a" });
  const { inputDigest } = await client.putInput({ input: given, store: signedStore("ours", async (name, method) => `https://c/${method}/${name}`) });
  await client.createTask({ kind: 1, inputDigest, value: 1n });
  // @ts-expect-error A kind is one of three, not any number.
  await client.estimateTask({ kind: 1 as number });
  const reasons: readonly (Refusal | undefined)[] = (await client.createTasks({ tasks: [{ kind: 1, value: 1n }] })).refusals;
  // @ts-expect-error Nodes have numbers.
  await client.getNode({ number: 1n });
  // @ts-expect-error Without the decorator an address is needed.
  await createTask(plain, { kind: 1, value: 1n });
  watchNode(plain, { address, node: 1, onEvents: (events, next: bigint) => console.log(events[0]!.eventName, next) });
  void [reasons, numbers, amounts, group, owner, same, block, directoryStore("."), startNetwork];
}

/** The union narrows, and a `switch` over it is known to be exhaustive. */
export function told(task: Task): string {
  switch (task.status) {
    case "pending":
      return `drawn by block ${task.drawBlock}`;
    case "queued":
      return `ticket ${task.ticket}`;
    case "running":
    case "committed":
      return `node ${task.node} until ${task.deadline}`;
    case "sampled":
      return `validators by block ${task.drawBlock}`;
    case "validating":
      return task.members.map(({ node, stage }) => `${node} ${stage}`).join();
    case "succeeded":
      return task.answers.map(({ node, paid }) => `${node} ${paid}`).join();
    case "failed":
      return `code ${task.code}`;
    case "undecided":
    case "timedOut":
    case "cancelled":
    case "evicted":
    case "expired":
    case "nodeSlashed":
      return `${task.refund} ${hasEnded(task) && task.endedIn}`;
  }
}

export function refused(error: unknown): bigint | undefined {
  if (!(error instanceof RefusalError)) return undefined;
  const { refusal }: { refusal: Refusal } = error;
  // @ts-expect-error Not every refusal has it.
  refusal.args.least;
  return refusal.name === "FeeTooLow" ? refusal.args.least : undefined;
}

export const options = [
  taskQueryOptions(plain, { address, id: 1n }),
  readQueryOptions(plain, "overview", { address })
    .queryFn({ signal: new AbortController().signal })
    .then(({ nodesJoined }) => nodesJoined + 1),
];
export const names: "alphaMilli" = musterParameters[0].name;
export const first: "error" = musterAbi[0].type;
export const wrong: Promise<Check[]> = verifyTask(plain, { address, id: 1n, replay: replayTransaction }).then((checks) => checks.filter(({ result }) => result === "wrong"));
export const again: Promise<Replayed> = replayTransaction(plain, { address, hash: "0x", blockNumber: 1n });
export const parsed: bigint = parse<bigint>("1");
