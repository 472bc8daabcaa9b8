//! The parts of one call's gas.

use super::layout::{Hashed, Layout};
use alloy_primitives::B256;
use anyhow::{bail, Context, Result};
use muster_devnode::chain::Chain;
use muster_devnode::trace::{Profile, ProfileFrame, Trace, TraceRequest};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Storage words of one name.
#[derive(Clone, Serialize, Deserialize, PartialEq, Eq, Debug)]
pub struct Word {
    /// Their name, by the layout.
    pub name: String,
    /// How many there were.
    pub words: u64,
    /// Reads, and their gas.
    pub reads: u64,
    /// Gas of the reads.
    pub read_gas: u64,
    /// Words written in the end.
    pub written: u64,
    /// Gas of the writes.
    pub write_gas: u64,
}

/// Gas of one call, in parts that add up to it.
#[derive(Clone, Default, Serialize, Deserialize, PartialEq, Eq, Debug)]
pub struct Parts {
    /// The gas of the receipt.
    pub gas: u64,
    /// 21,000.
    pub base: u64,
    /// The bytes of the call.
    pub calldata: u64,
    /// The router, which finds the program and calls it.
    pub router: u64,
    /// The starts of programs.
    pub starts: u64,
    /// How many started.
    pub started: u64,
    /// Events.
    pub events: u64,
    /// How many.
    pub logged: u64,
    /// Precompiles: block numbers and hashes.
    pub precompiles: u64,
    /// Hashes, arguments, results, inner calls.
    pub others: u64,
    /// Instructions of the programs behind the router.
    pub arithmetic: u64,
    /// Given back for words that fell to zero.
    pub refund: u64,
    /// Storage, the router's apart; the most gas first.
    pub words: Vec<Word>,
}

#[derive(Default)]
struct Sums {
    router: u64,
    starts: u64,
    started: u64,
    events: f64,
    logged: u64,
    precompiles: u64,
    others: f64,
    words: BTreeMap<String, Use>,
}

#[derive(Default)]
struct Use {
    slots: BTreeSet<B256>,
    reads: u64,
    read: f64,
    writes: BTreeSet<B256>,
    write: f64,
}

impl Parts {
    /// Those of a mined transaction to Muster.
    pub fn of(chain: &Chain, hash: B256, layout: &Layout) -> Result<Parts> {
        let Trace::Profile(profile) = chain.trace_transaction(hash, TraceRequest::Profile)?.trace else { bail!("no profile") };
        let Trace::Hostios(hostios) = chain.trace_transaction(hash, TraceRequest::Hostios)?.trace else { bail!("no trace") };
        Self::from(&profile, &Hashed::of(&hostios), layout).context("a profile does not add up")
    }

    /// The parts of a profile; none if they come to more than the whole.
    fn from(profile: &Profile, hashed: &Hashed, layout: &Layout) -> Option<Parts> {
        let mut sums = Sums::default();
        sums.add(&profile.frame, 0, hashed, layout);
        let round = |gas: f64| gas.round() as u64;
        let mut words: Vec<Word> = sums
            .words
            .into_iter()
            .map(|(name, u)| Word {
                name,
                words: u.slots.len() as u64,
                reads: u.reads,
                read_gas: round(u.read),
                written: u.writes.len() as u64,
                write_gas: round(u.write),
            })
            .collect();
        words.sort_by(|a, b| (b.read_gas + b.write_gas).cmp(&(a.read_gas + a.write_gas)).then(a.name.cmp(&b.name)));
        let mut parts = Parts {
            gas: profile.gas_used,
            base: profile.intrinsic.base,
            calldata: profile.intrinsic.calldata + profile.intrinsic.other + profile.floor,
            router: sums.router,
            starts: sums.starts,
            started: sums.started,
            events: round(sums.events),
            logged: sums.logged,
            precompiles: sums.precompiles,
            others: round(sums.others),
            arithmetic: 0,
            refund: profile.refund,
            words,
        };
        // The rest, so that rounding errors are in the part that is least exact by nature.
        parts.arithmetic = (parts.gas + parts.refund).checked_sub(parts.sum())?;
        Some(parts)
    }

    fn sum(&self) -> u64 {
        let words: u64 = self.words.iter().map(|word| word.read_gas + word.write_gas).sum();
        self.base
            + self.calldata
            + self.router
            + self.starts
            + self.events
            + self.precompiles
            + self.others
            + self.arithmetic
            + words
    }

    /// Gas of all reads.
    pub fn reads(&self) -> u64 {
        self.words.iter().map(|word| word.read_gas).sum()
    }

    /// Gas of all writes.
    pub fn writes(&self) -> u64 {
        self.words.iter().map(|word| word.write_gas).sum()
    }
}

impl Sums {
    fn add(&mut self, frame: &ProfileFrame, depth: usize, hashed: &Hashed, layout: &Layout) {
        let below: u64 = frame.calls.iter().map(|call| call.gas_used).sum();
        let own = frame.gas_used.saturating_sub(below);
        if depth == 0 {
            self.router += own;
        } else if frame.wasm {
            self.starts += frame.start + frame.pages;
            self.started += 1;
            self.program(frame, hashed, layout);
        } else {
            self.precompiles += own;
        }
        frame.calls.iter().for_each(|call| self.add(call, depth + 1, hashed, layout));
    }

    /// A program behind the router: the work of its host for it. The rest is arithmetic.
    fn program(&mut self, frame: &ProfileFrame, hashed: &Hashed, layout: &Layout) {
        let gas = |ink: u64| ink as f64 / frame.ink_price.max(1) as f64;
        let mut storage = 0.0;
        for (slot, word) in &frame.words {
            let u = self.words.entry(layout.name(*slot, hashed)).or_default();
            u.slots.insert(*slot);
            u.reads += word.reads.count;
            u.read += gas(word.reads.amount);
            u.write += gas(word.writes.amount);
            if word.writes.count > 0 {
                u.writes.insert(*slot);
            }
            storage += gas(word.reads.amount + word.writes.amount);
        }
        for (name, spent) in &frame.hostios {
            if name == "emit_log" {
                self.events += gas(spent.amount);
                self.logged += spent.count;
            } else {
                self.others += gas(spent.amount);
            }
        }
        // Loads, caching and flushing are among the host's calls.
        self.others -= storage;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_devnode::trace::{Intrinsic, Spent, WordUse};

    #[test]
    fn parts_add_up() {
        let spent = |count, amount| Spent { count, amount };
        let word = WordUse { reads: spent(2, 21_100_000), writes: spent(1, 50_000_000) };
        let program = ProfileFrame {
            wasm: true,
            gas_used: 20_000,
            start: 5_000,
            ink_price: 10_000,
            hostios: [("storage_load_bytes32", 21_100_000), ("storage_flush_cache", 50_068_000), ("emit_log", 17_560_000)]
                .map(|(name, ink)| (name.to_owned(), spent(1, ink)))
                .into(),
            words: [(B256::ZERO, word)].into(),
            calls: vec![ProfileFrame { gas_used: 803, ..ProfileFrame::default() }],
            ..ProfileFrame::default()
        };
        let router = ProfileFrame { gas_used: 26_000, calls: vec![program], ..ProfileFrame::default() };
        let profile = Profile {
            gas_used: 48_000,
            intrinsic: Intrinsic { base: 21_000, calldata: 1_000, other: 0 },
            refund: 0,
            floor: 0,
            frame: router,
        };
        std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
        let parts = Parts::from(&profile, &Hashed::default(), &Layout::read().unwrap()).unwrap();
        assert_eq!(parts.sum(), 48_000);
        assert_eq!((parts.router, parts.starts, parts.started, parts.events, parts.precompiles), (6_000, 5_000, 1, 1_756, 803));
        let head = Word { name: "head".into(), words: 1, reads: 2, read_gas: 2_110, written: 1, write_gas: 5_000 };
        assert_eq!((parts.others, parts.words), (7, vec![head]));
        assert_eq!(parts.arithmetic, 20_000 - 5_000 - 2_110 - 5_000 - 1_756 - 803 - 7);
    }
}
