//! The functions a program imports from `vm_hooks`.
//!
//! Each takes its ink first, then does its work; a failure (no ink left, an address outside memory, a write in a
//! static call) ends the program.

use std::collections::HashMap;
use std::fmt;

use revm::context::JournalTr;
use revm::handler::FrameResult;
use revm::interpreter::interpreter_action::FrameInit;
use revm::interpreter::{
    CallInput, CallInputs, CallScheme, CallValue, CreateInputs, CreateScheme, FrameInput, InstructionResult, SharedMemory,
};
use revm::primitives::{keccak256, Address, Bytes, Log, B256, U256};
use wasmparser::ValType;
use wasmtime::{Caller, Engine, Global, Linker, Memory, Val};

use super::pricing::{self as price, MemoryModel};
use crate::exec::{frame, Exec};
use crate::trace::Watch;

/// The module programs import from.
pub(crate) const MODULE: &str = "vm_hooks";

const I32: ValType = ValType::I32;
const I64: ValType = ValType::I64;

/// Parameters and results of an importable function.
pub(crate) fn signature(module: &str, name: &str, debug: bool) -> Option<(&'static [ValType], &'static [ValType])> {
    if module == "console" && debug {
        return Some(match name {
            "log_txt" => (&[I32, I32], &[]),
            "log_i32" => (&[I32], &[]),
            "log_i64" => (&[I64], &[]),
            "tee_i32" => (&[I32], &[I32]),
            "tee_i64" => (&[I64], &[I64]),
            _ => return None,
        });
    }
    if module != MODULE {
        return None;
    }
    Some(match name {
        "read_args"
        | "exit_early"
        | "storage_flush_cache"
        | "block_basefee"
        | "block_coinbase"
        | "contract_address"
        | "msg_sender"
        | "msg_value"
        | "tx_gas_price"
        | "tx_origin"
        | "pay_for_memory_grow" => (&[I32], &[]),
        "write_result"
        | "storage_load_bytes32"
        | "storage_cache_bytes32"
        | "transient_load_bytes32"
        | "transient_store_bytes32"
        | "account_balance"
        | "account_codehash"
        | "math_div"
        | "math_mod"
        | "math_pow" => (&[I32, I32], &[]),
        "emit_log" | "math_add_mod" | "math_mul_mod" | "native_keccak256" => (&[I32, I32, I32], &[]),
        "call_contract" => (&[I32, I32, I32, I32, I64, I32], &[I32]),
        "delegate_call_contract" | "static_call_contract" => (&[I32, I32, I32, I64, I32], &[I32]),
        "create1" => (&[I32, I32, I32, I32, I32], &[]),
        "create2" => (&[I32, I32, I32, I32, I32, I32], &[]),
        "read_return_data" => (&[I32, I32, I32], &[I32]),
        "return_data_size" | "msg_reentrant" | "tx_ink_price" => (&[], &[I32]),
        "account_code" => (&[I32, I32, I32, I32], &[I32]),
        "account_code_size" => (&[I32], &[I32]),
        "evm_gas_left" | "evm_ink_left" | "chainid" | "block_gas_limit" | "block_number" | "block_timestamp" => (&[], &[I64]),
        _ => return None,
    })
}

/// Why a program was stopped from the host's side.
#[derive(Debug)]
pub(crate) enum Escape {
    OutOfInk,
    /// Ended by `exit_early`.
    Exit(u32),
    /// Anything else: the frame reverts without data and keeps its gas.
    Failure(String),
}

impl fmt::Display for Escape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfInk => write!(f, "out of ink"),
            Self::Exit(status) => write!(f, "exit early: {status}"),
            Self::Failure(reason) => write!(f, "{reason}"),
        }
    }
}

impl std::error::Error for Escape {}

/// A word a frame has read or written but not yet passed on to the EVM.
struct Word {
    value: B256,
    /// What the EVM is known to hold.
    known: Option<B256>,
}

/// The storage cache of one frame.
#[derive(Default)]
pub(crate) struct StorageCache {
    slots: HashMap<B256, Word>,
    reads: u64,
    writes: u64,
}

/// What a running program sees of the world.
pub(crate) struct Host {
    /// The transaction, taken out while a frame below runs.
    pub exec: Option<Box<Exec>>,
    /// revm's memory, handed on to EVM frames below.
    pub memory_context: SharedMemory,
    pub depth: usize,
    pub read_only: bool,
    pub acting: Address,
    pub caller: Address,
    pub value: U256,
    pub reentrant: bool,
    pub ink_price: u64,
    pub model: MemoryModel,
    pub page_limit: u16,
    pub args: Bytes,
    pub outs: Vec<u8>,
    pub return_data: Bytes,
    pub last_code: Option<(Address, Bytes)>,
    pub cache: StorageCache,
    /// Gas to give back at the end of the transaction, as a sum over this frame and those below it.
    pub refund: i64,
    pub globals: Option<Handles>,
    /// What the trace wants to know.
    pub watch: Watch,
    /// Ink before the host function that runs.
    pub ink_before: u64,
    /// Its arguments and results, for a trace that wants them.
    pub told: (Vec<u8>, Vec<u8>),
}

/// The instance's memory and meter.
#[derive(Clone, Copy)]
pub(crate) struct Handles {
    pub memory: Memory,
    pub ink_left: Global,
    pub ink_status: Global,
}

/// One call into the host.
struct Hook<'a, 'b>(&'a mut Caller<'b, Host>);

type Fallible<T> = Result<T, Escape>;

fn failure<T>(reason: impl Into<String>) -> Fallible<T> {
    Err(Escape::Failure(reason.into()))
}

impl Hook<'_, '_> {
    fn host(&mut self) -> &mut Host {
        self.0.data_mut()
    }

    fn exec(&mut self) -> &mut Exec {
        self.0.data_mut().exec.as_mut().expect("the transaction is only away while another frame runs")
    }

    fn handles(&self) -> Handles {
        self.0.data().globals.expect("set before the program starts")
    }

    fn ink(&mut self) -> Fallible<u64> {
        let handles = self.handles();
        if handles.ink_status.get(&mut self.0).i32() != Some(0) {
            return self.out_of_ink();
        }
        Ok(handles.ink_left.get(&mut self.0).i64().unwrap_or_default() as u64)
    }

    fn set_ink(&mut self, ink: u64) {
        let handles = self.handles();
        let _ = handles.ink_left.set(&mut self.0, Val::I64(ink as i64));
    }

    fn out_of_ink<T>(&mut self) -> Fallible<T> {
        let handles = self.handles();
        let _ = handles.ink_left.set(&mut self.0, Val::I64(0));
        let _ = handles.ink_status.set(&mut self.0, Val::I32(1));
        Err(Escape::OutOfInk)
    }

    /// Before a host function.
    fn begin(&mut self) {
        if self.0.data().watch != Watch::No {
            let ink = self.ink().unwrap_or_default();
            let host = self.host();
            host.ink_before = ink;
            host.told = Default::default();
        }
    }

    /// Notes arguments and results of the host function that runs.
    fn tell(&mut self, args: &[&[u8]], outs: &[&[u8]]) {
        if self.0.data().watch == Watch::All {
            self.host().told = (args.concat(), outs.concat());
        }
    }

    /// After a host function that succeeded or ended the program with a status of its own. For a profile any end is
    /// one, since its ink is gone.
    fn end<T>(&mut self, name: &'static str, result: &Fallible<T>) {
        let watch = self.0.data().watch;
        let done = matches!(result, Ok(_) | Err(Escape::Exit(_)));
        if watch == Watch::Ink || watch == Watch::All && done {
            let handles = self.handles();
            let ink = handles.ink_left.get(&mut self.0).i64().unwrap_or_default() as u64;
            let host = self.host();
            let (before, (args, outs)) = (host.ink_before, std::mem::take(&mut host.told));
            if let Some(tracer) = host.exec.as_mut().and_then(|exec| exec.tracer.as_mut()) {
                tracer.hostio(name, (before, ink), args, outs);
            }
        }
    }

    fn buy_ink(&mut self, ink: u64) -> Fallible<()> {
        let left = self.ink()?;
        if left < ink {
            return self.out_of_ink();
        }
        self.set_ink(left - ink);
        Ok(())
    }

    fn buy_gas(&mut self, gas: u64) -> Fallible<()> {
        let price = self.host().ink_price;
        self.buy_ink(gas.saturating_mul(price))
    }

    fn require_gas(&mut self, gas: u64) -> Fallible<()> {
        let price = self.host().ink_price;
        if self.ink()? < gas.saturating_mul(price) {
            return self.out_of_ink();
        }
        Ok(())
    }

    fn gas_left(&mut self) -> Fallible<u64> {
        let price = self.host().ink_price;
        Ok(self.ink()? / price)
    }

    fn read(&mut self, ptr: u32, len: u32) -> Fallible<Vec<u8>> {
        let start = ptr as usize;
        let memory = self.handles().memory;
        match memory.data(&self.0).get(start..start + len as usize) {
            Some(bytes) => Ok(bytes.to_vec()),
            None => failure(format!("failed to access memory: {len} bytes at {ptr}")),
        }
    }

    fn read_fixed<const N: usize>(&mut self, ptr: u32) -> Fallible<[u8; N]> {
        let start = ptr as usize;
        let memory = self.handles().memory;
        let mut out = [0; N];
        match memory.data(&self.0).get(start..start + N) {
            Some(bytes) => {
                out.copy_from_slice(bytes);
                Ok(out)
            }
            None => failure(format!("failed to access memory: {N} bytes at {ptr}")),
        }
    }

    fn read_word(&mut self, ptr: u32) -> Fallible<B256> {
        self.read_fixed(ptr).map(B256::new)
    }

    fn read_u256(&mut self, ptr: u32) -> Fallible<U256> {
        Ok(U256::from_be_bytes(self.read_fixed::<32>(ptr)?))
    }

    fn read_address(&mut self, ptr: u32) -> Fallible<Address> {
        self.read_fixed(ptr).map(Address::new)
    }

    fn write(&mut self, ptr: u32, bytes: &[u8]) -> Fallible<()> {
        let start = ptr as usize;
        let memory = self.handles().memory;
        match memory.data_mut(&mut self.0).get_mut(start..start + bytes.len()) {
            Some(target) => {
                target.copy_from_slice(bytes);
                Ok(())
            }
            None => failure(format!("failed to access memory: {} bytes at {ptr}", bytes.len())),
        }
    }

    fn write_u256(&mut self, ptr: u32, value: U256) -> Fallible<()> {
        self.write(ptr, &value.to_be_bytes::<32>())
    }

    fn journal(&mut self) -> &mut revm::context::Journal<crate::state::State> {
        &mut self.exec().ctx.journaled_state
    }

    // Frame

    fn read_args(&mut self, dest: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO)?;
        let args = self.host().args.clone();
        self.buy_ink(price::write_ink(args.len() as u32))?;
        self.write(dest, &args)?;
        self.tell(&[], &[&args]);
        Ok(())
    }

    fn write_result(&mut self, ptr: u32, len: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO)?;
        self.buy_ink(price::read_ink(len))?;
        self.buy_ink(price::read_ink(len))?;
        let result = self.read(ptr, len)?;
        self.tell(&[&result], &[]);
        self.host().outs = result;
        Ok(())
    }

    fn pay_for_memory_grow(&mut self, pages: u32) -> Fallible<()> {
        if pages > u32::from(u16::MAX) && self.exec().config.arbos >= 59 {
            return self.out_of_ink();
        }
        let pages = pages as u16;
        self.tell(&[&pages.to_be_bytes()], &[]);
        if pages == 0 {
            return self.buy_ink(price::HOSTIO);
        }
        let (model, limit) = (self.host().model, self.host().page_limit);
        let exec = self.exec();
        let (open, ever) = exec.add_pages(pages);
        let gas = if exec.over_page_limit(limit) { u64::MAX } else { model.gas(pages, open, ever) };
        self.buy_gas(gas)
    }

    // Storage

    fn storage_load(&mut self, key: u32, dest: u32) -> Fallible<()> {
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
        self.write(dest, value.as_slice())?;
        self.tell(&[key.as_slice()], &[value.as_slice()]);
        Ok(())
    }

    fn storage_cache(&mut self, key: u32, value: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + 2 * price::PTR)?;
        self.require_gas(price::SSTORE_SENTRY + price::MAX_CACHE_ACCESS)?;
        let key = self.read_word(key)?;
        let value = self.read_word(value)?;
        self.tell(&[key.as_slice(), value.as_slice()], &[]);
        let cache = &mut self.host().cache;
        cache.writes += 1;
        let gas = price::cache_write_gas(cache.writes);
        cache.slots.entry(key).and_modify(|word| word.value = value).or_insert(Word { value, known: None });
        self.buy_gas(gas)
    }

    fn storage_flush(&mut self, clear: bool) -> Fallible<()> {
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
            self.host().refund += refund;
        }
        let short = out_of_gas || left == 0;
        if short && self.exec().config.arbos < 50 {
            // The program failed without having paid.
            return failure("out of gas in a storage write");
        }
        self.buy_gas(budget - left)?;
        match short {
            true => failure("out of gas in a storage write"),
            false => Ok(()),
        }
    }

    fn transient_load(&mut self, key: u32, dest: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + 2 * price::PTR + price::EVM_API)?;
        self.buy_gas(price::WARM_ACCESS)?;
        let key = self.read_word(key)?;
        let acting = self.host().acting;
        let value = self.journal().tload(acting, key.into());
        self.tell(&[key.as_slice()], &[&value.to_be_bytes::<32>()]);
        self.write_u256(dest, value)
    }

    fn transient_store(&mut self, key: u32, value: u32) -> Fallible<()> {
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

    // Calls

    #[allow(clippy::too_many_arguments)]
    fn call(
        &mut self,
        scheme: CallScheme,
        contract: u32,
        data: u32,
        len: u32,
        value: Option<u32>,
        gas: u64,
        ret_len: u32,
    ) -> Fallible<u32> {
        self.buy_ink(price::HOSTIO + 3 * price::PTR + price::EVM_API)?;
        self.buy_ink(price::read_ink(len))?;
        self.buy_ink(price::read_ink(len))?;
        let gas_left = self.gas_left()?;
        let wanted = gas.min(gas_left);
        let contract = self.read_address(contract)?;
        let input = self.read(data, len)?;
        let value = match value {
            Some(ptr) => self.read_u256(ptr)?,
            None => U256::ZERO,
        };
        let told = (self.0.data().watch == Watch::All).then(|| input.clone());
        let (output, cost, ok) = self.call_frame(scheme, contract, input, value, gas_left, wanted);
        self.buy_gas(cost)?;
        let len = output.len() as u32;
        self.host().return_data = output;
        self.write(ret_len, &len.to_le_bytes())?;
        let status = if ok { 0 } else { 2 };
        if let Some(input) = told {
            let value = value.to_be_bytes::<32>();
            let value = if scheme == CallScheme::Call { value.as_slice() } else { &[] };
            self.tell(&[contract.as_slice(), &gas.to_be_bytes(), value, &input], &[&len.to_be_bytes(), &[status]]);
        }
        Ok(status.into())
    }

    /// Return data, gas it all cost, and whether it succeeded.
    fn call_frame(
        &mut self,
        scheme: CallScheme,
        contract: Address,
        input: Vec<u8>,
        value: U256,
        gas_left: u64,
        wanted: u64,
    ) -> (Bytes, u64, bool) {
        let host = self.host();
        let (read_only, acting, caller, own_value, depth) = (host.read_only, host.acting, host.caller, host.value, host.depth);
        if read_only && !value.is_zero() {
            return (Bytes::new(), 0, false);
        }
        let (is_cold, is_empty) = {
            let Ok(account) = self.journal().load_account_with_code(contract);
            (account.is_cold, account.data.is_empty())
        };
        let mut base = if is_cold { price::COLD_ACCOUNT } else { price::WARM_ACCESS };
        if !value.is_zero() {
            base += 9000 + if is_empty { 25_000 } else { 0 };
        }
        if base > gas_left {
            return (Bytes::new(), gas_left, false);
        }
        let available = gas_left - base;
        let mut gas = (u128::from(available) * 63 / 64) as u64;
        gas = gas.min(wanted);
        if !value.is_zero() {
            gas += 2300;
        }

        let known_bytecode = self.exec().code_to_run(contract);
        let (target_address, frame_caller, frame_value) = match scheme {
            CallScheme::DelegateCall => (acting, caller, CallValue::Apparent(own_value)),
            _ => (contract, acting, CallValue::Transfer(value)),
        };
        let inputs = CallInputs {
            input: CallInput::Bytes(input.into()),
            return_memory_offset: 0..0,
            gas_limit: gas,
            reservoir: 0,
            bytecode_address: contract,
            known_bytecode,
            target_address,
            caller: frame_caller,
            value: frame_value,
            scheme,
            is_static: read_only || scheme == CallScheme::StaticCall,
            charged_new_account_state_gas: false,
        };
        let result = self.frame_below(FrameInput::Call(Box::new(inputs)), depth);
        let kind = result.instruction_result();
        let returned = if kind.is_ok_or_revert() { result.gas().remaining() } else { 0 };
        if kind.is_ok() {
            self.host().refund += result.gas().refunded();
        }
        let output = if kind.is_ok_or_revert() { result.into_interpreter_result().output } else { Bytes::new() };
        (output, base + gas.saturating_sub(returned), kind.is_ok())
    }

    fn frame_below(&mut self, frame_input: FrameInput, depth: usize) -> FrameResult {
        let host = self.host();
        let memory = host.memory_context.new_child_context();
        let exec = host.exec.take().expect("one frame runs at a time");
        let (exec, result) = frame(exec, FrameInit { depth: depth + 1, memory, frame_input });
        let host = self.host();
        host.exec = Some(exec);
        host.memory_context.free_child_context();
        result
    }

    fn create(&mut self, code: u32, len: u32, endowment: u32, salt: Option<u32>, contract: u32, revert_len: u32) -> Fallible<()> {
        let pointers = if salt.is_some() { 4 } else { 3 };
        self.buy_ink(price::HOSTIO + pointers * price::PTR + price::EVM_API)?;
        self.buy_ink(price::read_ink(len))?;
        self.buy_ink(price::read_ink(len))?;
        let code = self.read(code, len)?;
        let value = self.read_u256(endowment)?;
        let salt = salt.map(|ptr| self.read_u256(ptr)).transpose()?;
        let start = self.gas_left()?;

        let host = self.host();
        let (acting, depth) = (host.acting, host.depth);
        if host.read_only {
            return failure("contract creation in a static call");
        }
        let mut base = 32_000;
        if salt.is_some() {
            base += 6 * u64::from(len.div_ceil(32));
        }
        if start < base {
            return failure("out of gas in a contract creation");
        }
        let mut gas = start - base;
        let kept = gas / 64;
        gas -= kept;
        let told = (self.0.data().watch == Watch::All).then(|| code.clone());
        let scheme = salt.map_or(CreateScheme::Create, |salt| CreateScheme::Create2 { salt });
        let inputs = CreateInputs::new(acting, scheme, value, code.into(), gas, 0);
        let result = self.frame_below(FrameInput::Create(Box::new(inputs)), depth);

        let kind = result.instruction_result();
        let returned = if kind.is_ok_or_revert() { result.gas().remaining() } else { 0 };
        if kind.is_ok() {
            self.host().refund += result.gas().refunded();
        }
        let address = match &result {
            FrameResult::Create(outcome) if kind.is_ok() => outcome.address.unwrap_or_default(),
            _ => Address::ZERO,
        };
        let output = if kind == InstructionResult::Revert { result.into_interpreter_result().output } else { Bytes::new() };
        self.buy_gas(start.saturating_sub(returned + kept))?;
        let len = output.len() as u32;
        self.host().return_data = output;
        self.write(revert_len, &len.to_le_bytes())?;
        self.write(contract, address.as_slice())?;
        if let Some(code) = told {
            let salt = salt.map(|salt| salt.to_be_bytes::<32>());
            let salt = salt.as_ref().map_or(&[] as &[u8], |salt| salt);
            self.tell(&[&value.to_be_bytes::<32>(), salt, &code], &[address.as_slice(), &len.to_be_bytes()]);
        }
        Ok(())
    }

    fn read_return_data(&mut self, dest: u32, offset: u32, size: u32) -> Fallible<u32> {
        self.buy_ink(price::HOSTIO + price::EVM_API)?;
        let data = self.host().return_data.clone();
        let rest = data.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(size as usize);
        self.buy_ink(price::write_ink(len as u32))?;
        if len > 0 {
            self.write(dest, &rest[..len])?;
        }
        self.tell(&[&offset.to_be_bytes(), &size.to_be_bytes()], &[&rest[..len]]);
        Ok(len as u32)
    }

    fn return_data_size(&mut self) -> Fallible<u32> {
        self.buy_ink(price::HOSTIO)?;
        let len = self.host().return_data.len() as u32;
        self.tell(&[], &[&len.to_be_bytes()]);
        Ok(len)
    }

    fn emit_log(&mut self, ptr: u32, len: u32, topics: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + price::EVM_API)?;
        if topics > 4 || len < topics * 32 {
            return failure("bad topic data");
        }
        self.buy_ink(price::read_ink(len))?;
        self.buy_gas(375 * (1 + u64::from(topics)) + 8 * u64::from(len - topics * 32))?;
        let data = self.read(ptr, len)?;
        if self.host().read_only {
            return failure("log in a static call");
        }
        self.tell(&[&topics.to_be_bytes(), &data], &[]);
        let (topics, data) = data.split_at(topics as usize * 32);
        let topics = topics.chunks_exact(32).map(B256::from_slice).collect();
        let address = self.host().acting;
        self.journal().log(Log::new_unchecked(address, topics, data.to_vec().into()));
        Ok(())
    }

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

    fn account_balance(&mut self, address: u32, dest: u32) -> Fallible<()> {
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

    fn account_codehash(&mut self, address: u32, dest: u32) -> Fallible<()> {
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

    fn account_code(&mut self, address: u32, offset: u32, size: u32, dest: u32) -> Fallible<u32> {
        let (address, code) = self.code(address)?;
        self.buy_ink(price::write_ink(code.len() as u32))?;
        let rest = code.get(offset as usize..).unwrap_or_default();
        let part = &rest[..rest.len().min(size as usize)];
        self.write(dest, part)?;
        self.tell(&[address.as_slice(), &offset.to_be_bytes(), &size.to_be_bytes()], &[part]);
        Ok(part.len() as u32)
    }

    fn account_code_size(&mut self, address: u32) -> Fallible<u32> {
        let (address, code) = self.code(address)?;
        let len = code.len() as u32;
        self.tell(&[address.as_slice()], &[&len.to_be_bytes()]);
        Ok(len)
    }

    // Block and transaction

    fn write_address(&mut self, dest: u32, value: fn(&mut Self) -> Address) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + price::PTR)?;
        let value = value(self);
        self.tell(&[], &[value.as_slice()]);
        self.write(dest, value.as_slice())
    }

    fn write_number(&mut self, dest: u32, value: fn(&mut Self) -> U256) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + price::PTR)?;
        let value = value(self);
        self.tell(&[], &[&value.to_be_bytes::<32>()]);
        self.write_u256(dest, value)
    }

    fn number<T: Number>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Fallible<T> {
        self.buy_ink(price::HOSTIO)?;
        let value = value(self);
        self.tell_number(value);
        Ok(value)
    }

    fn tell_number(&mut self, value: impl Number) {
        if self.0.data().watch == Watch::All {
            self.tell(&[], &[&value.bytes()]);
        }
    }

    /// Writes what arithmetic on words gave to where the first of them lay.
    fn write_computed<const N: usize>(&mut self, dest: u32, words: [U256; N], value: U256) -> Fallible<()> {
        if self.0.data().watch == Watch::All {
            let words: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes::<32>()).collect();
            self.tell(&[&words], &[&value.to_be_bytes::<32>()]);
        }
        self.write_u256(dest, value)
    }

    // Arithmetic

    fn math_div(&mut self, value: u32, divisor: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + 3 * price::PTR + price::DIV)?;
        let (a, b) = (self.read_u256(value)?, self.read_u256(divisor)?);
        self.write_computed(value, [a, b], a.checked_div(b).unwrap_or_default())
    }

    fn math_mod(&mut self, value: u32, modulus: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + 3 * price::PTR + price::DIV)?;
        let (a, b) = (self.read_u256(value)?, self.read_u256(modulus)?);
        self.write_computed(value, [a, b], a.checked_rem(b).unwrap_or_default())
    }

    fn math_pow(&mut self, value: u32, exponent: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + 3 * price::PTR)?;
        let a = self.read_u256(value)?;
        let exponent: [u8; 32] = self.read_fixed(exponent)?;
        self.buy_ink(price::pow_ink(&exponent))?;
        let b = U256::from_be_bytes(exponent);
        self.write_computed(value, [a, b], a.wrapping_pow(b))
    }

    fn math_add_mod(&mut self, value: u32, addend: u32, modulus: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + 4 * price::PTR + price::ADD_MOD)?;
        let (a, b, c) = (self.read_u256(value)?, self.read_u256(addend)?, self.read_u256(modulus)?);
        self.write_computed(value, [a, b, c], a.add_mod(b, c))
    }

    fn math_mul_mod(&mut self, value: u32, multiplier: u32, modulus: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO + 4 * price::PTR + price::MUL_MOD)?;
        let (a, b, c) = (self.read_u256(value)?, self.read_u256(multiplier)?, self.read_u256(modulus)?);
        self.write_computed(value, [a, b, c], a.mul_mod(b, c))
    }

    fn native_keccak256(&mut self, ptr: u32, len: u32, dest: u32) -> Fallible<()> {
        self.buy_ink(price::keccak_ink(len))?;
        let preimage = self.read(ptr, len)?;
        let digest = keccak256(&preimage);
        self.tell(&[&preimage], &[digest.as_slice()]);
        self.write(dest, digest.as_slice())
    }

    fn say(&mut self, text: impl fmt::Display) {
        let text = text.to_string();
        eprintln!("Stylus says: {text}");
        self.tell(&[text.as_bytes()], &[]);
    }
}

/// What a host function may return.
trait Number: Copy {
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

/// Gas for a storage write and what it gives back (EIP-2200, 2929 and 3529).
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

/// Everything a program may import.
pub(crate) fn linker(engine: &Engine, debug: bool) -> wasmtime::Result<Linker<Host>> {
    let mut linker = Linker::new(engine);
    macro_rules! hook {
        ($name:literal, |$hook:ident $(, $arg:ident: $ty:ty)*| -> $ret:ty $body:block) => {
            linker.func_wrap(MODULE, $name, |mut caller: Caller<'_, Host> $(, $arg: $ty)*| -> wasmtime::Result<$ret> {
                let mut hook = Hook(&mut caller);
                hook.begin();
                let $hook = &mut hook;
                let result: Fallible<$ret> = $body;
                hook.end($name, &result);
                result.map_err(wasmtime::Error::new)
            })?;
        };
    }
    hook!("read_args", |h, dest: u32| -> () { h.read_args(dest) });
    hook!("write_result", |h, ptr: u32, len: u32| -> () { h.write_result(ptr, len) });
    hook!("exit_early", |h, status: u32| -> () {
        h.tell(&[&status.to_be_bytes()], &[]);
        Err(Escape::Exit(status))
    });
    hook!("pay_for_memory_grow", |h, pages: u32| -> () { h.pay_for_memory_grow(pages) });
    hook!("storage_load_bytes32", |h, key: u32, dest: u32| -> () { h.storage_load(key, dest) });
    hook!("storage_cache_bytes32", |h, key: u32, value: u32| -> () { h.storage_cache(key, value) });
    hook!("storage_flush_cache", |h, clear: u32| -> () { h.storage_flush(clear != 0) });
    hook!("transient_load_bytes32", |h, key: u32, dest: u32| -> () { h.transient_load(key, dest) });
    hook!("transient_store_bytes32", |h, key: u32, value: u32| -> () { h.transient_store(key, value) });
    hook!("call_contract", |h, to: u32, data: u32, len: u32, value: u32, gas: u64, ret: u32| -> u32 {
        h.call(CallScheme::Call, to, data, len, Some(value), gas, ret)
    });
    hook!("delegate_call_contract", |h, to: u32, data: u32, len: u32, gas: u64, ret: u32| -> u32 {
        h.call(CallScheme::DelegateCall, to, data, len, None, gas, ret)
    });
    hook!("static_call_contract", |h, to: u32, data: u32, len: u32, gas: u64, ret: u32| -> u32 {
        h.call(CallScheme::StaticCall, to, data, len, None, gas, ret)
    });
    hook!("create1", |h, code: u32, len: u32, value: u32, contract: u32, revert: u32| -> () {
        h.create(code, len, value, None, contract, revert)
    });
    hook!("create2", |h, code: u32, len: u32, value: u32, salt: u32, contract: u32, revert: u32| -> () {
        h.create(code, len, value, Some(salt), contract, revert)
    });
    hook!("read_return_data", |h, dest: u32, offset: u32, size: u32| -> u32 { h.read_return_data(dest, offset, size) });
    hook!("return_data_size", |h| -> u32 { h.return_data_size() });
    hook!("emit_log", |h, ptr: u32, len: u32, topics: u32| -> () { h.emit_log(ptr, len, topics) });
    hook!("account_balance", |h, address: u32, dest: u32| -> () { h.account_balance(address, dest) });
    hook!("account_code", |h, address: u32, offset: u32, size: u32, dest: u32| -> u32 {
        h.account_code(address, offset, size, dest)
    });
    hook!("account_code_size", |h, address: u32| -> u32 { h.account_code_size(address) });
    hook!("account_codehash", |h, address: u32, dest: u32| -> () { h.account_codehash(address, dest) });
    hook!("evm_gas_left", |h| -> u64 { h.buy_ink(price::HOSTIO).and_then(|()| h.gas_left()).inspect(|gas| h.tell_number(*gas)) });
    hook!("evm_ink_left", |h| -> u64 { h.buy_ink(price::HOSTIO).and_then(|()| h.ink()).inspect(|ink| h.tell_number(*ink)) });
    hook!("block_basefee", |h, dest: u32| -> () { h.write_number(dest, |h| U256::from(h.exec().block.base_fee)) });
    hook!("chainid", |h| -> u64 { h.number(|h| h.exec().config.chain_id) });
    hook!("block_coinbase", |h, dest: u32| -> () { h.write_address(dest, |h| h.exec().block.coinbase) });
    hook!("block_gas_limit", |h| -> u64 { h.number(|h| h.exec().block.gas_limit) });
    hook!("block_number", |h| -> u64 { h.number(|h| h.exec().block.l1_number) });
    hook!("block_timestamp", |h| -> u64 { h.number(|h| h.exec().block.timestamp) });
    hook!("contract_address", |h, dest: u32| -> () { h.write_address(dest, |h| h.host().acting) });
    hook!("math_div", |h, value: u32, divisor: u32| -> () { h.math_div(value, divisor) });
    hook!("math_mod", |h, value: u32, modulus: u32| -> () { h.math_mod(value, modulus) });
    hook!("math_pow", |h, value: u32, exponent: u32| -> () { h.math_pow(value, exponent) });
    hook!("math_add_mod", |h, a: u32, b: u32, c: u32| -> () { h.math_add_mod(a, b, c) });
    hook!("math_mul_mod", |h, a: u32, b: u32, c: u32| -> () { h.math_mul_mod(a, b, c) });
    hook!("msg_reentrant", |h| -> u32 { h.number(|h| u32::from(h.host().reentrant)) });
    hook!("msg_sender", |h, dest: u32| -> () { h.write_address(dest, |h| h.host().caller) });
    hook!("msg_value", |h, dest: u32| -> () { h.write_number(dest, |h| h.host().value) });
    hook!("native_keccak256", |h, ptr: u32, len: u32, dest: u32| -> () { h.native_keccak256(ptr, len, dest) });
    hook!("tx_gas_price", |h, dest: u32| -> () { h.write_number(dest, |h| U256::from(h.exec().gas_price)) });
    hook!("tx_ink_price", |h| -> u32 { h.number(|h| h.host().ink_price as u32) });
    hook!("tx_origin", |h, dest: u32| -> () { h.write_address(dest, |h| h.exec().origin) });

    if debug {
        macro_rules! console {
            ($name:literal, |$hook:ident $(, $arg:ident: $ty:ty)*| -> $ret:ty $body:block) => {
                linker.func_wrap("console", $name, |mut caller: Caller<'_, Host> $(, $arg: $ty)*| -> wasmtime::Result<$ret> {
                    let mut hook = Hook(&mut caller);
                    hook.begin();
                    let $hook = &mut hook;
                    let result: Fallible<$ret> = $body;
                    hook.end(if $name == "log_txt" { "console_log_text" } else { "console_log" }, &result);
                    result.map_err(wasmtime::Error::new)
                })?;
            };
        }
        console!("log_txt", |h, ptr: u32, len: u32| -> () { h.read(ptr, len).map(|text| h.say(String::from_utf8_lossy(&text))) });
        console!("log_i32", |h, value: u32| -> () {
            h.say(value);
            Ok(())
        });
        console!("log_i64", |h, value: u64| -> () {
            h.say(value);
            Ok(())
        });
        console!("tee_i32", |h, value: u32| -> u32 {
            h.say(value);
            Ok(value)
        });
        console!("tee_i64", |h, value: u64| -> u64 {
            h.say(value);
            Ok(value)
        });
    }
    Ok(linker)
}

impl Exec {
    /// Opens pages; returns how many were open and the most there had been.
    pub(crate) fn add_pages(&mut self, pages: u16) -> (u16, u16) {
        let before = (self.pages_open, self.pages_ever);
        self.pages_open = self.pages_open.saturating_add(pages);
        self.pages_ever = self.pages_ever.max(self.pages_open);
        before
    }

    /// Whether all open programs together have more pages than the chain allows.
    pub(crate) fn over_page_limit(&self, limit: u16) -> bool {
        self.config.arbos >= 59 && limit > 0 && self.pages_open > limit
    }
}
