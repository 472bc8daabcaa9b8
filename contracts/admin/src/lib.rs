//! The program behind administration; see `muster_storage::admin`.
#![cfg_attr(not(any(test, feature = "export-abi")), no_main)]
#![cfg_attr(not(any(test, feature = "export-abi")), no_std)]

extern crate alloc;

use alloc::vec::Vec;
use alloy_sol_types::SolCall;
use muster_storage::chain::{arguments, run, Chain, Words};
use muster_storage::IMuster::*;
use muster_core::word::Word;
use muster_storage::admin::{self, Genesis};
use muster_storage::Result;
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
            let genesis = Genesis {
                owner: c.owner.into_array(),
                treasury: c.treasury.into_array(),
                granule: c.granule,
                minimum_stake: c.minimumStake,
                upgrade_delay: c.upgradeDelay,
            };
            admin::initialise(chain, &genesis, &c.programs)?;
            Vec::new()
        }
        proposeParameterCall::SELECTOR => {
            chain.no_value()?;
            let c = Words::new(selector, data, 2)?;
            admin::propose_parameter(chain, c.number(0, 8)? as u8, c.word(1))?;
            Vec::new()
        }
        acceptParameterCall::SELECTOR => {
            chain.no_value()?;
            let c = Words::new(selector, data, 1)?;
            admin::accept_parameter(chain, c.number(0, 8)? as u8)?;
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
        proposeProgramsCall::SELECTOR => {
            chain.no_value()?;
            let c = arguments::<proposeProgramsCall>(data)?;
            admin::propose_programs(chain, c.program.into_array(), &c.selectors)?;
            Vec::new()
        }
        withdrawProgramsCall::SELECTOR => {
            chain.no_value()?;
            let c = arguments::<withdrawProgramsCall>(data)?;
            admin::withdraw_programs(chain, c.program.into_array(), &c.selectors)?;
            Vec::new()
        }
        acceptProgramsCall::SELECTOR => {
            chain.no_value()?;
            let c = arguments::<acceptProgramsCall>(data)?;
            admin::accept_programs(chain, c.program.into_array(), &c.selectors)?;
            Vec::new()
        }
        renounceUpgradesCall::SELECTOR => {
            chain.no_value()?;
            Words::new(selector, data, 0)?;
            admin::renounce_upgrades(chain)?;
            Vec::new()
        }
        proposedParameterCall::SELECTOR => {
            chain.no_value()?;
            let c = Words::new(selector, data, 1)?;
            let (value, effective) = admin::proposed_parameter(chain, c.number(0, 8)? as u8)?;
            [Word::from(value), Word::from(effective)].iter().flat_map(Word::to_be_bytes).collect()
        }
        proposedProgramsCall::SELECTOR => {
            chain.no_value()?;
            let c = arguments::<proposedProgramsCall>(data)?;
            Word::from(admin::proposed_programs(chain, c.program.into_array(), &c.selectors)).to_be_bytes().to_vec()
        }
        upgradesCall::SELECTOR => {
            chain.no_value()?;
            Words::new(selector, data, 0)?;
            let (delay, renounced) = admin::upgrades(chain)?;
            [Word::from(delay as u64), Word::from(renounced as u64)].iter().flat_map(Word::to_be_bytes).collect()
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
