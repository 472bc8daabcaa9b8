//! What `script/mutants` changed without another test noticing: the edges of the small formulas.

use muster_core::id::TaskId;
use muster_core::qos::*;
use muster_core::value::*;
use muster_core::wad::WAD;
use muster_core::weight::*;
use muster_core::word::{Address, Field, Packed, Word};
use muster_core::{bound, weight};

#[test]
fn words_are_numbers_lanes_and_accounts() {
    for limb in 0..4 {
        let mut word = Word::ZERO;
        assert!(word.is_zero());
        word.0[limb] = 1;
        assert!(!word.is_zero(), "limb {limb} counts");
        assert_eq!(word.to_u128(), [Some(1), Some(1 << 64), None, None][limb]);
    }
    // Limbs that are equal do not cancel out.
    for equal in [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1], [1, 1, 1, 1]] {
        assert!(!Word(equal).is_zero(), "{equal:?}");
    }
    assert_eq!(Word([0, 0, 1, 1]).to_u128(), None);
    assert_eq!(Word([5, 7, 0, 0]).to_u128(), Some(7 << 64 | 5));
    assert_eq!(Word::from(9).0, [9, 0, 0, 0]);

    let mut lanes = Word::ZERO;
    for lane in 0..8 {
        lanes.set_lane32(lane, 0xffff_0000 + lane);
    }
    for lane in 0..8 {
        assert_eq!(lanes.lane32(lane), 0xffff_0000 + lane);
    }
    lanes.set_lane32(3, 1);
    let left: Vec<u32> = (0..8).map(|lane| lanes.lane32(lane)).collect();
    assert_eq!(left[3], 1);
    assert_eq!((left[2], left[4]), (0xffff_0002, 0xffff_0004), "the others stay");

    let account: Address = core::array::from_fn(|i| i as u8 + 1);
    let word = Word::from(account);
    assert_eq!((word.to_be_bytes()[..12].to_vec(), word.to_be_bytes()[12..].to_vec()), (vec![0; 12], account.to_vec()));
    assert_eq!((account.pack(), Address::unpack(word)), (word, account));
    assert_eq!(Address::FIELDS, [("", 160, "address")]);
}

#[test]
fn bits_are_read_and_written_wherever_they_lie() {
    // Every place and width that fits, in a word of ones and in an empty one.
    for at in 0..256 {
        for width in (1..=64).filter(|width| at + width <= 256) {
            let most = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            let mut word = Word::ZERO;
            word.set_bits(at, width, u64::MAX);
            assert_eq!(word.bits(at, width), most);
            let ones: u32 = word.0.iter().map(|limb| limb.count_ones()).sum();
            assert_eq!(ones, width, "{width} at {at}: no bit beside them");
            let mut word = Word([u64::MAX; 4]);
            assert_eq!(word.bits(at, width), most);
            word.set_bits(at, width, 0);
            assert_eq!(word.bits(at, width), 0);
            let ones: u32 = word.0.iter().map(|limb| limb.count_ones()).sum();
            assert_eq!(ones, 256 - width, "{width} at {at}: no bit beside them");
        }
    }
}

#[test]
fn long_numbers_leave_what_is_beside_them() {
    let mut word = Word([u64::MAX; 4]);
    0u128.write(&mut word, 32, 96);
    assert_eq!(word.0, [0xffff_ffff, 0, u64::MAX, u64::MAX]);
    ((1u128 << 96) - 1).write(&mut word, 32, 96);
    assert_eq!(word.0, [u64::MAX; 4]);
    assert_eq!(u128::read(&word, 32, 96), (1 << 96) - 1);
}

#[test]
fn a_bound_beyond_the_largest_is_the_largest() {
    assert_eq!((bound::value(255), bound::MAX), (bound::MAX, 15 << 30));
    for beyond in [bound::MAX, bound::MAX + 1, 16 << 30, 1 << 40, 1 << 60] {
        assert_eq!(bound::ceil(beyond), 255, "{beyond}");
    }
    assert_eq!(bound::ceil(14 << 30), 254);
}

#[test]
fn kinds_have_their_numbers() {
    let kinds = [Some(Kind::StableDiffusion), Some(Kind::Gpt), Some(Kind::FineTune), None, None];
    assert_eq!([0, 1, 2, 3, 255].map(Kind::new), kinds);
}

#[test]
fn a_key_is_a_value_and_an_arrival() {
    // Fee 3 in 2 s is 1.5, whose mantissa after the leading one is a half; its exponent counts the bits of 1.5 x 2^31.
    assert_eq!(value_of_key(key(3, 2, TaskId(7))), 32 << 31 | 1 << 30);
    assert_eq!(key(3, 2, TaskId(7)) & ((1 << 26) - 1), (1 << 26) - 1 - 7);
    assert_eq!(value_of_key(key(6, 4, TaskId(7))), value_of_key(key(3, 2, TaskId(9))), "arrival is no part of the value");
    assert_eq!(key(3, 2, TaskId((1 << 26) + 7)), key(3, 2, TaskId(7)), "and is counted modulo 2^26");
    // A third of a wei a second has fewer than 32 bits, which count from the top all the same.
    let third = (1u64 << 31) / 3;
    assert_eq!(value_of_key(key(1, 3, TaskId(7))), 30 << 31 | (third << 2 & 0x7fff_ffff));
    // Less than one wei, or second, counts as one.
    assert_eq!(key(0, 5, TaskId(1)), key(1, 5, TaskId(1)));
    assert_eq!(key(5, 0, TaskId(1)), key(5, 1, TaskId(1)));
    assert_eq!(time_limit(5, 70, 60), 70, "a longest limit below the shortest is none");
    assert_eq!(time_limit(u32::MAX, 60, u16::MAX), u16::MAX);
}

#[test]
fn weights_at_their_edges() {
    let base = 400;
    assert_eq!(stake_limit(base), 400 << 18);
    assert_eq!(class_of(stake_limit(base) + 1, base), CLASSES - 1, "there is none above");
    assert_eq!(class_of(stake_limit(base) / 4 + 1, base), CLASSES - 1);
    assert_eq!(class_of(stake_limit(base) / 4, base), CLASSES - 2);
    assert_eq!(staking_score(0, 0), WAD);
    assert_eq!(staking_score(5, 4), WAD);
    assert_eq!(
        [(0, true), (0, false), (3, true), (3, false)].map(|(total, local)| largest_boost(total, local)),
        [WAD, WAD, 2 * WAD, WAD / 10 * 13]
    );
    // What a candidate can have is what the boost comes to at most.
    assert_eq!((locality_boost(8, 8, 8), locality_boost(0, 8, 8)), (largest_boost(8, true), largest_boost(8, false)));
    // Numbers without a bit in common are no zeros.
    assert_eq!(harmonic(1 << 59, 1 << 58), (1 << 59) / 3);
    assert_eq!((harmonic(0, WAD), harmonic(WAD, 0), harmonic(0, 0)), (0, 0, 0));
    // S is a half in class 3 of a network whose largest stake is 4^4 times the base.
    assert_eq!(weight::class_bound(base, base << 8, 3, WAD), WAD / 3 + 3);
    assert_eq!(weight::class_bound(base, base, 0, WAD), WAD / 2 + 3);
}

#[test]
fn quality_of_service_at_its_edges() {
    assert_eq!(ppm(1), 1_000_000_000_000);
    assert_eq!(recover(5, 10, 0), WAD, "tau 0 is at once");
    assert_eq!(recover(WAD + 5, 0, 1_800), WAD, "never above one");
    assert_eq!(recover(WAD - 1, 0, 1_800), WAD - 1);
    // The highest threshold there can be, tau x ln 10; and one that is never reached, where the search ends.
    assert_eq!(exclusion_seconds(0, 900_000, 1_800), 4_145);
    assert_eq!(exclusion_seconds(0, 1_000_000, 1_800), 42 * 1_800 + 1);
    assert_eq!([(0, 0), (17, 3), (500, 50), (499, 50)].map(|(sum, count)| long_term_200ths(sum, count)), [0, 114, 200, 200]);
    assert_eq!((qos(WAD / 20, WAD), qos(WAD / 2, WAD / 2)), (WAD / 10, WAD / 4));
    assert_eq!((kicked_out(0, 0, 0), kicked_out(0, 50, 0), kicked_out(0, 50, 1)), (false, false, true));
    assert_eq!(share_bps(9_999, 5_000), 4_999);
    assert_eq!(share_bps(29_999, 3_333), 9_998);
}
