//! The aims of an attack, and measures of its harm.

use super::book::{Cause, Tally};

/// The aim of an attack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Harm {
    /// The reserve.
    Reserve,
    /// Honest nodes' names, for events beyond their control: an error, or an answer that no majority contradicted.
    Blame,
    /// Honest nodes' scores.
    Scores,
    /// Honest nodes' ratings.
    Ratings,
    /// Honest nodes' work.
    Work,
    /// Honest nodes' stakes.
    Stakes,
    /// Honest nodes' time.
    Time,
    /// Slashes that are owed.
    Slashes,
    /// Applications' trust.
    Answers,
}

impl Harm {
    /// All of them.
    pub const ALL: [Harm; 9] = [
        Harm::Reserve,
        Harm::Blame,
        Harm::Scores,
        Harm::Ratings,
        Harm::Work,
        Harm::Stakes,
        Harm::Time,
        Harm::Slashes,
        Harm::Answers,
    ];

    /// In words, with the unit.
    pub fn words(self) -> &'static str {
        match self {
            Harm::Reserve => "tokens out of the reserve",
            Harm::Blame => "scores of 0 and wrong ratings by its tasks for errors, or for answers that no majority contradicted",
            Harm::Scores => "scores of 0 of honest nodes",
            Harm::Ratings => "wrong ratings of honest nodes",
            Harm::Work => "tokens of answers to its tasks unpaid",
            Harm::Stakes => "tokens of honest stakes burnt",
            Harm::Time => "hours of honest nodes on tasks that they cannot answer",
            Harm::Slashes => "tokens of slashes owed and not taken",
            Harm::Answers => "false answers accepted",
        }
    }

    /// Whether it is counted in tokens.
    pub(super) fn is_money(self) -> bool {
        matches!(self, Harm::Reserve | Harm::Work | Harm::Stakes | Harm::Slashes)
    }

    /// How far luck is likely to be behind it: one deviation of the reserve's loss in so many lives.
    pub(super) fn luck(self, tally: &Tally) -> f64 {
        if self != Harm::Reserve {
            return 0.0;
        }
        let mean = self.of(tally) / tally.lives.max(1) as f64;
        (tally.spread - mean * self.of(tally)).max(0.0).sqrt()
    }

    /// How much of it there was.
    pub fn of(self, tally: &Tally) -> f64 {
        let tokens = |wei: i128| wei as f64 / 1e18;
        match self {
            Harm::Reserve => tokens(tally.drained),
            Harm::Blame => (tally.blamed - tally.strangers) as f64,
            Harm::Scores => tally.zeros as f64,
            Harm::Ratings => tally.misrated as f64,
            Harm::Work => tokens(tally.unpaid as i128),
            Harm::Stakes => tokens((tally.burnt(Cause::Majority) + tally.burnt(Cause::Ambiguous)) as i128),
            Harm::Time => tally.held as f64 / 3_600.0,
            Harm::Slashes => tokens(tally.spared as i128),
            Harm::Answers => tally.fooled as f64,
        }
    }
}
