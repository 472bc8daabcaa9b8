//! The best plans: many are played, the best of each kind of harm are crossed with others, and the best in the end are played again in
//! networks that they were not chosen in.

use super::book::Tally;
use super::harm::Harm;
use super::life::season_of;
use super::parties::Side;
use super::plan::{Plan, Strategy};
use super::rules::Rule;
use crate::world::Dice;
use std::collections::BTreeMap;

/// The divisor of the harm: the adversary's cost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Per {
    /// Its spending, of plans with tasks of its own: in tokens where the harm is, otherwise in parts, each the offer for one node's work.
    Fee,
    /// A million gas.
    Gas,
}

impl Per {
    fn cost(self, harm: Harm, tally: &Tally) -> f64 {
        match self {
            Per::Fee if harm.is_money() => tally.spent as f64 / 1e18,
            Per::Fee => tally.parts as f64 / 100.0,
            Per::Gas => tally.gas as f64 / 1e6,
        }
    }
}

/// The least spending, in tokens or parts, for one plan to be compared with another.
const FREE: f64 = 0.01;
/// Plans of each kind that are played again.
pub const LEADERS: usize = 8;

/// How much is played.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Plans tried.
    pub plans: u64,
    /// Seasons of each, and of each of the [`LEADERS`] afterwards.
    pub seasons: (u64, u64),
    /// Lives in each season.
    pub lives: u64,
}

/// A plan, and its results in networks in which it was not chosen.
#[derive(Clone, Debug)]
pub struct Best {
    /// The plan.
    pub plan: Plan,
    /// Its results.
    pub tally: Tally,
}

/// The findings of a hunt.
#[derive(Clone, Default, Debug)]
pub struct Found {
    /// The best plans that did any such harm.
    pub best: BTreeMap<(Harm, Per), Best>,
    /// All that was played, those of the best included.
    pub sum: Tally,
}

impl Found {
    /// The most harm by cost that any plan did, infinite if it costs gas alone; none where none did any, or by luck alone.
    pub fn rate(&self, harm: Harm, per: Per) -> Option<f64> {
        let best = self.best.get(&(harm, per))?;
        let amount = harm.of(&best.tally);
        (amount > 3.0 * harm.luck(&best.tally)).then(|| amount / per.cost(harm, &best.tally))
    }
}

/// A plan by chance. The ring and the queue, of which each takes thousands of calls, are left to the lives.
fn some(dice: &mut Dice) -> Plan {
    let plan = Strategy::pick(dice).plan(dice);
    Plan { ring: 0, queue: 0, ..plan }
}

/// Hunts for the plans that do most of these kinds of harm, under a rule of old, if one is put back. Plans that are known already are
/// played first, beyond the budget's.
pub fn hunt(seed: u64, old: Option<Rule>, harms: &[Harm], budget: &Budget, known: &[Plan]) -> Found {
    let mut dice = Dice(seed);
    let mut found = Found::default();
    let mut ahead: BTreeMap<(Harm, Per), Vec<(f64, Plan)>> = BTreeMap::new();
    let mut seeds = seed..;
    let mut play = |plan: &Plan, seasons: u64| {
        let mut tally = Tally::default();
        (0..seasons).for_each(|_| tally.add(&season_of(plan, seeds.next().expect("endless"), budget.lives, old)));
        found.sum.add(&tally);
        tally
    };
    // By the part that is beyond luck.
    let price = |harm: Harm, per: Per, tally: &Tally| (harm.of(tally) - 2.0 * harm.luck(tally)) / per.cost(harm, tally).max(FREE);
    for n in 0..known.len() as u64 + budget.plans {
        let mut plan = some(&mut dice);
        if let Some(known) = known.get(n as usize) {
            plan = known.clone();
        } else if 2 * (n - known.len() as u64) >= budget.plans && !ahead.is_empty() {
            // In the second half a leader's moves, crossed with others.
            let some = ahead.values().nth(dice.below(ahead.len() as u64) as usize).expect("one of them");
            let leader = some[dice.below(some.len() as u64) as usize].1.clone();
            plan = Plan { ring: 0, queue: 0, tries: false, ..leader.with(plan, &mut dice) };
        }
        let tally = play(&plan, budget.seasons.0);
        for &harm in harms {
            for per in [Per::Fee, Per::Gas] {
                let price = price(harm, per, &tally);
                if price > 0.0 && (per == Per::Gas || plan.creator == Side::Adversary) {
                    let leaders = ahead.entry((harm, per)).or_default();
                    let place = leaders.partition_point(|(other, _)| *other >= price);
                    leaders.insert(place, (price, plan.clone()));
                    leaders.truncate(LEADERS);
                }
            }
        }
    }
    let mut best = BTreeMap::new();
    for ((harm, per), leaders) in ahead {
        let again = leaders.into_iter().map(|(_, plan)| Best { tally: play(&plan, budget.seasons.1), plan });
        let first = again.max_by(|a, b| price(harm, per, &a.tally).total_cmp(&price(harm, per, &b.tally)));
        best.extend(first.map(|first| ((harm, per), first)));
    }
    found.best = best;
    found
}
