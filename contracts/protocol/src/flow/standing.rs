//! Where a node stands: among the idle, or set apart; and how it leaves the network.

use crate::abi::{emit, IMuster::*};
use crate::flow::network::Network;
use crate::host::{Host, Program};
use crate::inner::departCall;
use crate::store::node::{NodeHandle, Unplaced};
use crate::store::sampler::{Among, Neighbours};
use crate::store::{accounts, sampler, suspended};
use alloc::vec::Vec;
use alloy_sol_types::SolCall;
use muster_core::id::TaskId;
use muster_core::record::{Assignment, Node, Order, Reserved, Status};
use muster_core::weight;

/// Seconds from a task's start that a node which could not run it rests, at most: its estimate, if that is less.
pub const REST_MOST: u64 = 60;

/// Until when a node rests that could not run a task.
pub(crate) fn rests_until(order: &Order) -> u64 {
    order.began() + (order.estimate as u64).min(REST_MOST)
}

/// The next step that a node without a task may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Nothing until this time, in seconds.
    Rest(u64),
    /// A queued task.
    Work,
    /// A queued task, or wait for others with one that takes three nodes.
    WorkOrWait,
}

/// Takes an idle node out of the sampler; gives how many are left in its list.
#[inline(never)]
pub(crate) fn leave_sampler<H: Host>(net: &mut Network<'_, H>, handle: &NodeHandle) -> u32 {
    let (moved, left) =
        sampler::remove(net.host, Among::Idle, handle.node.group, handle.node.class(net.rules.base), handle.node.pos);
    if let Some(moved) = moved {
        let mut other = NodeHandle::load(net.host, moved);
        other.node.pos = handle.node.pos;
        other.put(net.host);
    }
    left
}

/// Takes an available node out of the sampler, or out of the parking pool.
pub(crate) fn withdraw_from_work<H: Host>(net: &mut Network<'_, H>, handle: &mut NodeHandle) {
    if handle.node.parked == 0 {
        leave_sampler(net, handle);
    } else {
        net.suspended.take(net.host, handle.node.pos);
        handle.node.parked = 0;
    }
}

/// Puts a node into the parking pool until `due`, for this reason.
pub(crate) fn set_apart<H: Host>(net: &mut Network<'_, H>, mut handle: Unplaced, due: u64, why: u8) {
    handle.node.pos = net.suspended.put(net.host, handle.id, due);
    handle.node.parked = why;
    handle.put(net.host);
}

/// Sets a node aside until `due`: one that H excludes, or (until now) one held back by due draws.
#[inline(never)]
pub(crate) fn park<H: Host>(net: &mut Network<'_, H>, handle: Unplaced, due: u64) {
    let id = handle.id;
    set_apart(net, handle, due, Node::SET_BACK);
    emit::<NodeExcluded>(net.host, (id,), (due,));
}

/// Whether a node rests since it reported an error.
pub(crate) fn rests<H: Host>(net: &Network<'_, H>, handle: &NodeHandle) -> bool {
    if handle.node.parked != Node::SET_BACK {
        return false;
    }
    let due = suspended::places(net.host).1(handle.node.pos).map_or(0, |(_, due)| due);
    due > net.now && due == rests_until(&handle.order(net.host))
}

/// Lets nodes go that were reserved for a task, which began without them or (`in_vain`) did not begin. They return one by one with later
/// calls, like all that are held back, so the caller that made the draw does not pay for the work that each then finds.
#[inline(never)]
pub(crate) fn let_go<H: Host>(net: &mut Network<'_, H>, reserved: Vec<NodeHandle>, in_vain: bool) {
    let now = net.now;
    for mut handle in reserved {
        if in_vain {
            let assignment = handle.assignment(net.host);
            handle.set_assignment(net.host, &Assignment { vain: net.now as u32, ..assignment });
        }
        // One that is called to a group must not leave before it begins there.
        if handle.node.status == Status::Busy as u8 && !handle.node.called() {
            handle.node.status = Status::Available as u8;
        }
        park(net, Unplaced::of(handle), now);
    }
}

/// Of these nodes those that are reserved for a task still.
pub(crate) fn reserved_for<H: Host>(net: &Network<'_, H>, id: TaskId, reserved: &Reserved) -> Vec<NodeHandle> {
    let handles = reserved.all().into_iter().filter(|node| node.0 > 0).map(|node| NodeHandle::load(net.host, node));
    handles.filter(|handle| handle.node.parked == Node::RESERVED && handle.assignment(net.host).task == id).collect()
}

/// The neighbours of an idle node in its word of the list, and itself.
pub(crate) fn neighbours<H: Host>(net: &Network<'_, H>, handle: &NodeHandle) -> Neighbours {
    let place = handle.node.pos;
    Neighbours::load(net.host, handle.node.group, handle.node.class(net.rules.base), place, place + 1)
}

/// Changes a joined node's stake, and with it where it stands.
#[inline(never)]
pub(crate) fn restake<H: Host>(net: &mut Network<'_, H>, handle: &mut NodeHandle, stake: u64) {
    let base = net.rules.base;
    let (from, to) = (handle.node.class(base), weight::class_of(stake, base));
    if from != to && handle.node.idle() {
        leave_sampler(net, handle);
        handle.node.pos = sampler::insert(net.host, Among::Idle, handle.node.group, to, handle.id);
    }
    handle.node.stake = stake;
    net.node_store.restake(net.host, handle, from, to, base);
}

/// The stake that a slashed node must have left to stay, in stake units: 15/16 of the least one, rounded up. If small slashes took nodes
/// out, anybody could have honest ones leave for dust.
pub(crate) fn retained(least: u64) -> u64 {
    least - least / 16
}

/// Takes an unplaced node out of the network, or has the program do it that can.
pub(crate) fn depart<H: Host>(net: &mut Network<'_, H>, handle: Unplaced, kicked: bool) {
    if net.host.is(Program::Nodes) {
        return leave_network(net, handle, kicked);
    }
    handle.put(net.host);
    net.must_call(Program::Nodes, departCall::SELECTOR, [handle.id.0 as u64, kicked as u64, 0]);
}

/// Takes an unplaced node out of the network; its stake starts to unbond.
#[inline(never)]
pub(crate) fn leave_network<H: Host>(net: &mut Network<'_, H>, mut handle: Unplaced, kicked: bool) {
    let operator = net.node_store.leave(net.host, &mut handle, net.rules.base).account;
    let release = net.now + net.rules.unbonding as u64;
    let stake = handle.node.stake;
    accounts::unbond(net.host, operator, stake, release, handle.node.open() > 0, kicked);
    handle.node.status = Status::Quit as u8;
    handle.node.stake = 0;
    handle.put(net.host);
    if kicked {
        emit::<NodeKickedOut>(net.host, (handle.id, operator), ());
    }
    let stake = net.wei(stake);
    emit::<NodeQuit>(net.host, (handle.id, operator), (stake, release));
}
