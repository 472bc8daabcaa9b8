//! The runs of each experiment.

use muster_core::adaptive::{Reference, Search};
use muster_core::reputation::Fallback;

use super::fit::{heavy_high, Trial};
use super::lab::Lab;
use super::variant::{
    base, wad, Case, Chooser, Key, Reading, Scale, TargetSearch, Variant, ALPHAS, LARGE, MAX, MAXES, PREDICT_EVERY, SMALL,
};
use crate::population::{Name, Population, Set};
use crate::rounds::{Algorithm, Blackout, Feedback, Measure, Run, Targeting};

/// The possible influences on convergence (section 5.3.4): a name, and how the runs differ.
pub const WAITS: [u32; 3] = [5, 10, 20];
pub const GRANULARITIES: [u64; 3] = [50, 100, 200];
pub const STATIONARY: [u32; 3] = [3, 5, 8];
pub const DEVIATIONS: [u16; 3] = [50, 150, 300];
/// Percent of the workers that fail.
pub const MAGNITUDES: [usize; 4] = [10, 30, 60, 90];
/// Weights of throughput in figure 9, in tenths.
pub const SWEPT_ALPHAS: [u32; 11] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

impl Variant {
    fn convergence(&self, population: Population, climb: TargetSearch) -> Vec<Run> {
        let mut runs = Vec::new();
        for algorithm in self.greedy() {
            runs.extend(self.seeds(self.scale.convergence_seeds).map(|seed| Run {
                algorithm,
                targeting: climb.targeting(0.5),
                rounds: self.scale.convergence_rounds,
                run_seed: 1,
                ..base(population, seed)
            }));
        }
        runs
    }

    /// The runs of a climb on all six populations, for First-fit and Tight-fit, alpha 0.5.
    pub fn climbs(&self, climb: TargetSearch) -> Vec<Run> {
        let of = |name| self.convergence(self.set.of(name), climb);
        Name::ALL.into_iter().flat_map(of).collect()
    }

    /// The same on normal populations around one half.
    pub fn spread(&self, deviation: u16) -> Vec<Run> {
        self.convergence(Population::normal(500, deviation), self.reading.climb)
    }

    /// A change of some of the workers, when the first climb is over. Of many seeds: a small change is noticed by few.
    pub fn change(&self, percent: usize) -> Vec<Run> {
        let population = self.set.of(Name::NormalHigh);
        let (after, rounds) = self.scale.change();
        self.seeds(self.scale.blackout_seeds)
            .map(|seed| Run {
                algorithm: self.tight_fit(),
                targeting: self.reading.climb.targeting(0.5),
                rounds,
                run_seed: 1,
                blackout: Some(Blackout { after, percent, to: self.set.of(Name::HeavyLow) }),
                ..base(population, seed)
            })
            .collect()
    }

    /// The runs for a claim: first those that the rest needs, then the rest.
    fn foundations(&self) -> Vec<Run> {
        let mut runs = self.blackout_fixed();
        for name in Name::ALL {
            for workers in [SMALL, LARGE] {
                runs.extend(self.fixed(name, workers, MAX));
            }
        }
        for max in MAXES {
            runs.extend(self.fixed(Name::HeavyHigh, SMALL, max));
        }
        runs
    }

    fn with_given_target(&self, lab: &Lab) -> Vec<Run> {
        let mut runs = Vec::new();
        for algorithm in self.rated() {
            for name in Name::ALL {
                for (workers, measure) in [(SMALL, Measure::Bound), (SMALL, Measure::Exact), (LARGE, Measure::Bound)] {
                    runs.extend(self.given(lab, Key::new(name, workers, measure, algorithm)));
                }
            }
            for max in MAXES {
                let key = Key::small(Name::HeavyHigh, algorithm);
                runs.extend(self.given(lab, Key { max, ..key }));
            }
        }
        runs
    }

    fn bases(&self, measure: Measure) -> Vec<Run> {
        let greedy = self.greedy();
        Name::ALL.into_iter().flat_map(|name| greedy.map(|a| self.static_bases(name, a, measure))).flatten().collect()
    }

    fn adaptively(&self, lab: &Lab) -> Vec<Run> {
        let mut runs: Vec<Run> =
            Self::cases(&self.greedy(), Measure::Bound).iter().flat_map(|case| self.adaptive(case)).flatten().collect();
        runs.extend(blackouts(lab, self).into_iter().flat_map(|kind| kind.runs));
        runs
    }

    fn convergences(&self) -> Vec<Run> {
        let climb = self.reading.climb;
        let mut runs = Vec::new();
        for period in WAITS {
            runs.extend(self.climbs(TargetSearch { period, ..climb }));
        }
        for granularity in GRANULARITIES {
            let climb = TargetSearch { granularity, ..climb };
            runs.extend(self.climbs(climb));
        }
        for stationary in STATIONARY {
            runs.extend(self.climbs(TargetSearch { stationary, ..climb }));
        }
        for deviation in DEVIATIONS {
            runs.extend(self.spread(deviation));
        }
        for percent in MAGNITUDES {
            runs.extend(self.change(percent));
        }
        runs
    }
}

/// Figure 9: adaptive First-fit for alpha in tenths.
pub fn weights(tenths: u32) -> Vec<Case> {
    let alpha = f64::from(tenths) / 10.0;
    Name::ALL.map(|name| Case { name, algorithm: Algorithm::FirstFit, measure: Measure::Bound, alpha }).to_vec()
}

/// Plays everything the page shows.
pub fn play(scale: &Scale, seed: u64) -> Lab {
    let mut lab = Lab::default();
    let variants = Variant::all(*scale, seed);
    let all = |of: &dyn Fn(&Variant) -> Vec<Run>| -> Vec<Run> { variants.iter().flat_map(of).collect() };
    lab.play("Fixed", all(&|v| v.foundations()));
    let runs = all(&|v| v.with_given_target(&lab));
    lab.play("Figures 3-5, 11, 12, tables 2, 4", runs);
    let sweep = scale.sweep();
    let bases = all(&|v| v.bases(Measure::Bound));
    sweep.play(&mut lab, "Figures 6-8: static targets", &bases, &ALPHAS);
    let runs = all(&|v| v.adaptively(&lab));
    lab.play("Figures 6-8, 10: adaptive targets", runs);
    let runs = all(&|v| v.kept(&lab));
    lab.play("Figure 10: the climb's target kept", runs);
    lab.play("Section 5.3.4: convergence", all(&|v| v.convergences()));
    let present = variants[3];
    let runs: Vec<Run> =
        SWEPT_ALPHAS.iter().flat_map(|tenths| weights(*tenths)).flat_map(|case| present.adaptive(&case)).flatten().collect();
    lab.play("Figure 9: alpha from 0 to 1", runs);
    tried(&mut lab, &present);
    further(&mut lab, &present);
    lab
}

/// A way to read the adaptive algorithm, in words.
pub struct Alternative {
    pub label: &'static str,
    pub reading: Reading,
    /// The part of the text that this contradicts.
    pub against: &'static str,
}

/// The readings that were tried; the chosen one first.
pub fn alternatives() -> Vec<Alternative> {
    let chosen = Reading::CHOSEN;
    let with = |label, against, climb| Alternative { label, against, reading: Reading { climb, ..chosen } };
    let climb = TargetSearch::CHOSEN;
    let best = TargetSearch { reference: Reference::Best, ..climb };
    let minimum = "the minimum of 50 rounds";
    let unsmoothed = "the weights of the smoothing, listed among the climb's parameters";
    vec![
        with("doubling distances, gain smoothed over all periods (chosen)", "", climb),
        with(
            "the same, gain smoothed over rises only",
            "an average \"over time\"",
            TargetSearch { reference: Reference::Rises, ..climb },
        ),
        with("the same, best gain as measured", unsmoothed, best),
        with(
            "the same, and the first period does not count",
            "both: the smoothing and the minimum of 50 rounds",
            TargetSearch { first_is_stationary: false, ..best },
        ),
        with(
            "the chosen one, but the first period does not count",
            minimum,
            TargetSearch { first_is_stationary: false, ..climb },
        ),
        with(
            "multiples of the distance, gain smoothed over all periods",
            "",
            TargetSearch { search: Search::Multiples, ..climb },
        ),
        with(
            "multiples, best gain as measured, first period not counted (the earlier climb)",
            "both: the smoothing and the minimum of 50 rounds",
            TargetSearch::EARLIER,
        ),
        with("the chosen one with a period of 30", "the period of 10 rounds", TargetSearch { period: 30, ..climb }),
        with(
            "best gain as measured with a period of 30",
            "the period of 10 rounds, the smoothing",
            TargetSearch { period: 30, ..best },
        ),
        Alternative {
            label: "the chosen one, Tight-fit with the closest group as fallback",
            against: "\"large fixed-size groups\" (4.2.2), \"very large [...] groups\" (5.3.3)",
            reading: Reading { fallback: Fallback::Closest, ..chosen },
        },
        Alternative {
            label: "the earlier climb and the closest group as fallback (before)",
            against: "all of these",
            reading: Reading::EARLIER,
        },
    ]
}

/// Attempts to explain a claim that does not hold.
fn tried(lab: &mut Lab, v: &Variant) {
    let mut runs = Vec::new();
    for alternative in alternatives() {
        let v = Variant { reading: alternative.reading, ..*v };
        for case in Variant::cases(&v.greedy(), Measure::Bound) {
            runs.extend(v.adaptive(&case).into_iter().flatten());
        }
    }
    lab.play("Readings of the adaptive algorithm", runs);
    let mut runs = Vec::new();
    for tenths in SWEPT_ALPHAS {
        let (climb, alpha) = (v.reading.climb, f64::from(tenths) / 10.0);
        for chooser in [Chooser::TargetSearch(climb, alpha), Chooser::ClimbFromStatic(climb, alpha)] {
            runs.extend(v.blackout(lab, chooser, Measure::Bound));
        }
    }
    lab.play("Blackout: alpha from 0 to 1", runs);
    let trials = shapes(v);
    lab.play("Shapes of heavy-high, Fixed", trials.iter().flat_map(|(_, trial)| trial.fixed()));
    let runs: Vec<Run> = trials.iter().flat_map(|(_, trial)| trial.others(lab, &SHAPED)).collect();
    lab.play("Shapes of heavy-high", runs);
}

/// Algorithms tried with each shape.
pub const SHAPED: [Algorithm; 3] =
    [Algorithm::FirstFit, Algorithm::TightFit(Fallback::Largest), Algorithm::TightFit(Fallback::Closest)];

/// Shapes of heavy-high with which Fixed succeeds in 90 % of tasks.
pub fn shapes(v: &Variant) -> Vec<(Population, Trial)> {
    heavy_high().into_iter().map(|population| (population, Trial::new(population, &v.scale, v.first))).collect()
}

/// Something to choose targets and groups with, beyond the paper or for comparison.
pub struct Strategy {
    pub label: &'static str,
    /// Of any population.
    pub case: Case,
    pub targeting: Targeting,
}

/// The climb on expected instead of counted successes.
pub const EXPECTED: TargetSearch = TargetSearch { feedback: Feedback::Expected, ..TargetSearch::CHOSEN };

/// The strategies that are compared.
pub fn beyond(v: &Variant, alpha: f64) -> Vec<Strategy> {
    let climb = v.reading.climb.targeting(alpha);
    let predictive = Targeting::Predictive { alpha: wad(alpha), every: PREDICT_EVERY };
    let (bound, exact) = (Measure::Bound, Measure::Exact);
    let (first, tight) = (Algorithm::FirstFit, v.tight_fit());
    [
        ("adaptive First-fit, bound", first, bound, climb),
        ("adaptive Tight-fit, bound", tight, bound, climb),
        ("adaptive Tight-fit, exact", tight, exact, climb),
        ("climb on expected gain", tight, exact, EXPECTED.targeting(alpha)),
        ("predictive Tight-fit", tight, exact, predictive),
        ("planned", Algorithm::Planned, exact, predictive),
    ]
    .map(|(label, algorithm, measure, targeting)| Strategy {
        label,
        case: Case { name: Name::Uniform, algorithm, measure, alpha },
        targeting,
    })
    .into()
}

/// Algorithms, and their targeting by alpha.
pub type Contender = (&'static str, Vec<Algorithm>, fn(f64) -> Targeting);

/// The strategies compared with the best static target with the exact likelihood.
pub fn exact_strategies(v: &Variant) -> Vec<Contender> {
    let greedy = v.greedy().to_vec();
    let predictive: fn(f64) -> Targeting = |alpha| Targeting::Predictive { alpha: wad(alpha), every: PREDICT_EVERY };
    vec![
        ("exact", greedy.clone(), |alpha| TargetSearch::CHOSEN.targeting(alpha)),
        ("expected", greedy.clone(), |alpha| EXPECTED.targeting(alpha)),
        ("predictive", greedy, predictive),
        ("planned", vec![Algorithm::Planned], predictive),
    ]
}

/// A way through the blackout.
pub struct Kind {
    pub label: &'static str,
    pub runs: Vec<Run>,
}

/// Ways through the blackout. The first four are the paper's, of both its fallbacks and two weights; the others, which the
/// last variant alone has, go beyond it.
pub fn blackouts(lab: &Lab, v: &Variant) -> Vec<Kind> {
    let climb = v.reading.climb;
    let with = |fallback, chooser, measure| {
        let reading = Reading { fallback, ..v.reading };
        Variant { reading, ..*v }.blackout(lab, chooser, measure)
    };
    let own = v.reading.fallback;
    let (bound, exact) = (Measure::Bound, Measure::Exact);
    let mut kinds = vec![
        ("static, large group", with(Fallback::Largest, Chooser::Static, bound)),
        ("static, closest group", with(Fallback::Closest, Chooser::Static, bound)),
        ("adaptive, alpha 0.5", with(own, Chooser::TargetSearch(climb, 0.5), bound)),
        ("adaptive, alpha 0", with(own, Chooser::TargetSearch(climb, 0.0), bound)),
    ];
    if (v.set, v.reading) == (Set::FITTED, Reading::CHOSEN) {
        kinds.push(("climb on expected gain", with(own, Chooser::TargetSearch(EXPECTED, 0.5), exact)));
        kinds.push(("predictive", with(own, Chooser::Predictive(0.5), exact)));
        kinds.push(("planned", with(own, Chooser::Planned(0.5), exact)));
    }
    kinds.into_iter().map(|(label, runs)| Kind { label, runs }).collect()
}

/// The experiments beyond the paper.
fn further(lab: &mut Lab, v: &Variant) {
    let bases = v.bases(Measure::Exact);
    v.scale.sweep().play(lab, "Beyond: static targets, exact LOC", &bases, &ALPHAS);
    for (label, algorithms, targeting) in exact_strategies(v) {
        let cases = Variant::cases(&algorithms, Measure::Exact);
        let runs = cases.iter().flat_map(|case| v.chosen(case, targeting(case.alpha)));
        let runs: Vec<Run> = runs.flatten().collect();
        lab.play(&format!("Beyond: {label}"), runs);
    }
}
