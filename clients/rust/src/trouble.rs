//! A store's answer: bytes, or the reason why not.

use std::pin::Pin;

use alloy::primitives::bytes::Bytes;
use futures_util::stream::Stream;

/// The reason why a store did not return or accept an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// The store answers, and has no such object.
    #[error("missing")]
    Missing,
    /// The store does not answer, or not with an object; a later try may succeed.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// Its object does not match.
    #[error("corrupt: {0}")]
    Corrupt(String),
    /// Longer than the limit.
    #[error("longer than {0} bytes")]
    TooLong(usize),
    /// The store is read-only, or refuses the write.
    #[error("takes nothing: {0}")]
    ReadOnly(String),
    /// The bytes cannot be written here.
    #[error("cannot be written here: {0}")]
    Unwritten(String),
}

/// An object's bytes as they come.
pub(crate) type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, Trouble>> + Send>>;
