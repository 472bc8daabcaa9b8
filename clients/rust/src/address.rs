//! Addresses as people write them.

use alloy::primitives::Address;

use crate::Error;

/// Reads an address. Letters of both cases are a checksum (EIP-55), which must be right; letters of one case are none.
///
/// # Errors
/// [`Error::Address`].
pub fn parse_address(text: &str) -> Result<Address, Error> {
    let bad = |why: &str| Error::Address { text: text.into(), why: why.into() };
    let address: Address = text.parse().map_err(|_| bad("it is not 20 bytes in hexadecimal"))?;
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let has = |is: fn(&u8) -> bool| digits.as_bytes().iter().any(is);
    if has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase) && address.to_checksum(None)[2..] != *digits {
        return Err(bad("its checksum is wrong"));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_a_checksum_has_the_right_one() {
        // Of EIP-55.
        let right = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
        let (lower, upper) = (right.to_lowercase(), format!("0x{}", right[2..].to_uppercase()));
        for text in [right, &right[2..], &lower, &upper] {
            assert_eq!(parse_address(text).unwrap().to_string(), right);
        }
        for (text, why) in [
            ("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD", "its checksum is wrong"),
            ("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAef", "its checksum is wrong"),
            ("5aaeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "its checksum is wrong"),
            ("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeA", "it is not 20 bytes"),
            ("", "it is not 20 bytes"),
        ] {
            assert!(parse_address(text).unwrap_err().to_string().contains(why), "{text}");
        }
    }
}
