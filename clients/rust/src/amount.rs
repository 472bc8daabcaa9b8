//! Amounts as people write them.

use alloy::primitives::U256;

use crate::Error;

/// Reads `1.5ether`, `20 gwei` or `1000` (wei) as wei, exactly. Refuses amounts finer than a wei or too large for 256 bits.
pub fn parse_amount(text: &str) -> Result<U256, Error> {
    let bad = |why: &str| Error::Amount { text: text.into(), why: why.into() };
    let trimmed = text.trim();
    let (number, unit) = trimmed.split_at(trimmed.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(trimmed.len()));
    let decimals = match unit.to_ascii_lowercase().as_str() {
        "" | "wei" => 0,
        "gwei" => 9,
        "ether" | "eth" => 18,
        _ => return Err(bad("the unit is none of wei, gwei and ether")),
    };
    let (whole, fraction) = number.trim().split_once('.').unwrap_or((number.trim(), ""));
    let digits = |part: &str| part.bytes().all(|c| c.is_ascii_digit() || c == b'_');
    if !digits(whole) || !digits(fraction) || whole.is_empty() && fraction.is_empty() {
        return Err(bad("it is no number"));
    }
    let fraction: String = fraction.chars().filter(|c| *c != '_').collect();
    let significant = fraction.trim_end_matches('0');
    if significant.len() > decimals {
        return Err(bad("it is finer than a wei"));
    }
    let all = format!("{}{significant:0<decimals$}", whole.replace('_', ""));
    if all.is_empty() {
        return Err(bad("it is no number"));
    }
    U256::from_str_radix(&all, 10).map_err(|_| bad("it is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show_amount;

    #[test]
    fn amounts_are_exact() {
        let wei = |text| parse_amount(text).map(|wei| wei.to_string()).map_err(|error| error.to_string());
        assert_eq!(wei("1.5ether").unwrap(), "1500000000000000000");
        assert_eq!(wei("20gwei").unwrap(), "20000000000");
        assert_eq!(wei(" 0.000000001 gwei ").unwrap(), "1");
        assert_eq!(wei("1_000").unwrap(), "1000");
        assert_eq!(wei(".5 Eth").unwrap(), "500000000000000000");
        assert_eq!(wei("1.000ether").unwrap(), "1000000000000000000");
        for text in ["", "ether", "1.5", "0.0000000001gwei", "-1", "1e18", "1,5ether", "5 finney", "1.2.3ether", "_", "."] {
            assert!(wei(text).is_err(), "{text:?} was read as {:?}", wei(text));
        }
        assert!(wei(&"9".repeat(80)).unwrap_err().contains("too large"));
    }

    #[test]
    fn amounts_are_shown_whole() {
        assert_eq!(show_amount(U256::from(1u64)), "0.000000000000000001 ether");
        assert_eq!(show_amount(U256::from(1_500_000_000_000_000_000u64)), "1.5 ether");
        assert_eq!(show_amount(U256::from(100u64) * U256::from(10u64).pow(U256::from(18))), "100 ether");
        assert_eq!(show_amount(U256::ZERO), "0 ether");
    }
}
