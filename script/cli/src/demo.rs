//! `muster demo`: a fleet joins, requests are replayed as tasks, nodes answer or fail as the trace says, and the
//! contract decides the rest. Everything goes through JSON-RPC, and everything shown is read from receipts, logs
//! and views.
//!
//! What the trace does not say is derived from the seed: stakes (1 to 10 times the minimum), the models a node holds
//! (popular ones more often), and fees (0.5 to 2.5 times a price per estimated second).

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap, HashSet},
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{anyhow, bail, ensure, Context, Result};
use ethers::{
    abi::Token,
    providers::Middleware,
    signers::LocalWallet,
    types::{Address, Filter, TransactionReceipt, U256, U64},
    utils::{format_ether, keccak256},
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use muster_core::record::{CALL_MODELS, NODE_MODELS};
use muster_protocol::parameters::number_of;
use muster_sim::trace::{self, Gpu, Outcome, Request};
use rand::{seq::SliceRandom, Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use crate::{
    chain::{Account, Chain, Outgoing},
    contract::{Event, Muster, Refusal},
    deploy::{self, variable},
};

/// The public key of every nitro development chain.
const DEVELOPMENT_KEY: &str = "0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659";
/// The chain id of nitro's development chains and of muster-devnode.
const DEVELOPMENT_CHAIN: u64 = 412_346;
/// When time begins on the node that the demonstration starts itself, so that every run is the same.
const BEGINNING: u64 = 1_700_000_000;
/// Accounts that create tasks; applications share them.
const CREATORS: usize = 8;
/// Price per estimated second before the spread, in wei.
const PRICE: u64 = 1_000_000_000_000;
/// Gas limit of every transaction: far above what any operation needs.
const GAS_LIMIT: u64 = 3_000_000;
/// Gas that an account is funded for with each transaction it may send.
const GAS_EXPECTED: u64 = 400_000;
/// `dispatch` without any progress before we give up.
const FRUITLESS: u32 = 500;
/// Tasks that `dispatch` draws at once at most.
const DRAWS: u8 = 16;

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
    /// Requests to replay at most
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// GPUs to take from the fleet, chosen by the seed [default: all, at most 200]
    #[arg(long, value_name = "K")]
    pub gpus: Option<usize>,
    /// Let requests arrive this many times as fast; tasks take as long as they took
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    pub speed: f64,
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

/// What came out. The sum of `stake_wei`, `escrow_wei`, `credit_wei` and `treasury_wei` is `contract_balance_wei`.
/// Amounts in wei are decimal strings.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Requests that no joined node could run, so that the contract refused to create their tasks.
    pub refused: u64,
    /// Created; what follows up to `errors_reported` is their fates.
    pub tasks: u64,
    /// Started without having been queued.
    pub dispatched: u64,
    /// Queued, at least for a while; what the full queue evicts at once is in neither.
    pub queued: u64,
    /// Ended with an answer.
    pub finished: u64,
    /// Ended at their deadline without an answer.
    pub timed_out: u64,
    /// Ended in the queue: by eviction, by their creator, or because nobody took them for too long.
    pub aborted: u64,
    /// Of the aborted, those evicted.
    pub evicted: u64,
    /// Of the aborted, those that their creator cancelled.
    pub cancelled: u64,
    /// Of the aborted, those that were queued for longer than the contract lets them.
    pub outlived: u64,
    /// Ended by the node's report that it cannot run them.
    pub errors_reported: u64,
    /// Nodes joined by this run.
    pub nodes: u64,
    /// How often H fell below its threshold.
    pub exclusions: u64,
    /// Kicked out for their long-term score.
    pub kicked_out: u64,
    /// Stakes, those being unbonded included.
    pub stake_wei: String,
    /// Fees of tasks that have not ended.
    pub escrow_wei: String,
    /// What accounts can withdraw, returned stakes aside.
    pub credit_wei: String,
    /// Protocol income not yet paid out.
    pub treasury_wei: String,
    /// What the contract's address holds.
    pub contract_balance_wei: String,
    /// Seconds from creation to start, of the tasks that started.
    pub waiting_seconds: Spread,
    /// The same of those that had been queued.
    pub queue_seconds: Spread,
    /// Gas by operation, cost of data on L1 aside.
    pub gas: BTreeMap<String, Spread>,
    /// The nodes that ran most.
    pub top_nodes: Vec<Share>,
    /// The contract.
    pub address: Address,
    /// Seconds that passed on chain.
    pub simulated_seconds: u64,
}

/// Of a number of values.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// The least.
    pub min: u64,
    /// The middle one, the lower of two.
    pub median: u64,
    /// 95 % are not above it.
    pub p95: u64,
    /// The greatest.
    pub max: u64,
}

impl Spread {
    /// Of these; zeros if there are none.
    pub fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let Some((&min, &max)) = values.first().zip(values.last()) else { return Self::default() };
        let at = |share: usize| values[((values.len() * share).div_ceil(100)).saturating_sub(1)];
        Self { count: values.len() as u64, min, median: at(50), p95: at(95), max }
    }
}

/// A node's part of the whole.
#[derive(Clone, Debug, Serialize)]
pub struct Share {
    /// Its number.
    pub node: u64,
    /// Its GPU.
    pub gpu: String,
    /// Tasks it started.
    pub tasks: u64,
    /// Percent of all tasks started.
    pub work_percent: f64,
    /// Percent of all nodes' weight, as it was after joining, for a task that asks for no model.
    pub weight_percent: f64,
}

/// Runs it.
///
/// # Errors
/// Whatever keeps it from going on: a malformed row, an unreachable node, missing funds, an unexpected refusal.
pub async fn run(root: &Path, options: &Options) -> Result<Report> {
    ensure!(options.speed.is_finite() && options.speed > 0.0, "--speed is {}; it has to be above 0", options.speed);
    let limit = options.limit.unwrap_or(usize::MAX);
    ensure!(limit > 0 && options.gpus != Some(0), "--limit and --gpus have to be at least 1");
    let (name, source) = open(root, &options.requests, "requests.csv")?;
    let requests = trace::requests(&name, source, limit)?;
    let (name, source) = open(root, &options.nodes, "nodes.csv")?;
    let (gpus, assumed) = trace::fleet(&name, source)?;
    for assumption in assumed {
        eprintln!("demo: {assumption}");
    }
    let fleet = choose(&gpus, options)?;

    let (url, _devnode) = match variable("RPC_URL") {
        Some(url) => (url, None),
        None => {
            let (url, guard) = start_devnode(!options.real_time)?;
            (url, Some(guard))
        }
    };
    let chain = Chain::connect(&url).await?;
    let key = match variable("PRIVATE_KEY") {
        Some(key) => key,
        None if chain.id == DEVELOPMENT_CHAIN => DEVELOPMENT_KEY.into(),
        None => bail!("PRIVATE_KEY is not set: chain {} has no public development account to pay for this", chain.id),
    };
    let wallet: LocalWallet = key.parse().map_err(|_| anyhow!("PRIVATE_KEY is not a private key of 32 bytes in hexadecimal"))?;
    let mut keeper = Account::new(&chain, wallet);
    let mut config = deploy::Config::from_environment(root, keeper.address())?;
    config.say = |line| eprintln!("deploy: {line}");
    if _devnode.is_none() {
        config.file = Some(deploy::record(root, chain.id));
    }
    let deployment = deploy::on(&chain, &mut keeper, &config).await?;
    let created = chain.provider.get_transaction_receipt(deployment.programs["router"].created_in).await;
    let since = created.ok().flatten().and_then(|receipt| receipt.block_number).unwrap_or_default();

    let muster = Muster { address: deployment.address };
    let mut demo = Demo::new(chain, muster, keeper, options.clone(), requests).await?;
    demo.fund_and_join(&fleet).await?;
    demo.replay().await?;
    demo.report(since).await
}

fn open(root: &Path, given: &Option<PathBuf>, default: &str) -> Result<(String, impl Read)> {
    let file = given.clone().unwrap_or_else(|| root.join("script/demo-data").join(default));
    let name = match given {
        Some(file) => file.display().to_string(),
        None => format!("script/demo-data/{default}"),
    };
    let source = File::open(&file).with_context(|| format!("cannot open {name}"))?;
    Ok((name, source))
}

/// The nodes of the network, in the order in which they join.
fn choose(fleet: &[Gpu], options: &Options) -> Result<Vec<Gpu>> {
    let wanted = options.gpus.unwrap_or(fleet.len().min(200));
    ensure!(wanted <= fleet.len(), "--gpus is {wanted}, but the fleet has {} GPUs", fleet.len());
    let mut order: Vec<usize> = (0..fleet.len()).collect();
    if wanted < fleet.len() {
        order.shuffle(&mut random(options.seed, "fleet"));
    }
    Ok(order[..wanted].iter().map(|at| fleet[*at].clone()).collect())
}

/// A stream of random numbers for one purpose, so that another purpose's draws do not shift it.
fn random(seed: u64, purpose: &str) -> ChaCha8Rng {
    ChaCha8Rng::from_seed(keccak256(format!("muster demo {seed} {purpose}")))
}

/// Ends the node with the demonstration.
struct Devnode(Child);

impl Drop for Devnode {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_devnode(travels: bool) -> Result<(String, Devnode)> {
    let file = match variable("MUSTER_DEVNODE") {
        Some(file) => file.into(),
        None => std::env::current_exe()?.with_file_name("muster-devnode"),
    };
    let child = Command::new(&file)
        .args(["--port", "0", "--history", "64"])
        .args(travels.then(|| format!("--manual-time={BEGINNING}")))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}: run script/demo, which builds it, or set RPC_URL", file.display()))?;
    let mut node = Devnode(child);
    let output = BufReader::new(node.0.stdout.take().context("the devnode has no output")?);
    for line in output.lines() {
        if let Some(at) = line?.split_whitespace().find(|word| word.starts_with("http://")) {
            return Ok((at.to_string(), node));
        }
    }
    bail!("the devnode stopped before it listened (see above)")
}

/// What is to happen, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Arrive(usize),
    Draw,
    Answer(u64),
    Report(u64),
    Expire(u64),
    Cancel(u64),
    Outlive(u64),
}

/// A task that was created by this run.
struct Task {
    request: usize,
    creator: usize,
    created: u64,
    ticket: Option<u64>,
    queued: bool,
    node: Option<u64>,
    ended: bool,
}

struct Demo {
    chain: Chain,
    muster: Muster,
    options: Options,
    keeper: Account,
    creators: Vec<Account>,
    operators: Vec<Account>,
    /// From a node's number to its place in `operators`.
    places: HashMap<u64, usize>,
    gpus: HashMap<u64, String>,
    weights: HashMap<u64, f64>,
    /// Whether the node lets us set the time.
    travels: bool,
    began: u64,
    now: u64,
    requests: Vec<Request>,
    /// Request and creator of the task that is being created.
    arriving: Option<(usize, usize)>,
    /// Seconds after which anybody may end a queued task.
    queue_time: u64,
    agenda: BinaryHeap<Reverse<(u64, u64, Action)>>,
    sequence: u64,
    tasks: HashMap<u64, Task>,
    pending: HashSet<u64>,
    draw_planned: bool,
    fruitless: u32,
    estimates: HashMap<u32, (u64, U256)>,
    gas: BTreeMap<String, Vec<u64>>,
    waits: Vec<u64>,
    queue_waits: Vec<u64>,
    started: HashMap<u64, u64>,
    counts: Counts,
    bar: ProgressBar,
}

#[derive(Default)]
struct Counts {
    refused: u64,
    dispatched: u64,
    queued: u64,
    finished: u64,
    timed_out: u64,
    evicted: u64,
    cancelled: u64,
    outlived: u64,
    errors: u64,
    exclusions: u64,
    kicked_out: u64,
}

/// Who sends.
#[derive(Clone, Copy)]
enum Sender {
    Keeper,
    Creator(usize),
    Operator(usize),
}

impl Demo {
    async fn new(chain: Chain, muster: Muster, keeper: Account, options: Options, requests: Vec<Request>) -> Result<Self> {
        let latest = chain.now().await?;
        let travels =
            !options.real_time && chain.request::<_, serde_json::Value>("evm_setNextBlockTimestamp", [latest + 1]).await.is_ok();
        let seed = options.seed;
        let account = |kind: &str, number: usize| -> Result<Account> {
            let key = keccak256(format!("muster demo {seed} {kind} {number}"));
            Ok(Account::new(&chain, LocalWallet::from_bytes(&key)?))
        };
        let creators = (0..CREATORS).map(|number| account("creator", number)).collect::<Result<_>>()?;
        Ok(Self {
            creators,
            operators: Vec::new(),
            places: HashMap::new(),
            gpus: HashMap::new(),
            weights: HashMap::new(),
            travels,
            began: latest + 1,
            now: latest + 1,
            requests,
            arriving: None,
            queue_time: 0,
            agenda: BinaryHeap::new(),
            sequence: 0,
            tasks: HashMap::new(),
            pending: HashSet::new(),
            draw_planned: false,
            fruitless: 0,
            estimates: HashMap::new(),
            gas: BTreeMap::new(),
            waits: Vec::new(),
            queue_waits: Vec::new(),
            started: HashMap::new(),
            counts: Counts::default(),
            bar: ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()),
            chain,
            muster,
            options,
            keeper,
        })
    }

    /// Sends from one of the accounts, at the time it is, and takes note of all that happened.
    async fn send(&mut self, who: Sender, function: &str, arguments: &[Token], value: U256) -> Result<TransactionReceipt> {
        if self.travels {
            // Blocks mined without a time of their own follow the node's clock, which may be ahead.
            self.now = self.chain.now().await?.max(self.now);
            self.chain.request::<_, serde_json::Value>("evm_setNextBlockTimestamp", [self.now]).await?;
        }
        let account = match who {
            Sender::Keeper => &mut self.keeper,
            Sender::Creator(at) => &mut self.creators[at],
            Sender::Operator(at) => &mut self.operators[at],
        };
        let receipt = self.muster.send(&self.chain, account, function, arguments, value, Some(GAS_LIMIT)).await?;
        if !self.travels {
            self.now = self.chain.now().await?.max(self.now);
        }
        let data = receipt.other.get_deserialized::<U64>("gasUsedForL1").and_then(Result::ok).unwrap_or_default();
        let gas = receipt.gas_used.unwrap_or_default().as_u64().saturating_sub(data.as_u64());
        self.gas.entry(function.into()).or_default().push(gas);
        self.note(&receipt);
        Ok(receipt)
    }

    fn plan(&mut self, at: u64, action: Action) {
        self.sequence += 1;
        self.agenda.push(Reverse((at, self.sequence, action)));
    }

    /// Takes from a receipt's logs what became of tasks and nodes.
    fn note(&mut self, receipt: &TransactionReceipt) {
        let address = self.muster.address;
        for event in receipt.logs.iter().filter(|log| log.address == address).filter_map(Event::of) {
            let (id, node) = (event.number("id"), event.number("node"));
            match event.name {
                "TaskCreated" => {
                    self.pending.insert(id);
                    if let Some((request, creator)) = self.arriving.take() {
                        let task =
                            Task { request, creator, created: self.now, ticket: None, queued: false, node: None, ended: false };
                        self.tasks.insert(id, task);
                        if self.requests[request].outcome == Outcome::Cancelled {
                            self.plan(self.now + self.requests[request].seconds, Action::Cancel(id));
                        }
                    }
                }
                "TaskRedrawn" => {
                    self.pending.insert(id);
                }
                "TaskQueued" => {
                    self.pending.remove(&id);
                    self.fruitless = 0;
                    if let Some(task) = self.tasks.get_mut(&id) {
                        task.ticket = Some(event.number("ticket"));
                        self.counts.queued += u64::from(!std::mem::replace(&mut task.queued, true));
                        self.plan(self.now + self.queue_time + 1, Action::Outlive(id));
                    }
                }
                "TaskStarted" => {
                    self.pending.remove(&id);
                    self.fruitless = 0;
                    self.note_start(id, node, event.number("deadline"));
                }
                "TaskSucceeded" => self.note_end(id, |counts| &mut counts.finished),
                "TaskErrorReported" => self.note_end(id, |counts| &mut counts.errors),
                "TaskAborted" => {
                    self.pending.remove(&id);
                    match event.number("reason") {
                        0 => self.note_end(id, |counts| &mut counts.timed_out),
                        1 => self.note_end(id, |counts| &mut counts.cancelled),
                        3 => self.note_end(id, |counts| &mut counts.outlived),
                        _ => self.note_end(id, |counts| &mut counts.evicted),
                    }
                }
                "NodeExcluded" => self.counts.exclusions += 1,
                "NodeKickedOut" => self.counts.kicked_out += 1,
                _ => {}
            }
        }
        if !self.pending.is_empty() && !self.draw_planned {
            self.draw_planned = true;
            self.plan(self.now + 1, Action::Draw);
        }
    }

    fn note_start(&mut self, id: u64, node: u64, deadline: u64) {
        let now = self.now;
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.node = Some(node);
        task.ticket = None;
        self.counts.dispatched += u64::from(!task.queued);
        let wait = now.saturating_sub(task.created);
        self.waits.push(wait);
        if task.queued {
            self.queue_waits.push(wait);
        }
        *self.started.entry(node).or_default() += 1;
        let request = &self.requests[task.request];
        let done = now + request.seconds;
        let (at, action) = match request.outcome {
            Outcome::Answers | Outcome::Cancelled if done <= deadline => (done, Action::Answer(id)),
            Outcome::Reports if done <= deadline => (done, Action::Report(id)),
            _ => (deadline + 1, Action::Expire(id)),
        };
        self.plan(at, action);
    }

    fn note_end(&mut self, id: u64, count: impl Fn(&mut Counts) -> &mut u64) {
        if let Some(task) = self.tasks.get_mut(&id) {
            task.ticket = None;
            if !std::mem::replace(&mut task.ended, true) {
                *count(&mut self.counts) += 1;
                self.bar.inc(1);
            }
        }
    }

    /// Gives every account what it will need, lets the fleet join, and reads the weights.
    async fn fund_and_join(&mut self, fleet: &[Gpu]) -> Result<()> {
        let overview = self.view("overview", &[]).await?;
        let granule = field(&overview, 3)?;
        let least = self.parameter("minStake").await? * granule;
        let group_fee = self.parameter("groupFee").await? * granule;
        self.queue_time = self.parameter("queueTime").await?.as_u64();

        let mut stakes = random(self.options.seed, "stakes");
        let mut held = random(self.options.seed, "models");
        let popularity = popularity(&self.requests);
        let most = popularity.first().map_or(1, |(_, count)| *count) as f64;
        let mut joins = Vec::new();
        for (number, gpu) in fleet.iter().enumerate() {
            let key = keccak256(format!("muster demo {} operator {number}", self.options.seed));
            self.operators.push(Account::new(&self.chain, LocalWallet::from_bytes(&key)?));
            // Evenly in the logarithm: many small stakes, few large ones.
            let stake = (least / granule * U256::from((1_000.0 * 10f64.powf(stakes.gen::<f64>())) as u64) / 1_000) * granule;
            let models: Vec<Token> = popularity
                .iter()
                .filter(|(_, count)| held.gen_bool(0.15 + 0.6 * *count as f64 / most))
                .take(NODE_MODELS as usize)
                .map(|(name, _)| Token::Uint(model_id(name).into()))
                .collect();
            joins.push((gpu, stake, models));
        }

        let mut fees = vec![U256::zero(); CREATORS];
        for at in 0..self.requests.len() {
            fees[creator_of(&self.requests[at])] += self.fee(at).await?;
        }
        let requests = self.requests.len() as u64;
        let gas = |transactions: u64| self.chain.gas_price * (GAS_LIMIT + GAS_EXPECTED * transactions);
        // A node in ten may get most of the work; what is left over stays with the account for another run.
        let per_node = gas(20 + requests.min(10 * requests / fleet.len() as u64));
        // Who is the first to join with a GPU pays for its name.
        let mut named = HashSet::new();
        let mut payments: Vec<(Address, U256)> = Vec::new();
        for (account, (gpu, stake, _)) in self.operators.iter().zip(&joins) {
            let first = named.insert((&gpu.name, gpu.vram));
            payments.push((account.address(), *stake + per_node + if first { group_fee } else { U256::zero() }));
        }
        for (account, fee) in self.creators.iter().zip(&fees) {
            payments.push((account.address(), *fee + gas(2 * requests)));
        }
        let total = payments.iter().fold(U256::zero(), |sum, (_, amount)| sum + amount);
        let have =
            self.chain.provider.get_balance(self.keeper.address(), None).await.map_err(|error| self.chain.trouble(&error))?;
        ensure!(
            total < have,
            "this needs {} ether for stakes, fees and gas, and account {:?} has {}: fewer --gpus or a lower --limit need less",
            format_ether(total),
            self.keeper.address(),
            format_ether(have)
        );

        self.begin_bar("joining", fleet.len() as u64);
        for (to, value) in payments {
            self.keeper.send(&self.chain, Outgoing { to: Some(to), value, ..Default::default() }).await?;
        }
        for (place, (gpu, stake, models)) in joins.into_iter().enumerate() {
            let operator = self.operators[place].address();
            let node = self.muster.call(&self.chain, "nodeOf", &[Token::Address(operator)]).await?[0]
                .clone()
                .into_uint()
                .unwrap_or_default()
                .as_u64();
            let status = if node == 0 { 0 } else { field(&self.view("node", &[Token::Uint(node.into())]).await?, 2)?.as_u64() };
            // An earlier run with the same seed on the same chain has let it join already.
            let node = if status == 0 {
                // A call takes only so many models; the others are declared afterwards.
                let mut parts = models.chunks(CALL_MODELS).map(|part| Token::Array(part.to_vec()));
                let first = parts.next().unwrap_or(Token::Array(Vec::new()));
                let (name, vram) = (Token::String(gpu.name.clone()), Token::Uint(gpu.vram.into()));
                let known = match self.muster.call(&self.chain, "gpuGroup", &[name.clone(), vram.clone()]).await {
                    Ok(_) => true,
                    Err(error) if Refusal::behind(&error).is_some() => false,
                    Err(error) => return Err(error),
                };
                let value = if known { stake } else { stake + group_fee };
                let receipt = self.send(Sender::Operator(place), "join", &[name, vram, first], value).await?;
                for part in parts {
                    self.send(Sender::Operator(place), "reportDownloaded", &[part], U256::zero()).await?;
                }
                let joined = receipt.logs.iter().filter_map(Event::of).find(|event| event.name == "NodeJoined");
                joined.context("join left no NodeJoined event")?.number("node")
            } else {
                node
            };
            self.places.insert(node, place);
            self.gpus.insert(node, format!("{}, {} GiB", gpu.name, gpu.vram));
            self.bar.inc(1);
        }
        for node in self.places.keys().copied().collect::<Vec<_>>() {
            let plain = specification(0, 1, 1, &[], [0; 32]);
            let weight = self.muster.call(&self.chain, "weightOf", &[Token::Uint(node.into()), plain]).await?;
            let weight = weight.into_iter().next().and_then(Token::into_tuple).context("weightOf() returned nothing")?;
            let weight = weight.get(5).cloned().and_then(Token::into_uint).unwrap_or_default();
            self.weights.insert(node, weight.as_u128() as f64);
        }
        self.bar.finish_and_clear();
        Ok(())
    }

    /// A parameter by its name.
    async fn parameter(&self, name: &str) -> Result<U256> {
        let number = number_of(name).with_context(|| format!("no parameter {name}"))?;
        let values = self.muster.call(&self.chain, "parameter", &[Token::Uint(number.into())]).await?;
        values.first().cloned().and_then(Token::into_uint).context("parameter() returned no number")
    }

    /// A view that returns one struct.
    async fn view(&self, function: &str, arguments: &[Token]) -> Result<Vec<Token>> {
        let values = self.muster.call(&self.chain, function, arguments).await?;
        values.into_iter().next().and_then(Token::into_tuple).with_context(|| format!("{function}() returned no struct"))
    }

    /// What a request's task is worth to its creator.
    async fn fee(&mut self, at: usize) -> Result<U256> {
        let units = self.requests[at].units;
        let (seconds, least) = match self.estimates.get(&units) {
            Some(known) => *known,
            None => {
                let values =
                    self.muster.call(&self.chain, "estimate", &[Token::Uint(0.into()), Token::Uint(units.into())]).await?;
                let number =
                    |at: usize| values.get(at).cloned().and_then(Token::into_uint).context("estimate() returned no number");
                let known = (number(0)?.as_u64(), number(2)?);
                self.estimates.insert(units, known);
                known
            }
        };
        let spread = random(self.options.seed, &format!("fee {at}")).gen_range(50..=250u64);
        Ok((U256::from(seconds) * PRICE * spread / 100).max(least))
    }

    fn begin_bar(&mut self, what: &str, length: u64) {
        self.bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{prefix:>10} {bar:40} {pos}/{len} {elapsed} {msg}").expect("a valid template");
        self.bar.set_style(style);
        self.bar.set_prefix(what.to_string());
    }

    /// Lets the requests arrive, and goes on until every task has ended.
    async fn replay(&mut self) -> Result<()> {
        self.begin_bar("tasks", self.requests.len() as u64);
        self.began = self.now;
        for at in 0..self.requests.len() {
            let after = (self.requests[at].at as f64 / self.options.speed).round() as u64;
            self.plan(self.began + after, Action::Arrive(at));
        }
        let mut rounds = 0;
        loop {
            while let Some(Reverse((at, _, action))) = self.agenda.pop() {
                // What left the queue in time is no reason to wait.
                if matches!(action, Action::Outlive(id) if self.ticket(id).is_none()) {
                    continue;
                }
                self.wait_until(at).await?;
                self.act(action).await?;
                self.bar.set_message(format!("{} s on chain", self.now - self.began));
            }
            let left: Vec<u64> = self.tasks.iter().filter(|(_, task)| !task.ended).map(|(id, _)| *id).collect();
            if left.is_empty() {
                break;
            }
            // Queued, with nobody running a task whose end would start them: their nodes are excluded for now.
            rounds += 1;
            if rounds <= 48 {
                self.wait_until(self.now + 300).await?;
                self.wake().await?;
            } else {
                eprintln!("demo: no node can run {} queued tasks; their creators cancel them", left.len());
                for id in left {
                    self.act(Action::Cancel(id)).await?;
                }
            }
        }
        self.bar.finish_and_clear();
        Ok(())
    }

    async fn wait_until(&mut self, at: u64) -> Result<()> {
        if self.travels {
            self.now = self.now.max(at);
            return Ok(());
        }
        while self.now < at {
            tokio::time::sleep(Duration::from_secs((at - self.now).min(5))).await;
            let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
            self.now = self.now.max(clock);
        }
        Ok(())
    }

    async fn act(&mut self, action: Action) -> Result<()> {
        match action {
            Action::Arrive(at) => {
                let fee = self.fee(at).await?;
                let creator = creator_of(&self.requests[at]);
                let request = &self.requests[at];
                let specification = specification(
                    0,
                    request.units,
                    request.vram,
                    &request.models,
                    keccak256(format!("{} {at}", self.options.seed)),
                );
                self.arriving = Some((at, creator));
                match self.send(Sender::Creator(creator), "createTask", &[specification], fee).await {
                    Ok(_) => {}
                    Err(error) if Refusal::behind(&error).is_some_and(|refusal| refusal.name == "NobodyCanRun") => {
                        self.arriving = None;
                        self.counts.refused += 1;
                        self.bar.inc(1);
                    }
                    Err(error) => return Err(error),
                }
            }
            Action::Draw => {
                self.draw_planned = false;
                if self.pending.is_empty() {
                    return Ok(());
                }
                self.fruitless += 1;
                ensure!(
                    self.fruitless < FRUITLESS,
                    "{} pending tasks are not drawn, however often dispatch is called",
                    self.pending.len()
                );
                self.send(Sender::Keeper, "dispatch", &[Token::Uint(DRAWS.into())], U256::zero()).await?;
            }
            Action::Answer(id) => {
                if let Some(place) = self.running(id) {
                    let digest = Token::FixedBytes(keccak256(format!("answer {id}")).to_vec());
                    self.send(Sender::Operator(place), "submit", &[Token::Uint(id.into()), digest], U256::zero()).await?;
                }
            }
            Action::Report(id) => {
                if let Some(place) = self.running(id) {
                    self.send(
                        Sender::Operator(place),
                        "reportError",
                        &[Token::Uint(id.into()), Token::Uint(1.into())],
                        U256::zero(),
                    )
                    .await?;
                }
            }
            Action::Expire(id) => {
                if let Some((false, Some(node))) = self.tasks.get(&id).map(|task| (task.ended, task.node)) {
                    let latest = if self.travels { self.now } else { self.chain.now().await? };
                    if latest < self.now {
                        // The chain's clock is behind ours.
                        self.plan(self.now + 1, Action::Expire(id));
                    } else {
                        self.send(Sender::Keeper, "expire", &[Token::Uint(node.into()), Token::Uint(id.into())], U256::zero())
                            .await?;
                    }
                }
            }
            Action::Cancel(id) => {
                if let (Some(ticket), Some(task)) = (self.ticket(id), self.tasks.get(&id)) {
                    let arguments = [Token::Uint(id.into()), Token::Uint(ticket.into())];
                    self.send(Sender::Creator(task.creator), "cancel", &arguments, U256::zero()).await?;
                }
            }
            Action::Outlive(id) => {
                if let Some(ticket) = self.ticket(id) {
                    let arguments = [Token::Uint(id.into()), Token::Uint(ticket.into())];
                    self.send(Sender::Keeper, "expireQueued", &arguments, U256::zero()).await?;
                }
            }
        }
        Ok(())
    }

    /// The ticket of a task that is queued.
    fn ticket(&self, id: u64) -> Option<u64> {
        self.tasks.get(&id)?.ticket
    }

    /// The place of the node that runs a task, unless it has ended or the node is not ours.
    fn running(&self, id: u64) -> Option<usize> {
        let task = self.tasks.get(&id).filter(|task| !task.ended)?;
        self.places.get(&task.node?).copied()
    }

    /// Offers queued tasks to nodes that are available or can be readmitted by now.
    async fn wake(&mut self) -> Result<()> {
        for node in self.places.keys().copied().collect::<Vec<_>>() {
            let poke = self.muster.encode("poke", &[Token::Uint(node.into())])?;
            if self.chain.call(Some(self.keeper.address()), self.muster.address, U256::zero(), poke).await.is_ok() {
                self.send(Sender::Keeper, "poke", &[Token::Uint(node.into())], U256::zero()).await?;
            }
        }
        Ok(())
    }

    /// Adds everything up, from logs and views.
    async fn report(&self, since: U64) -> Result<Report> {
        let books = books(&self.chain, &self.muster, since).await?;
        let owed = books.stake + books.escrow + books.credit + books.treasury;
        // More can have been forced in; less cannot be.
        ensure!(owed <= books.balance, "the contract owes {owed} wei and holds {}: its books are wrong", books.balance);
        let total: u64 = self.started.values().sum();
        let weight: f64 = self.weights.values().sum();
        let share = |part: f64, whole: f64| if whole > 0.0 { (10_000.0 * part / whole).round() / 100.0 } else { 0.0 };
        let mut top: Vec<Share> = self
            .weights
            .iter()
            .map(|(node, own)| {
                let tasks = self.started.get(node).copied().unwrap_or_default();
                Share {
                    node: *node,
                    gpu: self.gpus.get(node).cloned().unwrap_or_default(),
                    tasks,
                    work_percent: share(tasks as f64, total as f64),
                    weight_percent: share(*own, weight),
                }
            })
            .collect();
        top.sort_by_key(|node| (Reverse(node.tasks), node.node));
        top.truncate(10);
        let counts = &self.counts;
        Ok(Report {
            refused: counts.refused,
            tasks: self.tasks.len() as u64,
            dispatched: counts.dispatched,
            queued: counts.queued,
            finished: counts.finished,
            timed_out: counts.timed_out,
            aborted: counts.evicted + counts.cancelled + counts.outlived,
            evicted: counts.evicted,
            cancelled: counts.cancelled,
            outlived: counts.outlived,
            errors_reported: counts.errors,
            nodes: self.places.len() as u64,
            exclusions: counts.exclusions,
            kicked_out: counts.kicked_out,
            stake_wei: books.stake.to_string(),
            escrow_wei: books.escrow.to_string(),
            credit_wei: books.credit.to_string(),
            treasury_wei: books.treasury.to_string(),
            contract_balance_wei: books.balance.to_string(),
            waiting_seconds: Spread::of(self.waits.clone()),
            queue_seconds: Spread::of(self.queue_waits.clone()),
            gas: self.gas.iter().map(|(operation, values)| (operation.clone(), Spread::of(values.clone()))).collect(),
            top_nodes: top,
            address: self.muster.address,
            simulated_seconds: self.now - self.began,
        })
    }
}

/// Where the contract's money belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Stakes, those being unbonded included.
    pub stake: U256,
    /// Fees of tasks that have not ended.
    pub escrow: U256,
    /// What accounts can withdraw, returned stakes aside.
    pub credit: U256,
    /// Protocol income not yet paid out.
    pub treasury: U256,
    /// What the address holds.
    pub balance: U256,
}

/// Adds up what every account that the contract's logs mention is owed. `since` is the block the contract is from.
///
/// # Errors
/// The node's.
pub async fn books(chain: &Chain, muster: &Muster, since: U64) -> Result<Books> {
    // Public nodes limit how many blocks one question may span.
    const SPAN: u64 = 5_000;
    let head = chain.provider.get_block_number().await.map_err(|error| chain.trouble(&error))?;
    let mut books = Books::default();
    let mut escrow: HashMap<u64, U256> = HashMap::new();
    let mut accounts: HashSet<Address> = HashSet::new();
    let mut nodes: HashSet<u64> = HashSet::new();
    let mut from = since;
    while from <= head {
        let to = (from + SPAN - 1).min(head);
        let filter = Filter::new().address(muster.address).from_block(from).to_block(to);
        for log in chain.provider.get_logs(&filter).await.map_err(|error| chain.trouble(&error))? {
            let Some(event) = Event::of(&log) else { continue };
            let id = event.number("id");
            match event.name {
                "TaskCreated" => {
                    escrow.insert(id, event.get("fee").and_then(|fee| fee.clone().into_uint()).unwrap_or_default());
                }
                "TaskSucceeded" | "TaskErrorReported" | "TaskAborted" => {
                    escrow.remove(&id);
                }
                "NodeJoined" => {
                    nodes.insert(event.number("node"));
                }
                _ => {}
            }
            let mentioned = ["creator", "operator", "beneficiary", "treasury", "owner"];
            accounts.extend(mentioned.iter().filter_map(|name| event.get(name)?.clone().into_address()));
        }
        from = to + 1;
    }
    let view = |function: &'static str, argument: Token| async move {
        let values = muster.call(chain, function, &[argument]).await?;
        values.into_iter().next().and_then(Token::into_tuple).with_context(|| format!("{function}() returned no struct"))
    };
    books.escrow = escrow.values().fold(U256::zero(), |sum, fee| sum + fee);
    for node in nodes {
        let node = view("node", Token::Uint(node.into())).await?;
        // A node that has quit has no stake any more: it is its operator's.
        if field(&node, 2)? != U256::zero() {
            books.stake += field(&node, 5)?;
        }
    }
    for account in accounts {
        let account = view("account", Token::Address(account)).await?;
        books.credit += field(&account, 0)?;
        books.stake += field(&account, 1)?;
    }
    let overview = muster
        .call(chain, "overview", &[])
        .await?
        .into_iter()
        .next()
        .and_then(Token::into_tuple)
        .context("overview() returned nothing")?;
    books.treasury = field(&overview, 2)?;
    books.balance = chain.provider.get_balance(muster.address, None).await.map_err(|error| chain.trouble(&error))?;
    Ok(books)
}

fn field(values: &[Token], at: usize) -> Result<U256> {
    values
        .get(at)
        .cloned()
        .and_then(Token::into_uint)
        .with_context(|| format!("field {at} of the contract's answer is no number"))
}

fn specification(kind: u8, units: u32, vram: u16, models: &[String], digest: [u8; 32]) -> Token {
    Token::Tuple(vec![
        Token::Uint(kind.into()),
        Token::Uint(units.into()),
        Token::Uint(vram.into()),
        Token::Uint(0.into()),
        Token::Uint(0.into()),
        Token::FixedBytes(digest.to_vec()),
        Token::Array(models.iter().map(|name| Token::Uint(model_id(name).into())).collect()),
    ])
}

/// The first five bytes of the name's hash, as a number.
fn model_id(name: &str) -> u64 {
    keccak256(name)[..5].iter().fold(0, |id, byte| id << 8 | u64::from(*byte))
}

fn creator_of(request: &Request) -> usize {
    usize::from(keccak256(&request.application)[0]) % CREATORS
}

/// Models by how many requests need them, the most wanted first.
fn popularity(requests: &[Request]) -> Vec<(String, u64)> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for model in requests.iter().flat_map(|request| &request.models) {
        *counts.entry(model).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().map(|(name, count)| (name.to_string(), count)).collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_takes_values_that_occurred() {
        let spread = Spread::of(vec![40, 10, 30, 20]);
        assert_eq!((spread.count, spread.min, spread.median, spread.p95, spread.max), (4, 10, 20, 40, 40));
        let spread = Spread::of((1..=100).collect());
        assert_eq!((spread.median, spread.p95), (50, 95));
        assert_eq!(Spread::of(Vec::new()).count, 0);
    }

    #[test]
    fn a_model_is_the_first_five_bytes_of_its_names_hash() {
        // keccak256("") begins with c5d2460186
        assert_eq!(model_id(""), 0xc5_d246_0186);
    }
}
