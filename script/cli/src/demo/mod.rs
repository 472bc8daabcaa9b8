//! `muster-dev demo`: a fleet joins, requests are replayed as tasks, nodes answer or fail as the trace says, and the
//! contract decides the rest. Everything goes through JSON-RPC, and everything shown is read from receipts, logs
//! and views.
//!
//! What the trace does not say is derived from the seed: stakes (1 to 10 times the minimum), the models a node holds
//! (popular ones more often), and fees (0.5 to 2.5 times a price per estimated second). So are, of tasks whose answers can be
//! validated, which they are, how fast each node is, and who cheats.
//!
//! | module | what |
//! | --- | --- |
//! | [`node`], [`clock`] | the node it happens on, and its time |
//! | [`rules`] | parameters that the demonstration sets as the owner, and which task runs under which policy |
//! | [`fleet`] | the nodes |
//! | [`agenda`], [`replay`], [`validation`] | what is to happen, and what is sent then |
//! | [`notes`], [`judged`] | what receipts tell |
//! | [`books`], [`report`], [`show`] | what came of it |

mod agenda;
mod books;
mod clock;
mod fleet;
mod judged;
mod node;
mod notes;
mod replay;
mod report;
mod rules;
mod show;
mod validation;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use alloy::{
    primitives::{keccak256, Address, B256, U256},
    signers::local::PrivateKeySigner,
    sol_types::SolCall,
};
use anyhow::{ensure, Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use muster_client::{
    abi::model_id,
    Event,
    IMuster::{estimateCall, parameterCall, TaskSpec},
    Muster, Sender,
};
use muster_core::record::MEMBERS;
use muster_protocol::flow::create::REPLICATED;
use muster_sim::trace::{self, Gpu, Request};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use self::{
    agenda::Agenda,
    clock::Clock,
    fleet::{choose, Node},
    node::Endpoint,
    notes::{Tally, Task},
};
pub use self::{
    books::{books, Books},
    judged::{JudgedNode, OfPolicy, Setting, Validation},
    report::{Report, Share, Spread},
};
use crate::{
    chain::{called, name_of, Chain},
    deploy,
};

/// Accounts that create tasks; applications share them.
const CREATORS: usize = 8;
/// Price per estimated second before the spread, in wei.
const PRICE: u64 = 1_000_000_000_000;
/// What is replayed where no file is named, part of the program so that it needs none.
const REQUESTS: (&str, &[u8]) = ("script/demo-data/requests.csv", include_bytes!("../../../demo-data/requests.csv"));
/// The nodes that join where no file is named.
const NODES: (&str, &[u8]) = ("script/demo-data/nodes.csv", include_bytes!("../../../demo-data/nodes.csv"));
/// Gas limit of every transaction: far above what any operation needs.
const GAS_LIMIT: u64 = 3_000_000;

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

/// Runs it.
///
/// # Errors
/// Whatever keeps it from going on: a malformed row, an unreachable node, missing funds, an unexpected refusal.
pub async fn run(root: &Path, options: &Options) -> Result<Report> {
    let (requests, fleet) = traces(options)?;
    let Endpoint { chain, keeper, own } = Endpoint::open(!options.real_time).await?;
    let mut config = deploy::Config::from_environment(root, keeper.address())?;
    config.say = |line| eprintln!("deploy: {line}");
    rules::add(&mut config, options);
    if own.is_none() {
        config.file = Some(deploy::record(root, chain.id));
    }
    let deployment = deploy::on(&chain, &keeper, &config).await?;
    let created = chain.receipt(deployment.programs[deploy::ROUTER].created_in).await;
    let since = created.ok().flatten().and_then(|receipt| receipt.block_number).unwrap_or_default();

    let muster = Muster::at(chain.endpoints.clone(), deployment.address);
    let mut demo = Demo::new(chain, muster, keeper, options.clone(), requests).await?;
    demo.await_parameters().await?;
    demo.fund_and_join(&fleet).await?;
    demo.replay().await?;
    demo.report(since).await
}

/// What the flags ask for: requests and nodes.
fn traces(options: &Options) -> Result<(Vec<Request>, Vec<Gpu>)> {
    ensure!(options.speed.is_finite() && options.speed > 0.0, "--speed is {}; it has to be above 0", options.speed);
    let limit = options.limit.unwrap_or(usize::MAX);
    let (sampled, groups) = (options.sampled, options.groups());
    ensure!(sampled + groups <= 100, "--sampled is {sampled} and --groups {groups}; together they can be at most 100");
    ensure!(limit > 0 && options.gpus != Some(0), "--limit and --gpus have to be at least 1");
    let (name, source) = open(options.requests.as_deref(), REQUESTS)?;
    let requests = trace::requests(&name, source, limit)?;
    let (name, source) = open(options.nodes.as_deref(), NODES)?;
    let (gpus, notes) = trace::fleet(&name, source, &options.vram.iter().cloned().collect())?;
    for note in notes {
        eprintln!("demo: {note}");
    }
    let fleet = choose(&gpus, options)?;
    ensure!(options.cheats <= fleet.len(), "--cheats is {}, but there are {} nodes", options.cheats, fleet.len());
    Ok((requests, fleet))
}

fn open(given: Option<&Path>, shipped: (&str, &'static [u8])) -> Result<(String, Box<dyn Read>)> {
    let Some(file) = given else { return Ok((shipped.0.into(), Box::new(shipped.1))) };
    let name = file.display().to_string();
    let source = File::open(file).with_context(|| format!("cannot open {name}"))?;
    Ok((name, Box::new(source)))
}

/// A stream of random numbers for one purpose, so that another purpose's draws do not shift it.
fn random(seed: u64, purpose: &str) -> ChaCha8Rng {
    ChaCha8Rng::from_seed(keccak256(format!("muster demo {seed} {purpose}")).0)
}

/// An account of ours by its purpose, the same for a seed.
async fn account(chain: &Chain, seed: u64, kind: &str, number: usize) -> Result<Sender> {
    let key = keccak256(format!("muster demo {seed} {kind} {number}"));
    chain.account(PrivateKeySigner::from_bytes(&key)?).await
}

/// What is known while it runs.
struct Demo {
    chain: Chain,
    muster: Muster,
    options: Options,
    /// Pays for everything, and sends what anybody may.
    keeper: Sender,
    creators: Vec<Sender>,
    operators: Vec<Sender>,
    /// By number.
    nodes: BTreeMap<u64, Node>,
    clock: Clock,
    /// When the first request arrived.
    began: u64,
    requests: Vec<Request>,
    /// Request, creator and policy of the task that is being created.
    arriving: Option<(usize, usize, u8)>,
    /// Seconds after which anybody may end a queued task.
    queue_time: u64,
    agenda: Agenda,
    tasks: BTreeMap<u64, Task>,
    /// Tasks that wait for the draw of their node, or of their validators.
    pending: HashSet<u64>,
    draw_planned: bool,
    fruitless: u32,
    /// Estimated seconds and least fee by units.
    estimates: HashMap<u32, (u64, U256)>,
    tally: Tally,
    bar: ProgressBar,
}

/// Who sends.
#[derive(Clone, Copy)]
enum Who {
    Keeper,
    Creator(usize),
    Operator(usize),
}

impl Demo {
    async fn new(chain: Chain, muster: Muster, keeper: Sender, options: Options, requests: Vec<Request>) -> Result<Self> {
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
    async fn send<C: SolCall>(&mut self, who: Who, call: &C, value: U256) -> Result<Vec<Event>> {
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

    /// The same without any value, where only what it brings about matters.
    async fn tell(&mut self, who: Who, call: &impl SolCall) -> Result<()> {
        self.send(who, call, U256::ZERO).await.map(drop)
    }

    /// Asks the contract.
    async fn ask<C: SolCall>(&self, call: C) -> Result<C::Return> {
        self.muster.read(call).await.map_err(called::<C>)
    }

    /// Whether a call with so many wei would be taken now; nothing is changed.
    async fn check<C: SolCall + Clone>(&self, from: Address, call: &C, value: U256) -> Result<()> {
        self.muster.try_as(from, call.clone(), value).await.map(drop).map_err(called::<C>)
    }

    /// A parameter by its name.
    async fn parameter(&self, name: &str) -> Result<U256> {
        Ok(self.ask(parameterCall { which: deploy::number_of(name)? }).await?.value)
    }

    /// What a request's task is worth to its creator on one node.
    async fn fee(&mut self, at: usize) -> Result<U256> {
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

    fn begin_bar(&mut self, what: &str, length: u64) {
        self.bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{prefix:>10} {bar:40} {pos}/{len} {elapsed} {msg}").expect("a valid template");
        self.bar.set_style(style);
        self.bar.set_prefix(what.to_string());
    }
}

/// How many nodes run a task under a policy.
fn nodes_of(redundancy: u8) -> U256 {
    if redundancy == REPLICATED {
        U256::from(MEMBERS)
    } else {
        U256::ONE
    }
}

/// A task that any GPU of enough VRAM may run.
fn specification(redundancy: u8, units: u32, vram: u16, models: &[String], digest: B256) -> TaskSpec {
    let models = models.iter().map(|name| model_id(name)).collect();
    TaskSpec { kind: 0, units, vram, gpu: 0, redundancy, flags: 0, inputDigest: digest, models }
}

fn creator_of(request: &Request) -> usize {
    usize::from(keccak256(&request.application)[0]) % CREATORS
}
