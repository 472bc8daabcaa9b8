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
    error ProgramKeepaliveTooSoon(uint64 ageInSeconds);
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
    ("trouble", false, "Programs that do not run, could not be looked at, or are due and were not renewed"),
];

/// A program's state.
pub enum Life {
    /// It runs, for this many more seconds.
    Runs(u64),
    /// It does not run; the reason.
    Stopped(String),
}

/// A program after a look at it.
struct Row {
    /// Its state; none if no node told.
    life: Option<Life>,
    /// The step taken, or the obstacle.
    done: String,
    /// Whether it needs somebody's attention.
    trouble: bool,
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
            let row = self.tend(session, program).await;
            trouble += u32::from(row.trouble);
            let (left, stands) = match row.life {
                Some(Life::Runs(left)) => (Some(left), format!("{} days left", left / DAY)),
                Some(Life::Stopped(_)) => (None, "does not run".into()),
                None => (None, "is not known".into()),
            };
            // Nobody knows when a program expires that no node tells of.
            if row.life.is_some() {
                let expires = left.map_or(0, |left| time.saturating_add(left));
                metrics.set("program_expires_timestamp_seconds", &[("program", &program.to_string())], expires as f64);
            }
            text.push(format!("{program}  {stands}  {}", row.done));
            rows.push(json!({ "program": program, "secondsLeft": left, "done": row.done }));
        }
        metrics.set("trouble", &[], trouble.into());
        metrics.set("looked_timestamp_seconds", &[], now() as f64);
        if let Some(file) = &self.metrics {
            metrics.write(file)?;
        }
        anyhow::ensure!(trouble == 0, "{}\n{trouble} programs need somebody's attention (docs/deploying.md)", text.join("\n"));
        Ok(Report { json: json!(rows), text: text.join("\n") })
    }

    /// Looks at a program, and renews it if that is due. An error is its row's alone: the others must not expire meanwhile.
    async fn tend(&self, session: &Session, program: Address) -> Row {
        let left = match life(session, program).await {
            Ok(Life::Runs(left)) => left,
            Ok(Life::Stopped(why)) => {
                let done = format!("{why}: script/keepalive activates it again");
                return Row { life: Some(Life::Stopped(why)), done, trouble: true };
            }
            Err(error) => return Row { life: None, done: format!("{error:#}"), trouble: true },
        };
        if left > self.within.saturating_mul(DAY) {
            return Row { life: Some(Life::Runs(left)), done: String::new(), trouble: false };
        }
        let (done, well) = match self.renew(session, program).await {
            Ok(outcome) => outcome,
            Err(error) => (format!("could not be renewed: {error:#}"), false),
        };
        let left = if let Ok(Life::Runs(left)) = life(session, program).await { left } else { left };
        Row { life: Some(Life::Runs(left)), done, trouble: !well }
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
                None => return Ok(refused(&complaint)),
            },
            Err(error) => return Err(error.into()),
        };
        if session.options.dry_run {
            return Ok((format!("to be renewed for {}", show_amount(fee)), false));
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

/// Why a program is not renewed, and whether that needs no attention: only where it is too early.
fn refused(complaint: &Complaint) -> (String, bool) {
    match ProgramKeepaliveTooSoon::abi_decode(&complaint.undone().unwrap_or_default()) {
        Ok(early) => (format!("cannot be renewed yet, {} days after it was activated", early.ageInSeconds / DAY), true),
        Err(_) => (format!("cannot be renewed: {}", complaint.message), false),
    }
}

fn wanted(complaint: &Complaint) -> Option<U256> {
    Some(ProgramInsufficientValue::abi_decode(&complaint.undone()?).ok()?.want)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_that_is_too_young_needs_no_attention() {
        let complaint = |code, message: &str, data: Option<Vec<u8>>| Complaint {
            code,
            message: message.into(),
            data: data.map(|data| json!(Bytes::from(data))),
        };
        let early = ProgramKeepaliveTooSoon { ageInSeconds: 3 * DAY }.abi_encode();
        let (said, well) = refused(&complaint(3, "execution reverted", Some(early)));
        assert!(well && said == "cannot be renewed yet, 3 days after it was activated", "{said}");
        let expired = ProgramExpired { ageInSeconds: 366 * DAY }.abi_encode();
        for (code, message, data) in [
            (-32005, "too many requests", None),
            (3, "execution reverted", None),
            (3, "execution reverted", Some(expired)),
            (-32000, "header not found", None),
        ] {
            let (said, well) = refused(&complaint(code, message, data));
            assert!(!well && said == format!("cannot be renewed: {message}"), "{said}");
        }
    }
}
