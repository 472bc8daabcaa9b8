//! Tests, what they reach, and what they say to a mutant.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};
use serde::{Deserialize, Serialize};

use crate::build::Executable;

/// A test, and its run on the sources as they are.
#[derive(Serialize, Deserialize, Clone)]
pub struct Test {
    pub package: String,
    pub executable: Executable,
    pub name: String,
    pub seconds: f64,
    /// Whether something panics in it although it passes.
    pub panics: bool,
    /// The mutants whose switches it comes to; `None` if it was too slow to be asked.
    pub reaches: Option<BTreeSet<usize>>,
}

impl Test {
    /// Whether it comes to the switch of a mutant, as far as is known.
    pub fn may_reach(&self, id: usize) -> bool {
        self.reaches.as_ref().is_none_or(|reaches| reaches.contains(&id))
    }
}

/// The end of a test.
#[derive(PartialEq, Eq, Clone, Copy, Debug)]
pub enum Outcome {
    Passed,
    Failed,
    Endless,
}

/// More would keep the machine busy with a mutant that asks for ever more: in KiB.
const MEMORY: u64 = 6 << 20;

/// An executable's tests in a process of its own, with a limit in time of a processor: on a busy machine a clock would tell of the others.
fn start(
    root: &Path,
    executable: &Executable,
    arguments: &[&str],
    environment: &[(&str, &str)],
    limit: Duration,
) -> Result<Child> {
    let mut command = Command::new("bash");
    command.current_dir(root.join("contracts").join(executable.package.trim_start_matches("muster-")));
    if executable.package == "muster-model" {
        command.current_dir(root.join("test/model"));
    }
    let seconds = limit.as_secs_f64().ceil();
    command
        .args(["-c", &format!("ulimit -c 0 -v {MEMORY}; ulimit -S -t {seconds}; exec \"$0\" \"$@\"")])
        .arg(&executable.path)
        .args(arguments);
    // The model has a test of seeds that it takes from the clock otherwise: it would try other operations each time.
    command.env("RUST_BACKTRACE", "0").env("SEED", "1").envs(environment.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().context("bash does not start")
}

fn outcome(status: ExitStatus) -> Result<Outcome> {
    Ok(match (status.code(), status.signal()) {
        (Some(0), _) => Outcome::Passed,
        // SIGXCPU, at the end of its time.
        (_, Some(24)) => Outcome::Endless,
        // bash has not found it; SIGHUP, SIGINT, SIGKILL and SIGTERM come from outside.
        (Some(126 | 127), _) | (_, Some(1 | 2 | 9 | 15)) => bail!("a test did not run to its end: {status}"),
        _ => Outcome::Failed,
    })
}

/// Waits until it ends, longer than `limit`, or, where `hasty`, until something panics in it. Says whether something did.
fn wait(mut child: Child, limit: Duration, hasty: bool) -> Result<(Outcome, bool)> {
    let (said, heard) = channel();
    let errors = BufReader::new(child.stderr.take().context("no output")?);
    let reader = thread::spawn(move || {
        for line in errors.split(b'\n').map_while(Result::ok) {
            if String::from_utf8_lossy(&line).contains("panicked at") {
                let _ = said.send(());
            }
        }
    });
    let began = Instant::now();
    let (mut panicked, mut wait) = (false, Duration::from_millis(1));
    let outcome = loop {
        if let Some(status) = child.try_wait()? {
            break outcome(status)?;
        }
        // It waits for something that does not come.
        let over = began.elapsed() > limit * 30;
        if over || hasty && panicked {
            child.kill()?;
            child.wait()?;
            break if over { Outcome::Endless } else { Outcome::Failed };
        }
        panicked |= heard.recv_timeout(wait).is_ok();
        wait = (wait * 2).min(Duration::from_millis(50));
    };
    reader.join().expect("it only reads");
    panicked |= heard.try_recv().is_ok();
    Ok((outcome, panicked))
}

/// Runs one test.
fn one(
    root: &Path,
    (executable, name): (&Executable, &str),
    environment: &[(&str, &str)],
    limit: Duration,
    hasty: bool,
) -> Result<(Outcome, bool)> {
    let child = start(root, executable, &["--exact", name, "--nocapture"], environment, limit)?;
    wait(child, limit, hasty).with_context(|| format!("{} {name}", executable.path.display()))
}

/// Runs each test alone, and once more to note which switches it comes to. One that takes longer than the patience is left.
pub fn cover(root: &Path, executables: &[Executable], notes: &Path, jobs: usize, patience: f64) -> Result<Vec<Test>> {
    let mut all = Vec::new();
    for executable in executables {
        let listed = Command::new(&executable.path).arg("--list").output()?;
        ensure!(listed.status.success(), "{} lists no tests", executable.name);
        let names = String::from_utf8(listed.stdout)?;
        let names = names.lines().filter_map(|line| line.strip_suffix(": test"));
        all.extend(names.map(|name| (executable.clone(), name.to_string())));
    }
    let count = all.len();
    eprintln!("mutants: running {count} tests, to see what they reach");
    let found = in_parallel(jobs, all, |at, (executable, name)| {
        let most = Duration::from_hours(1);
        let run = |environment: &[(&str, &str)], limit| -> Result<_> {
            let (outcome, panics) = one(root, (&executable, &name), environment, limit, false)?;
            let is_over = outcome == Outcome::Endless && limit < most;
            ensure!(is_over || outcome == Outcome::Passed, "{} {name} fails on the sources as they are", executable.name);
            Ok((is_over, panics))
        };
        let began = Instant::now();
        let (is_over, panics) = run(&[], most.min(Duration::try_from_secs_f64(patience).unwrap_or(most)))?;
        let seconds = began.elapsed().as_secs_f64();
        // Its processor's seconds were more than the patience, and with several threads those of the clock may not be.
        let seconds = if is_over { seconds.max(patience.next_up()) } else { seconds };
        // Taking notes can take many times as long as the test.
        let reaches = if seconds <= patience {
            let note = notes.join(format!("{at}.reached"));
            let _ = fs::remove_file(&note);
            run(&[("MUTANTS_REACHED", note.to_str().context("a path")?)], most)?;
            let reached = fs::read_to_string(&note).unwrap_or_default();
            let _ = fs::remove_file(&note);
            Some(reached.lines().map(|line| line.parse().context("a number")).collect::<Result<_>>()?)
        } else {
            None
        };
        if at % 20 == 19 {
            eprintln!("mutants: {} of {count} tests", at + 1);
        }
        Ok(Test { package: executable.package.clone(), executable, name, seconds, panics, reaches })
    })?;
    Ok(found.into_iter().filter(|test| test.reaches.as_ref().is_none_or(|reaches| !reaches.is_empty())).collect())
}

/// The verdicts of tests on the mutants of each file: a test that noticed some is likely to notice the next.
#[derive(Default)]
pub struct Record(Mutex<BTreeMap<String, BTreeMap<String, Said>>>);

/// The mutants that a test was tried with, and those that it noticed.
#[derive(Default, Clone, Copy)]
struct Said {
    tried: u32,
    noticed: u32,
}

impl Record {
    /// Tries a mutant of a file with tests until one notices it. Gives the test that did. The order is by the time that each may be
    /// expected to take for a mutant noticed.
    pub fn attempt(&self, root: &Path, file: &str, mut tests: Vec<&Test>, id: usize) -> Result<Option<(Outcome, String)>> {
        self.sort(file, &mut tests);
        let id = id.to_string();
        for test in tests {
            let limit = Duration::from_secs_f64((test.seconds * 10.0).max(4.0));
            let (outcome, _) = one(root, (&test.executable, &test.name), &[("MUTANT", &id)], limit, !test.panics)?;
            self.note(file, test, outcome != Outcome::Passed);
            if outcome != Outcome::Passed {
                return Ok(Some((outcome, test.name.clone())));
            }
        }
        Ok(None)
    }

    fn sort(&self, file: &str, tests: &mut [&Test]) {
        let all = self.0.lock().expect("no panic");
        let of = all.get(file);
        let price = |test: &Test| {
            let said = of.and_then(|of| of.get(&test.name)).copied().unwrap_or_default();
            test.seconds * f64::from(said.tried + 2) / f64::from(said.noticed + 1)
        };
        tests.sort_by(|a, b| price(a).total_cmp(&price(b)));
    }

    fn note(&self, file: &str, test: &Test, noticed: bool) {
        let mut all = self.0.lock().expect("no panic");
        let said = all.entry(file.into()).or_default().entry(test.name.clone()).or_default();
        said.tried += 1;
        said.noticed += u32::from(noticed);
    }
}

/// Tries executables as a whole, each until the limit.
pub fn whole(root: &Path, executables: &[Executable], limit: Duration) -> Result<Option<(Outcome, String)>> {
    for executable in executables {
        let (outcome, _) = wait(start(root, executable, &["--quiet"], &[], limit)?, limit, false)?;
        if outcome != Outcome::Passed {
            return Ok(Some((outcome, executable.name.clone())));
        }
    }
    Ok(None)
}

/// Does something with everything, `jobs` at a time, in order; the first error ends it.
pub fn in_parallel<T: Send, R: Send>(jobs: usize, all: Vec<T>, each: impl Fn(usize, T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let queue = Mutex::new(all.into_iter().enumerate());
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    loop {
                        let Some((at, item)) = queue.lock().expect("no panic").next() else { return Ok(()) };
                        let result = each(at, item);
                        if result.is_err() {
                            queue.lock().expect("no panic").by_ref().for_each(drop);
                        }
                        done.lock().expect("no panic").push((at, result?));
                    }
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no panic"))
    })?;
    let mut done = done.into_inner().expect("no panic");
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than a loaded machine takes to start a shell.
    const LONG: u64 = 20_000;

    /// How a line of a shell ends that has so many milliseconds.
    fn said_of(line: &str, milliseconds: u64) -> Option<Outcome> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let shell = Executable { package: "muster-core".into(), name: String::new(), path: "/bin/sh".into() };
        let limit = Duration::from_millis(milliseconds);
        wait(start(&root, &shell, &["-c", line], &[], limit).unwrap(), limit, true).ok().map(|(outcome, _)| outcome)
    }

    #[test]
    fn a_test_passes_fails_or_does_not_end() {
        assert_eq!(said_of("true", LONG), Some(Outcome::Passed));
        assert_eq!(said_of("exit 101", LONG), Some(Outcome::Failed));
        assert_eq!(said_of("kill -ABRT $$", LONG), Some(Outcome::Failed));
        assert_eq!(said_of("echo it panicked at >&2; exec sleep 60", LONG), Some(Outcome::Failed));
        assert_eq!(said_of("while :; do :; done", 100), Some(Outcome::Endless), "it keeps the processor");
        assert_eq!(said_of("exec sleep 60", 100), Some(Outcome::Endless), "it only waits");
    }

    #[test]
    fn a_test_that_the_machine_ends_says_nothing() {
        // SIGINT may be ignored here: a shell lets what runs in the background ignore it.
        for line in ["kill -KILL $$", "kill -TERM $$", "exec /no/such/test"] {
            assert_eq!(said_of(line, LONG), None, "{line}");
        }
    }

    #[test]
    fn tests_that_noticed_mutants_of_a_file_go_first_and_cheap_ones_otherwise() {
        let test = |name: &str, seconds: f64| Test {
            package: String::new(),
            executable: Executable { package: String::new(), name: String::new(), path: "/bin/false".into() },
            name: name.into(),
            seconds,
            panics: false,
            reaches: Some(BTreeSet::new()),
        };
        let tests = [test("cheap", 0.1), test("dear", 0.5)];
        let record = Record::default();
        let first = |file: &str| {
            let mut sorted = vec![&tests[1], &tests[0]];
            record.sort(file, &mut sorted);
            sorted[0].name.clone()
        };
        assert_eq!(first("a.rs"), "cheap");
        for _ in 0..9 {
            record.note("a.rs", &tests[0], false);
            record.note("a.rs", &tests[1], true);
        }
        assert_eq!(first("a.rs"), "dear");
        assert_eq!(first("b.rs"), "cheap");
    }

    #[test]
    fn seeds_do_not_come_from_the_clock() {
        assert_eq!(said_of("[ $SEED = 1 ]", LONG), Some(Outcome::Passed));
    }
}
