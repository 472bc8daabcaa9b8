//! A contract on a node in this process, and agents that answer for nodes of it, as processes of their own.

#![allow(clippy::unnecessary_debug_formatting, reason = "a path in quotes, as TOML wants it")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use alloy::primitives::{Address, B256, U256};
use alloy::signers::local::PrivateKeySigner;
use alloy::sol_types::SolCall;
use muster_client::{
    digest_of, Account, Batch, Bounds, Cursor, Endpoints, Event, Events, IMuster, Muster, Reading, Sender, Sending, Settings,
    Stores,
};

use crate::world::{World, LEAST, UPGRADE_DELAY};

/// How long anything may take here.
pub const PATIENCE: Duration = Duration::from_mins(5);
/// The GPU's name in configurations; the golden task's stack is added to it.
pub const GPU: &str = "Test GPU";
/// Its memory in GiB.
pub const VRAM: u16 = 24;

/// The agent that is built: beside this executable, or in the directory above if it is a test; or the one that MUSTER_AGENT names.
pub fn binary() -> PathBuf {
    if let Some(file) = std::env::var_os("MUSTER_AGENT") {
        return file.into();
    }
    let own = std::env::current_exe().expect("this executable has a path");
    let name = format!("muster-agent{}", std::env::consts::EXE_SUFFIX);
    let places = own.ancestors().skip(1).take(2).map(|place| place.join(&name));
    places.into_iter().find(|file| file.is_file()).unwrap_or_else(|| PathBuf::from(name))
}

/// A contract, stores, and its callers.
pub struct Site {
    /// The chain, the contract and its owner.
    pub world: World,
    /// The contract, as clients know it.
    pub muster: Muster,
    /// Where the chain's node is.
    pub url: String,
    /// For files of all kinds; the store of inputs and results is in it.
    pub place: tempfile::TempDir,
    /// The block at which it begins.
    pub start: u64,
}

impl Site {
    /// A fresh contract, with parameters that differ from the defaults in force.
    pub async fn new(parameters: &[(&str, u64)]) -> Site {
        Self::of(World::new(parameters).await, parameters).await
    }

    /// The same of a contract that is there, which was deployed with these parameters.
    pub async fn of(world: World, parameters: &[(&str, u64)]) -> Site {
        // Those that reach into stakes are only proposed with the deployment.
        let listed: Vec<serde_json::Value> = serde_json::from_str(include_str!("../../../abi/parameters.json")).unwrap();
        let delayed =
            |one: &&serde_json::Value| one["delayed"] == true && parameters.iter().any(|(name, _)| one["name"] == *name);
        let delayed: Vec<u64> = listed.iter().filter(delayed).map(|one| one["number"].as_u64().unwrap()).collect();
        if !delayed.is_empty() && world.node.is_some() {
            world.travel(UPGRADE_DELAY.into());
            for number in delayed {
                world.rule(IMuster::acceptParameterCall { parameter: number as u8 }).await;
            }
        }
        let url = world.chain.url.clone();
        let endpoints = Endpoints::new(&[&url], Settings::default()).unwrap();
        let muster = Muster::connect(endpoints, world.muster.address()).await.unwrap();
        let start = muster.endpoints().head().await.unwrap().number;
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("store")).unwrap();
        Site { world, muster, url, place, start }
    }

    /// The store of inputs and results.
    pub fn store(&self) -> Stores {
        Stores::open(&[self.place.path().join("store").to_str().unwrap()], Bounds::default()).unwrap()
    }

    /// The key of a new account with so many wei beside its gas.
    pub async fn key(&mut self, wei: u64) -> B256 {
        self.world.actor(wei).await.to_bytes()
    }

    /// An account with so many wei beside its gas.
    pub async fn account(&mut self, wei: u64) -> Account {
        let key = self.key(wei).await;
        self.account_of(key, "people").await
    }

    /// An account by its key, with a journal of its own.
    pub async fn account_of(&self, key: B256, place: &str) -> Account {
        let sending = Sending { look_every: Duration::from_millis(20), ..Sending::default() };
        let place = self.place.path().join(place);
        let signer = PrivateKeySigner::from_bytes(&key).unwrap();
        let sender = Sender::open(self.muster.endpoints().clone(), signer, &place, sending).await.unwrap();
        Account::new(self.muster.clone(), sender)
    }

    /// An agent for a node that is to join, not started. Its executor turns inputs round.
    pub async fn agent(&mut self, name: &str) -> Agent {
        let mut agent = self.agent_with(name, LEAST, 3 * LEAST).await;
        fs::create_dir(agent.home.join("golden")).unwrap();
        fs::write(agent.home.join("golden/one.json"), r#"{"kind":"gpt","input":{"text":"golden"}}"#).unwrap();
        agent.executor = format!(
            "command = [\"python3\", {:?}, {:?}]\ndirectory = {:?}\nready_within = 30",
            concat!(env!("CARGO_MANIFEST_DIR"), "/reverse.py"),
            agent.home.join("behaviour"),
            agent.home,
        );
        agent.behave("answers");
        agent.configure(self);
        agent
    }

    /// The same with this stake and so many wei beside its gas, without an executor, and not configured yet.
    pub async fn agent_with(&mut self, name: &str, stake: u64, wei: u64) -> Agent {
        let key = self.key(wei).await;
        let home = self.place.path().join(name);
        fs::create_dir(&home).unwrap();
        fs::write(home.join("free"), "100000000000").unwrap();
        let (url, executor) = (self.url.clone(), String::new());
        Agent {
            name: name.into(),
            key,
            home,
            url,
            stake,
            drive_within: 0,
            executor,
            more: String::new(),
            node_more: String::new(),
            others: Vec::new(),
            stores: None,
            environment: Vec::new(),
        }
    }

    /// The number of a key's node; 0 if it has none.
    pub async fn node_of(&self, key: B256) -> u32 {
        let operator = PrivateKeySigner::from_bytes(&key).unwrap().address();
        self.muster.read(IMuster::nodeOfCall { who: operator }).await.unwrap()
    }

    /// A node.
    pub async fn view(&self, number: u32) -> IMuster::NodeView {
        self.muster.read(IMuster::nodeCall { number }).await.unwrap()
    }

    /// A task whose input is in the store, Pending.
    pub async fn task(&self, by: &Account, spec: IMuster::TaskSpec, input: &str, fee: u64) -> u64 {
        let (digest, _) = self.store().put(input.as_bytes()).await.unwrap();
        self.create(by, IMuster::TaskSpec { inputDigest: digest, ..spec }, fee).await
    }

    /// A task whose input is somewhere, Pending.
    pub async fn create(&self, by: &Account, spec: IMuster::TaskSpec, fee: u64) -> u64 {
        let done = by.call(IMuster::createTaskCall { spec }, U256::from(fee)).await.unwrap();
        done.events.iter().find_map(|event| if let Event::TaskCreated(e) = event { Some(e.id) } else { None }).unwrap()
    }

    /// Every event so far.
    pub async fn events(&self) -> Vec<Event> {
        let cursor = Cursor::new(self.muster.endpoints().chain().await.unwrap(), self.muster.address(), self.start);
        let mut events = Events::with_cursor(self.muster.endpoints().clone(), cursor, Reading::default()).await.unwrap();
        let mut all = Vec::new();
        while let Some(batch) = events.poll().await.unwrap() {
            events.accept(&batch).unwrap();
            let Batch::Events { events, .. } = batch else { panic!("a chain without reorganisations") };
            all.extend(events.into_iter().map(|logged| logged.event.unwrap()));
        }
        all
    }

    /// Waits until something is so, with a block now and then, as others make them.
    pub async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = look().await {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "waited in vain: {what}\n{:#?}", self.events().await);
            if let Some(node) = self.world.node {
                node.chain().mine(1, 0).unwrap();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits for an event.
    pub async fn event<T>(&self, what: &str, pick: impl Fn(&Event) -> Option<T>) -> T {
        self.until(what, async || self.events().await.iter().find_map(&pick)).await
    }
}

/// A task that any node runs: text.
pub fn gpt(redundancy: u8) -> IMuster::TaskSpec {
    IMuster::TaskSpec { kind: 1, units: 1, vram: 0, gpu: 0, redundancy, flags: 1, inputDigest: B256::ZERO, models: vec![] }
}

/// The answer of an executor of these tests: its input, turned round.
pub fn answer_to(input: &str) -> String {
    input.chars().rev().collect()
}

/// The digest of that.
pub fn digest_to(input: &str) -> B256 {
    digest_of(answer_to(input).as_bytes())
}

/// An agent's configuration, and its command.
pub struct Agent {
    /// Its node's name in the configuration.
    pub name: String,
    /// Its operator's key.
    pub key: B256,
    /// Where it and its log are.
    pub home: PathBuf,
    /// Where it finds the chain.
    pub url: String,
    /// In wei.
    pub stake: u64,
    /// Most seconds for which it leaves others to do what anybody may do.
    pub drive_within: u32,
    /// The lines of its executor.
    pub executor: String,
    /// Lines for the head of the configuration.
    pub more: String,
    /// Lines for its node.
    pub node_more: String,
    /// Keys of more nodes on the same card.
    pub others: Vec<B256>,
    /// The lines of its stores, if they are not the site's.
    pub stores: Option<String>,
    /// Variables of its environment.
    pub environment: Vec<(String, String)>,
}

impl Agent {
    /// Writes the configuration.
    pub fn configure(&self, site: &Site) {
        self.write(site, &format!("look_every = 1\ndrive_within = {}", self.drive_within));
    }

    /// The same, as hasty as agents usually are: tests have them look more often.
    pub fn configure_usual(&self, site: &Site) {
        self.write(site, "");
    }

    fn write(&self, site: &Site, pace: &str) {
        let store = site.place.path().join("store");
        let stores = self.stores.clone().unwrap_or_else(|| format!("get = [{store:?}]\nput = [{store:?}]"));
        let text = format!(
            "home = {:?}\nseed = {:?}\nrpc = [{:?}]\nmuster = \"{:?}\"\n{pace}\nfrom_block = {}\n{}\n[store]\n{stores}\n\
             [[node]]\nname = {:?}\nkey_env = \"GPU_KEY\"\ngpu_name = {GPU:?}\nvram = {VRAM}\nstake = \"{}\"\n{}\n[node.executor]\n{}\n",
            self.home.join("state"),
            // Where no lost disk takes it along: as its copy is.
            self.home.join("seed"),
            self.url,
            site.muster.address(),
            site.start,
            self.more,
            self.name,
            self.stake,
            self.node_more,
            self.executor,
        );
        let other = |at: usize| {
            let (name, stake) = (&self.name, self.stake);
            format!("[[node]]\nname = \"{name}-{at}\"\nkey_env = \"GPU_KEY_{at}\"\nstake = \"{stake}\"\nshares = {name:?}\n")
        };
        let text = text + &(0..self.others.len()).map(other).collect::<String>();
        fs::write(self.home.join("agent.toml"), text).unwrap();
    }

    /// The acts of its executor from its next task on: `answers`, `differs`, `cheats` (golden tasks apart), `rolls` dice, `fails`,
    /// `refuses`, `hangs`, `stays`, `ends`, `makes a directory`, `replaces its input`. It `goes on writing` after its answer, or
    /// `shows` half of it and waits for another word, or `shows another` text. `differs on` a text is for inputs with that text alone.
    /// From its next start on, too: `loads`, alone or after `fails`, and is not ready as long as it is to.
    pub fn behave(&self, behaviour: &str) {
        fs::write(self.home.join("behaviour"), behaviour).unwrap();
    }

    /// One of the agent's commands, with its configuration, its key, the free space that its file `free` pretends, and nothing else of
    /// this environment: how full the machine's disk is decides no test.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments).arg("--config").arg(self.home.join("agent.toml")).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var("PATH").unwrap()).env("GPU_KEY", self.key.to_string());
        command.env("MUSTER_AGENT_FREE", self.home.join("free"));
        command.envs(self.environment.iter().cloned());
        command.envs(self.others.iter().enumerate().map(|(at, key)| (format!("GPU_KEY_{at}"), key.to_string())));
        command
    }

    /// Starts it; with a point, it kills itself there.
    pub fn start(&self, dies_at: Option<&str>) -> Running {
        let log = File::options().create(true).append(true).open(self.log_path()).unwrap();
        let mut command = self.command(&["run"]);
        if let Some(point) = dies_at {
            command.env("MUSTER_AGENT_DIES_AT", point);
        }
        command.stdout(Stdio::null()).stderr(log);
        Running(command.spawn().unwrap_or_else(|error| panic!("{}: {error}", binary().display())))
    }

    fn log_path(&self) -> PathBuf {
        self.home.join("log")
    }

    /// Its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// How often its executor was started.
    pub fn starts(&self) -> usize {
        fs::read_to_string(self.home.join("starts")).map_or(0, |text| text.lines().count())
    }

    /// How often its executor has run a task that is not golden.
    pub fn runs(&self) -> usize {
        fs::read_to_string(self.home.join("runs")).map_or(0, |text| text.lines().count())
    }
}

/// An agent's process; killed when it is dropped.
pub struct Running(pub Child);

impl Running {
    /// As nothing can refuse.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// As a service manager ends it.
    pub fn terminate(&self) {
        let id = rustix::process::Pid::from_raw(self.0.id() as i32).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The journal of an agent, read from outside.
pub fn journal(agent: &Agent) -> Option<Vec<(u64, String, Option<String>)>> {
    let path: &Path = &agent.home.join("state/journal.sqlite");
    let connection = rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    let mut query = connection.prepare("SELECT task, stage, outcome FROM job ORDER BY deadline").ok()?;
    let rows = query.query_map([], |row| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?, row.get(2)?))).ok()?;
    rows.collect::<Result<_, _>>().ok()
}

/// Calls of the contract that an account has sent and that were mined, as the transactions themselves say.
pub async fn calls_by(site: &Site, key: B256) -> Vec<[u8; 4]> {
    let inputs = inputs_by(site, key).await;
    inputs.iter().filter_map(|input| input.first_chunk().copied()).collect()
}

/// The calldata of them.
pub async fn inputs_by(site: &Site, key: B256) -> Vec<Vec<u8>> {
    let from = PrivateKeySigner::from_bytes(&key).unwrap().address();
    let head = site.muster.endpoints().head().await.unwrap().number;
    let mut inputs = Vec::new();
    for number in site.start..=head {
        let block: serde_json::Value =
            site.muster.endpoints().ask("eth_getBlockByNumber", serde_json::json!([format!("{number:#x}"), true])).await.unwrap();
        for transaction in block["transactions"].as_array().unwrap() {
            if transaction["from"].as_str().is_some_and(|text| text.parse::<Address>().unwrap() == from) {
                let input: alloy::primitives::Bytes = transaction["input"].as_str().unwrap().parse().unwrap();
                inputs.push(input.to_vec());
            }
        }
    }
    inputs
}

/// How often a function was called.
pub fn count<C: SolCall>(calls: &[[u8; 4]]) -> usize {
    calls.iter().filter(|selector| **selector == C::SELECTOR).count()
}
