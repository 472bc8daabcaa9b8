// An application with viem: RPC_URL=http://... CHAIN_ID=... MUSTER=0x... PRIVATE_KEY=0x... STORE=http://... node viem.mjs
import { createWalletClient, defineChain, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { RefusalError, TaskKind, musterActions } from "muster-client";

const { RPC_URL, CHAIN_ID, MUSTER, PRIVATE_KEY, STORE } = process.env;
// Nothing is sent on another chain. Those that viem knows it has in viem/chains.
const nativeCurrency = { name: "Ether", symbol: "ETH", decimals: 18 };
const chain = defineChain({ id: Number(CHAIN_ID), name: "the chain", nativeCurrency, rpcUrls: { default: { http: [RPC_URL] } } });
const client = createWalletClient({
  account: privateKeyToAccount(PRIVATE_KEY),
  chain,
  transport: http(),
  pollingInterval: 1_000,
}).extend(musterActions({ address: MUSTER }));

try {
  // The input goes to STORE, whose URL the account must publish once: setStores({ stores: [STORE] }).
  const request = { kind: TaskKind.stableDiffusion, units: 1, vram: 24, models: ["stabilityai/sdxl-turbo"], input: "a horse on the moon", store: STORE };
  const { leastFee, eligible, queue } = await client.estimateTask(request);
  console.log(`at least ${leastFee} wei; ${eligible} nodes could start it now, ${queue.before} tasks are before it in the queue`);

  // Draws the task's node too, if nobody else does.
  const { id, task } = await client.createTask({ ...request, value: leastFee, dispatch: true });
  console.log(`task ${id} is ${task.status}`);

  // A restarted process can wait for it again, by the id alone.
  const { bytes, answer } = await client.waitForTask({ id, until: "result", created: task, timeout: 600_000 });
  console.log(`node ${answer.node}: ${new TextDecoder().decode(bytes)}`);
} catch (error) {
  // The contract's refusals have a name, values and a sentence; all other errors are viem's.
  if (error instanceof RefusalError) console.error(error.refusal.name, error.refusal.args, error.shortMessage);
  throw error;
}
