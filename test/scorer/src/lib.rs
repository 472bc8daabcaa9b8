//! A program that only tests put behind a router: it records task scores, which no deployed program can.
#![cfg_attr(not(any(test, feature = "export-abi")), no_main)]
#![cfg_attr(not(any(test, feature = "export-abi")), no_std)]

extern crate alloc;

use alloc::vec::Vec;
use alloy_sol_types::{sol, SolCall};
use muster_protocol::chain::{run, Chain, Words};
use muster_protocol::{Network, Result};
use stylus_sdk::prelude::*;
use stylus_sdk::{host::VM, ArbResult};

sol! {
    /// Records `score` for `node`, `times` times over. Anyone may call, so never on a chain that matters.
    function recordScores(uint32 node, uint8 score, uint8 times) external;
}

/// Answers a call.
#[entrypoint]
pub fn main(input: Vec<u8>, vm: VM) -> ArbResult {
    run(input, vm, route)
}

fn route(chain: &mut Chain, selector: [u8; 4], data: &[u8]) -> Result<Option<Vec<u8>>> {
    if selector != recordScoresCall::SELECTOR {
        return Ok(None);
    }
    chain.no_value()?;
    let c = Words::new(selector, data, 3)?;
    let (node, score, times) = (c.number(0, 32)? as u32, c.number(1, 8)? as u8, c.number(2, 8)?);
    let mut net = Network::open_and_serve(chain)?;
    (0..times).for_each(|_| net.record_score(node, score));
    net.close();
    Ok(Some(Vec::new()))
}
