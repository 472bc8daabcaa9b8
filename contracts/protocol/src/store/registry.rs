//! GPU groups, and which node holds which model.
//!
//! Holders of a model stand in an array that changes only when a node reports, joins for the first
//! time with it, or is purged; starting and ending tasks leaves it alone. The array's last one to
//! seven entries live beside its length, so adding a holder costs one word six times out of seven.
//! A node that drops a model, or quits, keeps its entry, marked stale: rejoining or reporting the
//! model again costs no array write, and anyone may purge a stale entry. So a node is in a model's
//! array exactly if the model is in the node's own list, once.

use crate::abi::{emit, IMuster::GpuGroupListed};
use crate::host::{offset, Host};
use crate::store::layout::{entry, node, GPU_COUNTS, GPU_LISTED, GPU_NAMES, GPU_NUMBERS, HOLDERS, SIZES_JOINED, SIZES_OF_TRIOS};
use crate::store::node::NodeHandle;
use crate::store::sampler::{self, Among, Counts, GPU_MODELS_MAX, VRAM_MAX};
use crate::store::task::ModelSet;
use crate::store::text::{put_text, text};
use crate::Result;
use alloc::string::String;
use alloc::vec::Vec;
use muster_core::id::{GpuGroup, ModelId, NodeId};
use muster_core::record::{Models, Size, MEMBERS, MODELS_PER_WORD, NODE_MODELS};
use muster_core::word::Word;

/// Longest GPU name, in bytes.
pub const GPU_NAME_MAX: usize = 64;

/// Words of holders, beyond the first of each model, that a [`roll`] reads.
const ROLL_WORDS: u32 = 4;
/// Entries that stay beside the array's length.
const INLINE: u32 = 7;

// ---------------------------------------------------------------- GPU groups

/// Whether a name is printable ASCII, not empty and not longer than `most` bytes.
pub fn is_name(name: &[u8], most: usize) -> bool {
    (1..=most).contains(&name.len()) && name.iter().all(|c| (b' '..=b'~').contains(c))
}

/// Refuses names that no GPU can have.
pub fn check_gpu_name(name: &[u8]) -> Result<()> {
    ensure!(is_name(name, GPU_NAME_MAX), BadGpuName(name.len(), GPU_NAME_MAX));
    Ok(())
}

/// See `IMuster.gpuGroup`.
pub fn find_gpu_group<H: Host>(host: &H, name: &[u8], vram: u16) -> Result<GpuGroup> {
    check_gpu_name(name)?;
    gpu_group(host, name, vram).ok_or_else(|| refusal!(GpuNameUnknown(name, vram)))
}

fn gpu_number_slot<H: Host>(host: &H, name: &[u8], vram: u16) -> Word {
    let mut bytes = Vec::with_capacity(name.len() + 2);
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(&vram.to_be_bytes());
    host.mapping(GPU_NUMBERS, Word::from_be_bytes(host.keccak(&bytes)))
}

/// The group of a GPU name and VRAM size, if any node ever joined with it.
pub fn gpu_group<H: Host>(host: &H, name: &[u8], vram: u16) -> Option<GpuGroup> {
    let number = host.load(gpu_number_slot(host, name, vram)).0[0];
    (number > 0).then(|| GpuGroup::of(number as u16, vram))
}

/// GPU models of a VRAM size.
pub fn gpu_count<H: Host>(host: &H, vram: u16) -> u32 {
    host.get::<Size>(entry(host, GPU_COUNTS, vram as u64)).models
}

/// Joined nodes of a GPU group; none if there is no such group.
pub fn joined<H: Host>(host: &H, group: GpuGroup) -> Option<u32> {
    Counts::load(host, Among::Active, group).joined()
}

/// Whether a GPU group has joined nodes; none if there is no such group.
pub fn manned<H: Host>(host: &H, group: GpuGroup) -> Option<bool> {
    Counts::load(host, Among::Idle, group).manned()
}

/// Notes that a group is to get its first joined node (`come`), or to lose its last; `largest` is the largest VRAM of all joined nodes,
/// and is kept right.
///
/// Two words; at most five where a size gets its first node or loses its last.
#[inline(never)]
pub fn count_manned<H: Host>(host: &mut H, group: GpuGroup, come: bool, largest: &mut u16) {
    sampler::set_manned(host, group, come);
    let vram = group.vram();
    let at = entry(host, GPU_COUNTS, vram as u64);
    let mut size: Size = host.get(at);
    let manned = size.manned > 0;
    size.manned = if come { size.manned + 1 } else { size.manned.saturating_sub(1) };
    host.put(at, &size);
    if manned == (size.manned > 0) {
        return;
    }
    let at = |word: u16| entry(&*host, SIZES_JOINED, word as u64);
    let (slot, mut w) = (at(vram / 256), host.load(at(vram / 256)));
    w.set_bits(vram as u32 % 256, 1, come as u64);
    if come {
        *largest = vram.max(*largest);
    } else if vram == *largest {
        let highest = |w: &Word| (0..256).rev().find(|&i| w.bits(i, 1) > 0);
        *largest = (0..=vram / 256)
            .rev()
            .find_map(|word| {
                let bits = if word == vram / 256 { w } else { host.load(at(word)) };
                highest(&bits).map(|i| word * 256 + i as u16)
            })
            .unwrap_or(0);
    }
    host.store(slot, w);
}

/// Whether the nodes of a GPU group answer bit by bit alike.
pub fn listed<H: Host>(host: &H, group: GpuGroup) -> bool {
    !host.load(entry(host, GPU_LISTED, group.0 as u64)).is_zero()
}

/// Says whether they do; of a GPU group that exists.
pub fn set_listed<H: Host>(host: &mut H, group: GpuGroup, on: bool) {
    if listed(host, group) != on {
        let at = entry(host, GPU_LISTED, group.0 as u64);
        host.store(at, Word::from(on as u64));
        if joined(host, group) >= Some(MEMBERS as u32) {
            count_trio(host, group, on);
        }
    }
    emit::<GpuGroupListed>(host, (group,), (on,));
}

/// Notes that a group has got its third joined node (`come`), or lost it: three nodes that answer alike can serve tasks for as many,
/// if it is listed.
#[expect(clippy::bool_to_int_with_if, reason = "one less, where it was the third that came")]
pub fn count_joined<H: Host>(host: &mut H, group: GpuGroup, come: bool) {
    let third = MEMBERS as u32 - if come { 0 } else { 1 };
    if joined(host, group) == Some(third) && listed(host, group) {
        count_trio(host, group, come);
    }
}

#[inline(never)]
fn count_trio<H: Host>(host: &mut H, group: GpuGroup, come: bool) {
    let vram = group.vram();
    let at = entry(host, GPU_COUNTS, vram as u64);
    let mut size: Size = host.get(at);
    let before = size.trios;
    size.trios = if come { before + 1 } else { before.saturating_sub(1) };
    host.put(at, &size);
    if (before == 0) != (size.trios == 0) {
        let at = entry(host, SIZES_OF_TRIOS, vram as u64 / 256);
        let mut w = host.load(at);
        w.set_bits(vram as u32 % 256, 1, come as u64);
        host.store(at, w);
    }
}

/// The smallest VRAM from `vram` on of which a listed GPU group has three joined nodes. At most four words.
#[inline(never)]
pub fn size_of_trios<H: Host>(host: &H, vram: u16) -> Option<u16> {
    (vram / 256..=VRAM_MAX / 256).find_map(|word| {
        let w = host.load(entry(host, SIZES_OF_TRIOS, word as u64));
        let from = if word == vram / 256 { vram % 256 } else { 0 };
        (from..256).find(|&i| w.bits(i as u32, 1) > 0).map(|i| word * 256 + i)
    })
}

/// Creates the group of a new GPU name; the name is stored as a Solidity string.
#[inline(never)]
pub fn create_gpu_group<H: Host>(host: &mut H, name: &[u8], vram: u16) -> Result<GpuGroup> {
    let count = entry(host, GPU_COUNTS, vram as u64);
    let size: Size = host.get(count);
    let number = size.models;
    ensure!(number < GPU_MODELS_MAX, TooManyGpuModels(vram));
    host.put(count, &Size { models: number + 1, ..size });
    let slot = gpu_number_slot(host, name, vram);
    host.store(slot, Word::from(number as u64 + 1));
    sampler::add_group(host, vram as u32, number);
    let group = GpuGroup::of(number as u16 + 1, vram);
    put_text(host, entry(host, GPU_NAMES, group.0 as u64), name);
    Ok(group)
}

/// The name of a GPU group; empty if there is no such group.
pub fn gpu_name<H: Host>(host: &H, group: GpuGroup) -> String {
    text(host, entry(host, GPU_NAMES, group.0 as u64), GPU_NAME_MAX)
}

// ---------------------------------------------------------------- holders of a model

fn holders_slot<H: Host>(host: &H, model: ModelId, word: u32) -> Word {
    // Word 0 is the length and the inline entries; words 1.. are the spilled ones.
    entry(host, HOLDERS, model.0 << 24 | word as u64)
}

/// Where the entries beyond the spilled words begin.
fn spilled(count: u32) -> u32 {
    if count == 0 {
        0
    } else {
        (count - 1) / INLINE * INLINE
    }
}

/// A model's holders, with the first word read.
#[derive(Clone, Copy, Debug)]
pub struct Holders {
    model: ModelId,
    head: Word,
}

impl Holders {
    /// Reads the first word of a model's holders.
    pub fn load<H: Host>(host: &H, model: ModelId) -> Holders {
        Holders { model, head: host.load(holders_slot(host, model, 0)) }
    }

    /// Entries, stale ones included.
    pub fn len(&self) -> u32 {
        self.head.lane32(0)
    }

    /// Whether there is no entry at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The node at a position below [`Holders::len`].
    pub fn get<H: Host>(&self, host: &H, position: u32) -> NodeId {
        NodeId(if position >= spilled(self.len()) {
            self.head.lane32(1 + position % INLINE)
        } else {
            host.load(holders_slot(host, self.model, 1 + position / INLINE)).lane32(position % INLINE)
        })
    }

    /// Words of it beyond the first.
    pub(crate) fn further_words(&self) -> u32 {
        spilled(self.len()) / INLINE
    }

    /// Appends a node.
    pub fn push<H: Host>(&mut self, host: &mut H, node: NodeId) {
        let n = self.len();
        if n > 0 && n.is_multiple_of(INLINE) {
            let mut full = Word::ZERO;
            (0..INLINE).for_each(|i| full.set_lane32(i, self.head.lane32(1 + i)));
            let slot = holders_slot(host, self.model, n / INLINE);
            host.store(slot, full);
        }
        self.head.set_lane32(1 + n % INLINE, node.0);
        self.store_len(host, n + 1);
    }

    /// Removes the entry at a position; the last one takes its place.
    pub fn swap_remove<H: Host>(&mut self, host: &mut H, position: u32) {
        let last = self.len() - 1;
        let NodeId(moved) = self.get(host, last);
        if position >= spilled(self.len()) {
            self.head.set_lane32(1 + position % INLINE, moved);
        } else {
            let slot = holders_slot(host, self.model, 1 + position / INLINE);
            let mut w = host.load(slot);
            w.set_lane32(position % INLINE, moved);
            host.store(slot, w);
        }
        if last > 0 && last.is_multiple_of(INLINE) {
            let w = host.load(holders_slot(host, self.model, last / INLINE));
            (0..INLINE).for_each(|i| self.head.set_lane32(1 + i, w.lane32(i)));
        }
        self.store_len(host, last);
    }

    fn store_len<H: Host>(&mut self, host: &mut H, n: u32) {
        self.head.set_lane32(0, n);
        let slot = holders_slot(host, self.model, 0);
        host.store(slot, self.head);
    }
}

/// All nodes entered as holders of one of these models, stale entries included: other nodes hold none. None if that takes more than
/// [`ROLL_WORDS`] beyond the first ones, or where three of four joined nodes are entered for one model: there a try seldom falls on another
/// node.
#[inline(never)]
pub fn roll<H: Host>(host: &H, lists: &[Holders], joined: u32) -> Option<Vec<NodeId>> {
    let (mut all, mut words) = (Vec::new(), 0);
    for list in lists {
        words += list.further_words();
        if list.len() * 4 >= joined * 3 {
            return None;
        }
    }
    if words > ROLL_WORDS {
        return None;
    }
    for list in lists {
        for word in 0..list.further_words() {
            let w = host.load(holders_slot(host, list.model, 1 + word));
            all.extend((0..INLINE).map(|i| NodeId(w.lane32(i))));
        }
        all.extend((0..list.len() - spilled(list.len())).map(|i| NodeId(list.head.lane32(1 + i))));
    }
    Some(all)
}

// ---------------------------------------------------------------- models of a node

/// A node's own list, read whole: entries and which of them are stale.
#[derive(Clone, Debug)]
pub struct Held {
    slot: Word,
    /// `(model, stale)`; the index is the entry's place.
    pub entries: Vec<(ModelId, bool)>,
    written: u32,
}

impl Held {
    /// Reads the list of `count` entries at a node's slot.
    pub fn load<H: Host>(host: &H, slot: Word, count: u8) -> Held {
        let mut entries = Vec::with_capacity(count as usize);
        for w in 0..(count as u32).div_ceil(MODELS_PER_WORD) {
            let m: Models = host.get(offset(slot, node::MODELS + w as u64));
            for (i, id) in [m.m0, m.m1, m.m2, m.m3, m.m4, m.m5].into_iter().enumerate() {
                if entries.len() < count as usize {
                    entries.push((id, m.flags >> i & 1 != 0));
                }
            }
        }
        Held { slot, entries, written: count as u32 }
    }

    /// Writes the list back; gives the number of entries for the node's record.
    pub fn store<H: Host>(&self, host: &mut H) -> u8 {
        let words = self.written.max(self.entries.len() as u32).div_ceil(MODELS_PER_WORD);
        for w in 0..words {
            let from = (w * MODELS_PER_WORD) as usize;
            let id = |i: usize| self.entries.get(from + i).map_or(ModelId(0), |e| e.0);
            let flags = (0..6).fold(0, |f, i| f | (self.entries.get(from + i).is_some_and(|e| e.1) as u8) << i);
            let m = Models { m0: id(0), m1: id(1), m2: id(2), m3: id(3), m4: id(4), m5: id(5), flags, used: 1 };
            host.put(offset(self.slot, node::MODELS + w as u64), &m);
        }
        self.entries.len() as u8
    }

    /// The place of a model's entry, stale or not.
    pub fn find(&self, model: ModelId) -> Option<usize> {
        self.entries.iter().position(|e| e.0 == model)
    }

    /// Whether the model is held.
    #[expect(clippy::manual_contains, reason = "contains makes the programs longer")]
    pub fn holds(&self, model: ModelId) -> bool {
        self.entries.iter().any(|e| *e == (model, false))
    }

    /// Marks a model as held, entering the node among its holders if it is not there.
    pub fn add<H: Host>(&mut self, host: &mut H, node: NodeId, model: ModelId) -> Result<()> {
        match self.find(model) {
            Some(i) => self.entries[i].1 = false,
            None => {
                ensure!(self.entries.len() < NODE_MODELS as usize, TooManyModels(NODE_MODELS + 1, NODE_MODELS));
                Holders::load(host, model).push(host, node);
                self.entries.push((model, false));
            }
        }
        Ok(())
    }
}

/// How many of `wanted` a node holds (not stale), reading only as much of its list as it takes.
pub fn count_held<H: Host>(host: &H, slot: Word, entries: u8, wanted: &ModelSet) -> u32 {
    let mut local = 0;
    for w in 0..(entries as u32).div_ceil(MODELS_PER_WORD) {
        if local == wanted.len as u32 {
            break;
        }
        let m: Models = host.get(offset(slot, node::MODELS + w as u64));
        for (i, id) in [m.m0, m.m1, m.m2, m.m3, m.m4, m.m5].into_iter().enumerate() {
            let here = w * MODELS_PER_WORD + (i as u32) < entries as u32;
            if here && m.flags >> i & 1 == 0 && wanted.as_slice().contains(&id) {
                local += 1;
            }
        }
    }
    local
}

/// How many of `wanted` are in use on a node.
pub fn count_in_use<H: Host>(host: &H, handle: &NodeHandle, wanted: &ModelSet) -> u32 {
    let used = handle.in_use(host);
    wanted.as_slice().iter().filter(|m| used.as_slice().contains(m)).count() as u32
}
