// viem against a running node: RPC_URL=http://... node viem.mjs
import assert from "node:assert/strict";
import {
  BaseError,
  ContractFunctionRevertedError,
  createPublicClient,
  createTestClient,
  createWalletClient,
  defineChain,
  http,
  parseEther,
  parseEventLogs,
  webSocket,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { compile } from "./compile.mjs";
import { DEV_KEY, RPC_URL, WS_URL, until } from "./node.mjs";

const chain = defineChain({
  id: 412346,
  name: "muster-devnode",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [RPC_URL], webSocket: [WS_URL] } },
});
const account = privateKeyToAccount(DEV_KEY);
const reader = createPublicClient({ chain, transport: http(RPC_URL, { batch: true }), pollingInterval: 20 });
const writer = createWalletClient({ chain, account, transport: http(RPC_URL) });
const { abi, bytecode } = compile();

// Deployment with constructor arguments and value.
const deployed = await reader.waitForTransactionReceipt({
  hash: await writer.deployContract({ abi, bytecode, args: [account.address, 40n], value: parseEther("1") }),
});
assert.equal(deployed.status, "success");
const address = deployed.contractAddress;
const read = (functionName, args = []) => reader.readContract({ address, abi, functionName, args });
assert.equal(await read("number"), 40n);
assert.equal(await read("owner"), account.address);
assert.equal(await reader.getBalance({ address }), parseEther("1"));

// Several reads in one batch.
assert.deepEqual(
  await Promise.all([reader.getChainId(), read("number"), read("counts", [account.address]), reader.getGasPrice()]),
  [412346, 40n, 0n, 100000000n],
);

// Polling and WebSocket, side by side.
const polled = [];
const pushed = [];
const heads = [];
const socket = createPublicClient({ chain, transport: webSocket(WS_URL) });
const stops = [
  reader.watchContractEvent({ address, abi, eventName: "Counted", onLogs: (logs) => polled.push(...logs) }),
  socket.watchContractEvent({ address, abi, eventName: "Counted", onLogs: (logs) => pushed.push(...logs) }),
  socket.watchBlocks({ onBlock: (block) => heads.push(block) }),
];
await new Promise((resolve) => setTimeout(resolve, 200));
for (const by of [1n, 2n, 3n]) {
  const { request } = await reader.simulateContract({ account, address, abi, functionName: "count", args: [by] });
  await reader.waitForTransactionReceipt({ hash: await writer.writeContract(request) });
}
await until("three polled events", () => polled.length >= 3);
await until("three pushed events", () => pushed.length >= 3);
await until("three heads", () => heads.length >= 3);
assert.deepEqual(polled.map((log) => log.args.number), [41n, 43n, 46n]);
assert.deepEqual(pushed.map((log) => log.transactionHash), polled.map((log) => log.transactionHash));
for (const stop of stops) stop();

// Events with structs, by topic.
const filed = await reader.waitForTransactionReceipt({
  hash: await writer.writeContract({ address, abi, functionName: "file", args: [9n, "llama"] }),
});
const [event] = parseEventLogs({ abi, logs: filed.logs });
assert.equal(event.eventName, "Filed");
assert.deepEqual(event.args, { id: 9n, job: { id: 9n, owner: account.address, model: "llama" } });
const found = await reader.getContractEvents({ address, abi, eventName: "Filed", args: { id: [8n, 9n] }, fromBlock: 0n });
assert.equal(found.length, 1);

// Typed errors, reasons, panics.
const failure = async (functionName, args) => {
  const error = await reader.simulateContract({ address, abi, functionName, args }).then(
    () => assert.fail(`${functionName} should have failed`),
    (error) => error,
  );
  assert.ok(error instanceof BaseError);
  return error.walk((e) => e instanceof ContractFunctionRevertedError);
};
const typed = await failure("count", [0n]);
assert.equal(typed.data.errorName, "TooSmall");
assert.deepEqual(typed.data.args, [0n, 1n]);
assert.equal((await failure("say", ["not today"])).reason, "not today");
assert.match((await failure("divide", [0n])).shortMessage, /[Dd]ivi/);

// A failing transaction can be understood.
const attempted = await writer.writeContract({ address, abi, functionName: "attempt", args: [0n] });
await reader.waitForTransactionReceipt({ hash: attempted });
if (process.env.TRACE !== "no") {
  const trace = await reader.request({
    method: "debug_traceTransaction",
    params: [attempted, { tracer: "callTracer" }],
  });
  assert.equal(trace.type, "CALL");
  assert.equal(trace.calls.length, 1);
  assert.equal(trace.calls[0].error, "execution reverted");
}

// Every kind of transaction.
for (const kind of [{ type: "legacy" }, { type: "eip2930", accessList: [] }, { type: "eip1559" }]) {
  const hash = await writer.sendTransaction({ to: account.address, value: 1n, ...kind });
  const receipt = await reader.waitForTransactionReceipt({ hash });
  assert.equal(receipt.type, kind.type);
  assert.equal((await reader.getTransaction({ hash })).type, kind.type);
}

// Time and snapshots.
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
const fees = await reader.estimateFeesPerGas();
assert.ok(fees.maxFeePerGas >= 100000000n);
process.stdout.write("viem: ok\n", () => process.exit(0));
