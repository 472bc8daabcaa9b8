/**
 * The range of chance. Each draw gives a node the task with a probability p that its weight fixes, independently of earlier draws. So the number of
 * tasks that it gets is a sum of draws with different p (a Poisson-binomial number), whose distribution is computed here, not approximated.
 */

/** The distribution's mean and the two ends of an interval. */
export interface Interval {
  expected: number;
  least: number;
  most: number;
}

/** Masses below this are cut off both tails at every draw: of a million draws less than 1e-11 in all. The work is draws times the window that is left. */
const NOTHING = 1e-18;

/** The distribution of the number of wins, updated by every draw, so that no draw must be kept. */
export class Wins {
  /** The probabilities of `from`, `from` + 1, ... wins. */
  masses = new Float64Array([1]);
  from = 0;
  /** The mean. */
  expected = 0;
  draws = 0;

  /** Another draw, won with a probability of `p`. */
  add(p: number): void {
    const before = this.masses;
    const next = new Float64Array(before.length + 1);
    for (let k = 0; k < before.length; k++) {
      next[k]! += before[k]! * (1 - p);
      next[k + 1]! += before[k]! * p;
    }
    let [low, high] = [0, next.length];
    while (low < high - 1 && next[low]! < NOTHING) low++;
    while (high > low + 1 && next[high - 1]! < NOTHING) high--;
    this.masses = next.slice(low, high);
    this.from += low;
    this.expected += p;
    this.draws++;
  }

  copy(): Wins {
    return Object.assign(new Wins(), this);
  }

  /** The shortest tails: outside of `least` to `most` lies at most `beyond` in all, at most half of it on each side. */
  interval(beyond: number): Interval {
    const { masses, from, expected } = this;
    let [low, below] = [0, 0];
    while (low < masses.length - 1 && below + masses[low]! <= beyond / 2) below += masses[low++]!;
    let [high, above] = [masses.length - 1, 0];
    while (high > low && above + masses[high]! <= beyond / 2) above += masses[high--]!;
    return { expected, least: from + low, most: from + high };
  }

  /** How probable it is that chance alone is at least as far out as `won`: twice the smaller tail, at most 1. */
  tail(won: number): number {
    let [atMost, atLeast] = [0, 0];
    this.masses.forEach((mass, k) => {
      if (this.from + k <= won) atMost += mass;
      if (this.from + k >= won) atLeast += mass;
    });
    return Math.min(1, 2 * Math.min(atMost, atLeast));
  }
}

/**
 * Wins in a number of draws of which only the sum of the chances is known: as if all were equal. Of draws with that number and that sum, these have the
 * largest variance, so the range of chance is rather too wide than too narrow.
 */
export function binomial(draws: number, expected: number): Wins {
  const wins = new Wins();
  if (!draws) return wins;
  const p = Math.min(1, expected / draws);
  [wins.draws, wins.expected] = [draws, expected];
  if (p === 0 || p === 1) {
    wins.from = p * draws;
    return wins;
  }
  // From the most probable number outwards, each from its neighbour; then as parts of the whole.
  const mode = Math.min(draws, Math.floor((draws + 1) * p));
  const [below, above]: [number[], number[]] = [[], [1]];
  for (let k = mode, mass = 1; k < draws; k++) {
    mass *= ((draws - k) / (k + 1)) * (p / (1 - p));
    if (mass < NOTHING) break;
    above.push(mass);
  }
  for (let k = mode, mass = 1; k > 0; k--) {
    mass *= (k / (draws - k + 1)) * ((1 - p) / p);
    if (mass < NOTHING) break;
    below.push(mass);
  }
  const masses = Float64Array.from([...below.reverse(), ...above]);
  const sum = masses.reduce((all, mass) => all + mass, 0);
  [wins.masses, wins.from] = [masses.map((mass) => mass / sum), mode - below.length];
  return wins;
}

/** Wins of both. */
export function joint(a: Wins | undefined, b: Wins): Wins {
  if (!a?.draws) return b;
  if (!b.draws) return a;
  const both = new Wins();
  const masses = new Float64Array(a.masses.length + b.masses.length - 1);
  a.masses.forEach((one, i) => b.masses.forEach((other, j) => (masses[i + j]! += one * other)));
  [both.masses, both.from, both.expected, both.draws] = [masses, a.from + b.from, a.expected + b.expected, a.draws + b.draws];
  return both;
}
