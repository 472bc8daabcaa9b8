//! The Stylus host, and how a program answers a call.

use crate::abi::{IMuster, Refusal, Result};
use crate::host::Host;
use alloc::vec::Vec;
use alloy_primitives::{address, Address as Account, B256, KECCAK256_EMPTY, U256};
use alloy_sol_types::SolCall;
use core::cell::Cell;
use muster_core::word::{Address, Word};
use stylus_sdk::call::{transfer::transfer_eth, RawCall};
use stylus_sdk::host::VM;
use stylus_sdk::stylus_core::host::*;
use stylus_sdk::ArbResult;

/// Arbitrum's system precompile.
const ARB_SYS: Account = address!("0000000000000000000000000000000000000064");
/// Keeps the hashes of the last [`crate::host::HISTORY`] blocks (EIP-2935, from ArbOS 40 on).
const HISTORY_STORAGE: Account = address!("0000f90827f1c53a10cb7a02335b175320002935");
/// `arbBlockNumber()`
const BLOCK_NUMBER: [u8; 4] = [0xa3, 0xb1, 0xb3, 0x1d];
/// `arbBlockHash(uint256)`
const BLOCK_HASH: [u8; 4] = [0x2b, 0x40, 0x7a, 0x82];

/// The chain a program runs on.
pub struct Chain {
    vm: VM,
    reads: Cell<u32>,
}

impl Host for Chain {
    // Called from everywhere: a call is a fraction of a gas, its body again and again is code to deploy.
    #[inline(never)]
    fn load(&self, slot: Word) -> Word {
        self.reads.set(self.reads.get() + 1);
        Word::from_be_bytes(self.vm.storage_load_bytes32(U256::from_limbs(slot.0)).0)
    }

    #[inline(never)]
    #[allow(unsafe_code)]
    fn store(&mut self, slot: Word, word: Word) {
        // SAFETY: the SDK's typed storage, whose caching this could upset, is not used by any program.
        unsafe { self.vm.storage_cache_bytes32(U256::from_limbs(slot.0), B256::from(word.to_be_bytes())) }
    }

    #[inline(never)]
    fn mapping(&self, map: u8, key: Word) -> Word {
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(&key.to_be_bytes());
        bytes[63] = map;
        Word::from_be_bytes(self.keccak(&bytes))
    }

    #[inline(never)]
    fn keccak(&self, bytes: &[u8]) -> [u8; 32] {
        self.vm.native_keccak256(bytes).0
    }

    fn sender(&self) -> Address {
        self.vm.msg_sender().into_array()
    }

    fn value(&self) -> Word {
        Word(self.vm.msg_value().into_limbs())
    }

    fn now(&self) -> u64 {
        self.vm.block_timestamp()
    }

    fn block(&self) -> u64 {
        self.ask(ARB_SYS, &BLOCK_NUMBER).map_or(0, |w| w.0[0])
    }

    #[inline(never)]
    fn block_hash(&self, number: u64) -> Option<[u8; 32]> {
        let mut call = [0; 36];
        call[..4].copy_from_slice(&BLOCK_HASH);
        call[28..].copy_from_slice(&number.to_be_bytes());
        // The precompile knows 256 blocks and reverts for older ones; a place that the contract has not filled yet is zero.
        self.ask(ARB_SYS, &call)
            .or_else(|| self.ask(HISTORY_STORAGE, &call[4..]).filter(|w| !w.is_zero()))
            .map(|w| w.to_be_bytes())
    }

    #[inline(never)]
    fn log(&mut self, topics: &[B256], data: &[u8]) {
        // At most four topics, by the types of the events.
        let _ = self.vm.raw_log(topics, data);
    }

    fn reads(&self) -> u32 {
        self.reads.get()
    }

    #[inline(never)]
    fn has_code(&self, at: Address) -> bool {
        has_code(&self.vm, at.into())
    }
}

impl Chain {
    /// The chain behind a program's entrypoint.
    pub fn new(vm: VM) -> Chain {
        Chain { vm, reads: Cell::new(0) }
    }

    #[allow(unsafe_code)]
    fn ask(&self, whom: Account, call: &[u8]) -> Option<Word> {
        // SAFETY: a static call to a contract of the chain's own, which reads no storage of ours.
        let out = unsafe { RawCall::new_static(&self.vm).limit_return_data(0, 32).call(whom, call) }.ok()?;
        Some(Word::from_be_bytes(out.try_into().ok()?))
    }

    /// Refuses value.
    pub fn no_value(&self) -> Result<()> {
        let value = self.value();
        ensure!(value.is_zero(), ValueNotAccepted(value));
        Ok(())
    }

    /// Sends wei with all gas; called last, after everything is written.
    pub fn send(&mut self, to: Address, wei: u128) -> Result<()> {
        let (to, amount) = (Account::from(to), U256::from(wei));
        transfer_eth(&self.vm, to, amount).map_err(|_| refusal!(TransferFailed(to.into_array(), wei)))
    }
}

/// Whether there is code at an address: its code's hash is neither that of nothing nor of an account that is not there.
pub fn has_code(vm: &VM, at: Account) -> bool {
    let hash = vm.code_hash(at);
    !hash.is_zero() && hash != KECCAK256_EMPTY
}

/// A call's arguments, decoded strictly and without a decoder of its own for each call: programs stay small.
pub struct Words<'a> {
    selector: [u8; 4],
    data: &'a [u8],
}

impl<'a> Words<'a> {
    /// The `arity` arguments of a call.
    pub fn new(selector: [u8; 4], data: &'a [u8], arity: usize) -> Result<Self> {
        ensure!(data.len() >= arity * 32, MalformedCalldata(selector));
        Ok(Words { selector, data })
    }

    /// Argument `i`, which must be below 2^`bits`.
    #[inline(never)]
    pub fn number(&self, i: usize, bits: u32) -> Result<u64> {
        let [v, rest @ ..] = self.word(i).0;
        ensure!(rest == [0; 3] && (bits == 64 || v >> bits == 0), MalformedCalldata(self.selector));
        Ok(v)
    }

    /// Argument `i` as an address.
    #[inline(never)]
    pub fn address(&self, i: usize) -> Result<Address> {
        let word = self.word(i);
        ensure!(word.0[3] == 0 && word.0[2] >> 32 == 0, MalformedCalldata(self.selector));
        Ok(muster_core::word::Field::read(&word, 0, 160))
    }

    /// The dynamic argument `i`: its length and what follows it. Offsets count from the arguments' start.
    fn dynamic(&self, i: usize) -> Result<(usize, &'a [u8])> {
        let at = self.number(i, 32)? as usize;
        let tail = self.data.get(at..).unwrap_or_default();
        let inner = Words { selector: self.selector, data: tail };
        ensure!(tail.len() >= 32, MalformedCalldata(self.selector));
        Ok((inner.number(0, 32)? as usize, &tail[32..]))
    }

    /// Argument `i` as a list of `uint64`.
    #[inline(never)]
    pub fn numbers(&self, i: usize) -> Result<Vec<u64>> {
        let (len, data) = self.dynamic(i)?;
        ensure!(data.len() / 32 >= len, MalformedCalldata(self.selector));
        let items = Words { selector: self.selector, data };
        (0..len).map(|i| items.number(i, 64)).collect()
    }

    /// Argument `i` as bytes.
    #[inline(never)]
    pub fn bytes(&self, i: usize) -> Result<&'a [u8]> {
        let (len, data) = self.dynamic(i)?;
        data.get(..len).ok_or_else(|| refusal!(MalformedCalldata(self.selector)))
    }

    /// Argument `i` as a task's specification.
    #[inline(never)]
    pub fn spec(&self, i: usize) -> Result<IMuster::TaskSpec> {
        let at = self.number(i, 32)? as usize;
        let data = self.data.get(at..).unwrap_or_default();
        ensure!(data.len() >= 7 * 32, MalformedCalldata(self.selector));
        let t = Words { selector: self.selector, data };
        Ok(IMuster::TaskSpec {
            kind: t.number(0, 8)? as u8,
            units: t.number(1, 32)? as u32,
            vram: t.number(2, 16)? as u16,
            gpu: t.number(3, 32)? as u32,
            redundancy: t.number(4, 8)? as u8,
            inputDigest: t.word(5).to_be_bytes().into(),
            models: t.numbers(6)?,
        })
    }

    /// Argument `i` as it stands; zero beyond the arguments.
    pub fn word(&self, i: usize) -> Word {
        self.data.get(i * 32..i * 32 + 32).map_or(Word::ZERO, |b| {
            let mut bytes = [0; 32];
            bytes.copy_from_slice(b);
            Word::from_be_bytes(bytes)
        })
    }
}

/// A call's arguments by the interface's own decoder, strictly.
pub fn arguments<C: SolCall>(data: &[u8]) -> Result<C> {
    C::abi_decode_raw_validate(data).map_err(|_| refusal!(MalformedCalldata(C::SELECTOR)))
}

/// Runs a program: `route` answers the calls it knows with their encoded results.
pub fn run(input: Vec<u8>, vm: VM, route: impl FnOnce(&mut Chain, [u8; 4], &[u8]) -> Result<Option<Vec<u8>>>) -> ArbResult {
    let mut chain = Chain::new(vm);
    let answer = match input.split_first_chunk::<4>() {
        Some((&selector, data)) => {
            route(&mut chain, selector, data).and_then(|out| out.ok_or_else(|| refusal!(UnknownFunction(selector))))
        }
        None => Err(refusal!(MalformedCalldata([0; 4]))),
    };
    answer.map_err(Refusal::into_bytes)
}
