//! Rulings of the policies on a group's answers: each policy's file rules on a case, and [`crate::policy::judgement`] carries the ruling
//! out.

use crate::flow::network::Network;
use crate::host::Host;
use crate::policy::commitments::images;
use crate::store::accounts;
use crate::store::groups::Group;
use muster_core::qos::share_bps;
use muster_core::record::{Escrow, Limits, Order, Stage, MEMBERS, MEMBERS_MOST};
use muster_core::validation::{at_risk, judge, same_images, shares, Judgement, Member, Outcome, Pot, Verdict};
use muster_core::word::Word;

/// The outcome of a group, as `IMuster.GroupSettled` says it.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Settled {
    /// Members agreed.
    Agreed = 0,
    /// One answered alone, and that counts.
    Alone = 1,
    /// Several answered, each otherwise.
    Differing = 2,
    /// There is no answer that counts.
    Unanswered = 3,
    /// The task goes to another group.
    Rescheduled = 4,
}

/// The mark that a judgement enters for a member.
#[derive(Clone, Copy)]
pub(crate) enum Mark {
    /// A score, which counts for its rating too.
    Score(u8),
    /// Whether it was right, for its rating only.
    Rating(bool),
}

/// A group whose reveals are over.
pub(crate) struct Case<'a> {
    pub group: &'a Group,
    pub order: &'a Order,
    pub limits: Limits,
    pub escrow: Escrow,
    /// The answers, by member.
    pub answers: [Word; MEMBERS_MOST],
    /// Members that there are; they are the first.
    pub count: usize,
    /// Those of them that could not run the task.
    pub failed: usize,
}

impl<'a> Case<'a> {
    /// Reads all inputs of a ruling.
    pub fn of<H: Host>(net: &Network<'_, H>, group: &'a Group, order: &'a Order) -> Case<'a> {
        let those = |stage: Stage| group.members.iter().filter(|m| m.stage == stage).count();
        let answers = core::array::from_fn(|i| match group.members[i].stage {
            Stage::Answered => group.answer(net.host, i),
            _ => Word::ZERO,
        });
        Case {
            group,
            order,
            limits: net.limits(),
            escrow: group.escrow(net.host),
            answers,
            count: MEMBERS_MOST - those(Stage::None),
            failed: those(Stage::Failed),
        }
    }

    /// Whether two answers are the same.
    pub fn same(&self, a: &Word, b: &Word) -> bool {
        if self.order.images() == 0 {
            a == b
        } else {
            same_images(&images(*a), &images(*b), self.limits.hamming_most)
        }
    }

    /// The start fee, which the task's creator pays where there is no result.
    pub fn start_fee(&self) -> u128 {
        share_bps(self.escrow.fee, self.order.start_fee_bps)
    }

    /// Compares the answers of three.
    pub fn compare(&self) -> Judgement {
        judge(&standings(self.group, |i| self.answers[i]), |a, b| self.same(a, b))
    }

    /// Which members' commitments are counted as open.
    pub fn open(&self) -> [bool; MEMBERS] {
        open(self.group, self.order, |i| self.answers[i])
    }
}

/// The first three members as their group is judged.
fn standings(group: &Group, answer: impl Fn(usize) -> Word) -> [Member<Word>; MEMBERS] {
    core::array::from_fn(|i| {
        let m = &group.members[i];
        match m.stage {
            Stage::None => Member::None,
            Stage::Answered => Member::Answered { answer: answer(i), elapsed: m.elapsed, at: m.moment },
            Stage::Failed => Member::Failed,
            Stage::Committed => Member::Withheld,
            Stage::Called | Stage::Running | Stage::TimedOut | Stage::Gone => Member::TimedOut,
        }
    })
}

/// Which members' commitments are counted as open, once reveals have begun: those for which they can still be slashed.
pub(crate) fn open(group: &Group, order: &Order, answer: impl Fn(usize) -> Word) -> [bool; MEMBERS] {
    if order.liable() {
        at_risk(&standings(group, answer))
    } else {
        [false; MEMBERS]
    }
}

/// The ruling on a member.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub verdict: Verdict,
    pub paid: u128,
    pub mark: Option<Mark>,
}

/// The ruling on a group.
pub(crate) struct Ruling {
    pub settled: Settled,
    /// The member whose answer is the task's.
    pub answerer: Option<usize>,
    /// By member.
    pub parts: [Part; MEMBERS_MOST],
    /// Where there is no answer: the part of the fee that its creator pays.
    pub start_fee: u128,
}

impl Ruling {
    /// Of a case in which nothing is paid or marked yet.
    pub fn new(settled: Settled, answerer: Option<usize>) -> Ruling {
        let nothing = Part { verdict: Verdict::None, paid: 0, mark: None };
        Ruling { settled, answerer, parts: [nothing; MEMBERS_MOST], start_fee: 0 }
    }

    /// A ruling on three compared answers: their verdicts and scores and, where some agree, the members that share `pot` and the reserve.
    pub fn compared<H: Host>(net: &mut Network<'_, H>, case: &Case<'_>, judgement: &Judgement, pot: Pot) -> Ruling {
        let (settled, answerer) = match judgement.outcome {
            Outcome::Agreed(fastest) => (Settled::Agreed, Some(fastest)),
            Outcome::Differing => (Settled::Differing, None),
            Outcome::Alone(_) | Outcome::Unanswered => (Settled::Unanswered, None),
        };
        let mut ruling = Ruling::new(settled, answerer);
        let mut paid = [0; MEMBERS];
        if answerer.is_some() {
            accounts::save(net.host, case.escrow.fee - pot.fee);
            paid = shares(pot.fee + accounts::draw_reserve(net.host, pot.reserve), &judgement.scores);
        }
        for (i, paid) in paid.into_iter().enumerate() {
            let mark = judgement.scores[i].filter(|_| case.order.scored()).map(Mark::Score);
            ruling.parts[i] = Part { verdict: judgement.verdicts[i], paid, mark };
        }
        ruling
    }
}
