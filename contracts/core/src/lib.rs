//! The formulas of Muster and the packed words they work on.
//!
//! Knows neither the Stylus SDK nor a chain, so the contracts, the simulator and the tests all run
//! the very same functions.
//!
//! | module | what |
//! | --- | --- |
//! | [`wad`] | fixed-point arithmetic, 1e18 scale |
//! | [`qos`] | task scores, reliability factor H, Q_long, QoS (the QoS document) |
//! | [`weight`] | staking score S, locality boost M, weight W, class bounds (the dispatch document) |
//! | [`value`] | estimated time, deadline, task value and its sortable key (the dispatch document) |
//! | [`bound`] | the 8-bit upper bounds the sampler's tree is made of |
//! | [`reputation`] | ratings, likelihood of correctness, group formation (the paper) |
//! | [`adaptive`] | the gain, and the target that follows it (the paper) |
//! | [`validation`] | how a validation group is judged |
//! | [`word`] | a storage word and the macro that packs records into it |
//! | [`record`] | every packed record, one word each |
//! | [`id`] | the types of the numbers of nodes, tasks, models, GPU groups and tickets |
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[macro_use]
pub mod word;
pub mod adaptive;
pub mod bound;
pub mod id;
pub mod qos;
mod records;
pub mod reputation;
pub mod validation;
pub mod value;
pub mod wad;
pub mod weight;

/// Every packed record, one storage word each. `abi/MusterStorage.sol` declares them to Solidity.
///
/// Stakes are in stake units (a whole number of wei fixed at initialisation), fees and credits in wei, times in seconds since
/// 1970 unless said otherwise.
pub mod record {
    pub use crate::records::*;
}
