//! Farmed ratings: an application that feeds its own nodes, and the harm that these then do to the tasks of others.
//!
//! The nodes are of a GPU that nobody else names, so that a task can be meant for them alone; images are compared wherever there are
//! `scorePool` idle nodes, and counted for ratings. They take tasks for any GPU as well.

use muster_core::reputation::Algorithm;
use muster_core::wad::WAD;

use super::field::{answer, profile, Answer, Calls, Field, Scope, FEE, RIGHT};
use super::game::{self, settle, Answered, SIZES};
use crate::network::ledger::Party;
use crate::population::Population;
use crate::random::Random;
use crate::rounds::chances;

const OTHERS: u32 = 1;
const FARMER: u32 = 2;
/// Nodes that a farmed task is given to: as many as a profile can ask for.
const FED: u8 = 9;
/// The farmer's nodes' answer to others, when they collude.
const FALSE: Answer = answer(0xffff_ffff_0000_0000);
const ANSWERS: u64 = 22;
const CHAIN: u64 = 23;

/// The later conduct of the farmer's nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conduct {
    /// They are not there.
    Absent,
    /// To the tasks of others each gives an answer of its own that is wrong.
    Alone,
    /// They all give the same wrong answer.
    Agreed,
}

/// One life: honest nodes alone, then the farmer's nodes join and are fed, then they answer the tasks of others.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    pub population: Population,
    pub honest: usize,
    pub farmers: usize,
    pub conduct: Conduct,
    /// Farmed tasks before the first of others is answered, and in each round after.
    pub before: u32,
    pub each: u32,
    /// The other application's algorithm; its target is predictive, its alpha 0.5.
    pub algorithm: Algorithm,
    /// Rounds without the farmer, and with it.
    pub rounds: (u32, u32),
    pub seed: u64,
}

/// The cost of farming, and its results. Wei; shares of the other application's groups while the farmer's nodes are there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    pub right: f64,
    pub undecided: f64,
    pub wrong: f64,
    /// Right answers in a round.
    pub throughput: f64,
    /// The others' fees that the farmer's nodes earned in a round, in tokens.
    pub earned: f64,
    /// Mean rating of the farmer's nodes when they begin, and at the end.
    pub ratings: (f64, f64),
    /// Of the honest ones, likewise.
    pub honest: (f64, f64),
    pub price: Price,
}

/// The cost of feeding.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    pub tasks: u64,
    /// Judgements that one of the farmer's nodes was right.
    pub judgements: u64,
    /// Fees that did not come back, start fees among them, in wei.
    pub fees: u128,
    pub start_fees: u128,
    /// Paid for the GPU's name, in wei.
    pub name: u128,
    pub calls: Calls,
    /// Seconds it took.
    pub seconds: u64,
}

/// Plays a life.
pub fn live(life: &Life) -> Outcome {
    let mut world = World::new(life.population, life.honest, life.seed);
    let usual = profile(life.algorithm as u8, 0, WAD / 100 * 49, WAD / 2);
    world.field.set_profile(OTHERS, usual);
    for _ in 0..life.rounds.0 {
        world.round(Conduct::Absent);
    }
    let mut outcome = Outcome::default();
    let mut scope = Scope::Image;
    if life.conduct != Conduct::Absent {
        scope = world.admit(life.farmers, &mut outcome.price);
        world.feed(scope, life.before, &mut outcome.price);
    }
    (outcome.ratings.0, outcome.honest.0) = world.ratings();
    let before = world.income();
    let mut fed = Price::default();
    let mut sums = [0u64; 3];
    for _ in 0..life.rounds.1 {
        world.feed(scope, life.each, &mut fed);
        let round = world.round(life.conduct);
        sums.iter_mut().zip(round).for_each(|(sum, n)| *sum += n);
    }
    let (rounds, groups) = (f64::from(life.rounds.1), sums.iter().sum::<u64>() as f64);
    // Fees of its own that came back are no income.
    let of_fees = world.income() - before - fed.income(life.each * life.rounds.1);
    [outcome.right, outcome.undecided, outcome.wrong] = sums.map(|n| n as f64 / groups);
    outcome.throughput = sums[0] as f64 / rounds;
    outcome.earned = of_fees as f64 / 1e18 / rounds;
    (outcome.ratings.1, outcome.honest.1) = world.ratings();
    outcome.price.add(&fed);
    outcome
}

/// The cost of as many right judgements in the common scope, where a farmed task goes to any drawn node.
pub fn among_all(population: Population, honest: usize, farmers: usize, tasks: u32, seed: u64) -> Price {
    let mut world = World::new(population, honest, seed);
    let mut price = Price::default();
    world.admit(farmers, &mut price);
    world.feed(Scope::Image, tasks, &mut price);
    price
}

impl Price {
    /// The income of the farmer's nodes from this many farmed tasks, in wei, refunds included.
    fn income(&self, tasks: u32) -> u128 {
        FEE * u128::from(FED) * u128::from(tasks) - self.fees
    }

    fn add(&mut self, other: &Self) {
        self.tasks += other.tasks;
        self.judgements += other.judgements;
        self.fees += other.fees;
        self.start_fees += other.start_fees;
        self.seconds += other.seconds;
        self.calls = self.calls.add(other.calls);
    }
}

struct World {
    field: Field,
    /// Of the honest nodes, whose numbers come first.
    chances: Vec<u64>,
    random: Random,
}

impl World {
    fn new(population: Population, honest: usize, seed: u64) -> Self {
        let name = |stream| Random::named(&[stream, population.stream(), seed]);
        let mut field = Field::new(name(CHAIN).bits());
        let chances = chances(population, honest, seed);
        chances.iter().for_each(|_| _ = field.join("Card"));
        Self { field, chances, random: name(ANSWERS) }
    }

    fn farmers(&self) -> std::ops::RangeInclusive<u32> {
        self.chances.len() as u32 + 1..=self.field.nodes()
    }

    /// Lets the farmer's nodes join; returns the scope that is theirs alone.
    fn admit(&mut self, farmers: usize, price: &mut Price) -> Scope {
        let mut own = 0;
        for _ in 0..farmers {
            let (_, group, fee) = self.field.join("Mine");
            (own, price.name) = (group, price.name + fee);
        }
        let fed = super::field::Profile { least: FED, most: FED, ..profile(Algorithm::Fixed as u8, 2, 0, 0) };
        self.field.set_profile(FARMER, fed);
        Scope::ImageOf(own)
    }

    /// Creates farmed tasks, one after the other, to which the farmer's nodes know the answer.
    fn feed(&mut self, scope: Scope, tasks: u32, price: &mut Price) {
        let (income, calls, age) = (self.income(), self.field.calls, self.field.age());
        for _ in 0..tasks {
            let group = self.field.form(FARMER, scope, FED);
            let farmers = self.farmers();
            let answers: Vec<Answer> =
                group.members.iter().map(|&n| if farmers.contains(&n) { RIGHT } else { self.honestly(n) }).collect();
            // With a majority or without one, members that agree with another count as right.
            let agreed = answers.iter().filter(|answer| **answer == RIGHT).count() > 1;
            let own = group.members.iter().filter(|n| farmers.contains(n)).count() as u64;
            let scored = group.scored;
            let judged = settle(&mut self.field, &[(group, answers)]);
            price.judgements += if scored && agreed { own } else { 0 };
            price.start_fees += judged[0].start_fee;
        }
        price.tasks += u64::from(tasks);
        price.fees += FEE * u128::from(FED) * u128::from(tasks) - (self.income() - income);
        price.calls = price.calls.add(self.field.calls.less(calls));
        price.seconds += self.field.age() - age;
    }

    /// One round of the other application's tasks; the number of groups that agreed on the right answer, on none, and on a wrong one.
    fn round(&mut self, conduct: Conduct) -> [u64; 3] {
        let (_, most) = SIZES;
        let (mut idle, mut groups) = (self.field.nodes() as usize, Vec::<Answered>::new());
        let farmers = self.farmers();
        while idle >= most {
            let group = self.field.form(OTHERS, Scope::Image, most as u8);
            idle -= group.members.len();
            let answers = group.members.iter().map(|&n| match conduct {
                Conduct::Agreed if farmers.contains(&n) => FALSE,
                _ if farmers.contains(&n) => answer(self.random.bits() | 1),
                _ => self.honestly(n),
            });
            let answers = answers.collect();
            groups.push((group, answers));
        }
        let mut counts = [0; 3];
        for settled in settle(&mut self.field, &groups) {
            counts[match settled.answer {
                Some(RIGHT) => 0,
                None => 1,
                Some(_) => 2,
            }] += 1;
        }
        self.field.end_round();
        counts
    }

    fn honestly(&mut self, node: u32) -> Answer {
        game::honestly(&mut self.random, self.chances[node as usize - 1])
    }

    /// Wei that the farmer, as an application and by its nodes, can withdraw.
    fn income(&self) -> u128 {
        self.farmers().map(Party::Operator).chain([Party::Application(FARMER)]).map(|party| self.field.credit(party)).sum()
    }

    /// Mean rating of the farmer's nodes, zero where there are none, and of the honest ones.
    fn ratings(&mut self) -> (f64, f64) {
        let farmers = self.farmers();
        let (first, all) = (*farmers.start(), self.field.nodes());
        let mut mean = |from: u32, to: u32| {
            let sum: f64 = (from..=to).map(|number| self.field.rating(number) as f64 / WAD as f64).sum();
            sum / f64::from((to + 1 - from).max(1))
        };
        (mean(first, all), mean(1, first - 1))
    }
}
