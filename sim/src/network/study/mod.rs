//! The experiments: their setups, repetitions, and measures.
//!
//! | module | contents |
//! | --- | --- |
//! | [`policies`] | the same tasks under every policy |
//! | [`validation`] | tasks under policy 1, at several rates |

pub mod policies;
pub mod validation;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use muster_protocol::native::Memory;
use rayon::prelude::*;

use super::engine::Engine;
use super::ledger::{Ledger, LEAST_STAKE};
use super::policy::{Merit, Policy};
use super::report::Report;
use super::workload::{fleet, Kind, Profile, Source};
use crate::statistics::Estimate;

/// A quantity of a run.
pub struct Measure {
    pub id: &'static str,
    /// As a table's heading.
    pub title: &'static str,
    measure: fn(&Report) -> f64,
}

impl Measure {
    /// Its value.
    pub fn of(&self, report: &Report) -> f64 {
        (self.measure)(report)
    }
}

macro_rules! measures {
    ($($id:literal $title:literal $of:expr;)*) => {
        /// The measures of every run. Shares are in per cent, times in seconds.
        pub const MEASURES: &[Measure] = &[$(Measure { id: $id, title: $title, measure: $of }),*];
    };
}

measures! {
    "wait50" "waiting time, median (s)" |r| r.wait(0.5);
    "wait95" "waiting time, 95th percentile (s)" |r| r.wait(0.95);
    "wait99" "waiting time, 99th percentile (s)" |r| r.wait(0.99);
    "throughput" "successful tasks per hour" |r| r.throughput();
    "right" "right answers per hour" |r| r.right_throughput();
    "spent" "GPU time for a right answer (s)" |r| r.spent();
    "aborted" "aborted tasks (%)" |r| 100.0 * r.aborted();
    "failed" "failed tasks (%)" |r| 100.0 * r.failed();
    "timeouts" "timeouts (%)" |r| 100.0 * r.timed_out_share();
    "away" "refused, or driven out of the queue (%)" |r| 100.0 * r.turned_away();
    "wasted" "node time lost to timeouts (%)" |r| 100.0 * r.wasted();
    "local" "started where all models are (%)" |r| 100.0 * r.local_share();
    "gini" "Gini of income" |r| r.income_gini();
    "gini-stake" "Gini of stake" |r| r.stake_gini();
    "redrawn" "draws per 1,000 starts that stayed undecided" |r| 1000.0 * r.redrawn as f64 / r.started.max(1) as f64;
    "exclusions" "exclusions per 1,000 starts" |r| 1000.0 * r.exclusions.len() as f64 / r.started.max(1) as f64;
    "exclusion50" "exclusion, median (s)" |r| r.exclusion(0.5);
    "exclusion-max" "exclusion, longest (s)" |r| r.exclusion(1.0);
    "out-steady" "time excluded: steady (%)" |r| 100.0 * r.excluded(|n| n.kind == Kind::Steady);
    "out-flaky" "time excluded: flaky (%)" |r| 100.0 * r.excluded(|n| n.kind == Kind::Flaky);
    "out-dead" "time excluded: dead (%)" |r| 100.0 * r.excluded(|n| n.kind == Kind::Dead);
    "out-broken" "time excluded: broken (%)" |r| 100.0 * r.excluded(|n| n.kind == Kind::Broken);
    "kicked-honest" "kicked out, not bad" |r| r.count(false, |n| n.kicked) as f64;
    "kicked-bad" "kicked out, bad" |r| r.count(true, |n| n.kicked) as f64;
    "kicked-steady" "kicked out, steady" |r| r.kicked_of(Kind::Steady) as f64;
    "kicked-slow" "kicked out, slow" |r| r.kicked_of(Kind::Slow) as f64;
    "kicked-flaky" "kicked out, flaky" |r| r.kicked_of(Kind::Flaky) as f64;
    "kicked-dead" "kicked out, dead" |r| r.kicked_of(Kind::Dead) as f64;
    "kicked-broken" "kicked out, broken" |r| r.kicked_of(Kind::Broken) as f64;
    "slashed-honest" "slashed, not bad" |r| r.count(false, |n| n.slashed) as f64;
    "slashed-bad" "slashed, bad" |r| r.count(true, |n| n.slashed) as f64;
    "wage-slow" "income of slow nodes" |r| r.wage_of(Kind::Slow);
    "wage-flaky" "income of flaky nodes" |r| r.wage_of(Kind::Flaky);
    "wage-broken" "income of broken nodes" |r| r.wage_of(Kind::Broken);
    "share-dead" "starts on dead nodes (%)" |r| 100.0 * r.share_of(Kind::Dead);
    "share-broken" "starts on broken nodes (%)" |r| 100.0 * r.share_of(Kind::Broken);
    "scores-bad" "scores recorded of a dead or broken node, mean" |r| r.mean_scores(|n| matches!(n.kind, Kind::Dead | Kind::Broken));
    "scores-steady" "scores recorded of a steady node, mean" |r| r.mean_scores(|n| n.kind == Kind::Steady);
    "share-sybil" "starts on the attacker's nodes (%)" |r| 100.0 * r.share_of(Kind::Sybil);
    "stake1" "income, lowest fifth by stake" |r| r.wages_by(|n| n.stake)[0];
    "stake2" "income, second fifth by stake" |r| r.wages_by(|n| n.stake)[1];
    "stake3" "income, third fifth by stake" |r| r.wages_by(|n| n.stake)[2];
    "stake4" "income, fourth fifth by stake" |r| r.wages_by(|n| n.stake)[3];
    "stake5" "income, highest fifth by stake" |r| r.wages_by(|n| n.stake)[4];
    "speed1" "income, slowest fifth" |r| r.wages_by(|n| n.speed.into())[0];
    "speed2" "income, second fifth by speed" |r| r.wages_by(|n| n.speed.into())[1];
    "speed3" "income, third fifth by speed" |r| r.wages_by(|n| n.speed.into())[2];
    "speed4" "income, fourth fifth by speed" |r| r.wages_by(|n| n.speed.into())[3];
    "speed5" "income, fastest fifth" |r| r.wages_by(|n| n.speed.into())[4];
    "done50" "from creation to success, median (s)" |r| r.span_of(0.5);
    "done95" "from creation to success, 95th percentile (s)" |r| r.span_of(0.95);
    "validated" "tasks that a group had (%)" |r| 100.0 * r.validated_share();
    "scored" "of these, scored (%)" |r| 100.0 * r.scored_share();
    "undecided" "of these, without two answers alike (%)" |r| 100.0 * r.undecided_share();
    "wrong" "wrong answers among the successful (%)" |r| 100.0 * r.wrong_share();
    "slipped" "wrong answers among the successful of policies 1 and 2 (%)" |r| 100.0 * r.slipped_share();
    "hour-steady" "income per hour, steady (1e-6 token)" |r| r.hour_of(Kind::Steady);
    "hour-slow" "income per hour, slow (1e-6 token)" |r| r.hour_of(Kind::Slow);
    "hour-flaky" "income per hour, flaky (1e-6 token)" |r| r.hour_of(Kind::Flaky);
    "hour-cheat" "income per hour, cheat (1e-6 token)" |r| r.hour_of(Kind::Cheat);
    "hour-sly" "income per hour, sly (1e-6 token)" |r| r.hour_of(Kind::Sly);
    "hour-withholding" "income per hour, withholding (1e-6 token)" |r| r.hour_of(Kind::Withholding);
    "gone-steady" "out for good: steady (%)" |r| 100.0 * r.gone(Kind::Steady);
    "gone-slow" "out for good: slow (%)" |r| 100.0 * r.gone(Kind::Slow);
    "gone-flaky" "out for good: flaky (%)" |r| 100.0 * r.gone(Kind::Flaky);
    "gone-cheat" "out for good: cheat (%)" |r| 100.0 * r.gone(Kind::Cheat);
    "gone-sly" "out for good: sly (%)" |r| 100.0 * r.gone(Kind::Sly);
    "gone-withholding" "out for good: withholding (%)" |r| 100.0 * r.gone(Kind::Withholding);
    "slashes-steady" "slashes per node: steady" |r| r.slashes_of(Kind::Steady);
    "slashes-slow" "slashes per node: slow" |r| r.slashes_of(Kind::Slow);
    "slashes-flaky" "slashes per node: flaky" |r| r.slashes_of(Kind::Flaky);
    "slashes-cheat" "slashes per node: cheat" |r| r.slashes_of(Kind::Cheat);
    "slashes-sly" "slashes per node: sly" |r| r.slashes_of(Kind::Sly);
    "slashes-withholding" "slashes per node: withholding" |r| r.slashes_of(Kind::Withholding);
    "hours-cheat" "hours in the network: cheat" |r| r.hours(Kind::Cheat);
    "hours-sly" "hours in the network: sly" |r| r.hours(Kind::Sly);
    "hours-withholding" "hours in the network: withholding" |r| r.hours(Kind::Withholding);
    "starts-cheat" "tasks of its own a node was given: cheat" |r| r.starts_of(Kind::Cheat);
    "starts-sly" "tasks of its own a node was given: sly" |r| r.starts_of(Kind::Sly);
    "starts-withholding" "tasks of its own a node was given: withholding" |r| r.starts_of(Kind::Withholding);
    "held-steady" "time held by open commitments: steady (%)" |r| 100.0 * r.held(Kind::Steady);
    "kept-steady" "time kept for tasks that take three: steady (%)" |r| 100.0 * r.kept(Kind::Steady);
    "burnt" "burnt (mean fees)" |r| r.in_fees(r.burnt);
    "drivers" "paid for calling validators (mean fees)" |r| r.in_fees(r.drivers);
    "pots" "of what groups were due, paid (%)" |r| 100.0 * r.pots_paid();
    "rank" "rank correlation of Q_long with speed" |r| r.rank_correlation();
    "reserve1" "reserve after 10 % of the tasks (mean fees)" |r| r.reserve_after(1);
    "reserve2" "reserve after 20 % of the tasks (mean fees)" |r| r.reserve_after(2);
    "reserve3" "reserve after 30 % of the tasks (mean fees)" |r| r.reserve_after(3);
    "reserve4" "reserve after 40 % of the tasks (mean fees)" |r| r.reserve_after(4);
    "reserve5" "reserve after 50 % of the tasks (mean fees)" |r| r.reserve_after(5);
    "reserve6" "reserve after 60 % of the tasks (mean fees)" |r| r.reserve_after(6);
    "reserve7" "reserve after 70 % of the tasks (mean fees)" |r| r.reserve_after(7);
    "reserve8" "reserve after 80 % of the tasks (mean fees)" |r| r.reserve_after(8);
    "reserve9" "reserve after 90 % of the tasks (mean fees)" |r| r.reserve_after(9);
    "reserve10" "reserve at the end (mean fees)" |r| r.reserve_after(10);
}

/// The choice of nodes, in words.
pub fn merit_name(merit: Option<Merit>) -> &'static str {
    match merit {
        None => "W (the contract)",
        Some(Merit::Weight) => "W (exact)",
        Some(Merit::Uniform) => "uniform",
        Some(Merit::Stake) => "stake only",
        Some(Merit::Qos) => "QoS only",
        Some(Merit::LinearStake) => "linear stake only",
        Some(Merit::LinearWeight) => "W, linear stake",
        Some(Merit::Product) => "S x QoS",
        Some(Merit::LinearProduct) => "linear stake x QoS",
    }
}

/// One arrangement: a workload, a choice of nodes, and the parameters that differ from the defaults.
#[derive(Clone, Debug)]
pub struct Setup {
    pub name: String,
    pub profile: Profile,
    pub merit: Option<Merit>,
    pub parameters: Vec<(&'static str, u64)>,
}

/// Parameters without a short-term factor: timeouts leave H as it is.
pub const WITHOUT_H: [(&str, u64); 2] = [("penaltyPpm", 1_000_000), ("exclusionPpm", 0)];

/// Runs one arrangement with one seed.
///
/// # Errors
/// A parameter that is not one, or out of its bounds.
pub fn simulate(setup: &Setup, seed: u64, bar: &ProgressBar) -> Result<Report, String> {
    let nodes = fleet(&setup.profile, seed);
    let source = Source::made_up(&setup.profile, &nodes, seed);
    let policy = setup.merit.map_or(Policy::Contract, |merit| Policy::exact(merit, seed));
    let ledger = Ledger::new(Memory::quick(seed), policy, &setup.parameters)?;
    Ok(Engine::new(ledger, nodes, source, seed, Some(bar.clone())).run().0)
}

/// The values of all measures, a row for each seed, by the arrangement's name.
#[derive(Debug, Default)]
pub struct Results {
    pub rows: BTreeMap<String, Vec<Vec<f64>>>,
    /// Tasks of all runs together.
    pub tasks: u64,
}

fn index(id: &str) -> usize {
    MEASURES.iter().position(|m| m.id == id).unwrap_or_else(|| panic!("{id} is not measured"))
}

impl Results {
    /// A measure of an arrangement, over its seeds.
    pub fn get(&self, name: &str, id: &str) -> Estimate {
        let at = index(id);
        let rows = self.rows.get(name).map_or(&[][..], Vec::as_slice);
        Estimate::of(&rows.iter().map(|row| row[at]).collect::<Vec<_>>())
    }

    /// The difference between two arrangements, seed by seed.
    pub fn difference(&self, name: &str, from: &str, id: &str) -> Estimate {
        let at = index(id);
        let (Some(a), Some(b)) = (self.rows.get(name), self.rows.get(from)) else { return Estimate::default() };
        Estimate::of(&a.iter().zip(b).map(|(a, b)| a[at] - b[at]).collect::<Vec<_>>())
    }

    /// By how much one measure of an arrangement is above another, seed by seed.
    pub fn above(&self, name: &str, id: &str, other: &str) -> Estimate {
        let (a, b) = (index(id), index(other));
        let rows = self.rows.get(name).map_or(&[][..], Vec::as_slice);
        Estimate::of(&rows.iter().map(|row| row[a] - row[b]).collect::<Vec<_>>())
    }

    /// How many runs there were.
    pub fn runs(&self) -> usize {
        self.rows.values().map(Vec::len).sum()
    }

    /// Runs arrangements, each with this many seeds, and adds their values.
    ///
    /// # Errors
    /// See [`simulate`].
    pub fn play(&mut self, title: &str, setups: &[Setup], first: u64, seeds: u64) -> Result<(), String> {
        let jobs: Vec<(&Setup, u64)> = setups.iter().flat_map(|setup| (0..seeds).map(move |i| (setup, first + i))).collect();
        let tasks = jobs.iter().map(|(setup, _)| setup.profile.tasks).sum();
        let bar = bar(title, tasks);
        let values: Result<Vec<Vec<f64>>, String> = jobs
            .par_iter()
            .map(|(setup, seed)| {
                let report = simulate(setup, *seed, &bar)?;
                Ok(MEASURES.iter().map(|m| m.of(&report)).collect())
            })
            .collect();
        let line = format!("{title}: {} runs in {:.1} s", jobs.len(), bar.elapsed().as_secs_f64());
        bar.finish_and_clear();
        eprintln!("{line}");
        self.tasks += tasks;
        for ((setup, _), row) in jobs.iter().zip(values?) {
            self.rows.entry(setup.name.clone()).or_default().push(row);
        }
        Ok(())
    }
}

/// A progress bar on standard error, where that is a terminal.
pub fn bar(title: &str, length: u64) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    let template = "{msg:46} {wide_bar} {percent:>3} % {elapsed:>5}, {eta:>5} left";
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(title.to_owned());
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// How much of everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    pub quick: bool,
    /// Of the comparisons.
    pub seeds: u64,
    pub nodes: u32,
    pub tasks: u64,
    /// Of the grid of exclusion rules.
    pub grid_seeds: u64,
    pub grid_tasks: u64,
    pub grid: Grid,
    /// Of the long runs that kick nodes out.
    pub long_tasks: u64,
    /// Of the runs on policies and validation.
    pub validation_tasks: u64,
    pub sybil_seeds: u64,
    pub sybil_nodes: u32,
    pub sybil_tasks: u64,
    pub splits: &'static [u32],
}

/// Exclusion rules: every combination is tried. Shares in millionths, tau in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    pub penalty: &'static [u64],
    pub boost: &'static [u64],
    pub threshold: &'static [u64],
    pub tau: &'static [u64],
}

impl Scale {
    /// The scale of the page.
    pub const FULL: Self = Self {
        quick: false,
        seeds: 8,
        nodes: 200,
        tasks: 30_000,
        grid_seeds: 2,
        grid_tasks: 20_000,
        grid: Grid {
            penalty: &[100_000, 300_000, 500_000],
            boost: &[50_000, 150_000, 300_000],
            threshold: &[100_000, 200_000, 350_000, 500_000, 700_000],
            tau: &[600, 1_800, 5_400, 14_400],
        },
        long_tasks: 150_000,
        validation_tasks: 60_000,
        sybil_seeds: 4,
        sybil_nodes: 1_000,
        sybil_tasks: 15_000,
        splits: &[1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000],
    };

    /// For a look.
    pub const QUICK: Self = Self {
        quick: true,
        seeds: 3,
        nodes: 100,
        tasks: 6_000,
        grid_seeds: 2,
        grid_tasks: 4_000,
        grid: Grid { penalty: &[300_000], boost: &[150_000], threshold: &[100_000, 350_000, 500_000], tau: &[1_800, 5_400] },
        long_tasks: 20_000,
        validation_tasks: 10_000,
        sybil_seeds: 2,
        sybil_nodes: 200,
        sybil_tasks: 2_000,
        splits: &[1, 10, 100, 1_000],
    };

    fn profile(&self, load: u32) -> Profile {
        Profile { nodes: self.nodes, tasks: self.tasks, load, ..Profile::default() }
    }
}

/// Loads in thousandths.
pub const LOADS: [u32; 6] = [200, 400, 500, 600, 700, 850];
/// The load of experiments that do not compare loads.
pub const LOAD: u32 = 500;
/// Ways of choosing that are compared.
pub const CHOICES: [Option<Merit>; 6] =
    [None, Some(Merit::Weight), Some(Merit::Uniform), Some(Merit::Stake), Some(Merit::Qos), Some(Merit::Product)];
/// Ways of choosing that an attacker meets.
pub const DEFENCES: [Option<Merit>; 6] = [
    None,
    Some(Merit::Stake),
    Some(Merit::LinearWeight),
    Some(Merit::LinearStake),
    Some(Merit::LinearProduct),
    Some(Merit::Uniform),
];
/// The attacker's sum to split, in least stakes.
pub const ATTACK: u64 = 1_000;
/// Load of the honest nodes while they are attacked.
const ATTACK_LOAD: u32 = 300;
/// Another mean score below which nodes are kicked out, in thousandths.
pub const KICKOUT: (&str, u64) = ("kickoutMilli", 1_500);
/// Candidates of the grid that are looked at again.
const FINALISTS: usize = 5;
/// Of the time of steady nodes, the most in per cent that a rule may exclude.
pub const STEADY_OUT: f64 = 1.0;
/// Rules whose failures are at most this many times the fewest count as equally good.
pub const CLOSE: f64 = 1.05;
/// The most by which a rule may lengthen the 95th percentile of waiting, as a factor.
pub const SLOWER: f64 = 1.1;

/// A rule of exclusion: shares in millionths, tau in seconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rule {
    pub penalty: u64,
    pub boost: u64,
    pub threshold: u64,
    pub tau: u64,
}

impl Rule {
    /// The QoS document's.
    pub const DEFAULT: Self = Self { penalty: 300_000, boost: 150_000, threshold: 100_000, tau: 1_800 };

    /// How many parameters differ from the QoS document's.
    fn changes(&self) -> usize {
        let other = Self::DEFAULT;
        [self.penalty != other.penalty, self.boost != other.boost, self.threshold != other.threshold, self.tau != other.tau]
            .into_iter()
            .filter(|differs| *differs)
            .count()
    }

    /// Whether it is drawn in the pictures of thresholds.
    fn of_000_but_for_threshold_and_tau(&self) -> bool {
        (self.penalty, self.boost) == (Self::DEFAULT.penalty, Self::DEFAULT.boost)
    }

    /// Its name among the results of a scenario.
    pub fn name(&self, scenario: &str) -> String {
        format!("{scenario}/{}-{}-{}-{}", self.penalty, self.boost, self.threshold, self.tau)
    }

    /// As the contract's parameters.
    pub fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("penaltyPpm", self.penalty), ("boostPpm", self.boost), ("exclusionPpm", self.threshold), ("tau", self.tau)]
    }
}

/// Circumstances in which the finalists are compared: name, description, profile.
pub fn scenarios(scale: &Scale) -> Vec<(&'static str, &'static str, Profile)> {
    let usual = scale.profile(LOAD);
    vec![
        ("usual", "as in the grid, other seeds", usual.clone()),
        ("busy", "load 0.6", scale.profile(600)),
        ("calm", "load 0.2", scale.profile(200)),
        ("short", "outages of 5 minutes every 40", Profile { outages: (2_400, 300), ..usual.clone() }),
        ("long", "outages of 2 hours every 16", Profile { outages: (57_600, 7_200), ..usual.clone() }),
        ("healthy", "no bad or flaky nodes at all", Profile { mix: [70, 0, 0, 0, 0, 0, 0], ..usual }),
    ]
}

/// All results, and the rules that came out best.
#[derive(Debug, Default)]
pub struct Findings {
    pub results: Results,
    pub rules: Vec<Rule>,
    /// The finalists, in the grid's order; the QoS document's rule is not among them.
    pub finalists: Vec<Rule>,
    /// The recommended one of these.
    pub recommended: Option<Rule>,
}

/// Runs everything.
///
/// # Errors
/// See [`simulate`].
pub fn run(scale: &Scale, seed: u64) -> Result<Findings, String> {
    let mut found = Findings::default();
    let results = &mut found.results;
    let mut setups = Vec::new();
    for load in LOADS {
        let profile = scale.profile(load);
        for merit in CHOICES {
            if merit.is_none() || load == LOAD {
                let name = format!("choice/{load}/{}", merit_name(merit));
                setups.push(Setup { name, profile: profile.clone(), merit, parameters: vec![] });
            }
        }
        let name = format!("without-h/{load}");
        setups.push(Setup { name, profile, merit: None, parameters: WITHOUT_H.to_vec() });
    }
    results.play("Ways of choosing, with and without H", &setups, seed, scale.seeds)?;

    let long = Profile { tasks: scale.long_tasks, churn: false, ..scale.profile(LOAD) };
    let long = Profile { nodes: scale.nodes / 2, ..long };
    let setups = [("long", vec![]), ("long-without-h", WITHOUT_H.to_vec()), ("long-kickout", vec![KICKOUT])]
        .map(|(name, parameters)| Setup { name: name.into(), profile: long.clone(), merit: None, parameters });
    results.play("Long runs, until nodes are kicked out", &setups, seed, scale.seeds)?;

    policies::play(results, scale, seed)?;
    validation::play(results, scale, seed)?;

    let mut setups = Vec::new();
    for merit in DEFENCES {
        for &split in scale.splits {
            let name = format!("sybil/{}/{split}", merit_name(merit));
            let profile = Profile {
                nodes: scale.sybil_nodes,
                tasks: scale.sybil_tasks,
                load: ATTACK_LOAD,
                mix: [0; 7],
                attack: Some((ATTACK * LEAST_STAKE, split)),
                churn: false,
                ..Profile::default()
            };
            setups.push(Setup { name, profile, merit, parameters: vec![] });
        }
    }
    results.play("Sybil attacks", &setups, seed, scale.sybil_seeds)?;

    for &penalty in scale.grid.penalty {
        for &boost in scale.grid.boost {
            for &threshold in scale.grid.threshold {
                for &tau in scale.grid.tau {
                    found.rules.push(Rule { penalty, boost, threshold, tau });
                }
            }
        }
    }
    let profile = Profile { tasks: scale.grid_tasks, ..scale.profile(LOAD) };
    let setup = |rule: &Rule, scenario: &str, profile: &Profile| Setup {
        name: rule.name(scenario),
        profile: profile.clone(),
        merit: None,
        parameters: rule.parameters(),
    };
    let setups: Vec<Setup> = found.rules.iter().map(|rule| setup(rule, "grid", &profile)).collect();
    results.play("Rules of exclusion", &setups, seed, scale.grid_seeds)?;
    let setups: Vec<Setup> = found
        .rules
        .iter()
        .filter(|rule| rule.of_000_but_for_threshold_and_tau())
        .map(|rule| setup(rule, "slice", &profile))
        .collect();
    results.play("Thresholds and tau, more often", &setups, seed, scale.seeds)?;

    let usual = results.get(&Rule::DEFAULT.name("grid"), "wait95").mean;
    let value = |rule: &Rule, id| results.get(&rule.name("grid"), id).mean;
    let mut rules: Vec<Rule> = found
        .rules
        .iter()
        .filter(|rule| **rule != Rule::DEFAULT)
        .filter(|rule| value(rule, "out-steady") <= STEADY_OUT)
        .filter(|rule| value(rule, "wait95") <= (usual * SLOWER).max(usual + 1.0))
        .copied()
        .collect();
    rules.sort_by(|a, b| value(a, "failed").total_cmp(&value(b, "failed")).then(a.cmp(b)));
    rules.truncate(FINALISTS);
    // Other seeds than those they were picked with.
    let first = seed + 1_000_000;
    let mut setups = Vec::new();
    for (scenario, _, profile) in scenarios(scale) {
        for rule in rules.iter().chain([&Rule::DEFAULT]) {
            setups.push(setup(rule, scenario, &profile));
        }
    }
    results.play("The best rules again, elsewhere", &setups, first, scale.seeds)?;
    let names: Vec<&str> = scenarios(scale).into_iter().map(|(name, ..)| name).collect();
    let mean = |rule: &Rule, scenario: &str, id| results.get(&rule.name(scenario), id).mean;
    let slower = |rule: &Rule, scenario: &str| {
        let usual = mean(&Rule::DEFAULT, scenario, "wait95");
        let more = results.difference(&rule.name(scenario), &Rule::DEFAULT.name(scenario), "wait95");
        more.low() > (usual * (SLOWER - 1.0)).max(1.0)
    };
    let total = |rule: &Rule, id| names.iter().map(|name| mean(rule, name, id)).sum::<f64>();
    let good: Vec<Rule> = rules
        .iter()
        .filter(|rule| names.iter().all(|name| mean(rule, name, "out-steady") <= STEADY_OUT && !slower(rule, name)))
        .filter(|rule| total(rule, "failed") < total(&Rule::DEFAULT, "failed"))
        .copied()
        .collect();
    let fewest = good.iter().map(|rule| total(rule, "failed")).fold(f64::INFINITY, f64::min);
    found.recommended = good
        .into_iter()
        .filter(|rule| total(rule, "failed") <= fewest * CLOSE)
        .min_by(|a, b| a.changes().cmp(&b.changes()).then(total(a, "out-steady").total_cmp(&total(b, "out-steady"))));
    found.finalists = rules;
    Ok(found)
}
