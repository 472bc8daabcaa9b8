//! The compiled programs over JSON-RPC, scenario by scenario. The expected results are computed apart from the contracts.

mod application;
mod calldata;
mod events;
mod gas;
mod groups;
mod life;
mod model;
mod outcomes;
mod refusals;
mod rehearsal;
mod scores;
mod storage;
mod vectors;
mod weight;

use ethers::types::{U256, U512};

/// One, as a wad.
pub const WAD: u64 = 1_000_000_000_000_000_000;

/// H after `elapsed` seconds: 1 - (1 - h) / e^(elapsed / tau), the exponential by its series at 1e36.
pub fn recovered(h: u64, elapsed: u64, tau: u64) -> u64 {
    let scale = U512::exp10(36);
    let (mut sum, mut term, mut i) = (U512::zero(), scale, 0u64);
    while !term.is_zero() {
        sum += term;
        i += 1;
        term = term * U512::from(elapsed) / U512::from(tau * i);
    }
    WAD - (U512::from(WAD - h) * scale / sum).as_u64()
}

/// Asserts that two wads are no more than `units` of 1e-18 apart.
#[track_caller]
pub fn near(is: U256, expected: u64, units: u64) {
    let is = is.as_u64();
    assert!(is.abs_diff(expected) <= units, "{is} is not within {units} of {expected}");
}
