//! Receipts: the outcome of a task, in storage, for contracts, which cannot read logs. Only for tasks that ask for one. Nothing else writes
//! their words.

use crate::host::{offset, Host};
use crate::store::layout::{entry, RECEIPTS};
use muster_core::id::{NodeId, TaskId};
use muster_core::record::{Order, Receipt};
use muster_core::word::Word;

fn slot<H: Host>(host: &H, id: TaskId) -> Word {
    entry(host, RECEIPTS, id.0)
}

/// Writes an open receipt where the order asks for one. Both words are written, the digest's as 1, so that the call that ends the task
/// changes words and initialises none.
pub fn open<H: Host>(host: &mut H, order: &Order) {
    if order.has_receipt() {
        let at = slot(host, order.id);
        host.put(at, &Receipt { state: Receipt::OPEN, ..Receipt::default() });
        host.store(offset(at, 1), Word::from(1));
    }
}

/// Writes into the receipt, if there is one, how the task ended.
#[inline(never)]
pub fn close<H: Host>(host: &mut H, order: &Order, state: u8, node: NodeId, code: u8, refund: u128, digest: &[u8; 32]) {
    if order.has_receipt() {
        let at = slot(host, order.id);
        let ended = host.now();
        host.put(at, &Receipt { state, node, ended, code, refund });
        if state == Receipt::SUCCEEDED {
            host.store(offset(at, 1), Word::from_be_bytes(*digest));
        }
    }
}

/// The digest's word of a task that has no result.
pub const UNSET: [u8; 32] = [0; 32];

/// A task's receipt, and the digest of its result, 0 unless it succeeded.
pub fn read<H: Host>(host: &H, id: TaskId) -> (Receipt, [u8; 32]) {
    let at = slot(host, id);
    let receipt: Receipt = host.get(at);
    let digest = if receipt.state == Receipt::SUCCEEDED { host.load(offset(at, 1)) } else { Word::ZERO };
    (receipt, digest.to_be_bytes())
}
