//! One workload, from traces or made up, and its results.

use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use muster_protocol::native::Memory;

use super::engine::Engine;
use super::ledger::Ledger;
use super::policy::{Merit, Policy};
use super::report::{quantile, Report};
use super::study::{bar, MEASURES, WITHOUT_H};
use super::workload::{fleet, fleet_of, Kind, Profile, Source, TICKS};
use crate::random::Random;
use crate::trace;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Most tasks: their ids and times must fit.
const TASKS: u64 = 20_000_000;
/// Most nodes of a made-up fleet.
const NODES: u64 = 1_000_000;
/// Longest time over which traced tasks may come, in seconds: 20 years, so that times fit the contract's 32 bits.
const LONGEST: u64 = 20 * 365 * 86_400;
/// Longest expected time for made-up ones. A gap is at most 42 times its mean: ln(1e18) is 41.4.
const LONGEST_EXPECTED: f64 = (LONGEST / 42) as f64;

/// The workload to run.
#[derive(clap::Args, Clone, Debug)]
pub struct Workload {
    /// Requests to replay: CSV in the columns of GenTD26's trace (with --nodes)
    ///
    /// gmt_create, predict_status (SUCCEED, FAILED, ERROR or CANCELLED), exec_time_seconds, groupId,
    /// num_images_per_prompt, num_inference_steps, checkpoint_model_version_id, num_lora; others are not looked at.
    #[arg(long, value_name = "FILE", requires = "nodes", conflicts_with_all = ["tasks", "fleet"])]
    pub requests: Option<PathBuf>,
    /// GPU machines to take nodes from: CSV in the columns of openb's node list (with --requests)
    ///
    /// model (of its GPUs), gpu (how many it has) and vram (GiB, of each); others are not looked at.
    #[arg(long, value_name = "FILE", requires = "requests")]
    pub nodes: Option<PathBuf>,
    /// VRAM of a card whose size the file does not say, in GiB; can be repeated
    #[arg(long, value_name = "NAME=GiB", requires = "nodes", value_parser = trace::size)]
    pub vram: Vec<(String, u16)>,
    /// Requests to replay at most
    #[arg(long, value_name = "N", requires = "requests")]
    pub limit: Option<NonZeroUsize>,
    /// GPUs to take from the machines, chosen by the seed [default: all]
    #[arg(long, value_name = "K", requires = "requests")]
    pub gpus: Option<usize>,
    /// Let requests arrive this many times as fast; tasks take as long as they took
    #[arg(long, value_name = "X", requires = "requests", default_value_t = 1.0, allow_negative_numbers = true)]
    pub speed: f64,
    /// Tasks to make up (with --fleet)
    #[arg(long, value_name = "N", requires = "fleet", value_parser = clap::value_parser!(u64).range(1..=TASKS))]
    pub tasks: Option<u64>,
    /// Nodes to make up (with --tasks)
    #[arg(long, value_name = "N", requires = "tasks", value_parser = clap::value_parser!(u64).range(1..=NODES))]
    pub fleet: Option<u64>,
    /// Work requested of a made-up fleet, as a share of its capacity
    #[arg(long, value_name = "X", requires = "tasks", default_value_t = 0.7, allow_negative_numbers = true)]
    pub load: f64,
    /// Share of the tasks given to three nodes at once (redundancy 2), as far as the contract takes them
    #[arg(long, value_name = "X", default_value_t = 0.1, allow_negative_numbers = true)]
    pub groups: f64,
    /// Share of the other tasks whose answers are committed to and sampled for validation (redundancy 1)
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    pub sampled: f64,
    /// The policy that chooses nodes; all but the contract are there for comparison
    #[arg(long, value_enum, default_value_t = Choice::Contract)]
    pub choice: Choice,
    /// Leave the short-term factor H out
    #[arg(long)]
    pub without_h: bool,
    /// Change a parameter of the contract, such as tau=600 (docs/parameters.md); can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parameter)]
    pub set: Vec<(String, u64)>,
}

/// The policy that chooses nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Choice {
    /// The contract, by W
    Contract,
    /// The same for all
    Uniform,
    /// By the square root of the stake
    Stake,
    /// By QoS
    Qos,
}

fn parameter(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').ok_or("it should be like tau=600")?;
    let value = value.parse().map_err(|_| format!("{value:?} is not a whole number"))?;
    Ok((name.to_string(), value))
}

impl Workload {
    /// Whether a workload was named.
    pub fn given(&self) -> bool {
        self.requests.is_some() || self.tasks.is_some()
    }
}

fn share(name: &str, value: f64, most: f64) -> Outcome<u32> {
    if !(0.0..=most).contains(&value) {
        return Err(format!("--{name} is {value}; it can be from 0 to {most}").into());
    }
    Ok((value * 1_000.0).round() as u32)
}

/// Runs a workload, prints its results and writes them to `network.csv` and `network-nodes.csv`.
///
/// # Errors
/// Unreadable input or unwritable output, with file, line and reason; an unknown parameter.
pub fn run(workload: &Workload, seed: u64, out: &Path) -> Outcome<()> {
    let grouped = share("groups", workload.groups, 1.0)?;
    let sampled = share("sampled", workload.sampled, 1.0)?;
    let load = share("load", workload.load, 100.0)?;
    let (nodes, source) = match (&workload.requests, &workload.nodes) {
        (Some(requests), Some(nodes)) => {
            if !(1e-3..=1e6).contains(&workload.speed) {
                return Err(format!("--speed is {}; it can be from 0.001 to 1000000", workload.speed).into());
            }
            let open = |path: &Path| File::open(path).map_err(|e| format!("{}: {e}", path.display()));
            let limit = workload.limit.map_or(usize::MAX, NonZeroUsize::get);
            let traced = trace::requests(&requests.display().to_string(), open(requests)?, limit)?;
            let last = traced.last().map_or(0.0, |request| request.at as f64 / workload.speed);
            if last > LONGEST as f64 {
                let (file, speed) = (requests.display(), workload.speed);
                return Err(
                    format!("{file}: at --speed {speed} its requests come over {last:.0} s; {LONGEST} s is the most").into()
                );
            }
            let sizes = workload.vram.iter().cloned().collect();
            let (mut gpus, notes) = trace::fleet(&nodes.display().to_string(), open(nodes)?, &sizes)?;
            notes.iter().for_each(|note| eprintln!("sim: {note}"));
            if let Some(keep) = workload.gpus {
                if keep == 0 || keep > gpus.len() {
                    return Err(format!("--gpus is {keep}; {} has {}", nodes.display(), gpus.len()).into());
                }
                Random::named(&[seed, 6]).bring(&mut gpus, keep);
                gpus.truncate(keep);
            }
            (fleet_of(&gpus, seed), Source::traced(&traced, workload.speed, (grouped, sampled), seed))
        }
        _ => {
            let (tasks, nodes) = (workload.tasks.unwrap_or(0), workload.fleet.unwrap_or(0) as u32);
            if load == 0 {
                return Err("--load is 0: no task would ever come".into());
            }
            let profile = Profile { nodes, tasks, load, grouped, sampled, named: sampled > 0, ..Profile::default() };
            let nodes = fleet(&profile, seed);
            let span = profile.span(&nodes);
            if span > LONGEST_EXPECTED {
                return Err(format!(
                    "at --load {} so few nodes would have so many tasks over {span:.0} s; {LONGEST_EXPECTED:.0} s is the most",
                    workload.load
                )
                .into());
            }
            let source = Source::made_up(&profile, &nodes, seed);
            (nodes, source)
        }
    };
    fs::create_dir_all(out).map_err(|e| format!("can't create {}: {e}", out.display()))?;
    let mut parameters: Vec<(&str, u64)> = if workload.without_h { WITHOUT_H.to_vec() } else { vec![] };
    parameters.extend(workload.set.iter().map(|(name, value)| (name.as_str(), *value)));
    let policy = match workload.choice {
        Choice::Contract => Policy::Contract,
        Choice::Uniform => Policy::exact(Merit::Uniform, seed),
        Choice::Stake => Policy::exact(Merit::Stake, seed),
        Choice::Qos => Policy::exact(Merit::Qos, seed),
    };
    let ledger = Ledger::new(Memory::quick(seed), policy, &parameters)?;
    let (tasks, count) = (source.len(), nodes.len());
    let bar = bar(&format!("{tasks} tasks on {count} nodes"), tasks);
    let start = Instant::now();
    let report = Engine::new(ledger, nodes, source, seed, Some(bar.clone())).run().0;
    bar.finish_and_clear();
    let mut said = table(&report);
    for (name, text) in [("network.csv", measures(&report)), ("network-nodes.csv", nodes_table(&report))] {
        let path = out.join(name);
        fs::write(&path, text).map_err(|e| format!("can't write {}: {e}", path.display()))?;
        let _ = writeln!(said, "{}", path.display());
    }
    // A reader may stop early.
    let _ = std::io::stdout().write_all(said.as_bytes());
    eprintln!("{tasks} tasks on {count} nodes took {:.1} s.", start.elapsed().as_secs_f64());
    Ok(())
}

fn table(report: &Report) -> String {
    let mut out = String::new();
    let counts = [
        ("tasks asked for", report.asked + report.refused),
        ("succeeded", report.succeeded),
        ("timed out", report.timed_out),
        ("reported as impossible", report.reported),
        ("cancelled while queued", report.cancelled),
        ("driven out of the queue", report.evicted),
        ("refused", report.refused),
        ("not ended", report.open),
        ("created under policy 1", report.sampled),
        ("created under policy 2", report.replicated),
        ("of these that three nodes had", report.validated),
        ("judged without two answers alike", report.undecided),
        ("refunded with a node slashed out", report.orphaned),
        ("times a node joined", report.joins),
        ("times a node left", report.quits),
        ("announced breaks", report.pauses),
        ("exclusions", report.exclusions.len() as u64),
    ];
    for (name, count) in counts {
        let _ = writeln!(out, "{name:<44} {count:>14}");
    }
    for (error, count) in &report.refusals {
        let name = format!("calls refused with {error}");
        let _ = writeln!(out, "{name:<44} {count:>14}");
    }
    for m in MEASURES {
        let value = m.of(report);
        let _ = writeln!(out, "{:<44} {value:>14.3}", m.title);
    }
    let median = quantile(&report.recoveries, 0.5) / TICKS as f64;
    let _ = writeln!(out, "{:<44} {:>14}", "timeouts that lowered H", report.lowered);
    let _ = writeln!(out, "{:<44} {:>14}", "of these, H seen at 0.9 before another", report.recoveries.len());
    let _ = writeln!(out, "{:<44} {median:>14.0}", "seconds until then, half of them");
    let _ = writeln!(
        out,
        "\n{:<10} {:>6} {:>10} {:>10} {:>9} {:>8} {:>8}",
        "nodes", "count", "starts", "timeouts", "excluded", "kicked", "slashed"
    );
    for kind in Kind::ALL {
        let of = || report.nodes.iter().filter(|n| n.kind == kind);
        if of().next().is_some() {
            let _ = writeln!(
                out,
                "{:<10} {:>6} {:>10} {:>10} {:>7.2} % {:>8} {:>8}",
                kind.name(),
                of().count(),
                of().map(|n| n.started).sum::<u64>(),
                of().map(|n| n.timed_out).sum::<u64>(),
                100.0 * report.excluded(|n| n.kind == kind),
                of().filter(|n| n.kicked).count(),
                of().filter(|n| n.slashed).count(),
            );
        }
    }
    out
}

fn measures(report: &Report) -> String {
    let mut out = String::from("measure,value\n");
    for m in MEASURES {
        let _ = writeln!(out, "{},{}", m.id, m.of(report));
    }
    out
}

fn nodes_table(report: &Report) -> String {
    let mut out = String::from(
        "node,kind,stake_units,speed_permille,income_wei,started,succeeded,timed_out,present_ticks,busy_ticks,wasted_ticks,excluded_ticks,exclusions,scores,kicked,slashed\n",
    );
    for (i, n) in report.nodes.iter().enumerate() {
        let _ = writeln!(
            out,
            "{i},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            n.kind.name(),
            n.stake,
            n.speed,
            n.income,
            n.started,
            n.succeeded,
            n.timed_out,
            n.present,
            n.busy,
            n.wasted,
            n.excluded,
            n.exclusions,
            n.scores.len(),
            u8::from(n.kicked),
            u8::from(n.slashed),
        );
    }
    out
}
