//! The weights, judgements and payments of `muster-core`, for clients that check a contract's results: `clients/ts/verifier.sh` compiles it to WASM.
//!
//! Only numbers go in and out, so there is no memory to share. A number of 128 bits is passed as its higher and its lower
//! half, and returned by halves: 1 the higher, 0 the lower.
// Exporting a name is all that is unsafe here: no other linked crate has these names.
#![allow(unsafe_code)]

use muster_core::qos::{self, share_bps};
use muster_core::record::MEMBERS;
use muster_core::validation::{self, Images, Member, Outcome, Pot};
use muster_core::weight;

fn whole(high: u64, low: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

fn half_of(value: u128, half: u32) -> u64 {
    if half == 1 {
        (value >> 64) as u64
    } else {
        value as u64
    }
}

/// A member's state and its answer, of which [`Images`] is the word's four numbers. States: 0 there is none, 1 it has answered, 2 it reported an
/// error, 3 it did not reveal, 4 it did not commit.
fn member(stage: u32, elapsed: u32, at: u32, answer: Images) -> Member<Images> {
    match stage {
        1 => Member::Answered { answer, elapsed, at },
        2 => Member::Failed,
        3 => Member::Withheld,
        4 => Member::TimedOut,
        _ => Member::None,
    }
}

/// Judges a group. For each member: how it [stands](member), the seconds from its start to its commitment, when it committed, and its
/// answer's four numbers, the first the most significant. Then how many images an answer has, 0 where answers must be equal, and in how
/// many bits the hashes of two equal images may differ.
///
/// Gives eight bytes, from the lowest: the outcome as the interface numbers it; the member it names, or 255; three verdicts as the
/// interface numbers them, 0 for no member; three scores, 255 for none.
#[allow(clippy::too_many_arguments)]
#[no_mangle]
pub extern "C" fn judge(
    stage0: u32,
    elapsed0: u32,
    at0: u32,
    a0: u64,
    b0: u64,
    c0: u64,
    d0: u64,
    stage1: u32,
    elapsed1: u32,
    at1: u32,
    a1: u64,
    b1: u64,
    c1: u64,
    d1: u64,
    stage2: u32,
    elapsed2: u32,
    at2: u32,
    a2: u64,
    b2: u64,
    c2: u64,
    d2: u64,
    images: u32,
    most: u32,
) -> u64 {
    let members = [
        member(stage0, elapsed0, at0, [a0, b0, c0, d0]),
        member(stage1, elapsed1, at1, [a1, b1, c1, d1]),
        member(stage2, elapsed2, at2, [a2, b2, c2, d2]),
    ];
    let same = |a: &Images, b: &Images| if images == 0 { a == b } else { validation::same_images(a, b, most as u8) };
    let judged = validation::judge(&members, same);
    let (outcome, named) = match judged.outcome {
        Outcome::Agreed(fastest) => (0, fastest as u8),
        Outcome::Alone(only) => (1, only as u8),
        Outcome::Differing => (2, 255),
        Outcome::Unanswered => (3, 255),
    };
    let [v0, v1, v2] = judged.verdicts.map(|verdict| verdict as u8);
    let [s0, s1, s2] = judged.scores.map(|score| score.unwrap_or(255));
    u64::from_le_bytes([outcome, named, v0, v1, v2, s0, s1, s2])
}

/// Whether an answer has a hash for each image and for nothing else: 1 or 0.
#[no_mangle]
pub extern "C" fn has_images(a: u64, b: u64, c: u64, d: u64, images: u32) -> u32 {
    validation::has_images(&[a, b, c, d], images as u8).into()
}

/// A node's pay for a task of this fee that is sampled with this probability, in ten-thousandths. Fees are below 2^100.
#[no_mangle]
pub extern "C" fn payment(high: u64, low: u64, sample_bps: u32, half: u32) -> u64 {
    half_of(validation::payment(whole(high, low), sample_bps as u16), half)
}

/// The pot of a fee that the right members share, if `failed` of this many reported an error.
#[no_mangle]
pub extern "C" fn pot_of_fee(high: u64, low: u64, members: u32, failed: u32, half: u32) -> u64 {
    half_of(Pot::of_fee(whole(high, low), members as usize, failed as usize).fee, half)
}

/// The pot of a scored, sampled task that pays one node `single`: the part from its fee, or, if `reserve` is 1, from the reserve.
/// `answered` is 1 if the first member revealed an answer.
#[allow(clippy::too_many_arguments)]
#[no_mangle]
pub extern "C" fn pot_of_payments(
    high: u64,
    low: u64,
    single_high: u64,
    single_low: u64,
    members: u32,
    failed: u32,
    answered: u32,
    reserve: u32,
    half: u32,
) -> u64 {
    let (fee, single) = (whole(high, low), whole(single_high, single_low));
    let pot = Pot::of_payments(fee, single, members as usize, failed as usize, answered == 1);
    half_of(if reserve == 1 { pot.reserve } else { pot.fee }, half)
}

/// A member's share of a pot, by the three scores, each a byte, the first member's the lowest; 255 for none.
#[no_mangle]
pub extern "C" fn share(high: u64, low: u64, scores: u32, member: u32, half: u32) -> u64 {
    let [a, b, c, _] = scores.to_le_bytes();
    let scores: [Option<u8>; MEMBERS] = [a, b, c].map(|score| (score != 255).then_some(score));
    half_of(validation::shares(whole(high, low), &scores)[member as usize % MEMBERS], half)
}

/// The share of a fee, in ten-thousandths.
#[no_mangle]
pub extern "C" fn part(high: u64, low: u64, bps: u32, half: u32) -> u64 {
    half_of(share_bps(whole(high, low), bps as u16), half)
}

/// H, a wad, after this many seconds of recovery.
#[no_mangle]
pub extern "C" fn recover(h: u64, elapsed: u64, tau: u32) -> u64 {
    qos::recover(h, elapsed, tau)
}

/// H after a timeout.
#[no_mangle]
pub extern "C" fn penalise(h: u64, penalty_ppm: u32) -> u64 {
    qos::penalise(h, penalty_ppm)
}

/// H after a success.
#[no_mangle]
pub extern "C" fn boost(h: u64, boost_ppm: u32) -> u64 {
    qos::boost(h, boost_ppm)
}

/// Q_long / Q_max, a wad: of this many scores with this sum.
#[no_mangle]
pub extern "C" fn long_term(sum: u32, count: u32) -> u64 {
    qos::long_term(sum as u16, count as u8)
}

/// The weight of a node for a task, a wad. Stakes are in stake units; of the task's models the node holds `local`, and ran with `used` last.
#[no_mangle]
pub extern "C" fn weight(stake: u64, largest: u64, long_term: u64, h: u64, local: u32, used: u32, total: u32) -> u64 {
    let m = weight::locality_boost(local, used, total);
    weight::weight(m, weight::staking_score(stake, largest), qos::qos(long_term, h))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_the_core() {
        const WAD: u64 = 1_000_000_000_000_000_000;
        // S = 1/2, QoS = 1/2, M = 1.35: half of the one by half of the other.
        assert_eq!(super::weight(100, 400, WAD / 2, WAD, 1, 0, 2), WAD / 4 / 100 * 135);
        assert_eq!(long_term(17, 3), qos::long_term(17, 3));
        assert_eq!(recover(penalise(boost(WAD / 2, 150_000), 300_000), 600, 1_800), qos::recover(WAD / 1_000 * 195, 600, 1_800));
    }

    /// Two that agree within a bit, of which the second was faster, and one that does not.
    fn judged(most: u32) -> [u8; 8] {
        let bits = judge(1, 20, 100, 6, 0, 0, 0, 1, 10, 101, 7, 0, 0, 0, 1, 5, 90, u64::MAX, 0, 0, 0, 1, most);
        bits.to_le_bytes()
    }

    #[test]
    fn a_judgement_is_that_of_the_core() {
        assert_eq!(judged(1), [0, 1, 1, 1, 2, 5, 10, 0]);
        // No two are the same word.
        assert_eq!(judged(0), [2, 255, 6, 6, 6, 255, 255, 255]);
        let alone = judge(1, 1, 1, 5, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0).to_le_bytes();
        assert_eq!(alone, [1, 0, 6, 3, 5, 255, 255, 255]);
        let errors = judge(2, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0).to_le_bytes();
        assert_eq!(errors, [3, 255, 4, 4, 0, 255, 255, 255]);
    }

    #[test]
    fn amounts_come_in_halves() {
        let fee = (3u128 << 64) + 7;
        let both = |of: &dyn Fn(u32) -> u64| whole(of(1), of(0));
        assert_eq!(both(&|half| payment(3, 7, 1_000, half)), validation::payment(fee, 1_000));
        assert_eq!(both(&|half| part(3, 7, 200, half)), share_bps(fee, 200));
        assert_eq!(both(&|half| pot_of_fee(3, 7, 3, 1, half)), Pot::of_fee(fee, 3, 1).fee);
        let single = (2u128 << 64) + 9;
        for (failed, answered) in [(0, 1), (1, 1), (1, 0)] {
            let pot = Pot::of_payments(fee, single, 3, failed as usize, answered == 1);
            let of = |reserve| both(&|half| pot_of_payments(3, 7, 2, 9, 3, failed, answered, reserve, half));
            assert_eq!((of(0), of(1)), (pot.fee, pot.reserve));
        }
        let scores = u32::from_le_bytes([10, 255, 5, 0]);
        let shared: u128 = (0..3).map(|member| both(&|half| share(3, 7, scores, member, half))).sum();
        assert_eq!(shared, fee);
        assert_eq!(both(&|half| share(3, 7, scores, 1, half)), 0);
        assert_eq!([has_images(1, 0, 0, 0, 1), has_images(1, 0, 0, 0, 2)], [1, 0]);
    }
}
