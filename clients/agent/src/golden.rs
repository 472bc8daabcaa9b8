//! Golden tasks: what an executor is known to answer. Their answers' hash names the stack, so that nodes which answer bit by
//! bit alike meet, and the same tasks show later that it still answers so.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{bail, Context, Result};
use base64::prelude::{Engine, BASE64_STANDARD as STANDARD};
use muster_client::{alloy::hex, digest_of, image_value};
use serde::Deserialize;
use serde_json::Value;

use crate::executor::{absolute, Executor, Ran, Run};

/// Digits of a stack's name.
const DIGITS: usize = 8;

/// A task whose answer is known, or is to become known.
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

/// Runs every golden task of a directory, by name, and gives the first digits of the SHA-256 of the answers' digests; none if
/// there are no such tasks.
///
/// # Errors
/// If a task cannot be read, or the executor has no answer.
pub async fn stack(executor: &mut Executor, place: &Path, work: &Path, within: Duration) -> Result<Option<String>> {
    let mut files: Vec<PathBuf> = fs::read_dir(place)
        .with_context(|| format!("no golden tasks in {}", place.display()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    if files.is_empty() {
        return Ok(None);
    }
    let mut all = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let digest = answer(executor, &file, &name, work, within).await.with_context(|| format!("golden task {name}"))?;
        all.extend_from_slice(&digest);
    }
    Ok(Some(hex::encode(digest_of(&all))[..DIGITS].to_string()))
}

async fn answer(executor: &mut Executor, file: &Path, name: &str, work: &Path, within: Duration) -> Result<[u8; 32]> {
    let mut value: Value = serde_json::from_slice(&fs::read(file)?)?;
    // As a message to an executor has it, or what is in it.
    if let Some(run) = value.get_mut("run") {
        value = run.take();
    }
    let golden: Golden = serde_json::from_value(value)?;
    let (input, output) = (absolute(&work.join("golden.input")), absolute(&work.join("golden.output")));
    fs::write(&input, golden.input.bytes()?)?;
    let _ = fs::remove_file(&output);
    let deadline = std::time::UNIX_EPOCH.elapsed().unwrap_or_default() + within;
    let run = Run {
        id: format!("golden-{name}"),
        kind: golden.kind,
        units: golden.units,
        models: golden.models,
        input,
        output: output.clone(),
        deadline: deadline.as_secs(),
    };
    match executor.run(&run, within).await {
        Ran::Done => {
            let result = fs::read(output)?;
            // Of images the hashes are what is compared; their bytes are for people.
            if run.kind == "images" {
                let hashes = muster_hashes::of_result(&result, run.units as usize)?;
                return Ok(digest_of(&image_value(hashes)[..]).0);
            }
            Ok(digest_of(&result).0)
        }
        Ran::Failed(_, reason) => bail!("the executor has no answer: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stacks_that_answer_alike_have_one_name() {
        let place = tempfile::tempdir().unwrap();
        let golden = place.path().join("golden");
        fs::create_dir(&golden).unwrap();
        let stack_of = async |salt: &str| {
            let script = format!(
                r#"echo "{{\"ready\":{{\"name\":\"x\",\"version\":\"1\",\"kinds\":[\"gpt\"]}}}}";
                read l; (echo {salt}; cat {0}/golden.input) > {0}/golden.output; id=$(echo "$l" | sed "s/.*\"id\":\"//; s/\".*//");
                echo "{{\"done\":{{\"id\":\"$id\"}}}}""#,
                place.path().display()
            );
            let settings = toml::from_str(&format!("once = true\ncommand = [\"sh\", \"-c\", '''{script}''']")).unwrap();
            let mut executor = Executor::new("test", &settings);
            stack(&mut executor, &golden, place.path(), Duration::from_secs(10)).await.unwrap()
        };
        assert_eq!(stack_of("a").await, None);
        fs::write(golden.join("one.json"), r#"{"run":{"id":"1","kind":"gpt","units":1,"models":[],"input":{"text":"hello"}}}"#)
            .unwrap();
        fs::write(golden.join("two.json"), r#"{"kind":"gpt","input":{"base64":"Zm9v"}}"#).unwrap();
        let (first, again, other) = (stack_of("a").await.unwrap(), stack_of("a").await.unwrap(), stack_of("b").await.unwrap());
        assert_eq!(first, again);
        assert_ne!(first, other);
        assert!(first.len() == DIGITS && first.chars().all(|c| c.is_ascii_hexdigit()));
    }
}
