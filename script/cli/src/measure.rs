//! Compiles the programs with one setting after another changed, so that the choice in [`Settings::default`] rests
//! on figures: docs/research/build.md keeps the table.

use std::path::Path;

use anyhow::{Context, Result};

use crate::build::{Program, Settings, Toolchain};

/// One line of the table: the change from the default, and its result, or why there is none.
pub struct Row {
    /// The change from the default.
    pub change: String,
    /// The programs, or why they were refused.
    pub programs: Result<Vec<Program>>,
}

/// Every setting tried.
pub fn variants() -> Vec<(String, Settings)> {
    let change = |name: &str, edit: &dyn Fn(&mut Settings)| {
        let mut settings = Settings::default();
        edit(&mut settings);
        (name.to_string(), settings)
    };
    let level = |level: &str, panic: &str| {
        change(&format!("opt-level {level}, panic={panic}"), &|settings| {
            settings.opt_level = Some(level.into());
            settings.panic = panic.into();
        })
    };
    let optimise = |passes: &[&str]| {
        let name = if passes.is_empty() { "no wasm-opt".into() } else { format!("wasm-opt {}", passes.join(" ")) };
        change(&name, &|settings| settings.wasm_opt = passes.iter().map(ToString::to_string).collect())
    };
    let core = |level: &str| change(&format!("core at {level}"), &|settings| settings.core_level = Some(level.into()));
    let extra = |flag: &str| change(flag, &|settings| settings.extra.push(flag.into()));
    vec![
        ("the default".into(), Settings::default()),
        level("3", "immediate-abort"),
        level("3", "abort"),
        level("2", "immediate-abort"),
        level("s", "immediate-abort"),
        level("s", "abort"),
        level("z", "immediate-abort"),
        level("z", "abort"),
        core("z"),
        core("s"),
        core("3"),
        change("stack 1 MiB (rustc's default)", &|settings| settings.stack = 1 << 20),
        change("stack 64 KiB", &|settings| settings.stack = 1 << 16),
        change("stack 16 KiB", &|settings| settings.stack = 1 << 14),
        change("stack 8 KiB", &|settings| settings.stack = 1 << 13),
        change("no bulk memory", &|settings| settings.features = "+sign-ext,+mutable-globals".into()),
        change("no sign extension", &|settings| settings.features = "+bulk-memory,+mutable-globals".into()),
        extra("-Zlocation-detail=none"),
        extra("-Zfmt-debug=none"),
        extra("-Cllvm-args=-inline-threshold=25"),
        extra("-Cllvm-args=-inline-threshold=0"),
        optimise(&[]),
        optimise(&["-O4"]),
        optimise(&["-Oz"]),
        optimise(&["-O3"]),
    ]
}

/// The setting of a name.
///
/// # Errors
/// When none has it; says which there are.
pub fn variant(name: &str) -> Result<Settings> {
    variants().into_iter().find(|(other, _)| other == name).map(|(_, settings)| settings).with_context(|| {
        let names: Vec<_> = variants().into_iter().map(|(name, _)| name).collect();
        format!("no setting is called {name:?}; there are: {}", names.join("; "))
    })
}

/// Compiles with each whose name contains `which`; all of them take many minutes. `report` is told the name of each compilation.
///
/// # Errors
/// When the project is not set up; a setting that fails is a row of its own.
pub fn measure(root: &Path, only: &[String], which: &str, mut report: impl FnMut(&str)) -> Result<(String, Vec<Row>)> {
    let toolchain = Toolchain::load(root)?;
    let version = toolchain.version()?;
    let rows = variants()
        .into_iter()
        .filter(|(change, _)| change.contains(which))
        .map(|(change, settings)| {
            report(&change);
            Row { programs: toolchain.compile(root, &settings, only), change }
        })
        .collect();
    Ok((version, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_found_by_its_name_alone() {
        for (name, settings) in variants() {
            assert_eq!(variant(&name).unwrap(), settings, "{name}");
        }
        let refused = variant("core").unwrap_err().to_string();
        assert!(refused.starts_with("no setting is called \"core\"; there are: the default; "), "{refused}");
        assert!(refused.contains("core at z; core at s"), "{refused}");
    }
}
