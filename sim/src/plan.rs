//! Groups and targets computed from the ratings, instead of found by trying them on real tasks.
//!
//! The ratings and the exact likelihood predict the results of a way of grouping: the expected number of
//! successes is the sum of the groups' likelihoods.

use muster_core::adaptive::gain;
use muster_core::reputation::{Exact, Formed, Likelihood, Rule};
use muster_core::wad::WAD;

use crate::grouping::{
    expected_tally, form_all, likelihood_of, rule, sort, sorts, Algorithm, ByBound, ByExact, Measure, Run, Worker, SCALE,
};
use crate::random::Random;

/// The target in hundredths, a wad, whose groups have the largest expected gain. The lowest of equals.
pub fn best_target(alpha: u64, run: &Run, workers: &[Worker], random: &mut Random) -> u64 {
    let mut sorted: Vec<&Worker> = workers.iter().collect();
    if sorts(run.algorithm) {
        sort(&mut sorted);
    }
    let mut best = (0, 0);
    let mut groups = Vec::new();
    for hundredth in 0..=100 {
        let target = WAD / 100 * hundredth;
        let mut order = sorted.clone();
        groups.clear();
        let rule = rule(run, target);
        match run.measure {
            Measure::Bound => form_all::<ByBound>(run.algorithm, &mut order, &rule, random, &mut groups),
            Measure::Exact => form_all::<ByExact>(run.algorithm, &mut order, &rule, random, &mut groups),
        }
        let gain = expected_gain(&order, &groups, run.min, alpha);
        if gain > best.0 {
            best = (gain, target);
        }
    }
    best.1
}

/// The gain to be expected of these groups, which lie one after the other at the front of `order`.
fn expected_gain(order: &[&Worker], groups: &[Formed], min: usize, alpha: u64) -> u64 {
    let mut rest = order;
    let mut expected = 0;
    for formed in groups {
        let (group, others) = rest.split_at(formed.size);
        rest = others;
        expected += likelihood_of::<ByExact>(group) >> SCALE;
    }
    gain_of(expected, groups.len(), order.len() / min, alpha)
}

fn gain_of(expected: u64, groups: usize, capacity: usize, alpha: u64) -> u64 {
    gain(expected_tally(expected, groups, capacity), alpha)
}

/// Exchanges tried between the groups of a round.
const EXCHANGES: u32 = 500;

/// [`crate::grouping::Algorithm::Planned`]: Tight-fit and [`Partition`] draw up groups, the better plan is taken and improved.
#[derive(Default)]
pub struct Planner {
    partition: Partition,
    neighbours: Vec<Formed>,
}

impl Planner {
    /// Forms all groups of a round; `order` must be sorted.
    pub fn form(&mut self, order: &mut [&Worker], rule: &Rule, alpha: u64, random: &mut Random, groups: &mut Vec<Formed>) {
        self.partition.solve(order.iter().map(|worker| worker.rating()), rule.min(), rule.max(), alpha);
        self.neighbours.clear();
        let formed = |size| Formed { size, likelihood: None, evaluations: 0 };
        self.neighbours.extend(self.partition.sizes().map(formed));
        let mut tight: Vec<&Worker> = order.to_vec();
        form_all::<ByExact>(Algorithm::TIGHT_FIT, &mut tight, rule, random, groups);
        let promise = |order: &[&Worker], groups: &[Formed]| expected_gain(order, groups, rule.min(), alpha);
        if promise(&tight, groups) >= promise(order, &self.neighbours) {
            order.copy_from_slice(&tight);
        } else {
            groups.clone_from(&self.neighbours);
        }
        exchange(order, groups, EXCHANGES, random);
    }
}

/// Lets groups exchange members where that raises the expected number of successes: takes random pairs of members of
/// different groups, and swaps them if the exact likelihoods of their groups then add up to more. Sizes stay.
///
/// No algorithm of the paper does this: they draw up one group after the other, each for itself.
fn exchange(order: &mut [&Worker], groups: &[Formed], attempts: u32, random: &mut Random) {
    if groups.len() < 2 {
        return;
    }
    let mut start = 0;
    let mut spans: Vec<(usize, usize, u64)> = Vec::with_capacity(groups.len());
    for formed in groups {
        let end = start + formed.size;
        spans.push((start, end, likelihood_of::<ByExact>(&order[start..end])));
        start = end;
    }
    for _ in 0..attempts {
        let a = random.below(spans.len());
        let b = (a + 1 + random.below(spans.len() - 1)) % spans.len();
        let ((a_start, a_end, a_value), (b_start, b_end, b_value)) = (spans[a], spans[b]);
        let (i, j) = (a_start + random.below(a_end - a_start), b_start + random.below(b_end - b_start));
        order.swap(i, j);
        let a_new = likelihood_of::<ByExact>(&order[a_start..a_end]);
        let b_new = likelihood_of::<ByExact>(&order[b_start..b_end]);
        if a_new + b_new > a_value + b_value {
            (spans[a].2, spans[b].2) = (a_new, b_new);
        } else {
            order.swap(i, j);
        }
    }
}

/// Divides sorted workers into runs of neighbours, all of allowed size, so that the expected gain is the largest there is.
///
/// Dynamic programming: the largest sum of likelihoods that g groups can reach among the first i workers follows from that
/// of g - 1 groups among fewer. The gain then follows for every g, and with it the best. O(workers^2) for fixed sizes.
#[derive(Default)]
pub struct Partition {
    /// For each end of a run and each size from Rmin on: its likelihood.
    likelihoods: Vec<u64>,
    /// For each number of groups and of workers: the largest sum, plus one; 0 if there is none.
    sums: Vec<u64>,
    /// The size of the last group on the way to it.
    last: Vec<u8>,
    sizes: Vec<usize>,
}

impl Partition {
    /// Group sizes, the best workers' first.
    pub fn sizes(&self) -> impl Iterator<Item = usize> + '_ {
        self.sizes.iter().copied()
    }

    /// Solves for workers with these ratings, sorted. All get work, except for fewer than `min` at the end.
    pub fn solve(&mut self, ratings: impl Iterator<Item = u64>, min: usize, max: usize, alpha: u64) {
        let ratings: Vec<u64> = ratings.collect();
        let (n, width, most) = (ratings.len(), max - min + 1, ratings.len() / min);
        self.sizes.clear();
        self.likelihoods.clear();
        self.likelihoods.resize((n + 1) * width, 0);
        for start in 0..n {
            let mut group = Exact::default();
            for size in 1..=max.min(n - start) {
                group.push(&ratings[start + size - 1]);
                if size >= min {
                    self.likelihoods[(start + size) * width + size - min] = group.value() >> SCALE;
                }
            }
        }
        let row = n + 1;
        self.sums.clear();
        self.sums.resize((most + 1) * row, 0);
        self.last.clear();
        self.last.resize((most + 1) * row, 0);
        self.sums[0] = 1;
        for groups in 1..=most {
            let (before, here) = self.sums.split_at_mut(groups * row);
            let before = &before[(groups - 1) * row..];
            for end in groups * min..=n.min(groups * max) {
                for size in min..=max.min(end) {
                    let sum = before[end - size];
                    if sum == 0 {
                        continue;
                    }
                    let sum = sum + self.likelihoods[end * width + size - min];
                    if sum > here[end] {
                        here[end] = sum;
                        self.last[groups * row + end] = size as u8;
                    }
                }
            }
        }
        let mut best: Option<(u64, usize, usize)> = None;
        for groups in 1..=most {
            for end in n.saturating_sub(min - 1)..=n {
                let sum = self.sums[groups * row + end];
                if sum == 0 {
                    continue;
                }
                let gain = gain_of(sum - 1, groups, most, alpha);
                if best.is_none_or(|(largest, ..)| gain > largest) {
                    best = Some((gain, groups, end));
                }
            }
        }
        if let Some((_, mut groups, mut end)) = best {
            while groups > 0 {
                let size = usize::from(self.last[groups * row + end]);
                self.sizes.push(size);
                (groups, end) = (groups - 1, end - size);
            }
            self.sizes.reverse();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::reputation::likelihood;

    /// All divisions of `n` workers into sizes from `min` to `max`, fewer than `min` left over.
    fn divisions(n: usize, min: usize, max: usize) -> Vec<Vec<usize>> {
        let mut all = if n < min { vec![vec![]] } else { vec![] };
        for size in min..=max.min(n) {
            for mut rest in divisions(n - size, min, max) {
                rest.insert(0, size);
                all.push(rest);
            }
        }
        all
    }

    fn expected_gain(ratings: &[u64], sizes: &[usize], min: usize, alpha: f64) -> f64 {
        let mut rest = ratings;
        let mut sum = 0.0;
        for &size in sizes {
            sum += likelihood(&rest[..size]).unwrap() as f64 / WAD as f64;
            rest = &rest[size..];
        }
        alpha * sum / (ratings.len() / min) as f64 + (1.0 - alpha) * sum / sizes.len() as f64
    }

    #[test]
    fn partition_is_the_best_of_all() {
        let mut random = Random::named(&[7]);
        let mut partition = Partition::default();
        for _ in 0..300 {
            let (n, min) = (3 + random.below(15), 2 + random.below(2));
            let max = min + random.below(5);
            let alpha = random.below(5) as u64 * (WAD / 4);
            let mut ratings: Vec<u64> = (0..n).map(|_| random.bits() % WAD).collect();
            ratings.sort_unstable_by(|a, b| b.cmp(a));
            partition.solve(ratings.iter().copied(), min, max, alpha);
            let found: Vec<usize> = partition.sizes().collect();
            let alpha = alpha as f64 / WAD as f64;
            let gain = |sizes: &[usize]| expected_gain(&ratings, sizes, min, alpha);
            let all = divisions(n, min, max);
            if all.is_empty() {
                assert!(found.is_empty());
                continue;
            }
            assert!(all.contains(&found), "{found:?} of {n} in {min}..={max}");
            let best = all.iter().map(|sizes| gain(sizes)).fold(0.0, f64::max);
            assert!(best - gain(&found) < 1e-12, "{found:?}: {} instead of {best}", gain(&found));
        }
    }
}
