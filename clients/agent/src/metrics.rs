//! How the agent is doing: for Prometheus, and for who restarts what hangs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use axum::extract::State;
use axum::http::{header, StatusCode};
use axum::routing::get;
use axum::Router;
use tokio::net::TcpListener;

use crate::shared::Shared;

/// Every metric: its name without `muster_agent_`, whether it is a counter, and what it is.
const ALL: [(&str, bool, &str); 28] = [
    ("info", false, "1; version, chain and contract are labels"),
    ("looked_timestamp_seconds", false, "When the node last looked at the chain without trouble"),
    ("ready", false, "Whether the node is joined, not paused, and its self-test passed"),
    ("node_status", false, "As in NodeView: 0 quit, 1 available, 2 busy, 3 pausing, 4 quitting, 5 paused, 6 being kicked out"),
    ("node_excluded", false, "Whether the node's reliability keeps it from work"),
    ("node_reliability", false, "H, from 0 to 1"),
    ("node_stake_wei", false, "The node's stake"),
    ("paused_by_agent", false, "1 for each reason for which the agent pauses the node"),
    ("jobs_open", false, "Jobs that are not over, by stage"),
    ("answer_deadline_timestamp_seconds", false, "Until when the running task has to be answered; 0 without one"),
    (
        "reveal_deadline_timestamp_seconds",
        false,
        "Until when the next open answer has to be revealed; 0 without one, or while that is not known",
    ),
    ("reveals_open", false, "Answers that are committed to and not revealed"),
    ("balance_wei", false, "What the key has for gas"),
    ("balance_needed_wei", false, "What it needs to reveal all that is open and to pause"),
    ("failures_in_a_row", false, "Tasks since the last that succeeded that failed by the node, as far as a task alone can tell"),
    ("disk_free_bytes", false, "What is free where the agent writes"),
    ("disk_least_bytes", false, "What has to be, or the nodes are paused"),
    ("gpu_lost", false, "Whether the GPU does not answer"),
    ("gpu_temperature_celsius", false, "The GPU's temperature"),
    ("gpu_memory_used_bytes", false, "The GPU's memory in use"),
    ("gpu_memory_bytes", false, "The GPU's memory"),
    ("gpu_busy_ratio", false, "How much of the last moments the GPU computed, from 0 to 1"),
    ("tasks", false, "Jobs by what they came to, of the newest 10,000"),
    ("earned_wei", false, "What those earned"),
    ("gas_wei_total", true, "What transactions have cost since the agent started"),
    ("alerts_total", true, "Alerts since the agent started, by kind"),
    ("next_block", false, "The first block whose events have not been read"),
    ("endpoint_up", false, "Whether a node of the chain is asked, by its host"),
];

/// Values by metric and labels.
#[derive(Default)]
pub struct Metrics(Mutex<BTreeMap<(&'static str, String), f64>>);

/// One node's.
pub struct OfNode<'a>(pub &'a Metrics, pub &'a str);

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ");
    format!("{name}=\"{value}\"")
}

impl Metrics {
    fn values(&self) -> MutexGuard<'_, BTreeMap<(&'static str, String), f64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, name: &'static str, labels: String, value: f64) {
        debug_assert!(ALL.iter().any(|(known, ..)| *known == name), "{name} is not described");
        self.values().insert((name, labels), value);
    }

    fn add(&self, name: &'static str, labels: String, value: f64) {
        debug_assert!(ALL.iter().any(|(known, ..)| *known == name), "{name} is not described");
        *self.values().entry((name, labels)).or_default() += value;
    }

    /// Notes an alert.
    pub fn count_alert(&self, kind: &str) {
        self.add("alerts_total", label("kind", kind), 1.0);
    }

    /// Notes how far events have been read.
    pub fn read_up_to(&self, block: u64) {
        self.set("next_block", String::new(), block as f64);
    }

    fn get(&self, name: &'static str, labels: &str) -> Option<f64> {
        self.values().get(&(name, labels.to_string())).copied()
    }

    /// As Prometheus reads it.
    fn text(&self) -> String {
        let values = self.values();
        let mut text = String::new();
        for (name, counter, help) in ALL {
            let kind = if counter { "counter" } else { "gauge" };
            let _ = writeln!(text, "# HELP muster_agent_{name} {help}\n# TYPE muster_agent_{name} {kind}");
            for ((_, labels), value) in values.range((name, String::new())..).take_while(|((other, _), _)| *other == name) {
                let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
                let _ = writeln!(text, "muster_agent_{name}{labels} {value}");
            }
        }
        text
    }
}

impl OfNode<'_> {
    fn label(&self) -> String {
        label("node", self.1)
    }

    /// Sets a value.
    pub fn set(&self, name: &'static str, value: f64) {
        self.0.set(name, self.label(), value);
    }

    /// Sets a value, unless it is less already and not 0.
    pub fn set_least(&self, name: &'static str, value: f64) {
        let known = self.0.get(name, &self.label()).filter(|known| *known > 0.0);
        self.set(name, known.map_or(value, |known| known.min(value)));
    }

    /// Adds to a value.
    pub fn add(&self, name: &'static str, value: f64) {
        self.0.add(name, self.label(), value);
    }

    /// Sets the values of a metric that has a label more, and forgets its others.
    pub fn set_all(&self, name: &'static str, by: &str, values: impl IntoIterator<Item = (String, f64)>) {
        let own = self.label();
        self.0.values().retain(|(other, labels), _| *other != name || !labels.starts_with(&own));
        for (what, value) in values {
            self.0.set(name, format!("{own},{}", label(by, &what)), value);
        }
    }

    /// The node has looked at the chain without trouble.
    pub fn looked(&self) {
        self.set("looked_timestamp_seconds", now() as f64);
    }
}

/// Takes the address at which to serve, or says why not.
pub async fn listen(at: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(at).await.with_context(|| format!("cannot serve metrics at {at} (`listen`)"))
}

/// Serves `/metrics`, `/health` (every node has looked at the chain not long ago) and `/ready` (every node can take tasks).
pub async fn serve(shared: Arc<Shared>, listener: TcpListener) -> Result<()> {
    let app = Router::new()
        .route("/metrics", get(metrics))
        .route("/health", get(health))
        .route("/ready", get(ready))
        .with_state(shared);
    Ok(axum::serve(listener, app).await?)
}

async fn metrics(State(shared): State<Arc<Shared>>) -> ([(header::HeaderName, &'static str); 1], String) {
    let about = [("version", env!("CARGO_PKG_VERSION")), ("contract", &shared.config.muster.to_string())];
    let mut labels = vec![label("chain", &shared.chain_id.to_string())];
    labels.extend(about.iter().map(|(name, value)| label(name, value)));
    shared.metrics.set("info", labels.join(","), 1.0);
    for endpoint in shared.chain.muster.endpoints().standing() {
        let up = f64::from(u8::from(endpoint.fault.is_none()));
        shared.metrics.set("endpoint_up", label("endpoint", &endpoint.node), up);
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], shared.metrics.text())
}

/// Says of each node what is wrong with it.
fn say_of_all(shared: &Shared, wrong: impl Fn(&str) -> Option<String>) -> (StatusCode, String) {
    let all: Vec<String> =
        shared.config.nodes.iter().filter_map(|node| wrong(&node.name).map(|what| format!("{}: {what}", node.name))).collect();
    if all.is_empty() {
        (StatusCode::OK, "ok\n".into())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, all.join("\n") + "\n")
    }
}

async fn health(State(shared): State<Arc<Shared>>) -> (StatusCode, String) {
    // Transactions are waited for, and golden tasks at the start.
    let most = 300 + 5 * shared.config.look_every;
    say_of_all(&shared, |node| {
        let looked = shared.metrics.get("looked_timestamp_seconds", &label("node", node)).unwrap_or_default() as u64;
        (looked + most < now()).then(|| format!("has not looked at the chain for {} s", now().saturating_sub(looked)))
    })
}

async fn ready(State(shared): State<Arc<Shared>>) -> (StatusCode, String) {
    say_of_all(&shared, |node| {
        (shared.metrics.get("ready", &label("node", node)) != Some(1.0)).then(|| "cannot take tasks".into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every metric that a rule or a picture names is there.
    #[test]
    fn rules_and_pictures_name_metrics_that_there_are() {
        for text in [include_str!("../deploy/alerts.yaml"), include_str!("../deploy/dashboard.json")] {
            let mut named = 0;
            for part in text.split("muster_agent_").skip(1) {
                let name: String = part.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
                assert!(ALL.iter().any(|(known, ..)| *known == name), "{name}");
                named += 1;
            }
            assert!(named > 8);
        }
    }

    #[test]
    fn metrics_are_written_as_prometheus_reads_them() {
        let metrics = Metrics::default();
        let node = OfNode(&metrics, "gpu\"0");
        node.set("ready", 1.0);
        node.set_all("jobs_open", "stage", [("taken".into(), 2.0), ("sent".into(), 1.0)]);
        node.set_all("jobs_open", "stage", [("sent".into(), 3.0)]);
        node.add("gas_wei_total", 1.5e15);
        node.add("gas_wei_total", 1.0);
        let text = metrics.text();
        assert!(text.contains("# TYPE muster_agent_ready gauge\nmuster_agent_ready{node=\"gpu\\\"0\"} 1\n"), "{text}");
        assert!(text.contains("muster_agent_jobs_open{node=\"gpu\\\"0\",stage=\"sent\"} 3\n") && !text.contains("taken\""));
        assert!(text.contains("muster_agent_gas_wei_total{node=\"gpu\\\"0\"} 1500000000000001\n"), "{text}");
    }
}
