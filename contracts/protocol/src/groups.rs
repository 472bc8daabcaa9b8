//! Validation: three nodes run one task, commit to their answers, and are judged by [`muster_core::validation`].
//!
//! A sampled task starts and runs as a single one, beside its node, which commits to its answer; a later hash decides whether it is
//! checked by two more. A replicated one is given to three nodes at once. A group has a place of its own from the draw of its members
//! to its settlement; from their commitments on, they can work on. All that a member owes is in its node's record:
//! [`muster_core::record::Node::duties`].

use crate::abi::{emit, IMuster::*};
use crate::door::demand_gas;
use crate::draw::{self, Rng};
use crate::host::{offset, Host, ModelSet, Task};
use crate::layout::{entry, group as words, slot, GROUPS, GROUP_PLACES, LIMITS};
use crate::network::{Due, Network, CALL_GAS, JUDGING_GAS};
use crate::nodes::Next;
use crate::receipt;
use crate::registry::{self, Held};
use crate::roster::Seat;
use crate::sampler::{Among, Field};
use crate::tasks::{SLASHED, TIMEOUT};
use crate::{purse, Result};
use alloc::vec::Vec;
use muster_core::id::{GpuGroup, Grade, NodeId, TaskId};
use muster_core::qos::{self, penalise, share_bps};
use muster_core::record::*;
use muster_core::reputation::vote_by;
use muster_core::validation::{has_images, judge, payment, same_images, shares, Member, Outcome, Pot, Verdict};
use muster_core::word::{Address, Word};

/// Draws of a task's validators that may stay undecided; after that it is judged with as many as were found.
pub const CALL_DRAWS: u8 = 8;
/// The kind of a revealed answer.
const ANSWER: u8 = 0;
/// The kind of a revealed error.
const ERROR: u8 = 1;

/// Outcomes of `IMuster.GroupSettled`.
const AGREED: u8 = 0;
const ALONE: u8 = 1;
const DIFFERING: u8 = 2;
const UNANSWERED: u8 = 3;
const RESCHEDULED: u8 = 4;

/// The places of groups.
pub fn places<H: Host>(host: &H) -> Places {
    host.get(slot(GROUP_PLACES))
}

/// A validation group: its place, and what is read of it.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Its place, from 1.
    pub place: u32,
    slot: Word,
    /// Its members; of a validation group there are [`MEMBERS`].
    pub members: [Membership; MEMBERS_MOST],
    /// Words that they take.
    words: u8,
}

/// The word of its record in which a member stands.
fn word_of(member: usize) -> u64 {
    match member / MEMBERS {
        0 => words::MEMBERS,
        word => words::MORE_MEMBERS + word as u64 - 1,
    }
}

impl Group {
    /// The group at a place; none if it is free.
    pub fn at<H: Host>(host: &H, place: u32) -> Option<Group> {
        let slot = entry(host, GROUPS, place as u64);
        let first: Members = host.get(offset(slot, words::MEMBERS));
        let words = first.words();
        let mut members = [Membership::default(); MEMBERS_MOST];
        for (i, three) in members.chunks_exact_mut(MEMBERS).take(words as usize).enumerate() {
            let word: Members = if i == 0 { first } else { host.get(offset(slot, word_of(i * MEMBERS))) };
            three.copy_from_slice(&word.all());
        }
        (words > 0).then_some(Group { place, slot, members, words })
    }

    /// Takes a free place for a task, whose order's flags say whether it is scored, and this many members.
    fn new<H: Host>(host: &mut H, task: &Task, count: usize) -> Group {
        let mut places = places(host);
        let place = places.next();
        let slot = entry(host, GROUPS, place as u64);
        if places.free > 0 {
            places.free = host.get::<Members>(offset(slot, words::MEMBERS)).t0;
        } else {
            places.issued = place;
        }
        places.live += 1;
        host.put(self::slot(GROUP_PLACES), &places);
        task.store(host, offset(slot, words::ESCROW));
        Group { place, slot, members: [Membership::default(); MEMBERS_MOST], words: count.div_ceil(MEMBERS).max(1) as u8 }
    }

    /// Its task.
    pub fn task<H: Host>(&self, host: &H) -> Task {
        Task::load(host, offset(self.slot, words::ESCROW))
    }

    fn order<H: Host>(&self, host: &H) -> Order {
        host.get(offset(self.slot, words::ORDER))
    }

    fn escrow<H: Host>(&self, host: &H) -> Escrow {
        host.get(offset(self.slot, words::ESCROW))
    }

    /// What a member has committed to, or revealed.
    pub fn answer<H: Host>(&self, host: &H, member: usize) -> Word {
        host.load(self.answer_slot(member))
    }

    fn answer_slot(&self, member: usize) -> Word {
        let from = if member < MEMBERS { words::ANSWERS } else { words::MORE_ANSWERS - MEMBERS as u64 };
        offset(self.slot, from + member as u64)
    }

    fn set_answer<H: Host>(&self, host: &mut H, member: usize, answer: Word) {
        host.store(self.answer_slot(member), answer);
    }

    /// Writes the word in which a member stands.
    fn put<H: Host>(&self, host: &mut H, member: usize) {
        let first = member / MEMBERS * MEMBERS;
        let three = core::array::from_fn(|i| self.members[first + i]);
        host.put(offset(self.slot, word_of(first)), &Members::of(&three, self.words));
    }

    /// Frees its place.
    fn free<H: Host>(&self, host: &mut H) {
        let mut places = places(host);
        host.put(offset(self.slot, words::MEMBERS), &Members::vacant(places.free));
        places.free = self.place;
        places.live -= 1;
        host.put(slot(GROUP_PLACES), &places);
    }

    /// Where a node stands among the members.
    fn find(&self, node: NodeId) -> Option<usize> {
        self.members.iter().position(|m| m.node == node && m.stage != Stage::None)
    }

    /// When reveals began, of a group formed at `formed`: then, or at the last commitment, or deadline that passed; none while somebody
    /// runs the task or is still to begin.
    pub fn opened(&self, now: u64, formed: u64) -> Option<u64> {
        let waits = |m: &Membership| match m.stage {
            Stage::Called => true,
            Stage::Running => now <= m.moment as u64,
            _ => false,
        };
        let last = self.members.iter().fold(formed, |last, m| last.max(m.moment as u64));
        (!self.members.iter().any(waits)).then_some(last)
    }

    /// Whether nobody is left who has committed and not revealed.
    fn revealed(&self) -> bool {
        self.members.iter().all(|m| m.stage != Stage::Committed)
    }
}

/// What opens a commitment.
struct Opening {
    id: TaskId,
    node: NodeId,
    kind: u8,
    value: [u8; 32],
    salt: [u8; 32],
}

impl Opening {
    /// What a commitment to it would be.
    fn hash<H: Host>(&self, host: &H) -> [u8; 32] {
        let mut bytes = [0; 160];
        bytes[24..32].copy_from_slice(&self.id.0.to_be_bytes());
        bytes[60..64].copy_from_slice(&self.node.0.to_be_bytes());
        bytes[95] = self.kind;
        bytes[96..128].copy_from_slice(&self.value);
        bytes[128..].copy_from_slice(&self.salt);
        host.keccak(&bytes)
    }

    /// Refuses what was not committed to, or is no answer to the task.
    fn check(&self, order: &Order, opens: bool) -> Result<()> {
        ensure!(opens, NotWhatWasCommitted(self.id, self.node));
        let answer = || images(Word::from_be_bytes(self.value));
        let fits = self.kind == ERROR || order.images() == 0 || has_images(&answer(), order.images());
        ensure!(fits, BadImages(self.id, order.images()));
        Ok(())
    }

    fn tell<H: Host>(&self, host: &mut H, place: u32) {
        emit::<AnswerRevealed>(host, (self.id, self.node), (place, self.kind, self.value, self.salt));
    }
}

/// What is kept of a commitment.
fn kept(mut hash: [u8; 32]) -> Word {
    hash[24..].fill(0);
    Word::from_be_bytes(hash)
}

/// The perceptual hashes in an answer, the first image's first.
fn images(answer: Word) -> [u64; 4] {
    let [d, c, b, a] = answer.0;
    [a, b, c, d]
}

/// Whether two answers to a task are the same.
fn same(order: &Order, limits: &Limits, a: &Word, b: &Word) -> bool {
    if order.images() == 0 {
        a == b
    } else {
        same_images(&images(*a), &images(*b), limits.hamming_most)
    }
}

/// What the node of a sampled task is paid of a fee where there is no group: less than the fee where it could be scored.
fn paid_alone(order: &Order, fee: u128) -> u128 {
    match order.policy() {
        Policy::Sampled { bps } if order.scored() => payment(fee, bps),
        _ => fee,
    }
}

/// What a judgement enters for a member.
enum Mark {
    /// A score, which counts for its rating too.
    Score(u8),
    /// Whether it was right, for its rating only.
    Rating(bool),
}

impl<H: Host> Network<'_, H> {
    fn limits(&self) -> Limits {
        self.host.get(slot(LIMITS))
    }

    /// The running task of a node.
    fn running_order(&self, seat: &Seat, id: TaskId) -> Result<Order> {
        let order = seat.order(self.host);
        ensure!(seat.node.running() && order.id == id, TaskNotRunning(id, seat.id));
        Ok(order)
    }

    /// Whether the answers of nodes of a group can be compared: as images, or bit by bit where the group is listed still.
    fn comparable(&self, order: &Order, group: GpuGroup) -> bool {
        order.images() > 0 || registry::listed(self.host, group)
    }

    /// Whether the hash of the commitment's block samples a task.
    fn sampled(&self, order: &Order, commitment: &Commitment) -> Result<bool> {
        let hash = self.host.block_hash(commitment.block).ok_or_else(|| refusal!(HashUnknown(order.id, commitment.block)))?;
        let lot = Rng::new(self.host, hash, order.id).below(self.host, 10_000);
        Ok(matches!(order.policy(), Policy::Sampled { bps } if lot < bps as u64))
    }

    // ------------------------------------------------------------ commit

    /// See `IMuster.commit`.
    pub fn commit(&mut self, id: TaskId, hash: [u8; 32]) -> Result<()> {
        let (seat, _) = self.own_seat()?;
        let order = self.running_order(&seat, id)?;
        let place = match order.phase() {
            Phase::Member { place } => Some(place),
            Phase::Running if order.commits() => None,
            _ => return Err(refusal!(NothingToCommit(id, seat.id))),
        };
        ensure!(self.now <= order.moment, DeadlinePassed(id, order.moment));
        let elapsed = (self.now - order.began()) as u32;
        let limits = self.limits();
        if let Some(place) = place {
            return self.commit_member(seat, &order, place, hash, elapsed, &limits);
        }
        let block = self.block() + limits.sample_delay as u64;
        let commitment = Commitment::of(hash, elapsed, block);
        seat.set_commitment(self.host, &commitment);
        // Before the lot is drawn: whoever could change it later would know what they gain.
        let scored = self.comparable(&order, order.group) && order.scored();
        seat.set_order(self.host, &order.as_committed().with_scores(scored));
        self.tell_commitment(id, seat.id, 0, hash, block);
        Ok(())
    }

    fn tell_commitment(&mut self, id: TaskId, node: NodeId, place: u32, hash: [u8; 32], block: u64) {
        let mut commitment = [0; 24];
        commitment.copy_from_slice(&hash[..24]);
        emit::<AnswerCommitted>(self.host, (id, node), (place, commitment, block));
    }

    fn commit_member(
        &mut self,
        seat: Seat,
        order: &Order,
        place: u32,
        hash: [u8; 32],
        elapsed: u32,
        limits: &Limits,
    ) -> Result<()> {
        let none = || refusal!(GroupUnknown(order.id, place));
        let mut group = Group::at(self.host, place).ok_or_else(none)?;
        let i = group.find(seat.id).ok_or_else(none)?;
        group.members[i] = Membership { node: seat.id, stage: Stage::Committed, moment: self.now as u32, elapsed };
        group.put(self.host, i);
        group.set_answer(self.host, i, kept(hash));
        self.tell_commitment(order.id, seat.id, place, hash, 0);
        self.free_for_work(seat, order.scored(), limits);
        Ok(())
    }

    /// Counts an open commitment of a node whose task moved on without it, and lets it work on unless it has too many. Whom a group waits
    /// for is not held, so it can have one more than that.
    ///
    /// What nobody can be slashed for ([`Order::liable`]) is not counted: no stake has to answer for it, and else a member that does
    /// not reveal would keep all others from work until the window is over, at the price of the fee.
    fn free_for_work(&mut self, mut seat: Seat, liable: bool, limits: &Limits) {
        seat.node.duties += liable as u8;
        if seat.node.open() < limits.open_most || seat.node.called() {
            return self.release(seat, Next::WorkOrWait);
        }
        seat.node.duties |= Node::HELD;
        seat.put(self.host);
    }

    // ------------------------------------------------------------ a task on its own

    /// See `IMuster.reveal`.
    pub fn reveal(&mut self, id: TaskId, place: u32, node: NodeId, kind: u8, value: [u8; 32], salt: [u8; 32]) -> Result<()> {
        let code = Word::from_be_bytes(value).0;
        ensure!(kind == ANSWER || kind == ERROR && matches!(code, [0..256, 0, 0, 0]), BadAnswerKind(kind, value));
        let opening = Opening { id, node, kind, value, salt };
        if place == 0 {
            return self.reveal_alone(&opening);
        }
        demand_gas(self.host, JUDGING_GAS)?;
        self.reveal_member(&opening, place)
    }

    /// A node's task, and its running order.
    fn seat_running(&self, node: NodeId, id: TaskId) -> Result<(Seat, Order)> {
        self.roster.check(node)?;
        let seat = Seat::load(self.host, node);
        let order = self.running_order(&seat, id)?;
        Ok((seat, order))
    }

    /// The commitment to a node's task, whose validators must not have been called.
    fn committed(&self, seat: &Seat, order: &Order) -> Result<Commitment> {
        match order.phase() {
            Phase::Committed => Ok(seat.commitment(self.host)),
            Phase::Calling => Err(refusal!(Sampled(order.id))),
            Phase::Running | Phase::Member { .. } => Err(refusal!(NotCommitted(order.id, seat.id))),
        }
    }

    fn reveal_alone(&mut self, opening: &Opening) -> Result<()> {
        let (seat, order) = self.seat_running(opening.node, opening.id)?;
        let commitment = self.committed(&seat, &order)?;
        opening.check(&order, commitment.opens(opening.hash(self.host)))?;
        ensure!(!self.sampled(&order, &commitment)?, Sampled(order.id));
        opening.tell(self.host, 0);
        let escrow = seat.escrow(self.host);
        if opening.kind == ERROR {
            self.fail(seat, &escrow, &order, opening.value[31]);
            return Ok(());
        }
        let paid = paid_alone(&order, escrow.fee);
        purse::save(self.host, escrow.fee - paid);
        let operator = seat.operator(self.host).account;
        self.succeed(seat, &escrow, &order, operator, opening.value, paid);
        Ok(())
    }

    /// See `IMuster.expire`.
    pub fn expire(&mut self, node: NodeId, id: TaskId) -> Result<()> {
        let (mut seat, order) = self.seat_running(node, id)?;
        let escrow = seat.escrow(self.host);
        let mut saved = 0;
        if matches!(order.phase(), Phase::Committed | Phase::Calling) {
            let commitment = self.committed(&seat, &order)?;
            let due = order.began() + commitment.elapsed as u64 + self.limits().sample_window as u64;
            ensure!(self.now > due, DeadlineNotPassed(id, due));
            // However long blocks take, the lot was known for some of them before anybody can end the task for not having revealed.
            let known = commitment.block + self.limits().sample_delay as u64;
            ensure!(known < self.block(), HashUnknown(id, known));
            // Of a hash that is too long ago nobody can say what it had decided.
            ensure!(!self.sampled(&order, &commitment).unwrap_or(false), Sampled(id));
            // The lot was drawn, and this is its price: else who is not sampled would rather time out than pay for those who are.
            saved = escrow.fee - paid_alone(&order, escrow.fee);
        } else {
            ensure!(self.now > order.moment, DeadlineNotPassed(id, order.moment));
        }
        self.penalise(&mut seat);
        if let Phase::Member { place } = order.phase() {
            self.drop_out(place, node, Stage::TimedOut, order.moment);
        } else {
            let caller = self.host.sender();
            // Whoever let it time out does not earn by it.
            let driver = (purse::node_of(self.host, caller).0 != node).then_some(caller);
            self.abort(&Task { escrow, order, models: ModelSet::default() }, node, TIMEOUT, order.start_fee_bps, saved, driver);
        }
        self.release(seat, Next::WorkOrWait);
        Ok(())
    }

    /// Lowers a node's H for a task without an answer in time.
    fn penalise(&mut self, seat: &mut Seat) {
        let h = penalise(self.reliability(&seat.node), self.rules.penalty_ppm);
        self.set_reliability(seat, h);
    }

    /// Notes in a group that a member will not answer.
    fn drop_out(&mut self, place: u32, node: NodeId, stage: Stage, moment: u64) {
        if let Some(mut group) = Group::at(self.host, place) {
            if let Some(i) = group.find(node) {
                group.members[i] = Membership { node, stage, moment: moment as u32, elapsed: 0 };
                group.put(self.host, i);
                let id = group.order(self.host).id;
                emit::<MemberTimedOut>(self.host, (id, node), (place,));
            }
        }
    }

    // ------------------------------------------------------------ calling validators

    /// See `IMuster.validate`.
    pub fn validate(&mut self, id: TaskId, node: NodeId) -> Result<()> {
        let limits = self.limits();
        let (seat, order) = self.seat_running(node, id)?;
        let commitment = self.committed(&seat, &order)?;
        ensure!(self.sampled(&order, &commitment)?, NotSampled(id));
        ensure!(!self.calls.is_full(), TooManyCalls(self.calls.len()));
        seat.set_order(self.host, &order.as_calling());
        let block = self.block() + limits.sample_delay as u64;
        self.calls.push_call(self.host, &Call { node, tries: 0 }, &order, block);
        // Out of the task's own fee, so that no task takes more out of the reserve than such tasks pay into it.
        let (escrow, caller) = (seat.escrow(self.host), self.host.sender());
        let start_fee = share_bps(escrow.fee, order.start_fee_bps);
        seat.set_escrow(self.host, &Escrow { fee: escrow.fee - start_fee, ..escrow });
        let beneficiary = if purse::node_of(self.host, caller).0 == node { [0; 20] } else { caller };
        if beneficiary == caller {
            purse::credit(self.host, caller, start_fee);
        } else {
            purse::save(self.host, start_fee);
        }
        emit::<TaskSampled>(self.host, (id, node, escrow.creator), (block, beneficiary, start_fee));
        Ok(())
    }

    /// See `IMuster.formGroup`: draws the validators of the first call that waits, if its draw is the next.
    pub fn form(&mut self) -> bool {
        match self.next_due() {
            Some(Due::Call(at, waiting)) => self.form_around(at, &waiting),
            _ => return false,
        }
        true
    }

    /// Makes the next draw, if it is of several nodes.
    pub fn form_next(&mut self) {
        match self.next_due() {
            Some(Due::Call(at, waiting)) => self.form_around(at, &waiting),
            Some(Due::Task(at, order)) if matches!(order.policy(), Policy::Replicated) => self.form_replicated(at, &order),
            _ => {}
        }
    }

    /// Draws the validators of the first call that waits.
    fn form_around(&mut self, at: Word, waiting: &Order) {
        let call = self.calls.take_call(self.host, at);
        let first = Seat::load(self.host, call.node);
        let order = first.order(self.host);
        // Its node may have been slashed out of the network, its task refunded.
        if !(first.node.running() && order.id == waiting.id && order.phase() == Phase::Calling) {
            return;
        }
        let task = Task { escrow: first.escrow(self.host), order, models: first.in_use(self.host) };
        let limits = self.limits();
        let Some(hash) = self.host.block_hash(waiting.moment) else {
            return self.call_again(&call, &order, &limits);
        };
        let mut rng = Rng::new(self.host, hash, order.id);
        let field = || Field::new(self.host, Among::Active, order.group.into());
        let (nodes, paused) = self.draw_validators(field(), &task, first.id, limits.open_most, &mut rng);
        // Where there are fewer active nodes than a group has members, no other draw would find more.
        let again =
            nodes.len() < MEMBERS && call.tries + 1 < CALL_DRAWS && field().count(self.host, MEMBERS as u32) >= MEMBERS as u32;
        // Paused nodes would be met again and again.
        for node in paused {
            let mut seat = Seat::load(self.host, node);
            self.roster.set_aside(self.host, &mut seat, self.rules.base);
        }
        if again {
            return self.call_again(&Call { tries: call.tries + 1, ..call }, &order, &limits);
        }
        let commitment = first.commitment(self.host);
        let committed_at = order.began() + commitment.elapsed as u64;
        let own =
            Membership { node: first.id, stage: Stage::Committed, moment: committed_at as u32, elapsed: commitment.elapsed };
        let group = self.form_of(task, order.scored(), &nodes, Some(own), &limits);
        group.set_answer(self.host, 0, kept(commitment.hash()));
        self.free_for_work(Seat::load(self.host, first.id), order.scored(), &limits);
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as the ring is given it")]
    fn call_again(&mut self, call: &Call, order: &Order, limits: &Limits) {
        let block = self.block() + limits.sample_delay as u64;
        self.calls.push_call(self.host, call, order, block);
        emit::<TaskRedrawn>(self.host, (order.id,), (block,));
    }

    /// Draws the three nodes of the first Pending task, which takes so many.
    fn form_replicated(&mut self, at: Word, order: &Order) {
        let reserved = self.ring.reserved(self.host, at);
        let beside = self.reserved_fit(order, &reserved);
        let task = Task::load(self.host, at);
        let drawn = match self.host.block_hash(order.moment) {
            Some(hash) => self.draw_members(&task, &beside, &mut Rng::new(self.host, hash, order.id)),
            None => draw::Members::Undecided,
        };
        self.seat_drawn(at, &task, drawn, beside, &reserved);
    }

    /// Whether H lets a node be given work.
    pub(crate) fn may_work(&self, seat: &Seat) -> bool {
        qos::eligible(self.reliability(&seat.node), self.rules.exclusion_ppm)
    }

    /// Of the nodes reserved for a task those that can be given it.
    pub(crate) fn reserved_fit(&self, order: &Order, reserved: &Reserved) -> Vec<Seat> {
        let mut fit = self.reserved_for(order.id, reserved);
        fit.retain(|seat| self.may_work(seat));
        fit
    }

    /// Does with the first Pending task, at its place in the ring, what the draw of its nodes came to: forms their group, of which it
    /// gives the place, or queues it, or has it drawn again. Lets nodes go that were reserved for it, of which those `beside` could have been given it.
    #[inline(never)]
    pub(crate) fn seat_drawn(
        &mut self,
        at: Word,
        task: &Task,
        drawn: draw::Members,
        mut beside: Vec<Seat>,
        reserved: &Reserved,
    ) -> Option<u32> {
        let (order, mut place) = (&task.order, None);
        match drawn {
            draw::Members::Nobody => self.queue_first(),
            draw::Members::Undecided => {
                self.ring.take(self.host, (at, *order));
                self.redraw(task);
                // Who wants to leave by now, or is excluded, is not kept for another draw.
                beside.retain(|seat| seat.node.status == Status::Busy as u8);
                let kept: Vec<NodeId> = beside.iter().map(|seat| seat.id).collect();
                self.ring.reserve(self.host, &Reserved::of(&kept));
                let mut gone = self.reserved_for(order.id, reserved);
                gone.retain(|seat| !kept.contains(&seat.id));
                self.let_go(gone, true);
                return None;
            }
            draw::Members::Nodes(nodes) => {
                self.ring.take(self.host, (at, *order));
                let scored = if order.is_chosen() { order.scored() } else { self.scored_drawn(order, &nodes, &beside) };
                let limits = self.limits();
                place = Some(self.form_of(*task, scored, &nodes, None, &limits).place);
            }
        }
        let left = self.reserved_for(order.id, reserved);
        self.let_go(left, place.is_none());
        place
    }

    /// Whether the nodes drawn for a task are scored, of which some may be those `beside` that were reserved for it.
    pub(crate) fn scored_drawn(&self, order: &Order, nodes: &[NodeId], beside: &[Seat]) -> bool {
        let group = match (order.images(), nodes.first()) {
            (0, Some(&first)) => Seat::load(self.host, first).node.group,
            _ => order.group,
        };
        let beside = beside.iter().filter(|seat| order.images() > 0 || seat.node.group == group).count() as u32;
        // Not the joined ones: nodes can choose when to be free, and so could be there when few others are.
        let enough = self.limits().score_pool as u32;
        let there = || Field::new(self.host, Among::Idle, group.into()).count(self.host, enough) + beside;
        self.comparable(order, group) && there() >= enough
    }

    /// Whether as many nodes have joined as a task takes that it can go to; paused ones may not count.
    pub(crate) fn so_many_can_run(&self, order: &Order) -> bool {
        let (queue, nodes) = (order.queue(), order.nodes());
        let group = queue.group();
        if queue.grade() == Grade::Alike as u8 && group.is_any() {
            return registry::has_trio(self.host, group.vram());
        }
        Field::new(self.host, Among::Active, group.into()).count(self.host, nodes) >= nodes
    }

    /// Forms a group of these nodes, scored or not, of which the first may have committed already.
    fn form_of(&mut self, mut task: Task, scored: bool, nodes: &[NodeId], first: Option<Membership>, limits: &Limits) -> Group {
        task.order = task.order.as_groups(self.now, scored);
        let mut group = Group::new(self.host, &task, nodes.len());
        emit::<GroupFormed>(self.host, (task.order.id, group.place, task.escrow.creator), (nodes, scored));
        for (member, &node) in group.members.iter_mut().zip(nodes) {
            if let Some(first) = first.filter(|first| first.node == node) {
                *member = first;
                continue;
            }
            // Read again: whoever left the sampler before may have moved it there.
            let mut seat = Seat::load(self.host, node);
            let reserved = task.order.several() && seat.node.parked == Node::RESERVED;
            *member = Membership { node, stage: Stage::Called, moment: 0, elapsed: 0 };
            if reserved || seat.node.status == Status::Available as u8 {
                if reserved {
                    seat.node.parked = 0;
                    // It has not waited in vain.
                    let duty = seat.duty(self.host);
                    if duty.until > 0 || duty.vain > 0 {
                        seat.set_duty(self.host, &Duty { until: 0, vain: 0, ..duty });
                    }
                } else {
                    self.withdraw_from_work(&mut seat);
                }
                member.stage = Stage::Running;
                member.moment = self.start_member(seat, &task, group.place, limits) as u32;
            } else {
                seat.node.duties |= Node::CALLED;
                seat.put(self.host);
                let duty = seat.duty(self.host);
                seat.set_duty(self.host, &Duty { group: group.place, ..duty });
                emit::<MemberCalled>(self.host, (task.order.id, node), (group.place,));
            }
        }
        for word in 0..group.words as usize {
            group.put(self.host, word * MEMBERS);
        }
        group
    }

    /// Starts a group's task on a node that stands nowhere; gives its deadline.
    fn start_member(&mut self, mut seat: Seat, task: &Task, place: u32, limits: &Limits) -> u64 {
        let held = Held::load(self.host, seat.slot, seat.node.models);
        let missing: Vec<_> = task.models.as_slice().iter().copied().filter(|&m| !held.holds(m)).collect();
        let order = &task.order;
        let limit = order.limit + if missing.is_empty() { 0 } else { limits.download_time as u32 };
        let deadline = self.now + limit as u64;
        if seat.node.status == Status::Available as u8 {
            seat.node.status = Status::Busy as u8;
        }
        seat.put(self.host);
        task.models.store(self.host, seat.in_use_slot());
        seat.set_order(self.host, &order.as_members(place, limit, deadline));
        emit::<MemberStarted>(self.host, (order.id, seat.id), (place, deadline));
        for model in missing {
            emit::<DownloadRequested>(self.host, (seat.id, model, order.id), ());
        }
        deadline
    }

    /// Lets a node that stands nowhere begin in the group that it was called to; see [`Network::release`].
    pub fn begin(&mut self, node: NodeId) {
        let mut seat = Seat::load(self.host, node);
        let place = seat.duty(self.host).group;
        seat.node.duties &= !Node::CALLED;
        // A group is not settled before all who were called have begun or left.
        let Some(mut group) = Group::at(self.host, place) else { return self.release(seat, Next::WorkOrWait) };
        let Some(i) = group.find(node) else { return self.release(seat, Next::WorkOrWait) };
        let (task, limits) = (group.task(self.host), self.limits());
        let deadline = self.start_member(seat, &task, place, &limits);
        group.members[i] = Membership { node, stage: Stage::Running, moment: deadline as u32, elapsed: 0 };
        group.put(self.host, i);
    }

    // ------------------------------------------------------------ revealing in a group

    /// A task's group at a place, and its order.
    fn group_of(&self, id: TaskId, place: u32) -> Result<(Group, Order)> {
        let found = Group::at(self.host, place).map(|group| (group, group.order(self.host)));
        found.filter(|(_, order)| order.id == id).ok_or_else(|| refusal!(GroupUnknown(id, place)))
    }

    fn reveal_member(&mut self, opening: &Opening, place: u32) -> Result<()> {
        let &Opening { id, node, kind, value, .. } = opening;
        let (mut group, order) = self.group_of(id, place)?;
        let i = group.find(node).ok_or_else(|| refusal!(NotAMember(id, node)))?;
        ensure!(group.members[i].stage == Stage::Committed, NotCommitted(id, node));
        // Also when their time is over, as long as nobody has had the group judged: what was committed to cannot be changed.
        ensure!(group.opened(self.now, order.moment).is_some(), NotOpen(id, place));
        opening.check(&order, group.answer(self.host, i) == kept(opening.hash(self.host)))?;
        opening.tell(self.host, place);
        group.members[i].stage = if kind == ANSWER { Stage::Answered } else { Stage::Failed };
        group.set_answer(self.host, i, Word::from_be_bytes(value));
        group.put(self.host, i);
        if kind == ERROR {
            // Nothing can be slashed for an error, so it holds nobody until the others have revealed.
            self.uncount(node, &order);
        }
        // Scores and slashes weigh in draws, so judging waits for those that are due.
        let again = order.rated() && self.ring.is_full();
        if group.revealed() && !again && !self.draws_due() {
            self.judge(group, &order);
        }
        Ok(())
    }

    /// Counts a commitment of a node no longer as open, and frees the node if that held it.
    fn uncount(&mut self, node: NodeId, order: &Order) {
        if !order.liable() {
            return;
        }
        let mut seat = Seat::load(self.host, node);
        let held = seat.node.held();
        seat.node.duties = (seat.node.duties - 1) & !Node::HELD;
        if held {
            self.release(seat, Next::WorkOrWait);
        } else {
            seat.put(self.host);
        }
    }

    /// Does without called members that could have begun: whose own sampled task waits for nothing but that somebody calls its
    /// validators, since its `sampleWindow` is over. Gives whether there was one.
    fn drop_called(&mut self, group: &mut Group, order: &Order) -> bool {
        let window = self.limits().sample_window as u64;
        let mut dropped = false;
        for i in 0..MEMBERS {
            let node = group.members[i].node;
            if group.members[i].stage != Stage::Called {
                continue;
            }
            let mut seat = Seat::load(self.host, node);
            let own = seat.order(self.host);
            let lingers = seat.node.running() && own.phase() == Phase::Committed;
            if lingers && self.now > own.began() + seat.commitment(self.host).elapsed as u64 + window {
                seat.node.duties &= !Node::CALLED;
                seat.put(self.host);
                group.members[i] = Membership { node, stage: Stage::Gone, moment: self.now as u32, elapsed: 0 };
                group.put(self.host, i);
                emit::<MemberTimedOut>(self.host, (order.id, node), (group.place,));
                dropped = true;
            }
        }
        dropped
    }

    /// See `IMuster.settle`.
    pub fn settle(&mut self, id: TaskId, place: u32) -> Result<()> {
        demand_gas(self.host, CALL_GAS)?;
        let (mut group, order) = self.group_of(id, place)?;
        let dropped = group.opened(self.now, order.moment).is_none() && self.drop_called(&mut group, &order);
        let opened = group.opened(self.now, order.moment).ok_or_else(|| refusal!(NotOpen(id, place)))?;
        if dropped && !group.revealed() {
            return Ok(());
        }
        let closes = opened + self.limits().reveal_window as u64;
        ensure!(group.revealed() || self.now > closes, RevealsOpen(id, closes));
        self.settled()?;
        // There may be no majority.
        ensure!(!(order.rated() && self.ring.is_full()), TooManyPending(self.ring.len()));
        self.judge(group, &order);
        Ok(())
    }

    // ------------------------------------------------------------ judging

    /// Judges a group whose reveals are over: pays, scores, slashes, and frees its place. Only when no draw is due.
    fn judge(&mut self, group: Group, order: &Order) {
        if order.rated() {
            return self.judge_rated(&group, order);
        }
        let (limits, escrow) = (self.limits(), group.escrow(self.host));
        let answers: [Word; MEMBERS] = core::array::from_fn(|i| match group.members[i].stage {
            Stage::Answered | Stage::Failed => group.answer(self.host, i),
            _ => Word::ZERO,
        });
        let members: [Member<Word>; MEMBERS] = core::array::from_fn(|i| {
            let m = &group.members[i];
            match m.stage {
                Stage::None => Member::None,
                Stage::Answered => Member::Answered { answer: answers[i], elapsed: m.elapsed, at: m.moment },
                Stage::Failed => Member::Failed,
                Stage::Committed => Member::Withheld,
                Stage::Called | Stage::Running | Stage::TimedOut | Stage::Gone => Member::TimedOut,
            }
        });
        let judgement = judge(&members, |a, b| same(order, &limits, a, b));
        let (scored, replicated, fee) = (order.scored(), order.several(), escrow.fee);
        let single = paid_alone(order, fee);
        let mut paid = [0; MEMBERS];
        let (outcome, answerer) = match judgement.outcome {
            Outcome::Agreed(fastest) => {
                let stages = group.members.iter().map(|m| m.stage).filter(|&stage| stage != Stage::None);
                let (count, failed) = (stages.clone().count(), stages.filter(|&stage| stage == Stage::Failed).count());
                let answered = group.members[0].stage == Stage::Answered;
                let pot = if scored && !replicated {
                    Pot::of_payments(fee, single, count, failed, answered)
                } else {
                    Pot::of_fee(fee, count, failed)
                };
                purse::save(self.host, fee - pot.fee);
                paid = shares(pot.fee + purse::draw_reserve(self.host, pot.reserve), &judgement.scores);
                (AGREED, Some(fastest))
            }
            // Of three that began at once none was there first.
            Outcome::Alone(0) if !replicated => {
                paid[0] = single;
                purse::save(self.host, fee - single);
                (ALONE, Some(0))
            }
            Outcome::Differing => (DIFFERING, None),
            _ => (UNANSWERED, None),
        };
        // A sampled task has spent its start fee when its validators were called.
        let start_fee = if answerer.is_none() && replicated { share_bps(fee, order.start_fee_bps) } else { 0 };
        let refund = if answerer.is_some() { 0 } else { fee - start_fee };
        let answer = answerer.map_or(Word::ZERO, |i| answers[i]);
        let (state, node) = answerer.map_or((Receipt::UNDECIDED, NodeId(0)), |i| (Receipt::SUCCEEDED, group.members[i].node));
        receipt::close(self.host, order, state, node, 0, refund, &answer.to_be_bytes());
        group.free(self.host);
        let slashes = scored && (order.images() == 0 || limits.slash_images > 0);
        let slash_times = if slashes { escrow.slash_times } else { 0 };
        for (i, member) in group.members.iter().enumerate().take(MEMBERS) {
            if judgement.verdicts[i] == Verdict::None {
                continue;
            }
            let mark = judgement.scores[i].filter(|_| scored).map(Mark::Score);
            let slash = if matches!(judgement.verdicts[i], Verdict::Wrong | Verdict::Withheld) {
                slash_times as u128 * order.part(fee)
            } else {
                0
            };
            emit::<MemberJudged>(self.host, (order.id, member.node), (group.place, judgement.verdicts[i] as u8, paid[i]));
            self.conclude(member, order, paid[i], mark, slash);
        }
        // After all slashes: none takes what is only given back here.
        purse::earn(self.host, start_fee);
        purse::credit(self.host, escrow.creator, refund);
        let reserve = purse::reserve(self.host);
        let told = (outcome, answer.to_be_bytes(), refund, start_fee, reserve);
        emit::<GroupSettled>(self.host, (order.id, group.place, escrow.creator), told);
    }

    /// Judges a group chosen by ratings: whoever agrees with more than half of it is right (the paper of
    /// [`muster_core::reputation`], section 3.3). Where nobody is, the task goes to another group, as often as its application's profile
    /// allows; each group that finds no majority costs it a start fee. Answers are rated by a majority only, and errors never: else
    /// tasks without a right answer would lower the ratings of everybody who tries.
    fn judge_rated(&mut self, group: &Group, order: &Order) {
        let (limits, task) = (self.limits(), group.task(self.host));
        let members: Vec<&Membership> = group.members.iter().filter(|m| m.stage != Stage::None).collect();
        let answer = |i: usize| group.answer(self.host, i);
        let answers: Vec<Option<Word>> =
            members.iter().enumerate().map(|(i, m)| (m.stage == Stage::Answered).then(|| answer(i))).collect();
        let mut right = [false; MEMBERS_MOST];
        let winner = vote_by(&answers, &mut right[..members.len()], |a, b| same(order, &limits, a, b));
        let profile = self.count_settled(task.escrow.creator, winner.is_some(), members.len() as u32);
        let (fee, creator, scored) = (task.escrow.fee, task.escrow.creator, order.scored());
        let again =
            winner.is_none() && matches!(order.policy(), Policy::Rated { attempts, .. } if attempts < profile.reschedules);
        let outcome = match winner {
            Some(_) => AGREED,
            None if again => RESCHEDULED,
            None if answers.iter().flatten().count() > 1 => DIFFERING,
            None => UNANSWERED,
        };
        let start_fee = if winner.is_some() { 0 } else { share_bps(fee, order.start_fee_bps) };
        let refund = if winner.is_some() || again { 0 } else { fee - start_fee };
        let answer = winner.and_then(|i| answers[i]).unwrap_or(Word::ZERO).to_be_bytes();
        if !again {
            let (state, node) = winner.map_or((Receipt::UNDECIDED, NodeId(0)), |i| (Receipt::SUCCEEDED, members[i].node));
            receipt::close(self.host, order, state, node, 0, refund, &answer);
        }
        group.free(self.host);
        if again {
            // Before its members look for work: they call up other tasks only where there is room beside it.
            let escrow = Escrow { fee: fee - start_fee, ..task.escrow };
            self.redraw(&Task { escrow, order: order.after_attempt(), ..task });
        }
        let failed = members.iter().filter(|m| m.stage == Stage::Failed).count();
        let (mut left, mut pot) = (0, 0);
        if winner.is_some() {
            left = right.iter().filter(|&&right| right).count() as u128;
            pot = Pot::of_fee(fee, members.len(), failed).fee;
            purse::save(self.host, fee - pot);
        }
        let share = pot / left.max(1);
        for (i, member) in members.into_iter().enumerate() {
            let verdict = match member.stage {
                Stage::Answered if winner.is_none() => Verdict::Open,
                Stage::Answered if right[i] => Verdict::Right,
                Stage::Answered => Verdict::Wrong,
                Stage::Failed => Verdict::Failed,
                Stage::Committed => Verdict::Withheld,
                _ => Verdict::TimedOut,
            };
            // The last of those who are right gets what is left over.
            let paid = match (verdict, left) {
                (Verdict::Right, 1) => pot,
                (Verdict::Right, _) => share,
                _ => 0,
            };
            (pot, left) = (pot - paid, left.saturating_sub((verdict == Verdict::Right) as u128));
            emit::<MemberJudged>(self.host, (order.id, member.node), (group.place, verdict as u8, paid));
            let counts = scored && !matches!(verdict, Verdict::Open | Verdict::Failed);
            if i >= MEMBERS {
                // Who is freed by now finds work in later calls.
                self.spend();
            }
            self.conclude(member, order, paid, counts.then_some(Mark::Rating(verdict == Verdict::Right)), 0);
        }
        purse::earn(self.host, start_fee);
        purse::credit(self.host, creator, refund);
        let reserve = purse::reserve(self.host);
        emit::<GroupSettled>(self.host, (order.id, group.place, creator), (outcome, answer, refund, start_fee, reserve));
    }

    /// What a judgement is for one member: pay, score, H, slash, and whether it is free again.
    fn conclude(&mut self, member: &Membership, order: &Order, paid: u128, mark: Option<Mark>, slash: u128) {
        let mut seat = Seat::load(self.host, member.node);
        let operator = seat.operator(self.host).account;
        purse::credit(self.host, operator, paid);
        // It has let its deadline pass, and nobody has told it so.
        let late = member.stage == Stage::Running;
        if late {
            self.penalise(&mut seat);
            emit::<MemberTimedOut>(self.host, (order.id, seat.id), (seat.order(self.host).group.0,));
        }
        if matches!(mark, Some(Mark::Score(1..) | Mark::Rating(true))) {
            self.raise_reliability(&mut seat, order.estimate);
        }
        let out = match mark {
            Some(Mark::Score(score)) => self.score(&mut seat, score),
            Some(Mark::Rating(right)) => {
                seat.rate(self.host, right);
                emit::<NodeRated>(self.host, (seat.id,), (right,));
                false
            }
            None => false,
        };
        let held = seat.node.held();
        let counted = order.liable() && matches!(member.stage, Stage::Committed | Stage::Answered);
        if counted {
            seat.node.duties -= 1;
            seat.node.duties &= !Node::HELD;
        }
        let joined = seat.node.status != Status::Quit as u8;
        if slash > 0 {
            self.slash(&mut seat, operator, order.id, slash);
            if joined && seat.node.stake < self.terms().min_stake {
                return self.expel(seat, held && counted || late);
            }
        }
        if out && joined && self.kick_out(&mut seat) {
            return;
        }
        if held && counted || late {
            self.release(seat, Next::WorkOrWait);
        } else {
            seat.put(self.host);
        }
    }

    /// Burns this much, in wei, of a node's stake (in whole granules, rounded down), then of its operator's returned stake and credit. The
    /// operator never joins again.
    fn slash(&mut self, seat: &mut Seat, operator: Address, id: TaskId, wei: u128) {
        let granule = purse::granule(self.host) as u128;
        let granules = (wei / granule).min(seat.node.stake as u128);
        let stake = granules * granule;
        if granules > 0 {
            let left = seat.node.stake - granules as u64;
            self.restake(seat, left);
        }
        let (unbonding, credit) = purse::seize(self.host, operator, wei - stake, true);
        purse::burn(self.host, stake + unbonding + credit);
        emit::<NodeSlashed>(self.host, (seat.id, operator, id), (stake, unbonding, credit));
    }

    /// Takes a node whose stake is too low out of the network, whatever it does: a task of its own is refunded, a group that it has not
    /// answered does without. `nowhere` says that it has no task and stands in no list.
    fn expel(&mut self, mut seat: Seat, nowhere: bool) {
        if seat.node.called() {
            let place = seat.duty(self.host).group;
            seat.node.duties &= !Node::CALLED;
            self.drop_out(place, seat.id, Stage::Gone, self.now);
        }
        if !nowhere {
            self.leave_work(&mut seat);
        }
        seat.node.duties &= !Node::HELD;
        self.depart(seat, true);
    }

    /// Takes a node away from what it does, or from where it waits for work.
    fn leave_work(&mut self, seat: &mut Seat) {
        let order = seat.order(self.host);
        if seat.node.running() {
            if let Phase::Member { place } = order.phase() {
                return self.drop_out(place, seat.id, Stage::Gone, self.now.min(order.moment));
            }
            let task = Task { escrow: seat.escrow(self.host), order, models: ModelSet::default() };
            self.abort(&task, seat.id, SLASHED, 0, 0, None);
        } else if seat.node.parked == Node::RESERVED {
            seat.node.parked = 0;
        } else if seat.node.parked != 0 || seat.node.status == Status::Available as u8 {
            self.withdraw_from_work(seat);
        }
    }
}
