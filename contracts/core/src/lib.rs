//! The formulas of Muster and the packed words they work on.
//!
//! Knows neither the Stylus SDK nor a chain, so the contracts, the simulator and the tests all run
//! the very same functions.
//!
//! | module | what |
//! | --- | --- |
//! | [`wad`] | fixed-point arithmetic, 1e18 scale |
//! | [`qos`] | task scores, reliability factor H, Q_long, QoS (seed 000) |
//! | [`weight`] | staking score S, locality boost M, weight W, class bounds (seed 001) |
//! | [`value`] | estimated time, deadline, task value and its sortable key (seed 001) |
//! | [`bound`] | the 8-bit upper bounds the sampler's tree is made of |
//! | [`reputation`] | ratings, likelihood of correctness, group formation (seed 004) |
//! | [`adaptive`] | the gain, and the target that follows it (seed 004) |
//! | [`validation`] | how a validation group is judged |
//! | [`word`] | a storage word and the macro that packs records into it |
//! | [`record`] | every packed record, one word each |
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[macro_use]
pub mod word;
pub mod adaptive;
pub mod bound;
pub mod qos;
pub mod record;
pub mod reputation;
pub mod validation;
pub mod value;
pub mod wad;
pub mod weight;
