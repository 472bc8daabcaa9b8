//! The results of the experiments: the page, subject by subject.
//!
//! | module | contents |
//! | --- | --- |
//! | [`figures`] | the pictures, and all figures as a table |
//! | [`summary`] | the conclusions |
//! | [`exclusion`] | the rule of exclusion, and others |
//! | [`policies`] | the same tasks under every policy |
//! | [`validation`] | tasks under policy 1, at several rates |

mod exclusion;
pub mod figures;
mod policies;
mod summary;
mod validation;

use std::fmt::Write;

use super::ledger::LEAST_STAKE;
use super::policy::Merit;
use super::study::{merit_name, Findings, Results, Rule, Scale, ATTACK, CHOICES, DEFENCES, KICKOUT, LOAD, LOADS, MEASURES};
use super::workload::{fleet, Profile};
use super::Options;
use crate::numbers::{self, fixed, number, thousands};
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
        return fixed(e.mean, decimals);
    }
    let (low, high) = e.positive();
    if low == e.low() && high == e.high() {
        return numbers::estimate(e, decimals);
    }
    // The lower end may be much smaller than the rest; it is not zero.
    let (low, high) = (number(low), number(high));
    format!("{} ({low} to {high})", fixed(e.mean, decimals))
}

fn signed(e: Estimate) -> String {
    numbers::signed(e, 2)
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
        thousands(rule.tau)
    )
}

/// The share of all stake that the attacker holds, as a mean over the fleets of the seeds.
fn stake_share(scale: &Scale, seed: u64) -> f64 {
    let profile = Profile { nodes: scale.sybil_nodes, mix: [0; 7], churn: false, ..Profile::default() };
    let shares = (0..scale.sybil_seeds).map(|i| {
        let honest: u64 = fleet(&profile, seed + i).iter().map(|node| node.stake).sum();
        let own = ATTACK * LEAST_STAKE;
        100.0 * own as f64 / (own + honest) as f64
    });
    shares.sum::<f64>() / scale.sybil_seeds as f64
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
    let mut page = String::new();
    introduction(&mut page, options);
    page.push_str("## What to take from it\n\n");
    summary::write(&mut page, found, options);
    load(&mut page, &found.results);
    choosing(&mut page, &found.results);
    reliability(&mut page, &found.results);
    exclusion::write(&mut page, found, &options.scale);
    policies::write(&mut page, found, &options.scale);
    validation::write(&mut page, found, &options.scale);
    kickouts(&mut page, found, options);
    sybil(&mut page, found, options);
    page
}

fn introduction(page: &mut String, options: &Options) {
    let scale = &options.scale;
    let _ = write!(
        page,
        "# A network under the QoS and the dispatch document\n\n[All pages](../README.md)\n\n\
         <!-- Generated by `script/sim network`; changes belong into sim/src/network. -->\n\n\
         Nodes, applications, queue and quality of service, event by event, on the very code that runs on chain \
         (`contracts/protocol`). [simulator-engine.md](simulator-engine.md) says what is simulated, and describes the nodes and tasks. Made \
         by\n\n```\nscript/sim network{}{}\n```\n\n\
         {} nodes and {} tasks in each run, {} seeds, unless said otherwise; all figures are in \
         [figures/network.csv](figures/network.csv). ± is a 95 % confidence interval over seeds (Student's t). Incomes, rank correlations and \
         differences can be negative, other quantities cannot: where their interval would come near zero, the ends of the interval of its logarithm stand in brackets. Differences are \
         taken seed by seed, and their intervals hold for all differences of the same section together (Bonferroni). \
         One task in ten is given to three nodes at once, but for where policies are compared. \"Failed\" are tasks that were started and came to nothing: timed out, \
         were reported as impossible, or had no two answers alike. Income is fees per hour in the network.\n\n",
        if scale.quick { " --quick" } else { "" },
        if options.seed == 1 { String::new() } else { format!(" --seed {}", options.seed) },
        thousands(scale.nodes.into()),
        thousands(scale.tasks),
        scale.seeds,
    );
}

/// By the work that is asked for.
fn load(page: &mut String, results: &Results) {
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
}

/// By the quantity that a candidate's chance is proportional to.
fn choosing(page: &mut String, results: &Results) {
    let usual = contract(LOAD);
    let _ = write!(
        page,
        "\n## Ways of choosing\n\n\
         All ways have the same candidates, queue, H and locality boost M. They differ in the quantity that a candidate's chance is \
         proportional to, apart from M. \"W (exact)\" is the contract's own weight, chosen by adding up instead of the contract's bounded \
         search and \
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
}

/// With H and without.
fn reliability(page: &mut String, results: &Results) {
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
            show(results.get(&on, "failed")),
            show(results.get(&off, "failed")),
            less("failed"),
            show(results.get(&on, "wait95")),
            show(results.get(&off, "wait95")),
            less("wait95"),
        ]);
    }
    page.push_str(&table.0);
}

fn kickouts(page: &mut String, found: &Findings, options: &Options) {
    let scale = &options.scale;
    let _ = write!(
        page,
        "\n## Kickouts and slashing\n\n{} nodes and {} tasks: as \
         long as it takes for score pools to fill. Nobody joins late or leaves.\n\n",
        thousands(u64::from(scale.nodes / 2)),
        thousands(scale.long_tasks)
    );
    let (_, limit) = KICKOUT;
    let columns = [
        ("by default".to_string(), "long"),
        (format!("kickout below {}", limit as f64 / 1e3), "long-kickout"),
        ("without H".to_string(), "long-without-h"),
    ]
    .map(|(a, b)| (a, b.to_string()));
    page.push_str(&compare(
        &found.results,
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
        "\nOf the {} nodes {bad:.1} are bad on average: dead, broken or cheats. By default images slash nobody \
         (`slashImages` 0): here only wrong and withheld answers to GPT tasks do.\n",
        thousands(u64::from(scale.nodes / 2))
    );
}

fn sybil(page: &mut String, found: &Findings, options: &Options) {
    let scale = &options.scale;
    let _ = write!(
        page,
        "\n## Sybil attacks\n\n\
         {} steady nodes have stakes of 1 to 100 times the least. An attacker has {} times the least stake, {:.1} % of all \
         stake, and splits it over 1 to {} nodes, each with hardware of its own. {} tasks, load {} of the honest nodes, {} seeds. \
         \"Linear\" takes the stake itself instead of its square root.\n\n\
         ![The attacker's share by the number of nodes](figures/network-sybil.svg)\n\n",
        thousands(scale.sybil_nodes.into()),
        thousands(ATTACK),
        stake_share(scale, options.seed),
        thousands(scale.splits[scale.splits.len() - 1].into()),
        thousands(scale.sybil_tasks),
        0.3,
        scale.sybil_seeds,
    );
    let headings: Vec<String> = std::iter::once("starts that the attacker gets (%)".to_string())
        .chain(scale.splits.iter().map(|n| thousands(u64::from(*n))))
        .collect();
    let mut table = Table::new(&headings);
    let mut cells = vec!["(their share of all nodes)".to_string()];
    cells.extend(scale.splits.iter().map(|&n| number(node_share(scale, n))));
    table.row(&cells);
    for merit in DEFENCES {
        let mut cells = vec![merit_name(merit).to_string()];
        cells.extend(scale.splits.iter().map(|&n| show(found.results.get(&attack(merit, n), "share-sybil"))));
        table.row(&cells);
    }
    page.push_str(&table.0);
    page.push_str(
        "\nA single node can't do more than one task at a time, which bounds the attacker's share on the left whatever their stake. \
         On the right, 1,000 nodes are the most that the attacker's stake allows.\n",
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
}
