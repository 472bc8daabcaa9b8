//! The URIs at which bytes can be read. Each account publishes its own, in storage and in an event.
//!
//! Checks only the form that readers of logs need. The chain knows digests, so a false URI costs its reader one request.

use crate::abi::{emit, IMuster::*};
use crate::host::{offset, Host};
use crate::store::layout::{node, node_slot, STORES};
use crate::store::{accounts, text};
use crate::Result;
use alloc::string::String;
use muster_core::record::Operator;
use muster_core::word::{Address, Word};

/// Most bytes of an account's list of URIs.
pub const STORES_MAX: usize = 256;

fn slot<H: Host>(host: &H, account: Address) -> Word {
    host.mapping(STORES, Word::from(account))
}

/// See `IMuster.setStores`.
pub fn set_stores<H: Host>(host: &mut H, uris: &[u8]) -> Result<()> {
    ensure!(uris.len() <= STORES_MAX, StoresTooLong(uris.len(), STORES_MAX));
    let parts = |at: usize| at > 0 && uris[at - 1] != b' ' && at + 1 < uris.len();
    let stands = |(at, byte): (usize, &u8)| byte.is_ascii_graphic() || *byte == b' ' && parts(at);
    if let Some(at) = uris.iter().enumerate().position(|one| !stands(one)) {
        return Err(refusal!(BadStores(at)));
    }
    let caller = host.sender();
    let account = match accounts::node_of(host, caller) {
        (number, true) => host.get::<Operator>(offset(node_slot(host, number), node::OPERATOR)).account,
        _ => caller,
    };
    let at = slot(host, account);
    text::replace_text(host, at, uris);
    emit::<StoresSet>(host, (account,), (uris,));
    Ok(())
}

/// See `IMuster.storesOf`.
pub fn stores_of<H: Host>(host: &H, account: Address) -> String {
    text::text(host, slot(host, account), STORES_MAX)
}
