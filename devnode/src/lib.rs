//! A local Arbitrum Stylus node without Docker.
//!
//! | module | contents |
//! | --- | --- |
//! | [`state`] | accounts, code and storage, with snapshots that cost nothing |
//! | [`evm`] | transactions and calls on that state: EVM code through revm, Stylus programs through [`stylus`] |
//! | [`stylus`] | activation, ink metering and the `vm_hooks` of WASM programs |
//! | [`chain`] | blocks, time, snapshots and accounts; the direct interface for tests and benches |
//! | [`fork`], [`endpoint`] | another chain on whose state this one goes on, and the way to it |
//! | [`proof`] | state roots and Merkle proofs |
//! | [`trace`] | recordings made while a transaction runs |
//! | [`rpc`] | JSON-RPC over HTTP and WebSocket |
//! | [`node`] | a chain and its server, in process |
//!
//! L1 data cost is left out on purpose: `gasUsed` here is that of a real chain's receipt minus its `gasUsedForL1`.
//!
//! ```
//! use muster_devnode::{Config, Devnode};
//!
//! let node = Devnode::start(Config::default()).unwrap();
//! println!("{} and {}", node.url(), node.ws_url());
//! assert_eq!(node.chain().head().header.number, 0);
//! ```

#![warn(missing_docs)]

mod arbos;
pub mod chain;
pub mod endpoint;
pub mod evm;
mod exec;
pub mod fork;
pub mod genesis;
pub mod node;
mod precompiles;
pub mod proof;
pub mod rpc;
pub mod state;
pub mod stylus;
pub mod trace;
mod transaction;

pub use chain::{Chain, TxRequest};
pub use node::{Config, Devnode};
