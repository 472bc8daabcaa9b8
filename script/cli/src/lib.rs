//! The commands behind the shells under `script/`: `muster-dev build` and `muster-dev measure` (contracts to deployable WASM), `muster-dev
//! deploy`, `muster-dev keepalive`, `muster-dev demo`, and the pages of docs/ that are written from the sources and the tests.
//!
//! The library part is there for the tests, which build and deploy the same way.

#![warn(missing_docs)]

pub mod arbwasm;
pub mod build;
pub mod chain;
mod coverage;
pub mod demo;
pub mod deploy;
pub mod environment;
pub mod estimate;
pub mod keepalive;
mod markdown;
pub mod measure;
pub mod mutants;
pub mod pages;
pub mod parameters;
pub mod proof;
pub mod refusals;
pub mod router;
mod runs;
mod settings;
pub mod storage;
pub mod table;
pub mod wasm;
