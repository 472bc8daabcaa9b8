//! What comes from a store: bytes, or why not.

use std::pin::Pin;

use alloy::primitives::bytes::Bytes;
use futures_util::stream::Stream;

/// Why a store did not give an object, or did not take one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// The store answers, and has no such object.
    #[error("missing")]
    Missing,
    /// The store does not answer, or not with an object; another time it may.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// What it has is something else than what was asked for.
    #[error("corrupt: {0}")]
    Corrupt(String),
    /// Longer than what is read or written.
    #[error("longer than {0} bytes")]
    TooLong(usize),
    /// It is only read from, or refuses what is written.
    #[error("takes nothing: {0}")]
    ReadOnly(String),
    /// What it gives cannot be written here.
    #[error("cannot be written here: {0}")]
    Unwritten(String),
}

/// An object's bytes as they come.
pub(crate) type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, Trouble>> + Send>>;
