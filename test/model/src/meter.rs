//! A host for tests, over a storage in memory. It counts the cost of calls (storage, logs, the router, the start of the program), for
//! attacks that make calls expensive, and its hashes can be given beforehand.

use crate::proof;
use crate::world::{named, World};
use muster_core::word::{Address, Word};
use muster_protocol::host::Program;
use muster_protocol::native::Memory;
use muster_protocol::{programs, Host, Network, Result};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};

/// The most that a transaction may cost, whatever others have done (docs/generated/gas.md).
pub const MOST_GAS: u64 = 1_000_000;
/// A transaction itself, its calldata, the router, and the start of a program that is not cached.
pub const START_GAS: u64 = 21_000 + 2_000 + 25_000;

/// The result of an attack, for docs/generated/proof.md.
pub fn priced(attack: &str, with: &str, comes_to: &str) {
    proof("attack", &[("attack", &attack), ("with", &with), ("comes to", &comes_to)]);
}

/// Counts a chain's charges for storage and logs: words touched first, words left different, bytes logged.
pub struct Meter<'a> {
    mem: &'a mut Memory,
    touched: RefCell<HashSet<Word>>,
    before: HashMap<Word, Word>,
    /// The words overwritten, as they were, in order.
    written: Vec<(Word, Word)>,
    logged: u64,
    /// The values of hashes, limb after limb.
    luck: Option<RefCell<VecDeque<u64>>>,
}

impl<'a> Meter<'a> {
    /// Over a storage, at the start of a transaction.
    pub fn new(mem: &'a mut Memory) -> Self {
        Meter { mem, touched: RefCell::default(), before: HashMap::new(), written: Vec::new(), logged: 0, luck: None }
    }
    /// The same, with loaded luck: its hashes give these numbers one after the other, and then only the greatest.
    pub fn loaded(mem: &'a mut Memory, luck: impl Into<VecDeque<u64>>) -> Self {
        Meter { luck: Some(RefCell::new(luck.into())), ..Meter::new(mem) }
    }
    /// Whether it has read or written a word.
    pub fn has_touched(&self, slot: Word) -> bool {
        self.touched.borrow().contains(&slot)
    }
    /// A word, without counting it as one that the call has read.
    fn peek(&self, slot: Word) -> Word {
        let word = self.mem.load(slot);
        // Takes one away: the count wraps.
        self.mem.charge(u32::MAX);
        word
    }
    /// Gas until now.
    pub fn gas(&self) -> u64 {
        let writes = self.before.iter().map(|(slot, old)| match self.peek(*slot) {
            new if new == *old => 0,
            _ if old.is_zero() => 20_000,
            _ => 2_900,
        });
        START_GAS + self.touched.borrow().len() as u64 * 2_100 + writes.sum::<u64>() + self.logged
    }
}

impl Host for Meter<'_> {
    fn load(&self, slot: Word) -> Word {
        self.touched.borrow_mut().insert(slot);
        self.mem.load(slot)
    }
    fn store(&mut self, slot: Word, word: Word) {
        self.touched.borrow_mut().insert(slot);
        let old = self.peek(slot);
        self.before.entry(slot).or_insert(old);
        self.written.push((slot, old));
        self.mem.store(slot, word);
    }
    fn mapping(&self, map: u8, key: Word) -> Word {
        self.mem.mapping(map, key)
    }
    fn keccak(&self, bytes: &[u8]) -> [u8; 32] {
        let Some(luck) = &self.luck else { return self.mem.keccak(bytes) };
        let mut luck = luck.borrow_mut();
        let [a, b, c, d] = core::array::from_fn(|_| luck.pop_front().unwrap_or(u64::MAX));
        // Taken from the last limb on.
        Word([d, c, b, a]).to_be_bytes()
    }
    fn sender(&self) -> Address {
        self.mem.sender()
    }
    fn here(&self) -> Address {
        self.mem.here()
    }
    fn value(&self) -> Word {
        self.mem.value()
    }
    fn now(&self) -> u64 {
        self.mem.now()
    }
    fn block(&self) -> u64 {
        self.mem.block()
    }
    fn block_hash(&self, number: u64) -> Option<[u8; 32]> {
        self.mem.block_hash(number)
    }
    fn log(&mut self, topics: usize, bytes: &[u8]) {
        self.logged += 375 * (1 + topics as u64) + 8 * (bytes.len() - topics * 32) as u64;
        self.mem.log(topics, bytes);
    }
    fn pay(&mut self, to: Address, wei: u128) -> bool {
        self.mem.pay(to, wei)
    }
    fn reads(&self) -> u32 {
        self.mem.reads()
    }
    fn charge(&self, words: u32) {
        self.mem.charge(words);
    }
    fn has_code(&self, at: Address) -> bool {
        self.mem.has_code(at)
    }
    fn signed(&self) -> bool {
        self.mem.signed()
    }
    fn program(&self) -> Program {
        self.mem.program()
    }
    fn enter(&mut self, program: Program) -> Program {
        self.mem.enter(program)
    }
    fn ask(&mut self, program: Program, call: &[u8]) -> Option<u64> {
        let (written, logs) = (self.written.len(), self.mem.logs.len());
        // As in memory without a meter, a chain reads where the program is.
        self.charge(1);
        let asking = self.enter(program);
        let answer = muster_protocol::among::any(self, call);
        self.enter(asking);
        if answer.is_err() {
            for (slot, old) in self.written.split_off(written).into_iter().rev() {
                self.mem.store(slot, old);
            }
            self.mem.logs.truncate(logs);
        }
        answer.ok().map(|out| Word::from_be_bytes(out.try_into().expect("a number")).0[0])
    }
}

/// Answers a call, and tells its gas, whether it is refused or not.
pub fn answer(mem: &mut Memory, data: &[u8], gas: &mut u64) -> Result<Vec<u8>> {
    let mut meter = Meter::new(mem);
    let out = programs::answer(&mut meter, data);
    *gas = meter.gas();
    out
}

/// A call's gas, and its result; whether accepted or refused, it is played and stays if accepted.
pub fn metered<T>(
    w: &mut World,
    from: Address,
    value: u128,
    call: impl FnOnce(&mut Network<Meter>) -> Result<T>,
) -> (u64, String) {
    metered_on(w, from, value, true, call)
}

/// The same of a call that chooses itself which draws it serves.
pub fn metered_alone<T>(
    w: &mut World,
    from: Address,
    value: u128,
    call: impl FnOnce(&mut Network<Meter>) -> Result<T>,
) -> (u64, String) {
    metered_on(w, from, value, false, call)
}

fn metered_on<T>(
    w: &mut World,
    from: Address,
    value: u128,
    serves: bool,
    call: impl FnOnce(&mut Network<Meter>) -> Result<T>,
) -> (u64, String) {
    let mut gas = 0;
    let out = w.raw(from, value, |m| {
        let mut meter = Meter::new(m);
        let net = if serves { Network::open_and_serve(&mut meter) } else { Network::open(&mut meter) };
        let out = net.and_then(|mut net| {
            let out = call(&mut net);
            net.close();
            out
        });
        gas = meter.gas();
        out
    });
    (gas, named(out))
}
