//! Transactions that wait to be mined, while mining at once is switched off.

use std::cmp::Reverse;
use std::collections::btree_map::{BTreeMap, Values};
use std::collections::{BinaryHeap, HashMap};
use std::iter::Peekable;
use std::sync::Arc;

use alloy_consensus::transaction::Recovered;
use alloy_consensus::{Transaction, TxEnvelope};
use alloy_primitives::{Address, B256};

use super::error::SendError;

/// Most transactions that wait.
pub const MAX_POOL: usize = 10_000;
/// By how much a replacement must offer more, in percent: go-ethereum's figure.
const PRICE_BUMP: u128 = 10;

/// A transaction that waits.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The transaction and its sender.
    pub tx: Recovered<TxEnvelope>,
    /// When it came, as a number.
    order: u64,
}

/// Waiting transactions, by sender and nonce.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    by_sender: BTreeMap<Address, BTreeMap<u64, Arc<Waiting>>>,
    by_hash: HashMap<B256, (Address, u64)>,
    next_order: u64,
}

impl Pool {
    pub(super) fn is_empty(&self) -> bool {
        self.by_hash.is_empty()
    }

    pub(super) fn get(&self, hash: B256) -> Option<&Arc<Waiting>> {
        let (sender, nonce) = self.by_hash.get(&hash)?;
        self.by_sender.get(sender)?.get(nonce)
    }

    /// By sender, nonces ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Address, &BTreeMap<u64, Arc<Waiting>>)> {
        self.by_sender.iter()
    }

    /// The first nonce after `nonce` (that of the state) that nothing waits with.
    pub(super) fn next_nonce(&self, sender: Address, mut nonce: u64) -> u64 {
        if let Some(waiting) = self.by_sender.get(&sender) {
            while waiting.contains_key(&nonce) {
                nonce += 1;
            }
        }
        nonce
    }

    /// Takes a transaction in, in the place of one with the same nonce if it offers enough more.
    pub(super) fn add(&mut self, tx: Recovered<TxEnvelope>) -> Result<(), SendError> {
        let (hash, sender, nonce) = (*tx.tx_hash(), tx.signer(), tx.nonce());
        if self.by_hash.contains_key(&hash) {
            return Err(SendError::Known);
        }
        let old = self.by_sender.get(&sender).and_then(|waiting| waiting.get(&nonce));
        if let Some(old) = old {
            let enough = |new: u128, old: u128| new >= old.saturating_add(old.saturating_mul(PRICE_BUMP).div_ceil(100));
            let tip = |tx: &Recovered<TxEnvelope>| tx.max_priority_fee_per_gas().unwrap_or(tx.max_fee_per_gas());
            if !enough(tx.max_fee_per_gas(), old.tx.max_fee_per_gas()) || !enough(tip(&tx), tip(&old.tx)) {
                return Err(SendError::Underpriced);
            }
            let old = *old.tx.tx_hash();
            self.by_hash.remove(&old);
        } else if self.by_hash.len() >= MAX_POOL {
            return Err(SendError::PoolFull);
        }
        self.by_hash.insert(hash, (sender, nonce));
        let waiting = Arc::new(Waiting { tx, order: self.next_order });
        self.next_order += 1;
        self.by_sender.entry(sender).or_default().insert(nonce, waiting);
        Ok(())
    }

    /// Takes a transaction out.
    pub(super) fn remove(&mut self, hash: B256) -> bool {
        let Some((sender, nonce)) = self.by_hash.remove(&hash) else { return false };
        if let Some(waiting) = self.by_sender.get_mut(&sender) {
            waiting.remove(&nonce);
            if waiting.is_empty() {
                self.by_sender.remove(&sender);
            }
        }
        true
    }

    /// Takes out transactions that a sender's nonce has overtaken.
    pub(super) fn forget_used(&mut self, nonce: impl Fn(Address) -> u64) {
        let mut used = Vec::new();
        for (sender, waiting) in &self.by_sender {
            let next = nonce(*sender);
            used.extend(waiting.range(..next).map(|(_, tx)| *tx.tx.tx_hash()));
        }
        for hash in used {
            self.remove(hash);
        }
    }

    /// The order in which they are tried: higher payment first, then earlier arrival; each sender's by nonce.
    pub(super) fn queue(&self) -> Queue<'_> {
        let mut queue = Queue { heads: BinaryHeap::new(), senders: HashMap::new() };
        for (sender, waiting) in &self.by_sender {
            queue.senders.insert(*sender, waiting.values().peekable());
            queue.advance(*sender);
        }
        queue
    }
}

type OfSender<'a> = Peekable<Values<'a, u64, Arc<Waiting>>>;

/// See [`Pool::queue`].
pub(super) struct Queue<'a> {
    /// Price and order of each sender's next.
    heads: BinaryHeap<(u128, Reverse<u64>, Address)>,
    senders: HashMap<Address, OfSender<'a>>,
}

impl<'a> Queue<'a> {
    /// The next to try. Its sender's following ones come only after [`Queue::advance`].
    pub(super) fn pop(&mut self) -> Option<&'a Arc<Waiting>> {
        let (_, _, sender) = self.heads.pop()?;
        self.senders.get_mut(&sender)?.next()
    }

    /// Puts a sender's next transaction in line.
    pub(super) fn advance(&mut self, sender: Address) {
        if let Some(next) = self.senders.get_mut(&sender).and_then(Peekable::peek) {
            self.heads.push((next.tx.max_fee_per_gas(), Reverse(next.order), sender));
        }
    }
}
