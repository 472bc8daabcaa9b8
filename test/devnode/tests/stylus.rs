//! Programs on the chain.

mod support;

use alloy_primitives::{Address, B256, U256};
use muster_devnode::evm::Status;
use support::{Chain, ALICE};

/// Stores its argument in slot 0 and returns what was there before.
const SWAP: &str = r#"(module
    (import "vm_hooks" "read_args" (func $read_args (param i32)))
    (import "vm_hooks" "write_result" (func $write_result (param i32 i32)))
    (import "vm_hooks" "storage_load_bytes32" (func $load (param i32 i32)))
    (import "vm_hooks" "storage_cache_bytes32" (func $store (param i32 i32)))
    (import "vm_hooks" "storage_flush_cache" (func $flush (param i32)))
    (memory (export "memory") 1 1)
    (func (export "user_entrypoint") (param $len i32) (result i32)
        (call $read_args (i32.const 32))
        (call $load (i32.const 0) (i32.const 64))
        (call $store (i32.const 0) (i32.const 32))
        (call $flush (i32.const 0))
        (call $write_result (i32.const 64) (i32.const 32))
        (i32.const 0)))"#;

#[test]
fn a_program_keeps_its_storage() {
    let mut chain = Chain::new();
    let swap = chain.program(SWAP);
    let first = chain.send(swap, B256::repeat_byte(7).to_vec());
    assert_eq!(first.status, Status::Success, "{first:?}");
    assert_eq!(first.output.as_ref(), B256::ZERO.as_slice());
    let second = chain.send(swap, B256::repeat_byte(9).to_vec());
    assert_eq!(second.output.as_ref(), B256::repeat_byte(7).as_slice());
    assert_eq!(chain.state.storage(swap, U256::ZERO), U256::from_be_bytes([9; 32]));
    assert_eq!(second.stylus.len(), 1);
    println!("{first:?}\n{second:?}");
    let _ = (ALICE, Address::ZERO);
}
