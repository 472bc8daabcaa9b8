//! Agents that end, pause, recover, and report their state.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use alloy::primitives::{keccak256, Address, B256, U256};
use alloy::signers::local::PrivateKeySigner;
use alloy::sol_types::SolCall;
use axum::extract::Path;
use axum::routing::{get as get_at, post};
use muster_client::{digest_of, show_amount, Account, Event, IMuster, Opening};
use muster_fleet::site::{answer_to, calls_by, count, digest_to, gpt, inputs_by, journal, Agent, Running, Site, VRAM};
use muster_fleet::world::{embedded_at, World, LEAST, STAKE_UNIT, UPGRADE_DELAY};

async fn status(site: &Site, agent: &Agent) -> u8 {
    match site.node_of(agent.key).await {
        0 => 0,
        number => site.view(number).await.status,
    }
}

async fn until_status(site: &Site, agent: &Agent, wanted: u8) {
    let what = format!("status {wanted}: {}", agent.log());
    site.until(&what, async || (status(site, agent).await == wanted).then_some(())).await;
}

/// An agent whose node may be drawn.
async fn working(site: &mut Site) -> (Agent, Running) {
    let agent = site.agent("gpu0").await;
    let running = agent.start(None);
    until_status(site, &agent, 1).await;
    (agent, running)
}

/// The code of the error that a task ended with.
async fn code_of(site: &Site, id: u64) -> u8 {
    let told = |event: &Event| match event {
        Event::TaskErrorReported(e) if e.id == id => Some(e.code),
        _ => None,
    };
    site.event("an error", told).await
}

/// The same, once its node's rest is over.
async fn error_of(site: &Site, id: u64) -> u8 {
    let code = code_of(site, id).await;
    // Its node rests, and here the clock stands still.
    site.world.travel(60);
    code
}

/// Creates a task, and has it drawn for a node whose agent is away.
async fn drawn(site: &Site, agent: &Agent, by: &Account, spec: IMuster::TaskSpec, input: &str) -> u64 {
    let id = site.task(by, spec, input, 70_000).await;
    site.until("it is drawn", async || {
        by.call(IMuster::dispatchCall { count: 1 }, U256::ZERO).await.unwrap();
        (status(site, agent).await == 2).then_some(())
    })
    .await;
    id
}

fn alive(process: i32) -> bool {
    let process = rustix::process::Pid::from_raw(process).unwrap();
    // A process that is dead and not waited for still exists by its number.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    rustix::process::test_kill_process(process).is_ok() && !stat.is_ok_and(|stat| stat.contains(") Z "))
}

/// An address that nothing listens at.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// An agent that serves its state at this address; with more lines of its configuration.
async fn listening(site: &mut Site, at: SocketAddr, more: &str) -> Agent {
    let mut agent = site.agent("gpu0").await;
    agent.more = format!("listen = \"{at}\"\n{more}");
    agent.configure(site);
    agent
}

/// An agent's answer to a GET, with its status.
fn get(at: SocketAddr, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(at).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let status = text.split(' ').nth(1)?.parse().ok()?;
    Some((status, text.split_once("\r\n\r\n")?.1.to_string()))
}

fn metric(at: SocketAddr, line: &str) -> Option<f64> {
    let text = get(at, "/metrics")?.1;
    text.lines().find_map(|found| found.strip_prefix(line)?.trim().parse().ok())
}

/// Waits until an agent has looked at the chain twice more: it has then reacted to the present state.
async fn looks_twice(site: &Site, at: SocketAddr) {
    let looked = || metric(at, "muster_agent_looked_timestamp_seconds{node=\"gpu0\"}");
    for _ in 0..2 {
        let before = site.until("it says when it looked", async || looked()).await;
        site.until("it looks again", async || looked().filter(|now| *now > before)).await;
    }
}

#[tokio::test]
async fn asked_to_end_it_finishes_reveals_pauses_and_comes_back() {
    let mut site = Site::new(&[("sampleBps", 0), ("scorePool", 3)]).await;
    let at = free();
    let agent = listening(&mut site, at, "").await;
    agent.behave("slow 2");
    let mut running = agent.start(None);
    until_status(&site, &agent, 1).await;
    let application = site.account(1_000_000).await;
    let id = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(1) }, "the last", 100_000).await;
    site.until("it runs", async || (agent.runs() == 1).then_some(())).await;
    running.terminate();
    let ended = site.until("it ends", async || running.ended()).await;
    assert!(ended.success(), "{}", agent.log());
    let done = site.events().await.iter().any(|event| matches!(event, Event::TaskSucceeded(e) if e.id == id));
    assert!(done, "it was revealed before the end");
    assert_eq!(status(&site, &agent).await, 5);
    // While it is away nobody gives it work; when it is back, it is.
    let running = agent.start(None);
    until_status(&site, &agent, 1).await;
    drop(running);
    // A pause of the operator's own is left alone.
    let operator = site.account_of(agent.key, "operator").await;
    operator.call(IMuster::pauseCall {}, U256::ZERO).await.unwrap();
    let _running = agent.start(None);
    site.until("it has looked", async || agent.log().matches("the self-test passed").nth(2).map(|_| ())).await;
    looks_twice(&site, at).await;
    assert_eq!(status(&site, &agent).await, 5);
    let said = || agent.log().matches("is paused, not by this agent").count();
    site.until("it says so", async || (said() > 0).then_some(())).await;
    looks_twice(&site, at).await;
    assert_eq!((status(&site, &agent).await, said()), (5, 1), "{}", agent.log());
}

/// A copy of a folder.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir(to).unwrap();
    for file in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(file.file_name());
        if file.file_type().unwrap().is_dir() {
            copy(&file.path(), &target);
        } else {
            std::fs::copy(file.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn a_restored_backup_does_not_end_an_operators_pause() {
    let mut site = Site::new(&[]).await;
    let at = free();
    let agent = listening(&mut site, at, "").await;
    let mut running = agent.start(None);
    until_status(&site, &agent, 1).await;
    running.terminate();
    site.until("it ends", async || running.ended()).await;
    let (state, backup) = (agent.home.join("state"), agent.home.join("backup"));
    copy(&state, &backup);
    let mut running = agent.start(None);
    until_status(&site, &agent, 1).await;
    running.kill();
    let operator = site.account_of(agent.key, "operator").await;
    operator.call(IMuster::pauseCall {}, U256::ZERO).await.unwrap();
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::rename(&backup, &state).unwrap();
    let _running = agent.start(None);
    site.until("it is fit", async || agent.log().matches("the self-test passed").nth(2).map(|_| ())).await;
    looks_twice(&site, at).await;
    assert_eq!(status(&site, &agent).await, 5, "{}", agent.log());
    assert!(agent.log().contains("the journal is older than the present pause"), "{}", agent.log());
}

#[tokio::test]
async fn an_agent_whose_node_another_one_has_paused_says_so() {
    let mut site = Site::new(&[]).await;
    let (agent, mut running) = working(&mut site).await;
    let mut twin = site.agent("gpu1").await;
    twin.key = agent.key;
    twin.configure(&site);
    let _twin = twin.start(None);
    site.until("the twin is fit", async || twin.log().contains("the self-test passed").then_some(())).await;
    running.kill();
    agent.behave("differs");
    let _running = agent.start(None);
    let said = "has paused it, because of self-test";
    site.until("the twin says so", async || twin.log().contains(said).then_some(())).await;
    assert!(twin.log().lines().any(|line| line.contains("alert") && line.contains(said)), "{}", twin.log());
    assert!(!agent.log().contains("another agent with a key"), "{}", agent.log());
}

#[tokio::test]
async fn two_failures_in_a_row_pause_it_and_a_webhook_and_metrics_say_so() {
    let mut site = Site::new(&[("sampleBps", 0)]).await;
    let told = Arc::new(Mutex::new(Vec::<serde_json::Value>::new()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let webhook = listener.local_addr().unwrap();
    let hear = told.clone();
    let app = axum::Router::new()
        .route("/hook", post(async move |body: String| hear.lock().unwrap().push(serde_json::from_str(&body).unwrap())));
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let at = free();
    let mut agent = listening(&mut site, at, &format!("webhook = \"http://{webhook}/hook\"")).await;
    // Golden tasks would show whose fault it was.
    std::fs::remove_dir_all(agent.home.join("golden")).unwrap();
    agent.node_more = "retest_after = 3600".into();
    agent.configure(&site);
    let mut running = agent.start(None);
    site.until("it is ready", async || get(at, "/ready").filter(|(status, _)| *status == 200)).await;
    site.until("it is well", async || get(at, "/health").filter(|(status, _)| *status == 200)).await;
    let application = site.account(10_000_000).await;

    agent.behave("fails");
    for failures in 1..=2 {
        let id = site.task(&application, gpt(0), "fails", 70_000).await;
        assert_eq!(error_of(&site, id).await, 2);
        let said = format!("task {id} reported as an error in transaction");
        site.until("it says what it has sent", async || agent.log().contains(&said).then_some(())).await;
        assert!(!agent.log().contains(&format!("task {id} answered")));
        site.until("it is counted", async || {
            (metric(at, "muster_agent_failures_in_a_row{node=\"gpu0\"}") == Some(f64::from(failures))).then_some(())
        })
        .await;
    }
    until_status(&site, &agent, 5).await;
    site.until("it is said", async || {
        metric(at, "muster_agent_paused_by_agent{node=\"gpu0\",why=\"failures\"}").filter(|value| *value == 1.0)
    })
    .await;
    assert_eq!(get(at, "/ready").unwrap(), (503, "gpu0: cannot take tasks\n".into()));
    site.until("both are counted", async || {
        metric(at, "muster_agent_tasks{node=\"gpu0\",outcome=\"error\"}").filter(|count| *count == 2.0)
    })
    .await;
    assert!(metric(at, "muster_agent_gas_wei_total{node=\"gpu0\"}").unwrap() > 0.0);
    site.until("the webhook is told of both", async || {
        let told = told.lock().unwrap();
        ["failure", "failures"].iter().all(|kind| told.iter().any(|told| told["what"] == *kind)).then_some(())
    })
    .await;

    // Until somebody has looked at it, or for a while.
    running.kill();
    agent.node_more = "retest_after = 1".into();
    agent.configure(&site);
    let _running = agent.start(None);
    until_status(&site, &agent, 1).await;
    // Committed errors are logged as such, too.
    for (redundancy, said) in [(1, ["committed to as an error", "revealed as an error"]), (0, ["reported as an error"; 2])] {
        let id = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(redundancy) }, "fails", 100_000).await;
        assert_eq!(error_of(&site, id).await, 2);
        let all = |log: &str| said.iter().all(|said| log.contains(&format!("task {id} {said} in transaction")));
        site.until("it says what it has sent", async || all(&agent.log()).then_some(())).await;
    }
    site.until("it comes back by itself", async || {
        let events = site.events().await;
        let count = |which: fn(&Event) -> bool| events.iter().filter(|event| which(event)).count();
        let (paused, back) =
            (count(|event| matches!(event, Event::NodePaused(_))), count(|event| matches!(event, Event::NodeResumed(_))));
        (paused >= 2 && back == paused).then_some(())
    })
    .await;
    agent.behave("answers");
    let id = site.task(&application, gpt(0), "answers", 70_000).await;
    succeeds(&site, id).await;
}

#[tokio::test]
async fn a_judgement_pauses_a_node_before_its_next_task() {
    let mut site = Site::new(&[("scorePool", 3)]).await;
    let mut agents = Vec::new();
    for name in ["gpu0", "gpu1", "gpu2"] {
        let mut agent = site.agent(name).await;
        // Enough to be slashed and stay.
        agent.stake *= 2;
        agent.configure(&site);
        agents.push(agent);
    }
    let mut running: Vec<_> = agents.iter().map(|agent| agent.start(None)).collect();
    for agent in &agents {
        until_status(&site, agent, 1).await;
    }
    let (cheat, number) = (&agents[0], site.node_of(agents[0].key).await);
    let group = site.view(number).await.gpu;
    site.world.rule(IMuster::listGpuGroupCall { group, listed: true }).await;
    let application = site.account(100_000_000).await;
    let profile = IMuster::Profile {
        algorithm: 0,
        least: 3,
        most: 3,
        reschedules: 0,
        targeting: 2,
        target: 490_000_000_000_000_000,
        alpha: 500_000_000_000_000_000,
        period: 300,
    };
    application.call(IMuster::setProfileCall { profile }, U256::ZERO).await.unwrap();
    let back = async || {
        let count = |event: &&Event| matches!(event, Event::NodeResumed(e) if e.node == number);
        site.events().await.iter().filter(count).count()
    };

    // Where nothing is slashed, golden tasks that pass end it.
    cheat.behave("cheats");
    let rated = IMuster::TaskSpec { gpu: group, ..gpt(3) };
    let id = site.task(&application, rated, "rated", 300_000).await;
    judged(&site, number, id, 2).await;
    site.until("it comes back by itself", async || (back().await == 1).then_some(())).await;
    until_status(&site, cheat, 1).await;
    assert!(cheat.log().contains("no reason to pause any more: judged"), "{}", cheat.log());

    // After a slash, only its operator can resume it.
    let replicated = IMuster::TaskSpec { gpu: group, ..gpt(2) };
    let id = site.task(&application, replicated.clone(), "replicated", 300_000).await;
    judged(&site, number, id, 2).await;
    let slashed = |event: &Event| matches!(event, Event::NodeSlashed(e) if e.node == number && e.id == id).then_some(());
    site.event("it is slashed", slashed).await;
    until_status(&site, cheat, 5).await;
    let runs = cheat.runs();
    let log =
        site.until("it says what to look at", async || Some(cheat.log()).filter(|log| log.contains("was slashed for"))).await;
    let said = log.lines().find(|line| line.contains(&format!("judged wrong in task {id}"))).unwrap();
    let kept = said.split_once("its result is kept in ").unwrap().1.split_once(';').unwrap().0;
    assert_eq!(std::fs::read_to_string(kept).unwrap(), format!("{}!", answer_to("replicated")));
    assert!(said.contains(&digest_to("replicated").to_string()) && said.contains("muster-agent doctor"), "{said}");
    // The third since it started: the first, that after the first judgement, and this one's.
    site.until("it has tested itself", async || cheat.log().matches("the self-test passed").nth(2).map(|_| ())).await;
    let id = site.task(&application, gpt(0), "for another", 70_000).await;
    succeeds(&site, id).await;
    assert_eq!((status(&site, cheat).await, back().await, cheat.runs()), (5, 1, runs));
    assert!(muster_client::pause::reasons(&last_pause(&site, cheat).await).is_some_and(|why| why == ["judged"]));

    // Nor does it forget this together with its journal.
    running[0].kill();
    std::fs::remove_dir_all(cheat.home.join("state")).unwrap();
    running[0] = cheat.start(None);
    site.until("it recalls", async || cheat.log().contains("why it is to be paused: judged").then_some(())).await;
    site.until("it has tested itself", async || cheat.log().matches("the self-test passed").nth(3).map(|_| ())).await;
    assert_eq!((status(&site, cheat).await, back().await), (5, 1));

    cheat.behave("answers");
    let operator = site.account_of(cheat.key, "operator").await;
    operator.call(IMuster::resumeCall {}, U256::ZERO).await.unwrap();
    let id = site.task(&application, replicated, "again", 300_000).await;
    judged(&site, number, id, 1).await;
    until_status(&site, cheat, 1).await;
}

/// Waits for a group's verdict on a node.
async fn judged(site: &Site, node: u32, task: u64, verdict: u8) {
    let found = site.event("a judgement", |event| match event {
        Event::MemberJudged(e) if (e.node, e.id) == (node, task) => Some(e.verdict),
        _ => None,
    });
    assert_eq!(found.await, verdict);
}

async fn succeeds(site: &Site, id: u64) {
    site.event("an answer", |event| if let Event::TaskSucceeded(e) = event { (e.id == id).then_some(()) } else { None }).await;
}

/// The calldata of the last pause that an agent has sent.
async fn last_pause(site: &Site, agent: &Agent) -> Vec<u8> {
    let inputs = inputs_by(site, agent.key).await;
    inputs.into_iter().rfind(|input| input.starts_with(&IMuster::pauseCall::SELECTOR)).unwrap()
}

/// An agent whose key is to work for the node of another, its operator's account, and the node's number.
async fn worker_of(site: &mut Site) -> (Agent, Account, u32) {
    let mut agent = site.agent("gpu0").await;
    let mut running = agent.start(None);
    until_status(site, &agent, 1).await;
    running.kill();
    let (operator, number) = (site.account_of(agent.key, "operator").await, site.node_of(agent.key).await);
    agent.key = site.key(0).await;
    agent.node_more = format!("operator = \"{}\"", operator.address());
    agent.configure(site);
    std::fs::remove_dir_all(agent.home.join("state")).unwrap();
    (agent, operator, number)
}

/// The commitment is on the chain, and the agent ended before it could write that down.
#[tokio::test]
async fn a_worker_that_is_removed_while_it_commits_still_reveals() {
    let mut site = Site::new(&[("sampleBps", 0), ("scorePool", 3)]).await;
    let (agent, operator, number) = worker_of(&mut site).await;
    let application = site.account(1_000_000).await;
    let worker = PrivateKeySigner::from_bytes(&agent.key).unwrap().address();
    operator.call(IMuster::setWorkerCall { worker }, U256::ZERO).await.unwrap();
    let mut running = agent.start(Some("sent"));
    site.until("it works", async || agent.log().contains("the self-test passed").then_some(())).await;
    let id = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(1) }, "sent", 100_000).await;
    site.until("it dies", async || running.ended()).await;
    operator.call(IMuster::setWorkerCall { worker: Address::ZERO }, U256::ZERO).await.unwrap();
    let mut running = agent.start(None);
    succeeds(&site, id).await;
    let ended = site.until("it ends", async || running.ended()).await;
    assert!(!ended.success() && agent.log().contains(&format!("works for node {number} no more")), "{}", agent.log());
    assert_eq!(agent.runs(), 1);
}

#[tokio::test]
async fn a_worker_that_is_removed_takes_no_task_and_ends() {
    let mut site = Site::new(&[("sampleBps", 0), ("scorePool", 3)]).await;
    let (agent, operator, number) = worker_of(&mut site).await;
    let application = site.account(1_000_000).await;
    let worker = PrivateKeySigner::from_bytes(&agent.key).unwrap().address();
    let name = async |worker| operator.call(IMuster::setWorkerCall { worker }, U256::ZERO).await.unwrap();
    let status = async || site.view(number).await.status;
    name(worker).await;
    // The operator removes it when it has committed to an answer, which nobody else could reveal.
    let mut running = agent.start(Some("committed"));
    site.until("it works", async || agent.log().contains("the self-test passed").then_some(())).await;
    let committed = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(1) }, "committed", 100_000).await;
    site.until("it dies", async || running.ended()).await;
    assert_eq!(status().await, 2);
    name(Address::ZERO).await;
    let mut running = agent.start(None);
    succeeds(&site, committed).await;
    let ended = site.until("it ends", async || running.ended()).await;
    assert!(!ended.success() && agent.log().contains(&format!("works for node {number} no more")), "{}", agent.log());
    assert_eq!(agent.runs(), 1);

    // Also while it is up: it does not begin a task that comes then.
    name(worker).await;
    let mut running = agent.start(None);
    let works = format!("works for node {number} now");
    site.until("it works", async || agent.log().matches(&works).nth(1).map(|_| ())).await;
    site.until("it is fit", async || agent.log().matches("the self-test passed").nth(2).map(|_| ())).await;
    name(Address::ZERO).await;
    let id = site.task(&application, gpt(0), "for nobody", 70_000).await;
    site.until("it is drawn", async || {
        application.call(IMuster::dispatchCall { count: 1 }, U256::ZERO).await.unwrap();
        (status().await == 2).then_some(())
    })
    .await;
    let ended = site.until("it ends", async || running.ended()).await;
    assert!(!ended.success(), "{}", agent.log());
    assert_eq!(agent.runs(), 1, "task {id} was not begun: {}", agent.log());
}

#[tokio::test]
async fn an_executor_that_rolls_dice_is_found_out_before_anything_is_paid() {
    let mut site = Site::new(&[]).await;
    let agent = site.agent("gpu0").await;
    agent.behave("rolls");
    let doctor = agent.command(&["doctor"]).output().unwrap();
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(!doctor.status.success() && said.contains("WRONG  golden tasks: golden task one was answered with"), "{said}");
    let _running = agent.start(None);
    site.until("it does not begin", async || agent.log().contains("the node cannot begin: golden task one").then_some(())).await;
    assert_eq!(calls_by(&site, agent.key).await, [[0; 4]; 0], "nothing was sent");
    agent.behave("answers");
    until_status(&site, &agent, 1).await;
}

#[tokio::test]
async fn nodes_that_share_an_executor_have_its_model_loaded_twice_and_not_for_each() {
    let mut site = Site::new(&[]).await;
    let mut agent = site.agent("gpu0").await;
    for _ in 0..3 {
        let key = site.key(3 * agent.stake).await;
        agent.others.push(key);
    }
    agent.configure(&site);
    let _running = agent.start(None);
    let passed = async || (agent.log().matches("the self-test passed").count() == 4).then_some(());
    site.until("all four are fit", passed).await;
    // Two processes have shown that they answer alike, before anything was paid.
    assert_eq!(agent.starts(), 2, "{}", agent.log());
    let doctor = agent.command(&["doctor"]).output().unwrap();
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(
        doctor.status.success() && said.matches("ok     executor: that of gpu0, which is tried there").count() == 3,
        "{said}"
    );
    assert_eq!(agent.starts(), 4, "{said}");
}

#[tokio::test]
async fn who_joins_by_hand_under_the_name_that_the_doctor_says_works() {
    let mut site = Site::new(&[]).await;
    let agent = site.agent("gpu0").await;
    let path = agent.home.join("agent.toml");
    let text = std::fs::read_to_string(&path)
        .unwrap()
        .replace(&format!("stake = \"{}\"", agent.stake), "models = [\"ours/one\", \"0x7\"]");
    std::fs::write(&path, text).unwrap();
    let doctor = agent.command(&["doctor"]).output().unwrap();
    let said = String::from_utf8_lossy(&doctor.stdout).to_string();
    let name =
        said.split_once("muster node join --gpu '").unwrap_or_else(|| panic!("{said}")).1.split_once("' --vram 24").unwrap().0;
    let operator = site.account_of(agent.key, "operator").await;
    let fee = site.muster.name_fee(name, 24).await.unwrap();
    assert!(said.contains("nobody has used the name"), "{said}");
    assert!(said.contains("' --vram 24 --model ours/one --model 0x7\n"), "{said}");
    let call = IMuster::joinCall { gpuName: name.into(), vram: 24, models: vec![] };
    operator.call(call, U256::from(agent.stake) + fee).await.unwrap();
    let doctor = agent.command(&["doctor"]).output().unwrap();
    assert!(doctor.status.success(), "{}", String::from_utf8_lossy(&doctor.stdout));
    drop(operator);
    let _running = agent.start(None);
    site.until("it is fit", async || agent.log().contains("the self-test passed").then_some(())).await;
    let application = site.account(1_000_000).await;
    let id = site.task(&application, gpt(0), "by hand", 70_000).await;
    succeeds(&site, id).await;
}

#[tokio::test]
async fn a_damaged_journal_is_named_and_set_aside_and_what_is_open_comes_from_the_chain() {
    let mut site = Site::new(&[("sampleBps", 0), ("scorePool", 3)]).await;
    let (agent, mut running) = working(&mut site).await;
    running.kill();
    let application = site.account(1_000_000).await;
    let id = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(1) }, "damaged", 100_000).await;
    let mut running = agent.start(Some("committed"));
    site.until("it dies", async || running.ended()).await;
    // As a failing disk leaves it, without changes that were not merged yet.
    let state = agent.home.join("state");
    std::fs::remove_file(state.join("journal.sqlite-wal")).unwrap();
    std::fs::write(state.join("journal.sqlite"), vec![0xa5; 40_000]).unwrap();
    for file in transactions(&agent) {
        std::fs::write(file, "").unwrap();
    }
    let doctor = agent.command(&["doctor"]).output().unwrap();
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(!doctor.status.success() && said.contains("WRONG  journal: journal.sqlite in"), "{said}");
    let _running = agent.start(None);
    succeeds(&site, id).await;
    assert!(agent.log().contains("the journal was damaged"), "{}", agent.log());
    assert!(agent.log().contains("a transaction was damaged"), "{}", agent.log());
    assert_eq!(agent.runs(), 1, "it was not run again");
    let mut kept = std::fs::read_dir(state).unwrap().flatten();
    assert!(kept.any(|file| file.file_name().to_string_lossy().starts_with("journal.sqlite.damaged-")));
    until_status(&site, &agent, 1).await;
}

#[tokio::test]
async fn who_cannot_listen_says_so_before_anything_is_paid() {
    let mut site = Site::new(&[]).await;
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    let agent = listening(&mut site, at, "").await;
    let doctor = agent.command(&["doctor"]).output().unwrap();
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(!doctor.status.success() && said.contains(&format!("WRONG  listen: cannot serve metrics at {at}")), "{said}");
    let output = agent.command(&["run"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(&format!("cannot serve metrics at {at}")), "{said}");
    assert_eq!(site.node_of(agent.key).await, 0);
    drop(taken);
    let _running = agent.start(None);
    until_status(&site, &agent, 1).await;
    // It is not the agent's own fault, and every line of it has a time.
    let doctor = agent.command(&["doctor"]).output().unwrap();
    assert!(doctor.status.success(), "{}", String::from_utf8_lossy(&doctor.stdout));
    let timed = |line: &str| line.split_once("Z ").is_some_and(|(time, _)| time.len() == 26 && time.starts_with("20"));
    assert!(agent.log().lines().all(timed), "{}", agent.log());
}

#[tokio::test]
async fn a_full_disk_pauses_a_node_before_it_takes_a_task_and_room_brings_it_back() {
    let mut site = Site::new(&[]).await;
    let agent = site.agent("gpu0").await;
    let free = agent.home.join("free");
    let mut running = agent.start(None);
    until_status(&site, &agent, 1).await;
    let kept = agent.home.join("state/room");
    site.until("some room is kept", async || kept.exists().then_some(())).await;
    std::fs::write(&free, "4096").unwrap();
    until_status(&site, &agent, 5).await;
    assert!(agent.log().contains("0 MiB are free on the disk, and 1024 MiB must be"), "{}", agent.log());
    assert!(!kept.exists(), "the room that was kept is given up");
    std::fs::write(&free, "100000000000").unwrap();
    until_status(&site, &agent, 1).await;

    // One that it has already is reported, and not begun.
    running.kill();
    let application = site.account(1_000_000).await;
    let id = drawn(&site, &agent, &application, gpt(0), "on a full disk").await;
    std::fs::write(&free, "4096").unwrap();
    let _running = agent.start(None);
    assert_eq!(error_of(&site, id).await, 2);
    assert_eq!(agent.runs(), 0);
    until_status(&site, &agent, 5).await;
    let doctor = agent.command(&["doctor"]).output().unwrap();
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("WRONG  disk: 0 MiB free"));
    std::fs::write(&free, "100000000000").unwrap();
    let id = site.task(&application, gpt(0), "with room", 70_000).await;
    succeeds(&site, id).await;

    // A disk with room for bytes, and for no more files.
    std::fs::write(&free, "100000000000 12").unwrap();
    until_status(&site, &agent, 5).await;
    let said = "the disk has room for 12 more files (`df -i`), and must have it for 1000";
    assert!(agent.log().contains(said), "{}", agent.log());
    let doctor = agent.command(&["doctor"]).output().unwrap();
    assert!(String::from_utf8_lossy(&doctor.stdout).contains(&format!("WRONG  disk: {said}")));
    std::fs::write(&free, "100000000000 100000").unwrap();
    until_status(&site, &agent, 1).await;
}

#[tokio::test]
async fn what_would_answer_otherwise_than_its_name_promises_does_not_answer() {
    let mut site = Site::new(&[("sdOverhead", 0), ("sdUnit", 1), ("limitMin", 20)]).await;
    let mut agent = site.agent("gpu0").await;
    let mut running = agent.start(None);
    until_status(&site, &agent, 1).await;
    running.kill();
    let application = site.account(10_000_000).await;
    // It has a task, and another stack when it comes back.
    let id = drawn(&site, &agent, &application, gpt(0), "whose answer?").await;
    agent.behave("differs");
    let mut running = agent.start(None);
    assert_eq!(error_of(&site, id).await, 2);
    until_status(&site, &agent, 5).await;
    assert_eq!(agent.runs(), 0, "it was not asked to");
    site.until("it says so", async || agent.log().contains("is registered as").then_some(())).await;
    running.kill();
    agent.behave("answers");
    let mut running = agent.start(None);
    until_status(&site, &agent, 1).await;

    // An executor that hangs is killed before the deadline, and an error reported.
    agent.behave("hangs");
    let id = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(0) }, "hangs", 70_000).await;
    assert_eq!(error_of(&site, id).await, 3);
    running.kill();

    // A GPU that does not answer.
    agent.behave("answers");
    agent.node_more = "gpu = \"GPU-00000000-0000-0000-0000-000000000000\"".into();
    agent.configure(&site);
    let mut running = agent.start(None);
    until_status(&site, &agent, 5).await;
    site.until("it says so", async || agent.log().contains("the GPU is lost").then_some(())).await;
    running.kill();
    agent.node_more.clear();
    agent.configure(&site);
    let _running = agent.start(None);
    until_status(&site, &agent, 1).await;
}

#[tokio::test]
async fn a_key_that_runs_dry_is_paused_and_one_that_is_filled_goes_on() {
    let mut site = Site::new(&[]).await;
    if !site.world.travels("a_key_that_runs_dry_is_paused_and_one_that_is_filled_goes_on") {
        return;
    }
    let at = free();
    let agent = listening(&mut site, at, "").await;
    let mut running = agent.start(None);
    until_status(&site, &agent, 1).await;
    let chain = site.world.node.unwrap().chain().clone();
    let address = PrivateKeySigner::from_bytes(&agent.key).unwrap().address();
    let fee = site.muster.endpoints().head().await.unwrap().base_fee_per_gas.unwrap();
    // Pays two calls, and needs one for the pause and two for a task.
    let call = U256::from(fee) * U256::from(2_000_000u64);
    chain.set_balance(address, call * U256::from(2));
    until_status(&site, &agent, 5).await;
    site.until("it says so", async || agent.log().contains("send it ether").then_some(())).await;
    // A little more is not enough: a margin prevents flapping.
    chain.set_balance(address, call * U256::from(9) / U256::from(2));
    looks_twice(&site, at).await;
    assert_eq!(status(&site, &agent).await, 5);
    chain.set_balance(address, call * U256::from(8));
    until_status(&site, &agent, 1).await;
    assert_eq!(count::<IMuster::resumeCall>(&calls_by(&site, agent.key).await), 1);

    // Less than the pause itself takes: it waits for ether, and signs nothing that could not be paid, also after a restart.
    chain.set_balance(address, call / U256::from(200));
    let refused = || agent.log().matches("insufficient funds: the account has").count();
    site.until("it says why", async || (refused() > 0).then_some(())).await;
    running.kill();
    let before = refused();
    let _running = agent.start(None);
    site.until("it says why again", async || (refused() > before).then_some(())).await;
    assert!(!opens(&agent), "a transaction is signed that the account cannot pay");
    chain.set_balance(address, call * U256::from(8));
    looks_twice(&site, at).await;
    // No pause waits that would be sent now. One that was begun at this moment has ended.
    until_status(&site, &agent, 1).await;
    let calls = calls_by(&site, agent.key).await;
    assert_eq!(count::<IMuster::pauseCall>(&calls), count::<IMuster::resumeCall>(&calls));
    // The pause that it could not pay was tried, not done: a pause that comes now is its operator's.
    let operator = site.account_of(agent.key, "operator").await;
    operator.call(IMuster::pauseCall {}, U256::ZERO).await.unwrap();
    looks_twice(&site, at).await;
    looks_twice(&site, at).await;
    assert_eq!(status(&site, &agent).await, 5, "{}", agent.log());
}

/// The files of an agent's transactions.
fn transactions(agent: &Agent) -> Vec<std::path::PathBuf> {
    let accounts = std::fs::read_dir(agent.home.join("state/transactions")).unwrap().flatten();
    let files = accounts.flat_map(|account| std::fs::read_dir(account.path()).into_iter().flatten().flatten());
    files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
}

/// Whether the agent has a transaction that is in no block.
fn opens(agent: &Agent) -> bool {
    let open = |text: String| text.contains("\"fate\":\"open\"");
    transactions(agent).into_iter().any(|file| std::fs::read_to_string(file).is_ok_and(open))
}

#[tokio::test]
async fn models_are_downloaded_by_the_operators_command_and_reported() {
    let mut site = Site::new(&[]).await;
    let mut agent = site.agent("gpu0").await;
    let note = agent.home.join("downloaded");
    agent.node_more = format!(
        "models = [\"held\"]\ndownload = [\"sh\", \"-c\", '''echo \"$MUSTER_MODEL $MUSTER_MODEL_ID $GPU_KEY\" >> {}''']",
        note.display()
    );
    agent.more = "models = [\"wanted\"]".into();
    agent.configure(&site);
    let _running = agent.start(None);
    until_status(&site, &agent, 1).await;
    let application = site.account(1_000_000).await;
    let wanted = muster_client::abi::model_id("wanted");
    let models = vec![muster_client::abi::model_id("held"), wanted];
    // A report that a missing program refuses is made when it is back.
    let embedded = site.world.node.is_some();
    let selector = IMuster::reportDownloadedCall::SELECTOR;
    let former = if embedded { lead(&site, selector, B256::ZERO).await } else { B256::ZERO };
    let id = site.task(&application, IMuster::TaskSpec { models, ..gpt(0) }, "with models", 70_000).await;
    site.event("an answer", |event| match event {
        Event::TaskSucceeded(e) if e.id == id => Some(()),
        _ => None,
    })
    .await;
    if embedded {
        let refused = || agent.log().contains("models not reported: UnknownFunction").then_some(());
        site.until("it is refused", async || refused()).await;
        lead(&site, selector, former).await;
    }
    site.event("a report", |event| match event {
        Event::ModelAdded(e) if e.model == wanted => Some(()),
        _ => None,
    })
    .await;
    assert_eq!(std::fs::read_to_string(note).unwrap(), format!("wanted {wanted:#012x} \n"), "once, and without the key");
    assert_eq!(journal(&agent).unwrap().len(), 1);
}

/// A node's list has 32 places, and a removed model keeps its own until it is purged.
#[tokio::test]
async fn a_list_full_of_models_that_are_gone_makes_place_for_a_new_one() {
    let mut site = Site::new(&[]).await;
    let mut agent = site.agent("gpu0").await;
    let names: Vec<String> = (0..34).map(|at| format!("model-{at}")).collect();
    agent.more = format!("models = {names:?}");
    agent.node_more = "download = [\"true\"]".into();
    agent.configure(&site);
    let mut running = agent.start(None);
    until_status(&site, &agent, 1).await;
    running.kill();
    let ids: Vec<u64> = names.iter().map(|name| muster_client::abi::model_id(name)).collect();
    let (operator, number) = (site.account_of(agent.key, "operator").await, site.node_of(agent.key).await);
    for models in ids[..32].chunks(8).map(<[u64]>::to_vec) {
        operator.call(IMuster::reportDownloadedCall { models: models.clone() }, U256::ZERO).await.unwrap();
        operator.call(IMuster::reportRemovedCall { models }, U256::ZERO).await.unwrap();
    }
    let _running = agent.start(None);
    until_status(&site, &agent, 1).await;
    let application = site.account(1_000_000).await;
    let wanted = ids[32..].to_vec();
    let id = site.task(&application, IMuster::TaskSpec { models: wanted.clone(), ..gpt(0) }, "with new models", 70_000).await;
    succeeds(&site, id).await;
    site.until("both are reported", async || {
        let held = site.view(number).await.models;
        wanted.iter().all(|model| held.contains(model)).then_some(())
    })
    .await;
    // Both at once, or one after the other; one more if the second comes in before the first is reported.
    let log = agent.log();
    let made = log
        .lines()
        .filter_map(|line| line.split_once(" places made among its models")?.0.rsplit(' ').next()?.parse::<u32>().ok());
    assert!((2..=3).contains(&made.sum::<u32>()), "{log}");
}

/// A hub with two models of one file each, as Hugging Face answers for them.
async fn hub(commit: &'static str) -> SocketAddr {
    let weights = |name: &str| name.repeat(100_000 / name.len());
    let list = move |Path((owner, name, asked)): Path<(String, String, String)>| async move {
        let (sha256, size) = (alloy::hex::encode(digest_of(weights(&name).as_bytes())), weights(&name).len());
        let file =
            serde_json::json!({ "rfilename": "model.safetensors", "size": size, "lfs": { "sha256": sha256, "size": size } });
        assert_eq!((owner.as_str(), asked.as_str()), ("us", commit));
        serde_json::json!({ "sha": commit, "siblings": [file] }).to_string()
    };
    let file = move |Path((_, name, asked)): Path<(String, String, String)>| async move {
        assert_eq!(asked, commit);
        weights(&name)
    };
    let app = axum::Router::new()
        .route("/api/models/{owner}/{name}/revision/{commit}", get_at(list))
        .route("/{owner}/{name}/resolve/{commit}/model.safetensors", get_at(file));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    at
}

#[tokio::test]
async fn what_the_chain_asks_for_beforehand_is_fetched_by_its_commit_and_what_made_room_is_reported() {
    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
    let mut site = Site::new(&[]).await;
    let at = hub(COMMIT).await;
    let mut holder = site.agent("gpu0").await;
    holder.node_more = "models = [\"us/one\", \"us/two\"]".into();
    holder.configure(&site);
    let mut other = site.agent("gpu1").await;
    let cache = other.home.join("cache");
    // One of them has room, and not both.
    other.more = format!(
        "models = [\"us/one\", \"us/two\"]\n[hub]\ncache = {cache:?}\nmost = 150_000\nurl = \"http://{at}\"\n\
         [hub.revisions]\n\"us/one\" = \"{COMMIT}\"\n\"us/two\" = \"{COMMIT}\""
    );
    other.configure(&site);
    let _running = [holder.start(None), other.start(None)];
    until_status(&site, &holder, 1).await;
    until_status(&site, &other, 1).await;
    let (number, application) = (site.node_of(other.key).await, site.account(1_000_000).await);
    let [one, two] = ["us/one", "us/two"].map(muster_client::abi::model_id);
    for model in [one, two] {
        let spec = IMuster::TaskSpec { models: vec![model], ..gpt(0) };
        let id = site.task(&application, spec, "for the holder", 70_000).await;
        site.event("it is asked", |event| match event {
            Event::DownloadRequested(e) if (e.node, e.model) == (number, model) => Some(()),
            _ => None,
        })
        .await;
        site.event("it has it", |event| match event {
            Event::ModelAdded(e) if (e.node, e.model) == (number, model) => Some(()),
            _ => None,
        })
        .await;
        succeeds(&site, id).await;
    }
    site.event("the first is reported as gone", |event| match event {
        Event::ModelRemoved(e) if (e.node, e.model) == (number, one) => Some(()),
        _ => None,
    })
    .await;
    assert_eq!(site.view(number).await.models, [two]);
    let kept = |name: &str| cache.join(format!("hub/models--us--{name}/snapshots/{COMMIT}/model.safetensors")).exists();
    assert!(kept("two") && !kept("one"));
}

#[tokio::test]
async fn a_download_longer_than_its_task_may_take_is_an_error_in_time() {
    let mut site = Site::new(&[("sdOverhead", 0), ("sdUnit", 1), ("limitMin", 20)]).await;
    let mut agent = site.agent("gpu0").await;
    let note = agent.home.join("downloading");
    // With a child process of its own, which ends some time even if this test fails.
    agent.node_more = format!("download = [\"sh\", \"-c\", '''sleep 60 & echo $! >> {}; wait''']", note.display());
    agent.configure(&site);
    let _running = agent.start(None);
    until_status(&site, &agent, 1).await;
    let application = site.account(1_000_000).await;
    let models = vec![muster_client::abi::model_id("large")];
    let id = site.task(&application, IMuster::TaskSpec { kind: 0, models, ..gpt(0) }, "with a model", 70_000).await;
    assert_eq!(error_of(&site, id).await, 3);
    let processes = std::fs::read_to_string(note).unwrap();
    let process = processes.lines().next().unwrap().parse().unwrap();
    site.until("the download has ended", async || (!alive(process)).then_some(())).await;
    assert!(!agent.log().contains("in a row"), "it is no failure of the node's: {}", agent.log());
}

#[tokio::test]
async fn a_self_test_longer_than_a_task_may_take_is_an_error_in_time() {
    let mut site = Site::new(&[("sdOverhead", 0), ("sdUnit", 1), ("limitMin", 20)]).await;
    let mut agent = site.agent("gpu0").await;
    agent.executor = agent.executor.replace("ready_within = 30", "ready_within = 3600");
    agent.configure(&site);
    let _running = agent.start(None);
    site.until("it is fit", async || agent.log().contains("the self-test passed").then_some(())).await;
    until_status(&site, &agent, 1).await;
    let application = site.account(1_000_000).await;
    // Its first failure, after which the executor is restarted.
    agent.behave("fails loads");
    let failed = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(0) }, "fails", 70_000).await;
    assert_eq!(error_of(&site, failed).await, 2);
    let next = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(0) }, "the next", 70_000).await;
    assert_eq!(error_of(&site, next).await, 3);
    assert_eq!(agent.runs(), 1, "the second was never begun");
    // It takes no others before it is fit, and then resumes by itself.
    until_status(&site, &agent, 5).await;
    agent.behave("answers");
    until_status(&site, &agent, 1).await;
}

#[tokio::test]
async fn a_restart_longer_than_its_task_may_take_is_an_error_in_time() {
    let mut site = Site::new(&[("sdOverhead", 0), ("sdUnit", 1), ("limitMin", 30)]).await;
    let mut agent = site.agent("gpu0").await;
    agent.executor = agent.executor.replace("ready_within = 30", "ready_within = 3600");
    agent.configure(&site);
    let mut running = agent.start(None);
    until_status(&site, &agent, 1).await;
    running.kill();
    let application = site.account(1_000_000).await;
    let id = drawn(&site, &agent, &application, IMuster::TaskSpec { kind: 0, ..gpt(0) }, "meanwhile").await;
    agent.behave("loads");
    let _running = agent.start(None);
    assert_eq!(error_of(&site, id).await, 3);
    assert_eq!(agent.runs(), 0);
    until_status(&site, &agent, 5).await;
    agent.behave("answers");
    until_status(&site, &agent, 1).await;
}

#[tokio::test]
async fn the_doctor_says_what_is_wrong() {
    let mut site = Site::new(&[]).await;
    let mut agent = site.agent("gpu0").await;
    let text = |agent: &Agent| {
        let output = agent.command(&["doctor"]).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).to_string())
    };
    let (well, said) = text(&agent);
    assert!(well, "{said}");
    for line in
        ["ok     key:", "ok     balance:", "ok     executor: reverse 1", "golden tasks: the name is \"Test GPU+", "it joins when"]
    {
        assert!(said.contains(line), "{line} is not in\n{said}");
    }
    agent.more = "chain = 1".into();
    agent.configure(&site);
    let (well, said) = text(&agent);
    assert!(!well && said.contains("WRONG  rpc: this is chain"), "{said}");
    // Checks that need no chain run all the same.
    assert!(said.contains("ok     key:") && said.contains("ok     executor:"), "{said}");
    agent.more.clear();
    agent.configure(&site);
    let path = agent.home.join("agent.toml");
    let good = std::fs::read_to_string(&path).unwrap();
    // A missing key is not a wrong password, and behind `| head` the reader has gone.
    let password = agent.home.join("password");
    std::fs::write(&password, "a password").unwrap();
    std::fs::set_permissions(&password, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let kept = format!("keystore = \"/nowhere/gpu0\"\npassword_file = {password:?}");
    std::fs::write(&path, good.replace("key_env = \"GPU_KEY\"", &kept)).unwrap();
    let (well, found) = text(&agent);
    let said = found.lines().find(|line| line.starts_with("WRONG  key:")).unwrap_or_else(|| panic!("{found}"));
    assert!(!well && said.contains("/nowhere/gpu0: No such file") && !said.contains("password"), "{found}");
    let mut unread = agent.command(&["doctor"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(unread.stdout.take());
    let unread = unread.wait_with_output().unwrap();
    assert!(unread.status.success() && unread.stderr.is_empty(), "{}", String::from_utf8_lossy(&unread.stderr));
    for (what, instead, said) in [
        ("key_env = \"GPU_KEY\"", "key_env = \"NO_KEY\"", "WRONG  key:"),
        ("[\"python3\"", "[\"no-such-program\"", "WRONG  executor:"),
        ("gpu_name = \"Test GPU\"\nvram = 24", "", "WRONG  GPU:"),
        ("stake = \"400000000\"", "", "WRONG  node:"),
        ("stake = \"400000000\"", "stake = \"400 ether\"", "WRONG  balance:"),
        ("put = [", "put = [\"http://127.0.0.1:1\"]#", "WRONG  store of results:"),
        ("get = [", "get = [\"http://127.0.0.1:1\"]#", "WRONG  store of inputs:"),
        ("[store]", "[stores]", "WRONG  configuration:"),
    ] {
        assert!(good.contains(what), "{what}");
        std::fs::write(&path, good.replace(what, instead)).unwrap();
        let (well, found) = text(&agent);
        assert!(!well && found.contains(said), "{said} is not in\n{found}");
    }
    // A copied block keeps its key.
    let block = &good[good.find("[[node]]").unwrap()..];
    std::fs::write(&path, format!("{good}\n{}", block.replace("name = \"gpu0\"", "name = \"gpu1\""))).unwrap();
    let (well, found) = text(&agent);
    assert!(!well && found.contains("WRONG  key: node gpu0 has the same"), "{found}");
}

#[tokio::test]
async fn the_log_says_that_a_node_rests_after_an_error() {
    let mut site = Site::new(&[]).await;
    let (agent, _running) = working(&mut site).await;
    let application = site.account(10_000_000).await;
    agent.behave("fails");
    let id = site.task(&application, gpt(0), "fails", 70_000).await;
    code_of(&site, id).await;
    let until = site.view(site.node_of(agent.key).await).await.parkedUntil;
    let rests = format!("until {until}: it has reported an error");
    site.until("it says so", async || agent.log().contains(&rests).then_some(())).await;
    let log = agent.log();
    assert!(log.contains("gpu0: rests for ") && log.matches(&rests).count() == 1, "{log}");
    for said in [
        format!("gpu0: task {id} failed; this node could not run it: as it was told"),
        format!("gpu0: task {id} failed (1 in a row): as it was told"),
    ] {
        assert!(log.contains(&said), "{said} is not in\n{log}");
    }
}

#[tokio::test]
async fn a_node_comes_back_from_its_rest_where_nobody_else_makes_a_block() {
    let mut site = Site::new(&[]).await;
    if !site.world.travels("a_node_comes_back_from_its_rest_where_nobody_else_makes_a_block") {
        return;
    }
    let (agent, _running) = working(&mut site).await;
    let application = site.account(10_000_000).await;
    agent.behave("fails");
    let id = site.task(&application, gpt(0), "fails", 70_000).await;
    code_of(&site, id).await;
    agent.behave("answers");
    // It is queued, because the only node rests.
    let id = site.task(&application, gpt(0), "waits", 70_000).await;
    let rest = site.view(site.node_of(agent.key).await).await.parkedUntil;
    let head = site.muster.endpoints().head().await.unwrap();
    assert!(rest > head.timestamp && site.muster.read(IMuster::overviewCall {}).await.unwrap().queued == 1, "{}", agent.log());
    // The last block is from three seconds before the rest is over, and time passes without another one.
    site.world.travel(rest - head.timestamp - 3);
    site.world.node.unwrap().chain().increase_time(3).unwrap();
    let begun = std::time::Instant::now();
    while !site.events().await.iter().any(|event| matches!(event, Event::TaskSucceeded(e) if e.id == id)) {
        assert!(begun.elapsed().as_secs() < 60, "the task waits for a block that nobody makes\n{}", agent.log());
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn a_directory_instead_of_a_result_is_in_no_later_tasks_way() {
    let mut site = Site::new(&[]).await;
    let (agent, _running) = working(&mut site).await;
    let application = site.account(10_000_000).await;
    agent.behave("makes a directory");
    let id = site.task(&application, gpt(0), "a model", 70_000).await;
    assert_eq!(error_of(&site, id).await, 2);
    assert!(agent.log().contains("its result is a directory"), "{}", agent.log());
    // The same in the input's place.
    agent.behave("replaces its input");
    let id = site.task(&application, gpt(0), "an input", 70_000).await;
    assert_eq!(error_of(&site, id).await, 1);
    agent.behave("answers");
    let id = site.task(&application, gpt(0), "a text", 70_000).await;
    site.event("an answer", |event| matches!(event, Event::TaskSucceeded(e) if e.id == id).then_some(())).await;
}

#[tokio::test]
async fn a_result_that_its_executor_goes_on_writing_is_stored_as_it_was_answered() {
    let mut site = Site::new(&[]).await;
    let (agent, _running) = working(&mut site).await;
    let application = site.account(10_000_000).await;
    agent.behave("goes on writing");
    let id = site.task(&application, gpt(0), "a text", 70_000).await;
    let digest = site.event("an answer", |event| match event {
        Event::TaskSucceeded(e) if e.id == id => Some(e.resultDigest),
        _ => None,
    });
    let digest = digest.await;
    agent.behave("answers");
    let found = site.store().get(digest).await.unwrap();
    assert!(found.bytes.starts_with(b"begun"));
}

/// Its success, and its findings.
fn doctor(agent: &Agent) -> (bool, String) {
    let output = agent.command(&["doctor"]).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stdout).to_string())
}

#[tokio::test]
async fn the_doctor_compares_the_stake_with_what_joining_takes() {
    let mut site = Site::new(&[]).await;
    let mut agent = site.agent("gpu0").await;
    let least = site.muster.least_stake().await.unwrap();
    assert_eq!(least, U256::from(agent.stake));
    let (well, said) = doctor(&agent);
    assert!(well && !said.contains("WRONG"), "{said}");
    agent.stake -= 1;
    agent.configure(&site);
    let (well, said) = doctor(&agent);
    let trouble = format!("`stake` is {}, and joining takes {} at least", show_amount(agent.stake), show_amount(least));
    assert!(!well && said.contains(&format!("WRONG  stake: {trouble}\n       set stake = \"{}\"", show_amount(least))), "{said}");
    // `run` says the same, and pays nothing.
    let running = agent.start(None);
    site.until("it does not begin", async || agent.log().contains(&trouble).then_some(())).await;
    drop(running);
    assert_eq!(calls_by(&site, agent.key).await, [[0; 4]; 0]);
    // Without ether it asks for one amount: of the least stake, the name and gas.
    let poor = B256::repeat_byte(0x5a);
    let name = said.split_once("the name is \"").unwrap().1.split_once('"').unwrap().0.to_string();
    let fee = site.muster.name_fee(&name, 24).await.unwrap();
    agent.key = poor;
    agent.configure(&site);
    let (well, said) = doctor(&agent);
    let asked = format!(" is the least: {} of stake, {} for a new name, and gas\n", show_amount(least), show_amount(fee));
    assert!(!well && said.contains("WRONG  balance: 0") && said.contains(&asked), "{said}");
    assert_eq!(said.matches("send ether to").count(), 1, "{said}");
    // The contract has other reasons to refuse: the call itself is tried.
    let key = site.key(3 * least.to::<u64>()).await;
    (agent.key, agent.stake) = (key, least.to());
    agent.configure(&site);
    site.world.rule(IMuster::setPausedCall { on: true }).await;
    let (well, said) = doctor(&agent);
    assert!(!well && said.contains("WRONG  joining: ") && said.contains("PausedByOwner"), "{said}");
}

#[tokio::test]
async fn the_doctor_says_that_the_least_stake_was_raised_above_a_nodes_own() {
    let mut site = Site::new(&[]).await;
    if !site.world.travels("the_doctor_says_that_the_least_stake_was_raised_above_a_nodes_own") {
        return;
    }
    let (agent, mut running) = working(&mut site).await;
    running.kill();
    assert!(!doctor(&agent).1.contains("raise-stake"));
    let raised = U256::from(agent.stake / STAKE_UNIT + 1);
    site.world.rule(IMuster::proposeParameterCall { parameter: 16, value: raised }).await;
    site.world.travel(UPGRADE_DELAY.into());
    site.world.rule(IMuster::acceptParameterCall { parameter: 16 }).await;
    let (well, said) = doctor(&agent);
    assert!(well && said.contains("note   stake: ") && said.contains("`muster node raise-stake 0.00"), "{said}");
}

#[tokio::test]
async fn a_node_that_joined_anew_under_another_name_answers_nothing_under_it() {
    let mut site = Site::new(&[]).await;
    if !site.world.travels("a_node_that_joined_anew_under_another_name_answers_nothing_under_it") {
        return;
    }
    let (agent, _running) = working(&mut site).await;
    let (application, number) = (site.account(1_000_000).await, site.node_of(agent.key).await);
    let operator = site.account_of(agent.key, "operator").await;
    let own = site.muster.read(IMuster::gpuNameCall { group: site.view(number).await.gpu }).await.unwrap();
    let to = PrivateKeySigner::from_bytes(&agent.key).unwrap().address();
    let join = async |name: &str| {
        let fee = site.muster.name_fee(name, VRAM).await.unwrap();
        let call = IMuster::joinCall { gpuName: name.into(), vram: VRAM, models: vec![] };
        operator.call(call, U256::from(agent.stake) + fee).await.unwrap();
    };
    operator.call(IMuster::quitCall {}, U256::ZERO).await.unwrap();
    let left = format!("node {number} is not joined any more");
    site.until("it says that it left", async || agent.log().contains(&left).then_some(())).await;
    join("Another GPU").await;
    until_status(&site, &agent, 5).await;
    assert!(agent.log().contains("has joined anew, as \"Another GPU\""), "{}", agent.log());
    assert!(agent.log().contains("is registered as \"Another GPU\""), "{}", agent.log());
    // Under its own name it works again.
    operator.call(IMuster::quitCall {}, U256::ZERO).await.unwrap();
    site.world.travel(86_401);
    operator.call(IMuster::withdrawCall { to }, U256::ZERO).await.unwrap();
    join(&own).await;
    site.until("it is fit", async || agent.log().contains("no reason to pause any more: self-test").then_some(())).await;
    let id = site.task(&application, gpt(0), "whose?", 70_000).await;
    succeeds(&site, id).await;
    assert_eq!(agent.runs(), 1, "{}", agent.log());
}

#[tokio::test]
async fn what_the_owner_proposes_is_an_alert_and_what_the_owner_changes_is_in_the_log() {
    let mut site = Site::new(&[]).await;
    let at = free();
    let agent = listening(&mut site, at, "").await;
    let _running = agent.start(None);
    until_status(&site, &agent, 1).await;
    let logged = async |text: &str| site.until(text, async || agent.log().contains(text).then_some(())).await;
    site.world.rule(IMuster::proposeParameterCall { parameter: 29, value: U256::from(30) }).await;
    logged("the owner proposes: parameter 29 is to be 30 from").await;
    let (program, selectors) = (site.muster.address(), vec![IMuster::withdrawCall::SELECTOR.into()]);
    site.world.rule(IMuster::proposeProgramsCall { program, selectors: selectors.clone() }).await;
    logged(&format!("the owner proposes: 1 functions are to lead to the program {program} from")).await;
    assert_eq!(metric(at, "muster_agent_alerts_total{kind=\"proposal\"}"), Some(2.0));
    site.world.rule(IMuster::withdrawProgramsCall { program, selectors }).await;
    logged("owner: withdrawn: ").await;
    site.world.rule(IMuster::setPausedCall { on: true }).await;
    logged("owner: new tasks and joins are stopped").await;
    let group = site.view(site.node_of(agent.key).await).await.gpu;
    site.world.rule(IMuster::listGpuGroupCall { group, listed: true }).await;
    logged(&format!("GPU group {group} is listed")).await;
    assert_eq!(metric(at, "muster_agent_alerts_total{kind=\"listed\"}"), Some(1.0));
    assert_eq!(metric(at, "muster_agent_alerts_total{kind=\"proposal\"}"), Some(2.0));
}

#[tokio::test]
async fn the_doctor_finds_a_model_that_the_executor_does_not_run() {
    let mut site = Site::new(&[]).await;
    let mut agent = site.agent("gpu0").await;
    let executors = concat!(env!("CARGO_MANIFEST_DIR"), "/executors");
    let program = format!(
        r#"import shutil, sys
sys.path.insert(0, {executors:?})
import lines
def run(task):
    others = [name for name in task["models"] if name != "ours/known"]
    if others:
        raise lines.TaskFault(f"this node runs ours/known, not {{', '.join(others)}}")
    shutil.copyfile(task["input"], task["output"])
lines.serve("one", "1", ["gpt"], "", run)
"#
    );
    let file = agent.home.join("one.py");
    std::fs::write(&file, program).unwrap();
    agent.executor = format!("command = [\"python3\", \"-B\", {file:?}]\ndirectory = {:?}", agent.home);
    let mut says = |models: &str| {
        agent.node_more = format!("models = {models}");
        agent.configure(&site);
        doctor(&agent)
    };
    let (well, said) = says(r#"["ours/known"]"#);
    assert!(well && !said.contains("WRONG"), "{said}");
    let (well, said) = says(r#"["ours/known", "foo/unknown-model"]"#);
    let found = "WRONG  model: the executor runs no golden task that needs foo/unknown-model: this node runs ours/known, not";
    assert!(!well && said.contains(found) && said.matches("WRONG").count() == 1, "{said}");
}

#[tokio::test]
async fn the_doctor_leaves_nothing_behind() {
    let mut site = Site::new(&[]).await;
    let mut agent = site.agent("gpu0").await;
    let (state, results) = (agent.home.join("state"), agent.home.join("fresh/results"));
    agent.stores = Some(format!("get = [{results:?}]\nput = [{results:?}]"));
    agent.more = format!("listen = \"{}\"\n[hub]\ncache = {:?}\nmost = 1000", free(), agent.home.join("cache"));
    agent.configure(&site);
    let (well, said) = doctor(&agent);
    assert!(well && said.contains("ok     store of results"), "{said}");
    for place in [&state, &results, &agent.home.join("fresh"), &agent.home.join("cache")] {
        assert!(!place.exists(), "{} is left: {said}", place.display());
    }
    // Folders that are there stay as they are.
    std::fs::create_dir_all(&results).unwrap();
    std::fs::create_dir(&state).unwrap();
    let (well, said) = doctor(&agent);
    assert!(well && results.is_dir(), "{said}");
    assert_eq!(std::fs::read_dir(&state).unwrap().count() + std::fs::read_dir(&results).unwrap().count(), 0, "{said}");
}

#[tokio::test]
async fn the_doctor_says_where_answers_are_read_while_they_are_made() {
    let mut site = Site::new(&[]).await;
    let mut agent = site.agent("gpu0").await;
    let text = |agent: &Agent| {
        let output = agent.command(&["doctor"]).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).to_string())
    };
    let at = free();
    let says = |agent: &mut Agent, more: String| {
        agent.more = more;
        agent.configure(&site);
        text(agent)
    };
    let (well, said) = says(&mut agent, format!("[stream]\nlisten = \"{at}\""));
    assert!(well && said.contains(&format!("ok     stream: {at}, for 64 readers")), "{said}");
    assert!(said.contains("note   stream: without `url` nobody learns"), "{said}");
    assert!(!said.contains("gives its answers whole"), "{said}");
    let here = format!("[stream]\nlisten = \"{at}\"\nurl = \"http://{at}/stream\"");
    let (well, said) = says(&mut agent, here.clone());
    let inside = format!("note   stream: http://{at}/stream gives what is shown here at once, but is on this machine");
    assert!(well && said.contains(&inside) && said.contains("is not encrypted"), "{said}");
    // The same address twice, and another's.
    let (well, said) = says(&mut agent, format!("listen = \"{at}\"\n{here}"));
    assert!(!well && said.contains(&format!("WRONG  stream: cannot show answers at {at}")), "{said}");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let (well, said) = says(&mut agent, format!("[stream]\nlisten = \"{}\"", taken.local_addr().unwrap()));
    assert!(!well && said.contains("WRONG  stream: cannot show answers at"), "{said}");
    // While the agent runs, it is the one that answers.
    agent.more = here.clone();
    agent.configure(&site);
    let running = agent.start(None);
    until_status(&site, &agent, 1).await;
    let (well, said) = text(&agent);
    assert!(well && said.contains(&format!("ok     stream: an agent answers at http://{at}/stream")), "{said}");
    let (well, said) = says(&mut agent, here.replace("/stream\"", "/elsewhere\""));
    assert!(!well && said.contains("WRONG  stream: no agent answers at") && said.contains("404 Not Found"), "{said}");
    drop(running);
}

#[tokio::test]
async fn killed_it_leaves_no_executor_behind() {
    let mut site = Site::new(&[]).await;
    let (agent, mut running) = working(&mut site).await;
    // One that looks neither at its standard input nor at signals, and has started another.
    agent.behave("stays");
    let application = site.account(10_000_000).await;
    site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(0) }, "stays", 70_000).await;
    let file = agent.home.join("runs.pids");
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    site.until("both run", async || (read().lines().count() == 2).then_some(())).await;
    let processes: Vec<i32> = read().lines().map(|line| line.parse().unwrap()).collect();
    assert!(processes.iter().copied().all(alive));
    running.kill();
    site.until("both are gone", async || (!processes.iter().copied().any(alive)).then_some(())).await;
}

#[tokio::test]
async fn what_it_is_too_late_for_it_ends_itself() {
    let mut site = Site::new(&[("sdOverhead", 0), ("sdUnit", 1), ("limitMin", 20)]).await;
    let agent = site.agent("gpu0").await;
    agent.behave("hangs");
    let mut running = agent.start(None);
    until_status(&site, &agent, 1).await;
    let application = site.account(10_000_000).await;
    let id = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(0) }, "too late", 70_000).await;
    site.until("it runs", async || (agent.runs() == 1).then_some(())).await;
    running.kill();
    agent.behave("answers");
    site.world.travel(1_000);
    // Nobody else is there, so without a call of its own it would have its task for ever.
    let _running = agent.start(None);
    let reason =
        site.event("the end", |event| if let Event::TaskAborted(e) = event { (e.id == id).then_some(e.reason) } else { None });
    assert_eq!(reason.await, 0);
    until_status(&site, &agent, 1).await;
    // It expires the overdue task before it hears of it. Nor does it try again and again.
    site.until("it says so", async || agent.log().contains(": ended its overdue task ").then_some(())).await;
    assert!(agent.log().matches("the self-test passed").count() < 5, "it does not try again and again: {}", agent.log());
    let id = site.task(&application, gpt(0), "in time", 70_000).await;
    site.event("an answer", |event| if let Event::TaskSucceeded(e) = event { (e.id == id).then_some(()) } else { None }).await;
}

/// Here the chain is years behind the machine, as for a machine whose clock was set wrong.
#[tokio::test]
async fn a_machine_whose_clock_is_ahead_at_the_start_does_not_give_up_its_task() {
    let world = World::on(Some(Box::leak(Box::new(embedded_at(1_500_000_000)))), (STAKE_UNIT, LEAST.into()), None, &[]).await;
    let mut site = Site::of(world, &[]).await;
    let (agent, mut running) = working(&mut site).await;
    running.kill();
    let application = site.account(10_000_000).await;
    let id = drawn(&site, &agent, &application, IMuster::TaskSpec { kind: 0, ..gpt(0) }, "meanwhile").await;
    let _running = agent.start(None);
    let end = site.until("an end", async || {
        site.events().await.into_iter().find_map(|event| match event {
            Event::TaskSucceeded(e) if e.id == id => Some(0),
            Event::TaskErrorReported(e) if e.id == id => Some(e.code),
            _ => None,
        })
    });
    assert_eq!(end.await, 0, "{}", agent.log());
}

#[tokio::test]
async fn it_is_paused_while_a_task_waits_that_pays_too_little() {
    let mut site = Site::new(&[]).await;
    let mut agent = site.agent("gpu0").await;
    // 60 seconds are estimated for a text.
    agent.node_more = "terms = { least = { gpt = \"1000\" }, policies = [\"single\"], calm = 1 }".into();
    agent.configure(&site);
    let mut running = agent.start(None);
    until_status(&site, &agent, 1).await;
    let application = site.account(10_000_000).await;
    let doctor = agent.command(&["doctor"]).output().unwrap();
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(said.contains("terms: the contract asks no node for its terms"), "{said}");
    agent.behave("slow 8");
    for round in 1..=2 {
        // While it runs one that pays enough, a task comes that does not, and would be its next.
        let enough = site.task(&application, gpt(0), &format!("enough {round}"), 60_000).await;
        site.until("it runs", async || (agent.runs() == round).then_some(())).await;
        let cheap = site.task(&application, gpt(0), &format!("cheap {round}"), 59_000).await;
        let queued = async || {
            application.call(IMuster::dispatchCall { count: 1 }, U256::ZERO).await.unwrap();
            let events = site.events().await;
            events
                .into_iter()
                .find_map(|event| if let Event::TaskQueued(e) = event { (e.id == cheap).then_some(e.ticket) } else { None })
        };
        let ticket = site.until("it is queued", queued).await;
        succeeds(&site, enough).await;
        until_status(&site, &agent, 5).await;
        assert!(agent.log().contains(&format!("task {cheap} brings")), "{}", agent.log());
        let paused = inputs_by(&site, agent.key).await.into_iter().find_map(|input| muster_client::pause::reasons(&input));
        assert_eq!(paused.unwrap(), ["price"]);
        if round == 1 {
            // Its creator takes it back.
            application.call(IMuster::cancelCall { id: cheap, ticket }, U256::ZERO).await.unwrap();
            until_status(&site, &agent, 1).await;
            assert_eq!(agent.runs(), 1, "{}", agent.log());
        } else {
            // Its operator gives up the terms.
            running.kill();
            agent.node_more.clear();
            agent.configure(&site);
            running = agent.start(None);
            succeeds(&site, cheap).await;
        }
    }
}

#[tokio::test]
async fn it_is_not_ready_when_the_programs_have_expired() {
    let mut site = Site::new(&[]).await;
    if !site.world.travels("it_is_not_ready_when_the_programs_have_expired") {
        return;
    }
    let at = free();
    let agent = listening(&mut site, at, "").await;
    let _running = agent.start(None);
    let ready = || metric(at, "muster_agent_ready{node=\"gpu0\"}");
    site.until("it is ready", async || (ready() == Some(1.0)).then_some(())).await;
    site.world.travel(366 * 86_400);
    site.until("it is not ready", async || (ready() == Some(0.0)).then_some(())).await;
    assert_eq!(get(at, "/ready").unwrap().0, 503);
    assert!(agent.log().contains("ProgramFailed"), "{}", agent.log());
}

/// Leads a function of the contract to a program, or nowhere, and returns the former program.
async fn lead(site: &Site, selector: [u8; 4], to: B256) -> B256 {
    // As `Muster::programs` reads it.
    let slot = keccak256([B256::right_padding_from(&selector), B256::with_last_byte(9)].concat());
    let (endpoints, router) = (site.muster.endpoints(), site.muster.address());
    let former = endpoints.word(router, slot).await.unwrap();
    let _: serde_json::Value = endpoints.ask("anvil_setStorageAt", serde_json::json!([router, slot, to])).await.unwrap();
    former
}

/// As after a bad upgrade, or an expired program, that is mended while the task runs.
#[tokio::test]
async fn what_a_missing_program_keeps_from_being_answered_is_answered_when_it_is_back() {
    let mut site = Site::new(&[("sampleBps", 0)]).await;
    if !site.world.travels("what_a_missing_program_keeps_from_being_answered_is_answered_when_it_is_back") {
        return;
    }
    let (agent, _running) = working(&mut site).await;
    let application = site.account(10_000_000).await;
    for (redundancy, selector) in
        [(0, IMuster::submitCall::SELECTOR), (1, IMuster::commitCall::SELECTOR), (1, IMuster::revealCall::SELECTOR)]
    {
        let former = lead(&site, selector, B256::ZERO).await;
        let id = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(redundancy) }, "meanwhile", 100_000).await;
        let said = || {
            let log = agent.log();
            let mut own = log.lines().filter(|line| line.contains(&format!("task {id} ")));
            own.any(|line| line.contains("UnknownFunction") && line.contains("alert=\"program\""))
        };
        site.until("it is refused", async || said().then_some(())).await;
        assert_eq!(lead(&site, selector, former).await, B256::ZERO);
        succeeds(&site, id).await;
    }
}

/// An answer that is not revealed is slashed, which costs more than its gas.
#[tokio::test]
async fn what_it_has_committed_to_is_revealed_whatever_gas_costs() {
    let mut site = Site::new(&[("sampleBps", 0), ("scorePool", 3)]).await;
    if !site.world.travels("what_it_has_committed_to_is_revealed_whatever_gas_costs") {
        return;
    }
    let mut agent = site.agent("gpu0").await;
    agent.more = "max_gas_price = \"0.15 gwei\"".into();
    agent.configure(&site);
    let mut running = agent.start(None);
    until_status(&site, &agent, 1).await;
    running.kill();
    let application = site.account(10_000_000).await;
    let images = IMuster::TaskSpec { kind: 0, ..gpt(1) };
    let id = site.task(&application, images.clone(), "before gas is expensive", 100_000).await;
    let mut running = agent.start(Some("committed"));
    site.until("it dies", async || running.ended()).await;
    site.world.node.unwrap().chain().set_base_fee(1_000_000_000);
    let _running = agent.start(None);
    succeeds(&site, id).await;

    // Other calls wait, and somebody is told.
    let second = site.task(&application, images, "while gas is expensive", 100_000).await;
    let said = "the base fee is 1000000000 wei, above the ceiling of 150000000";
    site.until("it says so", async || {
        agent.log().lines().any(|line| line.contains("alert") && line.contains(said)).then_some(())
    })
    .await;
    site.world.node.unwrap().chain().set_base_fee(100_000_000);
    succeeds(&site, second).await;
}

/// As on a file system that is only read any more.
#[tokio::test]
async fn what_it_has_committed_to_is_revealed_although_the_disk_takes_nothing() {
    let mut site = Site::new(&[("scorePool", 3)]).await;
    if !site.world.travels("what_it_has_committed_to_is_revealed_although_the_disk_takes_nothing") {
        return;
    }
    let (agent, _running) = working(&mut site).await;
    let own = site.node_of(agent.key).await;
    let others = others(&mut site, own).await;
    let application = site.account(10_000_000).await;
    let id = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(2) }, "three at once", 300_000).await;
    let committed = || journal(&agent).is_some_and(|jobs| jobs.iter().any(|(_, stage, _)| stage == "committed"));
    site.until("the agent commits", async || committed().then_some(())).await;
    let state = agent.home.join("state");
    let directory = transactions(&agent).pop().unwrap().parent().unwrap().to_path_buf();
    std::fs::rename(&directory, agent.home.join("away")).unwrap();
    let database = rusqlite::Connection::open(state.join("journal.sqlite")).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    commit_all(&site, id, &others).await;
    let reveals = |event: &Event| matches!(event, Event::AnswerRevealed(e) if (e.id, e.node) == (id, own)).then_some(());
    site.event("the agent reveals", reveals).await;
    site.until("it says so", async || agent.log().contains("it reveals without writing that down").then_some(())).await;
    // Then the disk takes something again.
    database.execute_batch("ROLLBACK").unwrap();
    std::fs::rename(agent.home.join("away"), &directory).unwrap();
    let revealed = || journal(&agent).is_some_and(|jobs| jobs.iter().any(|(_, stage, _)| stage == "revealed"));
    site.until("it goes on", async || revealed().then_some(())).await;
}

/// An opening of the others.
const OTHERS: Opening = Opening { kind: 1, value: B256::with_last_byte(1), salt: B256::repeat_byte(7) };

/// Two nodes beside an agent's, whose accounts act by hand.
async fn others(site: &mut Site, own: u32) -> Vec<(Account, u32)> {
    let mut others = Vec::new();
    for node in [own + 1, own + 2] {
        let account = site.account(2 * LEAST).await;
        let join = IMuster::joinCall { gpuName: format!("the GPU of {node}"), vram: VRAM, models: vec![] };
        // A new name costs a hundredth of the least stake.
        account.call(join, U256::from(LEAST + LEAST / 100)).await.unwrap();
        others.push((account, node));
    }
    others
}

/// Has them commit to their opening; returns their group.
async fn commit_all(site: &Site, id: u64, others: &[(Account, u32)]) -> u32 {
    let mut group = 0;
    for (account, node) in others {
        let begins = |event: &Event| match event {
            Event::MemberStarted(e) if (e.id, e.node) == (id, *node) => Some(e.group),
            _ => None,
        };
        group = site.event("a member begins", begins).await;
        let commitment = OTHERS.commitment(id, *node);
        account.call(IMuster::commitCall { id, commitment }, U256::ZERO).await.unwrap();
    }
    group
}

/// A late reveal counts until the judgement. So whoever was cut off, with the chain, its programs or an endpoint, can come back.
#[tokio::test]
async fn who_has_not_revealed_in_time_can_do_so_before_an_agent_has_the_group_judged() {
    let mut site = Site::new(&[("scorePool", 3)]).await;
    if !site.world.travels("who_has_not_revealed_in_time_can_do_so_before_an_agent_has_the_group_judged") {
        return;
    }
    let at = free();
    let agent = listening(&mut site, at, "").await;
    let _running = agent.start(None);
    until_status(&site, &agent, 1).await;
    let own = site.node_of(agent.key).await;
    let others = others(&mut site, own).await;
    let application = site.account(10_000_000).await;
    let id = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(2) }, "three at once", 300_000).await;
    let group = commit_all(&site, id, &others).await;
    let Opening { kind, value, salt } = OTHERS;
    let reveals = |event: &Event| matches!(event, Event::AnswerRevealed(e) if (e.id, e.node) == (id, own)).then_some(());
    site.event("the agent reveals", reveals).await;
    let reveal = |node| IMuster::revealCall { id, group, node, kind, value, salt };
    others[0].0.call(reveal(own + 1), U256::ZERO).await.unwrap();
    site.world.travel(7_201);
    for _ in 0..3 {
        looks_twice(&site, at).await;
    }
    others[1].0.call(reveal(own + 2), U256::ZERO).await.unwrap_or_else(|error| panic!("{error}: {}", agent.log()));
    site.event("a judgement", |event| matches!(event, Event::GroupSettled(e) if e.id == id).then_some(())).await;
}
