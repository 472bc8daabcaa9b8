//! The creation of tasks: their frozen terms, and their costs.

use crate::abi::{emit, IMuster::*};
use crate::flow::models::check_ids;
use crate::flow::network::Network;
use crate::flow::queueing::enqueue;
use crate::flow::serve::settle_cheaply;
use crate::flow::standing::retained;
use crate::flow::start::draw_by;
use crate::host::Host;
use crate::policy::group::so_many_can_run;
use crate::policy::{rated, replicated, sampled};

use crate::store::layout::{slot, LIMITS};
use crate::store::ring::RING;
use crate::store::sampler::{nobody_idle, VRAM_MAX};
use crate::store::task::{ModelSet, Task};
use crate::store::{accounts, receipts, registry};
use crate::{IMuster, Result};
use alloc::vec::Vec;
use muster_core::id::{GpuGroup, ModelId, TaskId};
use muster_core::record::{Escrow, Limits, Order, Policy, Terms, TASK_MODELS};
use muster_core::value::{time_limit, Kind};
use muster_core::word::Word;

/// Fees stay below this many wei: so all fees of all 2^40 tasks together stay below 2^127, and no account's credit overflows.
pub const FEE_END: u128 = 1 << 87;
/// Most tasks that one `createTasks` creates.
pub const BATCH_MAX: usize = 16;
/// The redundancy policy of sampled tasks; 0 is that of single ones.
pub const SAMPLED: u8 = 1;
/// The redundancy policy of tasks that take three nodes at once.
pub const REPLICATED: u8 = 2;
/// The redundancy policy of tasks whose nodes are chosen by their ratings.
pub const RATED: u8 = 3;
/// Most images of a task that can be validated.
pub const IMAGES_MAX: u32 = 4;
/// The flag of a task's specification that asks for a receipt.
pub const FLAG_RECEIPT: u32 = 1;

/// Estimated seconds of a task, from its kind and units. At least half the shortest time limit, since a node is held that long: stating
/// less buys neither rank in the queue nor reliability.
pub fn estimate(terms: &Terms, kind: u8, units: u32) -> Result<u32> {
    let kind = Kind::new(kind).ok_or_else(|| refusal!(BadKind(kind)))?;
    let (overhead, unit, most) = match kind {
        Kind::StableDiffusion => (terms.sd_overhead, terms.sd_unit, 1_000),
        Kind::Gpt => (terms.gpt_overhead, terms.gpt_unit, 1_000),
        Kind::FineTune => (0, 1, terms.fine_tune_max),
    };
    // Refuses units for which no time limit leaves time; all of them, if none is left beside the overhead.
    let left = terms.limit_max.checked_sub(overhead);
    let most = left.map_or(0, |left| left.checked_div(unit).map_or(most, |fit| most.min(fit as u32)));
    ensure!(units >= 1 && units <= most, BadUnits(units, most));
    let least = (terms.limit_min as u32).div_ceil(2);
    Ok((overhead as u32 + units * unit as u32).clamp(least, (1 << 24) - 1))
}

impl<H: Host> Network<'_, H> {
    /// The frozen terms of a task that would be created now, and the least fee.
    pub fn order_for(&self, spec: &IMuster::TaskSpec) -> Result<(Order, ModelSet, u128)> {
        order_under(self, &self.terms(), spec)
    }
}

fn order_under<H: Host>(net: &Network<'_, H>, terms: &Terms, spec: &IMuster::TaskSpec) -> Result<(Order, ModelSet, u128)> {
    let estimate = estimate(terms, spec.kind, spec.units)?;
    ensure!(spec.redundancy <= RATED, RedundancyUnsupported(spec.redundancy));
    ensure!(spec.flags & !FLAG_RECEIPT == 0, FlagsUnsupported(spec.flags));
    ensure!(spec.models.len() <= TASK_MODELS, TooManyModels(spec.models.len(), TASK_MODELS));
    let mut models = ModelSet { len: spec.models.len() as u8, ..ModelSet::default() };
    models.ids.iter_mut().zip(&spec.models).for_each(|(id, &given)| *id = ModelId(given));
    check_ids(models.as_slice())?;
    let replicated = spec.redundancy == REPLICATED;
    let alike = spec.kind != Kind::StableDiffusion as u8;
    let group = GpuGroup(if spec.gpu == 0 { spec.vram as u32 } else { spec.gpu });
    // Whether there are three for a replicated task: see `so_many_can_run`.
    let somebody = if spec.gpu != 0 {
        registry::manned(net.host, group).ok_or_else(|| refusal!(GpuUnknown(group)))?
    } else {
        ensure!(spec.vram <= VRAM_MAX, BadVram(spec.vram, VRAM_MAX));
        spec.vram <= net.node_store.max_vram()
    };
    ensure!(somebody, NobodyCanRun(group.vram(), spec.gpu));
    let mut kind = spec.kind;
    if spec.redundancy > 0 {
        if alike {
            let anywhere = replicated && replicated::finds_its_group(group);
            ensure!(anywhere || registry::listed(net.host, group), GpuNotListed(group));
        } else {
            ensure!(spec.units <= IMAGES_MAX, BadUnits(spec.units, IMAGES_MAX));
            kind |= (spec.units as u8) << 4;
        }
    }
    let (policy, scored) = match spec.redundancy {
        SAMPLED => sampled::freeze(net, group),
        REPLICATED => (Policy::Replicated, false),
        RATED => (rated::freeze(net, spec.models.len())?, false),
        _ => (Policy::Single, false),
    };
    let order = Order {
        id: TaskId(net.tasks + 1),
        estimate,
        limit: time_limit(estimate, terms.limit_min, terms.limit_max) as u32 + terms.grace as u32,
        start_fee_bps: net.rules.start_fee_bps,
        group,
        kind,
        models: models.len,
        model: models.ids[0],
        ..Order::default()
    };
    // The only flag that is taken.
    let order = order.under(policy).with_scores(scored).with_receipt(spec.flags != 0);
    let least = (estimate as u64 * order.nodes() as u64) as u128 * terms.min_price as u128;
    Ok((order, models, least))
}

impl<H: Host> Network<'_, H> {
    /// Refuses while no tasks are taken.
    #[inline(always)]
    fn takes_tasks(&self, terms: &Terms) -> Result<()> {
        ensure!(!terms.paused, PausedByOwner);
        ensure!(self.node_store.joined() > 0, NoNodes);
        Ok(())
    }

    /// Creates a task for a fee, or refuses it and changes nothing. A task created `ALONE` is queued at once if no idle node could take it.
    /// Otherwise a task of a single node is drawn at once if there is no draw delay.
    #[inline(always)]
    fn create<const ALONE: bool>(&mut self, terms: Terms, spec: IMuster::TaskSpec, value: Word) -> Result<TaskId> {
        let (order, models, least) = order_under(self, &terms, &spec)?;
        let (most, slash_times) = if spec.redundancy > 0 { self.most_at_stake(order.nodes()) } else { (FEE_END - 1, 0) };
        let slash_times = if order.rated() { 0 } else { slash_times };
        let fee = value.to_u128().filter(|&fee| fee <= most).ok_or_else(|| refusal!(FeeTooHigh(value, most)))?;
        let least = least.max(1);
        ensure!(fee >= least, FeeTooLow(value, least));
        // Creation beside much other work would make the call too expensive. Callers that can revert could choose among outcomes, so their
        // tasks always wait for a draw.
        let nobody = ALONE && self.can_queue() && nobody_idle(self.host, order.group.into()) && self.host.signed();
        ensure!(nobody || !self.ring.is_full(), TooManyPending(RING as u32 - 1));
        if order.several() {
            ensure!(so_many_can_run(self, &order), NobodyCanRun(order.group.vram(), spec.gpu));
        }
        let creator = self.host.sender();
        let task = Task { escrow: Escrow { creator, fee, slash_times }, order, models };
        self.tasks = order.id.0;
        let at_once = ALONE && self.rules.draw_delay == 0 && !order.several() && !self.draws_due();
        let block = match (nobody, at_once) {
            (true, _) => 0,
            (_, true) => self.block().saturating_sub(1),
            _ => self.target(),
        };
        let frozen = (fee, order.estimate, order.limit, order.start_fee_bps, block, spec);
        emit::<TaskCreated>(self.host, (order.id, creator), frozen);
        receipts::open(self.host, &order);
        if nobody {
            enqueue(self, &task);
        } else if at_once {
            draw_by(self, &task, block);
        } else {
            self.ring.push(self.host, &task, block);
        }
        Ok(order.id)
    }

    /// See `IMuster.createTask`.
    pub fn create_task(&mut self, spec: IMuster::TaskSpec) -> Result<TaskId> {
        let terms = self.terms();
        self.takes_tasks(&terms)?;
        let value = self.host.value();
        self.create::<true>(terms, spec, value)
    }

    /// See `IMuster.createTasks`.
    ///
    /// It makes none of their draws, whatever the draw delay: draws are expensive, and [`Network::dispatch`] makes them. It is refused
    /// while draws are due that it does not make itself. Creating tasks costs less than drawing them, and they must not pile up for others.
    pub fn create_tasks(&mut self, specs: Vec<IMuster::TaskSpec>, fees: &[u128], atomic: bool) -> Result<Vec<TaskId>> {
        ensure!(specs.len() <= BATCH_MAX, TooManyAtOnce(specs.len(), BATCH_MAX));
        let sent = self.host.value();
        // Sixteen numbers below 2^87 do not overflow.
        let sum = fees.iter().try_fold(0, |sum: u128, &fee| (fee < FEE_END).then(|| sum + fee));
        ensure!(
            fees.len() == specs.len() && sum.is_some_and(|sum| sent.to_u128() == Some(sum)),
            BadBatch(specs.len(), fees.len(), sent)
        );
        let terms = self.terms();
        self.takes_tasks(&terms)?;
        settle_cheaply(self, specs.len() as u32)?;
        let creator = self.host.sender();
        let (mut ids, mut back) = (Vec::with_capacity(specs.len()), 0);
        for (place, (spec, &fee)) in specs.into_iter().zip(fees).enumerate() {
            match self.create::<false>(terms, spec, Word([fee as u64, (fee >> 64) as u64, 0, 0])) {
                Ok(id) => ids.push(id),
                Err(reason) => {
                    let reason = reason.into_bytes();
                    ensure!(!atomic, RefusedInBatch(place, &reason[..]));
                    emit::<TaskRefused>(self.host, (creator,), (place as u8, fee, &reason[..]));
                    back += fee;
                    ids.push(TaskId(0));
                }
            }
        }
        accounts::credit(self.host, creator, back);
        Ok(ids)
    }

    /// The highest fee of a task for this many nodes, in wei, and the multiple of a part by which each node is slashed.
    ///
    /// The least that a slashed node keeps and [works on](retained) must cover a wrong answer to every task that it can have open. That is
    /// one more than the tasks that hold a node, since a group may wait for it by then. The part of one node is rounded down.
    ///
    /// Takes the lowest least stake that there ever was, and the most open commitments, since nodes may have joined with them.
    pub fn most_at_stake(&self, nodes: u32) -> (u128, u8) {
        let limits: Limits = self.host.get(slot(LIMITS));
        let times = limits.slash_times as u64 * (self.rules.open_most_ever as u64 + 1);
        let part = self.wei(retained(limits.least_stake_ever as u64)) / times.max(1) as u128;
        ((part * nodes as u128).min(FEE_END - 1), limits.slash_times)
    }
}
