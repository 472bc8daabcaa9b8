//! Runs transactions and frames.

use revm::context::result::ExecutionResult;
use revm::context::{BlockEnv, CfgEnv, Context, TxEnv};
use revm::primitives::hardfork::SpecId;
use revm::primitives::{TxKind, B256, U256};
use revm::{ExecuteEvm, MainBuilder, MainContext};

use crate::evm::{BlockCtx, Evm, Outcome, Status, TxCtx, TxError};
use crate::state::State;

pub(crate) fn transact(evm: &Evm, state: &mut State, block: &BlockCtx, tx: &TxCtx) -> Result<Outcome, TxError> {
    let parent = block.recent_hashes.last().map_or(B256::ZERO, |(_, h)| *h);
    state.l1_hashes.start_block(block.l1_number, parent);
    let nonce = state.nonce(tx.caller);
    if let Some(n) = tx.nonce {
        if n < nonce {
            return Err(TxError::NonceTooLow { address: tx.caller, tx: n, state: nonce });
        }
        if n > nonce {
            return Err(TxError::NonceTooHigh { address: tx.caller, tx: n, state: nonce });
        }
    }
    let want = U256::from(tx.gas_limit) * U256::from(tx.gas_price) + tx.value;
    let have = state.balance(tx.caller);
    if want > have {
        return Err(TxError::InsufficientFunds { address: tx.caller, have, want });
    }
    let mut cfg = CfgEnv::new_with_spec_and_gas_params(
        SpecId::OSAKA,
        revm::context_interface::cfg::GasParams::new_spec(SpecId::OSAKA),
    );
    cfg.chain_id = evm.config.chain_id;
    cfg.tx_gas_limit_cap = Some(u64::MAX);
    cfg.disable_nonce_check = true;
    cfg.disable_base_fee = true;
    let ctx = Context::mainnet().with_db(state.clone()).with_cfg(cfg).with_block(BlockEnv {
        number: U256::from(block.l1_number),
        beneficiary: block.coinbase,
        timestamp: U256::from(block.timestamp),
        gas_limit: block.gas_limit,
        basefee: block.base_fee as u64,
        prevrandao: Some(B256::with_last_byte(1)),
        ..Default::default()
    });
    let mut revm = ctx.build_mainnet();
    let out = revm
        .transact(TxEnv {
            caller: tx.caller,
            gas_limit: tx.gas_limit,
            gas_price: tx.gas_price,
            kind: tx.to.map_or(TxKind::Create, TxKind::Call),
            value: tx.value,
            data: tx.data.clone(),
            nonce,
            chain_id: Some(evm.config.chain_id),
            ..Default::default()
        })
        .map_err(|_| TxError::IntrinsicGas { have: tx.gas_limit, want: 21_000 })?;
    state.commit(out.state);
    let (status, logs, output, created) = match &out.result {
        ExecutionResult::Success { logs, output, .. } => {
            (Status::Success, logs.clone(), output.data().clone(), output.address().copied())
        }
        ExecutionResult::Revert { output, .. } => (Status::Revert, vec![], output.clone(), None),
        ExecutionResult::Halt { reason, .. } => {
            (Status::Halt(format!("{reason:?}")), vec![], Default::default(), None)
        }
    };
    Ok(Outcome {
        status,
        output,
        gas_used: out.result.tx_gas_used(),
        gas_refunded: 0,
        logs,
        created,
        call_trace: None,
        stylus: vec![],
    })
}
