// An application as it is by default: creates tasks, one after the other, sees each to its end, and says when: node latency.mjs N
//
// RPC_URL, CHAIN_ID, MUSTER and PRIVATE_KEY give the node, the contract and the account; the package is that of clients/ts, built. For each
// task it prints a line of JSON, with the task's id and four times in Unix milliseconds. They are when it was asked for, known to be
// created, known to be placed, and seen to have ended. Between two tasks a second or so passes, at random, so that they come at any moment
// between two blocks.
import { createWalletClient, defineChain, http } from "../../clients/ts/node_modules/viem/_esm/index.js";
import { privateKeyToAccount } from "../../clients/ts/node_modules/viem/_esm/accounts/index.js";
import { TaskKind, musterActions } from "../../clients/ts/dist/index.js";

const { RPC_URL, CHAIN_ID, MUSTER, PRIVATE_KEY } = process.env;
const nativeCurrency = { name: "Ether", symbol: "ETH", decimals: 18 };
const chain = defineChain({ id: Number(CHAIN_ID), name: "the chain", nativeCurrency, rpcUrls: { default: { http: [RPC_URL] } } });
const client = createWalletClient({ account: privateKeyToAccount(PRIVATE_KEY), chain, transport: http() }).extend(musterActions({ address: MUSTER }));
const request = { kind: TaskKind.gpt, input: "latency" };
const { leastFee } = await client.estimateTask(request);
for (let count = Number(process.argv[2]); count > 0; count--) {
  const asked = Date.now();
  const { id, task } = await client.createTask({ ...request, value: leastFee, dispatch: true });
  const placed = Date.now();
  const end = await client.waitForTask({ id, fromBlock: task.createdIn, dispatch: true });
  console.log(JSON.stringify({ id: Number(id), asked, placed, seen: Date.now(), status: end.status }));
  await new Promise((resolve) => setTimeout(resolve, 1_000 + 500 * Math.random()));
}
