//! The conditions for a node to work: its key, its GPU, an executor with the right answers, and its place in the network.

use std::sync::Arc;
use std::time::Duration;

use alloy::primitives::{Address, U256};
use anyhow::{bail, ensure, Context, Result};
use muster_client::{pause, show_amount, Account, IMuster, Private, Secrets, Sender, Sending};
use muster_core::record::CALL_MODELS;

use crate::answers::Answers;
use crate::executor::{Card, Locked};
use crate::golden::{Answered, Proof};
use crate::gpu::{self, Gpu};
use crate::journal::Job;
use crate::shared::Shared;
use crate::{config, golden, pauses, say, work};

/// A node that can begin: it is joined. Its GPU and its executor are checked afterwards, because its commitments
/// must be revealed even if these have changed.
pub struct Ready {
    pub answers: Answers,
    /// The key for inputs sealed to the node.
    pub private: Arc<Private>,
    pub settings: config::Node,
    /// Its GPU group.
    pub group: u32,
    /// The GPU's registered name, with the stack.
    pub registered: String,
    /// Its registered memory, in GiB.
    pub vram: u16,
    pub executor: Arc<Card>,
}

/// The key's account, and the node that it answers for.
pub async fn account(shared: &Shared, node: &config::Node) -> Result<(Account, Secrets, Address)> {
    let (chain, contract) = (shared.chain_id, shared.config.muster);
    let wallet = node.wallet(chain).await?;
    let operator = node.operator.unwrap_or(wallet.address());
    let mut secrets = Secrets::new(&shared.seed, wallet.address(), chain, contract);
    if node.signer.is_none() {
        secrets = secrets.and_of(&node.key()?, chain, contract);
    }
    let sending = Sending {
        fee_ceiling: shared.config.max_gas_price.map(|price| price.saturating_to()),
        patience: Duration::from_secs(30),
        // The operator's own command may have used the number of an answer, which must be sent again before its deadline.
        missing: Duration::from_secs(10),
        // The chain shows what was done, and refuses what was done already.
        set_aside: true,
        ..Sending::default()
    };
    let muster = shared.chain.muster.clone();
    let place = shared.config.home.join("transactions");
    let sender = Sender::open(muster.endpoints().clone(), wallet, &place, sending).await?;
    Ok((Account::new(muster, sender), secrets, operator))
}

/// Prepares a node until it can begin; joins it, if configured and it never joined.
pub async fn ready(shared: &Arc<Shared>, settings: &config::Node) -> Result<Ready> {
    let (account, secrets, operator) = account(shared, settings).await?;
    for file in account.sender().damaged().await {
        let text = format!("a transaction was damaged, and lies in {} now: what is open comes from the chain", file.display());
        shared.alert(&settings.name, "journal", &text);
    }
    work::prepare(&shared.config.work(settings))?;
    let executor = shared.card(settings);
    let owed = owed(shared, account.address())?;
    let number = match (shared.chain.node_of(operator).await?, owed) {
        (0, Some(number)) => number,
        (0, None) => {
            let Examined { gpu, name, .. } = examine(shared, settings, &executor, true).await?;
            join(shared, settings, &account, operator, &name, gpu.vram).await?
        }
        (number, _) => number,
    };
    let muster = &shared.chain.muster;
    if operator != account.address() {
        match employ(shared, settings, &account, number).await {
            // It still reveals its commitments.
            Err(error) if owed == Some(number) => tracing::warn!("{}: {error:#}", settings.name),
            employed => employed?,
        }
    }
    shared.journal.set_fact(&node_of(account.address()), &number.to_string())?;
    work::clean(&shared.config.work(settings), number, &shared.journal)?;
    recall(shared, settings, number).await?;
    let private = Arc::new(Private::of_seed(&shared.seed, operator));
    publish(shared, settings, &account, operator, &private).await;
    let view = muster.read(IMuster::nodeCall { number }).await?;
    let registered = muster.read(IMuster::gpuNameCall { group: view.gpu }).await?;
    say!("{}: node {number} of {}, as {registered:?} with {} GiB", settings.name, view.operator, view.vram);
    let answers = Answers {
        shared: shared.clone(),
        name: settings.name.clone(),
        number,
        account,
        secrets: Arc::new(secrets),
        missing: std::sync::Mutex::default(),
        late: std::sync::Mutex::default(),
        told: std::sync::Mutex::default(),
    };
    Ok(Ready { answers, private, settings: settings.clone(), group: view.gpu, registered, vram: view.vram, executor })
}

/// A node's GPU, its name, and whether it has golden tasks.
pub struct Examined {
    pub gpu: Gpu,
    /// The name to register it under.
    pub name: String,
    /// Whether there are golden tasks.
    pub golden: bool,
}

/// The name of the fact that tells for which node a key has answered.
fn node_of(account: Address) -> String {
    format!("node of {account:#x}")
}

/// The node for which a key has unrevealed commitments, or may have, whether it still works for it or not.
fn owed(shared: &Shared, account: Address) -> Result<Option<u32>> {
    let Some(number) = shared.journal.fact(&node_of(account))?.and_then(|number| number.parse().ok()) else { return Ok(None) };
    let open = shared.journal.open_jobs(number)?;
    Ok(open.iter().any(Job::may_owe_reveal).then_some(number))
}

/// Records in a new journal why an agent paused the node, according to the chain, and whether the node was slashed since it was
/// last resumed.
async fn recall(shared: &Shared, settings: &config::Node, number: u32) -> Result<()> {
    let (known, journal, chain) = (format!("known {number}"), &shared.journal, &shared.chain);
    let status = chain.muster.read(IMuster::nodeCall { number }).await?.status;
    let paused = matches!(status, 3 | 5);
    if journal.fact(&known)?.is_some() {
        if paused && pauses::doubt(chain, journal, number).await? {
            say!("{}: the journal is older than the present pause of node {number}, which is its operator's", settings.name);
        }
        return Ok(());
    }
    let paused = if paused { chain.pause_of(number).await? } else { None };
    let mut reasons = paused.and_then(|(input, _)| pause::reasons(&input)).unwrap_or_default();
    if !reasons.is_empty() {
        pauses::is_ours(journal, number)?;
    }
    reasons.retain(|why| ![pause::DRAIN, pause::FAILURES].contains(&why.as_str()));
    if chain.is_slashed(number).await? {
        journal.set_slashed(number)?;
        reasons.push(pause::JUDGED.into());
    }
    for why in reasons {
        if journal.pause(number, &why)? {
            say!("{}: the chain says why it is to be paused: {why}: {}", settings.name, pause::explain(&why));
        }
    }
    journal.set_fact(&known, "yes")
}

/// Finds the GPU, restarts the executor, and runs the golden tasks; `twice` before anything is paid for the name. Answers that the same
/// process has just given count, too: loading a large model for each of the nodes that share it would take minutes.
pub async fn examine(shared: &Shared, node: &config::Node, executor: &Card, twice: bool) -> Result<Examined> {
    let gpu = gpu::find(node).await?;
    let mut executor = executor.lock().await;
    let known = shared.proofs().get(node.card()).and_then(|proof| proof.still(twice, node.shares.is_some(), &mut executor));
    let answered = match known {
        Some(known) => Some(known),
        None => {
            let answered = answers(shared, node, &gpu, &mut executor, twice).await;
            if answered.is_err() {
                // The next test begins with a new one, also where another node owns it.
                executor.stop();
            }
            answered?
        }
    };
    let (golden, stack) = (answered.is_some(), answered.map(|answered| answered.stack()));
    let name = gpu::registered(&gpu.name, stack.as_deref());
    say!("{}: {name} of {} GiB{}", node.name, gpu.vram, gpu.uuid.as_deref().map(|id| format!(", {id}")).unwrap_or_default());
    Ok(Examined { gpu, name, golden })
}

/// Restarts the executor, and runs the golden tasks, if there are any.
async fn answers(
    shared: &Shared,
    node: &config::Node,
    gpu: &Gpu,
    executor: &mut Locked<'_>,
    twice: bool,
) -> Result<Option<Answered>> {
    // Among nodes that share it, the one that owns it restarts it.
    if node.shares.is_none() {
        executor.stop();
    }
    executor.see(gpu.uuid.clone());
    executor.start().await?;
    let Some(place) = node.golden() else { return Ok(None) };
    let (work, within) = (shared.config.work(node), Duration::from_secs(node.executor.golden_within));
    let Some(first) = golden::answers(executor, &place, &work, within).await? else { return Ok(None) };
    if twice {
        golden::again(executor, &first, &place, &work, within).await?;
    }
    let at_once = executor.at_once();
    if at_once > 1 {
        let alike = golden::together(executor, &first, &place, &work, within).await?;
        executor.set_alike(alike);
        executor.start().await?;
        let but = if alike { "and answers alike then" } else { "but one alone whose answer is compared with others'" };
        say!("{}: the executor takes {at_once} tasks at a time, {but}", node.name);
    }
    if let Some(proof) = Proof::new(&first, twice, executor) {
        shared.proofs().insert(node.card().into(), proof);
    }
    Ok(Some(first))
}

/// Publishes on the chain where the results are, unless it is there already. A node works without it, since results can also be
/// found in other ways.
async fn publish(shared: &Arc<Shared>, settings: &config::Node, account: &Account, operator: Address, private: &Private) {
    let Some(uris) = shared.config.published(private) else { return };
    let said = async {
        // The contract keeps a worker's entry under its operator's account.
        if shared.chain.muster.stores_of(operator).await? == uris {
            return anyhow::Ok(false);
        }
        account.call(IMuster::setStoresCall { uris: uris.clone() }, U256::ZERO).await?;
        Ok(true)
    };
    match said.await {
        Ok(true) => say!("{}: published as the store of results: {uris}", settings.name),
        Ok(false) => {}
        Err(error) => shared.alert(&settings.name, "publish", &format!("where its results are is not published: {error:#}")),
    }
}

/// Accepts the operator's offer to the key, unless it has done so.
async fn employ(shared: &Shared, node: &config::Node, account: &Account, number: u32) -> Result<()> {
    let named = shared.chain.muster.read(IMuster::workerOfCall { number }).await?;
    let own = account.address();
    ensure!(
        named.worker == own,
        "{own} is not named as the worker of node {number}: `muster node worker set {own}`, by its operator"
    );
    if !named.works {
        account.call(IMuster::acceptWorkCall { node: number }, U256::ZERO).await.context("the work cannot be accepted")?;
        say!("{}: {own} works for node {number} now", node.name);
    }
    Ok(())
}

/// The trouble with a stake that is less than joining takes now, in words that `doctor` says, too.
pub fn too_low(stake: U256, least: U256) -> Option<String> {
    (stake < least).then(|| format!("`stake` is {}, and joining takes {} at least", show_amount(stake), show_amount(least)))
}

/// The call with which a node joins, and the models to report after it.
pub fn joining(node: &config::Node, name: &str, vram: u16) -> Result<(IMuster::joinCall, Vec<u64>)> {
    let mut models = node.model_ids()?;
    let later = models.split_off(models.len().min(CALL_MODELS));
    Ok((IMuster::joinCall { gpuName: name.into(), vram, models }, later))
}

async fn join(shared: &Shared, node: &config::Node, account: &Account, operator: Address, name: &str, vram: u16) -> Result<u32> {
    let Some(stake) = node.stake else {
        bail!("{operator} never joined a node: join it as {name:?} with {vram} GiB, or set `stake`");
    };
    ensure!(operator == account.address(), "{operator} never joined a node, and a worker cannot join it");
    let muster = &shared.chain.muster;
    if let Some(trouble) = too_low(stake, muster.least_stake().await?) {
        bail!(trouble);
    }
    let fee = muster.name_fee(name, vram).await?;
    let (call, later) = joining(node, name, vram)?;
    ensure!(!*shared.draining.borrow(), "asked to end before it joined");
    say!("{}: joining as {name:?} with {} and {} for a new name", node.name, show_amount(stake), show_amount(fee));
    account.call_once("join", call, stake + fee).await.context("the node cannot join")?;
    for models in later.chunks(CALL_MODELS) {
        account.call(IMuster::reportDownloadedCall { models: models.to_vec() }, U256::ZERO).await?;
    }
    match shared.chain.node_of(operator).await? {
        0 => bail!("the node has joined, and the chain does not know it yet"),
        number => Ok(number),
    }
}
