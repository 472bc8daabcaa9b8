/** The candidates for a task, by a replay of all events in the browser. */
import { type Draw, IDLE, Replay } from "../../indexer/src/fairness/replay";
import { askRows, list } from "./api";
import type { Core } from "./core";

export { type Draw, candidatesOf } from "../../indexer/src/fairness/replay";

/** The most events that a browser replays. */
export const MOST = 200_000;

/** Events of one question. */
const CHUNK = 1_000;

/** A replay, and the block of the last event that it has read. */
interface Known {
  replay: Replay;
  blockHash?: string;
}

/** Reads on up to an event, or to the newest one; from the beginning, if a reorganisation took back the last one that was read. */
async function readOn(begin: () => Replay, known: Known = { replay: begin() }, end?: bigint): Promise<Known> {
  for (;;) {
    const { last } = known.replay;
    // Including the last one: it could be replaced between two questions.
    const where = { id_gte: last < 0n ? 0n : last, ...(end === undefined ? {} : { id_lte: end }), name_not_in: IDLE };
    const rows = await askRows(list("events", { where, order: "id", limit: CHUNK }, ["id", "name", "args", "block", "blockHash", "at"]));
    const before = last < 0n ? undefined : rows.shift();
    if ((before?.id ?? -1n) !== last || before?.blockHash !== known.blockHash) {
      known = { replay: begin() };
      continue;
    }
    for (const event of rows) {
      known.replay.read(event);
      known.blockHash = event.blockHash;
    }
    if (rows.length < CHUNK - 1) return known;
  }
}

let all: Promise<Known> | undefined;
/** One replay for all views: reads the events since the last request, one question after the other. */
export function replayed(core: Core): Promise<Replay> {
  const begin = () => new Replay(core);
  const before = all ?? Promise.resolve({ replay: begin() });
  const next = before.then((known) => readOn(begin, known));
  // A failed read may succeed the next time.
  all = next.catch(() => before);
  return next.then(({ replay }) => replay);
}

/** A task's draws; of one so old that its candidates are no longer kept, by a replay of its own up to `end`, the task's newest event. */
export async function drawsOf(core: Core, task: bigint, end: bigint): Promise<Draw[]> {
  const known = await replayed(core);
  const own = known.draws.filter((draw) => draw.task === task);
  if (own.length || !known.draws.length || known.draws[0]!.task <= task) return own;
  return (await readOn(() => new Replay(core, task), undefined, end)).replay.draws;
}
