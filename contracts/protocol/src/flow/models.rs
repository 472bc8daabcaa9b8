//! Models: their names, and which node holds which. [`crate::flow::start`] asks for downloads.

use crate::abi::{emit, IMuster::*};
use crate::flow::network::Network;
use crate::flow::serve::{own_settled_seat, settled, MODEL_READS};
use crate::flow::standing::neighbours;
use crate::host::Host;
use crate::store::layout::{entry, MODEL_NAMED};
use crate::store::node::NodeHandle;
use crate::store::registry;
use crate::store::registry::{Held, Holders};
use crate::Result;
use alloc::vec::Vec;
use muster_core::id::ModelId;
use muster_core::record::{Status, CALL_MODELS, NODE_MODELS};
use muster_core::word::Word;

/// Longest model name, in bytes.
pub const MODEL_NAME_MAX: usize = 128;
/// Largest model id + 1.
pub const MODEL_END: u64 = 1 << 40;

impl<H: Host> Network<'_, H> {
    /// See `IMuster.reportDownloaded`.
    pub fn report_downloaded(&mut self, models: Vec<ModelId>) -> Result<()> {
        check_models(&models, CALL_MODELS)?;
        self.host.charge(MODEL_READS * models.len() as u32);
        let (mut handle, mut held) = own_models(self)?;
        for model in models {
            ensure!(!held.holds(model), ModelHeld(model));
            held.add(self.host, handle.id, model)?;
            emit::<ModelAdded>(self.host, (handle.id, model), ());
        }
        handle.node.models = held.store(self.host);
        handle.put(self.host);
        Ok(())
    }

    /// See `IMuster.reportRemoved`.
    pub fn report_removed(&mut self, models: Vec<ModelId>) -> Result<()> {
        check_models(&models, NODE_MODELS as usize)?;
        let (mut handle, mut held) = own_models(self)?;
        for model in models {
            ensure!(held.holds(model), ModelNotHeld(model));
            let i = held.find(model).unwrap_or(0);
            held.entries[i].1 = true;
            emit::<ModelRemoved>(self.host, (handle.id, model), ());
        }
        held.store(self.host);
        if handle.node.idle() {
            let mut there = neighbours(self, &handle);
            if !held.holds(there.model()) {
                there.forget(handle.node.pos & 7);
                there.store(self.host);
            }
        } else if handle.node.parked == 0 && handle.node.pos > 0 {
            // The node may no longer hold the model that it held for its running task.
            handle.node.pos = 0;
            handle.put(self.host);
        }
        Ok(())
    }
}

fn own_models<H: Host>(net: &mut Network<'_, H>) -> Result<(NodeHandle, Held)> {
    let handle = own_settled_seat(net)?;
    let status = handle.node.status;
    ensure!(Status::new(status) != Status::Quit, WrongStatus(handle.id, status));
    let held = Held::load(net.host, handle.slot, handle.node.models);
    Ok((handle, held))
}

impl<H: Host> Network<'_, H> {
    /// See `IMuster.purge`.
    pub fn purge(&mut self, model: ModelId, position: u32) -> Result<()> {
        settled(self)?;
        check_model(model)?;
        let mut holders = Holders::load(self.host, model);
        ensure!(position < holders.len(), HolderNotStale(model, position));
        let mut handle = NodeHandle::load(self.host, holders.get(self.host, position));
        let mut held = Held::load(self.host, handle.slot, handle.node.models);
        let gone = handle.node.status == Status::Quit as u8;
        ensure!(gone || !held.holds(model), HolderNotStale(model, position));
        holders.swap_remove(self.host, position);
        if let Some(i) = held.find(model) {
            held.entries.swap_remove(i);
        }
        handle.node.models = held.store(self.host);
        handle.put(self.host);
        emit::<HolderPurged>(self.host, (handle.id, model), ());
        Ok(())
    }
}

/// Models a node holds now.
pub(crate) fn held_models<H: Host>(net: &Network<'_, H>, handle: &NodeHandle) -> Vec<ModelId> {
    let held = Held::load(net.host, handle.slot, handle.node.models);
    held.entries.iter().filter(|e| !e.1).map(|e| e.0).collect()
}

/// See `IMuster.nameModel`.
pub fn name_model<H: Host>(host: &mut H, name: &[u8]) -> Result<ModelId> {
    ensure!(registry::is_name(name, MODEL_NAME_MAX), BadModelName(name.len(), MODEL_NAME_MAX));
    let [a, b, c, d, e, ..] = host.keccak(name);
    let model = ModelId(u64::from_be_bytes([0, 0, 0, a, b, c, d, e]));
    check_model(model)?;
    let at = entry(host, MODEL_NAMED, model.0);
    ensure!(host.load(at).is_zero(), ModelHasName(model));
    host.store(at, Word::from(1));
    emit::<ModelNamed>(host, (model,), (name,));
    Ok(model)
}

/// Checks a list of models: not too many, ids in range, no duplicates.
pub fn check_models(models: &[ModelId], most: usize) -> Result<()> {
    ensure!(models.len() <= most, TooManyModels(models.len(), most));
    check_ids(models)
}

/// Checks a list of models that are not too many: ids in range, no duplicates.
pub fn check_ids(models: &[ModelId]) -> Result<()> {
    for (i, &model) in models.iter().enumerate() {
        check_model(model)?;
        ensure!(!models[..i].contains(&model), DuplicateModel(model));
    }
    Ok(())
}

/// Refuses a number that no model can have.
pub fn check_model(model: ModelId) -> Result<()> {
    ensure!(model.0 > 0 && model.0 < MODEL_END, BadModel(model));
    Ok(())
}
