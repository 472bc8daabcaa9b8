//! Choosing nodes by their ratings ([`muster_core::reputation`]): an application's profile, the pool of candidates, and the group that
//! its algorithm forms of them. The judgement is in [`crate::groups`].

use crate::abi::{emit, IMuster::*};
use crate::draw::{self, Rng};
use crate::host::{offset, Host, Task};
use crate::layout::{profile as words, profile_slot};
use crate::network::{Due, Network};
use crate::roster::Seat;
use crate::sampler::{Among, Field};
use crate::{IMuster, Result};
use alloc::vec::Vec;
use muster_core::adaptive::{best_target, Climber, Settings, Tally};
use muster_core::id::NodeId;
use muster_core::record::{Climb, Order, Profile, Targeting};
use muster_core::reputation::{Algorithm, Exact, Likelihood, Rule};
use muster_core::wad::WAD;
use muster_core::word::{Address, Word};

/// Nodes that a group is formed of, at most: all that there are, or so many drawn by weight.
pub const POOL_MOST: usize = 32;
/// Words read to look at everybody in a scope, beyond which nodes are drawn, though they are few: they stand in many GPU groups.
const POOL_READS: u32 = 128;

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
        let reserved = self.ring.reserved(self.host, at);
        let beside = self.reserved_fit(order, &reserved);
        let task = Task::load(self.host, at);
        let drawn = match self.host.block_hash(order.moment) {
            Some(hash) => self.choose(&task, &beside, &mut Rng::new(self.host, hash, order.id)),
            None => Err(draw::Members::Undecided),
        };
        let (members, chosen) = match drawn {
            Ok(chosen) => (draw::Members::Nodes(chosen.nodes.clone()), Some(chosen)),
            Err(members) => (members, None),
        };
        let group = self.seat_drawn(at, &task, members, beside, &reserved);
        if let (Some(chosen), Some(group)) = (chosen, group) {
            let algorithm = self.profile_words(task.escrow.creator).0.algorithm;
            let told = (algorithm, chosen.nodes.len() as u8, chosen.target, chosen.likelihood);
            emit::<GroupChosen>(self.host, (order.id, group, task.escrow.creator), told);
        }
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
                let target = best_target::<_, Likely>(profile.alpha, (least, most), &pool, &mut scratch, &mut form);
                (target, Climb::START)
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
        let mut likelihood = Likely::default();
        pool[..formed.size].iter().for_each(|member| likelihood.push(member));
        if let Some((target, climb)) = renewed {
            let at = profile_slot(self.host, task.escrow.creator);
            self.host.put(offset(at, words::PROFILE), &Profile { target, ..profile });
            self.host.put(offset(at, words::CLIMB), &climb);
        }
        let nodes = pool[..formed.size].iter().map(|member| member.node).collect();
        Ok(Chosen { nodes, target, likelihood: likelihood.value() })
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
        let (mut nodes, all) = match field.everybody(self.host, (POOL_MOST - beside.len()) as u32, POOL_READS) {
            Some(nodes) => (nodes, true),
            None => (self.draw_pool(field, beside, &task.models, POOL_MOST, rng), false),
        };
        if all {
            nodes.retain(|&node| self.may_work(&Seat::load(self.host, node)));
            nodes.extend(beside.iter().map(|seat| seat.id));
        }
        if nodes.len() < most {
            return Err(if all { draw::Members::Nobody } else { draw::Members::Undecided });
        }
        let rating = |node| Seat::load(self.host, node).scores(self.host).record().rating();
        Ok(nodes.into_iter().map(|node| Candidate { rating: rating(node), node }).collect())
    }
}
