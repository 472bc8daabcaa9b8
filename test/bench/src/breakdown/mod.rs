//! Where the gas of the main calls goes: `script/bench breakdown`.
//!
//! | module | contents |
//! | --- | --- |
//! | [`layout`] | names of storage words |
//! | [`parts`] | the parts of one call's gas |
//! | [`trace`] | the calls of the demonstration |
//! | [`page`] | the tables, and the flame graphs |

mod layout;
mod page;
mod parts;
mod trace;

pub use layout::Layout;
pub use parts::Parts;

use crate::measure::Bench;
use crate::page::compiler;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// Where the figures are kept.
pub const FIGURES: &str = "docs/generated/gas-breakdown.json";
/// Nodes of the headline task's network.
const NODES: u32 = 100;
/// Tasks queued where some are.
const QUEUED: u32 = 100;
/// Calls of each kind, of which the median is taken apart.
const SAMPLES: usize = 9;
/// The demonstration's flags that say how many of its tasks are not for single nodes alone.
const POLICIES: [&str; 2] = ["--sampled", "--groups"];
/// The operations taken apart, and how many tasks are queued.
const OPERATIONS: [(&str, u32); 8] = [
    ("create a task and dispatch one", 0),
    ("submit, nothing queued", 0),
    ("create a task and queue one", QUEUED),
    ("submit, and start the best queued", QUEUED),
    ("commit, a task that may be sampled", 0),
    ("reveal, not sampled: paid and released", 0),
    ("join with 10 models that others hold", 0),
    ("quit with 10 models", 0),
];

/// Take the gas of the main calls apart, by storage word.
///
/// The calls are those of the headline task (one model that everybody holds, 100 nodes at work), and the median calls of the demonstration.
/// It runs once with its tasks of all kinds and once with tasks for single nodes alone. Takes two minutes. Writes
/// docs/generated/gas-breakdown.md, docs/generated/gas-breakdown.json and flame graphs below docs/figures.
#[derive(clap::Args)]
pub struct Options {
    /// Flags for the demonstration (script/demo --help), such as --requests FILE --nodes FILE --limit 2000; without any it replays
    /// the few requests that come with it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    demo: Vec<String>,
    /// Measure nothing: write the page and the flame graphs again, from docs/generated/gas-breakdown.json
    #[arg(long)]
    repaint: bool,
}

/// A call taken apart: the median of its kind.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Tasks queued, in the headline task's network.
    pub queued: Option<u32>,
    /// Of how many it is the median.
    pub calls: u64,
    /// Its gas with cached programs, where that was measured.
    pub cached: Option<u64>,
    /// Bytes of such a transaction as it was signed, and compressed by itself as ArbOS does to price its data; medians.
    pub bytes: Option<(u64, u64)>,
    /// Its parts, programs not cached.
    pub parts: Parts,
}

/// The demonstration that was replayed.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Replayed {
    /// Its flags, files by their names alone.
    pub flags: Vec<String>,
    /// Names and SHA-256 of the files.
    pub files: Vec<(String, String)>,
    /// Tasks created.
    pub tasks: u64,
    /// Nodes.
    pub nodes: u64,
    /// Gas of all transactions from the first task on, of any kind.
    pub gas: u64,
}

/// Everything that was taken apart.
#[derive(Serialize, Deserialize, Debug)]
pub struct Breakdown {
    /// The compiler of the programs.
    pub compiler: String,
    /// The headline task's calls.
    pub headline: Vec<Call>,
    /// The source of the others.
    pub replayed: Replayed,
    /// The demonstration's.
    pub trace: Vec<Call>,
    /// The same with tasks for single nodes alone, unless its flags say which tasks there are.
    pub single: Option<(Replayed, Vec<Call>)>,
}

/// Runs the command.
pub fn run(options: &Options) -> Result<()> {
    let breakdown = if options.repaint {
        let text = std::fs::read_to_string(FIGURES).context(FIGURES)?;
        serde_json::from_str(&text).context(FIGURES)?
    } else {
        let compiler = compiler()?;
        eprintln!("breakdown: the headline task");
        let headline = headline()?;
        eprintln!("breakdown: the demonstration");
        let (replayed, trace) = trace::run(&options.demo)?;
        let named = options.demo.iter().any(|flag| POLICIES.iter().any(|policy| flag.starts_with(policy)));
        let single = if named {
            None
        } else {
            eprintln!("breakdown: the demonstration, tasks for single nodes alone");
            let none = POLICIES.into_iter().flat_map(|policy| [policy.to_owned(), "0".to_owned()]);
            Some(trace::run(&options.demo.iter().cloned().chain(none).collect::<Vec<_>>())?)
        };
        let breakdown = Breakdown { compiler, headline, replayed, trace, single };
        std::fs::write(FIGURES, serde_json::to_string_pretty(&breakdown)? + "\n")?;
        breakdown
    };
    breakdown.write()
}

fn headline() -> Result<Vec<Call>> {
    let mut b = Bench::traced()?;
    b.grow(NODES, |_| ())?;
    b.plain(SAMPLES)?;
    b.queue(QUEUED, SAMPLES, "ascending", |i| crate::world::TOKEN + u128::from(i) * 1_000_000_000, |_| ())?;
    let taken_apart = |(operation, queued): (&str, u32)| -> Result<Call> {
        let of = |cached: bool| {
            let place = b.rows.iter().position(|r| r.operation == operation && (r.queued, r.cached) == (queued, cached));
            place.with_context(|| format!("{operation} was not measured"))
        };
        let (cached, not) = (&b.rows[of(true)?], of(false)?);
        let parts = b.parts[not].clone().with_context(|| format!("{operation} was not traced"))?;
        Ok(Call {
            name: operation.into(),
            queued: Some(queued),
            calls: b.rows[not].samples as u64,
            cached: Some(cached.median),
            bytes: None,
            parts,
        })
    };
    OPERATIONS.into_iter().map(taken_apart).collect()
}
