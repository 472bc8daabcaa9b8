//! All joined nodes together: their counts in the head word, and the list of active ones. Nothing else writes those words.

use crate::abi::{emit, IMuster::*};
use crate::host::Host;
use crate::store::layout::{node_slot, slot, GROUPS_BY_CLASS};
use crate::store::node::NodeHandle;
use crate::store::sampler::{Among, Counts};
use crate::store::tournament::{height, TournamentTree, NONE};
use crate::store::{registry, sampler};
use crate::Result;
use muster_core::id::NodeId;
use muster_core::record::{Head, Node, Operator, Rules};

/// Nodes ever and at once: the most that a place in a list can hold.
pub const NODES_MAX: u32 = (1 << 24) - 2;

/// All joined nodes together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeStore {
    issued: u32,
    joined: u32,
    max_stake: u64,
    lowest: u8,
    max_vram: u16,
}

impl NodeStore {
    /// As the head word and the rules have it.
    pub fn of(head: &Head, rules: &Rules) -> NodeStore {
        let &Head { issued, joined, max_stake, max_vram, .. } = head;
        NodeStore { issued, joined, max_stake, lowest: rules.lowest, max_vram }
    }

    /// Its part of them.
    pub fn write(&self, head: &mut Head, rules: &mut Rules) {
        head.issued = self.issued;
        head.joined = self.joined;
        head.max_stake = self.max_stake;
        head.max_vram = self.max_vram;
        rules.lowest = self.lowest;
    }

    /// Node numbers given out.
    pub fn issued(&self) -> u32 {
        self.issued
    }

    /// Nodes joined now.
    pub fn joined(&self) -> u32 {
        self.joined
    }

    /// Their largest stake, in stake units.
    pub fn max_stake(&self) -> u64 {
        self.max_stake
    }

    /// The lowest stake class that has an active one.
    pub fn lowest(&self) -> u8 {
        self.lowest
    }

    /// Their largest VRAM, in GiB; 0 when there are none.
    pub fn max_vram(&self) -> u16 {
        self.max_vram
    }

    /// Refuses a number that no node has.
    pub fn check(&self, id: NodeId) -> Result<()> {
        ensure!(id.0 > 0 && id.0 <= self.issued, NodeUnknown(id));
        Ok(())
    }

    /// Refuses a node more than there can be.
    pub fn check_room(&self) -> Result<()> {
        ensure!(self.joined < NODES_MAX, NetworkFull(self.joined));
        Ok(())
    }

    /// Gives out a number.
    pub fn issue<H: Host>(&mut self, host: &mut H) -> Result<NodeId> {
        let issued = self.issued;
        ensure!(issued < NODES_MAX, NetworkFull(self.joined));
        if levels(issued + 1) > levels(issued) {
            let top = if self.joined == 0 { NONE } else { self.max_stake + 1 };
            TournamentTree::STAKES.grow(host, levels(issued), top);
        }
        self.issued = issued + 1;
        Ok(NodeId(issued + 1))
    }

    /// Counts a node that joined, and enters it among the active ones; its operator's record is given.
    pub fn enter<H: Host>(&mut self, host: &mut H, handle: &NodeHandle, operator: Operator, base: u64) {
        self.joined += 1;
        if registry::joined(host, handle.node.group) == Some(0) {
            registry::count_manned(host, handle.node.group, true, &mut self.max_vram);
        }
        self.activate(host, handle, operator, base);
        registry::count_joined(host, handle.node.group, true);
        self.set_stake_key(host, handle.id, handle.node.stake + 1);
    }

    /// Takes a node that leaves out of the counts, and out of the active ones; returns its operator's record.
    pub fn leave<H: Host>(&mut self, host: &mut H, handle: &mut NodeHandle, base: u64) -> Operator {
        self.joined -= 1;
        let operator = if handle.node.inactive() {
            handle.node.duties &= !Node::INACTIVE;
            sampler::count_absent(host, handle.node.group, false);
            handle.operator(host)
        } else {
            self.deactivate(host, handle, handle.node.class(base))
        };
        if registry::joined(host, handle.node.group) == Some(0) {
            registry::count_manned(host, handle.node.group, false, &mut self.max_vram);
        }
        registry::count_joined(host, handle.node.group, false);
        self.set_stake_key(host, handle.id, NONE);
        operator
    }

    /// Takes a paused node out of the active ones until it resumes, if it can be counted.
    pub fn set_aside<H: Host>(&mut self, host: &mut H, handle: &mut NodeHandle, base: u64) {
        if sampler::count_absent(host, handle.node.group, true) {
            self.deactivate(host, handle, handle.node.class(base));
            handle.node.duties |= Node::INACTIVE;
            handle.put(host);
            emit::<NodeSetAside>(host, (handle.id,), ());
        }
    }

    /// Enters a node among the active ones again that resumes.
    pub fn take_back<H: Host>(&mut self, host: &mut H, handle: &mut NodeHandle, base: u64) {
        if handle.node.inactive() {
            handle.node.duties &= !Node::INACTIVE;
            sampler::count_absent(host, handle.node.group, false);
            let operator = handle.operator(host);
            self.activate(host, handle, operator, base);
        }
    }

    /// Enters a node's changed stake; `from` and `to` are the stake classes before and after.
    pub fn restake<H: Host>(&mut self, host: &mut H, handle: &NodeHandle, from: u8, to: u8, base: u64) {
        if from != to && !handle.node.inactive() {
            let operator = self.deactivate(host, handle, from);
            self.activate(host, handle, operator, base);
        }
        self.set_stake_key(host, handle.id, handle.node.stake + 1);
    }

    /// Enters a node's stake (+ 1; [`NONE`] when it leaves) and keeps the largest right.
    fn set_stake_key<H: Host>(&mut self, host: &mut H, id: NodeId, key: u64) {
        if let Some(top) = TournamentTree::STAKES.set(host, 0, levels(self.issued), id.0 - 1, key) {
            self.max_stake = top.max(NONE) - 1;
        }
    }

    /// Enters a node, whose operator's record is given, among the active ones.
    fn activate<H: Host>(&mut self, host: &mut H, handle: &NodeHandle, operator: Operator, base: u64) {
        let class = handle.node.class(base);
        let place = sampler::insert(host, Among::Active, handle.node.group, class, handle.id);
        handle.set_operator(host, &Operator { place, ..operator });
        if place == 0 {
            self.count_class(host, class, true);
        }
    }

    /// Takes a node out of the active ones; `class` is the stake class that it was entered with.
    #[inline(never)]
    fn deactivate<H: Host>(&mut self, host: &mut H, handle: &NodeHandle, class: u8) -> Operator {
        let operator = handle.operator(host);
        let (moved, left) = sampler::remove(host, Among::Active, handle.node.group, class, operator.place);
        if let Some(moved) = moved {
            let other = NodeHandle { id: moved, slot: node_slot(host, moved), node: handle.node };
            let entry = other.operator(host);
            other.set_operator(host, &Operator { place: operator.place, ..entry });
        }
        if left == 0 {
            self.count_class(host, class, false);
        }
        operator
    }

    /// Notes that a GPU group has got its first active node of a stake class, or lost its last, and keeps the lowest class right. Most that
    /// come or leave are neither, and neither read nor write the word.
    #[inline(never)]
    fn count_class<H: Host>(&mut self, host: &mut H, class: u8, come: bool) {
        let mut counts = Counts(host.load(slot(GROUPS_BY_CLASS)));
        let groups = counts.get(class);
        counts.set(class, if come { groups + 1 } else { groups.saturating_sub(1) });
        host.store(slot(GROUPS_BY_CLASS), counts.0);
        self.lowest = counts.lowest().unwrap_or(0);
    }
}

/// Levels of the tree of stakes; one at least, so that the second node to join finds its word written.
fn levels(issued: u32) -> u32 {
    height(issued).max(1)
}
