//! The interface that Muster needs of the chain below it.

use muster_core::word::{Address, Packed, Word};

#[cfg(feature = "chain")]
pub mod chain;
#[cfg(any(test, feature = "native"))]
pub mod native;

/// Blocks whose hash can be had: the range of Arbitrum's history contract (EIP-2935).
pub const HISTORY: u64 = 393_168;

/// A program behind the router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Program {
    /// All of them in one, which no chain could hold.
    Any,
    /// Joining, staking, models.
    Nodes,
    /// Creating a task.
    Tasks,
    /// Answers, draws, and work for freed nodes. Beside [`Program::Tasks`] it alone draws Pending tasks of one node, starts queued ones and
    /// queues them.
    Work,
    /// Validation, from a commitment to its judgement.
    Groups,
    /// It alone draws several nodes at once, and begins the work of called nodes.
    Draws,
    /// Choosing nodes by their ratings.
    Reputation,
    /// Everything else that changes something.
    Admin,
    /// Reading.
    Lens,
    /// Many tasks at once.
    Batches,
}

/// Storage, context and logs of the call in progress.
pub trait Host {
    /// The word at `slot`.
    fn load(&self, slot: Word) -> Word;
    /// Writes the word at `slot`.
    fn store(&mut self, slot: Word, word: Word);
    /// The slot of `mapping[key]`, the mapping declared at slot `map`: keccak256(key . map) on a chain.
    fn mapping(&self, map: u8, key: Word) -> Word;
    /// keccak256.
    fn keccak(&self, bytes: &[u8]) -> [u8; 32];
    /// The caller.
    fn sender(&self) -> Address;
    /// The contract's own address.
    fn here(&self) -> Address;
    /// Wei sent with the call.
    fn value(&self) -> Word;
    /// Seconds since 1970.
    fn now(&self) -> u64;
    /// Number of the L2 block in progress.
    fn block(&self) -> u64;
    /// Hash of an earlier L2 block; none if it is not earlier or more than [`HISTORY`] blocks old.
    fn block_hash(&self, number: u64) -> Option<[u8; 32]>;
    /// Writes a log: its topics, this many words, and then its data.
    fn log(&mut self, topics: usize, bytes: &[u8]);
    /// Sends wei with all gas left; gives whether it arrived. Called last, after everything is written.
    fn pay(&mut self, to: Address, wei: u128) -> bool;
    /// Words read so far, each access counted, and those charged.
    fn reads(&self) -> u32;
    /// Charges work that costs as much as reading so many words, so that less is done beside it.
    fn charge(&self, words: u32);
    /// Gas that is left to the program; without end where none is counted.
    fn gas(&self) -> u64 {
        u64::MAX
    }
    /// Whether there is code at an address.
    fn has_code(&self, at: Address) -> bool;
    /// Whether the caller has signed the transaction and has no code. Then nothing can look at the call's outcome and revert it.
    fn signed(&self) -> bool;
    /// The program that runs.
    fn program(&self) -> Program;
    /// Notes that a program runs now, on a host that runs them all; gives the one before.
    fn enter(&mut self, program: Program) -> Program;
    /// Has another program answer a call of [`crate::inner`] on this storage. The program sees all words written so far, and its own writes
    /// stay afterwards. Returns its answer; none if it refused, and then none of its writes remain.
    fn ask(&mut self, program: Program, call: &[u8]) -> Option<u64>;

    /// Whether a program's own work is done here, and not by asking it: each is in one program only, for they are large.
    #[inline(always)]
    fn is(&self, program: Program) -> bool
    where
        Self: Sized,
    {
        self.program() == program || self.program() == Program::Any
    }

    /// Whether Pending tasks of one node are drawn here, and queued ones started: both programs that applications and nodes call have the
    /// code for these most frequent steps.
    #[inline(always)]
    fn starts_tasks(&self) -> bool
    where
        Self: Sized,
    {
        self.is(Program::Work) || self.is(Program::Tasks)
    }

    /// The record at `slot`.
    #[inline]
    fn get<R: Packed>(&self, slot: Word) -> R
    where
        Self: Sized,
    {
        R::unpack(self.load(slot))
    }

    /// Writes a record at `slot`.
    #[inline]
    fn put<R: Packed>(&mut self, slot: Word, record: &R)
    where
        Self: Sized,
    {
        self.store(slot, record.pack());
    }
}

/// `slot + n`, as the words of a struct follow each other.
#[inline]
pub fn offset(slot: Word, n: u64) -> Word {
    let [a, b, c, d] = slot.0;
    let (a, c0) = a.overflowing_add(n);
    let (b, c1) = b.overflowing_add(c0 as u64);
    let (c, c2) = c.overflowing_add(c1 as u64);
    Word([a, b, c, d.wrapping_add(c2 as u64)])
}
