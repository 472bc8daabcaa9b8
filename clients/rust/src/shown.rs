//! Amounts as people read them.

use alloy::primitives::ruint::UintTryFrom;
use alloy::primitives::utils::format_ether;
use alloy::primitives::U256;

/// Wei as ether, without zeros at the end.
pub fn show_amount<T>(wei: T) -> String
where
    U256: UintTryFrom<T>,
{
    let text = format_ether(U256::from(wei));
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{} ether", if text.is_empty() { "0" } else { text })
}
