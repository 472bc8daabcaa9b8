//! Reading: views of accounts, nodes, weights, groups, models and queues, page by page.
//!
//! Called off chain for free; a page is at most [`PAGE`] long, so no view can run away either.

use crate::flow::create::{estimate, FLAG_RECEIPT};
use crate::flow::models::{check_model, held_models};
use crate::flow::network::Network;
use crate::flow::reliability::reliability;
use crate::flow::weigh::in_scope;
use crate::host::{offset, Host};
use crate::store::groups::Group;
use crate::store::layout::{slot, LIMITS, OWNERSHIP};
use crate::store::node::NodeHandle;
use crate::store::pool::{self, SUSPENDED};
use crate::store::registry::Holders;
use crate::store::sampler::{self, Among, Counts};
use crate::store::task::Task;
use crate::store::tournament::NONE;
use crate::store::{accounts, groups, queue, receipts, registry, routes, suspended};
use crate::{IMuster, Result};
use alloc::vec::Vec;
use alloy_sol_types::SolCall;
use muster_core::id::{GpuGroup, ModelId, NodeId, QueueId, TaskId, Ticket};
use muster_core::qos;
use muster_core::record::*;
use muster_core::value::key;
use muster_core::weight::{self, CLASSES as CLASS_COUNT};
use muster_core::word::Address;

/// Longest page of a list.
pub const PAGE: u32 = 256;
/// Longest page of nodes, each of which is a dozen words.
pub const NODES_PAGE: u32 = 64;

/// The positions of a page of a list of `total`.
fn page(from: u32, count: u32, total: u32) -> Result<core::ops::Range<u32>> {
    ensure!(count <= PAGE, PageTooLong(count, PAGE));
    let from = from.min(total);
    Ok(from..from.saturating_add(count).min(total))
}

impl<H: Host> Network<'_, H> {
    /// See `IMuster.overview`.
    pub fn overview(&self) -> IMuster::Overview {
        let o: Ownership = self.host.get(slot(OWNERSHIP));
        let places = groups::places(self.host);
        IMuster::Overview {
            owner: o.owner.into(),
            treasury: accounts::treasury(self.host).into(),
            treasuryBalance: accounts::income(self.host),
            reserve: accounts::reserve(self.host),
            burnt: accounts::burnt(self.host),
            groups: places.live,
            groupPlaces: places.issued,
            stakeUnit: o.stake_unit,
            paused: self.terms().paused,
            tasks: self.tasks,
            nodesIssued: self.node_store.issued(),
            nodesJoined: self.node_store.joined(),
            pending: self.ring.len(),
            queued: self.queued,
            queueCapacity: self.queue_capacity().min(u32::MAX as u64) as u32,
            largestStake: self.wei(self.node_store.max_stake()),
        }
    }

    /// See `IMuster.account`.
    pub fn account_view(&self, who: Address) -> IMuster::AccountView {
        let a = accounts::account(self.host, who);
        IMuster::AccountView {
            credit: a.credit,
            unbonding: self.wei(a.unbonding),
            release: a.release,
            node: a.node.0,
            kickedOut: a.kicked,
        }
    }

    fn known(&self, id: NodeId) -> Result<NodeHandle> {
        self.node_store.check(id)?;
        Ok(NodeHandle::load(self.host, id))
    }

    /// See `IMuster.node`.
    pub fn node_view(&self, id: NodeId) -> Result<IMuster::NodeView> {
        let handle = self.known(id)?;
        let n = &handle.node;
        let reliability = reliability(self, n);
        let operator = handle.operator(self.host);
        let order = handle.order(self.host);
        let until = match n.parked {
            Node::SET_BACK | Node::WAITS => suspended::places(self.host).1(n.pos).map_or(0, |(_, until)| until),
            _ => 0,
        };
        let scores = handle.scores(self.host);
        Ok(IMuster::NodeView {
            node: id.0,
            operator: operator.account.into(),
            status: n.status,
            gpu: n.group.0,
            vram: n.group.vram(),
            stake: self.wei(n.stake),
            reliability,
            longTerm: qos::long_term(n.score_sum, n.score_count),
            scores: n.score_count,
            excluded: !qos::eligible(reliability, self.rules.exclusion_ppm),
            parked: n.parked,
            parkedUntil: until,
            joinedAt: operator.joined_at,
            task: order.id.0,
            deadline: order.moment,
            models: numbers(&held_models(self, &handle)),
            inUse: numbers(handle.in_use(self.host).as_slice()),
            openCommitments: n.open(),
            held: n.held(),
            calledTo: if n.called() { handle.assignment(self.host).group } else { 0 },
            right: scores.right,
            judged: scores.judged,
            rating: scores.record().rating(),
        })
    }

    /// See `IMuster.nodes`.
    pub fn node_views(&self, from: u32, count: u32) -> Result<Vec<IMuster::NodeView>> {
        ensure!(count <= NODES_PAGE, PageTooLong(count, NODES_PAGE));
        page(from.max(1) - 1, count, self.node_store.issued())?.map(|i| self.node_view(NodeId(i + 1))).collect()
    }

    /// See `IMuster.weightOf`.
    pub fn weight_of(&self, id: NodeId, spec: &IMuster::TaskSpec) -> Result<IMuster::WeightView> {
        let handle = self.known(id)?;
        let (order, models, _) = self.order_for(spec)?;
        let task = Task { escrow: Escrow::default(), order, models };
        let f = self.factors(&handle.node);
        let (locality, _) = self.locality(&handle, &models);
        let fit = handle.node.idle() && in_scope(&handle, &task) && qos::eligible(f.reliability, self.rules.exclusion_ppm);
        Ok(IMuster::WeightView {
            eligible: fit,
            staking: f.staking,
            reliability: f.reliability,
            qos: f.qos,
            locality,
            weight: if fit { weight::weight(locality, f.staking, f.qos) } else { 0 },
        })
    }

    /// See `IMuster.estimate`.
    pub fn estimate_view(&self, kind: u8, units: u32) -> Result<(u32, u32, u128)> {
        let terms = self.terms();
        let estimated = estimate(&terms, kind, units)?;
        let limit = muster_core::value::time_limit(estimated, terms.limit_min, terms.limit_max);
        Ok((estimated, limit as u32 + terms.grace as u32, (estimated as u128 * terms.min_price as u128).max(1)))
    }

    /// See `IMuster.idleNodes` and `IMuster.activeNodes`.
    pub fn listed_nodes(&self, among: Among, group: GpuGroup, class: u8, from: u32, count: u32) -> Result<(u32, Vec<NodeId>)> {
        let total = if class < CLASS_COUNT { Counts::load(self.host, among, group).get(class) } else { 0 };
        Ok((total, page(from, count, total)?.map(|i| sampler::member(self.host, among, group, class, i)).collect()))
    }

    /// See `IMuster.holders`.
    pub fn holders_view(&self, model: ModelId, from: u32, count: u32) -> Result<(u32, Vec<NodeId>)> {
        check_model(model)?;
        let holders = Holders::load(self.host, model);
        Ok((holders.len(), page(from, count, holders.len())?.map(|i| holders.get(self.host, i)).collect()))
    }

    // ---------------------------------------------------------------- tasks

    /// The view of a task that has not ended; [`TaskView::status`](IMuster::TaskView) and its related fields are left to the caller.
    fn task_view(task: &Task, status: u8) -> IMuster::TaskView {
        let o = &task.order;
        IMuster::TaskView {
            id: o.id.0,
            status,
            creator: task.escrow.creator.into(),
            fee: task.escrow.fee,
            kind: o.sort(),
            estimate: o.estimate,
            timeLimit: o.limit,
            startFeeBps: o.start_fee_bps,
            vram: o.group.vram(),
            gpu: if o.group.is_any() { 0 } else { o.group.0 },
            flags: if o.has_receipt() { FLAG_RECEIPT } else { 0 },
            models: numbers(task.models.as_slice()),
            drawBlock: 0,
            ticket: 0,
            queuedAt: 0,
            queueKey: 0,
            node: 0,
            deadline: 0,
            boosts: false,
            redundancy: o.policy().number(),
            sampleBps: sample_bps(o),
            group: 0,
        }
    }

    /// The view of a task that does not exist.
    fn no_task() -> IMuster::TaskView {
        Self::task_view(&Task::default(), NONE_THERE)
    }

    fn running_view(&self, handle: &NodeHandle) -> IMuster::TaskView {
        if !handle.node.running() {
            return Self::no_task();
        }
        let order = handle.order(self.host);
        let (status, group) = match order.phase() {
            Phase::Running => (RUNNING, None),
            Phase::Committed => (COMMITTED, None),
            Phase::Calling => (CALLING, None),
            Phase::Member { place } => (IN_GROUP, Group::at(self.host, place)),
        };
        let own = || Task { escrow: handle.escrow(self.host), order, models: handle.in_use(self.host) };
        let task = group.map_or_else(own, |group| group.task(self.host));
        let view = Self::task_view(&task, status);
        IMuster::TaskView {
            node: handle.id.0,
            deadline: order.moment,
            boosts: order.boosts(),
            group: group.map_or(0, |group| group.place),
            ..view
        }
    }

    /// A validation group; all zero where there is none.
    pub fn group_view(&self, place: u32) -> IMuster::GroupView {
        let Some(group) = Group::at(self.host, place) else { return IMuster::GroupView::default() };
        let Task { escrow, order, .. } = group.task(self.host);
        let opens = group.opened(self.now, order.moment);
        let window = self.host.get::<Limits>(slot(LIMITS)).reveal_window as u64;
        let members = group.members.iter().rposition(|m| m.stage != Stage::None).map_or(0, |last| last + 1).max(MEMBERS);
        let member = |(i, m): (usize, &Membership)| IMuster::MemberView {
            node: m.node.0,
            stage: m.stage as u8,
            moment: m.moment as u64,
            elapsed: m.elapsed,
            answer: match m.stage {
                Stage::Committed | Stage::Answered | Stage::Failed => group.answer(self.host, i).to_be_bytes().into(),
                _ => [0; 32].into(),
            },
        };
        IMuster::GroupView {
            group: place,
            id: order.id.0,
            creator: escrow.creator.into(),
            fee: escrow.fee,
            kind: order.sort(),
            images: order.images(),
            estimate: order.estimate,
            redundancy: order.policy().number(),
            sampleBps: sample_bps(&order),
            scored: order.scored(),
            opens: opens.unwrap_or(0),
            closes: opens.map_or(0, |opens| opens + window),
            members: group.members.iter().enumerate().take(members).map(member).collect(),
        }
    }

    /// See `IMuster.groups`.
    pub fn groups_view(&self, from: u32, count: u32) -> Result<(u32, Vec<IMuster::GroupView>)> {
        let places = groups::places(self.host).issued;
        let page = page(from.max(1) - 1, count, places)?.map(|i| self.group_view(i + 1));
        Ok((places, page.filter(|view| view.id > 0).collect()))
    }

    /// See `IMuster.validatorDraws`.
    pub fn validator_draws_view(&self, from: u32, count: u32) -> Result<Vec<IMuster::TaskView>> {
        let view = |i| {
            let at = self.validator_draws.slot(self.host, i);
            let block = self.host.get::<Order>(offset(at, 1)).moment;
            let view = self.running_view(&NodeHandle::load(self.host, self.host.get::<ValidatorDraw>(at).node));
            IMuster::TaskView { drawBlock: block, ..view }
        };
        Ok(page(from, count, self.validator_draws.len())?.map(view).collect())
    }

    fn pending_view(&self, i: u32) -> IMuster::TaskView {
        let task = Task::load(self.host, self.ring.slot(self.host, i));
        IMuster::TaskView { drawBlock: task.order.moment, ..Self::task_view(&task, PENDING) }
    }

    fn queued_view(&self, ticket: Ticket) -> IMuster::TaskView {
        match queue::task_at(self.host, ticket) {
            Some(task) => IMuster::TaskView {
                ticket: ticket.0,
                queuedAt: task.order.moment,
                queueKey: key(task.order.part(task.escrow.fee), task.order.estimate, task.order.id),
                ..Self::task_view(&task, QUEUED)
            },
            None => Self::no_task(),
        }
    }

    /// See `IMuster.outcome`.
    pub fn outcome(&self, id: TaskId) -> IMuster::Outcome {
        let (Receipt { state, node, ended, code, refund }, digest) = receipts::read(self.host, id);
        IMuster::Outcome { state, node: node.0, code, ended, refund, resultDigest: digest.into() }
    }

    /// See `IMuster.locate`. Searches the ring from the place that the task has if none was drawn again since its creation.
    pub fn locate(&self, id: TaskId, node: NodeId, ticket: Ticket) -> IMuster::TaskView {
        if id.0 == 0 || id.0 > self.tasks {
            return Self::no_task();
        }
        if self.node_store.check(node).is_ok() {
            let view = self.running_view(&NodeHandle::load(self.host, node));
            if view.id == id.0 {
                return view;
            }
        }
        // 0 is a valid ticket: the first place in the queue of tasks that any GPU can run.
        let view = self.queued_view(ticket);
        if view.id == id.0 {
            return view;
        }
        let waiting = self.ring.len();
        let first = (waiting as u64).saturating_sub(self.tasks - id.0 + 1) as u32;
        let here = |i: &u32| self.host.get::<Order>(offset(self.ring.slot(self.host, *i), 1)).id == id;
        match (0..=first.min(waiting.saturating_sub(1))).rev().chain(first + 1..waiting).filter(|i| *i < waiting).find(here) {
            Some(i) => self.pending_view(i),
            None => Self::no_task(),
        }
    }

    /// See `IMuster.runningTask`.
    pub fn running_task(&self, id: NodeId) -> Result<IMuster::TaskView> {
        Ok(self.running_view(&self.known(id)?))
    }

    /// See `IMuster.pendingTasks`.
    pub fn pending_tasks(&self, from: u32, count: u32) -> Result<Vec<IMuster::TaskView>> {
        Ok(page(from, count, self.ring.len())?.map(|i| self.pending_view(i)).collect())
    }

    /// See `IMuster.queues`.
    pub fn queues(&self, from: u32, count: u32) -> Result<(u32, Vec<IMuster::QueueView>)> {
        let total = queue::queues(self.host);
        let views = page(from, count, total)?.map(|i| {
            let queue = queue::queue_at(self.host, i);
            let p = pool::load(self.host, queue);
            IMuster::QueueView { queue: queue.0, queued: p.live, places: p.slots, best: p.best, worst: p.worst }
        });
        Ok((total, views.collect()))
    }

    /// A queue's pool; an empty one for the number that is not a queue's.
    fn queue_pool(&self, queue: QueueId) -> Pool {
        if queue == SUSPENDED {
            Pool::default()
        } else {
            pool::load(self.host, queue)
        }
    }

    /// See `IMuster.queuedTasks`.
    pub fn queued_tasks(&self, queue: QueueId, from: u32, count: u32) -> Result<(u32, Vec<IMuster::TaskView>)> {
        let places = self.queue_pool(queue).slots;
        let tasks = page(from, count, places)?.map(|place| self.queued_view(Ticket::new(queue, place)));
        Ok((places, tasks.filter(|view| view.status == QUEUED).collect()))
    }

    /// See `IMuster.queuedBefore`.
    pub fn queued_before(&self, ticket: Ticket, from: u32, count: u32) -> Result<(u32, u32)> {
        let (queue, p) = (ticket.queue(), self.queue_pool(ticket.queue()));
        let key = |place| pool::key_at(self.host, queue, &p, place);
        let own = key(ticket.place());
        let before = page(from, count, p.slots)?.filter(|&place| own > NONE && key(place) > own).count();
        Ok((p.slots, before as u32))
    }

    /// See `IMuster.bestQueued`.
    pub fn best_queued(&self, id: NodeId) -> Result<IMuster::TaskView> {
        let handle = self.known(id)?;
        let group = handle.node.group;
        let alike = registry::listed(self.host, group);
        let several = queue::best_replicated(self.host, group, alike, true, Some(group.vram()));
        let best = queue::better(queue::best_single(self.host, group), several);
        let best = queue::better(best, queue::best_rated(self.host, group));
        Ok(best.map_or_else(Self::no_task, |best| self.queued_view(best.ticket(self.host))))
    }

    /// See `IMuster.excludedNodes`.
    pub fn excluded_nodes(&self, from: u32, count: u32) -> Result<(u32, Vec<NodeId>)> {
        let (places, at) = suspended::places(self.host);
        Ok((places, page(from, count, places)?.filter_map(|place| at(place).map(|(node, _)| node)).collect()))
    }
}

/// Statuses of `IMuster.TaskView`.
const NONE_THERE: u8 = 0;
const PENDING: u8 = 1;
const QUEUED: u8 = 2;
const RUNNING: u8 = 3;
const COMMITTED: u8 = 4;
const CALLING: u8 = 5;
const IN_GROUP: u8 = 6;

/// Probability of a task's validation, in ten-thousandths.
fn sample_bps(order: &Order) -> u16 {
    match order.policy() {
        Policy::Sampled { bps } => bps,
        Policy::Single | Policy::Replicated | Policy::Rated { .. } => 0,
    }
}

fn numbers(models: &[ModelId]) -> Vec<u64> {
    models.iter().map(|m| m.0).collect()
}

/// See `IMuster.facets`.
pub fn facets<H: Host>(host: &H) -> Vec<IMuster::Facet> {
    let mut out: Vec<IMuster::Facet> = Vec::new();
    // The router answers one function itself.
    out.push(IMuster::Facet {
        facetAddress: host.here().into(),
        functionSelectors: [IMuster::installCall::SELECTOR.into()].to_vec(),
    });
    for selector in routes::selectors(host) {
        let program: alloy_primitives::Address = routes::program_of(host, selector).into();
        match out.iter_mut().find(|f| f.facetAddress == program) {
            Some(f) => f.functionSelectors.push(selector.into()),
            None => out.push(IMuster::Facet { facetAddress: program, functionSelectors: [selector.into()].to_vec() }),
        }
    }
    out
}
