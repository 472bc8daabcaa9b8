//! Nobody honest is stuck ([`properties::leave`]): now and then all honest nodes leave, on a copy, while the adversary goes on with its plan.

use super::agents::Game;
use super::arena::Person;
use super::parties::Side;
use crate::properties::{self, Leaving, Paid};
use crate::world::{parameter, who};
use muster_core::record::Status;
use muster_protocol::abi::IMuster::*;

/// Turns from one departure to the next.
pub const DEPARTURES: u64 = 20;

/// The honest nodes leave.
struct Departure {
    game: Game,
    /// Honest people, with the wei that each had.
    people: Vec<(Person, u128)>,
    /// Tasks that were open when they began to leave, and those issued until then.
    tasks: [u64; 2],
}

impl Game {
    /// All honest nodes leave, on a copy. Stops where one cannot, or not with its money.
    pub fn honest_leave(&mut self) {
        let mut game = self.clone();
        game.a.place.push_str(", where all honest nodes leave");
        let honest = game.a.people.iter().filter(|person| person.side == Side::Honest);
        let people = honest.map(|person| (person.clone(), game.a.owned(person))).collect();
        let tasks = [game.a.book.tasks.len() as u64, game.a.w.ask(overviewCall {}).tasks];
        let mut departure = Departure { game, people, tasks };
        let holds = properties::leave(&mut departure);
        departure.game.a.must_hold(holds);
        self.a.book.life.departures += 1;
    }
}

impl Leaving for Departure {
    /// Under a flood of tasks a round takes seconds.
    const ROUNDS: u64 = 6_000;

    /// One that has left stays in a group until that is settled.
    fn staying(&mut self) -> Vec<u32> {
        let groups = self.game.a.groups();
        let member = |node: u32| groups.iter().any(|group| group.members.iter().any(|member| member.node == node));
        let nodes = self.game.a.nodes(Side::Honest);
        let mut stays = |node: &u32| {
            let record = self.game.a.seat(*node).node;
            record.status != Status::Quit as u8 || record.open() > 0 || member(*node)
        };
        nodes.into_iter().filter(|node| stays(node)).collect()
    }

    fn now(&mut self) -> u64 {
        self.game.a.w.mem.now
    }

    fn round(&mut self, _: u64, _: u64) -> u64 {
        let made = self.game.a.of_nodes;
        for node in self.staying() {
            let from = self.game.a.operator(node);
            // Of one that is paused when its task is over, its operator asks again then.
            if matches!(Status::new(self.game.a.seat(node).node.status), Status::Available | Status::Busy | Status::Paused) {
                self.game.a.must(from, 0, quitCall {});
            }
        }
        self.game.driven(Side::Honest);
        self.game.plot();
        self.game.work(Side::Honest);
        self.game.pass();
        self.game.a.of_nodes - made
    }

    fn size(&mut self) -> (u64, u64) {
        let [open, issued] = self.tasks;
        (self.people.len() as u64, open + self.game.a.w.ask(overviewCall {}).tasks - issued)
    }

    fn paid(&mut self) -> Vec<Paid> {
        let unbonding = self.game.a.w.ask(parameterCall { which: parameter("unbonding") }).value;
        self.game.a.next_block(unbonding.to(), None);
        let mut all = Vec::new();
        for (person, had) in self.people.clone() {
            let (to, owed, before) = (who(person.number), self.game.a.owned(&person), self.game.a.w.mem.paid);
            if owed > 0 {
                self.game.a.must(to, 0, withdrawCall { to: to.into() });
            }
            // A majority of the adversary's may slash it, and so may it itself by an answer that deviates: the books know.
            let had = if self.game.a.book.excused.contains(&person.node) { 0 } else { had };
            all.push(Paid { to, had, owed, got: self.game.a.w.mem.paid - before });
        }
        all
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
