// The same with ethers v6, by the interface alone: RPC_URL=http://... CHAIN_ID=... MUSTER=0x... PRIVATE_KEY=0x... STORE=http://... node ethers.mjs
import { Contract, FetchRequest, JsonRpcProvider, Wallet, id as keccak, sha256, toUtf8Bytes } from "ethers";
import { musterAbi } from "muster-client/abi";

const { RPC_URL, CHAIN_ID, MUSTER, PRIVATE_KEY, STORE } = process.env;
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const endpoint = new FetchRequest(RPC_URL);
// An endpoint that answers 429 is asked later each time: ethers takes its seconds for milliseconds.
endpoint.retryFunc = (_, __, attempt) => sleep(500 * (attempt + Math.random())).then(() => true);
// Nothing is sent on another chain.
const provider = new JsonRpcProvider(endpoint, Number(CHAIN_ID), { pollingInterval: 1_000 });
const muster = new Contract(MUSTER, musterAbi, new Wallet(PRIVATE_KEY, provider));

const model = BigInt(keccak("stabilityai/sdxl-turbo").slice(0, 12)); // the hash's first five bytes
const inputDigest = sha256(toUtf8Bytes("a horse on the moon"));
const spec = { kind: 0, units: 1, vram: 24, gpu: 0, redundancy: 0, flags: 0, inputDigest, models: [model] };
// Without a Muster at the address this throws, before anything is paid.
const { leastFee } = await muster.estimate(spec.kind, spec.units);

// A transaction that failed throws too.
const receipt = await (await muster.createTask(spec, { value: leastFee })).wait();
const { id } = receipt.logs.map((log) => muster.interface.parseLog(log)).findLast((event) => event?.name === "TaskCreated").args;
console.log(`task ${id} is pending`);

// Past events from the creation on, so that none is missed. Each block is asked for once, and no more at a time than endpoints give. The
// application's own call makes the draw if nobody else does.
const topics = [["TaskSucceeded", "TaskErrorReported", "TaskAborted"].map((name) => muster.interface.getEvent(name).topicHash)];
let end;
for (let fromBlock = receipt.blockNumber; !end; ) {
  await sleep(1_000);
  if ((await muster.locate(id, 0, 0n)).status === 1n) await (await muster.dispatch(1, { gasLimit: 2_000_000n })).wait();
  const toBlock = Math.min(await provider.getBlockNumber(), fromBlock + 9_999);
  if (toBlock < fromBlock) continue;
  const logs = await provider.getLogs({ address: MUSTER, topics, fromBlock, toBlock });
  end = logs.map((log) => muster.interface.parseLog(log)).find((event) => event.args.id === id);
  fromBlock = toBlock + 1;
}
if (end.name !== "TaskSucceeded") throw new Error(`task ${id}: ${end.name}, ${end.args.refund} wei are back`);

const response = await fetch(`${STORE}/${end.args.resultDigest.slice(2)}`);
if (!response.ok) throw new Error(`the store answered ${response.status}`);
const bytes = new Uint8Array(await response.arrayBuffer());
if (sha256(bytes) !== end.args.resultDigest) throw new Error("the stored bytes do not match the answer");
console.log(`node ${end.args.node}: ${new TextDecoder().decode(bytes)}`);
provider.destroy();
