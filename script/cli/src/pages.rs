//! Pages of the documentation that are written from the sources: what they share.

use std::{fs, path::Path};

use anyhow::{ensure, Context, Result};

use crate::{parameters, refusals, storage};

/// Lines of Solidity with the text of the `///` comment right above each, in order. Comments are joined to one line.
pub(crate) fn documented(solidity: &str) -> Vec<(String, &str)> {
    let mut comment = Vec::new();
    let mut lines = Vec::new();
    for line in solidity.lines().map(str::trim) {
        match line.strip_prefix("///") {
            Some(text) => comment.push(text.trim()),
            None => lines.push((std::mem::take(&mut comment).join(" "), line)),
        }
    }
    lines
}

/// A row of a Markdown table.
pub(crate) fn row(cells: &[&str]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// Writes `docs/generated/refusals.md`, `docs/generated/storage.md`, the table of `docs/parameters.md`, and the lists of parameters under
/// `abi/`, or with `check` only compares.
///
/// # Errors
/// When a source cannot be read or lacks a comment, and with `check` when a file differs.
pub fn run(root: &Path, check: bool) -> Result<()> {
    let pages = [
        ("docs/generated/refusals.md", refusals::page(root)?),
        ("docs/generated/storage.md", storage::page(root)?),
        ("docs/parameters.md", parameters::page(root)?),
        ("abi/parameters.json", parameters::json()),
        ("abi/parameters.ts", parameters::typescript()),
    ];
    for (name, page) in pages {
        let file = root.join(name);
        if check {
            let same = fs::read_to_string(&file).is_ok_and(|text| text == page);
            ensure!(same, "{name} does not belong to the sources: run script/abi and commit the result");
        } else {
            fs::write(&file, page).with_context(|| file.display().to_string())?;
        }
    }
    Ok(())
}
