//! The waits of a task, and of a card: agents on a chain that makes blocks by the clock, reached over a wire that takes its time, with
//! executors that sleep. Everything runs on one machine, so one clock tells of all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use alloy::primitives::{Address, B256, U256};
use alloy::sol_types::SolCall;
use anyhow::{bail, ensure, Context, Result};
use muster_client::{abi, Event, IMuster, BATCH, DISPATCH};
use muster_devnode::chain::Clock;
use muster_devnode::{Config, Devnode};

use crate::site::{gpt, Agent, Running, Site};
use crate::wire::Wire;
use crate::world::{World, LEAST, STAKE_UNIT};

/// The ether of an account here for its gas, in wei.
const GAS: u64 = 500_000_000_000_000_000;
/// The fee of a task of the full queue, in wei; one of three nodes pays it for each.
const FEE: u64 = 1_000;
/// The input of every task.
const INPUT: &str = "latency";
/// How long anything may take beyond what it is to take.
const PATIENCE: Duration = Duration::from_mins(4);

/// Under which conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// Milliseconds between two blocks.
    pub block: u64,
    /// Milliseconds to the endpoint, each way.
    pub delay: u64,
    /// Whether agents hear of blocks by WebSocket; else they ask.
    pub push: bool,
    /// Nodes that share a card.
    pub nodes: usize,
}

/// Milliseconds since 1970.
fn now() -> f64 {
    UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64() * 1_000.0
}

/// The events of the chain, and the times of their blocks.
type Timeline = Arc<Mutex<Vec<(f64, Event)>>>;

/// The draws of tasks that were waiting for one, as they were made.
type Drawn = Arc<Mutex<Vec<Draw>>>;

/// A draw of a task's node, or of a group's.
#[derive(Clone, Copy, Debug)]
struct Draw {
    /// The call that made it, and whose it was.
    selector: [u8; 4],
    from: Address,
    /// Blocks from the first that could have had it.
    waited: u64,
    gas: u64,
}

/// The callers that made the draws while an application made none, and how long they were waited for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Draws {
    /// How many there were.
    pub all: usize,
    /// How many were made by a call that the sender had to make for something else.
    pub beside: usize,
    /// How many by agents, by calls for nothing else.
    pub agents: usize,
    /// Blocks from the first that could have had it, in the middle, and at the 95th percentile.
    pub waited: [f64; 2],
    /// Gas of those of agents for nothing else, in the middle.
    pub gas: f64,
}

/// A network on a chain of its own.
pub struct Scene {
    /// Under which conditions.
    pub conditions: Conditions,
    node: &'static Devnode,
    site: Site,
    /// The agents' way to the node, and the applications'.
    wires: (Wire, Wire),
    agents: Vec<(Agent, Running)>,
    timeline: Timeline,
    drawn: Drawn,
    crowd: muster_client::Account,
    /// The applications, by their keys.
    application: B256,
}

/// A run of an executor.
#[derive(Clone, Copy, Debug)]
struct Run {
    task: u64,
    begun: f64,
    ended: f64,
}

/// A task of an idle node, in milliseconds since it was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Single {
    /// Its creation was in a block.
    pub created: f64,
    /// Its node was drawn.
    pub started: f64,
    /// The executor began.
    pub begun: f64,
    /// The executor was done.
    pub ended: f64,
    /// The answer was in a block.
    pub answered: f64,
    /// The time at which the application has seen that.
    pub seen: f64,
}

/// The time of cards while tasks waited for them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Busy {
    /// The part of the time in which a card worked.
    pub share: f64,
    /// Milliseconds between two tasks of a node, in the middle.
    pub gap: f64,
    /// Its parts, of the tasks that are answered without a commitment. The first is from the executor's end to the block with the answer.
    /// The second is from there to the block that started the next task (0 if it is the same), the third from there to the executor's
    /// beginning.
    pub parts: [f64; 3],
    /// Requests a second of an agent.
    pub requests: f64,
}

impl Scene {
    /// Agents that have joined and are idle, each with a card of its own.
    pub async fn new(conditions: Conditions, cards: usize, agent_lines: &str, bps: u64) -> Result<Self> {
        let mut config = Config::default();
        config.chain.clock = Clock::System;
        // It runs as long as this process: everything of a scene refers to it.
        let node: &'static Devnode = Box::leak(Box::new(Devnode::start(config)?));
        // All that is created at once may wait.
        let parameters = [("alphaMilli", 100_000_000), ("minPrice", 1), ("sampleBps", bps)];
        let world = World::on(Some(node), (STAKE_UNIT, LEAST.into()), None, &parameters).await;
        let mut site = Site::of(world, &parameters).await;
        let delay = Duration::from_millis(conditions.delay);
        let wires = (Wire::slow(&site.url, delay).await, Wire::slow(&site.url, delay).await);
        let crowd = site.account(GAS).await;
        let application = site.key(GAS).await;
        site.store().put(INPUT.as_bytes()).await?;
        let mut agents = Vec::new();
        for at in 0..cards {
            let mut agent = site.agent_with(&format!("gpu{at}"), LEAST, GAS).await;
            for _ in 1..conditions.nodes {
                agent.others.push(site.key(GAS).await);
            }
            fs::write(agent.home.join("seconds"), "0.1")?;
            agent.executor = format!(
                "command = [\"python3\", \"{}\", \"{}\", \"{}\"]\nready_within = 60",
                concat!(env!("CARGO_MANIFEST_DIR"), "/sleeper.py"),
                agent.home.join("seconds").display(),
                agent.home.join("runs").display(),
            );
            agent.url = wires.0.url.clone();
            agent.more = format!("{}{agent_lines}", if conditions.push { "" } else { "ws = []\n" });
            agent.configure_usual(&site);
            let running = agent.start(None);
            agents.push((agent, running));
        }
        let (timeline, drawn) = follow(node);
        let mut scene = Self { conditions, node, site, wires, agents, timeline, drawn, crowd, application };
        scene.join().await?;
        node.chain().set_automine(false);
        node.chain().set_interval(conditions.block)?;
        Ok(scene)
    }

    /// Waits until all have joined and may be drawn, and lets their answers be compared.
    async fn join(&mut self) -> Result<()> {
        let begun = Instant::now();
        let of =
            |at: usize, agent: &Agent| [vec![agent.key], agent.others.clone()].concat().into_iter().map(move |key| (at, key));
        let keys: Vec<(usize, B256)> = self.agents.iter().enumerate().flat_map(|(at, (agent, _))| of(at, agent)).collect();
        let mut ready = 0;
        while ready < keys.len() {
            let (at, key) = keys[ready];
            let (agent, running) = &mut self.agents[at];
            ensure!(begun.elapsed() < PATIENCE && running.ended().is_none(), "{} does not join:\n{}", agent.name, agent.log());
            let number = self.site.node_of(key).await;
            let tested = agent.log().matches("the self-test passed").count() > agent.others.len();
            if number > 0 && self.site.view(number).await.status == 1 && tested {
                ready += 1;
                let group = self.site.view(number).await.gpu;
                if ready == keys.len() {
                    self.site.world.rule(IMuster::listGpuGroupCall { group, listed: true }).await;
                }
                continue;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    fn sleep_for(&self, seconds: f64) -> Result<()> {
        for (agent, _) in &self.agents {
            fs::write(agent.home.join("seconds"), seconds.to_string())?;
        }
        Ok(())
    }

    /// When something first happened.
    fn when(&self, is: impl Fn(&Event) -> bool) -> Option<f64> {
        let timeline = self.timeline.lock().unwrap_or_else(PoisonError::into_inner);
        timeline.iter().find(|(_, event)| is(event)).map(|(at, _)| *at)
    }

    fn runs(agent: &Agent) -> Vec<Run> {
        let text = fs::read_to_string(agent.home.join("runs")).unwrap_or_default();
        let run = |line: &str| {
            let mut words = line.split_whitespace();
            let task = words.next()?.parse().ok()?;
            let mut time = || words.next()?.parse::<f64>().ok().map(|seconds| seconds * 1_000.0);
            Some(Run { task, begun: time()?, ended: time()? })
        };
        // The last may be half written.
        text.lines().filter_map(run).collect()
    }

    /// The client, by the time after it: tasks one after the other, and the parts of the time of each.
    async fn singles(&self, mut command: tokio::process::Command) -> Result<Vec<(u64, f64, f64)>> {
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().await?;
        ensure!(output.status.success(), "an application fails:\n{}", String::from_utf8_lossy(&output.stdout));
        let text = String::from_utf8(output.stdout)?;
        let mut told = Vec::new();
        for line in text.lines().filter(|line| line.contains("\"asked\"")) {
            let value: serde_json::Value = serde_json::from_str(line)?;
            ensure!(value["status"] == "succeeded", "a task did not succeed: {line}");
            let number = |name: &str| value[name].as_f64().with_context(|| format!("no {name} in {line}"));
            told.push((number("id")? as u64, number("asked")?, number("seen")?));
        }
        Ok(told)
    }

    fn single(&self, (task, asked, seen): (u64, f64, f64)) -> Result<Single> {
        let run = self.agents.iter().flat_map(|(agent, _)| Self::runs(agent)).find(|run| run.task == task);
        let run = run.with_context(|| format!("task {task} was not run"))?;
        let of = |what: &str, is: &dyn Fn(&Event) -> bool| self.when(is).with_context(|| format!("task {task}: no {what}"));
        let created = of("creation", &|event| matches!(event, Event::TaskCreated(e) if e.id == task))?;
        let started = of("start", &|event| matches!(event, Event::TaskStarted(e) if e.id == task))?;
        let answered = of("answer", &|event| matches!(event, Event::TaskSucceeded(e) if e.id == task))?;
        Ok(Single {
            created: created - asked,
            started: started - asked,
            begun: run.begun - asked,
            ended: run.ended - asked,
            answered: answered - asked,
            seen: seen - asked,
        })
    }

    /// Tasks that sleep so long, asked for by the TypeScript package as it is by default.
    ///
    /// # Errors
    /// If one does not succeed.
    pub async fn by_package(&self, count: usize, seconds: f64) -> Result<Vec<Single>> {
        self.sleep_for(seconds)?;
        let mut node = tokio::process::Command::new("node");
        node.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../clients/latency.mjs")).arg(count.to_string());
        node.envs([
            ("RPC_URL", self.wires.1.url.clone()),
            ("CHAIN_ID", self.site.muster.endpoints().chain().await?.to_string()),
            ("MUSTER", self.site.muster.address().to_string()),
            ("PRIVATE_KEY", self.application.to_string()),
        ]);
        self.singles(node).await?.into_iter().map(|told| self.single(told)).collect()
    }

    /// The same by `muster task create --follow`, the process included.
    ///
    /// # Errors
    /// If one does not succeed.
    pub async fn by_command_line(&self, count: usize, seconds: f64) -> Result<Vec<Single>> {
        self.sleep_for(seconds)?;
        let input = self.site.place.path().join("input");
        fs::write(&input, INPUT)?;
        let mut singles = Vec::new();
        for at in 0..count {
            let mut command = tokio::process::Command::new(beside("muster"));
            command.args(["--json", "task", "create", "--kind", "gpt", "--follow", "--input"]).arg(&input).env_clear();
            command.env("MUSTER_HOME", self.site.place.path().join("home")).env("ETH_RPC_URL", &self.wires.1.url);
            command.env("MUSTER", self.site.muster.address().to_string()).env("PRIVATE_KEY", self.application.to_string());
            let asked = now();
            let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().await?;
            let seen = now();
            let text = String::from_utf8_lossy(&output.stdout);
            ensure!(output.status.success(), "the command line fails:\n{text}");
            let id = text.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next()?.parse().ok());
            singles.push(self.single((id.with_context(|| format!("no id in\n{text}"))?, asked, seen))?);
            // At any moment between two blocks.
            tokio::time::sleep(Duration::from_millis(1_000 + 137 * (at as u64 % 7))).await;
        }
        Ok(singles)
    }

    /// Requests a second of an agent that nothing happens to.
    pub async fn idle(&self, within: Duration) -> f64 {
        // Earlier requests are over.
        tokio::time::sleep(Duration::from_secs(8)).await;
        let (before, begun) = (self.wires.0.requests(), Instant::now());
        tokio::time::sleep(within).await;
        (self.wires.0.requests() - before) as f64 / begun.elapsed().as_secs_f64() / self.agents.len() as f64
    }

    /// Creates so many tasks at once, and measures the cards until they have run them all.
    ///
    /// # Errors
    /// If that does not come to an end.
    pub async fn busy(&self, policy: u8, seconds: f64, each: usize) -> Result<Busy> {
        self.sleep_for(seconds)?;
        // A task of three nodes takes three cards' time.
        let taken = if policy < 2 { 1 } else { 3 };
        let count = (each * self.agents.len()).div_ceil(taken);
        let before: Vec<usize> = self.agents.iter().map(|(agent, _)| Self::runs(agent).len()).collect();
        let group = self.site.view(self.site.node_of(self.agents[0].0.key).await).await.gpu;
        let (digest, _) = self.site.store().put(INPUT.as_bytes()).await?;
        let gpu = if policy == 0 { 0 } else { group };
        let spec = IMuster::TaskSpec { inputDigest: digest, gpu, flags: 0, ..gpt(policy) };
        let fee = u128::from(FEE) * taken as u128;
        let mut ids = BTreeSet::new();
        while ids.len() < count {
            let some = (count - ids.len()).min(BATCH);
            let (_, created) = self.crowd.create_tasks(&vec![(spec.clone(), fee); some], true).await?;
            for id in created {
                ids.insert(id.map_err(|refusal| anyhow::anyhow!("a task is refused: {refusal}"))?);
            }
        }
        // Until all are drawn or queued: from then on nobody but the agents does anything.
        while self.site.muster.read(IMuster::overviewCall {}).await?.pending > 0 {
            let _ = self.crowd.call(IMuster::dispatchCall { count: DISPATCH }, U256::ZERO).await;
        }
        let (requests, begun) = (self.wires.0.requests(), Instant::now());
        let most = PATIENCE + Duration::from_secs_f64((seconds + 15.0) * each as f64);
        let mut seen = 0;
        while !ids.is_empty() {
            ensure!(begun.elapsed() < most, "tasks {ids:?} have not ended after {most:?}\n{}", self.logs());
            tokio::time::sleep(Duration::from_millis(20)).await;
            let timeline = self.timeline.lock().unwrap_or_else(PoisonError::into_inner);
            for (_, event) in &timeline[seen..] {
                match event {
                    Event::TaskSucceeded(e) => drop(ids.remove(&e.id)),
                    Event::GroupSettled(e) if e.outcome < 2 => drop(ids.remove(&e.id)),
                    Event::TaskErrorReported(_) | Event::TaskAborted(_) | Event::GroupSettled(_) => {
                        bail!("a task has come to nothing: {event:?}\n{}", self.logs());
                    }
                    _ => {}
                }
            }
            seen = timeline.len();
        }
        let requests = (self.wires.0.requests() - requests) as f64 / begun.elapsed().as_secs_f64() / self.agents.len() as f64;
        let (mut worked, mut lasted, mut gaps, mut parts) = (0.0, 0.0, Vec::new(), [const { Vec::new() }; 3]);
        for ((agent, _), before) in self.agents.iter().zip(before) {
            let runs = &Self::runs(agent)[before..];
            // The first begins while the queue is being filled.
            for pair in runs.windows(2) {
                let [one, next] = pair else { continue };
                worked += next.ended - next.begun;
                lasted += next.ended - one.ended;
                gaps.push(next.begun - one.ended);
                let answered = self.when(|event| matches!(event, Event::TaskSucceeded(e) if e.id == one.task));
                let started = self.when(|event| matches!(event, Event::TaskStarted(e) if e.id == next.task));
                if let (0, 1, Some(answered), Some(started)) = (policy, self.conditions.nodes, answered, started) {
                    parts[0].push(answered - one.ended);
                    parts[1].push(started - answered);
                    parts[2].push(next.begun - started);
                }
            }
        }
        ensure!(lasted > 0.0, "there are too few runs to compare");
        Ok(Busy { share: worked / lasted, gap: median(&gaps), parts: parts.map(|part| median(&part)), requests })
    }

    /// Creates tasks one after the other, a random while between, `every` on average, and never draws: others do, until all have ended.
    ///
    /// # Errors
    /// If they do not.
    pub async fn draws(&self, policies: &[u8], seconds: f64, every: Duration, count: usize) -> Result<Draws> {
        self.sleep_for(seconds)?;
        let group = self.site.view(self.site.node_of(self.agents[0].0.key).await).await.gpu;
        let (digest, _) = self.site.store().put(INPUT.as_bytes()).await?;
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner).clear();
        for at in 0..count {
            let policy = policies[at % policies.len()];
            let gpu = if policy == 0 { 0 } else { group };
            let spec = IMuster::TaskSpec { inputDigest: digest, gpu, flags: 0, ..gpt(policy) };
            let fee = u128::from(FEE) * if policy < 2 { 1 } else { 3 };
            let created = self.crowd.call(IMuster::createTaskCall { spec }, U256::from(fee)).await;
            created.context("a task cannot be created")?;
            tokio::time::sleep(every.mul_f64(2.0 * (at * 7 % 11) as f64 / 10.0)).await;
        }
        let begun = Instant::now();
        loop {
            let view = self.site.muster.read(IMuster::overviewCall {}).await?;
            if view.pending == 0 && view.queued == 0 {
                break;
            }
            ensure!(begun.elapsed() < PATIENCE, "tasks are left Pending or queued\n{}", self.logs());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ensure!(!drawn.is_empty(), "all were queued by their creation");
        let for_nothing_else =
            |draw: &&Draw| [IMuster::dispatchCall::SELECTOR, IMuster::formGroupCall::SELECTOR].contains(&draw.selector);
        let own: Vec<&Draw> = drawn.iter().filter(for_nothing_else).collect();
        ensure!(own.iter().all(|draw| draw.from != self.crowd.address()), "the application draws");
        let waited: Vec<f64> = drawn.iter().map(|draw| draw.waited as f64).collect();
        Ok(Draws {
            all: drawn.len(),
            beside: drawn.len() - own.len(),
            agents: own.len(),
            waited: [median(&waited), quantile(&waited, 0.95)],
            gas: median(&own.iter().map(|draw| draw.gas as f64).collect::<Vec<_>>()),
        })
    }

    /// The last lines of the agents' logs.
    pub fn logs(&self) -> String {
        self.agents.iter().map(|(agent, _)| tail(&agent.log())).collect::<Vec<_>>().join("\n--\n")
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // A node that lives on makes no more blocks.
        let _ = self.node.chain().set_interval(0);
        self.node.chain().set_automine(true);
    }
}

fn tail(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

/// A program that is built beside this one.
fn beside(name: &str) -> PathBuf {
    crate::site::binary().with_file_name(name)
}

/// Notes the times of events, and the callers that draw.
fn follow(node: &'static Devnode) -> (Timeline, Drawn) {
    let (timeline, drawn) = (Timeline::default(), Drawn::default());
    let (mut blocks, noted, draws) = (node.chain().subscribe(), timeline.clone(), drawn.clone());
    tokio::spawn(async move {
        // Tasks that wait for a draw, and in which block they began to.
        let mut pending = BTreeMap::new();
        // It never ends before this process.
        while let Ok(block) = blocks.recv().await {
            let (at, number) = (now(), block.header.number);
            let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
            for transaction in &block.transactions {
                for event in transaction.receipt.logs().iter().filter_map(|log| abi::event(&log.inner)) {
                    let id = match &event {
                        Event::TaskCreated(e) => {
                            pending.insert(e.id, number);
                            None
                        }
                        Event::TaskStarted(e) => Some(e.id),
                        Event::TaskQueued(e) => Some(e.id),
                        Event::GroupFormed(e) => Some(e.id),
                        _ => None,
                    };
                    // A task that starts from the queue was drawn before, or queued by its creation.
                    let drawn = id.and_then(|id| pending.remove(&id)).filter(|created| number > *created);
                    if let (Some(created), Some(selector)) = (drawn, transaction.input().first_chunk::<4>()) {
                        let from = transaction.tx.signer();
                        let (selector, waited, gas) = (*selector, number - created - 1, transaction.receipt.gas_used);
                        draws.lock().unwrap_or_else(PoisonError::into_inner).push(Draw { selector, from, waited, gas });
                    }
                    noted.push((at, event));
                }
            }
        }
    });
    (timeline, drawn)
}

/// The one in the middle; 0 of none.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value that so large a part does not exceed; 0 of none.
pub fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or_default()
}

/// Everything that is measured under some conditions.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// By the caller, and the tasks one by one.
    pub singles: BTreeMap<&'static str, Vec<Single>>,
    /// By policy and milliseconds that a task takes.
    pub busy: BTreeMap<(u8, u64), Busy>,
    /// Requests a second of an idle agent.
    pub idle: f64,
}

/// The lines of the table of draws: their network, and the callers that made them.
pub fn draws_table(all: &[(String, Draws)]) -> String {
    let mut text = "| network | draws | by other calls | by an agent's `dispatch` or `formGroup` | its gas | blocks waited: median | 95 % |\n".to_owned();
    text += "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
    for (network, draws) in all {
        let part = |n: usize| format!("{:.0} %", 100.0 * n as f64 / draws.all as f64);
        let (beside, agents, [median, most]) = (part(draws.beside), part(draws.agents), draws.waited);
        let _ = writeln!(text, "| {network} | {} | {beside} | {agents} | {} | {median} | {most} |", draws.all, draws.gas);
    }
    text
}

/// The lines of the tables under the conditions, as the page has them.
pub fn tables(all: &[(Conditions, Measured)]) -> String {
    let mut text = String::new();
    let seconds = |milliseconds: f64| format!("{:.2}", milliseconds / 1_000.0);
    let place =
        |c: &Conditions| format!("{} ms | {} ms | {} | {}", c.block, c.delay, if c.push { "WebSocket" } else { "HTTP" }, c.nodes);
    if all.iter().any(|(_, measured)| !measured.singles.is_empty()) {
        text += "| a block every | to the endpoint | agent by | nodes a card | asked by | in a block | node drawn | executor begins | it ends | answer in a block | seen: median | 95 % |\n";
        text += "| ---: | ---: | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
        for (conditions, measured) in all {
            for (by, singles) in &measured.singles {
                let of = |step: fn(&Single) -> f64| singles.iter().map(step).collect::<Vec<_>>();
                let steps: [fn(&Single) -> f64; 6] =
                    [|s| s.created, |s| s.started, |s| s.begun, |s| s.ended, |s| s.answered, |s| s.seen];
                let steps = steps.map(|step| seconds(median(&of(step)))).join(" | ");
                let most = seconds(quantile(&of(|s| s.seen), 0.95));
                let _ = writeln!(text, "| {} | {by} | {steps} | {most} |", place(conditions));
            }
        }
        text += "\n";
    }
    if all.iter().any(|(_, measured)| !measured.busy.is_empty()) {
        text += "| a block every | to the endpoint | agent by | nodes a card | policy | a task takes | cards work | gap | end to answer | to the next start | to its beginning | requests a second |\n";
        text += "| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
        for (conditions, measured) in all {
            for ((policy, time), busy) in &measured.busy {
                let parts = match policy {
                    0 if conditions.nodes == 1 => busy.parts.map(seconds).join(" | "),
                    _ => "| |".into(),
                };
                let _ = writeln!(
                    text,
                    "| {} | {policy} | {} s | {:.0} % | {} | {parts} | {:.1} |",
                    place(conditions),
                    *time as f64 / 1_000.0,
                    busy.share * 100.0,
                    seconds(busy.gap),
                    busy.requests
                );
            }
            if measured.idle > 0.0 {
                let _ = writeln!(text, "| {} | idle | | | | | | | {:.1} |", place(conditions), measured.idle);
            }
        }
    }
    text
}
