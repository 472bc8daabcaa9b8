//! A program that only tests put behind a router: it records task scores, which no deployed program can.
#![cfg_attr(target_arch = "wasm32", no_main, no_std)]

extern crate alloc;

use muster_protocol::id::NodeId;
use muster_protocol::program;

alloy_sol_types::sol! {
    /// Records `score` for `node`, `times` times over. Anyone may call, so never on a chain that matters.
    function recordScores(uint32 node, uint8 score, uint8 times) external;
}

program! { "function recordScores(uint32 node, uint8 score, uint8 times) external;";
    /// The program.
    scorer SCORER {
        serving(net) {
            recordScoresCall(node: NodeId, score: u8, times: u8) {
                (0..times).for_each(|_| net.record_score(node, score));
                Ok(())
            }
        }
    }
}

#[cfg(target_arch = "wasm32")]
mod entry {
    use muster_protocol::chain;
    use muster_protocol::host::Program;
    use stylus_sdk::prelude::*;
    use stylus_sdk::{host::VM, ArbResult};

    /// Answers a call.
    #[entrypoint]
    pub fn main(input: alloc::vec::Vec<u8>, vm: VM) -> ArbResult {
        // None of those that do a thing themselves: it asks them.
        chain::run::<{ Program::Admin as u8 }>(input, vm, super::scorer)
    }
}
