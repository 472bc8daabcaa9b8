/**
 * What chance allows. Each draw gives a node the task with a probability p that its weight fixes, whatever happened before; so the number of
 * tasks that it gets is a sum of draws with different p (a Poisson-binomial number), whose distribution is computed here, not approximated.
 */

/** What a node's draws came to, and what they had to. */
export interface Chances {
  /** Of each draw in which it was a candidate, its probability. */
  probabilities: readonly number[];
  /** Draws that it won. */
  won: number;
}

/** The distribution's mean and the two ends of an interval. */
export interface Interval {
  expected: number;
  least: number;
  most: number;
}

/** Above so many draws the far tails, which hold less than 1e-12, are cut off: the work is draws times this window. */
const NOTHING = 1e-12;

/** The probabilities of 0, 1, 2, ... successes, beginning with `from`. */
export function distribution(probabilities: readonly number[]): { from: number; masses: Float64Array } {
  let from = 0;
  let masses = new Float64Array([1]);
  for (const p of probabilities) {
    const next = new Float64Array(masses.length + 1);
    for (let k = 0; k < masses.length; k++) {
      next[k]! += masses[k]! * (1 - p);
      next[k + 1]! += masses[k]! * p;
    }
    let [low, high] = [0, next.length];
    while (low < high - 1 && next[low]! < NOTHING / probabilities.length) low++;
    while (high > low + 1 && next[high - 1]! < NOTHING / probabilities.length) high--;
    from += low;
    masses = next.slice(low, high);
  }
  return { from, masses };
}

/** The shortest tails: outside of `least` to `most` lies at most `beyond` in all, at most half of it on each side. */
export function interval(probabilities: readonly number[], beyond: number): Interval {
  const { from, masses } = distribution(probabilities);
  const expected = probabilities.reduce((sum, p) => sum + p, 0);
  let [low, below] = [0, 0];
  while (low < masses.length - 1 && below + masses[low]! <= beyond / 2) below += masses[low++]!;
  let [high, above] = [masses.length - 1, 0];
  while (high > low && above + masses[high]! <= beyond / 2) above += masses[high--]!;
  return { expected, least: from + low, most: from + high };
}

/** How probable it is that chance alone is at least as far out as `won`: twice the smaller tail, at most 1. */
export function tail({ probabilities, won }: Chances): number {
  const { from, masses } = distribution(probabilities);
  let [atMost, atLeast] = [0, 0];
  masses.forEach((mass, k) => {
    if (from + k <= won) atMost += mass;
    if (from + k >= won) atLeast += mass;
  });
  return Math.min(1, 2 * Math.min(atMost, atLeast));
}
