//! Rounds (section 5.1 of the paper): all workers get work, all answers are counted, all ratings change, at once.
//!
//! There is always more work than workers. Wrong answers never agree with each other.

use muster_core::adaptive::{HillClimber, Tally};
use muster_core::reputation::{vote, Formed, Likelihood, Record};
use muster_core::wad::WAD;

use crate::bound::LogRating;
use crate::grouping::{expected_tally, form_all, likelihood_of, rule, sort, sorts, ByBound, ByExact, Worker, SCALE};
pub use crate::grouping::{Algorithm, Blackout, Feedback, Measure, Run, Targeting};
use crate::plan;
use crate::population::{threshold, Population};
use crate::random::Random;

/// The results of one round, for a curve over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    pub successes: u32,
    pub groups: u32,
    /// Workers in these groups.
    pub members: u32,
    /// A wad.
    pub target: u64,
}

/// A run's results: means over its rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Successful tasks in a round.
    pub throughput: f64,
    /// Throughput by the number of groups there would be were all of size Rmin.
    pub normalised: f64,
    /// Share of groups that succeeded, mean over rounds.
    pub success: f64,
    /// Groups formed in a round.
    pub attempted: f64,
    /// Members of a group, mean over rounds.
    pub group_size: f64,
    /// How often a likelihood was asked for in a round.
    pub evaluations: f64,
    /// Exact likelihood minus lower bound, mean over groups; only if asked for.
    pub bound_error: f64,
    /// Rounds until the climb was over for the first time.
    pub converged: Option<u32>,
    /// Rounds until the first climb after the blackout began, and until that was over.
    pub restarted: Option<u32>,
    pub resettled: Option<u32>,
    /// Of the second half of the run: mean target, normalised throughput and success rate.
    pub late_target: f64,
    pub late_normalised: f64,
    pub late_success: f64,
    pub per_round: Vec<Round>,
}

impl Outcome {
    /// G = alpha rho + (1 - alpha) s, mean over rounds.
    pub fn gain(&self, alpha: f64) -> f64 {
        alpha * self.normalised + (1.0 - alpha) * self.success
    }

    /// The same of the second half.
    pub fn late_gain(&self, alpha: f64) -> f64 {
        alpha * self.late_normalised + (1.0 - alpha) * self.late_success
    }
}

/// Plays a run.
pub fn play(run: &Run) -> Outcome {
    match run.measure {
        Measure::Bound => World::new(run).play::<ByBound>(),
        Measure::Exact => World::new(run).play::<ByExact>(),
    }
}

struct World<'r> {
    run: &'r Run,
    workers: Vec<Worker>,
    random: Random,
}

/// Names of random streams.
const POPULATION: u64 = 1;
const PLAY: u64 = 2;
const BLACKOUT: u64 = 3;

/// Probabilities of a correct answer, times 2^64, of workers drawn from a population.
pub fn chances(population: Population, workers: usize, seed: u64) -> Vec<u64> {
    let mut draw = Random::named(&[POPULATION, population.stream(), workers as u64, seed]);
    (0..workers).map(|_| threshold(population.draw(&mut draw))).collect()
}

impl<'r> World<'r> {
    fn new(run: &'r Run) -> Self {
        let population = run.population.stream();
        let record = Record::default();
        let workers = (0u32..)
            .zip(chances(run.population, run.workers, run.population_seed))
            .map(|(id, chance)| Worker { id, record, rating: record.rating(), logs: LogRating::new(record.rating()), chance })
            .collect();
        let random = Random::named(&[PLAY, population, run.population_seed, run.run_seed]);
        Self { run, workers, random }
    }

    fn play<M>(mut self) -> Outcome
    where
        M: for<'a> Likelihood<&'a Worker>,
    {
        let run = self.run;
        let mut target = Target::new(run.targeting);
        let mut outcome = Outcome::default();
        let mut planner = plan::Planner::default();
        let mut groups: Vec<Formed> = Vec::new();
        let mut judged: Vec<(u32, bool)> = Vec::new();
        let (mut compared, mut bound_error) = (0u64, 0u128);
        let mut rested = false;
        let expects = matches!(run.targeting, Targeting::Adaptive(_, Feedback::Expected));
        for round in 1..=run.rounds {
            let aim = target.current();
            groups.clear();
            judged.clear();
            let mut order: Vec<&Worker> = self.workers.iter().collect();
            if sorts(run.algorithm) {
                sort(&mut order);
            }
            let rule = rule(run, aim);
            match run.algorithm {
                Algorithm::Planned => planner.form(&mut order, &rule, run.alpha, &mut self.random, &mut groups),
                algorithm => form_all::<M>(algorithm, &mut order, &rule, &mut self.random, &mut groups),
            }

            let (mut successes, mut members, mut evaluations) = (0u32, 0usize, 0u64);
            let mut expected = 0u64;
            let mut rest = &order[..];
            for formed in &groups {
                let (group, others) = rest.split_at(formed.size);
                rest = others;
                let (answers, random) = (&mut [None; muster_core::reputation::MAX_GROUP], &mut self.random);
                for (answer, worker) in answers.iter_mut().zip(group) {
                    // Right answers agree; wrong ones agree with nothing, like missing ones.
                    *answer = (random.bits() < worker.chance).then_some(());
                }
                let mut correct = [false; muster_core::reputation::MAX_GROUP];
                successes += u32::from(vote(&answers[..formed.size], &mut correct).is_some());
                judged.extend(group.iter().zip(correct).map(|(worker, correct)| (worker.id, correct)));
                members += formed.size;
                evaluations += u64::from(formed.evaluations);
                if expects {
                    expected += likelihood_of::<ByExact>(group) >> SCALE;
                }
                if run.compare_measures {
                    compared += 1;
                    let (exact, bound) = (likelihood_of::<ByExact>(group), likelihood_of::<ByBound>(group));
                    bound_error += u128::from(exact.saturating_sub(bound));
                }
            }

            let count = groups.len();
            let capacity = run.workers / run.min;
            let rho = f64::from(successes) / capacity as f64;
            let rate = if count == 0 { 0.0 } else { f64::from(successes) / count as f64 };
            outcome.throughput += f64::from(successes);
            outcome.normalised += rho;
            outcome.success += rate;
            outcome.attempted += count as f64;
            if round > run.rounds / 2 {
                outcome.late_target += aim as f64 / WAD as f64;
                outcome.late_normalised += rho;
                outcome.late_success += rate;
            }
            outcome.group_size += if count == 0 { 0.0 } else { members as f64 / count as f64 };
            outcome.evaluations += evaluations as f64;
            if run.keep_rounds {
                outcome.per_round.push(Round { successes, groups: count as u32, members: members as u32, target: aim });
            }

            for &(id, correct) in &judged {
                let worker = &mut self.workers[id as usize];
                worker.record.note(correct);
                worker.rating = worker.record.rating();
                if run.measure == Measure::Bound || run.compare_measures {
                    worker.logs = LogRating::new(worker.rating);
                }
            }
            if let Some(blackout) = run.blackout.filter(|b| b.after == round) {
                self.strike(blackout);
            }
            let tally = if expects {
                expected_tally(expected, count, capacity)
            } else {
                Tally { successes: successes.into(), groups: count as u64, capacity: capacity as u64 }
            };
            let rests = target.learn(tally, round, run, &self.workers, &mut self.random);
            if rests {
                outcome.converged.get_or_insert(round);
            }
            if run.blackout.is_some_and(|b| round > b.after) {
                match outcome.restarted {
                    None if rested && !rests => outcome.restarted = Some(round),
                    Some(_) if rests => _ = outcome.resettled.get_or_insert(round),
                    _ => {}
                }
            }
            rested = rests;
        }
        let rounds = f64::from(run.rounds.max(1));
        for mean in [
            &mut outcome.throughput,
            &mut outcome.normalised,
            &mut outcome.success,
            &mut outcome.attempted,
            &mut outcome.group_size,
            &mut outcome.evaluations,
        ] {
            *mean /= rounds;
        }
        let late = f64::from((run.rounds - run.rounds / 2).max(1));
        for mean in [&mut outcome.late_target, &mut outcome.late_normalised, &mut outcome.late_success] {
            *mean /= late;
        }
        if compared > 0 {
            outcome.bound_error = bound_error as f64 / WAD as f64 / compared as f64;
        }
        outcome
    }

    /// Gives a random part of the workers a new, unrelated reliability. Their records stay.
    fn strike(&mut self, blackout: Blackout) {
        let run = self.run;
        let mut random = Random::named(&[BLACKOUT, run.population.stream(), run.population_seed]);
        let mut ids: Vec<usize> = (0..self.workers.len()).collect();
        for i in 0..ids.len() * blackout.percent / 100 {
            let other = i + random.below(ids.len() - i);
            ids.swap(i, other);
            self.workers[ids[i]].chance = threshold(blackout.to.draw(&mut random));
        }
    }
}

/// The targeting during a run.
enum Target {
    Static(u64),
    Adaptive(HillClimber),
    Predictive { alpha: u64, every: u32, target: u64 },
}

impl Target {
    fn new(targeting: Targeting) -> Self {
        match targeting {
            Targeting::Static(target) => Self::Static(target),
            Targeting::Adaptive(settings, _) => Self::Adaptive(HillClimber::new(settings)),
            Targeting::Predictive { alpha, every } => Self::Predictive { alpha, every, target: WAD / 2 },
        }
    }

    fn current(&self) -> u64 {
        match self {
            Self::Static(target) | Self::Predictive { target, .. } => *target,
            Self::Adaptive(climber) => climber.target(),
        }
    }

    /// Takes in a round; true if it is at rest.
    fn learn(&mut self, tally: Tally, round: u32, run: &Run, workers: &[Worker], random: &mut Random) -> bool {
        match self {
            Self::Static(_) => true,
            Self::Adaptive(climber) => {
                climber.observe(tally);
                climber.is_steady()
            }
            Self::Predictive { alpha, every, target } => {
                if round.is_multiple_of(*every) {
                    *target = plan::best_target(*alpha, run, workers, random);
                }
                true
            }
        }
    }
}
