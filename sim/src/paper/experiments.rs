//! Which runs make up which experiment.

use std::collections::BTreeMap;

use muster_core::adaptive::Settings;
use muster_core::reputation::{likelihood, tight_fit, Bound, LogRating, Rule};
use muster_core::wad::WAD;

use crate::jobs;
use crate::population::Population;
use crate::random::Random;
use crate::rounds::{Algorithm, Blackout, Measure, Outcome, Run, Targeting};
use crate::statistics::Estimate;

/// Rmin and, where it does not vary, Rmax.
pub const MIN: usize = 3;
pub const MAX: usize = 7;
/// Network sizes of figures 3 to 5.
pub const SMALL: usize = 100;
pub const LARGE: usize = 1000;
/// The paper's weights of throughput: figures 6, 7, 8.
pub const ALPHAS: [f64; 3] = [0.5, 1.0, 0.0];
pub const MAXES: [usize; 4] = [3, 5, 7, 9];
pub const GREEDY: [Algorithm; 2] = [Algorithm::FirstFit, Algorithm::TightFit];
pub const RATED: [Algorithm; 3] = [
    Algorithm::FirstFit,
    Algorithm::TightFit,
    Algorithm::RandomFit,
];
/// How often a predictive target is computed anew, in rounds.
pub const PREDICT_EVERY: u32 = 25;
pub const BLACKOUT: Blackout = Blackout {
    after: 300,
    percent: 30,
    to: Population::HeavyLow,
};
pub const BLACKOUT_ROUNDS: u32 = 1000;

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    pub quick: bool,
    /// Rounds of the experiments with a given target.
    pub rounds: u32,
    /// Rounds of the experiments with adaptive targets, and of the static ones they are compared with.
    pub long_rounds: u32,
    /// Seeds of the experiments with a given target, for 100 and for 1,000 workers.
    pub seeds: u64,
    pub large_seeds: u64,
    /// Populations for which every static target is tried.
    pub sweep_seeds: u64,
    /// Adaptive runs on each of these populations.
    pub repeats: u64,
    /// Static targets are multiples of this many hundredths.
    pub step: u64,
    pub blackout_seeds: u64,
}

impl Scale {
    pub const FULL: Self = Self {
        quick: false,
        rounds: 1000,
        long_rounds: 10_000,
        seeds: 20,
        large_seeds: 10,
        sweep_seeds: 3,
        repeats: 4,
        step: 1,
        blackout_seeds: 60,
    };

    pub const QUICK: Self = Self {
        quick: true,
        rounds: 300,
        long_rounds: 800,
        seeds: 4,
        large_seeds: 2,
        sweep_seeds: 2,
        repeats: 2,
        step: 5,
        blackout_seeds: 8,
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub population: Population,
    pub workers: usize,
    pub max: usize,
    pub measure: Measure,
    pub algorithm: Algorithm,
}

/// What chooses the target, or the groups, in the experiments of section 5.3 and beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strategy {
    Adaptive,
    Predictive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AdaptiveKey {
    pub strategy: Strategy,
    pub population: Population,
    pub measure: Measure,
    pub algorithm: Algorithm,
    /// Index into [`ALPHAS`].
    pub alpha: usize,
}

/// Everything that was measured.
pub struct Results {
    pub scale: Scale,
    /// With the target of Fixed's success rate; one outcome per seed.
    pub fixed_target: BTreeMap<Key, Vec<Outcome>>,
    /// Static targets: for each population seed, one outcome per target.
    pub sweep: BTreeMap<(Population, Measure, Algorithm), Vec<Vec<Outcome>>>,
    /// For each population seed, one outcome per repeat.
    pub adaptive: BTreeMap<AdaptiveKey, Vec<Vec<Outcome>>>,
    /// Adaptive First-fit for alpha in tenths.
    pub alphas: BTreeMap<(Population, u64), Vec<Outcome>>,
    /// One outcome per seed, with every round.
    pub blackout: Vec<(&'static str, Vec<Outcome>)>,
    pub known: Known,
}

/// What Tight-fit under heavy-high would reach if the server knew every worker's probability.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    pub success: f64,
    /// The share of groups that meet the target, their success rate, and the others'.
    pub meeting: f64,
    pub meeting_success: f64,
    pub other_success: f64,
}

impl Results {
    /// An estimate over the seeds of an experiment with Fixed's target.
    pub fn estimate(&self, key: Key, value: impl Fn(&Outcome) -> f64) -> Estimate {
        let outcomes = self.fixed_target.get(&key).map_or(&[][..], Vec::as_slice);
        Estimate::of(&outcomes.iter().map(value).collect::<Vec<_>>())
    }

    /// The same relative to another key's outcome, seed by seed, minus one.
    pub fn relative(&self, key: Key, base: Key, value: impl Fn(&Outcome) -> f64) -> Estimate {
        let of = |key| self.fixed_target.get(&key).map_or(&[][..], Vec::as_slice);
        let ratios: Vec<f64> = of(key)
            .iter()
            .zip(of(base))
            .map(|(a, b)| value(a) / value(b) - 1.0)
            .collect();
        Estimate::of(&ratios)
    }

    /// The same as a difference.
    pub fn difference(&self, key: Key, base: Key, value: impl Fn(&Outcome) -> f64) -> Estimate {
        let of = |key| self.fixed_target.get(&key).map_or(&[][..], Vec::as_slice);
        let differences: Vec<f64> = of(key)
            .iter()
            .zip(of(base))
            .map(|(a, b)| value(a) - value(b))
            .collect();
        Estimate::of(&differences)
    }

    /// Largest and smallest gain a static target reaches, on each population.
    pub fn static_range(
        &self,
        sweep: (Population, Measure, Algorithm),
        alpha: f64,
    ) -> Vec<(f64, f64)> {
        let range = |outcomes: &Vec<Outcome>| {
            let gains = outcomes.iter().map(|o| o.gain(alpha));
            gains.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), g| {
                (low.min(g), high.max(g))
            })
        };
        self.sweep
            .get(&sweep)
            .map(|seeds| seeds.iter().map(range).collect())
            .unwrap_or_default()
    }

    pub fn adaptive_gain(&self, key: AdaptiveKey) -> Estimate {
        let gains = self
            .adaptive
            .get(&key)
            .into_iter()
            .flatten()
            .flatten()
            .map(|o| o.gain(ALPHAS[key.alpha]));
        Estimate::of(&gains.collect::<Vec<_>>())
    }

    /// Gain of a strategy by the best static target of `base` on the same population, minus one.
    pub fn against_best(
        &self,
        key: AdaptiveKey,
        base: (Population, Measure, Algorithm),
    ) -> Estimate {
        let alpha = ALPHAS[key.alpha];
        let best = self.static_range(base, alpha);
        let ratios = self.adaptive.get(&key).into_iter().flatten().zip(&best);
        let ratios = ratios
            .flat_map(|(runs, (_, best))| runs.iter().map(move |o| o.gain(alpha) / best - 1.0));
        Estimate::of(&ratios.collect::<Vec<_>>())
    }
}

fn wad(value: f64) -> u64 {
    (value * WAD as f64) as u64
}

/// A run with the paper's parameters, lower bound and Tight-fit.
fn base(population: Population, seed: u64) -> Run {
    Run {
        population,
        workers: SMALL,
        min: MIN,
        max: MAX,
        algorithm: Algorithm::TightFit,
        measure: Measure::Bound,
        targeting: Targeting::Static(WAD / 2),
        alpha: WAD / 2,
        rounds: 0,
        blackout: None,
        population_seed: seed,
        run_seed: 0,
        keep_rounds: false,
        compare_measures: false,
    }
}

pub fn run(scale: &Scale, seed: u64) -> Results {
    // Leaves room for the seeds of one experiment.
    let first = seed << 20;
    let mut fixed_target = BTreeMap::new();
    for (workers, seeds) in [(SMALL, scale.seeds), (LARGE, scale.large_seeds)] {
        let title = format!("Figures 3-5, 11, 12, table 4: {workers} workers");
        fixed_target.extend(with_fixed_target(
            &title,
            scale,
            first,
            workers,
            seeds,
            &Population::ALL,
            &[MAX],
        ));
    }
    let others: Vec<usize> = MAXES.into_iter().filter(|max| *max != MAX).collect();
    let heavy = [Population::HeavyHigh];
    fixed_target.extend(with_fixed_target(
        "Table 2",
        scale,
        first,
        SMALL,
        scale.seeds,
        &heavy,
        &others,
    ));
    Results {
        scale: *scale,
        fixed_target,
        sweep: sweep(scale, first),
        adaptive: adaptive(scale, first),
        alphas: alphas(scale, first),
        blackout: blackout(scale, first),
        known: known(scale, first),
    }
}

fn known(scale: &Scale, first: u64) -> Known {
    let population = Population::HeavyHigh;
    let workers = |seed| {
        let mut random = Random::named(&[KNOWN, first + seed]);
        let mut workers: Vec<u64> = (0..SMALL)
            .map(|_| wad(population.draw(&mut random)))
            .collect();
        workers.sort_unstable_by(|a, b| b.cmp(a));
        workers
    };
    // Seven random workers are right with the mean probability: Fixed's success rate.
    let all: Vec<u64> = (0..scale.seeds).flat_map(workers).collect();
    let mean = all.iter().map(|p| u128::from(*p)).sum::<u128>() / all.len() as u128;
    let target = likelihood(&[mean as u64; MAX]).unwrap_or(0);
    let rule = Rule::new(MIN, MAX, target)
        .expect("the paper's sizes are allowed, and a likelihood is at most one");
    let (mut met, mut missed) = (Vec::new(), Vec::new());
    for seed in 0..scale.seeds {
        let mut workers: Vec<LogRating> = workers(seed).into_iter().map(LogRating::new).collect();
        let mut free = &mut workers[..];
        while let Some(formed) = tight_fit::<_, Bound>(free, &rule) {
            let group: Vec<u64> = free[..formed.size].iter().map(LogRating::rating).collect();
            let success = likelihood(&group).unwrap_or(0) as f64 / WAD as f64;
            let reached = formed.likelihood.is_some_and(|bound| bound >= target);
            if reached { &mut met } else { &mut missed }.push(success);
            free = &mut free[formed.size..];
        }
    }
    let sum = |groups: &[f64]| groups.iter().sum::<f64>();
    let (meeting, others) = (met.len() as f64, missed.len() as f64);
    Known {
        success: (sum(&met) + sum(&missed)) / (meeting + others),
        meeting: meeting / (meeting + others),
        meeting_success: sum(&met) / meeting,
        other_success: sum(&missed) / others,
    }
}

/// Name of a random stream, unlike those of the rounds.
const KNOWN: u64 = 4;

/// All four algorithms, the target being what Fixed reaches on the same workers.
fn with_fixed_target(
    title: &str,
    scale: &Scale,
    first: u64,
    workers: usize,
    seeds: u64,
    populations: &[Population],
    maxes: &[usize],
) -> BTreeMap<Key, Vec<Outcome>> {
    let mut baseline = Vec::new();
    for &population in populations {
        for &max in maxes {
            for seed in 0..seeds {
                let run = base(population, first + seed);
                // Fixed asks for no likelihood; the exact measure spares it the logarithms.
                baseline.push(Run {
                    workers,
                    max,
                    algorithm: Algorithm::Fixed,
                    measure: Measure::Exact,
                    rounds: scale.rounds,
                    ..run
                });
            }
        }
    }
    let reached = jobs::play(&format!("{title}, Fixed"), &baseline);
    let mut runs = Vec::new();
    for (run, reached) in baseline.iter().zip(&reached) {
        let targeting = Targeting::Static(wad(reached.success));
        for measure in Measure::ALL {
            for algorithm in RATED {
                let compare_measures = measure == Measure::Bound;
                runs.push(Run {
                    algorithm,
                    measure,
                    targeting,
                    compare_measures,
                    ..*run
                });
            }
        }
    }
    let outcomes = jobs::play(title, &runs);
    let mut results: BTreeMap<Key, Vec<Outcome>> = BTreeMap::new();
    for (run, outcome) in baseline.iter().zip(&reached) {
        // Fixed is the same under both measures.
        for measure in Measure::ALL {
            results
                .entry(key(&Run { measure, ..*run }))
                .or_default()
                .push(outcome.clone());
        }
    }
    for (run, outcome) in runs.iter().zip(outcomes) {
        results.entry(key(run)).or_default().push(outcome);
    }
    results
}

fn key(run: &Run) -> Key {
    let Run {
        population,
        workers,
        max,
        measure,
        algorithm,
        ..
    } = *run;
    Key {
        population,
        workers,
        max,
        measure,
        algorithm,
    }
}

fn sweep(
    scale: &Scale,
    first: u64,
) -> BTreeMap<(Population, Measure, Algorithm), Vec<Vec<Outcome>>> {
    let targets: Vec<u64> = (0..=100 / scale.step)
        .map(|i| i * scale.step * (WAD / 100))
        .collect();
    let mut runs = Vec::new();
    for population in Population::ALL {
        for measure in Measure::ALL {
            for algorithm in GREEDY {
                for seed in 0..scale.sweep_seeds {
                    let run = base(population, first + seed);
                    runs.extend(targets.iter().map(|target| Run {
                        algorithm,
                        measure,
                        targeting: Targeting::Static(*target),
                        rounds: scale.long_rounds,
                        ..run
                    }));
                }
            }
        }
    }
    let outcomes = jobs::play("Figures 6-8: every static target", &runs);
    let mut results: BTreeMap<_, Vec<Vec<Outcome>>> = BTreeMap::new();
    for (runs, outcomes) in runs
        .chunks(targets.len())
        .zip(outcomes.chunks(targets.len()))
    {
        let Run {
            population,
            measure,
            algorithm,
            ..
        } = runs[0];
        results
            .entry((population, measure, algorithm))
            .or_default()
            .push(outcomes.to_vec());
    }
    results
}

fn adaptive(scale: &Scale, first: u64) -> BTreeMap<AdaptiveKey, Vec<Vec<Outcome>>> {
    let mut keys = Vec::new();
    for population in Population::ALL {
        for alpha in 0..ALPHAS.len() {
            for algorithm in GREEDY {
                for measure in Measure::ALL {
                    keys.push(AdaptiveKey {
                        strategy: Strategy::Adaptive,
                        population,
                        measure,
                        algorithm,
                        alpha,
                    });
                }
            }
            for algorithm in [Algorithm::FirstFit, Algorithm::TightFit, Algorithm::Planned] {
                let measure = Measure::Exact;
                keys.push(AdaptiveKey {
                    strategy: Strategy::Predictive,
                    population,
                    measure,
                    algorithm,
                    alpha,
                });
            }
        }
    }
    let mut runs = Vec::new();
    for key in &keys {
        let alpha = wad(ALPHAS[key.alpha]);
        let targeting = match key.strategy {
            Strategy::Adaptive => Targeting::Adaptive(Settings::new(alpha)),
            Strategy::Predictive => Targeting::Predictive {
                alpha,
                every: PREDICT_EVERY,
            },
        };
        for seed in 0..scale.sweep_seeds {
            // Run seed 0 is what the static targets had.
            runs.extend((1..=scale.repeats).map(|run_seed| Run {
                algorithm: key.algorithm,
                measure: key.measure,
                targeting,
                alpha,
                rounds: scale.long_rounds,
                run_seed,
                ..base(key.population, first + seed)
            }));
        }
    }
    let outcomes = jobs::play("Figures 6-8, table 3: adaptive, and beyond", &runs);
    let per_seed: Vec<Vec<Outcome>> = outcomes
        .chunks(scale.repeats as usize)
        .map(<[_]>::to_vec)
        .collect();
    keys.into_iter()
        .zip(
            per_seed
                .chunks(scale.sweep_seeds as usize)
                .map(<[_]>::to_vec),
        )
        .collect()
}

fn alphas(scale: &Scale, first: u64) -> BTreeMap<(Population, u64), Vec<Outcome>> {
    let mut runs = Vec::new();
    let mut keys = Vec::new();
    for population in Population::ALL {
        for tenths in 0..=10 {
            keys.push((population, tenths));
            for seed in 0..scale.sweep_seeds {
                runs.extend((1..=scale.repeats).map(|run_seed| Run {
                    algorithm: Algorithm::FirstFit,
                    targeting: Targeting::Adaptive(Settings::new(WAD / 10 * tenths)),
                    rounds: scale.long_rounds,
                    run_seed,
                    ..base(population, first + seed)
                }));
            }
        }
    }
    let outcomes = jobs::play("Figure 9: alpha from 0 to 1", &runs);
    let each = (scale.sweep_seeds * scale.repeats) as usize;
    keys.into_iter()
        .zip(outcomes.chunks(each).map(<[_]>::to_vec))
        .collect()
}

fn blackout(scale: &Scale, first: u64) -> Vec<(&'static str, Vec<Outcome>)> {
    let seeds = || (0..scale.blackout_seeds).map(|seed| base(Population::NormalHigh, first + seed));
    let quiet: Vec<Run> = seeds()
        .map(|run| Run {
            algorithm: Algorithm::Fixed,
            measure: Measure::Exact,
            rounds: scale.rounds,
            ..run
        })
        .collect();
    let reached = jobs::play("Figure 10, Fixed", &quiet);
    let half = WAD / 2;
    let adaptive = |alpha| Targeting::Adaptive(Settings::new(alpha));
    let predictive = Targeting::Predictive {
        alpha: half,
        every: PREDICT_EVERY,
    };
    let kinds = [
        ("static target", Algorithm::TightFit, None),
        (
            "adaptive, alpha 0.5",
            Algorithm::TightFit,
            Some(adaptive(half)),
        ),
        (
            "adaptive, alpha 1",
            Algorithm::TightFit,
            Some(adaptive(WAD)),
        ),
        ("planned, alpha 0.5", Algorithm::Planned, Some(predictive)),
    ];
    let mut runs = Vec::new();
    for (_, algorithm, targeting) in kinds {
        for (run, reached) in seeds().zip(&reached) {
            runs.push(Run {
                algorithm,
                measure: if algorithm == Algorithm::Planned {
                    Measure::Exact
                } else {
                    Measure::Bound
                },
                targeting: targeting.unwrap_or(Targeting::Static(wad(reached.success))),
                alpha: half,
                rounds: BLACKOUT_ROUNDS,
                blackout: Some(BLACKOUT),
                keep_rounds: true,
                ..run
            });
        }
    }
    let outcomes = jobs::play("Figure 10: blackout", &runs);
    let each = scale.blackout_seeds as usize;
    kinds
        .iter()
        .map(|kind| kind.0)
        .zip(outcomes.chunks(each).map(<[_]>::to_vec))
        .collect()
}
