/** The candidates for a task, by a replay of all events in the browser. */
import { type Draw, IDLE, Replay } from "../../indexer/src/fairness/replay";
import { list, pages } from "./api";
import type { Core } from "./core";

export { type Draw, candidatesOf } from "../../indexer/src/fairness/replay";

/** The most events that a browser replays. */
export const MOST = 200_000;

/** Events of these carry it on. */
const wanted = (after: bigint, upTo?: bigint) =>
  list("events", { where: { id_gt: after, ...(upTo === undefined ? {} : { id_lte: upTo }), name_not_in: IDLE }, order: "id" }, ["id", "name", "args", "block", "at"]);

let replay: Promise<Replay> | undefined;
/** One replay for all views: reads the events since the last request, one question after the other. */
export function replayed(core: Core): Promise<Replay> {
  const before = replay ?? Promise.resolve(new Replay(core));
  const next = before.then(async (known) => {
    for await (const page of pages(wanted(known.last < 0n ? 0n : known.last))) for (const event of page) known.read(event);
    return known;
  });
  // A failed read may succeed the next time.
  replay = next.catch(() => before);
  return next;
}

/** A task's draws; of one so old that its candidates are no longer kept, by a replay of its own up to `end`, the task's newest event. */
export async function drawsOf(core: Core, task: bigint, end: bigint): Promise<Draw[]> {
  const known = await replayed(core);
  const own = known.draws.filter((draw) => draw.task === task);
  if (own.length || !known.draws.length || known.draws[0]!.task <= task) return own;
  const again = new Replay(core, task);
  for await (const page of pages(wanted(0n, end))) for (const event of page) again.read(event);
  return again.draws;
}
