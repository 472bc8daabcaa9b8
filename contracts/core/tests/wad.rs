//! `wad` against a big-number reference that shares nothing with it: arbitrary-precision integers, plain series.

use muster_core::wad::*;
use num_bigint::BigUint;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

const RANDOM_POINTS: usize = 1_000_000;
/// Working precision of the reference, in bits: its error is some 2^-180.
const BITS: usize = 192;

fn big(x: u128) -> BigUint {
    BigUint::from(x)
}

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// A number whose length in bits is uniform, so that small and large ones are equally tested.
fn any_length(rng: &mut ChaCha8Rng, bits: u32) -> u128 {
    let x = (u128::from(rng.next_u64()) << 64) | u128::from(rng.next_u64());
    let length = rng.next_u32() % (bits + 1);
    if length == 0 {
        0
    } else {
        x >> (128 - length)
    }
}

/// A number below `end`; that small ones are likelier by 2^-60 is of no matter here.
fn below(rng: &mut ChaCha8Rng, end: u128) -> u128 {
    ((u128::from(rng.next_u64()) << 64) | u128::from(rng.next_u64())) % end
}

/// e^(-x) as a product over the bytes of x: one factor e^(-b 256^i / 1e18) each, from the plain series.
struct ExpReference {
    factors: Vec<Vec<BigUint>>,
}

impl ExpReference {
    fn new() -> Self {
        let factors = (0..9).map(|byte| (0..256u128).map(|b| Self::series(b << (8 * byte))).collect()).collect();
        Self { factors }
    }

    /// The series 1 / sum y^n / n! with y = x / 2^j small, squared j times, scaled by 2^BITS.
    fn series(x: u128) -> BigUint {
        const GUARD: usize = 96;
        let bits = BITS + GUARD;
        let one = BigUint::from(1u8) << bits;
        let halvings = 12usize;
        let y = ((BigUint::from(x) << bits) / big(u128::from(WAD))) >> halvings;
        let mut term = one.clone();
        let mut sum = one.clone();
        let mut n = 0u32;
        while term > BigUint::default() {
            n += 1;
            term = ((&term * &y) >> bits) / n;
            sum += &term;
        }
        let mut value = (&one << bits) / sum;
        for _ in 0..halvings {
            value = (&value * &value) >> bits;
        }
        value >> GUARD
    }

    /// e^(-x) 1e18, scaled by 2^BITS.
    fn wad(&self, x: u128) -> BigUint {
        let mut value = BigUint::from(WAD) << BITS;
        for (i, row) in self.factors.iter().enumerate() {
            let byte = (x >> (8 * i)) as usize & 255;
            if byte != 0 {
                value = (value * &row[byte]) >> BITS;
            }
        }
        value
    }

    /// |exp_neg_wad(x) - true value| in thousandths of 1e-18, rounded up.
    fn error(&self, x: u128) -> u64 {
        let got = BigUint::from(exp_neg_wad(x)) << BITS;
        let want = self.wad(x);
        let difference = if got > want { got - want } else { want - got };
        let thousandths: BigUint = ((difference * 1000u32) >> BITS) + 1u32;
        u64::try_from(thousandths).expect("an error beyond all measure")
    }
}

const EXP_END: u128 = 42_000_000_000_000_000_000;

/// Where the binary exponent or the table index of `exp_neg_wad` changes: multiples of ln 2 / 16.
fn exp_seams() -> impl Iterator<Item = u128> {
    (0..=61 * 16u128).map(|i| i * 693_147_180_559_945_309_417 / 16_000)
}

#[test]
fn exp_reference_is_right() {
    // e^-1 and e^-42 to 36 digits, from published tables of e.
    let reference = ExpReference::new();
    let digits = |x: u128| -> BigUint { (reference.wad(x) * big(1_000_000_000_000_000_000)) >> BITS };
    assert_eq!(digits(1_000_000_000_000_000_000), big(367_879_441_171_442_321_595_523_770_161_460_867));
    assert_eq!(digits(0), big(1_000_000_000_000_000_000_000_000_000_000_000_000));
    // (e^-1)^42 = e^-42, computed along two ways through the table.
    let one = reference.wad(u128::from(WAD));
    let mut power = BigUint::from(WAD) << BITS;
    for _ in 0..42 {
        power = power * &one / (BigUint::from(WAD) << BITS);
    }
    let direct = reference.wad(EXP_END);
    let difference = if power > direct { power - direct } else { direct - power };
    assert!(difference >> 70 == BigUint::default());
}

#[test]
fn exp_is_within_a_unit() {
    let reference = ExpReference::new();
    let mut worst = 0;
    let mut check = |x: u128| {
        let error = reference.error(x);
        assert!(error <= 800, "exp_neg_wad({x}) = {} is off by {error} thousandths", exp_neg_wad(x));
        worst = worst.max(error);
    };
    for x in exp_seams() {
        for near in 0..40 {
            check((x + near).saturating_sub(20));
        }
    }
    let mut random = rng(1);
    for _ in 0..RANDOM_POINTS / 2 {
        check(below(&mut random, 43_000_000_000_000_000_000));
        check(any_length(&mut random, 66));
    }
    println!("largest error: {worst} thousandths of 1e-18");
}

#[test]
fn exp_at_its_ends() {
    assert_eq!(exp_neg_wad(0), WAD);
    assert_eq!(exp_neg_wad(1), WAD - 1);
    assert_eq!(exp_neg_wad(EXP_END), 1);
    for x in [42_139_678_854_452_767_622, 1 << 67, u128::MAX] {
        assert_eq!(exp_neg_wad(x), 0);
    }
}

#[test]
fn exp_never_rises() {
    let run = |start: u128, length: u128| {
        let mut last = exp_neg_wad(start);
        for x in start + 1..start + length {
            let now = exp_neg_wad(x);
            assert!(now <= last, "exp_neg_wad rises at {x}: {last} to {now}");
            last = now;
        }
    };
    for x in exp_seams() {
        run(x.saturating_sub(1000), 2000);
    }
    let mut random = rng(2);
    for _ in 0..RANDOM_POINTS {
        run(below(&mut random, 42_200_000_000_000_000_000), 4);
    }
    let mut points: Vec<u128> = (0..RANDOM_POINTS).map(|_| any_length(&mut random, 66)).collect();
    points.sort_unstable();
    for pair in points.windows(2) {
        assert!(exp_neg_wad(pair[0]) >= exp_neg_wad(pair[1]), "between {pair:?}");
    }
}

#[test]
fn sqrt_is_the_exact_floor() {
    let check = |x: u128| {
        let root = u128::from(sqrt_u128(x));
        assert!(root * root <= x, "sqrt_u128({x}) = {root} is too large");
        let next = big(root + 1);
        assert!(&next * &next > big(x), "sqrt_u128({x}) = {root} is too small");
    };
    for x in 0..100_000 {
        check(x);
    }
    for bit in 0..128 {
        for near in 0..5u128 {
            check((1u128 << bit).saturating_add(near));
            check((1u128 << bit).saturating_sub(near));
            check(u128::MAX >> bit);
        }
    }
    // Where the root of the upper half is exact, and the lower half is as large as can be.
    for bit in 32..64 {
        let root = 1u128 << bit;
        check(root * root + 2 * root - 1);
    }
    let mut random = rng(3);
    for _ in 0..RANDOM_POINTS / 4 {
        check(any_length(&mut random, 128));
        // Beside squares: where a root is off by one, it shows here.
        let root = any_length(&mut random, 64);
        for near in [root * root, (root * root).saturating_sub(1), root * root + 2 * root] {
            check(near);
        }
    }
}

#[test]
fn staking_score_is_the_exact_floor() {
    let wad_squared = big(u128::from(WAD)) * big(u128::from(WAD));
    let check = |num: u64, den: u64| {
        let score = sqrt_ratio_wad(num, den);
        // score <= sqrt(num / den) 1e18 < score + 1, squared and multiplied by den.
        let bound = BigUint::from(num) * &wad_squared;
        let square = |s: u64| BigUint::from(s) * BigUint::from(s) * BigUint::from(den);
        assert!(square(score) <= bound, "sqrt({num} / {den}) = {score} is too large");
        assert!(square(score + 1) > bound, "sqrt({num} / {den}) = {score} is too small");
    };
    for den in [1, 2, 3, 4, 7, 1 << 32, (1 << 32) + 1, 1 << 63, u64::MAX - 1, u64::MAX] {
        for num in [0, 1, 2, 3, den / 4, den / 3, den / 2, den - 1, den] {
            check(num.min(den), den);
        }
    }
    let mut random = rng(4);
    for _ in 0..RANDOM_POINTS {
        let (a, b) = (any_length(&mut random, 64) as u64, any_length(&mut random, 64) as u64);
        check(a.min(b), a.max(b).max(1));
    }
    assert_eq!(sqrt_ratio_wad(0, 0), 0);
    assert_eq!(sqrt_ratio_wad(5, 0), 0);
    assert_eq!(sqrt_ratio_wad(9, 4), WAD);
    assert_eq!(sqrt_ratio_wad(1, 4), WAD / 2);
}

#[test]
fn mul_div_agrees_with_big_numbers() {
    let check = |a: u128, b: u128, d: u128| {
        let (down, up) = (mul_div(a, b, d), mul_div_up(a, b, d));
        if d == 0 {
            assert_eq!((down, up), (None, None));
            return;
        }
        let product = big(a) * big(b);
        let floor = &product / big(d);
        let ceil = (&product + big(d) - 1u32) / big(d);
        assert_eq!(down, u128::try_from(floor).ok(), "floor({a} * {b} / {d})");
        assert_eq!(up, u128::try_from(ceil).ok(), "ceil({a} * {b} / {d})");
        let narrow = [a, b, d].map(|x| u64::try_from(x).ok());
        if let [Some(a), Some(b), Some(d)] = narrow {
            assert_eq!(mul_div_u64(a, b, d), down.and_then(|q| u64::try_from(q).ok()));
        }
    };
    let edges: Vec<u128> = [0u32, 1, 31, 32, 33, 63, 64, 65, 95, 96, 127]
        .into_iter()
        .flat_map(|bit| [(1u128 << bit) - 1, 1 << bit, (1 << bit) + 1])
        .chain([u128::MAX - 1, u128::MAX, u128::MAX << 64, u128::from(WAD)])
        .collect();
    for &a in &edges {
        for &b in &edges {
            for &d in &edges {
                check(a, b, d);
            }
        }
    }
    let mut random = rng(5);
    for _ in 0..RANDOM_POINTS / 2 {
        let [a, b, d] = [128, 128, 128].map(|bits| any_length(&mut random, bits));
        check(a, b, d);
        check(a, b.min(d), d);
        let [a, b, d] = [64, 64, 64].map(|bits| any_length(&mut random, bits));
        check(a, b, d);
    }
}

#[test]
fn wads_multiply_and_divide() {
    let mut random = rng(6);
    for _ in 0..RANDOM_POINTS / 4 {
        let a = (any_length(&mut random, 60) as u64).min(WAD);
        let b = any_length(&mut random, 64) as u64;
        let wad = u128::from(WAD);
        assert_eq!(u128::from(mul_wad(a, b)), u128::from(a) * u128::from(b) / wad);
        let (low, high) = (a.min(b), a.max(b).max(1));
        assert_eq!(div_wad(low, high).map(u128::from), Some(u128::from(low) * wad / u128::from(high)));
    }
    assert_eq!(mul_wad(u64::MAX, u64::MAX), u64::MAX);
    assert_eq!(mul_wad(WAD, u64::MAX), u64::MAX);
    assert_eq!(div_wad(1, 0), None);
    assert_eq!(div_wad(u64::MAX, 1), None);
}
