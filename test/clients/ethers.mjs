// ethers.js against a running node: RPC_URL=http://... node ethers.mjs
import assert from "node:assert/strict";
import { ContractFactory, JsonRpcProvider, NonceManager, Wallet, WebSocketProvider, isCallException, isError, parseEther } from "ethers";
import { compile } from "./compile.mjs";
import { DEV_KEY, RPC_URL, WS_URL, until } from "./node.mjs";

const provider = new JsonRpcProvider(RPC_URL, undefined, { polling: true, cacheTimeout: -1 });
provider.pollingInterval = 20;
const wallet = new Wallet(DEV_KEY, provider);
const { abi, bytecode } = compile();
assert.equal((await provider.getNetwork()).chainId, 412346n);

// Deployment with constructor arguments and value.
const probe = await new ContractFactory(abi, bytecode, wallet).deploy(wallet.address, 40n, { value: parseEther("1") });
await probe.waitForDeployment();
const address = await probe.getAddress();
assert.equal(await probe.number(), 40n);
assert.equal(await provider.getBalance(address), parseEther("1"));

// Polling and WebSocket, side by side.
const polled = [];
const pushed = [];
const socket = new WebSocketProvider(WS_URL);
const heads = [];
await socket.on("block", (number) => heads.push(number));
await probe.connect(socket).on("Counted", (by, number) => pushed.push(number));
await probe.on("Counted", (by, number) => polled.push(number));
await new Promise((resolve) => setTimeout(resolve, 200));
for (const by of [1n, 2n, 3n]) await (await probe.count(by)).wait();
await until("three polled events", () => polled.length >= 3);
await until("three pushed events", () => pushed.length >= 3);
await until("three heads", () => heads.length >= 3);
assert.deepEqual(polled, [41n, 43n, 46n]);
assert.deepEqual(pushed, polled);
await probe.off("Counted");

// Events with structs.
const receipt = await (await probe.file(9n, "llama")).wait();
const filed = probe.interface.parseLog(receipt.logs[0]);
assert.equal(filed.name, "Filed");
assert.equal(filed.args.job.model, "llama");
assert.equal((await probe.queryFilter(probe.filters.Filed(9n), 0)).length, 1);

// Typed errors, reasons, panics; before sending and after.
const failure = (promise) => promise.then(() => assert.fail("should have failed"), (error) => error);
const typed = await failure(probe.count.staticCall(0n));
assert.ok(isCallException(typed));
assert.equal(typed.revert.name, "TooSmall");
assert.deepEqual([...typed.revert.args], [0n, 1n]);
// The estimate before sending fails with the same data; ethers leaves its decoding to the caller.
assert.equal(probe.interface.parseError((await failure(probe.count(0n))).data).name, "TooSmall");
assert.equal((await failure(probe.say("not today"))).reason, "not today");
assert.match((await failure(probe.divide(0n))).reason, /DIVIDE_BY_ZERO|divi/i);
const mined = await failure((await probe.count(0n, { gasLimit: 100000n })).wait());
assert.equal(mined.receipt.status, 0);

// Refusals that ethers knows by the words.
const tx = { to: wallet.address, value: 1n };
const low = await failure(wallet.sendTransaction({ ...tx, nonce: 0, gasLimit: 21000n }));
assert.ok(isError(low, "NONCE_EXPIRED"), low.code);
const pauper = new Wallet(`0x${"11".repeat(32)}`, provider);
const poor = await failure(pauper.sendTransaction({ ...tx, value: parseEther("5"), gasLimit: 21000n }));
assert.ok(isError(poor, "INSUFFICIENT_FUNDS"), poor.code);

// Every kind of transaction, and many at once.
for (const type of [0, 1, 2]) {
  const receipt = await (await wallet.sendTransaction({ ...tx, type })).wait();
  assert.equal(receipt.type, type);
}
const manager = new NonceManager(wallet);
const sent = await Promise.all(Array.from({ length: 20 }, () => manager.sendTransaction({ ...tx, gasLimit: 21000n })));
await Promise.all(sent.map((tx) => tx.wait()));

// The node's own accounts.
const signer = await provider.getSigner(1);
await (await signer.sendTransaction({ to: address, value: 5n })).wait();
const block = await provider.getBlock("latest", true);
assert.equal(block.prefetchedTransactions[0].from, await signer.getAddress());
await socket.destroy();
process.stdout.write("ethers: ok\n", () => process.exit(0));
