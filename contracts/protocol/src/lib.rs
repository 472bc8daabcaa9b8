//! Muster on storage: the one layout, the structures that answer in a bounded number of slots, and
//! the life of nodes and tasks on top of them.
//!
//! Everything is generic over [`Host`], so one code serves the programs on chain, the tests and the
//! simulator.
//!
//! | folder | contents |
//! | --- | --- |
//! | [`interface`] | the calls: the interface, its decoder, the programs, and the calls between them |
//! | [`host`] | the functions of a chain, and the chains there are: Stylus (feature `chain`), memory (feature `native`) |
//! | [`store`] | the contents of storage: layout, records, sampler, queue, rings; knows no call |
//! | [`flow`] | the way of nodes and tasks: creation, draws, starts, answers, the next step of a freed node, due work |
//! | [`policy`] | a file for each redundancy policy, groups, and their judgement |
//! | [`admin`] | initialisation, parameters, ownership, programs |
//! | [`view`] | reading |
#![cfg_attr(not(any(test, feature = "native")), no_std)]
#![deny(unsafe_code)]
// The programs are compared with the source of the interface as they are compiled, which is long.
#![allow(long_running_const_eval)]

extern crate alloc;

#[macro_use]
pub mod interface;
pub mod admin;
pub mod flow;
pub mod host;
pub mod policy;
pub mod store;
pub mod view;

pub use admin::parameters;
#[cfg(feature = "chain")]
pub use host::chain;
#[cfg(any(test, feature = "native"))]
pub use host::native;
pub use interface::{abi, among, codec, dispatch, inner, programs};
pub use store::layout;

pub use abi::{emit, IMuster, Refusal, Result};
pub use flow::network::Network;
pub use host::Host;
pub use muster_core::id;
