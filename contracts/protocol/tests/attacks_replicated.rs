//! Attacks on tasks that take three nodes, that an audit found: each as it was made, with what is left of it and what it costs now.
//! Then random calls, after each of which everything has to be in its one place.

use std::collections::{BTreeMap, HashMap};

use alloy_primitives::B256;
use muster_core::id::{GpuGroup, NodeId, TaskId};
use muster_core::record::{Order, Queue, Size, CALL_MODELS};
use muster_core::wad::WAD;
use muster_model::meter::{metered, priced, MOST_GAS};
use muster_model::refused;
use muster_model::validated::*;
use muster_model::world::*;
use muster_protocol::host::{offset, Host};
use muster_protocol::layout::{entry, slot, GPU_COUNTS, QUEUE};
use muster_protocol::store::node::NodeHandle;
use muster_protocol::store::registry;
use muster_protocol::IMuster::{self, IMusterEvents as E, *};
use muster_protocol::{Network, Result};

const FEE: u128 = 12 * TOKEN;

/// A `gpu` with strange bits in its VRAM was another name of the list of all active nodes: such a task started on a busy node, whose
/// own task's fee was lost with it, for the least fee there is. Now there is no such GPU, for tasks, for the owner's list, or to look at.
#[test]
fn a_gpu_number_with_strange_bits_is_no_other_name() {
    let mut w = network(3);
    let tasks = busy(&mut w, 3);
    for bits in [0x8000, 0x4000, 0x2000, 0x1000, 0x0400, 0xf000, 0xffe0] {
        for odd in [CARD | bits, CARD & !0xffff | bits] {
            for redundancy in 0..=2 {
                let task = IMuster::TaskSpec { gpu: odd, redundancy, ..spec(0, &[]) };
                refused!(w.create(CREATOR, FEE, task), GpuUnknown(odd));
            }
            for listed in [true, false] {
                refused!(w.send(OWNER, 0, listGpuGroupCall { group: odd, listed }), GpuUnknown(odd));
            }
            for class in 0..10 {
                assert_eq!(w.ask(idleNodesCall { group: odd, class, from: 0, count: 256 }).total, 0);
                assert_eq!(w.ask(activeNodesCall { group: odd, class, from: 0, count: 256 }).total, 0);
            }
        }
    }
    let there: u32 = (0..10).map(|class| w.ask(activeNodesCall { group: CARD, class, from: 0, count: 256 }).total).sum();
    assert_eq!(there, 3, "the card itself has them");
    w.pass(1, 0);
    w.dispatch(16).unwrap();
    for (task, node) in tasks {
        assert_eq!(task_of(&mut w, node), task);
    }
    check_money(&mut w);
}

/// While no node was idle, two colluding ones had whom they liked as their third: they gave the same false answer to a task of their own
/// of the highest fee, which came back whole, and the honest third lost a third of its stake and its place in the network. Now a group
/// is scored only if it was drawn among enough candidates: nobody loses anything, and what they win is that the honest one is not paid.
#[test]
fn two_nodes_have_nobody_slashed_while_no_node_is_idle() {
    // The highest fee that the least stake covers.
    let fee = 400 * TOKEN / 60 * 3;
    for i in 0..7 {
        let mut w = network(9);
        // Nodes 1 and 2 are the attacker's and paused; seven honest ones are busy, with the least work there is if he pays it.
        for n in [1, 2] {
            w.send(who(n), 0, pauseCall {}).unwrap();
        }
        let (task, victim) = busy(&mut w, 7)[i];
        let before = w.node(victim);
        let id = created(&mut w, fee, alike(0));
        for n in [1, 2] {
            w.send(who(n), 0, resumeCall {}).unwrap();
        }
        submit(&mut w, (task, victim));
        w.pass(1, 1);
        w.dispatch(1).unwrap();
        let (place, mut members) = group_of(&mut w, id).expect("formed");
        members.sort_unstable();
        assert_eq!(members, [1, 2, victim], "they still choose when to be free");
        assert!(!w.ask(groupCall { place }).scored);
        for &n in &members {
            commit(&mut w, id, n, ANSWER, value(if n == victim { 1 } else { 66 })).unwrap();
            w.pass(1, 1);
        }
        w.events();
        for &n in &members {
            reveal(&mut w, id, place, n, ANSWER, value(if n == victim { 1 } else { 66 })).unwrap();
        }
        let events = w.events();
        assert!(events.iter().any(|e| matches!(e, E::GroupSettled(_))), "judged");
        assert!(!events.iter().any(|e| matches!(e, E::NodeSlashed(_) | E::ScoreRecorded(_))));
        let after = w.node(victim);
        assert_eq!((after.status, after.stake, after.reliability), (1, before.stake, before.reliability));
        assert_eq!((after.scores, after.longTerm), (before.scores, before.longTerm));
        // Its single task was paid, this is not; the fee is theirs again.
        assert_eq!(w.account(victim.into()).credit, TOKEN);
        assert_eq!(w.account(1).credit + w.account(2).credit, fee);
        check_money(&mut w);
    }
    priced(
        "an honest node slashed by two false answers",
        "two nodes that are free when no other is",
        "nothing slashed; the honest one is not paid, and the answer is theirs",
    );
}

/// Three nodes of one operator scored and boosted each other with his own tasks, whose fees came back whole: fifty made Q_long 1. Now
/// groups of so few candidates score nobody, however often.
#[test]
fn three_nodes_score_themselves_no_more() {
    let mut w = network(9);
    for n in [1, 2, 3] {
        w.send(who(n), 0, pauseCall {}).unwrap();
    }
    busy(&mut w, 6);
    let untouched = w.node(4);
    let mut formed = 0;
    for _ in 0..50 {
        let id = created(&mut w, 180, alike(0));
        for n in [1, 2, 3] {
            w.send(who(n), 0, resumeCall {}).unwrap();
        }
        w.pass(1, 1);
        w.dispatch(1).unwrap();
        if let Some((place, _)) = group_of(&mut w, id) {
            formed += 1;
            for n in [1, 2, 3] {
                commit(&mut w, id, n, ANSWER, value(66)).unwrap();
                w.pass(1, 1);
            }
            for n in [1, 2, 3] {
                reveal(&mut w, id, place, n, ANSWER, value(66)).unwrap();
            }
        }
        for n in [1, 2, 3] {
            w.send(who(n), 0, pauseCall {}).unwrap();
        }
        w.pass(1, 700);
    }
    assert!(formed >= 40, "{formed}");
    for n in [1, 2, 3] {
        assert_eq!((w.node(n).scores, w.node(n).longTerm), (0, untouched.longTerm));
    }
    priced(
        "scores by one's own tasks for three",
        "three nodes of one's own, no other idle",
        &format!("{formed} groups, no score"),
    );
}

/// Two nodes of two other listed GPU groups kept a queue's two places for waiting nodes, and a task for equal answers and any GPU never
/// got three: nothing in 8,000 seconds, where it took 30. Now nodes of each GPU group wait for themselves, and it takes as long as ever.
#[test]
fn two_nodes_of_other_cards_keep_no_task_from_its_three() {
    let mut took = Vec::new();
    for attacked in [false, true] {
        let mut w = network(4);
        for (n, name) in [(5, "odd"), (6, "odder")] {
            w.join(n, name, 24, &[], 400).unwrap();
            let group = w.node(n as u32).gpu;
            w.send(OWNER, 0, listGpuGroupCall { group, listed: true }).unwrap();
            w.send(who(n), 0, pauseCall {}).unwrap();
        }
        let mut tasks = busy(&mut w, 4);
        let id = created(&mut w, FEE, alike(0));
        if attacked {
            for n in [5, 6] {
                w.send(who(n), 0, resumeCall {}).unwrap();
            }
            assert_eq!(nodes_with(&mut w, 2), [5, 6]);
        }
        let began = w.mem.now;
        for i in (0..4).cycle().take(800) {
            if attacked {
                for n in [5, 6] {
                    // Out and in again before its minute is over, which costs nothing.
                    if w.node(n as u32).status == 1 {
                        w.send(who(n), 0, pauseCall {}).unwrap();
                    }
                    let _ = w.send(who(n), 0, resumeCall {});
                }
            }
            created(&mut w, TOKEN, spec(0, &[]));
            let (task, node) = tasks[i];
            if task > 0 {
                submit(&mut w, (task, node));
            }
            w.pass(1, 10);
            w.dispatch(16).unwrap();
            if let Some((_, members)) = group_of(&mut w, id) {
                assert!(members.iter().all(|&m| m <= 4));
                break;
            }
            tasks[i] = (task_of(&mut w, node), node);
        }
        assert!(group_of(&mut w, id).is_some(), "{} s", w.mem.now - began);
        took.push(w.mem.now - began);
    }
    assert_eq!(took[0], took[1], "as if they were not there");
}

/// Whoever had the third node of a card, paused, made the other two wait a minute after every task: half of their time, for the start fee
/// of one task in six hours. Now a node that has waited in vain does not wait again for nine times as long: 648 tasks of 720 are done, for
/// 0.06 of a fee, and tasks of other scopes and grades take no more of them.
#[test]
fn nodes_wait_in_vain_a_tenth_of_their_time_at_most() {
    let (single, hours) = (TOKEN, 6);
    let (mut done, mut paid) = (Vec::new(), 0);
    // One task for three that can never begin, or one for each of the grades and scopes there are.
    for attacks in [0, 1, 4] {
        let mut w = network(3);
        // What is above the queue's capacity would be evicted by the call that creates it.
        w.set("alphaMilli", 10_000);
        w.send(who(3), 0, pauseCall {}).unwrap();
        let mut count = 0;
        busy(&mut w, 2);
        let begun = w.paid_in;
        // Worth a hundredth more than what is there for one.
        let all = [IMuster::TaskSpec { gpu: CARD, ..alike(0) }, alike(0), IMuster::TaskSpec { gpu: CARD, ..image(0) }, image(0)];
        let ids: Vec<u64> = all[..attacks]
            .iter()
            .map(|task| {
                let least = w.ask(estimateCall { kind: task.kind, units: 1 }).estimated;
                let one = w.ask(estimateCall { kind: 1, units: 1 }).estimated;
                let fee = 3 * (single + single / 100) * u128::from(least) / u128::from(one);
                w.create(CREATOR, fee, task.clone()).unwrap()
            })
            .collect();
        let fees = w.paid_in - begun;
        for _ in 0..4 {
            w.create(90, single, spec(0, &[])).unwrap();
        }
        let start = w.mem.now;
        while w.mem.now < start + hours * 3600 {
            w.pass(2, 10);
            w.dispatch(16).unwrap();
            while w.ask(overviewCall {}).queued + w.ask(overviewCall {}).pending < 4 + attacks as u32 {
                w.create(90, single, spec(0, &[])).unwrap();
            }
            for n in [1, 2] {
                let view = w.ask(runningTaskCall { number: n });
                // It takes a minute for each.
                if view.status == 3 && w.mem.now + 60 >= view.deadline {
                    submit(&mut w, (view.id, n));
                    count += 1;
                }
            }
        }
        for &id in &ids {
            let ticket = w.ticket(id);
            w.send(who(CREATOR), 0, cancelCall { id, ticket }).unwrap();
        }
        paid = fees - w.account(CREATOR).credit;
        done.push(count);
    }
    println!("tasks in {hours} hours: {done:?}, paid {} hundredths of a fee", paid * 100 / single);
    let lost = |i: usize| format!("{:.1}", 100.0 * (1.0 - f64::from(done[i]) / f64::from(done[0])));
    priced(
        "two nodes kept waiting for a third that is paused",
        &format!(
            "one such task, or four, for {hours} hours; {:.2} single fees as start fees of the four",
            paid as f64 / single as f64
        ),
        &format!("{} % and {} % of their work lost", lost(1), lost(2)),
    );
    for attacked in [done[1], done[2]] {
        assert!(attacked < done[0], "{done:?}");
        assert!(attacked * 100 >= done[0] * 89, "{done:?}");
    }
}

/// A node that waited for a group was held for hours: again and again three were reserved for it, one of them the attacker's, who paused
/// it before the draw, and the node waited anew, past work that it would have taken. All was refunded: 26,000 s for two deposits and eight
/// calls a minute. Now such a wait counts as one in vain, and in each of 500 rounds the node does a task.
#[test]
fn nobody_is_held_by_reservations_that_come_to_nothing() {
    let mut w = world(1, 1);
    let (x, b, a) = (1u32, 2u64, 3u64);
    w.join(b, "other", 24, &[], 400).unwrap();
    w.join(a, "own", 24, &[], 400).unwrap();
    let own = w.node(a as u32).gpu;
    for n in [a, b] {
        w.send(who(n), 0, pauseCall {}).unwrap();
    }
    let first = created(&mut w, TOKEN, spec(0, &[]));
    let task = created(&mut w, 3 * TOKEN, image(0));
    submit(&mut w, (first, x));
    assert_eq!(w.node(x).parked, 2);
    let (begin, mut held, mut done, mut reserved) = (w.mem.now, 0, 0, 0);
    for _ in 0..500 {
        // Others' single tasks that the node would take.
        while w.ask(overviewCall {}).queued < 4 {
            created(&mut w, TOKEN / 100, IMuster::TaskSpec { gpu: CARD, ..spec(0, &[]) });
        }
        let single = w.create(CREATOR, 5 * TOKEN, IMuster::TaskSpec { kind: 0, gpu: own, ..spec(0, &[]) }).unwrap();
        w.pass(1, 1);
        w.dispatch(16).unwrap();
        // Two that are there for one moment, each by calls that cost nothing.
        let _ = w.send(who(a), 0, resumeCall {});
        // As long as one that reports an error rests.
        w.pass(200, 50);
        w.dispatch(16).unwrap();
        let _ = w.send(who(a), 0, reportErrorCall { id: single, code: 1 });
        let _ = w.send(who(b), 0, resumeCall {});
        let _ = w.send(who(a), 0, pauseCall {});
        reserved += u32::from(w.node(x).parked == 3);
        w.pass(1, 1);
        w.dispatch(16).unwrap();
        let _ = w.send(who(b), 0, pauseCall {});
        w.dispatch(16).unwrap();
        let view = w.ask(runningTaskCall { number: x });
        if view.status == 3 {
            submit(&mut w, (view.id, x));
            done += 1;
        } else {
            held += 52;
        }
    }
    let seconds = w.mem.now - begin;
    assert!(w.ticket(task) > 0, "it has not begun");
    priced(
        "a node held by reservations that come to nothing",
        &format!("two nodes and some eight calls a minute for {seconds} s; {reserved} reservations"),
        &format!("held for {held} s, {done} tasks done"),
    );
    assert!(reserved > 0);
    assert!(held * 100 <= seconds * 12, "held {held} of {seconds} s");
}

/// How a node works for six hours whose freed moments are another's: two small nodes are there whenever it looks for work, with a task that
/// is worth more and takes all three, and one of them pauses before the draw. The others call every so many blocks of two seconds, and the
/// attacker is first in so many of a hundred of them. Gives tasks done, seconds reserved, and the attacker's calls.
fn kept_from_work(attacked: bool, grade: u8, every: u64, first: u64, hold: u64) -> (u32, u64, u32) {
    const HOURS: u64 = 6;
    const ATTACKER: u64 = 70;
    let mut w = world(1, 1);
    w.set("alphaMilli", 10_000);
    w.set("holdTime", hold);
    let (node, small) = (1u32, [2u64, 3]);
    for n in small {
        w.join(n, "small", 8, &[], 400).unwrap();
    }
    set_profile(&mut w, ATTACKER, Profile { least: 3, most: 3, targeting: 2, target: WAD, ..USUAL });
    let own = created_by(&mut w, CREATOR, TOKEN, IMuster::TaskSpec { gpu: CARD, ..spec(0, &[]) });
    assert_eq!(task_of(&mut w, node), own);
    let mut task = 0;
    if attacked {
        // A hundredth more for each node and second than what others pay.
        let fee = 3 * (TOKEN * 101 / 100) * 50 / 60;
        task = created_by(&mut w, ATTACKER, fee, IMuster::TaskSpec { redundancy: grade, ..image(8) });
        assert!(w.ticket(task) > 0);
    }
    let (end, mut dice) = (w.mem.now + HOURS * 3_600, Dice(5));
    let (mut done, mut reserved, mut calls) = (0, 0, 0);
    while w.mem.now < end {
        w.pass(every, 2 * every);
        if dice.below(100) >= first {
            let _ = w.send(who(node.into()), 0, pokeCall { node });
        }
        if attacked {
            for n in small {
                calls += u32::from(w.node(n as u32).status == 5 && w.send(who(n), 0, resumeCall {}).is_ok());
            }
            for _ in 0..5 {
                if small.iter().all(|&n| w.node(n as u32).parked != 1) {
                    break;
                }
                w.send(who(ATTACKER), 0, dispatchCall { count: 1 }).unwrap();
                calls += 1;
            }
        }
        // Its operator wants it back, and others have work for it.
        let _ = w.send(who(node.into()), 0, pokeCall { node });
        while w.ask(overviewCall {}).queued < 4 && w.ask(overviewCall {}).pending == 0 {
            w.create(90, TOKEN, IMuster::TaskSpec { gpu: CARD, ..spec(0, &[]) }).unwrap();
        }
        let view = w.ask(runningTaskCall { number: node });
        if view.status == 3 && w.mem.now + 60 >= view.deadline {
            submit(&mut w, (view.id, node));
            done += 1;
        }
        // The attacker is last in the block, or at any time before its end.
        if attacked && w.ask(locateCall { id: task, nodeHint: 0, ticketHint: 0 }).status == 1 {
            if let Some(n) = small.into_iter().find(|&n| w.node(n as u32).status == 1 && w.node(n as u32).parked == 0) {
                w.send(who(n), 0, pauseCall {}).unwrap();
                calls += 1;
            }
        }
        reserved += 2 * every * u64::from(w.node(node).parked == 3);
    }
    check_money(&mut w);
    (done, reserved, calls)
}

/// A freed node was called up with idle ones again and again that paused before each draw: it did one task of 360 in six hours, for gas
/// alone. Now a reservation in vain counts as waiting in vain: for nine times as long it takes what there is.
#[test]
fn a_freed_node_does_its_work_whoever_pauses_before_draws() {
    let mut rows = Vec::new();
    for (grade, every, first, hold) in
        [(2, 1, 100, 60), (3, 1, 100, 60), (3, 5, 100, 60), (3, 10, 100, 60), (3, 10, 80, 60), (3, 10, 50, 60), (2, 5, 100, 0)]
    {
        let (free, ..) = kept_from_work(false, grade, every, 100, hold);
        let (done, reserved, calls) = kept_from_work(true, grade, every, first, hold);
        println!("policy {grade}, each {every} blocks, first in {first} %: {free} tasks if nobody attacks, {done} now; reserved {reserved} s; {calls} calls");
        rows.push((free, done, reserved, calls));
    }
    let of = |row: &(u32, u32, u64, u32)| f64::from(row.1) * 100.0 / f64::from(row.0);
    let worst = rows.iter().min_by(|a, b| of(a).total_cmp(&of(b))).unwrap();
    let calls = rows.iter().map(|row| row.3).min().unwrap();
    priced(
        "a freed node called up with idle ones that pause before the draw",
        &format!("two nodes, six hours, first in every block or in half of them, {calls} calls or more"),
        &format!("{} of {} tasks done at worst ({:.1} %), {} s reserved", worst.1, worst.0, of(worst), worst.2),
    );
    assert!(rows.iter().all(|row| row.2 > 0), "it is called up: {rows:?}");
    assert!(of(worst) >= 95.0, "{rows:?}");
}

/// An answer of one image.
fn images() -> B256 {
    let mut bytes = [0; 32];
    bytes[..8].fill(5);
    bytes.into()
}

/// A varied network: 240 idle nodes of 120 cards of different VRAM, and a listed card of twelve, each with a list of 32 models of its own.
/// Gives it and the first of those.
fn varied(seed: u64) -> (World, u32) {
    let mut w = world(0, 1);
    w.set("groupFee", 0);
    for n in 1..=240u64 {
        w.join(n, "other", (1 + (n - 1) / 2 * 7) as u16, &[], 400).unwrap();
    }
    for n in 241..=252u64 {
        let list: Vec<u64> = (1..=32).map(|m| n * 100 + m).collect();
        w.join(n, "card", 900, &list[..CALL_MODELS], 400).unwrap();
        for part in list[CALL_MODELS..].chunks(CALL_MODELS) {
            w.send(who(n), 0, reportDownloadedCall { models: part.to_vec() }).unwrap();
        }
    }
    let card = w.node(241).gpu;
    w.send(OWNER, 0, listGpuGroupCall { group: card, listed: true }).unwrap();
    w.pass(seed + 1, 0);
    w.events();
    (w, 241)
}

/// What it costs to have a group judged where the draw of three is due as well: its three members are held, and each begins a queued task
/// of eight models.
fn settled_beside_a_draw(seed: u64) -> u64 {
    let (mut w, _) = varied(5000 + seed);
    w.set("openMost", 1);
    for n in 253..=264 {
        w.join(n, "third", 800, &[], 1600).unwrap();
    }
    let gpu = w.node(253).gpu;
    let judged = created(&mut w, FEE, IMuster::TaskSpec { gpu, ..image(0) });
    let Some((place, members)) = group_of(&mut w, judged) else { return 0 };
    for &n in &members {
        let hash = commitment(judged, n, 0, images(), salt(judged, n));
        w.send(who(n.into()), 0, commitCall { id: judged, commitment: hash }).unwrap();
        assert!(w.node(n).held);
    }
    for &n in &members[1..] {
        let call = revealCall { id: judged, group: place, node: n, kind: 0, value: images(), salt: salt(judged, n) };
        w.send(who(DRIVER), 0, call).unwrap();
    }
    for _ in 0..9 {
        created(&mut w, TOKEN, IMuster::TaskSpec { gpu, ..spec(0, &[]) });
    }
    for m in 0..3 {
        let models: Vec<u64> = (1..=8).map(|i| 3000 + m * 10 + i).collect();
        created(&mut w, TOKEN, IMuster::TaskSpec { gpu, models, ..spec(0, &[]) });
    }
    assert_eq!(w.ask(overviewCall {}).queued, 3);
    w.pass(1, 90_000);
    w.dispatch(16).unwrap();
    w.create(CREATOR, FEE, IMuster::TaskSpec { models: (2001..=2008).collect(), ..alike(0) }).unwrap();
    w.pass(1, 0);
    let (gas, out) = metered(&mut w, who(999), 0, |net| net.settle(TaskId(judged), place));
    assert_eq!(out, "accepted");
    w.events();
    gas
}

/// The call of somebody who only ends his own task made the draw of three that was due, started them, and then three queued tasks on
/// reserved nodes that were not drawn: 1.33 million gas. Now one budget bounds all tries of a draw, and who is not drawn comes back
/// in later calls: 910,000 gas at most, of storage, logs and start (docs/generated/proof.md).
#[test]
fn an_innocent_submit_pays_for_one_draw_of_three_and_no_more() {
    let mine: Vec<u64> = (2001..=2008).collect();
    let (mut dear, mut formed) = ([0; 3], 0);
    for seed in 0..30u64 {
        for (kind, worst) in dear.iter_mut().enumerate() {
            let (mut w, first) = varied(seed * 3 + kind as u64);
            let card = w.node(first).gpu;
            let gpu = w.node(1).gpu;
            // Somebody runs a task of his own; what waits for his card, or the listed one, needs eight models.
            let own = created(&mut w, TOKEN, IMuster::TaskSpec { gpu, flags: 1, ..spec(0, &[]) });
            let runner = (1..=2).find(|&i| task_of(&mut w, i) == own).unwrap();
            let queued = |gpu: u32, m: u64| {
                let models: Vec<u64> = (1..=8).map(|i| 3000 + m * 10 + i).collect();
                IMuster::TaskSpec { gpu, models, ..spec(0, &[]) }
            };
            let wanted = IMuster::TaskSpec { models: mine.clone(), ..alike(0) };
            let id = if kind == 0 {
                for m in 0..2 {
                    created(&mut w, TOKEN, queued(gpu, m));
                }
                w.create(CREATOR, FEE, wanted).unwrap()
            } else {
                let mut tasks = Vec::new();
                for _ in 0..12 {
                    let id = created(&mut w, TOKEN, IMuster::TaskSpec { gpu: card, ..spec(0, &[]) });
                    tasks.push((id, (first..first + 12).find(|&i| task_of(&mut w, i) == id).unwrap()));
                }
                let id = created(&mut w, FEE, wanted);
                for m in 0..3 {
                    created(&mut w, TOKEN, queued(card, m));
                }
                for &task in &tasks[..3] {
                    submit(&mut w, task);
                }
                assert_eq!(nodes_with(&mut w, 3).len(), 3);
                tasks[3..].iter().for_each(|&task| idled(&mut w, task));
                id
            };
            w.pass(1, 0);
            let call = TaskId(own);
            let (gas, out) = match kind {
                2 => metered(&mut w, who(999), 0, |_| Ok(())),
                _ => metered(&mut w, who(runner.into()), 0, |net| net.submit(call, [1; 32])),
            };
            assert_eq!(out, "accepted");
            formed += u32::from(group_of(&mut w, id).is_some());
            *worst = gas.max(*worst);
            // Nor what is left for those who come after.
            for n in 0..6 {
                let (gas, _) = metered(&mut w, who(990 + n), 0, |_| Ok(()));
                *worst = gas.max(*worst);
            }
        }
    }
    assert!(formed > 30, "{formed} of 90 were formed");
    let [two, three, none] = dear;
    println!("{two} with idle ones, {three} with three reserved, {none} of that the draw and what follows");
    priced(
        "an innocent submit made expensive by a draw of three",
        "eight models, nodes that hold 32 others, three reserved ones",
        &format!("{} gas for storage, logs and start", two.max(three)),
    );
    assert!(dear.iter().all(|&gas| gas < MOST_GAS), "{dear:?}");
}

/// Whoever has a group judged makes the draw of three that is due before, and starts a queued task on each of the three members whom the
/// group held: 1.29 million gas.
#[test]
fn an_innocent_settle_pays_for_one_draw_of_three_and_no_more() {
    let gas = (0..30).map(settled_beside_a_draw).max().unwrap();
    println!("{gas} gas");
    assert!(gas < MOST_GAS, "{gas}");
}

/// Each call that has a draw of three to make is spent on it: whom it frees is held back, and so is whom it re-admits. Whoever wants to
/// hold a freed node up needs as many such draws due in a block as there are calls in it, his own among them: one call more brings it back.
/// He has to create them by a contract: while nobody is idle, what he signs himself is queued at once and holds up nobody.
#[test]
fn who_holds_a_freed_node_up_pays_a_task_for_three_for_every_call_of_anyone() {
    const ATTACKER: u64 = 70;
    let mut w = network(20);
    w.set("holdTime", 0);
    let tasks = busy(&mut w, 20);
    let wanted = created(&mut w, TOKEN, spec(0, &[]));
    let fee = w.ask(estimateCall { kind: 1, units: 1 }).leastFee * 3;
    let mut his = Vec::new();
    let mut due = |w: &mut World, draws: usize| {
        w.mem.by_contract = true;
        for _ in 0..draws {
            his.push(w.create(ATTACKER, fee, alike(0)).unwrap());
        }
        w.mem.by_contract = false;
    };
    // One for the call of the node, two for his own.
    due(&mut w, 3);
    w.pass(1, 0);
    let (_, node) = tasks[0];
    submit(&mut w, tasks[0]);
    due(&mut w, 2);
    for _ in 0..8 {
        assert_eq!((w.node(node).parked, w.ask(pendingTasksCall { from: 0, count: 9 }).len()), (1, 2), "every call was spent");
        w.pass(1, 0);
        due(&mut w, 2);
    }
    assert_eq!(w.node(node).parked, 1);
    // A call that he has not paid for.
    submit(&mut w, tasks[1]);
    assert_eq!(task_of(&mut w, node), wanted);
    check_money(&mut w);

    // What he has paid, if nobody runs his tasks: gas, and the start fee of each.
    w.pass(1, 0);
    w.dispatch(16).unwrap();
    let before = w.ask(overviewCall {}).treasuryBalance;
    for &id in &his {
        let ticket = w.ticket(id);
        w.send(who(ATTACKER), 0, cancelCall { id, ticket }).unwrap();
    }
    assert_eq!(w.ask(overviewCall {}).treasuryBalance - before, fee / 50 * his.len() as u128);
    check_money(&mut w);
    priced(
        "holding a freed node up",
        "as many draws of three due in every block as there are calls in it",
        "gas and the start fee of a task for three for every call of anyone",
    );
}

/// The owner kept reserved nodes, and their stakes, for days by raising the threshold that excludes them: no draw was ever decided, and
/// who is reserved cannot leave. Now an undecided draw lets go whoever is excluded by then, or wants to leave.
#[test]
fn a_raised_threshold_keeps_no_reserved_node() {
    let mut w = network(4);
    let tasks = busy(&mut w, 4);
    let id = created(&mut w, FEE, alike(0));
    idled(&mut w, tasks[3]);
    w.pass(1, 121);
    // They time out, and are eligible still.
    for &(id, node) in &tasks[..3] {
        w.send(who(DRIVER), 0, expireCall { node, id }).unwrap();
    }
    let reserved = nodes_with(&mut w, 3);
    assert!(!reserved.is_empty());
    w.set("tau", 604_800);
    w.set("exclusionPpm", 900_000);
    for &n in &reserved {
        w.send(who(n.into()), 0, quitCall {}).unwrap();
        assert!(matches!(w.node(n).status, 0 | 4), "it quits");
    }
    w.pass(1, 1);
    w.dispatch(1).unwrap();
    // Held back until later calls re-admit them, one by one, or anybody pokes them.
    for _ in 0..2 * reserved.len() {
        w.pass(1, 1);
        w.dispatch(16).unwrap();
    }
    for &n in &reserved {
        assert_eq!((w.node(n).status, w.node(n).parked), (0, 0), "it is out at the first draw");
        assert_eq!(w.account(n.into()).unbonding, 400 * TOKEN);
    }
    assert!(group_of(&mut w, id).is_none());
    check_money(&mut w);
}

/// Three reserved nodes of the only listed card among idle ones of other cards: a draw that met none of them queued the task, and the
/// three called it up again in the same call, so that nobody ever saw it queued, and its creator could not cancel it. Now the three need not
/// be met: the first draw starts it.
#[test]
fn a_task_does_not_go_round_because_its_reserved_nodes_are_not_met() {
    let (mut draws, mut dear) = (Vec::new(), 0);
    for others in [60u64, 250, 1000] {
        let mut all = 0;
        for seed in 0..10u64 {
            let mut w = network(3);
            let tasks = busy(&mut w, 3);
            for n in 0..others {
                w.join(100 + n, "cheap", 24, &[], 400).unwrap();
            }
            w.pass(1 + seed * 5000, 0);
            let id = created(&mut w, FEE, alike(0));
            assert_eq!(w.ask(overviewCall {}).queued, 1);
            for &t in &tasks {
                submit(&mut w, t);
            }
            assert_eq!(nodes_with(&mut w, 3).len(), 3);
            w.events();
            while group_of(&mut w, id).is_none() {
                w.pass(1, 0);
                let (gas, _) = metered(&mut w, who(999), 0, |_| Ok(()));
                dear = dear.max(gas);
                all += 1;
                assert!(!w.events().iter().any(|e| matches!(e, E::TaskQueued(_))), "it stays where it is");
            }
        }
        draws.push(f64::from(all) / 10.0);
    }
    priced(
        "three reserved nodes not met",
        "60, 250 and 1,000 idle nodes of other cards",
        &format!("{draws:?} draws, each {dear} gas at most"),
    );
    assert_eq!(draws, [1.0; 3]);
    assert!(dear < MOST_GAS);
}

/// With a draw delay of 0 whoever created a single task took a candidate away, at once, from draws of three that were due and whose hash
/// he knew. Now his task stands behind them.
#[test]
fn with_no_delay_a_single_task_does_not_go_before_draws_that_are_due() {
    let mut w = network(30);
    w.set("drawDelay", 0);
    let ids: Vec<u64> = (0..4).map(|_| w.create(CREATOR, FEE, alike(0)).unwrap()).collect();
    w.pass(1, 0);
    w.events();
    let single = w.create(70, TOKEN, spec(0, &[])).unwrap();
    assert!(group_of(&mut w, ids[3]).is_none(), "draws are due after what the call could make");
    assert!(!w.events().iter().any(|e| matches!(e, E::TaskStarted(t) if t.id == single)));
    let pending = w.ask(pendingTasksCall { from: 0, count: 256 });
    assert_eq!(pending.last().map(|t| t.id), Some(single));
    w.drain();
    let order: Vec<u64> = w
        .events()
        .iter()
        .filter_map(|e| match e {
            E::GroupFormed(g) => Some(g.id),
            E::TaskStarted(t) => Some(t.id),
            _ => None,
        })
        .collect();
    assert_eq!(order.last(), Some(&single));
    // Where none is due, it starts at once.
    let next = w.create(70, TOKEN, spec(0, &[])).unwrap();
    assert!(w.events().iter().any(|e| matches!(e, E::TaskStarted(t) if t.id == next)));
}

/// Who waits for a task whose nodes have to answer alike can leave, and come back with another listed GPU: two of its former group found it
/// waiting still, for the same queue, and all three were given the task.
#[test]
fn who_comes_back_with_another_gpu_does_not_wait_with_its_former_group() {
    let mut w = network(4);
    w.join(5, "another card", 48, &[], 2_000).unwrap();
    let another = w.node(5).gpu;
    w.send(OWNER, 0, listGpuGroupCall { group: another, listed: true }).unwrap();
    w.send(who(5), 0, pauseCall {}).unwrap();
    let long = IMuster::TaskSpec { kind: 2, units: 1_800, ..spec(0, &[]) };
    for _ in 0..4 {
        w.create(90, TOKEN, long.clone()).unwrap();
        w.drain();
    }
    let id = created(&mut w, FEE, alike(0));
    let running = |w: &mut World, n: u32| (task_of(w, n), n);
    let first = running(&mut w, 1);
    submit(&mut w, first);
    assert_eq!(w.node(1).parked, 2, "it waits for two others");
    w.send(who(1), 0, quitCall {}).unwrap();
    // It may wait again once it has not for nine times as long.
    w.pass(1, 700);
    w.join(1, "another card", 48, &[], 2_000).unwrap();
    assert_eq!((w.node(1).parked, w.node(1).gpu), (2, another));
    for n in [2, 3] {
        let next = running(&mut w, n);
        submit(&mut w, next);
        assert_eq!((w.node(n).parked, w.ask(overviewCall {}).pending), (2, 0), "{n} waits, without who is of another group now");
    }
    let last = running(&mut w, 4);
    submit(&mut w, last);
    w.drain();
    let (_, mut members) = group_of(&mut w, id).expect("formed");
    members.sort_unstable();
    assert_eq!(members, [2, 3, 4]);
    check_money(&mut w);
}

/// Every joined node stands where its record says, and nowhere else.
fn check_places(w: &mut World, log: &[String]) {
    let issued = w.ask(overviewCall {}).nodesIssued;
    let tail = || log[log.len().saturating_sub(25)..].join("\n");
    let mut idle = HashMap::<u32, u32>::new();
    let mut groups: Vec<u32> = (1..=issued).map(|n| w.node(n).gpu).collect();
    groups.sort_unstable();
    groups.dedup();
    for &group in &groups {
        for class in 0..10 {
            for n in w.ask(idleNodesCall { group, class, from: 0, count: 256 }).numbers {
                *idle.entry(n).or_default() += 1;
                assert_eq!(w.node(n).gpu, group);
            }
        }
    }
    let mut parked = HashMap::<u32, u32>::new();
    for n in w.ask(excludedNodesCall { from: 0, count: 256 }).numbers {
        *parked.entry(n).or_default() += 1;
    }
    let pending: Vec<u64> = w.ask(pendingTasksCall { from: 0, count: 256 }).iter().map(|t| t.id).collect();
    for n in 1..=issued {
        let v = w.node(n);
        let node = NodeHandle::load(&w.mem, NodeId(n)).node;
        let want_idle = u32::from(v.status == 1 && v.parked == 0);
        assert_eq!(idle.get(&n).copied().unwrap_or(0), want_idle, "node {n} idle: {v:?}\n{}", tail());
        let want_parked = u32::from(v.parked == 1 || v.parked == 2);
        assert_eq!(parked.get(&n).copied().unwrap_or(0), want_parked, "node {n} parked: {v:?}\n{}", tail());
        if v.parked == 3 {
            let task = NodeHandle::load(&w.mem, NodeId(n)).assignment(&w.mem).task.0;
            assert!(pending.contains(&task), "node {n} is reserved for {task}, pending {pending:?}\n{}", tail());
            assert!(matches!(v.status, 2 | 3 | 4 | 6));
            let net = Network::open(&mut w.mem).unwrap();
            let ring = *net.ring();
            let at = (0..ring.len()).find(|&i| net.host.get::<Order>(offset(ring.slot(net.host, i), 1)).id.0 == task).unwrap();
            let all = ring.reserved(net.host, ring.slot(net.host, at)).all();
            assert_eq!(all.iter().filter(|&&x| x == NodeId(n)).count(), 1, "node {n} not on its list\n{}", tail());
        }
        if v.parked == 2 {
            assert_eq!(v.status, 1);
        }
        if node.running() {
            assert_ne!(w.ask(runningTaskCall { number: n }).status, 0, "node {n} {v:?}\n{}", tail());
        }
    }
    let live = w.ask(groupsCall { from: 1, count: 256 })._1;
    let mut open = HashMap::<u32, u8>::new();
    let mut called = HashMap::<u32, u32>::new();
    for g in &live {
        let mut members: Vec<u32> = g.members.iter().filter(|m| m.stage > 0).map(|m| m.node).collect();
        members.sort_unstable();
        members.dedup();
        assert_eq!(members.len(), g.members.iter().filter(|m| m.stage > 0).count());
        for m in &g.members {
            match m.stage {
                1 => assert!(called.insert(m.node, g.group).is_none()),
                2 => {
                    let view = w.ask(runningTaskCall { number: m.node });
                    assert_eq!((view.id, view.group), (g.id, g.group), "{g:?}\n{}", tail());
                }
                3..=5 if g.scored && g.redundancy < 3 => *open.entry(m.node).or_default() += 1,
                _ => {}
            }
        }
    }
    for n in 1..=issued {
        let v = w.node(n);
        assert_eq!(v.openCommitments, open.get(&n).copied().unwrap_or(0), "{v:?}\n{}", tail());
        assert_eq!(v.calledTo, called.get(&n).copied().unwrap_or(0), "{v:?}\n{}", tail());
        if v.held {
            assert!(v.openCommitments > 0 && v.parked == 0);
        }
    }
    let q: Queue = w.mem.get(slot(QUEUE));
    let queues = w.ask(queuesCall { from: 0, count: 256 })._1;
    let graded: u32 = queues.iter().filter(|q| (q.queue >> 12) & 15 > 0).map(|q| q.queued).sum();
    let all: u32 = queues.iter().map(|q| q.queued).sum();
    assert_eq!((q.graded, w.ask(overviewCall {}).queued), (graded, all), "{}", tail());
    // Trios.
    for &group in &groups {
        let vram = (group & 0xffff) as u16;
        let trios = groups
            .iter()
            .filter(|&&g| (g & 0xffff) as u16 == vram)
            .filter(|&&g| registry::listed(&w.mem, GpuGroup(g)) && registry::joined(&w.mem, GpuGroup(g)) >= Some(3))
            .count() as u32;
        let size: Size = w.mem.get(entry(&w.mem, GPU_COUNTS, vram.into()));
        assert_eq!(size.trios, trios, "{}", tail());
    }
}

/// Whatever is called, no wei is lost or made, everybody stands in one place, all tasks can end and all nodes can leave: 15,000 random
/// calls, or as many as `OPERATIONS` says, as in
/// `OPERATIONS=500000 script/test -p muster-protocol --test attacks_replicated search -- --show-output`.
#[test]
fn search() {
    let operations: u64 = std::env::var("OPERATIONS").map_or(15_000, |n| n.parse().expect("a number"));
    let mut counts = BTreeMap::<String, (u32, u32)>::new();
    let mut seen = BTreeMap::<String, u32>::new();
    for seed in 0..operations.div_ceil(300) {
        let mut d = Dice(seed * 7919 + 1);
        let mut log: Vec<String> = vec![format!("seed {seed}")];
        let mut w = world(0, d.below(3));
        w.set("scorePool", 3);
        w.set("sampleBps", [1_000, 10_000][(seed & 1) as usize]);
        let cards = [("a", 24u16), ("b", 24), ("c", 48)];
        let people = 8 + d.below(5);
        for n in 1..=people {
            let (name, vram) = cards[d.below(3) as usize];
            w.join(n, name, vram, &[], 400 + 400 * u128::from(d.below(4))).unwrap();
        }
        for g in [CARD, 2 << 16 | 24, 1 << 16 | 48] {
            let _ = w.send(OWNER, 0, listGpuGroupCall { group: g, listed: true });
        }
        w.set("alphaMilli", [0, 300, 1000, 2000][d.below(4) as usize]);
        for _ in 0..300 {
            let node = 1 + d.below(people) as u32;
            let op = d.below(34);
            // Some worlds keep their nodes at work.
            let op =
                if seed % 3 > 0 && matches!(op, 18 | 19 | 22) && d.below(3) > 0 { [20, 26, 14][d.below(3) as usize] } else { op };
            let (name, result): (&str, Result<()>) = match op {
                0..=6 => {
                    let policy = [0u8, 1, 1, 2, 2][d.below(5) as usize];
                    let kind = d.below(2) as u8;
                    let gpu = if d.below(3) == 0 { [CARD, 2 << 16 | 24, 1 << 16 | 48][d.below(3) as usize] } else { 0 };
                    let vram = [0, 24, 25, 48][d.below(4) as usize];
                    let models: Vec<u64> = (1..=d.below(3)).collect();
                    let s =
                        IMuster::TaskSpec { redundancy: policy, kind, gpu, vram, flags: d.below(2) as u32, ..spec(0, &models) };
                    let fee = TOKEN / 10 * u128::from(1 + d.below(40));
                    ("create", w.create(50 + d.below(3), fee, s).map(drop))
                }
                7..=13 => {
                    let view = w.ask(runningTaskCall { number: node });
                    let group = view.group;
                    match view.status {
                        0 => ("none", Ok(())),
                        _ if view.redundancy == 0 && group == 0 => {
                            if d.below(4) == 0 {
                                ("error", w.send(who(node.into()), 0, reportErrorCall { id: view.id, code: 1 }).map(drop))
                            } else {
                                (
                                    "submit",
                                    w.send(who(node.into()), 0, submitCall { id: view.id, resultDigest: value(1) }).map(drop),
                                )
                            }
                        }
                        _ => {
                            let v = if d.below(5) == 0 { 2 } else { 1 };
                            let v = if view.kind == 0 {
                                let mut b = [0; 32];
                                b[..8].fill(if v == 2 { 0xf0 } else { 1 });
                                B256::from(b)
                            } else {
                                value(v)
                            };
                            ("commit", commit(&mut w, view.id, node, ANSWER, v))
                        }
                    }
                }
                14..=16 => {
                    // Reveal whatever can be revealed in groups, or alone.
                    let groups = w.ask(groupsCall { from: 1, count: 64 })._1;
                    let mut out = ("reveal none", Ok(()));
                    for g in groups {
                        for m in &g.members {
                            if m.stage == 3 && d.below(8) > 0 {
                                let im = |x: u8| {
                                    let mut b = [0; 32];
                                    b[..8].fill(x);
                                    B256::from(b)
                                };
                                for v in [value(1), value(2), im(1), im(0xf0)] {
                                    let r = reveal(&mut w, g.id, g.group, m.node, ANSWER, v);
                                    if r.is_ok() {
                                        out = ("reveal", Ok(()));
                                    }
                                }
                            }
                        }
                    }
                    for n in 1..=people as u32 {
                        let view = w.ask(runningTaskCall { number: n });
                        if view.status == 4 && w.send(who(9), 0, validateCall { id: view.id, node: n }).is_ok() {
                            out = ("validate", Ok(()));
                        }
                    }
                    let view = w.ask(runningTaskCall { number: node });
                    if view.status == 4 {
                        let r = if w.send(who(9), 0, validateCall { id: view.id, node }).is_ok() {
                            ("validate", Ok(()))
                        } else {
                            ("reveal alone", reveal(&mut w, view.id, 0, node, ANSWER, value(1)))
                        };
                        out = r;
                    }
                    out
                }
                17 => {
                    let groups = w.ask(groupsCall { from: 1, count: 64 })._1;
                    let mut out = ("settle none", Ok(()));
                    for g in groups {
                        if w.send(who(9), 0, settleCall { id: g.id, group: g.group }).is_ok() {
                            out = ("settle", Ok(()));
                        }
                    }
                    out
                }
                18 | 19 => ("pause", w.send(who(node.into()), 0, pauseCall {}).map(drop)),
                20 | 21 => ("resume", w.send(who(node.into()), 0, resumeCall {}).map(drop)),
                22 => ("quit", w.send(who(node.into()), 0, quitCall {}).map(drop)),
                23 | 24 => {
                    let (name, vram) = cards[d.below(3) as usize];
                    ("join", w.join(node.into(), name, vram, &[], 400 + 400 * u128::from(d.below(4))).map(drop))
                }
                25 => {
                    let view = w.ask(runningTaskCall { number: node });
                    ("expire", w.send(who(60), 0, expireCall { node, id: view.id }).map(drop))
                }
                26 => ("poke", w.send(who(60), 0, pokeCall { node }).map(drop)),
                27 => {
                    let g = [CARD, 2 << 16 | 24, 1 << 16 | 48][d.below(3) as usize];
                    ("list", w.send(OWNER, 0, listGpuGroupCall { group: g, listed: d.below(3) > 0 }).map(drop))
                }
                28 => {
                    let (p, v) = [
                        ("holdTime", [0, 1, 60, 255]),
                        ("exclusionPpm", [0, 100_000, 500_000, 900_000]),
                        ("alphaMilli", [0, 200, 1000, 3000]),
                        ("openMost", [1, 2, 3, 8]),
                        ("tau", [1, 1800, 1800, 20000]),
                    ][d.below(5) as usize];
                    let v = v[d.below(4) as usize];
                    w.set(p, v);
                    ("set", Ok(()))
                }
                29 => {
                    w.pass(if d.below(40) == 0 { 400_000 } else { 1 }, [1, 30, 61, 130, 8000, 25_000][d.below(6) as usize]);
                    ("pass", Ok(()))
                }
                30 => ("dispatch", w.dispatch(d.below(5) as u8).map(drop)),
                31 => {
                    let queues = w.ask(queuesCall { from: 0, count: 64 })._1;
                    let mut out = ("cancel none", Ok(()));
                    for q in queues {
                        for t in w.ask(queuedTasksCall { queue: q.queue, from: 0, count: 64 })._1 {
                            if d.below(4) == 0 {
                                w.mem.sender = t.creator.into_array();
                                out = (
                                    "cancel",
                                    w.send(t.creator.into_array(), 0, cancelCall { id: t.id, ticket: t.ticket }).map(drop),
                                );
                            }
                        }
                    }
                    out
                }
                32 => ("form", w.send(who(60), 0, formGroupCall {}).map(drop)),
                _ => ("raise", w.send(who(node.into()), 400 * TOKEN, raiseStakeCall {}).map(drop)),
            };
            let ok = result.is_ok();
            let entry = counts.entry(name.into()).or_default();
            if ok {
                entry.0 += 1;
            } else {
                entry.1 += 1;
            }
            log.push(format!("{name} {node} {}", if ok { "ok".into() } else { named(result) }));
            for e in w.events() {
                let text = format!("{e:?}");
                *seen.entry(text.split('(').next().unwrap().into()).or_default() += 1;
                log.push(format!("      {}", &text[..text.len().min(220)]));
            }
            if d.below(2) == 0 {
                w.pass(1, d.below(8));
            }
            check_money(&mut w);
            check_places(&mut w, &log);
        }
        // All can end: time passes, whoever can ends what there is, everybody quits.
        w.set("exclusionPpm", 100_000);
        w.set("tau", 1800);
        for _ in 0..60 {
            w.pass(1, 25_000);
            w.dispatch(16).unwrap();
            for n in 1..=people as u32 {
                let view = w.ask(runningTaskCall { number: n });
                if view.status > 0 {
                    let _ = w.send(who(60), 0, expireCall { node: n, id: view.id });
                    let _ = w.send(who(60), 0, validateCall { id: view.id, node: n });
                }
                let _ = w.send(who(n.into()), 0, quitCall {});
            }
            for g in w.ask(groupsCall { from: 1, count: 64 })._1 {
                let _ = w.send(who(9), 0, settleCall { id: g.id, group: g.group });
            }
            for q in w.ask(queuesCall { from: 0, count: 64 })._1 {
                for t in w.ask(queuedTasksCall { queue: q.queue, from: 0, count: 64 })._1 {
                    let _ = w.send(who(60), 0, expireQueuedCall { id: t.id, ticket: t.ticket });
                }
            }
            check_money(&mut w);
            check_places(&mut w, &log);
            w.events();
        }
        let o = w.ask(overviewCall {});
        assert_eq!(
            (o.nodesJoined, o.pending, o.queued, o.groups),
            (0, 0, 0, 0),
            "seed {seed}: {:?}",
            (1..=people as u32).map(|n| w.node(n)).filter(|v| v.status > 0).collect::<Vec<_>>()
        );
    }
    println!("{counts:?}\n{seen:?}");
}
