//! The code of the contracts against the reference model, in memory.

use muster_model::model::drive;

#[test]
fn a_hundred_thousand_operations_agree_with_the_model() {
    drive(1..51, 2_400, 14, 50);
}

#[test]
fn many_short_lives_agree_with_the_model() {
    drive(1_000..1_100, 200, 14, 1);
}

/// More holders of a model than a search looks at, taller brackets, longer queues.
#[test]
fn a_wider_network_agrees_with_the_model() {
    drive(2_000..2_006, 4_000, 90, 10);
}
