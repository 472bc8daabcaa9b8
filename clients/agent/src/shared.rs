//! State shared by the nodes of an agent.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use alloy::primitives::Address;
use anyhow::Result;
use muster_client::{Bounds, Endpoints, Event, IMuster, Muster, Seed, Settings, Store, Stores, Trouble};
use serde_json::json;
use tokio::sync::{watch, Notify};

use crate::chain::Chain;
use crate::config::{self, Config};
use crate::executor::{Card, Executor};
use crate::golden::Proof;
use crate::journal::Journal;
use crate::metrics::{Metrics, GRAVE, PROPOSAL};
use crate::stream::Streams;
use crate::{clock, say};

/// The shortest time between two posts of the same alert.
const REPEAT: Duration = Duration::from_mins(10);

/// The tasks whose creation is remembered, the newest.
const CREATED: usize = 4_096;

/// How often expired results are looked for.
const SWEEP: Duration = Duration::from_hours(1);
/// Seconds after which a result that a store still has, since it was away, is given up.
const LATE: u64 = 7 * 86_400;

/// The wait for other stores after one has a result; then the node answers.
const GRACE: Duration = Duration::from_secs(5);

/// A node's waker, and the tasks that concern it.
type Watched = (Arc<Notify>, BTreeSet<u64>);

/// State that all nodes use.
pub struct Shared {
    pub config: Config,
    pub chain: Chain,
    pub chain_id: u64,
    pub journal: Journal,
    /// The root of the salts.
    pub seed: Seed,
    pub inputs: Stores,
    pub results: Stores,
    pub metrics: Arc<Metrics>,
    /// Where answers are shown while they are made, if they are.
    pub streams: Option<Arc<Streams>>,
    /// Names of models by their ids.
    pub names: BTreeMap<u64, String>,
    /// The nodes' GPU groups.
    groups: Mutex<HashMap<u32, u32>>,
    /// The wakers by node, and the tasks of their jobs.
    watched: Mutex<HashMap<u32, Watched>>,
    /// Whether the agent was asked to end.
    pub draining: watch::Receiver<bool>,
    /// The wakers of nodes that need to know of every new task.
    choosy: Mutex<Vec<Arc<Notify>>>,
    alerted: Mutex<HashMap<String, Instant>>,
    /// How tasks were created, from events.
    created: Mutex<BTreeMap<u64, IMuster::TaskCreated>>,
    /// Rings when announced events must be read at once.
    pub urgent: Notify,
    /// The executors, by the names of their cards.
    cards: Mutex<HashMap<String, Arc<Card>>>,
    /// The executors' last answers to golden tasks, by the names of their cards.
    proofs: Mutex<HashMap<String, Proof>>,
}

impl Shared {
    /// Connects, and opens the journal.
    pub async fn open(config: Config, draining: watch::Receiver<bool>) -> Result<Arc<Self>> {
        let settings = Settings { chain: config.chain, ..Settings::default() };
        let endpoints = Endpoints::new(&config.rpc, settings)?;
        let chain_id = endpoints.chain().await?;
        let muster = Muster::connect(endpoints, config.muster).await?;
        muster.endpoints().listen(config.ws.as_deref(), config.muster)?;
        let genesis = muster.endpoints().genesis().await?;
        let journal = Journal::open(&config.home, chain_id, config.muster, genesis)?;
        let seed = seed(&config, &journal)?;
        let (inputs, results) = stores(&config)?;
        let chain = Chain { muster, from_block: config.from_block };
        let (watched, alerted, created) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (names, metrics, cards) = (config.names(), Arc::<Metrics>::default(), Mutex::default());
        let streams = config.stream.as_ref().map(|stream| Arc::new(Streams::new(stream.listeners, metrics.clone())));
        let aside = journal.aside.clone();
        let shared = Arc::new(Self {
            config,
            chain,
            chain_id,
            journal,
            seed,
            inputs,
            results,
            metrics,
            streams,
            names,
            groups: Mutex::default(),
            watched,
            draining,
            choosy: Mutex::default(),
            alerted,
            created,
            urgent: Notify::new(),
            cards,
            proofs: Mutex::default(),
        });
        if let Some(aside) = aside {
            shared.alert("journal", "journal", &aside);
        }
        Ok(shared)
    }

    /// A model's name for executors and people.
    pub fn model(&self, id: u64) -> String {
        self.names.get(&id).cloned().unwrap_or_else(|| format!("{id:#012x}"))
    }

    /// Remembers how a task was created.
    pub fn remember(&self, event: &Event) {
        let Event::TaskCreated(created) = event else { return };
        self.ring();
        let mut known = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(created.id, created.clone());
        while known.len() > CREATED {
            known.pop_first();
        }
    }

    /// Wakes the nodes that choose among tasks by their prices.
    pub fn ring(&self) {
        self.choosy.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|bell| bell.notify_one());
    }

    /// Forgets how tasks were created: after a reorganisation their numbers may be others'.
    pub fn forget_created(&self) {
        self.created.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Forgets how a task was created if it is another's now: the reader may not have come to the reorganisation yet.
    pub fn check_created(&self, id: u64, creator: Address) {
        let mut known = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(&id).is_some_and(|created| created.creator != creator) {
            known.remove(&id);
        }
    }

    /// How a task was created, according to the chain.
    pub async fn created(&self, id: u64) -> Result<IMuster::TaskCreated> {
        let known = self.created.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        match known {
            Some(created) => Ok(created),
            None => self.chain.created(id).await,
        }
    }

    /// Where a creator's inputs can be: in the stores that they publish, then in the configured ones.
    pub async fn inputs_of(&self, creator: Address) -> Stores {
        let store = &self.config.store;
        let timeout = Duration::from_secs(store.published_within);
        let bounds = Bounds { bytes: store.longest as usize, timeout };
        match self.chain.muster.stores_of(creator).await {
            Ok(published) => store.readable(&published, bounds).then(&self.inputs),
            // The configured ones may have it.
            Err(error) => {
                say!("which stores {creator} publishes is not known: {error}");
                self.inputs.clone()
            }
        }
    }

    /// The time of the newest block that was seen.
    pub fn chain_time(&self) -> Option<u64> {
        self.chain.muster.endpoints().pulse().head().map(|head| head.timestamp)
    }

    /// Removes expired results, now and every hour.
    pub async fn sweep(self: Arc<Self>) {
        loop {
            // Without it nothing is known to be over.
            let _ = self.chain.head().await;
            if let Err(error) = sweep(&self.results, &self.journal, clock::earliest(self.chain_time())).await {
                say!("{error:#}");
            }
            tokio::time::sleep(SWEEP).await;
        }
    }

    /// A node's executor, which others may share.
    pub fn card(&self, node: &config::Node) -> Arc<Card> {
        let mut cards = self.cards.lock().unwrap_or_else(PoisonError::into_inner);
        let longest = self.config.store.longest;
        let new = || Arc::new(Card::new(Executor::new(node.card(), &node.executor).at_most(longest)));
        cards.entry(node.card().into()).or_insert_with(new).clone()
    }

    /// The executors' last answers to golden tasks, by the names of their cards.
    pub fn proofs(&self) -> MutexGuard<'_, HashMap<String, Proof>> {
        self.proofs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a node woken by events that concern it from now on.
    pub fn watch(&self, node: u32, bell: &Arc<Notify>) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.entry(node).or_insert_with(|| (bell.clone(), BTreeSet::new()));
    }

    /// Has a node woken by every new task, too: for one that does not take all tasks.
    pub fn watch_created(&self, bell: &Arc<Notify>) {
        self.choosy.lock().unwrap_or_else(PoisonError::into_inner).push(bell.clone());
    }

    /// Has a node woken by events that concern these tasks, too.
    pub fn watch_tasks(&self, node: u32, tasks: BTreeSet<u64>) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, watched)) = watched.get_mut(&node) {
            *watched = tasks;
        }
    }

    /// Notes the GPU group that a node has joined as.
    pub fn is_of(&self, node: u32, group: u32) {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).insert(node, group);
    }

    /// Whether one of this agent's nodes is of a GPU group.
    pub fn has_group(&self, group: u32) -> bool {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).values().any(|own| *own == group)
    }

    /// Whether it is one of this agent's nodes.
    pub fn has(&self, node: u32) -> bool {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&node)
    }

    /// Wakes the nodes that an event, or an event of their tasks, concerns.
    pub fn wake(&self, nodes: &BTreeSet<u32>, tasks: &BTreeSet<u64>) {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        for (node, (bell, own)) in watched.iter() {
            if nodes.contains(node) || !own.is_disjoint(tasks) {
                bell.notify_one();
            }
        }
    }

    /// Reports an urgent problem: in the log, and to the webhook.
    pub fn alert(self: &Arc<Self>, node: &str, what: &str, text: &str) {
        tracing::warn!(node, alert = what, "{node}: {text}");
        self.metrics.count_alert(what);
        {
            let mut alerted = self.alerted.lock().unwrap_or_else(PoisonError::into_inner);
            // Each proposal is another one, and so is each node that is slashed.
            let key = if what == PROPOSAL || GRAVE.contains(&what) { text.to_string() } else { format!("{node} {what}") };
            if alerted.get(&key).is_some_and(|last| last.elapsed() < REPEAT) {
                return;
            }
            alerted.insert(key, Instant::now());
        }
        let Some(url) = self.config.webhook.clone() else { return };
        let body = json!({ "text": format!("muster-agent, {node}: {text}"), "node": node, "what": what });
        tokio::spawn(async move {
            for rest in [1, 5, 30] {
                match muster_client::post_json(&url, &body).await {
                    Ok(()) => return,
                    Err(error) => tracing::warn!("the webhook: {error}"),
                }
                tokio::time::sleep(Duration::from_secs(rest)).await;
            }
        });
    }
}

/// The seed, created at the first start. Warns if it is not the one that the journal knows: only the journal can reveal commitments
/// under the former one.
fn seed(config: &Config, journal: &Journal) -> Result<Seed> {
    const FACT: &str = "seed";
    let path = config.seed();
    let seed = match Seed::read(&path)? {
        Some(seed) => seed,
        None => {
            let seed = Seed::create(&path)?;
            tracing::warn!("a new seed is in {} ({}): keep a copy elsewhere", path.display(), seed.fingerprint());
            seed
        }
    };
    let (known, own) = (journal.fact(FACT)?, seed.fingerprint());
    if let Some(known) = known.filter(|known| *known != own) {
        tracing::warn!("the seed is {own}, and was {known}: keep this machine's journal until nothing is open");
    }
    journal.set_fact(FACT, &own)?;
    Ok(seed)
}

/// Removes expired results. One that a store is away for is removed later.
async fn sweep(results: &Stores, journal: &Journal, now: u64) -> Result<()> {
    let given_up = journal.outdated(now.saturating_sub(LATE))?;
    let outdated = journal.outdated(now)?;
    let failures = results.remove_all(&outdated).await;
    for (object, failed) in outdated.into_iter().zip(failures) {
        if !given_up.contains(&object) && failed.iter().any(|attempt| matches!(attempt.trouble, Trouble::Unreachable(_))) {
            continue;
        }
        for attempt in &failed {
            say!("store {} keeps a result longer than it was to: {}", attempt.store, attempt.trouble);
        }
        // A store that refuses would do so every hour.
        journal.removed(object)?;
    }
    Ok(())
}

/// The stores of inputs, and those of results.
pub fn stores(config: &Config) -> Result<(Stores, Stores)> {
    let bounds = Bounds { bytes: config.store.longest as usize, ..Bounds::default() };
    Ok((open(config, &config.store.get, bounds)?, open(config, &config.store.put, bounds)?.with_grace(GRACE)))
}

/// Stores of the configuration, with their headers.
pub fn open(config: &Config, urls: &[String], bounds: Bounds) -> Result<Stores> {
    let stores = urls.iter().map(|url| Ok(Store::open_with(url, &config.store.headers(url)?, bounds)?));
    Ok(stores.collect::<Result<Vec<_>>>()?.into())
}

#[cfg(test)]
mod tests {
    use muster_client::Object;

    use super::*;

    #[tokio::test]
    async fn a_result_is_removed_once_its_store_is_back() {
        let place = tempfile::tempdir().unwrap();
        let journal = Journal::open(place.path(), 1, Address::ZERO, None).unwrap();
        let folder = place.path().join("store").display().to_string();
        let (here, day) = (Stores::open(&[&folder], Bounds::default()).unwrap(), 86_400);
        let (digest, _) = here.put(b"a result").await.unwrap();
        // Nothing listens there.
        let away = Stores::open(&["http://127.0.0.1:1"], Bounds::default()).unwrap();
        journal.keep(Object::Plain(digest), 1.0, 0).unwrap();
        sweep(&away, &journal, day).await.unwrap();
        sweep(&here, &journal, day + 3_600).await.unwrap();
        assert!(here.get(digest).await.is_err());
        assert!(journal.outdated(u64::MAX >> 1).unwrap().is_empty());
        // One that never comes back is asked for a week.
        journal.keep(Object::Plain(digest), 1.0, 0).unwrap();
        sweep(&away, &journal, day + LATE - 1).await.unwrap();
        assert_eq!(journal.outdated(day).unwrap(), [Object::Plain(digest)]);
        sweep(&away, &journal, day + LATE).await.unwrap();
        assert!(journal.outdated(day).unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_store_that_does_not_answer_delays_no_removal_from_another() {
        let place = tempfile::tempdir().unwrap();
        let journal = Journal::open(place.path(), 1, Address::ZERO, None).unwrap();
        let folder = place.path().join("store").display().to_string();
        let here = Stores::open(&[&folder], Bounds::default()).unwrap();
        let mut results = Vec::new();
        for i in 0..20 {
            results.push(here.put(format!("result {i}").as_bytes()).await.unwrap().0);
            journal.keep(Object::Plain(results[i]), 1.0, 0).unwrap();
        }
        // Takes connections, and answers nothing.
        let mute = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", mute.local_addr().unwrap());
        let both =
            Stores::open(&[url.as_str(), &folder], Bounds { timeout: Duration::from_millis(100), ..Bounds::default() }).unwrap();
        sweep(&both, &journal, 86_400).await.unwrap();
        for result in results {
            assert!(here.get(result).await.is_err());
        }
        assert_eq!(journal.outdated(86_400).unwrap().len(), 20, "the other may have them still");
        let mut asked = 0;
        while tokio::time::timeout(Duration::from_millis(100), mute.accept()).await.is_ok() {
            asked += 1;
        }
        assert_eq!(asked, 3);
    }
}
