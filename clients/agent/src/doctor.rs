//! `muster-agent doctor`: finds problems that would stop the agent, with a remedy for each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alloy::primitives::{Address, B256, U256};
use anyhow::{bail, Result};
use muster_client::observe::print;
use muster_client::{
    digest_of, parameter, private_directory, show_amount, Attempt, Bounds, Endpoints, IMuster, Lock, Muster, Object, Seed,
    Settings, Stores, Trouble,
};
use serde_json::json;

use crate::config::{self, Config};
use crate::executor::Executor;
use crate::journal::Flaw;
use crate::stream::{self, Through};
use crate::{apart, disk, golden, gpu, journal, probes, setup, shared, work};

/// The remedy for an unavailable key.
const KEY: &str = "set the variable, or check the file and its password, or the signer";

/// Prints the findings, line by line.
#[derive(Default)]
struct Findings {
    wrong: u32,
}

impl Findings {
    /// A problem that stops the agent, and its remedy.
    fn bad(&mut self, what: &str, remedy: &str) {
        self.wrong += 1;
        print(format_args!("WRONG  {what}\n       {remedy}"));
    }
}

/// The folders that are not there before the checks: they are removed again, since the agent may run as another user. Folders in use
/// hold something by then, and stay.
struct Traces(BTreeSet<PathBuf>);

impl Traces {
    fn new(config: &Config) -> Self {
        let works = config.nodes.iter().map(|node| config.work(node));
        let mut places: Vec<PathBuf> = works.flat_map(|work| [work::results(&work), beside(&work)]).collect();
        places.extend(config.store.put.iter().filter_map(|store| disk::directory(store)));
        places.extend(config.hub.iter().map(|hub| hub.folder()));
        places.extend(config.nodes.iter().filter_map(|node| node.executor.exchange.clone()));
        places.push(config.home.clone());
        let all = places.iter().flat_map(|place| place.ancestors()).filter(|place| !place.as_os_str().is_empty());
        Self(all.filter(|place| !place.exists()).map(Path::to_path_buf).collect())
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        // A folder comes after the one that it is in.
        for place in self.0.iter().rev() {
            let _ = std::fs::remove_dir(place);
        }
    }
}

/// The folder for the files of golden tasks, apart from those of an agent that may be running.
fn beside(work: &Path) -> PathBuf {
    work.join("doctor")
}

/// `1 node`, `2 nodes`.
fn nodes(count: usize) -> String {
    format!("{count} {}", if count == 1 { "node" } else { "nodes" })
}

/// A key, and the node that it is to answer for.
struct Holder {
    own: Address,
    operator: Address,
    /// 0 if the operator never joined one.
    number: u32,
}

impl Holder {
    /// The stake with which the agent joins the node when it starts.
    fn joins(&self, node: &config::Node) -> Option<U256> {
        node.stake.filter(|_| self.number == 0 && self.operator == self.own)
    }
}

/// The name that a node registers.
struct Name {
    name: String,
    vram: u16,
    /// Whether golden tasks have told the stack.
    golden: bool,
}

/// A check that passed.
fn good(what: &str) {
    print(format_args!("ok     {what}"));
}

/// A remark.
fn note(what: &str) {
    print(format_args!("note   {what}"));
}

/// Checks everything, prints the findings, and fails if anything is wrong.
pub async fn run(path: &Path) -> Result<()> {
    let mut found = Findings::default();
    let config = match Config::read(path) {
        Ok(config) => config,
        Err(error) => {
            let remedy = if path.exists() {
                "mend the file; clients/agent/deploy/muster-agent.toml shows every setting"
            } else {
                "name it by --config, or write it: `muster-agent init`, or from clients/agent/deploy/muster-agent.toml"
            };
            found.bad(&format!("configuration: {error:#}"), remedy);
            bail!("nothing else can be checked");
        }
    };
    let _traces = Traces::new(&config);
    good(&format!("configuration: {}", nodes(config.nodes.len())));
    let home = private_directory(&config.home).map_err(anyhow::Error::from);
    match home.and_then(|()| Ok(tempfile::tempfile_in(&config.home)?)) {
        Ok(_) => good(&format!("home: {}", config.home.display())),
        Err(error) => found.bad(&format!("home: {error:#}"), "make it writable for the user that the agent runs as"),
    }
    match journal::look(&config.home) {
        Ok(None) => {}
        Ok(Some(flaw)) => {
            let first = match flaw {
                Flaw::Damaged(_) => "check the disk; the agent",
                Flaw::Newer(_) => "start the newer agent again; this one",
            };
            found.bad(
                &format!("journal: journal.sqlite in {} {flaw}", config.home.display()),
                &format!("{first} sets it aside at its next start, and resumes open jobs from the chain"),
            );
        }
        Err(error) => found.bad(&format!("journal: {error:#}"), "make it readable for the user that the agent runs as"),
    }
    let seed = config.seed();
    match Seed::read(&seed) {
        Ok(Some(own)) => note(&format!(
            "seed: {}, of fingerprint {}: keep a copy elsewhere, or open commitments are lost with this disk",
            seed.display(),
            own.fingerprint()
        )),
        Ok(None) => note(&format!("seed: the agent makes {} at its first start: copy it elsewhere then", seed.display())),
        Err(error) => {
            found.bad(&format!("seed: {error}"), "bring its copy back, with mode 600, for the user that the agent runs as");
        }
    }
    match disk::room(&config) {
        Ok(room) => match room.lacks(config.least_free) {
            None => good(&format!("disk: {} MiB free", room.bytes >> 20)),
            Some(_) if room.bytes < config.least_free => found.bad(
                &format!("disk: {} MiB free, where {} MiB must be", room.bytes >> 20, config.least_free >> 20),
                "make room, or lower `least_free`: nodes are paused meanwhile",
            ),
            Some(lacks) => found.bad(&format!("disk: {lacks}"), "remove files: nodes are paused meanwhile"),
        },
        Err(error) => found.bad(&format!("disk: {error:#}"), "check `home` and the stores that are directories"),
    }
    // Held meanwhile: [stream] must not have the same address.
    let mut held = None;
    if let Some(at) = config.listen {
        match (probes::listen(at).await, Lock::is_taken(&config.home)) {
            (Ok(listener), _) => {
                good(&format!("listen: {at}"));
                held = Some(listener);
            }
            // It is the agent itself that listens there.
            (Err(_), true) => note(&format!("listen: {at} is in use, and an agent runs with this home")),
            (Err(error), false) => {
                found.bad(&format!("listen: {error:#}"), "end the program that listens there, or write another address");
            }
        }
    }
    shows(&config, &mut found).await;
    drop(held);
    stores(&config, &mut found).await;
    let muster = chain(&config, &mut found).await;
    let mut keys = BTreeMap::new();
    for node in &config.nodes {
        print(format_args!("node {}", node.name));
        let (mut holder, mut own) = (None, None);
        match &muster {
            Some(muster) => {
                holder = key(node, muster, &mut found).await;
                own = holder.as_ref().map(|holder| holder.own);
                terms(node, muster, &mut found).await;
            }
            // Checks without a chain.
            None if node.signer.is_none() => match node.key() {
                Ok(signer) => {
                    good(&format!("key: {}", signer.address()));
                    own = Some(signer.address());
                }
                Err(error) => found.bad(&format!("key: {error:#}"), KEY),
            },
            None => {}
        }
        if let Some(other) = own.and_then(|own| keys.insert(own, &node.name)) {
            found.bad(
                &format!("key: node {other} has the same"),
                "give each node a key of its own: one of the two would not begin",
            );
        }
        let name = machine(&config, node, &mut found).await;
        if let (Some(muster), Some(holder)) = (&muster, &holder) {
            if let Some(name) = name.as_ref().filter(|name| name.golden) {
                named(node, muster, holder, name, &mut found).await;
            }
            pays(&config, node, muster, holder, name.as_ref(), &mut found).await;
        }
    }
    match found.wrong {
        0 => Ok(()),
        1 => bail!("one thing is wrong"),
        wrong => bail!("{wrong} things are wrong"),
    }
}

/// Whether answers can be shown while they are made, and are read where the nodes say, as far as this machine can tell.
async fn shows(config: &Config, found: &mut Findings) {
    const WITHIN: Duration = Duration::from_secs(10);
    const LEADS: &str = "it must lead to `listen` of [stream]: check the proxy, the name and the firewall";
    const ELSEWHERE: &str = "whether others reach it, only a reader elsewhere can tell";
    let Some(settings) = &config.stream else { return };
    let at = settings.listen;
    let own = match (stream::listen(at).await, Lock::is_taken(&config.home)) {
        (Ok(listener), _) => {
            good(&format!("stream: {at}, for {} readers", settings.listeners));
            Some(listener)
        }
        (Err(_), true) => {
            note(&format!("stream: {at} is in use, and an agent runs with this home"));
            None
        }
        (Err(error), false) => {
            return found.bad(&format!("stream: {error:#}"), "end what listens there, or write another address")
        }
    };
    let Some(url) = &settings.url else {
        return note("stream: without `url` nobody learns from the chain where answers are shown");
    };
    if url.starts_with("http:") {
        note(&format!(
            "stream: {url} is not encrypted: pages over https:// do not read it, and whoever is between can change it"
        ));
    }
    let Some(listener) = own else {
        return match stream::is_served(url).await {
            Ok(()) => good(&format!("stream: an agent answers at {url}; {ELSEWHERE}")),
            Err(said) => found.bad(&format!("stream: no agent answers at {url}: {said}"), LEADS),
        };
    };
    match stream::comes_through(listener, url, WITHIN).await {
        Through::Open => good(&format!("stream: {url} gives what is shown here at once, to this machine; {ELSEWHERE}")),
        Through::Inside => note(&format!(
            "stream: {url} gives what is shown here at once, but is on this machine or a private network: readers stay out of such places \
             unless they are told otherwise"
        )),
        Through::KeptBack => found.bad(
            &format!("stream: {url} gives what is shown here only when all of it is there"),
            "have the proxy pass it on as it comes: `proxy_buffering off` in nginx, `flush_interval -1` in Caddy",
        ),
        Through::Lost(said) => found.bad(&format!("stream: {url} does not give what is shown here: {said}"), LEADS),
    }
}

async fn stores(config: &Config, found: &mut Findings) {
    let (inputs, results) = match shared::stores(config) {
        Ok(stores) => stores,
        Err(error) => return found.bad(&format!("[store]: {error:#}"), "write URLs or directories"),
    };
    // No store has these random bytes; one that answers so is reachable.
    let nobody = digest_of(&rand::random::<[u8; 32]>());
    if let Err(lost) = inputs.get(nobody).await {
        for attempt in lost.attempts {
            match attempt.trouble {
                Trouble::Missing => good(&format!("store of inputs: {}", attempt.store)),
                trouble => found.bad(
                    &format!("store of inputs: {}: {trouble}", attempt.store),
                    "it should answer that it has no such object: check its address, the network, and your rights",
                ),
            }
        }
    }
    // Fresh bytes: leftovers of an earlier run would prove nothing.
    let probe = format!("muster-agent doctor {:032x}", rand::random::<u128>()).into_bytes();
    let bounds = Bounds { timeout: Duration::from_secs(30), ..Bounds::default() };
    let mut taken = false;
    for url in &config.store.put {
        let store = match shared::open(config, std::slice::from_ref(url), bounds) {
            Ok(store) => store,
            Err(error) => return found.bad(&format!("[store]: {error:#}"), "write URLs or directories"),
        };
        let name = store.names().collect::<String>();
        let digest = match store.put(&probe).await {
            Ok((digest, _)) => digest,
            Err(lost) => {
                let remedy = "a PUT must be accepted there: check its address, the network, and your rights";
                found.bad(&format!("store of results: {}", said(&lost.attempts)), remedy);
                continue;
            }
        };
        taken = true;
        match store.get(digest).await {
            Ok(_) => good(&format!("store of results: {name} takes {} bytes and gives them back", probe.len())),
            Err(lost) => {
                let remedy = "objects must be readable where they were put: check your rights";
                found.bad(&format!("store of results: {}", said(&lost.attempts)), remedy);
            }
        }
    }
    if taken {
        published(config, digest_of(&probe), found).await;
        for attempt in results.remove(Object::Plain(digest_of(&probe))).await {
            // A store that did not accept it was reported above.
            if config.store.keep_days > 0.0 && !matches!(attempt.trouble, Trouble::Unreachable(_)) {
                found.bad(
                    &format!("store of results: {}: nothing is removed: {}", attempt.store, attempt.trouble),
                    "allow the agent to DELETE there, or set keep_days = 0 and remove old results otherwise",
                );
            }
        }
    }
}

fn said(attempts: &[Attempt]) -> String {
    attempts.iter().map(|attempt| format!("{}: {}", attempt.store, attempt.trouble)).collect::<Vec<_>>().join("; ")
}

/// Whether an object just put can be read at the published places.
async fn published(config: &Config, digest: B256, found: &mut Findings) {
    let Some(uris) = &config.store.publish else {
        return note("`publish` is not set: nobody learns from the chain where this agent's results are");
    };
    for uri in uris {
        let stores = Stores::published(uri, Bounds { timeout: Duration::from_secs(30), ..Bounds::default() }, true);
        if stores.is_empty() {
            found.bad(&format!("published: {uri}"), "others read from https://... or ipfs+https://gateway alone");
        } else if let Err(lost) = stores.get(digest).await {
            found.bad(
                &format!("published: {lost}"),
                "objects of a store of `put` must be readable there: check its address, and its rights",
            );
        } else {
            good(&format!("published: {uri} has the object"));
        }
    }
}

async fn chain(config: &Config, found: &mut Findings) -> Option<Muster> {
    let settings = Settings { chain: config.chain, ..Settings::default() };
    let endpoints = match Endpoints::new(&config.rpc, settings) {
        Ok(endpoints) => endpoints,
        Err(error) => {
            found.bad(&format!("rpc: {error}"), "write URLs of nodes");
            return None;
        }
    };
    // Questions wait only shortly for a slow node to be compared.
    let head = match endpoints.compare().await {
        Ok(()) => endpoints.head().await,
        Err(error) => Err(error),
    };
    let head = match head {
        Ok(head) => head,
        Err(error) => {
            found.bad(&format!("rpc: {error}"), "check the URLs, and `chain`");
            return None;
        }
    };
    for node in endpoints.standing() {
        match node.fault {
            None => good(&format!("rpc: {}", node.node)),
            Some(fault) => found.bad(&format!("rpc: {}: {fault}", node.node), "mend it, or take it out"),
        }
    }
    if config.rpc.len() < 2 {
        note("rpc: a single node is trusted blindly, and tasks are lost when it is away; two or three are better");
    }
    let own = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let apart = own.abs_diff(Duration::from_secs(head.timestamp));
    if apart > Duration::from_mins(2) {
        note(&format!(
            "the newest block is {} s from this machine's clock; deadlines are reckoned by the chain's",
            apart.as_secs()
        ));
    }
    match Muster::connect(endpoints, config.muster).await {
        Ok(muster) => {
            good(&format!("contract: {}", config.muster));
            Some(muster)
        }
        Err(error) => {
            found.bad(&format!("contract: {error}"), "check `muster`, and that the nodes are of its chain");
            None
        }
    }
}

async fn key(node: &config::Node, muster: &Muster, found: &mut Findings) -> Option<Holder> {
    let chain = muster.endpoints().chain().await.map_err(anyhow::Error::from);
    let signer = match chain {
        Ok(chain) => node.wallet(chain).await,
        Err(error) => Err(error),
    };
    let signer = match signer {
        Ok(signer) => signer,
        Err(error) => {
            found.bad(&format!("key: {error:#}"), KEY);
            return None;
        }
    };
    let own = signer.address();
    good(&format!("key: {own}"));
    let operator = node.operator.unwrap_or(own);
    let number = match muster.read(IMuster::nodeOfCall { who: operator }).await {
        Ok(number) => number,
        Err(error) => {
            found.bad(&format!("node: {error}"), "check the nodes of `rpc`");
            return None;
        }
    };
    if number > 0 {
        if operator != own {
            match muster.read(IMuster::workerOfCall { number }).await {
                Ok(named) if named.worker == own => good(&format!("worker: {own} is named by the operator of node {number}")),
                _ => found.bad(
                    &format!("worker: {own} is not named by the operator of node {number}"),
                    &format!("`muster node worker set {own}`, by {operator}"),
                ),
            }
        }
        match muster.read(IMuster::nodeCall { number }).await {
            Ok(view) if view.status == 0 => {
                found.bad(
                    &format!("node {number}: it has quit"),
                    "join again, by `muster node join` under the name that is said below",
                );
            }
            Ok(view) if view.status == 5 => {
                note(&format!("node {number}: paused; `muster node why` says whether the agent did it, and how it ends"));
            }
            Ok(view) => good(&format!("node {number}: {} open commitments", view.openCommitments)),
            Err(error) => found.bad(&format!("node {number}: {error}"), "check the nodes of `rpc`"),
        }
    } else if node.stake.is_none() || operator != own {
        found.bad(
            &format!("node: {operator} never joined one"),
            "join by `muster node join` under the name that is said below, or set `stake` (with the operator's own key)",
        );
    } else {
        note("node: it joins when the agent starts");
    }
    Some(Holder { own, operator, number })
}

/// Whether the key can pay what the agent will send first, and whether the contract lets it join.
async fn pays(config: &Config, node: &config::Node, muster: &Muster, holder: &Holder, name: Option<&Name>, found: &mut Findings) {
    let asked = async {
        let balance = muster.endpoints().ask::<U256>("eth_getBalance", json!([holder.own, "latest"])).await?;
        let head = muster.endpoints().head().await?;
        let fee = match name.filter(|_| holder.number == 0) {
            Some(Name { name, vram, .. }) => muster.name_fee(name, *vram).await?,
            None => U256::ZERO,
        };
        anyhow::Ok((balance, head, fee, muster.least_stake().await?))
    };
    let (balance, head, fee, least) = match asked.await {
        Ok(told) => told,
        Err(error) => return found.bad(&format!("balance: {error:#}"), "check the nodes of `rpc`"),
    };
    if let Some(Name { name, vram, .. }) = name.filter(|_| !fee.is_zero()) {
        note(&format!("nobody has used the name {name:?} with {vram} GiB, which costs {}", show_amount(fee)));
    }
    if let Some(text) = below(muster, holder, least).await {
        note(&text);
    }
    let stake = holder.joins(node);
    let trouble = stake.and_then(|stake| setup::too_low(stake, least));
    if let Some(trouble) = &trouble {
        found.bad(&format!("stake: {trouble}"), &format!("set stake = \"{}\" or more", show_amount(least)));
    }
    let price = U256::from(head.base_fee_per_gas.unwrap_or_default()) * U256::from(2);
    let gas = price * U256::from(config.gas_per_call) * U256::from(5);
    // One amount, which suffices once the stake does.
    let joining = stake.map_or(U256::ZERO, |stake| stake.max(least) + fee);
    if balance < gas + joining {
        let mut text = format!("balance: {}, where {} is the least", show_amount(balance), show_amount(gas + joining));
        if stake.is_some() {
            text += &format!(": {} of stake, {} for a new name, and gas", show_amount(joining - fee), show_amount(fee));
        }
        return found.bad(&text, &format!("send ether to {}", holder.own));
    }
    good(&format!("balance: {}", show_amount(balance)));
    let (Some(stake), None, Some(Name { name, vram, .. })) = (stake, trouble, name) else { return };
    let tried = match setup::joining(node, name, *vram) {
        Ok((call, _)) => muster.try_as(holder.own, call, stake + fee).await,
        Err(error) => return found.bad(&format!("joining: {error:#}"), "correct `models`"),
    };
    if let Err(error) = tried {
        found.bad(&format!("joining: {error}"), "the agent would send this call when it starts, and it would be refused");
    }
}

/// Whether a joined node's stake is below the least one, which may have been raised since.
async fn below(muster: &Muster, holder: &Holder, least: U256) -> Option<String> {
    let number = Some(holder.number).filter(|number| *number > 0)?;
    let view = muster.read(IMuster::nodeCall { number }).await.ok()?;
    let stake = U256::from(view.stake);
    if view.status == 0 || stake >= least {
        return None;
    }
    let fatal = muster.fatal_slash(stake).await.ok()?;
    Some(format!(
        "stake: {}, and the least is {} now: the node works on, but {fatal} puts it out for good: `muster node raise-stake {}`",
        show_amount(stake),
        show_amount(least),
        show_amount(least - stake).replace(' ', "")
    ))
}

async fn machine(config: &Config, node: &config::Node, found: &mut Findings) -> Option<Name> {
    let gpu = match gpu::find(node).await {
        Ok(gpu) => gpu,
        Err(error) => {
            found.bad(&format!("GPU: {error:#}"), "check `nvidia-smi -L`, or describe the GPU by `gpu_name` and `vram`");
            return None;
        }
    };
    good(&format!("GPU: {} of {} GiB", gpu.name, gpu.vram));
    let place = config.work(node);
    if let Err(error) = work::prepare(&place) {
        found.bad(&format!("work directory: {error:#}"), "make it writable");
        return None;
    }
    models(config, node, found);
    if let Some(owner) = &node.shares {
        good(&format!("executor: that of {owner}, which is tried there"));
        return None;
    }
    if !apart::is_apart(&node.executor) {
        note("executor: it runs as the agent's own user, and could read its keys: set `user` or `container`");
    }
    let vitals = || {
        let gpu = gpu.clone();
        gpu::answered(move || gpu::look(&gpu))
    };
    let before = vitals().await.ok().flatten();
    let mut executor = Executor::new(&node.name, &node.executor);
    executor.see(gpu.uuid.clone());
    match executor.start().await {
        Ok(ready) => {
            good(&format!("executor: {} {} for {}", ready.name, ready.version, ready.kinds.join(", ")));
            if config.stream.is_some() && !ready.streams {
                note("executor: it gives its answers whole, so none is shown while it is made");
            }
        }
        Err(error) => {
            found.bad(&format!("executor: {error:#}"), "run its command by hand; the log has its standard error");
            return None;
        }
    }
    let Some(golden) = node.golden() else {
        note("golden tasks: none; the name that is registered does not tell the stack, and no model is tried");
        return Some(Name { name: gpu::registered(&gpu.name, None), vram: gpu.vram, golden: false });
    };
    let place = beside(&place);
    if let Err(error) = private_directory(&place) {
        found.bad(&format!("work directory: {error}"), "make it writable");
        return None;
    }
    let within = Duration::from_secs(node.executor.golden_within);
    let examined = async {
        let first = golden::answers(&mut executor, &golden, &place, within).await?;
        if let Some(first) = &first {
            golden::again(&mut executor, first, &golden, &place, within).await?;
        }
        anyhow::Ok(first.map(|first| first.stack()))
    };
    let begun = Instant::now();
    let examined = examined.await;
    if let (Some(before), Ok(Some(after))) = (before, vitals().await) {
        match after.used.saturating_sub(before.used) >> 20 {
            0 => note("GPU: the executor's tasks took none of its memory: does it use this card?"),
            taken => good(&format!("GPU: the executor has {taken} MiB of it, of {} MiB", after.total >> 20)),
        }
    }
    match examined {
        Ok(stack) => {
            good(&format!("golden tasks: both times in {} s, starts included", begun.elapsed().as_secs()));
            let name = gpu::registered(&gpu.name, stack.as_deref());
            good(&format!("golden tasks: the name is {name:?}, as two processes of the executor have it"));
            match golden::refused(&mut executor, &golden, &held(config, node), &place, within).await {
                Ok(refused) => refused.iter().for_each(|(model, reason)| {
                    found.bad(
                        &format!("model: the executor runs no golden task that needs {model}: {reason}"),
                        "take it out of `models`, or start an executor that runs it: the node would be given such tasks, and fail",
                    );
                }),
                Err(error) => found.bad(&format!("model: {error:#}"), "the executor must answer golden tasks with each model"),
            }
            Some(Name { name, vram: gpu.vram, golden: true })
        }
        Err(error) => {
            found.bad(&format!("golden tasks: {error:#}"), "the executor must answer them, each time alike");
            None
        }
    }
}

/// The models of all nodes that use a node's executor, as tasks name them.
fn held(config: &Config, node: &config::Node) -> BTreeSet<String> {
    let names = config.names();
    let ids = config.nodes.iter().filter(|other| other.card() == node.name).filter_map(|other| other.model_ids().ok()).flatten();
    ids.map(|id| names.get(&id).cloned().unwrap_or_else(|| format!("{id:#012x}"))).collect()
}

/// Whether a node's models are there, or can be downloaded.
fn models(config: &Config, node: &config::Node, found: &mut Findings) {
    if node.download.is_some() {
        return;
    }
    let Some(hub) = &config.hub else {
        return note("models: without `download` or [hub], tasks that need a model which is not there are reported as errors");
    };
    for model in node.models.iter().filter(|model| !model.starts_with("0x")) {
        match hub.named(model) {
            Ok(named) if hub.place(&named).is_dir() => good(&format!("model: {model} at {}", &named.commit[..8])),
            Ok(_) => found.bad(&format!("model: {model} is not there"), &format!("muster-agent fetch {model}")),
            Err(error) => found.bad(&format!("model: {error:#}"), "write its commit into [hub.revisions]"),
        }
    }
    match hub.models() {
        Ok(kept) => {
            let taken: u64 = kept.iter().map(|model| model.bytes).sum();
            good(&format!("hub: {} models of {} MiB, of {} MiB at most", kept.len(), taken >> 20, hub.most >> 20));
        }
        Err(error) => found.bad(&format!("hub: {error:#}"), "make `cache` writable"),
    }
}

/// The parts of an operator's terms that the contract cannot keep.
async fn terms(node: &config::Node, muster: &Muster, found: &mut Findings) {
    if node.terms.is_empty() {
        return;
    }
    let least = match muster.parameter(parameter::MIN_PRICE).await {
        Ok(least) => least,
        Err(error) => return found.bad(&format!("terms: {error}"), "check the nodes of `rpc`"),
    };
    let asked = (0..3).map(|kind| node.terms.least(kind)).max().unwrap_or_default();
    if node.terms.policies.is_none() && asked <= least {
        return good(&format!("terms: every task of a single node pays them, {} a second at least", show_amount(least)));
    }
    note(&format!(
        "terms: the contract asks no node for its terms, and lets tasks pay from {} a second on. The agent pauses the node while one \
         waits that it would not take. Draws that are due are made before any pause, so the first such task may be the node's",
        show_amount(least)
    ));
}

/// Whether the node is registered with its real name and memory.
async fn named(node: &config::Node, muster: &Muster, holder: &Holder, name: &Name, found: &mut Findings) {
    let (number, Name { name, vram, .. }) = (holder.number, name);
    if number == 0 {
        if node.stake.is_none() {
            let mut line = format!("to join: muster node join --gpu '{name}' --vram {vram}");
            for model in &node.models {
                line += " --model ";
                line += model;
            }
            note(&line);
        }
        return;
    }
    let Ok(view) = muster.read(IMuster::nodeCall { number }).await else { return };
    let Ok(registered) = muster.read(IMuster::gpuNameCall { group: view.gpu }).await else { return };
    if registered != *name || view.vram != *vram {
        let text =
            format!("node {number} is registered as {registered:?} with {} GiB, and is {name:?} with {vram} GiB", view.vram);
        found.bad(
            &text,
            "its answers may not agree with its group's: put the stack back as it was; a name cannot be changed, so a node that is to \
             have another quits and joins again, with another stake until its own is returned",
        );
    }
}
