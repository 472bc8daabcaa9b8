//! A node's earnings and costs, task by task, from the contract's events and its accounts' transactions.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use alloy::primitives::{Address, B256, I256, U256};
use alloy::rpc::types::TransactionReceipt;
use alloy::sol_types::SolEvent;
use anyhow::Result;
use clap::Args;
use futures_util::{stream, StreamExt, TryStreamExt};
use muster_client::IMuster::{
    ModelAdded, ModelRemoved, NodePaused, NodePausing, NodeQuit, NodeQuitting, NodeResumed, StakeRaised, WorkerNamed,
};
use muster_client::{show_amount, Error, Event, IMuster};
use serde_json::{json, Value};

use crate::history;
use crate::node::Which;
use crate::options::amount;
use crate::session::{Report, Session};
use crate::spent;

#[derive(Args)]
pub struct Earnings {
    #[command(flatten)]
    which: Which,
    /// How far back
    #[arg(long, default_value_t = 30.0)]
    days: f64,
    #[command(flatten)]
    power: Power,
    /// Print comma-separated values, a line for each task; amounts in wei
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

/// The machine's costs beside gas.
#[derive(Args)]
pub struct Power {
    /// The average power of the node's machine, to estimate its profit
    #[arg(long, env = "MUSTER_WATTS", value_name = "WATTS", default_value_t = 0.0)]
    watts: f64,
    /// The price of a kilowatt hour
    #[arg(long, env = "MUSTER_KWH", value_name = "AMOUNT", value_parser = amount, default_value = "0")]
    kwh: U256,
}

impl Power {
    /// The cost of an hour, in wei, rounded to milliwatts.
    fn hour(&self) -> U256 {
        U256::from((self.watts.max(0.0) * 1_000.0) as u64) * self.kwh / U256::from(1_000_000)
    }
}

/// Seconds.
const HOUR: u64 = 3_600;

/// A node's earnings and costs an hour, in wei, each rounded down.
pub struct Hour {
    /// Whether the node is younger: then these are its earnings and costs until now.
    young: bool,
    earned: U256,
    gas: U256,
    other: U256,
    power: U256,
}

impl Hour {
    fn profit(&self) -> I256 {
        [self.gas, self.other, self.power].into_iter().fold(I256::from_raw(self.earned), |left, cost| left - I256::from_raw(cost))
    }

    pub fn json(&self) -> Value {
        json!({
            "earned": self.earned.to_string(), "gas": self.gas.to_string(), "slashedAndNames": self.other.to_string(),
            "power": self.power.to_string(), "profit": self.profit().to_string(),
        })
    }

    /// The time that they are for.
    pub fn time(&self) -> &'static str {
        if self.young {
            "so far"
        } else {
            "an hour"
        }
    }

    pub fn text(&self) -> String {
        // Six digits: it is a mean.
        let show = |wei: U256| {
            let unit = U256::from(10).pow(U256::from(wei.to_string().len().saturating_sub(6)));
            show_amount((wei + unit / U256::from(2)) / unit * unit)
        };
        let profit = self.profit();
        let sign = if profit.is_negative() { "-" } else { "" };
        format!(
            "{} earned, {} gas, {} slashed and for names, {} power: {sign}{} profit",
            show(self.earned),
            show(self.gas),
            show(self.other),
            show(self.power),
            show(profit.unsigned_abs())
        )
    }
}

/// A node's books: a line for each task, and the number of transactions that are no longer known.
pub struct Books {
    lines: BTreeMap<u64, Line>,
    missing: u64,
    /// The seconds that they cover: from its joining at the earliest.
    seconds: u64,
}

impl Books {
    fn sum(&self, of: fn(&Line) -> U256) -> U256 {
        self.lines.values().map(of).fold(U256::ZERO, |sum, part| sum + part)
    }

    /// Its earnings and costs an hour, or of a shorter time as they are: what was paid once, such as a name, is not multiplied.
    pub fn hour(&self, power: &Power) -> Hour {
        let by = |wei: U256| wei * U256::from(HOUR) / U256::from(self.seconds.max(HOUR));
        Hour {
            young: self.seconds < HOUR,
            earned: by(self.sum(|l| l.paid) + self.sum(|l| l.start_fees)),
            gas: by(self.sum(|l| l.gas)),
            other: by(self.sum(|l| l.slashed) + self.sum(|l| l.names)),
            power: power.hour() * U256::from(self.seconds.min(HOUR)) / U256::from(HOUR),
        }
    }
}

/// A task, or (0) entries of no task.
#[derive(Clone, Default)]
struct Line {
    started: u64,
    outcome: &'static str,
    paid: U256,
    refunded: U256,
    start_fees: U256,
    slashed: U256,
    gas: U256,
    /// The fee for a new name.
    names: U256,
}

/// The accounts that have worked for a node, and in which blocks.
type Hands = Vec<(Address, RangeInclusive<u64>)>;

impl Earnings {
    pub async fn run(&self, session: &Session) -> Result<Report> {
        let node = self.which.number(session).await?;
        Ok(self.report(node, &Books::of(session, node, self.days).await?))
    }

    fn report(&self, node: u32, books: &Books) -> Report {
        let Books { lines, missing, .. } = books;
        let sum = |of: fn(&Line) -> U256| books.sum(of);
        let hour = books.hour(&self.power);
        let (paid, start_fees, slashed, gas) = (sum(|l| l.paid), sum(|l| l.start_fees), sum(|l| l.slashed), sum(|l| l.gas));
        let names = sum(|l| l.names);
        let (earned, spent) = (paid + start_fees, gas + slashed + names);
        let count = |outcome: &str| lines.values().filter(|line| line.outcome == outcome).count();
        let less = |wei: U256| format!("{}{}", if wei.is_zero() { "" } else { "-" }, show_amount(wei));
        let net = if earned >= spent { show_amount(earned - spent) } else { less(spent - earned) };
        let mut text = format!(
            "node {node}, {}: {} successes, {} right in groups, {} errors, {} timeouts\n  fees        {}\n  start fees  {}\n  gas         {}\n  \
             slashed     {}\n  new name    {}\n  net         {net}\n  {:<11} {}",
            history::last(self.days), count("success"), count("right"), count("error"), count("timeout"), show_amount(paid), show_amount(start_fees), less(gas),
            less(slashed), less(names), hour.time(), hour.text(),
        );
        if *missing > 0 {
            text += &format!(
                "\n  {missing} transactions are missing, and their gas: no node of --rpc-url knows any more in which blocks they are"
            );
        }
        if self.csv {
            text = "task,started_block,outcome,paid,refunded,start_fees,slashed,gas,names".into();
            for (id, line) in lines {
                let Line { started, outcome, paid, refunded, start_fees, slashed, gas, names } = line;
                text += &format!("\n{id},{started},{outcome},{paid},{refunded},{start_fees},{slashed},{gas},{names}");
            }
        }
        let tasks = lines.iter().map(|(id, line)| {
            json!({
                "task": id.to_string(), "startedBlock": line.started, "outcome": line.outcome, "paid": line.paid.to_string(),
                "refunded": line.refunded.to_string(), "startFees": line.start_fees.to_string(), "slashed": line.slashed.to_string(),
                "gas": line.gas.to_string(), "names": line.names.to_string(),
            })
        });
        let json = json!({
            "node": node, "days": self.days, "paid": paid.to_string(), "startFees": start_fees.to_string(), "slashed": slashed.to_string(),
            "gas": gas.to_string(), "names": names.to_string(), "missing": missing, "hour": hour.json(), "tasks": tasks.collect::<Vec<_>>(),
        });
        Report { json, text }
    }
}

impl Books {
    /// The books of a node, for the last days.
    pub async fn of(session: &Session, node: u32, days: f64) -> Result<Self> {
        let operator = session.muster.read(IMuster::nodeCall { number: node }).await?.operator;
        let from = history::days_ago(session.endpoints(), days).await?;
        let mut lines: BTreeMap<u64, Line> = BTreeMap::new();
        // A transaction's gas is shared by the tasks in its events; without any it belongs to no task.
        let mut about: BTreeMap<B256, BTreeSet<u64>> = BTreeMap::new();
        // Its own tasks, and others that its operator served: events name the node in different positions.
        let events = history::events(session, from, [None, None, None]).await?;
        // The payers of the node's gas: the accounts that work for it at the time.
        let hands = hands(session, node, operator).await?;
        let mut fees: BTreeMap<B256, U256> = BTreeMap::new();
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
                // The block before it joins with it.
                Event::GpuGroupCreated(e) => {
                    fees.insert(past.transaction, U256::from(e.fee));
                }
                Event::NodeJoined(e) if e.node == node => {
                    let fee = fees.remove(&past.transaction).unwrap_or_default();
                    task(0, &mut |line| line.names += fee);
                }
                Event::WorkAccepted(e) if e.node == node => task(0, &mut |_| {}),
                Event::Withdrawn(e) if e.account == operator => task(0, &mut |_| {}),
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
        let missing = add_others(session, from, &hands, &mut about).await?;
        let receipts = about.keys().map(|hash| async move {
            let receipt: Option<TransactionReceipt> = session.endpoints().ask("eth_getTransactionReceipt", json!([hash])).await?;
            Ok::<_, Error>((hash, receipt))
        });
        let receipts: Vec<_> = stream::iter(receipts).buffered(8).try_collect().await?;
        let accounts: BTreeSet<Address> = hands.iter().map(|(who, _)| *who).collect();
        for (hash, receipt) in receipts {
            let Some(receipt) = receipt.filter(|receipt| accounts.contains(&receipt.from)) else { continue };
            let cost = U256::from(receipt.gas_used) * U256::from(receipt.effective_gas_price);
            let tasks = &about[hash];
            let part = cost / U256::from(tasks.len());
            let mut rest = cost;
            for task in tasks.iter().rev() {
                // The first task gets the remainder.
                let its = if Some(task) == tasks.first() { rest } else { part };
                rest -= its;
                lines.entry(*task).or_default().gas += its;
            }
        }
        let joined = events.iter().find(|past| matches!(&past.event, Event::NodeJoined(e) if e.node == node));
        let first = history::block(session.endpoints(), joined.map_or(from, |past| past.block)).await?.timestamp;
        let seconds = session.endpoints().head().await?.timestamp.saturating_sub(first);
        Ok(Self { lines, missing, seconds })
    }
}

/// Adds calls of the contract without an event of the node: draws for others, reverted calls, calls without effect.
/// Returns how many of them a node of the chain without history does not report.
async fn add_others(session: &Session, from: u64, hands: &Hands, about: &mut BTreeMap<B256, BTreeSet<u64>>) -> Result<u64> {
    let endpoints = session.endpoints();
    let head = endpoints.head().await?.number;
    let known = about.keys().copied().map(|hash| spent::transaction(endpoints, hash));
    let known: Vec<_> = stream::iter(known).buffered(8).try_collect().await?;
    let mut missing = 0;
    let accounts: BTreeSet<Address> = hands.iter().map(|(who, _)| *who).collect();
    for account in accounts {
        let own = known.iter().flatten().filter(|sent| sent.from == account).cloned().collect();
        let all = spent::all(endpoints, account, from, head, own).await?;
        missing += all.missing;
        let at = |block| hands.iter().any(|(who, blocks)| *who == account && blocks.contains(&block));
        for sent in all.sent.iter().filter(|sent| sent.to == Some(session.muster.address()) && sent.block().is_some_and(at)) {
            about.entry(sent.hash).or_insert_with(|| BTreeSet::from([0]));
        }
    }
    Ok(missing)
}

/// The operator, and each worker of the node: from acceptance to the next named account.
async fn hands(session: &Session, node: u32, operator: Address) -> Result<Hands> {
    let of = [Some(history::topic(U256::from(node))), None, None];
    let mut events = history::events_of(session, 0, Some(IMuster::WorkAccepted::SIGNATURE_HASH), of).await?;
    events.extend(history::events_of(session, 0, Some(WorkerNamed::SIGNATURE_HASH), of).await?);
    events.sort_by_key(|past| (past.block, past.log.log_index));
    let (mut hands, mut works) = (vec![(operator, 0..=u64::MAX)], None);
    for past in events {
        match past.event {
            Event::WorkAccepted(e) => works = Some((e.worker, past.block)),
            _ => hands.extend(works.take().map(|(worker, since)| (worker, since..=past.block))),
        }
    }
    hands.extend(works.map(|(worker, since)| (worker, since..=u64::MAX)));
    Ok(hands)
}
