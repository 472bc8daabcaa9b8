//! A host that gets all information about the chain from its caller.

use muster_core::word::{Address, Word};
use muster_protocol::host::{Host, Program, HISTORY};
use muster_protocol::programs;
use std::cell::Cell;

/// The caller's knowledge of the chain. Words and hashes are 32 bytes, the most significant first.
pub trait Chain {
    /// The word at a slot: the last written value, else the original one.
    fn load(&self, slot: &[u8; 32]) -> [u8; 32];
    /// Writes it.
    fn store(&mut self, slot: &[u8; 32], word: &[u8; 32]);
    /// keccak256.
    fn keccak(&self, bytes: &[u8]) -> [u8; 32];
    /// The hash of an earlier block, if there is one.
    fn block_hash(&self, number: u64) -> Option<[u8; 32]>;
    /// A log: the number of its topics, of 32 bytes each, and the topics followed by its data.
    fn log(&mut self, topics: usize, bytes: &[u8]);
    /// A mark of the present state of writes and logs.
    fn mark(&self) -> u32;
    /// Reverts writes and logs after a mark.
    fn undo(&mut self, mark: u32);
}

/// A call, and the block that it is in.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Its sender.
    pub sender: Address,
    /// The contract.
    pub here: Address,
    /// Wei sent with it.
    pub value: [u8; 32],
    /// Its calldata.
    pub data: &'a [u8],
    /// The block's time.
    pub now: u64,
    /// The block.
    pub block: u64,
    /// Whether the sender had no code: the transaction is known to be their own.
    pub signed: bool,
}

/// A transaction that is done again.
struct Again<'a, C: Chain> {
    chain: &'a mut C,
    call: Call<'a>,
    reads: Cell<u32>,
    program: Program,
}

/// Repeats a call that the chain accepted. Returns whether it is accepted here; `None` if only a reading program answers it.
pub fn again<C: Chain>(chain: &mut C, call: Call<'_>) -> Option<bool> {
    let mut all = programs::changing::<Again<'_, C>>().into_iter();
    let (program, _, run) = all.find(|(_, functions, _)| programs::is_of(functions, call.data))?;
    let mut host = Again { chain, call, reads: Cell::new(0), program };
    Some(run(&mut host, call.data).is_ok())
}

impl<C: Chain> Host for Again<'_, C> {
    fn load(&self, slot: Word) -> Word {
        self.reads.set(self.reads.get() + 1);
        Word::from_be_bytes(self.chain.load(&slot.to_be_bytes()))
    }

    fn store(&mut self, slot: Word, word: Word) {
        self.chain.store(&slot.to_be_bytes(), &word.to_be_bytes());
    }

    fn mapping(&self, map: u8, key: Word) -> Word {
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(&key.to_be_bytes());
        bytes[63] = map;
        Word::from_be_bytes(self.keccak(&bytes))
    }

    fn keccak(&self, bytes: &[u8]) -> [u8; 32] {
        self.chain.keccak(bytes)
    }

    fn sender(&self) -> Address {
        self.call.sender
    }

    fn here(&self) -> Address {
        self.call.here
    }

    fn value(&self) -> Word {
        Word::from_be_bytes(self.call.value)
    }

    fn now(&self) -> u64 {
        self.call.now
    }

    fn block(&self) -> u64 {
        self.call.block
    }

    fn block_hash(&self, number: u64) -> Option<[u8; 32]> {
        if number >= self.call.block || number + HISTORY < self.call.block {
            return None;
        }
        self.chain.block_hash(number)
    }

    fn log(&mut self, topics: usize, bytes: &[u8]) {
        self.chain.log(topics, bytes);
    }

    // The chain accepted the call, so payments succeeded, and code was where it must be.
    fn pay(&mut self, _: Address, _: u128) -> bool {
        true
    }

    fn has_code(&self, _: Address) -> bool {
        true
    }

    fn signed(&self) -> bool {
        self.call.signed
    }

    fn reads(&self) -> u32 {
        self.reads.get()
    }

    fn charge(&self, words: u32) {
        self.reads.set(self.reads.get() + words);
    }

    fn program(&self) -> Program {
        self.program
    }

    fn enter(&mut self, program: Program) -> Program {
        std::mem::replace(&mut self.program, program)
    }

    fn ask(&mut self, program: Program, call: &[u8]) -> Option<u64> {
        let mark = self.chain.mark();
        // Chains read the program's address here.
        self.reads.set(self.reads.get() + 1);
        let asking = self.enter(program);
        let answer = muster_protocol::among::any(self, call);
        self.enter(asking);
        if answer.is_err() {
            self.chain.undo(mark);
        }
        let word: [u8; 32] = answer.ok()?.try_into().ok()?;
        Some(Word::from_be_bytes(word).0[0])
    }
}
