//! Tasks: create, follow, cancel, and fetch the result.

use std::path::{Path, PathBuf};
use std::time::Duration;

use alloy::primitives::{B256, U256};
use alloy::sol_types::SolCall;
use anyhow::{ensure, Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use muster_client::{digest_of, show_amount, IMuster, Outcome, BATCH};
use serde_json::json;
use tokio::time::sleep;

use crate::follow::{watch, Start, Which};
use crate::history::Past;
use crate::node;
use crate::options::amount;
use crate::session::{Payments, Report, Session};
use crate::stores::At;
use crate::stream;

#[derive(Subcommand)]
pub enum Command {
    /// Pay for a task
    Create(Create),
    /// A task's state, and its history
    Show(Which),
    /// Follow a task to its end, and draw its node if nobody else does
    Watch(Follow),
    /// Cancel a queued task; the fee is refunded less the start fee
    Cancel(Which),
    /// Fetch a task's result into a file, or only print its digest; fails if there is none
    Result(Fetch),
    /// Read a text while its node makes it; in the end, check that it is the result on the chain
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
    /// The kind of work
    #[arg(long, value_enum, default_value = "images")]
    kind: Kind,
    /// The number of units
    #[arg(long, default_value_t = 1)]
    units: u32,
    /// Least memory of the GPU in GiB
    #[arg(long, default_value_t = 0)]
    vram: u16,
    /// Only this GPU, as NAME:GIB, or by the number of its group
    #[arg(long)]
    gpu: Option<String>,
    /// How the answer is checked
    #[arg(long, value_enum, default_value = "single")]
    policy: Policy,
    /// A model that it needs, by name or id; repeat for more
    #[arg(long = "model", value_name = "MODEL")]
    models: Vec<String>,
    /// The input, whose SHA-256 goes into the task. It is put into the stores of `--store` before anything is paid. `task create` takes several,
    /// for as many tasks, which are created together
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
    /// The fee of each, as 0.2ether; a number alone is wei [default: the least]
    #[arg(long, value_parser = amount)]
    fee: Option<U256>,
}

#[derive(Args)]
pub struct Create {
    #[command(flatten)]
    task: Ask,
    /// Follow it to its end; not for several
    #[arg(long)]
    follow: bool,
}

#[derive(Args)]
pub struct Run {
    #[command(flatten)]
    task: Ask,
    /// The result's file; an existing one is replaced
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
    /// The result's file in the end; an existing one is replaced
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    stores: At,
}

#[derive(Args)]
pub struct Fetch {
    #[command(flatten)]
    which: Which,
    /// The result's file; an existing one is replaced. Without it only the digest is printed
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    stores: At,
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
                let start = Start::days_ago(session, follow.which.days).await?;
                watch(session, &follow.which, start, !follow.only, false).await.map(|_| None)
            }
            Command::Cancel(which) => which.cancel(session).await.map(Some),
            Command::Result(fetch) => fetch.run(session).await.map(Some),
            Command::Stream(stream) => {
                session.listen()?;
                let start = Start::days_ago(session, stream.which.days).await?;
                stream::read(session, &stream.which, start, &stream.stores, stream.out.as_deref()).await
            }
            Command::Run(run) => run.run(session).await,
        }
    }
}

/// A task that was created.
struct Created {
    id: u64,
    start: Start,
}

impl Create {
    async fn run(&self, session: &Session) -> Result<Option<Report>> {
        ensure!(self.task.inputs.len() < 2 || !self.follow, "--follow is for a single task: watch them by `muster task watch`");
        if let Some(Created { id, start }) = self.task.create(session, self.follow).await? {
            if self.follow {
                watch(session, &Which { id, days: 1.0 }, start, true, false).await?;
            }
        }
        Ok(None)
    }
}

impl Run {
    async fn run(&self, session: &Session) -> Result<Option<Report>> {
        ensure!(self.task.inputs.len() < 2, "one task has one result: create several by `muster task create`");
        ensure!(!session.options.dry_run, "a dry run has no result: `muster task create --dry-run` prints the cost");
        room(&self.out).context("nothing was paid")?;
        let Created { id, start } = self.task.create(session, true).await?.context("the contract told of no task")?;
        let which = Which { id, days: 1.0 };
        if self.stream {
            return stream::read(session, &which, start, &self.task.stores, Some(&self.out)).await;
        }
        let events = watch(session, &which, start, true, false).await?;
        fetch(session, id, &events, &self.task.stores, &self.out).await.map(Some)
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

/// Tries to fetch a result while a store is out of reach.
const TRIES: u32 = 3;
/// The pause between two times.
const PAUSE: Duration = Duration::from_secs(2);

/// Whether a file could be there.
fn room(out: &Path) -> Result<()> {
    let place = out.parent().filter(|place| !place.as_os_str().is_empty()).unwrap_or(Path::new("."));
    ensure!(place.is_dir(), "{}: there is no directory {}", out.display(), place.display());
    ensure!(!out.is_dir(), "{} is a directory", out.display());
    Ok(())
}

/// Writes a task's result to a file.
async fn fetch(session: &Session, id: u64, events: &[Past], stores: &At, out: &Path) -> Result<Report> {
    let far = || format!("the answer to task {id} is not in the events of the last days: --days looks further back");
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
        sleep(PAUSE).await;
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
        if follow {
            session.listen()?;
        }
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
        let wei = |fee: U256| u128::try_from(fee).ok().context("no fee is that high");
        let fees = self.fee.map(wei).transpose()?.into_iter().collect();
        let asked = IMuster::createTasksCall { specs: specs.clone(), fees, atomic: true }.abi_encode();
        // Concurrently: each question takes a round trip.
        let (estimate, payments) =
            tokio::join!(session.muster.read(IMuster::estimateCall { kind, units: self.units }), Payments::open(session, asked));
        let (least, mut payments) = (estimate?.leastFee, payments?);
        let nodes = match self.policy {
            Policy::Single | Policy::Sampled => 1,
            Policy::Replicated => 3,
            Policy::Rated => {
                let application = session.address().await?;
                session.muster.read(IMuster::profileCall { application }).await?._0.most
            }
        };
        let fee = self.fee.unwrap_or(U256::from(least) * U256::from(nodes));
        let each = wei(fee)?;
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
        let block = report.json["block"].as_u64().context("a receipt has a block")?;
        let seen = report.json["transaction"].as_str().and_then(|hash| hash.parse().ok());
        Ok(Some(Created { id, start: Start { block, seen, account } }))
    }
}

/// Creates several tasks, all or none of each call, and reports each call's result.
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
