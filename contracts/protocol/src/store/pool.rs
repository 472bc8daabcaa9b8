//! Priority pools: entries with a 64-bit key each, the greatest and the least known at any time.
//!
//! An entry keeps its place from insertion to removal. Costs, for n places: [`insert`] and
//! [`remove`] write one leaf word, and log4(n) - 1 words of each tree at worst; one on average.
//!
//! Free places are a list, used last in, first out. Instead of a key, a free place has 1 + the free place that is used after it, counted
//! from 1. The pool's record names the first. So no other word is read or written for them.

use crate::host::Host;
use crate::store::layout::{entry, POOLS};
use crate::store::tournament::{height, lane_of, least, TournamentTree, LEAST, NONE};
use muster_core::id::QueueId;
use muster_core::record::Pool;

/// The pool of nodes that wait in [`crate::store::suspended`]; all others are queues. No queue has this number.
pub const SUSPENDED: QueueId = QueueId(u32::MAX);

/// Reads a pool's record.
pub fn load<H: Host>(host: &H, id: QueueId) -> Pool {
    host.get(entry(host, POOLS, id.0 as u64))
}

/// Writes a pool's record.
pub fn store<H: Host>(host: &mut H, id: QueueId, pool: &Pool) {
    let slot = entry(host, POOLS, id.0 as u64);
    host.put(slot, &Pool { used: 1, ..*pool });
}

/// The key at a place; [`NONE`] if the place is free. `pool` is the pool's record.
pub fn key_at<H: Host>(host: &H, id: QueueId, pool: &Pool, place: u32) -> u64 {
    let key = if place >= pool.slots {
        NONE
    } else if pool.slots == 1 {
        pool.best
    } else {
        lane(host, id, place)
    };
    if key < LEAST {
        NONE
    } else {
        key
    }
}

/// The word of a place of a pool that has had more than one.
fn lane<H: Host>(host: &H, id: QueueId, place: u32) -> u64 {
    TournamentTree::best(id.0).word(host, 0, place).0[(place & 3) as usize]
}

/// Puts a key (at least [`LEAST`]) into a pool; gives its place. The caller stores `pool`.
pub fn insert<H: Host>(host: &mut H, id: QueueId, pool: &mut Pool, key: u64) -> u32 {
    let place = if pool.free > 0 {
        let place = pool.free - 1;
        pool.free = (lane(host, id, place) - NONE) as u32;
        place
    } else {
        let place = pool.slots;
        let old = height(place);
        pool.slots += 1;
        if place > 0 && height(pool.slots) > old {
            TournamentTree::best(id.0).grow(host, old, pool.best);
            if old > 0 {
                TournamentTree::worst(id.0).grow(host, old, !pool.worst);
            }
        }
        place
    };
    pool.live += 1;
    set(host, id, pool, place, key);
    place
}

/// Takes the key at `place` out. The caller stores `pool`.
pub fn remove<H: Host>(host: &mut H, id: QueueId, pool: &mut Pool, place: u32) {
    set(host, id, pool, place, NONE + pool.free as u64);
    pool.live -= 1;
    pool.free = place + 1;
    if pool.live == 0 {
        *pool = Pool { index: pool.index, used: 1, ..Pool::default() };
    }
}

/// Puts another key (at least [`LEAST`]) at a place that has one. The caller stores `pool`.
pub fn replace<H: Host>(host: &mut H, id: QueueId, pool: &mut Pool, place: u32, key: u64) {
    set(host, id, pool, place, key);
}

/// The place of the greatest key.
pub fn best_place<H: Host>(host: &H, id: QueueId, pool: &Pool) -> u32 {
    TournamentTree::best(id.0).descend(host, height(pool.slots), 0, 0)
}

/// The place of the least key.
pub fn worst_place<H: Host>(host: &H, id: QueueId, pool: &Pool) -> u32 {
    let h = height(pool.slots);
    if h == 0 {
        return 0;
    }
    let word = TournamentTree::worst(id.0).descend(host, h, 0, 1);
    let leaf = TournamentTree::best(id.0).word(host, 0, word * 4);
    word * 4 + lane_of(leaf, least(leaf))
}

fn set<H: Host>(host: &mut H, id: QueueId, pool: &mut Pool, place: u32, key: u64) {
    let h = height(pool.slots);
    if h == 0 {
        (pool.best, pool.worst) = if key >= LEAST { (key, key) } else { (0, 0) };
        return;
    }
    let best = TournamentTree::best(id.0);
    let former = least(best.word(host, 0, place));
    if let Some(k) = best.set(host, 0, h, place, key) {
        pool.best = if k > NONE { k } else { 0 };
    }
    let low = least(best.word(host, 0, place));
    // A value that does not trail its word does not concern the other tree.
    if low != former {
        let key = if low == u64::MAX { NONE } else { !low };
        if let Some(k) = TournamentTree::worst(id.0).set(host, 1, h, place, key) {
            pool.worst = if k > NONE { !k } else { 0 };
        }
    }
}
