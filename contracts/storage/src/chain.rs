//! The Stylus host, and how a program answers a call.

use crate::abi::{IMuster, Result};
use crate::host::Host;
use alloc::vec::Vec;
use alloy_primitives::{address, Address as Account, B256, U256};
use alloy_sol_types::{SolCall, SolInterface};
use muster_core::word::{Address, Word};
use stylus_sdk::call::{transfer::transfer_eth, RawCall};
use stylus_sdk::host::VM;
use stylus_sdk::stylus_core::host::*;
use stylus_sdk::ArbResult;

/// Arbitrum's system precompile.
const ARB_SYS: Account = address!("0000000000000000000000000000000000000064");
/// `arbBlockNumber()`
const BLOCK_NUMBER: [u8; 4] = [0xa3, 0xb1, 0xb3, 0x1d];
/// `arbBlockHash(uint256)`
const BLOCK_HASH: [u8; 4] = [0x2b, 0x40, 0x7a, 0x82];

/// The chain a program runs on.
pub struct Chain {
    vm: VM,
}

impl Host for Chain {
    #[inline]
    fn load(&self, slot: Word) -> Word {
        Word::from_be_bytes(self.vm.storage_load_bytes32(U256::from_limbs(slot.0)).0)
    }

    #[inline]
    #[allow(unsafe_code)]
    fn store(&mut self, slot: Word, word: Word) {
        // SAFETY: the SDK's typed storage, whose caching this could upset, is not used by any program.
        unsafe { self.vm.storage_cache_bytes32(U256::from_limbs(slot.0), B256::from(word.to_be_bytes())) }
    }

    fn mapping(&self, map: u8, key: Word) -> Word {
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(&key.to_be_bytes());
        bytes[63] = map;
        Word::from_be_bytes(self.keccak(&bytes))
    }

    #[inline]
    fn keccak(&self, bytes: &[u8]) -> [u8; 32] {
        self.vm.native_keccak256(bytes).0
    }

    fn sender(&self) -> Address {
        self.vm.msg_sender().into_array()
    }

    fn value(&self) -> U256 {
        self.vm.msg_value()
    }

    fn now(&self) -> u64 {
        self.vm.block_timestamp()
    }

    fn block(&self) -> u64 {
        self.ask_arb_sys(&BLOCK_NUMBER).map_or(0, |w| w.0[0])
    }

    fn block_hash(&self, number: u64) -> Option<[u8; 32]> {
        let mut call = [0; 36];
        call[..4].copy_from_slice(&BLOCK_HASH);
        call[28..].copy_from_slice(&number.to_be_bytes());
        self.ask_arb_sys(&call).map(|w| w.to_be_bytes())
    }

    fn log(&mut self, topics: &[B256], data: &[u8]) {
        // At most four topics, by the types of the events.
        let _ = self.vm.raw_log(topics, data);
    }
}

impl Chain {
    /// The chain behind a program's entrypoint.
    pub fn new(vm: VM) -> Chain {
        Chain { vm }
    }

    #[allow(unsafe_code)]
    fn ask_arb_sys(&self, call: &[u8]) -> Option<Word> {
        // SAFETY: a static call to a precompile, which reads no storage of ours.
        let out = unsafe { RawCall::new_static(&self.vm).limit_return_data(0, 32).call(ARB_SYS, call) }.ok()?;
        Some(Word::from_be_bytes(out.try_into().ok()?))
    }

    /// Refuses value.
    pub fn no_value(&self) -> Result<()> {
        let value = self.vm.msg_value();
        ensure!(value.is_zero(), ValueNotAccepted { value });
        Ok(())
    }

    /// Sends wei with all gas; called last, after everything is written.
    pub fn send(&mut self, to: Address, wei: u128) -> Result<()> {
        let (to, amount) = (Account::from(to), U256::from(wei));
        transfer_eth(&self.vm, to, amount).map_err(|_| refusal!(TransferFailed { to, amount }))
    }
}

/// A call's arguments, decoded strictly.
pub fn arguments<C: SolCall>(data: &[u8]) -> Result<C> {
    C::abi_decode_raw_validate(data).map_err(|_| refusal!(MalformedCalldata { selector: C::SELECTOR.into() }))
}

/// Runs a program: `route` answers the calls it knows with their encoded results.
pub fn run(
    input: Vec<u8>,
    vm: VM,
    route: impl FnOnce(&mut Chain, [u8; 4], &[u8]) -> Result<Option<Vec<u8>>>,
) -> ArbResult {
    let mut chain = Chain::new(vm);
    let answer = match input.split_first_chunk::<4>() {
        Some((&selector, data)) => route(&mut chain, selector, data)
            .and_then(|out| out.ok_or(refusal!(UnknownFunction { selector: selector.into() }))),
        None => Err(refusal!(MalformedCalldata { selector: [0; 4].into() })),
    };
    answer.map_err(|refusal: IMuster::IMusterErrors| refusal.abi_encode())
}
