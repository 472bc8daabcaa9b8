//! The network as it is, and its events as they come.

use alloy::primitives::{Address, U256};
use anyhow::{ensure, Result};
use clap::Args;
use muster_client::{abi, parameter, show_amount, Batch, Cursor, Events, IMuster, Reading};
use serde_json::json;

use crate::options::address;
use crate::session::{event_json, Report, Session};

#[derive(Args)]
pub struct Watch {
    /// Only events that name this node
    #[arg(long)]
    node: Option<u32>,
    /// Only events that name this task
    #[arg(long, conflicts_with = "node")]
    task: Option<u64>,
    /// Only events that name this account
    #[arg(long, value_parser = address)]
    by: Option<Address>,
    /// From this block on [default: the next]
    #[arg(long, value_name = "BLOCK")]
    from: Option<u64>,
    /// Keep the position in this directory, and go on there the next time
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "from")]
    cursor: Option<std::path::PathBuf>,
}

pub async fn network(session: &Session) -> Result<Report> {
    let view = session.muster.read(IMuster::overviewCall {}).await?;
    let head = session.endpoints().head().await?;
    let minimum = session.muster.parameter(parameter::MIN_STAKE).await? * U256::from(view.stakeUnit);
    let mut text = format!(
        "Muster {} on chain {}, block {}{}\n  nodes      {} joined of {} ever, largest stake {}, least {}\n  \
         tasks      {} created; {} pending, {} queued of {} at most\n  groups     {} open\n  \
         reserve    {}\n  burnt      {}\n  treasury   {} for {}\n  owner      {}",
        session.muster.address(),
        session.endpoints().chain().await?,
        head.number,
        if view.paused { ", PAUSED by its owner" } else { "" },
        view.nodesJoined,
        view.nodesIssued,
        show_amount(view.largestStake),
        show_amount(minimum),
        view.tasks,
        view.pending,
        view.queued,
        view.queueCapacity,
        view.groups,
        show_amount(view.reserve),
        show_amount(view.burnt),
        show_amount(view.treasuryBalance),
        view.treasury,
        view.owner,
    );
    let standing = session.endpoints().standing();
    for node in &standing {
        if let Some(fault) = &node.fault {
            text += &format!("\n  not asked  {}: {fault}", node.node);
        }
    }
    let nodes = standing
        .into_iter()
        .map(|node| json!({ "node": node.node, "fault": node.fault.map(|fault| fault.to_string()), "head": node.head }));
    let json = json!({
        "muster": session.muster.address(), "block": head.number, "time": head.timestamp, "paused": view.paused,
        "nodesJoined": view.nodesJoined, "nodesIssued": view.nodesIssued, "largestStake": view.largestStake.to_string(),
        "leastStake": minimum.to_string(), "tasks": view.tasks.to_string(), "pending": view.pending, "queued": view.queued,
        "queueCapacity": view.queueCapacity, "groups": view.groups, "reserve": view.reserve.to_string(), "burnt": view.burnt.to_string(),
        "treasury": view.treasury, "treasuryBalance": view.treasuryBalance.to_string(), "owner": view.owner,
        "rpc": nodes.collect::<Vec<_>>(),
    });
    Ok(Report { json, text })
}

impl Watch {
    /// Prints events until it is interrupted.
    pub async fn run(&self, session: &Session) -> Result<()> {
        let endpoints = session.endpoints().clone();
        let (contract, chain) = (session.muster.address(), endpoints.chain().await?);
        let next = endpoints.head().await?.number + 1;
        let start = self.from.unwrap_or(next);
        ensure!(start <= next, "block {start} has not come yet: the next is {next}");
        let reading = Reading { wake: session.options.ws_url.clone(), ..Reading::default() };
        let mut events = match &self.cursor {
            Some(place) => Events::open(endpoints, contract, start, place.clone(), reading).await?,
            None => Events::with_cursor(endpoints, Cursor::new(chain, contract, start), reading).await?,
        };
        loop {
            let batch = events.next().await?;
            match &batch {
                Batch::Undone { to, .. } => {
                    let text = format!("the chain was reorganised: nothing above of blocks after {to} happened");
                    session.say(&Report { json: json!({ "undoneTo": to }), text });
                }
                Batch::Events { events, .. } => {
                    for logged in events {
                        let json = event_json(&logged.log);
                        if self.wants(&json["values"]) {
                            let event =
                                logged.event.as_ref().map_or_else(|| "an event of a newer contract".into(), abi::describe);
                            session.say(&Report { json, text: format!("block {}: {event}", logged.block) });
                        }
                    }
                }
            }
            events.accept(&batch)?;
        }
    }

    fn wants(&self, values: &serde_json::Value) -> bool {
        let node =
            |node: u32| values["node"] == json!(node) || values["nodes"].as_array().is_some_and(|all| all.contains(&json!(node)));
        let task = |id: u64| [&values["id"], &values["task"]].contains(&&json!(id.to_string()));
        let by = |who: Address| values.as_object().is_some_and(|values| values.values().any(|value| *value == json!(who)));
        self.node.is_none_or(node) && self.task.is_none_or(task) && self.by.is_none_or(by)
    }
}
