//! The one public address. Looks a call's selector up in storage and runs the program behind it by
//! delegatecall, so that storage, balance and logs are the router's own.
#![cfg_attr(not(any(test, feature = "export-abi")), no_main)]
#![cfg_attr(not(any(test, feature = "export-abi")), no_std)]

extern crate alloc;

use alloc::vec::Vec;
use alloy_sol_types::SolCall;
use muster_core::word::Address;
use muster_protocol::chain::{has_code, Chain};
use muster_protocol::codec::Calldata;
use muster_protocol::host::Program;
use muster_protocol::IMuster::installCall;
use muster_protocol::{admin, door, refusal, Refusal, Result};
use stylus_sdk::call::RawCall;
use stylus_sdk::prelude::*;
use stylus_sdk::{host::VM, ArbResult};

/// The router asks no program for anything but to answer the call.
type Router = Chain<{ Program::Any as u8 }>;

/// Answers a call.
#[entrypoint]
pub fn main(input: Vec<u8>, vm: VM) -> ArbResult {
    let chain = Router::new(vm.clone());
    let (selector, program, call) = target(&chain, &input).map_err(Refusal::into_bytes)?;
    delegate(&vm, selector, program, call)
}

/// A call's selector, the program that it goes to, and what that is called with: the call itself, or what is in an `install`.
fn target<'a>(chain: &Router, input: &'a [u8]) -> Result<([u8; 4], Address, &'a [u8])> {
    let call = Calldata::new(input)?;
    if call.selector == installCall::SELECTOR {
        door::no_value(chain)?;
        let (program, call) = call.arguments::<<installCall as SolCall>::Parameters<'static>, (Address, &[u8])>()?;
        admin::only_deployer(chain)?;
        return Ok((installCall::SELECTOR, program, call));
    }
    let program = admin::program_of(chain, call.selector);
    if program == [0; 20] {
        return Err(refusal!(UnknownFunction(call.selector)));
    }
    Ok((call.selector, program, input))
}

#[allow(unsafe_code)]
fn delegate(vm: &VM, selector: [u8; 4], program: Address, input: &[u8]) -> ArbResult {
    // SAFETY: the programs share this storage by design, and nothing is cached here that they could change.
    let answer = unsafe { RawCall::new_delegate(vm).call(program.into(), input) };
    // Where there is no code, a call succeeds, says nothing and does nothing, but would keep the value.
    if matches!(&answer, Ok(out) if out.is_empty()) && !has_code(vm, program.into()) {
        return Err(refusal!(NoCode(program)).into_bytes());
    }
    answer.map_err(|reason| {
        // A trap or too little gas leaves no reason behind.
        if reason.is_empty() {
            refusal!(ProgramFailed(selector, program)).into_bytes()
        } else {
            reason
        }
    })
}
