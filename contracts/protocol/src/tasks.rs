//! The life of a task on a single node: Pending, Queued, Started, and its end.

use crate::abi::{emit, IMuster::*};
use crate::door::demand_gas;
use crate::draw::{Candidates, Rng};
use crate::host::{Host, ModelSet, Task};
use crate::layout::{slot, LIMITS};
use crate::network::{Network, CALL_GAS, MORE_DRAW_GAS, READMITTED_PER_CALL};
use crate::nodes::{check_ids, Next};
use crate::receipt::{self, UNSET};
use crate::registry::{self, Held};
use crate::ring::RING;
use crate::roster::Seat;
use crate::sampler::{have_joined, nobody_idle, Among, Field, Neighbours, VRAM_MAX};
use crate::{purse, queue, IMuster, Result};
use alloc::vec::Vec;
use muster_core::id::{GpuGroup, ModelId, NodeId, TaskId, Ticket};
use muster_core::qos::{boost, share_bps};
use muster_core::record::*;
use muster_core::value::{key, time_limit, Kind};
use muster_core::word::{Address, Word};

/// Fees stay below this many wei: so all fees of all 2^40 tasks together stay below 2^127, and no account's credit overflows.
pub const FEE_END: u128 = 1 << 87;
/// Most tasks queued at once: what a pool's places and their count hold.
pub const QUEUE_MAX: u64 = (1 << 24) - 2;
/// Most tasks that one `dispatch` serves.
pub const DISPATCH_MAX: u8 = 16;
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
pub(crate) const TIMEOUT: u8 = 0;
/// Groups of more members are given tasks of no more models than a word holds.
const LARGE_GROUP: u8 = 6;

/// Seconds from a task's start that a node which could not run it rests, at most: its estimate, if that is less.
pub const REST_MOST: u64 = 60;

const CANCELLED: u8 = 1;
const EVICTED: u8 = 2;
const WAITED: u8 = 3;
pub(crate) const SLASHED: u8 = 4;

/// Estimated seconds of a task: what its kind and units say, but at least half the shortest time limit, since a node
/// is held that long. So nobody buys rank in the queue, or reliability, by stating less.
pub fn estimate(terms: &Terms, kind: u8, units: u32) -> Result<u32> {
    let kind = Kind::new(kind).ok_or_else(|| refusal!(BadKind(kind)))?;
    let (overhead, unit, most) = match kind {
        Kind::StableDiffusion => (terms.sd_overhead, terms.sd_unit, 1_000),
        Kind::Gpt => (terms.gpt_overhead, terms.gpt_unit, 1_000),
        Kind::FineTune => (0, 1, terms.fine_tune_max),
    };
    // What no time limit leaves time for is not taken.
    let most = most.min((terms.limit_max as u32).saturating_sub(overhead as u32).checked_div(unit as u32).unwrap_or(most));
    ensure!(units >= 1 && units <= most, BadUnits(units, most));
    let least = (terms.limit_min as u32).div_ceil(2);
    Ok((overhead as u32 + units * unit as u32).clamp(least, (1 << 24) - 1))
}

/// Until when a node rests that could not run a task.
pub(crate) fn rests_until(order: &Order) -> u64 {
    order.began() + (order.estimate as u64).min(REST_MOST)
}

impl<H: Host> Network<'_, H> {
    /// The frozen terms of a task that would be created now, and the least fee.
    pub fn order_for(&self, spec: &IMuster::TaskSpec) -> Result<(Order, ModelSet, u128)> {
        self.order_under(&self.terms(), spec)
    }

    fn order_under(&self, terms: &Terms, spec: &IMuster::TaskSpec) -> Result<(Order, ModelSet, u128)> {
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
        // Whether there are three for a replicated task: see `Network::so_many_can_run`.
        let somebody = if spec.gpu != 0 {
            registry::manned(self.host, group).ok_or_else(|| refusal!(GpuUnknown(group)))?
        } else {
            ensure!(spec.vram <= VRAM_MAX, BadVram(spec.vram, VRAM_MAX));
            spec.vram <= self.roster.max_vram()
        };
        ensure!(somebody, NobodyCanRun(group.vram(), spec.gpu));
        let (mut kind, mut policy, mut scored) = (spec.kind, Policy::Single, false);
        if spec.redundancy > 0 {
            if alike {
                // Three nodes can be found in any listed group; a sampled task's first node decides where the others are.
                let found_later = replicated && group.is_any();
                ensure!(found_later || registry::listed(self.host, group), GpuNotListed(group));
            } else {
                ensure!(spec.units <= IMAGES_MAX, BadUnits(spec.units, IMAGES_MAX));
                kind |= (spec.units as u8) << 4;
            }
            if spec.redundancy == SAMPLED {
                let limits: Limits = self.host.get(slot(LIMITS));
                policy = Policy::Sampled { bps: limits.sample_bps };
                // Settled before anybody knows who runs it. Paused nodes count: a node found wrong would else have its others pause. But
                // not where hardly anybody else is there: two that collude would be enough to have the rest slashed.
                scored = have_joined(self.host, group.into(), limits.score_pool as u32);
            } else if replicated {
                policy = Policy::Replicated;
            } else {
                let most = self.nodes_paid();
                policy = Policy::Rated { most, attempts: 0 };
                // Many members that all load many models would make a draw dearer than any call may be.
                let models = if most > LARGE_GROUP { MODELS_PER_WORD as usize } else { TASK_MODELS };
                ensure!(spec.models.len() <= models, TooManyModels(spec.models.len(), models));
            }
        }
        let order = Order {
            id: TaskId(self.tasks + 1),
            estimate,
            limit: time_limit(estimate, terms.limit_min, terms.limit_max) as u32 + terms.grace as u32,
            start_fee_bps: self.rules.start_fee_bps,
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

    /// Refuses while no tasks are taken.
    #[inline(always)]
    fn takes_tasks(&self, terms: &Terms) -> Result<()> {
        ensure!(!terms.paused, PausedByOwner);
        ensure!(self.roster.joined() > 0, NoNodes);
        Ok(())
    }

    /// Creates a task for a fee, or refuses it and changes nothing. If it is created `ALONE`, it is queued at once where nobody is idle
    /// that it could go to, and one of a single node with no draw delay drawn at once otherwise.
    #[inline(always)]
    fn create<const ALONE: bool>(&mut self, terms: Terms, spec: IMuster::TaskSpec, value: Word) -> Result<TaskId> {
        let (order, models, least) = self.order_under(&terms, &spec)?;
        let (most, slash_times) = if spec.redundancy > 0 { self.most_at_stake(order.nodes()) } else { (FEE_END - 1, 0) };
        let slash_times = if order.rated() { 0 } else { slash_times };
        let fee = value.to_u128().filter(|&fee| fee <= most).ok_or_else(|| refusal!(FeeTooHigh(value, most)))?;
        let least = least.max(1);
        ensure!(fee >= least, FeeTooLow(value, least));
        // Beside much else it would make the call too dear. And who could take the call back would choose among outcomes: a draw keeps
        // that from him, so his tasks have one.
        let nobody = ALONE && self.can_queue() && nobody_idle(self.host, order.group.into()) && self.host.signed();
        ensure!(nobody || !self.ring.is_full(), TooManyPending(RING as u32 - 1));
        if order.several() {
            ensure!(self.so_many_can_run(&order), NobodyCanRun(order.group.vram(), spec.gpu));
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
        receipt::open(self.host, &order);
        if nobody {
            self.enqueue(&task);
        } else if at_once {
            self.draw_by(&task, block);
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
    /// It makes none of their draws, whatever the draw delay: that would be dear, and is [`Network::dispatch`]'s to do. And it is refused while
    /// draws are due that it does not make itself: what is created for less than it costs to draw must not pile up for others.
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
        self.settle_cheaply(specs.len() as u32)?;
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
        purse::credit(self.host, creator, back);
        Ok(ids)
    }

    /// The highest fee of a task for so many nodes, in wei: so many times the part, rounded down, that the least stake of one covers, with
    /// a wrong answer to each of the tasks that it can have open. One more than those that hold it, for a group may wait for it by then.
    /// And what each of them is slashed by.
    ///
    /// Nodes may have joined with the lowest least stake that there ever was, and have as many commitments open as they ever could.
    pub fn most_at_stake(&self, nodes: u32) -> (u128, u8) {
        let limits: Limits = self.host.get(slot(LIMITS));
        let times = limits.slash_times as u64 * (self.rules.open_most_ever as u64 + 1);
        let part = self.wei(limits.least_stake_ever as u64) / times.max(1) as u128;
        ((part * nodes as u128).min(FEE_END - 1), limits.slash_times)
    }

    /// Most tasks that can be queued now: floor(alpha x joined nodes), at most [`QUEUE_MAX`].
    pub fn queue_capacity(&self) -> u64 {
        (self.rules.alpha_milli as u64 * self.roster.joined() as u64 / 1_000).min(QUEUE_MAX)
    }

    /// Queues a task; where the queue is full, the lowest value goes, the newcomer's included.
    pub fn enqueue(&mut self, task: &Task) {
        let key = key(task.order.part(task.escrow.fee), task.order.estimate, task.order.id);
        let since = Task { order: Order { moment: self.now, ..task.order }, ..*task };
        let ticket = if (self.queued as u64) < self.queue_capacity() {
            self.queued += 1;
            queue::insert(self.host, &since, key)
        } else if queue::worst(self.host).is_some_and(|worst| worst < key) {
            let (lowest, ticket) = queue::replace_worst(self.host, &since, key);
            self.abort(&lowest, NodeId(0), EVICTED, 0, 0, None);
            ticket
        } else {
            return self.abort(task, NodeId(0), EVICTED, 0, 0, None);
        };
        emit::<TaskQueued>(self.host, (task.order.id, task.order.group, task.escrow.creator), (ticket,));
    }

    /// Starts the best queued task on a node that stands nowhere; gives whether there was one.
    pub fn start_queued(&mut self, node: NodeId) -> bool {
        let seat = Seat::load(self.host, node);
        let best = queue::best_single(self.host, seat.node.group);
        if let Some(best) = best {
            let task = self.dequeue(best.ticket(self.host));
            self.start(&task, seat, Candidates::AtLeast(0), 0, None);
        }
        best.is_some()
    }

    /// Starts a task on a node that stands nowhere; writes the node's record. With entropy in hand
    /// ([`Rng`]) it is used for the pre-download, else the task's id has to do: who is asked to
    /// download decides nothing. Whether success raises H follows from the candidates of the draw; a task that comes
    /// from the queue was not drawn and has none. `left` is the length of the list that the node was drawn from, without it.
    pub(crate) fn start(&mut self, task: &Task, mut seat: Seat, candidates: Candidates, left: u32, rng: Option<&mut Rng>) {
        self.started = true;
        let deadline = self.now + task.order.limit as u64;
        let place = (seat.node.class(self.rules.base), seat.node.pos);
        seat.node.status = Status::Busy as u8;
        seat.put(self.host);
        seat.assign(self.host, task);
        // One node is chosen already; how many others there were need not be known beyond the pool, nor where H can rise no more.
        let (rises, pool) = (self.can_rise(&seat.node), self.rules.boost_pool as u32);
        let among_holders = candidates == Candidates::Holders;
        let others = if rises && among_holders { pool.saturating_sub(1) } else { 0 };
        let (holders, requests) = if task.models.len > 0 {
            self.distribute(task, &seat, (place, left), (among_holders, others), rng)
        } else {
            (0, Vec::new())
        };
        let there = match candidates {
            Candidates::Holders => holders + 1,
            Candidates::AtLeast(n) => n,
        };
        let boosts = rises && there >= pool;
        seat.set_order(self.host, &task.order.as_started(deadline, boosts));
        emit::<TaskStarted>(self.host, (task.order.id, seat.id, task.escrow.creator), (deadline, boosts));
        for (node, model) in requests {
            emit::<DownloadRequested>(self.host, (node, model, task.order.id), ());
        }
    }

    /// Which nodes to ask for which models: the chosen one for those it lacks, others where one is scarce. Looks first beside the place that
    /// it had. Gives also how many other nodes that hold one of the models the task could have gone to, counted up to `others`.
    #[inline(never)]
    fn distribute(
        &mut self,
        task: &Task,
        seat: &Seat,
        ((class, place), left): ((u8, u32), u32),
        (among_holders, others): (bool, u32),
        rng: Option<&mut Rng>,
    ) -> (u32, Vec<(NodeId, ModelId)>) {
        let mut requests = Vec::new();
        // A node that was drawn among the holders of one model, of which there are many, holds it.
        let sure = among_holders && task.models.len == 1;
        if !sure && registry::count_held(self.host, seat.slot, seat.node.models, &task.models) < task.models.len as u32 {
            let held = Held::load(self.host, seat.slot, seat.node.models);
            let missing = task.models.as_slice().iter().filter(|&&m| !held.holds(m));
            requests.extend(missing.map(|&model| (seat.id, model)));
        }
        let (scarce, spread) = (self.rules.scarce as u32, self.rules.spread as u32);
        let mut own;
        let rng = match rng {
            Some(rng) => rng,
            None => {
                own = Rng::new(self.host, [0; 32], task.order.id);
                &mut own
            }
        };
        let idle = |net: &Self| Field::new(net.host, Among::Idle, task.order.group.into());
        // Who was drawn out of a list with others in it leaves somebody idle, without a look.
        let mut field = (others == 0 && left == 0).then(|| idle(self));
        let mut nearby = Neighbours::load(self.host, seat.node.group, class, place, left);
        let (mut reads, mut asked, mut eligible) = (self.spread, 0, Vec::new());
        for &model in task.models.as_slice() {
            // While nobody is idle who could be asked, holders need not be counted.
            if reads == 0 || field.as_ref().is_some_and(|field| field.total() == 0) {
                break;
            }
            let available = self.available_holders(task, model, scarce, &mut nearby, others, &mut eligible, &mut reads, rng);
            if available >= scarce {
                continue;
            }
            let most = spread.saturating_sub(available.max(asked));
            let field = &*field.get_or_insert_with(|| idle(self));
            for node in self.draw_lacking(field, task, model, most, &mut reads, rng) {
                asked += 1;
                requests.push((node, model));
            }
        }
        nearby.store(self.host);
        self.spread = reads;
        (eligible.len() as u32, requests)
    }

    // ------------------------------------------------------------ ends

    /// The node that the caller works for, whether only as its worker, and its running task.
    fn own_task(&self, id: TaskId) -> Result<(Seat, bool, Escrow, Order)> {
        let (seat, works) = self.own_seat()?;
        let (escrow, order) = self.running(&seat, id)?;
        Ok((seat, works, escrow, order))
    }

    fn running(&self, seat: &Seat, id: TaskId) -> Result<(Escrow, Order)> {
        let order = seat.order(self.host);
        let here = seat.node.running() && order.id == id;
        ensure!(here, TaskNotRunning(id, seat.id));
        ensure!(!order.commits(), CommitFirst(id));
        Ok((seat.escrow(self.host), order))
    }

    pub(crate) fn set_reliability(&self, seat: &mut Seat, h: u64) {
        seat.node.h = h;
        seat.node.h_at = self.now as u32;
    }

    /// See `IMuster.submit`.
    pub fn submit(&mut self, id: TaskId, digest: [u8; 32]) -> Result<()> {
        let (seat, works, escrow, order) = self.own_task(id)?;
        ensure!(self.now <= order.moment, DeadlinePassed(id, order.moment));
        let operator = if works { seat.operator(self.host).account } else { self.host.sender() };
        self.succeed(seat, &escrow, &order, operator, digest, escrow.fee);
        Ok(())
    }

    /// Ends a node's task as a success, for which its operator gets so much.
    pub(crate) fn succeed(
        &mut self,
        mut seat: Seat,
        escrow: &Escrow,
        order: &Order,
        operator: Address,
        digest: [u8; 32],
        paid: u128,
    ) {
        if order.boosts() {
            self.raise_reliability(&mut seat, order.estimate);
        }
        purse::credit(self.host, operator, paid);
        emit::<TaskSucceeded>(self.host, (order.id, seat.id, escrow.creator), (digest, paid));
        receipt::close(self.host, order, Receipt::SUCCEEDED, seat.id, 0, 0, &digest);
        self.release(seat, Next::WorkOrWait);
    }

    /// Raises H for a success, but only half the task's estimate apart, so that no string of small tasks buys back in minutes what time
    /// gives in half an hour.
    pub(crate) fn raise_reliability(&self, seat: &mut Seat, estimate: u32) {
        if (self.now - seat.node.h_at as u64) * 2 >= estimate as u64 {
            let h = boost(self.reliability(&seat.node), self.rules.boost_ppm);
            self.set_reliability(seat, h);
        }
    }

    /// See `IMuster.reportError`.
    pub fn report_error(&mut self, id: TaskId, code: u8) -> Result<()> {
        let (seat, _, escrow, order) = self.own_task(id)?;
        ensure!(self.now <= order.moment, DeadlinePassed(id, order.moment));
        self.fail(seat, &escrow, &order, code);
        Ok(())
    }

    /// Ends a node's task by an error. The creator pays the start fee for the node's time, and the node rests: else one that reports
    /// errors at once would be idle most of the time, and be drawn more often than its weight says.
    pub(crate) fn fail(&mut self, seat: Seat, escrow: &Escrow, order: &Order, code: u8) {
        let start_fee = share_bps(escrow.fee, order.start_fee_bps);
        let refund = escrow.fee - start_fee;
        purse::earn(self.host, start_fee);
        purse::credit(self.host, escrow.creator, refund);
        emit::<TaskErrorReported>(self.host, (order.id, seat.id, escrow.creator), (code, refund));
        receipt::close(self.host, order, Receipt::ERROR, seat.id, code, refund, &UNSET);
        self.release(seat, Next::Rest(rests_until(order)));
    }

    /// The task queued under a ticket.
    fn queued_under(&self, id: TaskId, ticket: Ticket) -> Result<Task> {
        let task = queue::task_at(self.host, ticket).filter(|task| task.order.id == id);
        task.ok_or_else(|| refusal!(TaskNotQueued(id, ticket)))
    }

    /// Takes a task out of the queue.
    pub(crate) fn dequeue(&mut self, ticket: Ticket) -> Task {
        self.queued -= 1;
        queue::remove(self.host, ticket)
    }

    /// See `IMuster.cancel`.
    pub fn cancel(&mut self, id: TaskId, ticket: Ticket) -> Result<()> {
        let task = self.queued_under(id, ticket)?;
        let caller = self.host.sender();
        ensure!(task.escrow.creator == caller, NotTheCreator(id, caller));
        self.end_queued(ticket, CANCELLED, None);
        Ok(())
    }

    /// See `IMuster.expireQueued`.
    pub fn expire_queued(&mut self, id: TaskId, ticket: Ticket) -> Result<()> {
        let task = self.queued_under(id, ticket)?;
        let until = task.order.moment + self.host.get::<Limits>(slot(LIMITS)).queue_time as u64;
        ensure!(self.now > until, QueueTimeNotOver(id, until));
        let caller = self.host.sender();
        let driver = (task.escrow.creator != caller).then_some(caller);
        self.end_queued(ticket, WAITED, driver);
        Ok(())
    }

    fn end_queued(&mut self, ticket: Ticket, reason: u8, driver: Option<Address>) {
        let task = self.dequeue(ticket);
        self.abort(&task, NodeId(0), reason, task.order.start_fee_bps, 0, driver);
    }

    /// Refunds a task less the start fee, which goes to whoever drove what its owner should have, else to the treasury, and less what is
    /// saved for validations.
    #[inline(never)]
    pub(crate) fn abort(
        &mut self,
        task: &Task,
        node: NodeId,
        reason: u8,
        start_fee_bps: u16,
        saved: u128,
        driver: Option<Address>,
    ) {
        let start_fee = share_bps(task.escrow.fee, start_fee_bps);
        let saved = saved.min(task.escrow.fee - start_fee);
        purse::save(self.host, saved);
        let refund = task.escrow.fee - start_fee - saved;
        let beneficiary = driver.filter(|_| start_fee > 0).unwrap_or_default();
        match driver {
            Some(driver) => purse::credit(self.host, driver, start_fee),
            None => purse::earn(self.host, start_fee),
        }
        purse::credit(self.host, task.escrow.creator, refund);
        emit::<TaskAborted>(self.host, (task.order.id, node, task.escrow.creator), (reason, refund, start_fee, beneficiary));
        receipt::close(self.host, &task.order, Receipt::ABORTED + reason, node, 0, refund, &UNSET);
    }

    /// See `IMuster.dispatch`.
    pub fn dispatch(&mut self, count: u8) -> Result<u8> {
        ensure!(count <= DISPATCH_MAX, TooManyAtOnce(count, DISPATCH_MAX));
        demand_gas(self.host, CALL_GAS + count.saturating_sub(1) as u64 * MORE_DRAW_GAS)?;
        let served = self.serve(count as u32);
        self.readmit(READMITTED_PER_CALL);
        Ok(served as u8)
    }
}
