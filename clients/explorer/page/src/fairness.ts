/** Each node's share of the draws against its share of weight, with what chance allows. */
import type { Draw } from "./replay";
import { interval, tail } from "./statistics";

export interface Fair {
  node: number;
  /** Draws in which it was a candidate. */
  draws: number;
  won: number;
  /** What its weight in those draws comes to. */
  expected: number;
  /** What it wins in 95 of 100 networks like this one. */
  least: number;
  most: number;
  /** Whether it is outside of what, in 95 of 100 networks like this one, no node leaves. */
  outside: boolean;
  /** How probable it is to be at least as far from what was expected. */
  p: number;
  /** Mean chance in its draws, and what it won of them. */
  share: number;
  weight: number;
}

export interface Fairness {
  nodes: Fair[];
  draws: number;
  /** Nodes outside their own interval, and how many chance puts there at most on average. */
  beyond: number;
  allowed: number;
}

const BEYOND = 0.05;

/** By node; only draws with at least two candidates say anything. */
export function fairness(draws: readonly Draw[]): Fairness {
  const chances = new Map<number, { probabilities: number[]; won: number }>();
  let told = 0;
  for (const { candidates, winner } of draws) {
    if (candidates.length < 2) continue;
    told++;
    for (const { node, chance } of candidates) {
      const own = chances.get(node) ?? { probabilities: [], won: 0 };
      own.probabilities.push(chance);
      own.won += Number(node === winner);
      chances.set(node, own);
    }
  }
  const nodes = [...chances].map(([node, own]): Fair => {
    const { expected, least, most } = interval(own.probabilities, BEYOND);
    const p = tail(own);
    const draws = own.probabilities.length;
    // Šidák: that none of so many independent nodes is outside has the probability 0.95.
    const outside = p < 1 - (1 - BEYOND) ** (1 / chances.size);
    return { node, draws, won: own.won, expected, least, most, outside, p, share: own.won / told, weight: expected / told };
  });
  const beyond = nodes.filter(({ won, least, most }) => won < least || won > most).length;
  return { nodes, draws: told, beyond, allowed: BEYOND * nodes.length };
}
