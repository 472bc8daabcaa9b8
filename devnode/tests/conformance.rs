//! The gas of programs, against sums made by hand, and the block that calls see.

mod support;

use muster_devnode::evm::Status;
use support::cases::{cases, page, run, start_gas, Row, BLOCK, GAS};
use support::chain::Chain;
use support::heads;
use support::program::IMPORTS;

#[test]
fn every_case_is_as_it_must_be() {
    let rows: Vec<Row> = cases().iter().map(run).collect();
    for row in rows.iter().filter(|row| !row.is_right()) {
        eprintln!(
            "{}: ink {:?}, gas {:?}, cached {:?}, end {:?} for {:?}\n    {}",
            row.name, row.ink, row.gas, row.gas_cached, row.ended, row.end, row.terms
        );
    }
    assert!(rows.iter().all(Row::is_right), "expected and got differ");
    let seen = heads::rows();
    for row in seen.iter().filter(|row| !row.is_right()) {
        eprintln!("{}:\n  must be {}\n  is      {}", row.what, row.expected, row.got);
    }
    assert!(seen.iter().all(heads::Row::is_right), "calls and estimates see another block than Nitro's");
    assert!(
        page(&rows) + &heads::section(&seen) == include_str!("../../docs/generated/conformance.md"),
        "docs/generated/conformance.md is not what the node does now: script/bench conformance writes it again"
    );
}

#[test]
fn every_host_function_has_a_case() {
    let cases = cases();
    let imports: Vec<&str> = IMPORTS.split("(func $").skip(1).filter_map(|rest| rest.split([' ', ')']).next()).collect();
    // All that Nitro has beside the console of its development chains.
    assert_eq!(imports.len(), 42);
    for import in imports {
        let call = format!("(call ${import}");
        let called = |body: &str| body.match_indices(&call).any(|(at, _)| body[at + call.len()..].starts_with([' ', ')']));
        assert!(cases.iter().any(|case| called(case.body)), "{import} is never called");
    }
}

/// Every instruction that computes, with the number of its operands, their type, and its price.
#[rustfmt::skip]
const INSTRUCTIONS: &[(&[&str], &str, usize, u64)] = &[
    (&["eqz"], "i32", 1, 170),
    (&["eq", "ne", "lt_s", "lt_u", "gt_s", "gt_u", "le_s", "le_u", "ge_s", "ge_u"], "i32", 2, 170),
    (&["eqz"], "i64", 1, 225),
    (&["eq", "ne", "lt_s", "lt_u", "gt_s", "gt_u", "le_s", "le_u", "ge_s", "ge_u"], "i64", 2, 225),
    (&["clz", "ctz"], "i32", 1, 210),
    (&["clz", "ctz"], "i64", 1, 210),
    (&["popcnt"], "i32", 1, 2650),
    (&["popcnt"], "i64", 1, 6000),
    (&["add", "sub", "and", "or", "xor", "shl", "shr_s", "shr_u", "rotl", "rotr"], "i32", 2, 70),
    (&["add", "sub", "and", "or", "xor", "shl", "shr_s", "shr_u", "rotl", "rotr"], "i64", 2, 100),
    (&["mul"], "i32", 2, 160),
    (&["mul"], "i64", 2, 160),
    (&["div_s", "div_u", "rem_s", "rem_u"], "i32", 2, 1120),
    (&["div_s", "div_u", "rem_s", "rem_u"], "i64", 2, 1270),
    (&["extend8_s", "extend16_s"], "i32", 1, 100),
    (&["extend8_s", "extend16_s", "extend32_s"], "i64", 1, 100),
    (&["load", "load8_s", "load8_u", "load16_s", "load16_u"], "i32.at", 1, 670),
    (&["load", "load8_s", "load8_u", "load16_s", "load16_u", "load32_s", "load32_u"], "i64.at", 1, 680),
];

#[test]
fn every_instruction_has_its_price() {
    let mut all: Vec<(String, u64, u64)> = vec![];
    for (names, ty, operands, price) in INSTRUCTIONS {
        // Addresses are 32 bits wide.
        let (ty, operand) = ty.strip_suffix(".at").map_or((*ty, *ty), |ty| (ty, "i32"));
        for name in *names {
            let operands_text = format!("({operand}.const 5)").repeat(*operands);
            // Constants 1 each, drop 9.
            all.push((format!("(drop ({ty}.{name} {operands_text}))"), *operands as u64, price + 9));
        }
    }
    for (text, constants, price) in [
        ("(drop (i32.wrap_i64 (i64.const 5)))", 1, 100 + 9),
        ("(drop (i64.extend_i32_s (i32.const 5)))", 1, 100 + 9),
        ("(drop (i64.extend_i32_u (i32.const 5)))", 1, 100 + 9),
        ("(i32.store (i32.const 5) (i32.const 5))", 2, 825),
        ("(i32.store8 (i32.const 5) (i32.const 5))", 2, 825),
        ("(i32.store16 (i32.const 5) (i32.const 5))", 2, 825),
        ("(i64.store (i32.const 5) (i64.const 5))", 2, 950),
        ("(i64.store8 (i32.const 5) (i64.const 5))", 2, 950),
        ("(i64.store16 (i32.const 5) (i64.const 5))", 2, 950),
        ("(i64.store32 (i32.const 5) (i64.const 5))", 2, 950),
        ("nop", 0, 1),
    ] {
        all.push((text.to_owned(), constants, price));
    }
    let mut chain = Chain::new();
    for (text, constants, price) in &all {
        assert_eq!(cost(&mut chain, text), BLOCK + constants + price + 2, "{text}");
    }
    // A branch leaves out the `end` that closes its block.
    for branch in ["(block (br 0))", "(block (br_if 0 (i32.const 1)))"] {
        let constant = u64::from(branch.contains("const"));
        assert_eq!(cost(&mut chain, branch), BLOCK + 1 + constant + 765 + BLOCK + 2, "{branch}");
    }
    let not_taken = "(block (br_if 0 (i32.const 0)))";
    assert_eq!(cost(&mut chain, not_taken), BLOCK + 2 + 765 + BLOCK + 1 + BLOCK + 2, "{not_taken}");
}

/// Ink of a program of these instructions before `i32.const 0`.
fn cost(chain: &mut Chain, text: &str) -> u64 {
    let main = format!(r#"(func (export "user_entrypoint") (param i32) (result i32) {text} i32.const 0)"#);
    let program = chain.program(&format!(r#"(module (memory (export "memory") 1 1) {main})"#));
    let outcome = chain.send(program, vec![]);
    assert_eq!(outcome.status, Status::Success, "{text}: {outcome:?}");
    outcome.stylus[0].ink_start - outcome.stylus[0].ink_end
}

#[test]
fn too_little_gas_for_the_start_takes_it_all() {
    let mut chain = Chain::new();
    let wat = r#"(module (memory (export "memory") 1 1)
        (func (export "user_entrypoint") (param i32) (result i32) i32.const 0))"#;
    let program = chain.program(wat);
    let (start, cached) = start_gas(&wat::parse_str(wat).unwrap());
    let mut send = |start: u64, gas: u64| {
        let mut tx = chain.tx(Some(program), vec![]);
        tx.gas_limit = 21_000 + start + gas;
        let outcome = chain.run(&tx);
        chain.mine();
        assert!(outcome.status == Status::Success || outcome.gas_used == tx.gas_limit, "{outcome:?}");
        (outcome.status, outcome.stylus.len())
    };
    let burnt = Status::Halt("out of gas".into());
    // One too little for the start; the start and nothing else; a block of const and end is 2,452 ink.
    assert_eq!(send(start - 1, 0), (burnt.clone(), 0));
    assert_eq!(send(start, 0), (burnt.clone(), 1));
    assert_eq!(send(start, 2452u64.div_ceil(GAS)), (Status::Success, 1));
    chain.cache(program);
    let mut tx = chain.tx(Some(program), vec![]);
    tx.gas_limit = 21_000 + cached - 1;
    assert_eq!(chain.run(&tx).status, burnt);
}

#[test]
fn a_storage_write_that_gas_does_not_reach_for() {
    let wat = r#"(module
        (import "vm_hooks" "storage_cache_bytes32" (func $cache (param i32 i32)))
        (import "vm_hooks" "storage_flush_cache" (func $flush (param i32)))
        (memory (export "memory") 1 1)
        (data (i32.const 32) "\01")
        (func (export "user_entrypoint") (param i32) (result i32)
            (call $cache (i32.const 0) (i32.const 32)) (call $flush (i32.const 0)) i32.const 0))"#;
    let wasm = wat::parse_str(wat).unwrap();
    // 9.9 gas of ink, then 22,100 are wanted and 22,000 there. From ArbOS 50 on that takes all; before, the program failed and kept the
    // rest.
    for (version, status, used) in
        [(51, Status::Halt("out of gas".into()), 22_010), (49, Status::Revert, 10), (32, Status::Revert, 10)]
    {
        let mut chain = Chain::of_version(version);
        let program = chain.program(wat);
        let mut tx = chain.tx(Some(program), vec![]);
        let begun = 21_000 + start_gas(&wasm).0;
        tx.gas_limit = begun + 22_010;
        let outcome = chain.run(&tx);
        assert_eq!((outcome.status, outcome.gas_used - begun), (status, used), "ArbOS {version}");
    }
}
