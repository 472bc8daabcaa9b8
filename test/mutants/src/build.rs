//! The tree in which all mutants lie behind switches, and its test executables. Each tree has a target folder of its own: in a shared one,
//! cargo takes the executables of one tree for those of the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{bail, ensure, Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::list::Mutant;
use crate::source::{self, Lines};

/// Where the switches are.
const CORE: &str = "contracts/core/src/lib.rs";

/// A test executable.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq)]
pub struct Executable {
    pub package: String,
    pub name: String,
    pub path: PathBuf,
}

/// The test executables of one build.
pub struct Built {
    pub executables: Vec<Executable>,
    /// Mutants that can be switched on; the others are built alone.
    pub switched: BTreeSet<usize>,
    /// Mutants whose own text the compiler refuses.
    pub refused: BTreeSet<usize>,
}

/// The hash FNV-1a of 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Writes a file unless it is as it is to be: cargo goes by the time of the last change.
fn write(path: &Path, text: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().context("no folder")?)?;
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// Copies the project without what no test of these packages reads. Conditions of `ensure!` are written out; tests that read sources read
/// the project's own. Leaves out files that are written otherwise, and removes those that are gone. Gives the hash of all that the tests
/// are built of.
pub fn copy(root: &Path, tree: &Path, but: &BTreeSet<&str>) -> Result<u64> {
    let listed = Command::new("git").current_dir(root).args(["ls-files", "-coz", "--exclude-standard"]).output()?;
    ensure!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let mut key = 0;
    let names = String::from_utf8(listed.stdout)?;
    let skipped = ["docs/", "clients/explorer/page/", "test/fuzz/corpus/", "test/runs.jsonl", "test/mutants.jsonl"];
    let is_copied = |name: &&str| !skipped.iter().any(|skipped| name.starts_with(skipped)) && root.join(name).is_file();
    let names: BTreeSet<&str> = names.split_terminator('\0').filter(is_copied).collect();
    let list = tree.with_extension("files");
    for gone in fs::read_to_string(&list).unwrap_or_default().lines().filter(|name| !names.contains(name)) {
        let _ = fs::remove_file(tree.join(gone));
    }
    write(&list, names.iter().copied().collect::<Vec<_>>().join("\n").as_bytes())?;
    for name in names {
        let path = root.join(name);
        let mut bytes = fs::read(&path)?;
        if name == "Cargo.toml" {
            let text = String::from_utf8(bytes)?;
            let allowed = "[workspace.lints.rust]\narithmetic_overflow = \"allow\"\nunconditional_panic = \"allow\"\nunused = { level = \"allow\", priority = -1 }\n";
            bytes = text.replace("[workspace.lints.rust]\n", allowed).into_bytes();
        } else if name.starts_with("contracts/") && path.extension().is_some_and(|extension| extension == "rs") {
            let mut text = String::from_utf8(bytes)?;
            if name.starts_with("contracts/protocol/src/") {
                text = source::with_conditions(&text).with_context(|| name.to_string())?;
            }
            bytes = own_sources(&text, path.parent().context("no folder")?).into_bytes();
        }
        let parts = ["Cargo.", "abi/", "contracts/", "devnode/", "rust-toolchain", "test/model/", "test/mutants/"];
        if parts.iter().any(|part| name.starts_with(part)) {
            key = hash(format!("{key} {name} {}", hash(&bytes)).as_bytes());
        }
        if !but.contains(name) {
            write(&tree.join(name), &bytes)?;
        }
    }
    Ok(key)
}

/// Lets `include_str!` of Rust sources include those of the project.
fn own_sources(text: &str, folder: &Path) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("include_str!(\"") {
        out += before;
        let (name, end) = after.split_once('"').unwrap_or((after, ""));
        let is_source = Path::new(name).extension().is_some_and(|extension| extension == "rs");
        let name = if is_source { folder.join(name).display().to_string() } else { name.into() };
        out += &format!("include_str!(\"{name}\"");
        rest = end;
    }
    out + rest
}

/// The hash of all that a result depends on: of the sources, and of the mutants in their order, since switches have their numbers.
pub fn key(sources: u64, mutants: &[Mutant]) -> u64 {
    mutants.iter().fold(sources, |key, mutant| hash(format!("{key} {}", mutant.name).as_bytes()))
}

/// Cargo on a tree, with the messages that it gives.
fn cargo(tree: &Path, packages: &[&str]) -> Result<(bool, Vec<Value>)> {
    let mut command = Command::new("cargo");
    command.current_dir(tree).env("CARGO_TARGET_DIR", tree.join("target")).env("CARGO_INCREMENTAL", "0");
    command.args(["test", "--no-run", "--offline", "--message-format=json", "--quiet", "--lib", "--tests"]);
    for package in packages {
        command.args(["--package", package]);
    }
    let output = command.stderr(Stdio::piped()).output().context("cargo does not start")?;
    let lines = String::from_utf8(output.stdout)?;
    let messages: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if !output.status.success() && errors(&messages).is_empty() {
        bail!("cargo test: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok((output.status.success(), messages))
}

fn errors(messages: &[Value]) -> Vec<&Value> {
    let errors = messages.iter().filter(|message| message["reason"] == "compiler-message").map(|message| &message["message"]);
    errors.filter(|message| message["level"] == "error").collect()
}

fn executables(messages: &[Value]) -> Vec<Executable> {
    let tests = messages.iter().filter(|message| message["profile"]["test"] == true);
    let built = tests.filter_map(|message| {
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.file_name()?.to_str()?;
        Some(Executable {
            package: format!("muster-{folder}"),
            name: message["target"]["name"].as_str()?.into(),
            path: message["executable"].as_str()?.into(),
        })
    });
    let mut built: Vec<_> = built.collect();
    built.sort_by(|a, b| (&a.package, &a.name).cmp(&(&b.package, &b.name)));
    built
}

/// Writes the sources with their switches, builds the tests, and leaves out the mutants that do not compile.
pub fn all(root: &Path, [plain, tree]: [&Path; 2], mutants: &[Mutant], tested: &[&str], key: u64) -> Result<Built> {
    let mut files: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
    files.insert(CORE);
    ensure!(self::key(copy(root, tree, &files)?, mutants) == key, "the sources have just changed");
    let originals: BTreeMap<&str, String> =
        files.iter().map(|file| Ok((*file, fs::read_to_string(plain.join(file))?))).collect::<Result<_>>()?;
    let mut switched: BTreeSet<usize> = (1..=mutants.len()).collect();
    let memory = tree.with_extension("json");
    // Those that did not compile in an earlier build of the same sources.
    let kept: Option<(u64, BTreeSet<usize>, BTreeSet<usize>)> =
        fs::read(&memory).ok().and_then(|kept| serde_json::from_slice(&kept).ok());
    let kept = kept.filter(|(old, ..)| *old == key);
    let (mut uncompiled, mut refused) = kept.map_or_else(Default::default, |(_, uncompiled, refused)| (uncompiled, refused));
    switched.retain(|id| !uncompiled.contains(id));
    for round in 1.. {
        let mut texts = BTreeMap::new();
        for (file, original) in &originals {
            let all = mutants.iter().enumerate().map(|(at, mutant)| (at + 1, mutant));
            let own: Vec<_> = all.filter(|(id, mutant)| mutant.file == *file && switched.contains(id)).collect();
            let on = if file.starts_with("contracts/core/") { "crate::mutants::on" } else { "::muster_core::mutants::on" };
            let made = source::switched(original, &own, on).with_context(|| (*file).to_string())?;
            switched.retain(|id| !made.constant.contains(id) && !made.lost.contains(id));
            if !made.lost.is_empty() {
                eprintln!("mutants: {file}: {} at no place that can be switched", made.lost.len());
            }
            let text = if *file == CORE { made.text + source::SWITCH } else { made.text };
            write(&tree.join(file), text.as_bytes())?;
            texts.insert(*file, text);
        }
        eprintln!("mutants: building {} changes at once", switched.len());
        let (built, messages) = cargo(tree, tested)?;
        if built {
            return Ok(Built { executables: executables(&messages), switched, refused });
        }
        let mut left_out = BTreeSet::new();
        for error in errors(&messages) {
            let (found, own) = blamed(error, &texts);
            // They are the same by themselves; an `impl` would be another type.
            let code = error["code"]["code"].as_str().unwrap_or_default();
            if own && ["E0277", "E0308", "E0368", "E0369", "E0425", "E0433", "E0599", "E0600"].contains(&code) {
                refused.extend(found.iter().filter(|id| !mutants[**id - 1].name.contains("-> impl")));
            }
            if found.is_empty() && error["spans"].as_array().is_some_and(|spans| !spans.is_empty()) {
                eprintln!("mutants: {}", error["rendered"].as_str().unwrap_or_default());
            }
            left_out.extend(found);
        }
        let names: Vec<_> = left_out.iter().map(|id| mutants[id - 1].name.as_str()).collect();
        eprintln!("mutants: round {round}: {} do not compile: {}", left_out.len(), names.join("; "));
        ensure!(!left_out.is_empty(), "the build fails, and not for a mutant");
        switched.retain(|id| !left_out.contains(id));
        uncompiled.extend(left_out);
        fs::write(&memory, serde_json::to_vec(&(key, &uncompiled, &refused))?)?;
    }
    unreachable!("it ends or fails")
}

/// The mutants in whose text an error lies, and whether it is the error's place itself; else the last one before it.
fn blamed(error: &Value, texts: &BTreeMap<&str, String>) -> (BTreeSet<usize>, bool) {
    let Some(spans) = error["spans"].as_array() else { return (BTreeSet::new(), false) };
    let mut found = BTreeSet::new();
    for primary in [true, false] {
        for span in spans.iter().filter(|span| span["is_primary"] == primary) {
            let Some(text) = span["file_name"].as_str().and_then(|file| texts.get(file)) else { continue };
            let at = span["byte_start"].as_u64().unwrap_or_default() as usize;
            let all = alternatives(text);
            found.extend(all.iter().filter(|(_, range)| range.contains(&at)).map(|(id, _)| *id));
        }
        if !found.is_empty() {
            return (found, primary);
        }
    }
    for span in spans {
        let Some(text) = span["file_name"].as_str().and_then(|file| texts.get(file)) else { continue };
        // The last one that begins before it.
        let at = span["byte_start"].as_u64().unwrap_or_default() as usize;
        found.extend(
            alternatives(text)
                .iter()
                .filter(|(_, range)| range.start <= at)
                .max_by_key(|(_, range)| range.start)
                .map(|(id, _)| *id),
        );
    }
    (found, false)
}

/// The mutants' own texts.
fn alternatives(text: &str) -> Vec<(usize, Range<usize>)> {
    let starts = text.match_indices("mutants::on(");
    let found = starts.filter_map(|(at, start)| {
        let id = text[at + start.len()..].split(')').next()?;
        let end = text[at..].find(&format!("/*~{id}*/")).map_or(at + start.len(), |end| at + end);
        Some((id.parse().ok()?, at..end))
    });
    found.collect()
}

/// A package's tests, in the tree without switches.
pub enum Alone {
    Executables(Vec<Executable>),
    /// An assertion that the compiler evaluates fails.
    Refused,
    Fails,
}

/// Builds a package's tests from the sources as they are in a tree.
pub fn package(tree: &Path, package: &str) -> Result<Alone> {
    let (built, messages) = cargo(tree, &[package])?;
    if built {
        return Ok(Alone::Executables(executables(&messages)));
    }
    let constants = errors(&messages).iter().any(|error| error["code"]["code"] == "E0080");
    Ok(if constants { Alone::Refused } else { Alone::Fails })
}

/// Builds one mutant, and puts the source back.
pub fn alone(tree: &Path, mutant: &Mutant) -> Result<Alone> {
    let path = tree.join(&mutant.file);
    let original = fs::read_to_string(&path)?;
    let range = Lines::of(&original).range(&original, &mutant.span);
    fs::write(&path, format!("{}{}{}", &original[..range.start], mutant.replacement, &original[range.end..]))?;
    let outcome = package(tree, &mutant.package);
    fs::write(&path, original)?;
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty folder of this test's own.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("muster-mutants-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_tree_has_executables_of_its_own() {
        let folder = folder("trees");
        // Both are written before either is built, as sources are that have not changed since the other tree was built.
        let trees = ["one", "other"].map(|name| {
            let tree = folder.join(name);
            write(&tree.join("Cargo.toml"), b"[package]\nname = \"muster-x\"\nedition = \"2021\"\n[workspace]\n").unwrap();
            write(&tree.join("src/lib.rs"), format!("#[test] fn {name}() {{}}").as_bytes()).unwrap();
            tree
        });
        let [one, other] = trees.map(|tree| {
            let Alone::Executables(found) = package(&tree, "muster-x").unwrap() else { panic!("it compiles") };
            let listed = Command::new(&found[0].path).arg("--list").output().unwrap();
            String::from_utf8(listed.stdout).unwrap()
        });
        assert!(one.starts_with("one: test") && other.starts_with("other: test"), "{one}{other}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_copy_follows_its_sources() {
        let folder = folder("copy");
        let (root, tree) = (folder.join("root"), folder.join("tree"));
        write(&root.join("abi/a"), b"1").unwrap();
        write(&root.join("abi/b"), b"2").unwrap();
        assert!(Command::new("git").args(["init", "--quiet"]).current_dir(&root).status().unwrap().success());
        let both = copy(&root, &tree, &BTreeSet::new()).unwrap();
        fs::remove_file(root.join("abi/b")).unwrap();
        assert_ne!(copy(&root, &tree, &BTreeSet::new()).unwrap(), both);
        assert!(tree.join("abi/a").exists() && !tree.join("abi/b").exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
