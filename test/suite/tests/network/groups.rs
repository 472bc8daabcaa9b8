//! Validation through compiled WASM, where the programs ask each other. Beside every call the native code runs on the same storage, and
//! both must agree in every word.

use alloy_primitives::B256;
use muster_core::validation::payment;
use muster_model::system::{Done, System};
use muster_model::validated::{value, CARD};
use muster_model::world::{commitment, spec, who, OWNER, TOKEN};
use muster_protocol::abi::IMuster::{self, IMusterEvents as E, *};
use muster_tests::live::{Live, Site};

const FEE: u128 = 6 * TOKEN;
const NODES: u64 = 10;

fn commit(live: &mut Live, id: u64, node: u32, answer: u8) -> Done {
    let commitment = commitment(id, node, 0, value(answer), value(77));
    live.done(who(node.into()), 0, commitCall { id, commitment })
}

fn revealing(id: u64, group: u32, node: u32, answer: u8) -> revealCall {
    revealCall { id, group, node, kind: 0, value: value(answer), salt: value(77) }
}

/// Creates and draws a single task; gives its id and its node.
fn single(live: &mut Live) -> (u64, u32) {
    let (id, _, nodes) = live.started(TOKEN, spec(0, &[]));
    (id, nodes[0])
}

/// A network of equal nodes of a listed GPU group.
fn network(live: &mut Live, nodes: u64) {
    for n in 1..=nodes {
        live.join(n);
    }
    live.done(OWNER, 0, listGpuGroupCall { group: CARD, listed: true });
}

/// A group whose first node answered 1: the task, the place, the members. `from` calls until the validators are drawn.
fn group(live: &mut Live, from: u64) -> (u64, u32, Vec<u32>) {
    let wanted = IMuster::TaskSpec { gpu: CARD, redundancy: 1, flags: 1, ..spec(0, &[]) };
    let (id, _, nodes) = live.started(FEE, wanted);
    let node = nodes[0];
    commit(live, id, node, 1);
    assert_eq!(live.refused(who(9), 0, revealing(id, 0, node, 1)), "HashUnknown");
    live.pass(3, 1);
    assert_eq!(live.refused(who(9), 0, revealing(id, 0, node, 1)), "Sampled");
    live.done(who(from), 0, validateCall { id, node });
    loop {
        live.pass(3, 1);
        // The program of nodes asks that of tasks to draw, and that asks for validators.
        let done = live.done(who(node.into()), 0, reportRemovedCall { models: vec![] });
        let formed = done.events.iter().find_map(|e| if let E::GroupFormed(g) = e { Some(g.clone()) } else { None });
        if let Some(g) = formed {
            return (id, g.group, g.nodes);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_answer_is_found_and_slashed() {
    let Some(site) = Site::new().await else {
        return println!("a_wrong_answer_is_found_and_slashed: skipped, because RPC_URL names a node");
    };
    let mut live = site.fresh();
    network(&mut live, NODES);
    live.set("sampleBps", 10_000);

    // Judged twice, by the last reveal and by `settle`; the second time everybody is busy when validators are drawn.
    let (id, place, members) = group(&mut live, 60);
    let [a, b, c] = members[..] else { panic!("{members:?}") };
    for (n, answer) in [(b, 2), (c, 1)] {
        commit(&mut live, id, n, answer);
    }
    for (n, answer) in [(a, 1), (b, 2)] {
        live.done(who(9), 0, revealing(id, place, n, answer));
    }
    let done = live.done(who(9), 0, revealing(id, place, c, 1));
    // The account that called the validators has the start fee.
    let left = FEE - FEE / 50;
    let slashed = done.events.iter().any(|e| matches!(e, E::NodeSlashed(s) if (s.node, s.stake) == (b, 20 * left)));
    assert!(slashed, "{:?}", done.events);
    let overview = live.view(overviewCall {});
    let pot = payment(left, 10_000) * 3;
    assert_eq!((overview.burnt, overview.reserve, overview.groups), (20 * left, left - pot, 0));
    assert_eq!(live.view(outcomeCall { id }).resultDigest, value(1));
    assert_eq!(live.view(nodeCall { number: b }).status, 0);

    let busy: Vec<(u64, u32)> = (0..NODES - 3).map(|_| single(&mut live)).collect();
    let (id, place, members) = group(&mut live, 60);
    let [_, b, c] = members[..] else { panic!("{members:?}") };
    for n in [b, c] {
        if let Some(&(task, _)) = busy.iter().find(|t| t.1 == n) {
            assert_eq!(live.view(nodeCall { number: n }).calledTo, place);
            live.done(who(n.into()), 0, submitCall { id: task, resultDigest: value(9) });
        }
        assert_eq!(live.view(runningTaskCall { number: n }).id, id);
        commit(&mut live, id, n, 1);
    }
    assert_eq!(live.refused(who(9), 0, settleCall { id, group: place }), "RevealsOpen");
    live.pass(1, 7_300);
    let done = live.done(who(9), 0, settleCall { id, group: place });
    let withheld = done.events.iter().filter(|e| matches!(e, E::MemberJudged(m) if m.verdict == 3)).count();
    assert_eq!((withheld, live.view(overviewCall {}).burnt), (3, 80 * left));
    assert_eq!(live.view(outcomeCall { id }).state, 9);
    live.inspect();
}

/// Three busy nodes are freed for a task that takes three: two wait, all three are reserved and drawn, and their answers judged.
#[tokio::test(flavor = "multi_thread")]
async fn freed_nodes_wait_for_each_other_and_are_drawn_together() {
    let Some(site) = Site::new().await else {
        return println!("freed_nodes_wait_for_each_other_and_are_drawn_together: skipped, because RPC_URL names a node");
    };
    let mut live = site.fresh();
    network(&mut live, 4);
    let busy: Vec<(u64, u32)> = (0..4).map(|_| single(&mut live)).collect();
    for (kind, redundancy) in [(0, 2), (1, 2)] {
        live.done(who(50), 3 * FEE, createTaskCall { spec: IMuster::TaskSpec { kind, redundancy, flags: 1, ..spec(0, &[]) } });
        live.done(who(50), 0, dispatchCall { count: 16 });
    }
    let [images, equal] = [5, 6];
    assert_eq!(
        live.view(queuesCall { from: 0, count: 9 })._1.iter().map(|q| (q.queue, q.queued)).collect::<Vec<_>>(),
        [(4_096, 1), (8_192, 1)]
    );
    // 6 tokens for 50 seconds are more than 6 for 60.
    for (i, &(task, node)) in busy[..3].iter().enumerate() {
        assert_eq!(live.view(bestQueuedCall { number: node }).id, images);
        let done = live.done(who(node.into()), 0, submitCall { id: task, resultDigest: value(9) });
        let waits: Vec<u64> =
            done.events.iter().filter_map(|e| if let E::NodeWaits(n) = e { Some(n.until) } else { None }).collect();
        assert_eq!((waits.len(), waits.iter().all(|&until| until == 0)), if i < 2 { (1, false) } else { (3, true) });
    }
    live.pass(1, 1);
    // The program of groups asks that of tasks to draw, and that asks for the three.
    let (last, idle) = busy[3];
    let done = live.done(who(idle.into()), 0, reportErrorCall { id: last, code: 1 });
    let formed = done.events.iter().find_map(|e| if let E::GroupFormed(g) = e { Some(g.clone()) } else { None }).expect("formed");
    assert_eq!((formed.id, formed.nodes.len(), formed.scored), (images, 3, false));
    // One word for each image: the hashes of the others are zero.
    let hashed = |answer: u8| {
        let mut word = [0; 32];
        word[..8].fill(answer);
        B256::from(word)
    };
    for (i, &n) in formed.nodes.iter().enumerate() {
        let commitment = commitment(images, n, 0, hashed(1 + 2 * i as u8), value(77));
        live.done(who(n.into()), 0, commitCall { id: images, commitment });
    }
    // The first two that are free wait for the other task, and with the idle one they are three.
    assert_eq!(live.view(pendingTasksCall { from: 0, count: 9 }).iter().map(|t| t.id).collect::<Vec<_>>(), [equal]);
    // While its draw is due nobody is judged.
    live.pass(1, 1);
    let done = live.done(who(9), 0, dispatchCall { count: 16 });
    let alike = done.events.iter().find_map(|e| if let E::GroupFormed(g) = e { Some(g.clone()) } else { None }).expect("formed");
    assert_eq!((alike.id, alike.group), (equal, 2));
    for (i, &n) in formed.nodes.iter().enumerate() {
        let reveal = revealCall { value: hashed(1 + 2 * i as u8), ..revealing(images, formed.group, n, 0) };
        live.done(who(9), 0, reveal);
    }
    // One bit apart in every byte, or two: all are within eight bits of their neighbour.
    let outcome = live.view(outcomeCall { id: images });
    assert_eq!(outcome.state, 2, "{outcome:?}");
    for (i, &n) in alike.nodes.iter().enumerate() {
        commit(&mut live, equal, n, i as u8);
    }
    for (i, &n) in alike.nodes.iter().enumerate() {
        live.done(who(9), 0, revealing(equal, 2, n, i as u8));
    }
    // All different: refunded but for the start fee.
    let outcome = live.view(outcomeCall { id: equal });
    assert_eq!((outcome.state, outcome.refund), (9, 3 * FEE - 3 * FEE / 50));
    live.inspect();
}
