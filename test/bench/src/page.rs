//! The texts about the measurements: tables, the generated page and its picture, the snapshot.

use crate::limits::{Bound, DEAREST, DEAREST_GOAL, GROWTH, LIMITS};
use crate::points::POINTS;
use crate::report::Report;
use anyhow::{ensure, Context, Result};
use comfy_table::{presets::UTF8_HORIZONTAL_ONLY, CellAlignment, Table};
use muster_protocol::flow::gas::{CALL_GAS, MORE_DRAW_GAS};
use muster_protocol::programs::PROGRAMS;
use muster_sim::chart::{Curves, Frame};
use muster_sim::numbers::thousands;
use muster_sim::statistics::Estimate;
use std::collections::BTreeMap;
use std::fmt::Write;

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

/// Of the page: the gas that calls demand at their start.
fn demands() -> String {
    let mut out = String::from(
        "\n### What calls demand\n\nSome calls may do work that others left due. Such a call refuses at its start (`GasTooLow`) if it has \
         less gas than that work can take. So a gas estimate suffices, whatever work is due when the transaction is included. Unused gas \
         costs nothing. Every call measured on this page, but those of `dispatch` for several draws, was sent with hardly more gas than it \
         demands.\n\n| gas | calls |\n| ---: | --- |\n",
    );
    let functions = PROGRAMS.iter().flat_map(|(_, functions)| *functions);
    let mut by_floor = BTreeMap::<u64, Vec<String>>::new();
    for f in functions.filter(|f| f.floor > 0) {
        // It demands more than the calls beside it.
        let floor = if f.name() == "settle" { CALL_GAS } else { f.floor };
        by_floor.entry(floor).or_default().push(format!("`{}`", f.name()));
    }
    by_floor.entry(CALL_GAS).or_default().push("`reveal` in a group".into());
    for (floor, names) in by_floor {
        let _ = writeln!(out, "| {} | {} |", thousands(floor), names.join(", "));
    }
    let _ = writeln!(out, "\n`dispatch` demands {} more for each draw after the first, and stops before a draw for which the remaining gas could be too little.", thousands(MORE_DRAW_GAS));
    out
}

impl Report {
    /// For the terminal.
    pub fn tables(&self) -> String {
        let mut table = Table::new();
        table.load_preset(UTF8_HORIZONTAL_ONLY).set_header([
            "operation",
            "nodes",
            "queued",
            "values",
            "programs",
            "draws",
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
            "draws",
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
        let mut more = Table::new();
        more.load_preset(UTF8_HORIZONTAL_ONLY)
            .set_header(["call", "queued", "values", "programs", "before", "now", "more", "at most"]);
        for b in self.bounds() {
            let programs = if b.cached { "cached" } else { "not cached" }.into();
            let most = b.limit.map_or("-".into(), thousands);
            more.add_row([
                b.operation.clone(),
                thousands(b.queued.into()),
                b.values.clone(),
                programs,
                thousands(b.before),
                thousands(b.now),
                b.more(),
                most,
            ]);
        }
        right(&mut more, &[1, 4, 5, 6, 7]);
        let mut innocent = Table::new();
        innocent.load_preset(UTF8_HORIZONTAL_ONLY).set_header([
            "innocent call among strangers",
            "nothing due",
            "dearest",
            "what was due",
        ]);
        for i in &self.innocent {
            innocent.add_row([i.operation.clone(), thousands(i.alone), thousands(i.most), i.due.clone()]);
        }
        right(&mut innocent, &[1, 2]);
        format!("{table}\n{more}\n{dear}\n{innocent}\nprograms compiled by {}", self.compiler)
    }

    /// One line per figure.
    pub fn snapshot(&self) -> String {
        let mut out = format!(
            "# Gas: median and most; of calls among strangers with nothing due, and most. Made by `script/bench gas --snapshot`, checked \
             by `script/test`.\n# programs compiled by {}\n",
            self.compiler
        );
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
        for i in &self.innocent {
            let _ =
                writeln!(out, "{}, among {} strangers: {} {}", i.operation, thousands(self.strangers.into()), i.alone, i.most);
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

    /// `docs/generated/gas.md`.
    pub fn page(&self) -> String {
        let mut out = String::from(
            "# Gas\n\n[All pages](../README.md)\n\nMade by `script/bench gas`, which deploys the compiled programs on the embedded devnode and sends real transactions; do not edit. \
             Gas as a receipt states it, through the public address, without the cost of data on L1. The same figures as JSON are in [gas.json](gas.json); \
             a smaller set is a snapshot (`test/bench/gas.snap`) that `script/test` compares exactly. Where the gas of a call goes, word by word and as flame graphs, is in [gas-breakdown.md](gas-breakdown.md), and how far it carries in [capacity.md](capacity.md).\n\n",
        );
        let _ = writeln!(out, "Programs compiled by {}.\n\n![Gas against the number of nodes](figures/gas.svg)\n", self.compiler);
        out.push_str(
            "## Against the limits\n\nMedians, programs cached / not cached. *Floor*: the least that any contract would pay for the same change: 21,000, calldata, \
             5,000 for each storage word that ends up different (22,100 for one that was zero), events. Reads and computing are free in it. \
             A median above its limit fails the command; a goal that is missed is marked.\n\n\
             | operation | nodes | queued | values | cached | not cached | limit | goal | times the floor |\n| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |\n",
        );
        for l in LIMITS {
            let of = |cached: bool| self.sorted().into_iter().filter(move |r| r.operation == l.operation && r.cached == cached);
            for (c, u) in of(true).zip(of(false)) {
                let ratio = c.floor.map_or(String::new(), |(floor, gas)| format!("{:.2}", gas as f64 / floor as f64));
                let limit = if l.limit.0 == l.limit.1 { thousands(l.limit.0) } else { pair(l.limit) };
                let missed = if c.median > l.goal.0 || u.median > l.goal.1 { ", missed" } else { "" };
                let _ = writeln!(
                    out,
                    "| {} | {} | {} | {} | {} | {} | {limit} | {}{missed} | {ratio} |",
                    l.operation,
                    thousands(c.nodes as u64),
                    thousands(c.queued as u64),
                    c.values,
                    thousands(c.median),
                    thousands(u.median),
                    pair(l.goal),
                );
            }
        }
        if let Some((nodes, growth)) = self.growth() {
            let _ = writeln!(out, "\nCreating and dispatching with {} nodes costs {growth:.3} times what it costs with 100 (limit {GROWTH}, goal 1.05).", thousands(nodes as u64));
        }
        out.push_str(&self.among_grades());
        out.push_str(
            "\nRows other than \"a node's first\" show every size at its steady cost. Before them, each node has worked: it has run and answered a task, \
             and then two for each node have been drawn and answered, one by one. Before rows of validation each has committed to an answer, and has a score. A node that joins with at most six models writes the two words of its first task of one model, at its operator's cost; with more, the first task does. \
             The contract's code makes large networks and queues natively, and they are written to the chain. Each run checks on a part that \
             transactions leave the same words. Before rows of groups chosen by ratings, ratings and the words of an ended task are written into storage instead.\n\n\
             Some figures move a little. With few nodes a tree's rounded sums change more often, which writes more words. The tree of stakes has a level more for every four times as many nodes \
             (five more from 100 to 100,000). `quit` changes it up to the first word whose largest stake stays. The queue's trees grow \
             likewise with queued tasks. When a node quits, the last node of each of its lists moves to its place. Starting or ending a task \
             that never queued touches neither kind of tree.\n\n\
             ## What an adversary can do\n\nEach row has the most expensive transaction of a run. Left out are `dispatch` and `createTasks` \
             for more than one task, whose callers choose how many. The limit is 1,000,000.\n\n\
             | run | calls | most expensive | gas, not cached | median create and dispatch |\n| --- | ---: | --- | ---: | ---: |\n",
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
        out.push_str(&self.among_strangers());
        out.push_str(&demands());
        out.push_str(&self.no_trend());
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

    /// Of the page: the gas that queued tasks of all grades add to a freed node's call.
    fn among_grades(&self) -> String {
        let mut out = String::from(
            "\n## While tasks for three nodes are queued\n\nA freed node's call, 100 nodes; half of the queued tasks require its GPU group, \
             half none. It is compared with the same network with single tasks only, where the call starts the same best task. With 10,000 \
             queued, *more* may be at most the limit; programs cached / not cached.\n\n\
             | call | queued | among single tasks | among all grades | more | limit |\n| --- | ---: | ---: | ---: | ---: | ---: |\n",
        );
        let bounds = self.bounds();
        let pairs = |of: fn(&Bound) -> bool| -> Vec<(Bound, Bound)> {
            let (cached, not): (Vec<_>, Vec<_>) = bounds.iter().filter(|b| of(b)).cloned().partition(|b| b.cached);
            cached.into_iter().zip(not).collect()
        };
        let row = |what: String, (c, u): &(Bound, Bound)| {
            let limit = c.limit.zip(u.limit).map_or(String::new(), pair);
            format!(
                "| {what} | {} | {} | {} | {} / {} | {limit} |\n",
                thousands(c.queued.into()),
                pair((c.before, u.before)),
                pair((c.now, u.now)),
                c.more(),
                u.more(),
            )
        };
        pairs(|b| b.graded).iter().for_each(|both| out.push_str(&row(both.0.operation.clone(), both)));
        out.push_str(
            "\nWhere only single tasks are queued, compared with the call's cost before there were tasks for three:\n\n\
             | values | queued | before | now | more | limit |\n| --- | ---: | ---: | ---: | ---: | ---: |\n",
        );
        pairs(|b| !b.graded).iter().for_each(|both| out.push_str(&row(both.0.values.clone(), both)));
        out
    }

    /// How much more the same calls cost in the largest network, if there are both.
    fn with_nodes(&self) -> String {
        let share = |at: usize| {
            let row = &self.rows[at];
            let of = |row: &crate::measure::Row| (row.operation.clone(), row.values.clone(), row.queued, row.cached);
            let larger = self.rows.iter().find(|other| other.nodes == 100_000 && of(other) == of(row))?;
            Some((larger.median as f64 / row.median as f64 - 1.0, row.operation.clone()))
        };
        let mut shares: Vec<_> = (0..self.rows.len()).filter(|at| self.rows[*at].nodes == 100).filter_map(share).collect();
        shares.sort_by(|one, other| one.0.total_cmp(&other.0));
        let Some((most, operation)) = shares.last() else { return String::new() };
        let alike = shares.iter().filter(|(share, _)| share.abs() <= 0.01).count();
        format!(
            " With 100,000 nodes {alike} of {} medians are within 1 % of those with 100; most rises \"{operation}\", by {:.0} %.",
            shares.len(),
            most * 100.0
        )
    }

    /// Of the page: single calls as points.
    fn no_trend(&self) -> String {
        let (count, most) = self.points.extent();
        let mut out = format!(
            "\n## Single calls\n\nEvery point is the most expensive of the calls that met the same conditions, in the rows and in the runs \
             with an adversary. The conditions are the models of the task that is created, started or ended, the tasks queued, and the nodes \
             joined (the last two rounded to two digits). There are {} points, and the most expensive call took {} ([`{}`]({})).{} Calls that queue a task or start a queued one rise by a level of the \
             queue's trees for every four times as many tasks, and a queue that grows opens new words besides. A task has at most eight \
             models: rows ask for one, adversaries for eight.\n",
            thousands(count as u64),
            thousands(most),
            POINTS.rsplit('/').next().unwrap_or(POINTS),
            POINTS.trim_start_matches("docs/generated/"),
            self.with_nodes(),
        );
        for (name, _) in self.points.pictures() {
            let _ = write!(out, "\n![{}](figures/{name}.svg)\n", name.replace('-', " "));
        }
        out
    }

    /// Of the page: innocent calls, and the gas that strangers can add to them.
    fn among_strangers(&self) -> String {
        let mut out = format!(
            "\n### Innocent calls among strangers\n\nStrangers have made {} GPU names known. Their tasks of all grades are queued for 256 sizes of VRAM, and for their GPUs, up to the queue's capacity. Their 384 idle nodes held models \
             that tasks ask for, and dropped them. Then other tasks of theirs are due, and the next call draws them. Programs are not cached. Each figure is the most of several hashes and \
             backlogs. The limit is {}, the goal of calls of validation {}.\n\n\
             | call | nothing due | at most | what was due |\n| --- | ---: | ---: | --- |\n",
            thousands(self.strangers.into()),
            thousands(DEAREST),
            thousands(DEAREST_GOAL)
        );
        for i in &self.innocent {
            let missed = if i.validating && i.most > DEAREST_GOAL { ", goal missed" } else { "" };
            let _ = writeln!(out, "| {} | {} | {}{missed} | {} |", i.operation, thousands(i.alone), thousands(i.most), i.due);
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
        for operation in [
            LIMITS[0].operation,
            "create and dispatch by sixteen, a task",
            "submit, nothing queued",
            "create a replicated task and dispatch one",
            "commit, a task that may be sampled",
            "reveal, not sampled: paid and released",
            "form a group: two validators drawn",
            "reveal in a group, the last: three judged",
            "join with 10 models that others hold",
            "pause",
        ] {
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

/// With cached and with uncached programs.
fn pair((cached, not): (u64, u64)) -> String {
    format!("{} / {}", thousands(cached), thousands(not))
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
    use crate::points::Points;

    /// The committed files belong together, and to this code.
    #[test]
    fn the_page_and_its_picture_are_those_of_the_figures() {
        let read = |name: &str| std::fs::read_to_string(format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let mut report: Report = serde_json::from_str(&read("docs/generated/gas.json")).unwrap();
        report.points = Points::read(&read(POINTS)).unwrap();
        for (name, svg) in report.points.pictures() {
            assert!(svg == read(&format!("docs/generated/figures/{name}.svg")), "{name}: run script/bench gas --repaint");
        }
        assert!(report.page() == read("docs/generated/gas.md"), "docs/generated/gas.md: run script/bench gas --repaint");
        assert!(
            report.picture() == read("docs/generated/figures/gas.svg"),
            "docs/generated/figures/gas.svg: run script/bench gas --repaint"
        );
        let readme = read("README.md");
        assert!(report.readme(&readme).unwrap() == readme, "README.md: run script/bench gas --repaint");
    }
}
