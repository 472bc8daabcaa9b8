//! Helpers of several tests.

#![allow(dead_code)]

pub mod actor;
pub mod cases;
pub mod chain;
pub mod heads;
pub mod program;
pub mod rpc;

use alloy_primitives::{B256, U256};

/// A number as a word.
pub fn word(number: u64) -> B256 {
    U256::from(number).into()
}

/// A sequence of numbers that is the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}
