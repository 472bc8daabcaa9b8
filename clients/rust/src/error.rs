//! What can go wrong, as values.

use std::path::PathBuf;

use alloy::primitives::{Address, Bytes, B256};
use serde::Deserialize;

use crate::abi::Refusal;

/// What a node answers instead of a result.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Complaint {
    /// JSON-RPC's number of it.
    pub code: i64,
    /// In words.
    #[serde(default)]
    pub message: String,
    /// What an undone call returned, and whatever else a node adds.
    #[serde(default)]
    pub data: Option<serde_json::Value>,
}

impl Complaint {
    /// What the call that was undone returned, where that is what the node says.
    pub fn undone(&self) -> Option<Bytes> {
        // As geth has it, in an object as some have it, or in words as others do.
        let text = match &self.data {
            Some(serde_json::Value::String(text)) => Some(text.as_str()),
            Some(serde_json::Value::Object(fields)) => fields.get("data").and_then(|data| data.as_str()),
            _ => None,
        };
        let data = text.and_then(|text| text.rsplit(' ').next().unwrap_or(text).parse().ok());
        data.or_else(|| (self.code == 3 || self.message.contains("execution reverted")).then(Bytes::new))
    }
}

/// What can go wrong. No URL is in it but by host, and no key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The contract refuses the call; nothing was sent.
    #[error("refused: {0}")]
    Refused(Box<Refusal>),
    /// The transaction was mined and undone; its gas is paid.
    #[error("transaction {hash} was undone{}: {refusal}", if *.exhausted { " once it had used all its gas" } else { "" })]
    Undone {
        /// The transaction's.
        hash: B256,
        /// Whether it used all the gas that it was given, which then was too little as a rule.
        exhausted: bool,
        /// What the contract says to the same call in that block.
        refusal: Box<Refusal>,
    },
    /// The node's complaint about a request.
    #[error("the node says: {} ({})", .0.message, .0.code)]
    Node(Complaint),
    /// None of the nodes has answered; what was wrong with each.
    #[error("no node answers: {0}")]
    Unreachable(String),
    /// Nodes contradict each other, and no majority is on one side.
    #[error("the nodes contradict each other about {0}")]
    Disagreement(String),
    /// What a node answered is not what was asked for.
    #[error("cannot read the answer to {what}: {why}")]
    Answer {
        /// The call, or the method.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The nodes are of another chain than the one that is meant.
    #[error("this is chain {found}, not {expected}")]
    WrongChain {
        /// The one that is meant.
        expected: u64,
        /// The nodes'.
        found: u64,
    },
    /// There is no contract at the address.
    #[error("there is no contract at {0}")]
    NoContract(Address),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another process uses the directory.
    #[error("{path} is in use by another process")]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// A key could not be had. The text says nothing of the key or its password.
    #[error("{0}")]
    Key(String),
    /// An amount that cannot be read.
    #[error("{text:?} is no amount: {why} (write 1.5ether, 20gwei, or wei)")]
    Amount {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// A URL that cannot be used.
    #[error("not a URL of a node: {0}")]
    Url(String),
    /// An address at which nothing can be served, as another program serves there.
    #[error("{0}")]
    Serve(String),
    /// As many transactions are open as may be.
    #[error("{0} transactions are open, and no more may be")]
    TooManyOpen(usize),
    /// The chain's base fee is above the most that may be paid.
    #[error("the base fee is {base} wei, above the ceiling of {ceiling}")]
    FeeCeiling {
        /// The chain's, in wei.
        base: u128,
        /// The most that may be paid, in wei.
        ceiling: u128,
    },
    /// No node takes the transaction, and nothing sends it again; what they said about it.
    #[error("no node takes the transaction: {0}")]
    NotTaken(String),
    /// The transaction has not been mined in the time that was given to it. It stays on the disk and is sent again.
    #[error("transaction {nonce} has not been mined yet{}", .trouble.as_ref().map(|t| format!(": {t}")).unwrap_or_default())]
    NotMined {
        /// Its number in the account's order.
        nonce: u64,
        /// What nodes said about it last.
        trouble: Option<String>,
    },
    /// Another transaction of the same account has taken the number: something else uses the key.
    #[error("another transaction has taken number {nonce} of the account: something else uses its key")]
    Displaced {
        /// The number in the account's order.
        nonce: u64,
    },
    /// There is no transaction of this number on the disk.
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

    /// Whether the same may succeed in a while although nothing is done about it: nodes away, behind, or busy.
    pub fn passes(&self) -> bool {
        matches!(self, Error::Unreachable(_) | Error::Disagreement(_) | Error::NotMined { .. } | Error::FeeCeiling { .. })
    }
}
