/** Tasks whose nodes are chosen by their ratings, played on a network with a group of GPUs of their own: an application's profile, a majority, and none. */
import assert from "node:assert/strict";
import { type Address, type Hex, type PrivateKeyAccount, createWalletClient, decodeEventLog, encodeAbiParameters, encodeFunctionData, http, keccak256, parseEther, publicActions } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { musterAbi, parameterNumber } from "../src/interface";

const NODES = 5;
const [RIGHT, WRONG] = [`0x${"aa".repeat(32)}`, `0x${"bb".repeat(32)}`] as const;
/** Each member's answer; undefined for an error that it reports. */
type Answers = (position: number) => Hex | undefined;

/** `owner` is the contract's, and the application. Returns the ids of a task with a majority, and of one that no group agreed on, and the nodes' operators. */
export async function rated(url: string, address: Address, owner: PrivateKeyAccount): Promise<{ agreed: bigint; open: bigint; operators: ReadonlyMap<number, PrivateKeyAccount> }> {
  const client = createWalletClient({ account: owner, transport: http(url) }).extend(publicActions);
  const view = async (functionName: string, ...args: unknown[]) => client.readContract({ address, abi: musterAbi, functionName, args } as never) as Promise<any>;
  const send = async (account: PrivateKeyAccount, functionName: string, args: unknown[], value = 0n) => {
    const data = encodeFunctionData({ abi: musterAbi, functionName, args } as never);
    const hash = await client.sendTransaction({ account, chain: null, to: address, data, value, gas: 8_000_000n });
    const { status, logs } = await client.waitForTransactionReceipt({ hash, pollingInterval: 50 });
    assert.equal(status, "success", functionName);
    return logs.map((log) => decodeEventLog({ abi: musterAbi, ...log }));
  };

  // Nodes with a card of their own, whose answers are equal bit by bit.
  const { stakeUnit } = await view("overview");
  const [[least], [fee]] = await Promise.all([view("parameter", parameterNumber("minStake")), view("parameter", parameterNumber("groupFee"))]);
  const operators = new Map<number, PrivateKeyAccount>();
  let gpu = 0;
  for (let i = 0; i < NODES; i++) {
    const operator = privateKeyToAccount(generatePrivateKey());
    const stake = least * stakeUnit + (i ? 0n : fee * stakeUnit);
    await client.waitForTransactionReceipt({ hash: await client.sendTransaction({ chain: null, to: operator.address, value: stake + parseEther("1") }), pollingInterval: 50 });
    for (const { eventName, args } of await send(operator, "join", ["Rated", 24, []], stake)) {
      if (eventName === "NodeJoined") [gpu] = [args.group, operators.set(args.node, operator)];
    }
  }
  await send(owner, "listGpuGroup", [gpu, true]);
  // One of them is worked by another key, one has only named it.
  const [[first, operator], [, other]] = [...operators] as [[number, PrivateKeyAccount], [number, PrivateKeyAccount]];
  const worker = privateKeyToAccount(generatePrivateKey());
  await client.waitForTransactionReceipt({ hash: await client.sendTransaction({ chain: null, to: worker.address, value: parseEther("1") }), pollingInterval: 50 });
  await send(operator, "setWorker", [worker.address]);
  await send(worker, "acceptWork", [first]);
  await send(other, "setWorker", [owner.address]);
  // Newcomers' ratings never reach the target: First-fit takes as many as it may.
  const profile = { algorithm: 1, least: 3, most: NODES, reschedules: 1, targeting: 2, target: 99n * 10n ** 16n, alpha: 5n * 10n ** 17n, period: 300 };
  await send(owner, "setProfile", [profile]);

  const spec = { kind: 1, units: 10, vram: 24, gpu, redundancy: 3, flags: 1, inputDigest: `0x${"33".repeat(32)}`, models: [] };
  const create = async () => {
    for (const { eventName, args } of await send(owner, "createTask", [spec], parseEther("0.0005"))) if (eventName === "TaskCreated") return args.id;
    throw new Error("no task was created");
  };
  /** A group is formed of it, answers, and is judged. */
  const play = async (id: bigint, answers: Answers) => {
    let group: { group: number; nodes: readonly number[] } | undefined;
    for (let tries = 0; tries < 50 && !group; tries++) {
      for (const { eventName, args } of await send(owner, "dispatch", [4])) if (eventName === "GroupFormed" && args.id === id) group = args;
    }
    assert.equal(group?.nodes.length, NODES, "a group of all five");
    const openings = [];
    for (const [position, node] of group!.nodes.entries()) {
      const answer = answers(position);
      const [kind, value, salt] = [Number(answer === undefined), answer ?? (`0x${"00".repeat(31)}07` as Hex), generatePrivateKey()];
      const types = ["uint64", "uint32", "uint8", "bytes32", "bytes32"].map((type) => ({ type }));
      await send(operators.get(node)!, "commit", [id, keccak256(encodeAbiParameters(types, [id, node, kind, value, salt]))]);
      openings.push([id, group!.group, node, kind, value, salt]);
    }
    const events = [];
    for (const opening of openings) events.push(...(await send(owner, "reveal", opening)));
    const settled = events.find(({ eventName }) => eventName === "GroupSettled") ?? assert.fail("it was not judged");
    return { outcome: (settled.args as { outcome: number }).outcome, rated: events.filter(({ eventName }) => eventName === "NodeRated").length };
  };
  const agreed = await create();
  // A member that could not run it is not rated.
  assert.deepEqual(await play(agreed, (i) => (i === 1 ? WRONG : i === 3 ? undefined : RIGHT)), { outcome: 0, rated: NODES - 1 });
  // Once more, and then never: two and two, and one that says something else or cannot run it. Nobody is rated without a majority.
  const open = await create();
  assert.deepEqual(await play(open, (i) => [RIGHT, RIGHT, WRONG, WRONG, undefined][i]), { outcome: 4, rated: 0 });
  assert.deepEqual(await play(open, (i) => `0x${String(i + 1).repeat(64)}` as Hex), { outcome: 2, rated: 0 });
  return { agreed, open, operators };
}
