//! Attacks on tasks whose nodes are chosen by their ratings: what each comes to and what it costs. Those that docs/reputation.md calls
//! limits show how far they go.

use alloy_primitives::B256;
use muster_core::id::{ModelId, NodeId, TaskId};
use muster_core::record::{Escrow, Order, TargetSearch, CALL_MODELS, TASK_MODELS};
use muster_core::wad::WAD;
use muster_model::meter::{metered, metered_alone, priced, MOST_GAS};
use muster_model::refused;
use muster_model::validated::*;
use muster_model::world::*;
use muster_protocol::host::{offset, Host};
use muster_protocol::layout::{profile, profile_slot};
use muster_protocol::store::node::NodeHandle;
use muster_protocol::store::task::{ModelSet, Task};
use muster_protocol::IMuster::{self, IMusterEvents as E, *};

const FEE: u128 = 18 * TOKEN;
/// Who attacks with tasks of his own.
const ATTACKER: u64 = 70;
/// Groups of so many, whatever their ratings.
fn of_size(size: u8) -> Profile {
    Profile { least: size, most: size, targeting: 2, target: WAD, ..USUAL }
}

/// One image by nodes chosen by their ratings.
fn rated_image(gpu: u32, vram: u16) -> IMuster::TaskSpec {
    IMuster::TaskSpec { kind: 0, gpu, vram, redundancy: 3, ..spec(0, &[]) }
}

/// An answer of one image.
fn picture(n: u8) -> B256 {
    let mut bytes = [0; 32];
    bytes[..8].fill(n);
    bytes.into()
}

/// What is left of a fee after so many groups without a majority, each of which cost it a start fee.
fn left_after(groups: u32) -> u128 {
    (0..groups).fold(FEE, |fee, _| fee - fee / 50)
}

fn settled(w: &mut World) -> GroupSettled {
    w.events().into_iter().rev().find_map(|e| if let E::GroupSettled(s) = e { Some(s) } else { None }).expect("settled")
}

/// A judgement frees a node that has a queued task drawn, and gives its own task to another group: two places in the ring, of which only
/// one may be free. Were the second taken for granted, the ring would take itself for empty, and every Pending task and its fee be lost.
#[test]
fn a_judgement_does_not_overrun_the_ring() {
    let mut w = network(9);
    w.set("holdTime", 0);
    set_profile(&mut w, CREATOR, of_size(3));
    let id = created_by(&mut w, CREATOR, FEE, rated());
    let (place, members) = group_of(&mut w, id).expect("formed");
    for (&n, says) in members[..2].iter().zip(1..) {
        commit(&mut w, id, n, ANSWER, value(says)).unwrap();
    }
    set_profile(&mut w, ATTACKER, of_size(9));
    let queued = created_by(&mut w, ATTACKER, FEE, rated());
    assert!(w.ticket(queued) > 0, "eight are idle, and it takes nine");
    // The third lets its deadline pass: the judgement frees it.
    w.pass(1, 10_000);
    reveal(&mut w, id, place, members[0], ANSWER, value(1)).unwrap();
    let single = IMuster::TaskSpec { redundancy: 0, ..rated() };
    for _ in 0..4_094 {
        w.create(ATTACKER, TOKEN, single.clone()).unwrap();
    }
    assert_eq!(w.ask(overviewCall {}).pending, 4_094, "one place is free");
    check_money(&mut w);
    reveal(&mut w, id, place, members[1], ANSWER, value(2)).unwrap();
    let pending = w.ask(overviewCall {}).pending;
    priced(
        "Pending tasks lost by a judgement",
        "a ring with one place free, a queued task that lacks one node, a group without a majority",
        &format!("{pending} of 4,095 tasks are Pending still"),
    );
    assert_eq!(pending, 4_095);
    check_money(&mut w);
}

/// While the ring is full nobody is judged who might need a place in it; nothing is lost, and with the first draw it goes on.
#[test]
fn a_full_ring_delays_a_judgement_and_no_more() {
    let mut w = network(9);
    w.set("drawDelay", 2);
    set_profile(&mut w, CREATOR, of_size(3));
    let id = w.create(CREATOR, FEE, rated()).unwrap();
    w.pass(2, 0);
    w.dispatch(1).unwrap();
    let (place, members) = group_of(&mut w, id).expect("formed");
    for &n in &members {
        commit(&mut w, id, n, ANSWER, value(1)).unwrap();
    }
    let single = IMuster::TaskSpec { redundancy: 0, ..rated() };
    let least = w.ask(estimateCall { kind: 1, units: 1 }).leastFee;
    for _ in 0..4_095 {
        w.create(ATTACKER, least, single.clone()).unwrap();
    }
    for &n in &members {
        reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap();
    }
    refused!(w.send(who(DRIVER), 0, settleCall { id, group: place }), TooManyPending(4_095u32));
    check_money(&mut w);
    w.drain();
    w.events();
    w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
    assert_eq!(settled(&mut w).outcome, 0);
    check_money(&mut w);
    priced(
        "judgements of rated groups delayed by a full ring",
        "4,095 tasks created within one draw delay, at the least fee each",
        "until they are drawn; nothing is lost",
    );
}

/// How often a task is drawn until its group is formed, of at most `most` draws, in a network of these stakes.
fn draws_until_formed(w: &mut World, spec: &IMuster::TaskSpec, most: u32) -> Option<u32> {
    let id = w.create(CREATOR, FEE, spec.clone()).unwrap();
    for draws in 1..=most {
        w.pass(1, 0);
        w.dispatch(1).unwrap();
        if group_of(w, id).is_some() {
            return Some(draws);
        }
    }
    None
}

/// Where more than 32 are idle, different nodes are drawn by weight in a bounded number of tries, and a draw that finds fewer than `most`
/// is made again. A few great stakes took nearly all tries, and kept such a task Pending for good; now no try falls on who is chosen.
#[test]
fn great_stakes_do_not_keep_a_rated_task_pending() {
    for (whales, tokens) in [(0u64, 400u128), (3, 400 << 12), (1, 400 << 18), (3, 400 << 18)] {
        let mut w = network(40);
        for n in 0..whales {
            w.join(100 + n, "RTX 4090", 24, &[], tokens).unwrap();
        }
        let mem = w.mem.clone();
        for (most, spec) in [(7u8, rated()), (9, rated()), (9, rated_image(0, 8))] {
            let mut draws = 0;
            for seed in 0..20 {
                w.mem = mem.clone();
                w.mem.block += seed * 1_000;
                set_profile(&mut w, CREATOR, Profile { most, ..USUAL });
                draws += draws_until_formed(&mut w, &spec, 100).expect("it is formed");
            }
            assert!(draws < 30, "{whales} of {tokens}, {most}: {draws} draws of 20 tasks");
        }
    }
}

/// Others' tasks in a network whose nodes up to `own` are an attacker's, who answer falsely as soon as they have the majority: of 20 how
/// many have a false answer.
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

/// First-fit takes the best rated of a pool, and in a network of up to 32 idle nodes that is everybody: whoever has two of the three best
/// rated has every group of three, and stays so. Where all begin alike it is luck who is best first; tasks of one's own for random groups,
/// answered falsely where two of three are one's own, make it certain.
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

/// A task that nobody can run, for its input is shown to nobody: honest nodes report an error, which counts for no rating where there is no
/// majority; else a few tasks, whose fees come back whole, would ruin everybody's.
#[test]
fn tasks_that_cannot_be_run_leave_ratings_alone() {
    let mut w = network(12);
    (1..=12).for_each(|n| rate(&mut w, n));
    let ratings = |w: &mut World| (1..=12).map(|n| w.node(n).rating).collect::<Vec<_>>();
    let before = ratings(&mut w);
    set_profile(&mut w, ATTACKER, Profile { reschedules: 8, algorithm: 0, ..of_size(9) });
    let (tasks, mut groups) = (3, 0);
    for _ in 0..tasks {
        let id = created_by(&mut w, ATTACKER, FEE, rated());
        while let Some((place, members)) = group_of(&mut w, id) {
            groups += 1;
            for &n in &members {
                commit(&mut w, id, n, ERROR, B256::ZERO).unwrap();
            }
            for &n in &members {
                reveal(&mut w, id, place, n, ERROR, B256::ZERO).unwrap();
            }
            w.pass(1, 1);
            w.dispatch(16).unwrap();
        }
        let s = settled(&mut w);
        assert_eq!((s.outcome, s.refund), (3, left_after(9)));
    }
    assert_eq!((groups, ratings(&mut w)), (9 * tasks, before));
    check_money(&mut w);
}

/// Honest nodes that have worked well.
fn seasoned(nodes: u64) -> World {
    let mut w = network(nodes);
    set_profile(&mut w, CREATOR, Profile { algorithm: 0, ..of_size(9) });
    for _ in 0..nodes * 4 {
        let id = created_by(&mut w, CREATOR, FEE, rated());
        let (place, members) = group_of(&mut w, id).expect("formed");
        play(&mut w, id, place, &members, |_| value(1));
        w.pass(1, 1);
    }
    w.events();
    w
}

/// An answer of one image, far from that of any other number.
fn noise(n: u64) -> B256 {
    B256::right_padding_from(&Dice(n).bits().to_be_bytes())
}

/// A task of the attacker's to which no answer is right: everybody else says something of their own, his own nodes the same. Gives its groups
/// and what it has cost.
fn without_right_answer(w: &mut World, own: impl Fn(u32) -> bool, number: u64) -> (u32, u128) {
    let id = created_by(w, ATTACKER, FEE, rated_image(0, 8));
    let (mut groups, mut refund) = (0, 0);
    while let Some((place, members)) = group_of(w, id) {
        groups += 1;
        let of_group = (number * 10 + u64::from(groups)) * 100;
        play(w, id, place, &members, |n| if own(n) { noise(of_group) } else { noise(of_group + u64::from(n)) });
        refund = settled(w).refund;
        w.pass(1, 1);
        w.dispatch(16).unwrap();
    }
    (groups, FEE - refund)
}

/// Ratings in thousandths, and how many judgements they count.
fn ratings(w: &mut World, nodes: impl Iterator<Item = u32>) -> Vec<(u64, u8)> {
    nodes.map(|n| w.node(n)).map(|view| (view.rating / (WAD / 1_000), view.judged)).collect()
}

/// Tasks without a right answer, as honest nodes answer them, halved everybody's ratings, for start fees: then three newcomers were the best
/// rated, and 20 of 20 of others' tasks had false answers. And where two or three of his own said the same among nine, the Optimistic
/// heuristic held those right and all others wrong. Now an answer that no majority contradicts rates nobody.
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
        // Newcomers, where none of his own was there before.
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

/// Nine answers of nine honest nodes are nobody's majority where none is right, and whoever reads them has them for start fees: 450 tokens of
/// work for one, where only the last group cost any. Now each does.
#[test]
fn work_without_a_right_answer_costs_a_start_fee_for_each_group() {
    let mut w = seasoned(12);
    set_profile(&mut w, ATTACKER, Profile { reschedules: 8, algorithm: 0, ..of_size(9) });
    let before = w.ask(overviewCall {}).treasuryBalance;
    let (groups, cost) = without_right_answer(&mut w, |_| false, 1);
    assert_eq!(w.ask(overviewCall {}).treasuryBalance - before, cost, "to protocol income");
    check_money(&mut w);
    let worth = u128::from(groups) * FEE;
    priced(
        "work of honest nodes for an application whose tasks have no right answer",
        "a task of nine, 8 reschedules, an application of no node",
        &format!("{groups} groups, {:.1} tokens of unpaid work for each that it pays", worth as f64 / cost as f64),
    );
    // Fifty for each of the first group, and a little more of the others, whose start fees are parts of what is left.
    assert_eq!((groups, cost), (9, FEE - left_after(9)));
    assert!(worth > 50 * cost && worth < 55 * cost, "{worth} {cost}");
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

/// A task keeps its number when it goes to another group: whoever is in the second has read what the first revealed, and may say the same
/// without having worked. A commitment itself cannot be taken over: it names its node.
#[test]
fn the_second_group_can_copy_what_the_first_revealed() {
    let mut w = network(12);
    set_profile(&mut w, CREATOR, of_size(5));
    let id = created_by(&mut w, CREATOR, FEE, rated());
    let (place, first) = group_of(&mut w, id).expect("formed");
    // Two that collude, and three honest ones of which one is too late: no majority.
    for &n in &first[..4] {
        commit(&mut w, id, n, ANSWER, value(if first[..2].contains(&n) { 66 } else { 1 })).unwrap();
    }
    w.pass(1, 200);
    for &n in &first[..4] {
        reveal(&mut w, id, place, n, ANSWER, value(if first[..2].contains(&n) { 66 } else { 1 })).unwrap();
    }
    if group_of(&mut w, id).is_some() {
        w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
    }
    assert_eq!(settled(&mut w).outcome, 4);
    w.pass(1, 0);
    w.dispatch(1).unwrap();
    let (place, second) = group_of(&mut w, id).expect("formed again");
    // Nobody else's commitment can be opened, the node's own of before can.
    let (again, fresh): (Vec<u32>, Vec<u32>) = second.iter().partition(|n| first[..4].contains(n));
    let copied = commitment(id, first[0], ANSWER, value(66), salt(id, first[0]));
    w.send(who(fresh[0].into()), 0, commitCall { id, commitment: copied }).unwrap();
    for &n in fresh[1..].iter().chain(&again) {
        commit(&mut w, id, n, ANSWER, value(66)).unwrap();
    }
    let opened = w.send(
        who(DRIVER),
        0,
        revealCall { id, group: place, node: fresh[0], kind: ANSWER, value: value(66), salt: salt(id, first[0]) },
    );
    refused!(opened, NotWhatWasCommitted(id, fresh[0]));
    for &n in fresh[1..].iter().chain(&again) {
        reveal(&mut w, id, place, n, ANSWER, value(66)).unwrap();
    }
    w.pass(1, 7_201);
    w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
    let s = settled(&mut w);
    assert_eq!((s.outcome, s.answer), (0, value(66)));
    check_money(&mut w);
    priced(
        "a false answer of the first group that the second copies",
        "two colluding nodes in a first group without a majority, and a second group whose members copy rather than work",
        "the false answer is paid; a copied commitment cannot be opened",
    );
}

/// Who reveals last has read the others' answers: without it there is no majority, nobody is paid, and the task begins again.
#[test]
fn who_withholds_undoes_a_majority_by_one() {
    let mut w = network(12);
    set_profile(&mut w, CREATOR, of_size(3));
    let id = created_by(&mut w, CREATOR, FEE, rated());
    let (place, members) = group_of(&mut w, id).expect("formed");
    for (&n, says) in members.iter().zip([1, 1, 2]) {
        commit(&mut w, id, n, ANSWER, value(says)).unwrap();
    }
    reveal(&mut w, id, place, members[0], ANSWER, value(1)).unwrap();
    reveal(&mut w, id, place, members[2], ANSWER, value(2)).unwrap();
    refused!(w.send(who(DRIVER), 0, settleCall { id, group: place }), RevealsOpen(id, w.mem.now + 7_200));
    w.pass(1, 7_201);
    let before = w.account(members[0].into()).credit;
    w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
    let s = settled(&mut w);
    assert_eq!((s.outcome, s.startFee), (4, FEE / 50));
    assert_eq!(w.account(members[0].into()).credit, before);
    // It agreed with somebody who did not reveal: nobody knows, and only who withholds is rated.
    let rated: Vec<(u8, u8)> = members.iter().map(|&n| (w.node(n).right, w.node(n).judged)).collect();
    assert_eq!(rated, [(0, 0), (0, 1), (0, 0)]);
    assert_eq!(w.node(members[1]).stake, 400 * TOKEN, "no slash");
    check_money(&mut w);
    priced(
        "a majority undone by who withholds",
        "one member of a majority by one: its own pay and one judgement of its rating",
        "two hours, the others' pay and a start fee of the creator's; up to `reschedules` times if it is drawn again",
    );
}

/// Each group of nine that one node withholds in is open for two hours. The commitments of the other eight counted, so that two such groups kept
/// them from all work, and others' validators could be none but the attacker's: at the price of the least fees, for nobody is slashed in
/// such a group. Now they count where there is a slash, and nowhere else.
#[test]
fn who_withholds_in_a_rated_group_keeps_nobody_from_work() {
    let mut w = network(12);
    set_profile(&mut w, ATTACKER, of_size(9));
    // Twice as many as open commitments that hold a node.
    let (groups, mut spent) = (4, 0);
    for _ in 0..groups {
        let fee = 9 * w.ask(estimateCall { kind: 1, units: 1 }).leastFee;
        spent += fee;
        let id = created_by(&mut w, ATTACKER, fee, rated());
        let (place, members) = group_of(&mut w, id).expect("formed");
        for &n in &members {
            commit(&mut w, id, n, ANSWER, value(1)).unwrap();
            assert_eq!((w.node(n).status, w.node(n).openCommitments, w.node(n).held), (1, 0, false), "{n} works on");
        }
        for &n in &members[1..] {
            reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap();
        }
        refused!(w.send(who(DRIVER), 0, settleCall { id, group: place }), RevealsOpen(id, w.mem.now + 7_200));
    }
    let open = w.ask(groupsCall { from: 0, count: 99 })._1;
    assert_eq!(open.len(), groups, "all of them wait for who withholds");
    let held = (1..=12).filter(|&n| w.node(n).held).count();
    priced(
        "nodes kept from work by withholding",
        &format!("{groups} groups of nine at the least fee, {spent} wei in all, one member of each does not reveal"),
        &format!("{held} of 12 nodes held"),
    );
    assert_eq!(held, 0);
    // Nor does it lock their stakes, for which nothing can be taken.
    let operator = u64::from(open[0].members[1].node);
    w.send(who(operator), 0, quitCall {}).unwrap();
    w.pass(1, 86_401);
    w.send(who(operator), 0, withdrawCall { to: who(operator).into() }).unwrap();
    assert_eq!(w.account(operator).unbonding, 0);
    for group in open {
        w.send(who(DRIVER), 0, settleCall { id: group.id, group: group.group }).unwrap();
    }
    check_money(&mut w);
}

/// In a group of four, six or eight half is enough to prevent a majority: an application with half of the nodes reads the others'
/// answers and has its fee back but for a start fee for each group that has worked.
#[test]
fn half_of_an_even_group_makes_the_others_work_for_nothing() {
    let mut w = network(12);
    set_profile(&mut w, ATTACKER, Profile { reschedules: 8, ..of_size(4) });
    // Farmed before: the two best rated are his, so First-fit takes them each time.
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

/// Makes a node one of the best rated.
fn rate(w: &mut World, number: u32) {
    for _ in 0..10 {
        w.raw([0; 20], 0, |m| {
            NodeHandle::load(m, NodeId(number)).rate(m, true);
            Ok(())
        })
        .unwrap();
    }
}

/// The best rated task of a scope goes first also where it lacks nodes: cheaper ones that are queued wait behind it. One node that is paused
/// makes nine of eight.
#[test]
fn a_task_that_lacks_one_node_keeps_cheaper_ones_queued() {
    let mut waited = Vec::new();
    let mut cost = 0;
    for attacked in [false, true] {
        let mut w = network(9);
        set_profile(&mut w, CREATOR, of_size(3));
        set_profile(&mut w, ATTACKER, of_size(9));
        let mut tasks = busy(&mut w, 8);
        let idle = (1..=9).find(|&n| w.node(n).status == 1).unwrap();
        w.send(who(idle.into()), 0, pauseCall {}).unwrap();
        if attacked {
            // A hundredth more for each node.
            let id = created_by(&mut w, ATTACKER, 9 * (TOKEN + TOKEN / 100), rated());
            assert!(w.ticket(id) > 0);
        }
        let id = created_by(&mut w, CREATOR, 3 * TOKEN, rated());
        assert!(w.ticket(id) > 0);
        let start = w.mem.now;
        let single = IMuster::TaskSpec { redundancy: 0, ..rated() };
        while group_of(&mut w, id).is_none() && w.mem.now < start + 21_600 {
            // There is other work, and each node does its own in a minute.
            while w.ask(overviewCall {}).queued + w.ask(overviewCall {}).pending < 8 {
                w.create(90, TOKEN / 10, single.clone()).unwrap();
            }
            for (task, node) in &mut tasks {
                w.pass(1, 8);
                let view = w.ask(runningTaskCall { number: *node });
                if view.status == 3 && view.id != id {
                    *task = view.id;
                    w.send(who(u64::from(*node)), 0, submitCall { id: *task, resultDigest: value(1) }).unwrap();
                }
                w.dispatch(16).unwrap();
            }
        }
        waited.push(w.mem.now - start);
        if attacked {
            let before = w.ask(overviewCall {}).treasuryBalance;
            let all = w.ask(queuesCall { from: 0, count: 256 })._1;
            for q in all {
                for t in w.ask(queuedTasksCall { queue: q.queue, from: 0, count: 256 })._1 {
                    let ticket = w.ticket(t.id);
                    let _ = w.send(who(ATTACKER), 0, cancelCall { id: t.id, ticket });
                }
            }
            cost = w.ask(overviewCall {}).treasuryBalance - before;
        }
        check_money(&mut w);
    }
    println!("{waited:?}");
    priced(
        "a cheaper rated task kept queued by one that lacks a node",
        &format!("a paused node, and the start fee of one task of nine, {:.2} tokens, in six hours", cost as f64 / TOKEN as f64),
        &format!("{} s instead of {} s", waited[1], waited[0]),
    );
    assert!(waited[0] < 600 && waited[1] >= 21_600, "{waited:?}");
}

/// Thirty-two models of its own that a node holds, and eight that a task wants and nobody has.
fn hoard(w: &mut World, n: u64, card: &str, vram: u16) -> u32 {
    let list: Vec<u64> = (1..=32).map(|m| n * 100 + m).collect();
    let number = w.join(n, card, vram, &list[..CALL_MODELS], 400).unwrap();
    for part in list[CALL_MODELS..].chunks(CALL_MODELS) {
        w.send(who(n), 0, reportDownloadedCall { models: part.to_vec() }).unwrap();
    }
    number
}

fn wanted(from: u64) -> Vec<u64> {
    (from..from + 8).collect()
}

/// As many as a task for nine may require.
fn six(from: u64) -> Vec<u64> {
    (from..from + 6).collect()
}

/// What it costs to have a group of nine judged whose members, all late, are free again by it, and of which the first three each begin a
/// queued task, of eight `models` or of none.
fn judgement_of_nine(models: bool) -> u64 {
    let mut w = world(0, 1);
    w.set("groupFee", 0);
    for n in 1..=9 {
        hoard(&mut w, n, "card", 24);
    }
    let card = w.node(1).gpu;
    w.send(OWNER, 0, listGpuGroupCall { group: card, listed: true }).unwrap();
    set_profile(&mut w, CREATOR, of_size(9));
    // So that no word is written for the first time that a network in use has written before.
    let before = created_by(&mut w, CREATOR, FEE, IMuster::TaskSpec { gpu: card, models: six(80_000), ..rated() });
    let (place, members) = group_of(&mut w, before).expect("formed");
    play(&mut w, before, place, &members, |_| value(1));
    let id = created_by(&mut w, CREATOR, FEE, IMuster::TaskSpec { gpu: card, flags: 1, ..rated() });
    let (place, members) = group_of(&mut w, id).expect("formed");
    for m in 0..9 {
        let models = if models { wanted(90_000 + m * 10) } else { Vec::new() };
        created_by(&mut w, CREATOR, TOKEN, IMuster::TaskSpec { gpu: card, models, ..spec(0, &[]) });
    }
    assert_eq!(w.ask(overviewCall {}).queued, 9);
    w.pass(1, 90_000);
    w.events();
    let (gas, out) = metered(&mut w, who(999), 0, |net| net.settle(TaskId(id), place));
    assert_eq!(out, "accepted");
    assert!(w.events().iter().any(|e| matches!(e, E::GroupSettled(_))));
    let began = members.iter().filter(|&&n| task_of(&mut w, n) != id && task_of(&mut w, n) > 0).count();
    println!("models {models}: {gas} gas");
    assert_eq!(began, 3);
    check_money(&mut w);
    gas
}

/// A judgement frees up to nine members that were late; three find queued work in the same call, which is somebody's who only has the group judged, the
/// others in later ones.
#[test]
fn a_judgement_of_nine_stays_below_the_most_that_a_call_may_cost() {
    let (plain, dear) = (judgement_of_nine(false), judgement_of_nine(true));
    priced(
        "a judgement of nine made dear by queued work",
        "nine queued tasks, without models or of eight each, for nine members that it frees, who hold 32 others",
        &format!("{plain} and {dear} gas for storage, logs and start"),
    );
    assert!(dear < MOST_GAS, "{plain} {dear}");
}

/// A profile can change between creation, draw and judgement: the group is never larger than the fee was for, and who has worked is paid as
/// ever; how often the task begins again is what its creator says at the judgement.
#[test]
fn a_profile_changed_at_any_time_costs_only_who_changed_it() {
    for (first, second, reschedules) in [(9, 3, 0), (3, 9, 8), (5, 4, 1)] {
        let mut w = network(12);
        set_profile(&mut w, CREATOR, Profile { reschedules: 8 - reschedules, ..of_size(first) });
        let id = w.create(CREATOR, FEE, rated()).unwrap();
        set_profile(&mut w, CREATOR, Profile { reschedules: 8 - reschedules, ..of_size(second) });
        w.pass(1, 0);
        w.dispatch(1).unwrap();
        let (place, members) = group_of(&mut w, id).expect("formed");
        assert_eq!(members.len(), usize::from(first.min(second)));
        for &n in &members {
            commit(&mut w, id, n, ANSWER, value(n as u8)).unwrap();
        }
        let (&last, others) = members.split_last().unwrap();
        for &n in others {
            reveal(&mut w, id, place, n, ANSWER, value(n as u8)).unwrap();
        }
        // He knows by now that there is no majority.
        set_profile(&mut w, CREATOR, Profile { reschedules, targeting: 0, ..of_size(9) });
        reveal(&mut w, id, place, last, ANSWER, value(last as u8)).unwrap();
        let s = settled(&mut w);
        assert_eq!((s.outcome, s.startFee), (if reschedules == 0 { 2 } else { 4 }, FEE / 50));
        check_money(&mut w);
    }
}

/// Whoever only ends his own task makes the draw of nine that is due, or a part of it: nodes of many GPU groups, models that nobody has, a
/// target to be set anew, words never written before. What is dear is left to the next, by anybody.
#[test]
fn an_innocent_submit_pays_for_one_part_of_a_draw_of_nine_and_no_more() {
    // What each call cost that made a part, until the group was formed.
    let play_out = |hoarders: u64, others: u64, seed: u64, worn: bool| {
        let mut w = world(0, 1);
        w.set("groupFee", 0);
        for n in 1..=hoarders {
            hoard(&mut w, n, "card", (900 - (n % 8) * 31) as u16);
        }
        for n in 0..others {
            w.join(hoarders + 1 + n, "other", (901 - (n + 1) * 7 % 900) as u16, &[], 400).unwrap();
        }
        w.pass(seed * 1_000 + 1, 0);
        set_profile(&mut w, CREATOR, Profile { algorithm: 0, ..of_size(9) });
        if worn {
            // The words of groups, by groups; those of nodes, as the last task of each would have left them.
            for _ in 0..12 {
                let id = w.create(CREATOR, FEE, IMuster::TaskSpec { models: six(80_000), ..rated_image(0, 1) }).unwrap();
                w.drain();
                let (place, members) = group_of(&mut w, id).expect("formed");
                play(&mut w, id, place, &members, |_| picture(5));
                w.pass(1, 1);
            }
        }
        let own: Vec<u64> =
            (0..6).map(|_| created_by(&mut w, 90, TOKEN, IMuster::TaskSpec { flags: 1, ..spec(0, &[]) })).collect();
        w.drain();
        let issued = w.ask(overviewCall {}).nodesIssued;
        let runners: Vec<u32> = own.iter().map(|&id| (1..=issued).find(|&n| task_of(&mut w, n) == id).unwrap()).collect();
        if worn {
            for n in (1..=issued).filter(|n| !runners.contains(n)) {
                let handle = NodeHandle::load(&w.mem, NodeId(n));
                let (mut ids, mut order) = ([ModelId(0); TASK_MODELS], handle.order(&w.mem));
                ids.iter_mut().zip(wanted(80_000)).for_each(|(id, model)| *id = ModelId(model));
                let models = ModelSet { ids, len: TASK_MODELS as u8 };
                if !handle.node.running() {
                    order = Order { id: TaskId(1), models: models.len, model: ids[0], ..order };
                    let escrow = Escrow { creator: who(CREATOR), fee: 1, ..Escrow::default() };
                    handle.assign(&mut w.mem, &Task { escrow, order, models });
                    handle.set_order(&mut w.mem, &order);
                }
            }
        }
        // A period ends with it.
        set_profile(&mut w, CREATOR, Profile { targeting: 1, ..of_size(9) });
        let at = offset(profile_slot(&w.mem, who(CREATOR)), profile::TARGET_SEARCH);
        w.mem.put(at, &TargetSearch { groups: 300, successes: 150, members: 2_700, ..TargetSearch::START });
        w.events();
        w.create(CREATOR, FEE, IMuster::TaskSpec { models: six(90_000), flags: 1, ..rated_image(0, 1) }).unwrap();
        w.pass(1, 0);
        let (mut parts, mut formed) = (Vec::new(), false);
        for (id, runner) in own.into_iter().zip(runners) {
            let due = w.ask(overviewCall {}).pending > 0 && !formed;
            let (gas, out) = metered(&mut w, who(runner.into()), 0, |net| net.submit(TaskId(id), [1; 32]));
            assert_eq!(out, "accepted");
            if due {
                parts.push(gas);
            }
            formed |= w.events().iter().any(|event| matches!(event, E::GroupFormed(_)));
        }
        check_money(&mut w);
        (parts, formed)
    };
    let dearest = |worn: bool, seeds: u64| {
        let (mut dear, mut formed) = ([0; 6], [0; 6]);
        for (hoarders, others) in [(38, 0), (40, 0), (24, 12), (16, 20), (12, 120)] {
            for seed in 0..seeds {
                let (parts, there) = play_out(hoarders, others, seed, worn);
                formed[parts.len() - 1] += u32::from(there);
                dear.iter_mut().zip(parts).for_each(|(dear, gas)| *dear = gas.max(*dear));
            }
        }
        (dear, formed)
    };
    let ((dear, formed), (dear_new, formed_new)) = (dearest(true, 30), dearest(false, 30));
    println!("{dear:?} {formed:?} {dear_new:?} {formed_new:?}");
    priced(
        "an innocent submit made expensive by a draw of nine",
        "a pool of up to 32 nodes of many GPU groups that hold 32 models, six others wanted",
        &format!(
            "{} gas for storage, logs and start, or {} where none of them ever had a task",
            dear.iter().max().unwrap(),
            dear_new.iter().max().unwrap()
        ),
    );
    assert!(formed[1..].iter().sum::<u32>() > 10 && formed_new[2..].iter().sum::<u32>() > 10, "{formed:?} {formed_new:?}");
    // What programs compute is not in it: 160,000 for a target, in the first part, and less for the rest.
    assert!(dear.iter().chain(&dear_new).all(|&gas| gas < MOST_GAS - 100_000), "{dear:?} {dear_new:?}");
}

/// A group that is dear to form is not formed by the call of one who wants to leave, who is refused then, as is who wants to join while any
/// is due that is chosen by ratings. A `dispatch` before it, in the same block, makes the way free.
#[test]
fn dear_groups_keep_somebody_from_quitting_only_until_somebody_draws() {
    let mut w = network(60);
    set_profile(&mut w, ATTACKER, of_size(9));
    let spec = |block: u64| IMuster::TaskSpec { models: six(90_000 + block * 10), ..rated_image(0, 1) };
    let (blocks, mut costs, mut refused, mut drawing) = (5, 0, 0, 0);
    for block in 0..blocks {
        let (gas, created) = metered(&mut w, who(ATTACKER), FEE, |net| net.create_task(spec(block)));
        assert_eq!(created, "accepted");
        costs += gas;
        w.pass(1, 0);
        let leaver = (1..=60).find(|&n| w.node(n).status == 1).expect("one that is idle");
        let (gas, left) = metered(&mut w, who(leaver.into()), 0, |net| net.quit());
        assert_eq!(left, "DrawsDue");
        refused += gas;
        refused!(w.join(100 + block, "RTX 4090", 24, &[], 400), DrawsDue(1u32));
        let (gas, drawn) = metered_alone(&mut w, who(DRIVER), 0, |net| net.dispatch(16));
        assert_eq!(drawn, "accepted");
        drawing += gas;
        assert_eq!(metered(&mut w, who(leaver.into()), 0, |net| net.quit()).1, "accepted");
        w.join(100 + block, "RTX 4090", 24, &[], 400).unwrap();
        check_money(&mut w);
    }
    priced(
        "somebody kept from quitting by dear groups",
        &format!("{} gas and the fee for nine nodes a block while nine are idle that never had a task", costs / blocks),
        &format!(
            "{} gas for each quit refused or {} for a dispatch before it in the same block with which it is taken",
            refused / blocks,
            drawing / blocks
        ),
    );
    // Whoever draws pays no more than so many times what the creator does, and the nine who have work then are paid for it.
    assert!(drawing < 16 * costs, "{drawing} {costs}");
}
