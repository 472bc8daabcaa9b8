//! Reading: views of accounts, nodes, weights, groups, models and queues, page by page.
//!
//! Called off chain for free; a page is at most [`PAGE`] long, so no view can run away either.

use crate::bracket::NONE;
use crate::draw::in_scope;
use crate::host::{Host, Task};
use crate::layout::*;
use crate::network::Network;
use crate::nodes::check_model;
use crate::pool::{self, PARKING};
use crate::registry::Holders;
use crate::roster::Seat;
use crate::sampler::{self, Counts};
use crate::{admin, parking, purse, queue, IMuster, Result};
use alloc::vec::Vec;
use muster_core::id::{GpuGroup, ModelId, NodeId, Ticket};
use muster_core::qos;
use muster_core::record::*;
use muster_core::weight::{self, CLASSES as CLASS_COUNT};
use muster_core::word::Address;

/// Longest page of a list.
pub const PAGE: u32 = 256;

fn page(from: u32, count: u32, total: u32) -> core::ops::Range<u32> {
    let from = from.min(total);
    from..from.saturating_add(count.min(PAGE)).min(total)
}

impl<H: Host> Network<'_, H> {
    /// See `IMuster.overview`.
    pub fn overview(&self) -> IMuster::Overview {
        let o: Ownership = self.host.get(slot(OWNERSHIP));
        IMuster::Overview {
            owner: o.owner.into(),
            treasury: purse::treasury(self.host).into(),
            treasuryBalance: purse::income(self.host),
            granule: o.granule,
            paused: self.terms().paused,
            tasks: self.tasks,
            nodesIssued: self.roster.issued(),
            nodesJoined: self.roster.joined(),
            pending: self.ring.len(),
            queued: self.queued,
            queueCapacity: self.queue_capacity().min(u32::MAX as u64) as u32,
            largestStake: self.wei(self.roster.max_stake()),
        }
    }

    /// See `IMuster.account`.
    pub fn account_view(&self, who: Address) -> IMuster::AccountView {
        let a = purse::account(self.host, who);
        IMuster::AccountView {
            credit: a.credit,
            unbonding: self.wei(a.unbonding),
            release: a.release,
            node: a.node.0,
            kickedOut: a.kicked,
        }
    }

    fn known(&self, id: NodeId) -> Result<Seat> {
        self.roster.check(id)?;
        Ok(Seat::load(self.host, id))
    }

    /// See `IMuster.node`.
    pub fn node_view(&self, id: NodeId) -> Result<IMuster::NodeView> {
        let seat = self.known(id)?;
        let n = &seat.node;
        let reliability = self.reliability(n);
        let operator = seat.operator(self.host);
        let order = seat.order(self.host);
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
            joinedAt: operator.joined_at,
            task: order.id.0,
            deadline: order.moment,
            models: numbers(&self.held_models(&seat)),
            inUse: numbers(seat.in_use(self.host).as_slice()),
        })
    }

    /// See `IMuster.nodes`: joined or not, from number `from` on.
    pub fn node_views(&self, from: u32, count: u32) -> Vec<IMuster::NodeView> {
        page(from.max(1) - 1, count.min(64), self.roster.issued()).filter_map(|i| self.node_view(NodeId(i + 1)).ok()).collect()
    }

    /// See `IMuster.weightOf`.
    pub fn weight_of(&self, id: NodeId, spec: &IMuster::TaskSpec) -> Result<IMuster::WeightView> {
        let seat = self.known(id)?;
        let (order, models, _) = self.order(spec)?;
        let task = Task { escrow: Escrow::default(), order, models };
        let f = self.factors(&seat.node);
        let (locality, _) = self.locality(&seat, &models);
        let fit = seat.node.idle() && in_scope(&seat, &task) && qos::eligible(f.reliability, self.rules.exclusion_ppm);
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
        let estimated = crate::tasks::estimate(&terms, kind, units)?;
        let limit = muster_core::value::time_limit(estimated, terms.limit_min, terms.limit_max);
        Ok((estimated, limit as u32 + terms.grace as u32, (estimated as u128 * terms.min_price as u128).max(1)))
    }

    /// See `IMuster.idleNodes`.
    pub fn idle_nodes(&self, group: GpuGroup, class: u8, from: u32, count: u32) -> (u32, Vec<NodeId>) {
        if class >= CLASS_COUNT {
            return (0, Vec::new());
        }
        let total = Counts::load(self.host, group).get(class);
        (total, page(from, count, total).map(|i| sampler::member(self.host, group, class, i)).collect())
    }

    /// See `IMuster.holders`.
    pub fn holders_view(&self, model: ModelId, from: u32, count: u32) -> Result<(u32, Vec<NodeId>)> {
        check_model(model)?;
        let holders = Holders::load(self.host, model);
        Ok((holders.len(), page(from, count, holders.len()).map(|i| holders.get(self.host, i)).collect()))
    }

    fn task_view(&self, task: &Task, at: u64) -> IMuster::TaskView {
        let o = &task.order;
        IMuster::TaskView {
            id: o.id.0,
            creator: task.escrow.creator.into(),
            fee: task.escrow.fee,
            kind: o.kind,
            estimate: o.estimate,
            timeLimit: o.limit,
            startFeeBps: o.start_fee_bps,
            vram: o.group.vram(),
            gpu: if o.group.is_any() { 0 } else { o.group.0 },
            models: numbers(task.models.as_slice()),
            at,
            boosts: o.boosts(),
        }
    }

    /// See `IMuster.runningTask`.
    pub fn running_task(&self, id: NodeId) -> Result<IMuster::TaskView> {
        let seat = self.known(id)?;
        let order = seat.order(self.host);
        ensure!(seat.node.running(), TaskNotRunning(0u64, id));
        let task = Task { escrow: seat.escrow(self.host), order, models: seat.in_use(self.host) };
        Ok(self.task_view(&task, order.moment))
    }

    /// See `IMuster.pendingTasks`.
    pub fn pending_tasks(&self, from: u32, count: u32) -> Vec<IMuster::TaskView> {
        page(from, count, self.ring.len())
            .map(|i| {
                let task = Task::load(self.host, self.ring.slot(self.host, i));
                self.task_view(&task, task.order.moment)
            })
            .collect()
    }

    /// See `IMuster.queuedTasks`: the tasks at `count` places of a group; free places are left out.
    pub fn queued_tasks(&self, group: GpuGroup, from: u32, count: u32) -> (u32, Vec<IMuster::TaskView>) {
        let p = if group == PARKING { Pool::default() } else { pool::load(self.host, group) };
        let tasks = page(from, count, p.slots)
            .filter(|&place| pool::key_at(self.host, group, &p, place) > NONE)
            .map(|place| self.queued_at(Ticket::new(group, place)))
            .collect();
        (p.slots, tasks)
    }

    fn queued_at(&self, ticket: Ticket) -> IMuster::TaskView {
        let task = Task::load(self.host, queue::entry_slot(self.host, ticket));
        self.task_view(&task, ticket.0)
    }

    /// See `IMuster.bestQueued`: what a node would take now; id 0 for nothing.
    pub fn best_queued(&self, id: NodeId) -> Result<IMuster::TaskView> {
        let seat = self.known(id)?;
        Ok(match queue::best_for(self.host, seat.node.group) {
            Some(ticket) if self.queued > 0 => self.queued_at(ticket),
            _ => self.task_view(&Task::default(), 0),
        })
    }

    /// See `IMuster.excludedNodes`.
    pub fn excluded_nodes(&self, from: u32, count: u32) -> (u32, Vec<NodeId>) {
        let (places, at) = parking::places(self.host);
        (places, page(from, count, places).filter_map(|place| at(place).map(|(node, _)| node)).collect())
    }
}

fn numbers(models: &[ModelId]) -> Vec<u64> {
    models.iter().map(|m| m.0).collect()
}

/// See `IMuster.facets`.
pub fn facets<H: Host>(host: &H) -> Vec<IMuster::Facet> {
    let mut out: Vec<IMuster::Facet> = Vec::new();
    for selector in admin::selectors(host) {
        let program: alloy_primitives::Address = admin::program_of(host, selector).into();
        match out.iter_mut().find(|f| f.facetAddress == program) {
            Some(f) => f.functionSelectors.push(selector.into()),
            None => out.push(IMuster::Facet { facetAddress: program, functionSelectors: [selector.into()].to_vec() }),
        }
    }
    out
}
