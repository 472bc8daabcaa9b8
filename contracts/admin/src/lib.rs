//! The program of administration, parameters, the loupe, payments, and the end of tasks queued for too long; see `muster_protocol::admin`.
#![cfg_attr(not(any(test, feature = "export-abi")), no_main)]
#![cfg_attr(not(any(test, feature = "export-abi")), no_std)]

extern crate alloc;

use muster_protocol::host::Program;
use muster_protocol::{chain, programs};
use stylus_sdk::prelude::*;
use stylus_sdk::{host::VM, ArbResult};

/// Answers a call.
#[entrypoint]
pub fn main(input: alloc::vec::Vec<u8>, vm: VM) -> ArbResult {
    chain::run::<{ Program::Admin as u8 }>(input, vm, programs::admin)
}
