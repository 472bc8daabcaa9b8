//! Metrics for the owner of a network: `deploy/alerts.yaml` and `deploy/dashboard.json` use them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use alloy::primitives::U256;
use anyhow::Result;
use clap::Args;
use muster_client::observe::{self, now, Described, Metrics};
use muster_client::{Fault, Head, IMuster};
use serde_json::json;

use crate::keepalive::{self, Life};
use crate::keeper;
use crate::proposals::Proposals;
use crate::session::{Report, Session};

#[derive(Args)]
pub struct Exporter {
    /// Where /metrics and /health are served
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9465")]
    listen: SocketAddr,
    /// Seconds between two looks at the chain
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    every: u64,
    /// The contract's first block, or any before it: proposals of programs are searched from there on
    #[arg(long, value_name = "BLOCK", default_value_t = 0)]
    from_block: u64,
    /// Look once, print the metrics, and end
    #[arg(long)]
    once: bool,
}

/// Every metric: its name without `muster_`.
const ALL: [Described; 29] = [
    ("looked_timestamp_seconds", false, "The time of the last look at the chain, even if it failed"),
    ("part_up", false, "Whether a part of these metrics could be read at the last look: where it could not, its values are old"),
    ("block_number", false, "The newest block"),
    ("block_timestamp_seconds", false, "Its time"),
    ("base_fee_wei", false, "The price of a unit of gas"),
    ("paused", false, "Whether the owner has stopped new tasks and joins"),
    ("nodes_joined", false, "Nodes that are joined"),
    ("tasks_created", false, "Tasks ever created"),
    ("groups_open", false, "Validation groups that are not settled"),
    ("reserve_wei", false, "The reserve, which tops up validators' pay"),
    ("burnt_wei", false, "All that was ever burnt"),
    ("treasury_wei", false, "Protocol income that is not paid out"),
    ("tasks_pending", false, "Tasks that wait for their draw"),
    ("draws_due", false, "Draws that anybody could make now, of tasks and of validators: they hold up those behind them"),
    ("draw_overdue_blocks", false, "Blocks since the first of them became due"),
    ("tasks_queued", false, "Tasks that are queued"),
    ("queue_capacity", false, "How many can be"),
    ("queue_oldest_seconds", false, "How long the oldest of them has been queued; 0 without one"),
    ("queue_limit_seconds", false, "Seconds after which anybody may end a queued task"),
    ("groups_overdue", false, "Groups that anybody could have judged now"),
    ("program_up", false, "Whether a program runs"),
    (
        "program_expires_timestamp_seconds",
        false,
        "When a program stops running unless somebody keeps it alive; 0 of one that does not run",
    ),
    ("upgrades_renounced", false, "Whether programs can never be changed again"),
    (
        "proposal_effective_timestamp_seconds",
        false,
        "From when on anybody may put a proposal into effect; 0 of one that somebody must accept",
    ),
    ("endpoint_up", false, "Whether a node of the chain is asked"),
    ("endpoint_contradicts", false, "Whether a node of the chain contradicts the others, or is of another chain"),
    ("endpoint_head_block", false, "A node's newest block when they were compared last"),
    ("endpoint_behind_blocks", false, "Blocks that it was behind the others then"),
    ("info", false, "1; version, chain and contract are labels"),
];

struct Looks<'a> {
    session: &'a Session,
    metrics: Arc<Metrics>,
    proposals: Proposals,
}

impl Exporter {
    pub async fn run(&self, session: &Session) -> Result<Option<Report>> {
        let metrics = Arc::new(Metrics::new("muster", &ALL));
        let mut looks = Looks { session, metrics: metrics.clone(), proposals: Proposals::since(self.from_block) };
        if self.once {
            looks.look().await;
            let text = metrics.text();
            return Ok(Some(Report { json: json!({ "metrics": text }), text: text.trim_end().into() }));
        }
        let most = Duration::from_secs(5 * self.every.max(12));
        let at = observe::serve(self.listen, metrics, "looked_timestamp_seconds", most).await?;
        tracing::info!("metrics at http://{at}/metrics");
        let stop = crate::session::asked_to_end()?;
        tokio::pin!(stop);
        loop {
            looks.look().await;
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(self.every)) => {}
                () = &mut stop => return Ok(None),
            }
        }
    }
}

impl Looks<'_> {
    /// Looks at each part independently: where programs have expired, the other figures still work.
    async fn look(&mut self) {
        let chain = self.chain().await;
        let head = chain.as_ref().ok().copied();
        self.up("chain", &chain);
        if let Some(head) = head {
            let programs = self.programs(&head).await;
            self.up("programs", &programs);
            let network = self.network().await;
            self.up("network", &network);
            let draws = self.draws(&head).await;
            self.up("draws", &draws);
            let queue = self.queue(&head).await;
            self.up("queue", &queue);
            let proposals = self.proposed().await;
            self.up("proposals", &proposals);
        }
        self.endpoints();
        self.metrics.set("looked_timestamp_seconds", &[], now() as f64);
    }

    fn up<T>(&self, part: &str, read: &Result<T>) {
        if let Err(error) = read {
            tracing::warn!("{part}: {error:#}");
        }
        self.metrics.set("part_up", &[("part", part)], f64::from(u8::from(read.is_ok())));
    }

    fn set(&self, name: &str, value: impl Into<U256>) {
        self.metrics.set(name, &[], f64::from(value.into()));
    }

    async fn chain(&self) -> Result<Head> {
        let endpoints = self.session.endpoints();
        let (chain, contract) = (endpoints.chain().await?.to_string(), self.session.muster.address().to_string());
        self.metrics.set("info", &[("chain", &chain), ("contract", &contract), ("version", env!("CARGO_PKG_VERSION"))], 1.0);
        let head = endpoints.head().await?;
        self.set("block_number", U256::from(head.number));
        self.set("block_timestamp_seconds", U256::from(head.timestamp));
        self.set("base_fee_wei", U256::from(head.base_fee_per_gas.unwrap_or_default()));
        Ok(head)
    }

    async fn network(&self) -> Result<()> {
        let view = self.session.muster.read(IMuster::overviewCall {}).await?;
        self.set("paused", U256::from(u8::from(view.paused)));
        self.set("nodes_joined", U256::from(view.nodesJoined));
        self.set("tasks_created", U256::from(view.tasks));
        self.set("groups_open", U256::from(view.groups));
        self.set("reserve_wei", U256::from(view.reserve));
        self.set("burnt_wei", U256::from(view.burnt));
        self.set("treasury_wei", U256::from(view.treasuryBalance));
        self.set("tasks_pending", U256::from(view.pending));
        self.set("tasks_queued", U256::from(view.queued));
        self.set("queue_capacity", U256::from(view.queueCapacity));
        Ok(())
    }

    async fn draws(&self, head: &Head) -> Result<()> {
        let due = keeper::due_draws(self.session, head.number).await?;
        self.set("draws_due", U256::from(due.len()));
        let first = due.iter().min().map_or(0, |block| head.number - block);
        self.set("draw_overdue_blocks", U256::from(first));
        let groups = keeper::due_groups(self.session, head.timestamp).await?;
        self.set("groups_overdue", U256::from(groups.len()));
        Ok(())
    }

    async fn queue(&self, head: &Head) -> Result<()> {
        let limit = self.session.muster.parameter(muster_client::parameter::QUEUE_TIME).await?;
        self.set("queue_limit_seconds", limit);
        let queued = keeper::queued(self.session).await?;
        let oldest = queued.iter().map(|task| head.timestamp.saturating_sub(task.queuedAt)).max();
        self.set("queue_oldest_seconds", U256::from(oldest.unwrap_or_default()));
        Ok(())
    }

    async fn programs(&self, head: &Head) -> Result<()> {
        let (mut up, mut expires) = (Vec::new(), Vec::new());
        for program in keepalive::programs(self.session).await? {
            let label = || vec![("program".to_string(), program.to_string())];
            let left = match keepalive::life(self.session, program).await? {
                Life::Runs(left) => Some(left),
                Life::Stopped(_) => None,
            };
            up.push((label(), f64::from(u8::from(left.is_some()))));
            expires.push((label(), left.map_or(0.0, |left| head.timestamp.saturating_add(left) as f64)));
        }
        self.metrics.replace("program_up", &[], up);
        self.metrics.replace("program_expires_timestamp_seconds", &[], expires);
        Ok(())
    }

    async fn proposed(&mut self) -> Result<()> {
        let found = self.proposals.look(self.session).await?;
        let values = found.into_iter().map(|proposal| {
            let labels = [("kind", proposal.kind.to_string()), ("to", proposal.to), ("what", proposal.what)];
            (labels.map(|(name, value)| (name.to_string(), value)).to_vec(), proposal.effective.unwrap_or_default() as f64)
        });
        self.metrics.replace("proposal_effective_timestamp_seconds", &[], values.collect::<Vec<_>>());
        let renounced = self.session.muster.read(IMuster::upgradesCall {}).await?.renounced;
        self.set("upgrades_renounced", U256::from(u8::from(renounced)));
        Ok(())
    }

    fn endpoints(&self) {
        for endpoint in self.session.endpoints().standing() {
            let of = [("endpoint", &*endpoint.node)];
            let contradicts = matches!(endpoint.fault, Some(Fault::Contradicts(_) | Fault::OtherChain(_)));
            let behind = if let Some(Fault::Behind(blocks)) = endpoint.fault { blocks } else { 0 };
            self.metrics.set("endpoint_up", &of, f64::from(u8::from(endpoint.fault.is_none())));
            self.metrics.set("endpoint_contradicts", &of, f64::from(u8::from(contradicts)));
            self.metrics.set("endpoint_behind_blocks", &of, behind as f64);
            if let Some(head) = endpoint.head {
                self.metrics.set("endpoint_head_block", &of, head as f64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every metric in a rule or a dashboard exists, and every metric that an owner must act on has a rule.
    #[test]
    fn rules_and_pictures_name_metrics_that_there_are() {
        let (rules, board) = (include_str!("../deploy/alerts.yaml"), include_str!("../deploy/dashboard.json"));
        let known = |name: &str| {
            ALL.iter().any(|(known, ..)| *known == name)
                || name.strip_prefix("keeper_").is_some_and(|name| keeper::ALL.iter().any(|(known, ..)| *known == name))
                || name.strip_prefix("keepalive_").is_some_and(|name| keepalive::ALL.iter().any(|(known, ..)| *known == name))
        };
        for text in [rules, board] {
            let mut named = 0;
            for part in text.split("muster_").skip(1) {
                let name: String = part.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
                assert!(known(&name), "{name}");
                named += 1;
            }
            assert!(named > 12, "{named}");
        }
        let acted_on = [
            "draw_overdue_blocks",
            "queue_oldest_seconds",
            "program_expires",
            "proposal_effective",
            "endpoint_contradicts",
            "reserve_wei",
        ];
        for name in acted_on {
            assert!(rules.contains(name) && board.contains(name), "{name}");
        }
    }
}
