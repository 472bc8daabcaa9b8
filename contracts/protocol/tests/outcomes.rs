//! The outcome table on real groups, natively and in every order; test/suite plays it through the compiled programs.

use muster_model::outcomes::{combinations, Case, Count, Kind, Table, ORDERS};
use muster_model::world::World;

/// Plays every combination of a kind that can come to be, in every order.
fn played(kind: Kind, scored: bool) -> Count {
    let mut table = Table::new(World::new());
    for acts in combinations() {
        let case = Case { kind, scored, acts };
        for order in ORDERS.iter().filter(|_| case.exists()) {
            table.play(&case, order);
        }
    }
    let (_, count) = table.finish();
    kind.proof(scored, &count);
    count
}

#[test]
fn scored_groups_of_three() {
    let count = played(Kind::Replicated, true);
    assert_eq!(count.groups, 512 * 12);
    assert!(count.left > 100 && count.slashes > 2 * count.left, "{count:?}");
}

#[test]
fn groups_of_three_in_a_small_scope() {
    let count = played(Kind::Replicated, false);
    assert_eq!((count.groups, count.slashes), (512 * 12, 0));
}

#[test]
fn groups_whose_answers_are_images() {
    let count = played(Kind::Images, true);
    assert_eq!((count.groups, count.slashes), (512 * 12, 0));
}

#[test]
fn groups_of_sampled_tasks() {
    let count = played(Kind::Sampled, true);
    assert_eq!(count.sizes, [0, 0, 448 * 12]);
    assert!(count.left > 100 && count.slashes > 2 * count.left, "{count:?}");
    assert!(count.alone.iter().chain(&count.pots).all(|&times| times > 20), "{count:?}");
}

#[test]
fn groups_of_sampled_tasks_in_small_scopes() {
    let count = played(Kind::Sampled, false);
    assert_eq!((count.sizes, count.slashes), ([7 * 12, 56 * 12, 448 * 12], 0));
}
