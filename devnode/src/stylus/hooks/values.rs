//! Accounts, block, transaction, arithmetic on words, and the console.

use std::fmt;

use revm::context::JournalTr;
use revm::primitives::{keccak256, Address, Bytes, U256};

use super::{price, Fallible, Hook};
use crate::trace::Watch;

impl Hook<'_, '_> {
    // Accounts

    /// Loads an account with its code and returns the gas for touching it.
    fn touch(&mut self, address: Address) -> u64 {
        let Ok(account) = self.journal().load_account_with_code(address);
        if account.is_cold {
            price::COLD_ACCOUNT
        } else {
            price::WARM_ACCESS
        }
    }

    pub(super) fn account_balance(&mut self, address: u32, dest: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + 2 * price::PTR + price::EVM_API)?;
        self.require_gas(price::COLD_ACCOUNT)?;
        let address = self.read_address(address)?;
        let gas = self.touch(address);
        let Ok(account) = self.journal().load_account(address);
        let balance = account.data.info.balance;
        self.buy_gas(gas)?;
        self.tell(&[address.as_slice()], &[&balance.to_be_bytes::<32>()]);
        self.write_u256(dest, balance)
    }

    pub(super) fn account_codehash(&mut self, address: u32, dest: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + 2 * price::PTR + price::EVM_API)?;
        self.require_gas(price::COLD_ACCOUNT)?;
        let address = self.read_address(address)?;
        let gas = self.touch(address);
        let Ok(hash) = self.journal().code_hash(address);
        self.buy_gas(gas)?;
        self.tell(&[address.as_slice()], &[hash.data.as_slice()]);
        self.write(dest, hash.data.as_slice())
    }

    /// An account's code, paid for unless it is the one asked for last.
    fn code(&mut self, address: u32) -> Fallible<(Address, Bytes)> {
        self.buy_ink(price::HOSTIO + price::EVM_API)?;
        self.require_gas(price::COLD_ACCOUNT)?;
        let address = self.read_address(address)?;
        if let Some((last, code)) = &self.host().last_code {
            if *last == address {
                return Ok((address, code.clone()));
            }
        }
        let gas = price::EXT_CODE + self.touch(address);
        let Ok(code) = self.journal().code(address);
        self.buy_gas(gas)?;
        if !code.data.is_empty() || self.exec().config.arbos < 40 {
            self.host().last_code = Some((address, code.data.clone()));
        }
        Ok((address, code.data))
    }

    pub(super) fn account_code(&mut self, address: u32, offset: u32, size: u32, dest: u32) -> Fallible<u32> {
        let (address, code) = self.code(address)?;
        self.buy_ink(price::write_ink(code.len() as u32))?;
        let rest = code.get(offset as usize..).unwrap_or_default();
        let part = &rest[..rest.len().min(size as usize)];
        self.write(dest, part)?;
        self.tell(&[address.as_slice(), &offset.to_be_bytes(), &size.to_be_bytes()], &[part]);
        Ok(part.len() as u32)
    }

    pub(super) fn account_code_size(&mut self, address: u32) -> Fallible<u32> {
        let (address, code) = self.code(address)?;
        let len = code.len() as u32;
        self.tell(&[address.as_slice()], &[&len.to_be_bytes()]);
        Ok(len)
    }

    // Block and transaction

    pub(super) fn write_address(&mut self, dest: u32, value: fn(&mut Self) -> Address) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + price::PTR)?;
        let value = value(self);
        self.tell(&[], &[value.as_slice()]);
        self.write(dest, value.as_slice())
    }

    pub(super) fn write_number(&mut self, dest: u32, value: fn(&mut Self) -> U256) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + price::PTR)?;
        let value = value(self);
        self.tell(&[], &[&value.to_be_bytes::<32>()]);
        self.write_u256(dest, value)
    }

    pub(super) fn number<T: Number>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Fallible<T> {
        self.buy_ink(price::HOSTIO)?;
        let value = value(self);
        self.tell_number(value);
        Ok(value)
    }

    pub(super) fn tell_number(&mut self, value: impl Number) {
        if self.0.data().watch == Watch::All {
            self.tell(&[], &[&value.bytes()]);
        }
    }

    /// Writes the result of arithmetic on words over the first of them.
    fn write_computed<const N: usize>(&mut self, dest: u32, words: [U256; N], value: U256) -> Fallible<()> {
        if self.0.data().watch == Watch::All {
            let words: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes::<32>()).collect();
            self.tell(&[&words], &[&value.to_be_bytes::<32>()]);
        }
        self.write_u256(dest, value)
    }

    // Arithmetic

    pub(super) fn math_div(&mut self, value: u32, divisor: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + 3 * price::PTR + price::DIV)?;
        let (a, b) = (self.read_u256(value)?, self.read_u256(divisor)?);
        self.write_computed(value, [a, b], a.checked_div(b).unwrap_or_default())
    }

    pub(super) fn math_mod(&mut self, value: u32, modulus: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + 3 * price::PTR + price::DIV)?;
        let (a, b) = (self.read_u256(value)?, self.read_u256(modulus)?);
        self.write_computed(value, [a, b], a.checked_rem(b).unwrap_or_default())
    }

    pub(super) fn math_pow(&mut self, value: u32, exponent: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + 3 * price::PTR)?;
        let a = self.read_u256(value)?;
        let exponent: [u8; 32] = self.read_fixed(exponent)?;
        self.buy_ink(price::pow_ink(&exponent))?;
        let b = U256::from_be_bytes(exponent);
        self.write_computed(value, [a, b], a.wrapping_pow(b))
    }

    pub(super) fn math_add_mod(&mut self, value: u32, addend: u32, modulus: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + 4 * price::PTR + price::ADD_MOD)?;
        let (a, b, c) = (self.read_u256(value)?, self.read_u256(addend)?, self.read_u256(modulus)?);
        self.write_computed(value, [a, b, c], a.add_mod(b, c))
    }

    pub(super) fn math_mul_mod(&mut self, value: u32, multiplier: u32, modulus: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + 4 * price::PTR + price::MUL_MOD)?;
        let (a, b, c) = (self.read_u256(value)?, self.read_u256(multiplier)?, self.read_u256(modulus)?);
        self.write_computed(value, [a, b, c], a.mul_mod(b, c))
    }

    pub(super) fn native_keccak256(&mut self, ptr: u32, len: u32, dest: u32) -> Fallible<()> {
        self.buy_ink(price::keccak_ink(len))?;
        let preimage = self.read(ptr, len)?;
        let digest = keccak256(&preimage);
        self.tell(&[&preimage], &[digest.as_slice()]);
        self.write(dest, digest.as_slice())
    }

    pub(super) fn say(&mut self, text: impl fmt::Display) {
        let text = text.to_string();
        eprintln!("Stylus says: {text}");
        self.tell(&[text.as_bytes()], &[]);
    }
}

/// A type that a host function may return.
pub(super) trait Number: Copy {
    /// As a trace shows it.
    fn bytes(self) -> Vec<u8>;
}

impl Number for u32 {
    fn bytes(self) -> Vec<u8> {
        self.to_be_bytes().to_vec()
    }
}

impl Number for u64 {
    fn bytes(self) -> Vec<u8> {
        self.to_be_bytes().to_vec()
    }
}
