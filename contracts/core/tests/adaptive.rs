//! The adaptive target: the gain by hand, and the climber on landscapes whose peak is known; the predictive one, by dividing anew.

use muster_core::adaptive::*;
use muster_core::record::TargetSearch;
use muster_core::reputation::{likelihood, Algorithm, Exact, Rule};
use muster_core::wad::WAD;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn tally(successes: u64, groups: u64, capacity: u64) -> Tally {
    Tally { successes, groups, capacity }
}

#[test]
fn gain_weighs_throughput_against_success() {
    let round = tally(18, 20, 33);
    assert_eq!(gain(round, 0), 900_000_000_000_000_000);
    assert_eq!(gain(round, WAD), 18 * WAD / 33);
    assert_eq!(gain(round, WAD / 2), 18 * (WAD / 2) / 33 + 450_000_000_000_000_000);
    assert_eq!(gain(Tally::default(), WAD / 2), 0);
    assert_eq!(gain(tally(0, 20, 33), WAD / 2), 0);
    assert_eq!(gain(tally(33, 33, 33), WAD / 3), WAD);
    assert_eq!(gain(round, u64::MAX), gain(round, WAD));
    assert_eq!(gain(tally(u64::MAX, 1, 1), WAD / 2), WAD);
}

/// Plays rounds whose throughput is `landscape(target)` out of a million, and nothing else.
fn play(climber: &mut HillClimber, rounds: usize, landscape: impl Fn(f64) -> f64) {
    for _ in 0..rounds {
        let target = climber.target() as f64 / WAD as f64;
        let successes = (landscape(target) * 1e6) as u64;
        climber.observe(tally(successes, 1_000_000, 1_000_000));
    }
}

fn target(climber: &HillClimber) -> f64 {
    climber.target() as f64 / WAD as f64
}

/// A peak with slopes on both sides.
fn peak(at: f64) -> impl Fn(f64) -> f64 {
    move |target| 0.8 / (1.0 + 4.0 * (target - at) * (target - at))
}

#[test]
fn climbs_a_single_peak_and_stays() {
    for at in [0.2, 0.35, 0.5, 0.65, 0.8, 0.95] {
        let landscape = peak(at);
        let mut climber = HillClimber::new(Settings::new(WAD));
        let mut rounds = 0;
        while !climber.is_steady() {
            play(&mut climber, 10, &landscape);
            rounds += 10;
            assert!(rounds < 1000, "no convergence towards {at}");
        }
        assert!(rounds >= 50);
        let reached = landscape(target(&climber)) / 0.8;
        assert!(reached > 0.97, "stopped at {} on the way to {at}", target(&climber));
        let before = climber.target();
        play(&mut climber, 500, &landscape);
        assert_eq!(climber.target(), before, "a steady target stays while nothing changes");
    }
}

/// The targets tried where no target is better, in hundredths, until the climb is over.
fn tried(settings: Settings) -> Vec<u64> {
    let mut climber = HillClimber::new(settings);
    let mut targets = Vec::new();
    while !climber.is_steady() {
        targets.push(climber.target() / (WAD / 100));
        play(&mut climber, 10, |_| 0.6);
    }
    assert_eq!(climber.target(), settings.initial, "nothing was better");
    targets
}

/// One period for the start, then 0.05 on, and around it at 0.05, 0.10, 0.20: five periods, the paper's 50 rounds.
#[test]
fn a_flat_landscape_is_searched_at_these_distances() {
    let settings = Settings::new(WAD);
    assert_eq!(tried(settings), [50, 55, 45, 60, 30]);
    let counted = Settings { first_is_stationary: false, ..settings };
    assert_eq!(tried(counted), [50, 55, 45, 60, 30, 90]);
    let multiples = Settings { search: Search::Multiples, ..counted };
    assert_eq!(tried(multiples), [50, 55, 45, 60, 35, 70]);
}

/// After a rise five periods in vain are needed: the step on, here of 0.10, then 0.05, 0.10, 0.20 and 0.40 around the best.
#[test]
fn the_best_target_is_searched_around_at_doubled_distances() {
    let mut climber = HillClimber::new(Settings::new(WAD));
    let better = |target: f64| {
        if target > 0.549 && target < 0.551 {
            0.9
        } else {
            0.6
        }
    };
    let mut targets = Vec::new();
    while !climber.is_steady() {
        targets.push(climber.target() / (WAD / 100));
        play(&mut climber, 10, better);
    }
    assert_eq!(targets, [50, 55, 65, 50, 65, 35, 95]);
    assert_eq!(climber.target(), 55 * (WAD / 100));
}

/// A start that is lucky once: against its gain no target ever looks better, against a smoothed one a better target soon does.
#[test]
fn a_smoothed_reference_forgets_luck() {
    let after_luck = |reference| {
        let mut climber = HillClimber::new(Settings { reference, ..Settings::new(WAD) });
        play(&mut climber, 10, |_| 0.75);
        while !climber.is_steady() {
            play(&mut climber, 10, |target| if target > 0.5 { 0.7 } else { 0.5 });
        }
        target(&climber)
    };
    assert_eq!(after_luck(Reference::Best), 0.5);
    assert_eq!(after_luck(Reference::Rises), 0.5);
    assert!(after_luck(Reference::Periods) > 0.5);
}

#[test]
fn follows_when_the_workers_change() {
    let mut climber = HillClimber::new(Settings::new(WAD));
    play(&mut climber, 600, peak(0.8));
    assert!(climber.is_steady());
    assert!((target(&climber) - 0.8).abs() < 0.15);
    play(&mut climber, 20, peak(0.3));
    assert!(!climber.is_steady(), "a fall of the gain starts a new climb");
    play(&mut climber, 600, peak(0.3));
    assert!(climber.is_steady());
    assert!((target(&climber) - 0.3).abs() < 0.15, "{}", target(&climber));
}

#[test]
fn the_target_stays_a_probability() {
    for slope in [-1.0, 1.0] {
        let mut climber = HillClimber::new(Settings::new(WAD));
        for _ in 0..300 {
            play(&mut climber, 10, |target| 0.5 + slope * (target - 0.5) * 0.9);
            assert!(climber.target() <= WAD);
        }
    }
    let mut climber = HillClimber::new(Settings::new(WAD));
    play(&mut climber, 500, |_| 0.0);
    assert!(climber.target() <= WAD);
}

fn best_of(algorithm: Algorithm, alpha: u64, bounds: (usize, usize), ratings: &[u64]) -> u64 {
    let mut scratch = ratings.to_vec();
    let form = |free: &mut [u64], rule: &Rule| algorithm.form::<_, Exact>(free, rule, |_| unreachable!("nothing random"));
    best_target::<_, Exact>(alpha, bounds, ratings, &mut scratch, form)
}

/// The gain of all groups that are formed for a target, divided anew, in units of the likelihoods that are summed up.
fn gain_of(algorithm: Algorithm, alpha: u64, (min, max): (usize, usize), ratings: &[u64], target: u64) -> u64 {
    let rule = Rule::new(min, max, target).unwrap();
    let (mut free, mut expected, mut groups) = (ratings.to_vec(), 0, 0);
    while let Some(formed) = algorithm.form::<_, Exact>(&mut free, &rule, |_| unreachable!("nothing random")) {
        let group: Vec<u64> = free.drain(..formed.size).collect();
        expected += likelihood(&group).unwrap() >> 10;
        groups += WAD >> 10;
    }
    gain(tally(expected, groups, (ratings.len() / min) as u64 * (WAD >> 10)), alpha)
}

#[test]
fn the_best_target_has_the_largest_gain_with_its_neighbours() {
    let mut random = ChaCha8Rng::seed_from_u64(44);
    let mut moved = 0;
    for case in 0..600 {
        let algorithm = [Algorithm::FirstFit, Algorithm::TightFit][case % 2];
        let alpha = [0, WAD / 2, WAD][case / 2 % 3];
        let bounds = [(3, 7), (3, 9), (4, 8), (5, 5)][random.next_u32() as usize % 4];
        let mut ratings: Vec<u64> =
            (0..bounds.1 + random.next_u32() as usize % 26).map(|_| random.next_u64() % (WAD + 1)).collect();
        ratings.sort_unstable_by(|a, b| b.cmp(a));
        let gains: Vec<u64> = (0..=50).map(|i| gain_of(algorithm, alpha, bounds, &ratings, i * TARGET_STEP)).collect();
        let sum = |i: usize| gains[i.max(1) - 1] + gains[i] + gains[(i + 1).min(50)];
        let first = |of: &dyn Fn(usize) -> u64| (0..=50).rev().max_by_key(|&i| of(i)).unwrap();
        let expected = first(&sum);
        assert_eq!(best_of(algorithm, alpha, bounds, &ratings), expected as u64 * TARGET_STEP, "{case}: {ratings:?}");
        moved += usize::from(expected != first(&|i| gains[i]));
    }
    assert!(moved > 100, "neighbours matter: {moved}");
}

#[test]
fn there_is_a_best_target_for_anybody() {
    for algorithm in [Algorithm::FirstFit, Algorithm::TightFit] {
        assert_eq!(best_of(algorithm, WAD / 2, (3, 7), &[]), 0, "nobody");
        assert_eq!(best_of(algorithm, WAD / 2, (3, 7), &[WAD; 2]), 0, "too few");
        assert_eq!(best_of(algorithm, WAD / 2, (3, 7), &[0; 32]), 0, "no hope");
        assert_eq!(best_of(algorithm, WAD / 2, (3, 7), &[WAD; 32]), 0, "whatever the target, the groups are the same");
    }
}

#[test]
fn a_predictive_target_is_a_mean_of_which_the_last_has_a_third() {
    // The initial target has no part in it.
    assert_eq!(mean_target(WAD / 2, 0, WAD), WAD);
    assert_eq!(mean_target(WAD, 1, WAD / 5 * 2), WAD / 10 * 7);
    assert_eq!(mean_target(WAD / 10 * 7, 2, WAD), WAD / 10 * 8);
    for before in 2..=u8::MAX {
        assert_eq!(mean_target(WAD / 10 * 6, before, 0), WAD / 10 * 4);
        assert_eq!(mean_target(1, before, 0), 0, "rounded down");
        assert_eq!(mean_target(WAD, before, WAD), WAD);
        assert_eq!(mean_target(u64::MAX, before, u64::MAX), WAD);
    }
}

#[test]
fn where_nothing_succeeds_nothing_rises() {
    let mut climber = HillClimber::new(Settings::new(WAD));
    play(&mut climber, 50, |_| 0.0);
    assert!(climber.is_steady(), "no gain is no rise over none");
    assert_eq!(climber.target(), WAD / 2);
}

/// The state kept between two periods suffices for the next one: in every phase, upwards and downwards.
#[test]
fn a_climb_goes_on_from_its_state() {
    let mut phases = [0; 3];
    let mut downwards = 0;
    for (first_is_stationary, reference) in [(true, Reference::Periods), (false, Reference::Best), (true, Reference::Rises)] {
        let settings = Settings { first_is_stationary, reference, ..Settings::new(WAD) };
        let mut climber = HillClimber::new(settings);
        for round in 0..120 {
            let state = climber.state();
            assert_eq!(HillClimber::resume(settings, climber.target(), &state), climber, "period {round}");
            phases[state.phase as usize] += 1;
            downwards += u32::from(!state.upwards);
            play(&mut climber, 10, peak(if round < 60 { 0.8 } else { 0.3 }));
        }
    }
    assert!(phases[0] == 3 && phases[1] > 20 && phases[2] > 20 && downwards > 20, "{phases:?}, {downwards} downwards");
    assert_eq!(HillClimber::new(Settings::new(WAD)).state(), TargetSearch::START);
}

#[test]
fn a_long_search_is_counted_as_far_as_the_record_goes() {
    let endless = Settings { stationary: u32::MAX, ..Settings::new(WAD) };
    let mut climber = HillClimber::new(endless);
    play(&mut climber, 10 * 255, |_| 0.6);
    assert_eq!((climber.state().tried, climber.state().stationary), (254, 255));
    play(&mut climber, 10 * (65_536 - 255), |_| 0.6);
    assert_eq!((climber.state().tried, climber.state().stationary), (255, 65_535));
}
