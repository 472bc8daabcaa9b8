//! Where a node stands: among the idle, or set apart; and how it leaves the network.

use crate::abi::{emit, IMuster::*};
use crate::flow::network::Network;
use crate::host::{Host, Program};
use crate::inner::departCall;
use crate::store::node::{Seat, Unplaced};
use crate::store::sampler::{Among, Neighbours};
use crate::store::{accounts, sampler, suspended};
use alloc::vec::Vec;
use alloy_sol_types::SolCall;
use muster_core::id::TaskId;
use muster_core::record::{Duty, Node, Order, Reserved, Status};
use muster_core::weight;

/// Seconds from a task's start that a node which could not run it rests, at most: its estimate, if that is less.
pub const REST_MOST: u64 = 60;

/// Until when a node rests that could not run a task.
pub(crate) fn rests_until(order: &Order) -> u64 {
    order.began() + (order.estimate as u64).min(REST_MOST)
}

/// What a node without a task may do next.
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
pub(crate) fn leave_sampler<H: Host>(net: &mut Network<'_, H>, seat: &Seat) -> u32 {
    let (moved, left) = sampler::remove(net.host, Among::Idle, seat.node.group, seat.node.class(net.rules.base), seat.node.pos);
    if let Some(moved) = moved {
        let mut other = Seat::load(net.host, moved);
        other.node.pos = seat.node.pos;
        other.put(net.host);
    }
    left
}

/// Takes an available node out of the sampler, or out of the parking pool.
pub(crate) fn withdraw_from_work<H: Host>(net: &mut Network<'_, H>, seat: &mut Seat) {
    if seat.node.parked == 0 {
        leave_sampler(net, seat);
    } else {
        net.suspended.take(net.host, seat.node.pos);
        seat.node.parked = 0;
    }
}

/// Puts a node into the parking pool until `due`, for this reason.
pub(crate) fn set_apart<H: Host>(net: &mut Network<'_, H>, mut seat: Unplaced, due: u64, why: u8) {
    seat.node.pos = net.suspended.put(net.host, seat.id, due);
    seat.node.parked = why;
    seat.put(net.host);
}

/// Sets a node aside until `due`: one that H excludes, or (until now) one held back by due draws.
#[inline(never)]
pub(crate) fn park<H: Host>(net: &mut Network<'_, H>, seat: Unplaced, due: u64) {
    let id = seat.id;
    set_apart(net, seat, due, Node::SET_BACK);
    emit::<NodeExcluded>(net.host, (id,), (due,));
}

/// Whether a node rests since it reported an error.
pub(crate) fn rests<H: Host>(net: &Network<'_, H>, seat: &Seat) -> bool {
    if seat.node.parked != Node::SET_BACK {
        return false;
    }
    let due = suspended::places(net.host).1(seat.node.pos).map_or(0, |(_, due)| due);
    due > net.now && due == rests_until(&seat.order(net.host))
}

/// Lets nodes go that were reserved for a task, which began without them or (`in_vain`) did not begin. They return one by one with later calls, like all who are held back: what each finds
/// to do then is not paid by who made the draw.
#[inline(never)]
pub(crate) fn let_go<H: Host>(net: &mut Network<'_, H>, reserved: Vec<Seat>, in_vain: bool) {
    let now = net.now;
    for mut seat in reserved {
        if in_vain {
            let duty = seat.duty(net.host);
            seat.set_duty(net.host, &Duty { vain: net.now as u32, ..duty });
        }
        // One that is called to a group must not leave before it begins there.
        if seat.node.status == Status::Busy as u8 && !seat.node.called() {
            seat.node.status = Status::Available as u8;
        }
        park(net, Unplaced::of(seat), now);
    }
}

/// Of these nodes those that are reserved for a task still.
pub(crate) fn reserved_for<H: Host>(net: &Network<'_, H>, id: TaskId, reserved: &Reserved) -> Vec<Seat> {
    let seats = reserved.all().into_iter().filter(|node| node.0 > 0).map(|node| Seat::load(net.host, node));
    seats.filter(|seat| seat.node.parked == Node::RESERVED && seat.duty(net.host).task == id).collect()
}

/// Those who stand beside an idle node, and itself.
pub(crate) fn neighbours<H: Host>(net: &Network<'_, H>, seat: &Seat) -> Neighbours {
    let place = seat.node.pos;
    Neighbours::load(net.host, seat.node.group, seat.node.class(net.rules.base), place, place + 1)
}

/// Changes a joined node's stake, and with it where it stands.
#[inline(never)]
pub(crate) fn restake<H: Host>(net: &mut Network<'_, H>, seat: &mut Seat, stake: u64) {
    let base = net.rules.base;
    let (from, to) = (seat.node.class(base), weight::class_of(stake, base));
    if from != to && seat.node.idle() {
        leave_sampler(net, seat);
        seat.node.pos = sampler::insert(net.host, Among::Idle, seat.node.group, to, seat.id);
    }
    seat.node.stake = stake;
    net.roster.restake(net.host, seat, from, to, base);
}

/// Takes an unplaced node out of the network, or has the program do it that can.
pub(crate) fn depart<H: Host>(net: &mut Network<'_, H>, seat: Unplaced, kicked: bool) {
    if net.host.is(Program::Nodes) {
        return leave_network(net, seat, kicked);
    }
    seat.put(net.host);
    net.must_call(Program::Nodes, departCall::SELECTOR, [seat.id.0 as u64, kicked as u64, 0]);
}

/// Takes an unplaced node out of the network; its stake starts to unbond.
#[inline(never)]
pub(crate) fn leave_network<H: Host>(net: &mut Network<'_, H>, mut seat: Unplaced, kicked: bool) {
    let operator = net.roster.leave(net.host, &mut seat, net.rules.base).account;
    let release = net.now + net.rules.unbonding as u64;
    let stake = seat.node.stake;
    accounts::unbond(net.host, operator, stake, release, seat.node.open() > 0, kicked);
    seat.node.status = Status::Quit as u8;
    seat.node.stake = 0;
    seat.put(net.host);
    if kicked {
        emit::<NodeKickedOut>(net.host, (seat.id, operator), ());
    }
    let stake = net.wei(stake);
    emit::<NodeQuit>(net.host, (seat.id, operator), (stake, release));
}
