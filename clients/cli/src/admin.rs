//! What the owner of a network does, and what anybody may put into effect once its time has come.

use std::sync::LazyLock;

use alloy::primitives::{Address, U256};
use anyhow::{Context, Result};
use clap::Subcommand;
use muster_client::IMuster;
use serde_json::{json, Value};

use crate::session::{Report, Session};

#[derive(Subcommand)]
pub enum Command {
    /// Every parameter, its value and its bounds
    Parameters,
    /// Change a parameter at once, or propose the change of one that reaches into stakes
    Set {
        /// Its name, or its number
        parameter: String,
        /// In the parameter's unit
        value: U256,
    },
    /// Put a proposed parameter into effect (anybody may)
    Accept {
        /// Its name, or its number
        parameter: String,
    },
    /// Stop new tasks and joins
    Stop,
    /// Allow new tasks and joins again
    Start,
    /// Offer the ownership to another account
    TransferOwnership {
        /// Who is to accept it
        to: Address,
    },
    /// Accept the ownership that was offered to the account
    AcceptOwnership,
    /// Propose another treasury; the zero address withdraws the proposal
    ProposeTreasury {
        /// Who is to get the protocol's income
        treasury: Address,
    },
    /// Put a proposed treasury into effect (anybody may)
    AcceptTreasury,
    /// Pay the protocol's income out to the treasury (anybody may)
    Sweep,
    /// Say that the nodes of a GPU group answer bit by bit alike
    ListGpu {
        /// The group's number
        group: u32,
        /// That they no longer do
        #[arg(long)]
        remove: bool,
    },
}

/// abi/parameters.json.
static PARAMETERS: LazyLock<Vec<Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("parameters.json")).expect("abi/parameters.json is JSON"));

fn find(text: &str) -> Result<(u8, bool)> {
    let number = text.parse::<u64>().ok();
    let is = |parameter: &&Value| parameter["name"] == text || number.is_some() && parameter["number"].as_u64() == number;
    let found = PARAMETERS.iter().find(is);
    let found = found.with_context(|| format!("there is no parameter {text}: muster admin parameters"))?;
    Ok((found["number"].as_u64().unwrap_or_default() as u8, found["delayed"] == true))
}

impl Command {
    pub async fn run(&self, session: &Session) -> Result<Report> {
        let none = U256::ZERO;
        match self {
            Command::Parameters => parameters(session).await,
            Command::Set { parameter, value } => match find(parameter)? {
                (which, true) => {
                    session
                        .call(
                            IMuster::proposeParameterCall { parameter: which, value: *value },
                            none,
                            &format!("{parameter} proposed"),
                        )
                        .await
                }
                (which, false) => {
                    session
                        .call(IMuster::setParameterCall { parameter: which, value: *value }, none, &format!("{parameter} set"))
                        .await
                }
            },
            Command::Accept { parameter } => {
                session
                    .call(IMuster::acceptParameterCall { parameter: find(parameter)?.0 }, none, &format!("{parameter} in effect"))
                    .await
            }
            Command::Stop => session.call(IMuster::setPausedCall { on: true }, none, "new tasks and joins stopped").await,
            Command::Start => session.call(IMuster::setPausedCall { on: false }, none, "new tasks and joins allowed").await,
            Command::TransferOwnership { to } => {
                session.call(IMuster::transferOwnershipCall { newOwner: *to }, none, &format!("ownership offered to {to}")).await
            }
            Command::AcceptOwnership => session.call(IMuster::acceptOwnershipCall {}, none, "ownership accepted").await,
            Command::ProposeTreasury { treasury } => {
                session
                    .call(IMuster::proposeTreasuryCall { treasury: *treasury }, none, &format!("treasury {treasury} proposed"))
                    .await
            }
            Command::AcceptTreasury => session.call(IMuster::acceptTreasuryCall {}, none, "treasury in effect").await,
            Command::Sweep => session.call(IMuster::sweepTreasuryCall {}, none, "income paid out").await,
            Command::ListGpu { group, remove } => {
                let call = IMuster::listGpuGroupCall { group: *group, listed: !remove };
                session
                    .call(call, none, &format!("group {group} {}", if *remove { "taken off the list" } else { "listed" }))
                    .await
            }
        }
    }
}

async fn parameters(session: &Session) -> Result<Report> {
    let (mut text, mut all) = (Vec::new(), Vec::new());
    for (which, parameter) in PARAMETERS.iter().enumerate() {
        let now = session.muster.read(IMuster::parameterCall { which: which as u8 }).await?;
        let mut line = format!("{which:>3} {:<14} {:>16}", parameter["name"].as_str().unwrap_or_default(), now.value);
        let mut proposed = Value::Null;
        if parameter["delayed"] == true {
            let next = session.muster.read(IMuster::proposedParameterCall { which: which as u8 }).await?;
            if next.effective > 0 {
                line += &format!(" -> {} from {} on", next.value, next.effective);
                proposed = json!({ "value": next.value.to_string(), "effective": next.effective });
            }
        }
        line +=
            &format!("  {} ({})", parameter["doc"].as_str().unwrap_or_default(), parameter["unit"].as_str().unwrap_or_default());
        text.push(line);
        all.push(json!({
            "number": which, "name": parameter["name"], "value": now.value.to_string(), "least": now.least.to_string(), "most": now.most.to_string(),
            "proposed": proposed,
        }));
    }
    Ok(Report { json: json!(all), text: text.join("\n") })
}
