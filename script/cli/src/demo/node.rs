//! The node it all happens on: its own, or the one that RPC_URL names.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use anyhow::{bail, Context, Result};
use muster_client::Sender;

use crate::{
    chain::{wallet, Chain},
    environment::variable,
};

/// The public key of every nitro development chain.
const DEVELOPMENT_KEY: &str = "0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659";
/// The chain id of nitro's development chains and of muster-devnode.
const DEVELOPMENT_CHAIN: u64 = 412_346;
/// When time begins on the node that the demonstration starts itself, so that every run is the same.
const BEGINNING: u64 = 1_700_000_000;

/// A node, and the account that pays there.
pub struct Endpoint {
    pub chain: Chain,
    pub keeper: Sender,
    /// The node, if it is our own.
    pub own: Option<Devnode>,
}

impl Endpoint {
    /// Connects to RPC_URL, or starts a node whose time is set if that is wanted.
    pub async fn open(travels: bool) -> Result<Self> {
        let (url, own) = match variable("RPC_URL") {
            Some(url) => (url, None),
            None => {
                let (url, guard) = Devnode::start(travels)?;
                (url, Some(guard))
            }
        };
        let chain = Chain::connect(&url).await?;
        let key = match variable("PRIVATE_KEY") {
            Some(key) => key,
            None if chain.id == DEVELOPMENT_CHAIN => DEVELOPMENT_KEY.into(),
            None => bail!("PRIVATE_KEY is not set: chain {} has no public development account to pay for this", chain.id),
        };
        let keeper = chain.account(wallet(&key)?).await?;
        Ok(Self { chain, keeper, own })
    }
}

/// A node of our own; ends with the demonstration.
pub struct Devnode(Child);

impl Drop for Devnode {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Devnode {
    /// The address it listens at, and the node.
    fn start(travels: bool) -> Result<(String, Self)> {
        let file = match variable("MUSTER_DEVNODE") {
            Some(file) => file.into(),
            None => std::env::current_exe()?.with_file_name("muster-devnode"),
        };
        let child = Command::new(&file)
            .args(["--port", "0", "--history", "64"])
            .args(travels.then(|| format!("--manual-time={BEGINNING}")))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}: run script/demo, which builds it, or set RPC_URL", file.display()))?;
        let mut node = Self(child);
        let output = BufReader::new(node.0.stdout.take().context("the devnode has no output")?);
        for line in output.lines() {
            if let Some(at) = line?.split_whitespace().find(|word| word.starts_with("http://")) {
                return Ok((at.to_string(), node));
            }
        }
        bail!("the devnode stopped before it listened (see above)")
    }
}
