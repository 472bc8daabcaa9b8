//! An answer as it is committed to and revealed.

use alloy_primitives::{keccak256, B256};
use alloy_sol_types::SolValue;
use muster_protocol::IMuster::revealCall;

/// The commitment of a node that answers so.
pub(crate) fn commitment(id: u64, node: u32, answer: u8) -> B256 {
    keccak256((id, node, 0u16, B256::repeat_byte(answer), B256::repeat_byte(7)).abi_encode_params())
}

/// The reveal of it.
pub(crate) fn revealing(id: u64, group: u32, node: u32, answer: u8) -> revealCall {
    revealCall { id, group, node, kind: 0, value: B256::repeat_byte(answer), salt: B256::repeat_byte(7) }
}
