//! Makes due calls, for anybody: nothing happens on chain by itself.
//!
//! Due calls come from the contract's views, and each is tried before it is sent. So a call that another account was quicker with
//! costs nothing.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy::primitives::U256;
use alloy::sol_types::SolCall;
use anyhow::Result;
use clap::Args;
use muster_client::observe::{self, now, Described, Metrics};
use muster_client::{parameter, show_amount, Account, Error, Event, IMuster, Reason, Refusal, DISPATCH, LATE_REVEALS};
use muster_core::qos;
use serde_json::json;

use crate::node::models;
use crate::options::amount;
use crate::session::{Report, Session};
use crate::why::all_nodes;

#[derive(Args)]
pub struct Keeper {
    /// Look once, make due calls, and end
    #[arg(long)]
    once: bool,
    /// Seconds between two looks
    #[arg(long, default_value_t = 5, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    every: u64,
    /// Also take nodes that hold a model no longer out of its holders, 64 at most in a look; nobody pays for it; can be repeated
    #[arg(long, value_name = "MODEL")]
    purge: Vec<String>,
    /// Only calls that earn more than their gas costs
    #[arg(long)]
    only_profit: bool,
    /// End when the account has less than this
    #[arg(long, value_name = "AMOUNT", value_parser = amount, default_value = "0")]
    keep: U256,
    /// Give up where the network has more nodes than this
    #[arg(long, default_value_t = 20_000)]
    most_nodes: u32,
    /// Serve /metrics and /health here
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
}

/// Every metric: its name without `muster_keeper_`.
pub const ALL: [Described; 6] = [
    ("looked_timestamp_seconds", false, "When it last looked at the chain without trouble"),
    ("balance_wei", false, "The account's balance"),
    ("keep_wei", false, "With less than this it ends"),
    ("calls_total", true, "Calls that were mined since it started"),
    ("earned_wei_total", true, "Their earnings"),
    ("gas_wei_total", true, "Their gas costs"),
];

/// The calls made, with their earnings and gas.
#[derive(Default)]
struct Books {
    calls: u64,
    earned: U256,
    gas: U256,
}

/// As in `IMuster.MemberView.stage`.
const COMMITTED: u8 = 3;
/// A page of a list.
const PAGE: u32 = 256;
/// The most entries of a list in one look.
const MOST: u32 = 16_384;
/// The most calls with draws in one look: the next look makes the rest.
const DRAWS: u32 = 64;
/// The most entries of a model's holders that are taken out in one look.
const PURGED: usize = 64;

/// The blocks whose hashes decide due draws, of tasks and of validators, as far as a page shows them.
pub async fn due_draws(session: &Session, head: u64) -> Result<Vec<u64>> {
    let muster = &session.muster;
    let tasks = muster.read(IMuster::pendingTasksCall { from: 0, count: PAGE }).await?;
    let calls = muster.read(IMuster::validatorDrawsCall { from: 0, count: PAGE }).await?;
    // The next block knows the hash of this one.
    let due = tasks.into_iter().chain(calls).filter(|task| task.id != 0 && task.drawBlock <= head);
    Ok(due.map(|task| task.drawBlock).collect())
}

/// The groups that can be judged now.
pub async fn due_groups(session: &Session, now: u64) -> Result<Vec<IMuster::GroupView>> {
    let (mut from, mut places, mut due) = (1, 1, Vec::new());
    while from <= places && from < MOST {
        let page = session.muster.read(IMuster::groupsCall { from, count: PAGE }).await?;
        places = page.places;
        due.extend(page._1.into_iter().filter(|group| {
            let open = group.members.iter().any(|member| matches!(member.stage, 1..=3));
            group.closes > 0 && (group.closes < now || !open)
        }));
        from += PAGE;
    }
    Ok(due)
}

/// The tasks that are queued.
pub async fn queued(session: &Session) -> Result<Vec<IMuster::TaskView>> {
    let (mut from, mut total, mut tasks) = (0, 1, Vec::new());
    while from < total && from < MOST {
        let page = session.muster.read(IMuster::queuesCall { from, count: PAGE }).await?;
        total = page.total;
        for queue in page._1.iter().filter(|queue| queue.queued > 0) {
            for place in (0..queue.places.min(MOST)).step_by(PAGE as usize) {
                let call = IMuster::queuedTasksCall { queue: queue.queue, from: place, count: PAGE };
                tasks.extend(session.muster.read(call).await?._1);
            }
        }
        from += PAGE;
    }
    Ok(tasks)
}

/// Groups whose time is over while an answer in them is not revealed, and when that was first seen.
#[derive(Default)]
struct Late(HashMap<(u64, u32), Instant>);

impl Late {
    /// Those of due groups that are judged now. Others wait for [`LATE_REVEALS`]: a late reveal counts until the judgement.
    fn over(&mut self, due: Vec<IMuster::GroupView>, now: Instant) -> Vec<IMuster::GroupView> {
        let known = std::mem::take(&mut self.0);
        let judged = due.into_iter().filter(|group| {
            if !group.members.iter().any(|member| member.stage == COMMITTED) {
                return true;
            }
            let place = (group.id, group.group);
            let since = *self.0.entry(place).or_insert(known.get(&place).copied().unwrap_or(now));
            now.duration_since(since) >= LATE_REVEALS
        });
        judged.collect()
    }
}

struct Round<'a> {
    session: &'a Session,
    account: Option<&'a Account>,
    options: &'a Keeper,
    books: Books,
    metrics: Arc<Metrics>,
    late: Late,
}

impl Keeper {
    pub async fn run(&self, session: &Session) -> Result<Option<Report>> {
        let account = if session.options.dry_run { None } else { Some(session.account().await?) };
        let metrics = Arc::new(Metrics::new("muster_keeper", &ALL));
        metrics.set("keep_wei", &[], f64::from(self.keep));
        for name in ["calls_total", "earned_wei_total", "gas_wei_total"] {
            metrics.add(name, &[], 0.0);
        }
        if let Some(listen) = self.listen {
            let most = Duration::from_secs(300 + 5 * self.every);
            let at = observe::serve(listen, metrics.clone(), "looked_timestamp_seconds", most).await?;
            tracing::info!("metrics at http://{at}/metrics");
        }
        let (books, late) = (Books::default(), Late::default());
        let mut round = Round { session, account: account.as_ref(), options: self, books, metrics, late };
        // Including a round requested while another goes on.
        let stop = crate::session::asked_to_end()?;
        tokio::pin!(stop);
        loop {
            if let Some(account) = &account {
                let balance = session.endpoints().balance(account.address()).await.unwrap_or(U256::MAX);
                round.metrics.set("balance_wei", &[], f64::from(balance));
                if balance < self.keep {
                    tracing::error!("the account has {}, less than --keep", show_amount(balance));
                    return Ok(Some(round.books.report()));
                }
            }
            match round.look().await {
                Ok(()) => round.metrics.set("looked_timestamp_seconds", &[], now() as f64),
                Err(error) if !self.once && error.downcast_ref::<Error>().is_some_and(passes) => {
                    tracing::warn!("{error:#}");
                }
                Err(error) => return Err(error),
            }
            if self.once {
                return Ok(Some(round.books.report()));
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(self.every)) => {}
                () = &mut stop => return Ok(Some(round.books.report())),
            }
        }
    }
}

/// Whether a later look may succeed: nodes are away, the base fee falls, or a program that is missing or has expired is brought back.
fn passes(error: &Error) -> bool {
    let lacks = matches!(error.refusal(), Some(Refusal::Known(Reason::ProgramFailed(_) | Reason::UnknownFunction(_))));
    error.passes() || lacks || matches!(error, Error::Unpayable { .. })
}

/// The most that a caller other than the node's operator can earn by ending a task, or having it validated.
fn start_fee(task: &IMuster::TaskView) -> u128 {
    qos::share_bps(task.fee, task.startFeeBps)
}

impl Books {
    fn report(&self) -> Report {
        Report {
            json: json!({ "calls": self.calls, "earned": self.earned.to_string(), "gas": self.gas.to_string() }),
            text: format!("{} calls: {} earned, {} of gas", self.calls, show_amount(self.earned), show_amount(self.gas)),
        }
    }
}

impl Round<'_> {
    async fn look(&mut self) -> Result<()> {
        if let Some(account) = self.account {
            account.sender().tick().await?;
        }
        let head = self.session.endpoints().head().await?;
        // Draws first: other calls are refused before them. Draws of tasks and of validators are made in turn by the same call,
        // which may make only one if that takes much gas.
        let mut due = due_draws(self.session, head.number).await?.len();
        for _ in 0..DRAWS {
            if due == 0 || !self.drive(IMuster::dispatchCall { count: DISPATCH }, 0, "drawn").await? || self.account.is_none() {
                break;
            }
            let left = due_draws(self.session, head.number).await?.len();
            // With only_profit, nothing was sent.
            if left >= due {
                break;
            }
            due = left;
        }
        self.nodes(head.timestamp).await?;
        self.groups(head.timestamp).await?;
        self.queues(head.timestamp).await
    }

    /// Holders of a model that hold it no longer still count in draws, where they hide those that do.
    async fn purge(&mut self, nodes: &[IMuster::NodeView]) -> Result<()> {
        for model in models(&self.options.purge)? {
            let holding = |node: &&IMuster::NodeView| node.status != 0 && node.models.contains(&model);
            let holding: HashSet<u32> = nodes.iter().filter(holding).map(|node| node.node).collect();
            let (mut from, mut total, mut stale) = (0, 1, Vec::new());
            while from < total && from < MOST {
                let page = self.session.muster.read(IMuster::holdersCall { model, from, count: PAGE }).await?;
                total = page.total;
                let places = (from..).zip(page.numbers).filter(|(_, number)| !holding.contains(number));
                stale.extend(places.map(|(position, _)| position));
                from += PAGE;
            }
            // The last entry moves to the place of one that is taken out.
            for position in stale.into_iter().rev().take(PURGED) {
                self.drive(IMuster::purgeCall { model, position }, 0, &format!("holder {position} of {model:#018x} purged"))
                    .await?;
            }
        }
        Ok(())
    }

    async fn nodes(&mut self, now: u64) -> Result<()> {
        let nodes = all_nodes(self.session, self.options.most_nodes).await?;
        self.purge(&nodes).await?;
        for node in nodes {
            let (number, id) = (node.node, node.task);
            if node.parked > 0 && node.parkedUntil > 0 && node.parkedUntil <= now {
                self.drive(IMuster::pokeCall { node: number }, 0, &format!("node {number} brought back")).await?;
            }
            if !matches!(node.status, 2 | 3 | 4 | 6) || id == 0 {
                continue;
            }
            let task = self.session.muster.read(IMuster::runningTaskCall { number }).await?;
            match task.status {
                3 | 6 if task.deadline < now => {
                    self.drive(
                        IMuster::expireCall { node: number, id: task.id },
                        start_fee(&task),
                        &format!("task {} of node {number} expired", task.id),
                    )
                    .await?;
                }
                4 => {
                    let validated = self
                        .drive(
                            IMuster::validateCall { id: task.id, node: number },
                            start_fee(&task),
                            &format!("task {} validated", task.id),
                        )
                        .await?;
                    if !validated {
                        self.drive(
                            IMuster::expireCall { node: number, id: task.id },
                            start_fee(&task),
                            &format!("task {} expired unrevealed", task.id),
                        )
                        .await?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn groups(&mut self, now: u64) -> Result<()> {
        let mut due = due_groups(self.session, now).await?;
        if !self.options.once {
            due = self.late.over(due, Instant::now());
        }
        for group in due {
            let call = IMuster::settleCall { id: group.id, group: group.group };
            self.drive(call, 0, &format!("the group of task {} judged", group.id)).await?;
        }
        Ok(())
    }

    async fn queues(&mut self, now: u64) -> Result<()> {
        let limit: u64 = self.session.muster.parameter(parameter::QUEUE_TIME).await?.saturating_to();
        for task in queued(self.session).await? {
            if task.queuedAt + limit < now {
                let call = IMuster::expireQueuedCall { id: task.id, ticket: task.ticket };
                self.drive(call, start_fee(&task), &format!("task {} was queued for too long", task.id)).await?;
            }
        }
        Ok(())
    }

    /// Calls, if it would be accepted and pays, by the start fee that it can earn; returns whether it would be accepted.
    async fn drive<C: SolCall + Clone>(&mut self, call: C, earns: u128, what: &str) -> Result<bool> {
        let muster = &self.session.muster;
        let from = match self.account {
            Some(account) => account.address(),
            None => self.session.address().await?,
        };
        let gas = match muster.gas(from, &call, U256::ZERO).await {
            Ok(gas) => gas,
            // Another was quicker, or it is too early after all.
            Err(Error::Refused(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let Some(account) = self.account else {
            self.session.say(&Report {
                json: json!({ "due": what, "call": C::SIGNATURE, "gas": gas }),
                text: format!("due: {what} ({gas} gas)"),
            });
            return Ok(true);
        };
        if self.options.only_profit {
            let price = self.session.endpoints().head().await?.base_fee_per_gas.unwrap_or_default();
            if U256::from(gas) * U256::from(price) >= U256::from(earns) {
                return Ok(true);
            }
        }
        let done = match account.call(call, U256::ZERO).await {
            Ok(done) => done,
            Err(Error::Refused(_) | Error::Undone { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let earned = done.events.iter().fold(U256::ZERO, |sum, event| match event {
            Event::TaskAborted(e) if e.beneficiary == from => sum + U256::from(e.startFee),
            Event::TaskSampled(e) if e.beneficiary == from => sum + U256::from(e.paid),
            _ => sum,
        });
        self.books.calls += 1;
        self.books.earned += earned;
        self.books.gas += done.cost();
        for (name, value) in [("calls_total", U256::from(1)), ("earned_wei_total", earned), ("gas_wei_total", done.cost())] {
            self.metrics.add(name, &[], f64::from(value));
        }
        let mut report = self.session.reported(&done, what);
        report.text = format!("{what}: {} earned, {} of gas", show_amount(earned), show_amount(done.cost()));
        report.json["what"] = json!(what);
        report.json["earned"] = json!(earned.to_string());
        self.session.say(&report);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_not_revealed_is_given_time_before_the_judgement() {
        let group = |id, stages: [u8; 3]| {
            let members = stages.map(|stage| IMuster::MemberView { stage, ..IMuster::MemberView::default() });
            IMuster::GroupView { id, group: 7, members: members.into(), ..IMuster::GroupView::default() }
        };
        let due = || vec![group(1, [4, 4, 5]), group(2, [4, COMMITTED, 4])];
        let (mut late, begun) = (Late::default(), Instant::now());
        let mut over = |due, after| {
            let over = late.over(due, begun + after);
            over.into_iter().map(|group| group.id).collect::<Vec<_>>()
        };
        assert_eq!(over(due(), Duration::ZERO), [1]);
        assert_eq!(over(due(), LATE_REVEALS / 2), [1]);
        assert_eq!(over(due(), LATE_REVEALS), [1, 2]);
        // Judged by somebody else, and another one at its place.
        assert_eq!(over(vec![], LATE_REVEALS), [0; 0]);
        assert_eq!(over(due(), LATE_REVEALS), [1]);
    }
}
