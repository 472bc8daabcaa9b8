//! Selection weight (the dispatch document): staking score S, locality boost M, weight W, and the bounds that
//! exact sampling rejects against. Stakes are in stake units, everything else is a wad.

use crate::wad::{mul_div_u64, mul_wad, sqrt_ratio_wad, WAD};

/// Stake classes. Class c holds stakes above `base x 4^(c-1)` and up to `base x 4^c` (class 0: up to `base`).
pub const CLASSES: u8 = 10;

/// The largest stake the classes can hold, for a class base in stake units.
#[inline]
pub fn stake_limit(base: u64) -> u64 {
    base << (2 * (CLASSES as u32 - 1))
}

/// The class of a stake of at most [`stake_limit`].
#[inline]
pub fn class_of(stake: u64, base: u64) -> u8 {
    let mut c = 0;
    while c + 1 < CLASSES && stake > base << (2 * c as u32) {
        c += 1;
    }
    c
}

/// S = sqrt(stake / largest), rounded down; 1 if `stake` is not below `largest`.
#[inline]
pub fn staking_score(stake: u64, largest: u64) -> u64 {
    if stake >= largest {
        WAD
    } else {
        sqrt_ratio_wad(stake, largest)
    }
}

/// M = 1 + 0.7 local / total + 0.3 in_use / total, rounded down; 1 for a task that needs no model.
#[inline]
pub fn locality_boost(local: u32, in_use: u32, total: u32) -> u64 {
    if total == 0 {
        return WAD;
    }
    WAD + (local as u64 * 7 + in_use as u64 * 3) * (WAD / 10) / total as u64
}

/// S QoS / (S + QoS), rounded down; 0 if both are 0.
#[inline]
pub fn harmonic(s: u64, qos: u64) -> u64 {
    if s | qos == 0 {
        return 0;
    }
    mul_div_u64(s, qos, s + qos).unwrap_or(0)
}

/// W = M S QoS / (S + QoS): [`harmonic`] rounded down, then times M rounded down. Never too high, and less than 1 + M units
/// of 1e-18 too low, hence less than 3; more than 2.41 happens.
#[inline]
pub fn weight(m: u64, s: u64, qos: u64) -> u64 {
    mul_wad(harmonic(s, qos), m)
}

/// The largest M of the candidates that hold a required model (`local`), or of those that hold none. Without a required model M is 1.
#[inline]
pub fn largest_boost(total: u32, local: bool) -> u64 {
    match (total, local) {
        (0, _) => WAD,
        (_, true) => 2 * WAD,
        (_, false) => WAD / 10 * 13,
    }
}

/// An upper bound of every node's `harmonic(S, QoS)` / 2^(its class - `lowest`).
///
/// QoS is at most `best` (a wad), so harmonic <= S best / (best + S), which grows with S; S is at most
/// min(1, sqrt(base 4^c / largest)) in class c. Divided by 2^c that is greatest in the lowest class.
/// Rounded up by 3 units, more than all roundings on the way: these take less than 2, so more than 1 is left.
#[inline]
pub fn class_bound(base: u64, largest: u64, lowest: u8, best: u64) -> u64 {
    let s = staking_score(base << (2 * lowest as u32), largest);
    harmonic(s, best) + 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_cut_at_powers_of_four() {
        let base = 400_000;
        assert_eq!(class_of(1, base), 0);
        assert_eq!(class_of(base, base), 0);
        assert_eq!(class_of(base + 1, base), 1);
        assert_eq!(class_of(4 * base, base), 1);
        assert_eq!(class_of(4 * base + 1, base), 2);
        assert_eq!(class_of(stake_limit(base), base), CLASSES - 1);
    }

    #[test]
    fn the_formulas_of_the_dispatch_document() {
        assert_eq!(staking_score(100, 400), WAD / 2);
        assert_eq!(staking_score(400, 400), WAD);
        assert_eq!(locality_boost(0, 0, 0), WAD);
        assert_eq!(locality_boost(1, 1, 1), 2 * WAD);
        assert_eq!(locality_boost(1, 0, 2), 1_350_000_000_000_000_000);
        assert_eq!(weight(WAD, WAD, WAD), WAD / 2);
        assert_eq!(weight(2 * WAD, WAD / 2, WAD / 2), WAD / 2);
        assert_eq!(weight(WAD, 0, 0), 0);
    }

    #[test]
    fn no_node_is_above_its_class_bound() {
        let base = 400;
        for largest in [400u64, 401, 1600, 5000, 4_000_000, stake_limit(base)] {
            for stake in [1u64, 399, 400, 401, 1599, 1600, 1601, 6400, 100_000, largest].into_iter().filter(|&s| s <= largest) {
                let class = class_of(stake, base);
                for lowest in 0..=class {
                    let qualities = [1, WAD / 10, WAD / 2, WAD - 1, WAD];
                    for (i, best) in qualities.into_iter().enumerate() {
                        let bound = (class_bound(base, largest, lowest, best) as u128) << (class - lowest);
                        for &q in &qualities[..=i] {
                            assert!(harmonic(staking_score(stake, largest), q) as u128 <= bound);
                        }
                    }
                }
            }
        }
    }
}
