//! Programs among each other and with EVM contracts: calls, value, rollback, memory, depth.

mod support;

use alloy_primitives::{keccak256, Address, Bytes, B256, U256};
use alloy_sol_types::{sol, SolCall, SolError};
use muster_devnode::evm::{CallFrame, CallKind, Outcome, Status, Trace, TraceRequest, BATCH_POSTER};
use muster_devnode::genesis::{CREATE2_FACTORY, STYLUS_DEPLOYER};
use support::{init_code, Chain, ALICE, ARB_SYS, ARB_WASM};

/// What its calldata says: byte 0 is 0 to call, 1 to delegate, 2 to call statically, 3 to create (init code in the
/// rest), 4 to store, 5 to load, 6 to log the rest, 7 to store the rest transiently, 8 to load it, 9 to tell whether
/// it was re-entered, 10 to store and then fail, 11 to store and revert with the rest. Calls have the address in bytes
/// 1 to 20, the value in 21 to 52 and calldata after it; 4 and 10 a word in 1 to 32. Return data of calls is passed on,
/// with the status as its own.
const ACTOR: &str = r#"(module
    (import "vm_hooks" "read_args" (func $read_args (param i32)))
    (import "vm_hooks" "write_result" (func $write_result (param i32 i32)))
    (import "vm_hooks" "storage_load_bytes32" (func $load (param i32 i32)))
    (import "vm_hooks" "storage_cache_bytes32" (func $cache (param i32 i32)))
    (import "vm_hooks" "storage_flush_cache" (func $flush (param i32)))
    (import "vm_hooks" "transient_load_bytes32" (func $tload (param i32 i32)))
    (import "vm_hooks" "transient_store_bytes32" (func $tstore (param i32 i32)))
    (import "vm_hooks" "call_contract" (func $call (param i32 i32 i32 i32 i64 i32) (result i32)))
    (import "vm_hooks" "delegate_call_contract" (func $delegate (param i32 i32 i32 i64 i32) (result i32)))
    (import "vm_hooks" "static_call_contract" (func $static (param i32 i32 i32 i64 i32) (result i32)))
    (import "vm_hooks" "create1" (func $create (param i32 i32 i32 i32 i32)))
    (import "vm_hooks" "read_return_data" (func $read_return_data (param i32 i32 i32) (result i32)))
    (import "vm_hooks" "return_data_size" (func $return_data_size (result i32)))
    (import "vm_hooks" "emit_log" (func $log (param i32 i32 i32)))
    (import "vm_hooks" "msg_reentrant" (func $reentrant (result i32)))
    (memory (export "memory") 2 2)
    (func $pass (param $status i32) (result i32) (local $len i32)
        (local.set $len (call $return_data_size))
        (drop (call $read_return_data (i32.const 0) (i32.const 0) (local.get $len)))
        (call $write_result (i32.const 0) (local.get $len))
        (local.get $status))
    (func (export "user_entrypoint") (param $len i32) (result i32) (local $op i32)
        (call $read_args (i32.const 1024))
        (local.set $op (i32.load8_u (i32.const 1024)))
        (if (i32.eq (local.get $op) (i32.const 0)) (then (return (call $pass (call $call (i32.const 1025)
            (i32.const 1077) (i32.sub (local.get $len) (i32.const 53)) (i32.const 1045) (i64.const -1) (i32.const 64))))))
        (if (i32.eq (local.get $op) (i32.const 1)) (then (return (call $pass (call $delegate (i32.const 1025)
            (i32.const 1077) (i32.sub (local.get $len) (i32.const 53)) (i64.const -1) (i32.const 64))))))
        (if (i32.eq (local.get $op) (i32.const 2)) (then (return (call $pass (call $static (i32.const 1025)
            (i32.const 1077) (i32.sub (local.get $len) (i32.const 53)) (i64.const -1) (i32.const 64))))))
        (if (i32.eq (local.get $op) (i32.const 3)) (then
            (call $create (i32.const 1025) (i32.sub (local.get $len) (i32.const 1)) (i32.const 128) (i32.const 64) (i32.const 96))
            (call $write_result (i32.const 64) (i32.const 20))))
        (if (i32.or (i32.or (i32.eq (local.get $op) (i32.const 4)) (i32.eq (local.get $op) (i32.const 10))) (i32.eq (local.get $op) (i32.const 11))) (then
            (call $cache (i32.const 128) (i32.const 1025)) (call $flush (i32.const 0))
            (if (i32.eq (local.get $op) (i32.const 10)) (then unreachable))
            (if (i32.eq (local.get $op) (i32.const 11)) (then
                (call $write_result (i32.const 1025) (i32.const 32)) (return (i32.const 1))))))
        (if (i32.eq (local.get $op) (i32.const 5)) (then
            (call $load (i32.const 128) (i32.const 64)) (call $write_result (i32.const 64) (i32.const 32))))
        (if (i32.eq (local.get $op) (i32.const 6)) (then
            (call $log (i32.const 1025) (i32.sub (local.get $len) (i32.const 1)) (i32.const 1))))
        (if (i32.eq (local.get $op) (i32.const 7)) (then (call $tstore (i32.const 128) (i32.const 1025))))
        (if (i32.eq (local.get $op) (i32.const 8)) (then
            (call $tload (i32.const 128) (i32.const 64)) (call $write_result (i32.const 64) (i32.const 32))))
        (if (i32.eq (local.get $op) (i32.const 9)) (then
            (i32.store8 (i32.const 64) (call $reentrant)) (call $write_result (i32.const 64) (i32.const 1))))
        (i32.const 0)))"#;

/// EVM code that does the like: CALL, DELEGATECALL or STATICCALL (by the first byte) to the address in bytes 1 to 20
/// with the call value and the calldata from byte 53 on; passes the return data on.
fn evm_actor() -> Vec<u8> {
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

fn through(op: u8, to: Address, value: u64, data: &[u8]) -> Vec<u8> {
    let mut call = vec![op];
    call.extend(to);
    call.extend(U256::from(value).to_be_bytes::<32>());
    call.extend(data);
    call
}

fn with_word(op: u8, word: u8) -> Vec<u8> {
    let mut call = vec![op];
    call.extend(B256::repeat_byte(word));
    call
}

fn ok(outcome: Outcome) -> Outcome {
    assert_eq!(outcome.status, Status::Success, "{outcome:?}");
    outcome
}

fn stored(chain: &Chain, at: Address) -> u8 {
    chain.state.storage(at, U256::ZERO).to_be_bytes::<32>()[0]
}

#[test]
fn every_kind_of_call_between_programs_and_contracts() {
    let mut chain = Chain::new();
    let a = chain.program(ACTOR);
    let b = chain.deploy_wasm(&wat::parse_str(ACTOR).unwrap());
    let evm = chain.deploy(&evm_actor());

    // Whoever is in between, the word ends up with the one that acts.
    for (caller, callee) in [(a, b), (evm, b)] {
        ok(chain.send(caller, through(0, callee, 0, &with_word(4, 1))));
        assert_eq!((stored(&chain, caller), stored(&chain, callee)), (0, 1));
        ok(chain.send(caller, through(1, callee, 0, &with_word(4, 2))));
        assert_eq!((stored(&chain, caller), stored(&chain, callee)), (2, 1));
        let denied = chain.send(caller, through(2, callee, 0, &with_word(4, 3)));
        assert_eq!(denied.status, Status::Revert);
        assert_eq!((stored(&chain, caller), stored(&chain, callee)), (2, 1));
        let read = ok(chain.send(caller, through(2, callee, 0, &[5])));
        assert_eq!(read.output.as_ref(), B256::repeat_byte(1).as_slice());
        chain.state.set_storage(callee, U256::ZERO, U256::ZERO);
    }
    // Program, contract, program.
    ok(chain.send(a, through(0, evm, 0, &through(0, b, 0, &with_word(4, 9)))));
    assert_eq!(stored(&chain, b), 9);
    // A static call stays static below.
    let denied = chain.send(a, through(2, evm, 0, &through(0, b, 0, &with_word(4, 8))));
    assert_eq!((denied.status, stored(&chain, b)), (Status::Revert, 9));
    let denied = chain.send(a, through(2, b, 0, &with_word(6, 8)));
    assert_eq!(denied.status, Status::Revert);
    let denied = chain.send(a, through(2, b, 0, &with_word(7, 8)));
    assert_eq!(denied.status, Status::Revert);
    let denied = chain.send(a, through(2, b, 0, &with_word(3, 8)));
    assert_eq!(denied.status, Status::Revert);
}

#[test]
fn failures_roll_back_and_say_what_they_can() {
    let mut chain = Chain::new();
    let a = chain.program(ACTOR);
    let b = chain.deploy_wasm(&wat::parse_str(ACTOR).unwrap());
    let trap = chain.send(a, through(0, b, 0, &with_word(10, 1)));
    assert_eq!((&trap.status, trap.output.len(), stored(&chain, b)), (&Status::Revert, 0, 0));
    assert!(trap.gas_used < 100_000, "what was left came back");
    assert!(trap.stylus[0].failure.as_deref().is_some_and(|why| why.contains("unreachable")), "{trap:?}");
    let revert = chain.send(a, through(0, b, 0, &with_word(11, 7)));
    assert_eq!((revert.status, revert.output.as_ref()), (Status::Revert, B256::repeat_byte(7).as_slice()));
    assert_eq!(stored(&chain, b), 0);

    // A caller that carries on keeps what it did itself, and the transaction's logs leave out what was undone.
    let evm_that_swallows = {
        // CALL to the address in bytes 1 to 20 with the calldata from byte 53 on, then store 1 in slot 0.
        let mut code = vec![0x60, 0x35, 0x36, 0x03, 0x80, 0x60, 0x35, 0x5f, 0x37];
        code.extend([0x5f, 0x5f, 0x91, 0x5f, 0x5f, 0x60, 0x01, 0x35, 0x60, 0x60, 0x1c, 0x61, 0xff, 0xff, 0xf1]);
        code.extend([0x60, 0x01, 0x5f, 0x55, 0x00]);
        chain.deploy(&code)
    };
    let outcome = ok(chain.send(evm_that_swallows, through(0, b, 0, &with_word(10, 1))));
    assert_eq!(chain.state.storage(evm_that_swallows, U256::ZERO), U256::from(1));
    assert_eq!((stored(&chain, b), outcome.logs.len()), (0, 0));
}

#[test]
fn value_moves_with_calls_and_comes_back_with_reverts() {
    let mut chain = Chain::new();
    let a = chain.program(ACTOR);
    let nobody = Address::repeat_byte(0x77);
    let pay = |chain: &mut Chain, value: u64, data: Vec<u8>| {
        let mut tx = chain.tx(Some(a), data);
        tx.value = U256::from(value);
        chain.run(&tx)
    };
    ok(pay(&mut chain, 100, through(0, nobody, 60, &[])));
    assert_eq!(chain.state.balance(nobody), U256::from(60));
    assert_eq!(chain.state.balance(a), U256::from(40));
    let too_much = pay(&mut chain, 0, through(0, nobody, 41, &[]));
    assert_eq!(too_much.status, Status::Revert);
    let before = chain.state.balance(ALICE);
    let failed = pay(&mut chain, 5, with_word(10, 1));
    assert_eq!(failed.status, Status::Revert);
    assert_eq!(before - chain.state.balance(ALICE), U256::from(failed.gas_used) * U256::from(support::BASE_FEE));
}

#[test]
fn programs_create_contracts() {
    let mut chain = Chain::new();
    let a = chain.program(ACTOR);
    let mut call = vec![3];
    call.extend(init_code(&[0x60, 0x01]));
    let created = ok(chain.send(a, call));
    let address = Address::from_slice(&created.output);
    assert_eq!(address, a.create(1));
    assert_eq!(chain.state.code(address).as_ref(), [0x60, 0x01]);
    assert_eq!(chain.state.nonce(address), 1);
    // Code that begins with 0xEF and isn't Stylus's is refused: address zero, no code.
    let mut call = vec![3];
    call.extend(init_code(&[0xef, 0x00]));
    let refused = ok(chain.send(a, call));
    assert_eq!(Address::from_slice(&refused.output), Address::ZERO);
    let tx = chain.tx(None, init_code(&[0xef, 0x00]));
    let refused = chain.run(&tx);
    assert_eq!(refused.status, Status::Halt("invalid code: must not begin with 0xef".into()));
    let tx = chain.tx(None, init_code(&vec![0; 24_577]));
    assert_eq!(chain.run(&tx).status, Status::Halt("max code size exceeded".into()));
}

#[test]
fn logs_transient_storage_and_reentry() {
    let mut chain = Chain::new();
    let a = chain.program(ACTOR);
    let b = chain.deploy_wasm(&wat::parse_str(ACTOR).unwrap());
    let mut data = with_word(6, 5);
    data.extend(b"hello");
    let logged = ok(chain.send(a, through(0, b, 0, &data)));
    assert_eq!(logged.logs.len(), 1);
    assert_eq!(logged.logs[0].address, b);
    assert_eq!(logged.logs[0].data.topics(), [B256::repeat_byte(5)]);
    assert_eq!(logged.logs[0].data.data.as_ref(), b"hello");

    ok(chain.send(a, with_word(7, 3)));
    let forgotten = ok(chain.send(a, vec![8]));
    assert_eq!(forgotten.output.as_ref(), B256::ZERO.as_slice());

    // Re-entry counts open frames of the same acting account; delegate calls don't count.
    assert_eq!(ok(chain.send(a, vec![9])).output.as_ref(), [0]);
    assert_eq!(ok(chain.send(a, through(0, b, 0, &[9]))).output.as_ref(), [0]);
    assert_eq!(ok(chain.send(a, through(0, a, 0, &[9]))).output.as_ref(), [1]);
    assert_eq!(ok(chain.send(a, through(0, b, 0, &through(0, a, 0, &[9])))).output.as_ref(), [1]);
    assert_eq!(ok(chain.send(a, through(1, b, 0, &[9]))).output.as_ref(), [0]);
}

#[test]
fn deep_and_endless_calls_end_well() {
    let mut chain = Chain::new();
    let a = chain.program(ACTOR);
    // Calls itself until gas ends: one page each, and pages 100 to 128 cost millions.
    let deep = chain.program(
        r#"(module
        (import "vm_hooks" "call_contract" (func $call (param i32 i32 i32 i32 i64 i32) (result i32)))
        (import "vm_hooks" "contract_address" (func $self (param i32)))
        (memory (export "memory") 1 1)
        (func (export "user_entrypoint") (param i32) (result i32)
            (call $self (i32.const 0))
            (drop (call $call (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 64) (i64.const -1) (i32.const 128)))
            (i32.const 0)))"#,
    );
    let outcome = ok(chain.send(deep, vec![]));
    assert!((100..=128).contains(&outcome.stylus.len()), "{} frames", outcome.stylus.len());

    // EVM code calling itself reaches depth by gas alone.
    let evm = chain.deploy(&[0x5f, 0x5f, 0x5f, 0x5f, 0x5f, 0x30, 0x5a, 0xf1]);
    ok(chain.send(evm, vec![]));
    // A program and a contract calling each other through long calldata.
    let evm = chain.deploy(&evm_actor());
    let mut data = vec![9];
    for i in 0..200 {
        data = through(0, if i % 2 == 0 { a } else { evm }, 0, &data);
    }
    let outcome = chain.send(evm, data);
    assert!(outcome.stylus.len() > 50, "{:?}, {} frames", outcome.status, outcome.stylus.len());
}

#[test]
fn runaway_programs_cost_their_gas_and_nothing_else() {
    let mut chain = Chain::new();
    for (body, why) in [("(loop (br 0)) i32.const 0", "out of gas"), ("(call 0) i32.const 0", "max call depth exceeded")] {
        let program = chain.program(&format!(
            r#"(module (func $f (call $f)) (memory (export "memory") 1 1)
               (func (export "user_entrypoint") (param i32) (result i32) {body}))"#
        ));
        let outcome = chain.send(program, vec![]);
        assert_eq!(outcome.status, Status::Halt(why.into()));
        assert_eq!(outcome.gas_used, 32_000_000);
    }
    // Many locals and a deep operand stack in every frame.
    let wide = format!(
        r#"(module (memory (export "memory") 1 1)
           (func $f (param i64) (result i64) (local {}) {} (call $f (local.get 0)) {} )
           (func (export "user_entrypoint") (param i32) (result i32) (drop (call $f (i64.const 1))) i32.const 0))"#,
        "i64 ".repeat(300),
        "(i64.add (local.get 0) (i64.const 7)) ".repeat(3000),
        "i64.add ".repeat(3000)
    );
    let program = chain.program(&wide);
    assert_eq!(chain.send(program, vec![]).status, Status::Halt("max call depth exceeded".into()));
}

#[test]
fn pages_are_shared_and_given_back() {
    let mut chain = Chain::new();
    // 10 pages, calls the address in its calldata if there is one.
    let wat = r#"(module
        (import "vm_hooks" "read_args" (func $read_args (param i32)))
        (import "vm_hooks" "call_contract" (func $call (param i32 i32 i32 i32 i64 i32) (result i32)))
        (memory (export "memory") 10 10)
        (func (export "user_entrypoint") (param $len i32) (result i32)
            (if (local.get $len) (then
                (call $read_args (i32.const 0))
                (drop (call $call (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 64) (i64.const -1) (i32.const 128)))
                (drop (call $call (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 64) (i64.const -1) (i32.const 128)))))
            (i32.const 0)))"#;
    let a = chain.program(wat);
    let b = chain.deploy_wasm(&wat::parse_str(wat).unwrap());
    let outcome = ok(chain.send(a, b.to_vec()));
    let (uncached, cached) = support::cases::start_gas(&wat::parse_str(wat).unwrap());
    let pages_alone = 8 * 1000;
    // Inner runs, twice: pages 11 to 20 at 1,000 each; the ramp from 10 to 20 pages (14 - 3) once. All runs but the
    // first are cached by the block. Outer: 8 pages, ramp 3 - 1.
    assert_eq!(outcome.stylus[0].start_gas, cached - pages_alone + 10_000 + 11);
    assert_eq!(outcome.stylus[1].start_gas, cached - pages_alone + 10_000);
    assert_eq!(outcome.stylus[2].start_gas, uncached + 2);
}

#[test]
fn storage_costs_and_refunds_are_the_evms() {
    let mut chain = Chain::new();
    let a = chain.program(ACTOR);
    ok(chain.send(a, with_word(4, 1)));
    // Clearing a slot gives 4,800 gas back, at most a fifth of what was used.
    let cleared = ok(chain.send(a, with_word(4, 0)));
    assert_eq!(cleared.gas_refunded, 4800);
    let again = ok(chain.send(a, with_word(4, 0)));
    assert_eq!(again.gas_refunded, 0);
    // 5,000 for changing a slot, 2,200 for writing what is there.
    assert_eq!(cleared.gas_used + 4800 - again.gas_used, 5000 - 2200);

    // The same slot set and reset in one transaction, by two frames: 19,900 of the 20,000 come back.
    let evm = {
        let mut code = vec![0x60, 0x35, 0x36, 0x03, 0x80, 0x60, 0x35, 0x5f, 0x37];
        code.extend([0x5f, 0x5f, 0x91, 0x5f, 0x5f, 0x60, 0x01, 0x35, 0x60, 0x60, 0x1c, 0x5a, 0xf1]);
        // Then the same with the 33 bytes all zero but the first, 4.
        code.extend([0x60, 0x04, 0x5f, 0x53, 0x5f, 0x60, 0x01, 0x52]);
        code.extend([0x5f, 0x5f, 0x60, 0x21, 0x5f, 0x5f, 0x60, 0x01, 0x35, 0x60, 0x60, 0x1c, 0x5a, 0xf1, 0x00]);
        chain.deploy(&code)
    };
    let both = ok(chain.send(evm, through(0, a, 0, &with_word(4, 7))));
    assert_eq!(stored(&chain, a), 0);
    let used = both.gas_used + both.gas_refunded;
    assert_eq!(both.gas_refunded, 19_900.min(used / 5));
}

#[test]
fn snapshots_restore_everything() {
    let mut chain = Chain::new();
    let wasm = wat::parse_str(ACTOR).unwrap();
    let a = chain.deploy_wasm(&wasm);
    let snapshot = chain.state.clone();
    ok(chain.activate(a));
    ok(chain.send(a, with_word(4, 1)));
    chain.state = snapshot.clone();
    assert_eq!(stored(&chain, a), 0);
    let unactivated = chain.send(a, with_word(4, 1));
    assert_eq!(unactivated.status, Status::Halt("error ProgramNotActivated()".into()));
    assert_eq!(snapshot.nonce(ALICE) + 1, chain.state.nonce(ALICE));
}

#[test]
fn calls_change_nothing() {
    let mut chain = Chain::new();
    let a = chain.program(ACTOR);
    let mut tx = chain.tx(Some(a), with_word(4, 1));
    (tx.is_call, tx.gas_price, tx.nonce) = (true, 0, None);
    tx.caller = Address::repeat_byte(9);
    let hashes = chain.hashes.clone();
    let block = chain.block(&hashes);
    tx.gas_limit = 50_000_000;
    let outcome = ok(chain.evm.call(&chain.state, &block, &tx).unwrap());
    assert!(outcome.gas_used > 40_000);
    assert_eq!(stored(&chain, a), 0);
    assert_eq!(chain.state.balance(Address::repeat_byte(9)), U256::ZERO);
}

fn calls(outcome: Outcome) -> CallFrame {
    match outcome.trace {
        Trace::Calls(frame) => *frame,
        other => panic!("{other:?}"),
    }
}

#[test]
fn traces_show_programs_and_contracts_alike() {
    let mut chain = Chain::new();
    let a = chain.program(ACTOR);
    let b = chain.deploy_wasm(&wat::parse_str(ACTOR).unwrap());
    let evm = chain.deploy(&evm_actor());
    let mut tx = chain.tx(Some(a), through(0, evm, 0, &through(1, b, 0, &with_word(11, 7))));
    tx.trace = TraceRequest::Calls;
    let outcome = chain.run(&tx);
    let gas_used = outcome.gas_used;
    let top = calls(outcome);
    assert_eq!((top.kind, top.to, top.wasm, top.gas_used), (CallKind::Call, Some(a), true, gas_used));
    assert_eq!(top.error.as_deref(), Some("execution reverted"));
    let middle = &top.calls[0];
    assert_eq!((middle.from, middle.to, middle.wasm), (a, Some(evm), false));
    let inner = &middle.calls[0];
    assert_eq!((inner.kind, inner.from, inner.to, inner.wasm), (CallKind::DelegateCall, evm, Some(b), true));
    assert_eq!(inner.output.as_ref(), B256::repeat_byte(7).as_slice());

    let mut data = with_word(6, 5);
    data.extend(b"x");
    let mut tx = chain.tx(Some(a), through(0, b, 0, &data));
    tx.trace = TraceRequest::Calls;
    let top = calls(chain.run(&tx));
    assert_eq!((top.logs.len(), top.calls[0].logs.len()), (0, 1));
    assert_eq!(top.calls[0].logs[0].address, b);
}

sol! {
    function arbBlockNumber() external view returns (uint256);
    function arbBlockHash(uint256 arbBlockNum) external view returns (bytes32);
    function arbChainID() external view returns (uint256);
    function arbOSVersion() external view returns (uint256);
    function isTopLevelCall() external view returns (bool);
    function myCallersAddressWithoutAliasing() external view returns (address);
    function mapL1SenderContractAddressToL2Alias(address sender, address unused) external pure returns (address);
    error InvalidBlockNumber(uint256 requested, uint256 current);
    function deploy(bytes bytecode, bytes initData, uint256 initValue, bytes32 salt) external payable returns (address);
    function placeBid(address program) external payable;
    function isPaused() external view returns (bool);
    error ContractInitializationError(address newContract, bytes data);
}

#[test]
fn arb_sys_knows_the_chain() {
    let mut chain = Chain::new();
    let a = chain.program(ACTOR);
    for _ in 0..300 {
        chain.mine();
    }
    let number = chain.number;
    let outcome = ok(chain.send(ARB_SYS, arbBlockNumberCall {}.abi_encode()));
    assert_eq!(U256::from_be_slice(&outcome.output), U256::from(number));
    // 21,000, calldata of 4 non-zero bytes, ArbOS opened, no argument words, one result word.
    assert_eq!(outcome.gas_used, 21_000 + 64 + 800 + 3);
    // Through a program, as contracts use it.
    let ask = |chain: &mut Chain, n: u64| {
        chain.send(a, through(2, ARB_SYS, 0, &arbBlockHashCall { arbBlockNum: U256::from(n) }.abi_encode()))
    };
    let number = chain.number;
    let known = ok(ask(&mut chain, number - 1));
    assert_eq!(known.output.as_ref(), chain.hashes[number as usize - 1].1.as_slice());
    let number = chain.number;
    let oldest = ok(ask(&mut chain, number - 256));
    assert_eq!(oldest.output.as_ref(), chain.hashes[number as usize - 256].1.as_slice());
    for asked in [chain.number, chain.number - 256] {
        // By the time it runs the second is 257 blocks old.
        let unknown = ask(&mut chain, asked);
        let error = InvalidBlockNumber::abi_decode(&unknown.output);
        if asked == chain.number - 1 {
            assert_eq!(error.unwrap().requested, U256::from(asked));
        } else {
            assert!(error.is_ok(), "{unknown:?}");
        }
    }
    let id = ok(chain.send(ARB_SYS, arbChainIDCall {}.abi_encode()));
    assert_eq!(U256::from_be_slice(&id.output), U256::from(412_346));
    let version = ok(chain.send(ARB_SYS, arbOSVersionCall {}.abi_encode()));
    assert_eq!(U256::from_be_slice(&version.output), U256::from(55 + 61));
    let top = ok(chain.send(a, through(0, ARB_SYS, 0, &isTopLevelCallCall {}.abi_encode())));
    assert_eq!(U256::from_be_slice(&top.output), U256::from(1));
    let evm = chain.deploy(&evm_actor());
    let below = ok(chain.send(evm, through(0, a, 0, &through(0, ARB_SYS, 0, &isTopLevelCallCall {}.abi_encode()))));
    assert_eq!(U256::from_be_slice(&below.output), U256::ZERO);
    let caller = ok(chain.send(a, through(0, ARB_SYS, 0, &myCallersAddressWithoutAliasingCall {}.abi_encode())));
    assert_eq!(Address::from_slice(&caller.output[12..]), ALICE);
    let alias = ok(chain
        .send(ARB_SYS, mapL1SenderContractAddressToL2AliasCall { sender: Address::ZERO, unused: Address::ZERO }.abi_encode()));
    assert_eq!(Address::from_slice(&alias.output[12..]), alloy_primitives::address!("1111000000000000000000000000000000001111"));
    // What isn't there says so and takes all gas, as any unknown method does.
    let missing = chain.send(ARB_SYS, vec![1, 2, 3, 4]);
    assert_eq!(missing.status, Status::Halt("ArbSys has no method 0x01020304 on this node".into()));
}

#[test]
fn block_data_is_arbitrums() {
    let mut chain = Chain::new();
    // NUMBER, PREVRANDAO, BLOCKHASH(number - 1), COINBASE in four words.
    let code = [
        0x43, 0x5f, 0x52, 0x44, 0x60, 0x20, 0x52, 0x60, 0x01, 0x43, 0x03, 0x40, 0x60, 0x40, 0x52, 0x41, 0x60, 0x60, 0x52, 0x60,
        0x80, 0x5f, 0xf3,
    ];
    let evm = chain.deploy(&code);
    chain.l1_number = 1234;
    let parent = chain.hashes.last().unwrap().1;
    let outcome = ok(chain.send(evm, vec![]));
    assert_eq!(U256::from_be_slice(&outcome.output[..32]), U256::from(1234));
    assert_eq!(U256::from_be_slice(&outcome.output[32..64]), U256::from(1));
    // The hash of an L1 block is that of the L2 block before the one that first saw it.
    assert_eq!(&outcome.output[64..96], parent.as_slice());
    assert_eq!(&outcome.output[108..128], BATCH_POSTER.as_slice());
    let later = ok(chain.send(evm, vec![]));
    assert_eq!(&later.output[64..96], parent.as_slice());
}

#[test]
fn factory_and_deployer_are_where_tools_expect_them() {
    let mut chain = Chain::new();
    let mut data = B256::repeat_byte(5).to_vec();
    let init = init_code(&[0x60, 0x01]);
    data.extend(&init);
    let outcome = ok(chain.send(CREATE2_FACTORY, data));
    let address = Address::from_slice(&outcome.output);
    assert_eq!(address, CREATE2_FACTORY.create2(B256::repeat_byte(5), keccak256(&init)));
    assert_eq!(chain.state.code(address).as_ref(), [0x60, 0x01]);

    let code = muster_devnode::stylus::deployed_code(&wat::parse_str(ACTOR).unwrap());
    let deploy = |chain: &mut Chain, init_data: Vec<u8>, salt: u8| {
        let call = deployCall {
            bytecode: init_code(&code).into(),
            initData: init_data.into(),
            initValue: U256::ZERO,
            salt: B256::repeat_byte(salt),
        };
        let mut tx = chain.tx(Some(STYLUS_DEPLOYER), call.abi_encode());
        tx.value = U256::from(10).pow(U256::from(17));
        chain.run(&tx)
    };
    let balance = chain.state.balance(ALICE);
    let outcome = ok(deploy(&mut chain, with_word(4, 3), 0));
    let program = Address::from_slice(&outcome.output[12..]);
    assert_eq!(stored(&chain, program), 3);
    assert_eq!(outcome.logs.len(), 2, "activated and deployed");
    assert!(balance - chain.state.balance(ALICE) < U256::from(10).pow(U256::from(16)), "the rest came back");
    // The same code again needs no activation; a failing initialisation undoes it all.
    let outcome = ok(deploy(&mut chain, vec![], 1));
    assert_eq!(outcome.logs.len(), 1);
    let failed = deploy(&mut chain, with_word(10, 3), 2);
    assert_eq!(failed.status, Status::Revert);
    assert!(ContractInitializationError::abi_decode(&failed.output).unwrap().data.is_empty());
    // What the constructor said reaches whoever deploys, with the address that would have been.
    let failed = deploy(&mut chain, with_word(11, 7), 2);
    let error = ContractInitializationError::abi_decode(&failed.output).unwrap();
    assert_eq!(error.data.as_ref(), B256::repeat_byte(7).as_slice());
    let salt = keccak256([B256::repeat_byte(2).as_slice(), &with_word(11, 7)].concat());
    assert_eq!(error.newContract, STYLUS_DEPLOYER.create2(salt, keccak256(init_code(&code))));
    // Tools know the code by its length.
    assert_eq!(chain.state.code(STYLUS_DEPLOYER).len(), 2_269);

    // The cache manager takes any bid.
    ok(chain.send(muster_devnode::genesis::CACHE_MANAGER, placeBidCall { program }.abi_encode()));
    assert!(ok(chain.send(program, vec![5])).stylus[0].cached);
    let paused = ok(chain.send(muster_devnode::genesis::CACHE_MANAGER, isPausedCall {}.abi_encode()));
    assert_eq!(U256::from_be_slice(&paused.output), U256::ZERO);
}

#[test]
fn transactions_that_cannot_be_included_change_nothing() {
    use muster_devnode::evm::TxError;
    let mut chain = Chain::new();
    let hashes = chain.hashes.clone();
    let block = chain.block(&hashes);
    let good = chain.tx(Some(ARB_WASM), vec![1]);
    let mut attempt = |change: &dyn Fn(&mut muster_devnode::evm::TxCtx)| {
        let mut tx = good.clone();
        change(&mut tx);
        chain.evm.transact(&mut chain.state, &block, &tx).expect_err("refused")
    };
    assert!(matches!(attempt(&|tx| tx.nonce = Some(5)), TxError::NonceTooHigh { tx: 5, state: 0, .. }));
    assert!(matches!(attempt(&|tx| tx.gas_limit = 21_000), TxError::IntrinsicGas { have: 21_000, want: 21_016 }));
    assert!(matches!(attempt(&|tx| tx.gas_price = 1), TxError::FeeCapTooLow { .. }));
    assert!(matches!(attempt(&|tx| tx.value = U256::MAX), TxError::Overflow));
    assert!(matches!(attempt(&|tx| tx.value = U256::MAX >> 1), TxError::InsufficientFunds { .. }));
    assert!(matches!(
        attempt(&|tx| {
            tx.to = None;
            tx.data = Bytes::from(vec![0; 49_153])
        }),
        TxError::InitCodeTooLarge { size: 49_153, limit: 49_152 }
    ));
    assert!(matches!(attempt(&|tx| tx.caller = STYLUS_DEPLOYER), TxError::NonceTooLow { .. }));
    assert!(matches!(
        attempt(&|tx| {
            tx.caller = STYLUS_DEPLOYER;
            tx.nonce = None
        }),
        TxError::SenderNotEoa { .. }
    ));
    assert_eq!(chain.state.nonce(ALICE), 0);
}

#[test]
fn a_transaction_computes_no_more_than_32_million_gas() {
    let mut chain = Chain::new();
    let program = chain.program(
        r#"(module (memory (export "memory") 1 1)
           (func (export "user_entrypoint") (param i32) (result i32) (loop (br 0)) i32.const 0))"#,
    );
    let mut tx = chain.tx(Some(program), vec![]);
    tx.gas_limit = 100_000_000;
    let outcome = chain.run(&tx);
    assert_eq!(outcome.status, Status::Halt("out of gas".into()));
    assert_eq!(outcome.gas_used, 32_000_000, "the rest was held back and returned");
}

#[test]
fn hashes_of_l2_blocks_lie_in_the_history_contract() {
    let mut chain = Chain::new();
    for _ in 0..300 {
        chain.mine();
    }
    let history = muster_devnode::genesis::HISTORY_STORAGE;
    let ask = |chain: &mut Chain, number: u64| chain.send(history, U256::from(number).to_be_bytes::<32>().to_vec());
    let number = chain.number;
    let known = ok(ask(&mut chain, number - 1));
    assert_eq!(known.output.as_ref(), chain.hashes[number as usize - 1].1.as_slice());
    let number = chain.number;
    for _ in 0..300 {
        chain.mine();
    }
    // Older than what ArbSys tells.
    let known = ok(ask(&mut chain, number - 1));
    assert_eq!(known.output.as_ref(), chain.hashes[number as usize - 1].1.as_slice());
    let number = chain.number;
    assert_eq!(ask(&mut chain, number).status, Status::Revert);
}

#[test]
fn blobs_and_debug_precompiles_are_absent_where_they_must_be() {
    use muster_devnode::evm::{Config, Evm};
    let mut chain = Chain::new();
    let code = chain.deploy(&[0x4a]);
    assert!(matches!(chain.send(code, vec![]).status, Status::Halt(_)));
    chain.evm = Evm::new(Config { debug: false, ..Config::default() }).unwrap();
    let refused = chain.send(support::ARB_DEBUG, support::becomeChainOwnerCall {}.abi_encode());
    assert_eq!(refused.status, Status::Halt("debug precompiles are disabled".into()));
    assert!(Evm::new(Config { arbos: 31, ..Config::default() }).is_err());
    assert!(Evm::new(Config { arbos: 62, ..Config::default() }).is_err());
}

#[test]
fn the_stack_ends_where_the_words_do() {
    // Recurses as often as there are bytes of calldata. Each function needs 2 values at most (the meter's own header)
    // and 4 words for the frame; parameters don't count. 22,000 words: the entry point takes 6, then each call 6, and
    // a call needs more than its 6 words to be left: 3,665 calls fit.
    let mut chain = Chain::new();
    let program = chain.program(
        r#"(module (memory (export "memory") 1 1)
        (func $f (param i32)
            (if (local.get 0) (then (call $f (i32.sub (local.get 0) (i32.const 1))))))
        (func (export "user_entrypoint") (param i32) (result i32) (call $f (local.get 0)) i32.const 0))"#,
    );
    ok(chain.send(program, vec![0; 3664]));
    let over = chain.send(program, vec![0; 3665]);
    assert_eq!(over.status, Status::Halt("max call depth exceeded".into()));
}

#[test]
fn one_instance_serves_several_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    let mut chain = Chain::new();
    let a = chain.program(ACTOR);
    shared(&chain.evm);
    shared(&chain.state);
    let tx = chain.tx(Some(a), with_word(4, 1));
    let chain = &chain;
    let tx = &tx;
    let used: Vec<u64> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(move || {
                    let block = chain.block(&chain.hashes);
                    (0..50).map(|_| chain.evm.call(&chain.state, &block, tx).unwrap().gas_used).max().unwrap()
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert!(used.iter().all(|gas| *gas == used[0]));
}

#[test]
fn precompiles_look_at_accounts_without_warming_them() {
    let mut chain = Chain::new();
    let whom = Address::repeat_byte(0x77);
    // Asks ArbInfo for the balance, then for it by BALANCE, and returns the gas between two GAS: SWAP1 3, BALANCE,
    // POP 2, GAS 2.
    let code = [
        &[0x63, 0xf8, 0xb2, 0xcb, 0x4f, 0x60, 0xe0, 0x1b, 0x5f, 0x52, 0x73][..],
        whom.as_slice(),
        &[0x60, 4, 0x52, 0x5f, 0x5f, 0x60, 0x24, 0x5f, 0x60, 0x65, 0x5a, 0xfa, 0x50, 0x73],
        whom.as_slice(),
        &[0x5a, 0x90, 0x31, 0x50, 0x5a, 0x90, 0x03, 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3],
    ]
    .concat();
    let contract = chain.deploy(&code);
    let outcome = ok(chain.send(contract, vec![]));
    assert_eq!(U256::from_be_slice(&outcome.output), U256::from(2600 + 3 + 2 + 2));
}

#[test]
fn selfdestruct_on_behalf_of_a_program_is_paid_for_and_refused() {
    let mut chain = Chain::new();
    let actor = chain.program(ACTOR);
    let target = [&[0x73][..], Address::repeat_byte(0x77).as_slice()].concat();
    let mut gas = |end: &[u8]| {
        let code = chain.deploy(&[&target, end].concat());
        let data = through(1, code, 0, &[]);
        let calldata: u64 = data.iter().map(|byte| if *byte == 0 { 4 } else { 16 }).sum();
        let outcome = chain.send(actor, data);
        assert_eq!(outcome.status, Status::Revert);
        outcome.gas_used - calldata
    };
    // SELFDESTRUCT 5,000 and 2,600 for the cold beneficiary, against PUSH0 PUSH0 REVERT.
    assert_eq!(gas(&[0xff]) - gas(&[0x5f, 0x5f, 0xfd]), 5000 + 2600 - 4);
}

#[test]
fn calldata_has_a_floor_once_an_owner_has_set_it() {
    sol! {
        function becomeChainOwner() external;
        function setCalldataPriceIncrease(bool enable) external;
        function isCalldataPriceIncreaseEnabled() external view returns (bool);
    }
    let mut chain = Chain::new();
    let nobody = Address::repeat_byte(0x77);
    // 1,000 bytes that are not zero and 10 that are, at 16 and 4 gas; at the floor at 40 and 10.
    let data = [vec![1; 1000], vec![0; 10]].concat();
    assert_eq!(ok(chain.send(nobody, data.clone())).gas_used, 21_000 + 16_040);
    ok(chain.send(support::ARB_DEBUG, becomeChainOwnerCall {}.abi_encode()));
    ok(chain.send(support::ARB_OWNER, setCalldataPriceIncreaseCall { enable: true }.abi_encode()));
    let public = Address::with_last_byte(0x6b);
    let told = ok(chain.send(public, isCalldataPriceIncreaseEnabledCall {}.abi_encode())).output;
    assert_eq!(U256::from_be_slice(&told), U256::from(1));
    assert_eq!(ok(chain.send(nobody, data.clone())).gas_used, 21_000 + 40_100);
    let mut tx = chain.tx(Some(nobody), data);
    tx.gas_limit = 61_099;
    let hashes = chain.hashes.clone();
    let block = chain.block(&hashes);
    let error = chain.evm.transact(&mut chain.state, &block, &tx).unwrap_err();
    assert_eq!(error.to_string(), "insufficient gas for floor data gas cost: have 61099, want 61100");
}
