//! How a validation group is judged by [`muster_core::validation`]: pay, scores, slashes, and who leaves the network for it.

use crate::abi::{emit, IMuster::*};
use crate::flow::network::Network;
use crate::flow::queueing::{abort, redraw, SLASHED};
use crate::flow::release::release;
use crate::flow::reliability::{lower_reliability, raise_reliability};
use crate::flow::scores::{enter_score, kick_out};
use crate::flow::standing::{depart, restake, withdraw_from_work, Next};
use crate::host::Host;
use crate::policy::group::{drop_out, same};
use crate::policy::rated::count_settled;
use crate::policy::sampled::paid_alone;
use crate::store::groups::Group;
use crate::store::node::Seat;
use crate::store::task::{ModelSet, Task};
use crate::store::{accounts, receipts};
use alloc::vec::Vec;
use muster_core::id::{NodeId, TaskId};
use muster_core::qos::share_bps;
use muster_core::record::{Escrow, Membership, Node, Order, Phase, Policy, Receipt, Stage, Status, MEMBERS, MEMBERS_MOST};
use muster_core::reputation::vote_by;
use muster_core::validation;
use muster_core::validation::{shares, Member, Outcome, Pot, Verdict};
use muster_core::word::{Address, Word};

/// Outcomes of `IMuster.GroupSettled`.
const AGREED: u8 = 0;
const ALONE: u8 = 1;
const DIFFERING: u8 = 2;
const UNANSWERED: u8 = 3;
const RESCHEDULED: u8 = 4;

/// What a judgement enters for a member.
enum Mark {
    /// A score, which counts for its rating too.
    Score(u8),
    /// Whether it was right, for its rating only.
    Rating(bool),
}

/// Judges a group whose reveals are over: pays, scores, slashes, and frees its place. Only when no draw is due.
pub(crate) fn judge<H: Host>(net: &mut Network<'_, H>, group: Group, order: &Order) {
    if order.rated() {
        return judge_rated(net, &group, order);
    }
    let (limits, escrow) = (net.limits(), group.escrow(net.host));
    let answers: [Word; MEMBERS] = core::array::from_fn(|i| match group.members[i].stage {
        Stage::Answered | Stage::Failed => group.answer(net.host, i),
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
    let judgement = validation::judge(&members, |a, b| same(order, &limits, a, b));
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
            accounts::save(net.host, fee - pot.fee);
            paid = shares(pot.fee + accounts::draw_reserve(net.host, pot.reserve), &judgement.scores);
            (AGREED, Some(fastest))
        }
        // Of three that began at once none was there first.
        Outcome::Alone(0) if !replicated => {
            paid[0] = single;
            accounts::save(net.host, fee - single);
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
    receipts::close(net.host, order, state, node, 0, refund, &answer.to_be_bytes());
    group.free(net.host);
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
        emit::<MemberJudged>(net.host, (order.id, member.node), (group.place, judgement.verdicts[i] as u8, paid[i]));
        conclude(net, member, order, paid[i], mark, slash);
    }
    // After all slashes: none takes what is only given back here.
    accounts::earn(net.host, start_fee);
    accounts::credit(net.host, escrow.creator, refund);
    let reserve = accounts::reserve(net.host);
    let told = (outcome, answer.to_be_bytes(), refund, start_fee, reserve);
    emit::<GroupSettled>(net.host, (order.id, group.place, escrow.creator), told);
}

/// Judges a group chosen by ratings: whoever agrees with more than half of it is right (the paper of
/// [`muster_core::reputation`], section 3.3). Where nobody is, the task goes to another group, as often as its application's profile
/// allows; each group that finds no majority costs it a start fee. Answers are rated by a majority only, and errors never: else
/// tasks without a right answer would lower the ratings of everybody who tries.
fn judge_rated<H: Host>(net: &mut Network<'_, H>, group: &Group, order: &Order) {
    let (limits, task) = (net.limits(), group.task(net.host));
    let members: Vec<&Membership> = group.members.iter().filter(|m| m.stage != Stage::None).collect();
    let answer = |i: usize| group.answer(net.host, i);
    let answers: Vec<Option<Word>> =
        members.iter().enumerate().map(|(i, m)| (m.stage == Stage::Answered).then(|| answer(i))).collect();
    let mut right = [false; MEMBERS_MOST];
    let winner = vote_by(&answers, &mut right[..members.len()], |a, b| same(order, &limits, a, b));
    let profile = count_settled(net, task.escrow.creator, winner.is_some(), members.len() as u32);
    let (fee, creator, scored) = (task.escrow.fee, task.escrow.creator, order.scored());
    let again = winner.is_none() && matches!(order.policy(), Policy::Rated { attempts, .. } if attempts < profile.reschedules);
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
        receipts::close(net.host, order, state, node, 0, refund, &answer);
    }
    group.free(net.host);
    if again {
        // Before its members look for work: they call up other tasks only where there is room beside it.
        let escrow = Escrow { fee: fee - start_fee, ..task.escrow };
        redraw(net, &Task { escrow, order: order.after_attempt(), ..task });
    }
    let failed = members.iter().filter(|m| m.stage == Stage::Failed).count();
    let (mut left, mut pot) = (0, 0);
    if winner.is_some() {
        left = right.iter().filter(|&&right| right).count() as u128;
        pot = Pot::of_fee(fee, members.len(), failed).fee;
        accounts::save(net.host, fee - pot);
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
        emit::<MemberJudged>(net.host, (order.id, member.node), (group.place, verdict as u8, paid));
        let counts = scored && !matches!(verdict, Verdict::Open | Verdict::Failed);
        if i >= MEMBERS {
            // Who is freed by now finds work in later calls.
            net.spend();
        }
        conclude(net, member, order, paid, counts.then_some(Mark::Rating(verdict == Verdict::Right)), 0);
    }
    accounts::earn(net.host, start_fee);
    accounts::credit(net.host, creator, refund);
    let reserve = accounts::reserve(net.host);
    emit::<GroupSettled>(net.host, (order.id, group.place, creator), (outcome, answer, refund, start_fee, reserve));
}

/// What a judgement is for one member: pay, score, H, slash, and whether it is free again.
fn conclude<H: Host>(net: &mut Network<'_, H>, member: &Membership, order: &Order, paid: u128, mark: Option<Mark>, slash: u128) {
    let mut seat = Seat::load(net.host, member.node);
    let operator = seat.operator(net.host).account;
    accounts::credit(net.host, operator, paid);
    // It has let its deadline pass, and nobody has told it so.
    let late = member.stage == Stage::Running;
    if late {
        lower_reliability(net, &mut seat);
        emit::<MemberTimedOut>(net.host, (order.id, seat.id), (seat.order(net.host).group.0,));
    }
    if matches!(mark, Some(Mark::Score(1..) | Mark::Rating(true))) {
        raise_reliability(net, &mut seat, order.estimate);
    }
    let out = match mark {
        Some(Mark::Score(score)) => enter_score(net, &mut seat, score),
        Some(Mark::Rating(right)) => {
            seat.rate(net.host, right);
            emit::<NodeRated>(net.host, (seat.id,), (right,));
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
        burn_stake(net, &mut seat, operator, order.id, slash);
        if joined && seat.node.stake < net.terms().min_stake {
            return expel(net, seat, held && counted || late);
        }
    }
    if out && joined && kick_out(net, &mut seat) {
        return;
    }
    if held && counted || late {
        release(net, seat, Next::WorkOrWait);
    } else {
        seat.put(net.host);
    }
}

/// Burns this much, in wei, of a node's stake (in whole granules, rounded down), then of its operator's returned stake and credit. The
/// operator never joins again.
fn burn_stake<H: Host>(net: &mut Network<'_, H>, seat: &mut Seat, operator: Address, id: TaskId, wei: u128) {
    let granule = accounts::granule(net.host) as u128;
    let granules = (wei / granule).min(seat.node.stake as u128);
    let stake = granules * granule;
    if granules > 0 {
        let left = seat.node.stake - granules as u64;
        restake(net, seat, left);
    }
    let (unbonding, credit) = accounts::seize(net.host, operator, wei - stake, true);
    accounts::burn(net.host, stake + unbonding + credit);
    emit::<NodeSlashed>(net.host, (seat.id, operator, id), (stake, unbonding, credit));
}

/// Takes a node whose stake is too low out of the network, whatever it does: a task of its own is refunded, a group that it has not
/// answered does without. `nowhere` says that it has no task and stands in no list.
fn expel<H: Host>(net: &mut Network<'_, H>, mut seat: Seat, nowhere: bool) {
    if seat.node.called() {
        let place = seat.duty(net.host).group;
        seat.node.duties &= !Node::CALLED;
        let now = net.now;
        drop_out(net, place, seat.id, Stage::Gone, now);
    }
    if !nowhere {
        take_off_work(net, &mut seat);
    }
    seat.node.duties &= !Node::HELD;
    depart(net, seat, true);
}

/// Takes a node away from what it does, or from where it waits for work.
fn take_off_work<H: Host>(net: &mut Network<'_, H>, seat: &mut Seat) {
    let order = seat.order(net.host);
    if seat.node.running() {
        if let Phase::Member { place } = order.phase() {
            let moment = net.now.min(order.moment);
            return drop_out(net, place, seat.id, Stage::Gone, moment);
        }
        let task = Task { escrow: seat.escrow(net.host), order, models: ModelSet::default() };
        abort(net, &task, seat.id, SLASHED, 0, 0, None);
    } else if seat.node.parked == Node::RESERVED {
        seat.node.parked = 0;
    } else if seat.node.parked != 0 || seat.node.status == Status::Available as u8 {
        withdraw_from_work(net, seat);
    }
}
