//! The parameters of a run of rounds, and the formation of its groups.

use std::cmp::Reverse;

use muster_core::adaptive::{Settings, Tally};
use muster_core::reputation::{
    first_fit, fixed_size, random_fit, tight_fit, tight_fit_of_neighbours, Exact, Fallback, Formed, Likelihood, Record, Rule,
};
use muster_core::wad::WAD;

use crate::bound::{Bound, LogRating};
use crate::population::Population;
use crate::random::Random;

/// How groups are formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    Fixed,
    FirstFit,
    /// Of neighbours in the sorted list.
    TightFit(Fallback),
    /// Its last member is searched separately, as in the contract.
    TightFitApart,
    RandomFit,
    /// Tight-fit or the best division into runs of neighbours, whichever promises more in this round, and then exchanges
    /// between the groups. Ours.
    Planned,
}

impl Algorithm {
    /// Tight-fit as the paper describes it.
    pub const TIGHT_FIT: Self = Self::TightFit(Fallback::Largest);

    pub const PAPER: [Self; 4] = [Self::Fixed, Self::FirstFit, Self::TIGHT_FIT, Self::RandomFit];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "Fixed",
            Self::FirstFit => "First-fit",
            Self::TightFit(_) => "Tight-fit",
            Self::TightFitApart => "Tight-fit, last member apart",
            Self::RandomFit => "Random-fit",
            Self::Planned => "Planned",
        }
    }
}

/// How the likelihood of correctness of a group is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// The paper's lower bound (2), its default.
    Bound,
    Exact,
}

impl Measure {
    pub const ALL: [Self; 2] = [Self::Bound, Self::Exact];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Bound => "lower bound",
            Self::Exact => "exact LOC",
        }
    }
}

/// A climb's feedback from a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Feedback {
    /// The groups that reached a majority, as the paper does.
    Counted,
    /// The sum of the groups' exact likelihoods: the expected number of those that do. Ours.
    Expected,
}

/// The source of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Targeting {
    /// One target, a wad, for all rounds.
    Static(u64),
    /// The paper's hill climbing.
    Adaptive(Settings, Feedback),
    /// Every `every` rounds, the target in hundredths whose groups have the largest expected gain by the ratings.
    Predictive { alpha: u64, every: u32 },
}

/// Part of the workers changes its reliability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Blackout {
    /// The last round before it.
    pub after: u32,
    /// How many percent of the workers, chosen at random.
    pub percent: usize,
    pub to: Population,
}

/// One run of the simulation; it determines its outcome to the last digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    pub population: Population,
    pub workers: usize,
    pub min: usize,
    pub max: usize,
    pub algorithm: Algorithm,
    pub measure: Measure,
    pub targeting: Targeting,
    /// Weight of throughput in the gain, a wad; only [`Algorithm::Planned`] takes it from here.
    pub alpha: u64,
    pub rounds: u32,
    pub blackout: Option<Blackout>,
    /// The seed of the workers drawn from the population.
    pub population_seed: u64,
    /// Everything else that is random.
    pub run_seed: u64,
    /// Whether to keep every single round's results.
    pub keep_rounds: bool,
    /// Whether to compare both measures on every group.
    pub compare_measures: bool,
}

/// A worker as the server sees it, with its hidden properties.
pub struct Worker {
    pub(crate) id: u32,
    pub(crate) record: Record,
    pub(crate) rating: u64,
    /// Kept up only where the lower bound is used.
    pub(crate) logs: LogRating,
    /// Probability of a correct answer times 2^64.
    pub(crate) chance: u64,
}

impl Worker {
    pub const fn rating(&self) -> u64 {
        self.rating
    }
}

impl Likelihood<&Worker> for ByExact {
    fn push(&mut self, member: &&Worker) {
        self.0.push(&member.rating);
    }

    fn value(&self) -> u64 {
        self.0.value()
    }
}

impl Likelihood<&Worker> for ByBound {
    fn push(&mut self, member: &&Worker) {
        self.0.push(&member.logs);
    }

    fn value(&self) -> u64 {
        self.0.value()
    }
}

/// The core's measures, taught to read a worker.
#[derive(Default)]
pub struct ByExact(Exact);
#[derive(Default)]
pub struct ByBound(Bound);

/// The likelihood of a group of workers by a measure.
pub fn likelihood_of<'a, M: Likelihood<&'a Worker>>(group: &[&'a Worker]) -> u64 {
    let mut measure = M::default();
    group.iter().for_each(|worker| measure.push(worker));
    measure.value()
}

/// Likelihoods are summed up without their last bits, so that thousands fit.
pub const SCALE: u32 = 10;

/// The tally of a sum of likelihoods, each shifted by [`SCALE`].
pub fn expected_tally(expected: u64, groups: usize, capacity: usize) -> Tally {
    let scaled = |groups: usize| groups as u64 * (WAD >> SCALE);
    Tally { successes: expected, groups: scaled(groups), capacity: scaled(capacity) }
}

pub fn rule(run: &Run, target: u64) -> Rule {
    Rule::new(run.min, run.max, target.min(WAD)).expect("group sizes are checked before a run starts")
}

/// Whether an algorithm wants the workers by falling rating.
pub const fn sorts(algorithm: Algorithm) -> bool {
    !matches!(algorithm, Algorithm::Fixed | Algorithm::RandomFit)
}

/// By falling rating, equal ones by id.
pub fn sort(order: &mut [&Worker]) {
    order.sort_unstable_by_key(|worker| (Reverse(worker.rating), worker.id));
}

/// Forms groups until too few workers are left. They lie one after the other at the front of `order`.
pub fn form_all<'a, M: Likelihood<&'a Worker>>(
    algorithm: Algorithm,
    order: &mut [&'a Worker],
    rule: &Rule,
    random: &mut Random,
    groups: &mut Vec<Formed>,
) {
    let mut free = order;
    loop {
        let pick = |n| random.below(n);
        let formed = match algorithm {
            Algorithm::Fixed => fixed_size(free, rule, pick),
            Algorithm::FirstFit => first_fit::<_, M>(free, rule),
            Algorithm::TightFit(fallback) => tight_fit_of_neighbours::<_, M>(free, rule, fallback),
            Algorithm::TightFitApart => tight_fit::<_, M>(free, rule, Fallback::Largest),
            Algorithm::RandomFit => random_fit::<_, M>(free, rule, pick),
            // The start that it compares with the best division, see `plan::Planner`.
            Algorithm::Planned => tight_fit_of_neighbours::<_, M>(free, rule, Fallback::Largest),
        };
        let Some(formed) = formed else { return };
        free = &mut free[formed.size..];
        groups.push(formed);
    }
}
