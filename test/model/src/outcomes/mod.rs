//! The outcome table: every combination of the acts of a validation group's members, played on real groups and compared with
//! docs/validation.md. [`judge`](muster_core::validation::judge) has no part in the expected outcome.

mod books;
mod play;

pub use play::{Count, Table};

use crate::validated::value;
use alloy_primitives::B256;

/// Members of a group.
pub const THREE: usize = 3;

/// The act of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// There is no such member.
    Nobody,
    /// It commits to this answer so many seconds after its start, and reveals it.
    Answer(u8, u64),
    /// It commits to an error and reveals that.
    Fail,
    /// It commits and does not reveal.
    Withhold,
    /// It lets its deadline pass.
    TimeOut,
}

/// Three answers, two of them given fast and slowly, and all that is no answer: the nine of the table over plain values in
/// contracts/core/tests/validation.rs.
pub const ACTS: [Act; 9] = [
    Act::Answer(1, 10),
    Act::Answer(1, 20),
    Act::Answer(2, 10),
    Act::Answer(2, 20),
    Act::Answer(3, 15),
    Act::Fail,
    Act::Withhold,
    Act::TimeOut,
    Act::Nobody,
];

impl Act {
    /// Seconds from its start to its commitment; none without one.
    fn commits(self) -> Option<u64> {
        match self {
            Act::Answer(_, seconds) => Some(seconds),
            Act::Fail => Some(12),
            Act::Withhold => Some(17),
            Act::TimeOut | Act::Nobody => None,
        }
    }

    fn answers(self) -> Option<u8> {
        match self {
            Act::Answer(answer, _) => Some(answer),
            _ => None,
        }
    }

    fn reveals(self) -> bool {
        matches!(self, Act::Answer(..) | Act::Fail)
    }
}

/// A combination, by members.
pub type Acts = [Act; THREE];

/// All 729 of them.
pub fn combinations() -> Vec<Acts> {
    ACTS.iter().flat_map(|&a| ACTS.iter().flat_map(move |&b| ACTS.iter().map(move |&c| [a, b, c]))).collect()
}

/// Which tasks a group judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A sampled task, whose answers must be equal.
    Sampled,
    /// A replicated one of that kind.
    Replicated,
    /// A replicated one whose answers are images.
    Images,
}

/// The state of a group, before its members act.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its task.
    pub kind: Kind,
    /// Whether its scope is large enough for scores and slashes.
    pub scored: bool,
    /// The acts of its members.
    pub acts: Acts,
}

impl Kind {
    /// Prints the outcomes of groups of this kind, for docs/generated/proof.md.
    pub fn proof(self, scored: bool, count: &Count) {
        let what = match self {
            Kind::Sampled => "sampled tasks",
            Kind::Replicated => "replicated tasks",
            Kind::Images => "replicated tasks, images",
        };
        let scope = if scored { "large" } else { "small" };
        let outcome = |outcome| count.outcomes.get(&outcome).copied().unwrap_or(0);
        let [unfilled, filled] = count.pots;
        let figures: [(&str, &dyn std::fmt::Display); 12] = [
            ("what", &what),
            ("scope", &scope),
            ("groups", &count.groups),
            ("agreed", &outcome(Outcome::Agreed)),
            ("alone", &outcome(Outcome::Alone)),
            ("differing", &outcome(Outcome::Differing)),
            ("unanswered", &outcome(Outcome::Unanswered)),
            ("slashes", &count.slashes),
            ("left", &count.left),
            ("filled", &filled),
            ("unfilled", &unfilled),
            ("not sampled", &count.alone.iter().sum::<u32>()),
        ];
        crate::proof("outcomes", &figures);
    }
}

impl Case {
    /// How many of its members report an error.
    pub fn failed(&self) -> usize {
        self.acts.iter().filter(|act| **act == Act::Fail).count()
    }

    /// How many members it has.
    pub fn size(&self) -> usize {
        self.acts.iter().filter(|act| **act != Act::Nobody).count()
    }

    /// Whether a group like this can come to be. Of a sampled task it has one to three members, of which the first has committed; only
    /// scopes that are too small to be scored have fewer than three nodes. A replicated task always has three.
    pub fn exists(&self) -> bool {
        let [first, second, third] = self.acts;
        let full = self.size() == THREE;
        match self.kind {
            Kind::Sampled => {
                first.commits().is_some() && (second != Act::Nobody || third == Act::Nobody) && (full || !self.scored)
            }
            Kind::Replicated | Kind::Images => full,
        }
    }

    /// The answer of a member as it is revealed. Images of one answer differ by a few bits from member to member, those of two by many.
    pub fn word(&self, member: usize, answer: u8) -> B256 {
        if self.kind != Kind::Images {
            return value(answer);
        }
        let mut word = B256::ZERO;
        word[..8].copy_from_slice(&((0xffff << (16 * answer)) ^ (7u64 << (3 * member))).to_be_bytes());
        word
    }
}

/// The outcomes of `IMuster.GroupSettled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Outcome {
    /// Two or three answers were equal.
    Agreed = 0,
    /// A sampled task's first node alone answered.
    Alone = 1,
    /// Several answers, all different.
    Differing = 2,
    /// None, or that of any other alone.
    Unanswered = 3,
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// The group's outcome.
    pub outcome: Outcome,
    /// The member whose answer is the task's.
    pub stands: Option<usize>,
    /// As in `IMuster.MemberJudged`; 0 where there is no member.
    pub verdicts: [u8; THREE],
    /// Of an agreement: 10, 5, 2 for right members, by speed; none for an error, which is no answer; 0 for all others.
    pub scores: [Option<u8>; THREE],
}

impl Case {
    /// The expected line of docs/validation.md.
    pub fn line(&self) -> Line {
        let answers = self.acts.map(Act::answers);
        let given: Vec<u8> = answers.iter().flatten().copied().collect();
        let twice = given.iter().copied().find(|answer| given.iter().filter(|other| *other == answer).count() > 1);
        let mut right: Vec<usize> = (0..THREE).filter(|&i| twice.is_some() && answers[i] == twice).collect();
        // Stable, and equally fast members began and committed in the order of members.
        right.sort_by_key(|&i| self.acts[i].commits());
        let (outcome, stands) = match (right.first(), &given[..]) {
            (Some(&fastest), _) => (Outcome::Agreed, Some(fastest)),
            (None, [_]) if self.kind == Kind::Sampled && answers[0].is_some() => (Outcome::Alone, Some(0)),
            (None, [_, _, ..]) => (Outcome::Differing, None),
            (None, _) => (Outcome::Unanswered, None),
        };
        let mut line = Line { outcome, stands, verdicts: [0; THREE], scores: [None; THREE] };
        for (i, act) in self.acts.iter().enumerate() {
            line.verdicts[i] = match act {
                Act::Nobody => 0,
                Act::Answer(..) if right.contains(&i) => 1,
                Act::Answer(..) if outcome == Outcome::Agreed => 2,
                Act::Answer(..) => 6,
                Act::Withhold => 3,
                Act::Fail => 4,
                Act::TimeOut => 5,
            };
            let scored = outcome == Outcome::Agreed && !matches!(act, Act::Fail | Act::Nobody);
            line.scores[i] = scored.then_some(0);
        }
        for (i, score) in right.into_iter().zip([10, 5, 2]) {
            line.scores[i] = Some(score);
        }
        line
    }
}

/// The order in which equally fast members of a group commit, and in which all reveal. Also whether `expire` or the judgement ends those
/// that timed out.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    turn: [usize; THREE],
    expires: bool,
}

/// All twelve of them.
pub const ORDERS: [Order; 12] = {
    let turns = [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1], [2, 0, 1], [1, 0, 2]];
    let mut orders = [Order { turn: turns[0], expires: false }; 12];
    let mut i = 0;
    while i < orders.len() {
        orders[i] = Order { turn: turns[i / 2], expires: i % 2 == 1 };
        i += 1;
    }
    orders
};
