//! The life of a node: join, stake, pause, resume, quit, kickout, exclusion, models.

use crate::abi::{emit, IMuster::*};
use crate::bracket::{height, Bracket, NONE};
use crate::draw::{parking_key, Candidates, Seat};
use crate::host::{offset, Host};
use crate::layout::{account_slot, node, slot, JOINED, LIMITS, OWNERSHIP, TERMS};
use crate::network::Network;
use crate::pool::{self, PARKING};
use crate::registry::{self, Held, Holders, GPU_NAME_MAX};
use crate::sampler::{self, Counts, VRAM_MAX};
use crate::{queue, Result};
use alloc::vec::Vec;
use muster_core::qos;
use muster_core::record::*;
use muster_core::wad::WAD;
use muster_core::weight;
use muster_core::word::Address;

/// Largest model id + 1.
pub const MODEL_END: u64 = 1 << 40;
/// Most granules an account can have waiting for their release.
const UNBONDING_MAX: u64 = (1 << 48) - 1;
/// Nodes ever and at once: what a place in a list can hold.
pub const NODES_MAX: u32 = (1 << 24) - 2;

impl<H: Host> Network<'_, H> {
    /// Wei in a granule of stake.
    pub fn granule(&self) -> u64 {
        self.host.get::<Ownership>(slot(OWNERSHIP)).granule
    }

    /// A stake in wei.
    pub fn wei(&self, granules: u64) -> u128 {
        granules as u128 * self.granule() as u128
    }

    /// Reads the parameters of creating, joining and leaving.
    pub fn terms(&self) -> Terms {
        self.host.get(slot(TERMS))
    }

    /// The account of an address.
    pub fn account(&self, who: Address) -> Account {
        self.host.get(account_slot(self.host, who))
    }

    /// Writes an account.
    pub fn put_account(&mut self, who: Address, account: &Account) {
        let at = account_slot(self.host, who);
        self.host.put(at, account);
    }

    /// Adds to what an address can withdraw. Cannot overflow: see [`crate::tasks::FEE_END`].
    pub fn credit(&mut self, who: Address, wei: u128) {
        if wei > 0 {
            let mut account = self.account(who);
            account.credit += wei;
            self.put_account(who, &account);
        }
    }

    /// The caller's node.
    pub fn own_seat(&self) -> Result<Seat> {
        let caller = self.host.sender();
        let number = self.account(caller).node;
        ensure!(number > 0, NotAnOperator(caller));
        Ok(Seat::load(self.host, number))
    }

    /// The caller's node, for a call that can change who a draw's candidates are.
    fn own_settled_seat(&mut self) -> Result<Seat> {
        self.settled()?;
        self.own_seat()
    }

    /// Who runs a node.
    pub fn operator(&self, seat: &Seat) -> Operator {
        self.host.get(offset(seat.slot, node::OPERATOR))
    }

    fn put_node(&mut self, seat: &Seat) {
        self.host.put(seat.slot, &seat.node);
    }

    /// Value sent as stake, in granules, after `fee` (in granules) is taken from it.
    fn stake_sent(&self, fee: u64) -> Result<u64> {
        let (sent, granule) = (self.host.value(), self.granule());
        let most = self.wei(weight::stake_limit(self.rules.base) + fee);
        let wei = sent.to_u128().filter(|&wei| wei <= most).ok_or_else(|| refusal!(StakeTooHigh(sent, most)))?;
        let granules = (wei / granule as u128) as u64;
        ensure!(self.wei(granules) == wei, StakeNotWhole(sent, granule));
        Ok(granules.saturating_sub(fee))
    }

    /// Refuses a stake that, returned, would not fit beside what still waits to be withdrawn.
    fn check_returnable(&self, account: &Account, stake: u64) -> Result<()> {
        let most = UNBONDING_MAX - account.unbonding;
        ensure!(stake <= most, StakeTooHigh(self.wei(stake), self.wei(most)));
        Ok(())
    }

    // ------------------------------------------------------------ join and leave

    /// See `IMuster.join`.
    pub fn join(&mut self, gpu_name: &[u8], vram: u16, models: Vec<u64>) -> Result<u32> {
        let terms = self.terms();
        ensure!(!terms.paused, PausedByOwner);
        self.settled()?;
        let caller = self.host.sender();
        let mut account = self.account(caller);
        ensure!(!account.kicked, KickedOut(caller));
        let bytes = gpu_name.len();
        let printable = gpu_name.iter().all(|c| (b' '..=b'~').contains(c));
        ensure!((1..=GPU_NAME_MAX).contains(&bytes) && printable, BadGpuName(bytes, GPU_NAME_MAX));
        ensure!((1..=VRAM_MAX).contains(&vram), BadVram(vram, VRAM_MAX));
        let known = registry::gpu_group(self.host, gpu_name, vram);
        let fee = if known.is_none() { self.host.get::<Limits>(slot(LIMITS)).group_fee } else { 0 };
        let stake = self.stake_sent(fee)?;
        ensure!(stake >= terms.min_stake, StakeTooLow(self.host.value(), self.wei(terms.min_stake + fee)));
        self.check_returnable(&account, stake)?;
        check_models(&models, CALL_MODELS)?;
        ensure!(self.head.joined < NODES_MAX, NetworkFull(self.head.joined));
        if account.node == 0 {
            account.node = self.issue_number()?;
            self.put_account(caller, &account);
        }
        let mut seat = Seat::load(self.host, account.node);
        ensure!(Status::new(seat.node.status) == Status::Quit, WrongStatus(seat.number, seat.node.status));

        let group = match known {
            Some(group) => group,
            None => {
                let group = registry::create_gpu_group(self.host, gpu_name, vram)?;
                let fee = self.wei(fee);
                self.earn(fee);
                emit::<GpuGroupCreated>(self.host, (group,), (gpu_name, vram, fee));
                group
            }
        };
        let mut held = Held::load(self.host, seat.slot, seat.node.models);
        for e in &mut held.entries {
            e.1 = !models.contains(&e.0);
        }
        for &model in &models {
            held.add(self.host, seat.number, model)?;
        }
        seat.node.models = held.store(self.host);
        self.host.put(offset(seat.slot, node::OPERATOR), &Operator { account: caller, joined_at: self.now });
        seat.node = Node {
            status: Status::Available as u8,
            stake,
            h: WAD,
            h_at: self.now as u32,
            pos: 0,
            vram,
            gpu: (group >> 16) as u16,
            class: weight::class_of(stake, self.rules.base),
            parked: false,
            ..seat.node
        };
        // What an earlier membership last ran is no longer loaded.
        if seat.node.h_at > 0 {
            let at = offset(seat.slot, node::ORDER);
            let order: Order = self.host.get(at);
            if order.models > 0 {
                self.host.put(at, &Order { models: 0, model: 0, ..order });
            }
        }
        self.head.joined += 1;
        registry::count_joined(self.host, group, true, &mut self.head.max_vram);
        self.count_class(None, Some(seat.node.class));
        self.set_stake_key(seat.number, stake + 1);
        let staked = self.wei(stake);
        emit::<NodeJoined>(self.host, (seat.number, caller, group), (staked, &models[..]));
        let number = seat.number;
        self.release(seat, true);
        Ok(number)
    }

    fn issue_number(&mut self) -> Result<u32> {
        let issued = self.head.issued;
        ensure!(issued < NODES_MAX, NetworkFull(self.head.joined));
        if levels(issued + 1) > levels(issued) {
            let top = if self.head.joined == 0 { NONE } else { self.head.max_stake + 1 };
            Bracket::STAKES.grow(self.host, levels(issued), top);
        }
        self.head.issued = issued + 1;
        Ok(issued + 1)
    }

    /// Enters a node's stake (+ 1; [`NONE`] when it leaves) and keeps the largest right.
    fn set_stake_key(&mut self, number: u32, key: u64) {
        if let Some(top) = Bracket::STAKES.set(self.host, 0, levels(self.head.issued), number - 1, key) {
            self.head.max_stake = top.max(NONE) - 1;
        }
    }

    /// Moves a joined node between stake classes and keeps the lowest class right.
    fn count_class(&mut self, from: Option<u8>, to: Option<u8>) {
        let mut counts = Counts(self.host.load(slot(JOINED)));
        if let Some(c) = from {
            counts.set(c, counts.get(c).saturating_sub(1));
        }
        if let Some(c) = to {
            counts.set(c, counts.get(c) + 1);
        }
        self.host.store(slot(JOINED), counts.0);
        self.head.lowest = counts.lowest().unwrap_or(0);
    }

    /// See `IMuster.raiseStake`.
    pub fn raise_stake(&mut self) -> Result<()> {
        let mut seat = self.own_settled_seat()?;
        let status = seat.node.status;
        ensure!(matches!(status, 1 | 2 | 3 | 5), WrongStatus(seat.number, status));
        let added = self.stake_sent(0)?;
        ensure!(added > 0, StakeTooLow(self.host.value(), self.granule()));
        let most = weight::stake_limit(self.rules.base);
        let stake = seat.node.stake + added;
        ensure!(stake <= most, StakeTooHigh(self.wei(stake), self.wei(most)));
        self.check_returnable(&self.account(self.host.sender()), stake)?;
        let class = weight::class_of(stake, self.rules.base);
        if class != seat.node.class {
            self.count_class(Some(seat.node.class), Some(class));
            if seat.idle() {
                seat = self.leave_sampler(seat);
                seat.node.pos = sampler::insert(self.host, seat.group(), class, seat.number);
            }
        }
        seat.node.class = class;
        seat.node.stake = stake;
        self.set_stake_key(seat.number, stake + 1);
        self.put_node(&seat);
        let (added, stake) = (self.wei(added), self.wei(stake));
        emit::<StakeRaised>(self.host, (seat.number,), (added, stake));
        Ok(())
    }

    /// See `IMuster.pause`.
    pub fn pause(&mut self) -> Result<()> {
        let mut seat = self.own_settled_seat()?;
        match Status::new(seat.node.status) {
            Status::Available => {
                seat = self.withdraw_from_work(seat);
                seat.node.status = Status::Paused as u8;
                emit::<NodePaused>(self.host, (seat.number,), ());
            }
            Status::Busy => {
                seat.node.status = Status::PendingPause as u8;
                emit::<NodePausing>(self.host, (seat.number,), ());
            }
            _ => return Err(refusal!(WrongStatus(seat.number, seat.node.status))),
        }
        self.put_node(&seat);
        Ok(())
    }

    /// See `IMuster.resume`.
    pub fn resume(&mut self) -> Result<()> {
        let mut seat = self.own_settled_seat()?;
        ensure!(Status::new(seat.node.status) == Status::Paused, WrongStatus(seat.number, seat.node.status));
        seat.node.status = Status::Available as u8;
        emit::<NodeResumed>(self.host, (seat.number,), ());
        self.release(seat, true);
        Ok(())
    }

    /// See `IMuster.quit`.
    pub fn quit(&mut self) -> Result<()> {
        let mut seat = self.own_settled_seat()?;
        match Status::new(seat.node.status) {
            Status::Available => {
                seat = self.withdraw_from_work(seat);
                self.leave(seat, false);
            }
            Status::Paused => self.leave(seat, false),
            Status::Busy => {
                seat.node.status = Status::PendingQuit as u8;
                self.put_node(&seat);
                emit::<NodeQuitting>(self.host, (seat.number,), ());
            }
            _ => return Err(refusal!(WrongStatus(seat.number, seat.node.status))),
        }
        Ok(())
    }

    /// Takes a node that has no task and stands nowhere out of the network; its stake starts to unbond.
    #[inline(never)]
    fn leave(&mut self, mut seat: Seat, kicked: bool) {
        let operator = self.operator(&seat).account;
        let mut account = self.account(operator);
        let release = self.now + self.host.get::<Limits>(slot(LIMITS)).unbonding as u64;
        let stake = seat.node.stake;
        if account.unbonding > 0 && self.now >= account.release {
            // What could be withdrawn already does not wait again.
            let matured = self.wei(core::mem::take(&mut account.unbonding));
            account.credit += matured;
            emit::<StakeReleased>(self.host, (operator,), (matured,));
        }
        // Cannot exceed its field: `check_returnable`.
        account.unbonding += stake;
        account.release = release;
        account.kicked |= kicked;
        self.put_account(operator, &account);
        self.head.joined -= 1;
        registry::count_joined(self.host, seat.group(), false, &mut self.head.max_vram);
        self.count_class(Some(seat.node.class), None);
        self.set_stake_key(seat.number, NONE);
        seat.node.status = Status::Quit as u8;
        seat.node.stake = 0;
        self.put_node(&seat);
        if kicked {
            emit::<NodeKickedOut>(self.host, (seat.number, operator), ());
        }
        let stake = self.wei(stake);
        emit::<NodeQuit>(self.host, (seat.number, operator), (stake, release));
    }

    /// See `IMuster.withdraw`: what is owed, already taken off the books. The program sends it last.
    pub fn take_owed(&mut self, to: Address) -> Result<u128> {
        ensure!(to != [0; 20], ZeroAddress);
        let caller = self.host.sender();
        let mut account = self.account(caller);
        let credit = account.credit;
        let stake =
            if account.unbonding > 0 && self.now >= account.release { core::mem::take(&mut account.unbonding) } else { 0 };
        let stake = self.wei(stake);
        ensure!(credit + stake > 0, NothingToWithdraw(caller));
        account.credit = 0;
        self.put_account(caller, &account);
        emit::<Withdrawn>(self.host, (caller, to), (credit, stake));
        Ok(credit + stake)
    }

    // ------------------------------------------------------------ availability

    /// Takes an idle node out of the sampler.
    pub fn leave_sampler(&mut self, seat: Seat) -> Seat {
        let (moved, left) = sampler::remove(self.host, seat.group(), seat.node.class, seat.node.pos);
        self.left = left;
        if let Some(moved) = moved {
            let mut other = Seat::load(self.host, moved);
            other.node.pos = seat.node.pos;
            self.put_node(&other);
        }
        seat
    }

    /// Takes an available node out of the sampler, or out of the parking pool.
    fn withdraw_from_work(&mut self, mut seat: Seat) -> Seat {
        if seat.node.parked {
            self.unpark(seat.node.pos);
            seat.node.parked = false;
            seat
        } else {
            self.leave_sampler(seat)
        }
    }

    /// What becomes of a node that has no task and stands nowhere: what was asked of it while it was
    /// busy, else a queued task, else the sampler, or exclusion. Writes its record.
    #[inline(never)]
    pub(crate) fn release(&mut self, mut seat: Seat, may_take: bool) {
        match Status::new(seat.node.status) {
            // A node that leaves can change the largest stake, and with it what all others weigh.
            Status::PendingKickout | Status::PendingQuit if self.draws_due() => return self.park(seat, self.now),
            Status::PendingKickout => return self.leave(seat, true),
            Status::PendingQuit => return self.leave(seat, false),
            Status::PendingPause => {
                seat.node.status = Status::Paused as u8;
                self.put_node(&seat);
                emit::<NodePaused>(self.host, (seat.number,), ());
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
        if self.draws_due() {
            return self.park(seat, self.now);
        }
        if may_take && self.head.queued > 0 {
            if let Some((group, place)) = queue::best_for(self.host, seat.group()) {
                let task = queue::remove(self.host, group, place);
                self.head.queued -= 1;
                return self.start(&task, seat, Candidates::AtLeast(0), None);
            }
        }
        seat.node.pos = sampler::insert(self.host, seat.group(), seat.node.class, seat.number);
        self.put_node(&seat);
    }

    /// Sets a node aside until `due`: one that H excludes, or (until now) one held back by due draws.
    #[inline(never)]
    fn park(&mut self, mut seat: Seat, due: u64) {
        let mut p = pool::load(self.host, PARKING);
        seat.node.pos = pool::insert(self.host, PARKING, &mut p, parking_key(due, seat.number));
        pool::store(self.host, PARKING, &p);
        seat.node.parked = true;
        self.head.parked_due = earliest(&p);
        self.put_node(&seat);
        emit::<NodeExcluded>(self.host, (seat.number,), (due,));
    }

    fn unpark(&mut self, place: u32) {
        let mut p = pool::load(self.host, PARKING);
        pool::remove(self.host, PARKING, &mut p, place);
        pool::store(self.host, PARKING, &p);
        self.head.parked_due = earliest(&p);
    }

    /// Re-admits up to `most` excluded nodes whose time has come.
    pub fn readmit(&mut self, most: u32) {
        for _ in 0..most {
            if self.head.parked_due == 0 || self.head.parked_due as u64 > self.now || self.draws_due() {
                return;
            }
            let number = pool::load(self.host, PARKING).best as u32;
            let seat = Seat::load(self.host, number);
            self.return_to_work(seat);
        }
    }

    fn return_to_work(&mut self, mut seat: Seat) {
        self.unpark(seat.node.pos);
        seat.node.parked = false;
        self.readmitted = seat.number;
        emit::<NodeReadmitted>(self.host, (seat.number,), ());
        self.release(seat, true);
    }

    /// See `IMuster.poke`.
    pub fn poke(&mut self, number: u32) -> Result<()> {
        ensure!(number > 0 && number <= self.head.issued, NodeUnknown(number));
        if self.readmitted == number {
            // What every call serves first was just this; to refuse now would undo it.
            return Ok(());
        }
        self.settled()?;
        let seat = Seat::load(self.host, number);
        let status = seat.node.status;
        ensure!(Status::new(status) == Status::Available, WrongStatus(number, status));
        let eligible = qos::eligible(self.reliability(&seat.node), self.rules.exclusion_ppm);
        if seat.node.parked {
            ensure!(eligible, NothingToPoke(number));
            self.return_to_work(seat);
        } else if !eligible {
            // The threshold was raised under it.
            let seat = self.leave_sampler(seat);
            self.release(seat, false);
        } else {
            let waits = self.head.queued > 0 && queue::best_for(self.host, seat.group()).is_some();
            ensure!(waits, NothingToPoke(number));
            let seat = self.leave_sampler(seat);
            self.release(seat, true);
        }
        Ok(())
    }

    // ------------------------------------------------------------ scores

    /// Records a task score of a node, and kicks it out if its full pool's mean is below the threshold
    /// (when its task ends, if it has one). Reached by no deployed selector: validation groups will call it,
    /// when no draw is due ([`Network::settled`]), for scores weigh in draws.
    pub fn record_score(&mut self, number: u32, score: u8) {
        let mut seat = Seat::load(self.host, number);
        let at = offset(seat.slot, node::SCORES);
        let mut scores: Scores = self.host.get(at);
        let old = scores.push(score.min(qos::Q_MAX as u8));
        self.host.put(at, &scores);
        seat.node.score_count = (seat.node.score_count + 1).min(qos::POOL);
        seat.node.score_sum = seat.node.score_sum + score.min(qos::Q_MAX as u8) as u16 - old as u16;
        self.head.best = self.head.best.max(qos::long_term_200ths(seat.node.score_sum, seat.node.score_count));
        emit::<ScoreRecorded>(self.host, (number,), (score,));
        let least = self.host.get::<Limits>(slot(LIMITS)).kickout_milli;
        let out = qos::kicked_out(seat.node.score_sum, seat.node.score_count, least);
        match Status::new(seat.node.status) {
            s if out && s.running() => seat.node.status = Status::PendingKickout as u8,
            Status::Available if out => {
                let seat = self.withdraw_from_work(seat);
                return self.leave(seat, true);
            }
            Status::Paused if out => return self.leave(seat, true),
            _ => {}
        }
        self.put_node(&seat);
    }

    // ------------------------------------------------------------ models

    /// See `IMuster.reportDownloaded`.
    pub fn report_downloaded(&mut self, models: Vec<u64>) -> Result<()> {
        check_models(&models, CALL_MODELS)?;
        let (mut seat, mut held) = self.own_models()?;
        for model in models {
            ensure!(!held.holds(model), ModelHeld(model));
            held.add(self.host, seat.number, model)?;
            emit::<ModelAdded>(self.host, (seat.number, model), ());
        }
        seat.node.models = held.store(self.host);
        self.put_node(&seat);
        Ok(())
    }

    /// See `IMuster.reportRemoved`.
    pub fn report_removed(&mut self, models: Vec<u64>) -> Result<()> {
        check_models(&models, NODE_MODELS as usize)?;
        let (seat, mut held) = self.own_models()?;
        for model in models {
            ensure!(held.holds(model), ModelNotHeld(model));
            let i = held.find(model).unwrap_or(0);
            held.entries[i].1 = true;
            emit::<ModelRemoved>(self.host, (seat.number, model), ());
        }
        held.store(self.host);
        Ok(())
    }

    fn own_models(&mut self) -> Result<(Seat, Held)> {
        let seat = self.own_settled_seat()?;
        let status = seat.node.status;
        ensure!(Status::new(status) != Status::Quit, WrongStatus(seat.number, status));
        let held = Held::load(self.host, seat.slot, seat.node.models);
        Ok((seat, held))
    }

    /// See `IMuster.purge`.
    pub fn purge(&mut self, model: u64, position: u32) -> Result<()> {
        self.settled()?;
        ensure!(model > 0 && model < MODEL_END, BadModel(model));
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
        self.put_node(&seat);
        emit::<HolderPurged>(self.host, (seat.number, model), ());
        Ok(())
    }

    /// Models a node holds now.
    pub fn held_models(&self, seat: &Seat) -> Vec<u64> {
        let held = Held::load(self.host, seat.slot, seat.node.models);
        held.entries.iter().filter(|e| !e.1).map(|e| e.0).collect()
    }
}

/// Levels of the bracket of stakes; one at least, so that the second node to join finds its word written.
fn levels(issued: u32) -> u32 {
    height(issued).max(1)
}

/// When the first excluded node can return; 0 if there is none.
fn earliest(p: &Pool) -> u32 {
    if p.live == 0 {
        0
    } else {
        !((p.best >> 32) as u32)
    }
}

/// Checks a list of models: not too many, ids in range, no duplicates.
pub fn check_models(models: &[u64], most: usize) -> Result<()> {
    ensure!(models.len() <= most, TooManyModels(models.len(), most));
    for (i, &model) in models.iter().enumerate() {
        ensure!(model > 0 && model < MODEL_END, BadModel(model));
        ensure!(!models[..i].contains(&model), DuplicateModel(model));
    }
    Ok(())
}
