//! Calls, contracts created, their return data, and logs.

use revm::context::JournalTr;
use revm::handler::FrameResult;
use revm::interpreter::interpreter_action::FrameInit;
use revm::interpreter::{
    CallInput, CallInputs, CallScheme, CallValue, CreateInputs, CreateScheme, FrameInput, InstructionResult,
};
use revm::primitives::{Address, Bytes, Log, B256, U256};

use super::{failure, price, Fallible, Hook};
use crate::exec::frame;
use crate::trace::Watch;

impl Hook<'_, '_> {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn call(
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

    pub(super) fn create(
        &mut self,
        code: u32,
        len: u32,
        endowment: u32,
        salt: Option<u32>,
        contract: u32,
        revert_len: u32,
    ) -> Fallible<()> {
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

    pub(super) fn read_return_data(&mut self, dest: u32, offset: u32, size: u32) -> Fallible<u32> {
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

    pub(super) fn return_data_size(&mut self) -> Fallible<u32> {
        self.buy_ink(price::HOSTIO)?;
        let len = self.host().return_data.len() as u32;
        self.tell(&[], &[&len.to_be_bytes()]);
        Ok(len)
    }

    pub(super) fn emit_log(&mut self, ptr: u32, len: u32, topics: u32) -> Fallible<()> {
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
}
