//! What the experiments show: the page, its pictures, and all figures as a table.

use std::fmt::Write;

use muster_core::qos::{exclusion_seconds, penalise, recover};
use muster_core::wad::WAD;

use super::ledger::LEAST_STAKE;
use super::policy::Merit;
use super::study::{
    merit_name, scenarios, Findings, Results, Rule, Scale, ATTACK, CHOICES, CLOSE, DEFENCES, KICKOUT, LOAD, LOADS, MEASURES,
    SLOWER, STEADY_OUT,
};
use super::workload::{fleet, Profile};
use super::Options;
use crate::chart::{number, Bars, Curves, Frame};
use crate::statistics::Estimate;

/// A value that cannot be negative with its interval, with as many decimals as its size asks for. Its two ends are shown
/// where the interval is not symmetric.
fn show(e: Estimate) -> String {
    let size = e.mean.abs().max(e.margin);
    if size == 0.0 {
        return "0".into();
    }
    if size < 0.001 {
        return "under 0.001".into();
    }
    let decimals = if size >= 1_000.0 {
        0
    } else if size >= 10.0 {
        1
    } else if size >= 0.1 {
        2
    } else {
        3
    };
    if e.margin == 0.0 {
        return format!("{:.decimals$}", e.mean);
    }
    let (low, high) = e.positive();
    if low == e.low() && high == e.high() {
        return format!("{:.decimals$} ± {:.decimals$}", e.mean, e.margin);
    }
    // The lower end may be much smaller than the rest; it is not zero.
    let (low, high) = (number(low), number(high));
    format!("{:.decimals$} ({low} to {high})", e.mean)
}

fn signed(e: Estimate) -> String {
    format!("{:+.2} ± {:.2}", e.mean, e.margin)
}

/// A Markdown table.
struct Table(String);

impl Table {
    fn new(headings: &[String]) -> Self {
        let rule = vec!["---"; headings.len()].join(" | ");
        Self(format!("| {} |\n| {rule} |\n", headings.join(" | ")))
    }

    fn row(&mut self, cells: &[String]) {
        let _ = writeln!(self.0, "| {} |", cells.join(" | "));
    }
}

fn title(id: &str) -> &'static str {
    MEASURES.iter().find(|m| m.id == id).map_or("", |m| m.title)
}

/// Arrangements as columns, measures as rows.
fn compare(results: &Results, columns: &[(String, String)], ids: &[&str]) -> String {
    let headings: Vec<String> =
        std::iter::once(String::new()).chain(columns.iter().map(|(heading, _)| heading.clone())).collect();
    let mut table = Table::new(&headings);
    for id in ids {
        let mut cells = vec![title(id).to_string()];
        cells.extend(columns.iter().map(|(_, name)| show(results.get(name, id))));
        table.row(&cells);
    }
    table.0
}

fn choices() -> Vec<(String, String)> {
    CHOICES.iter().map(|merit| (merit_name(*merit).to_string(), format!("choice/{LOAD}/{}", merit_name(*merit)))).collect()
}

fn contract(load: u32) -> String {
    format!("choice/{load}/{}", merit_name(None))
}

fn without_h(load: u32) -> String {
    format!("without-h/{load}")
}

fn attack(merit: Option<Merit>, split: u32) -> String {
    format!("sybil/{}/{split}", merit_name(merit))
}

fn share(x: u64) -> f64 {
    x as f64 / 1e6
}

fn rule_text(rule: &Rule) -> String {
    format!(
        "penalty x{}, boost +{}, threshold {}, tau {} s",
        share(rule.penalty),
        share(rule.boost),
        share(rule.threshold),
        rule.tau
    )
}

/// The share of all stake that the attacker holds, as a mean over the fleets of the seeds.
fn stake_share(scale: &Scale, seed: u64) -> f64 {
    let profile = Profile { nodes: scale.sybil_nodes, mix: [0; 5], churn: false, ..Profile::default() };
    let shares = (0..scale.sybil_seeds).map(|i| {
        let honest: u64 = fleet(&profile, seed + i).iter().map(|node| node.stake).sum();
        let own = ATTACK * LEAST_STAKE;
        100.0 * own as f64 / (own + honest) as f64
    });
    shares.sum::<f64>() / scale.sybil_seeds as f64
}

fn frame(title: &str, y: &str, seeds: u64) -> Frame {
    Frame {
        title: title.into(),
        y: y.into(),
        note: format!("Bands and whiskers: 95 % confidence intervals over {seeds} seeds (Student's t)."),
    }
}

/// All pictures, by name.
pub fn figures(found: &Findings, scale: &Scale) -> Vec<(&'static str, String)> {
    let results = &found.results;
    let mut out = Vec::new();

    let line = |name: &dyn Fn(u32) -> String, id: &str| -> Vec<(f64, Estimate)> {
        LOADS.iter().map(|&load| (f64::from(load) / 10.0, results.get(&name(load), id))).collect()
    };
    let waits = Curves {
        frame: frame("Waiting time by load", "95th percentile of waiting time (s)", scale.seeds),
        x: "work asked for, of what all nodes could do (%)".into(),
        series: vec![("H as in 000".into(), line(&contract, "wait95")), ("without H".into(), line(&without_h, "wait95"))],
        from_zero: true,
        ..Curves::default()
    };
    out.push(("waiting", waits.svg()));

    let failed = Curves {
        frame: frame("Failed tasks with and without H", "tasks that were started and failed (%)", scale.seeds),
        x: "work asked for, of what all nodes could do (%)".into(),
        series: vec![("H as in 000".into(), line(&contract, "failed")), ("without H".into(), line(&without_h, "failed"))],
        from_zero: true,
        ..Curves::default()
    };
    out.push(("h", failed.svg()));

    for (name, heading, ids, ends) in [
        ("stake", "Income by stake", ["stake1", "stake2", "stake3", "stake4", "stake5"], ["lowest stakes", "highest stakes"]),
        ("speed", "Income by speed", ["speed1", "speed2", "speed3", "speed4", "speed5"], ["slowest", "fastest"]),
    ] {
        let groups = [ends[0], "second fifth", "third fifth", "fourth fifth", ends[1]].map(String::from).to_vec();
        let series = choices()
            .into_iter()
            .filter(|(heading, _)| heading != merit_name(Some(Merit::Weight)))
            .map(|(heading, name)| (heading, ids.iter().map(|id| results.get(&name, id)).collect()))
            .collect();
        let frame = frame(heading, "income per hour, mean of all = 1", scale.seeds);
        out.push((name, Bars { frame, groups, series }.svg()));
    }

    for (name, heading, y, id) in [
        ("threshold-failed", "What a higher threshold prevents", "tasks that were started and failed (%)", "failed"),
        ("threshold-cost", "What a higher threshold costs", "time that steady nodes are excluded (%)", "out-steady"),
    ] {
        let series = scale.grid.tau.iter().map(|&tau| {
            let points = scale.grid.threshold.iter().map(|&threshold| {
                let rule = Rule { threshold, tau, ..Rule::OF_000 };
                (share(threshold), results.get(&rule.name("slice"), id))
            });
            (format!("tau {tau} s"), points.collect())
        });
        let curves = Curves {
            frame: frame(heading, y, scale.seeds),
            x: "H below which a node is excluded (penalty x0.3, boost +0.15)".into(),
            series: series.collect(),
            from_zero: true,
            ..Curves::default()
        };
        out.push((name, curves.svg()));
    }

    let series = DEFENCES.iter().map(|merit| {
        let points = scale.splits.iter().map(|&n| (f64::from(n), results.get(&attack(*merit, n), "share-sybil")));
        (merit_name(*merit).to_string(), points.collect())
    });
    let sybil = Curves {
        frame: frame("One sum of stake, split over many nodes", "starts that the attacker's nodes get (%)", scale.sybil_seeds),
        x: "nodes the sum is split over".into(),
        series: series.collect(),
        from_zero: true,
        log: true,
        ..Curves::default()
    };
    out.push(("sybil", sybil.svg()));
    out
}

/// Every measure of every arrangement, with half the width of its interval.
pub fn csv(found: &Findings) -> String {
    let mut out = String::from("arrangement,seeds");
    for m in MEASURES {
        let _ = write!(out, ",{0},{0}-margin95", m.id);
    }
    out.push('\n');
    for (name, rows) in &found.results.0 {
        let _ = write!(out, "\"{name}\",{}", rows.len());
        for m in MEASURES {
            let e = found.results.get(name, m.id);
            let _ = write!(out, ",{:.4},{:.4}", e.mean, e.margin);
        }
        out.push('\n');
    }
    out
}

/// The tables of a page with their headings, without the prose.
pub fn tables(page: &str) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut heading = None;
    for line in page.lines() {
        if line.starts_with("## ") {
            heading = line.strip_prefix("## ");
        } else if line.starts_with('|') && !line.starts_with("| ---") {
            rows.extend(heading.take().map(|text| vec![format!("\n{text}")]));
            rows.push(line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_string()).collect());
        }
    }
    let mut out = String::new();
    let mut from = 0;
    while from < rows.len() {
        // Rows of as many cells make one table.
        let to = from + rows[from..].iter().take_while(|row| row.len() == rows[from].len()).count();
        let width = |at: usize| rows[from..to].iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..rows[from].len()).map(width).collect();
        for row in &rows[from..to] {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(i, (cell, &width))| if i == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") })
                .collect();
            let _ = writeln!(out, "{}", cells.join("  ").trim_end());
        }
        from = to;
    }
    out
}

/// The whole page.
pub fn write(found: &Findings, options: &Options) -> String {
    let (results, scale) = (&found.results, &options.scale);
    let get = |name: &str, id: &str| results.get(name, id);
    let usual = contract(LOAD);
    let mut page = String::new();
    let _ = write!(
        page,
        "# A network under the QoS and the dispatch document\n\n\
         <!-- Generated by `script/sim network`; changes belong into sim/src/network. -->\n\n\
         Nodes, applications, queue and quality of service, event by event, on the very code that runs on chain \
         (`contracts/protocol`). What is simulated, and what nodes and tasks are like, is in [simulator.md](simulator.md). \
         Made by\n\n```\nscript/sim network{}{}\n```\n\n\
         {} nodes and {} tasks in each run, {} seeds, unless said otherwise; all figures are in \
         [figures/network.csv](figures/network.csv). ± is a 95 % confidence interval over seeds (Student's t); where it would come \
         near zero or below, which no quantity here can be, the ends of the interval of its logarithm stand in brackets. Differences are \
         taken seed by seed, and their intervals hold for all differences of the same section together (Bonferroni). \
         \"Failed\" are tasks that were started and timed out or were reported as impossible. Income is fees per hour in the network.\n\n",
        if scale.quick { " --quick" } else { "" },
        if options.seed == 1 { String::new() } else { format!(" --seed {}", options.seed) },
        scale.nodes,
        scale.tasks,
        scale.seeds,
    );

    page.push_str("## What to take from it\n\n");
    summary(&mut page, found, options);

    page.push_str("\n## Load\n\n![Waiting time by load](figures/network-waiting.svg)\n\n");
    let columns: Vec<_> = LOADS.iter().map(|&load| (format!("load {}", f64::from(load) / 1e3), contract(load))).collect();
    page.push_str(&compare(
        results,
        &columns,
        &[
            "wait50",
            "wait95",
            "wait99",
            "throughput",
            "failed",
            "away",
            "wasted",
            "local",
            "redrawn",
            "gini",
            "gini-stake",
            "exclusions",
            "exclusion50",
            "exclusion-max",
        ],
    ));
    page.push_str(
        "\nA queue that serves the highest value first makes the cheapest tasks wait for as long as there is more work than \
         nodes: hence the distance between the median and the 99th percentile.\n",
    );

    let _ = write!(
        page,
        "\n## Ways of choosing\n\n\
         All with the same candidates, queue, H and locality boost M; what differs is what a candidate's chance is proportional to, \
         apart from M. \"W (exact)\" is the contract's own weight, chosen by adding up instead of the contract's bounded search and \
         rejection. Load {}.\n\n![Income by stake](figures/network-stake.svg)\n\n![Income by speed](figures/network-speed.svg)\n\n",
        f64::from(LOAD) / 1e3
    );
    page.push_str(&compare(
        results,
        &choices(),
        &[
            "wait50",
            "wait95",
            "wait99",
            "throughput",
            "failed",
            "wasted",
            "local",
            "gini",
            "stake1",
            "stake5",
            "speed1",
            "speed5",
            "wage-slow",
            "wage-flaky",
            "wage-broken",
        ],
    ));
    page.push_str("\nThe same, as a difference to the contract's choice, seed by seed:\n\n");
    let compared = ["wait95", "failed", "local", "stake5", "speed5"];
    let headings: Vec<String> = std::iter::once("").chain(compared.map(title)).map(String::from).collect();
    let mut table = Table::new(&headings);
    let comparisons = compared.len() * (choices().len() - 1);
    for (heading, name) in choices().into_iter().skip(1) {
        let mut cells = vec![heading];
        cells.extend(compared.map(|id| signed(results.difference(&name, &usual, id).among(comparisons))));
        table.row(&cells);
    }
    page.push_str(&table.0);

    page.push_str(
        "\n## The short-term factor H, on and off\n\nOff: timeouts leave H at 1, nobody is excluded.\n\n\
         ![Failed tasks with and without H](figures/network-h.svg)\n\n",
    );
    let mut table = Table::new(
        &["load", "failed (%), H on", "off", "on less off", "95th percentile of waiting (s), H on", "off", "on less off"]
            .map(String::from),
    );
    for load in LOADS {
        let (on, off) = (contract(load), without_h(load));
        let less = |id| signed(results.difference(&on, &off, id).among(2 * LOADS.len()));
        table.row(&[
            format!("{}", f64::from(load) / 1e3),
            show(get(&on, "failed")),
            show(get(&off, "failed")),
            less("failed"),
            show(get(&on, "wait95")),
            show(get(&off, "wait95")),
            less("wait95"),
        ]);
    }
    page.push_str(&table.0);

    exclusion(&mut page, found, scale);

    let _ = write!(
        page,
        "\n## Kickouts and slashing\n\n{} nodes and {} tasks, one in ten tasks in a validation group: as long as it takes for score \
         pools to fill. Nobody joins late or leaves.\n\n",
        scale.nodes / 2,
        scale.long_tasks
    );
    let (_, limit) = KICKOUT;
    let columns = [
        ("by default".to_string(), "long"),
        (format!("kickout below {}", limit as f64 / 1e3), "long-kickout"),
        ("without H".to_string(), "long-without-h"),
    ]
    .map(|(a, b)| (a, b.to_string()));
    page.push_str(&compare(
        results,
        &columns,
        &[
            "kicked-honest",
            "kicked-steady",
            "kicked-slow",
            "kicked-flaky",
            "kicked-bad",
            "kicked-dead",
            "kicked-broken",
            "slashed-honest",
            "slashed-bad",
            "scores-bad",
            "scores-steady",
            "failed",
            "share-dead",
            "share-broken",
            "out-dead",
            "out-broken",
            "out-flaky",
            "out-steady",
        ],
    ));
    let bad: f64 = {
        let profile = Profile { nodes: scale.nodes / 2, ..Profile::default() };
        let counts = (0..scale.seeds).map(|i| fleet(&profile, options.seed + i).iter().filter(|n| n.kind.bad()).count());
        counts.sum::<usize>() as f64 / scale.seeds as f64
    };
    let _ = write!(
        page,
        "\nOf the {} nodes {bad:.1} are bad on average: dead, broken or cheats. Cheats are slashed by the groups that outvote them. \
         What is slashed and not bad had reported an error that two other members' answers outvoted, as the rules have it.\n",
        scale.nodes / 2
    );

    let _ = write!(
        page,
        "\n## Sybil attacks\n\n\
         {} steady nodes with stakes of 1 to 100 times the least; an attacker with {ATTACK} times the least stake, {:.1} % of all \
         stake, splits it over 1 to {} nodes, each with hardware of its own. {} tasks, load {} of the honest nodes, {} seeds. \
         \"Linear\" takes the stake itself instead of its square root.\n\n\
         ![The attacker's share by the number of nodes](figures/network-sybil.svg)\n\n",
        scale.sybil_nodes,
        stake_share(scale, options.seed),
        scale.splits[scale.splits.len() - 1],
        scale.sybil_tasks,
        0.3,
        scale.sybil_seeds,
    );
    let headings: Vec<String> = std::iter::once("starts that the attacker gets (%)".to_string())
        .chain(scale.splits.iter().map(|n| format!("{n}")))
        .collect();
    let mut table = Table::new(&headings);
    let mut cells = vec!["(his share of all nodes)".to_string()];
    cells.extend(scale.splits.iter().map(|&n| number(node_share(scale, n))));
    table.row(&cells);
    for merit in DEFENCES {
        let mut cells = vec![merit_name(merit).to_string()];
        cells.extend(scale.splits.iter().map(|&n| show(get(&attack(merit, n), "share-sybil"))));
        table.row(&cells);
    }
    page.push_str(&table.0);
    page.push_str(
        "\nA single node can't do more than one task at a time, which bounds the attacker's share on the left whatever his stake. \
         On the right, 1,000 nodes are the most that the least stake allows for the sum.\n",
    );
    page
}

/// What a rule makes of a node that never answers and gets its next task as soon as it is back: which timeout is the
/// first to exclude it, and the share of its time that it is excluded in the long run.
fn never_answers(rule: &Rule, seconds: u64) -> (Option<u32>, f64) {
    let (mut h, mut first, mut out) = (WAD, None, 0);
    const ROUNDS: u32 = 200;
    for n in 1..=2 * ROUNDS {
        h = penalise(h, rule.penalty as u32);
        let excluded = exclusion_seconds(h, rule.threshold as u32, rule.tau as u32);
        if excluded > 0 && first.is_none() {
            first = Some(n);
        }
        if n > ROUNDS {
            out += excluded;
        }
        h = recover(h, excluded + seconds, rule.tau as u32);
    }
    (first, out as f64 / (out + u64::from(ROUNDS) * seconds).max(1) as f64)
}

fn ordinal(n: u32) -> String {
    let ending = match (n % 10, n % 100) {
        (1, n) if n != 11 => "st",
        (2, n) if n != 12 => "nd",
        (3, n) if n != 13 => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

fn exclusion(page: &mut String, found: &Findings, scale: &Scale) {
    let results = &found.results;
    let usual = contract(LOAD);
    let _ = write!(
        page,
        "\n## The rule of exclusion\n\n\
         The default rule, that of the QoS document, excludes a node while H < 0.1. H is back there within {} s even from 0, and within {} s from the 0.09 that two \
         timeouts at the same moment leave; timeouts that lie further apart leave more, and often exclude nobody. Measured at load {}: {} exclusions per 1,000 starts, median {} s, \
         longest {} s.\n\n",
        exclusion_seconds(0, 100_000, 1_800),
        exclusion_seconds(WAD / 100 * 9, 100_000, 1_800),
        f64::from(LOAD) / 1e3,
        show(results.get(&usual, "exclusions")),
        show(results.get(&usual, "exclusion50")),
        show(results.get(&usual, "exclusion-max")),
    );
    let grid = &scale.grid;
    let list = |values: &[u64], shown: &dyn Fn(u64) -> String| values.iter().map(|v| shown(*v)).collect::<Vec<_>>().join(", ");
    let ppm = |v: u64| format!("{}", share(v));
    let _ = write!(
        page,
        "Other parameters, every combination of penalty {}; boost {}; threshold {}; tau {} s ({} tasks, {} seeds each):\n\n\
         ![Failed tasks by threshold](figures/network-threshold-failed.svg)\n\n\
         ![Time steady nodes are excluded by threshold](figures/network-threshold-cost.svg)\n\n",
        list(grid.penalty, &ppm),
        list(grid.boost, &ppm),
        list(grid.threshold, &ppm),
        list(grid.tau, &|v| v.to_string()),
        scale.grid_tasks,
        scale.grid_seeds,
    );
    let _ = write!(
        page,
        "A candidate must not exclude steady nodes for more than {STEADY_OUT} % of their time, nor (clearly) lengthen the 95th percentile \
         of waiting by more than a factor of {SLOWER}, or one second. Of those that don't, the ones with the fewest failed tasks were \
         run again, with {} seeds other than those they were picked with, in other circumstances. Recommended is, of those within \
         {:.0} % of the fewest failed tasks in all circumstances together, the one that \
         changes the fewest parameters, and of equals the one that excludes steady nodes least. Failed tasks (%):\n\n",
        scale.seeds,
        100.0 * (CLOSE - 1.0),
    );
    let scenarios = scenarios(scale);
    let mut headings = vec!["rule".to_string()];
    headings.extend(scenarios.iter().map(|(name, ..)| name.to_string()));
    let mut table = Table::new(&headings);
    let rules = || std::iter::once(&Rule::OF_000).chain(&found.finalists);
    for rule in rules() {
        let mut cells = vec![rule_text(rule)];
        cells.extend(scenarios.iter().map(|(name, ..)| show(results.get(&rule.name(name), "failed"))));
        table.row(&cells);
    }
    page.push_str(&table.0);
    page.push_str("\nThe first row is the default rule. What the others cost, as the 95th percentile of waiting (s), and the time steady nodes are excluded (%):\n\n");
    let mut table = Table::new(&headings);
    for rule in rules() {
        let mut cells = vec![rule_text(rule)];
        cells.extend(scenarios.iter().map(|(name, ..)| {
            let (wait, out) = (results.get(&rule.name(name), "wait95"), results.get(&rule.name(name), "out-steady"));
            format!("{} s, {:.2} %", show(wait), out.mean)
        }));
        table.row(&cells);
    }
    page.push_str(&table.0);
    page.push_str("\nWhat they do in *usual*:\n\n");
    let measures = ["exclusions", "exclusion50", "exclusion-max", "out-flaky", "out-dead", "out-broken"];
    let headings: Vec<String> = std::iter::once("rule").chain(measures.iter().map(|id| title(id))).map(String::from).collect();
    let mut table = Table::new(&headings);
    for rule in rules() {
        let mut cells = vec![rule_text(rule)];
        cells.extend(measures.iter().map(|id| show(results.get(&rule.name("usual"), id))));
        table.row(&cells);
    }
    page.push_str(&table.0);
    page.push_str(
        "\nBy the formula alone, a node that never answers, is given its next task as soon as it can be, and times out 3 or 10 \
         minutes later, again and again:\n\n",
    );
    let mut table = Table::new(
        &["rule", "longest exclusion (s)", "3 minutes: excluded from", "of the time", "10 minutes: excluded from", "of the time"]
            .map(String::from),
    );
    for rule in rules() {
        let mut cells = vec![rule_text(rule), exclusion_seconds(0, rule.threshold as u32, rule.tau as u32).to_string()];
        for seconds in [180, 600] {
            let (first, share) = never_answers(rule, seconds);
            cells.push(first.map_or("never".into(), |n| format!("{} timeout", ordinal(n))));
            cells.push(format!("{:.0} %", 100.0 * share));
        }
        table.row(&cells);
    }
    page.push_str(&table.0);
    let what: Vec<String> = scenarios.iter().map(|(name, what, _)| format!("*{name}*: {what}")).collect();
    let _ = write!(page, "\nCircumstances: {}.\n", what.join("; "));
}

/// What the figures say; every sentence depends on them.
fn summary(page: &mut String, found: &Findings, options: &Options) {
    let (results, scale) = (&found.results, &options.scale);
    let usual = contract(LOAD);
    let get = |id: &str| results.get(&usual, id);
    let load = f64::from(LOAD) / 1e3;
    // H, the recommended rule in every scenario, W against uniform and QoS, and the contract's search against all.
    let comparisons = 1 + scenarios(scale).len() + 2 + 2;
    let difference = |name: &str, from: &str, id: &str| results.difference(name, from, id).among(comparisons);
    let h = difference(&usual, &without_h(LOAD), "failed");
    let verdict = |e: Estimate| match () {
        () if e.high() < 0.0 => "H prevents failures",
        () if e.low() > 0.0 => "H causes failures",
        () => "H makes no difference that these runs can show",
    };
    let _ = writeln!(
        page,
        "- **{}.** At load {load}, {} % of tasks fail with it and {} % without ({} points).",
        verdict(h),
        show(get("failed")),
        show(results.get(&without_h(LOAD), "failed")),
        signed(h)
    );
    let _ = writeln!(
        page,
        "- **Exclusion under the default rule is short**: median {} s, the longest of a run {} s. Dead nodes are excluded {} % of their time, and broken ones {} %.",
        show(get("exclusion50")),
        show(get("exclusion-max")),
        show(get("out-dead")),
        show(get("out-broken")),
    );
    match &found.recommended {
        Some(rule) => {
            let gains: Vec<String> = scenarios(scale)
                .iter()
                .map(|(name, ..)| {
                    let d = difference(&rule.name(name), &Rule::OF_000.name(name), "failed");
                    format!("{name} {}", signed(d))
                })
                .collect();
            let _ = writeln!(
                page,
                "- **Recommended rule: {}.** It needs only the contract's parameters (`penaltyPpm` {}, `boostPpm` {}, `exclusionPpm` {}, \
                 `tau` {}). Failed tasks against the default rule, in points: {}. In usual circumstances steady nodes are excluded {} % of their time, \
                 flaky ones {} % (by default: {} and {} %).{}{}",
                rule_text(rule),
                rule.penalty,
                rule.boost,
                rule.threshold,
                rule.tau,
                gains.join(", "),
                show(results.get(&rule.name("usual"), "out-steady")),
                show(results.get(&rule.name("usual"), "out-flaky")),
                show(results.get(&Rule::OF_000.name("usual"), "out-steady")),
                show(results.get(&Rule::OF_000.name("usual"), "out-flaky")),
                if rule.penalty >= rule.threshold {
                    let from = rule.threshold as f64 / rule.penalty as f64;
                    format!(" A timeout excludes only a node whose H was below {from:.2} before it: nobody by a first one.")
                } else {
                    String::new()
                },
                if scale.grid.tau.last() == Some(&rule.tau) { " Its tau is the longest that was tried." } else { "" },
            );
        }
        None => {
            let _ = writeln!(
                page,
                "- **No rule of the grid is better than the default one** without costing steady nodes or waiting time."
            );
        }
    }
    let qos = format!("choice/{LOAD}/{}", merit_name(Some(Merit::Qos)));
    let uniform = format!("choice/{LOAD}/{}", merit_name(Some(Merit::Uniform)));
    let (against_chance, of_qos) = (difference(&usual, &uniform, "failed"), difference(&qos, &usual, "failed"));
    let compared = |e: Estimate| match () {
        () if e.high() < 0.0 => "fails less",
        () if e.low() > 0.0 => "fails more",
        () => "fails no differently, as far as these runs can show,",
    };
    let failures: Vec<String> =
        choices().iter().map(|(heading, name)| format!("{heading} {:.2}", results.get(name, "failed").mean)).collect();
    let _ = writeln!(
        page,
        "- **A network that chooses by W {} than one that chooses uniformly** ({} points), **and one that chooses by QoS alone {} than \
         W** ({} points). Failed tasks (%): {}.",
        compared(against_chance),
        signed(against_chance),
        compared(of_qos),
        signed(of_qos),
        failures.join(", "),
    );
    let spread = |id: &str| -> Vec<String> {
        choices()
            .iter()
            .filter(|(h, _)| h != "W (exact)")
            .map(|(h, name)| format!("{h} {:.2}", results.get(name, id).mean))
            .collect()
    };
    let (speed, stake) = (get("speed5").mean - get("speed1").mean, get("stake5").mean - get("stake1").mean);
    let _ = writeln!(
        page,
        "- **What a node earns depends on its {} more than on its {}.** The fastest fifth earns, relative to the mean: {}. The fifth \
         with the highest stakes: {}. A node's income is bounded by how many tasks it can do; choosing decides only between those that are idle.",
        if speed > stake { "speed" } else { "stake" },
        if speed > stake { "stake" } else { "speed" },
        spread("speed5").join(", "),
        spread("stake5").join(", "),
    );
    splitting(page, found, options);
    let long = |id: &str| results.get("long", id);
    let milder = |id: &str| results.get("long-kickout", id);
    let (parameter, limit) = KICKOUT;
    let _ = writeln!(
        page,
        "- **Kickout hits {} bad nodes and {} others** in the long runs; of the others {} are slow, {} steady and {} flaky. A node that is \
         always the last of its group has a mean score of exactly 2, so that a single 0 brings it below the limit. With a limit of {} \
         (`{parameter}` {limit}) it is {} bad nodes and {} others. Dead and broken nodes still get {} and {} % of the starts (then {} and {} %).",
        show(long("kicked-bad")),
        show(long("kicked-honest")),
        show(long("kicked-slow")),
        show(long("kicked-steady")),
        show(long("kicked-flaky")),
        limit as f64 / 1e3,
        show(milder("kicked-bad")),
        show(milder("kicked-honest")),
        show(long("share-dead")),
        show(long("share-broken")),
        show(milder("share-dead")),
        show(milder("share-broken")),
    );
    if long("slashed-honest").low() > 0.0 {
        let _ = writeln!(
            page,
            "- **Reporting an error can cost the stake.** {} nodes that are not bad were slashed in the long runs, beside {} bad ones: each \
             reported an error, as they do for one task in {}, where the two others of its group answered (or, hardly ever, the other way round).",
            show(long("slashed-honest")),
            show(long("slashed-bad")),
            1_000_000 / Profile::default().errors,
        );
    }
    let name = format!("choice/{LOAD}/W (exact)");
    let _ = writeln!(
        page,
        "- **What the contract's bounded search gives away:** with W chosen exactly, by looking at everybody, failed tasks change by {} \
         points and starts where all models are by {} points; {} of 1,000 draws stay undecided and are made again a block later.",
        signed(difference(&name, &usual, "failed")),
        signed(difference(&name, &usual, "local")),
        show(get("redrawn")),
    );
}

/// What an attacker gains by splitting his stake over many nodes, rule by rule, and what by the rule.
fn splitting(page: &mut String, found: &Findings, options: &Options) {
    let (results, scale) = (&found.results, &options.scale);
    let shown = |merit, n| results.get(&attack(merit, n), "share-sybil");
    let at = |merit, n| shown(merit, n).among(2 * DEFENCES.len());
    let (few, many) = (scale.splits[0], scale.splits[scale.splits.len() - 1]);
    let pays = DEFENCES.iter().filter(|merit| at(**merit, many).low() > at(**merit, few).high()).count();
    let shares: Vec<String> = DEFENCES
        .iter()
        .map(|merit| format!("{} {} and {}", merit_name(*merit), show(shown(*merit, few)), show(shown(*merit, many))))
        .collect();
    let means = |n: u32| DEFENCES.map(|merit| at(merit, n).mean);
    let ratio = |values: [f64; DEFENCES.len()]| {
        values.iter().fold(0.0f64, |a, b| a.max(*b)) / values.iter().fold(f64::INFINITY, |a, b| a.min(*b))
    };
    let growth: Vec<f64> = means(many).iter().zip(means(few)).map(|(many, few)| many / few).collect();
    let least = growth.iter().fold(f64::INFINITY, |a, b| a.min(*b));
    let between = ratio(means(many));
    let own = stake_share(scale, options.seed);
    let beyond: Vec<&str> =
        DEFENCES.iter().filter(|merit| at(**merit, many).low() > own).map(|merit| merit_name(*merit)).collect();
    let _ = writeln!(
        page,
        "- **Splitting a stake pays under {}; capacity counts for {} than the rule.** An attacker with {own:.1} % of all stake gets, on {few} \
         node and on {many} nodes, so many of the starts (%): {}. A node does one task at a time, and his are {:.1} and {:.1} % of all nodes. From {few} to \
         {many} nodes his share grows at least {least:.0}-fold under any of the rules; between the rules, on {many} nodes, it differs by a \
         factor of {between:.1}. With {many} nodes he gets more than his share of the stake under {}. What bounds him is the hardware behind each node, and \
         the least stake per node.",
        if pays == DEFENCES.len() { "every rule".into() } else { format!("{pays} of {} rules", DEFENCES.len()) },
        if least > between { "more" } else { "less" },
        shares.join("; "),
        node_share(scale, few),
        node_share(scale, many),
        if beyond.is_empty() { "none".into() } else { beyond.join(", ") },
    );
}

/// How many per cent of all nodes are the attacker's.
fn node_share(scale: &Scale, own: u32) -> f64 {
    100.0 * f64::from(own) / f64::from(own + scale.sybil_nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_do_not_reach_below_zero() {
        let estimate = |mean, margin| Estimate { mean, margin, count: 8 };
        assert_eq!(show(estimate(2.0, 0.5)), "2.00 ± 0.50");
        assert_eq!(show(estimate(0.0, 0.0)), "0");
        assert_eq!(show(estimate(3.0, 0.0)), "3.00");
        assert_eq!(show(estimate(0.0001, 0.0002)), "under 0.001");
        // e^(0.39 / 0.25) is 4.76.
        assert_eq!(show(estimate(0.25, 0.39)), "0.25 (0.053 to 1.19)");
        // The symmetric interval's lower end is nearer to zero than the logarithm's.
        assert_eq!(show(estimate(4.5, 4.0)), "4.50 (0.5 to 10.9)");
    }

    #[test]
    fn what_000_makes_of_a_node_that_never_answers() {
        // H after timeouts every 3 minutes: 0.3, 0.110, 0.058. Every 10 minutes it tends to 0.108.
        assert_eq!(never_answers(&Rule::OF_000, 180).0, Some(3));
        assert_eq!(never_answers(&Rule::OF_000, 600), (None, 0.0));
        let (first, share) = never_answers(&Rule { penalty: 0, ..Rule::OF_000 }, 190);
        assert_eq!(first, Some(1));
        assert!((share - 0.5).abs() < 1e-9, "190 s out, 190 s in: {share}");
        assert_eq!([1, 2, 3, 4, 11, 22, 113].map(ordinal).join(" "), "1st 2nd 3rd 4th 11th 22nd 113th");
    }
}
