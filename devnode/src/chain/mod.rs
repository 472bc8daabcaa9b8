//! The chain: blocks, time, snapshots and accounts around the execution half.
//!
//! Every transaction makes a block of its own at once, as a quiet Arbitrum chain does, unless mining is switched off.
//! A [`Chain`] is a handle: clones share one chain. Nothing here copies the state: [`State`] is persistent, so an old
//! state is only another root.
//!
//! A change holds the chain's writer lock from its first look to its last write, and runs transactions on a copy of the state. The lock
//! that readers need is taken only to put the finished block in place. So reads never wait for an execution.
//!
//! | module | contents |
//! | --- | --- |
//! | here | the chain itself: its blocks, moving it in time and taking it back |
//! | [`block`] | blocks, receipts and logs |
//! | `mining` | from a signed transaction to a block |
//! | `pool` | transactions that wait while mining is off |
//! | `call` | calls and estimates |
//! | `persist` | the chain in a file |
//! | `journal` | the log of changes since |
//! | `time` | the clock, and the fields that the next block takes from before |
//! | `trace` | mined transactions once more, with their trace |
//! | `simulate` | blocks that are not kept (`eth_simulateV1`) |
//! | `node_interface` | Nitro's answers at 0xc8 |
//! | [`config`] | the configuration a chain starts with |
//! | [`error`] | why something was refused |

pub mod block;
mod call;
pub mod config;
pub mod error;
mod journal;
mod mining;
mod node_interface;
mod persist;
mod pool;
mod simulate;
mod time;
mod trace;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use alloy_consensus::transaction::Recovered;
use alloy_consensus::TxEnvelope;
use alloy_primitives::{Address, Bytes, B256, U256};
use alloy_rpc_types_eth::{BlockId, BlockNumberOrTag, Filter, FilterBlockOption, Log, TransactionRequest};
use alloy_signer_local::{coins_bip39::English, MnemonicBuilder, PrivateKeySigner};
use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::sync::broadcast;

use crate::evm::Evm;
use crate::fork::{self, Fork};
use crate::state::State;
use block::{seal, Setting, PREVRANDAO};
pub use block::{MinedBlock, MinedTx};
pub use config::*;
pub use error::{BlockError, CallError, SendError, TimeError};
pub use journal::StateError;
use journal::{Journal, Op};
pub use mining::{Mined, Submitted};
pub use node_interface::NODE_INTERFACE;
use pool::Pool;
pub use pool::{Waiting, MAX_POOL};
pub use simulate::Simulated;
use time::{Time, Upcoming};
pub(crate) use trace::checked_trace;
pub use trace::{AccountView, Touched};

/// A transaction or call, as the `eth_` methods take it. Missing fields are filled in.
pub type TxRequest = TransactionRequest;

/// How many L2 hashes ArbSys and BLOCKHASH can see.
const RECENT_HASHES: usize = 256;
/// Blocks a slow subscriber may fall behind.
const SUBSCRIBER_BUFFER: usize = 16_384;
/// Pending transactions whose hashes are remembered for polling clients.
const ARRIVALS: usize = 16_384;

/// A handle on a chain.
#[derive(Clone, Debug)]
pub struct Chain(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: Config,
    evm: Evm,
    signers: HashMap<Address, PrivateKeySigner>,
    accounts: Vec<Address>,
    inner: RwLock<Inner>,
    /// Held by the writer of a change, for as long as the change takes.
    writer: Mutex<()>,
    interval: Mutex<IntervalClock>,
    /// Where the chain is kept.
    journal: Mutex<Option<Journal>>,
    news: broadcast::Sender<Arc<MinedBlock>>,
    arrivals: broadcast::Sender<Arc<Recovered<TxEnvelope>>>,
}

/// Proof that nobody else changes the chain.
type Writer<'a> = MutexGuard<'a, ()>;

#[derive(Debug, Default)]
struct IntervalClock {
    milliseconds: u64,
    /// Raised with each new setting.
    turn: u64,
}

#[derive(Debug)]
struct Inner {
    state: State,
    /// Oldest first, never empty.
    blocks: VecDeque<Stored>,
    by_hash: HashMap<B256, u64>,
    by_tx: HashMap<B256, u64>,
    /// Hashes before the next block, newest last; more than needed, so that it is trimmed seldom.
    recent: Arc<Vec<(u64, B256)>>,
    /// Those of the chain that this one is a copy of, newest first.
    earlier: Vec<(u64, B256)>,
    genesis_time: u64,
    time: Time,
    upcoming: Upcoming,
    automine: bool,
    pool: Pool,
    arrivals: Arrivals,
    /// Blocks ever put at the end, those taken back since included.
    sequence: u64,
    snapshots: Vec<Snapshot>,
    next_snapshot: u64,
    impersonated: HashSet<Address>,
    impersonate_all: bool,
    instance: B256,
}

#[derive(Debug)]
struct Stored {
    block: Arc<MinedBlock>,
    state: Option<State>,
    /// Ascends along the chain, and is never used twice: a block in the place of one taken back has another.
    sequence: u64,
}

/// Hashes of transactions in the order in which they came.
#[derive(Debug, Default)]
struct Arrivals {
    /// How many came before the oldest that is kept.
    first: u64,
    hashes: VecDeque<B256>,
}

impl Arrivals {
    fn push(&mut self, hash: B256) {
        self.hashes.push_back(hash);
        if self.hashes.len() > ARRIVALS {
            self.hashes.pop_front();
            self.first += 1;
        }
    }
}

#[derive(Debug)]
struct Snapshot {
    id: u64,
    head: Stored,
    recent: Arc<Vec<(u64, B256)>>,
    time: Time,
    upcoming: Upcoming,
    pool: Pool,
    state: State,
}

impl Inner {
    fn head(&self) -> &Arc<MinedBlock> {
        &self.blocks[self.blocks.len() - 1].block
    }

    /// The newest block, to be put back later.
    fn head_again(&self) -> Stored {
        let head = &self.blocks[self.blocks.len() - 1];
        Stored { block: head.block.clone(), state: None, sequence: head.sequence }
    }

    fn stored(&self, number: u64) -> Option<&Stored> {
        let first = self.blocks[0].block.header.number;
        self.blocks.get(usize::try_from(number.checked_sub(first)?).ok()?)
    }

    fn resolve(&self, id: BlockId) -> Result<&Stored, BlockError> {
        let number = match id {
            BlockId::Hash(hash) => *self.by_hash.get(&hash.block_hash).ok_or(BlockError::Unknown)?,
            BlockId::Number(BlockNumberOrTag::Number(number)) => number,
            BlockId::Number(BlockNumberOrTag::Earliest) => 0,
            BlockId::Number(_) => self.head().header.number,
        };
        self.stored(number).ok_or(BlockError::Unknown)
    }

    /// The state after a block.
    fn state_at(&self, id: BlockId) -> Result<State, BlockError> {
        let stored = self.resolve(id)?;
        if stored.block.hash == self.head().hash {
            return Ok(self.state.clone());
        }
        stored.state.clone().ok_or_else(|| BlockError::StateNotKept {
            number: stored.block.header.number,
            oldest: self.blocks.iter().find(|s| s.state.is_some()).map_or(self.head().header.number, |s| s.block.header.number),
        })
    }

    /// Hashes a block can see, and perhaps some more.
    fn hashes_before(&self, number: u64) -> Arc<Vec<(u64, B256)>> {
        if self.recent.first().is_some_and(|(oldest, _)| *oldest == 0 || oldest + RECENT_HASHES as u64 <= number) {
            return self.recent.clone();
        }
        let oldest = number.saturating_sub(RECENT_HASHES as u64);
        let earlier = self.earlier.iter().rev().copied().filter(|(n, _)| (oldest..number).contains(n));
        let kept = (oldest..number).filter_map(|n| Some((n, self.stored(n)?.block.hash)));
        Arc::new(earlier.chain(kept).collect())
    }
}

impl Inner {
    fn snapshot(&mut self, id: u64) {
        self.next_snapshot = id + 1;
        self.snapshots.push(Snapshot {
            id,
            head: self.head_again(),
            recent: self.recent.clone(),
            time: self.time,
            upcoming: self.upcoming,
            pool: self.pool.clone(),
            state: self.state.clone(),
        });
    }

    fn revert(&mut self, id: u64) -> bool {
        let Some(position) = self.snapshots.iter().position(|s| s.id == id) else { return false };
        let Some(snapshot) = self.snapshots.drain(position..).next() else { return false };
        let number = snapshot.head.block.header.number;
        while self.blocks.back().is_some_and(|s| s.block.header.number > number) {
            if let Some(stored) = self.blocks.pop_back() {
                forget(&mut self.by_hash, &mut self.by_tx, &stored.block);
            }
        }
        // With little history the block itself may have been dropped.
        if self.blocks.is_empty() {
            self.by_hash.insert(snapshot.head.block.hash, number);
            for tx in &snapshot.head.block.transactions {
                self.by_tx.insert(*tx.tx.tx_hash(), number);
            }
            self.blocks.push_back(snapshot.head);
        }
        if let Some(last) = self.blocks.back_mut() {
            last.state = None;
        }
        self.state = snapshot.state;
        self.recent = snapshot.recent;
        self.time = snapshot.time;
        self.upcoming = snapshot.upcoming;
        self.pool = snapshot.pool;
        true
    }

    /// Forgets all blocks and everything that depends on them.
    fn clear(&mut self) {
        self.automine = true;
        self.pool = Pool::default();
        self.snapshots.clear();
        self.impersonated.clear();
        self.impersonate_all = false;
        self.blocks.clear();
        self.by_hash.clear();
        self.by_tx.clear();
        self.recent = Arc::default();
        self.instance = B256::random();
    }
}

impl Chain {
    /// A new chain with its genesis block.
    ///
    /// # Errors
    /// An ArbOS version that is not known, in words.
    pub fn new(config: Config) -> Result<Self, String> {
        let evm = Evm::new(crate::evm::Config { chain_id: config.chain_id, arbos: config.arbos_version, ..Default::default() })?;
        let mut keys =
            vec![NITRO_DEV_KEY.parse::<PrivateKeySigner>().map_err(|e| format!("the development key does not parse: {e}"))?];
        for index in 0..config.accounts {
            let signer = MnemonicBuilder::<English>::default()
                .phrase(TEST_MNEMONIC)
                .index(index)
                .and_then(|b| b.build())
                .map_err(|e| format!("account {index} can't be derived: {e}"))?;
            keys.push(signer);
        }
        let accounts: Vec<Address> = keys.iter().map(PrivateKeySigner::address).collect();
        if config.fork.is_some() && config.state_root {
            return Err("a copy of another chain has no root of its state: that would take all of it".into());
        }
        let state = genesis_state(&evm, &accounts, &config);
        let (time, genesis_time) = beginning(&config);
        let upcoming = Upcoming::of(&config);
        let mut chain = Shared {
            evm,
            signers: keys.into_iter().map(|k| (k.address(), k)).collect(),
            accounts,
            inner: RwLock::new(Inner {
                state,
                blocks: VecDeque::new(),
                by_hash: HashMap::new(),
                by_tx: HashMap::new(),
                recent: Arc::default(),
                earlier: Vec::new(),
                genesis_time,
                time,
                upcoming,
                automine: true,
                pool: Pool::default(),
                arrivals: Arrivals::default(),
                sequence: 0,
                snapshots: Vec::new(),
                next_snapshot: 1,
                impersonated: HashSet::new(),
                impersonate_all: false,
                instance: B256::random(),
            }),
            writer: Mutex::new(()),
            interval: Mutex::default(),
            journal: Mutex::default(),
            news: broadcast::channel(SUBSCRIBER_BUFFER).0,
            arrivals: broadcast::channel(SUBSCRIBER_BUFFER).0,
            config,
        };
        let inner = chain.inner.get_mut();
        append_first(inner, &chain.config, genesis_time);
        Ok(Self(Arc::new(chain)))
    }

    /// The configuration the chain started with.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The chain this one is a copy of.
    pub fn fork(&self) -> Option<&Arc<Fork>> {
        self.0.config.fork.as_ref()
    }

    /// The execution half.
    pub fn evm(&self) -> &Evm {
        &self.0.evm
    }

    /// Funded accounts: the Nitro development account, then those of the test mnemonic.
    pub fn accounts(&self) -> &[Address] {
        &self.0.accounts
    }

    /// The key of a funded account.
    pub fn signer(&self, account: Address) -> Option<&PrivateKeySigner> {
        self.0.signers.get(&account)
    }

    /// The newest block.
    pub fn head(&self) -> Arc<MinedBlock> {
        self.0.inner.read().head().clone()
    }

    /// A block. `None` if there is none, or it is no longer kept.
    pub fn block(&self, id: BlockId) -> Option<Arc<MinedBlock>> {
        self.0.inner.read().resolve(id).ok().map(|s| s.block.clone())
    }

    /// The newest state. Costs nothing, and stays as it is while the chain goes on.
    pub fn state(&self) -> State {
        self.0.inner.read().state.clone()
    }

    /// The state after a block; for `pending`, after the waiting transactions.
    ///
    /// # Errors
    /// The block is unknown, or its state is no longer kept.
    pub fn state_at(&self, id: BlockId) -> Result<State, BlockError> {
        if id.is_pending() {
            if let Some(run) = self.run_waiting() {
                return Ok(run.state);
            }
        }
        self.0.inner.read().state_at(id)
    }

    /// The block that would be mined now of the waiting transactions; `None` if none waits.
    pub fn pending_block(&self) -> Option<MinedBlock> {
        let run = self.run_waiting()?;
        let root = if self.0.config.state_root { run.state.root() } else { B256::ZERO };
        let ran = run.ran.iter().map(|(tx, outcome)| (tx.clone(), outcome)).collect();
        Some(seal(&run.setting, self.0.config.arbos_version, root, ran))
    }

    /// A transaction that waits.
    pub fn waiting(&self, hash: B256) -> Option<Arc<Waiting>> {
        self.0.inner.read().pool.get(hash).cloned()
    }

    /// All waiting transactions by sender and nonce: first those that the next block can take, then those that lack earlier nonces.
    pub fn waiting_all(&self) -> [Vec<Arc<Waiting>>; 2] {
        let inner = self.0.inner.read();
        let mut lists = [Vec::new(), Vec::new()];
        for (sender, waiting) in inner.pool.iter() {
            let next = inner.pool.next_nonce(*sender, inner.state.nonce(*sender));
            for (nonce, tx) in waiting {
                lists[usize::from(*nonce >= next)].push(tx.clone());
            }
        }
        lists
    }

    /// Wei per gas of the next block.
    pub fn base_fee(&self) -> u64 {
        self.0.inner.read().upcoming.base_fee
    }

    /// Gas limit of the next block.
    pub fn gas_limit(&self) -> u64 {
        self.0.inner.read().upcoming.gas_limit
    }

    /// Coinbase of the next block.
    pub fn coinbase(&self) -> Address {
        self.0.inner.read().upcoming.coinbase
    }

    /// The position from which polls for blocks and for pending transactions begin.
    pub(crate) fn position(&self) -> (u64, u64) {
        let inner = self.0.inner.read();
        (inner.sequence, inner.arrivals.first + inner.arrivals.hashes.len() as u64)
    }

    /// The blocks that came after one position and not after another, and are still there, oldest first.
    pub(crate) fn blocks_between(&self, after: u64, until: u64) -> Vec<Arc<MinedBlock>> {
        let inner = self.0.inner.read();
        let from = inner.blocks.partition_point(|stored| stored.sequence <= after);
        let end = inner.blocks.partition_point(|stored| stored.sequence <= until);
        inner.blocks.range(from..end.max(from)).map(|stored| stored.block.clone()).collect()
    }

    /// The transactions that came after a position and not after another, as far as they are remembered.
    pub(crate) fn arrivals_between(&self, after: u64, until: u64) -> Vec<B256> {
        let Arrivals { first, hashes } = &self.0.inner.read().arrivals;
        let index = |position: u64| usize::try_from(position.saturating_sub(*first)).unwrap_or(usize::MAX).min(hashes.len());
        hashes.range(index(after)..index(until).max(index(after))).copied().collect()
    }

    /// The block of a transaction and its place in it.
    pub fn transaction(&self, hash: B256) -> Option<(Arc<MinedBlock>, usize)> {
        let inner = self.0.inner.read();
        let block = inner.stored(*inner.by_tx.get(&hash)?)?.block.clone();
        let index = block.transactions.iter().position(|t| *t.tx.tx_hash() == hash)?;
        Some((block, index))
    }

    /// Every new block, from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<MinedBlock>> {
        self.0.news.subscribe()
    }

    /// Every transaction that is taken, from now on.
    pub fn subscribe_arrivals(&self) -> broadcast::Receiver<Arc<Recovered<TxEnvelope>>> {
        self.0.arrivals.subscribe()
    }

    /// Logs that match a filter, oldest first.
    ///
    /// # Errors
    /// A block of the range is unknown or no longer kept, the range begins beyond the newest block, or there are too
    /// many.
    pub fn logs(&self, filter: &Filter) -> Result<Vec<Log>, BlockError> {
        let (mut from, to) = {
            let inner = self.0.inner.read();
            let head = inner.head().header.number;
            let (from, to) = match filter.block_option {
                FilterBlockOption::AtBlockHash(hash) => {
                    let number = *inner.by_hash.get(&hash).ok_or(BlockError::Unknown)?;
                    (number, number)
                }
                FilterBlockOption::Range { from_block, to_block } => {
                    let number = |tag: Option<BlockNumberOrTag>| match tag {
                        Some(BlockNumberOrTag::Number(number)) => number,
                        Some(BlockNumberOrTag::Earliest) => 0,
                        _ => head,
                    };
                    (number(from_block), number(to_block))
                }
            };
            if from > to {
                return Err(BlockError::Range);
            }
            if to > head {
                return Err(BlockError::Future);
            }
            if from < inner.blocks[0].block.header.number {
                return Err(BlockError::Unknown);
            }
            (from, to)
        };
        let (mut logs, mut bytes) = (Vec::new(), 0);
        while from <= to {
            // In portions, since a waiting writer holds up all readers.
            let end = to.min(from.saturating_add(1_000));
            let blocks: Vec<_> = {
                let inner = self.0.inner.read();
                (from..=end)
                    .filter_map(|number| inner.stored(number))
                    .filter(|stored| filter.matches_bloom(stored.block.header.logs_bloom))
                    .map(|stored| stored.block.clone())
                    .collect()
            };
            for block in blocks {
                collect_logs(filter, &block, &mut logs, &mut bytes)?;
            }
            from = end + 1;
        }
        Ok(logs)
    }

    /// Lets the node send for an address whose key it does not hold.
    pub fn impersonate(&self, address: Address, on: bool) {
        let mut inner = self.0.inner.write();
        if on {
            inner.impersonated.insert(address);
        } else {
            inner.impersonated.remove(&address);
        }
    }

    /// Lets the node send for every address.
    pub fn impersonate_all(&self, on: bool) {
        self.0.inner.write().impersonate_all = on;
    }

    // ---- time, snapshots, edits ----

    /// Timestamp a block mined now would have.
    pub fn next_timestamp(&self) -> u64 {
        let inner = self.0.inner.read();
        inner.time.next(inner.head().header.timestamp)
    }

    /// Moves the clock forward. Gives the seconds travelled in all.
    ///
    /// # Errors
    /// Beyond the range of timestamps.
    pub fn increase_time(&self, seconds: u64) -> Result<i64, TimeError> {
        let _writer = self.writer();
        let mut inner = self.0.inner.write();
        let latest = inner.head().header.timestamp;
        if inner.time.next(latest).checked_add(seconds).is_none_or(|t| t > i64::MAX as u64) {
            return Err(TimeError::Overflow);
        }
        inner.time.offset += i128::from(seconds);
        if let Some(next) = &mut inner.time.next {
            *next += seconds;
        }
        self.record(|| Op::Time { time: inner.time.into() });
        i64::try_from(inner.time.offset).map_err(|_| TimeError::Overflow)
    }

    /// Gives the next block exactly this timestamp; time goes on from there.
    ///
    /// # Errors
    /// It is before the latest block's.
    pub fn set_next_timestamp(&self, timestamp: u64) -> Result<(), TimeError> {
        let _writer = self.writer();
        let mut inner = self.0.inner.write();
        let latest = inner.head().header.timestamp;
        if timestamp < latest {
            return Err(TimeError::Backwards { wanted: timestamp, latest });
        }
        if timestamp > i64::MAX as u64 {
            return Err(TimeError::Overflow);
        }
        inner.time.next = Some(timestamp);
        self.record(|| Op::Time { time: inner.time.into() });
        Ok(())
    }

    /// Remembers the chain as it is now. Costs nothing.
    pub fn snapshot(&self) -> u64 {
        let _writer = self.writer();
        let mut inner = self.0.inner.write();
        let id = inner.next_snapshot;
        self.record(|| Op::Snapshot { id });
        inner.snapshot(id);
        id
    }

    /// Goes back to a snapshot, which is used up, as are all taken after it. `false` if there is no such snapshot.
    pub fn revert(&self, id: u64) -> bool {
        self.revert_kept(&self.writer(), id)
    }

    /// Sets a balance, in wei.
    pub fn set_balance(&self, address: Address, balance: U256) {
        let op = || Op::Balance { of: address, balance };
        self.edit_account(address, op, |inner| inner.state.set_balance(address, balance));
    }

    /// Sets a nonce.
    pub fn set_nonce(&self, address: Address, nonce: u64) {
        let op = || Op::Nonce { of: address, nonce };
        self.edit_account(address, op, |inner| inner.state.set_nonce(address, nonce));
    }

    /// Sets an account's code.
    pub fn set_code(&self, address: Address, code: Bytes) {
        let op = || Op::Code { of: address, code: code.clone() };
        self.edit_account(address, op, |inner| inner.state.set_code(address, code.clone()));
    }

    /// Sets a word of storage.
    pub fn set_storage(&self, address: Address, slot: U256, value: U256) {
        let op = || Op::Slot { of: address, slot, value };
        self.edit_account(address, op, |inner| inner.state.set_storage(address, slot, value));
    }

    /// Sets the price of gas from the next block on.
    pub fn set_base_fee(&self, base_fee: u64) {
        self.change_upcoming(|upcoming| upcoming.base_fee = base_fee);
    }

    /// Sets the gas limit of the blocks to come, which is also the most that one transaction may ask for.
    pub fn set_gas_limit(&self, gas_limit: u64) {
        self.change_upcoming(|upcoming| upcoming.gas_limit = gas_limit);
    }

    /// Sets the coinbase of the blocks to come.
    pub fn set_coinbase(&self, coinbase: Address) {
        self.change_upcoming(|upcoming| upcoming.coinbase = coinbase);
    }

    /// Sets `block.prevrandao` of the next block.
    pub fn set_prevrandao(&self, prevrandao: B256) {
        self.change_upcoming(|upcoming| upcoming.prevrandao = Some(prevrandao));
    }

    /// Takes a transaction that waits out. `false` if it does not.
    pub fn drop_transaction(&self, hash: B256) -> bool {
        self.edit(|| Op::Drop { hash }, |inner| inner.pool.remove(hash))
    }

    /// Told apart from other runs of the node, and from the chain before a reset.
    pub fn instance(&self) -> B256 {
        self.0.inner.read().instance
    }

    /// Begins again with a new genesis block, as [`Chain::new`] does. Filters and subscriptions stay.
    pub fn reset(&self) {
        let (_, genesis_time) = beginning(&self.0.config);
        self.edit(|| Op::Reset { genesis_time }, |inner| self.begin_again(inner, genesis_time));
    }

    fn begin_again(&self, inner: &mut Inner, genesis_time: u64) {
        let config = &self.0.config;
        inner.clear();
        inner.state = genesis_state(&self.0.evm, &self.0.accounts, config);
        inner.time = beginning(config).0;
        inner.genesis_time = genesis_time;
        inner.upcoming = Upcoming::of(config);
        append_first(inner, config, genesis_time);
    }

    fn change_upcoming(&self, change: impl FnOnce(&mut Upcoming)) {
        let _writer = self.writer();
        let mut upcoming = self.0.inner.read().upcoming;
        change(&mut upcoming);
        self.record(|| Op::Upcoming { upcoming });
        self.0.inner.write().upcoming = upcoming;
    }

    /// Changes the chain otherwise than by a block.
    fn edit<T>(&self, op: impl FnOnce() -> Op, change: impl FnOnce(&mut Inner) -> T) -> T {
        let _writer = self.writer();
        self.record(op);
        change(&mut self.0.inner.write())
    }

    /// Changes an account. On a copy of another chain whose endpoint does not give it, nothing changes.
    fn edit_account(&self, address: Address, op: impl FnOnce() -> Op, change: impl FnOnce(&mut Inner)) {
        if self.reads(address) {
            self.edit(op, change);
        }
    }

    /// Reads an account of the original chain before another thread must wait for it under a lock. `false` if the endpoint does not give
    /// it, which is noted for the caller ([`fork::checked`]).
    fn reads(&self, address: Address) -> bool {
        let state = self.state();
        if !state.is_copy() {
            return true;
        }
        match fork::checked(|| state.exists(address)) {
            Ok(_) => true,
            Err(reason) => {
                fork::note(reason);
                false
            }
        }
    }

    fn writer(&self) -> Writer<'_> {
        self.0.writer.lock()
    }
}

fn genesis_state(evm: &Evm, accounts: &[Address], config: &Config) -> State {
    if let Some(fork) = &config.fork {
        return State::of_fork(fork.clone(), accounts.to_vec(), config.balance);
    }
    let balances: Vec<_> = accounts.iter().map(|a| (*a, config.balance)).collect();
    evm.genesis(&balances)
}

/// The clock at the start, and the second from which L1's blocks are counted.
fn beginning(config: &Config) -> (Time, u64) {
    let mut time = Time { clock: config.clock, offset: 0, next: None };
    let Some(fork) = &config.fork else {
        let now = time.next(0);
        return (time, now);
    };
    // As on anvil, time goes on where the other chain stood; L1's number too.
    if config.clock == Clock::System {
        time.offset = i128::from(fork.timestamp()) - time.raw();
    }
    (time, fork.timestamp().saturating_sub(fork.l1_number().saturating_sub(1).saturating_mul(L1_BLOCK_TIME)))
}

/// Puts the first block there: a genesis block, or the other chain's.
fn append_first(inner: &mut Inner, config: &Config, genesis_time: u64) {
    let Some(fork) = &config.fork else {
        let genesis = genesis_block(config, &inner.state, genesis_time);
        return append(inner, config, Arc::new(genesis), None);
    };
    let number = fork.block_number();
    let earlier = fork.hashes().l2.iter().zip(1..).filter_map(|(hash, back)| Some((number.checked_sub(back)?, *hash)));
    inner.earlier = earlier.collect();
    inner.recent = Arc::new(inner.earlier.iter().rev().copied().collect());
    let block = MinedBlock {
        header: fork.header().clone(),
        hash: fork.block_hash(),
        l1_number: fork.l1_number(),
        prevrandao: PREVRANDAO,
        // A request for it is answered by the other chain, as for all blocks before it.
        transactions: Vec::new(),
    };
    append(inner, config, Arc::new(block), None);
}

fn genesis_block(config: &Config, state: &State, timestamp: u64) -> MinedBlock {
    let upcoming = Upcoming::of(config);
    let setting = Setting {
        number: 0,
        parent_hash: B256::ZERO,
        timestamp,
        l1_number: 0,
        base_fee: upcoming.base_fee,
        gas_limit: upcoming.gas_limit,
        coinbase: upcoming.coinbase,
        prevrandao: PREVRANDAO,
    };
    let root = if config.state_root { state.root() } else { B256::ZERO };
    seal(&setting, config.arbos_version, root, Vec::new())
}

fn keeps_states(config: &Config) -> bool {
    config.history.states > 0
}

/// Puts a block at the end of the chain. `inner.state` is the state after it already, `before` the one before it.
fn append(inner: &mut Inner, config: &Config, block: Arc<MinedBlock>, before: Option<State>) {
    let (number, hash) = (block.header.number, block.hash);
    inner.by_hash.insert(hash, number);
    for tx in &block.transactions {
        inner.by_tx.insert(*tx.tx.tx_hash(), number);
    }
    let recent = Arc::make_mut(&mut inner.recent);
    recent.push((number, hash));
    if recent.len() >= 4 * RECENT_HASHES {
        recent.drain(..recent.len() - RECENT_HASHES);
    }
    if let Some(last) = inner.blocks.back_mut() {
        last.state = before;
    }
    inner.sequence += 1;
    inner.blocks.push_back(Stored { block, state: None, sequence: inner.sequence });
    let old = inner.blocks.len().checked_sub(config.history.states.saturating_add(2));
    if let Some(stored) = old.and_then(|index| inner.blocks.get_mut(index)) {
        stored.state = None;
    }
    while inner.blocks.len() > config.history.blocks.max(1) {
        if let Some(stored) = inner.blocks.pop_front() {
            forget(&mut inner.by_hash, &mut inner.by_tx, &stored.block);
        }
    }
}

/// Adds a block's logs that match.
///
/// # Errors
/// They would be more than [`MAX_LOG_BYTES`] in all.
pub(crate) fn collect_logs(
    filter: &Filter,
    block: &MinedBlock,
    logs: &mut Vec<Log>,
    bytes: &mut usize,
) -> Result<(), BlockError> {
    if block.transactions.is_empty() || !filter.matches_bloom(block.header.logs_bloom) {
        return Ok(());
    }
    for log in block.logs().filter(|log| filter.matches(&log.inner)) {
        // Its approximate size as JSON.
        *bytes += 600 + 2 * log.inner.data.data.len();
        if *bytes > MAX_LOG_BYTES {
            return Err(BlockError::TooManyLogs);
        }
        logs.push(log.clone());
    }
    Ok(())
}

fn forget(by_hash: &mut HashMap<B256, u64>, by_tx: &mut HashMap<B256, u64>, block: &MinedBlock) {
    by_hash.remove(&block.hash);
    for tx in &block.transactions {
        by_tx.remove(tx.tx.tx_hash());
    }
}
