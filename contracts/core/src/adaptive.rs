//! Choosing the target likelihood of correctness by its gain (the paper of [`crate::reputation`], section 4.4).
//!
//! The paper gives the gain, the thresholds and the intuition; its algorithm stands in an appendix that is not part of
//! the text. [`HillClimber`] is our reconstruction, described there step by step.

use crate::record::TargetSearch;
use crate::reputation::{Formed, Likelihood, Rule};
use crate::wad::{mul_div, WAD};

/// The results of a number of rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Groups that reached a majority: the throughput.
    pub successes: u64,
    /// Groups that were formed.
    pub groups: u64,
    /// Groups there would have been had all been as small as allowed: sum of floor(workers / Rmin).
    pub capacity: u64,
}

impl Tally {
    /// Both together.
    pub const fn add(self, other: Self) -> Self {
        Self {
            successes: self.successes.saturating_add(other.successes),
            groups: self.groups.saturating_add(other.groups),
            capacity: self.capacity.saturating_add(other.capacity),
        }
    }
}

/// G = alpha rho + (1 - alpha) s as a wad, each term rounded down: rho = successes / capacity, s = successes / groups.
///
/// Both are at most one, so that alpha weighs like against like. Nothing formed gives 0; `alpha` above 1e18 counts as one. Never too
/// high, and less than two units of 1e-18 too low.
pub fn gain(tally: Tally, alpha: u64) -> u64 {
    let alpha = alpha.min(WAD);
    let part = |weight: u64, of: u64| {
        let share = mul_div(u128::from(tally.successes), u128::from(weight), u128::from(of));
        share.unwrap_or(0).min(u128::from(weight)) as u64
    };
    part(alpha, tally.capacity) + part(WAD - alpha, tally.groups)
}

/// How far from the best target the climb searches while nothing better is found, in moderate steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Search {
    /// 1, 2, 3, 4, ...
    Multiples,
    /// 1, 2, 4, 8, ...
    Doubling,
}

/// The gain with which a period's gain is compared during the climb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reference {
    /// The best target's, as it was measured: luck included.
    Best,
    /// Smoothed over the rises: a rise moves it by the share `current_weight`.
    Rises,
    /// Smoothed over all periods of the climb.
    Periods,
}

/// The parameters of a [`HillClimber`]; wads, except where noted. The defaults are the paper's (section 5.3), but for the
/// three steps, which its text does not give, and `search` and `reference`, which are readings of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// The weight of throughput in the gain.
    pub alpha: u64,
    /// Rounds between two adjustments (a number).
    pub period: u32,
    /// A gain that rose by less than this factor has not risen.
    pub insignificant: u64,
    /// From this factor on a rise is moderate.
    pub moderate: u64,
    /// From this factor on a change is significant.
    pub significant: u64,
    /// Periods in a row without a rise after which the climb is over (a number).
    pub stationary: u32,
    /// Weight of the current gain in the smoothed one; the history has the rest.
    pub current_weight: u64,
    /// How far the target moves after a small, a moderate, a significant rise; without one, the second,
    /// doubled for each further stationary period.
    pub steps: [u64; 3],
    /// Where the climb starts without knowledge.
    pub initial: u64,
    /// How the target climbs.
    pub search: Search,
    /// The gain with which a period is compared.
    pub reference: Reference,
    /// Whether the period that measures the initial target is one without a rise.
    pub first_is_stationary: bool,
}

impl Settings {
    /// The defaults at this `alpha`.
    pub const fn new(alpha: u64) -> Self {
        const HUNDREDTH: u64 = WAD / 100;
        Self {
            alpha,
            period: 10,
            insignificant: 101 * HUNDREDTH,
            moderate: 105 * HUNDREDTH,
            significant: 115 * HUNDREDTH,
            stationary: 5,
            current_weight: 30 * HUNDREDTH,
            steps: [2 * HUNDREDTH, 5 * HUNDREDTH, 10 * HUNDREDTH],
            initial: 50 * HUNDREDTH,
            search: Search::Doubling,
            reference: Reference::Periods,
            first_is_stationary: true,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing measured yet.
    Start,
    /// The gain to exceed, the best target so far, periods without a rise, and targets tried around it since.
    Climbing { reference: u64, at: u64, stationary: u32, tried: u32 },
    /// Smoothed gain.
    Steady { history: u64 },
}

/// Adapts the target by hill climbing, then watches.
///
/// Rounds are summed up over a period; at its end the gain of the period is held against a reference. As set up by
/// [`Settings::new`]:
///
/// 1. *Search.* The first period measures the initial target, 0.5, which is the best so far. Its gain is the reference, and it counts
///    as stationary. Each further period tries another target. If its gain is at least 1.01 times the reference, its target is the best
///    now, and the next one lies further in the same direction. The step is 0.02, from a factor of 1.05 on 0.05, from 1.15 on 0.10. If the
///    gain is less, the period was stationary, and the next target lies on the other side of the best. Its distance is 0.05 after the first
///    trial in vain, then 0.10, 0.20 and 0.40 ([`Search::Doubling`]), so that a plateau is searched from end to end before it is believed
///    to be the top. Targets stay within 0 and 1. After each of these periods 0.3 of its gain and 0.7 of the reference make the new
///    reference ([`Reference::Periods`]).
/// 2. *Arrive.* After the fifth stationary period in a row the best target is kept, and the reference becomes the history.
///    The least time is therefore five periods, 50 rounds, as the paper has it.
/// 3. *Watch.* After each further period the gain is compared with the history, which is then smoothed in the same way. A factor of 1.15
///    between them, either way, starts a new climb from the current target. It goes downwards if the gain fell (workers have become less
///    reliable, and can no longer meet the target), upwards if it rose.
///
/// Why the reference is smoothed: 10 rounds with 100 workers are some 300 groups, so a success rate s is measured to within sqrt((1 - s) /
/// 300 s) of itself. That is 1.5 % for 0.94 and 9 % for 0.3, more than the threshold of 1.01. The best of several such measures is mostly
/// the luckiest, and held against it ([`Reference::Best`]) a better target looks no better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HillClimber {
    settings: Settings,
    target: u64,
    upwards: bool,
    phase: Phase,
    rounds: u32,
    tally: Tally,
}

impl HillClimber {
    /// Before its first period.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            target: settings.initial.min(WAD),
            upwards: true,
            phase: Phase::Start,
            rounds: 0,
            tally: Tally::default(),
        }
    }

    /// The target for the next round, a wad.
    pub const fn target(&self) -> u64 {
        self.target
    }

    /// Whether the climb is over (until a change starts the next one).
    pub const fn is_steady(&self) -> bool {
        matches!(self.phase, Phase::Steady { .. })
    }

    /// The climber as it was when [`HillClimber::state`] returned this, with `target` as its target. Rounds taken in since the last
    /// adjustment are left out.
    pub fn resume(settings: Settings, target: u64, state: &TargetSearch) -> Self {
        let &TargetSearch { gain: reference, at, stationary, tried, .. } = state;
        let phase = match state.phase {
            0 => Phase::Start,
            1 => Phase::Climbing { reference, at, stationary: stationary.into(), tried: tried.into() },
            _ => Phase::Steady { history: reference },
        };
        Self { settings, target, upwards: state.upwards, phase, rounds: 0, tally: Tally::default() }
    }

    /// The input of [`HillClimber::resume`], without the rounds taken in. It counts at most 65,535 periods without a rise, and 255 targets
    /// tried.
    pub fn state(&self) -> TargetSearch {
        let start = TargetSearch { upwards: self.upwards, ..TargetSearch::START };
        match self.phase {
            Phase::Start => start,
            Phase::Climbing { reference, at, stationary, tried } => {
                let (stationary, tried) = (stationary.min(u16::MAX.into()) as u16, tried.min(u8::MAX.into()) as u8);
                TargetSearch { phase: 1, gain: reference, at, stationary, tried, ..start }
            }
            Phase::Steady { history } => TargetSearch { phase: 2, gain: history, ..start },
        }
    }

    /// Takes in a whole period and adjusts the target.
    pub fn step(&mut self, period: Tally) {
        self.adjust(gain(period, self.settings.alpha));
    }

    /// Takes in one round; adjusts the target at the end of a period.
    pub fn observe(&mut self, round: Tally) {
        self.tally = self.tally.add(round);
        self.rounds += 1;
        if self.rounds >= self.settings.period {
            let period = self.tally;
            (self.rounds, self.tally) = (0, Tally::default());
            self.step(period);
        }
    }

    fn adjust(&mut self, gain: u64) {
        let [small, moderate, significant] = self.settings.steps;
        match self.phase {
            Phase::Start => self.climb_from(gain, moderate, u32::from(self.settings.first_is_stationary)),
            Phase::Climbing { reference, .. } if reaches(gain, reference, self.settings.insignificant) => {
                let step = if reaches(gain, reference, self.settings.significant) {
                    significant
                } else if reaches(gain, reference, self.settings.moderate) {
                    moderate
                } else {
                    small
                };
                let reference = match self.settings.reference {
                    Reference::Best => gain,
                    Reference::Rises | Reference::Periods => self.smooth(gain, reference),
                };
                self.climb_from(reference, step, 0);
            }
            Phase::Climbing { reference, at, stationary, tried } => {
                let reference = match self.settings.reference {
                    Reference::Best | Reference::Rises => reference,
                    Reference::Periods => self.smooth(gain, reference),
                };
                let (stationary, tried) = (stationary + 1, tried + 1);
                if stationary >= self.settings.stationary {
                    self.target = at;
                    self.phase = Phase::Steady { history: reference };
                } else {
                    self.phase = Phase::Climbing { reference, at, stationary, tried };
                    self.upwards = !self.upwards;
                    self.target = self.moved(at, self.distance(tried));
                }
            }
            Phase::Steady { history } => {
                let fell = reaches(history, gain, self.settings.significant);
                if fell || reaches(gain, history, self.settings.significant) {
                    self.upwards = !fell;
                    self.climb_from(gain, significant, 0);
                } else {
                    self.phase = Phase::Steady { history: self.smooth(gain, history) };
                }
            }
        }
    }

    /// The present target is the best so far; the next lies `step` further.
    fn climb_from(&mut self, reference: u64, step: u64, stationary: u32) {
        self.phase = Phase::Climbing { reference, at: self.target, stationary, tried: 0 };
        self.target = self.moved(self.target, step);
    }

    /// How far from the best target the next trial lies after `tried` in vain, the first of which was a step onwards.
    fn distance(&self, tried: u32) -> u64 {
        let [_, moderate, _] = self.settings.steps;
        let times = match self.settings.search {
            Search::Multiples => u64::from(tried),
            Search::Doubling => 1 << (tried - 1).min(63),
        };
        moderate.saturating_mul(times)
    }

    fn moved(&self, from: u64, by: u64) -> u64 {
        if self.upwards {
            from.saturating_add(by).min(WAD)
        } else {
            from.saturating_sub(by)
        }
    }

    fn smooth(&self, gain: u64, history: u64) -> u64 {
        let weight = self.settings.current_weight.min(WAD);
        let sum = u128::from(gain) * u128::from(weight) + u128::from(history) * u128::from(WAD - weight);
        (sum / u128::from(WAD)) as u64
    }
}

/// Likelihoods are summed up without their last bits, so that thousands fit.
const SCALE: u32 = 10;

/// Targets that are compared differ by so much, or by more.
pub const TARGET_STEP: u64 = WAD / 50;
/// How many there are, 0 and 1e18 among them.
const TARGETS: usize = (WAD / TARGET_STEP) as usize + 1;

/// The target among the multiples of [`TARGET_STEP`], a wad, around which groups have the largest expected gain; the lowest of equals, and
/// 0 if there is no group.
///
/// Ours. For each target, `form` divides all `workers` into groups, one after the other, as long as it forms one. Their expected successes
/// are the sum of the groups' likelihoods by `L`. The sum of a target's gain and of its two neighbours' decides; 0 and 1e18 are their own
/// outer neighbours. Chance decides which target just lets these workers form one group more, and the largest of many gains is mostly a
/// lucky one. `scratch` is as long as `workers` and is overwritten. `form` puts a group at the front of the free workers.
pub fn best_target<T: Clone, L: Likelihood<T>>(
    alpha: u64,
    (min, max): (usize, usize),
    workers: &[T],
    scratch: &mut [T],
    mut form: impl FnMut(&mut [T], &Rule) -> Option<Formed>,
) -> u64 {
    let mut gains = [0; TARGETS];
    let mut next = 0;
    while next < TARGETS {
        let target = next as u64 * TARGET_STEP;
        let Ok(rule) = Rule::new(min, max, target) else { return 0 };
        scratch.clone_from_slice(workers);
        let (mut from, mut expected, mut groups, mut reached) = (0, 0, 0, WAD);
        while let Some(formed) = form(&mut scratch[from..], &rule) {
            let mut group = L::default();
            scratch[from..from + formed.size].iter().for_each(|member| group.push(member));
            let value = group.value();
            expected += value >> SCALE;
            if value >= target {
                reached = reached.min(value);
            }
            (from, groups) = (from + formed.size, groups + 1);
        }
        let scaled = |groups: usize| groups as u64 * (WAD >> SCALE);
        let gain = gain(Tally { successes: expected, groups: scaled(groups), capacity: scaled(workers.len() / min) }, alpha);
        // Up to the least of those that were reached, the groups are the same; those that missed their target miss a higher one.
        let end = (reached / TARGET_STEP) as usize + 1;
        gains[next..end].fill(gain);
        next = end;
    }
    let around = |i: usize| gains[i.saturating_sub(1)] + gains[i] + gains[(i + 1).min(TARGETS - 1)];
    let mut best = (0, 0);
    for i in 0..TARGETS {
        let sum = around(i);
        if sum > best.0 {
            best = (sum, i);
        }
    }
    best.1 as u64 * TARGET_STEP
}

/// Predictive targets whose mean is used, once there were so many.
pub const TARGETS_MEANT: u8 = 3;

/// The target to use, a wad, rounded down, when the next predictive one is `best`, after `before` of them whose mean is `former`. It is
/// their mean. From the [`TARGETS_MEANT`]-th on, the last has that part in it, and earlier ones fade.
///
/// Each is computed from a few of the workers, different ones each time. The first stands for itself: a mean with the initial target would
/// take several periods to leave it. Rounding fades too: any number of means in a row is less than two units of 1e-18 too low.
pub fn mean_target(former: u64, before: u8, best: u64) -> u64 {
    let count = u64::from(before.min(TARGETS_MEANT - 1)) + 1;
    (former.min(WAD) * (count - 1) + best.min(WAD)) / count
}

/// Whether `a` is at least `factor` times `b`, and above it.
fn reaches(a: u64, b: u64, factor: u64) -> bool {
    a > b && u128::from(a) * u128::from(WAD) >= u128::from(b) * u128::from(factor)
}
