//! History from before the copy began: the endpoint of the original chain answers.

use alloy_primitives::{B256, U64};
use alloy_rpc_types_eth::{BlockId, BlockNumberOrTag, Filter, FilterBlockOption, Log};
use serde_json::value::RawValue;
use serde_json::{json, Value};

use super::error::RpcError;
use super::failure::Failure;
use super::params::Params;
use super::raw;
use crate::chain::{BlockError, Chain, MAX_LOG_BYTES};
use crate::fork::Fork;

/// Answers a method that asks about the time before the copy; `None` if it does not.
pub(super) fn answer(chain: &Chain, method: &str, params: &Params) -> Option<Result<Box<RawValue>, Failure>> {
    let fork = chain.fork()?;
    let old = match method {
        "eth_getBlockByNumber"
        | "eth_getBlockReceipts"
        | "eth_getBlockTransactionCountByNumber"
        | "eth_getUncleCountByBlockNumber"
        | "eth_getTransactionByBlockNumberAndIndex"
        | "eth_getRawTransactionByBlockNumberAndIndex"
        | "debug_traceBlockByNumber"
        | "debug_getRawBlock"
        | "debug_getRawHeader"
        | "debug_getRawReceipts" => {
            let number = number(chain, &params.peek::<BlockId>(0)?)?;
            (number <= fork.block_number()).then(|| {
                let mut values = params.all();
                values[0] = json!(U64::from(number));
                forward(fork, method, values)
            })?
        }
        "eth_getBalance"
        | "eth_getCode"
        | "eth_getTransactionCount"
        | "eth_call"
        | "eth_estimateGas"
        | "eth_createAccessList"
        | "debug_traceCall" => before(chain, fork, method, params, 1)?,
        "eth_getStorageAt" | "eth_getProof" => before(chain, fork, method, params, 2)?,
        "eth_getBlockByHash"
        | "eth_getBlockTransactionCountByHash"
        | "eth_getUncleCountByBlockHash"
        | "eth_getTransactionByBlockHashAndIndex"
        | "eth_getRawTransactionByBlockHashAndIndex"
        | "debug_traceBlockByHash" => {
            let hash: B256 = params.peek(0)?;
            if chain.block(hash.into()).is_some_and(|block| block.header.number > fork.block_number()) {
                return None;
            }
            if_old(fork, "eth_getBlockByHash", json!([hash, false]), "number", method, params)
        }
        "eth_getTransactionByHash"
        | "eth_getTransactionReceipt"
        | "eth_getRawTransactionByHash"
        | "debug_getRawTransaction"
        | "debug_traceTransaction" => {
            let hash: B256 = params.peek(0)?;
            if chain.waiting(hash).is_some() || chain.transaction(hash).is_some() {
                return None;
            }
            if_old(fork, "eth_getTransactionByHash", json!([hash]), "blockNumber", method, params)
        }
        _ => return None,
    };
    old.transpose()
}

type Old = Result<Option<Box<RawValue>>, Failure>;

/// The number a block goes by. `None` where it is none of the past: `pending`, or an unknown hash.
fn number(chain: &Chain, id: &BlockId) -> Option<u64> {
    match id {
        BlockId::Number(BlockNumberOrTag::Number(number)) => Some(*number),
        BlockId::Number(BlockNumberOrTag::Earliest) => Some(0),
        BlockId::Number(BlockNumberOrTag::Pending) => None,
        id => Some(chain.block(*id)?.header.number),
    }
}

/// Work on the state of a block before the first of the copy.
fn before(chain: &Chain, fork: &Fork, method: &str, params: &Params, at: usize) -> Option<Old> {
    let number = number(chain, &params.peek::<BlockId>(at)?)?;
    (number < fork.block_number()).then(|| forward(fork, method, params.all()))
}

/// Forwards a request about something that is older than the copy. Otherwise it is not there, whatever has happened to the other chain.
fn if_old(fork: &Fork, find: &str, what: Value, place: &str, method: &str, params: &Params) -> Old {
    let found = fork.past(find, what)?;
    let number: Option<U64> = serde_json::from_value(found[place].clone()).ok();
    match number {
        Some(number) if number.to::<u64>() <= fork.block_number() => forward(fork, method, params.all()),
        // This node has its own words for it.
        _ => Ok(None),
    }
}

fn forward(fork: &Fork, method: &str, params: Vec<Value>) -> Old {
    Ok(Some(raw(&fork.past(method, params.into())?)?))
}

/// Logs that match a filter, oldest first, those from before the copy included.
pub(super) fn logs(chain: &Chain, filter: &Filter) -> Result<Vec<Log>, Failure> {
    let Some(fork) = chain.fork() else { return Ok(chain.logs(filter)?) };
    let last = fork.block_number();
    let (from, to) = match filter.block_option {
        FilterBlockOption::AtBlockHash(hash) => {
            if chain.block(hash.into()).is_some_and(|block| block.header.number > last) {
                return Ok(chain.logs(filter)?);
            }
            let block = fork.past("eth_getBlockByHash", json!([hash, false]))?;
            let number: Option<U64> = serde_json::from_value(block["number"].clone()).ok();
            let number = number.map(|number| number.to()).filter(|number| *number <= last).ok_or(BlockError::Unknown)?;
            (number, number)
        }
        FilterBlockOption::Range { from_block, to_block } => {
            let head = chain.head().header.number;
            let number = |tag: Option<BlockNumberOrTag>| match tag {
                Some(BlockNumberOrTag::Number(number)) => number,
                Some(BlockNumberOrTag::Earliest) => 0,
                _ => head,
            };
            (number(from_block), number(to_block))
        }
    };
    if from > last || from > to {
        return Ok(chain.logs(filter)?);
    }
    let old = filter.clone().select(from..=to.min(last));
    let old = fork.past("eth_getLogs", json!([old]))?;
    if old.to_string().len() > MAX_LOG_BYTES {
        return Err(BlockError::TooManyLogs.into());
    }
    let mut logs: Vec<Log> = serde_json::from_value(old).map_err(RpcError::refused)?;
    if to > last {
        logs.extend(chain.logs(&filter.clone().select(last + 1..=to))?);
    }
    Ok(logs)
}
