//! The program behind the operators' functions; see `muster_storage::nodes`.
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
        joinCall::SELECTOR => {
            let c = arguments::<joinCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            let out = net.join(c.gpuName, c.vram, c.models)?;
            net.close();
            joinCall::abi_encode_returns(&out)
        }
        raiseStakeCall::SELECTOR => {
            let _ = arguments::<raiseStakeCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.raise_stake()?;
            net.close();
            Vec::new()
        }
        pauseCall::SELECTOR => {
            chain.no_value()?;
            let _ = arguments::<pauseCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.pause()?;
            net.close();
            Vec::new()
        }
        resumeCall::SELECTOR => {
            chain.no_value()?;
            let _ = arguments::<resumeCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.resume()?;
            net.close();
            Vec::new()
        }
        quitCall::SELECTOR => {
            chain.no_value()?;
            let _ = arguments::<quitCall>(data)?;
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
            let c = arguments::<purgeCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.purge(c.model, c.position)?;
            net.close();
            Vec::new()
        }
        pokeCall::SELECTOR => {
            chain.no_value()?;
            let c = arguments::<pokeCall>(data)?;
            let mut net = Network::open_and_serve(chain)?;
            net.poke(c.node)?;
            net.close();
            Vec::new()
        }
        withdrawCall::SELECTOR => {
            chain.no_value()?;
            let to = arguments::<withdrawCall>(data)?.to.into_array();
            let mut net = Network::open_and_serve(chain)?;
            let owed = net.take_owed(to)?;
            net.close();
            chain.send(to, owed)?;
            Vec::new()
        }
        _ => return Ok(None),
    }))
}
