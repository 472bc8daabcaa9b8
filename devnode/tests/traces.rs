//! Tracers, and where the gas of a transaction went.

mod support;

use std::process::Command;

use alloy_primitives::{hex, Address, Bytes, B256};
use serde_json::{json, Value};
use support::rpc::*;
use support::word;

/// Loads slot 0, adds 1, stores it, asks for the caller, hashes that, logs it, calls the address in its calldata, and ends with a status of
/// its own.
const BUSY: &str = r#"(module
    (memory (export "memory") 1 1)
    (func (export "user_entrypoint") (param $len i32) (result i32)
        (call $read_args (i32.const 0))
        (call $load (i32.const 64) (i32.const 96))
        (i32.store8 (i32.const 127) (i32.add (i32.load8_u (i32.const 127)) (i32.const 1)))
        (call $cache (i32.const 64) (i32.const 96))
        (call $flush (i32.const 1))
        (call $msg_sender (i32.const 128))
        (call $keccak (i32.const 128) (i32.const 20) (i32.const 160))
        (call $emit_log (i32.const 160) (i32.const 32) (i32.const 1))
        (drop (call $call_contract (i32.const 12) (i32.const 0) (i32.const 0) (i32.const 512) (i64.const -1) (i32.const 256)))
        (drop (call $block_timestamp))
        (call $write_result (i32.const 160) (i32.const 32))
        (call $exit_early (i32.const 0))
        unreachable))"#;

fn to(target: Address, data: &str) -> String {
    format!("0x{:0>64}{data}", hex::encode(target))
}

#[test]
fn host_calls_are_shown_with_arguments_and_ink() {
    let node = start();
    let busy = program(&node, BUSY);
    let load = node.deploy(LOAD);
    let hash = node.ok("eth_sendTransaction", json!([{"to": busy, "data": to(load, "")}]));
    let trace = node.ok("debug_traceTransaction", json!([hash, {"tracer": "stylusTracer"}]));
    let steps = trace.as_array().unwrap();
    let names: Vec<_> = steps.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "user_entrypoint",
            "read_args",
            "storage_load_bytes32",
            "storage_cache_bytes32",
            "storage_flush_cache",
            "msg_sender",
            "native_keccak256",
            "emit_log",
            "call_contract",
            "block_timestamp",
            "write_result",
            "exit_early",
            "user_returned"
        ]
    );
    let me = dev().address();
    let digest = alloy_primitives::keccak256(me);
    let cat = |parts: &[&[u8]]| json!(Bytes::from(parts.concat()));
    let data = hex::decode(to(load, "")).unwrap();
    for (step, args, outs) in [
        (0, cat(&[&32u32.to_be_bytes()]), cat(&[])),
        (1, cat(&[]), cat(&[&data])),
        (2, cat(&[&[0; 32]]), cat(&[&[0; 32]])),
        (3, cat(&[&[0; 32], word(1).as_slice()]), cat(&[])),
        (4, cat(&[&[1]]), cat(&[])),
        (5, cat(&[]), cat(&[me.as_slice()])),
        (6, cat(&[me.as_slice()]), cat(&[digest.as_slice()])),
        (7, cat(&[&1u32.to_be_bytes(), digest.as_slice()]), cat(&[])),
        (8, cat(&[load.as_slice(), &[0xff; 8], &[0; 32]]), cat(&[&32u32.to_be_bytes(), &[0]])),
        (9, cat(&[]), cat(&[&START.to_be_bytes()])),
        (10, cat(&[digest.as_slice()]), cat(&[])),
        (11, cat(&[&0u32.to_be_bytes()]), cat(&[])),
        (12, cat(&[]), cat(&[&0u32.to_be_bytes()])),
    ] {
        assert_eq!((&steps[step]["args"], &steps[step]["outs"]), (&args, &outs), "{}", names[step]);
    }
    // An EVM instruction is no host call.
    assert_eq!((&steps[8]["address"], &steps[8]["steps"]), (&json!(load), &json!([])));
    // Ink only falls. The price list has the cost of a load: 18,480, 59,673 rounded down to gas, and a cold slot.
    let ink = |step: usize, which: &str| steps[step][which].as_u64().unwrap();
    for step in 1..steps.len() {
        assert!(ink(step, "startInk") <= ink(step - 1, "endInk") && ink(step, "endInk") <= ink(step, "startInk"));
    }
    assert_eq!(ink(2, "startInk") - ink(2, "endInk"), 18_480 + 50_000 + 21_000_000);

    // The same by the script that cargo-stylus sends, and for a call; other scripts are refused.
    let script = "{\n    \"hostio\": function(info) { /* ... */ },\n    nests: [\"call_contract\", \"delegate_call_contract\", \"static_call_contract\"]\n}\n";
    assert_eq!(node.ok("debug_traceTransaction", json!([hash, {"tracer": script}])), trace);
    let call = node.ok("debug_traceCall", json!([{"to": busy, "data": to(load, "")}, "latest", {"tracer": "stylusTracer"}]));
    assert_eq!(call.as_array().unwrap().len(), 13);
    assert_eq!(node.err("debug_traceTransaction", json!([hash, {"tracer": "{result: function() {}}"}])).0, -32000);
}

#[test]
fn host_calls_nest() {
    let node = start();
    let (proxy, busy) = (program(&node, PROXY), program(&node, BUSY));
    let (load, forward) = (node.deploy(LOAD), node.deploy(FORWARD));
    let trace = |target: Address, data: String| {
        node.ok("debug_traceCall", json!([{"to": target, "data": data}, "latest", {"tracer": "stylusTracer"}]))
    };
    // A program calls a program.
    let steps = trace(proxy, to(busy, &to(load, "")[2..]));
    let call = steps.as_array().unwrap().iter().find(|s| s["name"] == "call_contract").unwrap();
    assert_eq!(call["address"], json!(busy));
    assert_eq!(call["steps"].as_array().unwrap().len(), 13);
    // EVM code calls a program: the frame is there, though nothing in it asked for it.
    let steps = trace(forward, to(busy, ""));
    assert_eq!(
        (&steps[0]["name"], &steps[0]["args"], &steps[0]["startInk"]),
        (&json!("evm_call_contract"), &json!("0x"), &json!(0))
    );
    assert_eq!(steps[0]["steps"][0]["name"], "user_entrypoint");
    assert_eq!(trace(load, "0x".into()), json!([]));
}

#[test]
fn instructions_are_logged_one_by_one() {
    let node = start();
    let (store, forward) = (node.deploy(STORE), node.deploy(FORWARD));
    let hash = node.ok("eth_sendTransaction", json!([{"to": store, "data": word(7)}]));
    let trace = node.ok("debug_traceTransaction", json!([hash, {"enableMemory": true}]));
    let receipt = node.ok("eth_getTransactionReceipt", json!([hash]));
    assert_eq!((&trace["failed"], &trace["returnValue"]), (&json!(false), &json!("0x")));
    assert_eq!(trace["gas"], json!(number(&receipt["gasUsed"])));
    let steps = trace["structLogs"].as_array().unwrap();
    let sstore = steps.iter().find(|s| s["op"] == "SSTORE").unwrap();
    assert_eq!(sstore["storage"], json!({format!("{:064x}", 0): format!("{:064x}", 7)}));
    assert_eq!((&sstore["gasCost"], &sstore["depth"]), (&json!(22_100), &json!(1)));
    assert_eq!(sstore["stack"], json!(["0x7", "0x7", "0x0"]));
    let log = steps.iter().find(|s| s["op"] == "LOG2").unwrap();
    assert_eq!(log["memory"], json!([word(7)]));
    // Gas adds up from step to step, and with the base to the whole.
    for pair in steps.windows(2) {
        assert_eq!(pair[0]["gas"].as_u64().unwrap() - pair[0]["gasCost"].as_u64().unwrap(), pair[1]["gas"].as_u64().unwrap());
    }
    let spent: u64 = steps.iter().map(|s| s["gasCost"].as_u64().unwrap()).sum();
    assert_eq!(21_000 + 31 * 4 + 16 + spent, number(&receipt["gasUsed"]));
    // Inner frames, and less of everything.
    let options = json!({"disableStack": true, "disableStorage": true});
    let deep = node.ok("debug_traceCall", json!([{"to": forward, "data": to(store, "")}, "latest", options]));
    let steps = deep["structLogs"].as_array().unwrap();
    assert!(steps.iter().any(|s| s["depth"] == 2 && s["op"] == "SSTORE"));
    assert!(steps.iter().all(|s| s.get("stack").is_none() && s.get("storage").is_none() && s.get("memory").is_none()));
    let invalid = node.deploy(INVALID);
    let failed = node.ok("debug_traceCall", json!([{"to": invalid, "gas": "0x6000"}, "latest", {}]));
    assert_eq!((&failed["failed"], &failed["structLogs"][0]["error"]), (&json!(true), &json!("invalid opcode: INVALID")));
}

#[test]
fn the_state_before_and_after() {
    let node = start();
    let store = node.deploy(STORE);
    node.ok("eth_sendTransaction", json!([{"to": store, "data": word(1)}]));
    let hash = node.ok("eth_sendTransaction", json!([{"to": store, "data": word(2)}]));
    let (at, me) = (store.to_string(), dev().address().to_string());
    let before = node.ok("debug_traceTransaction", json!([hash, {"tracer": "prestateTracer"}]));
    assert_eq!(before[&at]["storage"], json!({(word(0).to_string()): word(1)}));
    assert_eq!(before[&at]["code"], json!(hex::encode_prefixed(STORE)));
    assert_eq!(before[&me]["nonce"], 2);
    let diff = node.ok("debug_traceTransaction", json!([hash, {"tracer": "prestateTracer", "tracerConfig": {"diffMode": true}}]));
    assert_eq!(diff["pre"][&at]["storage"], json!({(word(0).to_string()): word(1)}));
    assert_eq!(diff["post"][&at], json!({"storage": {(word(0).to_string()): word(2)}}));
    assert_eq!(diff["post"][&me]["nonce"], 3);
    let code = node.ok(
        "debug_traceCall",
        json!([{"to": store}, "latest", {"tracer": "prestateTracer", "tracerConfig": {"disableCode": true}}]),
    );
    assert!(code[&at].get("code").is_none());
    assert_eq!(node.ok("debug_traceTransaction", json!([hash, {"tracer": "noopTracer"}])), json!({}));
    let block = node.ok("eth_getBlockByNumber", json!(["latest", false]))["hash"].clone();
    let all = node.ok("debug_traceBlockByHash", json!([block, {"tracer": "callTracer"}]));
    assert_eq!((&all[0]["txHash"], &all[0]["result"]["to"]), (&hash, &json!(store)));
    assert_eq!(node.err("debug_traceBlockByNumber", json!(["0x63"])).0, -32000);
}

/// All that a frame took itself, in gas.
fn own(frame: &Value) -> f64 {
    let sum = |parts: &Value| parts.as_object().unwrap().values().map(|p| p["amount"].as_u64().unwrap()).sum::<u64>();
    let price = frame["inkPrice"].as_u64().unwrap().max(1) as f64;
    let start = (frame["start"].as_u64().unwrap() + frame["pages"].as_u64().unwrap()) as f64;
    start + sum(&frame["hostios"]) as f64 / price + sum(&frame["ops"]) as f64
}

#[test]
fn gas_is_accounted_for() {
    let node = start();
    let (proxy, busy) = (program(&node, PROXY), program(&node, BUSY));
    let store = node.deploy(STORE);
    // A program that calls a program that calls a contract.
    let data = to(busy, &to(store, "")[2..]);
    let hash = node.ok("eth_sendTransaction", json!([{"to": proxy, "data": data}]));
    let receipt = node.ok("eth_getTransactionReceipt", json!([hash]));
    let profile = node.ok("muster_gasProfile", json!([hash]));
    assert_eq!(profile["gasUsed"], json!(number(&receipt["gasUsed"])));
    let outer = &profile["frame"];
    let (middle, inner) = (&outer["calls"][0], &outer["calls"][0]["calls"][0]);
    assert_eq!((&outer["to"], &middle["to"], &inner["to"]), (&json!(proxy), &json!(busy), &json!(store)));
    // The contract's frame is explained to the unit by its instructions: it stores 0 over 0 and logs.
    assert_eq!(own(inner), inner["gasUsed"].as_f64().unwrap());
    assert_eq!(inner["ops"]["SSTORE"], json!({"count": 1, "amount": 2_200}));
    let slot = alloy_primitives::B256::ZERO.to_string();
    let touched = json!({"reads": {"count": 0, "amount": 0}, "writes": {"count": 1, "amount": 2_200}});
    assert_eq!((&inner["words"], &inner["account"]), (&json!({slot: touched}), &json!(store)));
    // In a program's frame a call's own cost is without the frame it opened: 2,600 for a cold account and its ink.
    let call = &middle["hostios"]["call_contract"];
    assert_eq!(call["amount"], json!(26_000_000 + 83_193 + 2 * 16_381));
    let intrinsic = &profile["intrinsic"];
    let sum: u64 = ["base", "calldata", "other"].iter().map(|part| intrinsic[part].as_u64().unwrap()).sum();
    assert_eq!(sum + outer["gasUsed"].as_u64().unwrap(), number(&receipt["gasUsed"]));
    // WASM is the rest beside start, host calls and frames below, and it is little.
    for frame in [outer, middle] {
        let below: f64 = frame["calls"].as_array().unwrap().iter().map(|c| c["gasUsed"].as_f64().unwrap()).sum();
        let wasm = frame["gasUsed"].as_f64().unwrap() - below - own(frame);
        assert!((0.0..100.0).contains(&wasm), "{wasm} in {frame}");
    }

    let folder = std::env::temp_dir().join(format!("muster-gas-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (svg, folded) = (folder.join("gas.svg"), folder.join("gas.folded"));
    let output = Command::new(env!("CARGO_BIN_EXE_muster-devnode"))
        .args(["gas", hash.as_str().unwrap(), "--rpc-url", &node.0.url(), "--words"])
        .arg("--svg")
        .arg(&svg)
        .arg("--folded")
        .arg(&folded)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).unwrap();
    for part in
        ["base", "calldata", "starts of programs", "storage_flush_cache", "SSTORE", "WASM instructions", "in all", "storage word"]
    {
        assert!(table.contains(part), "{part} in\n{table}");
    }
    assert!(std::fs::read_to_string(&svg).unwrap().contains("<svg"));
    let lines = std::fs::read_to_string(&folded).unwrap();
    let total: u64 = lines.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    // Each line is rounded.
    assert!(total.abs_diff(number(&receipt["gasUsed"])) <= lines.lines().count() as u64);
    std::fs::remove_dir_all(&folder).unwrap();
    let none = Command::new(env!("CARGO_BIN_EXE_muster-devnode"))
        .args(["gas", &B256::ZERO.to_string(), "--rpc-url", &node.0.url()])
        .output()
        .unwrap();
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8(none.stderr).unwrap().contains("transaction not found"));
}
