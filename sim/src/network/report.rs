//! The results of a simulation.

use std::collections::BTreeMap;

use muster_core::wad::WAD;
use muster_trace::figures::rank_correlation;

use super::workload::{Kind, NodeSpec, TICKS};

/// A node's results. Times are in ticks.
#[derive(Clone, Debug)]
pub struct NodeReport {
    pub kind: Kind,
    /// In stake units.
    pub stake: u64,
    pub speed: u32,
    /// In wei.
    pub income: u128,
    pub started: u64,
    pub succeeded: u64,
    pub timed_out: u64,
    pub busy: u64,
    /// The part of the busy time that ended in a timeout.
    pub wasted: u64,
    pub excluded: u64,
    pub exclusions: u64,
    pub present: u64,
    pub(super) joined: Option<u64>,
    pub kicked: bool,
    pub slashed: bool,
    /// In the order in which they were recorded.
    pub scores: Vec<u8>,
    /// How often it was slashed, and by how much in all, in wei.
    pub slashes: u64,
    pub lost: u128,
    /// Ticks that its open commitments kept it from work.
    pub held: u64,
    /// Ticks that it was kept for a task that takes three: waiting for others, or for the draw.
    pub kept: u64,
    /// Tasks that it was called to validate and began.
    pub validations: u64,
    /// Q_long / Q_max at the end, a wad.
    pub long_term: u64,
    /// Whether it was kicked or slashed out of the network.
    pub gone: bool,
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
            slashes: 0,
            lost: 0,
            held: 0,
            kept: 0,
            validations: 0,
            long_term: 0,
            gone: false,
        }
    }

    /// Income less slashes, per hour of presence, in 1e-6 of a token.
    pub fn wage(&self) -> f64 {
        if self.present == 0 {
            return 0.0;
        }
        (self.income as f64 - self.lost as f64) / 1e12 / (self.present as f64 / (3_600 * TICKS) as f64)
    }
}

/// A whole run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Tasks created.
    pub asked: u64,
    /// Creations that were refused.
    pub refused: u64,
    /// Starts of tasks, counting each of three nodes of a replicated one; validators are not counted.
    pub started: u64,
    /// Of the starts, those on a node that held every model.
    pub local: u64,
    pub succeeded: u64,
    pub timed_out: u64,
    pub reported: u64,
    pub cancelled: u64,
    pub evicted: u64,
    /// Times a task was queued.
    pub queued: u64,
    /// Draws that stayed undecided.
    pub redrawn: u64,
    /// Tasks that had not ended.
    pub open: u64,
    pub joins: u64,
    pub quits: u64,
    pub pauses: u64,
    /// Of the asked, those created under policy 1, and under policy 2.
    pub sampled: u64,
    pub replicated: u64,
    /// Of these, those that a group had, and where no two answers were alike and none counted alone.
    pub validated: u64,
    pub undecided: u64,
    /// Of the groups, those that were scored.
    pub scored: u64,
    /// Of the asked, those refunded because their node was slashed out of the network.
    pub orphaned: u64,
    /// Of the succeeded, those with a wrong answer.
    pub wrong: u64,
    /// Of the sampled and replicated, those that succeeded, and of these those with a wrong answer.
    pub trusted: u64,
    pub slipped: u64,
    /// Validators of sampled tasks that began.
    pub validations: u64,
    /// The pay of groups of sampled tasks with equal answers, and their pay with a full reserve, in wei.
    pub pots: u128,
    pub pots_due: u128,
    /// The pay of accounts that had validators called, in wei.
    pub drivers: u128,
    /// The reserve after each tenth of the tasks, in wei.
    pub reserve: Vec<u128>,
    pub burnt: u128,
    /// Fees of all tasks created, in wei.
    pub fees: u128,
    /// Ticks until the last arrival.
    pub span: u64,
    /// Ticks from creation to start, ascending.
    pub waits: Vec<u32>,
    /// Ticks from creation to success, ascending.
    pub spans: Vec<u32>,
    /// Ticks each exclusion lasted, ascending.
    pub exclusions: Vec<u32>,
    /// Timeouts that lowered H. Then the ticks from each, if no other came between, until H was seen at 0.9 again, at a start or a success;
    /// ascending.
    pub lowered: u64,
    pub recoveries: Vec<u32>,
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

    /// Share of the tasks created that were started and came to nothing: timed out, reported as impossible, or without two answers
    /// alike.
    pub fn failed(&self) -> f64 {
        ratio(self.timed_out + self.reported + self.undecided, self.asked)
    }

    /// Share of the tasks created that timed out.
    pub fn timed_out_share(&self) -> f64 {
        ratio(self.timed_out, self.asked)
    }

    /// Share of the tasks asked for that were refused or that a full queue drove out.
    pub fn turned_away(&self) -> f64 {
        ratio(self.evicted + self.refused, self.asked + self.refused)
    }

    /// Share of the tasks created that were aborted for another reason than a timeout: driven out of the queue, cancelled there, or
    /// their node slashed out of the network.
    pub fn aborted(&self) -> f64 {
        ratio(self.evicted + self.cancelled + self.orphaned, self.asked)
    }

    /// Right answers in an hour.
    pub fn right_throughput(&self) -> f64 {
        ratio((self.succeeded - self.wrong) * 3_600 * TICKS, self.span)
    }

    /// Seconds of GPU time, of all nodes together, for each right answer.
    pub fn spent(&self) -> f64 {
        ratio(self.nodes.iter().map(|n| n.busy).sum(), (self.succeeded - self.wrong) * TICKS)
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

    fn of(&self, kind: Kind) -> impl Iterator<Item = &NodeReport> {
        self.nodes.iter().filter(move |n| n.kind == kind)
    }

    /// The mean of a quantity over the nodes of a kind; 0 if there are none.
    fn mean_of(&self, kind: Kind, what: impl Fn(&NodeReport) -> f64) -> f64 {
        self.of(kind).map(what).fold(0.0, |sum, value| sum + value) / self.of(kind).count().max(1) as f64
    }

    /// Income less slashes of all nodes of a kind, by the hour that they were in the network, in 1e-6 of a token.
    pub fn hour_of(&self, kind: Kind) -> f64 {
        let hours = self.of(kind).map(|n| n.present).sum::<u64>() as f64 / (3_600 * TICKS) as f64;
        let (income, lost) = self.of(kind).fold((0, 0), |(income, lost), n| (income + n.income, lost + n.lost));
        if hours > 0.0 {
            (income as f64 - lost as f64) / 1e12 / hours
        } else {
            0.0
        }
    }

    /// Share of a kind that was kicked or slashed out of the network.
    pub fn gone(&self, kind: Kind) -> f64 {
        self.mean_of(kind, |n| f64::from(u8::from(n.gone)))
    }

    /// Slashes of a node of a kind, on average.
    pub fn slashes_of(&self, kind: Kind) -> f64 {
        self.mean_of(kind, |n| n.slashes as f64)
    }

    /// Tasks of its own that a node of a kind was given, on average.
    pub fn starts_of(&self, kind: Kind) -> f64 {
        self.mean_of(kind, |n| n.started as f64)
    }

    /// Hours that a node of a kind was in the network, on average.
    pub fn hours(&self, kind: Kind) -> f64 {
        self.mean_of(kind, |n| n.present as f64) / (3_600 * TICKS) as f64
    }

    /// Share of the time of a kind that open commitments kept it from work.
    pub fn held(&self, kind: Kind) -> f64 {
        ratio(self.of(kind).map(|n| n.held).sum(), self.of(kind).map(|n| n.present).sum())
    }

    /// Share of the time of a kind that it was kept for tasks that take three.
    pub fn kept(&self, kind: Kind) -> f64 {
        ratio(self.of(kind).map(|n| n.kept).sum(), self.of(kind).map(|n| n.present).sum())
    }

    /// Seconds from creation to success that a share of the tasks did not take longer than.
    pub fn span_of(&self, share: f64) -> f64 {
        quantile(&self.spans, share) / TICKS as f64
    }

    /// Share of the tasks created that a group had.
    pub fn validated_share(&self) -> f64 {
        ratio(self.validated, self.asked)
    }

    /// Share of the validated tasks without two answers alike or one that counts.
    pub fn undecided_share(&self) -> f64 {
        ratio(self.undecided, self.validated)
    }

    /// Share of the groups that were scored.
    pub fn scored_share(&self) -> f64 {
        ratio(self.scored, self.validated)
    }

    /// Share of the successful tasks with a wrong answer.
    pub fn wrong_share(&self) -> f64 {
        ratio(self.wrong, self.succeeded)
    }

    /// The same of the tasks under policies 1 and 2 alone.
    pub fn slipped_share(&self) -> f64 {
        ratio(self.slipped, self.trusted)
    }

    /// An amount in mean fees.
    pub fn in_fees(&self, wei: u128) -> f64 {
        if self.fees == 0 {
            return 0.0;
        }
        wei as f64 / (self.fees as f64 / self.asked as f64)
    }

    /// The reserve after this many tenths of the tasks, in mean fees.
    pub fn reserve_after(&self, tenths: usize) -> f64 {
        self.reserve.get(tenths - 1).map_or(0.0, |wei| self.in_fees(*wei))
    }

    /// The share of the pay due to groups with equal answers that fees and the reserve paid; 1 if there were none.
    pub fn pots_paid(&self) -> f64 {
        if self.pots_due == 0 {
            return 1.0;
        }
        self.pots as f64 / self.pots_due as f64
    }

    /// Rank correlation of Q_long at the end with speed, over the nodes that are not bad and have at least ten scores.
    pub fn rank_correlation(&self) -> f64 {
        let nodes = self.honest().filter(|n| n.scores.len() >= 10);
        let pairs: Vec<(f64, f64)> = nodes.map(|n| (n.long_term as f64 / WAD as f64, f64::from(n.speed))).collect();
        rank_correlation(&pairs)
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
