/** `muster-core`, compiled to WASM: nodes' weights, judgements of validation groups, and payments. */
import { type Hex, hexToBigInt, sliceHex } from "viem";
import { verifier } from "../generated/verifier.js";

/** A member's state when its group is judged. */
export type Stage = "none" | "answered" | "failed" | "withheld" | "timedOut";
const STAGES: readonly Stage[] = ["none", "answered", "failed", "withheld", "timedOut"];

/** A member of a group before its judgement. */
export interface Standing {
  stage: Stage;
  /** Seconds from its start to its commitment. */
  elapsed: number;
  /** When it committed, in seconds since 1970. */
  at: number;
  /** Its answer. */
  answer: Hex;
}

/** The judgement of a group, by the interface's numbers. */
export interface Judgement {
  outcome: number;
  /** The member that it names: the fastest right one, or the only one that answered. */
  named: number | undefined;
  verdicts: readonly number[];
  scores: readonly (number | undefined)[];
}

interface Exports {
  judge(...values: (number | bigint)[]): bigint;
  has_images(a: bigint, b: bigint, c: bigint, d: bigint, images: number): number;
  payment(high: bigint, low: bigint, sampleBps: number, half: number): bigint;
  pot_of_fee(high: bigint, low: bigint, members: number, failed: number, half: number): bigint;
  pot_of_payments(high: bigint, low: bigint, singleHigh: bigint, singleLow: bigint, members: number, failed: number, answered: number, reserve: number, half: number): bigint;
  share(high: bigint, low: bigint, scores: number, member: number, half: number): bigint;
  part(high: bigint, low: bigint, bps: number, half: number): bigint;
  recover(h: bigint, elapsed: bigint, tau: number): bigint;
  penalise(h: bigint, penaltyPpm: number): bigint;
  boost(h: bigint, boostPpm: number): bigint;
  long_term(sum: number, count: number): bigint;
  weight(stake: bigint, largest: bigint, longTerm: bigint, h: bigint, local: number, used: number, total: number): bigint;
}

/** The four numbers of 64 bits in a word. */
const quarters = (word: Hex) => [0, 8, 16, 24].map((at) => hexToBigInt(sliceHex(word, at, at + 8))) as [bigint, bigint, bigint, bigint];
const split = (value: bigint): [bigint, bigint] => [value >> 64n, BigInt.asUintN(64, value)];
/** WASM numbers are signed. */
const join = (half: (which: number) => bigint): bigint => (BigInt.asUintN(64, half(1)) << 64n) | BigInt.asUintN(64, half(0));

/** The formulas. */
export class Core {
  private constructor(private readonly wasm: Exports) {}

  static #loading: Promise<Core> | undefined;
  /** Compiled on first use. */
  static load(): Promise<Core> {
    Core.#loading ??= (async () => {
      const bytes = Uint8Array.from(atob(verifier), (letter) => letter.charCodeAt(0));
      const { instance } = await WebAssembly.instantiate(bytes);
      return new Core(instance.exports as unknown as Exports);
    })();
    return Core.#loading;
  }

  /** `images` is the number of an answer's images, 0 where answers must be equal; `most` the bits in which equal ones may differ. */
  judge(members: readonly Standing[], images: number, most: number): Judgement {
    const values = [0, 1, 2].flatMap((i) => {
      const { stage, elapsed, at, answer } = members[i] ?? { stage: "none", elapsed: 0, at: 0, answer: `0x${"00".repeat(32)}` as Hex };
      return [STAGES.indexOf(stage), elapsed, at, ...quarters(answer)];
    });
    const judged = BigInt.asUintN(64, this.wasm.judge(...values, images, most));
    const [outcome, named, ...rest] = Array.from({ length: 8 }, (_, i) => Number((judged >> BigInt(8 * i)) & 255n));
    const known = (value: number) => (value === 255 ? undefined : value);
    return { outcome: outcome!, named: known(named!), verdicts: rest.slice(0, 3), scores: rest.slice(3).map(known) };
  }

  /** Whether an answer has a perceptual hash for each image and for nothing else. */
  hasImages(answer: Hex, images: number): boolean {
    return this.wasm.has_images(...quarters(answer), images) === 1;
  }

  /** The pay of one node for a task that can be sampled. */
  payment(fee: bigint, sampleBps: number): bigint {
    return join((half) => this.wasm.payment(...split(fee), sampleBps, half));
  }

  /** The pot of a fee that a group's right members share, if `failed` of its `members` reported an error. */
  potOfFee(fee: bigint, members: number, failed: number): bigint {
    return join((half) => this.wasm.pot_of_fee(...split(fee), members, failed, half));
  }

  /**
   * The pot of a scored, sampled task with a payment of `single`: the parts from its fee and from the reserve.
   * `answered` says whether its first member revealed an answer.
   */
  potOfPayments(fee: bigint, single: bigint, members: number, failed: number, answered: boolean): { fee: bigint; reserve: bigint } {
    const part = (reserve: number) => join((half) => this.wasm.pot_of_payments(...split(fee), ...split(single), members, failed, Number(answered), reserve, half));
    return { fee: part(0), reserve: part(1) };
  }

  /** A member's share of a pot. */
  share(pot: bigint, scores: readonly (number | undefined)[], member: number): bigint {
    const packed = scores.reduce<number>((sum, score, i) => sum + (score ?? 255) * 256 ** i, 0);
    return join((half) => this.wasm.share(...split(pot), packed, member, half));
  }

  /** A share of a fee, in ten-thousandths. */
  part(fee: bigint, bps: number): bigint {
    return join((half) => this.wasm.part(...split(fee), bps, half));
  }

  /** H, a wad, after `elapsed` seconds of recovery with the time constant `tau`. */
  recover(h: bigint, elapsed: bigint, tau: number): bigint {
    return this.wasm.recover(h, elapsed, tau);
  }

  /** H after a timeout, by the parameter penaltyPpm. */
  penalise(h: bigint, penaltyPpm: number): bigint {
    return this.wasm.penalise(h, penaltyPpm);
  }

  /** H after a success, by the parameter boostPpm. */
  boost(h: bigint, boostPpm: number): bigint {
    return this.wasm.boost(h, boostPpm);
  }

  /** Q_long / Q_max, a wad, of a pool of `count` scores that add up to `sum`. */
  longTerm(sum: number, count: number): bigint {
    return this.wasm.long_term(sum, count);
  }

  /**
   * A node's weight for a task, a wad. `stake` and `largest`, that of all joined nodes, are in stake units. Of the `total` required models
   * the node holds `local` and used `used` in its last task.
   */
  weight(stake: bigint, largest: bigint, longTerm: bigint, h: bigint, [local, used, total]: readonly [number, number, number] = [0, 0, 0]): bigint {
    return this.wasm.weight(stake, largest, longTerm, h, local, used, total);
  }
}
