//! The program behind administration, parameters, the loupe, payments, and the end of what was queued for too long; see `muster_protocol::admin`.
#![cfg_attr(not(any(test, feature = "export-abi")), no_main)]
#![cfg_attr(not(any(test, feature = "export-abi")), no_std)]

extern crate alloc;

use alloc::vec::Vec;
use alloy_primitives::U256;
use alloy_sol_types::SolCall;
use muster_core::word::Word;
use muster_protocol::admin::{self, Genesis};
use muster_protocol::chain::{arguments, run, Chain, Words};
use muster_protocol::IMuster::*;
use muster_protocol::{lens, Network, Result};
use stylus_sdk::prelude::*;
use stylus_sdk::{host::VM, ArbResult};

/// Answers a call.
#[entrypoint]
pub fn main(input: Vec<u8>, vm: VM) -> ArbResult {
    run(input, vm, route)
}

fn route(chain: &mut Chain, selector: [u8; 4], data: &[u8]) -> Result<Option<Vec<u8>>> {
    // No function here takes value.
    chain.no_value()?;
    Ok(Some(match selector {
        initialiseCall::SELECTOR => {
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
            let c = Words::new(selector, data, 2)?;
            admin::propose_parameter(chain, c.number(0, 8)? as u8, c.word(1))?;
            Vec::new()
        }
        acceptParameterCall::SELECTOR => {
            let c = Words::new(selector, data, 1)?;
            admin::accept_parameter(chain, c.number(0, 8)? as u8)?;
            Vec::new()
        }
        setParameterCall::SELECTOR => {
            let c = Words::new(selector, data, 2)?;
            admin::set_parameter(chain, c.number(0, 8)? as u8, c.word(1))?;
            Vec::new()
        }
        setPausedCall::SELECTOR => {
            let c = Words::new(selector, data, 1)?;
            admin::set_paused(chain, c.number(0, 1)? != 0)?;
            Vec::new()
        }
        transferOwnershipCall::SELECTOR => {
            let c = Words::new(selector, data, 1)?;
            admin::transfer_ownership(chain, c.address(0)?)?;
            Vec::new()
        }
        acceptOwnershipCall::SELECTOR => {
            Words::new(selector, data, 0)?;
            admin::accept_ownership(chain)?;
            Vec::new()
        }
        proposeTreasuryCall::SELECTOR => {
            let c = Words::new(selector, data, 1)?;
            admin::propose_treasury(chain, c.address(0)?)?;
            Vec::new()
        }
        acceptTreasuryCall::SELECTOR => {
            Words::new(selector, data, 0)?;
            admin::accept_treasury(chain)?;
            Vec::new()
        }
        proposeProgramsCall::SELECTOR => {
            let c = arguments::<proposeProgramsCall>(data)?;
            admin::propose_programs(chain, c.program.into_array(), &c.selectors)?;
            Vec::new()
        }
        withdrawProgramsCall::SELECTOR => {
            let c = arguments::<withdrawProgramsCall>(data)?;
            admin::withdraw_programs(chain, c.program.into_array(), &c.selectors)?;
            Vec::new()
        }
        acceptProgramsCall::SELECTOR => {
            let c = arguments::<acceptProgramsCall>(data)?;
            admin::accept_programs(chain, c.program.into_array(), &c.selectors)?;
            Vec::new()
        }
        renounceUpgradesCall::SELECTOR => {
            Words::new(selector, data, 0)?;
            admin::renounce_upgrades(chain)?;
            Vec::new()
        }
        proposedParameterCall::SELECTOR => {
            let c = Words::new(selector, data, 1)?;
            let (value, effective) = admin::proposed_parameter(chain, c.number(0, 8)? as u8)?;
            [Word::from(value), Word::from(effective)].iter().flat_map(Word::to_be_bytes).collect()
        }
        proposedProgramsCall::SELECTOR => {
            let c = arguments::<proposedProgramsCall>(data)?;
            Word::from(admin::proposed_programs(chain, c.program.into_array(), &c.selectors)).to_be_bytes().to_vec()
        }
        upgradesCall::SELECTOR => {
            Words::new(selector, data, 0)?;
            let (delay, renounced) = admin::upgrades(chain)?;
            [Word::from(delay as u64), Word::from(renounced as u64)].iter().flat_map(Word::to_be_bytes).collect()
        }
        parameterCall::SELECTOR => {
            let c = arguments::<parameterCall>(data)?;
            parameterCall::abi_encode_returns(&{
                let (value, least, most) = admin::parameter(chain, c.which)?;
                parameterReturn { value: U256::from(value), least: U256::from(least), most: U256::from(most) }
            })
        }
        facetsCall::SELECTOR => {
            let _ = arguments::<facetsCall>(data)?;
            facetsCall::abi_encode_returns(&lens::facets(chain))
        }
        facetFunctionSelectorsCall::SELECTOR => {
            let c = arguments::<facetFunctionSelectorsCall>(data)?;
            facetFunctionSelectorsCall::abi_encode_returns(
                &lens::facets(chain).into_iter().find(|f| f.facetAddress == c.facet).map_or(Vec::new(), |f| f.functionSelectors),
            )
        }
        facetAddressesCall::SELECTOR => {
            let _ = arguments::<facetAddressesCall>(data)?;
            facetAddressesCall::abi_encode_returns(&lens::facets(chain).into_iter().map(|f| f.facetAddress).collect::<Vec<_>>())
        }
        facetAddressCall::SELECTOR => {
            let c = arguments::<facetAddressCall>(data)?;
            facetAddressCall::abi_encode_returns(&admin::program_of(chain, c.selector.0).into())
        }
        supportsInterfaceCall::SELECTOR => {
            let c = arguments::<supportsInterfaceCall>(data)?;
            supportsInterfaceCall::abi_encode_returns(&matches!(c.interfaceId.0, ERC165 | ERC2535_LOUPE))
        }
        withdrawCall::SELECTOR => {
            let to = Words::new(selector, data, 1)?.address(0)?;
            // It makes no draws: money that is owed is paid, whatever waits.
            let wei = Network::open(chain)?.take_owed(to)?;
            chain.send(to, wei)?;
            Vec::new()
        }
        expireQueuedCall::SELECTOR => {
            let c = Words::new(selector, data, 2)?;
            let mut net = Network::open(chain)?;
            net.expire_queued(c.number(0, 64)?, c.number(1, 64)?)?;
            net.close();
            Vec::new()
        }
        sweepTreasuryCall::SELECTOR => {
            Words::new(selector, data, 0)?;
            let (to, amount) = admin::take_treasury(chain)?;
            chain.send(to, amount)?;
            Vec::new()
        }
        _ => return Ok(None),
    }))
}

/// `supportsInterface` itself.
const ERC165: [u8; 4] = [0x01, 0xff, 0xc9, 0xa7];
/// The four functions of ERC-2535's loupe.
const ERC2535_LOUPE: [u8; 4] = [0x48, 0xe2, 0xb0, 0x93];
