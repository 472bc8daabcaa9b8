//! Validation from end to end: commitments, lots, groups, judgements and the money, natively. docs/security-validation.md quotes these
//! tests.

use alloy_primitives::{keccak256, B256};
use muster_core::id::GpuGroup;
use muster_core::record::Account;
use muster_core::validation::payment;
use muster_core::wad::WAD;
use muster_model::refused;
use muster_model::validated::*;
use muster_model::world::*;
use muster_protocol::layout::account_slot;
use muster_protocol::store::sampler::Among;
use muster_protocol::IMuster::{self, IMusterEvents as E, *};
use muster_protocol::{admin, refusal, Host, Network};

const FEE: u128 = 6 * TOKEN;
/// The start fee: every task pays it for time that came to nothing, and a sampled one for the call of its validators.
const START_FEE: u128 = FEE / 50;
/// The rest of a sampled task's fee once its validators were called.
const LEFT: u128 = FEE - START_FEE;

/// A world of equal nodes of a listed GPU group, with this probability of validation.
fn sampling(nodes: u64, sample_bps: u64) -> World {
    let mut w = network(nodes);
    w.set("sampleBps", sample_bps);
    w.events();
    w
}

fn wanted() -> IMuster::TaskSpec {
    IMuster::TaskSpec { gpu: CARD, redundancy: 1, ..spec(0, &[]) }
}

/// Creates and draws a task; gives its id and its node.
fn started(w: &mut World, fee: u128, spec: IMuster::TaskSpec) -> (u64, u32) {
    let id = created(w, fee, spec);
    let issued = w.ask(overviewCall {}).nodesIssued;
    (id, (1..=issued).find(|&n| task_of(w, n) == id).expect("drawn"))
}

/// A task whose node has committed to an answer, the lot's block passed.
fn committed(w: &mut World, kind: u8, answer: u8) -> (u64, u32) {
    let (id, node) = started(w, FEE, wanted());
    w.pass(5, 10);
    commit(w, id, node, kind, value(answer)).unwrap();
    w.pass(3, 1);
    (id, node)
}

/// Has a sampled task's validators drawn; gives the group's place and its members.
fn formed(w: &mut World, id: u64, node: u32) -> (u32, Vec<u32>) {
    w.send(who(u64::from(node)), 0, validateCall { id, node }).unwrap();
    loop {
        w.pass(3, 1);
        assert!(w.send(who(DRIVER), 0, formGroupCall {}).unwrap());
        // Undecided, it is drawn again from a later block.
        if let Some(group) = group_of(w, id) {
            return group;
        }
    }
}

/// A group of three of a network, its first member committed to answer 1.
fn group(w: &mut World) -> (u64, u32, [u32; 3]) {
    let (id, node) = committed(w, ANSWER, 1);
    let (place, members) = formed(w, id, node);
    (id, place, members.try_into().expect("three"))
}

fn stake(w: &mut World, node: u32) -> u128 {
    w.node(node).stake
}

#[test]
fn what_is_not_sampled_is_paid_less_and_the_rest_saved() {
    // One node fewer than scores need: the whole fee, and nothing is saved.
    for nodes in [8, 9] {
        let mut w = sampling(nodes, 0);
        w.set("sampleBps", 1);
        let (id, node) = started(&mut w, FEE, wanted());
        refused!(w.send(who(node.into()), 0, submitCall { id, resultDigest: value(1) }), CommitFirst(id));
        refused!(w.send(who(node.into()), 0, reportErrorCall { id, code: 1 }), CommitFirst(id));
        refused!(reveal(&mut w, id, 0, node, ANSWER, value(1)), NotCommitted(id, node));
        w.pass(1, 100);
        commit(&mut w, id, node, ANSWER, value(1)).unwrap();
        let lot = w.mem.block + 2;
        refused!(commit(&mut w, id, node, ANSWER, value(1)), NothingToCommit(id, node));
        refused!(reveal(&mut w, id, 0, node, ANSWER, value(1)), HashUnknown(id, lot));
        w.pass(3, 600);
        refused!(reveal(&mut w, id, 0, node, ANSWER, value(2)), NotWhatWasCommitted(id, node));
        refused!(reveal(&mut w, id, 0, node, ERROR, value(0)), NotWhatWasCommitted(id, node));
        refused!(reveal(&mut w, id, 0, node, 2, value(1)), BadAnswerKind(2u8, value(1).0));
        refused!(reveal(&mut w, id, 0, node, ERROR, value(1)), BadAnswerKind(ERROR, value(1).0));
        refused!(w.send(who(DRIVER), 0, validateCall { id, node }), NotSampled(id));
        refused!(w.send(who(DRIVER), 0, expireCall { node, id }), DeadlineNotPassed(id, w.mem.now));
        w.events();
        reveal(&mut w, id, 0, node, ANSWER, value(1)).unwrap();
        let paid = if nodes == 9 { payment(FEE, 1) } else { FEE };
        assert_eq!(w.account(node.into()).credit, paid);
        assert_eq!(w.ask(overviewCall {}).reserve, FEE - paid);
        let events = w.events();
        assert!(matches!(&events[0], E::AnswerRevealed(r) if (r.group, r.value) == (0, value(1)) && r.salt == salt(id, node)));
        assert!(matches!(&events[1], E::TaskSucceeded(s) if (s.resultDigest, s.paid) == (value(1), paid)));
        assert_eq!(w.node(node).status, 1);
        check_money(&mut w);
    }
}

#[test]
fn an_error_is_hidden_like_an_answer_and_refunded_but_for_the_start_fee() {
    let mut w = sampling(9, 0);
    let (id, node) = started(&mut w, FEE, wanted());
    let (began, income) = (w.mem.now, w.ask(overviewCall {}).treasuryBalance);
    let code = B256::with_last_byte(7);
    commit(&mut w, id, node, ERROR, code).unwrap();
    w.pass(3, 1);
    w.events();
    reveal(&mut w, id, 0, node, ERROR, code).unwrap();
    assert!(w.events().iter().any(|e| matches!(e, E::TaskErrorReported(t) if (t.code, t.refund) == (7, LEFT))));
    assert_eq!((w.account(CREATOR).credit, w.account(node.into()).credit), (LEFT, 0));
    let overview = w.ask(overviewCall {});
    assert_eq!((overview.treasuryBalance - income, overview.reserve), (START_FEE, 0));
    // It rests, as long as the task would have taken.
    let view = w.node(node);
    assert_eq!((view.status, view.parked, view.parkedUntil), (1, 1, began + 60));
    check_money(&mut w);
}

#[test]
fn what_is_not_revealed_in_time_is_a_timeout() {
    let mut w = sampling(9, 0);
    let (id, node) = committed(&mut w, ANSWER, 1);
    w.pass(1, 600);
    // The lot is known, and must have been for as many blocks as it took to be.
    refused!(w.send(who(DRIVER), 0, expireCall { node, id }), HashUnknown(id, w.mem.block));
    w.pass(1, 0);
    w.send(who(DRIVER), 0, expireCall { node, id }).unwrap();
    assert_eq!((w.account(DRIVER).credit, w.account(CREATOR).credit), (FEE / 50, FEE - FEE / 50));
    assert_eq!(w.node(node).reliability, 300_000_000_000_000_000);
    check_money(&mut w);
}

#[test]
fn a_sampled_task_ends_only_by_validation() {
    let mut w = sampling(9, 10_000);
    let (id, node) = committed(&mut w, ANSWER, 1);
    refused!(reveal(&mut w, id, 0, node, ANSWER, value(1)), Sampled(id));
    w.pass(2, 601);
    refused!(w.send(who(DRIVER), 0, expireCall { node, id }), Sampled(id));
    w.send(who(DRIVER), 0, validateCall { id, node }).unwrap();
    assert_eq!(w.ask(runningTaskCall { number: node }).status, 5);
    for call in [
        w.send(who(DRIVER), 0, expireCall { node, id }).map(drop),
        w.send(who(DRIVER), 0, validateCall { id, node }).map(drop),
        reveal(&mut w, id, 0, node, ANSWER, value(1)),
    ] {
        refused!(call, Sampled(id));
    }
    assert!(!w.send(who(DRIVER), 0, formGroupCall {}).unwrap(), "its block has not come");
    let call = &w.ask(validatorDrawsCall { from: 0, count: 9 })[0];
    assert_eq!((call.id, call.drawBlock), (id, w.mem.block + 2));
    w.pass(3, 1);
    // Any call that draws draws validators too.
    assert_eq!(w.dispatch(1).unwrap(), 1);
    let (place, members) = group_of(&mut w, id).expect("a group");
    assert_eq!((place, members.len(), members[0]), (1, 3, node));
    assert!(w.ask(validatorDrawsCall { from: 0, count: 9 }).is_empty());
}

#[test]
fn three_that_agree_share_the_pot_by_their_speed() {
    let mut w = sampling(9, 10_000);
    let (id, place, [a, b, c]) = group(&mut w);
    assert!(w.ask(groupCall { place }).scored);
    assert_eq!((w.node(a).status, w.node(a).openCommitments, w.node(b).status), (1, 1, 2));
    w.pass(1, 3);
    commit(&mut w, id, c, ANSWER, value(1)).unwrap();
    refused!(reveal(&mut w, id, place, a, ANSWER, value(1)), NotOpen(id, place));
    refused!(w.send(who(DRIVER), 0, settleCall { id, group: place }), NotOpen(id, place));
    w.pass(1, 40);
    commit(&mut w, id, b, ANSWER, value(1)).unwrap();
    let closes = w.mem.now + 7_200;
    refused!(w.send(who(DRIVER), 0, settleCall { id, group: place }), RevealsOpen(id, closes));
    // A commitment shows its first 24 bytes, then the revealed value.
    let committed = |n: u32| B256::right_padding_from(&commitment(id, n, ANSWER, value(1), salt(id, n))[..24]);
    let shown = |w: &mut World| {
        let view = w.ask(groupCall { place });
        assert_eq!((view.opens, view.closes), (closes - 7_200, closes));
        view.members.iter().map(|m| m.answer).collect::<Vec<_>>()
    };
    assert_eq!(shown(&mut w), [a, b, c].map(committed));
    refused!(reveal(&mut w, id, 9, a, ANSWER, value(1)), GroupUnknown(id, 9u32));
    refused!(reveal(&mut w, id + 1, place, a, ANSWER, value(1)), GroupUnknown(id + 1, place));
    refused!(reveal(&mut w, id, place, 99, ANSWER, value(1)), NotAMember(id, 99u32));
    for n in [b, a] {
        reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap();
        refused!(reveal(&mut w, id, place, n, ANSWER, value(1)), NotCommitted(id, n));
    }
    assert_eq!(shown(&mut w), [value(1), value(1), committed(c)]);
    w.events();
    reveal(&mut w, id, place, c, ANSWER, value(1)).unwrap();
    let (members, settled) = judgement(&mut w);
    // The first took 10 seconds, the second 43, the third 3; sampled for sure, an answer is paid a third of the fee.
    let pot = payment(LEFT, 10_000) * 3;
    assert_eq!(members, [(a, 1, pot * 5 / 17), (b, 1, pot * 2 / 17), (c, 1, pot - pot * 5 / 17 - pot * 2 / 17)]);
    assert_eq!((settled.outcome, settled.answer, settled.refund, settled.startFee), (0, value(1), 0, 0));
    for (n, score) in [(a, 5), (b, 2), (c, 10)] {
        let view = w.node(n);
        assert_eq!((view.scores, view.openCommitments, view.status), (1, 0, 1));
        assert_eq!(view.longTerm, score * 100_000_000_000_000_000);
    }
    assert_eq!(w.ask(groupCall { place }), GroupView::default());
    let overview = w.ask(overviewCall {});
    assert_eq!((overview.groups, overview.groupPlaces, overview.burnt), (0, 1, 0));
    let page = w.ask(groupsCall { from: 1, count: 9 });
    assert_eq!((page.places, page._1.len()), (1, 0), "a place without a group is counted and not shown");
    // The place is used again.
    assert_eq!(group(&mut w).1, place);
}

#[test]
fn who_answers_otherwise_is_slashed_and_who_keeps_too_little_leaves() {
    let mut w = sampling(10, 10_000);
    let (id, place, [a, b, c]) = group(&mut w);
    commit(&mut w, id, b, ANSWER, value(2)).unwrap();
    commit(&mut w, id, c, ANSWER, value(1)).unwrap();
    for (n, answer) in [(a, 1), (b, 2), (c, 1)] {
        w.events();
        reveal(&mut w, id, place, n, ANSWER, value(answer)).unwrap();
    }
    let events = w.events();
    let slashed = events.iter().find_map(|e| if let E::NodeSlashed(s) = e { Some(s.clone()) } else { None }).unwrap();
    assert_eq!((slashed.node, slashed.stake, slashed.unbonding, slashed.credit), (b, 20 * LEFT, 0, 0));
    assert!(events.iter().any(|e| matches!(e, E::NodeKickedOut(k) if k.node == b)));
    assert_eq!(w.ask(overviewCall {}).burnt, 20 * LEFT);
    assert_eq!((w.node(b).status, stake(&mut w, b)), (0, 0));
    let account = w.account(b.into());
    assert_eq!((account.unbonding, account.kickedOut, account.credit), (400 * TOKEN - 20 * LEFT, true, 0));
    let pot = payment(LEFT, 10_000) * 3;
    assert_eq!((w.account(a.into()).credit, w.account(c.into()).credit), (pot * 5 / 15, pot - pot * 5 / 15));
    refused!(w.join(b.into(), "RTX 4090", 24, &[], 400), KickedOut(who(b.into())));
    check_money(&mut w);
}

#[test]
fn withholding_costs_what_a_wrong_answer_costs() {
    let mut w = sampling(10, 10_000);
    let (id, place, [a, b, c]) = group(&mut w);
    w.call(who(c.into()), 0, |net| net.pause()).unwrap();
    commit(&mut w, id, b, ANSWER, value(1)).unwrap();
    commit(&mut w, id, c, ANSWER, value(1)).unwrap();
    assert_eq!(w.node(c).status, 5, "paused when its task ended, its commitment open");
    let closes = w.mem.now + 7_200;
    reveal(&mut w, id, place, a, ANSWER, value(1)).unwrap();
    reveal(&mut w, id, place, b, ANSWER, value(1)).unwrap();
    w.pass(1, 7_200);
    refused!(w.send(who(DRIVER), 0, settleCall { id, group: place }), RevealsOpen(id, closes));
    w.pass(1, 1);
    w.events();
    w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
    let (members, settled) = judgement(&mut w);
    assert_eq!((members[2], settled.outcome), ((c, 3, 0), 0));
    assert_eq!((w.ask(overviewCall {}).burnt, w.node(c).status), (20 * LEFT, 0));
    // Paused it stood in no list, and nobody else has left one with it: all nine are found.
    for _ in 0..9 {
        started(&mut w, TOKEN, spec(0, &[]));
    }
}

/// A withheld answer is no better than one that does not come in time. H falls as after a timeout, also where nobody can be slashed for it.
/// An idle node that this excludes leaves the lists at once.
#[test]
fn a_withheld_answer_lowers_h_like_a_timeout_in_every_group() {
    let picture = B256::right_padding_from(&[7; 8]);
    for (nodes, spec, says) in [
        (10, alike(0), value(1)),
        (10, image(0), picture),
        (4, alike(0), value(1)),
        (4, image(0), picture),
        (10, rated(), value(1)),
        (4, rated(), value(1)),
    ] {
        for penalty in [300_000, 50_000] {
            let mut w = network(nodes);
            w.set("penaltyPpm", penalty);
            // A node slashed below the least stake is gone, whatever its H.
            w.set("slashTimes", 0);
            set_profile(&mut w, CREATOR, Profile { algorithm: 1, least: 3, most: 3, reschedules: 0, ..USUAL });
            let id = created(&mut w, 3 * TOKEN, IMuster::TaskSpec { gpu: CARD, ..spec.clone() });
            let (place, members) = group_of(&mut w, id).expect("formed");
            for &n in &members {
                commit(&mut w, id, n, ANSWER, says).unwrap();
            }
            for &n in &members[1..] {
                reveal(&mut w, id, place, n, ANSWER, says).unwrap();
            }
            w.pass(1, 7_201);
            w.events();
            w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
            let h: Vec<u64> = members.iter().map(|&n| w.node(n).reliability).collect();
            assert_eq!(h, [WAD / 1_000_000 * penalty, WAD, WAD], "{spec:?}");
            let out: Vec<u32> = nodes_with(&mut w, 1);
            assert_eq!(out, if penalty < 100_000 { vec![members[0]] } else { vec![] }, "{spec:?}");
            assert_eq!(w.node(members[0]).status, 1, "it stays in the network");
            check_money(&mut w);
        }
    }
}

#[test]
fn without_two_equal_answers_nothing_is_scored_and_only_withholding_slashed() {
    // The acts of the validators, and their outcome: result, refund, and the pay of the first node. The start fee is spent before.
    let single = payment(LEFT, 10_000);
    let [answered, other, error] = [(ANSWER, value(2)), (ANSWER, value(3)), (ERROR, B256::ZERO)].map(Some);
    for (first, second, third, outcome, refund, paid) in [
        (true, answered, other, 2, LEFT, 0),
        (true, answered, error, 2, LEFT, 0),
        (true, error, error, 1, 0, single),
        (true, None, error, 1, 0, single),
        (true, None, None, 1, 0, single),
        (false, answered, error, 3, LEFT, 0),
        (false, None, error, 3, LEFT, 0),
        (false, None, None, 3, LEFT, 0),
    ] {
        let mut w = sampling(10, 10_000);
        let (id, place, [a, b, c]) = group(&mut w);
        w.pass(1, 1);
        for (n, said) in [(b, second), (c, third)] {
            if let Some((kind, value)) = said {
                commit(&mut w, id, n, kind, value).unwrap();
            }
        }
        w.pass(1, 2_000);
        let mut revealed: Vec<_> = [(b, second), (c, third)].into_iter().filter_map(|(n, said)| said.map(|s| (n, s))).collect();
        if first {
            revealed.insert(0, (a, (ANSWER, value(1))));
        }
        w.events();
        for (n, (kind, value)) in revealed {
            reveal(&mut w, id, place, n, kind, value).unwrap();
        }
        if !first {
            w.pass(1, 7_201);
            w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
        }
        let late = w.events();
        let timed_out = late.iter().filter(|e| matches!(e, E::MemberTimedOut(_))).count();
        assert_eq!(timed_out, [second, third].iter().filter(|said| said.is_none()).count());
        assert!(!late.iter().any(|e| matches!(e, E::ScoreRecorded(_))));
        w.mem.logs = Vec::new();
        let settled = late.iter().find_map(|e| if let E::GroupSettled(g) = e { Some(g.clone()) } else { None }).unwrap();
        assert_eq!((settled.outcome, settled.refund, settled.startFee), (outcome, refund, 0));
        assert_eq!((w.account(a.into()).credit, w.account(CREATOR).credit), (paid, refund));
        assert_eq!(w.ask(overviewCall {}).burnt, if first { 0 } else { 20 * LEFT });
        for (n, said) in [(b, second), (c, third)] {
            let view = w.node(n);
            assert_eq!(view.reliability < 1_000_000_000_000_000_000, said.is_none());
            assert_eq!((view.status, view.openCommitments), (1, 0));
        }
        check_money(&mut w);
    }
}

/// Joining, reporting and settling write much themselves: they make due draws of single nodes first, and are refused while one of several
/// nodes is due, which others make.
#[test]
fn who_joins_reports_or_settles_makes_no_draw_of_several_nodes() {
    let mut w = sampling(10, 10_000);
    let (id, place, [a, b, c]) = group(&mut w);
    for n in [b, c] {
        commit(&mut w, id, n, ANSWER, value(1)).unwrap();
    }
    reveal(&mut w, id, place, a, ANSWER, value(1)).unwrap();
    w.pass(1, 7_201);
    let settle = |w: &mut World| w.send(who(DRIVER), 0, settleCall { id, group: place }).map(drop);
    let report = |w: &mut World| w.send(who(a.into()), 0, reportDownloadedCall { models: vec![77] }).map(drop);
    w.create(CREATOR, FEE, spec(0, &[])).unwrap();
    w.create(CREATOR, 3 * FEE, IMuster::TaskSpec { redundancy: 2, ..spec(0, &[]) }).unwrap();
    w.pass(1, 0);
    refused!(settle(&mut w), DrawsDue(1u32));
    refused!(report(&mut w), DrawsDue(1u32));
    refused!(w.join(99, "RTX 4090", 24, &[], 400), DrawsDue(1u32));
    assert_eq!(w.ask(overviewCall {}).pending, 2, "what was drawn before is undone with it");
    w.dispatch(16).unwrap();
    w.create(CREATOR, FEE, spec(0, &[])).unwrap();
    w.pass(1, 0);
    settle(&mut w).unwrap();
    assert_eq!(w.ask(overviewCall {}).pending, 0, "a single one it makes");
    report(&mut w).unwrap();
    w.join(99, "RTX 4090", 24, &[], 400).unwrap();
    check_money(&mut w);
}

#[test]
fn small_scopes_are_their_own_affair() {
    // Eight nodes, where scores need nine: no score, no slash, no reserve.
    let mut w = sampling(8, 5_000);
    let (id, node) = loop {
        let (id, node) = committed(&mut w, ANSWER, 1);
        if reveal(&mut w, id, 0, node, ANSWER, value(1)) == Err(refusal!(Sampled(id))) {
            break (id, node);
        }
    };
    let before: Vec<u128> = (1..=8).map(|n| w.account(n).credit).collect();
    w.send(who(DRIVER), 0, validateCall { id, node }).unwrap();
    assert_eq!(w.account(DRIVER).credit, START_FEE, "out of the task's own fee");
    w.pass(3, 1);
    w.dispatch(1).unwrap();
    let (place, members) = group_of(&mut w, id).expect("a group");
    let [a, b, c] = members.try_into().unwrap();
    commit(&mut w, id, b, ANSWER, value(2)).unwrap();
    commit(&mut w, id, c, ANSWER, value(1)).unwrap();
    for (n, answer) in [(a, 1), (b, 2), (c, 1)] {
        w.events();
        reveal(&mut w, id, place, n, ANSWER, value(answer)).unwrap();
    }
    let (judged, _) = judgement(&mut w);
    assert_eq!(judged.iter().map(|m| m.1).collect::<Vec<_>>(), [1, 2, 1]);
    assert_eq!(judged.iter().map(|m| m.2).sum::<u128>(), LEFT);
    let overview = w.ask(overviewCall {});
    assert_eq!((overview.burnt, overview.reserve), (0, 0));
    assert!((1..=8).all(|n| w.node(n).scores == 0 && w.node(n).stake == 400 * TOKEN));
    assert_eq!(w.account(b.into()).credit, before[b as usize - 1]);
}

#[test]
fn a_group_does_with_whom_there_is() {
    for nodes in [1, 2] {
        let mut w = sampling(nodes, 10_000);
        let (id, node) = committed(&mut w, ANSWER, 1);
        let (place, members) = formed(&mut w, id, node);
        assert_eq!(members.len() as u64, nodes);
        for &n in &members[1..] {
            commit(&mut w, id, n, ANSWER, value(1)).unwrap();
        }
        for &n in &members {
            reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap();
        }
        let paid: u128 = members.iter().map(|&n| w.account(n.into()).credit).sum();
        assert_eq!(paid, LEFT);
        check_money(&mut w);
    }
}

#[test]
fn busy_nodes_validate_when_their_task_ends_before_the_queue_and_before_they_leave() {
    let mut w = sampling(9, 10_000);
    let (id, first) = committed(&mut w, ANSWER, 1);
    // Everybody else is busy, and tasks wait.
    let busy: Vec<(u64, u32)> = (0..8).map(|_| started(&mut w, TOKEN, spec(0, &[]))).collect();
    for _ in 0..3 {
        w.create(CREATOR, TOKEN, spec(0, &[])).unwrap();
        w.pass(1, 0);
        w.dispatch(16).unwrap();
    }
    let (place, members) = formed(&mut w, id, first);
    let [_, b, c] = members.try_into().unwrap();
    assert_eq!([b, c].map(|n| w.node(n).calledTo), [place; 2]);
    assert!(w.node(first).task != id, "the first took the next task");
    w.call(who(b.into()), 0, |net| net.quit()).unwrap();
    for n in [b, c] {
        let (task, _) = busy.iter().find(|t| t.1 == n).unwrap();
        w.send(who(n.into()), 0, submitCall { id: *task, resultDigest: value(9) }).unwrap();
        let view = w.ask(runningTaskCall { number: n });
        assert_eq!((view.id, view.status, view.group, view.fee), (id, 6, place, LEFT));
        assert_eq!(w.node(n).calledTo, 0);
    }
    assert_eq!([b, c].map(|n| w.node(n).status), [4, 2]);
    for n in [b, c] {
        commit(&mut w, id, n, ANSWER, value(1)).unwrap();
    }
    assert_eq!(w.node(b).status, 0, "it has left, its commitment open");
    assert_eq!(w.node(b).openCommitments, 1);
    // Its returned stake is locked until its part is judged.
    w.pass(1, 86_401);
    w.send(who(b.into()), 0, withdrawCall { to: who(b.into()).into() }).unwrap();
    refused!(w.send(who(b.into()), 0, withdrawCall { to: who(b.into()).into() }), StakeLocked(b, 1u8));
    w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
    // All three withheld.
    assert_eq!(w.ask(overviewCall {}).burnt, 60 * LEFT);
    assert_eq!(w.account(b.into()).unbonding, 400 * TOKEN - 20 * LEFT);
    w.send(who(b.into()), 0, withdrawCall { to: who(b.into()).into() }).unwrap();
    check_money(&mut w);
}

/// A called node that becomes free begins in the group, but not between the hash of another group's draw and that draw. So the moment at
/// which a task ends does not decide which nodes can be called.
#[test]
fn who_gets_free_while_validators_are_drawn_begins_after_that() {
    let mut w = sampling(12, 10_000);
    let [(id, first), second, third] = [1, 1, 1].map(|answer| committed(&mut w, ANSWER, answer));
    for _ in 0..12 {
        w.create(CREATOR, TOKEN, spec(0, &[])).unwrap();
    }
    w.drain();
    let (place, members) = formed(&mut w, id, first);
    let called = members[1];
    assert_eq!(w.node(called).calledTo, place);
    for (id, node) in [second, third] {
        w.send(who(node.into()), 0, validateCall { id, node }).unwrap();
    }
    w.pass(3, 1);
    // The call that ends its task makes one of the two draws.
    let task = task_of(&mut w, called);
    w.send(who(called.into()), 0, submitCall { id: task, resultDigest: value(9) }).unwrap();
    assert_eq!([second.0, third.0].map(|id| group_of(&mut w, id).is_some()), [true, false]);
    assert_eq!((w.node(called).calledTo, task_of(&mut w, called)), (place, 0));
    w.dispatch(16).unwrap();
    assert!(group_of(&mut w, third.0).is_some());
    assert_eq!((w.node(called).calledTo, task_of(&mut w, called)), (0, id));
}

/// Whether a node validates does not hang on when it times out, and a right answer raises its H while it is excluded.
#[test]
fn an_excluded_node_begins_in_the_group_it_was_called_to_and_is_raised_for_a_right_answer() {
    let mut w = sampling(9, 10_000);
    let (id, first) = committed(&mut w, ANSWER, 1);
    let busy: Vec<(u64, u32)> = (0..8).map(|_| started(&mut w, TOKEN, spec(0, &[]))).collect();
    let (place, members) = formed(&mut w, id, first);
    w.set("exclusionPpm", 500_000);
    w.pass(1, 121);
    for &node in &members[1..] {
        let (task, _) = busy.iter().find(|t| t.1 == node).unwrap();
        w.send(who(DRIVER), 0, expireCall { node, id: *task }).unwrap();
        let view = w.ask(runningTaskCall { number: node });
        assert_eq!((view.id, view.status, view.group), (id, 6, place));
        let view = w.node(node);
        assert_eq!((view.reliability, view.excluded, view.parked), (300_000_000_000_000_000, true, 0));
        commit(&mut w, id, node, ANSWER, value(1)).unwrap();
        let runs = w.ask(runningTaskCall { number: node }).id;
        assert_eq!((w.node(node).status, w.node(node).parked, runs), (1, 1, 0));
    }
    w.pass(1, 40);
    let before = [members[1], members[2]].map(|n| w.node(n).reliability);
    // 1 - 0.7 e^(-40 / 1800).
    assert!(before.iter().all(|h| (315_380_000_000_000_000..315_390_000_000_000_000).contains(h)), "{before:?}");
    for &node in &members {
        reveal(&mut w, id, place, node, ANSWER, value(1)).unwrap();
    }
    let (judged, _) = judgement(&mut w);
    assert_eq!(judged.iter().map(|m| m.1).collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!([members[1], members[2]].map(|n| w.node(n).reliability), before.map(|h| h + 150_000_000_000_000_000));
}

/// A node that is switched off without leaving: its H falls each time and recovers, its scores do not.
#[test]
fn a_node_that_was_switched_off_is_kicked_out_in_the_end() {
    const OFF: u32 = 9;
    let mut w = sampling(9, 10_000);
    let mut rounds = 0;
    while w.node(OFF).status > 0 {
        rounds += 1;
        assert!(rounds < 5_000, "{} scores", w.node(OFF).scores);
        assert_eq!((w.node(OFF).longTerm == 0, w.account(OFF.into()).kickedOut), (w.node(OFF).scores > 0, false));
        let (id, first) = started(&mut w, FEE, wanted());
        if first == OFF {
            w.pass(1, 121);
            w.send(who(DRIVER), 0, expireCall { node: OFF, id }).unwrap();
        } else {
            commit(&mut w, id, first, ANSWER, value(1)).unwrap();
            w.pass(3, 1);
            let (place, members) = formed(&mut w, id, first);
            for &node in members[1..].iter().filter(|&&n| n != OFF) {
                commit(&mut w, id, node, ANSWER, value(1)).unwrap();
            }
            w.pass(1, 121);
            for &node in members.iter().filter(|&&n| n != OFF) {
                reveal(&mut w, id, place, node, ANSWER, value(1)).unwrap();
            }
        }
        // Time for H to recover.
        w.pass(1, 40_000);
        w.mem.logs.clear();
    }
    let (view, account) = (w.node(OFF), w.account(OFF.into()));
    assert_eq!((view.scores, view.longTerm, view.stake), (50, 0, 0));
    assert_eq!((account.kickedOut, account.unbonding, account.credit), (true, 400 * TOKEN, 0));
    assert!((1..OFF).all(|n| w.node(n).status == 1));
    check_money(&mut w);
}

#[test]
fn a_node_with_as_many_open_commitments_as_it_may_is_held() {
    let mut w = sampling(9, 10_000);
    w.set("openMost", 1);
    let (id, place, members) = group(&mut w);
    let [a, b, c] = members;
    assert!(w.node(a).held);
    assert_eq!((w.node(a).status, w.ask(runningTaskCall { number: a }).status), (2, 0));
    w.pass(1, 1);
    refused!(w.send(who(DRIVER), 0, expireCall { node: a, id }), TaskNotRunning(id, a));
    commit(&mut w, id, b, ANSWER, value(1)).unwrap();
    // Asked to quit while it is held, it leaves when it is free.
    w.call(who(b.into()), 0, |net| net.quit()).unwrap();
    assert_eq!(w.node(b).status, 4);
    commit(&mut w, id, c, ANSWER, value(1)).unwrap();
    // No held node is called: two groups would wait for each other.
    for _ in 0..2 {
        let (other, node) = committed(&mut w, ANSWER, 1);
        assert!(!members.contains(&node));
        let (_, others) = formed(&mut w, other, node);
        assert!(others.iter().all(|n| !members.contains(n)), "{others:?}");
    }
    for n in members {
        reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap();
    }
    assert_eq!(members.map(|n| (w.node(n).held, w.node(n).status)), [(false, 1), (false, 0), (false, 1)]);
    check_money(&mut w);
}

/// Two groups cannot wait for each other's members: a called node is never held.
#[test]
fn groups_do_not_wait_for_each_other() {
    let mut w = sampling(3, 10_000);
    w.set("openMost", 1);
    let tasks: Vec<(u64, u32)> = (0..3).map(|_| started(&mut w, FEE, wanted())).collect();
    for &(id, node) in &tasks {
        commit(&mut w, id, node, ANSWER, value(1)).unwrap();
    }
    w.pass(3, 1);
    for &(id, node) in &tasks {
        w.send(who(DRIVER), 0, validateCall { id, node }).unwrap();
    }
    // Draws that cannot be made yet are made again; each node that runs a task commits to it, and reveals when it can.
    for _ in 0..400 {
        w.pass(4, 30);
        w.dispatch(16).unwrap();
        for n in 1..=3 {
            let running = w.ask(runningTaskCall { number: n });
            if running.status == 6 {
                commit(&mut w, running.id, n, ANSWER, value(1)).unwrap();
            }
        }
        for g in w.ask(groupsCall { from: 1, count: 9 })._1 {
            for m in g.members.iter().filter(|m| g.opens > 0 && m.stage == stage::COMMITTED) {
                reveal(&mut w, g.id, g.group, m.node, ANSWER, value(1)).unwrap();
            }
        }
    }
    let overview = w.ask(overviewCall {});
    assert_eq!((overview.groups, w.ask(validatorDrawsCall { from: 0, count: 9 }).len()), (0, 0));
    assert!((1..=3).all(|n| w.node(n).status == 1 && w.node(n).openCommitments == 0));
    check_money(&mut w);
}

#[test]
fn a_node_slashed_out_leaves_its_task_refunded_and_its_other_groups_without_it() {
    // b answers wrong in one group while it runs: a task of its own, or another group's.
    for in_group in [false, true] {
        let mut w = sampling(12, 10_000);
        let (id, place, [a, b, c]) = group(&mut w);
        commit(&mut w, id, c, ANSWER, value(1)).unwrap();
        commit(&mut w, id, b, ANSWER, value(2)).unwrap();
        let (other, second) = loop {
            let (other, node) = if in_group {
                let (other, node) = committed(&mut w, ANSWER, 1);
                if node == b {
                    // Not as the first: it is to be called.
                    formed(&mut w, other, node);
                    continue;
                }
                let (_, members) = formed(&mut w, other, node);
                (other, if members[1..].contains(&b) { b } else { 0 })
            } else {
                started(&mut w, TOKEN, spec(0, &[]))
            };
            if node == b {
                break (other, group_of(&mut w, other));
            }
        };
        for (n, answer) in [(a, 1), (b, 2), (c, 1)] {
            w.events();
            reveal(&mut w, id, place, n, ANSWER, value(answer)).unwrap();
        }
        let events = w.events();
        assert_eq!(w.node(b).status, 0);
        if let Some((second, _)) = second {
            let view = w.ask(groupCall { place: second });
            assert!(view.members.iter().any(|m| (m.node, m.stage) == (b, stage::GONE)));
        } else {
            let aborted = |e: &E| matches!(e, E::TaskAborted(t) if (t.id, t.reason, t.refund) == (other, 4, TOKEN));
            assert!(events.iter().any(aborted), "{events:?}");
        }
        check_money(&mut w);
    }
}

/// It has a task of its own, and another group has called it meanwhile.
#[test]
fn a_node_slashed_out_is_gone_from_the_group_it_was_called_to() {
    let mut w = sampling(12, 10_000);
    let (id, place, [a, b, c]) = group(&mut w);
    commit(&mut w, id, c, ANSWER, value(1)).unwrap();
    commit(&mut w, id, b, ANSWER, value(2)).unwrap();
    let own = loop {
        let task = started(&mut w, TOKEN, spec(0, &[]));
        if task.1 == b {
            break task.0;
        }
        submit(&mut w, task);
    };
    let (other, second, members) = loop {
        let (other, first) = committed(&mut w, ANSWER, 1);
        let (second, members) = formed(&mut w, other, first);
        if members.contains(&b) {
            break (other, second, members);
        }
        members[1..].iter().for_each(|&n| commit(&mut w, other, n, ANSWER, value(1)).unwrap());
        members.iter().for_each(|&n| reveal(&mut w, other, second, n, ANSWER, value(1)).unwrap());
    };
    assert_eq!(w.node(b).calledTo, second);
    for (n, answer) in [(a, 1), (b, 2), (c, 1)] {
        w.events();
        reveal(&mut w, id, place, n, ANSWER, value(answer)).unwrap();
    }
    let events = w.events();
    assert!(events.iter().any(|e| matches!(e, E::TaskAborted(t) if (t.id, t.reason, t.refund) == (own, 4, TOKEN))));
    assert!(events.iter().any(|e| matches!(e, E::MemberTimedOut(t) if (t.id, t.node, t.group) == (other, b, second))));
    let view = w.node(b);
    assert_eq!((view.status, view.calledTo, view.openCommitments, view.held), (0, 0, 0, false));
    let gone = w.ask(groupCall { place: second }).members.iter().filter(|m| (m.node, m.stage) == (b, stage::GONE)).count();
    assert_eq!(gone, 1);
    let there: Vec<u32> = members.iter().copied().filter(|&n| n != b).collect();
    commit(&mut w, other, there[1], ANSWER, value(1)).unwrap();
    w.events();
    there.iter().for_each(|&n| reveal(&mut w, other, second, n, ANSWER, value(1)).unwrap());
    let (judged, settled) = judgement(&mut w);
    assert_eq!((judged.iter().find(|m| m.0 == b), settled.outcome), (Some(&(b, 5, 0)), 0));
}

/// The last task that it had is the one that it is judged for, which is not refunded besides.
#[test]
fn a_held_or_idle_node_slashed_out_leaves_nothing_behind() {
    for most in [1, 2] {
        let mut w = sampling(10, 10_000);
        w.set("openMost", most);
        let (id, place, [a, b, c]) = group(&mut w);
        let idle = |w: &mut World| {
            let of = |class| {
                let page = |net: &Network<_>| net.listed_nodes(Among::Idle, GpuGroup(CARD), class, 0, 256);
                w.view(page).expect("a page").1
            };
            (0..10).flat_map(of).any(|node| node.0 == a)
        };
        assert_eq!((w.node(a).held, idle(&mut w)), (most == 1, most == 2));
        for n in [b, c] {
            commit(&mut w, id, n, ANSWER, value(2)).unwrap();
        }
        for (n, answer) in [(b, 2), (c, 2), (a, 1)] {
            w.events();
            reveal(&mut w, id, place, n, ANSWER, value(answer)).unwrap();
        }
        let aborted = w.events().iter().filter(|e| matches!(e, E::TaskAborted(_) | E::MemberTimedOut(_))).count();
        let view = w.node(a);
        assert_eq!((aborted, view.status, view.held, view.openCommitments), (0, 0, false, 0));
        assert!(!idle(&mut w), "it stands in no list");
        assert_eq!(w.account(CREATOR).credit, 0);
        check_money(&mut w);
    }
}

#[test]
fn images_agree_within_their_tolerance_and_do_not_slash() {
    let images =
        |first: u64, second: u64| B256::from_slice(&[first.to_be_bytes(), second.to_be_bytes(), [0; 8], [0; 8]].concat());
    for slash in [0, 1] {
        let mut w = sampling(10, 10_000);
        w.set("slashImages", slash);
        let wanted = IMuster::TaskSpec { kind: 0, units: 2, redundancy: 1, ..spec(24, &[]) };
        refused!(w.create(CREATOR, FEE, IMuster::TaskSpec { units: 5, ..wanted.clone() }), BadUnits(5u32, 4u32));
        let (id, a) = started(&mut w, FEE, wanted);
        commit(&mut w, id, a, ANSWER, images(0xff00, 1 << 40)).unwrap();
        w.pass(3, 1);
        let (place, members) = formed(&mut w, id, a);
        assert_eq!(w.ask(groupCall { place }).images, 2);
        let [_, b, c] = members.try_into().unwrap();
        commit(&mut w, id, b, ANSWER, images(0xff00 ^ 0xff, 1 << 40)).unwrap();
        commit(&mut w, id, c, ANSWER, images(0xff00 ^ 0x1ff, 0)).unwrap();
        reveal(&mut w, id, place, a, ANSWER, images(0xff00, 1 << 40)).unwrap();
        reveal(&mut w, id, place, b, ANSWER, images(0xff00 ^ 0xff, 1 << 40)).unwrap();
        refused!(reveal(&mut w, id, place, c, ANSWER, images(0xff00 ^ 0x1ff, 0)), BadImages(id, 2u8));
        w.pass(1, 7_300);
        w.events();
        w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
        let (members, _) = judgement(&mut w);
        assert_eq!(members.iter().map(|m| m.1).collect::<Vec<_>>(), [1, 1, 3]);
        assert_eq!(w.ask(overviewCall {}).burnt, if slash == 1 { 20 * LEFT } else { 0 });
    }
}

#[test]
fn what_may_be_validated_is_checked_at_creation() {
    let mut w = world(9, 1);
    refused!(w.create(CREATOR, FEE, wanted()), GpuNotListed(CARD));
    refused!(w.create(CREATOR, FEE, IMuster::TaskSpec { redundancy: 1, ..spec(24, &[]) }), GpuNotListed(24u32));
    refused!(w.send(who(1), 0, listGpuGroupCall { group: CARD, listed: true }), NotOwner(who(1)));
    refused!(w.send(OWNER, 0, listGpuGroupCall { group: 7 << 16 | 24, listed: true }), GpuUnknown(7u32 << 16 | 24));
    w.send(OWNER, 0, listGpuGroupCall { group: CARD, listed: true }).unwrap();
    assert!(w.ask(gpuListedCall { group: CARD }));
    // 15/16 of 400 tokens cover three slashes of twenty fees each.
    let most = 375 * TOKEN / 60;
    refused!(w.create(CREATOR, most + 1, wanted()), FeeTooHigh(most + 1, most));
    w.create(CREATOR, most, wanted()).unwrap();
    w.create(CREATOR, 1_000 * TOKEN, spec(0, &[])).unwrap();
    w.send(OWNER, 0, listGpuGroupCall { group: CARD, listed: false }).unwrap();
    refused!(w.create(CREATOR, FEE, wanted()), GpuNotListed(CARD));
    refused!(w.create(CREATOR, FEE, IMuster::TaskSpec { redundancy: 4, ..wanted() }), RedundancyUnsupported(4u8));
}

/// The lots and validators of 20,000 tasks, against the parameters and weights.
#[test]
fn lots_and_validators_follow_their_probabilities() {
    let mut w = sampling(9, 1_000);
    let mut sampled = 0.0;
    for i in 0..20_000u64 {
        let hash = keccak256(i.to_be_bytes()).0;
        let lot = w.view(|net| {
            muster_protocol::flow::draw::Rng::new(net.host, hash, muster_core::id::TaskId(i)).below(net.host, 10_000)
        });
        sampled += f64::from(lot < 1_000);
    }
    // Four standard deviations of 42.4; a rate of 11 % would miss them by two more.
    assert!((sampled - 2_000f64).abs() < 170.0, "{sampled} of 20,000 sampled");

    // Stakes of 1, 4 and 16 times the least: S is 0.25, 0.5, 1 and W 1/6, 1/4, 1/3. Two validators of each of 3,000 groups.
    let mut w = World::new();
    for (n, tokens) in [400, 400, 400, 1_600, 1_600, 1_600, 6_400, 6_400, 6_400].into_iter().enumerate() {
        w.join(1 + n as u64, "RTX 4090", 24, &[], tokens).unwrap();
    }
    w.send(OWNER, 0, listGpuGroupCall { group: CARD, listed: true }).unwrap();
    w.set("sampleBps", 10_000);
    w.set("scorePool", 24);
    let weights = [2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0, 4.0, 4.0];
    let (mut seen, mut expected, groups) = ([0.0; 9], [0.0; 9], 3_000);
    for _ in 0..groups {
        let (id, first) = committed(&mut w, ANSWER, 1);
        let (place, members) = formed(&mut w, id, first);
        let first = first as usize - 1;
        let rest: f64 = weights.iter().sum::<f64>() - weights[first];
        for i in (0..9).filter(|&i| i != first) {
            // As the first validator, or as the second after any other.
            expected[i] += weights[i] / rest;
            for j in (0..9).filter(|&j| j != first && j != i) {
                expected[i] += weights[j] / rest * weights[i] / (rest - weights[j]);
            }
        }
        for &n in &members[1..] {
            seen[n as usize - 1] += 1.0;
            commit(&mut w, id, n, ANSWER, value(1)).unwrap();
        }
        for &n in &members {
            reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap();
        }
        w.mem.logs.clear();
        w.pass(1, 3_600);
    }
    assert_eq!(seen.iter().sum::<f64>(), 2.0 * f64::from(groups));
    let chi = |seen: &[f64; 9]| seen.iter().zip(&expected).map(|(o, e)| (o - e).powi(2) / e).sum::<f64>();
    assert!(chi(&seen) < 26.12, "chi-square {} at 8 degrees", chi(&seen));
    // Validators drawn without regard to weight would fail.
    assert!(chi(&[2.0 * f64::from(groups) / 9.0; 9]) > 26.12);
}

/// The reserve neither grows nor shrinks by more than chance, and pays three payments to every group once it has something.
#[test]
fn the_reserve_balances() {
    let mut w = sampling(9, 2_500);
    let (mut groups, tasks) = (0u128, 2_000u128);
    for _ in 0..tasks {
        let (id, first) = committed(&mut w, ANSWER, 1);
        if reveal(&mut w, id, 0, first, ANSWER, value(1)).is_err() {
            groups += 1;
            let (place, members) = formed(&mut w, id, first);
            for &n in &members[1..] {
                commit(&mut w, id, n, ANSWER, value(1)).unwrap();
            }
            for &n in &members {
                reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap();
            }
        }
        w.mem.logs.clear();
    }
    let (single, validated) = (payment(FEE, 2_500), payment(LEFT, 2_500));
    let paid: u128 = (1..=9).map(|n| w.account(n).credit).sum();
    let reserve = w.ask(overviewCall {}).reserve;
    assert_eq!(paid + reserve, tasks * FEE);
    // The promised pay, less groups that found the reserve empty, at the very beginning.
    let promised = (tasks - groups) * single + groups * 3 * validated;
    assert!(paid <= promised && promised - paid < 40 * FEE, "{} of {}", paid / TOKEN, promised / TOKEN);
    assert!(reserve < 200 * FEE, "{}", reserve / TOKEN);
    check_money(&mut w);
}

#[test]
fn a_call_cannot_be_steered_once_its_hash_is_known() {
    let mut w = sampling(9, 10_000);
    let (id, node) = committed(&mut w, ANSWER, 1);
    w.send(who(DRIVER), 0, validateCall { id, node }).unwrap();
    w.pass(2, 1);
    // Not known yet: a node that leaves now does not know which candidate it helps.
    w.call(who(if node == 1 { 2 } else { 1 }), 0, |net| net.pause()).unwrap();
    w.pass(1, 1);
    // Known: a call that changes the candidates draws first.
    let other = if node == 3 { 4 } else { 3 };
    w.call(who(other), 0, |net| net.pause()).unwrap();
    let (_, members) = group_of(&mut w, id).expect("a group");
    assert_eq!(members.len(), 3);
    let foreseen = members.contains(&(other as u32));
    assert_eq!(w.node(other as u32).status, if foreseen { 3 } else { 5 });
}

/// A commitment is bound to its node: copied, it opens nothing.
#[test]
fn commitments_cannot_be_copied() {
    let mut w = sampling(9, 10_000);
    let (id, place, [a, b, c]) = group(&mut w);
    let copied = commitment(id, a, ANSWER, value(1), salt(id, a));
    w.send(who(b.into()), 0, commitCall { id, commitment: copied }).unwrap();
    commit(&mut w, id, c, ANSWER, value(1)).unwrap();
    reveal(&mut w, id, place, a, ANSWER, value(1)).unwrap();
    // Even with the other's salt, which is public now.
    let with = |salt: B256| revealCall { id, group: place, node: b, kind: ANSWER, value: value(1), salt };
    for salt in [salt(id, a), salt(id, b)] {
        refused!(w.send(who(DRIVER), 0, with(salt)), NotWhatWasCommitted(id, b));
    }
}

/// Found by an attack on the first version: a node lost nothing by not revealing an answer that was not sampled. So nodes of one operator
/// could be validated out of the reserve and pay nothing in.
#[test]
fn who_is_not_sampled_pays_for_those_who_are_revealed_or_not() {
    let mut w = sampling(9, 5_000);
    let (mut in_, mut out) = (0, 0);
    while in_ < 20 || out < 20 {
        let before = w.ask(overviewCall {}).reserve;
        let (id, node) = committed(&mut w, ANSWER, 1);
        w.pass(2, 601);
        // An operator that sees that it is not sampled lets another address of its own end the task.
        if w.send(who(DRIVER), 0, expireCall { node, id }).is_ok() {
            in_ += 1;
            assert_eq!(w.ask(overviewCall {}).reserve - before, FEE - payment(FEE, 5_000));
        } else {
            out += 1;
            let (place, members) = formed(&mut w, id, node);
            for &n in &members[1..] {
                commit(&mut w, id, n, ANSWER, value(1)).unwrap();
            }
            for &n in &members {
                reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap();
            }
        }
        // Time for H to recover.
        w.pass(1, 40_000);
        w.mem.logs.clear();
    }
    check_money(&mut w);
}

/// Found by an attack: nodes that left, or joined, after the lot switched slashes off, or the reserve on.
#[test]
fn what_a_judgement_can_do_is_settled_before_the_lot() {
    for leaving in [true, false] {
        let mut w = sampling(if leaving { 9 } else { 8 }, 10_000);
        let (id, node) = committed(&mut w, ANSWER, 2);
        w.send(who(DRIVER), 0, validateCall { id, node }).unwrap();
        if leaving {
            let other = if node == 9 { 8 } else { 9 };
            w.call(who(other), 0, |net| net.quit()).unwrap();
        } else {
            w.join(9, "RTX 4090", 24, &[], 400).unwrap();
        }
        let (place, members) = loop {
            w.pass(3, 1);
            w.dispatch(1).unwrap();
            if let Some(group) = group_of(&mut w, id) {
                break group;
            }
        };
        assert_eq!(w.ask(groupCall { place }).scored, leaving);
        for &n in &members[1..] {
            commit(&mut w, id, n, ANSWER, value(1)).unwrap();
        }
        for &n in &members {
            reveal(&mut w, id, place, n, ANSWER, value(if n == node { 2 } else { 1 })).unwrap();
        }
        assert_eq!(w.ask(overviewCall {}).burnt, if leaving { 20 * LEFT } else { 0 });
        check_money(&mut w);
    }
}

/// A group formed late gives its first node the whole time to reveal, and a late reveal counts until somebody settles.
#[test]
fn a_late_reveal_counts_until_somebody_settles() {
    let mut w = sampling(1, 10_000);
    w.set("scorePool", 3);
    let (id, node) = committed(&mut w, ANSWER, 1);
    w.pass(1, 9_000);
    let (place, _) = formed(&mut w, id, node);
    let opens = w.ask(groupCall { place }).opens;
    assert_eq!(opens, w.mem.now);
    refused!(w.send(who(DRIVER), 0, settleCall { id, group: place }), RevealsOpen(id, opens + 7_200));
    w.pass(1, 9_000);
    reveal(&mut w, id, place, node, ANSWER, value(1)).unwrap();
    assert_eq!(w.account(node.into()).credit, LEFT);
}

#[test]
fn commitments_are_told() {
    let mut w = sampling(9, 10_000);
    let told = |w: &mut World| -> Vec<AnswerCommitted> {
        w.events().into_iter().filter_map(|e| if let E::AnswerCommitted(c) = e { Some(c) } else { None }).collect()
    };
    let (id, a) = started(&mut w, FEE, wanted());
    w.pass(5, 10);
    w.events();
    commit(&mut w, id, a, ANSWER, value(1)).unwrap();
    let (at, block) = (w.mem.now, w.mem.block);
    let kept = |node: u32| commitment(id, node, ANSWER, value(1), salt(id, node)).0[..24].to_vec();
    let first = told(&mut w);
    assert_eq!(first.len(), 1);
    assert_eq!((first[0].id, first[0].node, first[0].group, first[0].block), (id, a, 0, block + 2));
    assert_eq!(first[0].commitment.to_vec(), kept(a));
    w.pass(3, 20);
    let (place, members) = formed(&mut w, id, a);
    let view = w.ask(groupCall { place }).members[0].clone();
    assert_eq!((view.node, view.stage, view.moment, view.elapsed), (a, stage::COMMITTED, at, 10));
    w.pass(1, 5);
    w.events();
    commit(&mut w, id, members[1], ANSWER, value(1)).unwrap();
    let second = told(&mut w);
    assert_eq!(second.len(), 1);
    assert_eq!((second[0].id, second[0].node, second[0].group, second[0].block), (id, members[1], place, 0));
    assert_eq!(second[0].commitment.to_vec(), kept(members[1]));
}

/// A lot as high as the probability is not sampled, the one below it is.
#[test]
fn the_lot_is_below_the_probability() {
    let task = |bps: u64| {
        let mut w = sampling(9, bps);
        let (id, node) = started(&mut w, FEE, wanted());
        w.pass(5, 10);
        commit(&mut w, id, node, ANSWER, value(1)).unwrap();
        let block = w.mem.block + 2;
        w.pass(3, 1);
        let lot = w.view(|net| {
            let hash = net.host.block_hash(block).unwrap();
            muster_protocol::flow::draw::Rng::new(net.host, hash, muster_core::id::TaskId(id)).below(net.host, 10_000)
        });
        (w, id, node, lot)
    };
    let lot = task(5_000).3;
    let (mut w, id, node, same) = task(lot);
    assert_eq!(same, lot);
    refused!(w.send(who(DRIVER), 0, validateCall { id, node }), NotSampled(id));
    let (mut w, id, node, same) = task(lot + 1);
    assert_eq!(same, lot);
    w.send(who(DRIVER), 0, validateCall { id, node }).unwrap();
}

/// Validators are called by anybody for the start fee, which the task's own fee pays, also in a scope that pays nothing into the reserve.
/// The node itself earns nothing by it: the reserve does.
#[test]
fn who_calls_validators_is_paid_out_of_the_tasks_fee() {
    let mut w = sampling(9, 5_000);
    let sampled = |w: &mut World| loop {
        let (id, node) = committed(w, ANSWER, 1);
        if reveal(w, id, 0, node, ANSWER, value(1)).is_err() {
            break (id, node);
        }
    };
    for (own, scored) in [(true, true), (true, false), (false, true), (false, false)] {
        w.set("scorePool", if scored { 9 } else { 24 });
        let (id, node) = sampled(&mut w);
        let caller = if own { node.into() } else { DRIVER };
        let (credit, reserve) = (w.account(caller).credit, w.ask(overviewCall {}).reserve);
        w.events();
        w.send(who(caller), 0, validateCall { id, node }).unwrap();
        let told = w.events().into_iter().find_map(|e| if let E::TaskSampled(t) = e { Some(t) } else { None }).expect("told");
        let (saved, paid) = if own { (START_FEE, 0) } else { (0, START_FEE) };
        let came = (w.account(caller).credit - credit, w.ask(overviewCall {}).reserve - reserve);
        assert_eq!(came, (paid, saved), "own {own}, scored {scored}");
        assert_eq!(told.beneficiary.into_array(), if own { [0; 20] } else { who(DRIVER) });
        assert_eq!((told.paid, w.ask(runningTaskCall { number: node }).fee), (START_FEE, LEFT));
        check_money(&mut w);
    }
}

/// A call whose hash was not used in time is drawn again, by a hash that nobody knows yet.
/// A shorter delay would have a later call's validators known before its turn.
#[test]
fn the_delay_of_lots_is_lowered_only_while_no_validators_wait_to_be_drawn() {
    let mut w = sampling(9, 10_000);
    w.set("sampleDelay", 3);
    let (id, node) = committed(&mut w, ANSWER, 1);
    w.pass(1, 0);
    w.send(who(DRIVER), 0, validateCall { id, node }).unwrap();
    let (delay, number) = (|blocks: u64| word(blocks.into()), parameter("sampleDelay"));
    let set = |w: &mut World, blocks: u64| w.raw(OWNER, 0, |m| admin::set_parameter(m, number, delay(blocks)));
    refused!(set(&mut w, 2), TasksPending(1u32));
    // A Pending task is another that waits.
    w.create(CREATOR, FEE, spec(0, &[])).unwrap();
    refused!(set(&mut w, 2), TasksPending(2u32));
    set(&mut w, 4).unwrap();
    w.pass(4, 1);
    w.dispatch(16).unwrap();
    assert!(group_of(&mut w, id).is_some());
    set(&mut w, 2).unwrap();
}

#[test]
fn a_call_that_was_forgotten_is_drawn_by_a_later_hash() {
    let mut w = sampling(9, 10_000);
    let (id, node) = committed(&mut w, ANSWER, 1);
    w.send(who(DRIVER), 0, validateCall { id, node }).unwrap();
    w.pass(muster_protocol::host::HISTORY + 3, 1);
    w.events();
    assert!(w.send(who(DRIVER), 0, formGroupCall {}).unwrap());
    let block = w.mem.block + 2;
    let events = w.events();
    assert!(events.iter().any(|e| matches!(e, E::TaskRedrawn(r) if (r.id, r.drawBlock) == (id, block))), "{events:?}");
    assert!(group_of(&mut w, id).is_none());
    w.pass(3, 1);
    assert!(w.send(who(DRIVER), 0, formGroupCall {}).unwrap());
    assert_eq!(group_of(&mut w, id).expect("formed").1.len(), 3);
}

/// Its validators were called, and before they are drawn it is slashed for its answer in another group.
#[test]
fn a_call_for_a_node_that_was_slashed_out_is_dropped() {
    let mut w = sampling(12, 10_000);
    let (id, place, [a, b, c]) = group(&mut w);
    commit(&mut w, id, c, ANSWER, value(1)).unwrap();
    commit(&mut w, id, b, ANSWER, value(2)).unwrap();
    let other = loop {
        let (other, node) = started(&mut w, FEE, wanted());
        if node == b {
            break other;
        }
    };
    commit(&mut w, other, b, ANSWER, value(1)).unwrap();
    w.pass(3, 1);
    w.send(who(DRIVER), 0, validateCall { id: other, node: b }).unwrap();
    for (n, answer) in [(a, 1), (b, 2), (c, 1)] {
        reveal(&mut w, id, place, n, ANSWER, value(answer)).unwrap();
    }
    assert_eq!((w.node(b).status, w.account(CREATOR).credit), (0, LEFT), "gone, its task refunded");
    w.pass(3, 1);
    w.events();
    assert!(w.send(who(DRIVER), 0, formGroupCall {}).unwrap());
    let events = w.events();
    assert!(!events.iter().any(|e| matches!(e, E::GroupFormed(_))), "{events:?}");
    assert!(group_of(&mut w, other).is_none() && w.ask(validatorDrawsCall { from: 0, count: 9 }).is_empty());
    check_money(&mut w);
}

/// Slashed when it has left already: first its returned stake, then its credit, and no more than the slash.
#[test]
fn a_slash_takes_what_was_returned_and_then_what_was_earned() {
    for returned in [400 * TOKEN, 100 * TOKEN] {
        let mut w = sampling(10, 10_000);
        let (id, node) = started(&mut w, FEE, wanted());
        commit(&mut w, id, node, ANSWER, value(1)).unwrap();
        w.pass(3, 1);
        let (place, members) = formed(&mut w, id, node);
        let [a, b, c] = members.try_into().unwrap();
        commit(&mut w, id, b, ANSWER, value(2)).unwrap();
        commit(&mut w, id, c, ANSWER, value(1)).unwrap();
        while w.account(b.into()).credit < 1_000 * FEE {
            let task = started(&mut w, 500 * TOKEN, spec(0, &[]));
            submit(&mut w, task);
        }
        w.events();
        w.call(who(b.into()), 0, |net| net.quit()).unwrap();
        let events = w.events();
        assert!(!events.iter().any(|e| matches!(e, E::StakeReleased(_))), "nothing had waited: {events:?}");
        // Frozen at its creation are the fee, and how many of them a slash takes.
        w.set("slashTimes", 255);
        let slash = 20 * LEFT;
        // Bound as fees are, no slash takes more than the stake: it is made so by hand.
        let at = account_slot(&w.mem, who(b.into()));
        let account: Account = w.mem.get(at);
        w.mem.put(at, &Account { unbonding: (returned / u128::from(STAKE_UNIT)) as u64, ..account });
        w.mem.paid += 400 * TOKEN - returned;
        let before = w.account(b.into());
        assert_eq!((w.node(b).status, before.unbonding), (0, returned));
        for (n, answer) in [(a, 1), (b, 2), (c, 1)] {
            reveal(&mut w, id, place, n, ANSWER, value(answer)).unwrap();
        }
        let events = w.events();
        let slashed = events.iter().find_map(|e| if let E::NodeSlashed(s) = e { Some(s.clone()) } else { None }).unwrap();
        let unbonding = slash.min(returned);
        let credit = slash - unbonding;
        assert!(credit < before.credit);
        assert_eq!((slashed.node, slashed.stake, slashed.unbonding, slashed.credit), (b, 0, unbonding, credit));
        let after = w.account(b.into());
        assert_eq!((before.unbonding - after.unbonding, before.credit - after.credit), (unbonding, credit));
        assert!(after.kickedOut);
        assert_eq!(w.ask(overviewCall {}).burnt, slash);
        check_money(&mut w);
    }
}

/// 15/16 of the least stake are enough.
#[test]
fn who_keeps_most_of_the_least_stake_after_a_slash_stays() {
    for short in [0, 1] {
        let mut w = sampling(10, 10_000);
        let (id, place, [a, b, c]) = group(&mut w);
        let wei = 20 * LEFT - 25 * TOKEN - short * u128::from(STAKE_UNIT);
        w.send(who(b.into()), wei, raiseStakeCall {}).unwrap();
        commit(&mut w, id, b, ANSWER, value(2)).unwrap();
        commit(&mut w, id, c, ANSWER, value(1)).unwrap();
        for (n, answer) in [(a, 1), (b, 2), (c, 1)] {
            reveal(&mut w, id, place, n, ANSWER, value(answer)).unwrap();
        }
        let there = (w.node(b).status > 0, stake(&mut w, b));
        assert_eq!(there, if short == 0 { (true, 375 * TOKEN) } else { (false, 0) });
        assert_eq!(w.account(b.into()).kickedOut, short > 0);
        check_money(&mut w);
    }
}

/// An operator whose node has left before its slash is barred by the same rule, and an event says so once.
#[test]
fn who_left_before_a_slash_is_barred_if_too_little_is_left() {
    for (more, barred) in [(20 * LEFT - 25 * TOKEN, false), (20 * LEFT - 25 * TOKEN - u128::from(STAKE_UNIT), true)] {
        let mut w = sampling(10, 10_000);
        let (id, place, [a, b, c]) = group(&mut w);
        w.send(who(b.into()), more, raiseStakeCall {}).unwrap();
        commit(&mut w, id, b, ANSWER, value(2)).unwrap();
        commit(&mut w, id, c, ANSWER, value(1)).unwrap();
        w.send(who(b.into()), 0, quitCall {}).unwrap();
        w.events();
        for (n, answer) in [(a, 1), (b, 2), (c, 1)] {
            reveal(&mut w, id, place, n, ANSWER, value(answer)).unwrap();
        }
        let told = w.events().iter().filter(|e| matches!(e, E::NodeKickedOut(k) if k.node == b)).count();
        assert_eq!((told, w.account(b.into()).kickedOut), (usize::from(barred), barred));
        let again = w.join(b.into(), "RTX 4090", 24, &[], 400);
        assert_eq!(again.is_ok(), !barred);
        check_money(&mut w);
    }
}

#[test]
fn a_task_for_three_leaves_a_receipt_if_it_asked_for_one() {
    for asked in [0, 1] {
        let mut w = network(10);
        let wanted = IMuster::TaskSpec { flags: asked, ..alike(24) };
        let id = created(&mut w, 3 * FEE, wanted);
        let (place, members) = group_of(&mut w, id).expect("formed");
        play(&mut w, id, place, &members, |_| value(1));
        assert_eq!(u32::from(w.ask(outcomeCall { id }).state), 2 * asked);
    }
}

/// Whether it resumes or leaves, its commitments elsewhere are still open.
#[test]
fn who_was_set_aside_owes_what_it_owed() {
    for resumes in [true, false] {
        let mut w = sampling(9, 10_000);
        let (id, place, [a, b, c]) = group(&mut w);
        commit(&mut w, id, b, ANSWER, value(1)).unwrap();
        commit(&mut w, id, c, ANSWER, value(1)).unwrap();
        w.call(who(b.into()), 0, |net| net.pause()).unwrap();
        // Until a draw of validators meets it.
        loop {
            let (other, first) = committed(&mut w, ANSWER, 1);
            w.events();
            let (second, members) = formed(&mut w, other, first);
            let aside = w.events().iter().any(|e| matches!(e, E::NodeSetAside(n) if n.node == b));
            members[1..].iter().for_each(|&n| commit(&mut w, other, n, ANSWER, value(1)).unwrap());
            members.iter().for_each(|&n| reveal(&mut w, other, second, n, ANSWER, value(1)).unwrap());
            if aside {
                break;
            }
        }
        w.call(who(b.into()), 0, |net| if resumes { net.resume() } else { net.quit() }).unwrap();
        let view = w.node(b);
        assert_eq!((view.status, view.openCommitments), (u8::from(resumes), 1));
        [a, b, c].iter().for_each(|&n| reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap());
        assert_eq!(w.node(b).openCommitments, 0);
        check_money(&mut w);
    }
}

/// The start fee and the part saved for validations are together never more than the fee, and the start fee goes first.
#[test]
fn what_is_saved_of_a_timeout_is_what_the_start_fee_leaves() {
    let mut w = sampling(9, 9_000);
    w.set("startFeeBps", 5_000);
    let mem = w.mem.clone();
    for later in 0.. {
        w.mem = mem.clone();
        w.pass(later, 0);
        let (id, node) = committed(&mut w, ANSWER, 1);
        w.pass(2, 601);
        w.events();
        // One in ten is not sampled.
        if w.send(who(DRIVER), 0, expireCall { node, id }).is_ok() {
            assert!(payment(FEE, 9_000) < FEE / 2);
            assert!(w.events().iter().any(|e| matches!(e, E::TaskAborted(a) if (a.refund, a.startFee) == (0, FEE / 2))));
            assert_eq!((w.account(DRIVER).credit, w.ask(overviewCall {}).reserve), (FEE / 2, FEE / 2));
            return;
        }
    }
}

/// Of all draws whose hash is known, the one with the earliest block is next; a Pending task's comes before a call's of the same block.
#[test]
fn draws_are_made_in_the_order_of_their_blocks() {
    for (task_at, call_at, task_first) in [(0, 1, true), (0, 0, true), (1, 0, false)] {
        let mut w = sampling(12, 10_000);
        w.set("drawDelay", 3);
        let waiting = w.create(CREATOR, FEE, wanted()).unwrap();
        w.pass(3, 0);
        w.dispatch(1).unwrap();
        let node = (1..=12).find(|&n| task_of(&mut w, n) == waiting).expect("drawn");
        commit(&mut w, waiting, node, ANSWER, value(1)).unwrap();
        w.pass(3, 1);
        let mut id = 0;
        for block in 0..2 {
            if block == call_at {
                w.send(who(node.into()), 0, validateCall { id: waiting, node }).unwrap();
            }
            if block == task_at {
                id = w.create(CREATOR, FEE, spec(0, &[])).unwrap();
            }
            w.pass(1, 0);
        }
        w.pass(2, 0);
        w.events();
        assert_eq!(w.dispatch(1).unwrap(), 1);
        let started = (1..=12).any(|n| task_of(&mut w, n) == id);
        assert_eq!((started, group_of(&mut w, waiting).is_some()), (task_first, !task_first), "{task_at}, {call_at}");
    }
}

/// A draw of validators takes at most four paused nodes out of the active ones, whichever others it meets.
#[test]
fn a_draw_sets_at_most_four_paused_nodes_aside() {
    let mut w = sampling(40, 10_000);
    let (id, node) = committed(&mut w, ANSWER, 1);
    for n in (1..=40).filter(|&n| n != node).take(32) {
        w.call(who(n.into()), 0, |net| net.pause()).unwrap();
    }
    w.events();
    formed(&mut w, id, node);
    let events = w.events();
    let aside: Vec<u32> = events.iter().filter_map(|e| if let E::NodeSetAside(n) = e { Some(n.node) } else { None }).collect();
    assert_eq!(aside.len(), 4, "{aside:?}");
}

/// A node that owes as many reveals as it may is called to no group, also where the number was lowered since.
#[test]
fn nobody_is_called_who_owes_as_much_as_may_be_owed() {
    let mut w = sampling(9, 10_000);
    let (id, _, owing) = group(&mut w);
    owing[1..].iter().for_each(|&n| commit(&mut w, id, n, ANSWER, value(1)).unwrap());
    w.set("openMost", 1);
    let mem = w.mem.clone();
    let mut seen = 0;
    for later in 0..40 {
        w.mem = mem.clone();
        w.pass(later, 0);
        let (other, first) = committed(&mut w, ANSWER, 1);
        if owing.contains(&first) {
            continue;
        }
        let (_, members) = formed(&mut w, other, first);
        assert!(members.iter().all(|n| !owing.contains(n)), "{members:?} of {owing:?}");
        seen += 1;
    }
    assert!(seen > 10, "{seen}");
}

/// Scores and slashes change the nodes' weights. So while draws are due whose hash is known, the last reveal judges nobody. Anybody can
/// have the group judged once the draws are made.
#[test]
fn the_last_reveal_judges_nobody_while_draws_are_due() {
    let mut w = sampling(12, 10_000);
    let (id, place, members) = group(&mut w);
    members[1..].iter().for_each(|&n| commit(&mut w, id, n, ANSWER, value(1)).unwrap());
    members[..2].iter().for_each(|&n| reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap());
    // More than a call makes itself.
    for _ in 0..4 {
        w.create(CREATOR, TOKEN, spec(0, &[])).unwrap();
    }
    w.pass(1, 0);
    reveal(&mut w, id, place, members[2], ANSWER, value(1)).unwrap();
    assert!(w.ask(overviewCall {}).pending > 0);
    let judged = |w: &mut World| (group_of(w, id).is_none(), members.map(|n| w.node(n).scores));
    assert_eq!(judged(&mut w), (false, [0; 3]));
    w.dispatch(16).unwrap();
    assert_eq!(judged(&mut w), (false, [0; 3]), "nor by whoever makes them");
    w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
    assert_eq!(judged(&mut w), (true, [1; 3]));
    check_money(&mut w);
}

/// Two nodes are kept for a task for three, one of them is called to a validation group meanwhile, and the draw fails. The called node does
/// not slip away before it has begun there.
#[test]
fn who_is_called_and_let_go_leaves_only_after_it_has_validated() {
    let mut seen = 0;
    for seed in 0..40 {
        let mut w = sampling(4, 10_000);
        w.pass(seed, 0);
        let (id, first) = committed(&mut w, ANSWER, 1);
        // Free once its validators are drawn, it would be the third.
        w.send(who(first.into()), 0, pauseCall {}).unwrap();
        let busy = [0; 2].map(|_| started(&mut w, TOKEN, spec(0, &[])));
        let three = created(&mut w, 3 * FEE, alike(0));
        assert!(w.ticket(three) > 0, "one is idle");
        w.set("drawDelay", 8);
        w.send(who(DRIVER), 0, validateCall { id, node: first }).unwrap();
        busy.into_iter().for_each(|task| submit(&mut w, task));
        let kept = busy.map(|(_, node)| node);
        assert_eq!(kept.map(|n| w.node(n).parked), [3; 2]);
        w.pass(3, 1);
        w.dispatch(16).unwrap();
        let (place, members) = group_of(&mut w, id).expect("formed");
        let Some(&called) = kept.iter().find(|n| members.contains(n)) else { continue };
        if kept.iter().all(|n| members.contains(n)) {
            continue;
        }
        assert_eq!((w.node(called).calledTo, w.node(called).parked), (place, 3));
        // Nobody is idle any more. Its own call makes the draw, which lets both go.
        w.pass(8, 1);
        w.send(who(called.into()), 0, quitCall {}).unwrap();
        assert_ne!(w.node(called).parked, 3, "let go");
        assert_eq!(w.node(called).status, 4, "seed {seed}: it is waited for");
        // The same call brings one of them back, the called one or the other.
        seen += u32::from(task_of(&mut w, called) == 0);
        w.pass(1, 1);
        w.dispatch(16).unwrap();
        w.dispatch(16).unwrap();
        assert_eq!((task_of(&mut w, called), w.node(called).calledTo), (id, 0), "seed {seed}");
        check_money(&mut w);
    }
    assert!(seen > 3, "{seen} were not back at work when they quit");
}

/// A group waits for its called nodes: each begins there when its own task ends, however many commitments of its own are open.
#[test]
fn no_called_node_is_held() {
    let mut w = sampling(9, 10_000);
    w.set("openMost", 1);
    let (own, called) = committed(&mut w, ANSWER, 1);
    let (id, place) = loop {
        let (id, first) = committed(&mut w, ANSWER, 1);
        let (place, members) = formed(&mut w, id, first);
        if members.contains(&called) {
            break (id, place);
        }
        members[1..].iter().for_each(|&n| commit(&mut w, id, n, ANSWER, value(1)).unwrap());
        members.iter().for_each(|&n| reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap());
    };
    assert_eq!(w.node(called).calledTo, place);
    formed(&mut w, own, called);
    let view = w.node(called);
    assert_eq!((view.held, view.openCommitments, view.calledTo), (false, 1, 0));
    assert_eq!(task_of(&mut w, called), id);
}

/// Returned stake that has waited long enough stays where a slash can take it while a commitment is open, also when its node comes back and
/// leaves again.
#[test]
fn a_second_exit_releases_no_stake_that_is_locked() {
    let mut w = sampling(10, 10_000);
    let (id, place, [a, b, c]) = group(&mut w);
    commit(&mut w, id, b, ANSWER, value(2)).unwrap();
    commit(&mut w, id, c, ANSWER, value(1)).unwrap();
    w.send(who(b.into()), 0, quitCall {}).unwrap();
    w.pass(1, 86_401);
    assert_eq!(w.join(b.into(), "RTX 4090", 24, &[], 400).unwrap(), b);
    w.events();
    w.send(who(b.into()), 0, quitCall {}).unwrap();
    assert!(!w.events().iter().any(|e| matches!(e, E::StakeReleased(_))));
    assert_eq!((w.account(b.into()).unbonding, w.account(b.into()).credit), (800 * TOKEN, 0));
    w.pass(1, 86_401);
    refused!(w.send(who(b.into()), 0, withdrawCall { to: who(b.into()).into() }), StakeLocked(b, 1u8));
    for (n, answer) in [(a, 1), (b, 2), (c, 1)] {
        reveal(&mut w, id, place, n, ANSWER, value(answer)).unwrap();
    }
    assert_eq!(w.account(b.into()).unbonding, 800 * TOKEN - 20 * LEFT);
    check_money(&mut w);
}

/// A group waits for a called node until the node is thrown out of the network, or until its deadline. The others' time to reveal begins
/// there.
#[test]
fn reveals_begin_when_nobody_is_waited_for_any_more() {
    for (called, later) in [(false, 7), (false, 2_000), (true, 7)] {
        let mut w = sampling(12, 10_000);
        let (id, place, [a, b, c]) = group(&mut w);
        commit(&mut w, id, b, ANSWER, value(2)).unwrap();
        commit(&mut w, id, c, ANSWER, value(1)).unwrap();
        if called {
            loop {
                let task = started(&mut w, TOKEN, spec(0, &[]));
                if task.1 == b {
                    break;
                }
                submit(&mut w, task);
            }
        }
        let mem = w.mem.clone();
        let (other, second, members) = (0..100)
            .find_map(|seed| {
                w.mem = mem.clone();
                w.pass(seed, 0);
                let (other, first) = committed(&mut w, ANSWER, 1);
                let (second, members) = formed(&mut w, other, first);
                members[1..].contains(&b).then_some((other, second, members))
            })
            .expect("it is called");
        members[1..].iter().filter(|&&n| n != b).for_each(|&n| commit(&mut w, other, n, ANSWER, value(1)).unwrap());
        let deadline = w.ask(runningTaskCall { number: b }).deadline;
        w.pass(1, later);
        for (n, answer) in [(a, 1), (b, 2), (c, 1)] {
            reveal(&mut w, id, place, n, ANSWER, value(answer)).unwrap();
        }
        assert_eq!(w.node(b).status, 0);
        let expected = if called { w.mem.now } else { w.mem.now.min(deadline) };
        assert_eq!(expected == deadline, later > 1_000);
        assert_eq!(w.ask(groupCall { place: second }).opens, expected, "called {called}, {later} s later");
    }
}
