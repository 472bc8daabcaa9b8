//! The program behind administration; see `muster_storage::admin`.
#![cfg_attr(not(any(test, feature = "export-abi")), no_main)]
#![cfg_attr(not(any(test, feature = "export-abi")), no_std)]

extern crate alloc;

use alloc::vec::Vec;
use alloy_sol_types::SolCall;
use muster_storage::chain::{arguments, run, Chain, Words};
use muster_storage::IMuster::*;
use muster_storage::{admin, Result};
use stylus_sdk::prelude::*;
use stylus_sdk::{host::VM, ArbResult};

/// Answers a call.
#[entrypoint]
pub fn main(input: Vec<u8>, vm: VM) -> ArbResult {
    run(input, vm, route)
}

fn route(chain: &mut Chain, selector: [u8; 4], data: &[u8]) -> Result<Option<Vec<u8>>> {
    Ok(Some(match selector {
        initialiseCall::SELECTOR => {
            chain.no_value()?;
            let c = arguments::<initialiseCall>(data)?;
            admin::initialise(chain, c.owner.into_array(), c.treasury.into_array(), c.granule, c.minimumStake, &c.programs)?;
            Vec::new()
        }
        setParameterCall::SELECTOR => {
            chain.no_value()?;
            let c = Words::new(selector, data, 2)?;
            admin::set_parameter(chain, c.number(0, 8)? as u8, c.word(1))?;
            Vec::new()
        }
        setPausedCall::SELECTOR => {
            chain.no_value()?;
            let c = Words::new(selector, data, 1)?;
            admin::set_paused(chain, c.number(0, 1)? != 0)?;
            Vec::new()
        }
        transferOwnershipCall::SELECTOR => {
            chain.no_value()?;
            let c = Words::new(selector, data, 1)?;
            admin::transfer_ownership(chain, c.address(0)?)?;
            Vec::new()
        }
        acceptOwnershipCall::SELECTOR => {
            chain.no_value()?;
            Words::new(selector, data, 0)?;
            admin::accept_ownership(chain)?;
            Vec::new()
        }
        proposeTreasuryCall::SELECTOR => {
            chain.no_value()?;
            let c = Words::new(selector, data, 1)?;
            admin::propose_treasury(chain, c.address(0)?)?;
            Vec::new()
        }
        acceptTreasuryCall::SELECTOR => {
            chain.no_value()?;
            Words::new(selector, data, 0)?;
            admin::accept_treasury(chain)?;
            Vec::new()
        }
        setProgramCall::SELECTOR => {
            chain.no_value()?;
            let c = arguments::<setProgramCall>(data)?;
            admin::set_program(chain, c.program.into_array(), &c.selectors)?;
            Vec::new()
        }
        sweepTreasuryCall::SELECTOR => {
            chain.no_value()?;
            Words::new(selector, data, 0)?;
            let (to, amount) = admin::take_treasury(chain)?;
            chain.send(to, amount)?;
            Vec::new()
        }
        _ => return Ok(None),
    }))
}
