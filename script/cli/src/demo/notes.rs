//! Facts in receipts: the fates of tasks and nodes.

use std::mem;

use alloy::primitives::U256;
use muster_client::Event;
use muster_trace::Outcome;

use super::{
    agenda::Action,
    records::{Counts, Task},
    state::Demo,
};

impl Demo {
    /// Takes the cost of a call, and the fates of tasks and nodes, from its gas and the contract's events.
    pub(super) fn note(&mut self, function: &str, gas: u64, events: &[Event]) {
        self.tally.gas.entry(function.into()).or_default().push(gas);
        for event in events {
            self.note_event(event);
            self.note_validation(event, function, gas);
        }
        if !self.pending.is_empty() && !self.draw_planned {
            self.draw_planned = true;
            self.agenda.plan(self.clock.now + 1, Action::Draw);
        }
    }

    fn note_event(&mut self, event: &Event) {
        match event {
            Event::TaskCreated(e) => self.note_creation(e.id, U256::from(e.fee)),
            Event::TaskRedrawn(e) => {
                self.pending.insert(e.id);
                // It may have left the queue for this draw.
                if let Some(task) = self.tasks.get_mut(&e.id) {
                    task.ticket = None;
                }
            }
            Event::TaskQueued(e) => self.note_queueing(e.id, e.ticket),
            Event::TaskStarted(e) => self.note_start(e.id, e.node.into(), e.deadline),
            Event::TaskSucceeded(e) => {
                self.note_trust(e.id, U256::from(e.paid));
                self.note_end(e.id, |counts| &mut counts.finished);
            }
            Event::TaskErrorReported(e) => {
                // The part that is not refunded is the start fee.
                let fee = self.tasks.get(&e.id).map_or(U256::ZERO, |task| task.fee);
                self.note_trust(e.id, fee);
                self.note_end(e.id, |counts| &mut counts.errors);
            }
            Event::TaskAborted(e) => {
                self.pending.remove(&e.id);
                self.note_trust(e.id, U256::from(e.refund) + U256::from(e.startFee));
                match e.reason {
                    0 => self.note_end(e.id, |counts| &mut counts.timed_out),
                    1 => self.note_end(e.id, |counts| &mut counts.cancelled),
                    3 => self.note_end(e.id, |counts| &mut counts.outlived),
                    4 => self.note_end(e.id, |counts| &mut counts.orphaned),
                    _ if self.tasks.get(&e.id).is_some_and(|task| task.queued) => {
                        self.note_end(e.id, |counts| &mut counts.evicted);
                    }
                    // The queue was full of tasks worth more.
                    _ => self.note_end(e.id, |counts| &mut counts.turned_away),
                }
            }
            Event::NodeExcluded(_) => self.tally.counts.exclusions += 1,
            Event::NodeKickedOut(_) => self.tally.counts.kicked_out += 1,
            _ => {}
        }
    }

    fn note_creation(&mut self, id: u64, fee: U256) {
        self.pending.insert(id);
        let Some((request, creator, redundancy)) = self.arriving.take() else { return };
        let now = self.clock.now;
        self.tally.judged.policies[usize::from(redundancy)].tasks += 1;
        self.tasks.insert(id, Task::new(request, creator, now, fee, redundancy));
        let request = &self.requests[request];
        if request.outcome == Outcome::Cancelled {
            self.agenda.plan(now + request.seconds, Action::Cancel(id));
        }
    }

    fn note_queueing(&mut self, id: u64, ticket: u64) {
        self.pending.remove(&id);
        self.fruitless = 0;
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.ticket = Some(ticket);
        task.outlives = self.clock.now + self.queue_time + 1;
        self.tally.counts.queued += u64::from(!mem::replace(&mut task.queued, true));
        self.agenda.plan(task.outlives, Action::Outlive(id));
    }

    /// A task starts, on one node or on three.
    pub(super) fn note_begin(&mut self, id: u64) {
        let now = self.clock.now;
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.ticket = None;
        self.tally.counts.dispatched += u64::from(!task.queued);
        let wait = now.saturating_sub(task.created);
        self.tally.waits.push(wait);
        self.tally.judged.policies[usize::from(task.redundancy)].waits.push(wait);
        if task.queued {
            self.tally.queue_waits.push(wait);
        }
    }

    fn note_start(&mut self, id: u64, node: u64, deadline: u64) {
        self.pending.remove(&id);
        self.fruitless = 0;
        self.note_begin(id);
        let now = self.clock.now;
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.node = Some(node);
        *self.tally.started.entry(node).or_default() += 1;
        let (request, sampled) = (task.request, task.redundancy > 0);
        let takes = if sampled { self.takes(request, node) } else { self.requests[request].seconds };
        let done = now + takes;
        let answers = match self.requests[request].outcome {
            // Nodes of other operators are none of ours.
            _ if !self.nodes.contains_key(&node) => None,
            Outcome::Answers | Outcome::Cancelled if sampled => Some(Action::Commit(id, node)),
            Outcome::Reports if sampled => Some(Action::Commit(id, node)),
            Outcome::Answers | Outcome::Cancelled => Some(Action::Answer(id)),
            Outcome::Reports => Some(Action::Report(id)),
            Outcome::Silent => None,
        };
        let (at, action) =
            answers.filter(|_| done <= deadline).map_or((deadline + 1, Action::Expire(id)), |action| (done, action));
        self.agenda.plan(at, action);
    }

    pub(super) fn note_end(&mut self, id: u64, count: impl Fn(&mut Counts) -> &mut u64) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.ticket = None;
        if !mem::replace(&mut task.ended, true) {
            let (span, redundancy) = (self.clock.now.saturating_sub(task.created), usize::from(task.redundancy));
            let before = self.tally.counts.finished;
            *count(&mut self.tally.counts) += 1;
            if self.tally.counts.finished > before {
                self.tally.judged.policies[redundancy].finished += 1;
                self.tally.judged.policies[redundancy].spans.push(span);
            }
            self.bar.inc(1);
        }
    }
}
