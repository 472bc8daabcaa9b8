// viem against a running node and a Muster on it: RPC_URL=http://... MUSTER=0x... npx tsx viem.ts
import assert from "node:assert/strict";
import {
  type Abi,
  type AbiParameter,
  type Address,
  BaseError,
  ContractFunctionRevertedError,
  type Hex,
  type Log,
  createPublicClient,
  createTestClient,
  createWalletClient,
  decodeErrorResult,
  decodeEventLog,
  defineChain,
  encodeAbiParameters,
  encodeFunctionData,
  http,
  keccak256,
  parseAbiParameters,
  parseEther,
  toHex,
  webSocket,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { musterAbi } from "../../abi/muster";
import { musterParameters } from "../../abi/parameters";
import { application as follow } from "./application.mjs";
import { compile } from "./compile.mjs";
import { Index } from "./explorer";
import { CHECKED, DEV_KEY, MUSTER, RPC_URL, WS_URL, timeTravel, until } from "./node.mjs";
import { DIGEST, FEE, byName, newKey, story } from "./story.mjs";
import { validated } from "./validated.mjs";

const chain = defineChain({
  id: 412346,
  name: "muster-devnode",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [RPC_URL], webSocket: [WS_URL] } },
  contracts: { multicall3: { address: "0xcA11bde05977b3631167028862bE2a173976CA11" } },
});
const reader = createPublicClient({ chain, transport: http(RPC_URL, { batch: true }), pollingInterval: 20 });
const socket = createPublicClient({ chain, transport: webSocket(WS_URL) });
const wallet = (key: string) =>
  createWalletClient({ chain, account: privateKeyToAccount(key as Hex), transport: http(RPC_URL) });
const boss = wallet(DEV_KEY);
const mined = async (hash: Hex) => {
  const receipt = await reader.waitForTransactionReceipt({ hash });
  assert.equal(receipt.status, "success");
  return receipt;
};
/** All earlier requests are answered: a watcher asks where it begins, and tells nobody when it has. */
const heardOut = async () => {
  await new Promise((resolve) => setTimeout(resolve, 200));
  for (let i = 0; i < 3; i++) await Promise.all([reader, socket].map((client) => client.request({ method: "eth_chainId" })));
};
const address = MUSTER as Address;
const muster = { address, abi: musterAbi } as const;

// Everything the contract does from here on is watched in both ways.
const polled: Log[] = [];
const pushed: Log[] = [];
const heads: bigint[] = [];
const stops = [
  reader.watchContractEvent({ ...muster, onLogs: (logs) => polled.push(...logs) }),
  socket.watchContractEvent({ ...muster, onLogs: (logs) => pushed.push(...logs) }),
  socket.watchBlocks({ onBlock: (block) => heads.push(block.number) }),
];
await heardOut();

// The list of parameters is that of the contract itself, as far as it is the same in every network.
const parameter = (number: number) => reader.readContract({ ...muster, functionName: "parameter", args: [number] });
for (const { number, name, default: begins, least, most } of musterParameters) {
  const [value, lowest, highest] = await parameter(number);
  assert.equal(lowest, least, name);
  if (typeof begins === "bigint") assert.equal(value, begins, name);
  if (typeof most === "bigint") assert.equal(highest, most, name);
}
type Name = (typeof musterParameters)[number]["name"];
const numberOf = (name: Name) => musterParameters.find((parameter) => parameter.name === name)!.number;

// A node joins.
const [operator, application] = [wallet(newKey()), wallet(newKey())];
const [least] = await parameter(numberOf("minStake"));
// Nobody has joined with this GPU before.
const [groupFee] = await parameter(numberOf("groupFee"));
const { stakeUnit } = await reader.readContract({ ...muster, functionName: "overview" });
const stake = (least + groupFee) * stakeUnit;
for (const { account } of [operator, application]) {
  await mined(await boss.sendTransaction({ to: account.address, value: stake + parseEther("0.02") }));
}
const model = BigInt(keccak256(toHex("stabilityai/sdxl-turbo")).slice(0, 12));
const joining = await reader.simulateContract({
  ...muster,
  account: operator.account,
  functionName: "join",
  args: ["NVIDIA GeForce RTX 4090", 24, [model]],
  value: stake,
});
await mined(await operator.writeContract(joining.request));
const node: number = await reader.readContract({ ...muster, functionName: "nodeOf", args: [operator.account.address] });
assert.equal(node, joining.result);

// An application creates a task. It waits for the block that draws its node; a later transaction starts it.
const started: { id: bigint; by: string }[] = [];
for (const [by, client] of [["polling", reader], ["subscription", socket]] as const) {
  const watch = client.watchContractEvent({
    ...muster,
    eventName: "TaskStarted",
    args: { node },
    strict: true,
    onLogs: (logs) => started.push(...logs.map(({ args }) => ({ id: args.id, by }))),
  });
  stops.push(watch);
}
await heardOut();
const inputDigest = keccak256(toHex("a horse on the moon"));
const task = { kind: 0, units: 4, vram: 24, gpu: 0, redundancy: 0, flags: 0, inputDigest, models: [model] };
await mined(await application.writeContract({ ...muster, functionName: "createTask", args: [task], value: FEE }));
const [pending] = await reader.readContract({ ...muster, functionName: "pendingTasks", args: [0, 10] });
assert.deepEqual([pending.creator, pending.fee], [application.account.address, FEE]);

// A page's values are read at once by Multicall3, one refusal among them. A node without that contract gets its code along.
const deployless = (await reader.getCode(chain.contracts.multicall3)) === undefined;
assert.ok(!deployless || !(await timeTravel()), "Multicall3 is not at its address");
const [overview, nodes, tasks, unknown] = await reader.multicall({
  deployless,
  contracts: [
    { ...muster, functionName: "overview" },
    { ...muster, functionName: "nodes", args: [node, 1] },
    { ...muster, functionName: "pendingTasks", args: [0, 10] },
    { ...muster, functionName: "gpuGroup", args: ["a GPU of nobody", 24] },
  ],
});
assert.ok(overview.status === "success" && nodes.status === "success" && tasks.status === "success");
assert.deepEqual([overview.result.stakeUnit, overview.result.pending], [stakeUnit, tasks.result.length]);
assert.deepEqual(nodes.result.map((view) => [view.node, view.operator]), [[node, operator.account.address]]);
assert.deepEqual(tasks.result[0], pending);
assert.ok(unknown.status === "failure" && unknown.error instanceof BaseError);
const { data: nobody } = unknown.error.walk((e) => e instanceof ContractFunctionRevertedError) as ContractFunctionRevertedError;
assert.deepEqual([nobody?.errorName, nobody?.args], ["GpuNameUnknown", ["a GPU of nobody", 24]]);
assert.deepEqual(started, []);
for (let tries = 0; tries < 100 && started.length === 0; tries++) {
  await mined(await boss.writeContract({ ...muster, functionName: "dispatch", args: [1] }));
  await new Promise((resolve) => setTimeout(resolve, 50));
}
await until("the start seen in both ways", () => started.length === 2);
assert.deepEqual(new Set(started.map(({ by }) => by)), new Set(["polling", "subscription"]));
assert.ok(started.every(({ id }) => id === pending.id));

// The node answers and is paid.
const answer = await mined(
  await operator.writeContract({ ...muster, functionName: "submit", args: [pending.id, DIGEST as Hex] }),
);
const [success] = answer.logs.map((log) => decodeEventLog({ abi: musterAbi, ...log })).filter((event) => event.eventName === "TaskSucceeded");
assert.deepEqual(success.args, { id: pending.id, node, creator: application.account.address, resultDigest: DIGEST, paid: FEE });
const { credit } = await reader.readContract({ ...muster, functionName: "account", args: [operator.account.address] });
assert.equal(credit, FEE);
await mined(await operator.writeContract({ ...muster, functionName: "quit" }));

// Every event and every error.
let told = "events and errors left out, because this node's clock cannot be moved";
if (await timeTravel()) {
  /** A contract by its interface. */
  const at = (address: Address, abi: Abi) => {
    const inputs = (kind: "event" | "error", name: string) =>
      (abi.find((item) => item.type === kind && item.name === name) as { inputs: readonly AbiParameter[] }).inputs;
    return {
      address: address.toLowerCase(),
      call: (functionName: string, args: unknown[]) => reader.readContract({ address, abi, functionName, args }),
      encode: (functionName: string, args: unknown[]) => encodeFunctionData({ abi, functionName, args }),
      error: (data: Hex) => {
        const { errorName: name, args = [] } = decodeErrorResult({ abi, data });
        return { name, args: byName(inputs("error", name), args) };
      },
      event: (log: { topics: [Hex, ...Hex[]]; data: Hex }) => {
        const { eventName, args = {} } = decodeEventLog({ abi, topics: log.topics, data: log.data });
        return { name: eventName!, args: byName(inputs("event", eventName!), args) };
      },
      refused: async (account: Address, functionName: string, args: unknown[], value: bigint) => {
        const call = { address, abi, account, functionName, args, value };
        const e = await reader.simulateContract(call as never).then(() => assert.fail(`${functionName} was not refused`), reverted);
        const { data } = e.walk((cause) => cause instanceof ContractFunctionRevertedError) as ContractFunctionRevertedError;
        assert.ok(data, e.message);
        return { name: data.errorName, args: byName(inputs("error", data.errorName), data.args ?? []) };
      },
    };
  };
  const reverted = (e: unknown) => {
    assert.ok(e instanceof BaseError);
    return e;
  };
  const raw = async ({ from, ...call }: { from: Address; to: Address; data: Hex; value?: bigint; gas?: bigint }) => {
    const e = await reader.call({ account: from, ...call }).then(() => assert.fail("was not refused"), reverted);
    return e.walk((cause) => typeof (cause as { data?: unknown }).data === "string") as unknown as { data: Hex };
  };
  const own = at(address, musterAbi as Abi);
  const index = new Index(reader, address);
  const client = {
    ...own,
    address: (key: string) => privateKeyToAccount(key as Hex).address,
    send: async (key: string, tx: object) => mined(await wallet(key).sendTransaction({ gas: 6_000_000n, ...tx })),
    delegate: async (key: string, contractAddress: Address) => {
      const own = wallet(key);
      const authorizationList = [await own.signAuthorization({ contractAddress, executor: "self" })];
      return mined(await own.sendTransaction({ to: own.account.address, authorizationList, gas: 6_000_000n }));
    },
    at,
    raw,
    refusal: async (call: { from: Address; to: Address; data: Hex; value?: bigint; gas?: bigint }, by: { error: typeof own.error } = own) =>
      by.error((await raw(call)).data),
    rpc: (method: string, params: unknown[]) => reader.request({ method, params } as never),
    commitment: (id: bigint, node: bigint, kind: number, value: Hex, salt: Hex) =>
      keccak256(encodeAbiParameters(parseAbiParameters("uint64, uint32, uint8, bytes32, bytes32"), [id, Number(node), kind, value, salt])),
    compare: () => index.compare(),
  };
  const gas = await follow(MUSTER, client);
  console.log("gas that a contract needs to ask, its call and decoding included:");
  for (const [what, used] of Object.entries(gas)) console.log(`  ${what}: ${used}`);
  const checking = at(CHECKED as Address, musterAbi as Abi);
  const before = await validated(CHECKED, { ...client, ...checking, address: client.address });
  const { summary, logs } = await story(MUSTER, client, before);
  await index.compare();
  await index.histories();
  told = summary;

  // Both ways of watching have seen all of it, in order, once. The contract was deployed before they began.
  const all = await reader.getContractEvents({ ...muster, fromBlock: 0n });
  assert.equal(all.length, logs);
  const ids = (logs: Log[]) => logs.map((log) => [log.blockNumber, log.logIndex, (log as { eventName?: string }).eventName]);
  // Each begins when the node has taken it up, which the other does not wait for: from where both have begun.
  const first = (logs: Log[]) => logs[0]?.blockNumber ?? 0n;
  const start = () => (first(polled) > first(pushed) ? first(polled) : first(pushed));
  const from = (logs: Log[]) => ids(logs.filter((log) => (log.blockNumber ?? 0n) >= start()));
  await until("all events polled", () => from(polled).length >= from(all as Log[]).length);
  await until("all events pushed", () => from(pushed).length >= from(all as Log[]).length);
  assert.deepEqual(from(polled), from(all as Log[]));
  assert.deepEqual(from(pushed), from(all as Log[]));
}
await until("the newest head", async () => heads.at(-1) === (await reader.getBlockNumber({ cacheTime: 0 })));
for (const stop of stops) stop();

// Several reads in one batch.
assert.deepEqual(
  await Promise.all([reader.getChainId(), reader.getGasPrice(), reader.getBalance({ address: `0x${"77".repeat(20)}` })]),
  [412346, 100000000n, 0n],
);

// Cases that Muster cannot show: constructors, reasons, panics, a frame that fails below one that survives.
const { abi, bytecode } = compile() as { abi: Abi; bytecode: Hex };
const deployed = await mined(
  await boss.deployContract({ abi, bytecode, args: [boss.account.address, 40n], value: parseEther("1") }),
);
const probe = deployed.contractAddress!;
assert.equal(await reader.readContract({ address: probe, abi, functionName: "number" }), 40n);
assert.equal(await reader.getBalance({ address: probe }), parseEther("1"));
const failure = async (functionName: string, args: unknown[]) => {
  const error: unknown = await reader.simulateContract({ address: probe, abi, functionName, args }).then(
    () => assert.fail(`${functionName} should have failed`),
    (error) => error,
  );
  assert.ok(error instanceof BaseError);
  return error.walk((e) => e instanceof ContractFunctionRevertedError) as ContractFunctionRevertedError;
};
assert.equal((await failure("say", ["not today"])).reason, "not today");
assert.match((await failure("divide", [0n])).shortMessage, /[Dd]ivi/);
const attempted = await boss.writeContract({ address: probe, abi, functionName: "attempt", args: [0n] });
await mined(attempted);
const trace = (await reader.request({
  method: "debug_traceTransaction",
  params: [attempted, { tracer: "callTracer" }],
} as never)) as { type: string; calls: { error: string }[] };
assert.equal(trace.type, "CALL");
assert.equal(trace.calls.length, 1);
assert.equal(trace.calls[0].error, "execution reverted");

// Every kind of transaction.
for (const kind of [{ type: "legacy" }, { type: "eip2930", accessList: [] }, { type: "eip1559" }] as const) {
  const hash = await boss.sendTransaction({ to: boss.account.address, value: 1n, ...kind } as never);
  assert.equal((await mined(hash)).type, kind.type);
  assert.equal((await reader.getTransaction({ hash })).type, kind.type);
}
const fees = await reader.estimateFeesPerGas();
assert.ok(fees.maxFeePerGas >= 100000000n);

// Time and snapshots.
if (await timeTravel()) {
  const test = createTestClient({ chain, mode: "anvil", transport: http(RPC_URL) });
  const before = await reader.getBlock();
  const snapshot = await test.snapshot();
  await test.increaseTime({ seconds: 1000 });
  await test.mine({ blocks: 2 });
  const later = await reader.getBlock();
  assert.equal(later.number, before.number + 2n);
  assert.ok(later.timestamp >= before.timestamp + 1000n);
  await test.revert({ id: snapshot });
  assert.equal(await reader.getBlockNumber({ cacheTime: 0 }), before.number);
}
process.stdout.write(`viem: ok: ${told}\n`, () => process.exit(0));
