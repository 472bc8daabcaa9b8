//! Bounds of the fixed-point functions, proven over their whole domains by interval arithmetic.
//!
//! A function here is a chain of exact integer steps: products, sums, and floors. Each step's value is the exact real value that it stands for,
//! and an error: `computed = exact + error`. Both are enclosed by intervals whose ends are big integers, rounded outwards. The domain is cut into
//! segments, which together cover all of it, so that the intervals are narrow. No sample decides anything: samples are used twice only, to see that
//! the steps written down here are those of the source, and to refute half of a bound.
//!
//! Constants are read out of the source, not copied: a changed one changes the bound that comes out, and a test asserts that it is then refused.

use muster_core::adaptive::{gain, mean_target, Tally, TARGETS_MEANT};
use muster_core::bound;
use muster_core::id::TaskId;
use muster_core::qos::{
    self, boost, eligible, exclusion_seconds, long_term, long_term_200ths, penalise, recover, share_bps, POOL, PPM, Q_MAX,
};
use muster_core::record::{MEMBERS, TASK_MODELS};
use muster_core::reputation::{likelihood, majority, MAX_GROUP};
use muster_core::validation::{payment, shares};
use muster_core::value::{key, value_of_key};
use muster_core::wad::*;
use muster_core::weight::{
    class_bound, class_of, harmonic, largest_boost, locality_boost, stake_limit, staking_score, weight, CLASSES,
};
use num_bigint::BigInt;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::{Add, Mul, Neg, Sub};

/// Fractional bits of an interval's ends.
const BITS: usize = 192;

/// All reals between two numbers, which are multiples of 2^-[`BITS`].
#[derive(Clone, Debug)]
struct Interval(BigInt, BigInt);

fn big(n: impl Into<BigInt>) -> BigInt {
    n.into()
}

/// The interval of one integer.
fn int(n: impl Into<BigInt>) -> Interval {
    between(n, 0)
}

/// From an integer to the one that is `more` above.
fn between(n: impl Into<BigInt>, more: impl Into<BigInt>) -> Interval {
    let n = n.into();
    Interval(n.clone() << BITS, (n + more.into()) << BITS)
}

/// The part that a floor drops: 0 to 1.
fn dropped() -> Interval {
    between(0, 1)
}

fn power(bits: usize) -> Interval {
    int(big(1) << bits)
}

impl Interval {
    /// Divided by an integer above 0.
    fn over(&self, n: impl Into<BigInt>) -> Interval {
        let n = n.into();
        let (low, high) = (&self.0, &self.1);
        Interval(floor(low, &n), -floor(&-high, &n))
    }

    /// Divided by a power of two.
    fn down(&self, bits: usize) -> Interval {
        Interval(&self.0 >> bits, -(-&self.1 >> bits))
    }

    /// All of this and the other.
    fn or(&self, other: &Interval) -> Interval {
        Interval(self.0.clone().min(other.0.clone()), self.1.clone().max(other.1.clone()))
    }

    fn low(&self) -> Interval {
        Interval(self.0.clone(), self.0.clone())
    }

    fn high(&self) -> Interval {
        Interval(self.1.clone(), self.1.clone())
    }

    /// Whether all of it is above all of the other, or its edge.
    fn above(&self, other: &Interval) -> bool {
        self.0 >= other.1
    }

    fn is_within(&self, low: &Interval, high: &Interval) -> bool {
        self.above(low) && high.above(self)
    }

    /// Its ends, to be shown.
    fn shown(&self) -> (f64, f64) {
        let float = |n: &BigInt| i64::try_from(n >> (BITS - 40)).map_or(f64::NAN, |n| n as f64 / (1u64 << 40) as f64);
        (float(&self.0), float(&self.1))
    }

    /// The larger distance of its ends from 0, to be shown.
    fn widest(&self) -> f64 {
        let (low, high) = self.shown();
        low.abs().max(high.abs())
    }
}

/// floor(a / n) for n above 0; division rounds towards 0.
fn floor(a: &BigInt, n: &BigInt) -> BigInt {
    let q = a / n;
    if &q * n > *a {
        q - 1
    } else {
        q
    }
}

impl Add for &Interval {
    type Output = Interval;
    fn add(self, other: &Interval) -> Interval {
        Interval(&self.0 + &other.0, &self.1 + &other.1)
    }
}

impl Sub for &Interval {
    type Output = Interval;
    fn sub(self, other: &Interval) -> Interval {
        Interval(&self.0 - &other.1, &self.1 - &other.0)
    }
}

impl Neg for &Interval {
    type Output = Interval;
    fn neg(self) -> Interval {
        Interval(-&self.1, -&self.0)
    }
}

impl Mul for &Interval {
    type Output = Interval;
    fn mul(self, other: &Interval) -> Interval {
        let ends = [&self.0 * &other.0, &self.0 * &other.1, &self.1 * &other.0, &self.1 * &other.1];
        let low = ends.iter().min().unwrap() >> BITS;
        let high = -(-ends.iter().max().unwrap() >> BITS);
        Interval(low, high)
    }
}

/// ln 2 = 2 artanh(1/3), by terms of one sign.
fn ln_2() -> Interval {
    ln_by_thirds(1, 3)
}

/// 2 artanh(n / d) for n / d up to a third.
fn ln_by_thirds(n: u64, d: u64) -> Interval {
    let (mut sum, mut term) = (int(0), int(2 * n).over(d));
    for k in 0..80u32 {
        sum = &sum + &term.over(2 * k + 1);
        term = (&term * &int(n * n)).over(d * d);
    }
    // All terms left are within the next one over 1 - 1/9, which is less than twice it.
    let rest = &term + &term;
    &sum + &int(0).or(&rest)
}

/// e^-y of an interval between 0 and 1.
fn exp_neg(y: &Interval) -> Interval {
    let at = |y: &Interval| {
        // Alternating, each term smaller than the one before: the sum lies between two that follow each other.
        let mut sum = int(1).or(&int(0));
        for k in (1..60u32).rev() {
            sum = &int(1) - &(y * &sum).over(k);
        }
        sum
    };
    Interval(at(&y.high()).0, at(&y.low()).1)
}

/// The numbers of a constant in a source.
fn constant(source: &str, name: &str) -> Vec<u128> {
    let at = source.find(&format!("const {name}:")).unwrap_or_else(|| panic!("no constant {name}"));
    let body = source[at..].split_once('=').expect("a value").1;
    let body = body.split(';').next().expect("an end");
    let digits = body.split(|c: char| !c.is_ascii_digit() && c != '_').filter(|word| !word.is_empty());
    digits.map(|word| word.replace('_', "").parse().expect("a number")).collect()
}

const WAD_SOURCE: &str = include_str!("../src/wad.rs");

/// The constants of [`exp_neg_wad`].
#[derive(Clone)]
struct Exp {
    zero: u128,
    log2_e: u128,
    ln_2: u128,
    table: Vec<u128>,
    /// From 9 down to 2.
    factorials: Vec<u128>,
}

impl Exp {
    fn of_source() -> Exp {
        let one = |name| constant(WAD_SOURCE, name)[0];
        let mut factorials = vec![one("FACTORIAL_9")];
        factorials.extend(constant(WAD_SOURCE, "FACTORIALS"));
        Exp {
            zero: one("EXP_NEG_ZERO"),
            log2_e: one("LOG2_E"),
            ln_2: one("LN_2"),
            table: constant(WAD_SOURCE, "EXP2_NEG"),
            factorials,
        }
    }

    /// All constants, to change one.
    fn all(&mut self) -> Vec<&mut u128> {
        [&mut self.zero, &mut self.log2_e, &mut self.ln_2]
            .into_iter()
            .chain(&mut self.table)
            .chain(&mut self.factorials)
            .collect()
    }

    /// The steps of [`exp_neg_wad`] that the proof is of, on numbers.
    fn run(&self, x: u128) -> u64 {
        if x >= self.zero {
            return 0;
        }
        let t = x * self.log2_e;
        let (k, f) = (t >> 121, t >> 57 & u128::from(u64::MAX));
        let hi = |a: u128, b: u128| (a * b) >> 64;
        let z = hi(f & ((1 << 60) - 1), self.ln_2);
        let sum = self.factorials[1..].iter().fold(self.factorials[0], |sum, c| c - hi(z, sum));
        let d = z - hi(z, hi(z, sum));
        let one = self.table[(f >> 60) as usize];
        let m = one - hi(one, d);
        let h = hi(m, 8 * u128::from(WAD));
        ((h + (4 << k)) >> (k + 3)) as u64
    }
}

/// Segments of the fraction below one entry of the table; fewer give a wider bound sooner.
const SEGMENTS: u128 = 16;
/// Pieces of the argument of artanh; likewise.
const PIECES: u32 = 64;

/// The number of low bits of which none is refused when it is changed: `refused` says of a bit, and refuses all above one that it does.
fn free_bits(bits: u32, refused: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (0, bits);
    while low < high {
        let mid = (low + high) / 2;
        if refused(mid) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    low
}

/// The error of `floor(a b / 2^64)` against `exact_a exact_b / 2^64`, from those of both factors.
fn product(a: &Interval, error_a: &Interval, b: &Interval, error_b: &Interval) -> Interval {
    // (a + da) (b + db) - a b = a db + (b + db) da, and the floor.
    let sum = &(a * error_b) + &(&(b + error_b) * error_a);
    &sum.down(64) - &dropped()
}

/// The bounds proven of [`exp_neg_wad`], in units of 1e-18.
struct Proven {
    /// Computed less true value.
    error: Interval,
    /// The error of m, in units of 2^-64.
    of_m: Interval,
}

/// Encloses the error of [`exp_neg_wad`] over every x; `None` if a step could leave its type.
fn prove_exp(c: &Exp, segments: u128) -> Option<Proven> {
    let ln_2 = ln_2();
    let whole = power(64);
    // All of the product's 128 bits are there.
    if big(c.zero) * c.log2_e >= big(1) << 128 || c.log2_e >= 1 << 62 || c.table.len() != 16 || c.factorials.len() != 8 {
        return None;
    }
    // t = x LOG2_E / 2^121 stands for x log2(e) / 1e18: e^-x = 2^-t e^(x off), where x is in wads and `off` a constant.
    let off = &(&int(c.log2_e) * &ln_2).down(121) - &int(1).over(WAD);
    let factorial = |n: usize| whole.over((1..=n as u64).product::<u64>());
    let mut proven: Option<Proven> = None;
    let last = (big(c.zero - 1) * c.log2_e) >> 57;
    for i in 0..16u128 {
        // The entry and what it stands for.
        let entry = &whole * &exp_neg(&(&ln_2 * &int(i)).over(16));
        let error_entry = &int(c.table[i as usize]) - &entry;
        for segment in 0..segments {
            let width = (1u128 << 60) / segments;
            let first = segment * width;
            // The fraction as it is, g, and as it would be with the bits that were dropped.
            let g = between(first, width - 1);
            let exact_z = &between(first, width) * &ln_2;
            let error_z = &(&(&g * &(&int(c.ln_2).down(64) - &ln_2)) - &(&dropped() * &ln_2)) - &dropped();
            // 1/9! - z/10! + ..., exactly, is between 1/9! - z/10! and 1/9!.
            let mut exact = Interval((&factorial(9) - &(&exact_z * &factorial(10)).down(64)).0, factorial(9).1);
            let mut error = &int(c.factorials[0]) - &exact;
            for (n, &coefficient) in (2..9).rev().zip(&c.factorials[1..]) {
                let step = product(&exact_z, &error_z, &exact, &error);
                error = &(&int(coefficient) - &factorial(n)) - &step;
                exact = &factorial(n) - &(&exact_z * &exact).down(64);
                if !(&exact + &error).is_within(&int(0), &whole) {
                    return None;
                }
            }
            // d = 1 - e^-z = z - z^2 (1/2! - z/3! + ...).
            let error_once = product(&exact_z, &error_z, &exact, &error);
            let once = (&exact_z * &exact).down(64);
            let error_d = &error_z - &product(&exact_z, &error_z, &once, &error_once);
            let exact_d = &exact_z - &(&exact_z * &once).down(64);
            // m = entry (1 - d): what is left of the entry's error is (1 - d) of it.
            let left = &whole - &(&exact_d + &error_d);
            let error_m = &(&(&error_entry * &left).down(64) - &(&entry * &error_d).down(64)) + &dropped();
            let exact_m = (&entry * &(&whole - &exact_d)).down(64);
            // Neither difference can leave its type: the upper half of a product with another u64 is not above the first.
            for k in 0..64usize {
                let from: BigInt = ((big(k) << 64) + (i << 60)) + first;
                if from > last {
                    break;
                }
                // 8e18 and what is added to round stay below 2^64.
                if k > 60 {
                    return None;
                }
                // One floor of a floor: the result is floor(1e18 m / 2^64 / 2^k + 1/2).
                let rounding = Interval(big(-1) << (BITS - 1), big(1) << (BITS - 1));
                let of_m = (&error_m * &int(WAD)).down(64 + k);
                let x = (&Interval(from.clone() << BITS, (from + width) << BITS) * &power(57)).over(c.log2_e);
                // e^y - 1 is between y and y + y^2, for y between -1 and 1.
                let y = &x * &off;
                let true_m = (&exact_m * &int(WAD)).down(64 + k);
                let of_off = &true_m * &(&y + &int(0).or(&(&y * &y)));
                let error = &(&rounding + &of_m) - &of_off;
                proven = Some(match proven {
                    None => Proven { error, of_m: error_m.clone() },
                    Some(all) => Proven { error: all.error.or(&error), of_m: all.of_m.or(&error_m) },
                });
            }
        }
    }
    // From there on 0 stands for what is above 0, and at most this.
    let end = &int(c.zero).over(WAD) - &int(42);
    let mut least = exp_neg(&end);
    for _ in 0..42 {
        least = &least * &exp_neg(&int(1));
    }
    let error = -&(&int(0).or(&least) * &int(WAD));
    proven.map(|all| Proven { error: all.error.or(&error), of_m: all.of_m })
}

/// Eight tenths.
fn tenths(n: i64) -> Interval {
    int(n).over(10)
}

fn holds(proven: Option<&Proven>) -> bool {
    proven.is_some_and(|all| all.error.is_within(&tenths(-8), &tenths(8)))
}

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Prints a proven bound, for docs/generated/proof.md.
fn say(function: &str, domain: &str, stated: &str, found: &str) {
    println!("proof interval: function = {function}; domain = {domain}; stated = {stated}; found = {found}");
}

/// A number of any length up to so many bits.
fn any_length(random: &mut ChaCha8Rng, bits: u32) -> u128 {
    let x = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
    x.checked_shr(128 - random.next_u32() % (bits + 1)).unwrap_or(0)
}

#[test]
fn exp_is_within_eight_tenths_of_a_unit_everywhere() {
    let c = Exp::of_source();
    let proven = prove_exp(&c, SEGMENTS);
    assert!(holds(proven.as_ref()), "{:?}", proven.map(|all| all.error.shown()));
    let proven = proven.unwrap();
    let (low, high) = proven.error.shown();
    say("exp_neg_wad", "every x", "0.8", &format!("{low:.3} to {high:.3}"));

    // The proof is of these steps, and they are the source's.
    let mut random = rng(1);
    let seams = (0..=61 * 16u128).map(|i| i * 693_147_180_559_945_309_417 / 16_000);
    let points = seams.flat_map(|x| (0..9).map(move |near| (x + near).saturating_sub(4)));
    let points = points.chain((0..100_000).map(|_| any_length(&mut random, 66))).chain([c.zero - 1, c.zero, 1 << 66, u128::MAX]);
    let mut half = 0;
    for (n, x) in points.enumerate() {
        assert_eq!(c.run(x), exp_neg_wad(x), "{x}");
        if x < u128::from(WAD) && n % 50 == 0 {
            let error = &int(exp_neg_wad(x)) - &(&exp_neg(&int(x).over(WAD)) * &int(WAD));
            half += usize::from(error.above(&tenths(4)) || (-&error).above(&tenths(4)));
            assert!(error.is_within(&proven.error.low(), &proven.error.high()), "{x}");
        }
    }
    assert!(half > 0, "half of the bound holds where it was tried");
}

/// How far [`exp_neg_wad`] falls in a step of one in x before it is rounded, and how far the errors of two neighbours can differ.
fn fall_of_exp() -> (Interval, Interval) {
    let c = Exp::of_source();
    let proven = prove_exp(&c, SEGMENTS).expect("a bound");
    // 1 - e^-y is at least y - y^2 / 2; 2^-t is at least a half of what the exponent says.
    let y = (&int(c.log2_e) * &ln_2()).down(121);
    let fall = &power(63) * &(&y - &(&y * &y).down(1));
    let (zero, of_m) = (int(0), &proven.of_m);
    (fall, &of_m.or(&zero).high() - &of_m.or(&zero).low())
}

/// A step of one in x lets 2^-t fall by more than the errors of two neighbours can differ. The result is a floor of a value that then does not
/// rise, also where the exponent goes on by one: there the second's error is halved.
#[test]
fn exp_never_rises_anywhere() {
    let (fall, spread) = fall_of_exp();
    assert!(fall.above(&spread), "{:?} {:?}", fall.shown(), spread.shown());
    say(
        "exp_neg_wad never rises",
        "every x",
        "errors spread less than a step",
        &format!("{:.2} of {:.2}", spread.shown().1, fall.shown().0),
    );
}

/// Every constant matters: with its top bits changed, or a few of its low ones, no bound is proven. How many low bits matter depends on what they are
/// multiplied by.
#[test]
fn a_changed_constant_of_exp_is_refused() {
    let refused = |which: usize, bit: u32| {
        let mut changed = Exp::of_source();
        *changed.all()[which] ^= 1 << bit;
        !holds(prove_exp(&changed, 1).as_ref())
    };
    let free: Vec<u32> = (0..Exp::of_source().all().len()).map(|which| free_bits(64, |bit| refused(which, bit))).collect();
    println!("low bits whose change leaves the bound below 0.8, by constant: {free:?}");
    assert_eq!(free.len(), 27);
    // Of the table's entries and of those of the reduction, a few units; of the series' terms, what its powers leave, but never all.
    assert!(free[1] < 6 && free[2] < 8 && free[3..19].iter().all(|&bits| bits < 4), "{free:?}");
    let terms = Exp::of_source().factorials;
    assert!(free[19..].iter().zip(&terms).all(|(&bits, term)| bits < 128 - term.leading_zeros()), "{free:?}");
}

/// The error of [`recover`], in units of 1e-18.
fn error_of_recover() -> Interval {
    let proven = prove_exp(&Exp::of_source(), SEGMENTS).expect("a bound");
    // The exponent is a floor of a wad: e^-x is then up to one unit above that of the exact exponent.
    let exp = &proven.error + &dropped();
    // 1 - a e^-x by a floor of the product, with a between 0 and 1.
    &-&(&dropped() * &exp) + &dropped()
}

#[test]
fn recovery_is_within_its_bound_everywhere() {
    let error = error_of_recover();
    let bound = int(18).over(10);
    assert!(error.is_within(&-&bound, &bound), "{:?}", error.shown());
    // The exponent fits its type.
    assert!(u64::MAX as u128 * (WAD as u128) < u128::MAX);
    let (low, high) = error.shown();
    say("recover", "every h, elapsed, tau", "1.8", &format!("{low:.3} to {high:.3}"));
    // Half of it does not hold.
    let mut random = rng(2);
    let half = (0..2_000).any(|_| {
        let (h, elapsed) = (random.next_u64() % WAD, random.next_u64() % 1_800);
        let exact = &int(WAD) - &(&int(WAD - h) * &exp_neg(&int(elapsed).over(1_800)));
        let error = &int(recover(h, elapsed, 1_800)) - &exact;
        error.above(&tenths(9)) || (-&error).above(&tenths(9))
    });
    assert!(half, "half of the bound holds where it was tried");
}

/// The constants of [`neg_ln_wad`].
#[derive(Clone)]
struct Ln {
    ln_2: u128,
    ln_wad: u128,
    sqrt_half: u128,
    reciprocals: Vec<u128>,
}

impl Ln {
    fn of_source() -> Ln {
        let one = |name| constant(WAD_SOURCE, name)[0];
        Ln {
            ln_2: one("LN_2_Q121"),
            ln_wad: one("LN_WAD_Q121"),
            sqrt_half: one("SQRT_HALF"),
            reciprocals: constant(WAD_SOURCE, "ODD_RECIPROCALS"),
        }
    }

    fn run(&self, x: u64) -> u128 {
        let x = u128::from(x.min(WAD));
        let e = 128 - x.leading_zeros();
        let m = x << (64 - e);
        let hi = |a: u128, b: u128| (a * b) >> 64;
        let artanh = |s: u128| {
            let w = hi(s, s);
            let sum = self.reciprocals.iter().fold(0, |sum, c| c + hi(w, sum));
            s + hi(s, hi(w, sum))
        };
        let wide = |n: u128, d: u128| u128::try_from((big(n) << 64) / d).unwrap();
        let minus_ln = if m >= self.sqrt_half {
            let n = (1 << 64) - m;
            (self.ln_wad + (artanh(wide(n, m + (1 << 64))) << 58)).saturating_sub(u128::from(e) * self.ln_2)
        } else {
            let n = 2 * m - (1 << 64);
            self.ln_wad.saturating_sub(u128::from(e - 1) * self.ln_2 + (artanh(wide(n, 2 * m + (1 << 64))) << 58))
        };
        let q = minus_ln >> 57;
        (q >> 64) * u128::from(WAD) + hi(q & u128::from(u64::MAX), u128::from(WAD))
    }
}

/// The error of artanh, in units of 2^-64, for s up to `most` / 2^64, of which the argument can be up to one unit too small.
fn prove_artanh(c: &Ln, most: &BigInt, pieces: u32) -> Option<Interval> {
    let whole = power(64);
    let odd = |k: u32| whole.over(2 * k + 1);
    let mut all: Option<Interval> = None;
    for piece in 0..pieces {
        let (from, to) = (most * piece / pieces, most * (piece + 1) / pieces + 1);
        let exact_s = Interval(from << BITS, to << BITS);
        let error_s = -&dropped();
        let exact_w = (&exact_s * &exact_s).down(64);
        let error_w = product(&exact_s, &error_s, &exact_s, &error_s);
        // 1/25 + w/27 + w^2/29 + ... is between its first term and that over 1 - w; w is below a half.
        let mut exact = odd(12).or(&(&odd(12) + &(&exact_w * &odd(12)).down(63)));
        let mut error = &int(c.reciprocals[0]) - &exact;
        for (k, &coefficient) in (1..12).rev().zip(&c.reciprocals[1..]) {
            error = &(&int(coefficient) - &odd(k)) + &product(&exact_w, &error_w, &exact, &error);
            exact = &odd(k) + &(&exact_w * &exact).down(64);
            if !(&exact + &error).is_within(&int(0), &whole) {
                return None;
            }
        }
        let error_once = product(&exact_w, &error_w, &exact, &error);
        let once = (&exact_w * &exact).down(64);
        let found = &error_s + &product(&exact_s, &error_s, &once, &error_once);
        all = Some(all.map_or(found.clone(), |all| all.or(&found)));
    }
    all
}

/// The error of [`neg_ln_wad`], in units of 1e-18, over all that it takes.
fn prove_ln(c: &Ln, pieces: u32) -> Option<Interval> {
    if c.reciprocals.len() != 12 || c.sqrt_half >> 63 != 1 {
        return None;
    }
    // The largest argument of artanh on both sides of the cut.
    let (one, cut) = (big(1) << 64, big(c.sqrt_half));
    let left = ((&one - &cut) << 64) / (&one + &cut) + 1;
    let right = ((&cut * 2 - &one) << 64) / (&cut * 2 + &one) + 1;
    let (left, right) = (prove_artanh(c, &left, pieces)?, prove_artanh(c, &right, pieces)?);
    let ln_2 = ln_2();
    // ln 1e18 = 18 (3 ln 2 + ln 1.25), and 1.25 = (1 + 1/9) / (1 - 1/9).
    let ln_wad = &(&(&ln_2 * &int(3)) + &ln_by_thirds(1, 9)) * &int(18);
    let scale = power(121);
    let (error_2, error_wad) = (&int(c.ln_2) - &(&ln_2 * &scale), &int(c.ln_wad) - &(&ln_wad * &scale));
    // Of e: 1 to 60, for x is at most 1e18. All sums stay below 2^128. A sum below 0 becomes 0, and the true value is not below it.
    if big(c.ln_wad) + (big(1) << 122) >= big(1) << 128 || big(c.ln_2) * 60 + (big(1) << 122) >= big(1) << 128 {
        return None;
    }
    let powers = &between(0, 60) * &error_2;
    let of = |artanh: &Interval| &(&error_wad - &powers) + &(artanh * &power(58));
    let error = of(&left).or(&of(&-&right));
    // To units of 1e-18, less two floors.
    Some(&(&(&error * &int(WAD)).down(121) - &(&dropped() * &int(WAD)).down(64)) - &dropped())
}

#[test]
fn ln_is_within_three_units_everywhere() {
    let c = Ln::of_source();
    let bound = int(3);
    let error = prove_ln(&c, PIECES).expect("a bound");
    assert!(error.is_within(&-&bound, &bound), "{:?}", error.shown());
    let (low, high) = error.shown();
    say("neg_ln_wad", "0 < x <= 1e18", "3", &format!("{low:.3} to {high:.3}"));
    let mut random = rng(3);
    for x in (1..1_000)
        .chain((0..60).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]))
        .chain((0..50_000).map(|_| any_length(&mut random, 64) as u64))
    {
        assert_eq!(neg_ln_wad(x), (x > 0).then(|| c.run(x)), "{x}");
    }
}

/// As of the exponential. The last terms of the series have factors so small that no bit of them matters to this bound. The cut can move,
/// as long as its bit of 2^63 is set.
#[test]
fn a_changed_constant_of_ln_is_refused() {
    let bound = int(3);
    let mut free = Vec::new();
    for which in 0..15 {
        let changed = |bit: u32| {
            let mut changed = Ln::of_source();
            let first = [&mut changed.ln_2, &mut changed.ln_wad, &mut changed.sqrt_half];
            *first.into_iter().chain(&mut changed.reciprocals).nth(which).unwrap() ^= 1 << bit;
            changed
        };
        let refused = |bit: u32| prove_ln(&changed(bit), 8).is_none_or(|error| !error.is_within(&-&bound, &bound));
        let bits = if which < 2 { 126 } else { 64 };
        free.push(free_bits(bits, refused));
    }
    println!("low bits whose change leaves the bound below 3, by constant: {free:?}");
    // In units of 2^-121, of which 2^61 are one of 1e-18.
    assert!(free[0] < 60 && free[1] < 64 && free[2] < 64 && free[14] < 14 && free[13] < 19, "{free:?}");
}

/// Every 32-bit number that the first root is taken of, by pieces on which all steps of its iteration are the same.
#[test]
fn the_first_root_is_exact_for_each_of_three_billion_numbers() {
    let mut pieces = vec![(1u64 << 16, 1u64 << 30, (1u64 << 32) - 1)];
    let (mut ended, mut covered) = (0, 0);
    while let Some((s, low, high)) = pieces.pop() {
        let mut from = low;
        while from <= high {
            let next = (s + from / s) >> 1;
            // Up to there the next one is the same.
            let to = if next >= s { high } else { high.min((2 * next + 2 - s) * s - 1) };
            if next >= s {
                // From there on it is not smaller either: the iteration ends with s.
                assert!(s * s <= from && to <= s * s + 2 * s, "{s}: {from} to {to}");
                ended += 1;
                covered += to - from + 1;
            } else {
                pieces.push((next, from, to));
            }
            from = to + 1;
        }
    }
    assert_eq!(covered, 3 << 30);
    say("the root within sqrt_u128", "2^30 <= x < 2^32", "exact", &format!("exact in {ended} pieces"));
}

/// A step of the square root, from that of the upper half: `x = (s B + q)^2 + u B + x0 - q^2`, and bounds of u, q and x0 decide the rest. The
/// identity is one of polynomials of degree two at most in each variable: it holds, for it does on four values of each.
#[test]
fn a_step_of_the_square_root_is_exact() {
    let four = [0i128, 1, 2, 5];
    for s in four {
        for q in four {
            for u in four {
                for x0 in four {
                    for b in four {
                        // r B + x1 = 2 s q + u, and x = s^2 B^2 + (r B + x1) B + x0.
                        let x = s * s * b * b + (2 * s * q + u) * b + x0;
                        assert_eq!(x, (s * b + q).pow(2) + u * b + x0 - q * q);
                    }
                }
            }
        }
    }
    for bits in [16u32, 32] {
        let b = big(1) << bits;
        // s is the root of a number whose topmost two bits are not both 0. The bounds grow with s, or do not change: both ends are enough.
        for s in [&b / 2, &b - 1] {
            // r is at most 2 s, so q = (r B + x1) / 2 s is at most B.
            let q: BigInt = ((&s * 2) * &b + &b - 1) / (&s * 2);
            assert!(q <= b);
            // Without a remainder below 0: u B + x0 <= 2 (s B + q), the next square is above.
            assert!((&s * 2 - 1) * &b + &b - 1 <= &s * 2 * &b);
            // With one: the square of one less is not above, for q^2 <= 2 (s B + q) - 1 where q is above 0.
            assert!(&b * &b < &s * 2 * &b + 2u32);
            // Shifted values stay within 64 bits: r - s, and twice s.
            assert!((&s << 32) < big(1) << 64 && &s * 2 <= big(1) << 33);
        }
    }
    let mut random = rng(7);
    for bits in (1..=128).flat_map(|bits| std::iter::repeat_n(bits, 1_000)) {
        let x = any_length(&mut random, bits);
        // Squares and their neighbours are where a floor could be off by one.
        let square = x.isqrt().pow(2);
        for x in [x, square, square.saturating_sub(1), u128::MAX - x] {
            assert_eq!(u128::from(sqrt_u128(x)), x.isqrt(), "{x}");
        }
    }
    say("sqrt_u128, sqrt_ratio_wad", "every x and every ratio", "exact floor", "exact");
}

/// A product's digits: no sum leaves its type, and the digits make up the product, as polynomials.
#[test]
fn a_wide_product_is_exact() {
    for bits in [32u32, 64] {
        let most = (big(1) << bits) - 1;
        let square = &most * &most;
        assert!(&square + &most * 2u32 < big(1) << (2 * bits), "a product, and two digits that are carried");
    }
    let three = [0i128, 1, 3];
    for n in 0..3usize.pow(8) {
        let [a1, a0, b1, b0, l1, m1, p1, b] = std::array::from_fn(|i| three[n / 3usize.pow(i as u32) % 3]);
        let l0 = a0 * b0 - l1 * b;
        let m0 = a1 * b0 + l1 - m1 * b;
        let p0 = a0 * b1 + m0 - p1 * b;
        assert_eq!((a1 * b1 + m1 + p1) * b * b + p0 * b + l0, (a1 * b + a0) * (b1 * b + b0));
    }
    say("mul_wide", "every pair", "exact", "exact");
}

/// A digit of a quotient: the guess from the divisor's upper half is never too small, at most two too large, and no step leaves its type.
#[test]
fn a_digit_of_a_quotient_is_exact() {
    for bits in [32u32, 64] {
        let b = big(1) << bits;
        // The guess grows as the dividend does, and the dividend is below the divisor; it falls as the divisor's upper half grows.
        for upper in [&b / 2, &b - 1] {
            for lower in [big(0), &b - 1] {
                let d: BigInt = &upper * &b + &lower;
                let guess: BigInt = (&d - 1) / &upper;
                assert!(guess <= &b + 1);
                assert!(&guess * &lower < &b * &b, "the product that is compared stays within two digits");
                // Two corrections take it to what the whole divisor allows: q upper <= hi, and 2 d >= q lower.
                assert!(&d * 2 >= &guess * &lower, "more than two too large");
            }
        }
    }
    // The correction goes on while the remainder, as polynomials hi B + next - q d = (hi - q d1) B + next - q d0, is below 0.
    let three = [0i128, 1, 3];
    for n in 0..3usize.pow(6) {
        let [hi, next, q, d1, d0, b] = std::array::from_fn(|i| three[n / 3usize.pow(i as u32) % 3]);
        assert_eq!(hi * b + next - q * (d1 * b + d0), (hi - q * d1) * b + next - q * d0);
    }
    // The same digits on the source, where guesses are as wrong as can be.
    let mut random = rng(4);
    for _ in 0..100_000 {
        let edge = |random: &mut ChaCha8Rng| {
            let near = u128::from(random.next_u32() % 5);
            let bit = [31, 32, 63, 64, 95, 96, 127][random.next_u32() as usize % 7];
            (1u128 << bit).wrapping_add(near).wrapping_sub(2)
        };
        let (a, b, d) = (edge(&mut random), edge(&mut random), edge(&mut random));
        let product = big(a) * b;
        let up: BigInt = (&product + (d - 1)) / d;
        assert_eq!(mul_div(a, b, d), u128::try_from(product / d).ok(), "{a} {b} / {d}");
        assert_eq!(mul_div_up(a, b, d), u128::try_from(up).ok(), "{a} {b} / {d}");
    }
    say("mul_div, mul_div_up, mul_div_u64, mul_wad, div_wad", "all that is not refused", "exact floor or ceiling", "exact");
}

#[test]
fn weights_are_less_than_one_unit_and_m_too_low_everywhere() {
    // No step leaves its type: a boost's numerator at the most models there can be, and S + QoS.
    assert!(10 * TASK_MODELS as u128 * u128::from(WAD / 10) + u128::from(WAD) <= u128::from(u64::MAX));
    assert!(2 * u128::from(WAD) <= u128::from(u64::MAX));
    let total = TASK_MODELS as u32;
    assert_eq!((locality_boost(0, 0, total), locality_boost(total, total, total)), (WAD, 2 * WAD));
    for total in 1..=total {
        for local in 0..=total {
            for in_use in 0..=local {
                let exact = u128::from(10 * total + 7 * local + 3 * in_use) * u128::from(WAD) / u128::from(10 * total);
                assert_eq!(u128::from(locality_boost(local, in_use, total)), exact);
            }
        }
    }
    // M in pieces: the harmonic is a floor, and so is its product with M; no product saturates, for the harmonic is at most a half.
    let mut found = int(0);
    for piece in 0..64u32 {
        let m = Interval(
            (power(0).over(64u32).0 * piece) + (big(1) << BITS),
            (power(0).over(64u32).1 * (piece + 1)) + (big(1) << BITS),
        );
        let short = &(&dropped() * &m) + &dropped();
        assert!((&int(1) + &m.high()).above(&short), "{:?}", short.shown());
        found = found.or(&short);
    }
    assert!(int(3).above(&found));
    say("weight", "S and QoS up to 1, M from 1 to 2", "-(1 + M) to 0", "more than -(1 + M), at most 0");
    let half = |m: u64, s: u64, qos: u64| {
        let exact = &(&int(s) * &int(qos)) * &int(m);
        exact.over(s + qos).over(WAD).above(&(&int(weight(m, s, qos)) + &int(15).over(10)))
    };
    let mut random = rng(5);
    assert!(
        (0..100_000).any(|_| half(2 * WAD - random.next_u64() % 9, random.next_u64() % WAD, random.next_u64() % WAD)),
        "half of the bound"
    );
    assert_eq!((harmonic(0, 0), harmonic(WAD, WAD)), (0, WAD / 2));
}

/// One millionth is 1e12 units exactly. A penalty is then the floor that [`mul_wad`] is proven to be. A boost is a sum, and from the `h` that has
/// just room for it, one: two straight pieces, which their ends decide.
#[test]
fn penalties_are_exact_floors_and_boosts_are_exact_for_each_parameter() {
    let mut random = rng(8);
    for ppm in 0..=PPM as u32 {
        let wads = qos::ppm(ppm);
        assert_eq!(u128::from(wads) * u128::from(PPM), u128::from(ppm) * u128::from(WAD));
        let room = WAD - wads;
        let (low, high) = (random.next_u64() % (room + 1), room + random.next_u64() % (wads + 1));
        assert_eq!([0, low, room].map(|h| boost(h, ppm)), [wads, low + wads, WAD], "{ppm}");
        assert_eq!([(room + 1).min(WAD), high, WAD].map(|h| boost(h, ppm)), [WAD; 3], "{ppm}");
        assert_eq!([0, 1, WAD].map(|h| penalise(h, ppm)), [0, u64::from(ppm) / PPM, wads], "{ppm}");
        // A step in h adds one at most. So each value has a least h, and the h before it has the value before.
        if ppm > 0 {
            let value = 1 + random.next_u64() % wads;
            let least = (u128::from(value) * u128::from(PPM)).div_ceil(ppm.into()) as u64;
            assert_eq!([least, least - 1].map(|h| penalise(h, ppm)), [value, value - 1], "{ppm}");
        }
    }
    // Neither sum nor product leaves its type.
    assert!(2 * u128::from(WAD) <= u64::MAX.into());
    say("penalise", "every h, penalties up to 1", "exact floor", "exact, for each penalty");
    say("boost", "h and boosts up to 1", "exact", "exact, for each boost");
}

/// Bisection finds the first second of a condition that stays once it holds, and holds at the end. From there, the true time is as close as the
/// error of [`recover`] lets it be.
#[test]
fn exclusions_end_on_the_first_second_of_eligibility_everywhere() {
    // H never falls: the exponent's floor does not, e^-x never rises from 1, and a product's floor grows with its factors.
    let (fall, spread) = fall_of_exp();
    assert!(fall.above(&spread) && exp_neg_wad(0) == WAD);
    // After 42 tau the exponent is 42 exactly. The product with a unit is one unit at most, and no threshold below 1 is so close to 1.
    assert_eq!((exp_neg_wad(42 * u128::from(WAD)), mul_wad(WAD, 1)), (1, 1));
    assert!(eligible(WAD - 1, PPM as u32 - 1));
    // Before `low` no second is enough, and at `high` it is. A step keeps both, and brings the two closer. Their sum fits its type.
    assert!(2 * (42 * u128::from(u32::MAX) + 1) <= u64::MAX.into());
    say("exclusion_seconds", "every h and tau, thresholds below 1", "the fewest by `recover`", "the fewest, since H never falls");

    // From the threshold to 1 it is a tenth at least. An error that is y of that moves the true time by ln(1 + y) tau, or by -ln(1 - y) tau. The
    // first is y tau at most, the second (y + y^2) tau, for y up to a half.
    let error = error_of_recover();
    let week = 604_800u32;
    let part = |units: &Interval| units.over(WAD / 10);
    let (early, late) = (part(&error.high()), part(&-&error.low()));
    let late = &late + &(&late * &late);
    assert!(int(1).down(1).above(&late));
    let trillionths = &int(big(10).pow(12)) * &int(week);
    let (early, late) = (&early * &trillionths, &late * &trillionths);
    assert!(int(11).above(&early) && int(11).above(&late), "{:?} {:?}", early.shown(), late.shown());
    say(
        "exclusion_seconds, less the true time",
        "thresholds up to 0.9, tau up to a week",
        "-1.1e-11 s to 1 s and 1.1e-11 s",
        &format!("-{:.2}e-12 s to 1 s and {:.2}e-12 s", early.widest(), late.widest()),
    );

    let mut random = rng(9);
    let mut below = |end: u64| random.next_u64() % end;
    for n in 0..4_000 {
        let ppm = [1, 100_000, 900_000, PPM - 1, 1 + below(PPM - 1)][n % 5] as u32;
        let threshold = qos::ppm(ppm);
        let tau = [1, 2, 1_800, week, u32::MAX, 1 + below(100) as u32, 1 + below(week.into()) as u32][n % 7];
        let h = [0, threshold - 1, threshold, WAD, below(threshold)][n % 11 % 5];
        let seconds = exclusion_seconds(h, ppm, tau);
        assert!(eligible(recover(h, seconds, tau), ppm), "{h} {ppm} {tau}");
        assert!(seconds == 0 || !eligible(recover(h, seconds - 1, tau), ppm), "{h} {ppm} {tau}");
        assert!(seconds <= 42 * u64::from(tau) && (seconds == 0) == (h >= threshold));
        // (1 - h) e^-y, with y up to 4.
        let missing = |seconds: u64| {
            let quarter = exp_neg(&int(seconds).over(4 * u64::from(tau)));
            let half = &quarter * &quarter;
            &(&half * &half) * &int(WAD - h)
        };
        if ppm <= 900_000 && seconds > 0 && n % 4 == 0 {
            for at in [seconds - 1, seconds] {
                let found = &int(recover(h, at, tau)) - &(&int(WAD) - &missing(at));
                assert!(found.is_within(&error.low(), &error.high()), "{h} {at} {tau}");
            }
        }
    }
    assert_eq!(exclusion_seconds(0, 900_000, 0), 0);
}

/// Both terms are the floor that [`mul_div`] is proven to be, of a weight and a share of at most one: no term is above its weight, and no sum above
/// one.
#[test]
fn gains_are_less_than_two_units_low_everywhere() {
    let short = &dropped() + &dropped();
    assert!(int(2).above(&short));
    say("gain", "every tally and alpha", "-2 to 0", "more than -2, at most 0");
    let mut one_low = 0;
    let mut check = |tally: Tally, alpha: u64| {
        let Tally { successes, groups, capacity } = tally;
        let weight = alpha.min(WAD);
        // Nothing is a share of 0.
        let [(n, of_n), (m, of_m)] =
            [(weight, capacity), (WAD - weight, groups)].map(|(weight, of)| (big(weight) * successes.min(of), big(of.max(1))));
        let exact = n * &of_m + m * &of_n;
        let whole = of_n * of_m;
        let short = exact - gain(tally, alpha) * &whole;
        // With one term alone, it is the exact floor.
        let most = if weight == 0 || weight == WAD { whole.clone() } else { &whole * 2 };
        assert!(short >= big(0) && short < most, "{tally:?} {alpha}");
        one_low += u32::from(short >= whole);
    };
    let weights = [0, 1, WAD / 3, WAD / 2, WAD - 1, WAD, WAD + 1, u64::MAX];
    for n in 0..10u64.pow(3) {
        let [successes, groups, capacity] = [n % 10, n / 10 % 10, n / 100];
        weights.iter().for_each(|&alpha| check(Tally { successes, groups, capacity }, alpha));
    }
    let mut random = rng(10);
    for _ in 0..20_000 {
        let [successes, groups, capacity, alpha] = std::array::from_fn(|_| any_length(&mut random, 64) as u64);
        check(Tally { successes, groups, capacity }, alpha);
    }
    assert!(one_low > 0, "half of the bound");
}

/// A mean of three is 2 a + b + floor((2 i + j) / 3), if `former` is 3 a + i and `best` is 3 b + j. So all remainders decide, at two values of a and
/// b. Means of two, and of one, are alike.
#[test]
fn means_of_targets_are_exact_floors_and_less_than_two_low_in_a_row() {
    for before in 0..=u8::MAX {
        let count = u64::from(before.min(TARGETS_MEANT - 1)) + 1;
        let ends = |i: u64| [i, WAD / count * count - count + i, (WAD / count * count + i).min(WAD)];
        let wads: Vec<u64> = (0..count).flat_map(ends).chain([WAD - 1, WAD, WAD + 1, u64::MAX]).collect();
        for &former in &wads {
            for &best in &wads {
                let sum = u128::from(former.min(WAD)) * u128::from(count - 1) + u128::from(best.min(WAD));
                let over = sum - u128::from(mean_target(former, before, best)) * u128::from(count);
                assert!(over < count.into(), "{former} {before} {best}");
            }
        }
    }
    assert!(3 * u128::from(WAD) <= u64::MAX.into());
    say("mean_target", "every former, before and best", "exact floor", "exact, by remainders");

    // A mean keeps two thirds of the former one's shortfall, and its floor drops up to two thirds. The first two means are less low.
    let two = int(2);
    let low = &(&int(0).or(&two) * &int(2)).over(3) + &int(0).or(&two).over(3);
    assert!(low.is_within(&int(0), &(&two + &two.down(100))), "{:?}", low.shown());
    say("mean_target, one from another", "every row of targets", "-2 to 0", "more than -2, at most 0");
    let mut random = rng(11);
    let mut found = int(0);
    for _ in 0..2_000 {
        let (mut mean, mut exact) = (0, int(0));
        for before in 0..9u8 {
            let best = random.next_u64() % (WAD + 1);
            let count = u64::from(before.min(2)) + 1;
            exact = (&(&exact * &int(count - 1)) + &int(best)).over(count);
            mean = mean_target(mean, before, best);
            let low = &exact - &int(mean);
            assert!(low.is_within(&-&int(1).down(100), &two), "{:?}", low.shown());
            found = found.or(&low);
        }
    }
    assert!(!int(1).above(&found), "half of the bound");
}

/// fee / (1 + 2 r) is fee 1e4 / (1e4 + 2 bps), the floor of one division. A part of a fee of 1e4 a + i is bps a + floor(bps i / 1e4).
#[test]
fn payments_and_parts_of_fees_are_exact_floors_at_each_rate() {
    // No product leaves its type, for a is multiplied by no more than it was divided by.
    let most = (1u128 << 100) - 1;
    assert!(big(most) * 10_000 < big(1) << 128);
    let mut random = rng(12);
    for bps in 0..=u16::MAX {
        let whole = 10_000 + 2 * u128::from(bps);
        let paid = payment(most, bps);
        let over = big(most) * 10_000 - big(paid) * whole;
        assert!(over >= big(0) && over < big(whole), "{bps}");
        // A step in the fee adds one at most. So each payment has a least fee, and the fee before it has the payment before.
        let value = 1 + any_length(&mut random, 100) % paid;
        let least = (value * whole).div_ceil(10_000);
        assert_eq!([least, least - 1].map(|fee| payment(fee, bps)), [value, value - 1], "{bps}");
        if bps > 10_000 {
            continue;
        }
        // Validation spends r (3 / (1 + 2 r) - 1) fees, and (1 - r) (1 - 1 / (1 + 2 r)) are left over: both times 1e4 (1 + 2 r).
        let bps_wide = u128::from(bps);
        assert_eq!(bps_wide * (30_000 - whole), (10_000 - bps_wide) * (whole - 10_000));
        // Where the floor steps.
        let value = 1 + u128::from(random.next_u32()) % bps_wide.max(1);
        let step = (value * 10_000).div_ceil(bps_wide.max(1));
        for i in [0, step - 1, step, 9_999] {
            for a in [0, 1, (u128::MAX - i) / 10_000] {
                let fee = a * 10_000 + i;
                assert_eq!(Some(share_bps(fee, bps)), mul_div(fee, bps_wide, 10_000), "{fee} {bps}");
            }
        }
    }
    say("payment", "fees below 2^100, every rate", "exact floor", "exact, for each rate");
    say("share_bps", "every fee, shares up to 1", "exact floor", "exact, for each share");
}

/// A share of a pot of a sum + r is score a + floor(score r / sum). So all remainders r decide, at two values of a, for each row of scores. A third
/// one is the last that fits its type.
#[test]
fn shares_are_exact_floors_and_the_last_is_at_most_two_above_its_own() {
    let each: Vec<Option<u8>> = std::iter::once(None).chain((0..=Q_MAX as u8).map(Some)).collect();
    let (mut rows, mut highest) = (0, 0);
    for n in 0..each.len().pow(MEMBERS as u32) {
        let scores: [Option<u8>; MEMBERS] = std::array::from_fn(|i| each[n / each.len().pow(i as u32) % each.len()]);
        let of = |i: usize| u128::from(scores[i].unwrap_or(0));
        let sum: u128 = (0..MEMBERS).map(of).sum();
        rows += 1;
        let Some(last) = (0..MEMBERS).rfind(|&i| of(i) > 0) else {
            assert_eq!([0, 1, u128::MAX].map(|pot| shares(pot, &scores)), [[0; MEMBERS]; 3]);
            continue;
        };
        for r in 0..sum {
            for a in [0, 1, (u128::MAX - r) / sum] {
                let pot = a * sum + r;
                let found = shares(pot, &scores);
                assert_eq!(found.iter().sum::<u128>(), pot, "{pot} {scores:?}");
                for (i, share) in found.into_iter().enumerate() {
                    let above = mul_div(pot, of(i), sum).and_then(|floor| share.checked_sub(floor));
                    let most = if i == last { 2 } else { 0 };
                    assert!(above.is_some_and(|above| above <= most), "{pot} {scores:?}");
                    highest = highest.max(above.unwrap());
                }
            }
        }
    }
    assert_eq!((rows, highest), (1_728, 2));
    say("shares, but the last", "every pot, scores up to 10", "exact floor", "exact, for 1,728 rows of scores");
    say("shares, the last", "every pot, scores up to 10", "all that is left, 0 to 2 above its floor", "0 to 2 above");
}

/// Every task's number of models, and every candidate.
#[test]
fn the_largest_boost_is_the_largest_there_is() {
    for total in 0..=TASK_MODELS as u32 {
        for local in [false, true] {
            let held = if local { total.min(1)..=total } else { 0..=0 };
            let all = held.flat_map(|held| (0..=total).map(move |used| locality_boost(held, used, total)));
            assert_eq!(all.max(), Some(largest_boost(total, local)), "{total} {local}");
        }
    }
    say("largest_boost", "every candidate of every task", "the largest M", "equal, one by one");
}

/// [`class_bound`], of B = s best / (s + best) with the real s = min(1, sqrt(base 4^lowest / largest)). In a class k higher, S is at most 2^k s.
#[test]
fn class_bounds_are_above_each_node_and_three_units_high_at_most() {
    // With one term d larger, a harmonic is larger by d q^2 / ((s + q) (s + d + q)): by 0 to d. With one term m times as large, it is m times as
    // large less m (m - 1) s^2 q / ((s + q) (m s + q)), which is not below 0 for m from 1 on. So no node of the class is above 2^k B.
    let four = [0i128, 1, 2, 5];
    for n in 0..4usize.pow(4) {
        let [s, q, d, m] = std::array::from_fn(|i| four[n / 4usize.pow(i as u32) % 4]);
        assert_eq!((s + d) * q * (s + q) - s * q * (s + d + q), d * q * q);
        assert_eq!(m * s * q * (m * s + q) - m * s * q * (s + q), m * (m - 1) * s * s * q);
    }
    // The floor of s moves the harmonic by no more than it drops. The harmonic is a floor, too.
    let left = &int(3) - &(&(&dropped() * &int(0).or(&int(1))) + &dropped());
    assert!(left.is_within(&int(1), &int(3)), "{:?}", left.shown());
    say("class_bound", "every base below 2^46, largest, lowest and best", "1 to 3", "more than 1, at most 3");

    // A class ends at base 4^c: between the ends it is the same, for each comparison of a stake is.
    let mut random = rng(13);
    let bases =
        (0..46).flat_map(|bit| [1u64 << bit, (2 << bit) - 1]).chain((0..1_000).map(|_| 1 + any_length(&mut random, 45) as u64));
    for base in bases {
        let mut from = 0;
        for class in 0..CLASSES {
            let to = base << (2 * class);
            assert_eq!([from, to].map(|stake| class_of(stake, base)), [class; 2], "{base}");
            from = to + 1;
        }
        assert_eq!(stake_limit(base), from - 1);
    }

    let mut found = int(2);
    for _ in 0..4_000 {
        let base = 1 + any_length(&mut random, 45) as u64;
        let largest = 1 + any_length(&mut random, 64).min(stake_limit(base).into()) as u64;
        let best =
            [WAD, WAD / 200 * (100 + random.next_u64() % 101), random.next_u64() % (WAD + 1)][random.next_u32() as usize % 3];
        let lowest = (random.next_u32() % u32::from(CLASSES)) as u8;
        let bound = class_bound(base, largest, lowest, best);
        let stake = base << (2 * lowest);
        // The root in units of 1e-18, and the next one that an interval's end can be.
        let root: BigInt = (((big(stake) * WAD * WAD) << (2 * BITS)) / largest).sqrt();
        let s = if stake >= largest { int(WAD) } else { Interval(root.clone(), root + 1) };
        let best_wide = big(best) << BITS;
        let at = |s: &BigInt| s * &best_wide / (s + &best_wide);
        let above = &int(bound) - &Interval(at(&s.0), at(&s.1) + 1);
        assert!(above.is_within(&int(1), &int(3)), "{:?}: {base} {largest} {lowest} {best}", above.shown());
        found = found.or(&above);
        for class in lowest..CLASSES {
            let stake = (base << (2 * class)).min(largest);
            let highest = u128::from(harmonic(staking_score(stake, largest), best));
            assert!(highest <= u128::from(bound) << (class - lowest), "{base} {largest} {lowest} {best} {class}");
        }
    }
    assert!(tenths(15).above(&found.low()) && found.high().above(&tenths(29)), "{:?}", found.shown());
}

/// The likelihood of a group: every loss moves probability from a number of right answers to the one below, where it counts no more than all of it.
#[test]
fn a_likelihood_is_never_high_and_less_than_its_bound_low() {
    let two_64 = power(64);
    // A rating as a binary fraction: 18 r, a floor, and what the constant drops.
    let fraction = constant(WAD_SOURCE, "FRACTION")[0];
    let per_unit = &(&int(18) + &int(fraction).down(64)) - &two_64.over(WAD);
    let of_rating = &(&between(0, WAD) * &per_unit) - &dropped();
    assert!(of_rating.is_within(&-&int(11).over(10), &int(0)), "{:?}", of_rating.shown());
    assert!(18 * u128::from(WAD) + u128::from(mul_fraction(WAD, fraction as u64)) <= u128::from(u64::MAX));
    let (low, high) = of_rating.shown();
    say("binary_fraction", "every r", "-1.1 to 0 of 2^-64", &format!("{low:.3} to {high:.3}"));

    // The start is one unit short of one. Member n, of n numbers before it, drops a floor in each; its rating moves no more than it is off.
    let mut lost = int(1);
    for member in 1..=MAX_GROUP {
        lost = &(&lost + &int(member)) - &of_rating.low();
    }
    // To a wad, by a floor.
    let short = &(&lost * &int(WAD)).down(64) + &int(1);
    assert!(int(11).above(&short), "{:?}", short.shown());
    say("likelihood", "1 to 15 ratings", "-11 to 0", &format!("{:.3} to 0", -short.shown().1));
    assert_eq!((1..=MAX_GROUP).map(majority).max(), Some(8));
    assert_eq!(likelihood(&[WAD; MAX_GROUP]).map(|l| WAD - l <= 11), Some(true));
}

/// Where a bound of sums changes, on each length of number: between two such places it is the same, for it is a shift of x - 1.
#[test]
fn bounds_of_sums_are_never_low_and_an_eighth_high_at_most() {
    let check = |from: u64, to: u64| {
        let (value, code) = (bound::value(bound::ceil(to)), bound::ceil(to));
        assert_eq!(bound::ceil(from), code, "{from} to {to}");
        assert!(value >= to && value - from <= from / 8, "{from} to {to}: {value}");
    };
    (0..16).for_each(|x| check(x, x));
    let mut pieces = 16;
    for length in 5..=34u32 {
        // (x - 1) >> shift is constant from k 2^shift + 1 to (k + 1) 2^shift; a number of this length begins at 8 2^shift.
        let shift = length - 4;
        for k in 8..16u64 {
            let (from, to) = (k << shift, (k + 1) << shift);
            // The first number of a length has the bound of its own.
            if from <= bound::MAX {
                check(from, from);
                check((from + 1).min(bound::MAX), (to - 1).min(bound::MAX).max(from + 1).min(bound::MAX));
                pieces += 2;
            }
        }
    }
    say("bound::ceil", "x <= 15 2^30", "0 to 1/8 high", &format!("holds in {pieces} pieces"));
}

/// A task's value keeps 32 bits of fee / estimate, rounded down. On numbers of one length it is a shift.
#[test]
fn task_values_are_rounded_down_to_thirty_two_bits() {
    let mut random = rng(6);
    // The quotient is below 2^128 for every fee below 2^97.
    for bits in 1..=127u32 {
        let ends = [1u128 << (bits - 1), (1u128 << bits) - 1];
        for v in ends.into_iter().chain((0..64).map(|_| ends[0] | any_length(&mut random, bits - 1))) {
            // A fee that gives just this quotient, where there is one.
            let fee = v >> 31;
            if fee == 0 || fee >> 97 != 0 {
                continue;
            }
            let quotient = fee << 31;
            let float = value_of_key(key(fee, 1, TaskId(0)));
            let (length, mantissa) = ((float >> 31) as u32, u128::from(float & 0x7fff_ffff) | 1 << 31);
            let kept = if length > 32 { mantissa << (length - 32) } else { mantissa >> (32 - length) };
            assert!(kept <= quotient && quotient - kept < 1 << (length.max(32) - 32), "{fee}");
        }
    }
    for sum in 0..=u16::from(POOL) * Q_MAX as u16 {
        for count in 1..=POOL {
            if sum <= u16::from(count) * Q_MAX as u16 {
                let exact = u128::from(sum) * u128::from(WAD / Q_MAX) / u128::from(count);
                assert_eq!(u128::from(long_term(sum, count)), exact);
                assert!(u128::from(long_term_200ths(sum, count)) * u128::from(WAD / 200) >= exact);
            }
        }
    }
    say("long_term", "every sum and count", "exact floor", "exact, one by one");
}

#[test]
fn intervals_enclose() {
    // To 36 digits, from published tables.
    let digits = |x: &Interval| (x * &int(big(10).pow(36)), ());
    for (interval, published) in
        [(ln_2(), "693147180559945309417232121458176568"), (exp_neg(&int(1)), "367879441171442321595523770161460867")]
    {
        let shown = digits(&interval).0;
        let published: BigInt = published.parse().unwrap();
        assert!(shown.is_within(&int(published.clone()), &int(published + 1)));
        assert!((&interval.1 - &interval.0) < big(1) << 20, "an interval that says little");
    }
    assert!((0.5..0.6).contains(&tenths(5).widest()));
    let third = int(1).over(3);
    assert!((&third * &int(3)).is_within(&int(0), &(&int(1) + &int(1).down(100))) && !third.is_within(&int(0), &int(1).over(4)));
    let minus = &int(-1).over(3) * &int(1).over(3);
    assert!(minus.above(&int(-1).over(8)) && int(-1).over(10).above(&minus));
}
