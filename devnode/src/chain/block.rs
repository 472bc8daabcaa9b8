//! Blocks: headers with Arbitrum's constants, receipts, logs.

use alloy_consensus::transaction::Recovered;
use alloy_consensus::{
    proofs, Header, Receipt, ReceiptEnvelope, ReceiptWithBloom, Transaction, TxEnvelope, TxType, EMPTY_OMMER_ROOT_HASH,
    EMPTY_ROOT_HASH,
};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{logs_bloom, Address, Bloom, Bytes, B256, B64, U256};
use alloy_rpc_types_eth::{Log, TransactionReceipt};
use serde::{Deserialize, Serialize};

use super::config::L1_BLOCK_TIME;
use crate::evm::{BlockCtx, Outcome, Status, TxCtx};

/// A block, its transactions and their results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MinedBlock {
    /// Header with Arbitrum's meaning of `difficulty`, `mixHash`, `extraData` and `nonce`. The state root is zero
    /// unless the chain keeps one ([`super::Config::state_root`]).
    pub header: Header,
    /// Hash of the header.
    pub hash: B256,
    /// The value of `block.number` in it.
    pub l1_number: u64,
    /// The value of `block.prevrandao` in it; 1 on Arbitrum.
    pub prevrandao: B256,
    /// One, unless mining was switched off for a time.
    pub transactions: Vec<MinedTx>,
}

/// A transaction in a block.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MinedTx {
    /// The transaction and its sender.
    pub tx: Recovered<TxEnvelope>,
    /// Its receipt.
    pub receipt: TransactionReceipt<ReceiptEnvelope<Log>>,
}

impl MinedTx {
    /// As it was sent: signed, in the encoding of EIP-2718.
    pub fn encoded(&self) -> Bytes {
        self.tx.encoded_2718().into()
    }

    /// Its calldata.
    pub fn input(&self) -> &Bytes {
        self.tx.input()
    }
}

impl MinedBlock {
    /// The events of the block.
    pub fn logs(&self) -> impl Iterator<Item = &Log> {
        self.transactions.iter().flat_map(|t| t.receipt.inner.logs().iter())
    }

    /// The view of the chain that a transaction in it has.
    pub(super) fn setting(&self) -> Setting {
        Setting {
            number: self.header.number,
            parent_hash: self.header.parent_hash,
            timestamp: self.header.timestamp,
            l1_number: self.l1_number,
            base_fee: self.header.base_fee_per_gas.unwrap_or_default(),
            gas_limit: self.header.gas_limit,
            coinbase: self.header.beneficiary,
            prevrandao: self.prevrandao,
        }
    }
}

/// The fields of a block that are settled before anything runs in it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Setting {
    pub number: u64,
    pub parent_hash: B256,
    pub timestamp: u64,
    pub l1_number: u64,
    pub base_fee: u64,
    pub gas_limit: u64,
    pub coinbase: Address,
    pub prevrandao: B256,
}

impl Setting {
    /// The same for the execution half. `hashes` are those of the blocks before it, newest last.
    pub(super) fn context<'a>(&self, hashes: &'a [(u64, B256)]) -> BlockCtx<'a> {
        BlockCtx {
            l2_number: self.number,
            l1_number: self.l1_number,
            timestamp: self.timestamp,
            base_fee: self.base_fee.into(),
            gas_limit: self.gas_limit,
            coinbase: self.coinbase,
            prevrandao: self.prevrandao,
            recent_hashes: hashes,
            moved_precompiles: &[],
        }
    }
}

/// The value of `block.prevrandao` on Arbitrum.
pub(super) const PREVRANDAO: B256 = B256::with_last_byte(1);

/// L1 blocks come every [`L1_BLOCK_TIME`] seconds of chain time, beginning with 1 at genesis.
pub(super) fn l1_number(genesis_time: u64, timestamp: u64) -> u64 {
    1 + timestamp.saturating_sub(genesis_time) / L1_BLOCK_TIME
}

/// A signed transaction for the execution half.
pub(super) fn context(tx: &Recovered<TxEnvelope>, base_fee: u64) -> TxCtx {
    TxCtx {
        caller: tx.signer(),
        to: tx.to(),
        value: tx.value(),
        data: tx.input().clone(),
        gas_limit: tx.gas_limit(),
        // ArbOS charges the base fee, whatever is offered above it.
        gas_price: base_fee.into(),
        offered: tx.effective_gas_price(Some(base_fee)),
        nonce: Some(tx.nonce()),
        access_list: tx.access_list().into_iter().flat_map(|l| l.0.iter().map(|i| (i.address, i.storage_keys.clone()))).collect(),
        authorizations: tx.authorization_list().unwrap_or_default().to_vec(),
        ..TxCtx::default()
    }
}

/// Makes a block of the transactions that ran in it, receipts and roots included.
pub(super) fn seal(
    setting: &Setting,
    arbos_version: u64,
    state_root: B256,
    ran: Vec<(Recovered<TxEnvelope>, &Outcome)>,
) -> MinedBlock {
    // Nitro packs (messages sent, L1 block number, ArbOS version) into the mix hash.
    let mut mix = [0; 32];
    mix[8..16].copy_from_slice(&setting.l1_number.to_be_bytes());
    mix[16..24].copy_from_slice(&arbos_version.to_be_bytes());
    let mut header = Header {
        parent_hash: setting.parent_hash,
        ommers_hash: EMPTY_OMMER_ROOT_HASH,
        beneficiary: setting.coinbase,
        state_root,
        transactions_root: EMPTY_ROOT_HASH,
        receipts_root: EMPTY_ROOT_HASH,
        difficulty: U256::ONE,
        number: setting.number,
        gas_limit: setting.gas_limit,
        timestamp: setting.timestamp,
        extra_data: Bytes::from_static(&[0; 32]),
        mix_hash: B256::from(mix),
        nonce: B64::with_last_byte(1),
        base_fee_per_gas: Some(setting.base_fee),
        ..Default::default()
    };
    let mut envelopes = Vec::with_capacity(ran.len());
    let mut bloom = Bloom::ZERO;
    for (tx, outcome) in &ran {
        header.gas_used += outcome.gas_used;
        let logs_bloom = logs_bloom(&outcome.logs);
        bloom |= logs_bloom;
        let receipt = Receipt {
            status: (outcome.status == Status::Success).into(),
            cumulative_gas_used: header.gas_used,
            logs: outcome.logs.clone(),
        };
        let kind = TxType::try_from(alloy_eips::Typed2718::ty(tx.inner())).unwrap_or(TxType::Legacy);
        envelopes.push(ReceiptEnvelope::from_typed(kind, ReceiptWithBloom { receipt, logs_bloom }));
    }
    if !ran.is_empty() {
        let transactions: Vec<&TxEnvelope> = ran.iter().map(|(tx, _)| tx.inner()).collect();
        header.transactions_root = proofs::calculate_transaction_root(&transactions);
        header.receipts_root = proofs::calculate_receipt_root(&envelopes);
        header.logs_bloom = bloom;
    }
    let hash = header.hash_slow();
    let mut log_index = 0;
    let transactions = ran
        .into_iter()
        .zip(envelopes)
        .enumerate()
        .map(|(index, ((tx, outcome), envelope))| {
            let transaction_hash = *tx.tx_hash();
            let inner = envelope.map_logs(|log| {
                log_index += 1;
                Log {
                    inner: log,
                    block_hash: Some(hash),
                    block_number: Some(header.number),
                    block_timestamp: Some(header.timestamp),
                    transaction_hash: Some(transaction_hash),
                    transaction_index: Some(index as u64),
                    log_index: Some(log_index - 1),
                    removed: false,
                }
            });
            let receipt = TransactionReceipt {
                inner,
                transaction_hash,
                transaction_index: Some(index as u64),
                block_hash: Some(hash),
                block_number: Some(header.number),
                gas_used: outcome.gas_used,
                // ArbOS takes no tips.
                effective_gas_price: setting.base_fee.into(),
                blob_gas_used: None,
                blob_gas_price: None,
                from: tx.signer(),
                to: tx.to(),
                // As on Nitro, also where the creation failed.
                contract_address: tx.to().is_none().then(|| tx.signer().create(tx.nonce())),
            };
            MinedTx { tx, receipt }
        })
        .collect();
    MinedBlock { header, hash, l1_number: setting.l1_number, prevrandao: setting.prevrandao, transactions }
}

/// Hashes of a block's transactions.
pub(super) fn hashes_of(block: &MinedBlock) -> impl Iterator<Item = B256> + '_ {
    block.transactions.iter().map(|mined| *mined.tx.tx_hash())
}
