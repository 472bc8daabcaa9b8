//! A node that goes on from another one's state, read through its endpoint.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alloy_primitives::{address, hex, Address, Bytes, B256, U256};
use muster_devnode::chain::{self, Clock};
use muster_devnode::endpoint::{Endpoint, Settings};
use muster_devnode::fork::Fork;
use muster_devnode::stylus::{deployed_code, FRAGMENT_PREFIX, ROOT_PREFIX};
use muster_devnode::{Config, Devnode};
use serde_json::{json, Value};
use support::program::wasm;
use support::rpc::{activate, number, program, start, Rpc, PROXY, REVERT, START, STORE};

const SOMEBODY: Address = address!("00000000000000000000000000000000005eed01");
/// Returns NUMBER, the hash before it, and ArbSys.arbBlockHash of the word in the calldata.
const HASHES: &[u8] = &hex!(
    "43600052 6001 43 03 40 602052 632b407a82 60e01b 6080 52 600035 6084 52 6020 6040 6024 6080 6064 5a fa 50 6060 6000 f3"
);

/// A proxy between a copy and its original: it counts requests, and can spoil the answers.
struct Between {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    to: Mutex<SocketAddr>,
    /// Methods in the order in which they came.
    asked: Mutex<Vec<String>>,
    /// Answers to spoil, the next one last.
    spoilt: Mutex<Vec<Spoil>>,
    batches: bool,
}

#[derive(Clone, Copy)]
enum Spoil {
    /// HTTP 429, with a time to wait.
    TooMany,
    /// A provider's own words for it.
    Limited,
    /// The connection closed.
    Gone,
    /// A node without archive state.
    Pruned,
    /// Not at all.
    Not,
}

impl Between {
    fn of(node: &Rpc, batches: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Shared { to: Mutex::new(node.0.address()), asked: Mutex::default(), spoilt: Mutex::default(), batches };
        let shared = Arc::new(shared);
        let copy = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = copy.clone();
                std::thread::spawn(move || shared.serve(stream.unwrap()));
            }
        });
        Self { address, shared }
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::new(format!("http://{}/key", self.address));
        settings.backoff = Duration::from_millis(1);
        settings
    }

    fn connect(&self, block: Option<u64>) -> Result<Arc<Fork>, String> {
        Fork::connect(Endpoint::new(self.settings())?, block)
    }

    fn copy(&self, block: Option<u64>) -> Rpc {
        let mut chain = chain::Config::of_fork(self.connect(block).unwrap());
        chain.clock = Clock::Manual(START);
        Rpc(Devnode::start(Config { chain, ..Config::default() }).unwrap())
    }

    fn spoil(&self, answers: &[Spoil]) {
        *self.shared.spoilt.lock().unwrap() = answers.to_vec();
    }

    /// The requests since the last time.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.asked.lock().unwrap())
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap() == 0 {
                return;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let request: Value = serde_json::from_slice(&body).unwrap();
        let calls = request.as_array().cloned().unwrap_or_else(|| vec![request.clone()]);
        let error = |code: i64, message: &str| {
            json!({"jsonrpc": "2.0", "id": 0, "error": {"code": code, "message": message}}).to_string()
        };
        let spoil = self.spoilt.lock().unwrap().pop();
        let (head, answer) = match spoil {
            Some(Spoil::Gone) => return,
            Some(Spoil::TooMany) => ("429 Too Many Requests\r\nretry-after: 0", String::new()),
            Some(Spoil::Limited) => ("200 OK", error(-32000, "Your app has exceeded its compute units per second capacity")),
            Some(Spoil::Pruned) => {
                let error = json!({"code": -32000, "message": "missing trie node 1234 (path ) state 0x12 is not available"});
                let mut answers: Vec<_> =
                    calls.iter().map(|call| json!({"jsonrpc": "2.0", "id": call["id"], "error": error})).collect();
                let answer = if request.is_array() { json!(answers) } else { answers.remove(0) };
                ("200 OK", answer.to_string())
            }
            None | Some(Spoil::Not) if request.is_array() && !self.batches => ("200 OK", error(-32600, "batches are not served")),
            None | Some(Spoil::Not) => {
                self.asked.lock().unwrap().extend(calls.iter().map(|call| call["method"].as_str().unwrap().to_owned()));
                let mut node = TcpStream::connect(*self.to.lock().unwrap()).unwrap();
                let head = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
                node.write_all(&[head.as_bytes(), &body].concat()).unwrap();
                let mut answer = String::new();
                node.read_to_string(&mut answer).unwrap();
                ("200 OK", answer.split_once("\r\n\r\n").unwrap().1.to_owned())
            }
        };
        let head = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", answer.len());
        let _ = stream.write_all(&[head.as_bytes(), answer.as_bytes()].concat());
    }
}

fn send(node: &Rpc, from: Address, to: Address, data: &[u8]) -> Value {
    let hash = node.ok("eth_sendTransaction", json!([{"from": from, "to": to, "data": hex::encode_prefixed(data)}]));
    node.ok("eth_getTransactionReceipt", json!([hash]))
}

fn call(node: &Rpc, to: Address, data: &[u8]) -> Bytes {
    let answer = node.ok("eth_call", json!([{"to": to, "data": hex::encode_prefixed(data)}, "latest"]));
    serde_json::from_value(answer).unwrap()
}

fn word(n: u64) -> [u8; 32] {
    U256::from(n).to_be_bytes()
}

/// A node with a contract in whose slot 0 lies 7, another that shows hashes, and ten blocks after them.
fn original() -> (Rpc, Address, Address) {
    let node = start();
    let store = node.deploy(STORE);
    let hashes = node.deploy(HASHES);
    assert_eq!(send(&node, node.0.chain().accounts()[1], store, &word(7))["status"], "0x1");
    node.ok("hardhat_mine", json!(["0xa", "0xc"]));
    (node, store, hashes)
}

#[test]
fn a_copy_goes_on_where_the_original_stood_and_leaves_it_alone() {
    let (node, store, hashes) = original();
    let between = Between::of(&node, true);
    let copy = between.copy(None);
    let [me, other] = [1, 2].map(|n| node.0.chain().accounts()[n]);
    let (head, there) = (node.0.chain().head(), copy.0.chain().head());
    assert_eq!((head.hash, &head.header, head.l1_number), (there.hash, &there.header, there.l1_number));

    // The copy sees the same as the block, hashes of either layer included.
    let asked = word(head.header.number - 5);
    assert_eq!(call(&node, hashes, &asked), call(&copy, hashes, &asked));
    let seen = call(&copy, hashes, &asked);
    assert!(seen[..32] == word(head.l1_number) && seen[32..64] != word(0) && seen[64..] != word(0), "{seen}");

    // Changed there, it is as it was here, also after it was set to zero.
    for value in [9, 0] {
        assert_eq!(send(&copy, me, store, &word(value))["status"], "0x1");
        let slot = |node: &Rpc, at: Value| node.ok("eth_getStorageAt", json!([store, "0x0", at]));
        assert_eq!(slot(&copy, json!("latest")), json!(B256::from(word(value))));
        assert_eq!(slot(&copy, json!(format!("{:#x}", head.header.number))), json!(B256::from(word(7))));
        assert_eq!(slot(&node, json!("latest")), json!(B256::from(word(7))));
    }
    assert_eq!(number(&copy.ok("eth_getTransactionCount", json!([me, "latest"]))), 3, "one from before");
    assert_eq!(node.0.chain().head().hash, head.hash);

    // Same transaction, same block.
    node.ok("evm_setNextBlockTimestamp", json!([head.header.timestamp + 60]));
    let again = between.copy(None);
    again.ok("evm_setNextBlockTimestamp", json!([head.header.timestamp + 60]));
    let [on_node, on_copy] = [&node, &again].map(|node| send(node, other, store, &word(11)));
    assert_eq!(on_node, on_copy);
    assert_eq!(number(&on_copy["blockNumber"]), head.header.number + 1);

    // The first copy goes on from a block that the original had before, whatever happens there.
    assert_eq!(copy.ok("eth_getStorageAt", json!([store, "0x1", "latest"])), json!(B256::ZERO));
    let earlier = between.copy(Some(3));
    assert_eq!(earlier.0.chain().head().header.number, 3);
    assert_eq!(earlier.ok("eth_getTransactionCount", json!([me, "latest"])), json!("0x1"));
}

#[test]
fn a_copy_is_read_only_as_needed_and_only_once() {
    let (node, store, _) = original();
    let between = Between::of(&node, true);
    let copy = between.copy(None);
    let begun = between.asked();
    assert_eq!(begun.len(), 10, "a block, two accounts, the rules of programs, hashes: {begun:?}");
    let me = node.0.chain().accounts()[1];
    send(&copy, me, store, &word(8));
    let first = between.asked();
    // Accounts in three calls: sender, recipient, coinbase and the network's; one slot each of the contract and of the price floor.
    assert!(first.len() <= 4 * 3 + 3, "{first:?}");
    assert_eq!(first.iter().filter(|method| *method == "eth_getStorageAt").count(), 2, "{first:?}");
    send(&copy, me, store, &word(9));
    copy.ok("eth_call", json!([{"from": me, "to": store}, "latest"]));
    assert_eq!(between.asked(), Vec::<String>::new(), "all of it is known");
    copy.ok("anvil_reset", json!([]));
    assert_eq!(copy.ok("eth_getStorageAt", json!([store, "0x0", "latest"])), json!(B256::from(word(7))));
    assert_eq!(between.asked(), Vec::<String>::new(), "a reset keeps what was read");
}

#[test]
fn programs_run_without_being_activated_again() {
    let node = start();
    let (boss, arb_wasm) = (node.0.chain().accounts()[0], Address::with_last_byte(0x71));
    let programs = [program(&node, PROXY), in_pieces(&node, PROXY)];
    let store = node.deploy(STORE);
    let copy = Between::of(&node, true).copy(None);
    for (n, program) in (1..).zip(programs) {
        let [here, there] = [&node, &copy].map(|node| {
            node.ok("evm_setNextBlockTimestamp", json!([START + 500 * n]));
            send(node, boss, program, store.into_word().as_slice())
        });
        assert_eq!((&here["status"], &here), (&json!("0x1"), &there), "the same gas, logs and block");
        // ArbWasm's answer about it is the same too; so is a second activation's refusal.
        let left = [&hex!("c775a62a")[..], &program.into_word()[..]].concat();
        assert_eq!(call(&node, arb_wasm, &left), call(&copy, arb_wasm, &left));
        let activate = hex::encode_prefixed([&hex!("58c780c2")[..], &program.into_word()[..]].concat());
        let refused = |node: &Rpc| node.err("eth_call", json!([{"from": boss, "to": arb_wasm, "data": activate}]));
        assert_eq!(refused(&node), refused(&copy));
    }
}

/// Deploys and activates a program in two pieces, as large ones are (ArbOS 60).
fn in_pieces(node: &Rpc, text: &str) -> Address {
    let wasm = wasm(text);
    let packed = &deployed_code(&wasm)[4..];
    let (first, second) = packed.split_at(packed.len() / 2);
    let mut root = [&ROOT_PREFIX[..], &[0], &(wasm.len() as u32).to_be_bytes()].concat();
    for piece in [first, second] {
        root.extend_from_slice(node.deploy(&[&FRAGMENT_PREFIX[..], piece].concat()).as_slice());
    }
    let program = node.deploy(&root);
    activate(node, program);
    program
}

#[test]
fn the_past_is_the_originals() {
    let (node, store, _) = original();
    let revert = node.deploy(REVERT);
    let reverted = node.ok("eth_blockNumber", json!([]));
    node.ok("evm_mine", json!([]));
    let between = Between::of(&node, true);
    let copy = between.copy(None);
    between.asked();
    for _ in 0..3 {
        assert_eq!(
            copy.ok("eth_getBlockByNumber", json!(["latest", false])),
            node.ok("eth_getBlockByNumber", json!(["latest", false]))
        );
    }
    assert_eq!(between.asked(), ["eth_getBlockByNumber"], "what is over is asked once");
    let last = node.0.chain().head().header.number;
    let later = send(&node, node.0.chain().accounts()[1], store, &word(8));
    let here = send(&copy, node.0.chain().accounts()[2], store, &word(9));
    for n in 0..=last {
        for full in [false, true] {
            let block = |node: &Rpc| node.ok("eth_getBlockByNumber", json!([format!("{n:#x}"), full]));
            assert_eq!(block(&node), block(&copy));
        }
        let hash = node.ok("eth_getBlockByNumber", json!([format!("{n:#x}"), false]))["hash"].clone();
        let block = |node: &Rpc| node.ok("eth_getBlockByHash", json!([hash, true]));
        assert_eq!(block(&node), block(&copy));
    }
    let block = node.ok("eth_getBlockByNumber", json!(["0x3", false]));
    let tx = block["transactions"][0].clone();
    for method in ["eth_getTransactionByHash", "eth_getTransactionReceipt", "debug_traceTransaction"] {
        assert_eq!(node.ok(method, json!([tx])), copy.ok(method, json!([tx])));
    }
    // The original's later blocks are not the copy's.
    for method in ["eth_getTransactionByHash", "eth_getTransactionReceipt"] {
        assert_eq!(copy.ok(method, json!([later["transactionHash"]])), Value::Null);
    }
    assert_eq!(copy.ok("eth_getBlockByHash", json!([later["blockHash"], false])), Value::Null);
    let logs = |from: u64, to: Value| copy.ok("eth_getLogs", json!([{"fromBlock": format!("{from:#x}"), "toBlock": to}]));
    let all = logs(0, json!("latest"));
    let whose = |log: &Value| log["transactionHash"].clone();
    assert_eq!(all.as_array().unwrap().iter().map(whose).collect::<Vec<_>>(), [tx, whose(&here["logs"][0])]);
    assert_eq!(logs(last + 1, json!("latest")).as_array().unwrap().len(), 1);
    assert_eq!(logs(0, json!(format!("{last:#x}"))).as_array().unwrap().len(), 1);
    let filter = copy.ok("eth_newFilter", json!([{"fromBlock": "0x0"}]));
    assert_eq!(copy.ok("eth_getFilterLogs", json!([filter])), all);
    assert_eq!(copy.ok("eth_feeHistory", json!(["0xa", "latest", []]))["gasUsedRatio"].as_array().unwrap().len(), 2);
    let call = |node: &Rpc| node.ok("eth_getStorageAt", json!([store, "0x0", "0x2"]));
    assert_eq!((call(&copy), call(&copy)), (call(&node), json!(B256::ZERO)));
    // Reverts too, also one in the words of a provider that is asked too often.
    let words = [&hex!("08c379a0")[..], &word(32), &word(17), b"Too many requests", &[0; 15]].concat();
    for (method, data) in [("eth_call", &words[..]), ("eth_estimateGas", &words), ("eth_call", &word(1))] {
        let ask = json!([{"to": revert, "data": hex::encode_prefixed(data)}, reverted]);
        let error = copy.request(method, ask.clone())["error"].clone();
        assert_eq!((&error["code"], &error), (&json!(3), &node.request(method, ask)["error"]));
    }
}

#[test]
fn accounts_can_be_impersonated_and_edited() {
    let (node, store, _) = original();
    node.ok("anvil_setCode", json!([SOMEBODY, "0x00"]));
    node.ok("anvil_setNonce", json!([SOMEBODY, "0x5"]));
    node.ok("evm_mine", json!([]));
    let copy = Between::of(&node, true).copy(None);
    let ask = json!([{"from": SOMEBODY, "to": store, "data": hex::encode_prefixed(word(5))}]);
    assert!(copy.err("eth_sendTransaction", ask.clone()).1.contains("unknown account"));
    copy.ok("anvil_impersonateAccount", json!([SOMEBODY]));
    copy.ok("anvil_setBalance", json!([SOMEBODY, "0xde0b6b3a7640000"]));
    // The rest of the account is as on the original.
    assert_eq!(copy.ok("eth_getCode", json!([SOMEBODY, "latest"])), "0x00");
    assert_eq!(copy.ok("eth_getTransactionCount", json!([SOMEBODY, "latest"])), "0x5");
    copy.ok("anvil_setCode", json!([SOMEBODY, "0x"]));
    let hash = copy.ok("eth_sendTransaction", ask);
    assert_eq!(copy.ok("eth_getTransactionReceipt", json!([hash]))["status"], "0x1");
    copy.ok("anvil_setStorageAt", json!([store, "0x0", B256::from(word(77))]));
    assert_eq!(copy.ok("eth_getStorageAt", json!([store, "0x0", "latest"])), json!(B256::from(word(77))));
    let config = copy.ok("anvil_nodeInfo", json!([]))["forkConfig"].clone();
    assert_eq!(config["forkBlockNumber"], json!(node.0.chain().head().header.number));
    assert!(!config.to_string().contains("key"), "keys stand in paths: {config}");
    // Parts cannot stand for the whole.
    assert!(copy.err("eth_getProof", json!([store, [], "latest"])).1.contains("copy"));
    assert!(copy.err("anvil_dumpState", json!([])).1.contains("copy"));
}

#[test]
fn an_endpoint_that_falters_is_asked_again() {
    let (node, store, _) = original();
    let between = Between::of(&node, true);
    between.spoil(&[Spoil::Limited, Spoil::Gone, Spoil::TooMany]);
    let copy = between.copy(None);
    between.spoil(&[Spoil::TooMany, Spoil::Limited, Spoil::Gone, Spoil::TooMany]);
    assert_eq!(send(&copy, node.0.chain().accounts()[1], store, &word(8))["status"], "0x1");
    // An endpoint without batches.
    let plain = Between::of(&node, false);
    let copy = plain.copy(None);
    assert_eq!(send(&copy, node.0.chain().accounts()[1], store, &word(8))["status"], "0x1");

    // In the end it fails, and nothing has happened.
    let started = Instant::now();
    let slot = json!([store, "0x5", "latest"]);
    let copy = between.copy(None);
    between.spoil(&[Spoil::TooMany; 6]);
    let (code, message) = copy.err("eth_getStorageAt", slot.clone());
    assert!(code == -32000 && message.contains("HTTP status 429, asked 6 times"), "{message}");
    assert!(!message.contains("key"), "{message}");
    let ask =
        json!([{"from": node.0.chain().accounts()[1], "to": store, "data": hex::encode_prefixed(word(5)), "gas": "0xfffff"}]);
    for method in ["eth_call", "eth_estimateGas", "eth_sendTransaction"] {
        between.spoil(&[Spoil::TooMany; 6]);
        assert!(copy.err(method, ask.clone()).1.contains("429"), "{method}");
    }
    let balance = json!([SOMEBODY, "0x1"]);
    between.spoil(&[Spoil::TooMany; 6]);
    assert!(copy.err("anvil_setBalance", balance.clone()).1.contains("429"));
    assert_eq!(copy.0.chain().head().hash, node.0.chain().head().hash, "no block");
    copy.ok("anvil_setBalance", balance);
    copy.ok("eth_sendTransaction", ask);
    assert_eq!(copy.ok("eth_getStorageAt", slot), json!(B256::ZERO));
    assert!(started.elapsed() < Duration::from_secs(20), "waits double from one millisecond on");
}

#[test]
fn what_can_not_be_copied_is_said() {
    let (node, _, _) = original();
    let between = Between::of(&node, true);
    let error = |block| between.connect(block).unwrap_err();
    assert!(error(Some(99)).contains("has no block 99"), "{}", error(Some(99)));
    // The second answer is the first about the state.
    between.spoil(&[Spoil::Pruned, Spoil::Not]);
    let message = error(None);
    assert!(message.contains("no longer has the state of block 13") && message.contains("archive node"), "{message}");
    // States that the original has forgotten.
    let short = support::rpc::start_with(|config| config.history.states = 2);
    short.ok("hardhat_mine", json!(["0xa"]));
    let message = Between::of(&short, true).connect(Some(1)).unwrap_err();
    assert!(message.contains("archive node") && message.contains("historical state is not kept"), "{message}");
    // A block that is gone is no other block.
    let id = node.ok("evm_snapshot", json!([]));
    node.ok("evm_mine", json!([]));
    let copy = between.copy(None);
    node.ok("evm_revert", json!([id]));
    node.ok("evm_increaseTime", json!(["0x64"]));
    node.ok("hardhat_mine", json!(["0x2"]));
    assert!(copy.err("eth_getBalance", json!([SOMEBODY, "latest"])).1.contains("state of block"));
    for url in ["ftp://x", "127.0.0.1:8547", ""] {
        assert!(Endpoint::new(Settings::new(url)).is_err(), "{url}");
    }
    let fork = between.connect(None).unwrap();
    let rooted = chain::Config { state_root: true, ..chain::Config::of_fork(fork) };
    assert!(muster_devnode::Chain::new(rooted).unwrap_err().contains("root"));
}
