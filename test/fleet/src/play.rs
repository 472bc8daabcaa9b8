//! A network of agents that compute embeddings: tasks of every policy, while agents are killed and started again, the endpoint is
//! away for a while, one node cheats and one is slow. Most inputs and results are in a bucket and on IPFS, of which one store fails at a time.
//! Every task ends, no wei is lost, and the results are right.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy::primitives::U256;
use anyhow::{bail, ensure, Context, Result};
use muster_client::{abi, digest_of, Account, Bounds, Cursor, Events, IMuster, Lookup, Outcome, Reading, Stores};
use rand::{rngs::StdRng, Rng, SeedableRng};

use crate::ledger::{self, Ledger, Vitals};
use crate::site::{self, Agent, Running, Site};
use crate::stores::{Failing, Failure, S3};
use crate::wire::Wire;
use crate::world::LEAST;

const MODEL: &str = "sentence-transformers/all-MiniLM-L6-v2";
/// Where the executors are.
const EXECUTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/agent/executors");
/// The fee of a task, in wei.
const FEE: u64 = 100_000;
/// Each account's ether for gas beside the site's gift, in wei: enough for days.
const GAS: u64 = 1_000_000_000_000_000_000;
/// Different inputs: their answers are computed once more here.
const TEXTS: u32 = 24;
/// Where inputs are: a third of them is in the directory, the first of these places.
const PLACES: u32 = 3;
/// A block of a second is mined so often: time goes twice as fast as here.
const BLOCK: Duration = Duration::from_millis(500);
/// One that has ended by itself is started again after so long, as by `RestartSec` of the unit.
const RESTART: Duration = Duration::from_secs(5);
/// So often another store fails.
const TURN: Duration = Duration::from_secs(3);
/// So often something is said of how far it is.
const NEWS: Duration = Duration::from_secs(20);

/// The play.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Agents, a process each. The first cheats, the second is slow.
    pub agents: usize,
    /// Tasks, a quarter under each policy.
    pub tasks: u32,
    /// Tasks are created for so long at least, also beyond their number.
    pub lasts: Duration,
    /// An agent is killed so often; the first two are left alone.
    pub kills: Duration,
    /// And is away for so long.
    pub away: Duration,
    /// The endpoint is away for so long, once.
    pub outage: Duration,
    /// It has failed if it takes longer.
    pub patience: Duration,
}

/// A process with one node.
struct Member {
    agent: Agent,
    number: u32,
    running: Option<Running>,
}

impl Member {
    async fn new(site: &mut Site, at: usize, url: &str, python: &str, failing: &Failing) -> Self {
        let behaviour = match at {
            0 => "cheats",
            1 => "slow 4",
            _ => "honest",
        };
        // Enough to be slashed a few times.
        let stake = 2 * LEAST;
        let mut agent = site.agent_with(&format!("gpu{at}"), stake, stake + GAS).await;
        let deviate = concat!(env!("CARGO_MANIFEST_DIR"), "/deviate.py");
        agent.executor = format!(
            "command = [{python:?}, \"-B\", {deviate:?}, {behaviour:?}, {python:?}, \"-B\", \"{EXECUTORS}/embeddings/executor.py\"]\n\
             golden = \"{EXECUTORS}/embeddings/golden\"\nready_within = 120"
        );
        agent.node_more = format!("models = [{MODEL:?}]");
        agent.url = url.into();
        agent.drive_within = 2;
        let directory = site.place.path().join("store").display().to_string();
        let (put, more) = if puts_elsewhere(at) {
            let published = failing.published(&agent.name);
            agent.environment = S3::keys();
            (failing.stores(&agent.name).to_vec(), format!("publish = {published:?}"))
        } else {
            (vec![directory.clone()], String::new())
        };
        agent.stores = Some(format!("get = [{directory:?}]\nput = {put:?}\n{more}\nprivate_hosts = [\"127.0.0.1\"]"));
        agent.configure(site);
        Self { agent, number: 0, running: None }
    }

    fn start(&mut self) {
        self.running = Some(self.agent.start(None));
    }

    fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.kill();
        }
    }

    /// The last lines of its log.
    fn log(&self) -> String {
        let text = self.agent.log();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// How much its process uses; none while it is away, or where there is no /proc.
    fn vitals(&self) -> Option<Vitals> {
        Vitals::of(self.running.as_ref()?.0.id(), &self.agent.home.join("state"))
    }
}

/// Whether an agent puts its results into the stores that fail; the others have a directory.
fn puts_elsewhere(at: usize) -> bool {
    at % 4 != 3
}

/// Puts the inputs into the directory, into both parts of the bucket, or on IPFS and into the bucket: a third of them each. Agents find the
/// directory by themselves, and the others as the application publishes them.
async fn put_inputs(directory: &Stores, failing: &Failing, application: &Account) -> Result<()> {
    let [ipfs, one, other] = failing.stores_with_keys("inputs");
    let open = |stores: [&String; 2]| Stores::open(&stores, Bounds::default());
    let places = [directory.clone(), open([&one, &other])?, open([&ipfs, &other])?];
    for text in 0..TEXTS {
        let (_, missed) = places[(text % PLACES) as usize].put(input(text).as_bytes()).await?;
        ensure!(missed.is_empty(), "input {text} is not in all its stores: {missed:?}");
    }
    let uris = failing.published("inputs").join(" ");
    application.call(IMuster::setStoresCall { uris }, U256::ZERO).await?;
    Ok(())
}

/// The Python that the executors run with.
fn python() -> Result<String> {
    let output = Command::new(format!("{EXECUTORS}/prepare.sh")).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "the executors cannot be prepared (see above)");
    Ok(String::from_utf8(output.stdout)?.trim().to_string())
}

fn input(text: u32) -> String {
    format!("{{\"texts\":[\"the {text}th of some texts\",\"{}\"]}}", "and more words ".repeat(text as usize % 7))
}

/// The executor's own answers to the inputs.
fn expected(python: &str, place: &Path) -> Result<Vec<Vec<u8>>> {
    let mut child = Command::new(python)
        .args(["-B", &format!("{EXECUTORS}/embeddings/executor.py")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("the executor does not start")?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
    let mut hear = |word: &str| -> Result<()> {
        let line = lines.next().context("the executor has ended")??;
        ensure!(line.contains(word), "the executor says {line}");
        Ok(())
    };
    hear("ready")?;
    let (from, to) = (place.join("direct.in"), place.join("direct.out"));
    let mut answers = Vec::new();
    for text in 0..TEXTS {
        fs::write(&from, input(text))?;
        let run = serde_json::json!({ "run": { "id": "1", "kind": "gpt", "units": 1, "models": [], "input": from, "output": to, "deadline": 0 } });
        writeln!(stdin, "{run}")?;
        hear("done")?;
        answers.push(fs::read(&to)?);
    }
    drop(stdin);
    child.wait()?;
    Ok(answers)
}

/// The agents join, one after the other: loading twenty models at once takes longer.
async fn join(site: &mut Site, members: &mut [Member], patience: Duration) -> Result<u32> {
    for member in members.iter_mut() {
        member.start();
        let begun = Instant::now();
        while member.number == 0 {
            ensure!(begun.elapsed() < patience, "{} does not join:\n{}", member.agent.name, member.log());
            tokio::time::sleep(Duration::from_millis(100)).await;
            member.number = site.node_of(member.agent.key).await;
        }
    }
    let group = site.view(members[0].number).await.gpu;
    ensure!(group > 0, "the first node has no GPU group");
    for member in members.iter() {
        let view = site.view(member.number).await;
        ensure!(view.gpu == group, "the golden tasks of {} come to something else", member.agent.name);
    }
    site.world.rule(IMuster::listGpuGroupCall { group, listed: true }).await;
    for member in members.iter() {
        let view = site.view(member.number).await;
        ensure!(view.status == 1, "{} is not ready:\n{}", member.agent.name, member.log());
    }
    Ok(group)
}

/// The contract's view of nodes and of waiting tasks.
async fn state(site: &Site, members: &[Member]) -> String {
    let mut lines = Vec::new();
    for member in members {
        lines.push(format!("{:?}", site.view(member.number).await));
    }
    lines.push(format!("{:?}", site.muster.read(IMuster::overviewCall {}).await));
    lines.push(format!("{:?}", site.muster.read(IMuster::pendingTasksCall { from: 0, count: 20 }).await));
    lines.push(format!("{:?}", site.muster.read(IMuster::validatorDrawsCall { from: 0, count: 20 }).await));
    lines.join("\n")
}

/// Blocks that come by themselves, as on a chain that others use as well; until it is dropped.
struct Clock {
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Clock {
    fn start(node: &'static muster_devnode::Devnode) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let stop = over.clone();
        let thread = std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                // A call that fails once fails again, and everything that waits for a block sees it.
                let _ = node.chain().increase_time(1);
                let _ = node.chain().mine(1, 0);
                std::thread::sleep(BLOCK);
            }
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Plays it, and returns the results.
///
/// # Errors
/// If it cannot be played, or takes longer than it may. [`Report::verify`] judges the results.
pub async fn play(plan: Plan, say: impl Fn(&str)) -> Result<Report> {
    ensure!(plan.agents >= 5, "a validated group takes three nodes beside the cheat and the slow one: at least 5 agents");
    let began = Instant::now();
    let python = python()?;
    let parameters = [("scorePool", 3), ("sampleBps", 5_000), ("minPrice", 1), ("alphaMilli", 4_000)];
    let mut site = Site::new(&parameters).await;
    let answers = expected(&python, site.place.path())?;
    let mut wire = Wire::start(&site.url).await;
    let _clock = Clock::start(site.world.node.context("time goes on its own way, on a node in this process")?);

    let mut failing = Failing::start(&site.place.path().join("s3")).await;
    let mut members = Vec::new();
    for at in 0..plan.agents {
        members.push(Member::new(&mut site, at, &wire.url, &python, &failing).await);
    }
    let group = join(&mut site, &mut members, plan.patience).await?;
    let joining = began.elapsed();
    say(&format!("{} agents joined after {:.0} s", plan.agents, joining.as_secs_f64()));

    let application = site.account(GAS).await;
    ask_for_few(&application).await?;
    put_inputs(&site.store(), &failing, &application).await?;
    let cursor = Cursor::new(site.muster.endpoints().chain().await?, site.muster.address(), site.start);
    let mut events = Events::with_cursor(site.muster.endpoints().clone(), cursor, Reading::default()).await?;
    let mut ledger = Ledger::default();
    let mut chance = StdRng::seed_from_u64(16);
    let (mut created, mut killed, mut gone) = (0, 0, None::<(usize, Instant)>);
    let (mut next_kill, mut outage) = (Instant::now() + plan.kills, Some(plan.tasks / 2));
    let mut asked: BTreeMap<u64, (u32, u8)> = BTreeMap::new();
    let first: Vec<_> = members.iter().map(Member::vitals).collect();
    let mut again = vec![Instant::now(); members.len()];
    let (playing, mut news, mut reached) = (Instant::now(), Instant::now(), None);
    failing.turn();
    let mut turned = Instant::now();
    let going = |created: u32| created < plan.tasks || playing.elapsed() < plan.lasts;
    while going(created) || !ledger.is_over(created) {
        if began.elapsed() > plan.patience {
            let open: Vec<_> = asked.keys().filter(|id| !ledger.ends.contains_key(id)).collect();
            let logs: Vec<_> = members.iter().map(Member::log).collect();
            let state = state(&site, &members).await;
            bail!("{created} tasks created, {} ended; not: {open:?}\n{state}\n{}", ledger.ends.len(), logs.join("\n--\n"));
        }
        // As many at once as there are nodes, and some that wait.
        while going(created) && created as usize - ledger.ends.len() < plan.agents * 2 {
            let (text, redundancy) = (chance.gen_range(0..TEXTS), (created % 4) as u8);
            let models = if redundancy == 0 { vec![abi::model_id(MODEL)] } else { vec![] };
            let gpu = if redundancy == 0 { 0 } else { group };
            let digest = digest_of(input(text).as_bytes());
            let spec = IMuster::TaskSpec { gpu, redundancy, models, flags: 0, inputDigest: digest, ..site::gpt(0) };
            let id = site.create(&application, spec, FEE).await;
            asked.insert(id, (text, redundancy));
            created += 1;
        }
        ledger.follow(&mut events).await;
        if reached.is_none() && ledger.ends.len() as u32 >= plan.tasks {
            reached = Some(playing.elapsed());
        }
        if news.elapsed() > NEWS {
            news = Instant::now();
            say(&format!("{created} tasks created, {} ended, {killed} kills", ledger.ends.len()));
        }
        if turned.elapsed() > TURN {
            failing.turn();
            turned = Instant::now();
        }
        // As a service manager does: one that is started while the endpoint is away ends.
        for (at, member) in members.iter_mut().enumerate() {
            let ended = member.running.as_mut().and_then(Running::ended);
            if ended.is_some() && again[at].elapsed() > RESTART {
                again[at] = Instant::now();
                member.start();
            }
        }
        if let Some((at, _)) = gone.filter(|(_, since)| since.elapsed() > plan.away) {
            members[at].start();
            gone = None;
        }
        if gone.is_none() && Instant::now() > next_kill && going(created) {
            // The cheat is left alone: it is to be slashed for its answers, not for missing ones.
            let at = chance.gen_range(2..members.len());
            members[at].kill();
            (gone, next_kill, killed) = (Some((at, Instant::now())), Instant::now() + plan.kills, killed + 1);
        }
        if outage.is_some_and(|at| ledger.ends.len() as u32 >= at) {
            outage = None;
            say(&format!("the endpoint is away for {:?}", plan.outage));
            wire.cut_for(plan.outage).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    if let Some((at, _)) = gone {
        members[at].start();
    }
    let took = playing.elapsed();
    let last: Vec<_> = members.iter().map(Member::vitals).collect();

    // Results, as an application gets them, while IPFS lies.
    let mut kept = Kept { failures: failing.failures, ..Kept::default() };
    failing.fails(Failure::Lies);
    let lookup = Lookup { configured: site.store(), inside: true, ..Lookup::default() };
    let all = site.events().await;
    let outcomes: Vec<_> = asked.keys().filter_map(|id| Outcome::of(*id, &all)).collect();
    let (mut right, mut wrong) = (BTreeSet::new(), Vec::new());
    for outcome in &outcomes {
        let found = site.muster.result(outcome, &lookup).await?;
        kept.buckets += usize::from(found.store.starts_with("http://"));
        let text = asked[&outcome.id].0;
        if found.bytes == answers[text as usize] {
            right.insert(outcome.id);
        } else {
            wrong.push((outcome.id, outcome.answers[0].node));
        }
    }
    kept.lies = failing.ipfs.lied();
    // Those that are on IPFS once more, while a part of the bucket is away.
    failing.fails(Failure::Cut(0));
    for outcome in outcomes.iter().filter(|outcome| failing.ipfs.has(outcome.answers[0].value)) {
        let found = site.muster.result(outcome, &lookup).await?;
        kept.ipfs += usize::from(found.store.starts_with("ipfs+"));
    }

    let keys: Vec<_> = members.iter().map(|member| (member.number, member.agent.key)).collect();
    let parts = ledger::parts(&site, &keys, &application).await;
    let balance = ledger::balance(&site).await;
    let views = futures_util::future::join_all(members.iter().map(|member| site.view(member.number))).await;
    Ok(Report {
        numbers: (members[0].number, members[1].number),
        plan,
        joining,
        reached: reached.unwrap_or(took),
        took,
        created,
        killed,
        right,
        wrong,
        kept,
        asked,
        ledger,
        views,
        parts,
        balance,
        vitals: first.into_iter().zip(last).collect(),
    })
}

/// By default a rated task asks for seven nodes that could run it. Three are always there, though the cheat is paused once it is slashed.
async fn ask_for_few(application: &Account) -> Result<()> {
    let profile = IMuster::Profile {
        algorithm: 1,
        least: 3,
        most: 3,
        reschedules: 2,
        targeting: 2,
        target: 900_000_000_000_000_000,
        alpha: 500_000_000_000_000_000,
        period: 300,
    };
    application.call(IMuster::setProfileCall { profile }, U256::ZERO).await?;
    Ok(())
}

/// The use of the stores that fail.
#[derive(Default)]
struct Kept {
    /// Results that were read out of a bucket, and out of IPFS.
    buckets: usize,
    ipfs: usize,
    /// Wrong bytes that IPFS gave to agents and readers.
    lies: u32,
    /// Failures, one after the other.
    failures: usize,
}

/// The results.
pub struct Report {
    plan: Plan,
    joining: Duration,
    /// When as many tasks had ended as were planned.
    reached: Duration,
    took: Duration,
    created: u32,
    killed: u32,
    /// Tasks whose result equals the executor's answer when it is asked directly.
    right: BTreeSet<u64>,
    /// Tasks with another result, and the node that gave it.
    wrong: Vec<(u64, u32)>,
    kept: Kept,
    asked: BTreeMap<u64, (u32, u8)>,
    ledger: Ledger,
    views: Vec<IMuster::NodeView>,
    parts: Vec<(&'static str, U256)>,
    balance: U256,
    /// The cheat's and the slow one's.
    numbers: (u32, u32),
    /// Of each agent, at the beginning and at the end.
    vitals: Vec<(Option<Vitals>, Option<Vitals>)>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policies = self.asked.iter().map(|(id, (_, policy))| (*id, *policy)).collect();
        writeln!(f, "{}\n", self.ledger.table(&policies))?;
        writeln!(f, "{}\n", ledger::nodes(&self.views, &self.ledger, self.numbers))?;
        writeln!(f, "{}\n", ledger::money(&self.parts, self.balance))?;
        if let Some(table) = ledger::processes(&self.vitals) {
            writeln!(f, "{table}\n")?;
        }
        writeln!(
            f,
            "{} tasks by {} agents, which had joined after {:.0} s, in {:.0} s; the first {} in {:.0} s",
            self.created,
            self.plan.agents,
            self.joining.as_secs_f64(),
            self.took.as_secs_f64(),
            self.plan.tasks,
            self.reached.as_secs_f64(),
        )?;
        let elsewhere = self.asked.values().filter(|(text, _)| text % PLACES != 0).count();
        writeln!(
            f,
            "{elsewhere} inputs and {} results in a bucket, {} of the results on IPFS too; {} failures of these stores, {} times wrong bytes",
            self.kept.buckets, self.kept.ipfs, self.kept.failures, self.kept.lies,
        )?;
        write!(
            f,
            "{} kills, an outage of {} s; {} right results, {} wrong ones of the cheat's that nobody checked",
            self.killed,
            self.plan.outage.as_secs(),
            self.right.len(),
            self.wrong.len(),
        )
    }
}

impl Report {
    /// Checks the claims, and that an agent was killed and the stores failed, for which a short play may have no time.
    ///
    /// # Errors
    /// Names the first claim that does not hold.
    pub fn verify(&self) -> Result<()> {
        self.holds()?;
        ensure!(self.killed > 0, "no agent was killed");
        let Kept { buckets, ipfs, lies, failures } = self.kept;
        ensure!(buckets > 0 && ipfs > 0, "{buckets} results were read out of a bucket, and {ipfs} out of IPFS");
        ensure!(lies > 0 && failures > 3, "IPFS lied {lies} times, and there were {failures} failures of stores");
        Ok(())
    }

    /// Checks the claims that hold of a play of any length.
    ///
    /// # Errors
    /// Names the first claim that does not hold.
    pub fn holds(&self) -> Result<()> {
        let (cheat, slow) = self.numbers;
        for (id, by) in &self.wrong {
            let policy = self.asked[id].1;
            ensure!(*by == cheat, "task {id} of policy {policy} has a wrong result, of honest node {by}");
            ensure!(!self.ledger.settled.contains(id), "task {id} of policy {policy} was judged, and the wrong answer won");
        }
        let unproved: Vec<_> = self.ledger.settled.difference(&self.right).collect();
        ensure!(unproved.is_empty(), "tasks {unproved:?} were judged, and have no result that is right");
        let sum = self.parts.iter().map(|(_, wei)| *wei).sum::<U256>();
        ensure!(sum == self.balance, "the contract holds {} wei, and owes {sum}", self.balance);
        let burnt = self.parts.iter().find(|(name, _)| *name == "burnt").map_or(U256::ZERO, |(_, wei)| *wei);
        let slashed = U256::from(self.ledger.slashed.values().sum::<u128>());
        ensure!(slashed == burnt, "{slashed} wei were taken of nodes, and {burnt} are burnt");
        ensure!(self.ledger.ends.len() as u32 == self.created, "{} of {} tasks ended", self.ledger.ends.len(), self.created);
        ensure!(self.ledger.slashed.contains_key(&cheat), "the cheat was not slashed");
        let others: BTreeSet<_> = self.ledger.slashed.keys().filter(|node| **node != cheat).collect();
        ensure!(others.is_empty(), "honest nodes were slashed: {others:?}");
        let honest: Vec<_> = self.views.iter().filter(|view| ![cheat, slow].contains(&view.node) && view.scores > 0).collect();
        ensure!(!honest.is_empty(), "no honest node has a score");
        let mean = honest.iter().map(|view| u128::from(view.longTerm)).sum::<u128>() / honest.len() as u128;
        let late = self.views.iter().find(|view| view.node == slow).context("the slow node is there")?;
        ensure!(late.scores > 0, "the slow node has no score");
        ensure!(u128::from(late.longTerm) < mean, "the slow node has {}, the others {mean} in the mean", late.longTerm);
        // Codes of an input that no store gives, and of stores that are away.
        let missed: Vec<_> =
            self.ledger.ends.iter().filter(|(_, (how, _))| ["error 4", "error 5"].contains(&how.as_str())).collect();
        ensure!(missed.is_empty(), "tasks ended without their inputs, which another store had: {missed:?}");
        // A node that computes nothing is free soonest, so the cheat's share of the unchecked tasks depends on the machine.
        let results = self.right.len() + self.wrong.len();
        ensure!(results as f64 > 0.8 * f64::from(self.created), "{results} of {} tasks have a result", self.created);
        Ok(())
    }
}
