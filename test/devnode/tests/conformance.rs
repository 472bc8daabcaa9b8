//! What programs cost, against sums made by hand.

mod support;

use support::cases::{cases, run};

#[test]
fn every_case_costs_what_it_must() {
    let mut wrong = vec![];
    for case in cases() {
        let row = run(&case);
        if row.ink.0 != row.ink.1
            || row.gas.0 != row.gas.1
            || row.gas_cached.0 != row.gas_cached.1
            || row.end != row.ended
        {
            wrong.push(format!(
                "{}: ink {:?}, gas {:?}, cached {:?}, end {:?} for {:?}\n    {}",
                row.name, row.ink, row.gas, row.gas_cached, row.ended, row.end, row.terms
            ));
        }
    }
    assert!(wrong.is_empty(), "expected and got differ:\n{}", wrong.join("\n"));
}
