//! Models: downloaded by the operator's own command or from a hub, and reported to the contract.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use muster_client::IMuster;
use rustix::process::{kill_process_group, Pid, Signal};
use tokio::io::{AsyncReadExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use crate::shared::Shared;
use crate::{apart, config, say};

/// Holders of a model that one question gives, and the most questions of a search.
const PAGE: u32 = 256;
/// See `PAGE`.
const PAGES: u32 = 64;
/// Bytes of the command's output that are logged.
const NOISE: u64 = 16 << 10;

/// Downloads a model that a node lacks, unless it is there already, and notes that it must be reported.
///
/// # Errors
/// If there is no command for it, or the command fails or takes longer than this.
pub async fn download(shared: &Shared, node: &config::Node, number: u32, model: u64, within: Duration) -> Result<()> {
    if shared.journal.downloads(number, true)?.contains(&model) {
        return Ok(());
    }
    let name = shared.model(model);
    say!("{}: downloading {name}", node.name);
    let Some(hook) = node.download.as_ref() else {
        let hub = shared.config.hub.as_ref();
        let hub = hub.with_context(|| format!("{name} is not there, and neither `download` nor [hub] is configured"))?;
        let keep: BTreeSet<String> = shared.config.nodes.iter().flat_map(|node| node.models.iter().cloned()).collect();
        let gone = hub.fetch(&name, &keep, shared.config.least_free, within).await?;
        note_gone(shared, &gone)?;
        shared.journal.set_fact(&gone_fact(model), "no")?;
        return shared.journal.downloaded(number, model);
    };
    let keys: BTreeSet<&str> = shared.config.nodes.iter().filter_map(|node| node.key_env.as_deref()).collect();
    let line: Vec<String> = apart::unprivileged().into_iter().chain(hook.iter().cloned()).collect();
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]).process_group(0).kill_on_drop(true);
    command.env("MUSTER_MODEL", &name).env("MUSTER_MODEL_ID", format!("{model:#012x}"));
    for key in keys {
        command.env_remove(key);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot run {}", hook[0]))?;
    let group = child.id().and_then(|id| Pid::from_raw(id as i32));
    let stderr = child.stderr.take().context("no standard error")?;
    let saying = tokio::spawn(async move {
        let (mut said, mut from) = (Vec::new(), BufReader::new(stderr));
        let _ = (&mut from).take(NOISE).read_to_end(&mut said).await;
        // Reads the rest, so that the command does not block, and drops it.
        let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
        said
    });
    let ended = timeout(within, child.wait()).await;
    // Its child processes end with it in any case.
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let ended = ended.with_context(|| format!("{name} was not downloaded within {} s", within.as_secs()))??;
    if !ended.success() {
        if let Ok(said) = saying.await {
            say!("{}: {}: {}", node.name, hook[0], String::from_utf8_lossy(&said).trim_end());
        }
    }
    ensure!(ended.success(), "the command to download {name} ended with {ended}");
    shared.journal.downloaded(number, model)
}

/// The name of the fact that a model was removed for another.
fn gone_fact(model: u64) -> String {
    format!("gone {model:#x}")
}

/// Notes that models were removed, under all their names.
fn note_gone(shared: &Shared, gone: &[String]) -> Result<()> {
    for repository in gone {
        for (id, name) in &shared.names {
            if name.split('@').next() == Some(repository) {
                shared.journal.set_fact(&gone_fact(*id), "yes")?;
            }
        }
    }
    Ok(())
}

/// Those of a node's models on the chain that were removed for others.
///
/// # Errors
/// If the journal cannot be read.
pub fn gone(shared: &Shared, held: &[u64]) -> Result<Vec<u64>> {
    let mut gone = Vec::new();
    for model in held {
        if shared.journal.fact(&gone_fact(*model))?.as_deref() == Some("yes") {
            gone.push(*model);
        }
    }
    Ok(gone)
}

/// A node's position among the holders of a model, if it is entered there. Of a model with more than 16,384 it looks at so many, each time
/// at others.
///
/// # Errors
/// If the chain cannot be read.
pub async fn entry(shared: &Shared, model: u64, number: u32) -> Result<Option<u32>> {
    let (mut search, mut total) = (Search::default(), 0);
    while let Some(from) = search.next(total) {
        let page = shared.chain.muster.read(IMuster::holdersCall { model, from, count: PAGE }).await?;
        if let Some((position, _)) = (from..).zip(page.numbers).find(|(_, holder)| *holder == number) {
            return Ok(Some(position));
        }
        total = page.total;
    }
    if total > PAGE * PAGES {
        say!("{} has {total} holders, of which {} were looked at: node {number} is not found", shared.model(model), PAGE * PAGES);
    }
    Ok(None)
}

/// A search among a model's holders, page by page.
#[derive(Default)]
struct Search {
    /// The pages asked for, and the last one.
    asked: u32,
    at: u32,
}

impl Search {
    /// Where the next page begins, of so many holders by the last answer.
    fn next(&mut self, total: u32) -> Option<u32> {
        let pages = total.div_ceil(PAGE);
        if self.asked > 0 {
            if self.asked >= pages.min(PAGES) {
                return None;
            }
            // From anywhere on where not all can be looked at.
            let leap = self.asked == 1 && pages > PAGES;
            self.at = if leap { rand::random::<u32>() % pages } else { (self.at + 1) % pages };
        }
        self.asked += 1;
        Some(self.at * PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a position is found among so many holders, and after how many questions.
    fn found(position: u32, total: u32) -> (bool, u32) {
        let (mut search, mut known) = (Search::default(), 0);
        while let Some(from) = search.next(known) {
            known = total;
            if (from..total.min(from + PAGE)).contains(&position) {
                return (true, search.asked);
            }
        }
        (false, search.asked)
    }

    #[test]
    fn a_node_is_searched_among_the_holders_by_so_many_questions_at_most() {
        assert_eq!(found(0, 0), (false, 1));
        assert_eq!(found(699, 1_000), (true, 3));
        assert_eq!(found(1_000, 1_000), (false, 4));
        assert_eq!(found(PAGE * PAGES - 1, PAGE * PAGES), (true, PAGES));
        let many = 1_000_000;
        assert_eq!(found(many, many), (false, PAGES));
        // One that joined late is found all the same, by one of many searches.
        assert!((0..10_000).any(|_| found(many - 1, many).0));
    }
}
