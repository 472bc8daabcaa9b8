//! `muster-dev demo`: a fleet joins, requests are replayed as tasks, nodes answer or fail as the trace says, and the
//! contract decides the rest. Everything goes through JSON-RPC, and everything shown is read from receipts, logs
//! and views.
//!
//! The seed decides everything that the trace does not say. That is stakes (1 to 10 times the minimum), the models a node holds (popular
//! ones more often), and fees (0.5 to 2.5 times a price per estimated second). It is also which tasks can be validated, how fast each node
//! is, and which nodes cheat.
//!
//! | module | contents |
//! | --- | --- |
//! | [`state`], [`records`] | the state while it runs |
//! | [`node`], [`clock`] | the node it runs on, and its time |
//! | [`rules`] | parameters that the demonstration sets as the owner, and the policy of each task |
//! | [`fleet`] | the nodes |
//! | [`agenda`], [`replay`], [`validation`] | planned actions, and their transactions |
//! | [`notes`], [`judged`] | facts in receipts |
//! | [`books`], [`report`], [`show`] | the results |

mod agenda;
mod books;
mod clock;
mod fleet;
mod judged;
mod node;
mod notes;
mod records;
mod replay;
mod report;
mod rules;
mod show;
mod state;
mod validation;

use std::{fs::File, io::Read, path::Path};

use anyhow::{ensure, Context, Result};
use muster_client::Muster;
use muster_trace::{self as trace, Gpu, Request};

pub use self::{
    books::{books, Books},
    judged::{JudgedNode, Setting, Validation},
    records::{OfPolicy, Spread},
    report::{Report, Share},
    state::Options,
};
use self::{fleet::choose, node::Endpoint, state::Demo};
use crate::{deploy, router};

/// The requests that are replayed where no file is named, part of the program so that it needs none.
const REQUESTS: (&str, &[u8]) = ("script/demo-data/requests.csv", include_bytes!("../../../demo-data/requests.csv"));
/// The nodes that join where no file is named.
const NODES: (&str, &[u8]) = ("script/demo-data/nodes.csv", include_bytes!("../../../demo-data/nodes.csv"));

const DAY: f64 = 86_400.0;
/// The most seconds over which requests may come: programs expire after 365 days, and tasks end some time later.
const LONGEST: f64 = 350.0 * DAY;

/// Runs it.
///
/// # Errors
/// A malformed row, an unreachable node, missing funds, an unexpected refusal.
pub async fn run(root: &Path, options: &Options) -> Result<Report> {
    let (requests, fleet) = traces(options)?;
    let Endpoint { chain, keeper, own } = Endpoint::open(!options.real_time).await?;
    // Its operators' keys follow from the seed, and it changes the parameters of a Muster that is there.
    ensure!(
        own.is_some() || deploy::DEVELOPMENT_CHAINS.contains(&chain.id),
        "chain {} is no development chain: anybody could take what the demonstration stakes and pays there",
        chain.id
    );
    let mut config = deploy::Config::from_environment(root, keeper.address())?;
    // It runs once, and waits for the parameters itself.
    config.say = |line| {
        if !line.contains(router::AGAIN) {
            eprintln!("deploy: {line}");
        }
    };
    rules::add(&mut config, options);
    if own.is_none() {
        config.file = Some(deploy::record(root, chain.id));
        // Each run plays by its own rules.
        deploy::set_again(&config, chain.id)?;
    }
    let deployment = deploy::on(&chain, &keeper, &config).await?;
    let created = chain.receipt(deployment.programs[deploy::ROUTER].created_in).await;
    let since = created.ok().flatten().and_then(|receipt| receipt.block_number).unwrap_or_default();

    let muster = Muster::at(chain.endpoints.clone(), deployment.address);
    let mut demo = Demo::new(chain, muster, keeper, options.clone(), requests).await?;
    demo.await_parameters().await?;
    demo.fund_and_join(&fleet).await?;
    demo.replay().await?;
    demo.report(since).await
}

/// The requests and nodes that the flags ask for.
fn traces(options: &Options) -> Result<(Vec<Request>, Vec<Gpu>)> {
    ensure!(options.speed.is_finite() && options.speed > 0.0, "--speed is {}; it must be above 0", options.speed);
    let limit = options.limit.unwrap_or(usize::MAX);
    let (sampled, groups) = (options.sampled, options.groups());
    ensure!(sampled + groups <= 100, "--sampled is {sampled} and --groups {groups}; together they can be at most 100");
    ensure!(limit > 0 && options.gpus != Some(0), "--limit and --gpus must be at least 1");
    let (name, source) = open(options.requests.as_deref(), REQUESTS)?;
    let requests = trace::requests(&name, source, limit)?;
    let last = requests.last().map_or(0.0, |request| request.at as f64 / options.speed);
    ensure!(
        last <= LONGEST,
        "{name}: at --speed {} its requests come over {:.0} days; {:.0} days is the most, because the programs then expire",
        options.speed,
        last / DAY,
        LONGEST / DAY
    );
    let (name, source) = open(options.nodes.as_deref(), NODES)?;
    let (gpus, notes) = trace::fleet(&name, source, &options.vram.iter().cloned().collect())?;
    for note in notes {
        eprintln!("demo: {note}");
    }
    let fleet = choose(&gpus, options)?;
    ensure!(options.cheats <= fleet.len(), "--cheats is {}, but there are {} nodes", options.cheats, fleet.len());
    Ok((requests, fleet))
}

fn open(given: Option<&Path>, shipped: (&str, &'static [u8])) -> Result<(String, Box<dyn Read>)> {
    let Some(file) = given else { return Ok((shipped.0.into(), Box::new(shipped.1))) };
    let name = file.display().to_string();
    let source = File::open(file).with_context(|| format!("cannot open {name}"))?;
    Ok((name, Box::new(source)))
}
