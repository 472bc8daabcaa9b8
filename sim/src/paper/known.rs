//! An algorithm's results if the server knew every worker's probability, by computation.

use crate::bound::{Bound, LogRating};
use muster_core::reputation::{likelihood, random_fit, tight_fit_of_neighbours, Fallback, Formed, Rule};
use muster_core::wad::WAD;

use super::variant::{wad, Variant, MAX, MIN, SMALL};
use crate::population::Name;
use crate::random::Random;
use crate::rounds::Algorithm;
use crate::statistics::Estimate;

/// Shares and success rates of the groups of a population.
pub struct Known {
    pub target: f64,
    pub success: f64,
    /// Success rate less target.
    pub shortfall: Estimate,
    /// The share of groups that meet the target, their success rate, and the others'.
    pub meeting: f64,
    pub meeting_success: f64,
    pub other_success: f64,
}

/// Name of a random stream, unlike those of the rounds.
const KNOWN: u64 = 4;

/// Heavy-high under both fallbacks of Tight-fit.
pub fn known(v: &Variant) -> Vec<(String, Known)> {
    [(Fallback::Largest, "large group"), (Fallback::Closest, "closest group")]
        .map(|(fallback, label)| (label.to_owned(), under(v, Name::HeavyHigh, Algorithm::TightFit(fallback), MAX)))
        .into()
}

/// With groups of up to `max`. The target is Fixed's success rate with seven on the same workers.
pub fn under(v: &Variant, name: Name, algorithm: Algorithm, max: usize) -> Known {
    let population = v.set.of(name);
    let (mut met, mut missed) = (Vec::new(), Vec::new());
    let (mut targets, mut shortfalls) = (Vec::new(), Vec::new());
    for seed in 0..v.scale.seeds {
        let mut random = Random::named(&[KNOWN, v.first + seed]);
        let mut workers: Vec<u64> = (0..SMALL).map(|_| wad(population.draw(&mut random))).collect();
        workers.sort_unstable_by(|a, b| b.cmp(a));
        // Seven random workers are right with the mean probability: Fixed's success rate.
        let mean = workers.iter().map(|p| u128::from(*p)).sum::<u128>() / workers.len() as u128;
        let target = likelihood(&[mean as u64; MAX]).unwrap_or(0);
        let rule = Rule::new(MIN, max, target).expect("the paper's sizes are allowed, and a likelihood is at most one");
        let mut workers: Vec<LogRating> = workers.into_iter().map(LogRating::new).collect();
        let mut free = &mut workers[..];
        let before = (met.len(), missed.len());
        while let Some(formed) = form(algorithm, free, &rule, &mut random) {
            let group: Vec<u64> = free[..formed.size].iter().map(LogRating::rating).collect();
            let success = likelihood(&group).unwrap_or(0) as f64 / WAD as f64;
            let reached = formed.likelihood.is_some_and(|bound| bound >= target);
            if reached { &mut met } else { &mut missed }.push(success);
            free = &mut free[formed.size..];
        }
        let target = target as f64 / WAD as f64;
        let success: Vec<f64> = met[before.0..].iter().chain(&missed[before.1..]).copied().collect();
        shortfalls.push(mean_of(&success) - target);
        targets.push(target);
    }
    let groups = (met.len() + missed.len()).max(1) as f64;
    Known {
        target: mean_of(&targets),
        success: mean_of(&met.iter().chain(&missed).copied().collect::<Vec<_>>()),
        shortfall: Estimate::of(&shortfalls),
        meeting: met.len() as f64 / groups,
        meeting_success: mean_of(&met),
        other_success: mean_of(&missed),
    }
}

/// By the lower bound, as the paper's algorithms do. None but Tight-fit and Random-fit is asked for.
fn form(algorithm: Algorithm, free: &mut [LogRating], rule: &Rule, random: &mut Random) -> Option<Formed> {
    match algorithm {
        Algorithm::TightFit(fallback) => tight_fit_of_neighbours::<_, Bound>(free, rule, fallback),
        _ => random_fit::<_, Bound>(free, rule, |n| random.below(n)),
    }
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |sum, x| sum + x) / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::Scale;

    /// Of one seed there is one target, and the likelihood of a group is no less than its lower bound.
    #[test]
    fn groups_that_meet_the_target_succeed_as_often() {
        let scale = Scale { seeds: 1, ..Scale::QUICK };
        for v in (1..5).flat_map(|seed| Variant::all(scale, seed)) {
            for algorithm in [v.tight_fit(), Algorithm::RandomFit] {
                for max in [MAX, 15] {
                    let k = under(&v, Name::HeavyHigh, algorithm, max);
                    assert!(k.meeting > 0.0 && k.meeting_success >= k.target, "{} {}", k.meeting_success, k.target);
                    assert!((k.success - k.target - k.shortfall.mean).abs() < 1e-9);
                    let mixed = k.meeting * k.meeting_success + (1.0 - k.meeting) * k.other_success;
                    assert!((k.success - mixed).abs() < 1e-9);
                }
            }
        }
    }
}
