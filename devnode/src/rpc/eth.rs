//! The methods that every node has.

use alloy_consensus::{Transaction, TxEnvelope};
use alloy_dyn_abi::TypedData;
use alloy_eips::eip2718::Encodable2718;
use alloy_eips::eip2930::AccessListResult;
use alloy_primitives::{keccak256, Address, Bytes, B256, U128, U256, U64};
use alloy_rpc_types_eth::simulate::{SimulatePayload, SimulatedBlock};
use alloy_rpc_types_eth::state::StateOverride;
use alloy_rpc_types_eth::{BlockId, BlockNumberOrTag, BlockOverrides, FeeHistory, Filter, FilterBlockOption, TransactionRequest};
use alloy_signer::SignerSync;
use serde_json::value::RawValue;
use serde_json::{json, Map, Value};

use super::error::RpcError;
use super::failure::{args, Failure};
use super::filters::Kind;
use super::params::Params;
use super::types::{self, Quantity, Slot};
use super::{debug, dev, past, raw, Context};
use crate::chain::{BlockError, Chain, MinedBlock, SendError};
use crate::evm::{Outcome, Status};

/// Most blocks of a fee history: go-ethereum's limit.
const MAX_FEE_HISTORY: u64 = 1_024;
/// Most percentiles asked for in it: go-ethereum's limit.
const MAX_PERCENTILES: usize = 100;
/// Most addresses, or topics in one place, of a filter: go-ethereum's limit.
const MAX_CRITERIA: usize = 1_000;
/// Most slots of one proof: go-ethereum's limit.
const MAX_PROOF_SLOTS: usize = 1_024;
/// Most bytes of the name of a type in EIP-712 data, its arrays included.
const MAX_TYPE_NAME: usize = 128;
/// How deep such types may nest, each array counted.
const MAX_TYPE_DEPTH: usize = 64;
/// Most fields of such types, counted wherever a type is used.
const MAX_TYPE_FIELDS: usize = 10_000;

/// Runs one method.
pub(super) fn dispatch(context: &Context, method: &str, params: Params) -> Result<Box<RawValue>, Failure> {
    let chain = &context.chain;
    let mut p = params;
    let answer = match method {
        // ---- the node ----
        "web3_clientVersion" => {
            args!(p);
            raw(&context.version)
        }
        "web3_sha3" => {
            args!(p, data: req Bytes);
            raw(&keccak256(data))
        }
        "net_version" => {
            args!(p);
            raw(&chain.config().chain_id.to_string())
        }
        "net_listening" => {
            args!(p);
            raw(&true)
        }
        "net_peerCount" => {
            args!(p);
            raw(&U64::ZERO)
        }
        "eth_chainId" => {
            args!(p);
            raw(&U64::from(chain.config().chain_id))
        }
        "eth_syncing" | "eth_mining" => {
            args!(p);
            raw(&false)
        }
        "eth_hashrate" => {
            args!(p);
            raw(&U64::ZERO)
        }
        "eth_accounts" => {
            args!(p);
            raw(&chain.accounts())
        }
        "eth_coinbase" => {
            args!(p);
            raw(&chain.coinbase())
        }
        "eth_blockNumber" => {
            args!(p);
            raw(&U64::from(chain.head().header.number))
        }
        "rpc_modules" => {
            args!(p);
            raw(&json!({
                "anvil": "1.0", "debug": "1.0", "eth": "1.0", "evm": "1.0", "hardhat": "1.0", "muster": "1.0",
                "net": "1.0", "txpool": "1.0", "web3": "1.0"
            }))
        }

        // ---- blocks, transactions, receipts ----
        "eth_getBlockByNumber" => {
            args!(p, number: req BlockNumberOrTag, full: opt bool);
            let full = full.unwrap_or(false);
            match number {
                // Nitro has none, and shows the newest; transactions that wait while mining is off are this node's own.
                BlockNumberOrTag::Pending => match chain.pending_block() {
                    Some(block) => raw(&types::unplaced(types::unsealed(&block, full))),
                    None => raw(&types::unsealed(&chain.head(), full)),
                },
                _ => raw(&chain.block(number.into()).map(|b| types::block(&b, full))),
            }
        }
        "eth_getBlockByHash" => {
            args!(p, hash: req B256, full: opt bool);
            raw(&chain.block(hash.into()).map(|b| types::block(&b, full.unwrap_or(false))))
        }
        "eth_getBlockReceipts" => {
            args!(p, id: req BlockId);
            raw(&chain.block(id).map(|b| (0..b.transactions.len()).filter_map(|i| types::receipt(&b, i)).collect::<Vec<_>>()))
        }
        "eth_getBlockTransactionCountByNumber" => {
            args!(p, number: req BlockNumberOrTag);
            let count = match number {
                BlockNumberOrTag::Pending => chain.pending_block().map(|b| b.transactions.len()),
                _ => None,
            };
            raw(&count.or_else(|| Some(chain.block(number.into())?.transactions.len())).map(U64::from))
        }
        "eth_getBlockTransactionCountByHash" => {
            args!(p, hash: req B256);
            raw(&chain.block(hash.into()).map(|b| U64::from(b.transactions.len())))
        }
        "eth_getUncleCountByBlockNumber" => {
            args!(p, number: req BlockNumberOrTag);
            raw(&chain.block(number.into()).map(|_| U64::ZERO))
        }
        "eth_getUncleCountByBlockHash" => {
            args!(p, hash: req B256);
            raw(&chain.block(hash.into()).map(|_| U64::ZERO))
        }
        "eth_getUncleByBlockNumberAndIndex" => {
            args!(p, _number: req BlockNumberOrTag, _index: req Quantity);
            raw(&())
        }
        "eth_getUncleByBlockHashAndIndex" => {
            args!(p, _hash: req B256, _index: req Quantity);
            raw(&())
        }
        "eth_getTransactionByHash" => {
            args!(p, hash: req B256);
            match chain.waiting(hash) {
                Some(waiting) => raw(&types::waiting(&waiting.tx)),
                None => raw(&chain.transaction(hash).and_then(|(b, i)| types::transaction(&b, i))),
            }
        }
        "eth_getRawTransactionByHash" | "debug_getRawTransaction" => {
            args!(p, hash: req B256);
            raw(&encoded(chain, hash))
        }
        "eth_getTransactionByBlockNumberAndIndex" => {
            args!(p, number: req BlockNumberOrTag, index: req Quantity);
            raw(&chain.block(number.into()).and_then(|b| types::transaction(&b, index.0.saturating_to())))
        }
        "eth_getTransactionByBlockHashAndIndex" => {
            args!(p, hash: req B256, index: req Quantity);
            raw(&chain.block(hash.into()).and_then(|b| types::transaction(&b, index.0.saturating_to())))
        }
        "eth_getRawTransactionByBlockNumberAndIndex" => {
            args!(p, number: req BlockNumberOrTag, index: req Quantity);
            raw(&chain.block(number.into()).and_then(|b| nth_encoded(&b, index)))
        }
        "eth_getRawTransactionByBlockHashAndIndex" => {
            args!(p, hash: req B256, index: req Quantity);
            raw(&chain.block(hash.into()).and_then(|b| nth_encoded(&b, index)))
        }
        "eth_getTransactionReceipt" => {
            args!(p, hash: req B256);
            raw(&chain.transaction(hash).and_then(|(b, i)| types::receipt(&b, i)))
        }

        // ---- state ----
        "eth_getBalance" => {
            args!(p, address: req Address, at: opt BlockId);
            raw(&chain.state_at(at.unwrap_or_default())?.balance(address))
        }
        "eth_getCode" => {
            args!(p, address: req Address, at: opt BlockId);
            raw(&chain.state_at(at.unwrap_or_default())?.code(address))
        }
        "eth_getStorageAt" => {
            args!(p, address: req Address, slot: req Quantity, at: opt BlockId);
            raw(&B256::from(chain.state_at(at.unwrap_or_default())?.storage(address, slot.0)))
        }
        "eth_getTransactionCount" => {
            args!(p, address: req Address, at: opt BlockId);
            match at.unwrap_or_default() {
                BlockId::Number(BlockNumberOrTag::Pending) => raw(&U64::from(chain.next_nonce(address))),
                at => raw(&U64::from(chain.state_at(at)?.nonce(address))),
            }
        }
        "eth_getProof" => {
            args!(p, address: req Address, slots: req Vec<Slot>, at: opt BlockId);
            if slots.len() > MAX_PROOF_SLOTS {
                return Err(RpcError::invalid_params(format!("too many keys (max {MAX_PROOF_SLOTS})")).into());
            }
            if chain.fork().is_some() {
                return Err(RpcError::refused(
                    "a copy of another chain has no proofs of its own state: that would take all of it",
                )
                .into());
            }
            let keys: Vec<B256> = slots.iter().map(Slot::as_b256).collect();
            let proof = chain.state_at(at.unwrap_or_default())?.prove(address, &keys);
            raw(&types::account_proof(address, proof, &slots))
        }

        // ---- calls ----
        "eth_call" => {
            args!(p, tx: req TransactionRequest, at: opt BlockId, state: opt StateOverride, block: opt BlockOverrides);
            let at = at.unwrap_or_default();
            if let Some(answer) = chain.node_interface(&tx, at) {
                return Ok(raw(&answer?)?);
            }
            let outcome = chain.call_at(&tx, at, state.as_ref(), block.as_ref())?;
            raw(&returned(outcome)?)
        }
        "eth_estimateGas" => {
            args!(p, tx: req TransactionRequest, at: opt BlockId, state: opt StateOverride, block: opt BlockOverrides);
            let at = at.unwrap_or(BlockId::pending());
            chain.node_interface(&tx, at).transpose()?;
            raw(&U64::from(chain.estimate_gas(&tx, at, state.as_ref(), block.as_ref())?))
        }
        "eth_createAccessList" => {
            args!(p, tx: req TransactionRequest, at: opt BlockId);
            let (list, outcome) = chain.create_access_list(&tx, at.unwrap_or_default())?;
            let error = match outcome.status {
                Status::Success => None,
                Status::Revert => Some("execution reverted".to_owned()),
                Status::Halt(reason) => Some(reason),
            };
            raw(&AccessListResult { access_list: list, gas_used: U256::from(outcome.gas_used), error })
        }
        "eth_simulateV1" => {
            args!(p, payload: req SimulatePayload, at: opt BlockId);
            let full = payload.return_full_transactions;
            let blocks = chain.simulate_blocks(payload, at.unwrap_or_default())?;
            let shown = |(block, calls)| SimulatedBlock { inner: types::block(&block, full), calls };
            raw(&blocks.into_iter().map(shown).collect::<Vec<_>>())
        }

        // ---- prices ----
        "eth_gasPrice" => {
            args!(p);
            raw(&U64::from(chain.base_fee()))
        }
        "eth_maxPriorityFeePerGas" => {
            args!(p);
            raw(&U64::ZERO)
        }
        // There are no blobs on Arbitrum; their price is that of an empty market.
        "eth_blobBaseFee" => {
            args!(p);
            raw(&U64::from(1))
        }
        "eth_feeHistory" => {
            args!(p, blocks: req Quantity, newest: req BlockNumberOrTag, percentiles: opt Vec<f64>);
            raw(&fee_history(chain, blocks.to_u64(), newest, percentiles.unwrap_or_default())?)
        }

        // ---- transactions ----
        "eth_sendRawTransaction" => {
            args!(p, bytes: req Bytes);
            raw(&chain.submit_raw(&bytes)?.hash)
        }
        "eth_sendRawTransactionSync" => {
            args!(p, bytes: req Bytes, _timeout: opt Quantity);
            let submitted = chain.submit_raw(&bytes)?;
            let mined = submitted.mined.ok_or(SendError::NotMined(submitted.hash))?;
            let index = mined.block.transactions.iter().position(|t| *t.tx.tx_hash() == mined.hash);
            raw(&index.and_then(|index| types::receipt(&mined.block, index)))
        }
        "eth_sendTransaction" => {
            args!(p, tx: req TransactionRequest);
            raw(&chain.send_unlocked(tx)?.hash)
        }
        "eth_signTransaction" | "eth_fillTransaction" => {
            args!(p, tx: req TransactionRequest);
            let whole: TxEnvelope =
                if method == "eth_fillTransaction" { chain.fill_transaction(tx)? } else { chain.sign_transaction(tx)? };
            raw(&json!({"raw": Bytes::from(whole.encoded_2718()), "tx": whole}))
        }
        "eth_sign" => {
            args!(p, account: req Address, message: req Bytes);
            raw(&sign(chain, account, |signer| signer.sign_message_sync(&message))?)
        }
        "personal_sign" => {
            args!(p, message: req Bytes, account: req Address);
            raw(&sign(chain, account, |signer| signer.sign_message_sync(&message))?)
        }
        "eth_signTypedData_v4" => {
            args!(p, account: req Address, data: req Value);
            let hash = typed_data_hash(data)?;
            raw(&sign(chain, account, |signer| signer.sign_hash_sync(&hash))?)
        }

        // ---- logs and filters ----
        "eth_getLogs" => {
            args!(p, filter: req Filter);
            let filter = checked(filter)?;
            raw(&match chain.fork() {
                Some(_) => past::logs(chain, &filter)?,
                None => chain.logs(&filter).map_err(|error| match error {
                    BlockError::Unknown => RpcError::refused("unknown block").into(),
                    other => Failure::from(other),
                })?,
            })
        }
        "eth_newFilter" => {
            args!(p, filter: opt Filter);
            raw(&context.filters.install(chain, Kind::Logs(Box::new(checked(filter.unwrap_or_default())?)))?)
        }
        "eth_newBlockFilter" => {
            args!(p);
            raw(&context.filters.install(chain, Kind::Blocks)?)
        }
        "eth_newPendingTransactionFilter" => {
            args!(p);
            raw(&context.filters.install(chain, Kind::Pending)?)
        }
        "eth_getFilterChanges" => {
            args!(p, id: req U128);
            Ok(context.filters.changes(chain, id)?)
        }
        "eth_getFilterLogs" => {
            args!(p, id: req U128);
            Ok(context.filters.logs(chain, id)?)
        }
        "eth_uninstallFilter" => {
            args!(p, id: req U128);
            raw(&context.filters.uninstall(id))
        }
        "eth_subscribe" | "eth_unsubscribe" => Err(RpcError::new(-32601, "notifications not supported")),

        // ---- the pool: empty, unless mining is off ----
        "txpool_status" => {
            args!(p);
            let [pending, queued] = chain.waiting_all().map(|list| U64::from(list.len()));
            raw(&json!({"pending": pending, "queued": queued}))
        }
        "txpool_content" => {
            args!(p);
            raw(&pool(chain, |tx| json!(types::waiting(tx))))
        }
        "txpool_inspect" => {
            args!(p);
            raw(&pool(chain, |tx| json!(types::inspected(tx))))
        }

        other if other.starts_with("debug_") || other.starts_with("muster_") => return debug::dispatch(chain, other, p),
        other => return dev::dispatch(context, other, p),
    };
    Ok(answer?)
}

/// A transaction as it was signed.
fn encoded(chain: &Chain, hash: B256) -> Option<Bytes> {
    if let Some(waiting) = chain.waiting(hash) {
        return Some(waiting.tx.encoded_2718().into());
    }
    let (block, index) = chain.transaction(hash)?;
    Some(block.transactions[index].encoded())
}

fn nth_encoded(block: &MinedBlock, index: Quantity) -> Option<Bytes> {
    let index: usize = index.0.try_into().ok()?;
    Some(block.transactions.get(index)?.encoded())
}

/// Waiting transactions, by sender and nonce, as the `txpool_` methods show them.
fn pool(chain: &Chain, show: impl Fn(&types::Sent) -> Value) -> Value {
    let [pending, queued] = chain.waiting_all().map(|list| {
        let mut senders = Map::new();
        for waiting in list {
            let nonces = senders.entry(waiting.tx.signer().to_string()).or_insert_with(|| json!({}));
            nonces[waiting.tx.inner().nonce().to_string()] = show(&waiting.tx);
        }
        senders
    });
    json!({"pending": pending, "queued": queued})
}

fn sign(
    chain: &Chain,
    account: Address,
    sign: impl FnOnce(&alloy_signer_local::PrivateKeySigner) -> alloy_signer::Result<alloy_primitives::Signature>,
) -> Result<Bytes, Failure> {
    let signer = chain.signer(account).ok_or(SendError::UnknownAccount(account))?;
    Ok(sign(signer).map_err(RpcError::internal)?.as_bytes().to_vec().into())
}

/// The hash to sign of EIP-712 data, which some clients send as text.
fn typed_data_hash(data: Value) -> Result<B256, RpcError> {
    let invalid = |e: &dyn std::fmt::Display| RpcError::invalid_params(format!("invalid argument 1: {e}"));
    let data = match data {
        Value::String(text) => serde_json::from_str(&text).map_err(|e| invalid(&e))?,
        data => data,
    };
    if !bounded(&data) {
        return Err(invalid(&format!(
            "types must have names of at most {MAX_TYPE_NAME} bytes, nest at most {MAX_TYPE_DEPTH} deep and have at most \
             {MAX_TYPE_FIELDS} fields in all"
        )));
    }
    let typed: TypedData = serde_json::from_value(data).map_err(|e| invalid(&e))?;
    typed.eip712_signing_hash().map_err(|e| invalid(&e))
}

/// Whether the types of EIP-712 data are of a bounded size. alloy reads them by recursion and copies each to wherever it is used, and a
/// thread that runs out of stack, or a process that runs out of memory, takes the node with it.
fn bounded(data: &Value) -> bool {
    let short = |name: &str| name.len() <= MAX_TYPE_NAME;
    let named = |field: &Value| field["type"].as_str().is_some_and(short);
    let mut fields = MAX_TYPE_FIELDS;
    data["types"].as_object().is_some_and(|types| {
        let root = data["primaryType"].as_str().unwrap_or_default();
        types.iter().all(|(name, fields)| short(name) && fields.as_array().is_some_and(|fields| fields.iter().all(named)))
            && unfolds(types, root, MAX_TYPE_DEPTH, &mut fields)
    })
}

/// Whether a type nests at most `depth` deep and has at most `fields` fields, which are taken off.
fn unfolds(types: &Map<String, Value>, kind: &str, depth: usize, fields: &mut usize) -> bool {
    let name = kind.split('[').next().unwrap_or_default();
    let Some(depth) = depth.checked_sub(1 + kind.matches('[').count()) else { return false };
    types.get(name).and_then(Value::as_array).into_iter().flatten().all(|field| {
        let Some(left) = fields.checked_sub(1) else { return false };
        *fields = left;
        unfolds(types, field["type"].as_str().unwrap_or_default(), depth, fields)
    })
}

/// The data of a call that succeeded.
fn returned(outcome: Outcome) -> Result<Bytes, RpcError> {
    match outcome.status {
        Status::Success => Ok(outcome.output),
        Status::Revert => Err(RpcError::revert(&outcome.output)),
        Status::Halt(reason) => Err(RpcError::refused(reason)),
    }
}

/// Refuses ranges that run backwards, and long lists of addresses or topics.
pub(super) fn checked(filter: Filter) -> Result<Filter, RpcError> {
    let lists = std::iter::once(filter.address.len()).chain(filter.topics.iter().map(|t| t.len()));
    if lists.max() > Some(MAX_CRITERIA) {
        return Err(RpcError::invalid_params(format!("exceed max addresses or topics per search position: {MAX_CRITERIA}")));
    }
    if let FilterBlockOption::Range { from_block, to_block } = &filter.block_option {
        if [from_block, to_block].contains(&&Some(BlockNumberOrTag::Pending)) {
            return Err(RpcError::refused("pending logs are not supported"));
        }
    }
    filter.block_option.ensure_valid_block_range().map_err(|_| RpcError::invalid_params("invalid block range params"))?;
    Ok(filter)
}

fn fee_history(chain: &Chain, blocks: u64, newest: BlockNumberOrTag, percentiles: Vec<f64>) -> Result<FeeHistory, RpcError> {
    if percentiles.len() > MAX_PERCENTILES {
        return Err(RpcError::refused(format!("invalid reward percentile: over the query limit {MAX_PERCENTILES}")));
    }
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
    // A copy tells of its own blocks.
    let first = chain.fork().map_or(0, |fork| fork.block_number());
    let count = blocks.min(MAX_FEE_HISTORY).min(newest + 1 - first);
    let oldest = newest + 1 - count;
    let mut ratios = Vec::new();
    let mut fees = Vec::new();
    for number in (oldest..=newest).filter(|_| count > 0) {
        let Some(block) = chain.block(BlockId::number(number)) else { continue };
        ratios.push(block.header.gas_used as f64 / block.header.gas_limit.max(1) as f64);
        fees.push(u128::from(block.header.base_fee_per_gas.unwrap_or_default()));
    }
    if count > 0 {
        // One more than blocks: the next block's is known too.
        let next = chain.block(BlockId::number(newest + 1)).and_then(|b| b.header.base_fee_per_gas);
        fees.push(next.unwrap_or_else(|| chain.base_fee()).into());
    }
    Ok(FeeHistory {
        base_fee_per_gas: fees,
        gas_used_ratio: ratios,
        base_fee_per_blob_gas: Vec::new(),
        blob_gas_used_ratio: Vec::new(),
        oldest_block: oldest,
        // ArbOS takes no tips.
        reward: (!percentiles.is_empty()).then(|| vec![vec![0; percentiles.len()]; count as usize]),
    })
}
