//! What Tight-fit would reach if the server knew every worker's probability.

use muster_core::reputation::{likelihood, tight_fit, Bound, Fallback, LogRating, Rule};
use muster_core::wad::WAD;

use super::variant::{wad, Variant, MAX, MIN, SMALL};
use crate::population::Name;
use crate::random::Random;

/// Shares and success rates of the groups of heavy-high.
pub struct Known {
    pub target: f64,
    pub success: f64,
    /// The share of groups that meet the target, their success rate, and the others'.
    pub meeting: f64,
    pub meeting_success: f64,
    pub other_success: f64,
}

/// Name of a random stream, unlike those of the rounds.
const KNOWN: u64 = 4;

/// Under both fallbacks.
pub fn known(v: &Variant) -> Vec<(String, Known)> {
    [(Fallback::Largest, "large group"), (Fallback::Closest, "closest group")]
        .map(|(fallback, label)| (label.to_owned(), under(v, fallback)))
        .into()
}

fn under(v: &Variant, fallback: Fallback) -> Known {
    let population = v.set.of(Name::HeavyHigh);
    let workers = |seed| {
        let mut random = Random::named(&[KNOWN, v.first + seed]);
        let mut workers: Vec<u64> = (0..SMALL).map(|_| wad(population.draw(&mut random))).collect();
        workers.sort_unstable_by(|a, b| b.cmp(a));
        workers
    };
    // Seven random workers are right with the mean probability: Fixed's success rate.
    let all: Vec<u64> = (0..v.scale.seeds).flat_map(workers).collect();
    let mean = all.iter().map(|p| u128::from(*p)).sum::<u128>() / all.len() as u128;
    let target = likelihood(&[mean as u64; MAX]).unwrap_or(0);
    let rule = Rule::new(MIN, MAX, target).expect("the paper's sizes are allowed, and a likelihood is at most one");
    let (mut met, mut missed) = (Vec::new(), Vec::new());
    for seed in 0..v.scale.seeds {
        let mut workers: Vec<LogRating> = workers(seed).into_iter().map(LogRating::new).collect();
        let mut free = &mut workers[..];
        while let Some(formed) = tight_fit::<_, Bound>(free, &rule, fallback) {
            let group: Vec<u64> = free[..formed.size].iter().map(LogRating::rating).collect();
            let success = likelihood(&group).unwrap_or(0) as f64 / WAD as f64;
            let reached = formed.likelihood.is_some_and(|bound| bound >= target);
            if reached { &mut met } else { &mut missed }.push(success);
            free = &mut free[formed.size..];
        }
    }
    let sum = |groups: &[f64]| groups.iter().fold(0.0, |sum, g| sum + g);
    let mean = |groups: &[f64]| sum(groups) / groups.len().max(1) as f64;
    let groups = (met.len() + missed.len()) as f64;
    Known {
        target: target as f64 / WAD as f64,
        success: (sum(&met) + sum(&missed)) / groups,
        meeting: met.len() as f64 / groups,
        meeting_success: mean(&met),
        other_success: mean(&missed),
    }
}
