//! WASM programs.

pub(crate) mod cache;
pub(crate) mod recent;
