//! What goes over the wire: Ethereum's types with the fields Arbitrum adds.

use alloy_consensus::{BlockBody, ReceiptEnvelope};
use alloy_primitives::{Address, Bytes, Sealed, B256, U256, U64};
use alloy_rpc_types_eth::{
    Block, BlockTransactions, Header as RpcHeader, Log, Transaction, TransactionReceipt,
};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::chain::{MinedBlock, MinedTx};
use crate::evm::CallFrame;

/// A header as Nitro shows it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArbHeader {
    #[serde(flatten)]
    header: RpcHeader,
    l1_block_number: U64,
    send_count: U64,
    send_root: B256,
}

/// A receipt as Nitro shows it. There is no L1 here, so nothing is paid for it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArbReceipt {
    #[serde(flatten)]
    receipt: TransactionReceipt<ReceiptEnvelope<Log>>,
    gas_used_for_l1: U64,
    l1_block_number: U64,
    timeboosted: bool,
}

/// The header of a block.
pub fn head(block: &MinedBlock) -> ArbHeader {
    let transactions = block.transactions.iter().map(|t| t.tx.inner().clone()).collect();
    let body = BlockBody { transactions, ..Default::default() };
    let size = alloy_consensus::Block::rlp_length_for(&block.header, &body);
    let sealed = Sealed::new_unchecked(block.header.clone(), block.hash);
    ArbHeader {
        header: RpcHeader::from_consensus(sealed, None, Some(U256::from(size))),
        l1_block_number: U64::from(block.l1_number),
        send_count: U64::ZERO,
        send_root: B256::ZERO,
    }
}

/// A block, its transactions whole or as hashes.
pub fn block(block: &MinedBlock, full: bool) -> Block<Transaction, ArbHeader> {
    let transactions = if full {
        BlockTransactions::Full((0..block.transactions.len()).filter_map(|i| transaction(block, i)).collect())
    } else {
        BlockTransactions::Hashes(block.transactions.iter().map(|t| *t.tx.tx_hash()).collect())
    };
    Block::new(head(block), transactions)
}

/// A transaction in its block.
pub fn transaction(block: &MinedBlock, index: usize) -> Option<Transaction> {
    let MinedTx { tx, receipt } = block.transactions.get(index)?;
    Some(Transaction {
        inner: tx.clone(),
        block_hash: Some(block.hash),
        block_number: Some(block.header.number),
        transaction_index: Some(index as u64),
        effective_gas_price: Some(receipt.effective_gas_price),
        block_timestamp: Some(block.header.timestamp),
    })
}

/// The receipt of a transaction.
pub fn receipt(block: &MinedBlock, index: usize) -> Option<ArbReceipt> {
    Some(ArbReceipt {
        receipt: block.transactions.get(index)?.receipt.clone(),
        gas_used_for_l1: U64::ZERO,
        l1_block_number: U64::from(block.l1_number),
        timeboosted: false,
    })
}

/// A frame as go-ethereum's `callTracer` shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcFrame {
    from: Address,
    gas: U64,
    gas_used: U64,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Address>,
    input: Bytes,
    #[serde(skip_serializing_if = "no_bytes")]
    output: Bytes,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revert_reason: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<RpcFrame>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logs: Vec<RpcFrameLog>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<U256>,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Debug, Serialize)]
struct RpcFrameLog {
    address: Address,
    topics: Vec<B256>,
    data: Bytes,
    position: U64,
}

impl RpcFrame {
    /// `deep` shows inner frames, `logs` events.
    pub fn new(frame: CallFrame, deep: bool, logs: bool) -> Self {
        let shown_logs = if logs { frame.logs } else { Vec::new() };
        let calls = if deep { frame.calls } else { Vec::new() };
        Self {
            from: frame.from,
            gas: U64::from(frame.gas),
            gas_used: U64::from(frame.gas_used),
            to: frame.to,
            input: frame.input,
            output: frame.output,
            error: frame.error,
            revert_reason: frame.revert_reason,
            calls: calls.into_iter().map(|c| Self::new(c, deep, logs)).collect(),
            logs: shown_logs
                .into_iter()
                .map(|l| RpcFrameLog {
                    address: l.address,
                    topics: l.topics,
                    data: l.data,
                    position: U64::from(l.position),
                })
                .collect(),
            value: frame.value,
            kind: frame.kind.name(),
        }
    }
}

/// What to trace, and how.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TraceOptions {
    /// Only `callTracer` is known.
    pub tracer: Option<String>,
    /// Its settings.
    pub tracer_config: TracerConfig,
    /// `debug_traceCall` only.
    pub state_overrides: Option<alloy_rpc_types_eth::state::StateOverride>,
    /// `debug_traceCall` only.
    pub block_overrides: Option<alloy_rpc_types_eth::BlockOverrides>,
}

/// Settings of `callTracer`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TracerConfig {
    /// Leave inner frames out.
    pub only_top_call: bool,
    /// Show events.
    pub with_log: bool,
}

/// A number in any of the forms that development nodes accept: JSON number, hex string, decimal string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity(pub U256);

impl Quantity {
    /// Saturates at `u64::MAX`.
    pub fn to_u64(self) -> u64 {
        self.0.saturating_to()
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Quantity;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number, or a hex or decimal string")
            }

            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Quantity, E> {
                Ok(Quantity(U256::from(v)))
            }

            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Quantity, E> {
                u64::try_from(v).map(|v| Quantity(U256::from(v))).map_err(|_| E::custom("negative number"))
            }

            fn visit_f64<E: de::Error>(self, v: f64) -> Result<Quantity, E> {
                // JavaScript clients may write 1e3.
                if v >= 0.0 && v.fract() == 0.0 && v < 9_007_199_254_740_992.0 {
                    Ok(Quantity(U256::from(v as u64)))
                } else {
                    Err(E::custom("not a whole number"))
                }
            }

            fn visit_str<E: de::Error>(self, v: &str) -> Result<Quantity, E> {
                let parsed = match v.strip_prefix("0x") {
                    Some("") => Ok(U256::ZERO),
                    Some(hex) => U256::from_str_radix(hex, 16),
                    None => U256::from_str_radix(v, 10),
                };
                parsed.map(Quantity).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

fn no_bytes(bytes: &Bytes) -> bool {
    bytes.is_empty()
}
