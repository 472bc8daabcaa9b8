//! The runs of each experiment.

use muster_core::reputation::Algorithm;
use muster_core::wad::WAD;
use rayon::prelude::*;

use super::farm::{among_all, live, Conduct, Life, Price};
use super::game::{play, Game, Outcome, Target, SIZES};
use crate::population::{Name, Population, Set};
use crate::rounds::{self, Measure, Run, Targeting};

/// Nodes of every network here.
pub const NODES: usize = 100;
/// The four algorithms, in the paper's order.
pub const ALGORITHMS: [Algorithm; 4] = [Algorithm::Fixed, Algorithm::FirstFit, Algorithm::TightFit, Algorithm::RandomFit];
/// Those whose target matters most.
pub const GREEDY: [Algorithm; 2] = [Algorithm::FirstFit, Algorithm::TightFit];
/// Weights of throughput, in halves.
pub const HALVES: [u64; 3] = [1, 2, 0];
/// Nodes of the farmer.
pub const FARMERS: usize = 10;
/// Farmed tasks before the farmer's nodes answer others, where they are fed first.
pub const BEFORE: u32 = 25;

/// How much to do.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    pub quick: bool,
    /// Populations, and rounds on each.
    pub seeds: u64,
    pub rounds: u32,
    /// The same for targets.
    pub target_seeds: u64,
    pub target_rounds: u32,
    /// Given targets that are tried, in thousandths.
    pub targets: &'static [u64],
    /// Lives with farmed ratings, their rounds, and farmed tasks behind the price.
    pub lives: u64,
    pub life_rounds: (u32, u32),
    pub farmed: u32,
}

impl Scale {
    pub const FULL: Self = Self {
        quick: false,
        seeds: 6,
        rounds: 200,
        target_seeds: 12,
        target_rounds: 150,
        targets: &[0, 200, 400, 500, 600, 700, 800, 850, 900, 950, 980, 1_000],
        lives: 8,
        life_rounds: (60, 60),
        farmed: 200,
    };
    pub const QUICK: Self = Self {
        quick: true,
        seeds: 2,
        rounds: 30,
        target_seeds: 2,
        target_rounds: 40,
        targets: &[0, 500, 800, 950],
        lives: 2,
        life_rounds: (20, 20),
        farmed: 30,
    };
}

/// The results of four servers on the same workers: one value for each seed.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    pub contract: Vec<Outcome>,
    /// The paper's: the lower bound (2), everybody in the pool.
    pub paper: Vec<rounds::Outcome>,
    /// The same with the exact likelihood.
    pub exact: Vec<rounds::Outcome>,
}

/// Gains of targets, one value for each seed.
#[derive(Clone, Debug)]
pub struct Targets {
    pub name: Name,
    pub algorithm: Algorithm,
    pub halves: u64,
    /// The given target that was best in runs of its own, in thousandths. Its gain is measured in other runs, to exclude luck.
    pub best: u64,
    pub gains: Vec<f64>,
    /// The contract's own: its gain, and the mean target.
    pub predictive: (Vec<f64>, f64),
    /// The same computed from the ratings of all nodes.
    pub outside: (Vec<f64>, f64),
}

/// The results of farming, for each seed.
#[derive(Clone, Debug)]
pub struct Farmed {
    pub algorithm: Algorithm,
    pub conduct: Conduct,
    pub fed: (u32, u32),
    pub lives: Vec<super::farm::Outcome>,
}

/// All that was found.
#[derive(Clone, Debug)]
pub struct Found {
    pub scale: Scale,
    pub servers: Vec<(Name, Algorithm, Servers)>,
    pub targets: Vec<Targets>,
    pub farmed: Vec<Farmed>,
    /// The price of farming in a scope of one's own, and among all.
    pub own: Price,
    pub among: Price,
}

/// The compared conducts of the farmer: its nodes' conduct, farmed tasks before, and in each round.
const LIVES: [(Conduct, u32, u32); 5] = [
    (Conduct::Absent, 0, 0),
    (Conduct::Alone, BEFORE, 0),
    (Conduct::Agreed, 0, 0),
    (Conduct::Agreed, BEFORE, 0),
    (Conduct::Agreed, BEFORE, 2),
];

/// Makes all experiments.
pub fn run(scale: &Scale, seed: u64) -> Found {
    let first = seed << 20;
    let servers = said("populations", || servers(scale, first));
    let targets = said("targets", || targets(scale, first));
    let (farmed, own, among) = said("farmed ratings", || farmed(scale, first));
    Found { scale: *scale, servers, targets, farmed, own, among }
}

fn said<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = std::time::Instant::now();
    let found = work();
    eprintln!("{what}: {:.1} s", start.elapsed().as_secs_f64());
    found
}

const fn central(algorithm: Algorithm) -> rounds::Algorithm {
    match algorithm {
        Algorithm::Fixed => rounds::Algorithm::Fixed,
        Algorithm::FirstFit => rounds::Algorithm::FirstFit,
        Algorithm::TightFit => rounds::Algorithm::TightFitApart,
        Algorithm::RandomFit => rounds::Algorithm::RandomFit,
    }
}

fn population(name: Name) -> Population {
    Set::FITTED.of(name)
}

/// Figures 3 and 4: the target is Fixed's success rate on the same workers, as in the paper.
fn servers(scale: &Scale, first: u64) -> Vec<(Name, Algorithm, Servers)> {
    let cases: Vec<(Name, Algorithm)> = Name::ALL.into_iter().flat_map(|name| ALGORITHMS.map(|a| (name, a))).collect();
    let of = |&(name, algorithm): &(Name, Algorithm)| {
        let seeds: Vec<u64> = (first..first + scale.seeds).collect();
        let played = seeds.par_iter().map(|&population_seed| {
            let (min, max) = SIZES;
            let fixed = Run {
                population: population(name),
                workers: NODES,
                min,
                max,
                algorithm: rounds::Algorithm::Fixed,
                measure: Measure::Exact,
                targeting: Targeting::Static(0),
                alpha: 0,
                rounds: scale.rounds,
                blackout: None,
                population_seed,
                run_seed: 0,
                keep_rounds: false,
                compare_measures: false,
            };
            let target = ((rounds::play(&fixed).success * WAD as f64) as u64).min(WAD);
            let run = Run { algorithm: central(algorithm), targeting: Targeting::Static(target), ..fixed };
            let game = Game {
                population: run.population,
                nodes: NODES,
                algorithm,
                target: Target::Given(target),
                alpha: 0,
                rounds: scale.rounds,
                population_seed,
                run_seed: 0,
            };
            (play(&game), rounds::play(&Run { measure: Measure::Bound, ..run }), rounds::play(&run))
        });
        let mut servers = Servers::default();
        for (contract, paper, exact) in played.collect::<Vec<_>>() {
            servers.contract.push(contract);
            servers.paper.push(paper);
            servers.exact.push(exact);
        }
        (name, algorithm, servers)
    };
    cases.par_iter().map(of).collect()
}

/// Every given target, and the two that are computed.
fn targets(scale: &Scale, first: u64) -> Vec<Targets> {
    let cases: Vec<(Name, Algorithm)> = Name::ALL.into_iter().flat_map(|name| GREEDY.map(|a| (name, a))).collect();
    let gains = |name, algorithm, target, halves: u64, run_seed| -> Vec<Outcome> {
        let seeds: Vec<u64> = (first..first + scale.target_seeds).collect();
        let game = |&population_seed: &u64| {
            play(&Game {
                population: population(name),
                nodes: NODES,
                algorithm,
                target,
                alpha: WAD / 2 * halves,
                rounds: scale.target_rounds,
                population_seed,
                run_seed,
            })
        };
        seeds.par_iter().map(game).collect()
    };
    let mean = |of: &[Outcome], value: &dyn Fn(&Outcome) -> f64| of.iter().map(value).sum::<f64>() / of.len() as f64;
    let case = |&(name, algorithm): &(Name, Algorithm)| {
        let given: Vec<(u64, Vec<Outcome>)> = scale
            .targets
            .par_iter()
            .map(|&target| (target, gains(name, algorithm, Target::Given(WAD / 1_000 * target), 0, 1)))
            .collect();
        HALVES.map(|halves| {
            let gain = |outcome: &Outcome| outcome.late_gain(halves as f64 / 2.0);
            let best = given.iter().map(|(target, outcomes)| (*target, mean(outcomes, &gain)));
            let (best, _) = best.fold((0, 0.0), |best, next| if next.1 > best.1 { next } else { best });
            let again = |target, halves| {
                let outcomes = gains(name, algorithm, target, halves, 2);
                let target = mean(&outcomes, &|outcome| outcome.late_target);
                (outcomes.iter().map(gain).collect(), target)
            };
            Targets {
                name,
                algorithm,
                halves,
                best,
                gains: again(Target::Given(WAD / 1_000 * best), 0).0,
                predictive: again(Target::Predictive, halves),
                outside: again(Target::Outside, halves),
            }
        })
    };
    cases.par_iter().flat_map_iter(case).collect()
}

fn farmed(scale: &Scale, first: u64) -> (Vec<Farmed>, Price, Price) {
    let cases: Vec<_> = [Algorithm::Fixed, Algorithm::FirstFit, Algorithm::TightFit]
        .into_iter()
        .flat_map(|a| LIVES.map(|life| (a, life)))
        .collect();
    let honest = NODES - FARMERS;
    let lives = |&(algorithm, (conduct, before, each)): &(Algorithm, (Conduct, u32, u32))| {
        let live = |seed| {
            live(&Life {
                population: population(Name::HeavyHigh),
                honest,
                farmers: FARMERS,
                conduct,
                before,
                each,
                algorithm,
                rounds: scale.life_rounds,
                seed,
            })
        };
        let lives = (first..first + scale.lives).map(live).collect();
        Farmed { algorithm, conduct, fed: (before, each), lives }
    };
    let farmed: Vec<Farmed> = cases.par_iter().map(lives).collect();
    (farmed, own(scale.farmed, first), among_all(population(Name::HeavyHigh), honest, FARMERS, scale.farmed, first))
}

/// The price of so many farmed tasks in a scope of one's own.
pub fn own(tasks: u32, seed: u64) -> Price {
    let fed = live(&Life {
        population: population(Name::HeavyHigh),
        honest: NODES - FARMERS,
        farmers: FARMERS,
        conduct: Conduct::Agreed,
        before: tasks,
        each: 0,
        algorithm: Algorithm::FirstFit,
        rounds: (0, 1),
        seed,
    });
    fed.price
}
