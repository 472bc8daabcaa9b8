//! The life of a node: join, stake, pause, resume, quit, kickout, exclusion, models.

use crate::abi::{emit, IMuster::*};
use crate::host::{Host, Program};
use crate::layout::{entry, slot, LIMITS, MODEL_NAMED, TERMS};
use crate::network::Network;
use crate::parking;
use crate::pool;
use crate::programs::departCall;
use crate::registry::{self, Held, Holders};
use crate::roster::Seat;
use crate::sampler::{self, Among, Neighbours, VRAM_MAX};
use crate::tasks::rests_until;
use crate::{purse, queue, Result};
use alloc::vec::Vec;
use alloy_sol_types::SolCall;
use muster_core::id::{ModelId, NodeId, TaskId};
use muster_core::qos;
use muster_core::record::*;
use muster_core::wad::WAD;
use muster_core::weight;
use muster_core::word::Word;

/// Longest model name, in bytes.
pub const MODEL_NAME_MAX: usize = 128;
/// Largest model id + 1.
pub const MODEL_END: u64 = 1 << 40;

/// What a node without a task may do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Nothing until this time, in seconds.
    Rest(u64),
    /// A queued task.
    Work,
    /// A queued task, or wait for others with one that takes three nodes.
    WorkOrWait,
}

impl<H: Host> Network<'_, H> {
    /// A stake in wei.
    pub fn wei(&self, granules: u64) -> u128 {
        purse::wei(self.host, granules)
    }

    /// Reads the parameters of creating, joining and leaving.
    pub fn terms(&self) -> Terms {
        self.host.get(slot(TERMS))
    }

    /// The node that the caller works for, as its operator or (then the second is true) as its worker.
    pub fn own_seat(&self) -> Result<(Seat, bool)> {
        let caller = self.host.sender();
        let (node, works) = purse::node_of(self.host, caller);
        ensure!(node.0 > 0, NotAnOperator(caller));
        Ok((Seat::load(self.host, node), works))
    }

    /// The node that the caller works for, for a call that can change who a draw's candidates are.
    fn own_settled_seat(&mut self) -> Result<Seat> {
        self.settled()?;
        Ok(self.own_seat()?.0)
    }

    /// The node that the caller is the operator of, for such a call.
    fn owned_settled_seat(&mut self) -> Result<Seat> {
        self.settled()?;
        let (seat, works) = self.own_seat()?;
        ensure!(!works, NotTheOperator(seat.id, self.host.sender()));
        Ok(seat)
    }

    /// Value sent as stake, in granules, after `fee` (in granules) is taken from it.
    fn stake_sent(&self, fee: u64) -> Result<u64> {
        let (sent, granule) = (self.host.value(), purse::granule(self.host));
        let wei = |granules: u64| granules as u128 * granule as u128;
        let most = wei(weight::stake_limit(self.rules.base) + fee);
        let amount = sent.to_u128().filter(|&amount| amount <= most).ok_or_else(|| refusal!(StakeTooHigh(sent, most)))?;
        let granules = (amount / granule as u128) as u64;
        ensure!(wei(granules) == amount, StakeNotWhole(sent, granule));
        Ok(granules.saturating_sub(fee))
    }

    // ------------------------------------------------------------ join and leave

    /// See `IMuster.join`.
    pub fn join(&mut self, gpu_name: &[u8], vram: u16, models: Vec<ModelId>) -> Result<NodeId> {
        let terms = self.terms();
        ensure!(!terms.paused, PausedByOwner);
        self.settled()?;
        let caller = self.host.sender();
        let account = purse::account(self.host, caller);
        ensure!(!account.kicked, KickedOut(caller));
        ensure!(!account.works, HasNode(caller, account.node));
        registry::check_gpu_name(gpu_name)?;
        ensure!((1..=VRAM_MAX).contains(&vram), BadVram(vram, VRAM_MAX));
        let known = registry::gpu_group(self.host, gpu_name, vram);
        let fee = if known.is_none() { self.host.get::<Limits>(slot(LIMITS)).group_fee } else { 0 };
        let stake = self.stake_sent(fee)?;
        ensure!(stake >= terms.min_stake, StakeTooLow(self.host.value(), self.wei(terms.min_stake + fee)));
        purse::check_returnable(self.host, &account, stake)?;
        check_models(&models, CALL_MODELS)?;
        self.roster.check_room()?;
        let id = match account.node {
            NodeId(0) => {
                let id = self.roster.issue(self.host)?;
                purse::name_node(self.host, caller, account, id);
                id
            }
            id => id,
        };
        let mut seat = Seat::load(self.host, id);
        ensure!(Status::new(seat.node.status) == Status::Quit, WrongStatus(id, seat.node.status));

        let group = match known {
            Some(group) => group,
            None => {
                let group = registry::create_gpu_group(self.host, gpu_name, vram)?;
                let fee = self.wei(fee);
                purse::earn(self.host, fee);
                emit::<GpuGroupCreated>(self.host, (group,), (gpu_name, vram, fee));
                group
            }
        };
        let mut held = Held::load(self.host, seat.slot, seat.node.models);
        for e in &mut held.entries {
            e.1 = !models.contains(&e.0);
        }
        for &model in &models {
            held.add(self.host, seat.id, model)?;
        }
        seat.node.models = held.store(self.host);
        // Else who creates its first task would pay for its words. Who lists more models than stand in one word pays enough already.
        if account.node.0 == 0 && models.len() <= MODELS_PER_WORD as usize {
            seat.open(self.host);
        }
        seat.node =
            Node { status: Status::Available as u8, stake, h: WAD, h_at: self.now as u32, pos: 0, group, parked: 0, ..seat.node };
        if account.node.0 > 0 {
            seat.unload(self.host);
        }
        let operator = Operator { account: caller, joined_at: self.now, place: 0 };
        self.roster.enter(self.host, &seat, operator, self.rules.base);
        let staked = self.wei(stake);
        emit::<NodeJoined>(self.host, (id, caller, group), (staked, &models[..]));
        self.release(seat, Next::WorkOrWait);
        let seat = Seat::load(self.host, id);
        if seat.node.idle() {
            let mut there = self.neighbours(&seat);
            let known = Some(there.model()).filter(|&model| model.0 > 0).or(models.first().copied());
            if let Some(model) = known.filter(|&model| held.holds(model)) {
                there.note(seat.node.pos & 7, model);
                there.store(self.host);
            }
        }
        Ok(id)
    }

    /// Those who stand beside an idle node, and itself.
    fn neighbours(&self, seat: &Seat) -> Neighbours {
        let place = seat.node.pos;
        Neighbours::load(self.host, seat.node.group, seat.node.class(self.rules.base), place, place + 1)
    }

    /// See `IMuster.raiseStake`.
    pub fn raise_stake(&mut self) -> Result<()> {
        let mut seat = self.owned_settled_seat()?;
        let status = seat.node.status;
        ensure!(matches!(status, 1 | 2 | 3 | 5), WrongStatus(seat.id, status));
        let added = self.stake_sent(0)?;
        ensure!(added > 0, StakeTooLow(self.host.value(), purse::granule(self.host)));
        let most = weight::stake_limit(self.rules.base);
        let stake = seat.node.stake + added;
        ensure!(stake <= most, StakeTooHigh(self.wei(stake), self.wei(most)));
        purse::check_returnable(self.host, &purse::account(self.host, self.host.sender()), stake)?;
        self.restake(&mut seat, stake);
        seat.put(self.host);
        let (added, stake) = (self.wei(added), self.wei(stake));
        emit::<StakeRaised>(self.host, (seat.id,), (added, stake));
        Ok(())
    }

    /// Changes a joined node's stake, and with it where it stands.
    #[inline(never)]
    pub(crate) fn restake(&mut self, seat: &mut Seat, stake: u64) {
        let base = self.rules.base;
        let (from, to) = (seat.node.class(base), weight::class_of(stake, base));
        if from != to && seat.node.idle() {
            self.leave_sampler(seat);
            seat.node.pos = sampler::insert(self.host, Among::Idle, seat.node.group, to, seat.id);
        }
        seat.node.stake = stake;
        self.roster.restake(self.host, seat, from, to, base);
    }

    /// See `IMuster.pause`.
    pub fn pause(&mut self) -> Result<()> {
        let mut seat = self.own_settled_seat()?;
        match Status::new(seat.node.status) {
            // To pause and resume does not shorten its rest.
            Status::Available if self.rests(&seat) => {
                seat.node.status = Status::PendingPause as u8;
                emit::<NodePausing>(self.host, (seat.id,), ());
            }
            Status::Available => {
                self.withdraw_from_work(&mut seat);
                seat.node.status = Status::Paused as u8;
                emit::<NodePaused>(self.host, (seat.id,), ());
            }
            Status::Busy => {
                seat.node.status = Status::PendingPause as u8;
                emit::<NodePausing>(self.host, (seat.id,), ());
            }
            _ => return Err(refusal!(WrongStatus(seat.id, seat.node.status))),
        }
        seat.put(self.host);
        Ok(())
    }

    /// See `IMuster.resume`.
    pub fn resume(&mut self) -> Result<()> {
        let mut seat = self.own_settled_seat()?;
        ensure!(Status::new(seat.node.status) == Status::Paused, WrongStatus(seat.id, seat.node.status));
        seat.node.status = Status::Available as u8;
        self.roster.take_back(self.host, &mut seat, self.rules.base);
        emit::<NodeResumed>(self.host, (seat.id,), ());
        self.release(seat, Next::WorkOrWait);
        Ok(())
    }

    /// See `IMuster.quit`.
    pub fn quit(&mut self) -> Result<()> {
        let mut seat = self.owned_settled_seat()?;
        match Status::new(seat.node.status) {
            Status::Available => {
                self.withdraw_from_work(&mut seat);
                self.leave(seat, false);
            }
            Status::Paused => self.leave(seat, false),
            Status::Busy => {
                seat.node.status = Status::PendingQuit as u8;
                seat.put(self.host);
                emit::<NodeQuitting>(self.host, (seat.id,), ());
            }
            _ => return Err(refusal!(WrongStatus(seat.id, seat.node.status))),
        }
        Ok(())
    }

    /// Takes a node that has no task and stands nowhere out of the network, or has the program do it that can.
    pub(crate) fn depart(&mut self, seat: Seat, kicked: bool) {
        if self.host.is(Program::Nodes) {
            return self.leave(seat, kicked);
        }
        seat.put(self.host);
        self.entrust(Program::Nodes, departCall::SELECTOR, [seat.id.0 as u64, kicked as u64, 0]);
    }

    /// Takes a node that has no task and stands nowhere out of the network; its stake starts to unbond.
    #[inline(never)]
    pub(crate) fn leave(&mut self, mut seat: Seat, kicked: bool) {
        let operator = self.roster.leave(self.host, &mut seat, self.rules.base).account;
        let release = self.now + self.rules.unbonding as u64;
        let stake = seat.node.stake;
        purse::unbond(self.host, operator, stake, release, seat.node.open() > 0, kicked);
        seat.node.status = Status::Quit as u8;
        seat.node.stake = 0;
        seat.put(self.host);
        if kicked {
            emit::<NodeKickedOut>(self.host, (seat.id, operator), ());
        }
        let stake = self.wei(stake);
        emit::<NodeQuit>(self.host, (seat.id, operator), (stake, release));
    }

    // ------------------------------------------------------------ availability

    /// Takes an idle node out of the sampler; gives how many are left in its list.
    #[inline(never)]
    pub(crate) fn leave_sampler(&mut self, seat: &Seat) -> u32 {
        let (moved, left) =
            sampler::remove(self.host, Among::Idle, seat.node.group, seat.node.class(self.rules.base), seat.node.pos);
        if let Some(moved) = moved {
            let mut other = Seat::load(self.host, moved);
            other.node.pos = seat.node.pos;
            other.put(self.host);
        }
        left
    }

    /// Takes an available node out of the sampler, or out of the parking pool.
    pub(crate) fn withdraw_from_work(&mut self, seat: &mut Seat) {
        if seat.node.parked == 0 {
            self.leave_sampler(seat);
        } else {
            self.parking.take(self.host, seat.node.pos);
            seat.node.parked = 0;
        }
    }

    /// What becomes of a node that has no task and stands nowhere: what was asked of it while it was
    /// busy, else a queued task, else the sampler, or exclusion. Writes its record.
    #[inline(never)]
    pub(crate) fn release(&mut self, mut seat: Seat, next: Next) {
        if seat.node.called() {
            // Who begins in a validation group can be called to another: not while one is being drawn.
            if self.call_due() {
                return self.park(seat, self.now);
            }
            // Before all else: neither the queue nor a well-timed exit decides who validates.
            seat.put(self.host);
            return self.begin_duty(seat.id);
        }
        match Status::new(seat.node.status) {
            // A node that leaves can change the largest stake, and with it what all others weigh.
            Status::PendingKickout | Status::PendingQuit if self.draws_due() => return self.park(seat, self.now),
            Status::PendingKickout => return self.depart(seat, true),
            Status::PendingQuit => return self.depart(seat, false),
            Status::PendingPause => {
                seat.node.status = Status::Paused as u8;
                seat.put(self.host);
                emit::<NodePaused>(self.host, (seat.id,), ());
                return;
            }
            _ => {}
        }
        seat.node.status = Status::Available as u8;
        let h = self.reliability(&seat.node);
        if !qos::eligible(h, self.rules.exclusion_ppm) {
            let due = self.now + qos::exclusion_seconds(h, self.rules.exclusion_ppm, self.rules.tau);
            return self.park(seat, due);
        }
        match next {
            Next::Rest(until) if until > self.now => return self.park(seat, until),
            _ if self.draws_due() || self.queued > 0 && self.is_spent() => return self.park(seat, self.now),
            _ => {}
        }
        if !self.find_queued(&seat, next) {
            seat.node.pos = sampler::insert(self.host, Among::Idle, seat.node.group, seat.node.class(self.rules.base), seat.id);
            seat.put(self.host);
        }
    }

    /// Gives a node that stands nowhere to a queued task, if there is one for it; else nothing has changed.
    fn find_queued(&mut self, seat: &Seat, next: Next) -> bool {
        if matches!(next, Next::Rest(_)) || self.queued == 0 {
            return false;
        }
        seat.put(self.host);
        if queue::graded(self.host) {
            self.place_freed(seat.id, next)
        } else {
            self.take_queued(seat.id)
        }
    }

    /// Sets a node aside until `due`: one that H excludes, or (until now) one held back by due draws.
    #[inline(never)]
    fn park(&mut self, seat: Seat, due: u64) {
        self.set_apart(seat, due, Node::SET_BACK);
        emit::<NodeExcluded>(self.host, (seat.id,), (due,));
    }

    /// Whether a node rests since it reported an error.
    fn rests(&self, seat: &Seat) -> bool {
        if seat.node.parked != Node::SET_BACK {
            return false;
        }
        let due = parking::places(self.host).1(seat.node.pos).map_or(0, |(_, due)| due);
        due > self.now && due == rests_until(&seat.order(self.host))
    }

    /// Puts a node into the parking pool until `due`, for this reason.
    pub(crate) fn set_apart(&mut self, mut seat: Seat, due: u64, why: u8) {
        seat.node.pos = self.parking.put(self.host, seat.id, due);
        seat.node.parked = why;
        seat.put(self.host);
    }

    /// Lets nodes go that were reserved for a task, which began without them or (`in_vain`) did not begin. They return one by one with later calls, like all who are held back: what each finds
    /// to do then is not paid by who made the draw.
    #[inline(never)]
    pub(crate) fn let_go(&mut self, reserved: Vec<Seat>, in_vain: bool) {
        for mut seat in reserved {
            if in_vain {
                let duty = seat.duty(self.host);
                seat.set_duty(self.host, &Duty { vain: self.now as u32, ..duty });
            }
            // One that is called to a group must not leave before it begins there.
            if seat.node.status == Status::Busy as u8 && !seat.node.called() {
                seat.node.status = Status::Available as u8;
            }
            self.park(seat, self.now);
        }
    }

    /// Of these nodes those that are reserved for a task still.
    pub(crate) fn reserved_for(&self, id: TaskId, reserved: &Reserved) -> Vec<Seat> {
        let seats = reserved.all().into_iter().filter(|node| node.0 > 0).map(|node| Seat::load(self.host, node));
        seats.filter(|seat| seat.node.parked == Node::RESERVED && seat.duty(self.host).task == id).collect()
    }

    /// Re-admits up to `most` excluded nodes whose time has come.
    pub fn readmit(&mut self, most: u32) {
        for _ in 0..most {
            if !self.parking.ready(self.now) || self.draws_due() {
                return;
            }
            let seat = Seat::load(self.host, self.parking.first(self.host));
            self.return_to_work(seat);
        }
    }

    fn return_to_work(&mut self, mut seat: Seat) {
        self.parking.take(self.host, seat.node.pos);
        // Who waited in vain takes what there is.
        let next = if seat.node.parked == Node::WAITS { Next::Work } else { Next::WorkOrWait };
        seat.node.parked = 0;
        self.readmitted = seat.id;
        emit::<NodeReadmitted>(self.host, (seat.id,), ());
        self.release(seat, next);
    }

    /// See `IMuster.poke`.
    pub fn poke(&mut self, id: NodeId) -> Result<()> {
        self.roster.check(id)?;
        if self.readmitted == id {
            // What every call serves first was just this; to refuse now would undo it.
            return Ok(());
        }
        self.settled()?;
        if self.is_spent() {
            // What was due has cost enough; to refuse would undo it, too.
            return Ok(());
        }
        let seat = Seat::load(self.host, id);
        let status = seat.node.status;
        ensure!(Status::new(status) == Status::Available, WrongStatus(id, status));
        let eligible = qos::eligible(self.reliability(&seat.node), self.rules.exclusion_ppm);
        if seat.node.parked != 0 {
            let duty = seat.duty(self.host);
            // Nobody is made to go on waiting for what is there no more.
            let waits =
                seat.node.parked == Node::WAITS && self.now < duty.until as u64 && pool::load(self.host, duty.queue).live > 0;
            ensure!(eligible && !waits && !self.rests(&seat), NothingToPoke(id));
            self.return_to_work(seat);
        } else if !eligible {
            // The threshold was raised under it.
            self.leave_sampler(&seat);
            self.release(seat, Next::Rest(self.now));
        } else {
            self.leave_sampler(&seat);
            ensure!(self.find_queued(&seat, Next::Work), NothingToPoke(id));
        }
        Ok(())
    }

    // ------------------------------------------------------------ scores

    /// Records a task score of a node, and kicks it out if its full pool's mean is below the threshold
    /// (when its task ends, if it has one). Reached by no deployed selector: judgements use [`Network::score`], and
    /// like this only when no draw is due, for scores weigh in draws.
    pub fn record_score(&mut self, id: NodeId, score: u8) {
        let mut seat = Seat::load(self.host, id);
        if !self.score(&mut seat, score) || !self.kick_out(&mut seat) {
            seat.put(self.host);
        }
    }

    /// Kicks a joined node out, when its task ends if it has one: its record is left to the caller then. Gives whether it is out.
    pub(crate) fn kick_out(&mut self, seat: &mut Seat) -> bool {
        match Status::new(seat.node.status) {
            Status::Quit => return false,
            Status::Available => self.withdraw_from_work(seat),
            Status::Paused => {}
            _ => {
                seat.node.status = Status::PendingKickout as u8;
                return false;
            }
        }
        self.depart(*seat, true);
        true
    }

    /// Enters a task score of a node, whose record is left to the caller; gives whether it is to be kicked out.
    pub(crate) fn score(&mut self, seat: &mut Seat, score: u8) -> bool {
        let score = score.min(qos::Q_MAX as u8);
        let old = seat.push_score(self.host, score);
        seat.node.score_count = (seat.node.score_count + 1).min(qos::POOL);
        seat.node.score_sum = seat.node.score_sum + score as u16 - old as u16;
        self.rules.best = self.rules.best.max(qos::long_term_200ths(seat.node.score_sum, seat.node.score_count));
        emit::<ScoreRecorded>(self.host, (seat.id,), (score,));
        let least = self.host.get::<Limits>(slot(LIMITS)).kickout_milli;
        qos::kicked_out(seat.node.score_sum, seat.node.score_count, least)
    }

    // ------------------------------------------------------------ models

    /// See `IMuster.reportDownloaded`.
    pub fn report_downloaded(&mut self, models: Vec<ModelId>) -> Result<()> {
        check_models(&models, CALL_MODELS)?;
        let (mut seat, mut held) = self.own_models()?;
        for model in models {
            ensure!(!held.holds(model), ModelHeld(model));
            held.add(self.host, seat.id, model)?;
            emit::<ModelAdded>(self.host, (seat.id, model), ());
        }
        seat.node.models = held.store(self.host);
        seat.put(self.host);
        Ok(())
    }

    /// See `IMuster.reportRemoved`.
    pub fn report_removed(&mut self, models: Vec<ModelId>) -> Result<()> {
        check_models(&models, NODE_MODELS as usize)?;
        let (seat, mut held) = self.own_models()?;
        for model in models {
            ensure!(held.holds(model), ModelNotHeld(model));
            let i = held.find(model).unwrap_or(0);
            held.entries[i].1 = true;
            emit::<ModelRemoved>(self.host, (seat.id, model), ());
        }
        held.store(self.host);
        if seat.node.idle() {
            let mut there = self.neighbours(&seat);
            if !held.holds(there.model()) {
                there.forget(seat.node.pos & 7);
                there.store(self.host);
            }
        }
        Ok(())
    }

    fn own_models(&mut self) -> Result<(Seat, Held)> {
        let seat = self.own_settled_seat()?;
        let status = seat.node.status;
        ensure!(Status::new(status) != Status::Quit, WrongStatus(seat.id, status));
        let held = Held::load(self.host, seat.slot, seat.node.models);
        Ok((seat, held))
    }

    /// See `IMuster.purge`.
    pub fn purge(&mut self, model: ModelId, position: u32) -> Result<()> {
        self.settled()?;
        check_model(model)?;
        let mut holders = Holders::load(self.host, model);
        ensure!(position < holders.len(), HolderNotStale(model, position));
        let mut seat = Seat::load(self.host, holders.get(self.host, position));
        let mut held = Held::load(self.host, seat.slot, seat.node.models);
        let gone = seat.node.status == Status::Quit as u8;
        ensure!(gone || !held.holds(model), HolderNotStale(model, position));
        holders.swap_remove(self.host, position);
        if let Some(i) = held.find(model) {
            held.entries.swap_remove(i);
        }
        seat.node.models = held.store(self.host);
        seat.put(self.host);
        emit::<HolderPurged>(self.host, (seat.id, model), ());
        Ok(())
    }

    /// Models a node holds now.
    pub fn held_models(&self, seat: &Seat) -> Vec<ModelId> {
        let held = Held::load(self.host, seat.slot, seat.node.models);
        held.entries.iter().filter(|e| !e.1).map(|e| e.0).collect()
    }
}

/// See `IMuster.nameModel`.
pub fn name_model<H: Host>(host: &mut H, name: &[u8]) -> Result<ModelId> {
    ensure!(registry::is_name(name, MODEL_NAME_MAX), BadModelName(name.len(), MODEL_NAME_MAX));
    let [a, b, c, d, e, ..] = host.keccak(name);
    let model = ModelId(u64::from_be_bytes([0, 0, 0, a, b, c, d, e]));
    check_model(model)?;
    let at = entry(host, MODEL_NAMED, model.0);
    ensure!(host.load(at).is_zero(), ModelHasName(model));
    host.store(at, Word::from(1));
    emit::<ModelNamed>(host, (model,), (name,));
    Ok(model)
}

/// Checks a list of models: not too many, ids in range, no duplicates.
pub fn check_models(models: &[ModelId], most: usize) -> Result<()> {
    ensure!(models.len() <= most, TooManyModels(models.len(), most));
    check_ids(models)
}

/// Checks a list of models that are not too many: ids in range, no duplicates.
pub fn check_ids(models: &[ModelId]) -> Result<()> {
    for (i, &model) in models.iter().enumerate() {
        check_model(model)?;
        ensure!(!models[..i].contains(&model), DuplicateModel(model));
    }
    Ok(())
}

/// Refuses a number that no model can have.
pub fn check_model(model: ModelId) -> Result<()> {
    ensure!(model.0 > 0 && model.0 < MODEL_END, BadModel(model));
    Ok(())
}
