//! Quality of service (the QoS document): task scores, the reliability factor H, Q_long and QoS.
//!
//! H and QoS are wads in 0..=1e18. Times are seconds.

use crate::wad::{exp_neg_wad, mul_div_u64, mul_wad, WAD};

/// Highest task score, Q_max.
pub const Q_MAX: u64 = 10;
/// Task scores kept per node.
pub const POOL: u8 = 50;
/// Scores of the first, second and third to answer validly in a validation group.
pub const RANK_SCORES: [u8; 3] = [10, 5, 2];
/// One, in the unit in which the penalty, the boost and the exclusion threshold are kept.
pub const PPM: u64 = 1_000_000;

/// `x` parts per million as a wad; exact.
#[inline]
pub fn ppm(x: u32) -> u64 {
    x as u64 * (WAD / PPM)
}

/// H after `elapsed` seconds of passive recovery from `h`: `1 - (1 - h) e^(-elapsed / tau)`.
///
/// Less than 1.8 units of 1e-18 above or below the true value, at most 1, and non-decreasing in `elapsed`. (Below it by up
/// to 1 for the exponent's floor and 0.8 for the exponential; above it by up to 0.8 and 1 for the product's floor.)
/// `tau` 0 means that recovery is immediate.
pub fn recover(h: u64, elapsed: u64, tau: u32) -> u64 {
    if h >= WAD || tau == 0 {
        return WAD;
    }
    if elapsed == 0 {
        return h;
    }
    let x = elapsed as u128 * WAD as u128 / tau as u128;
    WAD - mul_wad(WAD - h, exp_neg_wad(x))
}

/// H after a task's timeout with no answer: `h x penalty`, rounded down. The penalty is at most one. `h` is already recovered to now.
///
/// Because it is, two timeouts in a row leave 0.09 only at the same moment. With the default parameters the second one excludes
/// only within 88 s of the first.
#[inline]
pub fn penalise(h: u64, penalty_ppm: u32) -> u64 {
    mul_wad(h, ppm(penalty_ppm))
}

/// H after a task's success: `min(1, h + boost)`, exact. Both are at most one. `h` is already recovered to now.
#[inline]
pub fn boost(h: u64, boost_ppm: u32) -> u64 {
    (h + ppm(boost_ppm)).min(WAD)
}

/// Whether a node with this H may be selected: at the threshold exactly it may.
#[inline]
pub fn eligible(h: u64, exclusion_ppm: u32) -> bool {
    h >= ppm(exclusion_ppm)
}

/// The fewest seconds of recovery after which a node with `h` is eligible again; 0 if it is. The threshold is below one.
///
/// Found by bisection on [`recover`] itself, so that the two can never disagree. At most
/// `tau x 42` seconds, beyond which e^-x is nothing.
///
/// For thresholds up to 0.9 and a `tau` up to a week, it is less than 1.1e-11 s too early by the true time, and less than a second
/// and 1.1e-11 s too late.
pub fn exclusion_seconds(h: u64, exclusion_ppm: u32, tau: u32) -> u64 {
    let (mut low, mut high) = (0, tau as u64 * 42 + 1);
    while low < high {
        let mid = (low + high) / 2;
        if eligible(recover(h, mid, tau), exclusion_ppm) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    low
}

/// Q_long / Q_max as a wad: the mean of `count` scores adding up to `sum`, rounded down; 0.5 while there are none.
#[inline]
pub fn long_term(sum: u16, count: u8) -> u64 {
    if count == 0 {
        return WAD / 2;
    }
    // 500 x 1e17 does not fit 64 bits; the mean does.
    mul_div_u64(sum as u64, WAD / Q_MAX, count as u64).unwrap_or(WAD)
}

/// [`long_term`] of a node with scores in 200ths, rounded up.
pub fn long_term_200ths(sum: u16, count: u8) -> u8 {
    (sum as u32 * 20).div_ceil(count.max(1) as u32).min(200) as u8
}

/// The wad that no node's QoS is above, if `best` is the highest [`long_term_200ths`] there was; 0.5 without scores.
#[inline]
pub fn highest_qos(best: u8) -> u64 {
    WAD / 200 * best.clamp(100, 200) as u64
}

/// QoS as it enters the weight: `max(Q_long / Q_max, 0.1) x H`, rounded down.
///
/// The floor keeps any eligible node selectable; reports show Q_long without it.
#[inline]
pub fn qos(long_term: u64, h: u64) -> u64 {
    mul_wad(long_term.max(WAD / 10), h)
}

/// Whether a node is to be removed for good: the pool is full and Q_long is below `below_milli` / 1000.
#[inline]
pub fn kicked_out(sum: u16, count: u8, below_milli: u16) -> bool {
    count >= POOL && (sum as u64) * 1000 < below_milli as u64 * count as u64
}

/// `fee x share / 10000`, rounded down. The share is at most one.
#[inline]
pub fn share_bps(fee: u128, bps: u16) -> u128 {
    fee / 10_000 * bps as u128 + fee % 10_000 * bps as u128 / 10_000
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAU: u32 = 1800;
    fn close(h: u64, expected: f64) {
        assert!((h as f64 / 1e18 - expected).abs() < 1e-12, "{h} is not {expected}");
    }

    #[test]
    fn no_long_term_score_is_above_its_200ths() {
        for count in 0..=POOL {
            for sum in 0..=count as u16 * Q_MAX as u16 {
                let best = highest_qos(long_term_200ths(sum, count));
                assert!(long_term(sum, count).max(WAD / 10) <= best && best <= WAD, "{sum} / {count}");
            }
        }
        assert_eq!((highest_qos(0), highest_qos(100), highest_qos(150)), (WAD / 2, WAD / 2, WAD / 4 * 3));
    }

    #[test]
    fn recovery_follows_the_exponential() {
        close(recover(0, 1800, TAU), 1.0 - (-1.0f64).exp_());
        close(recover(0, 3600, TAU), 1.0 - (-2.0f64).exp_());
        close(recover(300_000_000_000_000_000, 600, TAU), 1.0 - 0.7 * (-1.0f64 / 3.0).exp_());
        assert_eq!(recover(5, 0, TAU), 5);
        assert_eq!(recover(WAD, 77, TAU), WAD);
        assert_eq!(recover(0, u32::MAX as u64, TAU), WAD);
    }

    #[test]
    fn penalties_compound_and_boosts_stop_at_one() {
        let mut h = WAD;
        for expected in [300_000_000_000_000_000, 90_000_000_000_000_000, 27_000_000_000_000_000, 8_100_000_000_000_000] {
            h = penalise(h, 300_000);
            assert_eq!(h, expected);
        }
        assert_eq!(boost(h, 150_000), 158_100_000_000_000_000);
        assert_eq!(boost(WAD - 1, 150_000), WAD);
    }

    #[test]
    fn a_second_timeout_excludes_only_within_88_seconds() {
        let after = |seconds| penalise(recover(penalise(WAD, 300_000), seconds, TAU), 300_000);
        assert!(!eligible(after(87), 100_000));
        assert!(eligible(after(88), 100_000));
        // The shortest estimate of a Stable Diffusion task is 50 s, of a GPT task 60 s.
        for estimate in [50, 60] {
            assert!(crate::value::time_limit(estimate, 60, 7_200) > 88);
        }
    }

    #[test]
    fn a_tenth_exactly_is_eligible_and_exclusion_ends_on_the_first_second_that_reaches_it() {
        assert!(eligible(WAD / 10, 100_000));
        assert!(!eligible(WAD / 10 - 1, 100_000));
        for h in [0, 8_100_000_000_000_000, 27_000_000_000_000_000, 90_000_000_000_000_000] {
            let s = exclusion_seconds(h, 100_000, TAU);
            assert!(eligible(recover(h, s, TAU), 100_000));
            assert!(!eligible(recover(h, s - 1, TAU), 100_000));
        }
        // The longest exclusion there can be, 3.16 minutes.
        assert_eq!(exclusion_seconds(0, 100_000, TAU), 190);
        assert_eq!(exclusion_seconds(WAD / 10, 100_000, TAU), 0);
    }

    #[test]
    fn the_mean_of_the_pool() {
        assert_eq!(long_term(0, 0), WAD / 2);
        assert_eq!(long_term(17, 3), 566_666_666_666_666_666);
        assert_eq!(long_term(500, 50), WAD);
        assert_eq!(qos(0, WAD), WAD / 10);
        assert!(!kicked_out(99, 49, 2000));
        assert!(kicked_out(99, 50, 2000));
        assert!(!kicked_out(100, 50, 2000));
    }

    #[test]
    fn a_share_rounds_down_without_overflow() {
        assert_eq!(share_bps(10_001, 200), 200);
        assert_eq!(share_bps((1 << 96) - 1, 10_000), (1 << 96) - 1);
    }

    /// core has no `exp`; a series is plenty for a test.
    trait Exp {
        fn exp_(self) -> f64;
    }
    impl Exp for f64 {
        fn exp_(self) -> f64 {
            let (mut sum, mut term) = (1.0, 1.0);
            for n in 1..60 {
                term *= self / n as f64;
                sum += term;
            }
            sum
        }
    }
}
