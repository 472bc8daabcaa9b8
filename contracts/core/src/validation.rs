//! The outcome of a validation group, whose members run one task and whose answers judge each other, and its pay.

use crate::qos::RANK_SCORES;
use crate::record::MEMBERS;

/// How a member stands when its group is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member<A> {
    /// There is no such member.
    None,
    /// It committed to an answer and revealed it.
    Answered {
        /// Its answer.
        answer: A,
        /// Seconds from its start to its commitment.
        elapsed: u32,
        /// When it committed.
        at: u32,
    },
    /// It committed to not being able to run the task, and revealed that.
    Failed,
    /// It committed and did not reveal.
    Withheld,
    /// It let its deadline pass, or left before.
    TimedOut,
}

/// The verdict on a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Verdict {
    /// There is no such member.
    None = 0,
    /// Another answered the same.
    Right = 1,
    /// Others answered the same, and it answered otherwise.
    Wrong = 2,
    /// It did not reveal.
    Withheld = 3,
    /// It reported an error.
    Failed = 4,
    /// It gave no answer in time.
    TimedOut = 5,
    /// It answered, and no two answered the same.
    Open = 6,
}

/// The outcome of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Two or more answered the same; the fastest of them is this member.
    Agreed(usize),
    /// This member alone answered.
    Alone(usize),
    /// Several answered, each otherwise.
    Differing,
    /// Nobody answered.
    Unanswered,
}

/// The judgement of a group, in the order of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The group's outcome.
    pub outcome: Outcome,
    /// Each member's verdict.
    pub verdicts: [Verdict; MEMBERS],
    /// The score that enters each member's pool; `None` is not recorded.
    pub scores: [Option<u8>; MEMBERS],
}

/// Judges a group. `same` says whether two answers agree; it need not be transitive, and is asked of an earlier and a later
/// member only.
///
/// Members that agree with any other are right. The right ones score 10, 5, 2 in the order of their elapsed times; of equals the earlier
/// commitment comes first, then the earlier member. Wrong, withheld and missing answers score 0 beside them. An error is no answer: it
/// agrees with nobody and is not scored, since an honest node can say no more of a task that nobody can run. Where no two agree, nothing is
/// scored. A withheld answer counts as withheld whatever the others did.
pub fn judge<A>(members: &[Member<A>; MEMBERS], same: impl Fn(&A, &A) -> bool) -> Judgement {
    let mut right = [false; MEMBERS];
    for (i, first) in members.iter().enumerate() {
        for (j, second) in members.iter().enumerate().skip(i + 1) {
            if let (Member::Answered { answer: a, .. }, Member::Answered { answer: b, .. }) = (first, second) {
                if same(a, b) {
                    right[i] = true;
                    right[j] = true;
                }
            }
        }
    }
    let order = |i: usize| match members[i] {
        Member::Answered { elapsed, at, .. } => (elapsed, at, i),
        _ => (u32::MAX, u32::MAX, i),
    };
    let rank = |i: usize| (0..MEMBERS).filter(|&j| right[j] && order(j) < order(i)).count();
    let agreed = right.contains(&true);

    let (mut verdicts, mut scores) = ([Verdict::None; MEMBERS], [None; MEMBERS]);
    for (i, member) in members.iter().enumerate() {
        verdicts[i] = match member {
            Member::None => continue,
            Member::Answered { .. } if right[i] => Verdict::Right,
            Member::Answered { .. } if agreed => Verdict::Wrong,
            Member::Answered { .. } => Verdict::Open,
            Member::Failed => Verdict::Failed,
            Member::Withheld => Verdict::Withheld,
            Member::TimedOut => Verdict::TimedOut,
        };
        if agreed && !matches!(member, Member::Failed) {
            scores[i] = Some(if right[i] { RANK_SCORES[rank(i)] } else { 0 });
        }
    }
    let mut answers = (0..MEMBERS).filter(|&i| matches!(members[i], Member::Answered { .. }));
    let outcome = match ((0..MEMBERS).find(|&i| right[i] && rank(i) == 0), answers.next(), answers.next()) {
        (Some(fastest), ..) => Outcome::Agreed(fastest),
        (None, Some(_), Some(_)) => Outcome::Differing,
        (None, Some(i), None) => Outcome::Alone(i),
        (None, None, _) => Outcome::Unanswered,
    };
    Judgement { outcome, verdicts, scores }
}

/// Which members may still be slashed, while some have not revealed: those of them, and those who can still be found wrong. That takes two
/// others who agree with each other, and nobody who gave the same answer.
pub fn at_risk<A: PartialEq>(members: &[Member<A>; MEMBERS]) -> [bool; MEMBERS] {
    core::array::from_fn(|i| match &members[i] {
        Member::Withheld => true,
        Member::Answered { answer, .. } => {
            let others = || members.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, member)| member);
            let same = |other: &Member<A>| matches!(other, Member::Answered { answer: theirs, .. } if theirs == answer);
            let against = others().filter(|other| matches!(other, Member::Answered { .. } | Member::Withheld)).count();
            against == MEMBERS - 1 && !others().any(same)
        }
        Member::None | Member::Failed | Member::TimedOut => false,
    })
}

/// Perceptual hashes of an answer: 64 bits for each of up to four images.
pub type Images = [u64; 4];

/// Whether two answers are the same images: no hash differs from its counterpart in more than `most` bits.
pub fn same_images(a: &Images, b: &Images, most: u8) -> bool {
    a.iter().zip(b).all(|(x, y)| (x ^ y).count_ones() <= most as u32)
}

/// Whether an answer has a hash for each image and for nothing else.
pub fn has_images(a: &Images, images: u8) -> bool {
    a.iter().enumerate().all(|(i, &hash)| (hash != 0) == (i < images as usize))
}

/// A node's pay, in wei, for a task of this fee that is sampled with probability `sample_bps` / 10000: fee / (1 + 2 r), rounded down. The
/// rest of the fee lets a validation pay three such payments. In expectation, r (3 / (1 + 2 r) - 1) fees are spent on validation, and (1 -
/// r) (1 - 1 / (1 + 2 r)) are left over, which is the same. Fees are below 2^100.
pub fn payment(fee: u128, sample_bps: u16) -> u128 {
    fee * 10_000 / (10_000 + 2 * sample_bps as u128)
}

/// The pot that the right members share: a part of the fee, and the sum that the reserve is asked to add. The rest of the fee goes to the
/// reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pot {
    /// Out of the fee, in wei.
    pub fee: u128,
    /// Out of the reserve, in wei, as far as that goes.
    pub reserve: u128,
}

impl Pot {
    /// A fee that its members share, `failed` of which failed: a failed member's part, rounded down, is not shared out to the others.
    pub fn of_fee(fee: u128, members: usize, failed: usize) -> Pot {
        Pot { fee: fee - fee / members.max(1) as u128 * failed as u128, reserve: 0 }
    }

    /// The pot of a sampled task whose node is paid `single` where there is no group: one such payment for each member that did not fail.
    /// The reserve adds nothing unless the first has revealed an answer: a task whose node reports an error pays nothing into it either,
    /// and a commitment that was not revealed may have been an error.
    pub fn of_payments(fee: u128, single: u128, members: usize, failed: usize, answered: bool) -> Pot {
        let whole = single * members.saturating_sub(failed) as u128;
        Pot { fee: whole.min(fee), reserve: if answered { whole.saturating_sub(fee) } else { 0 } }
    }
}

/// Shares a pot by scores, rounded down, the remainder to the last member with a score. All of it is shared if any score is above 0. The
/// last share is at most 2 above its part rounded down.
pub fn shares(pot: u128, scores: &[Option<u8>; MEMBERS]) -> [u128; MEMBERS] {
    let score = |i: usize| scores[i].unwrap_or(0) as u128;
    let sum: u128 = (0..MEMBERS).map(score).sum();
    let (mut shares, mut left) = ([0; MEMBERS], pot);
    for i in (0..MEMBERS).filter(|&i| score(i) > 0) {
        let last = (i + 1..MEMBERS).all(|j| score(j) == 0);
        shares[i] = if last { left } else { pot / sum * score(i) + pot % sum * score(i) / sum };
        left -= shares[i];
    }
    shares
}
