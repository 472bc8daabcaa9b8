//! Arguments and failures of the methods of every family.

use super::error::RpcError;
use crate::chain::{BlockError, CallError, SendError, TimeError};
use crate::evm::TxError;

/// Why a method failed.
pub(super) enum Failure {
    /// The transaction may become valid when the ones before it arrive.
    NonceTooHigh(RpcError),
    /// Anything else.
    Other(RpcError),
}

impl From<Failure> for RpcError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NonceTooHigh(error) | Failure::Other(error) => error,
        }
    }
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Self {
        Self::Other(error)
    }
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        let answer = RpcError::refused(&error);
        match error {
            SendError::Rejected(TxError::NonceTooHigh { .. }) => Self::NonceTooHigh(answer),
            _ => Self::Other(answer),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Other(match &error {
            CallError::Reverted(data) => RpcError::revert(data),
            CallError::Simulation { code, message } => RpcError::new(*code, message),
            CallError::Block(error) => return error.clone().into(),
            _ => RpcError::refused(&error),
        })
    }
}

impl From<BlockError> for Failure {
    fn from(error: BlockError) -> Self {
        Self::Other(match error {
            BlockError::Range | BlockError::Future => RpcError::invalid_params(error.to_string()),
            BlockError::TooManyLogs => RpcError::new(-32005, error.to_string()),
            _ => RpcError::refused(error),
        })
    }
}

impl From<TimeError> for Failure {
    fn from(error: TimeError) -> Self {
        Self::Other(RpcError::invalid_params(error.to_string()))
    }
}

/// Takes the arguments of a method in order; surplus ones are refused.
macro_rules! args {
    ($p:ident) => { $p.end()? };
    ($p:ident, $($name:ident : $kind:ident $ty:ty),+) => {
        $(let $name = $crate::rpc::failure::args!(@ $p $kind $ty);)+
        $p.end()?
    };
    (@ $p:ident req $ty:ty) => { $p.required::<$ty>()? };
    (@ $p:ident opt $ty:ty) => { $p.optional::<$ty>()? };
}
pub(super) use args;
