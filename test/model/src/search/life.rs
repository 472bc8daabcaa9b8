//! Lives and seasons.

use super::agents::Game;
use super::arena::{Arena, CLIENT, CREATOR};
use super::book::Tally;
use super::leaving::DEPARTURES;
use super::moves::{CLIENTS_GROUP, PRIVATE_MODEL};
use super::parties::{Nature, Side};
use super::plan::{Plan, Strategy, HONEST};
use super::rules::Rule;
use super::ALONE;
use crate::model::RESCHEDULES;
use crate::properties::Progress;
use crate::world::{spec, who, Dice, TOKEN};
use muster_core::record::Status;
use muster_protocol::abi::IMuster::*;
use muster_protocol::IMuster;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Lives of a season.
pub const LIVES: u64 = 20;
/// Nodes that its scope needs for a task to be scored.
const POOL: u64 = super::book::POOL as u64;
/// The least sum in the reserve that can be drained, before the first life of an adversary that keeps to one plan.
const RESERVE: u128 = 10_000 * TOKEN;
/// How often the adversary's nodes leave in a life to come back: nodes that join again are new, and stay.
const AWAY_MOST: u8 = 2;
/// Turns from one change of a parameter to the next, on average.
const CHANGES: u64 = 400;
/// Rounds in which a life must have had a group.
const ROUNDS: u64 = 400;
/// Turns in which a task must have ended, or gone to another group.
const TURNS: u64 = 600;

/// Plays a season of so many lives; gives the results of each strategy.
pub fn season(seed: u64, lives: u64) -> BTreeMap<Strategy, Tally> {
    season_under(seed, lives, &[])
}

/// The same with parameters of its own.
pub fn season_under(seed: u64, lives: u64, parameters: &[(&str, u64)]) -> BTreeMap<Strategy, Tally> {
    let (mut game, nodes) = open(seed, &[1, 5, 10, 20, 33, 40], parameters);
    let mut found: BTreeMap<Strategy, Tally> = BTreeMap::new();
    for life in 0..lives {
        let strategy = Strategy::pick(&mut game.a.dice);
        game.a.place = format!("season {seed}, life {life} ({strategy:?})");
        let plan = strategy.plan(&mut game.a.dice);
        let tally = game.life(plan, nodes);
        found.entry(strategy).or_default().add(&tally);
    }
    found
}

/// Plays a season in which the adversary, with a third of the nodes or two fifths, keeps to one plan, under an old rule, if one is put
/// back; gives the results.
pub fn season_of(plan: &Plan, seed: u64, lives: u64, old: Option<Rule>) -> Tally {
    let (mut game, nodes) = open(seed, &[33, 40], &[]);
    game.a.old = old;
    game.a.fund(RESERVE);
    let mut sum = Tally::default();
    for life in 0..lives {
        game.a.place = format!("season {seed}, life {life}, {old:?}: {plan:?}");
        sum.add(&game.life(plan.clone(), nodes));
    }
    sum
}

/// A season's network, in which the adversary has one of these shares in hundredths; and how many of its nodes are honest, and the
/// adversary's.
pub(super) fn open(seed: u64, shares: &[u64], parameters: &[(&str, u64)]) -> (Game, (u64, u64)) {
    let mut dice = Dice(seed);
    // Half of the networks are small, where few that leave make a difference.
    let most = [4, 20][dice.below(2) as usize];
    let nodes = POOL + 1 + dice.below(most);
    let own = (nodes * shares[dice.below(shares.len() as u64) as usize] / 100).max(1);
    let settings = [
        ("sampleBps", [1_000, 3_000, 10_000][dice.below(3) as usize]),
        ("slashImages", dice.below(2)),
        ("drawDelay", [1, 1, 1, 2, 0][dice.below(5) as usize]),
    ];
    let mut game = Game {
        a: Arena::new(dice.bits(), nodes - own, own, &[&settings[..], parameters].concat()),
        plan: HONEST,
        jobs: HashMap::new(),
        binding: HashSet::new(),
        drive: [0.1, 0.4, 0.8, 1.0][dice.below(4) as usize],
        private: Vec::new(),
        flood: 0,
        resting: Vec::new(),
        left: 0,
        turns: 0,
    };
    game.a.place = format!("season {seed}, before its lives");
    game.set_profile(CLIENT, (CLIENTS_GROUP, 2));
    // So that there is a reserve.
    game.plan = Strategy::Nothing.plan(&mut game.a.dice);
    game.plan.policy = 1;
    for _ in 0..5 {
        game.round();
    }
    (game, (nodes - own, own))
}

impl Game {
    /// One life: under one plan until there was a group and everything has ended.
    fn life(&mut self, plan: Plan, (honest, own): (u64, u64)) -> Tally {
        self.replenish(honest, own);
        (self.plan, self.left) = (plan, AWAY_MOST);
        self.a.book.life = Tally::default();
        self.jobs.clear();
        self.binding.clear();
        let before = self.a.standing();
        self.prepare_life();
        for _ in 0..self.plan.queue {
            self.hold_queue();
            self.round();
        }
        for _ in 0..ROUNDS {
            self.round();
            if self.a.book.life.groups > 0 || self.plan.policy == 0 {
                break;
            }
        }
        let alone = self.a.book.life.groups == 0;
        if alone && self.plan.policy > 0 {
            self.a.fail("no group was formed");
        }
        self.show_private(false);
        let after = self.a.standing();
        let mut tally = std::mem::take(&mut self.a.book.life);
        (tally.lives, tally.alone) = (1, u64::from(alone));
        tally.earned = after.adversary - before.adversary + tally.spent as i128;
        tally.spread = (tally.drained as f64 / 1e18).powi(2);
        tally.reserve = after.reserve as i128 - before.reserve as i128;
        self.draw_credit();
        tally
    }

    /// The preparation of a plan, before its first task.
    fn prepare_life(&mut self) {
        if self.plan.name {
            self.privately(POOL as usize);
            self.show_private(true);
        }
        if self.plan.model {
            for node in self.a.nodes(Side::Adversary) {
                let from = self.a.operator(node);
                let _ = self.a.call(from, 0, reportDownloadedCall { models: vec![PRIVATE_MODEL] });
            }
        }
        if self.plan.policy == 3 {
            self.set_profile(CREATOR, self.plan.rated);
        }
        self.flood = 2 * self.plan.ring;
        for _ in 0..self.plan.binding {
            self.a.book.next = Nature::Plain;
            let task = IMuster::TaskSpec { gpu: super::arena::CARD, redundancy: 2, ..spec(0, &[]) };
            if let Ok(id) = self.a.call(who(CREATOR), 180, createTaskCall { spec: task }) {
                self.binding.insert(id);
            }
        }
        if self.plan.binding > 0 {
            // Until the others have committed.
            let until = self.a.w.mem.now + 60;
            while self.a.w.mem.now < until {
                self.turn();
            }
        }
    }

    /// Tasks are created, and everything comes to its end.
    fn round(&mut self) {
        if self.flood > 0 {
            self.flood_ring(self.plan.ring);
        }
        let own = self.plan.creator == Side::Adversary;
        let mut all = Vec::new();
        for i in 0..self.plan.tasks {
            let (images, policy) = (self.plan.images, self.plan.policy);
            let (task, fee) = self.wanted(images, policy, own);
            if own {
                all.push((task, fee));
            } else {
                self.a.book.next = Nature::Plain;
                self.a.must(who(CLIENT), fee, createTaskCall { spec: task });
            }
            // Others have work too.
            if i == 0 && self.a.dice.below(3) == 0 {
                self.a.book.next = Nature::Plain;
                let policy = self.a.dice.below(4) as u8;
                let images = self.a.dice.below(2) == 0;
                let (task, fee) = self.wanted(images, policy, false);
                self.a.must(who(CLIENT), fee, createTaskCall { spec: task });
            }
        }
        if own {
            self.create_own(all);
        }
        let mut progress = Progress::within(TURNS, self.left_to_do());
        while !self.a.is_quiet() || self.flood > 0 {
            self.turn();
            let holds = progress.round(self.left_to_do());
            self.a.must_hold(holds);
        }
    }

    /// The most groups that open tasks can still be given to, and those with which the ring is still to be flooded.
    fn left_to_do(&self) -> u64 {
        self.a.book.left() + (1 + RESCHEDULES) * self.flood
    }

    /// One block: everybody acts, and time passes.
    fn turn(&mut self) {
        let first = self.a.dice.below(3) > 0;
        if first {
            self.plot();
        }
        self.work(Side::Honest);
        self.rest();
        if self.a.dice.unit() < self.drive {
            self.driven(Side::Honest);
        }
        if !first {
            self.plot();
        }
        self.turns += 1;
        if self.turns.is_multiple_of(DEPARTURES) {
            self.honest_leave();
        }
        self.pass();
    }

    /// The block ends, and time passes.
    pub(super) fn pass(&mut self) {
        let (now, next) = (self.a.w.mem.now, self.next_time());
        let seconds = (next - now).min(if self.a.dice.below(4) == 0 { 1 + self.a.dice.below(5) } else { u64::MAX });
        self.a.note_time(seconds);
        if self.a.dice.below(CHANGES) == 0 {
            self.a.change_something();
        }
        let alone = self.plan.grinds && self.a.dice.unit() < ALONE;
        if alone {
            let own = self.a.nodes(Side::Adversary);
            self.a.next_block(seconds, Some(&own));
        } else {
            self.a.next_block(seconds, None);
        }
    }

    /// Nodes that were lost or have left are made up for by new ones; paused ones resume.
    fn replenish(&mut self, honest: u64, own: u64) {
        for (side, wanted) in [(Side::Honest, honest), (Side::Adversary, own)] {
            let mut there = 0;
            for node in self.a.nodes(side) {
                if self.private.contains(&node) || self.resting.contains(&node) {
                    there += u64::from(self.resting.contains(&node));
                    continue;
                }
                match Status::new(self.a.seat(node).node.status) {
                    Status::Quit => {}
                    Status::Paused => {
                        let from = self.a.operator(node);
                        self.a.must(from, 0, resumeCall {});
                        there += 1;
                    }
                    _ => there += 1,
                }
            }
            for _ in there..wanted {
                self.a.enter(side);
            }
        }
        let gone = |seat: muster_protocol::store::node::NodeHandle| seat.node.status == Status::Quit as u8;
        let private: Vec<u32> = self.private.clone().into_iter().filter(|n| !gone(self.a.seat(*n))).collect();
        self.private = private;
        let resting: Vec<u32> = self.resting.clone().into_iter().filter(|n| !gone(self.a.seat(*n))).collect();
        self.resting = resting;
    }

    /// An honest person takes the money that they are owed.
    fn draw_credit(&mut self) {
        let person = self.a.people[self.a.dice.below(self.a.people.len() as u64) as usize].clone();
        let from = who(person.number);
        if person.side == Side::Honest && self.a.w.account(person.number).credit > 0 {
            self.a.must(from, 0, withdrawCall { to: from.into() });
        } else {
            let _ = self.a.call(from, 0, withdrawCall { to: from.into() });
        }
    }
}
