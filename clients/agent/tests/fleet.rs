//! A network of agents, as processes, that compute embeddings while they are killed, the endpoint is away, one cheats and one is slow.
//! And one under attack by tasks that no node can run; prints the attacker's cost.
//!
//! The long form takes numbers of agents, tasks and minutes; by default 20, 1,000 and none:
//! `AGENTS=20 TASKS=1000 MINUTES=30 script/test -p muster-agent --test fleet -- --ignored --nocapture`

use std::time::{Duration, Instant};

use alloy::primitives::{B256, U256};
use muster_client::{show_amount, Account, Event, IMuster};
use muster_fleet::play::{play, Plan};
use muster_fleet::site::{gpt, Agent, Running, Site};

async fn prove(plan: Plan) {
    let report = play(plan, |line| println!("{line}")).await.unwrap_or_else(|error| panic!("{error:#}"));
    println!("{report}");
    report.verify().unwrap_or_else(|error| panic!("{error:#}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_of_agents_computes() {
    prove(Plan {
        agents: 5,
        tasks: 40,
        lasts: Duration::ZERO,
        kills: Duration::from_secs(8),
        away: Duration::from_secs(2),
        outage: Duration::from_secs(5),
        patience: Duration::from_mins(30),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long: a thousand tasks through twenty agents"]
async fn a_thousand_tasks_through_twenty_agents() {
    let number = |name: &str, usual: u32| std::env::var(name).map_or(usual, |text| text.parse().expect("a number"));
    prove(Plan {
        agents: number("AGENTS", 20) as usize,
        tasks: number("TASKS", 1_000),
        lasts: Duration::from_mins(number("MINUTES", 0).into()),
        kills: Duration::from_secs(15),
        away: Duration::from_secs(5),
        outage: Duration::from_secs(30),
        patience: Duration::from_hours(2),
    })
    .await;
}

/// The fee of each task of the attack, in wei.
const FEE: u64 = 70_000;
/// Tasks of each kind: as many as once paused three nodes.
const TASKS: usize = 6;

/// An account's ether, together with its credit in the contract.
async fn wealth(site: &Site, who: &Account) -> U256 {
    let balance: U256 = site.muster.endpoints().ask("eth_getBalance", (who.address(), "latest")).await.unwrap();
    let account = site.muster.read(IMuster::accountCall { who: who.address() }).await.unwrap();
    balance + U256::from(account.credit)
}

/// How a task ended, if it did: the reported error's code, or 0 for a success.
fn end(events: &[Event], id: u64) -> Option<u8> {
    events.iter().find_map(|event| match event {
        Event::TaskErrorReported(e) if e.id == id => Some(e.code),
        Event::TaskSucceeded(e) if e.id == id => Some(0),
        Event::TaskAborted(e) if e.id == id => panic!("task {id} was aborted: {}", e.reason),
        _ => None,
    })
}

/// Runs the chain's clock at the speed of this machine's, by which agents estimate their deadlines.
struct Time {
    begun: Instant,
    given: u64,
}

impl Time {
    fn new() -> Self {
        Self { begun: Instant::now(), given: 0 }
    }

    /// A block now.
    fn pass(&mut self, site: &Site) {
        let due = self.begun.elapsed().as_secs() - self.given;
        self.given += due;
        let chain = site.world.node.unwrap().chain();
        chain.increase_time(due).unwrap();
        chain.mine(1, 0).unwrap();
    }
}

/// How tasks ended, when all have.
async fn ends(site: &Site, time: &mut Time, ids: &[u64]) -> Vec<u8> {
    for _ in 0..600 {
        time.pass(site);
        let events = site.events().await;
        if let Some(ends) = ids.iter().map(|id| end(&events, *id)).collect() {
            return ends;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("not all of tasks {ids:?} end: {:#?}", site.events().await)
}

/// Three agents: one without `download`, one whose download fails, one whose fails late; and a store that does not answer.
async fn victims(site: &mut Site) -> Vec<Agent> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok(connection) = listener.accept().await {
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(5)).await;
                drop(connection);
            });
        }
    });
    let mut agents = Vec::new();
    for (name, download) in
        [("gpu0", ""), ("gpu1", "download = [\"false\"]"), ("gpu2", "download = [\"sh\", \"-c\", \"sleep 5; exit 1\"]")]
    {
        let mut agent = site.agent(name).await;
        agent.node_more = download.into();
        agent.configure(site);
        let path = agent.home.join("agent.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("]\nput = ["));
        // After the one that answers.
        std::fs::write(&path, text.replace("]\nput = [", &format!(", {silent:?}]\nput = ["))).unwrap();
        agents.push(agent);
    }
    agents
}

/// Six tasks that name a model which nobody holds once paused three nodes of three until their operator came, and got their fees back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_nobody_can_run_take_no_node_out_of_work() {
    if std::env::var_os("RPC_URL").is_some() {
        println!("skipped: on another's node nobody here makes time pass");
        return;
    }
    let mut site = Site::new(&[("sdOverhead", 0), ("sdUnit", 1), ("limitMin", 300)]).await;
    let agents = victims(&mut site).await;
    let mut time = Time::new();
    let running: Vec<Running> = agents.iter().map(|agent| agent.start(None)).collect();
    for agent in &agents {
        site.until("it is fit", async || agent.log().contains("the self-test passed").then_some(())).await;
        site.until("it has joined", async || (site.node_of(agent.key).await > 0).then_some(())).await;
    }
    let (attacker, other) = (site.account(100_000_000).await, site.key(10_000_000).await);
    let other = site.account_of(other, "other").await;
    let (crash, _) = site.store().put(b"what no executor survives").await.unwrap();
    let (fine, _) = site.store().put(b"fine").await.unwrap();
    // Images have the shortest time limit.
    let any = IMuster::TaskSpec { kind: 0, inputDigest: fine, ..gpt(0) };
    let attacks = [
        ("name a model that nobody holds", IMuster::TaskSpec { models: vec![7], ..any.clone() }),
        ("have an input that no store gives", IMuster::TaskSpec { inputDigest: B256::repeat_byte(9), ..any.clone() }),
        ("are of a kind that the executors do not run", IMuster::TaskSpec { kind: 2, ..any.clone() }),
        ("have an input that ends every executor", IMuster::TaskSpec { inputDigest: crash, ..any.clone() }),
    ];
    println!("| {TASKS} tasks that | fees | cost, gas and start fees | nodes paused |\n| --- | ---: | ---: | ---: |");
    for (what, spec) in attacks {
        let before = wealth(&site, &attacker).await;
        let mut ids = Vec::new();
        for _ in 0..TASKS {
            let done = attacker.call(IMuster::createTaskCall { spec: spec.clone() }, U256::from(FEE)).await.unwrap();
            ids.extend(done.events.iter().find_map(|event| if let Event::TaskCreated(e) = event { Some(e.id) } else { None }));
        }
        assert_eq!(ids.len(), TASKS);
        assert!(ends(&site, &mut time, &ids).await.iter().all(|code| *code > 0), "nothing answers tasks that {what}");
        let cost = before - wealth(&site, &attacker).await;
        let paused =
            site.events().await.iter().filter(|event| matches!(event, Event::NodePaused(_) | Event::NodePausing(_))).count();
        println!("| {what} | {} | {} | {paused} |", show_amount(U256::from(FEE) * U256::from(TASKS)), show_amount(cost));
        assert_eq!(paused, 0, "tasks that {what} pause nodes: {}", agents[0].log());
        assert!(cost > U256::ZERO);
    }
    // All three can still run feasible tasks.
    let mut ids = Vec::new();
    for _ in 0..TASKS {
        ids.push(site.task(&other, IMuster::TaskSpec { kind: 0, ..gpt(0) }, "fine", FEE).await);
    }
    assert_eq!(ends(&site, &mut time, &ids).await, [0; TASKS]);
    drop(running);
}
