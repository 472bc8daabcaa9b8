//! Reading a text while its node makes it: on standard output, and everything else on standard error.

use std::convert::Infallible;
use std::future::pending;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{anyhow, Context, Result};
use muster_client::{digest_of, AnswerTexts, Event, Heard, Outcome, Shown, Streaming, Unproven, Untrue, Why};
use serde_json::json;
use tokio::time::sleep;

use crate::follow::{watch, Start, Which};
use crate::session::{Report, Session};
use crate::stores::At;

/// How often the task's node is looked for.
const LOOK: Duration = Duration::from_millis(300);

/// The stream so far.
#[derive(Default)]
struct Along {
    reads: Option<Streaming>,
    texts: AnswerTexts,
}

/// Prints a task's text while it is made, and the rest of it in the end; fails if the answer is different.
pub async fn read(session: &Session, which: &Which, start: Start, stores: &At, out: Option<&Path>) -> Result<Option<Report>> {
    let (id, from) = (which.id, start.block);
    let lookup = stores.lookup(session)?;
    let mut along = Along::default();
    let events = tokio::select! {
        ended = watch(session, which, start, true, true) => ended?,
        failed = along.read(session, which, from, stores.inside()) => match failed? {},
    };
    let Along { reads, mut texts } = along;
    let outcome = Outcome::of(id, events.iter().map(|past| &past.event)).context("the task has no result")?;
    let nothing = Shown::default();
    let shown = reads.as_ref().map_or(&nothing, Streaming::shown);
    let rest = match session.muster.prove(&outcome, shown, &lookup).await {
        Ok(rest) => rest,
        Err(error @ Unproven::Other { .. }) => {
            return Err(anyhow!("{error}. `muster task result {id} --out FILE` fetches the true result"));
        }
        Err(error) => return Err(error.into()),
    };
    let whole = [shown.text().as_bytes(), &rest].concat();
    match std::str::from_utf8(&rest) {
        Ok(text) => tell(session, id, &texts.push(text)),
        Err(_) if out.is_none() => eprintln!("muster: the result is no text: --out FILE keeps it"),
        Err(_) => {}
    }
    if let Some(out) = out {
        std::fs::write(out, &whole).with_context(|| out.display().to_string())?;
    }
    let (count, digest) = (whole.len(), digest_of(&whole));
    let json = json!({ "id": id.to_string(), "bytes": count, "shown": shown.text().len(), "sha256": digest, "file": out });
    if session.options.json {
        return Ok(Some(Report { json, text: String::new() }));
    }
    println!();
    eprintln!(
        "muster: task {id}: these {count} bytes are the answer on the chain, {digest}; {} came from the stream",
        shown.text().len()
    );
    Ok(None)
}

impl Along {
    /// Reads until the caller ends it.
    async fn read(&mut self, session: &Session, which: &Which, from: u64, inside: bool) -> Result<Infallible> {
        let node = loop {
            // The watch beside this says that no node answers, and ends if that goes on.
            let Ok(events) = which.events_from(session, from).await else {
                sleep(LOOK).await;
                continue;
            };
            let policy = events.iter().find_map(|past| match &past.event {
                Event::TaskCreated(e) => Some(e.spec.redundancy),
                _ => None,
            });
            if policy.is_some_and(|policy| policy != 0) {
                eprintln!("muster: {}", said(&Heard::Hidden));
                return pending().await;
            }
            let started = events.iter().rev().find_map(|past| match &past.event {
                Event::TaskStarted(e) => Some(e.node),
                _ => None,
            });
            match started {
                Some(node) => break node,
                None => sleep(LOOK).await,
            }
        };
        let reads = self.reads.insert(session.muster.streaming(which.id, node, inside).await?);
        loop {
            match reads.next().await {
                Heard::Text(text) => tell(session, which.id, &self.texts.push(&text)),
                Heard::Whole => return pending().await,
                over => {
                    eprintln!("muster: {}", said(&over));
                    return pending().await;
                }
            }
        }
    }
}

/// Prints a piece, without control characters: a node must not control a terminal.
fn tell(session: &Session, id: u64, text: &str) {
    if text.is_empty() {
        return;
    }
    if session.options.json {
        session.say(&Report { json: json!({ "id": id.to_string(), "text": text }), text: String::new() });
        return;
    }
    let harmless = |letter: char| if letter.is_control() && !matches!(letter, '\n' | '\t') { '\u{fffd}' } else { letter };
    let mut to = std::io::stdout().lock();
    // The reader may have gone.
    let _ = to.write_all(text.chars().map(harmless).collect::<String>().as_bytes()).and_then(|()| to.flush());
}

/// The reason why nothing more is shown.
fn said(heard: &Heard) -> String {
    let rest = "the rest comes with the result";
    match heard {
        Heard::Hidden => "this answer is not shown before it is given: it is checked against others, or sealed".into(),
        Heard::Nowhere => "its node shows no answers while it makes them".into(),
        Heard::Stopped(Why::Failed) => "the node has no answer".into(),
        Heard::Stopped(Why::Long) => format!("the answer is longer than a stream may be: {rest}"),
        Heard::Stopped(Why::Changed) => "the node says that its answer differs from its stream".into(),
        Heard::Untrue(Untrue::Malformed) => format!("there is no stream of an answer: {rest}"),
        Heard::Untrue(untrue) => format!("{untrue}: {rest}, and is compared with the streamed text"),
        _ => format!("the node gives this answer whole: {rest}"),
    }
}
