//! Storage, through a cache for each frame, and transient storage.

use std::collections::HashMap;

use revm::context::JournalTr;
use revm::primitives::B256;

use super::{failure, price, Fallible, Hook, Watch};

/// A word a frame has read or written but not yet passed on to the EVM.
struct Word {
    value: B256,
    /// The value that the EVM is known to hold.
    known: Option<B256>,
}

/// The storage cache of one frame.
#[derive(Default)]
pub(crate) struct StorageCache {
    slots: HashMap<B256, Word>,
    reads: u64,
    writes: u64,
}

impl Hook<'_, '_> {
    pub(super) fn storage_load(&mut self, key: u32, dest: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + 2 * price::PTR)?;
        let api_gas = price::EVM_API / self.host().ink_price;
        self.require_gas(price::COLD_SLOAD + price::MAX_CACHE_ACCESS + api_gas)?;
        let key = self.read_word(key)?;

        let cache = &mut self.host().cache;
        cache.reads += 1;
        let mut gas = price::cache_read_gas(cache.reads);
        let value = match cache.slots.get(&key) {
            Some(word) => word.value,
            None => {
                let acting = self.host().acting;
                let Ok(load) = self.journal().sload(acting, key.into());
                gas += api_gas + if load.is_cold { price::COLD_SLOAD } else { price::WARM_ACCESS };
                let value = B256::from(load.data);
                self.host().cache.slots.insert(key, Word { value, known: Some(value) });
                value
            }
        };
        self.buy_gas(gas)?;
        self.tell_word(key, false, price::HOSTIO + 2 * price::PTR, gas);
        self.write(dest, value.as_slice())?;
        self.tell(&[key.as_slice()], &[value.as_slice()]);
        Ok(())
    }

    /// Tells a profile the cost of a word: ink, and gas beside it.
    fn tell_word(&mut self, slot: B256, write: bool, ink: u64, gas: u64) {
        let host = self.host();
        if host.watch != Watch::Ink {
            return;
        }
        let ink = ink.saturating_add(gas.saturating_mul(host.ink_price));
        if let Some(tracer) = host.exec.as_mut().and_then(|exec| exec.tracer.as_mut()) {
            tracer.word(slot, write, ink);
        }
    }

    pub(super) fn storage_cache(&mut self, key: u32, value: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + 2 * price::PTR)?;
        self.require_gas(price::SSTORE_SENTRY + price::MAX_CACHE_ACCESS)?;
        let key = self.read_word(key)?;
        let value = self.read_word(value)?;
        self.tell(&[key.as_slice(), value.as_slice()], &[]);
        let cache = &mut self.host().cache;
        cache.writes += 1;
        let gas = price::cache_write_gas(cache.writes);
        cache.slots.entry(key).and_modify(|word| word.value = value).or_insert(Word { value, known: None });
        self.buy_gas(gas)?;
        self.tell_word(key, true, price::HOSTIO + 2 * price::PTR, gas);
        Ok(())
    }

    pub(super) fn storage_flush(&mut self, clear: bool) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + price::EVM_API)?;
        self.require_gas(price::SSTORE_SENTRY)?;
        self.tell(&[&[u8::from(clear)]], &[]);
        // One more than is left, so that spending it all is told from running out.
        let budget = self.gas_left()? + 1;

        let host = self.host();
        let mut dirty: Vec<(B256, B256)> = vec![];
        for (key, word) in &mut host.cache.slots {
            if word.known != Some(word.value) {
                dirty.push((*key, word.value));
                word.known = Some(word.value);
            }
        }
        if clear {
            host.cache.slots.clear();
        }
        if dirty.is_empty() {
            return Ok(());
        }
        if host.read_only {
            return failure("storage write in a static call");
        }
        // The map has no order of its own; refunds and traces should.
        dirty.sort_unstable();
        let acting = host.acting;
        let (mut left, mut out_of_gas) = (budget, false);
        for (key, value) in dirty {
            let Ok(stored) = self.journal().sstore(acting, key.into(), value.into());
            let (gas, refund) = sstore_gas(&stored.data, stored.is_cold);
            if gas > left {
                left = 0;
                out_of_gas = true;
                break;
            }
            left -= gas;
            self.tell_word(key, true, 0, gas);
            self.host().refund += refund;
        }
        let short = out_of_gas || left == 0;
        if short && self.exec().config.arbos < 50 {
            // The program failed without having paid.
            return failure("out of gas in a storage write");
        }
        self.buy_gas(budget - left)?;
        if short {
            return failure("out of gas in a storage write");
        }
        Ok(())
    }

    pub(super) fn transient_load(&mut self, key: u32, dest: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + 2 * price::PTR + price::EVM_API)?;
        self.buy_gas(price::WARM_ACCESS)?;
        let key = self.read_word(key)?;
        let acting = self.host().acting;
        let value = self.journal().tload(acting, key.into());
        self.tell(&[key.as_slice()], &[&value.to_be_bytes::<32>()]);
        self.write_u256(dest, value)
    }

    pub(super) fn transient_store(&mut self, key: u32, value: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + 2 * price::PTR + price::EVM_API)?;
        self.buy_gas(price::WARM_ACCESS)?;
        let key = self.read_word(key)?;
        let value = self.read_word(value)?;
        if self.host().read_only {
            return failure("transient storage write in a static call");
        }
        self.tell(&[key.as_slice(), value.as_slice()], &[]);
        let acting = self.host().acting;
        self.journal().tstore(acting, key.into(), value.into());
        Ok(())
    }
}

/// Gas and refund of a storage write (EIP-2200, 2929 and 3529).
fn sstore_gas(values: &revm::context_interface::context::SStoreResult, is_cold: bool) -> (u64, i64) {
    let (original, present, new) = (values.original_value, values.present_value, values.new_value);
    let cold = if is_cold { price::COLD_SLOAD } else { 0 };
    if present == new {
        return (cold + 100, 0);
    }
    if original == present {
        if original.is_zero() {
            return (cold + 20_000, 0);
        }
        return (cold + 2900, if new.is_zero() { 4800 } else { 0 });
    }
    let mut refund = 0;
    if !original.is_zero() {
        if present.is_zero() {
            refund -= 4800;
        } else if new.is_zero() {
            refund += 4800;
        }
    }
    if original == new {
        refund += if original.is_zero() { 19_900 } else { 2800 };
    }
    (cold + 100, refund)
}
