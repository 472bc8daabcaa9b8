//! `eth_simulateV1`: blocks of calls one after the other, on a state that is thrown away.

use std::sync::Arc;

use alloy_consensus::transaction::Recovered;
use alloy_consensus::{SignableTransaction, TxEnvelope};
use alloy_primitives::{address, b256, Address, Bytes, LogData, B256, U256};
use alloy_rpc_types_eth::simulate::{SimBlock, SimCallResult, SimulateError, SimulatePayload, MAX_SIMULATE_BLOCKS};
use alloy_rpc_types_eth::{BlockId, BlockOverrides, Log};

use super::block::{l1_number, seal, Setting, PREVRANDAO};
use super::call::Scene;
use super::config::CALL_GAS;
use super::error::CallError;
use super::mining::unsigned;
use super::{checked_trace, Chain, MinedBlock, TxRequest};
use crate::evm::{CallFrame, CallKind, Outcome, Status, Trace, TraceRequest, TxError};

/// Seconds between simulated blocks that name no time: go-ethereum's figure.
const BLOCK_TIME: u64 = 12;
/// The emitter of the events that stand for moved ether, and the event.
const ETHER: Address = address!("eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee");
const TRANSFER: B256 = b256!("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");

fn refuse<T>(code: i32, message: impl Into<String>) -> Result<T, CallError> {
    Err(CallError::Simulation { code, message: message.into() })
}

/// go-ethereum's code for a transaction that can't be part of a simulated block.
fn code_of(error: &TxError) -> i32 {
    match error {
        TxError::NonceTooLow { .. } => -38010,
        TxError::NonceTooHigh { .. } => -38011,
        TxError::IntrinsicGas { .. } | TxError::FloorGas { .. } => -38013,
        TxError::InsufficientFunds { .. } => -38014,
        TxError::SenderNotEoa { .. } => -38024,
        TxError::InitCodeTooLarge { .. } => -38025,
        TxError::FeeCapTooLow { .. } | TxError::Overflow => -32602,
        TxError::NonceMax { .. } => -32603,
        TxError::Unread(_) | TxError::TimedOut(_) => -32000,
    }
}

/// A simulated block, and the results of its calls.
pub type Simulated = (MinedBlock, Vec<SimCallResult>);

impl Chain {
    /// Runs blocks of calls after a block. Nothing is kept.
    ///
    /// # Errors
    /// Blocks out of order, or a call that can't be begun. One that fails is an outcome.
    pub fn simulate_blocks(&self, payload: SimulatePayload, at: BlockId) -> Result<Vec<Simulated>, CallError> {
        if payload.block_state_calls.is_empty() {
            return refuse(-32602, "empty input");
        }
        let (base, mut scene, mut hashes, genesis_time) = {
            let inner = self.0.inner.read();
            let base = inner.resolve(at)?.block.clone();
            let state = inner.state_at(at)?;
            let mut hashes = inner.hashes_before(base.header.number).to_vec();
            hashes.retain(|(number, _)| *number < base.header.number);
            hashes.push((base.header.number, base.hash));
            let scene = Scene { state, recent: Arc::default(), setting: base.setting(), moved: Vec::new() };
            (base, scene, hashes, inner.genesis_time)
        };
        let flags = Flags { validation: payload.validation, transfers: payload.trace_transfers };
        let mut left = CALL_GAS;
        let mut simulated: Vec<Simulated> = Vec::new();
        let mut bytes = 0;
        for block in in_order(payload.block_state_calls, &base)? {
            let overrides = block.block_overrides.clone().unwrap_or_default();
            let parent = simulated.last().map_or(&*base, |(block, _)| block);
            let timestamp = overrides.time.unwrap_or_default();
            scene.setting = Setting {
                number: overrides.number.unwrap_or_default().saturating_to(),
                parent_hash: parent.hash,
                timestamp,
                l1_number: l1_number(genesis_time, timestamp),
                // Without validation gas costs nothing, unless the caller says so.
                base_fee: if flags.validation { self.base_fee() } else { 0 },
                gas_limit: parent.header.gas_limit,
                coinbase: parent.header.beneficiary,
                prevrandao: PREVRANDAO,
            };
            scene.override_block(&overrides);
            scene.recent = Arc::new(hashes.clone());
            if let Some(overrides) = &block.state_overrides {
                scene.override_state(overrides)?;
            }
            let mut ran: Vec<(Recovered<TxEnvelope>, Outcome)> = Vec::new();
            let mut room = scene.setting.gas_limit;
            for call in block.calls {
                let (tx, outcome) = self.simulate_call(&mut scene, call, &flags, room, left)?;
                room = room.saturating_sub(outcome.gas_used);
                left = left.saturating_sub(outcome.gas_used);
                bytes += 2 * outcome.output.len();
                bytes += outcome.logs.iter().map(|log| 600 + 2 * log.data.data.len()).sum::<usize>();
                if bytes > crate::trace::MAX_TRACE {
                    return Err(CallError::TraceTooLarge);
                }
                ran.push((tx, outcome));
            }
            let root = if self.config().state_root { scene.state.root() } else { B256::ZERO };
            let sealed = ran.iter().map(|(tx, outcome)| (tx.clone(), outcome)).collect();
            let mined = seal(&scene.setting, self.config().arbos_version, root, sealed);
            hashes.push((mined.header.number, mined.hash));
            let calls = ran.iter().enumerate().map(|(index, (_, outcome))| result(&mined, index, outcome)).collect();
            simulated.push((mined, calls));
        }
        Ok(simulated)
    }

    fn simulate_call(
        &self,
        scene: &mut Scene,
        mut call: TxRequest,
        flags: &Flags,
        room: u64,
        left: u64,
    ) -> Result<(Recovered<TxEnvelope>, Outcome), CallError> {
        let from = call.from.unwrap_or_default();
        let gas = call.gas.unwrap_or(room);
        if gas > room {
            return refuse(-38015, format!("block gas limit reached: remaining: {room}, required: {gas}"));
        }
        call.gas = Some(gas.min(left));
        let nonce = *call.nonce.get_or_insert_with(|| scene.state.nonce(from));
        if call.gas_price.is_none() {
            call.max_fee_per_gas.get_or_insert(0);
        }
        let base_fee = scene.setting.base_fee;
        let price = call.gas_price.or(call.max_fee_per_gas).unwrap_or_default();
        let too_low = TxError::FeeCapTooLow { address: from, max_fee: price, base_fee: base_fee.into() };
        if flags.validation && price < u128::from(base_fee) {
            return refuse(code_of(&too_low), too_low.to_string());
        }
        let mut tx = match self.call_context(&call, base_fee) {
            Err(CallError::Rejected(error)) => return refuse(code_of(&error), error.to_string()),
            other => other?,
        };
        tx.gas_limit = gas.min(left);
        tx.nonce = flags.validation.then_some(nonce);
        tx.trace = if flags.transfers { TraceRequest::Calls } else { TraceRequest::Nothing };
        let mut state = scene.state.clone();
        let outcome = match self.evm().transact(&mut state, &scene.block(), &tx) {
            Ok(outcome) => checked_trace(outcome)?,
            Err(error) => return refuse(code_of(&error), error.to_string()),
        };
        scene.state = state;
        let typed = self.fill(call, from, gas, nonce).map_err(|e| CallError::Override(e.to_string()))?;
        Ok((Recovered::new_unchecked(typed.into_signed(unsigned(from)).into(), from), outcome))
    }
}

/// How calls are to be run.
struct Flags {
    validation: bool,
    transfers: bool,
}

/// Blocks with numbers and times, and with empty ones where numbers were left out.
fn in_order(blocks: Vec<SimBlock>, base: &MinedBlock) -> Result<Vec<SimBlock>, CallError> {
    let mut ordered = Vec::new();
    let (first, mut number, mut time) = (base.header.number, base.header.number, base.header.timestamp);
    let numbered = |number: u64, time: u64| BlockOverrides {
        number: Some(U256::from(number)),
        time: Some(time),
        ..BlockOverrides::default()
    };
    for mut block in blocks {
        let overrides = block.block_overrides.get_or_insert_default();
        let wanted = match overrides.number {
            Some(wanted) => u64::try_from(wanted).unwrap_or(u64::MAX),
            None => number.saturating_add(1),
        };
        if wanted <= number {
            return refuse(-38020, format!("block numbers must be in order: {wanted} <= {number}"));
        }
        if wanted - first > MAX_SIMULATE_BLOCKS {
            return refuse(-38026, "too many blocks");
        }
        while number + 1 < wanted {
            number += 1;
            time = time.saturating_add(BLOCK_TIME);
            let empty = SimBlock { block_overrides: Some(numbered(number, time)), ..SimBlock::default() };
            ordered.push(empty);
        }
        number = wanted;
        let next = *overrides.time.get_or_insert(time.saturating_add(BLOCK_TIME));
        if next <= time {
            return refuse(-38021, format!("block timestamps must be in order: {next} <= {time}"));
        }
        time = next;
        overrides.number = Some(U256::from(number));
        ordered.push(block);
    }
    Ok(ordered)
}

fn result(block: &MinedBlock, index: usize, outcome: &Outcome) -> SimCallResult {
    let receipt = &block.transactions[index].receipt;
    let logs = match &outcome.trace {
        Trace::Calls(frame) if outcome.status == Status::Success => {
            let mut data = Vec::new();
            collect(frame, &mut data);
            let log = |(log_index, inner): (usize, alloy_primitives::Log)| Log {
                inner,
                block_hash: Some(block.hash),
                block_number: Some(block.header.number),
                block_timestamp: Some(block.header.timestamp),
                transaction_hash: Some(receipt.transaction_hash),
                transaction_index: Some(index as u64),
                log_index: Some(log_index as u64),
                removed: false,
            };
            data.into_iter().enumerate().map(log).collect()
        }
        _ => receipt.inner.logs().to_vec(),
    };
    let error = match &outcome.status {
        Status::Success => None,
        Status::Revert => Some(SimulateError {
            code: SimulateError::EXECUTION_REVERTED_CODE,
            message: crate::rpc::error::RpcError::revert(&outcome.output).message,
            data: Some(outcome.output.clone()),
        }),
        Status::Halt(reason) => {
            Some(SimulateError { code: SimulateError::VM_EXECUTION_ERROR_CODE, message: reason.clone(), data: None })
        }
    };
    SimCallResult {
        return_data: outcome.output.clone(),
        logs,
        gas_used: outcome.gas_used,
        max_used_gas: Some(outcome.gas_used + outcome.gas_refunded),
        status: outcome.status == Status::Success,
        error,
    }
}

/// A frame's events and those of the frames below in their order, with one for each transfer of ether.
fn collect(frame: &CallFrame, logs: &mut Vec<alloy_primitives::Log>) {
    if frame.error.is_some() {
        return;
    }
    let moves = !matches!(frame.kind, CallKind::DelegateCall | CallKind::CallCode | CallKind::StaticCall);
    if let Some(value) = frame.value.filter(|value| moves && !value.is_zero()) {
        let topics = vec![TRANSFER, frame.from.into_word(), frame.to.unwrap_or_default().into_word()];
        let data = LogData::new_unchecked(topics, Bytes::from(value.to_be_bytes::<32>()));
        logs.push(alloy_primitives::Log { address: ETHER, data });
    }
    let mut own = frame.logs.iter().peekable();
    for position in 0..=frame.calls.len() {
        while let Some(log) = own.next_if(|log| log.position == position) {
            let data = LogData::new_unchecked(log.topics.clone(), log.data.clone());
            logs.push(alloy_primitives::Log { address: log.address, data });
        }
        if let Some(inner) = frame.calls.get(position) {
            collect(inner, logs);
        }
    }
}
