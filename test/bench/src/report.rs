//! Everything that was measured, as `docs/generated/gas.json` keeps it.

use crate::crowd::Innocent;
use crate::dearest::Attack;
use crate::measure::Row;
use crate::points::Points;
use serde::{Deserialize, Serialize};

/// Everything that was measured.
#[derive(Serialize, Deserialize)]
pub struct Report {
    /// The compiler of the programs.
    pub compiler: String,
    /// The operations.
    pub rows: Vec<Row>,
    /// The adversarial runs.
    pub attacks: Vec<Attack>,
    /// Strangers' nodes, each of a GPU of its own, around the innocent calls.
    #[serde(default)]
    pub strangers: u32,
    /// The innocent calls.
    #[serde(default)]
    pub innocent: Vec<Innocent>,
    /// Single calls; in a table of their own.
    #[serde(skip)]
    pub points: Points,
}

impl Report {
    pub(crate) fn find(&self, operation: &str, nodes: u32, cached: bool) -> Option<&Row> {
        self.rows.iter().find(|r| r.operation == operation && (r.nodes, r.queued, r.cached) == (nodes, 0, cached))
    }

    /// By operation, queue, order of values, network, cache.
    pub(crate) fn sorted(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by_key(|r| (&r.operation, r.queued, &r.values, r.nodes, !r.cached));
        rows
    }
}
