//! Upper bounds in one byte, so that 31 of them and a mark fill a word.
//!
//! A bound is a small float: 5 bits of exponent, 3 of mantissa. Values up to 16 are exact; above,
//! [`ceil`] is at most 1/8 too high. It is never too low, which is all that rejection sampling
//! needs, and it only changes when a sum crosses a step: at large sums most updates stop at once.

/// The largest value [`ceil`] can bound.
pub const MAX: u64 = 15 << 30;

/// The smallest representable bound that is at least `x`; 0 exactly if `x` is 0. Saturates at [`MAX`]. `x` is below 2^60;
/// sums of all nodes there can be stay below 2^39.
#[inline]
pub fn ceil(x: u64) -> u8 {
    if x < 8 {
        return x as u8;
    }
    let shift = 60 - x.leading_zeros();
    let up = ((x - 1) >> shift) + 1;
    // Rounding 15.x up gives 16: the next exponent's 8, which the addition below carries into.
    (((shift as u64) << 3) + up).min(255) as u8
}

/// The least power of two, from 8 on, that is at least `x`, as a bound; 0 if `x` is 0. It changes more rarely than [`ceil`], and is up
/// to twice too high.
#[inline]
pub fn coarse(x: u64) -> u8 {
    if x == 0 {
        return 0;
    }
    // 2^k has the code 8 (k - 2).
    ((62 - ((x - 1) | 7).leading_zeros()) << 3).min(248) as u8
}

/// The value a bound stands for.
#[inline]
pub fn value(code: u8) -> u64 {
    let (e, m) = (code >> 3, (code & 7) as u64);
    if e == 0 {
        m
    } else {
        (8 + m) << (e - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_low_never_more_than_an_eighth_high_and_idempotent() {
        let check = |x: u64| {
            let v = value(ceil(x));
            assert!(v >= x, "{x} -> {v}");
            assert!(v - x <= x / 8, "{x} -> {v}");
            assert_eq!(ceil(v), ceil(x));
        };
        (0..100_000).for_each(check);
        for e in 0..34 {
            for d in 0..64u64 {
                let x = (1u64 << e).wrapping_add(d).wrapping_sub(32);
                if x <= MAX {
                    check(x);
                }
            }
        }
        for code in 0..=255u8 {
            assert_eq!(ceil(value(code)), code);
        }
        for x in (0..100_000).chain([MAX / 2, MAX / 2 + 1, 8 << 30]) {
            let v = value(coarse(x));
            assert!(v >= x && (x == 0) == (v == 0) && (x <= 8 || v < 2 * x) && (v == 0 || v.is_power_of_two()), "{x} -> {v}");
        }
        assert!((0..100_000u64).all(|x| value(ceil(x)) <= value(ceil(x + 1))));
    }
}
