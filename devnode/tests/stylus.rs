//! Programs among each other and with EVM contracts: calls, value, rollback, memory, depth.

mod support;

use alloy_primitives::{Address, Bytes, B256, U256};
use muster_devnode::evm::{CallFrame, CallKind, Outcome, Status, Trace, TraceRequest, BATCH_POSTER};
use muster_devnode::genesis::STYLUS_DEPLOYER;
use support::actor::{evm_actor, stored, through, with_word, ACTOR};
use support::cases::start_gas;
use support::chain::{init_code, ok, Chain, ALICE, ARB_WASM, BASE_FEE};
use support::program::wasm;

#[test]
fn every_kind_of_call_between_programs_and_contracts() {
    let mut chain = Chain::new();
    let a = chain.program(ACTOR);
    let b = chain.deploy_wasm(&wasm(ACTOR));
    let evm = chain.deploy(&evm_actor());

    // The word ends up with the contract that acts, whichever is in between.
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
    let b = chain.deploy_wasm(&wasm(ACTOR));
    let trap = chain.send(a, through(0, b, 0, &with_word(10, 1)));
    assert_eq!((&trap.status, trap.output.len(), stored(&chain, b)), (&Status::Revert, 0, 0));
    assert!(trap.gas_used < 100_000, "what was left came back");
    assert!(trap.stylus[0].failure.as_deref().is_some_and(|why| why.contains("unreachable")), "{trap:?}");
    let revert = chain.send(a, through(0, b, 0, &with_word(11, 7)));
    assert_eq!((revert.status, revert.output.as_ref()), (Status::Revert, B256::repeat_byte(7).as_slice()));
    assert_eq!(stored(&chain, b), 0);

    // A caller that carries on keeps its own changes, and the transaction's logs leave out the undone ones.
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
    assert_eq!(before - chain.state.balance(ALICE), U256::from(failed.gas_used) * U256::from(BASE_FEE));
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
    let b = chain.deploy_wasm(&wasm(ACTOR));
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
        (memory (export "memory") 1 1)
        (func (export "user_entrypoint") (param i32) (result i32)
            (call $contract_address (i32.const 0))
            (drop (call $call_contract (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 64) (i64.const -1) (i32.const 128)))
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
        (memory (export "memory") 10 10)
        (func (export "user_entrypoint") (param $len i32) (result i32)
            (if (local.get $len) (then
                (call $read_args (i32.const 0))
                (drop (call $call_contract (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 64) (i64.const -1) (i32.const 128)))
                (drop (call $call_contract (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 64) (i64.const -1) (i32.const 128)))))
            (i32.const 0)))"#;
    let a = chain.program(wat);
    let b = chain.deploy_wasm(&wasm(wat));
    let outcome = ok(chain.send(a, b.to_vec()));
    let (uncached, cached) = start_gas(&wasm(wat));
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
    // Clearing a slot gives 4,800 gas back, at most a fifth of the used gas.
    let cleared = ok(chain.send(a, with_word(4, 0)));
    assert_eq!(cleared.gas_refunded, 4800);
    let again = ok(chain.send(a, with_word(4, 0)));
    assert_eq!(again.gas_refunded, 0);
    // 5,000 for changing a slot, 2,200 for writing the value that it has.
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
    let wasm = wasm(ACTOR);
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
    let b = chain.deploy_wasm(&wasm(ACTOR));
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
            tx.data = Bytes::from(vec![0; 49_153]);
        }),
        TxError::InitCodeTooLarge { size: 49_153, limit: 49_152 }
    ));
    assert!(matches!(attempt(&|tx| tx.caller = STYLUS_DEPLOYER), TxError::NonceTooLow { .. }));
    assert!(matches!(
        attempt(&|tx| {
            tx.caller = STYLUS_DEPLOYER;
            tx.nonce = None;
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
