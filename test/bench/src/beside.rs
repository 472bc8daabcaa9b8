//! Muster's storage in memory, where the contract's own code, compiled for this machine, makes worlds that would keep a chain busy for
//! minutes. Gas is measured on the chain, to which the changes made here are written. Every run checks that transactions would have left
//! the same ([`crate::measure::Bench::check_beside`]).

use alloy_primitives::{Address, Bytes, B256};
use alloy_sol_types::SolCall;
use anyhow::{anyhow, Result};
use muster_core::word::Word;
use muster_protocol::native::{Hashes, Memory};
use muster_protocol::programs::answer;
use muster_protocol::Host;
use std::collections::HashSet;

/// Topics and data of the logs of a call.
pub struct Logs(pub Vec<(Vec<B256>, Bytes)>);

/// Muster beside the chain.
pub struct Beside {
    memory: Memory,
    written: HashSet<Word>,
    /// Wei that came in.
    pub paid_in: u128,
}

impl Beside {
    /// Muster with these words, at this second, in this block.
    pub fn new(words: impl Iterator<Item = (Word, Word)>, now: u64, block: u64) -> Beside {
        let mut memory = Memory::like_a_chain();
        words.for_each(|(slot, word)| memory.store(slot, word));
        (memory.hashes, memory.now, memory.block) = (Hashes::OfNumbers, now, block);
        Beside { memory, written: HashSet::new(), paid_in: 0 }
    }

    /// Calls Muster, in a block of its own.
    pub fn call<C: SolCall>(&mut self, from: Address, value: u128, call: C) -> Result<Logs> {
        self.memory.sender = from.into_array();
        self.memory.value = Word([value as u64, (value >> 64) as u64, 0, 0]);
        self.memory.logs.clear();
        self.memory
            .call(|memory| answer(memory, &call.abi_encode()))
            .map_err(|refusal| anyhow!("a call was refused: {refusal:?}"))?;
        self.written.extend(self.memory.written());
        self.paid_in += value;
        self.memory.block += 1;
        Ok(Logs(self.memory.logs.drain(..).map(|log| (log.topics, Bytes::from(log.data))).collect()))
    }

    /// Reads.
    pub fn view<C: SolCall>(&mut self, call: C) -> Result<C::Return> {
        self.memory.value = Word::ZERO;
        let answer =
            answer(&mut self.memory, &call.abi_encode()).map_err(|refusal| anyhow!("a call was refused: {refusal:?}"))?;
        Ok(C::abi_decode_returns(&answer)?)
    }

    /// Lets time pass.
    pub fn pass(&mut self, seconds: u64) {
        self.memory.now += seconds;
    }

    /// The words written so far.
    pub fn written(&self) -> impl Iterator<Item = (Word, Word)> + '_ {
        self.written.iter().map(|&slot| (slot, self.memory.load(slot)))
    }
}
