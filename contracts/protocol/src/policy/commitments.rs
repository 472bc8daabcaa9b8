//! Commitments of nodes, and their openings.

use crate::abi::{emit, IMuster::*};
use crate::flow::network::Network;
use crate::host::Host;
use crate::store::node::NodeHandle;
use crate::Result;
use muster_core::id::{NodeId, TaskId};
use muster_core::record::Order;
use muster_core::validation::has_images;
use muster_core::word::Word;

/// The kind of a revealed answer.
pub(crate) const ANSWER: u8 = 0;
/// The kind of a revealed error.
pub(crate) const ERROR: u8 = 1;

/// The opening of a commitment.
pub(crate) struct Opening {
    pub(crate) id: TaskId,
    pub(crate) node: NodeId,
    pub(crate) kind: u8,
    pub(crate) value: [u8; 32],
    pub(crate) salt: [u8; 32],
}

impl Opening {
    /// The hash of a commitment to it.
    pub(crate) fn hash<H: Host>(&self, host: &H) -> [u8; 32] {
        let mut bytes = [0; 160];
        bytes[24..32].copy_from_slice(&self.id.0.to_be_bytes());
        bytes[60..64].copy_from_slice(&self.node.0.to_be_bytes());
        bytes[95] = self.kind;
        bytes[96..128].copy_from_slice(&self.value);
        bytes[128..].copy_from_slice(&self.salt);
        host.keccak(&bytes)
    }

    /// Refuses a value that was not committed to, or is no answer to the task.
    pub(crate) fn check(&self, order: &Order, opens: bool) -> Result<()> {
        ensure!(opens, NotWhatWasCommitted(self.id, self.node));
        let answer = || images(Word::from_be_bytes(self.value));
        let fits = self.kind == ERROR || order.images() == 0 || has_images(&answer(), order.images());
        ensure!(fits, BadImages(self.id, order.images()));
        Ok(())
    }

    pub(crate) fn tell<H: Host>(&self, host: &mut H, place: u32) {
        emit::<AnswerRevealed>(host, (self.id, self.node), (place, self.kind, self.value, self.salt));
    }
}

/// The perceptual hashes in an answer, the first image's first.
pub(crate) fn images(answer: Word) -> [u64; 4] {
    let [d, c, b, a] = answer.0;
    [a, b, c, d]
}

/// The running task of a node.
pub(crate) fn running_order<H: Host>(net: &Network<'_, H>, handle: &NodeHandle, id: TaskId) -> Result<Order> {
    let order = handle.order(net.host);
    ensure!(handle.node.running() && order.id == id, TaskNotRunning(id, handle.id));
    Ok(order)
}

/// A node's task, and its running order.
pub(crate) fn handle_running<H: Host>(net: &Network<'_, H>, node: NodeId, id: TaskId) -> Result<(NodeHandle, Order)> {
    net.node_store.check(node)?;
    let handle = NodeHandle::load(net.host, node);
    let order = running_order(net, &handle, id)?;
    Ok((handle, order))
}

pub(crate) fn tell_commitment<H: Host>(
    net: &mut Network<'_, H>,
    id: TaskId,
    node: NodeId,
    place: u32,
    hash: [u8; 32],
    block: u64,
) {
    let mut commitment = [0; 24];
    commitment.copy_from_slice(&hash[..24]);
    emit::<AnswerCommitted>(net.host, (id, node), (place, commitment, block));
}
