//! The ring of Pending tasks: first come, first drawn. Nothing else writes its words.

use crate::host::{offset, Host, ModelSet, Task};
use crate::layout::{entry, PENDING};
use muster_core::record::{Head, Order};
use muster_core::word::Word;

/// Places in the ring; one is always free.
pub const RING: u16 = 4_096;

/// The waiting tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ring {
    first: u16,
    /// Where the next one goes; equal to `first` when none waits.
    end: u16,
}

impl Ring {
    /// As the head word has it.
    pub fn of(head: &Head) -> Ring {
        Ring { first: head.pending_head, end: head.pending_tail }
    }

    /// Its part of the head word.
    pub fn write(&self, head: &mut Head) {
        (head.pending_head, head.pending_tail) = (self.first, self.end);
    }

    /// Tasks that wait.
    pub fn len(&self) -> u32 {
        ((RING + self.end - self.first) % RING) as u32
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.first == self.end
    }

    /// Whether no other can wait.
    pub fn is_full(&self) -> bool {
        self.len() as u16 == RING - 1
    }

    /// The slot of the `i`-th waiting task.
    pub fn slot<H: Host>(&self, host: &H, i: u32) -> Word {
        entry(host, PENDING, (self.first as u64 + i as u64) % RING as u64)
    }

    /// The first task's slot and order; only while one waits.
    pub fn first<H: Host>(&self, host: &H) -> (Word, Order) {
        let slot = self.slot(host, 0);
        (slot, host.get(offset(slot, 1)))
    }

    /// Puts a task at the end, to be drawn by the hash of `block`.
    pub fn push<H: Host>(&mut self, host: &mut H, task: &Task, block: u64) {
        let place = entry(host, PENDING, self.end as u64);
        Task { order: Order { moment: block, ..task.order }, ..*task }.store(host, place);
        self.end = (self.end + 1) % RING;
    }

    /// Takes the first task out, which [`Ring::first`] gave.
    pub fn take<H: Host>(&mut self, host: &H, (slot, order): (Word, Order)) -> Task {
        let task = Task { escrow: host.get(slot), order, models: ModelSet::load(host, &order, offset(slot, 2)) };
        self.first = (self.first + 1) % RING;
        if self.is_empty() {
            // Starting again at 0 reuses words that are not zero.
            *self = Ring { first: 0, end: 0 };
        }
        task
    }
}
