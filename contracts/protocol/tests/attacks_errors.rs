//! Attacks by errors: by tasks that nobody can run, or that only an attacker's own nodes can answer, and by nodes that report errors
//! instead of working. An error is all that an honest node can say of such a task. Each is here as it was made, with what is left of it
//! and what it costs now; docs/security.md quotes the figures.

use alloy_primitives::B256;
use muster_core::id::NodeId;
use muster_core::validation::payment;
use muster_model::meter::priced;
use muster_model::refused;
use muster_model::validated::*;
use muster_model::world::*;
use muster_protocol::host::Host;
use muster_protocol::layout::{slot, RESERVE};
use muster_protocol::IMuster::{self, IMusterEvents as E, *};

const FEE: u128 = 6 * TOKEN;
const START_FEE: u128 = FEE / 50;
/// What is left of a sampled task's fee once its validators were called.
const LEFT: u128 = FEE - START_FEE;
/// A model that exists nowhere: only who says that he holds it can answer, for nobody can say that he is wrong.
const PRIVATE: u64 = 777;
/// Who attacks, and another address of his.
const ATTACKER: u64 = 150;
const HIS_OTHER: u64 = 151;

/// A GPT task whose node commits to its answer, with these models.
fn sampled(models: &[u64]) -> IMuster::TaskSpec {
    IMuster::TaskSpec { gpu: CARD, redundancy: 1, ..spec(0, models) }
}

/// The same for three nodes.
fn for_three(models: &[u64]) -> IMuster::TaskSpec {
    IMuster::TaskSpec { gpu: CARD, ..IMuster::TaskSpec { models: models.to_vec(), ..alike(0) } }
}

/// An answer of one image.
fn picture() -> B256 {
    B256::right_padding_from(&[7; 8])
}

/// A network whose last `own` nodes are the attacker's, which alone hold the private model.
fn beside(honest: u64, own: u64) -> World {
    let mut w = network(honest);
    (honest + 1..=honest + own).for_each(|n| assert!(w.join(n, "RTX 4090", 24, &[PRIVATE], 400).is_ok()));
    w.events();
    w
}

/// Gives the reserve so many fees, as honest tasks would have.
fn fund(w: &mut World, fees: u128) {
    w.mem.store(slot(RESERVE), word(fees * FEE));
    w.paid_in += fees * FEE;
}

fn reserve(w: &mut World) -> i128 {
    w.ask(overviewCall {}).reserve as i128
}

/// What Muster owes to people, in wei.
fn owed(w: &mut World, people: impl IntoIterator<Item = u64>) -> u128 {
    people.into_iter().map(|n| w.account(n).credit).sum()
}

/// Ten-thousandths of a fee, as a share of it in hundredths.
fn percent(wei: i128, of: u128) -> String {
    format!("{:.2} %", wei as f64 * 100.0 / of as f64)
}

/// The node that runs a task, once it is drawn.
fn runner(w: &mut World, id: u64) -> u32 {
    let issued = w.ask(overviewCall {}).nodesIssued;
    for _ in 0..100 {
        if let Some(node) = (1..=issued).find(|&n| task_of(w, n) == id) {
            return node;
        }
        w.pass(1, 0);
        w.dispatch(16).unwrap();
    }
    panic!("task {id} is not drawn")
}

/// A task's group, once it is drawn.
fn grouped(w: &mut World, id: u64) -> (u32, Vec<u32>) {
    for _ in 0..100 {
        if let Some(group) = group_of(w, id) {
            return group;
        }
        w.pass(3, 1);
        w.dispatch(16).unwrap();
    }
    panic!("task {id} has no group")
}

/// Has the validators of a task called by somebody, and drawn.
fn called(w: &mut World, id: u64, node: u32, caller: u64) -> (u32, Vec<u32>) {
    w.send(who(caller), 0, validateCall { id, node }).unwrap();
    grouped(w, id)
}

/// Has these members commit to what each says, and reveal it; a node is that of the operator of its number, or of this.
fn judged(w: &mut World, id: u64, place: u32, members: &[u32], says: impl Fn(u32) -> (u8, B256)) {
    for &n in members {
        if task_of(w, n) != id || w.ask(runningTaskCall { number: n }).status != 6 {
            continue;
        }
        let (kind, value) = says(n);
        let operator = w.node(n).operator.into_array();
        w.send(operator, 0, commitCall { id, commitment: commitment(id, n, kind, value, salt(id, n)) }).unwrap();
    }
    for &n in members {
        let (kind, value) = says(n);
        reveal(w, id, place, n, kind, value).unwrap();
    }
}

// ---------------------------------------------------------------- the reserve

/// What a member of a group does.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Act {
    Same,
    Other,
    Fails,
    Withholds,
    Late,
}
const ACTS: [Act; 5] = [Act::Same, Act::Other, Act::Fails, Act::Withholds, Act::Late];

/// Plays a group of three to its end: its first reveals what it committed to, of this kind, or does not.
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

/// A creator whose first node committed to errors paid nothing into the reserve, and took out of it what his other nodes, or who called the
/// validators, were paid: with nine nodes it was empty after 91 tasks. Now nothing that three members, and whoever calls them, can do takes
/// more out of it, in expectation, than such tasks pay in: by every combination of answers, errors, silence and lateness.
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
        &format!("one node that alone holds a made-up model, {TASKS} tasks in {minutes} minutes, {sampled_ones} of them sampled"),
        &format!("nothing of the reserve; {} of each fee lost", percent((lost / u128::from(TASKS)) as i128, FEE)),
    );
}

/// Nine nodes with a VRAM size of their own: they are the whole scope of image tasks that ask for it, in which nobody is slashed. What the first
/// commits to is an error, which it reveals if it is not sampled, and, if it is, reveals or withholds.
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
                judged(&mut w, id, place, &members[1..], |_| (ANSWER, picture()));
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

/// Nobody attacks, and some first nodes cannot run their task: the reserve had a leak, and 44 and 63 of 301 groups were paid short. Now what a
/// group whose first has failed takes out of the reserve is nothing, and all others find what they need.
#[test]
fn honest_errors_leave_the_reserve_to_those_who_answer() {
    const TASKS: u32 = 800;
    const FUND: i128 = 60 * FEE as i128;
    let mut rows = Vec::new();
    for per_mille in [0u64, 50, 100] {
        let mut w = network(20);
        fund(&mut w, 60);
        let mut dice = Dice(5);
        let (mut groups, mut short, mut failed, mut worst) = (0, 0, 0, 0);
        for _ in 0..TASKS {
            let id = created(&mut w, FEE, sampled(&[]));
            let node = runner(&mut w, id);
            let (kind, what) = if dice.below(1_000) < per_mille { (ERROR, B256::ZERO) } else { (ANSWER, value(1)) };
            commit(&mut w, id, node, kind, what).unwrap();
            w.pass(3, 1);
            if reveal(&mut w, id, 0, node, kind, what).is_err() {
                groups += 1;
                let (place, members) = called(&mut w, id, node, node.into());
                let before = owed(&mut w, 1..=20);
                judged(&mut w, id, place, &members, |n| if n == node { (kind, what) } else { (ANSWER, value(1)) });
                let paid = owed(&mut w, 1..=20) - before;
                if kind == ERROR {
                    failed += 1;
                    assert_eq!(paid, LEFT, "two share what is left of the fee");
                } else {
                    short += u32::from(paid < 3 * payment(LEFT, 1_000));
                }
            }
            worst = worst.min(reserve(&mut w) - FUND);
            w.pass(5, 10);
            w.mem.logs.clear();
        }
        check_money(&mut w);
        let change = reserve(&mut w) - FUND;
        // A fee's standard deviation of 0.49 for each task: four of them.
        let bound = (4.0 * 0.49 * f64::from(TASKS).sqrt()) as i128 * FEE as i128;
        assert!(change > -bound, "{per_mille}: {change}");
        assert_eq!(short, 0, "{per_mille}: of {groups}");
        assert!(groups > 50 && (failed > 0) == (per_mille > 0), "{groups} groups, {failed} failed");
        rows.push(format!("{failed} of {groups}"));
    }
    let share = LEFT as f64 / 2.0 / payment(LEFT, 1_000) as f64;
    priced(
        "groups paid short by honest nodes' errors",
        &format!("0, 5 and 10 % of first nodes fail, {TASKS} tasks each; their groups: {}", rows.join(", ")),
        &format!("none whose first answered; the two others of one that failed get {share:.2} of a payment each"),
    );
}

// ---------------------------------------------------------------- scores

/// What part of all weight the attacker's nodes have.
fn share(w: &mut World, honest: u32, own: u32) -> f64 {
    let wanted = IMuster::TaskSpec { gpu: CARD, ..spec(0, &[]) };
    let weight = |w: &mut World, n: u32| w.ask(weightOfCall { number: n, spec: wanted.clone() }).weight as f64;
    let all: Vec<f64> = (1..=honest + own).map(|n| weight(w, n)).collect();
    all[honest as usize..].iter().sum::<f64>() / all.iter().sum::<f64>()
}

/// What came of tasks that only the attacker's nodes can answer.
struct Farmed {
    /// His nodes' part of all weight before and after.
    share: [f64; 2],
    /// Fees paid, and what of them others, the reserve and the protocol keep.
    paid: u128,
    kept: u128,
}

/// Has the attacker create so many tasks that only his nodes can answer; honest ones say that they cannot.
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

/// Honest nodes' errors were scored 0 where two of the attacker's agreed: three of 23 passed a third of all weight by the hundredth task, and ten
/// honest ones were kicked out by the 2,470th. Now an error is not scored, and all that is left is what the attacker's nodes score.
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
            judged(&mut w, id, place, &members, |n| if u64::from(n) > honest { (ANSWER, value(1)) } else { (ERROR, B256::ZERO) });
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

/// Nobody attacks: half of the nodes hold a model that an application wants, the others cannot load it and say so. All of these were kicked out
/// for good, after 1,788 tasks for three.
#[test]
fn honest_nodes_without_a_model_stay_in_the_network() {
    for policy in [1u8, 2] {
        let mut w = world(0, 1);
        for n in 1..=20u64 {
            w.join(n, "RTX 4090", 24, if n <= 10 { &[42] } else { &[] }, 400).unwrap();
        }
        w.send(OWNER, 0, listGpuGroupCall { group: CARD, listed: true }).unwrap();
        if policy == 1 {
            w.set("sampleBps", 10_000);
        }
        let says = |n: u32| if n <= 10 { (ANSWER, value(1)) } else { (ERROR, B256::ZERO) };
        let mut failed = 0;
        for _ in 0..150 {
            let wanted = if policy == 1 { sampled(&[42]) } else { for_three(&[42]) };
            let id = w.create(CREATOR, FEE, wanted).unwrap();
            let (place, members) = if policy == 1 {
                let node = runner(&mut w, id);
                assert!(node <= 10, "holders are preferred");
                commit(&mut w, id, node, ANSWER, value(1)).unwrap();
                w.pass(3, 1);
                called(&mut w, id, node, node.into())
            } else {
                grouped(&mut w, id)
            };
            failed += members.iter().filter(|&&n| n > 10).count();
            w.events();
            judged(&mut w, id, place, &members, says);
            for event in w.events() {
                match event {
                    E::ScoreRecorded(s) => assert!(s.node <= 10 && s.score > 0),
                    E::MemberJudged(m) if m.node > 10 => assert_eq!((m.verdict, m.paid), (4, 0)),
                    E::NodeKickedOut(_) | E::NodeSlashed(_) => panic!("{event:?}"),
                    _ => {}
                }
            }
            w.pass(1, 1);
            w.dispatch(0).unwrap();
        }
        assert!(failed > 20, "{failed}");
        assert!((11..=20).all(|n| (w.node(n).status, w.node(n).scores) == (1, 0)));
        check_money(&mut w);
    }
}

// ---------------------------------------------------------------- nodes' time

/// Tasks that nobody can run, whose first never reveals, kept ten honest nodes held for three days. Now a revealed error holds nobody.
#[test]
fn tasks_that_nobody_can_run_hold_no_honest_node() {
    const HOURS: u64 = 6;
    let mut w = beside(10, 5);
    w.set("sampleBps", 10_000);
    let (mut paid, mut tasks, mut groups) = (0u128, 0u32, 0u32);
    let mut open: Vec<(u64, u32, u64)> = Vec::new();
    let (mut held, mut samples) = (0usize, 0usize);
    let start = w.mem.now;
    while w.mem.now < start + HOURS * 3_600 {
        let now = w.mem.now;
        open.retain(|&(id, place, closes)| now <= closes || w.send(who(DRIVER), 0, settleCall { id, group: place }).is_err());
        w.dispatch(0).unwrap();
        samples += 10;
        held += (1..=10).filter(|&n| w.node(n).held).count();
        let free = (11..=15).any(|n| w.node(n).status == 1 && w.node(n).parked == 0);
        if !free {
            w.pass(4, 30);
            continue;
        }
        let id = w.create(ATTACKER, 60, sampled(&[PRIVATE])).unwrap();
        tasks += 1;
        paid += 60;
        let node = runner(&mut w, id);
        if node <= 10 {
            commit(&mut w, id, node, ERROR, B256::ZERO).unwrap();
            w.pass(3, 1);
            let (place, members) = called(&mut w, id, node, ATTACKER);
            judged(&mut w, id, place, &members, |_| (ERROR, B256::ZERO));
            continue;
        }
        commit(&mut w, id, node, ERROR, B256::ZERO).unwrap();
        w.pass(3, 1);
        groups += 1;
        let (place, members) = called(&mut w, id, node, ATTACKER);
        judged(&mut w, id, place, &members[1..], |_| (ERROR, B256::ZERO));
        open.push((id, place, w.mem.now + 7_200));
        w.mem.logs.clear();
    }
    check_money(&mut w);
    let lost = paid - owed(&mut w, (11..=15).chain([ATTACKER]));
    assert!(groups >= 20, "{groups}");
    priced(
        "honest nodes held by tasks that nobody can run",
        &format!("five of 15 nodes, {HOURS} hours, {tasks} tasks at the least fee whose first does not reveal"),
        &format!(
            "{held} of {samples} times that an honest node was looked at it was held; {} of the fees lost",
            percent(lost as i128, paid)
        ),
    );
    assert_eq!(held, 0);
}

/// A node that reports an error at once is idle while all others are busy, and every new task was its. Now it rests, and no call shortens
/// that: in a busy network it takes one task each minute, which costs its creator the start fee, and the node what it could have earned.
#[test]
fn who_reports_errors_at_once_takes_one_task_a_minute() {
    const MINUTES: u64 = 20;
    let mut w = network(10);
    let lazy = 10u32;
    // All others are busy for hours, and others' tasks come in every ten seconds.
    let long = IMuster::TaskSpec { kind: 2, units: 7_200, ..spec(0, &[]) };
    for _ in 0..10 {
        let id = created(&mut w, 100 * TOKEN, long.clone());
        if runner(&mut w, id) == lazy {
            w.send(who(lazy.into()), 0, submitCall { id, resultDigest: value(1) }).unwrap();
        }
    }
    while w.node(lazy).status == 2 || (1..10).any(|n| w.node(n).status != 2) {
        let id = task_of(&mut w, lazy);
        if id > 0 {
            w.send(who(lazy.into()), 0, submitCall { id, resultDigest: value(1) }).unwrap();
        }
        if (1..10).any(|n| w.node(n).status != 2) {
            created(&mut w, 100 * TOKEN, long.clone());
        }
    }
    let (earned, income) = (w.account(lazy.into()).credit, w.ask(overviewCall {}).treasuryBalance);
    let (mut created_ones, mut taken) = (0u32, 0u32);
    let start = w.mem.now;
    w.events();
    while w.mem.now < start + MINUTES * 60 {
        w.create(CREATOR, TOKEN, spec(0, &[])).unwrap();
        created_ones += 1;
        w.pass(5, 5);
        w.dispatch(16).unwrap();
        let id = task_of(&mut w, lazy);
        if id > 0 {
            taken += 1;
            let view = w.ask(runningTaskCall { number: lazy });
            let until = view.deadline - u64::from(view.timeLimit) + 60;
            w.send(who(lazy.into()), 0, reportErrorCall { id, code: 1 }).unwrap();
            let view = w.node(lazy);
            assert_eq!((view.status, view.parked, view.parkedUntil), (1, 1, until));
            // Neither a poke nor a pause shortens it.
            refused!(w.send(who(DRIVER), 0, pokeCall { node: lazy }), NothingToPoke(lazy));
            if taken % 2 == 0 {
                w.send(who(lazy.into()), 0, pauseCall {}).unwrap();
                refused!(w.send(who(lazy.into()), 0, resumeCall {}), WrongStatus(lazy, 3u8));
            }
        }
        if w.node(lazy).status == 5 {
            w.send(who(lazy.into()), 0, resumeCall {}).unwrap();
        }
        w.pass(5, 5);
        w.dispatch(16).unwrap();
    }
    let cost = w.ask(overviewCall {}).treasuryBalance - income;
    assert_eq!(cost, u128::from(taken) * TOKEN / 50, "queued ones that were pushed out have their whole fee back");
    assert_eq!(w.account(lazy.into()).credit, earned, "and earns nothing");
    assert!(u64::from(taken) <= MINUTES + 1 && u64::from(taken) >= MINUTES / 2, "{taken}");
    check_money(&mut w);
    priced(
        "a node that reports errors instead of working",
        &format!("all others busy for {MINUTES} minutes, {created_ones} new tasks, all of which were its where it did not rest"),
        &format!(
            "{taken} tasks, {:.2} a minute, that cost their creators {} of the fee each; it earns nothing",
            f64::from(taken) / MINUTES as f64,
            percent((cost / u128::from(taken)) as i128, TOKEN)
        ),
    );
}

/// Holding a node by an input that nobody can fetch cost gas alone: the fee came back whole. Now the start fee is the price, whatever the
/// policy, and each further try another.
#[test]
fn time_that_came_to_nothing_costs_the_start_fee_under_every_policy() {
    let mut rows = Vec::new();
    for policy in 0..=2u8 {
        let mut w = network(12);
        let fee = FEE;
        let income = w.ask(overviewCall {}).treasuryBalance + w.ask(overviewCall {}).reserve;
        let wanted = IMuster::TaskSpec { gpu: CARD, redundancy: policy, ..spec(0, &[]) };
        let id = created_by(&mut w, ATTACKER, fee, wanted);
        match policy {
            0 => {
                let node = runner(&mut w, id);
                w.pass(10, 30);
                w.send(who(node.into()), 0, reportErrorCall { id, code: 1 }).unwrap();
            }
            1 => {
                let node = runner(&mut w, id);
                w.pass(10, 30);
                commit(&mut w, id, node, ERROR, B256::ZERO).unwrap();
                w.pass(3, 1);
                if reveal(&mut w, id, 0, node, ERROR, B256::ZERO).is_err() {
                    let (place, members) = called(&mut w, id, node, node.into());
                    judged(&mut w, id, place, &members, |_| (ERROR, B256::ZERO));
                }
            }
            _ => {
                let (place, members) = grouped(&mut w, id);
                w.pass(10, 30);
                judged(&mut w, id, place, &members, |_| (ERROR, B256::ZERO));
            }
        }
        let overview = w.ask(overviewCall {});
        assert_eq!(w.account(ATTACKER).credit, fee - fee / 50, "policy {policy}");
        assert_eq!(overview.treasuryBalance + overview.reserve - income, fee / 50);
        check_money(&mut w);
        rows.push(percent((fee - w.account(ATTACKER).credit) as i128, fee));
    }
    priced(
        "nodes' time for an input that nobody can fetch",
        "one task under policy 0, 1 and 2",
        &format!("{} of the fee", rows.join(", ")),
    );
}
