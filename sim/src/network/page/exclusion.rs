//! The rule of exclusion: its effects, and those of others.

use std::fmt::Write;

use muster_core::qos::{exclusion_seconds, penalise, recover};
use muster_core::wad::WAD;

use super::{contract, rule_text, share, show, title, Table};
use crate::network::study::{scenarios, Findings, Rule, Scale, CLOSE, LOAD, SLOWER, STEADY_OUT};
use crate::numbers::thousands;

/// The effect of a rule on a node that never answers and gets its next task as soon as it is back. Returns the first timeout
/// that excludes it, and the share of its time that it is excluded in the long run.
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

pub(super) fn write(page: &mut String, found: &Findings, scale: &Scale) {
    usual(page, found, scale);
    candidates(page, found, scale);
    formula(page, found);
    let what: Vec<String> = scenarios(scale).iter().map(|(name, what, _)| format!("- *{name}*: {what}")).collect();
    let _ = write!(page, "\nCircumstances:\n\n{}\n", what.join("\n"));
}

/// The default rule and those it is compared with.
fn rules(found: &Findings) -> impl Iterator<Item = &Rule> {
    std::iter::once(&Rule::DEFAULT).chain(&found.finalists)
}

/// The effects of the default rule, and of other ones.
fn usual(page: &mut String, found: &Findings, scale: &Scale) {
    let results = &found.results;
    let usual = contract(LOAD);
    let _ = write!(
        page,
        "\n## The rule of exclusion\n\n\
         The default rule, that of the QoS document, excludes a node while H < 0.1. H is back there within {} s even from 0. From the 0.09 that two \
         timeouts at the same moment leave, it takes {} s at most. Timeouts that lie further apart leave more, and often exclude nobody. Measured at load {}: {} exclusions per 1,000 starts, median {} s, \
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
        list(grid.tau, &thousands),
        thousands(scale.grid_tasks),
        scale.grid_seeds,
    );
}

/// The best rules in every scenario: the harm they prevent, their cost, and the nodes that they exclude.
fn candidates(page: &mut String, found: &Findings, scale: &Scale) {
    let results = &found.results;
    let _ = write!(
        page,
        "A candidate must not exclude steady nodes for more than {STEADY_OUT} % of their time, nor (clearly) lengthen the 95th percentile \
         of waiting by more than a factor of {SLOWER}, or one second. Of the others, those with the fewest failed tasks were run again, with \
         {} other seeds, in other circumstances. Of those within \
         {:.0} % of the fewest failed tasks in all circumstances together, the recommended one changes the fewest parameters, and of equals \
         it excludes steady nodes least. Failed tasks (%):\n\n",
        scale.seeds,
        100.0 * (CLOSE - 1.0),
    );
    let scenarios = scenarios(scale);
    let mut headings = vec!["rule".to_string()];
    headings.extend(scenarios.iter().map(|(name, ..)| name.to_string()));
    let mut table = Table::new(&headings);
    for rule in rules(found) {
        let mut cells = vec![rule_text(rule)];
        cells.extend(scenarios.iter().map(|(name, ..)| show(results.get(&rule.name(name), "failed"))));
        table.row(&cells);
    }
    page.push_str(&table.0);
    page.push_str("\nThe first row is the default rule. The cost of each, as the 95th percentile of waiting (s), and the time steady nodes are excluded (%):\n\n");
    let mut table = Table::new(&headings);
    for rule in rules(found) {
        let mut cells = vec![rule_text(rule)];
        cells.extend(scenarios.iter().map(|(name, ..)| {
            let (wait, out) = (results.get(&rule.name(name), "wait95"), results.get(&rule.name(name), "out-steady"));
            format!("{} s, {:.2} %", show(wait), out.mean)
        }));
        table.row(&cells);
    }
    page.push_str(&table.0);
    page.push_str("\nTheir exclusions in *usual*:\n\n");
    let measures = ["exclusions", "exclusion50", "exclusion-max", "out-flaky", "out-dead", "out-broken"];
    let headings: Vec<String> = std::iter::once("rule").chain(measures.iter().map(|id| title(id))).map(String::from).collect();
    let mut table = Table::new(&headings);
    for rule in rules(found) {
        let mut cells = vec![rule_text(rule)];
        cells.extend(measures.iter().map(|id| show(results.get(&rule.name("usual"), id))));
        table.row(&cells);
    }
    page.push_str(&table.0);
}

fn formula(page: &mut String, found: &Findings) {
    page.push_str(
        "\nBy the formula alone: a node never answers, gets its next task as soon as it can, and times out 3 or 10 \
         minutes later, again and again:\n\n",
    );
    let mut table = Table::new(
        &["rule", "longest exclusion (s)", "3 minutes: excluded from", "of the time", "10 minutes: excluded from", "of the time"]
            .map(String::from),
    );
    for rule in rules(found) {
        let mut cells = vec![rule_text(rule), thousands(exclusion_seconds(0, rule.threshold as u32, rule.tau as u32))];
        for seconds in [180, 600] {
            let (first, share) = never_answers(rule, seconds);
            cells.push(first.map_or("never".into(), |n| format!("{} timeout", ordinal(n))));
            cells.push(format!("{:.0} %", 100.0 * share));
        }
        table.row(&cells);
    }
    page.push_str(&table.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_default_rule_makes_of_a_node_that_never_answers() {
        // H after timeouts every 3 minutes: 0.3, 0.110, 0.058. Every 10 minutes it tends to 0.108.
        assert_eq!(never_answers(&Rule::DEFAULT, 180).0, Some(3));
        assert_eq!(never_answers(&Rule::DEFAULT, 600), (None, 0.0));
        let (first, share) = never_answers(&Rule { penalty: 0, ..Rule::DEFAULT }, 190);
        assert_eq!(first, Some(1));
        assert!((share - 0.5).abs() < 1e-9, "190 s out, 190 s in: {share}");
        assert_eq!([1, 2, 3, 4, 11, 22, 113].map(ordinal).join(" "), "1st 2nd 3rd 4th 11th 22nd 113th");
    }
}
