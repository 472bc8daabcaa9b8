//! Everybody's expected money, kept beside the contracts while groups are played.

use super::THREE;
use crate::system::System;
use crate::validated::{CREATOR, DRIVER};
use crate::world::{who, TOKEN};
use muster_protocol::IMuster::*;
use std::collections::BTreeMap;

/// How many scores count.
const POOL: usize = 50;
/// The stake that a slashed node must have left to stay, in wei: 15/16 of the least stake.
const KEPT: u128 = 375 * TOKEN;

/// A node, and its operator's money.
#[derive(Clone, Debug, Default)]
pub struct Owned {
    pub operator: u64,
    pub stake: u128,
    pub unbonding: u128,
    pub credit: u128,
    /// The last scores.
    pub scores: Vec<u8>,
    pub barred: bool,
    pub joined: bool,
}

/// The amounts of a slash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub stake: u128,
    pub credit: u128,
    /// The stake that the node leaves with, if too little of it is left to stay.
    pub leaves: Option<u128>,
}

/// The books of everybody.
#[derive(Debug, Default)]
pub struct Books {
    pub nodes: BTreeMap<u32, Owned>,
    pub creator: u128,
    pub driver: u128,
    pub reserve: u128,
    pub burnt: u128,
    pub treasury: u128,
}

impl Books {
    /// A node that has just joined.
    pub fn join(&mut self, node: u32, operator: u64, stake: u128) {
        self.nodes.insert(node, Owned { operator, stake, joined: true, ..Owned::default() });
    }

    pub fn of(&mut self, node: u32) -> &mut Owned {
        self.nodes.get_mut(&node).expect("joined")
    }

    /// Takes up to this much out of the reserve, in which one wei stays.
    pub fn take_reserve(&mut self, wei: u128) -> u128 {
        let taken = wei.min(self.reserve.saturating_sub(1));
        self.reserve -= taken;
        taken
    }

    pub fn score(&mut self, node: u32, score: u8) {
        let scores = &mut self.of(node).scores;
        scores.push(score);
        scores.drain(..scores.len().saturating_sub(POOL));
        let sum: u32 = scores.iter().map(|&score| u32::from(score)).sum();
        assert!(
            scores.len() < POOL || sum >= 2 * POOL as u32,
            "node {node} is kicked out by its scores, which is not played here"
        );
    }

    /// Slashes a node that has a stake of its own: whole stake units of that, the rest of its credit.
    pub fn slash(&mut self, node: u32, wei: u128, stake_unit: u128) -> Taken {
        let owned = self.of(node);
        assert!(owned.unbonding == 0, "whoever unbonds has left");
        let stake = (wei / stake_unit * stake_unit).min(owned.stake);
        let credit = (wei - stake).min(owned.credit);
        owned.stake -= stake;
        owned.credit -= credit;
        let leaves = (owned.stake < KEPT).then(|| std::mem::take(&mut owned.stake));
        if let Some(left) = leaves {
            owned.unbonding += left;
            owned.joined = false;
            owned.barred = true;
        }
        self.burnt += stake + credit;
        Taken { stake, credit, leaves }
    }

    /// Asserts that these nodes and everybody else have their expected money, and that nothing is open.
    pub fn compare<S: System>(&self, real: &mut S, nodes: &[u32]) {
        for node in nodes {
            let owned = &self.nodes[node];
            let view = real.answer(nodeCall { number: *node });
            assert_eq!((view.stake, view.status, view.openCommitments), (owned.stake, u8::from(owned.joined), 0), "{owned:?}");
            assert_eq!((view.held, view.calledTo, view.excluded, view.parked), (false, 0, false, 0), "{owned:?}");
            assert_eq!(usize::from(view.scores), owned.scores.len(), "{owned:?}");
            if !owned.scores.is_empty() {
                // Q_long / Q_max, of scores up to 10.
                let sum: u128 = owned.scores.iter().map(|&score| u128::from(score)).sum();
                assert_eq!(u128::from(view.longTerm), sum * TOKEN / (10 * owned.scores.len() as u128), "{owned:?}");
            }
            let account = real.answer(accountCall { who: who(owned.operator).into() });
            assert_eq!(
                (account.credit, account.unbonding, account.kickedOut),
                (owned.credit, owned.unbonding, owned.barred),
                "{owned:?}"
            );
        }
        for (person, credit) in [(CREATOR, self.creator), (DRIVER, self.driver)] {
            assert_eq!(real.answer(accountCall { who: who(person).into() }).credit, credit, "credit of {person}");
        }
        let overview = real.answer(overviewCall {});
        assert_eq!(
            (overview.reserve, overview.burnt, overview.treasuryBalance),
            (self.reserve, self.burnt, self.treasury),
            "reserve, burnt, treasury"
        );
        assert_eq!((overview.groups, overview.pending, overview.queued), (0, 0, 0));
        assert!(overview.groupPlaces as usize <= THREE, "places are used again");
        assert_eq!(self.all(), real.balance(), "all that came in and did not go out belongs to somebody");
    }

    fn all(&self) -> u128 {
        let owned: u128 = self.nodes.values().map(|n| n.stake + n.unbonding + n.credit).sum();
        owned + self.creator + self.driver + self.reserve + self.burnt + self.treasury
    }
}
