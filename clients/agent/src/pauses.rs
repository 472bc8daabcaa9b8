//! The agent's reasons to pause a node, and when it resumes the node. It does not touch a pause of the operator's own.

use std::time::{Duration, Instant};

use alloy::primitives::U256;
use alloy::sol_types::SolCall;
use anyhow::Result;
use muster_client::{pause, show_amount, Fate, Head, IMuster};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::answers::{stamp, Answers, Called};
use crate::chain::Chain;
use crate::gpu::{self, Gpu};
use crate::journal::{Job, Journal, Stage};
use crate::metrics::OfNode;
use crate::{disk, say};

pub use muster_client::pause::{BALANCE, DISK, DRAIN, FAILURES, GPU, JUDGED, SELF_TEST};

/// How often the GPU is checked.
const LOOK: Duration = Duration::from_secs(5);
/// The time in which a GPU usually answers.
const AT_ONCE: Duration = Duration::from_millis(50);
/// The highest fee cap of a transaction as a multiple of the base fee, see `Sending::fee_percent`.
const FEE: u64 = 2;
/// The name of the fact that identifies the agent's own pause of the node; `no` once that one is over.
fn ours(number: u32) -> String {
    format!("paused {number}")
}

/// Notes that a node's present pause is the agent's, from another machine or before the journal was lost.
pub fn is_ours(journal: &Journal, number: u32) -> Result<()> {
    journal.set_fact(&ours(number), &stamp().to_string())
}

/// The stamp of the agent's own last pause of a node, unless that has ended.
fn our_pause(journal: &Journal, number: u32) -> Result<Option<String>> {
    Ok(journal.fact(&ours(number))?.filter(|pause| pause != "no"))
}

/// Forgets that a node's present pause is the agent's, if the chain says that it is an operator's: then the journal is a restored one, from
/// before that agent's pause ended.
pub async fn doubt(chain: &Chain, journal: &Journal, number: u32) -> Result<bool> {
    if our_pause(journal, number)?.is_none() {
        return Ok(false);
    }
    // Where nothing shows the present pause, the journal is believed.
    let paused = chain.pause_of(number).await.unwrap_or_default();
    let foreign = paused.is_some_and(|(input, present)| present && pause::reasons(&input).is_none());
    if foreign {
        journal.set_fact(&ours(number), "no")?;
    }
    Ok(foreign)
}

/// Checks that run now and then.
#[derive(Default)]
pub struct Watchdog {
    looked: Option<Instant>,
    /// A question about the GPU without an answer yet.
    asked: Option<oneshot::Receiver<Result<Option<gpu::Vitals>>>>,
}

impl Watchdog {
    /// Checks the GPU. A library that takes long holds up nothing: its answer counts at a later look.
    pub async fn look(&mut self, answers: &Answers, gpu: &Gpu) -> Result<()> {
        let mut asked = match (self.asked.take(), self.looked) {
            (Some(asked), _) => asked,
            (None, Some(looked)) if looked.elapsed() < LOOK => return Ok(()),
            _ => {
                self.looked = Some(Instant::now());
                let gpu = gpu.clone();
                gpu::ask(move || gpu::look(&gpu))
            }
        };
        let said = match timeout(AT_ONCE, &mut asked).await {
            Ok(said) => said.unwrap_or_else(|_| Err(gpu::silent())),
            Err(_) => {
                self.asked = Some(asked);
                if self.looked.is_some_and(|looked| looked.elapsed() < gpu::LONGEST) {
                    return Ok(());
                }
                Err(gpu::silent())
            }
        };
        let metrics = OfNode(&answers.shared.metrics, &answers.name);
        match said {
            Ok(vitals) => {
                if let Some(vitals) = vitals {
                    metrics.set("gpu_memory_used_bytes", vitals.used as f64);
                    metrics.set("gpu_memory_bytes", vitals.total as f64);
                    if let Some(temperature) = vitals.temperature {
                        metrics.set("gpu_temperature_celsius", temperature.into());
                    }
                    if let Some(busy) = vitals.busy {
                        metrics.set("gpu_busy_ratio", f64::from(busy) / 100.0);
                    }
                }
                metrics.set("gpu_lost", 0.0);
                answers.end(GPU)
            }
            Err(error) => {
                metrics.set("gpu_lost", 1.0);
                answers.begin(GPU, &format!("the GPU is lost: {error:#}"))
            }
        }
    }
}

impl Answers {
    /// Adds a reason to pause the node.
    pub fn begin(&self, why: &str, text: &str) -> Result<()> {
        if self.shared.journal.pause(self.number, why)? {
            self.shared.alert(&self.name, why, &format!("{text}; the node is being paused"));
        }
        Ok(())
    }

    /// Removes a reason.
    pub fn end(&self, why: &str) -> Result<()> {
        if self.shared.journal.unpause(self.number, why)? {
            say!("{}: no reason to pause any more: {why}", self.name);
        }
        Ok(())
    }

    /// Checks that the disk has room for tasks.
    pub fn measure_disk(&self) -> Result<()> {
        let (home, least) = (&self.shared.config.home, self.shared.config.least_free);
        let room = disk::room(&self.shared.config)?;
        disk::keep_some(home, room.bytes, least);
        let metrics = OfNode(&self.shared.metrics, &self.name);
        metrics.set("disk_free_bytes", room.bytes as f64);
        metrics.set("disk_least_bytes", least as f64);
        if let Some(lacks) = room.lacks(least) {
            return self.begin(DISK, &format!("{lacks}: make room"));
        }
        if room.suffices(least) {
            self.end(DISK)?;
        }
        Ok(())
    }

    /// Checks that the key can pay every open and future reveal, and the pause itself. Returns how many more calls it can pay.
    pub async fn weigh(&self, head: &Head, jobs: &[Job]) -> Result<u32> {
        let muster = &self.shared.chain.muster;
        let balance: U256 = muster.endpoints().ask("eth_getBalance", json!([self.account.address(), "latest"])).await?;
        let open = jobs.iter().filter(|job| job.stage < Stage::Revealed);
        // A task without a commitment takes two calls.
        let calls: u64 = open.map(|job| if job.owes_reveal() { 1 } else { 2 }).sum::<u64>() + 1;
        let price = U256::from(head.base_fee_per_gas.unwrap_or_default()) * U256::from(FEE);
        let call = price * U256::from(self.shared.config.gas_per_call);
        let needed = call * U256::from(calls);
        let metrics = OfNode(&self.shared.metrics, &self.name);
        metrics.set("balance_wei", balance.saturating_to::<u128>() as f64);
        metrics.set("balance_needed_wei", needed.saturating_to::<u128>() as f64);
        // One more task takes two calls.
        if balance < needed + call * U256::from(2) {
            let text = format!(
                "{} has {}, and {calls} calls that are open may take {}: send it ether",
                self.account.address(),
                show_amount(balance),
                show_amount(needed)
            );
            self.begin(BALANCE, &text)?;
            return Ok(0);
        }
        // A margin above the least, against flapping.
        if balance >= needed + call * U256::from(4) {
            self.end(BALANCE)?;
        }
        Ok((balance - needed).checked_div(call).map_or(u32::MAX, |more| more.saturating_to()))
    }

    /// The stamp of a pause that was sent and is in no block yet: another one would only wait behind it.
    async fn open_pause(&self) -> Result<Option<String>> {
        let Some(stamp) = self.shared.journal.fact(&ours(self.number))? else { return Ok(None) };
        let sent = self.account.sender().named(&format!("pause {stamp}")).await;
        Ok(sent.filter(|sent| sent.fate == Fate::Open).map(|_| stamp))
    }

    /// Pauses the node if there is a reason. Resumes it if there is none, the node is fit, and the pause was the agent's. Returns whether
    /// it is left paused because the pause is somebody else's.
    pub async fn pause_or_resume(&self, status: u8, fit: bool) -> Result<bool> {
        let journal = &self.shared.journal;
        let reasons = journal.pauses(self.number)?;
        let metrics = OfNode(&self.shared.metrics, &self.name);
        metrics.set_all("paused_by_agent", "why", reasons.iter().map(|why| (why.clone(), 1.0)));
        match (status, reasons.is_empty()) {
            (1 | 2, false) => {
                let stamp = self.open_pause().await?.unwrap_or_else(|| stamp().to_string());
                journal.set_fact(&ours(self.number), &stamp)?;
                match self.call(&format!("pause {stamp}"), pause::calldata(&reasons)).await? {
                    Called::Done(_) => say!("{}: paused, because of {}", self.name, reasons.join(", ")),
                    Called::Refused(refusal) => say!("{}: not paused yet: {refusal}", self.name),
                }
            }
            (5, true) if fit => {
                // A pause that was only tried is noted, too: the operator's may have come instead.
                doubt(&self.shared.chain, journal, self.number).await?;
                let Some(pause) = our_pause(journal, self.number)? else { return Ok(true) };
                // Once for each pause: if it was done before a crash, the present pause is not the agent's.
                match self.call(&format!("resume {pause}"), IMuster::resumeCall {}.abi_encode()).await? {
                    Called::Done(_) => {
                        journal.set_fact(&ours(self.number), "no")?;
                        say!("{}: resumed", self.name);
                    }
                    Called::Refused(refusal) => say!("{}: not resumed yet: {refusal}", self.name),
                }
            }
            _ => {}
        }
        Ok(false)
    }

    /// Tells whose the present pause is, if it is not this agent's: nothing here ends it.
    pub async fn tell_other_pause(&self) {
        let number = self.number;
        // A pause that cannot be found is told all the same.
        let paused = self.shared.chain.pause_of(number).await.unwrap_or_default();
        match paused.filter(|(_, present)| *present).and_then(|(input, _)| pause::reasons(&input)) {
            Some(reasons) => {
                let text = format!(
                    "another agent with a key of node {number} has paused it, because of {}, and is the one that resumes it: end one of the \
                     two. If that agent is gone, `muster node resume` ends the pause",
                    reasons.join(", ")
                );
                self.shared.alert(&self.name, "paused", &text);
            }
            None => say!("{}: node {number} is paused, not by this agent: it gets no task until `muster node resume`", self.name),
        }
    }
}
