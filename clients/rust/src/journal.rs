//! Transactions on the disk: one file each, whole or not there, before any node sees a byte of them. Or in memory alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use alloy::primitives::{Bytes, TxKind, B256, U256};
use serde::{Deserialize, Serialize};

use crate::file::{self, Lock};
use crate::Error;

/// The longest file of a transaction, in bytes.
const FILE: u64 = 4 << 20;

/// A transaction as it was signed. One that was signed anew for a rising base fee has several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// Its hash.
    pub hash: B256,
    /// The bytes that are sent.
    pub bytes: Bytes,
    /// The most it pays for a unit of gas, in wei.
    pub fee_cap: u128,
}

/// What has become of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Not mined, as far as is known.
    Open,
    /// Mined. Until the block is settled it may be open again, after a reorganisation.
    Mined {
        /// Of the one that was mined.
        hash: B256,
        /// In which block.
        block: u64,
        /// That block's hash.
        block_hash: B256,
        /// Whether it was not undone.
        succeeded: bool,
        /// Whether the block is so deep that it stays.
        settled: bool,
    },
    /// Another transaction of the account has taken its number: this one never happens.
    Displaced,
}

/// A transaction of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number in the account's order.
    pub nonce: u64,
    /// The caller's name for what it does, under which it is done once.
    pub name: Option<String>,
    /// The recipient; or the contract that it creates.
    pub to: TxKind,
    /// With how many wei.
    pub value: U256,
    /// With what calldata.
    pub input: Bytes,
    /// With how much gas at most.
    pub gas: u64,
    /// As it was signed; the last is what is sent.
    pub signed: Vec<Signed>,
    /// What has become of it.
    pub fate: Fate,
}

impl Entry {
    /// What is sent.
    pub fn latest(&self) -> &Signed {
        self.signed.last().expect("an entry is signed when it is written")
    }

    /// Whether it was undone, or another has taken its number: what it was to do can be begun anew.
    pub fn is_void(&self) -> bool {
        matches!(self.fate, Fate::Displaced | Fate::Mined { succeeded: false, .. })
    }

    /// Whether nothing will become of it any more.
    pub fn is_over(&self) -> bool {
        matches!(self.fate, Fate::Displaced | Fate::Mined { settled: true, .. })
    }
}

pub(crate) struct Journal {
    /// None in memory.
    place: Option<(PathBuf, Lock)>,
    entries: BTreeMap<u64, Entry>,
    keep: usize,
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

/// Has a directory hold the transactions of the chain with this first block alone. Those of another are set aside, and those that were
/// are brought back, so that an endpoint of the wrong chain loses nothing.
fn bind(place: &Path, genesis: B256) -> Result<(), Error> {
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
    let known = file::read::<B256>(&path, 256)?;
    if let Some(known) = known.filter(|known| *known != genesis) {
        move_all(place, &aside(known))?;
    }
    if known != Some(genesis) {
        file::write(&path, &genesis)?;
    }
    let back = aside(genesis);
    if back.is_dir() {
        move_all(&back, place)?;
        // Empty now; one that is not is left.
        let _ = fs::remove_dir(back);
    }
    Ok(())
}

impl Journal {
    /// Takes a directory and reads what is in it, of the chain with this first block if it is known. Of transactions that are over the
    /// newest `keep` are kept.
    pub fn open(place: &Path, keep: usize, genesis: Option<B256>) -> Result<Self, Error> {
        let lock = Lock::take(place)?;
        if let Some(genesis) = genesis {
            bind(place, genesis)?;
        }
        let mut entries = BTreeMap::new();
        for path in transactions(place)? {
            let gone = || Error::File { path: path.clone(), source: std::io::ErrorKind::NotFound.into() };
            let entry: Entry = file::read(&path, FILE)?.ok_or_else(gone)?;
            if entry.signed.is_empty() {
                return Err(Error::File { path, source: std::io::Error::other("a transaction that is not signed") });
            }
            entries.insert(entry.nonce, entry);
        }
        Ok(Self { place: Some((place.into(), lock)), entries, keep })
    }

    /// One that nothing is left of when it is dropped.
    pub fn in_memory(keep: usize) -> Self {
        Self { place: None, entries: BTreeMap::new(), keep }
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

    /// Writes an entry; when it returns, it is on the disk, if there is one.
    pub fn put(&mut self, entry: Entry) -> Result<(), Error> {
        if let Some(path) = self.path(entry.nonce) {
            file::write(&path, &entry)?;
        }
        self.entries.insert(entry.nonce, entry);
        let over: Vec<u64> = self.entries.values().filter(|entry| entry.is_over()).map(|entry| entry.nonce).collect();
        for nonce in over.iter().take(over.len().saturating_sub(self.keep)) {
            if let Some(path) = self.path(*nonce) {
                file::remove(&path)?;
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

    /// All that something may still become of, in order.
    pub fn unfinished(&self) -> Vec<u64> {
        self.entries.values().filter(|entry| !entry.is_over()).map(|entry| entry.nonce).collect()
    }

    /// The number after the last one that was used.
    pub fn next(&self) -> u64 {
        self.entries.keys().last().map_or(0, |last| last + 1)
    }

    pub fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }
}
