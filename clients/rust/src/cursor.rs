//! A reading position: a block by number and hash, and earlier ones to go back to.

use std::collections::VecDeque;

use alloy::primitives::{Address, B256};
use serde::{Deserialize, Serialize};

/// A block that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Its number.
    pub number: u64,
    /// Its hash.
    pub hash: B256,
}

/// The newest marks, all of which are kept; older ones get sparser with age.
const DENSE: usize = 64;
/// The most marks that are kept.
const MOST: usize = 256;

/// A position in a contract's events. A consumer with a database of their own keeps it there, in the transaction
/// that stores the effects of the events; others leave it to [`Events`](crate::Events).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The chain.
    pub chain: u64,
    /// The contract.
    pub contract: Address,
    /// The first block that is read.
    pub start: u64,
    /// Blocks that were read, the newest last.
    marks: VecDeque<Mark>,
}

impl Cursor {
    /// Before anything is read.
    pub fn new(chain: u64, contract: Address, start: u64) -> Self {
        Self { chain, contract, start, marks: VecDeque::new() }
    }

    /// The first block that has not been read.
    pub fn next(&self) -> u64 {
        self.marks.back().map_or(self.start, |mark| mark.number + 1)
    }

    /// The last block that was read.
    pub fn last(&self) -> Option<Mark> {
        self.marks.back().copied()
    }

    /// The blocks to go back to, the newest first.
    pub fn marks(&self) -> impl Iterator<Item = Mark> + '_ {
        self.marks.iter().rev().copied()
    }

    /// Everything up to this block has been read.
    pub(crate) fn advance(&mut self, mark: Mark) {
        self.marks.push_back(mark);
        if self.marks.len() <= DENSE {
            return;
        }
        // Of the older ones the oldest of each stretch of a sixteenth to an eighth of its age: as they age, stretches merge.
        let dense = self.marks.split_off(self.marks.len() - DENSE);
        let mut kept: VecDeque<Mark> = VecDeque::new();
        for older in &self.marks {
            let stretch = ((mark.number - older.number) / 8).max(1).ilog2();
            if kept.back().is_none_or(|last| last.number >> stretch != older.number >> stretch) {
                kept.push_back(*older);
            }
        }
        kept.extend(dense);
        kept.drain(..kept.len().saturating_sub(MOST));
        self.marks = kept;
    }

    /// Forgets blocks read after a mark; everything, without one.
    pub(crate) fn back_to(&mut self, mark: Option<Mark>) {
        let to = mark.map(|mark| mark.number);
        self.marks.retain(|mark| to.is_some_and(|to| mark.number <= to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_reach_far_back_and_stay_few() {
        let mut cursor = Cursor::new(1, Address::ZERO, 5);
        assert_eq!((cursor.next(), cursor.last()), (5, None));
        for number in 5..200_000 {
            cursor.advance(Mark { number, hash: B256::left_padding_from(&number.to_be_bytes()) });
        }
        assert_eq!(cursor.next(), 200_000);
        let marks: Vec<_> = cursor.marks().map(|mark| mark.number).collect();
        assert!(marks.len() <= MOST, "{}", marks.len());
        assert!((0..DENSE as u64).all(|age| marks.contains(&(199_999 - age))));
        // From any depth there is a mark at most a quarter deeper, and some more.
        for depth in [100u64, 1_000, 10_000, 100_000] {
            let wanted = 200_000 - depth;
            let mark = marks.iter().find(|number| **number <= wanted).unwrap();
            assert!(wanted - mark <= depth / 4 + 64, "{depth}: {mark}");
        }
        cursor.back_to(Some(Mark { number: 199_990, hash: B256::ZERO }));
        assert_eq!(cursor.next(), 199_991);
        cursor.back_to(None);
        assert_eq!(cursor.next(), 5);
    }
}
