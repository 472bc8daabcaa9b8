//! Blocks: headers with Arbitrum's constants, receipts, logs.

use alloy_consensus::transaction::Recovered;
use alloy_consensus::{
    proofs, Header, Receipt, ReceiptEnvelope, ReceiptWithBloom, Transaction, TxEnvelope, TxType, EMPTY_OMMER_ROOT_HASH,
    EMPTY_ROOT_HASH,
};
use alloy_primitives::{logs_bloom, Address, Bytes, B256, B64, U256};
use alloy_rpc_types_eth::{Log, TransactionReceipt};

use super::config::{Config, BLOCK_GAS_LIMIT, L1_BLOCK_TIME};
use crate::evm::{Outcome, Status, BATCH_POSTER};

/// A block and what happened in it.
#[derive(Debug)]
pub struct MinedBlock {
    /// Header with Arbitrum's meaning of `difficulty`, `mixHash`, `extraData` and `nonce`. The state root is zero.
    pub header: Header,
    /// Hash of the header.
    pub hash: B256,
    /// What `block.number` was in it.
    pub l1_number: u64,
    /// At most one.
    pub transactions: Vec<MinedTx>,
}

/// A transaction in a block.
#[derive(Debug)]
pub struct MinedTx {
    /// The transaction and its sender.
    pub tx: Recovered<TxEnvelope>,
    /// Its receipt.
    pub receipt: TransactionReceipt<ReceiptEnvelope<Log>>,
}

impl MinedBlock {
    /// The events of the block.
    pub fn logs(&self) -> impl Iterator<Item = &Log> {
        self.transactions.iter().flat_map(|t| t.receipt.inner.logs().iter())
    }
}

/// L1 blocks come every [`L1_BLOCK_TIME`] seconds of chain time, beginning with 1 at genesis.
pub(super) fn l1_number(genesis_time: u64, timestamp: u64) -> u64 {
    1 + timestamp.saturating_sub(genesis_time) / L1_BLOCK_TIME
}

pub(super) fn access_list(tx: &TxEnvelope) -> Vec<(Address, Vec<B256>)> {
    tx.access_list().into_iter().flat_map(|l| l.0.iter().map(|i| (i.address, i.storage_keys.clone()))).collect()
}

/// A header with Arbitrum's constants; roots, bloom and gas are those of an empty block.
pub(super) fn header(config: &Config, number: u64, parent_hash: B256, timestamp: u64, l1_number: u64) -> Header {
    // Nitro packs (messages sent, L1 block number, ArbOS version) into the mix hash.
    let mut mix = [0; 32];
    mix[8..16].copy_from_slice(&l1_number.to_be_bytes());
    mix[16..24].copy_from_slice(&config.arbos_version.to_be_bytes());
    Header {
        parent_hash,
        ommers_hash: EMPTY_OMMER_ROOT_HASH,
        beneficiary: BATCH_POSTER,
        // No Merkle tree is kept: computing its root would cost more than running the transaction.
        state_root: B256::ZERO,
        transactions_root: EMPTY_ROOT_HASH,
        receipts_root: EMPTY_ROOT_HASH,
        difficulty: U256::ONE,
        number,
        gas_limit: BLOCK_GAS_LIMIT,
        timestamp,
        extra_data: Bytes::from_static(&[0; 32]),
        mix_hash: B256::from(mix),
        nonce: B64::with_last_byte(1),
        base_fee_per_gas: Some(config.base_fee),
        ..Default::default()
    }
}

pub(super) fn seal(header: Header, l1_number: u64) -> MinedBlock {
    let hash = header.hash_slow();
    MinedBlock { header, hash, l1_number, transactions: Vec::new() }
}

/// The block of one transaction.
pub(super) fn mine(mut header: Header, l1_number: u64, tx: Recovered<TxEnvelope>, outcome: &Outcome) -> MinedBlock {
    let from = tx.signer();
    let (tx, _) = tx.into_parts();
    let bloom = logs_bloom(&outcome.logs);
    let receipt = Receipt {
        status: (outcome.status == Status::Success).into(),
        cumulative_gas_used: outcome.gas_used,
        logs: outcome.logs.clone(),
    };
    let kind = TxType::try_from(alloy_eips::Typed2718::ty(&tx)).unwrap_or(TxType::Legacy);
    let envelope = ReceiptEnvelope::from_typed(kind, ReceiptWithBloom { receipt, logs_bloom: bloom });
    header.transactions_root = proofs::calculate_transaction_root(std::slice::from_ref(&tx));
    header.receipts_root = proofs::calculate_receipt_root(std::slice::from_ref(&envelope));
    header.logs_bloom = bloom;
    header.gas_used = outcome.gas_used;
    let hash = header.hash_slow();
    let transaction_hash = *tx.tx_hash();
    let mut index = 0;
    let inner = envelope.map_logs(|log| {
        index += 1;
        Log {
            inner: log,
            block_hash: Some(hash),
            block_number: Some(header.number),
            block_timestamp: Some(header.timestamp),
            transaction_hash: Some(transaction_hash),
            transaction_index: Some(0),
            log_index: Some(index - 1),
            removed: false,
        }
    });
    let receipt = TransactionReceipt {
        inner,
        transaction_hash,
        transaction_index: Some(0),
        block_hash: Some(hash),
        block_number: Some(header.number),
        gas_used: outcome.gas_used,
        // ArbOS takes no tips.
        effective_gas_price: u128::from(header.base_fee_per_gas.unwrap_or_default()),
        blob_gas_used: None,
        blob_gas_price: None,
        from,
        to: tx.to(),
        contract_address: outcome.created,
    };
    let transactions = vec![MinedTx { tx: Recovered::new_unchecked(tx, from), receipt }];
    MinedBlock { header, hash, l1_number, transactions }
}
