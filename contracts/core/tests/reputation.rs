//! Ratings, votes, likelihoods and groups against enumeration, big rationals and brute force.

use muster_core::reputation::*;
use muster_core::wad::{neg_ln_wad, WAD};
use num_bigint::BigUint;
use rand_chacha::rand_core::RngCore;
use rand_chacha::ChaCha8Rng;
use ratings::{below, rating, ratings, rng};
use std::cell::Cell;

mod ratings;

/// The likelihood by enumeration of all subsets, exact: an integer to be divided by 1e18^n.
fn enumerated(ratings: &[u64]) -> BigUint {
    let n = ratings.len();
    let mut sum = BigUint::default();
    for subset in 0..1u32 << n {
        if subset.count_ones() as usize * 2 > n {
            sum += (0..n)
                .map(|i| if subset >> i & 1 == 1 { ratings[i] } else { WAD - ratings[i] })
                .fold(BigUint::from(1u8), |product, factor| product * factor);
        }
    }
    sum
}

/// A wad scaled like [`enumerated`].
fn scaled(value: u64, n: usize) -> BigUint {
    BigUint::from(value) * BigUint::from(WAD).pow(n as u32 - 1)
}

#[test]
fn likelihood_is_the_sum_over_all_subsets() {
    let mut random = rng(1);
    for size in 1..=MAX_GROUP {
        // Enumeration doubles with each member.
        for _ in 0..(1 << 16 >> size).clamp(4, 2000) {
            let ratings = ratings(&mut random, size);
            let got = scaled(likelihood(&ratings).unwrap(), size);
            let want = enumerated(&ratings);
            // Never above, and far less than 1e-15 = 1,000 units below.
            assert!(got <= want, "{ratings:?}");
            assert!(&want - &got <= scaled(12, size), "{ratings:?}: {} below", (want - got) / scaled(1, size));
        }
    }
    for size in 1..=MAX_GROUP {
        for edge in [vec![0; size], vec![WAD; size], vec![WAD / 2; size]] {
            let difference = enumerated(&edge) - scaled(likelihood(&edge).unwrap(), size);
            assert!(difference <= scaled(12, size), "{edge:?}");
        }
    }
}

#[test]
fn likelihood_refuses_what_is_no_group() {
    for refused in [&[][..], &[WAD; MAX_GROUP + 1]] {
        assert_eq!(likelihood(refused), None);
    }
    let mut group = Exact::default();
    assert_eq!(group.value(), 0);
    (0..MAX_GROUP).for_each(|_| group.push(&(WAD / 4 * 3)));
    let full = group.value();
    group.push(&0);
    assert_eq!(group.value(), full);
}

#[test]
fn likelihood_ignores_order_and_rises_with_a_rating() {
    let mut random = rng(2);
    for _ in 0..20_000 {
        let size = 1 + random.next_u32() as usize % MAX_GROUP;
        let mut group = ratings(&mut random, size);
        let before = likelihood(&group).unwrap();
        let i = random.next_u32() as usize % group.len();
        let better = group[i] + below(&mut random, WAD - group[i] + 1);
        let old = std::mem::replace(&mut group[i], better);
        assert!(likelihood(&group).unwrap() + 12 >= before, "{group:?}, {i} was {old}");
        group[i] = old;
        group.reverse();
        assert!(likelihood(&group).unwrap().abs_diff(before) <= 12);
    }
}

#[test]
fn logarithms_undo_exponentials() {
    // ln by bisection over an exponential that shares nothing with the core's: x = prod of e^(-2^i / 1e18), in 256 bits.
    const BITS: usize = 200;
    let one = BigUint::from(1u8) << BITS;
    let factors: Vec<BigUint> = (0..66)
        .map(|i| {
            let y = (BigUint::from(1u128 << i) << BITS) / WAD;
            let (mut sum, mut term, mut n) = (one.clone(), one.clone(), 0u32);
            let halved = &y >> 10usize;
            while term > BigUint::default() {
                n += 1;
                term = ((&term * &halved) >> BITS) / n;
                sum += &term;
            }
            let mut value = (&one << BITS) / sum;
            (0..10).for_each(|_| value = (&value * &value) >> BITS);
            value
        })
        .collect();
    let reference = |x: u64| -> u128 {
        let want = (BigUint::from(x) << BITS) / WAD;
        let (mut ln, mut value) = (0u128, one.clone());
        for i in (0..66).rev() {
            let next = (&value * &factors[i]) >> BITS;
            if next >= want {
                (ln, value) = (ln | 1 << i, next);
            }
        }
        ln
    };
    let mut random = rng(5);
    let near_powers = (0..60).flat_map(|i| [(1u64 << i) - 1, 1 << i, (1 << i) + 1]).filter(|&x| x > 0 && x <= WAD);
    let picks: Vec<u64> = near_powers.chain((0..4000).map(|_| rating(&mut random).max(1))).collect();
    for x in picks.into_iter().chain([WAD, WAD - 1, WAD / 2, 707_106_781_186_547_524]) {
        let (got, want) = (neg_ln_wad(x).unwrap(), reference(x));
        assert!(got.abs_diff(want) <= 3, "neg_ln_wad({x}) = {got}, not {want}");
    }
    assert_eq!(neg_ln_wad(0), None);
    assert_eq!(neg_ln_wad(WAD), Some(0));
    assert_eq!(neg_ln_wad(u64::MAX), Some(0));
}

#[test]
fn ratings_follow_the_record() {
    assert_eq!(Record::default().rating(), WAD / 2);
    assert_eq!(Record::new(3, 2), None);
    let mut random = rng(6);
    for _ in 0..10_000 {
        let attempted = random.next_u32() >> (random.next_u32() % 32);
        let correct = below(&mut random, u64::from(attempted) + 1) as u32;
        let record = Record::new(correct, attempted).unwrap();
        let want = (u128::from(correct) + 1) * u128::from(WAD) / (u128::from(attempted) + 2);
        assert_eq!(u128::from(record.rating()), want);
        assert!(record.rating() > 0 && record.rating() < WAD);
        let mut next = record;
        next.note(true);
        assert!(next.rating() >= record.rating());
    }
    let mut record = Record::default();
    (0..5).for_each(|i| record.note(i != 2));
    assert_eq!((record.correct(), record.attempted()), (4, 5));
    let mut closed = Record::new(7, u32::MAX).unwrap();
    closed.note(true);
    assert_eq!(closed, Record::new(7, u32::MAX).unwrap());
}

#[test]
fn votes_need_more_than_half() {
    let judged = |answers: &[Option<u8>]| {
        let mut correct = vec![false; answers.len()];
        (vote(answers, &mut correct), correct)
    };
    let (a, b, c, d, none) = (Some(1), Some(2), Some(3), Some(4), None);
    assert_eq!(judged(&[a, b, a]), (Some(0), vec![true, false, true]));
    assert_eq!(judged(&[b, a, a, none, a]), (Some(1), vec![false, true, true, false, true]));
    // Half is not enough; the Optimistic heuristic then believes members that agree with another.
    assert_eq!(judged(&[a, a, b, c]), (None, vec![true, true, false, false]));
    assert_eq!(judged(&[a, a, b, b]), (None, vec![true; 4]));
    assert_eq!(judged(&[a, b, c, d, none]), (None, vec![false; 5]));
    // Missing answers agree with nobody, not even with each other.
    assert_eq!(judged(&[none, none, none]), (None, vec![false; 3]));
    assert_eq!(judged(&[a]), (Some(0), vec![true]));
    assert_eq!(judged(&[]), (None, vec![]));
}

#[test]
fn rules_are_checked() {
    assert_eq!(Rule::new(0, 3, 0), Err(RuleError::NoMember));
    assert_eq!(Rule::new(4, 3, 0), Err(RuleError::MinAboveMax { min: 4, max: 3 }));
    assert_eq!(Rule::new(3, 16, 0), Err(RuleError::TooLarge { max: 16 }));
    assert_eq!(Rule::new(3, 7, WAD + 1), Err(RuleError::TargetAboveOne { target: WAD + 1 }));
    assert!(Rule::new(1, 15, WAD).is_ok());
}

fn sorted(rng: &mut ChaCha8Rng, size: usize) -> Vec<u64> {
    let mut workers = ratings(rng, size);
    workers.sort_unstable_by(|a, b| b.cmp(a));
    workers
}

fn rule(rng: &mut ChaCha8Rng) -> Rule {
    let min = 1 + rng.next_u32() as usize % 4;
    Rule::new(min, min + rng.next_u32() as usize % 7, rating(rng)).unwrap()
}

/// Every algorithm, repeatedly until the workers are used up: the place of each worker, and why a group ended.
#[test]
fn groups_partition_the_workers() {
    let mut random = rng(7);
    for round in 0..4000 {
        let size = random.next_u32() as usize % 40;
        let workers = sorted(&mut random, size);
        let rule = rule(&mut random);
        let mut dice = rng(round);
        for algorithm in 0..6 {
            let mut pool = workers.clone();
            let mut free = &mut pool[..];
            loop {
                let pick = |n: usize| below(&mut dice, n as u64) as usize;
                let formed = match algorithm {
                    0 => fixed_size(free, &rule, pick),
                    1 => first_fit::<_, Exact>(free, &rule),
                    2 => tight_fit::<_, Exact>(free, &rule, Fallback::Largest),
                    3 => tight_fit::<_, Exact>(free, &rule, Fallback::Closest),
                    5 => tight_fit_of_neighbours::<_, Exact>(free, &rule, Fallback::Largest),
                    _ => random_fit::<_, Exact>(free, &rule, pick),
                };
                let Some(formed) = formed else {
                    let needed = if algorithm == 0 { rule.max() } else { rule.min() };
                    assert!(free.len() < needed);
                    break;
                };
                assert!(formed.size >= rule.min() && formed.size <= rule.max());
                let (group, rest) = std::mem::take(&mut free).split_at_mut(formed.size);
                if algorithm == 0 {
                    assert_eq!((formed.size, formed.evaluations), (rule.max(), 0));
                } else {
                    assert_eq!(formed.likelihood, likelihood(group));
                }
                if algorithm == 1 || algorithm == 4 {
                    // Neither grew beyond the target, nor stopped short of it.
                    let reached = formed.likelihood.unwrap() >= rule.target();
                    assert!(reached || formed.size == rule.max() || rest.is_empty());
                    for shorter in rule.min()..formed.size {
                        assert!(likelihood(&group[..shorter]).unwrap() < rule.target());
                    }
                    assert_eq!(formed.evaluations as usize, formed.size - rule.min() + 1);
                }
                if algorithm != 0 && algorithm != 4 {
                    assert!(rest.is_sorted_by(|a, b| a >= b), "the rest must stay sorted");
                }
                free = rest;
            }
            pool.sort_unstable_by(|a, b| b.cmp(a));
            assert_eq!(pool, workers, "nobody is lost or doubled");
        }
    }
}

/// Tight-fit against a search through every run of neighbours of every size.
#[test]
fn tight_fit_of_neighbours_is_the_tightest() {
    let mut random = rng(8);
    for _ in 0..20_000 {
        let size = random.next_u32() as usize % 30;
        let workers = sorted(&mut random, size);
        let rule = rule(&mut random);
        let fallback = [Fallback::Largest, Fallback::Closest][random.next_u32() as usize % 2];
        let mut free = workers.clone();
        let Some(formed) = tight_fit_of_neighbours::<_, Exact>(&mut free, &rule, fallback) else {
            assert!(workers.len() < rule.min());
            continue;
        };
        let most = rule.max().min(workers.len()) + 1 - rule.min() + workers.len().ilog2() as usize + 1;
        assert!((1..=most).contains(&(formed.evaluations as usize)), "{} evaluations", formed.evaluations);
        let runs = |size: usize| workers.windows(size).map(|run| likelihood(run).unwrap()).collect::<Vec<_>>();
        let sizes = rule.min()..=rule.max().min(workers.len());
        let value = formed.likelihood.unwrap();
        match sizes.clone().find(|&size| runs(size).iter().any(|v| *v >= rule.target())) {
            Some(size) => {
                assert_eq!(formed.size, size, "not the smallest");
                let tightest = runs(size).into_iter().filter(|v| *v >= rule.target()).min().unwrap();
                // Equal up to rounding: two runs may have the same likelihood but for their last digits.
                assert!(value >= rule.target() && value - tightest <= 12, "{value} instead of {tightest}");
            }
            None => {
                let largest = *sizes.end();
                let sizes = match fallback {
                    Fallback::Largest => largest..=largest,
                    Fallback::Closest => sizes,
                };
                assert!(sizes.contains(&formed.size));
                let best = sizes.flat_map(runs).max().unwrap();
                assert!(best - value <= 12, "{value} instead of {best}");
            }
        }
    }
}

/// Tight-fit of neighbours and by both searches against an exhaustive search through all groups of every size, on small pools. The size is
/// always the smallest, and the margin over the target never below the optimum. With the second search it is never above that of runs of
/// neighbours.
#[test]
fn both_searches_of_tight_fit_against_the_exact_optimum() {
    let mut random = rng(12);
    println!("pool | reach the target | margin of the optimum, neighbours, both searches | optimum hit by neighbours, both searches | calls of neighbours, both searches");
    for workers in [6usize, 8, 10] {
        let (mut pools, mut margins, mut hits, mut calls) = (0u32, [0f64; 3], [0u32; 2], [0u32; 2]);
        for _ in 0..300 {
            let pool = sorted(&mut random, workers);
            let target = WAD / 100 * (30 + below(&mut random, 66));
            let rule = Rule::new(3, 7, target).unwrap();
            let formed = [
                tight_fit_of_neighbours::<_, Exact>(&mut pool.clone(), &rule, Fallback::Largest).unwrap(),
                tight_fit::<_, Exact>(&mut pool.clone(), &rule, Fallback::Largest).unwrap(),
            ];
            let groups = |size: usize| {
                let pool = &pool;
                (0..1u32 << workers).filter(move |set| set.count_ones() as usize == size).map(move |set| {
                    let group: Vec<u64> = (0..workers).filter(|i| set >> i & 1 > 0).map(|i| pool[i]).collect();
                    likelihood(&group).unwrap()
                })
            };
            let size = (3..=7.min(workers)).find(|&size| groups(size).any(|value| value >= target));
            let Some(size) = size else {
                // Where none reaches it both take the same.
                assert_eq!((formed[0].size, formed[0].likelihood), (formed[1].size, formed[1].likelihood));
                continue;
            };
            pools += 1;
            let optimum = groups(size).filter(|&value| value >= target).min().unwrap();
            let [runs, apart] = formed.map(|group| group.likelihood.unwrap());
            assert!(formed.iter().all(|group| group.size == size), "not the smallest");
            // Equal up to rounding, as above.
            assert!(target <= apart && apart <= runs && optimum <= apart + 12, "{optimum}, {apart}, {runs}");
            for (sum, value) in margins.iter_mut().zip([optimum, runs, apart]) {
                *sum += (value - target) as f64 / WAD as f64;
            }
            for (i, value) in [runs, apart].into_iter().enumerate() {
                hits[i] += u32::from(value <= optimum + 12);
                calls[i] += formed[i].evaluations;
            }
            assert!(formed[1].evaluations <= formed[0].evaluations + workers.ilog2() + 1);
        }
        let mean = |sum: f64| sum / f64::from(pools);
        let [optimum, runs, apart] = margins.map(mean);
        println!(
            "{workers} | {pools} of 300 | {optimum:.3}, {runs:.3}, {apart:.3} | {:.0} %, {:.0} % | {:.1}, {:.1}",
            100.0 * mean(hits[0].into()),
            100.0 * mean(hits[1].into()),
            mean(calls[0].into()),
            mean(calls[1].into()),
        );
        assert!(pools > 100 && hits[1] > hits[0] && optimum < apart && apart < runs);
    }
}

#[test]
fn of_sizes_that_miss_by_the_same_the_closest_is_the_smallest() {
    let rule = Rule::new(2, 4, WAD).unwrap();
    let size = |fallback| tight_fit::<_, Exact>(&mut [0; 5], &rule, fallback).unwrap().size;
    assert_eq!((size(Fallback::Closest), size(Fallback::Largest)), (2, 4));
}

#[test]
fn an_algorithm_forms_its_groups() {
    let workers = sorted(&mut rng(10), 12);
    let rule = Rule::new(2, 5, WAD / 10 * 9).unwrap();
    let formed = |algorithm: u8| {
        let (mut dice, mut free) = (rng(11), workers.clone());
        let pick = |n: usize| below(&mut dice, n as u64) as usize;
        let formed = match algorithm {
            0 => fixed_size(&mut free, &rule, pick),
            1 => first_fit::<_, Exact>(&mut free, &rule),
            2 => tight_fit::<_, Exact>(&mut free, &rule, Fallback::Largest),
            _ => random_fit::<_, Exact>(&mut free, &rule, pick),
        };
        (formed, free)
    };
    for n in 0..4 {
        let (mut dice, mut free) = (rng(11), workers.clone());
        let algorithm = Algorithm::new(n).unwrap();
        assert_eq!(algorithm as u8, n);
        let by = algorithm.form::<_, Exact>(&mut free, &rule, |n| below(&mut dice, n as u64) as usize);
        assert_eq!((by, free), formed(n), "{algorithm:?}");
        assert!(by.is_some());
    }
    assert_eq!(Algorithm::new(4), None);
}

/// A formed group says how often it asked for a likelihood.
#[test]
fn evaluations_are_the_likelihoods_asked_for() {
    thread_local!(static ASKED: Cell<u32> = const { Cell::new(0) });
    #[derive(Default)]
    struct Counted(Exact);
    impl Likelihood<u64> for Counted {
        fn push(&mut self, member: &u64) {
            Likelihood::<u64>::push(&mut self.0, member);
        }
        fn value(&self) -> u64 {
            ASKED.set(ASKED.get() + 1);
            Likelihood::<u64>::value(&self.0)
        }
    }
    let mut random = rng(12);
    for algorithm in (1..4).map(|n| Algorithm::new(n).unwrap()) {
        for target in [WAD / 2, WAD / 4 * 3, WAD / 10 * 9, WAD - 1] {
            let mut free = sorted(&mut random, 40);
            ASKED.set(0);
            let rule = Rule::new(2, 7, target).unwrap();
            let formed = algorithm.form::<_, Counted>(&mut free, &rule, |n| below(&mut random, n as u64) as usize).unwrap();
            assert_eq!(formed.evaluations, ASKED.get(), "{algorithm:?} up to {target}");
        }
    }
}

/// Each worker must be equally likely to be drawn into the first group, whatever its place.
#[test]
fn random_groups_are_uniform() {
    const WORKERS: usize = 20;
    const DRAWS: usize = 40_000;
    let mut random = rng(9);
    let rule = Rule::new(3, 5, WAD).unwrap();
    for fixed in [true, false] {
        let mut seen = [0f64; WORKERS];
        for _ in 0..DRAWS {
            let mut free: Vec<u64> = (0..WORKERS as u64).map(|i| WAD / 2 + i).collect();
            let pick = |n: usize| below(&mut random, n as u64) as usize;
            let formed = if fixed { fixed_size(&mut free, &rule, pick) } else { random_fit::<_, Exact>(&mut free, &rule, pick) };
            for worker in &free[..formed.unwrap().size] {
                seen[(worker - WAD / 2) as usize] += 1.0;
            }
        }
        let expected = (DRAWS * 5) as f64 / WORKERS as f64;
        let chi_square: f64 = seen.iter().map(|s| (s - expected).powi(2) / expected).sum();
        // 19 degrees of freedom: above 43.8 in one case of a thousand (and less: drawn without replacement).
        assert!(chi_square < 43.8, "{chi_square}");
    }
    // A careless caller's pick is taken modulo the number of free workers.
    let mut free = vec![WAD / 2; 9];
    assert!(fixed_size(&mut free, &rule, |_| usize::MAX).is_some());
}
