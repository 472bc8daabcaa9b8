//! Golden tasks: tasks with an executor's known answers. The hash of these answers names the stack, so that nodes with bit-identical
//! answers are grouped together. Later the same tasks show whether the answers are still the same.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail, ensure, Context, Result};
use base64::prelude::{Engine, BASE64_STANDARD as STANDARD};
use muster_client::{alloy::hex, digest_of, image_value};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use crate::executor::{absolute, clear, read_result, Executor, Ran, Run, LONGEST};

/// Digits of a stack's name.
const DIGITS: usize = 8;

/// A task whose answer is known, or will be recorded.
#[derive(Clone, Debug, Deserialize)]
struct Golden {
    kind: String,
    #[serde(default = "one")]
    units: u32,
    #[serde(default)]
    models: Vec<String>,
    input: Input,
}

fn one() -> u32 {
    1
}

/// The bytes of an input: as text, or in base 64.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Input {
    Text(String),
    Named { text: Option<String>, base64: Option<String> },
}

impl Input {
    fn bytes(&self) -> Result<Vec<u8>> {
        match self {
            Input::Text(text) | Input::Named { text: Some(text), base64: None } => Ok(text.clone().into_bytes()),
            Input::Named { text: None, base64: Some(digits) } => Ok(STANDARD.decode(digits)?),
            Input::Named { .. } => bail!("an input is either `text` or `base64`"),
        }
    }
}

/// An executor's answers to the golden tasks: the tasks' names, and the answers' digests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered(Vec<(String, [u8; 32])>);

impl Answered {
    /// The first digits of the SHA-256 of the digests.
    pub fn stack(&self) -> String {
        let all: Vec<u8> = self.0.iter().flat_map(|(_, digest)| *digest).collect();
        hex::encode(digest_of(&all))[..DIGITS].to_string()
    }
}

/// The age up to which golden answers stand for new ones, if their executor has had no other task since.
const FRESH: Duration = Duration::from_mins(10);

/// Golden answers, and the process that gave them.
pub struct Proof {
    answered: Answered,
    /// Whether the process before gave the same.
    twice: bool,
    at: Instant,
    /// [`Executor::history`] after them.
    history: (u64, u64),
}

impl Proof {
    /// One of a running executor's last answers.
    pub fn new(answered: &Answered, twice: bool, executor: &mut Executor) -> Option<Self> {
        Some(Self { answered: answered.clone(), twice, at: Instant::now(), history: executor.history()? })
    }

    /// The answers, if the executor can only give the same again: it runs, and had no task since.
    /// Those of one process count only for a self-test of a node that shares it, since others are tested in a new process.
    pub fn still(&self, twice: bool, shares: bool, executor: &mut Executor) -> Option<Answered> {
        let same = executor.history() == Some(self.history) && self.at.elapsed() < FRESH;
        (same && (self.twice || (shares && !twice))).then(|| self.answered.clone())
    }
}

/// Runs every golden task of a directory, by name; `None` if there are no such tasks.
///
/// # Errors
/// If a task cannot be read, or the executor has no answer.
pub async fn answers(executor: &mut Executor, place: &Path, work: &Path, within: Duration) -> Result<Option<Answered>> {
    let files = tasks(place)?;
    if files.is_empty() {
        return Ok(None);
    }
    let mut all = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let digest = answer(executor, &file, &name, work, within).await.with_context(|| format!("golden task {name}"))?;
        all.push((name, digest));
    }
    Ok(Some(Answered(all)))
}

/// Runs them again in a new process, and demands the same answers, before anything is paid for a name. An executor whose answers vary
/// can match no other node.
///
/// # Errors
/// If an answer differs, or is missing.
pub async fn again(executor: &mut Executor, first: &Answered, place: &Path, work: &Path, within: Duration) -> Result<()> {
    executor.stop();
    let second = answers(executor, place, work, within).await?.context("the golden tasks are gone")?;
    for ((name, one), (_, other)) in first.0.iter().zip(&second.0) {
        ensure!(
            one == other,
            "golden task {name} was answered with {} by one process of the executor and with {} by the next: equal tasks need \
             equal answers",
            hex::encode(&one[..DIGITS / 2]),
            hex::encode(&other[..DIGITS / 2]),
        );
    }
    ensure!(*first == second, "the golden tasks have changed meanwhile");
    Ok(())
}

/// The models of which the executor runs no task, each with its reason: it is given the golden tasks, needing that model instead of
/// their own. Models that the golden tasks themselves need were tried by [`answers`].
///
/// # Errors
/// If a task cannot be read.
pub async fn refused(
    executor: &mut Executor,
    place: &Path,
    models: &BTreeSet<String>,
    work: &Path,
    within: Duration,
) -> Result<Vec<(String, String)>> {
    let files = tasks(place)?;
    let mut refused = Vec::new();
    for model in models {
        let mut why = None;
        for (number, file) in files.iter().enumerate() {
            let mut run = prepare(file, &format!("model-{number}"), work, within)?;
            if run.models.contains(model) {
                why = None;
            } else {
                run.models = vec![model.clone()];
                why = match executor.run(&run, within).await {
                    Ran::Done => None,
                    Ran::Failed(_, reason) => Some(reason),
                };
            }
            let _ = (fs::remove_file(&run.input), fs::remove_file(&run.output));
            if why.is_none() {
                break;
            }
        }
        refused.extend(why.map(|why| (model.clone(), why)));
    }
    Ok(refused)
}

/// Whether the answers are the same with as many tasks at a time as the executor takes. Only then may compared tasks run beside others.
/// An executor that fails during this counts as different, and is ended.
///
/// # Errors
/// If a task cannot be read any more.
pub async fn together(executor: &mut Executor, first: &Answered, place: &Path, work: &Path, within: Duration) -> Result<bool> {
    let (files, at_once) = (tasks(place)?, executor.at_once());
    let mut all = files.iter().zip(&first.0).cycle().take(at_once.max(files.len())).enumerate().peekable();
    while all.peek().is_some() {
        let mut asked = Vec::new();
        for (number, (file, (name, digest))) in all.by_ref().take(at_once) {
            let run = prepare(file, &format!("{name}-{number}"), work, within)?;
            match timeout(within, executor.ask(&run, None)).await {
                Ok(Ok(answer)) => asked.push((run, answer, digest)),
                Ok(Err(_)) | Err(_) => {
                    executor.stop();
                    return Ok(false);
                }
            }
        }
        for (run, answer, digest) in asked {
            let alike = matches!(timeout(within, answer.answer()).await, Ok(Ok(Ran::Done))) && digest_of_result(&run)? == *digest;
            let _ = (fs::remove_file(&run.input), fs::remove_file(&run.output));
            if !alike {
                executor.stop();
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The golden tasks of a directory, by name.
fn tasks(place: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = fs::read_dir(place)
        .with_context(|| format!("no golden tasks in {}", place.display()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    Ok(files)
}

/// An executor's request for a golden task, with files of its own in `work`.
fn prepare(file: &Path, name: &str, work: &Path, within: Duration) -> Result<Run> {
    let mut value: Value = serde_json::from_slice(&fs::read(file)?)?;
    // As a message to an executor, or only its contents.
    if let Some(run) = value.get_mut("run") {
        value = run.take();
    }
    let Golden { kind, units, models, input: bytes } = serde_json::from_value(value)?;
    let id = format!("golden-{name}");
    let (input, output) = (absolute(&work.join(format!("{id}.input"))), absolute(&work.join(format!("{id}.output"))));
    clear(&input).context("the last input cannot be removed")?;
    fs::write(&input, bytes.bytes()?)?;
    clear(&output).context("the last result cannot be removed")?;
    let deadline = (std::time::UNIX_EPOCH.elapsed().unwrap_or_default() + within).as_secs();
    Ok(Run { id, kind, units, models, input, output, deadline })
}

/// The digest by which a result is compared.
fn digest_of_result(run: &Run) -> Result<[u8; 32]> {
    let result = read_result(&run.output, LONGEST)?;
    // For images, hashes are compared; the bytes are for people.
    if run.kind == "images" {
        let hashes = muster_hashes::of_result(&result, run.units as usize)?;
        return Ok(digest_of(&image_value(hashes)[..]).0);
    }
    Ok(digest_of(&result).0)
}

async fn answer(executor: &mut Executor, file: &Path, name: &str, work: &Path, within: Duration) -> Result<[u8; 32]> {
    let run = prepare(file, name, work, within)?;
    let answer = match executor.run(&run, within).await {
        Ran::Done => digest_of_result(&run),
        Ran::Failed(_, reason) => Err(anyhow!("the executor has no answer: {reason}")),
    };
    let _ = (fs::remove_file(&run.input), fs::remove_file(&run.output));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stacks_that_answer_alike_have_one_name_and_those_that_do_not_have_none() {
        let place = tempfile::tempdir().unwrap();
        let golden = place.path().join("golden");
        fs::create_dir(&golden).unwrap();
        let stack_of = async |salt: &str| {
            let script = format!(
                r#"echo "{{\"ready\":{{\"name\":\"x\",\"version\":\"1\",\"kinds\":[\"gpt\"]}}}}";
                read l; id=$(echo "$l" | sed "s/.*\"id\":\"//; s/\".*//"); (echo {salt}; cat {0}/$id.input) > {0}/$id.output;
                echo "{{\"done\":{{\"id\":\"$id\"}}}}""#,
                place.path().display()
            );
            let settings = toml::from_str(&format!("once = true\ncommand = [\"sh\", \"-c\", '''{script}''']")).unwrap();
            let mut executor = Executor::new("test", &settings);
            let within = Duration::from_secs(10);
            let first = answers(&mut executor, &golden, place.path(), within).await.unwrap()?;
            let again = again(&mut executor, &first, &golden, place.path(), within).await;
            Some(again.map(|()| first.stack()).map_err(|error| error.to_string()))
        };
        assert!(stack_of("a").await.is_none());
        fs::write(golden.join("one.json"), r#"{"run":{"id":"1","kind":"gpt","units":1,"models":[],"input":{"text":"hello"}}}"#)
            .unwrap();
        fs::write(golden.join("two.json"), r#"{"kind":"gpt","input":{"base64":"Zm9v"}}"#).unwrap();
        let name_of = async |salt: &str| stack_of(salt).await.unwrap().unwrap();
        let (first, again, other) = (name_of("a").await, name_of("a").await, name_of("b").await);
        assert_eq!(first, again);
        assert_ne!(first, other);
        assert!(first.len() == DIGITS && first.chars().all(|c| c.is_ascii_hexdigit()));
        // The number of its process, which is different each time.
        let refused = stack_of("$$").await.unwrap().unwrap_err();
        assert!(refused.starts_with("golden task one was answered with "), "{refused}");
    }

    #[tokio::test]
    async fn one_that_answers_otherwise_when_it_has_several_is_found_out() {
        let place = tempfile::tempdir().unwrap();
        let golden = place.path().join("golden");
        fs::create_dir(&golden).unwrap();
        for (name, input) in [("one", "hello"), ("two", "world")] {
            fs::write(golden.join(format!("{name}.json")), format!(r#"{{"kind":"gpt","input":"{input}"}}"#)).unwrap();
        }
        // It begins all its tasks, and answers with the output of `beside`.
        for (beside, alike) in [("0", true), ("$(wc -l < {}/log)", false)] {
            let beside = beside.replace("{}", &place.path().display().to_string());
            let script = format!(
                r#"echo "{{\"ready\":{{\"name\":\"x\",\"version\":\"1\",\"kinds\":[\"gpt\"],\"at_once\":3}}}}"
                while read -r l; do
                    id=$(echo "$l" | sed "s/.*\"id\":\"//; s/\".*//"); echo $id >> {0}/log
                    (cat {0}/$id.input; echo {beside}) > {0}/$id.output; (sleep 0.1; echo "{{\"done\":{{\"id\":\"$id\"}}}}") &
                done"#,
                place.path().display()
            );
            let settings = toml::from_str(&format!("command = [\"sh\", \"-c\", '''{script}''']")).unwrap();
            let mut executor = Executor::new("test", &settings);
            let within = Duration::from_secs(30);
            let first = answers(&mut executor, &golden, place.path(), within).await.unwrap().unwrap();
            assert_eq!(executor.at_once(), 3);
            assert_eq!(together(&mut executor, &first, &golden, place.path(), within).await.unwrap(), alike, "{beside}");
        }
    }
}
