//! The contract's events, each once: by `eth_getLogs` from a cursor, through failures of connections, nodes and processes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use alloy::primitives::{Address, B256};
use alloy::rpc::types::Log;
use serde_json::json;

use crate::abi::{self, Event};
use crate::cursor::{Cursor, Mark};
use crate::endpoints::Endpoints;
use crate::file::{self, Lock};
use crate::http::Fault;
use crate::past::Span;
use crate::pulse::{Head, Pulse};
use crate::{Complaint, Error};

/// How events are read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The most blocks of one request; fewer after a node has refused that many.
    pub span: u64,
    /// The pause before asking again when there was nothing new. Where connections announce events, the reader waits for them instead, and
    /// looks by itself only after [`Reading::RARELY`] times as long.
    pub every: Duration,
    /// Blocks this close to the newest are not read yet. With 0 an event is seen at once, and a reorganisation is a
    /// [`Batch::Undone`]; with more, reorganisations up to that depth are never seen.
    pub depth: u64,
    /// Nodes over WebSocket (ws, wss) that wake the reader when something happens, so that it need not wait: beside those that the
    /// endpoints listen to ([`Endpoints::listen`]).
    pub wake: Vec<String>,
    /// How often progress without events is written to the disk.
    pub save_every: Duration,
}

impl Default for Reading {
    fn default() -> Self {
        Self { span: 10_000, every: Duration::from_secs(2), depth: 0, wake: Vec::new(), save_every: Duration::from_mins(1) }
    }
}

impl Reading {
    /// See [`Reading::every`].
    pub const RARELY: u32 = 32;
}

/// An event and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    /// The event; `None` if this library does not know it, because the contract is newer.
    pub event: Option<Event>,
    /// The log itself.
    pub log: Log,
    /// Its block.
    pub block: u64,
    /// Its block's hash: with `index` it names the event for good.
    pub block_hash: B256,
    /// Its transaction.
    pub transaction: B256,
    /// Its position among the logs of its block.
    pub index: u64,
}

impl Logged {
    pub(crate) fn of(log: Log) -> Option<Self> {
        let event = abi::event(&log.inner);
        let (block, block_hash) = (log.block_number?, log.block_hash?);
        let (transaction, index) = (log.transaction_hash?, log.log_index?);
        Some(Self { event, log, block, block_hash, transaction, index })
    }
}

/// News. Call [`Events::accept`] after dealing with it.
#[derive(Clone, Debug)]
pub enum Batch {
    /// Events in their order, all of some blocks.
    Events {
        /// The events; at least one.
        events: Vec<Logged>,
        /// The position after it.
        cursor: Cursor,
    },
    /// The chain was reorganised: events delivered from later blocks are void. The events of the new blocks follow.
    Undone {
        /// The last block that is still valid; one before the first that is read, if none is.
        to: u64,
        /// The position after it.
        cursor: Cursor,
    },
}

impl Batch {
    /// The position after it.
    pub fn cursor(&self) -> &Cursor {
        let (Batch::Events { cursor, .. } | Batch::Undone { cursor, .. }) = self;
        cursor
    }
}

/// A contract's events from a cursor on.
///
/// Nothing is lost: the cursor moves only past blocks that were read whole, on a node that had them. A second node
/// must agree, if one answers.
///
/// A batch is delivered again only if the process ended between dealing with it and [`accept`](Events::accept).
/// To exclude even that, keep the batch's cursor in the transaction that stores its effects, and pass it to
/// [`with_cursor`](Events::with_cursor).
pub struct Events {
    endpoints: Endpoints,
    reading: Reading,
    cursor: Cursor,
    file: Option<(PathBuf, Lock)>,
    saved: Instant,
    /// The last error of a node that refused a block's logs.
    complaint: Option<Complaint>,
    span: Span,
    pulse: Pulse,
    /// The connections' announcements up to the last look.
    told: tokio::sync::watch::Receiver<u64>,
}

/// The longest file of a cursor, in bytes.
const FILE: u64 = 1 << 16;
/// The time for which nodes may contradict each other before somebody must look.
const CONTRADICTED: Duration = Duration::from_mins(5);

enum Step {
    News(Batch),
    /// Blocks without events; there may be more at once.
    Quiet,
    UpToDate,
}

impl Events {
    /// Goes on where the file in `place` says, from the block `start` on without one. The directory is locked meanwhile.
    pub async fn open(
        endpoints: Endpoints,
        contract: Address,
        start: u64,
        place: PathBuf,
        reading: Reading,
    ) -> Result<Self, Error> {
        let lock = Lock::take(&place)?;
        let path = place.join("cursor.json");
        let chain = endpoints.chain().await?;
        let cursor = file::read::<Cursor>(&path, FILE)?.unwrap_or_else(|| Cursor::new(chain, contract, start));
        if cursor.contract != contract {
            let why = format!("is the cursor of another contract, {}", cursor.contract);
            return Err(Error::File { path, source: std::io::Error::other(why) });
        }
        let mut events = Self::with_cursor(endpoints, cursor, reading).await?;
        events.file = Some((path, lock));
        Ok(events)
    }

    /// Goes on from a cursor that the caller keeps.
    pub async fn with_cursor(endpoints: Endpoints, cursor: Cursor, reading: Reading) -> Result<Self, Error> {
        let chain = endpoints.chain().await?;
        if cursor.chain != chain {
            return Err(Error::WrongChain { expected: cursor.chain, found: chain });
        }
        let pulse = endpoints.pulse().clone();
        pulse.listen(&reading.wake, cursor.contract)?;
        let (span, told) = (Span::new(reading.span, reading.span), pulse.logs());
        Ok(Self { endpoints, cursor, file: None, saved: Instant::now(), complaint: None, span, pulse, told, reading })
    }

    /// The present position.
    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// Waits for news, also while no node answers; fails only where waiting does not help, or nodes have contradicted each other for five
    /// minutes.
    pub async fn next(&mut self) -> Result<Batch, Error> {
        let mut contradicted = None;
        loop {
            self.told.mark_unchanged();
            match self.step().await {
                Ok(Step::News(batch)) => return Ok(batch),
                Ok(Step::Quiet) => contradicted = None,
                Ok(Step::UpToDate) => {
                    contradicted = None;
                    self.pause().await;
                }
                Err(error @ Error::Disagreement(_)) => {
                    if contradicted.get_or_insert_with(Instant::now).elapsed() >= CONTRADICTED {
                        return Err(error);
                    }
                    tokio::time::sleep(self.reading.every).await;
                }
                Err(error) if !error.passes() => return Err(error),
                Err(_) => tokio::time::sleep(self.reading.every).await,
            }
        }
    }

    /// The news so far; `None` if there are none.
    pub async fn poll(&mut self) -> Result<Option<Batch>, Error> {
        loop {
            match self.step().await? {
                Step::News(batch) => return Ok(Some(batch)),
                Step::Quiet => {}
                Step::UpToDate => return Ok(None),
            }
        }
    }

    /// The batch has been dealt with: goes on after it, in another process too.
    pub fn accept(&mut self, batch: &Batch) -> Result<(), Error> {
        self.cursor = batch.cursor().clone();
        self.save()
    }

    fn save(&mut self) -> Result<(), Error> {
        self.saved = Instant::now();
        self.file.as_ref().map_or(Ok(()), |(path, _)| file::write(path, &self.cursor))
    }

    /// Waits until there may be news.
    async fn pause(&mut self) {
        let until = Instant::now() + self.reading.every * Reading::RARELY;
        while Instant::now() < until {
            // An announced event that the node did not have yet.
            let unread = self.reading.depth == 0 && *self.told.borrow() >= self.cursor.next();
            let rarely = self.pulse.is_live() && !unread;
            let every = if rarely { self.reading.every * Reading::RARELY } else { self.reading.every };
            // Cannot close: this struct holds the sender.
            if tokio::time::timeout(every, self.told.changed()).await.is_ok() {
                return;
            }
            if !self.pulse.is_live() && self.may_have_news().await {
                return;
            }
        }
    }

    /// Asks once whether the first healthy node has unread events. A wrong answer only costs one look.
    async fn may_have_news(&self) -> bool {
        let Some(node) = self.endpoints.well().first().copied() else { return true };
        let from = self.cursor.next();
        let filter = json!([{ "address": self.cursor.contract, "fromBlock": format!("{from:#x}") }]);
        match self.endpoints.ask_one::<Vec<Log>>(node, "eth_getLogs", &filter).await {
            Ok(Ok(logs)) if logs.is_empty() => false,
            Ok(Ok(logs)) => {
                self.pulse.tell(logs.iter().filter_map(|log| abi::event(&log.inner)));
                true
            }
            // Some nodes refuse questions about future blocks.
            Ok(Err(_)) => false,
            Err(_) => true,
        }
    }

    async fn step(&mut self) -> Result<Step, Error> {
        self.endpoints.chain().await?;
        let span = self.span.next;
        self.complaint = None;
        let well = self.endpoints.well();
        for node in &well {
            let last = self.cursor.last();
            let known = async {
                match last {
                    Some(last) => self.endpoints.block(*node, format!("{:#x}", last.number)).await,
                    None => None,
                }
            };
            let (head, known) = tokio::join!(self.endpoints.block(*node, "latest"), known);
            let Some((_, head)) = head else { continue };
            self.pulse.note(&head);
            if let Some(last) = last {
                match known {
                    // This node is behind; another may not be.
                    None => continue,
                    // If nodes keep disagreeing, the comparison of settled blocks drops the minority.
                    Some((_, block)) if block.hash != last.hash => {
                        if self.is_alone_in_doubting(*node, last).await {
                            continue;
                        }
                        return self.undo(*node).await;
                    }
                    Some(_) => {}
                }
            }
            let newest = head.number.saturating_sub(self.reading.depth);
            if newest < self.cursor.next() {
                continue;
            }
            if let Some(step) = self.read(*node, newest, head).await? {
                return Ok(step);
            }
        }
        if self.endpoints.well().is_empty() {
            return Err(Error::Unreachable(self.endpoints.reasons()));
        }
        if let Some(complaint) = self.complaint.take() {
            return Err(Error::Node(complaint));
        }
        Ok(if self.span.next < span { Step::Quiet } else { Step::UpToDate })
    }

    /// Whether most of the other nodes confirm the block as it was read.
    async fn is_alone_in_doubting(&self, node: usize, last: Mark) -> bool {
        let mut balance = -1;
        for other in self.endpoints.well().into_iter().filter(|other| *other != node) {
            match self.endpoints.block(other, format!("{:#x}", last.number)).await {
                Some((_, block)) if block.hash == last.hash => balance += 1,
                Some(_) => balance -= 1,
                None => {}
            }
        }
        // One against one: an earlier comparison confirmed the chain as read.
        balance >= 0
    }

    async fn undo(&self, node: usize) -> Result<Step, Error> {
        let mut cursor = self.cursor.clone();
        for mark in self.cursor.marks().skip(1) {
            let block = self.endpoints.block(node, format!("{:#x}", mark.number)).await;
            let (_, block) = block.ok_or_else(|| Error::Unreachable(self.endpoints.reasons()))?;
            if block.hash == mark.hash {
                cursor.back_to(Some(mark));
                return Ok(Step::News(Batch::Undone { to: mark.number, cursor }));
            }
        }
        cursor.back_to(None);
        Ok(Step::News(Batch::Undone { to: self.cursor.start.saturating_sub(1), cursor }))
    }

    /// Reads the next blocks, up to `newest` at most; `None` if the node turned out not to have them. `head` is its newest, just asked for.
    async fn read(&mut self, node: usize, newest: u64, head: Head) -> Result<Option<Step>, Error> {
        let from = self.cursor.next();
        let to = newest.min(from + self.span.next - 1);
        let Some((end, logs)) = self.logs(node, from, to, Some(head)).await? else { return Ok(None) };
        if !self.confirmed(node, from, end, &logs).await? {
            return Ok(None);
        }
        self.span.give(to - from + 1);
        let mut cursor = self.cursor.clone();
        cursor.advance(Mark { number: end.number, hash: end.hash });
        if !logs.is_empty() {
            return Ok(Some(Step::News(Batch::Events { events: logs, cursor })));
        }
        self.cursor = cursor;
        if self.saved.elapsed() >= self.reading.save_every {
            self.save()?;
        }
        // Blocks that arrived meanwhile can wait like later ones.
        Ok(Some(if to < newest { Step::Quiet } else { Step::UpToDate }))
    }

    /// The logs of some blocks on a node, and the last block. That block and the parent of the first are checked before and after:
    /// so all logs are of one chain, the one that was read before. A last block that is `known` was asked for just now.
    async fn logs(&mut self, node: usize, from: u64, to: u64, known: Option<Head>) -> Result<Option<(Head, Vec<Logged>)>, Error> {
        let end = match known.filter(|known| known.number == to) {
            Some(end) => end,
            None => match self.endpoints.block(node, format!("{to:#x}")).await {
                Some((_, end)) => end,
                None => return Ok(None),
            },
        };
        let filter =
            json!([{ "address": self.cursor.contract, "fromBlock": format!("{from:#x}"), "toBlock": format!("{to:#x}") }]);
        let logs = match self.endpoints.ask_one::<Vec<Log>>(node, "eth_getLogs", &filter).await {
            Ok(Ok(logs)) => logs,
            Err(Fault::Slow(_) | Fault::TooLong(_)) | Ok(Err(_)) if to > from => {
                // More than the node returns at once.
                self.span.refuse(to - from + 1);
                return Ok(None);
            }
            // A single block: others may have it, and the caller gets this error if none has.
            Ok(Err(complaint)) => {
                self.complaint = Some(complaint);
                return Ok(None);
            }
            Err(_) => return Ok(None),
        };
        let before = async {
            match self.cursor.last() {
                Some(last) => {
                    self.endpoints.block(node, format!("{:#x}", last.number)).await.is_some_and(|(_, b)| b.hash == last.hash)
                }
                None => true,
            }
        };
        let (after, before) = tokio::join!(self.endpoints.block(node, format!("{to:#x}")), before);
        if after.is_none_or(|(_, after)| after.hash != end.hash) || !before {
            return Ok(None);
        }
        match self.checked(logs, from, &end) {
            Ok(logs) => Ok(Some((end, logs))),
            Err(why) => {
                self.endpoints.note(node, Some(&Fault::Malformed(why.into())));
                Ok(None)
            }
        }
    }

    /// The logs in order, if they match the request.
    fn checked(&self, logs: Vec<Log>, from: u64, end: &Head) -> Result<Vec<Logged>, &'static str> {
        let mut read: Vec<Logged> = Vec::with_capacity(logs.len());
        for log in logs {
            if log.removed || log.inner.address != self.cursor.contract {
                return Err("a log that was not asked for");
            }
            let log = Logged::of(log).ok_or("a log without a place")?;
            if log.block < from || log.block > end.number || log.block == end.number && log.block_hash != end.hash {
                return Err("a log of another block");
            }
            if let Some(last) = read.last() {
                if (last.block, last.index) >= (log.block, log.index)
                    || last.block == log.block && last.block_hash != log.block_hash
                {
                    return Err("logs out of order");
                }
            }
            read.push(log);
        }
        Ok(read)
    }

    /// Whether another node, if one answers, has the same logs. If not, the majority of all decides.
    async fn confirmed(&mut self, node: usize, from: u64, end: Head, logs: &[Logged]) -> Result<bool, Error> {
        let digest =
            |logs: &[Logged]| logs.iter().map(|log| (log.block_hash, log.index, log.log.inner.clone())).collect::<Vec<_>>();
        let own = (end.hash, digest(logs));
        let mut votes: Vec<(usize, _)> = vec![(node, own.clone())];
        let span = self.span.next;
        for other in self.endpoints.well().into_iter().filter(|other| *other != node) {
            if let Ok(Some((end, logs))) = self.logs(other, from, end.number, None).await {
                let agrees = end.hash == own.0 && digest(&logs) == own.1;
                votes.push((other, (end.hash, digest(&logs))));
                if agrees && votes.len() == 2 {
                    return Ok(true);
                }
            }
            if self.span.next < span {
                // It gives fewer at once, and confirms those.
                return Ok(false);
            }
        }
        if votes.len() == 1 {
            return Ok(true);
        }
        let mut count: HashMap<_, usize> = HashMap::new();
        votes.iter().for_each(|(_, vote)| *count.entry(vote).or_default() += 1);
        let most = count.values().max().copied().unwrap_or_default();
        if most * 2 <= votes.len() {
            return Err(Error::Disagreement(format!("the events of blocks {from} to {}", end.number)));
        }
        let right = count.iter().find(|(_, votes)| **votes == most).map(|(vote, _)| (*vote).clone()).expect("one has most");
        for (voter, vote) in &votes {
            // On another block it may only be slow; on the same block it lies.
            if vote.0 == right.0 && vote.1 != right.1 {
                self.endpoints.note(*voter, Some(&Fault::Contradicts(format!("the events of blocks {from} to {}", end.number))));
            }
        }
        Ok(right == own)
    }
}
