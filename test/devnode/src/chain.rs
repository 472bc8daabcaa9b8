//! The chain: blocks, time, snapshots and accounts around the execution half.
//!
//! Every transaction makes a block of its own at once, as a quiet Arbitrum chain does. A [`Chain`] is a handle: clones
//! share one chain. Nothing here copies the state: [`State`] is persistent, so an old state is only another root.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use alloy_consensus::transaction::{Recovered, SignerRecoverable};
use alloy_consensus::{
    proofs, Header, Receipt, ReceiptEnvelope, ReceiptWithBloom, SignableTransaction, Transaction, TxEnvelope, TxType,
    TypedTransaction, EMPTY_OMMER_ROOT_HASH, EMPTY_ROOT_HASH,
};
use alloy_eips::eip2718::Decodable2718;
use alloy_primitives::{logs_bloom, Address, Bytes, Signature, B256, B64, U256};
use alloy_rpc_types_eth::state::StateOverride;
use alloy_rpc_types_eth::{BlockId, BlockNumberOrTag, BlockOverrides, Filter, FilterBlockOption, Log};
use alloy_rpc_types_eth::{TransactionReceipt, TransactionRequest};
use alloy_signer::SignerSync;
use alloy_signer_local::{coins_bip39::English, MnemonicBuilder, PrivateKeySigner};
use parking_lot::{Mutex, RwLock};
use tokio::sync::broadcast;

use crate::evm::{BlockCtx, CallFrame, Evm, Outcome, Status, TxCtx, TxError, BATCH_POSTER};
use crate::state::State;

/// A transaction or call, as the `eth_` methods take it. Whatever is left out is filled in.
pub type TxRequest = TransactionRequest;

/// The key of the account that the Nitro development node funds. Everybody knows it.
pub const NITRO_DEV_KEY: &str = "0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659";
/// The mnemonic that other development nodes use. Everybody knows it.
pub const TEST_MNEMONIC: &str = "test test test test test test test test test test test junk";
/// Block gas limit in the header, as on Arbitrum, where it does not bound anything.
pub const BLOCK_GAS_LIMIT: u64 = 1 << 50;
/// Gas of a call that names none: Nitro's RPC gas cap.
pub const CALL_GAS: u64 = 50_000_000;
/// Gas limit of an unsigned in-process transaction that names none: the most one transaction may use.
pub const TX_GAS: u64 = 32_000_000;
/// Gas of a transaction that only moves ether.
const TRANSFER_GAS: u64 = 21_000;
/// Seconds between two L1 blocks, by which `block.number` advances.
pub const L1_BLOCK_TIME: u64 = 12;
/// Most empty blocks one request may mine.
pub const MAX_EMPTY_BLOCKS: u64 = 100_000;

/// How many L2 hashes ArbSys and BLOCKHASH can see.
const RECENT_HASHES: usize = 256;
/// Blocks a slow subscriber may fall behind.
const SUBSCRIBER_BUFFER: usize = 16_384;

/// Where timestamps come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The machine's clock plus whatever time travel added.
    System,
    /// Stands still at this second until moved by time travel: runs repeat exactly.
    Manual(u64),
}

/// How much of the past is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Blocks with transactions, receipts and logs.
    pub blocks: usize,
    /// States one can still call, read and trace on.
    pub states: usize,
}

impl History {
    /// Every block, and every state.
    pub const ALL: Self = Self { blocks: usize::MAX, states: usize::MAX };
    /// The newest block only: memory grows with the state alone, however many transactions run.
    pub const NONE: Self = Self { blocks: 1, states: 0 };
}

/// What a chain begins with.
#[derive(Clone, Debug)]
pub struct Config {
    /// EIP-155 chain id; 412346 as the Nitro development node has it.
    pub chain_id: u64,
    /// ArbOS version, see [`crate::evm::ARBOS_VERSIONS`].
    pub arbos_version: u64,
    /// Accounts derived from [`TEST_MNEMONIC`], besides the Nitro development account.
    pub accounts: u32,
    /// Wei each account begins with.
    pub balance: U256,
    /// Wei per gas. It stays the same: there is no congestion here.
    pub base_fee: u64,
    /// Where timestamps come from.
    pub clock: Clock,
    /// How much of the past is kept.
    pub history: History,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            chain_id: 412_346,
            arbos_version: 61,
            accounts: 10,
            balance: U256::from(1_000_000) * U256::from(10).pow(U256::from(18)),
            base_fee: 100_000_000,
            clock: Clock::System,
            history: History::ALL,
        }
    }
}

/// Why a transaction was not taken. The words are go-ethereum's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The bytes are no transaction.
    #[error("rlp: {0}")]
    Malformed(String),
    /// Blob and set-code transactions.
    #[error("transaction type not supported")]
    UnsupportedType,
    /// The signature does not recover.
    #[error("invalid sender: invalid transaction v, r, s values ({0})")]
    InvalidSignature(String),
    /// Signed for another chain.
    #[error("invalid sender: invalid chain id for signer: have {have} want {want}")]
    WrongChain { have: u64, want: u64 },
    /// More than a block can hold.
    #[error("exceeds block gas limit")]
    GasLimit,
    /// The tip is above the cap.
    #[error("max priority fee per gas higher than max fee per gas: address {address}, maxPriorityFeePerGas: {tip}, maxFeePerGas: {cap}")]
    TipAboveFeeCap { address: Address, tip: u128, cap: u128 },
    /// No key for the sender.
    #[error("unknown account {0}")]
    UnknownAccount(Address),
    /// The request lacks or mixes fields.
    #[error("{0}")]
    Incomplete(String),
    /// Refused by the state.
    #[error(transparent)]
    Rejected(#[from] TxError),
}

/// Why a block or its state can't be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// No such block.
    #[error("header not found")]
    Unknown,
    /// The block was, but its state is gone.
    #[error("historical state is not kept: state of block {number} is no longer there, the oldest is that of block {oldest}")]
    StateNotKept { number: u64, oldest: u64 },
}

/// Why a call was not even begun, or why an estimate could not be made.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// See [`BlockError`].
    #[error(transparent)]
    Block(#[from] BlockError),
    /// The sender could not pay, or the gas does not cover the intrinsic cost.
    #[error(transparent)]
    Rejected(#[from] TxError),
    /// Contradictory or unsupported overrides.
    #[error("{0}")]
    Override(String),
    /// Estimation only: it fails whatever gas it is given.
    #[error("execution reverted")]
    Reverted(Bytes),
    /// Estimation only: not even the allowance is enough.
    #[error("{reason}")]
    Failed { reason: String },
}

/// Why time did not move.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// Timestamps never go back.
    #[error("timestamp {wanted} is before the latest block's {latest}")]
    Backwards { wanted: u64, latest: u64 },
    /// Beyond what a timestamp can hold.
    #[error("timestamp overflow")]
    Overflow,
    /// More than [`MAX_EMPTY_BLOCKS`].
    #[error("{0} blocks at once are too many, at most {MAX_EMPTY_BLOCKS} can be mined by one request")]
    TooManyBlocks(u64),
}

/// A block and what happened in it.
#[derive(Debug)]
pub struct MinedBlock {
    /// Header with Arbitrum's meaning of `difficulty`, `mixHash`, `extraData` and `nonce`. The state root is zero.
    pub header: Header,
    /// Hash of the header.
    pub hash: B256,
    /// What `block.number` was in it.
    pub l1_number: u64,
    /// At most one.
    pub transactions: Vec<MinedTx>,
}

/// A transaction in a block.
#[derive(Debug)]
pub struct MinedTx {
    /// The transaction and its sender.
    pub tx: Recovered<TxEnvelope>,
    /// Its receipt.
    pub receipt: TransactionReceipt<ReceiptEnvelope<Log>>,
}

impl MinedBlock {
    /// The events of the block.
    pub fn logs(&self) -> impl Iterator<Item = &Log> {
        self.transactions.iter().flat_map(|t| t.receipt.inner.logs().iter())
    }
}

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

/// Everything a call needs, detached from the chain.
struct Scene {
    state: State,
    recent: Arc<Vec<(u64, B256)>>,
    number: u64,
    l1_number: u64,
    timestamp: u64,
    base_fee: u128,
    gas_limit: u64,
    coinbase: Address,
}

impl Scene {
    fn block(&self) -> BlockCtx<'_> {
        // Only hashes before the block itself are visible.
        let end = self.recent.partition_point(|(n, _)| *n < self.number);
        BlockCtx {
            l2_number: self.number,
            l1_number: self.l1_number,
            timestamp: self.timestamp,
            base_fee: self.base_fee,
            gas_limit: self.gas_limit,
            coinbase: self.coinbase,
            recent_hashes: &self.recent[end.saturating_sub(RECENT_HASHES)..end],
        }
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

    /// Changes made outside of a block belong to the state after the newest one.
    fn edit<T>(&mut self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state)
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

    // ---- calls ----

    /// Runs a call on the newest state, as a transaction sent now would see it, and discards its effects.
    ///
    /// # Errors
    /// The call could not be begun. A revert is an outcome.
    pub fn call(&self, request: &TxRequest) -> Result<Outcome, CallError> {
        self.call_at(request, BlockId::latest(), None, None)
    }

    /// Runs a call on the state after a block.
    ///
    /// `latest` and `pending` see the time the next block would have, so that time travel shows without mining;
    /// `pending` also sees the next block's number.
    ///
    /// # Errors
    /// The call could not be begun. A revert is an outcome.
    pub fn call_at(
        &self,
        request: &TxRequest,
        at: BlockId,
        overrides: Option<&StateOverride>,
        block_overrides: Option<&BlockOverrides>,
    ) -> Result<Outcome, CallError> {
        self.simulate(request, at, overrides, block_overrides, false)
    }

    /// As [`Chain::call_at`], with [`Outcome::call_trace`].
    ///
    /// # Errors
    /// The call could not be begun.
    pub fn trace_call(
        &self,
        request: &TxRequest,
        at: BlockId,
        overrides: Option<&StateOverride>,
        block_overrides: Option<&BlockOverrides>,
    ) -> Result<Outcome, CallError> {
        self.simulate(request, at, overrides, block_overrides, true)
    }

    fn simulate(
        &self,
        request: &TxRequest,
        at: BlockId,
        overrides: Option<&StateOverride>,
        block_overrides: Option<&BlockOverrides>,
        trace: bool,
    ) -> Result<Outcome, CallError> {
        let scene = self.scene(at, overrides, block_overrides)?;
        let mut tx = self.call_context(request)?;
        tx.trace = trace;
        Ok(self.0.evm.call(&scene.state, &scene.block(), &tx)?)
    }

    fn call_context(&self, request: &TxRequest) -> Result<TxCtx, CallError> {
        if request.gas_price.is_some() && (request.max_fee_per_gas.is_some() || request.max_priority_fee_per_gas.is_some())
        {
            return Err(CallError::Override(
                "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified".into(),
            ));
        }
        if let Some(have) = request.chain_id.filter(|id| *id != self.0.config.chain_id) {
            let want = self.0.config.chain_id;
            return Err(CallError::Override(format!("chainId does not match node's (have={have}, want={want})")));
        }
        let data = request
            .input
            .unique_input()
            .map_err(|_| {
                CallError::Override(
                    r#"both "data" and "input" are set and not equal. Please use "input" to pass transaction call data"#
                        .into(),
                )
            })?
            .cloned()
            .unwrap_or_default();
        let price = request.gas_price.or(request.max_fee_per_gas).unwrap_or(0);
        Ok(TxCtx {
            caller: request.from.unwrap_or_default(),
            to: request.to.and_then(|kind| kind.to().copied()),
            value: request.value.unwrap_or_default(),
            data,
            gas_limit: request.gas.unwrap_or(CALL_GAS).min(CALL_GAS),
            // ArbOS charges the base fee, whatever is offered above it.
            gas_price: price.min(u128::from(self.0.config.base_fee)),
            nonce: None,
            access_list: request
                .access_list
                .iter()
                .flat_map(|l| l.0.iter().map(|i| (i.address, i.storage_keys.clone())))
                .collect(),
            is_call: true,
            trace: false,
        })
    }

    /// The state and block a call runs in.
    fn scene(
        &self,
        at: BlockId,
        overrides: Option<&StateOverride>,
        block_overrides: Option<&BlockOverrides>,
    ) -> Result<Scene, CallError> {
        let inner = self.0.inner.read();
        let state = inner.state_at(at)?;
        let block = &inner.resolve(at)?.block;
        let mut scene = Scene {
            state,
            recent: inner.hashes_before(block.header.number),
            number: block.header.number,
            l1_number: block.l1_number,
            timestamp: block.header.timestamp,
            base_fee: u128::from(self.0.config.base_fee),
            gas_limit: BLOCK_GAS_LIMIT,
            coinbase: BATCH_POSTER,
        };
        if let BlockId::Number(BlockNumberOrTag::Latest | BlockNumberOrTag::Pending) = at {
            scene.timestamp = inner.time.next(block.header.timestamp);
            scene.l1_number = l1_number(inner.genesis_time, scene.timestamp);
            scene.number += u64::from(at.is_pending());
        }
        drop(inner);
        for (address, account) in overrides.into_iter().flatten() {
            let state = &mut scene.state;
            if account.move_precompile_to.is_some() {
                return Err(CallError::Override("movePrecompileToAddress is not supported".into()));
            }
            if let Some(nonce) = account.nonce {
                state.set_nonce(*address, nonce);
            }
            if let Some(code) = &account.code {
                state.set_code(*address, code.clone());
            }
            if let Some(balance) = account.balance {
                state.set_balance(*address, balance);
            }
            if account.state.is_some() && account.state_diff.is_some() {
                return Err(CallError::Override(format!("account {address} has both 'state' and 'stateDiff'")));
            }
            if let Some(whole) = &account.state {
                state.clear_storage(*address);
                for (slot, value) in whole {
                    state.set_storage(*address, (*slot).into(), (*value).into());
                }
            }
            for (slot, value) in account.state_diff.iter().flatten() {
                state.set_storage(*address, (*slot).into(), (*value).into());
            }
        }
        if let Some(o) = block_overrides {
            if o.block_hash.is_some() || o.difficulty.is_some() || o.random.is_some() || o.blob_base_fee.is_some() {
                return Err(CallError::Override(
                    "of the block overrides, number, time, gasLimit, feeRecipient and baseFee are supported".into(),
                ));
            }
            if let Some(number) = o.number {
                // `block.number` is what one expects to move.
                scene.l1_number = number.saturating_to();
            }
            scene.timestamp = o.time.unwrap_or(scene.timestamp);
            scene.gas_limit = o.gas_limit.unwrap_or(scene.gas_limit);
            scene.coinbase = o.coinbase.unwrap_or(scene.coinbase);
            scene.base_fee = o.base_fee.map_or(scene.base_fee, |f| f.saturating_to());
        }
        Ok(scene)
    }

    /// The least gas limit with which a transaction succeeds, up to 1.5 % above it: go-ethereum's search, which
    /// also serves calls that give 63/64 of their gas to an inner frame.
    ///
    /// # Errors
    /// It fails whatever gas it is given, or could not be begun.
    pub fn estimate_gas(
        &self,
        request: &TxRequest,
        at: BlockId,
        overrides: Option<&StateOverride>,
        block_overrides: Option<&BlockOverrides>,
    ) -> Result<u64, CallError> {
        let scene = self.scene(at, overrides, block_overrides)?;
        let block = scene.block();
        let mut tx = self.call_context(request)?;
        tx.gas_limit = request.gas.filter(|gas| *gas >= TRANSFER_GAS).unwrap_or(CALL_GAS).min(CALL_GAS);
        // A sender who names a price must be able to pay; the limit is lowered to what he can.
        let price = request.gas_price.or(request.max_fee_per_gas).unwrap_or(0);
        if price > 0 {
            let have = scene.state.balance(tx.caller);
            let Some(available) = have.checked_sub(tx.value) else {
                return Err(CallError::Failed { reason: "insufficient funds for transfer".into() });
            };
            let allowance: u64 = (available / U256::from(price)).saturating_to();
            tx.gas_limit = tx.gas_limit.min(allowance);
        }
        tx.gas_price = 0;
        let run = |gas: u64| -> Result<Outcome, TxError> {
            let tx = TxCtx { gas_limit: gas, ..tx.clone() };
            self.0.evm.call(&scene.state, &block, &tx)
        };
        let exceeds = |limit: u64| CallError::Failed { reason: format!("gas required exceeds allowance ({limit})") };
        // A plain transfer needs no search. A recipient whose code is not visible (a precompile) may need more.
        let plain = tx.data.is_empty() && tx.access_list.is_empty();
        if plain && tx.to.is_some_and(|to| scene.state.code(to).is_empty()) && tx.gas_limit >= TRANSFER_GAS {
            if let Ok(Outcome { status: Status::Success, .. }) = run(TRANSFER_GAS) {
                return Ok(TRANSFER_GAS);
            }
        }
        let mut high = tx.gas_limit;
        let first = match run(high) {
            Ok(outcome) => outcome,
            Err(TxError::IntrinsicGas { .. }) => return Err(exceeds(high)),
            Err(other) => return Err(other.into()),
        };
        match first.status {
            Status::Success => {}
            Status::Revert => return Err(CallError::Reverted(first.output)),
            Status::Halt(reason) if reason.contains("out of gas") => return Err(exceeds(high)),
            Status::Halt(reason) => return Err(CallError::Failed { reason }),
        }
        let succeeds = |gas: u64| match run(gas) {
            Ok(outcome) => Ok(outcome.status == Status::Success),
            Err(TxError::IntrinsicGas { .. }) => Ok(false),
            Err(other) => Err(CallError::from(other)),
        };
        // Less than what was used never suffices.
        let mut low = first.gas_used.saturating_sub(1);
        // Most transactions fit after one try with what refunds, the stipend and one 63/64 need on top.
        let guess = (first.gas_used + first.gas_refunded + 2_300).saturating_mul(64) / 63;
        if guess < high {
            if succeeds(guess)? {
                high = guess;
            } else {
                low = guess;
            }
        }
        while low + 1 < high {
            // go-ethereum's tolerance.
            if (high - low) as f64 / (high as f64) < 0.015 {
                break;
            }
            // The answer is rather near the lower end.
            let middle = (low + (high - low) / 2).min(low.saturating_mul(2).max(low + 1));
            if succeeds(middle)? {
                high = middle;
            } else {
                low = middle;
            }
        }
        Ok(high)
    }

    /// Runs a mined transaction again on the state before it and records its frames.
    ///
    /// # Errors
    /// The transaction is unknown, or the state before it is no longer kept.
    pub fn trace_transaction(&self, hash: B256) -> Result<CallFrame, CallError> {
        let unknown = || CallError::Override("transaction not found".into());
        let (block, index) = self.transaction(hash).ok_or_else(unknown)?;
        let tx = &block.transactions[index].tx;
        let number = block.header.number;
        let (state, recent) = {
            let inner = self.0.inner.read();
            (inner.state_at(BlockId::number(number - 1))?, inner.hashes_before(number))
        };
        let scene = Scene {
            state,
            recent,
            number,
            l1_number: block.l1_number,
            timestamp: block.header.timestamp,
            base_fee: u128::from(self.0.config.base_fee),
            gas_limit: BLOCK_GAS_LIMIT,
            coinbase: BATCH_POSTER,
        };
        let context = TxCtx {
            caller: tx.signer(),
            to: tx.to(),
            value: tx.value(),
            data: tx.input().clone(),
            gas_limit: tx.gas_limit(),
            gas_price: scene.base_fee,
            nonce: Some(tx.nonce()),
            access_list: access_list(tx),
            is_call: false,
            trace: true,
        };
        let outcome = self.0.evm.call(&scene.state, &scene.block(), &context)?;
        outcome.call_trace.ok_or_else(|| CallError::Override("no trace was recorded".into()))
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
        self.0.inner.write().edit(|s| s.set_balance(address, balance));
    }

    /// Sets a nonce.
    pub fn set_nonce(&self, address: Address, nonce: u64) {
        self.0.inner.write().edit(|s| s.set_nonce(address, nonce));
    }

    /// Sets an account's code.
    pub fn set_code(&self, address: Address, code: Bytes) {
        self.0.inner.write().edit(|s| s.set_code(address, code));
    }

    /// Sets a word of storage.
    pub fn set_storage(&self, address: Address, slot: U256, value: U256) {
        self.0.inner.write().edit(|s| s.set_storage(address, slot, value));
    }
}

fn keeps_states(config: &Config) -> bool {
    config.history.states > 0
}

/// L1 blocks come every [`L1_BLOCK_TIME`] seconds of chain time, beginning with 1 at genesis.
fn l1_number(genesis_time: u64, timestamp: u64) -> u64 {
    1 + timestamp.saturating_sub(genesis_time) / L1_BLOCK_TIME
}

fn access_list(tx: &TxEnvelope) -> Vec<(Address, Vec<B256>)> {
    tx.access_list().into_iter().flat_map(|l| l.0.iter().map(|i| (i.address, i.storage_keys.clone()))).collect()
}

/// A header with Arbitrum's constants; roots, bloom and gas are those of an empty block.
fn header(config: &Config, number: u64, parent_hash: B256, timestamp: u64, l1_number: u64) -> Header {
    // Nitro packs (messages sent, L1 block number, ArbOS version) into the mix hash.
    let mut mix = [0; 32];
    mix[8..16].copy_from_slice(&l1_number.to_be_bytes());
    mix[16..24].copy_from_slice(&config.arbos_version.to_be_bytes());
    Header {
        parent_hash,
        ommers_hash: EMPTY_OMMER_ROOT_HASH,
        beneficiary: BATCH_POSTER,
        // No Merkle tree is kept: computing its root would cost more than running the transaction.
        state_root: B256::ZERO,
        transactions_root: EMPTY_ROOT_HASH,
        receipts_root: EMPTY_ROOT_HASH,
        difficulty: U256::ONE,
        number,
        gas_limit: BLOCK_GAS_LIMIT,
        timestamp,
        extra_data: Bytes::from_static(&[0; 32]),
        mix_hash: B256::from(mix),
        nonce: B64::with_last_byte(1),
        base_fee_per_gas: Some(config.base_fee),
        ..Default::default()
    }
}

fn seal(header: Header, l1_number: u64) -> MinedBlock {
    let hash = header.hash_slow();
    MinedBlock { header, hash, l1_number, transactions: Vec::new() }
}

/// The block of one transaction.
fn mine(mut header: Header, l1_number: u64, tx: Recovered<TxEnvelope>, outcome: &Outcome) -> MinedBlock {
    let from = tx.signer();
    let (tx, _) = tx.into_parts();
    let bloom = logs_bloom(&outcome.logs);
    let receipt = Receipt {
        status: (outcome.status == Status::Success).into(),
        cumulative_gas_used: outcome.gas_used,
        logs: outcome.logs.clone(),
    };
    let kind = TxType::try_from(alloy_eips::Typed2718::ty(&tx)).unwrap_or(TxType::Legacy);
    let envelope = ReceiptEnvelope::from_typed(kind, ReceiptWithBloom { receipt, logs_bloom: bloom });
    header.transactions_root = proofs::calculate_transaction_root(std::slice::from_ref(&tx));
    header.receipts_root = proofs::calculate_receipt_root(std::slice::from_ref(&envelope));
    header.logs_bloom = bloom;
    header.gas_used = outcome.gas_used;
    let hash = header.hash_slow();
    let transaction_hash = *tx.tx_hash();
    let mut index = 0;
    let inner = envelope.map_logs(|log| {
        index += 1;
        Log {
            inner: log,
            block_hash: Some(hash),
            block_number: Some(header.number),
            block_timestamp: Some(header.timestamp),
            transaction_hash: Some(transaction_hash),
            transaction_index: Some(0),
            log_index: Some(index - 1),
            removed: false,
        }
    });
    let receipt = TransactionReceipt {
        inner,
        transaction_hash,
        transaction_index: Some(0),
        block_hash: Some(hash),
        block_number: Some(header.number),
        gas_used: outcome.gas_used,
        // ArbOS takes no tips.
        effective_gas_price: u128::from(header.base_fee_per_gas.unwrap_or_default()),
        blob_gas_used: None,
        blob_gas_price: None,
        from,
        to: tx.to(),
        contract_address: outcome.created,
    };
    let transactions = vec![MinedTx { tx: Recovered::new_unchecked(tx, from), receipt }];
    MinedBlock { header, hash, l1_number, transactions }
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
