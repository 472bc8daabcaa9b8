//! Mined transactions once more, with their trace.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{Address, Bytes, B256, U256};
use alloy_rpc_types_eth::state::StateOverride;
use alloy_rpc_types_eth::{BlockId, BlockOverrides};

use super::block;
use super::call::Scene;
use super::error::CallError;
use super::{Chain, MinedBlock, TxRequest};
use crate::evm::{Outcome, Trace, TraceRequest, TxCtx};
use crate::state::State;

/// An account before or after a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountView {
    /// Wei.
    pub balance: U256,
    /// Transactions sent, or contracts created.
    pub nonce: u64,
    /// Code as deployed.
    pub code: Bytes,
    /// Of the slots that the transaction touched, those that are not zero.
    pub storage: BTreeMap<B256, B256>,
}

/// The accounts and slots that a transaction touched.
#[derive(Clone, Debug, Default)]
pub struct Touched {
    /// Before it.
    pub before: BTreeMap<Address, AccountView>,
    /// After it.
    pub after: BTreeMap<Address, AccountView>,
}

impl Chain {
    /// Runs a mined transaction again on the state before it and makes the requested recording.
    ///
    /// # Errors
    /// The transaction is unknown, or the state before it is no longer kept.
    pub fn trace_transaction(&self, hash: B256, request: TraceRequest) -> Result<Outcome, CallError> {
        let unknown = || CallError::Override("transaction not found".into());
        let (block, index) = self.transaction(hash).ok_or_else(unknown)?;
        let mut outcome = Err(unknown());
        self.replay(&block, index..index + 1, |evm, scene, tx| {
            let traced = TxCtx { trace: request, ..tx.clone() };
            outcome = Ok(evm.transact(&mut scene.state.clone(), &scene.block(), &traced)?);
            Ok(())
        })?;
        checked_trace(outcome?)
    }

    /// The same for every transaction of a block.
    ///
    /// # Errors
    /// The block is unknown, the state before it is no longer kept, or `each` fails.
    pub fn trace_block(
        &self,
        id: BlockId,
        request: TraceRequest,
        mut each: impl FnMut(B256, Outcome) -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        let block = self.block(id).ok_or(super::BlockError::Unknown)?;
        let mut hashes = block.transactions.iter().map(|t| *t.tx.tx_hash());
        self.replay(&block, 0..block.transactions.len(), |evm, scene, tx| {
            let traced = TxCtx { trace: request, ..tx.clone() };
            let outcome = evm.transact(&mut scene.state.clone(), &scene.block(), &traced)?;
            each(hashes.next().unwrap_or_default(), outcome)
        })
    }

    /// The accounts and slots that a mined transaction touched, before and after it.
    ///
    /// # Errors
    /// As for [`Chain::trace_transaction`].
    pub fn touched(&self, hash: B256) -> Result<Touched, CallError> {
        let unknown = || CallError::Override("transaction not found".into());
        let (block, index) = self.transaction(hash).ok_or_else(unknown)?;
        let mut touched = Touched::default();
        self.replay(&block, index..index + 1, |evm, scene, tx| {
            touched = touch(evm, scene, tx)?;
            Ok(())
        })?;
        Ok(touched)
    }

    /// The accounts and slots that each transaction of a block touched.
    ///
    /// # Errors
    /// As for [`Chain::trace_block`].
    pub fn touched_by_block(
        &self,
        id: BlockId,
        mut each: impl FnMut(B256, Touched) -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        let block = self.block(id).ok_or(super::BlockError::Unknown)?;
        let mut hashes = block.transactions.iter().map(|t| *t.tx.tx_hash());
        self.replay(&block, 0..block.transactions.len(), |evm, scene, tx| {
            each(hashes.next().unwrap_or_default(), touch(evm, scene, tx)?)
        })
    }

    /// The accounts and slots that a call would touch.
    ///
    /// # Errors
    /// The call could not be begun.
    pub fn touched_by_call(
        &self,
        request: &TxRequest,
        at: BlockId,
        overrides: Option<&StateOverride>,
        block_overrides: Option<&BlockOverrides>,
    ) -> Result<Touched, CallError> {
        let scene = self.scene(at, overrides, block_overrides)?;
        let tx = self.call_context(request, scene.setting.base_fee)?;
        touch(&self.0.evm, &scene, &tx)
    }

    /// Runs a block's transactions again and shows those of a range, each with the scene before it.
    fn replay(
        &self,
        block: &Arc<MinedBlock>,
        range: std::ops::Range<usize>,
        mut show: impl FnMut(&crate::evm::Evm, &Scene, &TxCtx) -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        let setting = block.setting();
        let Some(parent) = setting.number.checked_sub(1) else {
            return Err(CallError::Override("genesis is not traceable".into()));
        };
        let mut scene = {
            let inner = self.0.inner.read();
            let state = inner.state_at(BlockId::number(parent))?;
            Scene { state, recent: inner.hashes_before(setting.number), setting, moved: Vec::new() }
        };
        for (index, mined) in block.transactions.iter().enumerate().take(range.end) {
            let tx = block::context(&mined.tx, setting.base_fee);
            if range.contains(&index) {
                show(&self.0.evm, &scene, &tx)?;
            }
            if index + 1 < range.end {
                let mut state = scene.state.clone();
                self.0.evm.transact(&mut state, &scene.block(), &tx)?;
                scene.state = state;
            }
        }
        Ok(())
    }
}

/// An outcome whose trace was not too large.
pub(crate) fn checked_trace(outcome: Outcome) -> Result<Outcome, CallError> {
    match outcome.trace {
        Trace::TooLarge => Err(CallError::TraceTooLarge),
        _ => Ok(outcome),
    }
}

fn touch(evm: &crate::evm::Evm, scene: &Scene, tx: &TxCtx) -> Result<Touched, CallError> {
    let tx = TxCtx { trace: TraceRequest::Accessed, ..tx.clone() };
    let mut after = scene.state.clone();
    if tx.is_call {
        // A call stands alone: it doesn't profit from what the block has run before it.
        after.recent = Arc::default();
    }
    let outcome = evm.transact(&mut after, &scene.block(), &tx)?;
    let Trace::Accessed(mut accessed) = outcome.trace else { return Ok(Touched::default()) };
    // geth shows it too.
    let coinbase = scene.setting.coinbase;
    if !accessed.iter().any(|account| account.address == coinbase) {
        accessed.push(crate::trace::Accessed { address: coinbase, slots: Vec::new(), warm: true });
    }
    let view = |state: &State, address: Address, slots: &[B256]| AccountView {
        balance: state.balance(address),
        nonce: state.nonce(address),
        code: state.code(address),
        storage: slots
            .iter()
            .map(|slot| (*slot, B256::from(state.storage(address, (*slot).into()))))
            .filter(|(_, value)| !value.is_zero())
            .collect(),
    };
    let mut touched = Touched::default();
    for account in &accessed {
        touched.before.insert(account.address, view(&scene.state, account.address, &account.slots));
        touched.after.insert(account.address, view(&after, account.address, &account.slots));
    }
    Ok(touched)
}
