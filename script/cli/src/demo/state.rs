//! The state while the demonstration runs, and its reads and transactions.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::PathBuf,
};

use alloy::{
    primitives::{keccak256, Address, B256, U256},
    signers::local::PrivateKeySigner,
    sol_types::SolCall,
};
use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use muster_client::{
    abi::model_id,
    Event,
    IMuster::{estimateCall, parameterCall, TaskSpec},
    Muster, Sender,
};
use muster_core::record::MEMBERS;
use muster_protocol::flow::create::REPLICATED;
use muster_trace::{self as trace, Request};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{
    agenda::Agenda,
    clock::Clock,
    records::{Node, Tally, Task},
};
use crate::{
    chain::{called, name_of, Chain},
    deploy,
};

/// Accounts that create tasks; applications share them.
pub(super) const CREATORS: usize = 8;
/// Price per estimated second before the spread, in wei.
pub(super) const PRICE: u64 = 1_000_000_000_000;
/// Gas limit of every transaction: far above what any operation needs.
pub(super) const GAS_LIMIT: u64 = 3_000_000;

/// The command's flags.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Requests to replay, in the columns of GenTD26's trace [default: script/demo-data/requests.csv]
    #[arg(long, value_name = "FILE")]
    pub requests: Option<PathBuf>,
    /// GPU machines to take nodes from: CSV with columns model, and if you like gpu (how many) and vram (GiB); openb's node
    /// list is one [default: script/demo-data/nodes.csv]
    #[arg(long, value_name = "FILE")]
    pub nodes: Option<PathBuf>,
    /// VRAM of a card whose size the file does not say, in GiB; can be repeated
    #[arg(long, value_name = "NAME=GiB", value_parser = trace::size)]
    pub vram: Vec<(String, u16)>,
    /// Requests to replay at most
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// GPUs to take from the fleet, chosen by the seed [default: all, at most 200]
    #[arg(long, value_name = "K")]
    pub gpus: Option<usize>,
    /// Let requests arrive this many times as fast; tasks take as long as they took
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    pub speed: f64,
    /// Per cent of the tasks that can be validated (redundancy 1): their nodes commit to answers, some are checked by two more nodes
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub sampled: u8,
    /// Per cent of the tasks that three nodes run at once, which judge each other (redundancy 2) [default: 10, or what --sampled leaves]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub groups: Option<u8>,
    /// Nodes that commit to wrong answers, chosen by the seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub cheats: usize,
    /// Decides what the traces do not say
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Let time pass by itself, as on a node whose time cannot be set
    #[arg(long)]
    pub real_time: bool,
    /// Print exactly one JSON object on standard output instead of tables
    #[arg(long)]
    pub json: bool,
}

/// A stream of random numbers for one purpose, so that another purpose's draws do not shift it.
pub(super) fn random(seed: u64, purpose: &str) -> ChaCha8Rng {
    ChaCha8Rng::from_seed(keccak256(format!("muster demo {seed} {purpose}")).0)
}

/// An account of ours by its purpose, the same for a seed.
pub(super) async fn account(chain: &Chain, seed: u64, kind: &str, number: usize) -> Result<Sender> {
    let key = keccak256(format!("muster demo {seed} {kind} {number}"));
    chain.account(PrivateKeySigner::from_bytes(&key)?).await
}

/// The state while it runs.
pub(super) struct Demo {
    pub(super) chain: Chain,
    pub(super) muster: Muster,
    pub(super) options: Options,
    /// Pays for everything, and sends what anybody may.
    pub(super) keeper: Sender,
    pub(super) creators: Vec<Sender>,
    pub(super) operators: Vec<Sender>,
    /// By number.
    pub(super) nodes: BTreeMap<u64, Node>,
    pub(super) clock: Clock,
    /// When the first request arrived.
    pub(super) began: u64,
    pub(super) requests: Vec<Request>,
    /// Request, creator and policy of the task that is being created.
    pub(super) arriving: Option<(usize, usize, u8)>,
    /// Seconds after which anybody may end a queued task.
    pub(super) queue_time: u64,
    pub(super) agenda: Agenda,
    pub(super) tasks: BTreeMap<u64, Task>,
    /// Tasks that wait for the draw of their node, or of their validators.
    pub(super) pending: HashSet<u64>,
    pub(super) draw_planned: bool,
    pub(super) fruitless: u32,
    /// Estimated seconds and least fee by units.
    pub(super) estimates: HashMap<u32, (u64, U256)>,
    pub(super) tally: Tally,
    pub(super) bar: ProgressBar,
}

/// The sender.
#[derive(Clone, Copy)]
pub(super) enum Who {
    Keeper,
    Creator(usize),
    Operator(usize),
}

impl Demo {
    pub(super) async fn new(
        chain: Chain,
        muster: Muster,
        keeper: Sender,
        options: Options,
        requests: Vec<Request>,
    ) -> Result<Self> {
        let clock = Clock::of(&chain, options.real_time).await?;
        let mut creators = Vec::new();
        for number in 0..CREATORS {
            creators.push(account(&chain, options.seed, "creator", number).await?);
        }
        let mut demo = Self {
            chain,
            muster,
            options,
            keeper,
            creators,
            operators: Vec::new(),
            nodes: BTreeMap::new(),
            began: clock.now,
            clock,
            requests,
            arriving: None,
            queue_time: 0,
            agenda: Agenda::default(),
            tasks: BTreeMap::new(),
            pending: HashSet::new(),
            draw_planned: false,
            fruitless: 0,
            estimates: HashMap::new(),
            tally: Tally::default(),
            bar: ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()),
        };
        demo.queue_time = demo.parameter("queueTime").await?.saturating_to();
        Ok(demo)
    }

    /// Sends from one of the accounts, at the time it is, and takes note of all that happened. Gives the contract's events.
    pub(super) async fn send<C: SolCall>(&mut self, who: Who, call: &C, value: U256) -> Result<Vec<Event>> {
        self.clock.before(&self.chain).await?;
        let account = match who {
            Who::Keeper => &self.keeper,
            Who::Creator(at) => &self.creators[at],
            Who::Operator(at) => &self.operators[at],
        };
        let receipt = self.chain.tell(account, &self.muster, call, value, Some(GAS_LIMIT)).await?;
        let gas = receipt.gas_used.saturating_sub(self.chain.gas_for_l1(receipt.transaction_hash).await?);
        self.clock.after(&self.chain).await?;
        let events = self.muster.events(&receipt);
        self.note(name_of::<C>(), gas, &events);
        Ok(events)
    }

    /// The same without any value, where only its effect matters.
    pub(super) async fn tell(&mut self, who: Who, call: &impl SolCall) -> Result<()> {
        self.send(who, call, U256::ZERO).await.map(drop)
    }

    /// Asks the contract.
    pub(super) async fn ask<C: SolCall>(&self, call: C) -> Result<C::Return> {
        self.muster.read(call).await.map_err(called::<C>)
    }

    /// Whether a call with so many wei would be taken now; nothing is changed.
    pub(super) async fn check<C: SolCall + Clone>(&self, from: Address, call: &C, value: U256) -> Result<()> {
        self.muster.try_as(from, call.clone(), value).await.map(drop).map_err(called::<C>)
    }

    /// A parameter by its name.
    pub(super) async fn parameter(&self, name: &str) -> Result<U256> {
        Ok(self.ask(parameterCall { which: deploy::number_of(name)? }).await?.value)
    }

    /// The worth of a request's task to its creator on one node.
    pub(super) async fn fee(&mut self, at: usize) -> Result<U256> {
        let units = self.requests[at].units;
        let (seconds, least) = match self.estimates.get(&units) {
            Some(known) => *known,
            None => {
                let values = self.ask(estimateCall { kind: 0, units }).await?;
                let known = (values.estimated.into(), U256::from(values.leastFee));
                self.estimates.insert(units, known);
                known
            }
        };
        let spread = random(self.options.seed, &format!("fee {at}")).gen_range(50..=250u64);
        Ok((U256::from(seconds) * U256::from(PRICE) * U256::from(spread) / U256::from(100)).max(least))
    }

    pub(super) fn begin_bar(&mut self, what: &str, length: u64) {
        self.bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{prefix:>10} {bar:40} {pos}/{len} {elapsed} {msg}").expect("a valid template");
        self.bar.set_style(style);
        self.bar.set_prefix(what.to_string());
    }
}

/// How many nodes run a task under a policy.
pub(super) fn nodes_of(redundancy: u8) -> U256 {
    if redundancy == REPLICATED {
        U256::from(MEMBERS)
    } else {
        U256::ONE
    }
}

/// A task that any GPU of enough VRAM may run.
pub(super) fn specification(redundancy: u8, units: u32, vram: u16, models: &[String], digest: B256) -> TaskSpec {
    let models = models.iter().map(|name| model_id(name)).collect();
    TaskSpec { kind: 0, units, vram, gpu: 0, redundancy, flags: 0, inputDigest: digest, models }
}

pub(super) fn creator_of(request: &Request) -> usize {
    usize::from(keccak256(&request.application)[0]) % CREATORS
}
