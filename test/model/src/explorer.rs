//! The state of the network in the view of a reader of nothing but logs and the times of their blocks. It is compared with storage, word by
//! word where a view does not show it. How an event changes it is at the end of `model.rs`, in the file that knows when each event comes.

use crate::world::parameter;
use crate::world::stage::*;
use alloy_primitives::B256;
use alloy_sol_types::SolCall;
use muster_core::id::{GpuGroup, ModelId, NodeId, QueueId, TaskId, Ticket};
use muster_core::record::{Head, NextParameter, Proposal, Rules, Scores};
use muster_core::word::{Address, Word};
use muster_protocol::abi::IMuster::{self, Outcome, Profile, TaskCreated};
use muster_protocol::admin::stores::stores_of;
use muster_protocol::admin::worker::worker_of;
use muster_protocol::layout::{entry, node_slot, slot, HEAD, NEXT_OWNER, NEXT_PARAMETERS, NEXT_TREASURY, RULES};
use muster_protocol::parameters::PARAMETERS;
use muster_protocol::store::registry;
use muster_protocol::store::sampler::Among;
use muster_protocol::{admin, Host, Network};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// H is followed in f64.
const EPS: f64 = 1e-10;

#[derive(Clone, Default, Debug)]
pub(crate) struct Node {
    pub(crate) operator: Address,
    pub(crate) status: u8,
    pub(crate) group: u32,
    pub(crate) stake: u128,
    pub(crate) h: f64,
    pub(crate) h_at: u64,
    pub(crate) joined_at: u64,
    /// All scores ever; the pool is the last fifty.
    pub(crate) scores: Vec<u8>,
    /// Judgements that its rating counts, and those of them that held it right.
    pub(crate) judged: (u64, u64),
    pub(crate) held: BTreeSet<u64>,
    pub(crate) in_use: Vec<u64>,
    /// The running task or the last one, and its deadline.
    pub(crate) task: (u64, u64),
    /// Whether it runs that.
    pub(crate) runs: bool,
    /// Until when it waits apart, and whether it waits for two others then.
    pub(crate) parked: Option<u64>,
    pub(crate) waits: bool,
    /// The Pending task that it is reserved for; 0 for none.
    pub(crate) reserved: u64,
    /// Commitments that are not settled, and whether they keep it from work.
    pub(crate) open: u64,
    pub(crate) halted: bool,
    /// The place of the group that it was called to; 0 for none.
    pub(crate) called: u32,
    /// Whether it is paused and not among the active ones any more.
    pub(crate) aside: bool,
    /// The account that its operator named as its worker, and whether that account works for it.
    pub(crate) worker: (Address, bool),
}

#[derive(Clone, Default, Debug)]
pub(crate) struct Account {
    pub(crate) credit: u128,
    pub(crate) unbonding: u128,
    pub(crate) release: u64,
    pub(crate) node: u32,
    pub(crate) kicked: bool,
}

/// How an application's groups are chosen, and their results since its target was last set.
#[derive(Clone, Debug)]
pub(crate) struct Application {
    pub(crate) profile: Profile,
    pub(crate) groups: u32,
    pub(crate) successes: u32,
    pub(crate) members: u32,
}

impl Default for Application {
    fn default() -> Application {
        Application { profile: crate::validated::USUAL, groups: 0, successes: 0, members: 0 }
    }
}

/// A task that has not ended.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) created: TaskCreated,
    /// Nodes that its fee is for.
    pub(crate) nodes: u8,
    /// Block of the draw, ticket, or deadline.
    pub(crate) at: u64,
    pub(crate) node: u32,
    pub(crate) boosts: bool,
    /// Since when it is queued.
    pub(crate) since: u64,
    /// As in `IMuster.TaskView`, while its node runs it or has committed.
    pub(crate) status: u8,
    pub(crate) began: u64,
    /// The commitment of its node, and its time.
    pub(crate) committed: (B256, u64),
}

/// A validation group.
#[derive(Clone, Debug)]
pub(crate) struct Team {
    pub(crate) id: u64,
    pub(crate) formed: u64,
    pub(crate) scored: bool,
    /// Whether commitments can be slashed, and are open as long as they can.
    pub(crate) liable: bool,
    pub(crate) members: Vec<Member>,
}

#[derive(Clone, Default, Debug)]
pub(crate) struct Member {
    pub(crate) node: u32,
    pub(crate) stage: u8,
    pub(crate) moment: u64,
    pub(crate) began: u64,
    pub(crate) elapsed: u64,
    pub(crate) answer: B256,
    pub(crate) right: bool,
}

/// The receipt of a task that has none.
pub(crate) const NO_RECEIPT: Outcome =
    Outcome { state: 0, node: 0, code: 0, ended: 0, refund: 0, resultDigest: alloy_primitives::FixedBytes::ZERO };

/// The state from the logs.
#[derive(Default, Debug)]
pub struct Explorer {
    pub(crate) owner: Address,
    pub(crate) next_owner: Address,
    pub(crate) treasury: (Address, u128),
    pub(crate) next_treasury: (Address, u64),
    pub(crate) stake_unit: u64,
    pub(crate) base: u128,
    pub(crate) parameters: BTreeMap<u8, u64>,
    /// Proposed values, and when they can take effect.
    pub(crate) next_parameters: BTreeMap<u8, (u64, u64)>,
    pub(crate) upgrades: (u32, bool),
    /// Proposed changes of programs, and when they can take effect.
    pub(crate) next_programs: BTreeMap<(Address, Vec<alloy_primitives::FixedBytes<4>>), u64>,
    pub(crate) paused: bool,
    pub(crate) programs: BTreeMap<[u8; 4], Address>,
    pub(crate) groups: BTreeMap<u32, (String, u16)>,
    pub(crate) nodes: BTreeMap<u32, Node>,
    pub(crate) accounts: BTreeMap<Address, Account>,
    /// The applications that have set a profile or had a group chosen.
    pub(crate) applications: BTreeMap<Address, Application>,
    pub(crate) created: u64,
    pub(crate) tasks: BTreeMap<u64, Task>,
    pub(crate) pending: VecDeque<u64>,
    pub(crate) queued: BTreeSet<u64>,
    /// Queues ever used, in order of first use.
    pub(crate) queues: Vec<u32>,
    /// Sampled tasks whose validators are to be drawn.
    pub(crate) calls: VecDeque<u64>,
    pub(crate) teams: BTreeMap<u32, Team>,
    /// Places of groups there are.
    pub(crate) places: u32,
    pub(crate) listed: BTreeSet<u32>,
    pub(crate) reserve: u128,
    pub(crate) burnt: u128,
    pub(crate) holders: BTreeMap<u64, Vec<u32>>,
    /// Models by their names.
    pub(crate) names: BTreeMap<u64, String>,
    /// Where accounts' bytes can be had.
    pub(crate) stores: BTreeMap<Address, String>,
    /// The node that the event before slashed, if its consequences are due.
    pub(crate) slashed: Option<u32>,
    /// The outcomes of the tasks that asked for a receipt.
    pub(crate) outcomes: BTreeMap<u64, Outcome>,
}

impl Explorer {
    pub(crate) fn parameter(&self, name: &str) -> u64 {
        self.parameters[&parameter(name)]
    }

    pub(crate) fn node(&mut self, node: u32) -> &mut Node {
        self.nodes.get_mut(&node).expect("it joined")
    }

    pub(crate) fn account(&mut self, who: impl Into<Address>) -> &mut Account {
        self.accounts.entry(who.into()).or_default()
    }

    fn h(&self, n: &Node, now: u64) -> f64 {
        1.0 - (1.0 - n.h) * (-((now - n.h_at) as f64) / self.parameter("tau") as f64).exp()
    }

    fn set_h(&mut self, node: u32, now: u64, change: impl Fn(f64) -> f64) {
        let h = change(self.h(&self.nodes[&node], now));
        let n = self.node(node);
        (n.h, n.h_at) = (h, now);
    }

    /// A task has ended; gives it.
    pub(crate) fn end(&mut self, id: u64) -> Task {
        let task = self.tasks.remove(&id).expect("it was there");
        self.pending.retain(|&p| p != id);
        self.queued.remove(&id);
        self.calls.retain(|&c| c != id);
        if task.node > 0 {
            self.free(task.node);
        }
        task
    }

    /// A node's task is over for it. If it was called to a group it begins there, now or after draws that are due.
    pub(crate) fn free(&mut self, node: u32) {
        let n = self.node(node);
        (n.runs, n.halted) = (false, false);
        if n.status == 2 && n.called == 0 {
            n.status = 1;
        }
    }

    /// A node has committed in a group, and has no task.
    pub(crate) fn count_open(&mut self, node: u32, group: u32) {
        let (most, liable) = (self.parameter("openMost"), self.teams[&group].liable);
        let n = self.node(node);
        n.open += u64::from(liable);
        if n.open < most || n.called > 0 {
            self.free(node);
        } else {
            (n.runs, n.halted) = (false, true);
        }
    }

    /// The nodes that can still be slashed for their commitments in a group: those that have not revealed, and those whose answer nobody
    /// else gave while two others may agree.
    pub(crate) fn at_risk(&self, group: u32) -> Vec<u32> {
        let team = &self.teams[&group];
        let in_it: Vec<&Member> = team.members.iter().filter(|m| matches!(m.stage, COMMITTED | ANSWERED)).collect();
        let given = |answer: B256| in_it.iter().filter(|m| m.stage == ANSWERED && m.answer == answer).count();
        let at_risk = |m: &Member| m.stage == COMMITTED || in_it.len() == 3 && given(m.answer) < 2;
        in_it.iter().filter(|m| team.liable && at_risk(m)).map(|m| m.node).collect()
    }

    /// A node's commitment in a group cannot be slashed any more.
    pub(crate) fn count_closed(&mut self, node: u32) {
        let n = self.node(node);
        n.open -= 1;
        if n.halted {
            self.free(node);
        }
    }

    pub(crate) fn member(&mut self, place: u32, node: u32) -> &mut Member {
        let team = self.teams.get_mut(&place).expect("it was formed");
        team.members.iter_mut().find(|m| m.node == node).expect("a member")
    }

    pub(crate) fn penalise(&mut self, node: u32, now: u64) {
        let penalty = self.parameter("penaltyPpm") as f64 / 1e6;
        self.set_h(node, now, |h| h * penalty);
    }

    /// Raises H for a success, but not twice within half of the task's estimate.
    pub(crate) fn boost(&mut self, node: u32, now: u64, estimate: u32) {
        if 2 * (now - self.nodes[&node].h_at) >= estimate as u64 {
            let boost = self.parameter("boostPpm") as f64 / 1e6;
            self.set_h(node, now, |h| (h + boost).min(1.0));
        }
    }

    pub(crate) fn enter(&mut self, node: u32, model: u64) {
        let list = self.holders.entry(model).or_default();
        if !list.contains(&node) {
            list.push(node);
        }
        self.node(node).held.insert(model);
    }

    /// Notes how a task ended that asked for a receipt.
    pub(crate) fn conclude(&mut self, id: u64, outcome: Outcome) {
        if let Some(receipt) = self.outcomes.get_mut(&id) {
            *receipt = outcome;
        }
    }

    /// Compares all of it with storage.
    pub fn compare<H: Host>(&self, net: &Network<H>) {
        let host = &*net.host;
        let joined: Vec<&Node> = self.nodes.values().filter(|n| n.status != 0).collect();
        let o = net.overview();
        assert_eq!(
            (o.owner.into_array(), o.treasury.into_array(), o.treasuryBalance, o.stakeUnit, o.paused, o.tasks),
            (self.owner, self.treasury.0, self.treasury.1, self.stake_unit, self.paused, self.created)
        );
        assert_eq!(
            (o.nodesIssued as usize, o.nodesJoined as usize, o.pending as usize, o.queued as usize, o.largestStake),
            (
                self.nodes.len(),
                joined.len(),
                self.pending.len(),
                self.queued.len(),
                joined.iter().map(|n| n.stake).max().unwrap_or(0)
            )
        );
        assert_eq!(
            (o.reserve, o.burnt, o.groups as usize, o.groupPlaces),
            (self.reserve, self.burnt, self.teams.len(), self.places)
        );
        assert_eq!(o.queueCapacity as u64, self.parameter("alphaMilli") * joined.len() as u64 / 1_000);
        let proposal = |at: u8| host.get::<Proposal>(slot(at));
        assert_eq!(proposal(NEXT_OWNER).account, self.next_owner);
        assert_eq!((proposal(NEXT_TREASURY).account, proposal(NEXT_TREASURY).at), self.next_treasury);
        assert_eq!(host.get::<Rules>(slot(RULES)).base as u128 * self.stake_unit as u128, self.base);
        for i in 0..PARAMETERS.len() as u8 {
            let (value, ..) = admin::parameter(host, i).expect("known");
            assert_eq!(self.parameters.get(&i).map(|&v| Word::from(v)), Some(value), "{}", PARAMETERS[i as usize].name);
        }
        for i in 0..PARAMETERS.len() as u8 {
            let next: NextParameter = host.get(entry(host, NEXT_PARAMETERS, i as u64));
            assert_eq!((next.value, next.at), self.next_parameters.get(&i).copied().unwrap_or_default());
        }
        assert_eq!(admin::upgrades(host).expect("initialised"), self.upgrades);
        for ((program, selectors), &at) in &self.next_programs {
            let change = (*program, &selectors[..]);
            // One that has been carried out is not proposed any more.
            let done = selectors.iter().all(|s| self.programs.get(&s.0).copied().unwrap_or_default() == *program);
            let stored = admin::proposed_programs(host, change.0, change.1);
            assert!(stored == at || done && stored == 0, "{change:?}");
        }
        let answered: BTreeMap<[u8; 4], Address> =
            admin::selectors(host).into_iter().map(|s| (s, admin::program_of(host, s))).collect();
        let mut known = self.programs.clone();
        assert_eq!(known.remove(&IMuster::installCall::SELECTOR), Some(host.here()), "the router's own");
        assert_eq!(answered, known);
        for id in 0..=self.created + 1 {
            assert_eq!(net.outcome(TaskId(id)), self.outcomes.get(&id).cloned().unwrap_or(NO_RECEIPT), "outcome of {id}");
        }

        for (&group, (name, vram)) in &self.groups {
            let there = joined.iter().filter(|n| n.group == group).count();
            assert_eq!(registry::joined(host, GpuGroup(group)).map(|n| n as usize), Some(there), "joined in {group}");
            assert_eq!(registry::gpu_group(host, name.as_bytes(), *vram), Some(GpuGroup(group)));
            assert_eq!(&registry::gpu_name(host, GpuGroup(group)), name);
            assert_eq!(registry::listed(host, GpuGroup(group)), self.listed.contains(&group));
            let of_size = self.groups.values().filter(|g| g.1 == *vram).count();
            assert_eq!(registry::gpu_count(host, *vram) as usize, of_size);
        }
        for (&number, n) in &self.nodes {
            self.compare_node(net, number, n);
        }
        for (&who, a) in &self.accounts {
            let v = net.account_view(who);
            assert_eq!(
                (v.credit, v.unbonding, v.release, v.node, v.kickedOut),
                (a.credit, a.unbonding, a.release, a.node, a.kicked)
            );
        }
        for (&who, uris) in &self.stores {
            assert_eq!(&stores_of(host, who), uris, "stores of {who:?}");
        }
        for (&model, list) in &self.holders {
            let mut all = Vec::new();
            while all.len() < list.len() {
                let (total, more) = net.holders_view(ModelId(model), all.len() as u32, 256).expect("a model");
                assert!(total as usize == list.len() && !more.is_empty(), "holders of {model}");
                all.extend(more.iter().map(|n| n.0));
            }
            assert_eq!(&all, list, "holders of {model}");
        }
        self.compare_tasks(net);
        self.compare_groups(net);
        for (&who, app) in &self.applications {
            let known = (app.profile.clone(), app.groups, app.successes, app.members);
            assert_eq!(net.profile(who), known, "profile of {who:?}");
        }
        self.compare_lists(net);
    }

    fn compare_node<H: Host>(&self, net: &Network<H>, number: u32, n: &Node) {
        let v = net.node_view(NodeId(number)).expect("known");
        assert_eq!(worker_of(net.host, NodeId(number)), n.worker, "worker of {number}");
        assert_eq!(
            (v.operator.into_array(), v.status, v.gpu, v.vram, v.stake, v.joinedAt, (v.task, v.deadline)),
            (n.operator, n.status, n.group, n.group as u16, n.stake, n.joined_at, n.task),
            "node {number}"
        );
        let h = self.h(n, net.now);
        assert!((v.reliability as f64 / 1e18 - h).abs() < EPS, "H of {number}: {} and {h}", v.reliability);
        let threshold = self.parameter("exclusionPpm") as f64 / 1e6;
        assert!(v.excluded == (h < threshold) || (h - threshold).abs() < EPS);
        assert_eq!(v.models.iter().copied().collect::<BTreeSet<_>>(), n.held);
        assert_eq!((v.models.len(), &v.inUse), (n.held.len(), &n.in_use));
        let pool = &n.scores[n.scores.len().saturating_sub(50)..];
        let mean = if pool.is_empty() { 5.0 } else { pool.iter().map(|&s| s as f64).sum::<f64>() / pool.len() as f64 };
        assert_eq!(v.scores as usize, pool.len());
        assert!((v.longTerm as f64 / 1e17 - mean).abs() < 1e-9);
        let mut ring = [0u8; 50];
        n.scores.iter().enumerate().for_each(|(i, &s)| ring[i % 50] = s);
        let at = muster_protocol::host::offset(node_slot(&*net.host, NodeId(number)), muster_protocol::layout::node::SCORES);
        let s: Scores = net.host.get(at);
        let word = Word([s.low, s.mid, s.high, s.last as u64]);
        let stored: Vec<u8> = (0..50).map(|i| word.bits(i * 4, 4) as u8).collect();
        assert_eq!((&stored[..], s.next as usize), (&ring[..], n.scores.len() % 50), "scores of {number}");
        assert_eq!((v.judged as u64, v.right as u64), n.judged, "judgements of {number}");
        assert_eq!((v.openCommitments as u64, v.held, v.calledTo), (n.open, n.halted, n.called), "duties of {number}");
        if n.runs {
            let view = net.running_task(NodeId(number)).expect("known");
            assert_eq!(net.locate(TaskId(n.task.0), NodeId(number), Ticket(0)), view);
            let task = &self.tasks[&n.task.0];
            Self::same(&view, &Task { node: number, at: n.task.1, ..task.clone() }, task.status);
            let place = self.teams.iter().find(|(_, team)| team.id == n.task.0).map_or(0, |(&place, _)| place);
            assert_eq!(view.group, place);
        } else {
            assert_eq!(net.running_task(NodeId(number)).expect("known").status, 0, "{number} runs nothing");
        }
        let parked = match (n.parked, n.waits, n.reserved) {
            (_, _, 1..) => 3,
            (Some(_), true, _) => 2,
            (Some(_), false, _) => 1,
            (None, ..) => 0,
        };
        assert_eq!((v.parked, v.parkedUntil), (parked, n.parked.unwrap_or(0)), "node {number} waits");
    }

    fn compare_tasks<H: Host>(&self, net: &Network<H>) {
        let mut pending = Vec::new();
        while pending.len() < self.pending.len() {
            let more = net.pending_tasks(pending.len() as u32, 256).expect("a page");
            assert!(!more.is_empty());
            pending.extend(more);
        }
        for (view, id) in pending.iter().zip(&self.pending) {
            Self::same(view, &self.tasks[id], 1);
            assert_eq!(&net.locate(TaskId(*id), NodeId(0), Ticket(0)), view);
        }
        let (used, views) = net.queues(0, 256).expect("a page");
        assert_eq!(used as usize, self.queues.len(), "queues ever used");
        for (v, &queue) in views.iter().zip(&self.queues) {
            let there = self.queued.iter().filter(|id| self.tasks[id].queue() == queue).count();
            assert_eq!(
                (v.queue, v.queued as usize, v.best > 0, v.worst > 0),
                (queue, there, there > 0, there > 0),
                "queue {queue}"
            );
        }
        for id in &self.queued {
            let task = &self.tasks[id];
            let (queue, place) = ((task.at >> 32) as u32, task.at as u32);
            assert_eq!(queue, task.queue(), "{id} stands in its queue");
            let (places, found) = net.queued_tasks(QueueId(queue), place, 1).expect("a page");
            let view = found.first().expect("queued at its ticket");
            Self::same(view, task, 2);
            assert_eq!(&net.locate(TaskId(*id), NodeId(0), Ticket(task.at)), view);
            let ahead = |other: &&u64| {
                let other = &self.tasks[other];
                let rank = |t: &Task| (t.value(), std::cmp::Reverse(t.created.id));
                (other.at >> 32) as u32 == queue && rank(other) > rank(task)
            };
            let counted = net.queued_before(Ticket(task.at), 0, 256).expect("a page");
            if places <= 256 {
                assert_eq!(counted, (places, self.queued.iter().filter(ahead).count() as u32), "before {id}");
            }
        }
    }

    fn compare_groups<H: Host>(&self, net: &Network<H>) {
        let window = self.parameter("revealWindow");
        let (places, views) = net.groups_view(1, 256).expect("a page");
        assert_eq!(places, self.places);
        if places <= 256 {
            assert_eq!(views.iter().map(|v| v.group).collect::<Vec<_>>(), self.teams.keys().copied().collect::<Vec<_>>());
        }
        for (&place, team) in &self.teams {
            let (v, c) = (net.group_view(place), &self.tasks[&team.id].created);
            let images = if c.spec.kind == 0 { c.spec.units as u8 } else { 0 };
            assert_eq!(
                (v.group, v.id, v.creator, v.fee, v.kind, v.images, v.estimate, v.redundancy, v.scored),
                (place, c.id, c.creator, c.fee, c.spec.kind, images, c.estimate, c.spec.redundancy, team.scored)
            );
            let waits = |m: &Member| m.stage == CALLED || m.stage == RUNNING && net.now <= m.moment;
            let last = team.members.iter().map(|m| m.moment).max().expect("members").max(team.formed);
            let opens = if team.members.iter().any(waits) { (0, 0) } else { (last, last + window) };
            assert_eq!((v.opens, v.closes), opens, "reveals at {place}");
            assert!(v.members.len() >= team.members.len(), "members at {place}");
            for (i, v) in v.members.iter().enumerate() {
                let none = Member::default();
                let m = team.members.get(i).unwrap_or(&none);
                assert_eq!(
                    (v.node, v.stage, v.moment, v.elapsed as u64, v.answer),
                    (m.node, m.stage, m.moment, m.elapsed, m.answer)
                );
            }
        }
        // A call whose task is gone leaves the ring without an event, when its turn has come.
        let calls: Vec<(u64, u64)> =
            net.validator_draws_view(0, 256).expect("a page").iter().filter(|v| v.id > 0).map(|v| (v.id, v.drawBlock)).collect();
        assert_eq!(calls, self.calls.iter().map(|id| (*id, self.tasks[id].at)).collect::<Vec<_>>());
    }

    fn compare_lists<H: Host>(&self, net: &Network<H>) {
        let mut parked: Vec<u32> = net.excluded_nodes(0, 256).expect("a page").1.iter().map(|n| n.0).collect();
        parked.sort_unstable();
        let expected: Vec<u32> = self.nodes.iter().filter(|(_, n)| n.parked.is_some()).map(|(&i, _)| i).collect();
        assert_eq!(parked, expected);
        let due = self.nodes.values().filter_map(|n| n.parked).min().unwrap_or(0);
        let head: Head = net.host.get(slot(HEAD));
        assert_eq!(head.parked_due as u64, due);
        let largest = self.nodes.values().filter(|n| n.status != 0).map(|n| n.group as u16).max();
        assert_eq!(head.max_vram, largest.unwrap_or(0));
        // A class holds four times the stake of the one below it.
        let class = |stake: u128| (0..10).find(|&c| stake <= self.base << (2 * c)).unwrap_or(9) as u8;
        for &group in self.groups.keys() {
            for (c, among) in (0..10).flat_map(|c| [(c, Among::Idle), (c, Among::Active)]) {
                let mut there: Vec<u32> =
                    net.listed_nodes(among, GpuGroup(group), c, 0, 256).expect("a page").1.iter().map(|n| n.0).collect();
                there.sort_unstable();
                let stands = |n: &Node| match among {
                    Among::Idle => n.status == 1 && n.parked.is_none(),
                    Among::Active => n.status != 0 && !n.aside,
                };
                let here = |n: &Node| stands(n) && (n.group, class(n.stake)) == (group, c);
                let expected: Vec<u32> = self.nodes.iter().filter(|(_, n)| here(n)).map(|(&i, _)| i).collect();
                assert_eq!(there, expected, "{among:?} in group {group}, class {c}");
            }
        }
    }

    fn same(v: &IMuster::TaskView, t: &Task, status: u8) {
        let (c, s) = (&t.created, &t.created.spec);
        let vram = if s.gpu == 0 { s.vram } else { s.gpu as u16 };
        assert_eq!(
            (v.id, v.creator, v.fee, v.kind, v.estimate, v.timeLimit, v.startFeeBps, v.vram, v.gpu, v.flags, &v.models),
            (c.id, c.creator, c.fee, s.kind, c.estimate, c.timeLimit, c.startFeeBps, vram, s.gpu, s.flags, &s.models)
        );
        let at = |wanted| if status.min(3) == wanted { t.at } else { 0 };
        let since = if status == 2 { t.since } else { 0 };
        let node = if status >= 3 { t.node } else { 0 };
        assert_eq!(
            (v.status, v.drawBlock, v.ticket, v.queuedAt, v.deadline, v.node, v.boosts),
            (status, at(1), at(2), since, at(3), node, t.boosts)
        );
        assert_eq!(v.redundancy, s.redundancy);
    }
}

impl Task {
    /// The GPU group that it requires, or VRAM.
    pub(crate) fn group(&self) -> u32 {
        let spec = &self.created.spec;
        if spec.gpu > 0 {
            spec.gpu
        } else {
            spec.vram as u32
        }
    }
    /// The number of the queue it belongs into: each grade begins 4,096 further.
    pub(crate) fn queue(&self) -> u32 {
        let spec = &self.created.spec;
        let grade = match spec.redundancy {
            2 => 1 + (spec.kind > 0) as u32,
            3 => 3,
            _ => 0,
        };
        self.group() + 4_096 * grade
    }
    /// Its pay for one node's work by the estimate, to 32 significant bits: exponent and mantissa.
    fn value(&self) -> (i32, u128) {
        let (mut n, mut d, mut e) = (self.created.fee / self.nodes as u128, self.created.estimate as u128, 0);
        while n >= d << 32 {
            d <<= 1;
            e += 1;
        }
        while n < d << 31 {
            n <<= 1;
            e -= 1;
        }
        (e, n / d)
    }
}
