//! A task's answer while it is made: server-sent events of its node, each with the SHA-256 of all bytes so far. So the last of these
//! hashes is the answer on the chain. docs/streams.md has the convention; clients/vectors.json has test vectors for both packages.

use std::time::Duration;

use alloy::primitives::B256;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Response, StatusCode};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use tokio::time::{sleep_until, Instant};
use url::Url;

use crate::results::{Lookup, NoResult, Outcome};
use crate::store::{below, reader};
use crate::{http, Error, IMuster, Muster};

/// The most bytes of an answer that are streamed.
pub const SHOWN: usize = 4 << 20;
/// The longest line of a stream, in bytes: a piece of 16 KiB of which every character is escaped, and a little.
const LINE: usize = 128 << 10;
/// The most bytes of a connection: of 4 MiB of which every character is escaped, in the most pieces, twice; and a little.
const WIRE: usize = 80 << 20;
/// Silence after which a stream is requested again; a node's server sends something every 15 s.
const SILENT: Duration = Duration::from_secs(45);
/// The first pause before a stream is requested again; it doubles.
const PAUSE: Duration = Duration::from_millis(250);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(4);
/// The prefix of an entry that says where a node streams its answers.
const ENTRY: &str = "stream+";
/// The most entries of a node's list that are tried.
const ENTRIES: usize = 8;

/// A piece of an answer, as an event has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Bytes of the answer before it.
    pub from: usize,
    /// Its text.
    pub text: String,
    /// SHA-256 of all bytes of the answer up to its end.
    pub after: B256,
}

/// The end of an answer, as an event has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whole {
    /// Its bytes.
    pub bytes: usize,
    /// Their SHA-256, which will be the node's answer.
    pub digest: B256,
}

/// The reason why a stream ends before the answer does, as an event has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// The reason.
    pub why: Why,
}

/// The reason why a node does not stream the rest of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// There is no answer: the node reports an error.
    Failed,
    /// The answer is longer than the limit of streams.
    Long,
    /// The node's executor gives its answers whole.
    Whole,
    /// The executor's answer differs from its pieces.
    Changed,
}

/// A stream's defects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Untrue {
    /// A hash is not that of the text so far.
    #[error("a piece does not match its hash: it was changed on its way")]
    Hash,
    /// It contradicts itself.
    #[error("the stream shows another text than it did before")]
    Differs,
    /// Something is missing.
    #[error("the stream leaves something out")]
    Gap,
    /// More than the limit.
    #[error("the stream shows more than {SHOWN} bytes")]
    TooLong,
    /// It is no such stream.
    #[error("the data are no stream of an answer")]
    Malformed,
}

/// A growing text and its hash, the same for the node that streams an answer and for its readers.
#[derive(Clone)]
pub struct Shown {
    text: String,
    hash: Context,
}

impl Default for Shown {
    fn default() -> Self {
        Self { text: String::new(), hash: Context::new(&SHA256) }
    }
}

impl Shown {
    /// The text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// SHA-256 of the text so far.
    pub fn digest(&self) -> B256 {
        B256::from_slice(self.hash.clone().finish().as_ref())
    }

    /// Appends to it.
    pub fn push(&mut self, text: &str) {
        self.hash.update(text.as_bytes());
        self.text.push_str(text);
    }

    /// Takes a piece, and returns the new text in it. An interrupted stream may begin again: the known part must then be the same.
    ///
    /// # Errors
    /// If the piece does not follow; nothing of it is taken then.
    pub fn take(&mut self, piece: &Piece) -> Result<&str, Untrue> {
        let known = self.text.len();
        if piece.from > known {
            return Err(Untrue::Gap);
        }
        if piece.from.saturating_add(piece.text.len()) > SHOWN {
            return Err(Untrue::TooLong);
        }
        let (again, new) = match piece.text.split_at_checked(known - piece.from) {
            Some(parts) => parts,
            None if known - piece.from > piece.text.len() => (piece.text.as_str(), ""),
            None => return Err(Untrue::Differs),
        };
        if self.text.as_bytes()[piece.from..][..again.len()] != *again.as_bytes() {
            return Err(Untrue::Differs);
        }
        if !new.is_empty() {
            let mut hash = self.hash.clone();
            hash.update(new.as_bytes());
            if hash.clone().finish().as_ref() != piece.after.as_slice() {
                return Err(Untrue::Hash);
            }
            self.hash = hash;
            self.text.push_str(new);
        }
        Ok(&self.text[known..])
    }

    /// Checks the stream's end against the text.
    ///
    /// # Errors
    /// If it does not match.
    pub fn ends(&self, whole: &Whole) -> Result<(), Untrue> {
        match whole.bytes.cmp(&self.text.len()) {
            std::cmp::Ordering::Greater => Err(Untrue::Gap),
            std::cmp::Ordering::Less => Err(Untrue::Differs),
            std::cmp::Ordering::Equal if whole.digest == self.digest() => Ok(()),
            std::cmp::Ordering::Equal => Err(Untrue::Hash),
        }
    }
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Piece(Piece),
    End(Whole),
    Stopped(Why),
}

/// Lines of server-sent events as they come, with bounds. Libraries for such events keep lines of any length.
#[derive(Default)]
struct Lines {
    line: Vec<u8>,
    /// Whether the last byte was a carriage return, of which a line feed is a part.
    returned: bool,
    event: String,
    data: Option<String>,
    /// Bytes read so far.
    taken: usize,
}

impl Lines {
    /// Reads on; queues the events in the order of their arrival.
    fn read(&mut self, bytes: &[u8], told: &mut std::collections::VecDeque<Told>) -> Result<(), Untrue> {
        self.taken += bytes.len();
        if self.taken > WIRE {
            return Err(Untrue::TooLong);
        }
        for byte in bytes {
            let after = std::mem::replace(&mut self.returned, *byte == b'\r');
            match byte {
                b'\n' if after => {}
                b'\n' | b'\r' => {
                    let line = std::mem::take(&mut self.line);
                    self.line(std::str::from_utf8(&line).map_err(|_| Untrue::Malformed)?, told)?;
                }
                _ if self.line.len() >= LINE => return Err(Untrue::Malformed),
                _ => self.line.push(*byte),
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &str, told: &mut std::collections::VecDeque<Told>) -> Result<(), Untrue> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            let Some(data) = self.data.take() else { return Ok(()) };
            let malformed = |_| Untrue::Malformed;
            told.extend(match event.as_str() {
                "piece" => Some(Told::Piece(serde_json::from_str(&data).map_err(malformed)?)),
                "end" => Some(Told::End(serde_json::from_str(&data).map_err(malformed)?)),
                "stopped" => Some(Told::Stopped(serde_json::from_str::<Stopped>(&data).map_err(malformed)?.why)),
                // An event of a later version.
                _ => None,
            });
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event = value.into(),
            "data" => match &mut self.data {
                None => self.data = Some(value.into()),
                Some(data) if data.len() + value.len() < LINE => *data += &format!("\n{value}"),
                Some(_) => return Err(Untrue::Malformed),
            },
            _ => {}
        }
        Ok(())
    }
}

/// News of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// More of its text, which follows the previous text.
    Text(String),
    /// The end of the stream. Only the chain proves that this is the answer.
    Whole,
    /// The node does not stream the rest.
    Stopped(Why),
    /// The node does not stream this one: answers that are compared, and private ones.
    Hidden,
    /// The stream is not credible.
    Untrue(Untrue),
    /// The node does not say where it streams answers.
    Nowhere,
}

/// One task's answer as its node streams it, read from any of the node's places, and again after an interruption.
pub struct Streaming {
    places: Vec<(Url, Client)>,
    at: usize,
    shown: Shown,
    open: Option<(Response, Lines)>,
    told: std::collections::VecDeque<Told>,
    /// The earliest time of the next connection, and the pause after it.
    next: Instant,
    pause: Duration,
    over: Option<Heard>,
}

impl Streaming {
    /// The stream of a task, from the list that its node publishes; places in a private network only if `inside`.
    pub fn published(list: &str, task: u64, inside: bool) -> Self {
        let entries = list.split(' ').filter(|entry| !entry.is_empty()).take(ENTRIES);
        let places = entries.filter_map(|entry| {
            let url = http::parse(entry.strip_prefix(ENTRY)?, &["http", "https"]).ok()?;
            let builder = Client::builder().connect_timeout(Duration::from_secs(10)).read_timeout(SILENT);
            let client = reader(&url, builder, inside)?;
            Some((below(&url, &task.to_string()), client))
        });
        Self {
            places: places.collect(),
            at: 0,
            shown: Shown::default(),
            open: None,
            told: std::collections::VecDeque::new(),
            next: Instant::now(),
            pause: PAUSE,
            over: None,
        }
    }

    /// The text so far.
    pub fn shown(&self) -> &Shown {
        &self.shown
    }

    /// The next news; after an end, that end again. Waits for as long as the node streams nothing, so the caller decides when to
    /// stop: when the chain reports the task's end. Nothing is lost when this future is dropped.
    pub async fn next(&mut self) -> Heard {
        loop {
            if let Some(over) = &self.over {
                return over.clone();
            }
            if self.places.is_empty() {
                self.over = Some(Heard::Nowhere);
                continue;
            }
            if let Some(told) = self.told.pop_front() {
                if let Some(heard) = self.hear(told) {
                    return heard;
                }
                continue;
            }
            if self.open.is_none() {
                sleep_until(self.next).await;
                self.connect().await;
                continue;
            }
            let Some((response, lines)) = &mut self.open else { continue };
            match response.chunk().await {
                Ok(Some(bytes)) => {
                    if let Err(untrue) = lines.read(&bytes, &mut self.told) {
                        self.distrust(untrue);
                    }
                }
                Ok(None) | Err(_) => self.retry(),
            }
        }
    }

    fn hear(&mut self, told: Told) -> Option<Heard> {
        match told {
            Told::Piece(piece) => match self.shown.take(&piece) {
                Ok("") => None,
                Ok(new) => {
                    let new = new.to_string();
                    self.pause = PAUSE;
                    Some(Heard::Text(new))
                }
                Err(untrue) => {
                    self.distrust(untrue);
                    None
                }
            },
            Told::End(whole) => match self.shown.ends(&whole) {
                Ok(()) => {
                    self.over = Some(Heard::Whole);
                    None
                }
                Err(untrue) => {
                    self.distrust(untrue);
                    None
                }
            },
            Told::Stopped(why) => {
                self.over = Some(Heard::Stopped(why));
                None
            }
        }
    }

    /// Something between may have altered the stream, so another place may have the true one. A place that contradicts itself is not
    /// asked again.
    fn distrust(&mut self, untrue: Untrue) {
        if untrue == Untrue::Gap {
            return self.retry();
        }
        self.places.remove(self.at);
        if self.places.is_empty() {
            self.over = Some(Heard::Untrue(untrue));
        }
        self.leave();
    }

    fn leave(&mut self) {
        self.open = None;
        self.told.clear();
        self.at = if self.places.is_empty() { 0 } else { self.at % self.places.len() };
    }

    fn retry(&mut self) {
        self.at += 1;
        self.leave();
        self.next = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(LONGEST);
    }

    async fn connect(&mut self) {
        let (url, client) = &self.places[self.at];
        let known = self.shown.text.len().to_string();
        let answer = client.get(url.clone()).header(ACCEPT, "text/event-stream").header("Last-Event-ID", known).send().await;
        match answer {
            Ok(response) if response.status() == StatusCode::OK => {
                let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
                if kind.starts_with("text/event-stream") {
                    self.open = Some((response, Lines::default()));
                } else {
                    self.distrust(Untrue::Malformed);
                }
            }
            Ok(response) if response.status() == StatusCode::FORBIDDEN => self.over = Some(Heard::Hidden),
            // Not there yet, or no longer; or too many readers already.
            Ok(_) | Err(_) => self.retry(),
        }
    }
}

/// The reason why a streamed text is not proven.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unproven {
    /// The answer is different.
    #[error("the node's answer differs from its stream: the result has the digest {answer}. Do not rely on the streamed text")]
    Other {
        /// The digest of the answer.
        answer: B256,
        /// The result, where a store has it.
        result: Option<Vec<u8>>,
    },
    /// The stream ends early, and no store has the result.
    #[error("the streamed text may be a part of the result, and is not proven: {0}")]
    NoResult(#[from] NoResult),
}

impl Muster {
    /// One task's answer while its node makes it.
    ///
    /// # Errors
    /// If the chain does not say where that node streams its answers.
    pub async fn streaming(&self, task: u64, node: u32, inside: bool) -> Result<Streaming, Error> {
        let operator = self.read(IMuster::nodeCall { number: node }).await?.operator;
        Ok(Streaming::published(&self.stores_of(operator).await?, task, inside))
    }

    /// Compares a streamed text with the answer on the chain, and returns the rest of the result from the stores.
    ///
    /// # Errors
    /// If the text is not the beginning of the result, or that cannot be determined.
    pub async fn prove(&self, outcome: &Outcome, shown: &Shown, lookup: &Lookup) -> Result<Vec<u8>, Unproven> {
        if !outcome.hashed && outcome.answers.iter().any(|answer| answer.value == shown.digest()) {
            return Ok(Vec::new());
        }
        let result = self.result(outcome, lookup).await;
        match result {
            Ok(found) => match found.bytes.strip_prefix(shown.text().as_bytes()) {
                Some(rest) => Ok(rest.to_vec()),
                None => Err(Unproven::Other { answer: crate::digest_of(&found.bytes), result: Some(found.bytes) }),
            },
            Err(missing) => Err(missing.into()),
        }
    }
}

/// Finds the texts in a growing result of the executors `openai` and `transformers`, `{"answers":[{"text":"..."}]}`. Puts an empty
/// line between several answers. Leaves anything that is no JSON object as it is.
#[derive(Default)]
pub struct AnswerTexts {
    /// Whether it is JSON, once there is any text.
    json: Option<bool>,
    in_string: bool,
    escape: String,
    /// The first surrogate of a character that JSON escapes as two.
    half: Option<u16>,
    /// The last string, the last character outside of strings, and the key of the current value.
    string: String,
    last: Option<char>,
    key: String,
    shows: bool,
    shown: usize,
}

impl AnswerTexts {
    /// The texts in the next piece.
    pub fn push(&mut self, piece: &str) -> String {
        let begins = piece.trim_start().chars().next();
        if self.json.is_none() {
            self.json = begins.map(|first| first == '{');
        }
        if self.json == Some(false) {
            return piece.into();
        }
        let mut texts = String::new();
        for letter in piece.chars() {
            self.letter(letter, &mut texts);
        }
        texts
    }

    fn letter(&mut self, letter: char, texts: &mut String) {
        if !self.in_string {
            if letter == '"' {
                (self.in_string, self.shows) = (true, self.last == Some(':') && self.key == "text");
                self.string.clear();
                if self.shows {
                    texts.push_str(if self.shown > 0 { "\n\n" } else { "" });
                    self.shown += 1;
                }
            } else if !letter.is_ascii_whitespace() {
                self.key = if letter == ':' { std::mem::take(&mut self.string) } else { String::new() };
                self.last = Some(letter);
            }
            return;
        }
        let mut said = letter;
        if !self.escape.is_empty() {
            self.escape.push(letter);
            let Some(meant) = self.escaped() else { return };
            self.escape.clear();
            said = meant;
        } else if letter == '\\' {
            self.escape.push(letter);
            return;
        } else if letter == '"' {
            self.in_string = false;
            if self.last == Some(':') {
                (self.key, self.last) = (String::new(), Some('"'));
            }
            return;
        }
        if self.shows {
            texts.push(said);
        } else if self.string.len() < 16 {
            // A key is short.
            self.string.push(said);
        }
    }

    /// The character of a complete escape.
    fn escaped(&mut self) -> Option<char> {
        let rest = &self.escape[1..];
        if !rest.starts_with('u') {
            return Some(match rest {
                "n" => '\n',
                "t" => '\t',
                "r" => '\r',
                "b" => '\u{8}',
                "f" => '\u{c}',
                other => other.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER),
            });
        }
        if rest.chars().count() < 5 {
            return None;
        }
        let unit = u16::from_str_radix(&rest[1..], 16).unwrap_or(0xfffd);
        if (0xd800..0xdc00).contains(&unit) {
            self.half = Some(unit);
            self.escape.clear();
            return None;
        }
        let units = self.half.take().into_iter().chain([unit]);
        Some(char::decode_utf16(units).next().and_then(Result::ok).unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use serde_json::Value;

    use super::*;

    fn vectors() -> Value {
        let all: Value = serde_json::from_str(include_str!("../../vectors.json")).unwrap();
        all["streams"].clone()
    }

    fn named(untrue: Untrue) -> &'static str {
        match untrue {
            Untrue::Hash => "hash",
            Untrue::Differs => "differs",
            Untrue::Gap => "gap",
            Untrue::TooLong => "tooLong",
            Untrue::Malformed => "malformed",
        }
    }

    /// Reads a stream whose bytes come in pieces of this size: the text, and how it ended.
    fn read(bytes: &[u8], at_once: usize) -> (String, &'static str) {
        let (mut shown, mut lines, mut told) = (Shown::default(), Lines::default(), VecDeque::new());
        for some in bytes.chunks(at_once) {
            if let Err(untrue) = lines.read(some, &mut told) {
                return (shown.text, named(untrue));
            }
            while let Some(one) = told.pop_front() {
                let end = match one {
                    Told::Piece(piece) => shown.take(&piece).map(drop).map(|()| ""),
                    Told::End(whole) => shown.ends(&whole).map(|()| "whole"),
                    Told::Stopped(_) => Ok("stopped"),
                };
                match end {
                    Ok("") => {}
                    Ok(end) => return (shown.text, end),
                    Err(untrue) => return (shown.text, named(untrue)),
                }
            }
        }
        (shown.text, "interrupted")
    }

    #[test]
    fn streams_are_read_as_the_other_package_reads_them() {
        let all = vectors();
        for vector in all.as_array().unwrap() {
            let (name, events) = (&vector["name"], vector["events"].as_str().unwrap());
            for at_once in [1, 7, events.len()] {
                let (text, end) = read(events.as_bytes(), at_once);
                assert_eq!((text.as_str(), end), (vector["text"].as_str().unwrap(), vector["end"].as_str().unwrap()), "{name}");
            }
        }
        assert!(all.as_array().unwrap().len() > 8);
    }

    #[test]
    fn texts_are_found_in_results_as_they_grow() {
        let all: Value = serde_json::from_str(include_str!("../../vectors.json")).unwrap();
        for vector in all["texts"].as_array().unwrap() {
            let (result, text) = (vector["result"].as_str().unwrap(), vector["text"].as_str().unwrap());
            assert_eq!(AnswerTexts::default().push(result), text, "{}", vector["name"]);
            let mut texts = AnswerTexts::default();
            let found: String = result.chars().map(|letter| texts.push(&letter.to_string())).collect();
            assert_eq!(found, text, "{}", vector["name"]);
        }
    }

    #[test]
    fn the_last_hash_is_that_of_the_whole() {
        let mut writes = Shown::default();
        let mut reads = Shown::default();
        for text in ["a ", "wörd", "", " and another"] {
            let from = writes.text().len();
            writes.push(text);
            reads.take(&Piece { from, text: text.into(), after: writes.digest() }).unwrap();
        }
        assert_eq!(reads.digest(), crate::digest_of("a wörd and another".as_bytes()));
    }

    #[test]
    fn nothing_without_bounds_is_read() {
        let mut lines = Lines::default();
        assert_eq!(lines.read(&vec![b'x'; LINE + 1], &mut VecDeque::new()), Err(Untrue::Malformed));
        let mut lines = Lines::default();
        let long = format!("data: {}\n", "x".repeat(LINE / 2)).repeat(3);
        assert_eq!(lines.read(long.as_bytes(), &mut VecDeque::new()), Err(Untrue::Malformed));
        // Comments, or the same piece over and over.
        let mut lines = Lines { taken: WIRE - 2, ..Lines::default() };
        assert_eq!(lines.read(b":\n", &mut VecDeque::new()), Ok(()));
        assert_eq!(lines.read(b":", &mut VecDeque::new()), Err(Untrue::TooLong));
        let mut shown = Shown::default();
        let text = "x".repeat(SHOWN);
        shown.push(&text);
        let more = Piece { from: SHOWN, text: "y".into(), after: B256::ZERO };
        assert_eq!(shown.take(&more).map(str::len), Err(Untrue::TooLong));
    }

    #[test]
    fn places_inside_are_left_out_unless_they_may_be() {
        let list = "https://a.example stream+http://127.0.0.1:1/stream stream+ftp://b.example stream+https://c.example/s";
        let places =
            |inside| Streaming::published(list, 7, inside).places.iter().map(|(url, _)| url.to_string()).collect::<Vec<_>>();
        assert_eq!(places(false), ["https://c.example/s/7"]);
        assert_eq!(places(true), ["http://127.0.0.1:1/stream/7", "https://c.example/s/7"]);
    }
}
