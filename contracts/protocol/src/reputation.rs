//! Choosing nodes by their ratings ([`muster_core::reputation`]): an application's profile, the pool of candidates, and the group that
//! its algorithm forms of them. The judgement is in [`crate::groups`].

use crate::abi::{emit, IMuster::*};
use crate::draw::{self, Rng};
use crate::groups;
use crate::host::{offset, Host, Task};
use crate::layout::{entry, group, node as record, node_slot, profile as words, profile_slot, GROUPS};
use crate::network::{Due, Network};
use crate::roster::Seat;
use crate::sampler::{Among, Field};
use crate::{IMuster, Result};
use alloc::vec::Vec;
use muster_core::adaptive::{best_target, mean_target, Climber, Settings, Tally};
use muster_core::id::{GpuGroup, NodeId};
use muster_core::record::{Climb, Models, Order, Profile, Reserved, Scores, Targeting, MEMBERS, MEMBERS_MOST, MODELS_PER_WORD};
use muster_core::reputation::{Algorithm, Exact, Likelihood, Rule};
use muster_core::wad::WAD;
use muster_core::word::{Address, Word};

/// Nodes that a group is formed of, at most: all that there are, or so many drawn by weight.
pub const POOL_MOST: usize = 32;
/// Words read to find everybody in a scope, beyond which nodes are drawn, though they are few. It is enough for any of them, unless they stand
/// at VRAM sizes of which more than 31 GPU models are known.
const POOL_READS: u32 = 168;
/// Words read to draw them.
const POOL_DRAW_READS: u32 = 176;
/// Words read for both.
const POOL_READS_MOST: u32 = 264;

/// Gas beyond which choosing nodes and forming their group is not one draw's work but two: so that neither makes a call dearer than any may be
/// for what others have done. Reckoned with each word as if it were read for the first time, nodes that stand apart, models that nobody holds.
const DEAR: u64 = 750_000;
/// Gas of a word read.
const READ: u64 = 2_100;
/// Gas of a target that is set anew.
const RENEWAL: u64 = 170_000;
/// Gas of a member that begins, or of a node that was reserved and is let go.
const MEMBER: u64 = 22_000;
/// Gas of a GPU group that members leave.
const GROUP: u64 = 25_000;
/// Gas of a model of each member: looking for it, and asking for it.
const MODEL: u64 = 2_000;
/// Gas of a word that is written for the first time, beyond another's.
const FIRST: u64 = 17_100;
/// Words that a draw writes for the first time, at most, before the one that forms a group.
const FIRST_MOST: u32 = 18;

/// A node in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its rating, a wad.
    pub rating: u64,
    /// Who it is.
    pub node: NodeId,
}

/// The exact likelihood of a group of candidates.
#[derive(Default)]
struct Likely(Exact);

impl Likelihood<Candidate> for Likely {
    fn push(&mut self, member: &Candidate) {
        self.0.push(&member.rating);
    }
    fn value(&self) -> u64 {
        self.0.value()
    }
}

/// A group that was chosen: its members, in the order in which the algorithm took them, and what for.
struct Chosen {
    nodes: Vec<NodeId>,
    target: u64,
    likelihood: u64,
    /// Whether the target was set anew.
    renewed: bool,
}

impl Chosen {
    #[inline(never)]
    fn new(members: &[Candidate], target: u64, renewed: bool) -> Chosen {
        let mut likelihood = Likely::default();
        members.iter().for_each(|member| likelihood.push(member));
        Chosen { nodes: members.iter().map(|member| member.node).collect(), target, likelihood: likelihood.value(), renewed }
    }
}

impl<H: Host> Network<'_, H> {
    fn profile_words(&self, application: Address) -> (Profile, Climb) {
        let at = profile_slot(self.host, application);
        let profile = self.host.get::<Profile>(offset(at, words::PROFILE)).or_default();
        (profile, self.host.get(offset(at, words::CLIMB)))
    }

    /// See `IMuster.setProfile`.
    pub fn set_profile(&mut self, given: IMuster::Profile) -> Result<()> {
        self.settled()?;
        let profile = Profile {
            algorithm: given.algorithm,
            least: given.least,
            most: given.most,
            reschedules: given.reschedules,
            targeting: given.targeting,
            target: given.target,
            alpha: given.alpha,
            period: given.period,
        };
        ensure!(profile.valid(), BadProfile);
        let application = self.host.sender();
        let at = profile_slot(self.host, application);
        self.host.put(offset(at, words::PROFILE), &profile);
        self.host.put(offset(at, words::CLIMB), &Climb::START);
        emit::<ProfileSet>(self.host, (application,), (given,));
        Ok(())
    }

    /// See `IMuster.profile`.
    pub fn profile(&self, application: Address) -> (IMuster::Profile, u32, u32, u32) {
        let (p, climb) = self.profile_words(application);
        let profile = IMuster::Profile {
            algorithm: p.algorithm,
            least: p.least,
            most: p.most,
            reschedules: p.reschedules,
            targeting: p.targeting,
            target: p.target,
            alpha: p.alpha,
            period: p.period,
        };
        (profile, climb.groups, climb.successes, climb.members)
    }

    /// Nodes that a task pays for whose creator the sender is, chosen by their ratings.
    pub(crate) fn nodes_paid(&self) -> u8 {
        let profile = self.host.load(profile_slot(self.host, self.host.sender()));
        Profile::most_of(&profile)
    }

    /// Counts a settled group for its application; gives its profile.
    pub(crate) fn count_settled(&mut self, application: Address, succeeded: bool, members: u32) -> Profile {
        let at = profile_slot(self.host, application);
        let profile = self.host.get::<Profile>(offset(at, words::PROFILE)).or_default();
        if profile.targeting != Targeting::Given as u8 {
            let at = offset(at, words::CLIMB);
            let mut climb: Climb = self.host.get(at);
            climb.count(succeeded, members);
            self.host.put(at, &climb);
        }
        profile
    }

    /// Makes the next draw, if it is one of nodes chosen by their ratings.
    pub fn form_next_rated(&mut self) {
        if let Some(Due::Task(at, order)) = self.next_due() {
            if order.rated() {
                self.form_rated(at, &order);
            }
        }
    }

    /// Draws the pool of the first Pending task, which is to be given to nodes chosen by their ratings, and forms its group.
    pub fn form_rated(&mut self, at: Word, order: &Order) {
        let began = self.host.reads();
        let reserved = self.ring.reserved(self.host, at);
        let beside = self.reserved_fit(order, &reserved);
        let task = Task::load(self.host, at);
        let before = order.is_chosen();
        if before && self.prepare(&task, at, &reserved) {
            return;
        }
        let drawn = match self.host.block_hash(order.moment) {
            _ if before => Ok(self.chosen_before(&task, at)),
            Some(hash) => self.choose(&task, &beside, &mut Rng::new(self.host, hash, order.id)),
            None => Err(draw::Members::Undecided),
        };
        let (members, chosen) = match drawn {
            Ok(chosen) => (draw::Members::Nodes(chosen.nodes.clone()), Some(chosen)),
            Err(members) => (members, None),
        };
        // While the draw is due, nothing changes that it hangs on: what was chosen can be formed by a later call.
        let later = chosen.as_ref().filter(|chosen| !before && self.is_dear(&task, chosen, beside.len(), began));
        let group = match later {
            Some(chosen) => {
                let scored = self.scored_drawn(order, &chosen.nodes, &beside);
                self.ring.choose(self.host, at, &order.as_chosen(scored), &chosen.nodes);
                Some(0)
            }
            None => self.seat_drawn(at, &task, members, beside, &reserved),
        };
        if let (Some(chosen), Some(group)) = (chosen, group) {
            let algorithm = self.profile_words(task.escrow.creator).0.algorithm;
            let told = (algorithm, chosen.nodes.len() as u8, chosen.target, chosen.likelihood);
            emit::<GroupChosen>(self.host, (order.id, group, task.escrow.creator), told);
        }
    }

    /// Does what would make it dear to form the group of what was chosen: lets nodes go that were reserved in vain, or writes words for the first
    /// time. Gives whether there was anything.
    fn prepare(&mut self, task: &Task, at: Word, reserved: &Reserved) -> bool {
        let nodes = self.ring.chosen(self.host, at);
        let mut left = self.reserved_for(task.order.id, reserved);
        left.retain(|seat| !nodes.contains(&seat.id));
        if !left.is_empty() {
            self.let_go(left, false);
            return true;
        }
        self.wear_in(task, &nodes, FIRST_MOST) > 0
    }

    /// What an earlier call has chosen for the first Pending task.
    fn chosen_before(&self, task: &Task, at: Word) -> Chosen {
        let target = self.profile_words(task.escrow.creator).0.target;
        let chosen: Vec<Candidate> = self.ring.chosen(self.host, at).into_iter().map(|node| self.candidate(node)).collect();
        Chosen::new(&chosen, target, false)
    }

    /// Whether a later draw forms the group, by all that it could come to beside what was read since `began`; so many nodes `beside` may
    /// have to be let go.
    fn is_dear(&mut self, task: &Task, chosen: &Chosen, beside: usize, began: u32) -> bool {
        let (mut groups, mut count) = ([GpuGroup(0); MEMBERS_MOST], 0);
        for &node in &chosen.nodes {
            let group = Seat::load(self.host, node).node.group;
            if !groups.contains(&group) {
                groups[count] = group;
                count += 1;
            }
        }
        let nodes = chosen.nodes.len() as u64;
        let first = self.wear_in(task, &chosen.nodes, 0) as u64;
        let read = self.host.reads().wrapping_sub(began) as u64;
        let renewal = if chosen.renewed { RENEWAL } else { 0 };
        let members = (nodes + beside as u64) * MEMBER + nodes * task.models.len as u64 * MODEL;
        read * READ + renewal + members + count as u64 * GROUP + first * FIRST > DEAR
    }

    /// How many words that forming the group writes were never written; writes up to `most` of them. What is written says nothing: no task,
    /// models, or members.
    #[inline(never)]
    fn wear_in(&mut self, task: &Task, nodes: &[NodeId], mut most: u32) -> u32 {
        let words = if task.models.len > 1 { (task.models.len as u64).div_ceil(MODELS_PER_WORD as u64) } else { 0 };
        let place = entry(self.host, GROUPS, groups::places(self.host).next() as u64);
        let more = group::MORE_MEMBERS + (nodes.len() as u64).div_ceil(MEMBERS as u64).saturating_sub(1);
        let mut found = self.unwritten((place, group::ESCROW, group::MODELS + words), &mut most);
        found += self.unwritten((place, group::MEMBERS, group::ANSWERS), &mut most);
        found += self.unwritten((place, group::MORE_MEMBERS, more), &mut most);
        for &node in nodes {
            found += self.unwritten((node_slot(self.host, node), record::ORDER, record::IN_USE + words), &mut most);
        }
        found
    }

    /// How many words of a record, from one to before another, were never written; writes up to `left` of them.
    #[inline(never)]
    fn unwritten(&mut self, (slot, from, to): (Word, u64, u64), left: &mut u32) -> u32 {
        let mut found = 0;
        for word in from..to {
            let at = offset(slot, word);
            if self.host.load(at).is_zero() {
                found += 1;
                if *left > 0 {
                    *left -= 1;
                    self.host.put(at, &Models::OPENED);
                }
            }
        }
        found
    }

    /// A node of a pool.
    fn candidate(&self, node: NodeId) -> Candidate {
        let scores: Scores = self.host.get(offset(node_slot(self.host, node), record::SCORES));
        Candidate { rating: scores.record().rating(), node }
    }

    /// Chooses a task's nodes among the idle ones in its scope and those reserved for it.
    fn choose(&mut self, task: &Task, beside: &[Seat], rng: &mut Rng) -> core::result::Result<Chosen, draw::Members> {
        let (profile, climb) = self.profile_words(task.escrow.creator);
        // No more than the fee was for when the task was created.
        let most = (profile.most as u32).min(task.order.nodes()) as usize;
        let least = (profile.least as usize).min(most);
        let mut drawn = self.pool(task, beside, most, rng)?;
        let mut pool: Vec<Candidate> = Vec::new();
        // By falling rating, equal ones in the order of the hash.
        while !drawn.is_empty() {
            let next = drawn.swap_remove(rng.below(self.host, drawn.len() as u64) as usize);
            pool.insert(pool.partition_point(|other| other.rating >= next.rating), next);
        }
        let algorithm = Algorithm::new(profile.algorithm).unwrap_or(Algorithm::Fixed);
        let host = &*self.host;
        let mut form =
            |free: &mut [Candidate], rule: &Rule| algorithm.form::<_, Likely>(free, rule, |n| rng.below(host, n as u64) as usize);
        let renewed = (climb.groups >= profile.period).then(|| match profile.targeting {
            targeting if targeting == Targeting::Predictive as u8 => {
                let mut scratch = pool.clone();
                let best = best_target::<_, Likely>(profile.alpha, (least, most), &pool, &mut scratch, &mut form);
                let tried = climb.tried.saturating_add(1);
                (mean_target(profile.target, climb.tried, best), Climb { tried, ..Climb::START })
            }
            _ => {
                let capacity = climb.members as u64 / profile.least.max(1) as u64;
                let mut climber = Climber::resume(Settings::new(profile.alpha), profile.target, &climb);
                climber.step(Tally { successes: climb.successes.into(), groups: climb.groups.into(), capacity });
                (climber.target(), climber.state())
            }
        });
        let target = renewed.map_or(profile.target, |(target, _)| target);
        let rule = Rule::new(least, most, target.min(WAD)).map_err(|_| draw::Members::Nobody)?;
        let formed = form(&mut pool, &rule).ok_or(draw::Members::Nobody)?;
        if let Some((target, climb)) = renewed {
            let at = profile_slot(self.host, task.escrow.creator);
            self.host.put(offset(at, words::PROFILE), &Profile { target, ..profile });
            self.host.put(offset(at, words::CLIMB), &climb);
        }
        Ok(Chosen::new(&pool[..formed.size], target, renewed.is_some()))
    }

    /// The candidates for a task: all idle eligible nodes in its scope, and those reserved for it, if they are at most [`POOL_MOST`],
    /// else so many different ones, drawn by weight. At least `most`, or there is nobody, or the draw stays undecided.
    fn pool(
        &mut self,
        task: &Task,
        beside: &[Seat],
        most: usize,
        rng: &mut Rng,
    ) -> core::result::Result<Vec<Candidate>, draw::Members> {
        let field = Field::new(self.host, Among::Idle, task.order.group.into());
        let began = self.host.reads();
        let left = |host: &H| POOL_READS_MOST.saturating_sub(host.reads().wrapping_sub(began)).min(POOL_DRAW_READS);
        let (mut nodes, all) = match field.everybody(self.host, (POOL_MOST - beside.len()) as u32, POOL_READS) {
            Some(nodes) => (nodes, true),
            None => (self.draw_pool(field, beside, &task.models, (POOL_MOST, left(self.host)), rng), false),
        };
        if all {
            nodes.retain(|&node| self.may_work(&Seat::load(self.host, node)));
            nodes.extend(beside.iter().map(|seat| seat.id));
        }
        if nodes.len() < most {
            return Err(if all { draw::Members::Nobody } else { draw::Members::Undecided });
        }
        Ok(nodes.into_iter().map(|node| self.candidate(node)).collect())
    }
}
