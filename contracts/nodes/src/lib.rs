//! The program behind the operators' functions; see `muster_storage::nodes`.
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
        joinCall::SELECTOR => {
            let c = arguments::<joinCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            let out = net.join(c.gpuName, c.vram, c.models)?;
            net.close();
            Word::from(out as u64).to_be_bytes().to_vec()
        }
        raiseStakeCall::SELECTOR => {
            Words::new::<raiseStakeCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.raise_stake()?;
            net.close();
            Vec::new()
        }
        pauseCall::SELECTOR => {
            chain.no_value()?;
            Words::new::<pauseCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.pause()?;
            net.close();
            Vec::new()
        }
        resumeCall::SELECTOR => {
            chain.no_value()?;
            Words::new::<resumeCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.resume()?;
            net.close();
            Vec::new()
        }
        quitCall::SELECTOR => {
            chain.no_value()?;
            Words::new::<quitCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.quit()?;
            net.close();
            Vec::new()
        }
        reportDownloadedCall::SELECTOR => {
            chain.no_value()?;
            let c = arguments::<reportDownloadedCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.report_downloaded(c.models)?;
            net.close();
            Vec::new()
        }
        reportRemovedCall::SELECTOR => {
            chain.no_value()?;
            let c = arguments::<reportRemovedCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.report_removed(c.models)?;
            net.close();
            Vec::new()
        }
        purgeCall::SELECTOR => {
            chain.no_value()?;
            let c = Words::new::<purgeCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.purge(c.number(0, 64)?, c.number(1, 32)? as u32)?;
            net.close();
            Vec::new()
        }
        pokeCall::SELECTOR => {
            chain.no_value()?;
            let c = Words::new::<pokeCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.poke(c.number(0, 32)? as u32)?;
            net.close();
            Vec::new()
        }
        withdrawCall::SELECTOR => {
            chain.no_value()?;
            let to = Words::new::<withdrawCall>(data)?.address(0)?;
            let mut net = Network::open_and_serve(chain)?;
            let owed = net.take_owed(to)?;
            net.close();
            chain.send(to, owed)?;
            Vec::new()
        }
        _ => return Ok(None),
    }))
}
