//! Transactions through restarts, reorganisations, rising fees, and nodes that drop them.

mod scripted;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use alloy::consensus::Transaction;
use alloy::primitives::{Address, Bytes, TxKind, B256, U256};
use alloy::signers::local::PrivateKeySigner;
use alloy::sol_types::SolError;
use muster_client::{
    Account, Endpoints, Entry, Error, Fate, IMuster, Muster, Reason, Refusal, Request, Sender, Sending, Settings,
};
use scripted::{Chain, Node, CONTRACT};

const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";

fn key() -> PrivateKeySigner {
    KEY.parse().unwrap()
}

fn endpoints(nodes: &[&Node]) -> Endpoints {
    let settings = Settings {
        compare_every: Duration::from_mins(1),
        rest: Duration::from_millis(1),
        timeout: Duration::from_secs(30),
        ..Settings::default()
    };
    Endpoints::new(&nodes.iter().map(|node| node.url.as_str()).collect::<Vec<_>>(), settings).unwrap()
}

fn quick() -> Sending {
    Sending {
        look_every: Duration::from_millis(5),
        resend_every: Duration::ZERO,
        missing: Duration::from_millis(100),
        patience: Duration::from_mins(1),
        settled: 3,
        ..Sending::default()
    }
}

async fn open(nodes: &[&Node], place: &Path, sending: Sending) -> Sender {
    Sender::open(endpoints(nodes), key(), place, sending).await.unwrap()
}

fn request(value: u64) -> Request {
    Request { to: CONTRACT.into(), value: U256::from(value), input: Bytes::from_static(b"work"), gas: None, name: None }
}

#[tokio::test]
async fn an_estimate_that_no_block_has_is_no_small_one() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let sender = Sender::in_memory(endpoints(&[&node]), key(), quick()).await.unwrap();
    node.ways.gas.store(u64::MAX / 100, std::sync::atomic::Ordering::SeqCst);
    let nonce = sender.submit(request(1)).await.unwrap();
    assert!(sender.entry(nonce).await.unwrap().gas > u64::MAX / 100);
}

fn bytes(entry: &Entry) -> Vec<Bytes> {
    entry.signed.iter().map(|signed| signed.bytes.clone()).collect()
}

/// Not a test of its own: `a_process_killed_...` runs and kills it.
#[tokio::test]
async fn child() {
    let (Ok(url), Ok(place)) = (std::env::var("CHILD_URL"), std::env::var("CHILD_PLACE")) else { return };
    let nodes = Endpoints::new(&[url], Settings::default()).unwrap();
    let sender = Sender::open(nodes, key(), Path::new(&place), Sending::default()).await.unwrap();
    sender.submit(Request { name: Some("the work".into()), ..request(7) }).await.unwrap();
    sender.wait(0).await.unwrap();
    println!("mined");
    std::future::pending::<()>().await;
}

/// Runs `child` until `until` is true, then kills it with SIGKILL.
async fn killed(node: &Node, place: &Path, until: impl Fn() -> bool) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .envs([("CHILD_URL", node.url.as_str()), ("CHILD_PLACE", place.to_str().unwrap())])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !until() {
        assert!(child.try_wait().unwrap().is_none(), "the child has ended by itself");
        assert!(begun.elapsed() < Duration::from_mins(1), "the child does not get there");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The only file of a transaction.
fn written(place: &Path) -> Option<Entry> {
    let directory = Sender::directory(place, scripted::CHAIN, key().address());
    let text = std::fs::read(directory.join(format!("{:020}.json", 0))).ok()?;
    Some(serde_json::from_slice(&text).expect("a file is whole or not there"))
}

#[tokio::test]
async fn a_process_killed_between_writing_and_sending_sends_the_same_bytes_when_it_is_back() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    // The node drops the transaction: this prolongs the moment between sending and mining.
    node.set(|ways| &ways.hangs, true);
    killed(&node, place.path(), || !node.heard().is_empty()).await;
    let entry = written(place.path()).expect("it was written before it was sent");
    assert_eq!(entry.fate, Fate::Open);
    assert_eq!(bytes(&entry), node.heard());
    assert!(chain.lock().unwrap().pool.is_empty());

    node.set(|ways| &ways.hangs, false);
    chain.lock().unwrap().automatic = true;
    let sender = open(&[&node], place.path(), quick()).await;
    // A caller that does not know whether the work was begun begins it again, under its name.
    let nonce = sender.submit(Request { name: Some("the work".into()), ..request(7) }).await.unwrap();
    let receipt = sender.wait(nonce).await.unwrap();
    assert_eq!((nonce, receipt.transaction_hash), (0, entry.latest().hash));
    assert_eq!(chain.lock().unwrap().mined(), [entry.latest().hash]);
    assert!(node.heard().iter().all(|heard| *heard == entry.latest().bytes));
}

#[tokio::test]
async fn a_process_killed_after_sending_finds_what_was_mined_meanwhile() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    killed(&node, place.path(), || !chain.lock().unwrap().pool.is_empty()).await;
    chain.lock().unwrap().mine(&[]);
    let sender = open(&[&node], place.path(), quick()).await;
    assert_eq!(sender.submit(Request { name: Some("the work".into()), ..request(7) }).await.unwrap(), 0);
    sender.wait(0).await.unwrap();
    assert_eq!(chain.lock().unwrap().mined().len(), 1);
    // Another name is other work.
    assert_eq!(sender.submit(request(8)).await.unwrap(), 1);
    // So is the same name once it was released, also after the next restart.
    sender.free("the work").await.unwrap();
    drop(sender);
    let sender = open(&[&node], place.path(), quick()).await;
    assert_eq!(sender.named("the work").await, None);
    assert_eq!(sender.submit(Request { name: Some("the work".into()), ..request(7) }).await.unwrap(), 2);
}

/// Killed at any moment, the process does the work once.
#[tokio::test]
async fn a_process_killed_at_any_moment_does_its_work_once() {
    for delay in [0, 2, 5, 10, 20, 40, 80] {
        let chain = Chain::new();
        chain.lock().unwrap().automatic = true;
        let node = Node::start(&chain).await;
        let place = tempfile::tempdir().unwrap();
        let directory = Sender::directory(place.path(), scripted::CHAIN, key().address());
        let begun = std::cell::Cell::new(None);
        killed(&node, place.path(), || {
            if directory.join("lock").exists() && begun.get().is_none() {
                begun.set(Some(Instant::now()));
            }
            begun.get().is_some_and(|begun| begun.elapsed() >= Duration::from_millis(delay))
        })
        .await;
        let sender = open(&[&node], place.path(), quick()).await;
        let nonce = sender.submit(Request { name: Some("the work".into()), ..request(7) }).await.unwrap();
        sender.wait(nonce).await.unwrap();
        assert_eq!(chain.lock().unwrap().mined().len(), 1, "killed after {delay} ms");
    }
}

#[tokio::test]
async fn a_transaction_that_a_reorganisation_undid_is_sent_again() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let sender = open(&[&node], place.path(), quick()).await;
    let nonce = sender.submit(request(1)).await.unwrap();
    chain.lock().unwrap().mine(&[]);
    let hash = sender.wait(nonce).await.unwrap().transaction_hash;
    chain.lock().unwrap().forget(1);
    sender.tick().await.unwrap();
    assert_eq!(sender.entry(nonce).await.unwrap().fate, Fate::Open);
    for _ in 0..4 {
        chain.lock().unwrap().mine(&[]);
    }
    sender.tick().await.unwrap();
    let fate = sender.entry(nonce).await.unwrap().fate;
    assert!(matches!(fate, Fate::Mined { hash: mined, settled: true, .. } if mined == hash), "{fate:?}");
    // From here on it is final, and nothing is asked about it.
    assert!(sender.unfinished().await.is_empty());
    // Undone by a deeper one, it comes before the next, which could not be mined without it.
    chain.lock().unwrap().forget(5);
    let next = sender.submit(request(2)).await.unwrap();
    chain.lock().unwrap().mine(&[]);
    sender.wait(next).await.unwrap();
    assert_eq!((next, chain.lock().unwrap().mined()[0]), (nonce + 1, hash));
}

#[tokio::test]
async fn it_is_signed_anew_only_when_the_base_fee_is_above_what_it_pays() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let sender = open(&[&node], place.path(), quick()).await;
    let nonce = sender.submit(request(1)).await.unwrap();
    let first = sender.entry(nonce).await.unwrap();
    assert_eq!(first.latest().fee_cap, 200_000_000);
    // Not for a rise that it can pay.
    chain.lock().unwrap().base_fee = 200_000_000;
    sender.tick().await.unwrap();
    assert_eq!(sender.entry(nonce).await.unwrap().signed, first.signed);
    chain.lock().unwrap().base_fee = 200_000_001;
    sender.tick().await.unwrap();
    let second = sender.entry(nonce).await.unwrap();
    assert_eq!((second.nonce, second.signed.len()), (nonce, 2));
    assert_eq!(second.signed[0], first.signed[0]);
    assert_eq!(second.latest().fee_cap, 400_000_002);
    // The first may be mined all the same, when the fee has fallen.
    {
        let mut chain = chain.lock().unwrap();
        chain.pool.retain(|transaction| *transaction.tx_hash() == first.latest().hash);
        chain.base_fee = 100_000_000;
        chain.mine(&[]);
    }
    assert_eq!(sender.wait(nonce).await.unwrap().transaction_hash, first.latest().hash);
}

#[tokio::test]
async fn no_more_is_paid_than_the_ceiling() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let sending = Sending { fee_ceiling: Some(150_000_000), patience: Duration::from_millis(300), ..quick() };
    let sender = open(&[&node], place.path(), sending).await;
    let nonce = sender.submit(request(1)).await.unwrap();
    assert_eq!(sender.entry(nonce).await.unwrap().latest().fee_cap, 150_000_000);
    chain.lock().unwrap().base_fee = 150_000_001;
    assert!(matches!(sender.submit(request(2)).await, Err(Error::FeeCeiling { base: 150_000_001, ceiling: 150_000_000 })));
    let waited = sender.wait(nonce).await.unwrap_err();
    assert!(matches!(&waited, Error::NotMined { trouble: Some(trouble), .. } if trouble.contains("ceiling")), "{waited}");
    assert_eq!(sender.entry(nonce).await.unwrap().signed.len(), 1);
    chain.lock().unwrap().base_fee = 150_000_000;
    chain.lock().unwrap().mine(&[]);
    sender.wait(nonce).await.unwrap();
}

#[tokio::test]
async fn the_ceiling_is_lifted_for_what_must_be_mined_and_for_what_is_before_it() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let sending = Sending { fee_ceiling: Some(150_000_000), patience: Duration::from_millis(300), ..quick() };
    let sender = open(&[&node], place.path(), sending).await;
    let before = sender.submit(request(1)).await.unwrap();
    chain.lock().unwrap().base_fee = 400_000_000;
    let above = sender.above_ceiling();
    let urgent = sender.submit(request(2)).await.unwrap();
    for nonce in [before, urgent] {
        assert_eq!(sender.entry(nonce).await.unwrap().latest().fee_cap, 800_000_000);
    }
    chain.lock().unwrap().mine(&[]);
    sender.wait(urgent).await.unwrap();
    drop(above);
    assert!(matches!(sender.submit(request(3)).await, Err(Error::FeeCeiling { .. })));
}

/// The gas limit of `request`: a transfer's, and the reserve.
const GAS: u64 = 25_200;

/// A balance that pays `request(1)` at this fee cap, and no more.
fn pays(fee_cap: u128) -> u128 {
    u128::from(GAS) * fee_cap + 1
}

#[tokio::test]
async fn no_more_is_offered_than_the_account_has_and_nothing_is_signed_below_the_base_fee() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let sender = open(&[&node], place.path(), quick()).await;
    chain.lock().unwrap().balance = pays(100_000_000) - 1;
    let error = sender.submit(request(1)).await.unwrap_err();
    assert!(matches!(error, Error::Unpayable { gas: GAS, base: 100_000_000, .. }), "{error}");
    assert!(error.to_string().starts_with("insufficient funds: the account has 0.00000252 ether, and 25200 gas"), "{error}");
    assert!(node.heard().is_empty() && sender.unfinished().await.is_empty());
    chain.lock().unwrap().balance = pays(150_000_000);
    let nonce = sender.submit(request(1)).await.unwrap();
    assert_eq!(sender.entry(nonce).await.unwrap().latest().fee_cap, 150_000_000);
    // Nor when it is signed anew.
    chain.lock().unwrap().base_fee = 150_000_001;
    sender.tick().await.unwrap();
    assert_eq!(sender.entry(nonce).await.unwrap().signed.len(), 1);
    chain.lock().unwrap().balance = pays(150_000_002);
    sender.tick().await.unwrap();
    let entry = sender.entry(nonce).await.unwrap();
    assert_eq!((entry.signed.len(), entry.latest().fee_cap), (2, 150_000_002));
    chain.lock().unwrap().mine(&[]);
    assert_eq!(sender.wait(nonce).await.unwrap().transaction_hash, entry.latest().hash);
}

#[tokio::test]
async fn what_was_signed_in_a_spike_and_cannot_be_paid_is_signed_anew_after_it() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let sender = open(&[&node], place.path(), quick()).await;
    chain.lock().unwrap().base_fee = 10_000_000_000;
    node.set(|ways| &ways.poor, true);
    let nonce = sender.submit(request(1)).await.unwrap();
    let behind = sender.submit(request(1)).await.unwrap();
    let first = sender.entry(nonce).await.unwrap();
    node.set(|ways| &ways.poor, false);
    chain.lock().unwrap().balance = pays(150_000_000);
    // The balance does not pay the spike: it waits as it is.
    sender.tick().await.unwrap();
    assert_eq!(sender.entry(nonce).await.unwrap().signed, first.signed);
    chain.lock().unwrap().base_fee = 100_000_000;
    drop(sender);
    let sender = open(&[&node], place.path(), quick()).await;
    sender.tick().await.unwrap();
    let second = sender.entry(nonce).await.unwrap();
    assert_eq!((second.signed.len(), second.latest().fee_cap), (2, 150_000_000));
    assert_eq!(second.signed[0], first.signed[0]);
    assert_eq!(written(place.path()).unwrap().signed, second.signed, "it was written before it was sent");
    chain.lock().unwrap().mine(&[]);
    assert_eq!(sender.wait(nonce).await.unwrap().transaction_hash, second.latest().hash);
    sender.tick().await.unwrap();
    chain.lock().unwrap().mine(&[]);
    sender.wait(behind).await.unwrap();
}

#[tokio::test]
async fn a_version_that_a_node_refused_is_still_found_when_another_mined_it() {
    let chain = Chain::new();
    let (rich, strict) = (Node::start(&chain).await, Node::start(&chain).await);
    let place = tempfile::tempdir().unwrap();
    let first = {
        let sender = open(&[&rich], place.path(), quick()).await;
        let nonce = sender.submit(request(1)).await.unwrap();
        sender.entry(nonce).await.unwrap()
    };
    strict.set(|ways| &ways.poor, true);
    chain.lock().unwrap().balance = pays(150_000_000);
    let sender = open(&[&strict], place.path(), quick()).await;
    sender.tick().await.unwrap();
    assert_eq!(sender.entry(0).await.unwrap().signed.len(), 2);
    chain.lock().unwrap().mine(&[]);
    assert_eq!(sender.wait(0).await.unwrap().transaction_hash, first.latest().hash);
}

#[tokio::test]
async fn gas_that_no_block_has_is_estimated_anew() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let sender = open(&[&node], place.path(), quick()).await;
    chain.lock().unwrap().block_gas = 32_000_000;
    let gas = |gas| node.ways.gas.store(gas, std::sync::atomic::Ordering::SeqCst);
    gas(10_000_000_000_000);
    let nonce = sender.submit(request(1)).await.unwrap();
    assert_eq!(sender.entry(nonce).await.unwrap().signed.len(), 1);
    gas(0);
    sender.tick().await.unwrap();
    let entry = sender.entry(nonce).await.unwrap();
    assert_eq!((entry.gas, entry.signed.len(), entry.latest().fee_cap), (GAS, 2, 200_000_000));
    chain.lock().unwrap().mine(&[]);
    sender.finish(nonce).await.unwrap();
    // A call that would be undone by now has no estimate. Its number is used all the same.
    gas(10_000_000_000_000);
    let nonce = sender.submit(request(1)).await.unwrap();
    chain.lock().unwrap().refusal = Some(Bytes::new());
    sender.tick().await.unwrap();
    assert_eq!(sender.entry(nonce).await.unwrap().gas, 32_000_000);
    chain.lock().unwrap().mine(&[]);
    sender.finish(nonce).await.unwrap();
}

#[tokio::test]
async fn what_is_signed_anew_respects_the_ceiling_and_has_a_bounded_number_of_versions() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let sending = Sending { fee_ceiling: Some(150_000_000), ..quick() };
    let sender = open(&[&node], place.path(), sending).await;
    node.set(|ways| &ways.poor, true);
    chain.lock().unwrap().base_fee = 400_000_000;
    let above = sender.above_ceiling();
    let nonce = sender.submit(request(1)).await.unwrap();
    drop(above);
    let first = sender.entry(nonce).await.unwrap();
    assert_eq!(first.latest().fee_cap, 800_000_000);
    sender.tick().await.unwrap();
    assert_eq!(sender.entry(nonce).await.unwrap().signed.len(), 1, "the base fee is above the ceiling");
    chain.lock().unwrap().base_fee = 100_000_000;
    sender.tick().await.unwrap();
    assert_eq!(sender.entry(nonce).await.unwrap().latest().fee_cap, 150_000_000);
    // A node that refuses everything, and tells another balance each time.
    for more in 0..30 {
        chain.lock().unwrap().balance = pays(110_000_000 + more);
        sender.tick().await.unwrap();
        assert!(sender.entry(nonce).await.unwrap().latest().fee_cap <= 150_000_000);
    }
    let entry = sender.entry(nonce).await.unwrap();
    assert_eq!(entry.signed.len(), 8);
    assert!(entry.signed.iter().any(|signed| *signed == first.signed[0]));
    // Some are left for a higher base fee, and no more.
    let above = sender.above_ceiling();
    chain.lock().unwrap().balance = u128::MAX;
    for doubled in 0..10 {
        chain.lock().unwrap().base_fee = 1_000_000_000 << (2 * doubled);
        sender.tick().await.unwrap();
    }
    assert_eq!(sender.entry(nonce).await.unwrap().signed.len(), 12);
    drop(above);
    // One of them fits in the end.
    node.set(|ways| &ways.poor, false);
    chain.lock().unwrap().base_fee = 100_000_000;
    chain.lock().unwrap().balance = pays(110_000_003);
    for _ in 0..12 {
        sender.tick().await.unwrap();
    }
    chain.lock().unwrap().mine(&[]);
    sender.wait(nonce).await.unwrap();
}

#[tokio::test]
async fn what_must_be_mined_is_sent_although_the_disk_does_not_take_it() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let sender = open(&[&node], place.path(), quick()).await;
    let before = sender.submit(request(1)).await.unwrap();
    let directory = Sender::directory(place.path(), scripted::CHAIN, key().address());
    let away = place.path().join("away");
    std::fs::rename(&directory, &away).unwrap();
    assert!(matches!(sender.submit(request(2)).await, Err(Error::File { .. })));
    let anyway = sender.without_disk();
    let urgent = sender.submit(request(2)).await.unwrap();
    assert_eq!(urgent, before + 1);
    chain.lock().unwrap().mine(&[]);
    assert!(sender.wait(urgent).await.unwrap().status());
    assert!(sender.unwritten().await.is_some());
    drop(anyway);
    assert!(matches!(sender.submit(request(3)).await, Err(Error::File { .. })));
    std::fs::rename(&away, &directory).unwrap();
    sender.submit(request(3)).await.unwrap();
    assert_eq!(sender.unwritten().await, None);
}

#[tokio::test]
async fn what_was_never_written_is_forgotten_like_the_rest() {
    let chain = Chain::new();
    chain.lock().unwrap().automatic = true;
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let sender = open(&[&node], place.path(), Sending { keep: 1, ..quick() }).await;
    let directory = Sender::directory(place.path(), scripted::CHAIN, key().address());
    let away = place.path().join("away");
    std::fs::rename(&directory, &away).unwrap();
    let anyway = sender.without_disk();
    for value in 0..2 {
        let nonce = sender.submit(request(value)).await.unwrap();
        sender.finish(nonce).await.unwrap();
    }
    (0..4).for_each(|_| chain.lock().unwrap().mine(&[]));
    sender.tick().await.unwrap();
    assert!(sender.unfinished().await.is_empty() && sender.unwritten().await.is_some());
    drop(anyway);
    std::fs::rename(&away, &directory).unwrap();
    for value in 2..4 {
        assert_eq!(sender.submit(request(value)).await.unwrap(), value);
    }
    assert_eq!((sender.unwritten().await, sender.entry(0).await), (None, None));
}

#[tokio::test]
async fn a_damaged_transaction_is_set_aside_and_those_behind_it_do_not_wait_for_it() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let sender = open(&[&node], place.path(), quick()).await;
    for value in 0..3 {
        sender.submit(request(value)).await.unwrap();
    }
    let behind = sender.entry(2).await.unwrap();
    let directory = Sender::directory(place.path(), scripted::CHAIN, key().address());
    drop(sender);
    // None of them was mined, and no node has them any more.
    chain.lock().unwrap().pool.clear();
    let file = |nonce: u64| directory.join(format!("{nonce:020}.json"));
    std::fs::write(file(1), "").unwrap();
    std::fs::write(directory.join("genesis"), "").unwrap();
    let refused = Sender::open(endpoints(&[&node]), key(), place.path(), quick()).await;
    assert!(matches!(refused, Err(Error::File { .. })));
    let sender = open(&[&node], place.path(), Sending { set_aside: true, ..quick() }).await;
    assert_eq!(sender.damaged().await, [file(1).with_extension("damaged")]);
    assert!(file(1).with_extension("damaged").exists());
    let filler = sender.entry(1).await.unwrap();
    assert_eq!((filler.to, filler.value, filler.name), (key().address().into(), U256::ZERO, None));
    sender.tick().await.unwrap();
    chain.lock().unwrap().mine(&[]);
    sender.wait(2).await.unwrap();
    assert_eq!(bytes(&sender.entry(2).await.unwrap()), bytes(&behind));
    // One that is mined, or the last, needs nothing in its place.
    drop(sender);
    std::fs::write(file(0), "{").unwrap();
    let sender = open(&[&node], place.path(), Sending { set_aside: true, ..quick() }).await;
    assert_eq!((sender.damaged().await.len(), sender.entry(0).await), (1, None));
    assert_eq!(sender.submit(request(3)).await.unwrap(), 3);
}

#[tokio::test]
async fn a_node_that_counts_too_many_or_sees_no_money_is_not_believed_alone() {
    let chain = Chain::new();
    chain.lock().unwrap().automatic = true;
    let (liar, honest) = (Node::start(&chain).await, Node::start(&chain).await);
    liar.ways.counts.store(1, std::sync::atomic::Ordering::SeqCst);
    liar.set(|ways| &ways.broke, true);
    let place = tempfile::tempdir().unwrap();
    let sender = open(&[&liar, &honest], place.path(), quick()).await;
    for nonce in 0..3 {
        assert_eq!(sender.submit(request(nonce)).await.unwrap(), nonce);
        sender.finish(nonce).await.unwrap();
    }
    // Nor does an open one count as displaced.
    chain.lock().unwrap().automatic = false;
    let nonce = sender.submit(request(3)).await.unwrap();
    for _ in 0..10 {
        sender.tick().await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(sender.entry(nonce).await.unwrap().fate, Fate::Open);
    honest.set(|ways| &ways.broke, true);
    assert!(matches!(sender.submit(request(4)).await, Err(Error::Unpayable { .. })));
}

#[tokio::test]
async fn numbers_that_a_node_skipped_are_filled_after_a_while_unless_they_are_many() {
    let chain = Chain::new();
    chain.lock().unwrap().automatic = true;
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let counts = |more| node.ways.counts.store(more, std::sync::atomic::Ordering::SeqCst);
    let sender = open(&[&node], place.path(), quick()).await;
    counts(3);
    let nonce = sender.submit(request(1)).await.unwrap();
    assert_eq!(nonce, 3);
    counts(0);
    sender.tick().await.unwrap();
    assert_eq!((sender.entry(0).await, sender.take_alerts().await), (None, Vec::new()), "not at once");
    assert!(sender.wait(nonce).await.unwrap().status());
    let filler = sender.entry(0).await.unwrap();
    assert_eq!((filler.to, filler.value, filler.name), (key().address().into(), U256::ZERO, None));
    assert_eq!(chain.lock().unwrap().mined().len(), 4);
    let alerts = sender.take_alerts().await;
    assert!(alerts.len() == 1 && alerts[0].contains("transaction 3 of") && alerts[0].contains(": 3 are filled"), "{alerts:?}");
    sender.tick().await.unwrap();
    counts(100);
    assert_eq!(sender.submit(request(2)).await.unwrap(), 104);
    counts(0);
    for _ in 0..10 {
        sender.tick().await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let alerts = sender.take_alerts().await;
    assert!(alerts.len() == 1 && alerts[0].contains("too many to fill"), "{alerts:?}");
    assert_eq!(chain.lock().unwrap().mined().len(), 4);
    assert_eq!(sender.entry(4).await, None);
}

#[tokio::test]
async fn a_transaction_behind_one_that_no_node_takes_says_why_that_one_waits() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    node.set(|ways| &ways.poor, true);
    let place = tempfile::tempdir().unwrap();
    let sender = open(&[&node], place.path(), Sending { patience: Duration::from_millis(300), ..quick() }).await;
    for nonce in 0..2 {
        assert_eq!(sender.submit(request(nonce)).await.unwrap(), nonce);
    }
    let said = sender.wait(1).await.unwrap_err().to_string();
    let wanted = "transaction 1 has not been mined yet: transaction 0 before it: the node says: insufficient funds";
    assert!(said.starts_with(wanted), "{said}");
}

#[tokio::test]
async fn transactions_go_in_their_order_and_wait_for_each_other() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let sender = open(&[&node], place.path(), quick()).await;
    node.set(|ways| &ways.away, true);
    assert!(matches!(sender.submit(request(0)).await, Err(Error::Unreachable(_))));
    node.set(|ways| &ways.away, false);
    let mut nonces = Vec::new();
    for value in 0..5 {
        nonces.push(sender.submit(request(value)).await.unwrap());
    }
    assert_eq!(nonces, [0, 1, 2, 3, 4]);
    // The node forgets all of them, as after a restart of its own.
    chain.lock().unwrap().pool.clear();
    drop(sender);
    let sender = open(&[&node], place.path(), quick()).await;
    let before = node.heard().len();
    sender.tick().await.unwrap();
    let hashes: Vec<B256> = {
        let mut all = Vec::new();
        for nonce in nonces {
            all.push(sender.entry(nonce).await.unwrap().latest().clone());
        }
        assert_eq!(node.heard()[before..], all.iter().map(|signed| signed.bytes.clone()).collect::<Vec<_>>());
        all.iter().map(|signed| signed.hash).collect()
    };
    chain.lock().unwrap().mine(&[]);
    assert_eq!(chain.lock().unwrap().mined(), hashes);
    sender.wait(4).await.unwrap();
}

#[tokio::test]
async fn a_node_that_drops_transactions_is_not_the_only_one_asked() {
    let chain = Chain::new();
    chain.lock().unwrap().automatic = true;
    let (swallows, honest) = (Node::start(&chain).await, Node::start(&chain).await);
    swallows.set(|ways| &ways.swallows, true);
    let place = tempfile::tempdir().unwrap();
    let sender = open(&[&swallows, &honest], place.path(), quick()).await;
    let nonce = sender.submit(request(1)).await.unwrap();
    assert_eq!(swallows.heard().len(), 1);
    sender.wait(nonce).await.unwrap();
}

#[tokio::test]
async fn who_else_uses_the_key_is_noticed() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let (place, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let sender = open(&[&node], place.path(), quick()).await;
    let nonce = sender.submit(Request { name: Some("the work".into()), ..request(1) }).await.unwrap();
    chain.lock().unwrap().pool.clear();
    let other = open(&[&node], elsewhere.path(), quick()).await;
    assert_eq!(other.submit(request(2)).await.unwrap(), nonce);
    chain.lock().unwrap().mine(&[]);
    assert!(matches!(sender.wait(nonce).await, Err(Error::Displaced { nonce: 0 })));
    // It came to nothing, so its name is free.
    assert_eq!(sender.submit(Request { name: Some("the work".into()), ..request(1) }).await.unwrap(), 1);
    // And only one process can use a journal.
    let again = Sender::open(endpoints(&[&node]), key(), place.path(), quick()).await;
    assert!(matches!(again.err(), Some(Error::InUse { .. })));
}

#[tokio::test]
async fn a_receipt_that_comes_late_is_waited_for() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let sending = Sending { missing: Duration::from_mins(1), patience: Duration::from_millis(300), ..quick() };
    let sender = open(&[&node], place.path(), sending).await;
    let nonce = sender.submit(request(1)).await.unwrap();
    node.set(|ways| &ways.blind, true);
    chain.lock().unwrap().mine(&[]);
    let error = sender.wait(nonce).await.unwrap_err();
    assert!(matches!(&error, Error::NotMined { trouble: Some(why), .. } if why.contains("no node shows its receipt")), "{error}");
    for _ in 0..10 {
        sender.tick().await.unwrap();
    }
    assert_eq!(sender.entry(nonce).await.unwrap().fate, Fate::Open);
    node.set(|ways| &ways.blind, false);
    sender.wait(nonce).await.unwrap();
}

#[tokio::test]
async fn a_receipt_that_another_node_has_is_found() {
    let chain = Chain::new();
    let (blind, other) = (Node::start(&chain).await, Node::start(&chain).await);
    blind.set(|ways| &ways.blind, true);
    let place = tempfile::tempdir().unwrap();
    let sender = open(&[&blind, &other], place.path(), quick()).await;
    let nonce = sender.submit(request(1)).await.unwrap();
    chain.lock().unwrap().mine(&[]);
    for _ in 0..5 {
        sender.tick().await.unwrap();
    }
    assert!(matches!(sender.entry(nonce).await.unwrap().fate, Fate::Mined { .. }));
}

#[tokio::test]
async fn what_counts_as_displaced_is_looked_for_again_before_it_is_done_anew() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let work = |value| Request { name: Some("the work".into()), ..request(value) };
    let sender = open(&[&node], place.path(), quick()).await;
    let nonce = sender.submit(work(1)).await.unwrap();
    node.set(|ways| &ways.blind, true);
    chain.lock().unwrap().mine(&[]);
    assert!(matches!(sender.wait(nonce).await, Err(Error::Displaced { nonce: 0 })));
    drop(sender);
    let sender = open(&[&node], place.path(), quick()).await;
    // Nothing is known while nobody answers, so nothing is signed.
    node.set(|ways| &ways.away, true);
    assert!(matches!(sender.standing("the work").await, Err(Error::Unreachable(_))));
    assert!(matches!(sender.submit(work(1)).await, Err(Error::Unreachable(_))));
    node.set(|ways| &ways.away, false);
    node.set(|ways| &ways.blind, false);
    assert_eq!(sender.submit(work(1)).await.unwrap(), nonce);
    assert_eq!(sender.standing("the work").await.unwrap().map(|entry| entry.nonce), Some(nonce));
    sender.wait(nonce).await.unwrap();
    assert_eq!((chain.lock().unwrap().mined().len(), node.heard().len()), (1, 1));
}

#[tokio::test]
async fn so_many_may_be_open_and_so_many_are_remembered() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let sender = open(&[&node], place.path(), Sending { open: 3, keep: 2, ..quick() }).await;
    for value in 0..3 {
        sender.submit(request(value)).await.unwrap();
    }
    assert!(matches!(sender.submit(request(3)).await, Err(Error::TooManyOpen(3))));
    for _ in 0..5 {
        chain.lock().unwrap().mine(&[]);
    }
    sender.tick().await.unwrap();
    let directory = Sender::directory(place.path(), scripted::CHAIN, key().address());
    let files = || {
        std::fs::read_dir(&directory)
            .unwrap()
            .filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|e| e == "json"))
            .count()
    };
    assert_eq!(files(), 2);
    assert_eq!(sender.submit(request(3)).await.unwrap(), 3);
    assert_eq!(files(), 3);
}

#[tokio::test]
async fn one_node_alone_cannot_refuse_what_must_not_be_omitted() {
    let chain = Chain::new();
    let (liar, honest) = (Node::start(&chain).await, Node::start(&chain).await);
    liar.set(|ways| &ways.denies, true);
    let place = tempfile::tempdir().unwrap();
    let sender = open(&[&liar, &honest], place.path(), quick()).await;
    assert!(sender.submit(request(1)).await.unwrap_err().refusal().is_some());
    let above = sender.above_ceiling();
    let nonce = sender.submit(request(1)).await.unwrap();
    chain.lock().unwrap().mine(&[]);
    sender.wait(nonce).await.unwrap();
    chain.lock().unwrap().refusal = Some(Bytes::new());
    assert!(sender.submit(request(1)).await.unwrap_err().refusal().is_some(), "both refuse");
    drop(above);
}

#[tokio::test]
async fn what_would_be_refused_is_not_sent_and_what_was_undone_says_why() {
    let chain = Chain::new();
    chain.lock().unwrap().automatic = true;
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let muster = Muster::connect(endpoints(&[&node]), CONTRACT).await.unwrap();
    let account = Account::new(muster, open(&[&node], place.path(), quick()).await);
    let refused = IMuster::WrongStatus { node: 7, status: 5 };
    chain.lock().unwrap().refusal = Some(refused.abi_encode().into());
    let error = account.call(IMuster::pauseCall {}, U256::ZERO).await.unwrap_err();
    assert_eq!(error.refusal(), Some(&Refusal::Known(Reason::WrongStatus(refused))));
    assert!(node.heard().is_empty() && account.sender().unfinished().await.is_empty());
    // Refused by the state in which it was mined, though not when it was sent.
    chain.lock().unwrap().refusal = None;
    chain.lock().unwrap().undoes = true;
    let error = account.call(IMuster::pauseCall {}, U256::ZERO).await.unwrap_err();
    assert!(matches!(error, Error::Undone { .. }), "{error}");
    let nobody = Muster::connect(endpoints(&[&node]), Address::ZERO).await;
    assert!(nobody.is_ok(), "the scripted node has code everywhere");
}

#[tokio::test]
async fn what_was_signed_for_a_chain_that_began_anew_is_not_sent_again() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let paid = |value| Request { name: Some("the payment".into()), ..request(value) };
    let before = {
        let sender = open(&[&node], place.path(), quick()).await;
        sender.submit(paid(1)).await.unwrap();
        chain.lock().unwrap().mine(&[]);
        sender.tick().await.unwrap();
        // Not mined when the chain ends.
        sender.submit(request(2)).await.unwrap();
        [sender.entry(0).await.unwrap(), sender.entry(1).await.unwrap()]
    };
    let old = {
        let mut chain = chain.lock().unwrap();
        let old = chain.clone();
        chain.begin_anew();
        chain.automatic = true;
        old
    };
    let heard = node.heard().len();
    {
        let sender = open(&[&node], place.path(), quick()).await;
        sender.tick().await.unwrap();
        assert_eq!((sender.unfinished().await.len(), node.heard().len()), (0, heard), "the old ones are another chain's");
        // The same name is new work on this chain, from nonce 0 on.
        assert_eq!(sender.submit(paid(3)).await.unwrap(), 0);
        sender.wait(0).await.unwrap();
        let sent = sender.entry(0).await.unwrap().latest().hash;
        assert_eq!(chain.lock().unwrap().mined(), [sent]);
    }
    // If only the endpoint was wrong, nothing is lost.
    *chain.lock().unwrap() = old;
    let sender = open(&[&node], place.path(), quick()).await;
    assert_eq!([sender.entry(0).await.unwrap().signed, sender.entry(1).await.unwrap().signed], before.map(|entry| entry.signed));
    chain.lock().unwrap().mine(&[]);
    sender.wait(1).await.unwrap();
}

/// A transaction that creates a contract.
fn creation() -> Request {
    Request { input: Bytes::from_static(b"initcode"), ..Request::default() }
}

#[tokio::test]
async fn a_contract_is_created_and_stays_begun_through_a_restart() {
    let chain = Chain::new();
    let node = Node::start(&chain).await;
    let place = tempfile::tempdir().unwrap();
    let sender = open(&[&node], place.path(), quick()).await;
    assert_eq!(sender.submit(request(7)).await.unwrap(), 0);
    assert_eq!(sender.submit(creation()).await.unwrap(), 1);
    let kinds: Vec<_> = chain.lock().unwrap().pool.iter().map(|transaction| transaction.kind()).collect();
    assert_eq!(kinds, [TxKind::Call(CONTRACT), TxKind::Create]);
    let begun = node.heard();
    chain.lock().unwrap().pool.clear();
    drop(sender);
    let sender = open(&[&node], place.path(), quick()).await;
    chain.lock().unwrap().automatic = true;
    sender.finish(1).await.unwrap();
    let again = node.heard()[begun.len()..].to_vec();
    assert!(!again.is_empty() && again.iter().all(|bytes| begun.contains(bytes)), "other bytes than before");
    // A file of an earlier version has the address alone, as those of today have.
    let files = Sender::directory(place.path(), scripted::CHAIN, key().address());
    let file = |nonce: u64| {
        let text = std::fs::read(files.join(format!("{nonce:020}.json"))).unwrap();
        serde_json::from_slice::<serde_json::Value>(&text).unwrap()["to"].clone()
    };
    assert_eq!((file(0), file(1)), (serde_json::json!(CONTRACT), serde_json::Value::Null));
}

#[tokio::test]
async fn without_a_disk_the_chain_alone_says_where_an_account_goes_on() {
    let chain = Chain::new();
    chain.lock().unwrap().automatic = true;
    let node = Node::start(&chain).await;
    let open = async || Sender::in_memory(endpoints(&[&node]), key(), quick()).await.unwrap();
    let sender = open().await;
    for nonce in 0..2 {
        assert_eq!(sender.submit(request(nonce)).await.unwrap(), nonce);
        sender.finish(nonce).await.unwrap();
    }
    // Two senders continue after each other's transactions.
    let other = open().await;
    assert_eq!(other.submit(creation()).await.unwrap(), 2);
    other.finish(2).await.unwrap();
    assert_eq!(sender.submit(request(3)).await.unwrap(), 3);
    sender.finish(3).await.unwrap();
    assert_eq!(chain.lock().unwrap().mined().len(), 4);
    assert!(matches!(sender.finish(2).await, Err(Error::UnknownTransaction(2))));
}

#[tokio::test]
async fn without_a_disk_what_no_node_takes_is_an_error_and_forgotten() {
    let chain = Chain::new();
    chain.lock().unwrap().automatic = true;
    let node = Node::start(&chain).await;
    node.set(|ways| &ways.poor, true);
    let sender = Sender::in_memory(endpoints(&[&node]), key(), quick()).await.unwrap();
    let error = sender.submit(request(1)).await.unwrap_err();
    assert!(matches!(&error, Error::NotTaken(trouble) if trouble.contains("insufficient funds")), "{error}");
    assert!(sender.unfinished().await.is_empty());
    // Its number is the next one's, and it is not sent again.
    node.set(|ways| &ways.poor, false);
    assert_eq!(sender.submit(request(2)).await.unwrap(), 0);
    sender.finish(0).await.unwrap();
    assert_eq!((node.heard().len(), chain.lock().unwrap().mined().len()), (2, 1));
    // With one it is kept, to be sent when they do.
    let place = tempfile::tempdir().unwrap();
    node.set(|ways| &ways.poor, true);
    let sender = open(&[&node], place.path(), quick()).await;
    let nonce = sender.submit(request(3)).await.unwrap();
    node.set(|ways| &ways.poor, false);
    sender.finish(nonce).await.unwrap();
}

#[tokio::test]
async fn what_was_undone_says_whether_its_gas_was_used_up() {
    let chain = Chain::new();
    chain.lock().unwrap().automatic = true;
    chain.lock().unwrap().undoes = true;
    let node = Node::start(&chain).await;
    let sender = Sender::in_memory(endpoints(&[&node]), key(), quick()).await.unwrap();
    // The scripted chain takes 21,000 gas for everything.
    for (gas, words) in [(21_000, " once it had used all its gas: "), (21_001, " was undone: ")] {
        let nonce = sender.submit(Request { gas: Some(gas), ..request(1) }).await.unwrap();
        let error = sender.finish(nonce).await.unwrap_err();
        assert!(matches!(error, Error::Undone { exhausted, .. } if exhausted == (gas == 21_000)), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
    }
}
