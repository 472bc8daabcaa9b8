//! A chain in memory, and nodes of it that misbehave on demand: late, away, lying, dropping transactions.
#![allow(dead_code)]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use alloy::consensus::transaction::SignerRecoverable;
use alloy::consensus::{Transaction, TxEnvelope};
use alloy::eips::eip2718::Decodable2718;
use alloy::primitives::{keccak256, Address, Bytes, B256, U256};
use alloy::sol_types::{SolCall, SolEvent};
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use muster_client::IMuster;
use serde_json::{json, Value};

pub const CONTRACT: Address = Address::repeat_byte(0x4d);
pub const CHAIN: u64 = 421_614;

/// A block: its hash, its time, the numbers that its events carry, and its transactions.
#[derive(Clone)]
struct Block {
    hash: B256,
    events: Vec<u32>,
    transactions: Vec<TxEnvelope>,
}

/// A chain.
#[derive(Clone)]
pub struct Chain {
    blocks: Vec<Block>,
    salt: u64,
    /// Wei for a unit of gas.
    pub base_fee: u128,
    /// The wei of every account.
    pub balance: u128,
    /// The most gas of a block.
    pub block_gas: u64,
    /// Transactions that nodes have taken and that are not mined.
    pub pool: Vec<TxEnvelope>,
    /// The revert data of `eth_estimateGas` and `eth_call`.
    pub refusal: Option<Bytes>,
    /// Whether transactions are mined as they come.
    pub automatic: bool,
    /// Whether mined transactions revert.
    pub undoes: bool,
}

pub type Shared = Arc<Mutex<Chain>>;

impl Chain {
    pub fn new() -> Shared {
        let mut chain = Chain {
            blocks: Vec::new(),
            salt: 0,
            base_fee: 100_000_000,
            balance: u128::MAX,
            block_gas: u64::MAX,
            pool: Vec::new(),
            refusal: None,
            automatic: false,
            undoes: false,
        };
        chain.mine(&[]);
        Arc::new(Mutex::new(chain))
    }

    /// Begins anew, as a development chain does: another first block, and nothing that was.
    pub fn begin_anew(&mut self) {
        self.blocks.clear();
        self.pool.clear();
        self.mine(&[]);
    }

    pub fn height(&self) -> u64 {
        self.blocks.len() as u64 - 1
    }

    /// Mines a block with these events, and the pool's transactions that are possible.
    pub fn mine(&mut self, events: &[u32]) {
        self.salt += 1;
        let mut transactions: Vec<TxEnvelope> = Vec::new();
        loop {
            let next = self.pool.iter().position(|transaction| {
                let from = transaction.recover_signer().unwrap();
                let own = transactions.iter().filter(|t| t.recover_signer().unwrap() == from).count() as u64;
                transaction.nonce() == self.count(from) + own && transaction.max_fee_per_gas() >= self.base_fee
            });
            let Some(next) = next else { break };
            transactions.push(self.pool.remove(next));
        }
        let hash = keccak256([self.salt, self.blocks.len() as u64].map(u64::to_be_bytes).concat());
        self.blocks.push(Block { hash, events: events.to_vec(), transactions });
    }

    /// Forgets the newest blocks and all that was in them.
    pub fn forget(&mut self, blocks: usize) {
        self.blocks.truncate((self.blocks.len() - blocks).max(1));
    }

    /// Transactions of an account that were mined.
    pub fn count(&self, account: Address) -> u64 {
        self.transactions().filter(|(_, t)| t.recover_signer().unwrap() == account).count() as u64
    }

    fn transactions(&self) -> impl Iterator<Item = (usize, &TxEnvelope)> {
        self.blocks.iter().enumerate().flat_map(|(at, block)| block.transactions.iter().map(move |t| (at, t)))
    }

    /// The mined transactions, in order.
    pub fn mined(&self) -> Vec<B256> {
        self.transactions().map(|(_, t)| *t.tx_hash()).collect()
    }

    /// The chain's events by block hash and position, and the numbers they carry.
    pub fn events(&self) -> Vec<(B256, u64, u32)> {
        let events = self
            .blocks
            .iter()
            .flat_map(|block| block.events.iter().enumerate().map(|(index, number)| (block.hash, index as u64, *number)));
        events.collect()
    }

    fn take(&mut self, bytes: &Bytes) -> Result<B256, &'static str> {
        let transaction = TxEnvelope::decode_2718(&mut bytes.as_ref()).map_err(|_| "rlp: not a transaction")?;
        let (hash, from) = (*transaction.tx_hash(), transaction.recover_signer().unwrap());
        if transaction.nonce() < self.count(from) {
            return Err("nonce too low");
        }
        if transaction.max_fee_per_gas() < self.base_fee {
            return Err("max fee per gas less than block base fee");
        }
        if transaction.gas_limit() > self.block_gas {
            return Err("exceeds block gas limit");
        }
        let cost = U256::from(transaction.gas_limit()) * U256::from(transaction.max_fee_per_gas()) + transaction.value();
        if cost > U256::from(self.balance) {
            return Err("insufficient funds for gas * price + value");
        }
        if self.pool.iter().any(|known| *known.tx_hash() == hash) {
            return Err("already known");
        }
        let own = self.pool.iter().filter(|t| t.recover_signer().unwrap() == from).count() as u64;
        if transaction.nonce() > self.count(from) + own {
            return Err("nonce too high");
        }
        self.pool.push(transaction);
        if self.automatic {
            self.mine(&[]);
        }
        Ok(hash)
    }

    fn receipt(&self, hash: B256, height: u64) -> Value {
        let Some((at, transaction)) = self.transactions().find(|(at, t)| *t.tx_hash() == hash && *at as u64 <= height) else {
            return Value::Null;
        };
        json!({
            "type": "0x2", "status": if self.undoes { "0x0" } else { "0x1" }, "cumulativeGasUsed": "0x5208", "gasUsed": "0x5208",
            "logsBloom": format!("0x{}", "00".repeat(256)), "logs": [], "transactionHash": hash, "transactionIndex": "0x0",
            "blockHash": self.blocks[at].hash, "blockNumber": format!("{at:#x}"), "effectiveGasPrice": "0x5f5e100",
            "from": transaction.recover_signer().unwrap(), "to": transaction.to(), "contractAddress": null,
        })
    }
}

/// How a node misbehaves.
#[derive(Default)]
pub struct Ways {
    /// Answers nothing but 503.
    pub away: AtomicBool,
    /// Blocks that it is behind.
    pub late: AtomicU64,
    /// Leaves out events.
    pub omits: AtomicBool,
    /// Has other blocks from this one on; 0 for none.
    pub forged: AtomicU64,
    /// Invents the contract's answers and events.
    pub invents: AtomicBool,
    /// Says of each transaction that it would be undone.
    pub denies: AtomicBool,
    /// Is of another chain.
    pub stranger: AtomicBool,
    /// Shows no receipts.
    pub blind: AtomicBool,
    /// Says that it takes transactions, and drops them.
    pub swallows: AtomicBool,
    /// Does not answer when a transaction is sent.
    pub hangs: AtomicBool,
    /// Says of every transaction that its account cannot pay it.
    pub poor: AtomicBool,
    /// Refuses questions about the events of more blocks than this; 0 for none.
    pub span: AtomicU64,
    /// So many further questions about events are too many for it.
    pub limits: AtomicU64,
    /// The gas that it estimates, a transfer's at least.
    pub gas: AtomicU64,
    /// So many transactions more than there were are counted for every account.
    pub counts: AtomicU64,
    /// Says that every account has nothing.
    pub broke: AtomicBool,
    /// Answers everything with this status, code and message.
    pub refuses: Mutex<Option<(u16, i64, &'static str)>>,
    /// Answers with something that is no JSON.
    pub babbles: AtomicBool,
    /// Transactions as they came.
    pub heard: Mutex<Vec<Bytes>>,
    /// Questions about events.
    pub asked: AtomicU64,
}

/// A node.
pub struct Node {
    pub url: String,
    pub ways: Arc<Ways>,
}

impl Node {
    pub async fn start(chain: &Shared) -> Node {
        let ways = Arc::new(Ways::default());
        let app = Router::new().route("/", post(answer)).with_state((chain.clone(), ways.clone()));
        let listener = tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Node { url, ways }
    }

    pub fn set(&self, way: impl Fn(&Ways) -> &AtomicBool, on: bool) {
        way(&self.ways).store(on, Ordering::SeqCst);
    }

    pub fn heard(&self) -> Vec<Bytes> {
        self.ways.heard.lock().unwrap().clone()
    }
}

fn number(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

async fn answer(State((chain, ways)): State<(Shared, Arc<Ways>)>, Json(asked): Json<Value>) -> (StatusCode, String) {
    let is = |way: &AtomicBool| way.load(Ordering::SeqCst);
    if is(&ways.away) {
        return (StatusCode::SERVICE_UNAVAILABLE, "away".into());
    }
    if is(&ways.babbles) {
        return (StatusCode::OK, "<html>".into());
    }
    if let Some((status, code, message)) = *ways.refuses.lock().unwrap() {
        let body = json!({ "jsonrpc": "2.0", "id": asked["id"], "error": { "code": code, "message": message } });
        return (StatusCode::from_u16(status).unwrap(), body.to_string());
    }
    if asked["method"] == "eth_sendRawTransaction" {
        ways.heard.lock().unwrap().push(asked["params"][0].as_str().unwrap().parse().unwrap());
        if is(&ways.hangs) {
            std::future::pending::<()>().await;
        }
    }
    let result = reply(&chain, &ways, asked["method"].as_str().unwrap(), &asked["params"]);
    let body = match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }),
    };
    (StatusCode::OK, body.to_string())
}

fn reply(chain: &Shared, ways: &Ways, method: &str, params: &Value) -> Result<Value, Value> {
    let mut chain = chain.lock().unwrap();
    let complain = |message: &str| json!({ "code": -32000, "message": message });
    let height = chain.height().saturating_sub(ways.late.load(Ordering::SeqCst));
    let forged = ways.forged.load(Ordering::SeqCst);
    let hash = |at: u64, hash: B256| if forged > 0 && at >= forged { keccak256(hash) } else { hash };
    match method {
        "eth_chainId" => Ok(json!(format!("{:#x}", if ways.stranger.load(Ordering::SeqCst) { 1 } else { CHAIN }))),
        "eth_getBlockByNumber" => {
            let at = if params[0] == "latest" { height } else { number(&params[0]) };
            if at > height {
                return Ok(Value::Null);
            }
            let block = &chain.blocks[at as usize];
            Ok(json!({
                "number": format!("{at:#x}"), "hash": hash(at, block.hash), "timestamp": format!("{:#x}", 1_800_000_000 + at * 10),
                "baseFeePerGas": format!("{:#x}", chain.base_fee),
            }))
        }
        "eth_getLogs" => {
            ways.asked.fetch_add(1, Ordering::SeqCst);
            let (from, to) = (number(&params[0]["fromBlock"]), number(&params[0]["toBlock"]));
            let less = |left: u64| left.checked_sub(1);
            if ways.limits.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
                return Err(complain("too many requests"));
            }
            let span = ways.span.load(Ordering::SeqCst);
            if span > 0 && to - from + 1 > span {
                return Err(complain("query exceeds max block range"));
            }
            let mut logs = Vec::new();
            // A node does not complain about blocks that it lacks.
            for at in from..=to.min(height) {
                let block = &chain.blocks[at as usize];
                for (index, node) in block.events.iter().enumerate() {
                    let node = *node + u32::from(ways.invents.load(Ordering::SeqCst));
                    let data = IMuster::NodePaused { node }.encode_log_data();
                    logs.push(json!({
                        "address": CONTRACT, "topics": data.topics(), "data": data.data, "blockNumber": format!("{at:#x}"),
                        "blockHash": hash(at, block.hash), "transactionHash": keccak256(block.hash), "transactionIndex": "0x0",
                        "logIndex": format!("{index:#x}"), "removed": false,
                    }));
                }
            }
            if ways.omits.load(Ordering::SeqCst) {
                logs.pop();
            }
            Ok(json!(logs))
        }
        "eth_getTransactionCount" => {
            let account = params[0].as_str().unwrap().parse().unwrap();
            Ok(json!(format!("{:#x}", chain.count(account) + ways.counts.load(Ordering::SeqCst))))
        }
        "eth_getBalance" if ways.broke.load(Ordering::SeqCst) => Ok(json!("0x0")),
        "eth_getBalance" => Ok(json!(U256::from(chain.balance))),
        "eth_getTransactionReceipt" if ways.blind.load(Ordering::SeqCst) => Ok(Value::Null),
        "eth_getTransactionReceipt" => Ok(chain.receipt(params[0].as_str().unwrap().parse().unwrap(), height)),
        "eth_sendRawTransaction" => {
            let bytes: Bytes = params[0].as_str().unwrap().parse().unwrap();
            if ways.swallows.load(Ordering::SeqCst) {
                return Ok(json!(keccak256(bytes)));
            }
            if ways.poor.load(Ordering::SeqCst) {
                return Err(complain("insufficient funds for gas * price + value"));
            }
            chain.take(&bytes).map(|hash| json!(hash)).map_err(complain)
        }
        "eth_estimateGas" if ways.denies.load(Ordering::SeqCst) => {
            Err(json!({ "code": 3, "message": "execution reverted", "data": "0x" }))
        }
        "eth_estimateGas" | "eth_call" => match &chain.refusal {
            Some(data) => Err(json!({ "code": 3, "message": "execution reverted", "data": data })),
            // The contract's owner is the block's number.
            None if method == "eth_call" && params[0]["data"] == json!(Bytes::from(IMuster::ownerCall {}.abi_encode())) => {
                let at = if params[1] == "latest" { height } else { number(&params[1]) };
                let invented = u64::from(ways.invents.load(Ordering::SeqCst)) << 32;
                Ok(json!(B256::left_padding_from(&(at + invented).to_be_bytes())))
            }
            None if method == "eth_call" => Ok(json!("0x")),
            None => Ok(json!(format!("{:#x}", ways.gas.load(Ordering::SeqCst).max(21_000)))),
        },
        "eth_getCode" => Ok(json!("0x00")),
        _ => Err(json!({ "code": -32601, "message": "no such method" })),
    }
}
