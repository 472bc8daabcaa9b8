/** Draws nodes; on a quiet network only the application that waits for a task does so. */
import type { MusterClient, MusterParameters } from "./client.js";
import { DRAWS, type SenderParameters, type Sent, sendMuster } from "./contract.js";
import { getPendingTasks } from "./reads.js";

/** Parameters of {@link dispatchTasks}. */
export type DispatchTasksParameters = MusterParameters & SenderParameters & { count?: number | undefined };

/** Draws up to `count` Pending tasks whose block has come, 16 at most, 1 if left out. */
export const dispatchTasks = (client: MusterClient, { count = 1, ...sender }: DispatchTasksParameters): Promise<Sent> =>
  sendMuster(client, "dispatch", { count }, { ...sender, draws: count });

/** Draws as many as necessary to reach these tasks, within the limit of one call; those before them in the ring come first. */
export async function dispatchFor(
  client: MusterClient,
  muster: MusterParameters & SenderParameters,
  ids: readonly bigint[],
): Promise<void> {
  const ring = await getPendingTasks(client, { address: muster.address, from: 0, count: DRAWS });
  const last = ring.findLastIndex(({ id }) => ids.includes(id));
  await dispatchTasks(client, { ...muster, count: last < 0 ? DRAWS : last + 1 });
}
