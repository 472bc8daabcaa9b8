//! The 21 ways in which earlier implementations of the source documents broke, by number. Where there is nothing of the kind to call
//! here, the test shows that no selector offers it, and tests the property that takes its place.
//!
//! docs/generated/proof.md lists them from the comments of these tests: the number, what it was, and after "Here" what holds.

use muster_model::world::*;
use muster_model::{proof, refused};

use alloy_sol_types::SolInterface;
use muster_core::id::{NodeId, QueueId, TaskId, Ticket};
use muster_core::record::CALL_MODELS;
use muster_protocol::abi::IMuster::{estimateCall, IMusterCalls, IMusterEvents as E};
use muster_protocol::flow::draw::Rng;
use muster_protocol::parameters::PARAMETERS;
use muster_protocol::{admin, Host, IMuster, Network, Refusal};
use std::collections::{BTreeMap, BTreeSet};

const FEE: u128 = TOKEN;

fn submit(w: &mut World, n: u64, id: u64) {
    w.call(who(n), 0, |net| net.submit(TaskId(id), [1; 32])).unwrap();
}

/// Asserts that no public function's signature has any of these words in it.
fn nothing_called(words: &[&str]) {
    for signature in IMusterCalls::SIGNATURES {
        let name = signature.to_lowercase();
        assert!(!words.iter().any(|w| name.contains(w)), "{signature}");
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Trick {
    /// Create only when the last known hash would give his node.
    Look,
    /// Cancel when it does not look good.
    Cancel,
    /// Once the hash is known and bad, let others drive the draw and never do it himself.
    Withhold,
    /// Once the hash is known and bad, change the candidates before the draw.
    Reshuffle,
}

/// Plays a creator who owns nodes 1 and 2 of eight equal ones and wants node 1. Gives the number of
/// his tasks, of those that node 1 got, and of the blocks it took.
fn fast_caller(delay: u64, trick: Trick, tasks: u64) -> (u64, u64, u64) {
    let mut w = world(8, delay);
    let (wanted, start) = (spec(0, &[]), w.mem.block);
    let (mut made, mut won) = (0, 0);
    while made < tasks {
        w.pass(1, 0);
        let id = w.view(|n| n.overview()).tasks + 1;
        let known = w.mem.block_hash(w.mem.block - 1).unwrap();
        assert_eq!(w.mem.block_hash(w.mem.block), None, "nobody knows the hash of the block in progress");
        if trick == Trick::Look && foretell(&mut w, known, id, &wanted) != Some(1) {
            continue;
        }
        assert_eq!(w.create(50, FEE, wanted.clone()).unwrap(), id);
        made += 1;
        if trick == Trick::Cancel && delay > 0 {
            for ticket in [0, 24, (id) << 32] {
                refused!(w.call(who(50), 0, |n| n.cancel(TaskId(id), Ticket(ticket))), TaskNotQueued(id, ticket));
            }
        }
        let mut paused = false;
        while w.view(|n| n.overview()).pending > 0 {
            let at = w.view(|n| n.pending_tasks(0, 1)).unwrap()[0].drawBlock;
            w.pass(1, 0);
            let hash = w.mem.block_hash(at).unwrap();
            let bad = foretell(&mut w, hash, id, &wanted) != Some(1);
            match trick {
                Trick::Reshuffle if bad && !paused => {
                    // His own call draws the task before it changes anything.
                    paused = w.call(who(2), 0, |n| n.pause()).is_ok();
                }
                Trick::Withhold if bad => {
                    // Anyone's call of any kind: here a stranger's task is created and drawn.
                    w.call(who(60), TOKEN, |n| n.raise_stake()).expect_err("no operator");
                    w.dispatch(1).unwrap();
                }
                _ => {
                    w.dispatch(1).unwrap();
                }
            }
        }
        let ran = (1..=8u32).find(|&n| w.node(n).task == id && matches!(w.node(n).status, 2 | 3)).expect("it runs");
        won += (ran == 1) as u64;
        submit(&mut w, ran as u64, id);
        if paused {
            w.call(who(2), 0, |n| n.resume()).unwrap();
        }
    }
    (made, won, w.mem.block - start)
}

/// By how many standard deviations node 1 got more than an eighth of the tasks.
fn judged(delay: u64, trick: Trick, (made, won, blocks): (u64, u64, u64)) -> f64 {
    let (p, n) = (1.0 / 8.0, made as f64);
    let z = (won as f64 - n * p) / (n * p * (1.0 - p)).sqrt();
    let (trick, shown) = (format!("{trick:?}"), format!("{z:.2}"));
    proof(
        "fast caller",
        &[("delay", &delay), ("trick", &trick), ("tasks", &made), ("won", &won), ("blocks", &blocks), ("z", &shown)],
    );
    z
}

/// With drawDelay 1 none of the tricks gets node 1 more than its eighth (0.1 %, one-sided); with 0
/// looking gets it every time, at the price of waiting for eight blocks.
#[test]
fn the_fast_caller_gains_nothing_with_delay_one_and_everything_with_none() {
    for trick in [Trick::Look, Trick::Cancel, Trick::Withhold, Trick::Reshuffle] {
        let (made, won, blocks) = fast_caller(1, trick, 4_000);
        let z = judged(1, trick, (made, won, blocks));
        assert!(z < 3.09, "{trick:?}: z = {z}");
        assert!(z > -3.29, "{trick:?}: z = {z}");
    }
    let (made, won, blocks) = fast_caller(0, Trick::Look, 1_000);
    judged(0, Trick::Look, (made, won, blocks));
    assert_eq!(won, made, "the dispatch document's own rule can be waited out");
    assert!(blocks > 6 * made);
}

/// What a call that comes between the hash and the draws could be. Node 7 is busy, node 8 paused.
const MEDDLING: [&str; 11] =
    ["create", "pause", "quit", "resume", "raise stake", "join", "report", "remove", "submit", "report error", "poke"];

/// Where due tasks fall if somebody meddles first: played, then undone. Gives the refusal of the meddling too.
fn fall(w: &mut World, meddling: Option<&str>, running: u64, ids: &[u64]) -> (Vec<Option<u32>>, Option<Vec<u8>>) {
    let mut out = (Vec::new(), None);
    let undone: Result<(), ()> = w.mem.call(|m| {
        let played: Result<(), Refusal> = m.call(|m| {
            let Some(what) = meddling else { return Ok(()) };
            let by = match what {
                "submit" | "report error" => 7,
                "resume" => 8,
                "join" => 70,
                "create" => 50,
                _ => 2,
            };
            (m.sender, m.value) = (
                who(by),
                word(match what {
                    "join" => 90_000 * TOKEN,
                    "raise stake" => TOKEN,
                    "create" => FEE,
                    _ => 0,
                }),
            );
            let mut net = Network::open_and_serve(m)?;
            match what {
                "create" => net.create_task(spec(0, &[])).map(drop),
                "pause" => net.pause(),
                "quit" => net.quit(),
                "resume" => net.resume(),
                "raise stake" => net.raise_stake(),
                "join" => net.join(b"RTX 4090", 24, muster_model::world::ids(vec![1])).map(drop),
                "report" => net.report_downloaded(muster_model::world::ids(vec![99])),
                "remove" => net.report_removed(muster_model::world::ids(vec![1])),
                "submit" => net.submit(TaskId(running), [1; 32]),
                "report error" => net.report_error(TaskId(running), 1),
                _ => net.poke(NodeId(2)),
            }?;
            net.close();
            Ok(())
        });
        out.1 = played.err().map(Refusal::into_bytes);
        let mut net = Network::open(m).unwrap();
        net.dispatch(16).unwrap();
        let runs = |id: u64, n: u32| net.node_view(NodeId(n)).is_ok_and(|v| v.task == id && matches!(v.status, 2..=4));
        out.0 = ids.iter().map(|&id| (1..=9).find(|&n| runs(id, n))).collect();
        net.close();
        Err(())
    });
    assert!(undone.is_err());
    out
}

/// With drawDelay 1 and more due tasks than any call serves, whoever calls first in a block knows the hash of those that
/// it leaves. Nothing he can call moves them: it is refused, or what it frees waits until they are drawn.
#[test]
fn a_backlog_of_due_tasks_buys_its_first_caller_nothing() {
    let mut w = world(8, 1);
    w.mem.keep_logs = false;
    w.call(who(8), 0, |n| n.pause()).unwrap();
    w.call(who(2), 0, |n| n.report_downloaded(ids(vec![1]))).unwrap();
    let (mut refused, mut tried) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..300 {
        // Node 7 gets its task by standing alone.
        for n in 1..7 {
            w.call(who(n), 0, |n| n.pause()).unwrap();
        }
        let running = w.create(50, FEE, spec(0, &[])).unwrap();
        while w.node(7).status != 2 {
            w.pass(1, 0);
            w.dispatch(1).unwrap();
        }
        for n in 1..7 {
            w.call(who(n), 0, |n| n.resume()).unwrap();
        }
        w.pass(1, 0);
        let ids: Vec<u64> = (0..11).map(|_| w.create(50, FEE, spec(0, &[])).unwrap()).collect();
        w.pass(1, 0);
        let (plain, _) = fall(&mut w, None, running, &ids);
        for what in MEDDLING {
            let (fell, refusal) = fall(&mut w, Some(what), running, &ids);
            // Whom nobody idle was left for is queued; whoever is freed later may take it from there.
            for (fell, plain) in fell.iter().zip(&plain) {
                assert!(
                    fell == plain || plain.is_none() && matches!(fell, Some(7..=9)),
                    "{what} moved a draw: {fell:?} for {plain:?}"
                );
            }
            *tried.entry(what).or_insert(0) += 1;
            if let Some(bytes) = refusal {
                let due = IMuster::IMusterErrors::abi_decode_validate(&bytes).unwrap();
                assert!(matches!(due, IMuster::IMusterErrors::DrawsDue(ref d) if d.pending == 3), "{what}: {due:?}");
                *refused.entry(what).or_insert(0) += 1;
            }
        }
        loop {
            w.dispatch(16).unwrap();
            w.pass(1, 0);
            let busy: Vec<u32> = (1..=7u32).filter(|&n| w.node(n).status == 2).collect();
            if busy.is_empty() && w.view(|n| n.overview()).pending == 0 {
                break;
            }
            for n in busy {
                let id = w.node(n).task;
                submit(&mut w, n as u64, id);
            }
        }
    }
    // Refused every time; the others went through every time and moved nothing.
    for what in MEDDLING {
        let refusals: u32 = refused.get(what).copied().unwrap_or(0);
        proof("backlog", &[("call", &what), ("tried", &tried[what]), ("refused", &refusals)]);
    }
    let changes_candidates = ["pause", "quit", "resume", "raise stake", "join", "report", "remove", "poke"];
    assert_eq!(refused, changes_candidates.into_iter().map(|what| (what, 300)).collect());
}

/// A node whose task ends while draws are due is held back, whatever it was about to do, and is back at work (or
/// gone) as soon as the next calls have made the draws.
#[test]
fn a_node_freed_while_draws_are_due_is_held_back_until_they_are_made() {
    for leaving in [false, true] {
        let mut w = world(8, 1);
        let first: Vec<u64> = (0..3).map(|_| w.create(50, FEE, spec(0, &[])).unwrap()).collect();
        w.drain();
        let busy = (1..=8u32).find(|&n| w.node(n).task == first[0] && w.node(n).status == 2).unwrap();
        if leaving {
            w.call(who(busy as u64), 0, |n| n.quit()).unwrap();
        }
        for _ in 0..4 {
            w.create(50, FEE, spec(0, &[])).unwrap();
        }
        w.pass(1, 0);
        submit(&mut w, busy as u64, first[0]);
        assert_eq!(w.node(busy).status, if leaving { 4 } else { 1 });
        let again = w.call(who(busy as u64), 0, |n| n.submit(TaskId(first[0]), [1; 32]));
        assert_eq!(named(again), "TaskNotRunning", "what has ended cannot be ended again");
        let at_work = |w: &mut World| w.view(|n| n.weight_of(NodeId(busy), &spec(0, &[])).unwrap().eligible);
        assert!(!at_work(&mut w));
        w.dispatch(16).unwrap();
        assert_eq!(w.node(busy).status, u8::from(!leaving));
        assert_eq!(at_work(&mut w), !leaving);
    }
}

/// 1: The draw was seeded with a block's number and the creator's own words, so creators could grind it to get a node. Here
/// the seed is a block's hash and the contract's own task id: nothing the creator writes into a task moves it.
#[test]
fn w01_the_creator_has_nothing_to_grind() {
    let mut w = world(20, 1);
    let hash = [5; 32];
    let node = foretell(&mut w, hash, 9, &spec(0, &[]));
    for i in 0..50u8 {
        let other = IMuster::TaskSpec { inputDigest: [i; 32].into(), units: 1 + i as u32, ..spec(0, &[]) };
        assert_eq!(foretell(&mut w, hash, 9, &other), node);
    }
    let by_hash: BTreeSet<_> = (0..100).filter_map(|i| foretell(&mut w, [i; 32], 9, &spec(0, &[]))).collect();
    let by_id: BTreeSet<_> = (0..100).filter_map(|i| foretell(&mut w, hash, i, &spec(0, &[]))).collect();
    assert!(by_hash.len() >= 15 && by_id.len() >= 15, "hash and id both count");
}

/// 2: The random generator was a contract of its own with public functions, which anyone could call to move its state
/// before a draw. Here there is no generator with a state: a draw depends on its hash and id alone.
#[test]
fn w02_randomness_has_no_state_and_no_selector() {
    nothing_called(&["rand", "seed", "choice", "nonce"]);
    let mut w = world(20, 1);
    let before = foretell(&mut w, [3; 32], 4, &spec(0, &[]));
    for _ in 0..20 {
        foretell(&mut w, [8; 32], 5, &spec(0, &[]));
        let _ = w.call(who(99), 0, |n| n.poke(NodeId(1)));
        w.pass(1, 0);
    }
    assert_eq!(foretell(&mut w, [3; 32], 4, &spec(0, &[])), before);
}

/// 3: Creators could grind their commitment until the task was not sampled for validation, which saved them two tasks.
/// Here the creator commits to nothing: the node does, and the hash of a block at least two later samples; and a policy that is not
/// there is refused. The fast caller, below, tries the draw itself.
#[test]
fn w03_no_commitment_decides_anything() {
    nothing_called(&["vrf", "disclose", "sample"]);
    let mut w = world(1, 1);
    for policy in 4..=255 {
        refused!(w.create(5, FEE, IMuster::TaskSpec { redundancy: policy, ..spec(0, &[]) }), RedundancyUnsupported(policy));
    }
    // Whatever the node commits to, block and task decide.
    w.send(OWNER, 0, IMuster::listGpuGroupCall { group: 1 << 16 | 24, listed: true }).unwrap();
    w.set("sampleBps", 5_000);
    let mut sampled = 0;
    for salt in 0..40 {
        let id = w.create(5, FEE, IMuster::TaskSpec { redundancy: 1, gpu: 1 << 16 | 24, ..spec(0, &[]) }).unwrap();
        w.pass(1, 0);
        w.dispatch(1).unwrap();
        w.send(who(1), 0, IMuster::commitCall { id, commitment: [salt; 32].into() }).unwrap();
        w.pass(5, 601);
        let hash = w.mem.block_hash(w.mem.block - 3).unwrap();
        let lot = w.view(|net| Rng::new(net.host, hash, TaskId(id)).below(net.host, 10_000)) < 5_000;
        assert_eq!(w.send(who(9), 0, IMuster::validateCall { id, node: 1 }).is_ok(), lot);
        if lot {
            // Nobody is there to validate it.
            sampled += 1;
            w.pass(3, 0);
            w.dispatch(1).unwrap();
            w.pass(1, 7_201);
            w.send(who(9), 0, IMuster::settleCall { id, group: 1 }).unwrap();
        } else {
            w.send(who(9), 0, IMuster::expireCall { node: 1, id }).unwrap();
        }
        w.pass(1, 90_000);
    }
    assert!((8..32).contains(&sampled), "{sampled} of 40");
}

/// 4: A task could be created over an existing one, and its fee was stuck. Here ids are the contract's and count up.
#[test]
fn w04_no_task_overwrites_another() {
    let mut w = world(1, 0);
    w.set("alphaMilli", 100_000);
    let ids: Vec<u64> = (0..30).map(|i| w.create(5 + i % 3, FEE + i as u128, spec(0, &[])).unwrap()).collect();
    assert_eq!(ids, (1..=30).collect::<Vec<_>>());
    let (_, tasks) = w.view(|n| n.queued_tasks(QueueId(0), 0, 99)).unwrap();
    assert_eq!(tasks.len(), 29);
    assert!(tasks.iter().all(|t| t.fee == FEE + t.id as u128 - 1 && t.creator.into_array() == who(5 + (t.id - 1) % 3)));
}

/// 5: The creator and one node, named twice, could have the honest third node slashed. Here members are
/// drawn by a hash and are never the same, and nobody names them; only two equal answers slash.
#[test]
fn w05_nobody_can_have_an_honest_node_slashed() {
    nothing_called(&["slash"]);
    let mut w = world(2, 0);
    let id = w.create(5, FEE, spec(0, &[])).unwrap();
    let ran = (1..=2u32).find(|&n| w.node(n).status == 2).unwrap();
    w.call(who(ran as u64), 0, |n| n.report_error(TaskId(id), 1)).unwrap();
    assert!((1..=2).all(|n| w.node(n).stake == 400 * TOKEN && w.node(n).status == 1));
}

/// 6: A group with an aborted member could never be validated, so its other members waited and went unpaid. Here a task
/// has one node and ends by itself, and a group is judged without whoever let its deadline pass.
#[test]
fn w06_a_task_never_waits_for_another_member() {
    let mut w = world(3, 0);
    let ids: Vec<u64> = (0..3).map(|_| w.create(5, FEE, spec(0, &[])).unwrap()).collect();
    w.pass(1, 121);
    let node = |w: &mut World, id| (1..=3u32).find(|&n| w.node(n).task == id).unwrap();
    let (late, others) = (node(&mut w, ids[0]), [node(&mut w, ids[1]), node(&mut w, ids[2])]);
    w.call(who(9), 0, |n| n.expire(NodeId(late), TaskId(ids[0]))).unwrap();
    for (n, id) in others.into_iter().zip(&ids[1..]) {
        w.call(who(9), 0, |net| net.expire(NodeId(n), TaskId(*id))).unwrap();
    }
    assert_eq!(w.account(5).credit + w.account(9).credit, 3 * FEE);
}

/// 7: The order of the arguments decided the ranks, so the caller chose who earned most. Here no function takes a rank
/// or a score from its caller.
#[test]
fn w07_no_caller_decides_a_rank() {
    nothing_called(&["score", "rank", "qos", "record"]);
}

/// 8: The fee of a task that was aborted in the queue, or evicted from it, was not given back. Here every way in which
/// a task ends unrun gives the fee back, less the start fee where that is due.
#[test]
fn w08_every_end_refunds() {
    let mut w = world(1, 0);
    w.create(4, FEE, spec(0, &[])).unwrap();
    let cancelled = w.create(5, FEE, spec(0, &[])).unwrap();
    w.create(6, FEE, spec(0, &[])).unwrap();
    w.create(7, FEE, spec(0, &[])).unwrap();
    assert_eq!(w.account(7).credit, FEE, "evicted: all of it");
    let ticket = w.ticket(cancelled);
    w.call(who(5), 0, |n| n.cancel(TaskId(cancelled), Ticket(ticket))).unwrap();
    assert_eq!(w.account(5).credit, FEE / 100 * 98);
    w.call(who(1), 0, |n| n.report_error(TaskId(1), 0)).unwrap();
    assert_eq!(w.account(4).credit, FEE / 100 * 98, "error: less the start fee");
    w.pass(1, 60);
    w.call(who(9), 0, |n| n.poke(NodeId(1))).unwrap();
    w.pass(1, 121);
    w.call(who(9), 0, |n| n.expire(NodeId(1), TaskId(3))).unwrap();
    assert_eq!((w.account(6).credit, w.account(9).credit), (FEE / 100 * 98, FEE / 100 * 2));
    let treasury = w.view(|n| n.overview()).treasuryBalance;
    assert_eq!(treasury + [4, 5, 6, 7, 9].map(|n| w.account(n).credit).iter().sum::<u128>() + 400 * TOKEN, w.paid_in);
}

/// 9: A full queue refused every new task, or let a nearly free one evict a good one. Here a full queue takes a better
/// task and turns a worse one away, refunded, without failing.
#[test]
fn w09_a_full_queue_neither_reverts_nor_can_be_flushed_cheaply() {
    let mut w = world(1, 0);
    w.create(5, FEE, spec(0, &[])).unwrap();
    let good: Vec<u64> = (0..2).map(|_| w.create(5, FEE, spec(0, &[])).unwrap()).collect();
    for _ in 0..50 {
        w.create(6, 60, spec(0, &[])).unwrap();
    }
    assert_eq!(w.account(6).credit, 3_000);
    assert_eq!(w.view(|n| n.queued_tasks(QueueId(0), 0, 9)).unwrap().1.iter().map(|t| t.id).collect::<Vec<_>>(), good);
    let better = w.create(6, FEE + FEE / 1_000_000, spec(0, &[])).unwrap();
    assert!(w.view(|n| n.queued_tasks(QueueId(0), 0, 9)).unwrap().1.iter().any(|t| t.id == better));
}

/// 10: The creator stated a task's size, so a small lie bought priority, and 0 divided by zero. Here the estimate is
/// the contract's; the one that a creator states (fine-tuning) buys no more time than it says.
#[test]
fn w10_a_stated_size_gives_priority_only_with_its_deadline() {
    let mut w = world(1, 0);
    refused!(w.create(5, FEE, IMuster::TaskSpec { kind: 2, units: 0, ..spec(0, &[]) }), BadUnits(0u32, 7_200u32));
    for (kind, a, b) in [(0, 1, 9), (2, 100, 3_000)] {
        let (a, b) = (w.ask(estimateCall { kind, units: a }), w.ask(estimateCall { kind, units: b }));
        assert!(a.estimated < b.estimated && a.timeLimit < b.timeLimit && a.leastFee < b.leastFee);
        assert_eq!((a.timeLimit, b.timeLimit), (2 * a.estimated, 2 * b.estimated));
    }
    refused!(w.create(5, 0, spec(0, &[])), FeeTooLow(word(0), 60u64));
}

/// 11: The best-paid task blocked all others when the freed node could not run it. Here a task that a node cannot run
/// stands in no node's way, however much it pays.
#[test]
fn w11_nothing_blocks_the_task_behind_it() {
    let mut w = world(1, 0);
    w.set("alphaMilli", 100_000);
    // Somebody could run them, but takes no tasks now.
    w.join(2, "large", 60, &[], 400).unwrap();
    w.call(who(2), 0, |n| n.pause()).unwrap();
    w.create(5, FEE, spec(0, &[])).unwrap();
    for vram in 25..60 {
        w.create(5, 1_000 * FEE, spec(vram, &[])).unwrap();
    }
    let fits = w.create(5, 60, spec(24, &[77])).unwrap();
    submit(&mut w, 1, 1);
    assert_eq!(w.node(1).task, fits);
}

/// 12: Loops over nodes, groups, tasks and models grew until ending a task no longer fitted a block. Here storage
/// accesses do not grow with nodes, models, groups or queue, nor with what others declare.
#[test]
fn w12_no_call_costs_more_in_a_large_network() {
    let cost = |nodes: u64, sizes: u64, queued: u64, declared: u64| -> [u64; 3] {
        let mut w = World::new();
        w.set("drawDelay", 0);
        w.set("alphaMilli", 1_000_000);
        let all: Vec<u64> = (1..=declared).collect();
        for n in 1..=nodes {
            let vram = 24 + (n % sizes) as u16;
            let (now, later) = all.split_at(all.len().min(CALL_MODELS));
            w.join(n, &format!("card {}", n % 7), vram, now, 400 + n as u128 % 900).unwrap();
            for models in later.chunks(CALL_MODELS) {
                w.call(who(n), 0, |net| net.report_downloaded(ids(models.to_vec()))).unwrap();
            }
        }
        // One that could run the tasks queued below, but takes none.
        w.join(nodes + 1, "large", 908, &[], 400).unwrap();
        w.call(who(nodes + 1), 0, |n| n.pause()).unwrap();
        let count = |w: &mut World, f: &mut dyn FnMut(&mut World)| {
            let before = u64::from(w.mem.reads());
            f(w);
            let after = u64::from(w.mem.reads());
            after - before
        };
        let mut most = [0; 3];
        for _ in 0..20 {
            w.pass(1, 1);
            let creating = count(&mut w, &mut |w| {
                w.create(nodes + 5, FEE, spec(24, &[1])).unwrap();
            });
            most[0] = most[0].max(creating);
        }
        for i in 0..queued {
            w.create(nodes + 5, FEE + i as u128, spec(900 + (i % 9) as u16, &[])).unwrap();
        }
        for _ in 0..5 {
            let creating = count(&mut w, &mut |w| {
                w.create(nodes + 5, FEE, spec(901, &[])).unwrap();
            });
            most[1] = most[1].max(creating);
        }
        let busy: Vec<u32> = (1..=nodes as u32).filter(|&n| w.node(n).status == 2).collect();
        for n in busy {
            let id = w.node(n).task;
            most[2] = most[2].max(count(&mut w, &mut |w| submit(w, n as u64, id)));
        }
        most
    };
    let (small, large) = (cost(40, 1, 3, 4), cost(3_000, 256, 2_000, 32));
    for (call, small, large) in [
        ("createTask, drawn at once", small[0], large[0]),
        ("createTask, queued", small[1], large[1]),
        ("submit", small[2], large[2]),
    ] {
        proof("words", &[("call", &call), ("small", &small), ("large", &large)]);
    }
    for (s, l) in small.iter().zip(large) {
        assert!(l <= 400 && l <= 3 * s + 60, "{small:?} {large:?}");
    }
}

/// 13: The check of a task's state before an abort let every state pass. Here a task ends once, and only as its state
/// allows.
#[test]
fn w13_an_ended_task_cannot_be_ended_again() {
    let mut w = world(1, 0);
    let id = w.create(5, FEE, spec(0, &[])).unwrap();
    refused!(w.call(who(5), 0, |n| n.expire(NodeId(1), TaskId(id))), DeadlineNotPassed(id, 1_700_000_120u64));
    submit(&mut w, 1, id);
    w.pass(1, 10_000);
    refused!(w.call(who(5), 0, |n| n.expire(NodeId(1), TaskId(id))), TaskNotRunning(id, 1u32));
    refused!(w.call(who(1), 0, |n| n.submit(TaskId(id), [0; 32])), TaskNotRunning(id, 1u32));
    refused!(w.call(who(1), 0, |n| n.report_error(TaskId(id), 0)), TaskNotRunning(id, 1u32));
    refused!(w.call(who(5), 0, |n| n.cancel(TaskId(id), Ticket(0))), TaskNotQueued(id, 0u64));
    assert_eq!((w.account(1).credit, w.account(5).credit), (FEE, 0));
}

/// 14: Fees were sent while state changed, so a recipient that refused them blocked the end of a task. Here every end
/// only adds credit, which its owner fetches.
#[test]
fn w14_no_recipient_can_block_an_end() {
    let mut w = world(1, 0);
    let id = w.create(5, FEE, spec(0, &[])).unwrap();
    submit(&mut w, 1, id);
    assert_eq!((w.mem.paid, w.account(1).credit), (0, FEE));
    assert_eq!(w.withdraw(1).unwrap(), FEE);
    refused!(w.withdraw(1), NothingToWithdraw(who(1)));
}

/// 15: Anyone could call the function that gives an available node its next task. Here calls that anyone may
/// make do nothing that was not due.
#[test]
fn w15_poke_by_anyone_starts_nothing_twice() {
    nothing_called(&["callback"]);
    let mut w = world(1, 0);
    refused!(w.call(who(77), 0, |n| n.poke(NodeId(1))), NothingToPoke(1u32));
    w.create(5, FEE, spec(0, &[])).unwrap();
    w.create(5, FEE, spec(0, &[])).unwrap();
    refused!(w.call(who(77), 0, |n| n.poke(NodeId(1))), WrongStatus(1u32, 2u8));
    assert_eq!((w.node(1).task, w.view(|n| n.overview()).queued), (1, 1));
}

/// 16: A queued task got the first free nodes in the order of their places, which could be chosen by pausing and
/// resuming. Here after any pausing and resuming every equal node comes equally often.
#[test]
fn w16_places_in_lists_do_not_matter() {
    let mut w = world(9, 0);
    for n in [3, 1, 9, 3, 3] {
        w.call(who(n), 0, |n| n.pause()).unwrap();
        w.call(who(n), 0, |n| n.resume()).unwrap();
    }
    let mut seen = [0f64; 10];
    let mut draws = 0.0;
    for i in 0..20_000u64 {
        let hash = w.mem.keccak(&i.to_be_bytes());
        if let Some(n) = foretell(&mut w, hash, i, &spec(0, &[])) {
            seen[n as usize] += 1.0;
            draws += 1.0;
        }
    }
    let chi: f64 = seen[1..].iter().map(|o| (o - draws / 9.0).powi(2) / (draws / 9.0)).sum();
    assert!(chi < 26.12, "chi-square {chi} at 8 degrees");
}

/// 17: Two nodes that reported an error were paid, and had the honest third slashed. Here errors
/// are committed to like answers, agree with nobody and earn nothing.
#[test]
fn w17_an_error_report_is_not_paid() {
    nothing_called(&["disclose"]);
    let mut w = world(1, 0);
    let id = w.create(5, FEE, spec(0, &[])).unwrap();
    w.call(who(1), 0, |n| n.report_error(TaskId(id), 9)).unwrap();
    assert_eq!((w.account(1).credit, w.account(5).credit), (0, FEE / 100 * 98));
}

/// 18: A subtraction of blocks underflowed on a young chain. Here nothing underflows, from the very first block and
/// second on.
#[test]
fn w18_a_young_chain_works() {
    for delay in [0, 1, 64] {
        let mut w = World::new();
        w.set("drawDelay", delay);
        (w.mem.block, w.mem.now) = (0, 1);
        w.join(1, "A", 24, &[], 400).unwrap();
        let id = w.create(5, FEE, spec(0, &[])).unwrap();
        for _ in 0..=70 {
            w.pass(1, 0);
            w.dispatch(4).unwrap();
        }
        assert_eq!((w.node(1).task, w.node(1).status), (id, 2), "delay {delay}");
        submit(&mut w, 1, id);
    }
}

/// 19: The owner received slashed stakes, and a relay was trusted with every task. Here the owner has no power over
/// stakes, fees and tasks, parameters stay in bounds, and a new treasury takes two days.
#[test]
fn w19_the_owner_is_no_party_to_any_task() {
    nothing_called(&["slash", "force", "seize", "upload", "relay"]);
    let mut w = world(1, 0);
    let id = w.create(5, FEE, spec(0, &[])).unwrap();
    let queued = w.create(5, FEE, spec(0, &[])).unwrap();
    let ticket = w.ticket(queued);
    refused!(w.call(OWNER, 0, |n| n.cancel(TaskId(queued), Ticket(ticket))), NotTheCreator(queued, OWNER));
    refused!(w.call(OWNER, 0, |n| n.submit(TaskId(id), [0; 32])), NotAnOperator(OWNER));
    refused!(w.send(OWNER, 0, IMuster::withdrawCall { to: OWNER.into() }), NothingToWithdraw(OWNER));
    // What was frozen at creation no longer follows the parameters.
    w.set("startFeeBps", 5_000);
    w.set("limitMin", 3_600);
    w.pass(1, 121);
    w.call(who(9), 0, |n| n.expire(NodeId(1), TaskId(id))).unwrap();
    assert_eq!(w.account(9).credit, FEE / 100 * 2);
    assert!(
        (0..PARAMETERS.len() as u8).all(|number| admin::parameter(&w.mem, number).is_ok_and(|(_, least, most)| least <= most))
    );
    w.raw(OWNER, 0, |m| admin::propose_treasury(m, OWNER)).unwrap();
    assert_eq!(named(w.raw(OWNER, 0, admin::accept_treasury)), "TooEarly");
}

/// 20: A node that was kicked out got its stake back and could join again at once with a clean record. Here a node
/// that was kicked out does not come back, and quitting in time does not clear a bad record.
#[test]
fn w20_a_bad_record_cannot_be_shed() {
    let mut w = world(2, 0);
    let score = |w: &mut World, times: u32| {
        w.call(who(9), 0, |net| {
            (0..times).for_each(|_| net.record_score(NodeId(1), 0));
            Ok(())
        })
        .unwrap();
    };
    score(&mut w, 49);
    w.call(who(1), 0, |n| n.quit()).unwrap();
    w.join(1, "B", 24, &[], 400).unwrap();
    assert_eq!((w.node(1).scores, w.node(1).longTerm), (49, 0));
    score(&mut w, 1);
    assert_eq!(w.node(1).status, 0);
    for _ in 0..3 {
        refused!(w.join(1, "A", 24, &[], 400), KickedOut(who(1)));
        w.pass(1, 1_000_000);
    }
    assert_eq!(w.withdraw(1).unwrap(), 800 * TOKEN, "the stake comes back all the same");
}

/// 21: Nodes declared GPU, VRAM and models that nobody checked. Here a node with a false declaration fails the
/// tasks that it gets by it, and is soon left out.
#[test]
fn w21_a_false_declaration_costs_its_author() {
    let mut w = World::new();
    w.set("drawDelay", 0);
    w.set("limitMin", 1);
    w.join(1, "claims to be large", 960, &[1, 2, 3], 400).unwrap();
    for _ in 0..2 {
        let id = w.create(5, FEE, IMuster::TaskSpec { kind: 2, ..spec(900, &[1]) }).unwrap();
        while w.node(1).status == 1 {
            w.pass(1, 0);
            w.dispatch(1).unwrap();
        }
        w.pass(1, 3);
        w.call(who(9), 0, |n| n.expire(NodeId(1), TaskId(id))).unwrap();
    }
    assert!(w.node(1).excluded);
    assert_eq!(w.account(1).credit, 0);
    w.join(2, "large", 960, &[1], 400).unwrap();
    let id = w.create(5, FEE, spec(900, &[1])).unwrap();
    assert_eq!(w.node(2).task, id);
    assert!(w.events().iter().any(|e| matches!(e, E::NodeExcluded(x) if x.node == 1)));
}
