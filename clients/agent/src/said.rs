//! An executor's lines of JSON (`executor.schema.json`).

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{bail, ensure, Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// The longest line of an executor, in bytes.
const LINE: u64 = 1 << 20;

/// A line from an executor.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    Ready(Ready),
    /// The next part of the result, while it is made.
    Piece {
        id: String,
        text: String,
    },
    Done {
        id: String,
    },
    Failed {
        id: String,
        fault: Fault,
        reason: String,
    },
}

/// An executor's description of itself.
#[derive(Clone, Debug, Deserialize)]
pub struct Ready {
    pub name: String,
    pub version: String,
    pub kinds: Vec<String>,
    #[serde(default)]
    pub stack: String,
    /// The most tasks it takes at a time.
    #[serde(default)]
    pub at_once: usize,
    /// Whether it sends pieces of results on request.
    #[serde(default)]
    pub streams: bool,
}

/// The party at fault for a missing result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// No node could run it.
    Task,
    /// This node could not.
    Node,
    /// This node could not, by a bound that its operator has set. The node is sound.
    Bound,
    /// This node did not in time. Like the next, only the agent detects this, and executors do not report it.
    #[serde(skip)]
    Time,
    /// Nobody here: an input, a model or a store is missing or late.
    #[serde(skip)]
    World,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Task => "no node could run it",
            Fault::Node => "this node could not run it",
            Fault::Bound => "it is beyond a bound of this node's operator",
            Fault::Time => "this node did not run it in time",
            Fault::World => "the cause is not this node",
        })
    }
}

/// The next line of the executor.
pub async fn hear<R: AsyncBufRead + Unpin>(stdout: &mut R) -> Result<Said> {
    let mut line = Vec::new();
    let read = stdout.take(LINE).read_until(b'\n', &mut line).await?;
    ensure!(read > 0, "the executor has ended");
    let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).trim_end().to_string();
    if !line.ends_with(b"\n") {
        ensure!(line.len() < LINE as usize, "the executor says a line of more than {LINE} bytes");
        bail!("the executor has ended in the middle of a line: {shown}");
    }
    // A struct is read from a list, too, which the schema does not have.
    serde_json::from_slice::<BTreeMap<String, Map<String, Value>>>(&line)
        .and_then(|objects| serde_json::from_value(serde_json::to_value(objects)?))
        .with_context(|| format!("the executor wrote a line that is not in the schema: {shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn heard(mut said: &[u8]) -> String {
        hear(&mut said).await.map_or_else(|error| format!("{error:#}"), |said| format!("{said:?}"))
    }

    #[tokio::test]
    async fn each_way_to_break_off_is_named() {
        assert_eq!(heard(b"").await, "the executor has ended");
        assert_eq!(heard(b"Traceback").await, "the executor has ended in the middle of a line: Traceback");
        assert_eq!(heard(&vec![b'x'; 2 << 20]).await, "the executor says a line of more than 1048576 bytes");
        for line in ["Traceback", "17", "{\"done\":[\"7\"]}", "{\"done\":{\"id\":\"7\"},\"piece\":{}}"] {
            assert!(heard(format!("{line}\n").as_bytes()).await.contains(&format!("not in the schema: {line}")), "{line}");
        }
        assert_eq!(heard(b"{\"done\":{\"id\":\"7\"}}\n").await, "Done { id: \"7\" }");
    }
}
