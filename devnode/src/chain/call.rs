//! Calls and estimates: everything that runs on a state and changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{Address, B256, U256};
use alloy_rpc_types_eth::state::StateOverride;
use alloy_rpc_types_eth::{BlockId, BlockOverrides};

use super::block::Setting;
use super::config::CALL_GAS;
use super::error::{CallError, SendError};
use super::{Chain, TxRequest, RECENT_HASHES};
use crate::evm::{BlockCtx, Outcome, Status, Trace, TraceRequest, TxCtx, TxError};
use crate::state::State;

/// Runs to find an access list; two are the rule.
const MAX_ACCESS_LIST_ROUNDS: usize = 32;
/// Gas of a transaction that only moves ether.
const TRANSFER_GAS: u64 = 21_000;

/// Everything a call needs, detached from the chain.
pub(super) struct Scene {
    pub state: State,
    pub recent: Arc<Vec<(u64, B256)>>,
    pub setting: Setting,
    /// Precompiles that are elsewhere, and where they would be.
    pub moved: Vec<(Address, Address)>,
}

impl Scene {
    pub(super) fn block(&self) -> BlockCtx<'_> {
        // Only hashes before the block itself are visible.
        let end = self.recent.partition_point(|(n, _)| *n < self.setting.number);
        let hashes = &self.recent[end.saturating_sub(RECENT_HASHES)..end];
        BlockCtx { moved_precompiles: &self.moved, ..self.setting.context(hashes) }
    }

    /// Changes accounts as a call asks for it.
    pub(super) fn override_state(&mut self, overrides: &StateOverride) -> Result<(), CallError> {
        for (address, account) in overrides {
            let state = &mut self.state;
            if let Some(to) = account.move_precompile_to {
                if self.moved.iter().any(|(_, before)| before == address) {
                    return Err(CallError::Override(format!("account {address} has already been overridden by a precompile")));
                }
                if !crate::evm::is_precompile(address) {
                    return Err(CallError::Override(format!("account {address} is not a precompile")));
                }
                if overrides.contains_key(&to) || self.moved.iter().any(|(now, _)| *now == to) {
                    return Err(CallError::Override(format!("destination account {to} is already overridden")));
                }
                self.moved.push((to, *address));
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
        Ok(())
    }

    /// Changes the block as a call asks for it. As on Nitro the number is L2's, which `block.number` does not tell, and
    /// `prevrandao` is the difficulty. The price of blobs has no instruction on Arbitrum that would tell it.
    pub(super) fn override_block(&mut self, overrides: &BlockOverrides) {
        let setting = &mut self.setting;
        setting.number = overrides.number.map_or(setting.number, |n| n.saturating_to());
        setting.timestamp = overrides.time.unwrap_or(setting.timestamp);
        setting.gas_limit = overrides.gas_limit.unwrap_or(setting.gas_limit);
        setting.coinbase = overrides.coinbase.unwrap_or(setting.coinbase);
        setting.prevrandao = overrides.difficulty.map_or(setting.prevrandao, B256::from);
        setting.base_fee = overrides.base_fee.map_or(setting.base_fee, |f| f.saturating_to());
        for (number, hash) in overrides.block_hash.iter().flatten() {
            self.state.l1_hashes.override_hash(*number, *hash);
        }
    }
}

impl Chain {
    /// Runs a call in the newest block and discards its effects: `eth_call` at `latest`.
    ///
    /// # Errors
    /// The call could not be begun. A revert is an outcome.
    pub fn call(&self, request: &TxRequest) -> Result<Outcome, CallError> {
        self.call_at(request, BlockId::latest(), None, None)
    }

    /// Runs a call in the next block and discards its effects, as a transaction sent now would see it: `eth_call` at
    /// `pending`.
    ///
    /// # Errors
    /// The call could not be begun. A revert is an outcome.
    pub fn call_pending(&self, request: &TxRequest) -> Result<Outcome, CallError> {
        self.call_at(request, BlockId::pending(), None, None)
    }

    /// Runs a call on the state after a block, and as part of that block: it sees the block's number and time, and the
    /// hashes before it. Only `pending` is the next block on the newest state, at the time of now.
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
        self.trace_call(request, at, overrides, block_overrides, TraceRequest::Nothing)
    }

    /// As [`Chain::call_at`], with [`Outcome::trace`].
    ///
    /// # Errors
    /// The call could not be begun.
    pub fn trace_call(
        &self,
        request: &TxRequest,
        at: BlockId,
        overrides: Option<&StateOverride>,
        block_overrides: Option<&BlockOverrides>,
        trace: TraceRequest,
    ) -> Result<Outcome, CallError> {
        let scene = self.scene(at, overrides, block_overrides)?;
        let mut tx = self.call_context(request, scene.setting.base_fee)?;
        tx.trace = trace;
        Ok(self.0.evm.call(&scene.state, &scene.block(), &tx)?)
    }

    /// The access list with which the transaction touches nothing cold, and the outcome with that list.
    ///
    /// # Errors
    /// The call could not be begun, or touches something else each time its list grows. A failure is an outcome.
    pub fn create_access_list(&self, request: &TxRequest, at: BlockId) -> Result<(AccessList, Outcome), CallError> {
        // Nitro looks ahead for calls and estimates alone.
        let at = if at.is_pending() && self.0.inner.read().pool.is_empty() { BlockId::latest() } else { at };
        let scene = self.scene(at, None, None)?;
        let mut tx = self.call_context(request, scene.setting.base_fee)?;
        tx.trace = TraceRequest::Accessed;
        let mut list: BTreeMap<Address, BTreeSet<B256>> = BTreeMap::new();
        for (address, slots) in std::mem::take(&mut tx.access_list) {
            list.entry(address).or_default().extend(slots);
        }
        let items = |list: &BTreeMap<Address, BTreeSet<B256>>| -> Vec<(Address, Vec<B256>)> {
            list.iter().map(|(address, slots)| (*address, slots.iter().copied().collect())).collect()
        };
        for _ in 0..MAX_ACCESS_LIST_ROUNDS {
            tx.access_list = items(&list);
            let outcome = self.0.evm.call(&scene.state, &scene.block(), &tx)?;
            if let Trace::Accessed(accessed) = &outcome.trace {
                for account in accessed.iter().filter(|account| !account.warm) {
                    list.entry(account.address).or_default().extend(&account.slots);
                }
            }
            let grown = items(&list);
            if grown == tx.access_list {
                let item = |(address, storage_keys)| AccessListItem { address, storage_keys };
                return Ok((AccessList(grown.into_iter().map(item).collect()), outcome));
            }
        }
        Err(CallError::Failed { reason: "the access list does not settle: each one makes the call touch more".into() })
    }

    pub(super) fn call_context(&self, request: &TxRequest, base_fee: u64) -> Result<TxCtx, CallError> {
        if request.gas_price.is_some() && (request.max_fee_per_gas.is_some() || request.max_priority_fee_per_gas.is_some()) {
            return Err(CallError::Override("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified".into()));
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
                    r#"both "data" and "input" are set and not equal. Please use "input" to pass transaction call data"#.into(),
                )
            })?
            .cloned()
            .unwrap_or_default();
        let price = request.gas_price.or(request.max_fee_per_gas).unwrap_or(0);
        let base_fee = u128::from(base_fee);
        if let Some(tip) = request.max_priority_fee_per_gas.filter(|tip| *tip > request.max_fee_per_gas.unwrap_or(0)) {
            let (address, cap) = (request.from.unwrap_or_default(), request.max_fee_per_gas.unwrap_or(0));
            return Err(CallError::Override(SendError::TipAboveFeeCap { address, tip, cap }.to_string()));
        }
        if request.authorization_list.is_some() && self.0.config.arbos_version < 40 {
            return Err(CallError::Override(SendError::UnsupportedType.to_string()));
        }
        // A price of 0 is not looked at, any other must be one that a transaction could have.
        if price > 0 && price < base_fee {
            let address = request.from.unwrap_or_default();
            return Err(TxError::FeeCapTooLow { address, max_fee: price, base_fee }.into());
        }
        Ok(TxCtx {
            caller: request.from.unwrap_or_default(),
            to: request.to.and_then(|kind| kind.to().copied()),
            value: request.value.unwrap_or_default(),
            data,
            gas_limit: request.gas.unwrap_or(CALL_GAS).min(CALL_GAS),
            // ArbOS charges the base fee, whatever is offered above it.
            gas_price: price.min(base_fee),
            offered: request
                .gas_price
                .unwrap_or_else(|| price.min(base_fee.saturating_add(request.max_priority_fee_per_gas.unwrap_or(0)))),
            nonce: None,
            access_list: request
                .access_list
                .iter()
                .flat_map(|l| l.0.iter().map(|i| (i.address, i.storage_keys.clone())))
                .collect(),
            authorizations: request.authorization_list.clone().unwrap_or_default(),
            is_call: true,
            is_estimate: false,
            trace: TraceRequest::Nothing,
        })
    }

    /// The state and block a call runs in.
    pub(super) fn scene(
        &self,
        at: BlockId,
        overrides: Option<&StateOverride>,
        block_overrides: Option<&BlockOverrides>,
    ) -> Result<Scene, CallError> {
        let waiting = if at.is_pending() { self.run_waiting() } else { None };
        let mut scene = {
            let inner = self.0.inner.read();
            let block = &inner.resolve(at)?.block;
            let scene = |state, setting: Setting| Scene {
                state,
                recent: inner.hashes_before(setting.number),
                setting,
                moved: Vec::new(),
            };
            match (at.is_pending(), waiting) {
                (true, Some(run)) => scene(run.state, run.setting),
                // The next block on the state after the newest. ArbOS's work at the start of a block has not happened in it: L1's number
                // stands where it stood, and the history of hashes ends before the newest.
                (true, None) => {
                    let (mut state, newest) = (inner.state.clone(), block.setting());
                    let before = inner.hashes_before(newest.number);
                    state.start_block(newest.number, newest.l1_number, newest.parent_hash);
                    self.0.evm.remember(&mut state, &before[..before.partition_point(|(n, _)| *n < newest.number)]);
                    state.recorded = Some(newest.number);
                    let next = inner.next_setting(inner.time.next(newest.timestamp));
                    scene(state, Setting { l1_number: newest.l1_number, ..next })
                }
                (false, _) => scene(inner.state_at(at)?, block.setting()),
            }
        };
        if let Some(overrides) = overrides {
            scene.override_state(overrides)?;
        }
        if let Some(overrides) = block_overrides {
            scene.override_block(overrides);
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
        let mut tx = self.call_context(request, scene.setting.base_fee)?;
        tx.is_estimate = true;
        tx.gas_limit = request.gas.filter(|gas| *gas >= TRANSFER_GAS).unwrap_or(CALL_GAS).min(CALL_GAS);
        // A sender that names a price must be able to pay; the limit is lowered to the sender's funds.
        let price = request.gas_price.or(request.max_fee_per_gas).unwrap_or(0);
        if price > 0 {
            let have = scene.state.balance(tx.caller);
            if tx.value >= have {
                return Err(CallError::Failed { reason: "insufficient funds for transfer".into() });
            }
            let allowance: u64 = ((have - tx.value) / U256::from(price)).saturating_to();
            tx.gas_limit = tx.gas_limit.min(allowance);
        }
        let run = |gas: u64| -> Result<Outcome, TxError> {
            let tx = TxCtx { gas_limit: gas, ..tx.clone() };
            self.0.evm.call(&scene.state, &block, &tx)
        };
        let exceeds = |limit: u64| CallError::Failed { reason: format!("gas required exceeds allowance ({limit})") };
        // A plain transfer needs no search. A recipient whose code is not visible (a precompile) may need more.
        if tx.data.is_empty() && tx.to.is_some_and(|to| scene.state.code(to).is_empty()) {
            if let Ok(Outcome { status: Status::Success, .. }) = run(TRANSFER_GAS) {
                return Ok(TRANSFER_GAS);
            }
        }
        let mut high = tx.gas_limit;
        let first = match run(high) {
            Ok(outcome) => outcome,
            Err(TxError::IntrinsicGas { .. } | TxError::FloorGas { .. }) => return Err(exceeds(high)),
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
            Err(TxError::IntrinsicGas { .. } | TxError::FloorGas { .. }) => Ok(false),
            Err(other) => Err(CallError::from(other)),
        };
        // Less than the used gas never suffices.
        let mut low = first.gas_used.saturating_sub(1);
        // Most transactions fit after one try with the extra gas of refunds, the stipend and one 63/64 on top.
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
}
