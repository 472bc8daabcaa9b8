//! Nobody honest is stuck: now and then all honest nodes leave, on a copy, while the adversary goes on with its plan.

use super::agents::Game;
use super::parties::Side;
use crate::world::{parameter, who};
use muster_core::record::Status;
use muster_protocol::abi::IMuster::*;
use muster_protocol::store::accounts;

/// Turns from one departure to the next.
pub const DEPARTURES: u64 = 20;
/// Turns until the last honest node is gone and the last group with one is judged.
const TURNS: u64 = 600;
/// Seconds until then: twice the longest window that can be set. Stakes follow after `unbonding`.
const SECONDS: u64 = 131_070;

impl Game {
    /// All honest nodes leave, on a copy. Stops where one cannot, or not with its money.
    pub fn honest_leave(&mut self) {
        let mut game = self.clone();
        game.a.place.push_str(", where all honest nodes leave");
        let (begun, mut turns) = (game.a.w.mem.now, 0);
        loop {
            let staying = game.a.nodes(Side::Honest).into_iter().filter(|node| game.stays(*node)).collect::<Vec<_>>();
            if staying.is_empty() {
                break;
            }
            if turns == TURNS || game.a.w.mem.now - begun > SECONDS {
                game.a.fail(&format!("cannot leave: {staying:?}"));
            }
            for node in staying {
                let from = game.a.operator(node);
                // Of one that is paused when its task is over, its operator asks again then.
                if matches!(Status::new(game.a.seat(node).node.status), Status::Available | Status::Busy | Status::Paused) {
                    game.a.must(from, 0, quitCall {});
                }
            }
            game.driven(Side::Honest);
            game.plot();
            game.work(Side::Honest);
            game.pass();
            turns += 1;
        }
        let unbonding = game.a.w.ask(parameterCall { which: parameter("unbonding") }).value;
        game.a.next_block(unbonding.to(), None);
        for person in game.a.people.clone().into_iter().filter(|person| person.side == Side::Honest) {
            let (from, paid) = (who(person.number), game.a.w.mem.paid);
            let account = accounts::account(&game.a.w.mem, from);
            let owed = account.credit + accounts::wei(&game.a.w.mem, account.unbonding);
            if owed > 0 {
                game.a.must(from, 0, withdrawCall { to: from.into() });
            }
            if game.a.w.mem.paid - paid != owed {
                game.a.fail(&format!("{} is owed {owed} wei, and is paid {}", person.number, game.a.w.mem.paid - paid));
            }
        }
        self.a.book.life.departures += 1;
    }

    /// Whether a node has joined, or is still judged.
    fn stays(&mut self, node: u32) -> bool {
        let record = self.a.seat(node).node;
        let member = |group: &muster_protocol::IMuster::GroupView| group.members.iter().any(|member| member.node == node);
        record.status != Status::Quit as u8 || record.open() > 0 || self.a.groups().iter().any(member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::life::open;
    use muster_core::record::Node;

    #[test]
    #[should_panic(expected = "cannot leave")]
    fn a_node_that_is_reserved_for_no_task_is_noticed() {
        let (mut game, _) = open(1, &[5], &[]);
        let node = game.a.nodes(Side::Honest)[0];
        let from = game.a.operator(node);
        game.a.must(from, 0, pauseCall {});
        let mut seat = game.a.seat(node);
        (seat.node.status, seat.node.parked) = (Status::Busy as u8, Node::RESERVED);
        seat.put(&mut game.a.w.mem);
        game.honest_leave();
    }
}
