//! The contract on another party's storage words, for clients that repeat a transaction: `clients/ts/verifier.sh` compiles it to WASM.
//!
//! The caller gives a call and its block, answers requests for storage words, block hashes and keccak256, and receives writes and logs.
// Exporting names and calling imports is all that is unsafe here.
#![allow(unsafe_code)]

pub mod host;
#[cfg(target_arch = "wasm32")]
mod wasm;
