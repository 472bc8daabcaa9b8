//! One task: found by its number, shown, and followed to its end.

use std::collections::BTreeSet;
use std::time::Duration;

use alloy::primitives::{B256, U256};
use anyhow::{bail, ensure, Result};
use clap::Args;
use muster_client::{abi, Account, Error, Event, IMuster};
use serde_json::json;
use tokio::time::{sleep, timeout, Instant};

use crate::history::{self, topic, Past};
use crate::session::{event_json, Report, Session};

/// A task ended without a result: the reason.
#[derive(Debug)]
pub struct Ended(pub String);

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Ended {}

#[derive(Args)]
pub struct Which {
    /// The task's number
    pub id: u64,
    /// How far back to look for it
    #[arg(long, default_value_t = 7.0)]
    pub days: f64,
}

/// A reported error, with what agents mean by its code.
fn error_text(code: u8) -> String {
    let meanings = [
        "no node could run it, says its executor",
        "this node could not, or lacks a model or kind",
        "it would not have been in time",
        "no store has its input, or it is sealed to others",
        "a store with its input could not be reached, or none took its result",
    ];
    let meaning = usize::from(code).checked_sub(1).and_then(|at| meanings.get(at));
    format!("its node reported error {code}{}", meaning.map(|meaning| format!(" ({meaning})")).unwrap_or_default())
}

/// A task's outcome, by its events.
pub fn ending(events: &[Past]) -> Option<(bool, String)> {
    events.iter().rev().find_map(|past| match &past.event {
        Event::TaskSucceeded(e) => Some((true, e.resultDigest.to_string())),
        Event::GroupSettled(e) if e.outcome < 2 => Some((true, e.answer.to_string())),
        Event::GroupSettled(e) if e.outcome == 3 => Some((false, "nobody answered".into())),
        // Another group gets it.
        Event::GroupSettled(e) if e.outcome == 4 => None,
        Event::GroupSettled(_) => Some((false, "no two answers were the same".into())),
        Event::TaskErrorReported(e) => Some((false, error_text(e.code))),
        Event::TaskAborted(e) => {
            let reasons =
                ["it timed out", "it was cancelled", "it was evicted", "it was queued for too long", "its node was slashed"];
            Some((false, (*reasons.get(e.reason as usize).unwrap_or(&"it was aborted")).into()))
        }
        _ => None,
    })
}

impl Which {
    pub async fn events(&self, session: &Session) -> Result<Vec<Past>> {
        let from = history::days_ago(session.endpoints(), self.days).await?;
        self.events_from(session, from).await
    }

    /// The task's events from a block on.
    pub async fn events_from(&self, session: &Session, from: u64) -> Result<Vec<Past>> {
        let mut events = history::events(session, from, [Some(topic(U256::from(self.id))), None, None]).await?;
        // Their first value is not a task's number.
        events.retain(|past| id_of(&past.event) == Some(self.id));
        Ok(events)
    }

    /// The task's present state, found by its last events.
    async fn locate(&self, session: &Session, events: &[Past]) -> Result<IMuster::TaskView> {
        let (mut node, mut ticket) = (0, 0);
        for past in events {
            match &past.event {
                Event::TaskStarted(e) => node = e.node,
                Event::MemberStarted(e) => node = e.node,
                Event::TaskQueued(e) => ticket = e.ticket,
                _ => {}
            }
        }
        Ok(session.muster.read(IMuster::locateCall { id: self.id, nodeHint: node, ticketHint: ticket }).await?)
    }

    /// Its present state and its events, of which there must be one or the other.
    async fn known(&self, session: &Session) -> Result<(IMuster::TaskView, Vec<Past>)> {
        let events = self.events(session).await?;
        let view = self.locate(session, &events).await?;
        if events.is_empty() && view.status == 0 {
            bail!("nothing is known of task {} in {}: --days looks further back", self.id, history::last(self.days));
        }
        Ok((view, events))
    }

    pub async fn show(&self, session: &Session) -> Result<Report> {
        let (view, events) = self.known(session).await?;
        let at = ["", "Pending", "queued", "running", "committed", "waiting for its validators", "in a validation group"];
        let state = match ending(&events) {
            _ if view.status > 0 => (*at.get(view.status as usize).unwrap_or(&"unknown")).to_string(),
            Some((true, digest)) => format!("succeeded: {digest}"),
            Some((false, why)) => format!("ended without a result: {why}"),
            None => "ended".into(),
        };
        let mut text = format!("task {}: {state}", self.id);
        if view.status >= 3 {
            text += &format!("\n  node {}, deadline {}", view.node, view.deadline);
        }
        if view.status == 2 {
            text += &format!("\n  ticket {:#x}, since {}", view.ticket, view.queuedAt);
        }
        for past in &events {
            text += &format!("\n  block {}: {}", past.block, abi::describe(&past.event));
        }
        let json = json!({
            "id": self.id.to_string(), "status": view.status, "state": state, "node": view.node, "deadline": view.deadline,
            "ticket": view.ticket.to_string(), "fee": view.fee.to_string(), "events": events.iter().map(|past| event_json(&past.log)).collect::<Vec<_>>(),
        });
        Ok(Report { json, text })
    }

    pub async fn cancel(&self, session: &Session) -> Result<Report> {
        let (view, _) = self.known(session).await?;
        let call = IMuster::cancelCall { id: self.id, ticket: view.ticket };
        session.call(call, U256::ZERO, &format!("task {} cancelled", self.id)).await
    }

    pub async fn result(&self, session: &Session) -> Result<Report> {
        let outcome = session.muster.read(IMuster::outcomeCall { id: self.id }).await?;
        let (succeeded, digest) = match outcome.state {
            2 => (true, outcome.resultDigest.to_string()),
            0 => match ending(&self.events(session).await?) {
                Some(ending) => ending,
                None => bail!("task {} has not ended, or not in {}", self.id, history::last(self.days)),
            },
            1 => bail!("task {} has not ended", self.id),
            3 => (false, error_text(outcome.code)),
            other => (false, format!("its outcome is {other}")),
        };
        if !succeeded {
            return Err(Ended(format!("task {} has no result: {digest}", self.id)).into());
        }
        Ok(Report { json: json!({ "id": self.id.to_string(), "resultDigest": digest }), text: digest })
    }
}

fn id_of(event: &Event) -> Option<u64> {
    // NodeSlashed and NodeWaits name a task, too, but not first.
    Some(match event {
        Event::TaskCreated(e) => e.id,
        Event::TaskRedrawn(e) => e.id,
        Event::TaskQueued(e) => e.id,
        Event::TaskStarted(e) => e.id,
        Event::TaskSucceeded(e) => e.id,
        Event::TaskErrorReported(e) => e.id,
        Event::TaskAborted(e) => e.id,
        Event::TaskSampled(e) => e.id,
        Event::AnswerCommitted(e) => e.id,
        Event::AnswerRevealed(e) => e.id,
        Event::GroupFormed(e) => e.id,
        Event::GroupSettled(e) => e.id,
        Event::MemberCalled(e) => e.id,
        Event::MemberStarted(e) => e.id,
        Event::MemberTimedOut(e) => e.id,
        Event::MemberJudged(e) => e.id,
        _ => return None,
    })
}

/// Blocks that are read again each time, because the newest may have been replaced.
const AGAIN: u64 = 32;
/// The longest pause between two questions.
const SELDOM: Duration = Duration::from_secs(1);

/// Since when no node answers one who follows a task. The task goes on meanwhile, and is paid for.
#[derive(Default)]
struct Away {
    /// Whether one has ever answered.
    known: bool,
    since: Option<Instant>,
}

impl Away {
    /// An answer. None, while no node gave one for less than `--wait` after an earlier answer.
    fn passes<T>(&mut self, session: &Session, answer: Result<T>) -> Result<Option<T>> {
        let error = match answer {
            Ok(answer) => {
                *self = Self { known: true, since: None };
                return Ok(Some(answer));
            }
            Err(error) => error,
        };
        let unreachable = matches!(error.downcast_ref(), Some(Error::Unreachable(_)));
        let patience = session.options.patience();
        if !self.known || !unreachable || self.since.is_some_and(|since| since.elapsed() >= patience) {
            return Err(error);
        }
        if self.since.is_none() {
            self.since = Some(Instant::now());
            eprintln!("muster: {error}: asked again for {} s (--wait)", patience.as_secs());
        }
        Ok(None)
    }
}

/// Whence a task is followed.
pub struct Start {
    /// The first block.
    pub block: u64,
    /// A transaction whose events people have already seen.
    pub seen: Option<B256>,
    /// The account that makes the draw, if it is open.
    pub account: Option<Account>,
}

impl Start {
    /// The block from which the last `days` begin.
    pub async fn days_ago(session: &Session, days: f64) -> Result<Self> {
        Ok(Self { block: history::days_ago(session.endpoints(), days).await?, seen: None, account: None })
    }
}

/// Follows a task, and returns its events. Makes a due draw itself, since the follower gains most by it.
/// Progress goes to standard error if the output is something else.
pub async fn watch(session: &Session, which: &Which, start: Start, drive: bool, aside: bool) -> Result<Vec<Past>> {
    let Start { block: from, seen, mut account } = start;
    let endpoints = session.endpoints();
    let pulse = endpoints.pulse();
    let mut told = pulse.logs();
    let (mut events, mut next, mut changed, mut waits) = (Vec::<Past>::new(), from, Instant::now(), false);
    let (mut shown, mut unknown) = (BTreeSet::new(), None::<Instant>);
    let mut away = Away::default();
    loop {
        told.mark_unchanged();
        // Concurrently: each question takes a round trip.
        let asked = async {
            let (head, new, view) =
                tokio::join!(endpoints.recent_head(), which.events_from(session, next), which.locate(session, &events));
            anyhow::Ok((head?.number, new?, view?))
        };
        let Some((head, new, view)) = away.passes(session, asked.await)? else {
            sleep(SELDOM).await;
            continue;
        };
        // A reorganisation may have undone those that are not told again.
        events.retain(|past| past.block < next);
        for past in new {
            if shown.insert((past.log.block_hash, past.transaction, past.log.log_index)) {
                changed = Instant::now();
                let text = format!("block {}: {}", past.block, abi::describe(&past.event));
                // People have seen those of this transaction in its report.
                let reported = seen == Some(past.transaction) && !session.options.json;
                if aside && !session.options.json && !reported {
                    eprintln!("muster: {text}");
                } else if !reported {
                    session.say(&Report { json: event_json(&past.log), text });
                }
            }
            events.push(past);
        }
        next = from.max(head.saturating_sub(AGAIN));
        if !events.is_empty() {
            unknown = None;
        }
        let created = events.iter().find(|past| matches!(past.event, Event::TaskCreated(_)));
        if let (Some(seen), Some(created)) = (seen, created) {
            ensure!(
                created.transaction == seen,
                "a reorganisation of the chain made task {} another one, of transaction {}: transaction {seen} may have created yours under another number",
                which.id,
                created.transaction
            );
        }
        if view.status == 2 && !waits && !session.options.json {
            waits = true;
            eprintln!("muster: it waits for a node; muster task cancel {} refunds its fee, less the start fee", which.id);
        }
        let mut awaited = None;
        match (ending(&events), view.status) {
            (Some((true, _)), 0) => return Ok(events),
            (Some((false, why)), 0) => return Err(Ended(format!("task {} has no result: {why}", which.id)).into()),
            (None, 0) if events.is_empty() => {
                // The node may be behind the one that told of the creation, and a reorganisation may have it in a later block.
                let since = *unknown.get_or_insert_with(Instant::now);
                if seen.is_none() || since.elapsed() >= session.options.patience() {
                    bail!("nothing is known of task {}", which.id);
                }
            }
            (_, 1) if drive && !session.options.dry_run => {
                if view.drawBlock <= head {
                    let call = IMuster::dispatchCall { count: 1 };
                    // The account is released, because another command may need it meanwhile.
                    let drawn = match account.take() {
                        // Nothing of an earlier run is open in it.
                        Some(account) => account.call(call, U256::ZERO).await.is_ok(),
                        None => session.call_by(&session.account().await?, call, U256::ZERO, "draw").await.is_ok(),
                    };
                    // Another may have been quicker.
                    if drawn {
                        continue;
                    }
                } else {
                    awaited = Some(view.drawBlock);
                }
            }
            _ => {}
        }
        // As often as there are blocks after an event, and less often the longer there is none.
        let pause = (pulse.block_time() / 2).max(changed.elapsed() / 16).min(SELDOM);
        if let Some(block) = awaited {
            let _ = timeout(SELDOM, endpoints.reach(block)).await;
        } else if pulse.is_live() {
            let _ = timeout(SELDOM, told.changed()).await;
        } else {
            sleep(pause).await;
        }
    }
}
