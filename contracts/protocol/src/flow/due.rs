//! What is due: draws whose hash is known, first come, first drawn.

use crate::flow::network::Network;
use crate::host::Host;
use crate::store::ring::Ring;
use muster_core::record::Order;
use muster_core::word::Word;

/// A draw whose hash is known: where it waits, and its order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Due {
    /// A Pending task's.
    Task(Word, Order),
    /// The draw of a sampled task's validators.
    ValidatorDraw(Word, Order),
}

impl Due {
    /// Whether it is one of those that are never dear: of one node, and at most one model.
    pub fn is_cheap(&self) -> bool {
        matches!(self, Due::Task(_, order) if !order.several() && order.models <= 1)
    }
}

impl<H: Host> Network<'_, H> {
    /// Whether draws wait that are decided by a hash which is known already.
    ///
    /// While they do, nothing may change who their candidates are or what those weigh: whoever could
    /// would know what he chooses. So calls that would are refused ([`crate::flow::serve::settled`]), nodes whose
    /// task ends are held back, and no excluded node is re-admitted, until the draws are made.
    pub fn draws_due(&mut self) -> bool {
        self.next_due().is_some()
    }

    /// Whether validators wait to be drawn by a hash which is known already.
    pub(crate) fn call_due(&mut self) -> bool {
        self.first_due(self.validator_draws).is_some()
    }

    /// The next draw whose hash is known: of the first Pending task and the first call the one whose block is earlier, the task's
    /// of equal ones.
    pub(crate) fn next_due(&mut self) -> Option<Due> {
        let task = self.first_due(self.ring).map(|(slot, order)| Due::Task(slot, order));
        let call = self.first_due(self.validator_draws).map(|(slot, order)| Due::ValidatorDraw(slot, order));
        match (&task, &call) {
            (Some(Due::Task(_, task)), Some(Due::ValidatorDraw(_, called))) if called.moment < task.moment => call,
            (None, _) => call,
            _ => task,
        }
    }

    #[inline(never)]
    pub(crate) fn first_due(&mut self, ring: Ring) -> Option<(Word, Order)> {
        if ring.is_empty() {
            return None;
        }
        let first = ring.first(self.host);
        (first.1.moment < self.block()).then_some(first)
    }
}
