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

export { WAD, type Weighed, fits, weigh } from "../../indexer/src/fairness/rules";
