//! Worked examples of the earlier dispatch documents (002, 003): one for each sentence, or for a few that say one thing, under its row of
//! docs/research/sources.md. Other tests of tasks that take three nodes are in replicated.rs.

use alloy_primitives::{keccak256, B256};
use muster_core::id::{GpuGroup, Grade, NodeId, QueueId, TaskId};
use muster_core::value::key;
use muster_model::refused;
use muster_model::validated::{self, *};
use muster_model::world::*;
use muster_protocol::flow::draw::{Members, Rng};
use muster_protocol::store::node::NodeHandle;
use muster_protocol::store::task::Task;
use muster_protocol::IMuster::{self, IMusterEvents as E, *};
use muster_protocol::Network;
use std::collections::{BTreeMap, BTreeSet};

/// A ten-thousandth of one, in wads.
const TEN_THOUSANDTH: u64 = 100_000_000_000_000;

/// A world with so many equal nodes of each card, numbered in this order. Listed are the GPU groups of the cards marked so.
fn cards(all: &[(&str, u16, u64, bool)]) -> World {
    let (mut w, mut n) = (world(0, 1), 0);
    for &(name, vram, count, listed) in all {
        for _ in 0..count {
            n += 1;
            w.join(n, name, vram, &[], 400).unwrap();
        }
        if listed {
            let group = w.ask(gpuGroupCall { name: name.into(), vram });
            w.send(OWNER, 0, listGpuGroupCall { group, listed }).unwrap();
        }
    }
    w.events();
    w
}

/// Creates a task and draws it until that is decided.
fn created(w: &mut World, fee: u128, spec: IMuster::TaskSpec) -> u64 {
    let id = w.create(CREATOR, fee, spec).unwrap();
    w.drain();
    id
}

/// Gives every idle node a task of its own; gives those by node.
fn busy(w: &mut World) -> BTreeMap<u32, u64> {
    let issued = w.ask(overviewCall {}).nodesIssued;
    let idle: Vec<u32> = (1..=issued).filter(|&n| w.node(n).status == 1).collect();
    for _ in &idle {
        created(w, TOKEN, spec(0, &[]));
    }
    w.events();
    idle.into_iter().map(|n| (n, task_of(w, n))).collect()
}

/// Ends a node's task: it becomes available and looks for a queued one.
fn freed(w: &mut World, tasks: &BTreeMap<u32, u64>, node: u32) {
    w.send(who(node.into()), 0, submitCall { id: tasks[&node], resultDigest: value(1) }).unwrap();
}

/// Ends a node's task by an error, when it need not rest any more: it is idle, and has taken nothing from the queue.
fn idled(w: &mut World, tasks: &BTreeMap<u32, u64>, node: u32) {
    validated::idled(w, (tasks[&node], node));
}

/// The members of a task's group in ascending order, and its place; none if it has no group.
fn members(w: &mut World, id: u64) -> Option<(Vec<u32>, u32)> {
    let (place, mut nodes) = group_of(w, id)?;
    nodes.sort_unstable();
    Some((nodes, place))
}

/// Tasks that left the queue for a draw, or started on one node, by the logs.
fn taken(w: &mut World) -> Vec<u64> {
    let of = |e: &E| match e {
        E::TaskRedrawn(t) => Some(t.id),
        E::TaskStarted(t) => Some(t.id),
        _ => None,
    };
    w.events().iter().filter_map(of).collect()
}

/// The nodes that so many hashes would give a task for three nodes, with these nodes reserved for it.
fn drawn_members(w: &mut World, wanted: &IMuster::TaskSpec, reserved: &[u32], rounds: u64) -> Vec<Members> {
    let net = Network::open(&mut w.mem).unwrap();
    let (order, models, _) = net.order_for(wanted).unwrap();
    let task = Task { order, models, ..Task::default() };
    let reserved: Vec<NodeHandle> = reserved.iter().map(|&n| NodeHandle::load(net.host, NodeId(n))).collect();
    let draw = |round: u64| {
        let mut rng = Rng::new(net.host, keccak256(round.to_be_bytes()).0, TaskId(1));
        net.draw_members(&task, &reserved, &mut rng)
    };
    (0..rounds).map(draw).collect()
}

/// The nodes that so many hashes would give a task that three can run, in the order in which they were drawn.
fn draws(w: &mut World, wanted: &IMuster::TaskSpec, rounds: u64) -> Vec<[u32; 3]> {
    let chosen = |members| match members {
        Members::Nodes(nodes) => Some([nodes[0].0, nodes[1].0, nodes[2].0]),
        Members::Undecided => None,
        gone => panic!("{gone:?}"),
    };
    let drawn: Vec<_> = drawn_members(w, wanted, &[], rounds).into_iter().filter_map(chosen).collect();
    assert!(drawn.len() as u64 * 100 > rounds * 99, "{} of {rounds} decided", drawn.len());
    drawn
}

/// Which threes they were, whatever their order.
fn threes(drawn: &[[u32; 3]]) -> BTreeSet<[u32; 3]> {
    let sorted = |mut nodes: [u32; 3]| {
        nodes.sort_unstable();
        nodes
    };
    drawn.iter().copied().map(sorted).collect()
}

/// All threes of some nodes, these in ascending order.
fn threes_of(nodes: &[u32]) -> BTreeSet<[u32; 3]> {
    let mut all = BTreeSet::new();
    for (i, &a) in nodes.iter().enumerate() {
        for (j, &b) in nodes.iter().enumerate().skip(i + 1) {
            all.extend(nodes[j + 1..].iter().map(|&c| [a, b, c]));
        }
    }
    all
}

/// Asserts that a node was the first of those drawn as often as this probability says, within four standard deviations.
fn is_first(drawn: &[[u32; 3]], node: u32, p: f64) {
    let (n, seen) = (drawn.len() as f64, drawn.iter().filter(|nodes| nodes[0] == node).count() as f64);
    let deviation = (n * p * (1.0 - p)).sqrt();
    assert!((seen - n * p).abs() < 4.0 * deviation, "{seen} of {n}, {} expected", n * p);
}

// ---------------------------------------------------------------- when a task is created

/// B1, B2: When a task is created, nodes are looked for that suit its type and VRAM; all that can run it are candidates, and chance decides.
#[test]
fn all_nodes_that_can_run_a_new_task_are_candidates() {
    // Images from 24 GiB up: the five of 24 and 48. Equal answers from 24 GiB up: the three of the listed card.
    let mut w = cards(&[("small", 16, 3, true), ("listed", 24, 3, true), ("large", 48, 2, false)]);
    assert_eq!(threes(&draws(&mut w, &image(24), 1_000)), threes_of(&[4, 5, 6, 7, 8]));
    assert_eq!(threes(&draws(&mut w, &alike(24), 1_000)), threes_of(&[4, 5, 6]));
    assert_eq!(threes(&draws(&mut w, &alike(0), 1_000)), BTreeSet::from([[1, 2, 3], [4, 5, 6]]));
    // It is the hash of its own block that decides.
    let id = w.create(CREATOR, 3 * TOKEN, alike(24)).unwrap();
    let pending = w.ask(pendingTasksCall { from: 0, count: 9 });
    assert_eq!((pending.len(), pending[0].id, pending[0].drawBlock), (1, id, w.mem.block));
    assert_eq!(w.dispatch(1).unwrap(), 0);
    w.pass(1, 0);
    assert_eq!(w.dispatch(1).unwrap(), 1);
    assert_eq!(members(&mut w, id).unwrap().0, [4, 5, 6]);
    assert_eq!([4, 5, 6].map(|n| (w.node(n).status, w.node(n).task)), [(2, id); 3]);
}

/// B3, B14, C7: Where there are not enough candidates the task is queued, until there are.
#[test]
fn without_three_candidates_a_task_is_queued() {
    let mut w = cards(&[("card", 24, 4, true)]);
    created(&mut w, TOKEN, spec(0, &[]));
    created(&mut w, TOKEN, spec(0, &[]));
    w.events();
    for wanted in [image(24), alike(24)] {
        let id = created(&mut w, 3 * TOKEN, wanted);
        assert_eq!(members(&mut w, id), None);
        let queued: Vec<_> =
            w.events().into_iter().filter_map(|e| if let E::TaskQueued(t) = e { Some(t) } else { None }).collect();
        assert_eq!((queued.len(), queued[0].id, queued[0].group, queued[0].creator.into_array()), (1, id, 24, who(CREATOR)));
        assert_eq!(w.ask(locateCall { id, nodeHint: 0, ticketHint: queued[0].ticket }).status, 2);
    }
    assert_eq!((w.ask(overviewCall {}).queued, (1..=4).filter(|&n| w.node(n).status == 1).count()), (2, 2));
}

/// B4: When enough nodes have been released by their tasks, the queued task of highest value goes to them.
#[test]
fn released_nodes_get_the_queued_task_of_highest_value() {
    let mut w = cards(&[("card", 24, 3, true)]);
    let tasks = busy(&mut w);
    let [low, high, middle] = [6, 15, 9].map(|fee| created(&mut w, fee * TOKEN, alike(0)));
    w.events();
    freed(&mut w, &tasks, 1);
    freed(&mut w, &tasks, 2);
    assert_eq!((taken(&mut w), w.ask(overviewCall {}).queued), (vec![], 3));
    freed(&mut w, &tasks, 3);
    assert_eq!((taken(&mut w), w.ask(overviewCall {}).queued), (vec![high], 2));
    w.drain();
    for (id, next) in [(high, Some(middle)), (middle, Some(low)), (low, None)] {
        assert_eq!(members(&mut w, id).unwrap().0, [1, 2, 3]);
        w.events();
        for node in 1..=3 {
            commit(&mut w, id, node, ANSWER, value(1)).unwrap();
        }
        assert_eq!(taken(&mut w), Vec::from_iter(next));
        let place = members(&mut w, id).unwrap().1;
        w.drain();
        for node in 1..=3 {
            reveal(&mut w, id, place, node, ANSWER, value(1)).unwrap();
        }
    }
    assert_eq!(w.ask(overviewCall {}).queued, 0);
}

/// B5: QoS counts in the choice: a node that often times out has low chances.
#[test]
fn who_times_out_has_low_chances_to_be_one_of_three() {
    let mut w = cards(&[("card", 24, 5, true)]);
    let id = created(&mut w, TOKEN, spec(0, &[]));
    let late = (1..=5).find(|&n| task_of(&mut w, n) == id).unwrap();
    w.pass(1, 121);
    w.send(who(DRIVER), 0, expireCall { node: late, id }).unwrap();
    // S is 1 and Q_long / 10 is 0.5. H is 0.3 for one, QoS 0.15 and W 0.15 / 1.15; for the others 1, 0.5 and 0.5 / 1.5.
    assert_eq!(w.node(late).reliability, 3_000 * TEN_THOUSANDTH);
    let (low, high) = (0.15 / 1.15, 0.5 / 1.5);
    let p = low / (low + 4.0 * high);
    assert!((0.089..0.0892).contains(&p));
    for wanted in [image(0), alike(0)] {
        is_first(&draws(&mut w, &wanted, 10_000), late, p);
    }
    // Below the threshold it has none.
    w.set("exclusionPpm", 300_001);
    let others: Vec<u32> = (1..=5).filter(|&n| n != late).collect();
    for wanted in [image(0), alike(0)] {
        assert_eq!(threes(&draws(&mut w, &wanted, 1_000)), threes_of(&others));
    }
}

/// B6: A GPT task takes three nodes of one card, a Stable Diffusion task three with VRAM enough.
#[test]
fn equal_answers_take_three_of_one_card_and_images_any_three() {
    let mut w = cards(&[("one", 24, 2, true), ("other", 24, 2, true)]);
    assert_eq!(threes(&draws(&mut w, &image(24), 1_000)), threes_of(&[1, 2, 3, 4]));
    refused!(w.create(CREATOR, 3 * TOKEN, alike(24)), NobodyCanRun(24u16, 0u32));
    w.join(5, "one", 24, &[], 400).unwrap();
    assert_eq!(threes(&draws(&mut w, &alike(24), 1_000)), threes_of(&[1, 2, 5]));
    // Fine-tuning as GPT.
    let fine_tuning = IMuster::TaskSpec { kind: 2, units: 60, ..alike(24) };
    assert_eq!(threes(&draws(&mut w, &fine_tuning, 1_000)), threes_of(&[1, 2, 5]));
    let id = created(&mut w, 3 * TOKEN, alike(24));
    assert_eq!(members(&mut w, id).unwrap().0, [1, 2, 5]);
}

/// B8: A task whose VRAM is stated too low may be given to nodes that cannot run it, and is aborted in the end: its creator pays the start fee.
#[test]
fn a_task_of_too_little_vram_is_given_to_nodes_that_cannot_run_it_and_refunded() {
    let fee = 6 * TOKEN;
    // 8 GiB are stated, 24 are there, and it would take more.
    for silent in [false, true] {
        let mut w = cards(&[("card", 24, 3, true)]);
        let id = created(&mut w, fee, alike(8));
        let (nodes, place) = members(&mut w, id).unwrap();
        assert_eq!(nodes, [1, 2, 3]);
        if silent {
            w.pass(1, 121);
            nodes.iter().for_each(|&node| w.send(who(DRIVER), 0, expireCall { node, id }).map(drop).unwrap());
            w.events();
            w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
        } else {
            nodes.iter().for_each(|&node| commit(&mut w, id, node, ERROR, B256::with_last_byte(3)).unwrap());
            w.events();
            nodes.iter().for_each(|&node| reveal(&mut w, id, place, node, ERROR, B256::with_last_byte(3)).unwrap());
        }
        let ended = |e: &E| matches!(e, E::GroupSettled(g) if (g.id, g.outcome, g.refund, g.startFee) == (id, 3, fee - fee / 50, fee / 50));
        assert!(w.events().iter().any(ended));
        assert_eq!((w.account(CREATOR).credit, [1, 2, 3].map(|n| w.account(n).credit)), (fee - fee / 50, [0; 3]));
        assert_eq!([1, 2, 3].map(|n| w.node(n).reliability), [if silent { 3_000 } else { 10_000 } * TEN_THOUSANDTH; 3]);
    }
}

// ---------------------------------------------------------------- which nodes

/// B10, B11: The groups of nodes with at least the task's VRAM are looked at; for Stable Diffusion the nodes are drawn across all of them.
#[test]
fn images_are_drawn_across_all_sizes_from_their_own_up() {
    let mut w = cards(&[("a", 16, 1, false), ("b", 24, 1, false), ("c", 24, 1, false), ("d", 48, 1, false), ("e", 80, 1, false)]);
    assert_eq!(threes(&draws(&mut w, &image(16), 2_000)), threes_of(&[1, 2, 3, 4, 5]));
    for vram in [17, 24] {
        assert_eq!(threes(&draws(&mut w, &image(vram), 1_000)), threes_of(&[2, 3, 4, 5]));
    }
    refused!(w.create(CREATOR, 3 * TOKEN, image(25)), NobodyCanRun(25u16, 0u32));
    w.join(6, "f", 100, &[], 400).unwrap();
    assert_eq!(threes(&draws(&mut w, &image(25), 1_000)), threes_of(&[4, 5, 6]));
}

/// B12: For GPT a card is drawn among all of them. Where the tries meet none that has three, listed cards are looked through, a bounded
/// number of them: behind many others one may be missed. The task is queued then. Poking one of its nodes has it drawn again, and that
/// node's card is not missed.
#[test]
fn a_listed_card_behind_many_others_is_found_in_the_end() {
    let names: Vec<String> = (0..40).map(|n| format!("private {n}")).collect();
    let others: Vec<_> = names.iter().map(|name| (name.as_str(), 24, 7, false)).collect();
    let mut w = cards(&[&others[..], &[("listed", 24, 3, true)]].concat());
    let ours = [281, 282, 283];
    let mut missed = 0;
    for _ in 0..10 {
        let id = created(&mut w, 3 * TOKEN, alike(0));
        if w.ask(overviewCall {}).queued > 0 {
            missed += 1;
            w.events();
            w.send(who(DRIVER), 0, pokeCall { node: 281 }).unwrap();
            assert_eq!(taken(&mut w), [id]);
            w.drain();
        }
        let (nodes, place) = members(&mut w, id).expect("found");
        assert_eq!(nodes, ours);
        nodes.iter().for_each(|&node| commit(&mut w, id, node, ANSWER, value(1)).unwrap());
        nodes.iter().for_each(|&node| reveal(&mut w, id, place, node, ANSWER, value(1)).unwrap());
    }
    assert!(missed > 0);
}

/// B12: How often it is missed, and that it is not where they are reserved. A change of this must change the note of the row.
#[test]
fn how_often_three_of_a_listed_card_are_missed_among_many_others() {
    let missed = |w: &mut World| {
        let drawn = drawn_members(w, &alike(0), &[], 2_000);
        let share = |what: &Members| drawn.iter().filter(|members| *members == what).count() as f64 / 20.0;
        [Members::Nobody, Members::Undecided].map(|what| share(&what).round())
    };
    let beside = [0, 30, 100, 300].map(|others| {
        let mut w = cards(&[("listed", 24, 3, true), ("private", 24, others, false)]);
        missed(&mut w)
    });
    println!("percent missed, and undecided: {beside:?}");
    assert!(beside.iter().all(|[missed, undecided]| *missed == 0.0 && *undecided < 5.0));
    // Behind so many others with idle nodes, of one size or of their own.
    let behind = |cards_before: u16, own: u16| {
        let names: Vec<String> = (0..cards_before).map(|n| format!("other {n}")).collect();
        let others: Vec<_> = names.iter().zip(0..).map(|(name, n)| (name.as_str(), 24 + n * own, 2, true)).collect();
        let mut w = cards(&[&others[..], &[("private", 24, 100, false), ("listed", 24 + cards_before * own, 3, true)]].concat());
        missed(&mut w)
    };
    let shares = [5, 10, 20, 40].map(|cards| [behind(cards, 0), behind(cards, 1)]);
    println!("percent missed, and undecided, behind 5, 10, 20, 40 cards of its size, or of smaller ones: {shares:?}");
    assert!(shares[..2].iter().flatten().all(|[missed, undecided]| *missed == 0.0 && *undecided < 5.0));
    let mut w = cards(&[("listed", 24, 3, true)]);
    let tasks = busy(&mut w);
    for n in 4..=303 {
        w.join(n, "private", 24, &[], 400).unwrap();
    }
    created(&mut w, 3 * TOKEN, alike(0));
    (1..=3).for_each(|node| freed(&mut w, &tasks, node));
    assert!((1..=3).all(|node| w.node(node).parked == 3));
    assert!(drawn_members(&mut w, &alike(0), &[1, 2, 3], 2_000).iter().all(|members| matches!(members, Members::Nodes(_))));
}

/// C2: Without a required GPU the nodes with at least the task's VRAM are candidates, else only those of that GPU.
#[test]
fn a_required_gpu_leaves_only_its_own_nodes() {
    let mut w = cards(&[("one", 24, 4, true), ("other", 24, 3, true), ("large", 48, 1, false)]);
    let [one, other] = ["one", "other"].map(|name| w.ask(gpuGroupCall { name: name.into(), vram: 24 }));
    for wanted in [image(24), alike(24)] {
        let required = |gpu| IMuster::TaskSpec { gpu, ..wanted.clone() };
        assert_eq!(threes(&draws(&mut w, &required(one), 1_000)), threes_of(&[1, 2, 3, 4]));
        assert_eq!(threes(&draws(&mut w, &required(other), 1_000)), threes_of(&[5, 6, 7]));
    }
    assert_eq!(threes(&draws(&mut w, &image(24), 5_000)), threes_of(&[1, 2, 3, 4, 5, 6, 7, 8]));
    let id = created(&mut w, 3 * TOKEN, IMuster::TaskSpec { gpu: other, ..image(0) });
    assert_eq!(members(&mut w, id).unwrap().0, [5, 6, 7]);
    // All of its nodes busy, no other will do.
    created(&mut w, 3 * TOKEN, IMuster::TaskSpec { gpu: other, ..alike(0) });
    assert_eq!(w.ask(overviewCall {}).queued, 1);
}

/// C4: A node that lately ran a task with the same model, or has it on its disk, is likelier to be chosen.
#[test]
fn who_has_the_model_is_likelier_to_be_one_of_three() {
    let mut w = cards(&[("card", 24, 5, true)]);
    let wanted = IMuster::TaskSpec { models: vec![7], ..alike(0) };
    let locality =
        |w: &mut World, number| w.ask(weightOfCall { number, spec: IMuster::TaskSpec { models: vec![7], ..alike(0) } }).locality;
    let id = created(&mut w, TOKEN, spec(0, &[7]));
    let node = (1..=5).find(|&n| task_of(&mut w, n) == id).unwrap();
    w.send(who(node.into()), 0, submitCall { id, resultDigest: B256::ZERO }).unwrap();
    // M is 1 + 0.3 for the node that ran it last, 0.7 more for one that says that it is on its disk.
    assert_eq!(locality(&mut w, node), 13_000 * TEN_THOUSANDTH);
    is_first(&draws(&mut w, &wanted, 10_000), node, 1.3 / 5.3);
    w.send(who(node.into()), 0, reportDownloadedCall { models: vec![7] }).unwrap();
    assert_eq!(locality(&mut w, node), 20_000 * TEN_THOUSANDTH);
    is_first(&draws(&mut w, &wanted, 10_000), node, 2.0 / 6.0);
    assert!((1..=5).filter(|&n| n != node).all(|n| locality(&mut w, n) == 10_000 * TEN_THOUSANDTH));
    // A node without it can be chosen all the same.
    assert_eq!(threes(&draws(&mut w, &wanted, 1_000)), threes_of(&[1, 2, 3, 4, 5]));
}

/// C5, C6: Faster nodes are likelier to be chosen; validations measure their speed, and no node's claim counts.
#[test]
fn chances_follow_the_speed_that_was_measured_and_not_the_one_that_is_claimed() {
    let mut w = cards(&[("card", 24, 9, true), ("the fastest of all", 24, 1, false)]);
    let weight = |w: &mut World, number| w.ask(weightOfCall { number, spec: alike(0) }).weight;
    let third = 333_333_333_333_333_333;
    assert!((1..=10).all(|n| weight(&mut w, n) == third));
    let id = created(&mut w, 3 * TOKEN, alike(0));
    let (nodes, place) = members(&mut w, id).unwrap();
    for &node in nodes.iter().rev() {
        w.pass(1, 20);
        commit(&mut w, id, node, ANSWER, value(1)).unwrap();
    }
    nodes.iter().for_each(|&node| reveal(&mut w, id, place, node, ANSWER, value(1)).unwrap());
    // Of 20, 40 and 60 seconds: 10, 5 and 2. QoS is 1, 0.5 and 0.2, W a half, a third and a sixth.
    for (i, (score, expected)) in [(2, 166_666_666_666_666_666), (5, third), (10, 5_000 * TEN_THOUSANDTH)].into_iter().enumerate()
    {
        assert_eq!((w.node(nodes[i]).longTerm, weight(&mut w, nodes[i])), (score * 1_000 * TEN_THOUSANDTH, expected));
    }
    // Seven others weigh a third each.
    let all = 0.5 + 1.0 / 3.0 + 1.0 / 6.0 + 7.0 / 3.0;
    let drawn = draws(&mut w, &image(0), 10_000);
    is_first(&drawn, nodes[2], 0.5 / all);
    is_first(&drawn, nodes[0], 1.0 / 6.0 / all);
    is_first(&drawn, 10, 1.0 / 3.0 / all);
}

// ---------------------------------------------------------------- how tasks are queued

/// B15, B16: Queued tasks are graded by type, those of each type by VRAM.
#[test]
fn queued_tasks_are_graded_by_type_and_by_vram() {
    let mut w = cards(&[("card", 24, 3, true)]);
    w.set("alphaMilli", 100_000);
    busy(&mut w);
    let gpu = w.ask(gpuGroupCall { name: "card".into(), vram: 24 });
    let single = |vram| spec(vram, &[]);
    let by_size = [single, image, alike].into_iter().flat_map(|of| [16, 24].map(of));
    let of_the_gpu = [single, image, alike].map(|of| IMuster::TaskSpec { gpu, ..of(24) });
    let wanted: Vec<_> = by_size.chain(of_the_gpu).collect();
    let ids: Vec<u64> = wanted.into_iter().map(|spec| created(&mut w, 3 * TOKEN, spec)).collect();
    let expected = [16, 24, 4096 + 16, 4096 + 24, 8192 + 16, 8192 + 24, gpu, gpu + 4096, gpu + 8192];
    let (total, queues) = w.ask(queuesCall { from: 0, count: 99 }).into();
    assert_eq!((total, queues.iter().map(|q| q.queue).collect::<Vec<_>>()), (9, expected.to_vec()));
    for (queue, id) in expected.into_iter().zip(ids) {
        let there = w.ask(queuedTasksCall { queue, from: 0, count: 99 })._1;
        assert_eq!(there.iter().map(|t| t.id).collect::<Vec<_>>(), [id]);
    }
}

/// B17, B18: Those of one VRAM are sorted by value, the fee by the estimated time, and the highest is always taken first.
#[test]
fn the_queued_task_of_highest_value_is_first() {
    let mut w = cards(&[("card", 24, 3, true)]);
    let tasks = busy(&mut w);
    let fine_tuning = |units| IMuster::TaskSpec { kind: 2, units, ..alike(24) };
    // By 60, 70, 100 and 30 seconds, of a third of the fee: 3.33, 4.29, 4.00 and 3.33 hundredths of a token each second.
    let wanted = [(6, alike(24), 60), (9, fine_tuning(70), 70), (12, fine_tuning(100), 100), (3, fine_tuning(30), 30)];
    let ids: Vec<u64> = wanted.iter().map(|(fee, spec, _)| created(&mut w, fee * TOKEN, spec.clone())).collect();
    let queue = QueueId::new(GpuGroup::any(24), Grade::Alike).0;
    let there = w.ask(queuedTasksCall { queue, from: 0, count: 99 })._1;
    assert_eq!(there.len(), 4);
    for (&id, (fee, _, estimate)) in ids.iter().zip(&wanted) {
        let task = there.iter().find(|t| t.id == id).unwrap();
        assert_eq!((task.estimate, task.queueKey), (*estimate, key(fee * TOKEN / 3, *estimate, TaskId(id))));
    }
    // The first and the last of the queue by the keys it is kept by.
    let view = w.ask(queuesCall { from: 0, count: 9 })._1[0].clone();
    let keys =
        [(1, 9, 70), (3, 3, 30)].map(|(i, fee, estimate): (usize, u128, u32)| key(fee * TOKEN / 3, estimate, TaskId(ids[i])));
    assert_eq!((view.queue, [view.best, view.worst]), (queue, keys));
    // Of equal values the earlier.
    let order = [ids[1], ids[2], ids[0], ids[3]];
    for node in 1..=3 {
        freed(&mut w, &tasks, node);
    }
    for id in order {
        w.drain();
        assert_eq!(members(&mut w, id).unwrap().0, [1, 2, 3]);
        let place = members(&mut w, id).unwrap().1;
        for node in 1..=3 {
            commit(&mut w, id, node, ANSWER, value(1)).unwrap();
        }
        w.drain();
        for node in 1..=3 {
            reveal(&mut w, id, place, node, ANSWER, value(1)).unwrap();
        }
    }
    assert_eq!(w.ask(overviewCall {}).queued, 0);
}

// ---------------------------------------------------------------- when a node becomes available

/// B19: A queued task is looked for when a task has ended, which frees three nodes, and when a node joins.
#[test]
fn a_task_for_three_is_looked_for_whenever_a_node_becomes_available() {
    // Two nodes are idle, the third is paused or runs a task, and a task for three waits.
    let waiting = |aside: bool| {
        let mut w = cards(&[("card", 24, 3, true)]);
        let single = created(&mut w, TOKEN, spec(0, &[]));
        let third = (1..=3).find(|&n| task_of(&mut w, n) == single).unwrap();
        if aside {
            w.send(who(third.into()), 0, submitCall { id: single, resultDigest: B256::ZERO }).unwrap();
            w.send(who(third.into()), 0, pauseCall {}).unwrap();
        }
        let id = created(&mut w, 6 * TOKEN, image(0));
        assert_eq!(w.ask(overviewCall {}).queued, 1);
        w.events();
        (w, id, single, third)
    };
    let runs_on = |w: &mut World, id: u64, third: u32| {
        assert_eq!(taken(w), [id]);
        w.drain();
        let (nodes, _) = members(w, id).unwrap();
        assert!(nodes.contains(&third), "{nodes:?}");
    };
    // Its task has ended: well, or by a timeout.
    let (mut w, id, single, third) = waiting(false);
    w.send(who(third.into()), 0, submitCall { id: single, resultDigest: B256::ZERO }).unwrap();
    runs_on(&mut w, id, third);
    let (mut w, id, single, third) = waiting(false);
    w.pass(1, 121);
    w.send(who(DRIVER), 0, expireCall { node: third, id: single }).unwrap();
    runs_on(&mut w, id, third);
    // Another joins.
    let (mut w, id, ..) = waiting(true);
    w.join(4, "new", 24, &[], 400).unwrap();
    runs_on(&mut w, id, 4);
    // It resumes.
    let (mut w, id, _, third) = waiting(true);
    w.send(who(third.into()), 0, resumeCall {}).unwrap();
    runs_on(&mut w, id, third);
    // It comes back from exclusion.
    let (mut w, id, single, third) = waiting(false);
    w.set("exclusionPpm", 500_000);
    w.pass(1, 121);
    w.send(who(DRIVER), 0, expireCall { node: third, id: single }).unwrap();
    assert_eq!((taken(&mut w), w.node(third).excluded), (vec![], true));
    let until = w.node(third).parkedUntil;
    w.mem.now = until;
    w.dispatch(0).unwrap();
    runs_on(&mut w, id, third);
    // A task's three nodes are freed one after the other, each by its commitment; the last of them starts the next task.
    let mut w = cards(&[("card", 24, 3, true)]);
    let [first, second] = [alike(0), image(0)].map(|spec| created(&mut w, 6 * TOKEN, spec));
    w.events();
    for node in 1..=3 {
        assert!(taken(&mut w).is_empty());
        commit(&mut w, first, node, ANSWER, value(1)).unwrap();
    }
    runs_on(&mut w, second, 3);
}

/// B20, B21: A new task is offered to nodes at once whatever is queued: tasks are queued only for want of nodes that fit them, and others,
/// which fit the new one, may be free.
#[test]
fn a_new_task_for_three_starts_beside_queued_ones_that_are_worth_more() {
    let mut w = cards(&[("small", 16, 3, false), ("listed", 24, 3, true)]);
    for _ in 0..3 {
        created(&mut w, TOKEN, spec(24, &[]));
    }
    let dear = [image(24), alike(16)].map(|spec| created(&mut w, 15 * TOKEN, spec));
    assert_eq!(w.ask(overviewCall {}).queued, 2);
    let cheap = created(&mut w, 3 * TOKEN, image(16));
    assert_eq!(members(&mut w, cheap).unwrap().0, [1, 2, 3]);
    assert_eq!((w.ask(overviewCall {}).queued, dear.map(|id| members(&mut w, id))), (2, [None, None]));
    // Never in the transaction that creates it.
    for node in 1..=3 {
        commit(&mut w, cheap, node, ANSWER, B256::with_last_byte(1)).unwrap();
    }
    w.set("drawDelay", 0);
    let id = w.create(CREATOR, 3 * TOKEN, image(16)).unwrap();
    let pending = w.ask(pendingTasksCall { from: 0, count: 9 });
    assert_eq!((pending.len(), pending[0].id, pending[0].drawBlock), (1, id, w.mem.block));
    w.drain();
    assert_eq!(members(&mut w, id).unwrap().0, [1, 2, 3]);
}

/// B22, B23: When a node becomes available, at most one queued task can start, and on three nodes of which this is one.
#[test]
fn a_freed_node_starts_one_task_and_is_one_of_its_three() {
    let mut w = cards(&[("card", 24, 3, true)]);
    let tasks = busy(&mut w);
    let [one, other, image] = [(9, alike(0)), (9, alike(0)), (6, image(0))].map(|(fee, spec)| created(&mut w, fee * TOKEN, spec));
    idled(&mut w, &tasks, 1);
    idled(&mut w, &tasks, 2);
    w.events();
    freed(&mut w, &tasks, 3);
    let events = w.events();
    let begun: Vec<_> =
        events.iter().filter(|e| matches!(e, E::TaskRedrawn(_) | E::TaskStarted(_) | E::GroupFormed(_))).collect();
    assert!(matches!(begun[..], [E::TaskRedrawn(t)] if t.id == one), "{begun:?}");
    let waits: Vec<_> =
        events.iter().filter_map(|e| if let E::NodeWaits(n) = e { Some((n.node, n.id, n.until)) } else { None }).collect();
    assert_eq!(waits, [(3, one, 0)]);
    w.drain();
    assert_eq!(members(&mut w, one).unwrap().0, [1, 2, 3]);
    assert_eq!((w.ask(overviewCall {}).queued, members(&mut w, other), members(&mut w, image)), (2, None, None));
}

/// B25: If two others of its card are free, they could run a GPT task.
#[test]
fn equal_answers_begin_when_two_others_of_the_card_are_free() {
    let mut w = cards(&[("listed", 24, 3, true), ("too few", 24, 2, true), ("private", 24, 3, false)]);
    w.set("holdTime", 0);
    let tasks = busy(&mut w);
    let id = created(&mut w, 6 * TOKEN, alike(0));
    w.events();
    // No other free node helps.
    for node in [4, 5, 6, 7, 8, 1, 2] {
        freed(&mut w, &tasks, node);
        assert_eq!((taken(&mut w), w.node(node).status), (vec![], 1), "{node}");
    }
    freed(&mut w, &tasks, 3);
    assert_eq!(taken(&mut w), [id]);
    w.drain();
    assert_eq!(members(&mut w, id).unwrap().0, [1, 2, 3]);
}

/// B24, B26: Of all threes with the node, the one whose least VRAM is greatest could run the most Stable Diffusion tasks.
#[test]
fn the_three_of_the_greatest_least_vram_decide_which_images_can_begin() {
    // Idle are one of 16, 24, 48 and 80 GiB each; of 80 one becomes free, and one stays busy.
    let mut w = cards(&[("a", 16, 1, false), ("b", 24, 1, false), ("c", 48, 1, false), ("d", 80, 3, false)]);
    w.set("holdTime", 0);
    let tasks = busy(&mut w);
    let [_, middle, _] = [(15, 80), (9, 48), (6, 24)].map(|(fee, vram)| created(&mut w, fee * TOKEN, image(vram)));
    (1..=4).for_each(|node| idled(&mut w, &tasks, node));
    w.events();
    freed(&mut w, &tasks, 5);
    assert_eq!(taken(&mut w), [middle]);
    w.drain();
    assert_eq!(members(&mut w, middle).unwrap().0, [3, 4, 5]);
}

/// B27, B29: Three of one card can serve any queued GPT and Stable Diffusion tasks up to their VRAM; of the first tasks of these queues,
/// the one of highest value runs.
#[test]
fn three_of_one_card_take_the_best_of_both_types_up_to_their_vram() {
    let queued = [alike(24), alike(16), image(24), image(16)];
    for best in 0..4 {
        let mut w = cards(&[("card", 24, 3, true), ("large", 48, 3, true)]);
        w.set("alphaMilli", 10_000);
        let tasks = busy(&mut w);
        // Tasks that need more VRAM than theirs are worth the most, and not for them.
        for spec in [alike(48), image(25)] {
            created(&mut w, 18 * TOKEN, spec);
        }
        let price = |i: usize| if i == best { 12 * TOKEN } else { 6 * TOKEN };
        let ids: Vec<u64> = queued.iter().enumerate().map(|(i, spec)| created(&mut w, price(i), spec.clone())).collect();
        // In every queue another is behind the first.
        for spec in queued.clone() {
            created(&mut w, 3 * TOKEN, spec);
        }
        idled(&mut w, &tasks, 1);
        idled(&mut w, &tasks, 2);
        w.events();
        freed(&mut w, &tasks, 3);
        assert_eq!(taken(&mut w), [ids[best]]);
        w.drain();
        assert_eq!(members(&mut w, ids[best]).unwrap().0, [1, 2, 3]);
        assert_eq!(w.ask(overviewCall {}).queued, 9);
    }
}

/// B29: The task of highest value runs: if it lacks only others, the node waits for them, and takes the next best only then.
#[test]
fn a_freed_node_waits_for_the_task_of_highest_value_before_it_takes_the_next() {
    let mut w = cards(&[("listed", 24, 3, true), ("private", 24, 2, false)]);
    let tasks = busy(&mut w);
    let [dear, cheap] = [(12, alike(0)), (6, image(0))].map(|(fee, spec)| created(&mut w, fee * TOKEN, spec));
    idled(&mut w, &tasks, 4);
    idled(&mut w, &tasks, 5);
    w.events();
    freed(&mut w, &tasks, 1);
    let until = w.mem.now + 60;
    let events = w.events();
    assert!(
        matches!(events[..], [E::TaskSucceeded(_), E::NodeWaits(ref n)] if (n.node, n.id, n.until) == (1, dear, until)),
        "{events:?}"
    );
    w.pass(1, 59);
    w.dispatch(0).unwrap();
    assert!(taken(&mut w).is_empty());
    w.pass(1, 1);
    w.dispatch(0).unwrap();
    assert_eq!(taken(&mut w), [cheap]);
    w.drain();
    assert_eq!(members(&mut w, cheap).unwrap().0, [1, 4, 5]);
}

/// B28: Three of different cards can serve any queued Stable Diffusion tasks up to their least VRAM.
#[test]
fn three_of_different_cards_take_only_images_up_to_their_least_vram() {
    let mut w = cards(&[("a", 24, 1, true), ("b", 32, 1, true), ("c", 48, 1, true), ("busy", 80, 3, true)]);
    w.set("holdTime", 0);
    let tasks = busy(&mut w);
    let [id, ..] =
        [(6, image(24)), (15, alike(24)), (15, image(25)), (5, image(16))].map(|(fee, spec)| created(&mut w, fee * TOKEN, spec));
    idled(&mut w, &tasks, 2);
    idled(&mut w, &tasks, 3);
    w.events();
    freed(&mut w, &tasks, 1);
    assert_eq!(taken(&mut w), [id]);
    w.drain();
    assert_eq!(members(&mut w, id).unwrap().0, [1, 2, 3]);
}

// ---------------------------------------------------------------- how many may be queued

/// B30, B31, B32: At most alpha x N tasks are queued, of all types together. Beyond that, the one of lowest value is taken out and aborted,
/// and its creator gets the event `TaskAborted`.
#[test]
fn a_full_queue_loses_the_lowest_value_of_all_types() {
    let mut w = cards(&[("card", 24, 5, true)]);
    // 0.799 x 5 = 3.995.
    w.set("alphaMilli", 799);
    busy(&mut w);
    // Each by a creator of its own. Values in thousandths of a token each second: 50, 33, 40; then 17, the least itself, 83, 100 and 67.
    let all =
        [(3, spec(0, &[])), (6, alike(0)), (6, image(0)), (1, spec(0, &[])), (15, alike(0)), (15, image(0)), (4, spec(0, &[]))];
    // Which of them goes, if any: the lowest, whatever its type.
    let losers = [None, None, None, Some(3), Some(1), Some(2), Some(0)];
    let mut ids = Vec::new();
    for (i, loser) in losers.into_iter().enumerate() {
        let (fee, spec) = all[i].clone();
        w.events();
        ids.push(w.create(100 + i as u64, fee * TOKEN, spec).unwrap());
        w.drain();
        let aborted: Vec<_> =
            w.events().into_iter().filter_map(|e| if let E::TaskAborted(t) = e { Some(t) } else { None }).collect();
        let expected = loser.map(|l: usize| (ids[l], 0, who(100 + l as u64), 2, all[l].0 * TOKEN, 0));
        let told: Vec<_> =
            aborted.iter().map(|t| (t.id, t.node, t.creator.into_array(), t.reason, t.refund, t.startFee)).collect();
        assert_eq!(told, Vec::from_iter(expected));
        assert_eq!(w.ask(overviewCall {}).queued, 3.min(1 + i as u32));
    }
    assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|i| w.account(100 + i).credit / TOKEN), [3, 6, 6, 1, 0, 0, 0]);
}
