//! JSON-RPC errors with the codes and the wording of go-ethereum, which clients look for.

use alloy_primitives::{hex, Bytes};
use serde::Serialize;
use serde_json::Value;

/// The `error` member of a JSON-RPC answer.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// JSON-RPC code: below -32000 the protocol's own, -32000 for refusals, 3 for a revert.
    pub code: i32,
    /// The failure in words.
    pub message: String,
    /// Revert data as hex, where there is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The body is not JSON.
    pub fn parse() -> Self {
        Self::new(-32700, "parse error")
    }

    /// JSON, but no JSON-RPC 2.0 request.
    pub fn invalid_request(reason: impl Into<String>) -> Self {
        Self::new(-32600, reason)
    }

    /// No such method.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(-32601, format!("the method {method} does not exist/is not available"))
    }

    /// Parameters that do not fit the method.
    pub fn invalid_params(reason: impl Into<String>) -> Self {
        Self::new(-32602, reason)
    }

    /// A well-formed request that is refused.
    pub fn refused(reason: impl std::fmt::Display) -> Self {
        Self::new(-32000, reason.to_string())
    }

    /// A fault of the node itself.
    pub fn internal(reason: impl std::fmt::Display) -> Self {
        Self::new(-32603, reason.to_string())
    }

    /// A call that reverted. A Solidity reason string is decoded into the message, as go-ethereum does it.
    pub fn revert(data: &Bytes) -> Self {
        let message = match revert_reason(data) {
            Some(reason) => format!("execution reverted: {reason}"),
            None => "execution reverted".to_owned(),
        };
        Self { code: 3, message, data: Some(Value::String(hex::encode_prefixed(data))) }
    }
}

/// The text of `Error(string)`, or the meaning of a `Panic(uint256)`.
pub fn revert_reason(data: &[u8]) -> Option<String> {
    let (selector, body) = data.split_at_checked(4)?;
    match selector {
        [0x08, 0xc3, 0x79, 0xa0] => {
            // offset, length, bytes; the offset of a single dynamic argument is always 32.
            let length = body.get(32..64)?;
            if length[..28].iter().any(|b| *b != 0) {
                return None;
            }
            let length = u32::from_be_bytes([length[28], length[29], length[30], length[31]]) as usize;
            let text = body.get(64..)?.get(..length)?;
            Some(String::from_utf8_lossy(text).into_owned())
        }
        [0x4e, 0x48, 0x7b, 0x71] => {
            let code = body.get(..32)?;
            if code[..31].iter().any(|b| *b != 0) {
                return None;
            }
            Some(
                match code[31] {
                    0x00 => "generic panic",
                    0x01 => "assert(false)",
                    0x11 => "arithmetic underflow or overflow",
                    0x12 => "division or modulo by zero",
                    0x21 => "enum overflow",
                    0x22 => "invalid encoded storage byte array accessed",
                    0x31 => "out-of-bounds array access; popping on an empty array",
                    0x32 => "out-of-bounds access of an array or bytesN",
                    0x41 => "out of memory",
                    0x51 => "uninitialized function",
                    other => return Some(format!("unknown panic code: {other:#x}")),
                }
                .to_owned(),
            )
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::hex;

    #[test]
    fn reason_strings_and_panics_are_decoded() {
        let reason = hex!(
            "08c379a0"
            "0000000000000000000000000000000000000000000000000000000000000020"
            "0000000000000000000000000000000000000000000000000000000000000003"
            "6e6f210000000000000000000000000000000000000000000000000000000000"
        );
        assert_eq!(revert_reason(&reason).as_deref(), Some("no!"));
        let panic = hex!("4e487b710000000000000000000000000000000000000000000000000000000000000011");
        assert_eq!(revert_reason(&panic).as_deref(), Some("arithmetic underflow or overflow"));
    }

    #[test]
    fn truncated_or_foreign_data_has_no_reason() {
        let reason = hex!(
            "08c379a0"
            "0000000000000000000000000000000000000000000000000000000000000020"
            "00000000000000000000000000000000000000000000000000000000ffffffff"
        );
        for end in 0..reason.len() {
            assert_eq!(revert_reason(&reason[..end]), None);
        }
        assert_eq!(revert_reason(&reason), None);
        assert_eq!(revert_reason(&hex!("12345678")), None);
    }
}
