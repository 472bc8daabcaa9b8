//! Task scores of nodes, and being kicked out for them.

use crate::abi::{emit, IMuster::*};
use crate::flow::network::Network;
use crate::flow::standing::{depart, withdraw_from_work};
use crate::host::Host;
use crate::store::layout::{slot, LIMITS};
use crate::store::node::{NodeHandle, Unplaced};
use muster_core::id::NodeId;
use muster_core::qos;
use muster_core::record::{Limits, Status};

impl<H: Host> Network<'_, H> {
    /// Records a task score of a node, and kicks it out if its full pool's mean is below the threshold
    /// (when its task ends, if it has one). Reached by no deployed selector: judgements use [`enter_score`], and
    /// like this only when no draw is due, for scores weigh in draws.
    pub fn record_score(&mut self, id: NodeId, score: u8) {
        let mut handle = NodeHandle::load(self.host, id);
        if !enter_score(self, &mut handle, score) || !kick_out(self, &mut handle) {
            handle.put(self.host);
        }
    }
}

/// Enters a task score of a node, and leaves the node's record to the caller; returns whether to kick it out.
pub(crate) fn enter_score<H: Host>(net: &mut Network<'_, H>, handle: &mut NodeHandle, score: u8) -> bool {
    let score = score.min(qos::Q_MAX as u8);
    let old = handle.push_score(net.host, score);
    handle.node.score_count = (handle.node.score_count + 1).min(qos::POOL);
    handle.node.score_sum = handle.node.score_sum + score as u16 - old as u16;
    net.rules.best = net.rules.best.max(qos::long_term_200ths(handle.node.score_sum, handle.node.score_count));
    emit::<ScoreRecorded>(net.host, (handle.id,), (score,));
    let least = net.host.get::<Limits>(slot(LIMITS)).kickout_milli;
    qos::kicked_out(handle.node.score_sum, handle.node.score_count, least)
}

/// Kicks a joined node out, when its task ends if it has one: its record is left to the caller then. Gives whether it is out.
pub(crate) fn kick_out<H: Host>(net: &mut Network<'_, H>, handle: &mut NodeHandle) -> bool {
    match Status::new(handle.node.status) {
        Status::Quit => return false,
        Status::Available => withdraw_from_work(net, handle),
        Status::Paused => {}
        _ => {
            handle.node.status = Status::PendingKickout as u8;
            return false;
        }
    }
    depart(net, Unplaced::of(*handle), true);
    true
}
