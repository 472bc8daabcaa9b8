//! Common parts of the tests of tasks whose answers are checked. They are a network of equal nodes that answer alike, tasks for three or
//! for nodes chosen by their ratings, the commitments and reveals of nodes, and the books.

use crate::properties;
use crate::world::*;
use alloy_primitives::{keccak256, B256};
use alloy_sol_types::SolValue;
use muster_core::wad::WAD;
use muster_protocol::flow::standing::REST_MOST;
use muster_protocol::IMuster::{self, IMusterEvents as E, *};
use muster_protocol::Result;

/// The GPU group of the first name of 24 GiB, that of [`world`].
pub const CARD: u32 = 1 << 16 | 24;
/// The creator of all tasks.
pub const CREATOR: u64 = 50;
/// A passer-by.
pub const DRIVER: u64 = 60;
/// The kind of a commitment to an answer.
pub const ANSWER: u8 = 0;
/// The kind of a commitment to an error.
pub const ERROR: u8 = 1;
/// The profile of every application that has set none.
pub const USUAL: Profile = Profile {
    algorithm: 1,
    least: 3,
    most: 7,
    reschedules: 2,
    targeting: 0,
    target: WAD / 100 * 49,
    alpha: WAD / 2,
    period: 300,
};

/// Equal nodes of one listed GPU group.
pub fn network(nodes: u64) -> World {
    let mut w = world(nodes, 1);
    w.send(OWNER, 0, listGpuGroupCall { group: CARD, listed: true }).unwrap();
    w.events();
    w
}

/// A GPT task for three nodes.
pub fn alike(vram: u16) -> IMuster::TaskSpec {
    IMuster::TaskSpec { redundancy: 2, ..spec(vram, &[]) }
}

/// One image by three nodes.
pub fn image(vram: u16) -> IMuster::TaskSpec {
    IMuster::TaskSpec { kind: 0, ..alike(vram) }
}

/// A GPT task for nodes chosen by their ratings.
pub fn rated() -> IMuster::TaskSpec {
    IMuster::TaskSpec { redundancy: 3, gpu: CARD, ..spec(0, &[]) }
}

/// Has an application say how the groups of such tasks are chosen.
pub fn set_profile(w: &mut World, application: u64, profile: Profile) {
    w.send(who(application), 0, setProfileCall { profile }).unwrap();
}

/// An answer by its number.
pub fn value(answer: u8) -> B256 {
    B256::repeat_byte(answer)
}

/// A node's salt for a task.
pub fn salt(id: u64, node: u32) -> B256 {
    keccak256((id, node).abi_encode())
}

/// Has a node commit.
pub fn commit(w: &mut World, id: u64, node: u32, kind: u8, value: B256) -> Result<()> {
    w.send(who(node.into()), 0, commitCall { id, commitment: commitment(id, node, kind, value, salt(id, node)) }).map(drop)
}

/// Reveals a node's commitment: in the group at a place, or alone (0).
pub fn reveal(w: &mut World, id: u64, group: u32, node: u32, kind: u8, value: B256) -> Result<()> {
    w.send(who(DRIVER), 0, revealCall { id, group, node, kind, value, salt: salt(id, node) }).map(drop)
}

/// Has every member of a group commit to its answer, and reveal it.
pub fn play(w: &mut World, id: u64, place: u32, members: &[u32], says: impl Fn(u32) -> B256) {
    for &n in members {
        commit(w, id, n, ANSWER, says(n)).unwrap();
    }
    for &n in members {
        reveal(w, id, place, n, ANSWER, says(n)).unwrap();
    }
}

/// Creates a task and makes the Pending draws, once.
pub fn created(w: &mut World, fee: u128, spec: IMuster::TaskSpec) -> u64 {
    created_by(w, CREATOR, fee, spec)
}

/// The same, the task being somebody else's.
pub fn created_by(w: &mut World, creator: u64, fee: u128, spec: IMuster::TaskSpec) -> u64 {
    let id = w.create(creator, fee, spec).unwrap();
    w.pass(1, 0);
    w.dispatch(16).unwrap();
    id
}

/// A task's group, if it has one: place and members.
pub fn group_of(w: &mut World, id: u64) -> Option<(u32, Vec<u32>)> {
    let all = w.ask(groupsCall { from: 1, count: 256 })._1;
    let there = |members: &[MemberView]| members.iter().map(|m| m.node).filter(|&n| n > 0).collect();
    all.iter().find(|g| g.id == id).map(|g| (g.group, there(&g.members)))
}

/// The task that a node runs; 0 for none.
pub fn task_of(w: &mut World, node: u32) -> u64 {
    w.ask(runningTaskCall { number: node }).id
}

/// The nodes that wait in this way, as in `IMuster.NodeView`.
pub fn nodes_with(w: &mut World, parked: u8) -> Vec<u32> {
    (1..=w.ask(overviewCall {}).nodesIssued).filter(|&n| w.node(n).parked == parked).collect()
}

/// Busies so many idle nodes with a single task of its own each; gives tasks and nodes.
pub fn busy(w: &mut World, nodes: u64) -> Vec<(u64, u32)> {
    let tasks: Vec<u64> = (0..nodes).map(|_| created(w, TOKEN, spec(0, &[]))).collect();
    let issued = w.ask(overviewCall {}).nodesIssued;
    tasks.into_iter().map(|id| (id, (1..=issued).find(|&n| task_of(w, n) == id).expect("started"))).collect()
}

/// Ends a single task by an answer.
pub fn submit(w: &mut World, (id, node): (u64, u32)) {
    w.send(who(node.into()), 0, submitCall { id, resultDigest: value(1) }).unwrap();
}

/// Ends a single task by an error, when its node need not rest any more: it is idle, and has not looked for queued work.
pub fn idled(w: &mut World, (id, node): (u64, u32)) {
    let view = w.ask(runningTaskCall { number: node });
    let began = view.deadline - u64::from(view.timeLimit);
    let rest = u64::from(view.estimate).min(REST_MOST);
    w.pass(0, (began + rest).saturating_sub(w.mem.now));
    w.send(who(node.into()), 0, reportErrorCall { id, code: 1 }).unwrap();
}

/// Asserts that everything that came in and did not go out belongs to somebody, or to something.
pub fn check_money(w: &mut World) {
    let came = w.paid_in - w.mem.paid;
    w.view(|net| properties::money(net, (0..200).map(who), properties::fees_held(net), came)).unwrap();
}

/// The members of the one group that was judged, each with its verdict and its pay, and its `GroupSettled`. Checks the books.
pub fn judgement(w: &mut World) -> (Vec<(u32, u8, u128)>, GroupSettled) {
    check_money(w);
    let (mut members, mut settled) = (Vec::new(), None);
    for e in w.events() {
        match e {
            E::MemberJudged(m) => members.push((m.node, m.verdict, m.paid)),
            E::GroupSettled(g) => assert!(settled.replace(g).is_none()),
            _ => {}
        }
    }
    (members, settled.expect("settled"))
}
