/** Formulas of `muster-core`, out of the same WASM as `muster-client/verify` (clients/ts/verifier.sh writes it). Wads. */
import type { Rules } from "./fairness/rules";
import { verifier } from "../../../ts/src/generated/verifier";

interface Exports {
  recover(h: bigint, elapsed: bigint, tau: number): bigint;
  penalise(h: bigint, penaltyPpm: number): bigint;
  boost(h: bigint, boostPpm: number): bigint;
  long_term(sum: number, count: number): bigint;
  weight(stake: bigint, largest: bigint, longTerm: bigint, h: bigint, local: number, used: number, total: number): bigint;
}

const { instance } = await WebAssembly.instantiate(Buffer.from(verifier, "base64"));
const core = instance.exports as unknown as Exports;
/** WASM gives numbers with a sign. */
const word = (value: bigint) => BigInt.asUintN(64, value);

/** H, `elapsed` seconds after it was set to `h`. */
export const recover = (h: bigint, elapsed: bigint, tau: number) => word(core.recover(h, elapsed, tau));
/** H after a timeout; `h` is recovered to now. */
export const penalise = (h: bigint, ppm: number) => word(core.penalise(h, ppm));
/** H after a success; `h` is recovered to now. */
export const boost = (h: bigint, ppm: number) => word(core.boost(h, ppm));
/** Q_long / Q_max of the scores in a pool. */
export const longTerm = (pool: readonly number[]) =>
  word(
    core.long_term(
      pool.reduce((sum, score) => sum + score, 0),
      pool.length,
    ),
  );

/** A rating's two counts after another judgement: at 64 both are halved. */
export const rated = ({ judged, judgedRight }: { judged: number; judgedRight: number }, right: boolean) => {
  const counts = { judged: judged + 1, judgedRight: judgedRight + Number(right) };
  const now = counts.judged === 64 ? { judged: 32, judgedRight: counts.judgedRight >> 1 } : counts;
  return { ...now, rating: rating(now) };
};
const rating = ({ judged, judgedRight }: { judged: number; judgedRight: number }) =>
  (BigInt(judgedRight + 1) * 10n ** 18n) / BigInt(judged + 2);
/** Of a newcomer. */
export const NEWCOMER = rating({ judged: 0, judgedRight: 0 });

/** The same for a replay of draws. */
export const rules: Rules = {
  ...{ recover, penalise, boost },
  longTerm: (sum, count) => word(core.long_term(sum, count)),
  weight: (stake, largest, longTerm, h, models) => word(core.weight(stake, largest, longTerm, h, ...models)),
};
