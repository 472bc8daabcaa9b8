//! The outcome table through compiled WASM: every combination that can come to be, as a real group of its own. Each of
//! its calls is also run natively on the same storage, and both must agree in every word.

use muster_model::outcomes::{combinations, Case, Kind, Table, ORDERS};
use muster_model::system::System;
use muster_tests::live::Site;

/// The kind that is judged, whether the scope is large enough for scores, and how many combinations there are.
const PARTS: [(Kind, bool, u32); 5] = [
    (Kind::Replicated, true, 512),
    (Kind::Replicated, false, 512),
    (Kind::Images, true, 512),
    (Kind::Sampled, true, 448),
    (Kind::Sampled, false, 511),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_group_comes_to_what_the_table_says() {
    let Some(site) = Site::new().await else {
        return println!("every_group_comes_to_what_the_table_says: skipped, because RPC_URL names a node");
    };
    // The next combination in the next order: natively each is played in all of them.
    let mut orders = ORDERS.iter().cycle();
    for (kind, scored, groups) in PARTS {
        let mut table = Table::new(site.fresh());
        for acts in combinations() {
            let case = Case { kind, scored, acts };
            if case.exists() {
                table.play(&case, orders.next().expect("endless"));
            }
        }
        let (mut live, count) = table.finish();
        live.inspect();
        println!("{} calls", live.calls);
        kind.proof(scored, &count);
        assert_eq!(count.groups, groups);
        let slashes = scored && kind != Kind::Images;
        assert_eq!((count.slashes > count.left, count.left > 0), (slashes, slashes));
        if (kind, scored) == (Kind::Sampled, true) {
            assert!(count.alone.iter().chain(&count.pots).all(|&times| times > 5), "{count:?}");
        }
    }
}
