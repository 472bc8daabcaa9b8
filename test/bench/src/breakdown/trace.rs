//! The demonstration, on a node that forgets nothing: its median calls.

use super::{Call, Layout, Parts, Replayed};
use alloy_primitives::{Address, B256};
use alloy_sol_types::SolCall;
use anyhow::{bail, ensure, Context, Result};
use brotli::enc::BrotliEncoderParams;
use muster_devnode::chain::{self, Chain, Clock, History};
use muster_devnode::{node, Devnode};
use muster_protocol::IMuster::*;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// When time begins there, as on the node that the demonstration starts itself.
const BEGINNING: u64 = 1_700_000_000;
/// Brotli's level and window by which ArbOS prices a transaction's data: `arbos/l1pricing` and `arbcompress` of Nitro.
const LEVEL: i32 = 1;
const WINDOW: i32 = 22;
/// The files that the demonstration takes if it is given none.
const SHIPPED: [&str; 2] = ["script/demo-data/requests.csv", "script/demo-data/nodes.csv"];
/// The calls that are taken apart.
const CALLS: [(&str, [u8; 4]); 5] = [
    ("createTask", createTaskCall::SELECTOR),
    ("dispatch", dispatchCall::SELECTOR),
    ("submit", submitCall::SELECTOR),
    ("commit", commitCall::SELECTOR),
    ("reveal", revealCall::SELECTOR),
];

/// A transaction that succeeded.
struct Sent {
    gas: u64,
    hash: B256,
    bytes: u64,
    compressed: u64,
}

/// Runs the demonstration with these flags.
pub fn run(flags: &[String]) -> Result<(Replayed, Vec<Call>)> {
    let chain = chain::Config {
        clock: Clock::Manual(BEGINNING),
        history: History { blocks: usize::MAX, states: usize::MAX },
        ..chain::Config::default()
    };
    let node = Devnode::start(node::Config { chain, ..node::Config::default() })?;
    let program = std::env::current_exe()?.with_file_name("muster-dev");
    let output = Command::new(&program)
        .args(["demo", "--json"])
        .args(flags)
        .env("RPC_URL", node.url())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("{} can't be run: script/bench breakdown builds it", program.display()))?;
    ensure!(output.status.success(), "the demonstration failed (see above)");
    let report: Value = serde_json::from_slice(&output.stdout).context("the demonstration's report")?;
    let muster: Address = report["address"].as_str().and_then(|a| a.parse().ok()).context("the report names no contract")?;

    let (mut sent, gas) = sent(node.chain(), muster);
    let layout = Layout::read()?;
    let mut calls = Vec::new();
    for (name, selector) in CALLS {
        let Some(mut of) = sent.remove(&selector) else { continue };
        of.sort_by_key(|sent| sent.gas);
        let median = &of[(of.len() - 1) / 2];
        // Both count the same.
        let told = report["gas"][name]["median"].as_u64();
        ensure!(told == Some(median.gas), "the demonstration's median of {name} is {told:?}, not {}", median.gas);
        let parts = Parts::of(node.chain(), median.hash, &layout)?;
        let middle = |value: fn(&Sent) -> u64| {
            let mut values: Vec<u64> = of.iter().map(value).collect();
            values.sort_unstable();
            values[(values.len() - 1) / 2]
        };
        let bytes = Some((middle(|sent| sent.bytes), middle(|sent| sent.compressed)));
        calls.push(Call { name: name.into(), queued: None, calls: of.len() as u64, cached: None, bytes, parts });
    }
    let count = |field: &str| report[field].as_u64().with_context(|| format!("the report says nothing of {field}"));
    let replayed = Replayed { flags: named(flags), files: files(flags)?, tasks: count("tasks")?, nodes: count("nodes")?, gas };
    Ok((replayed, calls))
}

/// All transactions to Muster that succeeded, by selector; and the gas of all from the first task on.
fn sent(chain: &Chain, muster: Address) -> (BTreeMap<[u8; 4], Vec<Sent>>, u64) {
    let mut all: BTreeMap<[u8; 4], Vec<Sent>> = BTreeMap::new();
    let mut gas = 0;
    for number in 0..=chain.head().header.number {
        let Some(block) = chain.block(number.into()) else { continue };
        for tx in &block.transactions {
            let Some(selector) = tx.input().first_chunk::<4>() else { continue };
            if tx.receipt.to != Some(muster) {
                continue;
            }
            if gas > 0 || *selector == createTaskCall::SELECTOR {
                gas += tx.receipt.gas_used;
            }
            if !tx.receipt.status() {
                continue;
            }
            let bytes = tx.encoded();
            all.entry(*selector).or_default().push(Sent {
                gas: tx.receipt.gas_used,
                hash: tx.receipt.transaction_hash,
                bytes: bytes.len() as u64,
                compressed: compressed(&bytes),
            });
        }
    }
    (all, gas)
}

/// Bytes that are left of these, compressed by themselves.
fn compressed(bytes: &[u8]) -> u64 {
    let (mut rest, mut out) = (bytes, Vec::new());
    let parameters = BrotliEncoderParams { quality: LEVEL, lgwin: WINDOW, ..BrotliEncoderParams::default() };
    brotli::BrotliCompress(&mut rest, &mut out, &parameters).expect("memory can be read and written");
    out.len() as u64
}

/// The flags with files by their names alone: where they lie says nothing.
fn named(flags: &[String]) -> Vec<String> {
    let name = |flag: &String| match Path::new(flag).file_name() {
        Some(name) if flag.contains('/') => name.to_string_lossy().into_owned(),
        _ => flag.clone(),
    };
    flags.iter().map(name).collect()
}

/// Names and SHA-256 of the files that the flags name, or that the demonstration takes without.
fn files(flags: &[String]) -> Result<Vec<(String, String)>> {
    let given = |flag: &str| {
        let inline = flags.iter().find_map(|f| f.strip_prefix(flag)?.strip_prefix('='));
        inline.map(str::to_owned).or_else(|| flags.iter().skip_while(|f| *f != flag).nth(1).cloned())
    };
    let mut files = Vec::new();
    for (flag, shipped) in ["--requests", "--nodes"].into_iter().zip(SHIPPED) {
        let path = given(flag).unwrap_or_else(|| shipped.into());
        let Some(name) = Path::new(&path).file_name() else { bail!("{flag} {path} is no file") };
        let bytes = std::fs::read(&path).with_context(|| format!("{flag} {path}"))?;
        let digest = alloy_primitives::hex::encode(Sha256::digest(&bytes));
        files.push((name.to_string_lossy().into_owned(), digest));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::keccak256;

    #[test]
    fn files_are_named_without_their_folders() {
        let flags = ["--requests", "/a/b/requests.csv", "--speed=200", "--limit", "2000"].map(String::from);
        assert_eq!(named(&flags), ["--requests", "requests.csv", "--speed=200", "--limit", "2000"]);
    }

    #[test]
    fn repetitions_compress() {
        assert!(compressed(&[7; 416]) < 40);
        let noise: Vec<u8> = (0..13u8).flat_map(|i| keccak256([i]).0).collect();
        assert!((416..430).contains(&compressed(&noise)), "{}", compressed(&noise));
    }
}
