//! Transactions and calls, the block and the rules that they run under, and their outcomes.

use std::fmt;
use std::time::Duration;

use alloy_eips::eip7702::SignedAuthorization;
use revm::primitives::{address, Address, Bytes, Log, B256, U256};

use crate::trace::{Trace, TraceRequest};

/// The sequencer's address, Arbitrum's coinbase.
pub const BATCH_POSTER: Address = address!("a4b000000000000000000073657175656e636572");

/// ArbOS versions whose rules are known here, oldest and newest.
pub const ARBOS_VERSIONS: std::ops::RangeInclusive<u64> = 32..=61;

/// The settings that differ from chain to chain.
#[derive(Clone, Debug)]
pub struct Config {
    /// EIP-155 chain id.
    pub chain_id: u64,
    /// ArbOS version, one of [`ARBOS_VERSIONS`]; 61 by default.
    pub arbos: u64,
    /// Whether ArbDebug and the `console` imports of programs exist, as on a development chain.
    pub debug: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { chain_id: 412_346, arbos: 61, debug: true }
    }
}

/// The block a transaction runs in.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockCtx<'a> {
    /// Number of the L2 block, which only ArbSys shows.
    pub l2_number: u64,
    /// Number of the L1 block the sequencer knows: the value of `block.number`.
    pub l1_number: u64,
    /// Seconds since 1970.
    pub timestamp: u64,
    /// Wei per gas.
    pub base_fee: u128,
    /// Gas limit in the header.
    pub gas_limit: u64,
    /// Coinbase, [`BATCH_POSTER`] on Arbitrum.
    pub coinbase: Address,
    /// `block.prevrandao`, 1 on Arbitrum.
    pub prevrandao: B256,
    /// Hashes of recent L2 blocks, newest last: up to 256, for ArbSys.arbBlockHash and BLOCKHASH.
    pub recent_hashes: &'a [(u64, B256)],
    /// Precompiles that are elsewhere for this call: where each is, and where it would be.
    pub moved_precompiles: &'a [(Address, Address)],
}

/// A transaction whose signature has been checked, or a call.
#[derive(Clone, Debug, Default)]
pub struct TxCtx {
    /// The sender.
    pub caller: Address,
    /// `None` creates a contract.
    pub to: Option<Address>,
    /// Wei.
    pub value: U256,
    /// Calldata or init code.
    pub data: Bytes,
    /// Gas the sender is ready to pay.
    pub gas_limit: u64,
    /// Wei per gas the sender pays: the base fee for a transaction (ArbOS gives tips back), 0 for a call.
    pub gas_price: u128,
    /// Wei per gas the sender offers: the base fee and the tip, up to the cap. Programs are told this one, EVM code what is paid.
    pub offered: u128,
    /// `None` is not checked.
    pub nonce: Option<u64>,
    /// Accounts and slots warmed beforehand (EIP-2930).
    pub access_list: Vec<(Address, Vec<B256>)>,
    /// `eth_call` and `eth_estimateGas`: senders with code are let through, the gas price may be 0.
    pub is_call: bool,
    /// `eth_estimateGas`: as much gas as a transaction's execution may take, which a call's is not held to.
    pub is_estimate: bool,
    /// Accounts that set their code (EIP-7702).
    pub authorizations: Vec<SignedAuthorization>,
    /// The recording to make in [`Outcome::trace`].
    pub trace: TraceRequest,
}

/// How execution ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// State was changed.
    Success,
    /// The top frame reverted; the output is its revert data.
    Revert,
    /// The top frame failed otherwise; all gas is gone. The reason in geth's words.
    Halt(String),
}

/// The outcome of a transaction or call.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// Return or revert data; for a creation the code.
    pub output: Bytes,
    /// Gas paid for, after refunds.
    pub gas_used: u64,
    /// Gas given back for cleared storage, already capped at a fifth.
    pub gas_refunded: u64,
    /// Events; empty unless it succeeded.
    pub logs: Vec<Log>,
    /// The contract created by a transaction without `to`.
    pub created: Option<Address>,
    /// The recording that was asked for.
    pub trace: Trace,
    /// Figures of Stylus frames, in the order in which they ended.
    pub stylus: Vec<StylusFrame>,
}

/// Figures of one run of a Stylus program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StylusFrame {
    /// The account whose code ran.
    pub program: Address,
    /// Gas charged before the first instruction: memory pages, and the program's start.
    pub start_gas: u64,
    /// Whether the start was priced as cached.
    pub cached: bool,
    /// Ink the program began with.
    pub ink_start: u64,
    /// Ink left at its end.
    pub ink_end: u64,
    /// Why it failed, where it was neither the program's own revert nor success.
    pub failure: Option<String>,
}

/// The reason why a transaction can't be part of a block. Messages are geth's, and explain the fields.
#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TxError {
    /// The nonce was used before.
    NonceTooLow { address: Address, tx: u64, state: u64 },
    /// Earlier transactions are missing.
    NonceTooHigh { address: Address, tx: u64, state: u64 },
    /// The nonce is 2^64-1, which none can follow (EIP-2681).
    NonceMax { address: Address, nonce: u64 },
    /// Value and gas together exceed the balance.
    InsufficientFunds { address: Address, have: U256, want: U256 },
    /// The gas limit doesn't cover the intrinsic cost.
    IntrinsicGas { have: u64, want: u64 },
    /// The gas limit doesn't cover the least cost of calldata (EIP-7623), where a chain owner has switched that on.
    FloorGas { have: u64, want: u64 },
    /// The price is below the base fee.
    FeeCapTooLow { address: Address, max_fee: u128, base_fee: u128 },
    /// Init code above the limit of EIP-3860.
    InitCodeTooLarge { size: usize, limit: usize },
    /// The sender has code (EIP-3607).
    SenderNotEoa { address: Address, code_hash: B256 },
    /// A cost overflows.
    Overflow,
    /// The endpoint of the chain that this one is a copy of did not give needed data.
    Unread(String),
    /// A call, an estimate or a trace ran for longer than this.
    TimedOut(Duration),
}

impl fmt::Display for TxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NonceTooLow { address, tx, state } => {
                write!(f, "nonce too low: address {address}, tx: {tx} state: {state}")
            }
            Self::NonceTooHigh { address, tx, state } => {
                write!(f, "nonce too high: address {address}, tx: {tx} state: {state}")
            }
            Self::NonceMax { address, nonce } => write!(f, "nonce has max value: address {address}, nonce: {nonce}"),
            Self::InsufficientFunds { address, have, want } => {
                write!(f, "insufficient funds for gas * price + value: address {address} have {have} want {want}")
            }
            Self::IntrinsicGas { have, want } => write!(f, "intrinsic gas too low: have {have}, want {want}"),
            Self::FloorGas { have, want } => {
                write!(f, "insufficient gas for floor data gas cost: have {have}, want {want}")
            }
            Self::FeeCapTooLow { address, max_fee, base_fee } => write!(
                f,
                "max fee per gas less than block base fee: address {address}, maxFeePerGas: {max_fee}, baseFee: {base_fee}"
            ),
            Self::InitCodeTooLarge { size, limit } => {
                write!(f, "max initcode size exceeded: code size {size} limit {limit}")
            }
            Self::SenderNotEoa { address, code_hash } => {
                write!(f, "sender not an eoa: address {address}, codehash: {code_hash}")
            }
            Self::Overflow => write!(f, "gas uint64 overflow"),
            Self::Unread(reason) => write!(f, "{reason}"),
            Self::TimedOut(limit) => write!(f, "execution aborted (timeout = {limit:?})"),
        }
    }
}

impl std::error::Error for TxError {}
