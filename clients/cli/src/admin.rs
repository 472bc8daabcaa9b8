//! Commands of a network's owner, and those that put a proposal into effect, which anybody may.

use std::path::PathBuf;

use alloy::primitives::{Address, Bytes, FixedBytes, U256};
use alloy::sol_types::SolCall;
use anyhow::{ensure, Context, Result};
use clap::{Args, Subcommand};
use muster_client::{safe, IMuster};
use serde_json::{json, Value};

use crate::keepalive::{self, Life};
use crate::options::address;
use crate::parameters::PARAMETERS;
use crate::proposals::Proposals;
use crate::session::{functions_named, Report, Session};

#[derive(Args)]
pub struct Admin {
    /// Send nothing, and print the data of the call, for another account to send. Needs no key
    #[arg(long, global = true)]
    calldata: bool,
    /// Send nothing, and add the call to a file for the transaction builder of a Safe. Needs no key
    #[arg(long, value_name = "FILE", global = true, conflicts_with = "calldata")]
    safe: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Every parameter, its value and its bounds
    Parameters,
    /// Proposals, and when anybody may put them into effect
    Proposals {
        /// The contract's first block, or any before it: proposals of programs are searched from there on
        #[arg(long, value_name = "BLOCK", default_value_t = 0)]
        from_block: u64,
    },
    /// Change a parameter at once, or propose the change of one that reaches into stakes
    Set {
        /// Its name, or its number
        parameter: String,
        /// In the parameter's unit
        value: U256,
    },
    /// Withdraw a parameter's proposal: the contract has no call for it, so the present value is proposed in its place
    WithdrawParameter {
        /// Its name, or its number
        parameter: String,
    },
    /// Put a proposed parameter into effect (anybody may)
    Accept {
        /// Its name, or its number
        parameter: String,
    },
    /// Propose another program for functions; it must be active. script/deploy does it for all of a build
    ProposePrograms(Change),
    /// Withdraw the proposals for these functions
    WithdrawPrograms(Change),
    /// Put proposed programs into effect (anybody may)
    AcceptPrograms(Change),
    /// End all changes of programs for good, including proposals and all repairs
    RenounceUpgrades {
        /// Confirm
        #[arg(long)]
        for_good: bool,
    },
    /// Stop new tasks and joins
    Stop,
    /// Allow new tasks and joins again
    Start,
    /// Offer the ownership to another account
    TransferOwnership {
        /// The account that must accept it; the zero address withdraws the offer
        #[arg(value_parser = address)]
        to: Address,
    },
    /// Accept the ownership that was offered to the account
    AcceptOwnership,
    /// Propose another treasury; the zero address withdraws the proposal
    ProposeTreasury {
        /// The receiver of the protocol's income
        #[arg(value_parser = address)]
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

/// A change of programs, as it was proposed: program and functions, in order.
#[derive(Args)]
struct Change {
    /// The proposed program; the zero address for none
    #[arg(value_parser = address)]
    program: Address,
    /// The functions, by name, signature or selector
    #[arg(required_unless_present = "of", value_name = "FUNCTION")]
    functions: Vec<String>,
    /// All functions of this program
    #[arg(long, value_name = "PROGRAM", value_parser = address, conflicts_with = "functions")]
    of: Option<Address>,
}

impl Change {
    async fn selectors(&self, session: &Session) -> Result<Vec<FixedBytes<4>>> {
        if let Some(facet) = self.of {
            let selectors = session.muster.read(IMuster::facetFunctionSelectorsCall { facet }).await?;
            ensure!(!selectors.is_empty(), "the contract leads no function to {facet}");
            return Ok(selectors);
        }
        self.functions.iter().map(|text| selector(text)).collect()
    }
}

/// A function's selector: as it is given, of its signature, or by the interface's name.
fn selector(text: &str) -> Result<FixedBytes<4>> {
    if text.starts_with("0x") {
        return text.parse().with_context(|| format!("{text} is no selector: four bytes in hexadecimal"));
    }
    if text.contains('(') {
        return Ok(FixedBytes::from_slice(&alloy::primitives::keccak256(text)[..4]));
    }
    match functions_named(text)[..] {
        [selector] => Ok(selector),
        [] => anyhow::bail!("the interface has no function {text}: give its signature, or its selector"),
        _ => anyhow::bail!("the interface has several functions {text}: give the signature"),
    }
}

fn find(text: &str) -> Result<(u8, bool)> {
    let number = text.parse::<u64>().ok();
    let is = |parameter: &&Value| parameter["name"] == text || number.is_some() && parameter["number"].as_u64() == number;
    let found = PARAMETERS.iter().find(is);
    let found = found.with_context(|| format!("there is no parameter {text}: muster admin parameters"))?;
    Ok((found["number"].as_u64().unwrap_or_default() as u8, found["delayed"] == true))
}

/// The account that must send a call.
#[derive(Clone, Copy)]
enum By {
    Owner,
    NextOwner,
    Anybody,
}

impl Admin {
    pub async fn run(&self, session: &Session) -> Result<Report> {
        match &self.command {
            Command::Parameters => parameters(session).await,
            Command::Proposals { from_block } => proposals(session, *from_block).await,
            Command::Set { parameter, value } => match find(parameter)? {
                (which, true) => {
                    let call = IMuster::proposeParameterCall { parameter: which, value: *value };
                    self.send(session, call, By::Owner, &format!("{parameter} proposed")).await
                }
                (which, false) => {
                    let call = IMuster::setParameterCall { parameter: which, value: *value };
                    self.send(session, call, By::Owner, &format!("{parameter} set")).await
                }
            },
            Command::WithdrawParameter { parameter } => {
                let (which, delayed) = find(parameter)?;
                ensure!(delayed, "{parameter} is set at once, and never proposed");
                let proposed = session.muster.read(IMuster::proposedParameterCall { which }).await?;
                ensure!(proposed.effective > 0, "no change of {parameter} is proposed");
                let value = session.muster.parameter(which).await?;
                let call = IMuster::proposeParameterCall { parameter: which, value };
                self.send(session, call, By::Owner, &format!("{parameter} proposed as it is, {value}")).await
            }
            Command::Accept { parameter } => {
                let call = IMuster::acceptParameterCall { parameter: find(parameter)?.0 };
                self.send(session, call, By::Anybody, &format!("{parameter} in effect")).await
            }
            Command::ProposePrograms(change) => {
                let (program, selectors) = (change.program, change.selectors(session).await?);
                runs(session, program).await?;
                let what = format!("{} functions proposed to lead to {program}", selectors.len());
                self.send(session, IMuster::proposeProgramsCall { program, selectors }, By::Owner, &what).await
            }
            Command::WithdrawPrograms(change) => {
                let (program, selectors) = (change.program, change.selectors(session).await?);
                let what = format!("the proposal that {} functions lead to {program} withdrawn", selectors.len());
                self.send(session, IMuster::withdrawProgramsCall { program, selectors }, By::Owner, &what).await
            }
            Command::AcceptPrograms(change) => {
                let (program, selectors) = (change.program, change.selectors(session).await?);
                runs(session, program).await?;
                let what = format!("{} functions lead to {program}", selectors.len());
                self.send(session, IMuster::acceptProgramsCall { program, selectors }, By::Anybody, &what).await
            }
            Command::RenounceUpgrades { for_good } => {
                ensure!(
                    *for_good,
                    "nobody could ever change a program again, not even to repair one: say --for-good if that is meant"
                );
                self.send(session, IMuster::renounceUpgradesCall {}, By::Owner, "changes of programs ended for good").await
            }
            Command::Stop => {
                self.send(session, IMuster::setPausedCall { on: true }, By::Owner, "new tasks and joins stopped").await
            }
            Command::Start => {
                self.send(session, IMuster::setPausedCall { on: false }, By::Owner, "new tasks and joins allowed").await
            }
            Command::TransferOwnership { to } => {
                let call = IMuster::transferOwnershipCall { newOwner: *to };
                self.send(session, call, By::Owner, &format!("ownership offered to {to}")).await
            }
            Command::AcceptOwnership => {
                self.send(session, IMuster::acceptOwnershipCall {}, By::NextOwner, "ownership accepted").await
            }
            Command::ProposeTreasury { treasury } => {
                let call = IMuster::proposeTreasuryCall { treasury: *treasury };
                self.send(session, call, By::Owner, &format!("treasury {treasury} proposed")).await
            }
            Command::AcceptTreasury => {
                self.send(session, IMuster::acceptTreasuryCall {}, By::Anybody, "treasury in effect").await
            }
            Command::Sweep => self.send(session, IMuster::sweepTreasuryCall {}, By::Anybody, "income paid out").await,
            Command::ListGpu { group, remove } => {
                let call = IMuster::listGpuGroupCall { group: *group, listed: !remove };
                let what = format!("group {group} {}", if *remove { "taken off the list" } else { "listed" });
                self.send(session, call, By::Owner, &what).await
            }
        }
    }

    /// Sends the call, or outputs it for its sender.
    async fn send<C: SolCall + Clone>(&self, session: &Session, call: C, by: By, what: &str) -> Result<Report> {
        if !self.calldata && self.safe.is_none() {
            return session.call(call, U256::ZERO, what).await;
        }
        let muster = &session.muster;
        let from = match by {
            By::Owner | By::Anybody => muster.read(IMuster::ownerCall {}).await?,
            By::NextOwner => muster.read(IMuster::pendingOwnerCall {}).await?,
        };
        let data = Bytes::from(call.abi_encode());
        // A call in a batch may become valid by an earlier one, or later: so a refusal is only a warning.
        let refused = muster.try_as(from, call, U256::ZERO).await.err().map(|error| error.to_string());
        if let Some(refused) = &refused {
            eprintln!("muster: sent now by {from} it would be {refused}");
        }
        let who = match by {
            By::Anybody => "anybody".into(),
            By::Owner | By::NextOwner => from.to_string(),
        };
        let mut json = json!({
            "to": muster.address(), "value": "0", "data": data, "call": C::SIGNATURE, "sender": who, "refused": refused,
        });
        let Some(file) = &self.safe else {
            eprintln!("muster: {} for {who} to send to {}", C::SIGNATURE, muster.address());
            return Ok(Report { json, text: data.to_string() });
        };
        let chain = session.endpoints().chain().await?;
        let count = safe::add(file, chain, from, muster.address(), &data, C::SIGNATURE)?;
        json["file"] = json!(file);
        Ok(Report { json, text: format!("{}: transaction {count} of {}, which {who} must send", C::SIGNATURE, file.display()) })
    }
}

/// Refuses a Stylus program that does not run: all functions that lead to it would fail. One that ran when it was proposed may have expired.
async fn runs(session: &Session, program: Address) -> Result<()> {
    if !session.endpoints().code(program).await?.starts_with(&keepalive::STYLUS) {
        return Ok(());
    }
    if let Life::Stopped(why) = keepalive::life(session, program).await? {
        anyhow::bail!(
            "the program {program} does not run: {why}. Functions that lead to it fail: activate it first (docs/deploying.md)"
        );
    }
    Ok(())
}

async fn proposals(session: &Session, from_block: u64) -> Result<Report> {
    let found = Proposals::since(from_block).look(session).await?;
    let now = session.endpoints().head().await?.timestamp;
    let text = found.iter().map(|proposal| {
        let when = match proposal.effective {
            None => "when it is accepted".into(),
            Some(at) if at > now => format!("by anybody from {at} on, in {:.1} days", (at - now) as f64 / 86_400.0),
            Some(_) => "by anybody, now".into(),
        };
        format!("{:<10} {} -> {}, {when}", proposal.kind, proposal.what, proposal.to)
    });
    let text = text.collect::<Vec<_>>().join("\n");
    let json = json!(found.iter().map(crate::proposals::Proposal::json).collect::<Vec<_>>());
    Ok(Report { json, text: if text.is_empty() { "nothing is proposed".into() } else { text } })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_named_in_three_ways() {
        // cast sig 'withdraw(address)'
        for text in ["withdraw", "withdraw(address)", "0x51cff8d9"] {
            assert_eq!(selector(text).unwrap(), FixedBytes::from([0x51, 0xcf, 0xf8, 0xd9]), "{text}");
        }
        for wrong in ["withdrawn", "0x51cff8", "0x51cff8d900"] {
            assert!(selector(wrong).is_err(), "{wrong}");
        }
    }
}
