//! The flags of every command.

use std::path::PathBuf;
use std::time::Duration;

use alloy::primitives::{Address, U256};
use clap::Args;
use muster_client::{parse_address, parse_amount, Place};

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Everywhere")]
pub struct Options {
    /// Nodes, separated by commas, the most trusted first [or: RPC_URL]
    #[arg(long, env = "ETH_RPC_URL", value_name = "URL", value_delimiter = ',', hide_env_values = true, global = true)]
    pub rpc_url: Vec<String>,
    /// Nodes over WebSocket, which speed up waiting for events
    #[arg(long, env = "ETH_WS_URL", value_name = "URL", value_delimiter = ',', hide_env_values = true, global = true)]
    pub ws_url: Vec<String>,
    /// The contract
    #[arg(long, env = "MUSTER", value_name = "ADDRESS", value_parser = address, global = true)]
    pub muster: Option<Address>,
    /// Refuse to talk to another chain
    #[arg(long, env = "CHAIN_ID", value_name = "NUMBER", global = true)]
    pub chain: Option<u64>,
    /// The key of this name, made by `muster account new` [without any: PRIVATE_KEY in the environment]
    #[arg(long, env = "ETH_KEYSTORE_ACCOUNT", value_name = "NAME", global = true)]
    pub account: Option<String>,
    /// A key in an encrypted file (Web3 Secret Storage), as geth and cast make them
    #[arg(long, env = "ETH_KEYSTORE", value_name = "FILE", global = true)]
    pub keystore: Option<PathBuf>,
    /// A key outside this process: `ledger`, `ledger:PATH`, `aws:KEY`, `gcp:VERSION`, or the URL of a signer such as Web3Signer, with
    /// #ADDRESS behind it if that has several accounts
    #[arg(long, env = "MUSTER_SIGNER", value_name = "PLACE", hide_env_values = true, global = true)]
    pub signer: Option<Place>,
    /// The file with the key's password; without it the password is asked for
    #[arg(long, env = "ETH_PASSWORD", value_name = "FILE", global = true)]
    pub password_file: Option<PathBuf>,
    /// Where keys and open transactions are kept [default: .muster in the home directory]
    #[arg(long, env = "MUSTER_HOME", value_name = "DIRECTORY", global = true)]
    pub home: Option<PathBuf>,
    /// Pay at most this for a unit of gas
    #[arg(long, value_name = "AMOUNT", value_parser = amount, global = true)]
    pub max_gas_price: Option<U256>,
    /// Seconds to wait for a transaction
    #[arg(long, value_name = "SECONDS", default_value_t = 120, global = true)]
    pub wait: u64,
    /// Print JSON: one object, or one a line while a command goes on. Amounts are wei, as strings
    #[arg(long, global = true)]
    pub json: bool,
    /// The log's lines on standard error: a level, or levels by module
    #[arg(long, env = "MUSTER_LOG", value_name = "FILTER", default_value = "info", global = true)]
    pub log: String,
    /// The log as JSON, an object a line
    #[arg(long, env = "MUSTER_LOG_JSON", global = true)]
    pub log_json: bool,
    /// Send nothing; print the call and its cost, or why it would be refused
    #[arg(long, global = true)]
    pub dry_run: bool,
}

impl Options {
    /// The directory of keys and open transactions.
    pub fn home(&self) -> PathBuf {
        let home = || std::env::home_dir().unwrap_or_default().join(".muster");
        self.home.clone().unwrap_or_else(home)
    }

    /// How long a transaction is waited for.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.wait)
    }
}

/// An address as people write it.
pub fn address(text: &str) -> Result<Address, String> {
    parse_address(text).map_err(|error| error.to_string())
}

/// An amount as people write it.
pub fn amount(text: &str) -> Result<U256, String> {
    parse_amount(text).map_err(|error| error.to_string())
}
