//! The results of a stretch of rounds.

use crate::rounds::{Outcome, Round};
use crate::statistics::Estimate;

/// Rounds summed up to one point of a curve over time.
pub const WINDOW: usize = 10;

pub type OfRounds = fn(&[Round]) -> f64;

fn sum(rounds: &[Round], value: impl Fn(&Round) -> f64) -> f64 {
    rounds.iter().map(value).fold(0.0, |sum, x| sum + x)
}

/// Successful tasks in a round.
pub fn throughput(rounds: &[Round]) -> f64 {
    sum(rounds, |r| f64::from(r.successes)) / rounds.len() as f64
}

pub fn success(rounds: &[Round]) -> f64 {
    sum(rounds, |r| f64::from(r.successes)) / sum(rounds, |r| f64::from(r.groups))
}

/// Members of a group.
pub fn size(rounds: &[Round]) -> f64 {
    sum(rounds, |r| f64::from(r.members)) / sum(rounds, |r| f64::from(r.groups))
}

pub fn target(rounds: &[Round]) -> f64 {
    sum(rounds, |r| r.target as f64 / 1e18) / rounds.len() as f64
}

/// The mean of a quantity over the rounds after `from` up to `to`, one value per run.
pub fn over(outcomes: &[&Outcome], from: usize, to: usize, value: OfRounds) -> Vec<f64> {
    let of = |outcome: &&Outcome| value(&outcome.per_round[from..to]);
    outcomes.iter().map(of).collect()
}

/// Means over runs of a quantity of [`WINDOW`] rounds at a time.
pub fn curve(outcomes: &[&Outcome], value: OfRounds) -> Vec<(f64, Estimate)> {
    let windows = outcomes.first().map_or(0, |o| o.per_round.len() / WINDOW);
    (0..windows)
        .map(|w| {
            let to = (w + 1) * WINDOW;
            let values = over(outcomes, w * WINDOW, to, value);
            (to as f64, Estimate::of(&values))
        })
        .collect()
}
