//! A Muster of its own for each test, on a node in this process or on the one at RPC_URL.
//!
//! Deploying is cheap after the first time (equal programs are activated once), so every test has its own router and none must be alone on
//! its chain. Tests share the clock, hence they run one after another: [`World::new`] waits for its turn.

use std::path::PathBuf;
use std::sync::OnceLock;

use alloy::primitives::{keccak256, Address, U256};
use alloy::signers::local::PrivateKeySigner;
use alloy::sol_types::SolCall;
use muster_cli::chain::Chain;
use muster_cli::{build, deploy};
use muster_client::{Account, Done, Muster, Request};
use muster_devnode::chain::{Clock, NITRO_DEV_KEY};
use muster_devnode::{Config, Devnode};
use tokio::sync::{Mutex, MutexGuard};

/// Wei in a stake unit of stake.
pub const STAKE_UNIT: u64 = 1_000_000;
/// The least stake, in wei: little, so that a node at RPC_URL need not be rich.
pub const LEAST: u64 = 400 * STAKE_UNIT;
/// The ether that an actor is given to pay its transactions with, in wei.
const POCKET: u64 = 20_000_000_000_000_000;

/// Seconds before a proposed program or parameter takes effect.
pub const UPGRADE_DELAY: u32 = 2 * 86_400;

static TURN: Mutex<()> = Mutex::const_new(());
static NODE: OnceLock<Devnode> = OnceLock::new();

/// The node that RPC_URL names; without it tests have one of their own.
pub fn remote() -> Option<String> {
    std::env::var("RPC_URL").ok().filter(|url| !url.is_empty())
}

/// A node in this process.
pub fn embedded() -> Devnode {
    embedded_at(1_800_000_000)
}

/// The same, whose clock stands at this time.
pub fn embedded_at(seconds: u64) -> Devnode {
    let mut config = Config::default();
    // Stands still unless moved: every figure repeats exactly.
    config.chain.clock = Clock::Manual(seconds);
    Devnode::start(config).expect("the embedded node starts")
}

/// A node of another chain, for a program that must notice it.
pub fn stranger() -> Devnode {
    let mut config = Config::default();
    config.chain.chain_id = 1;
    Devnode::start(config).expect("another node starts")
}

/// The project's root.
pub fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A chain with a Muster on it.
pub struct World {
    _turn: MutexGuard<'static, ()>,
    /// The chain.
    pub chain: Chain,
    /// The contract.
    pub muster: Muster,
    /// The deployment.
    pub deployment: deploy::Deployment,
    /// Owner, treasury and payer.
    pub boss: Account,
    /// The payer's key.
    pub key: PrivateKeySigner,
    /// The embedded node; none with RPC_URL.
    pub node: Option<&'static Devnode>,
    salt: u128,
}

impl World {
    /// A fresh deployment, with parameters that differ from the defaults as `name=value`.
    pub async fn new(parameters: &[(&str, u64)]) -> Self {
        let node = remote().is_none().then(|| NODE.get_or_init(embedded));
        Self::on(node, (STAKE_UNIT, LEAST.into()), None, parameters).await
    }

    /// The same on an embedded node, or at RPC_URL; with other stakes (wei in a stake unit, least stake in wei), and with another
    /// owner and treasury.
    pub async fn on(
        node: Option<&'static Devnode>,
        stakes: (u64, u128),
        hands: Option<(Address, Address)>,
        parameters: &[(&str, u64)],
    ) -> Self {
        let turn = TURN.lock().await;
        let (url, key) = match node {
            Some(node) => (node.url(), NITRO_DEV_KEY.to_string()),
            None => (remote().expect("RPC_URL"), std::env::var("PRIVATE_KEY").expect("with RPC_URL, PRIVATE_KEY pays")),
        };
        let chain = Chain::connect(&url).await.expect("a node");
        let key: PrivateKeySigner = key.parse().expect("PRIVATE_KEY is a key");
        let boss = chain.account(key.clone()).await.expect("a node");
        let (manifest, programs) = build::load(&root()).expect("script/build has run");
        let config = deploy::Config {
            owner: hands.map_or(boss.address(), |hands| hands.0),
            treasury: hands.map_or(boss.address(), |hands| hands.1),
            stake_unit: stakes.0,
            minimum_stake: stakes.1,
            upgrade_delay: UPGRADE_DELAY,
            // The contract's default, also on a chain of value.
            minimum_price: (!parameters.iter().any(|(name, _)| *name == "minPrice")).then_some(U256::ONE),
            parameters: parameters.iter().map(|(name, value)| (name.to_string(), U256::from(*value))).collect(),
            programs,
            rustc: manifest.rustc,
            file: None,
            safe: None,
            say: |_| {},
        };
        let deployment = deploy::on(&chain, &boss, &config).await.expect("it deploys");
        let muster = Muster::at(chain.endpoints.clone(), deployment.address);
        // On the embedded node accounts are the same in every run.
        let salt = if node.is_some() { 1 } else { std::time::UNIX_EPOCH.elapsed().expect("a clock").as_nanos() };
        let boss = Account::new(muster.clone(), boss);
        Self { _turn: turn, chain, muster, deployment, boss, key, node, salt }
    }

    /// Whether time can be moved; says so if not.
    pub fn travels(&self, test: &str) -> bool {
        if self.node.is_none() {
            println!("{test}: skipped, because it moves time and RPC_URL names a node whose clock is its own");
        }
        self.node.is_some()
    }

    /// The key of a new account with a little ether and `stake` more.
    pub async fn actor(&mut self, stake: u64) -> PrivateKeySigner {
        self.salt += 1;
        let seed = [self.muster.address().as_slice(), &self.salt.to_be_bytes()].concat();
        let actor = PrivateKeySigner::from_bytes(&keccak256(seed)).expect("a hash is a key");
        let value = U256::from(POCKET + stake);
        let gift = Request { to: actor.address().into(), value, gas: Some(1_000_000), ..Request::default() };
        self.chain.send(self.boss.sender(), gift).await.unwrap_or_else(|error| panic!("{error:#}"));
        actor
    }

    /// The cost of joining with a GPU beside the stake, in wei.
    pub async fn name_fee(&self, gpu: &str, vram: u16) -> u64 {
        self.muster.name_fee(gpu, vram).await.expect("a node").to()
    }

    /// The owner calls, and must not be refused.
    pub async fn rule<C: SolCall>(&self, call: C) -> Done {
        self.boss.call(call, U256::ZERO).await.unwrap_or_else(|error| panic!("{}: {error}", C::SIGNATURE))
    }

    /// Moves time, and mines a block there.
    pub fn travel(&self, seconds: u64) {
        let chain = self.node.expect("only tests that may travel do").chain();
        chain.increase_time(seconds).unwrap();
        chain.mine(1, 0).unwrap();
    }
}
