//! `muster-devnode`: the node as a program, and `muster-devnode gas`.

mod gas;

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{hex, utils::parse_ether};
use clap::{Parser, Subcommand};
use muster_devnode::chain::{self, Clock, History, TEST_MNEMONIC};
use muster_devnode::endpoint::{Endpoint, Settings};
use muster_devnode::fork::Fork;
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
    /// Go on from the state of another Arbitrum chain, read as needed through this JSON-RPC endpoint (URL, or URL@BLOCK)
    #[arg(long, short, value_name = "URL", visible_alias = "rpc-url", help_heading = "Fork")]
    fork_url: Option<String>,
    /// The block on whose state to go on; the newest by default
    #[arg(long, value_name = "BLOCK", requires = "fork_url", help_heading = "Fork")]
    fork_block_number: Option<u64>,
    /// A header for the endpoint; can be repeated
    #[arg(long = "fork-header", value_name = "NAME: VALUE", requires = "fork_url", help_heading = "Fork")]
    fork_headers: Vec<String>,
    /// Milliseconds that one answer of the endpoint may take
    #[arg(long, value_name = "MS", default_value_t = 45_000, requires = "fork_url", help_heading = "Fork")]
    timeout: u64,
    /// How often the endpoint is asked again after a limit of rate or a fault
    #[arg(long, value_name = "N", default_value_t = 5, requires = "fork_url", help_heading = "Fork")]
    retries: u32,
    /// Milliseconds before it is asked again, doubled each time
    #[arg(long, value_name = "MS", default_value_t = 1_000, requires = "fork_url", help_heading = "Fork")]
    fork_retry_backoff: u64,
    /// EIP-155 chain id; 412346 by default, or that of the other chain
    #[arg(long)]
    chain_id: Option<u64>,
    /// Funded accounts derived from the test mnemonic, besides the Nitro development account
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(..=1_000))]
    accounts: u32,
    /// Ether each account begins with
    #[arg(long, default_value = "1000000")]
    balance: String,
    /// ArbOS version whose rules apply; 61 by default, or that of the other chain
    #[arg(long)]
    arbos_version: Option<u64>,
    /// Wei per gas, which does not move; 100000000 by default, or that of the other chain's block
    #[arg(long)]
    base_fee: Option<u64>,
    /// Begin at this second and let time pass only when told to (evm_increaseTime and its like)
    #[arg(long, value_name = "SECONDS")]
    manual_time: Option<u64>,
    /// Past states kept for calls, reads and traces on old blocks
    #[arg(long, value_name = "BLOCKS", default_value_t = History::DEFAULT.states)]
    history: usize,
    /// Keep the chain in this file, and go on with what is there. A log beside it (FILE.log) loses nothing when the
    /// node is killed
    #[arg(long, value_name = "FILE", conflicts_with = "fork_url")]
    state: Option<PathBuf>,
    /// The answer of web3_clientVersion; Hardhat's network helpers want it to begin with anvil or HardhatNetwork
    #[arg(long, value_name = "TEXT", default_value = CLIENT_VERSION)]
    client_version: String,
    /// Put the root of the state into headers, so that eth_getProof can be checked against them; blocks then take
    /// longer the larger the state is
    #[arg(long, conflicts_with = "fork_url")]
    state_root: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    silent: bool,
}

/// The program's other commands.
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
    let basis = match &args.fork_url {
        Some(url) => chain::Config::of_fork(connect(args, url)?),
        None => chain::Config::default(),
    };
    let config = Config {
        host: args.host,
        port: args.port,
        chain: chain::Config {
            chain_id: args.chain_id.unwrap_or(basis.chain_id),
            arbos_version: args.arbos_version.unwrap_or(basis.arbos_version),
            accounts: args.accounts,
            balance,
            base_fee: args.base_fee.unwrap_or(basis.base_fee),
            clock: args.manual_time.map_or(Clock::System, Clock::Manual),
            history: History { blocks: usize::MAX, states: args.history },
            state_root: args.state_root,
            fork: basis.fork,
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
        // Before anything is printed: a reader of the address may signal at once.
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

/// Finds the chain to copy.
fn connect(args: &Args, url: &str) -> Result<Arc<Fork>, String> {
    let (url, block) = match url.rsplit_once('@').and_then(|(url, block)| Some((url, block.parse().ok()?))) {
        Some((url, block)) => (url, Some(block)),
        None => (url, None),
    };
    let endpoint = Endpoint::new(Settings {
        url: url.to_owned(),
        headers: args.fork_headers.clone(),
        timeout: Duration::from_millis(args.timeout),
        retries: args.retries,
        backoff: Duration::from_millis(args.fork_retry_backoff),
    })?;
    Fork::connect(endpoint, args.fork_block_number.or(block))
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
    if let Some(fork) = chain.fork() {
        println!("A copy of {} from block {} ({}) on, read as needed", fork.url(), fork.block_number(), fork.block_hash());
    }
    let config = chain.config();
    println!("Chain id {}, ArbOS {}, base fee {} wei", config.chain_id, config.arbos_version, config.base_fee);
    println!("Listening on {} and {}", node.url(), node.ws_url());
}
