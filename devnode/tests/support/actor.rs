//! A program and a contract that act as their calldata says.

use alloy_primitives::{Address, B256, U256};

use super::chain::Chain;

/// Acts by byte 0 of its calldata. 0 calls, 1 delegates, 2 calls statically, 3 creates (init code in the rest), 4 stores, 5 loads, 6 logs
/// the rest, 7 stores the rest transiently, 8 loads it. 9 tells whether it was re-entered, 10 stores and then fails, 11 stores and reverts
/// with the rest. Calls have the address in bytes 1 to 20, the value in 21 to 52 and calldata after it. For 4 and 10, bytes 1 to 32 are a
/// word. Return data of calls is passed on, with the status as its own.
pub const ACTOR: &str = r#"(module
    (memory (export "memory") 2 2)
    (func $pass (param $status i32) (result i32) (local $len i32)
        (local.set $len (call $return_data_size))
        (drop (call $read_return_data (i32.const 0) (i32.const 0) (local.get $len)))
        (call $write_result (i32.const 0) (local.get $len))
        (local.get $status))
    (func (export "user_entrypoint") (param $len i32) (result i32) (local $op i32)
        (call $read_args (i32.const 1024))
        (local.set $op (i32.load8_u (i32.const 1024)))
        (if (i32.eq (local.get $op) (i32.const 0)) (then (return (call $pass (call $call_contract (i32.const 1025)
            (i32.const 1077) (i32.sub (local.get $len) (i32.const 53)) (i32.const 1045) (i64.const -1) (i32.const 64))))))
        (if (i32.eq (local.get $op) (i32.const 1)) (then (return (call $pass (call $delegate (i32.const 1025)
            (i32.const 1077) (i32.sub (local.get $len) (i32.const 53)) (i64.const -1) (i32.const 64))))))
        (if (i32.eq (local.get $op) (i32.const 2)) (then (return (call $pass (call $static (i32.const 1025)
            (i32.const 1077) (i32.sub (local.get $len) (i32.const 53)) (i64.const -1) (i32.const 64))))))
        (if (i32.eq (local.get $op) (i32.const 3)) (then
            (call $create1 (i32.const 1025) (i32.sub (local.get $len) (i32.const 1)) (i32.const 128) (i32.const 64) (i32.const 96))
            (call $write_result (i32.const 64) (i32.const 20))))
        (if (i32.or (i32.or (i32.eq (local.get $op) (i32.const 4)) (i32.eq (local.get $op) (i32.const 10))) (i32.eq (local.get $op) (i32.const 11))) (then
            (call $cache (i32.const 128) (i32.const 1025)) (call $flush (i32.const 0))
            (if (i32.eq (local.get $op) (i32.const 10)) (then unreachable))
            (if (i32.eq (local.get $op) (i32.const 11)) (then
                (call $write_result (i32.const 1025) (i32.const 32)) (return (i32.const 1))))))
        (if (i32.eq (local.get $op) (i32.const 5)) (then
            (call $load (i32.const 128) (i32.const 64)) (call $write_result (i32.const 64) (i32.const 32))))
        (if (i32.eq (local.get $op) (i32.const 6)) (then
            (call $emit_log (i32.const 1025) (i32.sub (local.get $len) (i32.const 1)) (i32.const 1))))
        (if (i32.eq (local.get $op) (i32.const 7)) (then (call $tstore (i32.const 128) (i32.const 1025))))
        (if (i32.eq (local.get $op) (i32.const 8)) (then
            (call $tload (i32.const 128) (i32.const 64)) (call $write_result (i32.const 64) (i32.const 32))))
        (if (i32.eq (local.get $op) (i32.const 9)) (then
            (i32.store8 (i32.const 64) (call $msg_reentrant)) (call $write_result (i32.const 64) (i32.const 1))))
        (i32.const 0)))"#;

/// Similar EVM code: CALL, DELEGATECALL or STATICCALL (by the first byte) to the address in bytes 1 to 20 with the call value and the
/// calldata from byte 53 on. Passes the return data on.
pub fn evm_actor() -> Vec<u8> {
    let mut code = vec![
        0x60, 0x35, 0x36, 0x03, // PUSH1 53, CALLDATASIZE, SUB
        0x80, 0x60, 0x35, 0x5f, 0x37, // DUP1, PUSH1 53, PUSH0, CALLDATACOPY
        0x5f, 0x35, 0x60, 0xf8, 0x1c, // first byte
        0x80, 0x60, 0x01, 0x14, 0x60, 0x2e, 0x57, // DUP1, == 1 -> 0x2e
        0x60, 0x02, 0x14, 0x60, 0x40, 0x57, // == 2 -> 0x40
    ];
    // CALL(gas, address, callvalue, 0, len, 0, 0); stack: len
    code.extend([0x5f, 0x5f, 0x91, 0x5f, 0x34]); // PUSH0 PUSH0 SWAP2 PUSH0 CALLVALUE : 0 0 -> [0,0(len moved)]
    code.extend([0x60, 0x01, 0x35, 0x60, 0x60, 0x1c, 0x5a, 0xf1]); // address, GAS, CALL
    code.extend([0x60, 0x4f, 0x56]); // jump to end
    while code.len() < 0x2e {
        code.push(0x00);
    }
    code.extend([0x5b, 0x50, 0x5f, 0x5f, 0x91, 0x5f]); // JUMPDEST POP(op) PUSH0 PUSH0 SWAP2 PUSH0
    code.extend([0x60, 0x01, 0x35, 0x60, 0x60, 0x1c, 0x5a, 0xf4, 0x60, 0x4f, 0x56]); // DELEGATECALL
    while code.len() < 0x40 {
        code.push(0x00);
    }
    code.extend([0x5b, 0x5f, 0x5f, 0x91, 0x5f]);
    code.extend([0x60, 0x01, 0x35, 0x60, 0x60, 0x1c, 0x5a, 0xfa]); // STATICCALL
    while code.len() < 0x4f {
        code.push(0x5b);
    }
    // JUMPDEST, copy the return data, RETURN or REVERT
    code.extend([0x5b, 0x3d, 0x5f, 0x5f, 0x3e, 0x5f, 0x3d, 0x91, 0x60, 0x5d, 0x57, 0xfd, 0x00, 0x00, 0x5b, 0xf3]);
    code
}

pub fn through(op: u8, to: Address, value: u64, data: &[u8]) -> Vec<u8> {
    let mut call = vec![op];
    call.extend(to);
    call.extend(U256::from(value).to_be_bytes::<32>());
    call.extend(data);
    call
}

pub fn with_word(op: u8, word: u8) -> Vec<u8> {
    let mut call = vec![op];
    call.extend(B256::repeat_byte(word));
    call
}

pub fn stored(chain: &Chain, at: Address) -> u8 {
    chain.state.storage(at, U256::ZERO).to_be_bytes::<32>()[0]
}
