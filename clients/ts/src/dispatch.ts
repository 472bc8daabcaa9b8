/** Draws nodes; on a quiet network only the application that waits for a task does so. */
import type { MusterClient, MusterParameters } from "./client.js";
import { DRAWS, type SenderParameters, type Sent, readTogether, sendMuster } from "./contract.js";

/** Parameters of {@link dispatchTasks}. */
export type DispatchTasksParameters = MusterParameters & SenderParameters & { count?: number | undefined };

/** Draws up to `count` Pending tasks whose block has come, 16 at most, 1 if left out. */
export const dispatchTasks = (client: MusterClient, { count = 1, ...sender }: DispatchTasksParameters): Promise<Sent> =>
  sendMuster(client, "dispatch", { count }, { ...sender, draws: count });

/**
 * Draws as many as necessary to reach these tasks, within the limit of one call; those before them in the ring come first. Sends nothing if none of them
 * waits for a draw any more. Returns whether it has sent.
 */
export async function dispatchFor(
  client: MusterClient,
  muster: MusterParameters & SenderParameters,
  ids: readonly bigint[],
): Promise<boolean> {
  const page = { from: 0, count: DRAWS };
  const [ring, validators] = await readTogether(client, muster.address, [
    ["pendingTasks", page],
    ["validatorDraws", page],
  ]);
  const isOwn = ({ id }: { id: bigint }) => ids.includes(id);
  const own = ring.findLastIndex(isOwn) + 1;
  const isFull = ring.length === DRAWS || validators.length === DRAWS;
  const count = validators.some(isOwn) || (!own && isFull) ? DRAWS : own;
  if (count) await dispatchTasks(client, { ...muster, count });
  return count > 0;
}
