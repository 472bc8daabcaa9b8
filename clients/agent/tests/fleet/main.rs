//! A network of agents that compute embeddings: tasks of every policy, while agents are killed and started again, the endpoint is
//! away for a while, one node cheats and one is slow. Every task ends, no wei is lost, and the results are right.
//!
//! The long form, by the agents and tasks that are asked for, 20 and 1,000 if none are:
//! `AGENTS=20 TASKS=1000 script/test -p muster-agent --test fleet -- --ignored --nocapture`

#![allow(clippy::unnecessary_debug_formatting, reason = "a path in quotes, as TOML wants it")]

#[path = "../site/mod.rs"]
mod site;
mod tables;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy::primitives::{B256, U256};
use muster_client::{abi, Cursor, Events, IMuster, Reading};
use muster_tests::{n, GRANULE, LEAST};
use rand::{rngs::StdRng, Rng, SeedableRng};

use site::{Running, Site, GPU, VRAM};
use tables::Ledger;
use wire::Wire;

const MODEL: &str = "sentence-transformers/all-MiniLM-L6-v2";
/// What a task pays, in wei.
const FEE: u64 = 100_000;
/// Different inputs: what they come to is computed once more here.
const TEXTS: u32 = 24;
/// A block of a second is mined so often: time goes twice as fast as here.
const BLOCK: Duration = Duration::from_millis(500);

/// What is played.
struct Plan {
    agents: usize,
    tasks: u32,
    /// An agent is killed so often.
    kills: Duration,
    /// And is away for so long.
    away: Duration,
    /// The endpoint is away for so long, once.
    outage: Duration,
    patience: Duration,
}

/// A process with one node.
struct Operator {
    home: PathBuf,
    key: B256,
    number: u32,
    running: Option<Running>,
}

impl Operator {
    async fn new(site: &mut Site, at: usize, behaviour: &str, url: &str, python: &str) -> Self {
        let home = site.place.path().join(format!("agent{at}"));
        fs::create_dir(&home).unwrap();
        let executors = concat!(env!("CARGO_MANIFEST_DIR"), "/executors/embeddings");
        let between = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fleet/executor.py");
        let store = site.place.path().join("store");
        // Enough to be slashed a few times.
        let stake = 2 * LEAST;
        let text = format!(
            "home = {:?}\nrpc = [{url:?}]\nmuster = \"{:?}\"\nlook_every = 1\ndrive_within = 2\nfrom_block = {}\n\n[store]\nget = [{store:?}]\nput = [{store:?}]\n\
             [[node]]\nname = \"gpu{at}\"\nkey_env = \"GPU_KEY\"\ngpu_name = {GPU:?}\nvram = {VRAM}\nstake = \"{stake}\"\nmodels = [{MODEL:?}]\n\
             [node.executor]\ncommand = [{python:?}, \"-B\", {between:?}, {behaviour:?}, {python:?}, \"-B\", \"{executors}/executor.py\"]\n\
             golden = \"{executors}/golden\"\nready_within = 120\n",
            home.join("state"),
            site.muster.address(),
            site.start,
        );
        fs::write(home.join("agent.toml"), text).unwrap();
        Self { home, key: site.key(stake + GRANULE * 1_000).await, number: 0, running: None }
    }

    fn start(&mut self) {
        let log = File::options().create(true).append(true).open(self.home.join("log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_muster-agent"));
        command.args(["run", "--config"]).arg(self.home.join("agent.toml")).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var("PATH").unwrap()).env("GPU_KEY", self.key.to_string());
        self.running = Some(Running(command.stdout(Stdio::null()).stderr(log).spawn().unwrap()));
    }

    fn log(&self) -> String {
        let text = fs::read_to_string(self.home.join("log")).unwrap_or_default();
        text.lines().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

/// The Python that the executors run with.
fn python() -> String {
    let output =
        Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/executors/prepare.sh")).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "the executors cannot be prepared");
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

fn input(text: u32) -> String {
    format!("{{\"texts\":[\"the {text}th of some texts\",\"{}\"]}}", "and more words ".repeat(text as usize % 7))
}

/// What the executor itself answers to the inputs.
fn expected(python: &str, place: &std::path::Path) -> Vec<Vec<u8>> {
    use std::io::{BufRead, BufReader, Write};
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/executors/embeddings/executor.py");
    let mut child = Command::new(python)
        .args(["-B", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the executor starts");
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("ready"));
    let (from, to) = (place.join("direct.in"), place.join("direct.out"));
    let answers = (0..TEXTS).map(|text| {
        fs::write(&from, input(text)).unwrap();
        let run = serde_json::json!({ "run": { "id": "1", "kind": "gpt", "units": 1, "models": [], "input": from, "output": to, "deadline": 0 } });
        writeln!(stdin, "{run}").unwrap();
        assert!(lines.next().unwrap().unwrap().contains("done"));
        fs::read(&to).unwrap()
    });
    let answers = answers.collect();
    drop(stdin);
    child.wait().unwrap();
    answers
}

async fn play(plan: Plan) {
    let began = Instant::now();
    let python = python();
    let parameters = [("scorePool", 3), ("sampleBps", 5_000), ("minPrice", 1), ("alphaMilli", 4_000)];
    let mut site = Site::new(&parameters).await;
    let answers = expected(&python, site.place.path());
    let mut wire = Wire::start(&site.url).await;

    let node = site.world.node.expect("time goes on its own way, on a node in this process");

    // Blocks come by themselves, as on a chain that others use as well.
    let over = Arc::new(AtomicBool::new(false));
    let stop = over.clone();
    let clock = std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            node.chain().increase_time(1).unwrap();
            node.chain().mine(1, 0).unwrap();
            std::thread::sleep(BLOCK);
        }
    });

    let mut operators = Vec::new();
    for at in 0..plan.agents {
        let behaviour = match at {
            0 => "cheats",
            1 => "slow 4",
            _ => "honest",
        };
        operators.push(Operator::new(&mut site, at, behaviour, &wire.url, &python).await);
    }
    // One after the other: loading twenty models at once takes longer.
    for operator in &mut operators {
        operator.start();
        let joined = Instant::now();
        while operator.number == 0 {
            assert!(joined.elapsed() < plan.patience, "it does not join:\n{}", operator.log());
            tokio::time::sleep(Duration::from_millis(100)).await;
            operator.number = site.node_of(operator.key).await;
        }
    }
    let group = site.view(operators[0].number).await.gpu;
    assert!(group > 0);
    for operator in &operators {
        assert_eq!(site.view(operator.number).await.gpu, group, "the golden tasks come to the same on every node");
    }
    site.world.rule("listGpuGroup", &[n(group), ethers::abi::Token::Bool(true)]).await;
    let (cheat, slow) = (operators[0].number, operators[1].number);
    for operator in &operators {
        assert_eq!(site.view(operator.number).await.status, 1, "{}", operator.log());
    }
    println!("{} agents joined after {:.0} s", plan.agents, began.elapsed().as_secs_f64());

    let stores = site.store();
    for text in 0..TEXTS {
        stores.put(input(text).as_bytes()).await.unwrap();
    }
    let application = site.account(u64::from(plan.tasks) * FEE).await;
    // By default a rated task asks for seven nodes that could run it.
    let profile = IMuster::Profile {
        algorithm: 1,
        least: 3,
        most: 5,
        reschedules: 2,
        targeting: 2,
        target: 900_000_000_000_000_000,
        alpha: 500_000_000_000_000_000,
        period: 300,
    };
    application.call(IMuster::setProfileCall { profile }, U256::ZERO).await.unwrap();
    let cursor = Cursor::new(site.muster.endpoints().chain().await.unwrap(), site.muster.address(), site.start);
    let mut events = Events::with_cursor(site.muster.endpoints().clone(), cursor, Reading::default()).await.unwrap();
    let mut ledger = Ledger::default();
    let mut chance = StdRng::seed_from_u64(16);
    let (mut created, mut killed, mut gone) = (0, 0, None::<(usize, Instant)>);
    let (mut next_kill, mut outage) = (Instant::now() + plan.kills, Some(plan.tasks / 2));
    let mut asked: BTreeMap<u64, (u32, u8)> = BTreeMap::new();
    let playing = Instant::now();
    while created < plan.tasks || !ledger.is_over(created) {
        assert!(
            began.elapsed() < plan.patience,
            "{created} tasks created, {} ended; not: {:?}\n{}",
            ledger.ends.len(),
            asked.keys().filter(|id| !ledger.ends.contains_key(id)).collect::<Vec<_>>(),
            operators.iter().map(Operator::log).collect::<Vec<_>>().join("\n--\n")
        );
        // As many at once as there are nodes, and some that wait.
        while created < plan.tasks && created as usize - ledger.ends.len() < plan.agents * 2 {
            let (text, redundancy) = (chance.gen_range(0..TEXTS), (created % 4) as u8);
            let models = if redundancy == 0 { vec![abi::model_id(MODEL)] } else { vec![] };
            let gpu = if redundancy == 0 { 0 } else { group };
            let spec = IMuster::TaskSpec { gpu, redundancy, models, flags: 0, ..site::gpt(0) };
            let id = site.task(&application, spec, &input(text), FEE).await;
            asked.insert(id, (text, redundancy));
            created += 1;
        }
        ledger.follow(&mut events).await;
        if gone.is_some_and(|(_, since)| since.elapsed() > plan.away) {
            operators[gone.take().unwrap().0].start();
        }
        if gone.is_none() && Instant::now() > next_kill && created < plan.tasks {
            // The cheat is left alone: it is to be slashed for what it answers, not for what it leaves.
            let at = chance.gen_range(2..operators.len());
            operators[at].running.take().unwrap().kill();
            (gone, next_kill, killed) = (Some((at, Instant::now())), Instant::now() + plan.kills, killed + 1);
        }
        if outage.is_some_and(|at| ledger.ends.len() as u32 >= at) {
            outage = None;
            wire.cut_for(plan.outage).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    if let Some((at, _)) = gone {
        operators[at].start();
    }
    let took = playing.elapsed();

    // Results, as an application gets them.
    let mut wrong = 0;
    let by_task: BTreeMap<u64, &IMuster::AnswerRevealed> = ledger.right_answers();
    let mut right = BTreeSet::new();
    for (id, (text, redundancy)) in &asked {
        let Some((by, bytes)) = ledger.result(*id, by_task.get(id).copied(), &stores).await else { continue };
        if bytes == answers[*text as usize] {
            right.insert(*id);
        } else {
            assert_eq!(by, cheat, "task {id} of policy {redundancy} has a wrong result");
            assert!(!ledger.settled.contains(id), "task {id} was judged, and the wrong answer won");
            wrong += 1;
        }
    }

    // Money: what the contract holds is what it owes.
    let parts = tables::parts(&site, &operators.iter().map(|o| (o.number, o.key)).collect::<Vec<_>>(), &application).await;
    let balance = tables::balance(&site).await;
    let views = futures_util::future::join_all(operators.iter().map(|operator| site.view(operator.number))).await;
    over.store(true, Ordering::Relaxed);
    clock.join().unwrap();
    println!("{}", ledger.table(&asked));
    println!(
        "{created} tasks by {} agents in {:.0} s, {killed} kills, an outage of {:?}: {} right results, {wrong} wrong ones that were not checked",
        plan.agents,
        took.as_secs_f64(),
        plan.outage,
        right.len(),
    );
    println!("{}", tables::nodes(&views, &ledger));
    println!("{}", tables::money(&parts, balance));
    assert_eq!(parts.iter().map(|(_, wei)| *wei).sum::<U256>(), balance, "{parts:?}");
    let burnt = parts.iter().find(|(name, _)| *name == "burnt").unwrap().1;
    assert_eq!(U256::from(ledger.slashed.values().sum::<u128>()), burnt, "what was taken is kept, and nothing else");
    assert_eq!(ledger.ends.len() as u32, plan.tasks);
    assert!(ledger.slashed.contains_key(&cheat), "the cheat was not slashed");
    assert_eq!(ledger.slashed.keys().copied().collect::<Vec<_>>(), [cheat], "honest nodes were slashed");
    let honest: Vec<_> = views.iter().filter(|view| ![cheat, slow].contains(&view.node) && view.scores > 0).collect();
    let mean = honest.iter().map(|view| u128::from(view.longTerm)).sum::<u128>() / honest.len() as u128;
    let late = views.iter().find(|view| view.node == slow).unwrap();
    assert!(
        late.scores > 0 && u128::from(late.longTerm) < mean,
        "the slow node has {}, the others {mean} in the mean",
        late.longTerm
    );
    assert!(killed > 0 && outage.is_none());
    let ratio = right.len() as f64 / f64::from(plan.tasks);
    assert!(ratio > 0.8, "{ratio} of the tasks have a right result");
    drop(site);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_of_agents_computes() {
    play(Plan {
        agents: 5,
        tasks: 40,
        kills: Duration::from_secs(8),
        away: Duration::from_secs(2),
        outage: Duration::from_secs(5),
        patience: Duration::from_mins(10),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long: a thousand tasks through twenty agents"]
async fn a_thousand_tasks_through_twenty_agents() {
    let number = |name: &str, usual: u32| std::env::var(name).map_or(usual, |text| text.parse().expect("a number"));
    play(Plan {
        agents: number("AGENTS", 20) as usize,
        tasks: number("TASKS", 1_000),
        kills: Duration::from_secs(15),
        away: Duration::from_secs(5),
        outage: Duration::from_secs(30),
        patience: Duration::from_hours(2),
    })
    .await;
}
