//! A node: joining, standing, leaving.

use std::fmt::Write;

use alloy::primitives::{Address, U256};
use anyhow::{bail, ensure, Context, Result};
use clap::{Args, Subcommand};
use muster_client::{abi, show_amount, Error, IMuster, Refusal};
use muster_core::record::CALL_MODELS;
use serde_json::json;

use crate::options::{address, amount};
use crate::session::{Report, Session};

#[derive(Args)]
pub struct Join {
    /// The GPU's name as `muster-agent doctor` prints it: with the digits of its golden tasks, by which nodes with equal answers meet
    #[arg(long)]
    pub gpu: String,
    /// Take the name as it is, without such digits: for a node that muster-agent does not answer for, or one without golden tasks
    #[arg(long)]
    pub plain: bool,
    /// Its memory in GiB
    #[arg(long)]
    pub vram: u16,
    /// A model that the node holds, by name, or by its id in hexadecimal (0x...); repeat for more
    #[arg(long = "model", value_name = "MODEL")]
    pub models: Vec<String>,
    /// The stake, as 500ether; a number alone is wei [default: the least]
    #[arg(long, value_parser = amount)]
    pub stake: Option<U256>,
}

#[derive(Args)]
pub struct Which {
    /// The node's number [default: that of the account]
    pub node: Option<u32>,
    /// The node of this operator
    #[arg(long, conflicts_with = "node", value_parser = address)]
    pub operator: Option<Address>,
}

#[derive(Args)]
pub struct Models {
    /// Models that the node holds now, by name or id
    #[arg(long = "add", value_name = "MODEL")]
    pub add: Vec<String>,
    /// Models that it no longer holds
    #[arg(long = "remove", value_name = "MODEL")]
    pub remove: Vec<String>,
    /// The node to show, when nothing is added or removed [default: that of the account]
    pub node: Option<u32>,
}

#[derive(Subcommand)]
pub enum Worker {
    /// By the operator: name the account that may work for the node; it must accept
    Set {
        #[arg(value_parser = address)]
        worker: Address,
    },
    /// By the operator: end the work of the named account, and pause the node, since nobody would answer for it
    Remove {
        /// Leave the node in work: the operator's own key answers for it
        #[arg(long)]
        stay: bool,
    },
    /// By the worker: accept to work for a node
    Accept { node: u32 },
    /// By the worker: end its work
    Leave,
}

impl Worker {
    pub async fn run(&self, session: &Session) -> Result<Report> {
        let none = U256::ZERO;
        match *self {
            Self::Set { worker } => {
                session.call(IMuster::setWorkerCall { worker }, none, &format!("{worker} can work once it accepted")).await
            }
            Self::Remove { stay } => {
                let number = Which { node: None, operator: None }.number(session).await?;
                let named = session.muster.read(IMuster::workerOfCall { number }).await?.worker;
                ensure!(!named.is_zero(), "node {number} has no worker: it is left as it is");
                let call = IMuster::setWorkerCall { worker: Address::ZERO };
                // First: the worker's key could undo a pause.
                let removed = session.call(call, none, "nobody else works for it").await?;
                let status = session.muster.read(IMuster::nodeCall { number }).await?.status;
                if stay || !matches!(status, 1 | 2) {
                    return Ok(removed);
                }
                let paused = session.call(IMuster::pauseCall {}, none, "paused");
                let paused = paused.await.context("the work is ended, and the node is not paused: muster node pause")?;
                Ok(joined(Some(removed), paused))
            }
            Self::Accept { node } => session.call(IMuster::acceptWorkCall { node }, none, &format!("works for {node}")).await,
            Self::Leave => {
                session.call(IMuster::leaveWorkCall {}, none, "works for no node").await.map_err(|error| {
                    match error.downcast_ref::<Error>().and_then(Error::refusal).and_then(Refusal::name) {
                        Some("HasNode") => error.context("only a worker leaves work: an operator ends it by `muster node quit`"),
                        _ => error,
                    }
                })
            }
        }
    }
}

/// A model's id: as given, or from a name.
pub fn model(text: &str) -> Result<u64> {
    let Some(digits) = text.strip_prefix("0x") else {
        ensure!(!text.is_empty(), "a model without a name");
        return Ok(abi::model_id(text));
    };
    u64::from_str_radix(digits, 16).with_context(|| format!("{text} is no model's id"))
}

pub fn models(texts: &[String]) -> Result<Vec<u64>> {
    texts.iter().map(|text| model(text)).collect()
}

/// The name of a status.
pub fn status(number: u8) -> &'static str {
    ["Quit", "Available", "Busy", "PendingPause", "PendingQuit", "Paused", "PendingKickout"]
        .get(number as usize)
        .unwrap_or(&"unknown")
}

/// A wad as a decimal fraction.
pub fn wad(number: u64) -> String {
    format!("{:.4}", number as f64 / 1e18)
}

impl Which {
    pub async fn number(&self, session: &Session) -> Result<u32> {
        if let Some(node) = self.node {
            return Ok(node);
        }
        let operator = match self.operator {
            Some(operator) => operator,
            None => session.address().await?,
        };
        match session.muster.read(IMuster::nodeOfCall { who: operator }).await? {
            0 => bail!("{operator} never joined a node, and works for none"),
            node => Ok(node),
        }
    }
}

/// Whether a GPU's name includes the stack, as muster-agent registers it.
fn names_a_stack(name: &str) -> bool {
    name.rsplit_once('+').is_some_and(|(_, digits)| digits.len() == 8 && digits.chars().all(|c| c.is_ascii_hexdigit()))
}

impl Join {
    pub async fn run(&self, session: &Session) -> Result<Report> {
        ensure!(
            self.plain || names_a_stack(&self.gpu),
            "{:?} does not end with + and the eight digits of golden tasks: muster-agent would not answer under it, and a name \
             cannot be changed. `muster-agent doctor` says the name; --plain joins under this one",
            self.gpu
        );
        let muster = &session.muster;
        let stake = match self.stake {
            Some(stake) => stake,
            None => muster.least_stake().await?,
        };
        let fee = muster.name_fee(&self.gpu, self.vram).await?;
        if !fee.is_zero() {
            eprintln!(
                "muster: nobody has joined with {:?} of {} GiB before: the name costs {} beside the stake. Is it how others write it?",
                self.gpu,
                self.vram,
                show_amount(fee)
            );
        }
        let mut rest = models(&self.models)?;
        let later = rest.split_off(rest.len().min(CALL_MODELS));
        let call = IMuster::joinCall { gpuName: self.gpu.clone(), vram: self.vram, models: rest };
        let mut report = session.call(call, stake + fee, &format!("joined with {}", show_amount(stake))).await?;
        if !session.options.dry_run {
            for models in later.chunks(CALL_MODELS) {
                let more =
                    session.call(IMuster::reportDownloadedCall { models: models.to_vec() }, U256::ZERO, "more models").await?;
                report.text = format!("{}\n{}", report.text, more.text);
            }
        }
        Ok(report)
    }
}

impl Models {
    pub async fn run(&self, session: &Session) -> Result<Report> {
        let mut done: Option<Report> = None;
        for given in models(&self.remove)?.chunks(CALL_MODELS) {
            let report = session.call(IMuster::reportRemovedCall { models: given.to_vec() }, U256::ZERO, "removed").await?;
            done = Some(joined(done, report));
        }
        for given in models(&self.add)?.chunks(CALL_MODELS) {
            let report = session.call(IMuster::reportDownloadedCall { models: given.to_vec() }, U256::ZERO, "added").await?;
            done = Some(joined(done, report));
        }
        if let Some(report) = done {
            return Ok(report);
        }
        let number = Which { node: self.node, operator: None }.number(session).await?;
        let view = session.muster.read(IMuster::nodeCall { number }).await?;
        let text = view.models.iter().map(|id| format!("{id:#012x}{}", if view.inUse.contains(id) { "  in use" } else { "" }));
        Ok(Report {
            json: json!({ "node": number, "models": hex(&view.models), "inUse": hex(&view.inUse) }),
            text: text.collect::<Vec<_>>().join("\n"),
        })
    }
}

fn joined(before: Option<Report>, report: Report) -> Report {
    let Some(before) = before else { return report };
    Report { json: json!([before.json, report.json]), text: format!("{}\n{}", before.text, report.text) }
}

pub fn hex(models: &[u64]) -> Vec<String> {
    models.iter().map(|model| format!("{model:#012x}")).collect()
}

pub async fn show(session: &Session, which: &Which) -> Result<Report> {
    let number = which.number(session).await?;
    let muster = &session.muster;
    let view = muster.read(IMuster::nodeCall { number }).await?;
    let account = muster.read(IMuster::accountCall { who: view.operator }).await?;
    let gpu = muster.read(IMuster::gpuNameCall { group: view.gpu }).await?;
    let hand = muster.read(IMuster::workerOfCall { number }).await?;
    let now = session.endpoints().head().await?.timestamp;
    let balance = session.endpoints().balance(view.operator).await?;
    let mut text = format!("node {number} of {}\n  status       {}", view.operator, status(view.status));
    let mut line = |name: &str, value: String| {
        let _ = write!(text, "\n  {name:<12} {value}");
    };
    if view.parked == 1 || view.parked == 2 {
        let left = view.parkedUntil.saturating_sub(now);
        let why = if view.excluded { "H is too low" } else { "draws are due, it waits for others, or it rests after an error" };
        line("apart", format!("{why}: for {left} s more"));
    }
    // The record of a free node keeps the values of its last task.
    if matches!(view.status, 2..=4 | 6) && view.deadline > now {
        line("task", format!("{}, {} s left", view.task, view.deadline - now));
    }
    line("GPU", format!("{gpu}, {} GiB (group {})", view.vram, view.gpu));
    if !hand.worker.is_zero() {
        line("worker", format!("{}{}", hand.worker, if hand.works { "" } else { ", which has not accepted" }));
    }
    line("stake", show_amount(view.stake));
    line("H", wad(view.reliability));
    line("Q_long", format!("{} of 1, from {} scores", wad(view.longTerm), view.scores));
    line("models", view.models.len().to_string());
    line(
        "commitments",
        format!("{} open{}", view.openCommitments, if view.held { ": no task before one is closed" } else { "" }),
    );
    line("owed", show_amount(account.credit));
    if account.unbonding > 0 {
        let left = account.release.saturating_sub(now);
        line(
            "returned",
            format!(
                "{} of stake, {}",
                show_amount(account.unbonding),
                if left == 0 { "ready".into() } else { format!("in {left} s") }
            ),
        );
    }
    line("balance", show_amount(balance));
    let json = json!({
        "node": number, "operator": view.operator, "worker": hand.worker, "works": hand.works, "status": status(view.status), "gpu": gpu, "gpuGroup": view.gpu, "vram": view.vram,
        "stake": view.stake.to_string(), "reliability": view.reliability.to_string(), "longTerm": view.longTerm.to_string(),
        "scores": view.scores, "excluded": view.excluded, "parked": view.parked, "parkedUntil": view.parkedUntil, "task": view.task.to_string(),
        "deadline": view.deadline, "models": hex(&view.models), "inUse": hex(&view.inUse), "openCommitments": view.openCommitments,
        "held": view.held, "credit": account.credit.to_string(), "unbonding": account.unbonding.to_string(), "release": account.release,
        "kickedOut": account.kickedOut, "balance": balance.to_string(), "time": now,
    });
    Ok(Report { json, text })
}
