//! The life of a node: join, stake, pause, resume, quit, and return.

use crate::abi::{emit, IMuster::*};
use crate::flow::models::check_models;
use crate::flow::network::Network;
use crate::flow::release::{find_queued, release, return_to_work};
use crate::flow::reliability::reliability;
use crate::flow::serve::{own_settled_seat, owned_settled_seat, settled};
use crate::flow::standing::{leave_network, leave_sampler, neighbours, restake, rests, withdraw_from_work, Next};
use crate::host::Host;
use crate::store::layout::{slot, LIMITS};
use crate::store::node::{Seat, Unplaced};
use crate::store::registry::Held;
use crate::store::sampler::VRAM_MAX;
use crate::store::{accounts, pool, registry};
use crate::Result;
use alloc::vec::Vec;
use muster_core::id::{ModelId, NodeId};
use muster_core::record::{Limits, Node, Operator, Status, CALL_MODELS, MODELS_PER_WORD};
use muster_core::wad::WAD;
use muster_core::{qos, weight};

/// Value sent as stake, in granules, after `fee` (in granules) is taken from it.
fn stake_sent<H: Host>(net: &Network<'_, H>, fee: u64) -> Result<u64> {
    let (sent, granule) = (net.host.value(), accounts::granule(net.host));
    let wei = |granules: u64| granules as u128 * granule as u128;
    let most = wei(weight::stake_limit(net.rules.base) + fee);
    let amount = sent.to_u128().filter(|&amount| amount <= most).ok_or_else(|| refusal!(StakeTooHigh(sent, most)))?;
    let granules = (amount / granule as u128) as u64;
    ensure!(wei(granules) == amount, StakeNotWhole(sent, granule));
    Ok(granules.saturating_sub(fee))
}

impl<H: Host> Network<'_, H> {
    /// See `IMuster.join`.
    pub fn join(&mut self, gpu_name: &[u8], vram: u16, models: Vec<ModelId>) -> Result<NodeId> {
        let terms = self.terms();
        ensure!(!terms.paused, PausedByOwner);
        settled(self)?;
        let caller = self.host.sender();
        let account = accounts::account(self.host, caller);
        ensure!(!account.kicked, KickedOut(caller));
        ensure!(!account.works, HasNode(caller, account.node));
        registry::check_gpu_name(gpu_name)?;
        ensure!((1..=VRAM_MAX).contains(&vram), BadVram(vram, VRAM_MAX));
        let known = registry::gpu_group(self.host, gpu_name, vram);
        let fee = if known.is_none() { self.host.get::<Limits>(slot(LIMITS)).group_fee } else { 0 };
        let stake = stake_sent(self, fee)?;
        ensure!(stake >= terms.min_stake, StakeTooLow(self.host.value(), self.wei(terms.min_stake + fee)));
        accounts::check_returnable(self.host, &account, stake)?;
        check_models(&models, CALL_MODELS)?;
        self.roster.check_room()?;
        let id = match account.node {
            NodeId(0) => {
                let id = self.roster.issue(self.host)?;
                accounts::name_node(self.host, caller, account, id);
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
                accounts::earn(self.host, fee);
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
        release(self, Unplaced::of(seat), Next::WorkOrWait);
        let seat = Seat::load(self.host, id);
        if seat.node.idle() {
            let mut there = neighbours(self, &seat);
            let known = Some(there.model()).filter(|&model| model.0 > 0).or(models.first().copied());
            if let Some(model) = known.filter(|&model| held.holds(model)) {
                there.note(seat.node.pos & 7, model);
                there.store(self.host);
            }
        }
        Ok(id)
    }

    /// See `IMuster.raiseStake`.
    pub fn raise_stake(&mut self) -> Result<()> {
        let mut seat = owned_settled_seat(self)?;
        let status = seat.node.status;
        ensure!(matches!(status, 1 | 2 | 3 | 5), WrongStatus(seat.id, status));
        let added = stake_sent(self, 0)?;
        ensure!(added > 0, StakeTooLow(self.host.value(), accounts::granule(self.host)));
        let most = weight::stake_limit(self.rules.base);
        let stake = seat.node.stake + added;
        ensure!(stake <= most, StakeTooHigh(self.wei(stake), self.wei(most)));
        accounts::check_returnable(self.host, &accounts::account(self.host, self.host.sender()), stake)?;
        restake(self, &mut seat, stake);
        seat.put(self.host);
        let (added, stake) = (self.wei(added), self.wei(stake));
        emit::<StakeRaised>(self.host, (seat.id,), (added, stake));
        Ok(())
    }

    /// See `IMuster.pause`.
    pub fn pause(&mut self) -> Result<()> {
        let mut seat = own_settled_seat(self)?;
        match Status::new(seat.node.status) {
            // To pause and resume does not shorten its rest.
            Status::Available if rests(self, &seat) => {
                seat.node.status = Status::PendingPause as u8;
                emit::<NodePausing>(self.host, (seat.id,), ());
            }
            Status::Available => {
                withdraw_from_work(self, &mut seat);
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
        let mut seat = own_settled_seat(self)?;
        ensure!(Status::new(seat.node.status) == Status::Paused, WrongStatus(seat.id, seat.node.status));
        (seat.node.status, seat.node.pos) = (Status::Available as u8, 0);
        self.roster.take_back(self.host, &mut seat, self.rules.base);
        emit::<NodeResumed>(self.host, (seat.id,), ());
        release(self, Unplaced::of(seat), Next::WorkOrWait);
        Ok(())
    }

    /// See `IMuster.quit`.
    pub fn quit(&mut self) -> Result<()> {
        let mut seat = owned_settled_seat(self)?;
        match Status::new(seat.node.status) {
            Status::Available => {
                withdraw_from_work(self, &mut seat);
                leave_network(self, Unplaced::of(seat), false);
            }
            Status::Paused => leave_network(self, Unplaced::of(seat), false),
            Status::Busy => {
                seat.node.status = Status::PendingQuit as u8;
                seat.put(self.host);
                emit::<NodeQuitting>(self.host, (seat.id,), ());
            }
            _ => return Err(refusal!(WrongStatus(seat.id, seat.node.status))),
        }
        Ok(())
    }

    /// See `IMuster.poke`.
    pub fn poke(&mut self, id: NodeId) -> Result<()> {
        self.roster.check(id)?;
        if self.readmitted == id {
            // What every call serves first was just this; to refuse now would undo it.
            return Ok(());
        }
        settled(self)?;
        if self.is_spent() {
            // What was due has cost enough; to refuse would undo it, too.
            return Ok(());
        }
        let seat = Seat::load(self.host, id);
        let status = seat.node.status;
        ensure!(Status::new(status) == Status::Available, WrongStatus(id, status));
        let eligible = qos::eligible(reliability(self, &seat.node), self.rules.exclusion_ppm);
        if seat.node.parked != 0 {
            let duty = seat.duty(self.host);
            // Nobody is made to go on waiting for what is there no more.
            let waits =
                seat.node.parked == Node::WAITS && self.now < duty.until as u64 && pool::load(self.host, duty.queue).live > 0;
            ensure!(eligible && !waits && !rests(self, &seat), NothingToPoke(id));
            return_to_work(self, seat);
        } else if !eligible {
            // The threshold was raised under it.
            leave_sampler(self, &seat);
            let now = self.now;
            release(self, Unplaced::of(seat), Next::Rest(now));
        } else {
            leave_sampler(self, &seat);
            ensure!(find_queued(self, &Unplaced::of(seat), Next::Work), NothingToPoke(id));
        }
        Ok(())
    }
}
