//! Endpoints that answer from an old state, or give the events of few blocks at a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use alloy::primitives::U256;
use alloy::rpc::types::Log;
use alloy::sol_types::{SolCall, SolEvent};
use muster_client::{Account, Cursor, Event, IMuster};
use muster_fleet::site::{digest_to, gpt, journal, Agent, Running, Site, VRAM};
use muster_fleet::wire::{announcing, before};
use muster_fleet::world::LEAST;
use serde_json::{json, Value};
use tokio::sync::watch;

/// Methods whose answers depend on a block, and where their parameters name it.
const AT: [(&str, usize); 6] = [
    ("eth_call", 1),
    ("eth_estimateGas", 1),
    ("eth_getBalance", 1),
    ("eth_getCode", 1),
    ("eth_getTransactionCount", 1),
    ("eth_getBlockByNumber", 0),
];

/// An endpoint before another.
struct Endpoint {
    url: String,
    /// The newest block that it shows; 0 for the other's.
    shows: Arc<AtomicU64>,
    /// The block by which it says what a node runs; 0 for the newest.
    lags: Arc<AtomicU64>,
    /// The most blocks whose events it gives at once, and milliseconds that it takes for that; 0 for no limit.
    gives: Arc<AtomicU64>,
    takes: Arc<AtomicU64>,
    /// Whether it takes transactions: 0 if it does.
    refuses: Arc<AtomicU64>,
    /// Questions about events.
    asked: Arc<AtomicU64>,
}

fn number(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

impl Endpoint {
    async fn start(to: &str) -> Self {
        let [shows, lags, gives, takes, refuses, asked] = [(); 6].map(|()| Arc::<AtomicU64>::default());
        let (newest, late, most, slow, count) = (shows.clone(), lags.clone(), gives.clone(), takes.clone(), asked.clone());
        let closed = refuses.clone();
        let change = move |mut asked: Value| {
            let [newest, late, most, slow, closed] =
                [&newest, &late, &most, &slow, &closed].map(|one| one.load(Ordering::SeqCst));
            let count = count.clone();
            async move {
                let method = asked["method"].as_str().unwrap().to_string();
                let answer = |result: Value| Err(json!({ "jsonrpc": "2.0", "id": 1, "result": result }));
                if closed > 0 && method == "eth_sendRawTransaction" {
                    return Err(json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32000, "message": "not now" } }));
                }
                if newest > 0 {
                    if method == "eth_blockNumber" {
                        return answer(json!(format!("{newest:#x}")));
                    }
                    if method == "eth_getTransactionReceipt" {
                        return answer(Value::Null);
                    }
                    if let Some((_, place)) = AT.iter().find(|(name, _)| *name == method) {
                        let block = &mut asked["params"][*place];
                        if block.as_str().is_some_and(|block| ["latest", "pending"].contains(&block)) {
                            *block = json!(format!("{newest:#x}"));
                        } else if number(block) > newest {
                            return answer(Value::Null);
                        }
                    }
                }
                let running = alloy::hex::encode(IMuster::runningTaskCall::SELECTOR);
                if late > 0 && method == "eth_call" && asked["params"][0].to_string().contains(&running) {
                    asked["params"][1] = json!(format!("{late:#x}"));
                }
                if method == "eth_getLogs" {
                    count.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(slow)).await;
                    let filter = &mut asked["params"][0];
                    if newest > 0 && (filter["toBlock"].is_null() || number(&filter["toBlock"]) > newest) {
                        return answer(json!([]));
                    }
                    if most > 0
                        && (filter["toBlock"].is_null() || number(&filter["toBlock"]) - number(&filter["fromBlock"]) >= most)
                    {
                        let error = json!({ "code": -32600, "message": "eth_getLogs: block range too high" });
                        return Err(json!({ "jsonrpc": "2.0", "id": 1, "error": error }));
                    }
                }
                Ok(asked)
            }
        };
        Self { url: before(to, change).await, shows, lags, gives, takes, refuses, asked }
    }
}

/// An agent behind such an endpoint, whose node may be drawn.
async fn working(site: &mut Site) -> (Endpoint, Agent, Running) {
    let endpoint = Endpoint::start(&site.url).await;
    let mut agent = site.agent("gpu0").await;
    agent.url.clone_from(&endpoint.url);
    agent.configure(site);
    let running = agent.start(None);
    status(site, &agent, 1).await;
    (endpoint, agent, running)
}

async fn status(site: &Site, agent: &Agent, wanted: u8) {
    site.until(&format!("status {wanted}: {}", agent.log()), async || {
        let number = site.node_of(agent.key).await;
        (number > 0 && site.view(number).await.status == wanted).then_some(())
    })
    .await;
}

async fn head(site: &Site) -> u64 {
    site.muster.endpoints().head().await.unwrap().number
}

/// The first block whose events it has not read, by its journal.
fn unread(agent: &Agent) -> Option<u64> {
    let journal = rusqlite::Connection::open(agent.home.join("state/journal.sqlite")).unwrap();
    let cursor: String = journal.query_row("SELECT value FROM fact WHERE name = 'cursor'", [], |row| row.get(0)).ok()?;
    Some(serde_json::from_str::<Cursor>(&cursor).unwrap().next())
}

/// Has a task drawn.
async fn draw(site: &Site, agent: &Agent, by: &Account) {
    site.until("it is drawn", async || {
        by.call(IMuster::dispatchCall { count: 1 }, U256::ZERO).await.unwrap();
        (site.view(site.node_of(agent.key).await).await.status == 2).then_some(())
    })
    .await;
}

/// Of several nodes of the chain, one makes up how a task was created.
#[tokio::test]
async fn an_announcement_is_not_believed_where_another_node_can_be_asked() {
    let mut site = Site::new(&[]).await;
    let (say, said) = watch::channel(None);
    let liar = announcing(&site.url, said).await;
    let agent = site.agent("gpu0").await;
    agent.configure(&site);
    let config = agent.home.join("agent.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("rpc = [", &format!("rpc = [{liar:?}, "))).unwrap();
    let _running = agent.start(None);
    status(&site, &agent, 1).await;
    let application = site.account(1_000_000).await;
    let succeeded = async |id: u64| {
        site.event("an answer", |event| matches!(event, Event::TaskSucceeded(e) if e.id == id).then(|| event.clone())).await
    };
    let first = site.task(&application, gpt(0), "as it was", 70_000).await;
    succeeded(first).await;
    let (false_input, _) = site.store().put(b"made up").await.unwrap();
    let created = |event: &Event| if let Event::TaskCreated(e) = event { (e.id == first).then(|| e.clone()) } else { None };
    let mut forged = site.event("its creation", created).await;
    (forged.id, forged.spec.inputDigest) = (first + 1, false_input);
    let inner = alloy::primitives::Log { address: site.muster.address(), data: forged.encode_log_data() };
    say.send(Some(Log { inner, block_number: Some(head(&site).await), ..Log::default() })).unwrap();
    let second = site.task(&application, gpt(0), "as it is", 70_000).await;
    assert_eq!(second, first + 1);
    let Event::TaskSucceeded(answered) = succeeded(second).await else { unreachable!() };
    assert_eq!(answered.resultDigest, digest_to("as it is"), "{}", agent.log());
}

/// A provider's machine that stands still before the task began, for longer than a minute.
#[tokio::test]
async fn what_an_endpoint_did_not_show_for_minutes_is_revealed_when_it_shows_it() {
    let mut site = Site::new(&[("sampleBps", 0)]).await;
    let (endpoint, agent, mut running) = working(&mut site).await;
    let application = site.account(1_000_000).await;
    let before = head(&site).await;
    running.kill();
    let id = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(1) }, "shown late", 100_000).await;
    let mut running = agent.start(Some("committed"));
    site.until("it dies", async || running.ended()).await;
    endpoint.shows.store(before, Ordering::SeqCst);
    let _running = agent.start(None);
    let over = || journal(&agent).is_some_and(|jobs| jobs.iter().any(|(task, stage, _)| (*task, stage.as_str()) == (id, "over")));
    site.until("it is given up", async || over().then_some(())).await;
    endpoint.shows.store(0, Ordering::SeqCst);
    site.event("it is paid", |event| matches!(event, Event::TaskSucceeded(e) if e.id == id).then_some(())).await;
    assert_eq!(agent.runs(), 1, "{}", agent.log());
}

/// Of a provider's machines, the one that is asked for the node's task is seconds behind.
#[tokio::test]
async fn a_task_that_came_with_a_commitment_is_kept_while_an_endpoint_shows_the_one_before() {
    let mut site = Site::new(&[("scorePool", 3)]).await;
    let (endpoint, agent, _running) = working(&mut site).await;
    let own = site.node_of(agent.key).await;
    for node in [own + 1, own + 2] {
        let join = IMuster::joinCall { gpuName: format!("the GPU of {node}"), vram: VRAM, models: vec![] };
        // A new name costs a hundredth of the least stake.
        site.account(2 * LEAST).await.call(join, U256::from(LEAST + LEAST / 100)).await.unwrap();
    }
    let application = site.account(10_000_000).await;
    let drawn = async |what: &str, is: &dyn Fn(&Event) -> bool| {
        site.until(what, async || {
            // Somebody else may have made the draw.
            let _ = application.call(IMuster::dispatchCall { count: 1 }, U256::ZERO).await;
            site.events().await.iter().any(is).then_some(())
        })
        .await;
    };
    agent.behave("slow 10");
    let first = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(2) }, "three at once", 300_000).await;
    drawn("it is a member", &|event| matches!(event, Event::MemberStarted(e) if (e.id, e.node) == (first, own))).await;
    let second = site.task(&application, gpt(0), "the next", 100_000).await;
    drawn("it is queued", &|event| matches!(event, Event::TaskQueued(e) if e.id == second)).await;
    let mut before = 0;
    site.until("it commits, and has the next task", async || {
        let newest = head(&site).await;
        let has = site.events().await.iter().any(|event| matches!(event, Event::TaskStarted(e) if e.id == second));
        before = if has { before } else { newest };
        has.then_some(())
    })
    .await;
    endpoint.lags.store(before, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(4)).await;
    endpoint.lags.store(0, Ordering::SeqCst);
    site.event("it is paid", |event| matches!(event, Event::TaskSucceeded(e) if e.id == second).then_some(())).await;
    assert!(agent.runs() == 2 && !agent.log().contains("is over: lost"), "{}", agent.log());
}

/// Ten blocks at a time, as the cheapest plans of providers have it: how a task was created is searched for too long.
#[tokio::test]
async fn a_search_longer_than_a_task_may_take_is_an_error_in_time() {
    let mut site = Site::new(&[("sdOverhead", 0), ("sdUnit", 1)]).await;
    if !site.world.travels("a_search_longer_than_a_task_may_take_is_an_error_in_time") {
        return;
    }
    let (endpoint, agent, mut running) = working(&mut site).await;
    let application = site.account(1_000_000).await;
    // So that it does not make the draw itself meanwhile.
    endpoint.refuses.store(1, Ordering::SeqCst);
    let id = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(0) }, "long ago", 70_000).await;
    let created = head(&site).await;
    // So that it does not meet the event again when it goes on reading.
    site.until("it has read of the task", async || unread(&agent).filter(|next| *next > created)).await;
    running.kill();
    endpoint.refuses.store(0, Ordering::SeqCst);
    site.world.node.unwrap().chain().mine(12_000, 0).unwrap();
    draw(&site, &agent, &application).await;
    endpoint.gives.store(10, Ordering::SeqCst);
    endpoint.takes.store(100, Ordering::SeqCst);
    let _running = agent.start(None);
    let code = |event: &Event| match event {
        Event::TaskErrorReported(e) if e.id == id => Some(e.code),
        Event::TaskAborted(e) if e.id == id => panic!("it has timed out: {}", agent.log()),
        _ => None,
    };
    assert_eq!(site.event("an error is reported", code).await, 3, "{}", agent.log());
    assert!(agent.log().contains("how it was created was not found before it was too late"), "{}", agent.log());
    // A minute of them, each after the one before: of the search, and of the reader.
    assert!(endpoint.asked.load(Ordering::SeqCst) < 1_500);
    assert!(agent.log().contains("blocks are still to be read"), "{}", agent.log());
}
