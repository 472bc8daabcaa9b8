//! What is asked of the contract, and how it is read and answered: the interface, the programs behind it, and what they ask of each other.

#[macro_use]
pub mod abi;
pub mod codec;
#[macro_use]
pub mod dispatch;
pub mod among;
pub mod inner;
pub mod programs;
