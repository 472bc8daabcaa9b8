//! The lower bound (2) against the paper's formula in big numbers.

use muster_core::reputation::{likelihood, Likelihood, MAX_GROUP};
use muster_core::wad::WAD;
use muster_sim::bound::{likelihood_bound, Bound, LogRating};
use num_bigint::BigUint;
use ratings::{ratings, rng};

#[path = "../../contracts/core/tests/ratings/mod.rs"]
mod ratings;

#[test]
fn bound_refuses_what_is_no_group() {
    for refused in [&[][..], &[WAD; MAX_GROUP + 1]] {
        assert_eq!(likelihood_bound(refused), None);
    }
    let (mut group, member) = (Bound::default(), LogRating::new(WAD / 4 * 3));
    assert_eq!((group.value(), member.rating()), (0, WAD / 4 * 3));
    (0..MAX_GROUP).for_each(|_| group.push(&member));
    let full = group.value();
    group.push(&LogRating::new(0));
    assert_eq!(group.value(), full);
}

/// floor(x^(1/n)).
fn root(x: &BigUint, n: usize) -> BigUint {
    x.nth_root(n as u32)
}

/// The bound (2) as the paper writes it, subsets counted one by one. It is the sum over m of C times the geometric mean of the
/// subset products, each mean a root of the product over all subsets. Scaled by 1e18 2^BITS.
fn bound_from_subsets(ratings: &[u64]) -> BigUint {
    const BITS: usize = 90;
    let n = ratings.len();
    let mut sum = BigUint::default();
    for m in n / 2 + 1..=n {
        let mut product = BigUint::from(1u8);
        let mut count = 0usize;
        for subset in (0..1u32 << n).filter(|s| s.count_ones() as usize == m) {
            count += 1;
            for (i, r) in ratings.iter().enumerate() {
                product *= if subset >> i & 1 == 1 { *r } else { WAD - r };
            }
        }
        // The product of `count` numbers scaled by 1e18^n; scale the root by 2^BITS and leave one 1e18.
        let mean = root(&(product << (BITS * count)), count) / BigUint::from(WAD).pow(n as u32 - 1);
        sum += mean * count;
    }
    sum >> (BITS - 20)
}

#[test]
fn bound_is_equation_2() {
    let mut random = rng(3);
    for size in 1..=7 {
        for _ in 0..40 {
            let ratings = ratings(&mut random, size);
            let got = BigUint::from(likelihood_bound(&ratings).unwrap()) << 20usize;
            let want = bound_from_subsets(&ratings);
            let off = if got > want { got - want } else { want - got } >> 20usize;
            assert!(off <= BigUint::from(100u32), "{ratings:?} is off by {off}");
        }
    }
}

/// C(n, m) R^m Q^(n-m) from exact roots, for sizes whose subsets are too many for big products. Scaled by 1e18 2^20.
fn bound_from_means(ratings: &[u64]) -> BigUint {
    const BITS: usize = 128;
    let n = ratings.len();
    let mean = |wrong: bool| {
        let product = ratings.iter().fold(BigUint::from(1u8), |p, r| p * if wrong { WAD - r } else { *r });
        root(&(product << (BITS * n)), n) / WAD
    };
    let (right, wrong) = (mean(false), mean(true));
    let mut sum = BigUint::default();
    let mut choose = BigUint::from(1u8);
    for m in (n / 2 + 1..=n).rev() {
        sum += &choose * right.pow(m as u32) * wrong.pow((n - m) as u32);
        choose = choose * m / (n - m + 1);
    }
    (sum * WAD) >> (BITS * n - 20)
}

#[test]
fn bound_holds_for_every_size() {
    let mut random = rng(4);
    for size in 1..=MAX_GROUP {
        for _ in 0..1000 {
            let ratings = ratings(&mut random, size);
            let bound = likelihood_bound(&ratings).unwrap();
            let got = BigUint::from(bound) << 20usize;
            let want = bound_from_means(&ratings);
            let off = if got > want { got - want } else { want - got } >> 20usize;
            assert!(off <= BigUint::from(100u32), "{ratings:?} is off by {off}");
            assert!(bound <= likelihood(&ratings).unwrap() + 100, "{ratings:?}");
        }
        // Equal ratings: the inequality of the means is an equality.
        for equal in [WAD / 3, WAD / 2, WAD - WAD / 7, WAD - 1, 1] {
            let group = vec![equal; size];
            assert!(likelihood_bound(&group).unwrap().abs_diff(likelihood(&group).unwrap()) <= 100, "{group:?}");
        }
    }
}
