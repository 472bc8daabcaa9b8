//! Attacks that an audit found, each as it was made, with what is left of it and what it costs now. docs/security.md quotes the
//! figures.

use muster_core::id::{NodeId, QueueId, TaskId, Ticket};
use muster_core::record::CALL_MODELS;
use muster_core::wad::WAD;
use muster_core::word::Word;
use muster_model::meter::{metered, metered_alone, priced, MOST_GAS};
use muster_model::refused;
use muster_model::world::*;
use muster_protocol::host::Host;
use muster_protocol::native::Memory;
use muster_protocol::store::node::NodeHandle;
use muster_protocol::IMuster::IMusterEvents as E;
use muster_protocol::IMuster::{self, estimateCall};
use muster_protocol::{admin, Network};
use std::collections::{BTreeMap, BTreeSet};

const FEE: u128 = TOKEN;

/// Tasks that nobody can run held the whole queue for nothing, for 30 days, for 2 %. Now they are refused; whoever holds a queue with
/// tasks that somebody could run, but does not, pays the start fee every six hours, and whoever ends them earns it.
#[test]
fn holding_the_queue_costs_its_start_fees_every_six_hours() {
    let mut w = world(10, 1);
    refused!(w.create(66, FEE, spec(960, &[])), NobodyCanRun(960u16, 0u32));
    // The attacker's own node, the only one of its size, joined and paused: a deposit, nothing more.
    w.join(60, "own", 960, &[], 400).unwrap();
    w.call(who(60), 0, |n| n.pause()).unwrap();
    for _ in 0..10 {
        w.create(50, FEE, spec(0, &[])).unwrap();
    }
    w.drain();
    let capacity = w.view(|n| n.overview()).queueCapacity;
    let mut paid = 0;
    let hours = 30 * 24;
    let (mut lost_before, mut ids) = (0, Vec::new());
    for hour in 0..hours {
        if hour % 6 == 0 {
            // The queue is emptied by anyone, who earns the start fees; the attacker fills it again.
            for id in std::mem::take(&mut ids) {
                let ticket = w.ticket(id);
                w.call(who(77), 0, |n| n.expire_queued(TaskId(id), Ticket(ticket))).unwrap();
            }
            lost_before = w.account(77).credit;
            for _ in 0..capacity {
                ids.push(w.create(66, FEE, spec(960, &[])).unwrap());
                paid += FEE;
            }
            w.drain();
            assert_eq!(w.view(|n| n.overview()).queued, capacity);
        }
        w.pass(1, 3_601);
    }
    for id in ids {
        let ticket = w.ticket(id);
        w.call(who(77), 0, |n| n.expire_queued(TaskId(id), Ticket(ticket))).unwrap();
    }
    let earned = w.account(77).credit;
    assert!(earned > lost_before);
    assert_eq!((w.account(66).credit, earned), (paid / 100 * 98, paid / 100 * 2));
    // In hundredths of a fee that the queue's places are held at.
    let each = earned * 10_000 / FEE / hours as u128 / capacity as u128;
    let held = format!("{capacity} places for {hours} hours, with tasks of one's own paused node");
    priced("the queue held", &held, &format!("{:.2} % of a fee for each place and hour", each as f64 / 100.0));
    assert_eq!(each, 33, "2 % of a fee every six hours");
    // And it displaces only what is worth less: who pays more gets in.
    for _ in 0..capacity {
        w.create(66, FEE, spec(960, &[])).unwrap();
    }
    w.drain();
    let better = w.create(50, FEE + FEE / 100, spec(0, &[])).unwrap();
    w.drain();
    assert!(w.view(|n| n.queued_tasks(QueueId(0), 0, 9)).unwrap().1.iter().any(|t| t.id == better));
}

/// While nobody is idle, a task is queued by the call that creates it. Who creates one and frees his own node next has it run there, if it is
/// worth more than all that is queued: so he has after a draw, a block later. It is his own fee that he earns, and H stays.
#[test]
fn queueing_at_creation_saves_its_creator_a_block_and_nothing_else() {
    const QUEUED: u32 = 4;
    const PERCENT: u128 = FEE / 100;
    let his_own = |waits: bool, more: u128| {
        let mut w = world(8, 1);
        for i in 0..8 + u128::from(QUEUED) {
            w.create(50, FEE + i * PERCENT, spec(0, &[])).unwrap();
            w.drain();
        }
        assert_eq!(w.view(|n| n.queued()), QUEUED);
        let fee = FEE + (7 + more) * PERCENT;
        if waits {
            w.send(who(66), fee, IMuster::createTasksCall { specs: vec![spec(0, &[])], fees: vec![fee], atomic: true }).unwrap();
            w.drain();
        } else {
            w.create(66, fee, spec(0, &[])).unwrap();
        }
        let (his, running) = (w.view(|n| n.overview()).tasks, w.node(1).task);
        w.call(who(1), 0, |n| n.submit(TaskId(running), [1; 32])).unwrap();
        let (got, h) = (w.node(1).task == his, w.node(1).reliability);
        if got {
            assert!(!w.view(|n| n.running_task(NodeId(1))).unwrap().boosts);
            let before = w.account(1).credit;
            w.call(who(1), 0, |n| n.submit(TaskId(his), [1; 32])).unwrap();
            assert_eq!(w.account(1).credit - before, fee);
            assert!(w.node(1).reliability <= h, "H does not rise by it");
        }
        got
    };
    let least = |waits| (0..10).find(|&more| his_own(waits, more)).unwrap();
    let outbid = least(false);
    assert_eq!(outbid, least(true), "it has to outbid as much after a draw");
    priced(
        "one's own task on one's own node",
        "nobody idle and four tasks queued",
        &format!("the best fee queued and {} % more", outbid - 4),
    );
}

/// A full queue is pushed out by tasks that are worth more, cancelled as soon as only they are left. The cheapest that does it has the least
/// estimate, so it costs its start fee, of little more than half the fee that it outbids, and gas for two calls; who is pushed out has his
/// whole fee back. Whoever has code is drawn a block later, so it takes no money that is lent for one transaction.
#[test]
fn emptying_the_queue_costs_a_hundredth_of_the_fees_that_it_pushes_out() {
    const MORE: u128 = FEE / 1_000;
    let mut w = world(10, 1);
    for _ in 0..10 {
        w.create(50, FEE, spec(0, &[])).unwrap();
    }
    w.drain();
    let capacity = w.view(|n| n.overview()).queueCapacity;
    // The words of the queue are cheapest where others have used them.
    let fill =
        |w: &mut World, creator| -> Vec<u64> { (0..capacity).map(|_| w.create(creator, FEE, spec(0, &[])).unwrap()).collect() };
    for id in fill(&mut w, 50) {
        let ticket = w.ticket(id);
        w.call(who(50), 0, |n| n.cancel(TaskId(id), Ticket(ticket))).unwrap();
    }
    let before = w.account(50).credit;
    fill(&mut w, 50);
    let (fee, second) = (FEE / 2 + MORE, IMuster::TaskSpec { kind: 2, units: 1, ..spec(0, &[]) });
    let (mut gas, mut ids) = (0, Vec::new());
    for _ in 0..capacity {
        let (cost, created) = metered(&mut w, who(66), fee, |n| n.create_task(second.clone()));
        assert_eq!(created, "accepted");
        gas += cost;
        ids.push(w.view(|n| n.overview()).tasks);
    }
    let back = w.account(50).credit - before;
    assert_eq!((back, w.view(|n| n.queued())), (FEE * u128::from(capacity), capacity), "all of them are pushed out");
    for &id in &ids {
        let ticket = w.ticket(id);
        let (cost, cancelled) = metered_alone(&mut w, who(66), 0, |n| n.cancel(TaskId(id), Ticket(ticket)));
        assert_eq!(cancelled, "accepted");
        gas += cost;
    }
    assert_eq!(w.view(|n| n.queued()), 0);
    let lost = fee - w.account(66).credit / u128::from(capacity);
    let each = lost * 10_000 / FEE;
    let comes_to = format!("{}.{:02} % of a fee and {} gas for each", each / 100, each % 100, gas / u64::from(capacity));
    priced("the queue emptied", &format!("{capacity} queued tasks pushed out, the better ones cancelled"), &comes_to);
    assert_eq!(each, 100, "2 % of half a fee, and a thousandth");
}

/// One stated second of fine-tuning was worth sixty of a GPT task. Now no task counts for less than half the shortest time limit.
#[test]
fn a_stated_second_buys_no_rank() {
    let mut w = world(1, 0);
    w.set("alphaMilli", 100_000);
    w.create(5, FEE, spec(0, &[])).unwrap();
    let honest = w.create(5, FEE, spec(0, &[])).unwrap();
    let second = IMuster::TaskSpec { kind: 2, units: 1, ..spec(0, &[]) };
    let half = w.ask(estimateCall { kind: 2, units: 1 });
    assert_eq!((half.estimated, half.timeLimit), (30, 60));
    // The same price per second that the node is held for at most, and not a wei less.
    w.create(6, FEE / 2 - 1, second.clone()).unwrap();
    w.call(who(1), 0, |n| n.submit(TaskId(1), [0; 32])).unwrap();
    assert_eq!(w.node(1).task, honest);
    let mut w = world(1, 0);
    w.create(5, FEE, spec(0, &[])).unwrap();
    w.create(5, FEE, spec(0, &[])).unwrap();
    let sly = w.create(6, FEE / 2 + FEE / 1_000, second).unwrap();
    w.call(who(1), 0, |n| n.submit(TaskId(1), [0; 32])).unwrap();
    assert_eq!(w.node(1).task, sly, "more per second is more");
}

/// H was bought back with dust tasks, which a private model steered to one's own node. Now such a draw raises nothing.
#[test]
fn h_is_not_bought_back_with_a_private_model() {
    let mut w = world(50, 1);
    w.call(who(1), 0, |n| n.report_downloaded(ids(vec![0xdead]))).unwrap();
    let id = w.create(50, FEE, spec(0, &[0xdead])).unwrap();
    w.drain();
    w.pass(10, 121);
    w.call(who(9), 0, |n| n.expire(NodeId(1), TaskId(id))).unwrap();
    let before = w.node(1).reliability;
    for _ in 0..40 {
        let id = w.create(1, 60, spec(0, &[0xdead])).unwrap();
        w.drain();
        w.call(who(1), 0, |n| n.submit(TaskId(id), [0; 32])).unwrap();
    }
    assert_eq!(w.node(1).reliability, before);
    // Through three nodes of one's own that hold it, a success in three is one's own, and none sooner than half an estimate.
    for n in [2, 3] {
        w.call(who(n), 0, |net| net.report_downloaded(ids(vec![0xdead]))).unwrap();
    }
    let (start, mut tasks) = (w.mem.now, 0);
    while w.node(1).reliability < 999_000_000_000_000_000 {
        let id = w.create(1, 60, spec(0, &[0xdead])).unwrap();
        w.drain();
        let ran = (1..=3u32).find(|&n| w.node(n).task == id && w.node(n).status == 2).unwrap();
        w.pass(1, 10);
        w.call(who(ran as u64), 0, |n| n.submit(TaskId(id), [0; 32])).unwrap();
        tasks += 1;
    }
    let seconds = w.mem.now - start;
    priced(
        "H bought back from 0.3",
        "three nodes of one's own that alone hold a model",
        &format!("three stakes, {tasks} tasks, {seconds} s"),
    );
    assert!(seconds >= 5 * 30, "five rises, half an estimate apart");
}

/// What node 1 gains in a busy network of equal nodes: times that H was raised, and tasks of its operator's own that others ran, with what they
/// paid. Either it works like the others, or it does nothing but tasks of its `own`, at this fee: one waits in the queue, and as soon as that has
/// waited long enough and is the best, it ends what it runs. Others' fees are 1 to 2 tokens.
fn raised_in_the_queue(nodes: u32, load: f64, own: Option<u128>, seconds: u64) -> (u32, u32, u128) {
    let low = 300_000_000_000_000_000;
    let mut w = world(nodes.into(), 1);
    w.set("minPrice", 1);
    let mut dice = Dice(7);
    let mut running = BTreeMap::<u32, (u64, u64, u64)>::new();
    let mut mine = BTreeSet::<u64>::new();
    let (mut waiting, mut rises, mut lost, mut paid) = (None, 0, 0, 0);
    let set_low = |w: &mut World| {
        let mut handle = NodeHandle::load(&w.mem, NodeId(1));
        (handle.node.h, handle.node.h_at) = (low, w.mem.now as u32);
        handle.put(&mut w.mem);
    };
    set_low(&mut w);
    for _ in 0..seconds {
        w.pass(1, 1);
        w.dispatch(16).unwrap();
        let mut more = load * f64::from(nodes) / 60.0;
        while more > 0.0 {
            if dice.unit() < more {
                w.create(50, FEE + u128::from(dice.below(1_000)) * FEE / 1_000, spec(0, &[])).unwrap();
            }
            more -= 1.0;
        }
        let now = w.mem.now;
        let free: Vec<u32> = running.iter().filter(|(_, task)| task.1 <= now).map(|(&n, _)| n).collect();
        for node in free {
            if node == 1 && own.is_some() {
                continue;
            }
            let (task, ..) = running.remove(&node).unwrap();
            w.call(who(node.into()), 0, |n| n.submit(TaskId(task), [1; 32])).unwrap();
            if node == 1 && w.node(1).reliability > low + WAD / 10 {
                rises += 1;
                set_low(&mut w);
            }
            w.events().iter().for_each(|e| note(e, &mut running, &mut mine, &mut waiting, &mut dice, now, &mut lost));
        }
        if let Some(fee) = own {
            if let Some(&(task, _, since)) = running.get(&1) {
                let best =
                    waiting.is_some_and(|(id, at)| now >= at + 30 && w.ask(IMuster::bestQueuedCall { number: 1 }).id == id);
                if best || now >= since + 118 {
                    running.remove(&1);
                    w.call(who(1), 0, |n| n.submit(TaskId(task), [1; 32])).unwrap();
                    if w.node(1).reliability > low + WAD / 10 {
                        rises += 1;
                        set_low(&mut w);
                    }
                }
            }
            w.events().iter().for_each(|e| note(e, &mut running, &mut mine, &mut waiting, &mut dice, now, &mut lost));
            // As long as somebody is idle a task would be theirs.
            if waiting.is_none() && (running.len() == nodes as usize || !running.contains_key(&1)) {
                mine.insert(w.create(66, fee, spec(0, &[])).unwrap());
            }
        }
        w.events().iter().for_each(|e| note(e, &mut running, &mut mine, &mut waiting, &mut dice, now, &mut lost));
        paid = own.unwrap_or(0) * u128::from(lost);
        if w.node(1).reliability > WAD / 2 {
            // Time alone is not what is counted.
            set_low(&mut w);
        }
    }
    (rises, lost, paid)
}

/// Takes note of an event of [`raised_in_the_queue`].
fn note(
    event: &E,
    running: &mut BTreeMap<u32, (u64, u64, u64)>,
    mine: &mut BTreeSet<u64>,
    waiting: &mut Option<(u64, u64)>,
    dice: &mut Dice,
    now: u64,
    lost: &mut u32,
) {
    match event {
        E::TaskStarted(s) => {
            let work = 10 + (-50.0 * (1.0 - dice.unit()).ln()) as u64;
            running.insert(s.node, (s.id, now + work.min(110), now));
            *lost += u32::from(s.node != 1 && mine.contains(&s.id));
            *waiting = waiting.filter(|(id, _)| *id != s.id);
        }
        E::TaskQueued(q) if mine.contains(&q.id) => *waiting = Some((q.id, now)),
        E::TaskAborted(a) => *waiting = waiting.filter(|(id, _)| *id != a.id),
        _ => {}
    }
}

/// Successes with queued tasks raise H only if those have waited. Whoever works gets as much of it as ever; whoever steers tasks of their own to
/// their own node through the queue loses most of them to others, who become free first.
#[test]
fn h_is_not_bought_back_through_the_queue() {
    const HOUR: u64 = 3_600;
    for nodes in [3, 10, 30] {
        for load in [0.9, 1.5] {
            let (honest, ..) = raised_in_the_queue(nodes, load, None, HOUR);
            println!("{nodes} nodes, load {load}: {honest} rises an hour by working");
            for (name, fee) in [("the least fee", 60), ("more than all others", 3 * FEE)] {
                let (rises, lost, paid) = raised_in_the_queue(nodes, load, Some(fee), HOUR);
                let each = paid as f64 / FEE as f64 / f64::from(rises.max(1));
                println!("  own tasks at {name}: {rises} rises, {lost} tasks run by others, {each:.3} tokens a rise");
                assert!(nodes < 10 || rises <= honest, "slower than by working, where many work");
                assert!(fee < FEE || each > 2.0 * f64::from(nodes), "outbidding feeds the others");
                priced(
                    "H raised by own tasks through the queue",
                    &format!("{nodes} nodes, load {load}, own tasks at {name}, an hour; {honest} rises by working instead"),
                    &format!("{rises} rises, {lost} tasks that others ran and were paid for"),
                );
            }
        }
    }
}

/// A draw goes by H at the moment when it is made, and H recovers by the clock: whoever alone makes draws may wait, with the hash known, for a
/// second in which the node is his. Any call by anybody makes the draw before. What waiting gets him is bound by how far H can move: nothing
/// where all recover alike or nobody has timed out.
#[test]
fn a_known_draw_moves_with_h_by_the_clock_and_no_further() {
    const NODES: u32 = 10;
    const TASKS: u64 = 200;
    const WAITS: [u64; 3] = [0, 60, 600];
    let mut rows = Vec::new();
    // H of the attacker's one node, and of the others: in thousandths.
    for (name, own, others) in [
        ("nobody has timed out", 1_000u64, 1_000u64),
        ("all have, once", 300, 300),
        ("its own has, once", 300, 1_000),
        ("all others have, once", 1_000, 300),
    ] {
        let mut w = world(NODES.into(), 1);
        for n in 1..=NODES {
            let mut handle = NodeHandle::load(&w.mem, NodeId(n));
            (handle.node.h, handle.node.h_at) = (if n == 1 { own } else { others } * (WAD / 1_000), w.mem.now as u32);
            handle.put(&mut w.mem);
        }
        let (start, mut won, mut outcomes) = (w.mem.now, [0u64; 3], [0usize; 3]);
        for task in 0..TASKS {
            let hash = w.mem.keccak(&task.to_be_bytes());
            let (mut seen, mut at) = (Vec::new(), 0);
            for (i, &wait) in WAITS.iter().enumerate() {
                while at <= wait {
                    w.mem.now = start + at;
                    // Nobody, where the tries met none: it is drawn again.
                    let node = foretell(&mut w, hash, 7, &spec(0, &[]));
                    if !seen.contains(&node) {
                        seen.push(node);
                    }
                    at += if at < 60 { 2 } else { 20 };
                }
                won[i] += u64::from(seen.contains(&Some(1)));
                outcomes[i] += seen.len();
            }
        }
        println!("{name}: {won:?} of {TASKS}, outcomes {outcomes:?}");
        rows.push((name, won, outcomes));
    }
    let told: Vec<String> = rows
        .iter()
        .map(|(name, won, _)| {
            format!("{name}: {}", won.map(|won| format!("{:.1} %", won as f64 * 100.0 / TASKS as f64)).join(", "))
        })
        .collect();
    priced(
        "a draw whose hash is known, made in the second that suits",
        &format!("nobody else calls anything for {WAITS:?} s; one of {NODES} equal nodes"),
        &format!("tasks that its node can have: {}", told.join("; ")),
    );
    for (name, won, _) in &rows {
        // What it has at its best weight, of a moment, and never twice that.
        assert!(won[2] <= won[0].max(TASKS / u64::from(NODES)) * 2, "{name}: {won:?}");
    }
    assert_eq!(rows[0].2, [TASKS as usize; 3], "where no H moves, no draw does");
}

/// Two dust tasks a block refused every exit. Now a call that needs settled draws makes eight of them itself, fewer where
/// they are dear: it takes nine tasks in every block, or six that need several models each; four hold one exit in three.
#[test]
fn keeping_somebody_from_quitting_takes_many_tasks_in_every_block() {
    let held = |per_block: usize, models: &[u64]| -> (u64, u64) {
        let mut w = world(60, 1);
        w.set("alphaMilli", 1_000_000);
        for n in 1..=60 {
            w.call(who(n), 0, |net| net.report_downloaded(ids(vec![901, 902]))).unwrap();
        }
        let (mut refused, mut gas) = (0, 0);
        for round in 0..40u64 {
            for _ in 0..per_block {
                gas += metered(&mut w, who(66), 60, |n| n.create_task(spec(0, models))).0;
            }
            w.pass(1, 1);
            let victim = 1 + round % 60;
            let (cost, left) = metered(&mut w, who(victim), 0, |n| n.quit());
            assert!(cost < MOST_GAS, "{cost}");
            refused += (left == "DrawsDue") as u64;
            if left == "accepted" {
                w.pass(1, 86_400);
                w.drain();
                let _ = w.join(victim, "RTX 4090", 24, &[901, 902], 400);
            }
            // Whoever runs a task ends it, so that nodes are idle.
            for n in 1..=60u32 {
                let v = w.node(n);
                if matches!(v.status, 2..=4) {
                    let _ = w.call(who(n as u64), 0, |net| net.submit(TaskId(v.task), [0; 32]));
                }
            }
            w.drain();
        }
        (refused, gas / 40)
    };
    for (models, free, more) in [(&[][..], 8, [9, 12]), (&[901, 902][..], 2, [4, 6])] {
        // Now and then a draw is dear because many tries are rejected.
        assert!(held(free, models).0 <= 1, "{free} tasks of {} models a block hold nobody", models.len());
        for per_block in more {
            let (refused, gas) = held(per_block, models);
            let flood = format!("{per_block} tasks of {} models in every block", models.len());
            priced("quitting refused", &flood, &format!("{refused} of 40 blocks, {gas} gas a block"));
            assert!(gas > 300_000, "{gas}");
            assert!(refused < 20 || gas > 450_000, "most blocks, {refused} of 40, for {gas} gas each");
        }
    }
}

/// Tasks in one call are cheaper to create than one by one, and as dear to draw. So that they do not pile up for others, none are created
/// while draws are due that the call does not make itself: a flood is at most what fits one block, and single tasks get in at any time.
#[test]
fn a_flood_of_batches_ends_with_its_block() {
    // What a block of an Arbitrum chain holds.
    const BLOCK_GAS: u64 = 32_000_000;
    let flood = |made: usize, models: &[u64]| -> [u64; 3] {
        let mut w = world(60, 1);
        for n in 1..=60 {
            w.call(who(n), 0, |net| net.report_downloaded(ids(vec![901, 902]))).unwrap();
        }
        let wave = |w: &mut World| {
            let (mut spent, mut tasks) = (0, 0);
            while spent < BLOCK_GAS {
                // By `createTask` only those would wait that somebody idle could run; all others are queued at once.
                let (specs, fees) = (vec![spec(0, models); made], vec![60; made]);
                let gas = metered_alone(w, who(66), made as u128 * 60, |n| n.create_tasks(specs, &fees, true));
                assert_eq!(gas.1, "accepted");
                (spent, tasks) = (spent + gas.0, tasks + made as u64);
            }
            (spent, tasks)
        };
        // The ring's words are cheapest where others have used them.
        wave(&mut w);
        w.drain();
        wave(&mut w);
        w.drain();
        let (spent, tasks) = wave(&mut w);
        w.pass(1, 1);
        // No second wave: eight cheap draws are not enough, and those of several models it does not make at all.
        let specs = vec![spec(0, models); 16];
        let (gas, refused) = metered_alone(&mut w, who(66), 16 * 60, |n| n.create_tasks(specs, &[60; 16], true));
        assert_eq!(refused, "DrawsDue");
        assert!(gas < MOST_GAS, "{gas}");
        // A single task is created all the same, for what any call pays that draws two.
        let (gas, created) = metered(&mut w, who(50), FEE, |n| n.create_task(spec(0, &[])));
        assert_eq!(created, "accepted");
        assert!(gas < MOST_GAS, "{gas}");
        // Whoever wants it to start soon draws what is before it.
        let mut drawing = 0;
        while w.view(|n| n.overview()).pending > 1 {
            drawing += metered_alone(&mut w, who(77), 0, |n| n.dispatch(16)).0;
            w.pass(1, 0);
        }
        [tasks, spent / tasks, drawing / tasks]
    };
    for models in [&[][..], &[901, 902][..]] {
        let ([alone, dear, one], [tasks, cheap, each]) = (flood(1, models), flood(16, models));
        assert!(tasks < 4_095, "the ring is not filled by a block: {tasks}");
        let with = format!("{tasks} tasks of {} models by batches in one block, {cheap} gas each", models.len());
        let comes_to = format!("{each} gas to draw each, where one to a call {alone} tasks take {dear} and {one}");
        priced("a flood of tasks", &with, &comes_to);
        // In hundredths: gas to draw for each gas to create.
        assert!(each * 100 / cheap < 250, "{each} for {cheap}");
    }
}

/// A task of two models, created in every block, is a draw that no batch makes: each one sent by itself is refused. A `dispatch` before it,
/// in the same block, lets it in, and single tasks need not even that. He has to create it by a batch of its own: while nobody is idle,
/// by `createTask` it is queued at once and holds up nobody.
#[test]
fn batches_are_held_up_only_until_somebody_draws() {
    let mut w = world(60, 1);
    for n in 1..=60 {
        w.call(who(n), 0, |net| net.report_downloaded(ids(vec![901, 902]))).unwrap();
    }
    let batch = |w: &mut World| metered_alone(w, who(50), 16 * FEE, |n| n.create_tasks(vec![spec(0, &[]); 16], &[FEE; 16], true));
    let (mut costs, mut refused, mut drawing, mut through) = (0, 0, 0, 0);
    for block in 0..40 {
        let single = vec![spec(0, &[901, 902])];
        let (gas, created) = metered_alone(&mut w, who(66), 60, |n| n.create_tasks(single, &[60], true));
        assert_eq!(created, "accepted");
        costs += gas;
        w.pass(1, 1);
        let (gas, what) = batch(&mut w);
        assert_eq!(what, "DrawsDue");
        refused += gas;
        if block % 2 > 0 {
            assert_eq!(metered(&mut w, who(51), FEE, |n| n.create_task(spec(0, &[]))).1, "accepted");
        } else {
            drawing += metered_alone(&mut w, who(50), 0, |n| n.dispatch(2)).0;
            let (_, what) = batch(&mut w);
            through += u64::from(what == "accepted");
        }
        // Their own draws are no part of it.
        w.pass(1, 1);
        w.drain();
    }
    assert_eq!(through, 20);
    let comes_to = format!(
        "{} gas for each batch refused, or {} for a dispatch before it, with which all are taken",
        refused / 40,
        drawing / 20
    );
    priced("batches held up", &format!("{} gas and a fee a block", costs / 40), &comes_to);
    // He pays in every block. Whom he holds up pays once a batch, less than twice that.
    assert!(drawing / 20 < costs / 40 * 2, "{drawing} {costs}");
}

/// A hash that had aged out was a free second draw. Now it is known for 393,168 blocks, and every call until then makes the draw.
#[test]
fn a_bad_hash_is_not_waited_out() {
    let mut w = world(8, 1);
    let mut won = 0;
    for _ in 0..200 {
        let id = w.create(50, FEE, spec(0, &[])).unwrap();
        let at = w.view(|n| n.pending_tasks(0, 1)).unwrap()[0].drawBlock;
        w.pass(1, 0);
        let hash = w.mem.block_hash(at).unwrap();
        let node = foretell(&mut w, hash, id, &spec(0, &[])).unwrap();
        // He does not like it, and lets 257 blocks and more go by.
        w.pass(100_000, 1);
        w.dispatch(1).unwrap();
        assert_eq!((w.node(node).task, w.node(node).status), (id, 2));
        won += (node == 1) as u32;
        w.call(who(node as u64), 0, |n| n.submit(TaskId(id), [0; 32])).unwrap();
    }
    priced("a bad hash waited out", "100,000 blocks for each of 200 tasks", &format!("{won} won where 25 are fair"));
    assert!((5..=50).contains(&won), "{won} of 200, an eighth is 25");
}

/// Where the delay was lowered, tasks behind the ring's head had known hashes, which a pause could move. Now it waits until the ring is empty.
#[test]
fn no_draw_is_known_before_its_turn() {
    let mut w = world(8, 64);
    w.create(50, FEE, spec(0, &[])).unwrap();
    refused!(w.raw(OWNER, 0, |m| admin::set_parameter(m, parameter("drawDelay"), Word::from(1))), TasksPending(1u32));
}

/// What was in storage before initialisation could take a stake later. Now nobody but whom the init code named can call anything before.
#[test]
fn nobody_else_installs_or_initialises() {
    let mut w = World::on(Memory::created_by(OWNER));
    refused!(w.raw(who(66), 0, |m| admin::only_deployer(m)), NotOwner(who(66)));
    refused!(w.raw(who(66), 0, |m| admin::initialise(m, &genesis(), &[])), NotOwner(who(66)));
    w.raw(OWNER, 0, |m| admin::only_deployer(m)).unwrap();
    w.raw(OWNER, 0, |m| admin::initialise(m, &genesis(), &[])).unwrap();
    refused!(w.raw(OWNER, 0, |m| admin::only_deployer(m)), AlreadyInitialised);
}

/// 65,534 GPU names of a VRAM size could be used up for good, for gas. Now each costs a hundredth of the minimum stake.
#[test]
fn using_up_gpu_names_costs_a_fee_each() {
    let mut w = world(1, 1);
    w.mem.keep_logs = false;
    w.set("unbonding", 0);
    let before = w.view(|n| n.overview()).treasuryBalance;
    for i in 0..100 {
        w.join(2, &format!("x{i}"), 80, &[], 400).unwrap();
        w.call(who(2), 0, |n| n.quit()).unwrap();
    }
    let spent = w.view(|n| n.overview()).treasuryBalance - before;
    assert_eq!(spent, 400 * TOKEN);
    priced(
        "the GPU names of a VRAM size used up",
        "65,534 names",
        &format!("{} minimum stakes", 65_534 * spent / 100 / (400 * TOKEN)),
    );
}

/// What others hold and queue made an innocent call cost millions: it drew a task of eight models, re-admitted a node and started two
/// more. Now one budget of reads bounds what a call does beside its own purpose.
#[test]
fn no_call_pays_millions_for_what_others_did() {
    for (sets, per) in [(1u64, 8), (1, 16), (3, 16)] {
        let mut w = World::new();
        w.mem.keep_logs = false;
        w.set("alphaMilli", 100_000);
        let honest = 40u64;
        for n in 1..=honest {
            w.join(n, "RTX 4090", 24, &[], 400).unwrap();
        }
        for _ in 0..honest {
            w.create(50_000, FEE, spec(24, &[])).unwrap();
            w.drain();
        }
        // The attacker's nodes: the model in the last of six words of their lists, then removed from it.
        let mut n = 1_000u64;
        for set in 0..sets {
            for i in 0..8u64 {
                for _ in 0..per {
                    let fill: Vec<u64> = (1..=31).map(|k| 5_000_000 + n * 100 + k).collect();
                    let (some, last) = fill.split_at(3 * CALL_MODELS);
                    w.join(n, "old card", 8, &some[..CALL_MODELS], 400).unwrap();
                    for part in some[CALL_MODELS..].chunks(CALL_MODELS) {
                        w.call(who(n), 0, |net| net.report_downloaded(ids(part.to_vec()))).unwrap();
                    }
                    let mut last = last.to_vec();
                    last.push(1 + set * 8 + i);
                    w.call(who(n), 0, |net| net.report_downloaded(ids(last))).unwrap();
                    w.call(who(n), 0, |net| net.report_removed(ids(vec![1 + set * 8 + i]))).unwrap();
                    n += 1;
                }
            }
        }
        let set = |s: u64| -> Vec<u64> { (1..=8).map(|i| s % sets * 8 + i).collect() };
        // Two dear tasks queued, for nodes with 24 GiB, and one Pending for those with 8.
        w.create(66, 2 * FEE, spec(24, &set(1))).unwrap();
        w.create(66, 2 * FEE, spec(24, &set(2))).unwrap();
        w.drain();
        assert_eq!(w.view(|n| n.overview()).queued, 2);
        // A node is held back, because draws were due when its task ended.
        for _ in 0..3 {
            w.create(66, FEE, spec(8, &[])).unwrap();
        }
        w.pass(1, 0);
        let held = w.node(2).task;
        w.call(who(2), 0, |net| net.submit(TaskId(held), [0; 32])).unwrap();
        w.raw(who(9), 0, |m| {
            let mut net = Network::open(m)?;
            net.serve(16);
            net.close();
            Ok(())
        })
        .unwrap();
        w.raw(who(66), FEE, |m| {
            let mut net = Network::open(m)?;
            net.create_task(spec(8, &set(0)))?;
            net.close();
            Ok(())
        })
        .unwrap();
        w.pass(1, 0);
        let victim = w.node(1).task;
        let (gas, done) = metered(&mut w, who(1), 0, |n| n.submit(TaskId(victim), [0; 32]));
        assert_eq!(done, "accepted");
        let left = w.view(|n| n.overview());
        let nodes = sets * 8 * per;
        assert!(left.pending == 0 && left.queued < 2, "it served the others");
        priced(
            "an innocent submit made expensive",
            &format!("{nodes} nodes that held the models and dropped them"),
            &format!("{gas} gas for storage, logs and start"),
        );
        assert!(gas < MOST_GAS, "{gas} with {nodes} hostile nodes");
    }
}

/// Idle nodes with long lists of models, entered for model 7 in the last word, which they have dropped.
fn hollow(nodes: u64) -> World {
    let mut w = world(0, 1);
    w.mem.keep_logs = false;
    for n in 1..=nodes {
        let own: Vec<u64> = (1..32).map(|k| n * 100 + k).chain([7]).collect();
        w.join(n, "RTX 4090", 24, &own[..CALL_MODELS], 400).unwrap();
        for part in own[CALL_MODELS..].chunks(CALL_MODELS) {
            w.call(who(n), 0, |net| net.report_downloaded(ids(part.to_vec()))).unwrap();
        }
        w.call(who(n), 0, |net| net.report_removed(ids(vec![7]))).unwrap();
    }
    w
}

/// Nodes whose long lists say nothing but in their last word make the tries among them give up sooner.
#[test]
fn long_model_lists_do_not_make_a_draw_dearer_without_end() {
    let mut w = hollow(40);
    let most = (0..50u64)
        .map(|i| {
            let hash = w.mem.keccak(&i.to_be_bytes());
            let before = w.mem.reads();
            foretell(&mut w, hash, i, &spec(0, &[7]));
            let after = w.mem.reads();
            after - before
        })
        .max()
        .unwrap();
    assert!(most < 270, "{most}");
}

/// A node that comes back may start a task, so it does not come back in a call that has made a dear draw, but in the next.
#[test]
fn nobody_is_re_admitted_by_a_call_that_has_made_a_dear_draw() {
    for models in [&[][..], &[7]] {
        let mut w = hollow(40);
        w.join(41, "other", 24, &[], 400).unwrap();
        let gpu = w.node(41).gpu;
        let own = w.create(60, FEE, IMuster::TaskSpec { gpu, ..spec(0, &[]) }).unwrap();
        w.drain();
        for models in [&[][..], &[], &[], models] {
            w.create(60, FEE, spec(0, models)).unwrap();
        }
        w.pass(1, 0);
        // Its own call makes two of the draws; it is held back until the others are made.
        w.call(who(41), 0, |net| net.submit(TaskId(own), [0; 32])).unwrap();
        assert_eq!((w.view(|n| n.overview()).pending, w.node(41).parked), (2, 1));
        w.call(who(9), 0, |_| Ok(())).unwrap();
        assert_eq!((w.view(|n| n.overview()).pending, w.node(41).parked), (0, models.len() as u8), "{models:?}");
        w.call(who(9), 0, |_| Ok(())).unwrap();
        assert_eq!(w.node(41).parked, 0);
    }
}

/// Two operators and their start fees: who let a task time out does not earn by expiring it, nor who queued it by ending it.
#[test]
fn nobody_earns_by_what_he_failed_to_do() {
    let mut w = world(1, 0);
    let id = w.create(5, FEE, spec(0, &[])).unwrap();
    let before = w.view(|n| n.overview()).treasuryBalance;
    w.pass(1, 121);
    w.call(who(1), 0, |n| n.expire(NodeId(1), TaskId(id))).unwrap();
    assert_eq!((w.account(1).credit, w.view(|n| n.overview()).treasuryBalance - before), (0, FEE / 50));
}
