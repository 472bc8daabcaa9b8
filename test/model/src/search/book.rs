//! Who spent, earned and lost what, read from the logs alone.

use super::arena::{false_answer, Nature, Side};
use muster_core::validation::payment;
use muster_core::word::Address;
use muster_protocol::abi::IMuster::IMusterEvents as E;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Why an honest node was slashed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// Two of its group were the adversary's.
    Majority,
    /// The task has more than one right answer, by the will of who created it.
    Ambiguous,
    /// It had deviated.
    Deviated,
}

/// What the lives of one strategy came to. Amounts in wei.
#[derive(Clone, Default, Debug)]
pub struct Tally {
    /// Lives.
    pub lives: u64,
    /// Groups settled.
    pub groups: u64,
    /// Of these, groups in which two or three were the adversary's.
    pub majorities: u64,
    /// Calls of the adversary's that were accepted.
    pub calls: u64,
    /// What the adversary spent: its slashes, what others kept of its fees, GPU names.
    pub spent: u128,
    /// What its people had more at the end, beside what they spent.
    pub earned: i128,
    /// What honest nodes lost to slashes.
    pub burnt: BTreeMap<Cause, u128>,
    /// Honest nodes slashed.
    pub slashed: BTreeMap<Cause, u64>,
    /// What honest nodes were not paid for right answers that they had revealed in a group.
    pub withheld: u128,
    /// Change of the reserve.
    pub reserve: i128,
    /// False answers that were accepted.
    pub fooled: u64,
    /// Answers of honest nodes that deviated.
    pub deviations: u64,
    /// Draws that a meddling move would have changed, and could not be kept from.
    pub moved: u64,
    /// Moves looked at between a hash and its draw.
    pub looked: u64,
    /// Shares of the nodes that could be drawn as validators which were the adversary's, summed, in millionths, when a node of its own was validated.
    pub share: u64,
    /// Its shares of all nodes at those times, summed likewise.
    pub usual: u64,
    /// How often.
    pub shares: u64,
    /// Slashes by the status that the node had before, as in `IMuster.NodeView`.
    pub states: [u64; 7],
    /// Withdrawals refused because a commitment was open.
    pub locked: u64,
    /// Calls, accepted or refused, after which everything was checked.
    pub checked: u64,
}

impl Tally {
    /// Adds what other lives came to.
    pub fn add(&mut self, other: &Tally) {
        self.lives += other.lives;
        self.groups += other.groups;
        self.majorities += other.majorities;
        self.calls += other.calls;
        self.spent += other.spent;
        self.earned += other.earned;
        for (cause, wei) in &other.burnt {
            *self.burnt.entry(*cause).or_default() += wei;
        }
        for (cause, times) in &other.slashed {
            *self.slashed.entry(*cause).or_default() += times;
        }
        self.withheld += other.withheld;
        self.reserve += other.reserve;
        self.fooled += other.fooled;
        self.deviations += other.deviations;
        self.moved += other.moved;
        self.looked += other.looked;
        self.share += other.share;
        self.usual += other.usual;
        self.checked += other.checked;
        self.locked += other.locked;
        for (times, more) in self.states.iter_mut().zip(other.states) {
            *times += more;
        }
        self.shares += other.shares;
    }

    /// What honest nodes lost to slashes for this reason.
    pub fn burnt(&self, cause: Cause) -> u128 {
        self.burnt.get(&cause).copied().unwrap_or_default()
    }
}

/// A task as the logs show it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Who created it.
    pub side: Side,
    /// What it costs whoever answers wrongly, at most.
    pub part: u128,
    /// What a right answer is paid on average.
    pub fair: u128,
    /// What is left of the fee.
    fee: u128,
    /// What came back of the fee.
    back: u128,
    /// Nodes of its group.
    pub members: Vec<u32>,
    nature: Nature,
}

/// The books of a season.
#[derive(Debug, Default)]
pub struct Book {
    /// The present life.
    pub life: Tally,
    /// Open tasks.
    pub tasks: HashMap<u64, Entry>,
    /// Fees of tasks that have not ended.
    pub escrow: u128,
    /// Whose a node is, by its number.
    pub sides: HashMap<u32, Side>,
    /// Whose an address is.
    pub people: HashMap<Address, Side>,
    /// Answers of honest nodes that were not what they should have been.
    pub deviated: HashSet<(u64, u32)>,
    /// What the next tasks are like.
    pub next: Nature,
    /// The rate of sampling.
    pub sample_bps: u16,
    /// What status each node had before the call in hand.
    pub before: HashMap<u32, u8>,
    /// Slashes in fees.
    pub slash_times: u128,
    /// Wei in a granule.
    pub granule: u128,
}

impl Book {
    /// Whose a node is.
    pub fn side(&self, node: u32) -> Side {
        self.sides.get(&node).copied().unwrap_or(Side::Honest)
    }

    /// How many of these nodes are the adversary's.
    pub fn own(&self, nodes: &[u32]) -> usize {
        nodes.iter().filter(|n| self.side(**n) == Side::Adversary).count()
    }

    fn ends(&mut self, id: u64) {
        let entry = self.tasks.remove(&id).expect("a task ends once");
        self.escrow -= entry.fee;
        if entry.side == Side::Adversary {
            self.life.spent += entry.fee.saturating_sub(entry.back);
        }
    }

    fn back(&mut self, id: u64, wei: u128) {
        self.tasks.get_mut(&id).expect("an open task").back += wei;
    }

    fn paid(&mut self, id: u64, node: u32, wei: u128) {
        if self.side(node) == Side::Adversary {
            self.back(id, wei);
        }
    }

    /// Reads an event of a call by `from`; says what must not be.
    pub fn read(&mut self, from: Address, event: &E) -> Result<(), String> {
        match event {
            E::NodeJoined(e) => {
                let side = self.people[&e.operator.into_array()];
                self.sides.insert(e.node, side);
            }
            E::GpuGroupCreated(e) if self.people.get(&from) == Some(&Side::Adversary) => self.life.spent += e.fee,
            E::TaskCreated(e) => {
                let side = self.people[&e.creator.into_array()];
                let replicated = e.spec.redundancy == 2;
                let part = if replicated { e.fee / 3 } else { e.fee };
                let fair = if replicated { part } else { payment(e.fee, self.sample_bps) };
                let (back, members) = (0, Vec::new());
                self.tasks.insert(e.id, Entry { side, part, fair, fee: e.fee, back, members, nature: self.next });
                self.escrow += e.fee;
            }
            E::TaskSucceeded(e) => {
                self.paid(e.id, e.node, e.paid);
                self.life.fooled += u64::from(e.resultDigest == false_answer(e.id));
                self.ends(e.id);
            }
            E::TaskErrorReported(e) => {
                self.back(e.id, e.refund);
                self.ends(e.id);
            }
            E::TaskAborted(e) => {
                let driven = self.people.get(&e.beneficiary.into_array()) == Some(&Side::Adversary);
                self.back(e.id, e.refund + if driven { e.startFee } else { 0 });
                self.ends(e.id);
            }
            E::TaskSampled(e) => {
                // The start fee is spent, and everything later goes by what is left.
                self.escrow -= e.paid;
                let driven = self.people.get(&e.beneficiary.into_array()) == Some(&Side::Adversary);
                let entry = self.tasks.get_mut(&e.id).expect("an open task");
                entry.fee -= e.paid;
                entry.part = entry.fee;
                entry.fair = payment(entry.fee, self.sample_bps);
                if entry.side == Side::Adversary && !driven {
                    self.life.spent += e.paid;
                }
            }
            E::GroupFormed(e) => {
                let own = self.own(&e.nodes);
                self.life.majorities += u64::from(own >= 2);
                self.tasks.get_mut(&e.id).expect("an open task").members.clone_from(&e.nodes);
            }
            E::MemberJudged(e) => {
                self.paid(e.id, e.node, e.paid);
                // Right, wrong or open: it has answered.
                let answered = matches!(e.verdict, 1 | 2 | 6);
                let honest = self.side(e.node) == Side::Honest && !self.deviated.contains(&(e.id, e.node));
                if honest && answered && e.paid == 0 {
                    self.life.withheld += self.tasks[&e.id].fair;
                }
            }
            E::NodeSlashed(e) => self.slashed(e.node, e.id, e.stake + e.unbonding + e.credit)?,
            E::GroupSettled(e) => {
                self.life.groups += 1;
                self.life.fooled += u64::from(e.answer == false_answer(e.id));
                self.back(e.id, e.refund);
                self.ends(e.id);
            }
            _ => {}
        }
        Ok(())
    }

    fn slashed(&mut self, node: u32, id: u64, wei: u128) -> Result<(), String> {
        if let Some(status) = self.before.get(&node) {
            self.life.states[*status as usize] += 1;
        }
        let entry = &self.tasks[&id];
        let owed = self.slash_times * entry.part;
        if wei > owed || wei + self.granule < owed {
            return Err(format!("node {node} owed {owed} for task {id}, and {wei} was taken"));
        }
        if self.side(node) == Side::Adversary {
            self.life.spent += wei;
            return Ok(());
        }
        let cause = if self.deviated.contains(&(id, node)) {
            Cause::Deviated
        } else if self.own(&entry.members) >= 2 {
            Cause::Majority
        } else if entry.nature == Nature::Ambiguous {
            Cause::Ambiguous
        } else {
            return Err(format!("a minority of {:?} took the stake of honest node {node} by task {id}", entry.members));
        };
        *self.life.burnt.entry(cause).or_default() += wei;
        *self.life.slashed.entry(cause).or_default() += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formed(nodes: &[u32]) -> Book {
        let mut book = Book { slash_times: 20, granule: 1, ..Book::default() };
        book.sides.extend([(1, Side::Honest), (2, Side::Honest), (3, Side::Adversary), (4, Side::Adversary)]);
        let entry =
            Entry { side: Side::Honest, part: 10, fair: 10, fee: 30, back: 0, members: nodes.to_vec(), nature: Nature::Plain };
        book.tasks.insert(7, entry);
        book
    }

    #[test]
    fn a_minority_that_takes_an_honest_stake_is_noticed() {
        assert!(formed(&[1, 2, 3]).slashed(1, 7, 200).unwrap_err().contains("a minority"));
        assert!(formed(&[1, 3, 4]).slashed(1, 7, 200).is_ok());
        assert!(formed(&[1, 2, 3]).slashed(3, 7, 200).is_ok());
        let mut slipped = formed(&[1, 2, 3]);
        slipped.deviated.insert((7, 1));
        assert!(slipped.slashed(1, 7, 200).is_ok());
        assert_eq!(slipped.life.burnt(Cause::Deviated), 200);
    }

    #[test]
    fn a_slash_of_more_or_less_than_is_owed_is_noticed() {
        for wei in [198, 201] {
            assert!(formed(&[1, 2, 3]).slashed(3, 7, wei).unwrap_err().contains("owed 200"), "{wei}");
        }
    }
}
