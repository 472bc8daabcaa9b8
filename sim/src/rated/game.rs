//! The paper's rounds (its section 5.1), played on the contract: every node that can be given a task gets one, all answer, all are judged.

use muster_core::adaptive::best_target;
use muster_core::reputation::{Algorithm, Exact};
use muster_core::wad::WAD;

use super::field::{answer, profile, Answer, Field, Group, Scope, RIGHT};
use crate::population::Population;
use crate::random::Random;
use crate::rounds::chances;

/// Members of a group, at least and at most, as in the paper's experiments.
pub const SIZES: (usize, usize) = (3, 7);
/// Settled groups after which a target is set anew.
pub const PERIOD: u32 = 300;
const APPLICATION: u32 = 1;
/// Names of random streams.
const ANSWERS: u64 = 20;
const CHAIN: u64 = 21;

/// An honest node's answer, right with this chance, a binary fraction. Wrong answers never agree.
pub fn honestly(random: &mut Random, chance: u64) -> Answer {
    if random.bits() < chance {
        RIGHT
    } else {
        answer(random.bits() | 1)
    }
}

/// The source of the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// Given, a wad.
    Given(u64),
    /// The contract computes it from the pool of a draw.
    Predictive,
    /// The application computes it as often, by the same code, from the ratings of all nodes, and sets it.
    Outside,
}

/// One run; it determines its outcome to the last digit.
#[derive(Clone, Copy, Debug)]
pub struct Game {
    pub population: Population,
    pub nodes: usize,
    pub algorithm: Algorithm,
    pub target: Target,
    /// Weight of throughput in the gain, a wad.
    pub alpha: u64,
    pub rounds: u32,
    /// The seed of the nodes drawn from the population: the same as in [`crate::rounds`].
    pub population_seed: u64,
    /// Everything else that is random.
    pub run_seed: u64,
}

/// A run's results: means over its rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Successful tasks in a round.
    pub throughput: f64,
    /// Share of groups that succeeded, mean over rounds.
    pub success: f64,
    /// Members of a group, mean over rounds.
    pub size: f64,
    /// Nodes without a group in a round.
    pub left: f64,
    /// Share of groups whose judgement changed no rating.
    pub unscored: f64,
    /// Of the second half of the run: mean target, throughput by the number of groups there would be were all as small as allowed, and
    /// success rate.
    pub late_target: f64,
    pub late_normalised: f64,
    pub late_success: f64,
}

impl Outcome {
    /// G = alpha rho + (1 - alpha) s of the second half.
    pub fn late_gain(&self, alpha: f64) -> f64 {
        alpha * self.late_normalised + (1.0 - alpha) * self.late_success
    }
}

/// A group and its members' answers.
pub type Answered = (Group, Vec<super::field::Answer>);

/// Lets everybody commit, then everybody reveal.
pub fn settle(field: &mut Field, groups: &[Answered]) -> Vec<super::field::Settled> {
    field.pass(1);
    groups.iter().for_each(|(group, answers)| field.commit(group, answers));
    field.pass(1);
    groups.iter().map(|(group, answers)| field.reveal(group, answers)).collect()
}

/// Plays a run.
pub fn play(game: &Game) -> Outcome {
    let name = [game.population.stream(), game.population_seed, game.run_seed];
    let mut random = Random::named(&[ANSWERS, name[0], name[1], name[2]]);
    let mut field = Field::new(Random::named(&[CHAIN, name[0], name[1], name[2]]).bits());
    let chances = chances(game.population, game.nodes, game.population_seed);
    let cards: Vec<u32> = chances.iter().map(|_| field.join("Card").1).collect();
    field.list(cards[0]);
    let (targeting, target) = match game.target {
        Target::Given(target) => (2, target),
        Target::Predictive => (0, WAD / 2),
        Target::Outside => (2, WAD / 2),
    };
    let usual = profile(game.algorithm as u8, targeting, target, game.alpha);
    field.set_profile(APPLICATION, usual.clone());
    let (least, most) = SIZES;
    let capacity = (game.nodes / least) as f64;
    let mut outcome = Outcome::default();
    let (mut settled, mut groups_in_all, mut unscored) = (0, 0u64, 0u64);
    for round in 1..=game.rounds {
        if game.target == Target::Outside && settled >= PERIOD {
            settled = 0;
            let target = outside(&mut field, game);
            field.set_profile(APPLICATION, super::field::Profile { target, ..usual.clone() });
        }
        let mut idle = game.nodes;
        let mut groups: Vec<Answered> = Vec::new();
        while idle >= most {
            let group = field.form(APPLICATION, Scope::Text(cards[0]), most as u8);
            idle -= group.members.len();
            let answers = group.members.iter().map(|node| honestly(&mut random, chances[*node as usize - 1])).collect();
            groups.push((group, answers));
        }
        let judged = settle(&mut field, &groups);
        field.end_round();
        let count = groups.len() as f64;
        let successes = judged.iter().filter(|settled| settled.answer.is_some()).count() as f64;
        settled += groups.len() as u32;
        groups_in_all += groups.len() as u64;
        unscored += groups.iter().filter(|(group, _)| !group.scored).count() as u64;
        outcome.throughput += successes;
        outcome.success += successes / count;
        outcome.size += (game.nodes - idle) as f64 / count;
        outcome.left += idle as f64;
        if round > game.rounds / 2 {
            outcome.late_target += groups[0].0.target as f64 / WAD as f64;
            outcome.late_normalised += successes / capacity;
            outcome.late_success += successes / count;
        }
    }
    let rounds = f64::from(game.rounds.max(1));
    for mean in [&mut outcome.throughput, &mut outcome.success, &mut outcome.size, &mut outcome.left] {
        *mean /= rounds;
    }
    let late = f64::from((game.rounds - game.rounds / 2).max(1));
    for mean in [&mut outcome.late_target, &mut outcome.late_normalised, &mut outcome.late_success] {
        *mean /= late;
    }
    outcome.unscored = unscored as f64 / groups_in_all.max(1) as f64;
    outcome
}

/// The target whose groups, formed of all nodes by their ratings as long as the contract would, have the largest expected gain.
fn outside(field: &mut Field, game: &Game) -> u64 {
    let mut ratings: Vec<u64> = (1..=field.nodes()).map(|number| field.rating(number)).collect();
    ratings.sort_unstable_by(|a, b| b.cmp(a));
    let mut scratch = ratings.clone();
    best_target::<_, Exact>(game.alpha, SIZES, &ratings, &mut scratch, |free, rule| {
        let enough = free.len() >= rule.max();
        enough.then(|| game.algorithm.form::<_, Exact>(free, rule, |_| 0)).flatten()
    })
}
