//! A chain's words in memory, fast, and what its logs mean to the simulator.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use alloy_primitives::{keccak256, B256};
use alloy_sol_types::SolEvent;
use muster_core::word::{Address, Word};
use muster_protocol::host::HISTORY;
use muster_protocol::layout::NODES;
use muster_protocol::native::{solidity_slot, Log, SlotHasher};
use muster_protocol::{Host, IMuster};

/// Words of a node's record, rounded up to a power of two.
const NODE_WORDS: usize = 16;
/// Plain variables there is room for.
const PLAIN: usize = 64;

/// What the engine wants to know of the logs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    Joined { node: u32 },
    Paused { node: u32 },
    Quit { node: u32 },
    KickedOut { node: u32 },
    Excluded { node: u32, until: u64 },
    Readmitted { node: u32 },
    Download { node: u32, model: u64, task: u64 },
    Redrawn { task: u64 },
    Queued { task: u64, ticket: u64 },
    Started { task: u64, node: u32, deadline: u64 },
    Succeeded { task: u64, node: u32, paid: u128 },
    ErrorReported { task: u64, node: u32, refund: u128 },
    Aborted { task: u64, reason: u8, refund: u128 },
}

/// Where the hashes of earlier blocks come from.
#[derive(Debug)]
pub enum Hashes {
    /// Made up, all from one number.
    Seed(u64),
    /// Those of a real chain.
    Given(HashMap<u64, [u8; 32]>),
}

/// SplitMix64's finaliser.
fn mix(v: u64) -> u64 {
    let v = v.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let v = (v ^ (v >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let v = (v ^ (v >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    v ^ (v >> 31)
}

/// A hash of 32 bytes that is good enough for luck, at a tenth of keccak's cost.
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

/// Storage, context and logs of the simulated contract.
///
/// Slots are numbers instead of hashes, node records lie in a row, and luck comes from a quicker hash than keccak, unless it is made with [`Arena::like_a_chain`].
#[derive(Debug)]
pub struct Arena {
    plain: [Word; PLAIN],
    nodes: Vec<[Word; NODE_WORDS]>,
    words: HashMap<Word, Word, BuildHasherDefault<SlotHasher>>,
    /// What the call in progress has overwritten.
    journal: Vec<(Word, Word)>,
    hashed: bool,
    reads: Cell<u32>,
    /// Events since they were last taken.
    pub events: Vec<Event>,
    /// The logs of the last call, if they are kept.
    pub logs: Option<Vec<Log>>,
    pub hashes: Hashes,
    pub sender: Address,
    pub value: Word,
    pub now: u64,
    pub block: u64,
}

impl Arena {
    /// Empty storage with slots of its own.
    pub fn new(seed: u64) -> Self {
        Self {
            plain: [Word::ZERO; PLAIN],
            nodes: Vec::new(),
            words: HashMap::default(),
            journal: Vec::new(),
            hashed: false,
            reads: Cell::new(0),
            events: Vec::new(),
            logs: None,
            hashes: Hashes::Seed(seed),
            sender: [0; 20],
            value: Word::ZERO,
            now: 0,
            block: 0,
        }
    }

    /// Empty storage whose slots, logs and block hashes are those of a chain.
    pub fn like_a_chain() -> Self {
        Self { hashed: true, logs: Some(Vec::new()), hashes: Hashes::Given(HashMap::new()), ..Self::new(0) }
    }

    /// Runs a call; if it is refused, its writes and events are undone.
    pub fn call<T, E>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        self.journal.clear();
        if let Some(logs) = &mut self.logs {
            logs.clear();
        }
        let events = self.events.len();
        let out = run(self);
        if out.is_err() {
            for (slot, word) in std::mem::take(&mut self.journal).into_iter().rev() {
                *self.place(slot) = word;
            }
            self.events.truncate(events);
            if let Some(logs) = &mut self.logs {
                logs.clear();
            }
        }
        out
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
    fn node_word(slot: Word) -> Option<(usize, usize)> {
        let [low, b, c, map] = slot.0;
        let (number, field) = ((low >> 8) as usize, (low & 0xff) as usize);
        (b | c == 0 && map == u64::from(NODES) && field < NODE_WORDS && number < 1 << 24).then_some((number, field))
    }

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

impl Host for Arena {
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

    fn mapping(&self, map: u8, key: Word) -> Word {
        if self.hashed {
            return solidity_slot(map, key);
        }
        // The low eight bits are left to the fields of a struct. Keys are numbers below 2^64, accounts of the
        // simulator (whose upper bytes are zero too), or hashes, of which 240 bits are enough.
        let [a, b, c, d] = key.0;
        if b | c | d == 0 {
            Word([a << 8, a >> 56, 0, map.into()])
        } else {
            Word([a << 8, b, c, d << 8 | u64::from(map) | 1 << 63])
        }
    }

    fn keccak(&self, bytes: &[u8]) -> [u8; 32] {
        if self.hashed {
            keccak256(bytes).0
        } else {
            quick_hash(bytes)
        }
    }

    fn sender(&self) -> Address {
        self.sender
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
        if number >= self.block || number + HISTORY < self.block {
            return None;
        }
        match &self.hashes {
            Hashes::Given(hashes) => hashes.get(&number).copied(),
            Hashes::Seed(seed) => {
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&seed.to_be_bytes());
                bytes[8..].copy_from_slice(&number.to_be_bytes());
                Some(quick_hash(&bytes))
            }
        }
    }

    fn log(&mut self, topics: usize, bytes: &[u8]) {
        let log = Log::new(topics, bytes);
        self.events.extend(decode(&log.topics, &log.data));
        if let Some(logs) = &mut self.logs {
            logs.push(log);
        }
    }

    fn pay(&mut self, _: Address, _: u128) -> bool {
        true
    }

    fn reads(&self) -> u32 {
        self.reads.get()
    }

    fn has_code(&self, _: Address) -> bool {
        true
    }
}

/// The event of a log; none for those that the engine has no use for.
fn decode(topics: &[B256], data: &[u8]) -> Option<Event> {
    let topic = |i: usize| topics.get(i).map_or(0, |t| number(&t.0));
    let word = |i: usize| data.get(i * 32..i * 32 + 32).map_or(0, wide);
    let node = topic(1) as u32;
    let task = topic(1);
    Some(match *topics.first()? {
        IMuster::TaskStarted::SIGNATURE_HASH => Event::Started { task, node: topic(2) as u32, deadline: word(0) as u64 },
        IMuster::TaskSucceeded::SIGNATURE_HASH => Event::Succeeded { task, node: topic(2) as u32, paid: word(1) },
        IMuster::TaskQueued::SIGNATURE_HASH => Event::Queued { task, ticket: word(0) as u64 },
        IMuster::TaskRedrawn::SIGNATURE_HASH => Event::Redrawn { task },
        IMuster::TaskAborted::SIGNATURE_HASH => Event::Aborted { task, reason: topic(3) as u8, refund: word(0) },
        IMuster::TaskErrorReported::SIGNATURE_HASH => Event::ErrorReported { task, node: topic(2) as u32, refund: word(1) },
        IMuster::DownloadRequested::SIGNATURE_HASH => Event::Download { node, model: topic(2), task: topic(3) },
        IMuster::NodeExcluded::SIGNATURE_HASH => Event::Excluded { node, until: word(0) as u64 },
        IMuster::NodeReadmitted::SIGNATURE_HASH => Event::Readmitted { node },
        IMuster::NodeJoined::SIGNATURE_HASH => Event::Joined { node },
        IMuster::NodePaused::SIGNATURE_HASH => Event::Paused { node },
        IMuster::NodeQuit::SIGNATURE_HASH => Event::Quit { node },
        IMuster::NodeKickedOut::SIGNATURE_HASH => Event::KickedOut { node },
        _ => return None,
    })
}

/// The low 64 bits of a word.
fn number(word: &[u8]) -> u64 {
    wide(word) as u64
}

/// The low 128 bits of a word.
fn wide(word: &[u8]) -> u128 {
    word[16..32].iter().fold(0, |v, &b| v << 8 | u128::from(b))
}
