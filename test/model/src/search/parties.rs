//! The sides of people and tasks, and right answers.

use alloy_primitives::{keccak256, B256};
use alloy_sol_types::SolValue;

/// The side of a person or node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Plays by the rules.
    Honest,
    /// One mind with all others of this side.
    Adversary,
}

/// The right answer to a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Nature {
    /// One, the same for all.
    #[default]
    Plain,
    /// None: every node's differs.
    NoRight,
    /// Two, and a node of the same card may have either.
    Ambiguous,
    /// One, which honest nodes cannot have: they lack the model, or the input, and report an error.
    Lacking,
}

/// The answer that the adversary's nodes give when they lie.
pub fn false_answer(id: u64) -> B256 {
    // Far from every right one as images too.
    let mut word: B256 = keccak256((id, "false").abi_encode());
    word[0] |= 1;
    word[8..].fill(0);
    word
}
