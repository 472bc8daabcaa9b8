//! Groups of nodes that run one task at once: forming one of the drawn nodes, and the start of its members. From their commitments on, they
//! can work on. Each member's duties are in its node's record: [`muster_core::record::Node::duties`].

use crate::abi::{emit, IMuster::*};
use crate::flow::draw::Members;
use crate::flow::network::Network;
use crate::flow::queueing::{queue_first, redraw};
use crate::flow::reliability::may_work;
use crate::flow::standing::{let_go, reserved_for, withdraw_from_work};
use crate::host::Host;
use crate::store::groups::Group;
use crate::store::node::{NodeHandle, Unplaced};
use crate::store::registry;
use crate::store::registry::Held;
use crate::store::sampler::{Among, Field};
use crate::store::task::Task;
use alloc::vec::Vec;
use muster_core::id::{GpuGroup, Grade, NodeId};
use muster_core::record::{Assignment, Limits, Membership, Node, Order, Reserved, Stage, Status, MEMBERS};
use muster_core::word::Word;

/// Whether the answers of nodes of a group can be compared: as images, or bit by bit where the group is listed still.
pub(crate) fn comparable<H: Host>(net: &Network<'_, H>, order: &Order, group: GpuGroup) -> bool {
    order.images() > 0 || registry::listed(net.host, group)
}

/// Whether the nodes drawn for a task are scored, of which some may be those `beside` that were reserved for it.
pub(crate) fn scored_drawn<H: Host>(net: &Network<'_, H>, order: &Order, nodes: &[NodeId], beside: &[NodeHandle]) -> bool {
    let group = match (order.images(), nodes.first()) {
        (0, Some(&first)) => NodeHandle::load(net.host, first).node.group,
        _ => order.group,
    };
    let beside = beside.iter().filter(|handle| order.images() > 0 || handle.node.group == group).count() as u32;
    // Not the joined ones: nodes can choose when to be free, and so could be there when few others are.
    let enough = net.limits().score_pool as u32;
    let there = || Field::new(net.host, Among::Idle, group.into()).count(net.host, enough) + beside;
    comparable(net, order, group) && there() >= enough
}

/// Whether as many nodes have joined as a task takes that it can go to; paused ones may not count.
pub(crate) fn so_many_can_run<H: Host>(net: &Network<'_, H>, order: &Order) -> bool {
    let (queue, nodes) = (order.queue(), order.nodes());
    let group = queue.group();
    if queue.grade() == Grade::Alike as u8 && group.is_any() {
        return registry::size_of_trios(net.host, group.vram()).is_some();
    }
    Field::new(net.host, Among::Active, group.into()).count(net.host, nodes) >= nodes
}

/// Of the nodes reserved for a task those that can be given it.
pub(crate) fn reserved_fit<H: Host>(net: &Network<'_, H>, order: &Order, reserved: &Reserved) -> Vec<NodeHandle> {
    let mut fit = reserved_for(net, order.id, reserved);
    fit.retain(|handle| may_work(net, handle));
    fit
}

/// Applies the outcome of the draw to the first Pending task, at its place in the ring. It forms a group of its nodes, and returns the
/// group's place; or it queues the task, or has it drawn again. Lets reserved nodes go; those `beside` could have been given the task.
#[inline(never)]
pub(crate) fn handle_drawn<H: Host>(
    net: &mut Network<'_, H>,
    at: Word,
    task: &Task,
    drawn: Members,
    mut beside: Vec<NodeHandle>,
    reserved: &Reserved,
) -> Option<u32> {
    let (order, mut place) = (&task.order, None);
    let again = match drawn {
        Members::Late => Some(*order),
        Members::Undecided => order.after_undecided(),
        Members::Nobody | Members::Nodes(_) => None,
    };
    match (drawn, again) {
        (_, Some(again)) => {
            net.ring.take(net.host, (at, *order));
            redraw(net, &Task { order: again, ..*task });
            // A node that wants to leave by now, is excluded, or is called to a group is not kept for another draw.
            beside.retain(|handle| handle.node.status == Status::Busy as u8 && !handle.node.called());
            let kept: Vec<NodeId> = beside.iter().map(|handle| handle.id).collect();
            net.ring.reserve(net.host, &Reserved::of(&kept));
            let mut gone = reserved_for(net, order.id, reserved);
            gone.retain(|handle| !kept.contains(&handle.id));
            let_go(net, gone, true);
            return None;
        }
        (Members::Nodes(nodes), None) => {
            net.ring.take(net.host, (at, *order));
            let scored = if order.is_chosen() { order.scored() } else { scored_drawn(net, order, &nodes, &beside) };
            let limits = net.limits();
            place = Some(form_of(net, *task, scored, &nodes, None, &limits).place);
        }
        (_, None) => queue_first(net),
    }
    let left = reserved_for(net, order.id, reserved);
    let_go(net, left, place.is_none());
    place
}

/// Forms a group of these nodes, scored or not, of which the first may have committed already.
pub(crate) fn form_of<H: Host>(
    net: &mut Network<'_, H>,
    mut task: Task,
    scored: bool,
    nodes: &[NodeId],
    first: Option<Membership>,
    limits: &Limits,
) -> Group {
    task.order = task.order.as_groups(net.now, scored, limits.slash_images > 0);
    let mut group = Group::new(net.host, &task, nodes.len());
    emit::<GroupFormed>(net.host, (task.order.id, group.place, task.escrow.creator), (nodes, scored));
    for (member, &node) in group.members.iter_mut().zip(nodes) {
        if let Some(first) = first.filter(|first| first.node == node) {
            *member = first;
            continue;
        }
        // Read again: a node that left the sampler before may have moved it there.
        let mut handle = NodeHandle::load(net.host, node);
        let reserved = task.order.several() && handle.node.parked == Node::RESERVED;
        *member = Membership { node, stage: Stage::Called, moment: 0, elapsed: 0 };
        if reserved || handle.node.status == Status::Available as u8 {
            if reserved {
                handle.node.parked = 0;
                // It has not waited in vain.
                let assignment = handle.assignment(net.host);
                if assignment.until > 0 || assignment.vain > 0 {
                    handle.set_assignment(net.host, &Assignment { until: 0, vain: 0, ..assignment });
                }
            } else {
                withdraw_from_work(net, &mut handle);
            }
            member.stage = Stage::Running;
            member.moment = start_member(net, Unplaced::of(handle), &task, group.place, limits) as u32;
        } else {
            handle.node.duties |= Node::CALLED;
            handle.put(net.host);
            let assignment = handle.assignment(net.host);
            handle.set_assignment(net.host, &Assignment { group: group.place, ..assignment });
            emit::<MemberCalled>(net.host, (task.order.id, node), (group.place,));
        }
    }
    for word in 0..group.words as usize {
        group.put(net.host, word * MEMBERS);
    }
    group
}

/// Starts a group's task on an unplaced node; gives its deadline.
pub(crate) fn start_member<H: Host>(
    net: &mut Network<'_, H>,
    mut handle: Unplaced,
    task: &Task,
    place: u32,
    limits: &Limits,
) -> u64 {
    let held = Held::load(net.host, handle.slot, handle.node.models);
    let missing: Vec<_> = task.models.as_slice().iter().copied().filter(|&m| !held.holds(m)).collect();
    let order = &task.order;
    let limit = order.limit + if missing.is_empty() { 0 } else { limits.download_time as u32 };
    handle.node.pos = missing.is_empty() as u32;
    let deadline = net.now + limit as u64;
    if handle.node.status == Status::Available as u8 {
        handle.node.status = Status::Busy as u8;
    }
    handle.put(net.host);
    task.models.store(net.host, handle.in_use_slot());
    handle.set_order(net.host, &order.as_members(place, limit, deadline));
    emit::<MemberStarted>(net.host, (order.id, handle.id), (place, deadline));
    for model in missing {
        emit::<DownloadRequested>(net.host, (handle.id, model, order.id), ());
    }
    deadline
}

/// Notes in a group that a member will not answer.
pub(crate) fn drop_out<H: Host>(net: &mut Network<'_, H>, place: u32, node: NodeId, stage: Stage, moment: u64) {
    if let Some(mut group) = Group::at(net.host, place) {
        if let Some(i) = group.find(node) {
            group.members[i] = Membership { node, stage, moment: moment as u32, elapsed: 0 };
            group.put(net.host, i);
            let id = group.order(net.host).id;
            emit::<MemberTimedOut>(net.host, (id, node), (place,));
        }
    }
}
