//! The adaptive target: the gain by hand, and the climber on landscapes whose peak is known.

use muster_core::adaptive::*;
use muster_core::wad::WAD;

fn tally(successes: u64, groups: u64, capacity: u64) -> Tally {
    Tally {
        successes,
        groups,
        capacity,
    }
}

#[test]
fn gain_weighs_throughput_against_success() {
    let round = tally(18, 20, 33);
    assert_eq!(gain(round, 0), 900_000_000_000_000_000);
    assert_eq!(gain(round, WAD), 18 * WAD / 33);
    assert_eq!(
        gain(round, WAD / 2),
        18 * (WAD / 2) / 33 + 450_000_000_000_000_000
    );
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
        assert!(
            reached > 0.97,
            "stopped at {} on the way to {at}",
            target(&climber)
        );
        let before = climber.target();
        play(&mut climber, 500, &landscape);
        assert_eq!(
            climber.target(),
            before,
            "a steady target stays while nothing changes"
        );
    }
}

#[test]
fn a_flat_landscape_converges_in_the_least_time() {
    let mut climber = Climber::new(Settings::new(WAD));
    // One period to measure the start, five without a rise.
    play(&mut climber, 59, |_| 0.6);
    assert!(!climber.is_steady());
    play(&mut climber, 1, |_| 0.6);
    assert!(climber.is_steady());
}

#[test]
fn follows_when_the_workers_change() {
    let mut climber = Climber::new(Settings::new(WAD));
    play(&mut climber, 600, peak(0.8));
    assert!(climber.is_steady());
    assert!((target(&climber) - 0.8).abs() < 0.15);
    play(&mut climber, 20, peak(0.3));
    assert!(
        !climber.is_steady(),
        "a fall of the gain starts a new climb"
    );
    play(&mut climber, 600, peak(0.3));
    assert!(climber.is_steady());
    assert!(
        (target(&climber) - 0.3).abs() < 0.15,
        "{}",
        target(&climber)
    );
}

#[test]
fn the_target_stays_a_probability() {
    for slope in [-1.0, 1.0] {
        let mut climber = Climber::new(Settings::new(WAD));
        for _ in 0..300 {
            play(&mut climber, 10, |target| {
                0.5 + slope * (target - 0.5) * 0.9
            });
            assert!(climber.target() <= WAD);
        }
    }
    let mut climber = Climber::new(Settings::new(WAD));
    play(&mut climber, 500, |_| 0.0);
    assert!(climber.target() <= WAD);
}
