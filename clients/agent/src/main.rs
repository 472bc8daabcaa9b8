//! `muster-agent`: answers the tasks of a machine's nodes, day and night. Its page is the crate's README.

mod answers;
mod apart;
mod chain;
mod clock;
mod config;
mod die;
mod disk;
mod doctor;
mod drive;
mod executor;
mod golden;
mod gpu;
mod heed;
mod hub;
mod init;
mod journal;
mod log;
mod metrics;
mod models;
mod node;
mod pauses;
mod probes;
mod reader;
mod said;
mod setup;
mod shared;
mod stream;
mod terms;
mod work;

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use clap::{Parser, Subcommand};
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::watch;
use tokio::task::JoinSet;

use muster_client::{observe, Error, Lock};

use config::Config;
use metrics::OfNode;
use node::{End, Node};
use shared::Shared;

/// Answers the tasks of this machine's nodes.
#[derive(Parser)]
#[command(name = "muster-agent", version, max_term_width = 120)]
struct Cli {
    /// The configuration
    #[arg(long, env = "MUSTER_AGENT_CONFIG", default_value = "/etc/muster-agent/muster-agent.toml", global = true)]
    config: PathBuf,
    /// The log's lines on standard error: a level, or levels by module
    #[arg(long, env = "MUSTER_LOG", value_name = "FILTER", default_value = "info", global = true)]
    log: String,
    /// The log as JSON, an object a line
    #[arg(long, env = "MUSTER_LOG_JSON", global = true)]
    log_json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Work until SIGTERM or SIGINT, then finish the running task, reveal open answers, pause, and end; a second one ends at once
    Run,
    /// Check configuration, keys, chain, balance, GPU, executor and stores, and print remedies
    Doctor,
    /// Write a configuration with a node for each card that NVIDIA's library finds
    Init(init::Asked),
    /// Fetch a model into the folder of [hub], and compare it with the digests that the hub states
    Fetch {
        /// Its name, as owner/name@commit, or as [hub.revisions] knows it
        model: String,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Err(error) = observe::log(cli.log_json, &cli.log) {
        eprintln!("muster-agent: {error}");
        return ExitCode::FAILURE;
    }
    let done = match cli.command {
        Command::Run => run(&cli.config).await,
        // Broken off, it still removes its folders.
        Command::Doctor => tokio::select! {
            done = doctor::run(&cli.config) => done,
            _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("broken off")),
        },
        Command::Init(asked) => init::run(&cli.config, &asked).await,
        Command::Fetch { model } => fetch(&cli.config, &model).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The directory's lock, for the life of the process: a second one would send other transactions under the same nonces.
fn lock(config: &Config) -> Result<Lock> {
    match Lock::take(&config.home) {
        Err(Error::InUse { path }) => bail!("another agent uses {}", path.display()),
        taken => Ok(taken?),
    }
}

async fn fetch(path: &std::path::Path, model: &str) -> Result<()> {
    let config = Config::read(path)?;
    let hub = config.hub.as_ref().context("there is no [hub] in the configuration")?;
    let folder = hub.folder();
    // Files of another user would keep the agent from later downloads.
    if let Ok(there) = std::fs::metadata(&folder) {
        let (owner, own) = (there.uid(), rustix::process::geteuid().as_raw());
        ensure!(
            owner == own,
            "{} belongs to user {owner}, and the agent could not change another's files: run this by `sudo -u '#{owner}'`",
            folder.display()
        );
    }
    let keep = config.nodes.iter().flat_map(|node| node.models.iter().cloned()).collect();
    for gone in hub.fetch(model, &keep, config.least_free, Duration::MAX).await? {
        observe::print(format_args!("{gone} has made room"));
    }
    observe::print(hub.place(&hub.named(model)?).display());
    Ok(())
}

async fn run(path: &std::path::Path) -> Result<()> {
    let config = Config::read(path)?;
    let _lock = lock(&config)?;
    // Where another program has filled the disk, the journal could not be opened without the space that is kept for it.
    if let Ok(room) = disk::room(&config) {
        disk::keep_some(&config.home, room.bytes, config.least_free);
    }
    // Before anything is paid.
    let listener = match config.listen {
        Some(at) => Some(probes::listen(at).await?),
        None => None,
    };
    let streaming = match &config.stream {
        Some(stream) => Some(stream::listen(stream.listen).await?),
        None => None,
    };
    let (drain, draining) = watch::channel(false);
    listen(drain)?;
    let shared = Shared::open(config, draining).await?;
    let mut serving = JoinSet::new();
    if let Some(listener) = listener {
        let shared = shared.clone();
        serving.spawn(async move {
            if let Err(error) = probes::serve(shared, listener).await {
                tracing::error!("{error:#}");
                std::process::exit(1);
            }
        });
    }
    if let (Some(listener), Some(streams)) = (streaming, shared.streams.clone()) {
        serving.spawn(async move {
            // A stream is no answer: the work goes on without it.
            if let Err(error) = stream::serve(streams, listener).await {
                tracing::error!("answers are not shown any more: {error:#}");
            }
        });
    }
    serving.spawn(shared.clone().sweep());
    serving.spawn(reader::wake(shared.clone()));
    serving.spawn(reader::run(shared.clone()));
    let mut nodes = JoinSet::new();
    for settings in shared.config.nodes.clone() {
        nodes.spawn(live(shared.clone(), settings));
    }
    let mut dismissed = 0;
    while let Some(ended) = nodes.join_next().await {
        dismissed += u32::from(ended.context("a node has broken off")? == End::Dismissed);
    }
    say!("nothing is left to do");
    ensure!(dismissed == 0, "{dismissed} of the keys work for no node any more");
    Ok(())
}

/// A node, from its self-test on; retries if it cannot begin.
async fn live(shared: Arc<Shared>, settings: config::Node) -> End {
    let mut draining = shared.draining.clone();
    let mut rest = Duration::from_secs(5);
    loop {
        let begun = match setup::ready(&shared, &settings).await {
            Ok(ready) => Node::new(shared.clone(), ready),
            Err(error) => Err(error),
        };
        match begun {
            Ok(node) => return node.run().await,
            Err(error) => {
                OfNode(&shared.metrics, &settings.name).set("ready", 0.0);
                shared.alert(&settings.name, "start", &format!("the node cannot begin: {error:#}"));
            }
        }
        if *draining.borrow() {
            return End::Asked;
        }
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            _ = draining.changed() => return End::Asked,
        }
        rest = (rest * 2).min(Duration::from_mins(5));
    }
}

/// The first signal asks it to end, the second ends it at once.
fn listen(drain: watch::Sender<bool>) -> Result<()> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
            }
            if drain.send_replace(true) {
                say!("ending at once: open answers are revealed at the next start");
                std::process::exit(1);
            }
            say!("ending when nothing is left to do");
        }
    });
    Ok(())
}
