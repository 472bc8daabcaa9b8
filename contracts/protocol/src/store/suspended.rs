//! Suspended: where nodes wait that no draw may find, those excluded by their reliability and those held back while draws are
//! due. A priority pool by the time at which they can return.

use crate::host::Host;
use crate::store::pool::{self, SUSPENDED};
use crate::store::tournament::NONE;
use muster_core::id::NodeId;
use muster_core::record::{Head, Pool};

/// The waiting nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Suspended {
    /// Earliest time at which one can return; 0 when none waits.
    due: u32,
}

/// A waiting node's key: the earliest return is the greatest.
fn key(due: u64, node: NodeId) -> u64 {
    ((!(due as u32)).max(1) as u64) << 32 | node.0 as u64
}

impl Suspended {
    /// As the head word has it.
    pub fn of(head: &Head) -> Suspended {
        Suspended { due: head.parked_due }
    }

    /// Its part of the head word.
    pub fn write(&self, head: &mut Head) {
        head.parked_due = self.due;
    }

    /// Whether a node waits whose time has come.
    pub fn ready(&self, now: u64) -> bool {
        self.due != 0 && self.due as u64 <= now
    }

    /// The node whose time comes first; only while one waits.
    pub fn first<H: Host>(&self, host: &H) -> NodeId {
        NodeId(pool::load(host, SUSPENDED).best as u32)
    }

    /// Lets a node wait until `due`; gives its place.
    pub fn put<H: Host>(&mut self, host: &mut H, node: NodeId, due: u64) -> u32 {
        let mut p = pool::load(host, SUSPENDED);
        let place = pool::insert(host, SUSPENDED, &mut p, key(due, node));
        self.store(host, &p);
        place
    }

    /// Takes the node at a place out.
    pub fn take<H: Host>(&mut self, host: &mut H, place: u32) {
        let mut p = pool::load(host, SUSPENDED);
        pool::remove(host, SUSPENDED, &mut p, place);
        self.store(host, &p);
    }

    fn store<H: Host>(&mut self, host: &mut H, p: &Pool) {
        pool::store(host, SUSPENDED, p);
        self.due = if p.live == 0 { 0 } else { !((p.best >> 32) as u32) };
    }
}

/// The number of places, and a function from a place to the node that waits there and its time.
pub fn places<H: Host>(host: &H) -> (u32, impl Fn(u32) -> Option<(NodeId, u64)> + '_) {
    let p = pool::load(host, SUSPENDED);
    (p.slots, move |place| {
        let key = pool::key_at(host, SUSPENDED, &p, place);
        (key > NONE).then_some((NodeId(key as u32), !((key >> 32) as u32) as u64))
    })
}
