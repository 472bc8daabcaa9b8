//! What docs/security.md says of validation and no other test shows.

use alloy_primitives::B256;
use muster_model::refused;
use muster_model::world::*;
use muster_protocol::abi::IMuster::*;
use muster_protocol::IMuster;

const CARD: u32 = 1 << 16 | 24;
const CREATOR: u64 = 50;

/// Equal nodes of a listed GPU group, every answer of theirs sampled.
fn network(nodes: u64) -> World {
    let mut w = world(nodes, 1);
    w.send(OWNER, 0, listGpuGroupCall { group: CARD, listed: true }).unwrap();
    w.set("sampleBps", 10_000);
    w
}

fn wanted(redundancy: u8) -> IMuster::TaskSpec {
    IMuster::TaskSpec { gpu: CARD, redundancy, ..spec(0, &[]) }
}

fn salt(node: u32) -> B256 {
    B256::with_last_byte(node as u8)
}

fn commit(w: &mut World, id: u64, node: u32, answer: u8) {
    let commitment = commitment(id, node, 0, B256::repeat_byte(answer), salt(node));
    w.send(who(node.into()), 0, commitCall { id, commitment }).unwrap();
}

/// Draws what is due until a task has its group.
fn grouped(w: &mut World, id: u64) -> IMuster::GroupView {
    for _ in 0..50 {
        w.pass(3, 1);
        w.dispatch(16).unwrap();
        if let Some(group) = w.ask(groupsCall { from: 1, count: 256 })._1.into_iter().find(|g| g.id == id) {
            return group;
        }
    }
    panic!("no group")
}

/// The node that runs a task.
fn runner(w: &mut World, id: u64) -> u32 {
    w.pass(1, 0);
    w.dispatch(16).unwrap();
    (1..=w.ask(overviewCall {}).nodesIssued).find(|&n| w.ask(runningTaskCall { number: n }).id == id).expect("drawn")
}

/// Reveals all answers of a group; gives what was burnt.
fn judged(w: &mut World, group: &IMuster::GroupView, answers: [u8; 3]) -> u128 {
    let before = w.ask(overviewCall {}).burnt;
    for (member, answer) in group.members.iter().zip(answers) {
        let (value, salt) = (B256::repeat_byte(answer), salt(member.node));
        let call = revealCall { id: group.id, group: group.group, node: member.node, kind: 0, value, salt };
        w.send(who(60), 0, call).unwrap();
    }
    w.ask(overviewCall {}).burnt - before
}

/// Who joined before has no more than the least stake there was then.
#[test]
fn a_raised_least_stake_raises_no_bound_of_fees() {
    let mut w = network(9);
    let most = 400 * TOKEN / 60;
    w.set("minStake", 800 * 1_000);
    refused!(w.create(CREATOR, most + 1, wanted(1)), FeeTooHigh(most + 1, most));
    // Lowered, it counts at once, and for good: nodes may have joined with it.
    for least in [200, 800] {
        w.set("minStake", least * 1_000);
        refused!(w.create(CREATOR, most, wanted(1)), FeeTooHigh(most, most / 2));
    }
}

/// With the same wrong answer: a slash while the group is listed, none if it was unlisted before.
#[test]
fn what_was_not_committed_or_formed_when_a_card_was_unlisted_slashes_nobody() {
    for (redundancy, unlisted) in [(1, false), (1, true), (2, false), (2, true)] {
        let mut w = network(10);
        let id = w.create(CREATOR, 3 * TOKEN, wanted(redundancy)).unwrap();
        let first = if redundancy == 1 { Some(runner(&mut w, id)) } else { None };
        if unlisted {
            w.send(OWNER, 0, listGpuGroupCall { group: CARD, listed: false }).unwrap();
        }
        if let Some(node) = first {
            commit(&mut w, id, node, 1);
            w.pass(3, 1);
            w.send(who(60), 0, validateCall { id, node }).unwrap();
        }
        let group = grouped(&mut w, id);
        assert_eq!(group.scored, !unlisted);
        for (member, answer) in group.members.iter().zip([1, 1, 2]) {
            if member.stage == stage::RUNNING {
                commit(&mut w, id, member.node, answer);
            }
        }
        // The call of its validators has cost a sampled one its start fee.
        let fee = if redundancy == 1 { 3 * TOKEN / 50 * 49 } else { TOKEN };
        assert_eq!(judged(&mut w, &group, [1, 1, 2]), if unlisted { 0 } else { 20 * fee }, "{redundancy} {unlisted}");
    }
}

/// Who is called while busy has the group's task before its eyes, and its time counts from when its own task has ended.
#[test]
fn the_time_of_a_called_node_counts_from_its_own_start() {
    let mut w = network(3);
    let id = w.create(CREATOR, TOKEN, wanted(1)).unwrap();
    let first = runner(&mut w, id);
    let own = w.create(CREATOR, TOKEN, spec(0, &[])).unwrap();
    let busy = runner(&mut w, own);
    commit(&mut w, id, first, 1);
    w.pass(3, 1);
    w.send(who(60), 0, validateCall { id, node: first }).unwrap();
    let group = grouped(&mut w, id);
    let stage_of = |group: &IMuster::GroupView, n: u32| group.members.iter().find(|m| m.node == n).map(|m| m.stage);
    assert_eq!(stage_of(&group, busy), Some(stage::CALLED));
    w.pass(1, 50);
    w.send(who(busy.into()), 0, submitCall { id: own, resultDigest: B256::ZERO }).unwrap();
    w.pass(1, 2);
    commit(&mut w, id, busy, 1);
    let group = w.ask(groupCall { place: group.group });
    assert_eq!(group.members.iter().find(|m| m.node == busy).map(|m| m.elapsed), Some(2));
}
