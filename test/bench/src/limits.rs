//! The limits and goals of operations' gas.

use crate::grades::{GRADED, STARTS_AMONG_SINGLE};
use crate::report::Report;
use muster_sim::numbers::thousands;

/// The limit and the goal of an operation at the median: with cached programs, with uncached ones.
pub struct Limit {
    /// Which.
    pub operation: &'static str,
    /// A median above it fails the command.
    pub limit: (u64, u64),
    /// A median above it is marked.
    pub goal: (u64, u64),
}

/// One limit, whether the programs are cached or not.
const fn limit(operation: &'static str, limit: u64, goal: (u64, u64)) -> Limit {
    Limit { operation, limit: (limit, limit), goal }
}

/// The extra gas of the programs of a call of validation where they are not cached.
const UNCACHED: u64 = 27_000;

/// The same of a call that goes through three programs.
const UNCACHED_THREE: u64 = 40_000;

/// Limit and goal with cached programs, and the extra gas where they are not.
const fn adding(more: u64, operation: &'static str, limit: u64, goal: u64) -> Limit {
    Limit { operation, limit: (limit, limit + more), goal: (goal, goal + more) }
}

/// Limit and goal with cached programs.
const fn cached(operation: &'static str, limit: u64, goal: u64) -> Limit {
    adding(UNCACHED, operation, limit, goal)
}

/// All limits of operations; the first is the one that the growth is measured by.
pub const LIMITS: &[Limit] = &[
    limit("create a task and dispatch one", 180_000, (100_000, 130_000)),
    limit("create a task and dispatch one, a node's first", 180_000, (115_000, 145_000)),
    limit("create a task and dispatch one, the first of a node that listed 10 models", 180_000, (150_000, 180_000)),
    limit("create and dispatch by sixteen, a task", 70_000, (65_000, 70_000)),
    limit("create a task and queue one", 200_000, (140_000, 170_000)),
    limit("create a task and queue one, queue full", 230_000, (165_000, 195_000)),
    limit("submit, nothing queued", 150_000, (80_000, 110_000)),
    limit("submit, and start the best queued", 300_000, (130_000, 165_000)),
    limit("join with 10 models that others hold", 300_000, (245_000, 275_000)),
    limit("join, first holder of 10 models", 460_000, (410_000, 410_000)),
    limit("pause", 100_000, (58_000, 88_000)),
    limit("resume", 100_000, (58_000, 88_000)),
    limit("quit with 10 models", 135_000, (75_000, 100_000)),
    limit("quit with 10 models, the newest node, alone with the largest stake", 155_000, (75_000, 100_000)),
    cached("commit, a task that may be sampled", 60_000, 47_000),
    cached("commit, a member: released", 90_000, 72_000),
    cached("reveal, not sampled: paid and released", 95_000, 75_000),
    cached("form a group: two validators drawn", 180_000, 105_000),
    adding(UNCACHED_THREE, "create a replicated task and dispatch one", 250_000, 175_000),
    cached("reveal in a group, the first", 60_000, 46_000),
    cached("reveal in a group, the second of two equal", 75_000, 60_000),
    cached("reveal in a group, the last: three judged", 180_000, 135_000),
    cached("reveal in a replicated task's group, the last: three judged", 180_000, 135_000),
    cached("reveal in a group, the last: three judged, one slashed out", 260_000, 210_000),
    limit("form a group of 3 by First-fit from a pool of 8", 300_000, (200_000, 245_000)),
    limit("form a group of 9 by Tight-fit from a pool of 32", 750_000, (400_000, 450_000)),
    limit("form a group of 9 by Tight-fit from a pool of 32, its predictive target set anew", 750_000, (600_000, 640_000)),
    limit("form a group of 9 by Tight-fit from a pool of 32, its adaptive target set anew", 750_000, (600_000, 640_000)),
    limit("reveal in a group chosen by ratings, not the last", 90_000, (55_000, 85_000)),
    limit("reveal in a group chosen by ratings, the last: 3 judged", 180_000, (135_000, 162_000)),
    limit("reveal in a group chosen by ratings, the last: 9 judged", 350_000, (290_000, 320_000)),
];
/// The most expensive call that an adversary may bring about.
pub const DEAREST: u64 = 1_000_000;
/// Our goal for the most expensive call of validation.
pub const DEAREST_GOAL: u64 = 800_000;
/// Median of creating and dispatching at the largest network over that at 100 nodes.
pub const GROWTH: f64 = 1.25;
/// The limit of a freed node's call while as many as [`GRADED_QUEUED`] tasks of all grades are queued, cached programs or not. It is 60,000
/// and [`UNCACHED`] above its cost among single tasks while it counted holders for all it started (the snapshot in the commit b9cdc0e).
const GRADED_MOST: [u64; 2] = [251_000, 306_000];
const GRADED_QUEUED: u32 = 10_000;
/// The most that they may add while none is queued.
const SINGLE_MORE: u64 = 3_000;
/// A freed node that starts the best of so many queued tasks, their order of values, cached programs or not: the medians before there were
/// tasks for three, of the snapshot in the commit b026a01.
const SINGLE_BEFORE: [(u32, &str, bool, u64); 6] = [
    (100, "ascending", true, 140_540),
    (100, "ascending", false, 168_445),
    (100, "descending", true, 140_512),
    (100, "descending", false, 168_417),
    (100, "equal", true, 137_612),
    (100, "equal", false, 165_517),
];

/// The extra gas of a freed node's call over another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bound {
    /// The call.
    pub operation: String,
    /// Tasks queued, and in which order of values.
    pub queued: u32,
    /// See [`crate::measure::Row::values`].
    pub values: String,
    /// Whether the programs were cached.
    pub cached: bool,
    /// Whether tasks of all grades are queued.
    pub graded: bool,
    /// Median it is held against.
    pub before: u64,
    /// Its median.
    pub now: u64,
    /// How much more it may be.
    pub limit: Option<u64>,
}

impl Bound {
    /// How much more it is.
    pub fn more(&self) -> String {
        let sign = if self.now < self.before { "-" } else { "" };
        format!("{sign}{}", thousands(self.now.abs_diff(self.before)))
    }
}

impl Report {
    /// The network's growth factor: creating and dispatching at the largest size over that at 100 nodes.
    pub fn growth(&self) -> Option<(u32, f64)> {
        let name = LIMITS[0].operation;
        let largest = self.rows.iter().filter(|r| r.operation == name).map(|r| r.nodes).max()?;
        let (a, b) = (self.find(name, 100, false)?, self.find(name, largest, false)?);
        Some((largest, b.median as f64 / a.median as f64))
    }

    /// The gas that tasks for three add to a freed node's call.
    pub fn bounds(&self) -> Vec<Bound> {
        let rows = self.sorted();
        let median = |operation: &str, queued, values: &str, cached| {
            let is = |r: &&&crate::measure::Row| {
                r.operation == operation && (r.queued, r.cached) == (queued, cached) && r.values == values
            };
            rows.iter().find(is).map(|r| r.median)
        };
        let mut out = Vec::new();
        for r in rows.iter().filter(|r| GRADED.contains(&r.operation.as_str())) {
            let Some(before) = median(STARTS_AMONG_SINGLE, r.queued, &r.values, r.cached) else { continue };
            let most = GRADED_MOST[usize::from(!r.cached)].saturating_sub(before);
            let limit = (r.queued >= GRADED_QUEUED).then_some(most);
            let (operation, values) = (r.operation.clone(), r.values.clone());
            out.push(Bound { operation, queued: r.queued, values, cached: r.cached, graded: true, before, now: r.median, limit });
        }
        for (queued, values, cached, before) in SINGLE_BEFORE {
            let operation = "submit, and start the best queued";
            let Some(now) = median(operation, queued, values, cached) else { continue };
            let (operation, values, limit) = (operation.into(), values.into(), Some(SINGLE_MORE));
            out.push(Bound { operation, queued, values, cached, graded: false, before, now, limit });
        }
        out
    }

    /// Limits that do not hold, in words.
    pub fn broken_limits(&self) -> Vec<String> {
        let mut out = Vec::new();
        for l in LIMITS {
            for r in self.rows.iter().filter(|r| r.operation == l.operation) {
                let (limit, programs) = if r.cached { (l.limit.0, "cached") } else { (l.limit.1, "not cached") };
                if r.median > limit {
                    out.push(format!(
                        "{} with {} nodes and {} queued, {programs}: median {} above {limit}",
                        r.operation, r.nodes, r.queued, r.median
                    ));
                }
            }
        }
        for b in self.bounds() {
            if let Some(limit) = b.limit.filter(|limit| b.now > b.before + limit) {
                out.push(format!(
                    "{} with {} queued {}, {}: {} more than {}, at most {limit}",
                    b.operation,
                    b.queued,
                    b.values,
                    if b.cached { "cached" } else { "not cached" },
                    b.more(),
                    b.before
                ));
            }
        }
        for a in self.attacks.iter().filter(|a| a.most >= DEAREST) {
            out.push(format!("{}: {} costs {}", a.name, a.operation, a.most));
        }
        for i in self.innocent.iter().filter(|i| i.most >= DEAREST) {
            out.push(format!("{}, among {} strangers: {} while due is: {}", i.operation, self.strangers, i.most, i.due));
        }
        if let Some((nodes, growth)) = self.growth().filter(|(_, g)| *g > GROWTH) {
            out.push(format!("create and dispatch costs {growth:.2} times as much with {nodes} nodes as with 100"));
        }
        out
    }
}
