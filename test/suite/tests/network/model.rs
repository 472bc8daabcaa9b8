//! The compiled programs against the reference model.

use muster_model::drive::{drive, operations, play};
use muster_model::explorer::Explorer;
use muster_model::system::System;
use muster_tests::live::Site;
use std::cell::Cell;

/// The seeds that are driven, and the operations of each.
const SEEDS: std::ops::Range<u64> = 5_000..5_004;
const LENGTH: usize = 1_700;

/// State, events, money and storage after every one of 6,800 operations, more than 5,000 of them calls; then the nodes leave.
#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_operations_agree_with_the_model() {
    let Some(site) = Site::new().await else {
        return println!("five_thousand_operations_agree_with_the_model: skipped, because RPC_URL names a node");
    };
    drive(&|| site.fresh(), SEEDS, LENGTH, 14, 1);
}

/// A reader that asks for all logs only at the end knows the same state, defaults and programs included.
#[tokio::test(flavor = "multi_thread")]
async fn the_state_is_rebuilt_from_eth_get_logs_alone() {
    let Some(site) = Site::new().await else {
        return println!("the_state_is_rebuilt_from_eth_get_logs_alone: skipped, because RPC_URL names a node");
    };
    let mut live = site.fresh();
    play(&mut live, &operations(5_100, 600, 14), 14, &Cell::new(0));
    let mut explorer = Explorer::default();
    for (event, time) in live.all_logs() {
        explorer.read(&event, time);
    }
    live.read(|net| explorer.compare(net));
}
