//! Reads the contract's events, once for all nodes: their news goes into the journal together with the cursor, and wakes the nodes
//! concerned. Nothing depends on events alone: nodes also look at the contract's state by themselves.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy::primitives::B256;
use anyhow::Result;
use muster_client::{Batch, Cursor, Event, Events, IMuster, Reading};
use tokio::sync::broadcast::error::RecvError;

use crate::journal::News;
use crate::metrics::PROPOSAL;
use crate::shared::Shared;
use crate::{say, work};

/// A new event, and the nodes that it concerns.
#[derive(Default)]
struct Heard {
    news: Vec<News>,
    nodes: BTreeSet<u32>,
    tasks: BTreeSet<u64>,
    alerts: Vec<(&'static str, String)>,
    /// Proposals of the owner: operators who disagree leave before they take effect.
    proposals: Vec<String>,
    /// Changes by the owner.
    changes: Vec<String>,
    /// The answers that groups found right, by task.
    right: HashMap<u64, B256>,
}

/// A verdict of `MemberJudged`, as the journal has it.
fn verdict(number: u8) -> &'static str {
    ["none", "right", "wrong", "withheld", "error", "timeout", "undecided"].get(number as usize).unwrap_or(&"unknown")
}

impl Heard {
    fn hear(&mut self, shared: &Shared, event: &Event) {
        let outcome =
            |node: u32, task: u64, outcome: &str, paid: u128| News::Outcome { node, task, outcome: outcome.into(), paid };
        self.hear_owner(shared, event);
        // Tasks first: nodes know which tasks are theirs.
        match event {
            Event::AnswerCommitted(e) => self.tasks.insert(e.id),
            Event::AnswerRevealed(e) => self.tasks.insert(e.id),
            Event::MemberTimedOut(e) => self.tasks.insert(e.id),
            Event::GroupSettled(e) => self.tasks.insert(e.id),
            Event::TaskAborted(e) => self.tasks.insert(e.id),
            Event::TaskSampled(e) => self.tasks.insert(e.id),
            Event::GroupFormed(e) => self.tasks.insert(e.id),
            _ => false,
        };
        let mut of = |node: u32| {
            if shared.has(node) {
                self.nodes.insert(node);
            }
            shared.has(node)
        };
        let news = match event {
            Event::TaskStarted(e) if of(e.node) => None,
            Event::MemberStarted(e) if of(e.node) => Some(News::Group { node: e.node, task: e.id, place: e.group }),
            Event::MemberCalled(e) if of(e.node) => None,
            Event::NodePaused(e) if of(e.node) => None,
            Event::NodeResumed(e) if of(e.node) => Some(News::Resumed { node: e.node }),
            Event::WorkerNamed(e) if of(e.node) => None,
            Event::NodeReadmitted(e) if of(e.node) => None,
            Event::NodeWaits(e) if of(e.node) => None,
            Event::TaskSucceeded(e) if of(e.node) => Some(outcome(e.node, e.id, "success", e.paid)),
            Event::TaskErrorReported(e) if of(e.node) => Some(outcome(e.node, e.id, "error", 0)),
            Event::TaskAborted(e) if of(e.node) => {
                if e.reason == 0 {
                    self.alerts.push(("timeout", format!("node {} let task {} time out", e.node, e.id)));
                }
                Some(outcome(e.node, e.id, if e.reason == 0 { "timeout" } else { "aborted" }, 0))
            }
            Event::MemberJudged(e) if of(e.node) => {
                if matches!(e.verdict, 2 | 3 | 5) {
                    let text = format!("node {} was judged {} in task {}", e.node, verdict(e.verdict), e.id);
                    let advice = match e.verdict {
                        2 => what_to_look_at(shared, e, self.right.get(&e.id)),
                        3 => "; it is being paused: look in the log why it has not revealed".into(),
                        _ => String::new(),
                    };
                    self.alerts.push(("judged", text + &advice));
                }
                if matches!(e.verdict, 2 | 3) {
                    self.news.push(News::Judged { node: e.node });
                }
                Some(outcome(e.node, e.id, verdict(e.verdict), e.paid))
            }
            Event::NodeSlashed(e) if of(e.node) => {
                let text = format!("node {} was slashed for task {}: {} wei of its stake", e.node, e.id, e.stake);
                self.alerts.push(("slashed", text));
                Some(News::Slashed { node: e.node, task: e.id })
            }
            Event::NodeKickedOut(e) if of(e.node) => {
                self.alerts.push(("kicked", format!("node {} was kicked out of the network", e.node)));
                None
            }
            Event::NodeExcluded(e) if of(e.node) => None,
            Event::DownloadRequested(e) if of(e.node) => Some(News::Download { node: e.node, model: e.model }),
            Event::GroupFormed(e) => {
                let own: Vec<u32> = e.nodes.iter().copied().filter(|node| of(*node)).collect();
                self.news.extend(own.into_iter().map(|node| News::Group { node, task: e.id, place: e.group }));
                None
            }
            _ => None,
        };
        self.news.extend(news);
    }
}

impl Heard {
    /// Notes the owner's acts, which concern all nodes.
    fn hear_owner(&mut self, shared: &Shared, event: &Event) {
        let on = |on: bool| if on { "stopped" } else { "allowed again" };
        match event {
            Event::ProgramsProposed(e) if e.effective == 0 => {
                self.changes.push(format!("withdrawn: that {} functions lead to the program {}", e.selectors.len(), e.program));
            }
            Event::ProgramsProposed(e) => {
                let count = e.selectors.len();
                self.proposals
                    .push(format!("{count} functions are to lead to the program {} from {} on", e.program, e.effective));
            }
            Event::ParameterProposed(e) => {
                self.proposals.push(format!("parameter {} is to be {} from {} on", e.parameter, e.value, e.effective));
            }
            Event::OwnershipTransferStarted(e) if !e.newOwner.is_zero() => {
                self.proposals.push(format!("{} is to be the owner as soon as it accepts", e.newOwner));
            }
            Event::OwnershipTransferred(e) => self.changes.push(format!("{} is the owner now", e.newOwner)),
            Event::DiamondCut(e) => self.changes.extend(
                e.cuts
                    .iter()
                    .map(|cut| format!("{} functions lead to the program {} now", cut.functionSelectors.len(), cut.facetAddress)),
            ),
            Event::ParameterChanged(e) => {
                self.changes.push(format!("parameter {} is {} now, and was {}", e.parameter, e.value, e.before));
            }
            Event::PausedChanged(e) => self.changes.push(format!("new tasks and joins are {}", on(e.on))),
            Event::GpuGroupListed(e) => {
                let listed = if e.listed {
                    "listed: its nodes get texts that are compared, and who answers otherwise than the others is slashed. `muster node \
                     pause` keeps out of that"
                } else {
                    "taken off the list: its nodes get no texts that are compared"
                };
                let text = format!("GPU group {} is {listed}", e.group);
                if shared.has_group(e.group) {
                    self.alerts.push(("listed", text));
                } else {
                    self.changes.push(text);
                }
            }
            _ => {}
        }
    }

    /// One alert for all that was proposed at a time.
    fn proposed(&self) -> Option<String> {
        const LEAVE: &str =
            "`muster admin proposals` lists all. Whoever disagrees leaves before: `muster node quit` now, and `muster node \
                             withdraw` after the unbonding period";
        (!self.proposals.is_empty()).then(|| format!("the owner proposes: {}. {LEAVE}", self.proposals.join("; ")))
    }
}

/// Advice for the operator of a node that was judged wrong.
fn what_to_look_at(shared: &Shared, judged: &IMuster::MemberJudged, right: Option<&B256>) -> String {
    let job = shared.journal.latest(judged.node, judged.id).ok().flatten();
    let own = job.as_ref().map(|job| format!(": it answered {}", job.value)).unwrap_or_default();
    let right = right.map(|right| format!(", the others {right}")).unwrap_or_default();
    let name = job.and_then(|job| job.result);
    let results = shared.config.nodes.iter().map(|node| work::results(&shared.config.work(node)));
    let kept = name.and_then(|name| results.map(|place| place.join(&name)).find(|file| file.exists()));
    let kept = kept.map(|file| format!("; its result is kept in {}", file.display())).unwrap_or_default();
    format!(
        "{own}{right}{kept}; it is being paused: see whether `muster-agent doctor` passes, whether driver, libraries and weights are \
         those that its name stands for, and whether memory fails; where it was slashed, `muster node resume` ends the pause"
    )
}

/// How often to ask for events where no connection announces them.
const EVERY: Duration = Duration::from_millis(500);
/// The shortest time between two reads of events, unless one is urgent. Announcements wake nodes before.
const PACE: Duration = Duration::from_secs(3);

/// Blocks without which the log names how far behind the reader is, and how often.
const FAR: u64 = 10_000;
/// See `FAR`.
const TELL: Duration = Duration::from_mins(10);
/// The time that is left from which on it is an alert.
const LONG: Duration = Duration::from_mins(30);

/// How far the reader is behind, as after a long absence. A node of the chain that gives the events of few blocks at a time makes it last.
#[derive(Default)]
struct Behind {
    /// Where it was when it was first told, and when.
    from: Option<(u64, Instant)>,
    told: Option<Instant>,
}

impl Behind {
    /// The text for a position, if it is due, and how long the rest takes, if that is known.
    fn look(&mut self, next: u64, head: u64, now: Instant) -> Option<(String, Option<Duration>)> {
        let left = (head + 1).saturating_sub(next);
        if left < FAR || self.told.is_some_and(|told| now.saturating_duration_since(told) < TELL) {
            return None;
        }
        self.told = Some(now);
        let (from, since) = *self.from.get_or_insert((next, now));
        let done = next.saturating_sub(from);
        let rest = (done > 0).then(|| now.saturating_duration_since(since).mul_f64(left as f64 / done as f64));
        let at_this_pace = rest.map(|rest| format!(", about {} min at this pace", rest.as_secs() / 60)).unwrap_or_default();
        Some((format!("the events of {left} blocks are still to be read{at_this_pace}"), rest))
    }

    fn tell(&mut self, shared: &Arc<Shared>, next: u64, head: u64) {
        match self.look(next, head, Instant::now()) {
            Some((text, Some(rest))) if rest >= LONG => {
                let more = "until then it learns late of judgements, and of an operator's `resume` after one: add a node to `rpc` that gives \
                            the events of more blocks at a time";
                shared.alert("events", "behind", &format!("{text}; {more}"));
            }
            Some((text, _)) => say!("{text}"),
            None => {}
        }
    }
}

/// Whether the journal must have it before the node takes its next task.
fn is_urgent(news: &News) -> bool {
    matches!(news, News::Judged { .. } | News::Slashed { .. } | News::Resumed { .. } | News::Download { .. })
}

/// Wakes nodes by announced events before they are read; the nodes check for themselves.
pub async fn wake(shared: Arc<Shared>) {
    let mut events = shared.chain.muster.endpoints().pulse().events();
    loop {
        match events.recv().await {
            Ok(event) => {
                let mut heard = Heard::default();
                heard.hear(&shared, &event);
                if shared.chain.muster.endpoints().is_single() {
                    // A reorganisation may create a task again under its number, and announces it again.
                    shared.remember(&event);
                } else if matches!(event, Event::TaskCreated(_)) {
                    // Any of them may have made it up.
                    shared.ring();
                }
                shared.wake(&heard.nodes, &heard.tasks);
                if heard.news.iter().any(is_urgent) {
                    shared.urgent.notify_one();
                }
            }
            // Missed announcements are read later.
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

/// Reads for the life of the process.
pub async fn run(shared: Arc<Shared>) {
    loop {
        if let Err(error) = read(&shared).await {
            shared.alert("events", "events", &format!("events cannot be read: {error:#}"));
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
}

async fn read(shared: &Arc<Shared>) -> Result<()> {
    let muster = &shared.chain.muster;
    let cursor = match shared.journal.cursor()? {
        Some(cursor) => cursor,
        // The contract's state covers the time before.
        None => Cursor::new(shared.chain_id, muster.address(), shared.chain.head().await?.number),
    };
    let reading = Reading { every: EVERY, ..Reading::default() };
    let mut events = Events::with_cursor(muster.endpoints().clone(), cursor, reading).await?;
    let mut behind = Behind::default();
    if let Ok(head) = shared.chain.head().await {
        behind.tell(shared, events.cursor().next(), head.number);
    }
    loop {
        let batch = events.next().await?;
        let mut heard = Heard::default();
        if let Batch::Events { events, .. } = &batch {
            let settled = events.iter().filter_map(|logged| match &logged.event {
                Some(Event::GroupSettled(e)) => Some((e.id, e.answer)),
                _ => None,
            });
            heard.right = settled.collect();
            for event in events.iter().filter_map(|logged| logged.event.as_ref()) {
                shared.remember(event);
                heard.hear(shared, event);
            }
        } else {
            say!("the chain was reorganised");
            shared.forget_created();
        }
        shared.journal.learn(batch.cursor(), &heard.news)?;
        events.accept(&batch)?;
        let next = events.cursor().next();
        shared.metrics.read_up_to(next);
        behind.tell(shared, next, muster.endpoints().pulse().head().map_or(0, |head| head.number));
        if let Some(text) = heard.proposed() {
            shared.alert("owner", PROPOSAL, &text);
        }
        for change in heard.changes {
            say!("owner: {change}");
        }
        for (what, text) in heard.alerts {
            shared.alert("events", what, &text);
        }
        shared.wake(&heard.nodes, &heard.tasks);
        let _ = tokio::time::timeout(PACE, shared.urgent.notified()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_far_behind_says_how_long_the_rest_takes() {
        let (mut behind, begun) = (Behind::default(), Instant::now());
        let mut look = |next, head, minutes| behind.look(next, head, begun + Duration::from_mins(minutes));
        assert_eq!(look(100, 1_000, 0), None);
        let (text, rest) = look(1, 2_400_000, 0).unwrap();
        assert_eq!((text.as_str(), rest), ("the events of 2400000 blocks are still to be read", None));
        assert_eq!(look(2, 2_400_000, 1), None);
        let (text, rest) = look(40_001, 2_402_400, 10).unwrap();
        assert_eq!(text, "the events of 2362400 blocks are still to be read, about 590 min at this pace");
        assert!(rest.is_some_and(|rest| rest > LONG));
        assert_eq!(look(2_402_400, 2_402_400, 600), None);
    }
}
