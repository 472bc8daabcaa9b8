//! Types on the wire: Ethereum's types with the fields Arbitrum adds.

use alloy_consensus::transaction::Recovered;
use alloy_consensus::{BlockBody, ReceiptEnvelope, Transaction as _, TxEnvelope};
use alloy_primitives::{Address, Sealed, B256, U256, U64};
use alloy_rpc_types_eth::{
    Block, BlockTransactions, EIP1186AccountProofResponse, EIP1186StorageProof, Header as RpcHeader, Log, Transaction,
    TransactionReceipt,
};
pub(super) use alloy_serde::JsonStorageKey as Slot;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{json, Value};

use crate::chain::MinedBlock;
use crate::proof::AccountProof;

/// A transaction and its sender.
pub(super) type Sent = Recovered<TxEnvelope>;

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
    let tx = &block.transactions.get(index)?.tx;
    Some(Transaction {
        inner: tx.clone(),
        block_hash: Some(block.hash),
        block_number: Some(block.header.number),
        transaction_index: Some(index as u64),
        // The offer, tip included; the receipt has the price that was paid.
        effective_gas_price: Some(tx.effective_gas_price(block.header.base_fee_per_gas)),
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

/// A transaction that waits.
pub fn waiting(tx: &Recovered<TxEnvelope>) -> Transaction {
    Transaction {
        inner: tx.clone(),
        block_hash: None,
        block_number: None,
        transaction_index: None,
        effective_gas_price: Some(tx.max_fee_per_gas()),
        block_timestamp: None,
    }
}

/// A transaction that waits, in one line.
pub(super) fn inspected(tx: &Recovered<TxEnvelope>) -> String {
    let to = tx.to().map_or_else(|| "contract creation".to_owned(), |to| to.to_string());
    format!("{to}: {} wei + {} gas × {} wei", tx.value(), tx.gas_limit(), tx.max_fee_per_gas())
}

/// A block as go-ethereum shows one that is asked for as pending.
pub(super) fn unsealed(mined: &MinedBlock, full: bool) -> Value {
    let mut shown = json!(block(mined, full));
    for field in ["hash", "nonce", "miner"] {
        shown[field] = Value::Null;
    }
    shown
}

/// The same of one that is not mined yet: its transactions have no place.
pub(super) fn unplaced(mut shown: Value) -> Value {
    for tx in shown["transactions"].as_array_mut().into_iter().flatten().filter(|tx| tx.is_object()) {
        tx["blockHash"] = Value::Null;
    }
    shown
}

/// An answer of `eth_getProof`.
pub(super) fn account_proof(address: Address, proof: AccountProof, slots: &[Slot]) -> EIP1186AccountProofResponse {
    EIP1186AccountProofResponse {
        address,
        balance: proof.balance,
        code_hash: proof.code_hash,
        nonce: proof.nonce,
        storage_hash: proof.storage_root,
        account_proof: proof.proof,
        storage_proof: slots
            .iter()
            .zip(proof.storage)
            .map(|(key, (value, proof))| EIP1186StorageProof { key: *key, value, proof })
            .collect(),
    }
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
