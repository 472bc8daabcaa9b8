//! Choosing the target likelihood of correctness by what it brings (the paper of [`crate::reputation`], section 4.4).
//!
//! The paper gives the gain, the thresholds and the intuition; its algorithm stands in an appendix that is not part of
//! the text. [`Climber`] is our reconstruction, described there step by step.

use crate::wad::{mul_div, WAD};

/// What a number of rounds brought.
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
    pub const fn add(self, other: Self) -> Self {
        Self {
            successes: self.successes.saturating_add(other.successes),
            groups: self.groups.saturating_add(other.groups),
            capacity: self.capacity.saturating_add(other.capacity),
        }
    }
}

/// G = alpha rho + (1 - alpha) s as a wad, rounded down: rho = successes / capacity, s = successes / groups.
///
/// Both are at most one, so that alpha weighs like against like. Nothing formed gives 0; `alpha` above 1e18 counts as one.
pub fn gain(tally: Tally, alpha: u64) -> u64 {
    let alpha = alpha.min(WAD);
    let part = |weight: u64, of: u64| {
        let share = mul_div(
            u128::from(tally.successes),
            u128::from(weight),
            u128::from(of),
        );
        share.unwrap_or(0).min(u128::from(weight)) as u64
    };
    part(alpha, tally.capacity) + part(WAD - alpha, tally.groups)
}

/// The parameters of a [`Climber`]; wads, except where noted. The defaults are the paper's (section 5.3), but for the
/// three steps, which its text does not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The weight of throughput in the gain.
    pub alpha: u64,
    /// Rounds between two adjustments (a number).
    pub period: u32,
    /// A gain that changed by less than this factor has not changed.
    pub insignificant: u64,
    /// From this factor on a change is moderate.
    pub moderate: u64,
    /// From this factor on a change is significant.
    pub significant: u64,
    /// Adjustments without a change after which the climb is over (a number).
    pub stationary: u32,
    /// Weight of the current gain in the smoothed one; the history has the rest.
    pub current_weight: u64,
    /// How far the target moves after no or a small, a moderate, a significant change.
    pub steps: [u64; 3],
    /// Where the climb starts without knowledge.
    pub initial: u64,
}

impl Settings {
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
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Gain of the period before, if there was one; adjustments without a change so far.
    Climbing { last: Option<u64>, stationary: u32 },
    /// Smoothed gain.
    Steady { history: u64 },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    Small,
    Moderate,
    Significant,
}

/// Adapts the target by hill climbing, then watches.
///
/// Rounds are summed up over a period; at its end the gain of the period is compared with an earlier one, and the factor
/// between the two is classed: below 1.01 no change, then small, from 1.05 moderate, from 1.15 significant.
///
/// 1. *Climb.* The first period measures the initial target, 0.5, and the target then rises by a moderate step. After each
///    further period the gain is compared with the period before. If it fell, the direction is turned round; then the
///    target moves by the step of the change's class, 0.02 for none or a small one, 0.05, 0.10. It stays within 0 and 1, and
///    turns round at either.
/// 2. *Arrive.* Periods without a change are counted; a moderate or significant change starts the count anew. At the fifth
///    the target stays where it is, and the gain becomes the history.
/// 3. *Watch.* After each further period the gain is compared with the history, which is then smoothed: 0.3 of the gain,
///    0.7 of itself. A moderate or significant change starts a new climb: down if the gain fell (the workers have become
///    less reliable, the target can't be met any more), up if it rose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Climber {
    settings: Settings,
    target: u64,
    upwards: bool,
    phase: Phase,
    rounds: u32,
    tally: Tally,
}

impl Climber {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            target: settings.initial.min(WAD),
            upwards: true,
            phase: Phase::Climbing {
                last: None,
                stationary: 0,
            },
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

    /// Takes in one round; adjusts the target at the end of a period.
    pub fn observe(&mut self, round: Tally) {
        self.tally = self.tally.add(round);
        self.rounds += 1;
        if self.rounds >= self.settings.period {
            let gain = gain(self.tally, self.settings.alpha);
            (self.rounds, self.tally) = (0, Tally::default());
            self.adjust(gain);
        }
    }

    fn adjust(&mut self, gain: u64) {
        self.phase = match self.phase {
            Phase::Climbing { last: None, .. } => {
                self.step(Change::Moderate);
                Phase::Climbing {
                    last: Some(gain),
                    stationary: 0,
                }
            }
            Phase::Climbing {
                last: Some(last),
                stationary,
            } => {
                let change = self.classify(gain, last);
                let stationary = match change {
                    Change::None => stationary + 1,
                    Change::Small => stationary,
                    Change::Moderate | Change::Significant => 0,
                };
                if stationary >= self.settings.stationary {
                    Phase::Steady { history: gain }
                } else {
                    if change != Change::None && gain < last {
                        self.upwards = !self.upwards;
                    }
                    self.step(change);
                    Phase::Climbing {
                        last: Some(gain),
                        stationary,
                    }
                }
            }
            Phase::Steady { history } => {
                let change = self.classify(gain, history);
                if matches!(change, Change::Moderate | Change::Significant) {
                    self.upwards = gain > history;
                    self.step(change);
                    Phase::Climbing {
                        last: Some(gain),
                        stationary: 0,
                    }
                } else {
                    Phase::Steady {
                        history: self.smooth(gain, history),
                    }
                }
            }
        };
    }

    fn classify(&self, a: u64, b: u64) -> Change {
        let (low, high) = (a.min(b), a.max(b));
        let reaches = |factor: u64| {
            u128::from(high) * u128::from(WAD) >= u128::from(low) * u128::from(factor)
        };
        if low == high || !reaches(self.settings.insignificant) {
            Change::None
        } else if reaches(self.settings.significant) {
            Change::Significant
        } else if reaches(self.settings.moderate) {
            Change::Moderate
        } else {
            Change::Small
        }
    }

    fn smooth(&self, gain: u64, history: u64) -> u64 {
        let weight = self.settings.current_weight.min(WAD);
        let sum =
            u128::from(gain) * u128::from(weight) + u128::from(history) * u128::from(WAD - weight);
        (sum / u128::from(WAD)) as u64
    }

    fn step(&mut self, change: Change) {
        let [small, moderate, significant] = self.settings.steps;
        let step = match change {
            Change::None | Change::Small => small,
            Change::Moderate => moderate,
            Change::Significant => significant,
        };
        if self.upwards {
            self.target = self.target.saturating_add(step).min(WAD);
            self.upwards = self.target < WAD;
        } else {
            self.target = self.target.saturating_sub(step);
            self.upwards = self.target == 0;
        }
    }
}
