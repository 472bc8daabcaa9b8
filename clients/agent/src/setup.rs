//! What has to be there before a node works: its key, its GPU, an executor that answers as it should, and its place in the network.

use std::sync::Arc;
use std::time::Duration;

use alloy::primitives::{Address, U256};
use anyhow::{bail, ensure, Context, Result};
use muster_client::{show_amount, Account, IMuster, Secrets, Sender, Sending};
use muster_core::record::CALL_MODELS;
use tokio::sync::Mutex;

use crate::answers::Answers;
use crate::executor::Executor;
use crate::gpu::{self, Gpu};
use crate::shared::Shared;
use crate::{config, golden, say, work};

/// A node that can begin: it is joined. Whether its GPU and its executor are as they were is found out while it goes on, for
/// what it has committed to has to be revealed even if they are not.
pub struct Ready {
    pub answers: Answers,
    pub settings: config::Node,
    /// The GPU's name as it is registered, with the stack.
    pub registered: String,
    /// Its memory as it is registered, in GiB.
    pub vram: u16,
    pub executor: Arc<Mutex<Executor>>,
}

/// The key's account, and whose node it answers for.
pub async fn account(shared: &Shared, node: &config::Node) -> Result<(Account, Secrets, Address)> {
    let signer = node.signer()?;
    let operator = node.operator.unwrap_or(signer.address());
    let secrets = Secrets::new(&signer, shared.chain_id, shared.config.muster);
    let sending = Sending {
        fee_ceiling: shared.config.max_gas_price.map(|price| price.saturating_to()),
        patience: Duration::from_secs(30),
        ..Sending::default()
    };
    let muster = shared.chain.muster.clone();
    let place = shared.config.home.join("transactions");
    let sender = Sender::open(muster.endpoints().clone(), signer, &place, sending).await?;
    Ok((Account::new(muster, sender), secrets, operator))
}

/// Gets a node to where it can begin; joins it, if that is configured and it never joined.
pub async fn ready(shared: &Arc<Shared>, settings: &config::Node) -> Result<Ready> {
    let (account, secrets, operator) = account(shared, settings).await?;
    work::prepare(&shared.config.work(settings))?;
    let executor = Arc::new(Mutex::new(Executor::new(&settings.name, &settings.executor)));
    let number = match shared.chain.node_of(operator).await? {
        0 => {
            let (gpu, name) = examine(shared, settings, &executor).await?;
            join(shared, settings, &account, operator, &name, gpu.vram).await?
        }
        number => number,
    };
    let muster = &shared.chain.muster;
    if operator != account.address() {
        employ(shared, settings, &account, number).await?;
    }
    let view = muster.read(IMuster::nodeCall { number }).await?;
    let registered = muster.read(IMuster::gpuNameCall { group: view.gpu }).await?;
    say!("{}: node {number} of {}, as {registered:?} with {} GiB", settings.name, view.operator, view.vram);
    let (secrets, missing) = (Arc::new(secrets), std::sync::Mutex::default());
    let answers = Answers { shared: shared.clone(), name: settings.name.clone(), number, account, secrets, missing };
    Ok(Ready { answers, settings: settings.clone(), registered, vram: view.vram, executor })
}

/// Looks for the GPU, starts the executor anew, and runs the golden tasks: the GPU, and the name to register it under.
pub async fn examine(shared: &Shared, node: &config::Node, executor: &Mutex<Executor>) -> Result<(Gpu, String)> {
    let gpu = gpu::find(node)?;
    let mut executor = executor.lock().await;
    executor.stop();
    executor.see(gpu.uuid.clone());
    executor.start().await?;
    let stack = match node.golden() {
        None => None,
        Some(place) => {
            let within = Duration::from_secs(node.executor.golden_within);
            golden::stack(&mut executor, &place, &shared.config.work(node), within).await?
        }
    };
    let name = gpu::registered(&gpu.name, stack.as_deref());
    say!("{}: {name} of {} GiB{}", node.name, gpu.vram, gpu.uuid.as_deref().map(|id| format!(", {id}")).unwrap_or_default());
    Ok((gpu, name))
}

/// Takes the work that a node's operator offers the key, unless it has done so.
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

async fn join(shared: &Shared, node: &config::Node, account: &Account, operator: Address, name: &str, vram: u16) -> Result<u32> {
    let Some(stake) = node.stake else {
        bail!("{operator} never joined a node: join it as {name:?} with {vram} GiB, or set `stake`");
    };
    ensure!(operator == account.address(), "{operator} never joined a node, and a worker cannot join it");
    let muster = &shared.chain.muster;
    let fee = muster.name_fee(name, vram).await?;
    let mut models = node.model_ids()?;
    let later = models.split_off(models.len().min(CALL_MODELS));
    say!("{}: joining as {name:?} with {} and {} for a new name", node.name, show_amount(stake), show_amount(fee));
    let call = IMuster::joinCall { gpuName: name.into(), vram, models };
    account.call_once("join", call, stake + fee).await.context("the node cannot join")?;
    for models in later.chunks(CALL_MODELS) {
        account.call(IMuster::reportDownloadedCall { models: models.to_vec() }, U256::ZERO).await?;
    }
    match shared.chain.node_of(operator).await? {
        0 => bail!("the node has joined, and the chain does not know it yet"),
        number => Ok(number),
    }
}
