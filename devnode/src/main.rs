//! `muster-devnode`: the node as a program, and `muster-devnode gas`.

mod gas;

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use alloy_primitives::{hex, utils::parse_ether};
use clap::{Parser, Subcommand};
use muster_devnode::chain::{self, Clock, History, TEST_MNEMONIC};
use muster_devnode::node::{CLIENT_VERSION, DEFAULT_PORT};
use muster_devnode::{Config, Devnode};

/// A local Arbitrum Stylus node without Docker: EVM code and activated WASM programs behind Ethereum JSON-RPC
/// (HTTP and WebSocket on one port). Every transaction is mined at once.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// Port to listen on; 0 takes any free one
    #[arg(long, default_value_t = DEFAULT_PORT)]
    port: u16,
    /// EIP-155 chain id
    #[arg(long, default_value_t = 412_346)]
    chain_id: u64,
    /// Funded accounts derived from the test mnemonic, besides the Nitro development account
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(..=1_000))]
    accounts: u32,
    /// Ether each account begins with
    #[arg(long, default_value = "1000000")]
    balance: String,
    /// ArbOS version whose rules apply
    #[arg(long, default_value_t = 61)]
    arbos_version: u64,
    /// Wei per gas; it does not move
    #[arg(long, default_value_t = 100_000_000)]
    base_fee: u64,
    /// Begin at this second and let time pass only when told to (evm_increaseTime and its like)
    #[arg(long, value_name = "SECONDS")]
    manual_time: Option<u64>,
    /// Past states kept for calls, reads and traces on old blocks
    #[arg(long, value_name = "BLOCKS", default_value_t = History::DEFAULT.states)]
    history: usize,
    /// Keep the chain in this file, and go on with what is there. A log beside it (FILE.log) loses nothing when the
    /// node is killed
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// What web3_clientVersion answers; Hardhat's network helpers want it to begin with anvil or HardhatNetwork
    #[arg(long, value_name = "TEXT", default_value = CLIENT_VERSION)]
    client_version: String,
    /// Put the root of the state into headers, so that eth_getProof can be checked against them; blocks then take
    /// longer the larger the state is
    #[arg(long)]
    state_root: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    silent: bool,
}

/// What else the program does.
#[derive(Subcommand)]
enum Command {
    Gas(gas::Args),
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.command {
        Some(Command::Gas(args)) => gas::run(args),
        None => run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("muster-devnode: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), String> {
    let balance = parse_ether(&args.balance).map_err(|e| format!("--balance {}: {e}", args.balance))?;
    let config = Config {
        host: args.host,
        port: args.port,
        chain: chain::Config {
            chain_id: args.chain_id,
            arbos_version: args.arbos_version,
            accounts: args.accounts,
            balance,
            base_fee: args.base_fee,
            clock: args.manual_time.map_or(Clock::System, Clock::Manual),
            history: History { blocks: usize::MAX, states: args.history },
            state_root: args.state_root,
        },
        state: args.state.clone(),
        client_version: args.client_version.clone(),
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| format!("can't start the runtime: {e}"))?;
    runtime.block_on(async {
        // Before anything is printed: whoever reads the address may signal at once.
        let stop = stop_signal().map_err(|e| format!("can't listen for signals: {e}"))?;
        let node = Devnode::start(config).map_err(|e| e.to_string())?;
        if !args.silent {
            greet(&node, args);
        }
        stop.await;
        node.stop();
        Ok(())
    })
}

/// Resolves on SIGINT or SIGTERM.
#[cfg(unix)]
fn stop_signal() -> std::io::Result<impl std::future::Future<Output = ()>> {
    use tokio::signal::unix::{signal, SignalKind};
    let (mut int, mut term) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
        }
    })
}

/// Resolves on Ctrl-C.
#[cfg(not(unix))]
fn stop_signal() -> std::io::Result<impl std::future::Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}

fn greet(node: &Devnode, args: &Args) {
    let chain = node.chain();
    println!("muster-devnode {}", env!("CARGO_PKG_VERSION"));
    println!();
    println!("Accounts, {} ETH each", args.balance);
    for account in chain.accounts() {
        if let Some(key) = chain.signer(*account) {
            println!("  {account}  {}", hex::encode_prefixed(key.to_bytes()));
        }
    }
    println!();
    println!("The first is the Nitro development account, the others are those of \"{TEST_MNEMONIC}\".");
    println!("THESE KEYS ARE PUBLIC. Whatever is sent to them on a real network is lost.");
    println!();
    println!("Chain id {}, ArbOS {}, base fee {} wei", args.chain_id, args.arbos_version, args.base_fee);
    println!("Listening on {} and {}", node.url(), node.ws_url());
}
