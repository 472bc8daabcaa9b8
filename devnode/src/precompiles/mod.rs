//! ArbOS's precompiles.
//!
//! They read and write ArbOS's own storage, at its prices: 800 gas a word read, 20,000 a word written (5,000 if it becomes zero), beside 3
//! gas per word of arguments and results. Methods that need an L1, which isn't here, fail and say so.

/// A table of methods: purity, first ArbOS version, body.
macro_rules! methods {
    ($call:ident, $($contract:ident :: $method:ident, $purity:ident, $since:literal => |$args:pat_param| $body:expr;)*) => {{
        let selector: [u8; 4] = $call.input[..4].try_into().unwrap_or_default();
        $(
            if selector == <$contract::$method as alloy_sol_types::SolCall>::SELECTOR && $call.since($since) {
                $call.begin($crate::precompiles::Purity::$purity)?;
                let $args = $call.args::<$contract::$method>()?;
                return $body;
            }
        )*
        None::<()>
    }};
}

mod abi;
pub(crate) mod addresses;
mod gas;
mod owner;
mod programs;
mod system;

use alloy_sol_types::{SolCall, SolError, SolEvent, SolValue};
use revm::context::JournalTr;
use revm::interpreter::{CallInputs, Gas, InstructionResult, InterpreterResult};
use revm::primitives::{Address, Bytes, Log, B256, U256};

use self::abi::ArbOwner;
use self::addresses::*;
use crate::arbos::{DataPricer, Number, Params, Set, Slot, ARBOS_STATE};
use crate::exec::{finish, Exec};

/// Wei per gas below which the base fee doesn't fall on a fresh chain: 0.1 gwei.
const MIN_BASE_FEE: u64 = 100_000_000;

/// Most chain owners, and most cache managers: an owner lists them without gas.
const MAX_MEMBERS: u64 = 256;

/// How a call to a precompile failed.
enum Fail {
    /// Reverts with the data of a Solidity error, keeping the gas.
    Error(Vec<u8>),
    /// Reverts without data, keeping the gas. The reason reaches the trace only.
    Revert(String),
    /// Reverts without data, taking all gas.
    Burnt,
    /// Fails, taking all gas; the reason is the transaction's.
    Halt(String),
}

impl<E: SolError> From<E> for Fail {
    fn from(error: E) -> Self {
        Self::Error(error.abi_encode())
    }
}

type Done = Result<Vec<u8>, Fail>;

/// The access to state that a method may have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Purity {
    Pure,
    View,
    Write,
    Payable,
}

/// One call.
struct Call<'a> {
    exec: &'a mut Exec,
    inputs: &'a CallInputs,
    input: &'a [u8],
    /// geth's call depth inside the precompile: 1 if a transaction calls it directly.
    depth: usize,
    left: u64,
    /// ArbOwner's methods cost nothing.
    free: bool,
}

const READ: u64 = 800;
const CODE_HASH: u64 = 2600;
const COPY: u64 = 3;

fn words(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(32)
}

impl Call<'_> {
    fn burn(&mut self, gas: u64) -> Result<(), Fail> {
        if self.free {
            return Ok(());
        }
        if self.left < gas {
            self.left = 0;
            return Err(Fail::Burnt);
        }
        self.left -= gas;
        Ok(())
    }

    fn load(&mut self, slot: Slot) -> Result<U256, Fail> {
        // No gas bounds a chain owner's calls.
        if self.exec.is_overdue() {
            return Err(Fail::Burnt);
        }
        self.burn(READ)?;
        Ok(self.exec.arbos_load(slot.key()))
    }

    fn store(&mut self, slot: Slot, value: U256) -> Result<(), Fail> {
        self.burn(if value.is_zero() { 5000 } else { 20_000 })?;
        self.exec.arbos_store(slot.key(), value);
        Ok(())
    }

    fn number(&mut self, number: Number) -> Result<U256, Fail> {
        self.load(Slot::Number(number))
    }

    fn params(&mut self) -> Result<Params, Fail> {
        self.burn(100)?;
        Ok(self.exec.params())
    }

    fn save_params(&mut self, params: &Params) -> Done {
        self.store(Slot::Params, params.pack())?;
        Ok(vec![])
    }

    fn time(&self) -> u64 {
        self.exec.block.timestamp
    }

    fn emit(&mut self, event: &impl SolEvent) -> Result<(), Fail> {
        let data = event.encode_log_data();
        let topics = data.topics().len() as u64;
        self.burn(375 + 375 * topics + 8 * data.data.len() as u64)?;
        let address = self.inputs.target_address;
        self.exec.ctx.journaled_state.log(Log { address, data });
        Ok(())
    }

    fn code_hash(&mut self, address: Address) -> Result<B256, Fail> {
        self.burn(CODE_HASH)?;
        Ok(self.free_code_hash(address))
    }

    /// ArbOS looks at accounts without a trace in the access list.
    fn free_code_hash(&mut self, address: Address) -> B256 {
        self.exec.peek(address).code_hash
    }

    /// An active program.
    fn active(&mut self, code_hash: B256) -> Result<(crate::arbos::Program, Params), Fail> {
        let params = self.params()?;
        self.burn(READ)?;
        let program = self.exec.program(code_hash);
        program.check_active(&params, self.time())?;
        Ok((program, params))
    }

    fn is_member(&mut self, set: Set, address: Address) -> Result<bool, Fail> {
        Ok(!self.load(Slot::SetPosition(set, address))?.is_zero())
    }

    fn members(&mut self, set: Set) -> Result<Vec<Address>, Fail> {
        let size: u64 = self.load(Slot::SetSize(set))?.saturating_to();
        let most = if self.free { MAX_MEMBERS } else { 65_536 };
        (1..=size.min(most)).map(|n| Ok(Address::from_word(B256::from(self.load(Slot::SetMember(set, n))?)))).collect()
    }

    fn add(&mut self, set: Set, address: Address) -> Done {
        if !self.is_member(set, address)? {
            let size = self.load(Slot::SetSize(set))? + U256::ONE;
            if set != Set::AddressTable && size > U256::from(MAX_MEMBERS) {
                return Err(Fail::Revert(format!("at most {MAX_MEMBERS} addresses")));
            }
            self.store(Slot::SetPosition(set, address), size)?;
            self.store(Slot::SetMember(set, size.saturating_to()), U256::from_be_bytes(address.into_word().0))?;
            self.burn(READ)?;
            self.store(Slot::SetSize(set), size)?;
        }
        Ok(vec![])
    }

    /// Takes a member out; the last one moves into its place.
    fn remove(&mut self, set: Set, address: Address) -> Done {
        let position: u64 = self.load(Slot::SetPosition(set, address))?.saturating_to();
        if position == 0 {
            return Err(Fail::Revert(format!("tried to remove {address}, which isn't a member")));
        }
        let size: u64 = self.load(Slot::SetSize(set))?.saturating_to();
        self.store(Slot::SetPosition(set, address), U256::ZERO)?;
        if position < size {
            let last = self.load(Slot::SetMember(set, size))?;
            self.store(Slot::SetMember(set, position), last)?;
            self.store(Slot::SetPosition(set, Address::from_word(B256::from(last))), U256::from(position))?;
        }
        self.store(Slot::SetMember(set, size), U256::ZERO)?;
        self.store(Slot::SetSize(set), U256::from(size - 1))?;
        Ok(vec![])
    }

    fn transfer(&mut self, from: Address, to: Address, value: U256) -> Result<(), Fail> {
        match self.exec.ctx.journaled_state.transfer(from, to, value) {
            Ok(None) => Ok(()),
            _ => Err(Fail::Revert("insufficient balance for transfer".into())),
        }
    }

    fn begin(&mut self, purity: Purity) -> Result<(), Fail> {
        if purity >= Purity::View && self.inputs.target_address != self.inputs.bytecode_address {
            return Err(Fail::Burnt);
        }
        if purity >= Purity::Write && self.inputs.is_static {
            return Err(Fail::Burnt);
        }
        if purity < Purity::Payable && !self.inputs.call_value().is_zero() {
            return Err(Fail::Burnt);
        }
        if purity != Purity::Pure {
            self.burn(READ)?;
        }
        self.burn(COPY * words(self.input.len() - 4))
    }

    /// Whether this ArbOS has the features of a version.
    fn since(&self, version: u64) -> bool {
        self.exec.config.arbos >= version
    }

    fn args<C: SolCall>(&self) -> Result<C, Fail> {
        C::abi_decode_validate(self.input).map_err(|_| Fail::Burnt)
    }
}

/// Runs a precompile, known by its usual address, in the frame of depth `depth` (0 for a transaction's own).
pub(crate) fn run(exec: &mut Exec, depth: usize, address: Address, inputs: &CallInputs, input: &[u8]) -> InterpreterResult {
    let limit = inputs.gas_limit;
    let arbos = exec.config.arbos;
    if address == ARB_DEBUG && !exec.config.debug {
        exec.reason = Some("debug precompiles are disabled".into());
        return finish(InstructionResult::PrecompileError, Gas::new(limit));
    }
    // A precompile of a later version is an account without code.
    if (address == ARB_NATIVE_TOKEN_MANAGER && arbos < 41) || (address == ARB_FILTERED_TRANSACTIONS && arbos < 60) {
        return finish(InstructionResult::Stop, Gas::new(limit));
    }
    let mut call = Call { exec, inputs, input, depth: depth + 1, left: limit, free: address == ARB_OWNER };
    let result = if input.len() < 4 { Err(Fail::Burnt) } else { dispatch(&mut call, address) };
    let result = result.and_then(|output| {
        call.burn(COPY * words(output.len()))?;
        Ok(output)
    });
    let mut left = call.left;
    let (kind, output) = match result {
        Ok(output) => (InstructionResult::Return, output),
        Err(Fail::Error(data)) => match call.burn(COPY * words(data.len())) {
            Ok(()) => {
                left = call.left;
                (InstructionResult::Revert, data)
            }
            Err(_) => {
                left = 0;
                (InstructionResult::Revert, vec![])
            }
        },
        Err(Fail::Revert(reason)) => {
            if let Some(tracer) = &mut call.exec.tracer {
                tracer.note(reason);
            }
            (InstructionResult::Revert, vec![])
        }
        Err(Fail::Burnt) => {
            left = 0;
            (InstructionResult::Revert, vec![])
        }
        Err(Fail::Halt(reason)) => {
            call.exec.reason = Some(reason);
            left = 0;
            (InstructionResult::PrecompileError, vec![])
        }
    };
    let mut gas = Gas::new(limit);
    gas.set_remaining(left);
    InterpreterResult { result: kind, output: Bytes::from(output), gas }
}

// The results of precompile functions.
#[expect(clippy::unnecessary_wraps, reason = "they stand where any result of a function does")]
fn value(value: impl SolValue) -> Done {
    Ok(value.abi_encode())
}

#[expect(clippy::unnecessary_wraps, reason = "as above")]
fn uint(number: impl TryInto<u64>) -> Done {
    Ok(U256::from(number.try_into().unwrap_or(u64::MAX)).abi_encode())
}

#[expect(clippy::unnecessary_wraps, reason = "as above")]
fn uints<const N: usize>(numbers: [U256; N]) -> Done {
    Ok(numbers.iter().flat_map(|n| n.to_be_bytes::<32>()).collect())
}

fn dispatch(c: &mut Call<'_>, address: Address) -> Done {
    match address {
        ARB_SYS => system::arb_sys(c),
        ARB_INFO => system::arb_info(c),
        ARB_ADDRESS_TABLE => system::arb_address_table(c),
        ARB_AGGREGATOR => system::arb_aggregator(c),
        ARB_RETRYABLE_TX => system::arb_retryable_tx(c),
        ARBOS_TEST => system::arbos_test(c),
        ARB_WASM => programs::arb_wasm(c),
        ARB_WASM_CACHE => programs::arb_wasm_cache(c),
        ARB_OWNER_PUBLIC => owner::arb_owner_public(c),
        ARB_GAS_INFO => gas::arb_gas_info(c),
        ARB_DEBUG => owner::arb_debug(c),
        ARB_OWNER => {
            let caller = c.inputs.caller;
            if !c.is_member(Set::ChainOwners, caller)? {
                return Err(Fail::Halt("unauthorized caller to access-controlled method".into()));
            }
            let output = owner::arb_owner(c)?;
            if !c.inputs.is_static {
                let method = c.input[..4].try_into().unwrap_or_default();
                c.emit(&ArbOwner::OwnerActs { method, owner: caller, data: c.input.to_vec().into() })?;
            }
            Ok(output)
        }
        _ => missing(c, address),
    }
}

/// A method that doesn't exist, or exists on a network but not here.
fn missing(c: &Call<'_>, address: Address) -> Done {
    let selector: [u8; 4] = c.input[..4].try_into().unwrap_or_default();
    Err(Fail::Halt(format!("{} has no method 0x{} on this node", name(address), revm::primitives::hex::encode(selector))))
}

/// Writes the initial contents of ArbOS's storage.
pub(crate) fn genesis(state: &mut crate::state::State, arbos: u64, owner: Address, cache_manager: Address) {
    let mut set = |slot: Slot, value: U256| state.set_storage(ARBOS_STATE, slot.key(), value);
    set(Slot::Params, Params::of_version(arbos).pack());
    for (slot, value) in DataPricer::default().fields() {
        set(slot, value);
    }
    set(Slot::Number(Number::MinBaseFee), U256::from(MIN_BASE_FEE));
    set(Slot::Number(Number::SpeedLimit), U256::from(7_000_000));
    set(Slot::Number(Number::BrotliLevel), U256::from(1));
    for (members, address) in [(Set::ChainOwners, owner), (Set::CacheManagers, cache_manager)] {
        set(Slot::SetSize(members), U256::from(1));
        set(Slot::SetMember(members, 1), U256::from_be_bytes(address.into_word().0));
        set(Slot::SetPosition(members, address), U256::from(1));
    }
    state.set_nonce(ARBOS_STATE, 1);
    for address in ADDRESSES {
        state.set_code(*address, Bytes::from_static(&[0xfe]));
    }
}
