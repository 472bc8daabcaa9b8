//! What receipts tell: what became of tasks and nodes.

use std::{
    collections::{BTreeMap, HashMap},
    mem,
};

use ethers::types::{TransactionReceipt, U64};
use muster_sim::trace::Outcome;

use super::{agenda::Action, Demo};
use crate::contract::Event;

/// A task that was created by this run.
pub struct Task {
    pub request: usize,
    pub creator: usize,
    pub created: u64,
    /// Of its place in the queue.
    pub ticket: Option<u64>,
    /// Whether it ever was in the queue.
    pub queued: bool,
    pub node: Option<u64>,
    pub ended: bool,
}

impl Task {
    fn new(request: usize, creator: usize, created: u64) -> Self {
        Self { request, creator, created, ticket: None, queued: false, node: None, ended: false }
    }
}

/// Everything that is counted.
#[derive(Default)]
pub struct Tally {
    pub counts: Counts,
    /// By operation.
    pub gas: BTreeMap<String, Vec<u64>>,
    /// Seconds from creation to start.
    pub waits: Vec<u64>,
    /// The same of what had been queued.
    pub queue_waits: Vec<u64>,
    /// Tasks started by node.
    pub started: HashMap<u64, u64>,
}

#[derive(Default)]
pub struct Counts {
    pub refused: u64,
    pub dispatched: u64,
    pub queued: u64,
    pub finished: u64,
    pub timed_out: u64,
    pub evicted: u64,
    pub cancelled: u64,
    pub outlived: u64,
    pub errors: u64,
    pub exclusions: u64,
    pub kicked_out: u64,
}

impl Demo {
    /// Takes from a receipt what it cost and what became of tasks and nodes.
    pub(super) fn note(&mut self, function: &str, receipt: &TransactionReceipt) {
        let data = receipt.other.get_deserialized::<U64>("gasUsedForL1").and_then(Result::ok).unwrap_or_default();
        let gas = receipt.gas_used.unwrap_or_default().as_u64().saturating_sub(data.as_u64());
        self.tally.gas.entry(function.into()).or_default().push(gas);
        let address = self.muster.address;
        for event in receipt.logs.iter().filter(|log| log.address == address).filter_map(Event::of) {
            self.note_event(&event);
        }
        if !self.pending.is_empty() && !self.draw_planned {
            self.draw_planned = true;
            self.agenda.plan(self.clock.now + 1, Action::Draw);
        }
    }

    fn note_event(&mut self, event: &Event) {
        let id = event.number("id");
        match event.name {
            "TaskCreated" => self.note_creation(id),
            "TaskRedrawn" => drop(self.pending.insert(id)),
            "TaskQueued" => self.note_queueing(id, event.number("ticket")),
            "TaskStarted" => self.note_start(id, event.number("node"), event.number("deadline")),
            "TaskSucceeded" => self.note_end(id, |counts| &mut counts.finished),
            "TaskErrorReported" => self.note_end(id, |counts| &mut counts.errors),
            "TaskAborted" => {
                self.pending.remove(&id);
                match event.number("reason") {
                    0 => self.note_end(id, |counts| &mut counts.timed_out),
                    1 => self.note_end(id, |counts| &mut counts.cancelled),
                    3 => self.note_end(id, |counts| &mut counts.outlived),
                    _ => self.note_end(id, |counts| &mut counts.evicted),
                }
            }
            "NodeExcluded" => self.tally.counts.exclusions += 1,
            "NodeKickedOut" => self.tally.counts.kicked_out += 1,
            _ => {}
        }
    }

    fn note_creation(&mut self, id: u64) {
        self.pending.insert(id);
        let Some((request, creator)) = self.arriving.take() else { return };
        let now = self.clock.now;
        self.tasks.insert(id, Task::new(request, creator, now));
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
        self.tally.counts.queued += u64::from(!mem::replace(&mut task.queued, true));
        self.agenda.plan(self.clock.now + self.queue_time + 1, Action::Outlive(id));
    }

    fn note_start(&mut self, id: u64, node: u64, deadline: u64) {
        self.pending.remove(&id);
        self.fruitless = 0;
        let now = self.clock.now;
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.node = Some(node);
        task.ticket = None;
        self.tally.counts.dispatched += u64::from(!task.queued);
        let wait = now.saturating_sub(task.created);
        self.tally.waits.push(wait);
        if task.queued {
            self.tally.queue_waits.push(wait);
        }
        *self.tally.started.entry(node).or_default() += 1;
        let request = &self.requests[task.request];
        let done = now + request.seconds;
        let (at, action) = match request.outcome {
            Outcome::Answers | Outcome::Cancelled if done <= deadline => (done, Action::Answer(id)),
            Outcome::Reports if done <= deadline => (done, Action::Report(id)),
            _ => (deadline + 1, Action::Expire(id)),
        };
        self.agenda.plan(at, action);
    }

    fn note_end(&mut self, id: u64, count: impl Fn(&mut Counts) -> &mut u64) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.ticket = None;
        if !mem::replace(&mut task.ended, true) {
            *count(&mut self.tally.counts) += 1;
            self.bar.inc(1);
        }
    }
}
