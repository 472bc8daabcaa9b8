//! The simulator: workloads, a clock, statistics and pictures around the formulas of `muster-core`.
//!
//! - [`random`] seeded streams of random numbers, the same on every machine
//! - [`population`] how reliable workers are
//! - [`rounds`] workers, groups and votes in rounds
//! - [`bound`] the lower bound of the likelihood of correctness, as the paper has it
//! - [`plan`] groups and targets computed from the ratings
//! - [`jobs`] many runs on all processors, with progress
//! - [`statistics`] means and confidence intervals
//! - [`numbers`] numbers as pages and pictures show them
//! - [`chart`] pictures
//! - [`trace`] traces of requests and of GPU nodes, and [`gpu`] which GPU a name means: a crate of its own, as the demonstration
//!   needs nothing else
//! - [`network`] a whole network on the contract's own code, event by event
//! - [`capacity`] how far it carries, and the page about it
//! - [`attacks`] what attacks on validation come to, and the page about it
//! - [`rated`] groups chosen by ratings on the contract's own code, and the page about them
//! - [`paper`] the experiments of the paper behind `muster_core::reputation`, and the page about them
//!
//! Results do not depend on the number of threads, nor on the machine: decisions are made in integers, and statistics
//! use only the operations that IEEE 754 rounds exactly.

pub use muster_trace::{self as trace, gpu};

pub mod attacks;
pub mod bound;
pub mod capacity;
pub mod chart;
pub mod grouping;
pub mod jobs;
pub mod network;
pub mod numbers;
pub mod paper;
pub mod plan;
pub mod population;
pub mod random;
pub mod rated;
pub mod rounds;
pub mod statistics;
