//! Questions to the chain beside the contract's views: how a task was created, and a node's commitments.

use std::collections::BTreeMap;
use std::future::Future;

use alloy::primitives::{Bytes, B256};
use alloy::rpc::types::Log;
use alloy::sol_types::{SolCall, SolEvent};
use anyhow::{Context, Result};
use muster_client::{abi, Event, Head, IMuster, Muster, Opening, Searched, Secrets};
use serde_json::{json, Value};

use crate::say;

/// After so many questions about one log, and after twice, four times as many and so on, the log names the search.
const LONG: u32 = 256;
/// Questions about the cause of a node's pause: where nodes give much at once they reach back by 58 million blocks.
const QUESTIONS: u32 = 64;
/// Questions about a commitment, since its node waits for the answer. At ten blocks each, they reach back by 2.8 hours of four blocks a second,
/// and the default limits of a task are 2.2 hours.
const COMMITMENTS: u32 = 4_096;
/// The most seconds between a commitment and its task's deadline: the highest `limitMax`, `grace` and `downloadTime`.
const LIMIT: u64 = 65_535 + 7_200 + 65_535;
/// How far back the first block lies whose time is compared, in blocks: those of some hours.
const NEAR: u64 = 1 << 15;
/// A page of groups.
const PAGE: u32 = 256;
/// Bytes of `commit`'s own calldata; the note follows.
const COMMIT: usize = 4 + 2 * 32;

/// A contract, to ask about the past.
#[derive(Clone)]
pub struct Chain {
    /// The contract.
    pub muster: Muster,
    /// Nothing is searched before this block.
    pub from_block: u64,
}

/// A commitment as it was sent.
pub struct Committed {
    /// The place of the group; 0 before there is one.
    pub place: u32,
    /// The block whose hash decides whether the task is sampled; 0 in a group.
    pub lot: u64,
    /// Its contents.
    pub opening: Opening,
}

impl Chain {
    /// The newest block.
    pub async fn head(&self) -> Result<Head> {
        Ok(self.muster.endpoints().head().await?)
    }

    /// A block's time; none if a node lacks it.
    async fn time(&self, block: u64) -> Result<Option<u64>> {
        let block = json!([format!("{block:#x}"), false]);
        let found: Option<Head> = self.muster.endpoints().ask("eth_getBlockByNumber", block).await?;
        Ok(found.map(|found| found.timestamp))
    }

    /// The newest log of the contract with these topics, found by at most so many questions, and not much older than a time.
    async fn newest(&self, topics: &[B256], questions: u32, since: Option<u64>) -> Result<Option<Log>> {
        let head = self.head().await?.number;
        let first = match since {
            Some(time) => before(time, head, self.from_block, |block| self.time(block)).await?,
            None => self.from_block,
        };
        let filter = json!({ "address": self.muster.address(), "topics": topics });
        let goes_on = |searched: Searched| {
            let Searched { questions: asked, from, given } = searched;
            if asked == questions || asked >= LONG && asked.is_power_of_two() {
                let ends = if asked == questions { "ends" } else { "goes on" };
                say!(
                    "{asked} questions have searched blocks {from} to {head} for an event, since a node of `rpc` gives those of {} blocks \
                     at a time: the search {ends}",
                    given.max(1)
                );
            }
            asked < questions
        };
        Ok(self.muster.endpoints().newest(filter, first..=head, goes_on).await?)
    }

    /// The newest event of a kind about a node, unless it is too long ago to matter.
    async fn newest_of(&self, kind: B256, node: u32) -> Result<Option<Log>> {
        self.newest(&[kind, word(node.into())], QUESTIONS, None).await
    }

    /// How a task was created, as two nodes say: answers to another input would be wrong ones.
    pub async fn created(&self, id: u64) -> Result<IMuster::TaskCreated> {
        let log = self.newest(&[IMuster::TaskCreated::SIGNATURE_HASH, word(id)], u32::MAX, None).await?;
        let log = log.with_context(|| format!("task {id} was not created after block {}", self.from_block))?;
        let confirmed = self.muster.endpoints().confirms(&log).await?;
        anyhow::ensure!(confirmed, "nodes of `rpc` contradict each other about the creation of task {id}");
        match abi::event(&log.inner) {
            Some(Event::TaskCreated(created)) => Ok(created),
            _ => anyhow::bail!("a node gives another log than was asked for"),
        }
    }

    /// A node's last commitment for a task of this deadline, from the note in its transaction, which the key opens. `None` if there is
    /// no such commitment, or no note that the key opens, or the search took too many questions.
    pub async fn committed(&self, secrets: &Secrets, id: u64, node: u32, deadline: u64) -> Result<Option<Committed>> {
        let topics = [IMuster::AnswerCommitted::SIGNATURE_HASH, word(id), word(node.into())];
        let Some(log) = self.newest(&topics, COMMITMENTS, Some(deadline.saturating_sub(LIMIT))).await? else {
            return Ok(None);
        };
        let Some(Event::AnswerCommitted(event)) = abi::event(&log.inner) else { return Ok(None) };
        let hash = log.transaction_hash.context("a log without a transaction")?;
        let transaction: Option<Value> = self.muster.endpoints().ask("eth_getTransactionByHash", json!([hash])).await?;
        let input = transaction.as_ref().and_then(|transaction| transaction["input"].as_str());
        let input: Bytes = input.context("a node has a log, and not its transaction")?.parse()?;
        let Some(note) = input.get(COMMIT..) else { return Ok(None) };
        let Ok(opening) = secrets.read_note(id, node, note) else { return Ok(None) };
        if opening.commitment(id, node)[..24] != event.commitment[..] {
            return Ok(None);
        }
        Ok(Some(Committed { place: event.group, lot: event.block, opening }))
    }

    /// The calldata that paused a node, and whether that was after it was last resumed: if not, a node of the chain does not show the
    /// present pause.
    pub async fn pause_of(&self, node: u32) -> Result<Option<(Bytes, bool)>> {
        // A busy node's call came earlier: its pause then took effect at the end of its task, in another call.
        let pausing = self.newest_of(IMuster::NodePausing::SIGNATURE_HASH, node).await?;
        let resumed = self.newest_of(IMuster::NodeResumed::SIGNATURE_HASH, node).await?;
        let log = match pausing.filter(|pausing| place(Some(pausing)) > place(resumed.as_ref())) {
            Some(pausing) => Some(pausing),
            None => self.newest_of(IMuster::NodePaused::SIGNATURE_HASH, node).await?,
        };
        let present = place(log.as_ref()) > place(resumed.as_ref());
        let Some(hash) = log.and_then(|log| log.transaction_hash) else { return Ok(None) };
        let transaction: Option<Value> = self.muster.endpoints().ask("eth_getTransactionByHash", json!([hash])).await?;
        let input = transaction.as_ref().and_then(|transaction| transaction["input"].as_str());
        input.map(|input| Ok((input.parse()?, present))).transpose()
    }

    /// Whether a node was slashed for an answer since it was last resumed.
    pub async fn is_slashed(&self, node: u32) -> Result<bool> {
        let slashed = self.newest_of(IMuster::NodeSlashed::SIGNATURE_HASH, node).await?;
        if slashed.is_none() {
            return Ok(false);
        }
        let resumed = self.newest_of(IMuster::NodeResumed::SIGNATURE_HASH, node).await?;
        Ok(place(slashed.as_ref()) > place(resumed.as_ref()))
    }

    /// The groups that a node is a member of, by their places.
    pub async fn groups_of(&self, node: u32) -> Result<BTreeMap<u32, IMuster::GroupView>> {
        let (mut from, mut places, mut found) = (1, 1, BTreeMap::new());
        while from <= places {
            let page = self.muster.read(IMuster::groupsCall { from, count: PAGE }).await?;
            places = page.places;
            let own = page._1.into_iter().filter(|group| group.members.iter().any(|member| member.node == node));
            found.extend(own.map(|group| (group.group, group)));
            from += PAGE;
        }
        Ok(found)
    }

    /// The number of an operator's node; 0 if they never joined one.
    pub async fn node_of(&self, operator: alloy::primitives::Address) -> Result<u32> {
        Ok(self.muster.read(IMuster::nodeOfCall { who: operator }).await?)
    }
}

/// The calldata of a commitment, with a note of its contents for the owner of the key.
pub fn commit(secrets: &Secrets, id: u64, node: u32, opening: &Opening) -> Bytes {
    let call = IMuster::commitCall { id, commitment: opening.commitment(id, node) };
    [call.abi_encode(), secrets.note(id, node, opening)].concat().into()
}

/// A log's position, for comparison; before all others without one.
fn place(log: Option<&Log>) -> Option<(u64, u64)> {
    log.and_then(|log| Some((log.block_number?, log.log_index?)))
}

fn word(number: u64) -> B256 {
    B256::left_padding_from(&number.to_be_bytes())
}

/// A block older than a time, found in ever longer steps back from the newest, given the blocks' times; `first` if that is not older. A block
/// that nodes lack counts as not older, so that nothing is left out.
async fn before<F>(time: u64, head: u64, first: u64, at: impl Fn(u64) -> F) -> Result<u64>
where
    F: Future<Output = Result<Option<u64>>>,
{
    let mut back = NEAR;
    loop {
        let block = head.saturating_sub(back).max(first);
        if block == first || at(block).await?.is_some_and(|its| its < time) {
            return Ok(block);
        }
        back = back.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// The block that is found for a time where there are four blocks in a second from 0 on, and how many blocks were asked for.
    async fn found(time: u64, head: u64, first: u64) -> (u64, u32) {
        let asked = Cell::new(0);
        let at = |block: u64| {
            asked.set(asked.get() + 1);
            std::future::ready(anyhow::Ok(Some(block / 4)))
        };
        let block = before(time, head, first, at).await.unwrap();
        (block, asked.get())
    }

    #[tokio::test]
    async fn a_search_for_a_commitment_ends_before_its_task_began() {
        let head = 400_000_000;
        for ago in [60, 7_800, LIMIT] {
            let time = head / 4 - ago;
            let (block, asked) = found(time, head, 0).await;
            assert!(block / 4 < time && head - block <= (8 * ago).max(NEAR), "{ago}: {block}");
            assert!(asked <= 6, "{ago}: {asked} questions");
        }
        // Nothing is searched before the contract was there.
        assert_eq!(found(0, head, head - 10).await, (head - 10, 0));
        assert_eq!(found(0, 10, 20).await, (20, 0));
        assert_eq!(found(0, 100_000, 5).await.0, 5);
        // A node that has pruned its blocks ends no search.
        let lacks = |_: u64| std::future::ready(anyhow::Ok(None::<u64>));
        assert_eq!(before(u64::MAX, head, 7, lacks).await.unwrap(), 7);
    }
}
