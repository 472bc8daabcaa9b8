//! Limits of requests, and how long the node waits for clients.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use alloy_primitives::hex;
use muster_devnode::rpc::Patience;
use muster_devnode::{Config, Devnode};
use serde_json::{json, Value};
use support::rpc::*;

/// Returns a million zeros.
const LARGE: &[u8] = &hex!("620f4240 6000 f3");
/// Calls itself with a megabyte of calldata as often as there is gas.
const CHATTER: &[u8] = &hex!("5b 6000 6000 620f4240 6000 6000 6004 61ffff f1 50 600056");

#[test]
fn the_answer_of_a_batch_is_bounded() {
    let node = start();
    let large = node.deploy(LARGE);
    let one = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [{"to": large}]});
    let answers = node.json(&json!(vec![one; 200]).to_string());
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), 200);
    // Two million digits each: the thirteenth is the first beyond 25,000,000 bytes.
    assert!(answers[..13].iter().all(|a| a["result"].as_str().unwrap().len() == 2_000_002));
    let refused = json!({"code": -32003, "message": "response too large"});
    assert!(answers[13..].iter().all(|a| a["error"] == refused && a["id"] == 1));
    assert_eq!(node.ok("eth_blockNumber", json!([])), "0x1");
}

#[test]
fn traces_are_bounded() {
    let node = start();
    let (chatter, spin) = (node.deploy(CHATTER), node.deploy(SPIN));
    let call = json!({"to": chatter, "gas": "0x2faf080"});
    let calls = json!({"tracer": "callTracer"});
    let (code, message) = node.err("debug_traceCall", json!([call, "latest", calls]));
    assert_eq!((code, message.as_str()), (-32000, "trace too large: more than 50000000 bytes"));
    // Fifty million steps of a loop.
    let (code, message) = node.err("debug_traceCall", json!([{"to": spin, "gas": "0x2faf080"}, "latest", {}]));
    assert_eq!((code, message.as_str()), (-32000, "trace too large: more than 50000000 bytes"));
    // An access list records no frames, so it has no such bound.
    assert_eq!(node.ok("eth_createAccessList", json!([call]))["error"], "out of gas");
    assert_eq!(
        node.ok("debug_traceCall", json!([{"to": spin, "gas": "0x6000"}, "latest", {"limit": 5}]))["structLogs"]
            .as_array()
            .unwrap()
            .len(),
        5
    );
}

#[test]
fn many_filters_are_quick_and_bounded() {
    let node = start();
    let of = |method: &str| {
        let one = json!({"jsonrpc": "2.0", "id": 1, "method": method});
        json!(vec![one; 1_000]).to_string()
    };
    let (batch, simple) = (of("eth_newBlockFilter"), of("eth_chainId"));
    let timed = |batch: &str| {
        let begin = Instant::now();
        assert!(node.json(batch)[999]["result"].is_string());
        begin.elapsed()
    };
    // Alternately, so that a busy machine delays both alike. While each filter looked at all others they took 200 times as long as they do.
    let times: Vec<_> = (0..50).map(|_| (timed(&batch), timed(&simple))).collect();
    let [filters, calls] = [times.iter().map(|t| t.0).sum::<Duration>(), times.iter().map(|t| t.1).sum()];
    assert!(filters < 30 * calls, "{filters:?} and {calls:?}");
    for _ in 0..50 {
        node.json(&batch);
    }
    let (code, message) = node.err("eth_newFilter", json!([{}]));
    assert!(code == -32000 && message.starts_with("too many filters, at most 100000"), "{message}");
}

#[test]
fn lists_are_bounded() {
    let node = start();
    let many: Vec<_> = (0..1_001u32).map(|n| format!("{n:#042x}")).collect();
    let (code, message) = node.err("eth_newFilter", json!([{"address": many}]));
    assert_eq!((code, message.as_str()), (-32602, "exceed max addresses or topics per search position: 1000"));
    node.ok("eth_newFilter", json!([{"address": many[1..]}]));
    let percentiles: Vec<_> = (0..101).map(|n| f64::from(n) / 2.0).collect();
    let (code, message) = node.err("eth_feeHistory", json!(["0x1", "latest", percentiles]));
    assert_eq!((code, message.as_str()), (-32000, "invalid reward percentile: over the query limit 100"));
}

#[test]
fn half_sent_requests_are_not_waited_for() {
    // The short wait is for missing parts only: parts that are sent may take a while on a busy machine.
    let (short, long) = (Duration::from_secs(2), Duration::from_mins(2));
    for (head, body, sent, answer) in [
        (short, long, b"POST / HTTP/1.1\r\nhost: x\r\ncontent-".as_slice(), ""),
        (
            long,
            short,
            b"POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{",
            "HTTP/1.1 408",
        ),
    ] {
        let patience = Patience { head, body, ..Patience::default() };
        let node = Rpc(Devnode::start(Config { patience, ..Config::default() }).unwrap());
        let mut stream = TcpStream::connect(node.0.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        stream.write_all(sent).unwrap();
        let mut heard = Vec::new();
        // It ends because the node closes, not because nothing came for a minute.
        stream.read_to_end(&mut heard).unwrap();
        assert!(String::from_utf8(heard).unwrap().starts_with(answer));
        assert_eq!(node.ok("eth_blockNumber", json!([])), "0x0");
    }
}

#[test]
fn long_calls_do_not_delay_short_reads() {
    let node = start();
    let spin = node.deploy(SPIN);
    let stop = AtomicBool::new(false);
    let timed = |work: &dyn Fn()| {
        let begin = Instant::now();
        work();
        begin.elapsed()
    };
    let calls = Mutex::new(Vec::new());
    let mut reads = Vec::new();
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let refused = || assert_eq!(node.err("eth_call", json!([{"to": spin, "gas": "0x1312d00"}])).1, "out of gas");
                    calls.lock().unwrap().push(timed(&refused));
                }
            });
        }
        // All have begun, and go on.
        while calls.lock().unwrap().len() < 6 {
            thread::sleep(Duration::from_millis(10));
        }
        reads.extend((0..20).map(|_| timed(&|| drop(node.ok("eth_blockNumber", json!([]))))));
        stop.store(true, Ordering::Relaxed);
    });
    let mut calls = calls.into_inner().unwrap();
    reads.sort_unstable();
    calls.sort_unstable();
    // A read that waited for one of them would take as long as the shortest takes, however slow the machine is.
    assert!(reads[10] < calls[0], "{reads:?} {calls:?}");
}

#[test]
fn content_types_that_mean_json_are_taken() {
    let node = start();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#;
    for (kind, status) in [("application/json-rpc", 200), ("application/jsonrequest; charset=utf-8", 200), ("text/json", 415)] {
        let request = format!(
            "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        assert_eq!(node.exchange(request.as_bytes()).0, status, "{kind}");
    }
}

#[test]
fn surplus_arguments_are_refused() {
    let node = start();
    for (method, most) in [
        ("eth_chainId", 0),
        ("eth_blockNumber", 0),
        ("net_version", 0),
        ("web3_clientVersion", 0),
        ("eth_accounts", 0),
        ("eth_gasPrice", 0),
        ("txpool_status", 0),
        ("anvil_getAutomine", 0),
    ] {
        let refused = (-32602, format!("too many arguments, want at most {most}"));
        assert_eq!(node.err(method, json!([1])), refused, "{method}");
    }
}

#[test]
fn ranges_of_logs_end_with_the_chain() {
    let node = start();
    node.ok("evm_mine", json!([{"blocks": 5}]));
    let logs = |from: Value, to: Value| node.request("eth_getLogs", json!([{"fromBlock": from, "toBlock": to}]));
    let invalid = |message: &str| json!({"code": -32602, "message": message});
    assert_eq!(logs(json!("0x0"), json!("0x5"))["result"], json!([]));
    assert_eq!(logs(json!("0x0"), json!("latest"))["result"], json!([]));
    assert_eq!(logs(json!("0x0"), json!("0x6"))["error"], invalid("block range extends beyond current head block"));
    assert_eq!(logs(json!("0x63"), json!("0x64"))["error"], invalid("block range extends beyond current head block"));
    assert_eq!(logs(json!("0x6"), json!("latest"))["error"], invalid("invalid block range params"));
    assert_eq!(logs(json!("0x3"), json!("0x2"))["error"], invalid("invalid block range params"));
    assert_eq!(logs(json!("0x3"), json!("pending"))["error"]["message"], "pending logs are not supported");
}
