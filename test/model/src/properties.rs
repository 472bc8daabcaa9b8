//! The properties of every state, whatever others do, and the owner within the bounds of parameters. The streams of random operations
//! ([`crate::drive`]) and the adversary's search ([`crate::search`]) have networks and people of their own; the properties that both check
//! stand here, with their bounds.
//!
//! | property | checked | when |
//! | --- | --- | --- |
//! | money | every wei that came in and did not go out is in one place | after every call |
//! | gas | a call costs no more than [`MOST_GAS`], whatever others have done | for every call in memory |
//! | progress | every task ends, by calls that anybody can make | streams: where they rest, and when nodes leave; search: every round |
//! | nobody stuck | nodes can leave, in a bounded time and by a bounded number of calls, and take their money | on copies: streams every 100 operations, search every 20 turns |
//! | no honest loss | nodes that keep to the rules lose nothing: neither stake, nor credit, nor their place | streams: nodes that leave; search: every slash and every departure |

use crate::meter::MOST_GAS;
use alloy_sol_types::{SolCall, SolInterface};
use muster_core::id::{NodeId, QueueId};
use muster_core::record::Phase;
use muster_core::word::Address;
use muster_protocol::abi::IMuster::{createTasksCall, dispatchCall, IMusterCalls};
use muster_protocol::store::accounts;
use muster_protocol::store::groups::{places, Group};
use muster_protocol::store::node::NodeHandle;
use muster_protocol::{Host, Network};

/// The violation, if there is one.
pub type Holds = Result<(), String>;

/// Fees of tasks are looked up in storage while no more than so many wait.
const WATCHED: u32 = 128;

/// Money: by storage alone, stakes, credit, returned stakes, the reserve, what was burnt, the treasury's income and the `fees` of open tasks
/// are all the wei that `came` in and did not go out. `people` are all that can own any.
pub fn money<H: Host>(net: &Network<H>, people: impl Iterator<Item = Address>, fees: u128, came: u128) -> Holds {
    let host = &*net.host;
    let stakes: u128 = seats(net).map(|seat| accounts::wei(host, seat.node.stake)).sum();
    let account = |person| accounts::account(host, person);
    let owed: u128 = people.map(account).map(|account| account.credit + accounts::wei(host, account.unbonding)).sum();
    let there = stakes + owed + accounts::reserve(host) + accounts::burnt(host) + accounts::income(host) + fees;
    if there == came {
        Ok(())
    } else {
        Err(format!("{there} wei there, {came} came in"))
    }
}

/// Money: storage holds the fees that open tasks have by somebody's books. It is not looked through while many tasks wait, unless `always`.
pub fn fees_of_books<H: Host>(net: &Network<H>, fees: u128, always: bool) -> Holds {
    if net.ring().len() + net.queued() > WATCHED && !always {
        return Ok(());
    }
    let held = fees_held(net);
    if held == fees {
        Ok(())
    } else {
        Err(format!("fees of {held} wei are held, {fees} by the books"))
    }
}

/// The fees that open tasks hold, by storage.
pub fn fees_held<H: Host>(net: &Network<H>) -> u128 {
    let host = &*net.host;
    // A group's fee is the group's.
    let alone = seats(net).filter(|seat| seat.node.running() && !matches!(seat.order(host).phase(), Phase::Member { .. }));
    let mut held: u128 = alone.map(|seat| seat.escrow(host).fee).sum();
    let groups = (1..=places(host).issued).filter_map(|place| Group::at(host, place));
    held += groups.map(|group| group.task(host).escrow.fee).sum::<u128>();
    for from in (0..net.ring().len()).step_by(256) {
        held += net.pending_tasks(from, 256).expect("a page").iter().map(|task| task.fee).sum::<u128>();
    }
    let queues = if net.queued() > 0 { net.queues(0, 256).expect("a page").1 } else { Vec::new() };
    for queue in queues {
        for from in (0..queue.places).step_by(256) {
            let page = net.queued_tasks(QueueId(queue.queue), from, 256).expect("a page").1;
            held += page.iter().map(|task| task.fee).sum::<u128>();
        }
    }
    held
}

fn seats<'n, H: Host>(net: &'n Network<H>) -> impl Iterator<Item = NodeHandle> + 'n {
    (1..=net.overview().nodesIssued).map(|node| NodeHandle::load(&*net.host, NodeId(node)))
}

/// Gas: of storage, logs and the start of the call. Callers of `dispatch` and `createTasks` choose how much these do.
pub fn gas(data: &[u8], gas: u64) -> Holds {
    let chosen = [dispatchCall::SELECTOR, createTasksCall::SELECTOR].iter().any(|selector| data.starts_with(selector));
    if chosen || gas <= MOST_GAS {
        Ok(())
    } else {
        Err(format!("{gas} gas: {:?}", IMusterCalls::abi_decode(data)))
    }
}

/// Progress: how long nothing has come nearer to its end.
pub struct Progress {
    most: u64,
    least: u64,
    vain: u64,
}

impl Progress {
    /// No more than `most` rounds in a row may leave as much to do as there was.
    pub fn within(most: u64, left: u64) -> Progress {
        Progress { most, least: left, vain: 0 }
    }

    /// After a round in which everything was called that anybody can call, so much is left.
    pub fn round(&mut self, left: u64) -> Holds {
        self.vain = if left < self.least { 0 } else { self.vain + 1 };
        self.least = self.least.min(left);
        if self.vain > self.most {
            return Err(format!("what was begun does not end: {left} left"));
        }
        Ok(())
    }
}

/// Seconds until the last node that leaves is gone, and the last group with one is judged: twice the longest window that can be set. Stakes
/// follow after `unbonding`.
const SECONDS: u64 = 131_070;
/// Calls of each node for itself, and of accounts that poke it.
const CALLS_EACH: u64 = 8;
/// Calls for each task and each group: a group of nine commits, reveals, is drawn and settled.
const CALLS_OF_TASK: u64 = 20;

/// A network that some of its nodes leave, while the others do as they like.
pub trait Leaving {
    /// Rounds that it takes at most.
    const ROUNDS: u64;
    /// The nodes that leave and have not left, or are still judged.
    fn staying(&mut self) -> Vec<u32>;
    /// The time.
    fn now(&mut self) -> u64;
    /// Everybody acts once, and some of the seconds that are left pass. Gives how many calls leaving has taken.
    fn round(&mut self, round: u64, left: u64) -> u64;
    /// How many nodes and tasks there have been since they began to leave.
    fn size(&mut self) -> (u64, u64);
    /// Returned stakes can be had, and their owners take them.
    fn paid(&mut self) -> Vec<Paid>;
}

/// The pay of somebody who has left, in wei.
pub struct Paid {
    /// Their address.
    pub to: Address,
    /// All they had when they began to leave; 0 for those who were judged for earlier answers.
    pub had: u128,
    /// The sum that they are owed at the end.
    pub owed: u128,
    /// The sum that they got.
    pub got: u128,
}

/// Nobody stuck, and no honest loss: all leave in time, by few calls, and with no less than they had.
pub fn leave<L: Leaving>(network: &mut L) -> Holds {
    let (begun, mut round, mut calls) = (network.now(), 0, 0);
    loop {
        let staying = network.staying();
        if staying.is_empty() {
            break;
        }
        let seconds = network.now() - begun;
        if round == L::ROUNDS || seconds > SECONDS {
            return Err(format!("cannot leave: {staying:?} after {seconds} seconds and {round} rounds"));
        }
        calls += network.round(round, SECONDS - seconds);
        round += 1;
    }
    let (nodes, tasks) = network.size();
    let most = CALLS_EACH * nodes + CALLS_OF_TASK * tasks;
    if calls > most {
        return Err(format!("leaving takes {calls} calls, of {most}"));
    }
    for Paid { to, had, owed, got } in network.paid() {
        if got != owed || got < had {
            return Err(format!("{to:?} had {had} wei, is owed {owed}, and is paid {got}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One node that leaves after so many rounds of a second, with so many calls in each; then it is paid.
    struct One {
        rounds: u64,
        calls: u64,
        seconds: u64,
        paid: [u128; 3],
    }

    impl Leaving for One {
        const ROUNDS: u64 = 600;
        fn staying(&mut self) -> Vec<u32> {
            if self.rounds > 0 {
                vec![1]
            } else {
                Vec::new()
            }
        }
        fn now(&mut self) -> u64 {
            self.seconds
        }
        fn round(&mut self, _: u64, left: u64) -> u64 {
            assert!(left <= SECONDS);
            self.rounds -= 1;
            self.seconds += 1;
            self.calls
        }
        fn size(&mut self) -> (u64, u64) {
            (1, 1)
        }
        fn paid(&mut self) -> Vec<Paid> {
            let [had, owed, got] = self.paid;
            vec![Paid { to: [1; 20], had, owed, got }]
        }
    }

    fn said(rounds: u64, calls: u64, paid: [u128; 3]) -> String {
        leave(&mut One { rounds, calls, seconds: 7, paid }).err().unwrap_or_default()
    }

    #[test]
    fn nodes_that_leave_late_with_many_calls_or_poorer_are_noticed() {
        assert_eq!(said(One::ROUNDS, 0, [5, 6, 6]), "");
        assert!(said(One::ROUNDS + 1, 0, [5, 6, 6]).contains("cannot leave: [1]"));
        assert_eq!(said(2, 14, [5, 5, 5]), "");
        assert!(said(2, 15, [5, 5, 5]).contains("30 calls, of 28"));
        assert!(said(1, 0, [5, 4, 4]).contains("had 5 wei"));
        assert!(said(1, 0, [5, 6, 5]).contains("is paid 5"));
    }

    #[test]
    fn rounds_in_vain_are_noticed() {
        let mut progress = Progress::within(2, 9);
        for left in [9, 9, 8, 8, 9] {
            progress.round(left).unwrap();
        }
        assert!(progress.round(8).unwrap_err().contains("8 left"));
    }

    #[test]
    fn a_call_that_costs_more_than_the_bound_is_noticed_unless_its_caller_chose_how_much_it_does() {
        assert!(gas(&[1, 2, 3, 4], MOST_GAS).is_ok());
        assert!(gas(&[1, 2, 3, 4], MOST_GAS + 1).is_err());
        assert!(gas(&dispatchCall::SELECTOR, MOST_GAS + 1).is_ok());
    }
}
