//! Nodes, drawn at random in proportion to an upper bound of their weight. Tasks are dispatched among the idle ones, and validators are
//! found among the active ones, busy or not.
//!
//! Nodes stand in lists by GPU group and stake class; a member of class c counts 2^c. A tree sums the counts up: GPU group, VRAM size, 31
//! sizes, all. Each bound in it is one byte ([`muster_core::bound`]), rounded up from the sum below, so in a large network most changes
//! stop at the first word. The bound of a group's idle nodes stays as long as it is at most twice their total, so most stop there in a
//! small network as well. A draw goes down from the top. Where a bound exceeds the sum below it, the draw can fail and is made again, which
//! keeps the proportions exact. The bounds know nothing of H, scores or the largest stake: the caller accepts a drawn node with [weight /
//! bound](crate::flow::draw).

use crate::host::Host;
use crate::store::layout::{entry, BRANCHES, CLASSES, MEMBERS};
use alloc::vec::Vec;
use muster_core::bound;
use muster_core::id::{GpuGroup, ModelId, NodeId};
use muster_core::weight::CLASSES as CLASS_COUNT;
use muster_core::word::Word;

/// Children of a tree word; the 32nd byte is the word's mark.
const FAN: u32 = 31;
/// Largest VRAM in GiB: 31 x 31 sizes, 0 being "none required".
pub const VRAM_MAX: u16 = (FAN * FAN - 1) as u16;
/// Most GPU models of one VRAM size.
pub const GPU_MODELS_MAX: u32 = 65_534;

/// The bit beside the mark in the counts of a group's idle nodes that says that it has no joined ones.
const DESERTED: u64 = 2;

const TOP: u64 = 0xff;
const MIDDLE: u64 = 1 << 56;
const ROOT: u64 = 1 << 57;

/// Which nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Among {
    /// Those that can be given a task now.
    Idle,
    /// Those that have joined, whatever they do now; one that is paused until a draw of validators meets it.
    Active,
}

impl Among {
    /// A bit of a key, which no number in it reaches, set where the active ones are meant.
    fn mark(self, bit: u32) -> u64 {
        ((self == Among::Active) as u64) << bit
    }

    /// A sum's bound: for the active ones a coarse one, so that joining and leaving seldom change more than a list. Validators are
    /// drawn more rarely than tasks, and can be tried for more often.
    fn ceil(self, x: u64) -> u8 {
        if self == Among::Active {
            bound::coarse(x)
        } else {
            bound::ceil(x)
        }
    }

    /// The bound of a group in the tree after one of a class has come, or gone, noted in its counts; none if it is the same.
    ///
    /// That of idle nodes stays as long as it is at most twice the total, so that in a small group few starts and ends change the
    /// tree. It is 0 exactly while nobody is there.
    fn rebound(self, counts: &mut Counts, class: u8, come: bool) -> Option<u8> {
        let new = counts.total();
        if self == Among::Active {
            let old = if come { new - (1 << class) } else { new + (1 << class) };
            let code = bound::coarse(new);
            return (code != bound::coarse(old)).then_some(code);
        }
        let stood = bound::value(counts.bound());
        if stood >= new && stood <= 2 * new {
            return None;
        }
        let code = bound::ceil(new);
        let other = code != counts.bound();
        counts.0.set_bits(248, 8, code as u64);
        other.then_some(code)
    }

    fn branch<H: Host>(self, host: &H, key: u64) -> Word {
        entry(host, BRANCHES, key | self.mark(58))
    }

    /// The tree word above one VRAM size: its mark is 1 + the levels of words below it.
    fn top_slot<H: Host>(self, host: &H, vram: u32) -> Word {
        self.branch_slot(host, vram, TOP, 0)
    }

    fn branch_slot<H: Host>(self, host: &H, vram: u32, level: u64, index: u32) -> Word {
        self.branch(host, (vram as u64) << 32 | level << 24 | index as u64)
    }

    fn classes_slot<H: Host>(self, host: &H, group: GpuGroup) -> Word {
        entry(host, CLASSES, group.0 as u64 | self.mark(32))
    }

    fn member_slot<H: Host>(self, host: &H, group: GpuGroup, class: u8, place: u32) -> Word {
        entry(host, MEMBERS, (group.0 as u64) << 32 | (class as u64) << 24 | self.mark(23) | (place / 8) as u64)
    }
}

fn lane(w: &Word, i: u32) -> u64 {
    bound::value(w.bits(i * 8, 8) as u8)
}

/// Sum of the lanes from `first` on.
fn sum_from(w: &Word, first: u32) -> u64 {
    (first..FAN).map(|i| lane(w, i)).sum()
}

/// Counts of a group by class, as read from its word.
#[derive(Clone, Copy, Debug)]
pub struct Counts(pub Word);

impl Counts {
    /// Reads a group's counts.
    pub fn load<H: Host>(host: &H, among: Among, group: GpuGroup) -> Counts {
        Counts(host.load(among.classes_slot(host, group)))
    }
    /// Members of a class.
    #[inline(never)]
    pub fn get(&self, class: u8) -> u32 {
        self.0.bits(class as u32 * 24, 24) as u32
    }
    /// Changes the number of members of a class.
    pub fn set(&mut self, class: u8, n: u32) {
        self.0.set_bits(class as u32 * 24, 24, n as u64);
        if self.0.bits(240, 16) == 0 {
            self.0.set_bits(240, 16, 1);
        }
    }
    /// Of a group's idle nodes: whether it has joined ones, idle or not; none if nobody ever joined with its GPU.
    pub fn manned(&self) -> Option<bool> {
        let used = self.0.bits(240, 8);
        (used > 0).then_some(used & DESERTED == 0)
    }
    /// Of a group's active nodes: its joined nodes, those too that are not among them; none if nobody ever joined with its GPU.
    pub fn joined(&self) -> Option<u32> {
        let absent = (self.0.bits(240, 16) as u32).checked_sub(1)?;
        Some(self.members() + absent)
    }
    /// Members of all classes.
    pub fn members(&self) -> u32 {
        (0..CLASS_COUNT).map(|c| self.get(c)).sum()
    }
    /// The bound that stands for a group's idle nodes in the tree.
    fn bound(&self) -> u8 {
        self.0.bits(248, 8) as u8
    }
    /// Sum of count x 2^class.
    pub fn total(&self) -> u64 {
        (0..CLASS_COUNT).map(|c| (self.get(c) as u64) << c).sum()
    }
    /// The lowest class with a member.
    pub fn lowest(&self) -> Option<u8> {
        (0..CLASS_COUNT).find(|&c| self.get(c) > 0)
    }
}

/// Notes whether a group has joined nodes.
pub fn set_manned<H: Host>(host: &mut H, group: GpuGroup, manned: bool) {
    let slot = Among::Idle.classes_slot(host, group);
    let mut counts = host.load(slot);
    counts.set_bits(240, 8, if manned { 1 } else { 1 | DESERTED });
    host.store(slot, counts);
}

/// Counts one more (or less) joined node of a group that is not among its active ones; false if no more can be counted.
pub fn count_absent<H: Host>(host: &mut H, group: GpuGroup, more: bool) -> bool {
    let slot = Among::Active.classes_slot(host, group);
    let mut counts = host.load(slot);
    let absent = counts.bits(240, 16);
    if more && absent == 0xffff {
        return false;
    }
    counts.set_bits(240, 16, if more { absent + 1 } else { absent - 1 });
    host.store(slot, counts);
    true
}

/// Makes room for the `number`-th (from 0) GPU model of a VRAM size.
pub fn add_group<H: Host>(host: &mut H, vram: u32, number: u32) {
    add_group_among(host, Among::Idle, vram, number);
    add_group_among(host, Among::Active, vram, number);
    count_absent(host, GpuGroup::of(number as u16 + 1, vram as u16), true);
}

#[inline(never)]
fn add_group_among<H: Host>(host: &mut H, among: Among, vram: u32, number: u32) {
    let top = among.top_slot(host, vram);
    let mut w = host.load(top);
    let levels = w.bits(248, 8).max(1);
    let capacity = FAN.checked_pow(levels as u32).unwrap_or(u32::MAX);
    if number == 0 {
        w.set_bits(248, 8, 1);
        host.store(top, w);
    } else if number >= capacity {
        let mut above = Word::ZERO;
        above.set_bits(0, 8, among.ceil(sum_from(&w, 0)) as u64);
        above.set_bits(248, 8, levels + 1);
        w.set_bits(248, 8, 1);
        let below = among.branch_slot(host, vram, levels - 1, 0);
        host.store(below, w);
        host.store(top, above);
    }
}

/// Counts one more (or less) in a list, and carries that up the tree; gives the place that is new there, or that was the last.
#[inline(never)]
fn recount<H: Host>(host: &mut H, among: Among, group: GpuGroup, class: u8, come: bool) -> u32 {
    let slot = among.classes_slot(host, group);
    let mut counts = Counts(host.load(slot));
    let count = counts.get(class);
    let place = if come { count } else { count.saturating_sub(1) };
    counts.set(class, place + come as u32);
    let bound = among.rebound(&mut counts, class, come);
    host.store(slot, counts.0);
    lift(host, among, group, bound);
    place
}

/// Adds a node to its group's list; gives its place there.
pub fn insert<H: Host>(host: &mut H, among: Among, group: GpuGroup, class: u8, node: NodeId) -> u32 {
    insert_holder(host, among, group, class, (node, ModelId(0)))
}

/// Adds a node that is known to hold a model, 0 for none, to its group's list; gives its place there.
#[inline(never)]
pub fn insert_holder<H: Host>(host: &mut H, among: Among, group: GpuGroup, class: u8, node: (NodeId, ModelId)) -> u32 {
    let place = recount(host, among, group, class, true);
    write_member(host, among, group, class, place, node);
    place
}

/// Takes the node at `place` out of its group's list; gives the node that moves into the place, if any, and how many are left.
#[inline(never)]
pub fn remove<H: Host>(host: &mut H, among: Among, group: GpuGroup, class: u8, place: u32) -> (Option<NodeId>, u32) {
    let last = recount(host, among, group, class, false);
    let moved = (place != last).then(|| {
        let there = known(&host.load(among.member_slot(host, group, class, last)), last);
        write_member(host, among, group, class, place, there);
        there.0
    });
    (moved, last)
}

/// The node at a place of a list.
pub fn member<H: Host>(host: &H, among: Among, group: GpuGroup, class: u8, place: u32) -> NodeId {
    listed(&host.load(among.member_slot(host, group, class, place)), place)
}

/// The node at a place in its word of a list.
fn listed(w: &Word, place: u32) -> NodeId {
    NodeId(w.bits((place & 7) * 24, 24) as u32)
}

/// The node at a place in its word of a list, and a model that it is known to hold; 0 if none is.
fn known(w: &Word, place: u32) -> (NodeId, ModelId) {
    (listed(w, place), ModelId(if w.0[3] & held(place) != 0 { w.0[3] & MODEL } else { 0 }))
}

fn write_member<H: Host>(host: &mut H, among: Among, group: GpuGroup, class: u8, place: u32, (node, holds): (NodeId, ModelId)) {
    let slot = among.member_slot(host, group, class, place);
    let mut w = host.load(slot);
    w.set_bits((place & 7) * 24, 24, node.0 as u64);
    let others = w.0[3] & !held(place);
    w.0[3] = match holds.0 {
        0 => others,
        model if others & MODEL == model || others <= MODEL => model | others & !MODEL | held(place),
        // A known model of others is not forgotten for one.
        _ => others,
    };
    host.store(slot, w);
}

/// The model in the last limb of a list's word.
const MODEL: u64 = (1 << 40) - 1;

/// The bit in that limb which says that the node at a place is known to hold the model.
fn held(place: u32) -> u64 {
    1 << (40 + (place & 7))
}

/// Idle nodes that share a word of a list ([`muster_core::record::Listed`]), and which of them are known to hold a model.
pub struct Neighbours {
    slot: Word,
    word: Word,
    stored: Word,
    count: u32,
}

impl Neighbours {
    /// Those beside a place of a list that has `count` members.
    pub fn load<H: Host>(host: &H, group: GpuGroup, class: u8, place: u32, count: u32) -> Neighbours {
        let count = count.saturating_sub(place & !7).min(8);
        let slot = Among::Idle.member_slot(host, group, class, place);
        let word = if count > 0 { host.load(slot) } else { Word::ZERO };
        Neighbours { slot, word, stored: word, count }
    }

    /// How many there are, at most eight.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The `i`-th.
    pub fn node(&self, i: u32) -> NodeId {
        listed(&self.word, i)
    }

    /// The model that some of them may be known to hold; 0 if none was looked for.
    pub fn model(&self) -> ModelId {
        ModelId(self.word.0[3] & MODEL)
    }

    /// Whether the `i`-th is known to hold a model.
    pub fn knows(&self, i: u32, model: ModelId) -> bool {
        self.model() == model && self.word.0[3] & held(i) != 0
    }

    /// Notes that the `i`-th holds a model; a note of another model is forgotten.
    pub fn note(&mut self, i: u32, model: ModelId) {
        if self.model() != model {
            self.word.0[3] = model.0;
        }
        self.word.0[3] |= held(i);
    }

    /// Forgets the note on the `i`-th.
    pub fn forget(&mut self, i: u32) {
        self.word.0[3] &= !held(i);
    }

    /// Writes the word if anything was noted.
    pub fn store<H: Host>(&self, host: &mut H) {
        if self.word != self.stored {
            host.store(self.slot, self.word);
        }
    }
}

/// Carries a group's bound, if it has changed, up the tree, as far as the rounded bounds change.
fn lift<H: Host>(host: &mut H, among: Among, group: GpuGroup, bound: Option<u8>) {
    let Some(mut code) = bound else { return };
    let (vram, gpu) = (group.vram() as u32, group.gpu() as u32 - 1);
    let top = among.top_slot(host, vram);
    let there = host.load(top);
    let levels = there.bits(248, 8).max(1) - 1;
    let mut child = gpu;
    for level in 0..levels {
        let slot = among.branch_slot(host, vram, level, child / FAN);
        let w = host.load(slot);
        if !set_lane(host, among, slot, w, child % FAN, &mut code) {
            return;
        }
        child /= FAN;
    }
    if !set_lane(host, among, top, there, child, &mut code) {
        return;
    }
    let middle = among.branch(host, MIDDLE | (vram / FAN) as u64);
    let w = host.load(middle);
    if !set_lane(host, among, middle, w, vram % FAN, &mut code) {
        return;
    }
    let root = among.branch(host, ROOT);
    let w = host.load(root);
    set_lane(host, among, root, w, vram / FAN, &mut code);
}

/// Sets a bound in a word that has been read; gives whether the word's own rounded sum (left in `code`) changed.
fn set_lane<H: Host>(host: &mut H, among: Among, slot: Word, mut w: Word, i: u32, code: &mut u8) -> bool {
    let old = among.ceil(sum_from(&w, 0));
    w.set_bits(i * 8, 8, *code as u64);
    if w.bits(248, 8) == 0 {
        w.set_bits(248, 8, 1);
    }
    host.store(slot, w);
    *code = among.ceil(sum_from(&w, 0));
    *code != old
}

/// Where a task's candidates stand.
#[derive(Clone, Copy, Debug)]
pub enum Scope {
    /// Every group with at least this VRAM.
    Vram(u32),
    /// One GPU group.
    Group(GpuGroup),
}

impl From<GpuGroup> for Scope {
    /// The scope of a task that requires this group.
    fn from(group: GpuGroup) -> Scope {
        if group.is_any() {
            Scope::Vram(group.vram() as u32)
        } else {
            Scope::Group(group)
        }
    }
}

/// A scope with the words at its top read.
#[derive(Debug)]
pub struct Field {
    among: Among,
    scope: Scope,
    upper: Word,
    edge: Word,
    total: u64,
}

/// A drawn node and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// Its number.
    pub node: NodeId,
    /// GPU group.
    pub group: GpuGroup,
    /// Stake class.
    pub class: u8,
    /// Place in the class's list.
    pub place: u32,
    /// Length of that list.
    pub count: u32,
    /// Nodes in the group, idle or active as was asked.
    pub peers: u32,
    /// How far into its part `u` fell: it has the 2^class numbers from `u` less this on.
    pub within: u64,
    /// A model that it is known to hold; 0 if none is.
    pub holds: ModelId,
}

/// Whether nobody idle stands in a scope.
pub fn nobody_idle<H: Host>(host: &H, scope: Scope) -> bool {
    let vram = match scope {
        Scope::Group(group) => return Counts::load(host, Among::Idle, group).bound() == 0,
        Scope::Vram(vram) => vram,
    };
    let none = |w: &Word, first: u32| (first..FAN).all(|i| w.bits(i * 8, 8) == 0);
    let root = host.load(Among::Idle.branch(host, ROOT));
    // The word below need not be read where nobody stands under it.
    none(&root, vram / FAN)
        || none(&root, vram / FAN + 1) && none(&host.load(Among::Idle.branch(host, MIDDLE | (vram / FAN) as u64)), vram % FAN)
}

impl Field {
    /// Reads the top of a scope.
    pub fn new<H: Host>(host: &H, among: Among, scope: Scope) -> Field {
        match scope {
            Scope::Group(group) => {
                let counts = Counts::load(host, among, group);
                Field { among, scope, upper: counts.0, edge: Word::ZERO, total: counts.total() }
            }
            Scope::Vram(vram) => {
                let upper = host.load(among.branch(host, ROOT));
                let edge = host.load(among.branch(host, MIDDLE | (vram / FAN) as u64));
                let total = sum_from(&upper, vram / FAN + 1) + sum_from(&edge, vram % FAN);
                Field { among, scope, upper, edge, total }
            }
        }
    }

    /// Sum of the bounds in it: the end of [`Field::pick`]'s `u`. 0 exactly when no node is in it.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The node that `u`, uniform below the total, falls on; none where a rounded bound is not covered.
    pub fn pick<H: Host>(&self, host: &H, mut u: u64) -> Option<Spot> {
        let vram = match self.scope {
            Scope::Group(group) => return spot(host, self.among, group, Counts(self.upper), u),
            Scope::Vram(vram) => vram,
        };
        let size = match descend(&self.edge, vram % FAN, &mut u) {
            Some(i) => vram / FAN * FAN + i,
            None => {
                let i = descend(&self.upper, vram / FAN + 1, &mut u)?;
                let middle = host.load(self.among.branch(host, MIDDLE | i as u64));
                i * FAN + descend(&middle, 0, &mut u)?
            }
        };
        let mut w = host.load(self.among.top_slot(host, size));
        let mut child = descend(&w, 0, &mut u)?;
        for level in (0..w.bits(248, 8).max(1) - 1).rev() {
            w = host.load(self.among.branch_slot(host, size, level, child));
            child = child * FAN + descend(&w, 0, &mut u)?;
        }
        let group = GpuGroup::of(child as u16 + 1, size as u16);
        spot(host, self.among, group, Counts::load(host, self.among, group), u)
    }
}

impl Field {
    /// Nodes in it, counted up to `most`: every group looked at has one, so it takes at most seven words for each.
    pub fn count<H: Host>(&self, host: &H, most: u32) -> u32 {
        let mut found = 0;
        self.visit(host, &mut counting(&mut found, most));
        found
    }

    /// Everybody in it, if those are at most `most`, and as long as hardly more than so many words are read.
    pub fn everybody<H: Host>(&self, host: &H, most: u32, reads: u32) -> Option<Vec<NodeId>> {
        let (began, mut all) = (host.reads(), Vec::new());
        // At each of them somebody is.
        if self.sizes(host, most) > most {
            return None;
        }
        let few = self.visit(host, &mut |group, counts| {
            let few = all.len() as u32 + counts.members() <= most && host.reads().wrapping_sub(began) <= reads;
            for class in (0..CLASS_COUNT).filter(|_| few) {
                all.extend((0..counts.get(class)).map(|place| member(host, self.among, group, class, place)));
            }
            few
        });
        few.then_some(all)
    }

    /// VRAM sizes that have somebody in it, counted until there are more than `most`; none of a single group.
    fn sizes<H: Host>(&self, host: &H, most: u32) -> u32 {
        let Scope::Vram(vram) = self.scope else { return 0 };
        let there = |w: &Word, from: u32| (from..FAN).filter(|&i| lane(w, i) > 0).count() as u32;
        let mut sizes = there(&self.edge, vram % FAN);
        for i in (vram / FAN + 1..FAN).filter(|&i| lane(&self.upper, i) > 0) {
            if sizes > most {
                break;
            }
            sizes += there(&host.load(self.among.branch(host, MIDDLE | i as u64)), 0);
        }
        sizes
    }

    /// Goes through the groups that have somebody in it, the smallest VRAM first, until `each` says no; gives whether it never did.
    fn visit<H: Host, F: Each>(&self, host: &H, each: &mut F) -> bool {
        let vram = match self.scope {
            Scope::Group(group) => return each(group, Counts(self.upper)),
            Scope::Vram(vram) => vram,
        };
        visit_sizes(host, self.among, vram / FAN * FAN, &self.edge, vram % FAN, each)
            && (vram / FAN + 1..FAN).filter(|&i| lane(&self.upper, i) > 0).all(|i| {
                let middle = host.load(self.among.branch(host, MIDDLE | i as u64));
                visit_sizes(host, self.among, i * FAN, &middle, 0, each)
            })
    }
}

/// A visitor of groups and their counts; returns whether to go on.
trait Each: FnMut(GpuGroup, Counts) -> bool {}
impl<F: FnMut(GpuGroup, Counts) -> bool> Each for F {}

/// Whether so many nodes have joined in a scope, and two thirds as many are active; of groups in which none is active they are not counted.
pub fn have_joined<H: Host>(host: &H, scope: Scope, nodes: u32) -> bool {
    let (least, mut joined, mut active) = (nodes - nodes / 3, 0, 0);
    !Field::new(host, Among::Active, scope).visit(host, &mut |_, counts| {
        joined += counts.joined().unwrap_or(0);
        active += counts.members();
        joined < nodes || active < least
    })
}

/// Adds the nodes of groups to `found`, until there are `most`.
fn counting(found: &mut u32, most: u32) -> impl Each + '_ {
    move |_, counts| {
        *found += counts.members();
        *found < most
    }
}

/// [`Field::visit`] for the sizes from lane `from` of a word on, whose first size is `first`.
fn visit_sizes<H: Host, F: Each>(host: &H, among: Among, first: u32, w: &Word, from: u32, each: &mut F) -> bool {
    (from..FAN).filter(|&i| lane(w, i) > 0).all(|i| visit_size(host, among, first + i, each))
}

/// [`Field::visit`] for a VRAM size.
fn visit_size<H: Host, F: Each>(host: &H, among: Among, vram: u32, each: &mut F) -> bool {
    let top = host.load(among.top_slot(host, vram));
    visit_below(host, among, vram, &top, top.bits(248, 8).max(1) - 1, 0, each)
}

/// The largest VRAM that at least this many idle nodes have; none if there are fewer. Looks at no more sizes than that.
pub fn vram_of_idle<H: Host>(host: &H, nodes: u32) -> Option<u16> {
    let (root, mut found) = (host.load(Among::Idle.branch(host, ROOT)), 0);
    for i in (0..FAN).rev().filter(|&i| lane(&root, i) > 0) {
        let middle = host.load(Among::Idle.branch(host, MIDDLE | i as u64));
        for j in (0..FAN).rev().filter(|&j| lane(&middle, j) > 0) {
            if !visit_size(host, Among::Idle, i * FAN + j, &mut counting(&mut found, nodes)) {
                return Some((i * FAN + j) as u16);
            }
        }
    }
    None
}

/// [`Field::visit`] for the groups under a word.
fn visit_below<H: Host, F: Each>(host: &H, among: Among, vram: u32, w: &Word, levels: u64, child: u32, each: &mut F) -> bool {
    (0..FAN).filter(|&i| lane(w, i) > 0).all(|i| {
        let child = child * FAN + i;
        if levels == 0 {
            let group = GpuGroup::of(child as u16 + 1, vram as u16);
            return each(group, Counts::load(host, among, group));
        }
        let w = host.load(among.branch_slot(host, vram, levels - 1, child));
        visit_below(host, among, vram, &w, levels - 1, child, each)
    })
}

/// The lane from `first` on that `u` falls into, `u` reduced to its place within it.
fn descend(w: &Word, first: u32, u: &mut u64) -> Option<u32> {
    for i in first..FAN {
        let v = lane(w, i);
        if *u < v {
            return Some(i);
        }
        *u -= v;
    }
    None
}

fn spot<H: Host>(host: &H, among: Among, group: GpuGroup, counts: Counts, mut u: u64) -> Option<Spot> {
    for class in 0..CLASS_COUNT {
        let count = counts.get(class);
        let all = (count as u64) << class;
        if u < all {
            let place = (u >> class) as u32;
            let w = host.load(among.member_slot(host, group, class, place));
            let (node, holds) = known(&w, place);
            let within = u & ((1 << class) - 1);
            return Some(Spot { node, group, class, place, count, peers: counts.members(), within, holds });
        }
        u -= all;
    }
    None
}
