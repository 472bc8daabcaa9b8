//! Agents that end, pause, recover, and say how they are.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use alloy::primitives::U256;
use alloy::signers::local::PrivateKeySigner;
use axum::routing::post;
use muster_client::{Account, Event, IMuster};
use muster_fleet::site::{calls_by, count, gpt, journal, Agent, Site};

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

async fn error_of(site: &Site, id: u64) -> u8 {
    site.event("an error", |event| match event {
        Event::TaskErrorReported(e) if e.id == id => Some(e.code),
        _ => None,
    })
    .await
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
    // What is dead and not waited for by anybody yet is still there by its number.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    rustix::process::test_kill_process(process).is_ok() && !stat.is_ok_and(|stat| stat.contains(") Z "))
}

/// An address that nothing listens at.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// What an agent answers to a GET, with its status.
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

/// Waits until an agent has looked at the chain twice more: what it makes of something that is so now, it has done by then.
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
    let mut agent = site.agent("gpu0").await;
    agent.more = format!("listen = \"{at}\"");
    agent.configure(&site);
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
}

#[tokio::test]
async fn two_failures_in_a_row_pause_it_and_a_webhook_and_metrics_say_so() {
    let mut site = Site::new(&[]).await;
    let told = Arc::new(Mutex::new(Vec::<serde_json::Value>::new()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let webhook = listener.local_addr().unwrap();
    let hear = told.clone();
    let app = axum::Router::new()
        .route("/hook", post(async move |body: String| hear.lock().unwrap().push(serde_json::from_str(&body).unwrap())));
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let at = free();
    let mut agent = site.agent("gpu0").await;
    agent.more = format!("listen = \"{at}\"\nwebhook = \"http://{webhook}/hook\"");
    agent.configure(&site);
    let mut running = agent.start(None);
    site.until("it is ready", async || get(at, "/ready").filter(|(status, _)| *status == 200)).await;
    site.until("it is well", async || get(at, "/health").filter(|(status, _)| *status == 200)).await;
    let application = site.account(10_000_000).await;

    agent.behave("fails");
    for failures in 1..=2 {
        let id = site.task(&application, gpt(0), "fails", 70_000).await;
        assert_eq!(error_of(&site, id).await, 2);
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

    // Until somebody has looked at it.
    running.kill();
    agent.behave("answers");
    let _running = agent.start(None);
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
    let mut agent = site.agent("gpu0").await;
    agent.more = format!("listen = \"{at}\"");
    agent.configure(&site);
    let _running = agent.start(None);
    until_status(&site, &agent, 1).await;
    let chain = site.world.node.unwrap().chain().clone();
    let address = PrivateKeySigner::from_bytes(&agent.key).unwrap().address();
    let fee = site.muster.endpoints().head().await.unwrap().base_fee_per_gas.unwrap();
    // Pays two calls, and needs one for the pause and two for a task.
    let call = U256::from(fee) * U256::from(2_000_000u64);
    chain.set_balance(address, call * U256::from(2));
    until_status(&site, &agent, 5).await;
    site.until("it says so", async || agent.log().contains("send it ether").then_some(())).await;
    // A little more is not enough; it would go to and fro.
    chain.set_balance(address, call * U256::from(9) / U256::from(2));
    looks_twice(&site, at).await;
    assert_eq!(status(&site, &agent).await, 5);
    chain.set_balance(address, call * U256::from(8));
    until_status(&site, &agent, 1).await;
    assert_eq!(count::<IMuster::resumeCall>(&calls_by(&site, agent.key).await), 1);
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
    let id = site.task(&application, IMuster::TaskSpec { models, ..gpt(0) }, "with models", 70_000).await;
    site.event("an answer", |event| match event {
        Event::TaskSucceeded(e) if e.id == id => Some(()),
        _ => None,
    })
    .await;
    site.event("a report", |event| match event {
        Event::ModelAdded(e) if e.model == wanted => Some(()),
        _ => None,
    })
    .await;
    assert_eq!(std::fs::read_to_string(note).unwrap(), format!("wanted {wanted:#012x} \n"), "once, and without the key");
    assert_eq!(journal(&agent).unwrap().len(), 1);
}

#[tokio::test]
async fn a_download_longer_than_its_task_may_take_is_an_error_in_time() {
    let mut site = Site::new(&[("sdOverhead", 0), ("sdUnit", 1), ("limitMin", 20)]).await;
    let mut agent = site.agent("gpu0").await;
    let note = agent.home.join("downloading");
    // With something that it has started itself, and that ends some time whatever becomes of this test.
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
    // Its first failure, after which the executor is started anew.
    agent.behave("fails loads");
    let failed = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(0) }, "fails", 70_000).await;
    assert_eq!(error_of(&site, failed).await, 2);
    let next = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(0) }, "the next", 70_000).await;
    assert_eq!(error_of(&site, next).await, 3);
    assert_eq!(agent.runs(), 1, "the second was never begun");
    // It takes no others before it is fit, and then it does by itself.
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
    agent.more.clear();
    agent.configure(&site);
    let path = agent.home.join("agent.toml");
    let good = std::fs::read_to_string(&path).unwrap();
    for (what, instead, said) in [
        ("key_env = \"GPU_KEY\"", "key_env = \"NO_KEY\"", "WRONG  key:"),
        ("[\"python3\"", "[\"no-such-program\"", "WRONG  executor:"),
        ("gpu_name = \"Test GPU\"\nvram = 24", "", "WRONG  GPU:"),
        ("stake = \"400000000\"", "", "WRONG  node:"),
        ("stake = \"400000000\"", "stake = \"400 ether\"", "WRONG  balance:"),
        ("put = [", "put = [\"http://127.0.0.1:1\"]#", "WRONG  stores of results:"),
        ("get = [", "get = [\"http://127.0.0.1:1\"]#", "WRONG  store of inputs:"),
        ("[store]", "[stores]", "WRONG  configuration:"),
    ] {
        assert!(good.contains(what), "{what}");
        std::fs::write(&path, good.replace(what, instead)).unwrap();
        let (well, found) = text(&agent);
        assert!(!well && found.contains(said), "{said} is not in\n{found}");
    }
}

#[tokio::test]
async fn killed_it_leaves_no_executor_behind() {
    let mut site = Site::new(&[]).await;
    let agent = site.agent("gpu0").await;
    let mut running = agent.start(None);
    until_status(&site, &agent, 1).await;
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
    // Nobody else is there, so that it would have its task for ever.
    let _running = agent.start(None);
    let reason =
        site.event("the end", |event| if let Event::TaskAborted(e) = event { (e.id == id).then_some(e.reason) } else { None });
    assert_eq!(reason.await, 0);
    until_status(&site, &agent, 1).await;
    // What it sends is there before it has heard so.
    site.until("it says so", async || agent.log().contains("Expire(").then_some(())).await;
    assert!(agent.log().matches("the self-test passed").count() < 5, "it does not try again and again: {}", agent.log());
    let id = site.task(&application, gpt(0), "in time", 70_000).await;
    site.event("an answer", |event| if let Event::TaskSucceeded(e) = event { (e.id == id).then_some(()) } else { None }).await;
}
