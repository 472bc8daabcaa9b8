//! Scores and kickout through compiled WASM, by groups of three that are judged.

use std::collections::BTreeSet;

use alloy_primitives::{keccak256, B256};
use alloy_sol_types::SolEvent;
use ethers::abi::Token;
use muster_model::explorer::Explorer;
use muster_model::system::{Done, System};
use muster_model::validated::{value, ANSWER};
use muster_model::world::{commitment, spec, who, TOKEN};
use muster_protocol::abi::IMuster::{self, IMusterEvents as E, *};
use muster_tests::chain::{account, interface, Muster};
use muster_tests::live::{Live, Site};
use muster_tests::*;

const FEE: u128 = TOKEN;
/// The nodes that are there.
const NODES: [u32; 3] = [1, 2, 3];
/// The subject of each score of theirs.
const X: u32 = 3;

fn node(live: &Live, number: u32) -> IMuster::NodeView {
    live.view(IMuster::nodeCall { number })
}

fn names(done: &Done) -> Vec<String> {
    done.events.iter().map(|e| format!("{e:?}").split('(').next().unwrap().to_string()).collect()
}

/// The nodes whose scores were recorded, and the nodes that were kicked out.
fn outcome(done: &Done) -> BTreeSet<(u32, Option<u8>)> {
    let of = |e: &E| match e {
        E::ScoreRecorded(s) => Some((s.node, Some(s.score))),
        E::NodeKickedOut(k) => Some((k.node, None)),
        _ => None,
    };
    done.events.iter().filter_map(of).collect()
}

/// A group whose members are all idle nodes: its task and its place.
fn formed(live: &mut Live) -> (u64, u32) {
    let image = IMuster::TaskSpec { kind: 0, redundancy: 2, ..spec(0, &[]) };
    let (id, group, nodes) = live.started(FEE, image);
    assert_eq!(nodes.into_iter().collect::<BTreeSet<_>>(), BTreeSet::from(NODES));
    assert!(live.view(groupCall { place: group }).scored);
    (id, group)
}

/// A member's answer: the right image, or another, which costs a score and no stake.
fn said(fails: bool) -> (u8, B256) {
    let mut image = B256::ZERO;
    image[..8].fill(if fails { 0xfe } else { 1 });
    (ANSWER, image)
}

fn commit(live: &mut Live, id: u64, n: u32, fails: bool) {
    let (kind, answer) = said(fails);
    live.pass(1, 1);
    live.done(who(n.into()), 0, commitCall { id, commitment: commitment(id, n, kind, answer, value(77)) });
}

/// All reveal their commitments; gives the last reveal, which judges.
fn revealed(live: &mut Live, (id, group): (u64, u32), fails: Option<u32>) -> Done {
    let reveal = |live: &mut Live, node: u32| {
        let (kind, value) = said(fails == Some(node));
        live.done(who(9), 0, revealCall { id, group, node, kind, value, salt: B256::repeat_byte(77) })
    };
    NODES.map(|n| reveal(live, n)).into_iter().last().expect("judged")
}

/// A group that answers in this order: the first is given 10, the second 5, the third 2, or 0 if it fails.
fn judged(live: &mut Live, order: [u32; 3], fails: bool) -> Done {
    let group = formed(live);
    let last = |n: u32| fails && n == order[2];
    order.iter().for_each(|&n| commit(live, group.0, n, last(n)));
    let done = revealed(live, group, Some(order[2]).filter(|_| fails));
    let scores = outcome(&done).into_iter().filter(|(_, score)| score.is_some());
    let expected = [(order[0], Some(10)), (order[1], Some(5)), (order[2], Some(if fails { 0 } else { 2 }))];
    assert_eq!(scores.collect::<BTreeSet<_>>(), BTreeSet::from(expected));
    done
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_pool_below_the_threshold_kicks_out_for_good() {
    let Some(site) = Site::new().await else {
        return println!("a_full_pool_below_the_threshold_kicks_out_for_good: skipped, because RPC_URL names a node");
    };
    let mut live = site.fresh();
    live.set("scorePool", 3);
    for n in NODES {
        assert_eq!(live.join(n.into()), n);
    }
    let mut start = live.mark();

    // Q_long is the mean of the last fifty; QoS is Q_long / 10 x H.
    assert_eq!(node(&live, X).longTerm, 500_000_000_000_000_000);
    for (order, fails, mean) in
        [([X, 1, 2], false, 10.0), ([1, X, 2], false, 7.5), ([1, 2, X], false, 17.0 / 3.0), ([1, 2, X], true, 4.25)]
    {
        judged(&mut live, order, fails);
        let view = node(&live, X);
        assert!((view.longTerm as f64 / 1e17 - mean).abs() < 1e-9);
        let weight = live.view(IMuster::weightOfCall { number: X, spec: spec(0, &[]) });
        assert!((weight.qos as f64 / 1e17 - mean).abs() < 1e-9, "H is 1");
    }
    assert_eq!(node(&live, X).scores, 4);

    // 49 of the worst do nothing; the fiftieth does.
    live.back(&mut start);
    for _ in 0..49 {
        judged(&mut live, [1, 2, X], true);
    }
    assert_eq!((node(&live, X).status, node(&live, X).scores, node(&live, X).longTerm), (1, 49, 0));
    judged(&mut live, [1, 2, X], true);
    assert_eq!(node(&live, X).status, 0);

    // A mean of exactly 2.0 is not below 2.0; the oldest score has left the pool.
    live.back(&mut start);
    judged(&mut live, [X, 1, 2], false);
    for _ in 0..50 {
        judged(&mut live, [1, 2, X], false);
    }
    assert_eq!((node(&live, X).status, node(&live, X).scores), (1, 50), "100 over 50 scores");
    let mut full = live.mark();
    let earned = live.view(IMuster::accountCall { who: who(3).into() }).credit;
    assert!(earned > 0);

    let done = judged(&mut live, [1, 2, X], true);
    let told = names(&done);
    let at = told.iter().position(|name| name == "NodeKickedOut").expect("kicked out");
    assert_eq!(told[at - 1..=at + 1], ["ScoreRecorded", "NodeKickedOut", "NodeQuit"]);
    assert!(matches!(&done.events[at], E::NodeKickedOut(k) if k.node == X && k.operator.into_array() == who(3)));
    let release = System::clock(&live).0 + 86_400;
    assert!(matches!(&done.events[at + 1], E::NodeQuit(q) if q.stake == 400 * TOKEN && q.release == release));

    // For good, and the stake comes back after unbonding all the same.
    let joining = |gpu: &str, vram: u16| joinCall { gpuName: gpu.into(), vram, models: vec![] };
    assert_eq!(live.done(who(3), 0, withdrawCall { to: who(3).into() }).paid, earned);
    for _ in 0..2 {
        assert_eq!(live.refused(who(3), 400 * TOKEN, joining("Another", 8)), "KickedOut");
        assert_eq!(live.refused(who(3), 400 * TOKEN, joining("RTX 4090", 24)), "KickedOut");
        live.pass(1, 40_000);
    }
    assert_eq!(live.refused(who(3), 0, withdrawCall { to: who(3).into() }), "NothingToWithdraw");
    live.pass(1, 6_400);
    assert_eq!(live.done(who(3), 0, withdrawCall { to: who(3).into() }).paid, 400 * TOKEN);
    assert_eq!(live.refused(who(3), 400 * TOKEN, joining("RTX 4090", 24)), "KickedOut");
    assert!(live.view(IMuster::accountCall { who: who(3).into() }).kickedOut);
    live.inspect();
    // Logs alone say the same.
    let mut explorer = Explorer::default();
    live.all_logs().iter().for_each(|(event, time)| explorer.read(event, *time));
    live.read(|net| explorer.compare(net));

    // While busy it waits for the task's end, whatever else was asked of the node; the task is paid.
    for asked in 0..3 {
        live.back(&mut full);
        let group = formed(&mut live);
        commit(&mut live, group.0, X, true);
        // The only one that is idle takes a task of its own.
        let (id, _, nodes) = live.started(FEE, spec(0, &[]));
        assert_eq!(nodes, [X]);
        match asked {
            0 => {}
            1 => drop(live.done(who(3), 0, pauseCall {})),
            _ => drop(live.done(who(3), 0, quitCall {})),
        }
        commit(&mut live, group.0, 1, false);
        commit(&mut live, group.0, 2, false);
        let done = revealed(&mut live, group, Some(X));
        assert_eq!(outcome(&done), BTreeSet::from([(1, Some(10)), (2, Some(5)), (X, Some(0))]));
        assert_eq!(node(&live, X).status, 6, "PendingKickout");
        assert_eq!(live.refused(who(3), 0, quitCall {}), "WrongStatus");
        let done = live.done(who(3), 0, submitCall { id, resultDigest: [9; 32].into() });
        assert_eq!(names(&done), ["TaskSucceeded", "NodeKickedOut", "NodeQuit"]);
        let paid = live.done(who(3), 0, withdrawCall { to: who(3).into() }).paid;
        assert_eq!(paid, earned + FEE, "the stake unbonds");
        assert_eq!(live.refused(who(3), 400 * TOKEN, joining("RTX 4090", 24)), "KickedOut");
    }
    // Paused: at once.
    live.back(&mut full);
    let group = formed(&mut live);
    commit(&mut live, group.0, X, true);
    live.done(who(3), 0, pauseCall {});
    assert_eq!(node(&live, X).status, 5);
    commit(&mut live, group.0, 1, false);
    commit(&mut live, group.0, 2, false);
    let done = revealed(&mut live, group, Some(X));
    assert_eq!(outcome(&done), BTreeSet::from([(1, Some(10)), (2, Some(5)), (X, Some(0)), (X, None)]));
    assert_eq!(node(&live, X).status, 0);
    live.inspect();
}

/// A deployment answers the functions that the interface declares and no others, and nobody can have a score recorded but by a judgement.
#[tokio::test]
async fn no_deployed_selector_records_scores() {
    let mut w = World::new(&[]).await;
    let facets = w.view("facets", &[]).await.remove(0).into_array().unwrap();
    let mut answered = BTreeSet::new();
    for facet in facets {
        let [_, Token::Array(selectors)] = &facet.into_tuple().unwrap()[..] else { panic!() };
        for selector in selectors {
            let Token::FixedBytes(selector) = selector else { panic!() };
            answered.insert(<[u8; 4]>::try_from(&selector[..]).unwrap());
        }
    }
    let declared = interface().functions().filter(|f| f.name != "initialise");
    assert_eq!(answered, declared.map(|f| f.short_signature()).collect());
    // Its name in a program of earlier tests.
    let selector = &keccak256("recordScores(uint32,uint8,uint8)")[..4];
    let data = [selector, &[0; 96]].concat();
    let programs = w.base.deployment.programs.clone();
    assert_eq!(
        programs.keys().collect::<Vec<_>>(),
        ["admin", "batches", "draws", "groups", "lens", "nodes", "reputation", "router", "tasks", "work"]
    );
    for address in programs.values().map(|p| p.address) {
        w.muster = Muster { address: account(address) };
        let refused = w.refused_raw(w.boss.address(), data.clone().into(), 0.into()).await;
        assert_eq!(refused.name, "UnknownFunction", "{address:?}");
    }
    // The topic of the event that tells of every score is in the program that judges, and in no other.
    for program in programs.keys() {
        // The router is EVM code, which lies on chain as it was built; the others' code there is compressed.
        let file = format!("{program}.{}", if program == "router" { "deploy" } else { "wasm" });
        let code = std::fs::read(root().join("build").join(&file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let holds = code.windows(32).any(|bytes| bytes == IMuster::ScoreRecorded::SIGNATURE_HASH.0);
        assert_eq!(holds, program == "groups", "{program}");
    }
}
