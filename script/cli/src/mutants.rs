//! The page's section on mutants, from `test/mutants.jsonl`, which `script/mutants` writes.

use std::{fs, path::Path, process::Command};

use anyhow::{ensure, Context, Result};
use muster_trace::figures::thousands;
use serde::{Deserialize, Serialize};

use crate::markdown::row;

/// A line of the file: a source, or changes of it that survive.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Survivor(Survivor),
    File(File),
}

/// Changes of a line that no test notices.
#[derive(Serialize, Deserialize, Clone)]
pub struct Survivor {
    /// The source, from the root.
    pub file: String,
    /// As in `replace + with - in draw`.
    pub change: String,
    /// The line's text.
    pub line: String,
    /// Changes of this kind in such lines.
    pub times: usize,
    /// Whether all tests of the reference model were tried, too.
    pub model: bool,
    /// Why it changes nothing, written by hand.
    pub reason: String,
}

/// How many changes of a source had which fate.
#[derive(Serialize, Deserialize, Clone, Default)]
pub struct File {
    /// The source, from the root.
    pub file: String,
    /// Its content's name in git.
    pub source: String,
    /// Of the run: `YYYY-MM-DD`.
    pub date: String,
    /// All that compile, or were not tried.
    pub changes: usize,
    /// A test of its package fails.
    pub noticed: usize,
    /// A test does not end.
    pub endless: usize,
    /// Only a test of the reference model fails.
    pub model: usize,
    /// No test fails.
    pub survive: usize,
    /// Not noticed by the package's tests, and not tried with all of the model's.
    pub open: usize,
    /// Not tried.
    pub left: usize,
    /// Those that do not compile.
    pub uncompiled: usize,
}

/// The committed lines, from the root.
///
/// # Errors
/// When a line cannot be read.
pub fn read(root: &Path) -> Result<(Vec<File>, Vec<Survivor>)> {
    let text = fs::read_to_string(root.join("test/mutants.jsonl")).context("test/mutants.jsonl")?;
    let (mut files, mut survivors) = (Vec::new(), Vec::new());
    for line in text.lines() {
        match serde_json::from_str(line).with_context(|| line.to_string())? {
            Line::File(file) => files.push(file),
            Line::Survivor(survivor) => survivors.push(survivor),
        }
    }
    Ok((files, survivors))
}

/// The name in git of what a file contains now; nothing for one that is gone.
///
/// # Errors
/// When git does not run.
pub fn content(root: &Path, file: &str) -> Result<String> {
    let output = Command::new("git").current_dir(root).args(["hash-object", file]).output().context("git")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_string())
}

/// The section.
///
/// # Errors
/// When the file cannot be read.
pub fn section(root: &Path) -> Result<String> {
    let (files, survivors) = read(root)?;
    let mut page = HEAD.to_string();
    for file in &files {
        let when =
            if file.source == content(root, &file.file)? { file.date.clone() } else { format!("{}, changed since", file.date) };
        page += &counts(&format!("`{}`", short(&file.file)), &[file], &when);
    }
    page += &counts("together", &files.iter().collect::<Vec<_>>(), "");
    let uncompiled: usize = files.iter().map(|file| file.uncompiled).sum();
    page += &format!("\nNot counted, because they do not compile: {}.\n{SURVIVORS}", thousands(uncompiled as u64));
    for survivor in &survivors {
        let times = if survivor.times == 1 { String::new() } else { format!(", {} times", survivor.times) };
        let reason = if survivor.reason.is_empty() { "not explained" } else { &survivor.reason };
        let model = if survivor.model { "yes" } else { "not all" };
        let line = survivor.line.replace('|', "\\|");
        let change = survivor.change.replace('|', "\\|");
        page +=
            &row(&[&format!("`{}`", short(&survivor.file)), &format!("`{change}`{times}"), &format!("`{line}`"), model, reason]);
    }
    Ok(page)
}

/// A source's path without what all have in common.
fn short(file: &str) -> String {
    file.trim_start_matches("contracts/").replace("/src/", "/")
}

fn counts(name: &str, files: &[&File], when: &str) -> String {
    let of: [fn(&File) -> usize; 7] = [
        |file| file.changes,
        |file| file.noticed,
        |file| file.endless,
        |file| file.model,
        |file| file.survive,
        |file| file.open,
        |file| file.left,
    ];
    let sums = of.map(|of| thousands(files.iter().map(|file| of(file) as u64).sum::<u64>()));
    let cells: Vec<&str> = [name].into_iter().chain(sums.iter().map(String::as_str)).chain([when]).collect();
    row(&cells)
}

/// Writes the section into the page anew, and leaves the rest as it is.
///
/// # Errors
/// When the page cannot be read, or has no such section.
pub fn rewrite(root: &Path) -> Result<()> {
    let path = root.join("docs/generated/proof.md");
    let page = fs::read_to_string(&path)?;
    let begin = page.find("\n## Mutants\n").context("the page has no section on mutants")?;
    let end = page[begin + 1..].find("\n## ").map(|at| begin + 1 + at).context("nothing follows the section on mutants")?;
    let section = section(root)?;
    ensure!(section.starts_with("\n## Mutants\n"), "another section");
    fs::write(&path, format!("{}{section}{}", &page[..begin], &page[end..]))?;
    Ok(())
}

const HEAD: &str = "
## Mutants

cargo-mutants lists small changes of the code, each in one place; a change that no test notices survives. `script/mutants` builds all of them at once, each behind a
switch, and tries each with the tests that come to its switch. Tests of its own package are first. Where none of them notices it, those of `test/model` follow, which
compare random operations with the reference model. A test is stopped after four seconds of a processor, or ten times its time.

Conditions of `ensure!` are written out before, because cargo-mutants does not look into macros; the tables of other macros are not changed. Changes in constants and
constant functions are built one by one, and tried with the package's tests alone. One that the compiler refuses, because it evaluates an assertion, counts as noticed. `chain.rs` and `native.rs` stand for the
chain and are left out. A source that is not in the table has not been tried.

| file | changes | a test of its package notices | a test never ends | only the reference model notices | survive | the package's tests do not notice, the model was not tried to the end | not tried | run |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
";

const SURVIVORS: &str = "
Changes that no test noticed, and why they change no result. Reasons are written by hand. `all of the model` says whether all its tests that reach the change were tried.

| file | change | line | all of the model | why it changes nothing |
| --- | --- | --- | --- | --- |
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build;

    #[test]
    fn the_page_has_the_mutants_that_were_tried() {
        let root = build::root().unwrap();
        // The next run of script/proof says which sources have changed.
        let plain = |text: String| text.replace(", changed since", "");
        let page = plain(fs::read_to_string(root.join("docs/generated/proof.md")).unwrap());
        assert!(
            page.contains(&plain(section(&root).unwrap())),
            "docs/generated/proof.md is old: script/mutants --page writes its section on mutants"
        );
    }
}
