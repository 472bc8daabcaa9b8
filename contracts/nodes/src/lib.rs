//! The program behind the operators' functions; see `muster_protocol::nodes`.
#![cfg_attr(not(any(test, feature = "export-abi")), no_main)]
#![cfg_attr(not(any(test, feature = "export-abi")), no_std)]

extern crate alloc;

use alloc::vec::Vec;
use alloy_sol_types::SolCall;
use muster_core::word::Word;
use muster_protocol::chain::{run, Chain, Words};
use muster_protocol::IMuster::*;
use muster_protocol::{Network, Result};
use stylus_sdk::prelude::*;
use stylus_sdk::{host::VM, ArbResult};

/// Answers a call.
#[entrypoint]
pub fn main(input: Vec<u8>, vm: VM) -> ArbResult {
    run(input, vm, route)
}

fn route(chain: &mut Chain, selector: [u8; 4], data: &[u8]) -> Result<Option<Vec<u8>>> {
    let arity = match selector {
        joinCall::SELECTOR => 3,
        purgeCall::SELECTOR => 2,
        reportDownloadedCall::SELECTOR | reportRemovedCall::SELECTOR | pokeCall::SELECTOR => 1,
        raiseStakeCall::SELECTOR | pauseCall::SELECTOR | resumeCall::SELECTOR | quitCall::SELECTOR => 0,
        _ => return Ok(None),
    };
    if !matches!(selector, joinCall::SELECTOR | raiseStakeCall::SELECTOR) {
        chain.no_value()?;
    }
    let c = Words::new(selector, data, arity)?;
    let mut net = Network::open_and_serve(chain)?;
    let mut answer = Vec::new();
    match selector {
        joinCall::SELECTOR => {
            let number = net.join(c.bytes(0)?, c.number(1, 16)? as u16, c.numbers(2)?)?;
            answer.extend_from_slice(&Word::from(number as u64).to_be_bytes());
        }
        raiseStakeCall::SELECTOR => net.raise_stake()?,
        pauseCall::SELECTOR => net.pause()?,
        resumeCall::SELECTOR => net.resume()?,
        quitCall::SELECTOR => net.quit()?,
        reportDownloadedCall::SELECTOR => net.report_downloaded(c.numbers(0)?)?,
        reportRemovedCall::SELECTOR => net.report_removed(c.numbers(0)?)?,
        purgeCall::SELECTOR => net.purge(c.number(0, 64)?, c.number(1, 32)? as u32)?,
        _ => net.poke(c.number(0, 32)? as u32)?,
    }
    net.close();
    Ok(Some(answer))
}
