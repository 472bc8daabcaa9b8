//! Reads traces of requests and of GPU nodes, in the form of Alibaba's GenTD26 (`lora_request_trace.csv`) and
//! `openb_node_list_gpu_node.csv`, and derives what they do not say.
//!
//! | derived | how |
//! | --- | --- |
//! | work units | images per prompt x inference steps / 30, rounded up |
//! | required models | the base model, then one LoRA for each counted, named after the application group |
//! | required VRAM | by the base model's name: 8 GiB for six in ten, 16 for three, 24 for one |
//! | VRAM of a GPU | by its model; the undisclosed G2 and G3 count as 24 and 48 GiB |

use std::{collections::HashMap, io::Read};

use anyhow::{anyhow, bail, ensure, Context, Result};
use alloy_primitives::keccak256;

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
    /// Seconds after the first one.
    pub at: u64,
    /// What will happen to it.
    pub outcome: Outcome,
    /// Seconds from its start to its end.
    pub seconds: u64,
    /// Who asks.
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

const REQUEST_COLUMNS: &[&str] = &[
    "gmt_create",
    "predict_status",
    "exec_time_seconds",
    "groupId",
    "num_images_per_prompt",
    "num_inference_steps",
    "checkpoint_model_version_id",
    "num_lora",
];
const GPU_COLUMNS: &[&str] = &["gpu", "model"];

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
        ensure!(at >= first.max(last), "gmt_create is before that of the row above: rows have to be in order of time");
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
        let loras = row.number("num_lora", 0.0, (MODELS_MOST - 1) as f64)? as usize;
        let mut models = vec![base];
        models.extend((1..=loras).map(|number| format!("{application}/lora-{number}")));
        Ok(Request {
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

/// Reads a list of machines: each of a machine's GPUs is one node of the network.
///
/// # Errors
/// `FILE:LINE: reason` for the first row that cannot be read.
pub fn gpus(file: &str, source: impl Read) -> Result<Vec<Gpu>> {
    let machines = rows(file, source, GPU_COLUMNS, usize::MAX, |row| {
        let name = row.text("model")?;
        let vram = match name {
            "P100" | "T4" | "V100M16" => 16,
            "A10" | "G2" => 24,
            "V100M32" => 32,
            "G3" => 48,
            other => bail!(
                "model is {other:?}, whose VRAM is not known; known are P100, T4, V100M16, V100M32, A10, G2 and G3"
            ),
        };
        let count = row.number("gpu", 1.0, 64.0)? as usize;
        Ok(vec![Gpu { name: name.to_string(), vram }; count])
    })?;
    Ok(machines.into_iter().flatten().collect())
}

struct Row<'a> {
    columns: &'a HashMap<String, usize>,
    record: &'a csv::StringRecord,
}

impl Row<'_> {
    fn text(&self, column: &str) -> Result<&str> {
        let text = self.columns.get(column).and_then(|at| self.record.get(*at)).unwrap_or_default().trim();
        ensure!(!text.is_empty(), "{column} is empty");
        Ok(text)
    }

    fn number(&self, column: &str, least: f64, most: f64) -> Result<f64> {
        let text = self.text(column)?;
        let number: f64 = text.parse().map_err(|_| anyhow!("{column} is {text:?}, which is not a number"))?;
        ensure!((least..=most).contains(&number), "{column} is {text}; it can be from {least} to {most}");
        Ok(number)
    }
}

fn rows<T>(
    file: &str,
    source: impl Read,
    wanted: &[&str],
    limit: usize,
    mut read: impl FnMut(Row) -> Result<T>,
) -> Result<Vec<T>> {
    let mut reader = csv::Reader::from_reader(source);
    let columns = reader.headers().map_err(|error| anyhow!("{file}:1: {}", reason(&error)))?;
    ensure!(!columns.is_empty(), "{file}: it is empty");
    let columns: HashMap<String, usize> =
        columns.iter().enumerate().map(|(at, name)| (name.trim().to_string(), at)).collect();
    for column in wanted {
        ensure!(columns.contains_key(*column), "{file}:1: the heading has no column {column}");
    }
    let mut out = Vec::new();
    for record in reader.into_records().take(limit) {
        let record = record.map_err(|error| match error.position() {
            Some(position) => anyhow!("{file}:{}: {}", position.line(), reason(&error)),
            None => anyhow!("{file}: {}", reason(&error)),
        })?;
        let line = record.position().map_or(0, |position| position.line());
        out.push(
            read(Row { columns: &columns, record: &record }).map_err(|error| anyhow!("{file}:{line}: {error:#}"))?,
        );
    }
    ensure!(!out.is_empty(), "{file}: there are no rows in it");
    Ok(out)
}

fn reason(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} fields; the heading has {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => "not UTF-8".into(),
        _ => error.to_string(),
    }
}

/// Seconds since 1970 of `YYYY-MM-DD HH:MM:SS`.
fn seconds(text: &str) -> Result<u64> {
    let parse = || -> Option<u64> {
        let (date, time) = text.split_once(' ')?;
        let part =
            |part: Option<&str>, range: std::ops::RangeInclusive<u64>| part?.parse().ok().filter(|n| range.contains(n));
        let mut date = date.split('-');
        let (year, month, day) =
            (part(date.next(), 1970..=9999)?, part(date.next(), 1..=12)?, part(date.next(), 1..=31)?);
        let mut time = time.split(':');
        let (hour, minute, second) =
            (part(time.next(), 0..=23)?, part(time.next(), 0..=59)?, part(time.next(), 0..=60)?);
        if date.next().is_some() || time.next().is_some() {
            return None;
        }
        // Years counted from March, so that the leap day is the last of its year.
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
        Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
    };
    parse().with_context(|| format!("gmt_create is {text:?}; it should be like 2024-11-15 16:57:50"))
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
        let read =
            read("2024-02-28 23:59:50,SUCCEED,32.0,G0,4.0,40.0,M1,2\n2024-03-01 00:00:00,FAILED,5,G1,1,1,M2,0\n")
                .unwrap();
        assert_eq!(read[0].units, 6, "4 x 40 / 30, rounded up");
        assert_eq!(read[0].models, ["M1", "G0/lora-1", "G0/lora-2"]);
        assert_eq!((read[0].at, read[0].seconds, read[0].outcome), (0, 32, Outcome::Answers));
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
            ("2024-11-15 16:57:51,SUCCEED,1,G0,1,30,,0", "checkpoint_model_version_id is empty"),
            ("2024-11-15 16:57:51,SUCCEED,1,G0,1,30", "6 fields; the heading has 8"),
            ("15.11.2024,SUCCEED,1,G0,1,30,M1,0", "gmt_create is \"15.11.2024\""),
            ("2024-11-15 16:57:49,SUCCEED,1,G0,1,30,M1,0", "gmt_create is before"),
        ] {
            let error = read(&format!("{good}{row}\n")).unwrap_err().to_string();
            assert!(error.starts_with("trace.csv:3: "), "{error}");
            assert!(error.contains(reason), "{error}");
        }
        assert!(read("").unwrap_err().to_string().contains("no rows"));
        let error = gpus("nodes.csv", "sn,gpu,model\na,2,T4\nb,1,T5\n".as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("nodes.csv:3: model is \"T5\""), "{error}");
        let error = gpus("nodes.csv", "sn,model\na,T4\n".as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "nodes.csv:1: the heading has no column gpu");
        let error = gpus("nodes.csv", "".as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "nodes.csv: it is empty");
        let error = gpus("nodes.csv", &[0xff, 0xfe, b'\n'][..]).unwrap_err().to_string();
        assert_eq!(error, "nodes.csv:1: not UTF-8");
    }

    #[test]
    fn each_gpu_of_a_machine_is_a_node() {
        let gpus = gpus("nodes.csv", "sn,gpu,model\na,2,T4\nb,1,G3\n".as_bytes()).unwrap();
        assert_eq!(
            gpus.iter().map(|gpu| (gpu.name.as_str(), gpu.vram)).collect::<Vec<_>>(),
            [("T4", 16), ("T4", 16), ("G3", 48)]
        );
    }
}
