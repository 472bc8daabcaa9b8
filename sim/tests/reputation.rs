//! Groups chosen by ratings on the contract: against the central server, and the page about them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use muster_core::reputation::Algorithm;
use muster_core::wad::WAD;
use muster_sim::numbers::thousands;
use muster_sim::population::{Name, Set};
use muster_sim::rated::farm::{among_all, live, Conduct, Life};
use muster_sim::rated::game::{play, Game, Target};
use muster_sim::rated::{page, run, study, Options, Scale};
use muster_sim::rounds::{self, Measure, Run, Targeting};

const TINY: Scale = Scale {
    quick: true,
    seeds: 2,
    rounds: 6,
    target_seeds: 1,
    target_rounds: 6,
    targets: &[0, 900],
    lives: 2,
    life_rounds: (4, 4),
    farmed: 6,
};

fn game(algorithm: Algorithm, target: u64) -> Game {
    Game {
        population: Set::FITTED.of(Name::HeavyHigh),
        nodes: 100,
        algorithm,
        target: Target::Given(target),
        alpha: WAD / 2,
        rounds: 60,
        population_seed: 3,
        run_seed: 1,
    }
}

/// The central server's result on the same workers.
fn central(algorithm: rounds::Algorithm, target: u64) -> rounds::Outcome {
    rounds::play(&Run {
        population: Set::FITTED.of(Name::HeavyHigh),
        workers: 100,
        min: 3,
        max: 7,
        algorithm,
        measure: Measure::Exact,
        targeting: Targeting::Static(target),
        alpha: WAD / 2,
        rounds: 60,
        blackout: None,
        population_seed: 3,
        run_seed: 1,
        keep_rounds: false,
        compare_measures: false,
    })
}

/// Fixed takes seven at random wherever it runs: 14 groups of 100 nodes, as successful as the central server's. The target changes sizes.
#[test]
fn fixed_is_the_central_servers_and_a_target_makes_smaller_groups() {
    let (here, there) = (play(&game(Algorithm::Fixed, 0)), central(rounds::Algorithm::Fixed, 0));
    assert_eq!((here.size, here.left, there.attempted), (7.0, 2.0, 14.0));
    // 840 groups each: the deviation of the difference is at most 0.024.
    assert!((here.success - there.success).abs() < 0.075, "{} and {}", here.success, there.success);
    let target = (here.success * WAD as f64) as u64;
    let (first, paper) = (play(&game(Algorithm::FirstFit, target)), central(rounds::Algorithm::FirstFit, target));
    assert!(first.size < 6.0 && first.throughput > 1.2 * here.throughput, "{first:?} {here:?}");
    assert!((first.throughput / paper.throughput - 1.0).abs() < 0.2, "{} and {}", first.throughput, paper.throughput);
    let (none, all) = (play(&game(Algorithm::FirstFit, 0)), play(&game(Algorithm::FirstFit, WAD)));
    assert!(none.size < 3.001 && all.size > 6.999, "{} and {}", none.size, all.size);
}

#[test]
fn feeding_ones_own_nodes_costs_no_fee_and_raises_their_ratings() {
    let life = |before| {
        live(&Life {
            population: Set::FITTED.of(Name::HeavyHigh),
            honest: 40,
            farmers: 10,
            conduct: Conduct::Agreed,
            before,
            each: 0,
            algorithm: Algorithm::FirstFit,
            rounds: (2, 1),
            seed: 5,
        })
    };
    let (newcomers, fed) = (life(0), life(20));
    assert!((newcomers.ratings.0 - 0.5).abs() < 1e-9 && newcomers.price.judgements == 0);
    // 18 judgements of each, all right: 19 of 20.
    assert!(fed.ratings.0 > 0.9, "{:?}", fed.ratings);
    assert_eq!((fed.price.tasks, fed.price.judgements, fed.price.fees, fed.price.start_fees), (20, 180, 0, 0));
    assert_eq!((fed.price.calls.commits, fed.price.calls.reveals, fed.price.calls.settled), (180, 160, 20));
    assert!(fed.price.name > 0);
    let shared = among_all(Set::FITTED.of(Name::HeavyHigh), 40, 10, 20, 5);
    assert!(shared.fees > 0 && shared.judgements < 180, "{shared:?}");
}

/// The fallback of the contract's Tight-fit is the paper's, as the comparison assumes.
#[test]
fn tight_fit_is_compared_with_its_like() {
    let (here, there) = (play(&game(Algorithm::TightFit, WAD)), central(rounds::Algorithm::TightFitApart, WAD));
    assert!((here.size - there.group_size).abs() < 0.2, "{} and {}", here.size, there.group_size);
}

#[test]
fn writes_page_and_pictures_whatever_the_threads() {
    let with = |threads: usize| {
        let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("reputation-{threads}"));
        let _ = fs::remove_dir_all(&out);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(&Options { scale: TINY, seed: 7, out: out.clone() })).unwrap();
        let files = [out.clone(), out.join("figures")].map(|folder| fs::read_dir(folder).unwrap());
        let files = files.into_iter().flatten().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        files.map(|path| (path.file_name().unwrap().to_owned(), fs::read_to_string(path).unwrap())).collect::<BTreeMap<_, _>>()
    };
    let (one, three) = (with(1), with(3));
    assert_eq!(one, three);
    let page = one.iter().find(|(name, _)| name.to_str() == Some("simulator-reputation.md")).unwrap().1;
    for link in page.split("](figures/").skip(1).map(|rest| rest.split(')').next().unwrap()) {
        assert!(one.keys().any(|name| name.to_str() == Some(link)), "{link} is shown but not drawn");
    }
    assert_eq!(one.len(), 3);
    assert!(one.values().all(|text| !text.contains("NaN") && !text.contains("inf ")));
    assert!(page.contains("of 36 cases"));
}

#[test]
fn the_written_page_has_the_gas_of_the_snapshot() {
    let gas = thousands(page::judgement(&study::own(Scale::FULL.farmed, 1)));
    assert!(
        include_str!("../../docs/research/simulator-reputation.md").contains(&format!("gas, about {gas} for each judgement")),
        "{gas}: script/sim reputation"
    );
}
