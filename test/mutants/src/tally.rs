//! Results: those of this machine, line by line as they come, and `test/mutants.jsonl`, which is committed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use muster_cli::mutants::{self, content, File, Survivor};
use serde::{Deserialize, Serialize};

use crate::list::Mutant;

/// The fate of a mutant.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// A test of its package fails.
    Noticed,
    /// A test does not end.
    Endless,
    /// No test of its package notices; the reference model was not asked, or not all of it.
    Unnoticed,
    /// Only a test of the reference model fails.
    Model,
    /// No test fails.
    Survives,
    /// It does not compile.
    Uncompiled,
}

/// A line of the results of this machine.
#[derive(Serialize, Deserialize)]
struct Line {
    file: String,
    source: String,
    name: String,
    fate: Fate,
    /// The test that noticed it.
    by: String,
}

/// The results of this machine, for the sources as they are.
pub struct Noted {
    sources: BTreeMap<String, String>,
    root: std::path::PathBuf,
    fates: BTreeMap<(String, String), Fate>,
}

pub fn read(root: &Path, path: &Path) -> Result<Noted> {
    let mut noted = Noted { sources: BTreeMap::new(), root: root.into(), fates: BTreeMap::new() };
    for line in fs::read_to_string(path).unwrap_or_default().lines() {
        // The last line may have been cut off.
        let Ok(line) = serde_json::from_str::<Line>(line) else { continue };
        if noted.source(&line.file)? == line.source {
            noted.fates.insert((line.file, line.name), line.fate);
        }
    }
    Ok(noted)
}

impl Noted {
    /// The name of its content in git.
    fn source(&mut self, file: &str) -> Result<String> {
        if !self.sources.contains_key(file) {
            self.sources.insert(file.into(), content(&self.root, file)?);
        }
        Ok(self.sources[file].clone())
    }

    pub fn fate(&self, mutant: &Mutant) -> Option<Fate> {
        self.fates.get(&(mutant.file.clone(), mutant.name.clone())).copied()
    }

    /// Notes a result, and gives its line.
    pub fn note(&mut self, mutant: &Mutant, fate: Fate, by: &str) -> Result<String> {
        self.fates.insert((mutant.file.clone(), mutant.name.clone()), fate);
        let source = self.source(&mutant.file)?;
        let line = Line { file: mutant.file.clone(), source, name: mutant.name.clone(), fate, by: by.into() };
        Ok(serde_json::to_string(&line)? + "\n")
    }

    /// Writes `test/mutants.jsonl`: a file whose mutants were tried here gets new lines, others keep theirs. Reasons stay with their mutants.
    pub fn tally(&mut self, root: &Path, mutants: &[Mutant]) -> Result<()> {
        let mut old: BTreeMap<String, (Option<File>, Vec<Survivor>)> = BTreeMap::new();
        let (files, survivors) = mutants::read(root)?;
        for file in files {
            let name = file.file.clone();
            old.entry(name).or_default().0 = Some(file);
        }
        for survivor in survivors {
            old.entry(survivor.file.clone()).or_default().1.push(survivor);
        }
        let date = String::from_utf8(Command::new("date").args(["-u", "+%F"]).output()?.stdout)?.trim().to_string();
        let mut out = String::new();
        let mut files: Vec<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
        files.dedup();
        files.extend(old.keys().map(String::as_str).filter(|file| root.join(file).exists()));
        files.sort_unstable();
        files.dedup();
        for name in files {
            let (before, survivors) = old.get(name).cloned().unwrap_or_default();
            let (file, found) = self.file(root, name, mutants, &date)?;
            let tried = file.changes + file.uncompiled > file.left;
            let (file, mut found) = match before {
                Some(before) if !tried || before.source == file.source && before.left < file.left => (before, survivors.clone()),
                _ if tried => (file, found),
                _ => continue,
            };
            for survivor in &mut found {
                let known = survivors.iter().find(|known| known.change == survivor.change && known.line == survivor.line);
                if let Some(known) = known {
                    survivor.reason.clone_from(&known.reason);
                }
            }
            out += &(serde_json::to_string(&file)? + "\n");
            for survivor in found {
                out += &(serde_json::to_string(&survivor)? + "\n");
            }
        }
        fs::write(root.join("test/mutants.jsonl"), out)?;
        eprintln!("mutants: wrote test/mutants.jsonl");
        Ok(())
    }

    /// The lines of a file.
    fn file(&mut self, root: &Path, name: &str, mutants: &[Mutant], date: &str) -> Result<(File, Vec<Survivor>)> {
        let text = fs::read_to_string(root.join(name))?;
        let lines: Vec<&str> = text.lines().collect();
        let mut file = File { file: name.into(), source: self.source(name)?, date: date.into(), ..File::default() };
        let mut found: Vec<Survivor> = Vec::new();
        for mutant in mutants.iter().filter(|mutant| mutant.file == name) {
            let fate = self.fate(mutant);
            match fate {
                Some(Fate::Uncompiled) => file.uncompiled += 1,
                _ => file.changes += 1,
            }
            match fate {
                None => file.left += 1,
                Some(Fate::Noticed) => file.noticed += 1,
                Some(Fate::Endless) => file.endless += 1,
                Some(Fate::Model) => file.model += 1,
                Some(Fate::Unnoticed) => file.open += 1,
                Some(Fate::Survives) => file.survive += 1,
                Some(Fate::Uncompiled) => {}
            }
            let Some(fate @ (Fate::Unnoticed | Fate::Survives)) = fate else { continue };
            let line = lines.get(mutant.span.start.line - 1).map_or("", |line| line.trim());
            match found.iter_mut().find(|known| known.change == mutant.change() && known.line == line) {
                Some(known) => known.times += 1,
                None => found.push(Survivor {
                    file: name.into(),
                    change: mutant.change().into(),
                    line: line.into(),
                    times: 1,
                    model: fate == Fate::Survives,
                    reason: String::new(),
                }),
            }
        }
        Ok((file, found))
    }
}
