/** The weights of draws: `muster-core`'s formulas, as both the indexer and the page have them compiled. */

/** Wads, seconds, millionths. */
export interface Rules {
  weight(stake: bigint, largest: bigint, longTerm: bigint, h: bigint, models: readonly [local: number, used: number, total: number]): bigint;
  recover(h: bigint, elapsed: bigint, tau: number): bigint;
  penalise(h: bigint, ppm: number): bigint;
  boost(h: bigint, ppm: number): bigint;
  longTerm(sum: number, count: number): bigint;
}

/** One, as a wad. */
export const WAD = 10n ** 18n;

/** How a node stands to be weighed. Stake in stake units, Q_long and H as wads. */
export interface Weighed {
  stake: bigint;
  longTerm: bigint;
  h: bigint;
  models: ReadonlySet<bigint>;
  /** Those of its last task. */
  inUse: readonly bigint[];
}

/** Its weight for a task that requires these models, and how many of them it holds. */
export function weigh(rules: Pick<Rules, "weight">, { stake, longTerm, h, models, inUse }: Weighed, largest: bigint, required: readonly bigint[]): { weight: bigint; local: number } {
  const local = required.filter((model) => models.has(model)).length;
  const used = required.filter((model) => inUse.includes(model)).length;
  return { weight: rules.weight(stake, largest, longTerm, h, [local, used, required.length]), local };
}

/** Whether a GPU group satisfies a demand for this VRAM, or for this group. Groups are numbered `model << 16 | vram`. */
export const fits = (group: number, vram: number, gpu: number): boolean => (gpu ? group === gpu : (group & 0xffff) >= vram);

/** Members' stages, as in `MemberView.stage`: committed to an answer, and revealed it. */
export const [HAS_COMMITTED, ANSWERED] = [3, 4];

/**
 * The members of a group who can still be slashed, where its members can: those who have not revealed, and those whose answer nobody else gave while two
 * others may agree. Their commitments are open.
 */
export function atRisk<M extends { stage: number; answer: string | null }>(members: readonly M[]): M[] {
  const within = members.filter(({ stage }) => stage === HAS_COMMITTED || stage === ANSWERED);
  const given = (answer: string | null) => within.filter((other) => other.stage === ANSWERED && other.answer === answer).length;
  return within.filter(({ stage, answer }) => stage === HAS_COMMITTED || (within.length === 3 && given(answer) < 2));
}

/** Scores in a full pool. */
export const POOL = 50;

/**
 * Whether these scores put a node out of the network: a full pool below `kickoutMilli`. One that has nothing to end leaves at once, as events of its own tell, and
 * another when its task has ended, or when the draws that are due have been made.
 */
export const isKickedOut = (pool: readonly number[], kickoutMilli: number): boolean =>
  pool.length === POOL && pool.reduce((sum, score) => sum + score, 0) * 1_000 < kickoutMilli * POOL;
