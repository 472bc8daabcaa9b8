/** The income that a hypothetical node would have had from past tasks: its exact share of weight in each, and the payments for it. */
import type { Row } from "./api";
import { type Core, type Weighed, fits, weigh } from "./core";

/** A node as it is weighed now, and its GPU group. */
export interface Rival extends Weighed {
  node: number;
  group: number;
}

export type Paid = Pick<Row<"tasks">, "vram" | "gpu" | "models" | "paid" | "redundancy">;

export interface Income {
  /** Its share of all tasks, whether it could run them or not. */
  share: number;
  /** Tasks of those that it could run. */
  runnable: number;
  /** In wei, of all tasks together. */
  earned: bigint;
  /** Its share in each kind of task, by requirements. */
  kinds: { models: readonly bigint[]; vram: number; gpu: number; tasks: number; share: number }[];
}

/** The population of a sample of rivals: its size, and the largest stake of all in stake units. */
export interface All {
  total: number;
  largest: bigint;
}

const SCALE = 10n ** 12n;

/**
 * As if every joined node had been idle at each draw, with its present weight. A node that joins has H 1 and Q_long 5. Tasks with the same
 * requirements are taken together; for those that several nodes ran, each position counts.
 */
export function income(core: Core, rivals: readonly Rival[], own: Omit<Rival, "node">, tasks: readonly Paid[], all: All = { total: rivals.length, largest: 0n }): Income {
  const largest = [...rivals, own].reduce((most, { stake }) => (stake > most ? stake : most), all.largest);
  const [total, seen] = [BigInt(all.total), BigInt(Math.max(1, rivals.length))];
  const kinds = new Map<string, { models: readonly bigint[]; vram: number; gpu: number; tasks: number; paid: bigint }>();
  for (const { vram, gpu, models, paid } of tasks) {
    const key = `${gpu || vram} ${models.join()}`;
    const kind = kinds.get(key) ?? { models, vram, gpu, tasks: 0, paid: 0n };
    kind.tasks++;
    kind.paid += paid;
    kinds.set(key, kind);
  }
  let [earned, weighed, runnable] = [0n, 0, 0];
  const shares = [...kinds.values()].map(({ models, vram, gpu, tasks: number, paid }) => {
    let share = 0n;
    if (fits(own.group, vram, gpu)) {
      runnable += number;
      const mine = weigh(core, own, largest, models);
      const others = rivals.filter(({ group }) => fits(group, vram, gpu)).map((rival) => weigh(core, rival, largest, models));
      // Holders of a required model are drawn before all others.
      const isLocal = mine.local > 0 || others.some(({ local }) => local > 0);
      const counts = ({ local }: { local: number }) => !isLocal || local > 0;
      const sum = mine.weight + (others.filter(counts).reduce((all, { weight }) => all + weight, 0n) * total) / seen;
      if (counts(mine) && sum > 0n) share = (mine.weight * SCALE) / sum;
    }
    earned += (paid * share) / SCALE;
    const part = Number(share) / Number(SCALE);
    weighed += part * number;
    return { models, vram, gpu, tasks: number, share: part };
  });
  return { share: tasks.length ? weighed / tasks.length : 0, runnable, earned, kinds: shares.toSorted((a, b) => b.tasks - a.tasks) };
}
