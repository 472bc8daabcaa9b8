//! The agenda: earlier ticks first, and within a tick in the order of planning.
//!
//! A heap would order all entries, most of which are hours ahead. Here near entries lie in a list for each tick, in the order of
//! planning, and distant ones are only sorted into blocks of ticks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Ticks of a block. Lists are kept for the block that is being handed out, and for the next.
const BLOCK: u64 = 256;
/// Lists.
const LISTS: u64 = 2 * BLOCK;

/// The planned entries.
#[derive(Debug)]
pub struct Agenda<T> {
    /// The tick that is being handed out.
    now: u64,
    /// How much of its list has been.
    handed: usize,
    /// By tick, those of two blocks.
    near: Vec<Vec<T>>,
    /// How much is in them that has not been handed out.
    waiting: usize,
    /// By block, with the tick.
    far: BTreeMap<u64, Vec<(u64, T)>>,
    /// Entries for ticks that are over.
    late: BinaryHeap<Reverse<(u64, u64, T)>>,
    /// How often something was planned for a tick that was over.
    lates: u64,
    /// The entry that comes before all others in its tick; there is at most one.
    first: Option<(u64, T)>,
}

impl<T> Default for Agenda<T> {
    /// Nothing is due.
    fn default() -> Self {
        Self {
            now: 0,
            handed: 0,
            near: (0..LISTS).map(|_| Vec::new()).collect(),
            waiting: 0,
            far: BTreeMap::new(),
            late: BinaryHeap::new(),
            lates: 0,
            first: None,
        }
    }
}

impl<T: Copy + Ord> Agenda<T> {
    /// Plans something.
    pub fn plan(&mut self, tick: u64, what: T) {
        if tick < self.now {
            self.lates += 1;
            self.late.push(Reverse((tick, self.lates, what)));
        } else if tick / BLOCK <= self.now / BLOCK + 1 {
            self.near[(tick % LISTS) as usize].push(what);
            self.waiting += 1;
        } else {
            self.far.entry(tick / BLOCK).or_default().push((tick, what));
        }
    }

    /// Plans an entry before all others in a later tick.
    pub fn plan_first(&mut self, tick: u64, what: T) {
        debug_assert!(tick > self.now && self.first.is_none(), "one at a time, and not for a tick that has begun");
        self.first = Some((tick, what));
    }

    /// The next entry, and its tick.
    pub fn pop(&mut self) -> Option<(u64, T)> {
        if let Some(Reverse((tick, _, what))) = self.late.pop() {
            return Some((tick, what));
        }
        loop {
            if let Some((tick, what)) = self.first.take_if(|(tick, _)| *tick <= self.now) {
                return Some((tick, what));
            }
            let list = &mut self.near[(self.now % LISTS) as usize];
            if let Some(what) = list.get(self.handed) {
                self.handed += 1;
                self.waiting -= 1;
                return Some((self.now, *what));
            }
            list.clear();
            self.handed = 0;
            if self.waiting > 0 || self.first.is_some() {
                self.now += 1;
            } else {
                // Nothing in two blocks: on to the next that has something, by way of the one before it.
                let block = *self.far.first_key_value()?.0;
                self.now = (block - 1) * BLOCK;
            }
            if self.now.is_multiple_of(BLOCK) {
                for (tick, what) in self.far.remove(&(self.now / BLOCK + 1)).unwrap_or_default() {
                    self.near[(tick % LISTS) as usize].push(what);
                    self.waiting += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn it_hands_out_what_a_heap_would() {
        let random = &mut Random::named(&[7]);
        for _ in 0..20 {
            let (mut agenda, mut heap) = (Agenda::default(), BinaryHeap::new());
            let (mut now, mut planned, mut drawing) = (0u64, 0u64, false);
            for _ in 0..20_000 {
                for _ in 0..random.below(3) {
                    let ahead = match random.below(8) {
                        0 => random.below(200_000),
                        1 => random.below(3 * LISTS as usize),
                        2 => 0,
                        _ => random.below(300),
                    };
                    // At times for a tick that is over.
                    let tick = (now + ahead as u64).saturating_sub(random.below(50) as u64 / 48 * 5);
                    planned += 1;
                    agenda.plan(tick, planned);
                    heap.push(Reverse((tick, true, planned)));
                }
                if !drawing && random.below(4) == 0 {
                    (drawing, planned) = (true, planned + 1);
                    agenda.plan_first(now + 1, planned);
                    heap.push(Reverse((now + 1, false, planned)));
                }
                let expected = heap.pop().map(|Reverse((tick, other, what))| {
                    drawing &= other;
                    now = now.max(tick);
                    (tick, what)
                });
                assert_eq!(agenda.pop(), expected);
            }
            while let Some(Reverse((tick, _, what))) = heap.pop() {
                assert_eq!(agenda.pop(), Some((tick, what)));
            }
            assert_eq!(agenda.pop(), None);
        }
    }
}
