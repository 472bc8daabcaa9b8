//! Weighted random selection (the dispatch document), exact by rejection.
//!
//! A node is drawn in proportion to 2^class ([`crate::store::sampler`]) and accepted with probability W / (K 2^class). K is [`class_bound`]
//! times the largest possible boost. So the node comes out with probability W / sum of W. A draw has a bounded number of tries. If all
//! fail, it is undecided and made again from a later hash, which leaves the proportions unchanged.
//!
//! Required models: a node is local if it holds at least one. Where a good share of the network does,
//! the whole network is sampled and nodes without are rejected. If that meets none, or holders are
//! rare, holders are searched: with at most [`SEARCHED`] all are looked at, and the choice among the
//! eligible follows W exactly, as in the first case. Only where there are more holders than
//! [`SEARCHED`] but few in the network's scale are [`SEARCHED`] random holders looked at and the
//! choice made among those found.

use crate::flow::network::Network;
use crate::flow::reliability::can_rise;
use crate::flow::weigh::{held_of, in_scope, locality_boost, merit};
use crate::host::Host;
use crate::store::layout::node_slot;
use crate::store::node::NodeHandle;
use crate::store::registry;
use crate::store::registry::{count_held, Holders};
use crate::store::sampler::{Among, Field, Neighbours, Scope};
use crate::store::task::{ModelSet, Task};
use alloc::vec::Vec;
use muster_core::id::{ModelId, NodeId, TaskId};
use muster_core::record::MODELS_PER_WORD;
use muster_core::wad::mul_wad;
use muster_core::word::Word;
use muster_core::{qos, weight};

/// Tries of a draw in which any eligible node will do.
pub const TRIES: u32 = 10;
/// Tries of a draw in which nodes without a required model are rejected.
pub const LOCAL_TRIES: u32 = 16;
/// Tries of a draw of several nodes: the bounds of active nodes are coarse, and most tries end before a node is read.
const SEVERAL_TRIES: usize = 96;
/// Words read for all nodes of such a draw, beyond which no other try is made: most are those of the sampler's tree, read before.
pub(crate) const SEVERAL_READS: u32 = 192;
/// Holders looked at, at most, when holders are searched.
pub const SEARCHED: u32 = 16;
/// Picks of a draw that fall where a bound promised more than there is: they read no node, and are no tries.
const EMPTY_PICKS: u32 = 32;
/// Nodes beside a drawn one that are looked at for a model, of those that are not known to hold it.
const NEARBY: usize = 3;
/// Words beyond the first of the candidates' model lists that the tries of a pass read before it gives up.
const MORE_MODEL_WORDS: u32 = 24;
/// The whole network is sampled for holders if they are at least one in this many joined nodes.
const POPULAR: u32 = 4;

/// A stream of random words: keccak256(seed . counter), the seed a block's hash mixed with the task's id.
#[derive(Debug)]
pub struct Rng {
    block: [u8; 40],
    counter: u64,
    words: [u64; 4],
    left: usize,
}

impl Rng {
    /// A stream for one draw of one task.
    pub fn new<H: Host>(host: &H, hash: [u8; 32], id: TaskId) -> Rng {
        let mut bytes = [0; 40];
        bytes[..32].copy_from_slice(&hash);
        bytes[32..].copy_from_slice(&id.0.to_be_bytes());
        let mut block = [0; 40];
        block[..32].copy_from_slice(&host.keccak(&bytes));
        Rng { block, counter: 0, words: [0; 4], left: 0 }
    }

    /// 64 random bits.
    pub fn next<H: Host>(&mut self, host: &H) -> u64 {
        if self.left == 0 {
            self.block[32..].copy_from_slice(&self.counter.to_be_bytes());
            self.words = Word::from_be_bytes(host.keccak(&self.block)).0;
            self.counter += 1;
            self.left = 4;
        }
        self.left -= 1;
        self.words[self.left]
    }

    /// A uniform number below `n` (not 0), without bias: the few words that would give one are skipped.
    pub fn below<H: Host>(&mut self, host: &H, n: u64) -> u64 {
        loop {
            let wide = self.next(host) as u128 * n as u128;
            let low = wide as u64;
            if low >= n || low >= n.wrapping_neg() % n {
                return (wide >> 64) as u64;
            }
        }
    }
}

/// The outcome of a draw.
#[derive(Clone, Copy, Debug)]
pub enum Draw {
    /// A node was chosen, from these; it is still among the idle ones.
    Node(NodeHandle, Candidates),
    /// There is no eligible node.
    Nobody,
    /// All tries were rejected; draw again from another hash.
    Undecided,
}

/// The outcome of a draw of three nodes at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Members {
    /// These were chosen; they are still where they were.
    Nodes(Vec<NodeId>),
    /// There are no three that the task could go to.
    Nobody,
    /// Too few tries were accepted; draw again from another hash.
    Undecided,
    /// The hash is no longer known; draw from another.
    Late,
}

/// How many eligible nodes a task could have gone to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Candidates {
    /// This many at least; all, unless that is [`muster_core::record::Rules::boost_pool`] or more, or more than [`SEARCHED`] are
    /// entered as holders.
    AtLeast(u32),
    /// The idle holders of a required model, not counted yet.
    Holders,
    /// Of a task that comes from the queue: the active nodes in its scope, if it has waited for half its estimate. An operator that knows
    /// which node becomes free next steers a task that is queued and taken at once. A task that has waited was left by all nodes that
    /// became free meanwhile.
    Queued,
}

/// The tries of one pass over a field: the conditions of acceptance, and how often to try.
struct Pass<'f> {
    field: &'f Field,
    /// Above harmonic x M / 2^(class - lowest) of every node in the field.
    bound: u64,
    largest_boost: u64,
    local_only: bool,
    /// The nodes that include all holders, if they are few; for a pass of nodes that hold a model.
    roll: Option<Vec<NodeId>>,
    tries: u32,
}

/// The outcome of a pass that chose no node.
enum Missed {
    /// No try fell on an acceptable node.
    NoneSeen,
    /// Some did and were rejected by weight.
    Rejected,
}

/// Candidates that a draw of a node needs for the task's success to raise its H.
fn candidates_needed<H: Host>(net: &Network<'_, H>, handle: &NodeHandle) -> u32 {
    if can_rise(net, &handle.node) {
        net.rules.boost_pool as u32
    } else {
        0
    }
}

/// Whether a good share of the network holds a model: sampling the network then meets holders sooner than a search.
fn popular<H: Host>(net: &Network<'_, H>, entries: u32) -> bool {
    entries.saturating_mul(POPULAR) >= net.node_store.joined()
}

impl<H: Host> Network<'_, H> {
    /// Draws a node for a task.
    pub fn draw(&self, task: &Task, rng: &mut Rng) -> Draw {
        let field = Field::new(self.host, Among::Idle, Scope::from(task.order.group));
        if field.total() == 0 {
            return Draw::Nobody;
        }
        let lists: Vec<Holders> = task.models.as_slice().iter().map(|&m| Holders::load(self.host, m)).collect();
        let holders = lists.iter().map(Holders::len).sum();
        if holders > 0 && popular(self, holders) {
            let roll = registry::roll(self.host, &lists, self.node_store.joined());
            let pass = Pass { local_only: true, roll, tries: LOCAL_TRIES, ..pass(self, &field, task.models.len as u32) };
            match tries(self, &pass, task, rng) {
                Ok((handle, _)) => return Draw::Node(handle, Candidates::Holders),
                Err(Missed::Rejected) => return Draw::Undecided,
                Err(Missed::NoneSeen) => {}
            }
        }
        search_or_all(self, &field, task, &lists, holders, rng)
    }
}

/// Chooses among the eligible holders found by a bounded search, or, if there are none, among all.
#[inline(never)]
fn search_or_all<H: Host>(
    net: &Network<'_, H>,
    field: &Field,
    task: &Task,
    lists: &[Holders],
    holders: u32,
    rng: &mut Rng,
) -> Draw {
    if holders > 0 {
        let mut found: Vec<(NodeHandle, u64)> = Vec::new();
        let mut sum = 0;
        for number in some_holders(net, lists, holders, rng) {
            let handle = NodeHandle::load(net.host, number);
            if !handle.node.idle() || !in_scope(&handle, task) {
                continue;
            }
            let local = held_of(net, &handle, &task.models);
            if local == 0 {
                continue;
            }
            let w = mul_wad(merit(net, &handle.node), locality_boost(net, &handle, &task.models, local));
            if w > 0 {
                sum += w;
                found.push((handle, w));
            }
        }
        if sum > 0 {
            let candidates = Candidates::AtLeast(found.len() as u32);
            let mut u = rng.below(net.host, sum);
            for (handle, w) in found {
                if u < w {
                    return Draw::Node(handle, candidates);
                }
                u -= w;
            }
        }
    }
    let pass = pass(net, field, task.models.len as u32);
    match tries(net, &pass, task, rng) {
        Ok((handle, beside)) => {
            let enough = candidates_needed(net, &handle);
            let there = if beside < enough { field.count(net.host, enough) } else { beside };
            Draw::Node(handle, Candidates::AtLeast(there))
        }
        Err(_) => Draw::Undecided,
    }
}

/// Up to [`SEARCHED`] different nodes entered as holders of any of some models: all if they are few, else random ones.
fn some_holders<H: Host>(net: &Network<'_, H>, lists: &[Holders], entries: u32, rng: &mut Rng) -> Vec<NodeId> {
    let at = |mut i: u32| {
        for list in lists {
            if i < list.len() {
                return list.get(net.host, i);
            }
            i -= list.len();
        }
        NodeId(0)
    };
    let mut numbers: Vec<NodeId> = Vec::new();
    for i in 0..entries.min(SEARCHED) {
        let i = if entries <= SEARCHED { i } else { rng.below(net.host, entries as u64) as u32 };
        let number = at(i);
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    numbers
}

fn pass<'f, H: Host>(net: &Network<'_, H>, field: &'f Field, models: u32) -> Pass<'f> {
    // Without local nodes M is at most 1.3, but a search that is not exhaustive may have missed one.
    let largest_boost = weight::largest_boost(models, models > 0);
    let bound = weight::class_bound(
        net.rules.base,
        net.node_store.max_stake(),
        net.node_store.lowest(),
        qos::highest_qos(net.rules.best),
    );
    Pass { field, bound: mul_wad(bound, largest_boost) + 1, largest_boost, local_only: false, roll: None, tries: TRIES }
}

/// A height below the bound of a drawn node's class, uniform: it is accepted if its weight is above that.
fn height<H: Host>(net: &Network<'_, H>, pass: &Pass<'_>, class: u8, rng: &mut Rng) -> u128 {
    let shift = class.saturating_sub(net.node_store.lowest()) as u32;
    (rng.below(net.host, pass.bound) as u128) << shift | (rng.next(net.host) & ((1 << shift) - 1)) as u128
}

/// Tries to draw and accept a node; gives it and how many of its group are in the field.
///
/// After [`MORE_MODEL_WORDS`] words of long model lists no further try is made: one that is made is accepted by the same
/// rule, so the proportions stay.
#[inline(never)]
fn tries<H: Host>(
    net: &Network<'_, H>,
    pass: &Pass<'_>,
    task: &Task,
    rng: &mut Rng,
) -> core::result::Result<(NodeHandle, u32), Missed> {
    let mut missed = Missed::NoneSeen;
    let (mut more, mut left, mut empty) = (0, pass.tries, EMPTY_PICKS);
    while left > 0 && empty > 0 && more < MORE_MODEL_WORDS {
        let u = rng.below(net.host, pass.field.total());
        let Some(spot) = pass.field.pick(net.host, u) else {
            empty -= 1;
            continue;
        };
        left -= 1;
        if pass.roll.as_ref().is_some_and(|roll| !roll.contains(&spot.node)) {
            continue;
        }
        let handle = NodeHandle::load(net.host, spot.node);
        let merit = merit(net, &handle.node);
        let height = height(net, pass, spot.class, rng);
        // Excluded since it came to stand here, by a raised threshold: no candidate.
        if merit == 0 {
            continue;
        }
        let hopeless = height >= mul_wad(merit, pass.largest_boost) as u128;
        // Whether there are holders must not depend on their weight. It need not be known where any node will do, or once a holder was
        // seen.
        if hopeless && (!pass.local_only || matches!(missed, Missed::Rejected)) {
            continue;
        }
        let local = if task.models.as_slice() == [spot.holds] {
            1
        } else {
            if task.models.len > 0 {
                more += (handle.node.models as u32).div_ceil(MODELS_PER_WORD).saturating_sub(1);
            }
            held_of(net, &handle, &task.models)
        };
        if pass.local_only && local == 0 {
            continue;
        }
        missed = Missed::Rejected;
        if hopeless {
            continue;
        }
        let boost = locality_boost(net, &handle, &task.models, local);
        if height < mul_wad(merit, boost) as u128 {
            return Ok((handle, spot.peers));
        }
    }
    Err(missed)
}

/// The numbers that can no longer be drawn, since their nodes are taken: the first number of each node, and its class, in rising order.
#[derive(Default)]
struct Taken(Vec<(u64, u8)>);

impl Taken {
    /// The `u`-th of the numbers that are left.
    fn beside(&self, u: u64) -> u64 {
        self.0.iter().fold(u, |u, &(first, class)| if u >= first { u + (1 << class) } else { u })
    }

    /// Takes a node's numbers.
    fn take(&mut self, first: u64, class: u8) {
        let place = self.0.partition_point(|&(other, _)| other < first);
        self.0.insert(place, (first, class));
    }
}

/// Draws different nodes by weight, one after the other, until `chosen` has `most`: among those of a field and those `beside` it that
/// `fits`, and that are not chosen already. `began` is [`Host::reads`] when the draw did. Holding a model weighs and is not required.
/// Fewer if the draw stayed undecided.
///
/// No try falls on a node that was chosen here: so a great stake costs the others no tries.
pub(crate) fn draw_several<H: Host>(
    net: &Network<'_, H>,
    field: Field,
    beside: &[NodeHandle],
    models: &ModelSet,
    (chosen, most): (&mut Vec<NodeId>, usize),
    (fits, began): (&mut dyn FnMut(&NodeHandle) -> bool, u32),
    rng: &mut Rng,
) {
    let pass = pass(net, &field, models.len as u32);
    let class = |handle: &NodeHandle| handle.node.class(net.rules.base);
    let mut left = pass.field.total() + beside.iter().map(|handle| 1 << class(handle)).sum::<u64>();
    let mut taken = Taken::default();
    for _ in 0..SEVERAL_TRIES {
        if left == 0 || chosen.len() >= most || net.host.reads().wrapping_sub(began) > SEVERAL_READS {
            break;
        }
        let u = taken.beside(rng.below(net.host, left));
        let spot = match u.checked_sub(pass.field.total()) {
            None => pass.field.pick(net.host, u).map(|spot| (spot.node, spot.class, spot.within)),
            Some(mut u) => beside.iter().find_map(|handle| {
                let (within, here) = (u, u < 1 << class(handle));
                u = u.saturating_sub(1 << class(handle));
                here.then(|| (handle.id, class(handle), within))
            }),
        };
        let Some((node, class, within)) = spot else { continue };
        let mut gone = chosen.contains(&node);
        if !gone {
            let handle = NodeHandle::load(net.host, node);
            let (height, merit) = (height(net, &pass, class, rng), merit(net, &handle.node));
            // Its models need not be read where they cannot make up for it.
            let accepted = |boost| height < mul_wad(merit, boost) as u128;
            gone = fits(&handle) && accepted(pass.largest_boost) && accepted(net.locality(&handle, models).0);
            if gone {
                chosen.push(node);
            }
        }
        if gone {
            taken.take(u - within, class);
            left -= 1 << class;
        }
    }
}

/// Up to `most` different eligible nodes of a field that lack a model, drawn by weight; `reads` bounds the words of nodes read.
pub(crate) fn draw_lacking<H: Host>(
    net: &Network<'_, H>,
    field: &Field,
    task: &Task,
    model: ModelId,
    most: u32,
    reads: &mut u32,
    rng: &mut Rng,
) -> Vec<NodeId> {
    let mut chosen: Vec<NodeId> = Vec::new();
    if field.total() == 0 {
        return chosen;
    }
    let pass = Pass { tries: 1, ..pass(net, field, 0) };
    let wanted = ModelSet::one(model);
    let plain = Task { models: ModelSet::default(), ..*task };
    while *reads > 0 && (chosen.len() as u32) < most {
        // Where it stands, and its record.
        *reads = reads.saturating_sub(2);
        let Ok((handle, _)) = tries(net, &pass, &plain, rng) else { continue };
        if chosen.contains(&handle.id) {
            continue;
        }
        *reads = reads.saturating_sub((handle.node.models as u32).div_ceil(MODELS_PER_WORD));
        if count_held(net.host, handle.slot, handle.node.models, &wanted) == 0 {
            chosen.push(handle.id);
        }
    }
    chosen
}

/// Counts available nodes that hold a model, up to `enough`, by the same bounded search as a draw, within `reads`. Adds those that the task
/// could have been given to `eligible`, up to `pool` different ones in all.
#[inline(never)]
#[expect(clippy::too_many_arguments, reason = "the draw's, and what it shares with the models before")]
pub(crate) fn available_holders<H: Host>(
    net: &Network<'_, H>,
    task: &Task,
    model: ModelId,
    enough: u32,
    nearby: &mut Neighbours,
    pool: u32,
    eligible: &mut Vec<NodeId>,
    reads: &mut u32,
    rng: &mut Rng,
) -> u32 {
    let (wanted, list) = (ModelSet::one(model), Holders::load(net.host, model));
    let words = |entries: u8| (entries as u32).div_ceil(MODELS_PER_WORD);
    let mut counted: Vec<NodeId> = Vec::new();
    let done = |counted: &[NodeId], eligible: &[NodeId]| counted.len() as u32 >= enough && eligible.len() as u32 >= pool;
    // Nodes known to be idle are looked at first where many hold the model: they cost a read less.
    if popular(net, list.len()) {
        let (known, mut unknown): (Vec<u32>, Vec<u32>) = (0..nearby.count()).partition(|&i| nearby.knows(i, model));
        // Not where it would help nobody, and within `reads` like all else.
        if !unknown.is_empty() && (known.len() as u32) < enough.max(pool) && *reads > list.further_words() {
            if let Some(roll) = registry::roll(net.host, &[list], net.node_store.joined()) {
                *reads -= list.further_words();
                unknown.retain(|&i| roll.contains(&nearby.node(i)));
            }
        }
        for i in known.into_iter().chain(unknown.into_iter().take(NEARBY)) {
            if done(&counted, eligible) || *reads == 0 {
                break;
            }
            let (number, mut holds) = (nearby.node(i), nearby.knows(i, model));
            if !holds {
                // Most nodes hold few models: the first word says so without the record that counts them.
                *reads = reads.saturating_sub(1);
                holds = count_held(net.host, node_slot(net.host, number), MODELS_PER_WORD as u8, &wanted) > 0;
            }
            if !holds {
                let handle = NodeHandle::load(net.host, number);
                *reads = reads.saturating_sub(1 + words(handle.node.models));
                holds = count_held(net.host, handle.slot, handle.node.models, &wanted) > 0;
            }
            if holds {
                nearby.note(i, model);
                counted.push(number);
                // It stands in the chosen node's own group.
                if !eligible.contains(&number) {
                    eligible.push(number);
                }
            }
        }
    }
    if !done(&counted, eligible) && *reads > 0 {
        for number in some_holders(net, &[list], list.len(), rng) {
            if done(&counted, eligible) || *reads == 0 {
                break;
            }
            // Where it is entered, and its record.
            *reads = reads.saturating_sub(2);
            let handle = NodeHandle::load(net.host, number);
            if counted.contains(&number) || !handle.node.idle() {
                continue;
            }
            *reads = reads.saturating_sub(words(handle.node.models));
            if count_held(net.host, handle.slot, handle.node.models, &wanted) > 0 {
                counted.push(number);
                if in_scope(&handle, task) && !eligible.contains(&number) {
                    eligible.push(number);
                }
            }
        }
    }
    counted.len() as u32
}
