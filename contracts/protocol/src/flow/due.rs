//! Due draws: their hash is known, and the first that came is drawn first. [`crate::flow::serve`] makes them, or refuses calls.

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
    /// Whether the draw is never expensive: one node, and at most one model.
    pub fn is_cheap(&self) -> bool {
        matches!(self, Due::Task(_, order) if !order.several() && order.models <= 1)
    }
}

impl<H: Host> Network<'_, H> {
    /// Whether draws wait whose deciding hash is already known.
    ///
    /// While they do, nothing may change their candidates or the candidates' weights: anyone able to would choose among known outcomes.
    /// Until the draws are made, calls that would do so are refused ([`crate::flow::serve::settled`]), nodes whose task ends are held back,
    /// and no excluded node is re-admitted.
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
