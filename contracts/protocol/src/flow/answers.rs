//! Answers that are committed to and revealed, and tasks that end without any.

use crate::abi::{emit, IMuster::*};
use crate::flow::gas::{demand_gas, CALL_GAS};
use crate::flow::network::{Network, Served};
use crate::flow::queueing::{abort, TIMEOUT};
use crate::flow::release::{free_for_work, release};
use crate::flow::reliability::lower_reliability;
use crate::flow::serve::{settled, JUDGING_READS, SLASHING_READS};
use crate::flow::standing::Next;
use crate::host::Host;
use crate::policy::commitments::{handle_running, running_order, tell_commitment, Opening, ANSWER, ERROR};
use crate::policy::group::{comparable, drop_out};
use crate::policy::judgement::judge;
use crate::policy::ruling::open;
use crate::policy::sampled::{committed, lot_falls_on, paid_alone, reveal_alone};
use crate::store::accounts;
use crate::store::groups::{kept, Group};
use crate::store::node::{NodeHandle, Unplaced};
use crate::store::task::{ModelSet, Task};
use crate::Result;
use muster_core::id::{NodeId, TaskId};
use muster_core::record::{Commitment, Limits, Membership, Node, Order, Phase, Stage, MEMBERS};
use muster_core::word::Word;

impl<H: Host> Network<'_, H> {
    /// See `IMuster.commit`.
    pub fn commit(&mut self, id: TaskId, hash: [u8; 32]) -> Result<()> {
        let (handle, _) = self.own_seat()?;
        let order = running_order(self, &handle, id)?;
        let place = match order.phase() {
            Phase::Member { place } => Some(place),
            Phase::Running if order.commits() => None,
            _ => return Err(refusal!(NothingToCommit(id, handle.id))),
        };
        ensure!(self.now <= order.moment, DeadlinePassed(id, order.moment));
        let elapsed = (self.now - order.began()) as u32;
        let limits = self.limits();
        if let Some(place) = place {
            return commit_member(self, handle, &order, place, hash, elapsed, &limits);
        }
        let block = self.block() + limits.sample_delay as u64;
        let commitment = Commitment::of(hash, elapsed, block);
        handle.set_commitment(self.host, &commitment);
        // Before the lot is drawn: afterwards, anyone able to change it would know their gain.
        let scored = comparable(self, &order, order.group) && order.scored();
        handle.set_order(self.host, &order.as_committed().with_scores(scored));
        tell_commitment(self, id, handle.id, 0, hash, block);
        Ok(())
    }
}

fn commit_member<H: Host>(
    net: &mut Network<'_, H>,
    handle: NodeHandle,
    order: &Order,
    place: u32,
    hash: [u8; 32],
    elapsed: u32,
    limits: &Limits,
) -> Result<()> {
    let none = || refusal!(GroupUnknown(order.id, place));
    let mut group = Group::at(net.host, place).ok_or_else(none)?;
    let i = group.find(handle.id).ok_or_else(none)?;
    // The deadline as the group knows it, by 32 bits of time: nobody commits once others can reveal.
    ensure!(net.now <= group.members[i].moment as u64, DeadlinePassed(order.id, order.moment));
    group.members[i] = Membership { node: handle.id, stage: Stage::Committed, moment: net.now as u32, elapsed };
    group.put(net.host, i);
    group.set_answer(net.host, i, kept(hash));
    tell_commitment(net, order.id, handle.id, place, hash, 0);
    free_for_work(net, handle, order.liable(), limits);
    Ok(())
}

impl<H: Host> Network<'_, H> {
    /// See `IMuster.reveal`.
    pub fn reveal(&mut self, id: TaskId, place: u32, node: NodeId, kind: u8, value: [u8; 32], salt: [u8; 32]) -> Result<()> {
        let code = Word::from_be_bytes(value).0;
        ensure!(kind == ANSWER || kind == ERROR && matches!(code, [0..256, 0, 0, 0]), BadAnswerKind(kind, value));
        let opening = Opening { id, node, kind, value, salt };
        if place == 0 {
            return reveal_alone(self, &opening);
        }
        demand_gas(self.host, CALL_GAS)?;
        reveal_member(self, &opening, place)
    }
}

fn reveal_member<H: Host>(net: &mut Network<'_, H>, opening: &Opening, place: u32) -> Result<()> {
    let &Opening { id, node, kind, value, .. } = opening;
    let (mut group, order) = group_of(net, id, place)?;
    let i = group.find(node).ok_or_else(|| refusal!(NotAMember(id, node)))?;
    ensure!(group.members[i].stage == Stage::Committed, NotCommitted(id, node));
    // Also when their time is over, as long as nobody has had the group judged: a commitment cannot be changed.
    ensure!(group.opened(net.now, order.moment).is_some(), NotOpen(id, place));
    opening.check(&order, group.answer(net.host, i) == kept(opening.hash(net.host)))?;
    opening.tell(net.host, place);
    let before = open(&group, &order, |i| group.answer(net.host, i));
    group.members[i].stage = if kind == ANSWER { Stage::Answered } else { Stage::Failed };
    group.set_answer(net.host, i, Word::from_be_bytes(value));
    group.put(net.host, i);
    // A commitment that can no longer be slashed holds nobody until the others have revealed: they may put that off.
    let after = open(&group, &order, |i| group.answer(net.host, i));
    for (member, (before, after)) in group.members.iter().zip(before.into_iter().zip(after)) {
        if before && !after {
            uncount(net, member.node);
        }
    }
    // Scores and slashes weigh in draws, so judging waits for those that are due.
    let again = order.rated() && net.ring.is_full();
    if group.revealed() && !again && !net.draws_due() {
        judge(net, &group, &order);
    }
    Ok(())
}

/// A task's group at a place, and its order.
fn group_of<H: Host>(net: &Network<'_, H>, id: TaskId, place: u32) -> Result<(Group, Order)> {
    let found = Group::at(net.host, place).map(|group| (group, group.order(net.host)));
    found.filter(|(_, order)| order.id == id).ok_or_else(|| refusal!(GroupUnknown(id, place)))
}

/// Counts a commitment of a node no longer as open, and frees the node if that held it.
fn uncount<H: Host>(net: &mut Network<'_, H>, node: NodeId) {
    let mut handle = NodeHandle::load(net.host, node);
    let held = handle.node.held();
    handle.node.duties = (handle.node.duties - 1) & !Node::HELD;
    if held {
        release(net, Unplaced::of(handle), Next::WorkOrWait);
    } else {
        handle.put(net.host);
    }
}

impl<H: Host> Network<'_, H> {
    /// See `IMuster.expire`.
    pub fn expire(&mut self, node: NodeId, id: TaskId) -> Result<()> {
        let (mut handle, order) = handle_running(self, node, id)?;
        let escrow = handle.escrow(self.host);
        let mut saved = 0;
        if matches!(order.phase(), Phase::Committed | Phase::Calling) {
            let commitment = committed(self, &handle, &order)?;
            let due = order.began() + commitment.elapsed as u64 + self.limits().sample_window as u64;
            ensure!(self.now > due, DeadlineNotPassed(id, due));
            // However long blocks take, the lot was known for some of them before anybody can end the task for not having revealed.
            let known = commitment.block + self.limits().sample_delay as u64;
            ensure!(known < self.block(), HashUnknown(id, known));
            // Nobody can tell the lot of a hash that is too old.
            ensure!(!lot_falls_on(self, &order, &commitment).unwrap_or(false), Sampled(id));
            // The lot was drawn, and this is its price. Otherwise nodes that are not sampled would rather time out than pay for those that
            // are.
            saved = escrow.fee - paid_alone(&order, escrow.fee);
        } else {
            ensure!(self.now > order.moment, DeadlineNotPassed(id, order.moment));
        }
        lower_reliability(self, &mut handle);
        if let Phase::Member { place } = order.phase() {
            drop_out(self, place, node, Stage::TimedOut, order.moment);
        } else {
            let caller = self.host.sender();
            // The node that let it time out earns nothing by ending it.
            let driver = (accounts::node_of(self.host, caller).0 != node).then_some(caller);
            abort(self, &Task { escrow, order, models: ModelSet::default() }, node, TIMEOUT, order.start_fee_bps, saved, driver);
        }
        release(self, Unplaced::of(handle), Next::WorkOrWait);
        Ok(())
    }
}

/// Drops called members that could have begun: their own sampled task only waits for a call of its validators, since its `sampleWindow` is
/// over. Returns whether there was one.
fn drop_called<H: Host>(net: &mut Network<'_, H>, group: &mut Group, order: &Order) -> bool {
    let window = net.limits().sample_window as u64;
    let mut dropped = false;
    for i in 0..MEMBERS {
        let node = group.members[i].node;
        if group.members[i].stage != Stage::Called {
            continue;
        }
        let mut handle = NodeHandle::load(net.host, node);
        let own = handle.order(net.host);
        let lingers = handle.node.running() && own.phase() == Phase::Committed;
        if lingers && net.now > own.began() + handle.commitment(net.host).elapsed as u64 + window {
            handle.node.duties &= !Node::CALLED;
            handle.put(net.host);
            group.members[i] = Membership { node, stage: Stage::Gone, moment: net.now as u32, elapsed: 0 };
            group.put(net.host, i);
            emit::<MemberTimedOut>(net.host, (order.id, node), (group.place,));
            dropped = true;
        }
    }
    dropped
}

impl<H: Host> Network<'_, H> {
    /// See `IMuster.settle`.
    pub fn settle(&mut self, id: TaskId, place: u32) -> Result<()> {
        demand_gas(self.host, CALL_GAS)?;
        let (mut group, order) = group_of(self, id, place)?;
        let waits = group.opened(self.now, order.moment).is_none();
        let slashes = order.liable() && !group.revealed();
        self.host.charge(if slashes { SLASHING_READS } else { JUDGING_READS });
        if waits {
            // A member that is dropped can be called by others again, so no draw may be due whose hash is known.
            settled(self)?;
        }
        let dropped = waits && drop_called(self, &mut group, &order);
        let opened = group.opened(self.now, order.moment).ok_or_else(|| refusal!(NotOpen(id, place)))?;
        if dropped && !group.revealed() {
            return Ok(());
        }
        let closes = opened + self.limits().reveal_window as u64;
        ensure!(group.revealed() || self.now > closes, RevealsOpen(id, closes));
        settled(self)?;
        // There may be no majority.
        ensure!(!(order.rated() && self.ring.is_full()), TooManyPending(self.ring.len()));
        if self.served != Served::Draws(0) {
            // Judging beside draws is as much as a call can do.
            self.served = Served::Full;
        }
        judge(self, &group, &order);
        Ok(())
    }
}
