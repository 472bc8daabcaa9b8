//! The chain: blocks, time, snapshots and accounts around the execution half.
//!
//! Every transaction makes a block of its own at once, as a quiet Arbitrum chain does. A [`Chain`] is a handle: clones
//! share one chain. Nothing here copies the state: [`State`] is persistent, so an old state is only another root.
//!
//! | module | what it holds |
//! | --- | --- |
//! | here | the chain itself: what is sent, kept, moved in time and taken back |
//! | [`block`] | blocks, receipts and logs |
//! | `call` | calls, estimates and traces |
//! | [`config`] | what a chain begins with |
//! | [`error`] | why something was refused |

pub mod block;
mod call;
pub mod config;
pub mod error;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use alloy_consensus::transaction::{Recovered, SignerRecoverable};
use alloy_consensus::{SignableTransaction, Transaction, TxEnvelope, TypedTransaction};
use alloy_eips::eip2718::Decodable2718;
use alloy_primitives::{Address, Bytes, Signature, B256, U256};
use alloy_rpc_types_eth::{BlockId, BlockNumberOrTag, Filter, FilterBlockOption, Log, TransactionRequest};
use alloy_signer::SignerSync;
use alloy_signer_local::{coins_bip39::English, MnemonicBuilder, PrivateKeySigner};
use parking_lot::{Mutex, RwLock};
use tokio::sync::broadcast;

use crate::evm::{BlockCtx, Evm, Outcome, Status, TxCtx, TxError, BATCH_POSTER};
use crate::state::State;
use block::{access_list, header, l1_number, mine, seal};
pub use block::{MinedBlock, MinedTx};
pub use config::*;
pub use error::{BlockError, CallError, SendError, TimeError};

/// A transaction or call, as the `eth_` methods take it. Whatever is left out is filled in.
pub type TxRequest = TransactionRequest;

/// How many L2 hashes ArbSys and BLOCKHASH can see.
const RECENT_HASHES: usize = 256;
/// Blocks a slow subscriber may fall behind.
const SUBSCRIBER_BUFFER: usize = 16_384;

/// What became of a transaction sent in process.
#[derive(Clone, Debug)]
pub struct Mined {
    /// Hash of the transaction.
    pub hash: B256,
    /// Its block.
    pub block: Arc<MinedBlock>,
    /// What it did, revert data and Stylus figures included.
    pub outcome: Outcome,
}

impl Mined {
    /// Whether it succeeded.
    pub fn ok(&self) -> bool {
        self.outcome.status == Status::Success
    }
}

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
    /// Held while the node itself picks a nonce and sends with it.
    sending: Mutex<()>,
    news: broadcast::Sender<Arc<MinedBlock>>,
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
    genesis_time: u64,
    time: Time,
    snapshots: Vec<Snapshot>,
    next_snapshot: u64,
    impersonated: HashSet<Address>,
    impersonate_all: bool,
}

#[derive(Debug)]
struct Stored {
    block: Arc<MinedBlock>,
    state: Option<State>,
}

#[derive(Clone, Copy, Debug)]
struct Time {
    clock: Clock,
    /// Seconds that time travel added.
    offset: i128,
    /// Exact timestamp of the next block, once.
    next: Option<u64>,
}

#[derive(Debug)]
struct Snapshot {
    id: u64,
    head: Stored,
    recent: Arc<Vec<(u64, B256)>>,
    time: Time,
    state: State,
}

impl Time {
    fn raw(&self) -> i128 {
        match self.clock {
            Clock::Manual(now) => i128::from(now),
            Clock::System => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |d| i128::from(d.as_secs())),
        }
    }

    /// Timestamp of a block after one at `latest`.
    fn next(&self, latest: u64) -> u64 {
        match self.next {
            Some(next) => next.max(latest),
            None => u64::try_from((self.raw() + self.offset).max(0)).unwrap_or(u64::MAX).max(latest),
        }
    }

    /// Uses up the timestamp of a block; time goes on from there.
    fn take(&mut self, latest: u64) -> u64 {
        let now = self.next(latest);
        if self.next.take().is_some() {
            self.offset = i128::from(now) - self.raw();
        }
        now
    }
}

impl Inner {
    fn head(&self) -> &Arc<MinedBlock> {
        &self.blocks[self.blocks.len() - 1].block
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
            oldest: self
                .blocks
                .iter()
                .find(|s| s.state.is_some())
                .map_or(self.head().header.number, |s| s.block.header.number),
        })
    }

    /// Hashes a block can see, and perhaps some more.
    fn hashes_before(&self, number: u64) -> Arc<Vec<(u64, B256)>> {
        if self.recent.first().is_some_and(|(oldest, _)| *oldest == 0 || oldest + RECENT_HASHES as u64 <= number) {
            return self.recent.clone();
        }
        let oldest = number.saturating_sub(RECENT_HASHES as u64);
        Arc::new((oldest..number).filter_map(|n| Some((n, self.stored(n)?.block.hash))).collect())
    }
}

impl Chain {
    /// A new chain with its genesis block.
    ///
    /// # Errors
    /// An ArbOS version that is not known, in words.
    pub fn new(config: Config) -> Result<Self, String> {
        let evm = Evm::new(crate::evm::Config {
            chain_id: config.chain_id,
            arbos: config.arbos_version,
            ..Default::default()
        })?;
        let mut keys = vec![NITRO_DEV_KEY
            .parse::<PrivateKeySigner>()
            .map_err(|e| format!("the development key does not parse: {e}"))?];
        for index in 0..config.accounts {
            let signer = MnemonicBuilder::<English>::default()
                .phrase(TEST_MNEMONIC)
                .index(index)
                .and_then(|b| b.build())
                .map_err(|e| format!("account {index} can't be derived: {e}"))?;
            keys.push(signer);
        }
        let accounts: Vec<Address> = keys.iter().map(PrivateKeySigner::address).collect();
        let balances: Vec<_> = accounts.iter().map(|a| (*a, config.balance)).collect();
        let state = evm.genesis(&balances);
        let time = Time { clock: config.clock, offset: 0, next: None };
        let genesis_time = time.next(0);
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
                genesis_time,
                time,
                snapshots: Vec::new(),
                next_snapshot: 1,
                impersonated: HashSet::new(),
                impersonate_all: false,
            }),
            sending: Mutex::new(()),
            news: broadcast::channel(SUBSCRIBER_BUFFER).0,
            config,
        };
        let genesis = seal(header(&chain.config, 0, B256::ZERO, genesis_time, 0), 0);
        let inner = chain.inner.get_mut();
        append(inner, &chain.config, Arc::new(genesis), None);
        Ok(Self(Arc::new(chain)))
    }

    /// What the chain was begun with.
    pub fn config(&self) -> &Config {
        &self.0.config
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

    /// The state after a block.
    ///
    /// # Errors
    /// The block is unknown, or its state is no longer kept.
    pub fn state_at(&self, id: BlockId) -> Result<State, BlockError> {
        self.0.inner.read().state_at(id)
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

    /// Logs that match a filter, oldest first.
    ///
    /// # Errors
    /// A block of the range is unknown or no longer kept.
    pub fn logs(&self, filter: &Filter) -> Result<Vec<Log>, BlockError> {
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
                (number(from_block), number(to_block).min(head))
            }
        };
        let mut logs = Vec::new();
        let first = inner.blocks[0].block.header.number;
        if from < first && from <= to {
            return Err(BlockError::Unknown);
        }
        for number in from..=to {
            let Some(stored) = inner.stored(number) else { break };
            if !stored.block.transactions.is_empty() && filter.matches_bloom(stored.block.header.logs_bloom) {
                logs.extend(stored.block.logs().filter(|l| filter.matches(&l.inner)).cloned());
            }
        }
        Ok(logs)
    }

    // ---- transactions ----

    /// Takes a signed transaction and mines it. One whose execution fails is mined too: see [`Mined::outcome`].
    ///
    /// # Errors
    /// The transaction is not taken, and nothing changed.
    pub fn send_raw(&self, bytes: &[u8]) -> Result<Mined, SendError> {
        self.include(self.decode(bytes)?)
    }

    /// The hash and sender of a signed transaction, checked for everything that does not depend on the state.
    fn decode(&self, bytes: &[u8]) -> Result<Recovered<TxEnvelope>, SendError> {
        // Type bytes end at 0x7f; a list begins at 0xc0.
        if bytes.first().is_some_and(|t| (0x03..0x80).contains(t)) {
            return Err(SendError::UnsupportedType);
        }
        let tx = TxEnvelope::decode_2718_exact(bytes).map_err(|e| SendError::Malformed(e.to_string()))?;
        if let Some(have) = tx.chain_id().filter(|id| *id != self.0.config.chain_id) {
            return Err(SendError::WrongChain { have, want: self.0.config.chain_id });
        }
        tx.try_into_recovered().map_err(|e| SendError::InvalidSignature(e.to_string()))
    }

    /// Sends a transaction from any address, without signature. Missing fields are filled in; without `from` the
    /// first funded account sends, without `gas` the limit is [`TX_GAS`].
    ///
    /// # Errors
    /// The transaction is not taken, and nothing changed.
    pub fn send(&self, request: TxRequest) -> Result<Mined, SendError> {
        let from = request.from.unwrap_or(self.0.accounts[0]);
        let _sending = self.0.sending.lock();
        let tx = self.fill(request, from, TX_GAS)?;
        // Not a signature of anything: it only makes the hash differ from sender to sender.
        let signature = Signature::new(U256::from_be_slice(from.as_slice()), U256::ONE, false);
        self.include(Recovered::new_unchecked(tx.into_signed(signature).into(), from))
    }

    /// Sends a transaction from an account whose key the node holds (signed with it), or that is impersonated.
    ///
    /// # Errors
    /// The transaction is not taken, and nothing changed.
    pub fn send_unlocked(&self, request: TxRequest) -> Result<Mined, SendError> {
        let from = request.from.unwrap_or(self.0.accounts[0]);
        let gas = match request.gas {
            Some(gas) => gas,
            // As on other nodes, a transaction that would fail is mined rather than refused here.
            None => self.estimate_gas(&request, BlockId::pending(), None, None).unwrap_or(TX_GAS),
        };
        let impersonated = {
            let inner = self.0.inner.read();
            inner.impersonate_all || inner.impersonated.contains(&from)
        };
        let _sending = self.0.sending.lock();
        let tx = self.fill(request, from, gas)?;
        let signature = match self.0.signers.get(&from) {
            Some(key) => {
                key.sign_hash_sync(&tx.signature_hash()).map_err(|e| SendError::InvalidSignature(e.to_string()))?
            }
            None if impersonated => Signature::new(U256::from_be_slice(from.as_slice()), U256::ONE, false),
            None => return Err(SendError::UnknownAccount(from)),
        };
        self.include(Recovered::new_unchecked(tx.into_signed(signature).into(), from))
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

    fn fill(&self, mut request: TxRequest, from: Address, gas: u64) -> Result<TypedTransaction, SendError> {
        let base_fee = u128::from(self.0.config.base_fee);
        if let Some(have) = request.chain_id.filter(|id| *id != self.0.config.chain_id) {
            return Err(SendError::WrongChain { have, want: self.0.config.chain_id });
        }
        if request.authorization_list.is_some() || request.has_eip4844_fields() {
            return Err(SendError::UnsupportedType);
        }
        if request.input.unique_input().is_err() {
            return Err(SendError::Incomplete(
                r#"both "data" and "input" are set and not equal. Please use "input" to pass transaction call data"#.into(),
            ));
        }
        request.from = Some(from);
        request.chain_id = Some(self.0.config.chain_id);
        request.nonce.get_or_insert_with(|| self.0.inner.read().state.nonce(from));
        request.gas.get_or_insert(gas);
        // No recipient means creation.
        request.to.get_or_insert(alloy_primitives::TxKind::Create);
        if request.gas_price.is_none() {
            let tip = *request.max_priority_fee_per_gas.get_or_insert(0);
            request.max_fee_per_gas.get_or_insert(base_fee.saturating_add(tip));
        }
        request
            .build_typed_tx()
            .map_err(|_| SendError::Incomplete("fields of different transaction types are mixed".into()))
    }

    /// Runs a transaction in a block of its own.
    fn include(&self, tx: Recovered<TxEnvelope>) -> Result<Mined, SendError> {
        let shared = &*self.0;
        let config = &shared.config;
        let from = tx.signer();
        if tx.gas_limit() > BLOCK_GAS_LIMIT {
            return Err(SendError::GasLimit);
        }
        let base_fee = u128::from(config.base_fee);
        let cap = tx.max_fee_per_gas();
        if let Some(tip) = tx.max_priority_fee_per_gas().filter(|tip| *tip > cap) {
            return Err(SendError::TipAboveFeeCap { address: from, tip, cap });
        }
        let context = TxCtx {
            caller: from,
            to: tx.to(),
            value: tx.value(),
            data: tx.input().clone(),
            gas_limit: tx.gas_limit(),
            gas_price: base_fee,
            nonce: Some(tx.nonce()),
            access_list: access_list(&tx),
            is_call: false,
            trace: false,
        };

        let mut inner = shared.inner.write();
        let inner = &mut *inner;
        // go-ethereum looks at the nonce, then at the cap, then at the balance for the whole cap.
        let nonce = inner.state.nonce(from);
        if tx.nonce() < nonce {
            return Err(TxError::NonceTooLow { address: from, tx: tx.nonce(), state: nonce }.into());
        }
        if tx.nonce() > nonce {
            return Err(TxError::NonceTooHigh { address: from, tx: tx.nonce(), state: nonce }.into());
        }
        if cap < base_fee {
            return Err(TxError::FeeCapTooLow { address: from, max_fee: cap, base_fee }.into());
        }
        let have = inner.state.balance(from);
        let want = U256::from(tx.gas_limit()).saturating_mul(U256::from(cap)).saturating_add(tx.value());
        if want > have {
            return Err(TxError::InsufficientFunds { address: from, have, want }.into());
        }

        let parent = inner.head().clone();
        let mut time = inner.time;
        let timestamp = time.take(parent.header.timestamp);
        let l1_number = l1_number(inner.genesis_time, timestamp);
        let number = parent.header.number + 1;
        let block = BlockCtx {
            l2_number: number,
            l1_number,
            timestamp,
            base_fee,
            gas_limit: BLOCK_GAS_LIMIT,
            coinbase: BATCH_POSTER,
            recent_hashes: &inner.recent[inner.recent.len().saturating_sub(RECENT_HASHES)..],
        };
        let before = keeps_states(config).then(|| inner.state.clone());
        let outcome = shared.evm.transact(&mut inner.state, &block, &context)?;
        inner.time = time;

        let mined = mine(header(config, number, parent.hash, timestamp, l1_number), l1_number, tx, &outcome);
        let hash = *mined.transactions[0].tx.tx_hash();
        let block = Arc::new(mined);
        append(inner, config, block.clone(), before);
        if shared.news.receiver_count() > 0 {
            // Fails only when the last receiver has just gone.
            let _ = shared.news.send(block.clone());
        }
        Ok(Mined { hash, block, outcome })
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
        let mut inner = self.0.inner.write();
        let latest = inner.head().header.timestamp;
        if inner.time.next(latest).checked_add(seconds).is_none_or(|t| t > i64::MAX as u64) {
            return Err(TimeError::Overflow);
        }
        inner.time.offset += i128::from(seconds);
        if let Some(next) = &mut inner.time.next {
            *next += seconds;
        }
        i64::try_from(inner.time.offset).map_err(|_| TimeError::Overflow)
    }

    /// Gives the next block exactly this timestamp; time goes on from there.
    ///
    /// # Errors
    /// It is before the latest block's.
    pub fn set_next_timestamp(&self, timestamp: u64) -> Result<(), TimeError> {
        let mut inner = self.0.inner.write();
        let latest = inner.head().header.timestamp;
        if timestamp < latest {
            return Err(TimeError::Backwards { wanted: timestamp, latest });
        }
        if timestamp > i64::MAX as u64 {
            return Err(TimeError::Overflow);
        }
        inner.time.next = Some(timestamp);
        Ok(())
    }

    /// Mines empty blocks, `interval` seconds apart; the clock moves along.
    ///
    /// # Errors
    /// Too many at once, or beyond the range of timestamps.
    pub fn mine(&self, blocks: u64, interval: u64) -> Result<(), TimeError> {
        if blocks > MAX_EMPTY_BLOCKS {
            return Err(TimeError::TooManyBlocks(blocks));
        }
        let shared = &*self.0;
        let mut inner = shared.inner.write();
        let inner = &mut *inner;
        let latest = inner.head().header.timestamp;
        let end = interval.checked_mul(blocks).and_then(|s| inner.time.next(latest).checked_add(s));
        if end.is_none_or(|t| t > i64::MAX as u64) {
            return Err(TimeError::Overflow);
        }
        for index in 0..blocks {
            if index > 0 {
                inner.time.offset += i128::from(interval);
            }
            let parent = inner.head().clone();
            let timestamp = inner.time.take(parent.header.timestamp);
            let l1_number = l1_number(inner.genesis_time, timestamp);
            let header = header(&shared.config, parent.header.number + 1, parent.hash, timestamp, l1_number);
            let block = Arc::new(seal(header, l1_number));
            let before = keeps_states(&shared.config).then(|| inner.state.clone());
            append(inner, &shared.config, block.clone(), before);
            if shared.news.receiver_count() > 0 {
                let _ = shared.news.send(block);
            }
        }
        Ok(())
    }

    /// Remembers the chain as it is now. Costs nothing.
    pub fn snapshot(&self) -> u64 {
        let mut inner = self.0.inner.write();
        let id = inner.next_snapshot;
        inner.next_snapshot += 1;
        let snapshot = Snapshot {
            id,
            head: Stored { block: inner.head().clone(), state: None },
            recent: inner.recent.clone(),
            time: inner.time,
            state: inner.state.clone(),
        };
        inner.snapshots.push(snapshot);
        id
    }

    /// Goes back to a snapshot, which is used up, as are all taken after it. `false` if there is no such snapshot.
    pub fn revert(&self, id: u64) -> bool {
        let mut inner = self.0.inner.write();
        let inner = &mut *inner;
        let Some(position) = inner.snapshots.iter().position(|s| s.id == id) else { return false };
        let Some(snapshot) = inner.snapshots.drain(position..).next() else { return false };
        let number = snapshot.head.block.header.number;
        while inner.blocks.back().is_some_and(|s| s.block.header.number > number) {
            if let Some(stored) = inner.blocks.pop_back() {
                forget(&mut inner.by_hash, &mut inner.by_tx, &stored.block);
            }
        }
        // With little history the block itself may have been dropped.
        if inner.blocks.is_empty() {
            inner.by_hash.insert(snapshot.head.block.hash, number);
            for tx in &snapshot.head.block.transactions {
                inner.by_tx.insert(*tx.tx.tx_hash(), number);
            }
            inner.blocks.push_back(snapshot.head);
        }
        if let Some(last) = inner.blocks.back_mut() {
            last.state = None;
        }
        inner.state = snapshot.state;
        inner.recent = snapshot.recent;
        inner.time = snapshot.time;
        true
    }

    /// Sets a balance, in wei.
    pub fn set_balance(&self, address: Address, balance: U256) {
        self.0.inner.write().state.set_balance(address, balance);
    }

    /// Sets a nonce.
    pub fn set_nonce(&self, address: Address, nonce: u64) {
        self.0.inner.write().state.set_nonce(address, nonce);
    }

    /// Sets an account's code.
    pub fn set_code(&self, address: Address, code: Bytes) {
        self.0.inner.write().state.set_code(address, code);
    }

    /// Sets a word of storage.
    pub fn set_storage(&self, address: Address, slot: U256, value: U256) {
        self.0.inner.write().state.set_storage(address, slot, value);
    }
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
    inner.blocks.push_back(Stored { block, state: None });
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

fn forget(by_hash: &mut HashMap<B256, u64>, by_tx: &mut HashMap<B256, u64>, block: &MinedBlock) {
    by_hash.remove(&block.hash);
    for tx in &block.transactions {
        by_tx.remove(tx.tx.tx_hash());
    }
}
