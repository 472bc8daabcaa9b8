//! `muster-sim`: see `--help`.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use muster_model::search::hunt::Budget;
use muster_sim::network::{self, single, single::Workload};
use muster_sim::paper::{self, Options, Scale};
use muster_sim::rated;
use muster_sim::{attacks, capacity};

/// Simulates Muster's scheduling on the contracts' own formulas.
///
/// The same seed gives the same results on any machine, with any number of threads.
#[derive(Parser)]
#[command(name = "script/sim", bin_name = "script/sim", version, arg_required_else_help = true, after_help = IMAGES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Reproduces the evaluation of reputation-based scheduling, and goes beyond it
    ///
    /// Runs every experiment of section 5 of Sonnek, Chandra and Weissman, "Adaptive Reputation-Based Scheduling on
    /// Unreliable Distributed Infrastructures". Takes about 20 minutes of processor time without --quick.
    ///
    /// Writes a page that sets each claim of the paper beside our figure (simulator-paper.md), and below it in figures/ a
    /// picture (SVG) of each experiment and its results (CSV).
    Paper(Paper),
    /// Looks for worker populations that agree with the paper
    ///
    /// Tries parameters of the populations of the same paper and judges them by those sentences of its text that constrain
    /// them, and by nothing else. Takes some three minutes of processor time without --quick.
    ///
    /// Writes a page (simulator-populations.md), and its figures as a table (figures/paper-populations.csv).
    Populations(Paper),
    /// Runs a whole network on the contract's own code: nodes, applications, queue, quality of service
    ///
    /// Without a workload it makes every experiment, and writes a page about them (simulator-network.md) and below it in
    /// figures/ a picture (SVG) of each and its results (CSV). Takes 10 to 15 minutes of processor time without --quick.
    ///
    /// With a workload, --requests and --nodes or --tasks and --fleet, it runs that one, prints its results, and
    /// writes them to two tables (network.csv, network-nodes.csv). docs/research/simulator-engine.md describes the simulation.
    #[command(after_help = EXAMPLES)]
    Network(Network),
    /// Searches for attacks on validation, on the contract's own code
    ///
    /// An adversary with some of the nodes and an application tries moves and combinations of moves through 20,000 lives of validation
    /// groups. The best plans are bred, with today's rules and with each of six rules of old put back; and single prices are measured. Stops
    /// at a forbidden event: a wei lost, an honest call refused, an honest stake taken by a minority. Takes some fifteen minutes of
    /// processor time without --quick.
    ///
    /// Writes a page (attacks.md).
    Attacks(Attacks),
    /// Lets the contract choose groups by ratings: the paper's populations, computed targets, farmed ratings
    ///
    /// The contract's own code schedules the populations of `paper`, by the calls that users send, beside the paper's central server;
    /// its predictive target is held against given ones; and an application feeds its own nodes. Takes some four minutes of
    /// processor time without --quick.
    ///
    /// Writes a page (simulator-reputation.md), and below it in figures/ pictures (SVG).
    Reputation(Reputation),
    /// Works out how far the design carries, from measured gas and from networks divided into instances
    ///
    /// Reads docs/generated/gas.json and docs/generated/gas-breakdown.json, simulates networks on the contract's own code, undivided and divided by region
    /// and by model, and writes a page (capacity.md) and a picture (figures/capacity-waiting.svg). `script/bench capacity` runs it. Takes
    /// some minutes of processor time without --quick.
    Capacity(Capacity),
}

/// Pages of measurements, written again with every version of the contracts.
const GENERATED: &str = "docs/generated";
/// Pages of studies.
const RESEARCH: &str = "docs/research";

const IMAGES: &str = "script/sim images measures the perceptual hashes of images: a program of its own, with its own --help.";

const EXAMPLES: &str = "Examples:
  script/sim network --quick
  script/sim network --tasks 100000 --fleet 1000 --load 0.5
  script/sim network --tasks 100000 --fleet 1000 --set exclusionPpm=500000 --set tau=5400
  script/sim network --requests script/demo-data/requests.csv --nodes script/demo-data/nodes.csv --speed 60";

/// The options of every command.
#[derive(Args)]
struct Common {
    /// Decides everything that is left to chance
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..1 << 32))]
    seed: u64,
    /// Threads; 0 takes one per processor
    #[arg(long, default_value_t = 0, value_parser = threads)]
    threads: usize,
    /// Folder for the results; created if it is not there [default: docs/research or docs/generated for a whole page, else build/sim]
    #[arg(long)]
    out: Option<PathBuf>,
}

impl Common {
    fn out(self, page: Option<&str>) -> PathBuf {
        self.out.unwrap_or_else(|| PathBuf::from(page.unwrap_or("build/sim")))
    }
}

#[derive(Args)]
struct Paper {
    /// Few seeds and rounds, in about a minute: for a look, not for conclusions
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    common: Common,
}

impl Paper {
    fn options(self) -> Options {
        let scale = if self.quick { Scale::QUICK } else { Scale::FULL };
        Options { scale, seed: self.common.seed, out: self.common.out((!self.quick).then_some(RESEARCH)) }
    }
}

#[derive(Args)]
struct Network {
    /// Smaller networks and few seeds, in under a minute: for a look, not for conclusions
    #[arg(long, conflicts_with_all = ["requests", "nodes", "tasks", "fleet"])]
    quick: bool,
    /// Runs nothing: paints the pictures again, from the table figures/network.csv
    #[arg(long, conflicts_with_all = ["requests", "nodes", "tasks", "fleet"])]
    repaint: bool,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    workload: Workload,
}

#[derive(Args)]
struct Attacks {
    /// 300 lives and few answers behind each price, in seconds: for a look, not for conclusions
    #[arg(long)]
    quick: bool,
    /// Lives, in whole seasons of twenty [default: 20000, with --quick 300]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..1 << 24))]
    lives: Option<u64>,
    #[command(flatten)]
    common: Common,
}

impl Attacks {
    fn options(self) -> attacks::Options {
        let (lives, answers, plans, seasons) = if self.quick { (300, 500, 20, (2, 2)) } else { (20_000, 10_000, 2_000, (6, 40)) };
        let whole = !self.quick && self.lives.is_none();
        attacks::Options {
            lives: self.lives.unwrap_or(lives),
            answers,
            hunt: Budget { plans, seasons, lives: 3 },
            seed: self.common.seed,
            out: self.common.out(whole.then_some(GENERATED)),
        }
    }
}

#[derive(Args)]
struct Reputation {
    /// Few seeds, rounds and targets, in seconds: for a look, not for conclusions
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    common: Common,
}

impl Reputation {
    fn options(self) -> rated::Options {
        let scale = if self.quick { rated::Scale::QUICK } else { rated::Scale::FULL };
        rated::Options { scale, seed: self.common.seed, out: self.common.out((!self.quick).then_some(RESEARCH)) }
    }
}

#[derive(Args)]
struct Capacity {
    /// A small network with few tasks, in seconds: for a look, not for conclusions
    #[arg(long)]
    quick: bool,
    /// Where gas.json and gas-breakdown.json are
    #[arg(long, default_value = GENERATED)]
    figures: PathBuf,
    #[command(flatten)]
    common: Common,
}

impl Capacity {
    fn options(self) -> capacity::Options {
        let (nodes, each) = if self.quick { (256, 10) } else { (4_096, 40) };
        capacity::Options {
            nodes,
            each,
            seed: self.common.seed,
            figures: self.figures,
            out: self.common.out((!self.quick).then_some(GENERATED)),
        }
    }
}

fn threads(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n <= 1_024).ok_or_else(|| "it can be from 0 to 1024".into())
}

impl Network {
    fn run(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        let seed = self.common.seed;
        if self.workload.given() {
            return single::run(&self.workload, seed, &self.common.out(None));
        }
        let scale = if self.quick { network::Scale::QUICK } else { network::Scale::FULL };
        let options = network::Options { scale, seed, out: self.common.out((!self.quick).then_some(RESEARCH)) };
        if self.repaint {
            return network::repaint(&options);
        }
        network::run(&options)
    }
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    let threads = match &command {
        Command::Paper(Paper { common, .. })
        | Command::Populations(Paper { common, .. })
        | Command::Network(Network { common, .. })
        | Command::Attacks(Attacks { common, .. })
        | Command::Reputation(Reputation { common, .. })
        | Command::Capacity(Capacity { common, .. }) => common.threads,
    };
    if let Err(error) = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global() {
        eprintln!("error: can't start {threads} threads: {error}");
        return ExitCode::FAILURE;
    }
    let done = match command {
        Command::Paper(given) => paper::run(&given.options()),
        Command::Populations(given) => paper::fit::run(&given.options()),
        Command::Network(network) => network.run(),
        Command::Attacks(given) => attacks::run(&given.options()),
        Command::Reputation(given) => rated::run(&given.options()),
        Command::Capacity(given) => capacity::capacity(&given.options()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
