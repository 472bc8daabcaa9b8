//! A transaction before it is signed.

use alloy::primitives::{Address, Bytes, TxKind, U256};
use serde_json::{json, Value};

/// What is to be sent.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The recipient; by default it creates a contract, whose code `input` is to return.
    pub to: TxKind,
    /// With how many wei.
    pub value: U256,
    /// With what calldata.
    pub input: Bytes,
    /// With how much gas at most; none to estimate it, which also tells whether it would be refused.
    pub gas: Option<u64>,
    /// A name for what it does. A request whose name is in the journal, open or remembered, is not signed again unless
    /// nothing has come of it: what was begun before a crash is not begun twice.
    pub name: Option<String>,
}

impl Request {
    /// As nodes are asked about it.
    pub(crate) fn fields(&self, from: Address) -> Value {
        json!({ "from": from, "to": self.to, "value": self.value, "data": self.input })
    }
}
