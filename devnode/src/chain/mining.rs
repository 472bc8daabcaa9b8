//! From a signed transaction to a block.

use std::sync::{Arc, Weak};
use std::time::Duration;

use alloy_consensus::transaction::{Recovered, SignerRecoverable};
use alloy_consensus::{SignableTransaction, Transaction, TxEnvelope, TypedTransaction};
use alloy_eips::eip2718::Decodable2718;
use alloy_primitives::{Address, Signature, B256, U256};
use alloy_rpc_types_eth::BlockId;
use alloy_signer::SignerSync;

use super::block::{self, hashes_of, l1_number, Setting, PREVRANDAO};
use super::config::{MAX_EMPTY_BLOCKS, MAX_FEE, MAX_TX_BYTES, MIN_INTERVAL, TX_GAS};
use super::error::CallError;
use super::journal::{Op, SentTx};
use super::pool::Pool;
use super::time::Time;
use super::{append, keeps_states, Chain, Inner, MinedBlock, SendError, Shared, TimeError, TxRequest, Writer, RECENT_HASHES};
use crate::evm::{Evm, Outcome, Status, TxError};
use crate::state::State;

/// The result of a transaction sent in process.
#[derive(Clone, Debug)]
pub struct Mined {
    /// Hash of the transaction.
    pub hash: B256,
    /// Its block.
    pub block: Arc<MinedBlock>,
    /// Its outcome, revert data and Stylus figures included.
    pub outcome: Outcome,
}

impl Mined {
    /// Whether it succeeded.
    pub fn ok(&self) -> bool {
        self.outcome.status == Status::Success
    }
}

/// A transaction that was taken.
#[derive(Clone, Debug)]
pub struct Submitted {
    /// Its hash.
    pub hash: B256,
    /// Its block; `None` while it waits because mining is off.
    pub mined: Option<Mined>,
}

/// Transactions run one after the other on a copy of the state.
pub(super) struct Run {
    pub state: State,
    pub setting: Setting,
    pub ran: Vec<(Recovered<TxEnvelope>, Outcome)>,
    /// Transactions that can never be mined as things stand.
    pub dropped: Vec<B256>,
}

impl Run {
    /// Runs waiting transactions, as far as the block's gas limit goes.
    pub(super) fn of_pool(evm: &Evm, pool: &Pool, state: State, setting: Setting, hashes: &[(u64, B256)]) -> Self {
        let mut run = Self { state, setting, ran: Vec::new(), dropped: Vec::new() };
        evm.remember(&mut run.state, hashes);
        let mut room = setting.gas_limit;
        let mut queue = pool.queue();
        while let Some(waiting) = queue.pop() {
            let tx = &waiting.tx;
            // A transaction that does not fit, or offers too little for now, holds up only its sender's later ones.
            if tx.gas_limit() > room || tx.max_fee_per_gas() < u128::from(setting.base_fee) {
                continue;
            }
            let block = setting.context(hashes);
            match evm.transact(&mut run.state, &block, &block::context(tx, setting.base_fee)) {
                Ok(outcome) => {
                    room -= outcome.gas_used;
                    run.ran.push((tx.clone(), outcome));
                    queue.advance(tx.signer());
                }
                // Neither is the transaction's fault.
                Err(TxError::NonceTooHigh { .. } | TxError::Unread(_)) => {}
                Err(TxError::NonceTooLow { .. }) => {
                    run.dropped.push(*tx.tx_hash());
                    queue.advance(tx.signer());
                }
                Err(_) => run.dropped.push(*tx.tx_hash()),
            }
        }
        run
    }
}

impl Inner {
    /// The setting of the next block at `timestamp`.
    pub(super) fn next_setting(&self, timestamp: u64) -> Setting {
        let parent = self.head();
        Setting {
            number: parent.header.number + 1,
            parent_hash: parent.hash,
            timestamp,
            l1_number: l1_number(self.genesis_time, timestamp),
            base_fee: self.upcoming.base_fee,
            gas_limit: self.upcoming.gas_limit,
            coinbase: self.upcoming.coinbase,
            prevrandao: self.upcoming.prevrandao.unwrap_or(PREVRANDAO),
        }
    }

    /// The last hashes, newest last.
    pub(super) fn newest_hashes(&self) -> &[(u64, B256)] {
        &self.recent[self.recent.len().saturating_sub(RECENT_HASHES)..]
    }

    /// go-ethereum's checks before it takes a transaction, in its order: the nonce, the cap, the balance for the whole cap. While mining is
    /// off a nonce may be ahead and a cap low: such a transaction waits. Otherwise a nonce may be ahead by the transactions that wait since
    /// then.
    fn check(&self, tx: &Recovered<TxEnvelope>, waits: bool) -> Result<(), SendError> {
        let from = tx.signer();
        if tx.gas_limit() > self.upcoming.gas_limit {
            return Err(SendError::GasLimit);
        }
        let (cap, base_fee) = (tx.max_fee_per_gas(), u128::from(self.upcoming.base_fee));
        if let Some(tip) = tx.max_priority_fee_per_gas().filter(|tip| *tip > cap) {
            return Err(SendError::TipAboveFeeCap { address: from, tip, cap });
        }
        if let Some(list) = tx.authorization_list() {
            if list.is_empty() {
                return Err(SendError::NoAuthorizations);
            }
            if tx.to().is_none() {
                return Err(SendError::SetCodeCreates);
            }
        }
        let nonce = self.state.nonce(from);
        if tx.nonce() < nonce {
            return Err(TxError::NonceTooLow { address: from, tx: tx.nonce(), state: nonce }.into());
        }
        if !waits && tx.nonce() > self.pool.next_nonce(from, nonce) {
            return Err(TxError::NonceTooHigh { address: from, tx: tx.nonce(), state: nonce }.into());
        }
        if cap < base_fee && !waits {
            return Err(TxError::FeeCapTooLow { address: from, max_fee: cap, base_fee }.into());
        }
        let have = self.state.balance(from);
        let want = U256::from(tx.gas_limit()).saturating_mul(U256::from(cap)).saturating_add(tx.value());
        if want > have {
            return Err(TxError::InsufficientFunds { address: from, have, want }.into());
        }
        Ok(())
    }
}

impl Chain {
    /// Takes a signed transaction and mines it. One whose execution fails is mined too: see [`Mined::outcome`].
    ///
    /// # Errors
    /// The transaction is not taken, and nothing changed; or it waits, because mining is off.
    pub fn send_raw(&self, bytes: &[u8]) -> Result<Mined, SendError> {
        let submitted = self.submit_raw(bytes)?;
        submitted.mined.ok_or(SendError::NotMined(submitted.hash))
    }

    /// Takes a signed transaction; mines it at once unless mining is off.
    ///
    /// # Errors
    /// The transaction is not taken, and nothing changed.
    pub fn submit_raw(&self, bytes: &[u8]) -> Result<Submitted, SendError> {
        let tx = self.decode(bytes)?;
        self.submit(&self.writer(), tx)
    }

    /// The hash and sender of a signed transaction, checked for everything that does not depend on the state.
    fn decode(&self, bytes: &[u8]) -> Result<Recovered<TxEnvelope>, SendError> {
        // Type bytes end at 0x7f; a list begins at 0xc0.
        let known = if self.sets_code() { [1, 2, 4].as_slice() } else { &[1, 2] };
        if bytes.first().is_some_and(|t| *t < 0x80 && *t != 0 && !known.contains(t)) {
            return Err(SendError::UnsupportedType);
        }
        let tx = TxEnvelope::decode_2718_exact(bytes).map_err(|e| SendError::Malformed(e.to_string()))?;
        let fee = U256::from(tx.max_fee_per_gas()).saturating_mul(U256::from(tx.gas_limit()));
        if fee > MAX_FEE {
            return Err(SendError::FeeTooHigh(fee));
        }
        if bytes.len() > MAX_TX_BYTES {
            return Err(SendError::Oversized);
        }
        if let Some(have) = tx.chain_id().filter(|id| *id != self.config().chain_id) {
            return Err(SendError::WrongChain { have, want: self.config().chain_id });
        }
        tx.try_into_recovered().map_err(|e| SendError::InvalidSignature(e.to_string()))
    }

    /// Whether accounts may set their code (EIP-7702).
    fn sets_code(&self) -> bool {
        self.config().arbos_version >= 40
    }

    /// Sends a transaction from any address, without signature. Missing fields are filled in; without `from` the
    /// first funded account sends, without `gas` the limit is [`TX_GAS`]. It is mined at once, even where mining is
    /// off.
    ///
    /// # Errors
    /// The transaction is not taken, and nothing changed.
    pub fn send(&self, request: TxRequest) -> Result<Mined, SendError> {
        let from = request.from.unwrap_or(self.accounts()[0]);
        self.reads(from);
        let writer = self.writer();
        let nonce = self.0.inner.read().state.nonce(from);
        let tx = self.fill(request, from, TX_GAS, nonce)?;
        let tx = Recovered::new_unchecked(tx.into_signed(unsigned(from)).into(), from);
        self.include(&writer, tx)
    }

    /// Sends a transaction from an account whose key the node holds (signed with it), or that is impersonated.
    ///
    /// # Errors
    /// The transaction is not taken, and nothing changed.
    pub fn send_unlocked(&self, request: TxRequest) -> Result<Submitted, SendError> {
        let from = request.from.unwrap_or(self.accounts()[0]);
        let gas = self.gas_for(&request);
        let writer = self.writer();
        let nonce = self.next_nonce(from);
        let tx = self.fill(request, from, gas, nonce)?;
        let signature = self.signature(&tx, from)?;
        self.submit(&writer, Recovered::new_unchecked(tx.into_signed(signature).into(), from))
    }

    /// Signs a transaction for an account whose key the node holds and does not send it.
    ///
    /// # Errors
    /// No key for the sender, or the request lacks or mixes fields.
    pub fn sign_transaction(&self, request: TxRequest) -> Result<TxEnvelope, SendError> {
        let from = request.from.unwrap_or(self.accounts()[0]);
        if self.signer(from).is_none() {
            return Err(SendError::UnknownAccount(from));
        }
        let gas = self.gas_for(&request);
        let tx = self.fill(request, from, gas, self.next_nonce(from))?;
        let signature = self.signature(&tx, from)?;
        Ok(tx.into_signed(signature).into())
    }

    /// Fills in missing fields of a transaction, as `eth_fillTransaction` does on Nitro. It does so for any sender, and with an estimate at
    /// the newest block, where `eth_estimateGas` alone looks ahead. The signature is empty.
    ///
    /// # Errors
    /// The estimate fails, or the request lacks or mixes fields.
    pub fn fill_transaction(&self, mut request: TxRequest) -> Result<TxEnvelope, CallError> {
        let from = request.from.unwrap_or_default();
        if request.to.is_none() && request.input.input().is_none_or(|data| data.is_empty()) {
            return Err(CallError::Override("contract creation without any data provided".into()));
        }
        if request.gas_price.is_none() {
            let tip = *request.max_priority_fee_per_gas.get_or_insert(0);
            request.max_fee_per_gas.get_or_insert(u128::from(self.base_fee()).saturating_mul(2).saturating_add(tip));
        }
        let gas = match request.gas {
            Some(gas) => gas,
            None => self.estimate_gas(&request, BlockId::latest(), None, None)?,
        };
        let filled =
            self.fill(request, from, gas, self.next_nonce(from)).map_err(|error| CallError::Override(error.to_string()))?;
        Ok(filled.into_signed(Signature::new(U256::ZERO, U256::ZERO, false)).into())
    }

    /// The nonce after everything mined and waiting.
    pub fn next_nonce(&self, account: Address) -> u64 {
        self.reads(account);
        let inner = self.0.inner.read();
        inner.pool.next_nonce(account, inner.state.nonce(account))
    }

    fn gas_for(&self, request: &TxRequest) -> u64 {
        // As on other nodes, a transaction that would fail is mined rather than refused here.
        let estimate = || self.estimate_gas(request, BlockId::latest(), None, None).unwrap_or(TX_GAS);
        request.gas.unwrap_or_else(estimate)
    }

    fn signature(&self, tx: &TypedTransaction, from: Address) -> Result<Signature, SendError> {
        if let Some(key) = self.signer(from) {
            return key.sign_hash_sync(&tx.signature_hash()).map_err(|e| SendError::InvalidSignature(e.to_string()));
        }
        let inner = self.0.inner.read();
        if inner.impersonate_all || inner.impersonated.contains(&from) {
            return Ok(unsigned(from));
        }
        Err(SendError::UnknownAccount(from))
    }

    pub(super) fn fill(
        &self,
        mut request: TxRequest,
        from: Address,
        gas: u64,
        nonce: u64,
    ) -> Result<TypedTransaction, SendError> {
        if let Some(have) = request.chain_id.filter(|id| *id != self.config().chain_id) {
            return Err(SendError::WrongChain { have, want: self.config().chain_id });
        }
        if request.has_eip4844_fields() || (request.authorization_list.is_some() && !self.sets_code()) {
            return Err(SendError::UnsupportedType);
        }
        if request.input.unique_input().is_err() {
            return Err(SendError::Incomplete(
                r#"both "data" and "input" are set and not equal. Please use "input" to pass transaction call data"#.into(),
            ));
        }
        request.from = Some(from);
        request.chain_id = Some(self.config().chain_id);
        request.nonce.get_or_insert(nonce);
        request.gas.get_or_insert(gas);
        // No recipient means creation.
        request.to.get_or_insert(alloy_primitives::TxKind::Create);
        if request.gas_price.is_none() {
            let base_fee = u128::from(self.base_fee());
            let tip = *request.max_priority_fee_per_gas.get_or_insert(0);
            request.max_fee_per_gas.get_or_insert(base_fee.saturating_add(tip));
        }
        request.build_typed_tx().map_err(|_| SendError::Incomplete("fields of different transaction types are mixed".into()))
    }

    /// Takes a transaction: into a block, or among those that wait.
    fn submit(&self, writer: &Writer<'_>, tx: Recovered<TxEnvelope>) -> Result<Submitted, SendError> {
        let hash = *tx.tx_hash();
        self.reads(tx.signer());
        let (automine, alone) = {
            let inner = self.0.inner.read();
            (inner.automine, inner.pool.is_empty())
        };
        if automine && alone {
            let mined = self.include(writer, tx)?;
            return Ok(Submitted { hash, mined: Some(mined) });
        }
        let state = {
            let inner = self.0.inner.read();
            inner.check(&tx, !automine)?;
            inner.state.clone()
        };
        self.evm().check_lasting(&state, &block::context(&tx, 0))?;
        self.0.inner.write().pool.add(tx.clone())?;
        self.record(|| Op::Wait { tx: SentTx::of(&tx) });
        self.announce(hash, || tx);
        if !automine {
            return Ok(Submitted { hash, mined: None });
        }
        // Transactions that waited since mining was off go along.
        let (block, mut outcomes) = self.mine_waiting(writer);
        let index = block.transactions.iter().position(|t| *t.tx.tx_hash() == hash);
        let mined = index.map(|index| Mined { hash, outcome: outcomes.swap_remove(index), block });
        Ok(Submitted { hash, mined })
    }

    /// Tells the watchers of pending transactions.
    fn announce(&self, hash: B256, tx: impl FnOnce() -> Recovered<TxEnvelope>) {
        self.0.inner.write().arrivals.push(hash);
        if self.0.arrivals.receiver_count() > 0 {
            // Fails only when the last receiver has just gone.
            let _ = self.0.arrivals.send(Arc::new(tx()));
        }
    }

    /// Runs a transaction in a block of its own.
    fn include(&self, writer: &Writer<'_>, tx: Recovered<TxEnvelope>) -> Result<Mined, SendError> {
        let (mut state, setting, time, hashes) = {
            let inner = self.0.inner.read();
            inner.check(&tx, false)?;
            let mut time = inner.time;
            let timestamp = time.take(inner.head().header.timestamp);
            (inner.state.clone(), inner.next_setting(timestamp), time, inner.recent.clone())
        };
        let newest = &hashes[hashes.len().saturating_sub(RECENT_HASHES)..];
        let context = block::context(&tx, setting.base_fee);
        let outcome = self.evm().transact(&mut state, &setting.context(newest), &context)?;
        drop(hashes);
        let hash = *tx.tx_hash();
        let block = self.put(writer, setting, time, state, vec![(tx, &outcome)]);
        self.announce(hash, || block.transactions[0].tx.clone());
        Ok(Mined { hash, block, outcome })
    }

    /// Puts a block at the end of the chain.
    fn put(
        &self,
        writer: &Writer<'_>,
        setting: Setting,
        time: Time,
        state: State,
        ran: Vec<(Recovered<TxEnvelope>, &Outcome)>,
    ) -> Arc<MinedBlock> {
        let shared = &*self.0;
        let root = if shared.config.state_root { state.root() } else { B256::ZERO };
        let block = Arc::new(block::seal(&setting, shared.config.arbos_version, root, ran));
        self.record(|| Op::Block {
            hash: block.hash,
            setting,
            time: time.into(),
            transactions: block.transactions.iter().map(|mined| SentTx::of(&mined.tx)).collect(),
        });
        self.show(&block, time, state);
        self.fold_log(writer);
        block
    }

    /// Lets readers see a block.
    fn show(&self, block: &Arc<MinedBlock>, time: Time, state: State) {
        let shared = &*self.0;
        let mut inner = shared.inner.write();
        let inner = &mut *inner;
        let before = std::mem::replace(&mut inner.state, state);
        inner.time = time;
        inner.upcoming.prevrandao = None;
        append(inner, &shared.config, block.clone(), keeps_states(&shared.config).then_some(before));
        if !inner.pool.is_empty() {
            for done in hashes_of(block) {
                inner.pool.remove(done);
            }
            let state = inner.state.clone();
            inner.pool.forget_used(|sender| state.nonce(sender));
        }
        if shared.news.receiver_count() > 0 {
            // Fails only when the last receiver has just gone.
            let _ = shared.news.send(block.clone());
        }
    }

    /// Runs waiting transactions on a copy of the newest state.
    pub(super) fn run_waiting(&self) -> Option<Run> {
        let (pool, state, setting, hashes) = {
            let inner = self.0.inner.read();
            if inner.pool.is_empty() {
                return None;
            }
            let timestamp = inner.time.next(inner.head().header.timestamp);
            (inner.pool.clone(), inner.state.clone(), inner.next_setting(timestamp), inner.newest_hashes().to_vec())
        };
        Some(Run::of_pool(self.evm(), &pool, state, setting, &hashes))
    }

    /// Mines one block of waiting transactions.
    fn mine_waiting(&self, writer: &Writer<'_>) -> (Arc<MinedBlock>, Vec<Outcome>) {
        let (pool, state, setting, time, hashes) = {
            let inner = self.0.inner.read();
            let mut time = inner.time;
            let timestamp = time.take(inner.head().header.timestamp);
            let pool = (!inner.pool.is_empty()).then(|| inner.pool.clone());
            (pool, inner.state.clone(), inner.next_setting(timestamp), time, inner.newest_hashes().to_vec())
        };
        let Some(pool) = pool else {
            let mut state = state;
            self.evm().remember(&mut state, &hashes);
            return (self.put(writer, setting, time, state, Vec::new()), Vec::new());
        };
        let run = Run::of_pool(self.evm(), &pool, state, setting, &hashes);
        if !run.dropped.is_empty() {
            for hash in &run.dropped {
                self.record(|| Op::Drop { hash: *hash });
                self.0.inner.write().pool.remove(*hash);
            }
        }
        let (transactions, outcomes): (Vec<_>, Vec<_>) = run.ran.into_iter().unzip();
        let ran = transactions.into_iter().zip(&outcomes).collect();
        (self.put(writer, setting, time, run.state, ran), outcomes)
    }

    /// Mines blocks, `interval` seconds apart; the clock moves along. Waiting transactions go into the first, as far as its gas limit
    /// allows.
    ///
    /// # Errors
    /// Too many at once, or beyond the range of timestamps.
    pub fn mine(&self, blocks: u64, interval: u64) -> Result<(), TimeError> {
        if blocks > MAX_EMPTY_BLOCKS {
            return Err(TimeError::TooManyBlocks(blocks));
        }
        let writer = self.writer();
        {
            let inner = self.0.inner.read();
            let latest = inner.head().header.timestamp;
            let end = interval.checked_mul(blocks).and_then(|s| inner.time.next(latest).checked_add(s));
            if end.is_none_or(|t| t > i64::MAX as u64) {
                return Err(TimeError::Overflow);
            }
        }
        for index in 0..blocks {
            if index > 0 {
                self.0.inner.write().time.offset += i128::from(interval);
            }
            self.mine_waiting(&writer);
        }
        Ok(())
    }

    /// Whether a transaction is mined as soon as it is sent.
    pub fn automine(&self) -> bool {
        self.0.inner.read().automine
    }

    /// Switches mining at once on or off. While it is off transactions wait for [`Chain::mine`] or the clock.
    pub fn set_automine(&self, on: bool) {
        self.edit(|| Op::Automine { on }, |inner| inner.automine = on);
    }

    /// Mines a block every so many milliseconds; 0 ends that.
    ///
    /// # Errors
    /// An interval below [`MIN_INTERVAL`], or the machine gives no thread.
    pub fn set_interval(&self, milliseconds: u64) -> Result<(), TimeError> {
        let period = Duration::from_millis(milliseconds);
        if milliseconds > 0 && period < MIN_INTERVAL {
            return Err(TimeError::Interval(milliseconds));
        }
        let mut clock = self.0.interval.lock();
        // A ticker of an earlier setting sees that its turn is over.
        clock.turn += 1;
        clock.milliseconds = milliseconds;
        if milliseconds > 0 {
            let (turn, chain) = (clock.turn, Arc::downgrade(&self.0));
            std::thread::Builder::new()
                .name("devnode-interval".into())
                .spawn(move || tick(&chain, turn, period))
                .map_err(|_| TimeError::NoThread)?;
        }
        Ok(())
    }

    /// Milliseconds between two blocks that are mined by the clock; 0 for none.
    pub fn interval(&self) -> u64 {
        self.0.interval.lock().milliseconds
    }
}

/// Mines by the clock until the chain is gone or another interval was set.
fn tick(chain: &Weak<Shared>, turn: u64, period: Duration) {
    loop {
        std::thread::sleep(period);
        let Some(shared) = chain.upgrade() else { return };
        let chain = Chain(shared);
        let writer = chain.writer();
        if chain.0.interval.lock().turn != turn {
            return;
        }
        chain.mine_waiting(&writer);
    }
}

/// Not a signature of anything: it only makes the hash differ from sender to sender.
pub(super) fn unsigned(from: Address) -> Signature {
    Signature::new(U256::from_be_slice(from.as_slice()), U256::ONE, false)
}
