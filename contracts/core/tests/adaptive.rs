//! The adaptive target: the gain by hand, and the climber on landscapes whose peak is known.

use muster_core::adaptive::*;
use muster_core::wad::WAD;

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
fn play(climber: &mut Climber, rounds: usize, landscape: impl Fn(f64) -> f64) {
    for _ in 0..rounds {
        let target = climber.target() as f64 / WAD as f64;
        let successes = (landscape(target) * 1e6) as u64;
        climber.observe(tally(successes, 1_000_000, 1_000_000));
    }
}

fn target(climber: &Climber) -> f64 {
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
        let mut climber = Climber::new(Settings::new(WAD));
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
    let mut climber = Climber::new(settings);
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
    let mut climber = Climber::new(Settings::new(WAD));
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

/// A start that is lucky once: held against that gain nothing is ever better, against a smoothed one what is better soon is.
#[test]
fn a_smoothed_reference_forgets_luck() {
    let after_luck = |reference| {
        let mut climber = Climber::new(Settings { reference, ..Settings::new(WAD) });
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
    let mut climber = Climber::new(Settings::new(WAD));
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
        let mut climber = Climber::new(Settings::new(WAD));
        for _ in 0..300 {
            play(&mut climber, 10, |target| 0.5 + slope * (target - 0.5) * 0.9);
            assert!(climber.target() <= WAD);
        }
    }
    let mut climber = Climber::new(Settings::new(WAD));
    play(&mut climber, 500, |_| 0.0);
    assert!(climber.target() <= WAD);
}
