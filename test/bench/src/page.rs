//! What is shown of the measurements: tables, the generated page and its picture, the snapshot.

use crate::measure::{Attack, Row};
use anyhow::{ensure, Context, Result};
use comfy_table::{presets::UTF8_HORIZONTAL_ONLY, CellAlignment, Table};
use muster_sim::chart::{Curves, Frame};
pub use muster_sim::numbers::thousands;
use muster_sim::statistics::Estimate;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Everything that was measured.
#[derive(Serialize, Deserialize)]
pub struct Report {
    /// What compiled the programs.
    pub compiler: String,
    /// The operations.
    pub rows: Vec<Row>,
    /// The adversarial runs.
    pub attacks: Vec<Attack>,
}

/// What an operation may cost at the median with uncached programs, and what we are after (cached, uncached).
struct Limit {
    operation: &'static str,
    limit: u64,
    goal: (u64, u64),
}

const LIMITS: &[Limit] = &[
    Limit { operation: "create a task and dispatch one", limit: 180_000, goal: (100_000, 130_000) },
    Limit { operation: "create a task and dispatch one, a node's first", limit: 180_000, goal: (130_000, 130_000) },
    Limit { operation: "create a task and queue one", limit: 200_000, goal: (140_000, 170_000) },
    Limit { operation: "create a task and queue one, queue full", limit: 230_000, goal: (175_000, 200_000) },
    Limit { operation: "submit, nothing queued", limit: 150_000, goal: (80_000, 110_000) },
    Limit { operation: "submit, and start the best queued", limit: 300_000, goal: (130_000, 165_000) },
    Limit { operation: "join with 10 models that others hold", limit: 300_000, goal: (245_000, 275_000) },
    Limit { operation: "join, first holder of 10 models", limit: 460_000, goal: (410_000, 410_000) },
    Limit { operation: "pause", limit: 100_000, goal: (58_000, 88_000) },
    Limit { operation: "resume", limit: 100_000, goal: (58_000, 88_000) },
    Limit { operation: "quit with 10 models", limit: 155_000, goal: (75_000, 100_000) },
    Limit { operation: "commit, a task that may be sampled", limit: 87_000, goal: (47_000, 74_000) },
    Limit { operation: "commit, a member: released", limit: 117_000, goal: (72_000, 99_000) },
    Limit { operation: "reveal, not sampled: paid and released", limit: 122_000, goal: (75_000, 102_000) },
    Limit { operation: "form a group: two validators drawn", limit: 207_000, goal: (105_000, 132_000) },
    Limit { operation: "create a replicated task and dispatch one", limit: 257_000, goal: (175_000, 202_000) },
    Limit { operation: "reveal in a group, not the last", limit: 87_000, goal: (46_000, 73_000) },
    Limit { operation: "reveal in a group, the last: three judged", limit: 207_000, goal: (135_000, 162_000) },
    Limit { operation: "reveal in a group, the last: three judged, one slashed", limit: 287_000, goal: (210_000, 237_000) },
];
/// The dearest call that an adversary may bring about.
const DEAREST: u64 = 1_000_000;
/// Median of creating and dispatching at the largest network over that at 100 nodes.
const GROWTH: f64 = 1.25;
/// Nodes, and gas of a `createTask` that dispatches at once, of the contracts that Muster replaces.
const EARLIER: [(f64, f64); 8] = [
    (1.0, 747e3),
    (10.0, 979e3),
    (20.0, 1.28e6),
    (50.0, 2.13e6),
    (100.0, 3.53e6),
    (200.0, 6.40e6),
    (400.0, 12.18e6),
    (1_100.0, 33.1e6),
];

/// The compiler that made `build/`, as `script/build` recorded it.
pub fn compiler() -> Result<String> {
    let manifest = std::fs::read_to_string("build/manifest.json").context("build/manifest.json is missing: run script/build")?;
    let manifest: serde_json::Value = serde_json::from_str(&manifest).context("build/manifest.json")?;
    Ok(manifest["rustc"].as_str().context("build/manifest.json names no compiler")?.into())
}

impl Report {
    fn find(&self, operation: &str, nodes: u32, cached: bool) -> Option<&Row> {
        self.rows.iter().find(|r| r.operation == operation && (r.nodes, r.queued, r.cached) == (nodes, 0, cached))
    }

    /// By operation, queue, order of values, network, cache.
    fn sorted(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by_key(|r| (&r.operation, r.queued, &r.values, r.nodes, !r.cached));
        rows
    }

    /// The network's growth factor: creating and dispatching at the largest size over that at 100 nodes.
    fn growth(&self) -> Option<(u32, f64)> {
        let name = LIMITS[0].operation;
        let largest = self.rows.iter().filter(|r| r.operation == name).map(|r| r.nodes).max()?;
        let (a, b) = (self.find(name, 100, false)?, self.find(name, largest, false)?);
        Some((largest, b.median as f64 / a.median as f64))
    }

    /// Limits that do not hold, in words.
    pub fn broken_limits(&self) -> Vec<String> {
        let mut out = Vec::new();
        for l in LIMITS {
            for r in self.rows.iter().filter(|r| r.operation == l.operation && r.median > l.limit) {
                out.push(format!(
                    "{} with {} nodes and {} queued: median {} above {}",
                    r.operation, r.nodes, r.queued, r.median, l.limit
                ));
            }
        }
        for a in self.attacks.iter().filter(|a| a.most >= DEAREST) {
            out.push(format!("{}: {} costs {}", a.name, a.operation, a.most));
        }
        if let Some((nodes, growth)) = self.growth().filter(|(_, g)| *g > GROWTH) {
            out.push(format!("create and dispatch costs {growth:.2} times as much with {nodes} nodes as with 100"));
        }
        out
    }

    /// For the terminal.
    pub fn tables(&self) -> String {
        let mut table = Table::new();
        table.load_preset(UTF8_HORIZONTAL_ONLY).set_header([
            "operation",
            "nodes",
            "queued",
            "values",
            "programs",
            "calls",
            "min",
            "median",
            "max",
            "of the floor",
        ]);
        for r in self.sorted() {
            table.add_row([
                r.operation.clone(),
                thousands(r.nodes as u64),
                thousands(r.queued as u64),
                r.values.clone(),
                if r.cached { "cached" } else { "not cached" }.into(),
                r.samples.to_string(),
                thousands(r.least),
                thousands(r.median),
                thousands(r.most),
                r.floor.map_or(String::new(), |(floor, gas)| format!("{:.2}", gas as f64 / floor as f64)),
            ]);
        }
        right(&mut table, &[1, 2, 5, 6, 7, 8, 9]);
        let mut dear = Table::new();
        dear.load_preset(UTF8_HORIZONTAL_ONLY).set_header([
            "adversarial run",
            "calls",
            "dearest call",
            "gas",
            "median create and dispatch",
        ]);
        for a in &self.attacks {
            dear.add_row([
                a.name.clone(),
                a.calls.to_string(),
                a.operation.clone(),
                thousands(a.most),
                a.dispatch.map_or("-".into(), thousands),
            ]);
        }
        right(&mut dear, &[1, 3, 4]);
        format!("{table}\n{dear}\nprograms compiled by {}", self.compiler)
    }

    /// One line per figure.
    pub fn snapshot(&self) -> String {
        let mut out = format!("# Gas: median and most. Made by `script/bench gas --snapshot`, checked by `script/test`.\n# programs compiled by {}\n", self.compiler);
        for r in &self.rows {
            let cached = if r.cached { "cached" } else { "not cached" };
            let values = if r.values.is_empty() { String::new() } else { format!(" with {} values", r.values) };
            let _ = writeln!(
                out,
                "{}, {} nodes, {} queued{values}, {cached}: {} {}",
                r.operation, r.nodes, r.queued, r.median, r.most
            );
        }
        for a in &self.attacks {
            let _ = writeln!(out, "{}: {}", a.name, a.most);
        }
        out
    }

    /// Fails if a figure differs from the snapshot's. Another compiler makes other code: then only the limits count.
    pub fn compare(&self, committed: &str) -> Result<()> {
        let now = self.snapshot();
        if committed.lines().nth(1) != now.lines().nth(1) {
            println!(
                "the snapshot was made with another compiler ({}): figures are not compared, limits are",
                committed.lines().nth(1).unwrap_or("none")
            );
            return Ok(());
        }
        let (old, new): (Vec<&str>, Vec<&str>) = (committed.lines().collect(), now.lines().collect());
        let gone = old.iter().filter(|l| !new.contains(l)).map(|l| format!("- {l}"));
        let come = new.iter().filter(|l| !old.contains(l)).map(|l| format!("+ {l}"));
        let differ: Vec<String> = gone.chain(come).collect();
        ensure!(
            differ.is_empty(),
            "gas differs from test/bench/gas.snap; if that is meant, run script/bench gas --snapshot and commit it:\n{}",
            differ.join("\n")
        );
        println!("gas is as in test/bench/gas.snap ({} figures)", old.len() - 2);
        Ok(())
    }

    /// `docs/gas.md`.
    pub fn page(&self) -> String {
        let mut out = String::from(
            "# Gas\n\n[All pages](README.md)\n\nMade by `script/bench gas`, which deploys the compiled programs on the embedded devnode and sends real transactions; do not edit. \
             Gas as a receipt states it, through the public address, without the cost of data on L1. The same figures as JSON are in [gas.json](gas.json); \
             a smaller set is a snapshot (`test/bench/gas.snap`) that `script/test` compares exactly. Where the gas of a call goes is in [gas-breakdown.md](gas-breakdown.md).\n\n",
        );
        let _ = writeln!(out, "Programs compiled by {}.\n\n![Gas against the number of nodes](figures/gas.svg)\n", self.compiler);
        out.push_str(
            "## Against the limits\n\nMedians, programs cached / not cached. *Floor*: what any contract would pay at least for the same change: 21,000, calldata, \
             5,000 for each storage word that ends up different (22,100 for one that was zero), events. What is read and computed is free in it.\n\n\
             | operation | nodes | queued | values | cached | not cached | limit | goal | times the floor |\n| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |\n",
        );
        for l in LIMITS {
            let of = |cached: bool| self.sorted().into_iter().filter(move |r| r.operation == l.operation && r.cached == cached);
            for (c, u) in of(true).zip(of(false)) {
                let ratio = c.floor.map_or(String::new(), |(floor, gas)| format!("{:.2}", gas as f64 / floor as f64));
                let _ = writeln!(
                    out,
                    "| {} | {} | {} | {} | {} | {} | {} | {} / {} | {ratio} |",
                    l.operation,
                    thousands(c.nodes as u64),
                    thousands(c.queued as u64),
                    c.values,
                    thousands(c.median),
                    thousands(u.median),
                    thousands(l.limit),
                    thousands(l.goal.0),
                    thousands(l.goal.1),
                );
            }
        }
        if let Some((nodes, growth)) = self.growth() {
            let _ = writeln!(out, "\nCreating and dispatching with {} nodes costs {growth:.3} times what it costs with 100 (limit {GROWTH}, goal 1.05).", thousands(nodes as u64));
        }
        out.push_str(
            "\nTo see every size at its steady cost, the words that a task leaves at its node (who pays, the order, the models in use) are copied from one node that \
             worked to all others before the rows that are not \"a node's first\".\n\n\
             What moves a little: with few nodes a tree's rounded sums change more often, which writes more words. The tree of stakes, which `quit` leaves, \
             has a level more for every four times as many nodes (five more from 100 to 100,000), the queue's trees likewise for queued tasks; \
             starting or ending a task that never queued touches neither.\n\n\
             ## What an adversary can do\n\nThe dearest transaction of each run, `dispatch` of more than one task apart (whoever calls it chooses how many to draw). The limit is 1,000,000.\n\n\
             | run | calls | dearest | gas, not cached | median create and dispatch |\n| --- | ---: | --- | ---: | ---: |\n",
        );
        for a in &self.attacks {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} |",
                a.name,
                a.calls,
                a.operation,
                thousands(a.most),
                a.dispatch.map_or("-".into(), thousands)
            );
        }
        out.push_str("\n## Every figure\n\n| operation | nodes | queued | values | programs | calls | min | median | max |\n| --- | ---: | ---: | --- | --- | ---: | ---: | ---: | ---: |\n");
        for r in self.sorted() {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                r.operation,
                thousands(r.nodes as u64),
                thousands(r.queued as u64),
                r.values,
                if r.cached { "cached" } else { "not cached" },
                r.samples,
                thousands(r.least),
                thousands(r.median),
                thousands(r.most),
            );
        }
        out
    }

    /// The README with its table of gas made anew, between two marks.
    pub fn readme(&self, readme: &str) -> Result<String> {
        let (start, end) = ("<!-- gas: written by script/bench gas -->\n", "<!-- /gas -->");
        let (before, rest) = readme.split_once(start).context("README.md has no mark where its table of gas begins")?;
        let (_, after) = rest.split_once(end).context("README.md has no mark where its table of gas ends")?;
        let mut out = format!(
            "{before}{start}| gas, median, programs cached / not cached | 100 nodes | 100,000 nodes |\n| --- | ---: | ---: |\n"
        );
        for operation in [LIMITS[0].operation, "submit, nothing queued", "join with 10 models that others hold", "pause"] {
            let _ = write!(out, "| {operation} |");
            for nodes in [100, 100_000] {
                let of = |cached| self.find(operation, nodes, cached).map(|r| thousands(r.median)).context("not measured");
                let _ = write!(out, " {} / {} |", of(true)?, of(false)?);
            }
            out.push('\n');
        }
        Ok(out + end + after)
    }

    /// Gas against nodes, both axes logarithmic.
    pub fn picture(&self) -> String {
        let line = |operation: &str, cached: bool| -> Vec<(f64, f64)> {
            let mut points: Vec<(f64, f64)> = self
                .rows
                .iter()
                .filter(|r| r.operation == operation && r.cached == cached && r.queued == 0)
                .map(|r| (r.nodes as f64, r.median as f64))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points
        };
        let series = [
            ("earlier contracts", EARLIER.to_vec()),
            ("join with 10 models", line("join with 10 models that others hold", false)),
            ("create and dispatch", line(LIMITS[0].operation, false)),
            ("the same, cached", line(LIMITS[0].operation, true)),
            ("submit", line("submit, nothing queued", false)),
        ];
        // A median has no interval.
        let points = |line: Vec<(f64, f64)>| {
            line.into_iter().map(|(nodes, gas)| (nodes, Estimate { mean: gas / 1e3, margin: 0.0, count: 1 })).collect()
        };
        let curves = Curves {
            frame: Frame {
                title: "Gas of a transaction against the size of the network".into(),
                y: "thousands of gas (logarithmic)".into(),
                note: "Medians, programs not cached unless it says so. The earlier contracts: create a task and dispatch it."
                    .into(),
            },
            x: "nodes (logarithmic)".into(),
            series: series.map(|(name, line)| (name.to_owned(), points(line))).to_vec(),
            log: true,
            log_y: true,
            dots: true,
            ..Curves::default()
        };
        curves.svg()
    }
}

fn right(table: &mut Table, columns: &[usize]) {
    for &i in columns {
        if let Some(c) = table.column_mut(i) {
            c.set_cell_alignment(CellAlignment::Right);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is committed belongs together, and to this code.
    #[test]
    fn the_page_and_its_picture_are_those_of_the_figures() {
        let read = |name: &str| std::fs::read_to_string(format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let report: Report = serde_json::from_str(&read("docs/gas.json")).unwrap();
        assert!(report.page() == read("docs/gas.md"), "docs/gas.md: run script/bench gas --repaint");
        assert!(report.picture() == read("docs/figures/gas.svg"), "docs/figures/gas.svg: run script/bench gas --repaint");
        let readme = read("README.md");
        assert!(report.readme(&readme).unwrap() == readme, "README.md: run script/bench gas --repaint");
    }
}
