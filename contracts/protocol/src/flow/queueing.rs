//! Tasks that wait: drawn again, queued, taken out of the queue, and ended with a refund.

use crate::abi::{emit, IMuster::*};
use crate::flow::network::Network;
use crate::host::{Host, Program};
use crate::inner::queueFirstCall;
use crate::store::layout::{slot, LIMITS};
use crate::store::receipts::UNSET;
use crate::store::task::Task;
use crate::store::{accounts, queue, receipts};
use crate::Result;
use alloy_sol_types::SolCall;
use muster_core::id::{NodeId, TaskId, Ticket};
use muster_core::qos::share_bps;
use muster_core::record::{Limits, Order, Receipt};
use muster_core::value::key;
use muster_core::word::Address;

/// Most tasks queued at once: the most that a pool's places and their count hold.
pub const QUEUE_MAX: u64 = (1 << 24) - 2;
pub(crate) const TIMEOUT: u8 = 0;
const CANCELLED: u8 = 1;
const EVICTED: u8 = 2;
const WAITED: u8 = 3;
pub(crate) const SLASHED: u8 = 4;

impl<H: Host> Network<'_, H> {
    /// Most tasks that can be queued now: floor(alpha x joined nodes), at most [`QUEUE_MAX`].
    pub fn queue_capacity(&self) -> u64 {
        (self.rules.alpha_milli as u64 * self.node_store.joined() as u64 / 1_000).min(QUEUE_MAX)
    }
}

/// Queues a task; where the queue is full, the lowest value goes, the newcomer's included.
pub(crate) fn enqueue<H: Host>(net: &mut Network<'_, H>, task: &Task) {
    let key = key(task.order.part(task.escrow.fee), task.order.estimate, task.order.id);
    let since = Task { order: Order { moment: net.now, ..task.order }, ..*task };
    let ticket = if (net.queued as u64) < net.queue_capacity() {
        net.queued += 1;
        queue::insert(net.host, &since, key)
    } else if queue::worst(net.host).is_some_and(|worst| worst < key) {
        let (lowest, ticket) = queue::replace_worst(net.host, &since, key);
        abort(net, &lowest, NodeId(0), EVICTED, 0, 0, None);
        ticket
    } else {
        return abort(net, task, NodeId(0), EVICTED, 0, 0, None);
    };
    emit::<TaskQueued>(net.host, (task.order.id, task.order.group, task.escrow.creator), (ticket,));
}

/// Takes a task out of the queue.
pub(crate) fn dequeue<H: Host>(net: &mut Network<'_, H>, ticket: Ticket) -> Task {
    net.queued -= 1;
    queue::remove(net.host, ticket)
}

/// Gives a task a new block and puts it at the end of the ring.
#[inline(never)]
pub(crate) fn redraw<H: Host>(net: &mut Network<'_, H>, task: &Task) {
    let block = net.target();
    net.ring.push(net.host, task, block);
    emit::<TaskRedrawn>(net.host, (task.order.id,), (block,));
}

/// Queues the first Pending task, for which there are no nodes.
pub(crate) fn queue_first<H: Host>(net: &mut Network<'_, H>) {
    if net.host.starts_tasks() {
        let first = net.ring.first(net.host);
        let task = net.ring.take(net.host, first);
        enqueue(net, &task);
    } else {
        net.must_call(Program::Work, queueFirstCall::SELECTOR, [0; 3]);
    }
}

/// Refunds a task, less the start fee and less the part saved for validations. The start fee goes to the account that did the owner's part
/// (`driver`), else to the treasury.
#[inline(never)]
pub(crate) fn abort<H: Host>(
    net: &mut Network<'_, H>,
    task: &Task,
    node: NodeId,
    reason: u8,
    start_fee_bps: u16,
    saved: u128,
    driver: Option<Address>,
) {
    let start_fee = share_bps(task.escrow.fee, start_fee_bps);
    let saved = saved.min(task.escrow.fee - start_fee);
    accounts::save(net.host, saved);
    let refund = task.escrow.fee - start_fee - saved;
    let beneficiary = driver.filter(|_| start_fee > 0).unwrap_or_default();
    match driver {
        Some(driver) => accounts::credit(net.host, driver, start_fee),
        None => accounts::earn(net.host, start_fee),
    }
    accounts::credit(net.host, task.escrow.creator, refund);
    emit::<TaskAborted>(net.host, (task.order.id, node, task.escrow.creator), (reason, refund, start_fee, beneficiary));
    receipts::close(net.host, &task.order, Receipt::ABORTED + reason, node, 0, refund, &UNSET);
}

/// The task queued under a ticket.
fn queued_under<H: Host>(net: &Network<'_, H>, id: TaskId, ticket: Ticket) -> Result<Task> {
    let task = queue::task_at(net.host, ticket).filter(|task| task.order.id == id);
    task.ok_or_else(|| refusal!(TaskNotQueued(id, ticket)))
}

impl<H: Host> Network<'_, H> {
    /// See `IMuster.cancel`.
    pub fn cancel(&mut self, id: TaskId, ticket: Ticket) -> Result<()> {
        let task = queued_under(self, id, ticket)?;
        let caller = self.host.sender();
        ensure!(task.escrow.creator == caller, NotTheCreator(id, caller));
        end_queued(self, ticket, CANCELLED, None);
        Ok(())
    }

    /// See `IMuster.expireQueued`.
    pub fn expire_queued(&mut self, id: TaskId, ticket: Ticket) -> Result<()> {
        let task = queued_under(self, id, ticket)?;
        let until = task.order.moment + self.host.get::<Limits>(slot(LIMITS)).queue_time as u64;
        ensure!(self.now > until, QueueTimeNotOver(id, until));
        let caller = self.host.sender();
        let driver = (task.escrow.creator != caller).then_some(caller);
        end_queued(self, ticket, WAITED, driver);
        Ok(())
    }
}

fn end_queued<H: Host>(net: &mut Network<'_, H>, ticket: Ticket, reason: u8, driver: Option<Address>) {
    let task = dequeue(net, ticket);
    abort(net, &task, NodeId(0), reason, task.order.start_fee_bps, 0, driver);
}
