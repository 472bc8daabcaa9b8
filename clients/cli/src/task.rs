//! Tasks: creating one, following it, taking it back, its result.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alloy::primitives::{B256, U256};
use alloy::sol_types::SolCall;
use anyhow::{bail, ensure, Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use muster_client::{abi, digest_of, show_amount, Account, Event, IMuster, Outcome, BATCH};
use serde_json::json;
use tokio::time::{sleep, timeout, Instant};

use crate::history::{self, topic, Past};
use crate::node;
use crate::options::amount;
use crate::session::{event_json, Payments, Report, Session};
use crate::stores::At;
use crate::stream;

/// A task ended without a result: the reason.
#[derive(Debug)]
pub struct Ended(pub String);

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Ended {}

#[derive(Subcommand)]
pub enum Command {
    /// Pay for a task
    Create(Create),
    /// Where a task is, and what happened to it
    Show(Which),
    /// Follow a task to its end, and draw its node where nobody else does
    Watch(Follow),
    /// Take a queued task back; the fee is refunded less the start fee
    Cancel(Which),
    /// A task's result into a file, or only its digest; fails where there is none
    Result(Fetch),
    /// Read a text while its node makes it; in the end, whether it is the result that the chain has
    Stream(Stream),
    /// Pay for a task, wait for its end, and fetch its result
    Run(Run),
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Kind {
    /// Images by Stable Diffusion; units are images
    #[value(alias = "sd")]
    Images,
    /// Text by a language model; units are requests
    Gpt,
    /// Fine-tuning; units are seconds
    FineTuning,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Policy {
    /// One node, whose answer nobody checks
    Single,
    /// One node, which cannot know whether it will be checked
    Sampled,
    /// Three nodes at once; the fee is for all three
    Replicated,
    /// As many as the sender's profile says, chosen by their ratings; the fee is for the most
    Rated,
}

#[derive(Args)]
pub struct Ask {
    /// What is to be done
    #[arg(long, value_enum, default_value = "images")]
    kind: Kind,
    /// How much of it
    #[arg(long, default_value_t = 1)]
    units: u32,
    /// Least memory of the GPU in GiB
    #[arg(long, default_value_t = 0)]
    vram: u16,
    /// Only this GPU, as NAME:GIB, or by the number of its group
    #[arg(long)]
    gpu: Option<String>,
    /// How the answer comes to be trusted
    #[arg(long, value_enum, default_value = "single")]
    policy: Policy,
    /// A model that it needs, by name or id; repeat for more
    #[arg(long = "model", value_name = "MODEL")]
    models: Vec<String>,
    /// The input, whose SHA-256 goes into the task; repeat for as many tasks, which are created together. It is put into the stores of
    /// `--store` before anything is paid
    #[arg(long = "input", value_name = "FILE", conflicts_with = "input_digest")]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    stores: At,
    /// The digest of the input
    #[arg(long, value_name = "HASH", required_unless_present = "inputs")]
    input_digest: Option<B256>,
    /// Keep a receipt in storage, which contracts can read
    #[arg(long)]
    receipt: bool,
    /// What each pays [default: the least]
    #[arg(long, value_parser = amount)]
    fee: Option<U256>,
}

#[derive(Args)]
pub struct Create {
    #[command(flatten)]
    task: Ask,
    /// Follow it to its end; of several, none is
    #[arg(long)]
    follow: bool,
}

#[derive(Args)]
pub struct Run {
    #[command(flatten)]
    task: Ask,
    /// Where its result is to be; a file that is there is replaced
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print a text while its node makes it
    #[arg(long)]
    stream: bool,
}

#[derive(Args)]
pub struct Stream {
    #[command(flatten)]
    which: Which,
    /// Where the result is to be in the end; a file that is there is replaced
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    stores: At,
}

#[derive(Args)]
pub struct Fetch {
    #[command(flatten)]
    which: Which,
    /// Where the result is to be; a file that is there is replaced. Without it only the digest is printed
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    stores: At,
}

#[derive(Args)]
pub struct Which {
    /// The task's number
    pub id: u64,
    /// How far back to look for it
    #[arg(long, default_value_t = 7.0)]
    pub days: f64,
}

#[derive(Args)]
pub struct Follow {
    #[command(flatten)]
    which: Which,
    /// Only watch, and leave the draw to others
    #[arg(long)]
    only: bool,
}

impl Command {
    pub async fn run(&self, session: &Session) -> Result<Option<Report>> {
        match self {
            Command::Create(create) => create.run(session).await,
            Command::Show(which) => which.show(session).await.map(Some),
            Command::Watch(follow) => {
                session.listen()?;
                let from = history::days_ago(session.endpoints(), follow.which.days).await?;
                watch(session, &follow.which, from, !follow.only, None, false).await.map(|()| None)
            }
            Command::Cancel(which) => which.cancel(session).await.map(Some),
            Command::Result(fetch) => fetch.run(session).await.map(Some),
            Command::Stream(stream) => {
                session.listen()?;
                let from = history::days_ago(session.endpoints(), stream.which.days).await?;
                let out = stream.out.as_deref();
                stream::read(session, &stream.which, from, None, &stream.stores, out).await
            }
            Command::Run(run) => run.run(session).await,
        }
    }
}

/// A task that was created.
struct Created {
    id: u64,
    block: u64,
    account: Option<Account>,
}

impl Create {
    async fn run(&self, session: &Session) -> Result<Option<Report>> {
        ensure!(self.task.inputs.len() < 2 || !self.follow, "--follow is for a single task: watch them by `muster task watch`");
        if let Some(Created { id, block, account }) = self.task.create(session, self.follow).await? {
            if self.follow {
                watch(session, &Which { id, days: 1.0 }, block, true, account, false).await?;
            }
        }
        Ok(None)
    }
}

impl Run {
    async fn run(&self, session: &Session) -> Result<Option<Report>> {
        ensure!(self.task.inputs.len() < 2, "one task has one result: create several by `muster task create`");
        ensure!(
            !session.options.dry_run,
            "what is not sent has no result: `muster task create --dry-run` says what it would cost"
        );
        let created = self.task.create(session, true).await?.context("the contract told of no task")?;
        let which = Which { id: created.id, days: 1.0 };
        if self.stream {
            return stream::read(session, &which, created.block, created.account, &self.task.stores, Some(&self.out)).await;
        }
        watch(session, &which, created.block, true, created.account, false).await?;
        let events = which.events_from(session, created.block).await?;
        fetch(session, created.id, &events, &self.task.stores, &self.out).await.map(Some)
    }
}

impl Fetch {
    async fn run(&self, session: &Session) -> Result<Report> {
        let report = self.which.result(session).await?;
        let Some(out) = &self.out else { return Ok(report) };
        let events = self.which.events(session).await?;
        fetch(session, self.which.id, &events, &self.stores, out).await
    }
}

/// A result is asked for so often where a store is out of reach.
const TRIES: u32 = 3;

/// Writes a task's result to a file.
async fn fetch(session: &Session, id: u64, events: &[Past], stores: &At, out: &Path) -> Result<Report> {
    let far = || format!("what task {id} was answered with is not in the events of the last days: --days looks further back");
    let outcome = Outcome::of(id, events.iter().map(|past| &past.event)).with_context(far)?;
    let lookup = stores.lookup(session)?;
    let mut tried = 1;
    let found = loop {
        match session.muster.result(&outcome, &lookup).await {
            Ok(found) => break found,
            Err(error) if error.passes() && tried < TRIES => tried += 1,
            Err(error) => {
                return Err(anyhow::Error::new(error).context(
                    "the result cannot be had: ask again later, name another store by --store, or ask the node's operator. \
                     Nodes keep results for a week unless they say otherwise",
                ));
            }
        }
        sleep(SELDOM * 2).await;
    };
    let count = found.bytes.len();
    std::fs::write(out, &found.bytes).with_context(|| out.display().to_string())?;
    let tries: Vec<_> = found.attempts.iter().map(|attempt| format!("{}: {}", attempt.store, attempt.trouble)).collect();
    let mut text = format!("{count} bytes from {} in {}", found.store, out.display());
    for tried in &tries {
        text += &format!("\n  {tried}");
    }
    let digest = digest_of(&found.bytes);
    let json = json!({
        "id": id.to_string(), "bytes": count, "sha256": digest, "store": found.store, "file": out, "attempts": tries,
    });
    Ok(Report { json, text })
}

impl Ask {
    async fn create(&self, session: &Session, follow: bool) -> Result<Option<Created>> {
        let gpu = match self.gpu.as_deref().map(|text| (text, text.rsplit_once(':'))) {
            None => 0,
            Some((_, Some((name, vram)))) => {
                let vram = vram.parse().with_context(|| format!("{vram} is no number of GiB"))?;
                session.muster.read(IMuster::gpuGroupCall { name: name.into(), vram }).await?
            }
            Some((text, None)) => text.parse().with_context(|| format!("{text} is neither NAME:GIB nor a group's number"))?,
        };
        let mut digests = Vec::from_iter(self.input_digest);
        for file in &self.inputs {
            let bytes = std::fs::read(file).with_context(|| file.display().to_string())?;
            let bytes = self.stores.sealed(session, bytes, gpu, self.vram).await?;
            digests.push(self.stores.keep(session, &bytes).await.with_context(|| format!("{}", file.display()))?);
        }
        let (kind, redundancy) = (self.kind as u8, self.policy as u8);
        let least = session.muster.read(IMuster::estimateCall { kind, units: self.units }).await?.leastFee;
        let nodes = match self.policy {
            Policy::Single | Policy::Sampled => 1,
            Policy::Replicated => 3,
            Policy::Rated => {
                let application = session.address().await?;
                session.muster.read(IMuster::profileCall { application }).await?._0.most
            }
        };
        let fee = self.fee.unwrap_or(U256::from(least) * U256::from(nodes));
        let models = node::models(&self.models)?;
        let specs = digests.into_iter().map(|digest| IMuster::TaskSpec {
            kind,
            units: self.units,
            vram: self.vram,
            gpu,
            redundancy,
            flags: self.receipt.into(),
            inputDigest: digest,
            models: models.clone(),
        });
        let mut specs: Vec<_> = specs.collect();
        let each = u128::try_from(fee).ok().context("no fee is that high")?;
        let fees = if self.fee.is_some() { vec![each] } else { Vec::new() };
        if follow {
            session.listen()?;
        }
        let asked = IMuster::createTasksCall { specs: specs.clone(), fees, atomic: true }.abi_encode();
        let mut payments = Payments::open(session, asked).await?;
        if specs.len() > 1 {
            create_all(session, &mut payments, &specs, each).await?;
            payments.told().await?;
            return Ok(None);
        }
        let call = IMuster::createTaskCall { spec: specs.remove(0) };
        let report = payments.call(call, fee, |fee| format!("task for {}", show_amount(fee))).await?;
        session.say(&report);
        let account = payments.told().await?;
        let id = report.json["events"].as_array().and_then(|events| {
            events.iter().find(|event| event["event"] == "TaskCreated")?["values"]["id"].as_str()?.parse::<u64>().ok()
        });
        let Some(id) = id else { return Ok(None) };
        Ok(Some(Created { id, block: report.json["block"].as_u64().context("a receipt has a block")?, account }))
    }
}

/// Creates several tasks, those of one call all or none, and says of each call what it came to.
async fn create_all(session: &Session, payments: &mut Payments<'_>, specs: &[IMuster::TaskSpec], each: u128) -> Result<()> {
    for (done, some) in specs.chunks(BATCH).enumerate() {
        let call = IMuster::createTasksCall { specs: some.to_vec(), fees: vec![each; some.len()], atomic: true };
        let count = U256::from(some.len());
        let what = |value: U256| format!("{count} tasks for {} each", show_amount(value / count));
        let report = payments.call(call, U256::from(each) * count, what).await;
        session.say(&report.with_context(|| format!("{} of {} tasks were created before", done * BATCH, specs.len()))?);
    }
    Ok(())
}

/// What became of a task, by its events.
fn ending(events: &[Past]) -> Option<(bool, String)> {
    events.iter().rev().find_map(|past| match &past.event {
        Event::TaskSucceeded(e) => Some((true, e.resultDigest.to_string())),
        Event::GroupSettled(e) if e.outcome < 2 => Some((true, e.answer.to_string())),
        Event::GroupSettled(e) if e.outcome == 3 => Some((false, "nobody answered".into())),
        // Another group is given it.
        Event::GroupSettled(e) if e.outcome == 4 => None,
        Event::GroupSettled(_) => Some((false, "no two answers were the same".into())),
        Event::TaskErrorReported(e) => Some((false, format!("its node reported error {}", e.code))),
        Event::TaskAborted(e) => {
            let reasons =
                ["it timed out", "it was cancelled", "it was evicted", "it was queued for too long", "its node was slashed"];
            Some((false, (*reasons.get(e.reason as usize).unwrap_or(&"it was aborted")).into()))
        }
        _ => None,
    })
}

impl Which {
    async fn events(&self, session: &Session) -> Result<Vec<Past>> {
        let from = history::days_ago(session.endpoints(), self.days).await?;
        self.events_from(session, from).await
    }

    /// The task's events from a block on.
    pub async fn events_from(&self, session: &Session, from: u64) -> Result<Vec<Past>> {
        let mut events = history::events(session, from, [Some(topic(U256::from(self.id))), None, None]).await?;
        // Others have a number of another kind as their first.
        events.retain(|past| id_of(&past.event) == Some(self.id));
        Ok(events)
    }

    /// The task as it is, found by what its events said last.
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

    async fn show(&self, session: &Session) -> Result<Report> {
        let events = self.events(session).await?;
        let view = self.locate(session, &events).await?;
        if events.is_empty() && view.status == 0 {
            bail!("nothing is known of task {} in the last {} days: --days looks further back", self.id, self.days);
        }
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

    async fn cancel(&self, session: &Session) -> Result<Report> {
        let view = self.locate(session, &self.events(session).await?).await?;
        let call = IMuster::cancelCall { id: self.id, ticket: view.ticket };
        session.call(call, U256::ZERO, &format!("task {} cancelled", self.id)).await
    }

    async fn result(&self, session: &Session) -> Result<Report> {
        let outcome = session.muster.read(IMuster::outcomeCall { id: self.id }).await?;
        let (succeeded, digest) = match outcome.state {
            2 => (true, outcome.resultDigest.to_string()),
            0 => match ending(&self.events(session).await?) {
                Some(ending) => ending,
                None => bail!("task {} has not ended, or not in the last {} days", self.id, self.days),
            },
            1 => bail!("task {} has not ended", self.id),
            3 => (false, format!("its node reported error {}", outcome.code)),
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

/// So many blocks are read again each time: the newest of them may have been replaced.
const AGAIN: u64 = 32;
/// The longest pause between two questions.
const SELDOM: Duration = Duration::from_secs(1);

/// Follows a task from a block on. A draw that is due it makes itself, for whoever follows a task gains most by it.
/// What happens is said on standard error if something else is printed meanwhile.
pub async fn watch(
    session: &Session,
    which: &Which,
    from: u64,
    drive: bool,
    mut account: Option<Account>,
    aside: bool,
) -> Result<()> {
    let endpoints = session.endpoints();
    let pulse = endpoints.pulse();
    let mut told = pulse.logs();
    let (mut events, mut next, mut changed) = (Vec::<Past>::new(), from, Instant::now());
    loop {
        told.mark_unchanged();
        let known: BTreeSet<_> = events.iter().map(|past| (past.transaction, past.log.log_index)).collect();
        // At once: each question takes as long as the way to the node.
        let (head, new, view) = tokio::join!(endpoints.head(), which.events_from(session, next), which.locate(session, &events));
        let (head, mut new, view) = (head?.number, new?, view?);
        new.retain(|past| !known.contains(&(past.transaction, past.log.log_index)));
        for past in new {
            let text = format!("block {}: {}", past.block, abi::describe(&past.event));
            if aside && !session.options.json {
                eprintln!("muster: {text}");
            } else {
                session.say(&Report { json: event_json(&past.log), text });
            }
            events.push(past);
            changed = Instant::now();
        }
        next = from.max(head.saturating_sub(AGAIN));
        let mut awaited = None;
        match (ending(&events), view.status) {
            (Some((true, _)), 0) => return Ok(()),
            (Some((false, why)), 0) => return Err(Ended(format!("task {} has no result: {why}", which.id)).into()),
            (None, 0) if events.is_empty() => bail!("nothing is known of task {}", which.id),
            (_, 1) if drive && !session.options.dry_run => {
                if view.drawBlock <= head {
                    let account = match account.take() {
                        Some(account) => account,
                        None => session.account().await?,
                    };
                    // Somebody else may have been quicker. The account is given back: another command may want it meanwhile.
                    if session.call_by(&account, IMuster::dispatchCall { count: 1 }, U256::ZERO, "draw").await.is_ok() {
                        continue;
                    }
                } else {
                    awaited = Some(view.drawBlock);
                }
            }
            _ => {}
        }
        // As often as there are blocks after something has happened, and less often the longer nothing does.
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
