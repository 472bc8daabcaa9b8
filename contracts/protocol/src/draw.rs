//! Weighted random selection (the dispatch document), exact by rejection.
//!
//! A node is drawn in proportion to 2^class ([`crate::sampler`]) and accepted with probability
//! W / (K 2^class), K being [`class_bound`] times the largest boost there can be: so it comes out
//! with probability W / sum of W. A draw has a bounded number of tries; if all fail it is undecided
//! and made again from a later hash, which leaves the proportions as they are.
//!
//! Required models: a node is local if it holds at least one. Where a good share of the network does,
//! the whole network is sampled and nodes without are rejected. If that meets none, or holders are
//! rare, holders are searched: with at most [`SEARCHED`] all are looked at, and the choice among the
//! eligible follows W exactly, as in the first case. Only where there are more holders than
//! [`SEARCHED`] but few in the network's scale are [`SEARCHED`] random holders looked at and the
//! choice made among those found.

use crate::host::{Host, ModelSet, Task};
use crate::layout::node_slot;
use crate::network::Network;
use crate::registry::{self, count_held, count_in_use, Holders};
use crate::roster::Seat;
use crate::sampler::{Among, Counts, Field, Neighbours, Scope};
use alloc::vec::Vec;
use muster_core::id::{GpuGroup, ModelId, NodeId, TaskId};
use muster_core::qos;
use muster_core::record::{Node, Status, MEMBERS, MODELS_PER_WORD};
use muster_core::wad::{mul_wad, WAD};
use muster_core::weight;
use muster_core::word::Word;

/// Tries of a draw in which any eligible node will do.
pub const TRIES: u32 = 10;
/// Tries of a draw in which nodes without a required model are rejected.
pub const LOCAL_TRIES: u32 = 16;
/// Tries of a draw of several nodes: the bounds of active nodes are coarse, and most tries end before a node is read.
const SEVERAL_TRIES: usize = 96;
/// Words read for all nodes of such a draw, beyond which no other try is made: most are those of the sampler's tree, read before.
const SEVERAL_READS: u32 = 192;
/// Of these, what is kept for the other two where the first is drawn apart.
const OTHERS_READS: u32 = 64;
/// Paused nodes that a draw of validators takes out of the active ones.
pub const PAUSED_MET: usize = 4;
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

/// What a draw came to.
#[derive(Clone, Copy, Debug)]
pub enum Draw {
    /// A node was chosen, from these; it is still among the idle ones.
    Node(Seat, Candidates),
    /// There is no eligible node.
    Nobody,
    /// All tries were rejected; draw again from another hash.
    Undecided,
}

/// What the draw of three nodes at once came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Members {
    /// These were chosen; they are still where they were.
    Nodes(Vec<NodeId>),
    /// There are no three that the task could go to.
    Nobody,
    /// Too few tries were accepted; draw again from another hash.
    Undecided,
}

/// How many eligible nodes a task could have gone to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Candidates {
    /// This many at least; all, unless that is [`muster_core::record::Rules::boost_pool`] or more, or more than [`SEARCHED`] are
    /// entered as holders.
    AtLeast(u32),
    /// The idle holders of a required model, not counted yet.
    Holders,
}

/// The factors of a node's weight (see [`muster_core::weight`]), wads.
#[derive(Clone, Copy, Default, Debug)]
pub struct Factors {
    /// S.
    pub staking: u64,
    /// H now.
    pub reliability: u64,
    /// QoS.
    pub qos: u64,
}

/// The tries of one pass over a field: what it takes to accept, and how often to try.
struct Pass<'f> {
    field: &'f Field,
    /// Above harmonic x M / 2^(class - lowest) of every node in the field.
    bound: u64,
    largest_boost: u64,
    local_only: bool,
    /// Those among whom all holders are, if they are few; for a pass of nodes that hold a model.
    roll: Option<Vec<NodeId>>,
    tries: u32,
}

/// What a pass came to, apart from a chosen node.
enum Missed {
    /// No try fell on an acceptable node.
    NoneSeen,
    /// Some did and were rejected by weight.
    Rejected,
}

impl<H: Host> Network<'_, H> {
    /// H of a node now.
    pub fn reliability(&self, node: &Node) -> u64 {
        qos::recover(node.h, self.now.saturating_sub(node.h_at as u64), self.rules.tau)
    }

    /// Whether H of a node can rise. Where it cannot, a draw's candidates need not be counted.
    #[inline(always)]
    pub(crate) fn can_rise(&self, node: &Node) -> bool {
        self.reliability(node) < WAD
    }

    /// Candidates that a draw of a node needs for the task's success to raise its H.
    fn needed(&self, seat: &Seat) -> u32 {
        if self.can_rise(&seat.node) {
            self.rules.boost_pool as u32
        } else {
            0
        }
    }

    /// The factors of a node's weight that do not depend on the task.
    pub fn factors(&self, node: &Node) -> Factors {
        let reliability = self.reliability(node);
        Factors {
            staking: weight::staking_score(node.stake, self.roster.max_stake()),
            reliability,
            qos: qos::qos(qos::long_term(node.score_sum, node.score_count), reliability),
        }
    }

    /// S QoS / (S + QoS) of a node, 0 if its H excludes it.
    fn merit(&self, node: &Node) -> u64 {
        let f = self.factors(node);
        if qos::eligible(f.reliability, self.rules.exclusion_ppm) {
            weight::harmonic(f.staking, f.qos)
        } else {
            0
        }
    }

    /// How many of a set of models a node holds.
    fn local(&self, seat: &Seat, models: &ModelSet) -> u32 {
        if models.len == 0 {
            0
        } else {
            count_held(self.host, seat.slot, seat.node.models, models)
        }
    }

    /// M of a node that holds `local` of the models.
    fn boost(&self, seat: &Seat, models: &ModelSet, local: u32) -> u64 {
        let used = if models.len == 0 { 0 } else { count_in_use(self.host, seat, models) };
        weight::locality_boost(local, used, models.len as u32)
    }

    /// M of a node for a set of models, and how many of them it holds.
    pub fn locality(&self, seat: &Seat, models: &ModelSet) -> (u64, u32) {
        let local = self.local(seat, models);
        (self.boost(seat, models, local), local)
    }

    /// Whether a good share of the network holds a model: sampling the network then meets holders sooner than a search.
    fn popular(&self, entries: u32) -> bool {
        entries.saturating_mul(POPULAR) >= self.roster.joined()
    }

    /// Draws a node for a task.
    pub fn draw(&self, task: &Task, rng: &mut Rng) -> Draw {
        let field = Field::new(self.host, Among::Idle, Scope::from(task.order.group));
        if field.total() == 0 {
            return Draw::Nobody;
        }
        let lists: Vec<Holders> = task.models.as_slice().iter().map(|&m| Holders::load(self.host, m)).collect();
        let holders = lists.iter().map(Holders::len).sum();
        if holders > 0 && self.popular(holders) {
            let roll = registry::roll(self.host, &lists, self.roster.joined());
            let pass = Pass { local_only: true, roll, tries: LOCAL_TRIES, ..self.pass(&field, task.models.len as u32) };
            match self.tries(&pass, task, rng) {
                Ok((seat, _)) => return Draw::Node(seat, Candidates::Holders),
                Err(Missed::Rejected) => return Draw::Undecided,
                Err(Missed::NoneSeen) => {}
            }
        }
        self.search_or_all(&field, task, &lists, holders, rng)
    }

    /// Chooses among the eligible holders found by a bounded search, or, if there are none, among all.
    #[inline(never)]
    fn search_or_all(&self, field: &Field, task: &Task, lists: &[Holders], holders: u32, rng: &mut Rng) -> Draw {
        if holders > 0 {
            let mut found: Vec<(Seat, u64)> = Vec::new();
            let mut sum = 0;
            for number in self.some_holders(lists, holders, rng) {
                let seat = Seat::load(self.host, number);
                if !seat.node.idle() || !in_scope(&seat, task) {
                    continue;
                }
                let local = self.local(&seat, &task.models);
                if local == 0 {
                    continue;
                }
                let w = mul_wad(self.merit(&seat.node), self.boost(&seat, &task.models, local));
                if w > 0 {
                    sum += w;
                    found.push((seat, w));
                }
            }
            if sum > 0 {
                let candidates = Candidates::AtLeast(found.len() as u32);
                let mut u = rng.below(self.host, sum);
                for (seat, w) in found {
                    if u < w {
                        return Draw::Node(seat, candidates);
                    }
                    u -= w;
                }
            }
        }
        let pass = self.pass(field, task.models.len as u32);
        match self.tries(&pass, task, rng) {
            Ok((seat, beside)) => {
                let enough = self.needed(&seat);
                let there = if beside < enough { field.count(self.host, enough) } else { beside };
                Draw::Node(seat, Candidates::AtLeast(there))
            }
            Err(_) => Draw::Undecided,
        }
    }

    /// Up to [`SEARCHED`] different nodes entered as holders of any of some models: all if they are few, else random ones.
    fn some_holders(&self, lists: &[Holders], entries: u32, rng: &mut Rng) -> Vec<NodeId> {
        let at = |mut i: u32| {
            for list in lists {
                if i < list.len() {
                    return list.get(self.host, i);
                }
                i -= list.len();
            }
            NodeId(0)
        };
        let mut numbers: Vec<NodeId> = Vec::new();
        for i in 0..entries.min(SEARCHED) {
            let i = if entries <= SEARCHED { i } else { rng.below(self.host, entries as u64) as u32 };
            let number = at(i);
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        numbers
    }

    fn pass<'f>(&self, field: &'f Field, models: u32) -> Pass<'f> {
        // Without local nodes M is at most 1.3, but a search that is not exhaustive may have missed one.
        let largest_boost = weight::largest_boost(models, models > 0);
        let bound = weight::class_bound(
            self.rules.base,
            self.roster.max_stake(),
            self.roster.lowest(),
            qos::highest_qos(self.rules.best),
        );
        Pass { field, bound: mul_wad(bound, largest_boost) + 1, largest_boost, local_only: false, roll: None, tries: TRIES }
    }

    /// A height below the bound of a drawn node's class, uniform: it is accepted if its weight is above that.
    fn height(&self, pass: &Pass<'_>, class: u8, rng: &mut Rng) -> u128 {
        let shift = class.saturating_sub(self.roster.lowest()) as u32;
        (rng.below(self.host, pass.bound) as u128) << shift | (rng.next(self.host) & ((1 << shift) - 1)) as u128
    }

    /// Tries to draw and accept a node; gives it and how many of its group are in the field.
    ///
    /// After [`MORE_MODEL_WORDS`] words of long model lists no further try is made: one that is made is accepted by the same
    /// rule, so the proportions stay.
    #[inline(never)]
    fn tries(&self, pass: &Pass<'_>, task: &Task, rng: &mut Rng) -> core::result::Result<(Seat, u32), Missed> {
        let mut missed = Missed::NoneSeen;
        let (mut more, mut left, mut empty) = (0, pass.tries, EMPTY_PICKS);
        while left > 0 && empty > 0 && more < MORE_MODEL_WORDS {
            let u = rng.below(self.host, pass.field.total());
            let Some(spot) = pass.field.pick(self.host, u) else {
                empty -= 1;
                continue;
            };
            left -= 1;
            if pass.roll.as_ref().is_some_and(|roll| !roll.contains(&spot.node)) {
                continue;
            }
            let seat = Seat::load(self.host, spot.node);
            let merit = self.merit(&seat.node);
            let height = self.height(pass, spot.class, rng);
            // Excluded since it came to stand here, by a raised threshold: no candidate.
            if merit == 0 {
                continue;
            }
            let hopeless = height >= mul_wad(merit, pass.largest_boost) as u128;
            // Whether holders are there must not hang on what they weigh; where anyone will do, or one was seen, it need not be known.
            if hopeless && (!pass.local_only || matches!(missed, Missed::Rejected)) {
                continue;
            }
            let local = if task.models.as_slice() == [spot.holds] {
                1
            } else {
                if task.models.len > 0 {
                    more += (seat.node.models as u32).div_ceil(MODELS_PER_WORD).saturating_sub(1);
                }
                self.local(&seat, &task.models)
            };
            if pass.local_only && local == 0 {
                continue;
            }
            missed = Missed::Rejected;
            if hopeless {
                continue;
            }
            let boost = self.boost(&seat, &task.models, local);
            if height < mul_wad(merit, boost) as u128 {
                return Ok((seat, spot.peers));
            }
        }
        Err(missed)
    }

    /// Draws different nodes by weight, one after the other, until `chosen` has `most`: among those of a field and those `beside` it that
    /// `fits`, and that are not chosen already. `began` is [`Host::reads`] when the draw did. Holding a model weighs and is not required.
    /// Fewer if the draw stayed undecided.
    fn draw_several(
        &self,
        field: Field,
        beside: &[Seat],
        models: &ModelSet,
        (chosen, most): (&mut Vec<NodeId>, usize),
        (fits, began): (&mut dyn FnMut(&Seat) -> bool, u32),
        rng: &mut Rng,
    ) {
        let pass = self.pass(&field, models.len as u32);
        let class = |seat: &Seat| seat.node.class(self.rules.base);
        let total = pass.field.total() + beside.iter().map(|seat| 1 << class(seat)).sum::<u64>();
        for _ in 0..SEVERAL_TRIES {
            if total == 0 || chosen.len() >= most || self.host.reads().wrapping_sub(began) > SEVERAL_READS {
                break;
            }
            let u = rng.below(self.host, total);
            let spot = match u.checked_sub(pass.field.total()) {
                None => pass.field.pick(self.host, u).map(|spot| (spot.node, spot.class)),
                Some(mut u) => beside.iter().find_map(|seat| {
                    let here = u < 1 << class(seat);
                    u = u.saturating_sub(1 << class(seat));
                    here.then(|| (seat.id, class(seat)))
                }),
            };
            let Some((node, class)) = spot.filter(|(node, _)| !chosen.contains(node)) else { continue };
            let seat = Seat::load(self.host, node);
            let (height, merit) = (self.height(&pass, class, rng), self.merit(&seat.node));
            // What it holds need not be read where that cannot make up for it.
            let accepted = |boost| height < mul_wad(merit, boost) as u128;
            if fits(&seat) && accepted(pass.largest_boost) && accepted(self.locality(&seat, models).0) {
                chosen.push(node);
            }
        }
    }

    /// Draws a sampled task's validators among the active nodes of a field. Gives also paused nodes that it met, at most [`PAUSED_MET`].
    pub(crate) fn draw_validators(
        &self,
        field: Field,
        task: &Task,
        first: NodeId,
        open_most: u8,
        rng: &mut Rng,
    ) -> (Vec<NodeId>, Vec<NodeId>) {
        let (mut nodes, mut paused) = (Vec::from([first]), Vec::new());
        let mut fits = |seat: &Seat| {
            let aside = seat.node.status == Status::Paused as u8 && paused.len() < PAUSED_MET;
            if aside && !paused.contains(&seat.id) {
                paused.push(seat.id);
            }
            can_validate(&seat.node, open_most)
        };
        self.draw_several(field, &[], &task.models, (&mut nodes, MEMBERS), (&mut fits, self.host.reads()), rng);
        (nodes, paused)
    }

    /// Draws the nodes of a task that takes three, among the idle ones in its scope and those reserved for it. Where they have to
    /// answer alike and no GPU is required, the first is drawn among all GPU groups that are listed and have three of them, the others
    /// from its own.
    pub fn draw_members(&self, task: &Task, reserved: &[Seat], rng: &mut Rng) -> Members {
        let (order, mut nodes) = (&task.order, Vec::new());
        let (mut field, mut beside) = (Field::new(self.host, Among::Idle, order.group.into()), Vec::from(reserved));
        if field.count(self.host, MEMBERS as u32) + (beside.len() as u32) < MEMBERS as u32 {
            return Members::Nobody;
        }
        let anywhere = order.images() == 0 && order.group.is_any();
        let listed = |seat: &Seat| !anywhere || registry::listed(self.host, seat.node.group);
        if field.total() == 0 && beside.iter().all(listed) {
            return Members::Nodes(beside.iter().map(|seat| seat.id).collect());
        }
        let began = self.host.reads();
        if anywhere {
            let complete = |group: GpuGroup| {
                let idle = Counts::load(self.host, Among::Idle, group).members() as usize;
                let there = idle + reserved.iter().filter(|other| other.node.group == group).count();
                there >= MEMBERS && registry::listed(self.host, group)
            };
            let mut met = false;
            let mut fits = |seat: &Seat| {
                let fits = complete(seat.node.group);
                met |= fits;
                fits
            };
            let first = (&mut nodes, 1);
            self.draw_several(field, reserved, &task.models, first, (&mut fits, began.wrapping_sub(OTHERS_READS)), rng);
            // Those that are kept for it need not be met.
            let own = reserved.first().map(|seat| seat.node.group).filter(|&group| complete(group));
            let group = match nodes.first() {
                Some(&first) => Seat::load(self.host, first).node.group,
                None => match own {
                    Some(group) => group,
                    None => return if met { Members::Undecided } else { Members::Nobody },
                },
            };
            field = Field::new(self.host, Among::Idle, group.into());
            beside.retain(|seat| seat.node.group == group);
        }
        self.draw_several(field, &beside, &task.models, (&mut nodes, MEMBERS), (&mut |_| true, began), rng);
        if nodes.len() == MEMBERS {
            Members::Nodes(nodes)
        } else {
            Members::Undecided
        }
    }

    /// Draws different nodes by weight, among those of a field and those `beside` it, until there are `most`, or tries run out, or so many
    /// words were read, at most [`SEVERAL_READS`].
    pub(crate) fn draw_pool(
        &self,
        field: Field,
        beside: &[Seat],
        models: &ModelSet,
        (most, reads): (usize, u32),
        rng: &mut Rng,
    ) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        let began = self.host.reads().wrapping_sub(SEVERAL_READS.saturating_sub(reads));
        self.draw_several(field, beside, models, (&mut nodes, most), (&mut |_| true, began), rng);
        nodes
    }

    /// Up to `most` different eligible nodes of a field that lack a model, drawn by weight; `reads` bounds the words of nodes read.
    pub(crate) fn draw_lacking(
        &self,
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
        let pass = Pass { tries: 1, ..self.pass(field, 0) };
        let wanted = ModelSet::one(model);
        let plain = Task { models: ModelSet::default(), ..*task };
        while *reads > 0 && (chosen.len() as u32) < most {
            // Where it stands, and its record.
            *reads = reads.saturating_sub(2);
            let Ok((seat, _)) = self.tries(&pass, &plain, rng) else { continue };
            if chosen.contains(&seat.id) {
                continue;
            }
            *reads = reads.saturating_sub((seat.node.models as u32).div_ceil(MODELS_PER_WORD));
            if count_held(self.host, seat.slot, seat.node.models, &wanted) == 0 {
                chosen.push(seat.id);
            }
        }
        chosen
    }

    /// Counts available nodes that hold a model up to `enough`, and adds those of them that the task could have gone to, up to
    /// `pool` different ones in all, to `eligible`; by the same bounded search as a draw, within `reads`.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "the draw's, and what it shares with the models before")]
    pub(crate) fn available_holders(
        &self,
        task: &Task,
        model: ModelId,
        enough: u32,
        nearby: &mut Neighbours,
        pool: u32,
        eligible: &mut Vec<NodeId>,
        reads: &mut u32,
        rng: &mut Rng,
    ) -> u32 {
        let (wanted, list) = (ModelSet::one(model), Holders::load(self.host, model));
        let words = |entries: u8| (entries as u32).div_ceil(MODELS_PER_WORD);
        let mut counted: Vec<NodeId> = Vec::new();
        let done = |counted: &[NodeId], eligible: &[NodeId]| counted.len() as u32 >= enough && eligible.len() as u32 >= pool;
        // Nodes known to be idle are looked at first where many hold the model: they cost a read less.
        if self.popular(list.len()) {
            let (known, mut unknown): (Vec<u32>, Vec<u32>) = (0..nearby.count()).partition(|&i| nearby.knows(i, model));
            // Not where it would help nobody, and within `reads` like all else.
            if !unknown.is_empty() && (known.len() as u32) < enough.max(pool) && *reads > list.further_words() {
                if let Some(roll) = registry::roll(self.host, &[list], self.roster.joined()) {
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
                    holds = count_held(self.host, node_slot(self.host, number), MODELS_PER_WORD as u8, &wanted) > 0;
                }
                if !holds {
                    let seat = Seat::load(self.host, number);
                    *reads = reads.saturating_sub(1 + words(seat.node.models));
                    holds = count_held(self.host, seat.slot, seat.node.models, &wanted) > 0;
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
            for number in self.some_holders(&[list], list.len(), rng) {
                if done(&counted, eligible) || *reads == 0 {
                    break;
                }
                // Where it is entered, and its record.
                *reads = reads.saturating_sub(2);
                let seat = Seat::load(self.host, number);
                if counted.contains(&number) || !seat.node.idle() {
                    continue;
                }
                *reads = reads.saturating_sub(words(seat.node.models));
                if count_held(self.host, seat.slot, seat.node.models, &wanted) > 0 {
                    counted.push(number);
                    if in_scope(&seat, task) && !eligible.contains(&number) {
                        eligible.push(number);
                    }
                }
            }
        }
        counted.len() as u32
    }
}

/// Whether an active node can be called to a validation group: it takes tasks, no other call waits for it, and it has fewer open
/// commitments than hold a node (were held ones called, two groups could wait for each other). Whether it is busy does not matter, so
/// that load does not decide who validates.
fn can_validate(node: &Node, open_most: u8) -> bool {
    matches!(Status::new(node.status), Status::Available | Status::Busy)
        && !node.called()
        && !node.held()
        && node.open() < open_most
}

/// Whether a node has the VRAM or the GPU a task requires.
pub fn in_scope(seat: &Seat, task: &Task) -> bool {
    let group = task.order.group;
    if group.is_any() {
        seat.node.group.vram() >= group.vram()
    } else {
        seat.node.group == group
    }
}
