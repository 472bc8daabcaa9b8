// ethers.js against a running node and a Muster on it: RPC_URL=http://... MUSTER=0x... node ethers.mjs
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import {
  AbiCoder,
  Contract,
  ContractFactory,
  JsonRpcProvider,
  NonceManager,
  Wallet,
  WebSocketProvider,
  computeAddress,
  id,
  isCallException,
  isError,
  keccak256,
  parseEther,
} from "ethers";
import { application as follow } from "./application.mjs";
import { compile } from "./compile.mjs";
import { CHECKED, DEV_KEY, MUSTER, RPC_URL, WS_URL, timeTravel, until } from "./node.mjs";
import { DIGEST, FEE, byName, newKey, numberOf, spec, story } from "./story.mjs";
import { validated } from "./validated.mjs";

const musterAbi = JSON.parse(readFileSync(new URL("../../abi/IMuster.json", import.meta.url), "utf8"));
const provider = new JsonRpcProvider(RPC_URL, undefined, { polling: true, cacheTimeout: -1 });
provider.pollingInterval = 20;
const socket = new WebSocketProvider(WS_URL);
const boss = new Wallet(DEV_KEY, provider);
const muster = new Contract(MUSTER, musterAbi, provider);
const mined = async (sending) => {
  const receipt = await (await sending).wait();
  assert.equal(receipt.status, 1);
  return receipt;
};
/** All earlier requests are answered: a watcher asks where it begins, and tells nobody when it has. */
const heardOut = async () => {
  await new Promise((resolve) => setTimeout(resolve, 200));
  for (let i = 0; i < 3; i++) await Promise.all([provider.send("eth_chainId", []), socket.send("eth_chainId", [])]);
};
const failure = (promise) => promise.then(() => assert.fail("should have failed"), (error) => error);
assert.equal((await provider.getNetwork()).chainId, 412346n);

// Everything the contract does from here on is watched in both ways.
const polled = [];
const pushed = [];
const heads = [];
await socket.on("block", (number) => heads.push(number));
await muster.on("*", (event) => polled.push(event));
await muster.connect(socket).on("*", (event) => pushed.push(event));
await heardOut();

// A node joins.
const [operator, application] = [new Wallet(newKey(), provider), new Wallet(newKey(), provider)];
const [least] = await muster.parameter(numberOf("minStake"));
// Nobody has joined with this GPU before.
const [groupFee] = await muster.parameter(numberOf("groupFee"));
const { stakeUnit } = await muster.overview();
const stake = (least + groupFee) * stakeUnit;
for (const { address } of [operator, application]) {
  await mined(boss.sendTransaction({ to: address, value: stake + parseEther("0.02") }));
}
const model = BigInt(id("stabilityai/sdxl-turbo").slice(0, 12));
await mined(muster.connect(operator).join("NVIDIA GeForce RTX 4090", 24, [model], { value: stake }));
const node = await muster.nodeOf(operator.address);

// An application creates a task. It waits for the block that draws its node; a later transaction starts it.
// To a filter with values ethers hands one event, not its values one by one.
const started = [];
await muster.on(muster.filters.TaskStarted(null, node), ({ args }) => started.push(["polling", args.id]));
const listening = muster.connect(socket);
await listening.on(listening.filters.TaskStarted(null, node), ({ args }) => started.push(["subscription", args.id]));
await heardOut();
await mined(muster.connect(application).createTask(spec({ vram: 24, models: [model] }), { value: FEE }));
const [pending] = await muster.pendingTasks(0, 10);
assert.deepEqual([pending.creator, pending.fee], [application.address, FEE]);
assert.deepEqual(started, []);
for (let tries = 0; tries < 100 && started.length === 0; tries++) {
  await mined(muster.connect(boss).dispatch(1));
  await new Promise((resolve) => setTimeout(resolve, 50));
}
await until("the start seen in both ways", () => started.length === 2);
assert.deepEqual(started.sort(), [["polling", pending.id], ["subscription", pending.id]]);

// The node answers and is paid.
const answer = await mined(muster.connect(operator).submit(pending.id, DIGEST));
const success = answer.logs.find((log) => log.eventName === "TaskSucceeded");
assert.deepEqual(success.args.toObject(), { id: pending.id, node, creator: application.address, resultDigest: DIGEST, paid: FEE });
assert.equal((await muster.account(operator)).credit, FEE);
await mined(muster.connect(operator).quit());

// Every event and every error.
let told = "events and errors left out, because this node's clock cannot be moved";
if (await timeTravel()) {
  const decoded = ({ name, fragment, args }) => ({ name, args: byName(fragment.inputs.map(plain), args) });
  const plain = (input) => {
    const one = input.arrayChildren ?? input;
    const type = one.baseType === "tuple" ? "tuple" : one.type;
    return { name: input.name, type: type + (one === input ? "" : "[]"), components: one.components?.map(plain) };
  };
  /** A contract by its interface. */
  const at = (address, abi) => {
    const contract = new Contract(address, abi, provider);
    const face = contract.interface;
    return {
      address: address.toLowerCase(),
      call: (name, args) => contract[name](...args),
      encode: (name, args) => face.encodeFunctionData(name, args),
      error: (data) => decoded(face.parseError(data)),
      event: (log) => decoded(face.parseLog(log)),
      refused: async (from, name, args, value) => {
        const failed = await failure(contract[name].staticCall(...args, value ? { from, value } : { from }));
        assert.ok(isCallException(failed) && failed.revert, failed.message);
        // ethers hands the name and the values out itself; the fragment names them.
        return decoded({ name: failed.revert.name, fragment: face.getError(failed.revert.name), args: failed.revert.args });
      },
    };
  };
  const raw = async (call) => {
    const failed = await failure(provider.call({ ...call, gasLimit: call.gas }));
    assert.ok(isCallException(failed), failed.message);
    return failed;
  };
  const own = at(MUSTER, musterAbi);
  const client = {
    ...own,
    address: (key) => computeAddress(key),
    send: (key, tx) => mined(new Wallet(key, provider).sendTransaction({ gasLimit: 6_000_000n, ...tx })),
    delegate: async (key, address) => {
      const own = new Wallet(key, provider);
      // The transaction that carries it has a nonce of its own.
      const authorization = await own.authorize({ address, nonce: (await own.getNonce()) + 1 });
      return mined(own.sendTransaction({ to: own.address, authorizationList: [authorization], gasLimit: 6_000_000n }));
    },
    at,
    raw,
    refusal: async (call, by = own) => by.error((await raw(call)).data),
    rpc: (method, params) => provider.send(method, params),
    commitment: (...opening) => keccak256(AbiCoder.defaultAbiCoder().encode(["uint64", "uint32", "uint8", "bytes32", "bytes32"], opening)),
  };
  await follow(MUSTER, client);
  const before = await validated(CHECKED, { ...client, ...at(CHECKED, musterAbi), address: client.address });
  const { summary, logs } = await story(MUSTER, client, before);
  told = summary;

  // Both ways of watching have seen all of it, in order, the pushed ones once. The contract was deployed before they began.
  const all = await muster.queryFilter("*", 0);
  assert.equal(all.length, logs);
  const ids = (events) => events.map(({ log = null, fragment, ...event }) => {
    const { blockNumber, index } = log ?? event;
    return [blockNumber, index, fragment.name];
  });
  // Each begins when the node has taken it up, which the other does not wait for: from where both have begun.
  const begun = Math.max(...[polled, pushed].map(([{ log, blockNumber }]) => (log ?? { blockNumber }).blockNumber));
  const from = (events) => ids(events).filter(([blockNumber]) => blockNumber >= begun);
  const since = from(all);
  // ethers polls again before the last answer has come: on a busy machine it then tells an event twice.
  const once = (events) => [...new Set(events.map((id) => id.join()))];
  await until("all events polled", () => once(from(polled)).length >= since.length);
  await until("all events pushed", () => from(pushed).length >= since.length);
  assert.deepEqual(once(from(polled)), once(since));
  assert.deepEqual(from(pushed), since);
}
await until("the newest head", async () => heads.at(-1) === (await provider.getBlockNumber()));
await muster.removeAllListeners();

// Cases that Muster cannot show: constructors, reasons, panics, a transaction that fails after it was sent.
const { abi, bytecode } = compile();
const probe = await new ContractFactory(abi, bytecode, boss).deploy(boss.address, 40n, { value: parseEther("1") });
await probe.waitForDeployment();
const address = await probe.getAddress();
assert.equal(await probe.number(), 40n);
assert.equal(await provider.getBalance(address), parseEther("1"));
assert.equal((await failure(probe.say("not today"))).reason, "not today");
assert.match((await failure(probe.divide(0n))).reason, /DIVIDE_BY_ZERO|divi/i);
const late = await failure((await probe.count(0n, { gasLimit: 100000n })).wait());
assert.equal(late.receipt.status, 0);

// Refusals that ethers knows by the words.
const tx = { to: boss.address, value: 1n };
const low = await failure(boss.sendTransaction({ ...tx, nonce: 0, gasLimit: 21000n }));
assert.ok(isError(low, "NONCE_EXPIRED"), low.code);
const pauper = new Wallet(newKey(), provider);
const poor = await failure(pauper.sendTransaction({ ...tx, value: parseEther("5"), gasLimit: 21000n }));
assert.ok(isError(poor, "INSUFFICIENT_FUNDS"), poor.code);

// Every kind of transaction, and many at once.
for (const type of [0, 1, 2]) {
  assert.equal((await mined(boss.sendTransaction({ ...tx, type }))).type, type);
}
const manager = new NonceManager(boss);
const sent = await Promise.all(Array.from({ length: 20 }, () => manager.sendTransaction({ ...tx, gasLimit: 21000n })));
await Promise.all(sent.map((tx) => tx.wait()));

// The node's own accounts.
if (await timeTravel()) {
  const signer = await provider.getSigner(1);
  await mined(signer.sendTransaction({ to: address, value: 5n }));
  const block = await provider.getBlock("latest", true);
  assert.equal(block.prefetchedTransactions[0].from, await signer.getAddress());
}
await socket.destroy();
process.stdout.write(`ethers: ok: ${told}\n`, () => process.exit(0));
