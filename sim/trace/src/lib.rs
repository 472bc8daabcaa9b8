//! Reads traces of requests and of GPU nodes, in the form of Alibaba's GenTD26 (`lora_request_trace.csv`) and
//! `openb_node_list_gpu_node.csv`, and derives what they do not say.
//!
//! | derived | how |
//! | --- | --- |
//! | work units | images per prompt x inference steps / 30, rounded up |
//! | required models | the base model, then one LoRA for each counted, named after the application group |
//! | required VRAM | by the base model's name: 8 GiB for six in ten, 16 for three, 24 for one |
//! | VRAM of a GPU | the column `vram`, else by its model: [`gpu`]; the undisclosed G2 and G3 count as 24 and 48 GiB |
//!
//! Columns may come in any order, with others between them, and under names that people give them (`GPU Model`, `vram_gb`).
//! Empty lines, a byte order mark, quotes and every kind of line end are taken as they come. Columns are parted by commas, or as
//! the heading parts them: by semicolons, as where numbers have a comma, or by tabs.

pub mod figures;
pub mod gpu;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::Read,
};

use alloy_primitives::keccak256;
use anyhow::{anyhow, bail, ensure, Context, Result};

use crate::gpu::Unread;

/// Most models that a task may require.
const MODELS_MOST: usize = 8;

/// How a request ends if it is started. The first two are in the published trace, the others in our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// SUCCEED: the node answers after its seconds.
    Answers,
    /// FAILED: the node never answers.
    Silent,
    /// ERROR: the node reports after its seconds that it cannot run the task.
    Reports,
    /// CANCELLED: the creator cancels after its seconds if the task is still queued; else the node answers.
    Cancelled,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its line in the file.
    pub line: usize,
    /// Seconds after the first one.
    pub at: u64,
    /// Its future outcome.
    pub outcome: Outcome,
    /// Seconds from its start to its end.
    pub seconds: u64,
    /// The application that asks.
    pub application: String,
    /// Units of work.
    pub units: u32,
    /// Names of the required models, the base model first.
    pub models: Vec<String>,
    /// GiB.
    pub vram: u16,
}

/// One GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Its model.
    pub name: String,
    /// GiB.
    pub vram: u16,
}

/// A column: its name, and others that it goes by.
type Column = (&'static str, &'static [&'static str]);

const REQUEST_COLUMNS: &[Column] = &[
    ("gmt_create", &[]),
    ("predict_status", &[]),
    ("exec_time_seconds", &[]),
    ("groupId", &[]),
    ("num_images_per_prompt", &[]),
    ("num_inference_steps", &[]),
    ("checkpoint_model_version_id", &[]),
    ("num_lora", &[]),
];
const COUNT: Column = ("gpu", &["gpus", "gpu count", "number of gpus", "num gpus", "n gpus", "count", "quantity"]);
const MODEL: Column = ("model", &["gpu model", "gpu name", "gpu type", "card"]);
const VRAM: Column =
    ("vram", &["vram gib", "vram gb", "gpu vram", "gpu memory", "gpu memory gib", "gpu memory gb", "gpu memory mib"]);

/// Most VRAM that a node can have, in GiB.
const VRAM_MOST: f64 = gpu::VRAM_MOST as f64;
/// The hint for a card of unknown size.
const SETTLES: &str = "a column vram, in GiB, or --vram NAME=GiB settles it";
/// Most GPUs of a machine.
const COUNT_MOST: f64 = 64.0;
/// Longest name that a node can give its GPU.
const NAME_MOST: usize = 64;

/// Reads a trace of requests, at most `limit` of them.
///
/// # Errors
/// `FILE:LINE: reason` for the first row that cannot be read.
pub fn requests(file: &str, source: impl Read, limit: usize) -> Result<Vec<Request>> {
    let mut first = None;
    let mut last = 0;
    let rows = rows(file, source, REQUEST_COLUMNS, limit, |row| {
        let at = seconds(row.text("gmt_create")?)?;
        let first = *first.get_or_insert(at);
        ensure!(at >= first.max(last), "gmt_create is before that of the row above: rows must be in order of time");
        last = at;
        let outcome = match row.text("predict_status")? {
            "SUCCEED" => Outcome::Answers,
            "FAILED" => Outcome::Silent,
            "ERROR" => Outcome::Reports,
            "CANCELLED" => Outcome::Cancelled,
            other => bail!("predict_status is {other:?}; it can be SUCCEED, FAILED, ERROR or CANCELLED"),
        };
        let images = row.number("num_images_per_prompt", 1.0, 1_000.0)?;
        let steps = row.number("num_inference_steps", 1.0, 10_000.0)?;
        let application = row.text("groupId")?.to_string();
        let base = row.text("checkpoint_model_version_id")?.to_string();
        let vram = match keccak256(&base)[0] % 10 {
            0..=5 => 8,
            6..=8 => 16,
            _ => 24,
        };
        let loras = row.number("num_lora", 0.0, (MODELS_MOST - 1) as f64)?;
        ensure!(loras.fract() == 0.0, "num_lora is {loras}, which is not a whole number");
        let loras = loras as usize;
        let mut models = vec![base];
        models.extend((1..=loras).map(|number| format!("{application}/lora-{number}")));
        Ok(Request {
            line: row.line,
            at: at - first,
            outcome,
            seconds: row.number("exec_time_seconds", 0.0, 1e6)?.round() as u64,
            application,
            units: (images * steps / 30.0).ceil() as u32,
            models,
            vram,
        })
    })?;
    Ok(rows)
}

/// Sizes of cards that a file does not say, in GiB, by [`gpu::Card::key`].
pub type Sizes = HashMap<String, u16>;

/// Reads `NAME=GiB`, as people state the size of a card.
///
/// # Errors
/// A description of the problem.
pub fn size(text: &str) -> Result<(String, u16)> {
    let (name, gib) = text.rsplit_once('=').with_context(|| format!("{text:?} is not NAME=GiB"))?;
    let gib = gib.trim().parse::<u16>().ok().filter(|gib| (1..=VRAM_MOST as u16).contains(gib));
    let gib = gib.with_context(|| format!("{text:?}: the size can be from 1 to {VRAM_MOST} GiB"))?;
    let card = gpu::read(name, Some(gib)).map_err(|reason| anyhow!("{name:?} {reason}"))?;
    ensure!(!card.key.is_empty(), "{text:?} names no card");
    Ok((card.key, gib))
}

/// Reads a list of machines: each of a machine's GPUs is one node of the network. A list without a column of numbers has one
/// GPU a row. Leaves out a row whose card's size is neither in it nor in `sizes` nor in [`gpu`]. Also returns notes for the
/// reader: the cards that were left out, and those that come in several sizes, of which one was taken.
///
/// # Errors
/// `FILE:LINE: reason` for the first row that cannot be read, and if no row is left.
pub fn fleet(file: &str, source: impl Read, sizes: &Sizes) -> Result<(Vec<Gpu>, Vec<String>)> {
    let (mut notes, mut left_out) = (BTreeSet::new(), BTreeMap::<String, usize>::new());
    // However else a card is spelled further down, it is the same one.
    let mut spellings: HashMap<(String, u16), String> = HashMap::new();
    let machines = rows(file, source, &[MODEL], usize::MAX, |row| {
        let name = row.text(MODEL.0)?;
        ensure!(
            name.len() <= NAME_MOST && name.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
            "model is {name:?}; it can be up to {NAME_MOST} characters of plain ASCII"
        );
        // No card's name is a number as small as that, and with a size beside it any name will do.
        let is_count = plain(row.heading(MODEL.0)) == COUNT.0 && name.parse::<f64>().is_ok_and(|number| number <= COUNT_MOST);
        ensure!(!is_count, "the heading has no column model, and gpu is {name}: that is how many, not which");
        let count = if row.has(COUNT.0) { row.number(COUNT.0, 1.0, COUNT_MOST)? } else { 1.0 };
        ensure!(count.fract() == 0.0, "{} is {count}, which is not a whole number", COUNT.0);
        let stated = match row.vram()? {
            None => gpu::read(name, Some(1)).ok().and_then(|card| sizes.get(&card.key).copied()),
            stated => stated,
        };
        let card = match gpu::read(name, stated) {
            Ok(card) => card,
            Err(reason) => {
                let why = if reason == Unread::Unknown { name.into() } else { format!("{name} {reason}") };
                *left_out.entry(why).or_default() += count as usize;
                return Ok(Vec::new());
            }
        };
        if !card.others.is_empty() {
            let others = card.others.iter().map(u16::to_string).collect::<Vec<_>>().join(" or ");
            let taken = format!("{name} is taken to have {} GiB, though it also comes with {others}", card.vram);
            notes.insert(format!("{file}: {taken}; {SETTLES}"));
        }
        let name = spellings.entry((card.key, card.vram)).or_insert_with(|| name.to_string()).clone();
        Ok(vec![Gpu { name, vram: card.vram }; count as usize])
    })?;
    let mut notes: Vec<_> = notes.into_iter().collect();
    if !left_out.is_empty() {
        let sum: usize = left_out.values().sum();
        let names = left_out.iter().map(|(name, count)| format!("{name} ({count})")).collect::<Vec<_>>().join(", ");
        notes.push(format!("{file}: {sum} GPUs are left out, because the VRAM of these is not known: {names}; {SETTLES}"));
    }
    let fleet: Vec<Gpu> = machines.into_iter().flatten().collect();
    ensure!(!fleet.is_empty(), notes.join("\n"));
    Ok((fleet, notes))
}

struct Row<'a> {
    line: usize,
    heading: &'a csv::StringRecord,
    columns: &'a HashMap<&'static str, usize>,
    record: &'a csv::StringRecord,
    /// The sign between columns.
    delimiter: u8,
}

impl Row<'_> {
    fn has(&self, column: &str) -> bool {
        self.columns.contains_key(column)
    }

    /// The heading's name for a column.
    fn heading(&self, column: &str) -> &str {
        self.columns.get(column).and_then(|at| self.heading.get(*at)).unwrap_or_default()
    }

    fn text(&self, column: &str) -> Result<&str> {
        let text = self.columns.get(column).and_then(|at| self.record.get(*at)).unwrap_or_default().trim();
        ensure!(!text.is_empty(), "{column} is empty");
        Ok(text)
    }

    /// A number with a point where it has a comma, as it may where commas part no columns.
    fn points(&self, number: &str) -> String {
        if self.delimiter == b',' {
            number.into()
        } else {
            number.replace(',', ".")
        }
    }

    fn number(&self, column: &str, least: f64, most: f64) -> Result<f64> {
        let text = self.text(column)?;
        let number: f64 = self.points(text).parse().map_err(|_| anyhow!("{column} is {text:?}, which is not a number"))?;
        ensure!((least..=most).contains(&number), "{column} is {text}; it can be from {least} to {most}");
        Ok(number)
    }

    /// The column of VRAM, if there is one and something in it: `24`, `24 GB`, `24 GiB`, and `24564` or `24564 MiB` as tools
    /// print it.
    fn vram(&self) -> Result<Option<u16>> {
        let Ok(text) = self.text(VRAM.0) else { return Ok(None) };
        let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit = text[number.len()..].to_ascii_lowercase();
        let size = self.points(number.trim()).parse::<f64>().ok().filter(|size| size.is_finite());
        let gib = match (size, unit.as_str()) {
            // No card has that many GiB.
            (Some(size), "") if size > VRAM_MOST => size / 1024.0,
            (Some(size), "" | "g" | "gb" | "gib") => size,
            (Some(size), "m" | "mb" | "mib") => size / 1024.0,
            _ => bail!("vram is {text:?}, which is not a number of GiB"),
        };
        let whole = gib.round();
        ensure!((1.0..=VRAM_MOST).contains(&whole), "vram is {text:?}; it can be from 1 to {VRAM_MOST} GiB");
        Ok(Some(whole as u16))
    }
}

/// Lower case, with one blank for any separators between words.
fn plain(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// The positions of the heading's columns.
///
/// # Errors
/// Two columns of one name, of which one would be taken.
fn columns(heading: &csv::StringRecord) -> Result<HashMap<&'static str, usize>> {
    let names: Vec<String> = heading.iter().map(plain).collect();
    let mut found = HashMap::new();
    for (name, others) in REQUEST_COLUMNS.iter().chain([&COUNT, &MODEL, &VRAM]) {
        // Its own name goes before the others.
        let mut spellings = std::iter::once(name).chain(*others).map(|name| plain(name));
        if let Some(at) = spellings.find_map(|spelling| names.iter().position(|name| *name == spelling)) {
            found.insert(*name, at);
        }
    }
    // Without a column of this name, `gpu` has the model.
    if !found.contains_key(MODEL.0) {
        if let Some(at) = names.iter().position(|name| name == COUNT.0) {
            found.insert(MODEL.0, at);
            found.remove(COUNT.0);
            let mut spellings = COUNT.1.iter().map(|name| plain(name));
            found.extend(spellings.find_map(|spelling| names.iter().position(|name| *name == spelling)).map(|at| (COUNT.0, at)));
        }
    }
    for at in found.values() {
        ensure!(
            names.iter().filter(|name| **name == names[*at]).count() == 1,
            "the heading has the column {} more than once",
            heading[*at].trim()
        );
    }
    Ok(found)
}

fn rows<T>(
    file: &str,
    mut source: impl Read,
    wanted: &[Column],
    limit: usize,
    mut read: impl FnMut(Row) -> Result<T>,
) -> Result<Vec<T>> {
    let mut text = Vec::new();
    source.read_to_end(&mut text).with_context(|| format!("cannot read {file}"))?;
    ensure!(!matches!(text[..], [0xff, 0xfe, ..] | [0xfe, 0xff, ..]), "{file}: it is UTF-16; save it as UTF-8");
    let delimiter = delimiter(&text);
    check_quotes(&text, delimiter).map_err(|line| anyhow!("{file}:{line}: a quote begins a field, and none ends it"))?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).delimiter(delimiter).from_reader(&text[..]);
    let heading = reader.headers().map_err(|error| anyhow!("{file}:1: {}", reason(&error)))?.clone();
    ensure!(!heading.is_empty(), "{file}: it is empty");
    let columns = columns(&heading).map_err(|error| anyhow!("{file}:1: {error}"))?;
    for (column, _) in wanted {
        ensure!(
            columns.contains_key(column),
            "{file}:1: the heading has no column {column}; it has: {}",
            heading.iter().map(str::trim).collect::<Vec<_>>().join(", ")
        );
    }
    let (mut out, mut lines) = (Vec::new(), Lines { text: &text, at: 0, line: 1 });
    for record in reader.into_records() {
        let record = record.map_err(|error| match error.position() {
            Some(position) => anyhow!("{file}:{}: {}", lines.of(position), reason(&error)),
            None => anyhow!("{file}: {}", reason(&error)),
        })?;
        if record.iter().all(|field| field.trim().is_empty()) {
            continue;
        }
        if out.len() == limit {
            break;
        }
        let line = record.position().map_or(0, |position| lines.of(position));
        ensure!(record.len() == heading.len(), "{file}:{line}: {} fields; the heading has {}", record.len(), heading.len());
        out.push(
            read(Row { line, heading: &heading, columns: &columns, record: &record, delimiter })
                .map_err(|error| anyhow!("{file}:{line}: {error:#}"))?,
        );
    }
    ensure!(!out.is_empty(), "{file}: there are no rows in it");
    Ok(out)
}

/// Looks whether each field that begins with a quote ends with one; else gives the line that it begins in. `csv` would take the next rows
/// into it, up to another quote.
fn check_quotes(text: &[u8], delimiter: u8) -> std::result::Result<(), usize> {
    let (mut line, mut begun, mut quoted, mut at) = (1, 1, false, 0);
    let mut starts = true;
    while let Some(&byte) = text.get(at) {
        let next = text.get(at + 1).copied();
        if quoted && byte == b'"' && next == Some(b'"') {
            at += 1;
        } else if quoted && byte == b'"' {
            if next.is_some_and(|next| !matches!(next, b'\r' | b'\n') && next != delimiter) {
                return Err(begun);
            }
            quoted = false;
        } else if starts && byte == b'"' {
            (quoted, begun) = (true, line);
        }
        line += usize::from(ends_line(text, at));
        starts = !quoted && (byte == delimiter || matches!(byte, b'\r' | b'\n'));
        at += 1;
    }
    if quoted {
        Err(begun)
    } else {
        Ok(())
    }
}

/// Whether a line ends with this byte. Old Macs end lines with a carriage return alone.
fn ends_line(text: &[u8], at: usize) -> bool {
    text[at] == b'\n' || text[at] == b'\r' && text.get(at + 1) != Some(&b'\n')
}

/// The sign between a heading's columns: a comma, unless it has more semicolons or tabs.
fn delimiter(text: &[u8]) -> u8 {
    let heading = text.split(|byte| matches!(byte, b'\r' | b'\n')).find(|line| !line.is_empty()).unwrap_or_default();
    let count = |sign: u8| heading.iter().filter(|byte| **byte == sign).count();
    // Of equal ones the last is taken.
    [b'\t', b';', b','].into_iter().max_by_key(|sign| count(*sign)).unwrap_or(b',')
}

/// The lines of a text, counted once from its beginning on.
struct Lines<'a> {
    text: &'a [u8],
    /// The byte that was asked for last, and its line.
    at: usize,
    line: usize,
}

impl Lines<'_> {
    /// The line that a row begins in; rows come in their order. The reader's own number is that of the first empty line before it.
    fn of(&mut self, position: &csv::Position) -> usize {
        let start = usize::try_from(position.byte()).unwrap_or(usize::MAX).min(self.text.len());
        let empty = self.text[start..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let to = (start + empty).max(self.at);
        self.line += (self.at..to).filter(|at| ends_line(self.text, *at)).count();
        self.at = to;
        self.line
    }
}

fn reason(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Utf8 { .. } => "not UTF-8".into(),
        _ => error.to_string(),
    }
}

/// Seconds since 1970 of `YYYY-MM-DD HH:MM:SS`.
fn seconds(text: &str) -> Result<u64> {
    let time = chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S").ok();
    time.and_then(|time| u64::try_from(time.and_utc().timestamp()).ok())
        .with_context(|| format!("gmt_create is {text:?}; it should be like 2024-11-15 16:57:50"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str =
        "gmt_create,predict_status,exec_time_seconds,groupId,num_images_per_prompt,num_inference_steps,checkpoint_model_version_id,num_lora";

    fn read(rows: &str) -> Result<Vec<Request>> {
        requests("trace.csv", format!("{HEADING}\n{rows}").as_bytes(), usize::MAX)
    }

    #[test]
    fn a_request_is_mapped() {
        let read = read("2024-02-28 23:59:50,SUCCEED,32.0,G0,4.0,40.0,M1,2\n2024-03-01 00:00:00,FAILED,5,G1,1,1,M2,0\n").unwrap();
        assert_eq!(read[0].units, 6, "4 x 40 / 30, rounded up");
        assert_eq!(read[0].models, ["M1", "G0/lora-1", "G0/lora-2"]);
        assert_eq!((read[0].at, read[0].seconds, read[0].outcome), (0, 32, Outcome::Answers));
        assert_eq!((read[0].line, read[1].line), (2, 3));
        assert_eq!((read[1].at, read[1].outcome), (86_410, Outcome::Silent), "2024 has a leap day");
        assert_eq!(seconds("1970-01-01 00:00:01").unwrap(), 1);
        assert_eq!(seconds("2024-11-15 16:57:50").unwrap(), 1_731_689_870);
    }

    #[test]
    fn a_malformed_row_gives_file_line_and_reason() {
        let good = "2024-11-15 16:57:50,SUCCEED,32.0,G0,1.0,30.0,M1,0\n";
        for (row, reason) in [
            ("2024-11-15 16:57:51,SUCCEED,soon,G0,1,30,M1,0", "exec_time_seconds is \"soon\", which is not a number"),
            ("2024-11-15 16:57:51,SUCCEED,-1,G0,1,30,M1,0", "exec_time_seconds is -1; it can be from 0 to 1000000"),
            ("2024-11-15 16:57:51,SUCCEED,NaN,G0,1,30,M1,0", "exec_time_seconds is NaN; it can be from 0 to 1000000"),
            ("2024-11-15 16:57:51,DONE,1,G0,1,30,M1,0", "predict_status is \"DONE\""),
            ("2024-11-15 16:57:51,SUCCEED,1,G0,1,30,M1,8", "num_lora is 8; it can be from 0 to 7"),
            ("2024-11-15 16:57:51,SUCCEED,1,G0,1,30,M1,1.5", "num_lora is 1.5, which is not a whole number"),
            ("2024-11-15 16:57:51,SUCCEED,1,\"G0,1,30,M1,0\n2024-11-15 16:57:52", "a quote begins a field, and none ends it"),
            ("2024-11-15 16:57:51,SUCCEED,1,G0,1,30,,0", "checkpoint_model_version_id is empty"),
            ("2024-11-15 16:57:51,SUCCEED,1,G0,1,30", "6 fields; the heading has 8"),
            ("15.11.2024,SUCCEED,1,G0,1,30,M1,0", "gmt_create is \"15.11.2024\""),
            ("2024-02-31 16:57:50,SUCCEED,1,G0,1,30,M1,0", "gmt_create is \"2024-02-31 16:57:50\""),
            ("2024-11-15 16:57:49,SUCCEED,1,G0,1,30,M1,0", "gmt_create is before"),
        ] {
            let error = read(&format!("{good}{row}\n")).unwrap_err().to_string();
            assert!(error.starts_with("trace.csv:3: "), "{error}");
            assert!(error.contains(reason), "{error}");
        }
        assert!(read("").unwrap_err().to_string().contains("no rows"));
        let error = gpus("nodes.csv", "sn,gpu,model\na,2,T5\nb,1,T5\n".as_bytes()).unwrap_err().to_string();
        let sentence = "nodes.csv: 3 GPUs are left out, because the VRAM of these is not known: T5 (3); \
                        a column vram, in GiB, or --vram NAME=GiB settles it";
        assert_eq!(error, sentence);
        let error = gpus("nodes.csv", "sn,gpu,memory\na,2,64\n".as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "nodes.csv:2: the heading has no column model, and gpu is 2: that is how many, not which");
        let error = gpus("nodes.csv", "gpu,vram\n2,24\n".as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "nodes.csv:2: the heading has no column model, and gpu is 2: that is how many, not which");
        assert_eq!(gpus("nodes.csv", "gpu\n4090\n".as_bytes()).unwrap().len(), 1);
        let error = gpus("nodes.csv", "sn,cards\na,T4\n".as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "nodes.csv:1: the heading has no column model; it has: sn, cards");
        // The open quote is in a column that nobody looks at, and took the other machines with it.
        for rest in ["T4,1,b\n", "T4,1,\"30 inch\nT4,1,b\n"] {
            let file = format!("model,gpu,sn\nT4,1,a\nT4,1,\"24 inch\n{rest}");
            let error = gpus("nodes.csv", file.as_bytes()).unwrap_err().to_string();
            assert_eq!(error, "nodes.csv:3: a quote begins a field, and none ends it");
        }
        // A field may go on in the next line, and have quotes.
        let file = "model,gpu,sn\nT4,1,\"a \"\"b\"\"\nc\"\n\"T4\",2,\"\"\n";
        assert_eq!(gpus("nodes.csv", file.as_bytes()).unwrap().len(), 3);
        let error = gpus("nodes.csv", "".as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "nodes.csv: it is empty");
        let error = gpus("nodes.csv", &[b'm', 0xff, b'\n'][..]).unwrap_err().to_string();
        assert_eq!(error, "nodes.csv:1: not UTF-8");
        let error = gpus("nodes.csv", &[0xff, 0xfe, b'm', 0][..]).unwrap_err().to_string();
        assert_eq!(error, "nodes.csv: it is UTF-16; save it as UTF-8");
        // Either column could be the one that counts. Of columns that nobody looks at there may be two.
        for (heading, named) in [("sn,model,sn,Model", "model"), ("GPU,n,model,gpu", "GPU"), ("gpu,count,gpu,n", "gpu")] {
            let error = gpus("nodes.csv", format!("{heading}\n1,T4,1,T4\n").as_bytes()).unwrap_err().to_string();
            assert_eq!(error, format!("nodes.csv:1: the heading has the column {named} more than once"));
        }
        assert_eq!(gpus("nodes.csv", "sn,model,sn\na,T4,b\n".as_bytes()).unwrap().len(), 1);
    }

    #[test]
    fn a_long_list_is_read_as_fast_as_it_is_long_and_its_lines_are_counted_right() {
        // Counted from the beginning for each row, lines of as many took minutes.
        let rows = 200_000;
        let mut file = "model,gpu\n".to_string() + &"T4,1\n\r\n".repeat(rows);
        assert_eq!(gpus("nodes.csv", file.as_bytes()).unwrap().len(), rows);
        file += "T4,0\n";
        let error = gpus("nodes.csv", file.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, format!("nodes.csv:{}: gpu is 0; it can be from 1 to 64", 2 * rows + 2));
        for end in ["\r", "\n", "\r\n"] {
            let file = ["model,gpu", "T4,1", "", "T4,0", ""].join(end);
            let error = gpus("nodes.csv", file.as_bytes()).unwrap_err().to_string();
            assert_eq!(error, "nodes.csv:4: gpu is 0; it can be from 1 to 64", "{end:?}");
        }
    }

    #[test]
    fn each_gpu_of_a_machine_is_a_node() {
        let gpus = gpus("nodes.csv", "sn,gpu,model\na,2,T4\nb,1,G3\n".as_bytes()).unwrap();
        assert_eq!(
            gpus.iter().map(|gpu| (gpu.name.as_str(), gpu.vram)).collect::<Vec<_>>(),
            [("T4", 16), ("T4", 16), ("G3", 48)]
        );
    }

    fn gpus(file: &str, source: impl Read) -> Result<Vec<Gpu>> {
        Ok(fleet(file, source, &Sizes::new())?.0)
    }

    #[test]
    fn cards_of_unknown_size_are_left_out_or_given_one() {
        let file = "gpu,model\n2,X-1\n1,T4\n3,New Card\n1,A100\n4,x1\n2,8090\n1,A100 60GB\n";
        let read = |sizes: &[&str]| {
            let sizes = sizes.iter().map(|text| size(text).unwrap()).collect();
            let (fleet, notes) = fleet("nodes.csv", file.as_bytes(), &sizes).unwrap();
            (fleet.iter().map(|gpu| (gpu.name.as_str().to_owned(), gpu.vram)).collect::<Vec<_>>(), notes)
        };
        let of = |name: &str, vram| (name.to_string(), vram);
        let (fleet, notes) = read(&[]);
        assert_eq!(fleet, [of("T4", 16), of("A100", 40)]);
        assert!(notes[0].contains("A100 is taken to have 40 GiB"), "{notes:?}");
        assert!(notes[1].contains("12 GPUs are left out"), "{notes:?}");
        assert!(
            notes[1].contains(
                "8090 (2), A100 60GB says 60 GiB, but that card comes with 40 or 80 (1), New Card (3), X-1 (2), x1 (4)"
            ),
            "{notes:?}"
        );
        let (fleet, notes) = read(&["x1=20", "A100=80"]);
        assert_eq!(fleet.len(), 9);
        assert_eq!((&fleet[0], &fleet[3]), (&of("X-1", 20), &of("A100", 80)));
        assert!(notes.len() == 1 && notes[0].contains("5 GPUs are left out"), "{notes:?}");
        for (text, reason) in [("x1", "is not NAME=GiB"), ("x1=0", "from 1 to 960 GiB"), ("x1=many", "from 1 to 960 GiB")] {
            assert!(size(text).unwrap_err().to_string().contains(reason), "{text}");
        }
    }

    /// The fleet of a file, written short.
    fn short(file: &str) -> String {
        let gpus = gpus("nodes.csv", file.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        gpus.iter().map(|gpu| format!("{} {}", gpu.name, gpu.vram)).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn lists_of_machines_are_taken_as_people_write_them() {
        for (file, expected) in [
            // A byte order mark, the other line end, quotes, empty lines and lines of commas.
            ("\u{feff}gpu,model\r\n2,\"RTX 4090\"\r\n\r\n,\r\n  ,\r\n1,T4\r\n", "RTX 4090 24, RTX 4090 24, T4 16"),
            // Other names, in another order, with columns that say nothing here.
            ("Host, GPU Model ,RAM (GiB),GPU_Count\nx,A100 80GB,512,2\n", "A100 80GB 80, A100 80GB 80"),
            ("name,GPU\nx,H100\n", "H100 80"),
            ("gpu,count\nL40S,2\n", "L40S 48, L40S 48"),
            ("model\nB200\n", "B200 192"),
            // Two spellings are one GPU.
            ("model\nRTX 3090\nnvidia geforce rtx3090\n", "RTX 3090 24, RTX 3090 24"),
            // A size of its own, in GiB or as tools print it, or none.
            ("model,vram\nA100,80\nA100,\nX1,\"12 GB\"\nX1,24564\nX1,81559MiB\n", "A100 80, A100 40, X1 12, X1 24, X1 80"),
            ("model,VRAM (GB)\nX1,7.6\n", "X1 8"),
            // As spreadsheets part columns where numbers have a comma, and by tabs.
            ("gpu;model;vram\n2;A100 80GB;\n1,0;X1;7,6 GB\n", "A100 80GB 80, A100 80GB 80, X1 8"),
            ("model\tgpu\nT4, 16 GB\t1\n", "T4, 16 GB 16"),
        ] {
            assert_eq!(short(file), expected, "{file:?}");
        }
        for (row, reason) in [
            ("X1,1,none", "vram is \"none\", which is not a number of GiB"),
            ("X1,1,0", "vram is \"0\"; it can be from 1 to 960 GiB"),
            ("X1,1,-8", "vram is \"-8\"; it can be"),
            ("X1,1,nan", "vram is \"nan\", which is not a number"),
            ("T4,1.5,", "gpu is 1.5, which is not a whole number"),
            ("T4,,", "gpu is empty"),
            ("Büro,1,8", "characters of plain ASCII"),
        ] {
            let error = gpus("nodes.csv", format!("model,gpu,vram\nT4,1,\n\n{row}\n").as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("nodes.csv:4: ") && error.contains(reason), "{error}");
        }
        let (_, notes) = fleet("nodes.csv", "model\nA100\nV100 16GB\nA100\n".as_bytes(), &Sizes::new()).unwrap();
        let sentence = "nodes.csv: A100 is taken to have 40 GiB, though it also comes with 80; \
                        a column vram, in GiB, or --vram NAME=GiB settles it";
        assert_eq!(notes, [sentence]);
    }
}
