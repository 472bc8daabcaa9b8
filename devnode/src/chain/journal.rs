//! The log of changes to a chain that is kept in a file.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use alloy_consensus::transaction::Recovered;
use alloy_consensus::TxEnvelope;
use alloy_eips::eip2718::{Decodable2718, Encodable2718};
use alloy_primitives::{Address, Bytes, B256, U256};
use serde::{Deserialize, Serialize};

use super::block::Setting;
use super::time::{Time, Upcoming};

/// Why a chain can't be kept or brought back.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The system says no.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Most of a copy's state is where it was copied from.
    #[error("a copy of another chain can't be kept or replaced")]
    Copy,
    /// Another node keeps its chain there.
    #[error("{0} is in use by another node")]
    InUse(PathBuf),
    /// Not what this node writes.
    #[error("{0}")]
    Malformed(String),
    /// Another chain id, or rules of another version.
    #[error("the state is of chain {chain_id} with ArbOS {arbos}, this chain is {own_id} with ArbOS {own_arbos}")]
    OtherChain {
        /// Of the state.
        chain_id: u64,
        /// Of the state.
        arbos: u64,
        /// Of the node.
        own_id: u64,
        /// Of the node.
        own_arbos: u64,
    },
}

/// How far time was moved.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Travelled {
    pub offset: i64,
    pub next: Option<u64>,
}

impl From<Time> for Travelled {
    fn from(time: Time) -> Self {
        Self { offset: i64::try_from(time.offset).unwrap_or(i64::MAX), next: time.next }
    }
}

/// A transaction and its sender, which need not have signed it.
#[derive(Serialize, Deserialize)]
pub(super) struct SentTx {
    from: Address,
    raw: Bytes,
}

impl SentTx {
    pub(super) fn of(tx: &Recovered<TxEnvelope>) -> Self {
        Self { from: tx.signer(), raw: tx.encoded_2718().into() }
    }

    pub(super) fn read(&self) -> Result<Recovered<TxEnvelope>, StateError> {
        let tx = TxEnvelope::decode_2718_exact(&self.raw).map_err(|e| StateError::Malformed(e.to_string()))?;
        Ok(Recovered::new_unchecked(tx, self.from))
    }
}

/// A change.
#[derive(Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase")]
pub(super) enum Op {
    /// Begins the log.
    #[serde(rename_all = "camelCase")]
    Log {
        generation: u64,
    },
    #[serde(rename_all = "camelCase")]
    Block {
        hash: B256,
        setting: Setting,
        time: Travelled,
        transactions: Vec<SentTx>,
    },
    Balance {
        of: Address,
        balance: U256,
    },
    Nonce {
        of: Address,
        nonce: u64,
    },
    Code {
        of: Address,
        code: Bytes,
    },
    Slot {
        of: Address,
        slot: U256,
        value: U256,
    },
    Upcoming {
        upcoming: Upcoming,
    },
    Time {
        time: Travelled,
    },
    Automine {
        on: bool,
    },
    Wait {
        tx: SentTx,
    },
    Drop {
        hash: B256,
    },
    Snapshot {
        id: u64,
    },
    Revert {
        id: u64,
    },
    #[serde(rename_all = "camelCase")]
    Reset {
        genesis_time: u64,
    },
}

/// Where a chain is kept.
#[derive(Debug)]
pub(super) struct Journal {
    pub path: PathBuf,
    pub log: File,
    pub length: u64,
    pub generation: u64,
    /// The number of the first snapshot that the log can name: the file has none.
    pub snapshots: u64,
}

impl Journal {
    pub(super) fn log_path(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".log");
        name.into()
    }

    pub(super) fn write(&mut self, op: &Op) -> io::Result<()> {
        let mut line = serde_json::to_vec(op)?;
        line.push(b'\n');
        self.length += line.len() as u64;
        self.log.write_all(&line)
    }

    /// Begins the log anew, for the file of a generation.
    pub(super) fn begin(&mut self, generation: u64) -> io::Result<()> {
        self.log.set_len(0)?;
        self.log.seek(SeekFrom::Start(0))?;
        (self.length, self.generation) = (0, generation);
        self.write(&Op::Log { generation })
    }
}
