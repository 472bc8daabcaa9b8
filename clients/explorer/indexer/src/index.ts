/** Reads every event of the contract: its own row, its transaction, the sums, and its handler. */
import { ponder } from "ponder:registry";
import type { Hex } from "viem";
import { handlers } from "./handlers";
import { EVENTS, type EventName, FUNCTIONS } from "./interface";
import { type Log, Scene } from "./scene";

type Values = Record<string, unknown>;

/** The account that an event concerns: the node's operator, the task's creator, or the receiver. */
const accountOf = (args: Values) => (args.operator ?? args.creator ?? args.account ?? args.application ?? null) as Hex | null;

/** JSON has no numbers as large as these. */
const plain = (args: Values): unknown =>
  JSON.parse(JSON.stringify(args, (_, value: unknown) => (typeof value === "bigint" ? value.toString() : value)));

async function note(scene: Scene, log: Log, args: Values) {
  const { id } = scene;
  const node = (args.node as number | undefined) ?? null;
  await scene.row("event", { id }, () => ({
    ...{ id, name: log.name, args: plain(args), block: log.block, blockHash: log.blockHash, at: log.at, tx: log.tx, node, account: accountOf(args) },
    task: (args.id ?? args.task ?? null) as bigint | null,
    model: (args.model ?? null) as bigint | null,
  }));
  const network = await scene.network();
  network.events++;
  [network.block, network.blockHash, network.at] = [log.block, log.blockHash, log.at];
  await scene.count({ events: 1 });
  // Only events directly after the slash are a part of it.
  if (!(log.name === "MemberTimedOut" && network.slashing === node)) network.slashing = log.name === "NodeSlashed" ? node : null;
  if (node !== null) {
    const row = await scene.find("node", { number: node });
    if (row) row.seenAt = log.at;
  }
}

for (const name of EVENTS) {
  ponder.on(`Muster:${name}`, async ({ event, context }) => {
    const { block, transaction, transactionReceipt } = event;
    const log = { name, block: block.number, blockHash: block.hash, logIndex: event.log.logIndex, at: block.timestamp, tx: transaction.hash };
    const scene = new Scene(context.db, log);
    await note(scene, log, (event.args ?? {}) as Values);
    const known = await scene.find("transaction", { hash: transaction.hash });
    if (!known) {
      const selector = transaction.to === event.log.address && transaction.input.length >= 10 ? (transaction.input.slice(0, 10) as Hex) : null;
      const [gasUsed, gasPrice] = [transactionReceipt.gasUsed, transactionReceipt.effectiveGasPrice];
      await scene.row("transaction", { hash: transaction.hash }, () => ({
        ...{ hash: transaction.hash, block: log.block, at: log.at, sender: transaction.from, selector, gasUsed, gasPrice },
        call: selector === null ? null : (FUNCTIONS.get(selector) ?? null),
      }));
      (await scene.network()).transactions++;
      await scene.count({ transactions: 1, gas: gasUsed });
    }
    // The name and its values belong together, which TypeScript cannot follow through the loop.
    await (handlers[name as EventName] as (scene: Scene, args: unknown) => Promise<void>)(scene, event.args);
    await scene.close();
  });
}
