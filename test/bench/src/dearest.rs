//! The most expensive of an attack's calls.

use crate::points::{Met, Points};
use crate::world::Done;
use serde::{Deserialize, Serialize};

/// The preparation of a network that makes its calls expensive, and the cost of the most expensive one.
#[derive(Clone, Serialize, Deserialize, PartialEq, Eq, Debug)]
pub struct Attack {
    /// The attack's name.
    pub name: String,
    /// Calls made after, or while, it was set up.
    pub calls: usize,
    /// The most expensive.
    pub operation: String,
    /// Its gas, programs not cached.
    pub most: u64,
    /// Median gas of creating a task and dispatching one, if one was.
    pub dispatch: Option<u64>,
    /// The calls that are pictured.
    #[serde(skip)]
    pub points: Points,
}

/// Counts the calls of an attack.
#[derive(Default)]
pub(crate) struct Dearest {
    calls: usize,
    most: u64,
    operation: String,
    /// Gas of creations that dispatched one.
    pub(crate) dispatched: Vec<u64>,
    points: Points,
}

impl Dearest {
    /// Notes a call.
    pub(crate) fn see(&mut self, operation: &str, done: &Done) {
        self.calls += 1;
        if let Some(met) = &done.met {
            self.points.note(Met { adversary: true, ..met.clone() }, done.gas());
        }
        if done.gas() > self.most {
            (self.most, self.operation) = (done.gas(), operation.into());
        }
    }

    pub(crate) fn attack(mut self, name: String) -> Attack {
        self.dispatched.sort_unstable();
        let dispatch = self.dispatched.get(self.dispatched.len() / 2).copied();
        Attack { name, calls: self.calls, operation: self.operation, most: self.most, dispatch, points: self.points }
    }
}
