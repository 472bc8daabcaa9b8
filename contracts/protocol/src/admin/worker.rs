//! Workers: an account that may work for a node, but cannot take its operator's money.
//!
//! Both must agree, the operator by naming the account and the account by accepting. So nobody can bind a stranger's account to their own
//! node and keep it from joining one of its own.

use crate::abi::{emit, IMuster::*};
use crate::host::{offset, Host};
use crate::store::accounts;
use crate::store::layout::{node, node_slot};
use crate::Result;
use muster_core::id::NodeId;
use muster_core::word::{Address, Word};

const NOBODY: Address = [0; 20];

fn slot<H: Host>(host: &H, node: NodeId) -> Word {
    offset(node_slot(host, node), node::WORKER)
}

/// Ends the work of the account that works for a node, and names another.
fn name<H: Host>(host: &mut H, node: NodeId, worker: Address) {
    let at = slot(host, node);
    let former: Address = host.get(at);
    if works(host, former, node) {
        accounts::employ(host, former, NodeId(0));
    }
    host.put(at, &worker);
    emit::<WorkerNamed>(host, (node, worker), ());
}

fn works<H: Host>(host: &H, who: Address, node: NodeId) -> bool {
    accounts::node_of(host, who) == (node, true)
}

/// The node of the caller, and whether it only works for it.
fn caller_node<H: Host>(host: &H) -> Result<(NodeId, bool)> {
    let caller = host.sender();
    let own = accounts::node_of(host, caller);
    ensure!(own.0 .0 > 0, NotAnOperator(caller));
    Ok(own)
}

/// See `IMuster.setWorker`.
pub fn set_worker<H: Host>(host: &mut H, worker: Address) -> Result<()> {
    let (node, works) = caller_node(host)?;
    ensure!(!works, NotTheOperator(node, host.sender()));
    name(host, node, worker);
    Ok(())
}

/// See `IMuster.acceptWork`.
pub fn accept_work<H: Host>(host: &mut H, node: NodeId) -> Result<()> {
    let caller = host.sender();
    let (other, _) = accounts::node_of(host, caller);
    ensure!(other.0 == 0, HasNode(caller, other));
    let named: Address = host.get(slot(host, node));
    ensure!(named == caller, NotNamed(node, caller));
    accounts::employ(host, caller, node);
    emit::<WorkAccepted>(host, (node, caller), ());
    Ok(())
}

/// See `IMuster.leaveWork`.
pub fn leave_work<H: Host>(host: &mut H) -> Result<()> {
    let (node, works) = caller_node(host)?;
    ensure!(works, HasNode(host.sender(), node));
    name(host, node, NOBODY);
    Ok(())
}

/// See `IMuster.workerOf`.
pub fn worker_of<H: Host>(host: &H, node: NodeId) -> (Address, bool) {
    let worker: Address = host.get(slot(host, node));
    (worker, works(host, worker, node))
}
