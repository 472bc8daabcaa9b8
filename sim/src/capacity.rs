//! How far the design carries: `docs/generated/capacity.md`, from gas that was measured and networks that are simulated.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::chart::{Curves, Frame};
use crate::network::instances::{run, Divided, Division};
use crate::network::workload::Profile;
use crate::network::write;
use crate::numbers::{number, thousands};
use crate::statistics::Estimate;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The network that is asked about.
const NODES: u64 = 1_000_000;
const TASKS_PER_SECOND: u64 = 100_000;
/// Share of the nodes that work.
const LOAD: f64 = 0.7;
/// How far a region's demand may lie from its nodes' share, in per cent.
const UNEVEN: u32 = 30;
/// Calldata gas of a byte on L1, by which ArbOS counts compressed bytes.
const UNITS: u64 = 16;

/// Chains: name, millions of gas a second.
const CHAINS: [(&str, f64); 4] = [
    ("Arbitrum One and Nova until January 2026", 7.0),
    ("Arbitrum One, Nova and Sepolia, over a day", 10.0),
    ("the same, for nine seconds", 60.0),
    ("a chain of one's own at 100 Mgas/s", 100.0),
];
/// Those for which the instances are counted.
const COUNTED: [usize; 2] = [1, 3];
/// Base fees in gwei: the floor of Arbitrum One, that of Sepolia, and a busy time.
const FEES: [f64; 3] = [0.02, 0.2, 2.0];
/// Prices of a unit of data on L1, in gwei.
const DATA: [f64; 3] = [0.1, 1.0, 10.0];

/// The study's options, and the folder of its output.
#[derive(Clone, Debug)]
pub struct Options {
    /// Nodes of the network that is divided, a power of four.
    pub nodes: u32,
    /// Tasks for each node.
    pub each: u64,
    pub seed: u64,
    /// The folder of gas.json and gas-breakdown.json.
    pub figures: PathBuf,
    /// The page goes here, its picture into `figures` below.
    pub out: PathBuf,
}

/// Gas and data of a task.
struct Task {
    /// The kind of task.
    name: &'static str,
    gas: f64,
}

/// The measurements.
struct Measured {
    compiler: String,
    tasks: Vec<Task>,
    /// Compressed bytes of creating a task and of handing in its result.
    data: u64,
    /// The result of the demonstration's replay.
    replayed: u64,
}

/// Simulates, and writes the page.
///
/// # Errors
/// Figures that can't be read, a file that can't be written.
pub fn capacity(options: &Options) -> Outcome<()> {
    let measured = read(&options.figures)?;
    let figures = options.out.join("figures");
    fs::create_dir_all(&figures).map_err(|e| format!("can't create {}: {e}", figures.display()))?;
    let profile = |nodes: u32| Profile { nodes, tasks: u64::from(nodes) * options.each, ..Profile::default() };
    let mut alone = Vec::new();
    let mut divided = Vec::new();
    let sizes = || std::iter::successors(Some(64), |size: &u32| size.checked_mul(4));
    for size in sizes().take_while(|size| *size <= options.nodes.saturating_mul(4)) {
        eprintln!("capacity: one instance of {size} nodes");
        alone.push(run(&profile(size), Division::None, 1, options.seed)?);
    }
    for size in sizes().take_while(|size| *size < options.nodes) {
        let instances = options.nodes / size;
        for division in [Division::Region, Division::Uneven(UNEVEN), Division::Model] {
            eprintln!("capacity: {instances} instances of {size} nodes, {}", name(division));
            divided.push(run(&profile(options.nodes), division, instances, options.seed)?);
        }
    }
    let page = Page { options, measured, alone, divided };
    write(&figures.join("capacity-waiting.svg"), &page.picture())?;
    let path = options.out.join("capacity.md");
    write(&path, &page.text())?;
    println!("written: {}", path.display());
    Ok(())
}

fn json(path: &Path, command: &str) -> Outcome<Value> {
    let said = |e: &dyn std::fmt::Display| format!("{}: {e}; {command} makes it", path.display());
    let text = fs::read_to_string(path).map_err(|e| said(&e))?;
    Ok(serde_json::from_str(&text).map_err(|e| said(&e))?)
}

/// Medians of gas.json and gas-breakdown.json.
fn read(folder: &Path) -> Outcome<Measured> {
    let gas = json(&folder.join("gas.json"), "script/bench gas")?;
    let apart = json(&folder.join("gas-breakdown.json"), "script/bench breakdown")?;
    let rows = gas["rows"].as_array().ok_or("gas.json has no rows")?;
    let median = |operation: &str, cached: bool| {
        let is =
            |row: &&Value| row["operation"] == operation && row["nodes"] == 100 && row["queued"] == 0 && row["cached"] == cached;
        let row = rows.iter().find(is).and_then(|row| row["median"].as_f64());
        row.ok_or_else(|| format!("gas.json has no row \"{operation}\" with 100 nodes"))
    };
    let task = |created: &str, cached: bool| -> Result<f64, String> {
        Ok(median(created, cached)? + median("submit, nothing queued", cached)?)
    };
    let (alone, together) = ("create a task and dispatch one", "create and dispatch by sixteen, a task");
    let calls = apart["trace"].as_array().ok_or("gas-breakdown.json has no trace")?;
    let tasks = apart["replayed"]["tasks"].as_f64().ok_or("gas-breakdown.json does not say how many tasks were replayed")?;
    let all = apart["replayed"]["gas"].as_f64().ok_or("gas-breakdown.json does not say what the replay took")?;
    let bytes = |name: &str| {
        let call = calls.iter().find(|call| call["name"] == name);
        call.and_then(|call| call["bytes"][1].as_u64()).ok_or_else(|| format!("gas-breakdown.json has no bytes of {name}"))
    };
    Ok(Measured {
        compiler: gas["compiler"].as_str().unwrap_or("an unknown compiler").into(),
        tasks: vec![
            Task { name: "headline, programs cached", gas: task(alone, true)? },
            Task { name: "headline, not cached", gas: task(alone, false)? },
            Task { name: "by sixteen, not cached", gas: task(together, false)? },
            Task { name: "demonstration, not cached", gas: all / tasks },
        ],
        data: bytes("createTask")? + bytes("submit")?,
        replayed: tasks as u64,
    })
}

fn name(division: Division) -> String {
    match division {
        Division::None => "undivided".into(),
        Division::Region => "by region, demand as nodes".into(),
        Division::Uneven(percent) => format!("by region, demand up to {percent} % off"),
        Division::Model => "by base model".into(),
    }
}

struct Page<'a> {
    options: &'a Options,
    measured: Measured,
    alone: Vec<Divided>,
    divided: Vec<Divided>,
}

impl Page<'_> {
    fn text(&self) -> String {
        let mut out = HEAD.replace("COMPILER", &self.measured.compiler);
        let tasks = &self.measured.tasks;
        let heads = || tasks.iter().flat_map(|task| [" ", task.name, " |"]).collect::<String>();
        let rule = "---: |".repeat(tasks.len());

        out.push_str("\n## Tasks per second of one chain\n\n");
        out.push_str(&TASKS.replace("REPLAYED", &thousands(self.measured.replayed)));
        let _ = write!(out, "\n| chain | Mgas/s |{}\n| --- | ---: |{rule}\n| *gas of a task* | |", heads());
        for task in tasks {
            let _ = write!(out, " {} |", thousands(task.gas as u64));
        }
        for (name, speed) in CHAINS {
            let _ = write!(out, "\n| {name} | {} |", number(speed));
            tasks.iter().for_each(|task| out.push_str(&format!(" {} |", number(speed * 1e6 / task.gas))));
        }
        out.push_str(CHAINS_SAY);

        out.push_str("\n## What a task costs\n\nGas at a base fee, in millionths of an ether:\n");
        let _ = write!(out, "\n| base fee |{}\n| --- |{rule}", heads());
        for fee in FEES {
            let _ = write!(out, "\n| {} gwei |", number(fee));
            tasks.iter().for_each(|task| out.push_str(&format!(" {} |", number(task.gas * fee / 1e3))));
        }
        let data = self.measured.data;
        let _ = write!(
            out,
            "\n\n{}\n\n| price of a unit |",
            DATA_SAYS.replace("BYTES", &thousands(data)).replace("UNITS", &thousands(data * UNITS))
        );
        DATA.iter().for_each(|price| out.push_str(&format!(" {} gwei |", number(*price))));
        let _ = write!(out, "\n| --- |{}\n| data of a task, millionths of an ether |", "---: |".repeat(DATA.len()));
        DATA.iter().for_each(|price| out.push_str(&format!(" {} |", number((data * UNITS) as f64 * price / 1e3))));

        let _ = write!(out, "\n\n## A million nodes, {} tasks a second\n\n", thousands(TASKS_PER_SECOND));
        let busy = NODES as f64 * LOAD / TASKS_PER_SECOND as f64;
        out.push_str(&NEEDED.replace("BUSY", &number(busy)).replace("LOAD", &number(LOAD * 100.0)));
        let _ = write!(out, "\n| chains, each with one instance |{}\n| --- |{rule}", heads());
        for (name, speed) in COUNTED.map(|i| CHAINS[i]) {
            let needed = |task: &Task| (TASKS_PER_SECOND as f64 * task.gas / (speed * 1e6)).ceil();
            let _ = write!(out, "\n| {name}: instances |");
            tasks.iter().for_each(|task| out.push_str(&format!(" {} |", thousands(needed(task) as u64))));
            let _ = write!(out, "\n| {name}: nodes of each |");
            tasks.iter().for_each(|task| out.push_str(&format!(" {} |", thousands((NODES as f64 / needed(task)) as u64))));
        }

        let _ = write!(
            out,
            "\n\n## What dividing costs\n\n{}\n\n",
            SIMULATED
                .replace("NODES", &thousands(self.options.nodes.into()))
                .replace("EACH", &thousands(self.options.each))
                .replace("UNEVEN", &UNEVEN.to_string())
        );
        out.push_str(TABLE);
        self.alone.iter().chain(&self.divided).for_each(|d| out.push_str(&row(d)));
        out.push_str("\n![Waiting against the size of an instance](figures/capacity-waiting.svg)\n");
        out.push_str(&self.shown());
        out.push_str(TAIL);
        out
    }

    /// The table's contents, in words.
    fn shown(&self) -> String {
        let of =
            |division: Division, size: u32| self.divided.iter().find(|d| d.division == division && d.nodes / d.instances == size);
        let mut out = String::new();
        let (Some(small), Some(whole)) = (self.alone.first(), self.alone.iter().find(|d| d.nodes == self.options.nodes)) else {
            return out;
        };
        let at = |d: &Divided| (number(d.wait.1), number(100.0 * d.local));
        let _ = writeln!(
            out,
            "\n- **Size.** 95 % of the tasks start within {} s in an undivided network of {} nodes, within {} s in one of {}.",
            at(whole).0,
            thousands(whole.nodes.into()),
            at(small).0,
            thousands(small.nodes.into())
        );
        let size = small.nodes;
        if let (Some(region), Some(uneven), Some(model)) =
            (of(Division::Region, size), of(Division::Uneven(UNEVEN), size), of(Division::Model, size))
        {
            let _ = writeln!(
                out,
                "- **Locality.** Undivided, {} % of the starts are on nodes that hold every model; in instances of {size} nodes {} % where they are regions, {} % where each serves a few models.",
                at(whole).1, at(region).1, at(model).1
            );
            let _ = writeln!(
                out,
                "- **Imbalance.** Demand on the same instances is {} to {} times the mean by region, {} to {} where regions differ, {} to {} by model. 95 % of the tasks start within {}, {} and {} s.",
                number(region.demand.0), number(region.demand.1), number(uneven.demand.0), number(uneven.demand.1),
                number(model.demand.0), number(model.demand.1), at(region).0, at(uneven).0, at(model).0
            );
        }
        out
    }

    fn picture(&self) -> String {
        let point =
            |d: &Divided| (f64::from(d.nodes) / f64::from(d.instances), Estimate { mean: d.wait.1, margin: 0.0, count: 1 });
        let mut series = vec![("undivided".to_owned(), self.alone.iter().map(point).collect::<Vec<_>>())];
        for division in [Division::Region, Division::Uneven(UNEVEN), Division::Model] {
            let mut points: Vec<_> = self.divided.iter().filter(|d| d.division == division).map(point).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            series.push((name(division), points));
        }
        Curves {
            frame: Frame {
                title: "Waiting against the size of an instance".into(),
                y: "seconds, 95th percentile".into(),
                note: format!(
                    "A network of {} nodes divided into instances; undivided ones of each size beside it.",
                    thousands(self.options.nodes.into())
                ),
            },
            x: "nodes of an instance (logarithmic)".into(),
            series,
            log: true,
            dots: true,
            from_zero: true,
            ..Curves::default()
        }
        .svg()
    }
}

fn row(d: &Divided) -> String {
    format!(
        "| {} | {} | {} | {} to {} | {} | {} | {} | {} | {} | {} |\n",
        name(d.division),
        thousands(d.instances.into()),
        thousands((d.nodes / d.instances).into()),
        number(d.demand.0),
        number(d.demand.1),
        number(100.0 * d.local),
        number(d.wait.0),
        number(d.wait.1),
        number(d.wait.2),
        number(d.worst),
        number(100.0 * d.away),
    )
}

const HEAD: &str = "\
# Capacity

[All pages](../README.md)

Made by `script/bench capacity` from [gas.json](gas.json) and [gas-breakdown.json](gas-breakdown.json), which `script/bench gas` and `script/bench breakdown` measure, and from
networks that it simulates on the contract's own code; do not edit. Programs compiled by COMPILER.
";

const TASKS: &str = "\
A task is a `createTask` that draws an earlier task's node, and a `submit`. *Headline* adds their medians of [gas.md](gas.md) with 100 nodes. *By sixteen* has tasks created in one call by `createTasks` and drawn in another. *Demonstration* is the gas of all transactions of the [demonstration](gas-breakdown.md#the-demonstration-on-a-trace)
from the first task on, divided by its REPLAYED tasks. It includes draws, commitments, reveals, validators and timeouts. Nothing else runs on the chain.
";

const CHAINS_SAY: &str = "

Arbitrum One, Nova and Sepolia had one gas target of 7 Mgas/s. Since ArbOS 51 they have six, from 10 Mgas/s over a day up to 60 over nine seconds. Above any of them the base fee rises
([chain parameters](https://docs.arbitrum.io/build-decentralized-apps/reference/chain-params),
[the proposal](https://forum.arbitrum.foundation/t/aip-raise-the-gas-target-min-l2-base-fee-implement-improvements-to-the-pricing-algorithm/30182), which lets targets grow to 100 Mgas/s). A chain of one's own
sets its targets itself. Whether its machines keep up at 100 was not measured here.

More instances on one chain give no more tasks: a task's gas hardly grows with the network ([gas.md](gas.md)), so dividing a network saves none. \
Instances must be on different chains.
";

const DATA_SAYS: &str = "\
Floors are 0.02 gwei on Arbitrum One and 0.2 on Sepolia (chain parameters, as above). To it comes the data on L1: ArbOS compresses each transaction by itself with brotli and charges 16 units for each byte that is left, at a price of its own
([`l1pricing.go`](https://github.com/OffchainLabs/nitro/blob/master/arbos/l1pricing/l1pricing.go); `ArbGasInfo.getL1BaseFeeEstimate` tells it). Signed transactions of the demonstration, a `createTask` and a `submit`, leave BYTES bytes, UNITS units:";

const NEEDED: &str = "\
With LOAD % of a million nodes at work, so many tasks may take BUSY s each on average. Each task costs the gas above, that of 100 nodes, so the number of instances follows from the chains' gas alone:
";

const SIMULATED: &str = "\
Simulated, not extrapolated: a [made-up network](../research/simulator-engine.md#made-up-workloads) of NODES nodes, EACH tasks for each, load 0.7, and policy 2 for one task in ten. The network runs undivided and in instances of each size, every instance on the contract's own code. *By region*: nodes are
spread evenly. Tasks are spread evenly at random, or regions' demands are drawn within UNEVEN % of the mean. *By base model*: each instance serves an equal share of the demand for base models. Several instances share a popular model, and rare models share one. A node goes to the
instance of one of its models that has the fewest nodes. Tasks never move between instances. Only the number of instances is extrapolated: a \
million nodes are many more instances of the same sizes, and no instance depends on others.";

const TABLE: &str = "\
| division | instances | nodes of each | demand for each node, of the mean | starts where all models are (%) | waiting, mean (s) | 95 % | 99 % | 95 % in the worst instance | driven out or never started (%) |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

const TAIL: &str = "
## What instances would share

On paper; nothing of this is built.

- **Stake.** One stake must not answer for work in two instances at once: stake that either can slash would be counted twice. The simplest rule keeps it safe: a node is in one instance at a time, and moves by `quit` here and `join` there. The unbonding period
  (a day) makes that slow. A bridge could carry stake from `quit` to `join` by a message between chains, and would wait only until no commitment of the node is open. Weights refer to each instance's own largest stake. Where an instance's operators stake less, the same stake weighs more
  there, which draws stakes to where they are scarce.
- **Reputation.** H recovers within hours and need not travel. Q_long, ratings, kickouts and slashes must travel, or a node could shed them by moving. They lie in known words of the old instance ([storage.md](storage.md)), so a storage proof against its chain's state root can carry them. An instance would refuse operators that were in another instance and bring no proof. An operator can always start anew with a new address, at the price of another stake.
- **Routing.** An application chooses the instance as it creates the task: by its region, or by a table of models that the instances' owner publishes. Nothing corrects a bad choice afterwards: a queued task does not move.
- **Parameters and programs** are set in each instance. The delays of upgrades must run in all of them.

## Where the design stops

- **One instance is one chain's gas.** Every state-changing call reads and most write the same word (`head`), so calls of an instance run one after the other, whatever a chain may do in parallel.
- **Node numbers have 24 bits**: 16,777,214 operators ever, in an instance. The ring of Pending tasks has 4,096 places, so that no more tasks can become Pending between two blocks. Others are refused, unless they are queued at once.
- **Draws wait for a block**, so no task starts sooner than the next one (0.25 s), even if a node is idle. Tasks of less than some seconds pay more for being dispatched than for the work.
- **Small instances lose what numbers give**: a task finds fewer candidates, a group fewer peers whose answers can be compared, and an adversary needs fewer nodes for a given share. The number of instances should follow from the gas, and no further.
- **Beyond some thousand tasks a second** for one owner, one task on chain is the wrong unit, even if sixteen are created at a time. A channel between an application and a node could settle many tasks at once. The chain would still choose the node, hold the stake and judge.
";

#[cfg(test)]
mod tests {
    use super::*;

    /// The networks take half a minute; the rest of the page follows from figures that other commands write.
    #[test]
    fn the_page_is_of_the_gas_that_was_measured_last() {
        let figures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/generated");
        let written = fs::read_to_string(figures.join("capacity.md")).unwrap();
        let measured = read(&figures).unwrap();
        let options = Options { nodes: 0, each: 0, seed: 0, out: figures.clone(), figures };
        let made = Page { options: &options, measured, alone: Vec::new(), divided: Vec::new() }.text();
        let of_gas = |page: &str| page.split_once("## What dividing costs").map(|(gas, _)| gas.to_owned());
        assert_eq!(of_gas(&made), of_gas(&written), "script/bench capacity writes it");
    }
}
