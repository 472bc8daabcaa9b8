//! `muster-agent doctor`: finds problems that would stop the agent, with a remedy for each.

use std::path::Path;
use std::time::{Duration, Instant};

use alloy::primitives::{B256, U256};
use anyhow::{bail, Result};
use muster_client::observe::print;
use muster_client::{
    digest_of, parameter, private_directory, show_amount, Attempt, Bounds, Endpoints, Error, IMuster, Lock, Muster, Object, Seed,
    Settings, Stores, Trouble,
};
use serde_json::json;

use crate::config::{self, Config};
use crate::executor::Executor;
use crate::stream::{self, Through};
use crate::{apart, disk, golden, gpu, journal, probes, shared, work};

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
    good(&format!("configuration: {} nodes", config.nodes.len()));
    let home = private_directory(&config.home).map_err(anyhow::Error::from);
    match home.and_then(|()| Ok(tempfile::tempfile_in(&config.home)?)) {
        Ok(_) => good(&format!("home: {}", config.home.display())),
        Err(error) => found.bad(&format!("home: {error:#}"), "make it writable for the user that the agent runs as"),
    }
    match journal::look(&config.home) {
        Ok(None) => {}
        Ok(Some(damage)) => found.bad(
            &format!("journal: journal.sqlite in {} is damaged: {damage}", config.home.display()),
            "check the disk; the agent sets it aside at its next start, and resumes open jobs from the chain",
        ),
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
    match disk::free(&config) {
        Ok(free) if free >= config.least_free => good(&format!("disk: {} MiB free", free >> 20)),
        Ok(free) => found.bad(
            &format!("disk: {} MiB free, where {} MiB must be", free >> 20, config.least_free >> 20),
            "make room, or lower `least_free`: nodes are paused meanwhile",
        ),
        Err(error) => found.bad(&format!("disk: {error:#}"), "check `home` and the stores that are directories"),
    }
    // Held meanwhile: [stream] must not have the same address.
    let mut held = None;
    if let Some(at) = config.listen {
        match (probes::listen(at).await, Lock::take(&config.home)) {
            (Ok(listener), _) => {
                good(&format!("listen: {at}"));
                held = Some(listener);
            }
            // It is the agent itself that listens there.
            (Err(_), Err(Error::InUse { .. })) => note(&format!("listen: {at} is in use, and an agent runs with this home")),
            (Err(error), _) => {
                found.bad(&format!("listen: {error:#}"), "end the program that listens there, or write another address");
            }
        }
    }
    shows(&config, &mut found).await;
    drop(held);
    stores(&config, &mut found).await;
    let muster = chain(&config, &mut found).await;
    for node in &config.nodes {
        print(format_args!("node {}", node.name));
        match &muster {
            Some(muster) => {
                key(&config, node, muster, &mut found).await;
                terms(node, muster, &mut found).await;
            }
            // Checks without a chain.
            None if node.signer.is_none() => match node.key() {
                Ok(signer) => good(&format!("key: {}", signer.address())),
                Err(error) => found.bad(&format!("key: {error:#}"), KEY),
            },
            None => {}
        }
        machine(&config, node, muster.as_ref(), &mut found).await;
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
    let own = match (stream::listen(at).await, Lock::take(&config.home)) {
        (Ok(listener), _) => {
            good(&format!("stream: {at}, for {} readers", settings.listeners));
            Some(listener)
        }
        (Err(_), Err(Error::InUse { .. })) => {
            note(&format!("stream: {at} is in use, and an agent runs with this home"));
            None
        }
        (Err(error), _) => return found.bad(&format!("stream: {error:#}"), "end what listens there, or write another address"),
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
        if uri == "ipfs://" {
            note("published: ipfs:// is read by each reader's own gateway");
            continue;
        }
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
    let head = match endpoints.head().await {
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

async fn key(config: &Config, node: &config::Node, muster: &Muster, found: &mut Findings) {
    let chain = muster.endpoints().chain().await.map_err(anyhow::Error::from);
    let signer = match chain {
        Ok(chain) => node.wallet(chain).await,
        Err(error) => Err(error),
    };
    let signer = match signer {
        Ok(signer) => signer,
        Err(error) => return found.bad(&format!("key: {error:#}"), KEY),
    };
    good(&format!("key: {}", signer.address()));
    let operator = node.operator.unwrap_or(signer.address());
    let number = match muster.read(IMuster::nodeOfCall { who: operator }).await {
        Ok(number) => number,
        Err(error) => return found.bad(&format!("node: {error}"), "check the nodes of `rpc`"),
    };
    if number > 0 {
        if operator != signer.address() {
            let own = signer.address();
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
    } else if node.stake.is_none() || operator != signer.address() {
        found.bad(
            &format!("node: {operator} never joined one"),
            "join by `muster node join` under the name that is said below, or set `stake` (with the operator's own key)",
        );
    } else {
        note("node: it joins when the agent starts");
    }
    let balance = muster.endpoints().ask::<U256>("eth_getBalance", json!([signer.address(), "latest"])).await;
    let head = muster.endpoints().head().await;
    if let (Ok(balance), Ok(head)) = (balance, head) {
        let price = U256::from(head.base_fee_per_gas.unwrap_or_default()) * U256::from(2);
        let gas = price * U256::from(config.gas_per_call) * U256::from(5);
        let stake = if number == 0 { node.stake.unwrap_or_default() } else { U256::ZERO };
        if balance < gas + stake {
            let text = format!("balance: {}, where {} is the least", show_amount(balance), show_amount(gas + stake));
            found.bad(&text, &format!("send ether to {}", signer.address()));
        } else {
            good(&format!("balance: {}", show_amount(balance)));
        }
    }
}

async fn machine(config: &Config, node: &config::Node, muster: Option<&Muster>, found: &mut Findings) {
    let gpu = match gpu::find(node) {
        Ok(gpu) => gpu,
        Err(error) => {
            return found.bad(&format!("GPU: {error:#}"), "check `nvidia-smi -L`, or describe the GPU by `gpu_name` and `vram`")
        }
    };
    good(&format!("GPU: {} of {} GiB", gpu.name, gpu.vram));
    let place = config.work(node);
    if let Err(error) = work::prepare(&place) {
        return found.bad(&format!("work directory: {error:#}"), "make it writable");
    }
    models(config, node, found);
    if let Some(owner) = &node.shares {
        return good(&format!("executor: that of {owner}, which is tried there"));
    }
    if !apart::is_apart(&node.executor) {
        note("executor: it runs as the agent's own user, and could read its keys: set `user` or `container`");
    }
    let before = gpu::look(&gpu).ok().flatten();
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
            return found.bad(&format!("executor: {error:#}"), "run its command by hand; the log has its standard error")
        }
    }
    let Some(golden) = node.golden() else {
        return note("golden tasks: none; the name that is registered does not tell the stack");
    };
    // Apart from the files of an agent that may be running.
    let place = place.join("doctor");
    if let Err(error) = private_directory(&place) {
        return found.bad(&format!("work directory: {error}"), "make it writable");
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
    if let (Some(before), Ok(Some(after))) = (before, gpu::look(&gpu)) {
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
            if let Some(muster) = muster {
                named(node, muster, &name, gpu.vram, found).await;
            }
        }
        Err(error) => found.bad(&format!("golden tasks: {error:#}"), "the executor must answer them, each time alike"),
    }
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
async fn named(node: &config::Node, muster: &Muster, name: &str, vram: u16, found: &mut Findings) {
    let own = async {
        let chain = muster.endpoints().chain().await.ok()?;
        Some(node.wallet(chain).await.ok()?.address())
    };
    let operator = match node.operator {
        Some(operator) => Some(operator),
        None => own.await,
    };
    let Some(operator) = operator else { return };
    let Ok(number) = muster.read(IMuster::nodeOfCall { who: operator }).await else { return };
    if number == 0 {
        if node.stake.is_none() {
            note(&format!("to join: muster node join --gpu '{name}' --vram {vram}, and --model for each that it holds"));
        }
        return name_is_paid(node, muster, operator, name, vram, found).await;
    }
    let Ok(view) = muster.read(IMuster::nodeCall { number }).await else { return };
    let Ok(registered) = muster.read(IMuster::gpuNameCall { group: view.gpu }).await else { return };
    if registered != name || view.vram != vram {
        let text =
            format!("node {number} is registered as {registered:?} with {} GiB, and is {name:?} with {vram} GiB", view.vram);
        found.bad(
            &text,
            "its answers may not agree with its group's: put the stack back as it was; a name cannot be changed, so a node that is to \
             have another quits and joins again, with another stake until its own is returned",
        );
    }
}

/// Whether the account that will join can pay for a new name, beside the stake.
async fn name_is_paid(
    node: &config::Node,
    muster: &Muster,
    operator: alloy::primitives::Address,
    name: &str,
    vram: u16,
    found: &mut Findings,
) {
    let Ok(fee) = muster.name_fee(name, vram).await else { return };
    let Ok(balance) = muster.endpoints().ask::<U256>("eth_getBalance", json!([operator, "latest"])).await else { return };
    if fee.is_zero() {
        return;
    }
    let text = format!("nobody has used the name {name:?} with {vram} GiB, which costs {}", show_amount(fee));
    let Some(stake) = node.stake else { return note(&text) };
    if balance < stake + fee {
        let remedy = format!("send ether to {operator}: {} beside gas, stake included", show_amount(stake + fee));
        found.bad(&text, &remedy);
    } else {
        note(&text);
    }
}
