//! Everybody's spending, earnings and losses, read from the logs alone.

use super::parties::{false_answer, Nature, Side};
use crate::model::RESCHEDULES;
use muster_core::validation::payment;
use muster_core::word::Address;
use muster_protocol::abi::IMuster::IMusterEvents as E;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The outcome of a rated group after which its task goes to another.
const RESCHEDULED: u8 = 4;
/// Nodes that its scope needs for a task to be scored.
pub const POOL: usize = 9;

/// Why an honest node was slashed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// Two of its group were the adversary's.
    Majority,
    /// The task has more than one right answer, by the will of its creator.
    Ambiguous,
    /// It had deviated.
    Deviated,
}

/// The results of the lives of one strategy. Amounts in wei.
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
    /// The adversary's spending: its slashes, the part of its fees that others kept, GPU names.
    pub spent: u128,
    /// The gain of its people at the end, beside that spending.
    pub earned: i128,
    /// The losses of honest nodes to slashes.
    pub burnt: BTreeMap<Cause, u128>,
    /// Honest nodes slashed.
    pub slashed: BTreeMap<Cause, u64>,
    /// The unpaid pay of honest nodes for right answers that they had revealed in a group.
    pub withheld: u128,
    /// Of that, in the adversary's tasks.
    pub unpaid: u128,
    /// Change of the reserve.
    pub reserve: i128,
    /// False answers that were accepted.
    pub fooled: u64,
    /// Answers of honest nodes that deviated.
    pub deviations: u64,
    /// Its spending on tasks, in hundredths of the offer for one node's work on each.
    pub parts: u64,
    /// Gas of the adversary's calls: storage, logs and their start.
    pub gas: u64,
    /// Lives without groups, under policy 0.
    pub alone: u64,
    /// The reserve's loss to the adversary's tasks, less their payments into it, and less the effect of the lot alone.
    pub drained: i128,
    /// The same of each life, in tokens, squared and summed: the luck that is still in it.
    pub spread: f64,
    /// Scores of 0 of honest nodes for their answers or reports, without deviating.
    pub zeros: u64,
    /// Wrong ratings of honest nodes likewise.
    pub misrated: u64,
    /// Of both, those for an error, or for an answer that no majority contradicted.
    pub blamed: u64,
    /// Of these, those in tasks of honest applications.
    pub strangers: u64,
    /// Slashes owed by the adversary's first nodes that an honest majority found wrong, and that were not taken.
    pub spared: u128,
    /// Seconds for which the adversary's tasks held honest nodes that cannot answer them.
    pub held: u64,
    /// Draws that a meddling move would have changed, and could not be kept from.
    pub moved: u64,
    /// Moves looked at between a hash and its draw.
    pub looked: u64,
    /// When a node of the adversary's was validated: the adversary's shares of the nodes that could be drawn as validators, summed, in
    /// millionths.
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
    /// How often all honest nodes have left, on a copy.
    pub departures: u64,
}

impl Tally {
    /// Adds the results of other lives.
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
        self.unpaid += other.unpaid;
        self.reserve += other.reserve;
        self.fooled += other.fooled;
        self.deviations += other.deviations;
        self.gas += other.gas;
        self.parts += other.parts;
        self.alone += other.alone;
        self.drained += other.drained;
        self.spread += other.spread;
        self.zeros += other.zeros;
        self.misrated += other.misrated;
        self.blamed += other.blamed;
        self.strangers += other.strangers;
        self.spared += other.spared;
        self.held += other.held;
        self.moved += other.moved;
        self.looked += other.looked;
        self.share += other.share;
        self.usual += other.usual;
        self.checked += other.checked;
        self.departures += other.departures;
        self.locked += other.locked;
        for (times, more) in self.states.iter_mut().zip(other.states) {
            *times += more;
        }
        self.shares += other.shares;
    }

    /// The adversary spends something on a task.
    fn spend(&mut self, wei: u128, entry: &Entry) {
        self.spent += wei;
        self.parts += (wei * 100 / entry.offered) as u64;
    }

    /// The losses of honest nodes to slashes for this reason.
    pub fn burnt(&self, cause: Cause) -> u128 {
        self.burnt.get(&cause).copied().unwrap_or_default()
    }
}

/// A task as the logs show it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its creator's side.
    pub side: Side,
    /// The most that it costs a node that answers wrongly.
    pub part: u128,
    /// The offer for one node's work.
    offered: u128,
    /// The average pay of a right answer.
    pub fair: u128,
    /// The rest of the fee.
    pub fee: u128,
    /// The returned part of the fee.
    back: u128,
    /// Nodes of its group.
    pub members: Vec<u32>,
    /// From 0 to 3.
    pub policy: u8,
    /// Groups that found no majority, after which it went to another.
    regrouped: u64,
    /// Whether its group is scored, or rated.
    pub scored: bool,
    /// Nodes of the adversary's that an honest majority has found wrong, and that were not slashed yet.
    wrong: Vec<u32>,
    /// Whether a wrong answer to it costs a slash: the task's nodes answer alike, and enough of them had joined.
    liable: bool,
    /// The slash of a node that answers wrongly, in parts.
    times: u128,
    /// Whether its first node has committed, under policy 1.
    committed: bool,
    /// The sum that such a task, honestly answered, takes out of the reserve if it is sampled, and pays in if it is not: on average the
    /// same.
    sampled: i128,
    spared: i128,
    nature: Nature,
}

impl Entry {
    fn new() -> Entry {
        Entry {
            side: Side::Honest,
            part: 0,
            offered: 1,
            fair: 0,
            fee: 0,
            back: 0,
            members: Vec::new(),
            policy: 0,
            regrouped: 0,
            scored: false,
            wrong: Vec::new(),
            liable: false,
            times: 0,
            committed: false,
            sampled: 0,
            spared: 0,
            nature: Nature::Plain,
        }
    }
}

/// The books of a season.
#[derive(Clone, Debug, Default)]
pub struct Book {
    /// The present life.
    pub life: Tally,
    /// Open tasks.
    pub tasks: HashMap<u64, Entry>,
    /// Fees of tasks that have not ended.
    pub escrow: u128,
    /// The side of a node, by its number.
    pub sides: HashMap<u32, Side>,
    /// The side of an address.
    pub people: HashMap<Address, Side>,
    /// Answers of honest nodes that were wrong.
    pub deviated: HashSet<(u64, u32)>,
    /// The nature of the next tasks.
    pub next: Nature,
    /// The rate of sampling.
    pub sample_bps: u16,
    /// The status of each node before the call in hand.
    pub before: HashMap<u32, u8>,
    /// Slashes in fees.
    pub slash_times: u128,
    /// Nodes of the card that all have that have joined, paused ones too.
    pub joined: usize,
    /// Nodes of a rated group, by application.
    pub most: HashMap<Address, u8>,
    /// How each node was judged last: the task, its creator and the verdict.
    pub verdicts: HashMap<u32, (u64, Side, u8)>,
    /// Wei in a stake unit.
    pub stake_unit: u128,
    /// Honest nodes that were slashed, for whatever cause: these may be put out of the network.
    pub excused: HashSet<u32>,
}

impl Book {
    /// The side of a node.
    pub fn side(&self, node: u32) -> Side {
        self.sides.get(&node).copied().unwrap_or(Side::Honest)
    }

    /// How many of these nodes are the adversary's.
    pub fn own(&self, nodes: &[u32]) -> usize {
        nodes.iter().filter(|n| self.side(**n) == Side::Adversary).count()
    }

    /// The most groups that open tasks can still be given to.
    pub fn left(&self) -> u64 {
        self.tasks.values().map(|entry| 1 + RESCHEDULES - entry.regrouped).sum()
    }

    fn ends(&mut self, id: u64) {
        let entry = self.tasks.remove(&id).expect("a task ends once");
        self.escrow -= entry.fee;
        if entry.side == Side::Adversary {
            self.life.spend(entry.fee.saturating_sub(entry.back), &entry);
        }
    }

    /// Counts the flow into the reserve, or out of it, by the call of these events.
    pub fn flowed(&mut self, events: &[E], wei: i128) {
        let task = events.iter().rev().find_map(|event| match event {
            E::TaskSucceeded(e) => Some(e.id),
            E::TaskErrorReported(e) => Some(e.id),
            E::TaskAborted(e) => Some(e.id),
            E::TaskSampled(e) => Some(e.id),
            E::GroupSettled(e) => Some(e.id),
            _ => None,
        });
        let Some(entry) = task.and_then(|id| self.tasks.get(&id)).filter(|entry| entry.side == Side::Adversary) else { return };
        self.life.drained -= wei;
        // Less the effect of the lot alone: so honest play comes out even each time, not only on average.
        let ends = |event: &E| matches!(event, E::TaskSucceeded(_) | E::TaskErrorReported(_) | E::TaskAborted(_));
        if events.iter().any(|event| matches!(event, E::GroupSettled(_))) {
            self.life.drained -= entry.sampled;
        } else if entry.committed && events.iter().any(ends) {
            self.life.drained += entry.spared;
        }
    }

    /// How a node was judged in a task's group.
    pub fn judged(&mut self, node: u32, id: u64, verdict: u8) {
        self.verdicts.insert(node, (id, self.tasks[&id].side, verdict));
    }

    /// A node got a score of 0, or was rated wrong.
    pub fn marked(&mut self, node: u32, rating: bool) {
        let Some((id, side, verdict)) = self.verdicts.get(&node).copied() else { return };
        // A node that was late or has withheld has no excuse.
        if self.side(node) == Side::Honest && !self.deviated.contains(&(id, node)) && matches!(verdict, 1 | 2 | 4 | 6) {
            *if rating { &mut self.life.misrated } else { &mut self.life.zeros } += 1;
            let blamed = u64::from(matches!(verdict, 4 | 6));
            self.life.blamed += blamed;
            self.life.strangers += if side == Side::Honest { blamed } else { 0 };
        }
    }

    /// Part of a task's fee goes back to its creator.
    pub fn back(&mut self, id: u64, wei: u128) {
        self.tasks.get_mut(&id).expect("an open task").back += wei;
    }

    /// A node is paid for a task.
    pub fn paid(&mut self, id: u64, node: u32, wei: u128) {
        if self.side(node) == Side::Adversary {
            self.back(id, wei);
        }
    }

    /// Reads an event of a call by `from`; returns violations.
    pub fn read(&mut self, from: Address, event: &E) -> Result<(), String> {
        match event {
            E::NodeJoined(e) => {
                let side = self.people[&e.operator.into_array()];
                self.sides.insert(e.node, side);
            }
            E::GpuGroupCreated(e) if self.people.get(&from) == Some(&Side::Adversary) => self.life.spent += e.fee,
            E::TaskCreated(e) => {
                let side = self.people[&e.creator.into_array()];
                let policy = e.spec.redundancy;
                let part = match policy {
                    2 => e.fee / 3,
                    3 => e.fee / u128::from(self.most.get(&e.creator.into_array()).copied().unwrap_or(7)),
                    _ => e.fee,
                };
                let fair = if policy == 1 { payment(e.fee, self.sample_bps) } else { part };
                let scored = policy == 1 && self.joined >= POOL;
                let (fee, single) = (e.fee as i128, fair as i128);
                let (sampled, spared) = if scored { (3 * single - fee, fee - single) } else { (0, 0) };
                let (liable, times) = (scored && e.spec.kind != 0, self.slash_times);
                let offered = part.max(1);
                let entry = Entry {
                    side,
                    part,
                    offered,
                    fair,
                    fee: e.fee,
                    policy,
                    liable,
                    times,
                    sampled,
                    spared,
                    nature: self.next,
                    ..Entry::new()
                };
                self.tasks.insert(e.id, entry);
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
                // The start fee is spent, and everything later goes by the rest.
                self.escrow -= e.paid;
                let driven = self.people.get(&e.beneficiary.into_array()) == Some(&Side::Adversary);
                let entry = self.tasks.get_mut(&e.id).expect("an open task");
                entry.fee -= e.paid;
                entry.part = entry.fee;
                entry.fair = payment(entry.fee, self.sample_bps);
                if entry.side == Side::Adversary && !driven {
                    self.life.spend(e.paid, entry);
                }
            }
            E::GroupFormed(e) => {
                let own = self.own(&e.nodes);
                self.life.majorities += u64::from(2 * own > e.nodes.len());
                let entry = self.tasks.get_mut(&e.id).expect("an open task");
                entry.members.clone_from(&e.nodes);
                entry.scored = e.scored;
            }
            E::MemberJudged(e) => {
                self.paid(e.id, e.node, e.paid);
                self.judged(e.node, e.id, e.verdict);
                let own = self.own(&self.tasks[&e.id].members);
                if e.verdict == 2 && self.side(e.node) == Side::Adversary && own == 1 {
                    self.tasks.get_mut(&e.id).expect("an open task").wrong.push(e.node);
                }
                // Right, wrong or open: it has answered.
                let answered = matches!(e.verdict, 1 | 2 | 6);
                let honest = self.side(e.node) == Side::Honest && !self.deviated.contains(&(e.id, e.node));
                if honest && answered && e.paid == 0 {
                    let entry = &self.tasks[&e.id];
                    self.life.withheld += entry.fair;
                    self.life.unpaid += if entry.side == Side::Adversary { entry.fair } else { 0 };
                }
            }
            E::NodeSlashed(e) => self.slashed(e.node, e.id, e.stake + e.unbonding + e.credit)?,
            E::NodeKickedOut(e) => self.kicked_out(e.node)?,
            E::AnswerCommitted(e) => {
                if let Some(entry) = self.tasks.get_mut(&e.id) {
                    entry.committed = true;
                }
            }
            E::ScoreRecorded(e) if e.score == 0 => self.marked(e.node, false),
            E::NodeRated(e) if !e.right => self.marked(e.node, true),
            E::ProfileSet(e) => drop(self.most.insert(e.application.into_array(), e.profile.most)),
            E::GroupSettled(e) => {
                self.life.groups += 1;
                self.life.fooled += u64::from(e.answer == false_answer(e.id));
                self.back(e.id, e.refund);
                if e.outcome == RESCHEDULED {
                    self.escrow -= e.startFee;
                    let entry = self.tasks.get_mut(&e.id).expect("an open task");
                    entry.fee -= e.startFee;
                    entry.regrouped += 1;
                    // An old rule gives it back at once.
                    let freed = e.startFee.min(entry.back);
                    entry.back -= freed;
                    if entry.side == Side::Adversary {
                        self.life.spend(e.startFee - freed, entry);
                    }
                    return Ok(());
                }
                let entry = &self.tasks[&e.id];
                if entry.liable {
                    self.life.spared += entry.wrong.len() as u128 * entry.times * entry.part;
                }
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
        let entry = self.tasks.get_mut(&id).expect("an open task");
        entry.wrong.retain(|other| *other != node);
        let entry = &self.tasks[&id];
        let owed = entry.times * entry.part;
        if wei > owed || wei + self.stake_unit < owed {
            return Err(format!("node {node} owed {owed} for task {id}, and {wei} was taken"));
        }
        if self.side(node) == Side::Adversary {
            self.life.spend(wei, entry);
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
        self.excused.insert(node);
        *self.life.burnt.entry(cause).or_default() += wei;
        *self.life.slashed.entry(cause).or_default() += 1;
        Ok(())
    }

    fn kicked_out(&self, node: u32) -> Result<(), String> {
        let deviated = || self.deviated.iter().any(|(_, other)| *other == node);
        if self.side(node) == Side::Adversary || self.excused.contains(&node) || deviated() {
            return Ok(());
        }
        Err(format!("honest node {node} was put out of the network without a slash"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_protocol::abi::IMuster::GroupSettled;

    fn formed(nodes: &[u32]) -> Book {
        let mut book = Book { stake_unit: 1, ..Book::default() };
        book.sides.extend([(1, Side::Honest), (2, Side::Honest), (3, Side::Adversary), (4, Side::Adversary)]);
        let entry = Entry { part: 10, fair: 10, fee: 30, times: 20, members: nodes.to_vec(), ..Entry::new() };
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
    fn an_honest_node_that_is_put_out_is_noticed() {
        let mut book = formed(&[1, 2, 3]);
        assert!(book.kicked_out(3).is_ok());
        assert!(book.kicked_out(1).unwrap_err().contains("without a slash"));
        book.deviated.insert((5, 1));
        assert!(book.kicked_out(1).is_ok());
        let mut outvoted = formed(&[2, 3, 4]);
        outvoted.slashed(2, 7, 200).unwrap();
        assert!(outvoted.kicked_out(2).is_ok());
    }

    /// A rated task's first group finds no majority, and its start fee is given back, or is not.
    #[test]
    fn a_start_fee_that_is_given_back_is_not_spent() {
        for (freed, spent) in [(0, 2), (2, 0)] {
            let mut book = formed(&[1, 2, 3]);
            let entry = book.tasks.get_mut(&7).expect("it is there");
            (entry.side, entry.policy) = (Side::Adversary, 3);
            book.escrow = 30;
            book.back(7, freed);
            let settled = GroupSettled {
                id: 7,
                group: 1,
                creator: [0; 20].into(),
                outcome: RESCHEDULED,
                answer: [0; 32].into(),
                refund: 0,
                startFee: 2,
                reserve: 0,
            };
            book.read([0; 20], &E::GroupSettled(settled)).expect("allowed");
            assert_eq!((book.life.spent, book.escrow, book.tasks[&7].fee, book.tasks[&7].back), (spent, 28, 28, 0));
        }
    }

    #[test]
    fn a_slash_of_more_or_less_than_is_owed_is_noticed() {
        for wei in [198, 201] {
            assert!(formed(&[1, 2, 3]).slashed(3, 7, wei).unwrap_err().contains("owed 200"), "{wei}");
        }
    }
}
