//! A node, and a client that hides nothing: plain HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::str::FromStr;

use alloy_consensus::{SignableTransaction, TxEip1559, TxEnvelope};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{address, hex, Address, TxKind, U256};
use alloy_signer::SignerSync;
use alloy_signer_local::PrivateKeySigner;
use muster_devnode::chain::{self, Clock, NITRO_DEV_KEY};
use muster_devnode::{Config, Devnode};
use serde_json::{json, Value};

use super::program::wasm;

pub const GWEI: u128 = 1_000_000_000;
pub const START: u64 = 1_700_000_000;
pub const CHAIN: u64 = 412_346;

pub fn start_with(change: impl FnOnce(&mut chain::Config)) -> Rpc {
    let mut config = Config::default();
    config.chain.clock = Clock::Manual(START);
    change(&mut config.chain);
    Rpc(Devnode::start(config).unwrap())
}

pub fn start() -> Rpc {
    start_with(|_| {})
}

pub struct Rpc(pub Devnode);

impl Rpc {
    /// Sends bytes as they are. Gives the HTTP status and the body.
    pub fn post(&self, body: &[u8]) -> (u16, String) {
        let head = format!(
            "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        self.exchange(&[head.as_bytes(), body].concat())
    }

    pub fn exchange(&self, request: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(self.0.address()).unwrap();
        // A server that refuses the head does not read the rest.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let status = answer[9..12].parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    pub fn json(&self, body: &str) -> Value {
        let (status, body) = self.post(body.as_bytes());
        assert_eq!(status, 200);
        serde_json::from_str(&body).unwrap()
    }

    pub fn request(&self, method: &str, params: Value) -> Value {
        let answer = self.json(&json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string());
        assert_eq!(answer["id"], 7);
        answer
    }

    pub fn ok(&self, method: &str, params: Value) -> Value {
        let answer = self.request(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    pub fn err(&self, method: &str, params: Value) -> (i64, String) {
        let answer = self.request(method, params);
        let error = &answer["error"];
        (error["code"].as_i64().unwrap_or_else(|| panic!("{method}: {answer}")), error["message"].as_str().unwrap().into())
    }

    pub fn send_raw(&self, tx: &TxEnvelope) -> Value {
        self.ok("eth_sendRawTransaction", json!([hex::encode_prefixed(tx.encoded_2718())]))
    }

    pub fn refuse_raw(&self, tx: &TxEnvelope) -> String {
        let (code, message) = self.err("eth_sendRawTransaction", json!([hex::encode_prefixed(tx.encoded_2718())]));
        assert_eq!(code, -32000, "{message}");
        message
    }

    /// Deploys code that is returned by nothing but itself: `PUSH code; CODECOPY; RETURN`.
    pub fn deploy(&self, runtime: &[u8]) -> Address {
        let mut init = hex!("61000080600a3d393df3").to_vec();
        init[1..3].copy_from_slice(&(runtime.len() as u16).to_be_bytes());
        init.extend_from_slice(runtime);
        let hash = self.ok("eth_sendTransaction", json!([{"data": hex::encode_prefixed(init)}]));
        let receipt = self.ok("eth_getTransactionReceipt", json!([hash]));
        assert_eq!(receipt["status"], "0x1", "{receipt}");
        receipt["contractAddress"].as_str().unwrap().parse().unwrap()
    }
}

pub fn dev() -> PrivateKeySigner {
    PrivateKeySigner::from_str(NITRO_DEV_KEY).unwrap()
}

pub fn number(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap().strip_prefix("0x").unwrap(), 16).unwrap()
}

pub fn sign<T: SignableTransaction<alloy_primitives::Signature>>(tx: T, key: &PrivateKeySigner) -> TxEnvelope
where
    TxEnvelope: From<alloy_consensus::Signed<T>>,
{
    let signature = key.sign_hash_sync(&tx.signature_hash()).unwrap();
    tx.into_signed(signature).into()
}

pub fn plain(nonce: u64) -> TxEip1559 {
    TxEip1559 {
        chain_id: CHAIN,
        nonce,
        gas_limit: 21_000,
        max_fee_per_gas: GWEI,
        max_priority_fee_per_gas: 0,
        to: TxKind::Call(address!("00000000000000000000000000000000000000aa")),
        value: U256::from(1),
        ..Default::default()
    }
}

// Stores the first word of the calldata at slot 0 and emits LOG2(topic 1 = it, topic 0 = 7) with it as data.
pub const STORE: &[u8] = &hex!("600035 80600055 600052 600035 6007 6020 6000 a2 00");
// Reverts with the calldata.
pub const REVERT: &[u8] = &hex!("36600060003736 6000 fd");
// Loads slot 0 and returns it.
pub const LOAD: &[u8] = &hex!("600054600052 6020 6000 f3");
// INVALID.
pub const INVALID: &[u8] = &hex!("fe");
// Returns timestamp and number.
pub const CLOCK: &[u8] = &hex!("42600052 43602052 6040 6000 f3");
// An endless loop.
pub const SPIN: &[u8] = &hex!("5b600056");
// Calls the address in the first word of the calldata with all gas and no data; reverts if that fails.
pub const FORWARD: &[u8] = &hex!("6000600060006000 6000 600035 5a f1 6017 57 60006000fd 5b 00");

/// Calls the address in the first word of its calldata without value, and hands the answer on.
pub const PROXY: &str = r#"(module
    (memory (export "memory") 1 1)
    (func (export "user_entrypoint") (param $len i32) (result i32)
        (local $status i32)
        (call $read_args (i32.const 0))
        (local.set $status
            (call $call_contract (i32.const 12) (i32.const 32) (i32.sub (local.get $len) (i32.const 32))
                (i32.const 512) (i64.const -1) (i32.const 256)))
        (drop (call $read_return_data (i32.const 1024) (i32.const 0) (i32.load (i32.const 256))))
        (call $write_result (i32.const 1024) (i32.load (i32.const 256)))
        (local.get $status)))"#;

pub fn program(node: &Rpc, text: &str) -> Address {
    let address = node.deploy(&muster_devnode::stylus::deployed_code(&wasm(text)));
    assert_eq!(node.err("eth_call", json!([{"to": address}])), (-32000, "error ProgramNotActivated()".into()));
    activate(node, address);
    address
}

pub fn activate(node: &Rpc, program: Address) {
    // activateProgram(address)
    let data = format!("0x58c780c2{:0>64}", hex::encode(program));
    let fee = "0xde0b6b3a7640000";
    let hash = node.ok("eth_sendTransaction", json!([{"to": Address::with_last_byte(0x71), "data": data, "value": fee}]));
    let receipt = node.ok("eth_getTransactionReceipt", json!([hash]));
    assert_eq!(receipt["status"], "0x1", "{receipt}");
}
