//! Logs of the past, in pieces that nodes give.

use std::ops::RangeInclusive;

use alloy::rpc::types::Log;
use serde_json::{json, Value};

use crate::{Endpoints, Error};

impl Endpoints {
    /// Hands the logs of a range of blocks to `take`, the oldest first. The filter has an address and topics, as for `eth_getLogs`. One
    /// question is about at most so many blocks, or about fewer where a node refuses it or cannot answer it: nodes differ in how many
    /// blocks, or bytes, they give at once.
    ///
    /// # Errors
    /// Those of `take`, or of the nodes about a single block.
    pub async fn past<E: From<Error>>(
        &self,
        mut filter: Value,
        blocks: RangeInclusive<u64>,
        most: u64,
        mut take: impl FnMut(Vec<Log>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut next, last) = blocks.into_inner();
        let mut span = most.max(1);
        while next <= last {
            let to = last.min(next + span - 1);
            (filter["fromBlock"], filter["toBlock"]) = (json!(format!("{next:#x}")), json!(format!("{to:#x}")));
            match self.ask::<Vec<Log>>("eth_getLogs", [&filter]).await {
                Ok(logs) => {
                    take(logs)?;
                    next = to + 1;
                    // Slowly, or every other question would be one that the node refuses.
                    span = (span + span.div_ceil(4)).min(most.max(1));
                }
                Err(Error::Node(_)) if to > next => span = (to - next).div_ceil(2),
                // Too long an answer, or too slow, unless nobody is there.
                Err(Error::Unreachable(_)) if to > next => span = (to - next).div_ceil(8),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
