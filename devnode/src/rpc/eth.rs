//! The methods.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use alloy_eips::eip2930::AccessListResult;
use alloy_primitives::{keccak256, Address, Bytes, FixedBytes, B256, U128, U256, U64};
use alloy_rpc_types_eth::state::StateOverride;
use alloy_rpc_types_eth::{
    BlockId, BlockNumberOrTag, BlockOverrides, FeeHistory, Filter, FilterBlockOption, TransactionRequest,
};
use alloy_signer::SignerSync;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::error::RpcError;
use super::params::Params;
use super::types::{self, Quantity, RpcFrame, TraceOptions};
use super::{raw, Context};
use crate::chain::{BlockError, CallError, Chain, SendError, TimeError};
use crate::evm::{Outcome, Status, TxError};

/// A filter that nobody asks about for so long is dropped, as in go-ethereum.
const FILTER_LIFE: Duration = Duration::from_secs(300);
/// Most blocks of a fee history: go-ethereum's limit.
const MAX_FEE_HISTORY: u64 = 1_024;

/// Why a method failed.
pub(super) enum Failure {
    /// The transaction may become valid when the ones before it arrive.
    NonceTooHigh(RpcError),
    /// Anything else.
    Other(RpcError),
}

impl From<Failure> for RpcError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NonceTooHigh(error) | Failure::Other(error) => error,
        }
    }
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Self {
        Self::Other(error)
    }
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        let answer = RpcError::refused(&error);
        match error {
            SendError::Rejected(TxError::NonceTooHigh { .. }) => Self::NonceTooHigh(answer),
            _ => Self::Other(answer),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Other(match &error {
            CallError::Reverted(data) => RpcError::revert(data),
            _ => RpcError::refused(&error),
        })
    }
}

impl From<BlockError> for Failure {
    fn from(error: BlockError) -> Self {
        Self::Other(RpcError::refused(error))
    }
}

impl From<TimeError> for Failure {
    fn from(error: TimeError) -> Self {
        Self::Other(RpcError::invalid_params(error.to_string()))
    }
}

/// Filters made with `eth_newFilter` and its like.
#[derive(Debug, Default)]
pub(crate) struct Filters(Mutex<HashMap<U128, Installed>>);

#[derive(Debug)]
struct Installed {
    /// `None` reports block hashes.
    logs: Option<Filter>,
    /// The next block to report.
    next: u64,
    asked: Instant,
}

impl Filters {
    fn install(&self, chain: &Chain, logs: Option<Filter>) -> U128 {
        let mut filters = self.0.lock();
        filters.retain(|_, f| f.asked.elapsed() < FILTER_LIFE);
        let id = random_id();
        filters.insert(id, Installed { logs, next: chain.head().header.number + 1, asked: Instant::now() });
        id
    }

    fn changes(&self, chain: &Chain, id: U128) -> Result<Box<RawValue>, Failure> {
        let mut filters = self.0.lock();
        let filter = filters.get_mut(&id).ok_or_else(|| RpcError::refused("filter not found"))?;
        filter.asked = Instant::now();
        let head = chain.head().header.number;
        // After `evm_revert` the chain may be shorter than what was reported.
        let from = filter.next.min(head + 1);
        filter.next = head + 1;
        match &filter.logs {
            None => {
                let hashes: Vec<B256> =
                    (from..=head).filter_map(|n| chain.block(BlockId::number(n)).map(|b| b.hash)).collect();
                Ok(raw(&hashes)?)
            }
            Some(_) if from > head => Ok(raw(&[(); 0])?),
            Some(logs) => {
                let mut range = logs.clone();
                let (first, last) = logs.extract_block_range();
                range.block_option = FilterBlockOption::Range {
                    from_block: Some(BlockNumberOrTag::Number(from.max(first.unwrap_or(0)))),
                    to_block: Some(BlockNumberOrTag::Number(head.min(last.unwrap_or(u64::MAX)))),
                };
                Ok(raw(&chain.logs(&range)?)?)
            }
        }
    }

    fn logs(&self, chain: &Chain, id: U128) -> Result<Box<RawValue>, Failure> {
        let mut filters = self.0.lock();
        let filter = filters.get_mut(&id).ok_or_else(|| RpcError::refused("filter not found"))?;
        filter.asked = Instant::now();
        let logs = filter.logs.as_ref().ok_or_else(|| RpcError::refused("filter not found"))?;
        Ok(raw(&chain.logs(logs)?)?)
    }

    fn uninstall(&self, id: U128) -> bool {
        self.0.lock().remove(&id).is_some()
    }
}

/// An id that cannot be guessed.
pub(super) fn random_id() -> U128 {
    U128::from_be_bytes(FixedBytes::<16>::random().0)
}

/// Parameter of `evm_mine`: nothing, a timestamp, or an object.
#[derive(Deserialize)]
#[serde(untagged)]
enum MineParam {
    Options { timestamp: Option<Quantity>, blocks: Option<Quantity> },
    Timestamp(Quantity),
}

/// Runs one method.
pub(super) fn dispatch(context: &Context, method: &str, params: Params) -> Result<Box<RawValue>, Failure> {
    let chain = &context.chain;
    let mut p = params;
    // Arguments are taken in order; what is left over is refused.
    macro_rules! args {
        () => { p.end()? };
        ($($name:ident : $kind:ident $ty:ty),+) => {
            $(let $name = args!(@ $kind $ty);)+
            p.end()?
        };
        (@ req $ty:ty) => { p.required::<$ty>()? };
        (@ opt $ty:ty) => { p.optional::<$ty>()? };
    }
    let answer = match method {
        // ---- the node ----
        "web3_clientVersion" => raw(&concat!("muster-devnode/v", env!("CARGO_PKG_VERSION"), "/rust")),
        "web3_sha3" => {
            args!(data: req Bytes);
            raw(&keccak256(data))
        }
        "net_version" => raw(&chain.config().chain_id.to_string()),
        "net_listening" => raw(&true),
        "net_peerCount" => raw(&U64::ZERO),
        "eth_chainId" => raw(&U64::from(chain.config().chain_id)),
        "eth_syncing" => raw(&false),
        "eth_mining" => raw(&false),
        "eth_accounts" => raw(&chain.accounts()),
        "eth_blockNumber" => raw(&U64::from(chain.head().header.number)),
        "rpc_modules" => raw(&json!({
            "anvil": "1.0", "debug": "1.0", "eth": "1.0", "evm": "1.0", "hardhat": "1.0", "net": "1.0", "txpool": "1.0",
            "web3": "1.0"
        })),

        // ---- blocks, transactions, receipts ----
        "eth_getBlockByNumber" => {
            args!(number: req BlockNumberOrTag, full: opt bool);
            raw(&chain.block(number.into()).map(|b| types::block(&b, full.unwrap_or(false))))
        }
        "eth_getBlockByHash" => {
            args!(hash: req B256, full: opt bool);
            raw(&chain.block(hash.into()).map(|b| types::block(&b, full.unwrap_or(false))))
        }
        "eth_getBlockReceipts" => {
            args!(id: req BlockId);
            raw(&chain.block(id).map(|b| {
                (0..b.transactions.len()).filter_map(|i| types::receipt(&b, i)).collect::<Vec<_>>()
            }))
        }
        "eth_getBlockTransactionCountByNumber" => {
            args!(number: req BlockNumberOrTag);
            raw(&chain.block(number.into()).map(|b| U64::from(b.transactions.len())))
        }
        "eth_getBlockTransactionCountByHash" => {
            args!(hash: req B256);
            raw(&chain.block(hash.into()).map(|b| U64::from(b.transactions.len())))
        }
        "eth_getUncleCountByBlockNumber" => {
            args!(number: req BlockNumberOrTag);
            raw(&chain.block(number.into()).map(|_| U64::ZERO))
        }
        "eth_getUncleCountByBlockHash" => {
            args!(hash: req B256);
            raw(&chain.block(hash.into()).map(|_| U64::ZERO))
        }
        "eth_getTransactionByHash" => {
            args!(hash: req B256);
            raw(&chain.transaction(hash).and_then(|(b, i)| types::transaction(&b, i)))
        }
        "eth_getTransactionByBlockNumberAndIndex" => {
            args!(number: req BlockNumberOrTag, index: req Quantity);
            raw(&chain.block(number.into()).and_then(|b| types::transaction(&b, index.0.saturating_to())))
        }
        "eth_getTransactionByBlockHashAndIndex" => {
            args!(hash: req B256, index: req Quantity);
            raw(&chain.block(hash.into()).and_then(|b| types::transaction(&b, index.0.saturating_to())))
        }
        "eth_getTransactionReceipt" => {
            args!(hash: req B256);
            raw(&chain.transaction(hash).and_then(|(b, i)| types::receipt(&b, i)))
        }

        // ---- state ----
        "eth_getBalance" => {
            args!(address: req Address, at: opt BlockId);
            raw(&chain.state_at(at.unwrap_or_default())?.balance(address))
        }
        "eth_getCode" => {
            args!(address: req Address, at: opt BlockId);
            raw(&chain.state_at(at.unwrap_or_default())?.code(address))
        }
        "eth_getStorageAt" => {
            args!(address: req Address, slot: req Quantity, at: opt BlockId);
            raw(&B256::from(chain.state_at(at.unwrap_or_default())?.storage(address, slot.0)))
        }
        "eth_getTransactionCount" => {
            args!(address: req Address, at: opt BlockId);
            raw(&U64::from(chain.state_at(at.unwrap_or_default())?.nonce(address)))
        }

        // ---- calls ----
        "eth_call" => {
            args!(tx: req TransactionRequest, at: opt BlockId, state: opt StateOverride, block: opt BlockOverrides);
            let outcome = chain.call_at(&tx, at.unwrap_or_default(), state.as_ref(), block.as_ref())?;
            raw(&returned(outcome)?)
        }
        "eth_estimateGas" => {
            args!(tx: req TransactionRequest, at: opt BlockId, state: opt StateOverride, block: opt BlockOverrides);
            let at = at.unwrap_or(BlockId::pending());
            raw(&U64::from(chain.estimate_gas(&tx, at, state.as_ref(), block.as_ref())?))
        }
        "eth_createAccessList" => {
            args!(tx: req TransactionRequest, at: opt BlockId);
            let (list, outcome) = chain.create_access_list(&tx, at.unwrap_or_default())?;
            let error = match outcome.status {
                Status::Success => None,
                Status::Revert => Some("execution reverted".to_owned()),
                Status::Halt(reason) => Some(reason),
            };
            raw(&AccessListResult { access_list: list, gas_used: U256::from(outcome.gas_used), error })
        }
        "debug_traceCall" => {
            args!(tx: req TransactionRequest, at: opt BlockId, options: opt TraceOptions);
            let options = tracer(options)?;
            let outcome = chain.trace_call(
                &tx,
                at.unwrap_or_default(),
                options.state_overrides.as_ref(),
                options.block_overrides.as_ref(),
            )?;
            let frame = outcome.call_trace.ok_or_else(|| RpcError::internal("no trace was recorded"))?;
            raw(&frame_of(frame, &options))
        }
        "debug_traceTransaction" => {
            args!(hash: req B256, options: opt TraceOptions);
            let options = tracer(options)?;
            raw(&frame_of(chain.trace_transaction(hash)?, &options))
        }

        // ---- prices ----
        "eth_gasPrice" => raw(&U64::from(chain.config().base_fee)),
        "eth_maxPriorityFeePerGas" => raw(&U64::ZERO),
        "eth_feeHistory" => {
            args!(blocks: req Quantity, newest: req BlockNumberOrTag, percentiles: opt Vec<f64>);
            raw(&fee_history(chain, blocks.to_u64(), newest, percentiles.unwrap_or_default())?)
        }

        // ---- transactions ----
        "eth_sendRawTransaction" => {
            args!(bytes: req Bytes);
            raw(&chain.send_raw(&bytes)?.hash)
        }
        "eth_sendRawTransactionSync" => {
            args!(bytes: req Bytes, _timeout: opt Quantity);
            let mined = chain.send_raw(&bytes)?;
            raw(&types::receipt(&mined.block, 0))
        }
        "eth_sendTransaction" => {
            args!(tx: req TransactionRequest);
            raw(&chain.send_unlocked(tx)?.hash)
        }
        "eth_sign" | "personal_sign" => {
            let (account, message) = if method == "eth_sign" {
                args!(account: req Address, message: req Bytes);
                (account, message)
            } else {
                args!(message: req Bytes, account: req Address);
                (account, message)
            };
            let signer = chain.signer(account).ok_or(SendError::UnknownAccount(account))?;
            let signature = signer.sign_message_sync(&message).map_err(RpcError::internal)?;
            raw(&Bytes::from(signature.as_bytes().to_vec()))
        }

        // ---- logs and filters ----
        "eth_getLogs" => {
            args!(filter: req Filter);
            raw(&chain.logs(&checked(filter)?).map_err(|_| RpcError::refused("unknown block"))?)
        }
        "eth_newFilter" => {
            args!(filter: opt Filter);
            raw(&context.filters.install(chain, Some(checked(filter.unwrap_or_default())?)))
        }
        "eth_newBlockFilter" => {
            args!();
            raw(&context.filters.install(chain, None))
        }
        "eth_getFilterChanges" => {
            args!(id: req U128);
            Ok(context.filters.changes(chain, id)?)
        }
        "eth_getFilterLogs" => {
            args!(id: req U128);
            Ok(context.filters.logs(chain, id)?)
        }
        "eth_uninstallFilter" => {
            args!(id: req U128);
            raw(&context.filters.uninstall(id))
        }
        "eth_subscribe" | "eth_unsubscribe" => Err(RpcError::new(-32601, "notifications not supported")),

        // ---- what there never is ----
        // Every transaction is mined at once, so the pool is empty.
        "txpool_status" => raw(&json!({"pending": "0x0", "queued": "0x0"})),
        "txpool_content" | "txpool_inspect" => raw(&json!({"pending": {}, "queued": {}})),
        "eth_getProof" => Err(RpcError::refused("eth_getProof is not supported: this node keeps no Merkle tree")),

        // ---- a development node's own ----
        "evm_increaseTime" | "anvil_increaseTime" => {
            args!(seconds: req Quantity);
            raw(&chain.increase_time(seconds.to_u64())?)
        }
        "evm_setNextBlockTimestamp" | "anvil_setNextBlockTimestamp" => {
            args!(timestamp: req Quantity);
            chain.set_next_timestamp(timestamp.to_u64())?;
            raw(&())
        }
        "evm_mine" => {
            args!(option: opt MineParam);
            let (timestamp, blocks) = match option {
                None => (None, None),
                Some(MineParam::Timestamp(timestamp)) => (Some(timestamp), None),
                Some(MineParam::Options { timestamp, blocks }) => (timestamp, blocks),
            };
            if let Some(timestamp) = timestamp {
                chain.set_next_timestamp(timestamp.to_u64())?;
            }
            chain.mine(blocks.map_or(1, Quantity::to_u64), 1)?;
            raw(&"0x0")
        }
        "anvil_mine" | "hardhat_mine" => {
            args!(blocks: opt Quantity, interval: opt Quantity);
            chain.mine(blocks.map_or(1, Quantity::to_u64), interval.map_or(1, Quantity::to_u64))?;
            raw(&())
        }
        "evm_snapshot" | "anvil_snapshot" => {
            args!();
            raw(&U64::from(chain.snapshot()))
        }
        "evm_revert" | "anvil_revert" => {
            args!(id: req Quantity);
            raw(&chain.revert(id.to_u64()))
        }
        "anvil_setBalance" | "hardhat_setBalance" => {
            args!(address: req Address, balance: req Quantity);
            chain.set_balance(address, balance.0);
            raw(&())
        }
        "anvil_setNonce" | "hardhat_setNonce" => {
            args!(address: req Address, nonce: req Quantity);
            chain.set_nonce(address, nonce.to_u64());
            raw(&())
        }
        "anvil_setCode" | "hardhat_setCode" => {
            args!(address: req Address, code: req Bytes);
            chain.set_code(address, code);
            raw(&())
        }
        "anvil_setStorageAt" | "hardhat_setStorageAt" => {
            args!(address: req Address, slot: req Quantity, value: req Quantity);
            chain.set_storage(address, slot.0, value.0);
            raw(&true)
        }
        "anvil_impersonateAccount" | "hardhat_impersonateAccount" => {
            args!(address: req Address);
            chain.impersonate(address, true);
            raw(&())
        }
        "anvil_stopImpersonatingAccount" | "hardhat_stopImpersonatingAccount" => {
            args!(address: req Address);
            chain.impersonate(address, false);
            raw(&())
        }
        "anvil_autoImpersonateAccount" => {
            args!(on: req bool);
            chain.impersonate_all(on);
            raw(&())
        }
        "evm_setAutomine" | "anvil_setAutoMine" => {
            args!(on: req bool);
            if !on {
                return Err(RpcError::refused("every transaction is mined at once: automine can't be turned off").into());
            }
            raw(&())
        }
        "anvil_getAutomine" | "hardhat_getAutomine" => raw(&true),
        other => Err(RpcError::method_not_found(other)),
    };
    Ok(answer?)
}

/// The data of a call that succeeded.
fn returned(outcome: Outcome) -> Result<Bytes, RpcError> {
    match outcome.status {
        Status::Success => Ok(outcome.output),
        Status::Revert => Err(RpcError::revert(&outcome.output)),
        Status::Halt(reason) => Err(RpcError::refused(reason)),
    }
}

fn tracer(options: Option<TraceOptions>) -> Result<TraceOptions, RpcError> {
    let options = options.unwrap_or_default();
    match options.tracer.as_deref() {
        Some("callTracer") => Ok(options),
        Some(other) => Err(RpcError::refused(format!("tracer {other} is not supported, only callTracer is"))),
        None => Err(RpcError::refused(
            r#"the opcode tracer is not supported, only callTracer is: pass {"tracer":"callTracer"}"#,
        )),
    }
}

fn frame_of(frame: crate::evm::CallFrame, options: &TraceOptions) -> RpcFrame {
    RpcFrame::new(frame, !options.tracer_config.only_top_call, options.tracer_config.with_log)
}

/// Refuses ranges that run backwards.
fn checked(filter: Filter) -> Result<Filter, RpcError> {
    filter.block_option.ensure_valid_block_range().map_err(|_| RpcError::invalid_params("invalid block range params"))?;
    Ok(filter)
}

fn fee_history(
    chain: &Chain,
    blocks: u64,
    newest: BlockNumberOrTag,
    percentiles: Vec<f64>,
) -> Result<FeeHistory, RpcError> {
    if percentiles.iter().any(|p| !(0.0..=100.0).contains(p)) {
        return Err(RpcError::refused("invalid reward percentile"));
    }
    if percentiles.windows(2).any(|w| w[0] >= w[1]) {
        return Err(RpcError::refused("invalid reward percentile: must be ascending"));
    }
    let head = chain.head().header.number;
    let newest = chain
        .block(newest.into())
        .ok_or_else(|| RpcError::refused(format!("request beyond head block: head {head}")))?
        .header
        .number;
    let count = blocks.min(MAX_FEE_HISTORY).min(newest + 1);
    let base_fee = u128::from(chain.config().base_fee);
    let oldest = newest + 1 - count;
    let ratios = (oldest..=newest)
        .filter(|_| count > 0)
        .map(|n| {
            chain.block(BlockId::number(n)).map_or(0.0, |b| b.header.gas_used as f64 / b.header.gas_limit as f64)
        })
        .collect();
    Ok(FeeHistory {
        // One more than blocks: the next block's is known too.
        base_fee_per_gas: vec![base_fee; if count > 0 { count as usize + 1 } else { 0 }],
        gas_used_ratio: ratios,
        base_fee_per_blob_gas: Vec::new(),
        blob_gas_used_ratio: Vec::new(),
        oldest_block: oldest,
        // ArbOS takes no tips.
        reward: (!percentiles.is_empty()).then(|| vec![vec![0; percentiles.len()]; count as usize]),
    })
}
