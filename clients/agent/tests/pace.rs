//! Cards do not wait for looks at the chain: agents here look by themselves only every ten minutes, so any wait for a look would
//! take that long. `script/bench latency` measures the speed; this test does not depend on the machine's.

use muster_fleet::latency::{Conditions, Scene};

/// See the module's comment.
const LOOKS: &str = "look_every = 600\n";

async fn scene(push: bool, nodes: usize, cards: usize, sampled: u64) -> Scene {
    let conditions = Conditions { block: 250, delay: 5, push, nodes };
    Scene::new(conditions, cards, LOOKS, sampled).await.unwrap_or_else(|error| panic!("{error:#}"))
}

/// Tasks that wait run one after the other, within the minutes that a scene allows.
async fn runs(scene: &Scene, policy: u8, tasks: usize) {
    let busy = scene.busy(policy, 0.05, tasks).await.unwrap_or_else(|error| panic!("{error:#}"));
    assert!(busy.share > 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_receipt_says_begins_the_next_task() {
    runs(&scene(true, 1, 1, 0).await, 0, 6).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_it_does_where_nobody_tells_of_blocks() {
    runs(&scene(false, 1, 1, 0).await, 0, 6).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_share_a_card() {
    runs(&scene(true, 2, 1, 0).await, 0, 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_block_that_decides_wakes_whoever_has_to_reveal() {
    runs(&scene(true, 1, 3, 0).await, 1, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_are_reserved_draw() {
    runs(&scene(true, 1, 3, 0).await, 2, 6).await;
}
