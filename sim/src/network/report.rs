//! What a simulation came to.

use std::collections::BTreeMap;

use super::workload::{Kind, NodeSpec, TICKS};

/// What became of a node. Times are in ticks.
#[derive(Clone, Debug)]
pub struct NodeReport {
    pub kind: Kind,
    /// In granules.
    pub stake: u64,
    pub speed: u32,
    /// In wei.
    pub income: u128,
    pub started: u64,
    pub succeeded: u64,
    pub timed_out: u64,
    pub busy: u64,
    /// Of the busy time, what ended in a timeout.
    pub wasted: u64,
    pub excluded: u64,
    pub exclusions: u64,
    pub present: u64,
    pub(super) joined: Option<u64>,
    pub kicked: bool,
    pub slashed: bool,
    pub scores: Vec<u8>,
}

impl NodeReport {
    pub(super) fn of(spec: &NodeSpec) -> Self {
        Self {
            kind: spec.kind,
            stake: spec.stake,
            speed: spec.speed,
            income: 0,
            started: 0,
            succeeded: 0,
            timed_out: 0,
            busy: 0,
            wasted: 0,
            excluded: 0,
            exclusions: 0,
            present: 0,
            joined: None,
            kicked: false,
            slashed: false,
            scores: Vec::new(),
        }
    }

    /// Income per hour of presence, in 1e-6 of a token.
    pub fn wage(&self) -> f64 {
        if self.present == 0 {
            return 0.0;
        }
        self.income as f64 / 1e12 / (self.present as f64 / (3_600 * TICKS) as f64)
    }
}

/// A whole run. What is counted are the tasks applications asked for, without the copies made for validation groups,
/// unless it says otherwise.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Tasks created, copies included.
    pub created: u64,
    pub asked: u64,
    /// Creations that were refused.
    pub refused: u64,
    /// Starts, copies included.
    pub started: u64,
    /// Of the starts, those on a node that held every model.
    pub local: u64,
    pub succeeded: u64,
    pub timed_out: u64,
    pub reported: u64,
    pub cancelled: u64,
    pub evicted: u64,
    /// Times a task was queued, copies included.
    pub queued: u64,
    /// Draws that stayed undecided, copies included.
    pub redrawn: u64,
    /// Tasks that had not ended, copies included.
    pub open: u64,
    pub joins: u64,
    pub quits: u64,
    pub pauses: u64,
    /// Validation groups judged, and those that could not be.
    pub groups: u64,
    pub groups_void: u64,
    /// Ticks until the last arrival.
    pub span: u64,
    /// Ticks from creation to start, ascending.
    pub waits: Vec<u32>,
    /// Ticks each exclusion lasted, ascending.
    pub exclusions: Vec<u32>,
    pub nodes: Vec<NodeReport>,
    /// Refused calls by reason.
    pub refusals: BTreeMap<String, u64>,
}

/// The value below which a share of the ascending values lies.
pub fn quantile(sorted: &[u32], share: f64) -> f64 {
    match sorted.len() {
        0 => 0.0,
        n => f64::from(sorted[((n as f64 * share) as usize).min(n - 1)]),
    }
}

/// Gini coefficient: 0 if all have the same, towards 1 if one has all.
pub fn gini(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let sum: f64 = values.iter().sum();
    if sum <= 0.0 {
        return 0.0;
    }
    let ranked: f64 = values.iter().enumerate().map(|(i, v)| (i as f64 + 1.0) * v).sum();
    2.0 * ranked / (n * sum) - (n + 1.0) / n
}

fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 {
        0.0
    } else {
        a as f64 / b as f64
    }
}

impl Report {
    /// Seconds a share of the started tasks did not wait longer than.
    pub fn wait(&self, share: f64) -> f64 {
        quantile(&self.waits, share) / TICKS as f64
    }

    /// Successful tasks in an hour.
    pub fn throughput(&self) -> f64 {
        ratio(self.succeeded * 3_600 * TICKS, self.span)
    }

    /// Share of the tasks asked for that were started and did not succeed.
    pub fn failed(&self) -> f64 {
        ratio(self.timed_out + self.reported, self.asked)
    }

    /// Share of the tasks asked for that timed out.
    pub fn timed_out_share(&self) -> f64 {
        ratio(self.timed_out, self.asked)
    }

    /// Share of the tasks asked for that a full queue drove out or that nobody took.
    pub fn turned_away(&self) -> f64 {
        ratio(self.evicted + self.refused, self.asked + self.refused)
    }

    /// Share of starts on nodes that held every model.
    pub fn local_share(&self) -> f64 {
        ratio(self.local, self.started)
    }

    /// Share of busy time that ended in timeouts.
    pub fn wasted(&self) -> f64 {
        let sum = |part: fn(&NodeReport) -> u64| self.nodes.iter().map(part).sum();
        ratio(sum(|n| n.wasted), sum(|n| n.busy))
    }

    /// Of the time that these nodes were in the network, the share they were excluded.
    pub fn excluded(&self, of: impl Fn(&NodeReport) -> bool) -> f64 {
        let nodes = || self.nodes.iter().filter(|n| of(n));
        ratio(nodes().map(|n| n.excluded).sum(), nodes().map(|n| n.present).sum())
    }

    /// Seconds a share of exclusions did not exceed.
    pub fn exclusion(&self, share: f64) -> f64 {
        quantile(&self.exclusions, share) / TICKS as f64
    }

    /// Gini coefficient of the wages of nodes that are not bad.
    pub fn income_gini(&self) -> f64 {
        gini(self.honest().filter(|n| n.present > 0).map(NodeReport::wage).collect())
    }

    /// Gini coefficient of the stakes of the same.
    pub fn stake_gini(&self) -> f64 {
        gini(self.honest().filter(|n| n.present > 0).map(|n| n.stake as f64).collect())
    }

    fn honest(&self) -> impl Iterator<Item = &NodeReport> {
        self.nodes.iter().filter(|n| !n.kind.bad())
    }

    /// Share of the starts that nodes of a kind got.
    pub fn share_of(&self, kind: Kind) -> f64 {
        let of = self.nodes.iter().filter(|n| n.kind == kind).map(|n| n.started).sum();
        ratio(of, self.started)
    }

    /// How many nodes, bad or not, have something in common.
    pub fn count(&self, bad: bool, what: impl Fn(&NodeReport) -> bool) -> u64 {
        self.nodes.iter().filter(|n| n.kind.bad() == bad && what(n)).count() as u64
    }

    /// How many nodes of a kind were kicked out.
    pub fn kicked_of(&self, kind: Kind) -> u64 {
        self.nodes.iter().filter(|n| n.kind == kind && n.kicked).count() as u64
    }

    /// How many scores were recorded of a node, on average.
    pub fn mean_scores(&self, of: impl Fn(&NodeReport) -> bool) -> f64 {
        let counts: Vec<u64> = self.nodes.iter().filter(|n| of(n)).map(|n| n.scores.len() as u64).collect();
        ratio(counts.iter().sum(), counts.len() as u64)
    }

    /// Mean wage of the fifths of the nodes that are not bad, in ascending order of a key, relative to the mean of all.
    pub fn wages_by(&self, key: impl Fn(&NodeReport) -> u64) -> [f64; 5] {
        let mut nodes: Vec<&NodeReport> = self.honest().filter(|n| n.present > 0).collect();
        nodes.sort_by_key(|n| key(n));
        let mean =
            |nodes: &[&NodeReport]| nodes.iter().map(|n| n.wage()).fold(0.0, |sum, wage| sum + wage) / nodes.len().max(1) as f64;
        let all = mean(&nodes);
        std::array::from_fn(|fifth| {
            let (from, to) = (nodes.len() * fifth / 5, nodes.len() * (fifth + 1) / 5);
            if all > 0.0 {
                mean(&nodes[from..to]) / all
            } else {
                0.0
            }
        })
    }

    /// Mean wage of a kind relative to that of steady nodes.
    pub fn wage_of(&self, kind: Kind) -> f64 {
        let mean = |kind: Kind| {
            let wages: Vec<f64> = self.nodes.iter().filter(|n| n.kind == kind && n.present > 0).map(NodeReport::wage).collect();
            wages.iter().fold(0.0, |sum, wage| sum + wage) / wages.len().max(1) as f64
        };
        let steady = mean(Kind::Steady);
        if steady > 0.0 {
            mean(kind) / steady
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gini_by_hand() {
        assert_eq!(gini(vec![]), 0.0);
        assert_eq!(gini(vec![3.0, 3.0, 3.0]), 0.0);
        assert!((gini(vec![0.0, 0.0, 0.0, 8.0]) - 0.75).abs() < 1e-12);
        assert!((gini(vec![1.0, 3.0]) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn quantiles_by_hand() {
        let values: Vec<u32> = (1..=100).collect();
        assert_eq!(quantile(&values, 0.5), 51.0);
        assert_eq!(quantile(&values, 0.95), 96.0);
        assert_eq!(quantile(&values, 1.0), 100.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
