//! A chain that outlives its process, dumps, and the file after a crash.

#![cfg(unix)]

mod support;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use alloy_primitives::{hex, Address};
use muster_devnode::{Chain, Config, Devnode};
use serde_json::{json, Value};
use support::rpc::*;
use support::word;

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("muster-state-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("chain.json")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn keep(path: &Path) -> Result<Rpc, String> {
    let mut config = Config { state: Some(path.to_owned()), ..Config::default() };
    config.chain.clock = muster_devnode::chain::Clock::Manual(START);
    Devnode::start(config).map(Rpc).map_err(|e| e.to_string())
}

/// A bit of everything; gives the expected contents afterwards.
fn live(node: &Rpc) -> Address {
    let store = node.deploy(STORE);
    for value in 1..=5 {
        node.ok("eth_sendTransaction", json!([{"to": store, "data": word(value)}]));
    }
    node.ok("evm_increaseTime", json!([1_000]));
    let snapshot = node.ok("evm_snapshot", json!([]));
    node.ok("eth_sendTransaction", json!([{"to": store, "data": word(9)}]));
    node.ok("evm_revert", json!([snapshot]));
    node.ok("anvil_setBalance", json!([Address::repeat_byte(7), "0x77"]));
    node.ok("hardhat_setCoinbase", json!([Address::repeat_byte(8)]));
    let ghost = Address::repeat_byte(9);
    node.ok("anvil_impersonateAccount", json!([ghost]));
    node.ok("anvil_setBalance", json!([ghost, "0xde0b6b3a7640000"]));
    node.ok("eth_sendTransaction", json!([{"from": ghost, "to": store, "data": word(6)}]));
    node.ok("evm_mine", json!([{"blocks": 3}]));
    node.ok("evm_setAutomine", json!([false]));
    node.ok("eth_sendTransaction", json!([{"to": store, "data": word(10), "gas": "0x20000"}]));
    store
}

/// All that can be asked about it.
fn look(node: &Rpc, store: Address) -> Value {
    let head = number(&node.ok("eth_blockNumber", json!([])));
    let blocks: Vec<_> = (0..=head)
        .map(|n| {
            let block = node.ok("eth_getBlockByNumber", json!([format!("{n:#x}"), true]));
            let receipts = node.ok("eth_getBlockReceipts", json!([format!("{n:#x}")]));
            json!([block, receipts])
        })
        .collect();
    json!([
        blocks,
        node.ok("eth_getStorageAt", json!([store, "0x0"])),
        node.ok("eth_getStorageAt", json!([store, "0x0", "pending"])),
        node.ok("eth_getCode", json!([store])),
        node.ok("eth_getBalance", json!([Address::repeat_byte(7)])),
        node.ok("eth_getTransactionCount", json!([dev().address(), "pending"])),
        node.ok("eth_getLogs", json!([{"fromBlock": "0x0", "address": store}])),
        node.ok("eth_getBlockByNumber", json!(["pending", true])),
        node.ok("eth_coinbase", json!([])),
        node.ok("txpool_content", json!([])),
        node.ok("anvil_getAutomine", json!([])),
        node.0.chain().next_timestamp(),
    ])
}

#[test]
fn a_chain_goes_on_where_it_stopped() {
    let folder = Folder::new("stop");
    let node = keep(&folder.file()).unwrap();
    let store = live(&node);
    let before = look(&node, store);
    assert!(keep(&folder.file()).err().unwrap().ends_with("is in use by another node"));
    drop(node);
    let node = keep(&folder.file()).unwrap();
    assert_eq!(look(&node, store), before);
    // It goes on as a chain that was never stopped.
    node.ok("evm_setAutomine", json!([true]));
    node.ok("evm_mine", json!([]));
    assert_eq!(node.ok("eth_getStorageAt", json!([store, "0x0"])), json!(word(10)));
    let other = Config { state: Some(folder.file()), ..Config::default() };
    drop(node);
    let mut other = other;
    other.chain.chain_id = 77;
    let error = Devnode::start(other).unwrap_err().to_string();
    assert_eq!(error, "the state is of chain 412346 with ArbOS 61, this chain is 77 with ArbOS 61");
    std::fs::write(folder.file(), "{}").unwrap();
    assert!(keep(&folder.file()).is_err());
}

#[test]
fn a_program_runs_after_the_chain_was_loaded() {
    let folder = Folder::new("wasm");
    let node = keep(&folder.file()).unwrap();
    let (proxy, load) = (program(&node, PROXY), node.deploy(LOAD));
    node.ok("anvil_setStorageAt", json!([load, "0x0", "0x5"]));
    let data = format!("0x{:0>64}", hex::encode(load));
    let call = |node: &Rpc| {
        let hash = node.ok("eth_sendTransaction", json!([{"to": proxy, "data": data}]));
        node.ok("eth_getTransactionReceipt", json!([hash]))["gasUsed"].clone()
    };
    let gas = call(&node);
    drop(node);
    let node = keep(&folder.file()).unwrap();
    assert_eq!(node.ok("eth_call", json!([{"to": proxy, "data": data}])), json!(word(5)));
    assert_eq!(call(&node), gas);
}

fn spawn(path: &Path) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_muster-devnode"))
        .args(["--port", "0", "--manual-time", &START.to_string(), "--state"])
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("Listening on") {
        assert_ne!(lines.read_line(&mut text).unwrap(), 0, "{text}");
    }
    let url = text.split("http://").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    (child, url)
}

/// Asks a node in another process.
fn ask(address: &str, method: &str, params: Value) -> Value {
    use std::io::{Read, Write};
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let answer: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert!(answer.get("error").is_none(), "{method}: {answer}");
    answer["result"].clone()
}

#[test]
fn nothing_is_lost_when_the_node_is_killed() {
    let folder = Folder::new("kill");
    let (mut child, address) = spawn(&folder.file());
    let to = Address::repeat_byte(0x33);
    for value in 1..=20 {
        ask(&address, "eth_sendTransaction", json!([{"to": to, "value": format!("{value:#x}")}]));
    }
    ask(&address, "anvil_setNonce", json!([to, 5]));
    let head = ask(&address, "eth_getBlockByNumber", json!(["latest", true]));
    // SIGKILL: nothing is written on the way out.
    child.kill().unwrap();
    child.wait().unwrap();
    // Half a line, as if it had been killed while writing.
    use std::io::Write;
    let mut log = std::fs::OpenOptions::new().append(true).open(folder.0.join("chain.json.log")).unwrap();
    log.write_all(br#"{"do":"balance","of":"0x33"#).unwrap();
    let (mut child, address) = spawn(&folder.file());
    assert_eq!(ask(&address, "eth_getBlockByNumber", json!(["latest", true])), head);
    assert_eq!(ask(&address, "eth_getBalance", json!([to, "latest"])), "0xd2");
    assert_eq!(ask(&address, "eth_getTransactionCount", json!([to, "latest"])), "0x5");
    child.kill().unwrap();
    child.wait().unwrap();
    // Reading it wrote the file anew, so that the log is short.
    assert!(std::fs::metadata(folder.0.join("chain.json.log")).unwrap().len() < 100);
    // A log of an older file is not read twice.
    let (mut child, address) = spawn(&folder.file());
    assert_eq!(ask(&address, "eth_getBlockByNumber", json!(["latest", true])), head);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The file has no snapshots: one that is older than the file is in no log, so a node that was killed after going back to it could not start.
#[test]
fn nothing_is_lost_that_went_back_to_a_snapshot_older_than_the_file() {
    let folder = Folder::new("back");
    let open = || {
        let config = muster_devnode::chain::Config { clock: muster_devnode::chain::Clock::Manual(START), ..Default::default() };
        let chain = Chain::new(config).unwrap();
        chain.keep_in(&folder.file()).unwrap();
        chain
    };
    let (one, other) = (Address::repeat_byte(1), Address::repeat_byte(2));
    let of = |chain: &Chain, address: Address| chain.state().balance(address).to::<u64>();
    let chain = open();
    let old = chain.snapshot();
    chain.set_balance(one, "5".parse().unwrap());
    chain.mine(3, 1).unwrap();
    // As when the log has grown long.
    chain.save_state().unwrap();
    let young = chain.snapshot();
    chain.set_balance(one, "6".parse().unwrap());
    assert!(chain.revert(young) && !chain.revert(young));
    assert_eq!(of(&chain, one), 5);
    assert!(chain.revert(old));
    chain.set_balance(other, "7".parse().unwrap());
    let head = chain.head().header.number;
    drop(chain);
    let chain = open();
    assert_eq!((of(&chain, one), of(&chain, other), chain.head().header.number), (0, 7, head));
}

#[test]
fn dumps_are_loaded_by_another_node() {
    let node = start();
    let store = live(&node);
    let before = look(&node, store);
    let dump = node.ok("anvil_dumpState", json!([]));
    let other = start();
    other.ok("evm_mine", json!([{"blocks": 50}]));
    let filter = other.ok("eth_newBlockFilter", json!([]));
    assert_eq!(other.ok("anvil_loadState", json!([dump])), true);
    assert_eq!(look(&other, store), before);
    // To a polling client, all its blocks are new.
    let blocks = other.ok("eth_getFilterChanges", json!([filter]));
    assert_eq!(blocks.as_array().unwrap().len() as u64, number(&other.ok("eth_blockNumber", json!([]))) + 1);
    for wrong in ["0x", "0x1234", "0x0b028000"] {
        assert_eq!(other.err("anvil_loadState", json!([wrong])).0, -32602, "{wrong}");
    }
    assert_eq!(look(&other, store), before);
    let chain = Chain::new(muster_devnode::chain::Config { chain_id: 5, ..Default::default() }).unwrap();
    assert!(chain.load(&hex::decode(dump.as_str().unwrap()).unwrap()).is_err());
}
