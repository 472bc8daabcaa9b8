//! A transaction before it is signed.

use alloy::primitives::{Address, Bytes, TxKind, U256};
use serde_json::{json, Value};

/// A transaction to send.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The recipient; by default creates a contract, whose code `input` must return.
    pub to: TxKind,
    /// The value, in wei.
    pub value: U256,
    /// The calldata.
    pub input: Bytes,
    /// The gas limit; `None` to estimate it, which also detects a refusal.
    pub gas: Option<u64>,
    /// A name for the action. A request whose name is in the journal, open or finished, is not signed again, unless the earlier
    /// transaction came to nothing. So an action begun before a crash does not happen twice.
    pub name: Option<String>,
}

impl Request {
    /// Its fields in a node's JSON-RPC.
    pub(crate) fn fields(&self, from: Address) -> Value {
        json!({ "from": from, "to": self.to, "value": self.value, "data": self.input })
    }
}
