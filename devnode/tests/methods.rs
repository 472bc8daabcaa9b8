//! Methods that clients of other development nodes call.

mod support;

use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use alloy_consensus::{SignableTransaction, TxEip1559, TxEip7702, TxEnvelope};
use alloy_eips::eip2718::{Decodable2718, Encodable2718};
use alloy_eips::eip7702::Authorization;
use alloy_primitives::{address, hex, keccak256, Address, Bytes, B256, U256};
use alloy_signer::SignerSync;
use alloy_signer_local::PrivateKeySigner;
use serde_json::{json, Value};
use support::rpc::*;
use support::word;

/// PREVRANDAO, COINBASE, GASLIMIT, BASEFEE, and BLOCKHASH of the first word of the calldata.
const BLOCK: &[u8] = &hex!("44600052 41602052 45604052 48606052 6000354060805260a06000f3");

fn bytes(value: &Value) -> Bytes {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
fn signing() {
    let node = start();
    let account = node.ok("eth_accounts", json!([]))[1].clone();
    // The example of EIP-712.
    let data = json!({
        "types": {
            "EIP712Domain": [
                {"name": "name", "type": "string"}, {"name": "version", "type": "string"},
                {"name": "chainId", "type": "uint256"}, {"name": "verifyingContract", "type": "address"}
            ],
            "Person": [{"name": "name", "type": "string"}, {"name": "wallet", "type": "address"}],
            "Mail": [
                {"name": "from", "type": "Person"}, {"name": "to", "type": "Person"}, {"name": "contents", "type": "string"}
            ]
        },
        "primaryType": "Mail",
        "domain": {
            "name": "Ether Mail", "version": "1", "chainId": 1,
            "verifyingContract": "0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC"
        },
        "message": {
            "from": {"name": "Cow", "wallet": "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826"},
            "to": {"name": "Bob", "wallet": "0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB"},
            "contents": "Hello, Bob!"
        }
    });
    let hash = B256::from(hex!("be609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2"));
    for data in [data.clone(), json!(data.to_string())] {
        let signature = node.ok("eth_signTypedData_v4", json!([account, data]));
        let signature = alloy_primitives::Signature::from_str(signature.as_str().unwrap()).unwrap();
        assert_eq!(json!(signature.recover_address_from_prehash(&hash).unwrap()), account);
    }
    assert_eq!(node.err("eth_signTypedData_v4", json!([account, {"types": {}}])).0, -32602);
    assert_eq!(node.err("eth_signTypedData_v4", json!([Address::ZERO, data])).0, -32000);
    // Types that would take all stack or memory, each the largest of its kind that is taken, then one that is not.
    let of = |types: Value, message: &Value| json!({"types": types, "primaryType": "A0", "domain": {}, "message": message});
    let steps = |depth: usize, fields: usize| -> Value {
        let step = |n: usize| (format!("A{n}"), json!(vec![json!({"name": "x", "type": format!("A{}", n + 1)}); fields]));
        (0..depth).map(step).chain([(format!("A{depth}"), json!([]))]).collect::<serde_json::Map<_, _>>().into()
    };
    let field = |kind: &str, times: usize| json!({"A0": [{"name": "x", "type": format!("uint8{}", kind.repeat(times))}]});
    let deep = (0..63).fold(json!({}), |inner, _| json!({"x": inner}));
    for data in [of(steps(63, 1), &deep), of(steps(12, 2), &deep), of(field("[]", 61), &json!({"x": []}))] {
        node.ok("eth_signTypedData_v4", json!([account, data]));
    }
    let listed = json!({"A0": [[format!("uint8{}", "[]".repeat(30_000)), "x"]]});
    for types in [steps(64, 1), steps(1_000, 1), steps(40, 2), field("[]", 62), field("[]", 30_000), field("(", 30_000), listed] {
        let data = of(types, &deep);
        for data in [json!(data.to_string()), data] {
            let (code, message) = node.err("eth_signTypedData_v4", json!([account, data]));
            assert!(code == -32602 && message.contains("64 deep"), "{message}");
        }
    }
    let twice = json!(json!(of(field("[]", 30_000), &deep).to_string()).to_string());
    assert_eq!(node.err("eth_signTypedData_v4", json!([account, twice])).0, -32602);

    let signed = node.ok("eth_signTransaction", json!([{"from": account, "to": Address::ZERO, "value": "0x5"}]));
    assert_eq!(node.ok("eth_blockNumber", json!([])), "0x0");
    let hash = node.ok("eth_sendRawTransaction", json!([signed["raw"]]));
    assert_eq!(hash, signed["tx"]["hash"]);
    assert_eq!(node.ok("eth_getTransactionByHash", json!([hash]))["from"], account);
    assert_eq!(node.err("eth_signTransaction", json!([{"from": Address::ZERO}])).0, -32000);
}

#[test]
fn transactions_are_filled_in_for_anybody() {
    let node = start();
    let store = node.deploy(STORE);
    let from = Address::repeat_byte(0x5a);
    node.ok("anvil_setBalance", json!([from, "0xde0b6b3a7640000"]));
    node.ok("anvil_setNonce", json!([from, 4]));
    let asked = json!({"from": from, "to": store, "data": word(5)});
    let filled = node.ok("eth_fillTransaction", json!([asked]))["tx"].clone();
    // Twice the base fee, no tip; the limit is the newest block's estimate.
    let limit = node.ok("eth_estimateGas", json!([asked, "latest"]));
    for (field, value) in [
        ("type", json!("0x2")),
        ("chainId", json!(format!("{CHAIN:#x}"))),
        ("nonce", json!("0x4")),
        ("gas", limit),
        ("maxFeePerGas", json!("0xbebc200")),
        ("maxPriorityFeePerGas", json!("0x0")),
        ("to", json!(store)),
        ("value", json!("0x0")),
        ("input", json!(word(5))),
    ] {
        assert_eq!(filled[field], value, "{field}");
    }
    // Named fields stay as they are.
    let named = json!({"from": from, "to": store, "gas": "0x9999", "gasPrice": "0x77359400", "nonce": "0x7"});
    let filled = node.ok("eth_fillTransaction", json!([named]))["tx"].clone();
    assert_eq!(
        ["type", "gas", "gasPrice", "nonce"].map(|field| filled[field].clone()),
        [json!("0x0"), json!("0x9999"), json!("0x77359400"), json!("0x7")]
    );
    let revert = node.deploy(REVERT);
    let (code, message) = node.err("eth_fillTransaction", json!([{"from": from, "to": revert}]));
    assert_eq!((code, message.as_str()), (3, "execution reverted"));
    let (_, message) = node.err("eth_fillTransaction", json!([{"from": from}]));
    assert_eq!(message, "contract creation without any data provided");
}

#[test]
fn what_was_signed_and_hashed_can_be_had_raw() {
    let node = start();
    let store = node.deploy(STORE);
    let tx = sign(TxEip1559 { to: store.into(), value: U256::ZERO, gas_limit: 100_000, ..plain(1) }, &dev());
    let hash = node.send_raw(&tx);
    let raw = json!(Bytes::from(tx.encoded_2718()));
    assert_eq!(node.ok("eth_getRawTransactionByHash", json!([hash])), raw);
    assert_eq!(node.ok("debug_getRawTransaction", json!([hash])), raw);
    assert_eq!(node.ok("eth_getRawTransactionByBlockNumberAndIndex", json!(["0x2", "0x0"])), raw);
    assert_eq!(node.ok("eth_getRawTransactionByHash", json!([B256::ZERO])), Value::Null);
    let block = node.ok("eth_getBlockByNumber", json!(["latest", false]));
    assert_eq!(json!(keccak256(bytes(&node.ok("debug_getRawHeader", json!(["latest"]))))), block["hash"]);
    let raw_block = bytes(&node.ok("debug_getRawBlock", json!(["latest"])));
    assert_eq!(U256::from(raw_block.len()), U256::from_str(block["size"].as_str().unwrap()).unwrap());
    let receipts: Vec<Bytes> = serde_json::from_value(node.ok("debug_getRawReceipts", json!(["latest"]))).unwrap();
    let receipt = alloy_consensus::ReceiptEnvelope::decode_2718(&mut receipts[0].as_ref()).unwrap();
    assert!(receipt.status());
    assert_eq!(receipt.logs()[0].address, store);
}

#[test]
fn transactions_wait_while_mining_is_off() {
    let node = start();
    let account = |n: usize| node.ok("eth_accounts", json!([]))[n].clone();
    let (a, b) = (account(1), account(2));
    let to = address!("00000000000000000000000000000000000000bb");
    let filter = node.ok("eth_newPendingTransactionFilter", json!([]));
    assert_eq!(node.ok("evm_setAutomine", json!([false])), true);
    assert_eq!(node.ok("anvil_getAutomine", json!([])), false);
    let send = |from: &Value, nonce: u64, gwei: u64, value: u64| {
        let fee = format!("{:#x}", gwei * 1_000_000_000);
        let tx = json!({"from": from, "to": to, "nonce": format!("{nonce:#x}"), "value": format!("{value:#x}"),
            "gas": "0x5208", "maxFeePerGas": fee, "maxPriorityFeePerGas": fee});
        node.request("eth_sendTransaction", json!([tx]))
    };
    let cheap = send(&a, 0, 1, 1)["result"].clone();
    let next = send(&a, 1, 9, 2)["result"].clone();
    let dear = send(&b, 0, 5, 4)["result"].clone();
    let ahead = send(&b, 7, 5, 8)["result"].clone();
    assert_eq!(node.ok("eth_blockNumber", json!([])), "0x0");
    assert_eq!(node.ok("txpool_status", json!([])), json!({"pending": "0x3", "queued": "0x1"}));
    let content = node.ok("txpool_content", json!([]));
    assert_eq!(content["pending"][a.as_str().map(|a| Address::from_str(a).unwrap().to_string()).unwrap()]["1"]["hash"], next);
    assert_eq!(node.ok("eth_getTransactionByHash", json!([cheap]))["blockNumber"], Value::Null);
    assert_eq!(node.ok("eth_getTransactionReceipt", json!([cheap])), Value::Null);
    assert_eq!(node.ok("eth_getTransactionCount", json!([a, "pending"])), "0x2");
    assert_eq!(node.ok("eth_getTransactionCount", json!([a, "latest"])), "0x0");
    assert_eq!(node.ok("eth_getBalance", json!([to, "pending"])), "0x7");
    assert_eq!(node.ok("eth_getBalance", json!([to, "latest"])), "0x0");
    let pending = node.ok("eth_getBlockByNumber", json!(["pending", true]));
    assert_eq!((pending["number"].clone(), pending["hash"].clone()), (json!("0x1"), Value::Null));
    assert_eq!(pending["transactions"].as_array().unwrap().len(), 3);
    // In the place of another with the same nonce for a tenth more, not for less.
    assert_eq!(send(&a, 0, 1, 16)["error"]["message"], "replacement transaction underpriced");
    assert_eq!(send(&a, 0, 1, 1)["error"]["message"], "already known");
    let better = send(&a, 0, 2, 16)["result"].clone();
    assert_eq!(node.ok("eth_getTransactionByHash", json!([cheap])), Value::Null);
    // Taken out again.
    assert_eq!(node.ok("hardhat_dropTransaction", json!([ahead])), true);
    assert_eq!(node.ok("hardhat_dropTransaction", json!([ahead])), false);
    assert_eq!(node.ok("eth_getFilterChanges", json!([filter])), json!([cheap, next, dear, ahead, better]));
    node.ok("evm_mine", json!([]));
    // A higher payment is first, but each sender's transactions come in their order.
    let block = node.ok("eth_getBlockByNumber", json!(["0x1", false]));
    assert_eq!(block["transactions"], json!([dear, better, next]));
    assert_eq!(number(&block["gasUsed"]), 63_000);
    let receipts = node.ok("eth_getBlockReceipts", json!(["0x1"]));
    assert_eq!(receipts[2]["transactionIndex"], "0x2");
    assert_eq!(number(&receipts[2]["cumulativeGasUsed"]), 63_000);
    assert_eq!(node.ok("eth_getBalance", json!([to, "latest"])), "0x16");
    assert_eq!(node.err("hardhat_dropTransaction", json!([dear])).0, -32000);
    assert_eq!(node.ok("txpool_status", json!([])), json!({"pending": "0x0", "queued": "0x0"}));
    // On again, and waiting transactions go along with the next; a nonce ahead of that is refused again.
    send(&a, 2, 1, 1);
    node.ok("evm_setAutomine", json!([true]));
    let ahead = send(&b, 9, 1, 1)["error"]["message"].clone();
    assert!(ahead.as_str().unwrap().starts_with("nonce too high"), "{ahead}");
    send(&b, 1, 1, 1);
    assert_eq!(node.ok("eth_getBlockByNumber", json!(["0x2", false]))["transactions"].as_array().unwrap().len(), 2);
    // Each is traced on the state the ones before it left.
    let trace =
        node.ok("debug_traceBlockByNumber", json!(["0x1", {"tracer": "prestateTracer", "tracerConfig": {"diffMode": true}}]));
    let to = to.to_string();
    let balances: Vec<_> = (0..3).map(|n| trace[n]["result"]["post"][&to]["balance"].clone()).collect();
    assert_eq!(json!(balances), json!(["0x4", "0x14", "0x16"]));
    assert_eq!(trace[1]["txHash"], better);
}

#[test]
fn blocks_come_by_the_clock() {
    let node = start();
    assert_eq!(node.err("evm_setIntervalMining", json!([9])).0, -32602);
    assert_eq!(node.ok("evm_setIntervalMining", json!([20])), true);
    let height = || number(&node.ok("eth_blockNumber", json!([])));
    let begin = Instant::now();
    while height() < 3 {
        assert!(begin.elapsed() < Duration::from_mins(1), "{} blocks", height());
        thread::sleep(Duration::from_millis(20));
    }
    node.ok("evm_setIntervalMining", json!([0]));
    let end = height();
    thread::sleep(Duration::from_millis(200));
    // One more may have been on its way.
    assert!(height() <= end + 1);
}

#[test]
fn the_blocks_to_come_can_be_set() {
    let node = start();
    let code = node.deploy(BLOCK);
    let coinbase = address!("00000000000000000000000000000000c0ffee00");
    node.ok("hardhat_setCoinbase", json!([coinbase]));
    node.ok("hardhat_setPrevRandao", json!([word(77)]));
    node.ok("evm_setBlockGasLimit", json!(["0x1c9c380"]));
    node.ok("hardhat_setNextBlockBaseFeePerGas", json!(["0x77359400"]));
    assert_eq!(node.ok("eth_coinbase", json!([])), json!(coinbase));
    assert_eq!(node.ok("eth_gasPrice", json!([])), "0x77359400");
    let price = "0x77359400";
    let seen = bytes(
        &node.ok("eth_call", json!([{"from": dev().address(), "to": code, "gasPrice": price, "gas": "0x100000"}, "pending"])),
    );
    let words: Vec<U256> = seen.chunks(32).map(U256::from_be_slice).collect();
    assert_eq!(words[0], U256::from(77));
    assert_eq!(Address::from_word(words[1].into()), coinbase);
    assert_eq!((words[2], words[3]), (U256::from(30_000_000), U256::from(2_000_000_000)));
    node.ok("evm_mine", json!([]));
    let block = node.ok("eth_getBlockByNumber", json!(["latest", false]));
    assert_eq!(
        (&block["miner"], &block["gasLimit"], &block["baseFeePerGas"]),
        (&json!(coinbase), &json!("0x1c9c380"), &json!(price))
    );
    let (_, message) = node.err("eth_sendTransaction", json!([{"to": code, "gas": "0x1c9c381"}]));
    assert_eq!(message, "exceeds block gas limit");
    // prevrandao was for one block.
    let seen = |at: &str| U256::from_be_slice(&bytes(&node.ok("eth_call", json!([{"to": code}, at])))[..32]);
    assert_eq!((seen("latest"), seen("pending")), (U256::from(77), U256::from(1)));
    // A snapshot has them too.
    assert_eq!(node.ok("eth_feeHistory", json!(["0x2", "latest", []]))["baseFeePerGas"], json!(["0x5f5e100", price, price]));
}

#[test]
fn overrides_of_the_block_and_of_precompiles() {
    let node = start();
    let code = node.deploy(BLOCK);
    let hash = B256::repeat_byte(0xab);
    // L1's number is 11 then.
    node.ok("evm_increaseTime", json!([120]));
    node.ok("evm_mine", json!([]));
    let seen = bytes(&node.ok(
        "eth_call",
        json!([{"to": code, "data": word(5)}, "latest", {}, {
            "difficulty": "0x63", "prevRandao": word(98), "number": "0x9", "blockHash": {"5": hash}, "blobBaseFee": "0x1"
        }]),
    ));
    assert_eq!(U256::from_be_slice(&seen[..32]), U256::from(99));
    assert_eq!(&seen[128..], hash.as_slice());
    // The identity precompile moves, and its former address can have code.
    let (identity, elsewhere) = (Address::with_last_byte(4), Address::repeat_byte(0x44));
    let moved = json!({(identity.to_string()): {"movePrecompileToAddress": elsewhere, "code": hex::encode_prefixed(LOAD)}});
    assert_eq!(node.ok("eth_call", json!([{"to": elsewhere, "data": "0x1234"}, "latest", moved])), "0x1234");
    assert_eq!(node.ok("eth_call", json!([{"to": identity, "data": "0x1234"}, "latest", moved])), json!(B256::ZERO));
    assert_eq!(node.ok("eth_call", json!([{"to": identity, "data": "0x1234"}])), "0x1234");
    let (_, message) =
        node.err("eth_call", json!([{"to": code}, "latest", {(code.to_string()): {"movePrecompileToAddress": elsewhere}}]));
    assert!(message.ends_with("is not a precompile"), "{message}");
    // Tips.
    let (code, message) =
        node.err("eth_call", json!([{"to": code, "maxFeePerGas": "0x5f5e100", "maxPriorityFeePerGas": "0x5f5e101"}]));
    assert_eq!(code, -32000);
    assert!(message.starts_with("max priority fee per gas higher than max fee per gas"), "{message}");
}

#[test]
fn the_chain_can_begin_again_and_tells_about_itself() {
    let node = start();
    let first = node.ok("hardhat_metadata", json!([]));
    node.send_raw(&sign(plain(0), &dev()));
    node.ok("evm_setAutomine", json!([false]));
    node.ok("evm_increaseTime", json!([1_000]));
    assert_eq!(node.ok("hardhat_metadata", json!([]))["latestBlockNumber"], 1);
    let blocks = node.ok("eth_newBlockFilter", json!([]));
    node.ok("hardhat_reset", json!([]));
    assert_eq!(node.ok("eth_blockNumber", json!([])), "0x0");
    assert_eq!(node.ok("eth_getTransactionCount", json!([dev().address()])), "0x0");
    let info = node.ok("anvil_nodeInfo", json!([]));
    assert_eq!(
        (info["currentBlockTimestamp"].clone(), info["environment"]["baseFee"].clone()),
        (json!(START), json!("0x5f5e100"))
    );
    let again = node.ok("hardhat_metadata", json!([]));
    assert_eq!(again["latestBlockHash"], first["latestBlockHash"]);
    assert_ne!(again["instanceId"], first["instanceId"]);
    assert_eq!(first["clientVersion"], node.ok("web3_clientVersion", json!([])));
    node.send_raw(&sign(plain(0), &dev()));
    // A filter of before goes on.
    assert_eq!(node.ok("eth_getFilterChanges", json!([blocks])).as_array().unwrap().len(), 2);
    assert_eq!(node.err("hardhat_reset", json!([{"forking": {"jsonRpcUrl": "x"}}])).0, -32000);
}

#[test]
fn accounts_set_their_code() {
    let node = start();
    let store = node.deploy(STORE);
    let account = PrivateKeySigner::from_bytes(&keccak256("a key")).unwrap();
    let authorize = |nonce: u64, to: Address| {
        let authorization = Authorization { chain_id: U256::from(CHAIN), address: to, nonce };
        let signature = account.sign_hash_sync(&authorization.signature_hash()).unwrap();
        authorization.into_signed(signature)
    };
    let tx = |nonce: u64, list| TxEip7702 {
        chain_id: CHAIN,
        nonce,
        gas_limit: 200_000,
        max_fee_per_gas: GWEI,
        to: account.address(),
        input: word(5).into(),
        authorization_list: list,
        ..Default::default()
    };
    let set = sign(tx(1, vec![authorize(0, store)]), &dev());
    let hash = node.send_raw(&set);
    let receipt = node.ok("eth_getTransactionReceipt", json!([hash]));
    assert_eq!((&receipt["type"], &receipt["status"]), (&json!("0x4"), &json!("0x1")));
    // Base, calldata of 31 zeros and a five, one authorization, the store: SSTORE, LOG2 and the instructions around them.
    assert_eq!(number(&receipt["gasUsed"]), 21_000 + 140 + 25_000 + 22_100 + 1_381 + 36);
    assert_eq!(node.ok("eth_getCode", json!([account.address()])), format!("0xef0100{}", hex::encode(store)));
    assert_eq!(node.ok("eth_getTransactionCount", json!([account.address()])), "0x1");
    assert_eq!(node.ok("eth_getStorageAt", json!([account.address(), "0x0"])), json!(word(5)));
    let shown = node.ok("eth_getTransactionByHash", json!([hash]));
    assert_eq!(shown["authorizationList"][0]["address"], json!(store));
    // A wrong nonce changes nothing, but is paid for; the account's own gas comes back, since it exists.
    let hash = node.send_raw(&sign(tx(2, vec![authorize(9, Address::ZERO)]), &dev()));
    assert_eq!(node.ok("eth_getTransactionReceipt", json!([hash]))["status"], "0x1");
    assert_eq!(node.ok("eth_getTransactionCount", json!([account.address()])), "0x1");
    // The zero address takes the code away. Nothing runs then; half of the authorization is given back, but for a fifth
    // of the whole at most.
    let hash = node.send_raw(&sign(tx(3, vec![authorize(1, Address::ZERO)]), &dev()));
    let used = 21_000 + 140 + 25_000;
    assert_eq!(number(&node.ok("eth_getTransactionReceipt", json!([hash]))["gasUsed"]), used - used / 5);
    assert_eq!(node.ok("eth_getCode", json!([account.address()])), "0x");
    // A call may do it as well.
    let seen = node.ok("eth_call", json!([{"to": account.address(), "authorizationList": [authorize(2, node.deploy(LOAD))]}]));
    assert_eq!(seen, json!(word(5)));
    let (_, message) =
        node.err("eth_sendRawTransaction", json!([hex::encode_prefixed(sign(tx(5, vec![]), &dev()).encoded_2718())]));
    assert_eq!(message, "EIP-7702 transaction with empty auth list");
    let early = start_with(|c| c.arbos_version = 32);
    let (_, message) = early.err("eth_sendRawTransaction", json!([hex::encode_prefixed(set.encoded_2718())]));
    assert_eq!(message, "transaction type not supported");
    let _: TxEnvelope = set;
    let _ = tx(0, vec![]).signature_hash();
}

#[test]
fn blocks_are_simulated() {
    let node = start();
    let (store, load) = (node.deploy(STORE), node.deploy(LOAD));
    let revert = node.deploy(REVERT);
    let me = dev().address();
    let to = address!("00000000000000000000000000000000000000dd");
    let blocks = node.ok("eth_simulateV1", json!([{
        "blockStateCalls": [
            {
                "stateOverrides": {(to.to_string()): {"balance": "0x1"}},
                "calls": [{"from": me, "to": store, "data": word(6)}, {"from": me, "to": revert, "data": "0x12"}]
            },
            {
                "blockOverrides": {"number": "0x6", "time": format!("{:#x}", START + 100)},
                "stateOverrides": {(store.to_string()): {"code": hex::encode_prefixed(LOAD)}},
                "calls": [{"from": me, "to": store}, {"from": me, "to": to, "value": "0x7"}, {"from": to, "to": me, "value": "0x8"}]
            }
        ],
        "traceTransfers": true
    }, "latest"]));
    // One between is filled in.
    assert_eq!(blocks.as_array().unwrap().len(), 3);
    let numbers: Vec<_> = blocks.as_array().unwrap().iter().map(|b| b["number"].clone()).collect();
    assert_eq!(json!(numbers), json!(["0x4", "0x5", "0x6"]));
    assert_eq!(blocks[1]["parentHash"], blocks[0]["hash"]);
    let first = &blocks[0]["calls"];
    assert_eq!((&first[0]["status"], &first[0]["logs"][0]["address"]), (&json!("0x1"), &json!(store)));
    assert_eq!(first[0]["logs"][0]["blockHash"], blocks[0]["hash"]);
    assert_eq!(first[1]["error"], json!({"code": 3, "message": "execution reverted", "data": "0x12"}));
    assert_eq!(number(&blocks[0]["gasUsed"]), number(&first[0]["gasUsed"]) + number(&first[1]["gasUsed"]));
    let last = &blocks[2]["calls"];
    assert_eq!(last[0]["returnData"], json!(word(6)));
    // Moved ether shows as an event of an address that is none.
    assert_eq!(last[1]["logs"][0]["address"], "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee");
    assert_eq!(last[1]["logs"][0]["topics"][2], json!(to.into_word()));
    assert_eq!(last[2]["status"], "0x1");
    assert_eq!(blocks[2]["baseFeePerGas"], "0x0");
    // Nothing is kept.
    assert_eq!(node.ok("eth_blockNumber", json!([])), "0x3");
    assert_eq!(node.ok("eth_call", json!([{"to": load}])), json!(B256::ZERO));

    let refused = |payload: Value| node.err("eth_simulateV1", json!([payload, "latest"]));
    let calls = |call: Value, validation: bool| json!({"blockStateCalls": [{"calls": [call]}], "validation": validation});
    assert_eq!(refused(calls(json!({"from": me, "to": to, "nonce": "0x0"}), true)).0, -32602);
    assert_eq!(refused(calls(json!({"from": me, "to": to, "nonce": "0x0", "maxFeePerGas": "0x5f5e100"}), true)).0, -38010);
    assert_eq!(refused(calls(json!({"from": me, "to": to, "nonce": "0x9", "maxFeePerGas": "0x5f5e100"}), true)).0, -38011);
    assert_eq!(refused(calls(json!({"from": to, "to": me, "value": "0x9"}), false)).0, -38014);
    assert_eq!(refused(calls(json!({"from": me, "to": to, "gas": "0x5207"}), false)).0, -38013);
    assert_eq!(refused(json!({"blockStateCalls": [{"blockOverrides": {"number": "0x1"}}]})).0, -38020);
    assert_eq!(refused(json!({"blockStateCalls": [{"blockOverrides": {"time": "0x1"}}]})).0, -38021);
    assert_eq!(refused(json!({"blockStateCalls": [{"blockOverrides": {"number": "0xffff"}}]})).0, -38026);
    assert_eq!(refused(json!({"blockStateCalls": []})).0, -32602);
}

#[test]
fn proofs_lead_to_the_state_root() {
    use alloy_trie::proof::verify_proof;
    use alloy_trie::{Nibbles, TrieAccount};
    let node = start_with(|c| c.state_root = true);
    let store = node.deploy(STORE);
    node.ok("eth_sendTransaction", json!([{"to": store, "data": word(1_000)}]));
    let root: B256 =
        serde_json::from_value(node.ok("eth_getBlockByNumber", json!(["latest", false]))["stateRoot"].clone()).unwrap();
    let proof = node.ok("eth_getProof", json!([store, ["0x0", word(5)], "latest"]));
    let read = |value: &Value| -> U256 { serde_json::from_value(value.clone()).unwrap() };
    let nodes = |value: &Value| -> Vec<Bytes> { serde_json::from_value(value.clone()).unwrap() };
    let storage_root = B256::from(read(&proof["storageHash"]));
    let account = TrieAccount {
        nonce: read(&proof["nonce"]).to(),
        balance: read(&proof["balance"]),
        storage_root,
        code_hash: B256::from(read(&proof["codeHash"])),
    };
    verify_proof(root, Nibbles::unpack(keccak256(store)), Some(alloy_rlp::encode(account)), &nodes(&proof["accountProof"]))
        .unwrap();
    let slot = &proof["storageProof"][0];
    assert_eq!((&slot["key"], &slot["value"]), (&json!("0x0"), &json!("0x3e8")));
    let key = |n: u64| Nibbles::unpack(keccak256(word(n)));
    verify_proof(storage_root, key(0), Some(alloy_rlp::encode(U256::from(1_000))), &nodes(&slot["proof"])).unwrap();
    verify_proof(storage_root, key(5), None, &nodes(&proof["storageProof"][1]["proof"])).unwrap();
    assert_eq!(node.err("eth_getProof", json!([store, vec!["0x0"; 1_025], "latest"])).0, -32602);
    // Without the option headers say nothing about the state; the proof is the same kind of thing.
    let node = start();
    assert_eq!(node.ok("eth_getBlockByNumber", json!(["latest", false]))["stateRoot"], json!(B256::ZERO));
    assert_eq!(node.ok("eth_getProof", json!([dev().address(), [], "latest"]))["nonce"], "0x0");
}

#[test]
fn the_node_interface_answers() {
    let node = start();
    node.ok("evm_increaseTime", json!([120]));
    node.ok("evm_mine", json!([{"blocks": 2}]));
    let to = Address::with_last_byte(0xc8);
    let call = |signature: &str, args: &str| {
        let data = format!("{}{args}", hex::encode_prefixed(&keccak256(signature)[..4]));
        node.request("eth_call", json!([{"to": to, "data": data, "from": dev().address()}]))
    };
    let arg = |n: u64| format!("{n:064x}");
    let words = |answer: Value| -> Vec<U256> { bytes(&answer["result"]).chunks(32).map(U256::from_be_slice).collect() };
    assert_eq!(words(call("nitroGenesisBlock()", "")), [U256::ZERO]);
    assert_eq!(words(call("blockL1Num(uint64)", &arg(1))), [U256::from(11)]);
    assert_eq!(words(call("l2BlockRangeForL1(uint64)", &arg(11))), [U256::from(1), U256::from(2)]);
    assert_eq!(call("l2BlockRangeForL1(uint64)", &arg(5))["error"]["code"], -32000);
    let estimate = format!("{:0>64}{}{}{}", hex::encode(Address::repeat_byte(9)), arg(0), arg(96), arg(0));
    let components = words(call("gasEstimateComponents(address,bool,bytes)", &estimate));
    assert_eq!(components, [21_000u64, 0, 100_000_000, 0].map(U256::from));
    assert_eq!(words(call("gasEstimateL1Component(address,bool,bytes)", &estimate)), [0u64, 100_000_000, 0].map(U256::from));
    assert_eq!(call("findBatchContainingBlock(uint64)", &arg(1))["error"]["code"], -32000);
    assert_eq!(call("nothing()", "")["error"]["code"], -32000);
    assert_eq!(node.ok("eth_blobBaseFee", json!([])), "0x1");
}
