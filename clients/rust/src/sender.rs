//! An account's transactions, each sent until it is mined, through failures of this process and of nodes.
//!
//! A transaction is signed, written to the disk, and only then sent. After a restart the same bytes are sent again: a
//! chain takes each nonce of an account once, so nothing can happen twice. It is signed again when the base fee has risen
//! above its fee cap, or when nodes refuse it for its price or its gas. All versions stay on the disk, since any may be mined.
//!
//! Arbitrum orders first come, first served, and has no public mempool, where a higher tip would buy anything: none is paid.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy::consensus::TxEip1559;
use alloy::eips::eip2718::Encodable2718;
use alloy::primitives::{Address, Bytes, B256, U256, U64};
use alloy::rpc::types::TransactionReceipt;
use futures_util::future::join_all;
use serde_json::json;
use tokio::sync::Mutex;

use crate::abi::Refusal;
use crate::endpoints::Endpoints;
use crate::journal::{Entry, Fate, Journal, Signed};
use crate::pulse::Head;
use crate::request::Request;
use crate::wallet::Wallet;
use crate::Error;

/// How transactions are sent.
#[derive(Clone, Debug)]
pub struct Sending {
    /// The fee cap of a new transaction, in percent of the base fee; less where the balance does not pay that.
    pub fee_percent: u64,
    /// The highest fee cap per unit of gas, in wei; see [`Sender::above_ceiling`].
    pub fee_ceiling: Option<u128>,
    /// Gas beyond the estimate, in percent of it; unused gas is not paid. Work that others leave due is in the
    /// estimate already, since calls demand gas for it.
    pub gas_percent: u64,
    /// How often at least an open transaction is looked for, and how often it is sent again. It is looked for at every block where
    /// connections announce them, and about twice a block elsewhere.
    pub look_every: Duration,
    /// See `look_every`.
    pub resend_every: Duration,
    /// A transaction whose number is used counts as displaced once no node has had its receipt for this long: receipts can come late.
    /// Numbers before an open transaction that nothing has used for as long are filled.
    pub missing: Duration,
    /// The patience of [`Sender::wait`].
    pub patience: Duration,
    /// Confirmations after which a transaction counts as final.
    pub settled: u64,
    /// The most open transactions.
    pub open: usize,
    /// The finished transactions that are remembered, with their names.
    pub keep: usize,
    /// Whether damaged files of transactions are set aside, see [`Sender::damaged`]; otherwise they are an error. Their names are
    /// forgotten: for callers that learn from the chain what they have done.
    pub set_aside: bool,
}

impl Default for Sending {
    fn default() -> Self {
        Self {
            fee_percent: 200,
            fee_ceiling: None,
            gas_percent: 20,
            look_every: Duration::from_millis(500),
            resend_every: Duration::from_secs(3),
            missing: Duration::from_mins(1),
            patience: Duration::from_mins(2),
            settled: 20,
            open: 64,
            keep: 256,
            set_aside: false,
        }
    }
}

struct Live {
    journal: Journal,
    /// When each was last sent, and the newest block seen before that.
    sent: HashMap<u64, (Instant, u64)>,
    /// How often a receipt was missing although the nonce was used, and since when.
    missing: HashMap<u64, (u32, Instant)>,
    trouble: HashMap<u64, String>,
    attempts: usize,
    gap: Option<Gap>,
    alerts: Vec<String>,
}

/// Numbers that nothing uses, before an open transaction.
struct Gap {
    /// The first.
    from: u64,
    since: Instant,
    /// Whether it is known to be too long to fill.
    told: bool,
}

impl Live {
    /// The last complaint about a transaction, or about the first one before it, which nodes must take first.
    fn trouble_of(&self, nonce: u64) -> Option<String> {
        if let Some(trouble) = self.trouble.get(&nonce) {
            return Some(trouble.clone());
        }
        let first = self.journal.all().find(|entry| entry.fate == Fate::Open && entry.nonce < nonce)?;
        self.trouble.get(&first.nonce).map(|trouble| format!("transaction {} before it: {trouble}", first.nonce))
    }
}

/// An account's transactions. One process sends for an account; its directory, where it has one, is locked.
pub struct Sender {
    endpoints: Endpoints,
    wallet: Wallet,
    chain: u64,
    sending: Sending,
    live: Mutex<Live>,
    /// How many callers pay more than the ceiling now.
    above: AtomicUsize,
    /// How many callers send what cannot be written now.
    anyway: Arc<AtomicUsize>,
}

/// Lifts a sender's ceiling until it is dropped.
pub struct Above<'a>(&'a Sender);

impl Drop for Above<'_> {
    fn drop(&mut self) {
        self.0.above.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Has a sender do without its disk until it is dropped.
pub struct Anyway<'a>(&'a Sender);

impl Drop for Anyway<'_> {
    fn drop(&mut self) {
        self.0.anyway.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How often at most a transaction is signed. With calldata of 128 KiB, the most that nodes take, its file then has 3.3 MiB.
const VERSIONS: usize = 12;
/// Of these, so many are kept for a rising base fee: a node that refuses without a reason must not use them up.
const FOR_RISES: usize = 4;
/// The gas limit of a block of Arbitrum. A call that would be undone has no estimate, and can use its nonce with this at most.
const BLOCK_GAS: u64 = 32_000_000;

/// The most numbers in a gap that are filled: each costs a transfer's gas.
const GAP: usize = 64;

/// How often at least a receipt is missing, on every node, before a transaction counts as displaced.
const MISSES: u32 = 5;

impl Sender {
    /// Opens the account's journal, a directory of its own below `place`, and resumes open transactions. Those signed for another
    /// chain of the same number, as its first block shows, are set aside: a development chain that begins anew would take them again.
    pub async fn open(endpoints: Endpoints, wallet: impl Into<Wallet>, place: &Path, sending: Sending) -> Result<Self, Error> {
        let wallet = wallet.into();
        let chain = endpoints.chain().await?;
        let genesis = endpoints.genesis().await?;
        let journal = Journal::open(&Self::directory(place, chain, wallet.address()), sending.keep, genesis, sending.set_aside)?;
        let sender = Self::with(endpoints, wallet, chain, journal, sending);
        sender.replace_damaged().await?;
        Ok(sender)
    }

    /// The files of damaged transactions that were set aside when this was opened.
    pub async fn damaged(&self) -> Vec<PathBuf> {
        self.live.lock().await.journal.damaged.iter().map(|(_, path)| path.clone()).collect()
    }

    /// Uses the numbers of damaged transactions that are not mined, by transfers of nothing: later ones would wait for them for ever.
    async fn replace_damaged(&self) -> Result<(), Error> {
        let mut live = self.live.lock().await;
        let (last, damaged) = (live.journal.next(), live.journal.damaged.clone());
        if !damaged.iter().any(|(nonce, _)| *nonce < last) {
            return Ok(());
        }
        let (head, count) = tokio::join!(self.endpoints.recent_head(), self.count());
        let (head, count) = (head?, count?);
        let numbers = damaged.into_iter().map(|(nonce, _)| nonce).filter(|nonce| (count..last).contains(nonce)).collect();
        self.fill(&mut live, numbers, &head).await
    }

    /// Signs transfers of nothing with these numbers.
    async fn fill(&self, live: &mut Live, numbers: Vec<u64>, head: &Head) -> Result<(), Error> {
        let request = Request { to: self.address().into(), ..Request::default() };
        let gas = self.gas(&request).await?;
        let _above = self.above_ceiling();
        let fee_cap = self.fee_cap(base_fee(head), 0)?;
        for nonce in numbers {
            let Request { to, value, input, name, .. } = request.clone();
            let mut entry = Entry { nonce, name, to, value, input, gas, signed: Vec::new(), fate: Fate::Open };
            entry.signed.push(self.sign(&entry, fee_cap).await?);
            live.journal.put(entry)?;
        }
        Ok(())
    }

    /// Keeps nothing on the disk: open transactions are forgotten with the process. A transaction that no node takes is an error at once
    /// ([`Error::NotTaken`]), and forgotten. For callers that can start over, such as a script or a test.
    ///
    /// # Errors
    /// The nodes' failure.
    pub async fn in_memory(endpoints: Endpoints, wallet: impl Into<Wallet>, sending: Sending) -> Result<Self, Error> {
        let chain = endpoints.chain().await?;
        Ok(Self::with(endpoints, wallet.into(), chain, Journal::in_memory(sending.keep), sending))
    }

    fn with(endpoints: Endpoints, wallet: Wallet, chain: u64, journal: Journal, sending: Sending) -> Self {
        let anyway = journal.anyway.clone();
        let live = Live {
            journal,
            sent: HashMap::new(),
            missing: HashMap::new(),
            trouble: HashMap::new(),
            attempts: 0,
            gap: None,
            alerts: Vec::new(),
        };
        Self { endpoints, wallet, chain, sending, live: Mutex::new(live), above: AtomicUsize::new(0), anyway }
    }

    /// The path of an account's journal.
    pub fn directory(place: &Path, chain: u64, account: Address) -> PathBuf {
        place.join(format!("{chain}-{account:#x}"))
    }

    /// The account.
    pub fn address(&self) -> Address {
        self.wallet.address()
    }

    /// The nodes that are asked.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// Lifts the ceiling of fees until the returned value is dropped: for a call whose omission costs more than its gas. It also holds
    /// for open transactions, since nodes take those before it first. Meanwhile a call is refused only if all healthy nodes refuse it.
    #[must_use]
    pub fn above_ceiling(&self) -> Above<'_> {
        self.above.fetch_add(1, Ordering::Relaxed);
        Above(self)
    }

    /// Until the returned value is dropped, sends also what the disk does not take, and remembers it in memory. After a crash another
    /// transaction may displace it: for a call that the chain takes once, and that is then made again.
    #[must_use]
    pub fn without_disk(&self) -> Anyway<'_> {
        self.anyway.fetch_add(1, Ordering::Relaxed);
        Anyway(self)
    }

    /// Why the last transaction is not on the disk, if it is not.
    pub async fn unwritten(&self) -> Option<String> {
        self.live.lock().await.journal.unwritten.clone()
    }

    /// News since the last call of this that an operator must know: numbers of the account that nothing used.
    pub async fn take_alerts(&self) -> Vec<String> {
        std::mem::take(&mut self.live.lock().await.alerts)
    }

    /// Signs a transaction, writes it to the disk, and sends it; returns its nonce. From then on it is sent until it is
    /// mined, by [`wait`](Self::wait) and [`tick`](Self::tick), of this process or the next. A transaction that no node takes now
    /// is no error.
    ///
    /// # Errors
    /// [`Error::Unpayable`] or [`Error::FeeCeiling`], for instance. Then nothing is signed.
    pub async fn submit(&self, request: Request) -> Result<u64, Error> {
        let mut live = self.live.lock().await;
        if let Some(name) = &request.name {
            if let Some(entry) = Box::pin(self.stands(&mut live, name)).await? {
                return Ok(entry.nonce);
            }
        }
        let open = live.journal.all().filter(|entry| entry.fate == Fate::Open).count();
        if open >= self.sending.open {
            return Err(Error::TooManyOpen(open));
        }
        // Concurrently: each takes a round trip to the node.
        let (gas, head, count, balance) =
            tokio::join!(self.gas(&request), self.endpoints.recent_head(), self.count(), self.balance());
        let (gas, head, count) = (gas?, head?, count?);
        let base = base_fee(&head);
        let fee_cap = self.fee_cap(base, 0)?.min(self.payable(balance, request.value, gas, base).await?);
        let count = self.confirmed(count, live.journal.next()).await;
        let nonce = count.max(live.journal.next());
        let Request { to, value, input, name, .. } = request;
        let mut entry = Entry { nonce, name, to, value, input, gas, signed: Vec::new(), fate: Fate::Open };
        entry.signed.push(self.sign(&entry, fee_cap).await?);
        live.journal.put(entry)?;
        // All before it must be there first. Those that were seen in a block are looked at again by `tick`: nothing waits for that.
        let _ = Box::pin(self.drive(&mut live, count, &head, false)).await;
        if live.journal.is_in_memory() {
            if let Some(trouble) = live.trouble.remove(&nonce) {
                live.journal.forget(nonce);
                return Err(Error::NotTaken(trouble));
            }
        }
        Ok(nonce)
    }

    /// A transaction's gas limit: the request's, or an estimate and the reserve. The estimate is a node's word, and may be anything.
    async fn gas(&self, request: &Request) -> Result<u64, Error> {
        match request.gas {
            Some(gas) => Ok(gas),
            None => {
                let gas = if self.above.load(Ordering::Relaxed) == 0 {
                    self.endpoints.gas(self.address(), request).await?
                } else {
                    self.endpoints.gas_of_any(self.address(), request).await?
                };
                let gas = u128::from(gas);
                Ok((gas * u128::from(100 + self.sending.gas_percent) / 100).try_into().unwrap_or(u64::MAX))
            }
        }
    }

    /// A transaction's fee cap; above `before` by enough that nodes accept it as a replacement.
    fn fee_cap(&self, base: u128, before: u128) -> Result<u128, Error> {
        let wanted = (base * u128::from(self.sending.fee_percent) / 100).max(before + before / 8 + 1);
        match self.ceiling() {
            Some(ceiling) if base > ceiling => Err(Error::FeeCeiling { base, ceiling }),
            Some(ceiling) => Ok(wanted.min(ceiling)),
            None => Ok(wanted),
        }
    }

    fn ceiling(&self) -> Option<u128> {
        self.sending.fee_ceiling.filter(|_| self.above.load(Ordering::Relaxed) == 0)
    }

    /// The account's balance. One that no node tells limits nothing: nodes refuse what it does not pay.
    async fn balance(&self) -> U256 {
        self.endpoints.balance(self.address()).await.unwrap_or(U256::MAX)
    }

    /// The highest fee cap that a balance pays. Of several nodes, another is asked before the account counts as too poor.
    async fn payable(&self, balance: U256, value: U256, gas: u64, base: u128) -> Result<u128, Error> {
        match payable(balance, value, gas, base) {
            Err(_) if self.endpoints.well().len() > 1 => {
                let account = json!([self.address(), "latest"]);
                let other = self.endpoints.ask_from::<U256>(1, "eth_getBalance", account).await;
                payable(other.map_or(balance, |other| other.max(balance)), value, gas, base)
            }
            paid => paid,
        }
    }

    async fn count(&self) -> Result<u64, Error> {
        self.endpoints.count(self.address()).await
    }

    /// A count of the account's transactions that is above the `known` one, as [`Sender::counted`] confirms it: a transaction signed for a
    /// number too high is never mined.
    async fn confirmed(&self, count: u64, known: u64) -> u64 {
        if count <= known {
            return count;
        }
        self.counted().await.unwrap_or(count)
    }

    /// The account's transactions as most nodes count them, or of two the lower; none if there is one node, or none answers.
    async fn counted(&self) -> Option<u64> {
        let well = self.endpoints.well();
        if well.len() < 2 {
            return None;
        }
        let account = json!([self.address(), "latest"]);
        let asked = well.into_iter().map(|node| self.endpoints.ask_one::<U64>(node, "eth_getTransactionCount", &account));
        let mut counts: Vec<u64> = join_all(asked).await.into_iter().flatten().flatten().map(|its| its.to()).collect();
        counts.sort_unstable();
        counts.get(counts.len().saturating_sub(1) / 2).copied()
    }

    /// Fills numbers that nothing uses before the first open transaction, once they have stood so for long: a node told of too many, or
    /// what used them was undone.
    async fn close_gap(&self, live: &mut Live, count: u64, head: &Head) -> Result<(), Error> {
        let first = live.journal.all().find(|entry| entry.fate == Fate::Open).map_or(0, |entry| entry.nonce);
        let unused: Vec<u64> = (count..first).filter(|nonce| live.journal.get(*nonce).is_none()).take(GAP + 1).collect();
        let Some(from) = unused.first().copied().filter(|_| !live.journal.is_in_memory()) else {
            live.gap = None;
            return Ok(());
        };
        if live.gap.as_ref().is_none_or(|gap| gap.from != from) {
            live.gap = Some(Gap { from, since: Instant::now(), told: false });
        }
        let Some(gap) = &mut live.gap else { return Ok(()) };
        if gap.told || gap.since.elapsed() < self.sending.missing {
            return Ok(());
        }
        let of = format!("transaction {first} of {:#x} waits for numbers from {from} on, which nothing uses", self.address());
        if unused.len() > GAP {
            gap.told = true;
            live.alerts.push(format!("{of}, and which are too many to fill: it is never mined"));
            return Ok(());
        }
        let filled = unused.len();
        self.fill(live, unused, head).await?;
        live.gap = None;
        live.alerts.push(format!("{of}: {filled} are filled with transfers of nothing"));
        Ok(())
    }

    async fn sign(&self, entry: &Entry, fee_cap: u128) -> Result<Signed, Error> {
        let transaction = TxEip1559 {
            chain_id: self.chain,
            nonce: entry.nonce,
            gas_limit: entry.gas,
            max_fee_per_gas: fee_cap,
            max_priority_fee_per_gas: 0,
            to: entry.to,
            value: entry.value,
            input: entry.input.clone(),
            ..Default::default()
        };
        let envelope = self.wallet.sign(transaction).await?;
        Ok(Signed { hash: *envelope.tx_hash(), bytes: envelope.encoded_2718().into(), fee_cap })
    }

    /// Updates all open transactions once: notes those mined, sends others again, and signs those anew that pay too little or too much.
    pub async fn tick(&self) -> Result<(), Error> {
        let mut live = self.live.lock().await;
        if live.journal.unfinished().is_empty() {
            return Ok(());
        }
        let (count, head) = tokio::join!(self.count(), self.endpoints.recent_head());
        let (count, head) = (count?, head?);
        let count = self.confirmed(count, live.journal.next()).await;
        let closed = Box::pin(self.close_gap(&mut live, count, &head)).await;
        Box::pin(self.drive(&mut live, count, &head, true)).await?;
        closed
    }

    /// Whether a transaction sent a moment ago is mined, by one request; otherwise does as [`Sender::tick`], and returns nothing.
    async fn look(&self, nonce: u64) -> Result<Option<TransactionReceipt>, Error> {
        let hash = {
            let live = self.live.lock().await;
            let fresh = live.sent.get(&nonce).is_some_and(|(at, _)| at.elapsed() < self.sending.resend_every);
            live.journal.get(nonce).filter(|entry| fresh && entry.fate == Fate::Open).map(|entry| entry.latest().hash)
        };
        let Some(hash) = hash else { return self.tick().await.map(|()| None) };
        let Some(receipt) = self.receipt(hash).await?.filter(|receipt| receipt.block_hash.is_some()) else { return Ok(None) };
        self.note(nonce, hash, &receipt).await?;
        Ok(Some(receipt))
    }

    /// Notes a transaction's receipt, unless its state is final: another task may have noted that meanwhile.
    async fn note(&self, nonce: u64, hash: B256, receipt: &TransactionReceipt) -> Result<(), Error> {
        let mut live = self.live.lock().await;
        if let Some(mut entry) = live.journal.get(nonce).cloned().filter(|entry| !entry.is_over()) {
            let head = receipt.block_number.unwrap_or_default();
            Self::mined(&mut live, &mut entry, hash, receipt, head, self.sending.settled)?;
        }
        Ok(())
    }

    /// Notes that a transaction is in a block, if it is; returns whether it is.
    fn mined(
        live: &mut Live,
        entry: &mut Entry,
        hash: B256,
        receipt: &TransactionReceipt,
        head: u64,
        settled: u64,
    ) -> Result<bool, Error> {
        let (Some(block), Some(block_hash)) = (receipt.block_number, receipt.block_hash) else { return Ok(false) };
        live.sent.remove(&entry.nonce);
        live.missing.remove(&entry.nonce);
        live.trouble.remove(&entry.nonce);
        let settled = head >= block.saturating_add(settled);
        let fate = Fate::Mined { hash, block, block_hash, succeeded: receipt.status(), settled };
        if entry.fate != fate {
            entry.fate = fate;
            live.journal.put(entry.clone())?;
        }
        Ok(true)
    }

    /// As `tick`, given the account's next nonce and the newest block, which the caller has asked for. Transactions that were seen in a
    /// block are settled only if `again`.
    async fn drive(&self, live: &mut Live, count: u64, head: &Head, again: bool) -> Result<(), Error> {
        for nonce in live.journal.due(count) {
            let mut entry = live.journal.get(nonce).cloned().ok_or(Error::UnknownTransaction(nonce))?;
            // Settled, and undone by a deeper reorganisation: those behind it could not be mined. Or the node that counts is behind.
            if entry.is_over() && !matches!(self.anywhere(&entry).await, Ok(None)) {
                continue;
            }
            if nonce < count {
                let is_due = match entry.fate {
                    // A block that is undone gives the nonce back, or is noticed now, when the transaction is to be settled.
                    Fate::Mined { block, .. } => again && head.number >= block + self.sending.settled,
                    _ => true,
                };
                if is_due {
                    self.find(live, &mut entry, head.number).await?;
                }
            } else if self.send(live, &mut entry, base_fee(head)).await? {
                // Nodes would refuse those behind it.
                break;
            }
        }
        Ok(())
    }

    /// The nonce is used: by one of ours, or by another transaction.
    async fn find(&self, live: &mut Live, entry: &mut Entry, head: u64) -> Result<(), Error> {
        for signed in entry.signed.iter().rev() {
            let Some(receipt) = self.receipt(signed.hash).await? else { continue };
            let hash = signed.hash;
            let mut found = entry.clone();
            if Self::mined(live, &mut found, hash, &receipt, head, self.sending.settled)? {
                *entry = found;
                return Ok(());
            }
        }
        let (misses, since) = live.missing.entry(entry.nonce).or_insert_with(|| (0, Instant::now()));
        *misses += 1;
        let is_long = since.elapsed() >= self.sending.missing;
        let known = if *misses >= MISSES { self.anywhere(entry).await.ok() } else { None };
        // One node may count too many.
        let is_displaced = matches!(known, Some(None)) && is_long && self.counted().await.is_none_or(|count| count > entry.nonce);
        match known {
            Some(Some((hash, receipt))) => drop(Self::mined(live, entry, hash, &receipt, head, self.sending.settled)?),
            Some(None) if is_displaced => {
                live.sent.remove(&entry.nonce);
                live.missing.remove(&entry.nonce);
                live.trouble.remove(&entry.nonce);
                entry.fate = Fate::Displaced;
                live.journal.put(entry.clone())?;
            }
            _ => {
                live.trouble.insert(entry.nonce, "its number is used, and no node shows its receipt".into());
            }
        }
        Ok(())
    }

    /// The receipt of one of a transaction's versions on any node; none if no node has one.
    ///
    /// # Errors
    /// A node's failure, if no other has one: nothing is known then.
    async fn anywhere(&self, entry: &Entry) -> Result<Option<(B256, TransactionReceipt)>, Error> {
        let mut failure = None;
        for node in self.endpoints.well() {
            for signed in &entry.signed {
                let hash = json!([signed.hash]);
                match self.endpoints.ask_one::<Option<TransactionReceipt>>(node, "eth_getTransactionReceipt", &hash).await {
                    Ok(Ok(Some(receipt))) if receipt.block_hash.is_some() => return Ok(Some((signed.hash, receipt))),
                    Ok(Ok(None)) => {}
                    Ok(Err(complaint)) => failure = Some(Error::Node(complaint)),
                    _ => failure = Some(Error::Unreachable(self.endpoints.reasons())),
                }
            }
        }
        failure.map_or(Ok(None), Err)
    }

    /// The latest transaction under a name, unless it came to nothing. One that counts as displaced is looked for once more: else its
    /// action would happen twice if nodes only had its receipt late.
    async fn stands(&self, live: &mut Live, name: &str) -> Result<Option<Entry>, Error> {
        let Some(mut entry) = live.journal.named(name).cloned() else { return Ok(None) };
        if entry.fate == Fate::Displaced {
            if let Some((hash, receipt)) = self.anywhere(&entry).await? {
                let head = receipt.block_number.unwrap_or_default();
                Self::mined(live, &mut entry, hash, &receipt, head, self.sending.settled)?;
            }
        }
        Ok(Some(entry).filter(|entry| !entry.is_void()))
    }

    /// The nonce is free: sends, and signs anew what pays less than the base fee or more than nodes take. Returns whether no node took it.
    async fn send(&self, live: &mut Live, entry: &mut Entry, base: u128) -> Result<bool, Error> {
        live.missing.remove(&entry.nonce);
        if entry.fate != Fate::Open {
            // A reorganisation has undone it.
            entry.fate = Fate::Open;
            live.journal.put(entry.clone())?;
            live.sent.remove(&entry.nonce);
        }
        if entry.latest().fee_cap < base {
            let renewed = match self.raised(entry, base).await {
                Ok(fee_cap) => self.renew(live, entry, (entry.gas, fee_cap), base, VERSIONS).await,
                Err(error) => Err(error),
            };
            let trouble = match renewed {
                Ok(true) => None,
                Ok(false) => Some(format!("it is signed {VERSIONS} times, each for less than the base fee of {base} wei")),
                Err(error @ Error::File { .. }) => return Err(error),
                Err(error) => Some(error.to_string()),
            };
            if let Some(trouble) = trouble {
                live.trouble.insert(entry.nonce, trouble);
                return Ok(true);
            }
        }
        if live.sent.get(&entry.nonce).is_some_and(|(at, _)| at.elapsed() < self.sending.resend_every) {
            return Ok(false);
        }
        let mut renewed = false;
        let seen = loop {
            let seen = self.seen();
            // A node that takes transactions and drops them must not always be the first to be asked.
            let answer =
                self.endpoints.ask_from::<B256>(live.attempts, "eth_sendRawTransaction", json!([entry.latest().bytes])).await;
            live.attempts = live.attempts.wrapping_add(1);
            let error = match answer {
                Ok(_) => break seen,
                Err(Error::Node(complaint)) if is_known(&complaint.message) => break seen,
                Err(error) => error,
            };
            let mut trouble = error.to_string();
            if !renewed && matches!(&error, Error::Node(complaint) if is_of_price_or_gas(&complaint.message)) {
                let other = match self.terms(entry, base).await {
                    Ok(terms) => self.renew(live, entry, terms, base, VERSIONS - FOR_RISES).await,
                    Err(error) => Err(error),
                };
                match other {
                    Ok(other) => renewed = other,
                    Err(error @ Error::File { .. }) => return Err(error),
                    Err(error) => trouble = error.to_string(),
                }
                if renewed {
                    continue;
                }
            }
            live.trouble.insert(entry.nonce, trouble);
            return Ok(true);
        };
        live.trouble.remove(&entry.nonce);
        live.sent.insert(entry.nonce, (Instant::now(), seen));
        Ok(false)
    }

    /// A fee cap for a base fee above the present one.
    async fn raised(&self, entry: &Entry, base: u128) -> Result<u128, Error> {
        let fee_cap = self.fee_cap(base, entry.latest().fee_cap)?;
        Ok(fee_cap.min(self.payable(self.balance().await, entry.value, entry.gas, base).await?))
    }

    /// The gas and the fee cap with which a transaction would be signed now.
    async fn terms(&self, entry: &Entry, base: u128) -> Result<(u64, u128), Error> {
        let Entry { to, value, input, .. } = entry.clone();
        let request = Request { to, value, input, ..Request::default() };
        let (gas, balance) = tokio::join!(self.gas(&request), self.balance());
        let gas = match gas {
            // Its nonce must be used all the same.
            Err(Error::Refused(_)) => entry.gas.min(BLOCK_GAS),
            gas => gas?,
        };
        Ok((gas, self.fee_cap(base, 0)?.min(self.payable(balance, entry.value, gas, base).await?)))
    }

    /// Makes the version with this gas and fee cap the one that is sent, signing it if there is none. Once there are `most`, takes the one
    /// that was not sent for longest and covers the base fee. Returns whether it is another one than before.
    async fn renew(
        &self,
        live: &mut Live,
        entry: &mut Entry,
        (gas, fee_cap): (u64, u128),
        base: u128,
        most: usize,
    ) -> Result<bool, Error> {
        let last = entry.signed.len() - 1;
        let equal = |signed: &Signed| signed.fee_cap == fee_cap && signed.gas() == Some(gas);
        let covers = |signed: &Signed| (base..=self.ceiling().unwrap_or(u128::MAX)).contains(&signed.fee_cap);
        let found = match entry.signed.iter().position(equal) {
            None if last + 1 >= most => Some(entry.signed[..last].iter().position(covers).unwrap_or(last)),
            found => found,
        };
        let mut other = entry.clone();
        if let Some(at) = found {
            if at == last {
                return Ok(false);
            }
            let signed = other.signed.remove(at);
            other.gas = signed.gas().unwrap_or(gas);
            other.signed.push(signed);
        } else {
            other.gas = gas;
            other.signed.push(self.sign(&other, fee_cap).await?);
        }
        live.journal.put(other.clone())?;
        *entry = other;
        live.sent.remove(&entry.nonce);
        Ok(true)
    }

    async fn receipt(&self, hash: B256) -> Result<Option<TransactionReceipt>, Error> {
        self.endpoints.ask("eth_getTransactionReceipt", json!([hash])).await
    }

    /// Waits until a transaction is mined, and returns its receipt, whether it succeeded or reverted.
    ///
    /// # Errors
    /// [`Error::NotMined`] after the patience: the transaction stays open. [`Error::Displaced`] if it never will be mined.
    pub async fn wait(&self, nonce: u64) -> Result<TransactionReceipt, Error> {
        let (begun, seen) = (Instant::now(), self.seen());
        if self.endpoints.pulse().is_live() && self.was_sent_after(nonce, seen).await {
            self.rest(seen).await;
        }
        loop {
            let seen = self.seen();
            // Unreachable nodes are waited for like blocks.
            let driven = match self.look(nonce).await {
                Ok(Some(receipt)) => return Ok(receipt),
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            let (fate, trouble) = {
                let live = self.live.lock().await;
                let entry = live.journal.get(nonce).ok_or(Error::UnknownTransaction(nonce))?;
                (entry.fate.clone(), live.trouble_of(nonce))
            };
            match fate {
                Fate::Displaced => return Err(Error::Displaced { nonce }),
                Fate::Mined { hash, .. } => {
                    if let Ok(Some(receipt)) = self.receipt(hash).await {
                        // Another block may have it since, and undo it there.
                        self.note(nonce, hash, &receipt).await?;
                        return Ok(receipt);
                    }
                }
                Fate::Open => {}
            }
            if begun.elapsed() >= self.sending.patience {
                let trouble = trouble.or_else(|| driven.err().map(|error| error.to_string()));
                return Err(Error::NotMined { nonce, trouble });
            }
            self.rest(seen).await;
        }
    }

    /// The newest block that anybody has seen.
    fn seen(&self) -> u64 {
        self.endpoints.pulse().head().map_or(0, |head| head.number)
    }

    /// Whether a transaction was sent a moment ago, after this block was seen: then the block does not have it.
    async fn was_sent_after(&self, nonce: u64, seen: u64) -> bool {
        let live = self.live.lock().await;
        live.sent.get(&nonce).is_some_and(|(at, before)| *before == seen && at.elapsed() < self.sending.resend_every)
    }

    /// Waits for the next reason to look: a block after this one, where connections announce them; else about half a block's
    /// time, at most the configured one.
    async fn rest(&self, seen: u64) {
        let pulse = self.endpoints.pulse();
        if pulse.is_live() {
            let _ = tokio::time::timeout(self.sending.resend_every, pulse.reached(seen + 1)).await;
        } else {
            tokio::time::sleep(self.sending.look_every.min(pulse.block_time() / 2)).await;
        }
    }

    /// Waits as [`Sender::wait`] does, and returns the receipt of a success.
    ///
    /// # Errors
    /// [`Error::Undone`] if it was mined and reverted; [`Error::NotMined`] if neither is known yet.
    pub async fn finish(&self, nonce: u64) -> Result<TransactionReceipt, Error> {
        let receipt = self.wait(nonce).await?;
        if receipt.status() {
            return Ok(receipt);
        }
        let hash = receipt.transaction_hash;
        let entry = self.entry(nonce).await.ok_or(Error::UnknownTransaction(nonce))?;
        let gas = entry.signed.iter().find(|signed| signed.hash == hash).and_then(Signed::gas).unwrap_or(entry.gas);
        let Entry { to, value, input, .. } = entry;
        // State after the block, not at the transaction, but nodes offer nothing closer.
        let block = receipt.block_number.map_or("latest".into(), |block| format!("{block:#x}"));
        let request = Request { to, value, input, ..Request::default() };
        let refusal = match self.endpoints.call_in(&block, self.address(), &request).await {
            Err(Error::Refused(refusal)) => refusal,
            _ => Box::new(Refusal::Other(Bytes::new())),
        };
        Err(Error::Undone { hash, exhausted: receipt.gas_used >= gas, refusal })
    }

    /// A transaction of the journal by its number.
    pub async fn entry(&self, nonce: u64) -> Option<Entry> {
        self.live.lock().await.journal.get(nonce).cloned()
    }

    /// The latest transaction of the journal under a name.
    pub async fn named(&self, name: &str) -> Option<Entry> {
        self.live.lock().await.journal.named(name).cloned()
    }

    /// The latest transaction of the journal under a name, unless it came to nothing: [`Sender::submit`] would return it. Nodes are asked
    /// once more for one that counts as displaced.
    ///
    /// # Errors
    /// The nodes' failure: whether it came to nothing is not known then.
    pub async fn standing(&self, name: &str) -> Result<Option<Entry>, Error> {
        self.stands(&mut *self.live.lock().await, name).await
    }

    /// Releases a name once the caller knows the result of its transaction: the next request under it is another.
    ///
    /// # Errors
    /// [`Error::File`] if that cannot be written.
    pub async fn free(&self, name: &str) -> Result<(), Error> {
        let mut live = self.live.lock().await;
        while let Some(entry) = live.journal.named(name).cloned() {
            live.journal.put(Entry { name: None, ..entry })?;
        }
        Ok(())
    }

    /// All unfinished transactions of the journal, in order.
    pub async fn unfinished(&self) -> Vec<Entry> {
        let live = self.live.lock().await;
        live.journal.unfinished().into_iter().filter_map(|nonce| live.journal.get(nonce).cloned()).collect()
    }
}

fn base_fee(head: &Head) -> u128 {
    head.base_fee_per_gas.unwrap_or_default().into()
}

/// The highest fee cap that a balance pays, if it pays the base fee.
fn payable(balance: U256, value: U256, gas: u64, base: u128) -> Result<u128, Error> {
    let most = balance.saturating_sub(value) / U256::from(gas.max(1));
    if most < U256::from(base) {
        return Err(Error::Unpayable { balance, value, gas, base });
    }
    Ok(most.saturating_to())
}

/// Whether a node's complaint is that the transaction pays more than its account has, or takes more gas, or less, than there may be.
fn is_of_price_or_gas(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    [
        "insufficient funds",
        "insufficientfunds",
        "upfront cost exceeds",
        "exceeds the configured cap",
        "exceeds block gas limit",
        "exceeds transaction gas limit",
        "gas limit too high",
        "gas limit is too high",
        "intrinsic gas too low",
    ]
    .iter()
    .any(|sign| message.contains(sign))
}

/// Whether a node's complaint means that it has the transaction, or had it.
fn is_known(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["already known", "known transaction", "already imported", "nonce too low", "already exists"]
        .iter()
        .any(|sign| message.contains(sign))
}
