//! Policy 3: nodes are chosen by their ratings ([`muster_core::reputation`]): an application's profile, the pool of candidates, and the group that
//! its algorithm forms of them.

use crate::abi::{emit, IMuster::*};
use crate::flow::draw::{draw_several, Members, Rng, SEVERAL_READS};
use crate::flow::network::Network;
use crate::flow::reliability::may_work;
use crate::flow::standing::{let_go, reserved_for};
use crate::host::{offset, Host};
use crate::policy::group::{handle_drawn, reserved_fit, scored_drawn};
use crate::policy::ruling::{Case, Mark, Part, Ruling, Settled};
use crate::store::accounts;
use crate::store::groups::places;
use crate::store::layout::{entry, group, node as record, node_slot, profile as words, profile_slot, GROUPS};
use crate::store::node::NodeHandle;
use crate::store::sampler::{Among, Field};
use crate::store::task::{ModelSet, Task};
use crate::Result;
use alloc::vec::Vec;
use muster_core::adaptive::{best_target, mean_target, HillClimber, Settings, Tally};
use muster_core::id::{GpuGroup, NodeId};
use muster_core::record::{
    Models, Order, Policy, Profile, Reserved, Scores, Stage, TargetSearch, Targeting, MEMBERS, MEMBERS_MOST, MODELS_PER_WORD,
    TASK_MODELS,
};
use muster_core::reputation::{vote_by, Algorithm, Exact, Likelihood, Rule};
use muster_core::validation::{Pot, Verdict};
use muster_core::wad::WAD;
use muster_core::word::{Address, Word};

/// Most nodes that a group is chosen from: all that there are, or that many drawn by weight.
pub const POOL_MOST: usize = 32;
/// Most words read to find all nodes of a scope. Beyond it nodes are drawn, even if they are few. It suffices unless the nodes are at VRAM
/// sizes with more than 31 known GPU models.
const POOL_READS: u32 = 168;
/// Words read to draw them.
const POOL_DRAW_READS: u32 = 176;
/// Words read for both.
const POOL_READS_MOST: u32 = 264;
/// Above this gas, one draw chooses the nodes and another forms their group, so that neither exceeds the limit on work for others. The
/// estimate assumes that each word is read for the first time, that nodes share no words, and that nobody holds the models.
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
/// Gas of asking others for the models of a task: [`crate::flow::network::SPREAD_READS`] words, and ten events.
const SPREAD: u64 = 120_000;
/// Gas of a word that is written for the first time, beyond another's.
const FIRST: u64 = 17_100;
/// Words that a draw writes for the first time, at most, before the one that forms a group.
const FIRST_MOST: u32 = 18;

/// Groups of more members are given tasks of no more models than a word holds.
const LARGE_GROUP: u8 = 6;

/// A node in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its rating, a wad.
    pub rating: u64,
    /// The node.
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

/// A chosen group: its members, in the order in which the algorithm took them, and their target.
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

pub(crate) fn profile_words<H: Host>(net: &Network<'_, H>, application: Address) -> (Profile, TargetSearch) {
    let at = profile_slot(net.host, application);
    let profile = net.host.get::<Profile>(offset(at, words::PROFILE)).or_default();
    (profile, net.host.get(offset(at, words::TARGET_SEARCH)))
}

/// The terms frozen at its creation, by the sender's profile: the most nodes that its fee is for.
pub(crate) fn freeze<H: Host>(net: &Network<'_, H>, models: usize) -> Result<Policy> {
    let profile = net.host.load(profile_slot(net.host, net.host.sender()));
    let most = Profile::most_of(&profile);
    // Many members that all load many models would make a draw more expensive than any call may be.
    let most_models = if most > LARGE_GROUP { MODELS_PER_WORD as usize } else { TASK_MODELS };
    ensure!(models <= most_models, TooManyModels(models, most_models));
    Ok(Policy::Rated { most, attempts: 0, undecided: 0 })
}

/// Counts a settled group for its application; gives its profile.
pub(crate) fn count_settled<H: Host>(net: &mut Network<'_, H>, application: Address, succeeded: bool, members: u32) -> Profile {
    let at = profile_slot(net.host, application);
    let profile = net.host.get::<Profile>(offset(at, words::PROFILE)).or_default();
    if profile.targeting != Targeting::Given as u8 {
        let at = offset(at, words::TARGET_SEARCH);
        let mut search: TargetSearch = net.host.get(at);
        search.count(succeeded, members);
        net.host.put(at, &search);
    }
    profile
}

/// Draws a pool for the first Pending task, which goes to nodes chosen by their ratings, and forms its group. Returns the group's place if
/// there is room to ask others for its models.
pub(crate) fn form_rated<H: Host>(net: &mut Network<'_, H>, at: Word, order: &Order) -> u32 {
    let mut began = net.host.reads();
    let reserved = net.ring.reserved(net.host, at);
    let beside = reserved_fit(net, order, &reserved);
    let task = Task::load(net.host, at);
    let before = order.is_chosen();
    if before {
        if make_ready(net, &task, at, &reserved) {
            return 0;
        }
        // The words that this read are read again, and counted then.
        began = net.host.reads();
    }
    let drawn = match net.host.block_hash(order.moment) {
        _ if before => Ok(chosen_before(net, &task, at)),
        Some(hash) => {
            let mut rng = Rng::new(net.host, hash, order.id);
            choose_group(net, &task, &beside, &mut rng)
        }
        None => Err(Members::Late),
    };
    let (members, chosen) = match drawn {
        Ok(chosen) => (Members::Nodes(chosen.nodes.clone()), Some(chosen)),
        Err(members) => (members, None),
    };
    // While the draw is due, its conditions do not change, so a later call can form the chosen group.
    let gas = chosen.as_ref().map_or(0, |chosen| reckoned(net, &task, chosen, beside.len(), began));
    let later = chosen.as_ref().filter(|_| !before && gas > DEAR);
    let group = match later {
        Some(chosen) => {
            let scored = scored_drawn(net, order, &chosen.nodes, &beside);
            net.ring.choose(net.host, at, &order.as_chosen(scored), &chosen.nodes);
            Some(0)
        }
        None => handle_drawn(net, at, &task, members, beside, &reserved),
    };
    if let (Some(chosen), Some(group)) = (chosen, group) {
        let algorithm = profile_words(net, task.escrow.creator).0.algorithm;
        let told = (algorithm, chosen.nodes.len() as u8, chosen.target, chosen.likelihood);
        emit::<GroupChosen>(net.host, (order.id, group, task.escrow.creator), told);
    }
    group.filter(|_| task.models.len > 0 && gas + SPREAD <= DEAR).unwrap_or(0)
}

/// Does the parts of forming the chosen group that would make it too expensive: lets reserved nodes go that were not chosen, or writes
/// words for the first time. Returns whether there was anything to do.
fn make_ready<H: Host>(net: &mut Network<'_, H>, task: &Task, at: Word, reserved: &Reserved) -> bool {
    let nodes = net.ring.chosen(net.host, at);
    let mut left = reserved_for(net, task.order.id, reserved);
    left.retain(|handle| !nodes.contains(&handle.id));
    if !left.is_empty() {
        let_go(net, left, false);
        return true;
    }
    prewarm(net, task, &nodes, FIRST_MOST) > 0
}

/// The nodes that an earlier call has chosen for the first Pending task.
fn chosen_before<H: Host>(net: &Network<'_, H>, task: &Task, at: Word) -> Chosen {
    let target = profile_words(net, task.escrow.creator).0.target;
    let chosen: Vec<Candidate> = net.ring.chosen(net.host, at).into_iter().map(|node| candidate(net, node)).collect();
    Chosen::new(&chosen, target, false)
}

/// Estimates the gas of forming the group, with the words read since `began`. `beside` is the number of reserved nodes that it may release.
fn reckoned<H: Host>(net: &mut Network<'_, H>, task: &Task, chosen: &Chosen, beside: usize, began: u32) -> u64 {
    let (mut groups, mut count) = ([GpuGroup(0); MEMBERS_MOST], 0);
    for &node in &chosen.nodes {
        let group = NodeHandle::load(net.host, node).node.group;
        if !groups.contains(&group) {
            groups[count] = group;
            count += 1;
        }
    }
    let nodes = chosen.nodes.len() as u64;
    let first = prewarm(net, task, &chosen.nodes, 0) as u64;
    let read = net.host.reads().wrapping_sub(began) as u64;
    let renewal = if chosen.renewed { RENEWAL } else { 0 };
    let members = (nodes + beside as u64) * MEMBER + nodes * task.models.len as u64 * MODEL;
    read * READ + renewal + members + count as u64 * GROUP + first * FIRST
}

/// Counts the slots that this group would initialise; prewarms up to `most`. The prewarmed words mean nothing: no task, no models, no
/// members.
#[inline(never)]
fn prewarm<H: Host>(net: &mut Network<'_, H>, task: &Task, nodes: &[NodeId], mut most: u32) -> u32 {
    let words = if task.models.len > 1 { (task.models.len as u64).div_ceil(MODELS_PER_WORD as u64) } else { 0 };
    let place = entry(net.host, GROUPS, places(net.host).next() as u64);
    let more = group::MORE_MEMBERS + (nodes.len() as u64).div_ceil(MEMBERS as u64).saturating_sub(1);
    let mut found = unwritten(net, (place, group::ESCROW, group::MODELS + words), &mut most);
    found += unwritten(net, (place, group::MEMBERS, group::ANSWERS), &mut most);
    found += unwritten(net, (place, group::MORE_MEMBERS, more), &mut most);
    for &node in nodes {
        let at = node_slot(net.host, node);
        found += unwritten(net, (at, record::ORDER, record::IN_USE + words), &mut most);
    }
    found
}

/// Counts the words of a record, from one to before another, that were never written; writes up to `left` of them.
#[inline(never)]
fn unwritten<H: Host>(net: &mut Network<'_, H>, (slot, from, to): (Word, u64, u64), left: &mut u32) -> u32 {
    let mut found = 0;
    for word in from..to {
        let at = offset(slot, word);
        if net.host.load(at).is_zero() {
            found += 1;
            if *left > 0 {
                *left -= 1;
                net.host.put(at, &Models::OPENED);
            }
        }
    }
    found
}

/// A node of a pool.
fn candidate<H: Host>(net: &Network<'_, H>, node: NodeId) -> Candidate {
    let scores: Scores = net.host.get(offset(node_slot(net.host, node), record::SCORES));
    Candidate { rating: scores.record().rating(), node }
}

/// Chooses a task's nodes among the idle ones in its scope and those reserved for it.
fn choose_group<H: Host>(
    net: &mut Network<'_, H>,
    task: &Task,
    beside: &[NodeHandle],
    rng: &mut Rng,
) -> core::result::Result<Chosen, Members> {
    let (profile, search) = profile_words(net, task.escrow.creator);
    // No more than the fee was for when the task was created.
    let most = (profile.most as u32).min(task.order.nodes()) as usize;
    let least = (profile.least as usize).min(most);
    let mut drawn = pool_of(net, task, beside, most, rng)?;
    let mut pool: Vec<Candidate> = Vec::new();
    // By falling rating, equal ones in the order of the hash.
    while !drawn.is_empty() {
        let next = drawn.swap_remove(rng.below(net.host, drawn.len() as u64) as usize);
        pool.insert(pool.partition_point(|other| other.rating >= next.rating), next);
    }
    let algorithm = Algorithm::new(profile.algorithm).unwrap_or(Algorithm::Fixed);
    let host = &*net.host;
    let mut form =
        |free: &mut [Candidate], rule: &Rule| algorithm.form::<_, Likely>(free, rule, |n| rng.below(host, n as u64) as usize);
    let renewed = (search.groups >= profile.period).then(|| match profile.targeting {
        targeting if targeting == Targeting::Predictive as u8 => {
            let mut scratch = pool.clone();
            let best = best_target::<_, Likely>(profile.alpha, (least, most), &pool, &mut scratch, &mut form);
            let tried = search.tried.saturating_add(1);
            (mean_target(profile.target, search.tried, best), TargetSearch { tried, ..TargetSearch::START })
        }
        _ => {
            let capacity = search.members as u64 / profile.least.max(1) as u64;
            let mut climber = HillClimber::resume(Settings::new(profile.alpha), profile.target, &search);
            climber.step(Tally { successes: search.successes.into(), groups: search.groups.into(), capacity });
            (climber.target(), climber.state())
        }
    });
    let target = renewed.map_or(profile.target, |(target, _)| target);
    let rule = Rule::new(least, most, target.min(WAD)).map_err(|_| Members::Nobody)?;
    let formed = form(&mut pool, &rule).ok_or(Members::Nobody)?;
    if let Some((target, search)) = renewed {
        let at = profile_slot(net.host, task.escrow.creator);
        net.host.put(offset(at, words::PROFILE), &Profile { target, ..profile });
        net.host.put(offset(at, words::TARGET_SEARCH), &search);
    }
    Ok(Chosen::new(&pool[..formed.size], target, renewed.is_some()))
}

/// The candidates for a task: all idle eligible nodes in its scope, and those reserved for it, if they are at most [`POOL_MOST`], else that
/// many different ones, drawn by weight. If these are fewer than `most`, there is nobody, or the draw stays undecided.
fn pool_of<H: Host>(
    net: &mut Network<'_, H>,
    task: &Task,
    beside: &[NodeHandle],
    most: usize,
    rng: &mut Rng,
) -> core::result::Result<Vec<Candidate>, Members> {
    let field = Field::new(net.host, Among::Idle, task.order.group.into());
    let began = net.host.reads();
    let left = |host: &H| POOL_READS_MOST.saturating_sub(host.reads().wrapping_sub(began)).min(POOL_DRAW_READS);
    let (mut nodes, all) = match field.everybody(net.host, (POOL_MOST - beside.len()) as u32, POOL_READS) {
        Some(nodes) => (nodes, true),
        None => (draw_pool(net, field, beside, &task.models, (POOL_MOST, left(net.host)), rng), false),
    };
    if all {
        nodes.retain(|&node| may_work(net, &NodeHandle::load(net.host, node)));
        nodes.extend(beside.iter().map(|handle| handle.id));
    }
    if nodes.len() < most {
        return Err(if all { Members::Nobody } else { Members::Undecided });
    }
    Ok(nodes.into_iter().map(|node| candidate(net, node)).collect())
}

/// Draws different nodes by weight, from a field and from those `beside` it. Ends with `most` nodes, when tries run out, or when so many
/// words were read, at most [`SEVERAL_READS`].
fn draw_pool<H: Host>(
    net: &Network<'_, H>,
    field: Field,
    beside: &[NodeHandle],
    models: &ModelSet,
    (most, reads): (usize, u32),
    rng: &mut Rng,
) -> Vec<NodeId> {
    let mut nodes = Vec::new();
    let began = net.host.reads().wrapping_sub(SEVERAL_READS.saturating_sub(reads));
    draw_several(net, field, beside, models, (&mut nodes, most), (&mut |_| true, began), rng);
    nodes
}

/// Rules on a group: members are right that agree with more than half of it (the paper, section 3.3). Without such a majority, the task
/// goes to another group, as often as its application's profile allows; each group that finds no majority costs it a start fee. Only a
/// majority rates answers, and errors are never rated: otherwise tasks without a right answer would lower the ratings of everybody who
/// tries.
pub(crate) fn rule<H: Host>(net: &mut Network<'_, H>, case: &Case<'_>, attempts: u8) -> Ruling {
    let (members, fee) = (&case.group.members[..case.count], case.escrow.fee);
    let answers: Vec<Option<Word>> =
        members.iter().zip(case.answers).map(|(m, answer)| (m.stage == Stage::Answered).then_some(answer)).collect();
    let mut right = [false; MEMBERS_MOST];
    let winner = vote_by(&answers, &mut right[..case.count], |a, b| case.same(a, b));
    let profile = count_settled(net, case.escrow.creator, winner.is_some(), case.count as u32);
    let settled = match winner {
        Some(_) => Settled::Agreed,
        None if attempts < profile.reschedules => Settled::Rescheduled,
        None if answers.iter().flatten().count() > 1 => Settled::Differing,
        None => Settled::Unanswered,
    };
    let mut ruling = Ruling::new(settled, winner);
    let (mut left, mut pot) = (0, 0);
    if winner.is_some() {
        left = right.iter().filter(|&&right| right).count() as u128;
        pot = Pot::of_fee(fee, case.count, case.failed).fee;
        accounts::save(net.host, fee - pot);
    } else {
        ruling.start_fee = case.start_fee();
    }
    let share = pot / left.max(1);
    for (i, member) in members.iter().enumerate() {
        let verdict = match member.stage {
            Stage::Answered if winner.is_none() => Verdict::Open,
            Stage::Answered if right[i] => Verdict::Right,
            Stage::Answered => Verdict::Wrong,
            Stage::Failed => Verdict::Failed,
            Stage::Committed => Verdict::Withheld,
            _ => Verdict::TimedOut,
        };
        // The last of the right members gets the remainder.
        let paid = match (verdict, left) {
            (Verdict::Right, 1) => pot,
            (Verdict::Right, _) => share,
            _ => 0,
        };
        (pot, left) = (pot - paid, left.saturating_sub((verdict == Verdict::Right) as u128));
        let counts = case.order.scored() && !matches!(verdict, Verdict::Open | Verdict::Failed);
        let mark = counts.then_some(Mark::Rating(verdict == Verdict::Right));
        ruling.parts[i] = Part { verdict, paid, mark };
    }
    ruling
}
