//! The report of the results.

use std::{cmp::Reverse, collections::BTreeMap};

use alloy::primitives::Address;
use anyhow::{ensure, Result};
use serde::Serialize;

use super::{books, judged::Validation, records::Spread, state::Demo};

/// The results. The sum of `stake_wei`, `escrow_wei`, `credit_wei`, `treasury_wei`, `reserve_wei` and `burnt_wei` is
/// `contract_balance_wei`. Amounts in wei are decimal strings.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Requests of which the contract refused to create tasks: no joined node could run them, or they name a model twice.
    pub refused: u64,
    /// Created; the fields up to `undecided` are their fates.
    pub tasks: u64,
    /// Started without having been queued.
    pub dispatched: u64,
    /// Queued, at least for a while.
    pub queued: u64,
    /// Of the aborted, those that the full queue turned away at once: neither dispatched nor queued.
    pub turned_away: u64,
    /// Ended with an answer.
    pub finished: u64,
    /// Ended at their deadline without an answer.
    pub timed_out: u64,
    /// Ended without an answer: turned away, by eviction, by their creator, because nobody took them for too long, or with their node.
    pub aborted: u64,
    /// Of the aborted, those evicted after they had been queued.
    pub evicted: u64,
    /// Of the aborted, those that their creator cancelled.
    pub cancelled: u64,
    /// Of the aborted, those that were queued for longer than the contract lets them.
    pub outlived: u64,
    /// Of the aborted, those whose node was slashed out of the network.
    pub orphaned: u64,
    /// Ended by the node's report that it cannot run them.
    pub errors_reported: u64,
    /// Three nodes had it, and no two answers were alike.
    pub undecided: u64,
    /// Nodes joined by this run.
    pub nodes: u64,
    /// How often H fell below its threshold.
    pub exclusions: u64,
    /// Kicked out, for their long-term score or by a slash.
    pub kicked_out: u64,
    /// Stakes, those being unbonded included.
    pub stake_wei: String,
    /// Fees of tasks that have not ended.
    pub escrow_wei: String,
    /// The sum that accounts can withdraw, returned stakes aside.
    pub credit_wei: String,
    /// Protocol income not yet paid out.
    pub treasury_wei: String,
    /// The reserve that pays for validations beside the fees.
    pub reserve_wei: String,
    /// The sum of slashes: it stays with the contract for good.
    pub burnt_wei: String,
    /// The balance of the contract's address.
    pub contract_balance_wei: String,
    /// Seconds from creation to start, of the tasks that started.
    pub waiting_seconds: Spread,
    /// The same of those that had been queued.
    pub queue_seconds: Spread,
    /// Gas by operation, cost of data on L1 aside.
    pub gas: BTreeMap<String, Spread>,
    /// The outcome of validation, if tasks could be validated.
    pub validation: Option<Validation>,
    /// The nodes that ran most.
    pub top_nodes: Vec<Share>,
    /// The contract.
    pub address: Address,
    /// Seconds that passed on chain.
    pub simulated_seconds: u64,
}

/// A node's part of the whole.
#[derive(Clone, Debug, Serialize)]
pub struct Share {
    /// Its number.
    pub node: u64,
    /// Its GPU.
    pub gpu: String,
    /// Tasks it started.
    pub tasks: u64,
    /// Percent of all tasks started.
    pub work_percent: f64,
    /// Percent of all nodes' weight, as it was after joining, for a task that asks for no model.
    pub weight_percent: f64,
}

impl Demo {
    /// Adds everything up, from logs and views. `since` is the block the contract is from.
    pub(super) async fn report(&self, since: u64) -> Result<Report> {
        let books = books(&self.muster, since).await?;
        let owed = books.owed();
        // More can have been forced in; less cannot be.
        ensure!(owed <= books.balance, "the contract owes {owed} wei and holds {}: its books are wrong", books.balance);
        let counts = &self.tally.counts;
        let gas = &self.tally.gas;
        Ok(Report {
            refused: counts.refused,
            tasks: self.tasks.len() as u64,
            dispatched: counts.dispatched,
            queued: counts.queued,
            turned_away: counts.turned_away,
            finished: counts.finished,
            timed_out: counts.timed_out,
            aborted: counts.turned_away + counts.evicted + counts.cancelled + counts.outlived + counts.orphaned,
            evicted: counts.evicted,
            cancelled: counts.cancelled,
            outlived: counts.outlived,
            orphaned: counts.orphaned,
            errors_reported: counts.errors,
            undecided: counts.undecided,
            nodes: self.nodes.len() as u64,
            exclusions: counts.exclusions,
            kicked_out: counts.kicked_out,
            stake_wei: books.stake.to_string(),
            escrow_wei: books.escrow.to_string(),
            credit_wei: books.credit.to_string(),
            treasury_wei: books.treasury.to_string(),
            reserve_wei: books.reserve.to_string(),
            burnt_wei: books.burnt.to_string(),
            contract_balance_wei: books.balance.to_string(),
            waiting_seconds: Spread::of(self.tally.waits.clone()),
            queue_seconds: Spread::of(self.tally.queue_waits.clone()),
            gas: gas.iter().map(|(operation, values)| (operation.clone(), Spread::of(values.clone()))).collect(),
            validation: self.validation().await?,
            top_nodes: self.top_nodes(),
            address: self.muster.address(),
            simulated_seconds: self.clock.now - self.began,
        })
    }

    /// The ten of our nodes that started most tasks.
    fn top_nodes(&self) -> Vec<Share> {
        let started = &self.tally.started;
        let total: u64 = started.values().sum();
        let weight: f64 = self.nodes.values().map(|node| node.weight).sum();
        let share = |part: f64, whole: f64| if whole > 0.0 { (10_000.0 * part / whole).round() / 100.0 } else { 0.0 };
        let shares = self.nodes.iter().map(|(number, node)| {
            let tasks = started.get(number).copied().unwrap_or_default();
            Share {
                node: *number,
                gpu: node.gpu.clone(),
                tasks,
                work_percent: share(tasks as f64, total as f64),
                weight_percent: share(node.weight, weight),
            }
        });
        let mut top: Vec<Share> = shares.collect();
        top.sort_by_key(|node| (Reverse(node.tasks), node.node));
        top.truncate(10);
        top
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_takes_values_that_occurred() {
        let spread = Spread::of(vec![40, 10, 30, 20]);
        assert_eq!((spread.count, spread.min, spread.median, spread.p95, spread.max), (4, 10, 20, 40, 40));
        let spread = Spread::of((1..=100).collect());
        assert_eq!((spread.median, spread.p95), (50, 95));
        assert_eq!(Spread::of(Vec::new()).count, 0);
    }
}
