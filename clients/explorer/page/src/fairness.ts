/** Each node's share of the draws against its share of weight, with what chance allows. */
import { Wins } from "./statistics";

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

/** Draws as they come; only those with at least two candidates say anything. */
export class Tally {
  #nodes = new Map<number, { wins: Wins; won: number }>();
  #draws = 0;

  /** Who won, and the candidates with their chances. */
  add(winner: number, candidates: readonly { node: number; chance: number }[]): void {
    if (candidates.length < 2) return;
    this.#draws++;
    for (const { node, chance } of candidates) {
      let own = this.#nodes.get(node);
      if (!own) this.#nodes.set(node, (own = { wins: new Wins(), won: 0 }));
      own.wins.add(chance);
      own.won += Number(node === winner);
    }
  }

  /** What they come to so far. */
  result(): Fairness {
    const [draws, size] = [this.#draws, this.#nodes.size];
    const nodes = [...this.#nodes].map(([node, { wins, won }]): Fair => {
      const { expected, least, most } = wins.interval(BEYOND);
      const p = wins.tail(won);
      // Šidák: that none of so many independent nodes is outside has the probability 0.95.
      const outside = p < 1 - (1 - BEYOND) ** (1 / size);
      return { node, draws: wins.draws, won, expected, least, most, outside, p, share: won / draws, weight: expected / draws };
    });
    const beyond = nodes.filter(({ won, least, most }) => won < least || won > most).length;
    return { nodes, draws, beyond, allowed: BEYOND * size };
  }
}
