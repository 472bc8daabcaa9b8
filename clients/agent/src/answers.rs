//! The calls that answer a task: each is in the journal before it is signed, and has a name under which it is sent once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use alloy::primitives::{Bytes, U256};
use alloy::sol_types::SolCall;
use anyhow::Result;
use muster_client::{
    Account, Advice, Done, Entry, Error, Event, Fate, Head, IMuster, Opening, Reason, Refusal, Secrets, LATE_REVEALS,
};

use crate::chain::{self, Committed};
use crate::journal::{Job, Stage};
use crate::metrics::OfNode;
use crate::shared::Shared;
use crate::{die, say};

/// A job missing on the chain counts as ended after this time, if no event has said so: a node that is behind
/// shows an older state.
const GONE: Duration = Duration::from_mins(1);

/// The calls of one node.
pub struct Answers {
    pub shared: Arc<Shared>,
    pub name: String,
    pub number: u32,
    pub account: Account,
    pub secrets: Arc<Secrets>,
    /// When jobs were first missing on the chain.
    pub missing: Mutex<HashMap<(u64, u64), Instant>>,
    /// When the time of jobs' groups was first seen to be over while an answer was not revealed.
    pub late: Mutex<HashMap<(u64, u64), Instant>>,
    /// News from calls' receipts that the node has not handled yet.
    pub told: Mutex<Told>,
}

/// News from the receipts of the node's own calls.
#[derive(Default)]
pub struct Told {
    /// The task given to it.
    pub given: Option<Given>,
    /// Whether it was set apart, or waits for a draw: there may be something to do about it.
    pub apart: bool,
    /// The block after which something can be done.
    pub awaits: Option<u64>,
}

/// A task that a node was given, as a receipt says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    pub task: u64,
    pub deadline: u64,
    /// The place of its group; 0 without one.
    pub place: u32,
}

/// The result of a call.
pub enum Called {
    Done(Box<Done>),
    Refused(Refusal),
}

/// A unique name for a single action.
pub fn stamp() -> u128 {
    std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis()
}

/// An action, with the values that identify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Draw the tasks that wait, of which this is the first.
    Draw(u64),
    /// Draw the validators of the sampled tasks that wait, of which this is the first.
    Form(u64),
    /// Bring the node back, or offer it queued tasks.
    Poke(u32),
    /// End the node's own overdue task: until then the node gets no other.
    Expire(u32, u64),
    /// Have a group judged.
    Settle(u64, u32),
    /// Have a task validated, or ended, that keeps its node from beginning in a group that waits for it.
    Free(u32, u64),
    /// Bring back a node that is not available: it pauses, leaves, or begins in a group then. Any call does it, and on a quiet chain there is
    /// no other.
    Return(u32),
    /// Make a block after this one: a decision depends on the hash of a future block, on a chain where nobody
    /// makes one.
    Block(u64),
}

impl Answers {
    /// Whether the account waits for a transaction whose name begins so. Another one would be mined, too, once nodes take any again.
    pub async fn waits_for_one(&self, name: &str) -> bool {
        let is_one = |sent: &Entry| sent.fate == Fate::Open && sent.name.as_deref().is_some_and(|own| own.starts_with(name));
        self.account.sender().unfinished().await.iter().any(is_one)
    }

    /// Records what a call cost, and learns from its events.
    pub fn record(&self, done: &Done) {
        let cost: f64 = done.cost().saturating_to::<u128>() as f64;
        OfNode(&self.shared.metrics, &self.name).add("gas_wei_total", cost);
        self.note(&done.events);
    }

    /// Calls under a name, and records its cost.
    pub async fn call(&self, name: &str, input: impl Into<Bytes>) -> Result<Called> {
        match self.account.send_once(name, input.into(), U256::ZERO).await {
            Ok(done) => {
                self.record(&done);
                Ok(Called::Done(Box::new(done)))
            }
            Err(error) => match error.refusal() {
                Some(refusal) => Ok(Called::Refused(refusal.clone())),
                None => Err(error.into()),
            },
        }
    }

    /// Calls as `call`, even if gas costs more than the configuration allows or the disk fails: an answer that is not revealed is slashed.
    async fn call_at_any_price(&self, name: &str, input: impl Into<Bytes>) -> Result<Called> {
        let sender = self.account.sender();
        let _guards = (sender.above_ceiling(), sender.without_disk());
        let called = self.call(name, input).await;
        if let Some(why) = sender.unwritten().await {
            self.alert_disk(&why);
        }
        called
    }

    fn alert_disk(&self, why: &str) {
        self.shared.alert(&self.name, "disk", &format!("it reveals without writing that down: {why}"));
    }

    fn put(&self, job: &Job) -> Result<()> {
        self.shared.journal.put(job)
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a receipt's news of the node: the call that frees it may also give it its next task.
    pub fn note(&self, events: &[Event]) {
        let mut told = self.told();
        for event in events {
            match event {
                Event::TaskStarted(e) if e.node == self.number => {
                    told.given = Some(Given { task: e.id, deadline: e.deadline, place: 0 });
                }
                Event::MemberStarted(e) if e.node == self.number => {
                    told.given = Some(Given { task: e.id, deadline: e.deadline, place: e.group });
                }
                Event::NodeExcluded(e) if e.node == self.number => told.apart = true,
                Event::NodeWaits(e) if e.node == self.number => told.apart = true,
                _ => {}
            }
        }
    }

    /// Something can be done once there is a block of this number.
    pub fn awaits(&self, block: u64) {
        let mut told = self.told();
        told.awaits = Some(told.awaits.map_or(block, |known| known.min(block)));
    }

    /// The news since the last call of this.
    pub fn take_told(&self) -> Told {
        std::mem::take(&mut *self.told())
    }

    /// Ends a job.
    pub fn over(&self, job: &mut Job, outcome: &str) -> Result<()> {
        if outcome != "done" {
            job.outcome = Some(outcome.into());
            say!("{}: task {} is over: {outcome}", self.name, job.task);
        }
        job.stage = Stage::Over;
        self.put(job)?;
        self.late.lock().unwrap_or_else(PoisonError::into_inner).remove(&(job.task, job.deadline));
        self.shared.journal.trim(self.number)
    }

    /// Notes that a job's task is missing on the chain: the job ends if an event has said so, or after a while.
    pub fn gone(&self, job: &mut Job, outcome: &str) -> Result<()> {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let since = *missing.entry((job.task, job.deadline)).or_insert_with(Instant::now);
        let told = job.outcome.is_some() && !job.is_given_up();
        if !told && since.elapsed() < GONE {
            return Ok(());
        }
        missing.remove(&(job.task, job.deadline));
        drop(missing);
        self.over(job, if told { "done" } else { outcome })
    }

    /// As `gone`, for a job whose answer was committed to. One that is not revealed is taken up again where the chain shows it later.
    fn gone_from_chain(&self, job: &mut Job) -> Result<()> {
        self.gone(job, if job.stage == Stage::Revealed { "done" } else { "lost" })
    }

    /// Notes that a job's task is on the chain.
    pub fn seen(&self, job: &Job) {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).remove(&(job.task, job.deadline));
    }

    /// Answers a job whose result is stored, or commits to the answer.
    pub async fn answer(&self, job: &mut Job) -> Result<()> {
        if job.stage < Stage::Sent {
            job.stage = Stage::Sent;
            self.put(job)?;
        }
        die::at("sending");
        let opening = Opening { kind: job.kind, value: job.value, salt: job.salt };
        let input: Bytes = match (job.redundancy, job.kind) {
            (0, 0) => IMuster::submitCall { id: job.task, resultDigest: job.value }.abi_encode().into(),
            (0, _) => IMuster::reportErrorCall { id: job.task, code: job.value[31] }.abi_encode().into(),
            _ => chain::commit(&self.secrets, job.task, self.number, &opening),
        };
        let called = self.call(&job.call("answer"), input).await?;
        die::at("sent");
        match called {
            Called::Done(done) if job.redundancy == 0 => {
                let what = if job.kind == 0 { "answered" } else { "reported as an error" };
                say!("{}: task {} {what} in transaction {}", self.name, job.task, done.receipt.transaction_hash);
                self.over(job, "done")
            }
            Called::Done(done) => {
                let own = done.events.iter().find_map(|event| match event {
                    Event::AnswerCommitted(e) if e.id == job.task && e.node == self.number => Some((e.group, e.block)),
                    _ => None,
                });
                if let Some((place, lot)) = own {
                    (job.place, job.lot) = (place, lot);
                }
                let what = as_error(job);
                say!("{}: task {} committed to{what} in transaction {}", self.name, job.task, done.receipt.transaction_hash);
                job.stage = Stage::Committed;
                self.put(job)?;
                die::at("committed");
                Ok(())
            }
            Called::Refused(refusal) => self.overtaken(job, &refusal).await,
        }
    }

    /// The answer is refused: this key has answered already, on another machine or before the journal was lost, or it is too
    /// late.
    async fn overtaken(&self, job: &mut Job, refusal: &Refusal) -> Result<()> {
        if is_for_now(refusal) {
            self.tell_for_now(refusal, &format!("task {} cannot be answered yet", job.task));
            return Ok(());
        }
        if job.redundancy > 0 {
            let committed = self.shared.chain.committed(&self.secrets, job.task, self.number, job.deadline).await?;
            if let Some(committed) = committed.filter(|committed| committed.place == job.place) {
                return self.adopt(job, committed);
            }
        }
        say!("{}: task {} was not answered: {refusal}", self.name, job.task);
        if matches!(refusal, Refusal::Known(Reason::TaskNotRunning(_))) {
            return self.gone(job, "overtaken");
        }
        // Not begun again while the task runs: the answer would be refused again.
        self.over(job, "refused")
    }

    /// Adopts a commitment found on the chain.
    pub fn adopt(&self, job: &mut Job, Committed { place, lot, opening }: Committed) -> Result<()> {
        (job.place, job.lot) = (place, lot);
        (job.kind, job.value, job.salt) = (opening.kind, opening.value, opening.salt);
        job.stage = Stage::Committed;
        say!("{}: task {} was committed to already", self.name, job.task);
        self.put(job)
    }

    /// Reveals a job's answer if possible; returns the action needed first, if any. `now` is the expected time of the next block.
    pub async fn reveal(
        &self,
        job: &mut Job,
        head: &Head,
        now: u64,
        running: Option<&IMuster::TaskView>,
    ) -> Result<Option<What>> {
        if job.place == 0 {
            return self.reveal_alone(job, head, running).await;
        }
        let group = self.shared.chain.muster.read(IMuster::groupCall { place: job.place }).await?;
        let member = group.members.iter().find(|member| member.node == self.number);
        let Some(member) = member.filter(|_| group.id == job.task) else {
            self.find_group(job).await?;
            return Ok(None);
        };
        self.seen(job);
        if member.stage == 3 && group.closes > 0 {
            let metrics = OfNode(&self.shared.metrics, &self.name);
            metrics.set_least("reveal_deadline_timestamp_seconds", group.closes as f64);
        }
        let revealed = group.members.iter().all(|member| !matches!(member.stage, 1..=3));
        match member.stage {
            3 if group.opens > 0 => {
                self.send_reveal(job).await?;
                Ok(None)
            }
            3 => {
                // Reveals open in the block after the deadline, if there is one.
                let late = |member: &IMuster::MemberView| member.stage == 2 && member.moment < now;
                if group.members.iter().any(|member| late(member) && head.timestamp <= member.moment) {
                    return Ok(Some(What::Block(head.number)));
                }
                self.waits_for(&group, head).await
            }
            4 | 5 => {
                if job.stage != Stage::Revealed {
                    job.stage = Stage::Revealed;
                    self.put(job)?;
                }
                let over = group.opens > 0 && group.closes < head.timestamp;
                let owed = group.members.iter().any(|member| member.stage == 3);
                let due = group.opens > 0 && revealed || over && (!owed || self.has_waited(job));
                Ok(due.then_some(What::Settle(job.task, job.place)))
            }
            _ => Ok(None),
        }
    }

    /// Whether members that have not revealed were given time after the end: a late reveal counts until the group is judged.
    fn has_waited(&self, job: &Job) -> bool {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        late.entry((job.task, job.deadline)).or_insert_with(Instant::now).elapsed() >= LATE_REVEALS
    }

    /// The call that lets a called member begin: its node has committed to a task of its own, and nobody has had that validated, or its
    /// own deadline is over.
    async fn waits_for(&self, group: &IMuster::GroupView, head: &Head) -> Result<Option<What>> {
        for member in group.members.iter().filter(|member| member.stage == 1) {
            let task = self.shared.chain.muster.read(IMuster::runningTaskCall { number: member.node }).await?;
            let over = matches!(task.status, 3 | 6) && task.deadline < head.timestamp;
            if task.status == 4 || over {
                return Ok(Some(What::Free(member.node, task.id)));
            }
            if task.status == 5 {
                return self.form(head).await;
            }
        }
        Ok(None)
    }

    /// The call that a sampled task needs: its validators are drawn in the order of the queue.
    async fn form(&self, head: &Head) -> Result<Option<What>> {
        let calls = self.shared.chain.muster.read(IMuster::validatorDrawsCall { from: 0, count: 1 }).await?;
        Ok(calls.first().map(|first| {
            if first.drawBlock < head.number {
                What::Form(first.id)
            } else {
                self.awaits(first.drawBlock + 1);
                What::Block(head.number)
            }
        }))
    }

    /// Reveals an answer that may still be sampled.
    async fn reveal_alone(&self, job: &mut Job, head: &Head, running: Option<&IMuster::TaskView>) -> Result<Option<What>> {
        match running.filter(|task| task.id == job.task).map(|task| task.status) {
            // In the block after it the hash is known.
            Some(4) if job.lot > head.number => {
                self.awaits(job.lot);
                Ok(Some(What::Block(head.number)))
            }
            // The lot before the answer: anybody who sees the opening of a sampled one, the chain's node included, could copy it into the
            // validators' commitments.
            Some(4) => {
                self.seen(job);
                let call = IMuster::validateCall { id: job.task, node: self.number };
                match self.call_at_any_price(&job.call("validate"), call.abi_encode()).await? {
                    Called::Refused(Refusal::Known(Reason::NotSampled(_))) => self.send_reveal(job).await?,
                    Called::Refused(refusal) => say!("{}: task {} is not validated yet: {refusal}", self.name, job.task),
                    Called::Done(_) => die::at("validated"),
                }
                Ok(None)
            }
            // From a node that is behind.
            Some(3 | 6) => Ok(None),
            Some(5) => self.form(head).await,
            _ => {
                // Validated, and by now in a group; or it has ended.
                self.find_group(job).await?;
                Ok(None)
            }
        }
    }

    /// Notes where a job's group is: after a reorganisation it may have formed at another place. If there is none, the job is gone.
    async fn find_group(&self, job: &mut Job) -> Result<()> {
        let groups = self.shared.chain.groups_of(self.number).await?;
        match groups.values().find(|group| group.id == job.task && group.group != job.place) {
            Some(group) => {
                job.place = group.group;
                self.put(job)
            }
            None => self.gone_from_chain(job),
        }
    }

    async fn send_reveal(&self, job: &mut Job) -> Result<()> {
        if job.stage != Stage::Revealing {
            job.stage = Stage::Revealing;
            // The chain shows later whether it was sent.
            if let Err(error) = self.put(job) {
                self.alert_disk(&format!("{error:#}"));
            }
        }
        die::at("revealing");
        let call = IMuster::revealCall {
            id: job.task,
            group: job.place,
            node: self.number,
            kind: job.kind,
            value: job.value,
            salt: job.salt,
        };
        let called = self.call_at_any_price(&job.call(&format!("reveal {}", job.place)), call.abi_encode()).await?;
        die::at("revealed");
        match called {
            Called::Done(done) => {
                let what = as_error(job);
                say!("{}: task {} revealed{what} in transaction {}", self.name, job.task, done.receipt.transaction_hash);
                if job.place == 0 {
                    return self.over(job, "done");
                }
                job.stage = Stage::Revealed;
                self.put(job)
            }
            Called::Refused(Refusal::Known(Reason::NotWhatWasCommitted(_))) => {
                // This key has committed to another answer, on another machine: that one counts.
                match self.shared.chain.committed(&self.secrets, job.task, self.number, job.deadline).await? {
                    Some(Committed { opening, .. }) if opening.salt != job.salt || opening.value != job.value => {
                        (job.kind, job.value, job.salt) = (opening.kind, opening.value, opening.salt);
                        self.put(job)
                    }
                    _ => {
                        let text = format!("the commitment to task {} is not known here", job.task);
                        self.shared.alert(&self.name, "reveal", &text);
                        Ok(())
                    }
                }
            }
            // The next look at the chain shows the outcome.
            Called::Refused(refusal) => {
                self.tell_for_now(&refusal, &format!("task {} cannot be revealed", job.task));
                Ok(())
            }
        }
    }

    /// Tells of a refusal after which the same call is made again: as an alert where a program is missing or does not run, as only the owner
    /// can mend that.
    fn tell_for_now(&self, refusal: &Refusal, what: &str) {
        if lacks_program(refusal) {
            self.shared.alert(&self.name, "program", &format!("{what}, and is tried again: {refusal}"));
        } else {
            say!("{}: {what}: {refusal}", self.name);
        }
    }
}

/// Whether a program is missing, or does not run.
fn lacks_program(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Known(Reason::ProgramFailed(_) | Reason::UnknownFunction(_)))
}

/// Whether the same call may be accepted later. A program that does not run, or is missing, can be back before a task ends.
pub fn is_for_now(refusal: &Refusal) -> bool {
    match refusal {
        refusal if lacks_program(refusal) => true,
        Refusal::Other(data) => data.is_empty(),
        Refusal::Known(_) => !matches!(refusal.advice(), Advice::Never),
    }
}

/// The log's suffix for a committed error report.
fn as_error(job: &Job) -> &'static str {
    if job.kind == 0 {
        ""
    } else {
        " as an error"
    }
}

/// Whether an error of the journal, the nodes or the key may go away by itself.
pub fn passes(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Error>().is_some_and(Error::passes)
}

/// Whether gas costs more than the configuration allows, which only its operator can change.
pub fn is_too_expensive(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::FeeCeiling { .. }))
}
