//! The node survives any request.

mod support;

use alloy_primitives::{Address, Bytes, U256};
use alloy_sol_types::SolCall;
use muster_devnode::evm::{Status, TraceRequest};
use muster_devnode::trace::StepOptions;
use support::chain::{activateProgramCall, becomeChainOwnerCall, cacheProgramCall, Chain};
use support::program::wasm;
use support::Random;

/// Everything that can be recorded.
const TRACES: [TraceRequest; 5] = [
    TraceRequest::Calls,
    TraceRequest::Steps(StepOptions { stack: true, memory: true, storage: true, return_data: true, limit: 0 }),
    TraceRequest::Hostios,
    TraceRequest::Accessed,
    TraceRequest::Profile,
];

/// Uses a bit of everything.
const PROGRAM: &str = r#"(module
    (type $t (func (param i32) (result i32)))
    (table 2 funcref) (elem (i32.const 0) $f $g)
    (global $g (mut i64) (i64.const 5))
    (memory (export "memory") 1)
    (data (i32.const 8) "data")
    (func $f (type $t) (i32.add (local.get 0) (i32.const 1)))
    (func $g (type $t) (local i64) (local.set 1 (global.get $g)) (i32.wrap_i64 (i64.mul (local.get 1) (i64.const 3))))
    (func (export "user_entrypoint") (param $len i32) (result i32) (local $i i32)
        (call $read_args (i32.const 0))
        (loop $l
            (drop (call_indirect (type $t) (local.get $i) (i32.and (local.get $i) (i32.const 1))))
            (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 10))))
        (call $load (i32.const 0) (i32.const 64)) (call $cache (i32.const 0) (i32.const 32)) (call $flush (i32.const 1))
        (drop (call $call_contract (i32.const 0) (i32.const 0) (local.get $len) (i32.const 256) (i64.const 100000) (i32.const 128)))
        (drop (call $read_return_data (i32.const 0) (i32.const 0) (i32.const 64)))
        (call $create1 (i32.const 0) (i32.const 32) (i32.const 256) (i32.const 64) (i32.const 96))
        (drop (call $account_code (i32.const 0) (i32.const 0) (i32.const 32) (i32.const 64)))
        (call $keccak (i32.const 0) (i32.const 100) (i32.const 0)) (call $math_pow (i32.const 0) (i32.const 32))
        (call $emit_log (i32.const 0) (i32.const 64) (i32.const 1))
        (memory.copy (i32.const 0) (i32.const 100) (i32.const 50)) (drop (memory.grow (i32.const 1)))
        (block $b (br_table $b $b (i32.const 1)))
        (call $write_result (i32.const 0) (i32.const 64))
        (i32.const 0)))"#;

#[test]
fn damaged_modules_are_refused_or_run() {
    let good = wasm(PROGRAM);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut chain = Chain::new();
    let start = chain.state.clone();
    let (mut refused, mut ran) = (0, 0);
    for _ in 0..600 {
        let mut wasm = good.clone();
        for _ in 0..=random.below(2) {
            let at = random.below(wasm.len());
            match random.below(4) {
                0 => wasm[at] = random.next() as u8,
                1 => wasm[at] ^= 1 << random.below(8),
                2 => wasm.insert(at, random.next() as u8),
                _ => drop(wasm.remove(at)),
            }
        }
        chain.state = start.clone();
        let program = chain.deploy_wasm(&wasm);
        match chain.activate(program).status {
            Status::Success => {
                let mut tx = chain.tx(Some(program), vec![7; random.below(64)]);
                tx.gas_limit = 3_000_000;
                tx.trace = TRACES[random.below(TRACES.len())];
                let outcome = chain.run(&tx);
                assert!(outcome.gas_used <= tx.gas_limit && outcome.gas_used >= 21_000);
                ran += 1;
            }
            _ => refused += 1,
        }
    }
    assert!(ran > 20 && refused > 100, "{ran} ran, {refused} were refused");
}

#[test]
fn arbitrary_calldata_to_the_precompiles() {
    let mut random = Random(42);
    let mut chain = Chain::new();
    // Selectors that exist are found by trying those of the interfaces with random arguments.
    let selectors = [activateProgramCall::SELECTOR, becomeChainOwnerCall::SELECTOR, cacheProgramCall::SELECTOR];
    for _ in 0..1000 {
        let to = Address::with_last_byte([0x64, 0x65, 0x6b, 0x6c, 0x6e, 0x70, 0x71, 0x72, 0x73, 0x74, 0xff][random.below(11)]);
        let mut data: Vec<u8> = (0..random.below(100)).map(|_| random.next() as u8).collect();
        if random.below(2) == 0 {
            data.splice(0..0, selectors[random.below(selectors.len())]);
        }
        let mut tx = chain.tx(Some(to), data);
        tx.gas_limit = 3_000_000;
        let outcome = chain.run(&tx);
        assert!(outcome.gas_used <= tx.gas_limit);
    }
}

#[test]
fn arbitrary_evm_code() {
    let mut random = Random(7);
    let mut chain = Chain::new();
    let start = chain.state.clone();
    for _ in 0..1000 {
        chain.state = start.clone();
        let code: Vec<u8> = (0..random.below(200)).map(|_| random.next() as u8).collect();
        let target = Address::repeat_byte(0x55);
        chain.state.set_code(target, Bytes::from(code.clone()));
        let mut tx = chain.tx(Some(target), vec![1, 2, 3]);
        tx.gas_limit = 1_000_000;
        tx.trace = TRACES[random.below(TRACES.len())];
        let outcome = chain.run(&tx);
        assert!(outcome.gas_used <= tx.gas_limit);
        let tx = chain.tx(None, code);
        chain.run(&tx);
    }
}

#[test]
fn depth_is_bounded_by_the_rules_not_by_the_machine() {
    let mut chain = Chain::new();
    // A contract that calls itself with all gas: depth 1,024 is reached with 10^13 gas.
    let target = Address::repeat_byte(0x66);
    chain.state.set_code(
        target,
        Bytes::from_static(&[0x5f, 0x5f, 0x5f, 0x5f, 0x5f, 0x30, 0x5a, 0xf1, 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3]),
    );
    let hashes = chain.hashes.clone();
    let block = chain.block(&hashes);
    let mut tx = chain.tx(Some(target), vec![]);
    (tx.is_call, tx.gas_price, tx.nonce, tx.gas_limit) = (true, 0, None, 10_000_000_000_000);
    let outcome = chain.evm.call(&chain.state, &block, &tx).unwrap();
    assert_eq!(outcome.status, Status::Success);
}

#[test]
fn deep_stacks_of_earlier_versions() {
    // 262,144 words until ArbOS 50.
    let mut chain = Chain::of_version(40);
    let wide = format!(
        r#"(module (memory (export "memory") 1 1)
           (func $f (param i64) (result i64) (local {}) {} (call $f (local.get 0)) {} )
           (func $g (call $g))
           (func (export "user_entrypoint") (param i32) (result i32)
             (if (local.get 0) (then (drop (call $f (i64.const 1)))) (else (call $g))) i32.const 0))"#,
        "i64 ".repeat(100),
        "(i64.add (local.get 0) (i64.const 7)) ".repeat(200),
        "i64.add ".repeat(200)
    );
    let program = chain.program(&wide);
    for data in [vec![], vec![1]] {
        let outcome = chain.send(program, data);
        assert_eq!(outcome.status, Status::Halt("max call depth exceeded".into()));
    }
}

#[test]
fn state_stays_cheap_to_copy_and_to_change() {
    let mut chain = Chain::new();
    let at = Address::repeat_byte(1);
    for slot in 0..200_000u64 {
        chain.state.set_storage(at, U256::from(slot), U256::from(slot + 1));
    }
    let snapshots: Vec<_> = (0..1000).map(|_| chain.state.clone()).collect();
    // The time of a copy of everything here and now.
    let copying = std::time::Instant::now();
    let copy: std::collections::BTreeMap<_, _> = chain.state.storage_iter(at).collect();
    let copying = copying.elapsed();
    assert_eq!(copy.len(), 200_000);
    let code = chain.deploy(&[0x60, 0x01, 0x5f, 0x55, 0x00]);
    let start = std::time::Instant::now();
    for _ in 0..200 {
        chain.send(code, vec![]);
    }
    // Far more than it takes, far less than copying the state 200 times would.
    assert!(start.elapsed() < copying * 10, "{:?}, and a copy takes {copying:?}", start.elapsed());
    assert_eq!(snapshots[999].storage(at, U256::from(5)), U256::from(6));
    assert_eq!(chain.state.storage_iter(at).count(), 200_000);
}
