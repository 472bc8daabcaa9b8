//! Planned actions, and their times.

use std::{cmp::Reverse, collections::BinaryHeap};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// A request arrives.
    Arrive(usize),
    Draw,
    Answer(u64),
    Report(u64),
    Expire(u64),
    Cancel(u64),
    Outlive(u64),
    /// A node, the second number, commits to its answer.
    Commit(u64, u64),
    /// Whether a task is validated can be known.
    Lot(u64),
    /// A member of a group reveals its commitment.
    Reveal(u64, u64),
    /// Somebody has a group judged.
    Settle(u64),
    /// A member of a group stayed silent.
    ExpireMember(u64, u64),
    /// A node has waited for others for as long as it must.
    Poke(u64),
}

/// In the order of time; actions of the same time in the order in which they were planned.
#[derive(Default)]
pub struct Agenda {
    entries: BinaryHeap<Reverse<(u64, u64, Action)>>,
    sequence: u64,
}

impl Agenda {
    pub fn plan(&mut self, at: u64, action: Action) {
        self.sequence += 1;
        self.entries.push(Reverse((at, self.sequence, action)));
    }

    pub fn next(&mut self) -> Option<(u64, Action)> {
        self.entries.pop().map(|Reverse((at, _, action))| (at, action))
    }
}
