//! When the contract's programs expire, and another year for those that will soon. docs/deploying.md explains it.
//!
//! Expired programs must be activated again, which script/keepalive does.

use std::collections::BTreeSet;
use std::path::PathBuf;

use alloy::primitives::{address, keccak256, Address, Bytes, U256};
use alloy::sol_types::{SolCall, SolError};
use anyhow::{Context, Result};
use clap::Args;
use muster_client::observe::{now, Described, Metrics};
use muster_client::{show_amount, Complaint, Error, Request};
use serde_json::json;

use crate::session::{Report, Session};

alloy::sol! {
    function programTimeLeft(address program) external view returns (uint64 left);
    function codehashKeepalive(bytes32 codehash) external payable;
    error ProgramInsufficientValue(uint256 have, uint256 want);
    error ProgramNotActivated();
    error ProgramNeedsUpgrade(uint16 version, uint16 stylusVersion);
    error ProgramExpired(uint64 ageInSeconds);
}

/// ArbWasm.
const ARB_WASM: Address = address!("0000000000000000000000000000000000000071");
const DAY: u64 = 86_400;
/// The prefix of a program's code.
pub const STYLUS: [u8; 3] = [0xef, 0xf0, 0x00];
/// Percent added to the data fee, which may rise before the transaction is included; ArbWasm returns the rest.
const MARGIN: u64 = 20;

#[derive(Args)]
pub struct Keepalive {
    /// Renew programs that expire within this many days
    #[arg(long, default_value_t = 180, value_name = "DAYS")]
    within: u64,
    /// Write metrics to this file, for a collector of text files such as node_exporter's
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
}

/// Every metric: its name without `muster_keepalive_`.
pub const ALL: [Described; 3] = [
    ("looked_timestamp_seconds", false, "When the programs were last looked at"),
    (
        "program_expires_timestamp_seconds",
        false,
        "When a program stops running unless somebody keeps it alive; 0 of one that does not run",
    ),
    ("trouble", false, "Programs that do not run, or could not be renewed"),
];

/// A program's state.
pub enum Life {
    /// It runs, for this many more seconds.
    Runs(u64),
    /// It does not run; the reason.
    Stopped(String),
}

/// The programs behind the contract's functions; and the contract itself if it is one, as in an earlier version.
pub async fn programs(session: &Session) -> Result<BTreeSet<Address>> {
    let mut all = session.muster.programs().await?;
    let own = session.muster.address();
    all.remove(&own);
    if session.endpoints().code(own).await?.starts_with(&STYLUS) {
        all.insert(own);
    }
    Ok(all)
}

/// A program's state.
pub async fn life(session: &Session, program: Address) -> Result<Life> {
    match call(session, programTimeLeftCall { program }.abi_encode().into(), U256::ZERO).await {
        Ok(data) => Ok(Life::Runs(programTimeLeftCall::abi_decode_returns(&data).context("ArbWasm's answer cannot be read")?)),
        Err(Error::Node(complaint)) => Ok(Life::Stopped(stopped(&complaint))),
        Err(error) => Err(error.into()),
    }
}

fn stopped(complaint: &Complaint) -> String {
    let data = complaint.undone().unwrap_or_default();
    if let Ok(expired) = ProgramExpired::abi_decode(&data) {
        return format!("it has expired, {} days after it was activated", expired.ageInSeconds / DAY);
    }
    if let Ok(outdated) = ProgramNeedsUpgrade::abi_decode(&data) {
        return format!("it was activated for Stylus {}, and this is {}", outdated.version, outdated.stylusVersion);
    }
    if ProgramNotActivated::abi_decode(&data).is_ok() {
        return "it was never activated".into();
    }
    complaint.message.clone()
}

impl Keepalive {
    pub async fn run(&self, session: &Session) -> Result<Report> {
        let time = session.endpoints().head().await?.timestamp;
        let metrics = Metrics::new("muster_keepalive", &ALL);
        let (mut rows, mut text, mut trouble) = (Vec::new(), Vec::new(), 0);
        for program in programs(session).await? {
            let (left, done) = match life(session, program).await? {
                Life::Stopped(why) => {
                    trouble += 1;
                    (None, format!("{why}: script/keepalive activates it again"))
                }
                Life::Runs(left) if left > self.within * DAY => (Some(left), String::new()),
                Life::Runs(left) => {
                    let (done, renewed) = self.renew(session, program).await?;
                    trouble += u32::from(!renewed);
                    let left = if let Life::Runs(left) = life(session, program).await? { left } else { left };
                    (Some(left), done)
                }
            };
            let expires = left.map_or(0, |left| time.saturating_add(left));
            metrics.set("program_expires_timestamp_seconds", &[("program", &program.to_string())], expires as f64);
            let stands = left.map_or("does not run".into(), |left| format!("{} days left", left / DAY));
            text.push(format!("{program}  {stands}  {done}"));
            rows.push(json!({ "program": program, "secondsLeft": left, "done": done }));
        }
        metrics.set("trouble", &[], trouble.into());
        metrics.set("looked_timestamp_seconds", &[], now() as f64);
        if let Some(file) = &self.metrics {
            metrics.write(file)?;
        }
        anyhow::ensure!(trouble == 0, "{}\n{trouble} programs need somebody's attention (docs/deploying.md)", text.join("\n"));
        Ok(Report { json: json!(rows), text: text.join("\n") })
    }

    /// Pays for another year; returns the outcome, and whether it needs no further attention.
    async fn renew(&self, session: &Session, program: Address) -> Result<(String, bool)> {
        let code = session.endpoints().code(program).await?;
        let input: Bytes = codehashKeepaliveCall { codehash: keccak256(&code) }.abi_encode().into();
        // A call without a fee reverts with the fee.
        let fee = match call(session, input.clone(), U256::ZERO).await {
            Ok(_) => U256::ZERO,
            Err(Error::Node(complaint)) => match wanted(&complaint) {
                Some(fee) => fee + fee * U256::from(MARGIN) / U256::from(100),
                None => return Ok((format!("cannot be renewed yet: {}", complaint.message), true)),
            },
            Err(error) => return Err(error.into()),
        };
        if session.options.dry_run {
            return Ok((format!("to be renewed for {}", show_amount(fee)), true));
        }
        let account = session.account().await?;
        let nonce = account.sender().submit(Request { to: ARB_WASM.into(), value: fee, input, ..Request::default() }).await?;
        let receipt = account.sender().wait(nonce).await?;
        Ok(if receipt.status() {
            (format!("renewed: transaction {}", receipt.transaction_hash), true)
        } else {
            ("could not be renewed".into(), false)
        })
    }
}

async fn call(session: &Session, input: Bytes, value: U256) -> Result<Bytes, Error> {
    session.endpoints().ask("eth_call", json!([{ "to": ARB_WASM, "data": input, "value": value }, "latest"])).await
}

fn wanted(complaint: &Complaint) -> Option<U256> {
    Some(ProgramInsufficientValue::abi_decode(&complaint.undone()?).ok()?.want)
}
