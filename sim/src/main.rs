//! `muster-sim`: see `--help`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use muster_sim::paper::{self, Options, Scale};

/// Simulates Muster's scheduling on the contracts' own formulas.
///
/// The same seed gives the same results, whatever the machine and the number of threads.
#[derive(Parser)]
#[command(name = "script/sim", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Reproduces the evaluation of reputation-based scheduling, and goes beyond it
    ///
    /// Runs every experiment of section 5 of Sonnek, Chandra and Weissman, "Adaptive Reputation-Based Scheduling on
    /// Unreliable Distributed Infrastructures". Takes about half an hour of processor time without --quick.
    ///
    /// Writes a page that sets each claim of the paper beside our figure (simulator-paper.md), and below it in figures/ a
    /// picture (SVG) of each experiment and its results (CSV).
    Paper {
        /// Few seeds and rounds, in under a minute: for a look, not for conclusions
        #[arg(long)]
        quick: bool,
        /// Which workers are drawn, and all luck
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..1 << 32))]
        seed: u64,
        /// Threads; 0 takes one per processor
        #[arg(long, default_value_t = 0)]
        threads: usize,
        /// Folder for the results; created if it is not there [default: docs, or build/sim with --quick]
        #[arg(long)]
        out: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let Command::Paper {
        quick,
        seed,
        threads,
        out,
    } = Arguments::parse().command;
    if let Err(error) = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
    {
        eprintln!("error: can't start {threads} threads: {error}");
        return ExitCode::FAILURE;
    }
    let out = out.unwrap_or_else(|| PathBuf::from(if quick { "build/sim" } else { "docs" }));
    let scale = if quick { Scale::QUICK } else { Scale::FULL };
    match paper::run(&Options { scale, seed, out }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
