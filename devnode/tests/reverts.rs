//! Polled filters and subscriptions when the chain is taken back, and subscriptions in batches.

mod support;

use alloy_primitives::B256;
use futures_util::{SinkExt, StreamExt};
use serde_json::{json, Value};
use support::rpc::*;
use tokio_tungstenite::tungstenite::Message;

#[test]
fn filters_report_what_comes_in_the_place_of_what_was_taken_back() {
    let node = start();
    let store = node.deploy(STORE);
    let (blocks, logs) = (node.ok("eth_newBlockFilter", json!([])), node.ok("eth_newFilter", json!([{"address": store}])));
    let set = |value: u64| {
        let word = B256::left_padding_from(&value.to_be_bytes());
        node.ok("eth_sendTransaction", json!([{"to": store, "data": word}]))
    };
    let hash = |number: u64| node.ok("eth_getBlockByNumber", json!([format!("{number:#x}"), false]))["hash"].clone();
    let changes = |filter: &Value| node.ok("eth_getFilterChanges", json!([filter]));
    let snapshot = node.ok("evm_snapshot", json!([]));
    for value in 1..=5 {
        set(value);
    }
    assert_eq!(changes(&blocks).as_array().unwrap().len(), 5);
    assert_eq!(changes(&logs).as_array().unwrap().len(), 5);
    assert_eq!(node.ok("evm_revert", json!([snapshot])), true);
    // Fewer than before: their numbers were reported already, in other blocks.
    let sent = [set(7), set(8)];
    assert_eq!(changes(&blocks), json!([hash(2), hash(3)]));
    let found = changes(&logs);
    assert_eq!((&found[0]["transactionHash"], &found[1]["transactionHash"]), (&sent[0], &sent[1]));
    assert_eq!(found.as_array().unwrap().len(), 2);
    assert_eq!((changes(&blocks), changes(&logs)), (json!([]), json!([])));
    // A change that came and went between two questions is not there to be reported.
    let snapshot = node.ok("evm_snapshot", json!([]));
    set(9);
    node.ok("evm_revert", json!([snapshot]));
    assert_eq!((changes(&blocks), changes(&logs)), (json!([]), json!([])));
    set(10);
    assert_eq!(changes(&logs).as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn subscriptions_in_a_batch() {
    let node = start();
    let (mut socket, _) = tokio_tungstenite::connect_async(node.0.ws_url()).await.unwrap();
    let call = |id: u64, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    async fn next(socket: &mut (impl StreamExt<Item = Result<Message, tokio_tungstenite::tungstenite::Error>> + Unpin)) -> Value {
        serde_json::from_str(socket.next().await.unwrap().unwrap().to_text().unwrap()).unwrap()
    }
    let batch = json!([
        call(1, "eth_subscribe", json!(["newHeads"])),
        call(2, "eth_chainId", json!([])),
        call(3, "eth_subscribe", json!(["newPendingTransactions"])),
        call(4, "eth_subscribe", json!(["syncing"])),
        call(5, "eth_subscribe", json!(["nothing"])),
    ]);
    socket.send(Message::text(batch.to_string())).await.unwrap();
    let answers = next(&mut socket).await;
    assert_eq!(answers[1]["result"], "0x64aba");
    assert_eq!(answers[4]["error"]["code"], -32601);
    let (heads, pending) = (answers[0]["result"].clone(), answers[2]["result"].clone());
    assert!(answers[3]["result"].is_string());
    let sent = node.0.chain().send(muster_devnode::TxRequest::default().to(alloy_primitives::Address::ZERO)).unwrap();
    let (mut head, mut hash) = (Value::Null, Value::Null);
    for _ in 0..2 {
        let told = next(&mut socket).await["params"].take();
        match &told["subscription"] {
            id if *id == heads => head = told["result"]["hash"].clone(),
            id if *id == pending => hash = told["result"].clone(),
            other => panic!("{other}"),
        }
    }
    assert_eq!((head, hash), (json!(sent.block.hash), json!(sent.hash)));
    socket.send(Message::text(json!([call(6, "eth_unsubscribe", json!([heads]))]).to_string())).await.unwrap();
    assert_eq!(next(&mut socket).await[0]["result"], true);
}
