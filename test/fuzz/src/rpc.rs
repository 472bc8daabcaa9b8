//! Bytes as bodies of requests to a local node over HTTP: as they stand, or methods with parameters of every kind.

use crate::bytes::Bytes;
use alloy_primitives::{Address, U256};
use muster_devnode::chain::{self, Clock};
use muster_devnode::{Config, Devnode, TxRequest};
use serde_json::{json, Value};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Every method, as the node's sources name them, and some that there are not.
const SOURCES: [&str; 5] = [
    include_str!("../../../devnode/src/rpc/eth.rs"),
    include_str!("../../../devnode/src/rpc/debug.rs"),
    include_str!("../../../devnode/src/rpc/dev.rs"),
    include_str!("../../../devnode/src/rpc/past.rs"),
    include_str!("../../../devnode/src/rpc/socket.rs"),
];
/// Fields of objects.
const KEYS: [&str; 48] = [
    "from",
    "to",
    "value",
    "data",
    "input",
    "gas",
    "gasPrice",
    "maxFeePerGas",
    "maxPriorityFeePerGas",
    "nonce",
    "accessList",
    "address",
    "storageKeys",
    "type",
    "chainId",
    "fromBlock",
    "toBlock",
    "blockHash",
    "topics",
    "tracer",
    "tracerConfig",
    "onlyTopCall",
    "withLog",
    "diffMode",
    "stateDiff",
    "state",
    "balance",
    "code",
    "stateOverrides",
    "blockOverrides",
    "blockStateCalls",
    "calls",
    "validation",
    "traceTransfers",
    "returnFullTransactions",
    "number",
    "time",
    "timestamp",
    "gasLimit",
    "baseFeePerGas",
    "blocks",
    "forking",
    "blockNumber",
    "requireCanonical",
    "enableMemory",
    "disableStack",
    "enableReturnData",
    "authorizationList",
];
/// Words that parameters are.
const WORDS: [&str; 20] = [
    "latest",
    "earliest",
    "pending",
    "safe",
    "finalized",
    "callTracer",
    "prestateTracer",
    "flatCallTracer",
    "4byteTracer",
    "structLog",
    "muxTracer",
    "stylusTracer",
    "newHeads",
    "logs",
    "newPendingTransactions",
    "syncing",
    "",
    "0x",
    "0xzz",
    "finney",
];
/// An answer takes no longer.
const PATIENCE: Duration = Duration::from_secs(50);
/// Most parts of a parameter.
const DEPTH: usize = 5;

fn methods() -> Vec<&'static str> {
    let mut all: Vec<&str> = SOURCES.iter().flat_map(|source| source.split('"').skip(1).step_by(2)).collect();
    let prefixes = ["eth_", "net_", "web3_", "rpc_", "txpool_", "personal_", "debug_", "muster_", "evm_", "anvil_", "hardhat_"];
    all.retain(|name| prefixes.iter().any(|prefix| name.len() > prefix.len() && name.starts_with(prefix)));
    all.retain(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
    all.sort_unstable();
    all.dedup();
    all
}

/// A node, a connection to it, and the things there are to name.
struct Client {
    node: Devnode,
    stream: BufReader<TcpStream>,
    methods: Vec<&'static str>,
    names: Vec<String>,
}

impl Client {
    fn new() -> Client {
        let chain = chain::Config { clock: Clock::Manual(1_790_000_000), ..chain::Config::default() };
        let mut config = Config { chain, ..Config::default() };
        // Nonces that are ahead are not waited for.
        config.patience.nonce = Duration::ZERO;
        let node = Devnode::start(config).expect("a port");
        let stream = TcpStream::connect(node.address()).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        stream.set_nodelay(true).expect("a socket");
        let mut client = Client { node, stream: BufReader::new(stream), methods: methods(), names: Vec::new() };
        client.begin();
        client
    }

    /// A chain with a contract, a log and a few transactions.
    fn begin(&mut self) {
        let chain = self.node.chain();
        chain.reset();
        chain.set_automine(true);
        chain.set_interval(0).expect("none");
        chain.impersonate_all(false);
        let from = chain.accounts()[0];
        // Logs its calldata, stores it, gives it back.
        let code = [0x36, 0x5f, 0x5f, 0x37, 0x5f, 0x35, 0x36, 0x5f, 0xa1, 0x5f, 0x35, 0x5f, 0x55, 0x36, 0x5f, 0xf3];
        let contract = Address::repeat_byte(0x77);
        chain.set_code(contract, code.to_vec().into());
        let mut names = vec![from.to_string(), contract.to_string(), Address::ZERO.to_string()];
        for value in 0..2u8 {
            let sent = TxRequest {
                from: Some(from),
                to: Some(contract.into()),
                input: alloy_primitives::Bytes::from(vec![value; 36]).into(),
                ..TxRequest::default()
            };
            names.push(chain.send(sent).expect("a transaction").hash.to_string());
        }
        names.push(chain.head().hash.to_string());
        self.names = names;
    }

    /// Its answer; panics if it does not answer in time.
    fn ask(&mut self, body: &[u8]) -> Vec<u8> {
        let head =
            format!("POST / HTTP/1.1\r\nHost: node\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        self.stream.get_mut().write_all(&[head.as_bytes(), body].concat()).expect("it takes requests");
        let (mut line, mut length) = (String::new(), None);
        loop {
            line.clear();
            assert!(self.stream.read_line(&mut line).expect("an answer in time") > 0, "it hangs up");
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse::<usize>().ok();
            }
        }
        let mut answer = vec![0; length.expect("the answer's length")];
        self.stream.read_exact(&mut answer).expect("an answer in time");
        answer
    }

    fn parameter(&self, b: &mut Bytes, depth: usize) -> Value {
        match b.byte() {
            small @ ..=0x3f => json!(format!("0x{small:x}")),
            0x40..=0x5f => json!(b.of(&WORDS)),
            0x60..=0x8f => json!(self.names[b.byte() as usize % self.names.len()]),
            0x90 => json!(b.below(2) == 1),
            0x91 => Value::Null,
            0x92 => json!(b.number()),
            0x93 => json!(format!("0x{:x}", b.number())),
            0x94 => json!(format!("0x{:x}", U256::MAX)),
            0x95 => json!(format!("0x{:064x}", b.number())),
            0x96 => {
                let length = b.byte().into();
                json!(String::from_utf8_lossy(b.take(length)))
            }
            0x97 => {
                let length = b.byte().into();
                json!(alloy_primitives::hex::encode_prefixed(b.take(length)))
            }
            // A precompile.
            0x98..=0x9f => json!(Address::with_last_byte(b.byte()).to_string()),
            0xa0 => json!(-1),
            0xa1 => json!(0.5),
            0xa2..=0xbf if depth < DEPTH => (0..b.below(4)).map(|_| self.parameter(b, depth + 1)).collect(),
            0xc0..=0xff if depth < DEPTH => (0..b.below(6))
                .map(|_| (b.of(&KEYS).to_string(), self.parameter(b, depth + 1)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            _ => json!({}),
        }
    }

    fn request(&self, b: &mut Bytes, id: usize) -> Value {
        let method = self.methods[b.byte() as usize % self.methods.len()];
        let parameters: Vec<Value> = (0..b.below(5)).map(|_| self.parameter(b, 0)).collect();
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters })
    }
}

/// Asserts that this is an answer; its id.
fn check(answer: &Value) -> &Value {
    assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
    if let Some(error) = answer.get("error") {
        assert!(answer.get("result").is_none(), "{answer}");
        assert!(error["code"].is_i64() && error["message"].is_string(), "{answer}");
        assert_ne!(error["message"], "method handler crashed", "{answer}");
    } else {
        assert!(answer.get("result").is_some(), "{answer}");
    }
    &answer["id"]
}

/// Panics where the node does, where it does not answer, and where that is no answer.
pub fn run(data: &[u8]) {
    thread_local!(static CLIENT: RefCell<Client> = RefCell::new(Client::new()));
    CLIENT.with_borrow_mut(|client| {
        let mut b = Bytes(data);
        if b.byte() == 0 {
            let answer = client.ask(b.0);
            if !answer.is_empty() {
                match serde_json::from_slice(&answer).expect("JSON") {
                    Value::Array(answers) => answers.iter().for_each(|answer| {
                        check(answer);
                    }),
                    answer => {
                        check(&answer);
                    }
                }
            }
        } else {
            for id in 0..6 {
                if b.is_empty() {
                    break;
                }
                let request = client.request(&mut b, id);
                if std::env::var_os("FUZZ_SHOW").is_some() {
                    println!("{request}");
                }
                let answer = client.ask(request.to_string().as_bytes());
                assert_eq!(*check(&serde_json::from_slice(&answer).expect("JSON")), id, "{request}");
            }
        }
        client.begin();
    });
}
