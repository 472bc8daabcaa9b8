//! Events, each once: through reorganisations, restarts, and nodes that are late, away or lying.

mod scripted;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use alloy::primitives::{Address, B256};
use alloy::providers::Provider;
use muster_client::{Batch, Cursor, Endpoints, Error, Event, Events, Fault, IMuster, Muster, Reading, Searched, Settings};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use scripted::{Chain, Node, Shared, CHAIN, CONTRACT};
use serde_json::json;

fn quick() -> Settings {
    Settings {
        compare_every: Duration::ZERO,
        rest: Duration::from_millis(1),
        settled: 8,
        timeout: Duration::from_secs(30),
        ..Settings::default()
    }
}

fn reading() -> Reading {
    Reading { every: Duration::from_millis(5), save_every: Duration::ZERO, ..Reading::default() }
}

fn endpoints(nodes: &[&Node], settings: Settings) -> Endpoints {
    Endpoints::new(&nodes.iter().map(|node| node.url.as_str()).collect::<Vec<_>>(), settings).unwrap()
}

async fn open(nodes: &[&Node], place: &Path) -> Events {
    Events::open(endpoints(nodes, quick()), CONTRACT, 1, place.into(), reading()).await.unwrap()
}

/// A consumer that records every delivered event.
#[derive(Default)]
struct Books(Vec<(u64, B256, u64, u32)>);

impl Books {
    fn enter(&mut self, batch: &Batch) {
        match batch {
            Batch::Undone { to, .. } => self.0.retain(|(block, ..)| block <= to),
            Batch::Events { events, .. } => {
                for logged in events {
                    let Some(Event::NodePaused(event)) = &logged.event else { panic!("{logged:?}") };
                    self.0.push((logged.block, logged.block_hash, logged.index, event.node));
                }
            }
        }
    }

    fn all(&self) -> Vec<(B256, u64, u32)> {
        self.0.iter().map(|(_, hash, index, number)| (*hash, *index, *number)).collect()
    }
}

async fn catch_up(events: &mut Events, books: &mut Books) {
    while let Some(batch) = events.poll().await.unwrap() {
        books.enter(&batch);
        events.accept(&batch).unwrap();
    }
}

fn contradicts(endpoints: &Endpoints, node: usize) -> bool {
    matches!(endpoints.standing()[node].fault, Some(Fault::Contradicts(_)))
}

/// After hundreds of random disturbances, the delivered events are the chain's, one by one.
#[tokio::test]
async fn nothing_is_lost_or_doubled_whatever_happens() {
    for seed in 0..2 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut below = |n: u32| random.next_u32() % n;
        let chain = Chain::new();
        let nodes = [Node::start(&chain).await, Node::start(&chain).await, Node::start(&chain).await];
        let all: Vec<&Node> = nodes.iter().collect();
        let place = tempfile::tempdir().unwrap();
        let mut books = Books::default();
        let mut events = open(&all, place.path()).await;
        let (mut number, mut undone, mut restarts) = (0, 0, 0);
        for _ in 0..300 {
            match below(10) {
                0..4 => {
                    let fresh: Vec<u32> = (0..below(4)).map(|i| number + i).collect();
                    number += fresh.len() as u32;
                    chain.lock().unwrap().mine(&fresh);
                }
                4 => {
                    let mut chain = chain.lock().unwrap();
                    let depth = 1 + below(6) as usize;
                    chain.forget(depth);
                    for _ in 0..depth + below(3) as usize {
                        chain.mine(&[number]);
                        number += 1;
                    }
                }
                5 => {
                    // One at a time, so that some node always tells the truth.
                    let node = below(3) as usize;
                    for (at, other) in nodes.iter().enumerate() {
                        other.set(|ways| &ways.away, at == node && below(2) == 0);
                        other.ways.late.store(if at == node { below(5).into() } else { 0 }, Ordering::SeqCst);
                        other.ways.span.store(u64::from(below(2)) * 3, Ordering::SeqCst);
                    }
                }
                6 => {
                    // Ends between dealing with a batch and accepting it: the same batch comes again.
                    let Ok(Some(batch)) = events.poll().await else { continue };
                    drop(events);
                    events = open(&all, place.path()).await;
                    restarts += 1;
                    if let (Batch::Events { events: before, .. }, Ok(Some(Batch::Events { events: again, .. }))) =
                        (&batch, events.poll().await)
                    {
                        let shared = before.len().min(again.len());
                        assert_eq!(before[..shared], again[..shared]);
                    }
                }
                7 => {
                    drop(events);
                    events = open(&all, place.path()).await;
                    restarts += 1;
                }
                _ => {
                    if let Ok(Some(batch)) = events.poll().await {
                        undone += usize::from(matches!(batch, Batch::Undone { .. }));
                        books.enter(&batch);
                        events.accept(&batch).unwrap();
                    }
                }
            }
        }
        for node in &nodes {
            node.set(|ways| &ways.away, false);
            node.ways.late.store(0, Ordering::SeqCst);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        catch_up(&mut events, &mut books).await;
        let truth = chain.lock().unwrap().events();
        assert!(truth.len() > 100 && undone >= 3 && restarts > 20, "{} {undone} {restarts}", truth.len());
        assert_eq!(books.all(), truth, "seed {seed}");
    }
}

fn grow(chain: &Shared, blocks: u32) {
    let mut chain = chain.lock().unwrap();
    for number in 0..blocks {
        chain.mine(&[number]);
    }
}

#[tokio::test]
async fn a_node_that_leaves_events_out_is_dropped() {
    let chain = Chain::new();
    let (liar, one, other) = (Node::start(&chain).await, Node::start(&chain).await, Node::start(&chain).await);
    liar.set(|ways| &ways.omits, true);
    grow(&chain, 30);
    let nodes = endpoints(&[&liar, &one, &other], quick());
    let cursor = Cursor::new(CHAIN, CONTRACT, 1);
    let mut events = Events::with_cursor(nodes.clone(), cursor, reading()).await.unwrap();
    let mut books = Books::default();
    catch_up(&mut events, &mut books).await;
    assert_eq!(books.all(), chain.lock().unwrap().events());
    assert!(contradicts(&nodes, 0), "{:?}", nodes.standing());
    assert!(nodes.standing()[1].fault.is_none() && nodes.standing()[2].fault.is_none());
}

#[tokio::test]
async fn of_two_that_contradict_each_other_neither_is_believed() {
    let chain = Chain::new();
    let (liar, honest) = (Node::start(&chain).await, Node::start(&chain).await);
    liar.set(|ways| &ways.omits, true);
    grow(&chain, 30);
    let cursor = Cursor::new(CHAIN, CONTRACT, 1);
    let mut events = Events::with_cursor(endpoints(&[&liar, &honest], quick()), cursor, reading()).await.unwrap();
    assert!(matches!(events.poll().await, Err(Error::Disagreement(_))));
    // A node that does not answer is not waited for.
    liar.set(|ways| &ways.away, true);
    let mut books = Books::default();
    catch_up(&mut events, &mut books).await;
    assert_eq!(books.all(), chain.lock().unwrap().events());
}

#[tokio::test]
async fn a_node_with_other_blocks_or_of_another_chain_is_dropped() {
    let chain = Chain::new();
    let nodes = [Node::start(&chain).await, Node::start(&chain).await, Node::start(&chain).await, Node::start(&chain).await];
    grow(&chain, 40);
    nodes[0].ways.forged.store(20, Ordering::SeqCst);
    nodes[1].set(|ways| &ways.stranger, true);
    let all = endpoints(&nodes.iter().collect::<Vec<_>>(), quick());
    let mut events = Events::with_cursor(all.clone(), Cursor::new(CHAIN, CONTRACT, 1), reading()).await.unwrap();
    let mut books = Books::default();
    catch_up(&mut events, &mut books).await;
    assert_eq!(books.all(), chain.lock().unwrap().events());
    assert!(contradicts(&all, 0), "{:?}", all.standing());
    assert_eq!(all.standing()[1].fault, Some(Fault::OtherChain(1)));
    assert_eq!(all.chain().await.unwrap(), CHAIN);
    let wrong = endpoints(&[&nodes[1]], Settings { chain: Some(CHAIN), ..quick() });
    assert!(matches!(wrong.chain().await, Err(Error::WrongChain { expected: CHAIN, found: 1 })));
}

/// A provider that led a request elsewhere for a moment must not cost the time of a ban.
#[tokio::test]
async fn an_only_node_that_is_of_the_right_chain_again_is_asked_at_once() {
    let chain = Chain::new();
    let nodes = [Node::start(&chain).await, Node::start(&chain).await];
    let (alone, both) = (endpoints(&[&nodes[0]], quick()), endpoints(&[&nodes[0], &nodes[1]], quick()));
    for all in [&alone, &both] {
        assert_eq!(all.head().await.unwrap().number, 0);
    }
    nodes.iter().for_each(|node| node.set(|ways| &ways.stranger, true));
    for all in [&alone, &both] {
        assert!(matches!(all.head().await, Err(Error::WrongChain { expected: CHAIN, found: 1 })));
    }
    nodes[0].set(|ways| &ways.stranger, false);
    for all in [&alone, &both] {
        assert_eq!(all.head().await.unwrap().number, 0, "{:?}", all.standing());
    }
    // Beside one that is well, a ban stands.
    nodes[1].set(|ways| &ways.stranger, false);
    assert_eq!(both.head().await.unwrap().number, 0);
    assert_eq!(both.standing()[1].fault, Some(Fault::OtherChain(1)));
}

#[tokio::test]
async fn a_node_that_is_late_is_not_asked_until_it_is_not() {
    let chain = Chain::new();
    let (late, up) = (Node::start(&chain).await, Node::start(&chain).await);
    grow(&chain, 40);
    late.ways.late.store(10, Ordering::SeqCst);
    let nodes = endpoints(&[&late, &up], quick());
    assert_eq!(nodes.head().await.unwrap().number, 40);
    assert_eq!(nodes.standing()[0].fault, Some(Fault::Behind(10)));
    late.ways.late.store(0, Ordering::SeqCst);
    nodes.compare().await.unwrap();
    assert_eq!(nodes.standing()[0].fault, None);
}

/// A machine that stands still takes connections, and no question to another waits for it again and again.
#[tokio::test]
async fn a_node_that_never_answers_does_not_keep_questions_to_another() {
    let (chain, still) = (Chain::new(), std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let up = Node::start(&chain).await;
    let urls = [up.url.clone(), format!("http://{}", still.local_addr().unwrap())];
    let nodes = Endpoints::new(&urls, Settings { timeout: Duration::from_secs(6), ..quick() }).unwrap();
    nodes.head().await.unwrap();
    let begun = std::time::Instant::now();
    nodes.head().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn what_babbles_or_is_away_is_passed_over_and_named_without_its_key() {
    let chain = Chain::new();
    let (one, other) = (Node::start(&chain).await, Node::start(&chain).await);
    let urls = [format!("{}/?key=s3cret", one.url), other.url.clone()];
    // Also faults whose rest is over when the last node has failed are named.
    let nodes = Endpoints::new(&urls, Settings { rest: Duration::ZERO, ..quick() }).unwrap();
    assert_eq!(nodes.head().await.unwrap().number, 0);
    one.set(|ways| &ways.babbles, true);
    assert_eq!(nodes.head().await.unwrap().number, 0);
    other.set(|ways| &ways.away, true);
    let error = nodes.head().await.unwrap_err().to_string();
    assert!(error.contains("malformed") && error.contains("HTTP 503") && !error.contains("s3cret"), "{error}");
    // They are asked again when no other node is left.
    other.set(|ways| &ways.away, false);
    assert_eq!(nodes.head().await.unwrap().number, 0);
}

/// Refusals as providers word them, in JSON under a status of their own or under 200.
#[tokio::test]
async fn a_node_that_refuses_is_passed_over_and_its_complaint_is_told_where_no_other_answers() {
    let chain = Chain::new();
    let (one, other) = (Node::start(&chain).await, Node::start(&chain).await);
    let fresh = || endpoints(&[&one, &other], Settings { rest: Duration::from_mins(1), ..quick() });
    let asked = |status, code, message| *one.ways.refuses.lock().unwrap() = Some((status, code, message));
    for (status, code, message) in [
        (429, 429, "Your app has exceeded its compute units per second capacity"),
        (429, -32007, "50/second request limit reached"),
        (429, -32005, "project ID request rate exceeded"),
        (401, -32001, "invalid project id"),
        (402, -32000, "payment required"),
        (403, -32000, "origin not allowed"),
        (408, -32000, "timeout"),
        (502, -32603, "Internal error"),
        (503, -32603, "Internal error"),
        (504, -32603, "Internal error"),
    ] {
        asked(status, code, message);
        let nodes = fresh();
        assert_eq!(nodes.head().await.unwrap().number, 0, "{status}");
        assert_eq!(nodes.standing()[0].fault, Some(Fault::Http(status)), "{message}");
    }
    for (code, message) in [
        (-32005, "project ID request rate exceeded"),
        (-32007, "50/second request limit reached"),
        (-32029, "slow down"),
        (429, "slow down"),
    ] {
        asked(200, code, message);
        let nodes = fresh();
        assert_eq!(nodes.head().await.unwrap().number, 0, "{code}");
        assert_eq!(nodes.standing()[0].fault, Some(Fault::Unable(message.into())));
    }
    for (status, code, message) in [
        (200, -32603, "Internal error"),
        (500, -32603, "Internal error"),
        (200, -32000, "daily quota exceeded"),
        (200, -32005, "query returned more than 10000 results"),
        (400, -32602, "invalid params"),
        (500, -32000, "insufficient funds for gas * price + value"),
    ] {
        asked(status, code, message);
        let nodes = fresh();
        assert_eq!(nodes.head().await.unwrap().number, 0, "{message}");
        assert_eq!(nodes.standing()[0].fault, Some(Fault::Unable(message.into())));
        // Also between two comparisons.
        *one.ways.refuses.lock().unwrap() = None;
        let nodes = endpoints(&[&one, &other], Settings { compare_every: Duration::from_mins(1), ..quick() });
        nodes.head().await.unwrap();
        asked(status, code, message);
        assert_eq!(nodes.head().await.unwrap().number, 0, "{message}");
        assert_eq!(owner(&nodes).await.unwrap(), 0, "{message}");
        assert_eq!(nodes.provider().get_chain_id().await.unwrap(), CHAIN, "{message}");
        *other.ways.refuses.lock().unwrap() = Some((200, -32000, "another complaint"));
        let error = nodes.head().await.unwrap_err();
        assert!(matches!(&error, Error::Node(complaint) if complaint.message == message), "{error}");
        *other.ways.refuses.lock().unwrap() = None;
    }
}

/// A node that gives few blocks at once is no reason to ask for fewer where another gives more.
#[tokio::test]
async fn a_question_that_one_node_refuses_is_put_to_the_next() {
    let chain = Chain::new();
    let (one, other) = (Node::start(&chain).await, Node::start(&chain).await);
    grow(&chain, 30);
    let nodes = endpoints(&[&one, &other], quick());
    let logs = async || {
        let filter = json!([{ "address": CONTRACT, "fromBlock": "0x0", "toBlock": "0x1e" }]);
        nodes.ask::<Vec<serde_json::Value>>("eth_getLogs", filter).await
    };
    one.ways.span.store(5, Ordering::SeqCst);
    assert_eq!(logs().await.unwrap().len(), 30);
    assert_eq!(nodes.standing()[0].fault, None);
    other.ways.span.store(5, Ordering::SeqCst);
    let error = logs().await.unwrap_err();
    assert!(matches!(&error, Error::Node(complaint) if complaint.message.contains("max block range")), "{error}");
}

#[tokio::test]
async fn a_long_past_is_read_in_pieces_that_the_node_gives() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    grow(&chain, 300);
    node.ways.span.store(20, Ordering::SeqCst);
    let mut events = Events::with_cursor(endpoints(&[&node], quick()), Cursor::new(CHAIN, CONTRACT, 1), reading()).await.unwrap();
    let mut books = Books::default();
    catch_up(&mut events, &mut books).await;
    assert_eq!(books.all(), chain.lock().unwrap().events());
    let asked = node.ways.asked.load(Ordering::SeqCst);
    assert!(asked < 60, "300 blocks took {asked} questions");
}

/// Readers of logs alone, without a cursor, get each once and in order, however few blocks the node gives at once. They get an error if it
/// gives none.
#[tokio::test]
async fn logs_of_the_past_come_in_pieces_that_the_node_gives() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    grow(&chain, 300);
    let all: Vec<_> = chain.lock().unwrap().events().into_iter().map(|(hash, index, _)| (hash, index)).collect();
    let nodes = endpoints(&[&node], quick());
    let head = nodes.head().await.unwrap().number;
    let mut questions = Vec::new();
    for span in [0, 1, 20, 1_000] {
        node.ways.span.store(span, Ordering::SeqCst);
        node.ways.asked.store(0, Ordering::SeqCst);
        let mut read = Vec::new();
        let taken = nodes.past(json!({ "address": CONTRACT }), 0..=head, 100, |logs| {
            read.extend(logs.into_iter().map(|log| (log.block_hash.unwrap(), log.log_index.unwrap())));
            Ok::<_, Error>(())
        });
        taken.await.unwrap();
        assert_eq!(read, all, "{span} blocks at once");
        questions.push(node.ways.asked.load(Ordering::SeqCst));
    }
    assert_eq!((questions[0], questions[3]), (4, 4));
    assert!(questions[2] < 60 && questions[1] < 3 * 301, "{questions:?}");
    node.set(|ways| &ways.away, true);
    let none = nodes.past(json!({ "address": CONTRACT }), 0..=head, 100, |_| Ok::<_, Error>(())).await;
    assert!(matches!(none, Err(Error::Unreachable(_))), "{none:?}");
}

/// A node whose last events, those of block 5, are 300 blocks old, and the newest block.
async fn long_ago() -> (Node, Endpoints, u64) {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    grow(&chain, 5);
    (0..300).for_each(|_| chain.lock().unwrap().mine(&[]));
    let nodes = endpoints(&[&node], quick());
    let head = nodes.head().await.unwrap().number;
    (node, nodes, head)
}

/// The newest log is found however few blocks the node gives at once, and a search ends where its caller says so.
#[tokio::test]
async fn the_newest_log_is_searched_for_in_pieces_that_the_node_gives() {
    let (node, nodes, head) = long_ago().await;
    let filter = json!({ "address": CONTRACT });
    for (span, at_most) in [(0, 1), (1, 310), (20, 30)] {
        node.ways.span.store(span, Ordering::SeqCst);
        node.ways.asked.store(0, Ordering::SeqCst);
        let found = nodes.newest(filter.clone(), 0..=head, |_| true).await.unwrap().unwrap();
        assert_eq!(found.block_number, Some(5), "{span} blocks at once");
        let asked = node.ways.asked.load(Ordering::SeqCst);
        assert!(asked <= at_most, "{span} blocks at once: {asked} questions");
    }
    // Nothing is there.
    assert_eq!(nodes.newest(filter.clone(), 6..=head, |_| true).await.unwrap(), None);
    assert_eq!(nodes.newest(filter.clone(), head + 1..=head, |_| true).await.unwrap(), None);
    let mut last = None;
    let goes_on = |searched: Searched| {
        last = Some(searched);
        searched.questions < 10
    };
    assert_eq!(nodes.newest(filter.clone(), 0..=head, goes_on).await.unwrap(), None);
    let Some(Searched { questions: 10, from, given }) = last else { panic!("{last:?}") };
    assert!(from > 5 && from < head && (1..=20).contains(&given), "{last:?}");
    node.set(|ways| &ways.away, true);
    let none = nodes.newest(filter, 0..=head, |_| true).await;
    assert!(matches!(none, Err(Error::Unreachable(_))), "{none:?}");
}

/// A node that limits requests is waited for, and asked for as much again; one that does so for ever is an error.
#[tokio::test]
async fn a_search_waits_for_a_node_that_limits_requests() {
    let (node, nodes, head) = long_ago().await;
    let filter = json!({ "address": CONTRACT });
    node.ways.limits.store(6, Ordering::SeqCst);
    let found = nodes.newest(filter.clone(), 0..=head, |_| true).await.unwrap().unwrap();
    assert_eq!((found.block_number, node.ways.asked.load(Ordering::SeqCst)), (Some(5), 7));
    node.ways.limits.store(1_000, Ordering::SeqCst);
    let none = nodes.newest(filter, 0..=head, |_| true).await;
    assert!(matches!(none, Err(Error::Unreachable(_))), "{none:?}");
    let refused = 1_000 - node.ways.limits.load(Ordering::SeqCst);
    assert!(refused < 20, "{refused}");
}

/// A node that gives few blocks at once confirms those.
#[tokio::test]
async fn a_liar_is_not_believed_where_the_other_gives_less_at_once() {
    let chain = Chain::new();
    let (liar, honest) = (Node::start(&chain).await, Node::start(&chain).await);
    liar.set(|ways| &ways.omits, true);
    honest.ways.span.store(5, Ordering::SeqCst);
    grow(&chain, 30);
    let cursor = Cursor::new(CHAIN, CONTRACT, 1);
    let mut events = Events::with_cursor(endpoints(&[&liar, &honest], quick()), cursor, reading()).await.unwrap();
    let news = events.poll().await;
    assert!(matches!(news, Err(Error::Disagreement(_))), "{news:?}");
    liar.set(|ways| &ways.omits, false);
    let mut books = Books::default();
    catch_up(&mut events, &mut books).await;
    assert_eq!(books.all(), chain.lock().unwrap().events());
}

#[tokio::test]
async fn a_cursor_is_for_one_contract_on_one_chain_and_one_process() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    grow(&chain, 3);
    let place = tempfile::tempdir().unwrap();
    let mut events = open(&[&node], place.path()).await;
    catch_up(&mut events, &mut Books::default()).await;
    let again = Events::open(endpoints(&[&node], quick()), CONTRACT, 1, place.path().into(), reading()).await;
    assert!(matches!(again.err(), Some(Error::InUse { .. })));
    drop(events);
    let other = Events::open(endpoints(&[&node], quick()), Address::ZERO, 1, place.path().into(), reading()).await;
    assert!(other.err().unwrap().to_string().contains("another contract"));
    node.set(|ways| &ways.stranger, true);
    let other = Events::open(endpoints(&[&node], quick()), CONTRACT, 1, place.path().into(), reading()).await;
    assert!(matches!(other.err(), Some(Error::WrongChain { expected: CHAIN, found: 1 })));
    // A broken cursor is an error, not a new beginning.
    std::fs::write(place.path().join("cursor.json"), "{").unwrap();
    node.set(|ways| &ways.stranger, false);
    let other = Events::open(endpoints(&[&node], quick()), CONTRACT, 1, place.path().into(), reading()).await;
    assert!(matches!(other.err(), Some(Error::File { .. })));
}

#[tokio::test]
async fn with_a_depth_short_reorganisations_are_never_seen() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let settings = Reading { depth: 6, ..reading() };
    let mut events = Events::with_cursor(endpoints(&[&node], quick()), Cursor::new(CHAIN, CONTRACT, 1), settings).await.unwrap();
    let mut books = Books::default();
    for round in 0..20 {
        grow(&chain, 7);
        chain.lock().unwrap().forget(round % 7);
        while let Some(batch) = events.poll().await.unwrap() {
            assert!(matches!(batch, Batch::Events { .. }));
            books.enter(&batch);
            events.accept(&batch).unwrap();
        }
    }
    let truth = chain.lock().unwrap().events();
    assert_eq!(books.all(), truth[..truth.len() - 6]);
}

/// The scripted contract's owner, which is the block's number.
async fn owner(of: &Endpoints) -> Result<u64, Error> {
    let owner = Muster::at(of.clone(), CONTRACT).read(IMuster::ownerCall {}).await?;
    Ok(u64::from_be_bytes(owner[12..].try_into().unwrap()))
}

#[tokio::test]
async fn what_a_node_invents_of_the_contract_is_believed_by_nobody_who_asks_another() {
    let chain = Chain::new();
    (0..40).for_each(|_| chain.lock().unwrap().mine(&[]));
    let nodes = [Node::start(&chain).await, Node::start(&chain).await, Node::start(&chain).await];
    // The first, most trusted node lies.
    nodes[0].set(|ways| &ways.invents, true);
    let two = endpoints(&[&nodes[0], &nodes[1]], quick());
    assert!(matches!(owner(&two).await, Err(Error::Disagreement(_))));
    let three = endpoints(&[&nodes[0], &nodes[1], &nodes[2]], quick());
    assert_eq!(owner(&three).await.unwrap(), 40);
    assert!(matches!(three.standing()[0].fault, Some(Fault::Contradicts(_))));
    let alone = endpoints(&[&nodes[0]], quick());
    assert_eq!(owner(&alone).await.unwrap(), 40 + (1 << 32), "who asks one believes it");
}

#[tokio::test]
async fn an_address_without_a_contract_is_named() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    // The scripted nodes answer all but `owner` as where there is no code.
    let read = Muster::at(endpoints(&[&node], quick()), CONTRACT).read(IMuster::overviewCall {}).await;
    assert!(matches!(read, Err(Error::NoContract(CONTRACT))));
}

#[tokio::test]
async fn a_first_node_that_answers_from_an_old_block_is_not_believed() {
    let chain = Chain::new();
    (0..40).for_each(|_| chain.lock().unwrap().mine(&[]));
    let nodes = [Node::start(&chain).await, Node::start(&chain).await];
    // By less than the limit of being behind.
    nodes[0].ways.late.store(1, std::sync::atomic::Ordering::SeqCst);
    let both = endpoints(&[&nodes[0], &nodes[1]], quick());
    assert_eq!(owner(&both).await.unwrap(), 40);
    assert!(both.standing().iter().all(|node| node.fault.is_none()), "it is no lie");
}

/// One that a node invents alone would have another task's input answered.
#[tokio::test]
async fn a_log_that_one_node_alone_has_is_not_confirmed() {
    let chain = Chain::new();
    let (liar, honest) = (Node::start(&chain).await, Node::start(&chain).await);
    chain.lock().unwrap().mine(&[7]);
    let (filter, head) = (json!({ "address": CONTRACT }), chain.lock().unwrap().height());
    for (nodes, invents, confirmed) in
        [(&[&liar, &honest][..], false, true), (&[&liar, &honest], true, false), (&[&liar], true, true)]
    {
        liar.set(|ways| &ways.invents, invents);
        let nodes = endpoints(nodes, quick());
        let log = nodes.newest(filter.clone(), 0..=head, |_| true).await.unwrap().unwrap();
        assert_eq!(nodes.confirms(&log).await.unwrap(), confirmed, "{log:?}");
    }
}
