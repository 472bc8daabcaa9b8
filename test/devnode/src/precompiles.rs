//! Precompiles.
