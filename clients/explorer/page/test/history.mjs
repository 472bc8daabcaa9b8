// Events on the network from before the tests.
import { TaskKind, modelId } from "muster-client";
import { musterAbi } from "muster-client/abi";
import { FEE, MODELS } from "./network.mjs";

const timeout = 300_000;

/** Tasks of every policy, that end well and badly; returns their ids by outcome. */
export async function makeHistory({ network }) {
  const { client, nodes } = network;
  const gpu = nodes[0].group;
  const create = (request) => client.createTask({ kind: TaskKind.gpt, input: "a question", value: FEE, ...request });
  const ended = async (request) => {
    const { id, task } = await create(request);
    await client.waitForTask({ id, fromBlock: task.createdIn, timeout });
    return id;
  };
  const all = (behaviour) => nodes.forEach((node) => node.behave(behaviour));
  const made = { single: [] };
  for (let i = 0; i < 24; i++) made.single.push(await ended(i % 3 ? { models: [modelId(MODELS[i % 2])] } : {}));
  made.sampled = await ended({ redundancy: 1, gpu });
  // One that cheats, among the drawn nodes.
  nodes[0].behave("cheats");
  const isJudged = async (id) => (await client.getTask({ id })).members?.some(({ node, verdict }) => node === nodes[0].number && verdict === "wrong");
  for (let i = 0; i < 20 && !made.cheated; i++) {
    const id = await ended({ redundancy: 2, gpu, value: 3n * FEE });
    if (await isJudged(id)) made.cheated = id;
  }
  all("answers");
  made.images = await ended({ kind: TaskKind.stableDiffusion, units: 2, redundancy: 2, value: 6n * FEE });
  const profile = { algorithm: 1, least: 3, most: 3, reschedules: 2, targeting: 2, target: 49n * 10n ** 16n, alpha: 5n * 10n ** 17n, period: 300 };
  const hash = await client.writeContract({ address: network.address, abi: musterAbi, functionName: "setProfile", args: [profile] });
  await client.waitForTransactionReceipt({ hash, pollingInterval: 50 });
  made.rated = await ended({ redundancy: 3, gpu, value: 3n * FEE });
  all("fails");
  made.failed = await ended({});
  all("silent");
  const { id } = await create({});
  await client.waitForTask({ id, until: "placed", timeout });
  await network.increaseTime(3_600);
  const end = await client.waitForTask({ id, timeout });
  made.late = { id, node: end.node };
  all("answers");
  return made;
}
