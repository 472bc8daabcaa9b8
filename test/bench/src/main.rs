//! Gas of every operation, on compiled WASM, against the size of the network and of the queue.
//!
//! | module | contents |
//! | --- | --- |
//! | [`world`] | Muster on an in-process devnode |
//! | [`beside`] | the same storage in memory, to make large worlds |
//! | [`measure`] | the operations |
//! | [`validation`] | those of tasks whose answers are compared |
//! | [`grades`] | those of a freed node while tasks for three are queued |
//! | [`attack`], [`crowd`] | an adversary's effect on them |
//! | [`answer`], [`dearest`] | parts that those have in common |
//! | [`limits`] | the limits of all of it |
//! | [`report`] | all measurements |
//! | [`page`] | the table, the page, the picture, the snapshot |
//! | [`points`] | single calls, to see the causes of their gas |
//! | [`search`] | the cost of the second search of Tight-fit |
//! | [`breakdown`] | where the gas of the main calls goes |

mod answer;
mod attack;
mod beside;
mod breakdown;
mod crowd;
mod dearest;
mod grades;
mod limits;
mod measure;
mod page;
mod points;
mod rated;
mod report;
mod search;
mod validation;
mod world;

use anyhow::{ensure, Context, Result};
use clap::{Parser, Subcommand};
use crowd::Crowd;
use indicatif::{ProgressBar, ProgressStyle};
use measure::Bench;
use points::{Points, POINTS};
use report::Report;
use std::path::PathBuf;
use world::TOKEN;

/// Measures gas on the embedded devnode.
#[derive(Parser)]
#[command(name = "script/bench", bin_name = "script/bench")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Gas(Options),
    Breakdown(breakdown::Options),
    Search(search::Options),
}

/// Measure gas on the embedded devnode.
///
/// Without options everything is measured (some minutes), and docs/generated/gas.md, docs/generated/gas.json, docs/generated/figures/gas.svg and the table in
/// README.md are written anew. Gas does not depend on the machine, only on the compiled programs.
#[derive(clap::Args)]
struct Options {
    /// Measure small networks and queues only, and compare with the snapshot test/bench/gas.snap: fails if a figure
    /// differs or a limit is broken. Writes nothing.
    #[arg(long)]
    check: bool,
    /// As --check, but write the snapshot.
    #[arg(long, conflicts_with = "check")]
    snapshot: bool,
    /// Numbers of nodes, ascending; writes no files.
    #[arg(long, value_delimiter = ',')]
    nodes: Vec<u32>,
    /// Numbers of queued tasks; writes no files.
    #[arg(long, value_delimiter = ',')]
    queues: Vec<u32>,
    /// Leave the adversarial runs out; writes no files.
    #[arg(long)]
    no_attacks: bool,
    /// Calls measured per figure.
    #[arg(long)]
    samples: Option<usize>,
    /// Measure nothing: write docs/generated/gas.md, docs/generated/figures/gas.svg and the table in README.md again, from docs/generated/gas.json.
    #[arg(long, conflicts_with_all = ["check", "snapshot", "nodes", "queues", "no_attacks", "samples", "json"])]
    repaint: bool,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Gas(options) => gas(&options),
        Command::Breakdown(options) => breakdown::run(&options),
        Command::Search(options) => search::run(&options),
    }
}

fn gas(o: &Options) -> Result<()> {
    if o.repaint {
        let read = |path: &'static str| std::fs::read_to_string(path).context(path);
        let mut report: Report = serde_json::from_str(&read("docs/generated/gas.json")?).context("docs/generated/gas.json")?;
        report.points = Points::read(&read(POINTS)?).with_context(|| format!("{POINTS} is no table of points"))?;
        return show(&report);
    }
    let small = o.check || o.snapshot;
    let whole = !small && o.nodes.is_empty() && o.queues.is_empty() && !o.no_attacks && o.samples.is_none();
    let or = |given: &[u32], all: &[u32], few: &[u32]| {
        if given.is_empty() {
            if small { few } else { all }.to_vec()
        } else {
            given.to_vec()
        }
    };
    let nodes = or(&o.nodes, &[1, 10, 100, 1_100, 10_000, 100_000], &[1, 10, 100, 1_100]);
    let queues = or(&o.queues, &[0, 100, 10_000], &[0, 100]);
    // Made beside the chain, all grades take no time.
    let graded = or(&o.queues, &[100, 10_000], &[100, 10_000]);
    let samples = o.samples.unwrap_or(if small { 9 } else { 31 });
    ensure!(nodes.windows(2).all(|w| w[0] < w[1]) && nodes[0] > 0, "--nodes must ascend from at least 1");
    ensure!(samples > 0, "--samples must be at least 1");
    let largest = *nodes.last().context("no number of nodes")?;

    let bar = ProgressBar::new(0).with_style(ProgressStyle::with_template("{elapsed_precise} {bar:30} {pos:>6}/{len:6} {msg}")?);
    let mut b = Bench::new()?;
    for &n in &nodes {
        bar.set_length(largest as u64);
        bar.set_message(format!("growing to {n} nodes"));
        b.grow(n, |joined| bar.set_position(joined as u64))?;
        bar.set_message(format!("measuring with {n} nodes"));
        b.plain(samples)?;
    }
    let mut rows = std::mem::take(&mut b.rows);
    let mut points = std::mem::take(&mut b.points);

    let mut b = Bench::new()?;
    b.grow(100, |_| ())?;
    b.check_beside()?;
    for &queue in &queues {
        bar.set_length(queue as u64);
        let step = |i: u32| bar.set_position(i as u64);
        let wei = 1_000_000_000u128;
        bar.set_message("queueing ascending values");
        b.queue(queue, samples, "ascending", |i| TOKEN + i as u128 * wei, step)?;
        bar.set_message("queueing descending values");
        b.queue(queue, samples, "descending", |i| TOKEN * 1_000 - i as u128 * wei, step)?;
        bar.set_message("queueing equal values");
        b.queue(queue, samples, "equal", |_| TOKEN, step)?;
    }
    for &queue in graded.iter().filter(|&&queue| queue > 0) {
        bar.set_length(queue as u64);
        bar.set_message("queueing tasks of all grades");
        b.graded(queue, samples, |i| bar.set_position(i as u64))?;
    }
    rows.append(&mut b.rows);
    points.add(std::mem::take(&mut b.points));

    let mut b = Bench::new()?;
    for (n, wanted) in rated::POOLS {
        bar.set_message(format!("choosing by ratings of {n}"));
        b.grow(n, |_| ())?;
        b.both(|b| b.rated(&wanted, samples))?;
    }
    rows.append(&mut b.rows);

    let attacks = if o.no_attacks {
        Vec::new()
    } else {
        bar.set_length(11);
        bar.set_position(0);
        Bench::attacks(if small { 10 } else { 1 }, |name| {
            bar.inc(1);
            bar.set_message(name.to_string());
        })?
    };
    let (strangers, innocent) = if o.no_attacks {
        (0, Vec::new())
    } else {
        Crowd::calls(if small { 3 } else { 25 }, |what| bar.set_message(what.to_string()))?
    };
    bar.finish_and_clear();

    attacks.iter().for_each(|attack| points.add(attack.points.clone()));
    let report = Report { compiler: page::compiler()?, rows, attacks, strangers, innocent, points };
    let broken = report.broken_limits();
    if o.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{}", report.tables());
    }
    let snapshot = PathBuf::from("test/bench/gas.snap");
    if o.snapshot {
        std::fs::write(&snapshot, report.snapshot())?;
    }
    if o.check {
        report.compare(&std::fs::read_to_string(&snapshot).context("test/bench/gas.snap")?)?;
    }
    if whole {
        std::fs::write("docs/generated/gas.json", serde_json::to_string_pretty(&report)? + "\n")?;
        std::fs::write(POINTS, report.points.csv())?;
        println!("written: docs/generated/gas.json, {POINTS}");
        show(&report)?;
    }
    ensure!(broken.is_empty(), "limits broken:\n{}", broken.join("\n"));
    Ok(())
}

/// Writes the files that show the figures.
fn show(report: &Report) -> Result<()> {
    std::fs::write("docs/generated/gas.md", report.page())?;
    std::fs::write("docs/generated/figures/gas.svg", report.picture())?;
    for (name, svg) in report.points.pictures() {
        std::fs::write(format!("docs/generated/figures/{name}.svg"), svg)?;
    }
    let readme = std::fs::read_to_string("README.md").context("README.md")?;
    std::fs::write("README.md", report.readme(&readme)?)?;
    println!("written: docs/generated/gas.md, docs/generated/figures/gas.svg, docs/generated/figures/gas-by-*.svg, the table in README.md");
    Ok(())
}
