//! The public interface as Rust types, generated from `abi/IMuster.sol` so that the two cannot drift.
#![allow(missing_docs, clippy::too_many_arguments)]

alloy_sol_types::sol!("../../abi/IMuster.sol");

/// Why a call was refused: one of the interface's errors.
pub type Refusal = IMuster::IMusterErrors;
/// What a public function gives.
pub type Result<T> = core::result::Result<T, Refusal>;

/// Builds a [`Refusal`] from an error's name and fields.
#[macro_export]
macro_rules! refusal {
    ($name:ident) => { $crate::abi::Refusal::$name($crate::abi::IMuster::$name {}) };
    ($name:ident { $($fields:tt)* }) => { $crate::abi::Refusal::$name($crate::abi::IMuster::$name { $($fields)* }) };
}

/// Leaves the function with a [`Refusal`] unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($cond:expr, $name:ident $($fields:tt)*) => {
        if !$cond { return Err($crate::refusal!($name $($fields)*)); }
    };
}
