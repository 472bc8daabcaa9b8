//! Calls of the contract, their decoding and their answers: the interface, the programs behind it, and the calls between them.

#[macro_use]
pub mod abi;
pub mod codec;
#[macro_use]
pub mod dispatch;
pub mod among;
pub mod inner;
pub mod programs;
