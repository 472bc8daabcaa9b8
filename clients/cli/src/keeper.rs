//! Driving what is due, whoever's it is: nothing happens on chain by itself.
//!
//! What is due is read from the contract's views, and every call is tried before it is sent, so that what another has
//! done meanwhile costs nothing.

use std::time::Duration;

use alloy::primitives::U256;
use alloy::sol_types::SolCall;
use anyhow::Result;
use clap::Args;
use muster_client::{parameter, show_amount, Account, Error, Event, IMuster, DISPATCH};
use muster_core::qos;
use serde_json::json;

use crate::options::amount;
use crate::session::{Report, Session};
use crate::why::all_nodes;

#[derive(Args)]
pub struct Keeper {
    /// Look once, drive what is due, and end
    #[arg(long)]
    once: bool,
    /// Seconds between two looks
    #[arg(long, default_value_t = 5, value_name = "SECONDS")]
    every: u64,
    /// Only what earns more than its gas costs
    #[arg(long)]
    only_profit: bool,
    /// End when the account has less than this
    #[arg(long, value_name = "AMOUNT", value_parser = amount, default_value = "0")]
    keep: U256,
    /// Give up where the network has more nodes than this
    #[arg(long, default_value_t = 20_000)]
    most_nodes: u32,
}

/// What was done and what it came to.
#[derive(Default)]
struct Books {
    calls: u64,
    earned: U256,
    gas: U256,
}

/// A page of a list.
const PAGE: u32 = 256;
/// The most of a list that one look goes through.
const MOST: u32 = 16_384;

struct Round<'a> {
    session: &'a Session,
    account: Option<&'a Account>,
    options: &'a Keeper,
    books: Books,
}

impl Keeper {
    pub async fn run(&self, session: &Session) -> Result<Option<Report>> {
        let account = if session.options.dry_run { None } else { Some(session.account().await?) };
        let mut round = Round { session, account: account.as_ref(), options: self, books: Books::default() };
        // Of one that is asked for while a round goes on, too.
        let stop = tokio::signal::ctrl_c();
        tokio::pin!(stop);
        loop {
            match round.look().await {
                Ok(()) => {}
                Err(error) if !self.once && error.downcast_ref::<Error>().is_some_and(Error::passes) => {
                    eprintln!("muster: {error}");
                }
                Err(error) => return Err(error),
            }
            if self.once {
                return Ok(Some(round.books.report()));
            }
            if let Some(account) = &account {
                let balance = session.endpoints().balance(account.address()).await.unwrap_or(U256::MAX);
                if balance < self.keep {
                    eprintln!("muster: the account has {}, less than what --keep says", show_amount(balance));
                    return Ok(Some(round.books.report()));
                }
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(self.every)) => {}
                _ = &mut stop => return Ok(Some(round.books.report())),
            }
        }
    }
}

/// What ending a task, or having it validated, brings at most who is not its node's operator.
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
        let muster = &self.session.muster;
        let head = self.session.endpoints().head().await?;
        let overview = muster.read(IMuster::overviewCall {}).await?;
        // Draws first: until they are made, others are refused. The next block knows the hash of this one.
        if overview.pending > 0 {
            let due = muster.read(IMuster::pendingTasksCall { from: 0, count: PAGE }).await?;
            for _ in 0..due.iter().filter(|task| task.drawBlock <= head.number).count().div_ceil(DISPATCH as usize) {
                self.drive(IMuster::dispatchCall { count: DISPATCH }, 0, "drawn").await?;
            }
        }
        let calls = muster.read(IMuster::callsCall { from: 0, count: PAGE }).await?;
        for _ in calls.iter().filter(|task| task.id != 0 && task.drawBlock <= head.number) {
            self.drive(IMuster::formGroupCall {}, 0, "validators drawn").await?;
        }
        self.nodes(head.timestamp).await?;
        self.groups(head.timestamp).await?;
        self.queues(head.timestamp).await
    }

    async fn nodes(&mut self, now: u64) -> Result<()> {
        for node in all_nodes(self.session, self.options.most_nodes).await? {
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
        let (mut from, mut places) = (1, 1);
        while from <= places && from < MOST {
            let page = self.session.muster.read(IMuster::groupsCall { from, count: PAGE }).await?;
            places = page.places;
            for group in page._1 {
                let open = group.members.iter().any(|member| matches!(member.stage, 1..=3));
                if group.closes > 0 && (group.closes < now || !open) {
                    let call = IMuster::settleCall { id: group.id, group: group.group };
                    self.drive(call, 0, &format!("the group of task {} judged", group.id)).await?;
                }
            }
            from += PAGE;
        }
        Ok(())
    }

    async fn queues(&mut self, now: u64) -> Result<()> {
        let limit: u64 = self.session.muster.parameter(parameter::QUEUE_TIME).await?.saturating_to();
        let (mut from, mut total) = (0, 1);
        while from < total && from < MOST {
            let page = self.session.muster.read(IMuster::queuesCall { from, count: PAGE }).await?;
            total = page.total;
            for queue in page._1.iter().filter(|queue| queue.queued > 0) {
                for place in (0..queue.places.min(MOST)).step_by(PAGE as usize) {
                    let call = IMuster::queuedTasksCall { queue: queue.queue, from: place, count: PAGE };
                    for task in self.session.muster.read(call).await?._1 {
                        if task.queuedAt + limit < now {
                            let call = IMuster::expireQueuedCall { id: task.id, ticket: task.ticket };
                            self.drive(call, start_fee(&task), &format!("task {} was queued for too long", task.id)).await?;
                        }
                    }
                }
            }
            from += PAGE;
        }
        Ok(())
    }

    /// Calls, if it would be accepted and is worth it, by the start fee that it can earn; whether it would be accepted.
    async fn drive<C: SolCall + Clone>(&mut self, call: C, earns: u128, what: &str) -> Result<bool> {
        let muster = &self.session.muster;
        let from = match self.account {
            Some(account) => account.address(),
            None => self.session.signer()?.address(),
        };
        let gas = match muster.gas(from, &call, U256::ZERO).await {
            Ok(gas) => gas,
            // Another was quicker, or its time has not come after all.
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
        let mut report = self.session.reported(&done, what);
        report.text = format!("{what}: {} earned, {} of gas", show_amount(earned), show_amount(done.cost()));
        report.json["what"] = json!(what);
        report.json["earned"] = json!(earned.to_string());
        self.session.say(&report);
        Ok(true)
    }
}
