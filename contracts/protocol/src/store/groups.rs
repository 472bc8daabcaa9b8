//! Validation groups: each has a place of its own from the draw of its members to its settlement. Nothing else writes their words.

use crate::host::{offset, Host};
use crate::store::layout::group as words;
use crate::store::layout::{entry, slot, GROUPS, GROUP_PLACES};
use crate::store::task::{ModelSet, Task};
use muster_core::id::NodeId;
use muster_core::record::{Escrow, Members, Membership, Order, Places, Stage, MEMBERS, MEMBERS_MOST};
use muster_core::word::Word;

/// The places of groups.
pub fn places<H: Host>(host: &H) -> Places {
    host.get(slot(GROUP_PLACES))
}

/// A validation group: its place, and the words read of it.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Its place, from 1.
    pub place: u32,
    slot: Word,
    /// Its members; of a validation group there are [`MEMBERS`].
    pub members: [Membership; MEMBERS_MOST],
    /// Words that they take.
    pub(crate) words: u8,
}

/// The word of its record in which a member stands.
fn word_of(member: usize) -> u64 {
    match member / MEMBERS {
        0 => words::MEMBERS,
        word => words::MORE_MEMBERS + word as u64 - 1,
    }
}

/// The task of the group at a place.
pub fn task_at<H: Host>(host: &H, place: u32) -> Task {
    Task::load(host, offset(entry(host, GROUPS, place as u64), words::ESCROW))
}

impl Group {
    /// The group at a place; none if it is free.
    pub fn at<H: Host>(host: &H, place: u32) -> Option<Group> {
        let slot = entry(host, GROUPS, place as u64);
        let first: Members = host.get(offset(slot, words::MEMBERS));
        let words = first.words();
        let mut members = [Membership::default(); MEMBERS_MOST];
        for (i, three) in members.chunks_exact_mut(MEMBERS).take(words as usize).enumerate() {
            let word: Members = if i == 0 { first } else { host.get(offset(slot, word_of(i * MEMBERS))) };
            three.copy_from_slice(&word.all());
        }
        (words > 0).then_some(Group { place, slot, members, words })
    }

    /// Takes a free place for a task, whose order's flags say whether it is scored, and this many members.
    pub fn new<H: Host>(host: &mut H, task: &Task, count: usize) -> Group {
        let mut places = places(host);
        let place = places.next();
        let slot = entry(host, GROUPS, place as u64);
        if places.free > 0 {
            places.free = host.get::<Members>(offset(slot, words::MEMBERS)).t0;
        } else {
            places.issued = place;
        }
        places.live += 1;
        host.put(self::slot(GROUP_PLACES), &places);
        task.store(host, offset(slot, words::ESCROW));
        Group { place, slot, members: [Membership::default(); MEMBERS_MOST], words: count.div_ceil(MEMBERS).max(1) as u8 }
    }

    /// Its task.
    pub fn task<H: Host>(&self, host: &H) -> Task {
        Task::load(host, offset(self.slot, words::ESCROW))
    }

    pub fn order<H: Host>(&self, host: &H) -> Order {
        host.get(offset(self.slot, words::ORDER))
    }

    pub fn escrow<H: Host>(&self, host: &H) -> Escrow {
        host.get(offset(self.slot, words::ESCROW))
    }

    /// The models of its task, whose order is given.
    pub fn models<H: Host>(&self, host: &H, order: &Order) -> ModelSet {
        ModelSet::load(host, order, offset(self.slot, words::MODELS))
    }

    /// A member's commitment, or its revealed value.
    pub fn answer<H: Host>(&self, host: &H, member: usize) -> Word {
        host.load(self.answer_slot(member))
    }

    fn answer_slot(&self, member: usize) -> Word {
        let from = if member < MEMBERS { words::ANSWERS } else { words::MORE_ANSWERS - MEMBERS as u64 };
        offset(self.slot, from + member as u64)
    }

    pub fn set_answer<H: Host>(&self, host: &mut H, member: usize, answer: Word) {
        host.store(self.answer_slot(member), answer);
    }

    /// Writes the word in which a member stands.
    pub fn put<H: Host>(&self, host: &mut H, member: usize) {
        let first = member / MEMBERS * MEMBERS;
        let three = core::array::from_fn(|i| self.members[first + i]);
        host.put(offset(self.slot, word_of(first)), &Members::of(&three, self.words));
    }

    /// Frees its place.
    pub fn free<H: Host>(&self, host: &mut H) {
        let mut places = places(host);
        host.put(offset(self.slot, words::MEMBERS), &Members::vacant(places.free));
        places.free = self.place;
        places.live -= 1;
        host.put(slot(GROUP_PLACES), &places);
    }

    /// Where a node stands among the members.
    pub fn find(&self, node: NodeId) -> Option<usize> {
        self.members.iter().position(|m| m.node == node && m.stage != Stage::None)
    }

    /// When reveals began, of a group formed at `formed`: then, or at the last commitment, or deadline that passed; none while somebody
    /// runs the task or is still to begin.
    pub fn opened(&self, now: u64, formed: u64) -> Option<u64> {
        let waits = |m: &Membership| match m.stage {
            Stage::Called => true,
            Stage::Running => now <= m.moment as u64,
            _ => false,
        };
        let last = self.members.iter().fold(formed, |last, m| last.max(m.moment as u64));
        (!self.members.iter().any(waits)).then_some(last)
    }

    /// Whether no member is left that has committed and not revealed.
    pub fn revealed(&self) -> bool {
        self.members.iter().all(|m| m.stage != Stage::Committed)
    }
}

/// The part of a commitment that is kept: its first 24 bytes.
pub fn kept(mut hash: [u8; 32]) -> Word {
    hash[24..].fill(0);
    Word::from_be_bytes(hash)
}
