//! Finds the small changes of the contracts' sources that no test notices: `script/mutants`.
//!
//! | module | what |
//! | --- | --- |
//! | `list` | the changes, as cargo-mutants lists them |
//! | `source` | a source with each change behind a switch |
//! | `build` | all of them built at once; those that cannot be, one by one |
//! | `run` | tests, the switches they come to, and what they say to a change |
//! | `tally` | the results, and `test/mutants.jsonl`, from which the page on proofs is made |

mod build;
mod list;
mod run;
mod source;
mod tally;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};

use build::{Alone, Built, Executable};
use list::Mutant;
use run::{Outcome, Record, Test};
use tally::{Fate, Noted};

const PACKAGES: [(&str, &str); 3] = [("core", "muster-core"), ("rules", "muster-protocol"), ("router", "muster-router")];

struct Options {
    packages: BTreeSet<&'static str>,
    /// Parts of paths.
    files: Vec<String>,
    jobs: usize,
    /// Only what can be switched, or only what is built alone.
    phases: BTreeSet<String>,
    /// Tests that take longer are not run.
    patience: f64,
}

impl Options {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Options> {
        let mut options =
            Options { packages: BTreeSet::new(), files: Vec::new(), jobs: 2, phases: BTreeSet::new(), patience: f64::MAX };
        while let Some(argument) = arguments.next() {
            if let Some((_, package)) = PACKAGES.iter().find(|(name, _)| *name == argument) {
                options.packages.insert(package);
            } else if argument == "--jobs" {
                options.jobs = arguments.next().context("--jobs: how many?")?.parse().context("--jobs")?;
            } else if argument == "--patience" {
                options.patience = arguments.next().context("--patience: how many seconds?")?.parse().context("--patience")?;
            } else if ["--tests", "--alone", "--model", "--tally"].contains(&argument.as_str()) {
                options.phases.insert(argument);
            } else if argument.starts_with('-') {
                bail!("no such option: {argument}");
            } else {
                options.files.push(argument);
            }
        }
        ensure!(options.jobs > 0, "--jobs: at least one");
        if options.packages.is_empty() {
            options.packages = PACKAGES[..2].iter().map(|(_, package)| *package).collect();
        }
        if options.phases.is_empty() {
            options.phases = ["--tests", "--alone", "--model"].map(String::from).into();
        }
        Ok(options)
    }

    fn wants(&self, mutant: &Mutant) -> bool {
        let named = self.files.is_empty() || self.files.iter().any(|file| mutant.file.contains(file));
        self.packages.contains(mutant.package.as_str()) && named
    }

    /// Refuses a part of a path that no source has.
    fn check(&self, mutants: &[Mutant]) -> Result<()> {
        let is_one = |part: &str| {
            mutants.iter().any(|mutant| self.packages.contains(mutant.package.as_str()) && mutant.file.contains(part))
        };
        match self.files.iter().find(|part| !is_one(part)) {
            Some(part) => bail!("no source with changes has {part} in its path"),
            None => Ok(()),
        }
    }
}

fn main() -> Result<()> {
    let options = Options::read(std::env::args().skip(1))?;
    let root = std::env::current_dir()?;
    let folder = root.join("target/mutants");
    let place = |name: &str| folder.join(name);
    let (plain, switched) = (place("plain"), place("switched"));
    let sources = build::copy(&root, &plain, &BTreeSet::new())?;
    // Of all packages, so that a mutant has the same number whichever are wanted.
    let mutants = list::of(&plain, &PACKAGES.map(|(_, package)| package))?;
    options.check(&mutants)?;
    let key = build::key(sources, &mutants);
    let noted = Mutex::new(tally::read(&root, &place("results.jsonl"), &mutants, key)?);
    let work = Work { options, root: &root, folder: &folder, mutants: &mutants, noted, key };
    if work.options.phases.contains("--tally") {
        return work.tally();
    }
    let mut tested: Vec<&str> = work.options.packages.iter().copied().collect();
    if work.options.phases.contains("--model") {
        tested.push("muster-model");
    }
    let built = build::all(&root, [&plain, &switched], &mutants, &tested, key)?;
    for package in work.options.packages.clone() {
        let (does, of) = (|phase: &str| work.options.phases.contains(phase), work.of(package));
        if does("--tests") {
            work.with_tests(&of, &built, &work.reach(&built, package)?)?;
        }
        if does("--alone") {
            work.alone(&of, &built, package)?;
        }
        if does("--model") {
            work.with_model(&of, &built, &work.reach(&built, "muster-model")?)?;
        }
    }
    work.tally()
}

struct Work<'a> {
    options: Options,
    root: &'a Path,
    folder: &'a PathBuf,
    mutants: &'a [Mutant],
    noted: Mutex<Noted>,
    /// Of all that results depend on.
    key: u64,
}

impl Work<'_> {
    /// The wanted mutants of a package, with their numbers.
    fn of(&self, package: &str) -> Vec<(usize, &Mutant)> {
        let all = self.mutants.iter().enumerate().map(|(at, mutant)| (at + 1, mutant));
        all.filter(|(_, mutant)| mutant.package == package && self.options.wants(mutant)).collect()
    }

    /// The tests of a package, and what they reach.
    fn reach(&self, built: &Built, package: &str) -> Result<Vec<Test>> {
        let kept = self.folder.join(format!("{package}.json"));
        let executables: Vec<_> = built.executables.iter().filter(|executable| executable.package == package).cloned().collect();
        let known = fs::read(&kept).ok().and_then(|kept| serde_json::from_slice::<(u64, Vec<Executable>, Vec<Test>)>(&kept).ok());
        if let Some((key, of, tests)) = known {
            let is_asked = |test: &Test| test.reaches.is_some() || test.seconds > self.options.patience;
            if (key, &of) == (self.key, &executables) && tests.iter().all(is_asked) {
                return Ok(tests);
            }
        }
        let tests = run::cover(self.root, &executables, self.folder, self.options.jobs, self.options.patience)?;
        fs::write(&kept, serde_json::to_vec(&(self.key, &executables, &tests))?)?;
        Ok(tests)
    }

    fn fate(&self, mutant: &Mutant) -> Option<Fate> {
        self.noted.lock().expect("no panic").fate(mutant)
    }

    /// Notes results as they come, in a file that a later run goes on with.
    fn each(
        &self,
        what: &str,
        jobs: usize,
        all: Vec<(usize, &Mutant)>,
        fate: impl Fn(usize, &Mutant) -> Result<Option<(Fate, String)>> + Sync,
    ) -> Result<()> {
        let (count, done) = (all.len(), AtomicUsize::new(0));
        let file = File::options().create(true).append(true).open(self.folder.join("results.jsonl"))?;
        let began = Instant::now();
        run::in_parallel(jobs, all, |_, (id, mutant)| {
            if let Some((fate, by)) = fate(id, mutant)? {
                let line = self.noted.lock().expect("no panic").note(mutant, fate, &by)?;
                (&file).write_all(line.as_bytes())?;
            }
            let done = done.fetch_add(1, Relaxed) + 1;
            if done.is_multiple_of(25) || done == count {
                let left = began.elapsed().as_secs_f64() / done as f64 * (count - done) as f64 / 60.0;
                eprintln!("mutants: {what}: {done} of {count}, {left:.0} minutes left; {}", mutant.file);
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Tries those that can be switched on with their own package's tests.
    fn with_tests(&self, of: &[(usize, &Mutant)], built: &Built, tests: &[Test]) -> Result<()> {
        let new: Vec<_> = of
            .iter()
            .copied()
            .filter(|(id, mutant)| (built.switched.contains(id) || built.refused.contains(id)) && self.fate(mutant).is_none())
            .collect();
        let record = Record::default();
        self.each("with the packages' own tests", self.options.jobs, new, |id, mutant| {
            if built.refused.contains(&id) {
                return Ok(Some((Fate::Uncompiled, String::new())));
            }
            let (short, is_whole) = self.patiently(reaching(tests, id));
            let noticed = record.attempt(self.root, &mutant.file, short, id)?;
            // One that only longer tests might notice is left to a run that has more patience.
            Ok((noticed.is_some() || is_whole).then(|| by_package(noticed)))
        })
    }

    /// Those that no test of their package notices, with the reference model's.
    fn with_model(&self, of: &[(usize, &Mutant)], built: &Built, tests: &[Test]) -> Result<()> {
        let left = of
            .iter()
            .copied()
            .filter(|(id, mutant)| built.switched.contains(id) && self.fate(mutant) == Some(Fate::Unnoticed))
            .collect();
        let record = Record::default();
        self.each("with the reference model", self.options.jobs, left, |id, mutant| {
            let (short, is_whole) = self.patiently(reaching(tests, id));
            Ok(Some(match record.attempt(self.root, &mutant.file, short, id)? {
                Some((_, test)) => (Fate::Model, test),
                None if is_whole => (Fate::Survives, String::new()),
                None => (Fate::Unnoticed, String::new()),
            }))
        })
    }

    /// Of tests those that take no longer than the patience, and whether that is all of them.
    fn patiently<'t>(&self, mut tests: Vec<&'t Test>) -> (Vec<&'t Test>, bool) {
        let all = tests.len();
        tests.retain(|test| test.seconds <= self.options.patience);
        let is_whole = tests.len() == all;
        (tests, is_whole)
    }

    /// Those that cannot be switched on, one after the other, with their own package's tests.
    fn alone(&self, of: &[(usize, &Mutant)], built: &Built, package: &str) -> Result<()> {
        let is_alone = |id: &usize| !built.switched.contains(id) && !built.refused.contains(id);
        let new: Vec<_> = of.iter().copied().filter(|(id, mutant)| is_alone(id) && self.fate(mutant).is_none()).collect();
        if new.is_empty() {
            return Ok(());
        }
        let tree = self.folder.join("plain");
        let Alone::Executables(unchanged) = build::package(&tree, package)? else { bail!("{package} does not compile") };
        let began = Instant::now();
        if let Some((_, test)) = run::whole(self.root, &unchanged, Duration::from_hours(1))? {
            bail!("{package}: {test} fails on the sources as they are");
        }
        let limit = (began.elapsed() * 10).max(Duration::from_mins(1));
        self.each("one by one", 1, new, |_, mutant| {
            Ok(Some(match build::alone(&tree, mutant)? {
                Alone::Fails => (Fate::Uncompiled, String::new()),
                Alone::Refused => (Fate::Noticed, "the compiler".into()),
                Alone::Executables(executables) => by_package(run::whole(self.root, &executables, limit)?),
            }))
        })
    }

    fn tally(&self) -> Result<()> {
        self.noted.lock().expect("no panic").tally(self.root, self.mutants)
    }
}

/// The tests that reach a mutant.
fn reaching(tests: &[Test], id: usize) -> Vec<&Test> {
    tests.iter().filter(|test| test.may_reach(id)).collect()
}

/// The fate of a mutant after the tests of its package, and the one that noticed it. A survivor is left to the reference model.
fn by_package(noticed: Option<(Outcome, String)>) -> (Fate, String) {
    match noticed {
        Some((Outcome::Endless, test)) => (Fate::Endless, test),
        Some((_, test)) => (Fate::Noticed, test),
        None => (Fate::Unnoticed, String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options> {
        Options::read(line.split_whitespace().map(String::from))
    }

    #[test]
    fn options_that_would_try_nothing_are_refused() {
        assert!(options("core --jobs 2").is_ok());
        for line in ["--jobs 0", "--jobs", "--jobs many", "--patience", "--all"] {
            assert!(options(line).is_err(), "{line}");
        }
        let json = r#"[{"package": "muster-core", "file": "contracts/core/src/wad.rs", "genre": "", "name": "", "replacement": "",
            "span": {"start": {"line": 1, "column": 1}, "end": {"line": 1, "column": 1}}}]"#;
        let mutants: Vec<Mutant> = serde_json::from_str(json).unwrap();
        assert!(options("core wad").unwrap().check(&mutants).is_ok());
        assert!(options("core wat").unwrap().check(&mutants).is_err());
        assert!(options("rules wad").unwrap().check(&mutants).is_err());
    }

    #[test]
    fn what_no_test_of_its_package_notices_has_not_survived_the_model() {
        assert_eq!(by_package(None).0, Fate::Unnoticed);
    }
}
