//! Serving: the due work that every state-changing call does for others before its own, within bounds.

use crate::flow::due::Due;
use crate::flow::gas::{demand_gas, CALL_GAS, CHEAP_DRAW_GAS, MORE_DRAW_GAS};
use crate::flow::network::{Network, Served};
use crate::flow::release::readmit;
use crate::flow::start::{distribute_for_group, draw_by};
use crate::host::{Host, Program};
use crate::inner::{formNextCall, formRatedCall, serveCall};
use crate::policy::rated::form_rated;
use crate::policy::replicated::form_replicated;
use crate::policy::sampled::form_around;
use crate::store::node::NodeHandle;
use crate::Result;
use alloy_sol_types::SolCall;
use muster_core::record::Policy;

/// Most tasks that one `dispatch` serves.
pub const DISPATCH_MAX: u8 = 16;
/// Pending tasks that any state-changing call draws before its own work.
pub const SERVED_PER_CALL: u32 = 2;
/// Pending tasks drawn by a call that needs all due draws made.
pub const SETTLED_PER_CALL: u32 = 8;
/// Excluded nodes whose time has come that any state-changing call re-admits.
pub const READMITTED_PER_CALL: u32 = 1;
/// Words (`Host::reads`) that a call may read for draws that are not its own purpose. It makes another one only if that will hardly exceed
/// this.
pub const SERVING_READS: u32 = 208;
/// Reads assumed for a draw and its start, without models or with one: some 20 where nothing is unusual.
const DRAW_READS: u32 = 24;
/// The same with several models, whose holders must be looked at one by one.
const DRAW_READS_SEVERAL: u32 = 96;
/// Reads charged for each task that a call creates beside others, of the words that it could read for draws.
const CREATION_READS: u32 = 8;
/// The same for joining.
pub(crate) const JOINING_READS: u32 = 30;
/// The same for a new GPU group.
pub(crate) const GROUP_READS: u32 = 70;
/// The same for each model that a call adds to a node.
pub(crate) const MODEL_READS: u32 = 9;
/// The same for judging a group.
pub(crate) const JUDGING_READS: u32 = 64;
/// The same where members have withheld, who may all be slashed out of the network: it makes no draw of several models beside.
pub(crate) const SLASHING_READS: u32 = SERVING_READS - DRAW_READS_SEVERAL;

impl<'h, H: Host> Network<'h, H> {
    /// Opens the network for a state-changing call and serves due work: two tasks, fewer if the first was expensive, and one excluded node.
    pub fn open_and_serve(host: &'h mut H) -> Result<Self> {
        let mut net = Network::open(host)?;
        serve_up_to(&mut net, SERVED_PER_CALL);
        if net.has_room() {
            readmit(&mut net, READMITTED_PER_CALL);
        }
        Ok(net)
    }
}

/// Makes due draws until the call has made `most`, or the next could read more than [`SERVING_READS`]; the first also then, unless the call
/// itself does much.
#[inline(never)]
fn serve_up_to<H: Host>(net: &mut Network<'_, H>, most: u32) {
    if !net.host.starts_tasks() {
        if !net.served.is_below(most) || net.next_due().is_none() {
            return;
        }
        let read = net.reads();
        let answer = net.call_program(Program::Work, serveCall::SELECTOR, [most.into(), net.served.number().into(), read.into()]);
        // If it ran out of gas, calls that need the draws made will refuse.
        net.served = Served::of(answer.map_or(most, |answer| (answer >> 32) as u32));
        return;
    }
    while net.served.is_below(most) {
        let Some(next) = net.next_due() else { return };
        let (reads, last) = match next {
            Due::Task(_, order) if order.several() => (SERVING_READS, true),
            Due::Task(_, order) if order.models > 1 => (DRAW_READS_SEVERAL, false),
            Due::Task(..) => (DRAW_READS, false),
            Due::ValidatorDraw(..) => (SERVING_READS, true),
        };
        // Calls that need every due draw made are already expensive, so refuse them while a multi-node draw is due.
        if last && most > SERVED_PER_CALL {
            return;
        }
        // The first always, but for calls that themselves do much.
        if net.reads() + reads > SERVING_READS && (net.served != Served::Draws(0) || !net.has_room()) {
            return;
        }
        if !serve_next(net, next) {
            return;
        }
        if last {
            net.served = Served::Spent;
        }
    }
}

impl<H: Host> Network<'_, H> {
    /// Makes draws for another program, which has already made `served` and read this many words; returns how many are made by then.
    pub fn serve_for(&mut self, most: u32, served: u32, read: u32) -> u32 {
        self.served = Served::of(served);
        self.begin_after(read);
        serve_up_to(self, most);
        self.served.number()
    }
}

/// Makes the draws that are due, at most [`SETTLED_PER_CALL`] in all; refuses if some are left.
#[inline(never)]
pub(crate) fn settled<H: Host>(net: &mut Network<'_, H>) -> Result<()> {
    serve_up_to(net, SETTLED_PER_CALL);
    ensure!(!net.draws_due(), DrawsDue(net.ring.len() + net.validator_draws.len()));
    Ok(())
}

/// Makes cheap draws that are due, of one node and at most one model, for a call that creates so many tasks; refuses if some are left.
#[inline(never)]
pub(crate) fn settle_cheaply<H: Host>(net: &mut Network<'_, H>, tasks: u32) -> Result<()> {
    if net.next_due().is_some_and(|due| due.is_cheap()) {
        // Creating its tasks leaves fewer reads for draws.
        net.host.charge(tasks * CREATION_READS);
        serve_up_to(net, SETTLED_PER_CALL);
    }
    ensure!(!net.draws_due(), DrawsDue(net.ring.len() + net.validator_draws.len()));
    Ok(())
}

impl<H: Host> Network<'_, H> {
    /// Makes up to `most` draws whose block has come; gives how many.
    ///
    /// First come, first drawn. One that stays undecided, or whose block's hash is no longer known,
    /// gets a new block and goes to the end; one of nodes chosen by their ratings can take two.
    pub fn serve(&mut self, most: u32) -> u32 {
        let mut served = 0;
        while served < most {
            let Some(next) = self.next_due() else { break };
            let bound = if next.is_cheap() { CHEAP_DRAW_GAS } else { CALL_GAS };
            // The caller has brought the gas for the first.
            if served > 0 && self.host.gas() < bound {
                break;
            }
            if !serve_next(self, next) {
                break;
            }
            served += 1;
        }
        served
    }
}

/// Makes the next draw; false if it takes more gas than there is.
#[inline(never)]
fn serve_next<H: Host>(net: &mut Network<'_, H>, next: Due) -> bool {
    net.served.count();
    let first = match next {
        Due::Task(slot, order) if !order.several() => (slot, order),
        Due::Task(_, order) => return serve_several(net, order.rated()),
        Due::ValidatorDraw(..) => return serve_several(net, false),
    };
    let task = net.ring.take(net.host, first);
    draw_by(net, &task, task.order.moment);
    true
}

/// Makes the next draw, which is of several nodes, `rated` ones or not; false if it takes more gas than there is.
fn serve_several<H: Host>(net: &mut Network<'_, H>, rated: bool) -> bool {
    let place = if rated && net.host.is(Program::Reputation) {
        form_next_rated(net)
    } else if !rated && net.host.is(Program::Draws) {
        net.form_next()
    } else {
        let (program, selector) =
            if rated { (Program::Reputation, formRatedCall::SELECTOR) } else { (Program::Draws, formNextCall::SELECTOR) };
        let Some(answer) = net.call_program(program, selector, [0; 3]) else { return false };
        (answer >> 32) as u32
    };
    if place > 0 {
        distribute_for_group(net, place);
    }
    true
}

impl<H: Host> Network<'_, H> {
    /// See `IMuster.formGroup`: draws the validators of the first call that waits, if its draw is the next.
    pub fn form(&mut self) -> bool {
        match self.next_due() {
            Some(Due::ValidatorDraw(at, waiting)) => form_around(self, at, &waiting),
            _ => return false,
        }
        true
    }

    /// Makes the next draw, if it is of several nodes; gives the place of a group for whose models there is room to ask others.
    pub(crate) fn form_next(&mut self) -> u32 {
        match self.next_due() {
            Some(Due::ValidatorDraw(at, waiting)) => form_around(self, at, &waiting),
            Some(Due::Task(at, order)) if matches!(order.policy(), Policy::Replicated) => {
                return form_replicated(self, at, &order);
            }
            _ => {}
        }
        0
    }
}

/// Makes the next draw, if it is one of nodes chosen by their ratings; gives what [`Network::form_next`] does.
pub(crate) fn form_next_rated<H: Host>(net: &mut Network<'_, H>) -> u32 {
    match net.next_due() {
        Some(Due::Task(at, order)) if order.rated() => form_rated(net, at, &order),
        _ => 0,
    }
}

/// The node of the caller, for a call that can change the candidates of a draw.
pub(crate) fn own_settled_seat<H: Host>(net: &mut Network<'_, H>) -> Result<NodeHandle> {
    settled(net)?;
    Ok(net.own_seat()?.0)
}

/// The node that the caller is the operator of, for such a call.
pub(crate) fn owned_settled_seat<H: Host>(net: &mut Network<'_, H>) -> Result<NodeHandle> {
    settled(net)?;
    let (handle, works) = net.own_seat()?;
    ensure!(!works, NotTheOperator(handle.id, net.host.sender()));
    Ok(handle)
}

impl<H: Host> Network<'_, H> {
    /// See `IMuster.dispatch`.
    pub fn dispatch(&mut self, count: u8) -> Result<u8> {
        ensure!(count <= DISPATCH_MAX, TooManyAtOnce(count, DISPATCH_MAX));
        demand_gas(self.host, CALL_GAS + count.saturating_sub(1) as u64 * MORE_DRAW_GAS)?;
        let served = self.serve(count as u32);
        readmit(self, READMITTED_PER_CALL);
        Ok(served as u8)
    }
}
