//! Why a node gets the work it gets: its weight beside the others', and the range of chance.
//!
//! The weights are muster-core's, the contract's own. Expectations for past tasks use the *present* weights
//! of the present nodes, as if all had been idle: the chain keeps no past ones.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::path::PathBuf;

use alloy::primitives::U256;
use anyhow::{ensure, Result};
use clap::Args;
use futures_util::{stream, StreamExt, TryStreamExt};
use muster_client::{pause, show_amount, Event, IMuster};
use muster_core::{qos, weight};
use serde_json::json;

use crate::node::{status, wad, Which};
use crate::session::{Report, Session};
use crate::{agent, earnings, history, state};

#[derive(Args)]
pub struct Why {
    #[command(flatten)]
    which: Which,
    /// How far back to look at tasks
    #[arg(long, default_value_t = 1.0)]
    days: f64,
    /// Give up where the network has more nodes than this
    #[arg(long, default_value_t = 20_000)]
    most_nodes: u32,
    /// Ask the node's agent too, at its metrics (`listen` of its configuration): only it knows a reason that came after the pause
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<String>,
    /// Read the state of the node's agent too, on its machine: the folder is `home` of its configuration. The agent may be gone
    #[arg(long, value_name = "DIRECTORY")]
    state: Option<PathBuf>,
    #[command(flatten)]
    power: earnings::Power,
}

type Node = IMuster::NodeView;

/// All nodes that ever joined.
pub async fn all_nodes(session: &Session, most: u32) -> Result<Vec<Node>> {
    const PAGE: u32 = 64;
    let issued = session.muster.read(IMuster::overviewCall {}).await?.nodesIssued;
    ensure!(issued <= most, "there are {issued} nodes, more than the {most} that are looked at: raise --most-nodes");
    let pages = (1..=issued).step_by(PAGE as usize).map(|from| session.muster.read(IMuster::nodesCall { from, count: PAGE }));
    let pages: Vec<Vec<Node>> = stream::iter(pages).buffered(8).try_collect().await?;
    Ok(pages.into_iter().flatten().collect())
}

/// Whether draws can choose the node, now or after its work.
fn takes_part(node: &Node) -> bool {
    matches!(node.status, 1 | 2) && !node.excluded && !node.held
}

fn can_run(node: &Node, spec: &IMuster::TaskSpec) -> bool {
    if spec.gpu == 0 {
        node.vram >= spec.vram
    } else {
        node.gpu == spec.gpu
    }
}

fn holds(of: &[u64], models: &[u64]) -> u32 {
    models.iter().filter(|model| of.contains(model)).count() as u32
}

/// A node's weight for a task that needs these models.
pub fn weight_of(node: &Node, models: &[u64], largest: u128, stake_unit: u64) -> u64 {
    let stake_units = |wei: u128| (wei / u128::from(stake_unit.max(1))) as u64;
    let staking = weight::staking_score(stake_units(node.stake), stake_units(largest));
    let boost = weight::locality_boost(holds(&node.models, models), holds(&node.inUse, models), models.len() as u32);
    weight::weight(boost, staking, qos::qos(node.longTerm, node.reliability))
}

/// The probability that a task goes to a node: its weight's share among the candidates. These are the holders of the task's
/// models, if there are any.
fn share(node: &Node, nodes: &[Node], spec: &IMuster::TaskSpec, largest: u128, stake_unit: u64) -> f64 {
    let mut rivals: Vec<&Node> = nodes.iter().filter(|other| takes_part(other) && can_run(other, spec)).collect();
    if !spec.models.is_empty() && rivals.iter().any(|other| holds(&other.models, &spec.models) > 0) {
        rivals.retain(|other| holds(&other.models, &spec.models) > 0);
    }
    let sum: f64 = rivals.iter().map(|other| weight_of(other, &spec.models, largest, stake_unit) as f64).sum();
    let own = rivals.iter().find(|other| other.node == node.node);
    own.map_or(0.0, |own| weight_of(own, &spec.models, largest, stake_unit) as f64 / sum.max(1.0))
}

/// The range of the number of independent events with these probabilities that happen in at least 95 of 100 cases: the exact
/// distribution, one event folded in at a time.
pub fn interval(probabilities: &[f64]) -> (usize, usize) {
    let mut chance = vec![1.0];
    for p in probabilities {
        chance.push(0.0);
        for k in (0..chance.len()).rev() {
            let before = if k == 0 { 0.0 } else { chance[k - 1] };
            chance[k] = chance[k] * (1.0 - p) + before * p;
        }
    }
    let tail = |from: &mut dyn Iterator<Item = (usize, &f64)>| {
        let mut sum = 0.0;
        for (k, chance) in from {
            sum += chance;
            if sum > 0.025 {
                return k;
            }
        }
        0
    };
    (tail(&mut chance.iter().enumerate()), tail(&mut chance.iter().enumerate().rev()))
}

/// The days that a pause is looked for at least.
const PAUSES: f64 = 30.0;
/// The most tasks, the newest.
const TASKS: usize = 5_000;

impl Why {
    pub async fn run(&self, session: &Session) -> Result<Report> {
        let number = self.which.number(session).await?;
        let told = match &self.metrics {
            Some(address) => Some(agent::ask(address, session.muster.address()).await?),
            None => None,
        };
        let kept = self.state.as_ref().map(|place| state::told(place, session.muster.address(), number)).transpose()?;
        let nodes = all_nodes(session, self.most_nodes).await?;
        let overview = session.muster.read(IMuster::overviewCall {}).await?;
        let head = session.endpoints().head().await?;
        let node = nodes.iter().find(|node| node.node == number).cloned().unwrap_or_default();
        let any = IMuster::TaskSpec { vram: 1, ..Default::default() };
        let (largest, stake_unit) = (overview.largestStake, overview.stakeUnit);
        let own = weight_of(&node, &[], largest, stake_unit);
        let part = share(&node, &nodes, &any, largest, stake_unit);
        let missing = self.missing(session, &node, &overview, head.timestamp).await?;
        let listed = node.status == 0 || session.muster.read(IMuster::gpuListedCall { group: node.gpu }).await?;
        let least_stake = session.muster.least_stake().await?;

        let from = history::days_ago(session.endpoints(), self.days).await?;
        let events = history::events(session, from, [None, None, None]).await?;
        let (mut specs, mut queued): (BTreeMap<u64, IMuster::TaskSpec>, HashSet<u64>) = Default::default();
        let (mut drawn, mut from_queue, mut members) = (Vec::new(), 0, 0);
        for past in events {
            match past.event {
                Event::TaskCreated(e) => {
                    specs.insert(e.id, e.spec);
                }
                Event::TaskQueued(e) => {
                    queued.insert(e.id);
                }
                // Queued tasks go to the next free node, not by weight.
                Event::TaskStarted(e) if queued.contains(&e.id) => from_queue += usize::from(e.node == number),
                Event::TaskStarted(e) => drawn.push((e.id, e.node)),
                Event::MemberStarted(e) => members += usize::from(e.node == number),
                _ => {}
            }
        }
        let skipped = drawn.len().saturating_sub(TASKS);
        let drawn: Vec<_> = drawn.into_iter().skip(skipped).filter_map(|(id, to)| Some((specs.get(&id)?, to))).collect();
        let chances: Vec<f64> = drawn.iter().map(|(spec, _)| share(&node, &nodes, spec, largest, stake_unit)).collect();
        let actual = drawn.iter().filter(|(_, to)| *to == number).count();
        // The sum of none is -0.
        let expected = chances.iter().sum::<f64>() + 0.0;
        let (least, most) = interval(&chances);
        let verdict = match actual {
            // By present weights, of which it has none.
            _ if chances.iter().all(|&chance| chance == 0.0) && actual > 0 => {
                "it takes part in no draw now, so nothing can be said"
            }
            n if n < least => "fewer than chance explains: it was busy, away, excluded, or weighed less than now",
            n if n > most => "more than chance explains: others were busy, or it weighed more than now",
            _ => "as many as chance allows",
        };

        // There is nothing to estimate for a node that never joined.
        let hour = if node.status == 0 && node.node == 0 {
            None
        } else {
            Some(earnings::Books::of(session, number, self.days).await?.hour(&self.power))
        };
        let mut text = format!(
            "node {number}: {}, {}\n",
            status(node.status),
            if missing.is_empty() { "nothing keeps it from work" } else { "this keeps it from work, or lowers its chances:" }
        );
        for line in &missing {
            let _ = writeln!(text, "  - {line}");
        }
        let staking = weight::staking_score(
            (node.stake / u128::from(stake_unit.max(1))) as u64,
            (largest / u128::from(stake_unit.max(1))) as u64,
        );
        let _ = write!(
            text,
            "  H {}, Q_long {} of 1, S {}: weight {} for a task without models, {:.2} % of all participants\n  \
             models: {} held, {} in use\n  {}: {} tasks drawn; {actual} began here, {expected:.1} expected by present weights, \
             {least} to {most} in 95 of 100 cases: {verdict}\n  {from_queue} more from the queue, {members} as a member of a validation group",
            wad(node.reliability), wad(node.longTerm), wad(staking), wad(own), part * 100.0, node.models.len(), node.inUse.len(), history::last(self.days), drawn.len(),
        );
        if let Some(hour) = &hour {
            let _ = write!(text, "\n  {}: {}", hour.time(), hour.text());
        }
        if !listed {
            let group = node.gpu;
            let _ = write!(
                text,
                "\n  its GPU group {group} is not listed: it gets no texts that are compared, until the owner lists it"
            );
        }
        let short = least_stake.saturating_sub(U256::from(node.stake));
        if node.status != 0 && !short.is_zero() {
            let _ = write!(
                text,
                "\n  its stake is {}, and the least is {} now: {} puts it out for good: muster node raise-stake {}",
                show_amount(node.stake),
                show_amount(least_stake),
                session.muster.fatal_slash(U256::from(node.stake)).await?,
                show_amount(short).replace(' ', "")
            );
        }
        for (name, lines) in told.iter().flatten() {
            let _ = write!(text, "\n  its agent says of {name}:");
            for line in lines {
                let _ = write!(text, "\n  - {line}");
            }
        }
        if let Some(lines) = &kept {
            let _ = write!(text, "\n  its agent's journal says:");
            for line in lines {
                let _ = write!(text, "\n  - {line}");
            }
        }
        let json = json!({
            "agent": told, "journal": kept, "hour": hour.map(|hour| hour.json()), "node": number, "status": status(node.status), "missing": missing, "reliability": node.reliability.to_string(),
            "longTerm": node.longTerm.to_string(), "staking": staking.to_string(), "weight": own.to_string(), "share": part,
            "models": node.models.len(), "days": self.days, "drawn": drawn.len(), "skipped": skipped, "actual": actual, "expected": expected,
            "interval": [least, most], "listed": listed, "leastStake": least_stake.to_string(), "fromQueue": from_queue, "asMember": members,
        });
        Ok(Report { json, text })
    }

    /// The author of a pause, and how it ends: the agent would repeat a pause that it has a reason for.
    async fn why_paused(&self, session: &Session, node: u32) -> Result<String> {
        const OWN: &str = "it is paused, or will be when its task ends: muster node resume";
        let from = history::days_ago(session.endpoints(), self.days.max(PAUSES)).await?;
        let events = history::events(session, from, [Some(history::topic(U256::from(node))), None, None]).await?;
        // A node with a task pauses at its end, in another's call.
        let (mut by, mut pausing) = (None, false);
        for past in &events {
            match &past.event {
                Event::NodePausing(e) if e.node == node => (by, pausing) = (Some(past.transaction), true),
                Event::NodePaused(e) if e.node == node && pausing => pausing = false,
                Event::NodePaused(e) if e.node == node => by = Some(past.transaction),
                Event::NodeResumed(e) if e.node == node => (by, pausing) = (None, false),
                _ => {}
            }
        }
        let Some(by) = by else { return Ok(OWN.into()) };
        let sent: Option<serde_json::Value> = session.endpoints().ask("eth_getTransactionByHash", json!([by])).await?;
        let input = sent.as_ref().and_then(|sent| sent["input"].as_str()?.parse::<alloy::primitives::Bytes>().ok());
        let Some(reasons) = input.and_then(|input| pause::reasons(&input)) else { return Ok(OWN.into()) };
        let told: Vec<_> = reasons.iter().map(|reason| format!("{reason}: {}", pause::explain(reason))).collect();
        Ok(format!(
            "its agent has paused it, and pauses it again as long as there is a reason. When it did, that was {}. A \
             later reason is only in the agent's log, its metrics (--metrics asks it) and its journal (--state reads it): no call pauses a node twice",
            told.join(". And ")
        ))
    }

    /// The obstacles between a node and work.
    async fn missing(&self, session: &Session, node: &Node, overview: &IMuster::Overview, now: u64) -> Result<Vec<String>> {
        let mut missing = Vec::new();
        match node.status {
            0 => missing.push("it is not joined: muster node join".into()),
            3 | 5 => missing.push(self.why_paused(session, node.node).await?),
            4 | 6 => missing.push("it leaves when its task ends".into()),
            2 if node.deadline < now => missing
                .push(format!("its task {} is past its deadline, and nobody has ended it: muster keeper --once", node.task)),
            _ => {}
        }
        if node.excluded {
            missing.push(format!(
                "its H is below the threshold: it is excluded for {} s more",
                node.parkedUntil.saturating_sub(now)
            ));
        }
        if node.parked == 1 && !node.excluded && node.parkedUntil > now {
            missing.push(format!("it has reported an error and rests for {} s more", node.parkedUntil - now));
        }
        if node.parked == 1 && node.parkedUntil <= now {
            missing.push(format!(
                "its time to return has come, and nobody has re-admitted it for {} s: muster keeper --once, or any call of its own",
                now - node.parkedUntil
            ));
        }
        if node.parked == 2 || node.parked == 3 {
            missing.push("it waits for others, for a task that takes several nodes".into());
        }
        if node.held {
            missing.push(format!(
                "it has {} open commitments, as many as may be: reveal them, or have their groups settled",
                node.openCommitments
            ));
        }
        if node.reliability < 900_000_000_000_000_000 && node.status != 0 {
            missing.push(format!("H is {}: tasks timed out lately; it recovers by itself", wad(node.reliability)));
        }
        if node.models.is_empty() && node.status != 0 {
            missing.push("it holds no models: tasks that need one go to its holders (muster node models --add)".into());
        }
        if overview.paused {
            missing.push("the owner of the network has stopped new tasks".into());
        }
        let hand = session.muster.read(IMuster::workerOfCall { number: node.node }).await?;
        let payer = if hand.works { hand.worker } else { node.operator };
        let balance = session.endpoints().balance(payer).await?;
        let price = U256::from(session.endpoints().head().await?.base_fee_per_gas.unwrap_or_default());
        // A commitment and a reveal, each of less gas than this.
        if node.status != 0 && balance < price * U256::from(400_000) {
            missing.push(format!("{payer} has {}, too little for the gas of its next answers", show_amount(balance)));
        }
        Ok(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_binomial_distribution() {
        // R: qbinom(c(.025, .975), 100, .1) and (20, .5); a certainty; nothing at all.
        assert_eq!(interval(&[0.1; 100]), (5, 16));
        assert_eq!(interval(&[0.5; 20]), (6, 14));
        assert_eq!(interval(&[1.0; 3]), (3, 3));
        assert_eq!(interval(&[]), (0, 0));
    }
}
