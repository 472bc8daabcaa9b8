//! Pages of the documentation that are written from the sources.

use std::{fs, path::Path};

use anyhow::{ensure, Context, Result};

use crate::{parameters, refusals, storage};

/// Writes `docs/generated/refusals.md`, `docs/generated/storage.md`, the table of `docs/parameters.md`, and the lists of errors and parameters
/// under `abi/`, or with `check` only compares.
///
/// # Errors
/// When a source cannot be read or lacks a comment, and with `check` when a file differs.
pub fn run(root: &Path, check: bool) -> Result<()> {
    let pages = [
        ("docs/generated/refusals.md", refusals::page(root)?),
        ("abi/refusals.json", refusals::json(root)?),
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
