//! Time, and the other fields that blocks to come take from before.

use std::time::{SystemTime, UNIX_EPOCH};

use alloy_primitives::{Address, B256};
use serde::{Deserialize, Serialize};

use super::config::{Clock, Config, BLOCK_GAS_LIMIT};
use crate::evm::BATCH_POSTER;

/// Fields in the headers of blocks to come.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Upcoming {
    pub base_fee: u64,
    pub gas_limit: u64,
    pub coinbase: Address,
    /// For one block.
    pub prevrandao: Option<B256>,
}

impl Upcoming {
    pub(super) fn of(config: &Config) -> Self {
        let gas_limit = config.fork.as_ref().map_or(BLOCK_GAS_LIMIT, |fork| fork.header().gas_limit);
        Self { base_fee: config.base_fee, gas_limit, coinbase: BATCH_POSTER, prevrandao: None }
    }
}

/// The clock, and how far time was moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    pub clock: Clock,
    /// Seconds that time travel added.
    pub offset: i128,
    /// Exact timestamp of the next block, once.
    pub next: Option<u64>,
}

impl Time {
    pub(super) fn raw(&self) -> i128 {
        match self.clock {
            Clock::Manual(now) => i128::from(now),
            Clock::System => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i128::from(d.as_secs())),
        }
    }

    /// Timestamp of a block after one at `latest`.
    pub(super) fn next(&self, latest: u64) -> u64 {
        match self.next {
            Some(next) => next.max(latest),
            None => u64::try_from((self.raw() + self.offset).max(0)).unwrap_or(u64::MAX).max(latest),
        }
    }

    /// Uses up the timestamp of a block; time goes on from there.
    pub(super) fn take(&mut self, latest: u64) -> u64 {
        let now = self.next(latest);
        if self.next.take().is_some() {
            self.offset = i128::from(now) - self.raw();
        }
        now
    }
}
