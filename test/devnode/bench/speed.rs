//! How fast the node is, in process and over JSON-RPC on one connection, with anvil beside it on the same
//! transactions in the same run.
//!
//! ```text
//! cargo run --release -p muster-devnode --bin devnode-speed -- [TRANSACTIONS]
//! ```
//!
//! anvil is looked for in `ANVIL`, then among the packages of `test/clients`; without it its column stays empty.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use alloy_consensus::{SignableTransaction, TxEip1559, TxEnvelope};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{hex, Address, Bytes, TxKind, B256, U256};
use alloy_rpc_types_eth::TransactionInput;
use alloy_signer::SignerSync;
use alloy_signer_local::PrivateKeySigner;
use muster_devnode::chain::{self, History};
use muster_devnode::stylus::deployed_code;
use muster_devnode::{Chain, Config, Devnode, TxRequest};
use serde_json::{json, Value};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// First account of the test mnemonic, which anvil funds too.
const KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const CHAIN_ID: u64 = 412_346;

/// Adds the first word of the calldata to slot 0 and emits the sum: a counter, in EVM code.
const EVM_COUNTER: &[u8] = &hex!("600054 600035 01 80600055 600052 60206000a0 00");
/// The same as a Stylus program, compiled: the sum is of the lowest 8 bytes. Its text stands in the test below.
const STYLUS_COUNTER: &[u8] = &hex!(
    "0061736d0100000001150460017f0060027f7f0060037f7f7f0060017f017f028a010508766d5f686f6f6b7309726561645f"
    "61726773000008766d5f686f6f6b731473746f726167655f6c6f61645f62797465733332000108766d5f686f6f6b73157374"
    "6f726167655f63616368655f62797465733332000108766d5f686f6f6b731373746f726167655f666c7573685f6361636865"
    "000008766d5f686f6f6b7308656d69745f6c6f67000203020103050401010101071c02066d656d6f727902000f757365725f"
    "656e747279706f696e7400050a3701350041201000410041c000100141c00041c00029030041202903007c370300410041c0"
    "0010024100100341c00041204100100441000b"
);

fn main() -> Result<()> {
    let count: u64 = match std::env::args().nth(1) {
        Some(n) => n.parse()?,
        None => 5_000,
    };
    let key: PrivateKeySigner = KEY.parse()?;
    let word = B256::with_last_byte(1);

    // Start-up.
    let begin = Instant::now();
    let node = Devnode::start(Config::default())?;
    Rpc::connect(&node.address().to_string())?.call("eth_chainId", json!([]))?;
    let library_start = begin.elapsed();
    drop(node);
    let program_start = start_of_program()?;

    // In process.
    let bench = |history: History| -> Result<Vec<(&'static str, f64, f64)>> {
        let chain = Chain::new(chain::Config { history, ..chain::Config::default() })?;
        let from = chain.accounts()[0];
        let evm = deploy(&chain, from, EVM_COUNTER)?;
        let stylus = deploy(&chain, from, &deployed_code(STYLUS_COUNTER))?;
        activate(&chain, from, stylus)?;
        let mut rows = Vec::new();
        for (name, to, data) in [
            ("transfer", Address::repeat_byte(0xaa), Bytes::new()),
            ("EVM call", evm, Bytes::from(word)),
            ("Stylus call", stylus, Bytes::from(word)),
        ] {
            let request = TxRequest::default().from(from).to(to).gas_limit(200_000).input(TransactionInput::new(data));
            let before = resident(std::process::id());
            let begin = Instant::now();
            for _ in 0..count {
                let mined = chain.send(request.clone().value(U256::ZERO))?;
                if !mined.ok() {
                    return Err(format!("{name} failed: {:?}", mined.outcome.status).into());
                }
            }
            let rate = count as f64 / begin.elapsed().as_secs_f64();
            let grown = resident(std::process::id()).saturating_sub(before) as f64 / count as f64;
            rows.push((name, rate, grown));
        }
        Ok(rows)
    };
    let lean = bench(History::NONE)?;
    let full = bench(History::ALL)?;

    // Over JSON-RPC. Signing is done beforehand.
    let node = Devnode::start(Config::default())?;
    let chain = node.chain().clone();
    let stylus = deploy(&chain, chain.accounts()[0], &deployed_code(STYLUS_COUNTER))?;
    activate(&chain, chain.accounts()[0], stylus)?;
    let ours = over_rpc(&node.address().to_string(), &key, count, Some(stylus))?;
    drop(node);

    let anvil = match Anvil::start()? {
        Some(anvil) => {
            let before = resident(anvil.child.id());
            let rows = over_rpc(&anvil.address, &key, count, None)?;
            let sent = rows.iter().filter(|r| r.1.is_some()).count() as u64 * count;
            let grown = resident(anvil.child.id()).saturating_sub(before) as f64 / sent as f64;
            Some((rows, anvil.started, grown))
        }
        None => None,
    };

    println!("{count} transactions each, {} CPUs", std::thread::available_parallelism()?);
    println!();
    println!("| transactions per second | transfer | EVM call | Stylus call |");
    println!("| --- | --- | --- | --- |");
    let line = |name: &str, cells: [Option<f64>; 3]| {
        let cells = cells.map(|c| c.map_or("-".to_owned(), |c| format!("{c:.0}")));
        println!("| {name} | {} |", cells.join(" | "));
    };
    line("in process, nothing of the past kept", [0, 1, 2].map(|i| Some(lean[i].1)));
    line("in process, every block and state kept", [0, 1, 2].map(|i| Some(full[i].1)));
    line("JSON-RPC, one connection", [0, 1, 2].map(|i| ours[i].1));
    line("JSON-RPC, one connection, receipt asked for after each", [0, 1, 2].map(|i| ours[i].2));
    if let Some((rows, ..)) = &anvil {
        line("anvil, one connection", [0, 1, 2].map(|i| rows[i].1));
        line("anvil, one connection, receipt asked for after each", [0, 1, 2].map(|i| rows[i].2));
    }
    println!();
    println!("| | muster-devnode | anvil |");
    println!("| --- | --- | --- |");
    let ms = |d: Duration| format!("{} ms", d.as_millis());
    println!(
        "| start to first answer, as a program | {} | {} |",
        program_start.map_or("- (build the binary first)".into(), ms),
        anvil.as_ref().map_or("-".into(), |a| ms(a.1))
    );
    println!("| start to first answer, in process | {} | |", ms(library_start));
    println!(
        "| bytes of memory kept per transaction (transfer, EVM, Stylus), no history | {} | |",
        lean.iter().map(|r| format!("{:.0}", r.2)).collect::<Vec<_>>().join(", ")
    );
    println!(
        "| the same with full history | {} | {} |",
        full.iter().map(|r| format!("{:.0}", r.2)).collect::<Vec<_>>().join(", "),
        anvil.as_ref().map_or("-".into(), |a| format!("{:.0} on average", a.2))
    );
    if anvil.is_none() {
        println!("\nanvil was not found: npm ci in test/clients, or set ANVIL");
    }
    Ok(())
}

fn init_code(code: &[u8]) -> Vec<u8> {
    let [high, low] = (code.len() as u16).to_be_bytes();
    // PUSH2 length DUP1 PUSH1 10 RETURNDATASIZE CODECOPY RETURNDATASIZE RETURN
    let mut init = vec![0x61, high, low, 0x80, 0x60, 0x0a, 0x3d, 0x39, 0x3d, 0xf3];
    init.extend_from_slice(code);
    init
}

fn deploy(chain: &Chain, from: Address, code: &[u8]) -> Result<Address> {
    let input = TransactionInput::new(init_code(code).into());
    let mined = chain.send(TxRequest::default().from(from).input(input))?;
    mined.outcome.created.filter(|_| mined.outcome.output.len() == code.len()).ok_or("deployment failed".into())
}

fn activate(chain: &Chain, from: Address, program: Address) -> Result<()> {
    // activateProgram(address)
    let data = [&hex!("58c780c2")[..], B256::left_padding_from(program.as_slice()).as_slice()].concat();
    let request = TxRequest::default()
        .from(from)
        .to(Address::with_last_byte(0x71))
        .value(U256::from(10u128.pow(18)))
        .input(TransactionInput::new(data.into()));
    let mined = chain.send(request)?;
    if mined.ok() {
        Ok(())
    } else {
        Err(format!("activation failed: {:?}", mined.outcome.status).into())
    }
}

/// Rates without and with asking for each receipt, for transfers, EVM calls, and Stylus calls if there is a program.
#[allow(clippy::type_complexity)]
fn over_rpc(
    address: &str,
    key: &PrivateKeySigner,
    count: u64,
    stylus: Option<Address>,
) -> Result<Vec<(&'static str, Option<f64>, Option<f64>)>> {
    let mut rpc = Rpc::connect(address)?;
    let count = count.min(5_000);
    let me = key.address();
    let nonce = |rpc: &mut Rpc| -> Result<u64> {
        let value = rpc.call("eth_getTransactionCount", json!([me, "latest"]))?;
        Ok(u64::from_str_radix(value.as_str().unwrap_or_default().trim_start_matches("0x"), 16)?)
    };
    let sign = |nonce: u64, to: TxKind, input: Bytes| -> Result<String> {
        let tx = TxEip1559 {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit: if to.is_create() { 1_000_000 } else { 200_000 },
            max_fee_per_gas: 3_000_000_000,
            max_priority_fee_per_gas: 0,
            to,
            input,
            ..Default::default()
        };
        let signature = key.sign_hash_sync(&tx.signature_hash())?;
        Ok(hex::encode_prefixed(TxEnvelope::from(tx.into_signed(signature)).encoded_2718()))
    };
    let first = nonce(&mut rpc)?;
    rpc.call("eth_sendRawTransaction", json!([sign(first, TxKind::Create, init_code(EVM_COUNTER).into())?]))?;
    let evm = me.create(first);
    let word = Bytes::from(B256::with_last_byte(1));
    let mut rows = Vec::new();
    for (name, to, data) in [
        ("transfer", Some(Address::repeat_byte(0xbb)), Bytes::new()),
        ("EVM call", Some(evm), word.clone()),
        ("Stylus call", stylus, word),
    ] {
        let Some(to) = to else {
            rows.push((name, None, None));
            continue;
        };
        let mut rates = [0.0; 2];
        for (rate, receipts) in rates.iter_mut().zip([false, true]) {
            let first = nonce(&mut rpc)?;
            let signed: Vec<String> =
                (0..count).map(|i| sign(first + i, to.into(), data.clone())).collect::<Result<_>>()?;
            let begin = Instant::now();
            for raw in &signed {
                let hash = rpc.call("eth_sendRawTransaction", json!([raw]))?;
                // anvil answers before it has mined.
                while receipts && rpc.call("eth_getTransactionReceipt", json!([hash]))?.is_null() {}
            }
            while nonce(&mut rpc)? < first + count {}
            *rate = count as f64 / begin.elapsed().as_secs_f64();
        }
        rows.push((name, Some(rates[0]), Some(rates[1])));
    }
    // What was sent did what it should.
    if let Some(program) = stylus {
        let slot = rpc.call("eth_getStorageAt", json!([program, "0x0", "latest"]))?;
        if slot == json!(B256::ZERO) {
            return Err("the Stylus counter did not count".into());
        }
    }
    Ok(rows)
}

/// JSON-RPC over one kept HTTP connection, with as little as possible around it.
struct Rpc {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Rpc {
    fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), host: address.to_owned() })
    }

    fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        write!(
            self.stream.get_mut(),
            "POST / HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        )?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err("the node closed the connection".into());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        let mut answer: Value = serde_json::from_slice(&body)?;
        match answer.get("error") {
            Some(error) => Err(format!("{method}: {error}").into()),
            None => Ok(answer["result"].take()),
        }
    }
}

/// Memory a process holds, in bytes; 0 where /proc does not tell.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) * 1_024
}

/// Time from starting the program to its first answer. `None` if the binary has not been built.
fn start_of_program() -> Result<Option<Duration>> {
    let binary = std::env::current_exe()?.with_file_name("muster-devnode");
    if !binary.exists() {
        return Ok(None);
    }
    let begin = Instant::now();
    let mut child = Command::new(binary).args(["--port", "0"]).stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().ok_or("no output")?;
    let mut elapsed = None;
    for line in BufReader::new(stdout).lines() {
        if let Some(rest) = line?.strip_prefix("Listening on http://") {
            let address = rest.split_whitespace().next().unwrap_or_default();
            Rpc::connect(address)?.call("eth_chainId", json!([]))?;
            elapsed = Some(begin.elapsed());
            break;
        }
    }
    child.kill()?;
    child.wait()?;
    Ok(elapsed)
}

struct Anvil {
    child: Child,
    address: String,
    started: Duration,
}

impl Anvil {
    fn start() -> Result<Option<Self>> {
        let packages = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../clients/node_modules/@foundry-rs");
        let packaged = std::fs::read_dir(packages).into_iter().flatten().flatten().find_map(|entry| {
            let binary = entry.path().join("bin/anvil");
            (entry.file_name().to_string_lossy().starts_with("anvil-") && binary.exists()).then_some(binary)
        });
        let Some(binary) = std::env::var_os("ANVIL").map(PathBuf::from).or(packaged) else { return Ok(None) };
        // The port must be known beforehand: one that was free a moment ago.
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let begin = Instant::now();
        let child = Command::new(binary)
            .args(["--port", &port.to_string(), "--chain-id", &CHAIN_ID.to_string(), "--silent"])
            .stdout(Stdio::null())
            .spawn()?;
        let mut anvil = Self { child, address, started: Duration::ZERO };
        while anvil.started.is_zero() {
            if begin.elapsed() > Duration::from_secs(20) {
                return Err("anvil did not start".into());
            }
            match Rpc::connect(&anvil.address).and_then(|mut rpc| rpc.call("eth_chainId", json!([]))) {
                Ok(_) => anvil.started = begin.elapsed(),
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        }
        Ok(Some(anvil))
    }
}

impl Drop for Anvil {
    fn drop(&mut self) {
        // It may have gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    /// The source of the program.
    const TEXT: &str = r#"(module
    (import "vm_hooks" "read_args" (func $read_args (param i32)))
    (import "vm_hooks" "storage_load_bytes32" (func $load (param i32 i32)))
    (import "vm_hooks" "storage_cache_bytes32" (func $store (param i32 i32)))
    (import "vm_hooks" "storage_flush_cache" (func $flush (param i32)))
    (import "vm_hooks" "emit_log" (func $log (param i32 i32 i32)))
    (memory (export "memory") 1 1)
    (func (export "user_entrypoint") (param $len i32) (result i32)
        (call $read_args (i32.const 32))
        (call $load (i32.const 0) (i32.const 64))
        (i64.store (i32.const 64) (i64.add (i64.load (i32.const 64)) (i64.load (i32.const 32))))
        (call $store (i32.const 0) (i32.const 64))
        (call $flush (i32.const 0))
        (call $log (i32.const 64) (i32.const 32) (i32.const 0))
        (i32.const 0)))"#;

    #[test]
    fn the_program_is_what_its_text_says() {
        // The text's names end up in a section of their own, after the program.
        assert!(wat::parse_str(TEXT).unwrap().starts_with(super::STYLUS_COUNTER));
    }
}
