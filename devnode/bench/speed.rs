//! How fast the node is, in process and over JSON-RPC on one connection, with anvil beside it on the same
//! transactions in the same run: `script/bench node`.
//!
//! anvil is looked for in `ANVIL`, then among the packages of the project and of `test/clients`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use alloy_consensus::{SignableTransaction, TxEip1559, TxEnvelope};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{hex, Address, Bytes, TxKind, B256, U256};
use alloy_rpc_types_eth::TransactionInput;
use alloy_signer::SignerSync;
use alloy_signer_local::PrivateKeySigner;
use clap::Parser;
use muster_devnode::chain::{self, History};
use muster_devnode::stylus::deployed_code;
use muster_devnode::{Chain, TxRequest};
use serde_json::{json, Value};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// First account of the test mnemonic, which anvil funds too.
const KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const CHAIN_ID: u64 = 412_346;

/// Adds the first word of the calldata to slot 0 and emits the sum: a counter, in EVM code.
const EVM_COUNTER: &[u8] = &hex!("600054 600035 01 80600055 600052 60206000a0 00");
/// The same as a Stylus program, compiled: the sum is of the first 8 bytes, least significant first. Its text stands in
/// the test below.
const STYLUS_COUNTER: &[u8] = &hex!(
    "0061736d0100000001150460017f0060027f7f0060037f7f7f0060017f017f028a010508766d5f686f6f6b7309726561645f"
    "61726773000008766d5f686f6f6b731473746f726167655f6c6f61645f62797465733332000108766d5f686f6f6b73157374"
    "6f726167655f63616368655f62797465733332000108766d5f686f6f6b731373746f726167655f666c7573685f6361636865"
    "000008766d5f686f6f6b7308656d69745f6c6f67000203020103050401010101071c02066d656d6f727902000f757365725f"
    "656e747279706f696e7400050a3701350041201000410041c000100141c00041c00029030041202903007c370300410041c0"
    "0010024100100341c00041204100100441000b"
);

/// Measures the node, and anvil on the same plain EVM transactions.
#[derive(Parser)]
struct Args {
    /// Transactions of each kind
    #[arg(long, default_value_t = 5_000)]
    count: u64,
    /// Put the tables between the markers of this page
    #[arg(long, value_name = "PAGE")]
    write: Option<PathBuf>,
}

/// The page's markers.
const BEGIN: &str = "<!-- script/bench node writes from here -->";
const END: &str = "<!-- to here -->";

/// Transactions per second that the node must reach, and how soon it must answer.
const STYLUS_IN_PROCESS: f64 = 2_000.0;
const STYLUS_OVER_RPC: f64 = 300.0;
const START: Duration = Duration::from_secs(1);
/// Parts of the long run.
const PARTS: u64 = 5;

/// One, as each of the counters reads it.
const EVM_ONE: B256 = B256::with_last_byte(1);
const STYLUS_ONE: B256 = {
    let mut one = [0; 32];
    one[0] = 1;
    B256::new(one)
};

const KINDS: [&str; 3] = ["transfer", "EVM call", "Stylus call"];

fn main() -> Result<()> {
    let args = Args::parse();
    let count = args.count;
    let key: PrivateKeySigner = KEY.parse()?;
    // Other processes take their share of the figures, unless they are less urgent.
    let field = |file: &str, n: usize| -> Option<String> {
        Some(std::fs::read_to_string(file).ok()?.split_whitespace().nth(n)?.to_owned())
    };
    let (load, nice) = (field("/proc/loadavg", 0), field("/proc/self/stat", 18));
    let load = format!("load average {} before it began, nice {}", load.unwrap_or_default(), nice.unwrap_or_default());

    eprintln!("start-up");
    // Examples lie in a folder of their own, beside the programs.
    let folder = std::env::current_exe()?.with_file_name("..");
    let node = Node::start(&folder.join("muster-devnode"))?;
    let anvil = anvil().map(|binary| Node::start(&binary)).transpose()?;

    // First, while this process holds nothing that could be used again.
    eprintln!("in process, two long runs of {} Stylus calls", PARTS * count);
    let long = [long_run(History::NONE, count)?, long_run(History::DEFAULT, count)?];
    eprintln!("in process, {count} of each kind, with and without the past");
    let lean = in_process(History::NONE, count)?;
    let kept = in_process(History::DEFAULT, count)?;

    eprintln!("over JSON-RPC, {} of each kind, twice", count.min(MOST_OVER_RPC));
    let ours = over_rpc(&node, &key, count, true)?;
    let theirs = match &anvil {
        Some(anvil) => {
            eprintln!("anvil, the same but for the Stylus calls");
            Some((over_rpc(anvil, &key, count, false)?, anvil.started))
        }
        None => {
            eprintln!("anvil was not found: script/setup, or set ANVIL");
            None
        }
    };

    let page = page(count, &load, node.started, &lean, &kept, &long, &ours, theirs.as_ref())?;
    println!("{page}");
    if let Some(file) = &args.write {
        let text = std::fs::read_to_string(file)?;
        let (before, rest) = text.split_once(BEGIN).ok_or("the page has no markers")?;
        let (_, after) = rest.split_once(END).ok_or("the page has no closing marker")?;
        std::fs::write(file, format!("{before}{BEGIN}\n{page}\n{END}{after}"))?;
        eprintln!("written to {}", file.display());
    }

    let missed: Vec<&str> = [
        (lean[2].rate >= STYLUS_IN_PROCESS && kept[2].rate >= STYLUS_IN_PROCESS, "Stylus calls in process"),
        (ours[2].is_some_and(|r| r.rate >= STYLUS_OVER_RPC), "Stylus calls over JSON-RPC"),
        (node.started <= START, "start-up"),
    ]
    .into_iter()
    .filter_map(|(reached, what)| (!reached).then_some(what))
    .collect();
    if !missed.is_empty() {
        return Err(format!("goals missed: {}", missed.join(", ")).into());
    }
    Ok(())
}

/// Transactions of one kind.
#[derive(Clone, Copy)]
struct Measured {
    /// Per second.
    rate: f64,
    /// The same when each receipt was asked for; 0 in process.
    with_receipt: f64,
    /// Bytes by which the process grew, per transaction.
    grown: f64,
}

fn in_process(history: History, count: u64) -> Result<Vec<Measured>> {
    let chain = Chain::new(chain::Config { history, ..chain::Config::default() })?;
    let from = chain.accounts()[0];
    let evm = deploy(&chain, from, EVM_COUNTER)?;
    let stylus = deploy(&chain, from, &deployed_code(STYLUS_COUNTER))?;
    activate(&chain, from, stylus)?;
    [(Address::repeat_byte(0xaa), Bytes::new()), (evm, EVM_ONE.into()), (stylus, STYLUS_ONE.into())]
        .into_iter()
        .map(|(to, data)| send_all(&chain, to, data, count))
        .collect()
}

/// The same Stylus call again and again: the time and memory of each part.
fn long_run(history: History, count: u64) -> Result<Vec<(Measured, u64)>> {
    let chain = Chain::new(chain::Config { history, ..chain::Config::default() })?;
    let stylus = deploy(&chain, chain.accounts()[0], &deployed_code(STYLUS_COUNTER))?;
    activate(&chain, chain.accounts()[0], stylus)?;
    (0..PARTS).map(|_| Ok((send_all(&chain, stylus, STYLUS_ONE.into(), count)?, resident(std::process::id())))).collect()
}

fn send_all(chain: &Chain, to: Address, data: Bytes, count: u64) -> Result<Measured> {
    let request = TxRequest::default().from(chain.accounts()[0]).to(to).gas_limit(200_000).input(TransactionInput::new(data));
    let before = resident(std::process::id());
    let begin = Instant::now();
    for _ in 0..count {
        let mined = chain.send(request.clone().value(U256::ZERO))?;
        if !mined.ok() {
            return Err(format!("a transaction failed: {:?}", mined.outcome.status).into());
        }
    }
    let rate = count as f64 / begin.elapsed().as_secs_f64();
    let grown = resident(std::process::id()).saturating_sub(before) as f64 / count as f64;
    Ok(Measured { rate, with_receipt: 0.0, grown })
}

#[allow(clippy::too_many_arguments)]
fn page(
    count: u64,
    load: &str,
    started: Duration,
    lean: &[Measured],
    kept: &[Measured],
    long: &[Vec<(Measured, u64)>; 2],
    ours: &[Option<Measured>],
    theirs: Option<&(Vec<Option<Measured>>, Duration)>,
) -> Result<String> {
    let rpc = count.min(MOST_OVER_RPC);
    let mut page = format!(
        "Made by `script/bench node`: {} build, {} CPUs, {load},\n\
         {count} transactions of each kind in process and {rpc} over JSON-RPC. Transactions per second, one after the other:\n\n\
         | | goal, Stylus | {} |\n| --- | ---: | ---: | ---: | ---: |\n",
        if cfg!(debug_assertions) { "development" } else { "optimised" },
        std::thread::available_parallelism()?,
        KINDS.join(" | ")
    );
    let mut line = |name: &str, goal: Option<f64>, cells: [Option<f64>; 3]| {
        let number = |n: Option<f64>| n.map_or_else(String::new, |n| format!("{n:.0}"));
        page += &format!("| {name} | {} | {} |\n", number(goal), cells.map(number).join(" | "));
    };
    line("in process, nothing of the past kept", Some(STYLUS_IN_PROCESS), [0, 1, 2].map(|i| Some(lean[i].rate)));
    line("in process, blocks and 10,000 states kept", Some(STYLUS_IN_PROCESS), [0, 1, 2].map(|i| Some(kept[i].rate)));
    line("JSON-RPC, one connection", Some(STYLUS_OVER_RPC), [0, 1, 2].map(|i| ours[i].map(|r| r.rate)));
    line("JSON-RPC, and the receipt of each", Some(STYLUS_OVER_RPC), [0, 1, 2].map(|i| ours[i].map(|r| r.with_receipt)));
    if let Some((rows, _)) = theirs {
        line("anvil, one connection", None, [0, 1, 2].map(|i| rows[i].map(|r| r.rate)));
        line("anvil, and the receipt of each", None, [0, 1, 2].map(|i| rows[i].map(|r| r.with_receipt)));
    }
    let ms = |d: Duration| format!("{} ms", d.as_millis());
    let bytes = |n: f64| format!("{n:.0} B");
    page += "\nFrom starting the program to its first answer, and memory the program took per transaction over JSON-RPC:\n\n\
             | | goal | muster-devnode | anvil |\n| --- | ---: | ---: | ---: |\n";
    let beside = |cell: Option<String>| cell.unwrap_or_default();
    page += &format!("| start-up | {} | {} | {} |\n", ms(START), ms(started), beside(theirs.map(|t| ms(t.1))));
    for (i, kind) in KINDS.iter().enumerate() {
        let grown = |rows: &[Option<Measured>]| rows[i].map(|r| bytes(r.grown));
        let (mine, other) = (beside(grown(ours)), beside(theirs.and_then(|t| grown(&t.0))));
        page += &format!("| {kind} | | {mine} | {other} |\n");
    }
    page += &format!(
        "\nA long run of {} Stylus calls in process. Where nothing of the past is kept, what grows is state: the history\n\
         contract (EIP-2935) holds the hash of every block. By default blocks, receipts and logs are kept as well, and the\n\
         last 10,000 states.\n\n\
         | transactions | nothing kept: per second | memory held | grown per transaction | default: per second | \
         memory held | grown per transaction |\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        PARTS * count
    );
    let cells = |(measured, held): &(Measured, u64)| {
        format!("{:.0} | {:.1} MiB | {}", measured.rate, *held as f64 / f64::from(1 << 20), bytes(measured.grown))
    };
    for (part, (none, default)) in long[0].iter().zip(&long[1]).enumerate() {
        page += &format!("| {} | {} | {} |\n", (part as u64 + 1) * count, cells(none), cells(default));
    }
    Ok(page.trim_end().to_owned())
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

const ARB_WASM: Address = Address::with_last_byte(0x71);
/// More than any activation here costs; the rest comes back.
const ONE_ETHER: u128 = 10u128.pow(18);

/// Calldata of activateProgram(address).
fn activation(program: Address) -> Vec<u8> {
    [&hex!("58c780c2")[..], B256::left_padding_from(program.as_slice()).as_slice()].concat()
}

fn activate(chain: &Chain, from: Address, program: Address) -> Result<()> {
    let input = TransactionInput::new(activation(program).into());
    let request = TxRequest::default().from(from).to(ARB_WASM).value(U256::from(ONE_ETHER)).input(input);
    let mined = chain.send(request)?;
    if mined.ok() {
        Ok(())
    } else {
        Err(format!("activation failed: {:?}", mined.outcome.status).into())
    }
}

/// More would only take longer: anvil slows down as its chain grows.
const MOST_OVER_RPC: u64 = 1_000;

/// Transfers, EVM calls, and Stylus calls if there is a program, without and with asking for each receipt.
fn over_rpc(node: &Node, key: &PrivateKeySigner, count: u64, stylus: bool) -> Result<Vec<Option<Measured>>> {
    let mut rpc = Rpc::connect(&node.address)?;
    let count = count.min(MOST_OVER_RPC);
    let me = key.address();
    let nonce = |rpc: &mut Rpc| -> Result<u64> {
        let value = rpc.call("eth_getTransactionCount", json!([me, "latest"]))?;
        Ok(u64::from_str_radix(value.as_str().unwrap_or_default().trim_start_matches("0x"), 16)?)
    };
    let sign = |nonce: u64, gas_limit: u64, to: TxKind, value: u128, input: Bytes| -> Result<String> {
        let tx = TxEip1559 {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit,
            max_fee_per_gas: 3_000_000_000,
            max_priority_fee_per_gas: 0,
            to,
            value: U256::from(value),
            input,
            ..Default::default()
        };
        let signature = key.sign_hash_sync(&tx.signature_hash())?;
        Ok(hex::encode_prefixed(TxEnvelope::from(tx.into_signed(signature)).encoded_2718()))
    };
    let mut set_up = |to: TxKind, value: u128, input: Vec<u8>| -> Result<Address> {
        let nonce = nonce(&mut rpc)?;
        let hash = rpc.call("eth_sendRawTransaction", json!([sign(nonce, 20_000_000, to, value, input.into())?]))?;
        let receipt = loop {
            let receipt = rpc.call("eth_getTransactionReceipt", json!([hash]))?;
            if !receipt.is_null() {
                break receipt;
            }
        };
        if receipt["status"] != "0x1" {
            return Err(format!("set-up failed: {receipt}").into());
        }
        Ok(me.create(nonce))
    };
    let evm = set_up(TxKind::Create, 0, init_code(EVM_COUNTER))?;
    let stylus = if stylus {
        let program = set_up(TxKind::Create, 0, init_code(&deployed_code(STYLUS_COUNTER)))?;
        set_up(ARB_WASM.into(), ONE_ETHER, activation(program))?;
        Some(program)
    } else {
        None
    };
    let mut rows = Vec::new();
    let transfer = (Some(Address::repeat_byte(0xbb)), Bytes::new());
    for (to, data) in [transfer, (Some(evm), EVM_ONE.into()), (stylus, STYLUS_ONE.into())] {
        let Some(to) = to else {
            rows.push(None);
            continue;
        };
        let before = resident(node.child.id());
        let mut rates = [0.0; 2];
        for (rate, receipts) in rates.iter_mut().zip([false, true]) {
            let first = nonce(&mut rpc)?;
            let signed: Vec<String> =
                (0..count).map(|i| sign(first + i, 200_000, to.into(), 0, data.clone())).collect::<Result<_>>()?;
            let begin = Instant::now();
            for raw in &signed {
                let hash = rpc.call("eth_sendRawTransaction", json!([raw]))?;
                // anvil answers before it has mined.
                while receipts && rpc.call("eth_getTransactionReceipt", json!([hash]))?.is_null() {}
            }
            while nonce(&mut rpc)? < first + count {}
            *rate = count as f64 / begin.elapsed().as_secs_f64();
        }
        let grown = resident(node.child.id()).saturating_sub(before) as f64 / (2 * count) as f64;
        rows.push(Some(Measured { rate: rates[0], with_receipt: rates[1], grown }));
    }
    // The transactions did their work.
    let sent = 2 * count;
    let mut little = [0; 32];
    little[..8].copy_from_slice(&sent.to_le_bytes());
    let mut counters = vec![(evm, B256::from(U256::from(sent)))];
    counters.extend(stylus.map(|program| (program, B256::new(little))));
    for (counter, expected) in counters {
        let slot = rpc.call("eth_getStorageAt", json!([counter, "0x0", "latest"]))?;
        if slot != json!(expected) {
            return Err(format!("a counter holds {slot} after {sent} calls").into());
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

/// anvil's binary, if there is one.
fn anvil() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let packaged = || {
        [root.clone(), root.join("test/clients")].into_iter().find_map(|place| {
            std::fs::read_dir(place.join("node_modules/@foundry-rs")).ok()?.flatten().find_map(|entry| {
                let binary = entry.path().join("bin/anvil");
                (entry.file_name().to_string_lossy().starts_with("anvil-") && binary.exists()).then_some(binary)
            })
        })
    };
    std::env::var_os("ANVIL").map(PathBuf::from).or_else(packaged)
}

/// A node in a process of its own.
struct Node {
    child: Child,
    address: String,
    /// From starting it to its first answer.
    started: Duration,
}

impl Node {
    fn start(binary: &Path) -> Result<Self> {
        // The port must be known beforehand: one that was free a moment ago.
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let begin = Instant::now();
        let child = Command::new(binary)
            .args(["--port", &port.to_string(), "--chain-id", &CHAIN_ID.to_string(), "--silent"])
            .stdout(Stdio::null())
            .spawn()
            .map_err(|e| format!("{} does not start: {e}", binary.display()))?;
        let mut node = Self { child, address: format!("127.0.0.1:{port}"), started: Duration::ZERO };
        while node.started.is_zero() {
            if begin.elapsed() > Duration::from_secs(20) {
                return Err(format!("{} does not answer", binary.display()).into());
            }
            match Rpc::connect(&node.address).and_then(|mut rpc| rpc.call("eth_chainId", json!([]))) {
                Ok(_) => node.started = begin.elapsed(),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        Ok(node)
    }
}

impl Drop for Node {
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
