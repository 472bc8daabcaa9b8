//! The mutants, as cargo-mutants lists them.

use std::path::Path;
use std::process::Command;

use anyhow::{ensure, Context, Result};
use serde::Deserialize;

/// A line and a column, in characters, from 1.
#[derive(Deserialize, Clone, Copy)]
pub struct Point {
    pub line: usize,
    pub column: usize,
}

/// A stretch of a source.
#[derive(Deserialize, Clone)]
pub struct Place {
    pub start: Point,
    pub end: Point,
}

/// A change: a stretch of a source that is replaced.
#[derive(Deserialize, Clone)]
pub struct Mutant {
    pub package: String,
    pub file: String,
    pub genre: String,
    pub name: String,
    pub replacement: String,
    pub span: Place,
}

impl Mutant {
    /// Its change, as in `replace + with - in draw`.
    pub fn change(&self) -> &str {
        self.name.splitn(4, ':').nth(3).map_or(&self.name, str::trim)
    }
}

/// Asks cargo-mutants for all mutants of packages.
///
/// # Errors
/// When it does not run.
pub fn of(tree: &Path, packages: &[&str]) -> Result<Vec<Mutant>> {
    let mut command = Command::new("cargo");
    command.current_dir(tree).args(["mutants", "--list", "--json"]);
    for package in packages {
        command.args(["--package", package]);
    }
    let output = command.output().context("cargo does not start")?;
    ensure!(output.status.success(), "cargo mutants: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}
