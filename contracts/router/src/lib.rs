//! The one public address. Looks a call's selector up in storage and runs the program behind it by
//! delegatecall, so that storage, balance and logs are the router's own.
#![cfg_attr(not(any(test, feature = "export-abi")), no_main)]
#![cfg_attr(not(any(test, feature = "export-abi")), no_std)]

extern crate alloc;

use alloc::vec::Vec;
use alloy_primitives::Address;
use alloy_sol_types::SolCall;
use muster_protocol::chain::{has_code, Chain, Words};
use muster_protocol::{admin, refusal, IMuster, Refusal, Result};
use stylus_sdk::call::RawCall;
use stylus_sdk::prelude::*;
use stylus_sdk::{host::VM, ArbResult};

/// Answers a call.
#[entrypoint]
pub fn main(input: Vec<u8>, vm: VM) -> ArbResult {
    let chain = Chain::new(vm.clone());
    let Some((&selector, data)) = input.split_first_chunk::<4>() else {
        return Err(refusal!(MalformedCalldata([0; 4])).into_bytes());
    };
    if selector == IMuster::installCall::SELECTOR {
        return install(&chain, &vm, data);
    }
    let program = admin::program_of(&chain, selector);
    if program == [0; 20] {
        return Err(refusal!(UnknownFunction(selector)).into_bytes());
    }
    delegate(&vm, program.into(), selector, &input)
}

/// See `IMuster.install`.
fn install(chain: &Chain, vm: &VM, data: &[u8]) -> ArbResult {
    let refuse = Refusal::into_bytes;
    chain.no_value().map_err(refuse)?;
    let read = || -> Result<_> {
        let c = Words::new(IMuster::installCall::SELECTOR, data, 2)?;
        Ok((c.address(0)?, c.bytes(1)?))
    };
    // A decoder of the interface's own would be a quarter of this program, which runs before every call.
    let (program, call) = read().map_err(refuse)?;
    admin::only_deployer(chain).map_err(refuse)?;
    delegate(vm, program.into(), IMuster::installCall::SELECTOR, call)
}

#[allow(unsafe_code)]
fn delegate(vm: &VM, program: Address, selector: [u8; 4], input: &[u8]) -> ArbResult {
    // SAFETY: the programs share this storage by design, and nothing is cached here that they could change.
    let answer = unsafe { RawCall::new_delegate(vm).call(program, input) };
    // Where there is no code, a call succeeds, says nothing and does nothing, but would keep the value.
    if matches!(&answer, Ok(out) if out.is_empty()) && !has_code(vm, program) {
        return Err(refusal!(NoCode(program.into_array())).into_bytes());
    }
    answer.map_err(|reason| {
        // A trap or too little gas leaves no reason behind.
        if reason.is_empty() {
            refusal!(ProgramFailed(selector, program.into_array())).into_bytes()
        } else {
            reason
        }
    })
}
