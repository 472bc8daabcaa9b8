//! The report of a node's agent at its `/metrics`, in words: reasons to pause that came after the pause are on no chain.

use std::collections::BTreeMap;
use std::time::Duration;

use alloy::primitives::Address;
use anyhow::{ensure, Context, Result};
use muster_client::{observe, pause, show_amount};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The time limit of an agent's answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer at most.
const MOST: u64 = 4 << 20;
/// Seconds without a look at the chain after which an agent is in trouble.
const BLIND: f64 = 300.0;

/// One value of a metric, with its labels.
struct Value {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// Reads a line of OpenMetrics' text; none of a comment.
fn value(line: &str) -> Option<Value> {
    let (series, value) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))?;
    let value = value.parse().ok()?;
    let Some((name, rest)) = series.split_once('{') else {
        return Some(Value { name: series.into(), labels: BTreeMap::new(), value });
    };
    let mut labels = BTreeMap::new();
    let mut rest = rest.strip_suffix('}')?;
    while let Some((label, more)) = rest.split_once("=\"") {
        let mut text = String::new();
        let mut chars = more.char_indices();
        let end = loop {
            match chars.next()? {
                (_, '\\') => text.push(match chars.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (end, '"') => break end,
                (_, other) => text.push(other),
            }
        };
        labels.insert(label.trim_start_matches(',').to_string(), text);
        rest = &more[end + 1..];
    }
    Some(Value { name: name.into(), labels, value })
}

/// A metric's name or label for a terminal, without control characters.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// The report of an agent's `/metrics` on each of its nodes, by the agent's names for them, at a time in seconds since 1970.
fn told(text: &str, now: u64) -> BTreeMap<String, Vec<String>> {
    let values: Vec<_> = text.lines().filter_map(value).collect();
    let of = |node: &str, name: &str| {
        let mut found = values.iter().filter(|one| one.name.strip_prefix("muster_agent_") == Some(name));
        found.find(|one| one.labels.get("node").is_some_and(|its| its == node)).map(|one| one.value)
    };
    let nodes = values.iter().filter(|one| one.name == "muster_agent_ready").filter_map(|one| one.labels.get("node"));
    nodes
        .map(|node| {
            let mut lines = Vec::new();
            let looked = of(node, "looked_timestamp_seconds").unwrap_or_default();
            let ago = now as f64 - looked;
            if ago > BLIND {
                lines.push(format!("it has not looked at the chain for {ago:.0} s: its log says why, and what follows is as old"));
            }
            for one in &values {
                if one.name == "muster_agent_paused_by_agent" && one.value > 0.0 && one.labels.get("node") == Some(node) {
                    let why = plain(one.labels.get("why").map_or("", |why| why));
                    lines.push(format!("it pauses the node, {why}: {}", pause::explain(&why)));
                }
            }
            let ready = of(node, "ready") == Some(1.0);
            if !ready && lines.is_empty() {
                lines.push(
                    "it is not ready, and has no reason to pause: the node is not joined or paused by its operator, its golden tasks \
                     are not answered yet, or the contract does not answer"
                        .into(),
                );
            }
            if let Some(failures) = of(node, "failures_in_a_row").filter(|failures| *failures > 0.0) {
                lines.push(format!("{failures:.0} tasks in a row failed by the node"));
            }
            if let (Some(has), Some(needs)) = (of(node, "balance_wei"), of(node, "balance_needed_wei")) {
                if has < needs {
                    let amount = |wei: f64| show_amount(alloy::primitives::U256::from(wei as u128));
                    lines.push(format!("its key has {}, and what is open may take {}", amount(has), amount(needs)));
                }
            }
            if let Some(deadline) = of(node, "reveal_deadline_timestamp_seconds").filter(|deadline| *deadline > 0.0) {
                let left = deadline - now as f64;
                let open = of(node, "reveals_open").unwrap_or_default();
                lines.push(format!("{open:.0} answers are to be revealed, the next within {left:.0} s"));
            }
            if lines.is_empty() {
                lines.push("it is ready for tasks".into());
            }
            (plain(node), lines)
        })
        .collect()
}

/// Gets an agent's page: plain HTTP, which is all that agents serve.
async fn get(url: &str) -> Result<String> {
    let host = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/metrics")).context("only http:// is served")?;
    let mut stream = TcpStream::connect(host).await?;
    stream.write_all(format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.take(MOST).read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("it does not speak HTTP")?;
    ensure!(head.split(' ').nth(1) == Some("200"), "it answers {}", head.lines().next().unwrap_or_default());
    Ok(body.into())
}

/// Asks an agent at the address of its metrics, `listen` of its configuration, with `/metrics` or without.
pub async fn ask(address: &str, muster: Address) -> Result<BTreeMap<String, Vec<String>>> {
    let address = if address.contains("://") { address.to_string() } else { format!("http://{address}") };
    let url = format!("{}/metrics", address.trim_end_matches('/').trim_end_matches("/metrics"));
    let what = || format!("no agent answers at {url}");
    let asked = get(&url);
    let text = tokio::time::timeout(PATIENCE, asked).await.with_context(what)?.with_context(what)?;
    let info = text.lines().filter_map(value).find(|one| one.name == "muster_agent_info");
    let contract =
        info.as_ref().and_then(|info| info.labels.get("contract")).with_context(|| format!("{url} is no muster-agent's"))?;
    ensure!(contract.parse() == Ok(muster), "the agent at {url} works for the contract {}, not for {muster}", plain(contract));
    Ok(told(&text, observe::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_with_their_labels() {
        let found = value(r#"muster_agent_endpoint_up{endpoint="a \"b\", c",node="x=\"1"} 1.0"#).unwrap();
        assert_eq!((found.name.as_str(), found.value), ("muster_agent_endpoint_up", 1.0));
        assert_eq!(found.labels["endpoint"], "a \"b\", c");
        assert_eq!(found.labels["node"], "x=\"1");
        assert_eq!(value("muster_agent_next_block 12.0").unwrap().value, 12.0);
        for line in ["# TYPE muster_agent_ready gauge", "# EOF", "", "muster_agent_ready{node=\"open 1.0"] {
            assert!(value(line).is_none(), "{line}");
        }
    }

    /// Every metric read here is one that the agent serves.
    #[test]
    fn every_name_is_one_of_the_agents() {
        let (agents, here) = (include_str!("../../agent/src/metrics.rs"), include_str!("agent.rs"));
        let read: Vec<_> = here.split("of(node, \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(read.len() > 6);
        for name in read.into_iter().chain(["info", "paused_by_agent", "ready"]) {
            assert!(
                agents.contains(&format!("(\"{name}\", false")) || agents.contains(&format!("\"{name}\",\n        false")),
                "{name}"
            );
        }
    }
}
