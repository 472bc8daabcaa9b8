//! The next place of an unplaced node.

use crate::abi::{emit, IMuster::*};
use crate::flow::freed::place_freed;
use crate::flow::network::{Network, Served};
use crate::flow::reliability::reliability;
use crate::flow::standing::{depart, park, Next};
use crate::flow::start::take_queued;
use crate::host::{Host, Program};
use crate::inner::beginAssignmentCall;
use crate::policy::group::start_member;
use crate::store::groups::Group;
use crate::store::node::{NodeHandle, Unplaced};
use crate::store::sampler::Among;
use crate::store::{queue, sampler};
use alloy_sol_types::SolCall;
use muster_core::id::{ModelId, NodeId};
use muster_core::qos;
use muster_core::record::{Limits, Membership, Node, Stage, Status};

/// Gives an unplaced node its next place: a duty that was asked of it while it was busy, else a queued task, else the sampler, or
/// exclusion. Writes its record. Its `pos` says whether the node holds the model of a task that has ended just now ([`Node::pos`]).
#[inline(never)]
pub(crate) fn release<H: Host>(net: &mut Network<'_, H>, mut handle: Unplaced, next: Next) {
    let now = net.now;
    if handle.node.called() {
        // A node that begins in a validation group can be called to another, but not while one is being drawn.
        if net.served == Served::Full || net.call_due() {
            return park(net, handle, now);
        }
        // Before all else: neither the queue nor a well-timed exit decides who validates.
        handle.put(net.host);
        return begin_assignment(net, handle.id);
    }
    let rest = match next {
        Next::Rest(until) if until > now => Some(until),
        _ => None,
    };
    match (Status::new(handle.node.status), rest) {
        // A leaving node can change the largest stake, and with it the weights of all others.
        (Status::PendingKickout | Status::PendingQuit, _) if net.served == Served::Full || net.draws_due() => {
            return park(net, handle, now);
        }
        (Status::PendingKickout, _) => return depart(net, handle, true),
        (Status::PendingQuit, _) => return depart(net, handle, false),
        // It pauses when it has rested: else it could resume at once.
        (Status::PendingPause, Some(until)) => return park(net, handle, until),
        (Status::PendingPause, None) => {
            handle.node.status = Status::Paused as u8;
            handle.put(net.host);
            emit::<NodePaused>(net.host, (handle.id,), ());
            return;
        }
        _ => handle.node.status = Status::Available as u8,
    }
    let h = reliability(net, &handle.node);
    if !qos::eligible(h, net.rules.exclusion_ppm) {
        let due = net.now + qos::exclusion_seconds(h, net.rules.exclusion_ppm, net.rules.tau);
        return park(net, handle, due);
    }
    if let Some(until) = rest {
        return park(net, handle, until);
    }
    if net.draws_due() || net.queued > 0 && net.is_spent() {
        return park(net, handle, now);
    }
    if !find_queued(net, &handle, next) {
        // The model that it held for the ended task is known without a look; the next draw saves the look, too.
        let holds = if handle.node.pos == 1 { handle.order(net.host).model } else { ModelId(0) };
        let (group, class) = (handle.node.group, handle.node.class(net.rules.base));
        handle.node.pos = sampler::insert_holder(net.host, Among::Idle, group, class, (handle.id, holds));
        handle.put(net.host);
    }
}

/// Gives an unplaced node to a queued task, if there is one for it; else nothing has changed.
pub(crate) fn find_queued<H: Host>(net: &mut Network<'_, H>, handle: &Unplaced, next: Next) -> bool {
    if matches!(next, Next::Rest(_)) || net.queued == 0 {
        return false;
    }
    handle.put(net.host);
    if queue::graded(net.host) {
        place_freed(net, handle.id, next)
    } else {
        take_queued(net, handle.id)
    }
}

/// Re-admits up to `most` excluded nodes whose time has come.
pub(crate) fn readmit<H: Host>(net: &mut Network<'_, H>, most: u32) {
    for _ in 0..most {
        if !net.suspended.ready(net.now) || net.draws_due() {
            return;
        }
        let handle = NodeHandle::load(net.host, net.suspended.first(net.host));
        return_to_work(net, handle);
    }
}

pub(crate) fn return_to_work<H: Host>(net: &mut Network<'_, H>, mut handle: NodeHandle) {
    net.suspended.take(net.host, handle.node.pos);
    // A node that waited in vain takes any work.
    let next = if handle.node.parked == Node::WAITS { Next::Work } else { Next::WorkOrWait };
    (handle.node.parked, handle.node.pos) = (0, 0);
    net.readmitted = handle.id;
    emit::<NodeReadmitted>(net.host, (handle.id,), ());
    release(net, Unplaced::of(handle), next);
}

/// Lets an unplaced node, whose record is written, begin in the validation group that it was called to.
fn begin_assignment<H: Host>(net: &mut Network<'_, H>, node: NodeId) {
    if net.host.is(Program::Draws) {
        begin_membership(net, node);
    } else {
        net.must_call(Program::Draws, beginAssignmentCall::SELECTOR, [node.0 as u64, 0, 0]);
    }
}

/// Lets an unplaced node begin in the group that it was called to; see [`release`].
pub(crate) fn begin_membership<H: Host>(net: &mut Network<'_, H>, node: NodeId) {
    let mut handle = Unplaced::of(NodeHandle::load(net.host, node));
    let place = handle.assignment(net.host).group;
    handle.node.duties &= !Node::CALLED;
    // A group is not settled before all called nodes have begun or left.
    let Some(mut group) = Group::at(net.host, place) else { return release(net, handle, Next::WorkOrWait) };
    let Some(i) = group.find(node) else { return release(net, handle, Next::WorkOrWait) };
    let (task, limits) = (group.task(net.host), net.limits());
    let deadline = start_member(net, handle, &task, place, &limits);
    group.members[i] = Membership { node, stage: Stage::Running, moment: deadline as u32, elapsed: 0 };
    group.put(net.host, i);
}

/// Counts an open commitment of a node whose task moved on without it, and lets it work on unless it has too many. A node already called to
/// a group is never held, so it may exceed the limit by one.
///
/// Groups in which nobody can be slashed ([`muster_core::record::Order::liable`]) are not counted, since no stake answers for them.
/// Otherwise a member that does not reveal would keep all others from work until the window is over, at the price of the fee.
pub(crate) fn free_for_work<H: Host>(net: &mut Network<'_, H>, mut handle: NodeHandle, liable: bool, limits: &Limits) {
    handle.node.duties += liable as u8;
    if handle.node.open() < limits.open_most || handle.node.called() {
        return release(net, Unplaced::of(handle), Next::WorkOrWait);
    }
    handle.node.duties |= Node::HELD;
    handle.put(net.host);
}
