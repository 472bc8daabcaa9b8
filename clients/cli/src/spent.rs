//! Every transaction of an account in some blocks: also those without an event, found by the account's nonce at each block.

use std::collections::{BTreeMap, BTreeSet};

use alloy::primitives::{Address, B256, U64};
use anyhow::Result;
use futures_util::{stream, StreamExt, TryStreamExt};
use muster_client::{Endpoints, Error};
use serde::Deserialize;
use serde_json::json;

/// A transaction as nodes give it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    pub hash: B256,
    pub from: Address,
    pub to: Option<Address>,
    nonce: U64,
    block_number: Option<U64>,
}

impl Sent {
    /// The block that it is in.
    pub fn block(&self) -> Option<u64> {
        self.block_number.map(|number| number.to())
    }
}

/// An account's transactions, and at least how many more there are that a node without history did not report.
pub struct All {
    pub sent: Vec<Sent>,
    pub missing: u64,
}

/// Questions at a time.
const AT_ONCE: usize = 8;
/// The most transactions that are looked for without events.
const MOST: u64 = 20_000;

/// A transaction by its hash.
pub async fn transaction(endpoints: &Endpoints, hash: B256) -> Result<Option<Sent>, Error> {
    endpoints.ask("eth_getTransactionByHash", json!([hash])).await
}

/// How many of an account's transactions were mined up to a block; `None` if the node has no state of it.
async fn count(endpoints: &Endpoints, account: Address, block: u64) -> Result<Option<u64>, Error> {
    match endpoints.ask::<U64>("eth_getTransactionCount", json!([account, format!("{block:#x}")])).await {
        Ok(count) => Ok(Some(count.to())),
        Err(Error::Node(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The account's transactions in the blocks from one up to another, of which some are known.
pub async fn all(endpoints: &Endpoints, account: Address, from: u64, to: u64, known: Vec<Sent>) -> Result<All> {
    let mut sent: BTreeMap<u64, Sent> = known.into_iter().map(|sent| (sent.nonce.to(), sent)).collect();
    let first = sent.keys().next().copied();
    let before = match from.checked_sub(1) {
        Some(block) => count(endpoints, account, block).await?,
        None => Some(0),
    };
    // Without history, nothing is known before the first known one.
    let (Some(before), Some(after)) = (before.or(first), count(endpoints, account, to).await?) else {
        return Ok(All { sent: sent.into_values().collect(), missing: 0 });
    };
    let mut missing: BTreeSet<u64> = (before..after).filter(|nonce| !sent.contains_key(nonce)).collect();
    if missing.is_empty() || missing.len() as u64 > MOST {
        return Ok(All { sent: sent.into_values().collect(), missing: missing.len() as u64 });
    }
    // Between blocks with a known count, as long as a transaction between them is missing.
    let mut between = Vec::new();
    let mut last = (from.saturating_sub(1), before);
    for (nonce, known) in &sent {
        let Some(block) = known.block() else { continue };
        // Others may be in the same block, on both sides.
        if missing.range(last.1..*nonce).next().is_some() {
            between.push((last.0, block));
        }
        last = (block.saturating_sub(1), *nonce);
    }
    between.push((last.0, to));
    let mut blocks = BTreeSet::new();
    let mut counts: BTreeMap<u64, u64> = [(from.saturating_sub(1), before), (to, after)].into();
    while !between.is_empty() {
        let asked: BTreeSet<u64> = between.iter().flat_map(|(low, high)| [*low, low.midpoint(*high), *high]).collect();
        let asked = asked.into_iter().filter(|block| !counts.contains_key(block)).collect::<Vec<_>>();
        let answers =
            asked.into_iter().map(|block| async move { Ok::<_, Error>((block, count(endpoints, account, block).await?)) });
        let answers: Vec<_> = stream::iter(answers).buffered(AT_ONCE).try_collect().await?;
        counts.extend(answers.into_iter().filter_map(|(block, count)| Some((block, count?))));
        let mut next = Vec::new();
        for (low, high) in between {
            let middle = low.midpoint(high);
            let (Some(least), Some(half), Some(most)) = (counts.get(&low), counts.get(&middle), counts.get(&high)) else {
                continue;
            };
            if high <= low + 1 {
                if least < most {
                    blocks.insert(high);
                }
                continue;
            }
            for (low, high, least, most) in [(low, middle, least, half), (middle, high, half, most)] {
                if missing.range(least..most).next().is_some() {
                    next.push((low, high));
                }
            }
        }
        between = next;
    }
    #[derive(Deserialize)]
    struct Block {
        transactions: Vec<Sent>,
    }
    let found = blocks.into_iter().map(|block| async move {
        endpoints.ask::<Option<Block>>("eth_getBlockByNumber", json!([format!("{block:#x}"), true])).await
    });
    let found: Vec<_> = stream::iter(found).buffered(AT_ONCE).try_collect().await?;
    for transaction in found.into_iter().flatten().flat_map(|block| block.transactions) {
        if transaction.from == account && missing.remove(&transaction.nonce.to()) {
            sent.insert(transaction.nonce.to(), transaction);
        }
    }
    Ok(All { sent: sent.into_values().collect(), missing: missing.len() as u64 })
}
