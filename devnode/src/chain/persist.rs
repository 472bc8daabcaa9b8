//! A chain that outlives its process: one file with all of it, and beside it a log of changes since.
//!
//! The file is written when the node stops and whenever the log has grown long; the log after every change, before
//! anybody hears of it. So a node that is killed loses nothing but its snapshots and the states of old blocks, which
//! are not kept either way. File and log carry a number: a log that belongs to an older file is not read.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use alloy_consensus::transaction::Recovered;
use alloy_consensus::TxEnvelope;
use alloy_primitives::B256;
use serde::{Deserialize, Serialize};

use super::block::{self, hashes_of, Setting};
use super::journal::{Journal, Op, SentTx, StateError, Travelled};
use super::time::Upcoming;
use super::{append, keeps_states, Chain, Inner, MinedBlock, Writer};
use crate::evm::Outcome;
use crate::state::{State, StateDump};

/// The format written and read; in the one before it ArbOS's storage lay elsewhere.
const FORMAT: u32 = 2;
/// Bytes of log after which everything is written anew.
const LONG_LOG: u64 = 64 * 1024 * 1024;
/// Most bytes of a dump that came over JSON-RPC, once it is decompressed.
const MAX_DUMP: u64 = 1 << 28;

/// A whole chain, but for its snapshots and the states of old blocks.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Dump<'a> {
    format: u32,
    /// Which log belongs to it.
    generation: u64,
    chain_id: u64,
    arbos_version: u64,
    state: StateDump,
    blocks: Vec<Cow<'a, MinedBlock>>,
    recent_hashes: Vec<(u64, B256)>,
    genesis_time: u64,
    time: Travelled,
    upcoming: Upcoming,
    automine: bool,
    waiting: Vec<SentTx>,
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> StateError + '_ {
    |source| StateError::Io { path: path.to_owned(), source }
}

impl Chain {
    /// Keeps the chain in a file from now on. A chain that is already there is loaded first.
    ///
    /// # Errors
    /// The file or its log can't be read or written, or is of another chain.
    pub fn keep_in(&self, path: &Path) -> Result<(), StateError> {
        self.check_whole()?;
        let writer = self.writer();
        let log_path = Journal::log_path(path);
        let log = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&log_path)
            .map_err(io_error(&log_path))?;
        log.try_lock().map_err(|_| StateError::InUse(path.to_owned()))?;
        let mut generation = 0;
        match File::open(path) {
            Ok(file) => {
                let dump: Dump = serde_json::from_reader(BufReader::new(file))
                    .map_err(|e| StateError::Malformed(format!("{}: {e}", path.display())))?;
                generation = dump.generation;
                self.restore(&writer, dump)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io_error(path)(error)),
        }
        self.redo_log(&writer, &log, generation).map_err(|e| StateError::Malformed(format!("{}: {e}", log_path.display())))?;
        *self.0.journal.lock() = Some(Journal { path: path.to_owned(), log, length: 0, generation, snapshots: 0 });
        self.save(&writer)
    }

    /// Writes the file anew, if the chain is kept in one.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn save_state(&self) -> Result<(), StateError> {
        self.save(&self.writer())
    }

    fn save(&self, _: &Writer<'_>) -> Result<(), StateError> {
        let mut journal = self.0.journal.lock();
        let Some(journal) = &mut *journal else { return Ok(()) };
        let generation = journal.generation + 1;
        let mut new = journal.path.as_os_str().to_owned();
        new.push(".new");
        let new = PathBuf::from(new);
        let mut file = BufWriter::new(File::create(&new).map_err(io_error(&new))?);
        let written = {
            let inner = self.0.inner.read();
            journal.snapshots = inner.next_snapshot;
            serde_json::to_writer(&mut file, &self.dump_of(&inner, generation)).map_err(io::Error::from)
        };
        written.and_then(|()| file.flush()).and_then(|()| file.get_ref().sync_all()).map_err(io_error(&new))?;
        fs::rename(&new, &journal.path).map_err(io_error(&journal.path))?;
        journal.begin(generation).map_err(io_error(&journal.path))
    }

    /// Writes a change into the log. Called with the writer's lock held, before anybody sees the change.
    pub(super) fn record(&self, op: impl FnOnce() -> Op) {
        let mut kept = self.0.journal.lock();
        let Some(journal) = &mut *kept else { return };
        if let Err(error) = journal.write(&op()) {
            eprintln!("muster-devnode: {}: {error}; changes from now on are not kept", journal.path.display());
            *kept = None;
        }
    }

    /// Writes the file anew once the log has become long.
    pub(super) fn fold_log(&self, writer: &Writer<'_>) {
        let long = self.0.journal.lock().as_ref().is_some_and(|journal| journal.length > LONG_LOG);
        if long {
            if let Err(error) = self.save(writer) {
                eprintln!("muster-devnode: {error}");
            }
        }
    }

    /// Goes back to a snapshot. One that is older than the file isn't in the log either, so then all is written anew.
    pub(super) fn revert_kept(&self, writer: &Writer<'_>, id: u64) -> bool {
        if !self.0.inner.read().snapshots.iter().any(|snapshot| snapshot.id == id) {
            return false;
        }
        let older = self.0.journal.lock().as_ref().is_some_and(|journal| id < journal.snapshots);
        if !older {
            self.record(|| Op::Revert { id });
        }
        self.0.inner.write().revert(id);
        if older {
            if let Err(error) = self.save(writer) {
                eprintln!("muster-devnode: {error}; changes from now on are not kept");
                *self.0.journal.lock() = None;
            }
        }
        true
    }

    fn dump_of<'a>(&self, inner: &'a Inner, generation: u64) -> Dump<'a> {
        Dump {
            format: FORMAT,
            generation,
            chain_id: self.config().chain_id,
            arbos_version: self.config().arbos_version,
            state: inner.state.dump(),
            blocks: inner.blocks.iter().map(|stored| Cow::Borrowed(&*stored.block)).collect(),
            recent_hashes: inner.newest_hashes().to_vec(),
            genesis_time: inner.genesis_time,
            time: inner.time.into(),
            upcoming: inner.upcoming,
            automine: inner.automine,
            waiting: inner.pool.iter().flat_map(|(_, txs)| txs.values().map(|waiting| SentTx::of(&waiting.tx))).collect(),
        }
    }

    /// The whole chain, compressed, for [`Chain::load`].
    ///
    /// # Errors
    /// The chain is a copy, of which only a part is here.
    pub fn dump(&self) -> Result<Vec<u8>, StateError> {
        self.check_whole()?;
        let mut out = Vec::new();
        let mut compressed = brotli::CompressorWriter::new(&mut out, 4096, 5, 22);
        {
            let inner = self.0.inner.read();
            let written = serde_json::to_writer(&mut compressed, &self.dump_of(&inner, 0)).map_err(io::Error::from);
            written.and_then(|()| compressed.flush()).map_err(io_error(Path::new("dump")))?;
        }
        drop(compressed);
        Ok(out)
    }

    /// Puts a chain in the place of this one. Snapshots and states of old blocks are gone.
    ///
    /// # Errors
    /// It is no dump, or one of another chain.
    pub fn load(&self, dump: &[u8]) -> Result<(), StateError> {
        self.check_whole()?;
        let writer = self.writer();
        let plain = brotli::Decompressor::new(dump, 4096).take(MAX_DUMP);
        let dump: Dump = serde_json::from_reader(BufReader::new(plain))
            .map_err(|e| StateError::Malformed(format!("not a dump of this node: {e}")))?;
        self.restore(&writer, dump)?;
        self.save(&writer)
    }

    fn check_whole(&self) -> Result<(), StateError> {
        if self.fork().is_some() {
            return Err(StateError::Copy);
        }
        Ok(())
    }

    fn restore(&self, _: &Writer<'_>, dump: Dump<'_>) -> Result<(), StateError> {
        let config = self.config();
        if dump.format != FORMAT {
            return Err(StateError::Malformed(format!("format {} is not known, {FORMAT} is", dump.format)));
        }
        if (dump.chain_id, dump.arbos_version) != (config.chain_id, config.arbos_version) {
            return Err(StateError::OtherChain {
                chain_id: dump.chain_id,
                arbos: dump.arbos_version,
                own_id: config.chain_id,
                own_arbos: config.arbos_version,
            });
        }
        let follow = dump.blocks.windows(2).all(|pair| {
            pair[0].header.number.checked_add(1) == Some(pair[1].header.number) && pair[1].header.parent_hash == pair[0].hash
        });
        if dump.blocks.is_empty() || !follow {
            return Err(StateError::Malformed("the blocks are no chain".into()));
        }
        let waiting: Vec<_> = dump.waiting.iter().map(SentTx::read).collect::<Result<_, _>>()?;
        let mut inner = self.0.inner.write();
        let inner = &mut *inner;
        inner.clear();
        inner.state = State::of_dump(dump.state);
        inner.genesis_time = dump.genesis_time;
        for block in dump.blocks {
            append(inner, config, block.into_owned().into(), None);
        }
        // With little history there were more hashes than blocks.
        inner.recent = dump.recent_hashes.into();
        inner.travel(dump.time);
        inner.upcoming = dump.upcoming;
        inner.automine = dump.automine;
        for tx in waiting {
            // It waited before, so it may wait again.
            let _ = inner.pool.add(tx);
        }
        Ok(())
    }

    /// Repeats the changes in the log.
    fn redo_log(&self, writer: &Writer<'_>, log: &File, generation: u64) -> Result<(), StateError> {
        let mut lines = BufReader::new(log);
        let mut text = String::new();
        let mut number = 0;
        loop {
            text.clear();
            number += 1;
            let read = lines.read_line(&mut text).map_err(|e| StateError::Malformed(format!("line {number}: {e}")))?;
            // A last line without its end was being written when the node died.
            if read == 0 || !text.ends_with('\n') {
                return Ok(());
            }
            let wrong = |e: &dyn std::fmt::Display| StateError::Malformed(format!("line {number}: {e}"));
            let op: Op = serde_json::from_str(&text).map_err(|e| wrong(&e))?;
            match (number, &op) {
                (1, Op::Log { generation: of }) if *of == generation => {}
                // Of an older file.
                (1, _) => return Ok(()),
                _ => self.redo(writer, op).map_err(|e| wrong(&e))?,
            }
        }
    }

    fn redo(&self, writer: &Writer<'_>, op: Op) -> Result<(), StateError> {
        if let Op::Block { hash, setting, time, transactions } = op {
            return self.redo_block(writer, hash, &setting, time, &transactions);
        }
        let mut inner = self.0.inner.write();
        let inner = &mut *inner;
        match op {
            Op::Log { .. } | Op::Block { .. } => {}
            Op::Balance { of, balance } => inner.state.set_balance(of, balance),
            Op::Nonce { of, nonce } => inner.state.set_nonce(of, nonce),
            Op::Code { of, code } => inner.state.set_code(of, code),
            Op::Slot { of, slot, value } => inner.state.set_storage(of, slot, value),
            Op::Upcoming { upcoming } => inner.upcoming = upcoming,
            Op::Time { time } => inner.travel(time),
            Op::Automine { on } => inner.automine = on,
            Op::Wait { tx } => {
                let _ = inner.pool.add(tx.read()?);
            }
            Op::Drop { hash } => drop(inner.pool.remove(hash)),
            Op::Snapshot { id } => inner.snapshot(id),
            Op::Revert { id } => {
                if !inner.revert(id) {
                    return Err(StateError::Malformed(format!("there is no snapshot {id}")));
                }
            }
            Op::Reset { genesis_time } => self.begin_again(inner, genesis_time),
        }
        Ok(())
    }

    fn redo_block(
        &self,
        _: &Writer<'_>,
        hash: B256,
        setting: &Setting,
        time: Travelled,
        transactions: &[SentTx],
    ) -> Result<(), StateError> {
        let mut inner = self.0.inner.write();
        let inner = &mut *inner;
        let hashes = inner.newest_hashes().to_vec();
        let mut state = inner.state.clone();
        self.evm().remember(&mut state, &hashes);
        let mut ran: Vec<(Recovered<TxEnvelope>, Outcome)> = Vec::with_capacity(transactions.len());
        for tx in transactions {
            let tx = tx.read()?;
            let context = block::context(&tx, setting.base_fee);
            let outcome = self
                .evm()
                .transact(&mut state, &setting.context(&hashes), &context)
                .map_err(|e| StateError::Malformed(e.to_string()))?;
            ran.push((tx, outcome));
        }
        let root = if self.config().state_root { state.root() } else { B256::ZERO };
        let sealed = ran.iter().map(|(tx, outcome)| (tx.clone(), outcome)).collect();
        let mined = block::seal(setting, self.config().arbos_version, root, sealed);
        if mined.hash != hash {
            return Err(StateError::Malformed(format!(
                "block {} comes out as {}, and was {hash}: it was made by another version or with other options",
                setting.number, mined.hash
            )));
        }
        let before = std::mem::replace(&mut inner.state, state);
        inner.travel(time);
        inner.upcoming.prevrandao = None;
        for done in hashes_of(&mined) {
            inner.pool.remove(done);
        }
        append(inner, self.config(), mined.into(), keeps_states(self.config()).then_some(before));
        Ok(())
    }
}

impl Inner {
    fn travel(&mut self, time: Travelled) {
        self.time.offset = time.offset.into();
        self.time.next = time.next;
    }
}
