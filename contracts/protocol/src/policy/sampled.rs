//! Policy 1: a task starts and runs as a single one, beside its node, which commits to its answer; a later hash decides whether it is
//! checked by two more.

use crate::abi::{emit, IMuster::*};
use crate::flow::draw::{draw_several, Rng};
use crate::flow::network::Network;
use crate::flow::release::free_for_work;
use crate::host::Host;
use crate::policy::commitments::{handle_running, Opening, ERROR};
use crate::policy::group::form_of;
use crate::policy::ruling::{Case, Ruling, Settled};
use crate::policy::single::{fail, succeed};
use crate::store::accounts;
use crate::store::groups::kept;
use crate::store::node::NodeHandle;
use crate::store::sampler::{have_joined, Among, Field};
use crate::store::task::Task;
use crate::Result;
use alloc::vec::Vec;
use muster_core::id::{GpuGroup, NodeId, TaskId};
use muster_core::qos::share_bps;
use muster_core::record::{
    Commitment, Escrow, Limits, Membership, Node, Order, Phase, Policy, Stage, Status, ValidatorDraw, MEMBERS,
};
use muster_core::validation::{payment, Outcome, Pot};
use muster_core::word::Word;

/// Draws of a task's validators that may stay undecided; after that it is judged with as many as were found.
pub const CALL_DRAWS: u8 = 8;
/// Paused nodes that a draw of validators takes out of the active ones.
pub const PAUSED_MET: usize = 4;

/// The terms frozen at its creation, and whether it can be scored.
pub(crate) fn freeze<H: Host>(net: &Network<'_, H>, group: GpuGroup) -> (Policy, bool) {
    let limits = net.limits();
    // Settled before anybody knows which node runs it. Paused nodes count: otherwise a node found wrong would have its operator's others
    // pause. It is not scored where hardly any other node has joined: two that collude would suffice to have the rest slashed.
    let scored = have_joined(net.host, group.into(), limits.score_pool as u32);
    (Policy::Sampled { bps: limits.sample_bps }, scored)
}

/// Whether the hash of the commitment's block samples a task.
pub(crate) fn lot_falls_on<H: Host>(net: &Network<'_, H>, order: &Order, commitment: &Commitment) -> Result<bool> {
    let hash = net.host.block_hash(commitment.block).ok_or_else(|| refusal!(HashUnknown(order.id, commitment.block)))?;
    let lot = Rng::new(net.host, hash, order.id).below(net.host, 10_000);
    Ok(matches!(order.policy(), Policy::Sampled { bps } if lot < bps as u64))
}

/// The pay of a sampled task's node where there is no group: less than the fee where it could be scored.
pub(crate) fn paid_alone(order: &Order, fee: u128) -> u128 {
    match order.policy() {
        Policy::Sampled { bps } if order.scored() => payment(fee, bps),
        _ => fee,
    }
}

/// The commitment to a node's task, whose validators must not have been called.
pub(crate) fn committed<H: Host>(net: &Network<'_, H>, handle: &NodeHandle, order: &Order) -> Result<Commitment> {
    match order.phase() {
        Phase::Committed => Ok(handle.commitment(net.host)),
        Phase::Calling => Err(refusal!(Sampled(order.id))),
        Phase::Running | Phase::Member { .. } => Err(refusal!(NotCommitted(order.id, handle.id))),
    }
}

pub(crate) fn reveal_alone<H: Host>(net: &mut Network<'_, H>, opening: &Opening) -> Result<()> {
    let (handle, order) = handle_running(net, opening.node, opening.id)?;
    let commitment = committed(net, &handle, &order)?;
    opening.check(&order, commitment.opens(opening.hash(net.host)))?;
    ensure!(!lot_falls_on(net, &order, &commitment)?, Sampled(order.id));
    opening.tell(net.host, 0);
    let escrow = handle.escrow(net.host);
    if opening.kind == ERROR {
        fail(net, handle, &escrow, &order, opening.value[31]);
        return Ok(());
    }
    let paid = paid_alone(&order, escrow.fee);
    accounts::save(net.host, escrow.fee - paid);
    let operator = handle.operator(net.host).account;
    succeed(net, handle, &escrow, &order, operator, opening.value, paid);
    Ok(())
}

impl<H: Host> Network<'_, H> {
    /// See `IMuster.validate`.
    pub fn validate(&mut self, id: TaskId, node: NodeId) -> Result<()> {
        let limits = self.limits();
        let (handle, order) = handle_running(self, node, id)?;
        let commitment = committed(self, &handle, &order)?;
        ensure!(lot_falls_on(self, &order, &commitment)?, NotSampled(id));
        ensure!(!self.validator_draws.is_full(), TooManyValidatorDraws(self.validator_draws.len()));
        handle.set_order(self.host, &order.as_calling());
        let block = self.block() + limits.sample_delay as u64;
        self.validator_draws.push_validator_draw(self.host, &ValidatorDraw { node, tries: 0 }, &order, block);
        // Out of the task's own fee, so that no task takes more out of the reserve than such tasks pay into it.
        let (escrow, caller) = (handle.escrow(self.host), self.host.sender());
        let start_fee = share_bps(escrow.fee, order.start_fee_bps);
        handle.set_escrow(self.host, &Escrow { fee: escrow.fee - start_fee, ..escrow });
        let beneficiary = if accounts::node_of(self.host, caller).0 == node { [0; 20] } else { caller };
        if beneficiary == caller {
            accounts::credit(self.host, caller, start_fee);
        } else {
            accounts::save(self.host, start_fee);
        }
        emit::<TaskSampled>(self.host, (id, node, escrow.creator), (block, beneficiary, start_fee));
        Ok(())
    }
}

/// Draws the validators of the first call that waits.
pub(crate) fn form_around<H: Host>(net: &mut Network<'_, H>, at: Word, waiting: &Order) {
    let call = net.validator_draws.take_validator_draw(net.host, at);
    let first = NodeHandle::load(net.host, call.node);
    let order = first.order(net.host);
    // Its node may have been slashed out of the network, its task refunded.
    if !(first.node.running() && order.id == waiting.id && order.phase() == Phase::Calling) {
        return;
    }
    let task = Task { escrow: first.escrow(net.host), order, models: first.in_use(net.host) };
    let limits = net.limits();
    let Some(hash) = net.host.block_hash(waiting.moment) else {
        return call_again(net, &call, &order, &limits);
    };
    let mut rng = Rng::new(net.host, hash, order.id);
    let field = || Field::new(net.host, Among::Active, order.group.into());
    let (nodes, paused) = draw_validators(net, field(), &task, first.id, limits.open_most, &mut rng);
    // Where there are fewer active nodes than a group has members, no other draw would find more.
    let again = nodes.len() < MEMBERS && call.tries + 1 < CALL_DRAWS && field().count(net.host, MEMBERS as u32) >= MEMBERS as u32;
    // Paused nodes would be met again and again.
    for node in paused {
        let mut handle = NodeHandle::load(net.host, node);
        net.node_store.set_aside(net.host, &mut handle, net.rules.base);
    }
    if again {
        return call_again(net, &ValidatorDraw { tries: call.tries + 1, ..call }, &order, &limits);
    }
    let commitment = first.commitment(net.host);
    let committed_at = order.began() + commitment.elapsed as u64;
    let own = Membership { node: first.id, stage: Stage::Committed, moment: committed_at as u32, elapsed: commitment.elapsed };
    let group = form_of(net, task, order.scored(), &nodes, Some(own), &limits);
    group.set_answer(net.host, 0, kept(commitment.hash()));
    let first = NodeHandle::load(net.host, first.id);
    let liable = group.order(net.host).liable();
    free_for_work(net, first, liable, &limits);
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as the ring is given it")]
fn call_again<H: Host>(net: &mut Network<'_, H>, call: &ValidatorDraw, order: &Order, limits: &Limits) {
    let block = net.block() + limits.sample_delay as u64;
    net.validator_draws.push_validator_draw(net.host, call, order, block);
    emit::<TaskRedrawn>(net.host, (order.id,), (block,));
}

/// Draws a sampled task's validators among the active nodes of a field. Gives also paused nodes that it met, at most [`PAUSED_MET`].
fn draw_validators<H: Host>(
    net: &Network<'_, H>,
    field: Field,
    task: &Task,
    first: NodeId,
    open_most: u8,
    rng: &mut Rng,
) -> (Vec<NodeId>, Vec<NodeId>) {
    let (mut nodes, mut paused) = (Vec::from([first]), Vec::new());
    let mut fits = |handle: &NodeHandle| {
        let aside = handle.node.status == Status::Paused as u8 && paused.len() < PAUSED_MET;
        if aside && !paused.contains(&handle.id) {
            paused.push(handle.id);
        }
        can_validate(&handle.node, open_most)
    };
    draw_several(net, field, &[], &task.models, (&mut nodes, MEMBERS), (&mut fits, net.host.reads()), rng);
    (nodes, paused)
}

/// Whether an active node can be called to a validation group. It takes tasks, no other call waits for it, and it has fewer open
/// commitments than hold a node: if held ones were called, two groups could wait for each other. Busy nodes can be called, so that load
/// does not decide who validates.
fn can_validate(node: &Node, open_most: u8) -> bool {
    matches!(Status::new(node.status), Status::Available | Status::Busy)
        && !node.called()
        && !node.held()
        && node.open() < open_most
}

/// Rules on a group of its node and its called validators: by payments that its fee, and the reserve that others saved, are for. The task's
/// own node is paid as without a group if no other has answered.
pub(crate) fn rule<H: Host>(net: &mut Network<'_, H>, case: &Case<'_>) -> Ruling {
    let (judgement, fee) = (case.compare(), case.escrow.fee);
    let single = paid_alone(case.order, fee);
    let answered = case.group.members[0].stage == Stage::Answered;
    let pot = if case.order.scored() {
        Pot::of_payments(fee, single, case.count, case.failed, answered)
    } else {
        Pot::of_fee(fee, case.count, case.failed)
    };
    // Its start fee was spent when its validators were called.
    let mut ruling = Ruling::compared(net, case, &judgement, pot);
    if judgement.outcome == Outcome::Alone(0) {
        ruling.settled = Settled::Alone;
        ruling.answerer = Some(0);
        ruling.parts[0].paid = single;
        accounts::save(net.host, fee - single);
    }
    ruling
}
