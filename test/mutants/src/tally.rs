//! Results: those of this machine, line by line as they come, and `test/mutants.jsonl`, which is committed.

use std::collections::{BTreeMap, BTreeSet};
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
    /// Of all sources and tests.
    #[serde(default)]
    key: u64,
    #[serde(default)]
    date: String,
}

/// The results of this machine, for the sources as they are.
pub struct Noted {
    /// The content of each source when this run began: its name in git, and the text.
    sources: BTreeMap<String, (String, String)>,
    key: u64,
    today: String,
    /// Each with its date.
    fates: BTreeMap<(String, String), (Fate, String)>,
}

/// The results that still hold. One of another content of its source does not; a survivor's holds only for the same tests and sources.
pub fn read(root: &Path, path: &Path, mutants: &[Mutant], key: u64) -> Result<Noted> {
    let today = String::from_utf8(Command::new("date").args(["-u", "+%F"]).output()?.stdout)?.trim().to_string();
    let files: BTreeSet<&String> = mutants.iter().map(|mutant| &mutant.file).collect();
    let source = |file: &String| Ok((file.clone(), (content(root, file)?, fs::read_to_string(root.join(file))?)));
    let sources = files.into_iter().map(source).collect::<Result<_>>()?;
    let mut noted = Noted { sources, key, today, fates: BTreeMap::new() };
    for line in fs::read_to_string(path).unwrap_or_default().lines() {
        // The last line may have been cut off.
        let Ok(line) = serde_json::from_str::<Line>(line) else { continue };
        let is_current = noted.sources.get(&line.file).is_some_and(|(source, _)| *source == line.source);
        let is_noticed = !matches!(line.fate, Fate::Unnoticed | Fate::Survives);
        if is_current && (is_noticed || line.key == key) {
            noted.fates.insert((line.file, line.name), (line.fate, line.date));
        }
    }
    Ok(noted)
}

impl Noted {
    pub fn fate(&self, mutant: &Mutant) -> Option<Fate> {
        self.fates.get(&(mutant.file.clone(), mutant.name.clone())).map(|(fate, _)| *fate)
    }

    /// Notes a result, and gives its line.
    pub fn note(&mut self, mutant: &Mutant, fate: Fate, by: &str) -> Result<String> {
        let (file, name, date) = (mutant.file.clone(), mutant.name.clone(), self.today.clone());
        let source = self.sources[&file].0.clone();
        self.fates.insert((file.clone(), name.clone()), (fate, date.clone()));
        let line = Line { file, source, name, fate, by: by.into(), key: self.key, date };
        Ok(serde_json::to_string(&line)? + "\n")
    }

    /// Writes `test/mutants.jsonl`: a file whose mutants were tried here gets new lines, others keep theirs. So does one of which an earlier
    /// run tried more, but for survivors that were noticed now. A reason stays with the changes that it was written for, unless there are
    /// more of them.
    pub fn tally(&self, root: &Path, mutants: &[Mutant]) -> Result<()> {
        let mut old: BTreeMap<String, (Option<File>, Vec<Survivor>)> = BTreeMap::new();
        let (files, survivors) = mutants::read(root)?;
        for file in files {
            let name = file.file.clone();
            old.entry(name).or_default().0 = Some(file);
        }
        for survivor in survivors {
            old.entry(survivor.file.clone()).or_default().1.push(survivor);
        }
        let mut out = String::new();
        for name in self.sources.keys() {
            let (before, survivors) = old.remove(name).unwrap_or_default();
            let (file, found) = self.file(name, mutants);
            let tried = file.changes + file.uncompiled > file.left;
            let (file, mut found) = match before {
                Some(before) if !tried => (before, survivors.clone()),
                Some(before) if before.source == file.source && before.left < file.left => {
                    self.noticed_since(before, survivors.clone(), mutants)
                }
                _ if tried => (file, found),
                _ => continue,
            };
            for survivor in &mut found {
                let same = |known: &&Survivor| (&known.change, &known.line) == (&survivor.change, &survivor.line);
                if let Some(known) = survivors.iter().find(same).filter(|known| known.times >= survivor.times) {
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

    /// The lines of an earlier run, without the survivors that were noticed here.
    fn noticed_since(&self, mut file: File, survivors: Vec<Survivor>, mutants: &[Mutant]) -> (File, Vec<Survivor>) {
        let lines: Vec<&str> = self.sources[&file.file].1.lines().collect();
        let mut left = Vec::new();
        for mut survivor in survivors {
            let fates = mutants.iter().filter(|mutant| {
                mutant.file == file.file && (mutant.change(), line_of(&lines, mutant)) == (&survivor.change, &survivor.line)
            });
            let (noticed, open): (Vec<_>, Vec<_>) = fates
                .map(|mutant| self.fates.get(&(mutant.file.clone(), mutant.name.clone())))
                .partition(|fate| matches!(fate, Some((Fate::Noticed | Fate::Endless | Fate::Model, _))));
            let gained = survivor.times.saturating_sub(open.len());
            for (fate, date) in noticed.into_iter().flatten().take(gained) {
                *(if survivor.model { &mut file.survive } else { &mut file.open }) -= 1;
                *(match fate {
                    Fate::Endless => &mut file.endless,
                    Fate::Model => &mut file.model,
                    _ => &mut file.noticed,
                }) += 1;
                file.date = file.date.max(date.clone());
            }
            survivor.times -= gained;
            left.extend((survivor.times > 0).then_some(survivor));
        }
        (file, left)
    }

    /// The lines of a file.
    fn file(&self, name: &str, mutants: &[Mutant]) -> (File, Vec<Survivor>) {
        let (source, text) = &self.sources[name];
        let lines: Vec<&str> = text.lines().collect();
        let mut file = File { file: name.into(), source: source.clone(), ..File::default() };
        let mut found: Vec<Survivor> = Vec::new();
        for mutant in mutants.iter().filter(|mutant| mutant.file == name) {
            let noted = self.fates.get(&(name.into(), mutant.name.clone()));
            let fate = noted.map(|(fate, _)| *fate);
            file.date = file.date.max(noted.map_or_else(String::new, |(_, date)| date.clone()));
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
            let line = line_of(&lines, mutant);
            match found.iter_mut().find(|known| known.change == mutant.change() && known.line == line) {
                Some(known) => {
                    known.times += 1;
                    known.model &= fate == Fate::Survives;
                }
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
        (file, found)
    }
}

/// The text of a mutant's first line.
fn line_of<'l>(lines: &[&'l str], mutant: &Mutant) -> &'l str {
    lines.get(mutant.span.start.line - 1).map_or("", |line| line.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const SOURCE: &str = "fn f() {\n    a | b;\n    a | b;\n}\n";

    /// A project of one source, in a folder of this test's own, and the same change on both of its lines.
    fn project(name: &str) -> (PathBuf, Vec<Mutant>) {
        let root = std::env::temp_dir().join(format!("muster-mutants-{}-{name}", std::process::id()));
        fs::create_dir_all(root.join("test")).unwrap();
        fs::write(root.join("test/mutants.jsonl"), "").unwrap();
        fs::write(root.join("a.rs"), SOURCE).unwrap();
        let mutant = |line: usize| {
            let span = format!(r#"{{"start": {{"line": {line}, "column": 7}}, "end": {{"line": {line}, "column": 8}}}}"#);
            let name = format!("a.rs:{line}:7: replace | with ^ in f");
            format!(r#"{{"package": "p", "file": "a.rs", "genre": "", "name": "{name}", "replacement": "^", "span": {span}}}"#)
        };
        let mutants = serde_json::from_str(&format!("[{}, {}]", mutant(2), mutant(3))).unwrap();
        (root, mutants)
    }

    fn reasons(root: &Path) -> Vec<(usize, bool, String)> {
        let found = mutants::read(root).unwrap().1;
        found.into_iter().map(|survivor| (survivor.times, survivor.model, survivor.reason)).collect()
    }

    #[test]
    fn survivors_are_tried_again_after_any_change_and_all_after_one_of_their_source() {
        let (root, mutants) = project("again");
        let path = root.join("results.jsonl");
        let mut noted = read(&root, &path, &mutants, 1).unwrap();
        // Changed while it runs: the tests are those of what it was before.
        fs::write(root.join("a.rs"), format!("{SOURCE}// Changed.\n")).unwrap();
        let lines = noted.note(&mutants[0], Fate::Noticed, "t").unwrap() + &noted.note(&mutants[1], Fate::Survives, "").unwrap();
        fs::write(&path, lines).unwrap();
        let fates = |key| {
            let noted = read(&root, &path, &mutants, key).unwrap();
            [noted.fate(&mutants[0]), noted.fate(&mutants[1])]
        };
        assert_eq!(fates(1), [None, None], "of another source");
        fs::write(root.join("a.rs"), SOURCE).unwrap();
        assert_eq!(fates(1), [Some(Fate::Noticed), Some(Fate::Survives)]);
        assert_eq!(fates(2), [Some(Fate::Noticed), None], "with other tests");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_reason_is_not_one_for_more_changes_than_it_was_written_for() {
        let (root, mutants) = project("reasons");
        let mut noted = read(&root, Path::new("none"), &mutants, 1).unwrap();
        noted.note(&mutants[0], Fate::Survives, "").unwrap();
        noted.note(&mutants[1], Fate::Noticed, "t").unwrap();
        noted.tally(&root, &mutants).unwrap();
        let text = fs::read_to_string(root.join("test/mutants.jsonl")).unwrap();
        fs::write(root.join("test/mutants.jsonl"), text.replace(r#""reason":"""#, r#""reason":"so""#)).unwrap();
        noted.tally(&root, &mutants).unwrap();
        assert_eq!(reasons(&root), [(1, true, "so".to_string())]);
        // The model was not asked of the second.
        noted.note(&mutants[1], Fate::Unnoticed, "").unwrap();
        noted.tally(&root, &mutants).unwrap();
        assert_eq!(reasons(&root), [(2, false, String::new())]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_run_that_tried_less_takes_away_the_survivors_that_it_noticed() {
        let (root, mutants) = project("less");
        let mut noted = read(&root, Path::new("none"), &mutants, 1).unwrap();
        mutants.iter().for_each(|mutant| drop(noted.note(mutant, Fate::Unnoticed, "").unwrap()));
        noted.tally(&root, &mutants).unwrap();
        let counts = || {
            let file = mutants::read(&root).unwrap().0.remove(0);
            (file.changes, file.noticed, file.open, file.left)
        };
        assert_eq!((counts(), reasons(&root).len()), ((2, 0, 2, 0), 1));
        let mut noted = read(&root, Path::new("none"), &mutants, 2).unwrap();
        for (mutant, survivors) in mutants.iter().zip([1, 0]) {
            // The second was not tried, and may be open still.
            noted.note(mutant, Fate::Noticed, "t").unwrap();
            noted.tally(&root, &mutants).unwrap();
            assert_eq!(counts(), (2, 2 - survivors, survivors, 0));
            assert_eq!(reasons(&root).len(), survivors);
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_file_has_the_date_of_its_last_result() {
        let (root, mutants) = project("date");
        let path = root.join("results.jsonl");
        let mut noted = read(&root, &path, &mutants, 1).unwrap();
        let line = noted.note(&mutants[0], Fate::Noticed, "t").unwrap();
        fs::write(&path, line.replace(&noted.today, "2020-02-02")).unwrap();
        read(&root, &path, &mutants, 1).unwrap().tally(&root, &mutants).unwrap();
        assert_eq!(mutants::read(&root).unwrap().0[0].date, "2020-02-02");
        fs::remove_dir_all(root).unwrap();
    }
}
