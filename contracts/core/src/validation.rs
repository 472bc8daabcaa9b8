//! The outcome of a validation group: three nodes run one task, and their answers judge each other.

/// The members of a validation group.
pub const REDUNDANCY: usize = 3;

/// Task scores by rank among the members that ended validly, the fastest first.
pub const RANK_SCORES: [u8; REDUNDANCY] = [10, 5, 2];

/// How a member stands when its group is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member<A> {
    /// It answered, this many seconds after its start.
    Answered {
        /// What it answered.
        answer: A,
        /// Seconds.
        elapsed: u64,
    },
    /// It reported that the task can't be run.
    Failed {
        /// Seconds.
        elapsed: u64,
    },
    /// It timed out, or was aborted before.
    Aborted,
}

/// How a member's task ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its answer is the group's.
    Validated,
    /// Its answer agrees; the creator gets this duplicate's fee back.
    Refunded,
    /// The others agree against it: slashed.
    Invalidated,
    /// Nothing was judged of it.
    Aborted,
}

/// The judgement of a group, in the order of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// How each ends.
    pub ends: [End; REDUNDANCY],
    /// What goes into each member's score pool; `None` is not recorded.
    pub scores: [Option<u8>; REDUNDANCY],
}

/// Judges a group. `same` says whether two answers agree; it need not be transitive.
///
/// Two members agreeing make a majority: whoever agrees with anyone is valid, and the fastest of them (the earlier one of
/// equals) is `Validated`; a third that answered otherwise or reported an error is `Invalidated`. Two errors outvote a
/// lone answer, and nobody is valid. In every other case all are `Aborted`.
///
/// Scores are 10, 5, 2 by elapsed time among the valid, 0 for an invalidated member and for one that was aborted before.
/// If all three end aborted, for whatever reason, nothing is recorded; nor is it for an error that outvoted an answer.
pub fn judge<A>(members: &[Member<A>; REDUNDANCY], same: impl Fn(&A, &A) -> bool) -> Judgement {
    let agree = |i: usize, j: usize| match (&members[i], &members[j]) {
        (Member::Answered { answer: a, .. }, Member::Answered { answer: b, .. }) => {
            // Asked in one order only, so that an answer to (i, j) is an answer to (j, i).
            if i < j {
                same(a, b)
            } else {
                i > j && same(b, a)
            }
        }
        _ => false,
    };
    let elapsed = |i: usize| match members[i] {
        Member::Answered { elapsed, .. } | Member::Failed { elapsed } => elapsed,
        Member::Aborted => u64::MAX,
    };
    let valid: [bool; REDUNDANCY] = core::array::from_fn(|i| (0..REDUNDANCY).any(|j| agree(i, j)));
    let rank = |i: usize| (0..REDUNDANCY).filter(|&j| valid[j] && (elapsed(j), j) < (elapsed(i), i)).count();
    let any_valid = valid.contains(&true);
    let failed = members.iter().filter(|m| matches!(m, Member::Failed { .. })).count();

    let mut ends = [End::Aborted; REDUNDANCY];
    let mut scores = [None; REDUNDANCY];
    for (i, member) in members.iter().enumerate() {
        (ends[i], scores[i]) = match member {
            _ if valid[i] => {
                let rank = rank(i);
                (if rank == 0 { End::Validated } else { End::Refunded }, Some(RANK_SCORES[rank]))
            }
            Member::Aborted => (End::Aborted, any_valid.then_some(0)),
            Member::Failed { .. } if any_valid => (End::Invalidated, Some(0)),
            Member::Answered { .. } if any_valid || failed == 2 => (End::Invalidated, Some(0)),
            _ => (End::Aborted, None),
        };
    }
    Judgement { ends, scores }
}
