//! How far the weight and the recovery of H are from their true values, by big rationals: the bounds that their
//! documentation states, and how much of them can happen.

use muster_core::qos::recover;
use muster_core::wad::WAD;
use muster_core::weight::{locality_boost, weight};
use num_bigint::{BigInt, BigUint};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn below(random: &mut ChaCha8Rng, end: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(end)) >> 64) as u64
}

/// A wad of any length, up to 1e18.
fn wad(random: &mut ChaCha8Rng) -> u64 {
    let shift = random.next_u32() % 60;
    (below(random, WAD) >> shift) + 1
}

/// How many thousandths of 1e-18 the weight is below M S QoS / (S + QoS).
fn shortfall(m: u64, s: u64, qos: u64) -> u64 {
    let sum = BigUint::from(WAD) * (s + qos);
    let exact = BigUint::from(m) * s * qos * 1000u32;
    let got = BigUint::from(weight(m, s, qos)) * &sum * 1000u32;
    assert!(got <= exact, "weight({m}, {s}, {qos}) is too large");
    u64::try_from((exact - got) / sum).expect("an error beyond all measure")
}

#[test]
fn weight_is_less_than_one_unit_and_m_too_low() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut worst = 0;
    for _ in 0..400_000 {
        let total = below(&mut random, 9) as u32;
        let local = below(&mut random, u64::from(total) + 1) as u32;
        let in_use = below(&mut random, u64::from(local) + 1) as u32;
        let m = locality_boost(local, in_use, total);
        let (s, qos) = (wad(&mut random), wad(&mut random));
        let short = shortfall(m, s, qos);
        assert!(short * (WAD / 1000) < WAD + m, "weight({m}, {s}, {qos}): {short}");
        worst = worst.max(short);
    }
    // Two is not the bound.
    assert!((2_410..3_000).contains(&worst), "{worst}");
}

/// e^-(n / d), scaled by 2^256.
fn exp_neg(n: u64, d: u32) -> BigUint {
    const BITS: usize = 256;
    const HALVINGS: usize = 24;
    let one = BigUint::from(1u8) << BITS;
    // 1 / e^y by the series of e^y, y = n / d / 2^24; then squared 24 times.
    let y = ((BigUint::from(n) << BITS) / d) >> HALVINGS;
    let (mut sum, mut term) = (one.clone(), one.clone());
    for k in 1..40u32 {
        term = ((term * &y) >> BITS) / k;
        sum += &term;
    }
    let mut value = (one << BITS) / sum;
    for _ in 0..HALVINGS {
        value = (&value * &value) >> BITS;
    }
    value
}

/// How many thousandths of 1e-18 `recover` is above (negative: below) the true value.
fn error(h: u64, elapsed: u64, tau: u32) -> i64 {
    let missing = BigInt::from(BigUint::from(WAD - h) * exp_neg(elapsed, tau));
    let exact = (BigInt::from(WAD) << 256) - missing;
    let got = BigInt::from(recover(h, elapsed, tau)) << 256;
    i64::try_from(((got - exact) * 1000) >> 256).expect("an error beyond all measure")
}

#[test]
fn recovery_is_within_two_units() {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let (mut lowest, mut highest) = (0, 0);
    for _ in 0..60_000 {
        let tau = [600, 1_800, 5_400, 14_400, 7, 999_983][random.next_u32() as usize % 6];
        let h = if random.next_u32() % 2 == 0 { below(&mut random, 1_000) } else { below(&mut random, WAD) };
        let elapsed = 1 + below(&mut random, u64::from(tau) * 3);
        let error = error(h, elapsed, tau);
        assert!((-1_800..1_800).contains(&error), "recover({h}, {elapsed}, {tau}): {error}");
        (lowest, highest) = (lowest.min(error), highest.max(error));
    }
    // It can be below the true value, too.
    assert!(lowest < -1_000 && highest > 1_000, "{lowest} to {highest}");
}
