//! Muster on storage: the one layout, the structures that answer in a bounded number of slots, and
//! the life of nodes and tasks on top of them.
//!
//! Everything is generic over [`Host`], so one code serves the programs on chain, the tests and the
//! simulator.
//!
//! | module | what |
//! | --- | --- |
//! | [`abi`] | the public interface, from `abi/IMuster.sol` |
//! | [`host`] | what a chain gives: words, sender, time, hashes, logs |
//! | [`layout`] | which slot holds what |
//! | [`sampler`] | idle nodes by GPU group and stake class, drawn by rejection |
//! | [`bracket`] | knock-out trees: the greatest key of many in few words |
//! | [`pool`] | priority pools on brackets |
//! | [`queue`] | the task queue: its grades, best head, worst of all |
//! | [`registry`] | GPU groups, and which node holds which model |
//! | [`network`] | a transaction's view of it all; serving what is due |
//! | [`draw`] | weighted random selection |
//! | [`work`] | what a freed node does while tasks wait that take three |
//! | [`nodes`], [`tasks`], [`groups`], [`admin`] | what the public functions do |
//! | [`parameters`] | every parameter, declared once |
//! | [`lens`] | reading |
//! | [`chain`] | the Stylus host, and how a program answers a call (feature `chain`) |
//! | [`native`] | an in-memory host (feature `native`) |
#![cfg_attr(not(any(test, feature = "native")), no_std)]
#![deny(unsafe_code)]
// The programs are compared with the source of the interface as they are compiled, which is long.
#![allow(long_running_const_eval)]

extern crate alloc;

#[macro_use]
pub mod abi;
pub mod admin;
pub mod bracket;
#[cfg(feature = "chain")]
pub mod chain;
pub mod codec;
#[macro_use]
pub mod door;
pub mod draw;
pub mod groups;
pub mod host;
pub mod layout;
pub mod lens;
#[cfg(any(test, feature = "native"))]
pub mod native;
pub mod network;
pub mod nodes;
pub mod parameters;
pub mod parking;
pub mod pool;
pub mod programs;
pub mod purse;
pub mod queue;
pub mod receipt;
pub mod registry;
pub mod reputation;
pub mod ring;
pub mod roster;
pub mod sampler;
pub mod tasks;
pub mod work;
pub mod worker;

pub use abi::{emit, IMuster, Refusal, Result};
pub use host::Host;
pub use muster_core::id;
pub use network::Network;
