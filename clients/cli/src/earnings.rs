//! What a node earned and what it cost, task by task, from the contract's events and its operator's transactions.

use std::collections::{BTreeMap, BTreeSet};

use alloy::primitives::{B256, U256};
use alloy::rpc::types::TransactionReceipt;
use anyhow::Result;
use clap::Args;
use futures_util::{stream, StreamExt, TryStreamExt};
use muster_client::IMuster::{
    ModelAdded, ModelRemoved, NodePaused, NodePausing, NodeQuit, NodeQuitting, NodeResumed, StakeRaised, WorkerNamed,
};
use muster_client::{show_amount, Error, Event, IMuster};
use serde_json::json;

use crate::history;
use crate::node::Which;
use crate::session::{Report, Session};

#[derive(Args)]
pub struct Earnings {
    #[command(flatten)]
    which: Which,
    /// How far back
    #[arg(long, default_value_t = 30.0)]
    days: f64,
    /// Print comma-separated values, a line for each task; amounts in wei
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

/// A task, or (0) what belongs to none.
#[derive(Clone, Default)]
struct Line {
    started: u64,
    outcome: &'static str,
    paid: U256,
    refunded: U256,
    start_fees: U256,
    slashed: U256,
    gas: U256,
}

impl Earnings {
    pub async fn run(&self, session: &Session) -> Result<Report> {
        let node = self.which.number(session).await?;
        let operator = session.muster.read(IMuster::nodeCall { number: node }).await?.operator;
        let from = history::days_ago(session.endpoints(), self.days).await?;
        let mut lines: BTreeMap<u64, Line> = BTreeMap::new();
        // A transaction's gas is shared by the tasks that it was about, and nobody's if by none.
        let mut about: BTreeMap<B256, BTreeSet<u64>> = BTreeMap::new();
        // Its own, and others' tasks that its operator drove: the node stands in different places of them.
        let events = history::events(session, from, [None, None, None]).await?;
        // Who pays the node's gas: whoever worked for it since.
        let mut hands = BTreeSet::from([operator, session.muster.read(IMuster::workerOfCall { number: node }).await?.worker]);
        for past in &events {
            let mut task = |id: u64, change: &mut dyn FnMut(&mut Line)| {
                change(lines.entry(id).or_default());
                about.entry(past.transaction).or_default().insert(id);
            };
            match &past.event {
                Event::TaskStarted(e) if e.node == node => task(e.id, &mut |line| line.started = past.block),
                Event::MemberStarted(e) if e.node == node => task(e.id, &mut |line| line.started = past.block),
                Event::TaskSucceeded(e) if e.node == node => task(e.id, &mut |line| {
                    line.outcome = "success";
                    line.paid += U256::from(e.paid);
                }),
                Event::TaskErrorReported(e) if e.node == node => task(e.id, &mut |line| {
                    line.outcome = "error";
                    line.refunded += U256::from(e.refund);
                }),
                Event::TaskAborted(e) if e.node == node || e.beneficiary == operator => task(e.id, &mut |line| {
                    if e.node == node {
                        line.outcome = if e.reason == 0 { "timeout" } else { "aborted" };
                        line.refunded += U256::from(e.refund);
                    }
                    if e.beneficiary == operator {
                        line.start_fees += U256::from(e.startFee);
                        line.outcome = if line.outcome.is_empty() { "driven" } else { line.outcome };
                    }
                }),
                Event::TaskSampled(e) if e.beneficiary == operator => {
                    task(e.id, &mut |line| line.start_fees += U256::from(e.paid));
                }
                Event::AnswerCommitted(e) if e.node == node => task(e.id, &mut |_| {}),
                Event::AnswerRevealed(e) if e.node == node => task(e.id, &mut |_| {}),
                Event::MemberTimedOut(e) if e.node == node => task(e.id, &mut |line| line.outcome = "timeout"),
                Event::MemberJudged(e) if e.node == node => task(e.id, &mut |line| {
                    let verdicts = ["", "right", "wrong", "withheld", "error", "timeout", "no two the same"];
                    line.outcome = verdicts.get(e.verdict as usize).unwrap_or(&"judged");
                    line.paid += U256::from(e.paid);
                }),
                Event::NodeSlashed(e) if e.node == node => task(e.id, &mut |line| {
                    line.slashed += U256::from(e.stake) + U256::from(e.unbonding) + U256::from(e.credit);
                }),
                Event::NodeJoined(e) if e.node == node => task(0, &mut |_| {}),
                Event::WorkAccepted(e) if e.node == node => {
                    hands.insert(e.worker);
                    task(0, &mut |_| {});
                }
                Event::WorkerNamed(WorkerNamed { node: its, .. })
                | Event::NodePausing(NodePausing { node: its })
                | Event::NodePaused(NodePaused { node: its })
                | Event::NodeResumed(NodeResumed { node: its })
                | Event::NodeQuitting(NodeQuitting { node: its })
                | Event::NodeQuit(NodeQuit { node: its, .. })
                | Event::StakeRaised(StakeRaised { node: its, .. })
                | Event::ModelAdded(ModelAdded { node: its, .. })
                | Event::ModelRemoved(ModelRemoved { node: its, .. })
                    if *its == node =>
                {
                    task(0, &mut |_| {});
                }
                _ => {}
            }
        }
        let receipts = about.keys().map(|hash| async move {
            let receipt: Option<TransactionReceipt> = session.endpoints().ask("eth_getTransactionReceipt", json!([hash])).await?;
            Ok::<_, Error>((hash, receipt))
        });
        let receipts: Vec<_> = stream::iter(receipts).buffered(8).try_collect().await?;
        for (hash, receipt) in receipts {
            let Some(receipt) = receipt.filter(|receipt| hands.contains(&receipt.from)) else { continue };
            let cost = U256::from(receipt.gas_used) * U256::from(receipt.effective_gas_price);
            let tasks = &about[hash];
            let part = cost / U256::from(tasks.len());
            let mut rest = cost;
            for task in tasks.iter().rev() {
                // The first task bears what does not divide.
                let its = if Some(task) == tasks.first() { rest } else { part };
                rest -= its;
                lines.entry(*task).or_default().gas += its;
            }
        }
        Ok(self.report(node, &lines))
    }

    fn report(&self, node: u32, lines: &BTreeMap<u64, Line>) -> Report {
        let sum = |of: fn(&Line) -> U256| lines.values().map(of).fold(U256::ZERO, |sum, part| sum + part);
        let (paid, start_fees, slashed, gas) = (sum(|l| l.paid), sum(|l| l.start_fees), sum(|l| l.slashed), sum(|l| l.gas));
        let (earned, spent) = (paid + start_fees, gas + slashed);
        let count = |outcome: &str| lines.values().filter(|line| line.outcome == outcome).count();
        let less = |wei: U256| format!("{}{}", if wei.is_zero() { "" } else { "-" }, show_amount(wei));
        let net = if earned >= spent { show_amount(earned - spent) } else { less(spent - earned) };
        let mut text = format!(
            "node {node}, the last {} days: {} successes, {} right in groups, {} errors, {} timeouts\n  fees        {}\n  start fees  {}\n  gas         {}\n  \
             slashed     {}\n  net         {net}",
            self.days, count("success"), count("right"), count("error"), count("timeout"), show_amount(paid), show_amount(start_fees), less(gas),
            less(slashed),
        );
        if self.csv {
            text = "task,started_block,outcome,paid,refunded,start_fees,slashed,gas".into();
            for (id, line) in lines {
                let Line { started, outcome, paid, refunded, start_fees, slashed, gas } = line;
                text += &format!("\n{id},{started},{outcome},{paid},{refunded},{start_fees},{slashed},{gas}");
            }
        }
        let tasks = lines.iter().map(|(id, line)| {
            json!({
                "task": id.to_string(), "startedBlock": line.started, "outcome": line.outcome, "paid": line.paid.to_string(),
                "refunded": line.refunded.to_string(), "startFees": line.start_fees.to_string(), "slashed": line.slashed.to_string(),
                "gas": line.gas.to_string(),
            })
        });
        let json = json!({
            "node": node, "days": self.days, "paid": paid.to_string(), "startFees": start_fees.to_string(), "slashed": slashed.to_string(),
            "gas": gas.to_string(), "tasks": tasks.collect::<Vec<_>>(),
        });
        Report { json, text }
    }
}
