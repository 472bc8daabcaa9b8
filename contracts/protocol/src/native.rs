//! A host in memory: storage as a map, logs as a list, and a call that fails leaves nothing behind.

use crate::host::{Host, HISTORY};
use crate::layout::{slot, OWNERSHIP};
use alloy_primitives::{keccak256, B256};
use muster_core::record::Ownership;
use muster_core::word::{Address, Word};
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes the four limbs of a slot; nobody chooses them to collide here.
#[derive(Default)]
pub struct SlotHasher(u64);

impl Hasher for SlotHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.chunks(8).for_each(|c| self.write_u64(c.iter().fold(0, |v, &b| v << 8 | b as u64)));
    }
    fn write_u64(&mut self, v: u64) {
        self.0 = (self.0.rotate_left(29) ^ v).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }
    fn write_usize(&mut self, v: usize) {
        self.write_u64(v as u64);
    }
}

/// keccak256(key . map), where Solidity, and a chain's [`Host`], put `mapping[key]` of the mapping declared at slot `map`.
pub fn solidity_slot(map: u8, key: Word) -> Word {
    let mut bytes = [0; 64];
    bytes[..32].copy_from_slice(&key.to_be_bytes());
    bytes[63] = map;
    Word::from_be_bytes(keccak256(bytes).0)
}

/// The contract's address in memory.
pub const HERE: Address = [0xcc; 20];

/// A log as a chain would record it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Log {
    /// Topics, the event's first.
    pub topics: Vec<B256>,
    /// Unindexed fields.
    pub data: Vec<u8>,
}

/// Storage, context and logs in memory.
#[derive(Default)]
pub struct Memory {
    words: HashMap<Word, Word, BuildHasherDefault<SlotHasher>>,
    /// What a failing call has to put back.
    journal: Vec<(Word, Word)>,
    /// Logs of all calls so far; take them with [`std::mem::take`].
    pub logs: Vec<Log>,
    /// Whether logs are kept.
    pub keep_logs: bool,
    /// Caller of the next call.
    pub sender: Address,
    /// Wei sent with it.
    pub value: Word,
    /// Its time.
    pub now: u64,
    /// Its block.
    pub block: u64,
    /// Words read so far, each access counted.
    pub loads: RefCell<u64>,
    /// Derives slots by keccak256 as a chain does, instead of by number.
    pub hashed: bool,
    /// Accounts without code; all others have some.
    pub codeless: Vec<Address>,
    /// Accounts that refuse to be paid.
    pub refusing: Vec<Address>,
    /// Wei paid out by all calls.
    pub paid: u128,
}

impl Memory {
    /// An empty storage that keeps logs.
    pub fn new() -> Memory {
        Memory { keep_logs: true, now: 1_700_000_000, block: 1_000, ..Memory::default() }
    }

    /// A storage just created by `deployer`, as the router's init code leaves it.
    pub fn created_by(deployer: Address) -> Memory {
        let mut memory = Memory::new();
        memory.put(slot(OWNERSHIP), &Ownership { owner: deployer, ..Ownership::default() });
        memory.sender = deployer;
        memory
    }

    /// Runs a call; if it is refused, its writes and logs are undone.
    pub fn call<T, E>(&mut self, f: impl FnOnce(&mut Memory) -> Result<T, E>) -> Result<T, E> {
        self.journal.clear();
        let (logs, paid) = (self.logs.len(), self.paid);
        let out = f(self);
        if out.is_err() {
            for (slot, word) in std::mem::take(&mut self.journal).into_iter().rev() {
                self.words.insert(slot, word);
            }
            self.logs.truncate(logs);
            self.paid = paid;
        }
        out
    }

    /// Words in storage.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether storage is empty.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

impl Log {
    /// A log from its bytes, of which this many words are topics.
    pub fn new(topics: usize, bytes: &[u8]) -> Log {
        let (head, data) = bytes.split_at(topics * 32);
        Log { topics: head.chunks(32).map(B256::from_slice).collect(), data: data.to_vec() }
    }
}

impl Host for Memory {
    fn load(&self, slot: Word) -> Word {
        *self.loads.borrow_mut() += 1;
        self.words.get(&slot).copied().unwrap_or_default()
    }

    fn store(&mut self, slot: Word, word: Word) {
        let old = self.words.insert(slot, word).unwrap_or_default();
        self.journal.push((slot, old));
    }

    fn mapping(&self, map: u8, key: Word) -> Word {
        if self.hashed {
            return solidity_slot(map, key);
        }
        // Only numbers, addresses and hashes are keys, so four limbs with the map's number mixed in
        // are as good as a hash; 256 words are left free below each for a struct's fields.
        let [a, b, c, d] = key.0;
        if b | c | d == 0 {
            return Word([a << 8, a >> 56, 0, map as u64]);
        }
        Word([(a ^ d.rotate_left(17)) << 8, b, c, d.rotate_left(9) ^ a >> 56 ^ ((map as u64) << 56 | 1 << 63)])
    }

    fn keccak(&self, bytes: &[u8]) -> [u8; 32] {
        keccak256(bytes).0
    }

    fn sender(&self) -> Address {
        self.sender
    }

    fn here(&self) -> Address {
        HERE
    }

    fn value(&self) -> Word {
        self.value
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn block(&self) -> u64 {
        self.block
    }

    fn block_hash(&self, number: u64) -> Option<[u8; 32]> {
        (number < self.block && number + HISTORY >= self.block).then(|| keccak256(number.to_be_bytes()).0)
    }

    fn log(&mut self, topics: usize, bytes: &[u8]) {
        if self.keep_logs {
            self.logs.push(Log::new(topics, bytes));
        }
    }

    fn pay(&mut self, to: Address, wei: u128) -> bool {
        let takes = !self.refusing.contains(&to);
        if takes {
            self.paid += wei;
        }
        takes
    }

    fn reads(&self) -> u32 {
        *self.loads.borrow() as u32
    }

    fn has_code(&self, at: Address) -> bool {
        !self.codeless.contains(&at)
    }
}
