//! Several nodes as one: uses those that answer, keep up, and agree with the others.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use alloy::primitives::{Address, Bytes, B256, U256, U64};
use alloy::providers::RootProvider;
use alloy::rpc::client::RpcClient;
use alloy::rpc::json_rpc::{RequestPacket, ResponsePacket};
use alloy::transports::{TransportError, TransportErrorKind};
use futures_util::future::join_all;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue, Value};
use url::Url;

use crate::error::Complaint;
use crate::http::{self, redacted, Fault, Poster};
use crate::pulse::{self, Head, Pulse};
use crate::request::Request;
use crate::Error;

/// How long a question waits for a comparison of nodes that know their chain.
const PATIENCE: Duration = Duration::from_secs(1);

/// How nodes are asked and judged.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The expected chain; without it, the chain of most of the nodes.
    pub chain: Option<u64>,
    /// How long a request may take.
    pub timeout: Duration,
    /// The longest answer that is read, in bytes.
    pub longest: usize,
    /// How often nodes are compared with each other.
    pub compare_every: Duration,
    /// A node more than two blocks and this much time behind the others is not asked.
    pub behind: Duration,
    /// All nodes must have the same block at this depth below the lowest head.
    pub settled: u64,
    /// How long the first node alone is believed about a contract's function after nodes agreed on it; then answers are compared again.
    pub agreed: Duration,
    /// How long a node that failed is not asked, doubled with each failure in a row up to 64 times.
    pub rest: Duration,
    /// How long a node that contradicted the others, or is of another chain, is not asked.
    pub banned: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            chain: None,
            timeout: Duration::from_secs(15),
            longest: 16 << 20,
            compare_every: Duration::from_secs(30),
            behind: Duration::from_secs(15),
            settled: 16,
            agreed: Duration::from_secs(30),
            rest: Duration::from_secs(1),
            banned: Duration::from_mins(10),
        }
    }
}

/// A node's state.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Its scheme and host.
    pub node: String,
    /// The fault for which it is not asked; `None` if it is.
    pub fault: Option<Fault>,
    /// Its newest block when the nodes were compared last.
    pub head: Option<u64>,
}

#[derive(Default)]
struct State {
    resting: Option<Instant>,
    fault: Option<Fault>,
    failures: u32,
    head: Option<u64>,
}

struct Node {
    url: Url,
    state: Mutex<State>,
}

impl Node {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Inner {
    nodes: Vec<Node>,
    settings: Settings,
    poster: Poster,
    compared: tokio::sync::Mutex<Option<Instant>>,
    chain: Mutex<Option<u64>>,
    pulse: Pulse,
    /// When nodes last agreed about a contract's function.
    agreed: Mutex<HashMap<(Address, [u8; 4]), Instant>>,
}

/// The return value of a call on a node, or its revert.
type Returned = Result<Bytes, Complaint>;

/// Whether two nodes agree. For reverts only the data count, not the wording.
fn alike(one: &Returned, other: &Returned) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => one == other,
        (Err(one), Err(other)) => one.undone() == other.undone(),
        _ => false,
    }
}

/// The nodes that are asked, the first that is well before the others: list the most trusted first.
///
/// It is a transport for alloy, too ([`Endpoints::provider`]).
#[derive(Clone)]
pub struct Endpoints(Arc<Inner>);

impl Endpoints {
    /// Reads the URLs; asks nobody yet.
    pub fn new<S: AsRef<str>>(urls: &[S], settings: Settings) -> Result<Self, Error> {
        let nodes = urls
            .iter()
            .map(|text| http::parse(text.as_ref(), &["http", "https"]).map(|url| Node { url, state: Mutex::default() }));
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        if nodes.is_empty() {
            return Err(Error::Url("there is none".into()));
        }
        let poster = Poster::new(settings.timeout, settings.longest)?;
        let chain = Mutex::new(settings.chain);
        Ok(Self(Arc::new(Inner {
            nodes,
            settings,
            poster,
            compared: tokio::sync::Mutex::default(),
            chain,
            pulse: Pulse::default(),
            agreed: Mutex::default(),
        })))
    }

    /// How each node stands, in the order in which they were given.
    pub fn standing(&self) -> Vec<Standing> {
        let now = Instant::now();
        let standing = self.0.nodes.iter().map(|node| {
            let state = node.state();
            let fault = state.resting.filter(|until| *until > now).and(state.fault.clone());
            Standing { node: redacted(&node.url), fault, head: state.head }
        });
        standing.collect()
    }

    /// Its chain, once somebody has been asked.
    pub async fn chain(&self) -> Result<u64, Error> {
        self.compare_if_due().await?;
        self.known_chain().ok_or_else(|| Error::Unreachable(self.reasons()))
    }

    fn known_chain(&self) -> Option<u64> {
        *self.0.chain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The hash of the chain's first block, which tells it from another of the same number: a development chain that begins anew has
    /// another. None where nodes do not keep it.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if no node answers.
    pub async fn genesis(&self) -> Result<Option<B256>, Error> {
        match self.ask::<Option<Head>>("eth_getBlockByNumber", json!(["0x0", false])).await {
            Ok(block) => Ok(block.map(|block| block.hash)),
            Err(Error::Node(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Asks the first healthy node, and the next one if it fails, or complains of something other than a revert.
    pub async fn ask<R: DeserializeOwned>(&self, method: &str, params: impl Serialize) -> Result<R, Error> {
        let params = serde_json::to_value(params).expect("parameters are JSON");
        if self.begins() {
            let (compared, answer) = tokio::join!(self.compare_if_due(), self.ask_one(0, method, &params));
            compared?;
            if let Ok(answer) = answer {
                return answer.map_err(Error::Node);
            }
        }
        self.ask_from(0, method, params).await
    }

    /// As `ask`, but begins with another of the healthy nodes.
    pub(crate) async fn ask_from<R: DeserializeOwned>(
        &self,
        first: usize,
        method: &str,
        params: impl Serialize,
    ) -> Result<R, Error> {
        let params = serde_json::to_value(params).expect("parameters are JSON");
        self.compare_if_due().await?;
        let mut well = self.well();
        let turn = first % well.len().max(1);
        well.rotate_left(turn);
        let mut refused = None;
        for node in well {
            match self.ask_one(node, method, &params).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(complaint)) if complaint.undone().is_some() => return Err(Error::Node(complaint)),
                // Its wording does not show whether the node refuses this question or every one.
                Ok(Err(complaint)) => {
                    refused.get_or_insert(complaint);
                }
                Err(_) => {}
            }
        }
        Err(refused.map_or_else(|| Error::Unreachable(self.reasons()), Error::Node))
    }

    /// Asks one particular node. Faults of the node are noted against it.
    pub(crate) async fn ask_one<R: DeserializeOwned>(
        &self,
        node: usize,
        method: &str,
        params: &Value,
    ) -> Result<Result<R, Complaint>, Fault> {
        let answer = self.try_one(node, method, params).await;
        match &answer {
            Err(fault) => self.note(node, Some(fault)),
            // A node may answer every question so: that is nothing in its favour.
            Ok(Err(complaint)) if complaint.undone().is_none() => {}
            Ok(_) => self.note(node, None),
        }
        answer
    }

    async fn try_one<R: DeserializeOwned>(
        &self,
        node: usize,
        method: &str,
        params: &Value,
    ) -> Result<Result<R, Complaint>, Fault> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let text = self.0.poster.post(&self.0.nodes[node].url, body.into()).await?;
        let malformed = |error: serde_json::Error| Fault::Malformed(error.to_string());
        #[derive(Deserialize)]
        struct Answer<'a> {
            #[serde(borrow)]
            result: Option<&'a RawValue>,
            error: Option<Complaint>,
        }
        let answer: Answer = serde_json::from_slice(&text).map_err(malformed)?;
        match answer.error {
            Some(complaint) if elsewhere(&complaint) => Err(Fault::Unable(complaint.message)),
            Some(complaint) => Ok(Err(complaint)),
            // `null` is an answer too: nothing of the kind is known.
            None => serde_json::from_str(answer.result.map_or("null", RawValue::get)).map(Ok).map_err(malformed),
        }
    }

    /// Notes against a node, or in its favour.
    pub(crate) fn note(&self, node: usize, fault: Option<&Fault>) {
        let settings = &self.0.settings;
        let mut state = self.0.nodes[node].state();
        let Some(fault) = fault else {
            // A fault found by comparison stands until the next comparison.
            if !matches!(state.fault, Some(Fault::Behind(_) | Fault::Contradicts(_) | Fault::OtherChain(_))) {
                *state = State { head: state.head, ..State::default() };
            }
            return;
        };
        let rest = match fault {
            Fault::Contradicts(_) | Fault::OtherChain(_) => settings.banned,
            // The next comparison decides whether the fault persists.
            Fault::Behind(_) => settings.compare_every + settings.timeout,
            _ => settings.rest * (1 << state.failures.min(6)),
        };
        state.failures = state.failures.saturating_add(1);
        state.resting = Some(Instant::now() + rest);
        state.fault = Some(fault.clone());
    }

    /// The nodes to ask, in order. If none is healthy, those that only failed: they may have recovered.
    pub(crate) fn well(&self) -> Vec<usize> {
        let now = Instant::now();
        let (mut well, mut failed) = (Vec::new(), Vec::new());
        for (at, node) in self.0.nodes.iter().enumerate() {
            let state = node.state();
            match &state.fault {
                Some(fault) if state.resting.is_some_and(|until| until > now) => {
                    if !matches!(fault, Fault::Contradicts(_) | Fault::OtherChain(_)) {
                        failed.push(at);
                    }
                }
                _ => well.push(at),
            }
        }
        if well.is_empty() {
            failed
        } else {
            well
        }
    }

    /// Waits until the first of those nodes has rested that could not answer for the number of requests or the like; false, if there is none.
    pub(crate) async fn spared(&self) -> bool {
        let rests = self.0.nodes.iter().filter_map(|node| {
            let state = node.state();
            let busy = matches!(state.fault, Some(Fault::Http(429) | Fault::Unable(_)));
            state.resting.filter(|_| busy)
        });
        let Some(until) = rests.min() else { return false };
        tokio::time::sleep_until(until.into()).await;
        true
    }

    /// The last fault of each node, also if its rest has ended meanwhile: the others may have been waited for.
    pub(crate) fn reasons(&self) -> String {
        let reasons = self.0.nodes.iter().map(|node| match &node.state().fault {
            Some(fault) => format!("{}: {fault}", redacted(&node.url)),
            None => redacted(&node.url),
        });
        reasons.collect::<Vec<_>>().join("; ")
    }

    /// Whether a single node was not asked for its chain yet. The first question then goes with that one: its answer counts only if the
    /// chain is right.
    fn begins(&self) -> bool {
        self.is_single() && self.0.compared.try_lock().is_ok_and(|last| last.is_none())
    }

    /// The first comparison is waited for. Callers wait for a later one only shortly: a node that does not answer must not keep questions
    /// to the others.
    async fn compare_if_due(&self) -> Result<(), Error> {
        match self.0.compared.try_lock() {
            Ok(last) if !self.is_due(*last) => return Ok(()),
            Err(_) if self.known_chain().is_some() => return Ok(()),
            _ => {}
        }
        if self.known_chain().is_none() {
            return self.compare_once().await;
        }
        let own = self.clone();
        let comparing = tokio::spawn(async move { own.compare_once().await });
        match tokio::time::timeout(PATIENCE, comparing).await {
            Ok(compared) => compared.unwrap_or(Ok(())),
            Err(_) => Ok(()),
        }
    }

    fn is_due(&self, last: Option<Instant>) -> bool {
        last.is_none_or(|last| last.elapsed() >= self.0.settings.compare_every)
    }

    /// Compares, unless others just did.
    async fn compare_once(&self) -> Result<(), Error> {
        let mut last = self.0.compared.lock().await;
        if self.is_due(*last) {
            self.compare().await?;
            *last = Some(Instant::now());
        }
        Ok(())
    }

    /// Compares the nodes: their chain, their height, and a block that all have. Also runs by itself from time to time.
    pub async fn compare(&self) -> Result<(), Error> {
        let all: Vec<usize> = (0..self.0.nodes.len()).collect();
        let chains = join_all(all.iter().map(|&node| self.number(node, "eth_chainId"))).await;
        let answered: Vec<_> = chains.into_iter().flatten().collect();
        if answered.is_empty() {
            return Err(Error::Unreachable(self.reasons()));
        }
        let chain = self.known_chain().unwrap_or_else(|| majority(&answered));
        let mut right = Vec::new();
        for &(node, its) in &answered {
            if its == chain {
                right.push(node);
            } else {
                self.note(node, Some(&Fault::OtherChain(its)));
            }
        }
        if right.is_empty() {
            return Err(Error::WrongChain { expected: chain, found: majority(&answered) });
        }
        *self.0.chain.lock().unwrap_or_else(PoisonError::into_inner) = Some(chain);
        self.pardon(&right);
        // Alone, a node can neither be behind nor contradict.
        if self.is_single() {
            return Ok(());
        }
        let heads: Vec<(usize, Head)> =
            join_all(right.iter().map(|&node| self.block(node, "latest"))).await.into_iter().flatten().collect();
        let mut order: Vec<Head> = heads.iter().map(|(_, head)| *head).collect();
        order.sort_by_key(|head| std::cmp::Reverse(head.number));
        // With three or more, one that runs ahead does not make the others late.
        let Some(reference) = order.get((order.len().saturating_sub(1)) / 2).copied() else {
            return Err(Error::Unreachable(self.reasons()));
        };
        let late = |head: &Head| {
            reference.number > head.number + 2
                && reference.timestamp.saturating_sub(head.timestamp) > self.0.settings.behind.as_secs()
        };
        let (behind, up): (Vec<_>, Vec<_>) = heads.into_iter().partition(|(_, head)| late(head));
        for (node, head) in behind {
            self.0.nodes[node].state().head = Some(head.number);
            self.note(node, Some(&Fault::Behind(reference.number - head.number)));
        }
        let common = up.iter().map(|(_, head)| head.number).min().unwrap_or_default().saturating_sub(self.0.settings.settled);
        let blocks: Vec<(usize, Head)> =
            join_all(up.iter().map(|(node, _)| self.block(*node, format!("{common:#x}")))).await.into_iter().flatten().collect();
        let votes: Vec<_> = blocks.iter().map(|(node, block)| (*node, block.hash)).collect();
        if votes.is_empty() {
            return Err(Error::Unreachable(self.reasons()));
        }
        let agreed = majority(&votes);
        for (node, hash) in votes {
            if hash != agreed {
                self.note(node, Some(&Fault::Contradicts(format!("block {common}"))));
                continue;
            }
            let mut state = self.0.nodes[node].state();
            let head = up.iter().find(|(other, _)| *other == node).map(|(_, head)| head.number);
            // A ban runs out; being behind ends when it is not.
            if state.resting.is_none_or(|until| until <= Instant::now()) || matches!(state.fault, Some(Fault::Behind(_))) {
                *state = State::default();
            }
            state.head = head;
        }
        Ok(())
    }

    /// Ends the ban of nodes that are of the right chain again, where no other node is well: else nobody would be asked until it runs out.
    fn pardon(&self, right: &[usize]) {
        let now = Instant::now();
        let rests = |state: &State| state.fault.is_some() && state.resting.is_some_and(|until| until > now);
        if !self.0.nodes.iter().all(|node| rests(&node.state())) {
            return;
        }
        for &node in right {
            let mut state = self.0.nodes[node].state();
            if matches!(state.fault, Some(Fault::OtherChain(_))) {
                *state = State { head: state.head, ..State::default() };
            }
        }
    }

    async fn number(&self, node: usize, method: &str) -> Option<(usize, u64)> {
        let answer = self.ask_one::<U64>(node, method, &json!([])).await.ok()?;
        Some((node, self.able(node, answer)?.to()))
    }

    /// The answer to a question that every node can answer; a complaint about it is noted against the node.
    fn able<R>(&self, node: usize, answer: Result<R, Complaint>) -> Option<R> {
        match answer {
            Ok(value) => Some(value),
            Err(complaint) => {
                self.note(node, Some(&Fault::Unable(complaint.message)));
                None
            }
        }
    }

    /// A block of a certain node; none if it has none or does not answer.
    pub(crate) async fn block(&self, node: usize, which: impl Serialize) -> Option<(usize, Head)> {
        let params = json!([which, false]);
        let answer = self.ask_one::<Option<Head>>(node, "eth_getBlockByNumber", &params).await.ok()?;
        let block = if params[0] == "latest" { self.able(node, answer) } else { answer.ok() };
        Some((node, block??))
    }

    /// The newest block.
    pub async fn head(&self) -> Result<Head, Error> {
        let head = self.ask("eth_getBlockByNumber", json!(["latest", false])).await?;
        self.0.pulse.note(&head);
        Ok(head)
    }

    /// The chain's progress, as far as observed.
    pub fn pulse(&self) -> &Pulse {
        &self.0.pulse
    }

    /// Subscribes to new blocks and a contract's events by WebSocket, at these URLs. Without any, tries each node's own address.
    /// Failed connections are retried now and then, and nothing depends on them.
    ///
    /// # Errors
    /// [`Error::Url`] if a URL cannot be read.
    pub fn listen(&self, urls: Option<&[String]>, contract: Address) -> Result<(), Error> {
        match urls {
            Some(urls) => self.0.pulse.listen(urls, contract),
            None => {
                let urls = self.0.nodes.iter().filter_map(|node| pulse::beside(&node.url));
                self.0.pulse.listen_at(urls.collect(), contract)
            }
        }
    }

    /// Whether there is one node only: its announcements are as good as its answers. Of several, one that lies is found out by answers alone.
    pub fn is_single(&self) -> bool {
        self.0.nodes.len() == 1
    }

    /// The newest block as a connection to the only node announced it within the last blocks; otherwise asks for it.
    ///
    /// # Errors
    /// As [`Endpoints::ask`].
    pub async fn recent_head(&self) -> Result<Head, Error> {
        match self.0.pulse.recent().filter(|_| self.is_single()) {
            Some(head) => Ok(head),
            None => self.head().await,
        }
    }

    /// Waits until there is a block of this number: by a connection's announcements, or by asking about once a block.
    pub async fn reach(&self, number: u64) {
        let pulse = &self.0.pulse;
        while pulse.head().is_none_or(|head| head.number < number) {
            let pause = if pulse.is_live() { Duration::from_secs(3) } else { pulse.block_time() };
            if tokio::time::timeout(pause, pulse.reached(number)).await.is_err() {
                // A node that is away is waited for like a block.
                let _ = self.head().await;
            }
        }
    }

    /// An account's balance, in wei.
    pub async fn balance(&self, account: Address) -> Result<U256, Error> {
        self.ask("eth_getBalance", json!([account, "latest"])).await
    }

    /// The code at an address; empty if there is none.
    pub async fn code(&self, address: Address) -> Result<Bytes, Error> {
        self.ask("eth_getCode", json!([address, "latest"])).await
    }

    /// A word of a contract's storage.
    pub async fn word(&self, contract: Address, slot: B256) -> Result<B256, Error> {
        self.ask("eth_getStorageAt", json!([contract, slot, "latest"])).await
    }

    /// The number of an account's mined transactions, which is the nonce of its next.
    pub async fn count(&self, account: Address) -> Result<u64, Error> {
        let count: U64 = self.ask("eth_getTransactionCount", json!([account, "latest"])).await?;
        Ok(count.to())
    }

    /// The return value of a call of any contract; nothing is sent. With `from`, it runs as a transaction sent now would, in the
    /// next block. Without, it reads the newest state.
    ///
    /// # Errors
    /// [`Error::Refused`] if the call reverts, or the nodes' failure.
    pub async fn call(&self, from: Option<Address>, request: &Request) -> Result<Bytes, Error> {
        match from {
            Some(from) => self.call_in("pending", from, request).await,
            None => self.read(request).await,
        }
    }

    /// A contract's answer: from one node, and now and then compared with another. Where they differ, compares the newest block that both
    /// have. If they agree on it, one of them is only behind, and the other is believed. If not, the majority is believed; of two, neither.
    async fn read(&self, request: &Request) -> Result<Bytes, Error> {
        self.compare_if_due().await?;
        let well = self.well();
        let function = request.to.to().copied().zip(request.input.first_chunk::<4>().copied());
        let agreed = || self.0.agreed.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = function.is_none_or(|it| agreed().get(&it).is_some_and(|at| at.elapsed() < self.0.settings.agreed));
        if well.len() < 2 || fresh {
            return self.call_in("latest", Address::ZERO, request).await;
        }
        let newest = join_all(well[..2].iter().map(|&node| self.returned(node, "latest", request))).await;
        let answer = match &newest[..] {
            [Some(one), Some(other)] if alike(one, other) => one.clone(),
            [Some(_), Some(_)] => self.settle(&well, request).await?,
            // The node that did not answer gets the fault.
            _ => return self.call_in("latest", Address::ZERO, request).await,
        };
        agreed().extend(function.map(|function| (function, Instant::now())));
        answer.map_err(|complaint| Error::Node(complaint).refusal_in())
    }

    async fn returned(&self, node: usize, block: &str, request: &Request) -> Option<Returned> {
        let answer: Returned = self.ask_one(node, "eth_call", &json!([request.fields(Address::ZERO), block])).await.ok()?;
        // Any other complaint says nothing of the contract.
        let is_of_contract = answer.as_ref().err().is_none_or(|complaint| complaint.undone().is_some());
        is_of_contract.then_some(answer)
    }

    /// Decides between contradicting answers of nodes.
    async fn settle(&self, well: &[usize], request: &Request) -> Result<Returned, Error> {
        let heads: Vec<_> = join_all(well.iter().map(|&node| self.block(node, "latest"))).await.into_iter().flatten().collect();
        let Some(common) = heads.iter().map(|(_, head)| head.number).min() else {
            return Err(Error::Unreachable(self.reasons()));
        };
        let block = format!("{common:#x}");
        let answers = heads.iter().map(|&(node, head)| {
            let block = &block;
            async move { Some((node, head, self.returned(node, block, request).await?)) }
        });
        let answers: Vec<_> = join_all(answers).await.into_iter().flatten().collect();
        let votes = |answer: &Returned| answers.iter().filter(|(_, _, other)| alike(answer, other)).count();
        let what = || format!("the contract's state at block {common}");
        let right = answers.iter().find(|(_, _, answer)| 2 * votes(answer) > answers.len()).map(|(_, _, answer)| answer);
        let Some(right) = right.filter(|_| answers.len() > 1) else {
            return Err(Error::Disagreement(format!("{}: {}", what(), self.reasons())));
        };
        for (node, _, _) in answers.iter().filter(|(_, _, answer)| !alike(answer, right)) {
            self.note(*node, Some(&Fault::Contradicts(what())));
        }
        let honest = answers.iter().filter(|(_, _, answer)| alike(answer, right));
        let Some((newest, _, _)) = honest.max_by_key(|(_, head, _)| head.number) else { return Ok(right.clone()) };
        Ok(self.returned(*newest, "latest", request).await.unwrap_or_else(|| right.clone()))
    }

    /// As `read`, but on the state after a given block.
    pub(crate) async fn call_in(&self, block: &str, from: Address, request: &Request) -> Result<Bytes, Error> {
        self.ask("eth_call", json!([request.fields(from), block])).await.map_err(Error::refusal_in)
    }

    /// The gas that a transaction of an account would take in the next block, including that of its data on L1.
    /// Estimated on `pending`: on a quiet chain the newest block's time may be before a deadline, and its number makes no draw due.
    ///
    /// # Errors
    /// As [`Endpoints::call`].
    pub async fn gas(&self, from: Address, request: &Request) -> Result<u64, Error> {
        self.gas_from(0, from, request).await
    }

    /// As `gas`, but refused only if all healthy nodes refuse.
    pub(crate) async fn gas_of_any(&self, from: Address, request: &Request) -> Result<u64, Error> {
        let first = self.gas_from(0, from, request).await;
        if first.as_ref().is_err_and(|error| error.refusal().is_some()) {
            for node in 1..self.well().len() {
                if let Ok(gas) = self.gas_from(node, from, request).await {
                    return Ok(gas);
                }
            }
        }
        first
    }

    async fn gas_from(&self, node: usize, from: Address, request: &Request) -> Result<u64, Error> {
        let asked = json!([request.fields(from), "pending"]);
        let gas: U64 = self.ask_from(node, "eth_estimateGas", asked).await.map_err(Error::refusal_in)?;
        Ok(gas.to())
    }

    /// Alloy's own provider over the same nodes, for all other requests.
    pub fn provider(&self) -> RootProvider {
        RootProvider::new(RpcClient::new(self.clone(), false))
    }

    async fn pass_on(&self, request: RequestPacket) -> Result<ResponsePacket, TransportError> {
        let body = serde_json::to_vec(&request).map_err(TransportError::ser_err)?;
        self.compare_if_due().await.map_err(TransportErrorKind::custom)?;
        let mut refused = None;
        for node in self.well() {
            let answer = self.0.poster.post(&self.0.nodes[node].url, body.clone()).await;
            let answer = answer.and_then(|text| {
                let packet: ResponsePacket =
                    serde_json::from_slice(&text).map_err(|error| Fault::Malformed(error.to_string()))?;
                let complaint =
                    packet.iter_errors().find(|error| unable(error.code, &error.message)).map(|error| error.message.to_string());
                complaint.map_or(Ok(packet), |message| Err(Fault::Unable(message)))
            });
            let complains = |packet: &ResponsePacket| {
                packet.iter_errors().any(|error| error.code != 3 && !error.message.contains("execution reverted"))
            };
            match answer {
                Ok(packet) if complains(&packet) => {
                    refused.get_or_insert(packet);
                }
                Ok(packet) => {
                    self.note(node, None);
                    return Ok(packet);
                }
                Err(fault) => self.note(node, Some(&fault)),
            }
        }
        refused.ok_or_else(|| TransportErrorKind::custom_str(&self.reasons()))
    }
}

impl tower::Service<RequestPacket> for Endpoints {
    type Response = ResponsePacket;
    type Error = TransportError;
    type Future = Pin<Box<dyn Future<Output = Result<ResponsePacket, TransportError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: RequestPacket) -> Self::Future {
        let own = self.clone();
        Box::pin(async move { own.pass_on(request).await })
    }
}

/// The value with the most votes; of equals, the first.
fn majority<T: Copy + Eq + std::hash::Hash>(votes: &[(usize, T)]) -> T {
    let mut count: HashMap<T, usize> = HashMap::new();
    for (_, vote) in votes {
        *count.entry(*vote).or_default() += 1;
    }
    let most = count.values().copied().max().unwrap_or_default();
    votes.iter().find(|(_, vote)| count[vote] == most).map(|(_, vote)| *vote).expect("somebody votes")
}

fn elsewhere(complaint: &Complaint) -> bool {
    unable(complaint.code, &complaint.message)
}

/// Whether a complaint is about the node rather than the request.
fn unable(code: i64, message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    let signs = [
        "rate limit",
        "too many requests",
        "header not found",
        "missing trie node",
        "temporarily",
        "try again",
        "unauthorized",
        "capacity exceeded",
    ];
    // Providers have no common code for too many requests. One of them also stands for an answer that would be too long.
    let long = ["more than", "results", "range", "logs"].iter().any(|sign| message.contains(sign));
    matches!(code, 429 | -32601 | -32007 | -32029) || code == -32005 && !long || signs.iter().any(|sign| message.contains(sign))
}
