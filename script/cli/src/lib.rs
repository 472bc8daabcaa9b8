//! What the shells under `script/` run: `muster build` and `muster measure` (contracts to deployable WASM).
//!
//! The library part is there for the tests, which build and deploy the same way.

pub mod build;
pub mod chain;
pub mod measure;
pub mod wasm;
