//! Tournament trees: the greatest of many 64-bit keys, in words of four.
//!
//! Level 0 holds the keys; the word above holds the greatest key of each word below. Places are
//! fixed, so nothing moves when a key comes or goes: only the path to the top is written, and only
//! as far as the greatest key changes. Keys 0 and 1 both mean "none": a place once used is emptied
//! with 1, so that words in use never fall back to zero and stay cheap to write. In a pool's tree a free place names another
//! instead ([`crate::store::pool`]), by a number below [`LEAST`].

use crate::host::Host;
use crate::store::layout::{entry, TOURNAMENT_TREES};
use muster_core::word::Word;

/// A place emptied.
pub const NONE: u64 = 1;
/// The least key of a pool: a smaller value marks a free place.
pub const LEAST: u64 = 1 << 32;

/// One tree among all: a kind, and a number within the kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TournamentTree(u64);

impl TournamentTree {
    /// Keys of a pool, greatest first.
    pub const fn best(pool: u32) -> TournamentTree {
        TournamentTree(pool as u64)
    }
    /// The greatest key of a word; [`NONE`] if it has none.
    fn top(self, w: Word) -> u64 {
        let top = greatest(w);
        if self.0 >> 32 == 0 && top < LEAST {
            NONE
        } else {
            top
        }
    }
    /// The complements of a pool's keys, from level 1 up; level 0 is shared with [`TournamentTree::best`].
    pub const fn worst(pool: u32) -> TournamentTree {
        TournamentTree(1 << 32 | pool as u64)
    }
    /// Best key of each of a grade's queues for any GPU, by VRAM.
    pub const fn sizes(grade: u8) -> TournamentTree {
        TournamentTree(2 << 32 | grade as u64)
    }
    /// Complement of the worst key of each queue.
    pub const GROUPS: TournamentTree = TournamentTree(3 << 32);
    /// Stake + 1 of each joined node.
    pub const STAKES: TournamentTree = TournamentTree(4 << 32);

    fn slot<H: Host>(self, host: &H, level: u32, index: u32) -> Word {
        // 35 bits of tree, 5 of level, 24 of index.
        entry(host, TOURNAMENT_TREES, self.0 << 29 | (level as u64) << 24 | index as u64)
    }

    /// The word at `level` above place `pos`.
    pub fn word<H: Host>(self, host: &H, level: u32, pos: u32) -> Word {
        host.load(self.slot(host, level, pos >> (2 * level + 2)))
    }

    /// Sets the key of `pos` at `level`, and the words that follow from it up to `height`.
    ///
    /// Gives the greatest key of the whole tree, or none if that stays as it was. Costs one word
    /// (5,000 gas) per level up to the first whose greatest key stays: the word above has it already.
    pub fn set<H: Host>(self, host: &mut H, level: u32, height: u32, pos: u32, mut key: u64) -> Option<u64> {
        for level in level..height {
            let slot = self.slot(host, level, pos >> (2 * level + 2));
            let mut w = host.load(slot);
            let former = self.top(w);
            w.0[(pos >> (2 * level) & 3) as usize] = key;
            host.store(slot, w);
            key = self.top(w);
            if key == former {
                return None;
            }
        }
        Some(key)
    }

    /// Makes room for a place beyond `4^height`: the old top becomes the first of four.
    pub fn grow<H: Host>(self, host: &mut H, height: u32, top: u64) {
        let slot = self.slot(host, height, 0);
        let mut w = host.load(slot);
        w.0[0] = top.max(NONE);
        host.store(slot, w);
    }

    /// The place, at level `to`, of a key that is the greatest under `index` at level `from`.
    pub fn descend<H: Host>(self, host: &H, from: u32, mut index: u32, to: u32) -> u32 {
        for level in (to..from).rev() {
            let w = host.load(self.slot(host, level, index));
            index = index * 4 + lane_of(w, greatest(w));
        }
        index
    }

    /// The greatest key at a place up to `pos`, with its place; `height` levels.
    pub fn best_up_to<H: Host>(self, host: &H, height: u32, pos: u32) -> Option<(u64, u32)> {
        let mut best = (NONE, 0, 0);
        for level in (0..height).rev() {
            let above = pos >> (2 * level + 2);
            let w = host.load(self.slot(host, level, above));
            let lane = (pos >> (2 * level) & 3) as usize;
            let last = if level == 0 { lane + 1 } else { lane };
            for (i, &key) in w.0[..last].iter().enumerate() {
                if key > best.0 {
                    best = (key, level, above * 4 + i as u32);
                }
            }
            if w.0[lane] <= best.0 {
                break;
            }
        }
        (best.0 > NONE).then(|| (best.0, self.descend(host, best.1, best.2, 0)))
    }
}

/// Levels of a tree with `places` places.
#[inline]
pub fn height(places: u32) -> u32 {
    if places <= 1 {
        0
    } else {
        (33 - (places - 1).leading_zeros()) / 2
    }
}

/// The greatest key of a word.
#[inline]
pub fn greatest(w: Word) -> u64 {
    let [a, b, c, d] = w.0;
    a.max(b).max(c.max(d))
}

/// The least key of a word of a pool's keys; [`u64::MAX`] if it has none.
#[inline]
pub fn least(w: Word) -> u64 {
    w.0.iter().fold(u64::MAX, |least, &k| if k >= LEAST && k < least { k } else { least })
}

/// The lane of a word that holds `key`.
#[inline]
pub fn lane_of(w: Word, key: u64) -> u32 {
    w.0.iter().position(|&k| k == key).unwrap_or(0) as u32
}
