//! A task that has not ended, and the models that it requires, as they lie in storage.

use crate::host::{offset, Host};
use muster_core::id::ModelId;
use muster_core::record::{Escrow, Models, Order, MODELS_PER_WORD, TASK_MODELS};
use muster_core::word::Word;

/// A required or held set of models, at most eight.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ModelSet {
    /// The ids; those beyond `len` are 0.
    pub ids: [ModelId; TASK_MODELS],
    /// How many there are.
    pub len: u8,
}

impl ModelSet {
    /// A set of one.
    pub fn one(model: ModelId) -> ModelSet {
        let mut set = ModelSet { len: 1, ..ModelSet::default() };
        set.ids[0] = model;
        set
    }

    /// The ids in use.
    pub fn as_slice(&self) -> &[ModelId] {
        &self.ids[..(self.len as usize).min(TASK_MODELS)]
    }

    /// Packs the set into two words, the count in the first one's flags.
    pub fn pack(&self) -> [Models; 2] {
        let m = &self.ids;
        [
            Models { m0: m[0], m1: m[1], m2: m[2], m3: m[3], m4: m[4], m5: m[5], flags: self.len, used: 1 },
            Models { m0: m[6], m1: m[7], used: 1, ..Models::default() },
        ]
    }

    /// The models that an order names: itself if there is at most one, else in two words at `slot`.
    pub fn load<H: Host>(host: &H, order: &Order, slot: Word) -> ModelSet {
        if order.models > 1 {
            return ModelSet::unpack(host.get(slot), || host.get(offset(slot, 1)));
        }
        let mut one = ModelSet { len: order.models, ..ModelSet::default() };
        one.ids[0] = order.model;
        one
    }

    /// Writes the words that [`ModelSet::load`] reads beside the order.
    pub fn store<H: Host>(&self, host: &mut H, slot: Word) {
        if self.len > 1 {
            let [first, second] = self.pack();
            host.put(slot, &first);
            if self.len as u32 > MODELS_PER_WORD {
                host.put(offset(slot, 1), &second);
            }
        }
    }

    /// The inverse of [`ModelSet::pack`]; `second` is only asked for sets of more than six.
    pub fn unpack(first: Models, second: impl FnOnce() -> Models) -> ModelSet {
        let len = first.flags.min(TASK_MODELS as u8);
        let mut ids = [first.m0, first.m1, first.m2, first.m3, first.m4, first.m5, ModelId(0), ModelId(0)];
        if len as u32 > MODELS_PER_WORD {
            let s = second();
            ids[6] = s.m0;
            ids[7] = s.m1;
        }
        ids[len as usize..].fill(ModelId(0));
        ModelSet { ids, len }
    }
}

/// A task that has not ended: its payer, its frozen terms, its models.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Task {
    /// Creator and fee.
    pub escrow: Escrow,
    /// The frozen terms.
    pub order: Order,
    /// Required models.
    pub models: ModelSet,
}

impl Task {
    /// Reads a Pending or queued task: escrow, order, and the models if there is more than one.
    pub fn load<H: Host>(host: &H, slot: Word) -> Task {
        let (escrow, order) = (host.get(slot), host.get::<Order>(offset(slot, 1)));
        Task { escrow, order, models: ModelSet::load(host, &order, offset(slot, 2)) }
    }

    /// Writes the words that [`Task::load`] reads.
    pub fn store<H: Host>(&self, host: &mut H, slot: Word) {
        host.put(slot, &self.escrow);
        host.put(offset(slot, 1), &self.order);
        self.models.store(host, offset(slot, 2));
    }
}
