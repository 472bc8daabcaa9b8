//! Transactions on the disk: one file each, whole or not there, before any node sees a byte of them. Or in memory alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use alloy::consensus::{Transaction, TxEnvelope};
use alloy::eips::eip2718::Decodable2718;
use alloy::primitives::{Bytes, TxKind, B256, U256};
use serde::{Deserialize, Serialize};

use crate::file::{self, Lock};
use crate::Error;

/// The longest file of a transaction, in bytes.
const FILE: u64 = 4 << 20;

/// A transaction as it was signed. If it was signed again, for another base fee or other gas, it has several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// Its hash.
    pub hash: B256,
    /// The bytes that are sent.
    pub bytes: Bytes,
    /// The most it pays for a unit of gas, in wei.
    pub fee_cap: u128,
}

impl Signed {
    /// Its gas limit.
    pub(crate) fn gas(&self) -> Option<u64> {
        TxEnvelope::decode_2718(&mut self.bytes.as_ref()).ok().map(|transaction| transaction.gas_limit())
    }
}

/// The state of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Not mined, as far as known.
    Open,
    /// Mined. Until the block is settled it may be open again, after a reorganisation.
    Mined {
        /// The hash of the one that was mined.
        hash: B256,
        /// Its block.
        block: u64,
        /// That block's hash.
        block_hash: B256,
        /// Whether it succeeded rather than reverted.
        succeeded: bool,
        /// Whether the block is deep enough to be final.
        settled: bool,
    },
    /// Another transaction of the account has used its nonce, as far as nodes know: this one never happens.
    Displaced,
}

/// A transaction of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its nonce.
    pub nonce: u64,
    /// The caller's name for the action, which happens once under that name.
    pub name: Option<String>,
    /// The recipient; or creation of a contract.
    pub to: TxKind,
    /// The value, in wei.
    pub value: U256,
    /// The calldata.
    pub input: Bytes,
    /// The gas limit of the version that is sent.
    pub gas: u64,
    /// As it was signed; the last one is sent.
    pub signed: Vec<Signed>,
    /// The state of the transaction.
    pub fate: Fate,
}

impl Entry {
    /// The version to send.
    pub fn latest(&self) -> &Signed {
        self.signed.last().expect("an entry is signed when it is written")
    }

    /// Whether it reverted, or another used its nonce: the same action may be started anew.
    pub fn is_void(&self) -> bool {
        matches!(self.fate, Fate::Displaced | Fate::Mined { succeeded: false, .. })
    }

    /// Whether its state is final.
    pub fn is_over(&self) -> bool {
        matches!(self.fate, Fate::Displaced | Fate::Mined { settled: true, .. })
    }
}

pub(crate) struct Journal {
    /// `None` in memory.
    place: Option<(PathBuf, Lock)>,
    entries: BTreeMap<u64, Entry>,
    keep: usize,
    /// Damaged files that were set aside, with the numbers of their transactions.
    pub damaged: Vec<(u64, PathBuf)>,
    /// Above 0 while entries that cannot be written are kept in memory.
    pub anyway: Arc<AtomicUsize>,
    /// Why the last entry is not on the disk.
    pub unwritten: Option<String>,
}

/// The files of the transactions in a directory.
fn transactions(place: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::File { path: place.into(), source };
    let mut files = Vec::new();
    for found in fs::read_dir(place).map_err(failed)? {
        let path = found.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    Ok(files)
}

/// Reserves a directory for transactions of the chain with this first block. Moves those of another chain aside, and brings back those
/// of this one, so that an endpoint of the wrong chain loses nothing.
fn bind(place: &Path, genesis: B256, set_aside: bool) -> Result<(), Error> {
    let path = place.join("genesis");
    let aside = |genesis: B256| place.join(format!("of-{}", &genesis.to_string()[2..18]));
    let move_all = |from: &Path, to: &Path| -> Result<(), Error> {
        file::private_directory(to)?;
        for file in transactions(from)? {
            let target = to.join(file.file_name().unwrap_or_default());
            fs::rename(&file, target).map_err(|source| Error::File { path: file, source })?;
        }
        Ok(())
    };
    let known = match file::read::<B256>(&path, 256) {
        // Written anew.
        Err(_) if set_aside => None,
        read => read?,
    };
    if let Some(known) = known.filter(|known| *known != genesis) {
        move_all(place, &aside(known))?;
    }
    if known != Some(genesis) {
        file::write(&path, &genesis)?;
    }
    let back = aside(genesis);
    if back.is_dir() {
        move_all(&back, place)?;
        // Empty now; the system keeps one that is not.
        let _ = fs::remove_dir(back);
    }
    Ok(())
}

impl Journal {
    /// Takes a directory and reads its entries, of the chain with this first block if it is known. Of finished transactions the
    /// newest `keep` are kept. Damaged ones are an error, unless they are to be set aside.
    pub fn open(place: &Path, keep: usize, genesis: Option<B256>, set_aside: bool) -> Result<Self, Error> {
        let lock = Lock::take(place)?;
        if let Some(genesis) = genesis {
            bind(place, genesis, set_aside)?;
        }
        let (mut entries, mut damaged) = (BTreeMap::new(), Vec::new());
        for path in transactions(place)? {
            match Self::read(&path) {
                Ok(entry) => drop(entries.insert(entry.nonce, entry)),
                Err(_) if set_aside => {
                    let nonce = path.file_stem().and_then(|name| name.to_str()?.parse().ok());
                    let kept = path.with_extension("damaged");
                    fs::rename(&path, &kept).map_err(|source| Error::File { path, source })?;
                    damaged.extend(nonce.map(|nonce| (nonce, kept)));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Self { place: Some((place.into(), lock)), entries, damaged, ..Self::in_memory(keep) })
    }

    fn read(path: &Path) -> Result<Entry, Error> {
        let failed = |source| Error::File { path: path.into(), source };
        let entry: Entry = file::read(path, FILE)?.ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))?;
        if entry.signed.is_empty() {
            return Err(failed(std::io::Error::other("a transaction that is not signed")));
        }
        Ok(entry)
    }

    /// An entry that vanishes when dropped.
    pub fn in_memory(keep: usize) -> Self {
        let (entries, damaged) = (BTreeMap::new(), Vec::new());
        Self { place: None, entries, keep, damaged, anyway: Arc::default(), unwritten: None }
    }

    pub fn is_in_memory(&self) -> bool {
        self.place.is_none()
    }

    /// As if there had never been an entry in memory.
    pub fn forget(&mut self, nonce: u64) {
        self.entries.remove(&nonce);
    }

    fn path(&self, nonce: u64) -> Option<PathBuf> {
        self.place.as_ref().map(|(place, _)| place.join(format!("{nonce:020}.json")))
    }

    /// Writes an entry; returns once it is on the disk, if there is one that works or must.
    pub fn put(&mut self, entry: Entry) -> Result<(), Error> {
        let anyway = self.anyway.load(Ordering::Relaxed) > 0;
        if let Some(path) = self.path(entry.nonce) {
            self.unwritten = match file::write(&path, &entry) {
                Err(error) if anyway => Some(error.to_string()),
                written => written.map(|()| None)?,
            };
        }
        self.entries.insert(entry.nonce, entry);
        if self.unwritten.is_some() {
            return Ok(());
        }
        let over: Vec<u64> = self.entries.values().filter(|entry| entry.is_over()).map(|entry| entry.nonce).collect();
        for nonce in over.iter().take(over.len().saturating_sub(self.keep)) {
            if let Some(path) = self.path(*nonce) {
                match file::remove(&path) {
                    // It was kept in memory alone, while the disk took nothing.
                    Err(Error::File { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
                    removed => removed?,
                }
            }
            self.entries.remove(nonce);
        }
        Ok(())
    }

    pub fn get(&self, nonce: u64) -> Option<&Entry> {
        self.entries.get(&nonce)
    }

    pub fn named(&self, name: &str) -> Option<&Entry> {
        self.entries.values().rev().find(|entry| entry.name.as_deref() == Some(name))
    }

    /// All unfinished entries, in order.
    pub fn unfinished(&self) -> Vec<u64> {
        self.due(u64::MAX)
    }

    /// The unfinished entries, and those in a block whose number an account that has used `count` of them has yet to use, in order.
    pub fn due(&self, count: u64) -> Vec<u64> {
        let undone = |entry: &Entry| entry.nonce >= count && matches!(entry.fate, Fate::Mined { .. });
        self.entries.values().filter(|entry| !entry.is_over() || undone(entry)).map(|entry| entry.nonce).collect()
    }

    /// The number after the last one used.
    pub fn next(&self) -> u64 {
        self.entries.keys().last().map_or(0, |last| last + 1)
    }

    pub fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }
}
