//! The program of each selector: the table that the router reads.

use crate::host::{offset, Host};
use crate::store::layout::{selector_key, slot, PROGRAMS, SELECTORS};
use alloc::vec::Vec;
use muster_core::word::{Address, Word};

/// The slot of selector `i` in the list: eight to a word, as Solidity packs `bytes4[]`.
pub fn selector_at<H: Host>(host: &H, i: u64) -> (Word, u32) {
    let first = Word::from_be_bytes(host.keccak(&slot(SELECTORS).to_be_bytes()));
    (offset(first, i / 8), (i % 8) as u32)
}

/// The program that answers a selector; zero if none does.
pub fn program_of<H: Host>(host: &H, selector: [u8; 4]) -> Address {
    let w = host.load(host.mapping(PROGRAMS, selector_key(selector)));
    let mut a = [0; 20];
    a.copy_from_slice(&w.to_be_bytes()[12..]);
    a
}

/// All selectors answered.
pub fn selectors<H: Host>(host: &H) -> Vec<[u8; 4]> {
    let n = host.load(slot(SELECTORS)).0[0];
    (0..n)
        .map(|i| {
            let (at, lane) = selector_at(host, i);
            host.load(at).lane32(lane).to_be_bytes()
        })
        .collect()
}

pub fn write_selector<H: Host>(host: &mut H, i: u64, selector: [u8; 4]) {
    let (at, lane) = selector_at(host, i);
    let mut w = host.load(at);
    w.set_lane32(lane, u32::from_be_bytes(selector));
    host.store(at, w);
}
