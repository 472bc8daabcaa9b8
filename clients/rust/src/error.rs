//! Errors, as values.

use std::path::PathBuf;

use alloy::primitives::{Address, Bytes, B256, U256};
use serde::Deserialize;

use crate::abi::Refusal;
use crate::shown::show_amount;

/// A node's error in place of a result.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Complaint {
    /// Its JSON-RPC code.
    pub code: i64,
    /// Its message.
    #[serde(default)]
    pub message: String,
    /// The return data of a reverted call, or other data of the node.
    #[serde(default)]
    pub data: Option<serde_json::Value>,
}

impl Complaint {
    /// The return data of the reverted call, where the node includes them.
    pub fn undone(&self) -> Option<Bytes> {
        // geth sends a string, some nodes an object, others a sentence that ends with the data.
        let text = match &self.data {
            Some(serde_json::Value::String(text)) => Some(text.as_str()),
            Some(serde_json::Value::Object(fields)) => fields.get("data").and_then(|data| data.as_str()),
            _ => None,
        };
        let data = text.and_then(|text| text.rsplit(' ').next().unwrap_or(text).parse().ok());
        data.or_else(|| (self.code == 3 || self.message.contains("execution reverted")).then(Bytes::new))
    }
}

/// All errors of this library. URLs appear by host only, and keys never.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The contract refuses the call; nothing was sent.
    #[error("refused: {0}")]
    Refused(Box<Refusal>),
    /// The transaction was mined and reverted; its gas is paid.
    #[error("transaction {hash} was undone{}: {refusal}", if *.exhausted { " once it had used all its gas" } else { "" })]
    Undone {
        /// The transaction's hash.
        hash: B256,
        /// Whether it used all of its gas, which usually means that the limit was too low.
        exhausted: bool,
        /// The contract's answer to the same call in that block.
        refusal: Box<Refusal>,
    },
    /// The node's complaint about a request.
    #[error("the node says: {} ({})", .0.message, .0.code)]
    Node(Complaint),
    /// No node answered; the text gives each node's failure.
    #[error("no node answers: {0}")]
    Unreachable(String),
    /// Nodes contradict each other, and no majority is on one side.
    #[error("the nodes contradict each other about {0}")]
    Disagreement(String),
    /// A node's answer cannot be read as an answer to the request.
    #[error("cannot read the answer to {what}: {why}")]
    Answer {
        /// The call, or the method.
        what: String,
        /// The reason.
        why: String,
    },
    /// The nodes are of another chain than expected.
    #[error("this is chain {found}, not {expected}")]
    WrongChain {
        /// The expected chain.
        expected: u64,
        /// The nodes' chain.
        found: u64,
    },
    /// There is no contract at the address.
    #[error("there is no contract at {0}")]
    NoContract(Address),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Another process uses the directory.
    #[error("{path} is in use by another process")]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// A key could not be obtained. The text reveals nothing of the key or its password.
    #[error("{0}")]
    Key(String),
    /// An amount that cannot be read.
    #[error("{text:?} is no amount: {why} (write 1.5ether, 20gwei, or wei)")]
    Amount {
        /// The given text.
        text: String,
        /// The reason.
        why: String,
    },
    /// An address that cannot be read, or whose checksum is wrong.
    #[error("{text:?} is no address: {why}")]
    Address {
        /// The given text.
        text: String,
        /// The reason.
        why: String,
    },
    /// A URL that cannot be used.
    #[error("not a URL of a node: {0}")]
    Url(String),
    /// The address to serve at is taken by another program.
    #[error("{0}")]
    Serve(String),
    /// The limit of open transactions is reached.
    #[error("{0} transactions are open, and no more may be")]
    TooManyOpen(usize),
    /// The chain's base fee is above the configured ceiling.
    #[error("the base fee is {base} wei, above the ceiling of {ceiling}")]
    FeeCeiling {
        /// The chain's base fee, in wei.
        base: u128,
        /// The ceiling, in wei.
        ceiling: u128,
    },
    /// The account cannot pay the transaction at the present base fee: nothing is signed.
    #[error(
        "insufficient funds: the account has {}, and {gas} gas at the base fee of {base} wei cost {}{}",
        show_amount(*.balance),
        show_amount(U256::from(*.gas) * U256::from(*.base)),
        if .value.is_zero() { String::new() } else { format!(" beside the value of {}", show_amount(*.value)) },
    )]
    Unpayable {
        /// The account's balance, in wei.
        balance: U256,
        /// The transaction's value, in wei.
        value: U256,
        /// Its gas limit.
        gas: u64,
        /// The chain's base fee, in wei.
        base: u128,
    },
    /// No node takes the transaction, and it is not sent again; the text gives the nodes' messages.
    #[error("no node takes the transaction: {0}")]
    NotTaken(String),
    /// The transaction was not mined in the given time. It stays on the disk and is sent again.
    #[error("transaction {nonce} has not been mined yet{}", .trouble.as_ref().map(|t| format!(": {t}")).unwrap_or_default())]
    NotMined {
        /// Its nonce.
        nonce: u64,
        /// The last complaint of a node about it.
        trouble: Option<String>,
    },
    /// Another transaction of the same account has used the nonce: something else uses the key.
    #[error("another transaction has taken number {nonce} of the account: something else uses its key")]
    Displaced {
        /// The nonce.
        nonce: u64,
    },
    /// There is no transaction of this nonce on the disk.
    #[error("no transaction of number {0} is known")]
    UnknownTransaction(u64),
}

impl Error {
    /// A node's complaint about a call that was undone, as the refusal that it is.
    pub(crate) fn refusal_in(self) -> Self {
        match self {
            Self::Node(complaint) => match complaint.undone() {
                Some(data) => Self::Refused(Box::new(Refusal::decode(&data))),
                None => Self::Node(complaint),
            },
            other => other,
        }
    }

    /// The refusal, if it is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Error::Refused(refusal) | Error::Undone { refusal, .. } => Some(refusal),
            _ => None,
        }
    }

    /// Whether a retry may succeed later without a change: nodes are away, behind, or busy.
    pub fn passes(&self) -> bool {
        matches!(self, Error::Unreachable(_) | Error::Disagreement(_) | Error::NotMined { .. } | Error::FeeCeiling { .. })
    }
}
