//! The lines of JSON that an executor says (`executor.schema.json`).

use anyhow::{ensure, Context, Result};
use serde::Deserialize;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// The longest line that an executor may say, in bytes.
const LINE: u64 = 1 << 20;

/// A line that it says.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    Ready(Ready),
    /// What follows in the result, while it is made.
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

/// What an executor says of itself.
#[derive(Clone, Debug, Deserialize)]
pub struct Ready {
    pub name: String,
    pub version: String,
    pub kinds: Vec<String>,
    #[serde(default)]
    pub stack: String,
    /// How many tasks it takes at a time.
    #[serde(default)]
    pub at_once: usize,
    /// Whether it says pieces of results, where it is asked to.
    #[serde(default)]
    pub streams: bool,
}

/// Whose fault it is that there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// No node could run it.
    Task,
    /// This node could not.
    Node,
    /// This node did not in time.
    Time,
    /// Nobody's here: what the task asks for, or what has to come from outside, is not there, or not in time. The agent finds
    /// that out; no executor says it.
    #[serde(skip)]
    World,
}

/// The next line that an executor says.
pub async fn hear<R: AsyncBufRead + Unpin>(stdout: &mut R) -> Result<Said> {
    let mut line = Vec::new();
    let read = stdout.take(LINE).read_until(b'\n', &mut line).await?;
    ensure!(read > 0, "the executor has ended");
    ensure!(line.ends_with(b"\n"), "the executor says a line of more than {LINE} bytes");
    let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).trim_end().to_string();
    serde_json::from_slice(&line).with_context(|| format!("the executor says what is not in the schema: {shown}"))
}
