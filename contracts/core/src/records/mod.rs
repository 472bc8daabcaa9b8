mod account;
mod assignment;
mod classes;
mod commitment;
mod escrow;
mod head;
mod limits;
mod listed;
mod members;
mod models;
mod next_parameter;
mod node;
mod operator;
mod order;
mod ownership;
mod places;
mod pool;
mod profile;
mod proposal;
mod queue;
mod receipt;
mod reserved;
mod rules;
mod scores;
mod size;
mod target_search;
mod terms;
mod validator_draw;

pub use account::Account;
pub use assignment::Assignment;
pub use classes::Classes;
pub use commitment::Commitment;
pub use escrow::Escrow;
pub use head::Head;
pub use limits::Limits;
pub use listed::Listed;
pub use members::{Members, Membership, Stage, MEMBERS, MEMBERS_MOST};
pub use models::{Models, CALL_MODELS, MODELS_PER_WORD, NODE_MODELS, TASK_MODELS};
pub use next_parameter::NextParameter;
pub use node::{Node, Status};
pub use operator::Operator;
pub use order::{Order, Phase, Policy, UNDECIDED_DRAWS};
pub use ownership::Ownership;
pub use places::Places;
pub use pool::Pool;
pub use profile::{Profile, Targeting};
pub use proposal::Proposal;
pub use queue::Queue;
pub use receipt::Receipt;
pub use reserved::{Reserved, RESERVED_MOST};
pub use rules::Rules;
pub use scores::Scores;
pub use size::Size;
pub use target_search::TargetSearch;
pub use terms::Terms;
pub use validator_draw::ValidatorDraw;

use crate::word::{Fields, Packed};

/// Every record's name and fields, to check that other sources lay them out alike.
pub const RECORDS: [(&str, Fields); 28] = [
    ("Account", Account::FIELDS),
    ("ValidatorDraw", ValidatorDraw::FIELDS),
    ("Classes", Classes::FIELDS),
    ("TargetSearch", TargetSearch::FIELDS),
    ("Commitment", Commitment::FIELDS),
    ("Assignment", Assignment::FIELDS),
    ("Escrow", Escrow::FIELDS),
    ("Head", Head::FIELDS),
    ("Limits", Limits::FIELDS),
    ("Listed", Listed::FIELDS),
    ("Members", Members::FIELDS),
    ("Models", Models::FIELDS),
    ("NextParameter", NextParameter::FIELDS),
    ("Node", Node::FIELDS),
    ("Operator", Operator::FIELDS),
    ("Order", Order::FIELDS),
    ("Ownership", Ownership::FIELDS),
    ("Places", Places::FIELDS),
    ("Pool", Pool::FIELDS),
    ("Profile", Profile::FIELDS),
    ("Proposal", Proposal::FIELDS),
    ("Queue", Queue::FIELDS),
    ("Receipt", Receipt::FIELDS),
    ("Reserved", Reserved::FIELDS),
    ("Rules", Rules::FIELDS),
    ("Scores", Scores::FIELDS),
    ("Size", Size::FIELDS),
    ("Terms", Terms::FIELDS),
];

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    /// The sources, in the order of [`RECORDS`].
    const SOURCES: [&str; 28] = [
        include_str!("account.rs"),
        include_str!("validator_draw.rs"),
        include_str!("classes.rs"),
        include_str!("target_search.rs"),
        include_str!("commitment.rs"),
        include_str!("assignment.rs"),
        include_str!("escrow.rs"),
        include_str!("head.rs"),
        include_str!("limits.rs"),
        include_str!("listed.rs"),
        include_str!("members.rs"),
        include_str!("models.rs"),
        include_str!("next_parameter.rs"),
        include_str!("node.rs"),
        include_str!("operator.rs"),
        include_str!("order.rs"),
        include_str!("ownership.rs"),
        include_str!("places.rs"),
        include_str!("pool.rs"),
        include_str!("profile.rs"),
        include_str!("proposal.rs"),
        include_str!("queue.rs"),
        include_str!("receipt.rs"),
        include_str!("reserved.rs"),
        include_str!("rules.rs"),
        include_str!("scores.rs"),
        include_str!("size.rs"),
        include_str!("terms.rs"),
    ];

    #[test]
    fn every_file_is_a_record() {
        let modules = include_str!("mod.rs").lines().filter(|line| line.starts_with("mod ") && line.ends_with(';'));
        assert_eq!(modules.count(), RECORDS.len());
        for ((name, _), source) in RECORDS.iter().zip(SOURCES) {
            let declared = source.lines().find_map(|line| line.trim().strip_prefix("pub struct "));
            assert_eq!(declared, Some(std::format!("{name} {{").as_str()));
        }
    }

    /// A drawing shows a word from its most significant end: lines of names, each over a line of widths, `-` for what is unused.
    #[test]
    fn drawings_show_what_is_packed() {
        for ((record, fields), source) in RECORDS.iter().zip(SOURCES) {
            let drawing = source.split("```").nth(1).unwrap_or_else(|| panic!("{record} has no drawing"));
            let lines: Vec<_> = drawing.lines().skip(1).map(|line| line.trim_start().trim_start_matches("///")).collect();
            let (mut drawn, mut shown) = (Vec::new(), lines.iter());
            while let (Some(names), Some(widths)) = (shown.next(), shown.next()) {
                let cells: Vec<&str> = names.trim().trim_matches('|').split('|').map(str::trim).collect();
                let widths: Vec<u32> = widths.split_whitespace().map(|bits| bits.parse().unwrap()).collect();
                assert_eq!(cells.len(), widths.len(), "{record}: a name and a width in every cell");
                drawn.extend(cells.into_iter().zip(widths));
            }
            let used: u32 = fields.iter().map(|(_, bits, _)| bits).sum();
            let unused = (used < 256).then_some(("-", 256 - used));
            let packed: Vec<_> = unused.into_iter().chain(fields.iter().rev().map(|(name, bits, _)| (*name, *bits))).collect();
            assert_eq!(drawn, packed, "{record}");
        }
    }
}
