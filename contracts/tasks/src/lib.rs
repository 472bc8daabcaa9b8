//! The program behind the functions of applications and of nodes at work; see `muster_protocol::tasks`.
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
        createTaskCall::SELECTOR | dispatchCall::SELECTOR => 1,
        cancelCall::SELECTOR | submitCall::SELECTOR | reportErrorCall::SELECTOR | expireCall::SELECTOR => 2,
        _ => return Ok(None),
    };
    if selector != createTaskCall::SELECTOR {
        chain.no_value()?;
    }
    let c = Words::new(selector, data, arity)?;
    let mut net = match selector {
        // It says itself how many it serves.
        dispatchCall::SELECTOR => Network::open(chain)?,
        _ => Network::open_and_serve(chain)?,
    };
    let mut answer = Vec::new();
    match selector {
        createTaskCall::SELECTOR => {
            let id = net.create_task(c.spec(0)?)?;
            answer.extend_from_slice(&Word::from(id).to_be_bytes());
        }
        cancelCall::SELECTOR => net.cancel(c.number(0, 64)?, c.number(1, 64)?)?,
        submitCall::SELECTOR => net.submit(c.number(0, 64)?, c.word(1).to_be_bytes())?,
        reportErrorCall::SELECTOR => net.report_error(c.number(0, 64)?, c.number(1, 8)? as u8)?,
        expireCall::SELECTOR => net.expire(c.number(0, 32)? as u32, c.number(1, 64)?)?,
        _ => {
            let drawn = net.dispatch(c.number(0, 8)? as u8)?;
            answer.extend_from_slice(&Word::from(drawn as u64).to_be_bytes());
        }
    }
    net.close();
    Ok(Some(answer))
}
