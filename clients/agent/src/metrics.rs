//! Metrics of the agent and its nodes.

use std::time::Duration;

use muster_client::observe::{self, now, Described};

/// Every metric: its name without `muster_agent_`, whether it is a counter, and what it is.
const ALL: [Described; 33] = [
    ("info", false, "1; version, chain and contract are labels"),
    ("looked_timestamp_seconds", false, "When the node last looked at the chain without trouble"),
    ("ready", false, "Whether the node is joined, not paused, its self-test passed, and the contract answers"),
    ("node_status", false, "As in NodeView: 0 quit, 1 available, 2 busy, 3 pausing, 4 quitting, 5 paused, 6 being kicked out"),
    ("node_excluded", false, "Whether the node's reliability keeps it from work"),
    ("node_reliability", false, "H, from 0 to 1"),
    ("node_stake_wei", false, "The node's stake"),
    ("paused_by_agent", false, "1 for each reason for which the agent pauses the node"),
    ("jobs_open", false, "Jobs that are not over, by stage"),
    ("answer_deadline_timestamp_seconds", false, "Until when the running task must be answered; 0 without one"),
    (
        "reveal_deadline_timestamp_seconds",
        false,
        "Until when the next open answer must be revealed; 0 without one, or while that is not known",
    ),
    ("reveals_open", false, "Answers that are committed to and not revealed"),
    ("balance_wei", false, "The key's balance for gas"),
    ("balance_needed_wei", false, "The balance needed for all open reveals and a pause"),
    ("failures_in_a_row", false, "Tasks that failed by the node since the last success, as far as a task alone can tell"),
    ("disk_free_bytes", false, "Free space where the agent writes"),
    ("disk_least_bytes", false, "Bytes that must be free, or the nodes are paused"),
    ("gpu_lost", false, "Whether the GPU does not answer"),
    ("gpu_temperature_celsius", false, "The GPU's temperature"),
    ("gpu_memory_used_bytes", false, "The GPU's memory in use"),
    ("gpu_memory_bytes", false, "The GPU's memory"),
    ("gpu_busy_ratio", false, "How much of the last moments the GPU computed, from 0 to 1"),
    ("tasks", false, "Jobs by outcome, of the newest 10,000"),
    ("earned_wei", false, "The earnings of those"),
    ("gas_wei_total", true, "The cost of transactions since the agent started"),
    ("alerts_total", true, "Alerts since the agent started, by kind"),
    ("streams_open", false, "Answers that are shown while they are made, and not over"),
    ("stream_readers", false, "Those that read them"),
    ("stream_pieces_total", true, "Pieces of answers that were sent to readers since the agent started"),
    ("stream_bytes_total", true, "Their bytes of text"),
    ("stream_refused_total", true, "Readers that were sent away since the agent started, because too many read"),
    ("next_block", false, "The first block whose events have not been read"),
    ("endpoint_up", false, "Whether a node of the chain is asked, by its host"),
];

/// Kinds of alerts that deploy/alerts.yaml watches.
pub const GRAVE: [&str; 4] = ["judged", "slashed", "kicked", "timeout"];
/// Others that it watches: the agent does nothing for a node, or less than it should.
const TROUBLE: [&str; 12] =
    ["start", "error", "program", "reveal", "rescue", "dismissed", "left", "gas", "paused", "events", "journal", "nonce"];
/// The kind of the alerts of proposals.
pub const PROPOSAL: &str = "proposal";
/// And acts of the owner: proposals, and the listing of the node's group.
const PROPOSED: [&str; 2] = [PROPOSAL, "listed"];

/// The agent's metrics.
pub struct Metrics(pub observe::Metrics);

/// One node's metrics.
pub struct OfNode<'a>(pub &'a Metrics, pub &'a str);

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self(observe::Metrics::new("muster_agent", &ALL));
        // A first alert is no increase of a series that was not there.
        for kind in GRAVE.iter().chain(&TROUBLE).chain(&PROPOSED) {
            metrics.0.add("alerts_total", &[("kind", kind)], 0.0);
        }
        metrics
    }
}

impl Metrics {
    /// Notes an alert.
    pub fn count_alert(&self, kind: &str) {
        self.0.add("alerts_total", &[("kind", kind)], 1.0);
    }

    /// Notes how far events have been read.
    pub fn read_up_to(&self, block: u64) {
        self.0.set("next_block", &[], block as f64);
    }
}

impl OfNode<'_> {
    /// Sets a value.
    pub fn set(&self, name: &'static str, value: f64) {
        self.0 .0.set(name, &[("node", self.1)], value);
    }

    /// Sets a value, unless the present one is less and not 0.
    pub fn set_least(&self, name: &'static str, value: f64) {
        let known = self.get(name).filter(|known| *known > 0.0);
        self.set(name, known.map_or(value, |known| known.min(value)));
    }

    pub fn get(&self, name: &str) -> Option<f64> {
        self.0 .0.get(name, &[("node", self.1)])
    }

    /// Adds to a value.
    pub fn add(&self, name: &'static str, value: f64) {
        self.0 .0.add(name, &[("node", self.1)], value);
    }

    /// Sets the values of a metric with one more label, and forgets its other values.
    pub fn set_all(&self, name: &'static str, by: &str, values: impl IntoIterator<Item = (String, f64)>) {
        let values = values.into_iter().map(|(what, value)| (vec![(by.to_string(), what)], value));
        self.0 .0.replace(name, &[("node", self.1)], values);
    }

    /// The node has looked at the chain without trouble.
    pub fn looked(&self) {
        self.set("looked_timestamp_seconds", now() as f64);
    }

    /// The time since then.
    pub fn last_looked(&self) -> Option<Duration> {
        let looked = self.get("looked_timestamp_seconds")? as u64;
        Some(Duration::from_secs(now().saturating_sub(looked)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every metric in a rule or a dashboard exists.
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
    fn the_first_grave_alert_is_an_increase() {
        let metrics = Metrics::default();
        let rules = include_str!("../deploy/alerts.yaml");
        for kinds in [&GRAVE[..], &TROUBLE, &PROPOSED] {
            assert!(rules.contains(&format!("alerts_total{{kind=~\"{}\"}}", kinds.join("|"))), "{kinds:?}");
            for kind in kinds {
                assert_eq!(metrics.0.get("alerts_total", &[("kind", kind)]), Some(0.0));
            }
        }
    }
}
