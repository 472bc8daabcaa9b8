//! Events of the past: from a point in time on, by a filter, in spans that nodes accept.

use alloy::primitives::{B256, U256};
use alloy::rpc::types::Log;
use anyhow::{ensure, Result};
use muster_client::{abi, Endpoints, Error, Event, Head};
use serde_json::json;

use crate::session::Session;

/// An event of the past.
pub struct Past {
    pub event: Event,
    pub log: Log,
    pub block: u64,
    pub transaction: B256,
}

/// The most events that are read.
const MOST: usize = 1_000_000;
/// The most blocks of one question.
const SPAN: u64 = 50_000;

/// A block by its number.
pub async fn block(endpoints: &Endpoints, number: u64) -> Result<Head> {
    let block: Option<Head> = endpoints.ask("eth_getBlockByNumber", json!([format!("{number:#x}"), false])).await?;
    block.ok_or_else(|| Error::Answer { what: format!("block {number}"), why: "the node does not have it".into() }.into())
}

/// The first block at or after a time, in seconds since 1970.
pub async fn since(endpoints: &Endpoints, time: u64) -> Result<u64> {
    let head = endpoints.head().await?;
    let (mut low, mut high) = (0, head.number);
    while low < high {
        let middle = low.midpoint(high);
        if block(endpoints, middle).await?.timestamp < time {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// The block from which the last `days` begin.
pub async fn days_ago(endpoints: &Endpoints, days: f64) -> Result<u64> {
    let now = endpoints.head().await?.timestamp;
    since(endpoints, now.saturating_sub((days.max(0.0) * 86_400.0) as u64)).await
}

/// "the last day", "the last 7 days".
pub fn last(days: f64) -> String {
    if (days - 1.0).abs() < f64::EPSILON {
        "the last day".into()
    } else {
        format!("the last {days} days")
    }
}

/// A number as an indexed value.
pub fn topic(number: impl Into<U256>) -> B256 {
    B256::from(number.into())
}

/// A filter's topics: any event with these indexed values. A node drops events with fewer topics than the filter has positions, even
/// open ones, so no open ones are left at the end.
fn positions(kind: Option<B256>, indexed: [Option<B256>; 3]) -> Vec<Option<B256>> {
    let mut positions = Vec::from([kind, indexed[0], indexed[1], indexed[2]]);
    while positions.last() == Some(&None) {
        positions.pop();
    }
    positions
}

/// The contract's events from a block on whose second to fourth topics are these, in order.
pub async fn events(session: &Session, from: u64, topics: [Option<B256>; 3]) -> Result<Vec<Past>> {
    events_of(session, from, None, topics).await
}

/// The same, of one kind alone: by its signature.
pub async fn events_of(session: &Session, from: u64, kind: Option<B256>, topics: [Option<B256>; 3]) -> Result<Vec<Past>> {
    let endpoints = session.endpoints();
    let last = endpoints.recent_head().await?.number;
    let filter = json!({ "address": session.muster.address(), "topics": positions(kind, topics) });
    let mut found = Vec::new();
    let read = endpoints.past(filter, from..=last, SPAN, |logs| {
        for log in logs {
            let (Some(block), Some(transaction)) = (log.block_number, log.transaction_hash) else { continue };
            // Unknown events are a newer contract's.
            if let Some(event) = abi::event(&log.inner) {
                found.push(Past { event, log, block, transaction });
            }
        }
        ensure!(found.len() <= MOST, "more than {MOST} events: ask for a shorter time");
        Ok(())
    });
    read.await?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_ends_with_the_last_value_that_is_asked_for() {
        let (one, two) = (Some(topic(U256::from(1))), Some(topic(U256::from(2))));
        assert_eq!(positions(None, [None; 3]), []);
        assert_eq!(positions(two, [None; 3]), [two]);
        assert_eq!(positions(None, [one, None, None]), [None, one]);
        assert_eq!(positions(None, [None, two, None]), [None, None, two]);
        assert_eq!(positions(None, [one, None, two]), [None, one, None, two]);
    }
}
