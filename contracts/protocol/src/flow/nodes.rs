//! The life of a node: join, stake, pause, resume, quit, and return. The end of a quit is in [`crate::flow::standing`].

use crate::abi::{emit, IMuster::*};
use crate::flow::models::check_models;
use crate::flow::network::{Network, Served};
use crate::flow::release::{find_queued, release, return_to_work};
use crate::flow::reliability::reliability;
use crate::flow::serve::{own_settled_seat, owned_settled_seat, settled, GROUP_READS, JOINING_READS, MODEL_READS};
use crate::flow::standing::{leave_network, leave_sampler, neighbours, restake, rests, withdraw_from_work, Next};
use crate::host::Host;
use crate::store::layout::{slot, LIMITS};
use crate::store::node::{NodeHandle, Unplaced};
use crate::store::registry::Held;
use crate::store::sampler::VRAM_MAX;
use crate::store::{accounts, pool, registry};
use crate::Result;
use alloc::vec::Vec;
use muster_core::id::{ModelId, NodeId};
use muster_core::record::{Limits, Node, Operator, Status, CALL_MODELS, MODELS_PER_WORD};
use muster_core::wad::WAD;
use muster_core::{qos, weight};

/// Value sent as stake, in stake units, after `fee` (in stake units) is taken from it.
fn stake_sent<H: Host>(net: &Network<'_, H>, fee: u64) -> Result<u64> {
    let (sent, stake_unit) = (net.host.value(), accounts::stake_unit(net.host));
    let wei = |stake_units: u64| stake_units as u128 * stake_unit as u128;
    let most = wei(weight::stake_limit(net.rules.base) + fee);
    let amount = sent.to_u128().filter(|&amount| amount <= most).ok_or_else(|| refusal!(StakeTooHigh(sent, most)))?;
    let stake_units = (amount / stake_unit as u128) as u64;
    ensure!(wei(stake_units) == amount, StakeNotWhole(sent, stake_unit));
    Ok(stake_units.saturating_sub(fee))
}

impl<H: Host> Network<'_, H> {
    /// See `IMuster.join`.
    pub fn join(&mut self, gpu_name: &[u8], vram: u16, models: Vec<ModelId>) -> Result<NodeId> {
        let terms = self.terms();
        ensure!(!terms.paused, PausedByOwner);
        registry::check_gpu_name(gpu_name)?;
        ensure!((1..=VRAM_MAX).contains(&vram), BadVram(vram, VRAM_MAX));
        check_models(&models, CALL_MODELS)?;
        let known = registry::gpu_group(self.host, gpu_name, vram);
        self.host.charge(JOINING_READS + GROUP_READS * known.is_none() as u32 + MODEL_READS * models.len() as u32);
        settled(self)?;
        let caller = self.host.sender();
        let account = accounts::account(self.host, caller);
        ensure!(!account.kicked, KickedOut(caller));
        ensure!(!account.works, HasNode(caller, account.node));
        let fee = if known.is_none() { self.host.get::<Limits>(slot(LIMITS)).group_fee } else { 0 };
        let stake = stake_sent(self, fee)?;
        ensure!(stake >= terms.min_stake, StakeTooLow(self.host.value(), self.wei(terms.min_stake + fee)));
        accounts::check_returnable(self.host, &account, stake)?;
        self.node_store.check_room()?;
        let id = match account.node {
            NodeId(0) => {
                let id = self.node_store.issue(self.host)?;
                accounts::name_node(self.host, caller, account, id);
                id
            }
            id => id,
        };
        let mut handle = NodeHandle::load(self.host, id);
        ensure!(Status::new(handle.node.status) == Status::Quit, WrongStatus(id, handle.node.status));

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
        let mut held = Held::load(self.host, handle.slot, handle.node.models);
        for e in &mut held.entries {
            e.1 = !models.contains(&e.0);
        }
        for &model in &models {
            held.add(self.host, handle.id, model)?;
        }
        handle.node.models = held.store(self.host);
        // Otherwise the creator of its first task would pay for its words. Nodes that list more models than one word holds already pay
        // enough.
        if account.node.0 == 0 && models.len() <= MODELS_PER_WORD as usize {
            handle.open(self.host);
        }
        handle.node = Node {
            status: Status::Available as u8,
            stake,
            h: WAD,
            h_at: self.now as u32,
            pos: 0,
            group,
            parked: 0,
            ..handle.node
        };
        if account.node.0 > 0 {
            handle.unload(self.host);
        }
        let operator = Operator { account: caller, joined_at: self.now, place: 0 };
        self.node_store.enter(self.host, &handle, operator, self.rules.base);
        let staked = self.wei(stake);
        emit::<NodeJoined>(self.host, (id, caller, group), (staked, &models[..]));
        if self.served != Served::Draws(0) {
            // Each may have started a task, and the GPU group may be new: one more start would cost too much.
            self.served = Served::Spent;
        }
        release(self, Unplaced::of(handle), Next::WorkOrWait);
        let handle = NodeHandle::load(self.host, id);
        if handle.node.idle() {
            let mut there = neighbours(self, &handle);
            let known = Some(there.model()).filter(|&model| model.0 > 0).or(models.first().copied());
            if let Some(model) = known.filter(|&model| held.holds(model)) {
                there.note(handle.node.pos & 7, model);
                there.store(self.host);
            }
        }
        Ok(id)
    }

    /// See `IMuster.raiseStake`.
    pub fn raise_stake(&mut self) -> Result<()> {
        let mut handle = owned_settled_seat(self)?;
        let status = handle.node.status;
        ensure!(matches!(status, 1 | 2 | 3 | 5), WrongStatus(handle.id, status));
        let added = stake_sent(self, 0)?;
        ensure!(added > 0, StakeTooLow(self.host.value(), accounts::stake_unit(self.host)));
        let most = weight::stake_limit(self.rules.base);
        let stake = handle.node.stake + added;
        ensure!(stake <= most, StakeTooHigh(self.wei(stake), self.wei(most)));
        accounts::check_returnable(self.host, &accounts::account(self.host, self.host.sender()), stake)?;
        restake(self, &mut handle, stake);
        handle.put(self.host);
        let (added, stake) = (self.wei(added), self.wei(stake));
        emit::<StakeRaised>(self.host, (handle.id,), (added, stake));
        Ok(())
    }

    /// See `IMuster.pause`.
    pub fn pause(&mut self) -> Result<()> {
        let mut handle = own_settled_seat(self)?;
        match Status::new(handle.node.status) {
            // To pause and resume does not shorten its rest.
            Status::Available if rests(self, &handle) => {
                handle.node.status = Status::PendingPause as u8;
                emit::<NodePausing>(self.host, (handle.id,), ());
            }
            Status::Available => {
                withdraw_from_work(self, &mut handle);
                handle.node.status = Status::Paused as u8;
                emit::<NodePaused>(self.host, (handle.id,), ());
            }
            Status::Busy => {
                handle.node.status = Status::PendingPause as u8;
                emit::<NodePausing>(self.host, (handle.id,), ());
            }
            _ => return Err(refusal!(WrongStatus(handle.id, handle.node.status))),
        }
        handle.put(self.host);
        Ok(())
    }

    /// See `IMuster.resume`.
    pub fn resume(&mut self) -> Result<()> {
        let mut handle = own_settled_seat(self)?;
        ensure!(Status::new(handle.node.status) == Status::Paused, WrongStatus(handle.id, handle.node.status));
        (handle.node.status, handle.node.pos) = (Status::Available as u8, 0);
        self.node_store.take_back(self.host, &mut handle, self.rules.base);
        emit::<NodeResumed>(self.host, (handle.id,), ());
        release(self, Unplaced::of(handle), Next::WorkOrWait);
        Ok(())
    }

    /// See `IMuster.quit`.
    pub fn quit(&mut self) -> Result<()> {
        let mut handle = owned_settled_seat(self)?;
        match Status::new(handle.node.status) {
            Status::Available => {
                withdraw_from_work(self, &mut handle);
                leave_network(self, Unplaced::of(handle), false);
            }
            Status::Paused => leave_network(self, Unplaced::of(handle), false),
            Status::Busy => {
                handle.node.status = Status::PendingQuit as u8;
                handle.put(self.host);
                emit::<NodeQuitting>(self.host, (handle.id,), ());
            }
            _ => return Err(refusal!(WrongStatus(handle.id, handle.node.status))),
        }
        Ok(())
    }

    /// See `IMuster.poke`.
    pub fn poke(&mut self, id: NodeId) -> Result<()> {
        self.node_store.check(id)?;
        if self.readmitted == id {
            // Serving has already re-admitted this node; a refusal would undo it.
            return Ok(());
        }
        settled(self)?;
        if self.is_spent() {
            // The due draws have cost enough; a refusal would undo them, too.
            return Ok(());
        }
        let handle = NodeHandle::load(self.host, id);
        let status = handle.node.status;
        ensure!(Status::new(status) == Status::Available, WrongStatus(id, status));
        let eligible = qos::eligible(reliability(self, &handle.node), self.rules.exclusion_ppm);
        if handle.node.parked != 0 {
            let assignment = handle.assignment(self.host);
            // No node must go on waiting for a task that is gone.
            let waits = handle.node.parked == Node::WAITS
                && self.now < assignment.until as u64
                && pool::load(self.host, assignment.queue).live > 0;
            ensure!(eligible && !waits && !rests(self, &handle), NothingToPoke(id));
            return_to_work(self, handle);
        } else if !eligible {
            // The threshold was raised under it.
            leave_sampler(self, &handle);
            let now = self.now;
            release(self, Unplaced::of(handle), Next::Rest(now));
        } else {
            leave_sampler(self, &handle);
            ensure!(find_queued(self, &Unplaced::of(handle), Next::Work), NothingToPoke(id));
        }
        Ok(())
    }
}
