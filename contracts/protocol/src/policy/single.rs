//! Policy 0: one node runs a task, and its answer counts.

use crate::abi::{emit, IMuster::*};
use crate::flow::network::Network;
use crate::flow::release::release;
use crate::flow::reliability::raise_reliability;
use crate::flow::standing::{rests_until, Next};
use crate::host::Host;
use crate::store::node::{NodeHandle, Unplaced};
use crate::store::receipts::UNSET;
use crate::store::{accounts, receipts};
use crate::Result;
use muster_core::id::TaskId;
use muster_core::qos::share_bps;
use muster_core::record::{Escrow, Order, Receipt};
use muster_core::word::Address;

/// The node that the caller works for, whether only as its worker, and its running task.
fn own_task<H: Host>(net: &Network<'_, H>, id: TaskId) -> Result<(NodeHandle, bool, Escrow, Order)> {
    let (handle, works) = net.own_seat()?;
    let (escrow, order) = running_single(net, &handle, id)?;
    Ok((handle, works, escrow, order))
}

fn running_single<H: Host>(net: &Network<'_, H>, handle: &NodeHandle, id: TaskId) -> Result<(Escrow, Order)> {
    let order = handle.order(net.host);
    let here = handle.node.running() && order.id == id;
    ensure!(here, TaskNotRunning(id, handle.id));
    ensure!(!order.commits(), CommitFirst(id));
    Ok((handle.escrow(net.host), order))
}

impl<H: Host> Network<'_, H> {
    /// See `IMuster.submit`.
    pub fn submit(&mut self, id: TaskId, digest: [u8; 32]) -> Result<()> {
        let (handle, works, escrow, order) = own_task(self, id)?;
        ensure!(self.now <= order.moment, DeadlinePassed(id, order.moment));
        let operator = if works { handle.operator(self.host).account } else { self.host.sender() };
        succeed(self, handle, &escrow, &order, operator, digest, escrow.fee);
        Ok(())
    }
}

/// Ends a node's task as a success, for which its operator gets so much.
pub(crate) fn succeed<H: Host>(
    net: &mut Network<'_, H>,
    mut handle: NodeHandle,
    escrow: &Escrow,
    order: &Order,
    operator: Address,
    digest: [u8; 32],
    paid: u128,
) {
    if order.boosts() {
        raise_reliability(net, &mut handle, order.estimate);
    }
    accounts::credit(net.host, operator, paid);
    emit::<TaskSucceeded>(net.host, (order.id, handle.id, escrow.creator), (digest, paid));
    receipts::close(net.host, order, Receipt::SUCCEEDED, handle.id, 0, 0, &digest);
    release(net, Unplaced::of(handle), Next::WorkOrWait);
}

impl<H: Host> Network<'_, H> {
    /// See `IMuster.reportError`.
    pub fn report_error(&mut self, id: TaskId, code: u8) -> Result<()> {
        let (handle, _, escrow, order) = own_task(self, id)?;
        ensure!(self.now <= order.moment, DeadlinePassed(id, order.moment));
        fail(self, handle, &escrow, &order, code);
        Ok(())
    }
}

/// Ends a node's task by an error. The creator pays the start fee for the node's time, and the node rests. Otherwise a node that reports
/// errors at once would be idle most of the time, and be drawn more often than its weight says.
pub(crate) fn fail<H: Host>(net: &mut Network<'_, H>, handle: NodeHandle, escrow: &Escrow, order: &Order, code: u8) {
    let start_fee = share_bps(escrow.fee, order.start_fee_bps);
    let refund = escrow.fee - start_fee;
    accounts::earn(net.host, start_fee);
    accounts::credit(net.host, escrow.creator, refund);
    emit::<TaskErrorReported>(net.host, (order.id, handle.id, escrow.creator), (code, refund));
    receipts::close(net.host, order, Receipt::ERROR, handle.id, code, refund, &UNSET);
    release(net, Unplaced::of(handle), Next::Rest(rests_until(order)));
}
