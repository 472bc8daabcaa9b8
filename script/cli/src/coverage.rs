//! The table for `docs/generated/proof.md` of the code that tests execute, from what `llvm-cov export` says of each test executable.
//!
//! One export of all executables would not do. An inline function has a record in each of them, in some with no counts at all, and llvm-cov
//! takes the first that it meets. Here a region counts as executed if any executable has executed it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use muster_trace::figures::thousands;
use serde::Deserialize;

use crate::markdown::row;

/// The part of an export that is read.
#[derive(Deserialize)]
struct Export {
    data: Vec<Data>,
}

#[derive(Deserialize)]
struct Data {
    functions: Vec<Function>,
}

#[derive(Deserialize)]
struct Function {
    filenames: Vec<String>,
    /// First line and column, last line and column, count, index of the file, index of the file it expands to, and kind.
    regions: Vec<[u64; 8]>,
}

/// The kind of a region that is code, not a gap or the place of a macro.
const CODE: u64 = 0;

/// Where a region begins and ends: lines and columns.
type Place = [u64; 4];

/// Regions by file, and whether they were executed.
#[derive(Default)]
struct Files(BTreeMap<String, BTreeMap<Place, bool>>);

impl Files {
    /// Adds what one executable says of the files below `contracts`.
    fn add(&mut self, contracts: &Path, export: &str) -> Result<()> {
        let export: Export = serde_json::from_str(export)?;
        for Function { filenames, regions } in export.data.into_iter().flat_map(|data| data.functions) {
            for [line, column, last_line, last_column, count, file, _, kind] in regions {
                let file = filenames.get(file as usize).context("a region of no file")?;
                let Ok(file) = Path::new(file).strip_prefix(contracts) else { continue };
                let file = file.to_string_lossy();
                if kind == CODE && file.contains("/src/") && file != TESTS_HOST {
                    let executed = self.0.entry(file.into()).or_default();
                    *executed.entry([line, column, last_line, last_column]).or_default() |= count > 0;
                }
            }
        }
        Ok(())
    }

    fn rows(&self) -> String {
        let mut rows = String::new();
        let mut all = [0; 2];
        for (file, regions) in &self.0 {
            let executed = regions.values().filter(|executed| **executed).count();
            all[0] += regions.len();
            all[1] += executed;
            let left: BTreeSet<u64> = regions.iter().filter(|(_, executed)| !**executed).map(|(place, _)| place[0]).collect();
            let left: Vec<_> = left.iter().map(u64::to_string).collect();
            rows += &row(&[
                &format!("`{file}`"),
                &thousands(regions.len() as u64),
                &share(executed, regions.len()),
                &left.join(", "),
            ]);
        }
        rows + &row(&["together", &thousands(all[0] as u64), &share(all[1], all[0]), ""])
    }
}

/// The host of tests and the simulator, which is no contract's code.
const TESTS_HOST: &str = "protocol/src/host/native.rs";

/// In percent, never rounded up to all of it.
fn share(executed: usize, of: usize) -> String {
    format!("{:.1} %", (1000 * executed / of.max(1)) as f64 / 10.0)
}

/// Rows of the contracts' files, from the exports in `folder`: regions (expressions and branches), the share of them that tests execute, and
/// the lines where the others begin.
///
/// # Errors
/// When there is none, or one is not what llvm-cov writes.
pub(crate) fn rows(root: &Path, folder: &Path) -> Result<String> {
    let contracts = root.join("contracts").canonicalize()?;
    let mut files = Files::default();
    for export in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let export = export?.path();
        let text = fs::read_to_string(&export).with_context(|| export.display().to_string())?;
        files.add(&contracts, &text).with_context(|| export.display().to_string())?;
    }
    anyhow::ensure!(!files.0.is_empty(), "{}: no exports of the contracts' code", folder.display());
    Ok(files.rows())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An export of one function with regions of two files, as `(line, count, kind)`.
    fn export(files: [&Path; 2], regions: [&[(u64, u64, u64)]; 2]) -> String {
        let regions: Vec<_> = (0..2)
            .flat_map(|file| {
                regions[file].iter().map(move |&(line, count, kind)| [line, 5, line, 9, count, file as u64, 0, kind])
            })
            .collect();
        serde_json::json!({ "data": [{ "functions": [{ "filenames": files, "regions": regions }] }] }).to_string()
    }

    #[test]
    fn a_region_is_executed_if_one_executable_has_executed_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let exports = root.join("exports");
        fs::create_dir_all(root.join("contracts")).unwrap();
        fs::create_dir_all(&exports).unwrap();
        assert!(format!("{:#}", rows(&root, &exports).unwrap_err()).contains("no exports"));

        let files = [&*root.join("contracts/core/src/a.rs"), &*root.join("test/b.rs")];
        fs::write(exports.join("1"), export(files, [&[(1, 0, 0), (2, 3, 0), (4, 0, 3)], &[(7, 0, 0)]])).unwrap();
        fs::write(exports.join("2"), export(files, [&[(1, 1, 0), (3, 0, 0)], &[]])).unwrap();
        assert_eq!(rows(&root, &exports).unwrap(), "| `core/src/a.rs` | 3 | 66.6 % | 3 |\n| together | 3 | 66.6 % |  |\n");
    }

    #[test]
    fn a_share_is_not_rounded_up() {
        assert_eq!(share(9_999, 10_000), "99.9 %");
    }
}
