//! A node with its record read, and the words of that record.

use crate::host::{offset, Host};
use crate::store::layout::{node, node_slot};
use crate::store::task::{ModelSet, Task};
use core::ops::{Deref, DerefMut};
use muster_core::id::{ModelId, NodeId};
use muster_core::record::{Assignment, Commitment, Escrow, Models, Node, Operator, Order, Scores};
use muster_core::word::Word;

/// A node with its record read.
#[derive(Clone, Copy, Debug)]
pub struct NodeHandle {
    /// Its number.
    pub id: NodeId,
    /// The slot of its record.
    pub slot: Word,
    /// Its record.
    pub node: Node,
}

/// A node that has no task and stands in no list. Its holder gives it a place, or hands it on: otherwise it would be lost.
#[must_use = "a node that is given no place is lost"]
#[derive(Debug)]
pub struct Unplaced(NodeHandle);

impl Unplaced {
    /// Of a node whose task has just ended, or that was just taken out of where it stood.
    #[inline(always)]
    pub fn of(handle: NodeHandle) -> Unplaced {
        Unplaced(handle)
    }
}

impl Deref for Unplaced {
    type Target = NodeHandle;
    #[inline(always)]
    fn deref(&self) -> &NodeHandle {
        &self.0
    }
}

impl DerefMut for Unplaced {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut NodeHandle {
        &mut self.0
    }
}

impl NodeHandle {
    /// Reads a node.
    pub fn load<H: Host>(host: &H, id: NodeId) -> NodeHandle {
        let slot = node_slot(host, id);
        NodeHandle { id, slot, node: host.get(slot) }
    }

    /// Writes the changes of [`NodeHandle::node`].
    pub fn put<H: Host>(&self, host: &mut H) {
        host.put(self.slot, &self.node);
    }

    /// The record of its operator.
    pub fn operator<H: Host>(&self, host: &H) -> Operator {
        host.get(offset(self.slot, node::OPERATOR))
    }

    /// Sets the record of its operator.
    pub fn set_operator<H: Host>(&self, host: &mut H, operator: &Operator) {
        host.put(offset(self.slot, node::OPERATOR), operator);
    }

    /// The commitment to the answer of the running (or an earlier) task.
    pub fn commitment<H: Host>(&self, host: &H) -> Commitment {
        host.get(offset(self.slot, node::COMMITMENT))
    }

    /// Writes it.
    pub fn set_commitment<H: Host>(&self, host: &mut H, commitment: &Commitment) {
        host.put(offset(self.slot, node::COMMITMENT), commitment);
    }

    /// The duty that it was singled out for.
    pub fn assignment<H: Host>(&self, host: &H) -> Assignment {
        host.get(offset(self.slot, node::ASSIGNMENT))
    }

    /// Writes it.
    pub fn set_assignment<H: Host>(&self, host: &mut H, assignment: &Assignment) {
        host.put(offset(self.slot, node::ASSIGNMENT), assignment);
    }

    /// The order of the running (or last) task.
    pub fn order<H: Host>(&self, host: &H) -> Order {
        host.get(offset(self.slot, node::ORDER))
    }

    /// Writes it.
    pub fn set_order<H: Host>(&self, host: &mut H, order: &Order) {
        host.put(offset(self.slot, node::ORDER), order);
    }

    /// Sets the payer of the running task, and the rest of its fee.
    pub fn set_escrow<H: Host>(&self, host: &mut H, escrow: &Escrow) {
        host.put(offset(self.slot, node::ESCROW), escrow);
    }

    /// The payer of the running (or last) task, and the rest of its fee.
    pub fn escrow<H: Host>(&self, host: &H) -> Escrow {
        host.get(offset(self.slot, node::ESCROW))
    }

    /// Writes the words that a first task would find never written, two of them for a task of one model.
    pub fn open<H: Host>(&self, host: &mut H) {
        [node::ESCROW, node::ORDER].into_iter().for_each(|word| host.put(offset(self.slot, word), &Models::OPENED));
    }

    /// Writes a starting task, all but its order.
    pub fn assign<H: Host>(&self, host: &mut H, task: &Task) {
        host.put(offset(self.slot, node::ESCROW), &task.escrow);
        task.models.store(host, self.in_use_slot());
    }

    /// The models in use: those of the last started task.
    pub fn in_use<H: Host>(&self, host: &H) -> ModelSet {
        ModelSet::load(host, &self.order(host), self.in_use_slot())
    }

    /// Where they stand if there are several.
    pub fn in_use_slot(&self) -> Word {
        offset(self.slot, node::IN_USE)
    }

    /// Forgets the model that an earlier membership last ran: it is no longer loaded.
    pub fn unload<H: Host>(&self, host: &mut H) {
        let order = self.order(host);
        if order.models > 0 {
            self.set_order(host, &Order { models: 0, model: ModelId(0), ..order });
        }
    }

    /// Its scores, and the counts behind its rating.
    pub fn scores<H: Host>(&self, host: &H) -> Scores {
        host.get(offset(self.slot, node::SCORES))
    }

    /// Counts a judgement for its rating.
    pub fn rate<H: Host>(&self, host: &mut H, right: bool) {
        let mut scores = self.scores(host);
        scores.note(right);
        host.put(offset(self.slot, node::SCORES), &scores);
    }

    /// Puts a score into the pool in the place of the oldest, which it gives; it counts for the rating too.
    pub fn push_score<H: Host>(&self, host: &mut H, score: u8) -> u8 {
        let mut scores = self.scores(host);
        let old = scores.push(score);
        scores.note(score > 0);
        host.put(offset(self.slot, node::SCORES), &scores);
        old
    }
}
