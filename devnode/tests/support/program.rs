//! Programs from their text.

/// Every host function, by the name that the programs here call it by. Those that aren't called cost nothing.
pub const IMPORTS: &str = r#"
    (import "vm_hooks" "read_args" (func $read_args (param i32)))
    (import "vm_hooks" "write_result" (func $write_result (param i32 i32)))
    (import "vm_hooks" "exit_early" (func $exit_early (param i32)))
    (import "vm_hooks" "storage_load_bytes32" (func $load (param i32 i32)))
    (import "vm_hooks" "storage_cache_bytes32" (func $cache (param i32 i32)))
    (import "vm_hooks" "storage_flush_cache" (func $flush (param i32)))
    (import "vm_hooks" "transient_load_bytes32" (func $tload (param i32 i32)))
    (import "vm_hooks" "transient_store_bytes32" (func $tstore (param i32 i32)))
    (import "vm_hooks" "call_contract" (func $call_contract (param i32 i32 i32 i32 i64 i32) (result i32)))
    (import "vm_hooks" "delegate_call_contract" (func $delegate (param i32 i32 i32 i64 i32) (result i32)))
    (import "vm_hooks" "static_call_contract" (func $static (param i32 i32 i32 i64 i32) (result i32)))
    (import "vm_hooks" "create1" (func $create1 (param i32 i32 i32 i32 i32)))
    (import "vm_hooks" "create2" (func $create2 (param i32 i32 i32 i32 i32 i32)))
    (import "vm_hooks" "read_return_data" (func $read_return_data (param i32 i32 i32) (result i32)))
    (import "vm_hooks" "return_data_size" (func $return_data_size (result i32)))
    (import "vm_hooks" "emit_log" (func $emit_log (param i32 i32 i32)))
    (import "vm_hooks" "account_balance" (func $account_balance (param i32 i32)))
    (import "vm_hooks" "account_code" (func $account_code (param i32 i32 i32 i32) (result i32)))
    (import "vm_hooks" "account_code_size" (func $account_code_size (param i32) (result i32)))
    (import "vm_hooks" "account_codehash" (func $account_codehash (param i32 i32)))
    (import "vm_hooks" "evm_gas_left" (func $evm_gas_left (result i64)))
    (import "vm_hooks" "evm_ink_left" (func $evm_ink_left (result i64)))
    (import "vm_hooks" "block_basefee" (func $block_basefee (param i32)))
    (import "vm_hooks" "chainid" (func $chainid (result i64)))
    (import "vm_hooks" "block_coinbase" (func $block_coinbase (param i32)))
    (import "vm_hooks" "block_gas_limit" (func $block_gas_limit (result i64)))
    (import "vm_hooks" "block_number" (func $block_number (result i64)))
    (import "vm_hooks" "block_timestamp" (func $block_timestamp (result i64)))
    (import "vm_hooks" "contract_address" (func $contract_address (param i32)))
    (import "vm_hooks" "math_div" (func $math_div (param i32 i32)))
    (import "vm_hooks" "math_mod" (func $math_mod (param i32 i32)))
    (import "vm_hooks" "math_pow" (func $math_pow (param i32 i32)))
    (import "vm_hooks" "math_add_mod" (func $math_add_mod (param i32 i32 i32)))
    (import "vm_hooks" "math_mul_mod" (func $math_mul_mod (param i32 i32 i32)))
    (import "vm_hooks" "msg_reentrant" (func $msg_reentrant (result i32)))
    (import "vm_hooks" "msg_sender" (func $msg_sender (param i32)))
    (import "vm_hooks" "msg_value" (func $msg_value (param i32)))
    (import "vm_hooks" "native_keccak256" (func $keccak (param i32 i32 i32)))
    (import "vm_hooks" "tx_gas_price" (func $tx_gas_price (param i32)))
    (import "vm_hooks" "tx_ink_price" (func $tx_ink_price (result i32)))
    (import "vm_hooks" "tx_origin" (func $tx_origin (param i32)))
    (import "vm_hooks" "pay_for_memory_grow" (func $pay_for_memory_grow (param i32)))
"#;

/// The imports that a text lacks, of the host functions that it calls. `memory.grow` calls one too.
fn imports(text: &str) -> String {
    let called = |import: &&str| {
        let Some((_, rest)) = import.split_once("(func $") else { return false };
        let name = &rest[..rest.find([' ', ')']).unwrap_or(rest.len())];
        let call = format!("(call ${name}");
        text.split(&call).skip(1).any(|after| after.starts_with([' ', ')']))
            || name == "pay_for_memory_grow" && text.contains("memory.grow")
    };
    IMPORTS.lines().filter(called).filter(|import| !text.contains(import.trim())).collect()
}

/// A program from its text, which need not list its imports.
pub fn wasm(text: &str) -> Vec<u8> {
    let rest = text.strip_prefix("(module").expect("a module");
    let text = format!("(module {}{rest}", imports(text));
    wat::parse_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}
