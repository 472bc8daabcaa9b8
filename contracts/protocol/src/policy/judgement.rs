//! The judgement of a validation group by [`muster_core::validation`]: pay, scores, slashes, and departures from the network.

use crate::abi::{emit, IMuster::*};
use crate::flow::network::{Network, Served};
use crate::flow::queueing::{abort, redraw, SLASHED};
use crate::flow::release::release;
use crate::flow::reliability::{lower_reliability, may_work, raise_reliability};
use crate::flow::scores::{enter_score, kick_out};
use crate::flow::standing::{depart, restake, retained, withdraw_from_work, Next};
use crate::host::Host;
use crate::policy::group::drop_out;
use crate::policy::ruling::{Case, Mark, Part, Ruling, Settled};
use crate::policy::{rated, replicated, sampled};
use crate::store::groups::Group;
use crate::store::node::{NodeHandle, Unplaced};
use crate::store::task::{ModelSet, Task};
use crate::store::{accounts, receipts};
use muster_core::id::{NodeId, TaskId};
use muster_core::record::{Escrow, Membership, Node, Order, Phase, Policy, Receipt, Stage, Status, MEMBERS};
use muster_core::validation::Verdict;
use muster_core::word::{Address, Word};

/// Judges a group whose reveals are over: pays, scores, slashes, and frees its place. Only when no draw is due.
pub(crate) fn judge<H: Host>(net: &mut Network<'_, H>, group: &Group, order: &Order) {
    let case = Case::of(net, group, order);
    let ruling = match order.policy() {
        Policy::Rated { attempts, .. } => rated::rule(net, &case, attempts),
        Policy::Replicated => replicated::rule(net, &case),
        Policy::Single | Policy::Sampled { .. } => sampled::rule(net, &case),
    };
    let Ruling { settled, answerer, parts, start_fee } = ruling;
    let again = settled == Settled::Rescheduled;
    let Escrow { creator, fee, slash_times } = case.escrow;
    let refund = if answerer.is_some() || again { 0 } else { fee - start_fee };
    let answer = answerer.map_or(Word::ZERO, |i| case.answers[i]).to_be_bytes();
    if !again {
        let (state, node) = answerer.map_or((Receipt::UNDECIDED, NodeId(0)), |i| (Receipt::SUCCEEDED, group.members[i].node));
        receipts::close(net.host, order, state, node, 0, refund, &answer);
    }
    group.free(net.host);
    if again {
        // Before its members look for work: they call up other tasks only where there is room beside it.
        let escrow = Escrow { fee: fee - start_fee, ..case.escrow };
        let models = group.models(net.host, order);
        redraw(net, &Task { escrow, order: order.after_attempt(), models });
    }
    // A group is not scored where few nodes are idle. Its members' success raises H only if as many agree as a draw of one node needs
    // candidates.
    let right = |part: &Part| part.verdict == Verdict::Right;
    let agreed = parts[..case.count].iter().filter(|part| right(part)).count();
    let raises = order.scored() || agreed >= net.rules.boost_pool as usize;
    let open = case.open();
    for (i, member) in group.members.iter().enumerate().take(case.count) {
        let Part { verdict, paid, mark } = parts[i];
        let slash = if order.liable() && matches!(verdict, Verdict::Wrong | Verdict::Withheld) {
            slash_times as u128 * order.part(fee)
        } else {
            0
        };
        emit::<MemberJudged>(net.host, (order.id, member.node), (group.place, verdict as u8, paid));
        if i >= MEMBERS {
            net.served = Served::Full;
        }
        let open = i < MEMBERS && open[i];
        conclude(net, member, order, paid, (mark, raises && right(&parts[i])), (slash, open));
    }
    // After all slashes: none takes money that is only returned here.
    accounts::earn(net.host, start_fee);
    accounts::credit(net.host, creator, refund);
    let reserve = accounts::reserve(net.host);
    let told = (settled as u8, answer, refund, start_fee, reserve);
    emit::<GroupSettled>(net.host, (order.id, group.place, creator), told);
}

/// Applies a judgement to one member: pay, score, H, slash, and whether it is free again.
fn conclude<H: Host>(
    net: &mut Network<'_, H>,
    member: &Membership,
    order: &Order,
    paid: u128,
    (mark, raises): (Option<Mark>, bool),
    (slash, open): (u128, bool),
) {
    let mut handle = NodeHandle::load(net.host, member.node);
    let operator = handle.operator(net.host).account;
    accounts::credit(net.host, operator, paid);
    // It has let its deadline pass, and nobody has told it so.
    let late = member.stage == Stage::Running;
    // A withheld answer is no better than none in time, also where nothing can be slashed for it.
    let withheld = member.stage == Stage::Committed;
    if late || withheld {
        lower_reliability(net, &mut handle);
    }
    if late {
        emit::<MemberTimedOut>(net.host, (order.id, handle.id), (handle.order(net.host).group.0,));
    }
    if raises {
        raise_reliability(net, &mut handle, order.estimate);
    }
    let out = match mark {
        Some(Mark::Score(score)) => enter_score(net, &mut handle, score),
        Some(Mark::Rating(right)) => {
            handle.rate(net.host, right);
            emit::<NodeRated>(net.host, (handle.id,), (right,));
            false
        }
        None => false,
    };
    let held = handle.node.held();
    if open {
        handle.node.duties -= 1;
        handle.node.duties &= !Node::HELD;
    }
    let joined = handle.node.status != Status::Quit as u8;
    if slash > 0 {
        // A raise beyond the first least stake puts nobody out.
        let least = retained(net.terms().min_stake.min(net.rules.base));
        burn_stake(net, &mut handle, operator, order.id, slash, if joined { 0 } else { least });
        if joined && handle.node.stake < least {
            return expel(net, handle, held && open || late);
        }
    }
    if out && kick_out(net, &mut handle) {
        return;
    }
    // An idle node may be excluded by it.
    let set_back = withheld && handle.node.idle() && !may_work(net, &handle);
    if set_back {
        withdraw_from_work(net, &mut handle);
    }
    if held && open || late || set_back {
        release(net, Unplaced::of(handle), Next::WorkOrWait);
    } else {
        handle.put(net.host);
    }
}

/// Burns this much, in wei, of a node's stake (in whole stake units, rounded down), then of its operator's returned stake and credit. An
/// operator with less than `least` stake units of returned stake left never joins again.
fn burn_stake<H: Host>(net: &mut Network<'_, H>, handle: &mut NodeHandle, operator: Address, id: TaskId, wei: u128, least: u64) {
    let stake_unit = accounts::stake_unit(net.host) as u128;
    let stake_units = (wei / stake_unit).min(handle.node.stake as u128);
    let stake = stake_units * stake_unit;
    if stake_units > 0 {
        let left = handle.node.stake - stake_units as u64;
        restake(net, handle, left);
    }
    let (unbonding, credit, barred) = accounts::seize(net.host, operator, wei - stake, least);
    accounts::burn(net.host, stake + unbonding + credit);
    emit::<NodeSlashed>(net.host, (handle.id, operator, id), (stake, unbonding, credit));
    if barred {
        emit::<NodeKickedOut>(net.host, (handle.id, operator), ());
    }
}

/// Takes a node whose stake is too low out of the network, whatever it does. A task of its own is refunded, and a group that it has not
/// answered does without it. `nowhere` says that it has no task and stands in no list.
fn expel<H: Host>(net: &mut Network<'_, H>, mut handle: NodeHandle, nowhere: bool) {
    if handle.node.called() {
        let place = handle.assignment(net.host).group;
        handle.node.duties &= !Node::CALLED;
        let now = net.now;
        drop_out(net, place, handle.id, Stage::Gone, now);
    }
    if !nowhere {
        take_off_work(net, &mut handle);
    }
    handle.node.duties &= !Node::HELD;
    depart(net, Unplaced::of(handle), true);
}

/// Takes a node away from its task, or from the place where it waits for work.
fn take_off_work<H: Host>(net: &mut Network<'_, H>, handle: &mut NodeHandle) {
    let order = handle.order(net.host);
    if handle.node.running() {
        if let Phase::Member { place } = order.phase() {
            let moment = net.now.min(order.moment);
            return drop_out(net, place, handle.id, Stage::Gone, moment);
        }
        let task = Task { escrow: handle.escrow(net.host), order, models: ModelSet::default() };
        abort(net, &task, handle.id, SLASHED, 0, 0, None);
    } else if handle.node.parked == Node::RESERVED {
        handle.node.parked = 0;
    } else if handle.node.parked != 0 || handle.node.status == Status::Available as u8 {
        withdraw_from_work(net, handle);
    }
}
