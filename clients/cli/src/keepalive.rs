//! When the contract's programs expire, and another year for those that soon will. docs/keepalive.md explains it.
//!
//! What has expired already has to be activated again, which script/keepalive does.

use alloy::primitives::{address, keccak256, Address, Bytes, U256};
use alloy::sol_types::{SolCall, SolError};
use anyhow::{Context, Result};
use clap::Args;
use muster_client::{show_amount, Complaint, Error, IMuster, Request};
use serde_json::json;

use crate::session::{Report, Session};

alloy::sol! {
    function programTimeLeft(address program) external view returns (uint64 left);
    function codehashKeepalive(bytes32 codehash) external payable;
    error ProgramInsufficientValue(uint256 have, uint256 want);
}

/// ArbWasm.
const ARB_WASM: Address = address!("0000000000000000000000000000000000000071");
const DAY: u64 = 86_400;
/// What the code of a program begins with.
const STYLUS: [u8; 3] = [0xef, 0xf0, 0x00];
/// Percent added to the data fee, which may rise before the transaction is included; ArbWasm returns the rest.
const MARGIN: u64 = 20;

#[derive(Args)]
pub struct Keepalive {
    /// Renew programs that expire within so many days
    #[arg(long, default_value_t = 180, value_name = "DAYS")]
    within: u64,
}

impl Keepalive {
    pub async fn run(&self, session: &Session) -> Result<Report> {
        let facets = session.muster.read(IMuster::facetAddressesCall {}).await?;
        let (mut rows, mut text, mut trouble) = (Vec::new(), Vec::new(), 0);
        for program in facets {
            // The router is no program, and does not expire, but for one of an earlier version.
            if program == session.muster.address() {
                let code = session.endpoints().code(program).await?;
                if !code.starts_with(&STYLUS) {
                    continue;
                }
            }
            let left = call(session, programTimeLeftCall { program }.abi_encode().into(), U256::ZERO).await;
            let (left, done) = match left {
                Err(Error::Node(_)) => {
                    trouble += 1;
                    (None, "does not run: script/keepalive activates it again".to_string())
                }
                Err(error) => return Err(error.into()),
                Ok(data) => {
                    let left = programTimeLeftCall::abi_decode_returns(&data).context("ArbWasm's answer cannot be read")?;
                    let done = if left > self.within * DAY { String::new() } else { self.renew(session, program).await? };
                    (Some(left), done)
                }
            };
            text.push(format!(
                "{program}  {}  {done}",
                left.map_or("expired".into(), |left| format!("{} days left", left / DAY))
            ));
            rows.push(json!({ "program": program, "secondsLeft": left, "done": done }));
        }
        anyhow::ensure!(trouble == 0, "{}\n{trouble} programs do not run", text.join("\n"));
        Ok(Report { json: json!(rows), text: text.join("\n") })
    }

    async fn renew(&self, session: &Session, program: Address) -> Result<String> {
        let code = session.endpoints().code(program).await?;
        let input: Bytes = codehashKeepaliveCall { codehash: keccak256(&code) }.abi_encode().into();
        // It says what it costs when it is offered nothing.
        let fee = match call(session, input.clone(), U256::ZERO).await {
            Ok(_) => U256::ZERO,
            Err(Error::Node(complaint)) => match wanted(&complaint) {
                Some(fee) => fee + fee * U256::from(MARGIN) / U256::from(100),
                None => return Ok(format!("cannot be renewed yet: {}", complaint.message)),
            },
            Err(error) => return Err(error.into()),
        };
        if session.options.dry_run {
            return Ok(format!("to be renewed for {}", show_amount(fee)));
        }
        let account = session.account().await?;
        let nonce = account.sender().submit(Request { to: ARB_WASM.into(), value: fee, input, ..Request::default() }).await?;
        let receipt = account.sender().wait(nonce).await?;
        Ok(if receipt.status() {
            format!("renewed: transaction {}", receipt.transaction_hash)
        } else {
            "could not be renewed".into()
        })
    }
}

async fn call(session: &Session, input: Bytes, value: U256) -> Result<Bytes, Error> {
    session.endpoints().ask("eth_call", json!([{ "to": ARB_WASM, "data": input, "value": value }, "latest"])).await
}

fn wanted(complaint: &Complaint) -> Option<U256> {
    Some(ProgramInsufficientValue::abi_decode(&complaint.undone()?).ok()?.want)
}
