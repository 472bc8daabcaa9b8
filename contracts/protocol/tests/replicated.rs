//! Tasks that take three nodes at once, and the graded queue, natively. docs/security-validation.md quotes these tests.

use alloy_primitives::{keccak256, B256};
use alloy_sol_types::SolValue;
use muster_core::id::{GpuGroup, Grade, NodeId, QueueId};
use muster_core::qos::highest_qos;
use muster_core::record::Status;
use muster_core::weight::class_bound;
use muster_model::refused;
use muster_model::validated::*;
use muster_model::world::*;
use muster_protocol::flow::draw::{Members, Rng};
use muster_protocol::host::Host;
use muster_protocol::store::node::NodeHandle;
use muster_protocol::store::registry;
use muster_protocol::store::sampler::{Among, Field};
use muster_protocol::store::task::Task;
use muster_protocol::IMuster::{self, IMusterEvents as E, *};
use muster_protocol::Network;

const FEE: u128 = 12 * TOKEN;
fn queue(vram: u16, grade: Grade) -> u32 {
    QueueId::new(GpuGroup::any(vram), grade).0
}

#[test]
fn three_nodes_run_a_task_at_once_and_share_its_fee() {
    let mut w = network(9);
    let id = created(&mut w, FEE, alike(0));
    let (place, members) = group_of(&mut w, id).expect("formed");
    assert_eq!((place, members.len()), (1, 3));
    let events = w.events();
    assert!(events.iter().any(|e| matches!(e, E::GroupFormed(g) if g.nodes == members && g.scored && g.creator == who(CREATOR))));
    assert_eq!(events.iter().filter(|e| matches!(e, E::MemberStarted(m) if m.deadline == w.mem.now + 120)).count(), 3);
    let view = w.ask(runningTaskCall { number: members[0] });
    assert_eq!((view.status, view.redundancy, view.sampleBps, view.fee), (6, 2, 0, FEE));
    let [a, b, c] = members.try_into().unwrap();
    for (n, seconds) in [(b, 5), (c, 10), (a, 10)] {
        w.pass(1, seconds);
        refused!(reveal(&mut w, id, place, n, ANSWER, value(1)), NotCommitted(id, n));
        commit(&mut w, id, n, ANSWER, value(1)).unwrap();
        assert_eq!((w.node(n).status, w.node(n).openCommitments), (1, 1));
    }
    for n in [a, b, c] {
        reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap();
        check_money(&mut w);
    }
    let events = w.events();
    assert!(events.iter().any(|e| matches!(e, E::GroupSettled(g) if (g.outcome, g.answer, g.refund) == (0, value(1), 0))));
    for (n, score) in [(b, 10), (c, 5), (a, 2)] {
        let (node, account) = (w.node(n), w.account(n.into()));
        assert_eq!((node.scores, node.longTerm), (1, score * 100_000_000_000_000_000));
        let share = FEE * u128::from(score) / 17;
        assert!(
            account.credit == share
                || n == c && account.credit == FEE - 2 * (FEE / 17) - 10 * FEE / 17
                || account.credit - share < 17
        );
    }
    assert_eq!([a, b, c].map(|n| w.account(n.into()).credit).iter().sum::<u128>(), FEE);
    let overview = w.ask(overviewCall {});
    assert_eq!((overview.reserve, overview.burnt, overview.groups), (0, 0, 0));
}

/// The nodes asked to download, and the models, in this order.
fn asked(w: &mut World) -> Vec<(u32, u64)> {
    w.events().iter().filter_map(|e| if let E::DownloadRequested(d) = e { Some((d.node, d.model)) } else { None }).collect()
}

/// A group that starts asks its members for the models that they lack, and others for those that are scarce, as a single task does. Where enough
/// idle nodes hold a model nobody else is asked, nor where nobody is idle.
#[test]
fn a_group_that_starts_has_its_scarce_models_spread() {
    let wanted = || IMuster::TaskSpec { models: vec![77], ..alike(0) };
    let mut w = network(30);
    let id = created(&mut w, FEE, wanted());
    let (place, members) = group_of(&mut w, id).expect("formed");
    let events = w.events();
    let formed = events.iter().position(|e| matches!(e, E::GroupFormed(_))).unwrap();
    let requests: Vec<(u32, u64, u64)> = events[formed..]
        .iter()
        .filter_map(|e| if let E::DownloadRequested(d) = e { Some((d.node, d.model, d.task)) } else { None })
        .collect();
    assert!(requests.iter().all(|&(_, model, task)| (model, task) == (77, id)));
    let nodes: Vec<u32> = requests.iter().map(|&(node, ..)| node).collect();
    assert_eq!(nodes[..3], members[..], "the members, who lack it");
    let others = &nodes[3..];
    assert!((5..=10).contains(&others.len()) && others.iter().all(|n| !members.contains(n)), "{others:?}");
    for (i, &n) in others.iter().enumerate() {
        assert!(!others[..i].contains(&n) && w.node(n).status == Status::Available as u8, "{others:?}");
    }

    // Three of the idle nodes hold it now: no more are asked.
    for &n in &others[..3] {
        w.send(who(n.into()), 0, reportDownloadedCall { models: vec![77] }).unwrap();
    }
    play(&mut w, id, place, &members, |_| value(1));
    w.events();
    // Not by the members, which may be drawn from the three that hold it: then the remaining two are too few.
    let id = created(&mut w, FEE, wanted());
    let (_, members) = group_of(&mut w, id).expect("formed");
    let holders = others[..3].iter().filter(|n| !members.contains(n)).count();
    let more = asked(&mut w).into_iter().filter(|(n, _)| !members.contains(n)).count();
    assert!(if holders == 3 { more == 0 } else { (1..=10 - holders).contains(&more) }, "{holders} {more}");

    // Nobody is idle beside the members.
    let mut w = network(3);
    let id = created(&mut w, FEE, wanted());
    let (_, members) = group_of(&mut w, id).expect("formed");
    assert_eq!(asked(&mut w), members.iter().map(|&n| (n, 77)).collect::<Vec<_>>());
    // Not scarce by the rules.
    let mut w = network(30);
    w.set("scarce", 0);
    w.events();
    created(&mut w, FEE, wanted());
    assert_eq!(asked(&mut w).len(), 3);
}

#[test]
fn a_wrong_answer_costs_so_many_parts_of_the_fee_and_a_lone_one_earns_nothing() {
    let mut w = network(9);
    let id = created(&mut w, FEE, alike(0));
    let (place, members) = group_of(&mut w, id).unwrap();
    for (i, &n) in members.iter().enumerate() {
        commit(&mut w, id, n, ANSWER, value(1 + (i == 1) as u8)).unwrap();
    }
    for (i, &n) in members.iter().enumerate() {
        reveal(&mut w, id, place, n, ANSWER, value(1 + (i == 1) as u8)).unwrap();
    }
    assert_eq!(w.ask(overviewCall {}).burnt, 20 * (FEE / 3));
    assert_eq!(w.node(members[1]).status, Status::Quit as u8);
    check_money(&mut w);

    // One answer and no other that agrees: of three that began at once it has no precedence.
    let mut w = network(9);
    let id = created(&mut w, FEE, alike(0));
    let (place, members) = group_of(&mut w, id).unwrap();
    commit(&mut w, id, members[0], ANSWER, value(1)).unwrap();
    w.pass(1, 121);
    for &node in &members[1..] {
        w.send(who(DRIVER), 0, expireCall { node, id }).unwrap();
        assert_eq!(w.node(node).reliability, 300_000_000_000_000_000);
    }
    assert_eq!(w.ask(groupCall { place }).opens, w.mem.now - 1, "their deadline, whenever somebody says so");
    let income = w.ask(overviewCall {}).treasuryBalance;
    w.events();
    reveal(&mut w, id, place, members[0], ANSWER, value(1)).unwrap();
    assert!(w
        .events()
        .iter()
        .any(|e| matches!(e, E::GroupSettled(g) if (g.outcome, g.refund, g.startFee) == (3, FEE - FEE / 50, FEE / 50))));
    let credit = [CREATOR, members[0].into(), DRIVER].map(|n| w.account(n).credit);
    assert_eq!((credit, w.ask(overviewCall {}).treasuryBalance - income), ([FEE - FEE / 50, 0, 0], FEE / 50));
    check_money(&mut w);
}

#[test]
fn what_nobody_could_run_or_no_stake_covers_is_refused() {
    let mut w = network(2);
    refused!(w.create(CREATOR, FEE, alike(0)), NobodyCanRun(0u16, 0u32));
    refused!(w.create(CREATOR, FEE, image(0)), NobodyCanRun(0u16, 0u32));
    refused!(w.create(CREATOR, FEE, IMuster::TaskSpec { gpu: CARD, ..alike(0) }), NobodyCanRun(24u16, CARD));
    w.join(3, "RTX 4090", 24, &[], 400).unwrap();
    for wanted in [alike(24), image(24), IMuster::TaskSpec { gpu: CARD, ..alike(0) }] {
        w.create(CREATOR, FEE, wanted).unwrap();
    }
    refused!(w.create(CREATOR, FEE, alike(25)), NobodyCanRun(25u16, 0u32));
    w.send(OWNER, 0, listGpuGroupCall { group: CARD, listed: false }).unwrap();
    refused!(w.create(CREATOR, FEE, alike(0)), NobodyCanRun(0u16, 0u32));
    refused!(w.create(CREATOR, FEE, IMuster::TaskSpec { gpu: CARD, ..alike(0) }), GpuNotListed(CARD));
    w.create(CREATOR, FEE, image(0)).unwrap();
    refused!(w.create(CREATOR, FEE, IMuster::TaskSpec { units: 5, ..image(0) }), BadUnits(5u32, 4u32));
    refused!(w.create(CREATOR, FEE, IMuster::TaskSpec { redundancy: 4, ..image(0) }), RedundancyUnsupported(4u8));
    // 15/16 of 400 tokens, 20 fees, 3 commitments: 6.25 tokens for each of three nodes.
    let most = 375 * TOKEN / 60 * 3;
    refused!(w.create(CREATOR, most + 1, image(0)), FeeTooHigh(word(most + 1), most));
    w.create(CREATOR, most, image(0)).unwrap();
    refused!(w.create(CREATOR, 149, image(0)), FeeTooLow(word(149), 150u128));
}

#[test]
fn a_listed_group_of_three_is_counted_whoever_comes_and_goes() {
    let mut w = network(3);
    let possible = |w: &mut World, vram| w.view(|net| registry::size_of_trios(&*net.host, vram).is_some());
    assert!(possible(&mut w, 24));
    w.send(who(3), 0, quitCall {}).unwrap();
    assert!(!possible(&mut w, 24));
    w.join(3, "RTX 4090", 24, &[], 400).unwrap();
    assert!(possible(&mut w, 24) && !possible(&mut w, 25));
    // Another size, listed before it has three and after.
    for n in 4..=6 {
        w.join(n, "A100", 300, &[], 400).unwrap();
    }
    let other = 1 << 16 | 300;
    assert!(!possible(&mut w, 25));
    for _ in 0..2 {
        w.send(OWNER, 0, listGpuGroupCall { group: other, listed: true }).unwrap();
    }
    assert!(possible(&mut w, 25) && possible(&mut w, 256) && possible(&mut w, 300));
    w.send(OWNER, 0, listGpuGroupCall { group: other, listed: false }).unwrap();
    assert!(!possible(&mut w, 25) && possible(&mut w, 24));
    w.send(who(6), 0, quitCall {}).unwrap();
    w.send(OWNER, 0, listGpuGroupCall { group: other, listed: true }).unwrap();
    assert!(!possible(&mut w, 25));
    w.join(6, "A100", 300, &[], 400).unwrap();
    assert!(possible(&mut w, 25) && !possible(&mut w, 301));
    // All sizes stand in four words.
    w.view(|net| {
        let before = net.host.reads();
        assert!(registry::size_of_trios(&*net.host, 301).is_none() && net.host.reads() - before <= 4);
    });
}

/// A node that was kept for a task whose group is another GPU's in the end does not make that look larger.
#[test]
fn who_is_kept_does_not_count_in_another_gpus_group() {
    let mut w = network(3);
    w.set("scorePool", 4);
    let other = 1 << 16 | 80;
    for n in 4..=6 {
        w.join(n, "A100", 80, &[], 400).unwrap();
    }
    w.send(OWNER, 0, listGpuGroupCall { group: other, listed: true }).unwrap();
    let (first, rest): (Vec<_>, Vec<_>) = busy(&mut w, 6).into_iter().partition(|&(_, node)| node <= 3);
    first[..2].iter().for_each(|&task| submit(&mut w, task));
    let id = created(&mut w, FEE, alike(0));
    assert_eq!(w.ask(overviewCall {}).queued, 1);
    let (mem, mut others) = (w.mem.clone(), 0);
    for i in 0..40 {
        w.mem = mem.clone();
        w.mem.block += i;
        submit(&mut w, first[2]);
        assert_eq!((w.node(first[2].1).parked, w.ask(overviewCall {}).queued), (3, 0));
        rest.iter().for_each(|&task| submit(&mut w, task));
        w.events();
        w.pass(1, 0);
        w.dispatch(1).unwrap();
        if let Some(formed) = w.events().into_iter().find_map(|e| if let E::GroupFormed(g) = e { Some(g) } else { None }) {
            assert!(formed.id == id && !formed.scored, "three of a GPU are there, not four");
            others += u32::from(formed.nodes.iter().all(|&n| n > 3));
        }
    }
    assert!(others > 5, "{others}");
}

#[test]
fn with_fewer_than_three_it_waits_in_its_grade_and_blocks_nothing() {
    let mut w = network(5);
    let tasks = busy(&mut w, 3);
    let id = created(&mut w, FEE, image(0));
    let other = created(&mut w, 15 * TOKEN, alike(24));
    assert_eq!(w.ask(overviewCall {}).queued, 2);
    let queues: Vec<u32> = w.ask(queuesCall { from: 0, count: 9 })._1.iter().map(|q| q.queue).collect();
    assert_eq!(queues, [queue(0, Grade::Mixed), queue(24, Grade::Alike)]);
    // Its value is a node's part: 4 tokens in 50 seconds against 5 in 60 seconds.
    let [first, second] =
        [(id, 0), (other, 1)].map(|(id, i)| (id, w.ask(queuedTasksCall { queue: queues[i], from: 0, count: 9 })._1));
    assert_eq!((first.1[0].id, first.1[0].redundancy, second.1[0].id), (id, 2, other));
    assert!(second.1[0].queueKey > first.1[0].queueKey);
    // Single tasks go on as ever.
    let single = created(&mut w, TOKEN, spec(0, &[]));
    assert!((1..=5).any(|n| task_of(&mut w, n) == single));
    // By its ticket it can be cancelled.
    let ticket = first.1[0].ticket;
    assert_eq!(ticket >> 32, u64::from(queues[0]));
    w.send(who(CREATOR), 0, cancelCall { id, ticket }).unwrap();
    assert_eq!(w.account(CREATOR).credit, FEE - FEE / 50);
    check_money(&mut w);
    drop(tasks);
}

#[test]
fn a_freed_node_waits_for_others_then_three_are_reserved_and_drawn() {
    let mut w = network(3);
    let tasks = busy(&mut w, 3);
    let id = created(&mut w, FEE, alike(0));
    w.events();
    submit(&mut w, tasks[0]);
    let until = w.mem.now + 60;
    let x = tasks[0].1;
    assert!(w.events().iter().any(|e| matches!(e, E::NodeWaits(n) if (n.node, n.id, n.until) == (x, id, until))));
    let view = w.node(x);
    assert_eq!((view.status, view.parked, view.parkedUntil), (1, 2, until));
    refused!(w.send(who(DRIVER), 0, pokeCall { node: x }), NothingToPoke(x));
    // A single task that is created now does not get it.
    let single = created(&mut w, TOKEN, spec(0, &[]));
    assert_eq!(w.ask(overviewCall {}).queued, 2);
    submit(&mut w, tasks[1]);
    assert_eq!(nodes_with(&mut w, 2).len(), 2);
    w.events();
    submit(&mut w, tasks[2]);
    let reserved = nodes_with(&mut w, 3);
    assert_eq!((reserved.len(), w.ask(overviewCall {}).pending), (3, 1));
    let events = w.events();
    let block = w.mem.block;
    assert!(events.iter().any(|e| matches!(e, E::TaskRedrawn(t) if (t.id, t.drawBlock) == (id, block))));
    let told: Vec<u32> = events
        .iter()
        .filter_map(|e| if let E::NodeWaits(n) = e { Some((n.node, n.until)) } else { None })
        .map(|(n, until)| {
            assert_eq!(until, 0);
            n
        })
        .collect();
    assert_eq!(told, tasks.iter().map(|t| t.1).collect::<Vec<_>>());
    // Reserved, they cannot slip away, and have no task.
    refused!(w.send(who(x.into()), 0, resumeCall {}), WrongStatus(x, 2u8));
    refused!(w.send(who(DRIVER), 0, pokeCall { node: x }), WrongStatus(x, 2u8));
    refused!(w.send(who(DRIVER), 0, expireCall { node: x, id }), TaskNotRunning(id, x));
    w.send(who(x.into()), 0, pauseCall {}).unwrap();
    assert_eq!((w.node(x).status, w.node(x).parked), (3, 3));
    w.pass(1, 1);
    w.dispatch(1).unwrap();
    let (place, mut members) = group_of(&mut w, id).expect("formed");
    members.sort_unstable();
    assert_eq!(members, [1, 2, 3]);
    assert_eq!(nodes_with(&mut w, 0).len(), 3);
    // When its part is done it pauses; the others take the single task.
    commit(&mut w, id, x, ANSWER, value(1)).unwrap();
    assert_eq!(w.node(x).status, 5);
    let y = tasks[1].1;
    commit(&mut w, id, y, ANSWER, value(1)).unwrap();
    assert_eq!(task_of(&mut w, y), single);
    assert_eq!(place, 1);
    check_money(&mut w);
}

#[test]
fn who_waited_in_vain_takes_the_best_single_task_and_waits_no_more() {
    let mut w = network(4);
    let tasks = busy(&mut w, 4);
    let id = created(&mut w, FEE, alike(0));
    let single = created(&mut w, TOKEN, spec(0, &[]));
    submit(&mut w, tasks[0]);
    let x = tasks[0].1;
    assert_eq!(w.node(x).parked, 2);
    w.pass(1, 59);
    refused!(w.send(who(DRIVER), 0, pokeCall { node: x }), NothingToPoke(x));
    w.pass(1, 1);
    // Any call re-admits it.
    w.dispatch(0).unwrap();
    assert_eq!(task_of(&mut w, x), single);
    // With nothing to do alone it is idle, and counts as such.
    submit(&mut w, tasks[1]);
    let y = tasks[1].1;
    w.pass(1, 60);
    w.send(who(DRIVER), 0, pokeCall { node: y }).unwrap();
    assert_eq!((w.node(y).status, w.node(y).parked), (1, 0));
    refused!(w.send(who(DRIVER), 0, pokeCall { node: y }), NothingToPoke(y));
    submit(&mut w, tasks[2]);
    submit(&mut w, tasks[3]);
    assert_eq!(nodes_with(&mut w, 3), {
        let mut r = vec![tasks[2].1, tasks[3].1];
        r.sort_unstable();
        r
    });
    w.pass(1, 1);
    w.dispatch(1).unwrap();
    assert_eq!(group_of(&mut w, id).unwrap().1.len(), 3);
    check_money(&mut w);
}

#[test]
fn the_best_of_all_grades_starts_and_at_most_one() {
    // Three idle nodes of 24 GiB and a freed one: the tasks' values decide, single tasks first of equal ones.
    for (single, grouped, wins) in [(TOKEN, 3 * TOKEN, 0), (TOKEN, 4 * TOKEN, 1), (2 * TOKEN, 3 * TOKEN, 0)] {
        let mut w = network(3);
        let tasks = busy(&mut w, 3);
        let id = created(&mut w, grouped, alike(0));
        let alone = created(&mut w, single, spec(0, &[]));
        // The others become idle without taking anything.
        tasks[..2].iter().for_each(|&task| idled(&mut w, task));
        w.events();
        submit(&mut w, tasks[2]);
        let events = w.events();
        let starts = events.iter().filter(|e| matches!(e, E::TaskStarted(_) | E::TaskRedrawn(_))).count();
        assert_eq!(starts, 1, "{events:?}");
        assert_eq!(task_of(&mut w, tasks[2].1) == alone, wins == 0);
        assert_eq!(w.ask(pendingTasksCall { from: 0, count: 9 }).iter().any(|t| t.id == id), wins == 1);
        assert_eq!(w.ask(bestQueuedCall { number: 1 }).id, if wins == 0 { id } else { alone });
    }
}

#[test]
fn three_of_the_largest_vram_are_examined_beside_three_of_the_card() {
    // Cards of their own each: 16, 24, 48, 80 GiB.
    let mut w = world(0, 1);
    for (n, vram) in [(1, 16), (2, 24), (3, 48), (4, 80)] {
        w.join(n, "card", vram, &[], 400).unwrap();
    }
    let tasks = busy(&mut w, 4);
    w.set("holdTime", 0);
    // The nodes of 16, 48 and 80 GiB cannot take a task for three of 24; they can take one for three of 16.
    let large = created(&mut w, 15 * TOKEN, image(24));
    let small = created(&mut w, FEE, image(16));
    let find = |w: &mut World, node: u32| *tasks.iter().find(|t| t.1 == node).unwrap_or_else(|| panic!("{node} {}", w.mem.now));
    for node in [3, 4] {
        let task = find(&mut w, node);
        idled(&mut w, task);
    }
    let sixteen = find(&mut w, 1);
    submit(&mut w, sixteen);
    assert_eq!(w.ask(pendingTasksCall { from: 0, count: 9 })[0].id, small);
    w.pass(1, 1);
    w.dispatch(1).unwrap();
    let mut members = group_of(&mut w, small).unwrap().1;
    members.sort_unstable();
    assert_eq!(members, [1, 3, 4]);
    for n in members {
        let _ = commit(&mut w, small, n, ANSWER, B256::with_last_byte(0));
    }
    // Now the one of 24: with those of 48 and 80 it is three.
    let twenty_four = find(&mut w, 2);
    submit(&mut w, twenty_four);
    assert_eq!(w.ask(pendingTasksCall { from: 0, count: 9 })[0].id, large);
}

#[test]
fn nodes_of_one_listed_group_are_drawn_each_as_its_weight_says() {
    // Groups of 2 (never), 3 and 4 of equal nodes, and 4 of a group that is not listed: seven candidates, each first with probability 1/7,
    // and then the others of its group.
    let mut w = world(0, 1);
    let (mut n, sizes) = (0, [2, 3, 4, 4]);
    for (g, size) in sizes.into_iter().enumerate() {
        for _ in 0..size {
            n += 1;
            w.join(n, ["two", "three", "four", "private"][g], 24, &[], 400).unwrap();
        }
        if g < 3 {
            w.send(OWNER, 0, listGpuGroupCall { group: (g as u32 + 1) << 16 | 24, listed: true }).unwrap();
        }
    }
    let rounds = 20_000;
    let mut times = vec![0u32; n as usize + 1];
    let mut first = vec![0u32; n as usize + 1];
    let mut net = Network::open(&mut w.mem).unwrap();
    let (order, models, _) = net.order_for(&alike(0)).unwrap();
    let task = Task { order, models, ..Task::default() };
    for round in 0..rounds {
        let hash = keccak256(u64::abi_encode(&round)).0;
        let mut rng = Rng::new(net.host, hash, order.id);
        let Members::Nodes(nodes) = net.draw_members(&task, &[], &mut rng) else { panic!("undecided") };
        first[nodes[0].0 as usize] += 1;
        let groups: Vec<GpuGroup> = nodes.iter().map(|&n| NodeHandle::load(net.host, n).node.group).collect();
        assert!(groups.iter().all(|&g| g == groups[0]));
        nodes.iter().for_each(|n| times[n.0 as usize] += 1);
    }
    let _ = &mut net;
    assert!(times[1..=2].iter().chain(&times[10..]).all(|&t| t == 0), "{times:?}");
    // Seven degrees of freedom less one: the 99.9 % point is 22.46.
    let expected = f64::from(rounds as u32) / 7.0;
    let chi: f64 = first[3..=9].iter().map(|&t| (f64::from(t) - expected).powi(2) / expected).sum();
    assert!(chi < 22.46, "{chi} {first:?}");
    // A node of the three is always there when its group is, one of the four three times out of four.
    let groups = [3.0 / 7.0, 4.0 / 7.0 * 0.75];
    for (node, &t) in times.iter().enumerate().take(10).skip(3) {
        let p = groups[usize::from(node > 5)];
        let (mean, deviation) = (rounds as f64 * p, (rounds as f64 * p * (1.0 - p)).sqrt());
        assert!((f64::from(t) - mean).abs() < 4.0 * deviation, "node {node}: {t} of {mean}");
    }
}

#[test]
fn listed_groups_that_no_try_meets_are_each_as_likely() {
    // Three groups of three nodes with little stake, beside 400 others whose card is not listed: tries meet one of the nine now and then.
    let mut w = world(0, 1);
    for n in 1..=400 {
        w.join(n, "private", 24, &[], 6_400).unwrap();
    }
    for n in 401..=409 {
        w.join(n, ["first", "second", "third"][n as usize % 3], 24, &[], 400).unwrap();
    }
    let groups = [401, 402, 403].map(|node| w.node(node).gpu);
    for group in groups {
        w.send(OWNER, 0, listGpuGroupCall { group, listed: true }).unwrap();
    }
    let net = Network::open(&mut w.mem).unwrap();
    let (order, models, _) = net.order_for(&alike(0)).unwrap();
    let task = Task { order, models, ..Task::default() };
    let rounds = 3_000;
    let mut times = [0; 3];
    for round in 0..rounds {
        let mut rng = Rng::new(net.host, keccak256(u64::abi_encode(&round)).0, order.id);
        let Members::Nodes(nodes) = net.draw_members(&task, &[], &mut rng) else { panic!("there are three of each") };
        let group = NodeHandle::load(net.host, nodes[0]).node.group.0;
        times[groups.iter().position(|&listed| listed == group).expect("a listed one")] += 1;
    }
    // 2 degrees of freedom: the 99.9 % point is 13.82.
    let expected = rounds as f64 / 3.0;
    let chi: f64 = times.iter().map(|&t| (f64::from(t) - expected).powi(2) / expected).sum();
    assert!(chi < 13.82, "{chi} {times:?}");
}

#[test]
fn the_draw_of_three_follows_the_weights_without_replacement() {
    // Five nodes of different stakes, all idle, or three of them reserved for the task; the exact probability of each ordered triple.
    for reserve in [false, true] {
        let mut w = world(0, 1);
        for (i, stake) in [400, 500, 800, 1600, 3000].into_iter().enumerate() {
            w.join(i as u64 + 1, "card", 24, &[], stake).unwrap();
        }
        let weights: Vec<f64> = (1..=5).map(|n| w.ask(weightOfCall { number: n, spec: spec(0, &[]) }).weight as f64).collect();
        if reserve {
            let tasks = busy(&mut w, 5);
            created(&mut w, FEE, image(0));
            for &task in tasks.iter().filter(|t| t.1 % 2 == 1) {
                submit(&mut w, task);
            }
            tasks.iter().filter(|t| t.1 % 2 == 0).for_each(|&task| idled(&mut w, task));
            assert_eq!(nodes_with(&mut w, 3), [1, 3, 5]);
        }
        let net = Network::open(&mut w.mem).unwrap();
        let (order, models, _) = net.order_for(&image(0)).unwrap();
        let task = Task { order, models, ..Task::default() };
        let reserved: Vec<NodeHandle> =
            if reserve { [1, 3, 5].map(|n| NodeHandle::load(net.host, NodeId(n))).to_vec() } else { Vec::new() };
        let (rounds, mut undecided, mut counts) = (40_000u64, 0, std::collections::BTreeMap::new());
        for round in 0..rounds {
            let mut rng = Rng::new(net.host, keccak256((round, reserve).abi_encode()).0, order.id);
            match net.draw_members(&task, &reserved, &mut rng) {
                Members::Nodes(nodes) => *counts.entry([nodes[0].0, nodes[1].0, nodes[2].0]).or_insert(0u32) += 1,
                _ => undecided += 1,
            }
        }
        assert!(undecided * 100 < rounds, "{undecided}");
        let (total, decided) = (weights.iter().sum::<f64>(), (rounds - undecided) as f64);
        let (mut chi, mut cells) = (0.0, 0);
        for a in 0..5 {
            for b in (0..5).filter(|&b| b != a) {
                for c in (0..5).filter(|&c| c != a && c != b) {
                    let left = total - weights[a];
                    let p = weights[a] / total * weights[b] / left * weights[c] / (left - weights[b]);
                    let seen = f64::from(*counts.get(&[a, b, c].map(|i| i as u32 + 1)).unwrap_or(&0));
                    chi += (seen - decided * p).powi(2) / (decided * p);
                    cells += 1;
                }
            }
        }
        // 59 degrees of freedom: the 99.9 % point is 98.3.
        assert_eq!(cells, 60);
        assert!(chi < 98.3, "{chi}");
    }
}

/// An attacker keeps a task for three in the queue that is worth more than others' tasks. It has one node idle, by an error report on a
/// task that no other could run, and another resume, so that the victim is reserved. Then it pauses one, so that the draw finds two. The
/// victim waits once for it, and takes others' work from then on.
#[test]
fn who_is_reserved_for_nothing_is_not_held_again() {
    let mut w = World::new();
    let (victim, second, third) = (1, 2, 3);
    w.join(victim, "A", 24, &[], 400).unwrap();
    w.join(second, "A", 24, &[], 400).unwrap();
    w.join(third, "B", 24, &[], 400).unwrap();
    let own = w.ask(gpuGroupCall { name: "B".into(), vram: 24 });
    for n in [second, third] {
        w.send(who(n), 0, pauseCall {}).unwrap();
    }
    let first = w.create(50, TOKEN, spec(0, &[])).unwrap();
    w.create(51, 3 * TOKEN, image(0)).unwrap();
    for _ in 0..3 {
        w.create(52, TOKEN / 100, spec(0, &[])).unwrap();
    }
    w.pass(1, 1);
    w.dispatch(16).unwrap();
    w.send(who(victim), 0, submitCall { id: first, resultDigest: [1; 32].into() }).unwrap();
    w.events();
    let (begun, mut reserved) = (w.mem.now, 0);
    let worked = (0..10).find_map(|_| {
        let lone = w.create(51, 5 * TOKEN, IMuster::TaskSpec { kind: 0, gpu: own, ..spec(0, &[]) }).unwrap();
        w.pass(1, 1);
        w.dispatch(16).unwrap();
        // The attacker's calls may be refused by then.
        let _ = w.send(who(third), 0, resumeCall {});
        // As long as one that reports an error rests.
        w.pass(200, 50);
        let _ = w.send(who(third), 0, reportErrorCall { id: lone, code: 1 });
        let _ = w.send(who(second), 0, resumeCall {});
        reserved += (w.node(1).parked == 3) as u32;
        let _ = w.send(who(third), 0, pauseCall {});
        w.pass(1, 1);
        w.dispatch(16).unwrap();
        let _ = w.send(who(second), 0, pauseCall {});
        w.dispatch(16).unwrap();
        w.events().iter().any(|e| matches!(e, E::TaskStarted(s) if s.node == 1)).then_some(w.mem.now)
    });
    assert!(reserved > 0, "the attack is tried");
    assert!(worked.is_some_and(|at| at - begun <= 2 * 60), "it worked at {worked:?}, after {begun}");
}

/// A drawn node has not waited in vain: freed again, it may wait at once for the next task that takes three.
#[test]
fn who_was_drawn_may_wait_again_at_once() {
    let mut w = network(3);
    let tasks = busy(&mut w, 3);
    let ids = [0; 2].map(|_| created(&mut w, FEE, alike(0)));
    tasks.iter().for_each(|&task| submit(&mut w, task));
    assert_eq!(nodes_with(&mut w, 3).len(), 3);
    w.pass(1, 1);
    w.dispatch(1).unwrap();
    let (_, members) = group_of(&mut w, ids[0]).expect("formed");
    for (waiting, &n) in (1..).zip(&members[..2]) {
        commit(&mut w, ids[0], n, ANSWER, value(1)).unwrap();
        assert_eq!(nodes_with(&mut w, 2).len(), waiting, "it waits with the second task");
    }
    check_money(&mut w);
}

/// Nor has a drawn node been reserved in vain: a reservation before, which came to nothing, counts no longer.
#[test]
fn who_was_reserved_in_vain_and_then_drawn_may_wait_at_once() {
    let mut w = network(3);
    let [a, b, last] = busy(&mut w, 3)[..] else { panic!("three") };
    let ids = [0; 2].map(|_| created(&mut w, FEE, alike(0)));
    [a, b].into_iter().for_each(|task| idled(&mut w, task));
    submit(&mut w, last);
    let (node, others) = (last.1, [a.1, b.1]);
    assert_eq!(nodes_with(&mut w, 3), [node], "it is kept beside two idle ones");
    for n in others {
        w.send(who(n.into()), 0, pauseCall {}).unwrap();
    }
    w.pass(1, 1);
    w.dispatch(1).unwrap();
    w.dispatch(0).unwrap();
    assert_eq!((w.node(node).status, w.node(node).parked), (1, 0), "idle: it was reserved in vain, and does not wait");
    // It has other work, and then the others wait for the third.
    let single = created(&mut w, TOKEN, spec(0, &[]));
    assert_eq!(task_of(&mut w, node), single);
    for n in others {
        w.send(who(n.into()), 0, resumeCall {}).unwrap();
    }
    assert_eq!(nodes_with(&mut w, 2).len(), 2);
    submit(&mut w, (single, node));
    assert_eq!(nodes_with(&mut w, 3).len(), 3);
    w.pass(1, 1);
    w.dispatch(1).unwrap();
    let id = ids.into_iter().find(|&id| group_of(&mut w, id).is_some()).expect("formed");
    commit(&mut w, id, node, ANSWER, value(1)).unwrap();
    assert_eq!(nodes_with(&mut w, 2), [node], "it waits with the other task");
    check_money(&mut w);
}

/// A node that is kept for a draw and is to leave is not kept for another when that draw decides nothing, for every grade.
#[test]
fn nobody_on_the_way_out_is_kept_for_another_draw() {
    // Its status while it is kept, and when it has left: it pauses, quits, or is kicked out.
    for (grade, leaving, left) in [2, 3].into_iter().flat_map(|grade| [(grade, 3, 5), (grade, 4, 0), (grade, 6, 0)]) {
        let mut w = network(3);
        set_profile(&mut w, CREATOR, Profile { least: 3, most: 3, ..USUAL });
        let tasks = busy(&mut w, 3);
        let id = created(&mut w, FEE, IMuster::TaskSpec { redundancy: grade, gpu: CARD, ..alike(0) });
        tasks.iter().for_each(|&task| submit(&mut w, task));
        assert_eq!(nodes_with(&mut w, 3).len(), 3);
        let leaves = tasks[0].1;
        match leaving {
            3 => w.send(who(leaves.into()), 0, pauseCall {}).map(drop).unwrap(),
            4 => w.send(who(leaves.into()), 0, quitCall {}).map(drop).unwrap(),
            _ => w
                .call(OWNER, 0, |net| {
                    (0..50).for_each(|_| net.record_score(NodeId(leaves), 0));
                    Ok(())
                })
                .unwrap(),
        }
        assert_eq!((w.node(leaves).status, w.node(leaves).parked), (leaving, 3));
        // So long after that nobody knows the hash any more.
        w.pass(400_000, 1);
        w.events();
        w.dispatch(1).unwrap();
        assert!(w.events().iter().any(|e| matches!(e, E::TaskRedrawn(t) if t.id == id)), "undecided");
        let kept: Vec<u32> = (1..=3).filter(|&n| n != leaves).collect();
        assert_eq!(nodes_with(&mut w, 3), kept, "{grade} {leaving}");
        w.dispatch(0).unwrap();
        assert_eq!(w.node(leaves).status, left, "{grade} {leaving}");
        check_money(&mut w);
    }
}

/// In a group that is not scored, right answers raise H if as many agree as a draw of one node needs candidates; in one that is scored,
/// always.
#[test]
fn a_group_that_is_not_scored_raises_h_if_enough_agree() {
    let half = 500_000_000_000_000_000;
    let raised = |nodes: u64, pool: u64, answers: [u8; 3], later: u64| {
        let mut w = network(nodes);
        w.set("boostPool", pool);
        for n in 1..=nodes as u32 {
            let mut handle = NodeHandle::load(&w.mem, NodeId(n));
            (handle.node.h, handle.node.h_at) = (half, w.mem.now as u32);
            handle.put(&mut w.mem);
        }
        let id = created(&mut w, FEE, alike(0));
        let (place, members) = group_of(&mut w, id).expect("formed");
        w.pass(1, later);
        let says = |n: u32| value(answers[members.iter().position(|&m| m == n).unwrap()]);
        for &n in &members {
            commit(&mut w, id, n, ANSWER, says(n)).unwrap();
        }
        let before: Vec<u64> = members.iter().map(|&n| w.node(n).reliability).collect();
        for &n in &members {
            reveal(&mut w, id, place, n, ANSWER, says(n)).unwrap();
        }
        let settled = w.events().iter().any(|e| matches!(e, E::GroupSettled(g) if g.outcome == 0));
        assert!(settled);
        let rises = members.iter().zip(before).map(|(&n, before)| w.node(n).reliability == before + 150_000_000_000_000_000);
        rises.collect::<Vec<bool>>()
    };
    // Eight idle nodes are one too few for scores.
    assert_eq!(raised(8, 3, [1, 1, 1], 40), [true, true, true]);
    assert_eq!(raised(8, 3, [1, 1, 2], 40), [false, false, false]);
    assert_eq!(raised(8, 2, [1, 1, 2], 40), [true, true, false]);
    assert_eq!(raised(8, 4, [1, 1, 1], 40), [false, false, false]);
    assert_eq!(raised(8, 0, [2, 1, 1], 40), [false, true, true]);
    assert_eq!(raised(8, 3, [1, 1, 1], 29), [false, false, false]);
    assert_eq!(raised(9, 3, [1, 1, 2], 40), [true, true, false]);
}

/// The draw of three by exact probabilities. Gives the chance that this many tries leave it undecided, and by how much sets of three are
/// then favoured in all (total variation), if it is drawn again as a whole. Tries fall on a node by `widths` of what is `left`, and are
/// accepted in a share of them. With `again` they also fall on nodes that are already chosen.
fn reckoned(weights: &[f64], widths: &[f64], accepted: &[f64], left: f64, tries: usize, again: bool) -> (f64, f64) {
    let (nodes, mut sets, mut decided) = (weights.len(), std::collections::BTreeMap::new(), 0.0);
    for a in 0..nodes {
        for b in (0..nodes).filter(|&b| b != a) {
            for c in (0..nodes).filter(|&c| c != a && c != b) {
                // Chances of this order, and of an accepted try before each.
                let (mut exact, mut chances, mut left) = (1.0, [0.0; 3], left);
                let mut there: Vec<usize> = (0..nodes).collect();
                for (chance, node) in chances.iter_mut().zip([a, b, c]) {
                    exact *= weights[node] / there.iter().map(|&i| weights[i]).sum::<f64>();
                    *chance = there.iter().map(|&i| widths[i] / left * accepted[i]).sum();
                    there.retain(|&i| i != node);
                    left -= if again { 0.0 } else { widths[node] };
                }
                let mut chosen = [1.0, 0.0, 0.0, 0.0];
                for _ in 0..tries {
                    for i in (0..3).rev() {
                        let moved = chosen[i] * chances[i];
                        chosen[i] -= moved;
                        chosen[i + 1] += moved;
                    }
                }
                let mut set = [a, b, c];
                set.sort_unstable();
                let cell = sets.entry(set).or_insert((0.0, 0.0));
                *cell = (cell.0 + exact, cell.1 + exact * chosen[3]);
                decided += exact * chosen[3];
            }
        }
    }
    (1.0 - decided, sets.values().map(|(exact, made)| (made / decided - exact).abs()).sum::<f64>() / 2.0)
}

/// A draw that finds fewer than three is made again as a whole, which favours sets that are found soon. The bias is at most the chance that
/// it finds fewer, and is computed here exactly. Great stakes do not bias it, for no try falls on a chosen node. But where a few nodes are
/// as good as can be, and many as bad, sets of the good ones are favoured.
#[test]
fn how_exact_a_draw_of_three_is_beside_great_stakes_and_among_bad_nodes() {
    // Nodes of these stakes, Q_long and H; the undecided draws and bias of 48 tries at most: as it is, and if chosen nodes could be met again.
    type Node = (u128, u8, u64);
    let (usual, bad, good): (Node, Node, Node) = ((400, 5, 1_000), (400, 0, 101), (400, 10, 1_000));
    let great = |tokens: u128| (tokens, 5, 1_000);
    let of = |nodes: &[(usize, Node)]| nodes.iter().flat_map(|&(n, node)| vec![node; n]).collect::<Vec<Node>>();
    let cases = [
        ("12 equal ones", of(&[(12, usual)]), (0.001, 0.0001), 0.0),
        ("50 % of the weight", of(&[(11, usual), (1, great(383_000))]), (0.001, 0.0001), 0.0),
        ("90 % of the weight", of(&[(11, usual), (1, great(34_800_000))]), (0.02, 0.0001), 0.5),
        ("99 % of the weight", of(&[(3, bad), (1, (104_857_600, 10, 1_000))]), (0.6, 0.0001), 0.9),
        ("the largest stake", of(&[(11, usual), (1, great(104_857_600))]), (0.02, 0.0001), 0.5),
        ("three of the largest", of(&[(9, usual), (3, great(104_857_600))]), (0.001, 0.0001), 0.005),
        ("2 good, 10 at H 0.3", of(&[(10, (400, 5, 300)), (2, good)]), (0.001, 0.001), 0.0),
        ("2 good, 10 at Q 1", of(&[(10, (400, 1, 1_000)), (2, good)]), (0.01, 0.001), 0.0),
        ("2 good, 10 as bad as can be", of(&[(10, bad), (2, good)]), (0.6, 0.05), 0.4),
    ];
    println!(
        "nodes | greatest share of the weight | 48 tries: undecided, bias | 24 tries | 48 tries that meet chosen ones again"
    );
    for (name, nodes, (most_undecided, most_bias), before) in cases {
        let mut w = world(0, 1);
        for (n, &(tokens, score, h)) in (1..).zip(&nodes) {
            w.join(n, "card", 24, &[], tokens).unwrap();
            w.call(who(1), 0, |net| {
                net.record_score(NodeId(n as u32), score);
                Ok(())
            })
            .unwrap();
            let mut handle = NodeHandle::load(&w.mem, NodeId(n as u32));
            (handle.node.h, handle.node.h_at) = (h * 1_000_000_000_000_000, w.mem.now as u32);
            handle.put(&mut w.mem);
        }
        let issued = nodes.len() as u32;
        let weights: Vec<f64> =
            (1..=issued).map(|n| w.ask(weightOfCall { number: n, spec: spec(0, &[]) }).weight as f64).collect();
        let net = Network::open(&mut w.mem).unwrap();
        let classes: Vec<u8> = (1..=issued).map(|n| NodeHandle::load(net.host, NodeId(n)).node.class(net.rules().base)).collect();
        let lowest = net.node_store().lowest();
        let bound = class_bound(net.rules().base, net.node_store().max_stake(), lowest, highest_qos(net.rules().best)) as f64;
        let widths: Vec<f64> = classes.iter().map(|&class| f64::from(1u32 << class)).collect();
        let accepted: Vec<f64> =
            weights.iter().zip(&classes).map(|(w, class)| w / bound / f64::from(1u32 << (class - lowest))).collect();
        let (order, models, _) = net.order_for(&image(0)).unwrap();
        let total = Field::new(net.host, Among::Idle, order.group.into()).total() as f64;
        let [now, half, then] = [(48, false), (24, false), (48, true)]
            .map(|(tries, again)| reckoned(&weights, &widths, &accepted, total, tries, again));
        let share = weights.iter().fold(0.0, |most: f64, &w| most.max(w)) / weights.iter().sum::<f64>();
        let told = |(undecided, bias): (f64, f64)| format!("{:.2} %, {:.3} %", undecided * 100.0, bias * 100.0);
        println!("{name} | {:.1} % | {} | {} | {}", share * 100.0, told(now), told(half), told(then));
        assert!(now.0 <= most_undecided && now.1 <= most_bias && now.1 <= now.0, "{name}: {now:?}");
        assert!(then.0 >= before, "{name}: {then:?}");
        // The contract's own draws: each set comes as often as is exact, within chance and the bias, and no more draws are undecided.
        let task = Task { order, models, ..Task::default() };
        let (rounds, mut undecided, mut counts) = (4_000u64, 0, std::collections::BTreeMap::new());
        for round in 0..rounds {
            let mut rng = Rng::new(net.host, keccak256((round, name.len() as u64).abi_encode()).0, order.id);
            match net.draw_members(&task, &[], &mut rng) {
                Members::Nodes(nodes) => nodes.iter().for_each(|n| *counts.entry(n.0).or_insert(0u32) += 1),
                _ => undecided += 1,
            }
        }
        let decided = (rounds - undecided) as f64;
        assert!(undecided as f64 <= now.0 * rounds as f64 + 4.0 * (rounds as f64 * now.0).sqrt(), "{name}: {undecided}");
        // Each node's chance to be among the three.
        let sum: f64 = weights.iter().sum();
        for (x, node) in (1..=issued).enumerate() {
            let mut chance = weights[x] / sum;
            for a in (0..weights.len()).filter(|&a| a != x) {
                let left = sum - weights[a];
                chance += weights[a] / sum * weights[x] / left;
                for b in (0..weights.len()).filter(|&b| b != a && b != x) {
                    chance += weights[a] / sum * weights[b] / left * weights[x] / (left - weights[b]);
                }
            }
            let seen = f64::from(*counts.get(&node).unwrap_or(&0)) / decided;
            let deviation = (chance * (1.0 - chance) / decided).sqrt();
            assert!((seen - chance).abs() < 4.5 * deviation + now.1 + 1e-9, "{name}: node {node} {seen} of {chance}");
        }
    }
}
