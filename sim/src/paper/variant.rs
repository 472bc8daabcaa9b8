//! The variants: the scale, the reading of the text, the populations; and the resulting runs.

use muster_core::adaptive::{HillClimber, Reference, Search, Settings, Tally};
use muster_core::reputation::Fallback;
use muster_core::wad::WAD;

use super::lab::{Lab, Sweep};
use crate::population::{Name, Population, Set};
use crate::rounds::{Algorithm, Blackout, Feedback, Measure, Outcome, Run, Targeting};
use crate::statistics::Estimate;

/// Rmin and, where it does not vary, Rmax.
pub const MIN: usize = 3;
pub const MAX: usize = 7;
pub const MAXES: [usize; 4] = [3, 5, 7, 9];
/// Network sizes of figures 3 to 5.
pub const SMALL: usize = 100;
pub const LARGE: usize = 1000;
/// The paper's weights of throughput: figures 6, 7, 8.
pub const ALPHAS: [f64; 3] = [0.5, 1.0, 0.0];
/// How often a predictive target is computed anew, in rounds.
pub const PREDICT_EVERY: u32 = 25;
/// The last round before the blackout, and all rounds of that experiment.
pub const STRIKE: u32 = 300;
pub const BLACKOUT_ROUNDS: u32 = 1000;
/// Percent of the workers that fail in it.
pub const STRUCK: usize = 30;

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    pub quick: bool,
    /// Rounds of the experiments with a given target.
    pub rounds: u32,
    /// Rounds of the experiments with adaptive targets, and of the static ones they are compared with.
    pub long_rounds: u32,
    /// Rounds after which the static targets that deserve the long ones are picked, and how many they are for each alpha.
    pub screen_rounds: u32,
    pub keep: usize,
    /// Static targets are multiples of this many hundredths.
    pub step: u64,
    /// Seeds of the experiments with a given target, for 100 and for 1,000 workers.
    pub seeds: u64,
    pub large_seeds: u64,
    /// Populations for which static and adaptive targets are compared.
    pub sweep_seeds: u64,
    /// Adaptive runs on each of these populations.
    pub repeats: u64,
    pub blackout_seeds: u64,
    /// For experiments on the influences on convergence: seeds and rounds. A climb that is not over at the end counts as
    /// over there.
    pub convergence_seeds: u64,
    pub convergence_rounds: u32,
    /// Of the search for populations.
    pub fit_seeds: u64,
}

impl Scale {
    pub const FULL: Self = Self {
        quick: false,
        rounds: 1000,
        long_rounds: 10_000,
        screen_rounds: 600,
        keep: 3,
        step: 1,
        seeds: 20,
        large_seeds: 5,
        sweep_seeds: 6,
        repeats: 1,
        blackout_seeds: 40,
        convergence_seeds: 10,
        convergence_rounds: 1500,
        fit_seeds: 20,
    };

    pub const QUICK: Self = Self {
        quick: true,
        rounds: 200,
        long_rounds: 600,
        screen_rounds: 200,
        keep: 3,
        step: 5,
        seeds: 3,
        large_seeds: 2,
        sweep_seeds: 2,
        repeats: 1,
        blackout_seeds: 4,
        convergence_seeds: 3,
        convergence_rounds: 500,
        fit_seeds: 3,
    };

    /// The last round before a change of some workers, when most climbs are over, and all rounds.
    pub const fn change(&self) -> (u32, u32) {
        (self.convergence_rounds / 5 * 2, self.convergence_rounds / 5 * 4)
    }

    pub const fn sweep(&self) -> Sweep {
        Sweep { step: self.step, screen: self.screen_rounds, keep: self.keep }
    }
}

/// One way to read the adaptive algorithm of sections 4.4 and 5.3, whose listing is not in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetSearch {
    pub search: Search,
    pub reference: Reference,
    pub first_is_stationary: bool,
    pub feedback: Feedback,
    pub period: u32,
    /// Periods without a rise after which the climb is over.
    pub stationary: u32,
    /// All steps, in per cent of those of the core's settings.
    pub granularity: u64,
}

impl TargetSearch {
    /// The core's.
    pub const CHOSEN: Self = Self {
        search: Search::Doubling,
        reference: Reference::Periods,
        first_is_stationary: true,
        feedback: Feedback::Counted,
        period: 10,
        stationary: 5,
        granularity: 100,
    };

    /// The earlier reading.
    pub const EARLIER: Self =
        Self { search: Search::Multiples, reference: Reference::Best, first_is_stationary: false, ..Self::CHOSEN };

    pub fn settings(&self, alpha: f64) -> Settings {
        let core = Settings::new(wad(alpha));
        Settings {
            search: self.search,
            reference: self.reference,
            first_is_stationary: self.first_is_stationary,
            period: self.period,
            stationary: self.stationary,
            steps: core.steps.map(|step| step / 100 * self.granularity),
            ..core
        }
    }

    /// The rounds it takes where the gain never changes.
    pub fn least_rounds(&self) -> u32 {
        let round = Tally { successes: 1, groups: 2, capacity: 2 };
        let mut climber = HillClimber::new(self.settings(0.5));
        let mut rounds = 0;
        while !climber.is_steady() {
            climber.observe(round);
            rounds += 1;
        }
        rounds
    }

    pub fn targeting(&self, alpha: f64) -> Targeting {
        Targeting::Adaptive(self.settings(alpha), self.feedback)
    }
}

/// How the text is read where it can be read in two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    pub name: &'static str,
    pub fallback: Fallback,
    pub climb: TargetSearch,
}

impl Reading {
    pub const CHOSEN: Self = Self { name: "chosen", fallback: Fallback::Largest, climb: TargetSearch::CHOSEN };
    pub const EARLIER: Self = Self { name: "earlier", fallback: Fallback::Closest, climb: TargetSearch::EARLIER };
}

/// An adaptive run's algorithm, population and weight of throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    pub name: Name,
    pub algorithm: Algorithm,
    pub measure: Measure,
    pub alpha: f64,
}

/// The targeting during a blackout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Chooser {
    /// Fixed's success rate on the same workers before it.
    Static,
    TargetSearch(TargetSearch, f64),
    /// A climb that starts from Fixed's success rate.
    ClimbFromStatic(TargetSearch, f64),
    Predictive(f64),
    /// The predictive target, and groups planned together.
    Planned(f64),
}

pub fn wad(value: f64) -> u64 {
    (value * WAD as f64) as u64
}

/// A run with the paper's parameters, lower bound and Tight-fit.
pub fn base(population: Population, seed: u64) -> Run {
    Run {
        population,
        workers: SMALL,
        min: MIN,
        max: MAX,
        algorithm: Algorithm::TIGHT_FIT,
        measure: Measure::Bound,
        targeting: Targeting::Static(0),
        alpha: WAD / 2,
        rounds: 0,
        blackout: None,
        population_seed: seed,
        run_seed: 0,
        keep_rounds: false,
        compare_measures: false,
    }
}

/// Fixed on these workers. It asks for no likelihood; the exact measure spares it the logarithms.
pub fn fixed(population: Population, workers: usize, max: usize, rounds: u32, seed: u64) -> Run {
    Run { workers, max, algorithm: Algorithm::Fixed, measure: Measure::Exact, rounds, ..base(population, seed) }
}

/// Another algorithm on the workers of a run of Fixed, with Fixed's success rate as its target.
pub fn given(lab: &Lab, fixed: &Run, algorithm: Algorithm, measure: Measure) -> Run {
    if algorithm == Algorithm::Fixed {
        return *fixed;
    }
    Run {
        algorithm,
        measure,
        targeting: Targeting::Static(wad(lab.outcome(fixed).success)),
        compare_measures: measure == Measure::Bound,
        ..*fixed
    }
}

/// A set of populations and a reading, with everything that is run under them.
#[derive(Clone, Copy)]
pub struct Variant {
    pub set: Set,
    pub reading: Reading,
    pub scale: Scale,
    /// The first of the populations' seeds.
    pub first: u64,
}

impl Variant {
    /// Both sets under both readings, the present one last.
    pub fn all(scale: Scale, seed: u64) -> [Self; 4] {
        // Leaves room for the seeds of one experiment.
        let first = seed << 20;
        [
            (Set::FIRST, Reading::EARLIER),
            (Set::FIRST, Reading::CHOSEN),
            (Set::FITTED, Reading::EARLIER),
            (Set::FITTED, Reading::CHOSEN),
        ]
        .map(|(set, reading)| Self { set, reading, scale, first })
    }

    pub const fn tight_fit(&self) -> Algorithm {
        Algorithm::TightFit(self.reading.fallback)
    }

    pub const fn greedy(&self) -> [Algorithm; 2] {
        [Algorithm::FirstFit, self.tight_fit()]
    }

    pub const fn rated(&self) -> [Algorithm; 3] {
        [Algorithm::FirstFit, self.tight_fit(), Algorithm::RandomFit]
    }

    pub(super) fn seeds(&self, count: u64) -> impl Iterator<Item = u64> {
        let first = self.first;
        (0..count).map(move |seed| first + seed)
    }

    fn seeds_for(&self, workers: usize) -> u64 {
        if workers == SMALL {
            self.scale.seeds
        } else {
            self.scale.large_seeds
        }
    }

    /// Fixed, once for each seed.
    pub fn fixed(&self, name: Name, workers: usize, max: usize) -> Vec<Run> {
        self.seeds(self.seeds_for(workers)).map(|seed| fixed(self.set.of(name), workers, max, self.scale.rounds, seed)).collect()
    }

    /// An experiment with a given target, once for each seed.
    pub fn given(&self, lab: &Lab, key: Key) -> Vec<Run> {
        let fixed = self.fixed(key.name, key.workers, key.max);
        fixed.iter().map(|fixed| given(lab, fixed, key.algorithm, key.measure)).collect()
    }

    /// The runs on which a case's static targets are tried, one for each seed.
    pub fn static_bases(&self, name: Name, algorithm: Algorithm, measure: Measure) -> Vec<Run> {
        self.seeds(self.scale.sweep_seeds)
            .map(|seed| Run { algorithm, measure, rounds: self.scale.long_rounds, ..base(self.set.of(name), seed) })
            .collect()
    }

    /// A case with targets from a chooser: for each seed of the workers, some runs.
    pub fn chosen(&self, case: &Case, targeting: Targeting) -> Vec<Vec<Run>> {
        self.static_bases(case.name, case.algorithm, case.measure)
            .into_iter()
            .map(|run| {
                // Run seed 0 belongs to the static targets.
                (1..=self.scale.repeats).map(|run_seed| Run { targeting, run_seed, alpha: wad(case.alpha), ..run }).collect()
            })
            .collect()
    }

    pub fn adaptive(&self, case: &Case) -> Vec<Vec<Run>> {
        self.chosen(case, self.reading.climb.targeting(case.alpha))
    }

    /// The cases of figures 6 to 8: 36 for two algorithms.
    pub fn cases(algorithms: &[Algorithm], measure: Measure) -> Vec<Case> {
        let mut cases = Vec::new();
        for &algorithm in algorithms {
            for alpha in ALPHAS {
                cases.extend(Name::ALL.map(|name| Case { name, algorithm, measure, alpha }));
            }
        }
        cases
    }

    /// The blackout, once for each seed, with this reading's Tight-fit.
    pub fn blackout(&self, lab: &Lab, chooser: Chooser, measure: Measure) -> Vec<Run> {
        let quiet = self.blackout_fixed();
        let settled = |quiet: &Run| {
            let targeting = match chooser {
                Chooser::Static => Targeting::Static(wad(lab.outcome(quiet).success)),
                Chooser::TargetSearch(climb, alpha) => climb.targeting(alpha),
                Chooser::ClimbFromStatic(climb, alpha) => Targeting::Adaptive(
                    Settings { initial: wad(lab.outcome(quiet).success), ..climb.settings(alpha) },
                    climb.feedback,
                ),
                Chooser::Predictive(alpha) | Chooser::Planned(alpha) => {
                    Targeting::Predictive { alpha: wad(alpha), every: PREDICT_EVERY }
                }
            };
            Run {
                algorithm: match chooser {
                    Chooser::Planned(_) => Algorithm::Planned,
                    _ => self.tight_fit(),
                },
                measure,
                targeting,
                rounds: BLACKOUT_ROUNDS,
                blackout: Some(Blackout { after: STRIKE, percent: STRUCK, to: self.set.of(Name::HeavyLow) }),
                keep_rounds: true,
                ..*quiet
            }
        };
        quiet.iter().map(settled).collect()
    }

    /// The adaptive blackouts again, each with the target that its climb had when it struck, kept to the end.
    pub fn kept(&self, lab: &Lab) -> Vec<Run> {
        let climbs = self.blackout(lab, Chooser::TargetSearch(self.reading.climb, 0.5), Measure::Bound);
        let target = |run: &Run| lab.outcome(run).per_round[STRIKE as usize - 1].target;
        climbs.iter().map(|run| Run { targeting: Targeting::Static(target(run)), ..*run }).collect()
    }

    /// Fixed on the workers of the blackout, without it.
    pub fn blackout_fixed(&self) -> Vec<Run> {
        let population = self.set.of(Name::NormalHigh);
        self.seeds(self.scale.blackout_seeds).map(|seed| fixed(population, SMALL, MAX, BLACKOUT_ROUNDS, seed)).collect()
    }

    /// An estimate over the seeds of an experiment with a given target.
    pub fn estimate(&self, lab: &Lab, key: Key, value: impl Fn(&Outcome) -> f64) -> Estimate {
        Estimate::of(&self.values(lab, key, value))
    }

    fn values(&self, lab: &Lab, key: Key, value: impl Fn(&Outcome) -> f64) -> Vec<f64> {
        self.given(lab, key).iter().map(|run| value(lab.outcome(run))).collect()
    }

    /// The same relative to another algorithm or measure on the same workers, seed by seed, minus one.
    pub fn relative(&self, lab: &Lab, key: Key, to: Key, value: impl Fn(&Outcome) -> f64) -> Estimate {
        let (of, to) = (self.values(lab, key, &value), self.values(lab, to, &value));
        Estimate::of(&of.iter().zip(&to).map(|(a, b)| a / b - 1.0).collect::<Vec<_>>())
    }

    /// The same as a difference.
    pub fn difference(&self, lab: &Lab, key: Key, from: Key, value: impl Fn(&Outcome) -> f64) -> Estimate {
        let (of, from) = (self.values(lab, key, &value), self.values(lab, from, &value));
        Estimate::of(&of.iter().zip(&from).map(|(a, b)| a - b).collect::<Vec<_>>())
    }

    /// The gain of a case's runs by the best static target of the same case, minus one. The unit is a population: runs on
    /// the same workers are averaged first.
    pub fn deviation(&self, lab: &Lab, case: &Case, targeting: Targeting) -> Estimate {
        Estimate::of(&self.deviations(lab, case, targeting))
    }

    /// The same, population by population.
    pub fn deviations(&self, lab: &Lab, case: &Case, targeting: Targeting) -> Vec<f64> {
        let best = self.best(lab, case);
        let runs = self.chosen(case, targeting);
        let ratios = runs.iter().zip(best).map(|(runs, best)| {
            let gain: f64 = runs.iter().map(|run| lab.outcome(run).gain(case.alpha)).sum();
            gain / runs.len() as f64 / best - 1.0
        });
        ratios.collect()
    }

    /// The largest gain of a static target, for each population. A planned grouping has no target of its own; it is held
    /// against Tight-fit's.
    pub fn best(&self, lab: &Lab, case: &Case) -> Vec<f64> {
        self.ranges(lab, case).into_iter().map(|range| range.1).collect()
    }

    /// The least and the largest.
    pub fn ranges(&self, lab: &Lab, case: &Case) -> Vec<(f64, f64)> {
        let algorithm = match case.algorithm {
            Algorithm::Planned => Algorithm::TIGHT_FIT,
            other => other,
        };
        let sweep = self.scale.sweep();
        self.static_bases(case.name, algorithm, case.measure)
            .iter()
            .map(|base| sweep.range(lab, base, &ALPHAS, case.alpha))
            .collect()
    }

    /// A quantity of a case's runs, one value for each population.
    pub fn of_case(&self, lab: &Lab, case: &Case, targeting: Targeting, value: impl Fn(&Outcome) -> f64) -> Vec<f64> {
        let runs = self.chosen(case, targeting);
        let mean = |runs: &Vec<Run>| runs.iter().map(|run| value(lab.outcome(run))).sum::<f64>() / runs.len() as f64;
        runs.iter().map(mean).collect()
    }

    /// How many of these cases differ: where the gain says the same for two weights, their runs are the same to the last
    /// digit. For each case, the first that is like it.
    pub fn distinct(&self, lab: &Lab, cases: &[Case]) -> Vec<usize> {
        let print = |case: &Case| -> Vec<(u64, u64)> {
            let of = |run: &Run| {
                let outcome = lab.outcome(run);
                (outcome.throughput.to_bits(), outcome.success.to_bits())
            };
            self.adaptive(case).iter().flatten().map(of).collect()
        };
        let prints: Vec<_> = cases.iter().map(print).collect();
        let alike = |a: usize, b: usize| {
            let (one, other) = (&cases[a], &cases[b]);
            (one.name, one.algorithm) == (other.name, other.algorithm) && prints[a] == prints[b]
        };
        (0..cases.len()).map(|i| (0..i).find(|&j| alike(j, i)).unwrap_or(i)).collect()
    }
}

/// An experiment with a given target.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub name: Name,
    pub workers: usize,
    pub max: usize,
    pub measure: Measure,
    pub algorithm: Algorithm,
}

impl Key {
    /// With Rmax 7.
    pub const fn new(name: Name, workers: usize, measure: Measure, algorithm: Algorithm) -> Self {
        Self { name, workers, max: MAX, measure, algorithm }
    }

    /// With 100 workers and the lower bound.
    pub const fn small(name: Name, algorithm: Algorithm) -> Self {
        Self::new(name, SMALL, Measure::Bound, algorithm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_what_fixed_reaches() {
        let fixed = fixed(Population::Uniform, SMALL, MAX, 10, 1);
        let mut lab = Lab::default();
        lab.play("Fixed", [fixed]);
        let run = given(&lab, &fixed, Algorithm::FirstFit, Measure::Bound);
        let reached = lab.outcome(&fixed).success;
        assert!(reached > 0.0 && run.targeting == Targeting::Static(wad(reached)));
        // On the same workers, with the same sizes, for as long.
        let same = |run: &Run| (run.population, run.population_seed, run.workers, run.min, run.max, run.rounds);
        assert_eq!(same(&run), same(&fixed));
    }

    /// The climb's target when the blackout strikes, kept to the end.
    #[test]
    fn a_kept_target_is_the_one_before_the_blackout() {
        let [.., v] = Variant::all(Scale { blackout_seeds: 2, ..Scale::QUICK }, 3);
        let mut lab = Lab::default();
        lab.play("Fixed", v.blackout_fixed());
        let climbs = v.blackout(&lab, Chooser::TargetSearch(v.reading.climb, 0.5), Measure::Bound);
        lab.play("climbs", climbs.clone());
        let kept = v.kept(&lab);
        lab.play("kept", kept.clone());
        for (climb, kept) in climbs.iter().zip(&kept) {
            let before = lab.outcome(climb).per_round[STRIKE as usize - 1].target;
            assert!(lab.outcome(kept).per_round.iter().all(|round| round.target == before));
            assert_eq!(Run { targeting: climb.targeting, ..*kept }, *climb);
        }
    }
}
