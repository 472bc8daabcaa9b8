//! The program behind the functions of applications and of nodes at work; see `muster_storage::tasks`.
#![cfg_attr(not(any(test, feature = "export-abi")), no_main)]
#![cfg_attr(not(any(test, feature = "export-abi")), no_std)]

extern crate alloc;

use alloc::vec::Vec;
use alloy_sol_types::SolCall;
use muster_storage::chain::{arguments, run, Chain};
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
            createTaskCall::abi_encode_returns(&out)
        }
        cancelCall::SELECTOR => {
            chain.no_value()?;
            let c = arguments::<cancelCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.cancel(c.id, c.ticket)?;
            net.close();
            Vec::new()
        }
        submitCall::SELECTOR => {
            chain.no_value()?;
            let c = arguments::<submitCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.submit(c.id, c.resultDigest.0)?;
            net.close();
            Vec::new()
        }
        reportErrorCall::SELECTOR => {
            chain.no_value()?;
            let c = arguments::<reportErrorCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.report_error(c.id, c.code)?;
            net.close();
            Vec::new()
        }
        expireCall::SELECTOR => {
            chain.no_value()?;
            let c = arguments::<expireCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.expire(c.node, c.id)?;
            net.close();
            Vec::new()
        }
        dispatchCall::SELECTOR => {
            chain.no_value()?;
            let count = arguments::<dispatchCall>(data)?.count;
            let mut net = Network::open(chain)?;
            let drawn = net.dispatch(count)?;
            net.close();
            dispatchCall::abi_encode_returns(&drawn)
        }
        _ => return Ok(None),
    }))
}
