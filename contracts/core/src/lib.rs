//! The formulas of Muster, free of any chain, SDK or I/O: what the contracts run is what the simulator runs.
#![no_std]

pub mod reputation;
pub mod wad;
