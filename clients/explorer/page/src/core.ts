/** The formulas of `muster-core`, compiled to WASM, and the checks built on them: loaded when a view first needs them. */
import type { Core } from "muster-client/verify";
import { useEffect, useState } from "preact/hooks";

let loading: Promise<Core> | undefined;
export const loadCore = (): Promise<Core> => (loading ??= import("muster-client/verify").then(({ Core }) => Core.load()));
export type { Core };

/** The same in a view; undefined until it is there. */
export function useCore(): Core | undefined {
  const [core, setCore] = useState<Core | undefined>(undefined);
  useEffect(() => void loadCore().then(setCore, () => undefined), []);
  return core;
}

/** One, as a wad. */
export const WAD = 10n ** 18n;

/** How a node stands to be weighed. Stake in granules, Q_long and H as wads. */
export interface Weighed {
  stake: bigint;
  longTerm: bigint;
  h: bigint;
  models: ReadonlySet<bigint>;
  /** Those of its last task. */
  inUse: readonly bigint[];
}

/** Its weight for a task that requires these models, and how many of them it holds. */
export function weigh(core: Core, { stake, longTerm, h, models, inUse }: Weighed, largest: bigint, required: readonly bigint[]): { weight: bigint; local: number } {
  const local = required.filter((model) => models.has(model)).length;
  const used = required.filter((model) => inUse.includes(model)).length;
  return { weight: core.weight(stake, largest, longTerm, h, [local, used, required.length]), local };
}

/** Whether a GPU group can run what asks for this VRAM, or for this group. Groups are numbered `model << 16 | vram`. */
export const fits = (group: number, vram: number, gpu: number): boolean => (gpu ? group === gpu : (group & 0xffff) >= vram);
