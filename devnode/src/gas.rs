//! `muster-devnode gas TX`: where the gas of a transaction went, as a table and as a flame graph.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use alloy_json_abi::JsonAbi;
use alloy_primitives::{Address, FixedBytes, B256};
use clap::Parser;
use muster_devnode::endpoint::{Endpoint, Settings};
use muster_devnode::trace::{Profile, ProfileFrame};
use serde_json::{json, Value};

type Names = BTreeMap<FixedBytes<4>, String>;

/// Where the gas of a mined transaction went: base cost, calldata, starts of programs, host calls by kind, WASM,
/// nested calls, down to 60 within each other.
#[derive(Parser)]
pub struct Args {
    /// Hash of the transaction
    tx: B256,
    /// The node that mined it, a muster-devnode
    #[arg(long, env = "RPC_URL", default_value = "http://127.0.0.1:8547")]
    rpc_url: String,
    /// Write a flame graph
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write folded stacks, one line for each, as flame graph tools read them
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    /// Print the table as Markdown
    #[arg(long)]
    markdown: bool,
    /// List the storage words that were read or written, and their cost
    #[arg(long)]
    words: bool,
    /// Name functions as this JSON ABI does; may be given several times
    #[arg(long, value_name = "FILE")]
    abi: Vec<PathBuf>,
}

/// Asks the node and writes the answer.
pub fn run(args: &Args) -> Result<(), String> {
    let profile = fetch(&args.rpc_url, args.tx)?;
    let names = names(&args.abi)?;
    let stacks = folded(&profile, &names);
    print!("{}", table(&profile, &names, args.markdown));
    if args.words {
        print!("{}", words(&profile, args.markdown));
    }
    if let Some(path) = &args.folded {
        let mut file = create(path)?;
        stacks.iter().try_for_each(|line| writeln!(file, "{line}")).map_err(|e| at(path, &e))?;
    }
    if let Some(path) = &args.svg {
        let mut options = inferno::flamegraph::Options::default();
        options.title = format!("Gas of {}", args.tx);
        options.count_name = "gas".into();
        inferno::flamegraph::from_lines(&mut options, stacks.iter().map(String::as_str), create(path)?)
            .map_err(|e| at(path, &e))?;
    }
    Ok(())
}

fn create(path: &Path) -> Result<File, String> {
    File::create(path).map_err(|e| at(path, &e))
}

fn at(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

fn fetch(url: &str, tx: B256) -> Result<Profile, String> {
    let endpoint = Endpoint::new(Settings { retries: 0, ..Settings::new(url) })?;
    let profile =
        endpoint.one("muster_gasProfile", json!([tx])).map_err(|e| format!("{e}; is a muster-devnode running there?"))?;
    serde_json::from_value(profile).map_err(|e| format!("{url} gave no profile: {e}"))
}

fn names(files: &[PathBuf]) -> Result<Names, String> {
    let mut names = Names::new();
    for path in files {
        let text = std::fs::read_to_string(path).map_err(|e| at(path, &e))?;
        let value: Value = serde_json::from_str(&text).map_err(|e| at(path, &e))?;
        // An ABI by itself, or as a member of a compiler's output.
        let abi = if value.is_array() { value } else { value["abi"].clone() };
        let abi: JsonAbi = serde_json::from_value(abi).map_err(|e| at(path, &e))?;
        names.extend(abi.functions().map(|f| (f.selector(), f.name.clone())));
    }
    Ok(names)
}

/// The label of a frame.
fn label(frame: &ProfileFrame, names: &Names) -> String {
    let to = frame.to.map_or_else(|| "nobody".to_owned(), |to| short(&to.to_string()));
    let called = match &frame.selector {
        Some(selector) => names.get(selector).cloned().unwrap_or_else(|| selector.to_string()),
        None => String::new(),
    };
    let label = format!("{} {to} {called}", frame.kind);
    label.trim_end().to_owned()
}

/// The beginning and the end of an address.
fn short(address: &str) -> String {
    match (address.get(..8), address.get(address.len().saturating_sub(4)..)) {
        (Some(head), Some(tail)) => format!("{head}..{tail}"),
        _ => address.to_owned(),
    }
}

/// Gas of so much ink.
fn gas(ink: u64, price: u64) -> f64 {
    ink as f64 / price.max(1) as f64
}

/// A frame's own cost, by its labels in a flame graph.
fn own(frame: &ProfileFrame) -> Vec<(&str, f64, u64)> {
    let mut parts = Vec::new();
    if frame.wasm {
        parts.push(("program start", frame.start as f64, 1));
        parts.push(("memory pages", frame.pages as f64, 1));
        parts.extend(frame.hostios.iter().map(|(name, s)| (name.as_str(), gas(s.amount, frame.ink_price), s.count)));
        parts.push(("WASM", gas(frame.wasm_ink(), frame.ink_price), 1));
    } else {
        parts.extend(frame.ops.iter().map(|(name, s)| (name.as_str(), s.amount as f64, s.count)));
        let other = if frame.ops.is_empty() { "precompile" } else { "code deposit, failure" };
        parts.push((other, frame.other_gas() as f64, 1));
    }
    parts.retain(|(_, gas, _)| *gas > 0.0);
    parts
}

fn folded(profile: &Profile, names: &Names) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |stack: &str, gas: f64| {
        let gas = gas.round();
        if gas > 0.0 {
            lines.push(format!("{stack} {gas}"));
        }
    };
    line("transaction;base", profile.intrinsic.base as f64);
    line("transaction;calldata", profile.intrinsic.calldata as f64);
    line("transaction;creation and lists", profile.intrinsic.other as f64);
    line("transaction;calldata floor", profile.floor as f64);
    fn walk(stack: &str, frame: &ProfileFrame, names: &Names, line: &mut impl FnMut(&str, f64)) {
        let stack = format!("{stack};{}", label(frame, names));
        for (name, gas, _) in own(frame) {
            line(&format!("{stack};{name}"), gas);
        }
        for inner in &frame.calls {
            walk(&stack, inner, names, line);
        }
    }
    walk("transaction", &profile.frame, names, &mut line);
    lines
}

/// Sums over all frames.
#[derive(Default)]
struct Sums {
    starts: (f64, u64),
    pages: f64,
    hostios: BTreeMap<String, (f64, u64)>,
    wasm: f64,
    ops: BTreeMap<String, (f64, u64)>,
    other: f64,
}

impl Sums {
    fn add(&mut self, frame: &ProfileFrame) {
        if frame.wasm {
            self.starts.0 += frame.start as f64;
            self.starts.1 += 1;
            self.pages += frame.pages as f64;
            self.wasm += gas(frame.wasm_ink(), frame.ink_price);
            for (name, spent) in &frame.hostios {
                let sum = self.hostios.entry(name.clone()).or_default();
                sum.0 += gas(spent.amount, frame.ink_price);
                sum.1 += spent.count;
            }
        } else {
            for (name, spent) in &frame.ops {
                let sum = self.ops.entry(name.clone()).or_default();
                sum.0 += spent.amount as f64;
                sum.1 += spent.count;
            }
            self.other += frame.other_gas() as f64;
        }
        frame.calls.iter().for_each(|inner| self.add(inner));
    }
}

/// Rows of a name, gas and how often; those below another are set in.
fn rows(profile: &Profile) -> Vec<(usize, String, f64, Option<u64>)> {
    let mut sums = Sums::default();
    sums.add(&profile.frame);
    let mut rows = vec![
        (0, "base".to_owned(), profile.intrinsic.base as f64, None),
        (0, "calldata".to_owned(), profile.intrinsic.calldata as f64, None),
        (0, "creation, access list, authorizations".to_owned(), profile.intrinsic.other as f64, None),
        (0, "starts of programs".to_owned(), sums.starts.0, Some(sums.starts.1)),
        (0, "memory pages".to_owned(), sums.pages, None),
    ];
    let mut group = |title: &str, parts: BTreeMap<String, (f64, u64)>| {
        let (gas, count) = parts.values().fold((0.0, 0), |(gas, count), part| (gas + part.0, count + part.1));
        rows.push((0, title.to_owned(), gas, Some(count)));
        let mut parts: Vec<_> = parts.into_iter().collect();
        parts.sort_by(|a, b| b.1 .0.total_cmp(&a.1 .0));
        rows.extend(parts.into_iter().map(|(name, (gas, count))| (1, name, gas, Some(count))));
    };
    group("host calls", sums.hostios);
    group("EVM instructions", sums.ops);
    rows.push((0, "WASM instructions".to_owned(), sums.wasm, None));
    rows.push((0, "precompiles, code deposit, failures".to_owned(), sums.other, None));
    rows.push((0, "calldata floor".to_owned(), profile.floor as f64, None));
    rows.push((0, "refund".to_owned(), -(profile.refund as f64), None));
    rows.retain(|(_, _, gas, _)| *gas != 0.0);
    rows
}

fn table(profile: &Profile, names: &Names, markdown: bool) -> String {
    let mut out = String::new();
    let total = profile.gas_used as f64;
    let share = |gas: f64| 100.0 * gas / total.max(1.0);
    let count = |count: Option<u64>| count.map_or_else(String::new, |n| n.to_string());
    // Writing into a string doesn't fail.
    if markdown {
        let _ = writeln!(out, "| what | gas | share | how often |\n| --- | ---: | ---: | ---: |");
        for (depth, what, gas, n) in rows(profile) {
            let what = if depth > 0 { format!("\u{2003}`{what}`") } else { what };
            let _ = writeln!(out, "| {what} | {gas:.0} | {:.1} % | {} |", share(gas), count(n));
        }
        let _ = writeln!(out, "| **in all** | **{}** | | |\n", profile.gas_used);
    } else {
        let _ = writeln!(out, "{:<42}{:>12}{:>9}{:>8}", "what", "gas", "share", "times");
        for (depth, what, gas, n) in rows(profile) {
            let what = format!("{}{what}", "  ".repeat(depth));
            let _ = writeln!(out, "{what:<42}{gas:>12.0}{:>7.1} %{:>8}", share(gas), count(n));
        }
        let _ = writeln!(out, "{:<42}{:>12}\n", "in all", profile.gas_used);
    }
    if markdown {
        let _ = writeln!(out, "| frame | gas, inner frames included | own |\n| --- | ---: | ---: |");
    } else {
        let _ = writeln!(out, "{:<62}{:>10}{:>10}", "frame", "gas", "own");
    }
    frames(&mut out, &profile.frame, names, 0, markdown);
    out
}

fn frames(out: &mut String, frame: &ProfileFrame, names: &Names, depth: usize, markdown: bool) {
    let below: u64 = frame.calls.iter().map(|c| c.gas_used).sum();
    let own = frame.gas_used.saturating_sub(below);
    let failed = frame.error.as_ref().map_or_else(String::new, |e| format!(" ({e})"));
    let label = format!("{}{failed}", label(frame, names));
    if markdown {
        let _ = writeln!(out, "| {}{label} | {} | {own} |", "\u{2003}".repeat(depth), frame.gas_used);
    } else {
        let _ = writeln!(out, "{:<62}{:>10}{own:>10}", format!("{}{label}", "  ".repeat(depth)), frame.gas_used);
    }
    for inner in &frame.calls {
        frames(out, inner, names, depth + 1, markdown);
    }
}

/// Reads and writes of a word: how often, and their gas.
#[derive(Clone, Copy, Default)]
struct Touched {
    reads: (u64, f64),
    writes: (u64, f64),
}

/// Storage words of all frames, the most expensive first.
fn words(profile: &Profile, markdown: bool) -> String {
    fn add(sums: &mut BTreeMap<(Option<Address>, B256), Touched>, frame: &ProfileFrame) {
        // A program's frame counts ink, EVM code's gas.
        let price = if frame.wasm { frame.ink_price } else { 1 };
        for (slot, word) in &frame.words {
            let sum = sums.entry((frame.account, *slot)).or_default();
            sum.reads.0 += word.reads.count;
            sum.reads.1 += gas(word.reads.amount, price);
            sum.writes.0 += word.writes.count;
            sum.writes.1 += gas(word.writes.amount, price);
        }
        frame.calls.iter().for_each(|inner| add(sums, inner));
    }
    let mut sums = BTreeMap::new();
    add(&mut sums, &profile.frame);
    let mut words: Vec<_> = sums.into_iter().collect();
    words.sort_by(|(_, a), (_, b)| (b.reads.1 + b.writes.1).total_cmp(&(a.reads.1 + a.writes.1)));
    let head = if markdown {
        "\n| account | storage word | reads | gas | writes | gas |\n| --- | --- | ---: | ---: | ---: | ---: |\n".to_owned()
    } else {
        format!("\n{:<16}{:<68}{:>5}{:>9}{:>8}{:>9}\n", "account", "storage word", "reads", "gas", "writes", "gas")
    };
    words.into_iter().fold(head, |mut out, ((account, slot), Touched { reads, writes })| {
        let account = account.map_or_else(String::new, |account| short(&account.to_string()));
        let _ = if markdown {
            writeln!(out, "| {account} | `{slot}` | {} | {:.0} | {} | {:.0} |", reads.0, reads.1, writes.0, writes.1)
        } else {
            writeln!(out, "{account:<16}{:<68}{:>5}{:>9.0}{:>8}{:>9.0}", slot.to_string(), reads.0, reads.1, writes.0, writes.1)
        };
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_whole() {
        let inner = json!({
            "type": "CALL", "to": "0x0000000000000000000000000000000000000002", "selector": null, "wasm": false,
            "gasUsed": 500, "pages": 0, "start": 0, "inkPrice": 0, "hostios": {},
            "ops": {"SLOAD": {"count": 1, "amount": 480}}, "calls": []
        });
        let profile: Profile = serde_json::from_value(json!({
            "gasUsed": 25_000, "intrinsic": {"base": 21_000, "calldata": 100, "other": 0}, "refund": 0, "floor": 0,
            "frame": {
                "type": "CALL", "to": "0x0000000000000000000000000000000000000001", "selector": "0x12345678", "wasm": true,
                "gasUsed": 3_900, "pages": 0, "start": 1_000, "inkPrice": 10_000,
                "hostios": {"storage_load_bytes32": {"count": 1, "amount": 21_000_000}}, "ops": {}, "calls": [inner],
                "account": "0x0000000000000000000000000000000000000001",
                "words": {B256::ZERO.to_string(): {
                    "reads": {"count": 1, "amount": 21_000_000}, "writes": {"count": 0, "amount": 0}
                }}
            }
        }))
        .unwrap();
        let names = Names::from([(FixedBytes([0x12, 0x34, 0x56, 0x78]), "transfer".to_owned())]);
        let sum: f64 = rows(&profile).iter().filter(|r| r.0 == 0).map(|r| r.2).sum();
        assert_eq!(sum, 25_000.0);
        let lines = folded(&profile, &names);
        let whole: u64 = lines.iter().map(|l| l.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(whole, 25_000);
        assert!(lines.contains(&"transaction;CALL 0x000000..0001 transfer;WASM 300".to_owned()), "{lines:?}");
        assert!(table(&profile, &names, false).contains("storage_load_bytes32"));
        let words = words(&profile, true);
        assert!(words.ends_with(&format!("| 0x000000..0001 | `{}` | 1 | 2100 | 0 | 0 |\n", B256::ZERO)), "{words}");
    }
}
