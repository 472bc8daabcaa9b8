//! The contract on words that somebody else brings, for clients that do a transaction again: `clients/ts/verifier.sh` compiles it to WASM.
//!
//! Whoever runs it gives a call and its block, and is asked for words of storage, hashes of blocks and keccak256; they are told what is written and logged.
// Exporting names and calling what is imported is all that is unsafe here.
#![allow(unsafe_code)]

pub mod host;
#[cfg(target_arch = "wasm32")]
mod wasm;
