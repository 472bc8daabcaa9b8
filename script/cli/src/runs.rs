//! Tables of long runs for `docs/generated/proof.md`, from `test/runs.jsonl`, to which `script/fresh`, `script/fuzz` and
//! `script/test --under-load` add lines.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use muster_trace::figures::thousands;
use serde::Deserialize;

use crate::markdown::row;

/// A run that has ended, or several of the same. A figure that it does not count is 0.
#[derive(Default, Deserialize)]
struct Run {
    /// `fresh`, `fuzz` or `load`.
    what: String,
    /// A stream, a target, or what ran under load.
    of: String,
    /// `YYYY-MM-DD`.
    date: String,
    /// Operations compared with the model.
    #[serde(default)]
    operations: u64,
    /// Seeds that they were made from.
    #[serde(default)]
    seeds: u64,
    /// Inputs that a target executed.
    #[serde(default)]
    executions: u64,
    /// Edges of the code that they reached together.
    #[serde(default)]
    edges: u64,
    /// Runs under load.
    #[serde(default)]
    runs: u64,
    /// Seconds of all its processes, added up.
    seconds: u64,
    /// Processes that ended by a failure, or runs under load that failed.
    found: u64,
}

/// Rows of the runs of one kind by what they ran, added up; edges are the most that one of them reached. `shown` gives a row's first cells.
fn rows(lines: &str, what: &str, shown: impl Fn(&str, &Run) -> [String; 3]) -> Result<String> {
    let mut sums = BTreeMap::<String, Run>::new();
    for line in lines.lines() {
        let run: Run = serde_json::from_str(line).with_context(|| format!("test/runs.jsonl: {line}"))?;
        if run.what != what {
            continue;
        }
        let sum = sums.entry(run.of).or_default();
        sum.operations += run.operations;
        sum.seeds += run.seeds;
        sum.executions += run.executions;
        sum.edges = sum.edges.max(run.edges);
        sum.runs += run.runs;
        sum.seconds += run.seconds;
        sum.found += run.found;
        sum.date = std::mem::take(&mut sum.date).max(run.date);
    }
    if sums.is_empty() {
        return Ok(row(&["none on record", "", "", "", "", ""]));
    }
    let rows = sums.iter().map(|(name, run)| {
        let [name, first, second] = shown(name, run);
        row(&[&name, &first, &second, &format!("{:.1}", run.seconds as f64 / 3600.0), &run.found.to_string(), &run.date])
    });
    Ok(rows.collect())
}

/// Rows of random operations on seeds that nobody had run.
pub(crate) fn fresh(lines: &str) -> Result<String> {
    rows(lines, "fresh", |name, run| [name.into(), thousands(run.operations), thousands(run.seeds)])
}

/// Rows of fuzzing by coverage.
pub(crate) fn fuzzed(lines: &str) -> Result<String> {
    rows(lines, "fuzz", |name, run| [format!("`{name}`"), thousands(run.executions), thousands(run.edges)])
}

/// Rows of the tests that wait for something, beside busy loops.
pub(crate) fn loaded(lines: &str) -> Result<String> {
    rows(lines, "load", |name, run| {
        [name.into(), thousands(run.runs), format!("{:.1}", run.seconds as f64 / 60.0 / run.runs.max(1) as f64)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = r#"{"what": "fresh", "of": "wide", "date": "2026-11-27", "commit": "a", "operations": 4000, "seeds": 1, "seconds": 360, "found": 0}
{"what": "fuzz", "of": "rpc", "date": "2026-11-27", "commit": "a", "executions": 1000, "edges": 90, "seconds": 1800, "found": 0}
{"what": "fresh", "of": "wide", "date": "2026-11-26", "commit": "b", "operations": 8000, "seeds": 2, "seconds": 720, "found": 1}
{"what": "fuzz", "of": "rpc", "date": "2026-11-28", "commit": "b", "executions": 500, "edges": 80, "seconds": 1800, "found": 0}
{"what": "load", "of": "clients", "date": "2026-11-28", "commit": "b", "runs": 1, "seconds": 900, "found": 0}
{"what": "load", "of": "clients", "date": "2026-11-28", "commit": "b", "runs": 1, "seconds": 540, "found": 1}
"#;

    #[test]
    fn runs_of_one_kind_are_added_up() {
        assert_eq!(fresh(LINES).unwrap(), "| wide | 12,000 | 3 | 0.3 | 1 | 2026-11-27 |\n");
        assert_eq!(fuzzed(LINES).unwrap(), "| `rpc` | 1,500 | 90 | 1.0 | 0 | 2026-11-28 |\n");
        assert_eq!(loaded(LINES).unwrap(), "| clients | 2 | 12.0 | 0.4 | 1 | 2026-11-28 |\n");
    }

    #[test]
    fn a_bent_line_is_named() {
        let error = fresh("{\"what\": \"fresh\"}").unwrap_err();
        assert!(format!("{error:#}").contains("test/runs.jsonl: {\"what\": \"fresh\"}"), "{error:#}");
    }
}
