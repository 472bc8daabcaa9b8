//! The program of answers and draws, and of work for freed nodes; see `muster_protocol::flow`.
#![cfg_attr(not(any(test, feature = "export-abi")), no_main)]
#![cfg_attr(not(any(test, feature = "export-abi")), no_std)]

extern crate alloc;

use muster_protocol::host::Program;
use muster_protocol::{among, chain};
use stylus_sdk::prelude::*;
use stylus_sdk::{host::VM, ArbResult};

/// Answers a call.
#[entrypoint]
pub fn main(input: alloc::vec::Vec<u8>, vm: VM) -> ArbResult {
    chain::run::<{ Program::Work as u8 }>(input, vm, among::work)
}
