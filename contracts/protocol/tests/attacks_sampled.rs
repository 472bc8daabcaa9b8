//! Attacks on sampled tasks, that an audit found: slashes escaped by who leaves, or by parameters that change, and groups kept shut. Each
//! is here as it was made, with what is left of it and what it costs now; docs/security.md quotes the figures.

use alloy_primitives::{B256, U256};
use alloy_sol_types::SolInterface;
use muster_core::id::TaskId;
use muster_model::meter::{metered_alone, priced, MOST_GAS};
use muster_model::refused;
use muster_model::validated::*;
use muster_model::world::*;
use muster_protocol::IMuster::{self, IMusterEvents as E, *};

const FEE: u128 = 6 * TOKEN;
/// What is left of the fee once the validators were called.
const LEFT: u128 = FEE / 50 * 49;
/// The stake of every node.
const STAKE: u128 = 400 * TOKEN;
/// What a wrong answer costs, in fees.
const SLASH_TIMES: u128 = 20;
/// Who attacks with tasks of his own.
const ATTACKER: u64 = 150;

/// Equal nodes of a listed GPU group, every answer of theirs sampled.
fn all_sampled(nodes: u64) -> World {
    let mut w = network(nodes);
    w.set("sampleBps", 10_000);
    w
}

fn wanted(models: &[u64]) -> IMuster::TaskSpec {
    IMuster::TaskSpec { gpu: CARD, redundancy: 1, ..spec(0, models) }
}

/// The node that runs a task.
fn runner(w: &mut World, id: u64) -> u32 {
    (1..=w.ask(overviewCall {}).nodesIssued).find(|&n| task_of(w, n) == id).expect("drawn")
}

/// Has the validators of a task called and drawn, once the lot is known; gives the group.
fn called(w: &mut World, id: u64, node: u32) -> (u32, Vec<u32>) {
    w.pass(3, 1);
    w.send(who(DRIVER), 0, validateCall { id, node }).unwrap();
    for _ in 0..50 {
        w.pass(3, 1);
        w.dispatch(16).unwrap();
        if let Some(group) = group_of(w, id) {
            return group;
        }
    }
    panic!("no group")
}

/// Has a member commit, whoever its operator is.
fn commit_as(w: &mut World, id: u64, node: u32, answer: u8) {
    let operator = w.node(node).operator.into_array();
    let commitment = commitment(id, node, ANSWER, value(answer), salt(id, node));
    w.send(operator, 0, commitCall { id, commitment }).unwrap();
}

/// Has the validators of a group say 1, its first what it has committed to; gives what was burnt.
fn judged(w: &mut World, id: u64, (place, members): &(u32, Vec<u32>), first: u8) -> u128 {
    let before = w.ask(overviewCall {}).burnt;
    for &n in &members[1..] {
        commit_as(w, id, n, 1);
    }
    for (i, &n) in members.iter().enumerate() {
        reveal(w, id, *place, n, ANSWER, value(if i == 0 { first } else { 1 })).unwrap();
    }
    assert_eq!(group_of(w, id), None, "judged");
    w.ask(overviewCall {}).burnt - before
}

/// A node's sampled task from its commitment to the judgement, others saying 1; gives what was burnt.
fn answered(w: &mut World, id: u64, node: u32, answer: u8) -> u128 {
    commit_as(w, id, node, answer);
    let group = called(w, id, node);
    judged(w, id, &group, answer)
}

/// Creates sampled tasks until this node has one; all others are answered rightly.
fn task_on(w: &mut World, wanted_node: u32, fee: u128) -> u64 {
    for _ in 0..200 {
        let id = created(w, fee, wanted(&[]));
        let node = runner(w, id);
        if node == wanted_node {
            return id;
        }
        assert_eq!(answered(w, id, node, 1), 0);
        w.pass(1, 1);
        w.dispatch(16).unwrap();
    }
    panic!("{wanted_node} is never drawn")
}

// ---------------------------------------------------------------- who is there

/// Slashing was off below `scorePool` active nodes at the commitment: a liar's other nodes left, or paused until draws had set them aside,
/// and were back before the judgement, and 120 tokens became 0. Now the joined nodes count, paused ones too, when the task is created.
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
            // They lie where they are two, and else say what is right.
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

// ---------------------------------------------------------------- who was called

/// A called node that sat on a sampled task of its own kept the group shut for as long as nobody had that validated: 20 hours, and its
/// members held. Now the group does without it as soon as its own task waits for nothing but a call of its validators.
#[test]
fn a_called_node_that_sits_on_its_own_task_keeps_a_group_shut_for_a_sample_window_at_most() {
    const SITTER: u32 = 12;
    const PRIVATE: u64 = 777;
    let mut w = network(11);
    w.join(SITTER.into(), "RTX 4090", 24, &[PRIVATE], 400).unwrap();
    w.set("sampleBps", 10_000);
    let window: u64 = w.ask(parameterCall { which: parameter("sampleWindow") }).value.to();
    let least = w.ask(estimateCall { kind: 1, units: 1 }).leastFee;
    let own = created_by(&mut w, ATTACKER, least, wanted(&[PRIVATE]));
    assert_eq!(task_of(&mut w, SITTER), own, "who holds the model is preferred");
    commit(&mut w, own, SITTER, ERROR, B256::ZERO).unwrap();
    let since = w.mem.now;
    // Others' tasks until it is called to one.
    let waiting = |w: &mut World| loop {
        let id = created(w, FEE, wanted(&[]));
        let node = runner(w, id);
        commit_as(w, id, node, 1);
        let (place, members) = called(w, id, node);
        for &n in members[1..].iter().filter(|&&n| n != SITTER) {
            commit_as(w, id, n, 1);
        }
        if members.contains(&SITTER) {
            return (id, place, members);
        }
        for &n in &members {
            reveal(w, id, place, n, ANSWER, value(1)).unwrap();
        }
    };
    let (id, place, members) = waiting(&mut w);
    let formed = w.mem.now;
    refused!(reveal(&mut w, id, place, members[0], ANSWER, value(1)), NotOpen(id, place));
    // To the second.
    w.pass(1, since + window - w.mem.now);
    refused!(w.send(who(DRIVER), 0, settleCall { id, group: place }), NotOpen(id, place));
    w.pass(1, 1);
    // Not if its validators have been called: it begins as soon as they are drawn.
    let mem = w.mem.clone();
    w.send(who(DRIVER), 0, validateCall { id: own, node: SITTER }).unwrap();
    refused!(w.send(who(DRIVER), 0, settleCall { id, group: place }), NotOpen(id, place));
    w.mem = mem;
    w.events();
    w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
    assert!(group_of(&mut w, id).is_some(), "the others have not revealed yet");
    let shut = w.mem.now - formed;
    for &n in members.iter().filter(|&&n| n != SITTER) {
        reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap();
    }
    let told: Vec<(u8, u128)> = w
        .events()
        .iter()
        .filter_map(|e| if let E::MemberJudged(m) = e { (m.node == SITTER).then_some((m.verdict, m.paid)) } else { None })
        .collect();
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].1, w.node(SITTER).scores), (0, 1));
    // Called again, it keeps nobody waiting.
    let (id, place, members) = waiting(&mut w);
    let formed = w.mem.now;
    w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
    let again = w.mem.now - formed;
    for &n in members.iter().filter(|&&n| n != SITTER) {
        reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap();
    }
    assert_eq!((w.node(SITTER).scores, again), (2, 0));
    // Its own task goes on as ever, and it does not run what it was called to.
    w.pass(1, 1);
    w.send(who(DRIVER), 0, validateCall { id: own, node: SITTER }).unwrap();
    for _ in 0..20 {
        w.pass(3, 1);
        w.dispatch(16).unwrap();
    }
    assert_eq!((task_of(&mut w, SITTER), group_of(&mut w, own).is_some()), (0, true));
    check_money(&mut w);
    priced(
        "a group kept shut by a called node that sits on its own sampled task",
        "its own task at the least fee, which nobody has validated",
        &format!(
            "{shut} s, at most the {window} s from its own commitment, and {again} s each time after; a score of 0 for each"
        ),
    );
    assert!(shut <= window);
}

// ---------------------------------------------------------------- parameters that change

/// The highest fee that is accepted.
fn most(w: &mut World) -> u128 {
    let refusal = w.create(CREATOR, STAKE, wanted(&[])).expect_err("more than a stake covers").into_bytes();
    match IMuster::IMusterErrors::abi_decode_validate(&refusal) {
        Ok(IMuster::IMusterErrors::FeeTooHigh(refused)) => refused.most.to(),
        other => panic!("{other:?}"),
    }
}

/// Where `openMost` was lowered, who had three open kept three, at fees for two: the bound rose at once. Now it is that of the highest ever.
#[test]
fn a_lowered_number_of_open_commitments_raises_no_bound_of_fees() {
    let mut w = all_sampled(9);
    let bound = STAKE / (SLASH_TIMES * 3);
    assert_eq!(most(&mut w), bound);
    w.set("openMost", 1);
    assert_eq!(most(&mut w), bound, "that of two open ones and one more");
    w.set("openMost", 4);
    let higher = STAKE / (SLASH_TIMES * 5);
    assert_eq!(most(&mut w), higher);
    w.set("openMost", 1);
    assert_eq!(most(&mut w), higher);
    priced(
        "stakes left uncovered by lowering openMost",
        "4 open commitments before, 1 after",
        &format!("the highest fee stays {:.2} tokens, of a stake of {}", higher as f64 / TOKEN as f64, STAKE / TOKEN),
    );
}

/// Lowered and raised again, `minStake` left nodes that had joined in between with less than fees may take. Now the lowest ever bounds them:
/// such a node is slashed by all that its wrong answers cost, of as many tasks as it may have open.
#[test]
fn a_least_stake_lowered_and_raised_leaves_no_slash_uncovered() {
    const CHEAP: u32 = 13;
    let mut w = all_sampled(12);
    let stake_units = (STAKE / u128::from(STAKE_UNIT)) as u64;
    let little = STAKE / 10;
    w.set("minStake", stake_units / 10);
    w.join(CHEAP.into(), "RTX 4090", 24, &[], little / TOKEN).unwrap();
    w.set("minStake", stake_units);
    let fee = most(&mut w);
    assert_eq!(fee, little / (SLASH_TIMES * 3));
    let id = task_on(&mut w, CHEAP, fee);
    let stake = w.node(CHEAP).stake;
    let burnt = answered(&mut w, id, CHEAP, 9);
    let left = fee - fee / 50;
    priced(
        "stakes left uncovered by lowering minStake and raising it again",
        &format!("a node that has joined with {} tokens, where {} were the least before and after", stake / TOKEN, STAKE / TOKEN),
        &format!(
            "the highest fee is {:.3} tokens; a wrong answer burns {:.2}, of three open ones {:.1} of its {}",
            fee as f64 / TOKEN as f64,
            burnt as f64 / TOKEN as f64,
            3.0 * burnt as f64 / TOKEN as f64,
            stake / TOKEN
        ),
    );
    // All of it, to a stake unit; the node is below the least stake by now.
    assert!(burnt <= SLASH_TIMES * left && burnt + u128::from(STAKE_UNIT) > SLASH_TIMES * left, "{burnt}");
    assert!(3 * burnt <= stake);
    assert_eq!(w.node(CHEAP).status, 0, "thrown out");
    check_money(&mut w);
}

/// A task that is queued when `minStake` is lowered has the fee of before, and whoever joins for less could have it: all that they have was less
/// than a wrong answer costs. Now the change is proposed. From the proposal on fees are bound by it, and what was queued before can be ended
/// by anyone long before it takes effect.
#[test]
fn what_is_queued_when_a_lower_least_stake_is_proposed_can_be_ended_before_it_counts() {
    let mut w = all_sampled(12);
    busy(&mut w, 12);
    let id = w.create(CREATOR, FEE, wanted(&[])).unwrap();
    let ticket = w.ticket(id);
    let little = STAKE / 10;
    let (number, value) = (parameter("minStake"), U256::from(little / u128::from(STAKE_UNIT)));
    refused!(w.send(OWNER, 0, setParameterCall { parameter: number, value }), ParameterDelayed(number));
    let before = most(&mut w);
    w.send(OWNER, 0, proposeParameterCall { parameter: number, value }).unwrap();
    let effective = w.mem.now + u64::from(UPGRADE_DELAY);
    refused!(w.create(CREATOR, FEE, wanted(&[])), FeeTooHigh(FEE, little / (SLASH_TIMES * 3)));
    let queue_time: u64 = w.ask(parameterCall { which: parameter("queueTime") }).value.to();
    w.pass(1, queue_time + 1);
    refused!(w.send(who(DRIVER), 0, acceptParameterCall { parameter: number }), TooEarly(effective));
    w.send(who(DRIVER), 0, expireQueuedCall { id, ticket }).unwrap();
    w.pass(1, u64::from(UPGRADE_DELAY) - queue_time);
    w.send(who(DRIVER), 0, acceptParameterCall { parameter: number }).unwrap();
    w.join(13, "RTX 4090", 24, &[], little / TOKEN).unwrap();
    let after = most(&mut w);
    check_money(&mut w);
    priced(
        "a dear queued task taken by who joined for less",
        &format!("a minStake of {} tokens proposed while a task of {} tokens is queued", little / TOKEN, FEE / TOKEN),
        &format!(
            "anyone ends that task after {queue_time} s, {} s before the change; the highest fee goes from {:.2} to {:.2} tokens at the proposal",
            u64::from(UPGRADE_DELAY) - queue_time,
            before as f64 / TOKEN as f64,
            after as f64 / TOKEN as f64
        ),
    );
    assert_eq!(after, little / (SLASH_TIMES * 3));
    // One that is not accepted binds, too: it may be at any time.
    let mut w = all_sampled(12);
    let value = U256::from(4);
    w.send(OWNER, 0, proposeParameterCall { parameter: parameter("openMost"), value }).unwrap();
    assert_eq!(most(&mut w), STAKE / (SLASH_TIMES * 5));
}

/// A new `slashTimes` was that of groups that were open already, whose fees were bound by the old one. Now each task has its own.
#[test]
fn what_a_wrong_answer_costs_is_what_it_cost_at_creation() {
    let mut rows = Vec::new();
    for times in [1u64, 40, 255] {
        let mut w = all_sampled(12);
        // Once when the node has not even committed, once when its group is open.
        for open in [false, true] {
            let id = created(&mut w, FEE, wanted(&[]));
            let node = runner(&mut w, id);
            if !open {
                w.set("slashTimes", times);
            }
            commit_as(&mut w, id, node, 9);
            let group = called(&mut w, id, node);
            if open {
                w.set("slashTimes", times);
            }
            let burnt = judged(&mut w, id, &group, 9);
            assert_eq!(burnt, SLASH_TIMES * LEFT, "{times} {open}");
            w.set("slashTimes", SLASH_TIMES as u64);
        }
        // Whoever is created next costs what it says, and no more than a stake covers.
        w.set("slashTimes", times);
        let fee = FEE.min(STAKE / (u128::from(times) * 3));
        let id = created(&mut w, fee, wanted(&[]));
        let node = runner(&mut w, id);
        let (burnt, due) = (answered(&mut w, id, node, 9), u128::from(times) * (fee - fee / 50));
        assert!(burnt <= due && burnt + u128::from(STAKE_UNIT) > due, "{times}: {burnt} {due}");
        check_money(&mut w);
        rows.push(format!("{times}"));
    }
    priced(
        "slashTimes changed while a group is open",
        &format!("from {SLASH_TIMES} to {}", rows.join(", ")),
        &format!(
            "a wrong answer to a task of {} tokens burns {:.1} tokens, as before",
            FEE / TOKEN,
            (SLASH_TIMES * LEFT) as f64 / TOKEN as f64
        ),
    );
}

/// The owner earned the start fees of queued tasks by lowering `queueTime` and ending them at once, or more by raising `startFeeBps` before a
/// task was created. Now both are proposed, and take effect when nothing that was queued before can be queued still.
#[test]
fn the_owner_earns_nothing_by_changing_what_tasks_cost() {
    let mut w = world(1, 1);
    busy(&mut w, 1);
    let queue_time: u64 = w.ask(parameterCall { which: parameter("queueTime") }).value.to();
    assert!(u64::from(UPGRADE_DELAY) > queue_time);
    let fee = 100 * TOKEN;
    let id = w.create(CREATOR, fee, spec(0, &[])).unwrap();
    let ticket = w.ticket(id);
    w.pass(10, 61);
    for (name, new) in [("queueTime", 60u64), ("startFeeBps", 5_000)] {
        let (parameter, value) = (parameter(name), U256::from(new));
        assert_eq!(named(w.send(OWNER, 0, setParameterCall { parameter, value })), "ParameterDelayed", "{name}");
        w.send(OWNER, 0, proposeParameterCall { parameter, value }).unwrap();
        assert!(w.send(OWNER, 0, acceptParameterCall { parameter }).is_err(), "{name}: not in time");
    }
    assert_eq!(named(w.send(OWNER, 0, expireQueuedCall { id, ticket })), "QueueTimeNotOver");
    let earned = w.ask(accountCall { who: OWNER.into() }).credit;
    priced(
        "queueTime and startFeeBps changed by the owner while a task is queued",
        &format!("a fee of {} tokens", fee / TOKEN),
        &format!("the owner earns {earned} wei; a change takes {UPGRADE_DELAY} s, a queued task lasts {queue_time} s"),
    );
    assert_eq!(earned, 0);
}

// ---------------------------------------------------------------- gas

/// An answer of one image.
fn picture() -> B256 {
    B256::right_padding_from(&[7; 8])
}

/// A group whose three members have withheld is settled by somebody: each of them is slashed out of the network while it runs a task of
/// eight models of its own, which is refunded, beside draws that are due.
#[test]
fn three_slashed_out_at_once_stay_below_the_most_that_a_call_may_cost() {
    let (mut worst, mut played) = (0, 0);
    for (due, seed) in [0u64, 1, 2, 4].into_iter().flat_map(|due| [0u64, 1].map(|seed| (due, seed))) {
        let mut w = world(0, 1);
        w.set("groupFee", 0);
        w.set("slashImages", 1);
        w.set("sampleBps", 10_000);
        w.pass(seed * 7, 0);
        // Each has a GPU group of its own.
        for n in 1..=40u64 {
            w.join(n, &format!("card{n}"), (1 + (n - 1) * 24) as u16, &[], 400).unwrap();
        }
        let id = created(&mut w, FEE, IMuster::TaskSpec { kind: 0, redundancy: 1, flags: 1, ..spec(0, &[]) });
        let node = runner(&mut w, id);
        commit(&mut w, id, node, ANSWER, picture()).unwrap();
        let (place, members) = called(&mut w, id, node);
        assert_eq!(members.len(), 3);
        for &n in &members[1..] {
            commit(&mut w, id, n, ANSWER, picture()).unwrap();
        }
        for (i, &n) in (0u64..).zip(&members) {
            let gpu = w.node(n).gpu;
            let models = (1..=8).map(|m| 3_000 + i * 10 + m).collect();
            let own = created_by(&mut w, 160 + i, TOKEN, IMuster::TaskSpec { gpu, models, flags: 1, ..spec(0, &[]) });
            assert_eq!(task_of(&mut w, n), own);
        }
        w.pass(100, 90_000);
        w.dispatch(16).unwrap();
        for d in 0..due {
            w.create(170 + d, TOKEN, IMuster::TaskSpec { flags: 1, ..spec(0, &[5_000 + d]) }).unwrap();
        }
        w.pass(1, 0);
        let (gas, out) = metered_alone(&mut w, who(199), 0, |net| net.settle(TaskId(id), place));
        assert_eq!(out, "accepted", "{due} due");
        assert_eq!(members.iter().filter(|&&n| w.node(n).status == 0).count(), 3);
        check_money(&mut w);
        (worst, played) = (gas.max(worst), played + 1);
    }
    priced(
        "three slashed out at once",
        &format!("up to four draws due, three running tasks of eight models refunded; {played} networks of 40 GPU groups"),
        &format!("{worst} gas for storage, logs and start"),
    );
    assert!(worst < MOST_GAS, "{worst}");
}
