//! Bytes as operations, tried on the compiled programs and on the model. Beside each call the same code runs compiled for this machine.

use crate::operations::{operations, OPERATORS};
use muster_model::drive::play_out;
use muster_tests::live::Site;
use std::cell::{Cell, OnceCell};
use tokio::runtime::Runtime;

thread_local! {
    /// A deployment, and what its node's tasks run on; none where `RPC_URL` names another node.
    static SITE: OnceCell<Option<(Runtime, Site)>> = const { OnceCell::new() };
}

fn deployed() -> Option<(Runtime, Site)> {
    let runtime = Runtime::new().expect("threads");
    let site = runtime.block_on(Site::new())?;
    Some((runtime, site))
}

/// Panics at the first difference.
pub fn run(data: &[u8]) {
    SITE.with(|site| {
        let Some((_, site)) = site.get_or_init(deployed) else { return };
        play_out(&mut site.fresh(), &operations(data), OPERATORS, &Cell::new(0));
    });
}
