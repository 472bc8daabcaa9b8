//! The weight of a node for a task (the dispatch document).

use crate::flow::network::Network;
use crate::flow::reliability::reliability;
use crate::host::Host;
use crate::store::node::NodeHandle;
use crate::store::registry::{count_held, count_in_use};
use crate::store::task::{ModelSet, Task};
use muster_core::record::Node;
use muster_core::{qos, weight};

/// The factors of a node's weight (see [`muster_core::weight`]), wads.
#[derive(Clone, Copy, Default, Debug)]
pub struct Factors {
    /// S.
    pub staking: u64,
    /// H now.
    pub reliability: u64,
    /// QoS.
    pub qos: u64,
}

impl<H: Host> Network<'_, H> {
    /// The factors of a node's weight that do not depend on the task.
    pub fn factors(&self, node: &Node) -> Factors {
        let reliability = reliability(self, node);
        Factors {
            staking: weight::staking_score(node.stake, self.node_store.max_stake()),
            reliability,
            qos: qos::qos(qos::long_term(node.score_sum, node.score_count), reliability),
        }
    }
}

/// S QoS / (S + QoS) of a node, 0 if its H excludes it.
pub(crate) fn merit<H: Host>(net: &Network<'_, H>, node: &Node) -> u64 {
    let f = net.factors(node);
    if qos::eligible(f.reliability, net.rules.exclusion_ppm) {
        weight::harmonic(f.staking, f.qos)
    } else {
        0
    }
}

/// How many of a set of models a node holds.
pub(crate) fn held_of<H: Host>(net: &Network<'_, H>, handle: &NodeHandle, models: &ModelSet) -> u32 {
    if models.len == 0 {
        0
    } else {
        count_held(net.host, handle.slot, handle.node.models, models)
    }
}

/// M of a node that holds `local` of the models.
pub(crate) fn locality_boost<H: Host>(net: &Network<'_, H>, handle: &NodeHandle, models: &ModelSet, local: u32) -> u64 {
    let used = if models.len == 0 { 0 } else { count_in_use(net.host, handle, models) };
    weight::locality_boost(local, used, models.len as u32)
}

impl<H: Host> Network<'_, H> {
    /// M of a node for a set of models, and how many of them it holds.
    pub fn locality(&self, handle: &NodeHandle, models: &ModelSet) -> (u64, u32) {
        let local = held_of(self, handle, models);
        (locality_boost(self, handle, models, local), local)
    }
}

/// Whether a node has the VRAM or the GPU a task requires.
pub fn in_scope(handle: &NodeHandle, task: &Task) -> bool {
    let group = task.order.group;
    if group.is_any() {
        handle.node.group.vram() >= group.vram()
    } else {
        handle.node.group == group
    }
}
