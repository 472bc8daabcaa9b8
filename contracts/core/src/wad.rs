//! Fixed-point arithmetic: integers scaled by 1e18, called `wad`.
//!
//! The same code runs in the simulator and, compiled to WASM, on the chain, where every executed instruction is
//! charged. WASM has neither a 128-bit multiplication nor a 64x64->128 one, and the compiler's substitutes pass their
//! results through memory; the few primitives below (`mul_wide`, `mul_hi`, `div_wide`) keep them in registers.
//!
//! Nothing here panics, allocates or uses floating point. Every function states its rounding and its bound.

/// One, as a wad.
pub const WAD: u64 = 1_000_000_000_000_000_000;

const LOW_32: u64 = 0xffff_ffff;

/// Exact 64x64->128 product as (high, low).
#[inline]
fn mul_wide(a: u64, b: u64) -> (u64, u64) {
    let (a1, a0) = (a >> 32, a & LOW_32);
    let (b1, b0) = (b >> 32, b & LOW_32);
    let low = a0 * b0;
    let mid = a1 * b0 + (low >> 32);
    let mid2 = a0 * b1 + (mid & LOW_32);
    (a1 * b1 + (mid >> 32) + (mid2 >> 32), (mid2 << 32) | (low & LOW_32))
}

/// Upper half of the exact product: floor(a b / 2^64).
#[inline]
fn mul_hi(a: u64, b: u64) -> u64 {
    mul_wide(a, b).0
}

/// (hi 2^64 + lo) / d as (quotient, remainder). Needs hi < d, which makes the quotient fit.
fn div_wide(hi: u64, lo: u64, d: u64) -> (u64, u64) {
    debug_assert!(hi < d);
    if hi == 0 {
        return (lo / d, lo % d);
    }
    // Two digits of base 2^32; a normalised divisor makes each guessed digit at most 2 too large (Knuth, TAOCP 4.3.1 D).
    let shift = d.leading_zeros();
    let d = d << shift;
    let hi = (hi << shift) | ((lo >> 1) >> (63 - shift));
    let lo = lo << shift;
    let (q1, r1) = div_digit(hi, lo >> 32, d);
    let (q0, r0) = div_digit(r1, lo & LOW_32, d);
    ((q1 << 32) | q0, r0 >> shift)
}

/// One base-2^32 digit of a division by a normalised `d`: (hi 2^32 + next) / d. Needs hi < d.
#[inline]
fn div_digit(hi: u64, next: u64, d: u64) -> (u64, u64) {
    let (d1, d0) = (d >> 32, d & LOW_32);
    let mut q = hi / d1;
    let mut rest = hi - q * d1;
    while q > LOW_32 || q * d0 > ((rest << 32) | next) {
        q -= 1;
        rest += d1;
        if rest > LOW_32 {
            break;
        }
    }
    // Wrapping is exact: the true difference is below d, hence below 2^64.
    let r = (hi << 32).wrapping_add(next).wrapping_sub(q.wrapping_mul(d));
    (q, r)
}

#[inline]
fn split(x: u128) -> (u64, u64) {
    ((x >> 64) as u64, x as u64)
}

#[inline]
fn join(hi: u64, lo: u64) -> u128 {
    (u128::from(hi) << 64) | u128::from(lo)
}

/// Exact 128x128->256 product as (high, low).
fn mul_wide_u128(a: u128, b: u128) -> (u128, u128) {
    let (a1, a0) = split(a);
    let (b1, b0) = split(b);
    let (low_hi, low_lo) = mul_wide(a0, b0);
    let (m_hi, m_lo) = mul_wide(a1, b0);
    let (n_hi, n_lo) = mul_wide(a0, b1);
    let (h_hi, h_lo) = mul_wide(a1, b1);
    let mid = u128::from(low_hi) + u128::from(m_lo) + u128::from(n_lo);
    let high = join(h_hi, h_lo) + u128::from(m_hi) + u128::from(n_hi) + (mid >> 64);
    (high, join(mid as u64, low_lo))
}

/// (hi 2^128 + lo) / d as (quotient, remainder). Needs hi < d.
fn div_wide_u128(hi: u128, lo: u128, d: u128) -> (u128, u128) {
    debug_assert!(hi < d);
    let (d1, d0) = split(d);
    let (l1, l0) = split(lo);
    if d1 == 0 {
        let (q1, r1) = div_wide(hi as u64, l1, d0);
        let (q0, r0) = div_wide(r1, l0, d0);
        return (join(q1, q0), u128::from(r0));
    }
    let shift = d1.leading_zeros();
    let d = d << shift;
    let hi = (hi << shift) | ((lo >> 1) >> (127 - shift));
    let (l1, l0) = split(lo << shift);
    let (q1, r1) = div_limb(hi, l1, d);
    let (q0, r0) = div_limb(r1, l0, d);
    (join(q1, q0), r0 >> shift)
}

/// One base-2^64 digit of a division by a normalised `d`: (hi 2^64 + next) / d. Needs hi < d.
fn div_limb(hi: u128, next: u64, d: u128) -> (u64, u128) {
    let (h1, h0) = split(hi);
    let (d1, d0) = split(d);
    // h1 = d1 would make the guess exceed 64 bits; the largest digit is then a guess at least as good.
    let (mut q, mut rest) = if h1 < d1 {
        let (q, r) = div_wide(h1, h0, d1);
        (q, Some(r))
    } else {
        (u64::MAX, h0.checked_add(d1))
    };
    while let Some(r) = rest {
        let (p_hi, p_lo) = mul_wide(q, d0);
        if (p_hi, p_lo) <= (r, next) {
            break;
        }
        q -= 1;
        rest = r.checked_add(d1);
    }
    let (p0_hi, p0_lo) = mul_wide(q, d0);
    let (_, p1_lo) = mul_wide(q, d1);
    // Modulo 2^128; exact, because the true remainder is below d.
    let product = join(p0_hi.wrapping_add(p1_lo), p0_lo);
    (q, join(h0, next).wrapping_sub(product))
}

/// floor(a b / d), the product kept in 256 bits. `None` if `d` is zero or the result exceeds a u128.
pub fn mul_div(a: u128, b: u128, d: u128) -> Option<u128> {
    let (hi, lo) = mul_wide_u128(a, b);
    (hi < d).then(|| div_wide_u128(hi, lo, d).0)
}

/// ceil(a b / d), the product kept in 256 bits. `None` if `d` is zero or the result exceeds a u128.
pub fn mul_div_up(a: u128, b: u128, d: u128) -> Option<u128> {
    let (hi, lo) = mul_wide_u128(a, b);
    if hi >= d {
        return None;
    }
    let (q, r) = div_wide_u128(hi, lo, d);
    q.checked_add(u128::from(r != 0))
}

/// floor(a b / d), the product kept in 128 bits. `None` if `d` is zero or the result exceeds a u64.
pub fn mul_div_u64(a: u64, b: u64, d: u64) -> Option<u64> {
    let (hi, lo) = mul_wide(a, b);
    (hi < d).then(|| div_wide(hi, lo, d).0)
}

/// floor(a b / 1e18). Always representable if one factor is at most [`WAD`]; otherwise saturates at `u64::MAX`.
pub fn mul_wad(a: u64, b: u64) -> u64 {
    mul_div_u64(a, b, WAD).unwrap_or(u64::MAX)
}

/// floor(a 1e18 / b). `None` if `b` is zero or the result exceeds a u64 (about 18.4); never if 0 < b and a <= b.
pub fn div_wad(a: u64, b: u64) -> Option<u64> {
    mul_div_u64(a, WAD, b)
}

/// floor(sqrt(x)), exact.
///
/// Zimmermann's Karatsuba square root, one step: the root of the upper half gives all but the last digit, one division
/// the rest, and the remainder's sign tells whether that was one too many.
pub fn sqrt_u128(x: u128) -> u64 {
    if x == 0 {
        return 0;
    }
    // An even shift moves a 1 into the two topmost bits, which the method needs; the root shifts by half of it.
    let shift = x.leading_zeros() & !1;
    let (hi, lo) = split(x << shift);
    let s = sqrt_normal(hi);
    let r = hi - s * s;
    // r <= 2 s < 2^33, so r 2^32 may need a 65th bit: divide by s first and halve the quotient after.
    let (q, u) = if r > LOW_32 {
        // q = floor((r 2^32 + l) / 2 s) is 2^32 or a little less; r = 2 s + (r - 2 s) keeps the dividend in 64 bits.
        let n = (r - s) << 32 | lo >> 32;
        let (q, u) = (n / s, n % s);
        // n / s counts halves: r 2^32 + l = s (q + 2^32) + u.
        let halves = q + (1 << 32);
        (halves >> 1, u + s * (halves & 1))
    } else {
        let n = r << 32 | lo >> 32;
        (n / (s << 1), n % (s << 1))
    };
    let root = (u128::from(s) << 32) + u128::from(q);
    let rest_negative = join(u >> 32, u << 32 | (lo & LOW_32)) < u128::from(q) * u128::from(q);
    ((root - u128::from(rest_negative)) >> (shift / 2)) as u64
}

/// floor(sqrt(x)) of a value with a 1 in its two topmost bits.
fn sqrt_normal(x: u64) -> u64 {
    // The same step on 32 + 32 bits, with the 16-bit root from an integer Newton iteration. From above, the iteration falls until it has
    // reached the floor, and a start within 2 bits makes that a handful of steps.
    let hi = x >> 32;
    let mut s = 1 << 16;
    loop {
        let next = (s + hi / s) >> 1;
        if next >= s {
            break;
        }
        s = next;
    }
    let r = hi - s * s;
    let n = r << 16 | (x >> 16 & 0xffff);
    let (q, u) = (n / (s << 1), n % (s << 1));
    let root = (s << 16) + q;
    root - u64::from((u << 16 | (x & 0xffff)) < q * q)
}

/// floor(sqrt(num / den) 1e18), exact for num <= den; this is the staking score sqrt(stake / largest stake).
///
/// A ratio above one counts as one. `den` = 0 (no stake at all) gives 0.
pub fn sqrt_ratio_wad(num: u64, den: u64) -> u64 {
    if num >= den {
        return if den == 0 { 0 } else { WAD };
    }
    // num / den to 36 decimals, 18 at a time. The floor of a floor's root is the floor of the root.
    let (hi, lo) = mul_wide(num, WAD);
    let (q1, r1) = div_wide(hi, lo, den);
    let (hi, lo) = mul_wide(r1, WAD);
    let (q0, _) = div_wide(hi, lo, den);
    let (hi, lo) = mul_wide(q1, WAD);
    let (lo, carry) = lo.overflowing_add(q0);
    sqrt_u128(join(hi + u64::from(carry), lo))
}

/// From this argument on e^(-x) is below half a unit.
const EXP_NEG_ZERO: u128 = 42_139_678_854_452_767_622;

/// log2(e) 2^121 / 1e18, to the nearest: turns a wad into a binary exponent with 121 fractional bits.
const LOG2_E: u64 = 3_835_341_275_459_348_170;

/// ln 2, scaled by 2^64, to the nearest.
const LN_2: u64 = 12_786_308_645_202_655_660;

/// 2^(-i/16), scaled by 2^64, to the nearest; but the first is one unit short of 1, which has no place in a u64.
const EXP2_NEG: [u64; 16] = [
    18_446_744_073_709_551_615,
    17_664_662_643_191_237_676,
    16_915_738_899_553_466_671,
    16_198_567_065_652_879_633,
    15_511_800_964_685_064_948,
    14_854_151_493_325_717_732,
    14_224_384_202_002_324_189,
    13_621_316_977_754_388_159,
    13_043_817_825_332_782_212,
    12_490_802_742_373_206_726,
    11_961_233_684_655_323_370,
    11_454_116_617_628_225_966,
    10_968_499_650_544_839_023,
    10_503_471_249_702_896_438,
    10_058_158_527_438_640_871,
    9_631_725_603_661_576_981,
];

/// 1/n! scaled by 2^64, from n = 8 down to 2; 1/9! starts the sum.
const FACTORIALS: [u64; 7] = [
    457_508_533_574_146,
    3_660_068_268_593_165,
    25_620_477_880_152_155,
    153_722_867_280_912_930,
    768_614_336_404_564_651,
    3_074_457_345_618_258_603,
    9_223_372_036_854_775_808,
];
const FACTORIAL_9: u64 = 50_834_281_508_238;

/// e^(-x) of a wad, as a wad, rounded to the nearest.
///
/// Within 0.8 units of the true value for every x, so never off by more than one unit of 1e-18. It is 1e18 exactly at 0, and 0 from about
/// 42.14 on, where the true value is below half a unit. Non-increasing.
///
/// With t = x log2(e) = k + i/16 + g the result is 2^-k 2^-(i/16) 2^-g: a shift, one of 16 table entries, and nine terms
/// of the series of e^-z, z = g ln 2 < 0.0434. All of it in units u = 2^-64.
///
/// # Error
/// - `LOG2_E` is off by at most half a unit in 3.8e18: as if x were off by 1.4e-19 of itself; e^-x moves by at most
///   1.4e-19 x e^-x <= 0.05 units of 1e-18.
/// - f = i/16 + g drops less than 1 u, hence m = 2^-f rises by less than 0.7 u.
/// - z is at most 1.04 u too small and 0.04 u too large; z^2/2 - ... at most 1.1 u too small and 0.1 u too large (one floor; all inner
///   errors shrink by z). So d = 1 - e^-z is off by at most 1.2 u; the omitted tenth term is 2^-67.
/// - The table is off by at most 1 u, the last product's floor adds at most 1 u: m lies within -2.2 u .. +2.7 u of 2^-f.
/// - In all less than 3.5 u = 0.19 units of 1e-18, plus half a unit for rounding. The floor before it adds nothing, because a floor of a
///   floor is one floor. `tests/intervals.rs` proves -0.621 to 0.646 for every x.
///
/// # Monotone
/// A step of one unit in x moves t by `LOG2_E` / 2^121 exactly, hence f (with k) by at least floor(`LOG2_E` / 2^57) = 26 u. The true 2^-f,
/// at least 1/2, falls by at least 26 ln 2 / 2 = 9.01 u, while m's error ranges over less than 5 u. So m falls by more than 4 u, and h =
/// floor(8e18 m) does not rise. Where k rises by one and f starts again, the same holds of m / 2^k (the second's error is even halved): m'
/// < 2 m - 8 u, hence h' < 2 * 8e18 m - 3.4 < 2 h. The last shift rounds h / 2^k, which is monotone.
pub fn exp_neg_wad(x: u128) -> u64 {
    if x >= EXP_NEG_ZERO {
        return 0;
    }
    let (x_hi, x_lo) = split(x);
    let (t_hi, t_lo) = mul_wide(x_lo, LOG2_E);
    // x < 2^66 and LOG2_E < 2^62: the sum stays below 2^64.
    let t_hi = t_hi + x_hi * LOG2_E;
    let k = t_hi >> 57;
    let f = t_hi << 7 | t_lo >> 57;

    let z = mul_hi(f & (u64::MAX >> 4), LN_2);
    let mut sum = FACTORIAL_9;
    for c in FACTORIALS {
        sum = c - mul_hi(z, sum);
    }
    let d = z - mul_hi(z, mul_hi(z, sum));
    let one = EXP2_NEG[(f >> 60) as usize];
    let m = one - mul_hi(one, d);

    // Three bits more than the result has, so that it can be rounded: 8e18 < 2^63, k <= 60.
    let h = mul_hi(m, 8 * WAD);
    (h + (4 << k)) >> (k + 3)
}

/// ln 2 and ln 1e18, scaled by 2^121, to the nearest.
const LN_2_Q121: u128 = 1_842_701_275_199_322_610_452_688_615_344_956_909;
const LN_WAD_Q121: u128 = 110_183_780_458_249_181_269_500_724_130_172_286_391;

/// sqrt(1/2), scaled by 2^64.
const SQRT_HALF: u64 = 13_043_817_825_332_782_212;

/// 1/(2 k + 1) scaled by 2^64, from k = 12 down to 1.
const ODD_RECIPROCALS: [u64; 12] = [
    737_869_762_948_382_065,
    802_032_351_030_850_070,
    878_416_384_462_359_601,
    970_881_267_037_344_822,
    1_085_102_592_571_150_095,
    1_229_782_938_247_303_441,
    1_418_980_313_362_273_201,
    1_676_976_733_973_595_601,
    2_049_638_230_412_172_402,
    2_635_249_153_387_078_802,
    3_689_348_814_741_910_323,
    6_148_914_691_236_517_205,
];

/// -ln of a wad, as a wad, for 0 < x <= 1e18; at most 41.45e18. A larger x counts as one, 0 gives `None`.
///
/// Within 3 units of 1e-18 of the true value. With x = 2^e y, y between sqrt(1/2) and sqrt 2, ln y = 2 artanh((y - 1) /
/// (y + 1)) by thirteen terms of the series, whose argument is at most 0.172: the next term is below 2^-69.
pub fn neg_ln_wad(x: u64) -> Option<u128> {
    if x == 0 {
        return None;
    }
    let x = x.min(WAD);
    // x = m 2^(e - 64), 1/2 <= m / 2^64 < 1.
    let e = 64 - x.leading_zeros();
    let m = x << (64 - e);
    let powers = |e: u32| u128::from(e) * LN_2_Q121;
    let minus_ln = if m >= SQRT_HALF {
        // y = m / 2^64 < 1; numerator and denominator are halved to fit.
        let n = m.wrapping_neg();
        let (s, _) = div_wide(n >> 1, n << 63, (m >> 1) + (1 << 63));
        (LN_WAD_Q121 + (u128::from(artanh(s)) << 58)).saturating_sub(powers(e))
    } else {
        // y = 2 m / 2^64 > 1; quartered.
        let n = m << 1;
        let (s, _) = div_wide(n >> 2, n << 62, (m >> 1) + (1 << 62));
        LN_WAD_Q121.saturating_sub(powers(e - 1) + (u128::from(artanh(s)) << 58))
    };
    let (whole, fraction) = split(minus_ln >> 57);
    Some(u128::from(whole) * u128::from(WAD) + u128::from(mul_hi(fraction, WAD)))
}

/// artanh(s), scaled like s by 2^64, for s up to 0.172.
fn artanh(s: u64) -> u64 {
    let w = mul_hi(s, s);
    let mut sum = 0;
    for c in ODD_RECIPROCALS {
        sum = c + mul_hi(w, sum);
    }
    s + mul_hi(s, mul_hi(w, sum))
}

/// The largest u64 <= r 2^64 / 1e18 up to one unit: a wad up to one as a binary fraction, for products that need no
/// division. Never above the true value, less than 1.1 units of 2^-64 below it. A larger wad counts as one.
pub fn binary_fraction(r: u64) -> u64 {
    // 2^64 / 1e18 = 18.4467...
    const FRACTION: u64 = 8_240_973_594_166_534_375;
    let r = r.min(WAD);
    18 * r + mul_hi(r, FRACTION)
}

/// floor(a b / 2^64) of two binary fractions.
#[inline]
pub fn mul_fraction(a: u64, b: u64) -> u64 {
    mul_hi(a, b)
}
