//! Work for a node that becomes available while tasks for several nodes are queued (the earlier dispatch documents, "Select the Best
//! Task"). The node starts a task that it can do alone, or is kept for a draw of several, or waits for others.

use crate::abi::{emit, IMuster::*};
use crate::flow::network::Network;
use crate::flow::queueing::{dequeue, redraw};
use crate::flow::standing::{set_apart, Next};
use crate::flow::start::take_queued;
use crate::host::{offset, Host, Program};
use crate::inner::placeFreedCall;
use crate::store::layout::{entry, slot, LIMITS, WAITING};
use crate::store::node::{NodeHandle, Unplaced};
use crate::store::queue::Best;
use crate::store::sampler::{Among, Counts, Field};
use crate::store::{queue, registry, sampler};
use alloc::vec::Vec;
use alloy_sol_types::SolCall;
use muster_core::id::{GpuGroup, Grade, NodeId};
use muster_core::record::{Assignment, Limits, Node, Order, Reserved, Status, MEMBERS};

/// Nodes that a task for three takes beside one.
const OTHERS: u32 = MEMBERS as u32 - 1;
/// A node waits, or is reserved, in vain at most one part in so many of its time.
const PATIENCE: u64 = 10;
/// Seconds that a reservation in vain is assumed to have lasted.
const RESERVED_FOR: u64 = 60;

/// Finds queued work for an unplaced node whose record is written, while tasks are queued that take three nodes;
/// gives whether there was any, else nothing has changed.
pub(crate) fn place_freed<H: Host>(net: &mut Network<'_, H>, node: NodeId, next: Next) -> bool {
    if net.host.is(Program::Work) {
        find_work(net, node, next == Next::WorkOrWait)
    } else {
        let arguments = [node.0 as u64, (next == Next::WorkOrWait) as u64, 0];
        net.must_call(Program::Work, placeFreedCall::SELECTOR, arguments) >> 32 != 0
    }
}

/// Finds queued work for an unplaced node. The node begins the best task that it can do alone, unless one for several nodes is worth more.
/// That one goes to the ring of Pending tasks, to be drawn by a later hash, with the node among its candidates. Or the node waits for
/// others, if it `may_wait`. Returns whether there was anything; otherwise nothing has changed.
pub(crate) fn find_work<H: Host>(net: &mut Network<'_, H>, node: NodeId, may_wait: bool) -> bool {
    let handle = NodeHandle::load(net.host, node);
    let own = handle.node.group;
    let alike = registry::listed(net.host, own);
    let single = queue::best_single(net.host, own);
    let room = !net.ring.is_full();
    let worth = |best: &Best| room && best.above(single);
    let several = queue::best_replicated(net.host, own, alike, true, Some(own.vram()));
    let rated = queue::best_rated(net.host, own);
    if let Some(best) = queue::better(several, rated).filter(worth) {
        let others = others_of(net, &best);
        let together = best.queue.grade() == Grade::Alike as u8 && best.queue.group().is_any();
        // Nodes that must be of one GPU group wait for each other, and do not delay nodes of others.
        let scope = if together { own } else { best.queue.group() };
        let list = entry(net.host, WAITING, (scope.0 as u64) << 32 | best.queue.0 as u64);
        let listed: Reserved = net.host.get(list);
        let there = |handle: &NodeHandle| {
            let waits = handle.node.parked == Node::WAITS && handle.assignment(net.host).queue == best.queue;
            // One that has left since can have come back with another GPU.
            waits && (!together || handle.node.group == own)
        };
        let handles = listed.all().into_iter().filter(|other| other.0 > 0).map(|other| NodeHandle::load(net.host, other));
        let waiting: Vec<NodeHandle> = handles.filter(there).collect();
        let idle =
            |net: &Network<'_, H>, scope: GpuGroup, most| Field::new(net.host, Among::Idle, scope.into()).count(net.host, most);
        let short = others.saturating_sub(waiting.len() as u32);
        let hold = net.host.get::<Limits>(slot(LIMITS)).hold_time as u64;
        let assignment = handle.assignment(net.host);
        // A creator may keep a task queued that nobody can run. Such a task costs a node at most a tenth of its time, whether the node is
        // reserved for it and others are gone at the draw, or the node waits for it.
        let since = |moment: u32, lasted: u64| moment == 0 || net.now >= moment as u64 + (PATIENCE - 1) * lasted;
        let ready = since(assignment.vain, RESERVED_FOR);
        let rested = ready && since(assignment.until, hold);
        if short == 0 || ready && idle(net, scope, short) >= short {
            call_up(net, &best, waiting, handle);
            return true;
        }
        if may_wait && hold > 0 && rested {
            let nodes: Vec<NodeId> = waiting.iter().map(|handle| handle.id).chain([handle.id]).collect();
            net.host.put(list, &Reserved::of(&nodes));
            let until = net.now + hold;
            wait_for_others(net, &best, handle, assignment, until);
            return true;
        }
        let mates = Counts::load(net.host, Among::Idle, own).members() >= OTHERS;
        let vram = sampler::vram_of_idle(net.host, OTHERS).map(|vram| vram.min(own.vram()));
        let several = queue::best_replicated(net.host, own, alike, mates, vram);
        let there = |rated: &Best| {
            let others = others_of(net, rated);
            idle(net, rated.queue.group(), others) >= others
        };
        let rated = rated.filter(|rated| *rated != best && there(rated));
        if let Some(best) = queue::better(several, rated).filter(worth).filter(|_| ready) {
            call_up(net, &best, Vec::new(), handle);
            return true;
        }
    }
    single.is_some() && take_queued(net, node)
}

/// Nodes that the first task of a queue takes beside one.
fn others_of<H: Host>(net: &Network<'_, H>, best: &Best) -> u32 {
    if best.queue.grade() == Grade::Rated as u8 {
        first_of(net, best).nodes() - 1
    } else {
        OTHERS
    }
}

/// The first task of a queue.
fn first_of<H: Host>(net: &Network<'_, H>, best: &Best) -> Order {
    net.host.get(offset(queue::entry_slot(net.host, best.ticket(net.host)), 1))
}

/// Moves a queue's head to the ring of Pending tasks, these nodes reserved for it.
fn call_up<H: Host>(net: &mut Network<'_, H>, best: &Best, mut mates: Vec<NodeHandle>, handle: NodeHandle) {
    let ticket = best.ticket(net.host);
    let task = dequeue(net, ticket);
    redraw(net, &task);
    mates.push(handle);
    for handle in &mut mates {
        if handle.node.parked == Node::WAITS {
            net.suspended.take(net.host, handle.node.pos);
        }
        handle.node.parked = Node::RESERVED;
        handle.node.status = Status::Busy as u8;
        handle.put(net.host);
        let assignment = handle.assignment(net.host);
        handle.set_assignment(net.host, &Assignment { task: task.order.id, ..assignment });
        emit::<NodeWaits>(net.host, (handle.id, task.order.id), (0u64,));
    }
    let nodes: Vec<NodeId> = mates.iter().map(|handle| handle.id).collect();
    net.ring.reserve(net.host, &Reserved::of(&nodes));
}

/// Lets a node wait with a queue's head until `until`.
fn wait_for_others<H: Host>(net: &mut Network<'_, H>, best: &Best, handle: NodeHandle, assignment: Assignment, until: u64) {
    let id = first_of(net, best).id;
    handle.set_assignment(net.host, &Assignment { queue: best.queue, until: until as u32, ..assignment });
    set_apart(net, Unplaced::of(handle), until, Node::WAITS);
    emit::<NodeWaits>(net.host, (handle.id, id), (until,));
}
