//! Tables of long runs for `docs/generated/proof.md`, from `test/runs.jsonl`, to which `script/fresh`, `script/fuzz` and
//! `script/test --under-load` add lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

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
    /// The commit that was run, with `-dirty` behind it if there were changes beside it.
    commit: String,
    /// Operations compared with the model.
    #[serde(default)]
    operations: u64,
    /// Seeds that they were made from.
    #[serde(default)]
    seeds: u64,
    /// Inputs that a target executed.
    #[serde(default)]
    executions: u64,
    /// Of either, those of the contracts as they are.
    #[serde(skip)]
    current: u64,
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

/// The runs of one kind by what they ran, added up; edges are the most that one of them reached. Those of a commit in `now` are `current`.
fn sums(lines: &str, what: &str, now: &dyn Fn(&str) -> bool) -> Result<BTreeMap<String, Run>> {
    let mut sums = BTreeMap::<String, Run>::new();
    for line in lines.lines() {
        let run: Run = serde_json::from_str(line).with_context(|| format!("test/runs.jsonl: {line}"))?;
        if run.what != what {
            continue;
        }
        let sum = sums.entry(run.of).or_default();
        if now(&run.commit) {
            sum.current += run.operations + run.executions;
        }
        sum.operations += run.operations;
        sum.seeds += run.seeds;
        sum.executions += run.executions;
        sum.edges = sum.edges.max(run.edges);
        sum.runs += run.runs;
        sum.seconds += run.seconds;
        sum.found += run.found;
        sum.date = std::mem::take(&mut sum.date).max(run.date);
    }
    Ok(sums)
}

/// A row of these cells, and of its hours, findings and last day.
fn rows(sums: BTreeMap<String, Run>, cells: impl Fn(&str, &Run) -> Vec<String>) -> String {
    if sums.is_empty() {
        return row(&["none on record"]);
    }
    let rows = sums.iter().map(|(name, run)| {
        let last = [format!("{:.1}", run.seconds as f64 / 3600.0), run.found.to_string(), run.date.clone()];
        let cells = [cells(name, run), last.into()].concat();
        row(&cells.iter().map(String::as_str).collect::<Vec<_>>())
    });
    rows.collect()
}

/// Whether a commit has the contracts as they are: compiled, they are the same byte for byte, whatever comments say. None has that is not
/// known here, or had changes beside it.
pub(crate) fn has_contracts(root: &Path) -> impl Fn(&str) -> bool + '_ {
    move |commit| {
        let mut git = Command::new("git");
        git.current_dir(root).args(["diff", "--quiet", commit, "--", "abi/programs/*.deploy"]).stderr(Stdio::null());
        git.status().is_ok_and(|status| status.success())
    }
}

/// Rows of random operations on seeds that nobody had run.
pub(crate) fn fresh(lines: &str, now: &dyn Fn(&str) -> bool) -> Result<String> {
    let cells =
        |name: &str, run: &Run| vec![name.into(), thousands(run.operations), thousands(run.current), thousands(run.seeds)];
    Ok(rows(sums(lines, "fresh", now)?, cells))
}

/// Rows of fuzzing by coverage.
pub(crate) fn fuzzed(lines: &str, now: &dyn Fn(&str) -> bool) -> Result<String> {
    let cells = |name: &str, run: &Run| {
        vec![format!("`{name}`"), thousands(run.executions), thousands(run.current), thousands(run.edges)]
    };
    Ok(rows(sums(lines, "fuzz", now)?, cells))
}

/// Rows of what the fuzzer found, and is kept as an input that tests play: the files `found-WHAT` of `corpus`.
pub(crate) fn found(corpus: &Path) -> Result<String> {
    let mut rows = BTreeSet::new();
    for target in fs::read_dir(corpus).with_context(|| corpus.display().to_string())? {
        let target = target?;
        for file in fs::read_dir(target.path())? {
            let name = file?.file_name().to_string_lossy().into_owned();
            if let Some(what) = name.strip_prefix("found-") {
                rows.insert(row(&[&format!("`{}`", target.file_name().to_string_lossy()), &what.replace('-', " ")]));
            }
        }
    }
    Ok(rows.into_iter().collect())
}

/// Rows of the tests that wait for something, beside busy loops.
pub(crate) fn loaded(lines: &str) -> Result<String> {
    let minutes = |run: &Run| format!("{:.1}", run.seconds as f64 / 60.0 / run.runs.max(1) as f64);
    Ok(rows(sums(lines, "load", &|_| false)?, |name, run| vec![name.into(), thousands(run.runs), minutes(run)]))
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
        let now = |commit: &str| commit == "b";
        assert_eq!(fresh(LINES, &now).unwrap(), "| wide | 12,000 | 8,000 | 3 | 0.3 | 1 | 2026-11-27 |\n");
        assert_eq!(fuzzed(LINES, &now).unwrap(), "| `rpc` | 1,500 | 500 | 90 | 1.0 | 0 | 2026-11-28 |\n");
        assert_eq!(loaded(LINES).unwrap(), "| clients | 2 | 12.0 | 0.4 | 1 | 2026-11-28 |\n");
    }

    #[test]
    fn findings_are_those_that_are_kept() {
        let corpus = tempfile::tempdir().unwrap();
        for file in ["wasm/found-no-end", "wasm/5a5a", "lines/found-a-b"] {
            let file = corpus.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        assert_eq!(found(corpus.path()).unwrap(), "| `lines` | a b |\n| `wasm` | no end |\n");
    }

    #[test]
    fn a_bent_line_is_named() {
        let error = fresh("{\"what\": \"fresh\"}", &|_| true).unwrap_err();
        assert!(format!("{error:#}").contains("test/runs.jsonl: {\"what\": \"fresh\"}"), "{error:#}");
    }
}
