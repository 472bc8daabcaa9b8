//! Attacks by an operator with several nodes, or with nodes and tasks of their own; and by two operators together.

mod single {
    use crate::help::single::*;
    use muster_core::id::{NodeId, TaskId, Ticket};
    use muster_core::wad::WAD;
    use muster_model::meter::priced;
    use muster_model::world::*;
    use muster_model::{proof, refused};
    use muster_protocol::host::Host;
    use muster_protocol::store::node::NodeHandle;
    use muster_protocol::IMuster::{self, IMusterEvents as E};
    use std::collections::{BTreeMap, BTreeSet};

    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Trick {
        /// Create only when the last known hash would give the task to the creator's own node.
        Look,
        /// Cancel when it does not look good.
        Cancel,
        /// Once the hash is known and bad, let others drive the draw and never do it oneself.
        Withhold,
        /// Once the hash is known and bad, change the candidates before the draw.
        Reshuffle,
    }

    /// Plays a creator that owns nodes 1 and 2 of eight equal ones and wants node 1. Gives the number of its tasks, of those that node 1
    /// got, and of the blocks it took.
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
                        // The creator's own call draws the task before it changes anything.
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

    /// While no node is idle, the call that creates a task queues it. A creator that frees its own node next has the task run there, if it
    /// is worth more than all queued ones; so it could after a draw, a block later. The creator earns its own fee, and H stays.
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
                w.send(who(66), fee, IMuster::createTasksCall { specs: vec![spec(0, &[])], fees: vec![fee], atomic: true })
                    .unwrap();
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

    /// The gain of node 1 in a busy network of equal nodes: the number of times that H was raised, and of its operator's own tasks that
    /// others ran, with their fees. Either it works like the others, or it does only tasks of its `own`, at this fee. One of these waits in
    /// the queue; as soon as it has waited long enough and is the best, node 1 ends its running task. Others' fees are 1 to 2 tokens.
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
                // Recovery by time alone is not counted.
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

    /// Successes with queued tasks raise H only if those have waited. Nodes that work gain as much H as ever. An operator that steers its
    /// own tasks to its own node through the queue loses most of them to others, which become free first.
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

    /// A draw goes by H at the moment when it is made, and H recovers by the clock. An operator that alone makes draws may wait, with the
    /// hash known, for a second in which its node is drawn. Any call by anybody makes the draw before. The gain of waiting is bounded by
    /// how far H can move: nothing where all recover alike or nobody has timed out.
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
            // Its share at its best weight, of a moment, and never twice that.
            assert!(won[2] <= won[0].max(TASKS / u64::from(NODES)) * 2, "{name}: {won:?}");
        }
        assert_eq!(rows[0].2, [TASKS as usize; 3], "where no H moves, no draw does");
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
}

mod errors {
    use crate::help::errors::*;
    use alloy_primitives::B256;
    use muster_core::id::NodeId;
    use muster_model::meter::priced;
    use muster_model::validated::*;
    use muster_model::world::*;
    use muster_protocol::IMuster::{self, IMusterEvents as E, *};

    /// Another address of the attacker's.
    const HIS_OTHER: u64 = 151;

    /// The act of a member of a group.
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Act {
        Same,
        Other,
        Fails,
        Withholds,
        Late,
    }

    const ACTS: [Act; 5] = [Act::Same, Act::Other, Act::Fails, Act::Withholds, Act::Late];

    /// Plays a group of three to its end: its first reveals its commitment, of this kind, or does not.
    fn play_acts(w: &mut World, id: u64, (place, members): (u32, Vec<u32>), kind: u8, reveals: bool, acts: [Act; 2]) {
        let said = |act| match act {
            Act::Other => (ANSWER, value(2)),
            Act::Fails => (ERROR, B256::ZERO),
            _ => (ANSWER, value(1)),
        };
        for (&n, &act) in members[1..].iter().zip(&acts).filter(|(_, &act)| act != Act::Late) {
            let (kind, value) = said(act);
            commit(w, id, n, kind, value).unwrap();
        }
        w.pass(1, if acts.contains(&Act::Late) { 2_000 } else { 0 });
        if reveals {
            reveal(w, id, place, members[0], kind, if kind == ERROR { B256::ZERO } else { value(1) }).unwrap();
        }
        for (&n, &act) in members[1..].iter().zip(&acts).filter(|(_, act)| !matches!(act, Act::Late | Act::Withholds)) {
            let (kind, value) = said(act);
            reveal(w, id, place, n, kind, value).unwrap();
        }
        if group_of(w, id).is_some() {
            w.pass(1, 7_201);
            w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
        }
    }

    /// A creator whose first node committed to errors paid nothing into the reserve. It took the pay of its other nodes, or of the account
    /// that called the validators, out of it: with nine nodes the reserve was empty after 91 tasks. Now no act of three members and the
    /// caller takes more out of it, in expectation, than such tasks pay in: by every combination of answers, errors, silence and lateness.
    #[test]
    fn nothing_that_a_tasks_nodes_do_lowers_the_reserve() {
        for rate in [500i128, 1_000, 5_000, 10_000] {
            let mut network = network(12);
            network.set("sampleBps", rate as u64);
            fund(&mut network, 1_000);
            let (mut least, before) = ([0; 2], reserve(&mut network));
            for kind in [ANSWER, ERROR] {
                let what = if kind == ERROR { B256::ZERO } else { value(1) };
                // A task whose node has committed, of the lot that is wanted.
                let committed = |is_sampled: bool| {
                    for later in 0..2_000 {
                        let mut w = World { paid_in: network.paid_in, ..World::on(network.mem.clone()) };
                        w.pass(later, 0);
                        let id = created(&mut w, FEE, sampled(&[]));
                        let node = runner(&mut w, id);
                        commit(&mut w, id, node, kind, what).unwrap();
                        w.pass(5, 1);
                        let mut tried = World::on(w.mem.clone());
                        if reveal(&mut tried, id, 0, node, kind, what).is_err() == is_sampled {
                            return (w, id, node);
                        }
                    }
                    panic!("no such lot")
                };
                let (mut unsampled, mut validated) = (0, i128::MAX);
                if rate < 10_000 {
                    let (w, id, node) = committed(false);
                    unsampled = [false, true]
                        .map(|reveals| {
                            let mut w = World { paid_in: w.paid_in, ..World::on(w.mem.clone()) };
                            if reveals {
                                reveal(&mut w, id, 0, node, kind, what).unwrap();
                            } else {
                                w.pass(1, 601);
                                w.send(who(DRIVER), 0, expireCall { node, id }).unwrap();
                            }
                            check_money(&mut w);
                            reserve(&mut w) - before
                        })
                        .into_iter()
                        .min()
                        .unwrap();
                }
                let (w, id, node) = committed(true);
                for caller in [node.into(), DRIVER] {
                    let mut w = World { paid_in: w.paid_in, ..World::on(w.mem.clone()) };
                    let group = called(&mut w, id, node, caller);
                    assert!(w.ask(groupCall { place: group.0 }).scored);
                    for first in [true, false] {
                        for acts in ACTS.into_iter().flat_map(|b| ACTS.map(|c| [b, c])) {
                            let mut w = World { paid_in: w.paid_in, ..World::on(w.mem.clone()) };
                            play_acts(&mut w, id, group.clone(), kind, first, acts);
                            check_money(&mut w);
                            validated = validated.min(reserve(&mut w) - before);
                        }
                    }
                }
                let expected = (10_000 - rate) * unsampled + rate * validated;
                assert!(expected >= 0, "{rate} {kind}: {unsampled} if it is not sampled, {validated} else");
                least[usize::from(kind)] = expected / 10_000;
            }
            if rate == 1_000 {
                priced(
                    "the reserve drained by a task's own nodes",
                    "whatever its three members commit to, reveal or let pass, and whoever calls them",
                    &format!(
                        "in expectation it grows with each task: by {} of a fee at the least, or {} where the first commits an error",
                        percent(least[0], FEE),
                        percent(least[1], FEE)
                    ),
                );
            }
        }
    }

    /// One node, a model that exists nowhere, an error as its commitment: others' errors are all the same to it.
    #[test]
    fn one_node_and_a_made_up_model_take_nothing_out_of_the_reserve() {
        const TASKS: u32 = 150;
        let mut w = beside(19, 1);
        fund(&mut w, 20);
        let (node, before, start) = (20, reserve(&mut w), w.mem.now);
        let mut sampled_ones = 0;
        for _ in 0..TASKS {
            let id = created_by(&mut w, ATTACKER, FEE, sampled(&[PRIVATE]));
            assert_eq!(runner(&mut w, id), node, "the only holder");
            commit(&mut w, id, node, ERROR, B256::ZERO).unwrap();
            w.pass(3, 1);
            if reveal(&mut w, id, 0, node, ERROR, B256::ZERO).is_err() {
                sampled_ones += 1;
                let (place, members) = called(&mut w, id, node, HIS_OTHER);
                judged(&mut w, id, place, &members, |_| (ERROR, B256::ZERO));
            }
            assert!(reserve(&mut w) >= before);
            // It rests.
            w.pass(20, 60);
            w.dispatch(0).unwrap();
            w.mem.logs.clear();
        }
        check_money(&mut w);
        let lost = u128::from(TASKS) * FEE - owed(&mut w, [20, ATTACKER, HIS_OTHER]);
        assert_eq!(
            lost,
            u128::from(TASKS - sampled_ones) * START_FEE,
            "his other address has the start fees of those that were sampled"
        );
        assert!(sampled_ones > 5, "{sampled_ones}");
        assert!((1..=20).all(|n| w.node(n).scores == 0 && w.node(n).stake == 400 * TOKEN));
        let minutes = (w.mem.now - start) / 60;
        priced(
            "the reserve drained by errors of one's own node",
            &format!(
                "one node that alone holds a made-up model, {TASKS} tasks in {minutes} minutes, {sampled_ones} of them sampled"
            ),
            &format!("nothing of the reserve; {} of each fee lost", percent((lost / u128::from(TASKS)) as i128, FEE)),
        );
    }

    /// Nine nodes with a VRAM size of their own are the whole scope of image tasks that ask for it, in which nobody is slashed. The first
    /// commits to an error. It reveals the error if it is not sampled, and reveals or withholds it otherwise.
    #[test]
    fn nine_nodes_with_a_vram_of_their_own_take_nothing_out_of_the_reserve() {
        const TASKS: u32 = 120;
        for withholds in [false, true] {
            let mut w = network(20);
            (101..110).for_each(|n| assert!(w.join(n, "Mine", 900, &[], 400).is_ok()));
            fund(&mut w, 20);
            let before = reserve(&mut w);
            let mut sampled_ones = 0;
            for _ in 0..TASKS {
                let wanted = IMuster::TaskSpec { kind: 0, units: 1, redundancy: 1, ..spec(900, &[]) };
                let id = created_by(&mut w, ATTACKER, FEE, wanted);
                let node = runner(&mut w, id);
                let operator = w.node(node).operator.into_array();
                let hash = commitment(id, node, ERROR, B256::ZERO, salt(id, node));
                w.send(operator, 0, commitCall { id, commitment: hash }).unwrap();
                w.pass(3, 1);
                if reveal(&mut w, id, 0, node, ERROR, B256::ZERO).is_err() {
                    sampled_ones += 1;
                    let (place, members) = called(&mut w, id, node, HIS_OTHER);
                    assert!(w.ask(groupCall { place }).scored);
                    judged(&mut w, id, place, &members[1..], |_| (ANSWER, picture(7)));
                    if withholds {
                        w.pass(1, 7_201);
                        w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
                    } else {
                        reveal(&mut w, id, place, node, ERROR, B256::ZERO).unwrap();
                    }
                }
                assert!(reserve(&mut w) >= before);
                w.pass(2, 6);
                w.mem.logs.clear();
            }
            check_money(&mut w);
            assert!(sampled_ones > 5, "{sampled_ones}");
            let lost = u128::from(TASKS) * FEE - owed(&mut w, (101..110).chain([ATTACKER, HIS_OTHER]));
            assert_eq!(lost, u128::from(TASKS - sampled_ones) * START_FEE);
            let done = if withholds { "withholds its error" } else { "reveals its error" };
            priced(
                "the reserve drained by a scope of one's own",
                &format!("nine nodes of a VRAM size of their own, {TASKS} tasks for images, whose first {done} if it is sampled"),
                &format!("nothing of the reserve; {} of each fee lost", percent((lost / u128::from(TASKS)) as i128, FEE)),
            );
        }
    }

    /// The lot is as fair as the hash. An operator that is alone in the deciding block, or orders all blocks, can have each of its own tasks
    /// sampled, in a scope of its own nodes. That takes the pay of a check above the task's own fee out of the reserve. No stake and no fee of
    /// others is in it.
    #[test]
    fn who_chooses_the_hash_of_a_lot_takes_the_reserve() {
        const FEES: u128 = 20;
        let mut w = network(20);
        (101..110).for_each(|n| assert!(w.join(n, "Mine", 900, &[], 400).is_ok()));
        fund(&mut w, FEES);
        let mut tasks = 0u32;
        while reserve(&mut w) > 1 {
            tasks += 1;
            assert!(tasks < 100);
            let tried = (0..2_000).find_map(|later| {
                let mut w = World { paid_in: w.paid_in, ..World::on(w.mem.clone()) };
                w.pass(later, 0);
                let wanted = IMuster::TaskSpec { kind: 0, units: 1, redundancy: 1, ..spec(900, &[]) };
                let id = created_by(&mut w, ATTACKER, FEE, wanted);
                let node = runner(&mut w, id);
                let operator = w.node(node).operator.into_array();
                let hash = commitment(id, node, ANSWER, picture(7), salt(id, node));
                w.send(operator, 0, commitCall { id, commitment: hash }).unwrap();
                w.pass(3, 1);
                let is_sampled = reveal(&mut World::on(w.mem.clone()), id, 0, node, ANSWER, picture(7)).is_err();
                is_sampled.then_some((w, id, node))
            });
            let (then, id, node) = tried.expect("one of these hashes");
            w = then;
            let (place, members) = called(&mut w, id, node, HIS_OTHER);
            assert!(members.iter().all(|&n| n > 20) && w.ask(groupCall { place }).scored);
            judged(&mut w, id, place, &members, |_| (ANSWER, picture(7)));
            w.pass(2, 6);
            w.dispatch(0).unwrap();
            w.mem.logs.clear();
        }
        check_money(&mut w);
        let gained = owed(&mut w, (101..110).chain([ATTACKER, HIS_OTHER])) - u128::from(tasks) * FEE;
        let each = percent((gained / u128::from(tasks)) as i128, FEE);
        priced(
            "the reserve taken by who chooses the hash of the lot",
            &format!("nine nodes of a VRAM size of their own, alone in {tasks} blocks; a reserve of {FEES} fees"),
            &format!("all of the reserve, {each} of a fee for each task"),
        );
        // Three payments less what is left of the fee: 1.47 fees.
        assert_eq!((gained, tasks), (FEES * FEE - 1, 14));
        // Nobody else has lost anything.
        assert!((1..=20).all(|n| w.node(n).stake == 400 * TOKEN));
    }

    /// The outcome of tasks that only the attacker's nodes can answer.
    struct Farmed {
        /// The share of the attacker's nodes in all weight before and after.
        share: [f64; 2],
        /// Fees paid, and the part that others, the reserve and the protocol keep.
        paid: u128,
        kept: u128,
    }

    /// Has the attacker create so many tasks that only its own nodes can answer; honest ones say that they cannot.
    fn farm(w: &mut World, (honest, own): (u32, u32), policy: u8, fee: u128, tasks: u32) -> Farmed {
        let before = share(w, honest, own);
        let is_own = |n: u32| n > honest;
        let says = |n: u32| if is_own(n) { (ANSWER, value(1)) } else { (ERROR, B256::ZERO) };
        let credit = owed(w, (u64::from(honest) + 1..=u64::from(honest + own)).chain([ATTACKER, HIS_OTHER]));
        for _ in 0..tasks {
            let wanted = if policy == 1 { sampled(&[PRIVATE]) } else { for_three(&[PRIVATE]) };
            let id = w.create(ATTACKER, fee, wanted).unwrap();
            let (place, members) = if policy == 1 {
                let node = runner(w, id);
                let (kind, what) = says(node);
                commit(w, id, node, kind, what).unwrap();
                w.pass(3, 1);
                if reveal(w, id, 0, node, kind, what).is_ok() {
                    w.pass(1, 1);
                    continue;
                }
                called(w, id, node, HIS_OTHER)
            } else {
                grouped(w, id)
            };
            w.events();
            judged(w, id, place, &members, says);
            for event in w.events() {
                match event {
                    E::NodeKickedOut(_) => panic!("somebody was kicked out"),
                    E::ScoreRecorded(s) => assert!(is_own(s.node) && s.score > 0, "{s:?}"),
                    E::MemberJudged(m) => assert!(is_own(m.node) || m.paid == 0),
                    _ => {}
                }
            }
            w.pass(1, 1);
            w.dispatch(0).unwrap();
        }
        check_money(w);
        let credit = owed(w, (u64::from(honest) + 1..=u64::from(honest + own)).chain([ATTACKER, HIS_OTHER])) - credit;
        let paid = u128::from(tasks) * fee;
        Farmed { share: [before, share(w, honest, own)], paid, kept: paid - credit }
    }

    /// Gives all nodes a pool of fifty scores of an honest life: 10, 5 or 2 at random.
    fn seasoned(w: &mut World, nodes: u32) {
        let mut dice = Dice(3);
        for n in 1..=nodes {
            w.call(OWNER, 0, |net| {
                (0..50).for_each(|_| net.record_score(NodeId(n), [10, 5, 2][dice.below(3) as usize]));
                Ok(())
            })
            .unwrap();
        }
        w.events();
    }

    /// Honest nodes' errors were scored 0 where two of the attacker's agreed: three of 23 passed a third of all weight by the hundredth
    /// task, and ten honest ones were kicked out by the 2,470th. Now an error is not scored, and only the scores of the attacker's own
    /// nodes are left.
    #[test]
    fn tasks_that_only_ones_own_nodes_can_answer_score_nobody_else() {
        let mut told = Vec::new();
        for (full, policy, own, tasks) in [(false, 2, 3, 300), (true, 2, 3, 300), (true, 1, 5, 400)] {
            let mut w = beside(20, own);
            if full {
                seasoned(&mut w, 20 + own as u32);
            }
            let f = farm(&mut w, (20, own as u32), policy, 180, tasks);
            println!("policy {policy}, {own} own, full {full}: {:.3} to {:.3}", f.share[0], f.share[1]);
            assert!(f.share[1] < 0.33, "{}", f.share[1]);
            let pools = if full { "full" } else { "empty" };
            told.push(format!(
                "policy {policy}, {own} beside 20, {pools} pools, {tasks} tasks: {:.3} to {:.3} for {} of the fees",
                f.share[0],
                f.share[1],
                percent(f.kept as i128, f.paid)
            ));
        }
        priced(
            "weight taken over by tasks that only one's own nodes can answer",
            "a model that others do not hold",
            &format!("nobody kicked out, no other score; part of all weight: {}", told.join("; ")),
        );
    }

    /// Fifty tens for one node by tasks that nobody else can run, its other nodes saying the same later.
    #[test]
    fn fifty_tens_for_tasks_that_nobody_else_can_run_are_not_free() {
        let mut told = Vec::new();
        for own in [4u64, 2] {
            let honest = 20 - own;
            let (mut w, star) = (beside(honest, own), honest as u32 + 1);
            let fee = FEE;
            let (mut paid, mut tasks) = (0u128, 0u32);
            while w.node(star).scores < 50 || w.node(star).longTerm < 1_000_000_000_000_000_000 {
                tasks += 1;
                assert!(tasks < 4_000);
                paid += fee;
                let id = w.create(ATTACKER, fee, for_three(&[PRIVATE])).unwrap();
                let (place, mut members) = grouped(&mut w, id);
                members.sort_by_key(|&n| n != star);
                for (i, &n) in members.iter().enumerate() {
                    w.pass(1, u64::from(i == 1));
                    let (kind, what) = if u64::from(n) > honest { (ANSWER, value(1)) } else { (ERROR, B256::ZERO) };
                    commit(&mut w, id, n, kind, what).unwrap();
                }
                w.events();
                judged(
                    &mut w,
                    id,
                    place,
                    &members,
                    |n| if u64::from(n) > honest { (ANSWER, value(1)) } else { (ERROR, B256::ZERO) },
                );
                assert!(w.events().iter().all(|e| !matches!(e, E::ScoreRecorded(s) if u64::from(s.node) <= honest)));
                w.pass(1, 1);
                w.dispatch(0).unwrap();
            }
            check_money(&mut w);
            let kept = paid - owed(&mut w, (honest + 1..=20).chain([ATTACKER]));
            told.push(format!(
                "{own} of 20: {tasks} tasks, {:.1} of their fees lost, {} of each",
                kept as f64 / fee as f64,
                percent((kept / u128::from(tasks)) as i128, fee)
            ));
            assert!(kept > u128::from(tasks) * fee / 100, "{kept}");
        }
        priced("fifty tens", "tasks for three that nobody else can run", &told.join("; "));
    }
}

mod sampled {
    use crate::help::sampled::*;
    use muster_model::meter::priced;
    use muster_model::validated::*;
    use muster_model::world::*;
    use muster_protocol::IMuster::{IMusterEvents as E, *};

    /// Slashing was off below `scorePool` active nodes at the commitment. A liar's other nodes left, or paused until draws had set them
    /// aside, and were back before the judgement: 120 tokens became nothing. Now the joined nodes count, paused ones too, when the task is
    /// created.
    #[test]
    fn who_leaves_or_pauses_before_a_commitment_switches_no_slash_off() {
        const LIAR: u32 = 1;
        let mut rows = Vec::new();
        for way in ["stay", "leave", "pause"] {
            let mut w = all_sampled(12);
            if way == "pause" {
                for n in 2..=5 {
                    w.send(who(n), 0, pauseCall {}).unwrap();
                }
                // Draws of validators set them aside.
                for _ in 0..100 {
                    if w.ask(activeNodesCall { group: CARD, class: 0, from: 0, count: 0 }).total == 8 {
                        break;
                    }
                    let id = created(&mut w, FEE, wanted(&[]));
                    let node = runner(&mut w, id);
                    answered(&mut w, id, node, 1);
                }
            }
            let id = task_on(&mut w, LIAR, FEE);
            if way == "leave" {
                for n in 2..=5 {
                    w.send(who(n), 0, quitCall {}).unwrap();
                }
            }
            let active = w.ask(activeNodesCall { group: CARD, class: 0, from: 0, count: 0 }).total;
            assert_eq!(active, if way == "stay" { 12 } else { 8 }, "{way}");
            w.events();
            commit_as(&mut w, id, LIAR, 9);
            // Back at once, with other stakes or the same.
            for n in 2..=5 {
                match way {
                    "leave" => drop(w.join(100 + n, "RTX 4090", 24, &[], 400).unwrap()),
                    "pause" => w.send(who(n), 0, resumeCall {}).map(drop).unwrap(),
                    _ => {}
                }
            }
            let group = called(&mut w, id, LIAR);
            let burnt = judged(&mut w, id, &group, 9);
            let scored: Vec<u8> = w
                .events()
                .iter()
                .filter_map(|e| if let E::ScoreRecorded(s) = e { (s.node == LIAR).then_some(s.score) } else { None })
                .collect();
            assert_eq!((burnt, scored), (SLASH_TIMES * LEFT, vec![0]), "{way}");
            check_money(&mut w);
            rows.push(format!("{way}: {:.1} tokens", burnt as f64 / TOKEN as f64));
        }
        priced(
            "a liar's other nodes gone before its commitment, and back before the judgement",
            "four of twelve nodes; a fee of 6 tokens",
            &format!("burnt if they {}", rows.join(", ")),
        );
    }

    /// Paused nodes count, but where fewer than two thirds of `scorePool` are active nobody is slashed: two colluding ones of three would have the
    /// third thrown out, for gas. Of six they are two of three in one group in five, as elsewhere.
    #[test]
    fn where_most_nodes_pause_the_few_left_slash_nobody() {
        const ACCOMPLICES: [u32; 2] = [1, 2];
        let mut rows = Vec::new();
        for honest in [1u64, 4] {
            let active = 2 + honest;
            let mut w = all_sampled(12);
            for n in active + 1..=12 {
                w.send(who(n), 0, pauseCall {}).unwrap();
            }
            for _ in 0..100 {
                if u64::from(w.ask(activeNodesCall { group: CARD, class: 0, from: 0, count: 0 }).total) == active {
                    break;
                }
                let id = created(&mut w, FEE, wanted(&[]));
                let node = runner(&mut w, id);
                answered(&mut w, id, node, 1);
            }
            let mem = w.mem.clone();
            let (groups, mut won, mut cost, mut burnt) = (100u64, 0u64, 0i128, 0u128);
            for seed in 0..groups {
                w.mem = mem.clone();
                w.pass(seed, 0);
                let his = |w: &mut World| [1, 2, ATTACKER, DRIVER].map(|n| w.account(n).credit).iter().sum::<u128>() as i128;
                let before = his(&mut w);
                let id = created_by(&mut w, ATTACKER, FEE, wanted(&[]));
                let node = runner(&mut w, id);
                let is_his = |n: &u32| ACCOMPLICES.contains(n);
                commit_as(&mut w, id, node, if is_his(&node) { 9 } else { 1 });
                let (place, members) = called(&mut w, id, node);
                // They lie where they are two, and tell the truth otherwise.
                let lies = members.iter().filter(|n| is_his(n)).count() == 2;
                if is_his(&node) && !lies {
                    continue;
                }
                let answer = |n: u32| if lies && is_his(&n) { 9 } else { 1 };
                members[1..].iter().for_each(|&n| commit_as(&mut w, id, n, answer(n)));
                members.iter().for_each(|&n| reveal(&mut w, id, place, n, ANSWER, value(answer(n))).unwrap());
                if lies {
                    won += 1;
                    cost += FEE as i128 + before - his(&mut w);
                    burnt += w.ask(overviewCall {}).burnt;
                }
            }
            rows.push((
                won,
                burnt,
                format!(
                    "{active} active: {won} of {groups} groups, {:.1} tokens burnt in each for {:.1} % of the fee",
                    burnt as f64 / won as f64 / TOKEN as f64,
                    cost as f64 * 100.0 / won as f64 / FEE as f64
                ),
            ));
        }
        let told: Vec<&str> = rows.iter().map(|(.., told)| told.as_str()).collect();
        priced("honest nodes slashed where most nodes pause", "two colluding nodes; twelve joined", &told.join("; "));
        assert!(rows[0].0 > 4 * rows[1].0, "{told:?}");
        assert_eq!((rows[0].1, rows[1].1 > 0), (0, true), "{told:?}");
    }
}

mod replicated {
    use crate::help::replicated::*;
    use muster_core::wad::WAD;
    use muster_model::meter::priced;
    use muster_model::validated::*;
    use muster_model::world::*;
    use muster_protocol::IMuster::{self, IMusterEvents as E, *};

    /// While no node was idle, two colluding ones could choose their third. They gave the same false answer to a task of their own of the
    /// highest fee, which came back whole. The honest third lost a third of its stake and its place in the network. Now a group is scored
    /// only if it was drawn among enough candidates. Nobody loses anything, and the honest one is merely not paid.
    #[test]
    fn two_nodes_have_nobody_slashed_while_no_node_is_idle() {
        // The highest fee that the least stake covers.
        let fee = 375 * TOKEN / 60 * 3;
        for i in 0..7 {
            let mut w = network(9);
            // Nodes 1 and 2 are the attacker's and paused; seven honest ones are busy, with the least work there is if the attacker pays
            // it.
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

    /// Three nodes of one operator scored and boosted each other with the operator's own tasks, whose fees came back whole: fifty made
    /// Q_long 1. Now groups of so few candidates score nobody, however often.
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

    /// Two nodes of two other listed GPU groups kept a queue's two places for waiting nodes. A task for equal answers and any GPU never got
    /// three: nothing in 8,000 seconds, where it took 30. Now nodes of each GPU group wait for themselves, and it takes as long as ever.
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

    /// The operator of the third node of a card, paused, made the other two wait a minute after every task: half of their time, for the
    /// start fee of one task in six hours. Now a node that has waited in vain does not wait again for nine times as long. 648 tasks of 720
    /// are done, for 0.06 of a fee, and tasks of other scopes and grades take no more of them.
    #[test]
    fn nodes_wait_in_vain_a_tenth_of_their_time_at_most() {
        let (single, hours) = (TOKEN, 6);
        let (mut done, mut paid) = (Vec::new(), 0);
        // One task for three that can never begin, or one for each of the grades and scopes there are.
        for attacks in [0, 1, 4] {
            let mut w = network(3);
            // Tasks above the queue's capacity would be evicted by the call that creates them.
            w.set("alphaMilli", 10_000);
            w.send(who(3), 0, pauseCall {}).unwrap();
            let mut count = 0;
            busy(&mut w, 2);
            let begun = w.paid_in;
            // Worth a hundredth more than the tasks there are for one.
            let all =
                [IMuster::TaskSpec { gpu: CARD, ..alike(0) }, alike(0), IMuster::TaskSpec { gpu: CARD, ..image(0) }, image(0)];
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

    /// A node that waited for a group was held for hours. Again and again three were reserved for it, one of them the attacker's, which the
    /// attacker paused before the draw. The node waited anew, past work that it would have taken. All was refunded: 26,000 s for two
    /// deposits and eight calls a minute. Now such a wait counts as one in vain, and in each of 500 rounds the node does a task.
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

    /// The work of a node in six hours while an attacker uses its freed moments. Two small nodes are there whenever it looks for work, with
    /// a task that is worth more and takes all three, and one of them pauses before the draw. The others call every so many blocks of two
    /// seconds, and the attacker is first in so many of a hundred of them. Gives tasks done, seconds reserved, and the attacker's calls.
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
            // A hundredth more for each node and second than others' fees.
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

    /// A freed node was called up again and again with idle ones that paused before each draw: it did one task of 360 in six hours, for gas
    /// alone. Now a reservation in vain counts as waiting in vain: for nine times as long the node takes any work.
    #[test]
    fn a_freed_node_does_its_work_whoever_pauses_before_draws() {
        let mut rows = Vec::new();
        for (grade, every, first, hold) in [
            (2, 1, 100, 60),
            (3, 1, 100, 60),
            (3, 5, 100, 60),
            (3, 10, 100, 60),
            (3, 10, 80, 60),
            (3, 10, 50, 60),
            (2, 5, 100, 0),
        ] {
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
}

mod rated {
    use crate::help::rated::*;
    use muster_core::id::TaskId;
    use muster_core::wad::WAD;
    use muster_model::meter::{metered_alone, priced, MOST_GAS};
    use muster_model::validated::*;
    use muster_model::world::*;
    use muster_protocol::IMuster::{self, IMusterEvents as E, *};

    /// Another VRAM size than that of [`CARD`].
    const LARGE: u16 = 48;

    /// Others' tasks in a network whose nodes up to `own` are an attacker's, and answer falsely as soon as they have the majority. Gives
    /// the number of false answers of 20.
    fn falsified(w: &mut World, own: impl Fn(u32) -> bool) -> u32 {
        let mut won = 0;
        for _ in 0..20 {
            let id = created_by(w, CREATOR, FEE, rated());
            let (place, members) = group_of(w, id).expect("formed");
            let majority = 2 * members.iter().filter(|&&n| own(n)).count() > members.len();
            play(w, id, place, &members, |n| if own(n) && majority { value(66) } else { value(1) });
            won += u32::from(settled(w).answer == value(66));
            w.pass(1, 1);
        }
        won
    }

    /// First-fit takes the best rated of a pool, and in a network of up to 32 idle nodes the pool is everybody. An operator with two of the
    /// three best rated has every group of three, and keeps it. Where all begin alike, luck decides the first best. The operator's own
    /// tasks for random groups, answered falsely where two of three nodes are its own, make it certain.
    #[test]
    fn ratings_farmed_among_others() {
        let mut rows = Vec::new();
        for (own, all) in [(3u32, 12u32), (6, 18), (9, 32)] {
            for tasks in [0u32, 50, 400] {
                let (mut won, mut paid) = (0, 0);
                for seed in 0..5 {
                    let mut w = network(u64::from(all));
                    w.pass(1 + seed * 1_000, 0);
                    set_profile(&mut w, ATTACKER, Profile { algorithm: 0, ..of_size(3) });
                    for _ in 0..tasks {
                        let id = created_by(&mut w, ATTACKER, FEE, rated());
                        let (place, members) = group_of(&mut w, id).expect("formed");
                        let ours = members.iter().filter(|&&n| n <= own).count();
                        play(&mut w, id, place, &members, |n| if n <= own && ours >= 2 { value(66) } else { value(1) });
                        w.events();
                        w.pass(1, 1);
                    }
                    paid += (own + 1..=all).map(|n| w.account(n.into()).credit).sum::<u128>();
                    won += falsified(&mut w, |n| n <= own);
                    check_money(&mut w);
                }
                rows.push((own, all, tasks, won, paid / FEE / 5));
                println!("{:?}", rows.last().unwrap());
            }
        }
        let told = |own| {
            let of: Vec<String> = rows
                .iter()
                .filter(|r| r.0 == own)
                .map(|(.., tasks, won, paid)| format!("{won} after {tasks} that cost {paid} fees"))
                .collect();
            of.join(", ")
        };
        priced(
            "false answers to others' First-fit tasks after tasks of one's own for random groups of three",
            "3 of 12 nodes, 6 of 18, 9 of 32, whose false answers win where they are two of three; elsewhere the fee goes to others",
            &format!("of 100 tasks each: {} / {} / {}", told(3), told(6), told(9)),
        );
        assert!(rows.iter().all(|&(.., tasks, won, _)| tasks < 400 || won == 100), "{rows:?}");
    }

    /// Tasks without a right answer, as honest nodes answer them, halved everybody's ratings, for start fees. Then three newcomers were the
    /// best rated, and 20 of 20 of others' tasks had false answers. And where two or three of the attacker's own said the same among nine,
    /// the Optimistic heuristic held those right and all others wrong. Now an answer that no majority contradicts rates nobody.
    #[test]
    fn tasks_without_a_right_answer_change_no_rating() {
        const HONEST: u32 = 20;
        let mut rows = Vec::new();
        for (own, tasks) in [(0u32, 12u64), (2, 10), (3, 10)] {
            let mut w = seasoned(HONEST.into());
            for n in 1..=own {
                w.join((HONEST + n).into(), "RTX 4090", 24, &[], 400).unwrap();
            }
            let is_own = |n: u32| n > HONEST;
            set_profile(&mut w, ATTACKER, Profile { reschedules: 8, algorithm: 0, ..of_size(9) });
            let before = ratings(&mut w, 1..=HONEST + own);
            let (mut groups, mut cost) = (0, 0);
            for number in 0..tasks {
                let (g, c) = without_right_answer(&mut w, is_own, number);
                (groups, cost) = (groups + g, cost + c);
            }
            assert_eq!(groups, 9 * tasks as u32);
            assert_eq!(cost, u128::from(tasks) * (FEE - left_after(9)));
            assert_eq!(ratings(&mut w, 1..=HONEST + own), before, "{own} own");
            // Newcomers, where none of the attacker's own was there before.
            let (own, later) = if own == 0 { (3, "newcomers") } else { (own, "of his own among them") };
            for n in 1..=own {
                let _ = w.join((HONEST + n).into(), "RTX 4090", 24, &[], 400);
            }
            set_profile(&mut w, CREATOR, USUAL);
            let won = falsified(&mut w, is_own);
            check_money(&mut w);
            let fees = cost as f64 / FEE as f64;
            rows.push((won, format!("{own} {later}, {tasks} tasks, {groups} groups that cost {fees:.2} fees: {won} of 20")));
        }
        let told: Vec<&str> = rows.iter().map(|(_, told)| told.as_str()).collect();
        priced(
            "ratings ruined by tasks without a right answer",
            "groups of nine among 20 nodes that have worked well; then 20 First-fit tasks of others",
            &format!("no rating changes; false answers: {}", told.join("; ")),
        );
        assert!(rows.iter().all(|&(won, _)| won == 0), "{rows:?}");
    }

    /// Images are scored in any GPU group, and a group of one's own has no other nodes: there a rating costs gas only, and a node takes it
    /// along to another GPU.
    #[test]
    fn a_rating_farmed_among_ones_own_goes_along_to_another_gpu() {
        const OWN: u64 = 9;
        let mut w = network(23);
        // The others have worked well.
        set_profile(&mut w, CREATOR, of_size(9));
        for _ in 0..10 {
            let id = created_by(&mut w, CREATOR, FEE, rated());
            let (place, members) = group_of(&mut w, id).expect("formed");
            play(&mut w, id, place, &members, |_| value(1));
            w.pass(1, 1);
        }
        for n in 0..OWN {
            w.join(24 + n, "mine", 24, &[], 400).unwrap();
        }
        let mine = w.node(24).gpu;
        set_profile(&mut w, ATTACKER, of_size(9));
        let before = w.account(ATTACKER).credit + (0..OWN).map(|n| w.account(24 + n).credit).sum::<u128>();
        let mut spent = 0;
        for _ in 0..31 {
            let id = created_by(&mut w, ATTACKER, FEE, IMuster::TaskSpec { units: 1, ..rated_image(mine, 0) });
            spent += FEE;
            let (place, members) = group_of(&mut w, id).expect("formed");
            assert!(w.ask(groupCall { place }).scored, "images need no listed GPU");
            play(&mut w, id, place, &members, |_| picture(5));
            w.pass(1, 1);
        }
        let after = (0..OWN).map(|n| w.account(24 + n).credit).sum::<u128>();
        assert_eq!(after - before, spent, "all fees are his again");
        let best = (1..=23).map(|n| w.node(n).rating).max().unwrap();
        let farmed = w.node(24).rating;
        for n in 0..OWN {
            w.send(who(24 + n), 0, quitCall {}).unwrap();
            w.join(24 + n, "RTX 4090", 24, &[], 400).unwrap();
            assert_eq!(w.node(24 + n as u32).rating, farmed, "it came along");
        }
        set_profile(&mut w, CREATOR, USUAL);
        let won = falsified(&mut w, |n| n > 23);
        check_money(&mut w);
        priced(
            "a rating farmed in a GPU group of one's own and taken along",
            "nine nodes, the price of a GPU name, gas of 31 tasks, and a second stake of each while the first unbonds",
            &format!(
                "{:.3} against {:.3} of the best of 23 who have worked well; {won} of 20 others' tasks have false answers",
                farmed as f64 / WAD as f64,
                best as f64 / WAD as f64
            ),
        );
        assert!(farmed > best && won == 20, "{farmed} {best} {won}");
    }

    /// In a group of four, six or eight, half is enough to prevent a majority. An application with half of the nodes reads the others'
    /// answers, and gets its fee back less a start fee for each group that has worked.
    #[test]
    fn half_of_an_even_group_makes_the_others_work_for_nothing() {
        let mut w = network(12);
        set_profile(&mut w, ATTACKER, Profile { reschedules: 8, ..of_size(4) });
        // Farmed before: the two best rated are the attacker's, so First-fit takes them each time.
        let his = |n: u32| n <= 2;
        let mut id = 0;
        let (mut worked, mut groups, mut kept) = (0, 0, 0);
        let before = w.ask(overviewCall {}).treasuryBalance;
        while groups < 9 {
            if id == 0 {
                for n in [1, 2] {
                    rate(&mut w, n);
                }
                id = created_by(&mut w, ATTACKER, FEE, rated());
            } else {
                w.pass(1, 1);
                w.dispatch(16).unwrap();
            }
            let (place, members) = group_of(&mut w, id).expect("formed");
            assert_eq!(members.iter().filter(|&&n| his(n)).count(), 2);
            groups += 1;
            worked += members.len() - 2;
            play(&mut w, id, place, &members, |n| if his(n) { value(66) } else { value(1) });
            let s = settled(&mut w);
            assert_eq!(s.outcome, if groups < 9 { 4 } else { 2 });
            kept = s.refund;
        }
        let paid = w.ask(overviewCall {}).treasuryBalance - before;
        assert_eq!((kept, paid), (left_after(9), FEE - left_after(9)));
        assert!(w.node(1).rating > WAD / 2, "nor do their ratings suffer: nobody is rated");
        check_money(&mut w);
        priced(
            "others' work for nothing by half of an even group",
            &format!(
                "the two best rated nodes, groups of four, 8 reschedules, nine start fees: {:.1} % of the fee",
                paid as f64 * 100.0 / FEE as f64
            ),
            &format!("{worked} right answers of others in {groups} groups, none paid"),
        );
    }

    /// Forty idle nodes whose weights are as far below their bounds as can be, of a VRAM size that has no others: a draw of nine hardly ever
    /// finds them. Such draws were made for ever, for nothing takes back a Pending task. Now the sixteenth queues the task.
    #[test]
    fn a_draw_by_ratings_that_finds_too_few_is_made_sixteen_times() {
        let mut w = network(9);
        for n in 10..=49 {
            w.join(n, "worn", LARGE, &[], 401).unwrap();
            wear(&mut w, n as u32);
        }
        set_profile(&mut w, CREATOR, of_size(9));
        let (tasks, mut queued, mut lost) = (20, 0, 0);
        for _ in 0..tasks {
            let id = w.create(CREATOR, FEE, IMuster::TaskSpec { models: six(90_000), ..rated_image(0, LARGE) }).unwrap();
            let before = w.account(CREATOR).credit;
            w.events();
            let mut draws = 0;
            while w.ask(overviewCall {}).pending > 0 {
                w.pass(1, 0);
                w.dispatch(1).unwrap();
                draws += 1;
                assert!(draws <= 16, "it goes on for ever");
            }
            let redrawn = w.events().iter().filter(|e| matches!(e, E::TaskRedrawn(_))).count();
            if let Some((place, members)) = group_of(&mut w, id) {
                assert!(redrawn < draws);
                play(&mut w, id, place, &members, |_| picture(5));
                w.drain();
                continue;
            }
            queued += 1;
            assert_eq!((draws, redrawn), (16, 15));
            let ticket = w.ticket(id);
            w.send(who(CREATOR), 0, cancelCall { id, ticket }).unwrap();
            lost = FEE - (w.account(CREATOR).credit - before);
        }
        check_money(&mut w);
        priced(
            "others' draws by ratings that find too few nodes",
            "forty idle nodes with the worst scores, H just above exclusion and a stake just above the least, at a VRAM size without others",
            &format!(
                "{queued} of {tasks} tasks for nine are queued after sixteen draws; to cancel one costs its creator {:.0} % of its fee",
                lost as f64 * 100.0 / FEE as f64
            ),
        );
        assert!(queued >= tasks - 1, "{queued}");
    }

    /// Two nodes that are reserved for a draw by ratings are called to validate. The next undecided draw lets them go, so the group that they
    /// are called to does not wait for draws that may find too few many times more.
    #[test]
    fn a_reserved_node_that_is_called_is_let_go_by_the_next_draw() {
        let mut w = network(1);
        w.set("sampleBps", 10_000);
        // Fillers, so that a task for nine can be created, and is queued.
        for n in 2..=10 {
            w.join(n, "filler", LARGE, &[], 401).unwrap();
        }
        let filler = w.node(2).gpu;
        for _ in 2..=10 {
            created(&mut w, TOKEN, IMuster::TaskSpec { gpu: filler, ..spec(0, &[]) });
        }
        w.drain();
        (2..=10).for_each(|n| wear(&mut w, n));
        // The only one that is idle runs a task that will be validated.
        let sampled = created_by(&mut w, ATTACKER, TOKEN, IMuster::TaskSpec { kind: 0, redundancy: 1, ..spec(0, &[]) });
        assert_eq!(task_of(&mut w, 1), sampled);
        commit(&mut w, sampled, 1, ANSWER, picture(5)).unwrap();
        set_profile(&mut w, CREATOR, of_size(9));
        let id = created(&mut w, FEE, IMuster::TaskSpec { models: six(90_000), ..rated_image(0, LARGE) });
        assert!(w.ticket(id) > 0);
        // Nine join and wait for it together, two of them with great stakes. Then more come than a draw looks at.
        for n in 11..=19 {
            w.join(n, "good", LARGE, &[], if n < 13 { 40_000 } else { 401 }).unwrap();
        }
        assert_eq!(nodes_with(&mut w, 3).len(), 9, "reserved");
        for n in 71..=110 {
            w.join(n, "worn", LARGE, &[], 401).unwrap();
        }
        let issued = w.ask(overviewCall {}).nodesIssued;
        (11..=issued).filter(|&n| !matches!(n, 11 | 12)).for_each(|n| wear(&mut w, n));
        w.pass(3, 1);
        w.send(who(DRIVER), 0, validateCall { id: sampled, node: 1 }).unwrap();
        let (mut called, mut draws, mut began) = (None, 0, 0);
        for _ in 0..40 {
            w.pass(1, 0);
            w.events();
            w.dispatch(1).unwrap();
            for event in w.events() {
                match event {
                    E::MemberCalled(e) if matches!(e.node, 11 | 12) => called = called.or(Some(draws)),
                    E::TaskRedrawn(e) if e.id == id => draws += 1,
                    E::MemberStarted(e) if e.id == sampled && matches!(e.node, 11 | 12) => began += 1,
                    _ => {}
                }
            }
            if began > 0 {
                break;
            }
        }
        let called = called.expect("called while it was reserved");
        println!("called after {called} draws, began after {draws}");
        assert!(began > 0 && draws == called + 1, "{began} {called} {draws}");
        check_money(&mut w);
    }

    /// The judgement of nine members of a rated group that let its deadline pass, each called to another group, with models that it lacks.
    /// Tasks that require so many models each have a draw due then, which queues them. Gives the gas, how many members begin at once, and what
    /// comes of it.
    fn judgement_of_nine_late_and_called(due: &[usize]) -> (u64, usize, String) {
        const OTHERS: std::ops::RangeInclusive<u64> = 10..=14;
        let mut w = network(9);
        w.set("sampleBps", 10_000);
        set_profile(&mut w, CREATOR, of_size(9));
        let id = created(&mut w, FEE, IMuster::TaskSpec { models: six(80_000), ..rated_image(0, 0) });
        let (place, members) = group_of(&mut w, id).expect("formed");
        assert_eq!(members.len(), 9);
        let mut sampled = Vec::new();
        for n in OTHERS {
            let number = w.join(n, "RTX 4090", 24, &[], 400).unwrap();
            let task = created_by(
                &mut w,
                ATTACKER,
                4 * TOKEN,
                IMuster::TaskSpec { models: wanted(n * 100), kind: 0, redundancy: 1, ..spec(0, &[]) },
            );
            assert_eq!(task_of(&mut w, number), task);
            commit(&mut w, task, number, ANSWER, picture(5)).unwrap();
            // It is to validate nothing.
            w.send(who(n), 0, pauseCall {}).unwrap();
            sampled.push((task, number));
        }
        w.pass(3, 1);
        for &(task, number) in &sampled {
            w.send(who(DRIVER), 0, validateCall { id: task, node: number }).unwrap();
            for _ in 0..100 {
                if group_of(&mut w, task).is_some() {
                    break;
                }
                w.pass(3, 0);
                w.dispatch(1).unwrap();
            }
        }
        let called = |w: &mut World| members.iter().filter(|&&n| w.node(n).calledTo > 0).count();
        let before = called(&mut w);
        assert_eq!(before, 9, "each to one group");
        let deadline = members.iter().map(|&n| w.ask(runningTaskCall { number: n }).deadline).max().unwrap();
        let seconds = deadline - w.mem.now + 1;
        for (i, &models) in (0..).zip(due) {
            let node = w.join(100 + i, &format!("card {i}"), 80 + 8 * i as u16, &[], 400).unwrap();
            let gpu = w.node(node).gpu;
            let models = six(70_000 + 10 * i)[..models].to_vec();
            w.create(CREATOR, TOKEN, IMuster::TaskSpec { gpu, models, ..spec(0, &[]) }).unwrap();
            w.send(who(100 + i), 0, pauseCall {}).unwrap();
        }
        w.pass(1, seconds);
        let (gas, out) = metered_alone(&mut w, who(DRIVER), 0, |net| net.settle(TaskId(id), place));
        let began = before - called(&mut w);
        if out != "accepted" {
            return (gas, began, out);
        }
        // Each later call lets one more begin.
        for left in (0..9 - began).rev() {
            w.pass(1, 0);
            w.dispatch(1).unwrap();
            assert_eq!(called(&mut w), left);
        }
        check_money(&mut w);
        (gas, began, out)
    }

    /// The call that judges them lets three begin, and none where it has made draws; the others do with later calls. It makes some draws,
    /// which queue their tasks here, and is refused while more are due.
    #[test]
    fn a_judgement_of_nine_who_are_late_and_called_stays_below_the_limit() {
        let (alone, began, out) = judgement_of_nine_late_and_called(&[]);
        assert_eq!((began, &out[..]), (3, "accepted"));
        let mut worst = 0;
        let most_made = [0, 6].map(|models| {
            let made = (1..=8).take_while(|&due| {
                let (gas, began, out) = judgement_of_nine_late_and_called(&vec![models; due]);
                println!("{due} of {models} models: {gas} gas, {out}");
                worst = gas.max(worst);
                if out == "DrawsDue" {
                    return false;
                }
                assert_eq!((began, &out[..]), (0, "accepted"));
                true
            });
            made.count()
        });
        let [plain, several] = most_made;
        priced(
            "a judgement of nine late members, each called to another group",
            "a rated task, and five sampled ones with eight models each; draws due",
            &format!(
                "{alone} gas for storage, logs and start, of which {began} begin at once; with draws at most {worst}; it makes {plain} draws \
                 that queue their tasks, or {several} of six models"
            ),
        );
        assert!(alone.max(worst) < MOST_GAS - 100_000, "{alone} {worst}");
        assert!(plain >= 2 && several >= 1, "{plain} {several}");
    }
}
