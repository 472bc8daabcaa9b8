//! A host in memory: storage, logs, and a call that is refused leaves nothing behind. One for everything that runs beside a
//! chain, the tests and the simulator alike.

use crate::host::{Host, Program, HISTORY};
use crate::store::layout::{slot, NODES, OWNERSHIP};
use alloy_primitives::{keccak256, B256};
use muster_core::record::Ownership;
use muster_core::word::{Address, Word};
use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Words of a node's record, rounded up to a power of two.
const NODE_WORDS: usize = 16;
/// Plain variables there is room for.
const PLAIN: usize = 64;

/// Hashes the four limbs of a slot; nobody chooses them to collide here.
#[derive(Default)]
pub struct SlotHasher(u64);

impl Hasher for SlotHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        // The limbs of a word come all at once.
        let (limbs, rest) = bytes.as_chunks::<8>();
        limbs.iter().for_each(|limb| self.write_u64(u64::from_ne_bytes(*limb)));
        rest.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    #[inline]
    fn write_u64(&mut self, v: u64) {
        self.0 = (self.0.rotate_left(29) ^ v).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }
    #[inline]
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

/// SplitMix64's finaliser.
#[inline]
fn mix(v: u64) -> u64 {
    let v = v.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let v = (v ^ (v >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let v = (v ^ (v >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    v ^ (v >> 31)
}

/// A hash of 32 bytes that is good enough for luck, at a tenth of keccak's cost.
#[inline]
fn quick_hash(bytes: &[u8]) -> [u8; 32] {
    let mut lanes = [1, 2, 3, 4u64].map(mix);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        lanes = lanes.map(|lane| mix(lane ^ word));
    }
    let mut out = [0; 32];
    for (at, lane) in out.chunks_mut(8).zip(lanes) {
        at.copy_from_slice(&mix(lane ^ bytes.len() as u64).to_le_bytes());
    }
    out
}

/// A log as a chain would record it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Log {
    /// Topics, the event's first.
    pub topics: Vec<B256>,
    /// Unindexed fields.
    pub data: Vec<u8>,
}

impl Log {
    /// A log from its bytes, of which this many words are topics.
    #[inline]
    pub fn new(topics: usize, bytes: &[u8]) -> Log {
        let (head, data) = bytes.split_at(topics * 32);
        Log { topics: head.chunks(32).map(B256::from_slice).collect(), data: data.to_vec() }
    }
}

/// Where the hashes of earlier blocks come from.
#[derive(Clone, Debug)]
pub enum Hashes {
    /// keccak256 of the block's number.
    OfNumbers,
    /// Made up, all from one number.
    Seed(u64),
    /// Those of a real chain.
    Given(HashMap<u64, [u8; 32]>),
}

/// Storage, context and logs in memory.
///
/// Slots are numbers instead of hashes, and node records lie in a row, unless it is made with [`Memory::like_a_chain`].
#[derive(Clone)]
pub struct Memory {
    plain: [Word; PLAIN],
    nodes: Vec<[Word; NODE_WORDS]>,
    words: HashMap<Word, Word, BuildHasherDefault<SlotHasher>>,
    /// Words that the call in progress has overwritten.
    journal: Vec<(Word, Word)>,
    /// Derives slots by keccak256 as a chain does, instead of by number.
    hashed: bool,
    /// Hashes quickly instead of by keccak256.
    quick: bool,
    reads: Cell<u32>,
    /// Logs of all calls so far; take them with [`std::mem::take`].
    pub logs: Vec<Log>,
    /// Whether logs are kept.
    pub keep_logs: bool,
    /// Where the hashes of earlier blocks come from.
    pub hashes: Hashes,
    /// Caller of the next call.
    pub sender: Address,
    /// Wei sent with it.
    pub value: Word,
    /// Its time.
    pub now: u64,
    /// Its block.
    pub block: u64,
    /// Whether a contract makes the next call.
    pub by_contract: bool,
    /// Accounts without code; all others have some.
    pub codeless: Vec<Address>,
    /// Accounts that refuse to be paid.
    pub refusing: Vec<Address>,
    /// Wei paid out by all calls.
    pub paid: u128,
    program: Program,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            plain: [Word::ZERO; PLAIN],
            nodes: Vec::new(),
            words: HashMap::default(),
            journal: Vec::new(),
            hashed: false,
            quick: false,
            reads: Cell::new(0),
            logs: Vec::new(),
            keep_logs: true,
            hashes: Hashes::OfNumbers,
            sender: [0; 20],
            value: Word::ZERO,
            now: 1_700_000_000,
            block: 1_000,
            by_contract: false,
            codeless: Vec::new(),
            refusing: Vec::new(),
            paid: 0,
            program: Program::Any,
        }
    }
}

impl Memory {
    /// An empty storage.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// An empty storage whose luck comes from a quicker hash than keccak256, all of it from one number.
    pub fn quick(seed: u64) -> Memory {
        Memory { quick: true, hashes: Hashes::Seed(seed), ..Memory::default() }
    }

    /// An empty storage whose slots are those of a chain, and block hashes those that it is given.
    pub fn like_a_chain() -> Memory {
        Memory { hashed: true, hashes: Hashes::Given(HashMap::new()), ..Memory::default() }
    }

    /// A storage just created by `deployer`, as the router's init code leaves it.
    pub fn created_by(deployer: Address) -> Memory {
        let mut memory = Memory::new();
        memory.create(deployer);
        memory
    }

    /// Writes the words that the router's init code writes for `deployer`, the next caller.
    pub fn create(&mut self, deployer: Address) {
        self.put(slot(OWNERSHIP), &Ownership { owner: deployer, ..Ownership::default() });
        self.sender = deployer;
    }

    /// Runs a call; if it is refused, its writes, logs and payments are undone.
    #[inline]
    pub fn call<T, E>(&mut self, f: impl FnOnce(&mut Memory) -> Result<T, E>) -> Result<T, E> {
        self.journal.clear();
        let (logs, paid) = (self.logs.len(), self.paid);
        let out = f(self);
        if out.is_err() {
            self.undo(0);
            self.logs.truncate(logs);
            self.paid = paid;
        }
        out
    }

    /// Undoes the call's writes from the `from`-th on.
    fn undo(&mut self, from: usize) {
        for (slot, word) in self.journal.split_off(from).into_iter().rev() {
            *self.place(slot) = word;
        }
    }

    /// Slots that the last call wrote, some more than once.
    pub fn written(&self) -> impl Iterator<Item = Word> + '_ {
        self.journal.iter().map(|(slot, _)| *slot)
    }

    /// All words that are not zero, in no order.
    pub fn words(&self) -> impl Iterator<Item = (Word, Word)> + '_ {
        let plain = self.plain.iter().enumerate().map(|(n, w)| (Word::from(n as u64), *w));
        let nodes = self.nodes.iter().enumerate().flat_map(|(number, record)| {
            let at = move |field| Word([(number as u64) << 8 | field as u64, 0, 0, NODES.into()]);
            record.iter().enumerate().map(move |(field, w)| (at(field), *w))
        });
        let words = self.words.iter().map(|(slot, w)| (*slot, *w));
        plain.chain(nodes).chain(words).filter(|(_, w)| !w.is_zero())
    }

    /// The place of a node's word in its record, if the slot is one.
    #[inline]
    fn node_word(slot: Word) -> Option<(usize, usize)> {
        let [low, b, c, map] = slot.0;
        let (number, field) = ((low >> 8) as usize, (low & 0xff) as usize);
        (b | c == 0 && map == u64::from(NODES) && field < NODE_WORDS && number < 1 << 24).then_some((number, field))
    }

    #[inline]
    fn place(&mut self, slot: Word) -> &mut Word {
        let [low, b, c, d] = slot.0;
        if b | c | d == 0 && low < PLAIN as u64 {
            return &mut self.plain[low as usize];
        }
        match Self::node_word(slot) {
            Some((number, field)) => {
                if number >= self.nodes.len() {
                    self.nodes.resize(number + 1, [Word::ZERO; NODE_WORDS]);
                }
                &mut self.nodes[number][field]
            }
            None => self.words.entry(slot).or_default(),
        }
    }
}

impl Host for Memory {
    #[inline]
    fn load(&self, slot: Word) -> Word {
        self.reads.set(self.reads.get().wrapping_add(1));
        let [low, b, c, d] = slot.0;
        if b | c | d == 0 && low < PLAIN as u64 {
            return self.plain[low as usize];
        }
        match Self::node_word(slot) {
            Some((number, field)) => self.nodes.get(number).map_or(Word::ZERO, |record| record[field]),
            None => self.words.get(&slot).copied().unwrap_or_default(),
        }
    }

    #[inline]
    fn store(&mut self, slot: Word, word: Word) {
        let old = std::mem::replace(self.place(slot), word);
        self.journal.push((slot, old));
    }

    #[inline]
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

    #[inline]
    fn keccak(&self, bytes: &[u8]) -> [u8; 32] {
        if self.quick {
            quick_hash(bytes)
        } else {
            keccak256(bytes).0
        }
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

    #[inline]
    fn block_hash(&self, number: u64) -> Option<[u8; 32]> {
        if number >= self.block || number + HISTORY < self.block {
            return None;
        }
        match &self.hashes {
            Hashes::OfNumbers => Some(self.keccak(&number.to_be_bytes())),
            Hashes::Given(hashes) => hashes.get(&number).copied(),
            Hashes::Seed(seed) => {
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&seed.to_be_bytes());
                bytes[8..].copy_from_slice(&number.to_be_bytes());
                Some(self.keccak(&bytes))
            }
        }
    }

    #[inline]
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
        self.reads.get()
    }

    fn charge(&self, words: u32) {
        self.reads.set(self.reads.get().wrapping_add(words));
    }

    fn has_code(&self, at: Address) -> bool {
        !self.codeless.contains(&at)
    }

    fn signed(&self) -> bool {
        !self.by_contract
    }

    fn program(&self) -> Program {
        self.program
    }

    fn enter(&mut self, program: Program) -> Program {
        std::mem::replace(&mut self.program, program)
    }

    fn ask(&mut self, program: Program, call: &[u8]) -> Option<u64> {
        let (writes, logs) = (self.journal.len(), self.logs.len());
        // A chain reads where the program is.
        self.reads.set(self.reads.get().wrapping_add(1));
        let asking = self.enter(program);
        let answer = crate::among::any(self, call);
        self.enter(asking);
        if answer.is_err() {
            self.undo(writes);
            self.logs.truncate(logs);
        }
        answer.ok().map(|out| Word::from_be_bytes(out.try_into().expect("a number")).0[0])
    }
}
