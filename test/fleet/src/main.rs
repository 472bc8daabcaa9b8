//! `muster-fleet`: the demonstration with agents, which `script/demo --agents N` runs.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{ensure, Result};
use clap::Parser;
use muster_fleet::play::{play, Plan};
use muster_fleet::site;

/// A node, stores, and agents as processes that compute embeddings for an application under every policy. Meanwhile they are killed and
/// started again, the endpoint is away, stores fail, one cheats and one is slow. Shows the results
#[derive(Parser)]
#[command(name = "script/demo", max_term_width = 120)]
struct Options {
    /// Agents, a process each; one cheats and one is slow
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(5..=200))]
    agents: u16,
    /// Tasks, 8 at least, a quarter under each policy
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(8..))]
    tasks: u32,
    /// Go on creating tasks for so many minutes, also beyond their number
    #[arg(long, value_name = "MINUTES", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=525_600))]
    minutes: u64,
    /// An agent is killed so often, in seconds, if there is work for so long
    #[arg(long, value_name = "SECONDS", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    kills: u64,
    /// The endpoint is away for so long, once, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(..=3_600))]
    outage: u64,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<()> {
    let agent = site::binary();
    ensure!(agent.is_file(), "there is no {}: script/demo builds it", agent.display());
    ensure!(
        std::env::var_os("RPC_URL").is_none(),
        "RPC_URL is set: agents are shown on a node of this command's own, whose time it makes pass"
    );
    let lasts = Duration::from_mins(options.minutes);
    let plan = Plan {
        agents: options.agents.into(),
        tasks: options.tasks,
        lasts,
        kills: Duration::from_secs(options.kills),
        away: Duration::from_secs(2),
        outage: Duration::from_secs(options.outage),
        // Tasks of three nodes take some ten seconds at five agents; far more than that is a fault.
        patience: lasts + Duration::from_mins(10) + Duration::from_secs(10) * options.tasks,
    };
    let report = play(plan, |line| eprintln!("demo: {line}")).await?;
    println!("{report}");
    report.holds()
}
