//! Why something was refused. The words are go-ethereum's where it has any.

use alloy_primitives::{Address, Bytes, B256, U256};

use super::config::{MAX_EMPTY_BLOCKS, MAX_FEE, MAX_LOG_BYTES};
use crate::evm::TxError;

/// Why a transaction was not taken. The words are go-ethereum's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The bytes are no transaction.
    #[error("rlp: {0}")]
    Malformed(String),
    /// Blob transactions, and set-code transactions before ArbOS 40.
    #[error("transaction type not supported")]
    UnsupportedType,
    /// The signature does not recover.
    #[error("invalid sender: invalid transaction v, r, s values ({0})")]
    InvalidSignature(String),
    /// Signed for another chain.
    #[error("invalid sender: invalid chain id for signer: have {have} want {want}")]
    WrongChain {
        /// Chain id of the transaction.
        have: u64,
        /// Chain id of this chain.
        want: u64,
    },
    /// More bytes than the sequencer takes.
    #[error("oversized data")]
    Oversized,
    /// All its gas at its cap comes to more than an endpoint passes on.
    #[error("tx fee ({:.2} ether) exceeds the configured cap ({:.2} ether)", f64::from(*.0) / 1e18, f64::from(MAX_FEE) / 1e18)]
    FeeTooHigh(U256),
    /// More than a block can hold.
    #[error("exceeds block gas limit")]
    GasLimit,
    /// The tip is above the cap.
    #[error("max priority fee per gas higher than max fee per gas: address {address}, maxPriorityFeePerGas: {tip}, maxFeePerGas: {cap}")]
    TipAboveFeeCap {
        /// Sender.
        address: Address,
        /// `maxPriorityFeePerGas`, wei.
        tip: u128,
        /// `maxFeePerGas`, wei.
        cap: u128,
    },
    /// No key for the sender.
    #[error("unknown account {0}")]
    UnknownAccount(Address),
    /// A set-code transaction that sets none (EIP-7702).
    #[error("EIP-7702 transaction with empty auth list")]
    NoAuthorizations,
    /// A set-code transaction that creates a contract (EIP-7702).
    #[error("EIP-7702 transaction cannot be used to create contract")]
    SetCodeCreates,
    /// It waits already.
    #[error("already known")]
    Known,
    /// The waiting transaction with the same nonce offers more, or not enough less.
    #[error("replacement transaction underpriced")]
    Underpriced,
    /// Too many wait already.
    #[error("txpool is full")]
    PoolFull,
    /// In process only: mining is off, so there is no block to give.
    #[error("transaction {0} waits, since mining is switched off")]
    NotMined(B256),
    /// The request lacks or mixes fields.
    #[error("{0}")]
    Incomplete(String),
    /// Refused by the state.
    #[error(transparent)]
    Rejected(#[from] TxError),
}

/// Why a block or its state can't be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// No such block.
    #[error("header not found")]
    Unknown,
    /// The block was, but its state is gone.
    #[error("historical state is not kept: state of block {number} is no longer there, the oldest is that of block {oldest}")]
    StateNotKept {
        /// The block asked for.
        number: u64,
        /// The oldest whose state is there.
        oldest: u64,
    },
    /// A range of logs ends before it begins.
    #[error("invalid block range params")]
    Range,
    /// A range of logs ends after the newest block.
    #[error("block range extends beyond current head block")]
    Future,
    /// More logs than one answer may have.
    #[error("query returned more than {MAX_LOG_BYTES} bytes of logs; ask for a smaller range of blocks")]
    TooManyLogs,
}

/// Why a call was not even begun, or why an estimate could not be made.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// See [`BlockError`].
    #[error(transparent)]
    Block(#[from] BlockError),
    /// The sender could not pay, or the gas does not cover the intrinsic cost.
    #[error(transparent)]
    Rejected(#[from] TxError),
    /// The recording would be too large.
    #[error("trace too large: more than {} bytes", crate::trace::MAX_TRACE)]
    TraceTooLarge,
    /// A simulation that can't be begun or gone on with, under go-ethereum's code.
    #[error("{message}")]
    Simulation {
        /// JSON-RPC code.
        code: i32,
        /// Why.
        message: String,
    },
    /// Contradictory or unsupported overrides.
    #[error("{0}")]
    Override(String),
    /// Estimation only: it fails whatever gas it is given.
    #[error("execution reverted")]
    Reverted(Bytes),
    /// Estimation: not even the allowance is enough. Access lists: none suffices.
    #[error("{reason}")]
    Failed {
        /// In go-ethereum's words.
        reason: String,
    },
}

/// Why time did not move.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// Timestamps never go back.
    #[error("timestamp {wanted} is before the latest block's {latest}")]
    Backwards {
        /// The timestamp asked for.
        wanted: u64,
        /// That of the newest block.
        latest: u64,
    },
    /// Beyond the range of a timestamp.
    #[error("timestamp overflow")]
    Overflow,
    /// More than [`MAX_EMPTY_BLOCKS`].
    #[error("{0} blocks at once are too many, at most {MAX_EMPTY_BLOCKS} can be mined by one request")]
    TooManyBlocks(u64),
    /// Below [`super::config::MIN_INTERVAL`].
    #[error("an interval of {0} milliseconds is too short, the shortest is 10")]
    Interval(u64),
    /// The machine gives no thread to mine by the clock.
    #[error("no thread to mine by the clock")]
    NoThread,
}
