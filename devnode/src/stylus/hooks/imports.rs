//! The functions there are: their types, and their implementations.

use revm::interpreter::CallScheme;
use revm::primitives::U256;
use wasmi::{Caller, Engine, Error, Linker};
use wasmparser::ValType;

use super::{price, Escape, Fallible, Hook, Host, MODULE};

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

/// Everything a program may import.
pub(crate) fn linker(engine: &Engine, debug: bool) -> Result<Linker<Host>, Error> {
    let mut linker = Linker::new(engine);
    macro_rules! hook {
        ($name:literal, |$hook:ident $(, $arg:ident: $ty:ty)*| -> $ret:ty $body:block) => {
            linker.func_wrap(MODULE, $name, |mut caller: Caller<'_, Host> $(, $arg: $ty)*| -> Result<$ret, Error> {
                let mut hook = Hook(&mut caller);
                hook.begin();
                let $hook = &mut hook;
                let result: Fallible<$ret> = $body;
                hook.end($name, &result);
                result.map_err(Error::host)
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
    hook!("tx_gas_price", |h, dest: u32| -> () { h.write_number(dest, |h| U256::from(h.exec().offered)) });
    hook!("tx_ink_price", |h| -> u32 { h.number(|h| h.host().ink_price as u32) });
    hook!("tx_origin", |h, dest: u32| -> () { h.write_address(dest, |h| h.exec().origin) });

    if debug {
        macro_rules! console {
            ($name:literal, |$hook:ident $(, $arg:ident: $ty:ty)*| -> $ret:ty $body:block) => {
                linker.func_wrap("console", $name, |mut caller: Caller<'_, Host> $(, $arg: $ty)*| -> Result<$ret, Error> {
                    let mut hook = Hook(&mut caller);
                    hook.begin();
                    let $hook = &mut hook;
                    let result: Fallible<$ret> = $body;
                    hook.end(if $name == "log_txt" { "console_log_text" } else { "console_log" }, &result);
                    result.map_err(Error::host)
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
