//! The program behind the functions of applications and of nodes at work; see `muster_storage::tasks`.
#![cfg_attr(not(any(test, feature = "export-abi")), no_main)]
#![cfg_attr(not(any(test, feature = "export-abi")), no_std)]

extern crate alloc;

use alloc::vec::Vec;
use alloy_sol_types::SolCall;
use muster_core::word::Word;
use muster_storage::chain::{arguments, run, Chain, Words};
use muster_storage::IMuster::*;
use muster_storage::{Network, Result};
use stylus_sdk::prelude::*;
use stylus_sdk::{host::VM, ArbResult};

/// Answers a call.
#[entrypoint]
pub fn main(input: Vec<u8>, vm: VM) -> ArbResult {
    run(input, vm, route)
}

fn route(chain: &mut Chain, selector: [u8; 4], data: &[u8]) -> Result<Option<Vec<u8>>> {
    Ok(Some(match selector {
        createTaskCall::SELECTOR => {
            let c = arguments::<createTaskCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            let out = net.create_task(c.spec)?;
            net.close();
            Word::from(out).to_be_bytes().to_vec()
        }
        cancelCall::SELECTOR => {
            chain.no_value()?;
            let c = Words::new::<cancelCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.cancel(c.number(0, 64)?, c.number(1, 64)?)?;
            net.close();
            Vec::new()
        }
        submitCall::SELECTOR => {
            chain.no_value()?;
            let c = Words::new::<submitCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.submit(c.number(0, 64)?, c.word(1).to_be_bytes())?;
            net.close();
            Vec::new()
        }
        reportErrorCall::SELECTOR => {
            chain.no_value()?;
            let c = Words::new::<reportErrorCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.report_error(c.number(0, 64)?, c.number(1, 8)? as u8)?;
            net.close();
            Vec::new()
        }
        expireCall::SELECTOR => {
            chain.no_value()?;
            let c = Words::new::<expireCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.expire(c.number(0, 32)? as u32, c.number(1, 64)?)?;
            net.close();
            Vec::new()
        }
        dispatchCall::SELECTOR => {
            chain.no_value()?;
            let count = Words::new::<dispatchCall>(data)?.number(0, 8)? as u8;
            let mut net = Network::open(chain)?;
            let drawn = net.dispatch(count)?;
            net.close();
            Word::from(drawn as u64).to_be_bytes().to_vec()
        }
        _ => return Ok(None),
    }))
}
