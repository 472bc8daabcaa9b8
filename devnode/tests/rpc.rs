//! The protocol itself: the answers to good and bad requests, over plain HTTP.

mod support;

use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use alloy_consensus::{SignableTransaction, TxEip1559, TxEip2930, TxEnvelope, TxLegacy};
use alloy_eips::eip2718::Encodable2718;
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{address, hex, keccak256, Address, Bytes, TxKind, B256, U256};
use alloy_signer::SignerSync;
use alloy_signer_local::PrivateKeySigner;
use muster_devnode::chain::{Clock, History, NITRO_DEV_KEY};
use muster_devnode::rpc::Patience;
use muster_devnode::{Config, Devnode};
use serde_json::{json, Value};
use support::rpc::*;

#[test]
fn identity() {
    let node = start();
    assert!(node.ok("web3_clientVersion", json!([])).as_str().unwrap().starts_with("anvil/muster-devnode/v"));
    assert_eq!(node.ok("net_version", json!([])), "412346");
    assert_eq!(node.ok("eth_chainId", Value::Null), "0x64aba");
    assert_eq!(node.ok("eth_syncing", json!([])), false);
    let accounts = node.ok("eth_accounts", json!([]));
    assert_eq!(accounts.as_array().unwrap().len(), 11);
    assert_eq!(accounts[0], "0x3f1eae7d46d88f08fc2f8ed27fcb2ab183eb2d0e");
    assert_eq!(accounts[1], "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266");
    assert_eq!(
        node.ok("web3_sha3", json!(["0x68656c6c6f"])),
        "0x1c8aff950685c2ed4bc3174f3472287b56d9517b9c948127319a09a7a36deac8"
    );
}

#[test]
fn malformed_requests_get_the_protocol_s_codes_and_the_node_lives_on() {
    let node = start();
    let code = |body: &str| node.json(body)["error"]["code"].clone();
    for broken in ["", "{", "nonsense", "{\"jsonrpc\":\"2.0\",\"id\":1,", "[1,", "\u{0}"] {
        assert_eq!(node.json(broken)["error"], json!({"code": -32700, "message": "parse error"}), "{broken:?}");
    }
    let (_, body) = node.post(&[0xff, 0xfe]);
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["error"]["code"], -32700);
    for wrong in [
        "[]",
        "1",
        "\"x\"",
        "{}",
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"id":1,"method":"eth_chainId"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"eth_chainId"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"eth_chainId"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
    ] {
        let message = if wrong == "[]" { "empty batch" } else { "invalid request" };
        let answer = node.json(wrong);
        assert_eq!(answer["error"], json!({"code": -32600, "message": message}), "{wrong}");
        // With any other error, an id that is one is answered under.
        assert_eq!(answer["id"], if wrong.contains("\"id\":1") { json!(1) } else { Value::Null }, "{wrong}");
    }
    let nested = node.json(r#"[["2.0",1,"eth_chainId",[]]]"#);
    assert_eq!(nested[0]["error"]["code"], -32600);
    assert_eq!(node.err("eth_foo", json!([])), (-32601, "the method eth_foo does not exist/is not available".into()));
    assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":{"a":1}}"#), -32602);
    assert_eq!(node.err("eth_getBalance", json!([])), (-32602, "missing value for required argument 0".into()));
    for params in [json!(["0x12"]), json!([5]), json!([Address::ZERO, "latest", 3]), json!([Address::ZERO, "soon"])] {
        assert_eq!(node.err("eth_getBalance", params).0, -32602);
    }
    assert_eq!(node.ok("eth_blockNumber", json!([])), "0x0");
}

#[test]
fn batches_and_notifications() {
    let node = start();
    let answers = node.json(
        r#"[{"jsonrpc":"2.0","id":"a","method":"eth_chainId"},
            {"jsonrpc":"2.0","method":"eth_chainId"},
            7,
            {"jsonrpc":"2.0","id":null,"method":"eth_chainId"},
            {"jsonrpc":"2.0","id":2,"method":"eth_nothing"}]"#,
    );
    assert_eq!(answers.as_array().unwrap().len(), 4);
    assert_eq!(answers[2], json!({"jsonrpc": "2.0", "id": null, "result": "0x64aba"}));
    assert_eq!(answers[0], json!({"jsonrpc": "2.0", "id": "a", "result": "0x64aba"}));
    assert_eq!(answers[1]["error"]["code"], -32600);
    assert_eq!(answers[3]["error"]["code"], -32601);
    assert_eq!(node.post(br#"{"jsonrpc":"2.0","method":"eth_chainId"}"#), (200, String::new()));
    let one = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#;
    let many = |n: usize| format!("[{}]", vec![one; n].join(","));
    assert_eq!(node.json(&many(1_000)).as_array().unwrap().len(), 1_000);
    let refused = json!([{"jsonrpc": "2.0", "id": 1, "error": {"code": -32600, "message": "batch too large"}}]);
    assert_eq!(node.json(&many(1_001)), refused);
    let subscribe = node.err("eth_subscribe", json!(["newHeads"]));
    assert_eq!(subscribe, (-32601, "notifications not supported".into()));
}

#[test]
fn http_is_guarded() {
    let node = start();
    let (status, body) = node.exchange(
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 5242881\r\nconnection: close\r\n\r\n",
    );
    assert_eq!((status, body.as_str()), (413, "content length too large (5242881>5242880)"));
    // Without a length announced the limit holds as well. One chunk of 6 MiB.
    let mut chunked =
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n600000\r\n"
            .to_vec();
    chunked.resize(chunked.len() + 0x60_0000, b' ');
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    assert_eq!(node.exchange(&chunked).0, 413);
    let text = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    assert_eq!(node.exchange(text).0, 415);
    assert_eq!(node.exchange(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").0, 200);
    assert_eq!(node.exchange(b"DELETE / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").0, 405);
    assert_eq!(node.ok("eth_blockNumber", json!([])), "0x0");
}

#[test]
fn signed_transactions_of_every_type_are_mined() {
    let node = start();
    let to = address!("00000000000000000000000000000000000000aa");
    let legacy = sign(
        TxLegacy {
            chain_id: Some(CHAIN),
            nonce: 0,
            gas_price: GWEI,
            gas_limit: 21_000,
            to: to.into(),
            value: U256::from(5),
            ..Default::default()
        },
        &dev(),
    );
    // As the CREATE2 factory's deployment: valid on every chain.
    let unprotected =
        sign(TxLegacy { nonce: 1, gas_price: GWEI, gas_limit: 21_000, to: to.into(), ..Default::default() }, &dev());
    let listed = sign(
        TxEip2930 {
            chain_id: CHAIN,
            nonce: 2,
            gas_price: GWEI,
            gas_limit: 100_000,
            to: to.into(),
            access_list: AccessList(vec![AccessListItem { address: to, storage_keys: vec![B256::ZERO] }]),
            ..Default::default()
        },
        &dev(),
    );
    let dynamic = sign(TxEip1559 { max_priority_fee_per_gas: GWEI / 2, ..plain(3) }, &dev());
    for (index, (tx, kind, gas)) in
        [(legacy, "0x0", 21_000), (unprotected, "0x0", 21_000), (listed, "0x1", 25_300), (dynamic, "0x2", 21_000)]
            .into_iter()
            .enumerate()
    {
        let hash = node.send_raw(&tx);
        assert_eq!(hash, tx.tx_hash().to_string());
        let receipt = node.ok("eth_getTransactionReceipt", json!([hash]));
        assert_eq!(receipt["type"], kind);
        assert_eq!(receipt["status"], "0x1");
        assert_eq!(number(&receipt["gasUsed"]), gas);
        assert_eq!(number(&receipt["blockNumber"]), index as u64 + 1);
        // ArbOS takes the base fee, whatever is offered above it.
        assert_eq!(number(&receipt["effectiveGasPrice"]), 100_000_000);
        assert_eq!(receipt["gasUsedForL1"], "0x0");
        assert_eq!(receipt["l1BlockNumber"], "0x1");
        let shown = node.ok("eth_getTransactionByHash", json!([hash]));
        assert_eq!(shown["type"], kind);
        assert_eq!(shown["from"], "0x3f1eae7d46d88f08fc2f8ed27fcb2ab183eb2d0e");
        assert_eq!(shown["blockHash"], receipt["blockHash"]);
        let block = node.ok("eth_getBlockByHash", json!([receipt["blockHash"], true]));
        assert_eq!(block["transactions"][0], shown);
        let same = node.ok("eth_getBlockByNumber", json!([receipt["blockNumber"], false]));
        assert_eq!(same["transactions"], json!([hash]));
        assert_eq!(same["hash"], block["hash"]);
        assert_eq!(node.ok("eth_getBlockReceipts", json!([receipt["blockNumber"]])), json!([receipt]));
        let by_index = node.ok("eth_getTransactionByBlockNumberAndIndex", json!([receipt["blockNumber"], "0x0"]));
        assert_eq!(by_index, shown);
    }
    assert_eq!(node.ok("eth_getBalance", json!([to, "latest"])), "0x6");
    assert_eq!(node.ok("eth_getTransactionCount", json!([dev().address(), "pending"])), "0x4");
    assert_eq!(node.ok("eth_getTransactionReceipt", json!([B256::ZERO])), Value::Null);
    assert_eq!(node.ok("eth_getBlockByNumber", json!(["0x99", false])), Value::Null);
}

#[test]
fn headers_form_a_chain() {
    let node = start();
    for nonce in 0..3 {
        node.send_raw(&sign(plain(nonce), &dev()));
    }
    let mut parent = json!(B256::ZERO);
    for block in 0..4 {
        let header = node.ok("eth_getBlockByNumber", json!([format!("{block:#x}"), false]));
        assert_eq!(header["parentHash"], parent);
        assert_eq!(header["difficulty"], "0x1");
        assert_eq!(header["baseFeePerGas"], "0x5f5e100");
        parent = header["hash"].clone();
        // The hash is that of the header's fields.
        let parsed: alloy_consensus::Header = serde_json::from_value(header.clone()).unwrap();
        assert_eq!(json!(parsed.hash_slow()), header["hash"]);
    }
}

#[test]
fn bad_transactions_are_refused_in_go_ethereum_s_words() {
    let node = start_with(|c| c.balance = U256::from(10u128.pow(18)));
    let me = dev().address();
    node.send_raw(&sign(plain(0), &dev()));

    assert_eq!(node.refuse_raw(&sign(plain(0), &dev())), format!("nonce too low: address {me}, tx: 0 state: 1"));
    assert_eq!(node.refuse_raw(&sign(plain(9), &dev())), format!("nonce too high: address {me}, tx: 9 state: 1"));
    let poor = TxEip1559 { value: U256::from(10u128.pow(19)), ..plain(1) };
    let message = node.refuse_raw(&sign(poor, &dev()));
    assert!(message.starts_with(&format!("insufficient funds for gas * price + value: address {me} have ")), "{message}");
    assert!(message.ends_with(" want 10000021000000000000"), "{message}");
    let stranger = PrivateKeySigner::from_bytes(&keccak256("stranger")).unwrap();
    assert!(node.refuse_raw(&sign(plain(0), &stranger)).starts_with("insufficient funds for gas * price + value"));
    let little = TxEip1559 { gas_limit: 20_999, ..plain(1) };
    assert_eq!(node.refuse_raw(&sign(little, &dev())), "intrinsic gas too low: have 20999, want 21000");
    let cheap = TxEip1559 { max_fee_per_gas: 99_999_999, ..plain(1) };
    assert_eq!(
        node.refuse_raw(&sign(cheap, &dev())),
        format!("max fee per gas less than block base fee: address {me}, maxFeePerGas: 99999999, baseFee: 100000000")
    );
    let tip = TxEip1559 { max_priority_fee_per_gas: 2 * GWEI, ..plain(1) };
    assert!(node.refuse_raw(&sign(tip, &dev())).starts_with("max priority fee per gas higher than max fee per gas"));
    let elsewhere = TxEip1559 { chain_id: 1, ..plain(1) };
    assert_eq!(node.refuse_raw(&sign(elsewhere, &dev())), "invalid sender: invalid chain id for signer: have 1 want 412346");
    let vast = TxEip1559 { gas_limit: 1 << 51, max_fee_per_gas: 1, ..plain(1) };
    assert_eq!(node.refuse_raw(&sign(vast, &dev())), "exceeds block gas limit");
    let vast = TxEip1559 { gas_limit: 1 << 51, ..plain(1) };
    assert_eq!(node.refuse_raw(&sign(vast, &dev())), "tx fee (2251799.81 ether) exceeds the configured cap (1.00 ether)");
    // A signature that recovers to nobody.
    let broken: TxEnvelope = plain(1).into_signed(alloy_primitives::Signature::new(U256::ZERO, U256::ZERO, false)).into();
    assert!(node.refuse_raw(&broken).starts_with("invalid sender"));
    // The mirrored signature (EIP-2): same key, high s.
    let tx = plain(1);
    let signature = dev().sign_hash_sync(&tx.signature_hash()).unwrap();
    let order = U256::from_str("0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141").unwrap();
    let high = alloy_primitives::Signature::new(signature.r(), order - signature.s(), !signature.v());
    assert!(node.refuse_raw(&tx.into_signed(high).into()).starts_with("invalid sender"));
    for (bytes, words) in [("0x", "rlp: "), ("0x02", "rlp: "), ("0xc0", "rlp: "), ("0x03c0", "transaction type not supported")] {
        let (code, message) = node.err("eth_sendRawTransaction", json!([bytes]));
        assert_eq!(code, -32000);
        assert!(message.starts_with(words), "{bytes}: {message}");
    }
    assert_eq!(node.err("eth_sendRawTransaction", json!(["zz"])).0, -32602);
    assert_eq!(node.ok("eth_blockNumber", json!([])), "0x1");
    let sync = node.ok("eth_sendRawTransactionSync", json!([hex::encode_prefixed(sign(plain(1), &dev()).encoded_2718())]));
    assert_eq!(sync["status"], "0x1");

    // While mining is off, those that no block would take are refused too.
    node.ok("evm_setAutomine", json!([false]));
    let little = TxEip1559 { gas_limit: 20_999, ..plain(2) };
    assert_eq!(node.refuse_raw(&sign(little, &dev())), "intrinsic gas too low: have 20999, want 21000");
    let long = TxEip1559 { to: TxKind::Create, input: vec![0; 49_153].into(), gas_limit: 10_000_000, ..plain(2) };
    assert_eq!(node.refuse_raw(&sign(long, &dev())), "max initcode size exceeded: code size 49153 limit 49152");
    node.ok("anvil_setBalance", json!([stranger.address(), "0xde0b6b3a7640000"]));
    node.ok("anvil_setCode", json!([stranger.address(), "0x00"]));
    let message = node.refuse_raw(&sign(plain(0), &stranger));
    assert!(message.starts_with(&format!("sender not an eoa: address {}", stranger.address())), "{message}");
    let last = format!("nonce has max value: address {me}, nonce: {}", u64::MAX);
    assert_eq!(node.refuse_raw(&sign(plain(u64::MAX), &dev())), last);
    node.ok("anvil_setNonce", json!([me, "0xffffffffffffffff"]));
    for automine in [false, true] {
        node.ok("evm_setAutomine", json!([automine]));
        assert_eq!(node.refuse_raw(&sign(plain(u64::MAX), &dev())), last);
    }
    assert_eq!(node.ok("eth_getTransactionCount", json!([me, "pending"])), "0xffffffffffffffff");
    assert_eq!(node.ok("txpool_status", json!([])), json!({"pending": "0x0", "queued": "0x0"}));
}

#[test]
fn transactions_that_overtake_each_other_wait() {
    // Far longer than the others take to come, also on a busy machine; a request that waited for its end would be refused.
    let patience = Patience { nonce: Duration::from_mins(2), ..Patience::default() };
    let node = Rpc(Devnode::start(Config { patience, ..Config::default() }).unwrap());
    let begin = Instant::now();
    thread::scope(|scope| {
        for nonce in (0..8).rev() {
            let node = &node;
            scope.spawn(move || node.send_raw(&sign(plain(nonce), &dev())));
        }
    });
    assert!(begin.elapsed() < patience.nonce);
    assert_eq!(node.ok("eth_blockNumber", json!([])), "0x8");
}

#[test]
fn unlocked_accounts_send_and_others_do_not() {
    let node = start();
    let to = address!("00000000000000000000000000000000000000bb");
    let from = node.ok("eth_accounts", json!([]))[3].clone();
    let hash = node.ok("eth_sendTransaction", json!([{"from": from, "to": to, "value": "0x7"}]));
    let tx = node.ok("eth_getTransactionByHash", json!([hash]));
    // Signed for real: the envelope recovers to the sender.
    let envelope: TxEnvelope = serde_json::from_value(tx.clone()).unwrap();
    use alloy_consensus::transaction::SignerRecoverable;
    assert_eq!(json!(envelope.recover_signer().unwrap()), from);
    assert_eq!(tx["gas"], "0x5208");
    let (code, message) = node.err("eth_sendTransaction", json!([{"from": to, "to": to}]));
    assert_eq!((code, message), (-32000, format!("unknown account {to}")));
    node.ok("anvil_impersonateAccount", json!([to]));
    node.ok("hardhat_setBalance", json!([to, "0xde0b6b3a7640000"]));
    let hash = node.ok("eth_sendTransaction", json!([{"from": to, "to": Address::ZERO, "value": "0x1"}]));
    assert_eq!(node.ok("eth_getTransactionReceipt", json!([hash]))["from"], json!(to));
    node.ok("anvil_stopImpersonatingAccount", json!([to]));
    assert_eq!(node.err("eth_sendTransaction", json!([{"from": to, "to": to}])).0, -32000);
    // A signature one can check.
    let signed = node.ok("personal_sign", json!(["0x68690a", from]));
    let signature = alloy_primitives::Signature::from_str(signed.as_str().unwrap()).unwrap();
    assert_eq!(json!(signature.recover_address_from_msg(hex!("68690a")).unwrap()), from);
}

#[test]
fn revert_data_reaches_the_client() {
    let node = start();
    let contract = node.deploy(REVERT);
    let data = "0x08c379a0\
        0000000000000000000000000000000000000000000000000000000000000020\
        0000000000000000000000000000000000000000000000000000000000000003\
        6e6f210000000000000000000000000000000000000000000000000000000000";
    for method in ["eth_call", "eth_estimateGas"] {
        let answer = node.request(method, json!([{"to": contract, "data": data}]));
        assert_eq!(answer["error"], json!({"code": 3, "message": "execution reverted: no!", "data": data}), "{method}");
        let answer = node.request(method, json!([{"to": contract, "data": "0x12345678"}]));
        assert_eq!(answer["error"], json!({"code": 3, "message": "execution reverted", "data": "0x12345678"}));
    }
    // A transaction that reverts is mined.
    let hash = node.ok("eth_sendTransaction", json!([{"to": contract, "data": "0x12", "gas": "0x20000"}]));
    let receipt = node.ok("eth_getTransactionReceipt", json!([hash]));
    assert_eq!(receipt["status"], "0x0");
    assert!(number(&receipt["gasUsed"]) < 0x20000);
    assert_eq!(node.ok("eth_getTransactionCount", json!([dev().address()])), "0x2");
    // So is a creation, whose receipt has the address that the contract would have had.
    let hash = node.ok("eth_sendTransaction", json!([{"data": hex::encode_prefixed(REVERT), "gas": "0x20000"}]));
    let receipt = node.ok("eth_getTransactionReceipt", json!([hash]));
    assert_eq!((&receipt["status"], &receipt["contractAddress"]), (&json!("0x0"), &json!(dev().address().create(2))));
}

#[test]
fn other_failures_of_calls() {
    let node = start();
    let (invalid, spin) = (node.deploy(INVALID), node.deploy(SPIN));
    let (code, message) = node.err("eth_call", json!([{"to": invalid}]));
    assert_eq!(code, -32000);
    assert!(message.contains("invalid opcode"), "{message}");
    assert_eq!(node.err("eth_call", json!([{"to": spin, "gas": "0x100000"}])), (-32000, "out of gas".into()));
    let (code, message) = node.err("eth_estimateGas", json!([{"to": spin, "gas": "0x100000"}]));
    assert_eq!((code, message), (-32000, "gas required exceeds allowance (1048576)".into()));
    // A call may have more gas than a transaction can use, and an estimate may not. It fails with 33,000,000 or less.
    let greedy = node.deploy(&hex!("6301f78a40 5a 11 600b 57 fe 5b 00"));
    assert_eq!(node.ok("eth_call", json!([{"to": greedy}])), "0x");
    assert!(node.err("eth_estimateGas", json!([{"to": greedy}])).1.contains("invalid opcode"));
    // Nothing that NodeInterface refuses has an estimate.
    assert_eq!(node.err("eth_estimateGas", json!([{"to": Address::with_last_byte(0xc8), "data": "0x12345678"}])).0, -32000);
    let (_, message) = node.err("eth_call", json!([{"to": spin, "gas": "0x5207"}]));
    assert!(message.contains("intrinsic gas too low"), "{message}");
    let (_, message) = node.err("eth_call", json!([{"to": spin, "data": "0x01", "input": "0x02"}]));
    assert!(message.contains("\"data\" and \"input\""), "{message}");
    assert_eq!(node.ok("eth_call", json!([{"to": Address::ZERO, "data": "0x01", "input": "0x01"}])), "0x");
    let (_, message) = node.err("eth_call", json!([{"to": Address::ZERO, "gasPrice": "0x5f5e0ff"}]));
    assert!(message.starts_with("max fee per gas less than block base fee"), "{message}");
    let (_, message) = node.err("eth_call", json!([{"to": Address::ZERO, "gasPrice": "0x5f5e100"}]));
    assert!(message.starts_with("insufficient funds for gas * price + value"), "{message}");
    assert_eq!(node.err("eth_subscribe", json!(["newHeads"])), (-32601, "notifications not supported".into()));
    let hash = node.ok("eth_sendTransaction", json!([{"to": spin, "gas": "0x10000"}]));
    let receipt = node.ok("eth_getTransactionReceipt", json!([hash]));
    assert_eq!((&receipt["status"], &receipt["gasUsed"]), (&json!("0x0"), &json!("0x10000")));
}

#[test]
fn estimates_suffice() {
    let node = start();
    let (store, forward) = (node.deploy(STORE), node.deploy(FORWARD));
    assert_eq!(node.ok("eth_estimateGas", json!([{"to": Address::repeat_byte(9)}])), "0x5208");
    let word = |v: u64| format!("{v:#066x}");
    for (to, data) in [
        (store, word(5)),
        (store, word(0)),
        (forward, B256::left_padding_from(store.as_slice()).to_string()),
        // Three frames deep: every one keeps a 64th.
        (forward, B256::left_padding_from(forward.as_slice()).to_string()),
    ] {
        // The sender matters: their account is warm.
        let gas = node.ok("eth_estimateGas", json!([{"from": dev().address(), "to": to, "data": data}]));
        let hash = node.ok("eth_sendTransaction", json!([{"to": to, "data": data, "gas": gas}]));
        let receipt = node.ok("eth_getTransactionReceipt", json!([hash]));
        assert_eq!(receipt["status"], "0x1", "{data} with {gas}");
        // Refunds and the 63/64 rule allow the limit to be well above the used gas, but not wildly.
        assert!(number(&gas) < 2 * number(&receipt["gasUsed"]), "{gas} for {}", receipt["gasUsed"]);
    }
    // A limit below the need is reported as such, and so is a sender who can't pay.
    let (_, message) = node.err("eth_estimateGas", json!([{"to": store, "data": word(6), "gas": "0x6000"}]));
    assert!(message.contains("gas required exceeds allowance (24576)"), "{message}");
    let poor = Address::repeat_byte(0x77);
    let (_, message) = node.err("eth_estimateGas", json!([{"from": poor, "to": store, "gasPrice": "0x5f5e100", "value": "0x1"}]));
    assert!(message.contains("insufficient funds for transfer"), "{message}");
}

#[test]
fn access_lists_are_found() {
    let node = start();
    let store = node.deploy(STORE);
    // FORWARD calls it without calldata: slot 0 becomes 0.
    let forward = node.deploy(FORWARD);
    let data = B256::left_padding_from(store.as_slice());
    let found = node.ok("eth_createAccessList", json!([{"to": forward, "data": data}]));
    assert_eq!(found["accessList"], json!([{"address": store, "storageKeys": [B256::ZERO]}]));
    assert_eq!(found.get("error"), None);
    // The gas is that of the call with the list: 2,400 + 1,900 for it, and nothing cold.
    let with = json!({"to": forward, "data": data, "accessList": found["accessList"]});
    assert_eq!(node.ok("eth_createAccessList", json!([with])), found);
    let failing = node.ok("eth_createAccessList", json!([{"to": node.deploy(REVERT), "data": "0x12"}]));
    assert_eq!(failing["error"], "execution reverted");
    assert_eq!(failing["accessList"], json!([]));
}

#[test]
fn overrides_apply_to_one_call_only() {
    let node = start();
    let load = node.deploy(LOAD);
    let ghost = Address::repeat_byte(0x55);
    let call = |overrides: Value| node.ok("eth_call", json!([{"to": load}, "latest", overrides]));
    let word = |v: u64| json!(B256::from(U256::from(v)));
    assert_eq!(call(json!({})), word(0));
    assert_eq!(call(json!({(load.to_string()): {"stateDiff": {(B256::ZERO.to_string()): word(9)}}})), word(9));
    assert_eq!(call(json!({(load.to_string()): {"state": {(B256::ZERO.to_string()): word(8)}}})), word(8));
    assert_eq!(
        node.ok(
            "eth_call",
            json!([{"to": ghost}, "latest", {
                (ghost.to_string()): {"code": hex::encode_prefixed(LOAD), "stateDiff": {(B256::ZERO.to_string()): word(7)}}
            }])
        ),
        word(7)
    );
    // BALANCE of the caller: CALLER BALANCE PUSH0 MSTORE 32 PUSH0 RETURN
    let balance = "0x333160005260206000f3";
    assert_eq!(
        node.ok(
            "eth_call",
            json!([{"from": ghost, "to": load}, "latest", {
                (load.to_string()): {"code": balance}, (ghost.to_string()): {"balance": "0x1234"}
            }])
        ),
        word(0x1234)
    );
    let (_, message) = node.err(
        "eth_call",
        json!([{"to": load}, "latest", {
            (load.to_string()): {"state": {}, "stateDiff": {}}
        }]),
    );
    assert!(message.contains("has both 'state' and 'stateDiff'"), "{message}");
    assert_eq!(call(json!({})), word(0));
    assert_eq!(node.ok("eth_getCode", json!([ghost])), "0x");
    // Block overrides. The number is L2's: `block.number` stays.
    let clock = node.deploy(CLOCK);
    let over = json!({"time": "0x77", "number": "0x88"});
    let seen = node.ok("eth_call", json!([{"to": clock}, "latest", {}, over]));
    assert_eq!(seen.as_str().unwrap(), format!("0x{:064x}{:064x}", 0x77, 1));
    let number = json!({"to": Address::with_last_byte(0x64), "data": hex::encode_prefixed(&keccak256("arbBlockNumber()")[..4])});
    assert_eq!(node.ok("eth_call", json!([number, "latest", {}, over])), format!("{:#066x}", 0x88));
}

#[test]
fn the_past_can_be_read() {
    let node = start();
    let store = node.deploy(STORE);
    let word = |v: u64| json!(B256::from(U256::from(v)));
    for value in 1..=5 {
        node.ok("eth_sendTransaction", json!([{"to": store, "data": word(value)}]));
    }
    for value in 1..=5u64 {
        let block = format!("{:#x}", value + 1);
        assert_eq!(node.ok("eth_getStorageAt", json!([store, "0x0", block])), word(value));
        let hash = node.ok("eth_getBlockByNumber", json!([block, false]))["hash"].clone();
        assert_eq!(node.ok("eth_getStorageAt", json!([store, "0x0", {"blockHash": hash}])), word(value));
        assert_eq!(node.ok("eth_getTransactionCount", json!([dev().address(), block])), format!("{:#x}", value + 1));
        let seen =
            node.ok("eth_call", json!([{"to": store}, block, {(store.to_string()): {"code": hex::encode_prefixed(LOAD)}}]));
        assert_eq!(seen, word(value));
    }
    assert_eq!(node.ok("eth_getCode", json!([store, "earliest"])), "0x");
    assert_eq!(node.err("eth_getBalance", json!([store, "0x63"])), (-32000, "header not found".into()));
}

#[test]
fn history_can_be_short() {
    let node = start_with(|c| c.history = History { blocks: 4, states: 2 });
    for nonce in 0..9 {
        node.send_raw(&sign(plain(nonce), &dev()));
    }
    let target = address!("00000000000000000000000000000000000000aa");
    assert_eq!(node.ok("eth_getBalance", json!([target, "0x9"])), "0x9");
    assert_eq!(node.ok("eth_getBalance", json!([target, "0x8"])), "0x8");
    assert_eq!(node.ok("eth_getBalance", json!([target, "0x7"])), "0x7");
    let (code, message) = node.err("eth_getBalance", json!([target, "0x6"]));
    assert_eq!(code, -32000);
    assert!(message.starts_with("historical state is not kept"), "{message}");
    assert_eq!(node.ok("eth_getBlockByNumber", json!(["0x5", false])), Value::Null);
    assert_ne!(node.ok("eth_getBlockByNumber", json!(["0x6", false])), Value::Null);
    // Snapshots work nevertheless.
    let id = node.ok("evm_snapshot", json!([]));
    for nonce in 9..20 {
        node.send_raw(&sign(plain(nonce), &dev()));
    }
    assert_eq!(node.ok("evm_revert", json!([id])), true);
    assert_eq!(node.ok("eth_blockNumber", json!([])), "0x9");
    assert_eq!(node.ok("eth_getBalance", json!([target])), "0x9");
    node.send_raw(&sign(plain(9), &dev()));
    assert_eq!(node.ok("eth_blockNumber", json!([])), "0xa");
}

#[test]
fn logs_are_found_by_every_form_of_filter() {
    let node = start();
    let (a, b) = (node.deploy(STORE), node.deploy(STORE));
    let word = |v: u64| json!(B256::from(U256::from(v)));
    for (contract, value) in [(a, 1), (b, 2), (a, 3), (b, 1)] {
        node.ok("eth_sendTransaction", json!([{"to": contract, "data": word(value)}]));
    }
    // Blocks 3 to 6.
    let count = |filter: Value| node.ok("eth_getLogs", json!([filter])).as_array().unwrap().len();
    assert_eq!(count(json!({"fromBlock": "earliest"})), 4);
    assert_eq!(count(json!({})), 1);
    assert_eq!(count(json!({"fromBlock": "0x0", "address": a})), 2);
    assert_eq!(count(json!({"fromBlock": "0x0", "address": [a, b]})), 4);
    assert_eq!(count(json!({"fromBlock": "0x0", "address": []})), 4);
    assert_eq!(count(json!({"fromBlock": "0x0", "topics": [word(7)]})), 4);
    assert_eq!(count(json!({"fromBlock": "0x0", "topics": [word(8)]})), 0);
    assert_eq!(count(json!({"fromBlock": "0x0", "topics": [null, word(1)]})), 2);
    assert_eq!(count(json!({"fromBlock": "0x0", "topics": [[word(7), word(8)], [word(2), word(3)]]})), 2);
    assert_eq!(count(json!({"fromBlock": "0x0", "topics": [null, null, word(1)]})), 0);
    assert_eq!(count(json!({"fromBlock": "0x0", "toBlock": "0x4"})), 2);
    assert_eq!(count(json!({"fromBlock": "0x5", "toBlock": "latest"})), 2);
    let hash = node.ok("eth_getBlockByNumber", json!(["0x5", false]))["hash"].clone();
    let logs = node.ok("eth_getLogs", json!([{"blockHash": hash}]));
    assert_eq!(logs.as_array().unwrap().len(), 1);
    let log = &logs[0];
    assert_eq!(log["address"], json!(a));
    assert_eq!(log["topics"], json!([word(7), word(3)]));
    assert_eq!(log["data"], word(3));
    assert_eq!(log["blockNumber"], "0x5");
    assert_eq!(log["blockHash"], hash);
    assert_eq!(log["logIndex"], "0x0");
    assert_eq!(log["removed"], false);
    let receipt = node.ok("eth_getTransactionReceipt", json!([log["transactionHash"]]));
    assert_eq!(receipt["logs"][0], *log);
    let code = |filter: Value| node.err("eth_getLogs", json!([filter])).0;
    assert_eq!(code(json!({"blockHash": B256::ZERO})), -32000);
    assert_eq!(code(json!({"fromBlock": "0x5", "toBlock": "0x2"})), -32602);
    assert_eq!(code(json!({"blockHash": hash, "fromBlock": "0x0"})), -32602);
}

#[test]
fn filters_report_changes_once() {
    let node = start();
    let a = node.deploy(STORE);
    let word = |v: u64| json!(B256::from(U256::from(v)));
    let store = |value| node.ok("eth_sendTransaction", json!([{"to": a, "data": word(value)}]));
    let logs = node.ok("eth_newFilter", json!([{"address": a, "topics": [null, [word(1), word(2)]]}]));
    let blocks = node.ok("eth_newBlockFilter", json!([]));
    let changes = |id: &Value| node.ok("eth_getFilterChanges", json!([id])).as_array().unwrap().clone();
    assert!(changes(&logs).is_empty());
    for value in 1..=3 {
        store(value);
    }
    assert_eq!(changes(&logs).len(), 2);
    assert!(changes(&logs).is_empty());
    let hashes = changes(&blocks);
    assert_eq!(hashes.len(), 3);
    assert_eq!(hashes[2], node.ok("eth_getBlockByNumber", json!(["latest", false]))["hash"]);
    store(1);
    assert_eq!(changes(&logs).len(), 1);
    assert_eq!(node.ok("eth_getFilterLogs", json!([logs])).as_array().unwrap().len(), 1);
    assert_eq!(node.ok("eth_uninstallFilter", json!([logs])), true);
    assert_eq!(node.ok("eth_uninstallFilter", json!([logs])), false);
    assert_eq!(node.err("eth_getFilterChanges", json!([logs])), (-32000, "filter not found".into()));
}

#[test]
fn time_travels() {
    let node = start();
    let clock = node.deploy(CLOCK);
    let seen = |at: &str| {
        let out: Bytes = serde_json::from_value(node.ok("eth_call", json!([{"to": clock}, at]))).unwrap();
        (U256::from_be_slice(&out[..32]).to::<u64>(), U256::from_be_slice(&out[32..]).to::<u64>())
    };
    let latest = || number(&node.ok("eth_getBlockByNumber", json!(["latest", false]))["timestamp"]);
    assert_eq!(latest(), START);
    assert_eq!(node.ok("evm_increaseTime", json!([3_600])), 3_600);
    assert_eq!(node.ok("evm_increaseTime", json!(["0x10"])), 3_616);
    // Calls at the next block see the time a transaction would see now; those at any other, the newest too, see that block's.
    assert_eq!(seen("pending").0, START + 3_616);
    assert_eq!(seen("latest").0, START);
    assert_eq!(seen("0x1").0, START);
    assert_eq!(latest(), START);
    node.ok("evm_mine", json!([]));
    assert_eq!(latest(), START + 3_616);
    // block.number is L1's: every 12 seconds.
    assert_eq!(seen("latest"), (START + 3_616, 1 + 3_616 / 12));
    node.ok("evm_setNextBlockTimestamp", json!([START + 10_000]));
    node.ok("evm_mine", json!([]));
    assert_eq!(latest(), START + 10_000);
    node.ok("evm_mine", json!([]));
    assert_eq!(latest(), START + 10_000);
    assert_eq!(node.err("evm_setNextBlockTimestamp", json!([START])).0, -32602);
    node.ok("evm_mine", json!([START + 20_000]));
    assert_eq!(latest(), START + 20_000);
    let before = number(&node.ok("eth_blockNumber", json!([])));
    node.ok("evm_mine", json!([{"blocks": 5}]));
    assert_eq!(number(&node.ok("eth_blockNumber", json!([]))), before + 5);
    node.ok("anvil_mine", json!(["0x3", "0x3c"]));
    assert_eq!(latest(), START + 20_004 + 120);
    assert_eq!(node.err("evm_mine", json!([{"blocks": 1_000_000_000}])).0, -32602);
    assert_eq!(node.err("evm_increaseTime", json!(["0xffffffffffffffff"])).0, -32602);
    assert_eq!(node.err("evm_increaseTime", json!([-1])).0, -32602);
}

#[test]
fn the_clock_runs_by_itself() {
    let node = start_with(|c| c.clock = Clock::System);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    node.ok("evm_mine", json!([]));
    let latest = || number(&node.ok("eth_getBlockByNumber", json!(["latest", false]))["timestamp"]);
    assert!(latest().abs_diff(now) <= 2);
    node.ok("evm_increaseTime", json!([1_000]));
    node.ok("evm_mine", json!([]));
    assert!(latest().abs_diff(now + 1_000) <= 3);
}

#[test]
fn snapshots_nest() {
    let node = start();
    let store = node.deploy(STORE);
    let word = |v: u64| json!(B256::from(U256::from(v)));
    let set = |value| node.ok("eth_sendTransaction", json!([{"to": store, "data": word(value)}]));
    let get = || node.ok("eth_getStorageAt", json!([store, "0x0", "latest"]));
    set(1);
    let first = node.ok("evm_snapshot", json!([]));
    let gone = set(2);
    node.ok("evm_increaseTime", json!([50]));
    let second = node.ok("evm_snapshot", json!([]));
    set(3);
    assert_eq!(node.ok("evm_revert", json!([second])), true);
    assert_eq!(get(), word(2));
    assert_eq!(node.ok("evm_revert", json!([second])), false);
    set(4);
    assert_eq!(node.ok("evm_revert", json!([first])), true);
    assert_eq!(get(), word(1));
    assert_eq!(node.ok("eth_blockNumber", json!([])), "0x2");
    assert_eq!(node.ok("eth_getTransactionReceipt", json!([gone])), Value::Null);
    assert_eq!(number(&node.ok("eth_getBlockByNumber", json!(["pending", false]))["timestamp"]), START);
    set(5);
    assert_eq!(node.ok("eth_getStorageAt", json!([store, "0x0", "0x2"])), word(1));
    assert_eq!(get(), word(5));
}

#[test]
fn state_can_be_edited() {
    let node = start();
    let ghost = Address::repeat_byte(0x66);
    node.ok("anvil_setBalance", json!([ghost, "0x10"]));
    node.ok("anvil_setNonce", json!([ghost, 5]));
    node.ok("hardhat_setCode", json!([ghost, hex::encode_prefixed(LOAD)]));
    node.ok("anvil_setStorageAt", json!([ghost, "0x0", format!("{:#066x}", 0x99)]));
    assert_eq!(node.ok("eth_getBalance", json!([ghost])), "0x10");
    assert_eq!(node.ok("eth_getTransactionCount", json!([ghost])), "0x5");
    assert_eq!(node.ok("eth_call", json!([{"to": ghost}])), json!(B256::from(U256::from(0x99))));
}

#[test]
fn prices() {
    let node = start_with(|c| c.base_fee = 7);
    assert_eq!(node.ok("eth_gasPrice", json!([])), "0x7");
    assert_eq!(node.ok("eth_maxPriorityFeePerGas", json!([])), "0x0");
    node.ok("evm_mine", json!([]));
    let history = node.ok("eth_feeHistory", json!(["0x5", "latest", [25.0, 75.0]]));
    assert_eq!(history["oldestBlock"], "0x0");
    assert_eq!(history["baseFeePerGas"], json!(["0x7", "0x7", "0x7"]));
    assert_eq!(history["reward"], json!([["0x0", "0x0"], ["0x0", "0x0"]]));
    assert_eq!(node.err("eth_feeHistory", json!(["0x5", "latest", [75, 25]])).0, -32000);
    assert_eq!(node.err("eth_feeHistory", json!(["0x5", "0x63", []])).0, -32000);
}

#[test]
fn programs_expire_as_time_travels_and_are_activated_again() {
    let node = start();
    let text = r#"(module (memory (export "memory") 1 1)
        (func (export "user_entrypoint") (param i32) (result i32) i32.const 0))"#;
    let program = program(&node, text);
    let pass = |days: u64| {
        node.ok("evm_increaseTime", json!([days * 86_400]));
        node.ok("evm_mine", json!([]));
    };
    pass(364);
    assert_eq!(node.ok("eth_call", json!([{"to": program}])), "0x");
    pass(2);
    let (code, message) = node.err("eth_call", json!([{"to": program}]));
    assert!(code == -32000 && message.starts_with("error ProgramExpired("), "{message}");
    activate(&node, program);
    assert_eq!(node.ok("eth_call", json!([{"to": program}])), "0x");
}

#[test]
fn programs_are_told_the_price_that_was_offered() {
    let node = start();
    let text = r#"(module (memory (export "memory") 1 1)
        (func (export "user_entrypoint") (param i32) (result i32)
            (call $tx_gas_price (i32.const 0)) (call $write_result (i32.const 0) (i32.const 32)) i32.const 0))"#;
    let program = program(&node, text);
    let evm = node.deploy(&hex!("3a60005260206000f3"));
    let price = |gwei_tenths: u128| json!(format!("{:#066x}", gwei_tenths * GWEI / 10));
    let (capped, tipped) = (3 * GWEI, GWEI);
    let offer = |to: Address| json!([{"from": dev().address(), "to": to, "maxFeePerGas": format!("{capped:#x}"), "maxPriorityFeePerGas": format!("{tipped:#x}")}]);
    assert_eq!((node.ok("eth_call", offer(program)), node.ok("eth_call", offer(evm))), (price(11), price(1)));
    assert_eq!(
        node.ok("eth_call", json!([{"from": dev().address(), "to": program, "gasPrice": format!("{capped:#x}")}])),
        price(30)
    );
    assert_eq!(node.ok("eth_call", json!([{"to": program}])), price(0));
    let hash = node.ok("eth_sendTransaction", offer(program));
    let traced = node.ok("debug_traceTransaction", json!([hash, {"tracer": "callTracer"}]));
    assert_eq!(traced["output"], price(11));
    // A transaction shows what was offered, and its receipt what was paid.
    let shown = |method: &str, field: &str| number(&node.ok(method, json!([hash]))[field]);
    assert_eq!(u128::from(shown("eth_getTransactionByHash", "gasPrice")), 11 * GWEI / 10);
    assert_eq!(u128::from(shown("eth_getTransactionReceipt", "effectiveGasPrice")), GWEI / 10);
}

#[test]
fn a_signed_transaction_is_as_large_and_as_dear_as_a_sequencer_takes() {
    let node = start();
    let dear = |gas_limit: u64| sign(TxEip1559 { gas_limit, max_fee_per_gas: 100 * GWEI, ..plain(0) }, &dev());
    assert_eq!(node.refuse_raw(&dear(30_000_000)), "tx fee (3.00 ether) exceeds the configured cap (1.00 ether)");
    let long = |bytes: usize| sign(TxEip1559 { gas_limit: 5_000_000, input: vec![1; bytes].into(), ..plain(0) }, &dev());
    assert_eq!(node.refuse_raw(&long(95_000)), "oversized data");
    node.send_raw(&long(94_800));
    node.send_raw(&sign(TxEip1559 { gas_limit: 10_000_000, max_fee_per_gas: 100 * GWEI, ..plain(1) }, &dev()));
}

#[test]
fn wasm_programs_run_over_json_rpc() {
    let node = start();
    let proxy = program(&node, PROXY);
    let revert = node.deploy(REVERT);
    let load = node.deploy(LOAD);
    node.ok("anvil_setStorageAt", json!([load, "0x0", "0x5"]));
    let to = |target: Address, data: &str| format!("0x{:0>64}{data}", hex::encode(target));
    let seen = node.ok("eth_call", json!([{"to": proxy, "data": to(load, "")}]));
    assert_eq!(seen, json!(B256::from(U256::from(5))));
    // Revert data of an EVM contract comes through the program.
    let answer = node.request("eth_call", json!([{"to": proxy, "data": to(revert, "c0ffee")}]));
    assert_eq!(answer["error"], json!({"code": 3, "message": "execution reverted", "data": "0xc0ffee"}));
    // An estimate is enough where the program keeps back its 64th and starts another one.
    let nested = to(proxy, &to(load, "")[2..]);
    let from = dev().address();
    let gas = node.ok("eth_estimateGas", json!([{"from": from, "to": proxy, "data": to(load, "")}]));
    let hash = node.ok("eth_sendTransaction", json!([{"to": proxy, "data": to(load, ""), "gas": gas}]));
    assert_eq!(node.ok("eth_getTransactionReceipt", json!([hash]))["status"], "0x1");
    let seen = node.ok("eth_call", json!([{"to": proxy, "data": nested}]));
    assert_eq!(seen, json!(B256::from(U256::from(5))));
}

#[test]
fn failing_transactions_can_be_traced() {
    let node = start();
    let proxy = program(&node, PROXY);
    let revert = node.deploy(REVERT);
    let store = node.deploy(STORE);
    let reason = "08c379a0\
        0000000000000000000000000000000000000000000000000000000000000020\
        0000000000000000000000000000000000000000000000000000000000000003\
        6e6f210000000000000000000000000000000000000000000000000000000000";
    let to = |target: Address, data: &str| format!("0x{:0>64}{data}", hex::encode(target));
    let call = to(revert, reason);
    let hash = node.ok("eth_sendTransaction", json!([{"to": proxy, "data": call, "gas": "0x100000"}]));
    let receipt = node.ok("eth_getTransactionReceipt", json!([hash]));
    assert_eq!(receipt["status"], "0x0");
    // Later blocks must not change what is traced.
    node.ok("hardhat_setCode", json!([revert, "0x"]));
    node.ok("evm_mine", json!([]));
    let callee = node.ok("debug_traceCall", json!([{"to": proxy, "data": call}, "latest", {"tracer": "callTracer"}]));
    assert!(callee.get("error").is_none());
    let trace = node.ok("debug_traceTransaction", json!([hash, {"tracer": "callTracer"}]));
    assert_eq!(trace["type"], "CALL");
    assert_eq!(trace["from"], json!(dev().address()));
    assert_eq!(trace["to"], json!(proxy));
    assert_eq!(trace["input"], json!(call));
    assert_eq!(trace["gas"], "0x100000");
    assert_eq!(trace["gasUsed"], receipt["gasUsed"]);
    assert_eq!(trace["error"], "execution reverted");
    let inner = &trace["calls"][0];
    assert_eq!(inner["from"], json!(proxy));
    assert_eq!(inner["to"], json!(revert));
    assert_eq!(inner["output"], format!("0x{reason}"));
    assert_eq!(inner["error"], "execution reverted");
    assert_eq!(inner["revertReason"], "no!");
    let top = node.ok("debug_traceTransaction", json!([hash, {"tracer": "callTracer", "tracerConfig": {"onlyTopCall": true}}]));
    assert!(top.get("calls").is_none());
    // Events, with their place among the calls.
    let logged = node.ok(
        "debug_traceCall",
        json!([
            {"to": store, "data": B256::with_last_byte(3)}, "latest", {"tracer": "callTracer", "tracerConfig": {"withLog": true}}
        ]),
    );
    assert_eq!(logged["logs"][0]["topics"][1], json!(B256::with_last_byte(3)));
    assert_eq!(logged["logs"][0]["address"], json!(store));
    let created = node.ok("eth_getBlockByNumber", json!(["0x1", false]))["transactions"][0].clone();
    let creation = node.ok("debug_traceTransaction", json!([created, {"tracer": "callTracer"}]));
    assert_eq!(creation["type"], "CREATE");
    assert_eq!(creation["to"], json!(proxy));
    let (code, message) = node.err("debug_traceTransaction", json!([B256::ZERO, {"tracer": "callTracer"}]));
    assert_eq!((code, message), (-32000, "transaction not found".into()));
}

#[test]
fn a_taken_port_is_reported_in_one_sentence() {
    let node = start();
    let config = Config { port: node.0.address().port(), ..Config::default() };
    let error = Devnode::start(config.clone()).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("port {} on 127.0.0.1 is in use: stop what is listening there, or choose another with --port", config.port)
    );
    // Stopping frees it.
    node.0.stop();
    Devnode::start(config).unwrap();
}

#[cfg(unix)]
#[test]
fn the_program_prints_its_keys_stops_on_sigterm_and_names_a_taken_port() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let binary = env!("CARGO_BIN_EXE_muster-devnode");
    let mut child = Command::new(binary)
        .args(["--port", "0", "--accounts", "2", "--balance", "3", "--chain-id", "77"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    while !text.contains("Listening on") {
        assert_ne!(lines.read_line(&mut text).unwrap(), 0, "{text}");
    }
    assert!(text.contains(NITRO_DEV_KEY) && text.contains("THESE KEYS ARE PUBLIC"), "{text}");
    let address = text.split("http://").nth(1).unwrap().split_whitespace().next().unwrap();
    let port = address.rsplit(':').next().unwrap();
    let second = Command::new(binary).args(["--port", port]).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(second.stderr).unwrap().trim(),
        format!(
            "muster-devnode: port {port} on 127.0.0.1 is in use: stop what is listening there, or choose another with --port"
        )
    );
    let unknown = Command::new(binary).args(["--port", "0", "--arbos-version", "7"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(1));
    assert_eq!(String::from_utf8(unknown.stderr).unwrap().lines().count(), 1);
    let killed = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(killed.success());
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begin.elapsed() < Duration::from_mins(1), "it goes on after SIGTERM");
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
