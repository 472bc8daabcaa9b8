//! The Stylus host, and how a program answers a call.

use crate::abi::IMuster::{dispatchCall, formGroupCall, joinCall, profileCall};
use crate::abi::{Refusal, Result};
use crate::host::{Host, Program};
use crate::store::routes;
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

/// The chain that a [`Program`] runs on.
pub struct Chain<const PROGRAM: u8> {
    vm: VM,
    reads: Cell<u32>,
}

impl<const PROGRAM: u8> Host for Chain<PROGRAM> {
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

    fn here(&self) -> Address {
        self.vm.contract_address().into_array()
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
    fn log(&mut self, topics: usize, bytes: &[u8]) {
        self.vm.emit_log(bytes, topics);
    }

    fn pay(&mut self, to: Address, wei: u128) -> bool {
        transfer_eth(&self.vm, Account::from(to), U256::from(wei)).is_ok()
    }

    fn reads(&self) -> u32 {
        self.reads.get()
    }

    fn charge(&self, words: u32) {
        self.reads.set(self.reads.get() + words);
    }

    fn gas(&self) -> u64 {
        self.vm.evm_gas_left()
    }

    #[inline(never)]
    fn has_code(&self, at: Address) -> bool {
        // Its code's hash is neither that of nothing nor of an account that is not there.
        let hash = self.vm.code_hash(at.into());
        !hash.is_zero() && hash != KECCAK256_EMPTY
    }

    fn signed(&self) -> bool {
        let caller = self.vm.msg_sender();
        caller == self.vm.tx_origin() && !self.has_code(caller.into_array())
    }

    #[inline(always)]
    fn program(&self) -> Program {
        match PROGRAM {
            NODES => Program::Nodes,
            TASKS => Program::Tasks,
            WORK => Program::Work,
            BATCHES => Program::Batches,
            GROUPS => Program::Groups,
            DRAWS => Program::Draws,
            REPUTATION => Program::Reputation,
            ADMIN => Program::Admin,
            LENS => Program::Lens,
            _ => Program::Any,
        }
    }

    #[inline(always)]
    fn enter(&mut self, _: Program) -> Program {
        self.program()
    }

    #[inline(never)]
    #[allow(unsafe_code)]
    fn ask(&mut self, program: Program, call: &[u8]) -> Option<u64> {
        let one_of_its = match program {
            Program::Nodes => joinCall::SELECTOR,
            Program::Draws => formGroupCall::SELECTOR,
            Program::Reputation => profileCall::SELECTOR,
            _ => dispatchCall::SELECTOR,
        };
        let at = routes::program_of(self, one_of_its);
        // SAFETY: a program of this contract, which shares its storage by design. Written words are flushed first, and the asking program
        // uses nothing again that was read before.
        let answer =
            unsafe { RawCall::new_delegate(&self.vm).clear_storage_cache().limit_return_data(0, 32).call(at.into(), call) };
        let answer = Word::from_be_bytes(answer.ok()?.try_into().ok()?).0[0];
        // Its reads count here too, see `crate::among`.
        self.reads.set(self.reads.get() + answer as u32);
        Some(answer)
    }
}

/// [`Program`]s as parameters of [`Chain`].
const NODES: u8 = Program::Nodes as u8;
const TASKS: u8 = Program::Tasks as u8;
const WORK: u8 = Program::Work as u8;
const BATCHES: u8 = Program::Batches as u8;
const GROUPS: u8 = Program::Groups as u8;
const DRAWS: u8 = Program::Draws as u8;
const REPUTATION: u8 = Program::Reputation as u8;
const ADMIN: u8 = Program::Admin as u8;
const LENS: u8 = Program::Lens as u8;

impl<const PROGRAM: u8> Chain<PROGRAM> {
    /// The chain behind a program's entrypoint.
    pub fn new(vm: VM) -> Self {
        Chain { vm, reads: Cell::new(0) }
    }

    #[allow(unsafe_code)]
    fn ask(&self, whom: Account, call: &[u8]) -> Option<Word> {
        // SAFETY: a static call to a contract of the chain's own, which reads no storage of ours.
        let out = unsafe { RawCall::new_static(&self.vm).limit_return_data(0, 32).call(whom, call) }.ok()?;
        Some(Word::from_be_bytes(out.try_into().ok()?))
    }
}

/// Runs a program of [`crate::programs`] on the chain.
pub fn run<const PROGRAM: u8>(input: Vec<u8>, vm: VM, program: fn(&mut Chain<PROGRAM>, &[u8]) -> Result<Vec<u8>>) -> ArbResult {
    program(&mut Chain::new(vm), &input).map_err(Refusal::into_bytes)
}
