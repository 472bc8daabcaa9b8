//! One task's work off the chain: fetch its input and models, run its executor, store its result. The outcome is in the
//! journal; the node makes the calls, and goes on meanwhile.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use alloy::primitives::B256;
use anyhow::{Context, Result};
use muster_client::{digest_of, seal_result, Given, IMuster, Lost, Object, Opening, Private, Seal, Secrets, Trouble, SEALED};
use tokio::time::{sleep, timeout_at, Instant};

use crate::executor::{absolute, clear, kind, read_result, Card, Ran, Run};
use crate::journal::{Job, Journal, Stage};
use crate::said::Fault;
use crate::shared::Shared;
use crate::stream::Showing;
use crate::{clock, config, die, models, say};

/// Codes of error reports. No node could run the task:
pub const CODE_TASK: u8 = 1;
/// this one could not;
pub const CODE_NODE: u8 = 2;
/// this one did not in time;
pub const CODE_TIME: u8 = 3;
/// no store has an input of the task's digest;
pub const CODE_INPUT: u8 = 4;
/// this node reaches no store.
pub const CODE_STORE: u8 = 5;

/// How often a store is asked again.
const AGAIN: Duration = Duration::from_secs(3);
/// How long to wait for an input that no store has: its creator may be slower than the draw.
const INPUT: Duration = Duration::from_secs(30);

/// The suffix in the name of a result that is sealed to its creator.
const PRIVATE: &str = "-private";

/// The outcome of a task's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worked {
    pub task: u64,
    pub deadline: u64,
    /// The party at fault, if it failed, and the reason.
    pub failed: Option<(Fault, String)>,
}

/// A task's work.
pub struct Work {
    pub shared: Arc<Shared>,
    pub node: config::Node,
    pub number: u32,
    pub secrets: Arc<Secrets>,
    pub private: Arc<Private>,
    pub executor: Arc<Card>,
    pub job: Job,
    /// The reason not to run the task, if there is one.
    pub idle: Option<Failure>,
    /// The node's models, according to the chain.
    pub held: Vec<u64>,
    /// The end of the work, done or not: the executor is killed, and nothing is waited for any more.
    pub until: Instant,
    /// When a store must have a timely result; otherwise an error is reported while it still can be.
    pub last: Instant,
}

/// A missing answer: the party at fault, the error's code, and the reason.
pub struct Failure(pub Fault, pub u8, pub String);

/// The node's own step that was not done in time.
pub fn late(what: &str) -> Failure {
    Failure(Fault::Time, CODE_TIME, format!("{what} before it was too late"))
}

/// An outside step that was not done in time.
fn awaited(what: &str) -> Failure {
    Failure(Fault::World, CODE_TIME, format!("{what} before it was too late"))
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure(Fault::Node, CODE_NODE, format!("{error:#}"))
    }
}

impl Work {
    /// Works until the job can be answered.
    ///
    /// # Errors
    /// If the journal cannot be written, or the chain does not describe the task: the work is then begun again.
    pub async fn run(mut self) -> Result<Worked> {
        let (task, deadline) = (self.job.task, self.job.deadline);
        let mut failed = None;
        if self.job.stage == Stage::Taken {
            die::at("taken");
            let ran = match self.idle.take() {
                Some(why) => Err(why),
                None => match timeout_at(self.until, self.shared.created(task)).await {
                    // Where a node of the chain gives the events of few blocks at a time, the search can take longer than the task may.
                    Err(_) => Err(awaited("how it was created was not found")),
                    Ok(created) => {
                        let created = created?;
                        let mut showing = None;
                        let ran = self.execute(&created, &mut showing).await;
                        die::at("executed");
                        let settled = ran.and_then(|reply| self.settle(&created.spec, reply));
                        if let (Ok(()), Some(Showing(show))) = (&settled, &showing) {
                            show.settle(self.job.value);
                        }
                        settled
                    }
                },
            };
            match ran {
                Ok(()) => {}
                Err(failure) => failed = Some(self.fail(failure)?),
            }
            die::at("ran");
        }
        if self.job.stage == Stage::Ran {
            if let Err(failure) = self.store().await {
                failed = Some(self.fail(failure)?);
            }
            die::at("stored");
        }
        Ok(Worked { task, deadline, failed })
    }

    fn given(&self) -> Given {
        Given { id: self.job.task, node: self.number, deadline: self.job.deadline }
    }

    /// Answers with an error.
    fn fail(&mut self, Failure(fault, code, why): Failure) -> Result<(Fault, String)> {
        say!("{}: task {} failed; {fault}: {why}", self.node.name, self.job.task);
        let opening = if self.job.redundancy == 0 {
            Opening { kind: 1, value: B256::left_padding_from(&[code]), salt: B256::ZERO }
        } else {
            self.secrets.error(self.given(), code)
        };
        self.answer(opening, None, Stage::Stored)?;
        Ok((fault, why))
    }

    fn answer(&mut self, opening: Opening, result: Option<String>, stage: Stage) -> Result<()> {
        let Opening { kind, value, salt } = opening;
        self.job = Job { stage, kind, value, salt, result, ..self.job.clone() };
        self.shared.journal.put(&self.job)
    }

    /// Runs the task. Its result is in the output file, and was streamed meanwhile if allowed. Returns the key to seal the result to,
    /// if any.
    async fn execute(&self, created: &IMuster::TaskCreated, showing: &mut Option<Showing>) -> Result<Option<String>, Failure> {
        let spec = &created.spec;
        let place = self.shared.config.work(&self.node);
        let (input, output) = (absolute(&place.join("input")), absolute(&place.join("output")));
        // An executor may have put something in its place that is no file.
        clear(&input).context("the last input cannot be removed")?;
        self.input(created, &input).await?;
        let (sealed, reply) = self.opened(&input)?;
        // Nobody may see compared answers before they are committed to, nor sealed ones at all.
        let hidden = spec.redundancy != 0 || sealed;
        *showing = self.shared.streams.as_ref().map(|streams| streams.begin(self.job.task, hidden));
        let show = showing.as_ref().filter(|_| !hidden).map(|Showing(show)| show);
        clear(&output).context("the last result cannot be removed")?;
        let missing = spec.models.iter().copied().filter(|model| !self.held.contains(model));
        for model in missing {
            let within = self.left().min(Duration::from_secs(self.node.download_within));
            match models::download(&self.shared, &self.node, self.number, model, within).await {
                Err(_) if self.left().is_zero() => {
                    return Err(awaited(&format!("{} was not here", self.shared.model(model))));
                }
                // The creator names the models, so a model that nobody has is not the node's fault.
                Err(error) => return Err(Failure(Fault::World, CODE_NODE, format!("{error:#}"))),
                Ok(()) => {}
            }
        }
        let run = Run {
            id: self.job.task.to_string(),
            kind: kind(spec.kind).into(),
            units: spec.units,
            models: spec.models.iter().map(|model| self.shared.model(*model)).collect(),
            input,
            output,
            deadline: self.job.deadline,
        };
        die::at("executing");
        // A self-test may use it for as long as a model takes to load, or other nodes' tasks may.
        let ran = self.executor.run(&run, self.until, spec.redundancy != 0, show).await;
        match ran.ok_or_else(|| late("the executor was not free"))? {
            Ran::Done => Ok(reply),
            Ran::Failed(fault, why) => {
                let code = match fault {
                    Fault::Task => CODE_TASK,
                    Fault::Node | Fault::Bound | Fault::World => CODE_NODE,
                    Fault::Time => CODE_TIME,
                };
                Err(Failure(fault, code, why))
            }
        }
    }

    /// The time left for the work.
    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Writes the input's bytes, checked by the digest, to a file.
    async fn input(&self, created: &IMuster::TaskCreated, file: &Path) -> Result<(), Failure> {
        let until = self.until.min(Instant::now() + INPUT);
        let stores = self.shared.inputs_of(created.creator).await;
        loop {
            let lost = match timeout_at(self.until, stores.get_to(created.spec.inputDigest, file)).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(lost)) => lost,
                Err(_) => return Err(awaited("the input was not here")),
            };
            if let Some(full) = lost.attempts.iter().find(|attempt| matches!(attempt.trouble, Trouble::Unwritten(_))) {
                return Err(Failure(Fault::Node, CODE_NODE, full.trouble.to_string()));
            }
            if Instant::now() + AGAIN >= until {
                // A store that reports a missing object is reachable.
                let absent = |trouble: &Trouble| matches!(trouble, Trouble::Missing | Trouble::Corrupt(_) | Trouble::TooLong(_));
                let absent = lost.attempts.iter().all(|attempt| absent(&attempt.trouble));
                let (fault, code) = if absent { (Fault::Task, CODE_INPUT) } else { (Fault::World, CODE_STORE) };
                return Err(Failure(fault, code, lost.to_string()));
            }
            sleep(AGAIN).await;
        }
    }

    /// Opens a sealed input in its place. Returns whether it was sealed, and the key to seal the result to.
    fn opened(&self, file: &Path) -> Result<(bool, Option<String>), Failure> {
        let mut head = Vec::new();
        let beginning = File::open(file).and_then(|file| file.take(SEALED.len() as u64).read_to_end(&mut head));
        beginning.context("the input cannot be read")?;
        if head != SEALED {
            return Ok((false, None));
        }
        let sealed = fs::read(file).context("the input cannot be read")?;
        // A long one takes seconds, in which other tasks go on.
        let opened = tokio::task::block_in_place(|| self.private.open_input(&sealed));
        // The sender chose the keys.
        let opened = opened.map_err(|error| Failure(Fault::World, CODE_INPUT, error.to_string()))?;
        if let Some(reply) = &opened.reply {
            // Before any work is done for it.
            seal_result(b"", reply).map_err(|error| Failure(Fault::World, CODE_INPUT, error.to_string()))?;
        }
        fs::write(file, opened.input).context("the input cannot be written")?;
        Ok((true, opened.reply))
    }

    /// Settles the answer, and stores the result durably.
    fn settle(&mut self, spec: &IMuster::TaskSpec, reply: Option<String>) -> Result<(), Failure> {
        let place = self.shared.config.work(&self.node);
        let output = place.join("output");
        let bytes = read_result(&output, self.shared.config.store.longest).context("the result cannot be read")?;
        let images = spec.kind == 0 && spec.redundancy != 0;
        let opening = if images {
            let hashed = muster_hashes::of_result(&bytes, spec.units as usize);
            let hashes = hashed.map_err(|error| Failure(Fault::Node, CODE_NODE, error.to_string()))?;
            self.secrets.images(self.given(), hashes, &bytes)
        } else if spec.redundancy == 0 {
            Opening { kind: 0, value: digest_of(&bytes), salt: B256::ZERO }
        } else {
            self.secrets.answer(self.given(), &bytes)
        };
        let mut name = format!("{}-{}", self.job.task, self.job.deadline);
        let mut kept = bytes;
        if let Some(reply) = reply {
            // Once: sealing again would give other bytes.
            kept = seal_result(&kept, &reply).map_err(|error| Failure(Fault::World, CODE_INPUT, error.to_string()))?;
            name += PRIVATE;
        }
        keep(&kept, &results(&place).join(&name)).context("the result cannot be kept")?;
        self.answer(opening, Some(name), Stage::Ran)?;
        let _ = clear(&output);
        Ok(())
    }

    /// Puts the result into stores, sealed if the answer is committed to.
    async fn store(&mut self) -> Result<(), Failure> {
        let place = results(&self.shared.config.work(&self.node));
        let name = self.job.result.clone().unwrap_or_default();
        let bytes = fs::read(place.join(&name)).context("the result is gone")?;
        let seal = Seal::new(self.job.task, self.number, self.job.salt);
        let sealed = match self.job.redundancy {
            0 => None,
            _ => {
                let sealed = if name.ends_with(PRIVATE) { seal.seal_private(&bytes) } else { seal.seal(&bytes) };
                Some(sealed.map_err(|error| Failure(Fault::Node, CODE_NODE, error.to_string()))?)
            }
        };
        loop {
            let put = async {
                match &sealed {
                    None => self.shared.results.put_private(self.job.value, &bytes).await,
                    Some(object) => self.shared.results.put_sealed(&seal, object).await,
                }
            };
            let put: Result<_, Lost> = timeout_at(self.last, put).await.map_err(|_| awaited("no store had the result"))?;
            match put {
                Ok(attempts) => {
                    for attempt in attempts {
                        say!("{}: store {} did not take a result: {}", self.node.name, attempt.store, attempt.trouble);
                    }
                    break;
                }
                Err(lost) if Instant::now() + AGAIN >= self.until => {
                    return Err(Failure(Fault::World, CODE_STORE, lost.to_string()));
                }
                Err(_) => sleep(AGAIN).await,
            }
        }
        let object = if sealed.is_some() { Object::Sealed(seal.name()) } else { Object::Plain(self.job.value) };
        self.shared.journal.keep(object, self.shared.config.store.keep_days, clock::latest(self.shared.chain_time()))?;
        self.job.stage = Stage::Stored;
        self.shared.journal.put(&self.job)?;
        Ok(())
    }
}

/// The folder of a node's results that are still needed.
pub fn results(work: &Path) -> PathBuf {
    work.join("results")
}

/// Writes a file, and returns when both file and name are on the disk. The executor's own file it could still change.
fn keep(bytes: &[u8], to: &Path) -> std::io::Result<()> {
    let mut file = File::create(to)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    to.parent().map_or(Ok(()), |place| File::open(place)?.sync_all())
}

/// Creates a node's directories.
pub fn prepare(work: &Path) -> Result<()> {
    Ok(muster_client::private_directory(&results(work))?)
}

/// Removes what a process that was killed has left of a node that is not at work: inputs that were being fetched, and results of jobs
/// that have ended.
pub fn clean(work: &Path, node: u32, journal: &Journal) -> Result<()> {
    // A file that cannot be removed keeps no node from its work.
    for file in fs::read_dir(work).into_iter().flatten().flatten() {
        if file.file_name().to_string_lossy().starts_with(".new-") {
            let _ = clear(&file.path());
        }
    }
    for file in fs::read_dir(results(work)).into_iter().flatten().flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let mut numbers = name.split('-').map_while(|part| part.parse::<u64>().ok());
        let (Some(task), Some(deadline)) = (numbers.next(), numbers.next()) else { continue };
        if let Some(job) = journal.job(node, task, deadline)?.filter(|job| job.stage == Stage::Over) {
            forget(work, &job);
        }
    }
    Ok(())
}

/// Removes a result, except one that was judged wrong: its operator must find out why.
pub fn forget(work: &Path, job: &Job) {
    if let Some(name) = job.result.as_ref().filter(|_| job.outcome.as_deref() != Some("wrong")) {
        let _ = fs::remove_file(results(work).join(name));
    }
}

#[cfg(test)]
mod tests {
    use alloy::primitives::Address;

    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_needed_stays() {
        let place = tempfile::tempdir().unwrap();
        let journal = Journal::open(place.path(), 1, Address::ZERO, None).unwrap();
        let work = place.path().join("work");
        prepare(&work).unwrap();
        fs::write(work.join(".new-input"), "half").unwrap();
        fs::write(work.join("input"), "whole").unwrap();
        for (task, stage, outcome) in [(1, Stage::Over, "done"), (2, Stage::Over, "wrong"), (3, Stage::Committed, "done")] {
            let result = Some(format!("{task}-100{}", if task == 1 { PRIVATE } else { "" }));
            fs::write(results(&work).join(result.clone().unwrap()), "a result").unwrap();
            let outcome = Some(outcome.to_string()).filter(|_| stage == Stage::Over);
            journal.put(&Job { stage, result, outcome, ..Job::new(7, task, 100, 1, 0) }).unwrap();
        }
        fs::write(results(&work).join("4-100"), "of no job").unwrap();
        clean(&work, 7, &journal).unwrap();
        let left = |place: &Path| {
            let names = fs::read_dir(place).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        };
        assert_eq!(left(&work), ["input", "results"]);
        assert_eq!(left(&results(&work)), ["2-100", "3-100", "4-100"]);
    }
}
