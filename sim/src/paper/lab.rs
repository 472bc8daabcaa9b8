//! Runs and their outcomes: each run is played once, for all users.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Instant;

use muster_core::wad::WAD;

use crate::jobs;
use crate::rounds::{Outcome, Run, Targeting};

/// The outcomes so far.
#[derive(Default)]
pub struct Lab {
    outcomes: HashMap<Run, Outcome>,
    times: Vec<Time>,
}

/// How long an experiment took.
pub struct Time {
    pub title: String,
    pub runs: usize,
    pub seconds: f64,
}

impl Lab {
    /// Plays those of the runs that were not played before.
    pub fn play(&mut self, title: &str, runs: impl IntoIterator<Item = Run>) {
        let mut seen = HashSet::new();
        let new: Vec<Run> = runs.into_iter().filter(|run| !self.outcomes.contains_key(run) && seen.insert(*run)).collect();
        if !new.is_empty() {
            let start = Instant::now();
            let outcomes = jobs::play(title, &new);
            self.times.push(Time { title: title.to_owned(), runs: new.len(), seconds: start.elapsed().as_secs_f64() });
            self.outcomes.extend(new.into_iter().zip(outcomes));
        }
    }

    pub fn times(&self) -> &[Time] {
        &self.times
    }

    /// A run's outcome.
    ///
    /// # Panics
    /// If it was not played: experiments must be planned before their outcomes are read.
    pub fn outcome(&self, run: &Run) -> &Outcome {
        let outcome = self.outcomes.get(run);
        outcome.unwrap_or_else(|| panic!("not played: {run:?}"))
    }
}

/// The search for the best and the worst static target, for each of these bases: runs whose targets are still to be set.
///
/// Every multiple of `step` hundredths is tried over `screen` rounds. Then, for each weight of throughput, the `keep` with
/// the largest gain and the one with the least are tried over the base's rounds.
pub struct Sweep {
    pub step: u64,
    pub screen: u32,
    pub keep: usize,
}

impl Sweep {
    fn targets(&self, base: &Run, rounds: u32) -> Vec<Run> {
        (0..=100 / self.step)
            .map(|i| Run { targeting: Targeting::Static(i * self.step * (WAD / 100)), rounds, ..*base })
            .collect()
    }

    /// The gain of the screening: of its second half, when the ratings have been learnt.
    fn finalists(&self, lab: &Lab, base: &Run, alphas: &[f64]) -> Vec<Run> {
        let screened = self.targets(base, self.screen);
        let mut kept: BTreeSet<usize> = BTreeSet::new();
        for alpha in alphas {
            let gain = |i: usize| lab.outcome(&screened[i]).late_gain(*alpha);
            let mut order: Vec<usize> = (0..screened.len()).collect();
            order.sort_by(|a, b| gain(*b).total_cmp(&gain(*a)));
            kept.extend(order.iter().take(self.keep).copied());
            kept.extend(order.last().copied());
        }
        let rounds = base.rounds;
        kept.into_iter().map(|i| Run { rounds, ..screened[i] }).collect()
    }

    pub fn play(&self, lab: &mut Lab, title: &str, bases: &[Run], alphas: &[f64]) {
        let screening = |base| self.targets(base, self.screen);
        lab.play(&format!("{title}, screening"), bases.iter().flat_map(screening));
        let finalists: Vec<Run> = bases.iter().flat_map(|base| self.finalists(lab, base, alphas)).collect();
        lab.play(title, finalists);
    }

    /// The least and the largest gain of a static target.
    pub fn range(&self, lab: &Lab, base: &Run, alphas: &[f64], alpha: f64) -> (f64, f64) {
        self.finalists(lab, base, alphas)
            .iter()
            .map(|run| lab.outcome(run).gain(alpha))
            .fold((f64::INFINITY, 0.0), |(low, high), gain| (low.min(gain), high.max(gain)))
    }
}
