//! The configuration: one TOML file, in which nothing is secret but URLs.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alloy::primitives::{Address, U256};
use alloy::signers::local::PrivateKeySigner;
use anyhow::{bail, ensure, Context, Result};
use muster_client::{abi, key, parse_address, parse_amount, Bounds, Place, Private, Wallet};
use serde::{Deserialize, Deserializer};

use crate::hub::Hub;
use crate::terms::Terms;

/// An agent's settings, and its nodes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The folder of the journal, transactions, results in work and the seed. It holds no keys.
    pub home: PathBuf,
    /// The file of the seed, the secret behind all salts of commitments: made at the first start, `seed` in `home` if left out. Without it
    /// and without the journal no commitment can be revealed, so keep a copy elsewhere.
    pub seed: Option<PathBuf>,
    /// Nodes of the chain, the most trusted first.
    pub rpc: Vec<String>,
    /// Nodes of the chain over WebSocket, which report blocks and events at once. Left out, those of `rpc` are asked at the same addresses.
    /// Empty, none is: the agent then looks about as often as blocks come while it waits for one.
    pub ws: Option<Vec<String>>,
    /// The contract.
    #[serde(deserialize_with = "address")]
    pub muster: Address,
    /// Refuse to talk to another chain.
    pub chain: Option<u64>,
    /// The block that the contract was deployed in, or any before it: events are searched from there on.
    #[serde(default)]
    pub from_block: u64,
    /// Seconds between two looks at the chain when no event wakes the agent.
    #[serde(default = "five", deserialize_with = "seconds")]
    pub look_every: u64,
    /// The most to pay for a unit of gas, in wei or with a unit.
    #[serde(default, deserialize_with = "maybe_amount")]
    pub max_gas_price: Option<U256>,
    /// The most gas that a call is assumed to take, when the balance is compared with open calls.
    #[serde(default = "million")]
    pub gas_per_call: u64,
    /// Seconds that a node waits at most before it does work that others may do too. It waits some blocks, at random, and more in a larger
    /// network, so that few do it at once.
    #[serde(default = "twenty", deserialize_with = "seconds")]
    pub drive_within: u64,
    /// Bytes that must be free where the agent writes; with less, its nodes are paused.
    #[serde(default = "gib")]
    pub least_free: u64,
    /// The stores of inputs and results.
    pub store: Stores,
    /// Names of models, so that executors and download commands get names instead of ids. Names in `[[node]]` need not be repeated.
    #[serde(default)]
    pub models: Vec<String>,
    /// The address that serves metrics and health; none if left out.
    pub listen: Option<SocketAddr>,
    /// The streams of answers; none if left out.
    pub stream: Option<Stream>,
    /// The URL to which urgent messages are posted, as JSON with `text`.
    pub webhook: Option<String>,
    /// The source and the folder of models, for nodes without a `download` of their own.
    pub hub: Option<Hub>,
    /// The nodes, one for each GPU.
    #[serde(rename = "node")]
    pub nodes: Vec<Node>,
}

/// The stores of inputs and results.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stores {
    /// Where inputs are looked for after the stores that a task's creator publishes, in this order: URLs, or directories.
    pub get: Vec<String>,
    /// Where every result is put before it is answered: URLs that take PUT, buckets, or directories. One must take it.
    pub put: Vec<String>,
    /// Where others read the results; each node's key publishes it on the chain. Left out, nothing is published.
    pub publish: Option<Vec<String>>,
    /// Whether a key is published beside `publish`, so that inputs can be sealed to the node.
    #[serde(default = "yes")]
    pub private: bool,
    /// Headers for stores over HTTP, by the store as it stands above: names and values; `$NAME` stands for a variable of the environment.
    #[serde(default)]
    pub headers: BTreeMap<String, BTreeMap<String, String>>,
    /// Days until a result is removed from the stores of `put`; 0 keeps it for good.
    #[serde(default = "week")]
    pub keep_days: f64,
    /// Seconds that a store which a creator publishes may take for an input.
    #[serde(default = "half_a_minute", deserialize_with = "seconds")]
    pub published_within: u64,
    /// Hosts of published stores, as their URLs write them, that may be on this machine or a private network.
    #[serde(default)]
    pub private_hosts: Vec<String>,
    /// The most bytes of an input or a result; longer ones are not read.
    #[serde(default = "longest")]
    pub longest: u64,
}

/// The streams of answers while they are made.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// The address that serves `/stream/TASK` over HTTP; a proxy before it speaks TLS.
    pub listen: SocketAddr,
    /// Where others reach that, up to and with `/stream`: each node's key publishes it on the chain. Left out, nothing is published.
    pub url: Option<String>,
    /// The most concurrent readers; sixteen of one answer.
    #[serde(default = "sixty_four")]
    pub listeners: usize,
}

/// A node, which is a key and a GPU.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// For the log and the metrics.
    pub name: String,
    /// The environment variable that holds its key.
    pub key_env: Option<String>,
    /// The encrypted file that holds its key.
    pub keystore: Option<PathBuf>,
    /// The file with the keystore's password, mode 600.
    pub password_file: Option<PathBuf>,
    /// The signer that keeps its key, if no file or variable does: `aws:KEY`, `gcp:VERSION`, or the URL of a signer such as Web3Signer, with #ADDRESS behind it if
    /// that has several accounts.
    #[serde(default, deserialize_with = "maybe_place")]
    pub signer: Option<Place>,
    /// The node's operator, if the key is a worker's: the agent then accepts the operator's offer when it starts. Left out, the node is the
    /// one that the key is the operator of, or already works for.
    #[serde(default, deserialize_with = "maybe_address")]
    pub operator: Option<Address>,
    /// An earlier node of this agent whose GPU and executor this node uses too, each with its own stake. While one computes, the other
    /// gets its next task, so that the card does not wait for the chain. The settings of the GPU belong to the earlier node.
    pub shares: Option<String>,
    /// The GPU, by its UUID or its number as `nvidia-smi -L` lists them. Without it, and without `gpu_name`, the first.
    pub gpu: Option<String>,
    /// The GPU's name, where NVIDIA's library is not asked for it: MIG, unified memory, no NVIDIA driver.
    pub gpu_name: Option<String>,
    /// Its memory in GiB, with `gpu_name`.
    pub vram: Option<u16>,
    /// The stake to join with, if the operator never joined a node; left out, joining is left to the operator.
    #[serde(default, deserialize_with = "maybe_amount")]
    pub stake: Option<U256>,
    /// Models that the node holds when it joins, by name or as 0x and the id.
    #[serde(default)]
    pub models: Vec<String>,
    /// The command that downloads a model. It gets the model in MUSTER_MODEL (name or id) and MUSTER_MODEL_ID.
    pub download: Option<Vec<String>>,
    /// Seconds that `download` may take. For a task that needs the model it ends at `lead` at the latest.
    #[serde(default = "hour", deserialize_with = "seconds")]
    pub download_within: u64,
    /// Seconds before a task's deadline at which the executor is killed, so that an error can still be reported: a report costs
    /// the fee, a timeout the node's reliability. At most a tenth of the time that is left when the task is taken, or when the
    /// agent finds it after a restart.
    #[serde(default = "ten", deserialize_with = "seconds")]
    pub lead: u64,
    /// Whether another node of this agent may have the same GPU with an executor of its own: both must say so, and both must fit.
    #[serde(default)]
    pub beside: bool,
    /// Seconds after which a failed self-test is made again, and a node without golden tasks is tried again.
    #[serde(default = "ten_minutes", deserialize_with = "seconds")]
    pub retest_after: u64,
    /// The pay and the policies for which it takes work.
    #[serde(default)]
    pub terms: Terms,
    /// The program that runs the tasks.
    #[serde(default)]
    pub executor: Executor,
}

/// The program that runs tasks.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Executor {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Whether it starts anew for each task.
    #[serde(default)]
    pub once: bool,
    /// The directory it runs in; golden tasks are in `golden` there, if `golden` says nothing else.
    pub directory: Option<PathBuf>,
    /// The directory with golden tasks.
    pub golden: Option<PathBuf>,
    /// Seconds until it must say that it is ready.
    #[serde(default = "ten_minutes", deserialize_with = "seconds")]
    pub ready_within: u64,
    /// Seconds that a golden task may take.
    #[serde(default = "ten_minutes", deserialize_with = "seconds")]
    pub golden_within: u64,
    /// The user that it runs as: one other than the agent's, which cannot read the keys. Its group has the same name.
    pub user: Option<String>,
    /// The container that it runs in, instead of `user`.
    pub container: Option<Container>,
    /// Where an executor that is kept apart finds inputs and leaves results; left out, a folder of this agent's among temporary files.
    pub exchange: Option<PathBuf>,
    /// Environment variables for it, beside PATH, HOME and the like.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// A container that an executor runs in.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Container {
    /// `docker` or `podman`, or where that is.
    #[serde(default = "podman")]
    pub runtime: String,
    /// The image, which has the executor's command.
    pub image: String,
    /// The most memory, as `--memory` has it: `64g`.
    pub memory: Option<String>,
    /// Folders of this machine that it may read, where they are here; `HF_HOME` of the environment is one by itself.
    #[serde(default)]
    pub read: Vec<PathBuf>,
    /// Whether it reaches a network.
    #[serde(default)]
    pub network: bool,
}

fn podman() -> String {
    "podman".into()
}

fn yes() -> bool {
    true
}
fn week() -> f64 {
    7.0
}
fn half_a_minute() -> u64 {
    30
}
fn five() -> u64 {
    5
}
fn ten() -> u64 {
    10
}
fn twenty() -> u64 {
    20
}
fn ten_minutes() -> u64 {
    600
}
fn sixty_four() -> usize {
    64
}
fn hour() -> u64 {
    3_600
}
fn million() -> u64 {
    1_000_000
}
fn longest() -> u64 {
    gib()
}
fn gib() -> u64 {
    1 << 30
}

/// The most seconds of a setting, a year: a clock cannot count on by any number.
const YEAR: u64 = 366 * 86_400;

fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let given = u64::deserialize(from)?;
    if given > YEAR {
        return Err(serde::de::Error::custom(format!("{given} seconds are more than a year, {YEAR}")));
    }
    Ok(given)
}

fn maybe_amount<'de, D: Deserializer<'de>>(from: D) -> Result<Option<U256>, D::Error> {
    let text = String::deserialize(from)?;
    parse_amount(&text).map(Some).map_err(serde::de::Error::custom)
}

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Address, D::Error> {
    parse_address(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}

fn maybe_address<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Address>, D::Error> {
    address(from).map(Some)
}

fn maybe_place<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Place>, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

/// The memory in GiB with which the contract lets a node join.
const VRAM: RangeInclusive<u16> = 1..=960;

/// The most days that results are kept; 0 keeps them for good.
const CENTURY: f64 = 36_525.0;

/// The most bytes that the contract keeps of an account's stores.
const PUBLISHED: usize = 256;

/// Bytes of a key that is published, with the space before it.
const KEY: usize = 67;

/// The most entries of another account's list that are read.
const ENTRIES: usize = 8;

impl Stores {
    /// The stores in another account's list; private addresses only where `private_hosts` names them.
    pub fn readable(&self, list: &str, bounds: Bounds) -> muster_client::Stores {
        let entries = list.split(' ').filter(|entry| !entry.is_empty()).take(ENTRIES);
        entries.fold(muster_client::Stores::default(), |stores, entry| {
            let url = entry.strip_prefix("ipfs+").unwrap_or(entry);
            let host = reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_string));
            let inside = host.is_some_and(|host| self.private_hosts.contains(&host));
            stores.then(&muster_client::Stores::published(entry, bounds, inside))
        })
    }

    /// A store's headers, with variables of the environment replaced.
    pub fn headers(&self, store: &str) -> Result<Vec<(String, String)>> {
        let headers = self.headers.get(store).into_iter().flatten();
        let read = |(name, value): (&String, &String)| {
            let value = match value.strip_prefix('$') {
                None => value.clone(),
                Some(variable) => std::env::var(variable).with_context(|| format!("no {variable} in the environment"))?,
            };
            Ok((name.clone(), value))
        };
        headers.map(read).collect()
    }
}

/// Overrides `listen`: a container's 127.0.0.1 is out of reach from outside.
const LISTEN: &str = "MUSTER_AGENT_LISTEN";

impl Config {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut config = Self::parse(&text).with_context(|| path.display().to_string())?;
        if let Ok(at) = std::env::var(LISTEN) {
            config.listen = Some(at.parse().with_context(|| format!("{LISTEN} is {at}, which is no address with a port"))?);
        }
        Ok(config)
    }

    /// Parses and validates a file's text.
    pub fn parse(text: &str) -> Result<Self> {
        let mut config: Config = toml::from_str(text)?;
        config.share()?;
        ensure!(!config.nodes.is_empty(), "there is no [[node]]");
        ensure!(!config.rpc.is_empty(), "`rpc` is empty");
        ensure!(!config.store.get.is_empty() && !config.store.put.is_empty(), "[store] needs `get` and `put`");
        for store in config.store.headers.keys() {
            let known = config.store.get.contains(store) || config.store.put.contains(store);
            ensure!(known, "`headers` are for a store of `get` or `put`, and {store} is none");
        }
        ensure!(
            (0.0..=CENTURY).contains(&config.store.keep_days),
            "`keep_days` is {}, not 0 to {CENTURY}",
            config.store.keep_days
        );
        if let Some(url) = config.stream.as_ref().and_then(|stream| stream.url.as_ref()) {
            let known = reqwest::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
            ensure!(known && !url.contains(' '), "`url` of [stream] is {url}, and others read from https://... alone");
        }
        let published = config.entries().iter().flatten().map(|uri| uri.len() + 1).sum::<usize>();
        let most = if config.store.private { PUBLISHED - KEY } else { PUBLISHED };
        ensure!(
            published <= most + 1,
            "`publish` and [stream] have {published} bytes, and the contract keeps {most} beside a key"
        );
        ensure!(config.look_every > 0, "`look_every` is at least 1");
        let mut names = std::collections::BTreeSet::new();
        for node in &config.nodes {
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            ensure!(
                !node.name.is_empty() && node.name.chars().all(fits),
                "a node's name has letters, digits, - and _: {:?}",
                node.name
            );
            ensure!(names.insert(&node.name), "two nodes are called {:?}", node.name);
            let keys = [node.key_env.is_some(), node.keystore.is_some(), node.signer.is_some()];
            ensure!(
                keys.iter().filter(|key| **key).count() == 1,
                "node {}: one of `key_env`, `keystore` and `signer`",
                node.name
            );
            ensure!(
                !matches!(node.signer, Some(Place::Ledger(_))),
                "node {}: a Ledger asks a person for every transaction, and an agent sends them day and night",
                node.name
            );
            ensure!(
                node.keystore.is_some() == node.password_file.is_some(),
                "node {}: `keystore` needs `password_file`",
                node.name
            );
            ensure!(!node.executor.command.is_empty(), "node {}: the executor's `command` is empty", node.name);
            ensure!(
                node.executor.user.is_none() || node.executor.container.is_none(),
                "node {}: the executor's `user` is not for one in a `container`",
                node.name
            );
            ensure!(node.gpu_name.is_some() == node.vram.is_some(), "node {}: `gpu_name` and `vram` come together", node.name);
            ensure!(
                node.vram.is_none_or(|vram| VRAM.contains(&vram)),
                "node {}: `vram` is {}, and a node can join with {} to {} GiB: without a card, write the memory that its tasks may take",
                node.name,
                node.vram.unwrap_or_default(),
                VRAM.start(),
                VRAM.end()
            );
            ensure!(node.download.as_ref().is_none_or(|command| !command.is_empty()), "node {}: `download` is empty", node.name);
            // Two executors on a card take each other's memory, and time.
            let own = |other: &&Node| other.name != node.name && other.shares.is_none() && other.gpu_name.is_none();
            if node.shares.is_none() && node.gpu_name.is_none() && !node.beside {
                let other = config
                    .nodes
                    .iter()
                    .filter(own)
                    .find(|other| other.gpu.as_deref().unwrap_or("0") == node.gpu.as_deref().unwrap_or("0"));
                if let Some(other) = other {
                    bail!(
                        "nodes {} and {} have the same GPU: one of them `shares` the other's executor, or both say `beside = true`",
                        node.name,
                        other.name
                    );
                }
            }
            for model in &node.models {
                model_id(model).with_context(|| format!("node {}", node.name))?;
            }
        }
        Ok(config)
    }

    /// The entries to publish about stores and streams, if any.
    fn entries(&self) -> Option<Vec<String>> {
        let shows = self.stream.as_ref().and_then(|stream| stream.url.as_ref()).map(|url| format!("stream+{url}"));
        if self.store.publish.is_none() && shows.is_none() {
            return None;
        }
        Some(self.store.publish.iter().flatten().cloned().chain(shows).collect())
    }

    /// A node's entries on the chain, if configured: its stores, its streams, and the key for sealed inputs.
    pub fn published(&self, key: &Private) -> Option<String> {
        let mut entries = self.entries()?;
        entries.extend(self.store.private.then(|| key.entry()));
        Some(entries.join(" "))
    }

    /// Has nodes that share a card use it with the settings of its owner.
    fn share(&mut self) -> Result<()> {
        for at in 0..self.nodes.len() {
            let (before, rest) = self.nodes.split_at_mut(at);
            let node = &mut rest[0];
            let Some(name) = &node.shares else { continue };
            let owner = before.iter().find(|owner| owner.name == *name && owner.shares.is_none());
            let owner = owner.with_context(|| format!("node {}: no node {name:?} with a card is before it", node.name))?;
            let own = node.executor.command.is_empty() && node.gpu.is_none() && node.gpu_name.is_none() && node.vram.is_none();
            ensure!(own, "node {}: its GPU and its executor are those of {name}", node.name);
            (node.gpu, node.gpu_name, node.vram) = (owner.gpu.clone(), owner.gpu_name.clone(), owner.vram);
            (node.executor, node.lead) = (owner.executor.clone(), owner.lead);
            if node.download.is_none() {
                (node.download, node.download_within) = (owner.download.clone(), owner.download_within);
            }
            if node.models.is_empty() {
                node.models.clone_from(&owner.models);
            }
        }
        Ok(())
    }

    /// The names of models by their ids.
    pub fn names(&self) -> BTreeMap<u64, String> {
        let all = self.models.iter().chain(self.nodes.iter().flat_map(|node| &node.models));
        all.filter(|name| !name.starts_with("0x")).map(|name| (abi::model_id(name), name.clone())).collect()
    }

    /// How often the chain is looked at.
    pub fn look_every(&self) -> Duration {
        Duration::from_secs(self.look_every)
    }

    /// The path of the seed.
    pub fn seed(&self) -> PathBuf {
        self.seed.clone().unwrap_or_else(|| self.home.join("seed"))
    }

    /// A command's directory for one node's files.
    pub fn work(&self, node: &Node) -> PathBuf {
        self.home.join("work").join(&node.name)
    }
}

impl Node {
    /// Its signer, on a chain.
    pub async fn wallet(&self, chain: u64) -> Result<Wallet> {
        match &self.signer {
            Some(place) => Ok(place.open(chain).await?),
            None => Ok(self.key()?.into()),
        }
    }

    /// Its key, if the agent holds it.
    pub fn key(&self) -> Result<PrivateKeySigner> {
        if let (Some(file), Some(password)) = (&self.keystore, &self.password_file) {
            return Ok(key::from_keystore(file, &key::password_from(password)?)?);
        }
        let variable = self.key_env.as_deref().unwrap_or_default();
        key::from_environment(variable)?.with_context(|| format!("node {}: no key in the environment's {variable}", self.name))
    }

    /// The name of its card: that of the node that owns it.
    pub fn card(&self) -> &str {
        self.shares.as_ref().unwrap_or(&self.name)
    }

    /// The directory of its golden tasks, if it is there.
    pub fn golden(&self) -> Option<PathBuf> {
        if let Some(place) = &self.executor.golden {
            return Some(place.clone());
        }
        let place = self.executor.directory.as_ref()?.join("golden");
        place.is_dir().then_some(place)
    }

    /// The ids of the models that it holds when it joins.
    pub fn model_ids(&self) -> Result<Vec<u64>> {
        self.models.iter().map(|model| model_id(model)).collect()
    }
}

fn model_id(text: &str) -> Result<u64> {
    match text.strip_prefix("0x") {
        None => Ok(abi::model_id(text)),
        Some(digits) => u64::from_str_radix(digits, 16).with_context(|| format!("{text} is no model's id")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = r#"
        home = "/var/lib/muster-agent"
        rpc = ["http://127.0.0.1:8547"]
        muster = "0x4d75737465720000000000000000000000000000"
        [store]
        get = ["/tmp"]
        put = ["/tmp"]
        [[node]]
        name = "gpu0"
        key_env = "KEY"
        stake = "1.5 ether"
        models = ["sdxl", "0x7"]
        [node.executor]
        command = ["true"]
    "#;

    #[test]
    fn the_least_is_enough() {
        let config = Config::parse(LEAST).unwrap();
        assert_eq!(config.nodes[0].stake, Some(U256::from(1_500_000_000_000_000_000u64)));
        assert_eq!(config.nodes[0].model_ids().unwrap(), [abi::model_id("sdxl"), 7]);
        assert_eq!(config.names()[&abi::model_id("sdxl")], "sdxl");
    }

    #[test]
    fn the_example_is_read() {
        let text = include_str!("../deploy/muster-agent.toml");
        Config::parse(text).unwrap();
        // The commented settings, too.
        let settings = text.lines().map(|line| match line.strip_prefix("# ") {
            Some(setting)
                if setting.contains(" = ")
                    && !["operator", "shares", "container", "signer"].iter().any(|other| setting.starts_with(other)) =>
            {
                setting
            }
            _ => line,
        });
        Config::parse(&settings.collect::<Vec<_>>().join("\n")).unwrap();
    }

    #[test]
    fn nodes_share_a_card() {
        let other = |more: &str| format!("{LEAST}\n[[node]]\nname = \"gpu0b\"\nkey_env = \"K\"\n{more}");
        let config = Config::parse(&other("shares = \"gpu0\"")).unwrap();
        assert_eq!(config.nodes[1].card(), config.nodes[0].card());
        assert_eq!(config.nodes[1].executor.command, config.nodes[0].executor.command);
        assert_eq!(config.nodes[1].models, config.nodes[0].models);
        assert_eq!(config.nodes[1].stake, None);
        for wrong in ["", "shares = \"gpu1\"", "shares = \"gpu0b\"", "shares = \"gpu0\"\n[node.executor]\ncommand = [\"x\"]"] {
            assert!(Config::parse(&other(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn executors_are_on_one_card_only_if_both_say_so() {
        let node = |name: &str, more: &str| {
            format!("[[node]]\nname = \"{name}\"\nkey_env = \"K\"\n{more}\n[node.executor]\ncommand = [\"true\"]\n")
        };
        let two = |one: &str, other: &str| {
            let (head, _) = LEAST.split_once("[[node]]").unwrap();
            Config::parse(&format!("{head}{}{}", node("a", one), node("b", other)))
        };
        const BESIDE: &str = "beside = true";
        assert!(two("gpu = \"0\"", "gpu = \"1\"").is_ok());
        // The first, if nothing is configured.
        for (one, other) in [("", ""), ("", "gpu = \"0\""), ("gpu = \"GPU-1\"", "gpu = \"GPU-1\""), (BESIDE, ""), ("", BESIDE)] {
            let error = two(one, other).unwrap_err().to_string();
            assert!(error.contains("have the same GPU") && error.contains("both say `beside = true`"), "{one}, {other}: {error}");
        }
        assert!(two(BESIDE, BESIDE).is_ok());
    }

    #[test]
    fn what_cannot_work_is_refused() {
        for (what, instead) in [
            ("key_env = \"KEY\"", ""),
            ("key_env = \"KEY\"", "key_env = \"KEY\"\nkeystore = \"/k\""),
            ("key_env = \"KEY\"", "keystore = \"/k\""),
            ("key_env = \"KEY\"", "key_env = \"KEY\"\nsigner = \"aws:1\""),
            ("key_env = \"KEY\"", "signer = \"ledger\""),
            ("key_env = \"KEY\"", "signer = \"elsewhere\""),
            ("[\"true\"]", "[]"),
            ("name = \"gpu0\"", "name = \"gpu 0\""),
            ("name = \"gpu0\"", "name = \"gpu0\"\noperator = \"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD\""),
            ("0x4d75737465720000000000000000000000000000", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD"),
            ("name = \"gpu0\"", "name = \"gpu0\"\ngpu_name = \"RTX\""),
            ("name = \"gpu0\"", "name = \"gpu0\"\ngpu_name = \"CPU\"\nvram = 0"),
            ("name = \"gpu0\"", "name = \"gpu0\"\ngpu_name = \"CPU\"\nvram = 961"),
            ("name = \"gpu0\"", "name = \"gpu0\"\nspelt_wrong = 1"),
            ("name = \"gpu0\"", "name = \"gpu0\"\nretest_after = 31622401"),
            ("command = [\"true\"]", "command = [\"true\"]\ngolden_within = 9223372036854775807"),
            ("put = [\"/tmp\"]", "put = [\"/tmp\"]\nkeep_days = inf"),
            ("1.5 ether", "1.5 finney"),
            ("\"0x7\"", "\"0xseven\""),
            ("rpc = [\"http://127.0.0.1:8547\"]", "rpc = []"),
            ("[store]", "[stream]\nlisten = \"127.0.0.1:1\"\nurl = \"ftp://host\"\n[store]"),
        ] {
            assert!(LEAST.contains(what));
            assert!(Config::parse(&LEAST.replace(what, instead)).is_err(), "{instead:?} for {what:?}");
        }
        let twice = format!("{LEAST}\n[[node]]\nname = \"gpu0\"\nkey_env = \"K\"\n[node.executor]\ncommand = [\"true\"]");
        assert!(Config::parse(&twice).is_err());
    }
}
