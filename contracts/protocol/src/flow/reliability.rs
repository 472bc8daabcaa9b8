//! H of a node: its current value, its rises and its falls (the QoS document).

use crate::flow::network::Network;
use crate::host::Host;
use crate::store::node::NodeHandle;
use muster_core::qos;
use muster_core::record::Node;
use muster_core::wad::WAD;

/// H of a node now.
pub(crate) fn reliability<H: Host>(net: &Network<'_, H>, node: &Node) -> u64 {
    qos::recover(node.h, net.now.saturating_sub(node.h_at as u64), net.rules.tau)
}

/// Whether H of a node can rise. Where it cannot, a draw's candidates need not be counted.
#[inline(always)]
pub(crate) fn can_rise<H: Host>(net: &Network<'_, H>, node: &Node) -> bool {
    reliability(net, node) < WAD
}

fn set_reliability<H: Host>(net: &Network<'_, H>, handle: &mut NodeHandle, h: u64) {
    handle.node.h = h;
    handle.node.h_at = net.now as u32;
}

/// Raises H for a success, but only if half the task's estimate has passed since the last change. So no string of small tasks buys back in
/// minutes the H that time gives in half an hour.
pub(crate) fn raise_reliability<H: Host>(net: &Network<'_, H>, handle: &mut NodeHandle, estimate: u32) {
    if (net.now - handle.node.h_at as u64) * 2 >= estimate as u64 {
        let h = qos::boost(reliability(net, &handle.node), net.rules.boost_ppm);
        set_reliability(net, handle, h);
    }
}

/// Lowers a node's H for a task without an answer in time.
pub(crate) fn lower_reliability<H: Host>(net: &mut Network<'_, H>, handle: &mut NodeHandle) {
    let h = qos::penalise(reliability(net, &handle.node), net.rules.penalty_ppm);
    set_reliability(net, handle, h);
}

/// Whether H lets a node be given work.
pub(crate) fn may_work<H: Host>(net: &Network<'_, H>, handle: &NodeHandle) -> bool {
    qos::eligible(reliability(net, &handle.node), net.rules.exclusion_ppm)
}
