//! Old rules, put back one at a time. The contracts have none of them; the search plays under them to show that it would find the cost of
//! each.

use super::harm::Harm;

/// A rule that there was once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// An error beside two equal answers scores 0.
    ErrorsScore,
    /// In a sampled group the pot is three payments whatever its members did, the reserve adding the sum that the fee lacks.
    ErrorsDraw,
    /// Tasks that end by errors are refunded whole.
    ErrorsFree,
    /// A sampled task is scored if enough nodes are active when its node commits.
    ScoredLate,
    /// In a rated group errors, and without a majority all answers, are rated wrong.
    OpenRates,
    /// A rated task that goes to another group pays nothing for the one before.
    RatedFree,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 6] =
        [Rule::ErrorsScore, Rule::ErrorsDraw, Rule::ErrorsFree, Rule::ScoredLate, Rule::OpenRates, Rule::RatedFree];

    /// Its harm.
    pub fn harm(self) -> Harm {
        match self {
            Rule::ErrorsScore => Harm::Blame,
            Rule::ErrorsDraw => Harm::Reserve,
            Rule::ErrorsFree => Harm::Time,
            Rule::ScoredLate => Harm::Slashes,
            Rule::OpenRates => Harm::Blame,
            Rule::RatedFree => Harm::Work,
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Rule::ErrorsScore => "an error beside two equal answers scores 0",
            Rule::ErrorsDraw => "the reserve fills the pot of a sampled group in which members failed",
            Rule::ErrorsFree => "tasks that end by errors are refunded whole",
            Rule::ScoredLate => "a sampled task is scored if enough nodes are active at the commitment",
            Rule::OpenRates => "errors, and answers without a majority, are rated wrong",
            Rule::RatedFree => "rated groups without a majority are free while another follows",
        }
    }
}
