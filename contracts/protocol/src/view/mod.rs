//! Reading.

pub mod lens;
