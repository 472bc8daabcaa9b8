//! A local Arbitrum Stylus node without Docker.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`state`] | accounts, code and storage, with snapshots that cost nothing |
//! | [`evm`] | transactions and calls on that state: EVM code through revm, Stylus programs through [`stylus`] |
//! | [`stylus`] | activation, ink metering and the `vm_hooks` of WASM programs |
//!
//! L1 data cost is left out on purpose: `gasUsed` here is what a receipt of a real chain shows minus
//! its `gasUsedForL1`.

#![warn(missing_docs)]

mod arbos;
pub mod evm;
mod exec;
pub mod genesis;
mod precompiles;
pub mod state;
pub mod stylus;
mod trace;
