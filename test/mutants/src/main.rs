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

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Mutex;

use anyhow::{bail, Context, Result};

use build::{Alone, Built};
use list::Mutant;
use run::{Outcome, Test};
use tally::{Fate, Noted};

const PACKAGES: [(&str, &str); 3] = [("core", "muster-core"), ("rules", "muster-protocol"), ("router", "muster-router")];

struct Options {
    packages: BTreeSet<&'static str>,
    /// Parts of paths.
    files: Vec<String>,
    jobs: usize,
    /// Only what can be switched, or only what is built alone.
    phases: BTreeSet<String>,
    /// Tests of the model that take longer are not run.
    patience: f64,
}

impl Options {
    fn read() -> Result<Options> {
        let mut options =
            Options { packages: BTreeSet::new(), files: Vec::new(), jobs: 2, phases: BTreeSet::new(), patience: f64::MAX };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            if let Some((_, package)) = PACKAGES.iter().find(|(name, _)| *name == argument) {
                options.packages.insert(package);
            } else if argument == "--jobs" {
                options.jobs = arguments.next().context("--jobs: how many?")?.parse()?;
            } else if argument == "--patience" {
                options.patience = arguments.next().context("--patience: how many seconds?")?.parse()?;
            } else if ["--tests", "--alone", "--model", "--tally"].contains(&argument.as_str()) {
                options.phases.insert(argument);
            } else if argument.starts_with('-') {
                bail!("no such option: {argument}");
            } else {
                options.files.push(argument);
            }
        }
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
}

fn main() -> Result<()> {
    let options = Options::read()?;
    let root = std::env::current_dir()?;
    let folder = root.join("target/mutants");
    let place = |name: &str| folder.join(name);
    let router = options.packages.contains("muster-router");
    let packages: Vec<&str> = PACKAGES[..if router { 3 } else { 2 }].iter().map(|(_, package)| *package).collect();
    let key = build::copy(&root, &place("plain"), &BTreeSet::new())?;
    let mutants = list::of(&place("plain"), &packages)?;
    let work = Work {
        options,
        root: &root,
        folder: &folder,
        mutants: &mutants,
        noted: Mutex::new(tally::read(&root, &place("results.jsonl"))?),
    };
    if work.options.phases.contains("--tally") {
        return work.tally();
    }
    let mut tested: Vec<&str> = work.options.packages.iter().copied().collect();
    if work.options.phases.contains("--model") {
        tested.push("muster-model");
    }
    let kept = place(&format!("built-{}.json", tested.join("-")));
    let built: Built = match fs::read(&kept).ok().and_then(|kept| serde_json::from_slice(&kept).ok()) {
        Some(built) if matches!(&built, Built { key: old, .. } if *old == key) => built,
        _ => {
            let built = build::all(&root, [&place("plain"), &place("switched"), &place("target")], &mutants, &tested)?;
            fs::write(&kept, serde_json::to_vec(&built)?)?;
            built
        }
    };
    for package in work.options.packages.clone() {
        let (does, of) = (|phase: &str| work.options.phases.contains(phase), work.of(package));
        if does("--tests") || does("--alone") {
            let tests = work.reach(&built, package)?;
            if does("--tests") {
                work.with_tests(&of, &built, &tests)?;
            }
            if does("--alone") {
                work.alone(&of, &built, &tests)?;
            }
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
        if let Some((key, tests)) = fs::read(&kept).ok().and_then(|kept| serde_json::from_slice::<(u64, _)>(&kept).ok()) {
            if key == built.key {
                return Ok(tests);
            }
        }
        let executables: Vec<_> = built.executables.iter().filter(|executable| executable.package == package).cloned().collect();
        let tests = run::cover(self.root, &executables, self.folder, self.options.jobs)?;
        fs::write(&kept, serde_json::to_vec(&(built.key, &tests))?)?;
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
        fate: impl Fn(usize, &Mutant) -> Result<(Fate, String)> + Sync,
    ) -> Result<()> {
        let (count, done) = (all.len(), AtomicUsize::new(0));
        let file = File::options().create(true).append(true).open(self.folder.join("results.jsonl"))?;
        let began = std::time::Instant::now();
        run::in_parallel(jobs, all, |_, (id, mutant)| {
            let (fate, by) = fate(id, mutant)?;
            let line = self.noted.lock().expect("no panic").note(mutant, fate, &by)?;
            (&file).write_all(line.as_bytes())?;
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
        self.each("with the packages' own tests", self.options.jobs, new, |id, mutant| {
            if built.refused.contains(&id) {
                return Ok((Fate::Uncompiled, String::new()));
            }
            let own = cheapest(tests, id, |test| test.package == mutant.package);
            Ok(match run::attempt(self.root, own.into_iter(), id)? {
                Some((Outcome::Endless, test)) => (Fate::Endless, test.name.clone()),
                Some((_, test)) => (Fate::Noticed, test.name.clone()),
                None => (Fate::Unnoticed, String::new()),
            })
        })
    }

    /// Those that no test of their package notices, with the reference model's.
    fn with_model(&self, of: &[(usize, &Mutant)], built: &Built, tests: &[Test]) -> Result<()> {
        let left = of
            .iter()
            .copied()
            .filter(|(id, mutant)| built.switched.contains(id) && self.fate(mutant) == Some(Fate::Unnoticed))
            .collect();
        self.each("with the reference model", self.options.jobs, left, |id, _| {
            let reaching = cheapest(tests, id, |test| test.package == "muster-model");
            let all = reaching.len();
            let short: Vec<_> = reaching.into_iter().filter(|test| test.seconds <= self.options.patience).collect();
            let complete = short.len() == all;
            Ok(match run::attempt(self.root, short.into_iter(), id)? {
                Some((_, test)) => (Fate::Model, test.name.clone()),
                None if complete => (Fate::Survives, String::new()),
                None => (Fate::Unnoticed, String::new()),
            })
        })
    }

    /// Those that cannot be switched on, one after the other.
    fn alone(&self, of: &[(usize, &Mutant)], built: &Built, tests: &[Test]) -> Result<()> {
        let mut limits = BTreeMap::new();
        tests.iter().for_each(|test| *limits.entry(test.executable.name.clone()).or_default() += test.seconds);
        let new: Vec<_> =
            of.iter().copied().filter(|(id, mutant)| !built.switched.contains(id) && self.fate(mutant).is_none()).collect();
        self.each("one by one", 1, new, |id, mutant| {
            if built.refused.contains(&id) {
                return Ok((Fate::Uncompiled, String::new()));
            }
            Ok(match build::alone(&self.folder.join("plain"), &self.folder.join("target"), mutant)? {
                Alone::Fails => (Fate::Uncompiled, String::new()),
                Alone::Refused => (Fate::Noticed, "the compiler".into()),
                Alone::Executables(executables) => match run::whole(self.root, &executables, &limits)? {
                    Some((Outcome::Endless, test)) => (Fate::Endless, test),
                    Some((_, test)) => (Fate::Noticed, test),
                    None => (Fate::Survives, String::new()),
                },
            })
        })
    }

    fn tally(&self) -> Result<()> {
        self.noted.lock().expect("no panic").tally(self.root, self.mutants)
    }
}

/// The tests that reach a mutant, the cheapest first.
fn cheapest(tests: &[Test], id: usize, which: impl Fn(&Test) -> bool) -> Vec<&Test> {
    let mut found: Vec<_> = tests.iter().filter(|test| which(test) && test.reaches.contains(&id)).collect();
    found.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    found
}
