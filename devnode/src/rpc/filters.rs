//! Filters that are polled: `eth_newFilter` and its like.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use alloy_primitives::{FixedBytes, B256, U128};
use alloy_rpc_types_eth::Filter;
use parking_lot::Mutex;
use serde_json::value::RawValue;

use super::error::RpcError;
use super::failure::Failure;
use super::{past, raw};
use crate::chain::{collect_logs, Chain, MinedBlock};

/// A filter that nobody asks about for so long is dropped, as in go-ethereum.
const LIFE: Duration = Duration::from_mins(5);
/// How often those that nobody asks about are looked for.
const SWEEP: Duration = Duration::from_secs(10);
/// Most filters there can be.
pub const MAX_FILTERS: usize = 100_000;

/// The events that a filter reports.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Logs(Box<Filter>),
    Blocks,
    Pending,
}

#[derive(Debug)]
struct Installed {
    kind: Kind,
    /// Where in the chain's history it stands. Not a block's number: after `evm_revert` numbers come again.
    position: u64,
    asked: Instant,
}

/// All filters of a node.
#[derive(Debug)]
pub(crate) struct Filters(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    filters: HashMap<U128, Installed>,
    swept: Instant,
}

impl Default for Filters {
    fn default() -> Self {
        Self(Mutex::new(Inner { filters: HashMap::new(), swept: Instant::now() }))
    }
}

impl Filters {
    pub(super) fn install(&self, chain: &Chain, kind: Kind) -> Result<U128, RpcError> {
        let (blocks, arrivals) = chain.position();
        let position = if matches!(kind, Kind::Pending) { arrivals } else { blocks };
        let mut inner = self.0.lock();
        let inner = &mut *inner;
        // Seldom, since it looks at each of them.
        if inner.swept.elapsed() > SWEEP {
            inner.swept = Instant::now();
            let now = inner.swept;
            inner.filters.retain(|_, f| now.duration_since(f.asked) < LIFE);
        }
        if inner.filters.len() >= MAX_FILTERS {
            return Err(RpcError::refused(format!("too many filters, at most {MAX_FILTERS}: uninstall some")));
        }
        let id = random_id();
        inner.filters.insert(id, Installed { kind, position, asked: Instant::now() });
        Ok(id)
    }

    /// Looks at a filter, or changes it.
    fn visit<T>(&self, id: U128, visit: impl FnOnce(&mut Installed) -> T) -> Result<T, RpcError> {
        let mut inner = self.0.lock();
        let filter = inner.filters.get_mut(&id).ok_or_else(|| RpcError::refused("filter not found"))?;
        filter.asked = Instant::now();
        Ok(visit(filter))
    }

    pub(super) fn changes(&self, chain: &Chain, id: U128) -> Result<Box<RawValue>, Failure> {
        // The position moves on at once; the entries in between are put together after the lock is free again.
        let (blocks, arrivals) = chain.position();
        let (kind, from) = self.visit(id, |filter| {
            let now = if matches!(filter.kind, Kind::Pending) { arrivals } else { blocks };
            let from = filter.position;
            // Somebody else may poll the same filter.
            filter.position = now.max(from);
            (filter.kind.clone(), from)
        })?;
        let answer = match kind {
            Kind::Pending => raw(&chain.arrivals_between(from, arrivals)),
            Kind::Blocks => {
                let hashes: Vec<B256> = chain.blocks_between(from, blocks).iter().map(|block| block.hash).collect();
                raw(&hashes)
            }
            Kind::Logs(filter) => {
                let (mut logs, mut bytes) = (Vec::new(), 0);
                for block in chain.blocks_between(from, blocks) {
                    if covers(&filter, &block) {
                        collect_logs(&filter, &block, &mut logs, &mut bytes)?;
                    }
                }
                raw(&logs)
            }
        };
        Ok(answer?)
    }

    pub(super) fn logs(&self, chain: &Chain, id: U128) -> Result<Box<RawValue>, Failure> {
        let kind = self.visit(id, |filter| filter.kind.clone())?;
        let Kind::Logs(filter) = kind else { return Err(RpcError::refused("filter not found").into()) };
        Ok(raw(&past::logs(chain, &filter)?)?)
    }

    pub(super) fn uninstall(&self, id: U128) -> bool {
        self.0.lock().filters.remove(&id).is_some()
    }
}

/// An id that cannot be guessed.
pub(super) fn random_id() -> U128 {
    U128::from_be_bytes(FixedBytes::<16>::random().0)
}

/// Whether a block lies in a filter's range.
pub(super) fn covers(filter: &Filter, block: &MinedBlock) -> bool {
    let (first, last) = filter.extract_block_range();
    (first.unwrap_or(0)..=last.unwrap_or(u64::MAX)).contains(&block.header.number)
}
