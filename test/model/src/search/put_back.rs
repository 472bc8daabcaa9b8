//! Effects of old rules, applied to the storage after the call that had them.

use super::arena::Arena;
use super::book::POOL;
use super::rules::Rule;
use crate::world::word;
use muster_core::id::NodeId;
use muster_core::validation::payment;
use muster_core::word::Address;
use muster_protocol::abi::IMuster::IMusterEvents as E;
use muster_protocol::host::Host;
use muster_protocol::layout::{slot, INCOME};
use muster_protocol::store::accounts;
use muster_protocol::store::node::NodeHandle;
use muster_protocol::store::sampler::{Among, Field};
use muster_protocol::Network;

const AGREED: u8 = 0;
const UNANSWERED: u8 = 3;
const RESCHEDULED: u8 = 4;
const FAILED: u8 = 4;
const OPEN: u8 = 6;

impl Arena {
    /// Applies the effect of an old rule after a call of these events, before the books have read them; gives its logs.
    pub fn put_back(&mut self, old: Rule, events: &[E]) -> Vec<E> {
        for (i, event) in events.iter().enumerate() {
            match (old, event) {
                (Rule::ScoredLate, E::AnswerCommitted(e)) if e.group == 0 => self.scored_late(NodeId(e.node)),
                (Rule::ErrorsFree, E::TaskErrorReported(e)) => {
                    let start_fee = self.book.tasks[&e.id].fee - e.refund;
                    self.free(e.id, e.creator.into_array(), start_fee);
                }
                (Rule::ErrorsFree, E::GroupSettled(e)) if e.outcome == UNANSWERED => {
                    self.free(e.id, e.creator.into_array(), e.startFee);
                }
                (Rule::RatedFree, E::GroupSettled(e)) if e.outcome == RESCHEDULED => {
                    self.free(e.id, e.creator.into_array(), e.startFee);
                }
                (_, E::GroupSettled(e)) => self.judged_of_old(old, e.id, e.outcome, &events[..i]),
                _ => {}
            }
        }
        self.w.events()
    }

    fn scored_late(&mut self, node: NodeId) {
        let m = &mut self.w.mem;
        let seat = NodeHandle::load(m, node);
        let order = seat.order(m);
        let there = Field::new(m, Among::Active, order.group.into()).count(m, POOL as u32);
        if (there as usize) < POOL {
            seat.set_order(m, &order.with_scores(false));
        }
    }

    /// A start fee goes back to the task's creator.
    fn free(&mut self, id: u64, creator: Address, wei: u128) {
        let m = &mut self.w.mem;
        let income = accounts::income(m) - wei;
        m.store(slot(INCOME), word(income));
        accounts::credit(m, creator, wei);
        self.book.back(id, wei);
    }

    /// The judgement of a group, with the verdicts that were told before.
    fn judged_of_old(&mut self, old: Rule, id: u64, outcome: u8, before: &[E]) {
        let entry = self.book.tasks[&id].clone();
        let judged = before.iter().filter_map(|event| match event {
            E::MemberJudged(e) if e.id == id => Some((e.node, e.verdict, e.paid)),
            _ => None,
        });
        let judged: Vec<(u32, u8, u128)> = judged.collect();
        let failed = judged.iter().filter(|(_, verdict, _)| *verdict == FAILED);
        if !entry.scored {
            return;
        }
        match old {
            Rule::ErrorsScore if outcome == AGREED && entry.policy < 3 => {
                for (node, ..) in failed {
                    let mut net = Network::open(&mut self.w.mem).expect("initialised");
                    net.record_score(NodeId(*node), 0);
                    net.close();
                    self.book.judged(*node, id, FAILED);
                }
            }
            Rule::ErrorsDraw if outcome == AGREED && entry.policy == 1 && failed.count() > 0 => {
                let paid: u128 = judged.iter().map(|(.., paid)| paid).sum();
                let right: Vec<u32> = judged.iter().filter(|(.., paid)| *paid > 0).map(|(node, ..)| *node).collect();
                let lacks = (3 * payment(entry.fee, self.book.sample_bps)).saturating_sub(paid);
                let more = accounts::draw_reserve(&mut self.w.mem, lacks);
                for (i, node) in right.iter().enumerate() {
                    // The first gets the remainder too.
                    let part = more / right.len() as u128 + if i == 0 { more % right.len() as u128 } else { 0 };
                    let operator = self.operator(*node);
                    accounts::credit(&mut self.w.mem, operator, part);
                    self.book.paid(id, *node, part);
                }
            }
            Rule::OpenRates if entry.policy == 3 => {
                for (node, verdict, _) in &judged {
                    if *verdict == FAILED || *verdict == OPEN {
                        NodeHandle::load(&self.w.mem, NodeId(*node)).rate(&mut self.w.mem, false);
                        self.book.judged(*node, id, *verdict);
                        self.book.marked(*node, true);
                    }
                }
            }
            _ => {}
        }
    }
}
