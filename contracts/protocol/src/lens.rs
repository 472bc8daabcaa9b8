//! Reading: views of accounts, nodes, weights, groups, models and queues, page by page.
//!
//! Called off chain for free; a page is at most [`PAGE`] long, so no view can run away either.

use crate::bracket::NONE;
use crate::draw::{in_scope, Seat};
use crate::host::{offset, Host, Task};
use crate::layout::*;
use crate::network::{Network, RING};
use crate::nodes::MODEL_END;
use crate::pool::{self, PARKING};
use crate::registry::{self, Holders};
use crate::sampler::{self, Counts};
use crate::{admin, queue, IMuster, Result};
use alloc::vec::Vec;
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
            treasury: admin::treasury(self.host).into(),
            treasuryBalance: admin::income(self.host),
            granule: o.granule,
            paused: self.terms().paused,
            tasks: self.head.tasks,
            nodesIssued: self.head.issued,
            nodesJoined: self.head.joined,
            pending: self.pending(),
            queued: self.head.queued,
            queueCapacity: self.queue_capacity().min(u32::MAX as u64) as u32,
            largestStake: self.wei(self.head.max_stake),
        }
    }

    /// See `IMuster.account`.
    pub fn account_view(&self, who: Address) -> IMuster::AccountView {
        let a = self.account(who);
        IMuster::AccountView {
            credit: a.credit,
            unbonding: self.wei(a.unbonding),
            release: a.release,
            node: a.node,
            kickedOut: a.kicked,
        }
    }

    fn known(&self, number: u32) -> Result<Seat> {
        ensure!(number > 0 && number <= self.head.issued, NodeUnknown(number));
        Ok(Seat::load(self.host, number))
    }

    /// See `IMuster.node`.
    pub fn node_view(&self, number: u32) -> Result<IMuster::NodeView> {
        let seat = self.known(number)?;
        let n = &seat.node;
        let reliability = self.reliability(n);
        let operator = self.operator(&seat);
        let order: Order = self.host.get(offset(seat.slot, node::ORDER));
        Ok(IMuster::NodeView {
            node: number,
            operator: operator.account.into(),
            status: n.status,
            gpu: seat.group(),
            vram: n.vram,
            stake: self.wei(n.stake),
            reliability,
            longTerm: qos::long_term(n.score_sum, n.score_count),
            scores: n.score_count,
            excluded: !qos::eligible(reliability, self.rules.exclusion_ppm),
            joinedAt: operator.joined_at,
            task: order.id,
            deadline: order.at,
            models: self.held_models(&seat),
            inUse: registry::in_use(self.host, seat.slot).as_slice().to_vec(),
        })
    }

    /// See `IMuster.nodes`: joined or not, from number `from` on.
    pub fn node_views(&self, from: u32, count: u32) -> Vec<IMuster::NodeView> {
        page(from.max(1) - 1, count.min(64), self.head.issued).filter_map(|i| self.node_view(i + 1).ok()).collect()
    }

    /// See `IMuster.weightOf`.
    pub fn weight_of(&self, number: u32, spec: &IMuster::TaskSpec) -> Result<IMuster::WeightView> {
        let seat = self.known(number)?;
        let (order, models, _) = self.order(spec)?;
        let task = Task { escrow: Escrow::default(), order, models };
        let f = self.factors(&seat.node);
        let (locality, _) = self.locality(&seat, &models);
        let fit = seat.idle() && in_scope(&seat, &task) && qos::eligible(f.reliability, self.rules.exclusion_ppm);
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
    pub fn idle_nodes(&self, group: u32, class: u8, from: u32, count: u32) -> (u32, Vec<u32>) {
        if class >= CLASS_COUNT {
            return (0, Vec::new());
        }
        let total = Counts::load(self.host, group).get(class);
        (total, page(from, count, total).map(|i| sampler::member(self.host, group, class, i)).collect())
    }

    /// See `IMuster.holders`.
    pub fn holders_view(&self, model: u64, from: u32, count: u32) -> Result<(u32, Vec<u32>)> {
        ensure!(model > 0 && model < MODEL_END, BadModel(model));
        let holders = Holders::load(self.host, model);
        Ok((holders.len(), page(from, count, holders.len()).map(|i| holders.get(self.host, i)).collect()))
    }

    fn task_view(&self, task: &Task, at: u64) -> IMuster::TaskView {
        let o = &task.order;
        IMuster::TaskView {
            id: o.id,
            creator: task.escrow.creator.into(),
            fee: task.escrow.fee,
            kind: o.kind,
            estimate: o.estimate,
            timeLimit: o.limit,
            startFeeBps: o.start_fee_bps,
            vram: o.vram,
            gpu: if o.gpu == 0 { 0 } else { (o.gpu - 1) << 16 | o.vram as u32 },
            models: task.models.as_slice().to_vec(),
            at,
            boosts: o.boosts,
        }
    }

    /// See `IMuster.runningTask`.
    pub fn running_task(&self, number: u32) -> Result<IMuster::TaskView> {
        let seat = self.known(number)?;
        let order: Order = self.host.get(offset(seat.slot, node::ORDER));
        ensure!(seat.node.running(), TaskNotRunning(0u64, number));
        let escrow = self.host.get(offset(seat.slot, node::ESCROW));
        let task = Task { escrow, order, models: registry::in_use(self.host, seat.slot) };
        Ok(self.task_view(&task, order.at))
    }

    /// See `IMuster.pendingTasks`.
    pub fn pending_tasks(&self, from: u32, count: u32) -> Vec<IMuster::TaskView> {
        page(from, count, self.pending())
            .map(|i| {
                let place = (self.head.pending_head as u32 + i) % RING as u32;
                let task = Task::load(self.host, entry(self.host, PENDING, place as u64));
                self.task_view(&task, task.order.at)
            })
            .collect()
    }

    /// See `IMuster.queuedTasks`: the tasks at `count` places of a group; free places are left out.
    pub fn queued_tasks(&self, group: u32, from: u32, count: u32) -> (u32, Vec<IMuster::TaskView>) {
        let p = if group == PARKING { Pool::default() } else { pool::load(self.host, group) };
        let tasks = page(from, count, p.slots)
            .filter(|&place| pool::key_at(self.host, group, &p, place) > NONE)
            .map(|place| self.queued_at(group, place))
            .collect();
        (p.slots, tasks)
    }

    fn queued_at(&self, group: u32, place: u32) -> IMuster::TaskView {
        let task = Task::load(self.host, queue::entry_slot(self.host, group, place));
        self.task_view(&task, (group as u64) << 32 | place as u64)
    }

    /// See `IMuster.bestQueued`: what a node would take now; id 0 for nothing.
    pub fn best_queued(&self, number: u32) -> Result<IMuster::TaskView> {
        let seat = self.known(number)?;
        Ok(match queue::best_for(self.host, seat.group()) {
            Some((group, place)) if self.head.queued > 0 => self.queued_at(group, place),
            _ => self.task_view(&Task::default(), 0),
        })
    }

    /// See `IMuster.excludedNodes`.
    pub fn excluded_nodes(&self, from: u32, count: u32) -> (u32, Vec<u32>) {
        let p = pool::load(self.host, PARKING);
        let numbers = page(from, count, p.slots)
            .map(|place| pool::key_at(self.host, PARKING, &p, place))
            .filter(|&key| key > NONE)
            .map(|key| key as u32)
            .collect();
        (p.slots, numbers)
    }
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
