//! The owner of the network, and how long their proposals must wait.

use crate::host::Host;
use crate::store::layout::{slot, OWNERSHIP};
use crate::Result;
use muster_core::record::Ownership;

/// Seconds by which the longest unbonding stays below the delay of upgrades, so that nodes that disagree can leave first.
pub const NOTICE: u32 = 86_400;
/// Shortest delay of upgrades: the default unbonding and [`NOTICE`].
pub const UPGRADE_DELAY_MIN: u32 = 2 * 86_400;

pub fn ownership<H: Host>(host: &H) -> Result<Ownership> {
    let o: Ownership = host.get(slot(OWNERSHIP));
    ensure!(o.stake_unit > 0, NotInitialised);
    Ok(o)
}
