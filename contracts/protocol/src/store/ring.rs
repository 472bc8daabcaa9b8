//! Rings of draws that wait for the hash of their block, first come, first drawn: Pending tasks, and sampled tasks whose
//! validators are called. Nothing else writes their words.

use crate::host::{offset, Host};
use crate::store::layout::{self, entry, PENDING, PENDING_CHOSEN, PENDING_RESERVED};
use crate::store::task::{ModelSet, Task};
use alloc::vec::Vec;
use muster_core::id::NodeId;
use muster_core::record::{Head, Order, Reserved, ValidatorDraw};
use muster_core::word::Word;

/// Places in the ring of tasks; one is always free.
pub const RING: u16 = 4_096;
/// Places in the ring of calls; one is always free.
pub const VALIDATOR_DRAWS: u16 = 256;

/// A ring of waiting draws.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ring {
    first: u16,
    /// Where the next one goes; equal to `first` when none waits.
    end: u16,
    /// Places.
    size: u16,
}

impl Ring {
    /// The Pending tasks, as the head word has them.
    pub fn of_tasks(head: &Head) -> Ring {
        Ring { first: head.pending_head, end: head.pending_tail, size: RING }
    }

    /// Their part of the head word.
    pub fn write_tasks(&self, head: &mut Head) {
        (head.pending_head, head.pending_tail) = (self.first, self.end);
    }

    /// The calls for validators, as the head word has them.
    pub fn of_validator_draws(head: &Head) -> Ring {
        Ring { first: head.validator_draws_head as u16, end: head.validator_draws_tail as u16, size: VALIDATOR_DRAWS }
    }

    /// Their part of the head word.
    pub fn write_validator_draws(&self, head: &mut Head) {
        (head.validator_draws_head, head.validator_draws_tail) = (self.first as u8, self.end as u8);
    }

    /// How many wait.
    pub fn len(&self) -> u32 {
        ((self.size + self.end - self.first) % self.size) as u32
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.first == self.end
    }

    /// Whether no other can wait.
    pub fn is_full(&self) -> bool {
        self.len() as u16 == self.size - 1
    }

    fn place<H: Host>(self, host: &H, i: u64) -> Word {
        let map = if self.size == VALIDATOR_DRAWS { layout::VALIDATOR_DRAWS } else { PENDING };
        entry(host, map, i % self.size as u64)
    }

    /// The slot of the `i`-th that waits.
    pub fn slot<H: Host>(&self, host: &H, i: u32) -> Word {
        self.place(host, self.first as u64 + i as u64)
    }

    /// The first one's slot and order; only while one waits.
    pub fn first<H: Host>(&self, host: &H) -> (Word, Order) {
        let slot = self.slot(host, 0);
        (slot, host.get(offset(slot, 1)))
    }

    /// Puts a task at the end, to be drawn by the hash of `block`.
    pub fn push<H: Host>(&mut self, host: &mut H, task: &Task, block: u64) {
        let place = self.place(host, self.end as u64);
        Task { order: Order { moment: block, ..task.order }, ..*task }.store(host, place);
        self.end = (self.end + 1) % self.size;
    }

    /// Reserves nodes for the task that was put there last.
    pub fn reserve<H: Host>(&self, host: &mut H, nodes: &Reserved) {
        let last = self.place(host, self.first as u64 + self.len() as u64 - 1);
        host.put(offset(last, PENDING_RESERVED), nodes);
    }

    /// The nodes that may be reserved for the task at a slot: those whose records say so.
    pub fn reserved<H: Host>(&self, host: &H, slot: Word) -> Reserved {
        host.get(offset(slot, PENDING_RESERVED))
    }

    /// Notes the nodes that are chosen for the first task, which [`Ring::first`] gave, and its order, which says so: it stays where it is,
    /// and its group is formed next.
    pub fn choose<H: Host>(&self, host: &mut H, slot: Word, order: &Order, nodes: &[NodeId]) {
        host.put(offset(slot, PENDING_CHOSEN), &Reserved::of(nodes));
        host.put(offset(slot, 1), order);
    }

    /// The nodes that are chosen for the task at a slot, if its order says that there are any.
    pub fn chosen<H: Host>(&self, host: &H, slot: Word) -> Vec<NodeId> {
        let chosen: Reserved = host.get(offset(slot, PENDING_CHOSEN));
        chosen.all().into_iter().filter(|node| node.0 > 0).collect()
    }

    /// Takes the first task out, which [`Ring::first`] gave.
    pub fn take<H: Host>(&mut self, host: &H, (slot, order): (Word, Order)) -> Task {
        let task = Task { escrow: host.get(slot), order, models: ModelSet::load(host, &order, offset(slot, 2)) };
        self.drop_first();
        task
    }

    /// Puts the call for a sampled task's validators at the end, to be drawn by the hash of `block`.
    pub fn push_validator_draw<H: Host>(&mut self, host: &mut H, call: &ValidatorDraw, order: &Order, block: u64) {
        let place = self.place(host, self.end as u64);
        host.put(place, call);
        host.put(offset(place, 1), &Order { moment: block, ..*order });
        self.end = (self.end + 1) % self.size;
    }

    /// Takes the first call out, which [`Ring::first`] gave.
    pub fn take_validator_draw<H: Host>(&mut self, host: &H, slot: Word) -> ValidatorDraw {
        self.drop_first();
        host.get(slot)
    }

    fn drop_first(&mut self) {
        self.first = (self.first + 1) % self.size;
        if self.is_empty() {
            // Starting again at 0 reuses words that are not zero.
            (self.first, self.end) = (0, 0);
        }
    }
}
