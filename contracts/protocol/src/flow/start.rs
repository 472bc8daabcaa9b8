//! The start of a task on one node, drawn or out of the queue, with the downloads that it asks for.

use crate::abi::{emit, IMuster::*};
use crate::flow::draw::{available_holders, draw_lacking, Candidates, Draw, Rng};
use crate::flow::network::{Network, QUEUEING_READS};
use crate::flow::queueing::{dequeue, enqueue, redraw};
use crate::flow::reliability::can_rise;
use crate::flow::standing::leave_sampler;
use crate::host::{Host, Program};
use crate::inner::takeQueuedCall;
use crate::store::node::{NodeHandle, Unplaced};
use crate::store::registry::Held;
use crate::store::sampler::{Among, Field, Neighbours};
use crate::store::task::Task;
use crate::store::{groups, queue, registry};
use alloc::vec::Vec;
use alloy_sol_types::SolCall;
use muster_core::id::{ModelId, NodeId};
use muster_core::record::Status;

/// Draws a task by the hash of a block and starts or queues it; where the draw stays undecided, or the hash is not known any more, it
/// gets a new block.
#[inline(never)]
pub(crate) fn draw_by<H: Host>(net: &mut Network<'_, H>, task: &Task, block: u64) {
    let drawn = net.host.block_hash(block).is_some_and(|hash| {
        let mut rng = Rng::new(net.host, hash, task.order.id);
        let draw = net.draw(task, &mut rng);
        net.place(task, draw, Some(&mut rng))
    });
    if !drawn {
        redraw(net, task);
    }
}

impl<H: Host> Network<'_, H> {
    /// Starts a task on the node that was drawn, or queues it where there is none; false if the draw stayed undecided.
    #[inline(always)]
    pub fn place(&mut self, task: &Task, draw: Draw, rng: Option<&mut Rng>) -> bool {
        match draw {
            Draw::Node(handle, candidates) => {
                let left = leave_sampler(self, &handle);
                start(self, task, Unplaced::of(handle), candidates, left, rng);
            }
            Draw::Nobody => {
                enqueue(self, task);
                self.host.charge(QUEUEING_READS);
            }
            Draw::Undecided => return false,
        }
        true
    }

    /// Takes the first Pending task off the ring if its block has come, for tests that compare other ways of choosing with the contract's.
    /// The chosen node goes to [`Network::place`].
    pub fn take_due(&mut self) -> Option<Task> {
        let first = self.first_due(self.ring)?;
        Some(self.ring.take(self.host, first))
    }
}

/// Starts the best queued task on an unplaced node whose record is written; gives whether there was one, else nothing
/// has changed.
pub(crate) fn take_queued<H: Host>(net: &mut Network<'_, H>, node: NodeId) -> bool {
    if net.host.starts_tasks() {
        start_queued(net, node)
    } else {
        net.must_call(Program::Work, takeQueuedCall::SELECTOR, [node.0 as u64, 0, 0]) >> 32 != 0
    }
}

/// Starts the best queued task on an unplaced node; gives whether there was one.
pub(crate) fn start_queued<H: Host>(net: &mut Network<'_, H>, node: NodeId) -> bool {
    let handle = NodeHandle::load(net.host, node);
    let best = queue::best_single(net.host, handle.node.group);
    if let Some(best) = best {
        let ticket = best.ticket(net.host);
        let task = dequeue(net, ticket);
        start(net, &task, Unplaced::of(handle), Candidates::Queued, 0, None);
    }
    best.is_some()
}

/// Starts a task on an unplaced node; writes the node's record. Takes the pre-download from `rng` if there is one, else from the task's id:
/// the choice of nodes that are asked to download decides nothing. The candidates decide whether success raises H. `left` is the length of
/// the list that the node was drawn from, without it.
fn start<H: Host>(
    net: &mut Network<'_, H>,
    task: &Task,
    mut handle: Unplaced,
    candidates: Candidates,
    left: u32,
    rng: Option<&mut Rng>,
) {
    net.started = true;
    let deadline = net.now + task.order.limit as u64;
    let (group, class, place) = (handle.node.group, handle.node.class(net.rules.base), handle.node.pos);
    let among_holders = candidates == Candidates::Holders;
    let mut requests = missing(net, task, &handle, among_holders);
    handle.node.pos = requests.is_empty() as u32;
    handle.node.status = Status::Busy as u8;
    handle.put(net.host);
    handle.assign(net.host, task);
    // One node is chosen already; how many others there were need not be known beyond the pool, nor where H can rise no more.
    let (rises, pool) = (can_rise(net, &handle.node), net.rules.boost_pool as u32);
    let others = if rises && among_holders { pool.saturating_sub(1) } else { 0 };
    let holders = if task.models.len > 0 {
        // Looks first beside the place that it had.
        let mut nearby = Neighbours::load(net.host, group, class, place, left);
        let holders = distribute(net, task, &mut nearby, (left, others), rng, &mut requests);
        nearby.store(net.host);
        holders
    } else {
        0
    };
    let there = match candidates {
        Candidates::Holders => holders + 1,
        Candidates::AtLeast(n) => n,
        Candidates::Queued if rises && 2 * net.now.saturating_sub(task.order.moment) >= task.order.estimate as u64 => {
            Field::new(net.host, Among::Active, task.order.group.into()).count(net.host, pool)
        }
        Candidates::Queued => 0,
    };
    let boosts = rises && there >= pool;
    handle.set_order(net.host, &task.order.as_started(deadline, boosts));
    emit::<TaskStarted>(net.host, (task.order.id, handle.id, task.escrow.creator), (deadline, boosts));
    request(net, task, &requests);
}

/// Asks nodes to download models for a task.
#[inline(never)]
fn request<H: Host>(net: &mut Network<'_, H>, task: &Task, requests: &[(NodeId, ModelId)]) {
    for &(node, model) in requests {
        emit::<DownloadRequested>(net.host, (node, model, task.order.id), ());
    }
}

/// A task's models that a node lacks; one that was drawn among the holders of one model, of which there are many, holds it.
fn missing<H: Host>(net: &Network<'_, H>, task: &Task, handle: &NodeHandle, among_holders: bool) -> Vec<(NodeId, ModelId)> {
    let sure = among_holders && task.models.len == 1;
    if sure || registry::count_held(net.host, handle.slot, handle.node.models, &task.models) == task.models.len as u32 {
        return Vec::new();
    }
    let held = Held::load(net.host, handle.slot, handle.node.models);
    task.models.as_slice().iter().filter(|&&m| !held.holds(m)).map(|&model| (handle.id, model)).collect()
}

/// Asks others to download the models of the task of a group that has begun, where those are scarce.
#[inline(never)]
pub(crate) fn distribute_for_group<H: Host>(net: &mut Network<'_, H>, place: u32) {
    let (task, mut requests) = (groups::task_at(net.host, place), Vec::new());
    let mut nearby = Neighbours::load(net.host, task.order.group, 0, 0, 0);
    distribute(net, &task, &mut nearby, (0, 0), None, &mut requests);
    request(net, &task, &requests);
}

/// Finds other nodes to ask for scarce models. Returns how many others hold one of the models and could have been given the task, counted
/// up to `others`. With `left` 0, it is not yet known whether any node is idle.
#[inline(never)]
fn distribute<H: Host>(
    net: &mut Network<'_, H>,
    task: &Task,
    nearby: &mut Neighbours,
    (left, others): (u32, u32),
    rng: Option<&mut Rng>,
    requests: &mut Vec<(NodeId, ModelId)>,
) -> u32 {
    let (scarce, spread) = (net.rules.scarce as u32, net.rules.spread as u32);
    let mut own;
    let rng = match rng {
        Some(rng) => rng,
        None => {
            own = Rng::new(net.host, [0; 32], task.order.id);
            &mut own
        }
    };
    let idle = |net: &Network<'_, H>| Field::new(net.host, Among::Idle, task.order.group.into());
    // A node drawn out of a list with others in it leaves another idle, without a look.
    let mut field = (others == 0 && left == 0).then(|| idle(net));
    let (mut reads, mut asked, mut eligible) = (net.spread, 0, Vec::new());
    for &model in task.models.as_slice() {
        // While no idle node could be asked, holders need not be counted.
        if reads == 0 || field.as_ref().is_some_and(|field| field.total() == 0) {
            break;
        }
        let available = available_holders(net, task, model, scarce, nearby, others, &mut eligible, &mut reads, rng);
        if available >= scarce {
            continue;
        }
        let most = spread.saturating_sub(available.max(asked));
        let field = &*field.get_or_insert_with(|| idle(net));
        for node in draw_lacking(net, field, task, model, most, &mut reads, rng) {
            asked += 1;
            requests.push((node, model));
        }
    }
    net.spread = reads;
    eligible.len() as u32
}
