//! An executor's lines of JSON (`executor.schema.json`).

use std::fmt;

use anyhow::{ensure, Context, Result};
use serde::Deserialize;
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
    /// This node did not in time.
    Time,
    /// Nobody here: an input, a model or a store is missing or late. Only the agent detects this; executors do not
    /// report it.
    #[serde(skip)]
    World,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Task => "no node could run it",
            Fault::Node => "this node could not run it",
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
    ensure!(line.ends_with(b"\n"), "the executor says a line of more than {LINE} bytes");
    let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).trim_end().to_string();
    serde_json::from_slice(&line).with_context(|| format!("the executor wrote a line that is not in the schema: {shown}"))
}
